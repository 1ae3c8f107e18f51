"""Reverse order: the second text has the first one's words, turned round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from unhans.errors import BadOption
from unhans.heuristics import heuristic

_ENGLISH = """
a an the this that these those of to in on at by for from with as and or but is are was were be been being am do does
did have has had will would can could shall should may might must it its he she they we you i his her their our your my
him them us me who which what there
"""
_SMALL = frozenset(_ENGLISH.split())  # words whose place says nothing: articles, prepositions, pronouns, auxiliaries


@heuristic(on="pair", paper="Zylberajch et al. 2021, Table 2")
def reverse_order(
    words: Sequence[str],
    pair_words: Sequence[str],
    *,
    share: Annotated[float, "part of the second text's words that must be in the first; 0 to 1"] = 0.8,
) -> bool:
    """Most words of the second text are in the first, and two of them stand the other way round."""
    if not 0 <= share <= 1:
        raise BadOption(f"share must lie between 0 and 1, not at {share:g}.")
    known = set(words)
    if not pair_words or sum(word in known for word in pair_words) < share * len(pair_words):
        return False
    # the places of words that stand once in both texts and say something, in the order of the second text
    here, there = Counter(words), Counter(pair_words)
    place = {word: at for at, word in enumerate(words)}
    places = [place[word] for word in pair_words if word not in _SMALL and here[word] == there[word] == 1]
    return places != sorted(places)
