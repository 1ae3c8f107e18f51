"""Measures of two models on the same examples, and how far chance alone could have moved them.

Accuracy and F1 depend only on how many examples there are of each **kind**: given label, group, patterns, what each
model says. So a resample of the examples is a draw of the number of each kind, which costs the same for a hundred
examples and for a million. Calibration depends on every confidence and is resampled example by example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

RESAMPLES = 2000
BINS = 15  # of the calibration error
FEWEST = 10  # examples that a slice or an interval is made of at least
_CELLS = 1_000_000  # numbers of a resample that are in memory at once
_MOST_DRAWS, _FEWEST_RESAMPLES = 40_000_000, 400  # for calibration: seconds, not minutes


@dataclass(frozen=True)
class Answers:
    """What one model says about the examples of a set."""

    predicted: Ints  # number of the label
    confidence: Floats

    @classmethod
    def of(cls, probabilities: Floats) -> Answers:
        """The most probable label of each line, the first of them on a tie."""
        return cls(probabilities.argmax(axis=1), probabilities.max(axis=1))


@dataclass(frozen=True)
class Kinds:
    """The examples of a set, counted by kind: first as they are, then as drawn with replacement."""

    truth: Ints
    group: Ints  # -1: none, or one too small to count
    said: Ints  # models × kinds
    counts: Floats  # (1 + resamples) × kinds; whole numbers, as floats for the sake of fast products
    patterns: Ints  # a bit for each pattern that the examples of a kind have

    @classmethod
    def of(
        cls,
        truth: Ints,
        group: Ints,
        said: Sequence[Ints],
        rng: np.random.Generator | None = None,
        patterns: Ints | None = None,
    ) -> Kinds:
        """Kinds in the order in which they first occur, so that swapping two models swaps nothing else."""
        rows = np.stack([truth, group, np.zeros_like(truth) if patterns is None else patterns, *said])
        _, first, sizes = np.unique(rows, axis=1, return_index=True, return_counts=True)
        order = np.argsort(first)
        kinds, sizes = rows[:, first[order]], sizes[order]
        counts = sizes[None]
        if rng is not None:
            counts = np.vstack([counts, rng.multinomial(len(truth), sizes / len(truth), size=RESAMPLES)])
        return cls(kinds[0], kinds[1], kinds[3:], counts.astype(np.float64), kinds[2])

    @property
    def size(self) -> int:
        """How many examples there are."""
        return int(self.counts[0].sum())

    def right(self, model: int) -> Flags:
        """Whether a model is right about each kind."""
        found: Flags = self.said[model] == self.truth
        return found

    def accuracy(self, model: int, where: Flags | None = None) -> Floats:
        """Share of right answers, in each resample; NaN where it has no such example."""
        where = np.ones(len(self.truth), dtype=bool) if where is None else where
        return _share(self._number(self.right(model) & where), self._number(where))

    def f1(self, model: int, label: int) -> Floats:
        """2 hits / (2 hits + misses + false alarms) of a given label; NaN where a resample has it nowhere."""
        found: Floats = self._f1s[model][:, int(np.searchsorted(self._given, label))]
        return found

    def macro_f1(self, model: int) -> Floats:
        """Mean F1 of the labels that are given to at least one example of the set."""
        lines = self._f1s[model]
        defined = np.isfinite(lines)
        return _share(np.where(defined, lines, 0.0).sum(axis=1), defined.sum(axis=1).astype(np.float64))

    @cached_property
    def _given(self) -> Ints:
        return np.unique(self.truth)

    @cached_property
    def _f1s(self) -> list[Floats]:
        """Of each model: resamples × given labels."""
        given = self.truth[:, None] == self._given
        lines = [said[:, None] == self._given for said in self.said]
        return [_share(2 * self._number(given & said), self._number(given) + self._number(said)) for said in lines]

    def gap(self, model: int, parts: Sequence[Flags]) -> Floats:
        """The largest difference in accuracy between parts."""
        lines = np.stack([self.accuracy(model, part) for part in parts])
        spread: Floats = lines.max(axis=0) - lines.min(axis=0)
        return spread

    def _number(self, which: Flags) -> Floats:
        """How many examples of these kinds there are, in each resample."""
        found: Floats = self.counts @ which.astype(np.float64)
        return found

    def chance(self, before: int, after: int, where: Flags | None = None) -> float:
        """McNemar's exact p of the difference in accuracy."""
        where = np.ones(len(self.truth), dtype=bool) if where is None else where
        was, now, n = self.right(before) & where, self.right(after) & where, self.counts[0]
        return mcnemar(int(n[now & ~was].sum()), int(n[was & ~now].sum()))


