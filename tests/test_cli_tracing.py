"""The training examples behind what a model says, on the command line: trace, neighbours, augment, doubts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tiny
from small_project import QUICK, examples, make
from unhans.cli import main
from unhans.cli.tracing import _kept
from unhans.records import Records
from unhans.types import Copy, Doubt, Feedback, Influence, NeighbourRating, Recipe, Relabel, from_json

FAST = [part for name, value in QUICK.items() for part in ("--train", f"{name}={value}")]
ANY = ("--any", "--method", "embedding_neighbours")
DROPPED = ("--method", "word_dropout", "--check", "none")  # needs neither WordNet nor a language model


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "p"
    make(folder).close()
    assert run("trace", str(folder), "--any", "--anchors", "3", "--top", "4").exit_code == 0
    return folder


@pytest.fixture
def project(template, tmp_path):
    """A project of one's own in which something was traced: made once, copied for each test."""
    return str(shutil.copytree(template, tmp_path / "p"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny.save_folder(tmp_path_factory.mktemp("model") / "bert"))


def run(*words: str, said: str | None = None) -> Result:
    return CliRunner().invoke(main, list(words), input=said)


def lines(done: Result) -> list[str]:
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def traced(*words: str) -> list[Influence]:
    return [from_json(Influence, line) for line in lines(run("trace", *words, "--json"))]


def first_pair(project: str) -> tuple[str, str]:
    anchor = json.loads(run("neighbours", project, "--json").stdout)[0]["id"]
    return anchor, json.loads(run("neighbours", project, "--anchor", anchor, "--json").stdout)["helpful"][0]["example"][
        "id"
    ]


def written(path: Path, pairs: bool = False) -> str:
    head = "text,pair,label,split\n" if pairs else "text,label,split\n"
    rows = (f"{e.text},{'it was so,' if pairs else ''}{e.label},{e.split}\n" for e in examples(18))
    path.write_text(head + "".join(rows))
    return str(path)


# -- trace


def test_a_trace_shows_each_anchor_with_what_helped_and_what_worked_against_it(project):
    found = traced(project, "--any", "--anchors", "2", "--top", "3")
    shown = run("trace", project, "--any", "--anchors", "2", "--top", "3").stdout
    trained = {e.id: e for e in examples() if e.split == "train"}
    assert len(found) == 2
    for one in found:
        assert {n.train for n in (*one.helpful, *one.harmful)} <= set(trained)
        assert one.example not in trained
        assert f"{one.example}: given {one.label}" in shown
        assert all(f"{n.score:+.3g}" in shown for n in (*one.helpful, *one.harmful))
    assert "2 traced among 24 training examples" in shown
    assert f"Next: unhans neighbours {project} --ask" in shown


def test_anchors_can_be_named_typed_or_chosen_by_a_pattern(project):
    named = traced(project, "--id", "e4", "--id", "e10", *ANY)
    assert [one.example for one in named] == ["e4", "e10"]
    (typed,) = traced(project, "--text", "the soup was great", *ANY, "--top", "2")
    assert len(typed.helpful) <= 2
    having = traced(project, *ANY, "--heuristic", "contains_word", "--set-heuristic", "word=phone", "--anchors", "9")
    assert {one.example for one in having} == {e.id for e in examples() if e.split == "test" and "phone" in e.text}
    inside = traced(project, *ANY, "--split", "train", "--anchors", "1")
    assert next(e for e in examples() if e.id == inside[0].example).split == "train"


def test_what_is_typed_is_not_kept_by_a_project(project):
    before = run("neighbours", project, "--json").stdout
    traced(project, "--text", "the soup was great", *ANY)
    assert run("neighbours", project, "--json").stdout == before


@pytest.mark.parametrize("pairs", [False, True])
def test_a_model_and_data_will_do_without_a_project(model, tmp_path, pairs):
    data = written(tmp_path / "data.csv", pairs)
    found = traced("--model", model, "--data", data, *ANY, "--anchors", "2", "--of", "prediction")
    assert [dict(one.recipe.options)["of"] for one in found] == ["prediction"] * 2
    shown = run("trace", "--model", model, "--data", data, *ANY, "--anchors", "1").stdout
    assert ("‖" in shown) == pairs
    assert "keeps" not in shown


def test_texts_are_traced_to_a_file_of_training_examples(model, tmp_path):
    data = written(tmp_path / "data.csv")
    asked = ("--model", model, "--text", "the soup was great", "--train", data, *ANY)
    (found,) = traced(*asked)
    assert found.helpful
    Path(data).write_text(Path(data).read_text().replace("text,label", "text,which").replace("positive", "good"))
    odd = run("trace", *asked)
    assert (odd.exit_code, "--label-column, or say" in odd.stderr) == (3, True), odd.output
    named = ("--label-column", "which", "--labels", "good=positive,negative=negative")
    assert traced(*asked, *named)[0].helpful == found.helpful


def test_a_text_with_nothing_behind_it_is_said_so(model, tmp_path):
    (tmp_path / "one.csv").write_text("text,label\nthe soup was great,positive\n")
    done = run("trace", "--model", model, "--text", "the soup was great", "--train", str(tmp_path / "one.csv"))
    assert "No other training example helped" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--method", "magic"), 2, "There is no 'magic' among the influences"),
        (("--set", "depth"), 2, "--set takes NAME=VALUE"),
        (("--set", "depht=2"), 2, "depht"),
        (("--id", "nobody"), 3, "There is no example 'nobody'"),
        (("--split", "dev"), 2, "There is no split 'dev'"),
        (("--heuristic", "magic"), 2, "There is no 'magic' among the heuristics"),
        (("--heuristic", "contains_word"), 2, "word"),
        (("--set-heuristic", "word=x"), 2, "name one"),
        (("--any", "--heuristic", "contains_word", "--set-heuristic", "word=zebra"), 3, "none can be an anchor"),
        (("--train", "x.csv"), 2, "leave --train out"),
        (("--id", "e4", "--heuristic", "negation"), 2, "choose examples to trace"),
        (("--text", "good", "--split", "dev"), 2, "choose examples to trace"),
    ],
)
def test_mistakes_are_told_in_a_sentence(project, words, code, said):
    done = run("trace", project, *words)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


