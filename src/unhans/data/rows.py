"""One row of a table becomes one `Example`, or is set aside with a reason."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unhans.data.columns import Roles
from unhans.data.highlights import Misfit, Passage, decode, fit
from unhans.types import Example, Span

MAX_TEXT = 100_000  # characters; beyond, nothing downstream reads or shows a text as one

NUL = "NUL characters were removed."
INVALID = "Characters that are not valid Unicode were replaced by U+FFFD."
MISFIT = "The highlights do not fit the text and were left out."
UNKNOWN_LABEL = "The label is not among the given names and was left out."
BLANK_PAIR = "The second text is blank and was left out."
CONTROL = "The text contains a control word of language models; it is read as plain text."
HIDDEN = "The text contains hidden characters; they are kept, and the model may see them."
OUR_NOTES = (NUL, INVALID, MISFIT, UNKNOWN_LABEL, BLANK_PAIR, CONTROL, HIDDEN)

# joiners of emoji and of scripts that need them are not among these: there they are part of what is seen
_HIDDEN = re.compile("[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_CONTROL_WORD = re.compile(r"\[(?:MASK|SEP|CLS|PAD|UNK)\]|</?s>|<(?:mask|pad|unk|cls|sep)>|<\|[a-z_]{1,30}\|>")

_DIRT = re.compile("[\x00\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_VISIBLE = re.compile(  # anything but white space, controls, and characters that draw nothing
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_WHOLE_FLOAT = re.compile(r"(-?\d+)\.0+")
_NO_LABEL = ("", "-", "-1")  # -1 and - are how `datasets` and SNLI write that there is none


class Row(NamedTuple):
    """A row as its format gives it: the cells by column, or the problem that kept it from having any."""

    number: int  # counts data rows from 1
    line: int | None
    cells: Mapping[str, Any] | None
    problem: str = ""
    detail: str = ""


class BadRow(Exception):
    """The row is set aside; the first argument is the reason, the second what exactly."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one table are to be read."""

    roles: Roles
    name: str  # ids of rows without one are made of it
    split: str | None
    labels: Mapping[str, str | None] | None  # from the label in the data to the name it shall have


def to_example(row: Row, layout: Layout) -> Example:
    """The example a row holds; `BadRow` if it holds none."""
    if row.cells is None:
        raise BadRow(row.problem, row.detail)
    cells, roles = row.cells, layout.roles
    notes: list[str] = []
    text = _passage(cells.get(roles.text), notes)
    if text is None:
        raise BadRow("no text" if _is_missing(cells.get(roles.text)) else "empty text")
    pair = _pair(cells.get(roles.pair), notes) if roles.pair else None
    return Example(
        id=(_name(cells.get(roles.id)) if roles.id else None) or f"{layout.name}-{row.number}",
        text=text.text,
        pair=pair.text if pair else None,
        label=_label(cells.get(roles.label), layout.labels, notes) if roles.label else None,
        highlights=_highlights(cells, roles, text, pair, notes) if roles.highlights or roles.pair_highlights else None,
        group=_name(cells.get(roles.group)) if roles.group else None,
        split=(_name(cells.get(roles.split)) if roles.split else None) or layout.split,
        notes=_notes(cells.get(roles.notes) if roles.notes else None, notes),
    )


def label_names(labels: Mapping[Any, str | None] | Sequence[str]) -> dict[str, str | None]:
    """Names by the label they replace; a name also stands for itself."""
    pairs = list(labels.items() if isinstance(labels, Mapping) else enumerate(labels))
    themselves: dict[str, str | None] = {name: name for _, name in pairs if name is not None}
    return themselves | {_written(key): name for key, name in pairs}


def clean(text: str) -> str:
    """The text without NUL, and with U+FFFD for every half of a surrogate pair."""
    return _SURROGATE.sub("\ufffd", text).replace("\x00", "") if _DIRT.search(text) else str(text)


