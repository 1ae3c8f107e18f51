"""What texts like it are called: nearest neighbours in the model's own space."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from unhans.doubts import Floats, How, Sign, doubt
from unhans.errors import BadOption
from unhans.model import Classifier

_AT_ONCE = 512  # rows of the table of similarities that are held at the same time


@doubt(needs={"gradients"}, weight=0.2, paper="Zhu et al. 2022, arXiv:2110.06283")
def neighbour_disagreement(
    classifier: Classifier,
    embeddings: Floats,
    given: NDArray[np.int64],
    texts: NDArray[np.int64],
    how: How,
    *,
    k: Annotated[int, "how many neighbours are asked"] = 50,
) -> Sign:
    """The share of the nearest texts that have another label, nearer ones counting more.

    Every text has one vote, however often it is in the data, and none on itself: copies are not a second opinion, and
    what their labels say is the sign `contradiction`.
    """
    if k < 1:
        raise BadOption(f"k must be at least 1, not {k}.")
    _, first = np.unique(texts, return_index=True)
    votes = np.zeros((len(first), len(classifier.labels)))
    np.add.at(votes, (texts, given), 1.0)
    votes /= votes.sum(axis=1, keepdims=True)
    says = _asked(embeddings[first], votes, min(k, len(first) - 1), how)[texts]
    return Sign(1.0 - says[np.arange(len(given)), given], says)


def _asked(points: Floats, votes: Floats, k: int, how: How) -> Floats:
    """What the k nearest of each text say, texts × labels, weighted by how near they are; a text alone says nothing."""
    n, labels = votes.shape
    says = np.full((n, labels), 1 / labels)
    if k < 1:
        return says
    for start in range(0, n, _AT_ONCE):
        rows = np.arange(start, min(n, start + _AT_ONCE))
        near = points[rows] @ points.T
        near[np.arange(len(rows)), rows] = -np.inf
        chosen = np.argpartition(-near, k - 1, axis=1)[:, :k]
        weights = np.maximum(np.take_along_axis(near, chosen, axis=1), 1e-6)  # far ones count little, but some
        says[rows] = np.einsum("rk,rkl->rl", weights, votes[chosen]) / weights.sum(axis=1, keepdims=True)
        how.tell(int(rows[-1]) + 1, n)
    return says
