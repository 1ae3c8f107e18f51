from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import tiny
from known_scores import attribution
from unhans.errors import BadData
from unhans.metrics import measure
from unhans.metrics.highlights import _average_precision
from unhans.types import Example, Span

BAG = tiny.bag_of_words({"good": 2.0})
FIRST = Example("1", "good and fine film", label="positive", highlights=(Span(0, 4), Span(9, 13)))  # good, fine
SECOND = Example("2", "a good one", label="positive", highlights=(Span(3, 5),))  # inside good


def grade(metric, lines, examples=(FIRST, SECOND), **options):
    given = [attribution(BAG, example, line) for example, line in zip(examples, lines, strict=True)]
    return measure(BAG, examples, metric=metric, attributions=given, **options)


LINES = [(4.0, 3.0, 1.0, -2.0), (0.0, 2.0, 1.2)]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # shares of the highest: 1, .75, .25, -.5 and 0, 1, .6; mean IoU is 2/3 and 1/2 up to .25 (0.583),
        # 1/3 and 1/2 up to .6, 1/3 and 1 up to .75 (0.667), 1/2 and 1 above (0.75)
        ("token_iou", (1 / 2 + 1) / 2),
        ("token_precision", 1.0),
        ("token_recall", (1 / 2 + 1) / 2),
        ("token_f1", (2 / 3 + 1) / 2),
    ],
)
def test_words_are_chosen_at_the_threshold_with_the_best_overlap(metric, value):
    found = grade(metric, LINES)
    assert found.value == pytest.approx(value)
    assert "0.80 of the highest score" in found.note
    assert "optimistic" in found.note


def test_a_lower_threshold_is_found_where_it_is_better():
    found = grade("token_recall", [(4.0, 0.0, 1.0, -2.0), (0.0, 2.0, 0.1)])
    assert found.value == 1.0
    assert "0.10 of the highest score" in found.note


def test_where_nothing_speaks_for_the_label_nothing_is_chosen():
    lines = [(-1.0, -2.0, -3.0, -1.0), (-1.0, 0.0, -1.0)]
    assert {grade(f"token_{name}", lines).value for name in ("iou", "precision", "recall", "f1")} == {0.0}


def test_average_precision_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores, truth = rng.integers(-3, 4, size=9) / 2, rng.random(9) < 0.4  # with ties
        if truth.any():
            assert _average_precision(scores, truth) == pytest.approx(average_precision_score(truth, scores))


def test_plausibility_is_the_mean_average_precision():
    found = grade("auprc_plausibility", LINES)
    assert found.value == pytest.approx(((1 + 2 / 3) / 2 + 1) / 2)


def test_examples_that_nobody_marked_are_left_out():
    nobody = Example("3", "good", label="positive")
    nothing = Example("4", "good soup", label="positive", highlights=())
    found = grade("token_iou", [*LINES, (1.0,), (1.0, 0.0)], (FIRST, SECOND, nobody, nothing))
    assert (found.examples, found.undefined) == (2, 2)


def test_wrong_predictions_are_left_out_unless_asked_for():
    wrong = Example("3", "good", label="negative", highlights=(Span(0, 4),))
    examples, lines = (FIRST, SECOND, wrong), [*LINES, (1.0,)]
    assert grade("token_f1", lines, examples).examples == 2
    assert grade("token_f1", lines, examples, only_correct=False).examples == 3


def test_a_highlight_in_the_other_text_does_not_count():
    pair = Example("p", "good soup", "fine film", label="positive", highlights=(Span(0, 4, "pair"),))
    assert grade("token_precision", [(1.0, 0.0, 0.0, 0.0)], [pair]).value == 0.0
    assert grade("token_precision", [(0.0, 0.0, 1.0, 0.0)], [pair]).value == 1.0


def test_data_without_highlights_is_refused():
    with pytest.raises(BadData, match="highlights"):
        measure(BAG, [Example("1", "good")], metric="token_iou")