def test_a_text_alone_has_no_training_examples(model):
    done = run("trace", "--model", model, "--text", "x")
    assert (done.exit_code, "--train FILE" in done.stderr) == (2, True)


# -- neighbours


def test_what_was_traced_is_listed_and_shown(project):
    rows = json.loads(run("neighbours", project, "--json").stdout)
    assert len(rows) == 3
    shown = run("neighbours", project).stdout
    assert all(row["id"] in shown for row in rows)
    assert "0 of" in shown
    anchor, train = first_pair(project)
    assert train in run("neighbours", project, "--anchor", anchor).stdout
    run("trace", project, "--id", anchor, "--method", "representer")
    assert "- Fitted again with weight decay" in run("neighbours", project, "--anchor", anchor).stdout


def test_two_are_rated_by_their_ids(project):
    anchor, train = first_pair(project)
    entry = from_json(
        Feedback, run("neighbours", project, "--rate", anchor, train, "4", "--author", "ann", "--json").stdout
    )
    assert (entry.says, entry.author) == (NeighbourRating(anchor, train, 4), "ann")
    with Records.open(project) as records:
        assert [one.says for one in records.log.opinions(kinds=("neighbour_rating",))] == [entry.says]
    assert "Rated." in run("neighbours", project, "--rate", anchor, train, "5").stdout


def test_pairs_are_asked_about_one_after_the_other(project):
    done = run("neighbours", project, "--ask", said="9\n3\ns\n5\nq\n")
    assert done.exit_code == 0, done.output
    assert "2 rated. Next: unhans augment" in done.stdout
    assert "1 of" not in done.stdout
    rated = sum(row["rated"] for row in json.loads(run("neighbours", project, "--json").stdout))
    assert rated == 2
    rest = run("neighbours", project, "--ask", said="1\n" * 50)
    assert "no more wait for you" in rest.stdout
    assert "0 rated; no more" in run("neighbours", project, "--ask", said="").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--rate", "nobody", "e0", "3"), 3, "was not found behind"),
        (("--rate", "e4", "e0", "6"), 2, "6"),
        (("--rate", "e4", "e0", "3", "--ask"), 2, "Give one of"),
        (("--anchor", "nobody"), 3, "There is no example 'nobody'"),
    ],
)
def test_what_cannot_be_rated_is_refused(project, words, code, said):
    done = run("neighbours", project, *words)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


