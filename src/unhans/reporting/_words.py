"""The words and numbers of a report, the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unhans.types import Measure, Recipe, Report, WordEffect

MADE = " · "  # between the name of a set and what was done to its texts
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Head and rows."""
_NAMES = {"accuracy": "accuracy", "macro_f1": "macro-F1", "f1": "F1", "calibration_error": "calibration error"}
_VERDICTS = {"better": "▲ better", "worse": "▼ worse", "same": "= same"}
NOTHING = "–"


def called(measure: Measure) -> str:
    """What a measure is of: "accuracy on test, label positive"."""
    if measure.name == "gap":
        return f"the gap in accuracy between {measure.slice} on {measure.data}"
    part = f", {measure.slice}" if measure.slice else ""
    return f"{_NAMES.get(measure.name, measure.name)} on {measure.data}{part}"


def sentence(measure: Measure) -> str:
    """What became of a measure: "Accuracy on restaurants fell by 3.1 points [-5.0, -1.2]."."""
    change = measure.change or 0.0
    comma = "," if measure.slice and measure.name != "gap" else ""
    name = called(measure)
    told = f"{name[:1].upper()}{name[1:]}{comma} {'rose' if change > 0 else 'fell'} by {abs(100 * change):.1f} points"
    return f"{told}{_interval(measure)}."


def headline(report: Report) -> str:
    """The whole report in a sentence."""
    if report.before is None:
        return "A report of one model: there is nothing to compare it with."
    worse, better = len(report.worse), sum(measure.verdict == "better" for measure in report.measures)
    if not worse and not better:
        return "Nothing that was measured changed beyond its 95 % interval."
    told = f"{worse} of {len(report.measures)} measures got worse" if worse else "No measure got worse"
    return f"{told}, {better or 'none'} got better, beyond their 95 % intervals."


def held(report: Report) -> str:
    """How many expectations hold."""
    n, failed = len(report.expectations), sum(not one.holds for one in report.expectations)
    if failed:
        return f"{failed} of {n} expectation{'' if n == 1 else 's'} failed."
    return "The expectation holds." if n == 1 else f"All {n} expectations hold."


def moved(value: float) -> str:
    """How far explanations that nobody voted on have moved."""
    return f"Explanations of texts without a voted word: rank correlation {value:.2f} with those before (1: unmoved)."


def provenance(report: Report) -> list[str]:
    """Where the report comes from."""
    told = [] if report.before is None else [f"before {report.before}"]
    told += [f"after {report.after}"]
    told += [f"fix {report.recipe}"] if report.recipe else []
    told += [f"words scored by {report.method}"] if report.method else []
    return [*told, *([report.at] if report.at else [])]


def by_set(measures: Iterable[Measure]) -> dict[str, list[Measure]]:
    """The measures of each set, whole sets before their parts."""
    found: dict[str, list[Measure]] = {}
    for measure in measures:
        found.setdefault(measure.data, []).append(measure)
    return {data: sorted(own, key=lambda measure: bool(measure.slice)) for data, own in found.items()}


def measure_table(measures: Sequence[Measure]) -> Table:
    """In points of a hundred; columns in which nothing would stand are left out."""
    head = ("measure", "before", "after", "change [95 %]", "", "n", "p", "by seed")
    rows = [
        (_row_name(m), _number(m.before), _number(m.after), _change(m), _verdict(m), f"{m.n:,}", _p(m), _runs(m))
        for m in measures
    ]
    kept = [n for n in range(len(head)) if n in (0, 2) or any(row[n] != NOTHING for row in rows)]
    return tuple(head[n] for n in kept), [tuple(row[n] for n in kept) for row in rows]


def expectation_table(report: Report) -> Table:
    """What was expected, and what was found."""
    return ("", "expectation", "found"), [
        ("✓ holds" if one.holds else "✗ FAILS", one.text, one.says) for one in report.expectations
    ]


def vote_table(words: Sequence[WordEffect]) -> Table:
    """What became of each vote."""
    head = ("word", "label", "vote", "where", "share before", "share after", "score before", "score after", "texts", "")
    return head, [
        (
            one.word,
            one.label,
            one.vote,
            "everywhere" if one.example is None else one.example,
            f"{one.before:.1%}",
            f"{one.after:.1%}",
            f"{one.score_before:+.3g}",
            f"{one.score_after:+.3g}",
            str(one.texts),
            "✓ heard" if one.heard else "✗ not heard",
        )
        for one in words
    ]


def rival_table(report: Report) -> Table:
    """Accuracies of the model before, of the fix and of every rival; sets made from votes are taken together."""
    own = accuracies(report)
    names = short_names([report.recipe, *(rival.recipe for rival in report.rivals)])
    columns = [{m.data: m.after for m in measures} for measures in (own, *(rival.measures for rival in report.rivals))]
    if report.before is not None:
        names, columns = ["before", *names], [{m.data: m.before or 0.0 for m in own}, *columns]
    lines = [(m.data, [m.data]) for m in own if MADE not in m.data]
    if made := [m.data for m in own if MADE in m.data]:
        lines.append(("sets made from votes, mean", made))
    rows = [
        (name, *(_number(mean(column[d] for d in sets if d in column)) for column in columns)) for name, sets in lines
    ]
    return ("accuracy on", *names), rows


def mean(values: Iterable[float]) -> float | None:
    """The plain mean; None of nothing."""
    found = list(values)
    return sum(found) / len(found) if found else None


def short_names(recipes: Sequence[Recipe | None]) -> list[str]:
    """The name of each, with the options (and the seed) by which it differs from others of that name."""
    settings = [None if r is None else {**dict(r.options), "seed": r.seed} for r in recipes]
    found = []
    for recipe, own in zip(recipes, settings, strict=True):
        if recipe is None or own is None:
            found.append("this model")
            continue
        alike = [o for r, o in zip(recipes, settings, strict=True) if r is not None and r.name == recipe.name and o]
        told = [f"{key}={value}" for key, value in own.items() if any(other.get(key) != value for other in alike)]
        found.append(f"{recipe.name} ({', '.join(told)})" if told else recipe.name)
    return found


def made_table(report: Report) -> Table:
    """The accuracies on the sets that were made from votes, a line each."""
    made = [measure for measure in accuracies(report) if MADE in measure.data]
    head, rows = measure_table(made)
    return ("accuracy on", *head[1:]), [(m.data, *row[1:]) for m, row in zip(made, rows, strict=True)]


def accuracies(report: Report) -> list[Measure]:
    """Those of whole sets."""
    return [measure for measure in report.measures if measure.name == "accuracy" and not measure.slice]


def _interval(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return ""
    return f" [{100 * measure.low:+.1f}, {100 * measure.high:+.1f}]"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f}"


def _change(measure: Measure) -> str:
    return NOTHING if measure.change is None else f"{100 * measure.change:+.1f}{_interval(measure)}"


def _verdict(measure: Measure) -> str:
    return NOTHING if measure.low is None else _VERDICTS[measure.verdict]


def _p(measure: Measure) -> str:
    return NOTHING if measure.p is None else "< 0.001" if measure.p < 0.001 else f"{measure.p:.3f}"


def _runs(measure: Measure) -> str:
    return f"{100 * min(measure.runs):.1f} to {100 * max(measure.runs):.1f}" if measure.runs else NOTHING


def _row_name(measure: Measure) -> str:
    if measure.name == "gap":
        return f"gap between {measure.slice}"
    name = _NAMES.get(measure.name, measure.name)
    return f"{name}, {measure.slice}" if measure.slice else name
