"""Constituent: the second text is a whole clause of the first.

McCoy et al. mean a subtree of the first text's parse. No parser is needed here: a clause is taken to begin at the start
of the text, behind punctuation, behind a word that joins clauses ("and", "if", "that" …) or behind an adverb that opens
a clause ("Certainly the actors slept"), and to end at the end of the text, before punctuation, or before such a word.
So it misses clauses that nothing sets off ("The judge knew the actors slept") and subtrees that are no clauses, and it
takes a list's last item for a clause. It is not `subsequence`: words cut out across a boundary do not count.
"""

from __future__ import annotations

from unhans.heuristics import found_at, heuristic, word_form, words_of
from unhans.text import word_spans
from unhans.types import Example

_JOINING = """
and or but nor so yet if because although though while when whenever where whereas before after since unless until that
whether once provided supposing lest as than
"""
_OPENING = "perhaps maybe indeed thus hence therefore however then still also instead meanwhile not"
_JOINS, _OPENS = frozenset(_JOINING.split()), frozenset(_OPENING.split())
_FEWEST = 2  # words of a clause: somebody, and what they do


@heuristic(on="pair", paper="McCoy et al. 2019, §2, approximated")
def constituent(example: Example) -> bool:
    """The second text is a clause of the first: cut out at punctuation or at words that join or open clauses."""
    wanted = words_of(example.pair or "")
    pieces = _pieces(example.text)
    words = [piece for piece in pieces if piece is not None]
    n = len(wanted)
    if not _FEWEST <= n < len(words):
        return False
    starts, ends = _edges(pieces)
    return any(at in starts and at + n in ends for at in found_at(words, wanted))


def _pieces(text: str) -> list[str | None]:
    """The words of a text in their order, and None for each sign between them."""
    return [word_form(text[span.start : span.end]) or None for span in word_spans(text)]


def _edges(pieces: list[str | None]) -> tuple[set[int], set[int]]:
    """Numbers of the words that a clause can begin with, and of those that it can end before."""
    starts, ends, at, fresh = set[int](), set[int](), 0, True
    for piece in pieces:
        if piece is None:
            ends.add(at)
            fresh = True
            continue
        joins = piece in _JOINS
        if joins:
            ends.add(at)
        if fresh:
            starts.add(at)
        fresh = joins or (fresh and (piece in _OPENS or piece.endswith("ly")))
        at += 1
    return starts, ends | {at}
