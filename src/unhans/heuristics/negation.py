"""Negation: somebody says not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from unhans.heuristics import heuristic, word_form, words_of
from unhans.types import Example

_ENGLISH = "no not never none nobody nothing nowhere neither nor cannot without hardly barely scarcely"
_NEGATIONS = frozenset(_ENGLISH.split())
_ENDINGS = ("n't", "n’t")


@heuristic(on="any", paper="Gururangan et al. 2018, §3")
def negation(
    example: Example,
    words: Sequence[str],
    pair_words: Sequence[str],
    *,
    list_of: Annotated[str, "words that negate, separated by blanks; empty: the English ones"] = "",
) -> bool:
    """A single text has a word that negates; of a pair, one text has one and the other has none."""
    known = frozenset(words_of(list_of)) or _NEGATIONS
    endings = () if list_of else _ENDINGS
    first = _negates(words, known, endings)
    return first if example.pair is None else first != _negates(pair_words, known, endings)


def negates(word: str) -> bool:
    """Whether an English word does."""
    return _negates([word_form(word)], _NEGATIONS, _ENDINGS)


def _negates(words: Sequence[str], known: Collection[str], endings: tuple[str, ...]) -> bool:
    return any(word in known or word.endswith(endings) for word in words)
