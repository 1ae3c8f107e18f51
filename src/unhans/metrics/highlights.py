"""Agreement with people: do the highest-scored words lie where people marked them? (DeYoung et al. 2020)

This asks whether an explanation is plausible, not whether it is faithful: a faithful explanation of a model that has
learned a shortcut must disagree with people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.metrics import Found, metric
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Example, Span

OnlyCorrect = Annotated[bool, "leave out examples whose label the model does not predict"]
_FAMILY = "agreement with people"
_PAPER = "10.18653/v1/2020.acl-main.408"
_THRESHOLDS = np.arange(1, 20) / 20
_UNDEFINED = (
    "it takes highlights that cover a word, and with only_correct a given label that the model predicts "
    "(only_correct=False takes the others too)"
)
_ABOUT = (
    "Agreement with people says how plausible an explanation is, not how faithful: who explains a shortcut disagrees."
)

Truths = list[NDArray[np.bool_] | None]


def _chosen(
    classifier: Classifier, examples: Sequence[Example], words: Sequence[Words], only_correct: bool, how: dict[str, Any]
) -> Truths:
    """For each example, which of its readable words people marked; None where the example does not count."""
    best = classifier.log_probs(examples, **how).argmax(axis=1)
    truths: Truths = []
    for example, one, number in zip(examples, words, best, strict=True):
        wrong = only_correct and example.label != classifier.labels[number]
        marked = np.array([any(_overlap(one.spans[n], h) for h in example.highlights or ()) for n in one.open], bool)
        truths.append(None if wrong or not marked.any() else marked)
    return truths


def _overlap(word: Span, highlight: Span) -> bool:
    return word.part == highlight.part and word.start < highlight.end and highlight.start < word.end


def _agreement(
    words: Sequence[Words], scores: Sequence[NDArray[np.float64]], truths: Truths
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], str]:
    """Hits, chosen words and marked words of each example at the threshold with the best mean IoU, and a note."""
    counts = np.full((len(_THRESHOLDS), 3, len(truths)), np.nan)
    for n, (one, line, truth) in enumerate(zip(words, scores, truths, strict=True)):
        if truth is None:
            continue
        own = line[list(one.open)]
        # a text in which nothing speaks for the label has no word chosen, at any threshold
        shares = own / own.max() if own.max() > 0 else np.zeros(len(own))
        for t, threshold in enumerate(_THRESHOLDS):
            taken = shares >= threshold - 1e-9
            counts[t, :, n] = (taken & truth).sum(), taken.sum(), truth.sum()
    if all(truth is None for truth in truths):
        return counts[0, 0], counts[0, 1], counts[0, 2], ""
    hits, taken, marked = counts[:, 0], counts[:, 1], counts[:, 2]
    best = int(np.nanmean(hits / (taken + marked - hits), axis=1).argmax())
    note = (
        f"Words count as chosen from {_THRESHOLDS[best]:.2f} of the highest score on: the threshold with the best IoU "
        f"on these same examples, so the number is optimistic. {_ABOUT}"
    )
    return hits[best], taken[best], marked[best], note


@metric(
    better="higher",
    of="overlap of chosen and marked words",
    family=_FAMILY,
    highlights=True,
    range=(0.0, 1.0),
    undefined=_UNDEFINED,
    paper=_PAPER,
)
def token_iou(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    how: dict[str, Any],
    *,
    only_correct: OnlyCorrect = True,
) -> Found:
    """Words both chosen and marked, as a share of all that are chosen or marked."""
    truths = _chosen(classifier, examples, words, only_correct, how)
    hits, taken, marked, note = _agreement(words, scores, truths)
    return Found(hits / (taken + marked - hits), note)


@metric(
    better="higher",
    of="share of the chosen words that people marked",
    family=_FAMILY,
    highlights=True,
    range=(0.0, 1.0),
    undefined=_UNDEFINED,
    paper=_PAPER,
)
def token_precision(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    how: dict[str, Any],
    *,
    only_correct: OnlyCorrect = True,
) -> Found:
    """Share of the chosen words that people marked; 0 where no word is chosen."""
    truths = _chosen(classifier, examples, words, only_correct, how)
    hits, taken, _, note = _agreement(words, scores, truths)
    return Found(hits / np.maximum(taken, 1), note)


@metric(
    better="higher",
    of="share of the marked words that are chosen",
    family=_FAMILY,
    highlights=True,
    range=(0.0, 1.0),
    undefined=_UNDEFINED,
    paper=_PAPER,
)
def token_recall(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    how: dict[str, Any],
    *,
    only_correct: OnlyCorrect = True,
) -> Found:
    """Share of the words that people marked that are chosen."""
    truths = _chosen(classifier, examples, words, only_correct, how)
    hits, _, marked, note = _agreement(words, scores, truths)
    return Found(hits / marked, note)


@metric(
    better="higher",
    of="harmonic mean of precision and recall against the marked words",
    family=_FAMILY,
    highlights=True,
    range=(0.0, 1.0),
    undefined=_UNDEFINED,
    paper=_PAPER,
)
def token_f1(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    how: dict[str, Any],
    *,
    only_correct: OnlyCorrect = True,
) -> Found:
    """Harmonic mean of token precision and recall in each example."""
    truths = _chosen(classifier, examples, words, only_correct, how)
    hits, taken, marked, note = _agreement(words, scores, truths)
    return Found(2 * hits / (taken + marked), note)


@metric(
    better="higher",
    of="average precision of the scores against the marked words",
    family=_FAMILY,
    highlights=True,
    range=(0.0, 1.0),
    undefined=_UNDEFINED,
    paper=_PAPER,
    aliases=("auprc",),
)
def auprc_plausibility(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    how: dict[str, Any],
    *,
    only_correct: OnlyCorrect = True,
) -> Found:
    """How high the marked words stand in the order of the scores, without any threshold."""
    truths = _chosen(classifier, examples, words, only_correct, how)
    values = [
        np.nan if truth is None else _average_precision(line[list(one.open)], truth)
        for one, line, truth in zip(words, scores, truths, strict=True)
    ]
    return Found(np.array(values), _ABOUT)


def _average_precision(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Sum of precision × gain in recall over the distinct scores; words with equal scores are taken together."""
    total, before = 0.0, 0
    for threshold in np.unique(scores)[::-1]:
        taken = scores >= threshold
        hits = int((taken & truth).sum())
        total += hits / int(taken.sum()) * (hits - before) / int(truth.sum())
        before = hits
    return total
