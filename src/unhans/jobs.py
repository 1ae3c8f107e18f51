"""The queue of work: a table of jobs, each claimed by one process at a time under a lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

JobState = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work, as people see it."""

    id: str
    kind: str
    project: str | None
    by: str
    state: JobState
    options: dict[str, Any]
    tries: int
    done: int | None  # of `total`, in whatever the step counts; None: not known yet
    total: int | None
    eta_seconds: float | None  # about; None where it cannot be told honestly yet
    step: str  # what it is doing, in plain words
    message: str  # what became of it: why it failed, and what to do
    result: Any | None
    created: str
    started: str | None
    finished: str | None
