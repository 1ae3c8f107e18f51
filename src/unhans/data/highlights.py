"""Which characters people marked, in the forms data sets write it down.

A **token mask** says 0 or 1 for every white-space token of the text: `"0110"`, `[0, 1, 1, 0]`, or a list of several
people's masks, of which the majority counts. **Character spans** are `[[start, end], …]` or
`[{"start": …, "end": …}, …]` (as Prodigy writes them), in code points, the end exclusive. The form is told from each
value. A list of pairs is read as spans, unless there are several pairs of zeros and ones and the text has two tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unhans.types import Part, Span

_MASK = re.compile(r"[01][01\s,]*")
_WORDS = (re.compile(r"[^ ]+"), re.compile(r"\S+"))  # joined by single spaces; or by any white space
_MAX_JSON = 1_000_000  # characters; highlights in a CSV cell are JSON

Mask = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """A highlight value read, but not yet laid over its text: masks of one or more people, or spans."""

    masks: tuple[Mask, ...] = ()
    spans: tuple[Span, ...] = ()  # beside masks: pairs of zeros and ones could be either


@dataclass(frozen=True, slots=True)
class Passage:
    """One part of an example as the file has it, and as we keep it."""

    raw: str
    text: str
    tokens: tuple[str, ...] | None = None  # when the file gives tokens and we joined them


class Misfit(ValueError):
    """The value is no highlight, or not one of this text."""


def looks_like_highlights(value: Any) -> bool:
    """Whether the value has one of the known forms, whatever the text."""
    try:
        decode(value)
    except Misfit:
        return False
    return True


def decode(value: Any) -> Marks:
    """The marks that a value of any known form writes down."""
    if isinstance(value, str):
        return _decode_string(value.strip())
    if isinstance(value, Mapping):  # a list of structs, as `datasets` gives it back
        return _decode_columns(value)
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise Misfit("neither a mask nor spans")
    return _decode_list(list(value))


def fit(marks: Marks, passage: Passage, part: Part) -> list[Span]:
    """The marks of one part as merged spans over the text we keep; `Misfit` if they do not fit it."""
    masks = _as_masks(marks, passage)
    spans = _masked(masks, passage) if masks else [(s.start, s.end) for s in marks.spans if s.part == part]
    if any(end > len(passage.raw) for _, end in spans):
        raise Misfit("a span ends beyond the text")
    if len(passage.raw) != len(passage.text):  # NUL characters were removed, and positions count them
        spans = [(_without_nul(passage.raw, start), _without_nul(passage.raw, end)) for start, end in spans]
    return [Span(start, end, part) for start, end in _merged(spans)]


def _decode_string(value: str) -> Marks:
    if _MASK.fullmatch(value):
        return Marks(masks=(tuple(character == "1" for character in value if character in "01"),))
    if value[:1] not in ("[", "(") or len(value) > _MAX_JSON:
        raise Misfit("neither a mask nor spans")
    try:
        parsed = json.loads(value.replace("(", "[").replace(")", "]"))
    except (ValueError, RecursionError):
        raise Misfit("not a list") from None
    return _decode_list(parsed) if isinstance(parsed, list) else decode([])


def _decode_columns(value: Mapping[str, Any]) -> Marks:
    starts, ends = value.get("start"), value.get("end")
    if not isinstance(starts, Sequence) or not isinstance(ends, Sequence) or len(starts) != len(ends):
        raise Misfit("no start and end")
    return _decode_list([list(pair) for pair in zip(starts, ends, strict=True)])


def _decode_list(items: list[Any]) -> Marks:
    if not items:
        return Marks()
    if all(_is_bit(item) for item in items):
        return Marks(masks=(tuple(bool(item) for item in items),))
    if all(isinstance(item, str) and _MASK.fullmatch(item) for item in items):
        return Marks(masks=tuple(decode(item).masks[0] for item in items))
    masks = tuple(tuple(map(bool, item)) for item in items) if all(map(_is_mask, items)) else ()
    spans = tuple(span for item in items if (span := _span(item)) is not None)
    if len(spans) == len(items):
        return Marks(masks if len(masks) > 1 else (), spans)
    if masks:
        return Marks(masks)
    raise Misfit("neither a mask nor spans")


def _span(item: Any) -> Span | None:
    """A start and an end, however they are written down; None if the item is none."""
    if isinstance(item, Span):
        return item
    start: Any
    end: Any
    part: Any = "text"
    if isinstance(item, Mapping):
        start, end, part = item.get("start"), item.get("end"), item.get("part") or "text"
    elif isinstance(item, (list, tuple)) and (len(item) == 2 or (len(item) == 3 and isinstance(item[2], str))):
        start, end = item[0], item[1]
    else:
        return None
    if not _is_position(start) or not _is_position(end) or part not in ("text", "pair"):
        return None
    return Span(start, end, part) if 0 <= start <= end else None


def _as_masks(marks: Marks, passage: Passage) -> tuple[Mask, ...]:
    if marks.spans and len(_words(passage, 2)) != 2:
        return ()
    if len(marks.masks) > 1 and all(len(mask) == 1 for mask in marks.masks):  # ["0", "1", "1"]
        n_words = len(_words(passage, len(marks.masks)))
        if n_words == len(marks.masks):
            return (tuple(mask[0] for mask in marks.masks),)
    return marks.masks


def _masked(masks: Sequence[Mask], passage: Passage) -> list[tuple[int, int]]:
    """Runs of words that most people marked."""
    n_words = len(masks[0])
    words = _words(passage, n_words)
    if len(words) != n_words or any(len(mask) != n_words for mask in masks):
        raise Misfit("the mask has another length than the text")
    runs: list[tuple[int, int]] = []
    was_marked = False
    for (start, end), votes in zip(words, zip(*masks, strict=True), strict=True):
        marked = 2 * sum(votes) > len(votes)
        if marked:
            runs[-1:] = [(runs[-1][0], end)] if was_marked else [*runs[-1:], (start, end)]
        was_marked = marked
    return runs


def _words(passage: Passage, n_wanted: int) -> list[tuple[int, int]]:
    """Where the words are: as the file splits them, else in the way that gives the wanted number."""
    if passage.tokens is not None:
        words, position = [], 0
        for token in passage.tokens:
            words.append((position, position + len(token)))
            position += len(token) + 1
        return words
    found: list[tuple[int, int]] = []
    for pattern in _WORDS:
        found = [match.span() for match in pattern.finditer(passage.raw)]
        if len(found) == n_wanted:
            break
    return found


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without_nul(raw: str, position: int) -> int:
    return position - raw.count("\x00", 0, position)


def _is_bit(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and value in (0, 1)


def _is_mask(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(_is_bit(bit) for bit in value)


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
