"""The web process keeps one worker process going, and brings back the jobs of one that died."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from unhans.errors import UnhansError
from unhans.jobs import Jobs
from unhans.processes import alive

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_TOKEN_PATH")
_LOOK_SECONDS = 0.25
_RECOVER_SECONDS = 2.0
_JUMP_SECONDS = 5.0  # a look that comes so late was delayed by a machine that slept, or by a clock that was set
_STOP_SECONDS = 9.0
_SETTLED_SECONDS = 10.0  # a worker that lives so long has started well
_LONGEST_PAUSE = 60.0
_LARGEST_LOG = 10_000_000


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker process is told, as JSON on its standard input: a password in a command line could be read."""

    root: str  # the workspace
    database: str | None = None
    handlers: str = "unhans.work:HANDLERS"  # module and name of the table from kind of job to function
    lease_seconds: float = 60.0
    stall_seconds: float = 600.0
    grace_seconds: float = 5.0  # between being asked to stop and being made to
    poll_seconds: float = 0.25
    memory_bytes: int | None = None  # of address space for one job; None: 80 % of the machine's memory
    cpu_seconds: int = 24 * 3600  # of one job
    wall_seconds: float = 48 * 3600  # of one job, by the clock on the wall
    threads: int = 1
    allow_hub: bool = False
    schema: str | None = "unhans"  # of that database which has the queue; None: the queue is in a file all the same
    server: int = 0  # process that the worker must not outlive; 0: whoever started it


class Supervisor:
    """Owns the worker process. `start` and `stop` may be called from any thread and do not wait for work."""

    def __init__(self, jobs: Jobs, settings: WorkerSettings) -> None:
        self._jobs, self._settings = jobs, replace(settings, server=os.getpid())
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._worker_problem = self._queue_problem = ""
        self.starts = 0  # of workers, so far

    def start(self) -> None:
        """Bring back what a former worker left, and start one; it is started again whenever it dies."""
        if self._thread is None:
            self._ending.clear()
            self._thread = threading.Thread(target=self._run, name="job supervisor", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the worker; its job is queued again. Returns when it is gone, after ten seconds at most."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def pid(self) -> int | None:
        """The worker's process, while there is one."""
        worker = self._worker
        return worker.pid if worker is not None and worker.returncode is None else None

    @property
    def problem(self) -> str:
        """Why no work is done at the moment, in a sentence; empty if all is well."""
        return self._queue_problem or self._worker_problem

    def _run(self) -> None:
        pause = 0.5
        while not self._ending.is_set():
            self._recover()
            began = time.monotonic()
            try:
                self._employ()
            except OSError as error:  # the machine has no room for another process
                self._worker_problem = (
                    f"No process can be started for the work ({error.strerror}). Jobs wait meanwhile."
                )
            self._recover()
            pause = 0.5 if time.monotonic() - began > _LONGEST_PAUSE else min(_LONGEST_PAUSE, pause * 2)
            self._ending.wait(pause)

    def _employ(self) -> None:
        """Have a worker, until it is gone."""
        with subprocess.Popen(
            [sys.executable, "-m", "unhans.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=tamed(os.environ, self._settings),
            start_new_session=True,  # Ctrl-C in the terminal is for the server, which then asks the worker to stop
        ) as worker:
            self._worker = worker
            self.starts += 1
            self._tell(worker)
            self._attend(worker)
        self._worker_problem = "The process that does the work stopped unexpectedly. It is being started again."

    def _tell(self, worker: subprocess.Popen[bytes]) -> None:
        assert worker.stdin is not None
        with suppress(BrokenPipeError):  # it died at once, which `_attend` notices
            worker.stdin.write(json.dumps(asdict(self._settings)).encode())
            worker.stdin.close()

    def _attend(self, worker: subprocess.Popen[bytes]) -> None:
        """Until the worker is gone, or was made to go."""
        looked, began, calm_until = time.time(), time.monotonic(), 0.0
        recovered = began
        while not self._ending.wait(_LOOK_SECONDS):
            if worker.poll() is not None:
                return
            now, late = time.monotonic(), time.time() - looked - _LOOK_SECONDS
            looked = time.time()
            if now - began > _SETTLED_SECONDS:
                self._worker_problem = ""
            if abs(late) > _JUMP_SECONDS:
                calm_until = now + self._settings.lease_seconds  # leases look ended, though nobody could renew them
            if now - recovered > _RECOVER_SECONDS and now > calm_until:
                self._recover()
                recovered = now
        worker.terminate()
        try:
            worker.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()

    def _recover(self) -> None:
        try:
            self._jobs.recover(alive)
            self._queue_problem = ""
        except (UnhansError, SQLAlchemyError) as error:  # the database is away or full: the next round tries again
            known = isinstance(error, UnhansError)
            self._queue_problem = str(error) if known else "The queue of jobs cannot be read. Nothing is lost."


def tamed(environ: Mapping[str, str], settings: WorkerSettings) -> dict[str, str]:
    """The environment for work on models of others: no tokens, no hub, no spinning threads, no traces on the screen."""
    kept = {name: value for name, value in environ.items() if name not in _TOKENS and not name.startswith("UNHANS_")}
    hub = {} if settings.allow_hub else {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return kept | hub | {
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a process with threads cannot be forked safely
        "OMP_NUM_THREADS": str(settings.threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "RUST_BACKTRACE": "0",
        "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip


def log(root: Path, facts: dict[str, Any]) -> None:
    """Add a record to `logs/jobs.jsonl` of the workspace: a line each, control characters escaped, its owner's only."""
    folder = root / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "jobs.jsonl"
    with suppress(FileNotFoundError):
        if file.stat().st_size > _LARGEST_LOG:
            file.replace(folder / "jobs.old.jsonl")
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"at": at} | facts) + "\n"  # JSON escapes whatever is not plain ASCII
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)
