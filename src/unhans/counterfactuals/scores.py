"""What a flip is like: how natural, how near the original; and which of many to show.

The number of edits and the closeness to the boundary are in the flip itself (`edits`, `margin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadOption
from unhans.language_model import LanguageModel
from unhans.model import Classifier, TransformerClassifier
from unhans.scoring import Progress
from unhans.text import Words, as_variant, visible_form
from unhans.types import Attribution, Counterfactual, Example


def scored(
    flips: Sequence[Counterfactual],
    originals: Mapping[str, Example],
    *,
    language_model: LanguageModel | None = None,
    classifier: Classifier | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[Counterfactual]:
    """The flips with `perplexity` and `similarity`; `originals` are the examples by id.

    The change in log pseudo-perplexity needs a language model: it is positive where the edits made the text less
    likely. Similarity is the cosine of the language model's embeddings of both texts; without one, of the means of a
    transformer classifier's word embeddings; without either there is none. Nor is there for a text without words.
    """
    before, after = _texts(flips, originals)
    how: dict[str, Any] = {"progress": progress, "cancelled": cancelled}
    changes: Sequence[float | None] = [None] * len(flips)
    lines: NDArray[np.float64] | None = None
    if language_model is not None:
        likely = language_model.log_likelihoods([*before, *after], **how)
        pairs = zip(likely[: len(flips)], likely[len(flips) :], strict=True)
        changes = [None if old is None or new is None else old - new for old, new in pairs]
        lines = language_model.embed([*before, *after], cancelled=cancelled)
    elif isinstance(classifier, TransformerClassifier):
        lines = _mean_embeddings(classifier, [*before, *after])
    words = [bool(len(Words(one))) and bool(len(Words(other))) for one, other in zip(before, after, strict=True)]
    nearness = [None] * len(flips) if lines is None else _cosines(lines[: len(flips)], lines[len(flips) :])
    return [
        replace(flip, perplexity=change, similarity=near if both else None)
        for flip, change, near, both in zip(flips, changes, nearness, words, strict=True)
    ]


def diverse(flips: Sequence[Counterfactual], n: int) -> list[Counterfactual]:
    """n flips that differ: the best one, then in turn the one that is least like any chosen already.

    Best is: it flips, with the fewest edits, the smallest rise in perplexity, the surest prediction. Two flips are
    alike as far as they change the same words of a text, and put in the same ones.
    """
    left = sorted(flips, key=_goodness)
    features = {id(flip): _features(flip) for flip in left}
    nearest = {id(flip): float("inf") for flip in left}  # how far each is from those chosen
    chosen: list[Counterfactual] = []
    while left and len(chosen) < n:
        best = max(left, key=lambda flip: nearest[id(flip)])  # of equal ones the first, which is the better
        left = [flip for flip in left if flip is not best]
        chosen.append(best)
        for flip in left:
            nearest[id(flip)] = min(nearest[id(flip)], _distance(features[id(flip)], features[id(best)]))
    return chosen


def surprising(flips: Sequence[Counterfactual], attributions: Iterable[Attribution], n: int) -> list[Counterfactual]:
    """The n flips that explanations do not account for, most surprising first.

    Surprise is what the edits took from the probability of the label before, times the share of all absolute scores
    that is *not* on the words edited. An explanation that is 0 everywhere accounts for nothing. Flips without an
    explanation of their example are left out, as are those that moved nothing.
    """
    known = {one.example: one for one in attributions}
    found = [(surprise(flip, known[flip.example]), flip) for flip in flips if flip.example in known]
    return [flip for much, flip in sorted(found, key=lambda pair: -pair[0]) if much > 0][: max(n, 0)]


def surprise(flip: Counterfactual, attribution: Attribution) -> float:
    """How much a flip moved the prediction by words to which the explanation gives little; 0 to 1."""
    if any(
        edit.position >= len(attribution.words) or attribution.words[edit.position] != edit.old for edit in flip.edits
    ):
        raise BadOption(f"The explanation of {flip.example!r} is not about the words that the flip changes.")
    label = flip.before.labels.index(flip.before.label)
    moved = max(0.0, flip.before.probabilities[label] - flip.after.probabilities[label])
    sizes = np.abs(attribution.scores)
    total = float(sizes.sum())
    share = float(sizes[[edit.position for edit in flip.edits]].sum()) / total if total > 0 else 0.0
    return moved * (1 - share)


def _texts(flips: Sequence[Counterfactual], originals: Mapping[str, Example]) -> tuple[list[Example], list[Example]]:
    """Each flip's text before and after."""
    if missing := [flip.example for flip in flips if flip.example not in originals]:
        raise BadOption(f"There is no original for the flip of {missing[0]!r}.")
    return [originals[flip.example] for flip in flips], [Example(flip.example, flip.text, flip.pair) for flip in flips]


def _mean_embeddings(classifier: TransformerClassifier, texts: Sequence[Example]) -> NDArray[np.float64]:
    """The mean of the embeddings of each text's pieces, as the classifier looks them up; control tokens left out."""
    table = classifier.model.get_input_embeddings().weight.detach().double().cpu().numpy()
    control = set(classifier.tokenizer.all_special_ids) - {classifier.tokenizer.unk_token_id}
    rows = classifier.tokens.rows(as_variant(text) for text in texts)
    pieces = [[token for token in row.ids if token not in control] for row in rows]
    return np.array([table[own].mean(0) if own else np.zeros(table.shape[1]) for own in pieces])


def _cosines(first: NDArray[np.float64], second: NDArray[np.float64]) -> list[float]:
    sizes = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = (first * second).sum(1)
    found = np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)
    return [float(value) for value in np.clip(found, -1.0, 1.0)]


def _goodness(flip: Counterfactual) -> tuple[bool, int, float, float]:
    rise = flip.perplexity if flip.perplexity is not None else 0.0
    return not flip.flips, len(flip.edits), rise, -flip.margin


def _features(flip: Counterfactual) -> frozenset[Any]:
    """The words changed, by their place, and the words put in."""
    places = {(flip.example, edit.position) for edit in flip.edits}
    return frozenset(places | {visible_form(edit.new) for edit in flip.edits})


def _distance(first: frozenset[Any], second: frozenset[Any]) -> float:
    """1 less the share of features in common; two without any are alike."""
    every = first | second
    return 1 - len(first & second) / len(every) if every else 0.0
