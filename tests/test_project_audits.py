"""A project that is audited and tried in the lab: kept as it comes, gone on with after a kill; real tiny models."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from small_project import examples, lower, make
from unhans.audit import audit, check, needs_language_model
from unhans.augmentations import back_translation
from unhans.errors import BadData, BadOption, Cancelled, NotFound
from unhans.language_model import LanguageModel
from unhans.project import Project
from unhans.store import Store
from unhans.types import Audit

QUICK = ("leaks", "calibration", "slices")
KILLED = """
import os, signal, sys
from unhans.project import Project
with Project.open(sys.argv[1]) as project:
    project.audit(sys.argv[2].split(), by="amy", job="first", on_part=lambda part: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with make(tmp_path_factory.mktemp("audited") / "p", examples(66)) as made:
        yield made


def timeless(found: Audit) -> Audit:
    """The same, whenever it was made and however long it took."""
    return replace(found, at=None, checks=tuple(replace(run, seconds=None) for run in found.checks))


def test_a_project_finds_what_the_library_finds_and_keeps_it_as_it_comes(project):
    parts: list[Audit] = []
    found = project.audit(QUICK, by="amy", job="a job", on_part=lambda part: parts.append(project.latest_audit()))
    held_out = [example for example in project.examples if example.split == "test"]
    train = [example for example in project.examples if example.split == "train"]
    assert timeless(found) == timeless(audit(project.classifier, held_out, train=train, checks=QUICK))
    states = [[run.state for run in part.checks] for part in parts]
    assert states == [["done", "waiting", "waiting"], ["done", "done", "waiting"], ["done"] * 3]
    assert (project.latest_audit(), parts[-1]) == (found, found)
    facts = project.audit_table.listed()[0]
    assert (facts.by, facts.job, facts.complete, facts.examples, facts.training) == ("amy", "a job", True, 22, 44)
    before = len(project.audits())
    assert timeless(project.audit(QUICK)) == timeless(found)  # once more: another one, to be compared with
    assert len(project.audits()) == before + 1


def test_one_that_was_killed_goes_on_where_it_stopped(project):
    there = len(project.audits())
    code = [sys.executable, "-c", KILLED, str(project.folder), " ".join(QUICK)]
    assert subprocess.run(code, env=os.environ, check=False).returncode == -signal.SIGKILL
    (facts, *_) = project.audit_table.listed()
    stopped = project.audit_table.one(facts.id).audit
    assert [run.state for run in stopped.checks] == ["done", "waiting", "waiting"]
    assert (facts.complete, facts.job, len(project.audits())) == (False, "first", there + 1)
    ran: list[str] = []
    found = project.audit(
        QUICK, by="bob", job="second", on_part=lambda part: ran.append([r.state for r in part.checks].count("done"))
    )
    assert ran == [2, 3]  # what was done is not done again
    (now, *_) = project.audit_table.listed()
    assert (now.id, now.by, now.job, now.complete, now.at) == (facts.id, "amy", "second", True, facts.at)
    assert found.checks[0] == stopped.checks[0]  # and took as long as it took
    assert timeless(found) == timeless(project.audits()[-1])
    assert len(project.audits()) == there + 1


@pytest.mark.parametrize("other", [{"limit": 11}, {"seed": 1}, {"method": "saliency"}, {"checks": QUICK[:2]}], ids=str)
def test_one_that_asks_for_something_else_begins_anew(project, other):
    def stop(part: Audit) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project.audit(QUICK, on_part=stop)
    (facts, *_) = project.audit_table.listed()
    project.audit(**{"checks": QUICK} | other)
    (now, before, *_) = project.audit_table.listed()
    assert (before, now.complete) == (facts, True)
    project.audit(QUICK)  # the first again, which goes on
    assert project.audit_table.one(facts.id).facts.complete


def test_one_that_is_cancelled_leaves_what_it_found(project):
    seen: list[Audit] = []
    with pytest.raises(Cancelled):
        project.audit(QUICK, seed=7, on_part=seen.append, cancelled=lambda: bool(seen))
    assert [run.state for run in project.latest_audit().checks] == ["done", "waiting", "waiting"]


def test_findings_of_two_runs_stand_as_those_of_one(project):
    names = ("calibration", "invariance", "leaks", "wrong_labels")

    def stop(part: Audit) -> None:
        if part.findings:
            raise KeyboardInterrupt

    whole = project.audit(names, limit=12)
    assert whole.findings
    with pytest.raises(KeyboardInterrupt):
        project.audit(names, limit=12, on_part=stop)
    assert timeless(project.audit(names, limit=12)) == timeless(whole)


def test_a_language_model_is_fitted_only_for_what_makes_use_of_it(project):
    every = check.names
    assert not needs_language_model(every)
    assert needs_language_model(every, method="lime_mlm")
    assert not needs_language_model(["leaks"], method="lime_mlm")
    by_perplexity = {"strangeness": {"detector": "perplexity"}}
    assert needs_language_model(every, options=by_perplexity)
    assert not needs_language_model(["leaks"], options=by_perplexity)
    project.audit(["strangeness", "explanation_sanity"], limit=12)
    assert not list(project.folder.glob("*language*"))


def test_what_cannot_be_audited_is_refused_before_anything_is_stored(project, tmp_path):
    there = len(project.audits())
    for asked, error in (
        ({"checks": ["magic"]}, BadOption),
        ({"checks": QUICK, "options": {"invariance": {}}}, BadOption),
        ({"checks": QUICK, "options": {"slices": {"nothing": 1}}}, BadOption),
        ({"revision": "r99"}, NotFound),
    ):
        with pytest.raises(error):
            project.audit(**asked)
    assert len(project.audits()) == there
    with make(tmp_path / "p", [e for e in project.examples if e.split == "train"]) as whole:
        # a fifth is held out, so that there is something to look at
        assert whole.audit(["leaks"]).examples == whole.table.count() - whole.trains_on()


def test_checks_and_bugs_are_described_for_the_screens(project):
    known = project.known_audits()
    told = {one.name: one for one in known.checks}
    assert set(told) == set(check.names)
    assert "pairs" in told["patterns"].unusable
    assert told["leaks"].usable
    costs = [check[one.name].facts["cost"] for one in known.checks]
    assert costs == sorted(costs)  # in the order they run
    planted = {one.name: one for one in known.bugs}
    assert planted["spurious_word"].usable
    assert "other state" in planted["wrong_checkpoint"].unusable


def test_a_bug_that_takes_groups_or_a_translator_is_offered_where_they_are(project, tmp_path, monkeypatch):
    def offered(known) -> dict[str, str]:
        names = ("domain_shift", "wrong_domain", "other_language", "typos")
        return {one.name: one.unusable for one in known.bugs if one.name in names}

    monkeypatch.setattr(back_translation.shutil, "which", lambda name: None)
    back_translation.pivots_of.cache_clear()
    told = offered(project._known_audits())
    back_translation.pivots_of.cache_clear()
    assert "two groups" in told["domain_shift"]
    assert "two groups" in told["wrong_domain"]
    assert "apt-get install apertium" in told["other_language"]
    assert not told["typos"]
    grouped = [replace(e, group="ab"[n // 6 % 2]) for n, e in enumerate(examples())]
    with make(tmp_path / "p", grouped) as two:
        told = offered(two._known_audits())
        assert (told["domain_shift"], told["wrong_domain"]) == ("", "")  # no earlier revision is needed
        assert two.lab(["wrong_domain"], ["saliency"], examples=10).bugs[0].name == "wrong_domain"


def test_the_lab_fits_a_language_model_for_a_method_that_is_asked_for_by_name(tmp_path, monkeypatch):
    fitted = tiny.language_model()
    monkeypatch.setattr(LanguageModel, "fit", lambda texts, watch: fitted)
    with make(tmp_path / "p") as own:
        found = own.lab(["typos"], ["lime_mlm"], examples=10)
        assert {one.method for one in found.sightings if one.by == "attribution"} == {"lime_mlm"}


def test_the_lab_is_kept_with_its_model(project):
    told: list[float] = []
    found = project.lab(
        ["reinitialised"],
        ["saliency", "random"],
        examples=10,
        limit=20,
        by="amy",
        progress=lambda done, of: told.append(done / of),
    )
    assert (found.revision, project.latest_lab()) == (project.current.id, found)
    assert "20 of 44 examples" in found.notes[-1]
    assert told == sorted(told)
    assert {one.method for one in found.sightings if one.by == "attribution"} == {"saliency", "random"}
    assert {one.name for one in project.methods() if one.warning} == {name for name, _ in found.warnings}
    with pytest.raises(Cancelled):
        project.lab(["reinitialised"], ["saliency"], examples=10, seed=1, cancelled=lambda: True)
    assert project.latest_lab() == found


def test_a_lab_that_was_stopped_goes_on_with_the_bugs_that_are_missing(project):
    asked = {"bugs": ["typos", "noisy_weights"], "methods": ["saliency"], "examples": 10, "limit": 20, "seed": 3}
    whole, newest, told = project.lab(**asked), project.latest_lab(), []
    kept = project.folder / "cache" / "lab" / "so-far.json"
    assert not kept.exists()  # it is in the table
    with pytest.raises(Cancelled):
        project.lab(**asked, cancelled=kept.exists)
    assert project.latest_lab() == newest
    again = project.lab(**asked, progress=lambda done, of: told.append(done / of))
    assert replace(again, at=None) == replace(whole, at=None)
    assert told[0] == 0
    assert told[1] >= 1 / 2  # the first bug is not planted again
    assert not kept.exists()


def test_a_project_without_a_text_to_see_a_bug_in_is_not_planted_in(tmp_path, project):
    bare = [replace(example, label=None) for example in project.examples]
    with make(tmp_path / "p", bare) as unlabelled, pytest.raises(BadData):
        unlabelled.lab()


def test_a_project_of_an_earlier_version_gets_the_new_tables(tmp_path):
    with make(tmp_path / "p") as project:
        vote = lower(project)
    file: Path = tmp_path / "p" / "unhans.sqlite"
    with sqlite3.connect(file) as connection:
        for table in ("audits", "labs"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    connection.close()
    with Project.open(tmp_path / "p") as project:
        assert [one.id for one in project.log.opinions()] == [vote.id]
        assert project.latest_audit() is None
        project.audit(["leaks"])
        assert len(project.audits()) == 1
        assert project.store.check() is None
    assert (tmp_path / "p" / "unhans.before-0004.sqlite").exists()  # as it was
    Store.open(tmp_path / "p").close()
