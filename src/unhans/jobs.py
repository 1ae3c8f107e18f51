"""The queue of work: a table of jobs, each claimed by one process at a time under a lease.

A job is queued, then running, then done, failed or cancelled. Whoever claims one gives a secret, and only who knows it
may write about the job: a process that was taken for dead, and its job given to another, cannot spoil it. Work that
stopped by itself is queued again, three times at most. Order is by number, never by time.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import BadOption, Conflict, NotFound, UnhansError
from unhans.store import Store
from unhans.store.schema import jobs as table
from unhans.store.schema import settings

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
TRIES = 3
_ETA_SECONDS, _ETA_SHARE = 2.0, 0.03  # before that much has passed, an estimate would be a guess
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_LONGEST = 2_000  # characters of a message
_CHANGES = "jobs.changes"
_ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work, as people see it."""

    id: str
    kind: str
    project: str | None
    by: str
    state: JobState
    options: dict[str, Any]
    tries: int
    done: int | None  # of `total`, in whatever the step counts; None: not known yet
    total: int | None
    eta_seconds: float | None  # about; None where it cannot be told honestly yet
    step: str  # what it is doing, in plain words
    message: str  # what became of it: why it failed, and what to do
    result: Any | None
    created: str
    started: str | None
    finished: str | None


class Handle(Protocol):
    """What a function that does the work of a job is given."""

    @property
    def job(self) -> Job:
        """What is to be done, as it was when the work began."""

    @property
    def root(self) -> Path:
        """The workspace."""

    @property
    def database(self) -> str | None:
        """Address of the PostgreSQL server, if the workspace uses one."""

    def progress(self, done: int, total: int) -> None:
        """Say how far it is. Cheap: call it as often as you like, and at least every ten minutes."""

    def step(self, text: str) -> None:
        """Say what it is doing, in plain words."""

    def cancelled(self) -> bool:
        """Whether to stop: keep what is finished, and raise `Cancelled` within five seconds."""


class LeaseLost(UnhansError):
    """The job is no longer this process's: it was taken for dead, or the job has ended."""


