"""Files, folders and objects become tables of rows, whatever their format and encoding.

A file's suffix says what it should be, its first bytes what it is. Reading streams: no more than one row (and 64 kB)
is held at a time.
"""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from unhans.data.columns import has_text_column
from unhans.data.parsing import (
    CHUNK,
    array_rows,
    csv_rows,
    find_delimiter,
    header_cells,
    is_object,
    line_rows,
    named_columns,
)
from unhans.data.rows import Row
from unhans.errors import BadData
from unhans.types import Example

PEEK = 1_000  # rows looked at to find out what the columns are
_PEEK_CHARACTERS = 20_000_000
_BATCH = 1_000
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT_ORDER = ("train", "validation", "valid", "val", "dev", "test")
_BOMS = (  # the longer first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Table:
    """Rows that share their columns: a file, a split, or a list."""

    name: str  # ids of rows without one are made of it
    where: str  # how messages call it
    rows: Callable[[Sequence[str] | None], Iterator[Row]]  # may be called again; the columns wanted, None for all
    split: str | None = None
    total: int | None = None
    label_names: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by column, if the data carry them
    remarks: tuple[str, ...] = ()


def tables(source: Any) -> list[Table]:
    """The tables of any source we know; `BadData` for any other."""
    if isinstance(source, (str, Path)):
        return _path_tables(Path(source).expanduser())
    if hasattr(source, "iloc"):  # a pandas DataFrame
        return [_frame_table(source)]
    if isinstance(source, Mapping):  # DatasetDict, or a dict of lists of rows
        if not source or has_text_column(map(str, source)):
            raise BadData("Give a list of rows, or a mapping from the names of splits to rows.")
        return [
            replace(table, name=str(name), where=str(name), split=str(name))
            for name, rows in source.items()
            for table in tables(rows)
        ]
    if hasattr(source, "column_names") and hasattr(source, "iter"):
        return [_dataset_table(source)]
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, Example)):
        return [_list_table(source)]
    raise BadData(f"Cannot read data from {type(source).__name__}: give a path, a data set or a list of rows.")


def peek(table: Table) -> list[Row]:
    """The first rows of a table."""
    rows, size = [], 0
    for row in table.rows(None):
        rows.append(row)
        size += sum(len(cell) for cell in row.cells.values() if isinstance(cell, (str, list))) if row.cells else 0
        if len(rows) >= PEEK or size > _PEEK_CHARACTERS:
            break
    return rows


# Files and folders


def _path_tables(path: Path) -> list[Table]:
    with _told(path):
        if path.is_dir():
            return _folder_tables(path)
        if not path.exists():
            raise BadData(f"There is no file or folder {str(path)!r}.")
        return [_file_table(path)]


def _folder_tables(folder: Path) -> list[Table]:
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and _is_data(path)]
    if not files:
        raise BadData(f"The folder {str(folder)!r} holds no {', '.join(_SUFFIXES)} file.")
    found = [_file_table(path) for path in files]
    found.sort(key=lambda table: _SPLIT_ORDER.index(table.name) if table.name in _SPLIT_ORDER else 99)
    return [replace(table, split=table.name) for table in found]


