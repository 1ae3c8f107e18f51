"""Fixing over HTTP: who may, what is refused, and jobs done by a real worker, killed and stopped on the way."""

from __future__ import annotations

import io
import os
import shutil
import signal
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from served import OURS, Site, new_folder, serve
from small_project import QUICK, examples, make
from unhans.records import Records
from unhans.types import Measure, Report
from working import ended, until, worker

P = f"/api/projects/{OURS}"
WORSE = Measure("accuracy", "test", 0.9, 0.5, -0.5, -0.3, n=100)


@pytest.fixture
def records(site: Site) -> Records:
    return site.workspace.records(OURS)


def propose(records: Records, *measures: Measure) -> str:
    """Another version, compared with the one in use."""
    name = f"r{len(records.models.listed())}"
    facts = records.named(records.current_name)
    revision = asdict(facts) | {"id": f"id of {name}", "parent": facts.id}
    records.models.add(name, lambda folder: (folder / "x").write_text(name) and None, {"revision": revision})
    records.keep_report(records.current_name, name, Report(facts.id, f"id of {name}", measures))
    return name


def publish(site: Site, name: str, expects: str, who: str = "amy", **more: Any) -> Any:
    return site.ask(who, "POST", f"{P}/revisions/{name}/publish", json={"expects": expects, **more})


def test_publishing_needs_to_know_what_is_in_use_and_says_what_got_worse(site: Site, records: Records) -> None:
    name, before = propose(records, WORSE), records.current_name
    refused = publish(site, name, before)
    assert refused.status_code == 409
    assert "made something worse: accuracy on test" in refused.json()["error"]["message"]
    assert publish(site, name, "r99", even_so=True).status_code == 409
    assert records.current_name == before
    done = publish(site, name, before, even_so=True)
    assert (done.status_code, done.json()["current"], done.json()["back_to"]) == (200, name, before)
    assert site.ask("amy", "GET", P).json()["current"] == f"id of {name}"
    back = site.ask("amy", "POST", f"{P}/rollback", json={"expects": name})
    assert (back.status_code, back.json()["current"]) == (200, before)
    assert site.ask("amy", "POST", f"{P}/rollback", json={"expects": name}).status_code == 409


def test_of_two_managers_who_publish_at_once_one_is_told_that_the_other_was_faster(
    site: Site, records: Records
) -> None:
    before = records.current_name
    for _ in range(3):
        names = propose(records), propose(records)
        asked = [
            (who, "POST", f"{P}/revisions/{name}/publish", {"json": {"expects": before}})
            for who, name in zip(("amy", "root"), names, strict=True)
        ]
        answers = site.together(*asked)
        assert sorted(one.status_code for one in answers) == [200, 409]
        records.roll_back()


def test_annotators_see_reports_only_where_they_may_see_how_others_voted(site: Site, records: Records) -> None:
    name = propose(records)
    paths = ("revisions", f"reports/{records.current_name}/{name}", f"reports/{records.current_name}/{name}/page.html")
    assert [site.ask("ann", "GET", f"{P}/{path}").status_code for path in paths] == [403] * 3
    site.ask("amy", "PATCH", P, json={"blind": False})
    assert [site.ask("ann", "GET", f"{P}/{path}").status_code for path in paths] == [200] * 3
    assert site.ask("ann", "GET", f"{P}/fixes").status_code == 403
    site.ask("amy", "PATCH", P, json={"blind": True})


