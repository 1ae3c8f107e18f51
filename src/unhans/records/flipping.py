"""Counterfactuals in tables: what was found for which search, and how people rated it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import BadOption, NotFound
from unhans.records.cursors import decode, encode
from unhans.records.examples import judgement
from unhans.records.revising import now
from unhans.shapes import FlipDot, FlipQuery, Method, MethodOption
from unhans.store import Store, batches
from unhans.store.schema import examples, flip_searches, flips, opinions
from unhans.text import Words
from unhans.types import Counterfactual, Edit, Example, Feedback, FlipRating, OptionValue, Recipe, from_json, to_json

CHART = 3000  # dots: more cannot be told apart
NOT_KNOWN = (
    "The ways to look for flips are not known here yet. Have the examples predicted once with this version of unhans."
)


@dataclass(frozen=True)
class KnownFlips:
    """The ways to look for flips, as a process that had them loaded described them."""

    methods: tuple[Method, ...] = ()
    search: tuple[MethodOption, ...] = ()
    rationales: tuple[Method, ...] = ()


@dataclass(frozen=True)
class Asked:
    """All that a search for flips depends on, but the text: the same search of the same text finds the same."""

    revision: str
    recipe: Recipe  # of the generator
    search: tuple[tuple[str, OptionValue], ...]
    target: str | None
    keep: int
    seed: int
    editable: tuple[int, ...] | None = None
    reads: tuple[int, ...] | None = None
    start: tuple[Edit, ...] = ()

    @property
    def id(self) -> str:
        """A fingerprint; equal in every process."""
        told = asdict(self) | {"recipe": self.recipe.key, "search": sorted(self.search)}
        return blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Find:
    """What a search found for the example at a place."""

    asked: str  # id of the search
    place: int
    example: Example
    flips: tuple[Counterfactual, ...]


@dataclass(frozen=True)
class StoredFlip:
    """A counterfactual with its place in the project."""

    number: int
    place: int
    text_hash: str  # of the original, when it was rewritten
    flip: Counterfactual
    by: str
    at: str


class FlipTable:
    """Counterfactuals of all revisions. One that is found again stays as it was first found: people rated that."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- writing

    def keep(self, by: str, finds: Sequence[Find]) -> None:
        """Store what searches found, all in one step."""
        self._store.write(partial(self._add, by, finds))

    def _add(self, by: str, finds: Sequence[Find], connection: Connection) -> None:
        self._store.lock(connection, "flips")
        done = {(row.asked, row.place) for row in connection.execute(_searched({f.place: f.asked for f in finds}))}
        new = [one for one in finds if (one.asked, one.place) not in done]
        rows = {flip.id: _row(one, flip, by) for one in new for flip in one.flips}
        known = sa.select(flips.c.id).where(flips.c.id.in_(list(rows)))
        for id_ in connection.execute(known).scalars().all():
            del rows[id_]
        if rows:
            connection.execute(flips.insert(), list(rows.values()))
        told = [
            {"asked": one.asked, "place": one.place, "found": json.dumps([flip.id for flip in one.flips])}
            for one in new
        ]
        if told:
            connection.execute(flip_searches.insert(), told)

    # -- reading

    def found(self, wanted: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
        """For which places what is wanted there (ids of searches) was looked for, and the ids of what was found."""
        known: dict[int, tuple[str, ...]] = {}
        with self._store.read() as connection:
            for some in batches(wanted.items(), 500):
                for row in connection.execute(_searched(dict(some))):
                    if wanted[row.place] == row.asked:
                        known[row.place] = tuple(json.loads(row.found))
        return known

    def one(self, id_: str) -> StoredFlip:
        """The counterfactual of this id."""
        found = self.some([id_]).get(id_)
        if found is None:
            raise NotFound("There is no such rewritten text.")
        return found

    def some(self, ids: Iterable[str]) -> dict[str, StoredFlip]:
        """Those that are there, by their ids, in the order they were stored."""
        rows: list[Any] = []
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(ids), 500):
                rows += connection.execute(sa.select(flips).where(flips.c.id.in_(some))).all()
        return {row.id: _stored(row) for row in sorted(rows, key=lambda row: int(row.number))}

    def all(self, revision: str | None = None) -> Iterator[StoredFlip]:
        """Those of a revision, or of all, that change a word, in the order they were stored."""
        query = sa.select(flips).where(flips.c.edits > 0).order_by(flips.c.number)
        if revision is not None:
            query = query.where(flips.c.revision == revision)
        with self._store.read() as connection:
            for row in connection.execution_options(yield_per=200).execute(query):
                yield _stored(row)

    def count(self, revision: str) -> int:
        """How many a revision has."""
        query = sa.select(sa.func.count()).select_from(flips).where(_changed(revision))
        with self._store.read() as connection:
            found: int = connection.execute(query).scalar_one()
        return found

    def newest(self, place: int, revision: str, limit: int) -> list[StoredFlip]:
        """Those of an example, newest first."""
        query = sa.select(flips).where(_changed(revision), flips.c.place == place)
        with self._store.read() as connection:
            return [_stored(row) for row in connection.execute(query.order_by(flips.c.number.desc()).limit(limit))]

    def page(
        self, wanted: FlipQuery, *, revision: str, author: str, overlap: int, words_first: bool = False
    ) -> tuple[list[StoredFlip], str | None, int]:
        """Those that fit, where to go on, and how many there are; with `words_first`, of examples the author judged."""
        query = sa.select(flips).where(*_conditions(wanted, revision, author, overlap))
        if words_first:
            query = query.where(_judged(author))
        with self._store.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            if wanted.cursor is not None:
                query = query.where(flips.c.number > decode(wanted.cursor)[1])
            rows = connection.execute(query.order_by(flips.c.number).limit(wanted.limit + 1)).all()
        onward = encode(0, rows[wanted.limit - 1].number) if len(rows) > wanted.limit else None
        return [_stored(row) for row in rows[: wanted.limit]], onward, total

    def chart(
        self, revision: str, author: str, most: int = CHART, *, words_first: bool = False
    ) -> tuple[tuple[FlipDot, ...], int]:
        """Each as a dot, the newest ones, oldest first; and how many there are. `words_first` as in `page`."""
        mine, seen = _rated_by(author).label("rated"), _judged(author) if words_first else sa.true()
        columns = [c for c in flips.c if c.name != "flip"]
        query = sa.select(*columns, mine).where(_changed(revision), seen)
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(flips.c.number.desc()).limit(most)).all()
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
        return tuple(_dot(row) for row in reversed(rows)), total


