"""Several trainings in a row: the fix that is asked for, then others to measure it against.

The first is the one that counts. Others train it with other seeds or strengths, or are rivals: cheap fixes that a
clever one has to beat. Each has checkpoints of its own, so that work that was killed goes on where it stopped; and all
of them count as one piece of work, with one progress.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from unhans.errors import Busy, Cancelled, UnhansError
from unhans.fixes import Mended, fix, mend, training_settings, wanted
from unhans.model import Classifier
from unhans.scoring import Progress
from unhans.shapes import LossPoint
from unhans.training import Epoch, Watch
from unhans.types import Copy, Counterfactual, Example, Feedback

_WHOLE = 10_000  # progress is told in so many parts
_LEFT_SECONDS = 7 * 86_400  # checkpoints that nobody came back for
_STEP_COST = 3  # a step forward and two back, in passes over the texts


@dataclass(frozen=True)
class Follow:
    """How a caller follows a long piece of work, and stops it."""

    step: Callable[[str], None] = lambda _: None
    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None
    on_point: Callable[[LossPoint], None] | None = None
    on_epoch: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Run:
    """One training of a round."""

    name: str  # what people call it
    fix: str
    options: Mapping[str, Any]
    seed: int
    role: Literal["fix", "seed", "rival"]


def planned(
    name: str,
    options: Mapping[str, Any],
    *,
    seed: int,
    seeds: int = 1,
    rivals: Sequence[str] = (),
    strengths: Sequence[float] = (),
) -> list[Run]:
    """The trainings of a round, the one that counts first; options are checked, and no rival is the fix itself."""
    entry = fix[name]
    own = entry.settings(options)
    runs = [Run(entry.name, entry.name, own, seed, "fix")]
    runs += [Run(f"{entry.name}, seed {n}", entry.name, own, n, "seed") for n in range(seed + 1, seed + seeds)]
    runs += [Run(fix[r].name, fix[r].name, fix[r].settings({}), seed, "rival") for r in dict.fromkeys(rivals)]
    for strength in dict.fromkeys(strengths):
        varied = entry.settings({**own, "strength": strength})
        if varied != own:
            runs.append(Run(f"{entry.name}, strength {strength:g}", entry.name, varied, seed, "rival"))
    return runs


@dataclass(frozen=True)
class Round:
    """What all trainings of a round have in common."""

    classifier: Classifier
    train: Sequence[Example]
    validation: Sequence[Example] | None
    feedback: Sequence[Feedback]
    training: Mapping[str, Any]
    flips: Mapping[str, Counterfactual] = field(default_factory=dict)  # that ratings are about, by their ids
    copies: Sequence[Copy] = ()  # of training examples that people rated
    tested: Sequence[Example] = ()  # that the trained ones will be verified on
    notes: list[str] = field(default_factory=list)  # what the report should say of the trainings

    def check(self, run: Run) -> None:
        """Refuse at once what could not be trained."""
        training_settings(self.training)
        entry = fix[run.fix]
        self.classifier.require({"train", *entry.needs}, entry.name)
        wanted(self.feedback, entry.facts["reads"], entry.name)

    def passes(self, run: Run) -> float:
        """About how much work a training is, in texts that go through the model."""
        epochs = int(training_settings(self.training)["epochs"] or 0)
        return float(len(self.train) * epochs * _STEP_COST * float(fix[run.fix].facts.get("cost", 1.0)))

    def mend(self, run: Run, folder: Path, follow: Follow, progress: Progress) -> Mended | None:
        """One training, with checkpoints in the folder; None if it is not the one that counts and cannot be done."""
        try:
            made = mend(
                self.classifier,
                self.train,
                self.feedback,
                fix=run.fix,
                flips=self.flips,
                copies=self.copies,
                validation=self.validation,
                tested=self.tested,
                training=self.training,
                seed=run.seed,
                checkpoints=folder / _digest(run.fix, dict(run.options), run.seed),
                watch=self._watch(run, follow, progress),
                **run.options,
            )
        except Cancelled:
            raise
        except UnhansError as error:
            if run.role == "fix":
                raise
            self.notes.append(f"{run.name} could not be measured beside it: {error}")
            return None
        if made.share < 1:
            allowed = dict(made.recipe.options)["tolerance"]
            self.notes.append(
                f"{run.name} went {made.share:.0%} of the way to what was trained: more would have cost more than "
                f"{float(allowed or 0):.1%} of the accuracy on held-out texts."
            )
        return made

    def _watch(self, run: Run, follow: Follow, progress: Progress) -> Watch:
        epochs, losses = int(training_settings(self.training)["epochs"] or 0), _Losses()

        def on_step(step: int, task: float, extra: float | None) -> None:
            losses.add(task, extra)
            if follow.on_point is not None:
                follow.on_point(LossPoint(step, task, extra, run.name))

        def on_progress(step: int, total: int) -> None:
            epoch = min(epochs, step * epochs // max(1, total) + 1)
            which = "" if run.role == "fix" else f" {run.name}"
            follow.step(f"Training{which}: epoch {epoch} of {epochs}, {losses}")
            progress(step, total)

        def on_epoch(epoch: Epoch) -> None:
            if follow.on_epoch is not None:
                score = "" if epoch.score is None else f", {epoch.score:.1%} right of the texts held out"
                follow.on_epoch(f"{run.name}, epoch {epoch.number}: {_told(epoch.loss, epoch.extra)}{score}")

        return Watch(progress=on_progress, cancelled=follow.cancelled, on_epoch=on_epoch, on_step=on_step)


class Shares:
    """One progress for work of several parts, each of some weight."""

    def __init__(self, progress: Progress | None, weights: Sequence[float]) -> None:
        self._tell = progress or (lambda done, total: None)
        self._weights, self._begun = [max(1.0, weight) for weight in weights], 0

    def next(self) -> Progress:
        """Progress through the next part."""
        before, own = sum(self._weights[: self._begun]), self._weights[self._begun]
        self._begun += 1
        whole = sum(self._weights)

        def tell(done: int, total: int) -> None:
            share = before + own * min(1.0, done / max(1, total))
            self._tell(round(share / whole * _WHOLE), _WHOLE)

        tell(0, 1)
        return tell


class _Losses:
    """The losses of late, smoothed: single steps jump about."""

    def __init__(self) -> None:
        self.task: float | None = None
        self.extra: float | None = None

    def add(self, task: float, extra: float | None) -> None:
        self.task = task if self.task is None else 0.9 * self.task + 0.1 * task
        if extra is not None:
            self.extra = extra if self.extra is None else 0.9 * self.extra + 0.1 * extra

    def __str__(self) -> str:
        return "going on" if self.task is None else _told(self.task, self.extra)


def _told(task: float, extra: float | None) -> str:
    return f"loss {task:.2g}" + ("" if extra is None else f", explanations {extra:.2g}")


@contextmanager
def checkpoints(folder: Path, *what: Any) -> Iterator[Path]:
    """A place for the checkpoints of a round, the same whenever the same is asked for; gone once all is done.

    Whoever dies leaves them to be gone on from; what nobody came back for in a week is removed.
    """
    own = folder / _digest(*what)
    own.mkdir(parents=True, exist_ok=True)
    with _alone(own):
        for other in folder.iterdir():
            if other != own and time.time() - other.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
        os.utime(own)
        yield own
        shutil.rmtree(own, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy(
                "The very same fix is being trained by another process. Nothing was begun; wait for it."
            ) from None
        yield
    finally:
        os.close(handle)


def _digest(*what: Any) -> str:
    return blake2b(json.dumps(what, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
