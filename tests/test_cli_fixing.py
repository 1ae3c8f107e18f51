"""The loop on the command line: vote, fix, revisions, publish, rollback, check, export, simulate."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from transformers import AutoModelForSequenceClassification

import tiny
from small_project import QUICK, examples, make
from unhans.cli import main
from unhans.records import Records
from unhans.types import Feedback, Measure, Report, Span, from_json

FAST = [part for name, value in QUICK.items() for part in ("--train", f"{name}={value}")]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "p"
    make(folder).close()
    return folder


@pytest.fixture
def project(template, tmp_path):
    """A project of one's own: made once, copied for each test."""
    return str(shutil.copytree(template, tmp_path / "p"))


@pytest.fixture
def fixed(project):
    run("vote", project, "great", "--label", "positive", "--lower")
    assert run("fix", project, "--fix", "word_dropout", *FAST).exit_code == 0
    return project


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def written(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return str(path)


# -- votes


def test_a_vote_is_stored_and_says_what_it_touches(project):
    done = run("vote", project, "Great", "--label", "positive", "--lower")
    assert done.exit_code == 0, done.output
    assert "'Great' should count less for positive, everywhere (12 training texts)." in done.output
    with Records.open(project) as records:
        (entry,) = records.usable_feedback()
        assert (entry.author, entry.says.vote, entry.says.example) == ("local", "lower", None)


def test_a_vote_on_an_example_is_about_every_place_where_the_word_is(project):
    done = run("vote", project, "was", "--label", "positive", "--raise", "--example", "e1", "--author", "ann", "--json")
    said = [from_json(Feedback, json.dumps(one)) for one in json.loads(done.stdout)]
    assert [(one.says.position, one.says.vote, one.author) for one in said] == [
        (2, "raise", "ann"),
        (7, "raise", "ann"),
    ]
    with Records.open(project) as records:
        assert len(records.usable_feedback()) == 2  # they fit the text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("great", "--label", "strange", "--lower"), 2, "no such label"),
        (("great", "--label", "positive", "--lower", "--example", "nowhere"), 3, "no example 'nowhere'"),
        (("soup", "--label", "positive", "--lower", "--example", "e1"), 2, "does not have the word"),
        ((" ", "--label", "positive", "--lower"), 2, "names one word"),
        (("two words", "--label", "positive", "--lower"), 2, "names one word"),
        (("great", "--label", "positive"), 2, "--raise"),
    ],
)
def test_a_vote_that_is_about_nothing_is_refused(project, words, code, said):
    done = run("vote", project, *words)
    assert (done.exit_code, said in done.output) == (code, True), done.output


# -- fixes


def test_a_fix_is_reported_and_proposed_then_published_and_gone_back_from(project):
    run("vote", project, "great", "--label", "positive", "--lower")
    done = run("fix", project, "--fix", "word_dropout", "--rival", "embedding_erasure", *FAST)
    assert done.exit_code == 0, done.output
    assert "votes" in done.output
    assert "r1 is proposed; r0 stays in use." in done.output
    shown = run("revisions", project)
    assert "proposed" in shown.output
    assert "In use: r0." in shown.output
    assert run("publish", project, "r1", "--even-so").output.startswith("r1 is in use now.")
    told = json.loads(run("revisions", project, "--json").stdout)
    assert (told["current"], told["back_to"], [one["name"] for one in told["items"]]) == ("r1", "r0", ["r0", "r1"])
    assert run("rollback", project).output == "r0 is in use again.\n"
    assert run("rollback", project).exit_code == 3
    assert json.loads(run("publish", project, "r1", "--even-so", "--json").stdout)["current"] == "r1"
    assert json.loads(run("rollback", project, "--json").stdout)["current"] == "r0"


def test_a_fix_can_be_published_at_once_if_nothing_got_worse_and_all_expectations_hold(project, tmp_path):
    run("vote", project, "great", "--label", "positive", "--lower")
    elsewhere = written(tmp_path / "e.csv", [(f"great book {n}", "positive") for n in range(5)])
    asked = ("--fix", "word_dropout", *FAST, "--on", f"elsewhere={elsewhere}", "--publish")
    failed = run("fix", project, *asked, "--expect", "accuracy(elsewhere) >= 2")
    assert failed.exit_code == 4, failed.output
    assert "FAIL  accuracy(elsewhere) >= 2" in failed.output
    assert "r0 stays in use" in failed.output
    done = run("fix", project, *asked, "--expect", "broken <= 100", "--json")
    report = from_json(Report, json.dumps(json.loads(done.stdout)["report"]))
    assert done.exit_code == (3 if report.worse else 0), done.output
    assert json.loads(done.stdout)["revision"] == "r1"
    with Records.open(project) as records:
        assert records.current_name == ("r0" if report.worse else "r1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fix", "magic"), "no 'magic' among the fixes"),
        (("--set", "strength"), "NAME=VALUE"),
        (("--set", "colour=red"), "no option colour"),
        (("--train", "speed=9"), "training option"),
        (("--expect", "nonsense"), "nonsense"),
        (("--seeds", "99"), "--seeds"),
    ],
)
def test_wrong_options_of_a_fix_are_told_before_anything_is_trained(project, words, said):
    run("vote", project, "great", "--label", "positive", "--lower")
    done = run("fix", project, *words)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_without_feedback_there_is_nothing_to_fix(project):
    done = run("fix", project)
    assert (done.exit_code, "votes on words" in done.output) == (3, True), done.output


