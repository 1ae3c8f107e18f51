"""Which explanation sees which bug, on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

import tiny
from small_project import examples, make
from unhans.cli import main
from unhans.data import write
from unhans.records import Records
from unhans.types import Lab, from_json

FEW = ("--bug", "spurious_word", "--bug", "reinitialised", "--methods", "input_x_gradient,attention_rollout")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["lab", *words])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.save_folder(tmp_path_factory.mktemp("model") / "bert"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "all.jsonl"
    write(examples(24), file)
    return str(file)


def test_a_table_for_each_bug_with_the_proof_the_curves_and_the_warning(model, data):
    done = run("--model", model, "--data", data, *FEW, "--examples", "10")
    assert done.exit_code == 0, done.output
    assert "spurious_word (data)" in done.output
    assert "'zyx' was put into" in done.output
    assert "% accuracy, both taken as equally common; the clean model with" in done.output
    assert "random scores" in done.output
    assert "Drawn anew alone" in done.output
    assert "attention_rollout does not depend on the model: do not trust it." in done.output


def test_json_is_the_whole_lab_and_options_of_bugs_are_passed_on(model, data):
    asked = ("--bug", "typos", "--set", "typos.words=1", "--methods", "input_x_gradient", "--examples", "10", "--json")
    done = run("--model", model, "--data", data, *asked)
    assert done.exit_code == 0, done.output
    made = from_json(Lab, done.stdout)
    assert [one.name for one in made.bugs] == ["typos"]
    assert dict(made.bugs[0].recipe.options)["words"] == 1.0


def test_training_examples_in_a_file_of_their_own_have_the_columns_that_are_named(model, tmp_path):
    for split in ("train", "test"):
        rows = [{"said": e.text, "was": e.label, "text": "no"} for e in examples(36) if e.split == split]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ("--data", str(tmp_path / "test.jsonl"), "--train", str(tmp_path / "train.jsonl"))
    named = ("--text-column", "said", "--label-column", "was", "--bug", "typos", "--methods", "input_x_gradient")
    done = run("--model", model, *files, *named, "--examples", "10")
    assert done.exit_code == 0, done.output


def test_a_project_keeps_what_is_found(tmp_path):
    make(tmp_path / "p").close()
    done = run(str(tmp_path / "p"), "--bug", "typos", "--methods", "input_x_gradient", "--examples", "10", "--json")
    assert done.exit_code == 0, done.output
    with Records.open(tmp_path / "p") as records:
        assert json.loads(done.stdout)["bugs"][0]["name"] == "typos"
        assert records.latest_lab() == from_json(Lab, done.stdout)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--bug", "typo"), "Did you mean 'typos'"),
        (("--methods", "saliancy"), "Did you mean 'saliency'"),
        (("--methods", ","), "--methods names no method"),
        (("--set", "typos.words=1"), "named by --bug"),
        (("--bug", "typos", "--set", "words=1"), "BUG.NAME=VALUE"),
        (("--bug", "typos", "--set", "typos.colour=red"), "has no option colour"),
        (("--text", "a text", "--model", "x"), "give a project, or a --model with --data."),
        ((), "give a project, or a --model with --data."),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is_loaded(words, match):
    done = run(*words)
    assert done.exit_code == 2
    assert match in done.output


def test_data_without_training_examples_is_refused_with_the_way_out(model, tmp_path):
    write([e for e in examples(24) if e.split == "test"], tmp_path / "test.jsonl")
    done = run("--model", model, "--data", str(tmp_path / "test.jsonl"), *FEW)
    assert done.exit_code == 2
    assert "--train FILE" in done.output
