"""Subsequence: the second text is cut out of the first."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.heuristics import found_at, heuristic


@heuristic(on="pair", paper="McCoy et al. 2019, §2")
def subsequence(words: Sequence[str], pair_words: Sequence[str]) -> bool:
    """The words of the second text stand in the first one after the other; whole words, punctuation aside."""
    return bool(pair_words) and bool(found_at(words, pair_words))