def test_publishing_what_is_worse_or_unknown_needs_a_word(fixed):
    with Records.open(fixed) as records:
        worse = Measure("accuracy", "test", 0.9, 0.5, -0.5, -0.3, n=100)
        records.keep_report("r0", "r1", Report("a", "b", (worse,)))
    done = run("publish", fixed, "r1")
    assert (done.exit_code, "made something worse" in done.output) == (3, True)
    assert "1 worse" in run("revisions", fixed).output
    assert run("publish", fixed, "r7", "--even-so").exit_code == 3


# -- checks


def test_a_check_passes_or_exits_with_4_and_writes_what_machines_read(fixed, tmp_path):
    names = {kind: tmp_path / "out" / f"r.{kind}" for kind in ("junit", "markdown", "html")}
    files = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    asked = tmp_path / "expected.txt"
    asked.write_text("# what must hold\n\naccuracy >= 0\n")
    done = run("check", fixed, "--expectations", str(asked), *files)
    assert done.exit_code == 0, done.output
    assert "ok    accuracy >= 0" in done.output
    assert ElementTree.parse(names["junit"]).getroot() is not None
    assert names["markdown"].read_text().startswith("#")
    assert "<html" in names["html"].read_text()
    failed = run("check", fixed, "--expect", "accuracy >= 2", "--before", "r0", "--revision", "r1", "--json", *files)
    assert failed.exit_code == 4, failed.output
    report = from_json(Report, json.dumps(json.loads(failed.stdout)["report"]))
    assert not report.holds
    assert report.before is not None
    assert "failure" in names["junit"].read_text()


def test_a_check_without_expectations_takes_those_of_the_last_fix(project):
    assert run("check", project).exit_code == 2
    run("vote", project, "great", "--label", "positive", "--lower")
    run("fix", project, "--fix", "word_dropout", *FAST, "--expect", "accuracy >= 0")
    assert "ok    accuracy >= 0" in run("check", project).output


def test_any_model_can_be_checked_on_any_data(tmp_path):
    model = str(tiny.save_folder(tmp_path / "m"))
    data = written(tmp_path / "d.csv", [(example.text, str(example.label)) for example in examples(10)])
    done = run("check", "--model", model, "--data", data, "--before", model, "--expect", "broken <= 0")
    assert done.exit_code == 0, done.output
    assert run("check", "--model", model, "--expect", "accuracy >= 0").exit_code == 2
    assert (
        run("check", "--model", model, "--data", data, "--revision", "r0", "--expect", "accuracy >= 0").exit_code == 2
    )
    bare = tmp_path / "bare.csv"
    bare.write_text("text\nsoup\nfilm\n")
    unlabelled = run("check", "--model", model, "--data", str(bare), "--expect", "accuracy >= 0")
    assert (unlabelled.exit_code, "no labels" in unlabelled.output) == (3, True)
    missing = run("check", "--model", model, "--data", data, "--expectations", str(tmp_path / "nowhere"))
    assert (missing.exit_code, "cannot be read" in missing.output) == (3, True)


# -- exports and simulated people


def test_an_export_is_a_folder_that_others_load(fixed, tmp_path):
    done = run("export", fixed, str(tmp_path / "taken"), "--revision", "r1")
    assert done.exit_code == 0, done.output
    assert "model, feedback, report" in done.output
    AutoModelForSequenceClassification.from_pretrained(tmp_path / "taken" / "model")
    told = json.loads(run("export", fixed, str(tmp_path / "part"), "--part", "feedback", "--json").stdout)
    assert told["parts"] == ["feedback"]
    assert run("export", fixed, str(tmp_path / "taken")).exit_code == 3
    pushed = run("export", fixed, str(tmp_path / "hub"), "--push-to", "me/model", "--part", "report")
    assert (pushed.exit_code, "model alone" in pushed.output) == (2, True)


def test_simulated_people_answer_and_are_stored_if_asked(project):
    asked = ("simulate", project, "--words", "great,cold", "--judgements", "30", "--policy", "suspects")
    done = run(*asked)
    assert done.exit_code == 0, done.output
    assert "Nothing was stored" in done.output
    with Records.open(project) as records:
        assert records.usable_feedback() == []
    assert "They are in the project's log." in run(*asked, "--store").output
    lines = run(*asked, "--store", "--json").stdout.splitlines()
    with Records.open(project) as records:
        stored = records.usable_feedback()
        assert {one.id for one in stored} <= {from_json(Feedback, line).id for line in lines}
        assert {one.author for one in stored} == {"simulated"}  # once, although asked for twice
        assert {one.says.word for one in stored} == {"great", "cold"}


def test_a_curve_of_accuracy_by_minutes(project):
    asked = ("simulate", project, "--words", "great,cold", "--minutes", "0", "--minutes", "30", "--fix", "word_dropout")
    done = run(*asked, *FAST)
    assert done.exit_code == 0, done.output
    assert "minutes" in done.output
    points = json.loads(run(*asked, *FAST, "--json").stdout)
    assert [(point["minutes"], point["data"]) for point in points] == [(0, "test"), (30, "test")]
    assert run(*asked, "--store").exit_code == 2
    assert run("simulate", project, "--words", "great").exit_code == 2


def test_highlights_are_the_truth_where_no_words_are_given(tmp_path):

    marked = [
        replace(e, highlights=(Span(e.text.index(" was "), e.text.index(" was ") + 5, "text"),)) for e in examples()
    ]
    folder = str(tmp_path / "p")
    make(Path(folder), marked).close()
    done = run("simulate", folder, "--minutes", "3")
    assert done.exit_code == 0, done.output
    assert "simulated minutes" in done.output
