"""All words whose score is high enough."""

from __future__ import annotations

from typing import Annotated, Literal

from unhans.errors import BadOption
from unhans.rationales import Readable, rationale
from unhans.rationales._choosing import By, Counts, NeverEmpty, Scores, or_best, strengths


@rationale()
def threshold(
    scores: Scores,
    words: Readable,
    *,
    at: Annotated[float, "the lowest score that is enough"] = 0.5,
    of: Annotated[Literal["largest", "absolute"], "at is a share of the largest score, or a score itself"] = "largest",
    by: By = "text",
    counts: Counts = "for",
    never_empty: NeverEmpty = False,
) -> list[int]:
    """All words with a score above 0 that reaches a share of the largest one, or a fixed value."""
    if at <= 0 or (of == "largest" and at > 1):
        limit = " and at most 1, a share of the largest score" if of == "largest" else ""
        raise BadOption(f"at must be above 0{limit}, not {at}.")
    strength = strengths(scores, counts)
    chosen: list[int] = []
    for passage in words.passages(by):
        enough = at * max(strength[n] for n in passage) if of == "largest" else at
        chosen += [n for n in passage if strength[n] > 0 and strength[n] >= enough]
    return or_best(chosen, strength, words, never_empty)
