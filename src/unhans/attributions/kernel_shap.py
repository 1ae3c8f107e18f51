"""Kernel SHAP (Lundberg & Lee 2017), sampled by leverage (Musco & Witter 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unhans.attributions import Estimate, attribution
from unhans.attributions._erasing import BASELINES, Erase, Measured, hole_of
from unhans.attributions._surrogates import Masks, NumSamples, Tolerance, Values, estimates, paired_masks
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Terms

_MOST_SHRINKAGE = 0.3  # found by trial on sentences of 17 to 26 words and 32 to 1000 samples; 0.2 to 0.5 differ little


@attribution(
    needs={"predict"},
    paper="arXiv:2410.01917",
    aliases=("shap",),
    at_once=8,
    terms=lambda o: Terms(o["unit"], BASELINES[o["erase"]], "mean over all orders of the words, from samples"),
)
def kernel_shap(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    how: dict[str, Any],
    *,
    num_samples: NumSamples = 1000,
    tolerance: Tolerance = 0.0,
    erase: Erase = "delete",
    unit: Measured = "log_odds",
) -> list[Estimate]:
    """Shapley values: what a word adds to the label's log-odds, averaged over all sets of other words.

    Scores sum to the difference between the whole text and none of it. Exact for texts of so few words that all their
    subsets fit into `num_samples`; otherwise a least-squares fit to pairs of complementary samples of every size. Give
    ten samples for each word or more; `stability` shows if they were too few.
    """
    hole = hole_of(erase)
    return estimates(
        classifier,
        words,
        targets,
        rngs,
        how,
        draw=paired_masks,
        change=lambda asked: [one.without(hidden, hole) for one, hidden in asked],
        fit=shapley,
        unit=unit,
        num_samples=num_samples,
        tolerance=tolerance,
    )


def shapley(masks: Masks, values: Values, counts: Values) -> Values:
    """The Shapley values that fit the samples best, among those with the right sum.

    Needs the whole and the empty text among the samples. Every size counts by Shapley's kernel, however many samples of
    that size there are; within it each by `counts`.
    """
    n, sizes = masks.shape[1], masks.sum(axis=1)
    nothing = values[sizes == 0][0]
    total = values[sizes == n][0] - nothing
    if n == 1:
        return np.array([total])
    inner = (sizes > 0) & (sizes < n)
    some, size, often = masks[inner], sizes[inner], counts[inner]
    roots = np.sqrt(often / (size * (n - size) * np.bincount(size, minlength=n)[size]))
    design = roots[:, None] * (some - size[:, None] / n)  # an equal share of the total for each word, and deviations
    rest = roots * (values[inner] - nothing - size * total / n)
    # With all masks, design.T @ design is `level` times a projection. With hardly more pairs than words it is far from
    # that by chance, and its inverse would blow up the noise: then it is moved towards what it should be. From two
    # pairs a word on it is left alone, so that words that only add up get exactly what they add.
    gram = design.T @ design
    level = np.trace(gram) / (n - 1)
    pairs = often.sum() ** 2 / (often**2).sum() / 2
    trust = 1 - min(_MOST_SHRINKAGE, max(0.0, 2 * n / pairs - 1))
    expected = level * (np.eye(n) - 1 / n)
    only_deviations = level / n  # adding to all words alike is left out by the design; this keeps it solvable
    moved = trust * gram + (1 - trust) * expected + only_deviations
    scores: Values = total / n + np.linalg.solve(moved, design.T @ rest)
    return scores
