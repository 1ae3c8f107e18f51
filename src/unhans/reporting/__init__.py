"""How a `Report` is told: in a terminal, as Markdown, as JUnit XML for machines, and as a page that opens offline.

What got worse comes first everywhere, and better and worse are said by sign and word, never by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from xml.etree import ElementTree

from unhans.present import printable
from unhans.reporting._audit import audit_headline, audit_page, audit_text
from unhans.reporting._page import report_page
from unhans.reporting._words import (
    MADE,
    by_set,
    called,
    expectation_table,
    headline,
    held,
    made_table,
    measure_table,
    moved,
    provenance,
    rival_table,
    sentence,
    short_names,
    vote_table,
)
from unhans.types import Change, Report

__all__ = [
    "MADE",
    "audit_headline",
    "audit_page",
    "audit_text",
    "called",
    "headline",
    "report_junit",
    "report_markdown",
    "report_page",
    "report_text",
    "sentence",
    "short_names",
]

_LISTED = 10  # examples that became right or wrong, in Markdown
_EXCERPT = 300  # characters of them
_MARKS = re.compile(r"([\\`*_{}\[\]#|~$:])")  # signs that mean something to Markdown in the middle of a line
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report_text(report: Report) -> str:
    """Plain lines for a terminal: the verdict, the notes, expectations, measures, and what became of the votes.

    Parts of sets are shown where they got better or worse, and sets made from votes by their accuracy alone.
    """
    lines = [headline(report), *(f"- {note}" for note in report.notes)]
    if report.expectations:
        lines += ["", held(report)]
        lines += [f"  {'ok  ' if one.holds else 'FAIL'}  {one.text}  ({one.says})" for one in report.expectations]
    for data, measures in by_set(report.measures).items():
        shown = [measure for measure in measures if not measure.slice or measure.verdict != "same"]
        lines += ["", data, *_aligned(*measure_table(shown))] if MADE not in data else []
    if (table := made_table(report))[1]:
        lines += ["", "sets made from votes", *_aligned(*table)]
    if report.words:
        lines += ["", "votes", *_aligned(*vote_table(report.words))]
    if report.moved is not None:
        lines += ["", moved(report.moved)]
    if report.rivals:
        lines += ["", *_aligned(*rival_table(report))]
    return "\n".join(printable(line) for line in lines) + "\n"


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def report_markdown(report: Report, title: str = "Before and after") -> str:
    """For a pull request or a wiki; whatever comes from data is escaped."""
    parts = [f"# {_md(title)}", f"**{_md(headline(report))}**", "\n".join(f"- {_md(note)}" for note in report.notes)]
    if report.expectations:
        parts += ["## Expectations", _md_table(*expectation_table(report))]
    for data, measures in by_set(report.measures).items():
        parts += [f"## {_md(data)}", _md_table(*measure_table(measures))]
    for name, changes, n in (("wrong", report.broken, report.n_broken), ("right", report.fixed, report.n_fixed)):
        if changes:
            shown = f" (the first {_LISTED})" if n > _LISTED else ""
            parts += [f"## {n:,} became {name}{shown}", "\n".join(map(_md_item, changes[:_LISTED]))]
    if report.words:
        parts += ["## Votes", _md_table(*vote_table(report.words))]
    if report.moved is not None:
        parts.append(_md(moved(report.moved)))
    if report.rivals:
        parts += ["## Other fixes", _md_table(*rival_table(report))]
    parts.append(" · ".join(map(_md, provenance(report))))
    return "\n\n".join(part for part in parts if part) + "\n"


def _md(text: str) -> str:
    """Text as it may stand in Markdown: no markup, no links, and nobody is called by an @ in some example."""
    return escape(_MARKS.sub(r"\\\1", printable(text)), quote=False).replace("@", "@\u200b")


def _md_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, *rows]
    told = [f"| {' | '.join(map(_md, row))} |" for row in lines]
    return "\n".join([told[0], "|" + " --- |" * len(head), *told[1:]])


def _md_item(change: Change) -> str:
    text = " / ".join(change.example.parts)
    text = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    said = f"given {change.example.label}, before {change.before.label}, after {change.after.label}"
    return f"- {_md(change.data)}: {_md(said)} ({change.after.confidence:.0%}): {_md(text)}"


def report_junit(report: Report) -> str:
    """JUnit XML, as CI servers read it: a test case for each expectation."""
    failed = sum(not one.holds for one in report.expectations)
    counts = {"name": "unhans", "tests": str(len(report.expectations)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", counts | {"skipped": "0", "time": "0"})
    properties = ElementTree.SubElement(suite, "properties")
    facts = [("before", report.before or ""), ("after", report.after)]
    facts += [(f"{m.name}({m.data})", f"{m.after:.6g}") for m in report.measures if not m.slice]
    for name, value in facts:
        ElementTree.SubElement(properties, "property", {"name": _xml(name), "value": _xml(value)})
    for one in report.expectations:
        named = {"classname": "unhans.expectations", "name": _xml(one.text), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        if not one.holds:
            failure = {"message": _xml(one.says), "type": "expectation"}
            ElementTree.SubElement(case, "failure", failure).text = _xml(one.says)
    ElementTree.SubElement(suite, "system-out").text = _xml(report_text(report))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Without the characters that no XML may have."""
    return _NOT_XML.sub("", text)
