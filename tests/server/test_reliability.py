"""What holds when things go wrong: answers sent twice, at once, late; full disks; damaged, missing and locked files."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from databases import KINDS
from served import OURS, Site, dump, new_folder, new_key, pages, serve
from unhans.cli import main
from unhans.errors import ProjectProblem
from unhans.records.judging import RESERVED_SECONDS, FeedbackLog
from unhans.workspace import Workspace

P = f"/api/projects/{OURS}"


@pytest.fixture(scope="module", params=KINDS)
def any_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The application on each database."""
    folder, database = new_folder(tmp_path_factory.mktemp("any"), request.param)
    with serve(folder, database) as served:
        yield served


def entries(site: Site, author: str) -> list[Any]:
    return [one for one in site.workspace.records(OURS).log.entries() if one.author == author]


def progress(site: Site, who: str) -> dict[str, int]:
    found: dict[str, int] = site.ask(who, "GET", P).json()["progress"]
    return found


def review(site: Site, place: int, state: str = "done") -> dict[str, str]:
    return {"kind": "review", "example": site.workspace.records(OURS).table.at(place).id, "state": state}


# -- answers sent twice, at once, late


def test_an_answer_sent_twenty_times_at_once_under_one_key_is_stored_once(any_site: Site) -> None:
    before, counted = len(entries(any_site, "ann")), progress(any_site, "ann")["mine"]
    body = {"key": new_key(), "says": review(any_site, 0), "revision": any_site.revision, "expects": ""}
    told = any_site.together(*[("ann", "POST", f"{P}/feedback", {"json": body})] * 20)
    assert {answer.status_code for answer in told} == {200}
    assert len({answer.json()["feedback"]["id"] for answer in told}) == 1
    assert len(entries(any_site, "ann")) == before + 1
    assert progress(any_site, "ann")["mine"] == counted + 1


def test_one_key_of_two_people_is_two_answers(any_site: Site) -> None:
    body = {"key": new_key(), "says": review(any_site, 1), "revision": any_site.revision}
    told = any_site.together(*((who, "POST", f"{P}/feedback", {"json": body}) for who in ("ann", "art", "amy")))
    assert len({answer.json()["feedback"]["id"] for answer in told}) == 3


def test_an_undo_sent_twice_takes_back_one_answer(any_site: Site) -> None:
    for place in (2, 3):
        any_site.answer("art", review(any_site, place))
    before = progress(any_site, "art")["mine"]
    body = {"key": new_key()}
    told = any_site.together(*[("art", "POST", f"{P}/undo", {"json": body})] * 5)
    assert len({answer.json()["feedback"]["id"] for answer in told}) == 1
    assert progress(any_site, "art")["mine"] == before - 1


def test_answers_of_two_people_at_once_are_both_kept_and_counted(any_site: Site) -> None:
    places = range(4, 10)
    said = [{"says": review(any_site, n), "revision": any_site.revision} for n in places]
    asked = [
        (who, "POST", f"{P}/feedback", {"json": one | {"key": new_key()}}) for one in said for who in ("ann", "art")
    ]
    assert {answer.status_code for answer in any_site.together(*asked)} == {200}
    standing = any_site.workspace.records(OURS).log.opinions(kinds=("review",))
    for who in ("ann", "art"):
        mine = {one.says.example for one in standing if one.author == who and one.says.state == "done"}
        assert {review(any_site, n)["example"] for n in places} <= mine
        assert progress(any_site, who)["mine"] == len(mine)


def test_of_two_devices_the_one_that_knew_less_is_told_what_holds(any_site: Site) -> None:
    first = any_site.answer("amy", any_site.says("raise", place=10), expects="")
    held = first.json()["feedback"]["id"]
    asked = [
        {"key": new_key(), "says": any_site.says("lower", place=10), "revision": any_site.revision, "expects": held}
        for _ in range(2)
    ]
    told = any_site.together(*(("amy", "POST", f"{P}/feedback", {"json": body}) for body in asked))
    assert sorted(answer.status_code for answer in told) == [200, 409]
    lost = next(answer for answer in told if answer.status_code == 409)
    won = next(answer for answer in told if answer.status_code == 200)
    assert lost.json()["error"]["code"] == "conflict"
    assert lost.json()["error"]["request_id"] == lost.headers["x-request-id"]
    assert lost.json()["current"] == won.json()["feedback"]
    stale = any_site.answer("amy", any_site.says("raise", place=10), expects="")
    assert stale.status_code == 409
    assert stale.json()["current"]["id"] == won.json()["feedback"]["id"]


