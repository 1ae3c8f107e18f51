"""Training examples behind examples, copies of them and doubts about their labels, in tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import Conflict, NotFound
from unhans.records.cursors import decode, encode
from unhans.records.revising import now
from unhans.shapes import CopyChange, CopyQuery, DoubtQuery, Method
from unhans.store import Store, batches
from unhans.store.schema import copies, doubts, examples, opinions, traces
from unhans.types import Copy, Doubt, Example, Influence, Recipe, from_json, to_json

DOUBTFUL = 0.5  # a copy whose label holds less surely than this is to be looked at
NOT_KNOWN = (
    "The ways to look for training examples are not known here yet. Have the examples predicted once with this version "
    "of unhans."
)
NOT_TRACED = "Nobody has looked for the training examples behind this one yet. Have it traced."
NO_COPY = "There is no such copy; it may have been deleted."


@dataclass(frozen=True)
class KnownTraces:
    """The ways to trace, to choose anchors, to make copies and to doubt labels, as a process that had them said."""

    methods: tuple[Method, ...] = ()
    heuristics: tuple[Method, ...] = ()
    augmentations: tuple[Method, ...] = ()
    doubts: tuple[Method, ...] = ()
    copies_per_point: int = 10


@dataclass(frozen=True)
class StoredTrace:
    """What was found for the example at a place."""

    number: int
    place: int
    text_hash: str  # of the example, when it was traced
    influence: Influence
    by: str
    at: str


@dataclass(frozen=True)
class Anchor:
    """An example that was traced, with the ids of what helped: all that a list needs."""

    place: int
    id: str
    helpful: tuple[str, ...]


@dataclass(frozen=True)
class StoredCopy:
    """A copy of a training example, with the place of its source."""

    number: int
    id: str  # stays when it is edited
    place: int
    text_hash: str  # of its source, when it was made
    copy: Copy
    edited: bool
    deleted: bool
    by: str
    at: str


@dataclass(frozen=True)
class StoredDoubt:
    """How doubtful the label of the training example at a place is, among all."""

    rank: int
    place: int
    text_hash: str
    doubt: Doubt


def asked_key(recipe: Recipe, top: int) -> str:
    """A fingerprint of all that a trace depends on, but for the revision and the example; equal in every process."""
    return blake2b(json.dumps([recipe.key, top]).encode(), digest_size=8).hexdigest()


class TraceTable:
    """Traces of all revisions. One that is asked for again is not made again, but seen in place of others again.

    Everybody sees the newest one that `leads`. Others are seen by who asked for them, and where there is nothing else.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- writing

    def keep(self, by: str, asked: str, found: Sequence[tuple[int, Example, Influence]], *, leads: bool) -> None:
        """Store what was found for examples at places, in one step."""
        if found:
            self._store.write(partial(self._add, by, asked, found, leads))

    def _add(
        self,
        by: str,
        asked: str,
        found: Sequence[tuple[int, Example, Influence]],
        leads: bool,
        connection: Connection,
    ) -> None:
        self._store.lock(connection, "traces")
        common = {"asked": asked, "leads": leads, "by": by, "at": now()}
        rows: list[dict[str, Any]] = [common | _trace_row(*one) for one in found]
        revision = found[0][2].revision
        before: dict[int, Any] = {}
        for some in batches([place for place, _, _ in found], 500):  # a query can name only so many
            query = sa.select(traces).where(*_same(asked, revision, some))
            before |= {row.place: row for row in connection.execute(query)}
        # one that is asked for again gets a new number: it is the newest now
        kept = [row for row in rows if leads or row["place"] not in before]
        for row in kept:
            if (old := before.get(row["place"])) is not None and old.text_hash == row["text_hash"]:
                row |= {"by": old.by, "at": old.at, "helpful": old.helpful, "influence": old.influence}
        again = [row["place"] for row in kept if row["place"] in before]
        for some in batches(again, 500):
            connection.execute(traces.delete().where(*_same(asked, revision, some)))
        for part in batches(kept, 500):
            connection.execute(traces.insert(), part)

    # -- reading

    def known(self, asked: str, revision: str, places: Sequence[int]) -> dict[int, StoredTrace]:
        """What was found by asking the same before, by place."""
        found: dict[int, StoredTrace] = {}
        with self._store.read() as connection:
            for some in batches(places, 500):
                query = sa.select(traces).where(*_same(asked, revision, some))
                found |= {row.place: _trace(row) for row in connection.execute(query)}
        return found

    def anchors(self, revision: str, author: str) -> list[Anchor]:
        """The examples that were traced, in their order, each with what somebody sees of it."""
        query = (
            sa.select(traces.c.place, traces.c.helpful, examples.c.id)
            .join(examples, examples.c.place == traces.c.place)
            .where(traces.c.revision == revision)
            .order_by(traces.c.place, *_seen_first(author))
        )
        found: dict[int, Anchor] = {}
        with self._store.read() as connection:
            for row in connection.execute(query):
                found.setdefault(row.place, Anchor(row.place, row.id, tuple(json.loads(row.helpful))))
        return list(found.values())

    def beside(self, place: int, revision: str) -> tuple[int | None, int | None]:
        """The places of the examples before and after this one that were traced."""
        before = sa.select(sa.func.max(traces.c.place)).where(traces.c.revision == revision, traces.c.place < place)
        after = sa.select(sa.func.min(traces.c.place)).where(traces.c.revision == revision, traces.c.place > place)
        with self._store.read() as connection:
            return connection.execute(before).scalar(), connection.execute(after).scalar()

    def one(self, place: int, revision: str, author: str) -> StoredTrace:
        """What somebody sees of an example that was traced."""
        query = sa.select(traces).where(traces.c.place == place, traces.c.revision == revision)
        with self._store.read() as connection:
            row = connection.execute(query.order_by(*_seen_first(author)).limit(1)).one_or_none()
        if row is None:
            raise NotFound(NOT_TRACED)
        return _trace(row)

    def all(self, revision: str, author: str = "") -> list[Influence]:
        """What was found for every anchor of a revision, as somebody sees it, in the order of the examples."""
        query = sa.select(traces).where(traces.c.revision == revision)
        found: dict[int, StoredTrace] = {}
        with self._store.read() as connection:
            for row in connection.execute(query.order_by(traces.c.place, *_seen_first(author))):
                if row.place not in found:
                    found[row.place] = _trace(row)
        return [one.influence for one in found.values()]

    def are_neighbours(self, place: int, train: str) -> bool:
        """Whether a training example was found to have helped the example at a place, by any trace."""
        query = sa.select(traces.c.helpful).where(traces.c.place == place)
        with self._store.read() as connection:
            return any(train in json.loads(told) for told in connection.execute(query).scalars())

    def rated_by(self, author: str) -> set[tuple[str, str]]:
        """The pairs, anchor and training example, that somebody has rated."""
        query = sa.select(opinions.c.subject).where(opinions.c.author == author, opinions.c.kind == "neighbour_rating")
        with self._store.read() as connection:
            told = [json.loads(subject) for subject in connection.execute(query).scalars()]
        return {(anchor, train) for _, anchor, train in told}


