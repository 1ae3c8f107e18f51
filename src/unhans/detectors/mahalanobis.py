"""Mahalanobis distance (Lee et al. 2018): how far it is to the nearest label, in a space that stretches unevenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy.linalg import solve_triangular

from unhans.detectors import Floats, detector, some_of
from unhans.embeddings import states_of
from unhans.errors import BadData
from unhans.model import Classifier
from unhans.scoring import How
from unhans.types import Example

_LEAST = 1e-3  # share of the ball: two examples alone look free of noise, and could not be inverted


@detector(needs={"gradients"}, labels=True, paper="Lee et al. 2018, arXiv:1807.03888")
def mahalanobis(
    classifier: Classifier,
    train: Sequence[Example],
    texts: Sequence[Example],
    rng: np.random.Generator,
    how: How,
    *,
    examples: Annotated[int, "how many training texts to look at; of more, so many are drawn"] = 5000,
) -> Floats:
    """Squared distance to the nearest label's mean, by the one covariance that all labels share.

    The covariance is shrunk as Ledoit and Wolf (2004) say, so that it can be inverted however few examples there are.
    """
    labelled = [example for example in train if example.label is not None]
    if not labelled:
        raise BadData("None of the training examples has a label. Use embedding_distance, which asks for none.")
    some = some_of(labelled, examples, rng)
    known = states_of(classifier, some, how.part(0, 2).tell)
    asked = states_of(classifier, texts, how.part(1, 2).tell)
    labels = np.array([str(example.label) for example in some])
    means = {label: known[labels == label].mean(axis=0) for label in np.unique(labels)}
    root = np.linalg.cholesky(shrunk_covariance(known - np.stack([means[label] for label in labels])))
    nearest = np.full(len(texts), np.inf)
    for mean in means.values():  # one at a time: a table of all texts and labels may be large
        nearest = np.minimum(nearest, (solve_triangular(root, (asked - mean).T, lower=True) ** 2).sum(axis=0))
    return nearest


def shrunk_covariance(table: Floats) -> Floats:
    """Of lines around 0, drawn towards a ball of the same size by as much as Ledoit and Wolf find best.

    Where nothing varies it is the ball of size 1, and the distance is the plain one.
    """
    n, width = table.shape
    plain = table.T @ table / n
    size = float(np.trace(plain)) / width
    if size < 1e-12:
        return np.eye(width)
    spread = float((plain**2).sum()) - width * size**2
    noise = (float((table**2).sum(axis=1) @ (table**2).sum(axis=1)) / n - float((plain**2).sum())) / n
    share = min(1.0, max(_LEAST, noise / spread)) if spread > 1e-12 * size**2 else 1.0
    shrunk: Floats = (1 - share) * plain + share * size * np.eye(width)
    return shrunk
