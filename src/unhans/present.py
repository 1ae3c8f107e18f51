"""How nouns look: on a terminal and in a notebook.

Blue speaks for, orange against; the sign is never told by colour alone (underline and minus say it too). Everything
that comes from data is escaped: a text may contain markup, control characters or marks that turn the writing direction.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text as Line

from unhans.types import Attribution, Comparison, Example, Grade, Prediction, WordRanking, to_html

_FOR, _AGAINST = (0, 114, 178), (230, 159, 0)  # blue and orange differ for every kind of colour blindness
_STRONGEST = {_FOR: 0.6, _AGAINST: 0.45}  # opacity of the strongest word: text keeps a contrast of 4.5 in both themes
_NOISE = 1e-4  # below this, in any unit, all words weigh about the same
_RTL_AND_FRIENDS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text with control characters and direction marks spelled out, so that no data can steer a terminal."""
    return "".join(sign if sign == " " or not _steers(sign) else _spelled(sign) for sign in text)


def safe_html(text: str) -> str:
    """Text from data as it may stand in a page."""
    return escape(printable(text))


def heat_line(attribution: Attribution) -> Line:
    """The words of an example in reading order: bold for the label, underlined against it, stronger is brighter."""
    line = Line()
    top = scale(attribution.scores)
    digits = ".1f" if top >= 1 else ".2f" if top >= 0.1 else ".0e"
    for number, (word, score) in enumerate(zip(attribution.words, attribution.scores, strict=True)):
        share = min(1.0, abs(score) / top)
        red, green, blue = _FOR if score > 0 else _AGAINST
        if number in attribution.unread:
            style = "dim strike"
        elif share < 0.1:
            style = ""
        else:
            style = f"{'bold' if score > 0 else 'underline'} rgb({red},{green},{blue})"
        line.append(printable(word), style)
        if share >= 0.1 and number not in attribution.unread:
            line.append(f"{score:+{digits}}", "dim")
        line.append(" ")
    return line


def scale(scores: Sequence[float]) -> float:
    """The score that gets the full colour: the largest, or 1 if all are too small to mean anything."""
    top = max((abs(score) for score in scores), default=0.0)
    return top if top >= _NOISE else 1.0


@to_html.register
def _(noun: Attribution) -> str:
    top = scale(noun.scores)
    words = []
    for number, (word, score) in enumerate(zip(noun.words, noun.scores, strict=True)):
        red, green, blue = colour = _FOR if score > 0 else _AGAINST
        opacity = 0.0 if number in noun.unread else _STRONGEST[colour] * min(1.0, abs(score) / top)
        line = "solid" if score > 0 else "dashed"
        border = f"border-bottom:2px {line} rgba({red},{green},{blue},{min(1.0, opacity * 1.6):.2f});"
        grey = "color:#888;" if number in noun.unread else ""
        ground = f"background:rgba({red},{green},{blue},{opacity:.2f});"
        style = f"{ground}{border}{grey}padding:1px 3px;margin:0 1px;border-radius:3px"
        words.append(f'<bdi style="{style}" title="{score:+.4f}">{safe_html(word)}</bdi>')
    meant = any(abs(score) >= _NOISE for score in noun.scores)
    strength = f"strongest {top:.3g}" if meant else "all words weigh about the same"
    caption = f"{safe_html(noun.caption)} · {strength}"
    legend = "blue, solid line: speaks for it; orange, dashed line: against it"
    return (
        f'<div dir="auto" style="line-height:1.9">{" ".join(words)}'
        f'<div style="font-size:smaller;opacity:.75">{caption}<br>{legend}</div></div>'
    )


@to_html.register
def _(noun: Prediction) -> str:
    ranked = sorted(zip(noun.labels, noun.probabilities, strict=True), key=lambda pair: -pair[1])[:10]
    return html_table(("label", "probability"), [(label, f"{p:.1%}") for label, p in ranked], noun.example)


@to_html.register
def _(noun: Example) -> str:
    facts = [("label", noun.label), ("group", noun.group), ("split", noun.split)]
    told = " · ".join(f"{name} {safe_html(value)}" for name, value in facts if value is not None)
    parts = "".join(f'<p dir="auto" style="margin:.2em 0">{safe_html(part)}</p>' for part in noun.parts)
    return f'<div>{parts}<div style="font-size:smaller;opacity:.75">{safe_html(noun.id)} · {told}</div></div>'


@to_html.register
def _(noun: WordRanking) -> str:
    rows = [(row.word, f"{row.score:+.3f}", f"{row.spread:.3f}", str(row.count)) for row in noun.words[:25]]
    return html_table(("word", "mean score", "spread", "examples"), rows, f"for {noun.label} · {noun.recipe}")


@to_html.register
def _(noun: Grade) -> str:
    told = [("value", noun.value), ("from", noun.low), ("to", noun.high), ("random scores", noun.random), ("p", noun.p)]
    rows = [(name, f"{value:.3g}") for name, value in told if value is not None]
    rows += [("examples", str(noun.examples)), ("undefined", str(noun.undefined))]
    caption = f"{noun.method} by {noun.recipe} · {noun.better} is better · {noun.note}"
    return html_table((noun.metric, noun.family), rows, caption)


@to_html.register
def _(noun: Comparison) -> str:
    notes = "".join(f"<li>{safe_html(note)}</li>" for note in noun.notes)
    table = html_table(*noun.table(), "* better than random scores (p < 0.05)")
    return f"<div><p><b>{safe_html(noun.verdict)}</b></p>{table}<ul>{notes}</ul></div>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A plain table; every cell is escaped, and what looks like a number stands at the right."""

    def cell(tag: str, text: str) -> str:
        side = "right" if text[:1] in "+-0123456789" and text[-1:] in "0123456789%" else "left"
        return f'<{tag} style="text-align:{side};padding:2px 10px"><bdi>{safe_html(text)}</bdi></{tag}>'

    lines = [f"<tr>{''.join(cell('th', title) for title in head)}</tr>"]
    lines += [f"<tr>{''.join(cell('td', text) for text in row)}</tr>" for row in rows]
    told = f'<div style="font-size:smaller;opacity:.75">{safe_html(caption)}</div>' if caption else ""
    return f'<div>{told}<table style="border-collapse:collapse">{"".join(lines)}</table></div>'


@contextmanager
def progress_bars() -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Progress bars on standard error, one for each title; nothing where no one is looking."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:

        def bar(title: str) -> Callable[[int, int | None], None]:
            task = progress.add_task(title, total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield bar


def _steers(sign: str) -> bool:
    return unicodedata.category(sign) in _RTL_AND_FRIENDS and sign != "\u200d"  # the joiner holds emoji together


def _spelled(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
