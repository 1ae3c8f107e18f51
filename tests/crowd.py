"""Real servers that die, people who go on saving meanwhile, and what must be true afterwards.

People record every operation: what they sent, and whether it was acknowledged, refused, or unknown (no answer came).
What nobody answered is sent again under its own key, or given up; `check_nothing_lost` compares all that with the
database.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa

import tiny
from unhans.accounts import Accounts
from unhans.feedback import resolve, subject_of
from unhans.project import Project
from unhans.records import Records
from unhans.store.schema import feedback, opinions
from unhans.text import Words
from unhans.types import Example, Feedback, Review, from_json
from unhans.workspace import Workspace

PATHS = {"PYTHONPATH": os.pathsep.join(sys.path)}
PROJECT = "reviews"
Outcome = Literal["ok", "fail", "unknown"]


def make_workspace(root: Path, people: int, database: str | None = None) -> dict[str, str]:
    """A folder with one tiny project, and accounts for so many annotators and a manager: name → session."""
    data = root.parent / f"{root.name}.csv"
    lines = [f"{n},{sentence!r},{('negative', 'positive')[n % 2]}" for n, sentence in enumerate(tiny.SENTENCES)]
    data.write_text("id,text,label\n" + "\n".join(lines).replace("'", '"') + "\n", encoding="utf-8")
    model = tiny.save_folder(root.parent / f"{root.name}-model")
    with Workspace.open(root, database=database) as workspace:
        with Project.create(root / PROJECT, model=model, data=data, database=database) as project:
            for _ in project.predict():
                pass
        accounts = Accounts(workspace.store)
        names = [f"annotator{n}" for n in range(people)]
        for name in names:
            accounts.add(name, "annotator", None, [PROJECT])
        accounts.add("boss", "manager", None, [PROJECT])
        return {name: accounts.open_session(name) for name in [*names, "boss"]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """`unhans serve` in a process of its own, on one port however often it is started."""

    def __init__(self, root: Path, database: str | None = None) -> None:
        self.root, self.database, self.port = root, database, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.up = threading.Event()  # people who wait for it need not ask all the time

    def start(self) -> None:
        options = ["--port", str(self.port), "--no-worker", "--no-pages"]
        environ = os.environ | PATHS | ({"UNHANS_DATABASE": self.database} if self.database else {})
        with (self.root.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "unhans", "serve", str(self.root), *options],
                env=environ,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while not _listens(self.port):
            assert self.process.poll() is None, (self.root.parent / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)
        self.up.set()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """As the system does, or somebody with `kill -9`."""
        assert self.process is not None
        self.up.clear()
        self.process.kill()
        self.process.wait(30)

    def stop(self, seconds: float = 30.0) -> None:
        """Politely."""
        assert self.process is not None
        self.up.clear()
        self.process.terminate()
        self.process.wait(seconds)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class NoAnswer(Exception):
    """Nobody can know what became of the request."""


class Caller:
    """A client that costs little, for there are many of them on few cores: one connection, kept while it lasts."""

    def __init__(self, server: Server, session: str) -> None:
        self._port, self._line = server.port, http.client.HTTPConnection("127.0.0.1", server.port)
        self._headers = {"Cookie": f"unhans-{server.port}={session}", "Content-Type": "application/json"}

    def ask(self, path: str, body: dict[str, Any] | None = None, timeout: float = 1.0) -> tuple[int, bytes]:
        """Status and content of the answer; NoAnswer if none came."""
        sent = None if body is None else json.dumps(body).encode()
        try:
            self._line.timeout = timeout
            if self._line.sock is not None:
                self._line.sock.settimeout(timeout)
            self._line.request("GET" if sent is None else "POST", path, sent, self._headers)
            answer = self._line.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as problem:
            self._line.close()
            raise NoAnswer from problem

    def listen(self, path: str) -> http.client.HTTPResponse:
        """An answer that goes on, as far as its beginning."""
        self._line.timeout = 60
        self._line.request("GET", path, headers=self._headers)
        return self._line.getresponse()

    def tell(self, path: str) -> bytes:
        """What is at a path, asked for until it comes."""
        for _ in range(200):
            try:
                status, content = self.ask(path, timeout=10.0)
                if status == 200:
                    return content
            except NoAnswer:
                pass
            time.sleep(0.05)
        raise AssertionError(f"no answer from {path}")

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()


@dataclass
class Operation:
    """Something that somebody sent, and what they know about it."""

    path: str
    body: dict[str, Any]
    outcome: Outcome = "unknown"
    entries: list[str | None] = field(default_factory=list)  # ids of the entry, as each acknowledgement named it

    @property
    def key(self) -> str:
        return str(self.body["key"])


class Annotator(threading.Thread):
    """Somebody who saves as fast as the answers come, on a few examples, so that opinions change and are taken back."""

    def __init__(self, name: str, session: str, server: Server, seed: int, end: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._session, self._server, self._end = session, server, end
        self._random = random.Random(f"{seed} {name}")
        self.done: list[Operation] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with Caller(self._server, self._session) as caller:
                examples, revision = self._look(caller)
                while not self._end.is_set():
                    operation = self._think(examples, revision)
                    self.done.append(operation)
                    self._do(caller, operation)
        except BaseException as problem:  # noqa: BLE001 - told by the test's own thread
            self.problem = problem

    def _look(self, caller: Caller) -> tuple[list[Example], str]:
        facts = json.loads(caller.tell(f"/api/projects/{PROJECT}"))
        found = [json.loads(caller.tell(f"/api/projects/{PROJECT}/examples/{n}"))["example"] for n in (0, 1)]
        return [Example(one["id"], one["text"]) for one in found], facts["current"]

    def _think(self, examples: list[Example], revision: str) -> Operation:
        chance = self._random
        key, example = f"{self.name}-{len(self.done)}", chance.choice(examples)
        words = Words(example).strings
        position = chance.randrange(min(3, len(words)))
        vote = {
            "kind": "word_vote", "word": words[position], "label": "positive", "example": example.id,
            "vote": chance.choice(["raise", "lower"]), "position": position,
        }  # fmt: skip
        review = {"kind": "review", "example": example.id, "state": chance.choice(["done", "skipped", "flagged"])}
        known = [id_ for one in self.done[-20:] for id_ in one.entries if id_ is not None]
        kind = chance.random()
        if kind < 0.08:
            return Operation("undo", {"key": key})
        if kind < 0.16:
            return Operation("undo", {"key": key, "example": example.id})
        if kind < 0.24:  # some of them do not hold any more, which is refused
            asked = {"retracts": chance.choice([*known, "nothing"]), "clear": chance.random() < 0.5}
            return Operation("undo", {"key": key} | asked)
        body = {"key": key, "revision": revision, "says": vote if kind < 0.7 else review}
        if kind < 0.34:  # often something else holds, which is refused
            body["expects"] = chance.choice([*known, ""])
        elif kind > 0.95:  # always refused
            body["says"] = vote | {"word": "elsewhere"}
        return Operation("feedback", body)

    def _do(self, caller: Caller, operation: Operation) -> None:
        """Send it until an answer comes, or give up: then nobody knows."""
        timeout = 0.001 if self._random.random() < 0.05 else 1.0  # sometimes the reply is not waited for
        path = f"/api/projects/{PROJECT}/{operation.path}"
        tries, unanswered = self._random.choice([1, 100, 100]), False
        for _ in range(tries):
            try:
                status, content = caller.ask(path, operation.body, timeout)
            except NoAnswer:
                unanswered = True
                time.sleep(0.05)
                while not self._server.up.wait(0.2) and not self._end.is_set():
                    pass
            else:
                if status == 200:
                    entry = json.loads(content)["feedback"]
                    if entry is None and unanswered:
                        return  # the one without an answer may yet come to something
                    operation.entries.append(entry and entry["id"])
                    operation.outcome = "ok"
                    if self._random.random() > 0.05 or entry is None:  # now and then it is sent again all the same
                        return
                elif status >= 500 or status == 429:
                    time.sleep(0.1)
                else:
                    assert status in (404, 409, 422), content
                    operation.outcome = "unknown" if unanswered else "fail"
                    return
            timeout = max(1.0, min(16.0, timeout * 2))  # a busy machine is not helped by impatience
            if self._end.is_set():
                return


class Crowd:
    """All annotators at once, from `with` to its end."""

    def __init__(self, sessions: dict[str, str], server: Server, seed: int) -> None:
        self._end = threading.Event()
        self.people = [
            Annotator(name, session, server, seed, self._end) for name, session in sessions.items() if name != "boss"
        ]

    def __enter__(self) -> Crowd:
        for person in self.people:
            person.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for person in self.people:
            person.join(60)
        problems = [person.problem for person in self.people if person.problem]
        if problems:
            raise problems[0]

    def acknowledged(self) -> int:
        return sum(one.outcome == "ok" for person in self.people for one in person.done)


def check_nothing_lost(records: Records, people: list[Annotator]) -> Counter[str]:
    """Compare what people know with what is stored; what was counted comes back."""
    with records.store.read() as connection:
        rows = connection.execute(sa.select(feedback).order_by(feedback.c.number)).all()
        standing = {
            (row.author, row.subject): row.feedback
            for row in connection.execute(sa.select(opinions.c.author, opinions.c.subject, opinions.c.feedback))
        }
    assert records.store.check() is None
    assert len({row.number for row in rows}) == len({row.id for row in rows}) == len(rows)
    stored = {(row.author, row.key): row for row in rows if "/" not in row.key}
    further = [(row.author, row.key.partition("/")[0]) for row in rows if "/" in row.key]  # of undoing all at once
    assert len(stored) + len(further) == len(rows), "something is stored twice"
    assert set(further) <= set(stored), "something was undone in part"
    counted: Counter[str] = Counter()
    for person in people:
        last = 0
        for one in person.done:
            row = stored.pop((person.name, one.key), None)
            kind = one.outcome
            if kind == "ok":
                assert len(set(one.entries)) == 1, f"{one.key} was acknowledged as {one.entries}"
                (entry,) = set(one.entries)
                if entry is None:
                    assert row is None, f"{one.key} was to do nothing"
                    kind = "nothing to do"
                else:
                    assert row is not None, f"{one.key} was acknowledged and is lost"
                    assert row.id == entry
            elif kind == "fail":
                assert row is None, f"{one.key} was refused and is stored"
            else:
                kind = "unknown, stored" if row is not None else "unknown, not stored"
            if row is not None:
                assert row.number > last, f"{one.key} overtook one that was acknowledged before it was sent"
                last = row.number if kind == "ok" else last
            counted[kind] += 1
    assert not stored, "something is stored that nobody sent"
    log = [from_json(Feedback, row.entry) for row in rows]
    assert [(one.id, one.author, subject_of(one.says)) for one in log] == [(r.id, r.author, r.subject) for r in rows]
    assert standing == {question: entry.id for question, entry in resolve(log).items()}
    return counted


def check_screens(server: Server, sessions: dict[str, str], records: Records) -> None:
    """What the server tells is what is stored: the export is the log, counters are a recount."""
    log = list(records.log.entries())
    with Caller(server, sessions["boss"]) as caller:
        lines = caller.tell(f"/api/projects/{PROJECT}/feedback/export?format=jsonl").decode()
    assert [from_json(Feedback, line) for line in lines.splitlines() if line] == log
    holding = [one for one in resolve(log).values() if isinstance(one.says, Review)]
    for name, session in sessions.items():
        with Caller(server, session) as caller:
            told = json.loads(caller.tell(f"/api/projects/{PROJECT}"))["progress"]
        count = Counter((one.author, one.says.state) for one in holding)
        assert (told["mine"], told["skipped"]) == (count[name, "done"], count[name, "skipped"])
        assert told["anyone"] == len({one.says.example for one in holding if one.says.state == "done"})
        assert told["flagged"] == len({one.says.example for one in holding if one.says.state == "flagged"})


def die_at(statement: int) -> str:
    """Python that makes the process kill itself before its so-manieth SQL statement (from 1)."""
    return f"""
import os, signal
import sqlalchemy as sa
seen = 0
@sa.event.listens_for(sa.engine.Engine, "before_cursor_execute")
def count(*_):
    global seen
    seen += 1
    if seen == {statement}:
        os.kill(os.getpid(), signal.SIGKILL)
"""
