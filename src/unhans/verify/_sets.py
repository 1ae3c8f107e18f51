"""One set of examples, as several models see it: its measures, and the examples that changed sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from unhans.heuristics import patterns
from unhans.model import Classifier
from unhans.types import Change, Example, Measure, Prediction
from unhans.verify._statistics import (
    FEWEST,
    Answers,
    Flags,
    Floats,
    Ints,
    Kinds,
    calibration_changes,
    calibration_error,
    interval,
)

_SLICES = 30  # labels, groups, and patterns by label, with measures of their own: the largest
Where = Callable[[Kinds], Flags]


@dataclass(frozen=True)
class Scored:
    """The examples of a set, with what each model says: before (if there is one), after, other runs, rivals."""

    name: str
    examples: Sequence[Example]
    labels: tuple[str, ...]
    lines: Sequence[Floats]  # of each model: examples × labels, probabilities
    after: int  # number of the model that is reported on: 1, or 0 if there is no before
    n_runs: int

    @cached_property
    def truth(self) -> Ints:
        """Number of the given label of each example."""
        number = {label: n for n, label in enumerate(self.labels)}
        return np.array([number[str(example.label)] for example in self.examples], dtype=np.int64)

    @cached_property
    def answers(self) -> list[Answers]:
        """What each model says."""
        return [Answers.of(lines) for lines in self.lines]

    @cached_property
    def right(self) -> list[Flags]:
        """Whether each model is right about each example."""
        return [one.predicted == self.truth for one in self.answers]

    @cached_property
    def groups(self) -> list[str]:
        """The groups that are large enough to be measured; a set of one group is not divided."""
        names, sizes = np.unique([one.group for one in self.examples if one.group is not None], return_counts=True)
        large = [str(name) for name, size in zip(names, sizes, strict=True) if size >= FEWEST]
        return large if len(names) > 1 else []

    @cached_property
    def _group(self) -> Ints:
        number: dict[str | None, int] = {name: n for n, name in enumerate(self.groups)}
        return np.array([number.get(one.group, -1) for one in self.examples], dtype=np.int64)

    @cached_property
    def found(self) -> list[str]:
        """The patterns (`heuristics`) that enough of the examples have."""
        sizes = Counter(name for names in self._found for name in names)
        return sorted(name for name, size in sizes.items() if size >= FEWEST)

    @cached_property
    def _found(self) -> list[tuple[str, ...]]:
        return [patterns(example) for example in self.examples]

    @cached_property
    def _patterns(self) -> Ints:
        bit = {name: 1 << n for n, name in enumerate(self.found)}
        return np.array([sum(bit.get(name, 0) for name in names) for names in self._found], dtype=np.int64)

    def measures(self, rng: np.random.Generator, *, sliced: bool) -> list[Measure]:
        """Accuracy, F1 and calibration of the whole set, then of its parts."""
        runs = range(self.after + 1, self.after + 1 + self.n_runs)
        make = self._making(range(self.after + 1), runs, rng, self._patterns if sliced else None)
        f1 = [make.measure("macro_f1", Kinds.macro_f1)] if len(np.unique(self.truth)) > 1 else []
        return [make.accuracy(), *f1, self._calibration(rng), *(self._slices(make) if sliced else ())]

    def rival(self, model: int, rng: np.random.Generator) -> Measure:
        """The accuracy of another model, against the same before."""
        return self._making([*range(self.after), model], (), rng).accuracy()

    def _making(
        self, models: Sequence[int], runs: Sequence[int], rng: np.random.Generator, found: Ints | None = None
    ) -> _Making:
        said, facts = [one.predicted for one in self.answers], (self.truth, self._group)
        kinds = Kinds.of(*facts, [said[n] for n in models], rng if self.after else None, found)
        others = [Kinds.of(*facts, [said[n]], patterns=found) for n in runs]
        return _Making(self.name, kinds, others, self.after)

    def _slices(self, make: _Making) -> Iterator[Measure]:
        sizes = np.bincount(self.truth, minlength=len(self.labels))
        large = [int(n) for n in np.flatnonzero(sizes >= FEWEST)] if (sizes > 0).sum() > 1 else []
        members = np.bincount(self._group[self._group >= 0], minlength=len(self.groups))
        for label in _largest(large, sizes):
            part = f"label {self.labels[label]}"
            yield make.accuracy(part, _of_label(label))
            yield make.measure("f1", _f1_of(label), part, n=int(sizes[label]))
        for group in _largest(range(len(self.groups)), members):
            yield make.accuracy(f"group {self.groups[group]}", _of_group(group))
        yield from self._by_pattern(make)
        if len(large) > 1:
            yield make.gap("labels", [_of_label(n) for n in large], int(sizes[large].sum()))
        if len(self.groups) > 1:
            yield make.gap("groups", [_of_group(n) for n in range(len(members))], int(members.sum()))

    def _by_pattern(self, make: _Making) -> Iterator[Measure]:
        """A model that takes a pattern for the answer is right about it under one label, and wrong under another."""
        parts = list(product(range(len(self.found)), range(len(self.labels))))
        where = [_both(_of_pattern(bit), _of_label(label)) for bit, label in parts]
        sizes = np.array([make.size(part) for part in where], dtype=np.int64)
        for n in _largest(np.flatnonzero(sizes >= FEWEST).tolist(), sizes):
            bit, label = parts[n]
            yield make.accuracy(f"pattern {self.found[bit]}, label {self.labels[label]}", where[n])

    def _calibration(self, rng: np.random.Generator) -> Measure:
        shown = range(self.after + 1 + self.n_runs)
        values = [calibration_error(self.answers[n].confidence, self.right[n]) for n in shown]
        n, low, high = len(self.truth), None, None
        if self.after and n >= FEWEST:
            changes = calibration_changes(self.answers[0], self.answers[1], self.truth, rng)
            low, high = interval(changes, values[1] - values[0])
        before = values[0] if self.after else None
        runs = tuple(values[self.after :]) if self.n_runs else ()
        return Measure("calibration_error", self.name, before, values[self.after], low, high, "lower", n=n, runs=runs)

    def changes(self, before: Classifier, after: Classifier) -> Iterator[Change]:
        """The examples about which one model is right and the other is not."""
        for n in np.flatnonzero(self.right[0] != self.right[1]).tolist():
            said = [self._prediction(model, n, self.lines[at][n]) for at, model in enumerate((before, after))]
            yield Change(self.examples[n], self.name, said[0], said[1])

    def _prediction(self, model: Classifier, n: int, line: Floats) -> Prediction:
        example = self.examples[n]
        return Prediction(example.id, self.labels, tuple(line.tolist()), model.revision, model.unread(example))


def _of_label(label: int) -> Where:
    return lambda kinds: kinds.truth == label


def _of_group(group: int) -> Where:
    return lambda kinds: kinds.group == group


def _of_pattern(bit: int) -> Where:
    return lambda kinds: (kinds.patterns >> bit) % 2 == 1


def _both(one: Where, other: Where) -> Where:
    return lambda kinds: one(kinds) & other(kinds)


def _f1_of(label: int) -> Callable[[Kinds, int], Floats]:
    return lambda kinds, model: kinds.f1(model, label)


def _largest(parts: Sequence[int], sizes: Ints) -> list[int]:
    """Those that get measures of their own, in their own order."""
    return sorted(sorted(parts, key=lambda n: -int(sizes[n]))[:_SLICES])


@dataclass(frozen=True)
class _Making:
    """Measures from the kinds of examples of one set."""

    data: str
    kinds: Kinds  # as the models before and after see them
    runs: Sequence[Kinds]  # as models from other seeds do
    after: int

    def measure(
        self,
        name: str,
        value: Callable[[Kinds, int], Floats],
        part: str = "",
        *,
        n: int | None = None,
        p: float | None = None,
        better: Literal["higher", "lower"] = "higher",
    ) -> Measure:
        """A number before and after, with the interval of its change."""
        n = self.kinds.size if n is None else n
        after = value(self.kinds, self.after)
        now = float(after[0])
        runs = (now, *(float(value(other, 0)[0]) for other in self.runs)) if self.runs else ()
        if not self.after:
            return Measure(name, self.data, None, now, better=better, slice=part, n=n, runs=runs)
        before = value(self.kinds, 0)
        changes = after - before
        centre = float(changes[0]) if better == "lower" else None
        low, high = interval(changes[1:], centre) if n >= FEWEST else (None, None)
        return Measure(name, self.data, float(before[0]), now, low, high, better, part, n, p, runs)

    def accuracy(self, part: str = "", where: Where | None = None) -> Measure:
        """Accuracy on a part of the set, with McNemar's test."""
        inside: Where = where or (lambda kinds: np.ones(len(kinds.truth), dtype=bool))
        p = self.kinds.chance(0, 1, inside(self.kinds)) if self.after else None
        n = self.size(inside)
        return self.measure("accuracy", lambda kinds, model: kinds.accuracy(model, inside(kinds)), part, n=n, p=p)

    def size(self, where: Where) -> int:
        """How many examples a part has."""
        return int(self.kinds.counts[0][where(self.kinds)].sum())

    def gap(self, part: str, between: Sequence[Where], n: int) -> Measure:
        """The largest difference in accuracy between parts."""

        def value(kinds: Kinds, model: int) -> Floats:
            return kinds.gap(model, [where(kinds) for where in between])

        return self.measure("gap", value, part, n=n, better="lower")
