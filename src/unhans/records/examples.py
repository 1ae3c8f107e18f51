"""Examples and predictions in tables: written in batches, read a page at a time however many there are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.data import Corpus, SetAside
from unhans.data.corpus import CorpusBuilder, Reading
from unhans.errors import BadData, BadOption, NotFound, TooMuch
from unhans.records.cursors import decode, encode
from unhans.records.parts import Parts
from unhans.shapes import Accuracy, AsideRow, DataProblems, ExamplePage, ExampleRow, Filter, Sort, State
from unhans.store import Store, batches
from unhans.store.schema import examples, opinions, predictions, set_aside, settings
from unhans.text import visible_form, word_spans
from unhans.types import Example, Prediction, Span

MAX_EXAMPLES = 1_000_000
MAX_CHARACTERS = 100_000
_AT_ONCE = 5_000  # rows in a transaction
_WINDOW = 20_000  # rows looked at before the clock is read again
_SECONDS = 1.0  # a page that needs longer is given as far as it got
_COUNTED = 1_000
_FEW = 2_000
_EXCERPT = 300
_RARE = 20  # times: an imbalance of labels that is worth a warning


class ExampleTable:
    """The examples of a project, in the order of the data; `place` is an example's number in it."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._known: int | None = None

    # -- writing

    def fill(self, corpus: Iterable[Example], total: int, progress: Callable[[int, int], None] | None = None) -> None:
        """Store examples, once, into empty tables."""
        stored = 0
        for some in batches(enumerate(corpus), _AT_ONCE):
            rows = [_row(place, example) for place, example in some]
            stored += len(rows)
            if stored > MAX_EXAMPLES:
                raise TooMuch(f"The data has more than {MAX_EXAMPLES:,} examples. Nothing was made; give fewer.")
            self._store.write(partial(_insert, rows))
            if progress:
                progress(stored, total)
        self.tidy()

    def note_reading(self, corpus: Corpus, aside: Sequence[SetAside]) -> None:
        """Keep what was noticed about the data while it was read."""
        problems = corpus.problems()
        told = {
            "summary": corpus.summary(),
            "reasons": corpus.reading.reasons if corpus.reading else (),
            "notes": corpus.reading.notes if corpus.reading else (),
            "repeated": problems.repeated,
            "contradictions": problems.contradictions,
            "shared": problems.shared,
            "repeated_ids": problems.repeated_ids,
            "contradicting_ids": problems.contradicting_ids,
        }
        rows = [
            {
                "number": n,
                "row": one.row,
                "file": one.file,
                "line": one.line,
                "reason": one.reason,
                "detail": one.detail,
            }
            for n, one in enumerate(aside)
        ]

        def act(connection: Connection) -> None:
            connection.execute(settings.insert().values(name="reading", value=json.dumps(told)))
            if rows:
                connection.execute(set_aside.insert(), rows)

        self._store.write(act)

    def predicted(self, revision: str, found: Sequence[Prediction], unknown: Sequence[float | None]) -> None:
        """Store predictions, in place of earlier ones by the same revision, with how much of each text is unknown."""
        if not found:
            return
        ids = [prediction.example for prediction in found]

        def act(connection: Connection) -> None:
            known = {
                row.id: row
                for row in connection.execute(
                    sa.select(examples.c.id, examples.c.place, examples.c.label).where(examples.c.id.in_(ids))
                )
            }
            rows = [
                {
                    "revision": revision,
                    "place": known[one.example].place,
                    "label": one.label,
                    "confidence": one.confidence,
                    "correct": None if known[one.example].label is None else known[one.example].label == one.label,
                    "probabilities": json.dumps([one.labels, one.probabilities]),
                    "unread": json.dumps([[s.start, s.end, s.part] for s in one.unread]) if one.unread else None,
                    "unknown": share,
                }
                for one, share in zip(found, unknown, strict=True)
            ]
            places = [row["place"] for row in rows]
            connection.execute(
                predictions.delete().where(predictions.c.revision == revision, predictions.c.place.in_(places))
            )
            connection.execute(predictions.insert(), rows)

        self._store.write(act)

    def tidy(self) -> None:
        """Let the database count what it has, so that it finds the short way to a page."""
        self._store.write(lambda connection: connection.execute(sa.text("ANALYZE")))

    # -- reading all

    def corpus(self) -> Corpus:
        """All examples, compactly in memory: for models, which read everything."""
        builder, n = CorpusBuilder(), 0
        for example in self.all():
            builder.add(example)
            n += 1
        return builder.corpus(Reading(n))

    def all(self) -> Iterator[Example]:
        """All examples, in order."""
        with self._store.read() as connection:
            columns = [examples.c[name] for name in _EXAMPLE]
            for row in connection.execution_options(yield_per=2000).execute(
                sa.select(*columns).order_by(examples.c.place)
            ):
                yield _example(row)

    def predictions(self, revision: str) -> Iterator[Prediction]:
        """All predictions of a revision, in the order of the examples."""
        with self._store.read() as connection:
            query = (
                sa.select(examples.c.id, predictions)
                .join(examples, examples.c.place == predictions.c.place)
                .where(predictions.c.revision == revision)
                .order_by(predictions.c.place)
            )
            for row in connection.execution_options(yield_per=2000).execute(query):
                yield _prediction(row, revision)

    # -- reading some

    def count(self) -> int:
        """How many examples there are; they do not change once stored."""
        if self._known is None:
            with self._store.read() as connection:
                self._known = connection.execute(sa.select(sa.func.count()).select_from(examples)).scalar_one()
        return self._known

    def at(self, place: int) -> Example:
        """The example at a place."""
        with self._store.read() as connection:
            row = connection.execute(
                sa.select(*(examples.c[name] for name in _EXAMPLE)).where(examples.c.place == place)
            ).one_or_none()
        if row is None:
            raise NotFound("There is no such example.")
        return _example(row)

    def find(self, ids: Sequence[str]) -> dict[str, tuple[int, Example]]:
        """Place and example for each id that is there."""
        found: dict[str, tuple[int, Example]] = {}
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(ids), 500):
                query = sa.select(examples.c.place, *(examples.c[name] for name in _EXAMPLE)).where(
                    examples.c.id.in_(some)
                )
                found |= {row.id: (row.place, _example(row)) for row in connection.execute(query)}
        return found

    def places(self, ids: Sequence[str]) -> dict[str, int]:
        """Place for each id that is there."""
        found: dict[str, int] = {}
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(ids), 500):
                query = sa.select(examples.c.id, examples.c.place).where(examples.c.id.in_(some))
                found |= {row.id: row.place for row in connection.execute(query)}
        return found

    def lookup(self, id_: str, text: str, pair: str | None) -> Example | None:
        """The example of this id, or the first with this text: how files from elsewhere name examples."""
        if found := self.find([id_]).get(id_):
            return found[1]
        same = Example("", text, pair).text_hash
        query = sa.select(examples.c.place).where(examples.c.text_hash == same).order_by(examples.c.place).limit(1)
        with self._store.read() as connection:
            place = connection.execute(query).scalar()
        return None if place is None else self.at(place)

    def some(self, places: Sequence[int]) -> list[Example]:
        """The examples at these places, in their order; places that do not exist are an error."""
        with self._store.read() as connection:
            query = sa.select(examples.c.place, *(examples.c[name] for name in _EXAMPLE)).where(
                examples.c.place.in_(places)
            )
            rows = {row.place: _example(row) for row in connection.execute(query)}
        if missing := [place for place in places if place not in rows]:
            raise NotFound(f"There is no example at place {missing[0]}.")
        return [rows[place] for place in places]

    def prediction(self, place: int, revision: str) -> Prediction | None:
        """What a revision says about the example at a place, if it was asked."""
        with self._store.read() as connection:
            row = connection.execute(
                sa.select(examples.c.id, predictions)
                .join(examples, examples.c.place == predictions.c.place)
                .where(predictions.c.revision == revision, predictions.c.place == place)
            ).one_or_none()
        return None if row is None else _prediction(row, revision)

    def said(self, places: Sequence[int], revision: str) -> dict[int, Prediction]:
        """What a revision says about the examples at these places, as far as it was asked, by place."""
        found: dict[int, Prediction] = {}
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(places), 500):
                query = (
                    sa.select(examples.c.id, predictions)
                    .join(examples, examples.c.place == predictions.c.place)
                    .where(predictions.c.revision == revision, predictions.c.place.in_(some))
                )
                found |= {row.place: _prediction(row, revision) for row in connection.execute(query)}
        return found

    def judged(self, author: str, ids: Sequence[str]) -> set[str]:
        """Which of these examples somebody has judged: by a vote on a word, a right label, or a finished review."""
        own, found = (opinions.c.author == author, judgement()), set[str]()
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(ids), 500):
                query = sa.select(opinions.c.example).where(*own, opinions.c.example.in_(some)).distinct()
                found |= set(connection.execute(query).scalars())
        return found

    def held_out(self, text: Example, parts: Parts) -> bool:
        """Whether the very same text is in the data, and not for training."""
        query = sa.select(*(examples.c[name] for name in _EXAMPLE)).where(examples.c.text_hash == text.text_hash)
        with self._store.read() as connection:
            same = [_example(row) for row in connection.execute(query)]
        return any(not parts.trains(one) for one in same)

    def unknown_share(self, place: int, revision: str) -> float | None:
        """How much of a text the model does not know, if that can be told."""
        query = sa.select(predictions.c.unknown).where(predictions.c.revision == revision, predictions.c.place == place)
        with self._store.read() as connection:
            found: float | None = connection.execute(query).scalar()
        return found

    def accuracy(self, revision: str) -> tuple[int, tuple[Accuracy, ...]]:
        """How many examples a revision has predicted, and how many of the labelled ones right, by split."""
        right = sa.func.sum(sa.case((predictions.c.correct.is_(True), 1), else_=0))
        labelled = sa.func.count(predictions.c.correct)
        query = (
            sa.select(examples.c.split, right.label("right"), labelled.label("labelled"), sa.func.count().label("all"))
            .join(examples, examples.c.place == predictions.c.place)
            .where(predictions.c.revision == revision)
            .group_by(examples.c.split)
            .order_by(examples.c.split)
        )
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        found = tuple(Accuracy(row.split or "all", int(row.right or 0), row.labelled) for row in rows if row.labelled)
        return sum(row.all for row in rows), found

    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        with self._store.read() as connection:
            query = (
                sa.select(examples.c.split).where(examples.c.split.is_not(None)).distinct().order_by(examples.c.split)
            )
            return tuple(connection.execute(query).scalars())

    def problems(self) -> DataProblems:
        """What is doubtful about the data."""
        with self._store.read() as connection:
            stored = connection.execute(sa.select(settings.c.value).where(settings.c.name == "reading")).scalar()
            aside = connection.execute(sa.select(set_aside).order_by(set_aside.c.number).limit(100)).all()
            labels = connection.execute(
                sa.select(examples.c.label, sa.func.count()).group_by(examples.c.label).order_by(sa.func.count().desc())
            ).all()
        told: Mapping[str, Any] = json.loads(stored) if stored else {}
        counts = tuple((label, n) for label, n in labels if label is not None)
        return DataProblems(
            summary=told.get("summary", ""),
            set_aside=_pairs(told.get("reasons", ())),
            first_set_aside=tuple(AsideRow(r.row, r.file, r.line, r.reason, r.detail) for r in aside),
            notes=_pairs(told.get("notes", ())),
            repeated=told.get("repeated", 0),
            contradictions=told.get("contradictions", 0),
            shared=tuple((one, other, n) for one, other, n in told.get("shared", ())),
            repeated_places=self._places(told.get("repeated_ids", ())),
            contradicting_places=self._places(told.get("contradicting_ids", ())),
            labels=counts,
            unlabelled=next((n for label, n in labels if label is None), 0),
            warnings=tuple(_label_warnings(counts)),
        )

    def all_set_aside(self) -> Iterator[AsideRow]:
        """Every row that was kept as set aside."""
        with self._store.read() as connection:
            for r in connection.execute(sa.select(set_aside).order_by(set_aside.c.number)):
                yield AsideRow(r.row, r.file, r.line, r.reason, r.detail)

    def _places(self, ids: Sequence[str]) -> tuple[int, ...]:
        return tuple(sorted(place for place, _ in self.find(ids).values()))

    # -- pages

    def page(
        self,
        wanted: Filter,
        *,
        revision: str,
        author: str,
        sort: Sort = "order",
        cursor: str | None = None,
        limit: int = 50,
        counts: bool = True,
        words_first: bool = False,
    ) -> ExamplePage:
        """Examples that fit a filter, a page of them, and where to go on; how many there are only if it `counts`.

        With `words_first`, predictions are told only of examples that the author has judged. A filter that no index
        helps with is applied window by window; when a second is over, the page is given as far as it got, and the next
        one goes on from there.
        """
        if not 1 <= limit <= 200:
            raise BadOption("A page has 1 to 200 examples.")
        query = _Query(wanted, revision, author, sort, self._store.is_sqlite)
        after = decode(cursor) if cursor else None
        with self._store.read() as connection:
            query = query.narrowed_to_few(connection)
            rows, onward = self._collect(connection, query, after, limit + 1)
            total = self._total(connection, query) if counts and not cursor else None
        more = len(rows) > limit
        items = tuple(_listed(row) for row in rows[:limit])
        if words_first:
            judged = self.judged(author, [row.id for row in items])
            nothing: dict[str, Any] = {"predicted": None, "confidence": None, "correct": None}
            items = tuple(row if row.id in judged else replace(row, **nothing) for row in items)
        if more:
            onward = query.key(rows[limit - 1])
        return ExamplePage(items, encode(*onward) if onward else None, total, complete=more or onward is None)

    def neighbours(
        self, place: int, wanted: Filter, *, revision: str, author: str, sort: Sort = "order"
    ) -> tuple[int | None, int | None]:
        """Places of the examples before and after this one under a filter."""
        found = []
        with self._store.read() as connection:
            for backwards in (True, False):
                query = _Query(wanted, revision, author, sort, self._store.is_sqlite, backwards)
                query = query.narrowed_to_few(connection)
                here = query.key_of(connection, place)
                rows, _ = ([], None) if here is None else self._collect(connection, query, here, 1)
                found.append(rows[0].place if rows else None)
        return found[0], found[1]

    def with_word(self, word: str, revision: str) -> tuple[int, int, bool]:
        """How many examples contain a word, how many of them are predicted right, and whether all were looked at."""
        query = _Query(Filter(word=word), revision, "", "order", self._store.is_sqlite)
        with self._store.read() as connection:
            rows, onward = self._collect(connection, query, None, MAX_EXAMPLES)
        return len(rows), sum(row.correct is True for row in rows), onward is None

    def _collect(
        self, connection: Connection, query: _Query, after: _Key | None, enough: int
    ) -> tuple[list[Any], _Key | None]:
        """Rows until there are enough, the data ends (then no key) or the time is up (then the key to go on from)."""
        if not query.slow:
            return list(connection.execute(query.rows(after, enough))), None
        found: list[Any] = []
        began = looked = self._clock()
        while True:
            window = connection.execute(query.window(after, _WINDOW)).all()
            if window:
                last = query.key(window[-1])
                rows = connection.execute(query.rows(after, None, up_to=last))
                found += islice((row for row in rows if query.fits(row)), enough - len(found))
                after = last
            if len(window) < _WINDOW:
                return found, None
            now = self._clock()
            if len(found) >= enough or (now - began) + (now - looked) > _SECONDS:  # the next one may take as long again
                return found, after
            looked = now

    def _total(self, connection: Connection, query: _Query) -> int | None:
        if query.slow and (self.count() > _WINDOW or query.looks_again):
            return None
        inner = query.places(_COUNTED + 1).subquery()
        return int(connection.execute(sa.select(sa.func.count()).select_from(inner)).scalar_one())


