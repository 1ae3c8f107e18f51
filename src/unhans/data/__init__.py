"""The data door: files, folders, data sets and lists become examples; what cannot is set aside with a reason.

    corpus = read("reviews.csv")
    print(corpus.summary())     # 9,988 of 10,000 rows read. 12 set aside: empty text (12). …

Every column is found by its name (`unhans.data.columns`) or named by the caller. `NA`, `null` and `None` are texts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unhans.data.columns import Choice, Roles, assign_roles, has_text_column, missing, no_such_column, no_text_column
from unhans.data.corpus import Corpus, CorpusBuilder, Problems, Reading, SetAside, counted
from unhans.data.formats import Table, peek, tables
from unhans.data.ids import UniqueIds
from unhans.data.rows import OUR_NOTES, BadRow, Layout, label_names, to_example
from unhans.data.writing import write
from unhans.errors import BadData, BadOption
from unhans.types import Example

__all__ = ["Corpus", "Problems", "SetAside", "columns_of", "iter_examples", "read", "write"]

Labels = Mapping[Any, str | None] | Sequence[str]
Progress = Callable[[int, int | None], None]

_MOST_SET_ASIDE = 10_000
_PROGRESS_EVERY = 10_000


def read(
    source: Any,
    *,
    text: str | None = None,
    pair: Choice = None,
    label: Choice = None,
    id: Choice = None,
    group: Choice = None,
    highlights: Choice = None,
    pair_highlights: Choice = None,
    split: Choice = None,
    labels: Labels | None = None,
    limit: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Corpus:
    """All examples of a source, compactly.

    A source is a CSV, TSV, JSON-lines (each also with `.gz`), JSON or Parquet file, a folder of such files, one a
    split, a `datasets` data set, a mapping from splits to any of these, or a list of dicts, `Example`s, texts or
    pairs of texts. A column is guessed from its name (None), named, or said not to exist (False).

    `labels` names the labels in the data: a mapping, or a sequence whose first name is for 0. `limit` is the most
    examples to read. Rows without a readable text are set aside; `strict` makes the first of them an error.
    `progress` is called with the rows done and the rows in all, if known.
    """
    wanted = _wanted(text, pair, label, id, group, highlights, pair_highlights, split)
    log, builder = _Log(strict, progress), CorpusBuilder()
    for example in _stream(source, wanted, labels, limit, log):
        builder.add(example)
    return builder.corpus(log.reading())


def iter_examples(
    source: Any,
    *,
    text: str | None = None,
    pair: Choice = None,
    label: Choice = None,
    id: Choice = None,
    group: Choice = None,
    highlights: Choice = None,
    pair_highlights: Choice = None,
    split: Choice = None,
    labels: Labels | None = None,
    limit: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    set_aside: Callable[[SetAside], None] | None = None,
) -> Iterator[Example]:
    """The examples of a source one by one, holding none of them; otherwise as `read`.

    `set_aside` is called with every row that is not read. What is remembered is eight bytes or so for every id.
    """
    wanted = _wanted(text, pair, label, id, group, highlights, pair_highlights, split)
    return _stream(source, wanted, labels, limit, _Log(strict, progress, set_aside))


def columns_of(source: Any, **named: Choice) -> tuple[tuple[str, ...], Roles | None]:
    """The columns of a source by the look of its first rows, and which of them `read` would take for what."""
    wanted = dict.fromkeys(_ROLES) | named
    columns: dict[str, None] = {}
    roles: Roles | None = None
    for table in tables(source):
        columns.update(dict.fromkeys(column for row in peek(table) for column in row.cells or ()))
        try:
            roles = roles or _layout(table, wanted, None)[0].roles
        except BadData:
            continue  # `read` says why; here the columns are what is asked for
    return tuple(columns), roles


_ROLES = ("text", "pair", "label", "id", "group", "highlights", "pair_highlights", "split")


def _wanted(*choices: Choice) -> dict[str, Choice]:
    return dict(zip(_ROLES, choices, strict=True))


class _Log:
    """What happens while rows are read."""

    def __init__(
        self, strict: bool, progress: Progress | None, set_aside: Callable[[SetAside], None] | None = None
    ) -> None:
        self.n_rows = self.n_kept = 0
        self.ids = UniqueIds()
        self.remarks: list[str] = []
        self._strict, self._progress, self._tell = strict, progress, set_aside
        self._aside: list[SetAside] = []
        self._reasons: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()

    def row_done(self, total: int | None) -> None:
        self.n_rows += 1
        if self._progress and self.n_rows % _PROGRESS_EVERY == 0:
            self._progress(self.n_rows, total)

    def all_done(self, total: int | None) -> None:
        if self._progress and self.n_rows % _PROGRESS_EVERY:
            self._progress(self.n_rows, total)

    def set_aside(self, row: SetAside) -> None:
        if self._strict:
            raise BadData(str(row))
        self._reasons[row.reason] += 1
        if len(self._aside) < _MOST_SET_ASIDE:
            self._aside.append(row)
        if self._tell:
            self._tell(row)

    def kept(self, example: Example) -> Example:
        self.n_kept += 1
        for note in example.notes:
            if note in OUR_NOTES:
                self._notes[note] += 1
        unique = self.ids.unique(example.id)
        return example if unique == example.id else replace(example, id=unique)

    def nothing_read(self) -> BadData:
        if not self.n_rows:
            return BadData("There are no rows.")
        reasons = ", ".join(f"{reason} ({n:,})" for reason, n in self._reasons.most_common())
        return BadData(f"Nothing could be read of {counted(self.n_rows, 'row')}: {reasons}. First: {self._aside[0]}")

    def reading(self) -> Reading:
        remarks = list(self.remarks)
        if n := self.ids.n_repeated:
            remarks.append(f"{counted(n, 'row')} had the id of an earlier row and got a suffix such as #2.")
        most_common = tuple(self._reasons.most_common())
        return Reading(self.n_rows, tuple(self._aside), most_common, tuple(self._notes.most_common()), tuple(remarks))


def _stream(
    source: Any, wanted: Mapping[str, Choice], labels: Labels | None, limit: int | None, log: _Log
) -> Iterator[Example]:
    """Check all that can be checked now; the rows are read later, as they are asked for."""
    if limit is not None and limit < 1:
        raise BadOption(f"limit must be at least 1, not {limit}.")
    if isinstance(labels, str):
        raise BadOption(f"labels must be a list of names or a mapping to names, not {labels!r}.")
    names = label_names(labels) if labels is not None else None
    return _run(_plan(tables(source), wanted, names, log), limit, log)


def _run(planned: Sequence[tuple[Table, Layout]], limit: int | None, log: _Log) -> Iterator[Example]:
    totals = [table.total for table, _ in planned]
    total = None if None in totals else sum(n for n in totals if n is not None)
    examples = itertools.chain.from_iterable(_examples(table, layout, log, total) for table, layout in planned)
    yield from itertools.islice(examples, limit)
    if not log.n_kept:
        raise log.nothing_read()
    if log.n_kept == limit:
        log.remarks.append(f"Reading stopped after {counted(limit, 'example')}, as asked.")
    log.all_done(total)


def _examples(table: Table, layout: Layout, log: _Log, total: int | None) -> Iterator[Example]:
    for row in table.rows(layout.roles.columns()):
        log.row_done(total)
        try:
            example = to_example(row, layout)
        except BadRow as bad:
            log.set_aside(SetAside(row.number, bad.reason, table.where, row.line, bad.detail))
        else:
            yield log.kept(example)


def _plan(
    found: Sequence[Table], wanted: Mapping[str, Choice], names: Mapping[str, str | None] | None, log: _Log
) -> list[tuple[Table, Layout]]:
    """How to read each table. Of several, those without a text are left out with a remark."""
    planned, refusals, columns_seen = [], [], dict[str, None]()
    for table in found:
        try:
            layout, columns = _layout(table, wanted, names)
        except BadData as refusal:
            refusals.append(refusal)
            continue
        planned.append((table, layout))
        columns_seen.update(dict.fromkeys(columns))
    if not planned:
        raise refusals[0]
    if absent := missing(list(columns_seen), wanted):
        raise no_such_column(absent[0], list(columns_seen), planned[0][0].where)
    log.remarks += [f"Left out: {refusal}" for refusal in refusals]
    log.remarks += [remark for table, _ in planned for remark in table.remarks]
    told = dict.fromkeys(layout.roles.sentence() for _, layout in planned)
    log.remarks += told if len(told) == 1 else [f"{t.where}: {layout.roles.sentence()}" for t, layout in planned]
    return planned


def _layout(
    table: Table, wanted: Mapping[str, Choice], names: Mapping[str, str | None] | None
) -> tuple[Layout, Sequence[str]]:
    first = peek(table)
    rows = [row.cells for row in first if row.cells is not None]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if not first:
        raise BadData(f"{table.where} has no rows.")
    if not rows:
        bad = first[0]
        told = SetAside(bad.number, bad.problem, table.where, bad.line, bad.detail)
        raise BadData(f"Nothing could be read of the first {counted(len(first), 'row')}. {told}")
    text = wanted["text"]
    if isinstance(text, str) and text not in columns:
        raise no_such_column(text, columns, table.where)
    if text is None and not has_text_column(columns):
        raise no_text_column(columns, table.where)
    roles = assign_roles(columns, wanted, rows)
    if names is None and roles.label is not None and roles.label in table.label_names:
        names = label_names(table.label_names[roles.label])
    return Layout(roles, table.name, table.split, names), columns
