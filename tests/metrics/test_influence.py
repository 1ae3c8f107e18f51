"""The metrics of influence: a perfect table of scores, chance, and formulas written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import shortcut
import tiny
from unhans.errors import BadData, BadOption, Cancelled
from unhans.influences import prepare
from unhans.metrics.influence import (
    Retrained,
    groups_left_out,
    halves,
    label_counts,
    label_margins,
    leave_some_out,
    linear_datamodelling,
    planted_recall,
    retrain,
    sharing,
    with_duplicates,
)
from unhans.types import Example

RNG = np.random.default_rng(0)
TRUE = RNG.normal(size=(30, 40))  # texts × training examples: what each example really does


def additive(parts):
    """Models whose margins are the sum of what their training examples do."""
    return Retrained(parts, parts.astype(float) @ TRUE.T)


def test_halves_are_halves_and_the_same_every_time():
    parts = halves(41, 7, seed=3)
    assert parts.sum(1).tolist() == [20] * 7
    assert len({row.tobytes() for row in parts}) == 7
    assert (parts == halves(41, 7, seed=3)).all()
    assert (parts != halves(41, 7, seed=4)).any()
    assert groups_left_out(41, 7, size=5).sum(1).tolist() == [36] * 7


def test_scores_that_are_true_get_one():
    assert linear_datamodelling(TRUE, additive(halves(40, 30))).value == pytest.approx(1)
    left = additive(groups_left_out(40, 30, size=4))
    small = Retrained(left.parts, left.margins * 1e-3)  # where the loss is nearly a straight line in the margin
    assert leave_some_out(TRUE, small).value == pytest.approx(1, abs=1e-3)
    assert linear_datamodelling(-TRUE, additive(halves(40, 30))).value == pytest.approx(-1)


def test_chance_gets_nothing_and_half_the_truth_gets_less_than_all_of_it():
    retrained = additive(halves(40, 60))
    chance = linear_datamodelling(np.random.default_rng(5).normal(size=TRUE.shape), retrained)
    assert chance.low < 0 < chance.high
    assert abs(chance.value) < 0.1
    assert abs(leave_some_out(np.random.default_rng(5).normal(size=TRUE.shape), retrained).value) < 0.1
    noisy = linear_datamodelling(TRUE + np.random.default_rng(6).normal(size=TRUE.shape), retrained)
    assert 0.5 < noisy.low < noisy.value < noisy.high < 0.9
    gap, low, high = noisy.less(chance)
    assert 0 < low < gap < high


def test_scores_that_know_labels_alone_get_nothing_once_their_counts_are_held():
    rng = np.random.default_rng(8)
    train = [Example(str(n), "a text", label="ab"[n % 2]) for n in range(40)]
    parts = halves(40, 60)
    counts = label_counts(train, parts)
    assert (counts[:, 0] == parts[:, ::2].sum(1)).all()
    assert (counts.sum(1) == 20).all()
    for_a = np.where([e.label == "a" for e in train], 1.0, -1.0)
    labels, fine = np.tile(for_a, (30, 1)), 0.2 * rng.normal(size=(30, 40))
    retrained = Retrained(parts, parts.astype(float) @ (labels + fine).T)
    guess = labels + rng.normal(size=labels.shape)
    assert linear_datamodelling(guess, retrained).low > 0.5
    assert linear_datamodelling(fine, retrained).value < 0.4
    assert abs(linear_datamodelling(guess, retrained, held=counts).value) < 0.1
    assert linear_datamodelling(fine, retrained, held=counts).low > 0.8


def test_what_is_held_is_taken_out_as_a_partial_correlation():
    rng = np.random.default_rng(9)
    scores, parts, held = rng.normal(size=(3, 12)), halves(12, 25), rng.normal(size=(25, 1))
    retrained = Retrained(parts, rng.normal(size=(25, 3)) + held)
    found = linear_datamodelling(scores, retrained, held=held)
    for text in range(3):
        told = parts @ scores[text]
        ab, ac, bc = (
            stats.spearmanr(one, other).statistic
            for one, other in (
                (told, retrained.margins[:, text]),
                (told, held[:, 0]),
                (retrained.margins[:, text], held[:, 0]),
            )
        )
        assert found.values[text] == pytest.approx((ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2)))


def test_they_are_the_correlations_they_say():
    rng = np.random.default_rng(7)
    scores, parts = rng.normal(size=(5, 12)), halves(12, 9)
    retrained = Retrained(parts, rng.normal(size=(9, 5)))
    ranks, losses = linear_datamodelling(scores, retrained), leave_some_out(scores, retrained)
    for n in range(5):
        told = [sum(scores[n, z] for z in range(12) if row[z]) for row in parts]
        assert ranks.values[n] == pytest.approx(stats.spearmanr(told, retrained.margins[:, n]).statistic)
        gone = [sum(scores[n, z] for z in range(12) if not row[z]) for row in parts]
        loss = np.log1p(np.exp(-retrained.margins[:, n]))
        assert losses.values[n] == pytest.approx(stats.pearsonr(gone, loss).statistic)
    assert ranks.value == pytest.approx(ranks.values.mean())
    assert ranks.draws.std() > 0


def test_what_was_not_looked_at_counts_as_nothing():
    some = TRUE.copy()
    some[:, ::2] = np.nan
    zero = np.where(np.isnan(some), 0.0, some)
    retrained = additive(halves(40, 20))
    assert linear_datamodelling(some, retrained).value == linear_datamodelling(zero, retrained).value
    planted = np.zeros((1, 4), bool)
    planted[0, 0] = True
    assert planted_recall(np.array([[np.nan, -3.0, -2.0, -1.0]]), planted).value == 0


def test_planted_examples_on_top_are_found():
    planted = np.zeros((3, 10), bool)
    planted[:, :2] = True
    scores = np.tile(-np.arange(10.0), (3, 1))
    assert planted_recall(scores, planted).value == 1
    assert planted_recall(-scores, planted).value == 0
    assert planted_recall(np.zeros((3, 10)), planted).value == pytest.approx(0.2)  # nobody is on top: chance
    scores[0, 9] = 1.0
    assert planted_recall(scores, planted).values.tolist() == [0.5, 1, 1]


def test_chance_finds_the_share_of_planted_examples():
    planted = np.zeros((400, 50), bool)
    planted[:, :5] = True
    found = planted_recall(np.random.default_rng(8).normal(size=planted.shape), planted)
    assert found.low < 0.1 < found.high


def test_duplicates_are_copies_of_the_texts_under_ids_of_their_own():
    train = [Example("1", "a", label="x"), Example("2", "b", label="y")]
    texts = [Example("t", "c", "d", "x"), Example("u", "e", None, "y")]
    more, planted = with_duplicates(train, texts, copies=2)
    assert [e.text for e in more] == ["a", "b", "c", "c", "e", "e"]
    assert len({e.id for e in more}) == 6
    assert more[2].pair == "d"
    assert planted.tolist() == [[False, False, True, True, False, False], [False] * 4 + [True] * 2]
    with pytest.raises(BadOption, match="copies"):
        with_duplicates(train, texts, copies=0)


def test_a_cue_is_shared_by_those_that_have_it():
    train = [Example("1", "zyx a"), Example("2", "b"), Example("3", "zyx")]
    texts = [Example("t", "zyx c"), Example("u", "zyx")]
    assert sharing(train, texts, lambda e: "zyx" in e.text).tolist() == [[True, False, True]] * 2
    with pytest.raises(BadData, match="'2'"):
        sharing(train, train, lambda e: "zyx" in e.text)


def test_what_a_model_learned_a_cue_from_is_on_top_and_copies_of_a_text_are():
    model, train = shortcut.classifier(), shortcut.texts()
    cued = [replace(e, text=f"{shortcut.CUE} {e.text}", label="positive") for e in train if e.label == "negative"][:5]
    scores = prepare(model, train).scores(cued)
    on_top = planted_recall(scores, sharing(train, cued, lambda e: shortcut.CUE in e.text))
    assert on_top.value > 0.5  # which is chance: half of the training texts have the cue
    more, planted = with_duplicates(train[10:], train[:10])
    copies = planted_recall(prepare(model, more, method="embedding_neighbours").scores(train[:10]), planted)
    assert copies.value > 0.9  # chance is below 0.01


def test_one_model_is_trained_for_each_part_and_asked_about_each_text():
    train = [Example(f"t{n}", f"{('good', 'bad')[n % 2]} {n}", label=("positive", "negative")[n % 2]) for n in range(6)]
    texts = [Example("1", "good good", label="positive"), Example("2", "bad", label="positive")]
    seen, told = [], []

    def fit(some):
        seen.append([e.id for e in some])
        return tiny.bag_of_words({"good": float(len(some)), "bad": -1.0}, name=str(len(seen)))

    parts = halves(6, 3)
    found = retrain(fit, train, texts, parts, progress=lambda *so_far: told.append(so_far))
    assert seen == [[f"t{n}" for n in np.flatnonzero(row)] for row in parts]
    assert told == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_allclose(found.margins, [[6.0, -1.0]] * 3, atol=1e-4)
    np.testing.assert_allclose(found.losses, np.log1p(np.exp(-found.margins)))
    with pytest.raises(Cancelled, match="0 of 3"):
        retrain(fit, train, texts, parts, cancelled=lambda: True)
    with pytest.raises(BadData, match="with a label"):
        retrain(fit, train, [Example("1", "good")], parts)


def test_margins_of_many_labels_are_log_odds():
    model = tiny.transformer(labels=4)
    texts = [Example(str(n), text, label=model.labels[n % 4]) for n, text in enumerate(tiny.SENTENCES[:6])]
    p = [prediction.probabilities[n % 4] for n, prediction in enumerate(model.predict(texts))]
    np.testing.assert_allclose(label_margins(model, texts), [np.log(one / (1 - one)) for one in p], atol=1e-5)


def test_what_cannot_be_judged_is_said():
    retrained = additive(halves(40, 10))
    with pytest.raises(BadData, match="at least three"):
        linear_datamodelling(TRUE, additive(halves(40, 2)))
    with pytest.raises(BadData, match="30"):
        linear_datamodelling(TRUE[:4], retrained)
    with pytest.raises(BadData, match="nothing to compare"):
        linear_datamodelling(np.zeros_like(TRUE), retrained)
    with pytest.raises(BadData, match="no scores"):
        linear_datamodelling(np.full_like(TRUE, np.nan), retrained)
    with pytest.raises(BadData, match="alike"):
        planted_recall(TRUE, np.ones((2, 2), bool))
    with pytest.raises(BadData, match="needs planted"):
        planted_recall(TRUE, np.zeros(TRUE.shape, bool))
    with pytest.raises(BadOption, match="not all"):
        halves(1, 2)
    with pytest.raises(BadOption, match="left out"):
        groups_left_out(4, 2, size=4)
