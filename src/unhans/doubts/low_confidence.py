"""The model's own word: how little it believes the label that it was taught."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unhans.doubts import Floats, Sign, doubt


@doubt(needs={"predict"}, weight=1.0, paper="Northcutt et al. 2021 (self-confidence); arXiv:1911.00068")
def low_confidence(log_probs: Floats, given: NDArray[np.int64]) -> Sign:
    """How improbable the model finds the given label: its loss. A model that learned all by heart doubts nothing."""
    return Sign(-log_probs[np.arange(len(given)), given], np.exp(log_probs))