def _passage(value: Any, notes: list[str]) -> Passage | None:
    """A text that can be seen, cleaned; None if there is nothing to see."""
    tokens = None
    if isinstance(value, (list, tuple)) and value and all(isinstance(token, str) for token in value):
        tokens = tuple(value)
        value = " ".join(tokens)
    if not isinstance(value, str):
        if _is_missing(value) or value in ([], ()):
            return None
        raise BadRow("text is not a string", type(value).__name__)
    if len(value) > MAX_TEXT:
        raise BadRow(f"text longer than {MAX_TEXT:,} characters", f"{len(value):,}")
    if not _VISIBLE.search(value):
        return None
    _add(notes, CONTROL, _CONTROL_WORD.search(value) is not None)
    _add(notes, HIDDEN, not value.isascii() and _HIDDEN.search(value) is not None)
    cleaned = clean(value)
    if cleaned is not value:
        _add(notes, NUL, "\x00" in value)
        _add(notes, INVALID, _SURROGATE.search(value) is not None)
    return Passage(value, cleaned, tokens)


def _pair(value: Any, notes: list[str]) -> Passage | None:
    passage = _passage(value, notes)
    if passage is None and isinstance(value, str):
        _add(notes, BLANK_PAIR, value != "")
    return passage


def _label(value: Any, names: Mapping[str, str | None] | None, notes: list[str]) -> str | None:
    label = _written(value)
    if names is not None and label in names:
        return names[label]
    if label in _NO_LABEL:
        return None
    _add(notes, UNKNOWN_LABEL, names is not None)
    return label if names is None else None


def _written(value: Any) -> str:
    """A label as a string, the same for 1, 1.0, "1" and True."""
    label = clean(value if isinstance(value, str) else _number_label(value)).strip()
    whole = _WHOLE_FLOAT.fullmatch(label)
    return whole[1] if whole else label


def _number_label(value: Any) -> str:
    """A label that is no string, written as one."""
    if hasattr(value, "item") and not isinstance(value, (bool, int, float)):  # a scalar of numpy
        value = value.item()
    if _is_missing(value):
        return ""
    if isinstance(value, (bool, int)):
        value = int(value)
        if abs(value) < 10**18:
            return str(value)
        raise BadRow("label is not a name or a number", "a huge number")
    if isinstance(value, float):
        return repr(value)
    kind = "several labels" if isinstance(value, (list, tuple)) else type(value).__name__
    raise BadRow("label is not a name or a number", kind)


def _name(value: Any) -> str | None:
    """An id, group or split as a string; None if there is none."""
    if isinstance(value, str):
        return clean(value).strip() or None
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return clean(", ".join(value)).strip() or None
    if hasattr(value, "item") and not isinstance(value, float):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if _is_missing(value) or not isinstance(value, (int, float)) or abs(value) > 10**300:
        return None
    return str(value)


def _highlights(
    cells: Mapping[str, Any], roles: Roles, text: Passage, pair: Passage | None, notes: list[str]
) -> tuple[Span, ...] | None:
    """The marked spans of both parts; None if nobody was asked, or if what they marked does not fit."""
    asked = False
    spans: list[Span] = []
    for column, parts in ((roles.highlights, ("text", "pair")), (roles.pair_highlights, ("pair",))):
        value = cells.get(column) if column else None
        if _is_missing(value) or value == "":
            continue
        asked = True
        try:
            spans += _fitted(value, parts, text, pair)
        except Misfit:
            _add(notes, MISFIT, True)
            return None
    return tuple(sorted(spans, key=lambda span: (span.part != "text", span.start))) if asked else None


def _fitted(value: Any, parts: Sequence[str], text: Passage, pair: Passage | None) -> list[Span]:
    """Spans over the parts that a column of highlights may speak of."""
    marks = decode(value)
    if "text" not in parts:  # the column is about the second text alone
        if pair is None:
            raise Misfit("there is no second text")
        about_pair = tuple(Span(span.start, span.end, "pair") for span in marks.spans)
        return fit(type(marks)(marks.masks, about_pair), pair, "pair")
    spans = fit(marks, text, "text")
    if any(span.part == "pair" for span in marks.spans):
        if pair is None:
            raise Misfit("there is no second text")
        spans += fit(marks, pair, "pair")
    return spans


def _notes(given: Any, ours: list[str]) -> tuple[str, ...]:
    """The notes the row brings along, and ours."""
    if not isinstance(given, (list, tuple)) or not all(isinstance(note, str) for note in given):
        return tuple(ours)
    kept = [clean(note) for note in given]
    return (*kept, *(note for note in ours if note not in kept))


def _add(notes: list[str], note: str, applies: bool) -> None:
    if applies and note not in notes:
        notes.append(note)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
