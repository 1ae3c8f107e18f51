"""Exact products of gradients: against torch's own."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from traced import examples, plain_gradients
from unhans.errors import Cancelled
from unhans.influences import prepare
from unhans.influences._gradients import Gradients


@pytest.mark.parametrize("kind", ["bert", "albert", "gpt2", "llama", "averaging"])
def test_products_are_those_of_whole_gradients(kind):
    classifier = tiny.transformer(kind)
    train = examples()
    whole = plain_gradients(classifier, train, Gradients(classifier).layers)
    index = prepare(classifier, train, method="gradient_dot")
    expected = whole @ whole.T
    assert np.allclose(index.scores(train[:5]), expected[:5], atol=1e-4 * np.abs(expected).max())
    assert np.allclose(index.self_influence(), np.diag(expected), rtol=1e-3)


def test_a_stop_is_heard_while_the_training_examples_pass():
    stop = []
    index = prepare(tiny.transformer(), examples(), method="gradient_dot", cancelled=lambda: bool(stop))
    stop.append(True)
    with pytest.raises(Cancelled):
        index.scores("A good book.")
