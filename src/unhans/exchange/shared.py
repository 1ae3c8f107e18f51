"""What the formats share: refusals, judgements, and fields of rows that others wrote."""

from __future__ import annotations

import io
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO

from unhans.data.rows import MAX_TEXT, Row, clean
from unhans.text import Words
from unhans.types import Example, Part

STATES = ("done", "skipped", "flagged")  # of a review
_MAX_MARKS = 10_000  # elements of a list
_MAX_VOTES = 200_000  # of one person on the words of one text


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line, or an element of a list, that was not read."""

    line: int  # of the file; of a JSON list, which element
    reason: str
    unit: str = "Line"

    def __str__(self) -> str:
        return f"{self.unit} {self.line:,}: {self.reason}"


class Refused(Exception):
    """Says why, in a sentence."""


Find = Callable[[str, str, str | None], Example | None]
"""The example with this id; if there is none, that with this text and pair. An empty id or text is not known."""

Vote = tuple[int, str, str]
"""Position of the word, label, and raise or lower."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one person said about one example."""

    example: Example
    words: Words  # of the example
    author: str
    votes: tuple[Vote, ...] = ()
    label: str | None = None  # the right one
    drop: bool = False  # or else that there is none
    state: str | None = None  # of the review
    note: str = ""


def example_of(find: Find, id_: str, text: str, pair: str | None) -> Example:
    """The example that is meant; its text must be the one in the file, or positions mean nothing."""
    example = find(id_, text, pair)
    if example is None:
        raise Refused(f"there is no example {short(id_)}." if id_ else "there is no example with this text.")
    if (example.text, example.pair) != (text, pair):
        raise Refused(f"the text is not that of the example {short(example.id)}.")
    return example


def covered(words: Words, part: Part, start: int, end: int) -> range:
    """Positions of the words that lie in a span of one part, or partly."""
    pair_at = bisect_left(words.spans, True, key=lambda span: span.part == "pair")
    low, high = (pair_at, len(words)) if part == "pair" else (0, pair_at)
    first = bisect_right(words.spans, start, low, high, key=lambda span: span.end)
    return range(first, max(first, bisect_left(words.spans, end, low, high, key=lambda span: span.start)))


def votes_of(marks: Iterable[tuple[Sequence[int], str, str]]) -> tuple[Vote, ...]:
    """A vote for each word of each mark, given as positions, label, and raise or lower."""
    votes: set[Vote] = set()
    n_words = 0
    for positions, label, vote in marks:
        n_words += len(positions)
        if not positions:
            raise Refused("a mark covers no word.")
        if n_words > _MAX_VOTES:
            raise Refused(f"the marks cover more than {_MAX_VOTES:,} words.")
        votes.update((position, label, vote) for position in positions)
    return tuple(sorted(votes))


def operation_of(mark: str) -> tuple[str, str]:
    """The label, and raise or lower, from a mark such as `raise:positive`."""
    vote, colon, label = mark.partition(":")
    if not colon or vote not in ("raise", "lower"):
        raise Refused(f"the mark {short(mark)} is neither raise:LABEL nor lower:LABEL.")
    return clean(label), vote


def cells_of(row: Row) -> Mapping[str, Any]:
    """The cells of a row that could be read."""
    if row.cells is None:
        raise Refused(row.problem + (f" ({row.detail})." if row.detail else "."))
    return row.cells


def string(cells: Mapping[str, Any], name: str) -> str:
    """The text in a field that must be there, cleaned."""
    value = cells.get(name)
    if not isinstance(value, str):
        raise Refused(f"there is no {name}.")
    return clean(value)


def optional(value: Any) -> str:
    """A name that may be missing, or a number; empty if it is."""
    return clean(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def listed(cells: Mapping[str, Any], name: str) -> list[Any]:
    """The list in a field, which may be missing."""
    value = cells.get(name)
    if value is not None and not isinstance(value, list):
        raise Refused(f"{name} is no list.")
    return short_enough(value or [], name)


def objects(values: list[Any], name: str) -> list[dict[str, Any]]:
    """The values, if all of them are objects."""
    if not all(isinstance(value, dict) for value in values):
        raise Refused(f"{name} has something that is no object.")
    return short_enough(values, name)


def short_enough(values: list[Any], name: str) -> list[Any]:
    """The values, if they are not too many to work through."""
    if len(values) > _MAX_MARKS:
        raise Refused(f"{name} has more than {_MAX_MARKS:,} elements.")
    return values


def position_of(cells: Mapping[str, Any], name: str) -> int:
    """A place in a text; some tools write numbers as strings."""
    value = cells.get(name)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.A):
        value = int(value)
    if type(value) is not int or not 0 <= value <= 4 * MAX_TEXT:
        raise Refused(f"{name} is no position in a text.")
    return value


def single(values: Sequence[Any]) -> str | None:
    """The only one of at most one texts."""
    if len(values) > 1 or not all(isinstance(value, str) for value in values):
        raise Refused("more than one label, state or note was given.")
    return clean(values[0]) if values else None


def state_of(value: Any) -> str | None:
    """The state of a review, if there is one."""
    if value is not None and value not in STATES:
        raise Refused("the state is none of done, skipped and flagged.")
    return value if isinstance(value, str) else None


def short(value: Any) -> str:
    """A value from a file as it can stand in a sentence."""
    told = clean(str(value))
    return repr(told if len(told) <= 60 else told[:60] + "…")


@contextmanager
def text_of(file: BinaryIO) -> Iterator[TextIO]:
    """The text of a file; invalid bytes become half surrogates, which every string is cleaned of."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()