class CopyTable:
    """Copies of training examples. What people deleted stays, marked so: it is not made again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- writing

    def keep(self, by: str, made: Sequence[tuple[int, Example, Copy]], *, instead_of: Collection[str] = ()) -> None:
        """Store copies with place and source, in one step; those that were there before stay as they are.

        With `instead_of`, the ids of others that they take the place of; what people have edited stays even so.
        """
        if made or instead_of:
            self._store.write(partial(self._add, by, made, instead_of))

    def _add(
        self, by: str, made: Sequence[tuple[int, Example, Copy]], instead_of: Collection[str], connection: Connection
    ) -> None:
        self._store.lock(connection, "copies")
        untouched = copies.c.edited.is_(False), copies.c.deleted.is_(False)
        for some in batches(instead_of, 500):
            connection.execute(copies.delete().where(copies.c.id.in_(some), *untouched))
        rows = {copy.id: _copy_row(by, place, source, copy) for place, source, copy in made}
        for some in batches(list(rows), 500):
            for row in connection.execute(sa.select(copies.c.id).where(copies.c.id.in_(some))).all():
                del rows[row.id]
        if rows:
            connection.execute(copies.insert(), list(rows.values()))

    def change(self, id_: str, change: CopyChange, by: str) -> StoredCopy:
        """Rewrite a copy by hand; `Conflict` if it is not any more as it was seen."""

        def act(connection: Connection) -> StoredCopy:
            stored = self._standing(connection, id_)
            if stored.at != change.seen:
                raise Conflict(
                    f"{stored.by or 'Somebody'} has changed this copy since. Nothing was changed; look at it again."
                )
            new = replace(stored.copy, text=change.text, pair=change.pair, label_kept=None)
            values = {"copy": to_json(new), "label_kept": None, "edited": True, "by": by, "at": _moment()}
            connection.execute(copies.update().where(copies.c.id == id_).values(**values))
            return self._standing(connection, id_)

        return self._store.write(act)

    def delete(self, id_: str, by: str) -> None:
        """Take a copy out; it is not made again."""

        def act(connection: Connection) -> None:
            self._standing(connection, id_)
            values = {"deleted": True, "by": by, "at": _moment()}
            connection.execute(copies.update().where(copies.c.id == id_).values(**values))

        self._store.write(act)

    def _standing(self, connection: Connection, id_: str) -> StoredCopy:
        self._store.lock(connection, "copies")
        row = connection.execute(sa.select(copies).where(copies.c.id == id_)).one_or_none()
        if row is None or row.deleted:
            raise NotFound(NO_COPY)
        return _copy(row)

    # -- reading

    def one(self, id_: str) -> StoredCopy:
        """A copy that was not deleted."""
        query = sa.select(copies).where(copies.c.id == id_, copies.c.deleted.is_(False))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(NO_COPY)
        return _copy(row)

    def all(self) -> list[StoredCopy]:
        """All copies, those that were deleted among them, in the order they were made."""
        with self._store.read() as connection:
            return [_copy(row) for row in connection.execute(sa.select(copies).order_by(copies.c.number))]

    def order(self, places: Iterable[int]) -> dict[str, int]:
        """For each copy of the examples at these places: how many older ones there are of the same example."""
        found: dict[str, int] = {}
        seen: Counter[int] = Counter()
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(places), 500):
                query = sa.select(copies.c.id, copies.c.place).where(_there(), copies.c.place.in_(some))
                for row in connection.execute(query.order_by(copies.c.number)):
                    found[row.id] = seen[row.place]
                    seen[row.place] += 1
        return found

    def counts(self, places: Collection[int]) -> Counter[int]:
        """How many copies there are of the examples at these places."""
        found: Counter[int] = Counter()
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(places), 500):
                query = sa.select(copies.c.place, sa.func.count()).where(_there(), copies.c.place.in_(some))
                found.update({row[0]: row[1] for row in connection.execute(query.group_by(copies.c.place))})
        return found

    def page(self, wanted: CopyQuery) -> tuple[list[StoredCopy], str | None, int]:
        """Those that fit, where to go on, and how many there are."""
        query = sa.select(copies).where(_there())
        if wanted.place is not None:
            query = query.where(copies.c.place == wanted.place)
        with self._store.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            if wanted.cursor is not None:
                query = query.where(copies.c.number > decode(wanted.cursor)[1])
            rows = connection.execute(query.order_by(copies.c.number).limit(wanted.limit + 1)).all()
        onward = encode(0, rows[wanted.limit - 1].number) if len(rows) > wanted.limit else None
        return [_copy(row) for row in rows[: wanted.limit]], onward, total

    def page_of(
        self, wanted: CopyQuery, most: Mapping[int, int]
    ) -> tuple[list[StoredCopy], str | None, int, tuple[int, int]]:
        """The same of the first copies of some places alone, so many of each; and what `totals` tells, of them."""
        own = sorted(self._first_of(most), key=lambda row: int(row.number))
        doubtful = sum(row.label_kept is not None and row.label_kept < DOUBTFUL for row in own)
        totals = len({row.place for row in own}), doubtful
        fitting = [row for row in own if wanted.place in {None, row.place}]
        after = -1 if wanted.cursor is None else decode(wanted.cursor)[1]
        rest = [row for row in fitting if row.number > after]
        onward = encode(0, rest[wanted.limit - 1].number) if len(rest) > wanted.limit else None
        return [_copy(row) for row in rest[: wanted.limit]], onward, len(fitting), totals

    def _first_of(self, most: Mapping[int, int]) -> Iterator[sa.Row[Any]]:
        query, seen = sa.select(copies).where(_there()).order_by(copies.c.number), Counter[int]()
        with self._store.read() as connection:
            for some in batches(most, 500):
                for row in connection.execute(query.where(copies.c.place.in_(some))):
                    seen[row.place] += 1
                    if seen[row.place] <= most[row.place]:
                        yield row

    def totals(self) -> tuple[int, int]:
        """How many training examples have copies, and of how many copies the label may not hold."""
        sources, doubtful = sa.func.count(sa.distinct(copies.c.place)), copies.c.label_kept < DOUBTFUL
        query = sa.select(sources, sa.func.count().filter(doubtful)).where(_there())
        with self._store.read() as connection:
            row = connection.execute(query).one()
        return int(row[0]), int(row[1])


class DoubtTable:
    """Rankings of the training examples by how doubtful their labels are: one for each revision."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, revision: str, found: Sequence[tuple[int, Example, Doubt]]) -> None:
        """Store a ranking, the most doubtful first, in place of the revision's earlier one: all in one step."""
        rows = [_doubt_row(rank, *one) for rank, one in enumerate(found, start=1)]

        def act(connection: Connection) -> None:
            self._store.lock(connection, "doubts")
            connection.execute(doubts.delete().where(doubts.c.revision == revision))
            for some in batches(rows, 1000):
                connection.execute(doubts.insert(), some)

        self._store.write(act)

    def all(self, revision: str) -> list[StoredDoubt]:
        """A revision's ranking, the most doubtful first."""
        query = sa.select(doubts).where(doubts.c.revision == revision).order_by(doubts.c.rank)
        with self._store.read() as connection:
            return [_doubt(row) for row in connection.execute(query)]

    def recipe(self, revision: str) -> Recipe | None:
        """How a revision's labels were doubted; None if they were not."""
        query = sa.select(doubts.c.doubt).where(doubts.c.revision == revision).order_by(doubts.c.rank).limit(1)
        with self._store.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else from_json(Doubt, found).recipe

    def page(self, wanted: DoubtQuery, *, revision: str, author: str) -> tuple[list[StoredDoubt], str | None, int]:
        """Those that fit, where to go on, and how many there are."""
        query = sa.select(doubts).where(doubts.c.revision == revision)
        if wanted.label is not None:
            query = query.where(doubts.c.label == wanted.label)
        if wanted.waiting is not None:
            query = query.where(~_judged(author) if wanted.waiting else _judged(author))
        with self._store.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            if wanted.cursor is not None:
                query = query.where(doubts.c.rank > decode(wanted.cursor)[1])
            rows = connection.execute(query.order_by(doubts.c.rank).limit(wanted.limit + 1)).all()
        onward = encode(0, rows[wanted.limit - 1].rank) if len(rows) > wanted.limit else None
        return [_doubt(row) for row in rows[: wanted.limit]], onward, total

    def judged(self, revision: str, author: str) -> int:
        """How many of them somebody has said the right label of."""
        query = sa.select(sa.func.count()).select_from(doubts).where(doubts.c.revision == revision, _judged(author))
        with self._store.read() as connection:
            found: int = connection.execute(query).scalar_one()
        return found