def mcnemar(fixed: int, broken: int) -> float:
    """How often a fair coin would part the examples that changed sides so unevenly, or more (two-sided)."""
    return min(1.0, 2 * float(stats.binom.cdf(min(fixed, broken), fixed + broken, 0.5)))


def interval(changes: Floats, centre: float | None = None) -> tuple[float | None, float | None]:
    """Where the middle 95 % of the resampled changes lie.

    With `centre`, they are moved to have it as their mean: calibration errors and gaps are larger in resamples than in
    the examples themselves, and the more so the smaller they are, because chance only ever adds to them.
    """
    defined = changes[np.isfinite(changes)]
    if not len(defined):
        return None, None
    ends = np.percentile(defined, (2.5, 97.5)) + (0.0 if centre is None else centre - defined.mean())
    low, high = np.round(ends, 6) + 0.0  # what is left of rounding errors is no change
    return float(low), float(high)


def calibration_error(confidence: Floats, right: Flags) -> float:
    """Mean distance of confidence from accuracy, over bins of equally many examples that are alike in confidence."""
    counts = np.ones((1, len(confidence)), dtype=np.int64)
    return float(_calibration_errors(confidence, right, counts)[0])


def calibration_changes(before: Answers, after: Answers, truth: Ints, rng: np.random.Generator) -> Floats:
    """The change of the calibration error in each resample, of which there are fewer if the set is very large."""
    n, found = len(truth), []
    resamples = min(RESAMPLES, max(_FEWEST_RESAMPLES, _MOST_DRAWS // n))
    at_once = max(1, _CELLS // n)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
        ends = [_calibration_errors(one.confidence, one.predicted == truth, counts) for one in (before, after)]
        found.append(ends[1] - ends[0])
    return np.concatenate(found)


def accuracy_differences(first: Flags, second: Flags, rng: np.random.Generator) -> Floats:
    """Accuracy of the first model minus that of the second: as it is, then in each resample."""
    n = len(first)
    signs = np.array([-1, 0, 1])
    sizes = np.array([(first.astype(int) - second.astype(int) == sign).sum() for sign in signs])
    drawn = np.vstack([sizes, rng.multinomial(n, sizes / n, size=RESAMPLES)])
    differences: Floats = drawn @ signs / n
    return differences


def _calibration_errors(confidence: Floats, right: Flags, counts: Ints) -> Floats:
    """The error in each resample, which has every example so many times."""
    rows, n = counts.shape
    order = np.argsort(confidence, kind="stable")
    counts, gaps = counts[:, order], np.tile((right - confidence)[order], (rows, 1))
    firsts = np.flatnonzero(np.diff(confidence[order], prepend=-1.0))
    if len(firsts) < n:  # equal confidences share their gap: which bin one is in must not depend on the file's order
        shared = _share(*(np.add.reduceat(part, firsts, axis=1) for part in (counts * gaps, counts * 1.0)))
        gaps = np.repeat(shared, np.diff(firsts, append=n), axis=1)
    gaps = np.repeat(gaps.ravel(), counts.ravel()).reshape(rows, n)
    sums = np.concatenate([np.zeros((rows, 1)), gaps.cumsum(axis=1)], axis=1)
    edges = np.linspace(0, n, min(BINS, n) + 1).round().astype(np.int64)
    errors: Floats = np.abs(np.diff(sums[:, edges], axis=1)).sum(axis=1) / n
    return errors


def _share(part: Floats, whole: Floats) -> Floats:
    found: Floats = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole != 0)
    return found
