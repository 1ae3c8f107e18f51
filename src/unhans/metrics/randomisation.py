"""Sanity checks: an explanation of a model must change when the model does (Adebayo et al. 2018).

Weights are drawn anew from the top of the model downwards. A method whose scores stay as they were explains the text,
not the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unhans.bugs._weights import parts_of, randomised
from unhans.errors import BadOption
from unhans.metrics import Explain, mean_over, metric, spearman, subject
from unhans.model import TransformerClassifier
from unhans.scoring import Progress
from unhans.text import Words
from unhans.types import Example

Depth = Annotated[Literal["head", "half", "all"], "how much of the model is drawn anew, from the top down"]
Models = Annotated[int, "random models to average over: one may happen to agree with the true one, or to oppose it"]
Scores = Sequence[NDArray[np.float64]]
_FAMILY = "dependence on the model"
_PAPER = "arXiv:1810.03292"


@dataclass(frozen=True)
class Stage:
    """The scores after all weights from the head down to this part were drawn anew; means over the examples."""

    part: str
    spearman: float  # 1: as before; NaN where no example has an order
    sign_changes: float
    magnitude_change: float


@metric(
    needs={"train"},
    better="lower",
    of="rank correlation of the scores before and after the model is drawn anew",
    family=_FAMILY,
    draws=1,  # random scores are blind to the model, so all of them get the same
    range=(-1.0, 1.0),
    undefined="it takes two words with different scores, before and after",
    paper=_PAPER,
)
def sanity_spearman(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Scores,
    targets: Sequence[int],
    explain: Explain,
    rng: np.random.Generator,
    *,
    depth: Depth = "head",
    models: Models = 3,
) -> NDArray[np.float64]:
    """How far the order of the words survives when the model's weights are drawn anew."""
    draw = partial(_again, classifier, examples, targets, explain, rng, depth)
    return mean_over(np.stack([_compare(spearman, words, scores, draw()) for _ in range(_number(models))]))


@metric(
    needs={"train"},
    better="higher",
    of="share of the words whose score changes its sign when the model is drawn anew",
    family=_FAMILY,
    draws=1,  # random scores are blind to the model, so all of them get the same
    signs=True,
    range=(0.0, 1.0),
    undefined="it takes a word whose score is not 0",
    paper=_PAPER,
)
def sanity_sign_changes(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Scores,
    targets: Sequence[int],
    explain: Explain,
    rng: np.random.Generator,
    *,
    depth: Depth = "head",
    models: Models = 3,
) -> NDArray[np.float64]:
    """Share of the words that speak for the label before and against it after the weights are drawn anew, or back."""
    draw = partial(_again, classifier, examples, targets, explain, rng, depth)
    return mean_over(np.stack([_compare(_sign_changes, words, scores, draw()) for _ in range(_number(models))]))


@metric(
    needs={"train"},
    better="higher",
    of="change of the scores, as a share of their size, when the model is drawn anew",
    family=_FAMILY,
    draws=1,  # random scores are blind to the model, so all of them get the same
    range=(0.0, 1.0),
    undefined="it takes a word whose score is not 0",
    paper=_PAPER,
)
def sanity_magnitude_change(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Scores,
    targets: Sequence[int],
    explain: Explain,
    rng: np.random.Generator,
    *,
    depth: Depth = "head",
    models: Models = 3,
) -> NDArray[np.float64]:
    """How much the scores change when the weights are drawn anew: 0 not at all, 1 as much as they can."""
    draw = partial(_again, classifier, examples, targets, explain, rng, depth)
    return mean_over(np.stack([_compare(_magnitude_change, words, scores, draw()) for _ in range(_number(models))]))


def randomisation_curve(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    *,
    method: str = "leave_one_out",
    method_options: dict[str, Any] | None = None,
    target: str | int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **given: Any,
) -> list[Stage]:
    """The three checks after each part of the model, from the head down to the embeddings, was drawn anew as well.

    `given` is what `attribute` takes besides: background, language_model, cache, cancelled.
    """
    classifier.require({"train"}, "A randomisation curve")
    made = subject(classifier, examples, method, method_options or {}, target=target, seed=seed, **given)
    scores = [np.array(one.scores) for one in made.attributions]
    parts = list(parts_of(classifier.model))
    stages = []
    for depth, part in enumerate(parts, start=1):
        after = made.explain(randomised(classifier, depth, seed), examples, targets=made.targets)
        checks = (spearman, _sign_changes, _magnitude_change)
        stages.append(Stage(part, *(_mean(_compare(check, made.words, scores, after)) for check in checks)))
        if progress is not None:
            progress(depth, len(parts))
    return stages


def _again(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    targets: Sequence[int],
    explain: Explain,
    rng: np.random.Generator,
    depth: str,
) -> Scores:
    """The same labels explained for a model drawn anew to this depth."""
    n = len(parts_of(classifier.model))
    parts = {"head": 1, "half": 1 + math.ceil((n - 2) / 2), "all": n}[depth]
    return explain(randomised(classifier, parts, int(rng.integers(2**31))), examples, targets=targets)


def _number(models: int) -> int:
    if models < 1:
        raise BadOption(f"models must be at least 1, not {models}.")
    return models


def _compare(
    how: Callable[[NDArray[np.float64], NDArray[np.float64]], float],
    words: Sequence[Words],
    before: Scores,
    after: Scores,
) -> NDArray[np.float64]:
    places = [list(one.open) for one in words]
    return np.array([how(old[p], new[p]) for p, old, new in zip(places, before, after, strict=True)])


def _mean(values: NDArray[np.float64]) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _sign_changes(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    said = (old != 0) | (new != 0)
    return float((np.sign(old) != np.sign(new))[said].mean()) if said.any() else float("nan")


def _magnitude_change(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    size = np.abs(old).sum() + np.abs(new).sum()
    return float(np.abs(old - new).sum() / size) if size > 0 else float("nan")
