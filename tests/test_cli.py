from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

import tiny
from unhans.accounts import Accounts
from unhans.attributions import attribution
from unhans.cli import main
from unhans.records import Records
from unhans.types import Attribution, Prediction, Suspects, WordRanking, from_json
from unhans.workspace import Workspace


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
    acts = {"serve", "backup", "user add", "user remove"}  # they do something, and say so in a line
    for name, command in every_command(main):
        assert command.help
        if name not in acts and not isinstance(command, click.Group):
            assert any(parameter.name == "as_json" for parameter in command.params), name


def every_command(group, before=""):
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name} ")


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
    named = ("--text-column", "body", "--label-column", "gold", "--labels", "1=positive")
    done = run("init", str(tmp_path / "p"), "--model", model, "--data", str(path), *named)
    assert done.exit_code == 0, done.output
    assert "No text occurs twice." in done.output


def test_predict_shows_a_table_and_accuracy(tmp_path, model, data):
    run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    done = run("predict", str(tmp_path / "p"))
    assert done.exit_code == 0, done.output
    assert "of 2 labelled examples" in done.output
    assert "\x1b]0;evil" not in done.output
    with Records.open(tmp_path / "p") as records:
        assert len(list(records.table.predictions(records.current.id))) == 3


def test_predict_prints_one_noun_per_line(model):
    done = run("predict", "--model", model, "--text", "soup", "--text", "a film", "--json")
    lines = [from_json(Prediction, line) for line in done.stdout.splitlines()]
    assert [line.labels for line in lines] == [("negative", "positive")] * 2


def test_predict_takes_a_data_file_and_says_what_was_set_aside(model, data):
    done = run("predict", "--model", model, "--data", data)
    assert "Accuracy" in done.output
    assert "1 set aside" in done.stderr
    assert "1 set aside" in run("predict", "--model", model, "--data", data, "--json").stderr


def test_predict_takes_pairs(model):
    done = run("predict", "--model", model, "--text", "soup", "--pair", "film", "--json")
    assert done.stdout.count("\n") == 1
    assert run("predict", "--model", model, "--text", "soup", "--pair", "a", "--pair", "b").exit_code == 2


def test_markup_in_a_text_is_only_text(model):
    done = run("predict", "--model", model, "--text", r"x \[/foo] [red]y[/red]")
    assert done.exit_code == 0, done.output
    assert r"x \[/foo] [red]y[/red]" in done.output


def test_labels_that_do_not_match_do_not_stop_predicting(tmp_path, model):
    path = tmp_path / "d.csv"
    path.write_text("text,label\nsoup,good\nfilm,bad\n")
    done = run("predict", "--model", model, "--data", str(path))
    assert done.exit_code == 0, done.output
    assert "Accuracy is not measured" in done.stderr
    named = run("predict", "--model", model, "--data", str(path), "--labels", "good=positive,bad=negative")
    assert "of 2 labelled examples" in named.output


def test_another_model_on_a_projects_data_matches_labels_anew(tmp_path, model, data):
    run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    other = tiny.save_folder(tmp_path / "three", labels=3)
    done = run("predict", str(tmp_path / "p"), "--model", str(other))
    assert "Accuracy is not measured" in done.stderr


def test_lines_for_a_pipe_reach_it_while_a_bar_is_shown(model):
    """Standard error is a terminal, so there is a bar; standard output is not, and must get every line."""
    master, terminal = pty.openpty()
    words = [sys.executable, "-m", "unhans", "predict", "--model", model, "--text", "soup"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, text=True, check=True)
    os.close(terminal)
    os.close(master)
    assert "confidence" in done.stdout
    assert "soup" in done.stdout


def test_a_closed_pipe_is_no_failure(model):
    words = [sys.executable, "-m", "unhans", "predict", "--model", model, "--json", *["--text", "soup"] * 40]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert "unforeseen" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["predict"], 2, "Give a project"),
        (["explain"], 2, "Give a project"),
        (["words", "nowhere"], 3, "not a project"),
        (["predict", "nowhere"], 3, "not a project"),
        (["predict", "--model", "./nowhere", "--text", "x"], 3, "There is no folder"),
        (["predict", "somewhere", "--label-column", "gold"], 2, "for --data only"),
        (["methods", "repairs"], 2, "There is: attributions, rationales"),
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
    assert "leave_one_out (loo, occlusion)" in run("methods").output
    assert "erase=delete" in run("methods", "attributions").output
    listed = json.loads(run("methods", "--json").stdout)
    assert {entry["family"] for entry in listed} == {
        "attributions",
        "rationales",
        "counterfactuals",
        "influences",
        "heuristics",
        "doubts",
        "detectors",
        "checks",
        "bugs",
        "metrics",
        "augmentations",
        "fixes",
    }
    assert next(entry for entry in listed if entry["name"] == "deletion_auc")["favours"].startswith(
        "methods that delete"
    )
    loo = next(entry for entry in listed if entry["name"] == "leave_one_out")
    assert loo["options"][0]["choices"] == ["delete", "mask", "unk", "pad"]


