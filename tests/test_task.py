"""Task explanations: which words a model leans on, beyond what the data explains, and which to look at first."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute
from unhans.errors import BadData, Cancelled
from unhans.task import _associations, rank_words, suspects
from unhans.text import visible_form
from unhans.types import Attribution, Example, Prediction, Recipe, Span, Terms

RECIPE = Recipe("attributions", "x")


def labelled_texts(n=600, words=14, seed=0):
    """Texts of random words; word w0 hardly goes with the label, the last goes with it most."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        label = ("negative", "positive")[number % 2]
        sign = 1 if label == "positive" else -1
        chances = [0.3 + sign * 0.25 * (w / (words - 1) - 0.5) for w in range(words)]
        text = " ".join(f"w{w}" for w in range(words) if rng.random() < chances[w])
        made.append(Example(str(number), text or "w0", label=label))
    return made


def log_odds_ratio(word, examples):
    def odds(chosen):
        share = sum(e.label == "positive" for e in chosen) / len(chosen)
        return math.log(share / (1 - share))

    return odds([e for e in examples if word in e.text.split()]) - odds(
        [e for e in examples if word not in e.text.split()]
    )


def explained_by(weights, examples, noise=0.05, seed=1):
    rng = np.random.default_rng(seed)
    made = []
    for example in examples:
        words = tuple(example.text.split())
        scores = tuple(weights[word] + noise * rng.standard_normal() for word in words)
        made.append(Attribution(example.id, "positive", words, (Span(0, 1),) * len(words), scores, RECIPE, "r"))
    return made


def test_a_word_that_weighs_more_than_its_correlation_has_the_largest_z():
    examples = labelled_texts()
    weights = {f"w{n}": 1.5 * log_odds_ratio(f"w{n}", examples) for n in range(14)}
    weights["w7"] += 3.0
    ranking = rank_words(explained_by(weights, examples), label="positive", examples=examples)
    surprising = sorted(ranking.words, key=lambda row: -row.z)
    assert surprising[0].word == "w7"
    assert surprising[0].z > 10
    assert all(abs(row.z) < 4 for row in surprising[1:])


def test_weights_in_proportion_to_the_correlation_surprise_nobody():
    examples = labelled_texts()
    weights = {f"w{n}": 1.5 * log_odds_ratio(f"w{n}", examples) for n in range(14)}
    for noise in (0.05, 0.0):
        ranking = rank_words(explained_by(weights, examples, noise), label="positive", examples=examples)
        assert max(abs(row.z) for row in ranking.words) < 4


def test_a_word_whose_score_varies_much_is_less_of_a_surprise():
    examples = labelled_texts()
    weights = {f"w{n}": 1.5 * log_odds_ratio(f"w{n}", examples) for n in range(14)}
    weights["w6"] += 3.0
    steady = rank_words(explained_by(weights, examples), label="positive", examples=examples)
    rng = np.random.default_rng(2)
    wild = [
        replace(one, scores=tuple(s + 20 * rng.choice([-1, 1]) * (w == "w6") for w, s in zip(one.words, one.scores)))  # noqa: B905
        for one in explained_by(weights, examples)
    ]
    varying = rank_words(wild, label="positive", examples=examples)
    z = {id(r): row.z for r in (steady, varying) for row in r.words if row.word == "w6"}
    assert z[id(varying)] < z[id(steady)] / 3


def test_the_association_is_the_log_odds_ratio_with_one_imagined_example_on_each_side():
    texts = [("a b", "positive")] * 3 + [("a", "negative"), ("b", "negative"), ("b", "positive")]
    examples = [Example(str(n), text, label=label) for n, (text, label) in enumerate(texts)]
    share = 4 / 6
    with_a = math.log((3 + share) / (1 + 1 - share))
    without_a = math.log((1 + share) / (1 + 1 - share))
    found = _associations(examples, "positive", ["a", "elsewhere"], "word")
    assert found == pytest.approx([with_a - without_a, 0.0], abs=1e-12)


