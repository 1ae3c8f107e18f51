"""Explanations in tables: one for each text and each way of explaining, and the words ranked by them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import BadOption, NotFound
from unhans.records.cursors import decode, encode
from unhans.shapes import ExplanationSet, WordRow
from unhans.store import Store, batches
from unhans.store.schema import examples, explanation_sets, explanations, ranked_words
from unhans.text import visible_form
from unhans.types import Attribution, Recipe, Suspect, WordRanking, from_json, to_json

WordOrder = Literal["damage", "total", "score"]
Vote = Literal["raise", "lower"]
_SCALED_BY = 500  # explanations that decide the colour scale
_PERCENTILE = 99  # one giant score must not make all others look like nothing


@dataclass(frozen=True)
class Alike:
    """What explanations have in common that may be compared and drawn on one scale."""

    revision: str
    recipe: Recipe
    target: str | None  # None: each text's predicted label
    units: str
    others: str = ""  # what else the scores depend on, such as the examples compared with

    @property
    def id(self) -> str:
        """A fingerprint; equal in every process."""
        told = json.dumps([self.revision, self.recipe.key, self.target, self.units, self.others])
        return blake2b(told.encode(), digest_size=8).hexdigest()


class ExplanationTable:
    """Explanations that were made alike form a set; a text is explained once in each, however often it occurs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def kept(self, alike: Alike, hashes: Sequence[str]) -> dict[str, Attribution]:
        """The explanations of these texts that are there already."""
        found: dict[str, Attribution] = {}
        with self._store.read() as connection:
            for some in batches(dict.fromkeys(hashes), 500):
                query = sa.select(explanations.c.text_hash, explanations.c.attribution).where(
                    explanations.c.set == alike.id, explanations.c.text_hash.in_(some)
                )
                found |= {row.text_hash: from_json(Attribution, row.attribution) for row in connection.execute(query)}
        return found

    def keep(self, alike: Alike, found: Mapping[str, Attribution]) -> None:
        """Store explanations by the hash of their text; those that are there already stay."""
        for some in batches(found.items(), 500):
            rows = [{"set": alike.id, "text_hash": text_hash, "attribution": to_json(one)} for text_hash, one in some]
            self._store.write(partial(self._add, alike, rows))

    def _add(self, alike: Alike, rows: list[dict[str, str]], connection: Connection) -> None:
        self._store.lock(connection, f"explanations {alike.id}")
        known = sa.select(explanation_sets.c.id).where(explanation_sets.c.id == alike.id)
        if connection.execute(known).first() is None:
            connection.execute(explanation_sets.insert().values(**_set_row(alike)))
        hashes = [row["text_hash"] for row in rows]
        query = sa.select(explanations.c.text_hash).where(
            explanations.c.set == alike.id, explanations.c.text_hash.in_(hashes)
        )
        there = set(connection.execute(query).scalars())
        if new := [row for row in rows if row["text_hash"] not in there]:
            connection.execute(explanations.insert(), new)
            changed = explanation_sets.update().where(explanation_sets.c.id == alike.id)
            count = explanation_sets.c.count + len(new)
            connection.execute(changed.values(count=count, scale=self._scale(connection, alike.id)))

    def _scale(self, connection: Connection, set_id: str) -> float:
        query = sa.select(explanations.c.attribution).where(explanations.c.set == set_id)
        some = connection.execute(query.order_by(explanations.c.text_hash).limit(_SCALED_BY)).scalars()
        scores = [abs(score) for line in some for score in json.loads(line)["scores"]]
        return float(np.percentile(scores, _PERCENTILE)) if scores else 0.0

    def sets(self, revision: str) -> tuple[ExplanationSet, ...]:
        """The sets of a revision, newest first."""
        with self._store.read() as connection:
            rows = connection.execute(
                sa.select(explanation_sets)
                .where(explanation_sets.c.revision == revision)
                .order_by(explanation_sets.c.at.desc(), explanation_sets.c.id)
            ).all()
            ranked = connection.execute(
                sa.select(ranked_words.c.set, ranked_words.c.label).where(ranked_words.c.rank == 0)
            ).all()
        return tuple(_as_set(row, [r.label for r in ranked if r.set == row.id]) for row in rows)

    def set(self, id_: str) -> ExplanationSet:
        """The set of this id."""
        with self._store.read() as connection:
            row = connection.execute(sa.select(explanation_sets).where(explanation_sets.c.id == id_)).one_or_none()
            ranked = connection.execute(
                sa.select(ranked_words.c.label).where(ranked_words.c.set == id_, ranked_words.c.rank == 0)
            ).scalars()
            if row is None:
                raise NotFound("There are no such explanations.")
            return _as_set(row, list(ranked))

    def one(self, id_: str, text_hash: str) -> Attribution | None:
        """The explanation of a text in a set."""
        query = sa.select(explanations.c.attribution).where(
            explanations.c.set == id_, explanations.c.text_hash == text_hash
        )
        with self._store.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else from_json(Attribution, found)

    def scores_of(self, id_: str, word: str, label: str, limit: int = 1000) -> Iterator[tuple[int, float]]:
        """Place and summed score of a word in the explained texts that contain it, for drawing their spread."""
        form = visible_form(word)
        query = (
            sa.select(examples.c.place, explanations.c.attribution)
            .join(examples, examples.c.text_hash == explanations.c.text_hash)
            .where(explanations.c.set == id_)
            .order_by(examples.c.place)
        )
        found = 0
        with self._store.read() as connection:
            for row in connection.execution_options(yield_per=500).execute(query):
                one = json.loads(row.attribution)
                if one["label"] != label:
                    continue
                scores = [s for w, s in zip(one["words"], one["scores"], strict=True) if visible_form(w) == form]
                if scores:
                    yield row.place, sum(scores)
                    found += 1
                    if found == limit:
                        return

    # -- words

    def rank(self, alike: Alike, ranking: WordRanking, suspects: Sequence[Suspect]) -> None:
        """Store the ranking of a label's words, in place of an earlier one."""
        suspected = {one.word: one for one in suspects if one.label == ranking.label}
        rows = []
        for rank, word in enumerate(ranking.words):
            one = suspected.get(word.word)
            rows.append(
                {
                    "set": alike.id,
                    "label": ranking.label,
                    "rank": rank,
                    "word": word.word,
                    "score": word.score,
                    "spread": word.spread,
                    "count": word.count,
                    "correct": word.correct,
                    "z": word.z,
                    "weight": one and one.weight,
                    "coverage": one and one.coverage,
                    "disagreement": one and one.disagreement,
                    "damage": one and one.damage,
                }
            )

        def act(connection: Connection) -> None:
            connection.execute(
                ranked_words.delete().where(ranked_words.c.set == alike.id, ranked_words.c.label == ranking.label)
            )
            if rows:
                connection.execute(ranked_words.insert(), rows)

        self._store.write(act)

    def words(
        self,
        set_id: str,
        label: str,
        *,
        order: WordOrder = "damage",
        search: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tuple[list[Any], str | None, int]:
        """Rows of ranked words, where to go on, and how many there are."""
        if not 1 <= limit <= 500:
            raise BadOption("A page has 1 to 500 words.")
        w = ranked_words.c
        key = {"damage": sa.func.coalesce(w.damage, -1.0), "total": -1.0 * w.rank, "score": w.score}[order]
        query = sa.select(ranked_words, key.label("key")).where(w.set == set_id, w.label == label)
        if search:
            query = query.where(w.word.contains(visible_form(search), autoescape=True))
        with self._store.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            if cursor is not None:
                value, rank = decode(cursor)
                query = query.where(sa.or_(key < value, sa.and_(key == value, w.rank > rank)))
            rows = connection.execute(query.order_by(key.desc(), w.rank).limit(limit + 1)).all()
        onward = encode(rows[limit - 1].key, rows[limit - 1].rank) if len(rows) > limit else None
        return list(rows[:limit]), onward, total

    def word(self, set_id: str, label: str, word: str) -> Any | None:
        """The row of a ranked word."""
        w = ranked_words.c
        query = sa.select(ranked_words).where(w.set == set_id, w.label == label, w.word == visible_form(word))
        with self._store.read() as connection:
            return connection.execute(query).one_or_none()


def word_row(row: Any, mine: Vote | None, raised: int, lowered: int) -> WordRow:
    """A ranked word with the votes on it."""
    opposite = {"raise": lowered, "lower": raised}.get(mine or "", 0)
    return WordRow(
        row.word, row.score, row.spread, row.count, row.correct, row.z,
        row.weight, row.coverage, row.disagreement, row.damage, mine, opposite,
    )  # fmt: skip


def without_label(found: Attribution) -> Attribution:
    """How much each word counts, but not for what: all that is told before the words are judged.

    The sign of a score is left out as well: words that speak for the given label, or against it, tell the prediction.
    """
    terms = replace(found.terms, signed=False)
    return replace(found, label="", scores=tuple(map(abs, found.scores)), terms=terms)


def _set_row(alike: Alike) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {
        "id": alike.id,
        "revision": alike.revision,
        "recipe": to_json(alike.recipe),
        "target": alike.target,
        "units": alike.units,
        "at": now,
        "count": 0,
        "scale": 0.0,
    }


def _as_set(row: Any, ranked: Sequence[str]) -> ExplanationSet:
    recipe = from_json(Recipe, row.recipe)
    options = dict(recipe.options)
    return ExplanationSet(
        row.id, recipe.name, options, row.target, row.units, row.revision, row.count, row.scale, row.at, tuple(ranked)
    )
