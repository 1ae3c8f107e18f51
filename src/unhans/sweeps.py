"""Several trainings that need nothing of each other: other seeds, other settings, other starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from unhans.crew import HERE, Crew, crew
from unhans.model import TransformerClassifier
from unhans.scoring import How, Progress
from unhans.training import Schedule, Watch, fit
from unhans.types import Example

Run = tuple[TransformerClassifier, Schedule]
R = TypeVar("R")
_FINE = 1000  # steps that progress within a training is told in


def fit_each(
    runs: Sequence[Run],
    train: Sequence[Example],
    *,
    validation: Sequence[Example] | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[TransformerClassifier]:
    """A classifier for each start and schedule, as `fit` trains it, in their order.

    `on` and `workers` say who trains (`unhans.crew`): here one after the other, or on Ray as many at once as there are
    workers. The weights are the same, but for what another processor rounds otherwise.
    """
    return judge_each(
        runs, train, _itself, validation=validation, on=on, workers=workers, progress=progress, cancelled=cancelled
    )


def judge_each(
    runs: Sequence[Run],
    train: Sequence[Example],
    judge: Callable[[TransformerClassifier], R],
    *,
    validation: Sequence[Example] | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[R]:
    """What `judge` makes of each classifier that `fit_each` would give; whoever trained it asks, and lets it go.

    So one model at a time is held, and no weights travel.
    """
    found: dict[int, R] = {}

    def inside(done: int, of: int) -> None:
        if progress is not None:
            progress(_FINE * len(found) + _FINE * done // max(1, of), _FINE * len(runs))

    with crew(on, workers) as hands:
        for number, made in hands.spread(_Training(train, validation, judge), runs, How(inside, cancelled)):
            found[number] = made
            inside(0, 1)
    return [found[number] for number in range(len(runs))]


def _itself(classifier: TransformerClassifier) -> TransformerClassifier:
    return classifier


@dataclass(frozen=True)
class _Training(Generic[R]):
    """What all trainings have in common."""

    train: Sequence[Example]
    validation: Sequence[Example] | None
    judge: Callable[[TransformerClassifier], R]

    def __call__(self, how: How) -> Callable[[Run], R]:
        def act(run: Run) -> R:
            start, schedule = run
            watch = Watch(progress=how.progress, cancelled=how.cancelled)
            return self.judge(fit(start, self.train, validation=self.validation, schedule=schedule, watch=watch))

        return act
