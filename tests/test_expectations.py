"""Expectations: what is understood, what is refused before any work, and what holds."""

from __future__ import annotations

import pytest

from unhans.errors import BadOption
from unhans.expectations import Expected, Findings, check_expectations, judge, words_of
from unhans.types import Measure


def measure(name, data, before, after, part=""):
    better = "lower" if name in ("gap", "calibration_error") else "higher"
    return Measure(name, data, before, after, -0.1, 0.1, better, part, 100)


MEASURES = (
    measure("accuracy", "test", 0.90, 0.93),
    measure("accuracy", "yelp", 0.80, 0.78),
    measure("accuracy", "test · without voted words", 0.50, 0.60),
    measure("accuracy", "test", 0.85, 0.95, "label positive"),
    measure("f1", "test", 0.80, 0.88, "label positive"),
    measure("accuracy", "yelp", 0.70, 0.71, "group A"),
    measure("macro_f1", "test", 0.89, 0.92),
    measure("calibration_error", "test", 0.10, 0.05),
    measure("calibration_error", "yelp", 0.10, 0.20),
    measure("gap", "yelp", 0.08, 0.04, "groups"),
    measure("gap", "test", 0.08, 0.02, "labels"),
)
SHARES = {("muslims", None): (0.03, 40), ("muslims", "hate"): (0.01, 1), ("don't", None): (0.5, 3)}
FOUND = Findings(("test", "yelp"), MEASURES, SHARES, {"test": 7, "yelp": 4}, {"test": 2, "yelp": 3}, 0.8)
ALONE = Findings(("test",), (Measure("accuracy", "test", None, 0.9, n=100),))


@pytest.mark.parametrize(
    ("text", "holds", "value", "says"),
    [
        ("accuracy >= 0.75", True, 0.78, "accuracy is 0.78 on yelp, the worst of 2 sets."),
        ("accuracy >= 0.90", False, 0.78, "accuracy is 0.78 on yelp, the worst of 2 sets."),
        ("accuracy < 0.99", True, 0.93, "accuracy is 0.93 on test, the worst of 2 sets."),
        ("accuracy(test) >= .9", True, 0.93, "accuracy is 0.93 on test."),
        ("accuracy('test · without voted words') > 6e-1", False, 0.60, None),
        ("accuracy(test, label=positive) >= 0.95", True, 0.95, "accuracy(label=positive) is 0.95 on test."),
        ("accuracy(group='A') >= 0.7", True, 0.71, "accuracy(group=A) is 0.71 on yelp."),
        ("macro_f1(test, label=positive) >= 0.9", False, 0.88, None),
        ("f1(label=positive) >= 0.88", True, 0.88, None),
        ("calibration_error <= 0.1", False, 0.20, None),
        ("gap(group) <= 0.03", False, 0.04, "gap(group) is 0.04 on yelp."),
        ("gap(label) <= 0.03", True, 0.02, None),
        ("gap(label, test) <= 0.03", True, 0.02, None),
        ("score('muslims') <= 0.02", False, 0.03, None),
        (
            "score('muslims', label='hate') <= 0.02",
            True,
            0.01,
            "score('muslims', label=hate) is 0.01, its mean share of the explanations of 1 text with it.",
        ),
        ('score("don\'t") < 1', True, 0.5, None),
        ("broken <= 5", True, 5.0, "broken is 5."),
        ("broken(yelp) < 3", False, 3.0, "broken is 3 on yelp."),
        ("fixed >= 10", True, 11.0, None),
        ("moved >= 0.5", True, 0.8, None),
        ("drop(accuracy) <= 0.01", False, 0.02, "drop(accuracy) is 0.02 on yelp, the worst of 2 sets."),
        ("drop(accuracy) <= 0.02", True, 0.02, None),  # 0.80 - 0.78 is a little more than 0.02 to a computer
        ("drop(accuracy, test) <= -0.02", True, -0.03, None),
        ("drop(macro_f1) <= 0", True, -0.03, None),
    ],
)
def test_what_holds(text, holds, value, says):
    (expected,) = check_expectations([text])
    found = judge(expected, FOUND)
    assert found.holds is holds
    assert found.value == pytest.approx(value)
    assert found.text == text
    assert says in (None, found.says)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("accuracy(nowhere) >= 0.1", "There is no set 'nowhere'. There is: test, yelp."),
        ("broken(nowhere) <= 1", "There is no set 'nowhere'. There is: test, yelp."),
        ("accuracy(label=sad) >= 0.1", "accuracy(label=sad) was not measured: no set has enough examples for it."),
        ("gap(group, test) <= 1", "gap(group) was not measured: no set has enough examples for it."),
        ("score('absent') <= 1", "The word 'absent' could not be measured"),
        ("score('muslims', label=sad) <= 1", "The word 'muslims' could not be measured for the label 'sad'"),
    ],
)
def test_what_was_not_measured_does_not_hold_and_says_why(text, why):
    found = judge(*check_expectations([text]), FOUND)
    assert not found.holds
    assert found.value is None
    assert found.says.startswith(why)


@pytest.mark.parametrize("text", ["broken <= 5", "fixed >= 0", "moved >= -1", "drop(accuracy) <= 1"])
def test_a_model_alone_has_nothing_to_compare_with(text):
    found = judge(*check_expectations([text]), ALONE)
    assert not found.holds
    assert "needs a model to compare with" in found.says


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accuracy",
        "accuracy >= high",
        "accuracy >= 0.9 and broken <= 5",
        "accuracy == 0.9",
        "0.9 <= accuracy",
        "accuracy(test >= 0.9",
        "accuracy(test, yelp) >= 0.9",
        "accuracy(lable=positive) >= 0.9",
        "accuracy(label=positive, group=A) >= 0.9",
        "accuracy(label=positive, test) >= 0.9",
        "accuracy(,) >= 0.9",
        "accuracy(f(x)) >= 0.9",
        "f1 >= 0.9",
        "macro_f1(group=A) >= 0.9",
        "gap <= 0.1",
        "gap(nothing) <= 0.1",
        "score <= 0.1",
        "score('') <= 0.1",
        "score('a', test) <= 0.1",
        "drop(gap) <= 0.1",
        "moved(test) >= 0.5",
        "precision >= 0.9",
        "__import__('os') >= 1",
        "accuracy >= nan",
        "accuracy >= 0.9 " + " " * 600,
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text):
    with pytest.raises(BadOption, match=r"[Tt]he expectation .*\."):
        check_expectations(["accuracy >= 0.5", text])


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(BadOption, match=r"names 'precision', which is not measured\. There is: accuracy, macro_f1"):
        check_expectations(["precision >= 0.9"])


def test_names_with_blanks_and_brackets_stand_in_quotes():
    (expected,) = check_expectations(["accuracy('my (old) set, 2', label=\"it's\") >= 0.5"])
    assert (expected.data, expected.label) == ("my (old) set, 2", "it's")
    assert check_expectations(["accuracy(my set) >= 0.5"])[0].data == "my set"


def test_the_words_to_measure_are_named_once():
    texts = ["score('a') <= 1", "score('a') <= 0.5", "score('a', label=x) <= 1", "accuracy >= 0"]
    assert words_of(check_expectations(texts)) == [("a", None), ("a", "x")]


def test_what_was_understood():
    assert check_expectations([" drop(f1, test, label=x)<=1e-2 "]) == (
        Expected("drop(f1, test, label=x)<=1e-2", "drop", "<=", 0.01, "f1", "test", "x", None),
    )
