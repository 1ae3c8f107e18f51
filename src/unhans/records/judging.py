"""The log of feedback and what it comes to: who thinks what now, how far everybody is, what to judge next."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import BadOption, Conflict, NotFound
from unhans.feedback import resolve, subject_of, value_of
from unhans.records.examples import ExampleTable, cursor_behind, state_of
from unhans.records.explained import Vote
from unhans.shapes import Filter, History, NextPlace, Progress, State
from unhans.store import Store, batches
from unhans.store.schema import examples, feedback, opinions, reservations
from unhans.text import Words, visible_form
from unhans.types import (
    Answer,
    Example,
    Feedback,
    FlipRating,
    NeighbourRating,
    Relabel,
    Review,
    Ruling,
    Verdict,
    WordVote,
    from_json,
    to_json,
)

RESERVED_SECONDS = 15 * 60
_HISTORY = 100
_LOOKED_AT = 50  # examples at a time, when one that needs somebody is looked for


class Differs(Conflict):
    """The same person answered this question elsewhere meanwhile; `current` is what they said."""

    def __init__(self, current: Feedback | None) -> None:
        super().__init__("You have answered this elsewhere meanwhile. Nothing was changed; choose which answer holds.")
        self.current = current


@dataclass(frozen=True)
class Stored:
    """What a request to the log came to."""

    entry: Feedback | None  # None: there was nothing to take back
    standing: Feedback | None  # what now holds on that question
    known: bool = False  # it was stored already, by an earlier try of the same request


class FeedbackLog:
    """An append-only log: nothing in it is ever changed; taking back is another entry."""

    def __init__(self, store: Store, table: ExampleTable, clock: Callable[[], float] = time.time) -> None:
        self._store, self._examples, self._clock = store, table, clock

    # -- writing

    def add(self, entry: Feedback, *, key: str, expects: str | None = None) -> Stored:
        """Append an answer. The same author and key a second time store nothing and answer as the first time.

        `expects` is the id of the author's entry that is believed to hold on this question ("" for none); if another
        one does, nothing is stored and `Differs` says which.
        """
        subject = subject_of(entry.says)

        def act(connection: Connection) -> Stored:
            self._store.lock(connection, f"feedback {entry.author}")
            if (before := self._known(connection, entry.author, key)) is not None:
                return Stored(before, self._standing(connection, entry.author, subject_of(before.says)), known=True)
            standing = self._standing(connection, entry.author, subject)
            if expects is not None and expects != (standing.id if standing else ""):
                raise Differs(standing)
            self._append(connection, entry, key, subject)
            return Stored(entry, entry)

        return self._store.write(act)

    def add_many(self, entries: Iterable[tuple[Feedback, str]]) -> tuple[int, int]:
        """Append entries with their keys: how many were new, and how many were there already."""
        new = known = 0
        for some in batches(entries, 500):

            def act(connection: Connection, some: list[tuple[Feedback, str]] = some) -> int:
                stored = 0
                for entry, key in some:
                    self._store.lock(connection, f"feedback {entry.author}")
                    if self._known(connection, entry.author, key) is None and not self._has_id(connection, entry.id):
                        self._append(connection, entry, key, subject_of(entry.says))
                        stored += 1
                return stored

            stored = self._store.write(act)
            new, known = new + stored, known + len(some) - stored
        return new, known

    def retract(
        self, author: str, *, key: str, retracts: str | None = None, example: str | None = None, clear: bool = False
    ) -> Stored:
        """Take back an entry of the author's that holds: the named one, or the latest (on an example).

        What they said before on that question holds again, unless `clear` takes back that too.
        """

        def act(connection: Connection) -> Stored:
            self._store.lock(connection, f"feedback {author}")
            if (before := self._known(connection, author, key)) is not None:
                return Stored(before, self._standing(connection, author, subject_of(before.says)), known=True)
            query = sa.select(opinions.c.feedback).where(opinions.c.author == author)
            if retracts is not None:
                query = query.where(opinions.c.feedback == retracts)
            elif example is not None:
                query = query.where(opinions.c.example == example)
            found = connection.execute(query.order_by(opinions.c.number.desc()).limit(1)).scalar()
            if found is None:
                if retracts is not None:
                    raise NotFound("This answer does not hold any more, so there is nothing to take back.")
                return Stored(None, None)
            target: Feedback | None = self._entry(connection, found)
            first: Feedback | None = None
            while target is not None and (first is None or clear):
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                entry = replace(target, id=new_id(), at=now, retracts=target.id, seconds=None)
                subject = subject_of(target.says)
                # a request has one key; the further entries of a clearing have none that a request could have
                self._append(connection, entry, key if first is None else f"{key}/{entry.id}", subject)
                first = first or entry
                target = self._standing(connection, author, subject)
            return Stored(first, target)

        return self._store.write(act)

    def _append(self, connection: Connection, entry: Feedback, key: str, subject: str) -> None:
        says = entry.says
        number = connection.execute(
            feedback.insert()
            .values(
                id=entry.id,
                key=key,
                author=entry.author,
                subject=subject,
                kind=says.kind,
                example=_example_of(says),
                retracts=entry.retracts,
                seconds=entry.seconds,
                at=entry.at,
                entry=to_json(entry),
            )
            .returning(feedback.c.number)
        ).scalar_one()
        holds: Feedback | None = entry
        if entry.retracts is not None:
            rows = connection.execute(
                sa.select(feedback.c.number, feedback.c.entry)
                .where(feedback.c.author == entry.author, feedback.c.subject == subject)
                .order_by(feedback.c.number)
            ).all()
            numbers = {from_json(Feedback, row.entry).id: row.number for row in rows}
            holds = resolve(from_json(Feedback, row.entry) for row in rows).get((entry.author, subject))
            number = numbers[holds.id] if holds else number
        connection.execute(opinions.delete().where(opinions.c.author == entry.author, opinions.c.subject == subject))
        if holds is not None:
            connection.execute(opinions.insert().values(**_opinion(holds, subject, number)))

    # -- reading

    def opinions(
        self,
        *,
        author: str | None = None,
        example: str | None = None,
        words: Sequence[str] | None = None,
        subjects: Sequence[str] | None = None,
        kinds: Sequence[str] = (),
    ) -> list[Feedback]:
        """What people think now: all of it, one person's, about one example, some words everywhere or questions."""
        query = sa.select(feedback.c.entry).join(opinions, opinions.c.feedback == feedback.c.id)
        if author is not None:
            query = query.where(opinions.c.author == author)
        if example is not None:
            query = query.where(opinions.c.example == example)
        if words is not None:
            query = query.where(
                opinions.c.example.is_(None), opinions.c.word.in_([visible_form(word) for word in words])
            )
        if subjects is not None:
            query = query.where(opinions.c.subject.in_(subjects))
        if kinds:
            query = query.where(opinions.c.kind.in_(kinds))
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(opinions.c.number)).scalars().all()
        return [from_json(Feedback, row) for row in rows]

    def votes_on(
        self, words: Sequence[str], label: str, author: str, *, sees_others: bool
    ) -> dict[str, tuple[Vote | None, int, int]]:
        """For each word: the author's vote everywhere, and how many votes on single examples raise and lower it.

        Other people's votes count only for who `sees_others`: numbers that change when a colleague votes tell how.
        """
        forms = {visible_form(word): word for word in words}
        query = sa.select(opinions.c.word, opinions.c.author, opinions.c.example, opinions.c.value).where(
            opinions.c.kind == "word_vote", opinions.c.label == label, opinions.c.word.in_(list(forms))
        )
        if not sees_others:
            query = query.where(opinions.c.author == author)
        found: dict[str, tuple[Vote | None, int, int]] = dict.fromkeys(words, (None, 0, 0))
        with self._store.read() as connection:
            for row in connection.execute(query):
                mine, up, down = found[forms[row.word]]
                if row.example is not None:
                    up, down = up + (row.value == "raise"), down + (row.value == "lower")
                elif row.author == author:
                    mine = row.value
                found[forms[row.word]] = (mine, up, down)
        return found

    def state(self, author: str, example: str) -> State:
        """How far somebody is with an example."""
        mine = self.opinions(author=author, example=example, kinds=("review", "word_vote"))
        review = next((one.says.state for one in mine if isinstance(one.says, Review)), None)
        return state_of(review, sum(isinstance(one.says, WordVote) for one in mine))

    def history(self, *, author: str | None, cursor: str | None = None) -> History:
        """Entries of the log, newest first."""
        query = sa.select(feedback.c.number, feedback.c.entry).order_by(feedback.c.number.desc()).limit(_HISTORY + 1)
        if author is not None:
            query = query.where(feedback.c.author == author)
        if cursor is not None:
            if not cursor.isdecimal() or len(cursor) > 18:
                raise BadOption("This place in the list cannot be read. Begin at the top.")
            query = query.where(feedback.c.number < int(cursor))
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        onward = str(rows[_HISTORY - 1].number) if len(rows) > _HISTORY else None
        return History(tuple(from_json(Feedback, row.entry) for row in rows[:_HISTORY]), onward)

    def state_of(self, kind: str) -> tuple[int, int]:
        """Changes with what anybody thinks of a kind: what was worked out from it holds as long as this stays."""
        query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(opinions.c.number), 0))
        with self._store.read() as connection:
            count, numbers = connection.execute(query.where(opinions.c.kind == kind)).one()
        return int(count), int(numbers)

    def entries(self, *, kind: str | None = None, subjects: Sequence[str] | None = None) -> Iterable[Feedback]:
        """The whole log in its order, or what of it is of a kind, or about some questions."""
        query = sa.select(feedback.c.entry).order_by(feedback.c.number)
        if kind is not None:
            query = query.where(feedback.c.kind == kind)
        if subjects is not None:
            query = query.where(feedback.c.subject.in_(subjects))
        with self._store.read() as connection:
            for row in connection.execution_options(yield_per=1000).execute(query).scalars():
                yield from_json(Feedback, row)

    def progress(self, author: str) -> Progress:
        """How far the judging is."""
        done = sa.and_(opinions.c.kind == "review", opinions.c.value == "done")
        mine = opinions.c.author == author
        with self._store.read() as connection:
            row = connection.execute(
                sa.select(
                    sa.func.count().filter(sa.and_(done, mine)).label("mine"),
                    sa.func.count(sa.distinct(sa.case((done, opinions.c.example)))).label("anyone"),
                    sa.func.count(sa.distinct(sa.case((opinions.c.value == "flagged", opinions.c.example)))).label(
                        "flagged"
                    ),
                    sa.func.count().filter(sa.and_(opinions.c.value == "skipped", mine)).label("skipped"),
                ).where(opinions.c.kind == "review")
            ).one()
        return Progress(self._examples.count(), row.mine, row.anyone, row.flagged, row.skipped)

    def last_example(self, author: str) -> int | None:
        """Place of the example that somebody answered about last."""
        query = (
            sa.select(examples.c.place)
            .join(feedback, feedback.c.example == examples.c.id)
            .where(feedback.c.author == author)
            .order_by(feedback.c.number.desc())
            .limit(1)
        )
        with self._store.read() as connection:
            place: int | None = connection.execute(query).scalar()
        return place

    # -- what next

    def next_place(
        self, author: str, wanted: Filter, *, revision: str, overlap: int, after: int | None = None
    ) -> NextPlace:
        """Reserve, for a quarter of an hour, the next example that still needs this person.

        It needs them if they have not finished, skipped or flagged it, and fewer than `overlap` people have finished it
        or hold it now. Whoever asks gives back what they held before, so somebody who leaves holds one at most.
        """
        held = 0
        for start in (after, None) if after is not None else (None,):
            cursor = None if start is None else cursor_behind(start)
            while True:
                page = self._examples.page(
                    wanted, revision=revision, author=author, cursor=cursor, limit=_LOOKED_AT, counts=False
                )
                open_ = [row for row in page.items if row.state in ("pending", "draft")]
                place, busy = self._reserve(author, [(row.place, row.id) for row in open_], overlap)
                held += busy
                if place is not None:
                    until = datetime.fromtimestamp(self._clock() + RESERVED_SECONDS, UTC)
                    return NextPlace(place, until.isoformat(timespec="seconds"), "")
                cursor = page.next
                if cursor is None:
                    break
        if held:
            who = "1 example is" if held == 1 else f"{held:,} examples are"
            back = f"within {RESERVED_SECONDS // 60} minutes"
            return NextPlace(None, None, f"{who} open with colleagues. What they leave returns to the queue {back}.")
        judged = self.progress(author).mine
        told = f"Nothing under this filter needs you any more; you have judged {judged:,}."
        return NextPlace(None, None, f"{told} Widen the filter, or look at what is flagged.")

    def _reserve(self, author: str, candidates: Sequence[tuple[int, str]], overlap: int) -> tuple[int | None, int]:
        """The first candidate that is free, now held by the author, and how many were only held by others."""
        now = self._clock()

        def act(connection: Connection) -> tuple[int | None, int]:
            self._store.lock(connection, "reservations")
            r = reservations.c
            connection.execute(reservations.delete().where(sa.or_(r.until <= now, r.author == author)))
            ids, places = [id_ for _, id_ in candidates], [place for place, _ in candidates]
            finished = (
                sa.select(opinions.c.example, sa.func.count())
                .where(opinions.c.kind == "review", opinions.c.value == "done", opinions.c.example.in_(ids))
                .group_by(opinions.c.example)
            )
            held = sa.select(r.place, sa.func.count()).where(r.place.in_(places)).group_by(r.place)
            done: dict[str, int] = {row[0]: row[1] for row in connection.execute(finished)}
            holding: dict[int, int] = {row[0]: row[1] for row in connection.execute(held)}
            busy = 0
            for place, id_ in candidates:
                if done.get(id_, 0) + holding.get(place, 0) < overlap:
                    connection.execute(
                        reservations.insert().values(place=place, author=author, until=now + RESERVED_SECONDS)
                    )
                    return place, busy
                busy += done.get(id_, 0) < overlap
            return None, busy

        return self._store.write(act)

    # -- inside transactions

    def _known(self, connection: Connection, author: str, key: str) -> Feedback | None:
        query = sa.select(feedback.c.entry).where(feedback.c.author == author, feedback.c.key == key)
        found = connection.execute(query).scalar()
        return None if found is None else from_json(Feedback, found)

    def _has_id(self, connection: Connection, id_: str) -> bool:
        return connection.execute(sa.select(feedback.c.id).where(feedback.c.id == id_)).scalar() is not None

    def _entry(self, connection: Connection, id_: str) -> Feedback:
        return from_json(
            Feedback, connection.execute(sa.select(feedback.c.entry).where(feedback.c.id == id_)).scalar_one()
        )

    def _standing(self, connection: Connection, author: str, subject: str) -> Feedback | None:
        query = (
            sa.select(feedback.c.entry)
            .join(opinions, opinions.c.feedback == feedback.c.id)
            .where(opinions.c.author == author, opinions.c.subject == subject)
        )
        found = connection.execute(query).scalar()
        return None if found is None else from_json(Feedback, found)


