"""What every sign of a wrong label must obey, whatever it looks at."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shortcut
import tiny
from unhans.doubts import DEFAULT, doubt, doubts, usable
from unhans.errors import Cancelled, Unsupported
from unhans.types import Doubt, Example, from_json, to_json

SIGNS = [entry.name for entry in doubt]
INSIDE = [entry.name for entry in doubt if "gradients" in entry.needs]
OUTSIDE = [entry.name for entry in doubt if "gradients" not in entry.needs]
BAG = tiny.bag_of_words({"good": 2.0, "bad": -2.0})


def taught_three_times():
    """Sixty texts, each there three times, and the ids of five copies with another label than the other two."""
    labels = ("negative", "positive", "neither")
    some = shortcut.texts(labels)[:60]
    examples = [replace(e, id=f"{e.id}-{n}") for n in range(3) for e in some]
    wrong = {f"{e.id}-0" for e in some[::12]}
    other = dict(zip(labels, labels[1:] + labels[:1], strict=True))
    return [replace(e, label=other[e.label]) if e.id in wrong else e for e in examples], wrong


def mixed(labels):
    """Texts of every kind: pairs, one word, none, signs only, a word the model has never seen."""
    texts = [
        *tiny.SENTENCES[:8],
        *("wonderful", "", " ... !", "日本語 😀 [MASK] go\u200bod"),
        *[("She liked the book.", "He did not."), ("She liked the book.", ""), ("", "")],
    ]
    examples = []
    for n, text in enumerate(texts):
        first, second = text if isinstance(text, tuple) else (text, None)
        examples.append(Example(f"e{n}", first, second, labels[n % len(labels)]))
    return examples


def ranks(found: list[Doubt], name: str) -> dict[str, float]:
    return {one.example: dict(one.signs)[name] for one in found}


def test_the_family_has_the_signs_we_promise():
    promised = {"self_influence", "low_confidence", "neighbour_disagreement", "confident_learning", "contradiction"}
    assert set(SIGNS) >= promised
    assert set(DEFAULT) <= set(SIGNS)
    assert not doubt.broken


@pytest.mark.parametrize("name", SIGNS)
def test_every_sign_says_what_it_is(name):
    assert doubt[name].summary.endswith(".")
    assert doubt[name].facts["paper"]
    assert doubt[name].needs


@pytest.mark.parametrize("name", SIGNS)
def test_a_wrong_label_comes_first(name):
    train, wrong = taught_three_times()
    found = doubts(shortcut.classifier(3), train, signs=[name])
    assert {one.example for one in found[: len(wrong)]} == wrong


@pytest.mark.parametrize("name", SIGNS)
def test_equal_texts_under_equal_labels_have_equal_doubts(name):
    train, _ = taught_three_times()
    found = {one.example: one for one in doubts(shortcut.classifier(3), train, signs=[name])}
    seen: dict[tuple[str, str | None], Doubt] = {}
    for example in train:
        first = seen.setdefault((example.text, example.label), found[example.id])
        assert found[example.id].score == first.score
        assert found[example.id].suggested == first.suggested


@pytest.mark.parametrize("kind", ["bert", "gpt2", "averaging"])
@pytest.mark.parametrize("name", SIGNS)
def test_texts_of_every_kind_are_looked_at(name, kind):
    classifier = tiny.transformer(kind, labels=3)
    train = mixed(classifier.labels)
    found = doubts(classifier, [*train, Example("unlabelled", "a text")], signs=[name])
    assert sorted(one.example for one in found) == sorted(example.id for example in train)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert 0 <= one.score < 1
        assert dict(one.signs).keys() == {name}
        assert 0 <= dict(one.signs)[name] < 1
        assert one.suggested in classifier.labels
        assert one.revision == classifier.revision
        assert from_json(Doubt, to_json(one)) == one


@pytest.mark.parametrize("name", SIGNS)
def test_few_examples_are_enough(name):
    classifier = tiny.transformer()
    alone = doubts(classifier, [Example("only", "A film.", label="positive")], signs=[name])
    assert [one.score for one in alone] == [0.0]
    two = [Example("1", "A film.", label="positive"), Example("2", "A soup.", label="positive")]
    assert len(doubts(classifier, two, signs=[name])) == 2


@pytest.mark.parametrize("name", SIGNS)
def test_the_same_call_gives_the_same(name, tmp_path):
    classifier = tiny.transformer(labels=3)
    train = mixed(classifier.labels)
    first, again, kept, from_there = (
        doubts(classifier, train, signs=[name], folder=folder, seed=3)
        for folder in (None, None, tmp_path / "kept", tmp_path / "kept")
    )
    assert first == again == kept == from_there


@pytest.mark.parametrize("name", SIGNS)
def test_it_tells_how_far_it_is_and_can_be_stopped(name):
    classifier, told = tiny.transformer(), []
    train = mixed(classifier.labels)
    doubts(classifier, train, signs=[name], progress=lambda *so_far: told.append(so_far))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    with pytest.raises(Cancelled, match="Stopped"):
        doubts(classifier, train, signs=[name], cancelled=lambda: True)


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_black_box_can_be_asked(name):
    found = doubts(BAG, [Example("1", "good", label="negative"), Example("2", "bad", label="negative")], signs=[name])
    assert len(found) == 2


@pytest.mark.parametrize("name", INSIDE)
def test_what_looks_inside_refuses_a_black_box_and_says_what_works(name):
    with pytest.raises(Unsupported, match="low_confidence"):
        doubts(BAG, [Example("1", "good", label="negative")], signs=[name])


def test_a_black_box_gets_all_the_signs_it_can_serve():
    assert set(usable(BAG)) == set(DEFAULT) & set(OUTSIDE)
    assert set(usable(tiny.transformer())) == set(DEFAULT)
