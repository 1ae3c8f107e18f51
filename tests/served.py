"""A served workspace for tests: two projects of tiny models, people of every role, the real application around them.

The projects are made once for a run and copied for each test (on SQLite; on PostgreSQL they are made for each).
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import itertools
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import BlockingPortal, start_blocking_portal

import databases
import tiny
from unhans.accounts import Accounts, LocalToken
from unhans.data import Corpus
from unhans.data.corpus import CorpusBuilder, Reading
from unhans.project import Project
from unhans.server import bare_app
from unhans.server.security import RateLimit, Settings, protect
from unhans.store import Store
from unhans.store.schema import metadata
from unhans.text import Words
from unhans.types import Example
from unhans.workspace import Workspace

ADDRESS = "http://localhost:8000"
CHEAP = (2**4, 8, 1)  # of hashing passwords
PASSWORD = "correct horse battery"
ROLES = {  # in the order of what they may do
    "anonymous": None,
    "annotator elsewhere": "bob",
    "annotator": "ann",
    "manager elsewhere": "ben",
    "manager": "amy",
    "admin": "root",
}
OURS, OTHER = "films", "phones"
_keys = (f"key-{n:08d}" for n in itertools.count())


def new_key() -> str:
    """A key that no other answer has."""
    return next(_keys)


# -- what is served


def _make(folder: Path, name: str, seed: int, database: str | None) -> None:
    labels = ("negative", "positive")
    examples = [
        Example(f"{name}-{n}", text, label=labels[n % 2], split=("train", "test")[n % 2])
        for n, text in enumerate(tiny.SENTENCES)
    ]
    with Project.create(
        folder / name, model=tiny.transformer(seed=seed), data=_corpus(examples), name=name.title(), database=database
    ) as project:
        list(project.predict())
        project.rank("positive")


def _corpus(examples: Sequence[Example]) -> Corpus:
    builder = CorpusBuilder()
    for example in examples:
        builder.add(example)
    return builder.corpus(Reading(len(examples)))


def _people(store: Store) -> None:
    accounts = Accounts(store, cost=CHEAP)
    accounts.add("root", "admin", PASSWORD)
    accounts.add("amy", "manager", PASSWORD, [OURS])
    accounts.add("ann", "annotator", PASSWORD, [OURS])
    accounts.add("art", "annotator", PASSWORD, [OURS])
    accounts.add("ben", "manager", PASSWORD, [OTHER])
    accounts.add("bob", "annotator", PASSWORD, [OTHER])


def fill(folder: Path, database: str | None = None) -> Path:
    """Make a workspace with both projects and everybody in a new folder."""
    with Workspace.open(folder, database=database) as workspace:
        _make(folder, OURS, 0, database)
        _make(folder, OTHER, 1, database)
        _people(workspace.store)
    return folder


@functools.cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="unhans-served-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return fill(folder / "workspace")


def new_folder(parent: Path, kind: str = "sqlite") -> tuple[Path, str | None]:
    """A workspace that nobody else uses, and the address of its database."""
    folder = parent / "workspace"
    if kind == "sqlite":
        shutil.copytree(_template(), folder)
        return folder, None
    database = databases.new_database()
    return fill(folder, database), database


def dump(*stores: Store) -> list[Any]:
    """Every row of every table."""
    found = []
    for store in stores:
        with store.read() as connection:
            for table in metadata.sorted_tables:
                rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns))
                found += [(table.name, *row) for row in rows]
    return found


# -- who asks


class Site:
    """The application behind its guards, running in an event loop of its own; call it from any thread."""

    def __init__(self, workspace: Workspace, portal: BlockingPortal, accounts: Accounts, token: LocalToken) -> None:
        self.workspace, self.accounts, self.token = workspace, accounts, token
        self.settings = Settings()
        self.inner = bare_app(workspace, accounts, token, self.settings)
        self.app = protect(self.inner, self.settings)
        self._portal = portal
        self._sessions: dict[str, str] = {}
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False, client=("192.0.2.1", 1234))
        self._client = httpx.AsyncClient(transport=transport, base_url=ADDRESS, timeout=30)

    def forget_sessions(self) -> None:
        """Everybody signs in anew at their next request."""
        self._sessions.clear()

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """For a while, nobody is told that they are too fast."""
        room = self.inner.state.room
        self.inner.state.room = replace(room, limit=RateLimit(rate=1e9, burst=10**9))
        yield
        self.inner.state.room = room

    def run(self, act: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        """Await something in the application's loop."""
        return self._portal.call(act, *given)

    def cookie(self, who: str | None) -> dict[str, str]:
        """The header by which the application knows somebody."""
        if who is None:
            return {}
        if who not in self._sessions:
            self._sessions[who] = self.accounts.open_session(who)
        return {"cookie": f"{self.settings.cookie}={self._sessions[who]}"}

    def ask(self, who: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        """One request by somebody; None: by a stranger."""
        return self.run(functools.partial(self.send, who, method, path, **more))

    async def send(self, who: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        """The same, for callers in the loop."""
        headers = self.cookie(who) | more.pop("headers", {})
        return await self._client.request(method, path, headers=headers, **more)

    def together(self, *asked: tuple[str | None, str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Several requests at the same time: who, method, path, and what else `ask` takes."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(*(self.send(who, method, path, **more) for who, method, path, more in asked))

        return self.run(all_of_them)

    def raw(
        self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b"", query: bytes = b""
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """A request as a server hands it over, byte for byte; a stream is left after its first piece."""

        async def act() -> tuple[int, list[tuple[bytes, bytes]], bytes]:
            sent: list[dict[str, Any]] = []
            left = asyncio.Event()
            coming = [{"type": "http.request", "body": body, "more_body": False}]

            async def receive() -> dict[str, Any]:
                if coming:
                    return coming.pop()
                await left.wait()
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                sent.append(message)
                if message["type"] == "http.response.body" and message.get("body"):
                    left.set()

            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": method,
                "scheme": "http",
                "path": path,
                "raw_path": path.encode(),
                "query_string": query,
                "root_path": "",
                "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
                "client": ("192.0.2.1", 1234),
                "server": ("127.0.0.1", 8000),
            }
            await self.app(scope, receive, send)
            pieces = b"".join(message.get("body", b"") for message in sent[1:])
            return sent[0]["status"], sent[0]["headers"], pieces

        return self.run(act)

    @property
    def stores(self) -> tuple[Store, ...]:
        """The workspace's tables and those of both projects."""
        return self.workspace.store, *(self.workspace.records(name).store for name in self.workspace.names())

    @property
    def revision(self) -> str:
        """Of the model of our project."""
        return self.workspace.records(OURS).current.id

    def says(self, vote: str, *, place: int = 0, word: int = 0, label: str = "positive") -> dict[str, Any]:
        """A vote on a word of an example of our project."""
        example = self.workspace.records(OURS).table.at(place)
        return {
            "kind": "word_vote",
            "word": Words(example).strings[word],
            "label": label,
            "vote": vote,
            "example": example.id,
            "position": word,
        }

    def answer(self, who: str, says: dict[str, Any], **more: Any) -> httpx.Response:
        """Send an answer in our project."""
        body = {"key": new_key(), "says": says, "revision": self.revision, **more}
        return self.ask(who, "POST", f"/api/projects/{OURS}/feedback", json=body)


@contextmanager
def serve(folder: Path, database: str | None = None, **account_options: Any) -> Iterator[Site]:
    """The workspace in a folder, served."""
    with Workspace.open(folder, database=database) as workspace, start_blocking_portal() as portal:
        accounts = Accounts(workspace.store, cost=CHEAP, **account_options)
        site = Site(workspace, portal, accounts, LocalToken(accounts))
        with portal.wrap_async_context_manager(site.inner.router.lifespan_context(site.inner)):
            yield site
            portal.call(site._client.aclose)


@contextmanager
def pages(folder: Path) -> Iterator[None]:
    """The browser's pages are built by another tool; for these tests they need only be there."""
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets").mkdir()
    (folder / "assets" / "app.js").write_text("1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unhans.server.STATIC", folder)
        yield