class Jobs:
    """The queue in a store. Several processes may use it at once; `clock` gives seconds since the epoch."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    # -- what people do

    def add(self, kind: str, *, project: str | None, by: str, options: dict[str, Any]) -> Job:
        """Queue a piece of work."""
        id = secrets.token_hex(8)
        values = {
            "id": id,
            "kind": kind,
            "project": project,
            "by": by,
            "options": _json(options),
            "state": "queued",
            "tries": 0,
            "step": "",
            "message": "",
            "cancel": False,
            "created": self._now(),
        }

        def act(connection: Connection) -> Job:
            if _find(connection, id) is None:  # an act may run twice
                connection.execute(sa.insert(table).values(values))
                _bump(connection)
            return self._job(_must_find(connection, id))

        return self._store.write(act)

    def get(self, id: str) -> Job:
        """The job with this id; `NotFound` if there is none."""
        with self._store.read() as connection:
            return self._job(_must_find(connection, id))

    def list(
        self,
        *,
        projects: Collection[str] | None,
        by: str | None = None,
        states: Collection[JobState] | None = None,
        limit: int = 100,
    ) -> tuple[Job, ...]:
        """Jobs of these projects (None: all there are), the newest first.

        With `by`, also those of this person that belong to no project, such as the making of one.
        """
        query = sa.select(table).order_by(table.c.number.desc()).limit(limit)
        if projects is not None:
            own = sa.and_(table.c.project.is_(None), table.c.by == by) if by is not None else sa.false()
            query = query.where(sa.or_(table.c.project.in_(list(projects)), own))
        if states is not None:
            query = query.where(table.c.state.in_(list(states)))
        with self._store.read() as connection:
            return tuple(self._job(row) for row in connection.execute(query))

    def cancel(self, id: str) -> Job:
        """Ask for an end: at once if it waits, soon if it runs, and nothing happens if it is over."""

        def act(connection: Connection) -> Job:
            row = _must_find(connection, id, lock=True)
            if row.state == "queued":
                _change(connection, row, **self._end("cancelled", "Cancelled before it began."))
            elif row.state == "running" and not row.cancel:
                _change(connection, row, cancel=True)
            return self._job(_must_find(connection, id))

        return self._store.write(act)

    def retry(self, id: str) -> Job:
        """Queue a job again that failed or was cancelled, in its old place, with all tries before it."""
        fresh = {
            "state": "queued", "tries": 0, "cancel": False, "done": None, "total": None, "step": "", "message": "",
            "result": None, "started": None, "finished": None, "holder": None, "running_since": None,
        }  # fmt: skip

        def act(connection: Connection) -> Job:
            row = _must_find(connection, id, lock=True)
            if row.state not in ("failed", "cancelled"):
                raise Conflict(f"This job is {row.state}. Only one that failed or was cancelled can be tried again.")
            _change(connection, row, **fresh)
            return self._job(_must_find(connection, id))

        return self._store.write(act)

    def changes(self) -> int:
        """A number that is another one whenever anything about a job has changed that people can see."""
        with self._store.read() as connection:
            found = connection.execute(sa.select(settings.c.value).where(settings.c.name == _CHANGES)).scalar()
            return int(found or 0)

    # -- what processes do that work

    def claim(self, holder: str, pid: int, born: float, lease_seconds: float) -> Job | None:
        """Take the oldest job that waits, if any; `holder` is a secret made for this claim alone."""
        waiting = table.c.state == "queued"
        oldest = sa.select(table.c.number).where(waiting).order_by(table.c.number).limit(1)
        with self._store.read() as connection:
            if connection.execute(oldest).first() is None:
                return None  # without having kept any writer waiting

        def act(connection: Connection) -> Job | None:
            ours = sa.select(table).where(table.c.holder == holder, table.c.state == "running")
            row = connection.execute(ours).first()  # an act may run twice, and must not take two
            if row is None:
                now = self._clock()
                row = connection.execute(
                    sa.update(table)
                    .where(table.c.number == oldest.with_for_update(skip_locked=True).scalar_subquery(), waiting)
                    .values(
                        state="running", holder=holder, pid=pid, born=born, lease=now + lease_seconds,
                        tries=table.c.tries + 1, started=self._now(), running_since=now, done=None, total=None, step="",
                    )
                    .returning(table)
                ).first()  # fmt: skip
                if row is not None:
                    _bump(connection)
            return None if row is None else self._job(row)

        return self._store.write(act)

    def beat(
        self,
        id: str,
        holder: str,
        done: int | None,
        total: int | None,
        step: str,
        *,
        lease_seconds: float = 60.0,
        since: float | None = None,
    ) -> bool:
        """Say that the work goes on and how far it is; whether it was asked to stop comes back.

        `since`: when it would have begun if all of `done` had gone as fast as it goes now (see `pace`). Work that
        goes on where a former try stopped would look too fast otherwise. None: when it was claimed.
        """

        def act(connection: Connection) -> bool:
            row = _held(connection, id, holder)
            shown = {"done": done, "total": total, "step": plain(step)}
            seen = any(getattr(row, name) != value for name, value in shown.items())
            times = {"lease": self._clock() + lease_seconds, "running_since": since or row.running_since}
            connection.execute(sa.update(table).where(table.c.number == row.number).values(**shown, **times))
            if seen:
                _bump(connection)
            return bool(row.cancel)

        return self._store.write(act)

    def finish(self, id: str, holder: str, state: JobState, message: str, result: Any = None) -> Job:
        """Say what became of it. It ends once: whoever comes later, or no longer holds it, gets `LeaseLost`."""
        if state not in _ENDED:
            raise BadOption(f"A job does not end as {state!r}.")
        written = None if result is None else _json(result)

        def act(connection: Connection) -> Job:
            row = _must_find(connection, id, lock=True)
            if not (row.holder == holder and row.state == state):  # an act may run twice
                row = _held(connection, id, holder)
                _change(connection, row, result=written, **self._end(state, message))
            return self._job(_must_find(connection, id))

        return self._store.write(act)

    def put_back(
        self, id: str, holder: str, message: str, *, options: dict[str, Any] | None = None, counts: bool = True
    ) -> Job:
        """Queue a job again that was begun, perhaps with other options; without `counts`, the try was none.

        One that was to be cancelled is cancelled, and one that had its three tries fails with the message.
        """

        def act(connection: Connection) -> Job:
            row = _held(connection, id, holder)
            if options is not None:
                connection.execute(sa.update(table).where(table.c.number == row.number).values(options=_json(options)))
            self._again(connection, row, message, tries=row.tries if counts else row.tries - 1)
            return self._job(_must_find(connection, id))

        return self._store.write(act)

    def held(self, id: str, holder: str) -> tuple[Job, bool, float]:
        """The job that this process holds, whether it is to be cancelled, and its lease; `LeaseLost` if it is gone."""
        with self._store.read() as connection:
            row = _held(connection, id, holder, lock=False)
            return self._job(row), bool(row.cancel), row.lease

    def recover(self, alive: Callable[[int, float], bool]) -> tuple[Job, ...]:
        """Take running jobs from processes that are dead, or that said nothing for the whole of their lease."""

        def act(connection: Connection) -> tuple[Job, ...]:
            running = sa.select(table).where(table.c.state == "running").order_by(table.c.number)
            taken = []
            for row in connection.execute(running.with_for_update()).all():
                if row.lease >= self._clock() and alive(row.pid, row.born):
                    continue
                self._again(connection, row, stopped_unexpectedly(row.done, row.total), tries=row.tries)
                taken.append(self._job(_must_find(connection, row.id)))
            return tuple(taken)

        with self._store.read() as connection:
            if connection.execute(sa.select(table.c.number).where(table.c.state == "running").limit(1)).first() is None:
                return ()
        return self._store.write(act)

    def _again(self, connection: Connection, row: Any, message: str, *, tries: int) -> None:
        if row.cancel:
            _change(connection, row, **self._end("cancelled", CANCELLED))
        elif tries >= TRIES:
            _change(connection, row, **self._end("failed", f"{message} It was tried {TRIES} times."))
        else:
            _change(connection, row, state="queued", holder=None, tries=tries, message=plain(message), step="")

    def _end(self, state: JobState, message: str) -> dict[str, Any]:
        return {"state": state, "message": plain(message), "finished": self._now(), "step": ""}

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")

    def _job(self, row: Any) -> Job:
        return Job(
            id=row.id,
            kind=row.kind,
            project=row.project,
            by=row.by,
            state=row.state,
            options=json.loads(row.options),
            tries=row.tries,
            done=row.done,
            total=row.total,
            eta_seconds=self._eta(row),
            step=row.step,
            message=row.message,
            result=None if row.result is None else json.loads(row.result),
            created=row.created,
            started=row.started,
            finished=row.finished,
        )

    def _eta(self, row: Any) -> float | None:
        if row.state != "running" or not row.done or not row.total or row.running_since is None:
            return None
        passed = self._clock() - row.running_since
        if passed < _ETA_SECONDS or row.done < _ETA_SHARE * row.total:
            return None
        return float(passed * max(0, row.total - row.done) / row.done)


CANCELLED = "Cancelled. What was finished is kept."


def stopped_unexpectedly(done: int | None, total: int | None) -> str:
    """The sentence for work whose process died."""
    where = f" at {done:,} of {total:,}" if done is not None and total else ""
    return f"Stopped unexpectedly{where}. What was finished is kept. Try again to go on from there."


def pace(first_done: int, first_at: float, done: int, total: int, now: float) -> float:
    """When work would have begun that did `first_done` by `first_at` and `done` by now, if all had gone as fast.

    `now` as long as too little was seen for that: nothing is estimated then.
    """
    moved, passed = done - first_done, now - first_at
    if passed < _ETA_SECONDS or moved <= 0 or moved < _ETA_SHARE * total:
        return now
    return now - passed * done / moved


def plain(text: str) -> str:
    """A text that any database takes and any terminal shows: one line, no control characters, not too long."""
    return _CONTROL.sub(" ", text)[:_LONGEST]


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadOption(f"This cannot be kept as JSON ({type(error).__name__}).") from error


def _find(connection: Connection, id: str, *, lock: bool = False) -> Any:
    query = sa.select(table).where(table.c.id == id)
    return connection.execute(query.with_for_update() if lock else query).first()


def _must_find(connection: Connection, id: str, *, lock: bool = False) -> Any:
    row = _find(connection, id, lock=lock) if not _CONTROL.search(id) else None
    if row is None:
        raise NotFound("There is no such job.")
    return row


def _held(connection: Connection, id: str, holder: str, *, lock: bool = True) -> Any:
    row = _must_find(connection, id, lock=lock)
    if row.state != "running" or row.holder != holder:
        raise LeaseLost("This job was given to another process, or has ended.")
    return row


def _change(connection: Connection, row: Any, **values: Any) -> None:
    connection.execute(sa.update(table).where(table.c.number == row.number).values(**values))
    _bump(connection)


def _bump(connection: Connection) -> None:
    """Count a change. Always the last thing an act does to a row, so that two acts never wait for each other."""
    connection.execute(
        sa.text(
            "INSERT INTO settings (name, value) VALUES (:name, '1') ON CONFLICT (name) DO UPDATE "
            "SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)"
        ),
        {"name": _CHANGES},
    )
