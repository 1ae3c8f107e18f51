"""The card of an exported model: facts that were handed in, what got worse first."""

from __future__ import annotations

import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from unhans import __version__
from unhans.feedback import Agreement, agreement_by_kind, resolve
from unhans.model import TransformerClassifier
from unhans.present import printable
from unhans.reporting import sentence
from unhans.text import Words
from unhans.types import Example, Feedback, Measure, Report, Review, Revision, Ruling

_MOST = 50  # words in the table of votes


@dataclass(frozen=True)
class Facts:
    """What a model card may say; what is not known is said to be unknown, never guessed."""

    name: str
    revision: Revision | None = None
    report: Report | None = None
    data: tuple[tuple[str, str, int], ...] = ()  # split, label, number of examples
    feedback: tuple[tuple[str, int], ...] = ()  # kind, number of answers that the model was taught
    people: int = 0  # who gave them
    names: tuple[str, ...] = ()  # of those people, where that was asked for
    agreement: tuple[Agreement, ...] = ()
    licence: str | None = None  # as the hub abbreviates it, such as apache-2.0
    language: str | None = None  # as the hub abbreviates it, such as en
    command: str | None = None  # that made the export


def facts_of(
    name: str,
    *,
    examples: Iterable[Example] = (),
    feedback: Sequence[Feedback] = (),
    revision: Revision | None = None,
    report: Report | None = None,
    names: bool = False,
    licence: str | None = None,
    language: str | None = None,
    command: str | None = None,
) -> Facts:
    """The facts of a card, counted from examples and the log of feedback.

    Of the feedback, what the revision says it was taught counts as used; without a revision, all that stands.
    Agreement is over all that stands. People are only named if asked for.
    """
    opinions = list(resolve(feedback).values())
    reviewed = {one.says.example for one in opinions if isinstance(one.says, Review)}
    counts: Counter[tuple[str, str]] = Counter()
    n_words: dict[str, int] = dict.fromkeys(reviewed, 0)
    for example in examples:  # which may be too many to be held
        counts[example.split or "all", example.label or ""] += 1
        if example.id in reviewed:
            n_words[example.id] = len(Words(example))
    used = set(revision.feedback) if revision is not None else {one.id for one in opinions}
    taught = [one for one in feedback if one.id in used and not isinstance(one.says, Review | Ruling)]
    people = sorted({one.author for one in taught})
    kinds = Counter(one.says.kind for one in taught)
    found = agreement_by_kind(opinions, words=n_words) if len({one.author for one in opinions}) > 1 else []
    return Facts(
        name,
        revision,
        report,
        tuple((split, label, n) for (split, label), n in sorted(counts.items())),
        tuple(sorted(kinds.items())),
        len(people),
        tuple(people) if names else (),
        tuple(one for one in found if one.alpha is not None),
        licence,
        language,
        command,
    )


def versions() -> dict[str, str]:
    """Of this library and those that read what it writes."""
    libraries = {name: version(name) for name in ("torch", "transformers", "safetensors", "pyarrow")}
    return {"unhans": __version__, "python": platform.python_version()} | libraries


