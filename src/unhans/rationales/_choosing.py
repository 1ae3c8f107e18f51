"""What all members share: which scores count, and what is done where none of them does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from unhans.rationales import Readable

By = Annotated[Literal["text", "sentence"], "choose from the whole text, or from each sentence on its own"]
Counts = Annotated[Literal["for", "absolute"], "count only words that speak for the label, or also those against it"]
NeverEmpty = Annotated[bool, "where no word counts, choose the one with the highest score instead of none"]
Scores = NDArray[np.float64]


def strengths(scores: Scores, counts: str) -> Scores:
    """What is compared: scores as they are, or without their sign. Only words with more than 0 can be chosen."""
    return np.abs(scores) if counts == "absolute" else scores


def or_best(chosen: Iterable[int], strength: Scores, words: Readable, never_empty: bool) -> list[int]:
    """These words in reading order; or, if there are none and some are wanted, the strongest that was read."""
    found = sorted(chosen)
    if found or not never_empty:
        return found
    return [max(words.open, key=lambda n: strength[n])]
