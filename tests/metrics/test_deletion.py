from __future__ import annotations

import numpy as np
import pytest

import tiny
from known_scores import attribution
from unhans.errors import BadOption
from unhans.metrics import measure
from unhans.metrics._erasing import filled, top
from unhans.text import Hole, Words
from unhans.types import Example

BAG = tiny.bag_of_words({"good": 2.0, "fine": 1.0, "bad": -1.0})
EXAMPLE = Example("x", "the good and fine but bad film")


def p(*words):
    return 1 / (1 + np.exp(-sum({"good": 2.0, "fine": 1.0, "bad": -1.0}[word] for word in words)))


def grade(metric, scores, **options):
    return measure(BAG, [EXAMPLE], metric=metric, attributions=[attribution(BAG, EXAMPLE, scores)], **options)


def test_deletion_is_the_trapezoid_from_the_untouched_text():
    whole, first, second = p("good", "fine", "bad"), p("fine", "bad"), p("bad")
    found = grade("deletion_auc", (0, 9, 0, 8, 0, -7, 0))  # 20 % of seven words are two
    assert found.value == pytest.approx((whole / 2 + first + second / 2) / 2, abs=1e-6)
    assert (found.low, found.high, found.p) == (None, None, None)  # one example has no spread


def test_deletion_takes_at_least_two_words():
    found = grade("deletion_auc", (0, 9, 0, 8, 0, -7, 0), share=0.01)
    assert found.value == grade("deletion_auc", (0, 9, 0, 8, 0, -7, 0)).value


def test_insertion_runs_from_the_empty_text_to_the_whole_one():
    scores = (0, 9, -1, 8, -2, 7, -3)
    curve = [0.5, p("good"), p("good", "fine"), p("good", "fine", "bad")]
    curve += [curve[-1]] * 4
    assert grade("insertion_auc", scores).value == pytest.approx(np.trapezoid(curve, dx=1 / 7), abs=1e-6)


def test_ties_are_broken_by_position():
    assert top(Words("a b c d"), np.array([1.0, 2.0, 2.0, 1.0]), 1.0) == [1, 2, 0, 3]


def test_words_that_the_model_does_not_read_are_not_erased():
    assert top(Words("a b c d", gone=[3]), np.array([1.0, 2.0, 3.0, 9.0]), 0.5) == [2, 1]


@pytest.mark.parametrize(("share", "n", "count"), [(0.28, 25, 7), (0.2, 5, 1), (0.21, 5, 2), (0.01, 5, 1), (1.0, 3, 3)])
def test_a_share_is_rounded_up_to_whole_words(share, n, count):
    assert len(top(Words(" ".join("abcdefghijklmnopqrstuvwxyz"[:n])), np.zeros(n), share)) == count


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(BadOption, match="share"):
        grade("deletion_auc", (0,) * 7, share=share)


def test_filling_goes_on_from_what_was_filled_before():
    lm, words = tiny.language_model(), Words("the soup was cold and the waiter did care")
    first = next(f.word for f in lm.fill([words.without([3], Hole.MASK)], k=2)[0][0] if f.word != "cold")
    again = lm.fill([words.variant({3: first, 1: Hole.MASK})], k=2)[0][0]
    then = next(f.word for f in again if f.word != "soup")
    (line,) = filled(lm, [words], [[3, 1]])
    assert line == [words.variant({}), words.variant({3: first}), words.variant({3: first, 1: then})]


def test_the_second_best_guess_is_taken_where_the_best_is_the_word_itself():
    lm = tiny.language_model()
    best, second = (f.word for f in lm.fill([Words("the soup was cold").without([1], Hole.MASK)], k=2)[0][0])
    words = Words(f"the {best.upper()} was cold")
    (line,) = filled(lm, [words], [[1]])
    assert line[1] == words.variant({1: second})


def test_deletion_by_language_model_is_the_trapezoid_over_the_filled_texts():
    lm, classifier, example = tiny.language_model(), tiny.transformer(), Example("x", "the soup was cold and hard")
    given = [attribution(classifier, example, (0, 3, 0, 2, 0, 0))]
    (line,) = filled(lm, [Words(example)], [[1, 3]])
    p = np.exp(classifier.log_probs(line))[:, 1]
    found = measure(classifier, [example], metric="deletion_mlm_auc", attributions=given, language_model=lm)
    assert found.value == pytest.approx((p[0] / 2 + p[1] + p[2] / 2) / 2, abs=1e-6)


def test_what_the_language_model_cannot_reach_is_undefined():
    lm, classifier = tiny.language_model(), tiny.bag_of_words({"cold": 1.0})
    long = Example("long", " ".join(["the soup was"] * 12) + " cold")
    short = Example("short", "the soup was cold")
    found = measure(classifier, [long, short], metric="deletion_mlm_auc", language_model=lm, target="positive")
    assert (found.examples, found.undefined) == (1, 1)