def test_a_report_is_a_page_to_keep_and_one_that_was_not_made_is_not_there(site: Site, records: Records) -> None:
    name, before = propose(records, WORSE), records.current_name
    told = site.ask("amy", "GET", f"{P}/reports/{before}/{name}").json()
    assert told["measures"][0]["name"] == "accuracy"
    page = site.ask("amy", "GET", f"{P}/reports/{before}/{name}/page.html")
    assert page.headers["content-disposition"] == f'attachment; filename="report-{before}-{name}.html"'
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "accuracy" in page.text.lower()
    missing = site.ask("amy", "GET", f"{P}/reports/{name}/{before}")
    assert (missing.status_code, "have not been compared yet" in missing.text) == (404, True)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("fixes", {"fix": "magic"}, "There is no fix"),
        ("fixes", {"fix": "relabel"}, "no usable feedback"),
        ("fixes", {"fix": "word_dropout", "options": {"depth": 1}}, "no option"),
        ("fixes", {"fix": "word_dropout", "options": {"rate": "much"}}, "rate must be"),
        ("fixes", {"fix": "word_dropout", "training": {"speed": 1}}, "training has no option"),
        ("fixes", {"fix": "word_dropout", "strengths": [1.0]}, "no strength"),
        ("fixes", {"fix": "word_dropout", "rivals": ["magic"]}, "There is no fix"),
        ("fixes", {"fix": "word_dropout", "expectations": ["nonsense"]}, "nonsense"),
        ("fixes", {"fix": "word_dropout", "people": ["nobody"]}, "no usable feedback"),
        ("fixes", {"fix": "word_dropout", "seeds": 1000}, ""),
        ("comparisons", {"before": "r0", "after": "r0"}, "two different"),
        ("comparisons", {"before": "r0", "after": "r99"}, "r99"),
        ("comparisons", {"before": "../..", "after": "r0"}, ".."),
        ("exports", {"revision": "r99"}, "r99"),
        ("exports", {"revision": "r0", "model": False, "feedback": False, "report": False}, "at least one"),
        ("exports", {"revision": "r0", "flips": True}, "no flips of r0"),
    ],
)
def test_work_that_cannot_be_done_is_refused_at_once(site: Site, path: str, body: dict[str, Any], said: str) -> None:
    site.answer("amy", site.says("lower"))
    before = len(site.workspace.jobs.list(projects=[OURS]))
    answer = site.ask("amy", "POST", f"{P}/{path}", json=body)
    assert 400 <= answer.status_code < 500
    assert said in answer.json()["error"]["message"]
    assert len(site.workspace.jobs.list(projects=[OURS])) == before


def test_the_same_work_asked_for_twice_waits_once(site: Site) -> None:
    site.answer("amy", site.says("lower"))
    asked = {"fix": "word_dropout", "rivals": ["embedding_erasure"]}
    first, second = (site.ask("amy", "POST", f"{P}/fixes", json=asked).json() for _ in range(2))
    assert first["id"] == second["id"]
    site.workspace.jobs.cancel(first["id"])


def test_a_curve_belongs_to_a_job_of_the_project(site: Site) -> None:
    own = site.workspace.jobs.add("fix", project=OURS, by="amy", options={})
    other = site.workspace.jobs.add("fix", project="phones", by="amy", options={})
    for job in (own, other):
        site.workspace.jobs.cancel(job.id)
    assert site.ask("amy", "GET", f"{P}/fixes/{own.id}/curve").json() == {"job": own.id, "points": [], "epochs": []}
    assert site.ask("amy", "GET", f"{P}/fixes/{other.id}/curve").status_code == 404
    assert site.ask("amy", "GET", f"{P}/fixes/none/curve").status_code == 404


@pytest.mark.parametrize("name", ["..", "../models/r0", "..%2Fmodels%2Fr0", ".hidden", "r0-9", "current", "a" * 200])
def test_only_exports_can_be_taken_away(site: Site, name: str) -> None:
    assert site.ask("amy", "GET", f"{P}/exports/{name}.zip").status_code in {404, 422}


