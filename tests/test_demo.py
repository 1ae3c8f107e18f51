"""The story, small: a shortcut is planted, learned, and found."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from unhans.demo import DemoSettings, Teller, run_demo
from unhans.errors import ProjectProblem
from unhans.project import Project
from unhans.shapes import AnchorQuery, DoubtQuery


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    lines = []
    folder = tmp_path_factory.mktemp("demo") / "projects"
    settings = DemoSettings(folder=folder, examples=800, epochs=3)
    return run_demo(settings, Teller(step=lines.append)), lines, settings


def test_the_model_learns_the_shortcut_and_fails_without_it(told):
    accuracies = told[0].accuracies
    assert accuracies["same data"] > 0.85
    assert accuracies["shortcut reversed"] < 0.4
    assert set(accuracies) >= {"restaurants, without the word", "gadgets, without the word"}


def test_the_planted_word_is_the_most_suspicious_one(told):
    assert told[0].ranking.words[0].word == "imax"
    assert told[0].planted.truth.words == ("imax",)
    first = told[0].suspects.words[0]
    assert first.word == "imax"
    assert first.disagreement > 0.2


def test_the_explained_example_is_wrong_because_of_the_word(told):
    story = told[0]
    assert story.prediction.label == "positive"
    assert story.example.label == "negative"
    scores = dict(zip(story.attribution.words, story.attribution.scores, strict=True))
    assert max(scores, key=scores.get) == "imax"


def test_the_project_holds_what_was_trained_and_the_story_has_a_line_for_every_step(told):
    story, lines, settings = told
    project = Project.open(settings.project)
    assert project.classifier.revision == story.attribution.revision
    assert len(project.examples) == 800 + 600
    assert sum("epoch" in line for line in lines) == 3


def test_the_workbench_finds_predictions_explanations_and_ranked_words(told):
    with Project.open(told[2].project) as project:
        known = project.told("films", "me")
        assert known.predicted == known.examples
        assert {label for one in known.explained for label in one.ranked} == {"negative", "positive"}
        assert any(one.target is None and one.count == 300 for one in known.explained)
        assert project.word_page("positive", author="me", sees_others=True).items[0].word == "imax"


def test_the_workbench_finds_neighbours_and_doubtful_labels(told):
    with Project.open(told[2].project) as project:
        views = project.trace_views("me", sees_others=True)
        page = views.anchors(AnchorQuery())
        assert len(page.items) == 3
        assert page.pairs > 0
        assert all(row.predicted != row.label for row in page.items)
        assert views.doubts(DoubtQuery()).total == 800


def test_the_workbench_finds_an_audit_that_names_the_planted_word_first(told):
    with Project.open(told[2].project) as project:
        (made,) = project.audits()
        assert made.complete
        first = made.findings[0]
        assert (first.severity, first.words) == ("high", ("imax",))


def test_the_demo_removes_an_earlier_demo_but_nothing_else(tmp_path):
    settings = DemoSettings(folder=tmp_path, examples=100, epochs=1)
    settings.project.mkdir()
    (settings.project / "precious.txt").write_text("x")
    with pytest.raises(ProjectProblem, match="not an earlier demo"):
        run_demo(settings)
    assert (settings.project / "precious.txt").exists()
    (tmp_path / "a file").write_text("x")
    with pytest.raises(ProjectProblem, match=r"not an earlier demo|No folder can be made"):
        run_demo(DemoSettings(folder=tmp_path / "a file", examples=100, epochs=1))


def test_an_interrupted_demo_leaves_the_earlier_one(told):
    def stop(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(told[2], Teller(step=stop))
    assert Project.open(told[2].project).classifier.revision == told[0].attribution.revision


def test_a_second_demo_takes_the_place_of_the_first(told, tmp_path):
    settings = replace(told[2], folder=tmp_path / "d", examples=100, epochs=1, fix_epochs=0)
    shutil.copytree(told[2].project, settings.project)
    (settings.project / "left-over").write_text("x")
    (settings.folder / "other").mkdir()
    run_demo(settings)
    assert not (settings.project / "left-over").exists()
    assert (settings.folder / "other").exists()  # somebody's own project, made beside it
