from __future__ import annotations

import numpy as np

import tiny
from unhans.attributions import attribute
from unhans.types import Example


def test_scores_are_drawn_for_each_text_from_the_seed_and_never_ask_the_model():
    texts = []
    model = tiny.bag_of_words({}, asked=texts)
    examples = [Example("a", "soup " * 2000), Example("b", "cold " * 2000)]
    first, second = (attribute(model, examples, method="random", target=0, seed=seed) for seed in (0, 1))
    lines = np.array([one.scores for found in (first, second) for one in found])
    assert np.allclose(lines.mean(1), 0, atol=0.1)
    assert np.allclose(lines.std(1), 1, atol=0.1)
    assert np.allclose(np.corrcoef(lines), np.eye(4), atol=0.1)
    assert first == attribute(model, examples[::-1], method="random", target=0, seed=0)[::-1]
    assert first[0].terms.space == "none"
    assert texts == []
