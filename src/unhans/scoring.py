"""The scoring core: answers to many variants of many texts, at the speed of the bare model.

Every method that queries a model goes through `ask`. It turns variants into questions (token rows, or plain texts for
black boxes), drops the ones asked before, puts equal lengths together, fills batches to a budget, and lays the answers
out in the order of the variants. Model calls are therefore at most as many as there are different questions.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unhans.errors import Cancelled
from unhans.text import Text, Variant, as_variant
from unhans.tokens import Row

Question = Row | tuple[str, ...]
Answers = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is, in the same unit."""

_WINDOW = 16_384  # variants looked at together: enough to sort well, few enough to hold


@dataclass(frozen=True)
class How:
    """Whom to tell how far it is, and whom to ask whether to stop."""

    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None

    def tell(self, done: int, of: int) -> None:
        """So much of it is done; stops here if somebody wants that."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled(f"Stopped after {done:,} of {of:,}; nothing was changed.")
        if self.progress is not None:
            self.progress(done, of)

    def part(self, at: int, of: int) -> How:
        """The same for one of several equal parts."""
        tell = self.progress
        if tell is None:
            return self
        return How(lambda done, total: tell(round(100 * (at + done / max(1, total))), 100 * of), self.cancelled)


class Answerer(Protocol):
    """What the core needs of a model; anything that can answer questions in batches will do."""

    @property
    def revision(self) -> str:
        """Changes whenever an answer could."""

    def questions(self, variants: Sequence[Variant]) -> Sequence[Question]:
        """The variants as this model reads them; equal questions have equal answers."""

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """Numbers of the questions, in the batches that suit the model."""

    def answer(self, questions: Sequence[Any]) -> Answers:
        """One line of numbers per question."""


@dataclass
class Tally:
    """What a call really cost: for benchmarks, budgets and tests that do not depend on a clock."""

    variants: int = 0
    answered: int = 0  # questions that reached the model
    batches: int = 0
    cells: int = 0  # tokens, or texts for a black box
    padded: int = 0  # cells beyond them that were computed for nothing


class ScoreCache:
    """Answers by revision and question: the latest in memory, all of them in a file if a path is given."""

    def __init__(self, path: Path | None = None, size: int = 100_000) -> None:
        self._recent: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = size
        self._lock = threading.Lock()
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._file = _open(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # sound, but locked by another process or not writable
                    raise
                for ending in ("", "-wal", "-shm"):  # damaged; all that is lost is time
                    path.with_name(path.name + ending).unlink(missing_ok=True)
                self._file = _open(path)

    def __reduce__(self) -> tuple[type[ScoreCache], tuple[None, int]]:
        """In another process it begins empty: the file is of this one, and all that is lost is time."""
        return ScoreCache, (None, self._size)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answers]:
        """The answers that are known."""
        with self._lock:
            found = {key: self._recent[key] for key in keys if key in self._recent}
            for key in found:
                self._recent.move_to_end(key)
            rest = [key for key in keys if key not in found] if self._file is not None else []
            for start in range(0, len(rest), 500):
                found.update(self._read(rest[start : start + 500]))
        return {key: np.frombuffer(value, np.float32) for key, value in found.items()}

    def put(self, answers: dict[bytes, Answers]) -> None:
        """Remember these."""
        packed = {key: value.astype(np.float32).tobytes() for key, value in answers.items()}
        with self._lock:
            self._recent.update(packed)
            while len(self._recent) > self._size:
                self._recent.popitem(last=False)
            if self._file is not None:
                with self._file:
                    self._file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", packed.items())

    def _read(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, bytes]]:
        assert self._file is not None  # its callers have made sure
        marks = ",".join("?" * len(keys))
        return self._file.execute(f"SELECT question, answer FROM answers WHERE question IN ({marks})", keys)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


def _open(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("CREATE TABLE IF NOT EXISTS answers (question BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID")
    except sqlite3.DatabaseError:
        file.close()
        raise
    return file


def ask(
    model: Answerer,
    texts: Iterable[Text],
    *,
    cache: ScoreCache | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    tally: Tally | None = None,
) -> Answers:
    """The model's answer to each text, in order: texts × width.

    Each different question is put to the model at most once. Stopping half-way (`cancelled`) raises, and loses nothing
    that a cache could keep.
    """
    variants = [as_variant(text) for text in texts]
    tally = tally if tally is not None else Tally()
    tally.variants += len(variants)
    line_of: dict[bytes, int] = {}
    lines: list[Answers] = []
    places: list[int] = []
    for start in range(0, len(variants), _WINDOW):
        questions = model.questions(variants[start : start + _WINDOW])
        keys = [_key(model.revision, question) for question in questions]
        new = {key: question for key, question in zip(keys, questions, strict=True) if key not in line_of}
        for found in _answers(model, new, cache, tally, cancelled, _part_of(progress, start, len(keys), len(variants))):
            for key, line in found.items():
                line_of[key] = len(lines)
                lines.append(line)
        places.extend(line_of[key] for key in keys)
    return np.stack(lines)[places] if lines else np.empty((0, 0), np.float32)


def batches_by_length(lengths: Sequence[int], budget: int, waste: float = 0.0) -> Iterator[list[int]]:
    """Numbers of rows in batches of about `budget` cells, short rows first.

    A batch is closed when a longer row would make more than this share of its cells padding; `waste=1` does not care.
    """
    batch: list[int] = []
    used = 0
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[number]
        cells = length * (len(batch) + 1)
        if batch and (used + length > budget or cells - used - length > waste * cells):
            yield batch
            batch, used = [], 0
        batch.append(number)
        used += length
    if batch:
        yield batch


def _answers(  # noqa: PLR0917 - one private step of `ask`, with its state
    model: Answerer,
    new: dict[bytes, Question],
    cache: ScoreCache | None,
    tally: Tally,
    cancelled: Callable[[], bool] | None,
    progress: Callable[[float], None],
) -> Iterator[dict[bytes, Answers]]:
    """The answers to different questions, from the cache or the model, a batch at a time."""
    if cache is not None:
        known = cache.get(list(new))
        yield known
        new = {key: question for key, question in new.items() if key not in known}
    keys, questions = list(new), list(new.values())
    total = sum(map(_cells, questions))
    done = 0
    for batch in model.batches(questions):
        if cancelled is not None and cancelled():
            raise Cancelled(f"Stopped after {tally.answered} of the model's answers; nothing was changed.")
        asked = [questions[number] for number in batch]
        found = dict(zip((keys[number] for number in batch), model.answer(asked), strict=True))
        cells = sum(map(_cells, asked))
        tally.answered += len(batch)
        tally.batches += 1
        tally.cells += cells
        tally.padded += getattr(model, "padding", lambda _: 0)(asked)
        if cache is not None:
            cache.put(found)
        yield found
        done += cells
        progress(done / total)
    progress(1.0)


def _part_of(progress: Progress | None, start: int, length: int, total: int) -> Callable[[float], None]:
    """Progress through one window, by the work done and not by the number of texts: short ones come first."""

    def report(share: float) -> None:
        if progress is not None:
            progress(start + round(share * length), total)

    return report


def _cells(question: Question) -> int:
    return len(question) if isinstance(question, Row) else 1


def _key(revision: str, question: Question) -> bytes:
    digest = blake2b(revision.encode(), digest_size=16)
    if isinstance(question, Row):
        digest.update(array("q", question.ids).tobytes())
        digest.update(bytes(question.types or b""))
    else:
        spelled = "\x00".join((str(len(question[0])), *question))  # the length tells a pair from a text with a NUL
        digest.update(spelled.encode(errors="surrogatepass"))
    return digest.digest()
