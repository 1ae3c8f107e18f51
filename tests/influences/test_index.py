"""The front door: what is asked, what is shown, what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tiny
import unhans
from traced import examples
from unhans.errors import BadData, BadOption, Unsupported
from unhans.influences import Index, Pushes, Traced, prepare, trace
from unhans.types import Example


def fixed(scores, train=None):
    """An index that always says the same."""
    train = train or [Example(f"t{n}", f"text {n}", label="positive") for n in range(len(scores))]
    line = np.array(scores, float)
    classifier = tiny.bag_of_words({"good": 1.0})
    traced = Traced(lambda anchors, _: Pushes(np.tile(line, (len(anchors), 1)), ("a note",)))
    return Index(classifier, train, range(len(train)), traced)


def test_helpful_and_harmful_are_told_strongest_first():
    index = fixed([0.5, -2, 3, np.nan, 0, 0.5, -1])
    anchor = Example("x", "a text", label="positive")
    helpful, harmful = index.neighbours(anchor, index.scores(anchor)[0], 3)
    assert [(one.train, one.score) for one in helpful] == [("t2", 3), ("t0", 0.5), ("t5", 0.5)]
    assert [(one.train, one.score) for one in harmful] == [("t1", -2), ("t6", -1)]
    assert [len(side) for side in index.neighbours(anchor, index.scores(anchor)[0], 100)] == [3, 2]


def test_a_text_is_no_neighbour_of_its_own_but_its_namesake_may_be():
    train = [Example("1", "the one", label="positive"), Example("2", "the other", label="positive")]
    index = fixed([2, 1], train)
    own, _ = index.neighbours(train[0], np.array([2.0, 1.0]), 5)
    assert [one.train for one in own] == ["2"]
    (anchor,) = index.anchors("a string, numbered 1")
    namesake, _ = index.neighbours(anchor, np.array([2.0, 1.0]), 5)
    assert [one.train for one in namesake] == ["1", "2"]


def test_many_training_examples_are_sorted_as_a_plain_sort_would():
    scores = np.random.default_rng(0).standard_normal(20_000)
    index = fixed(scores)
    helpful, harmful = index.neighbours(Example("x", "y", label="positive"), scores, 10)
    order = np.argsort(-scores)
    assert [one.train for one in helpful] == [f"t{n}" for n in order[:10]]
    assert [one.train for one in harmful] == [f"t{n}" for n in order[::-1][:10]]


def test_a_label_that_is_given_counts_or_what_the_model_says():
    index = fixed([1.0])
    wrong = Example("w", "good good good", label="negative")
    assert [a.label for a in index.anchors([wrong, "good good"])] == ["negative", "positive"]
    assert index.anchors([wrong], of="prediction")[0].label == "positive"
    with pytest.raises(BadData, match="'odd', which the model lacks"):
        index.anchors([Example("w", "good", label="odd")])


def test_what_cannot_be_answered_is_said():
    with pytest.raises(Unsupported, match="Use another one"):
        fixed([1.0]).self_influence()
    classifier = tiny.transformer()
    with pytest.raises(BadData, match="None of the training examples has a label"):
        prepare(classifier, [Example("a", "b")])
    with pytest.raises(BadData, match="'odd', which the model lacks"):
        prepare(classifier, [Example("a", "b", label="odd")])
    with pytest.raises(BadOption, match="top must be at least 1"):
        trace(classifier, "a", examples(), top=0)
    with pytest.raises(BadOption, match="of must be one of label, prediction, not 'labels'"):
        trace(classifier, "a", examples(), of="labels")
    with pytest.raises(BadOption, match="of must be one of"):
        fixed([1.0]).scores("a", of="labels")
    with pytest.raises(BadOption, match="Did you mean 'gradient_dot'"):
        trace(classifier, "a", examples(), method="gradient_dots")


def test_the_whole_way_through_the_door(tmp_path):
    classifier = tiny.transformer()
    told = []
    found = unhans.trace(
        classifier,
        ["A warm room.", "The ending was hard."],
        [*examples(), Example("without", "a label")],
        top=3,
        of="prediction",
        folder=tmp_path,
        progress=lambda *at: told.append(at),
    )
    assert [one.example for one in found] == ["1", "2"]
    assert [one.label for one in found] == classifier.predict(["A warm room.", "The ending was hard."]).labels
    assert all(len(one.helpful) <= 3 and one.revision == classifier.revision for one in found)
    assert found[0].recipe.name == "projected_gradients"
    assert ("of", "prediction") in found[0].recipe.options
    assert told[-1] == (2, 2)
    assert "<table" in found._repr_html_()
    assert unhans.trace(classifier, [], examples()) == []


def test_another_label_or_another_model_is_another_folder(tmp_path):
    train = examples()
    first, second = (tiny.transformer("averaging", seed=seed) for seed in (0, 1))
    other = [Example(e.id, e.text, label="negative") for e in train]
    for _ in range(2):
        prepare(first, train, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    prepare(second, train, folder=tmp_path)
    prepare(first, other, folder=tmp_path)
    prepare(first, train, folder=tmp_path, width=4)
    prepare(first, train, folder=tmp_path, seed=1)
    assert len(list(tmp_path.iterdir())) == 5


def test_nobody_is_sent_for_when_nothing_is_missing(tmp_path, monkeypatch):
    classifier, train = tiny.transformer(), examples()
    here = prepare(classifier, train, method="exact_head", folder=tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed: whoever asks for it is told so
    there = prepare(classifier, train, method="exact_head", folder=tmp_path, on="ray")
    np.testing.assert_array_equal(there.scores(train[:2]), here.scores(train[:2]))
    with pytest.raises(Unsupported, match=r"unhans\[ray\]"):
        prepare(classifier, train[:4], method="exact_head", folder=tmp_path, on="ray")
    with pytest.raises(BadOption, match="Work can be done here"):  # and a slip is one either way
        prepare(classifier, train, method="exact_head", folder=tmp_path, on="rey")