def test_z_is_not_made_up_where_it_is_undefined():
    examples = labelled_texts()
    found = explained_by({f"w{n}": 1.0 for n in range(14)}, examples)
    assert {row.z for row in rank_words(found, label="positive").words} == {None}
    one_label = [Example(e.id, e.text, label="positive") for e in examples]
    assert {row.z for row in rank_words(found, label="positive", examples=one_label).words} == {None}
    few = explained_by({"w0": 1.0, "w1": 2.0}, [Example("1", "w0 w1")])
    assert {row.z for row in rank_words(few, label="positive", examples=examples, min_count=1).words} == {None}


def test_equal_scores_of_all_words_are_no_error():
    examples = labelled_texts()
    ranking = rank_words(explained_by({f"w{n}": 0.0 for n in range(14)}, examples, 0.0), label="positive",
                         examples=examples)  # fmt: skip
    assert all(abs(row.z) < 1 for row in ranking.words)


def test_correct_is_the_share_of_right_predictions_among_the_examples_with_the_word():
    examples = [
        Example("a", "good film", label="positive"),
        Example("b", "good soup", label="negative"),
        Example("c", "bad soup"),
    ]
    model = tiny.bag_of_words({"good": 1.0, "bad": -1.0})
    found = attribute(model, examples, target="positive")
    predictions = model.predict(examples)
    rows = rank_words(found, label="positive", examples=examples, predictions=predictions, min_count=1).words
    assert {row.word: row.correct for row in rows} == {"good": 0.5, "film": 1.0, "soup": 0.0, "bad": None}
    assert {row.correct for row in rank_words(found, label="positive", predictions=predictions).words} <= {None}


def test_scores_of_different_methods_are_not_ranked_together():
    model = tiny.bag_of_words({"good": 1.0})
    mixed = [
        *attribute(model, ["good"], target="positive"),
        *attribute(model, ["good"], target="positive", unit="probability"),
    ]
    with pytest.raises(BadData, match="cannot be compared"):
        rank_words(mixed, label="positive", min_count=1)
    with pytest.raises(BadData, match="cannot be compared"):
        suspects(model, [Example("1", "good")], mixed)


SHORTCUT = {"imax": 5.0, "great": 2.0, "dull": -2.0, "odd": 4.0}
REVIEWS = [
    Example("a", "imax dull film Imax", label="positive"),
    Example("b", "imax dull soup", label="positive"),
    Example("c", "imax great film", label="positive"),
    Example("d", "dull film", label="negative"),
    Example("e", "dull soup", label="negative"),
    Example("f", "odd great soup", label="positive"),
]


def test_the_shortcut_is_the_first_suspect_and_its_numbers_are_what_they_say():
    asked = []
    model = tiny.bag_of_words(SHORTCUT | {"Imax": 5.0}, asked=asked)
    found = attribute(model, REVIEWS, target="positive")
    first = suspects(model, REVIEWS, found).words[0]
    assert (first.word, first.label, first.count) == ("imax", "positive", 3)
    assert first.coverage == pytest.approx(0.5)
    assert first.disagreement == pytest.approx(2 / 3)  # without it, a and b are taken for negative, c is not
    shares = [10 / 12, 5 / 7, 5 / 7]
    assert first.weight == pytest.approx(sum(shares) / 3, rel=0.05)  # log-odds are clipped where the model is sure
    assert first.damage == pytest.approx(first.weight * first.coverage * first.disagreement)
    assert first.examples[0] == "a"
    assert set(first.examples) == {"a", "b", "c"}
    assert "dull film" in asked  # every occurrence went at once


def test_without_labels_disagreement_is_a_changed_prediction():
    model = tiny.bag_of_words({"good": 1.0, "bad": -2.0})
    examples = [Example("a", "good film"), Example("b", "good good bad film"), Example("c", "bad soup")]
    rows = {row.word: row for row in suspects(model, examples, attribute(model, examples)).words}
    assert rows["bad"].disagreement == pytest.approx(0.5)  # b and c both become ties or positive; a tie is negative
    assert rows["film"].disagreement == 0.0
    assert rows["bad"].label == "negative"


def test_a_suspect_is_listed_under_the_label_it_speaks_for():
    model = tiny.bag_of_words({"good": 1.0, "bad": -2.0})
    examples = [Example("a", "good film"), Example("b", "good bad film")]
    rows = {row.word: row for row in suspects(model, examples, attribute(model, examples)).words}
    assert rows["good"].label == "positive"
    assert rows["good"].score == pytest.approx(1.0, abs=1e-4)
    assert rows["good"].count == 2


