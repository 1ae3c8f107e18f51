"""How nouns look: on a terminal, in a notebook, and on a page of their own.

Blue speaks for, orange against, purple is strength without a sign; the sign is never told by colour alone (underline
and minus say it too). Everything that comes from data is escaped: a text may contain markup, control characters or
marks that turn the writing direction.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text as Line

from unhans.types import (
    Attribution,
    Comparison,
    Example,
    Grade,
    Prediction,
    RankedWord,
    Suspect,
    Suspects,
    WordRanking,
    to_html,
)

Colour = tuple[int, int, int]

_FOR, _AGAINST, _STRENGTH = (0, 114, 178), (230, 159, 0), (204, 121, 167)  # distinct for all kinds of colour blindness
_STRONGEST = {_FOR: 0.6, _AGAINST: 0.45, _STRENGTH: 0.55}  # opacity: text keeps a contrast of 4.5 in both themes
_QUIET, _UNREAD = 0.75, 0.62  # opacity of captions, and of words that were not read; the same holds for them
_SMALL = f"font-size:smaller;opacity:{_QUIET}"
_NOISE = 1e-4  # below this, in any unit, all words weigh about the same
_RTL_AND_FRIENDS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text with control characters and direction marks spelled out, so that no data can steer a terminal."""
    return "".join(sign if sign == " " or not _steers(sign) else _spelled(sign) for sign in text)


def safe_html(text: str) -> str:
    """Text from data as it may stand in a page."""
    return escape(printable(text))


def heat_line(attribution: Attribution) -> Line:
    """The words of an example in reading order: bold for the label, underlined against it, each with its score.

    Scores without a sign are shown without one: bold, and no plus. Words below a tenth of the strongest stay plain.
    """
    return _heat(attribution, range(len(attribution.words)))


def heat_block(attribution: Attribution) -> Line:
    """The heat line (one for each text of a pair), and below it all that is needed to read it."""
    block = Line()
    for name, numbers in parts_of(attribution):
        block.append(f"{name}: " if name else "", "dim")
        block.append_text(_heat(attribution, numbers)).append("\n")
    block.append(printable(attribution.caption), "dim")
    for note in notes_on(attribution):
        block.append(f"\n{printable(note)}", "italic")
    return block


def parts_of(attribution: Attribution) -> list[tuple[str, list[int]]]:
    """Positions of the words of each text, and what the text is called: nothing, if there is only one."""
    first = [number for number, span in enumerate(attribution.spans) if span.part == "text"]
    second = [number for number, span in enumerate(attribution.spans) if span.part == "pair"]
    return [("first text", first), ("second text", second)] if second else [("", first)]


def notes_on(attribution: Attribution) -> list[str]:
    """What a reader must know besides the caption, a sentence each: warning, engine, and what was not read."""
    notes = [f"Caution: {attribution.terms.warning}"] if attribution.terms.warning else []
    notes += [attribution.terms.engine] if attribution.terms.engine else []
    if n := len(attribution.unread):
        unit = attribution.terms.unit
        notes.append(f"{n:,} {unit}{' was' if n == 1 else 's were'} beyond the model's length limit and not read.")
    return notes


def tint(attribution: Attribution, number: int, top: float | None = None) -> tuple[Colour, float]:
    """Colour and opacity of a word's ground; full where the score is `top`, or else the strongest of the text."""
    score = attribution.scores[number]
    colour = _STRENGTH if not attribution.terms.signed else _FOR if score > 0 else _AGAINST
    share = 0.0 if number in attribution.unread else min(1.0, abs(score) / (top or scale(attribution.scores)))
    return colour, _STRONGEST[colour] * share


def underline(attribution: Attribution, number: int) -> str:
    """How the sign is drawn besides its colour: a solid line for, a dashed one against; none without signs."""
    if not attribution.terms.signed:
        return ""
    return "solid" if attribution.scores[number] > 0 else "dashed"


def joined(attribution: Attribution, number: int) -> bool:
    """Whether a word follows the one before it without a blank, as a full stop does."""
    before, span = attribution.spans[number - 1], attribution.spans[number]
    return number > 0 and before.part == span.part and before.end == span.start


