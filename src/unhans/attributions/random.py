"""Random scores: what a method has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution
from unhans.text import Words
from unhans.types import Terms


@attribution(needs={"predict"}, terms=Terms("none", "nothing", "one random number for each word"))
def random(words: Sequence[Words], rngs: Sequence[np.random.Generator]) -> list[NDArray[np.float64]]:
    """Normal random numbers: a baseline for comparisons, not an explanation."""
    return [rng.standard_normal(len(one)) for one, rng in zip(words, rngs, strict=True)]
