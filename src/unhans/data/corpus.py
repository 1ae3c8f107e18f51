"""Many examples in little memory: a frozen sequence over columns, with an account of how it was read."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unhans.present import html_table
from unhans.types import Example, Span

_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "text": pa.large_string(),
        "pair": pa.large_string(),
        "label": pa.string(),
        "highlights": pa.list_(pa.int32()),  # start, end, 0 for the text or 1 for the pair; and so on
        "group": pa.string(),
        "split": pa.string(),
        "notes": pa.list_(pa.string()),
    }
)
_BATCH_ROWS = 10_000
_BATCH_CHARACTERS = 4_000_000
_ROWS_AT_ONCE = 1_000
_ROWS_SHOWN = 10
_CHARACTERS_SHOWN = 200
_SPLITS_COMPARED = 20
_IDS_SHOWN = 20


class SetAside(NamedTuple):
    """A row that was not read, and why."""

    row: int  # counts data rows from 1, without the header
    reason: str
    file: str
    line: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, row {self.row:,}" + (f" (line {self.line:,})" if self.line else "")
        return f"{where}: {self.reason}" + (f" ({self.detail})." if self.detail else ".")


@dataclass(frozen=True, slots=True)
class Reading:
    """What happened while a corpus was read."""

    n_rows: int
    set_aside: tuple[SetAside, ...] = ()  # the first of them
    reasons: tuple[tuple[str, int], ...] = ()  # how many of all for each reason, the commonest first
    notes: tuple[tuple[str, int], ...] = ()  # how many rows carry each note of ours
    remarks: tuple[str, ...] = ()  # sentences about files and columns


@dataclass(frozen=True, slots=True)
class Problems:
    """What is doubtful about the texts of a corpus. A text here is a text together with its pair."""

    repeated: int  # texts that occur more than once
    contradictions: int  # texts that occur with different labels
    shared: tuple[tuple[str, str, int], ...]  # two splits, and how many texts occur in both
    repeated_ids: tuple[str, ...] = ()  # ids of some of the rows concerned
    contradicting_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = []
        if self.repeated:
            told.append(f"{counted(self.repeated, 'text')} {'occurs' if self.repeated == 1 else 'occur'} repeatedly.")
        if self.contradictions:
            occur = "occurs" if self.contradictions == 1 else "occur"
            told.append(f"{counted(self.contradictions, 'text')} {occur} with different labels.")
        for one, other, n in self.shared:
            told.append(f"{counted(n, 'text')} {'occurs' if n == 1 else 'occur'} in both {one} and {other}.")
        return " ".join(told) or "No text occurs twice."


class Corpus(Sequence[Example]):
    """A frozen sequence of examples, kept as columns: a million texts of 100 characters take 220 MB.

    Examples are built when they are asked for, so two looks at the same place give equal objects, not the same one.
    Slices and splits are corpora too; what was set aside is known by the whole corpus only.
    """

    def __init__(self, table: pa.Table, reading: Reading | None = None) -> None:
        self._table = table
        self._reading = reading

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> Corpus: ...
    def __getitem__(self, place: int | slice) -> Example | Corpus:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return Corpus(self._table.slice(start, max(0, stop - start)))
            return Corpus(self._table.take(np.arange(start, stop, step)))
        row = range(len(self))[place]  # IndexError and negative places as in a list
        batch = bisect_right(self._starts, row) - 1
        offset = row - self._starts[batch]
        return _example([column[offset].as_py() for column in self._batches[batch].columns])

    def __iter__(self) -> Iterator[Example]:
        for batch in self._table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from map(_example, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Corpus):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that occur, sorted; by value if all of them are integers."""
        return tuple(_in_order(_distinct(self._table["label"])))

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the order in which they occur."""
        return tuple(_distinct(self._table["split"]))

    def split(self, name: str) -> Corpus:
        """The examples of one split; none if there is no such split."""
        rows = np.flatnonzero(pc.equal(self._table["split"], name).fill_null(False).to_numpy())
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):  # in one piece, as folders of splits are: no copy
            return Corpus(self._table.slice(int(rows[0]), len(rows)))
        return Corpus(self._table.filter(pc.equal(self._table["split"], name)))

    def relabelled(self, spelling: Mapping[str, str | None]) -> Corpus:
        """The same examples, each label replaced by what it is called here (None: no label); others stay."""
        labels = [
            spelling.get(label, label) if label is not None else None for label in self._table["label"].to_pylist()
        ]
        place = self._table.schema.get_field_index("label")
        return Corpus(
            self._table.set_column(place, _SCHEMA.field("label"), pa.array(labels, pa.string())), self._reading
        )

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """The rows that were not read, in order: the first 10,000 of them."""
        return self._reading.set_aside if self._reading else ()

    @property
    def reading(self) -> Reading | None:
        """What happened while it was read; None for a part of a corpus."""
        return self._reading

    def summary(self) -> str:
        """What was read, what was not, and what deserves a second look, in a few sentences."""
        return " ".join(self._sentences())

    def problems(self) -> Problems:
        """Texts that occur more than once, with different labels, or in two splits.

        Compares hashes of the texts: about a second and 30 MB for a million rows.
        """
        texts = np.fromiter(map(hash, self._texts()), np.int64, len(self))
        distinct, times = np.unique(texts, return_counts=True)
        repeated = distinct[times > 1]
        rows = np.flatnonzero(np.isin(texts, repeated))  # nothing else can be a problem
        texts, labels, splits = texts[rows], self._codes("label")[rows], self._codes("split")[rows]
        contradicting = _under_several(texts, labels)
        return Problems(
            repeated=len(repeated),
            contradictions=len(contradicting),
            shared=self._shared(texts, splits),
            repeated_ids=self._some_ids(rows),
            contradicting_ids=self._some_ids(rows[np.isin(texts, contradicting)]),
        )

    def __repr__(self) -> str:
        parts = [counted(len(self), "example")]
        if labels := self.labels:
            parts.append(f"labels {_some(labels)}")
        if splits := self.splits:
            parts.append(f"splits {_some(splits)}")
        return f"<Corpus: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        first = list(self[:_ROWS_SHOWN])
        names = ("id", "text", "pair", "label", "group", "split")
        shown = [name for name in names if any(getattr(example, name) is not None for example in first)]
        return html_table(shown, [[_cell(getattr(e, name)) for name in shown] for e in first], self.summary())

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        return list(self._table.to_batches())

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *itertools.accumulate(batch.num_rows for batch in self._batches)][:-1]

    def _texts(self) -> Iterator[tuple[str, str | None]]:
        for batch in self._table.select(["text", "pair"]).to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from zip(batch["text"].to_pylist(), batch["pair"].to_pylist(), strict=True)

    def _codes(self, column: str) -> np.ndarray[Any, np.dtype[np.int32]]:
        """A number for each value of a column, -1 for none."""
        values = pa.array(_distinct(self._table[column]), pa.string())
        codes = pc.index_in(self._table[column], value_set=values).fill_null(-1)
        return np.asarray(codes.to_numpy(), np.int32)

    def _shared(self, texts: Any, splits: Any) -> tuple[tuple[str, str, int], ...]:
        names = self.splits[:_SPLITS_COMPARED]
        counts = (
            (one, other, len(np.intersect1d(texts[splits == i], texts[splits == j])))
            for (i, one), (j, other) in itertools.combinations(enumerate(names), 2)
        )
        return tuple(count for count in counts if count[2])

    def _some_ids(self, rows: Any) -> tuple[str, ...]:
        return tuple(self[int(row)].id for row in rows[:_IDS_SHOWN])

    def _sentences(self) -> Iterator[str]:
        if self._reading is None:
            yield f"{counted(len(self), 'row')}."
        else:
            yield f"{len(self):,} of {counted(self._reading.n_rows, 'row')} read."
            if aside := sum(n for _, n in self._reading.reasons):
                yield f"{aside:,} set aside: {_tally(self._reading.reasons)}."
        yield from self._label_sentences()
        pairless = self._table["pair"].null_count
        if 0 < pairless < len(self):
            yield f"{counted(pairless, 'row')} {'has' if pairless == 1 else 'have'} no second text."
        if self._reading:
            yield from (f"{note} ({counted(n, 'row')})" for note, n in self._reading.notes)
            yield from self._reading.remarks

    def _label_sentences(self) -> Iterator[str]:
        labels, unlabelled = self.labels, self._table["label"].null_count
        if unlabelled:
            yield f"{counted(unlabelled, 'row')} {'has' if unlabelled == 1 else 'have'} no label: explain only."
        if len(labels) == 1:
            yield f"All labels are {labels[0]!r}: add another one to train."
        elif labels:
            yield f"Labels: {_some(labels)}."
        alike = Counter(label.casefold() for label in labels)
        for folded in (label for label, n in alike.items() if n > 1):
            same = [label for label in labels if label.casefold() == folded]
            yield f"The labels {', '.join(map(repr, same))} differ in case only: one of them may be a slip."


class CorpusBuilder:
    """Collects examples into columns, a batch at a time."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._examples: list[Example] = []
        self._size = 0

    def add(self, example: Example) -> None:
        """Take one more example."""
        self._examples.append(example)
        self._size += len(example.text) + len(example.pair or "")
        if len(self._examples) >= _BATCH_ROWS or self._size >= _BATCH_CHARACTERS:
            self._flush()

    def corpus(self, reading: Reading) -> Corpus:
        """All that was added; the builder is spent."""
        self._flush()
        return Corpus(pa.Table.from_batches(self._batches, _SCHEMA), reading)

    def _flush(self) -> None:
        if self._examples:
            self._batches.append(record_batch(self._examples))
        self._examples, self._size = [], 0