def _heat(attribution: Attribution, numbers: Iterable[int]) -> Line:
    line = Line()
    top = scale(attribution.scores)
    digits = ".1f" if top >= 1 else ".2f" if top >= 0.1 else ".0e"
    signed = attribution.terms.signed
    for number in numbers:
        word, score = printable(attribution.words[number]), attribution.scores[number]
        if number in attribution.unread:
            line.append(word, "dim strike")
        elif abs(score) / top < 0.1:
            line.append(word)
        else:
            (red, green, blue), _ = tint(attribution, number)
            line.append(word, f"{'underline' if signed and score < 0 else 'bold'} rgb({red},{green},{blue})")
            line.append(f"{score:+{digits}}" if signed else f"·{score:{digits}}", "dim")
        line.append(" ")
    return line


def scale(scores: Sequence[float]) -> float:
    """The score that gets the full colour: the largest, or 1 if all are too small to mean anything."""
    top = max((abs(score) for score in scores), default=0.0)
    return top if top >= _NOISE else 1.0


@to_html.register
def _(noun: Attribution) -> str:
    return f'<div>{_body(noun)}<div style="{_SMALL}">{legend(noun.terms.signed)}</div></div>'


def _body(noun: Attribution) -> str:
    """The coloured words, the caption, and the notes."""
    meant = any(abs(score) >= _NOISE for score in noun.scores)
    strength = f"strongest&nbsp;{scale(noun.scores):.3g}" if meant else "all words weigh about the same"
    notes = "".join(f"<div>{safe_html(note)}</div>" for note in notes_on(noun))
    return (
        f'<div style="overflow-wrap:anywhere">{heat_map(noun)}'
        f'<div style="{_SMALL}">{safe_html(noun.caption)} · {strength}{notes}</div></div>'
    )


def heat_map(noun: Attribution, top: float | None = None) -> str:
    """The coloured words alone. With `top`, that score has the full colour: for several texts on one scale."""
    lines = []
    for name, numbers in parts_of(noun):
        told = f'<span style="{_SMALL};display:inline-block;min-width:6em">{name}</span>' if name else ""
        words = "".join(("" if joined(noun, number) else " ") + _word(noun, number, top) for number in numbers)
        lines.append(f'<div dir="{_direction(noun, numbers)}" style="line-height:2">{told}{words}</div>')
    return "".join(lines)


def _word(noun: Attribution, number: int, top: float | None) -> str:
    (red, green, blue), opacity = tint(noun, number, top)
    score = f"{noun.scores[number]:{'+' if noun.terms.signed else ''}.4g}"
    if noun.errors is not None:
        score += f" ± {noun.errors[number]:.2g}"
    style = "padding:1px 2px;border-radius:3px;-webkit-box-decoration-break:clone;box-decoration-break:clone;"
    if number in noun.unread:
        style, score = f"{style}opacity:{_UNREAD}", "not read"
    else:
        style += f"background:rgba({red},{green},{blue},{opacity:.2f})"
        if line := underline(noun, number):
            style += f";border-bottom:2px {line} rgba({red},{green},{blue},{min(1.0, opacity * 1.6):.2f})"
    return f'<bdi style="{style}" title="{score}">{safe_html(noun.words[number])}</bdi>'


def legend(signed: bool) -> str:
    """What colours and lines mean, for scores with and without a sign."""
    if not signed:
        return "purple: strength only; this method does not say for or against"
    return "blue, solid line: speaks for it; orange, dashed line: against it"


def _direction(noun: Attribution, numbers: Iterable[int]) -> str:
    """Writing direction by the first letter that has one; a browser would not look inside the isolated words."""
    signs = (unicodedata.bidirectional(sign) for number in numbers for sign in noun.words[number])
    return "rtl" if next((sign for sign in signs if sign in ("L", "R", "AL")), "L") != "L" else "ltr"


def html_page(
    attributions: Iterable[Attribution],
    *,
    examples: Iterable[Example] | None = None,
    predictions: Iterable[Prediction] | None = None,
    title: str = "Explanations",
) -> str:
    """All of them as one HTML file without scripts or other files, for light and dark, narrow and wide screens.

    Given labels and predictions stand beside each explanation where `examples` and `predictions` have them.
    """
    shown = list(attributions)
    labels = {example.id: example.label for example in examples or ()}
    said = {prediction.example: prediction for prediction in predictions or ()}
    articles = [
        f"<article><h2><bdi>{safe_html(one.example)}</bdi></h2>"
        f"{_verdict(labels.get(one.example), said.get(one.example))}{_body(one)}</article>"
        for one in shown
    ]
    kinds = sorted({one.terms.signed for one in shown}, reverse=True)
    scales = "".join(f"<p>{scale_bar(signed)} {legend(signed)}.</p>" for signed in kinds)
    relative = (
        "<p>Full colour is the strongest word of each text; rest on a word to see its score.</p>" if shown else ""
    )
    body = "".join(articles) or "<p>There is nothing to show.</p>"
    return whole_page(title, f'<div class="legend">{scales}{relative}</div>{body}')