_Key = tuple[float, int]  # confidence (0 where the order is that of the data) and place
_EXAMPLE = ("id", "text", "pair", "label", "group", "split", "highlights", "notes", "text_hash")


@dataclass(frozen=True)
class _Query:
    """A filter and an order as SQL. All values are bound; columns come from our own tables only."""

    wanted: Filter
    revision: str
    author: str
    sort: Sort
    sqlite: bool
    backwards: bool = False
    few: tuple[int, ...] | None = None  # all places that can fit, where one condition alone leaves few

    def narrowed_to_few(self, connection: Connection) -> _Query:
        """The same query; if a condition leaves few rows, it begins with those.

        Databases know averages only: in search of the ten examples of a split they walk through a million in the order
        that is asked for.
        """
        own = predictions.c.revision == self.revision
        for name, condition in self._conditions().items():
            about_example = name in ("label", "split", "noted")
            table, also = (examples, sa.true()) if about_example else (predictions, own)
            some = connection.execute(sa.select(table.c.place).where(condition, also).limit(_FEW + 1)).scalars().all()
            if len(some) <= _FEW:
                return replace(self, few=tuple(some))
        return self

    @property
    def slow(self) -> bool:
        """Whether rows must be looked at one by one."""
        w = self.wanted
        odd = (w.contains, w.word, w.min_words, w.max_words, w.group, w.state, w.disagreement)
        return any(value is not None for value in odd)

    @property
    def looks_again(self) -> bool:
        """Whether what the database finds must be looked at again here."""
        contains = self.wanted.contains
        return self.wanted.word is not None or (contains is not None and not self._folds(contains))

    def rows(self, after: _Key | None, limit: int | None, up_to: _Key | None = None) -> sa.Select[Any]:
        """The rows of a page, with all that a list shows."""
        e, p = examples.c, predictions.c
        review = self._mine("review").with_only_columns(sa.func.max(opinions.c.value)).scalar_subquery()
        votes = self._mine("word_vote").with_only_columns(sa.func.count()).scalar_subquery()
        columns = (
            e.place,
            e.id,
            e.text if self.looks_again else sa.func.substr(e.text, 1, _EXCERPT).label("text"),
            e.pair if self.looks_again else sa.func.substr(e.pair, 1, _EXCERPT).label("pair"),
            e.label,
            p.label.label("predicted"),
            p.confidence,
            p.correct,
            e.notes.is_not(None).label("noted"),
            review.label("review"),
            votes.label("votes"),
        )
        query = self._narrowed(sa.select(*columns).select_from(self._joined()), after, up_to)
        for condition in self._slow_conditions():
            query = query.where(condition)
        return query if limit is None else query.limit(limit)

    def places(self, limit: int) -> sa.Select[Any]:
        """The places of rows that fit, in whatever order is quickest, to be counted."""
        query = self._narrowed(sa.select(examples.c.place).select_from(self._joined()), None, None)
        return query.where(*self._slow_conditions()).order_by(None).limit(limit)

    def window(self, after: _Key | None, size: int) -> sa.Select[Any]:
        """The keys of the next rows to look at."""
        columns = (examples.c.place, predictions.c.confidence)
        return self._narrowed(sa.select(*columns).select_from(self._joined()), after, None).limit(size)

    def fits(self, row: Any) -> bool:
        """Whether a row that the database found has what is looked for, and the word as a word."""
        texts = [text for text in (row.text, row.pair) if text is not None]
        word, contains = self.wanted.word, self.wanted.contains
        if contains is not None and self.looks_again and not any(contains.casefold() in t.casefold() for t in texts):
            return False
        if word is None:
            return True
        looked_for = visible_form(word)
        return any(
            visible_form(text[span.start : span.end]) == looked_for for text in texts for span in word_spans(text)
        )

    def key(self, row: Any) -> _Key:
        """Where a row stands in the order."""
        return (0.0 if self.sort == "order" else row.confidence, row.place)

    def key_of(self, connection: Connection, place: int) -> _Key | None:
        """Where the example at a place stands in the order; None if it does not."""
        if self.sort == "order":
            return (0.0, place)
        found = connection.execute(
            sa.select(predictions.c.confidence).where(
                predictions.c.revision == self.revision, predictions.c.place == place
            )
        ).scalar()
        return None if found is None else (found, place)

    def _joined(self) -> Any:
        p, own = predictions.c, predictions.c.revision == self.revision
        on = sa.and_(p.place == examples.c.place, own)
        inner = self.sort != "order" or any(
            value is not None
            for value in (
                self.wanted.predicted,
                self.wanted.correct,
                self.wanted.min_confidence,
                self.wanted.max_confidence,
            )
        )
        return examples.join(predictions, on, isouter=not inner)

    def _narrowed(self, query: sa.Select[Any], after: _Key | None, up_to: _Key | None) -> sa.Select[Any]:
        """The conditions that indexes help with, and the order."""
        query = query.where(*self._conditions().values())
        e, p = examples.c, predictions.c
        descending = (self.sort == "most_confident") != self.backwards
        if self.sort == "order":
            columns: tuple[Any, ...] = (e.place,)
            bounds: list[Any] = [None if key is None else (key[1],) for key in (after, up_to)]
        else:
            columns = (p.confidence, p.place)
            bounds = [after, up_to]
        if self.few is not None:
            columns = tuple(column + 0 for column in columns)  # an index cannot give the order of a sum
            query = query.where(e.place.in_(self.few))
        here = sa.tuple_(*columns)
        if bounds[0] is not None:
            query = query.where(here < sa.tuple_(*bounds[0]) if descending else here > sa.tuple_(*bounds[0]))
        if bounds[1] is not None:
            query = query.where(here >= sa.tuple_(*bounds[1]) if descending else here <= sa.tuple_(*bounds[1]))
        return query.order_by(*(column.desc() if descending else column.asc() for column in columns))

    def _conditions(self) -> dict[str, Any]:
        """Those that indexes help with, by name."""
        w, e, p = self.wanted, examples.c, predictions.c
        made: dict[str, Callable[[], Any]] = {
            "label": lambda: e.label == w.label,
            "split": lambda: e.split == w.split,
            "predicted": lambda: p.label == w.predicted,
            "correct": lambda: p.correct.is_(bool(w.correct)),
            "min_confidence": lambda: p.confidence >= w.min_confidence,
            "max_confidence": lambda: p.confidence <= w.max_confidence,
            "noted": lambda: e.notes.is_not(None) if w.noted else e.notes.is_(None),
        }
        return {name: condition() for name, condition in made.items() if getattr(w, name) is not None}

    def _slow_conditions(self) -> Iterator[Any]:
        w, e = self.wanted, examples.c
        if w.contains is not None:
            yield self._has(w.contains)
        if w.word is not None:
            yield self._may_have(visible_form(w.word))
        if w.min_words is not None:
            yield e.words >= w.min_words
        if w.max_words is not None:
            yield e.words <= w.max_words
        if w.group is not None:
            yield e.group == w.group
        if w.state is not None:
            yield self._in_state(w.state)
        if w.disagreement is not None:
            first, second = opinions.alias(), opinions.alias()
            differ = sa.exists().where(
                first.c.example == e.id,
                second.c.subject == first.c.subject,
                second.c.value != first.c.value,
                first.c.kind.in_(("word_vote", "relabel")),
            )
            yield differ if w.disagreement else ~differ

    def _has(self, needle: str) -> Any:
        """Whether either text contains this, whatever the case of its letters."""
        either = (examples.c.text, examples.c.pair)
        if self.sqlite:  # its own comparison folds only ASCII letters
            return sa.or_(*(sa.func.unhans_contains(column, needle.casefold()) for column in either))
        if self._folds(needle):
            return sa.or_(*(column.icontains(needle, autoescape=True) for column in either))
        return sa.true()

    def _may_have(self, form: str) -> Any:
        """A quick look whether a word can be in either text; hidden characters inside it are no hindrance."""
        either = (examples.c.text, examples.c.pair)
        if self.sqlite:
            return sa.or_(*(sa.func.unhans_may_have(column, form) for column in either))
        if not self._folds(form):
            return sa.true()
        beyond_ascii = (column.regexp_match("[^\\x01-\\x7F]") for column in either)
        return sa.or_(*(column.icontains(form, autoescape=True) for column in either), *beyond_ascii)

    def _folds(self, needle: str) -> bool:
        """Whether the database can be trusted with the case of these letters: PostgreSQL knows no ß, or no ä at all."""
        return self.sqlite or (needle.isascii() and "ss" not in needle.casefold())

    def _mine(self, kind: str) -> sa.Select[Any]:
        return sa.select(opinions.c.value).where(
            opinions.c.example == examples.c.id, opinions.c.kind == kind, opinions.c.author == self.author
        )

    def _in_state(self, state: State) -> Any:
        reviewed, voted = self._mine("review").exists(), self._mine("word_vote").exists()
        if state == "pending":
            return sa.and_(~reviewed, ~voted)
        if state == "draft":
            return sa.and_(~reviewed, voted)
        return self._mine("review").where(opinions.c.value == state).exists()


