from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tiny
from unhans.attributions import attribute
from unhans.errors import BadOption
from unhans.types import Example

TEXT = "the soup was cold"
WORDS = TEXT.split()


def explain(classifier, text, **options):
    given = {"method": "im", "target": 1, "language_model": tiny.language_model()} | options
    return attribute(classifier, text, **given)[0]


def log_odds(p):
    return math.log(p) - math.log(1 - p)


def label_probability(classifier, text):
    with torch.inference_mode():
        return float(
            classifier.model(**classifier.tokenizer(text, return_tensors="pt")).logits.double().softmax(-1)[0, 1]
        )


def guesses(place):
    """All whole words and their probabilities at a masked place, straight from Hugging Face, likeliest first."""
    tokenizer, model = tiny.bert_tokenizer(), tiny.language_model().model
    text = " ".join([*WORDS[:place], "[MASK]", *WORDS[place + 1 :]])
    encoded = tokenizer(text, return_tensors="pt")
    at = encoded["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.inference_mode():
        line = model(**encoded).logits[0, at].softmax(-1).tolist()
    special = tokenizer.all_special_tokens
    words = {token: line[n] for token, n in tokenizer.get_vocab().items() if token not in special and token.isalnum()}
    return sorted(words.items(), key=lambda pair: -pair[1])


def slow_score(classifier, place, candidates):
    whole = label_probability(classifier, TEXT)
    total = sum(p for _, p in candidates)
    expected = sum(
        p / total * label_probability(classifier, " ".join([*WORDS[:place], word, *WORDS[place + 1 :]]))
        for word, p in candidates
    )
    return log_odds(whole) - log_odds(expected)


@pytest.mark.parametrize("k", [1, 10])
def test_scores_follow_the_formula(k):
    classifier = tiny.transformer()
    slow = [slow_score(classifier, place, guesses(place)[:k]) for place in range(4)]
    assert explain(classifier, TEXT, k=k).scores == pytest.approx(slow, abs=1e-4)


@pytest.mark.parametrize("threshold", [0.02, 1e-5])
def test_likely_words_are_all_that_are_likely_enough_up_to_a_hundred(threshold):
    classifier = tiny.transformer()
    likely = [[pair for pair in guesses(place)[:100] if pair[1] >= threshold] for place in range(4)]
    assert len({len(some) for some in likely}) > 1 or len(likely[0]) == 100
    slow = [slow_score(classifier, place, likely[place]) for place in range(4)]
    found = explain(classifier, TEXT, candidates="likely", threshold=threshold)
    assert found.scores == pytest.approx(slow, abs=1e-4)


def test_a_black_box_is_asked_with_the_language_models_words():
    texts = []
    best = [word for word, _ in guesses(1)[:3]]
    explain(tiny.bag_of_words({"soup": 1.0}, asked=texts), TEXT, k=3)
    assert {f"the {word} was cold" for word in best} <= set(texts)
    assert len(texts) <= 1 + 4 * 3


def test_a_word_without_candidates_is_deleted():
    texts = []
    model = tiny.bag_of_words({"soup": 1.0}, asked=texts)
    found = explain(model, TEXT, candidates="likely", threshold=0.999)
    assert set(texts) == {TEXT, "soup was cold", "the was cold", "the soup cold", "the soup was"}
    assert found.scores == pytest.approx((0, 1, 0, 0), abs=1e-4)


def test_a_word_beyond_the_language_models_limit_is_deleted():
    long = "cold " * 40 + "soup"  # the language model reads 30 of them; a black box reads all
    found = explain(tiny.bag_of_words({"soup": 1.0}), long)
    assert found.scores[40] == pytest.approx(1, abs=1e-4)
    assert found.unread == ()


def test_certain_models_give_finite_scores():
    found = explain(tiny.bag_of_words({"soup": 500.0}), TEXT)
    assert found.scores[1] == pytest.approx(2 * math.log((1 - 1e-6) / 1e-6), rel=0.51)


def test_the_paper_s_warning_comes_with_the_scores():
    warning = explain(tiny.bag_of_words({}), TEXT).terms.warning
    assert "predicts easily" in warning
    assert "49 to 65 %" in warning


def test_a_word_that_the_language_model_expects_scores_nothing_though_it_decides():
    expected = guesses(1)[0][0]
    found = explain(tiny.bag_of_words({expected: 3.0}), TEXT.replace("soup", expected), k=1)
    assert found.words[1] == expected
    assert found.scores[1] == pytest.approx(0, abs=1e-6)


def test_it_explains_words_only():
    with pytest.raises(BadOption, match="single words"):
        explain(tiny.bag_of_words({}), TEXT, units="sentence")


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 101}, {"threshold": -0.1}, {"threshold": 1.0}])
def test_options_without_sense_are_refused(options):
    with pytest.raises(BadOption, match=next(iter(options))):
        explain(tiny.bag_of_words({}), TEXT, **options)


def test_both_parts_of_a_pair_are_rewritten():
    found = explain(tiny.transformer(), Example("x", "cold soup", "hard bed"))
    assert np.all(np.array(found.scores) != 0)