def test_what_somebody_opened_and_left_returns_to_the_queue(any_site: Site) -> None:
    records, now = any_site.workspace.records(OURS), [1_000_000.0]
    usual = records.log
    records.log = FeedbackLog(records.store, records.table, clock=lambda: now[0])
    any_site.ask("amy", "PATCH", P, json={"overlap": 1})
    wanted = {"filter": {"contains": "Köln"}}
    try:
        for who in ("root", "amy", "ann", "art"):  # nobody has finished it
            any_site.ask(who, "POST", f"{P}/undo", json={"key": new_key(), "example": review(any_site, 8)["example"]})
        first = any_site.ask("ann", "POST", f"{P}/next", json=wanted).json()
        assert first["place"] == 8
        other = any_site.ask("art", "POST", f"{P}/next", json=wanted).json()
        assert other["place"] is None
        assert "open with colleagues" in other["message"]
        now[0] += RESERVED_SECONDS - 1
        assert any_site.ask("art", "POST", f"{P}/next", json=wanted).json()["place"] is None
        now[0] += 1
        assert any_site.ask("art", "POST", f"{P}/next", json=wanted).json()["place"] == 8
        assert any_site.ask("ann", "POST", f"{P}/next", json=wanted).json()["place"] is None
    finally:
        records.log = usual


def test_people_who_ask_at_once_get_examples_of_their_own(any_site: Site) -> None:
    wanted = {"filter": {"state": "pending"}}
    people = ("ann", "art", "amy", "root")
    told = any_site.together(*((who, "POST", f"{P}/next", {"json": wanted}) for who in people))
    places = [answer.json()["place"] for answer in told if answer.json()["place"] is not None]
    assert len(places) == len(set(places)) >= 1


# -- a disk without room


def test_a_full_disk_stores_nothing_lets_people_read_and_recovers_by_itself(site: Site) -> None:
    store = site.workspace.records(OURS).store

    def limit(pages_: int | None) -> None:
        def act(connection: sa.Connection) -> None:
            used = connection.execute(sa.text("PRAGMA page_count")).scalar_one()
            connection.execute(sa.text(f"PRAGMA max_page_count = {pages_ or used}"))

        store.write(act)

    before = entries(site, "ann")
    body = {"key": new_key(), "says": review(site, 0) | {"note": "x" * 5000}, "revision": site.revision}
    limit(None)
    full = site.ask("ann", "POST", f"{P}/feedback", json=body)
    assert (full.status_code, full.json()["error"]["code"]) == (507, "no_space")
    assert site.ask("ann", "GET", f"{P}/examples/0").status_code == 200
    assert progress(site, "ann")["mine"] == 0
    assert entries(site, "ann") == before
    assert store.check() is None
    limit(1_000_000)
    assert site.ask("ann", "POST", f"{P}/feedback", json=body).status_code == 200
    assert len(entries(site, "ann")) == len(before) + 1


# -- files that are damaged, missing or not ours


def newer(folder: Path) -> None:
    connection = sqlite3.connect(folder / "unhans.sqlite")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()


def no_tables(folder: Path) -> None:
    (folder / "unhans.sqlite").write_bytes(b"")


def cut(folder: Path) -> None:
    connection = sqlite3.connect(folder / "unhans.sqlite")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    os.truncate(folder / "unhans.sqlite", 5000)


DAMAGE = {
    "missing": (lambda folder: (folder / "unhans.sqlite").unlink(), "missing"),
    "not a database": (lambda folder: (folder / "unhans.sqlite").write_bytes(b"hello" * 1000), "damaged"),
    "newer": (newer, "newer version"),
    "empty": (no_tables, "is empty"),
    "cut off": (cut, "damaged"),
}