def judgement() -> sa.ColumnElement[bool]:
    """What makes an opinion on an example a judgement of it; to skip one is none."""
    reviewed = sa.and_(opinions.c.kind == "review", opinions.c.value.in_(("done", "flagged")))
    return sa.or_(opinions.c.kind.in_(("word_vote", "relabel")), reviewed)


def state_of(review: str | None, votes: int) -> State:
    """How far somebody is with an example."""
    known: dict[str | None, State] = {"done": "done", "skipped": "skipped", "flagged": "flagged"}
    return known.get(review, "draft" if votes else "pending")


def _listed(row: Any) -> ExampleRow:
    return ExampleRow(
        place=row.place,
        id=row.id,
        text=row.text[:_EXCERPT],
        pair=None if row.pair is None else row.pair[:_EXCERPT],
        label=row.label,
        predicted=row.predicted,
        confidence=row.confidence,
        correct=row.correct,
        state=state_of(row.review, row.votes),
        votes=row.votes,
        noted=bool(row.noted),
    )


def _insert(rows: list[dict[str, Any]], connection: Connection) -> None:
    connection.execute(examples.insert(), rows)


def _row(place: int, example: Example) -> dict[str, Any]:
    if any(len(part) > MAX_CHARACTERS for part in example.parts):
        raise BadData(f"The text of {example.id!r} has more than {MAX_CHARACTERS:,} characters. Shorten it.")
    spans = example.highlights
    return {
        "place": place,
        "id": example.id,
        "text": example.text,
        "pair": example.pair,
        "label": example.label,
        "group": example.group,
        "split": example.split,
        "highlights": None if spans is None else json.dumps([[s.start, s.end, s.part] for s in spans]),
        "notes": json.dumps(example.notes) if example.notes else None,
        "text_hash": example.text_hash,
        "words": sum(len(part.split()) for part in example.parts),
    }


