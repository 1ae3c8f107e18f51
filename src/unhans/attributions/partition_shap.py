"""Partition SHAP: Owen values over the parts of a text (shap's PartitionExplainer; Owen 1977)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution
from unhans.attributions._erasing import BASELINES, Erase, Measured, hole_of, measured
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.text import Unit, Words
from unhans.types import Terms

Positions = tuple[int, ...]
_AT_A_TIME = 16  # groups of an example divided in one round: few, as each answer may change which comes next


@attribution(
    needs={"predict"},
    paper="https://shap.readthedocs.io/en/latest/generated/shap.PartitionExplainer.html",
    aliases=("owen",),
    at_once=8,
    terms=lambda o: Terms(o["unit"], BASELINES[o["erase"]], "mean over orders that keep phrases and sentences whole"),
)
def partition_shap(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    max_evals: Annotated[int, "texts asked about each example, at most"] = 500,
    erase: Erase = "delete",
    unit: Measured = "log_odds",
) -> list[NDArray[np.float64]]:
    """Owen values: what a group adds to the label's log-odds, divided among its halves, down to words.

    A pair is divided into its parts, a part into sentences, these into phrases, these into halves. What matters most is
    divided first; what cannot be divided within `max_evals` is shared equally. Scores always sum to the difference
    between the whole text and none of it. Not random: the same text always gets the same scores.
    """
    if max_evals < 2:
        raise BadOption(f"max_evals must be at least 2, not {max_evals}.")
    hole = hole_of(erase)

    def values(asked: Sequence[tuple[int, frozenset[int]]]) -> list[float]:
        """The model's answer to each example with only these words left."""
        left = [words[n].without([p for p in words[n].open if p not in kept], hole) for n, kept in asked]
        answers = measured(classifier.log_probs(left, **how), unit)
        return [float(answer[targets[n]]) for (n, _), answer in zip(asked, answers, strict=True)]

    readable = [n for n, one in enumerate(words) if one.open]
    ends = iter(values([(n, kept) for n in readable for kept in (frozenset[int](), frozenset(words[n].open))]))
    divisions = {n: _Division(words[n], next(ends), next(ends), max_evals) for n in readable}
    while rounds := {n: todo for n, division in divisions.items() if (todo := division.next_groups())}:
        answers = iter(values([(n, kept) for n, todo in rounds.items() for g in todo for kept in g.kept_by_half()]))
        for n, todo in rounds.items():
            for group in todo:
                divisions[n].divide(group, next(answers), next(answers))
    return [divisions[n].scores() if n in divisions else np.zeros(len(one)) for n, one in enumerate(words)]


@dataclass(frozen=True)
class _Group:
    """Neighbouring words, beside some others that are there: what they add is to be divided among them."""

    positions: Positions
    halves: tuple[Positions, Positions]
    others: frozenset[int]
    without: float  # the model's answer to the others alone
    within: float  # and to both
    weight: float  # how much these others count among all that could be there

    @property
    def credit(self) -> float:
        return self.weight * (self.within - self.without)

    def kept_by_half(self) -> tuple[frozenset[int], frozenset[int]]:
        left, right = self.halves
        return self.others.union(left), self.others.union(right)


class _Division:
    """The groups of one example that are still to be divided, the most important first."""

    def __init__(self, words: Words, nothing: float, whole: float, budget: int) -> None:
        self._words, self._left = words, budget - 2
        self._borders = _borders(words)
        self._queue: list[tuple[float, int, _Group]] = []  # the number settles ties: first come, first divided
        self._scores = np.zeros(len(words))
        self._added = 0
        self._add(words.open, frozenset(), nothing, whole, 1.0)

    def next_groups(self) -> list[_Group]:
        """The groups to divide in this round; each costs two answers."""
        number = min(_AT_A_TIME, self._left // 2, len(self._queue))
        self._left -= 2 * number
        return [heapq.heappop(self._queue)[2] for _ in range(number)]

    def divide(self, group: _Group, left_alone: float, right_alone: float) -> None:
        """Each half may come first or second; both orders count alike."""
        (left, right), weight = group.halves, group.weight / 2
        with_left, with_right = group.kept_by_half()
        self._add(left, group.others, group.without, left_alone, weight)
        self._add(right, group.others, group.without, right_alone, weight)
        self._add(left, with_right, right_alone, group.within, weight)
        self._add(right, with_left, left_alone, group.within, weight)

    def scores(self) -> NDArray[np.float64]:
        """What each word has got, with an equal share of the credit of groups that were never divided."""
        for _, _, group in self._queue:
            self._scores[list(group.positions)] += group.credit / len(group.positions)
        return self._scores

    def _add(self, positions: Positions, others: frozenset[int], without: float, within: float, weight: float) -> None:
        if len(positions) == 1:
            self._scores[positions[0]] += weight * (within - without)
            return
        cut = min(range(1, len(positions)), key=lambda at: (self._borders[positions[at]], abs(2 * at - len(positions))))
        group = _Group(positions, (positions[:cut], positions[cut:]), others, without, within, weight)
        self._added += 1
        heapq.heappush(self._queue, (-abs(group.credit), self._added, group))


def _borders(words: Words) -> list[int]:
    """What begins at each word: 0 a part, 1 a sentence, 2 a phrase, 3 nothing but the word."""
    text = words.parts[0] if len(words.parts) == 1 else (words.parts[0], words.parts[1])
    starts: list[set[tuple[str, int]]] = [{(words.spans[0].part, words.spans[0].start)}]
    starts[0].update((b.part, b.start) for a, b in pairwise(words.spans) if a.part != b.part)
    units: tuple[Unit, ...] = ("sentence", "phrase")
    starts += [{(span.part, span.start) for span in Words(text, units=size).spans} for size in units]
    return [sum((span.part, span.start) not in some for some in starts) for span in words.spans]
