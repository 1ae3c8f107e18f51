"""Attributions as files: data, a page, or a figure for a paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unhans.data.writing import harmless, new_file
from unhans.errors import BadOption, Unsupported
from unhans.present import html_page, joined, legend, notes_on, parts_of, printable, tint, underline
from unhans.types import Attribution, Attributions, Example, Prediction

_SUFFIXES = (".json", ".jsonl", ".csv", ".html", ".svg", ".png")
_INCH = 72  # all lengths below are points
_WIDTH, _MARGIN = 6.5 * _INCH, 6.0  # the text width of a page
_TALLEST = 200 * _INCH
_TEXT, _CAPTION = 10.0, 7.5  # font sizes
_LINE, _GAP = 18.0, 14.0  # from one line of words to the next, and between texts
_PAD = 2.0  # of the box around a word
_FINE = 8  # dots in a point: hinting makes words wider where there are few
_INK, _GREY = "#1a1a1a", "#666666"
_FAINT = 0.03  # opacity below which a word is as good as white, and gets no line
_FONTS = (  # the first is always there; the others are asked, where installed, for signs that it lacks
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "WenQuanYi Zen Hei",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
    "Noto Emoji",
)


def save(
    attributions: Iterable[Attribution],
    path: str | Path,
    *,
    examples: Iterable[Example] | None = None,
    predictions: Iterable[Prediction] | None = None,
    title: str = "Explanations",
) -> Path:
    """Write them in the format that the suffix names: .json, .jsonl, .csv, .html, .svg or .png.

    A page shows the labels of `examples` and the `predictions` beside each text. The file appears under its name only
    when it is complete.
    """
    target, shown = Path(path), Attributions(attributions)
    suffix = check_suffix(target)
    if suffix in (".svg", ".png"):
        return save_figure(shown, target)
    if suffix == ".html":
        text = html_page(shown, examples=examples, predictions=predictions, title=title)
    elif suffix == ".csv":
        text = _csv(shown)
    else:
        text = shown.to_json() if suffix == ".jsonl" else json.dumps(shown.to_dict(), indent=1) + "\n"
    with new_file(target) as file:
        file.write(text.encode(errors="backslashreplace"))
    return target


def check_suffix(path: Path) -> str:
    """The suffix of a file that `save` can write; any other is refused."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise BadOption(f"Cannot save as {path.name!r}: the name must end in {', '.join(_SUFFIXES)}.")
    return suffix


