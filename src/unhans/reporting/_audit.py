"""How an `Audit` is told: in a terminal, in a notebook, and as a page that opens offline; the severest comes first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from unhans.present import html_table, printable, safe_html, whole_page
from unhans.reporting._words import NOTHING
from unhans.types import Audit, CheckRun, Evidence, Example, Finding, Severity, to_html
from unhans.types import Variant as Changed

_SIGNS: dict[Severity, str] = {"high": "▲ high", "medium": "◆ medium", "low": "▽ low"}  # told by sign, word and place
_STATES = {"done": "ran", "left out": "left out", "waiting": "to come"}
_SHOWN, _OPEN = 5, 3  # changed texts and examples of a finding: in a terminal or at all, and without a click
_EXCERPT = 300  # characters of an example
_WIDTH = 100
_EVIDENCE_HEAD = ("what", "value", "95 % interval", "usual", "texts")
_CHECK_HEAD = ("check", "", "findings", "seconds", "what it came to")


def audit_headline(audit: Audit) -> str:
    """The whole audit in a sentence."""
    left = sum(run.state == "waiting" for run in audit.checks)
    counts = [(sum(one.severity == name for one in audit.findings), name) for name in _SIGNS]
    told = ", ".join(f"{n} {name}" for n, name in counts if n)
    n = len(audit.findings)
    found = f"{n} finding{'' if n == 1 else 's'}: {told}" if n else "Nothing was found"
    ran = sum(run.state == "done" for run in audit.checks)
    by = f"by {ran} of {len(audit.checks)} checks on {audit.examples:,} examples"
    return f"{found}, {by}{f'; {left} are still to come' if left else ''}."


def audit_text(audit: Audit) -> str:
    """Plain lines for a terminal: findings, the severest first, then what ran and what was left out."""
    lines = [audit_headline(audit), *(f"- {note}" for note in audit.notes)]
    for one in audit.findings:
        lines += ["", *_told(one)]
    lines += ["", "Checks"]
    for run in audit.checks:
        lines += list(_wrapped(f"{run.title} ({run.check.name}): {_STATES[run.state]}. {run.says}", "  "))
    return "\n".join(printable(line) for line in lines) + "\n"


def _told(one: Finding) -> Iterator[str]:
    yield from _wrapped(f"{_SIGNS[one.severity].upper()}  {one.title}")
    yield from _wrapped(one.says, "    ")
    for evidence in one.evidence:
        value, interval, usual, n = _cells(evidence)[1:]
        what, _, of = evidence.what.partition("; usual: ")
        ends = f" [{interval}]" if interval != NOTHING else ""
        compared = "" if usual == NOTHING else f"; usual {usual}{f' ({of})' if of else ''}"
        yield from _wrapped(
            f"{what}: {value}{ends}{compared}{f'; {n} texts' if evidence.n else ''}", "    · ", "      "
        )
    for variant in one.variants[:_SHOWN]:
        text = " ‖ ".join(part for part in (variant.text, variant.pair) if part is not None)
        yield f"    {variant.before} → {variant.after}: {_excerpt(text, _WIDTH)}"
    if one.examples:
        yield f"    examples: {', '.join(one.examples[:_SHOWN])}"
    screen = f" (screen {one.screen})" if one.screen else ""
    yield from _wrapped(f"next: {one.next}{screen}", "    ")
    yield from _wrapped(f"cannot show: {one.limits}", "    ")


def _wrapped(text: str, first: str = "", rest: str | None = None) -> Iterator[str]:
    yield from textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest)


def _cells(one: Evidence) -> tuple[str, ...]:
    ends = NOTHING if one.low is None or one.high is None else f"{_number(one.low)} to {_number(one.high)}"
    usual = NOTHING if one.usual is None else _number(one.usual)
    return one.what, _number(one.value), ends, usual, f"{one.n:,}" if one.n else NOTHING


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _excerpt(text: str, most: int = _EXCERPT) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


# -- a page


def audit_page(audit: Audit, title: str = "Audit", examples: Mapping[str, Example] | None = None) -> str:
    """One HTML file without scripts or other files, for light and dark, narrow and wide screens.

    With `examples`, by their ids, the texts that show a finding stand beside it.
    """
    known = examples or {}
    notes = "".join(f"<li><bdi>{safe_html(note)}</bdi></li>" for note in audit.notes)
    body = [f'<p class="lead">{safe_html(audit_headline(audit))}</p>{f"<ul>{notes}</ul>" if notes else ""}']
    body += [_article(one, known) for one in audit.findings]
    body.append(f"<section><h2>What ran, and what was left out</h2>{_runs(audit.checks)}</section>")
    facts = [f"model {audit.revision}", f"{audit.training:,} training examples known"]
    facts += [f"by {audit.recipe}"] if audit.recipe else []
    facts += [f"at {audit.at}"] if audit.at else []
    told = "".join(f"<li><bdi>{safe_html(fact)}</bdi></li>" for fact in facts)
    return whole_page(title, "".join([*body, f'<footer class="quiet"><ul>{told}</ul></footer>']), _STYLE)


def _article(one: Finding, known: Mapping[str, Example]) -> str:
    screen = f' <span class="quiet">Screen: {safe_html(one.screen)}</span>' if one.screen else ""
    parts = [
        f'<h2><span class="tag {one.severity}">{_SIGNS[one.severity]}</span> <bdi>{safe_html(one.title)}</bdi></h2>',
        f"<p>{safe_html(one.says)}</p>",
        _table(_EVIDENCE_HEAD, [_cells(evidence) for evidence in one.evidence]),
        _folded([_variant(variant) for variant in one.variants], "changed text"),
        _folded([_example(id_, known) for id_ in one.examples if id_ in known], "example"),
        f"<p><b>Next:</b> {safe_html(one.next)}{screen}</p>",
        f'<p class="quiet"><b>What this cannot show:</b> {safe_html(one.limits)}</p>',
        f'<p class="quiet">{safe_html(str(one.check))} · {safe_html(one.id)}</p>',
    ]
    return f"<article>{''.join(parts)}</article>"


def _folded(items: Sequence[str], name: str) -> str:
    """The first few, and the rest behind a click."""
    if not items:
        return ""
    told = f'<ul class="texts">{"".join(items[:_OPEN])}</ul>'
    if rest := items[_OPEN:]:
        more = f"{len(rest)} more {name}{'' if len(rest) == 1 else 's'}"
        told += f'<details><summary>{more}</summary><ul class="texts">{"".join(rest)}</ul></details>'
    return told


def _variant(one: Changed) -> str:
    parts = "".join(f'<p dir="auto">{safe_html(part)}</p>' for part in (one.text, one.pair) if part is not None)
    verdict = f"<b><bdi>{safe_html(one.before)}</bdi></b> → <b><bdi>{safe_html(one.after)}</bdi></b>"
    return f'<li>{parts}<p class="quiet">{verdict} ({100 * one.change:+.0f} points) · {safe_html(one.example)}</p></li>'


def _example(id_: str, known: Mapping[str, Example]) -> str:
    example = known[id_]
    parts = "".join(f'<p dir="auto">{safe_html(_excerpt(part))}</p>' for part in example.parts)
    given = f" · given <b><bdi>{safe_html(example.label)}</bdi></b>" if example.label is not None else ""
    return f'<li>{parts}<p class="quiet"><bdi>{safe_html(id_)}</bdi>{given}</p></li>'


def _runs(runs: Sequence[CheckRun]) -> str:
    rows = [
        (
            f"{run.title} ({run.check.name})",
            _STATES[run.state],
            str(run.findings) if run.state == "done" else NOTHING,
            NOTHING if run.seconds is None else f"{run.seconds:.1f}",
            run.says,
        )
        for run in runs
    ]
    return _table(_CHECK_HEAD, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that becomes a list of cards where the screen is too narrow for it."""
    top = "".join(f'<th scope="col">{safe_html(name)}</th>' for name in head)
    lines = []
    for row in rows:
        cells = "".join(
            f'<td data-name="{safe_html(name)}"><bdi>{safe_html(cell)}</bdi></td>'
            for name, cell in zip(head[1:], row[1:], strict=True)
        )
        lines.append(f'<tr><th scope="row"><bdi>{safe_html(row[0])}</bdi></th>{cells}</tr>')
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


