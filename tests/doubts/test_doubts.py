"""The front door of the doubts, and each sign against its formula, written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tiny
from unhans.doubts import Doubts, How, doubt, doubts
from unhans.doubts._heads import out_of_fold
from unhans.embeddings import embeddings_of
from unhans.errors import BadData, BadOption, Cancelled
from unhans.influences import prepare
from unhans.types import Example

BAG = tiny.bag_of_words({"good": 2.0, "bad": -2.0})
GOOD, BAD = "positive", "negative"


def bags(*texts_and_labels):
    return [Example(f"b{n}", text, label=label) for n, (text, label) in enumerate(texts_and_labels)]


def called(name, **offered):
    return doubt[name]({"how": How(), "rng": np.random.default_rng(0)} | offered)


def test_the_label_that_the_model_believes_least_comes_first():
    found = doubts(BAG, bags(("good", GOOD), ("good good", BAD), ("bad", BAD), ("soup", GOOD)))
    assert [one.example for one in found] == ["b1", "b3", "b0", "b2"]
    assert [one.suggested for one in found] == [GOOD, BAD, GOOD, BAD]
    assert isinstance(found, Doubts)
    assert "b1" in found._repr_html_()


def test_ranks_are_shares_of_less_doubtful_examples_and_scores_are_on_their_scale():
    found = doubts(BAG, bags(("bad", GOOD), ("good", GOOD), ("good good", GOOD), ("bad bad", GOOD)))
    told = {one.example: dict(one.signs) for one in found}
    assert {id_: signs["low_confidence"] for id_, signs in told.items()} == {"b3": 0.75, "b0": 0.5, "b1": 0.25, "b2": 0}
    assert found[0].score == pytest.approx(1 - (0.25 * 1.0) ** 0.5)  # contradiction has nothing to say here
    alone = doubts(BAG, bags(("bad", GOOD), ("good", GOOD)), signs=["low_confidence"])
    assert [one.score for one in alone] == pytest.approx([0.5, 0.0])


def test_those_that_are_level_stay_in_the_order_of_the_data():
    found = doubts(BAG, bags(*[("good", GOOD)] * 5, ("bad", GOOD), *[("good", GOOD)] * 5))
    assert [one.example for one in found] == ["b5", *(f"b{n}" for n in range(11) if n != 5)]


def test_equal_texts_with_different_labels_are_flagged():
    found = doubts(BAG, bags(("a", GOOD), ("a", BAD), ("a", GOOD), ("b", BAD), ("c", GOOD)), signs=["contradiction"])
    assert [one.example for one in found[:3]] == ["b1", "b0", "b2"]
    assert {one.score for one in found[3:]} == {0.0}


def test_a_pair_is_not_the_text_that_it_begins_with():
    train = [Example("1", "a", "b", GOOD), Example("2", "a", None, BAD), Example("3", "a", "b", GOOD)]
    assert {one.score for one in doubts(tiny.transformer(), train, signs=["contradiction"])} == {0.0}


def test_what_was_run_is_told():
    classifier = tiny.transformer()
    train = bags(("good", GOOD), ("bad", BAD), ("soup", BAD))
    settings = {"neighbour_disagreement": {"k": 2}}
    recipe = doubts(classifier, train, options=settings, seed=7)[0].recipe
    assert recipe.family == "doubts"
    assert recipe.name == "combined"
    assert recipe.seed == 7
    assert dict(recipe.options)["neighbour_disagreement.k"] == 2
    assert "self_influence" in str(dict(recipe.options)["signs"])
    assert doubts(BAG, train, signs=["low_confidence"])[0].recipe.name == "low_confidence"


def test_what_cannot_be_done_is_said():
    train = bags(("good", GOOD), ("bad", BAD))
    with pytest.raises(BadOption, match="low_confidence"):
        doubts(BAG, train, signs=["low_confidenc"])
    with pytest.raises(BadOption, match="at least one sign"):
        doubts(BAG, train, signs=[])
    with pytest.raises(BadOption, match="not among the signs"):
        doubts(BAG, train, options={"confident_learning": {"folds": 3}})
    with pytest.raises(BadData, match="nothing to doubt"):
        doubts(BAG, [Example("1", "good")])
    with pytest.raises(BadData, match="'odd'"):
        doubts(BAG, [Example("1", "good", label="odd")])
    for name, settings in (("neighbour_disagreement", {"k": 0}), ("confident_learning", {"folds": 1})):
        with pytest.raises(BadOption, match="at least"):
            doubts(tiny.transformer(), train, signs=[name], options={name: settings})


def test_embeddings_are_means_of_last_states():
    classifier = tiny.transformer()
    texts = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES[:5])]
    batch = classifier.batch(texts)
    states = classifier.model.base_model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
    means = np.array(
        [state[mask.bool()].mean(0).detach().numpy() for state, mask in zip(states, batch.mask, strict=True)]
    )
    means = means - means.mean(0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(embeddings_of(classifier, texts), means, atol=1e-5)


def test_neighbours_vote_by_nearness_and_copies_do_not_vote_on_themselves():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    texts = np.array([*range(12), 0, 0, 4])  # three are copies
    given = rng.integers(0, 3, 15)
    found = called(
        "neighbour_disagreement",
        classifier=tiny.transformer(labels=3),
        embeddings=points[texts],
        given=given,
        texts=texts,
    )
    assert found.says == pytest.approx(_slow_votes(points, texts, given, 50))
    assert found.values == pytest.approx(1 - found.says[np.arange(15), given])


def _slow_votes(points, texts, given, k):
    says = []
    for text in texts:
        others = sorted((o for o in range(len(points)) if o != text), key=lambda o: -points[o] @ points[text])[:k]
        votes = np.zeros(3)
        for other in others:
            labels = given[texts == other]
            votes += max(points[other] @ points[text], 1e-6) * np.bincount(labels, minlength=3) / len(labels)
        says.append(votes / votes.sum())
    return np.array(says)


def test_heads_are_those_of_logistic_regression_and_never_see_a_copy():
    rng = np.random.default_rng(1)
    texts = np.array([*range(30), *range(10)])
    points = rng.normal(size=(30, 4))[texts]
    given = np.array([*rng.integers(0, 3, 30), *rng.integers(0, 3, 10)])
    found = out_of_fold(points, given, texts, 3, np.random.default_rng(2), How(), folds=30, penalty=0.5)
    for text in range(30):  # as many folds as texts: each is left out with its copies
        held = texts == text
        inputs = np.hstack([points, np.ones((40, 1))])
        head = LogisticRegression(C=1 / 0.5, fit_intercept=False, max_iter=1000, tol=1e-8)
        head.fit(inputs[~held], given[~held])
        np.testing.assert_allclose(found[held], head.predict_proba(inputs[held]), atol=2e-3)


def test_a_head_in_training_tells_how_far_it_is_and_hears_a_stop():
    rng, told = np.random.default_rng(4), []
    points, given = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    how = How(lambda done, of: told.append(done / of), cancelled=lambda: len(told) == 3)
    with pytest.raises(Cancelled):
        out_of_fold(points, given, np.arange(60), 2, rng, how, folds=2)
    assert told == sorted(told)
    assert told[-1] < 0.5  # within the first of two folds


def test_confident_learning_measures_each_label_from_its_own_bar():
    rng = np.random.default_rng(3)
    points, given = rng.normal(size=(40, 4)), rng.integers(0, 3, 40)
    texts = np.arange(40)
    model = tiny.transformer(labels=3)
    found = called("confident_learning", classifier=model, embeddings=points, given=given, texts=texts)
    says = out_of_fold(points, given, texts, 3, np.random.default_rng(0), How(), penalty=10.0)
    bars = [says[given == label, label].mean() for label in range(3)]
    for n, own in enumerate(given):
        best = max(says[n, other] - bars[other] for other in range(3) if other != own)
        assert found.values[n] == pytest.approx(best - (says[n, own] - bars[own]))


def test_self_influence_is_that_of_the_default_method():
    model = tiny.transformer()
    train = bags(*[(text, (GOOD, BAD)[n % 2]) for n, text in enumerate(tiny.SENTENCES)])
    own = prepare(model, train).self_influence()
    order = [train[n].id for n in np.argsort(-own)]
    assert [one.example for one in doubts(model, train, signs=["self_influence"])] == order
