"""The numbers of the lab: pure functions of scores, positions and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unhans.text import visible_form

Values = NDArray[np.float64]
_TOP = 0.2  # part of the words of a text that count as its strongest


def cue_mass(scores: Values, positions: Sequence[int]) -> float:
    """GT-1: the cue's share of the absolute scores of a text; NaN where all scores are 0."""
    size = np.abs(scores)
    return float(size[list(positions)].sum() / size.sum()) if size.sum() > 0 else float("nan")


def cue_likeness(scores: Values, positions: Sequence[int], alone: Values) -> float:
    """GT-2: cosine of a text's absolute scores and a mask that is 0 off the cue and, on it, the cue alone's scores.

    `alone` are the scores of the cue's words in a text of nothing else, one for each position. NaN where they or the
    scores are all 0.
    """
    mask = np.zeros(len(scores))
    mask[list(positions)] = np.abs(alone)
    lengths = np.linalg.norm(scores) * np.linalg.norm(mask)
    return float(np.abs(scores) @ mask / lengths) if lengths > 0 else float("nan")


def top_overlap(first: Values, second: Values) -> float:
    """Share of the strongest fifth of the words (at least one) of one line of scores that is in the other's, too.

    Words without a score are not strong, however few others there are: of two lines the longer list counts.
    """
    if not len(first) or not np.abs(first).any() or not np.abs(second).any():
        return float("nan")
    k = max(1, round(_TOP * len(first)))
    tops = [{n for n in np.argsort(-np.abs(line), kind="stable")[:k].tolist() if line[n]} for line in (first, second)]
    return len(tops[0] & tops[1]) / max(map(len, tops))


def repeated(lines: Sequence[Values], words: Sequence[Sequence[str]]) -> Values:
    """For each text, in how many of the texts its strongest word is the strongest, as a share of all texts.

    What a reader of many heat maps notices without knowing the truth: the same word lights up again and again. Ties go
    to the first word; a text without scores gets NaN.
    """
    tops = [
        visible_form(own[int(np.argmax(np.abs(line)))]) if len(line) and np.abs(line).any() else None
        for line, own in zip(lines, words, strict=True)
    ]
    counts = Counter(top for top in tops if top is not None)
    return np.array([np.nan if top is None else counts[top] / len(tops) for top in tops])


def auroc(strange: Values, usual: Values) -> tuple[float, float | None]:
    """Chance that a strange one scores higher than a usual one (half of it on a tie), and DeLong's standard error.

    NaN are left out; without one of each there is no value.
    """
    strange, usual = strange[np.isfinite(strange)], usual[np.isfinite(usual)]
    m, n = len(strange), len(usual)
    if not m or not n:
        return float("nan"), None
    ranks = stats.rankdata(np.concatenate([strange, usual]))
    above = (ranks[:m] - stats.rankdata(strange)) / n  # of each strange one: share of usual ones below it
    below = 1 - (ranks[m:] - stats.rankdata(usual)) / m  # of each usual one: share of strange ones above it
    if min(m, n) < 2:
        return float(above.mean()), None
    return float(above.mean()), float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))


def mean_and_error(values: Values) -> tuple[float, float | None, int]:
    """Mean of the defined values, its standard error, and how many there are; NaN where there is none."""
    defined = values[np.isfinite(values)]
    n = len(defined)
    if not n:
        return float("nan"), None, 0
    return float(defined.mean()), float(defined.std(ddof=1) / np.sqrt(n)) if n > 1 else None, n