def whole_page(title: str, body: str, style: str = "") -> str:
    """A page that opens offline and can load or run nothing: the title, and a body that is escaped already."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{safe_html(title)}</title><style>{_PAGE}{style}</style></head><body><h1>{safe_html(title)}</h1>"
        f"{body}</body></html>\n"
    )


_PAGE = (
    ":root{color-scheme:light dark;--ground:#ffffff;--ink:#1a1a1a;--rule:#d0d4d9}"
    "@media(prefers-color-scheme:dark){:root{--ground:#15181c;--ink:#e8e8e8;--rule:#3a4048}}"
    "body{background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;max-width:56rem;"
    "margin:0 auto;padding:1rem clamp(.8rem,3vw,2rem) 3rem}"
    "h1{font-size:1.5rem;line-height:1.2;margin:.5rem 0 1rem;overflow-wrap:anywhere}"
    "h2{font-size:.95rem;margin:0;overflow-wrap:anywhere}"
    "article{border-top:1px solid var(--rule);padding:1rem 0}"
    ".legend{margin-bottom:1rem}.legend p{margin:.2rem 0;font-size:.9rem}"
    ".verdict{margin:.1rem 0 .4rem;font-size:.95rem;overflow-wrap:anywhere}"
    ".scale{display:inline-block;width:8rem;height:.8rem;border-radius:3px;border:1px solid var(--rule);"
    "vertical-align:-.1rem;margin-right:.4rem}"
)


def scale_bar(signed: bool) -> str:
    """The colours from the strongest against to the strongest for."""

    def full(colour: Colour) -> str:
        return f"rgba({','.join(map(str, colour))},{_STRONGEST[colour]})"

    stops = [full(_AGAINST), "transparent", full(_FOR)] if signed else ["transparent", full(_STRENGTH)]
    return f'<span class="scale" style="background:linear-gradient(to right,{",".join(stops)})"></span>'


def _verdict(given: str | None, prediction: Prediction | None) -> str:
    told = [f"given <b><bdi>{safe_html(given)}</bdi></b>"] if given is not None else []
    if prediction is not None:
        told.append(f"predicted <b><bdi>{safe_html(prediction.label)}</bdi></b> ({prediction.confidence:.1%})")
        if given is not None:
            told.append("✓ right" if given == prediction.label else "✗ wrong")
    return f'<p class="verdict">{" · ".join(told)}</p>' if told else ""


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
    return html_table(
        RANKING_HEAD, [ranking_cells(row) for row in noun.words[:25]], f"for {noun.label} · {noun.recipe}"
    )


RANKING_HEAD = ("word", "mean score", "spread", "examples", "correct", "z")
SUSPECT_HEAD = ("word", "label", "mean score", "weight", "coverage", "wrong without", "damage", "examples")


def ranking_cells(row: RankedWord) -> tuple[str, ...]:
    """One line of a table of words, under `RANKING_HEAD`."""
    correct = "–" if row.correct is None else f"{row.correct:.0%}"
    z = "–" if row.z is None else f"{row.z:+.1f}"
    return row.word, f"{row.score:+.3f}", f"{row.spread:.3f}", str(row.count), correct, z


@to_html.register
def _(noun: Suspects) -> str:
    return html_table(SUSPECT_HEAD, [suspect_cells(row) for row in noun.words], f"suspects · {noun.recipe}")


def suspect_cells(row: Suspect) -> tuple[str, ...]:
    """One line of a table of suspects, under `SUSPECT_HEAD`."""
    shares = (f"{row.weight:.1%}", f"{row.coverage:.1%}", f"{row.disagreement:.1%}")
    return row.word, row.label, f"{row.score:+.3f}", *shares, f"{row.damage:.4f}", str(row.count)


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