def _is_data(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return not name.startswith((".", "_", "readme", "license")) and name.endswith(_SUFFIXES)


def _stem(path: Path) -> str:
    """The file's name without suffixes, and without the number of a shard."""
    name = path.name
    for suffix in (".gz", *_SUFFIXES, ".txt"):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return _SHARD.sub("", name).encode(errors="replace").decode()


def _file_table(path: Path) -> Table:
    with _told(path), _open_bytes(path) as file:
        head = file.read(CHUNK)
    table = Table(name=_stem(path), where=path.name, rows=lambda columns: iter(()))
    if head.startswith(b"PAR1"):
        return _parquet_table(path, table)
    if head.startswith(b"PK\x03\x04"):
        raise BadData(f"{path.name} is a zip archive or a spreadsheet. Save it as CSV, or unpack it.")
    if not head:
        raise BadData(f"{path.name} is empty.")
    text = _encoding(path)
    parse = _parser(path, text)
    return replace(table, rows=partial(_text_rows, path, text, parse), remarks=text.remarks)


def _text_rows(
    path: Path, text: _Encoding, parse: Callable[[TextIO], Iterator[Row]], columns: Sequence[str] | None
) -> Iterator[Row]:
    with _told(path), _open_text(path, text) as file:
        yield from parse(file)


def _parser(path: Path, text: _Encoding) -> Callable[[TextIO], Iterator[Row]]:
    """What reads this file: told from its beginning, its suffix deciding when that is not enough."""
    with _told(path), _open_text(path, text) as file:
        head = file.read(CHUNK).lstrip()
    name = path.name.lower().removesuffix(".gz")
    first_line = re.split(r"[\r\n]", head, maxsplit=1)[0]
    if re.match(r"\[\s*([{\[\"\]]|$)", head):
        return array_rows
    if head.startswith("{") and (name.endswith((".jsonl", ".ndjson")) or is_object(first_line)):
        return line_rows
    if head.startswith("{") and name.endswith(".json"):
        raise BadData(f"{path.name} must be a list of objects, or have one object a line.")
    delimiter = find_delimiter(first_line, "\t" if name.endswith(".tsv") else ",")
    if name.endswith((".csv", ".tsv")) or has_text_column(header_cells(first_line, delimiter)):
        return partial(csv_rows, path.name, delimiter)
    if name.endswith(_SUFFIXES):
        return line_rows
    raise BadData(f"{path.name} is of no format we know: use {', '.join(_SUFFIXES)}, all but the last also with .gz.")


# Bytes and encodings


class _Encoding(NamedTuple):
    name: str
    errors: str = "surrogateescape"  # invalid bytes become lone surrogates, which every row is cleaned of, with a note
    remarks: tuple[str, ...] = ()


def _encoding(path: Path) -> _Encoding:
    """How the file is encoded: by its mark, else UTF-8 if that fits most of it, else Windows-1252.

    This reads the whole file once: one accent at the end of a long file is enough to get a text wrong.
    """
    with _told(path), _open_bytes(path) as file:
        head = file.read(4)
        for mark, name in _BOMS:
            if head.startswith(mark):
                # error handlers of UTF-16 cannot keep a byte, so that such rows get no note of their own
                return _Encoding(name) if name == "utf-8-sig" else _Encoding(name, "replace")
    with _told(path), _open_bytes(path) as file:
        is_utf8 = _is_utf8(file)
    if is_utf8:
        return _Encoding("utf-8")
    with _told(path), _open_bytes(path) as file:
        valid, invalid = _count_utf8(file)
    if invalid > valid:
        return _Encoding("cp1252", remarks=(f"{path.name} is not UTF-8 and was read as Windows-1252 (Latin-1).",))
    return _Encoding("utf-8")


def _is_utf8(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(1 << 20):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _count_utf8(file: BinaryIO) -> tuple[int, int]:
    """How many characters beyond ASCII are valid UTF-8, and how many bytes are not."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    valid = invalid = 0
    while chunk := file.read(1 << 20):
        text = decoder.decode(chunk)
        escaped = len(text) - len(text.encode(errors="ignore").decode())
        invalid += escaped
        valid += len(text) - len(text.encode("ascii", "ignore")) - escaped
    return valid, invalid + len(decoder.getstate()[0])


def _open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, unpacked if they are gzip, whatever the name says."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _open_text(path: Path, text: _Encoding) -> TextIO:
    return io.TextIOWrapper(_open_bytes(path), encoding=text.name, errors=text.errors, newline="")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Failures of the disk, of gzip and of Parquet, in a sentence."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeError, ValueError, OverflowError) as error:
        what = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0]
        raise BadData(f"{path.name or path} cannot be read: {what}.") from error


# Parquet, and objects in memory


def _parquet_table(path: Path, table: Table) -> Table:
    with _told(path), pq.ParquetFile(path) as file:
        total, schema = file.metadata.num_rows, file.schema_arrow
    named_columns(schema.names, path.name)

    def rows(columns: Sequence[str] | None) -> Iterator[Row]:
        with _told(path), pq.ParquetFile(path) as file:
            batches = file.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False)
            yield from _batch_rows(batch.to_pydict() for batch in batches)

    return replace(table, rows=rows, total=total, label_names=_hub_label_names(schema.metadata or {}))


def _hub_label_names(metadata: Mapping[bytes, bytes]) -> dict[str, Sequence[str]]:
    """Names of labels that `datasets` left in a Parquet file."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return {column: feature["names"] for column, feature in features.items() if feature.get("names")}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _dataset_table(dataset: Any) -> Table:
    """A `datasets.Dataset` or `IterableDataset`, known by its methods."""
    features = getattr(dataset, "features", None) or {}
    names = {column: feature.names for column, feature in features.items() if getattr(feature, "names", None)}

    def rows(columns: Sequence[str] | None) -> Iterator[Row]:
        plain = dataset.with_format(None)
        return _batch_rows((plain.select_columns(list(columns)) if columns else plain).iter(batch_size=_BATCH))

    split = str(dataset.split) if getattr(dataset, "split", None) else None
    total = getattr(dataset, "num_rows", None)
    return Table(split or "row", "The data set", rows, split=split, total=total, label_names=names)


def _batch_rows(batches: Iterable[Mapping[str, list[Any]]]) -> Iterator[Row]:
    number = 0
    for batch in batches:
        for cells in zip(*batch.values(), strict=True):
            number += 1
            yield Row(number, None, dict(zip(batch, cells, strict=True)))


def _frame_table(frame: Any) -> Table:
    def rows(columns: Sequence[str] | None) -> Iterator[Row]:
        names = [str(column) for column in frame.columns]
        for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
            yield Row(number, None, dict(zip(names, values, strict=True)))

    return Table("row", "The table", rows, total=len(frame))


def _list_table(source: Iterable[Any]) -> Table:
    """Rows in memory; those of an iterator that can run only once are seen again from a copy of its beginning."""
    total = len(source) if isinstance(source, Sequence) else None
    if isinstance(source, Iterator):
        head = list(itertools.islice(source, PEEK))
        source = _Resumed(head, source)

    def rows(columns: Sequence[str] | None) -> Iterator[Row]:
        return (_object_row(item, number) for number, item in enumerate(source, 1))

    return Table("row", "The list", rows, total=total)


@dataclass(frozen=True)
class _Resumed:
    head: list[Any]
    rest: Iterator[Any]

    def __iter__(self) -> Iterator[Any]:
        yield from self.head
        yield from self.rest


def _object_row(item: Any, number: int) -> Row:
    if isinstance(item, Example):
        return Row(number, None, {name: getattr(item, name) for name in Example.__slots__})
    if isinstance(item, str):
        return Row(number, None, {"text": item})
    if isinstance(item, Mapping):
        return Row(number, None, {str(column): cell for column, cell in item.items()})
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return Row(number, None, {"text": item[0], "pair": item[1]})
    return Row(number, None, None, "not an object", type(item).__name__)