def record_batch(examples: Sequence[Example]) -> pa.RecordBatch:
    """Examples as columns."""
    columns = [
        pa.array([e.id for e in examples], pa.string()),
        pa.array([e.text for e in examples], pa.large_string()),
        pa.array([e.pair for e in examples], pa.large_string()),
        pa.array([e.label for e in examples], pa.string()),
        pa.array([_triples(e.highlights) for e in examples], pa.list_(pa.int32())),
        pa.array([e.group for e in examples], pa.string()),
        pa.array([e.split for e in examples], pa.string()),
        pa.array([e.notes or None for e in examples], pa.list_(pa.string())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def counted(n: int, noun: str) -> str:
    """`1 row`, `9,988 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _triples(highlights: Iterable[Span] | None) -> list[int] | None:
    if highlights is None:
        return None
    return [number for span in highlights for number in (span.start, span.end, int(span.part == "pair"))]


def _example(cells: Sequence[Any]) -> Example:
    """The example of one row of columns."""
    id_, text, pair, label, triples, group, split, notes = cells
    highlights = None
    if triples is not None:
        thirds = zip(triples[::3], triples[1::3], triples[2::3], strict=True)
        highlights = tuple(Span(start, end, "pair" if in_pair else "text") for start, end, in_pair in thirds)
    return Example(id_, text, pair, label, highlights, group, split, tuple(notes or ()))


def _distinct(column: pa.ChunkedArray) -> list[str]:
    return [value for value in pc.unique(column).to_pylist() if value is not None]


def _in_order(labels: list[str]) -> list[str]:
    try:
        return sorted(labels, key=int)
    except ValueError:
        return sorted(labels)


def _under_several(texts: Any, codes: Any) -> Any:
    """The texts that occur under more than one code; -1 does not count."""
    has_code = codes >= 0
    both = np.unique(np.stack([texts[has_code], codes[has_code].astype(np.int64)]), axis=1)
    distinct, times = np.unique(both[0], return_counts=True)
    return distinct[times > 1]


def _tally(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{what} ({n:,})" for what, n in counts)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else name[:40] + "…" for name in names[:10])
    return shown + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")


def _cell(value: str | None) -> str:
    text = value or ""
    return text if len(text) <= _CHARACTERS_SHOWN else text[:_CHARACTERS_SHOWN] + "…"
