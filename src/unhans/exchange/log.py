"""The log as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO, TextIO

from pydantic import ValidationError

from unhans.data.parsing import CHUNK, csv_rows, find_delimiter
from unhans.data.rows import MAX_TEXT, Row, clean
from unhans.data.writing import harmless
from unhans.exchange.shared import Refused
from unhans.types import Feedback, from_json, to_json

_MAX_NAME = 500  # characters of an id, an author or a revision


def write_lines(entries: Iterable[Feedback], file: BinaryIO) -> int:
    """A noun a line."""
    number = 0
    for entry in entries:
        number += 1
        file.write(to_json(entry).encode() + b"\n")
    return number


_ANSWER_COLUMNS = (
    *("kind", "example", "word", "position", "label", "vote", "counterfactual", "plausible", "meaningful"),
    *("agrees", "anchor", "train", "similar", "state", "note", "subject", "value"),
    *("model", "deploy", "reason", "method", "explanation_first"),
)
_ENTRY_COLUMNS = ("id", "author", "at", "revision", "text_hash", "retracts", "seconds")


def write_csv(entries: Iterable[Feedback], file: BinaryIO) -> int:
    """A row for each entry, under a header."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        table = csv.writer(text, lineterminator="\r\n")  # so that all line ends inside cells get quotes
        table.writerow((*_ENTRY_COLUMNS, *_ANSWER_COLUMNS))
        number = 0
        for entry in entries:
            number += 1
            answer = asdict(entry.says)
            cells = [getattr(entry, name) for name in _ENTRY_COLUMNS] + [answer.get(name) for name in _ANSWER_COLUMNS]
            table.writerow(["" if cell is None else _quoted(clean(str(cell))) for cell in cells])
    finally:
        text.detach()
    return number


def _quoted(cell: str) -> str:
    """Harmless, and such that `_unquoted` gives the cell back, whatever it began with."""
    return "'" + cell if _needs_quote(cell) else cell


def _unquoted(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _needs_quote(cell) else cell


def _needs_quote(cell: str) -> bool:
    bare = cell.lstrip("'")
    return harmless(bare) != bare


def open_csv(file: TextIO) -> Iterator[Row]:
    """The rows, whichever separator a spreadsheet has put between the cells."""
    header = file.readline(CHUNK)
    file.seek(0)
    return csv_rows("The file", find_delimiter(header, ","), file)


def entry_of_row(cells: Mapping[str, Any]) -> Feedback:
    """CSV knows no types: an empty cell is None, or an empty string where the answer wants one."""
    plain = {name: _unquoted(cell) for name, cell in cells.items()}
    said = {name: plain[name] for name in _ANSWER_COLUMNS if plain.get(name)}
    texts = TEXT_FIELDS.get(said.get("kind", ""), ())
    entry = {name: plain[name] for name in _ENTRY_COLUMNS if plain.get(name)}
    left_open = dict.fromkeys(_OPEN_FIELDS.get(said.get("kind", ""), ()))
    return entry_of({**entry, "says": {**dict.fromkeys(texts, ""), **left_open, **said, **_whole(said)}})


TEXT_FIELDS = {  # those that may be empty strings
    "word_vote": ("word", "label"),
    "flip_rating": ("counterfactual",),
    "neighbour_rating": ("anchor", "train"),
    "relabel": ("example",),
    "review": ("example", "note"),
    "ruling": ("subject", "value"),
    "verdict": ("model", "note"),
}
_OPEN_FIELDS = {  # None where the question does not apply, or no label does
    "flip_rating": ("plausible", "meaningful", "agrees"),
    "relabel": ("label",),
}
_NUMBER_COLUMNS = ("position", "plausible", "meaningful", "agrees", "similar", "deploy")


def _whole(cells: Mapping[str, str]) -> dict[str, int]:
    """The cells that are whole numbers, as numbers; others stay strings, and are refused as such."""
    return {name: int(cells[name]) for name in _NUMBER_COLUMNS if re.fullmatch(r"\d{1,9}", cells.get(name, ""), re.A)}


def entry_of(cells: Mapping[str, Any]) -> Feedback:
    """The entry that a JSON object holds."""
    says = cells.get("says")
    if not isinstance(says, Mapping):
        raise Refused("there is no answer (`says`).")
    plain = {**_plain(cells, Feedback.__slots__), "says": _plain(says, _ANSWER_COLUMNS)}
    try:
        return from_json(Feedback, json.dumps(plain))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}.") from None


def _plain(cells: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The fields with these names, strings cleaned; the rest of a noun is not ours."""
    found = {name: cells[name] for name in names if name in cells and name != "says"}
    if nested := [name for name, value in found.items() if isinstance(value, dict | list)]:
        raise Refused(f"{nested[0]} is no plain value.")
    return {name: clean(value) if isinstance(value, str) else value for name, value in found.items()}


def checked(entry: Feedback) -> Feedback:
    """The entry, if nothing about it is out of bounds."""
    for name in ("id", "author", "revision"):
        if not 0 < len(getattr(entry, name)) <= _MAX_NAME:
            raise Refused(f"{name} must have 1 to {_MAX_NAME} characters.")
    if any(isinstance(value, str) and len(value) > MAX_TEXT for value in asdict(entry.says).values()):
        raise Refused(f"the answer has a text longer than {MAX_TEXT:,} characters.")
    position = getattr(entry.says, "position", None)
    if position is not None and not 0 <= position <= 2 * MAX_TEXT:
        raise Refused("the position is not one of a word.")
    if entry.seconds is not None and not (math.isfinite(entry.seconds) and entry.seconds >= 0):
        raise Refused("seconds is not a duration.")
    try:
        datetime.fromisoformat(entry.at)
    except ValueError:
        raise Refused("at is not a time as ISO 8601 writes it.") from None
    return entry
