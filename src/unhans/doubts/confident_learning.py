"""Confident learning (Northcutt et al. 2021): what heads say that never saw the example."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from unhans.doubts import Floats, How, Sign, doubt
from unhans.doubts._heads import out_of_fold
from unhans.errors import BadOption
from unhans.model import Classifier


@doubt(needs={"gradients"}, weight=2.0, paper="Northcutt et al. 2021, arXiv:1911.00068")
def confident_learning(  # noqa: PLR0917 - what it asks for, by name
    classifier: Classifier,
    embeddings: Floats,
    given: NDArray[np.int64],
    texts: NDArray[np.int64],
    rng: np.random.Generator,
    how: How,
    *,
    folds: Annotated[int, "parts of the data; a head is trained for each on the others"] = 5,
    penalty: Annotated[float, "how strongly large weights of a head are held down"] = 10.0,
) -> Sign:
    """How much surer than usual of another label heads are that were trained on the other folds.

    Each label's bar is how probable it is on average where it is given: of a label that is rarely sure less is asked.
    The sign is the best other label's height above its bar, less that of the given label above its own.
    """
    if folds < 2 or penalty <= 0:
        raise BadOption("folds must be at least 2, and penalty more than 0.")
    says = out_of_fold(embeddings, given, texts, len(classifier.labels), rng, how, folds=folds, penalty=penalty)
    return Sign(_heights(says, given), says)


def _heights(says: Floats, given: NDArray[np.int64]) -> Floats:
    bars = np.array(
        [says[given == label, label].mean() if (given == label).any() else 1.0 for label in range(says.shape[1])]
    )
    above = says - bars
    rows = np.arange(len(given))
    own = above[rows, given]
    above[rows, given] = -np.inf
    best: Floats = above.max(axis=1) - own
    return best