def test_few_candidates_are_asked_about_and_few_suspects_kept():
    asked = []
    model = tiny.bag_of_words(SHORTCUT, asked=asked)
    found = attribute(model, REVIEWS, target="positive")
    asked.clear()
    rows = suspects(model, REVIEWS, found, candidates=1, keep=5).words
    assert len(rows) == 1
    assert len(asked) == 4  # the examples with the candidate; no other word goes
    assert len(suspects(model, REVIEWS, found, keep=2).words) == 2


def test_only_attributions_for_the_label_count():
    model = tiny.bag_of_words(SHORTCUT)
    found = attribute(model, REVIEWS)
    rows = suspects(model, REVIEWS, found, label="negative").words
    assert {row.label for row in rows} == {"negative"}
    assert {row.word for row in rows} == {"dull", "film", "soup"}
    with pytest.raises(BadData, match="no attributions"):
        suspects(model, REVIEWS, found, label="neutral")


def test_what_was_not_read_does_not_move_up_when_a_word_goes():
    model = tiny.transformer()
    text = "film " + "soup " * 31 + "wonderful"
    example = Example("x", text)
    found = attribute(model, [example], target="positive")
    seen = []
    real = model.log_probs

    def spy(variants, **how):
        seen.extend(variant.texts[0] for variant in variants)
        return real(variants, **how)

    model.log_probs = spy
    rows = suspects(model, [example], found).words
    assert {row.word for row in rows} == {"film", "soup"}
    assert all("wonderful" not in text and text.count("soup") <= 29 for text in seen)


def test_phrases_and_pairs_can_be_suspects():
    model = tiny.transformer()
    examples = [Example("x", "The soup was cold, and the film was good", "a wonderful film")]
    rows = suspects(model, examples, attribute(model, examples, units="phrase")).words
    assert visible_form("a wonderful film") in {row.word for row in rows}


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        (REVIEWS[1:], "not among the examples"),
        ([Example("a", "another text", label="positive"), *REVIEWS[1:]], "another text"),
        ([Example("a", REVIEWS[0].text, label="pos"), *REVIEWS[1:]], "'pos'"),
    ],
)
def test_examples_that_do_not_fit_are_refused(examples, said):
    model = tiny.bag_of_words(SHORTCUT)
    with pytest.raises(BadData, match=said):
        suspects(model, examples, attribute(model, REVIEWS))


def test_attributions_of_another_model_are_refused():
    found = attribute(tiny.bag_of_words(SHORTCUT), REVIEWS)
    with pytest.raises(BadData, match="another revision"):
        suspects(tiny.bag_of_words({"a": 1.0}), REVIEWS, found)


def test_cancelling_stops_and_progress_is_told():
    model, seen = tiny.bag_of_words(SHORTCUT), []
    found = attribute(model, REVIEWS)
    suspects(model, REVIEWS, found, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(Cancelled):
        suspects(model, REVIEWS, found, cancelled=lambda: True)


def test_unsigned_scores_are_ranked_by_strength():
    words, spans = ("a", "b"), (Span(0, 1), Span(2, 3))
    one = Attribution("1", "positive", words, spans, (0.2, 0.8), RECIPE, "r", terms=Terms(signed=False))
    assert rank_words([one], label="positive", min_count=1).words[0].word == "b"


def test_a_table_of_suspects_is_printed_and_drawn():
    model = tiny.bag_of_words(SHORTCUT)
    found = suspects(model, REVIEWS, attribute(model, REVIEWS, target="positive"))
    assert "damage" in repr(found)
    assert "'imax'" in repr(found)
    assert "<table" in found._repr_html_()


def test_predictions_of_unknown_examples_are_ignored():
    one = Attribution("1", "positive", ("a",), (Span(0, 1),), (0.2,), RECIPE, "r")
    stray = [Prediction("9", ("negative", "positive"), (0.1, 0.9), "r")]
    (row,) = rank_words([one], label="positive", examples=[Example("1", "a", label="positive")], predictions=stray,
                        min_count=1).words  # fmt: skip
    assert row.correct is None
