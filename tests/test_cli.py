from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import tiny
from unhans.cli import main
from unhans.types import Prediction, from_json


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.save_folder(tmp_path_factory.mktemp("models") / "bert"))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,label\nThe soup was cold,0\nA wonderful film,1\n,1\n\x1b]0;evil\x07 soup,\n")
    return str(path)


def run(*words):
    return CliRunner().invoke(main, list(words))


def test_help_does_not_import_torch():
    code = "import sys; from unhans.cli import main\ntry:\n main(['--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit('torch' in sys.modules or 'numpy' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_every_command_has_help_and_those_that_print_data_have_json():
    for name, command in main.commands.items():
        assert command.help
        assert any(parameter.name == "as_json" for parameter in command.params), name


def test_init_makes_a_project_and_says_what_was_set_aside(tmp_path, model, data):
    done = run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    assert done.exit_code == 0, done.output
    assert "3 of 4 rows read" in done.output
    assert "1 set aside" in done.output
    assert "Next: unhans predict" in done.output


def test_init_prints_json(tmp_path, model, data):
    done = run("init", str(tmp_path / "p"), "--model", model, "--data", data, "--json")
    assert json.loads(done.stdout)["labels"] == ["negative", "positive"]
    assert json.loads(done.stdout)["examples"] == 3


def test_init_names_columns_and_labels(tmp_path, model):
    path = tmp_path / "d.csv"
    path.write_text("body,gold\nsoup,1\n")
    done = run("init", str(tmp_path / "p"), "--model", model, "--data", str(path), "--text", "body", "--label", "gold")
    assert done.exit_code == 0, done.output


def test_predict_shows_a_table_and_accuracy(tmp_path, model, data):
    run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    done = run("predict", str(tmp_path / "p"))
    assert done.exit_code == 0, done.output
    assert "of 2 labelled examples" in done.output
    assert "\x1b]0;evil" not in done.output
    assert (tmp_path / "p" / "predictions" / "r0.jsonl").read_text().count("\n") == 3


def test_predict_prints_one_noun_per_line(model):
    done = run("predict", "--model", model, "--text", "soup", "--text", "a film", "--json")
    lines = [from_json(Prediction, line) for line in done.stdout.splitlines()]
    assert [line.labels for line in lines] == [("negative", "positive")] * 2


def test_predict_takes_a_data_file(model, data):
    done = run("predict", "--model", model, "--data", data)
    assert "Accuracy" in done.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["predict"], 2, "Give a project"),
        (["predict", "nowhere"], 3, "not a project"),
        (["predict", "--model", "./nowhere", "--text", "x"], 3, "There is no folder"),
        (["methods", "fixes"], 2, "There is: attributions, bugs"),
        (["nonsense"], 2, "No such command"),
        (["demo", "--share", "2"], 2, "Invalid value"),
    ],
)
def test_errors_are_one_sentence_with_an_exit_code(words, code, said):
    done = run(*words)
    assert done.exit_code == code
    assert said in done.output
    assert "Traceback" not in done.output


def test_debug_shows_the_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "unhans", "--debug", "predict", "nowhere"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "Traceback" in done.stderr


def test_methods_lists_every_member_with_options_and_as_json():
    assert "leave_one_out (loo)" in run("methods").output
    assert "-o erase=delete" in run("methods", "attributions").output
    listed = json.loads(run("methods", "--json").stdout)
    assert {entry["family"] for entry in listed} == {"attributions", "bugs"}
    loo = next(entry for entry in listed if entry["name"] == "leave_one_out")
    assert loo["options"][0]["choices"] == ["delete", "mask", "unk", "pad"]
