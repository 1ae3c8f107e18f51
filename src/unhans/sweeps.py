"""Several trainings that need nothing of each other: other seeds, other settings, other starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unhans.crew import HERE, Crew, crew
from unhans.model import TransformerClassifier
from unhans.scoring import How, Progress
from unhans.training import Schedule, Watch, fit
from unhans.types import Example

Run = tuple[TransformerClassifier, Schedule]
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
    found: dict[int, TransformerClassifier] = {}

    def inside(done: int, of: int) -> None:
        if progress is not None:
            progress(_FINE * len(found) + _FINE * done // max(1, of), _FINE * len(runs))

    with crew(on, workers) as hands:
        for number, made in hands.spread(_Training(train, validation), runs, How(inside, cancelled)):
            found[number] = made
            inside(0, 1)
    return [found[number] for number in range(len(runs))]


@dataclass(frozen=True)
class _Training:
    """What all trainings have in common."""

    train: Sequence[Example]
    validation: Sequence[Example] | None

    def __call__(self, how: How) -> Callable[[Run], TransformerClassifier]:
        def act(run: Run) -> TransformerClassifier:
            start, schedule = run
            watch = Watch(progress=how.progress, cancelled=how.cancelled)
            return fit(start, self.train, validation=self.validation, schedule=schedule, watch=watch)

        return act
