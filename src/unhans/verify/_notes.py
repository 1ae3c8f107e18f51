"""What must be known to read a report, a sentence each: what got worse, what got better, and what may mislead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unhans.reporting import MADE, called, sentence
from unhans.types import Measure, Report

_FEW = 100  # examples: fewer leave room for a loss of several points that no interval shows
_LISTED = 10  # sentences about what got worse, and better; the rest is counted
_FLATTERY = (
    "a fix that trains on such texts is flattered there, and their labels are right only if the words decide nothing."
)


@dataclass(frozen=True)
class Circumstances:
    """What a report itself does not hold."""

    unlabelled: int  # examples left out
    undecided: int  # questions on which people are evenly split
    unmeasured: int  # votes whose word is in no text of the sets
    stressed: tuple[str, ...]  # names of the stress sets
    method: str  # why words are scored by another method than was asked for; empty: they are not


def notes_of(report: Report, told: Circumstances) -> tuple[str, ...]:
    """The notes of a report that has everything else."""
    return (*_changed(report), *_contests(report), *_caveats(report, told))


def _changed(report: Report) -> Iterator[str]:
    if report.before is None:
        return
    better = [measure for measure in report.measures if measure.verdict == "better"]
    yield from _sentences(report.worse, "worse", len(report.worse))
    if not report.worse:
        yield "Nothing that was measured got worse beyond its 95 % interval."
    if report.n_fixed or report.n_broken:
        broken = f"{_examples(report.n_broken)} that {_were(report.n_broken)} right {_are(report.n_broken)} wrong now"
        yield f"{broken}, and {report.n_fixed:,} that {_were(report.n_fixed)} wrong {_are(report.n_fixed)} right."
    else:
        yield "No example changed sides."
    yield from _bought(report.measures)
    told = [measure for measure in better if MADE not in measure.data or measure.name == "accuracy"]
    yield from _sentences(told, "better", len(better))


def _bought(measures: Sequence[Measure]) -> Iterator[str]:
    """Where a gain on one label was paid for with another: in whole sets, then among texts with a pattern."""
    parts: dict[tuple[str, str], list[tuple[str, Measure]]] = defaultdict(list)
    for one in measures:
        if one.name == "accuracy" and one.slice.startswith("label "):
            parts[one.data, ""].append((one.slice.removeprefix("label "), one))
        elif one.name == "accuracy" and one.slice.startswith("pattern "):
            pattern, _, label = one.slice.partition(", label ")
            parts[one.data, pattern].append((label, one))
    sentences = [
        _trade(data, pattern, own)
        for (data, pattern), own in sorted(parts.items(), key=lambda item: bool(item[0][1]))
        if {"better", "worse"} <= {one.verdict for _, one in own}
    ]
    yield from sentences[:_LISTED]


def _trade(data: str, pattern: str, parts: Sequence[tuple[str, Measure]]) -> str:
    moved = sorted(((one.change or 0.0, label) for label, one in parts if one.verdict != "same"), reverse=True)
    mean = sum(one.change or 0.0 for _, one in parts) / len(parts)
    told = ", ".join(f"{label} {_points(change)}" for change, label in moved)
    where = f"{data} ({pattern})" if pattern else data
    return f"A gain on one label was bought with another on {where}: {told}; the mean over labels {_points(mean)}."


def _points(change: float) -> str:
    return f"{100 * change:+.1f} points"


def _sentences(measures: Sequence[Measure], verdict: str, n: int) -> Iterator[str]:
    """Whole sets one by one, then parts of sets until it gets too long; the rest of the `n` is counted."""
    whole = [measure for measure in measures if not measure.slice]
    parts = [measure for measure in measures if measure.slice][: max(0, _LISTED - len(whole))]
    yield from map(sentence, (*whole, *parts))
    if more := n - len(whole) - len(parts):
        yield f"{more:,} {'more ' if whole or parts else ''}measure{_s(more)} got {verdict}."


def _contests(report: Report) -> Iterator[str]:
    own = report.recipe.name if report.recipe else None
    yield from (rival.note for rival in report.rivals if rival.note and rival.recipe.name != own)


def _caveats(report: Report, told: Circumstances) -> Iterator[str]:
    whole = [measure for measure in report.measures if not measure.slice and measure.name == "accuracy"]
    doubtful = [m for m in report.measures if m.verdict != "same" and m.p is not None and m.p >= 0.05]
    if doubtful:
        some = "; ".join(f"{called(measure)} (p = {measure.p:.2g})" for measure in doubtful[:_LISTED])
        yield f"By McNemar's exact test this may be chance all the same: {some}."
    few = [m.data for m in whole if m.n < _FEW and m.data not in told.stressed]
    if small := sum(m.n < _FEW for m in whole) - len(few):
        few.append(f"{small} set{_s(small)} made from votes")
    if few:
        yield f"Fewer than {_FEW} examples in {', '.join(few)}: a real loss there may not show."
    judged = sum(measure.low is not None for measure in report.measures)
    if judged >= 20:
        yield f"{judged} changes are judged at 95 %: about {judged / 20:.0f} of them would stand out by chance alone."
    if told.stressed:
        yield f"Sets called {next(iter(told.stressed))!r} and the like are made from the votes: {_FLATTERY}"
    if told.unlabelled:
        yield f"{_examples(told.unlabelled)} without a label {_were(told.unlabelled)} left out."
    if n := told.undecided:
        yield f"{n:,} question{_s(n)} on which people are evenly split {_were(n)} left out."
    if told.unmeasured:
        yield (
            f"{told.unmeasured:,} vote{_s(told.unmeasured)} could not be measured: these sets have neither the example "
            "nor a text with the word."
        )
    if told.method:
        yield told.method
    if runs := next((len(m.runs) for m in whole if m.runs), 0):
        yield f"There are {runs} runs with different seeds; intervals are of the first, and over examples only."


def _examples(n: int) -> str:
    return f"{n:,} example{_s(n)}"


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
