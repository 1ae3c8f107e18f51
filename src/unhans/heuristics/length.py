"""Length: short texts, or long ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from unhans.errors import BadOption
from unhans.heuristics import heuristic


@heuristic(on="any", asked=("least", "most"), paper="Ribeiro et al. 2020, §2")
def length(
    words: Sequence[str],
    pair_words: Sequence[str],
    *,
    least: Annotated[int, "words that the text has at least"] = 0,
    most: Annotated[int, "words that it has at most; 0: no limit"] = 0,
) -> bool:
    """The text, or both texts of the pair together, have so many words."""
    if least < 0 or most < 0 or (most and most < least):
        raise BadOption(f"least and most are 0 or more, and most is not below least; not {least} and {most}.")
    n = len(words) + len(pair_words)
    return n >= least and (not most or n <= most)
