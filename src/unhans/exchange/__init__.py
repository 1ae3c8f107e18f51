"""Feedback goes out into files and comes back in.

The **log** goes as JSON lines (exact) or CSV (for spreadsheets). **Rationales**, which is what people marked in single
texts, go to and from ERASER, Prodigy and Label Studio. `FORMATS` says what each can carry. Reading never fails for one
line: what cannot be read comes out as a `Refusal` where the entry would have been.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple, TextIO, TypeVar

from unhans.data.parsing import CHUNK, array_rows, line_rows
from unhans.data.rows import Row
from unhans.errors import BadOption
from unhans.exchange import eraser, label_studio, log, prodigy
from unhans.exchange.eraser import write_documents
from unhans.exchange.label_studio import labelling_config
from unhans.exchange.shared import Find, Judged, Refusal, Refused, cells_of, short, text_of
from unhans.feedback import subject_of, value_of
from unhans.text import Words
from unhans.types import Example, Feedback, Relabel, Review, WordVote

__all__ = [
    "FORMATS",
    "MAX_ENTRIES",
    "Find",
    "Format",
    "Refusal",
    "Written",
    "by_example",
    "finder",
    "labelling_config",
    "read_feedback",
    "read_rationales",
    "write_documents",
    "write_feedback",
    "write_rationales",
]

MAX_ENTRIES = 1_000_000  # lines of one file


class Written(NamedTuple):
    """How many opinions went into a file, and how many the format has no place for."""

    written: int
    left_out: int


# The log


def write_feedback(entries: Iterable[Feedback], file: BinaryIO, format: str) -> int:
    """Write entries of the log in their order, retractions too; how many comes back. The file stays open.

    CSV has a row for each entry and the columns `id, author, at, revision, text_hash, retracts, seconds, kind` followed
    by those of all kinds of answers. A cell that a spreadsheet would take for a formula gets a `'` in front.
    """
    return _codec(format, _LogCodec).write(entries, file)


def read_feedback(file: BinaryIO, format: str, *, limit: int = MAX_ENTRIES) -> Iterator[Feedback | Refusal]:
    """The entries of a file that `write_feedback` wrote; `BadData` if it has no usable header. The file can be sought.

    JSON lines give back what was written, except that NUL and half surrogates are cleaned as at the data door. CSV
    does too, except that empty ids and hashes become None where None is possible.
    """
    codec = _codec(format, _LogCodec)

    def read() -> Iterator[Feedback | Refusal]:
        with text_of(file) as text:
            for row in _first(codec.rows(text), limit):
                try:
                    yield log.checked(codec.entry(cells_of(row)))
                except Refused as refused:
                    yield _refusal(row, refused)

    return read()


# Rationales


def by_example(
    opinions: Iterable[Feedback], examples: Iterable[Example]
) -> Iterator[tuple[Example, Sequence[Feedback]]]:
    """Examples somebody said something about, each with what was said; holds the opinions, not the examples."""
    said: dict[str, list[Feedback]] = defaultdict(list)
    for opinion in opinions:
        if isinstance(id_ := getattr(opinion.says, "example", None), str):
            said[id_].append(opinion)
    return ((example, said[example.id]) for example in examples if example.id in said)


def finder(examples: Iterable[Example]) -> Find:
    """A `Find` over examples in memory."""
    by_id: dict[str, Example] = {}
    by_text: dict[tuple[str, str | None], Example] = {}
    for example in examples:
        by_id.setdefault(example.id, example)
        by_text.setdefault((example.text, example.pair), example)
    return lambda id_, text, pair: by_id.get(id_) or by_text.get((text, pair))


def write_rationales(annotated: Iterable[tuple[Example, Sequence[Feedback]]], file: BinaryIO, format: str) -> Written:
    """Write what people marked in texts: votes on words, right labels and reviews. The file stays open.

    Each example comes with the opinions about it (`by_example`). Votes that do not fit the text (any more), votes on no
    particular occurrence and other kinds of answers are left out, and counted.
    """
    codec = _codec(format, _RationaleCodec)
    written = left_out = 0
    separator = b""
    file.write(b"[\n" if codec.is_list else b"")
    for example, opinions in annotated:
        words = Words(example)
        fitting = [opinion for opinion in opinions if _fits(opinion, example, words)]
        written, left_out = written + len(fitting), left_out + len(opinions) - len(fitting)
        for record in codec.records(example, words, _by_author(example, words, fitting)):
            line = json.dumps(record, ensure_ascii=False)
            file.write(separator + line.encode(errors="backslashreplace"))  # half a surrogate pair becomes its escape
            separator = b",\n" if codec.is_list else b"\n"
    file.write(b"\n]\n" if codec.is_list else separator)
    return Written(written, left_out)


def read_rationales(
    file: BinaryIO,
    format: str,
    *,
    find: Find,
    revision: str,
    at: str,
    labels: Collection[str] | None = None,
    author: Callable[[str], str] = str,
    limit: int = MAX_ENTRIES,
) -> Iterator[Feedback | Refusal]:
    """Votes, right labels and reviews in a file of one of the rationale formats, as entries for the log.

    `author` turns the name in the file (the format's name where the file has none) into that of an author. `labels`
    are the ones that exist; others are refused. What one person said about one example is taken whole or not at all.
    Entries have ids made of what they say, so that a file read twice gives the same ones; `at` is the time of the
    import and `revision` that of the model the votes are to count for. The file can be sought.
    """
    codec = _codec(format, _RationaleCodec)

    def read() -> Iterator[Feedback | Refusal]:
        with text_of(file) as text:
            is_list = text.read(CHUNK).lstrip().startswith("[")  # a list or lines, whichever the tool writes
            text.seek(0)
            for row in _first((array_rows if is_list else line_rows)(text), limit):
                for judged in _judgements(codec, row, find):
                    try:
                        if isinstance(judged, Refused):
                            raise judged
                        one = replace(judged, author=author(judged.author or format))
                        yield from [log.checked(entry) for entry in _entries(one, labels, revision, at)]
                    except Refused as refused:
                        yield _refusal(row, refused)

    return read()


def _judgements(codec: _RationaleCodec, row: Row, find: Find) -> Iterator[Judged | Refused]:
    try:
        yield from codec.judged(cells_of(row), find)
    except Refused as refused:
        yield refused


def _fits(opinion: Feedback, example: Example, words: Words) -> bool:
    match opinion.says:
        case WordVote(example=about, position=int() as position, word=word):
            return about == example.id and 0 <= position < len(words) and words.strings[position] == word
        case Relabel(example=about) | Review(example=about):
            return about == example.id
    return False


def _by_author(example: Example, words: Words, opinions: Iterable[Feedback]) -> list[Judged]:
    by_author: dict[str, list[Any]] = defaultdict(list)
    for opinion in opinions:
        by_author[opinion.author].append(opinion.says)
    found = []
    for author, answers in by_author.items():
        votes = [(one.position or 0, one.label, one.vote) for one in answers if isinstance(one, WordVote)]
        right = next((one for one in answers if isinstance(one, Relabel)), None)
        label, drop = (right.label, right.label is None) if right else (None, False)
        review = next((one for one in answers if isinstance(one, Review)), None)
        state, note = (review.state, review.note) if review else (None, "")
        found.append(Judged(example, words, author, tuple(sorted(votes)), label, drop, state, note))
    return found


def _entries(judged: Judged, labels: Collection[str] | None, revision: str, at: str) -> list[Feedback]:
    """The entries that a judgement comes to."""
    example, votes = judged.example, sorted(set(judged.votes))
    named = {label for _, label, _ in votes} | ({judged.label} if judged.label is not None else set())
    if labels is not None and (unknown := sorted(named.difference(labels))):
        raise Refused(f"there is no label {short(unknown[0])}.")
    if len({(position, label) for position, label, _ in votes}) < len(votes):
        raise Refused("a word is marked to count both more and less for one label.")
    says: list[WordVote | Relabel | Review] = []
    for position, label, vote in votes:
        says.append(WordVote(judged.words.strings[position], label, vote, example.id, position))  # type: ignore[arg-type]
    if judged.drop and judged.label is not None:
        raise Refused("a label is given, and that none fits.")
    if judged.drop or judged.label is not None:
        says.append(Relabel(example.id, judged.label))
    if judged.state is not None:
        says.append(Review(example.id, judged.state, judged.note[:5000]))  # type: ignore[arg-type]
    hash_ = example.text_hash
    return [Feedback(_id(judged.author, one, hash_, revision), one, judged.author, at, revision, hash_) for one in says]


def _id(author: str, says: WordVote | Relabel | Review, text_hash: str, revision: str) -> str:
    told = [author, subject_of(says), value_of(says), getattr(says, "note", ""), text_hash, revision]
    return "import-" + hashlib.blake2b(json.dumps(told).encode(), digest_size=12).hexdigest()


def _first(rows: Iterator[Row], limit: int) -> Iterator[Row]:
    for row in itertools.islice(rows, limit + 1):
        too_many = Row(row.number, row.line, None, f"only the first {limit:,} are read; split the file")
        yield row if row.number <= limit else too_many


def _refusal(row: Row, refused: Refused) -> Refusal:
    return Refusal(row.line or row.number, str(refused), "Line" if row.line else "Element")


# The formats


class _LogCodec(NamedTuple):
    write: Callable[[Iterable[Feedback], BinaryIO], int]
    rows: Callable[[TextIO], Iterator[Row]]
    entry: Callable[[Mapping[str, Any]], Feedback]


class _RationaleCodec(NamedTuple):
    records: Callable[[Example, Words, Sequence[Judged]], Iterator[dict[str, Any]]]
    judged: Callable[[Mapping[str, Any], Find], Iterator[Judged | Refused]]
    is_list: bool = False  # a JSON list, not lines


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how it is called, what it can carry, and what is lost in it."""

    suffix: str
    media_type: str
    carries: frozenset[str]  # kinds of answers
    loses: str
    codec: _LogCodec | _RationaleCodec

    @property
    def is_log(self) -> bool:
        """Whether it holds the log (`write_feedback`), and not what stands (`write_rationales`)."""
        return isinstance(self.codec, _LogCodec)


_ALL = frozenset(log.TEXT_FIELDS)
_IN_TEXTS = frozenset({"word_vote", "relabel", "review"})
_LOST = "Votes everywhere, ratings, rulings, verdicts, what was taken back, times, durations and the revision."
FORMATS = {
    "jsonl": Format(
        ".jsonl", "application/x-ndjson", _ALL, "Nothing.", _LogCodec(log.write_lines, line_rows, log.entry_of)
    ),
    "csv": Format(
        ".csv",
        "text/csv",
        _ALL,
        "The difference between an empty id, hash or right label and none.",
        _LogCodec(log.write_csv, log.open_csv, log.entry_of_row),
    ),
    "eraser": Format(
        ".jsonl",
        "application/x-ndjson",
        _IN_TEXTS,
        f"{_LOST} Other tools see only words raised for the label of the text; `operations` has all votes.",
        _RationaleCodec(eraser.records, eraser.judged),
    ),
    "prodigy": Format(
        ".jsonl", "application/x-ndjson", _IN_TEXTS, _LOST, _RationaleCodec(prodigy.records, prodigy.judged)
    ),
    "label_studio": Format(
        ".json",
        "application/json",
        _IN_TEXTS,
        _LOST,
        _RationaleCodec(label_studio.records, label_studio.judged, is_list=True),
    ),
}

C = TypeVar("C", _LogCodec, _RationaleCodec)


def _codec(format: str, kind: type[C]) -> C:
    codec = FORMATS[format].codec if format in FORMATS else None
    if not isinstance(codec, kind):
        fitting = ", ".join(name for name, one in FORMATS.items() if isinstance(one.codec, kind))
        raise BadOption(f"{format!r} is no format for this: use {fitting}.")
    return codec