@pytest.mark.parametrize("which", DAMAGE)
@pytest.mark.parametrize("where", ["workspace", "project"])
def test_a_database_that_cannot_be_used_is_told_of_and_never_made_anew(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, which: str, where: str
) -> None:
    folder, _ = new_folder(tmp_path)
    damage, says = DAMAGE[which]
    served = folder if where == "workspace" else folder / OURS
    damage(served)
    for suffix in ("-wal", "-shm"):
        (served / f"unhans.sqlite{suffix}").unlink(missing_ok=True)
    file = served / "unhans.sqlite"
    before = file.read_bytes() if file.exists() else None
    with pages(tmp_path_factory.mktemp("static")):
        for command in (["serve", str(served), "--port", "0"], ["user", "list", "--folder", str(served)]):
            told = CliRunner().invoke(main, command)
            assert told.exit_code == 3, told.output
            assert says in told.output
            assert len(told.output.strip().splitlines()) == 1
            assert "Traceback" not in told.output
    assert (file.read_bytes() if file.exists() else None) == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 99, "name": "x"}', "\x00"])
def test_a_project_whose_description_is_damaged_is_told_of(tmp_path: Path, content: str) -> None:
    folder, _ = new_folder(tmp_path)
    (folder / OURS / "project.json").write_text(content)
    told = CliRunner().invoke(main, ["user", "list", "--folder", str(folder / OURS)])
    assert told.exit_code == 3
    assert (folder / OURS / "project.json").read_text() == content


def test_a_folder_of_other_things_does_not_become_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    told = CliRunner().invoke(main, ["user", "list", "--folder", str(tmp_path)])
    assert told.exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_project_called_like_a_folder_of_ours_is_not_tidied_away(tmp_path: Path) -> None:
    folder, _ = new_folder(tmp_path)
    shutil.move(folder / OURS, folder / "uploads")
    with Workspace.open(folder) as workspace:
        assert workspace.tidy(0.0) == []
        assert workspace.records("uploads").current.id


# -- one server, and copies


def test_a_second_server_for_a_folder_is_refused(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, _ = new_folder(tmp_path)
    with Workspace.open(folder) as first, first.alone():
        with Workspace.open(folder) as second, pytest.raises(ProjectProblem, match=str(os.getpid())), second.alone():
            pass
        with pages(tmp_path_factory.mktemp("static")):
            told = CliRunner().invoke(main, ["serve", str(folder), "--port", "0"])
        assert told.exit_code == 3
        assert "Another server" in told.output
    with Workspace.open(folder) as third, third.alone():
        pass


def test_a_copy_made_while_people_work_is_whole_and_can_be_served(site: Site, tmp_path: Path) -> None:
    done, told = threading.Event(), list[str]()

    def work() -> None:
        while not done.is_set() and len(told) < 150:
            answer = site.answer("art", site.says("raise", place=len(told) % 12))
            told.append(answer.json()["feedback"]["id"])

    worker = threading.Thread(target=work)
    worker.start()
    counts = []
    try:
        for n in range(3):
            while len(told) < (n + 1) * 5:
                assert worker.is_alive()
            known = set(told)  # acknowledged before the copy began
            with Workspace.open(site.workspace.backup(tmp_path / f"copy-{n}")) as copy:
                assert copy.store.check() is None
                records = copy.records(OURS)
                assert records.store.check() is None
                stored = {one.id for one in records.log.entries()}
                assert known <= stored
                counts.append(len(stored))
    finally:
        done.set()
        worker.join()
    assert counts == sorted(counts)
    target = site.workspace.backup(tmp_path / "last")
    assert json.loads((target / "manifest.json").read_text())["facts"]["projects"] == site.workspace.names()
    with serve(target) as copy_site:
        for path in (f"{P}/examples", f"{P}/feedback", f"{P}/words?label=positive"):
            assert copy_site.ask("art", "GET", path).json() == site.ask("art", "GET", path).json()
        ours, theirs = (one.workspace.records(OURS).store for one in (site, copy_site))
        assert dump(ours) == dump(theirs)