# -- explain and words


@pytest.fixture(scope="module")
def project(tmp_path_factory, model):
    """A project with enough texts to rank words."""
    folder = tmp_path_factory.mktemp("projects")
    nouns = ("soup", "film", "battery", "book", "screen", "room")
    adjectives = ("cold", "wonderful", "good", "bright", "hard", "light")
    rows = [f"The {noun} was {word},{(n + m) % 2}" for n, noun in enumerate(nouns) for m, word in enumerate(adjectives)]
    (folder / "d.csv").write_text("\n".join(["text,label", *rows, "\x1b]0;evil\x07 soup,"]) + "\n")
    done = run("init", str(folder / "p"), "--model", model, "--data", str(folder / "d.csv"))
    assert done.exit_code == 0, done.output
    return str(folder / "p")


def test_explain_shows_heat_lines_with_prediction_given_label_and_caption(project):
    done = run("explain", project, "--examples", "3")
    assert done.exit_code == 0, done.output
    assert done.output.count("predicted ") == 3
    assert ", given negative" in done.output
    assert re.search(r"soup[+-]\d", done.output)
    assert "leave_one_out(erase=delete, unit=log_odds)" in done.output
    assert "first 3 of 37 examples" in done.output
    with Records.open(project) as records:
        assert [one.count for one in records.explained.sets(records.current.id)]


def test_explain_prints_one_noun_per_line(project):
    done = run("explain", project, "--json", "--examples", "2", "--target", "positive", "--method", "ixg")
    found = [from_json(Attribution, line) for line in done.stdout.splitlines()]
    assert [one.label for one in found] == ["positive"] * 2
    assert found[0].recipe.name == "input_x_gradient"


def test_explain_takes_texts_pairs_units_and_options(model):
    given = ("--model", model, "--text", "The soup was cold. A film", "--pair", "good book")
    done = run("explain", *given, "--units", "sentence", "--set", "erase=mask", "--set", "unit=probability", "--json")
    (one,) = [from_json(Attribution, line) for line in done.stdout.splitlines()]
    assert one.words == ("The soup was cold.", "A film", "good book")
    assert dict(one.recipe.options) == {"erase": "mask", "unit": "probability"}
    shown = run("explain", *given)
    assert "first text: " in shown.output
    assert "second text: " in shown.output


def test_explain_saves_what_it_shows(project, tmp_path):
    for name in ("a.html", "a.csv", "a.svg", "a.jsonl"):
        done = run("explain", project, "--examples", "2", "--out", str(tmp_path / name))
        assert done.exit_code == 0, done.output
        assert "Saved as" in done.output
    assert "given <b>" in (tmp_path / "a.html").read_text()
    done = run("explain", project, "--examples", "2", "--json", "--out", str(tmp_path / "b.json"))
    assert len(done.stdout.splitlines()) == 2


def test_what_data_says_does_not_steer_the_terminal(project):
    for words in (["explain", project, "--examples", "40"], ["words", project], ["words", project, "--word", "soup"]):
        assert "\x1b]" not in run(*words).output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "erase=burn"], "delete, mask, unk, pad"),
        (["--set", "nonsense=1"], "it has erase, unit"),
        (["--set", "erase"], "NAME=VALUE"),
        (["--method", "leave_one"], "Did you mean"),
        (["--target", "neutral"], "negative, positive"),
        (["--out", "x.pdf"], ".svg, .png"),
        (["--language-model", "x"], "does not use a language model"),
    ],
)
def test_wrong_options_of_explain_say_which_are_right(project, words, said):
    done = run("explain", project, *words)
    assert done.exit_code == 2
    assert said in done.output