def new_id() -> str:
    """A name for an entry that nobody else will think of."""
    return secrets.token_hex(12)


def check_answer(
    answer: Answer, example: Example | None, labels: Sequence[str], *, flip: bool = False, neighbours: bool = False
) -> None:
    """Refuse an answer about something that is not there.

    `example`, `flip` and `neighbours` tell what it names, if that exists.
    """
    if _example_of(answer) is not None and example is None:
        raise NotFound("There is no such example.")
    named = answer.label if isinstance(answer, WordVote | Relabel | FlipRating) else None
    if named is not None and named not in labels:
        raise BadOption("The model has no such label.")
    if isinstance(answer, WordVote):
        _check_vote(answer, example)
    elif isinstance(answer, FlipRating):
        if not flip:
            raise NotFound("There is no such rewritten text.")
    elif isinstance(answer, NeighbourRating):
        if not neighbours:
            raise NotFound("This training example was not found behind that one. Reload, or have it traced first.")
    elif not isinstance(answer, Relabel | Review | Ruling | Verdict):
        raise NotFound("There is nothing of that name to judge.")


def _check_vote(vote: WordVote, example: Example | None) -> None:
    if not visible_form(vote.word) or len(vote.word) > 500:
        raise BadOption("A vote names a word.")
    if example is None:
        if vote.position is not None:
            raise BadOption("A vote that counts everywhere has no position.")
        return
    words = Words(example).strings
    if vote.position is None or not 0 <= vote.position < len(words) or words[vote.position] != vote.word:
        raise BadOption("The example has no such word there. Reload it: its text may have changed.")


def _opinion(entry: Feedback, subject: str, number: int) -> dict[str, Any]:
    says = entry.says
    word = visible_form(says.word) if isinstance(says, WordVote) else None
    return {
        "author": entry.author,
        "subject": subject,
        "feedback": entry.id,
        "number": number,
        "kind": says.kind,
        "example": _example_of(says),
        "word": word,
        "label": says.label if isinstance(says, WordVote) else None,
        "value": value_of(says),
    }


def _example_of(answer: Answer) -> str | None:
    """The example that an answer is about, if it is about one."""
    return answer.example if isinstance(answer, WordVote | Relabel | Review) else None
