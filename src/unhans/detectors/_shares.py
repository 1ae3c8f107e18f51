"""From numbers to a share: how many texts are stranger than usual ones nearly ever are?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from unhans.errors import BadData, BadOption

Floats = NDArray[np.float64]
_DOUBT = 0.025  # of each of the two intervals that make one; together at most twice as much


def strange_share(
    usual_scores: Sequence[float] | Floats, scores: Sequence[float] | Floats, level: float = 0.95
) -> tuple[float, float, float]:
    """Share of the scores that are higher than this share of the usual ones, with the ends of its 95 % interval.

    Usual texts themselves come to `1 - level`, so only what is well above that is a finding. The usual scores must be
    of texts that were not trained on: a model is less surprised by what it has learned. The interval holds for any
    distribution: an exact one for the share (Clopper and Pearson), at both ends of an exact one for the bar (order
    statistics); with few usual texts the bar is so uncertain that the lower end is 0.
    """
    usual, asked = np.sort(np.asarray(usual_scores, np.float64)), np.asarray(scores, np.float64)
    if not len(usual) or not len(asked):
        raise BadData("A share of strange texts needs scores of usual texts and of those in question.")
    if np.isnan(usual).any() or np.isnan(asked).any():
        raise BadData("Some of the scores are not numbers.")
    if not 0 < level < 1:
        raise BadOption(f"level must be between 0 and 1, not {level}.")
    n = len(usual)
    share = _beyond(asked, _bar(usual, int(np.ceil(level * n - 1e-9))))
    lower, upper = (int(rank) for rank in binom.ppf((_DOUBT / 2, 1 - _DOUBT / 2), n, level))
    highest, lowest = _beyond(asked, _bar(usual, lower)), _beyond(asked, _bar(usual, upper + 1))
    return share, _ends(lowest, len(asked))[0], _ends(highest, len(asked))[1]


def fewest_usual(level: float = 0.95) -> int:
    """From how many usual scores on a share of strange ones can be told from none: with fewer its lower end is 0.

    Only then is it improbable enough that the bar lies above all usual scores, which is `level` to the power of n.
    """
    return math.ceil(math.log(_DOUBT / 2) / math.log(level))


def _bar(usual: Floats, rank: int) -> float:
    """The usual score of this rank, from 1; below all and above all there is no bar."""
    if rank < 1:
        return -np.inf
    return float(usual[rank - 1]) if rank <= len(usual) else np.inf


def _beyond(scores: Floats, bar: float) -> float:
    return float((scores > bar).mean())


def _ends(share: float, n: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of n."""
    k = round(share * n)
    low = float(beta.ppf(_DOUBT / 2, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1 - _DOUBT / 2, k + 1, n - k)) if k < n else 1.0
    return low, high
