"""LIME (Ribeiro et al. 2016): a linear model that imitates the classifier around one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from unhans.attributions import Estimate, attribution
from unhans.attributions._erasing import BASELINES, Erase, Measured, hole_of
from unhans.attributions._surrogates import (
    Draw,
    Fit,
    Masks,
    NumSamples,
    Tolerance,
    Values,
    estimates,
    paired_masks,
    plain_masks,
)
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Terms

KernelWidth = Annotated[float, "how far from the text a sample may be and still count: small is local"]
Sampling = Annotated[
    Literal["paired", "plain"], "whether every sample comes with its complement, or is drawn by itself as in LIME"
]


@attribution(
    needs={"predict"},
    paper="arXiv:1602.04938",
    at_once=8,
    terms=lambda o: Terms(o["unit"], BASELINES[o["erase"]], "slopes of a linear model fitted to samples"),
)
def lime(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    how: dict[str, Any],
    *,
    num_samples: NumSamples = 1000,
    tolerance: Tolerance = 0.0,
    kernel_width: KernelWidth = 25.0,
    erase: Erase = "delete",
    unit: Measured = "probability",
    sampling: Sampling = "paired",
) -> list[Estimate]:
    """What each word adds in a linear model of the label's probability near the text.

    The linear model is fitted to texts from which words are missing at random, near ones counting more. Sizes, kernel,
    ridge penalty and intercept are those of the `lime` package with `bow=False` (which writes UNKWORDZ where `erase` is
    ours to choose), so every occurrence of a word has its own score. `paired` estimates the same from better spread
    samples: sizes are taken in turn, and what a size counts is what LIME expects of it. The penalty is that of
    `num_samples` even if sampling stops early.
    """
    hole = hole_of(erase)
    draw, fit = slopes(sampling, kernel_width, num_samples)
    return estimates(
        classifier,
        words,
        targets,
        rngs,
        how,
        draw=draw,
        change=lambda asked: [one.without(hidden, hole) for one, hidden in asked],
        fit=fit,
        unit=unit,
        num_samples=num_samples,
        tolerance=tolerance,
    )


def slopes(sampling: str, kernel_width: float, num_samples: int) -> tuple[Draw, Fit]:
    """How LIME draws and fits, whatever becomes of the words that are taken out."""
    if kernel_width <= 0:
        raise BadOption(f"kernel_width must be more than 0, not {kernel_width}.")
    weigh, draw = (_by_size, paired_masks) if sampling == "paired" else (_as_drawn, plain_masks)

    def fit(masks: Masks, values: Values, counts: Values) -> Values:
        return ridge(masks, values, kernel(masks, kernel_width) * weigh(masks, num_samples) * counts)

    return draw, fit


def kernel(masks: Masks, width: float) -> Values:
    """What samples count: LIME's kernel on their cosine distance from the whole text, in hundredths."""
    distances = 100 * (1 - np.sqrt(masks.mean(axis=1)))
    counts: Values = np.sqrt(np.exp(-(distances**2) / width**2))
    return counts


def ridge(masks: Masks, values: Values, weights: Values) -> Values:
    """Slopes of the weighted linear model with a free intercept and a penalty of 1, as scikit-learn's `Ridge`."""
    share = weights / weights.sum()
    centred, rest = masks - share @ masks, values - share @ values
    weighted = centred.T * weights
    slopes: Values = np.linalg.solve(weighted @ centred + np.eye(masks.shape[1]), weighted @ rest)
    return slopes


def _as_drawn(masks: Masks, total: int) -> Values:
    """Samples count alike; fewer of them as much as all, against the penalty."""
    return np.full(len(masks), total / len(masks))


def _by_size(masks: Masks, total: int) -> Values:
    """Sizes count as often as LIME expects to draw them, however many samples of that size there are."""
    n, sizes = masks.shape[1], masks.sum(axis=1)
    expected = (total - 1) / n / np.bincount(sizes, minlength=n + 1)[sizes]
    return np.where(sizes == n, 1.0, expected)  # the whole text is in LIME's samples once
