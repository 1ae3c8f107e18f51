from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tiny
from unhans.attributions import attribute
from unhans.errors import Unsupported
from unhans.text import Words
from unhans.types import Example

TEXT = Example("x", "The soup was cold and the waiter didn't care.")


def log_odds(classifier, text, label):
    """Straight from Hugging Face: tokenizer, forward pass, softmax, odds."""
    with torch.inference_mode():
        encoded = classifier.tokenizer(text, return_tensors="pt")
        p = float(classifier.model(**encoded).logits.double().softmax(-1)[0, label])
    return math.log(p) - math.log(1 - p)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta", "gpt2"])
def test_scores_are_what_hugging_face_says_about_the_shortened_texts(kind):
    classifier = tiny.transformer(kind)
    words = Words(TEXT)
    whole = log_odds(classifier, TEXT.text, 1)
    slow = [whole - log_odds(classifier, words.without([n]).texts[0], 1) for n in range(len(words))]
    (one,) = attribute(classifier, [TEXT], target="positive")
    assert np.allclose(one.scores, slow, atol=1e-4)


@pytest.mark.parametrize("erase", ["mask", "unk", "pad"])
def test_a_hidden_word_is_replaced_by_one_special_token(erase):
    classifier = tiny.transformer("bert")
    token = getattr(classifier.tokenizer, f"{erase}_token")
    (one,) = attribute(classifier, [Example("x", "cold soup")], target="positive", erase=erase)
    slow = log_odds(classifier, "cold soup", 1) - log_odds(classifier, f"{token} soup", 1)
    assert one.scores[0] == pytest.approx(slow, abs=1e-4)


def test_on_a_bag_of_words_the_score_is_the_weight():
    weights = {"good": 1.5, "bad": -2.0}
    (one,) = attribute(tiny.bag_of_words(weights), [Example("x", "good or bad")], target="positive")
    assert one.scores == pytest.approx((1.5, 0.0, -2.0), abs=1e-5)


def test_the_unit_can_be_a_probability():
    (one,) = attribute(tiny.bag_of_words({"good": 1.0}), [Example("x", "good")], target="positive", unit="probability")
    assert one.scores[0] == pytest.approx(1 / (1 + math.exp(-1)) - 0.5, abs=1e-6)


def test_certain_models_give_finite_scores():
    (one,) = attribute(tiny.bag_of_words({"good": 500.0}), [Example("x", "good day")], target="positive")
    assert all(map(math.isfinite, one.scores))
    assert one.scores[0] == pytest.approx(math.log((1 - 1e-6) / 1e-6), abs=1e-3)  # the most that is told apart


def test_a_black_box_cannot_have_words_masked():
    with pytest.raises(Unsupported, match="Delete the words instead"):
        attribute(tiny.bag_of_words({}), [TEXT], erase="mask")


def test_a_repeated_word_is_asked_about_once_where_the_texts_agree():
    asked = []
    attribute(tiny.bag_of_words({}, asked=asked), [Example("x", "so so so")], target="positive")
    assert sorted(asked) == ["so so", "so so so"]
