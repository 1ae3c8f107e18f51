"""How alike two lines of numbers order the same things."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def spearman(first: Values, second: Values) -> float:
    """How alike two lines order their places: 1 alike, -1 the other way round; lines without an order are alike."""
    from scipy.stats import rankdata  # a second to import, and who only explains has no use for it

    ranks = [rankdata(line) - (len(line) + 1) / 2 for line in (first, second)]
    norm = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    if norm == 0:
        return float((ranks[0] == ranks[1]).all())
    return float(ranks[0] @ ranks[1]) / norm
