"""The highest-scored words, as many as a share of the text (DeYoung et al. 2020 call it a discretised rationale)."""

from __future__ import annotations

import math
from typing import Annotated

from unhans.errors import BadOption
from unhans.rationales import Readable, rationale
from unhans.rationales._choosing import By, Counts, NeverEmpty, Scores, or_best, strengths


@rationale(paper="10.18653/v1/2020.acl-main.408")
def top_share(
    scores: Scores,
    words: Readable,
    *,
    share: Annotated[float, "part of the words that were read, at least one word"] = 0.2,
    by: By = "text",
    counts: Counts = "for",
    never_empty: NeverEmpty = False,
) -> list[int]:
    """The highest-scored share of the words; fewer where fewer speak for the label."""
    if not 0 < share <= 1:
        raise BadOption(f"share must be above 0 and at most 1, not {share}.")
    strength = strengths(scores, counts)
    chosen: list[int] = []
    for passage in words.passages(by):
        count = max(1, math.ceil(round(share * len(passage), 9)))  # 0.28 × 25 is 7.000000000000001
        best = sorted(passage, key=lambda n: -strength[n])[:count]  # of equals, the first in the text
        chosen += [n for n in best if strength[n] > 0]
    return or_best(chosen, strength, words, never_empty)
