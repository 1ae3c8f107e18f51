"""The same text under different labels: one of them is wrong, or the text is not enough to tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unhans.doubts import Sign, doubt


@doubt(needs={"predict"}, weight=1.0, paper="–")
def contradiction(given: NDArray[np.int64], texts: NDArray[np.int64]) -> Sign:
    """The share of the examples with the very same text that have another label; 0 for a text that is there once."""
    labels = np.zeros((int(texts.max()) + 1, int(given.max()) + 1))
    np.add.at(labels, (texts, given), 1.0)
    return Sign(1.0 - labels[texts, given] / labels[texts].sum(axis=1))
