"""Integrated gradients (Sundararajan et al. 2017)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import BASELINES, Baseline, baseline_embeddings
from unhans.errors import BadOption
from unhans.model import Batch, TransformerClassifier
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1703.01365",
    aliases=("ig",),
    terms=lambda o: Terms("logit", BASELINES[o["baseline"]], "sum over dimensions and pieces"),
)
def integrated_gradients(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    n_steps: Annotated[int, "points on the way from the baseline to the text"] = 20,
    baseline: Baseline = "pad",
) -> Tensor:
    """The gradient averaged on the way from an empty text, times the way.

    Scores add up to the rise of the logit over the empty text's, up to the quadrature's error. Gauss-Legendre points:
    20 order the words as 100 do. One forward and one backward pass for each step.
    """
    if n_steps < 1:
        raise BadOption(f"n_steps must be at least 1, not {n_steps}.")
    start, end = baseline_embeddings(classifier, batch, baseline), classifier.embed(batch)
    places, weights = np.polynomial.legendre.leggauss(n_steps)
    points = [start + float(place + 1) / 2 * (end - start) for place in places]
    found = classifier.gradients(points, batch, targets, create_graph)
    mean = sum(float(weight) / 2 * gradient for weight, gradient in zip(weights, found, strict=True))
    return batch.to_words(((end - start) * mean).sum(-1))
