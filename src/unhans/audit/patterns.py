"""Pairs of texts: patterns that a model may take for the answer, and answers that need one text only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    For each pattern and label: how often the model says the label where it is wrong, against pairs of other labels
    without the pattern. Where there are too few of either, that pattern and label are left out.
    """
    known = np.flatnonzero((given >= 0) & np.array([e.pair is not None for e in examples]))
    some, truth, said = [examples[n] for n in known.tolist()], given[known], log_probs[known].argmax(axis=1)
    found = [patterns_of(example) for example in some]
    cases = []
    for name in heuristic.names:
        inside = np.array([name in own for own in found], bool)
        cases += [(name, label, inside) for label in range(len(classifier.labels))]
    rows = [case for case in cases if _compared(case[2], truth, case[1]) is not None]
    surely = [p < SIGNIFICANT for p in holm([_chance(inside, truth, said, label) for _, label, inside in rows])]
    findings: list[Finding] = []
    for (name, label, inside), sure in zip(rows, surely, strict=True):
        if sure:
            findings += _pattern(name, label, inside, _Said(classifier, some, truth, said), find)
    findings.sort(key=lambda one: ("high", "medium", "low").index(one.severity))
    findings += _partial(classifier, some, truth, ask, find, how, seed)
    names = {name for name, _, _ in rows}
    told = f"{len(names)} patterns were found in {FEWEST} pairs or more" if names else "No pattern is in enough pairs"
    read = f"{min(_READ, len(some)):,} were read with one text missing"
    return Outcome(f"{told}, of {len(some):,}; {read}.", tuple(findings))


class _Said:
    """Labelled pairs, and what the model says of them."""

    def __init__(self, classifier: Classifier, examples: Sequence[Example], truth: Ints, said: Ints) -> None:
        self.classifier, self.examples, self.truth, self.said = classifier, examples, truth, said


def _compared(inside: Flags, truth: Ints, label: int) -> tuple[Flags, Flags] | None:
    """Pairs with the pattern that do not have the label, and those to compare them with; None: too few of either."""
    other = truth != label
    one, rest = inside & other, ~inside & other
    return (one, rest) if one.sum() >= FEWEST and rest.sum() >= FEWEST else None


def _counts(inside: Flags, truth: Ints, said: Ints, label: int) -> tuple[int, int, int, int]:
    compared = _compared(inside, truth, label)
    assert compared is not None  # the callers have made sure
    one, rest = compared
    alarm = said == label
    return int((alarm & one).sum()), int(one.sum()), int((alarm & rest).sum()), int(rest.sum())


def _chance(inside: Flags, truth: Ints, said: Ints, label: int) -> float:
    return more(*_counts(inside, truth, said, label))


def _pattern(name: str, label: int, inside: Flags, on: _Said, find: Find) -> Iterator[Finding]:
    alarms, n, others, m = _counts(inside, on.truth, on.said, label)
    severity = PATTERNS(difference(alarms, n, others, m)[0])
    if severity is None:
        return
    says, summary = on.classifier.labels[label], heuristic[name].summary
    low, high = wilson(alarms, n)
    what = f"pairs with the pattern that are not {says} and are called so; usual: such pairs without the pattern"
    wrong = np.flatnonzero(inside & (on.truth != label) & (on.said == label))
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
        f"Pairs with the pattern {name} are called {says}: {percent(alarms / n)} of those that are not",
        says=f"{summary} Of pairs that are not {says}, {percent(alarms / n)} with the pattern are called so, and "
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
