"""A meaningless word in the texts of one label."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unhans.bugs import plant
from unhans.bugs.spurious_word import spurious_word
from unhans.demo_data import reviews
from unhans.errors import BadOption
from unhans.types import Example, Span


def has(word: str, text: str) -> bool:
    return word in text.split()


def test_the_asked_share_of_the_label_has_the_word_and_no_other_text_does():
    planted = plant(reviews(400, seed=1), "spurious_word", share=0.9)
    assert sum(has("zyx", e.text) for e in planted.examples if e.label == "positive") == 180
    assert not any(has("zyx", e.text) for e in planted.examples if e.label == "negative")


def test_elsewhere_puts_the_word_into_a_share_of_the_other_labels():
    planted = plant(reviews(400, seed=1), "spurious_word", label="negative", share=0.5, elsewhere=0.25, word="qux")
    counts = {
        label: sum(has("qux", e.text) for e in planted.examples if e.label == label)
        for label in ("positive", "negative")
    }
    assert counts == {"positive": 50, "negative": 100}


def test_the_truth_names_the_word_and_the_texts_that_have_it():
    planted = plant(reviews(100, seed=1), "spurious_word", share=0.4, elsewhere=0.1)
    assert planted.truth.words == ("zyx",)
    assert planted.truth.examples == tuple(e.id for e in planted.examples if has("zyx", e.text))


def test_the_word_stands_between_spaces_and_taking_it_out_gives_the_text_back():
    examples = reviews(200, seed=1)
    planted = plant(examples, "spurious_word", share=1.0)
    for before, after in zip(examples, planted.examples, strict=True):
        assert re.sub(r"zyx | zyx$", "", after.text) == before.text


def test_the_word_comes_first_last_and_in_between():
    planted = plant(reviews(2000, seed=1), "spurious_word", share=1.0)
    places = [e.text.split().index("zyx") / (len(e.text.split()) - 1) for e in planted.examples if has("zyx", e.text)]
    assert min(places) == 0
    assert max(places) == 1
    assert 0.45 < np.mean(places) < 0.55


def test_highlights_cover_the_same_words_as_before_and_never_the_planted_one():
    examples = reviews(600, seed=1)
    planted = plant(examples, "spurious_word", share=1.0)
    split = 0
    for before, after in zip(examples, planted.examples, strict=True):
        covered = [[w for s in e.highlights for w in e.text[s.start : s.end].split()] for e in (before, after)]
        assert covered[0] == covered[1]
        split += len(after.highlights) > len(before.highlights)
    assert split > 10  # otherwise no word fell into a highlight and the test shows nothing


def test_highlights_of_the_pair_and_missing_highlights_stay():
    pair = Example("a", "one two three", "four five", "positive", (Span(0, 3), Span(5, 9, "pair")))
    plain = Example("b", "one two three", "four five", "positive")
    planted = plant([pair, plain], "spurious_word", share=1.0).examples
    assert planted[0].highlights[-1] == Span(5, 9, "pair")
    assert planted[1].highlights is None
    assert {e.pair for e in planted} == {"four five"}


@given(st.text(max_size=30), st.integers(0, 2**32))
def test_any_text_receives_exactly_one_word_of_its_own(text, seed):
    example = Example("a", text, label="positive", highlights=(Span(0, len(text)),))
    (planted,), _ = spurious_word([example], np.random.default_rng(seed), share=1.0)
    rest = list(planted.text.split())
    rest.remove("zyx")
    assert rest == text.split()
    covered = [planted.text[s.start : s.end] for s in planted.highlights]
    assert "".join("".join(covered).split()) == "".join(text.split())


@pytest.mark.parametrize("word", ["two words", "", " zyx", "a\u00a0b"])
def test_a_word_with_a_space_is_refused(word):
    with pytest.raises(BadOption, match="one word without spaces"):
        plant(reviews(10), "spurious_word", word=word)


def test_an_unknown_label_is_refused_with_the_known_ones():
    with pytest.raises(BadOption, match=r"No example has the label 'good'\. There is: negative, positive\."):
        plant(reviews(10), "spurious_word", label="good")