def test_words_shows_ranking_suspects_and_how_to_look_closer(project):
    done = run("words", project)
    assert done.exit_code == 0, done.output
    for column in ("mean score", "spread", "correct", "z", "weight", "coverage", "damage"):
        assert column in done.output
    assert "for positive" in done.output
    assert "--word " in done.output
    assert re.search(r"soup .* \d+%  +[+-]\d", done.output)


def test_words_prints_json_for_the_label_asked_for(project):
    told = json.loads(run("words", project, "--label", "negative", "--examples", "20", "--json").stdout)
    ranking = from_json(WordRanking, json.dumps(told["ranking"]))
    first = from_json(Suspects, json.dumps(told["suspects"]))
    assert ranking.label == "negative"
    assert all(row.correct is not None and row.z is not None for row in ranking.words)
    assert max(row.count for row in ranking.words) <= 20
    assert {row.label for row in first.words} == {"negative"}


def test_words_lists_the_examples_that_contain_a_word(project):
    done = run("words", project, "--word", "SOUP")
    assert done.output.count("predicted ") == 7
    assert "is in 7 of the 37" in done.output
    lines = run("words", project, "--word", "soup", "--json").stdout.splitlines()
    found = [from_json(Attribution, line) for line in lines]
    strengths = [sum(abs(s) for w, s in zip(one.words, one.scores, strict=True) if w == "soup") for one in found]
    assert len(strengths) == 7
    assert strengths == sorted(strengths, reverse=True)
    assert "is in 0 of" in run("words", project, "--word", "elephant").output


def test_words_works_on_a_data_file_without_a_project(model, data):
    done = run("words", "--model", model, "--data", data)
    assert done.exit_code == 0, done.output
    assert "Suspects" in done.output


@pytest.fixture
def filled():
    """A method that needs a language model and other examples, and notes what it got."""
    got = []

    def filled(words, language_model, background) -> list:
        """Fills."""
        got.append((language_model, len(background)))
        return [np.ones(len(one)) for one in words]

    attribution.names  # noqa: B018 - finds the others first
    attribution()(filled)
    yield got
    del attribution._entries["filled"]


def test_a_method_gets_the_language_model_and_examples_it_asks_for(model, tmp_path, data, filled):
    folder = str(tiny.save_folder(tmp_path / "lm", head="MaskedLM"))
    given = ("--model", model, "--text", "soup", "--method", "filled")
    refused = run("explain", *given)
    assert refused.exit_code == 2
    assert "--language-model FOLDER" in refused.output
    lonely = run("explain", *given, "--language-model", folder)
    assert lonely.exit_code == 2
    assert "--data instead of --text" in lonely.output
    from_file = ("--model", model, "--data", data, "--method", "filled", "--language-model", folder)
    assert run("explain", *from_file).exit_code == 0
    run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    own = run("explain", str(tmp_path / "p"), "--text", "film", "--method", "filled")
    assert own.exit_code == 0, own.output
    assert (tmp_path / "p/language_model").is_dir()
    assert run("explain", str(tmp_path / "p"), "--method", "filled").exit_code == 0
    assert [n for _, n in filled] == [3, 3, 3]


COMPARED = ("--methods", "leave_one_out,input_x_gradient", "--metrics", "deletion,stability")


def test_compare_shows_a_table_and_a_sentence(model, data):
    done = run("compare", "--model", model, "--data", data, *COMPARED)
    assert done.exit_code == 0, done.output
    assert "deletion_auc" in done.output
    assert "On these 3 texts" in done.output
    assert "- deletion_auc: Favours methods that delete words" in done.output


def test_a_narrow_comparison_loses_no_column(model, data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    done = run("compare", "--model", model, "--data", data, *COMPARED)
    row = next(line for line in done.output.splitlines() if "deletion_auc" in line)
    assert len(row.split()) == 5  # name, direction, two methods, random
    assert "…" not in row


def test_compare_prints_json(tmp_path, model, data):
    run("init", str(tmp_path / "p"), "--model", model, "--data", data)
    done = run("compare", str(tmp_path / "p"), *COMPARED, "--examples", "2", "--json")
    told = json.loads(done.stdout)
    assert told["examples"] == 2
    assert {row["method"]["name"] for row in told["methods"]} == {"leave_one_out", "input_x_gradient"}


def test_compare_keeps_the_training_split_apart(tmp_path, model):
    path = tmp_path / "d.jsonl"
    rows = [{"text": f"soup {n}", "label": "positive", "split": "train" if n < 6 else "test"} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("compare", "--model", model, "--data", str(path), "--metrics", "stability", "--json")
    assert json.loads(done.stdout)["examples"] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Give a project"),
        (("--text-column", "x"), "Give a project"),
        (("--methods", "leave_one"), "leave_one_out"),
        (("--metrics", "deletions"), "deletion_auc"),
    ],
)
def test_compare_refuses_what_is_missing_or_unknown(model, data, words, told):
    named = ("--model", model, "--data", data) if words and "column" not in words[0] else ()
    done = run("compare", *named, *words)
    assert done.exit_code == 2
    assert told in done.output