# -- what is told of them


def check_edits(example: Example, edits: Sequence[Edit]) -> None:
    """Refuse edits that are not of this example."""
    words = Words(example).strings
    for edit in edits:
        if not 0 <= edit.position < len(words) or words[edit.position] != edit.old:
            raise BadOption("The example has no such word there. Reload it: its text may have changed.")
    if len({edit.position for edit in edits}) < len(edits):
        raise BadOption("Two changes are about the same word. Give one for each word.")


def dataset_line(stored: StoredFlip, original: Example, ratings: Iterable[Feedback]) -> str:
    """A counterfactual with all that somebody needs who takes it elsewhere: a line that `export.read_flips` reads."""
    flip = stored.flip
    told = {
        "id": flip.id,
        "revision": flip.before.revision,
        "original": json.loads(to_json(original)),
        "flip": json.loads(to_json(flip)),
        "ratings": [json.loads(to_json(one)) for one in ratings],
        "by": stored.by,
        "at": stored.at,
    }
    return json.dumps(told, ensure_ascii=False) + "\n"


def by_flip(ratings: Iterable[Feedback]) -> Mapping[str, list[Feedback]]:
    """Ratings by the id of what they rate."""
    found: dict[str, list[Feedback]] = {}
    for one in ratings:
        if isinstance(one.says, FlipRating):
            found.setdefault(one.says.counterfactual, []).append(one)
    return found


# -- inside queries


def _searched(wanted: Mapping[int, str]) -> sa.Select[Any]:
    columns = flip_searches.c
    return sa.select(flip_searches).where(columns.asked.in_(set(wanted.values())), columns.place.in_(list(wanted)))


def _conditions(wanted: FlipQuery, revision: str, author: str, overlap: int) -> Iterator[sa.ColumnElement[bool]]:
    yield _changed(revision)
    if wanted.place is not None:
        yield flips.c.place == wanted.place
    if wanted.method is not None:
        yield flips.c.method == wanted.method
    if wanted.flips is not None:
        yield flips.c.flips.is_(wanted.flips)
    if wanted.rated is not None:
        yield _rated_by(author) if wanted.rated else ~_rated_by(author)
    if wanted.waiting is not None:
        people = sa.select(sa.func.count()).where(opinions.c.subject == _subject()).scalar_subquery()
        needs = sa.and_(~_rated_by(author), people < overlap)
        yield needs if wanted.waiting else ~needs


def _changed(revision: str) -> sa.ColumnElement[bool]:
    """Of a revision, and with a word changed: where none could be, there is nothing to look at."""
    return sa.and_(flips.c.revision == revision, flips.c.edits > 0)


def _rated_by(author: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(opinions.c.author == author, opinions.c.subject == _subject())


def _judged(author: str) -> sa.ColumnElement[bool]:
    """Whether somebody has judged the words of the example that was rewritten."""
    own = sa.select(opinions.c.feedback).join(examples, examples.c.id == opinions.c.example)
    about = own.where(examples.c.place == flips.c.place, opinions.c.author == author, judgement())
    return about.correlate(flips).exists()


def _subject() -> sa.ColumnElement[str]:
    """The question that `feedback.subject_of` makes of a rating; ids are plain, so nothing in them is escaped."""
    return sa.literal('["flip_rating","') + flips.c.id + sa.literal('"]')


def _row(find: Find, flip: Counterfactual, by: str) -> dict[str, Any]:
    return {
        "id": flip.id,
        "place": find.place,
        "text_hash": find.example.text_hash,
        "revision": flip.before.revision,
        "method": flip.recipe.name,
        "target": flip.target,
        "before": flip.before.label,
        "after": flip.after.label,
        "probability": flip.after.confidence,
        "edits": len(flip.edits),
        "words": len(Words(find.example)),
        "similarity": flip.similarity,
        "perplexity": flip.perplexity,
        "flips": flip.flips,
        "by": by,
        "at": now(),
        "flip": to_json(flip),
    }


def _stored(row: Any) -> StoredFlip:
    return StoredFlip(row.number, row.place, row.text_hash, from_json(Counterfactual, row.flip), row.by, row.at)


def _dot(row: Any) -> FlipDot:
    return FlipDot(
        id=row.id,
        place=row.place,
        method=row.method,
        before=row.before,
        after=row.after,
        probability=row.probability,
        edits=row.edits,
        share=row.edits / max(1, row.words),
        similarity=row.similarity,
        perplexity=row.perplexity,
        flips=row.flips,
        rated=bool(row.rated),
    )
