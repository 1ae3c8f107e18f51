"""`--out FOLDER`: explain, flips and predict write Parquet files, and go on where they stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tiny
from unhans.attributions import attribute
from unhans.bulk import reopen
from unhans.cli import main
from unhans.data import read
from unhans.loading import load
from unhans.project import sample


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("source")
    tiny.save_folder(folder / "bert")
    rows = [{"id": f"r{n}", "text": text} for n, text in enumerate(tiny.SENTENCES[:7])]
    lines = [json.dumps(row) for row in [*rows[:3], {"id": "empty", "text": ""}, *rows[3:]]]
    (folder / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return ["--model", str(folder / "bert"), "--data", str(folder / "data.jsonl")]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_explain_fills_a_folder_and_goes_on(source: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "explained")
    done = run("explain", *source, "--out", out, "--part", "3", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "folder": out, "kind": "attributions", "examples": 7, "computed": 7, "files": 3,
    }  # fmt: skip
    assert "1 rows are set aside: empty text (1)" in done.stderr
    clf, corpus = load(source[1]), read(source[3])
    assert [one for part in (corpus[:3], corpus[3:6], corpus[6:]) for one in attribute(clf, part)] == list(reopen(out))
    (tmp_path / "explained" / "part-0000001.parquet").unlink()
    again = run("explain", *source, "--out", out)
    assert "has the attributions of 7 examples" in again.output
    assert "3 of them now; the others were there" in again.output


def test_another_method_is_refused_in_words(source: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "explained")
    run("explain", *source, "--out", out, "--examples", "2")
    refused = run("explain", *source, "--out", out, "--examples", "2", "--method", "ixg")
    assert refused.exit_code == 3
    assert "recipe was leave_one_out(" in refused.output
    assert "Nothing was changed" in refused.output


def test_examples_to_compare_with_are_those_that_a_corpus_would_give(source: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "explained")
    done = run("explain", *source, "--out", out, "--method", "gradient_shap", "--seed", "2")
    assert done.exit_code == 0, done.output
    clf, corpus = load(source[1]), read(source[3])
    others = sample(corpus, 200, 2)
    assert list(reopen(out)) == list(attribute(clf, corpus, method="gradient_shap", background=others, seed=2))


@pytest.mark.parametrize(("command", "kind"), [("flips", "counterfactuals"), ("predict", "predictions")])
def test_flips_and_predictions_go_to_folders_too(command: str, kind: str, source: list[str], tmp_path: Path) -> None:
    done = run(command, *source, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert f"has the {kind} of 7 examples" in done.output
    assert [one.example for one in reopen(tmp_path / "out")] == [f"r{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "--on", "ray"], "with --out FOLDER"),
        (["predict", "--part", "3"], "with --out FOLDER"),
        (["flips", "--workers", "3"], "with --out FOLDER"),
        (["predict", "--out", "p.csv"], "p.csv looks like a file"),
        (["flips", "--out", "f.json"], "name a folder, such as --out f."),
        (["explain", "--out", "x", "--on", "rey"], "Work can be done here"),
        (["explain", "--out", "x", "--workers", "2"], "workers are Ray's"),
        (["flips", "--out", "x", "--rationale"], "--rationale is for what is shown here"),
        (["compare", "--on", "ray"], "name one with --metrics (roar, roar_mlm)"),
        (["compare", "--metrics", "stability", "--workers", "2"], "are for metrics that train models"),
        (["compare", "--metrics", "roar,stability", "--on", "rey"], "Work can be done here"),
        (["audit", "--workers", "2"], "workers are Ray's"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    words: list[str], said: str, source: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words, *source)
    assert done.exit_code == 2
    assert said in done.output


def test_a_project_remembers_who_works(source: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed: whoever asks for it is told so
    monkeypatch.chdir(tmp_path)
    assert run("init", "p", *source).exit_code == 0
    assert "It is done here" in run("crew", "p").output
    assert json.loads(run("crew", "p", "--on", "ray", "--workers", "3", "--json").stdout) == {"on": "ray", "workers": 3}
    assert "on ray, 3 workers" in run("crew", "p").output
    asked = run("explain", "p", "--out", "explained")
    assert asked.exit_code == 3
    assert "unhans[ray]" in asked.output
    assert run("explain", "p", "--out", "explained", "--on", "here").exit_code == 0
    assert "unhans[ray]" in run("audit", "p", "--checks", "calibration").output
    assert run("audit", "p", "--checks", "calibration", "--on", "here").exit_code == 0
    compared = ("compare", "p", "--methods", "leave_one_out")
    assert run(*compared, "--metrics", "stability").exit_code == 0  # nothing is trained, so nobody is sent for
    for wrong in (["--on", "rey"], ["--workers", "2"], ["--on", "here", "--workers", "2"]):
        assert run("crew", "p", *wrong).exit_code == 2


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A model, and texts with labels, half of them to train with."""
    folder = tmp_path_factory.mktemp("labelled")
    tiny.save_folder(folder / "bert")
    rows = [
        {"text": text, "label": ("negative", "positive")[n % 2], "split": ("train", "test")[n // 2 % 2]}
        for n, text in enumerate(tiny.SENTENCES)
    ]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return [str(folder / "bert"), str(folder / "data.jsonl")]


def test_whoever_trains_is_sent_for_by_the_commands_that_train(
    labelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = labelled
    hildif = ["hildif", model, data, "--stress", data, "--pattern", "negation", "--copies-by", "word_dropout"]
    hildif += ["--only", "baseline", "--seeds", "1"]
    compare = ["compare", "--model", model, "--data", data, "--methods", "leave_one_out", "--metrics", "roar"]
    for words in (hildif, compare):
        done = run(*words, "--on", "here")
        assert done.exit_code == 0, done.output
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed: whoever asks for it is told so
    for words in (hildif, compare):
        refused = run(*words, "--on", "ray")
        assert (refused.exit_code, "unhans[ray]" in refused.output) == (3, True), refused.output