def save_figure(attributions: Iterable[Attribution], path: str | Path) -> Path:
    """Draw them on white, one below the other, as .svg or .png: boxed words, the sign also by the line below them."""
    target, shown = Path(path), list(attributions)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png"):
        raise BadOption(f"Cannot draw {target.name!r}: the name must end in .svg or .png.")
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.font_manager import FontProperties, fontManager
    except ImportError as error:
        raise Unsupported("A figure needs matplotlib: pip install 'unhans[figures]'.") from error
    if not shown:
        raise BadOption("There are no attributions to draw.")
    installed = set(fontManager.get_font_names())
    families = [name for name in _FONTS if name in installed]
    with matplotlib.rc_context({"svg.hashsalt": "unhans", "font.family": families, "text.hinting": "none"}):
        renderer = FigureCanvasAgg(Figure(dpi=_INCH * _FINE)).get_renderer()

        def width(text: str, size: float) -> float:
            found: float = renderer.get_text_width_height_descent(text, FontProperties(size=size), False)[0]
            return found / _FINE

        layout = _Layout(width)
        for one in shown:
            layout.add(one, name=one.example if len(shown) > 1 else "")
        layout.end([legend(signed) for signed in sorted({one.terms.signed for one in shown}, reverse=True)])
        height = layout.y + _MARGIN
        if height > _TALLEST:
            raise BadOption(f"{len(shown):,} texts do not fit one figure. Choose fewer, or save them as .html.")
        figure = Figure(figsize=(_WIDTH / _INCH, height / _INCH), facecolor="white")
        _paint(layout, figure, height)
        with new_file(target) as file:
            figure.savefig(file, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
    return target


def _csv(shown: Attributions) -> str:
    table = shown.to_dataframe()
    for column in ("example", "label", "word"):
        table[column] = table[column].map(harmless)
    text: str = table.to_csv(index=False, lineterminator="\r\n")
    return text


@dataclass(frozen=True)
class _Piece:
    """Some signs at a place (from the top left), on a coloured ground or none."""

    text: str
    x: float
    y: float
    width: float
    size: float
    ink: str = _INK
    ground: tuple[float, float, float, float] | None = None
    line: str = ""


@dataclass
class _Layout:
    """Words set in lines, as a typesetter would: from the left, as many as fit."""

    width: Callable[[str, float], float]
    y: float = _MARGIN
    pieces: list[_Piece] = field(default_factory=list)

    def add(self, one: Attribution, name: str) -> None:
        """Set one text, its caption, and a space below."""
        self.y += _GAP if self.pieces else 0
        if name:
            self._sentence(printable(name))
        for part, numbers in parts_of(one):
            if part:
                self.pieces.append(_Piece(part, _MARGIN, self.y + 2, 0, _CAPTION, _GREY))
            self._words(one, numbers, _MARGIN + (self.width("second text ", _CAPTION) + 4 if part else 0))
        for sentence in (one.caption, *notes_on(one)):
            self._sentence(printable(sentence))

    def end(self, sentences: Iterable[str]) -> None:
        """Small print below all texts."""
        self.y += _GAP / 2
        for sentence in sentences:
            self._sentence(sentence)

    def _words(self, one: Attribution, numbers: Sequence[int], start: float) -> None:
        x, right = start, _WIDTH - _MARGIN
        blank = self.width(" ", _TEXT)
        for number in numbers:
            glued = joined(one, number)
            x += 0 if glued or x == start else blank
            if not glued and x + self._length(one, number, numbers) > right and x > start:
                x, self.y = start, self.y + _LINE
            for text in self._fitting(printable(one.words[number]), right - start - 2 * _PAD):
                wide = self.width(text, _TEXT) + 2 * _PAD
                if x + wide > right and x > start:
                    x, self.y = start, self.y + _LINE
                (red, green, blue), opacity = tint(one, number)
                read = number not in one.unread
                ground = (red / 255, green / 255, blue / 255, opacity) if read else None
                line = underline(one, number) if read and opacity > _FAINT else ""
                self.pieces.append(_Piece(text, x, self.y, wide, _TEXT, _INK if read else _GREY, ground, line))
                x += wide
        self.y += _LINE

    def _length(self, one: Attribution, number: int, numbers: Sequence[int]) -> float:
        """Width of a word with the signs glued to it; none if they are many, as in scripts without blanks."""
        last = number + 1
        while last <= numbers[-1] and joined(one, last):
            last += 1
        if last - number > 4 or " " in one.words[number]:
            return 0.0
        return sum(self.width(printable(word), _TEXT) + 2 * _PAD for word in one.words[number:last])

    def _fitting(self, word: str, room: float) -> Iterator[str]:
        """A unit in pieces that each fit a line: at its blanks, and inside a word only where it must be."""
        for text in word.split(" "):
            rest = text
            while self.width(rest, _TEXT) > room:
                cut = next(n for n in range(len(rest) - 1, 0, -1) if self.width(rest[:n], _TEXT) <= room or n == 1)
                yield rest[:cut]
                rest = rest[cut:]
            yield rest

    def _sentence(self, text: str) -> None:
        """A line of small grey print, broken at its blanks."""
        line = ""
        for word in [*text.split(" "), None]:
            longer = f"{line} {word}" if line else word
            if word is not None and longer is not None and self.width(longer, _CAPTION) <= _WIDTH - 2 * _MARGIN:
                line = longer
                continue
            self.pieces.append(_Piece(line, _MARGIN, self.y, 0, _CAPTION, _GREY))
            self.y += _CAPTION * 1.4
            line = word or ""


def _paint(layout: _Layout, figure: Any, height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyBboxPatch

    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDTH), ylim=(height, 0))
    axes.axis("off")
    for piece in layout.pieces:
        middle = piece.y + piece.size * 0.65
        if piece.ground is not None:
            box = FancyBboxPatch(
                (piece.x + 0.4, middle - 7),
                piece.width - 0.8,
                13.5,
                boxstyle="round,pad=0,rounding_size=2",
                facecolor=piece.ground,
                linewidth=0,
            )
            axes.add_patch(box)
            if piece.line:
                ends = (piece.x + 1, piece.x + piece.width - 1), (middle + 7.6, middle + 7.6)
                style = "-" if piece.line == "solid" else (0, (3, 1.5))
                axes.add_line(Line2D(*ends, color=piece.ground[:3], linewidth=1.2, linestyle=style))
        inset = _PAD if piece.ground is not None or piece.size == _TEXT else 0
        axes.text(
            piece.x + inset, middle + piece.size * 0.32, piece.text, size=piece.size, color=piece.ink,
            va="baseline", parse_math=False,
        )  # fmt: skip
