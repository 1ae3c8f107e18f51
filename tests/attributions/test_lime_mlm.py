from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

import tiny
from unhans.attributions import attribute
from unhans.attributions.lime import slopes
from unhans.types import Example

WORDS = ("the", "soup", "was", "cold")
TEXT = " ".join(WORDS)


def explain(classifier, text, **options):
    given = {"method": "lime_bert", "target": 1, "language_model": tiny.language_model()} | options
    return attribute(classifier, text, **given)[0]


def guesses(words):
    """The likeliest whole word at each mask, straight from Hugging Face."""
    tokenizer, model = tiny.bert_tokenizer(), tiny.language_model().model
    encoded = tokenizer(" ".join(words), return_tensors="pt")
    with torch.inference_mode():
        logits = model(**encoded).logits[0]
    usable = [n for t, n in tokenizer.get_vocab().items() if t not in tokenizer.all_special_tokens and t.isalnum()]
    holes = [at for at, token in enumerate(encoded["input_ids"][0].tolist()) if token == tokenizer.mask_token_id]
    return [tokenizer.convert_ids_to_tokens(max(usable, key=lambda n: float(logits[at, n]))) for at in holes]


def filled(mask, fill):
    """The text with the words that are not kept rewritten, one text at a time."""
    words = [word if kept else "[MASK]" for word, kept in zip(WORDS, mask, strict=True)]
    while "[MASK]" in words:
        for new in guesses(words) if fill == "at_once" else guesses(words)[:1]:
            words[words.index("[MASK]")] = new
    return " ".join(words)


@pytest.mark.parametrize("fill", ["at_once", "left_to_right"])
def test_gaps_are_filled_with_the_likeliest_words(fill):
    masks = list(product([False, True], repeat=4))
    texts = [filled(mask, fill) for mask in masks]
    asked = []
    explain(tiny.bag_of_words({}, asked=asked), TEXT, fill=fill)
    assert set(asked) == set(texts)
    classifier = tiny.transformer()
    values = np.exp(classifier.log_probs(texts))[:, 1]
    slow = slopes("paired", 25.0, 1000)[1](np.array(masks), values, np.ones(16))
    assert explain(classifier, TEXT, fill=fill).scores == pytest.approx(slow.tolist(), abs=1e-4)


def test_the_two_ways_to_fill_differ():
    at_once, in_turn = (
        {filled(m, fill) for m in product([False, True], repeat=4)} for fill in ("at_once", "left_to_right")
    )
    assert at_once != in_turn


def test_gaps_beyond_the_language_models_limit_stay_empty():
    asked = []
    names = [f"n{n}" for n in range(45)]
    explain(tiny.bag_of_words({}, asked=asked), " ".join(names), num_samples=40)
    known = set(names)
    assert any(word not in known for text in asked for word in text.split())
    for text in asked:
        last = [n for n, word in enumerate(text.split()) if word not in known]
        rest = text.split()[max(last) + 1 :] if last else []
        assert len(last) <= 31  # as many as the language model can read
        assert all(word in known for word in rest)
    assert any(len(text.split()) < 45 for text in asked)


@pytest.mark.parametrize("fill", ["at_once", "left_to_right"])
def test_a_unit_of_several_words_is_rewritten_word_by_word(fill):
    asked = []
    example = Example("x", "the soup was cold, and the bed was hard")
    explain(tiny.bag_of_words({}, asked=asked), example, units="phrase", fill=fill)
    assert len(asked) == 4
    assert example.text in asked
    assert all(len(text.split()) >= 9 for text in asked)


def test_both_parts_of_a_pair_are_rewritten():
    found = explain(tiny.transformer(), Example("x", "cold soup", "hard bed"))
    assert found.asked == 16
    assert np.all(np.array(found.scores) != 0)


def test_plain_sampling_and_early_stopping_work_here_too():
    found = explain(
        tiny.transformer(labels=3), "the soup was cold and the waiter did not care", sampling="plain", tolerance=0.5
    )
    assert found.asked < 1000
    assert len(found.errors) == 10
