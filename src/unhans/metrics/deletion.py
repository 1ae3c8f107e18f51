"""Words leave or enter one by one in the order of their scores (Petsiuk et al. 2018; on texts Pham et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.language_model import LanguageModel
from unhans.metrics import Found, metric
from unhans.metrics._erasing import (
    BY_DELETION,
    BY_LANGUAGE_MODEL,
    NO_WORDS,
    Share,
    area,
    filled,
    probabilities,
    top,
)
from unhans.model import Classifier
from unhans.text import Words

_LEAST = 2  # words: a curve of one step says little about an order


@metric(
    better="lower",
    of="the label's probability while the highest-scored words go",
    family="erasure by deletion",
    favours=BY_DELETION,
    range=(0.0, 1.0),
    undefined=NO_WORDS,
    paper="arXiv:1806.07421",
    aliases=("deletion",),
)
def deletion_auc(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    share: Share = 0.2,
) -> NDArray[np.float64]:
    """How high the label's probability stays while the highest-scored words are deleted one by one.

    The curve begins with the untouched text; its area is the mean height, so texts of any length compare.
    """
    orders = [top(one, line, share, _LEAST) for one, line in zip(words, scores, strict=True)]
    lines = [
        [one.without(order[:step]) for step in range(len(order) + 1)] for one, order in zip(words, orders, strict=True)
    ]
    return np.array([area(curve) for curve in probabilities(classifier, lines, targets, how)])


@metric(
    better="higher",
    of="the label's probability while the highest-scored words enter an empty text",
    family="erasure by deletion",
    favours=BY_DELETION,
    range=(0.0, 1.0),
    undefined=NO_WORDS,
    paper="arXiv:1806.07421",
    aliases=("insertion",),
)
def insertion_auc(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    share: Share = 1.0,
) -> NDArray[np.float64]:
    """How fast the label's probability rises while the highest-scored words enter an empty text one by one."""
    orders = [top(one, line, share, _LEAST) for one, line in zip(words, scores, strict=True)]
    lines = [
        [one.without(set(one.open) - set(order[:step])) for step in range(len(order) + 1)]
        for one, order in zip(words, orders, strict=True)
    ]
    return np.array([area(curve) for curve in probabilities(classifier, lines, targets, how)])


@metric(
    better="lower",
    of="the label's probability while the highest-scored words are replaced by likely ones",
    family="erasure by language model",
    favours=BY_LANGUAGE_MODEL,
    range=(0.0, 1.0),
    undefined="the text has no words, or the language model has no other word to offer for one of them",
    paper="10.18653/v1/2022.acl-short.35",
    aliases=("deletion_mlm", "deletion_bert"),
)
def deletion_mlm_auc(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    language_model: LanguageModel,
    how: dict[str, Any],
    *,
    share: Share = 0.2,
) -> Found:
    """How high the label's probability stays while the highest-scored words are replaced by likely ones.

    The text stays natural, and what took a word's place may say the same: a predictable word can matter and yet seem
    not to.
    """
    orders = [top(one, line, share, _LEAST) for one, line in zip(words, scores, strict=True)]
    lines = filled(language_model, words, orders, **how)
    whole = [len(line) == len(order) + 1 for line, order in zip(lines, orders, strict=True)]
    curves = probabilities(classifier, lines, targets, how)
    values = np.array([area(curve) if every else np.nan for curve, every in zip(curves, whole, strict=True)])
    return Found(
        values, "A word that could be guessed from its context counts little here, whatever the model made of it."
    )