def _example(row: Any) -> Example:
    return Example(
        id=row.id,
        text=row.text,
        pair=row.pair,
        label=row.label,
        highlights=None if row.highlights is None else _spans(row.highlights),
        group=row.group,
        split=row.split,
        notes=tuple(json.loads(row.notes)) if row.notes else (),
    )


def _prediction(row: Any, revision: str) -> Prediction:
    labels, probabilities = json.loads(row.probabilities)
    unread = _spans(row.unread) if row.unread else ()
    return Prediction(row.id, tuple(labels), tuple(probabilities), revision, unread)


def _spans(told: str) -> tuple[Span, ...]:
    return tuple(Span(start, end, part) for start, end, part in json.loads(told))


def _pairs(told: Iterable[Sequence[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((str(name), int(n)) for name, n in told)


def _label_warnings(counts: Sequence[tuple[str, int]]) -> Iterator[str]:
    if len(counts) == 1:
        yield f"All labelled examples are {counts[0][0]!r}. Add another label to train; explaining works."
    elif counts and counts[0][1] > _RARE * counts[-1][1]:
        yield (
            f"{counts[0][0]!r} has {counts[0][1]:,} examples and {counts[-1][0]!r} only {counts[-1][1]:,}: "
            "accuracy alone says little here."
        )


def cursor_behind(place: int) -> str:
    """The cursor of a list in the order of the data that begins behind a place."""
    return encode(0.0, place)
