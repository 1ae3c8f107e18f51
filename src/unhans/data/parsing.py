"""The text of a file becomes rows: JSON lines, JSON arrays, and tables with any separator.

What one row costs is bounded: lines, records and elements beyond `MAX_LINE` are set aside, not collected.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from unhans.data.columns import has_text_column, listed
from unhans.data.rows import Row
from unhans.errors import BadData

MAX_LINE = 10_000_000  # characters of a line, of a CSV row and of a JSON element
CHUNK = 1 << 16
TOO_LONG = f"line longer than {MAX_LINE // 1_000_000} MB"


def _lines(file: TextIO) -> Iterator[str | None]:
    """The lines of a file; None for one that is too long to hold."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith(("\n", "\r")):
            while (rest := file.readline(MAX_LINE)) and not rest.endswith(("\n", "\r")):
                pass
            yield None
        else:
            yield line


# JSON


def is_object(line: str) -> bool:
    """Whether a line is a JSON object, or too long to tell."""
    try:
        return len(line) > CHUNK // 2 or isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def line_rows(file: TextIO) -> Iterator[Row]:
    """An object a line; empty lines do not count."""
    decoder, number = _Decoder(), 0
    for line_number, line in enumerate(_lines(file), 1):
        if line is None:
            number += 1
            yield Row(number, line_number, None, TOO_LONG)
        elif not line.isspace():
            number += 1
            yield decoder.row(line, number, line_number)


def array_rows(file: TextIO) -> Iterator[Row]:
    """The elements of a JSON array, one at a time."""
    decoder, number = _Decoder(), 0
    buffer, position, ended = file.read(CHUNK).lstrip()[1:], 0, False
    while True:
        while position < len(buffer) and (buffer[position].isspace() or buffer[position] == ","):
            position += 1
        if position < len(buffer) and buffer[position] == "]":
            return
        end = decoder.end(buffer, position)
        if end is not None and (end < len(buffer) or ended):
            number += 1
            yield decoder.row(buffer[position:end], number, None)
            position = end
        elif ended or len(buffer) - position > MAX_LINE:
            yield Row(number + 1, None, None, "invalid JSON", "the rest of the file could not be read")
            return
        else:
            more = file.read(max(CHUNK, len(buffer) - position))
            buffer, position, ended = buffer[position:] + more, 0, more == ""


class _Decoder:
    """JSON as the standard has it: no NaN, no key twice, no number of thousands of digits."""

    def __init__(self) -> None:
        self._flaw = ""
        self._strict = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_int=self._integer
        )

    def row(self, line: str, number: int, line_number: int | None) -> Row:
        """The object written in a line, as a row."""
        self._flaw = ""
        try:
            value = self._strict.decode(line)
        except (ValueError, RecursionError) as error:
            detail = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(":")[0]
            return Row(number, line_number, None, "invalid JSON", detail)
        if self._flaw:
            return Row(number, line_number, None, "invalid JSON", self._flaw)
        if not isinstance(value, dict):
            return Row(number, line_number, None, "not an object", type(value).__name__)
        return Row(number, line_number, value)

    def end(self, text: str, position: int) -> int | None:
        """Where the value that starts here ends; None if it does not, yet."""
        try:
            return self._strict.raw_decode(text, position)[1]
        except (ValueError, RecursionError):
            return None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self._flaw = "a key occurs twice"
        return value

    def _constant(self, name: str) -> None:
        self._flaw = f"{name} is not a JSON number"

    def _integer(self, digits: str) -> int:
        if len(digits) < 4_000:
            return int(digits)
        self._flaw = "a number of thousands of digits"
        return 0


# CSV


def csv_rows(where: str, delimiter: str, file: TextIO) -> Iterator[Row]:
    """The rows below a header; `BadData` if the header is unusable."""
    records = _records(file, delimiter)
    header = next((cells for _, cells in records if cells), [])
    if isinstance(header, str):
        raise BadData(f"The first line of {where} cannot be read: {header}.")
    columns = named_columns(header, where)
    number = 0
    for line, cells in records:
        if not cells:  # an empty line
            continue
        number += 1
        if isinstance(cells, str):
            yield Row(number, line, None, cells)
        elif len(cells) != len(columns):
            detail = f"{len(cells):,} where the header has {len(columns):,}"
            yield Row(number, line, None, "wrong number of cells", detail)
        else:
            yield Row(number, line, dict(zip(columns, cells, strict=True)))


def named_columns(header: Sequence[str], where: str) -> list[str]:
    """The names in a header, with one made up for an empty cell; `BadData` if a name occurs twice."""
    columns = [cell.strip() or f"column {place}" for place, cell in enumerate(header, 1)]
    if twice := [column for column, n in Counter(columns).items() if n > 1]:
        raise BadData(f"{where} has two columns called {listed(twice)}: rename one of them.")
    return columns


def _records(file: TextIO, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Line number and cells of every record, or a string that says what is wrong with it.

    The strict parser finds quotes that are never closed, which the lenient one takes for text, swallowing the
    rows that follow. When it objects, the first line is read on its own, and the others again from there.
    """
    csv.field_size_limit(max(csv.field_size_limit(), 2 * MAX_LINE))
    lines = _Lines(_lines(file))
    strict = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        lines.start_record()
        line = lines.number + 1
        try:
            cells = next(strict)
        except StopIteration:
            return
        except (csv.Error, _TooLong):
            yield line, _alone(lines.keep_first(), delimiter)
        else:
            width = width or len(cells)
            is_swallowed = delimiter == "\t" and lines.are_rows_of(width)
            yield line, _alone(lines.keep_first(), delimiter) if is_swallowed else cells


class _TooLong(Exception):
    """A line or a record is longer than we hold."""


class _Lines:
    """Lines for `csv.reader`, which can be given back when a record turns out not to be one."""

    def __init__(self, lines: Iterator[str | None]) -> None:
        self.number = 0  # of the last line taken
        self._lines = lines
        self._again: deque[str | None] = deque()
        self._taken: list[str | None] = []
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self._taken.append(line)
        self.number += 1
        self._size += len(line or "")
        if line is None or self._size > MAX_LINE:
            raise _TooLong
        return line

    def start_record(self) -> None:
        self._taken, self._size = [], 0

    def keep_first(self) -> str | None:
        """The first line of the record; the others are given back."""
        first, *others = self._taken
        self._again.extendleft(reversed(others))
        self.number -= len(others)
        return first

    def are_rows_of(self, n_cells: int) -> bool:
        """Whether each of several lines has the cells of a whole row: files with tabs often do without quoting."""
        return len(self._taken) > 1 and all(line and line.count("\t") == n_cells - 1 for line in self._taken)


def _alone(line: str | None, delimiter: str) -> list[str] | str:
    """The cells of a single line whose quotes are out of order, or what is wrong."""
    if line is None:
        return TOO_LONG
    if delimiter == "\t":
        return line.rstrip("\r\n").split("\t")
    rows = list(csv.reader([line, "next"], delimiter=delimiter))
    return rows[0] if len(rows) == 2 else "quote never closed"


def find_delimiter(header: str, usual: str) -> str:
    """The separator under which the header names a text, or at least the most columns."""
    candidates = [usual, *(mark for mark in (",", "\t", ";", "|") if mark != usual)]
    return max(candidates, key=lambda mark: (has_text_column(cells := header_cells(header, mark)), len(cells)))


def header_cells(header: str, delimiter: str) -> list[str]:
    """The cells of a first line; none if its quotes are out of order."""
    cells = _alone(header, delimiter)
    return cells if isinstance(cells, list) else []
