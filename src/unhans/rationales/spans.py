"""Contiguous spans: people mark phrases, not single words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from unhans.errors import BadOption
from unhans.rationales import Readable, rationale
from unhans.rationales._choosing import By, Counts, NeverEmpty, Scores, or_best, strengths

Total = tuple[float, int]
"""Sum of the scores, and the number of words with a minus: of equal sums, that of fewer words is better."""


@rationale()
def spans(
    scores: Scores,
    words: Readable,
    *,
    n: Annotated[int, "at most so many spans"] = 3,
    longest: Annotated[int, "words that a span may have at most"] = 5,
    by: By = "text",
    counts: Counts = "for",
    never_empty: NeverEmpty = False,
) -> list[int]:
    """The few spans of neighbouring words with the highest total score.

    Of all ways to choose at most `n` spans that do not overlap, the one with the highest sum; a word against the label
    may stand inside a span if its neighbours are worth it. Two spans may touch. Found exactly, by going through the
    text once for each span and length.
    """
    if n < 1 or longest < 1:
        raise BadOption(f"n and longest must be at least 1, not {n} and {longest}.")
    strength = strengths(scores, counts)
    chosen = [number for passage in words.passages(by) for number in _best(passage, strength, words, n, longest)]
    return or_best(chosen, strength, words, never_empty)


def _best(passage: Sequence[int], strength: Scores, words: Readable, n: int, longest: int) -> list[int]:
    """The words of the best spans of one passage."""
    nothing: Total = (0.0, 0)
    before = [nothing] * (len(passage) + 1)  # the best total of the first words with one span less
    ends: list[list[int]] = []  # per number of spans: how long the span is that ends at each word; 0 for none
    for _ in range(min(n, len(passage))):
        best, lengths = [nothing], [0]
        for end in range(1, len(passage) + 1):
            total, length = best[-1], 0
            for size, own in enumerate(_ending_at(passage, end, strength, words, longest), start=1):
                reached = (before[end - size][0] + own, before[end - size][1] - size)
                if reached > total:
                    total, length = reached, size
            best.append(total)
            lengths.append(length)
        before = best
        ends.append(lengths)
    chosen: list[int] = []
    end = len(passage)
    for lengths in reversed(ends):
        while end and not lengths[end]:
            end -= 1
        chosen += passage[end - lengths[end] : end]
        end -= lengths[end]
    return chosen


def _ending_at(passage: Sequence[int], end: int, strength: Scores, words: Readable, longest: int) -> list[float]:
    """Sums of the spans that end before `end`, the shortest first."""
    sums = [float(strength[passage[end - 1]])]
    while len(sums) < min(longest, end) and words.neighbours(*passage[end - len(sums) - 1 : end - len(sums) + 1]):
        sums.append(sums[-1] + float(strength[passage[end - len(sums) - 1]]))
    return sums
