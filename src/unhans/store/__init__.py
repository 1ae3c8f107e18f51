"""The database: SQLite in the folder, or a schema of a PostgreSQL server; what is written stays written.

`Store.write(act)` runs `act(connection)` in a transaction and returns when it is on disk. On SQLite one thread writes,
and acts that wait at the same time share a transaction, each in its own savepoint: an `fsync` then serves many of them,
and nobody waits unfairly. On PostgreSQL every act has its own transaction. An act may run more than once (a lost
connection), so it must do its work through the connection only.
"""

from __future__ import annotations

import os
import queue
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from unhans.errors import Busy, NoSpace, ProjectProblem
from unhans.store.copying import copy_sqlite
from unhans.store.migrating import migrate
from unhans.store.schema import metadata
from unhans.text import visible_form

T = TypeVar("T")
Item = TypeVar("Item")
FILE = "unhans.sqlite"
_AT_ONCE = 256  # acts that may share a transaction
_WAITING = 10_000  # acts that may wait; more are refused, so that memory stays bounded
_LOCK_SECONDS = 30.0  # how long another process may hold the file
_RECONNECT_SECONDS = 10.0
_SCHEMA = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Store:
    """One set of tables. Open it with `Store.open`; close it, or use it in a `with`."""

    def __init__(self, reader: Engine, writer: Engine, name: str, file: Path | None = None) -> None:
        self._reader, self._writer, self.name, self._file = reader, writer, name, file
        self._grouped: _GroupWriter | None = None
        self._starting = threading.Lock()

    @classmethod
    def open(cls, folder: Path, *, database: str | None = None, schema: str = "unhans", create: bool = False) -> Store:
        """The tables of a folder: its SQLite file, or a schema of the PostgreSQL server at `database`.

        Older tables are brought up to date (after a copy of the file was made); those of a newer unhans are refused.
        Only `create` makes new ones: a database that has gone missing is never replaced by an empty one.
        """
        store = _postgresql(database, schema) if database else _sqlite(folder / FILE, create)
        try:
            store._settle(folder / FILE if not database else None, create)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def is_sqlite(self) -> bool:
        """Whether the tables are in a file of the folder."""
        return self._writer.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one moment of the tables and cannot change them."""
        with _told(), self._reader.connect() as connection:
            yield connection

    def write(self, act: Callable[[Connection], T]) -> T:
        """Run an act in a transaction; what it returns comes back once it is safe on disk."""
        if self.is_sqlite:
            return self._group().submit(act).result()
        return _retried(self._writer, act)

    def lock(self, connection: Connection, name: str) -> None:
        """Inside an act: wait until no other transaction holds this name. SQLite has one writer and needs none."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))

    def backup(self, file: Path) -> None:
        """A copy of the tables as they are at one moment, while others go on writing. SQLite only."""
        if self._file is None:
            raise ProjectProblem(
                "A PostgreSQL database is backed up with pg_dump; `unhans backup` copies SQLite files."
            )
        copy_sqlite(self._file, file)

    def check(self) -> str | None:
        """None if the tables are whole, or what is wrong with them."""
        if not self.is_sqlite:
            return None
        with self.read() as connection:
            said = connection.execute(sa.text("PRAGMA integrity_check")).scalar_one()
        return None if said == "ok" else str(said)

    def drop(self) -> None:
        """Remove the tables for good: for a project whose making failed."""
        if not self.is_sqlite:
            name = self._writer.dialect.identifier_preparer.quote(self.name)
            with self._writer.begin() as connection:
                connection.execute(sa.text(f"DROP SCHEMA IF EXISTS {name} CASCADE"))

    def close(self) -> None:
        """Finish what waits, and let go of the database."""
        if self._grouped:
            self._grouped.close()
        self._reader.dispose()
        self._writer.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _group(self) -> _GroupWriter:
        with self._starting:
            if self._grouped is None:
                self._grouped = _GroupWriter(self._writer)
            return self._grouped

    def _settle(self, file: Path | None, create: bool) -> None:
        """Bring the tables to this version, under a lock: two processes may open them at once."""
        with _told(), self._writer.begin() as connection:
            if file is None:
                self.lock(connection, f"migrate {self.name}")
                quoted = connection.dialect.identifier_preparer.quote(self.name)
                if create:
                    connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {quoted}"))
                elif not sa.inspect(connection).has_schema(self.name):
                    raise ProjectProblem(f"The database has no schema {self.name!r}. Nothing was changed.")
            migrate(connection, file, create)


