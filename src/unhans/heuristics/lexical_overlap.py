"""Lexical overlap: the second text says nothing in words of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from unhans.errors import BadOption
from unhans.heuristics import heuristic


@heuristic(on="pair", paper="McCoy et al. 2019, §2")
def lexical_overlap(
    words: Sequence[str],
    pair_words: Sequence[str],
    *,
    share: Annotated[float, "part of the second text's words that must be in the first; above 0, up to 1"] = 1.0,
) -> bool:
    """The words of the second text are all in the first, in whatever order."""
    if not 0 < share <= 1:
        raise BadOption(f"share must lie above 0 and at most at 1, not at {share:g}.")
    known = set(words)
    return bool(pair_words) and sum(word in known for word in pair_words) >= share * len(pair_words)