def test_an_export_comes_as_a_zip_with_all_its_files(site: Site, records: Records) -> None:
    large = os.urandom(3 << 20)

    def write(folder: Path) -> None:
        (folder / "model").mkdir()
        (folder / "model" / "weights").write_bytes(large)
        (folder / "report.html").write_text("<p>")

    records.exports.add("r0-77", write, {"revision": records.current.id, "parts": ["model"], "checked": "Yes."})
    (listed,) = [one for one in site.ask("amy", "GET", f"{P}/exports").json() if one["name"] == "r0-77"]
    assert (listed["files"], listed["parts"], listed["checked"]) == (2, ["model"], "Yes.")
    answer = site.ask("amy", "GET", f"{P}/exports/r0-77.zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="r0-77.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["r0-77/manifest.json", "r0-77/model/weights", "r0-77/report.html"]
        assert archive.read("r0-77/model/weights") == large


# -- with a worker


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[tuple[Site, Path]]:
    folder, _ = new_folder(tmp_path)
    shutil.rmtree(folder / OURS)
    with make(folder / OURS) as project:  # with something to learn
        list(project.predict())
    with serve(folder) as site:
        yield site, folder


def votes(site: Site) -> None:
    """Against two words that training texts have."""
    for word in ("great", "soup"):
        site.answer("amy", {"kind": "word_vote", "word": word, "label": "positive", "vote": "lower"})


def test_a_fix_is_asked_for_watched_published_compared_and_taken_away(worked: tuple[Site, Path]) -> None:
    site, folder = worked
    votes(site)
    asked = {"fix": "explanation_regularisation", "training": QUICK, "rivals": ["word_dropout"]}
    with worker(folder):
        job = site.ask("amy", "POST", f"{P}/fixes", json=asked | {"expectations": ["broken <= 100"]}).json()["id"]
        done = ended(site, job)
        assert done.state == "done", done.message
        assert (done.result["before"], done.result["after"], done.result["holds"]) == ("r0", "r1", True)
        assert (done.done, done.total) == (10_000, 10_000)
        curve = site.ask("amy", "GET", f"{P}/fixes/{job}/curve").json()
        assert {point["run"] for point in curve["points"]} == {"explanation_regularisation", "word_dropout"}
        assert len(curve["epochs"]) == 2
        report = site.ask("amy", "GET", f"{P}/reports/r0/r1").json()
        assert {word["word"] for word in report["words"]} == {"great", "soup"}
        assert [rival["recipe"]["name"] for rival in report["rivals"]] == ["word_dropout"]
        assert publish(site, "r1", "r0", even_so=True).json()["current"] == "r1"
        facts = site.ask("amy", "GET", P).json()
        assert facts["predicted"] == len(examples())  # at once: they were predicted with the fix
        offer = site.ask("amy", "GET", f"{P}/fixes").json()
        assert offer["feedback"]["inherited"] == 2
        assert offer["expectations"] == ["broken <= 100"]
        again = site.ask("amy", "POST", f"{P}/comparisons", json={"before": "r1", "after": "r0"}).json()["id"]
        assert ended(site, again).state == "done"
        assert site.ask("amy", "GET", f"{P}/reports/r1/r0").status_code == 200
        taken = ended(site, site.ask("amy", "POST", f"{P}/exports", json={"revision": "r1"}).json()["id"])
        assert taken.result == {"export": "r1-1"}, taken.message
    (listed,) = site.ask("amy", "GET", f"{P}/exports").json()
    assert (listed["revision"], listed["parts"]) == ("r1", ["model", "feedback", "report"])
    with zipfile.ZipFile(io.BytesIO(site.ask("amy", "GET", f"{P}/exports/r1-1.zip").content)) as archive:
        assert "r1-1/model/model.safetensors" in archive.namelist()


def test_a_fix_that_is_killed_goes_on_and_one_that_is_stopped_says_so(worked: tuple[Site, Path]) -> None:
    site, folder = worked
    votes(site)
    long = QUICK | {"epochs": 100_000}
    with worker(folder) as process:
        job = site.ask("amy", "POST", f"{P}/fixes", json={"fix": "word_dropout", "training": long}).json()["id"]

        def steps() -> list[int]:
            assert not site.workspace.jobs.get(job).finished, site.workspace.jobs.get(job).message
            return [one["step"] for one in site.ask("amy", "GET", f"{P}/fixes/{job}/curve").json()["points"]]

        until(lambda: len(steps()) > 5)
        until(lambda: site.workspace.jobs.get(job).step.startswith("Training: epoch "))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)  # the fork that does the work; the worker takes note of it
        reached = max(steps())
        until(lambda: site.workspace.jobs.get(job).tries == 2)
        until(lambda: max(steps()) > reached)
        site.ask("amy", "POST", f"/api/jobs/{job}/cancel")
        done = ended(site, job)
        assert (done.state, done.message) == ("cancelled", "Cancelled. What was finished is kept.")
    assert [one["name"] for one in site.ask("amy", "GET", f"{P}/revisions").json()["items"]] == ["r0"]
    assert list((folder / OURS / ".fixing").iterdir()), "a retry would begin anew"