class _GroupWriter:
    """One thread that writes; whatever waits when it comes round goes into one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.Queue[tuple[Callable[[Connection], Any], Future[Any]] | None] = queue.Queue(_WAITING)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store writer", daemon=True)
        self._thread.start()

    def submit(self, act: Callable[[Connection], T]) -> Future[T]:
        future: Future[T] = Future()
        if self._closed:
            raise Busy("The database is being closed. Nothing was stored; try again when the server is back.")
        try:
            self._waiting.put_nowait((act, future))
        except queue.Full:
            raise Busy("Too many answers wait to be stored. Nothing was stored; try again in a moment.") from None
        return future

    def close(self) -> None:
        self._closed = True
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            batch = [self._waiting.get()]
            while len(batch) < _AT_ONCE:
                try:
                    batch.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            last = None in batch
            if acts := [item for item in batch if item is not None]:
                self._write(acts)

    def _write(self, acts: list[tuple[Callable[[Connection], Any], Future[Any]]]) -> None:
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with _told(), self._engine.begin() as connection:
                for act, future in acts:
                    answers.append((future, *_apart(connection, act)))
        except BaseException as error:  # noqa: BLE001 - nothing was stored: all of them must know
            for _, future in acts:
                future.set_exception(error)
            return
        for future, value, problem in answers:
            if problem is None:
                future.set_result(value)
            else:
                future.set_exception(problem)


def _apart(connection: Connection, act: Callable[[Connection], Any]) -> tuple[Any, BaseException | None]:
    """What an act returned or raised; if it raised, nothing of it is left and the transaction goes on."""
    connection.exec_driver_sql("SAVEPOINT act")
    try:
        with _told():
            value = act(connection)
    except BaseException as error:
        if isinstance(error, NoSpace):
            raise  # SQLite has ended the transaction, for all
        connection.exec_driver_sql("ROLLBACK TO act")
        return None, error  # it belongs to whoever waits for this act
    connection.exec_driver_sql("RELEASE act")
    return value, None


def _sqlite(file: Path, create: bool) -> Store:
    if create:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise ProjectProblem(f"The database {file.name} cannot be made ({error.strerror}).") from error
    elif file.is_file() and not file.stat().st_size:
        raise ProjectProblem(f"The database {file.name} is empty. Nothing was changed; bring it back from a backup.")
    elif not file.is_file():
        raise ProjectProblem(
            f"The database {file.name} is missing from {file.parent}. Nothing was changed; bring it back from a backup."
        )
    # "rw": a file that was deleted meanwhile is missed, not made anew
    location = f"file:{quote(str(file.resolve()))}"
    address = sa.URL.create("sqlite", database=location, query={"mode": "rw", "uri": "true"})
    reader = sa.create_engine(address, pool_size=8, max_overflow=32)
    writer = sa.create_engine(address, pool_size=1, max_overflow=8)
    for engine, begin in ((reader, "BEGIN"), (writer, "BEGIN IMMEDIATE")):
        sa.event.listen(engine, "connect", _set_up_reader if engine is reader else _set_up_writer)
        # Python's driver would begin for itself, deferred and only before some statements: transactions that read first
        # and write later then fail at once when another writes
        sa.event.listen(engine, "begin", lambda connection, begin=begin: connection.exec_driver_sql(begin))
    return Store(reader, writer, file.name, file)


def _set_up_reader(connection: Any, record: Any) -> None:
    _set_up_writer(connection, record)
    connection.execute("PRAGMA query_only=ON")


def _set_up_writer(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    connection.create_function("unhans_contains", 2, _contains, deterministic=True)
    connection.create_function("unhans_may_have", 2, _may_have, deterministic=True)
    for pragma in (
        f"busy_timeout={int(_LOCK_SECONDS * 1000)}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "journal_size_limit=67108864",
        "cache_size=-16000",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _contains(text: str | None, needle: str) -> bool:
    """SQLite's own LIKE folds only ASCII letters."""
    return text is not None and needle in text.casefold()


