"""Contains a word, or a phrase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from unhans.heuristics import found_at, heuristic, words_of


@heuristic(on="any", asked=("word",), paper="Ribeiro et al. 2020, §2")
def contains_word(
    words: Sequence[str],
    pair_words: Sequence[str],
    *,
    word: Annotated[str, "the word or phrase to look for; upper and lower case are the same"] = "",
) -> bool:
    """The word is in the text, or in one text of the pair: as a whole word, not inside another."""
    wanted = words_of(word)
    return bool(wanted) and any(found_at(some, wanted) for some in (words, pair_words))
