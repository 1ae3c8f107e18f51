"""The deep averaging network: a classifier like any other."""

from __future__ import annotations

import numpy as np
import torch

import tiny
from unhans.demo_data import reviews
from unhans.loading import load
from unhans.scratch import fresh_averaging_classifier
from unhans.training import Schedule, accuracy, fit
from unhans.types import Example


def test_it_learns_and_loads_again(tmp_path):
    train, test = reviews(600, seed=0), reviews(200, seed=1)
    untrained = fresh_averaging_classifier([e.text for e in train], ["negative", "positive"])
    trained = fit(untrained, train, schedule=Schedule(epochs=5, learning_rate=5e-3))
    assert accuracy(untrained, test) < 0.65
    assert accuracy(trained, test) > 0.75
    again = load(trained.save(tmp_path / "model"))
    assert again.revision == trained.revision
    assert np.allclose(again.log_probs(test), trained.log_probs(test), atol=1e-6)


def test_the_order_of_words_and_padding_do_not_matter():
    classifier = tiny.transformer("averaging")
    together = classifier.logits(classifier.batch([Example("a", "cold soup"), Example("b", "the soup was cold again")]))
    alone = classifier.logits(classifier.batch([Example("c", "soup cold")]))
    assert torch.allclose(together[0], alone[0], atol=1e-6)


def test_it_has_a_plain_path_and_transformers_have_none():
    assert "plain_path" in tiny.transformer("averaging").capabilities
    assert all("plain_path" not in tiny.transformer(kind).capabilities for kind in tiny.KINDS)
