from __future__ import annotations

import numpy as np
import pytest

import tiny
from known_scores import attribution
from unhans.errors import BadOption
from unhans.metrics import measure
from unhans.types import Example

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -1.0}
BAG = tiny.bag_of_words(WEIGHTS)
EXAMPLE = Example("x", "good but bad and fine")
SCORES = (5, 0, -3, 0, 4)  # 40 % of five words: good, fine


def p(*words):
    return 1 / (1 + np.exp(-sum(WEIGHTS[word] for word in words)))


def value(metric, scores=SCORES, label="positive", **options):
    given = [attribution(BAG, EXAMPLE, scores, label)]
    return measure(BAG, [EXAMPLE], metric=metric, attributions=given, **options).value


def test_comprehensiveness_is_the_fall_without_the_top_words():
    assert value("comprehensiveness", share=0.4) == pytest.approx(p("good", "fine", "bad") - p("bad"), abs=1e-6)


def test_sufficiency_is_the_fall_with_the_top_words_alone():
    assert value("sufficiency", share=0.4) == pytest.approx(p("good", "fine", "bad") - p("good", "fine"), abs=1e-6)


def test_the_explained_label_is_the_one_that_falls():
    found = value("comprehensiveness", (-5, 0, 3, 0, -4), "negative")  # one word: bad
    assert found == pytest.approx(p("good", "fine") - p("good", "fine", "bad"), abs=1e-6)


@pytest.mark.parametrize("name", ["comprehensiveness", "sufficiency"])
def test_aopc_is_the_mean_over_the_shares(name):
    each = [value(name, share=share) for share in (0.2, 0.4, 1.0)]
    assert value(f"aopc_{name}", shares="0.2,0.4,1") == pytest.approx(np.mean(each))
    assert len(set(each)) > 1


@pytest.mark.parametrize("shares", ["", "a,b", "0.1;0.2", "0.1,2"])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(BadOption, match="share"):
        value("aopc_sufficiency", shares=shares)


def test_strengths_without_a_sign_are_taken_as_they_are():
    given = [attribution(BAG, EXAMPLE, (5, 0, 3, 0, 4), signed=False)]
    found = measure(BAG, [EXAMPLE], metric="comprehensiveness", attributions=given, share=0.6)
    assert found.value == pytest.approx(p("good", "fine", "bad") - 0.5, abs=1e-6)
