"""How alike two maps are, and the maps that a planted background should give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadData
from unhans.ranks import spearman

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """A mean over pictures with its standard error (SEM)."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Floats) -> Mean:
        """Of one value a picture."""
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        return cls(float(values.mean()), error)


def heat(maps: Floats) -> Floats:
    """Maps as they are shown: sizes without signs, clipped at the 99th percentile of each map, from 0 to 1."""
    sizes = np.abs(maps)
    tops = np.quantile(sizes, 0.99, axis=(1, 2), keepdims=True)
    tops = np.where(tops > 0, tops, sizes.max(axis=(1, 2), keepdims=True))  # a map of a few pixels
    shown: Floats = np.clip(np.divide(sizes, tops, out=np.zeros_like(sizes), where=tops > 0), 0, 1)
    return shown


def ssim(first: Floats, second: Floats) -> Floats:
    """Structural similarity (Wang et al. 2004) of maps from 0 to 1, one by one: 1 the same, 0 nothing in common."""
    from skimage.metrics import structural_similarity

    _check(first, second)
    pairs = zip(first, second, strict=True)
    return np.array([structural_similarity(one, other, data_range=1.0) for one, other in pairs])


def rank_correlation(first: Floats, second: Floats) -> Floats:
    """Spearman's, between the sizes of the scores of two maps, one by one."""
    _check(first, second)
    pairs = zip(np.abs(first).reshape(len(first), -1), np.abs(second).reshape(len(second), -1), strict=True)
    return np.array([spearman(one, other) for one, other in pairs])


def mass(maps: Floats, masks: Floats) -> Floats:
    """Share of the sizes of each map that is inside its mask."""
    sizes = np.abs(maps)
    whole = sizes.sum(axis=(1, 2))
    inside: Floats = (sizes * masks).sum(axis=(1, 2)) / np.where(whole > 0, whole, 1.0)
    return inside


def ideal(objects: Floats) -> Floats:
    """GT-1: all on the background, nothing on the object. `objects` is 1 where the object is."""
    return 1.0 - objects


def relaxed(objects: Floats, of_background: Floats) -> Floats:
    """GT-2: the ideal, weighted by the map of the background without an object."""
    return ideal(objects) * heat(of_background)


def _check(first: Floats, second: Floats) -> None:
    if first.shape != second.shape or first.ndim != 3:
        raise BadData(f"Maps are compared one by one, and {first.shape} and {second.shape} do not fit together.")
