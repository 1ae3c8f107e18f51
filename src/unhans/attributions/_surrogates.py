"""What methods that learn from samples share: which words to hide, when to stop, and how far to trust the result.

A sample is a **mask** (True where a word stays) and the model's answer to it. Masks come in pairs, one the complement
of the other, because what two such answers have in common is not about single words and cancels. Within an example no
mask is asked twice; where there are few masks, all are asked and the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import ceil, comb
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import Estimate
from unhans.attributions._erasing import measured
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.ranks import spearman
from unhans.text import Variant, Words

NumSamples = Annotated[int, "texts asked about each example, at most"]
Tolerance = Annotated[
    float, "stop once two halves of the samples order the words alike: 1 - Spearman at most this; 0 never stops early"
]
Masks = NDArray[np.bool_]
Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], "Draws"]
"""Masks for so many words, at most so many."""
Fit = Callable[[Masks, Values, Values], Values]
"""Masks (samples × words), the answers to them and how much each counts (commonly 1) become a score for each word."""
Change = Callable[[Sequence[tuple[Words, Sequence[int]]]], list[Variant]]
"""Texts, each with the words to take out of it, become questions."""

_FEWEST = 10  # samples: the whole text, the empty one, and enough pairs for two halves
_ROUNDS = 10  # times that an example is looked at before its samples are used up
_ROUND = 32  # pairs, at least: the order of few words looks settled by chance after a handful
_GROUPS = 10  # of the jackknife


@dataclass(frozen=True)
class Draws:
    """The masks of one example in the order in which they are asked, line by line: those of a unit stay together."""

    masks: Masks
    units: NDArray[np.int64]  # numbered from 0; -1 are masks that belong to every share of the samples
    strata: NDArray[np.int64]  # kinds of units, in every share as frequent as in any other
    there_are: Values  # masks of the same stratum, drawn or not
    exact: bool  # whether all masks that there are have been drawn


def plain_masks(rng: np.random.Generator, n: int, most: int) -> Draws:
    """The whole text, then masks that hide 1 to n words: every number as likely as any other, and then every word."""
    hidden = rng.integers(1, n + 1, most - 1)
    masks = rng.random((most - 1, n)).argsort(axis=1) >= hidden[:, None]
    one_stratum, endless = np.zeros(most, np.int64), np.full(most, np.inf)
    return Draws(np.vstack([np.ones((1, n), bool), masks]), np.arange(-1, most - 1), one_stratum, endless, exact=False)


def paired_masks(rng: np.random.Generator, n: int, most: int) -> Draws:
    """The empty text and the whole one, then masks with their complements: every size in turn, no mask twice."""
    pairs = {size: comb(n, size) // (2 if 2 * size == n else 1) for size in range(1, n // 2 + 1)}
    sizes = list(islice(_sizes(rng, n, pairs), most // 2 - 1))
    of_size = {size: iter(_different(rng, n, size, sizes.count(size))) for size in set(sizes)}
    masks = np.zeros((2 + 2 * len(sizes), n), bool)
    for row, size in enumerate(sizes, start=1):
        masks[2 * row, next(of_size[size])] = True
    masks[1::2] = ~masks[::2]
    there_are = np.array([2, 2, *(2.0 * pairs[size] for size in sizes for _ in range(2))])
    return Draws(
        masks, np.repeat(np.arange(-1, len(sizes)), 2), np.repeat([0, *sizes], 2), there_are, len(masks) == 2**n
    )


def _sizes(rng: np.random.Generator, n: int, left: dict[int, int]) -> Iterator[int]:
    """Sizes of the smaller mask of each pair, as often as there are pairs `left` of that size.

    All sizes of masks are equally frequent, which is what their leverage asks for (Musco & Witter 2025). A pair of two
    halves has one size instead of two, so it comes only every second time.
    """
    left, with_halves = dict(left), False
    while any(left.values()):
        for size in rng.permutation([size for size, there in left.items() if there]).tolist():
            if 2 * size < n or with_halves:
                left[size] -= 1
                yield size
        with_halves = not with_halves


def _different(rng: np.random.Generator, n: int, size: int, number: int) -> list[NDArray[np.int64]]:
    """So many different sets of words of this size; of two halves of the text only ever one."""
    halves = 2 * size == n
    if comb(n, size) <= 4 * number:  # few: list them rather than wait for the last ones to turn up
        sets = [np.array(found) for found in combinations(range(n), size) if not halves or 0 in found]
        return [sets[place] for place in rng.permutation(len(sets))[:number]]
    found: dict[bytes, NDArray[np.int64]] = {}
    while len(found) < number:
        order = rng.permutation(n)
        chosen = np.sort(order[size:] if halves and 0 not in order[:size] else order[:size])
        found[chosen.tobytes()] = chosen
    return list(found.values())


def estimates(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    how: dict[str, Any],
    *,
    draw: Draw,
    change: Change,
    fit: Fit,
    unit: str,
    num_samples: int,
    tolerance: float,
) -> list[Estimate]:
    """Scores of every example, from its own samples; all examples are asked together, settled ones no longer."""
    if num_samples < _FEWEST:
        raise BadOption(f"num_samples must be at least {_FEWEST}, not {num_samples}.")
    if tolerance < 0:
        raise BadOption(f"tolerance must be 0 or more, not {tolerance}.")
    runs = {
        number: _Run(one, draw(rng, len(one.open), num_samples), fit, tolerance)
        for number, (one, rng) in enumerate(zip(words, rngs, strict=True))
        if one.open
    }
    while busy := [number for number, run in runs.items() if not run.settled]:
        wanted = [(number, mask) for number in busy for mask in runs[number].wanted()]
        changed = change([(words[number], _hidden(words[number], mask)) for number, mask in wanted])
        answers = measured(classifier.log_probs(changed, **how), unit)
        for (number, mask), answer in zip(wanted, answers, strict=True):
            runs[number].known[mask.tobytes()] = float(answer[targets[number]])
    return [runs[number].estimate() if number in runs else _nothing(one) for number, one in enumerate(words)]


def _nothing(words: Words) -> Estimate:
    return Estimate(np.zeros(len(words)), np.zeros(len(words)), 1.0, 0)


def _hidden(words: Words, mask: Masks) -> list[int]:
    return [position for position, stays in zip(words.open, mask, strict=True) if not stays]


class _Run:
    """The samples of one example: which are asked next, and what those so far amount to."""

    def __init__(self, words: Words, draws: Draws, fit: Fit, tolerance: float) -> None:
        self.words, self.draws, self.fit, self.tolerance = words, draws, fit, tolerance
        self.known: dict[bytes, float] = {}  # answers by mask
        units = int(draws.units[-1]) + 1
        self._step = units if tolerance == 0 else max(_ROUND, ceil(units / _ROUNDS))
        self._units, self._asked = units, 0

    @property
    def settled(self) -> bool:
        """Whether nothing is left to ask, or it would not change the order of the words."""
        if not self.known:
            return False
        return self._asked >= self._units or (self.tolerance > 0 and 1 - self._stability() <= self.tolerance)

    def wanted(self) -> list[Masks]:
        """The different masks of the next round."""
        self._asked += self._step
        new = {mask.tobytes(): mask for mask in self.draws.masks[self.draws.units < self._asked]}
        return [mask for key, mask in new.items() if key not in self.known]

    def estimate(self) -> Estimate:
        """Scores, and how much they would differ with other samples."""
        exact = self.draws.exact and self._asked >= self._units
        scores, errors = (np.zeros(len(self.words)) for _ in range(2))
        places = list(self.words.open)
        scores[places] = self._fitted(np.ones(self._rows))
        errors[places] = 0.0 if exact else self._jackknife()
        return Estimate(scores, errors, 1.0 if exact else self._stability(), len(self.known))

    @property
    def _rows(self) -> int:
        return int(np.searchsorted(self.draws.units, self._asked))

    def _fitted(self, counts: Values) -> Values:
        masks = self.draws.masks[: self._rows]
        return self.fit(masks, np.array([self.known[mask.tobytes()] for mask in masks]), counts)

    def _shares(self, number: int) -> NDArray[np.int64]:
        """Which of so many shares each sample is in, all shares alike in their strata; -1 is in every share."""
        units, strata = self.draws.units[: self._rows], self.draws.strata[: self._rows]
        _, firsts, inverse = np.unique(units, return_index=True, return_inverse=True)
        kinds = strata[firsts]
        kinds[0] = -1  # those of all shares come first
        share = np.empty(len(kinds), np.int64)
        share[kinds.argsort(kind="stable")] = np.arange(-1, len(kinds) - 1)
        return np.where(units < 0, -1, share[inverse] % number)

    def _stability(self) -> float:
        shares = self._shares(2)
        return spearman(*(self._fitted(self._without(shares == half, 1.0)) for half in range(2)))

    def _jackknife(self) -> Values:
        """Standard errors, from how much the scores change when a tenth of the samples is missing.

        The more of a stratum's masks are known, the less is left to chance: its samples then only count less instead of
        going missing.
        """
        shares, strata = self._shares(_GROUPS), self.draws.strata[: self._rows]
        known = np.bincount(strata, shares >= 0)[strata] / self.draws.there_are[: self._rows]
        number = int(shares.max()) + 1
        without = [self._fitted(self._without(shares == group, np.sqrt(1 - known))) for group in range(number)]
        errors: Values = np.sqrt((number - 1) * np.var(without, axis=0))
        return errors

    def _without(self, dropped: Masks, by: Values | float) -> Values:
        """How much each sample counts if some count less by so much, and the rest of their stratum makes up for it."""
        strata = self.draws.strata[: self._rows]
        rest = ~dropped & (self.draws.units[: self._rows] >= 0)
        less, more = (np.bincount(strata, some)[strata] for some in (dropped, rest))
        counts: Values = 1 - by * dropped + rest * by * less / np.maximum(more, 1)
        return counts