def pairs_rated(anchors: Iterable[Anchor], rated: Collection[tuple[str, str]]) -> Mapping[int, int]:
    """How many neighbours of each anchor are among the rated pairs, by place."""
    return {one.place: sum((one.id, train) in rated for train in one.helpful) for one in anchors}


# -- inside queries


def _same(asked: str, revision: str, places: Sequence[int]) -> tuple[sa.ColumnElement[bool], ...]:
    return traces.c.asked == asked, traces.c.revision == revision, traces.c.place.in_(places)


def _seen_first(author: str) -> tuple[sa.ColumnElement[Any], ...]:
    """What somebody sees of an example comes first: what leads, or is their own, and of these the newest."""
    own = sa.case((sa.or_(traces.c.leads, traces.c.by == author), 0), else_=1)
    return own, traces.c.number.desc()


def _there() -> sa.ColumnElement[bool]:
    return copies.c.deleted.is_(False)


def _judged(author: str) -> sa.ColumnElement[bool]:
    about = sa.select(opinions.c.feedback).join(examples, examples.c.id == opinions.c.example)
    mine = about.where(opinions.c.author == author, opinions.c.kind == "relabel", examples.c.place == doubts.c.place)
    return mine.correlate(doubts).exists()


def _moment() -> str:
    """The moment so exactly that no two changes of a copy have the same: it is how people say what they saw."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _trace_row(place: int, example: Example, found: Influence) -> dict[str, Any]:
    return {
        "revision": found.revision,
        "place": place,
        "text_hash": example.text_hash,
        "helpful": json.dumps([one.train for one in found.helpful]),
        "influence": to_json(found),
    }


def _trace(row: Any) -> StoredTrace:
    return StoredTrace(row.number, row.place, row.text_hash, from_json(Influence, row.influence), row.by, row.at)


def _copy_row(by: str, place: int, source: Example, copy: Copy) -> dict[str, Any]:
    return {
        "id": copy.id,
        "place": place,
        "text_hash": source.text_hash,
        "label": copy.label,
        "label_kept": copy.label_kept,
        "edited": False,
        "deleted": False,
        "by": by,
        "at": now(),
        "copy": to_json(copy),
    }


def _copy(row: Any) -> StoredCopy:
    copy = from_json(Copy, row.copy)
    return StoredCopy(row.number, row.id, row.place, row.text_hash, copy, row.edited, row.deleted, row.by, row.at)


def _doubt_row(rank: int, place: int, example: Example, doubt: Doubt) -> dict[str, Any]:
    return {
        "revision": doubt.revision,
        "rank": rank,
        "place": place,
        "text_hash": example.text_hash,
        "label": doubt.label,
        "score": doubt.score,
        "doubt": to_json(doubt),
    }


def _doubt(row: Any) -> StoredDoubt:
    return StoredDoubt(row.rank, row.place, row.text_hash, from_json(Doubt, row.doubt))
