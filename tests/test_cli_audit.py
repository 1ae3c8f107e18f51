"""The audit on the command line: findings first, a page, JSON, and an exit code for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import shortcut
import tiny
from small_project import make
from unhans.cli import main
from unhans.types import Audit, from_json

QUICK = ("--checks", "leaks,calibration,patterns")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.save_folder(tmp_path_factory.mktemp("model") / "bert"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Texts of which a third is in the training split too, and one is markup."""
    file = tmp_path_factory.mktemp("data") / "rows.jsonl"
    rows = shortcut.texts()
    lines = [{"text": e.text, "label": e.label, "split": "test"} for e in rows]
    lines += [{"text": e.text, "label": e.label, "split": "train"} for e in rows[:48]]
    lines[0]["text"] = lines[len(rows)]["text"] = "<script>alert(1)</script> the soup was cold"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["audit", *words])


def test_findings_come_first_then_what_ran_and_what_was_left_out(model, data):
    done = run("--model", model, "--data", data, *QUICK)
    assert done.exit_code == 0, done.output
    finding = done.stdout.index("▲ HIGH  48 examples to test with (33 %) are in the training data")
    assert finding < done.stdout.index("Checks\n")
    assert "cannot show: Texts that were rewritten" in done.stdout
    assert "Patterns of pairs (patterns): left out. It is about pairs of texts" in done.stdout
    assert "next: Take them out of one of the two sets" in done.stdout


def test_json_is_the_noun(model, data):
    done = run("--model", model, "--data", data, *QUICK, "--json", "--seed", "2", "--limit", "100")
    found = from_json(Audit, done.stdout)
    assert found.complete
    assert found.examples == 100
    assert found.training == 48
    assert {one.check.name for one in found.checks} == {"leaks", "calibration", "patterns"}


def test_the_page_is_one_file_that_runs_nothing(model, data, tmp_path):
    page = tmp_path / "new" / "audit.html"  # whose folder is made
    done = run("--model", model, "--data", data, "--checks", "leaks", "--html", str(page))
    assert done.exit_code == 0, done.output
    told = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in told
    assert "<script" not in told
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in told
    assert "prefers-color-scheme:dark" in told
    assert "What this cannot show" in told


@pytest.mark.parametrize(("level", "code"), [("high", 4), ("medium", 4), ("low", 4), (None, 0)])
def test_a_finding_that_is_severe_enough_fails_the_run(model, data, level, code):
    extra = () if level is None else ("--fail-on", level)
    assert run("--model", model, "--data", data, "--checks", "leaks", *extra).exit_code == code


def test_without_a_finding_nothing_fails(model, data):
    done = run("--model", model, "--data", data, "--checks", "patterns", "--fail-on", "low")
    assert done.exit_code == 0
    assert "Nothing was found" in done.stdout


def test_training_examples_may_be_in_a_file_of_their_own(model, data, tmp_path):
    test, train = tmp_path / "test.jsonl", tmp_path / "train.jsonl"
    lines = Path(data).read_text().splitlines(keepends=True)
    bare = [json.dumps({k: v for k, v in json.loads(line).items() if k != "split"}) + "\n" for line in lines]
    test.write_text("".join(bare[:144]))
    train.write_text("".join(bare[144:]))
    found = from_json(Audit, run("--model", model, "--data", str(test), "--train", str(train), *QUICK, "--json").stdout)
    assert (found.examples, found.training) == (144, 48)


def test_training_examples_in_a_file_of_their_own_have_the_columns_that_are_named(model, tmp_path):
    test, train = tmp_path / "test.jsonl", tmp_path / "train.jsonl"
    for file, rows in ((test, shortcut.texts()), (train, shortcut.texts()[:48])):
        file.write_text("".join(json.dumps({"said": e.text, "was": e.label, "text": "no"}) + "\n" for e in rows))
    named = ("--text-column", "said", "--label-column", "was")
    done = run("--model", model, "--data", str(test), "--train", str(train), *named, *QUICK, "--json")
    assert done.exit_code == 0, done.output
    found = from_json(Audit, done.stdout)
    assert (found.examples, found.training) == (144, 48)
    assert found.findings[0].title == "48 examples to test with (33 %) are in the training data"


@pytest.mark.parametrize("numbered", [True, False])
def test_findings_about_training_examples_show_these_and_not_the_examples_of_the_same_ids(model, tmp_path, numbered):
    """Rows of both files may have the same numbers; eight training texts stand under two labels."""
    test, train, page = tmp_path / "test.jsonl", tmp_path / "train.jsonl", tmp_path / "audit.html"
    labels = sorted({e.label for e in shortcut.texts()})
    rows = [{"text": f"a test text that is number {n}", "label": e.label} for n, e in enumerate(shortcut.texts())]
    taught = [{"text": f"taught twice as number {n // 2}", "label": labels[n % 2]} for n in range(16)]
    for file, lines in ((test, rows), (train, taught)):
        ids = [{"id": str(n)} if numbered else {} for n in range(len(lines))]
        file.write_text("".join(json.dumps(own | line) + "\n" for own, line in zip(ids, lines, strict=True)))
    named = ("--model", model, "--data", str(test), "--train", str(train), "--checks", "leaks")
    done = run(*named, "--html", str(page), "--json")
    (finding,) = from_json(Audit, done.stdout).findings
    assert finding.title == "8 texts of the training examples stand under more than one label"
    assert all(id_.startswith("train:") for id_ in finding.examples) is numbered
    told = page.read_text(encoding="utf-8")
    assert all(f"taught twice as number {n}" in told for n in range(8))
    assert "a test text" not in told


def test_a_project_is_audited_on_what_it_was_not_trained_on(tmp_path):
    folder = tmp_path / "p"
    make(folder).close()
    done = run(str(folder), "--checks", "leaks", "--json")
    assert done.exit_code == 0, done.output
    assert from_json(Audit, done.stdout).training > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--text", "A film."), "more than single texts"),
        (("--checks", "magic"), "There is no 'magic' among the checks"),
        (("--checks", " ,"), "--checks names no check"),
        (("--html", f"{__file__}/page.html", "--model", "x", "--data", "y"), "Nothing was audited"),
        (("--method", "magic"), "There is no 'magic' among the attributions"),
        ((), "Give a project"),
    ],
)
def test_what_is_wrong_is_told_before_a_model_is_loaded(words, told):
    done = run(*words)
    assert done.exit_code == 2
    assert told in done.output