def _may_have(text: str | None, form: str) -> bool:
    """Whether a word of this visible form can be in a text: quick for plain texts, right for all."""
    return text is not None and form in (text.casefold() if text.isascii() else visible_form(text))


def _postgresql(url: str, schema: str) -> Store:
    if not _SCHEMA.fullmatch(schema):
        raise ProjectProblem(f"{schema!r} cannot be the name of a database schema.")
    try:
        made = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise ProjectProblem("The database address cannot be read: postgresql+psycopg://user@host/name.") from None
    if made.get_backend_name() != "postgresql":
        raise ProjectProblem("Only PostgreSQL can be given as a database; SQLite needs no address.")
    engine = sa.create_engine(
        made.set(drivername="postgresql+psycopg"),
        pool_size=10,
        max_overflow=20,
        pool_pre_ping=True,
        connect_args={"options": f"-csearch_path={schema}", "connect_timeout": 10},
    )
    reader = engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    return Store(reader, engine, schema)


def _retried(engine: Engine, act: Callable[[Connection], T]) -> T:
    """Run an act in its own transaction, again if the server went away meanwhile."""
    deadline, pause = time.monotonic() + _RECONNECT_SECONDS, 0.05
    while True:
        try:
            with _told(), engine.begin() as connection:
                return act(connection)
        except _Lost:
            if time.monotonic() > deadline:
                raise
            time.sleep(pause)
            pause = min(1.0, pause * 2)


class _Lost(Busy):
    """The connection broke, or two transactions met: trying again may help."""


@contextmanager
def _told() -> Iterator[None]:
    """The driver's errors in the user's words."""
    try:
        yield
    except DBAPIError as error:
        said = str(error.orig).lower()
        if isinstance(error.orig, sqlite3.Error):
            if "full" in said or "disk i/o" in said:
                raise NoSpace(
                    "The server has no disk space. Nothing was stored; it goes on when there is room."
                ) from error
            if "locked" in said or "busy" in said:
                raise Busy("The database is busy. Nothing was stored; try again in a moment.") from error
            if "readonly" in said:
                raise ProjectProblem("The database cannot be written: it is read-only. Nothing was changed.") from error
            if "not a database" in said or "malformed" in said:
                raise ProjectProblem(
                    "The database file is damaged. Nothing was changed; bring it back from a backup."
                ) from error
            if "unable to open" in said:
                raise ProjectProblem("The database file cannot be opened. Nothing was changed.") from error
            raise
        state = getattr(error.orig, "sqlstate", None) or ""
        if state == "53100":  # disk full
            raise NoSpace(
                "The database has no disk space. Nothing was stored; it goes on when there is room."
            ) from error
        if (
            error.connection_invalidated
            or state in ("40001", "40P01", "57P01", "57P02", "57P03")
            or (isinstance(error, OperationalError) and not state)
        ):
            raise _Lost("The database cannot be reached. Try again in a moment: an answer is stored once.") from error
        raise


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most `size`."""
    source = iter(items)
    while some := list(islice(source, size)):
        yield some


__all__ = ["FILE", "Store", "batches", "copy_sqlite", "metadata"]
