"""Pairs of texts: patterns that a model may take for the answer, and answers that need one text only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from unhans.audit import Ask, Find, How, Outcome, check
from unhans.audit._look import places
from unhans.audit._rules import FEWEST, PARTIAL, PATTERNS, SIGNIFICANT
from unhans.audit._statistics import Flags, Floats, Ints, difference, holm, more, percent, share, wilson
from unhans.heuristics import heuristic
from unhans.heuristics import patterns as patterns_of
from unhans.model import Classifier
from unhans.types import Evidence, Example, Finding

_READ = 1000  # pairs that are read with one text missing


@check(
    title="Patterns of pairs",
    needs={"predict"},
    cost=0.5,
    order=2,
    labelled=True,
    on="pair",
    paper="McCoy et al. 2019, arXiv:1902.01007; Gururangan et al. 2018, arXiv:1803.02324",
)
def patterns(
    classifier: Classifier,
    examples: Sequence[Example],
    log_probs: Floats,
    given: Ints,
    ask: Ask,
    find: Find,
    how: How,
    seed: int,
) -> Outcome:
    """Patterns (`heuristics`) that the model takes for a label, and labels that it tells from one text alone.

    For each pattern and two labels: how often the model says the one of pairs that have the other, against pairs that
    have the other too and not the pattern. Where there are too few of either, that is left out.
    """
    known = np.flatnonzero((given >= 0) & np.array([e.pair is not None for e in examples]))
    some, truth, said = [examples[n] for n in known.tolist()], given[known], log_probs[known].argmax(axis=1)
    pairs, found = _Said(classifier, some, truth, said), [patterns_of(example) for example in some]
    rows: list[_Case] = []
    for name in heuristic.names:
        inside = np.array([name in own for own in found], bool)
        every = (_Case(pairs, name, inside, *two) for two in permutations(range(len(classifier.labels)), 2))
        rows += [case for case in every if case.is_enough]
    findings: list[Finding] = []
    for case, p in zip(rows, holm([more(*case.counts) for case in rows]), strict=True):
        if p < SIGNIFICANT:
            findings += _pattern(case, find)
    findings.sort(key=lambda one: ("high", "medium", "low").index(one.severity))
    findings += _partial(classifier, some, truth, ask, find, how, seed)
    names = {case.pattern for case in rows}
    told = f"{len(names)} patterns were found in {FEWEST} pairs or more" if names else "No pattern is in enough pairs"
    read = f"{min(_READ, len(some)):,} were read with one text missing"
    return Outcome(f"{told}, of {len(some):,}; {read}.", tuple(findings))


@dataclass(frozen=True)
class _Said:
    """Labelled pairs, and what the model says of them."""

    classifier: Classifier
    examples: Sequence[Example]
    truth: Ints
    said: Ints


@dataclass(frozen=True)
class _Case:
    """A pattern, a label that the model may take it for, and the label that the pairs looked at have.

    One label at a time: were all others thrown together, a pattern that is common where the model errs anyway would be
    blamed for it.
    """

    on: _Said
    pattern: str
    inside: Flags
    label: int
    given: int

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Alarms and all: with the pattern, and without."""
        one, rest = (part & (self.on.truth == self.given) for part in (self.inside, ~self.inside))
        alarm = self.on.said == self.label
        return int((alarm & one).sum()), int(one.sum()), int((alarm & rest).sum()), int(rest.sum())

    @property
    def is_enough(self) -> bool:
        """Whether there are enough of both to compare."""
        return min(self.counts[1::2]) >= FEWEST


def _pattern(case: _Case, find: Find) -> Iterator[Finding]:
    on, inside, label = case.on, case.inside, case.label
    alarms, n, others, m = case.counts
    severity = PATTERNS(difference(alarms, n, others, m)[0])
    if severity is None:
        return
    names = on.classifier.labels
    says, summary = names[label], heuristic[case.pattern].summary
    are = "that are not" if len(names) == 2 else f"labelled {names[case.given]}"
    whose = f"that are not {says}" if len(names) == 2 else are
    low, high = wilson(alarms, n)
    what = f"pairs with the pattern {whose} and are called {says}; usual: such pairs without the pattern"
    wrong = np.flatnonzero(inside & (on.truth == case.given) & (on.said == label))
    right = on.said == on.truth
    told = [Evidence(what, alarms / n, others / m, low, high, n)]
    told.append(share(f"pairs with the pattern that are called {says}; usual: that are", on.said[inside] == label,
                      float((on.truth[inside] == label).mean())))  # fmt: skip
    for number, own in enumerate(on.classifier.labels):
        part, rest = inside & (on.truth == number), ~inside & (on.truth == number)
        if part.any():
            usual = float(right[rest].mean()) if rest.any() else None
            told.append(share(f"accuracy on pairs with it labelled {own}; usual: without it", right[part], usual))
    yield find(
        severity,
        f"Pairs with the pattern {case.pattern} are called {says}: {percent(alarms / n)} of those {are}",
        says=f"{summary} Of pairs {whose}, {percent(alarms / n)} with the pattern are called {says}, and "
        f"{percent(others / m)} without it.",
        evidence=told,
        examples=[on.examples[n].id for n in wrong[:50]],
        next="Look at the training examples behind these errors, and give the model pairs that break the pattern.",
        screen="neighbours",
        limits="Pairs with the pattern may be harder in other ways. Patterns are found by rules, without a parser.",
    )


def _partial(
    classifier: Classifier, examples: Sequence[Example], truth: Ints, ask: Ask, find: Find, how: How, seed: int
) -> Iterator[Finding]:
    """What the model makes of one text of a pair, the other being empty."""
    chosen = places(len(examples), _READ, seed)
    if len(chosen) < FEWEST:
        return
    some, labels = [examples[n] for n in chosen], truth[chosen]
    asked: list[tuple[str, str]] = [("", str(e.pair)) for e in some] + [(e.text, "") for e in some]
    said = ask(asked, how).argmax(axis=1).reshape(2, len(some))
    common = float(np.bincount(labels).max() / len(labels))
    for name, missing, line in zip(("second", "first"), ("first", "second"), said, strict=True):
        right = line == labels
        severity = PARTIAL(wilson(int(right.sum()), len(right))[0] - common)
        if severity is not None:
            yield find(
                severity,
                f"The {name} text alone gets {percent(right.mean())} right; the commonest label {percent(common)}",
                says=f"With the {missing} text left empty, the model still gives the right label more often than "
                "the commonest label would: it reads the answer off one text.",
                evidence=[share(f"accuracy on the {name} text alone; usual: the commonest label", right, common)],
                examples=[some[n].id for n in np.flatnonzero(right)[:50]],
                next="Balance the data so that one text does not tell the label, or look for the words that do.",
                screen="words",
                limits="An empty text is unlike any that the model was trained on. In some tasks one text is enough.",
            )
