"""Shares, their differences and what chance makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unhans.types import Evidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_Z = 1.959963984540054  # 95 %


def wilson(hits: float, n: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927); all there is to say of no texts is 0 to 1."""
    if n == 0:
        return 0.0, 1.0
    share, square = hits / n, _Z**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * float(np.sqrt(share * (1 - share) / n + square / (4 * n * n)))
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(hits: float, n: int, others: float, m: int) -> tuple[float, float]:
    """95 % interval of the first share less the second (Newcombe 1998, method 10)."""
    first, second = hits / n, others / m
    (low, high), (least, most) = wilson(hits, n), wilson(others, m)
    down = float(np.sqrt((first - low) ** 2 + (most - second) ** 2))
    up = float(np.sqrt((high - first) ** 2 + (second - least) ** 2))
    return first - second - down, first - second + up


def product(hits: int, n: int, others: int, m: int) -> tuple[float, float]:
    """95 % interval of the product of two shares (Zou and Donner 2008, as Newcombe's of a difference)."""
    if n == 0 or m == 0:
        return 0.0, 1.0
    first, second = hits / n, others / m
    (low, high), (least, most) = wilson(hits, n), wilson(others, m)
    down = float(np.hypot(second * (first - low), first * (second - least)))
    up = float(np.hypot(second * (high - first), first * (most - second)))
    return max(0.0, first * second - down), min(1.0, first * second + up)


def fewer(hits: int, n: int, others: int, m: int) -> float:
    """Fisher's exact p that the first share is as low or lower by chance."""
    return float(stats.hypergeom.cdf(hits, n + m, hits + others, n))


def more(hits: int, n: int, others: int, m: int) -> float:
    """Fisher's exact p that the first share is as high or higher by chance."""
    return float(stats.hypergeom.sf(hits - 1, n + m, hits + others, n))


def holm(chances: Sequence[float]) -> list[float]:
    """The same p after Holm's correction: what is below 0.05 is so however many were looked at."""
    order = np.argsort(chances)
    worst, found = 0.0, [1.0] * len(chances)
    for place, number in enumerate(order):
        worst = max(worst, min(1.0, (len(chances) - place) * chances[number]))
        found[int(number)] = worst
    return found


def share(what: str, flags: Flags | Sequence[bool], usual: float | None = None) -> Evidence:
    """The share of texts for which something holds, with its interval."""
    marks = np.asarray(flags, bool)
    n, hits = len(marks), int(marks.sum())
    low, high = wilson(hits, n)
    return Evidence(what, hits / n if n else 0.0, usual, low, high, n)


def percent(value: float) -> str:
    """A share as people say it."""
    return f"{100 * value:.1f} %" if value < 0.1 else f"{100 * value:.0f} %"
