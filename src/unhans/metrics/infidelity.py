"""Do the scores add up to what the model does when many words go at once? (Yeh et al. 2019)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.attributions._erasing import log_odds
from unhans.errors import BadOption
from unhans.metrics import metric
from unhans.metrics._erasing import BY_DELETION, probabilities
from unhans.model import Classifier
from unhans.text import Words


@metric(
    better="lower",
    of="squared error of the scores as a forecast of the fall in log-odds when random words go",
    family="erasure by deletion",
    favours=f"{BY_DELETION}; most of all those that fit a sum to such texts, as LIME and kernel_shap do",
    range=(0.0, float("inf")),
    undefined="it takes two words, so that some can go and some stay",
    paper="arXiv:1901.09392",
)
def infidelity(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    how: dict[str, Any],
    *,
    samples: Annotated[int, "random sets of words to delete in each text"] = 50,
) -> NDArray[np.float64]:
    """How badly the summed scores of random words forecast the fall in log-odds when those words are deleted.

    Scores are first brought to the best scale for each text, so methods in different units compare; the scale is never
    negative, or scores with the wrong sign would do as well as right ones.
    """
    if samples < 1:
        raise BadOption(f"samples must be at least 1, not {samples}.")
    sets = [_draw(one, rng, samples) for one, rng in zip(words, rngs, strict=True)]
    lines = [
        [one.variant({}), *(one.without(np.flatnonzero(row).tolist()) for row in drawn)]
        for one, drawn in zip(words, sets, strict=True)
    ]
    values = []
    for p, drawn, line in zip(probabilities(classifier, lines, targets, how), sets, scores, strict=True):
        if not len(drawn):
            values.append(np.nan)
            continue
        odds = log_odds(p)
        falls, told = odds[0] - odds[1:], drawn @ line
        scale = max(0.0, float(told @ falls) / float(told @ told)) if told.any() else 0.0
        values.append(float(np.mean((scale * told - falls) ** 2)))
    return np.array(values)


def _draw(words: Words, rng: np.random.Generator, samples: int) -> NDArray[np.float64]:
    """Sets of words as rows of 0 and 1: of every size alike, never none and never all; no row if that cannot be."""
    n = len(words.open)
    drawn = np.zeros((samples if n > 1 else 0, len(words)))
    for row in drawn:
        row[rng.choice(words.open, size=rng.integers(1, n), replace=False)] = 1.0
    return drawn
