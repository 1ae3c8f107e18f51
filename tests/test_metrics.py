"""The front door of the metrics: what becomes of the values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import tiny
from known_scores import attribution
from unhans.attributions import attribute
from unhans.errors import BadData, BadOption, Cancelled
from unhans.metrics import _chance, _interval, _interval_of_runs, measure
from unhans.scoring import ScoreCache
from unhans.types import Example

BAG = tiny.bag_of_words({"good": 2.0, "bad": -1.0})
EXAMPLES = [Example(str(n), f"good {word} and bad film") for n, word in enumerate("abcdefgh")]


def test_attributions_made_before_give_the_same_grade():
    given = attribute(BAG, EXAMPLES)
    assert measure(BAG, EXAMPLES, metric="deletion", attributions=given) == measure(BAG, EXAMPLES, metric="deletion")


def test_attributions_of_other_examples_or_models_are_refused():
    given = attribute(BAG, EXAMPLES)
    with pytest.raises(BadOption, match="not of these examples"):
        measure(BAG, EXAMPLES[::-1], metric="deletion", attributions=given)
    with pytest.raises(BadOption, match="another model"):
        measure(tiny.bag_of_words({"good": 1.0}), EXAMPLES, metric="deletion", attributions=given)
    mixed = [*given[:-1], *attribute(BAG, EXAMPLES[-1:], unit="probability")]
    with pytest.raises(BadOption, match="one method at a time"):
        measure(BAG, EXAMPLES, metric="deletion", attributions=mixed)


def test_the_grade_says_what_was_run():
    grade = measure(BAG, EXAMPLES, metric="deletion", method_options={"unit": "probability"}, share=0.5)
    assert str(grade.method) == "leave_one_out(erase=delete, unit=probability)"
    assert str(grade.recipe) == "deletion_auc(share=0.5)"
    assert grade.revision == BAG.revision
    assert (grade.examples, grade.undefined) == (8, 0)


def test_a_grade_is_printed_with_its_note():
    told = repr(measure(BAG, EXAMPLES, metric="deletion"))
    assert "Favours methods that delete words themselves" in told
    assert "lower is better" in told
    assert "random scores get" in told


def test_the_explained_label_can_be_chosen():
    predicted, other = (measure(BAG, EXAMPLES, metric="deletion", target=t) for t in (None, "negative"))
    assert predicted.value != other.value


def test_phrases_are_erased_whole():
    example = Example("x", "good soup, bad film, fine book")
    grade = measure(BAG, [example], metric="comprehensiveness", method_options={"units": "phrase"}, share=0.3)
    p = np.exp(BAG.log_probs(["good soup, bad film, fine book", "bad film, fine book"]))[:, 1]
    assert grade.value == pytest.approx(p[0] - p[1], abs=1e-6)


def test_random_scores_have_a_sign_only_where_the_method_has_one():
    signed, unsigned = (
        measure(
            BAG,
            EXAMPLES,
            metric="infidelity",
            attributions=[attribution(BAG, e, range(5), signed=s) for e in EXAMPLES],
        )
        for s in (True, False)
    )
    assert signed.value == unsigned.value
    assert signed.random != unsigned.random


def test_the_random_baseline_is_near_what_chance_gives():
    # one of five words is taken at random; the fall is that of "good" or "bad" once in five times each
    examples = [Example(str(n), f"good w{n} and bad film") for n in range(400)]
    grade = measure(BAG, examples, metric="comprehensiveness", share=0.2)
    p = np.exp(BAG.log_probs(["good bad", "bad", "good"]))[:, 1]
    assert grade.random == pytest.approx((p[0] - p[1] + p[0] - p[2]) / 5, abs=0.01)


def test_options_of_the_metric_are_checked():
    with pytest.raises(BadOption, match="share"):
        measure(BAG, EXAMPLES, metric="deletion", shares=0.5)
    with pytest.raises(BadOption, match="deletion_auc"):
        measure(BAG, EXAMPLES, metric="deletion_au")


def test_what_a_metric_needs_is_named():
    with pytest.raises(BadOption, match="language_model="):
        measure(BAG, EXAMPLES, metric="deletion_mlm")


def test_undefined_says_why():
    with pytest.raises(BadData, match="none of the 1 examples: a text without words"):
        measure(BAG, [Example("x", " ")], metric="deletion")


def test_cancelling_stops_the_work():
    with pytest.raises(Cancelled):
        measure(BAG, EXAMPLES, metric="deletion", cancelled=lambda: True)


def test_a_cache_answers_what_was_asked_before():
    asked, cache = [], ScoreCache()
    model = tiny.bag_of_words({"good": 1.0}, asked=asked)
    first = measure(model, EXAMPLES, metric="deletion", cache=cache)
    n = len(asked)
    assert measure(model, EXAMPLES, metric="deletion", cache=cache) == first
    assert len(asked) == n > 0


def test_progress_climbs_to_the_end():
    told = []
    measure(BAG, EXAMPLES, metric="deletion", progress=lambda done, total: told.append(done / total))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 2


def test_a_grade_is_better_than_random_only_in_the_declared_direction_and_hardly_by_chance():
    grade = replace(measure(BAG, EXAMPLES, metric="deletion"), value=0.4, random=0.5, p=0.01)
    assert grade.beats_random
    assert not replace(grade, better="higher").beats_random
    assert not replace(grade, p=0.05).beats_random
    assert not replace(grade, p=None).beats_random
    assert not replace(grade, random=None).beats_random


def test_the_interval_holds_the_mean_of_the_population_about_95_times_in_100():
    rng = np.random.default_rng(0)
    held = 0
    for n in range(100):
        low, high = _interval(rng.normal(3.0, 1.0, size=60), n)
        held += low <= 3.0 <= high
    assert 88 <= held <= 99


def test_the_interval_of_runs_is_students():
    values = np.array([0.7, 0.8, 0.75, 0.6])
    wanted = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert _interval_of_runs(values) == pytest.approx(wanted)
    assert _interval_of_runs(np.array([0.7])) == (None, None)


@pytest.mark.parametrize(
    ("gaps", "runs", "wanted"),
    [
        ([0.0, 0.0, 0.0], False, 1.0),
        ([1.0], False, None),
        ([np.nan, 1.0, np.nan], False, None),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], False, 2 / 2**6),  # all of one sign: one of 64 ways, or its mirror
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], False, 2 / 2**6),  # no gap says nothing
        ([0.5, 0.5, 0.5], True, None),
        ([0.1, 0.2, 0.3], True, float(stats.ttest_rel([0.2, 0.4, 0.6], [0.1, 0.2, 0.3]).pvalue)),
    ],
)
def test_the_chance_of_a_gap(gaps, runs, wanted):
    found = _chance(np.array(gaps), runs)
    assert found is None if wanted is None else found == pytest.approx(wanted)
