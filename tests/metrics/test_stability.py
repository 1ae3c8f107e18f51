from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import tiny
from known_scores import attribution
from unhans.errors import BadOption
from unhans.metrics import Means, Subject, measure, measurement, metric, spearman
from unhans.types import Example

BAG = tiny.bag_of_words({"good": 2.0})
EXAMPLE = Example("x", "good and fine film")


def test_a_method_that_draws_nothing_scores_one_and_says_so():
    grade = measure(BAG, [EXAMPLE, Example("y", "one two")], metric="stability")
    assert (grade.value, grade.low) == (1.0, 1.0)
    assert "every seed gives the same" in grade.note


def test_stability_is_the_mean_spearman_of_all_pairs_of_runs():
    first = (3.0, 1.0, 2.0, 0.0)
    others = iter([np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0, 3.0])])
    seeds = []

    def explain(classifier, examples, *, seed=None, targets=None):
        seeds.append(seed)
        assert list(targets) == [1]
        return [next(others)]

    subject = Subject(BAG, [EXAMPLE], [attribution(BAG, EXAMPLE, first)], explain)
    found = measurement(metric["stability"], subject, Means(), {})
    assert found.grade.value == pytest.approx(np.mean([0.8, -0.8, -1.0]))  # two steps, eight, all
    assert len(set(seeds)) == 2


def test_spearman_is_that_of_scipy_with_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 5, size=(2, 8)).astype(float)
        assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)


def test_spearman_of_what_has_no_order_is_undefined():
    assert np.isnan(spearman(np.ones(4), np.arange(4.0)))
    assert np.isnan(spearman(np.ones(1), np.ones(1)))


def test_two_runs_are_the_least():
    with pytest.raises(BadOption, match="runs"):
        measure(BAG, [EXAMPLE], metric="stability", runs=1)
