"""Task explanations: what a model has learned about the words of a task, and which of them to look at first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from unhans.errors import BadData
from unhans.text import visible_form
from unhans.types import Attribution, RankedWord, WordRanking


def rank_words(
    attributions: Sequence[Attribution],
    *,
    label: str,
    order: Literal["mean", "total"] = "mean",
    min_count: int = 3,
    keep: int = 20,
) -> WordRanking:
    """The vocabulary by its mean score for a label over the examples that contain the word.

    Words are counted together when they look alike (case and hidden characters aside); a word that occurs twice in an
    example counts once there, with the sum of its scores. `total` orders by mean × number of examples instead, which
    puts what the model leans on most often first.
    """
    chosen = [one for one in attributions if one.label == label]
    if not chosen:
        raise BadData(f"None of the attributions is for the label {label!r}, so there is nothing to rank.")
    by_word: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in chosen:
        for position, (word, score) in enumerate(zip(one.words, one.scores, strict=True)):
            if position not in one.unread:
                by_word[visible_form(word)][one.example] += score
    rows = [_ranked(word, scores, keep) for word, scores in by_word.items() if len(scores) >= min_count]
    weight = (lambda row: row.score * row.count) if order == "total" else (lambda row: row.score)
    return WordRanking(label, tuple(sorted(rows, key=weight, reverse=True)), chosen[0].recipe, chosen[0].revision)


def _ranked(word: str, scores: dict[str, float], keep: int) -> RankedWord:
    values = np.array(list(scores.values()))
    strongest = sorted(scores, key=lambda example: -abs(scores[example]))[:keep]
    return RankedWord(word, float(values.mean()), float(values.std()), len(values), tuple(strongest))
