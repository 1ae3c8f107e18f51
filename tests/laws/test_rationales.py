"""What every way to choose a rationale must obey, whatever it chooses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import tiny
from unhans.attributions import attribute
from unhans.errors import BadOption
from unhans.rationales import rationale, rationale_of, select
from unhans.text import Words
from unhans.types import Example, Rationale, from_json, to_json

METHODS = [entry.name for entry in rationale]
EXAMPLES = (
    Example("long", "The soup was cold. The waiter didn't care!"),
    Example("short", "wonderful"),
    Example("pair", "She liked the book.", "He did not like the ending!"),
    Example("odd", "日本語 😀 [MASK] go\u200bod"),
    Example("empty", ""),
)
BYS = ("text", "sentence")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("labels", [2, 3])
def test_chosen_words_are_words_of_the_text_for_the_label_and_model_explained(method, by, labels):
    classifier = tiny.transformer(labels=labels)
    found = select(classifier, EXAMPLES, method=method, by=by)
    assert [one.label for one in found] == classifier.predict(EXAMPLES).labels
    for one, example in zip(found, EXAMPLES, strict=True):
        assert (one.example, one.revision) == (example.id, classifier.revision)
        assert (one.words, one.spans) == (Words(example).strings, Words(example).spans)
        assert one.chosen == tuple(sorted(set(one.chosen)))
        assert all(0 <= n < len(one.words) for n in one.chosen)
        assert from_json(Rationale, to_json(one)) == one


@pytest.mark.parametrize("method", METHODS)
def test_a_label_asked_for_is_the_label_explained(method):
    classifier = tiny.transformer(labels=3)
    for label in classifier.labels:
        assert {one.label for one in select(classifier, EXAMPLES, method=method, target=label)} == {label}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", BYS)
def test_words_that_were_not_read_are_never_chosen(method, by):
    long = Example("x", " ".join(["the soup was cold and."] * 12))
    (one,) = attribute(tiny.transformer(), [long])
    assert one.unread
    for never_empty in (False, True):
        found = rationale_of(one, text=long, method=method, by=by, counts="absolute", never_empty=never_empty)
        assert found.chosen
        assert not set(found.chosen) & set(one.unread)


@pytest.mark.parametrize("method", METHODS)
def test_each_rationale_belongs_to_its_own_text(method):
    classifier = tiny.transformer()
    forwards = select(classifier, EXAMPLES, method=method, target="positive")
    assert forwards == select(classifier, EXAMPLES[::-1], method=method, target="positive")[::-1]
    assert forwards == [select(classifier, [e], method=method, target="positive")[0] for e in EXAMPLES]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", BYS)
def test_a_text_without_words_has_an_empty_rationale(method, by):
    for text in ("", " \u200b "):
        (one,) = select(tiny.transformer(), [Example("x", text)], method=method, by=by, never_empty=True)
        assert one.chosen == one.words == ()


@pytest.mark.parametrize("method", METHODS)
def test_the_one_word_that_speaks_for_the_label_is_chosen(method):
    bag = tiny.bag_of_words({"good": 2.0})
    (one, alone) = select(bag, ["a good film", "good"], method=method, target="positive")
    assert one.chosen == (1,)
    assert alone.chosen == (0,)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", BYS)
def test_where_nothing_speaks_for_the_label_nothing_is_chosen_unless_asked_for(method, by):
    bag = tiny.bag_of_words({"bad": -2.0, "poor": -1.0, "film": -3.0})
    text = "bad film. Poor poor film"
    (none,) = select(bag, [text], method=method, target="positive", by=by)
    assert none.chosen == ()
    (best,) = select(bag, ["bad poor film"], method=method, target="positive", by=by, never_empty=True)
    assert best.chosen == (1,)  # least against it
    (against,) = select(bag, ["bad poor film"], method=method, target="positive", by=by, counts="absolute")
    assert 2 in against.chosen


@pytest.mark.parametrize("method", METHODS)
def test_never_empty_changes_only_what_would_be_empty(method):
    classifier = tiny.transformer()
    for plain, filled in zip(
        select(classifier, EXAMPLES, method=method),
        select(classifier, EXAMPLES, method=method, never_empty=True),
        strict=True,
    ):
        assert filled.chosen == plain.chosen or (not plain.chosen and len(filled.chosen) == 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_size_of_the_scores_does_not_matter(method):
    (one,) = attribute(tiny.transformer(), EXAMPLES[:1])
    larger = replace(one, scores=tuple(4.0 * score for score in one.scores))
    assert rationale_of(one, method=method).chosen == rationale_of(larger, method=method).chosen


@pytest.mark.parametrize("method", METHODS)
def test_slow_tokenizers_work_too(method):
    classifier = tiny.transformer(tokenizer=tiny.bytes_tokenizer())
    (one,) = select(classifier, ["cold soup"], method=method, counts="absolute")
    assert one.words == ("cold", "soup")
    assert one.chosen


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("attribution", ["input_x_gradient", "saliency", "random"])
def test_any_attribution_will_do_and_the_recipe_names_it(method, attribution):
    (one,) = select(tiny.transformer(), EXAMPLES[:1], method=method, attribution=attribution, seed=7)
    told = dict(one.recipe.options)
    assert (one.recipe.family, one.recipe.name, told["attribution"]) == ("rationales", method, attribution)
    assert one.recipe.seed == (7 if attribution == "random" else None)


@pytest.mark.parametrize("method", METHODS)
def test_whole_sentences_can_be_explained_and_chosen(method):
    (one,) = select(tiny.transformer(), EXAMPLES[:1], method=method, explain={"units": "sentence"}, counts="absolute")
    sentences = Words(EXAMPLES[0], units="sentence").groups
    taken = [set(group) <= set(one.chosen) for group in sentences]
    assert any(taken)
    assert set(one.chosen) == {n for group, whole in zip(sentences, taken, strict=True) if whole for n in group}


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_option_is_refused_before_anything_is_asked(method):
    asked = []
    with pytest.raises(BadOption, match="colour"):
        select(tiny.bag_of_words({}, asked=asked), ["a film"], method=method, colour="red")
    assert asked == []


def test_no_texts_give_no_rationales():
    assert select(tiny.transformer(), []) == []


def test_choosing_needs_no_library_of_models():
    code = (
        "import sys, unhans.rationales as r; from unhans.types import *; r.rationale.names;"
        "one = Attribution('1', 'x', ('a',), (Span(0, 1),), (1.0,), Recipe('f', 'n'), 'r');"
        "assert r.rationale_of(one).chosen == (0,) and r.drawn(Example('1', 'a'), [0], 'x', 'r').chosen == (0,);"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "unhans.rationales.spans" in loaded
    assert not {"torch", "transformers", "unhans.attributions", "unhans.model"} & set(loaded)