# -- augment


def test_copies_are_made_listed_taken_away_and_trained_on(project):
    anchor, train = first_pair(project)
    run("neighbours", project, "--rate", anchor, train, "2")
    made = [
        from_json(Copy, line) for line in lines(run("augment", project, *DROPPED, "--copies-per-point", "2", "--json"))
    ]
    assert {one.source for one in made} == {train}
    assert 1 <= len(made) <= 4
    assert made[0].text in run("augment", project, "--list").stdout
    left = json.loads(run("augment", project, "--delete", made[0].id, "--json").stdout)
    assert {one["id"] for one in left} == {one.id for one in made[1:]}
    run("augment", project, *DROPPED, "--copies-per-point", "3")  # more of them
    fixed = run("fix", project, "--fix", "similarity_augmentation", *FAST, "--json")
    assert fixed.exit_code in (0, 4), fixed.output
    assert json.loads(fixed.stdout)["revision"] == "r1"


def test_copies_are_previewed(project):
    anchor, train = first_pair(project)
    run("neighbours", project, "--rate", anchor, train, "5")
    done = run("augment", project, *DROPPED, "--copies-per-point", "1", "--id", train)
    assert done.exit_code == 0, done.output
    assert f"{train} (" in done.stdout
    assert "1 training examples" in done.stdout
    assert "were asked for" not in done.stdout
    assert f"unhans fix {project} --fix similarity_augmentation" in done.stdout
    many = run("augment", project, *DROPPED, "--copies-per-point", "100", "--id", train).stdout
    assert "500 were asked for. The rest could not be made" in many


def test_a_language_model_says_how_words_fit_in_and_nothing_of_labels():
    by = {check: Recipe("augmentations", "synonyms", (("check", check),)) for check in ("model", "language_model")}
    told = [_kept(Copy("e0", "text", None, "positive", recipe, 0.5)) for recipe in by.values()]
    assert told == ["[label holds 50%] ", "[fits in 50%] "]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--method", "magic"), 2, "There is no 'magic' among the augmentations"),
        (("--set", "share"), 2, "--set takes NAME=VALUE"),
        (("--delete", "0" * 16), 3, "There is no"),
        (("--id", "nobody"), 3, "There is no example 'nobody'"),
    ],
)
def test_copies_that_cannot_be_made_are_refused(project, words, code, said):
    done = run("augment", project, *words)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


# -- doubts


def test_labels_are_doubted_in_their_order_and_corrected(project):
    found = [from_json(Doubt, line) for line in lines(run("doubts", project, "--sign", "low_confidence", "--json"))]
    assert {one.example for one in found} == {e.id for e in examples() if e.split == "train"}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    shown = run("doubts", project, "--sign", "low_confidence", "--top", "2").stdout
    assert found[0].example in shown
    assert "the first 2 of 24" in shown
    said = run("doubts", project, "--relabel", "e0", "positive", "--drop", "e1", "--author", "ann")
    assert "2 stored. Next: unhans fix" in said.stdout
    with Records.open(project) as records:
        kept = {one.says.example: one.says for one in records.log.opinions(kinds=("relabel",))}
    assert kept == {"e0": Relabel("e0", "positive"), "e1": Relabel("e1", None)}
    tested = next(e.id for e in examples() if e.split == "test")
    assert "No training example is among them" in run("doubts", project, "--relabel", tested, "positive").stdout


def test_labels_of_a_file_are_doubted_without_a_project(model, tmp_path):
    given = ("--model", model, "--data", written(tmp_path / "data.csv"), "--sign", "low_confidence")
    assert len(lines(run("doubts", *given, "--json"))) == len([e for e in examples(18) if e.split == "train"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--sign", "magic"), 2, "There is no 'magic' among the doubts"),
        (("--relabel", "e0", "neutral"), 2, "no such label"),
        (("--relabel", "nobody", "positive"), 3, "There is no such example"),
        (("--text", "x"), 2, "not trained on"),
        (("--relabel", "e0", "positive", "--drop", "e0"), 2, "Two things are said of 'e0'"),
    ],
)
def test_doubts_that_make_no_sense_are_refused(project, words, code, said):
    done = run("doubts", project, *words)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
