"""TracIn: the sum over checkpoints, and what is said without any."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from traced import examples
from unhans.errors import BadData, BadOption
from unhans.influences import prepare


def test_it_is_the_sum_over_states_of_rate_times_product():
    states = [(tiny.transformer(seed=seed), rate) for seed, rate in ((0, 0.1), (1, 0.03))]
    train = examples()
    alone = [prepare(state, train, method="gradient_dot") for state, _ in states]
    together = prepare(states[-1][0], train, method="tracin", checkpoints=states)
    expected = sum(rate * one.scores(train[:3]) for one, (_, rate) in zip(alone, states, strict=True))
    assert np.allclose(together.scores(train[:3]), expected)
    own = sum(rate * one.self_influence() for one, (_, rate) in zip(alone, states, strict=True))
    assert np.allclose(together.self_influence(), own)


def test_without_checkpoints_it_says_what_to_give():
    with pytest.raises(BadOption, match=r"Give checkpoints=.*or use gradient_dot"):
        prepare(tiny.transformer(), examples(), method="tracin")


def test_checkpoints_of_another_model_are_refused():
    with pytest.raises(BadData, match="other labels"):
        prepare(tiny.transformer(), examples(), method="tracin", checkpoints=[(tiny.transformer(labels=3), 0.1)])