# -- the workbench's commands


@pytest.fixture(scope="module")
def served(tmp_path_factory, project):
    """A folder of projects with one in it."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(project, folder / "p")
    return folder


def test_accounts_are_made_listed_and_removed(served):
    def user(*words):
        return run("user", *words, "--folder", str(served))

    done = user("add", "ada", "--role", "admin", "--password", "a long password")
    assert done.exit_code == 0, done.output
    assert user("add", "bob", "--project", "p", "--password", "another password").exit_code == 0
    shown = json.loads(user("list", "--json").output)
    assert [(one["name"], one["role"], one["projects"]) for one in shown] == [
        ("ada", "admin", []),
        ("bob", "annotator", ["p"]),
    ]
    assert "ada" in user("list").output
    with Workspace.open(served) as workspace:
        assert Accounts(workspace.store).can_log_in()
    assert user("remove", "bob").exit_code == 0
    assert [one["name"] for one in json.loads(user("list", "--json").output)] == ["ada"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["user", "add", "eve", "--password", "short"], 2, "10 to 500 characters"),
        (["user", "add", "eve", "--project", "nothing", "--password", "long enough it is"], 2, "There is: p"),
        (["user", "add", "no name", "--password", "long enough it is"], 2, "letters, digits"),
        (["user", "remove", "nobody"], 3, ""),
    ],
    ids=str,
)
def test_accounts_that_cannot_be_are_refused(served, words, code, said):
    done = run(*words, "--folder", str(served))
    assert done.exit_code == code, done.output
    assert said in done.output


def test_a_backup_is_whole_and_can_be_opened(served, tmp_path):
    done = run("backup", str(served), str(tmp_path / "copy"))
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "copy/manifest.json").read_text())
    assert {"unhans.sqlite", "p/unhans.sqlite", "p/project.json", "p/models/r0/model.safetensors"} <= set(
        manifest["files"]
    )
    with Workspace.open(tmp_path / "copy") as copy, Workspace.open(served) as original:
        assert copy.names() == ["p"]
        assert list(copy.records("p").table.all()) == list(original.records("p").table.all())
        assert copy.records("p").current == original.records("p").current
    again = run("backup", str(served), str(tmp_path / "copy"))
    assert again.exit_code == 3
    assert "already" in again.output


@pytest.fixture
def copied(project, tmp_path, monkeypatch):
    """A project that a server may be tried on."""
    built(tmp_path, monkeypatch)
    return str(shutil.copytree(project, tmp_path / "p"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "--allowed-host"),
        (["--host", "0.0.0.0", "--allowed-host", "x.org"], 2, "unhans user add"),
        (["--root-path", "no-slash"], 2, "--root-path"),
        (["--allowed-host", "a b"], 2, "--allowed-host"),
        (["--database", "postgresql+psycopg://localhost/x"], 3, "Leave --database"),
    ],
    ids=str,
)
def test_a_server_that_would_not_be_safe_does_not_start(copied, words, code, said):
    done = run("serve", copied, *words)
    assert done.exit_code == code, done.output
    assert said in done.output


def test_a_folder_of_other_things_is_not_served(tmp_path, monkeypatch):
    built(tmp_path, monkeypatch)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    done = run("serve", str(tmp_path / "mine"))
    assert done.exit_code == 3
    assert "neither a project nor" in done.output
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_second_server_is_refused(copied):
    with Workspace.open(copied) as workspace, workspace.alone():
        done = run("serve", copied)
    assert done.exit_code == 3
    assert "Another server" in done.output


def test_a_page_that_is_not_built_is_told(project, tmp_path, monkeypatch):
    monkeypatch.setattr("unhans.serving.STATIC", tmp_path)
    done = run("serve", project)
    assert done.exit_code == 2
    assert "not built" in done.output


def built(tmp_path, monkeypatch):
    """The tests of the command line do not need the real page."""
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr("unhans.serving.STATIC", tmp_path / "static")
