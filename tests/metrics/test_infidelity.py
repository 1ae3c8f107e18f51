from __future__ import annotations

import pytest

import tiny
from known_scores import attribution
from unhans.errors import BadOption
from unhans.metrics import measure
from unhans.types import Example

WEIGHTS = {"good": 2.0, "bad": -1.0, "fine": 0.5}
BAG = tiny.bag_of_words(WEIGHTS)


def value(text, scores, **options):
    example = Example("x", text)
    return measure(
        BAG, [example], metric="infidelity", attributions=[attribution(BAG, example, scores)], **options
    ).value


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_the_weights_of_a_bag_of_words_forecast_everything_whatever_their_unit(scale):
    assert value("good but bad then fine", [scale * w for w in (2.0, 0, -1.0, 0, 0.5)]) == pytest.approx(0, abs=1e-8)


def test_a_missed_word_costs_its_squared_weight_as_often_as_it_goes():
    # of two words one goes: "good" is forecast exactly, "bad" not at all
    samples = value("good bad", (1.0, 0.0), samples=20) * 20
    assert 0 < samples < 20
    assert samples == pytest.approx(round(samples), abs=1e-4)


def test_scores_with_the_wrong_sign_are_no_better_than_none():
    none, wrong = value("good but fine", (0, 0, 0)), value("good but fine", (-2.0, 0, -0.5))
    assert wrong == pytest.approx(none)
    assert none > 0.1


def test_samples_are_at_least_one():
    with pytest.raises(BadOption, match="samples"):
        value("good bad", (1.0, 0.0), samples=0)
