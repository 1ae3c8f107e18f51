"""A report as one HTML file, and as it is drawn in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unhans.present import heat_map, html_table, legend, safe_html, scale, scale_bar, whole_page
from unhans.reporting._curve import curve
from unhans.reporting._words import (
    MADE,
    NOTHING,
    accuracies,
    by_set,
    expectation_table,
    headline,
    held,
    made_table,
    measure_table,
    moved,
    provenance,
    rival_table,
    sentence,
    vote_table,
)
from unhans.types import Attribution, Change, Measure, Prediction, Report, to_html

_EMPTY = ' class="empty"'
_OPEN = 5  # examples in each column that need no click


def report_page(report: Report, title: str = "Before and after") -> str:
    """One HTML file without scripts or other files, for light and dark, narrow and wide screens."""
    return whole_page(title, "".join(_sections(report)), _STYLE)


@to_html.register
def _(noun: Report) -> str:
    notes = "".join(f"<li>{safe_html(note)}</li>" for note in noun.notes)
    tables = [html_table(*expectation_table(noun), held(noun))] if noun.expectations else []
    for data, measures in by_set(noun.measures).items():
        tables.append(html_table(*measure_table([measure for measure in measures if not measure.slice]), data))
    if noun.words:
        tables.append(html_table(*vote_table(noun.words), "what became of the votes"))
    return f"<div><p><b>{safe_html(headline(noun))}</b></p><ul>{notes}</ul>{''.join(tables)}</div>"


def _sections(report: Report) -> Iterator[str]:
    yield f'<p class="lead">{safe_html(headline(report))}</p>{_notes(report)}'
    if report.expectations:
        yield _section("Expectations", _expectations(report))
    yield _section("Measures", _measures(report))
    if report.words or report.moved is not None:
        yield _section("What became of the votes", _votes(report))
    if report.fixed or report.broken:
        yield _section("Examples that changed sides", _changes(report))
    if report.rivals:
        yield _section("Other fixes for the same feedback", _rivals(report))
    facts = "".join(f"<li><bdi>{safe_html(fact)}</bdi></li>" for fact in provenance(report))
    yield f'<footer class="quiet"><ul>{facts}</ul></footer>'


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _notes(report: Report) -> str:
    """The notes, each with a sign: what got worse, what got better, and the rest."""
    signs = {sentence(m): m.verdict for m in report.measures if m.verdict != "same"}

    def item(note: str) -> str:
        kind = signs.get(note, "")
        sign = {"worse": "<b>▼ worse</b> ", "better": "<b>▲ better</b> "}.get(kind, "")
        return f'<li class="{kind}">{sign}<bdi>{safe_html(note)}</bdi></li>'

    return f'<ul class="marked">{"".join(map(item, report.notes))}</ul>' if report.notes else ""


def _expectations(report: Report) -> str:
    items = "".join(
        f'<li class="{"better" if one.holds else "worse"}"><b>{"✓ holds" if one.holds else "✗ fails"}</b> '
        f'<code><bdi>{safe_html(one.text)}</bdi></code> <span class="quiet">{safe_html(one.says)}</span></li>'
        for one in report.expectations
    )
    return f'<p>{held(report)}</p><ul class="marked">{items}</ul>'


# Numbers


def _measures(report: Report) -> str:
    told = ['<p class="quiet">In points of a hundred. Better or worse is a change whose whole 95 % interval is.</p>']
    sets = by_set(report.measures)
    told += [_set(data, measures) for data, measures in sets.items() if MADE not in data]
    if made := [_set(data, measures) for data, measures in sets.items() if MADE in data]:
        kinds = [measure.verdict for measure in accuracies(report) if MADE in measure.data]
        told.append(f"<h3>Sets made from votes</h3>{_table(*made_table(report), kinds)}")
        told.append(f"<details><summary>All their measures</summary>{''.join(made)}</details>")
    return "".join(told)


def _set(data: str, measures: Sequence[Measure]) -> str:
    """The measures of a whole set, and those of its parts behind a click unless one of them got worse."""
    whole = [measure for measure in measures if not measure.slice]
    parts = [measure for measure in measures if measure.slice]
    size = max((measure.n for measure in whole), default=0)
    told = f"<h3><bdi>{safe_html(data)}</bdi> <small>{size:,} examples</small></h3>{_table_of(whole)}"
    if parts:
        fell = sum(measure.verdict == "worse" for measure in parts)
        what = f"By label and group: {len(parts)} measures{f', {fell} worse' if fell else ''}"
        told += f"<details{' open' if fell else ''}><summary>{what}</summary>{_table_of(parts)}</details>"
    return told


def _table_of(measures: Sequence[Measure]) -> str:
    return _table(*measure_table(measures), [measure.verdict for measure in measures])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str] = ()) -> str:
    """A table that becomes a list of cards where the screen is too narrow for it."""
    top = "".join(f'<th scope="col">{safe_html(name)}</th>' for name in head)
    lines = []
    for number, row in enumerate(rows):
        kind = f' class="{kinds[number]}"' if kinds else ""
        cells = "".join(
            f'<td data-name="{safe_html(name)}"{_EMPTY if cell == NOTHING else ""}><bdi>{safe_html(cell)}</bdi></td>'
            for name, cell in zip(head[1:], row[1:], strict=True)
        )
        lines.append(f'<tr{kind}><th scope="row"><bdi>{safe_html(row[0])}</bdi></th>{cells}</tr>')
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def _votes(report: Report) -> str:
    rest = "" if report.moved is None else f"<p>{safe_html(moved(report.moved))}</p>"
    if not report.words:
        return rest
    heard = [one.heard for one in report.words]
    told = f"{sum(heard)} of {len(heard)} votes moved their word the way they asked for."
    about = "A share is the word's part of all that the words of a text say, for or against the label."
    table = _table(*vote_table(report.words), ["better" if one else "worse" for one in heard])
    return f'<p>{told}</p><p class="quiet">{about}</p>{table}{rest}'


def _rivals(report: Report) -> str:
    notes = "".join(f"<li><bdi>{safe_html(rival.note)}</bdi></li>" for rival in report.rivals if rival.note)
    return f'{curve(report)}<ul class="plain">{notes}</ul>{_table(*rival_table(report))}'


# Examples that became wrong, beside those that became right


def _changes(report: Report) -> str:
    columns = [
        _column(f"▼ {report.n_broken:,} became wrong", report.broken, report.n_broken),
        _column(f"▲ {report.n_fixed:,} became right", report.fixed, report.n_fixed),
    ]
    why = next((change.why_after for change in (*report.broken, *report.fixed) if change.why_after is not None), None)
    return f'{"" if why is None else _key(why)}<div class="sides">{"".join(columns)}</div>'


def _key(why: Attribution) -> str:
    """How to read the colours."""
    warning = f'<p class="quiet">Caution: {safe_html(why.terms.warning)}</p>' if why.terms.warning else ""
    signed = why.terms.signed
    return (
        f'<div class="legend"><p>{scale_bar(signed)} {legend(signed)} (the given label). The two heat maps of '
        "an example share one scale; rest on a word to see its score.</p>"
        f'<p class="quiet">{safe_html(str(why.recipe))} · {safe_html(str(why.terms))}</p>{warning}</div>'
    )


def _column(title: str, changes: Sequence[Change], n: int) -> str:
    body = "".join(map(_change, changes[:_OPEN])) or '<p class="quiet">None.</p>'
    if rest := changes[_OPEN:]:
        some = f" of {n - _OPEN:,}" if n > len(changes) else ""
        body += f"<details><summary>{len(rest)}{some} more</summary>{''.join(map(_change, rest))}</details>"
    return f"<div><h3>{title}</h3>{body}</div>"


def _change(change: Change) -> str:
    example, why = change.example, [one for one in (change.why_before, change.why_after) if one is not None]
    top = scale([score for one in why for score in one.scores])
    told = [
        f'<p class="quiet"><bdi>{safe_html(change.data)}</bdi> · <bdi>{safe_html(example.id)}</bdi> · '
        f"given <b><bdi>{safe_html(str(example.label))}</bdi></b></p>",
        _said("before", change.before, example.label, change.why_before, top),
        _said("after", change.after, example.label, change.why_after, top),
    ]
    if not why:
        told.insert(1, "".join(f'<p dir="auto" class="heat">{safe_html(part)}</p>' for part in example.parts))
    return f"<article>{''.join(told)}</article>"


def _said(when: str, said: Prediction, given: str | None, why: Attribution | None, top: float) -> str:
    verdict = "✓ right" if said.label == given else "✗ wrong"
    told = f"{when}: <b><bdi>{safe_html(said.label)}</bdi></b> {said.confidence:.0%} {verdict}"
    drawn = "" if why is None else f'<div class="heat">{heat_map(why, top)}</div>'
    return f'<p class="verdict">{told}</p>{drawn}'


_STYLE = """
:root{--good:#0b6b3a;--bad:#a8231b;--good-ground:#e9f5ee;--bad-ground:#fcecea}
@media(prefers-color-scheme:dark){:root{--good:#6fd19b;--bad:#ff9d94;--good-ground:#14271c;--bad-ground:#331c1a}}
body{max-width:70rem}
h2{font-size:1.2rem;margin:0 0 .5rem}
h3{font-size:1rem;margin:1rem 0 .3rem;overflow-wrap:anywhere}
h3 small,.quiet{opacity:.75;font-weight:normal;font-size:.88rem}
p{margin:.3rem 0;overflow-wrap:anywhere}
section{border-top:1px solid var(--rule);margin-top:1.4rem;padding-top:1rem}
.lead{font-size:1.15rem;font-weight:600}
.marked{list-style:none;padding:0;margin:.6rem 0}
.marked li{border-left:4px solid var(--rule);padding:.2rem .7rem;margin:.3rem 0;overflow-wrap:anywhere}
.marked .worse{border-color:var(--bad);background:var(--bad-ground)}
.marked .better{border-color:var(--good);background:var(--good-ground)}
.worse>b,.worse>[data-name=""]{color:var(--bad);font-weight:600}
.better>b,.better>[data-name=""]{color:var(--good);font-weight:600}
code{font-family:ui-monospace,monospace}
table{border-collapse:collapse;margin:.3rem 0;font-variant-numeric:tabular-nums;max-width:100%}
th,td{text-align:left;padding:.22rem 1.1rem .22rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
tbody th{font-weight:normal;overflow-wrap:anywhere}
thead th{font-size:.85rem;opacity:.75;font-weight:normal;vertical-align:bottom}
.wide{overflow-x:auto}
details{margin:.4rem 0}
summary{cursor:pointer;padding:.2rem 0}
.plain{padding-left:1.1rem;overflow-wrap:anywhere}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:0 2rem}
.sides>div{min-width:0}
article{padding:.7rem 0}
.heat{border:1px solid var(--rule);border-radius:6px;padding:.1rem .6rem;margin:.2rem 0 .5rem;overflow-wrap:anywhere}
.verdict{margin:.1rem 0}
figure{margin:.6rem 0 1rem;max-width:38rem}
figcaption{font-weight:600}
.curve{width:100%;height:auto}
.curve text{fill:var(--ink);font:12px system-ui,sans-serif}
.tick{stroke:var(--rule)}
.chosen{stroke:var(--ink);stroke-dasharray:2 3;opacity:.6}
polyline{fill:none;stroke-width:2}
.line0{stroke:#0072b2;fill:#0072b2}
.line1{stroke:#b06c00;fill:#b06c00}
.line2{stroke:#a8558a;fill:#a8558a}
@media(prefers-color-scheme:dark){.line0{stroke:#56b4e9;fill:#56b4e9}.line1{stroke:#e69f00;fill:#e69f00}
.line2{stroke:#cc79a7;fill:#cc79a7}}
.key{list-style:none;padding:0;margin:.2rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem}
.key svg{vertical-align:-.15rem}
footer{border-top:1px solid var(--rule);margin-top:2rem}
footer ul{padding-left:1.1rem;overflow-wrap:anywhere}
@media(max-width:46rem){
.sides{grid-template-columns:1fr}
thead{display:none}
table,tbody,tr,tbody th{display:block}
tr{border-bottom:1px solid var(--rule);padding:.35rem 0}
th,td{border:0;padding:0}
tbody th{font-weight:600}
td{display:inline-block;margin-right:.9rem}
.empty{display:none}
.curve text{font-size:19px}
td:not([data-name=""])::before{content:attr(data-name) " ";opacity:.75;font-size:.85rem}
}
"""
