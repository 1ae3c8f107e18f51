"""Examples go back into a file."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from unhans.data.rows import clean
from unhans.errors import BadData, BadOption
from unhans.types import Example

_COLUMNS = ("id", "text", "pair", "label", "group", "split", "highlights", "notes")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BATCH = 10_000


def write(examples: Iterable[Example], path: str | Path) -> Path:
    """Write examples as JSON lines, CSV (both also with `.gz`) or Parquet, by the suffix; the path comes back.

    `read` gives the same examples back from JSON lines and Parquet. CSV is for spreadsheets: it has no notes, and a
    cell that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, tab or carriage return) gets
    a `'` in front. The file appears under its name only when it is complete.
    """
    path = Path(path)
    writer = _WRITERS.get("".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower())
    if writer is None:
        raise BadOption(f"Cannot write {path.name!r}: the name must end in {', '.join(_WRITERS)}.")
    with new_file(path) as file:
        writer(iter(examples), file)
    return path


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when all is written, and is gone when not."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise BadData(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)


def _jsonl(examples: Iterator[Example], file: BinaryIO) -> None:
    for example in examples:
        line = json.dumps(_cells(example), ensure_ascii=False) + "\n"
        file.write(line.encode(errors="backslashreplace"))  # half a surrogate pair becomes its JSON escape


def _csv(examples: Iterator[Example], file: BinaryIO) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")  # with both, all line ends inside cells get quotes
    columns = _COLUMNS[:-1]
    writer.writerow(columns)
    for example in examples:
        cells = _cells(example)
        if cells["highlights"] is not None:
            cells["highlights"] = json.dumps(cells["highlights"])
        writer.writerow([harmless(clean(cells[column] or "")) for column in columns])
    text.detach()


def _parquet(examples: Iterator[Example], file: BinaryIO) -> None:
    with pq.ParquetWriter(file, _PARQUET) as writer:
        while batch := list(itertools.islice(examples, _BATCH)):
            rows = [{name: _valid(cell) for name, cell in _cells(example).items()} for example in batch]
            writer.write_batch(pa.RecordBatch.from_pylist(rows, _PARQUET))


def _zipped(plain: Callable[[Iterator[Example], BinaryIO], None], examples: Iterator[Example], file: BinaryIO) -> None:
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:  # same examples, same bytes
        plain(examples, cast(BinaryIO, packed))


def _cells(example: Example) -> dict[str, Any]:
    """An example as the row that is written; spans as objects, which nobody takes for a mask."""
    cells = {column: getattr(example, column) for column in _COLUMNS}
    if example.highlights is not None:
        cells["highlights"] = [{"start": s.start, "end": s.end, "part": s.part} for s in example.highlights]
    return cells


def harmless(cell: str) -> str:
    """The cell as a spreadsheet will not take it for a formula."""
    return "'" + cell if cell.startswith(_FORMULA) else cell


def _valid(cell: Any) -> Any:
    return clean(cell) if isinstance(cell, str) else cell


_SPAN = pa.struct({"start": pa.int64(), "end": pa.int64(), "part": pa.string()})
_PARQUET = (
    pa.schema({column: pa.string() for column in _COLUMNS[:-2]})
    .append(pa.field("highlights", pa.list_(_SPAN)))
    .append(pa.field("notes", pa.list_(pa.string())))
)
_WRITERS: dict[str, Callable[[Iterator[Example], BinaryIO], None]] = {
    ".jsonl": _jsonl,
    ".jsonl.gz": partial(_zipped, _jsonl),
    ".csv": _csv,
    ".csv.gz": partial(_zipped, _csv),
    ".parquet": _parquet,
}
