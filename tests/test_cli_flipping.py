"""What it takes to change a model's mind, on the command line: rationale, flips, rate, risk."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner, Result

import tiny
from small_project import make
from unhans.cli import main
from unhans.records import Records
from unhans.text import Words
from unhans.types import Counterfactual, Example, Rationale, Risk, from_json


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "p"
    make(folder).close()
    return folder


@pytest.fixture
def project(template, tmp_path):
    """A project of one's own: made once, copied for each test."""
    return str(shutil.copytree(template, tmp_path / "p"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.save_folder(tmp_path_factory.mktemp("model") / "bert", labels=3))


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def lines(done: Result) -> list[str]:
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def flips_of(*words: str) -> list[Counterfactual]:
    return [from_json(Counterfactual, line) for line in lines(run("flips", *words, "--json"))]


def test_a_rationale_is_marked_in_the_text(model):
    (found,) = (
        from_json(Rationale, line)
        for line in lines(run("rationale", "--model", model, "--text", "The soup was cold.", "--json"))
    )
    shown = run("rationale", "--model", model, "--text", "The soup was cold.").stdout
    assert found.chosen
    assert all(f"[{found.words[n]}]" in shown for n in found.chosen)
    assert shown.count("[") == len(found.chosen)


def test_a_flip_is_shown_with_its_changes(model):
    (flip,) = flips_of("--model", model, "--text", "The soup was cold.")
    shown = run("flips", "--model", model, "--text", "The soup was cold.").stdout
    assert flip.flips
    assert all(f"{edit.old} → {edit.new}" in shown for edit in flip.edits)
    assert f"{flip.before.label} (" in shown
    assert flip.id in shown
    assert "1 of 1 texts flip within 5 changes, by hotflip." in shown


def test_options_of_generator_and_search_are_passed_on(model):
    asked = ("--method", "deletion", "--search", "max_edits=1", "--search", "protected=soup", "--target", "label 2")
    (flip,) = flips_of("--model", model, "--text", "The soup was cold.", *asked)
    assert dict(flip.recipe.options)["protected"] == "soup"
    assert flip.target == "label 2"
    assert all(edit.new == "" and edit.old != "soup" for edit in flip.edits)


def test_only_words_of_the_rationale_change_if_that_is_asked(model):
    text = "The soup was cold and the waiter rude."
    own = ("--set-choice", "share=0.3")
    (chosen,) = (
        from_json(Rationale, line) for line in lines(run("rationale", "--model", model, "--text", text, *own, "--json"))
    )
    (flip,) = flips_of("--model", model, "--text", text, "--rationale", *own)
    assert flip.editable == chosen.chosen
    assert {edit.position for step in flip.steps for edit in step.edits} <= set(chosen.chosen)


def test_pairs_are_flipped(model):
    (flip,) = flips_of("--model", model, "--text", "She liked it.", "--pair", "He did not.", "--search", "part=pair")
    words = Words(Example("1", "She liked it.", "He did not."))
    assert flip.text == "She liked it."
    assert all(words.spans[edit.position].part == "pair" for edit in flip.edits)


def test_a_project_keeps_flips_and_ratings_make_its_risk(project):
    found = flips_of(project, "--examples", "4", "--keep", "2")
    with Records.open(project) as records:
        assert {stored.flip.id for stored in records.flip_table.all()} == {flip.id for flip in found}
    for n, flip in enumerate(found):
        done = run("rate", project, flip.id, "--plausible", "4", "--agrees", str(1 + n % 5), "--author", "ann")
        assert done.exit_code == 0, done.output
    told = from_json(Risk, json.dumps(json.loads(run("risk", project, "--json").stdout)))
    ids = {flip.id: n for n, flip in enumerate(found)}  # the same flip may come twice; the last rating stands
    assert told.n == len(ids)
    assert told.value == pytest.approx(sum(4 - n % 5 for n in ids.values()) / len(ids))
    first, *rest = run("risk", project).stdout.splitlines()
    assert first.startswith(f"risk {told.value:.2f} of 4")
    assert any(line.startswith("  generator hotflip: ") for line in rest)


def test_a_language_model_is_asked_for_where_one_is_needed(model):
    done = run("flips", "--model", model, "--text", "The soup was cold.", "--method", "masked_lm")
    assert done.exit_code == 2
    assert "--language-model" in done.stderr


def test_a_language_model_can_be_given(model, tmp_path):
    tiny.language_model().save(tmp_path / "lm")
    given = ("--method", "masked_lm", "--language-model", str(tmp_path / "lm"))
    (flip,) = flips_of("--model", model, "--text", "The soup was cold.", *given)
    assert flip.recipe.name == "masked_lm"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--method", "hotflop"), 2, "Did you mean 'hotflip'"),
        (("--search", "beam"), 2, "--search takes NAME=VALUE"),
        (("--search", "bean=3"), 2, "no search option 'bean'"),
        (("--set", "candidates=x"), 2, "candidates must be"),
        (("--target", "strange"), 2, "no label 'strange'"),
        (("--rationale", "--choose", "best"), 2, "There is no 'best' among the rationales"),
    ],
)
def test_mistakes_are_told_in_a_sentence(model, words, code, said):
    done = run("flips", "--model", model, "--text", "The soup was cold.", *words)
    assert done.exit_code == code
    assert said in done.stderr


def test_rating_says_what_is_missing(project):
    assert "Rate something" in run("rate", project, "0" * 16).stderr
    unknown = run("rate", project, "0" * 16, "--agrees", "3")
    assert unknown.exit_code == 3
    assert run("risk", project).exit_code == 0
