"""What methods that query share: how a word is erased, and what of the answer is compared."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from unhans.text import Hole

Erase = Annotated[Literal["delete", "mask", "unk", "pad"], "what becomes of an erased word"]
Measured = Annotated[Literal["log_odds", "probability"], "what of the label is compared"]
BASELINES = {
    "delete": "the text without it",
    "mask": "the mask token in its place",
    "unk": "the unknown token in its place",
    "pad": "the padding token in its place",
}
_LEAST = 1e-6  # probabilities are kept this far from 0 and 1, so that log-odds stay finite


def hole_of(erase: str) -> Hole | None:
    """The special token that hides a word; none if it is deleted."""
    return None if erase == "delete" else Hole(erase)


def measured(log_probs: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    """Log-probabilities as probabilities or as finite log-odds."""
    p: NDArray[np.float64] = np.exp(log_probs)
    return p if unit == "probability" else log_odds(p)


def log_odds(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of probabilities, clipped so that they are never infinite."""
    p = np.clip(p, _LEAST, 1 - _LEAST)
    odds: NDArray[np.float64] = np.log(p) - np.log1p(-p)
    return odds