def model_card(classifier: TransformerClassifier, facts: Facts, checked: str) -> str:
    """README.md of a model folder: facts only, what got worse first, all that comes from people escaped."""
    labels = ", ".join(map(_plain, classifier.labels))
    sections = [
        _front_matter(facts),
        f"# {_plain(facts.name)}",
        f"A text classifier: it gives each text, or pair of texts, one of {len(classifier.labels)} labels ({labels}).",
        _worse(facts.report),
        _use(classifier),
        _origin(classifier, facts),
        _data(facts),
        _feedback(facts),
        _measures(facts.report),
        _effects(facts.report),
        _expectations(facts.report),
        _limits(classifier, facts),
        _making(facts, checked),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _front_matter(facts: Facts) -> str:
    """YAML; whatever is not ours stands in it as JSON, which is YAML too."""
    language = [f"language: {json.dumps(facts.language)}"] if facts.language else []
    lines = [
        "library_name: transformers",
        "pipeline_tag: text-classification",
        f"license: {json.dumps(facts.licence or 'unknown')}",
        *language,
        "tags:",
        "- text-classification",
        "- unhans",
    ]
    return "\n".join(["---", *lines, "---"])


def _worse(report: Report | None) -> str:
    lines = [f"- {_plain(sentence(one))}" for one in report.worse] if report is not None else []
    if report is not None:
        missed = [one for one in report.expectations if not one.holds]
        lines += [f"- Not as expected: {_plain(one.text)}. {_plain(one.says)}" for one in missed]
        if report.n_broken:
            lines.append(
                f"- {report.n_broken:,} examples that were right became wrong ({report.n_fixed:,} the other way)."
            )
    if report is None or report.before is None:
        lines.append("- It was not compared with another model, so nothing is known about that.")
    return "\n".join(["## What got worse", "", *(lines or ["Nothing that was measured fell beyond its interval."])])


def _use(classifier: TransformerClassifier) -> str:
    own = ["import unhans.averaging  # the architecture; transformers does not have it"]
    lines = [
        *(own if type(classifier.model).__module__.startswith("unhans.") else []),
        "from transformers import pipeline",
        "",
        'classify = pipeline("text-classification", model="the path of this folder")',
    ]
    return "\n".join(["## Use", "", "```python", *lines, "```"])


def _origin(classifier: TransformerClassifier, facts: Facts) -> str:
    model, revision = classifier.model, facts.revision
    n = sum(weight.numel() for weight in model.parameters())
    lines = [
        f"- Revision: {_plain(revision.id if revision is not None else classifier.revision)}",
        f"- Parent: {_plain(revision.parent) if revision is not None and revision.parent else 'none'}",
        f"- Architecture: {_plain(type(model).__name__)}, {n:,} weights",
    ]
    if revision is not None:
        recipe = revision.recipe
        lines.append(f"- Made by: {_plain(recipe.family)}, {_plain(recipe.name)}")
        lines += [f"  - {_plain(name)}: {_plain(str(value))}" for name, value in recipe.options]
        lines += [] if recipe.seed is None else [f"  - seed: {recipe.seed}"]
        lines += [] if revision.at is None else [f"- Made at: {_plain(revision.at)}"]
    return "\n".join(["## Where it comes from", "", *lines])


def _data(facts: Facts) -> str:
    rows = [(split, label or "no label", f"{n:,}") for split, label, n in facts.data]
    table = _table(("split", "label", "examples"), rows) if rows else "Nothing is recorded about the data."
    return f"## Data\n\n{table}"


def _feedback(facts: Facts) -> str:
    if not facts.feedback:
        return "## Feedback\n\nThis model was not taught any feedback."
    rows = [(kind.replace("_", " "), f"{n:,}") for kind, n in facts.feedback]
    who = "1 person" if facts.people == 1 else f"{facts.people:,} people"
    who += f": {', '.join(map(_plain, facts.names))}" if facts.names else ""
    told = [f"Given by {who}.", "", _table(("kind", "answers"), rows)]
    if facts.agreement:
        agreed = [
            (
                one.kind.replace("_", " "),
                f"{one.alpha:.2f}",
                f"{one.low:.2f} to {one.high:.2f}" if one.low is not None else "–",
                f"{one.questions:,}",
            )
            for one in facts.agreement
        ]
        head = ("kind", "Krippendorff's alpha", "95 % interval", "questions answered by several people")
        told += ["", "How far people agree, on all that was asked:", "", _table(head, agreed)]
    return "\n".join(["## Feedback", "", *told])


def _measures(report: Report | None) -> str:
    if report is None or not report.measures:
        return "## Measures\n\nNothing was measured."
    head = ("in points", "set", "part", "examples", "before", "after", "change (95 % interval)", "verdict")
    order = {"worse": 0, "better": 1, "same": 2}
    rows = [
        (
            one.name,
            one.data,
            one.slice or "all",
            f"{one.n:,}" if one.n else "–",
            _points(one.before),
            _points(one.after),
            _change(one),
            one.verdict,
        )
        for one in sorted(report.measures, key=lambda one: order[one.verdict])
    ]
    notes = [f"- {_plain(note)}" for note in report.notes]
    lines = [_table(head, rows), "", f"{report.n_fixed:,} examples became right, {report.n_broken:,} became wrong."]
    return "\n".join(["## Measures", "", *lines, *(["", *notes] if notes else [])])


def _effects(report: Report | None) -> str:
    if report is None or not report.words:
        return ""
    head = ("word", "label", "vote", "where", "share before", "share after", "heard", "texts")
    rows = [
        (
            one.word,
            one.label,
            one.vote,
            "everywhere" if one.example is None else "one example",
            _points(one.before),
            _points(one.after),
            "yes" if one.heard else "no",
            f"{one.texts:,}",
        )
        for one in report.words[:_MOST]
    ]
    more = [] if len(report.words) <= _MOST else ["", f"… and {len(report.words) - _MOST:,} more."]
    about = "A share is a word's part of the absolute scores of its text, on average, in points."
    return "\n".join(["## What became of the votes", "", about, "", _table(head, rows), *more])


def _expectations(report: Report | None) -> str:
    if report is None or not report.expectations:
        return ""
    rows = [(one.text, "yes" if one.holds else "no", one.says) for one in report.expectations]
    return f"## Expectations\n\n{_table(('expected', 'holds', 'measured'), rows)}"


def _limits(classifier: TransformerClassifier, facts: Facts) -> str:
    lines = [
        f"- At most {classifier.limit} tokens of a text are read; what lies beyond has no say.",
        f"- Language of the texts: {_plain(facts.language) if facts.language else 'unknown'}.",
        "- Every text gets one of the labels, also a text that is about something else.",
    ]
    if facts.report is not None and facts.report.measures:
        sets = ", ".join(_plain(name) for name in dict.fromkeys(one.data for one in facts.report.measures))
        lines.append(f"- The measures are about these sets, and say nothing about other texts: {sets}.")
        if " · " in sets:
            lines.append(
                "- Sets with a · in their name were made from the votes by changing texts; nobody wrote them so."
            )
    else:
        lines.append("- How well it does was not measured for this card.")
    lines.append("- Only words that people voted on were looked after. Other shortcuts may be left that nobody saw.")
    return "\n".join(["## Limits", "", *lines])


def _making(facts: Facts, checked: str) -> str:
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    command = [f"- Command: {_plain(facts.command)}"] if facts.command else []
    lines = [f"- {checked}", *command, f"- Versions: {numbers}", "- manifest.json has the hash of every file."]
    return "\n".join(["## How this folder was made", "", *lines])


def _change(one: Measure) -> str:
    if one.change is None:
        return "–"
    interval = "" if one.low is None or one.high is None else f" ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
    return f"{100 * one.change:+.1f}{interval}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_MARKUP = re.compile(r"[\\`*_{}\[\]#|~$!]|://|@")
_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;"})


def _plain(text: str) -> str:
    """Text from people as it may stand in Markdown: one line, no markup, no links, nothing that steers."""
    shown = printable(" ".join(text.split())).translate(_HTML)
    return _MARKUP.sub(lambda found: "\\:\\/\\/" if found[0] == "://" else f"\\{found[0]}", shown)