@to_html.register
def _(noun: Audit) -> str:
    rows = [(_SIGNS[one.severity], one.title, one.next) for one in noun.findings]
    table = html_table(("severity", "finding", "next"), rows) if rows else ""
    return f"<div><p><b>{safe_html(audit_headline(noun))}</b></p>{table}</div>"


@to_html.register
def _(noun: Finding) -> str:
    title = f"<p><b>{_SIGNS[noun.severity]}: {safe_html(noun.title)}</b></p><p>{safe_html(noun.says)}</p>"
    table = html_table(_EVIDENCE_HEAD, [_cells(one) for one in noun.evidence])
    return f"<div>{title}{table}<p>{safe_html(noun.next)}</p><p>{safe_html(noun.limits)}</p></div>"


_STYLE = """
:root{--high:#a8231b;--medium:#7a4a00;--low:#2f5d8a}
@media(prefers-color-scheme:dark){:root{--high:#ff9d94;--medium:#f0b660;--low:#8fc1f0}}
body{max-width:70rem}
h2{font-size:1.15rem;margin:0 0 .4rem}
p{margin:.3rem 0;overflow-wrap:anywhere}
.lead{font-size:1.15rem;font-weight:600}
.quiet{opacity:.75;font-size:.88rem}
.tag{border:1px solid currentColor;border-radius:4px;padding:0 .4rem;font-size:.85rem;white-space:nowrap}
.high{color:var(--high)}.medium{color:var(--medium)}.low{color:var(--low)}
section,footer{border-top:1px solid var(--rule);margin-top:1.4rem;padding-top:1rem}
table{border-collapse:collapse;margin:.4rem 0;font-variant-numeric:tabular-nums;max-width:100%}
th,td{text-align:left;padding:.22rem 1.1rem .22rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
tbody th{font-weight:normal;overflow-wrap:anywhere}
thead th{font-size:.85rem;opacity:.75;font-weight:normal;vertical-align:bottom}
.wide{overflow-x:auto}
.texts{list-style:none;padding:0;margin:.4rem 0}
.texts li{border-left:4px solid var(--rule);padding:.1rem .7rem;margin:.4rem 0}
summary{cursor:pointer;padding:.2rem 0}
@media(max-width:46rem){
thead{display:none}
table,tbody,tr,tbody th{display:block}
tr{border-bottom:1px solid var(--rule);padding:.35rem 0}
th,td{border:0;padding:0}
tbody th{font-weight:600}
td{display:inline-block;margin-right:.9rem}
td:not([data-name=""])::before{content:attr(data-name) " ";opacity:.75;font-size:.85rem}
}
"""
