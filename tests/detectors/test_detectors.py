"""Each detector against its formula, and the share of strange texts against simulation."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf
from sklearn.neighbors import NearestNeighbors

import tiny
from unhans.detectors import detect, fewest_usual, strange_share
from unhans.detectors.mahalanobis import shrunk_covariance
from unhans.embeddings import states_of
from unhans.errors import BadData, BadOption
from unhans.types import Example

CLASSIFIER = tiny.transformer(labels=3)
TRAIN = [Example(f"t{n}", text, label=f"label {n % 3}") for n, text in enumerate(tiny.SENTENCES)]
TEXTS = ["The soup was cold.", "A wonderful room!", "日本語", ""]
ASKED = [Example(f"a{n}", text) for n, text in enumerate(TEXTS)]


def logits():
    with torch.no_grad():
        return np.stack([CLASSIFIER.logits(CLASSIFIER.batch([one]))[0].double().numpy() for one in ASKED])


def test_max_probability_is_the_surprise_at_the_best_label():
    probabilities = np.exp(logits()) / np.exp(logits()).sum(1, keepdims=True)
    expected = -np.log(probabilities.max(1))
    np.testing.assert_allclose(detect(CLASSIFIER, [], TEXTS, method="max_probability"), expected, rtol=1e-4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 10.0])
def test_energy_is_what_all_labels_come_to(temperature):
    expected = -temperature * np.log(np.exp(logits() / temperature).sum(1))
    found = detect(CLASSIFIER, [], TEXTS, method="energy", temperature=temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    with pytest.raises(BadOption, match="temperature"):
        detect(CLASSIFIER, [], TEXTS, method="energy", temperature=0.0)


@pytest.mark.parametrize("k", [1, 4, 100])
def test_embedding_distance_is_that_of_the_kth_neighbour(k):
    known = states_of(CLASSIFIER, TRAIN)
    middle = known.mean(0)
    known, asked = (
        (table - middle) / np.linalg.norm(table - middle, axis=1, keepdims=True)
        for table in (known, states_of(CLASSIFIER, ASKED))
    )
    near = NearestNeighbors(n_neighbors=min(k, len(known))).fit(known).kneighbors(asked)[0][:, -1]
    np.testing.assert_allclose(detect(CLASSIFIER, TRAIN, TEXTS, k=k), near, rtol=1e-5)


@pytest.mark.parametrize("order", [1, 3, 5])
def test_character_ngrams_are_witten_and_bells(order):
    train = [*TRAIN, Example("pair", "aa ab", "ba")]
    asked = [*TEXTS, "zzz", ("aa", "b")]
    counts = [defaultdict(Counter) for _ in range(order)]

    def signs(part):
        """With what is before and behind, and from where on they are to be expected."""
        return [*[None] * (order - 1), *part, "END"], range(order - 1, order + len(part))

    for line, places in (signs(part) for example in train for part in example.parts):
        for at in places:
            for n in range(order):
                counts[n][tuple(line[at - n : at])][line[at]] += 1
    known = len(counts[0][()])

    def surprise(text):
        found = []
        for line, places in (signs(part) for part in ((text,) if isinstance(text, str) else text)):
            for at in places:
                likely = 1 / (known + 1)
                for n in range(order):
                    after = counts[n][tuple(line[at - n : at])]
                    if after:
                        likely = (after[line[at]] + len(after) * likely) / (after.total() + len(after))
                found.append(-math.log(likely))
        return sum(found) / len(found)

    found = detect(CLASSIFIER, train, asked, method="character_ngrams", order=order)
    np.testing.assert_allclose(found, [surprise(text) for text in asked], rtol=1e-9)
    cut = detect(CLASSIFIER, train, ["The soup" + "x" * 30], method="character_ngrams", characters=8)
    assert cut == detect(CLASSIFIER, train, ["The soup"], method="character_ngrams", characters=8)
    with pytest.raises(BadOption, match="at least 1"):
        detect(CLASSIFIER, train, asked, method="character_ngrams", order=0)


@pytest.mark.parametrize("at_once", [1, 2 * 2000, 10**9])
def test_characters_are_counted_alike_however_many_texts_are_asked_about_at_once(monkeypatch, at_once):
    asked = [*TEXTS, *tiny.SENTENCES, "zzz", "日本語 and more", "The soup"]
    alone = [detect(CLASSIFIER, TRAIN, one, method="character_ngrams")[0] for one in asked]
    monkeypatch.setattr("unhans.detectors.character_ngrams._AT_ONCE", at_once)
    np.testing.assert_array_equal(detect(CLASSIFIER, TRAIN, asked, method="character_ngrams"), alone)


def test_what_counting_characters_holds_does_not_grow_with_the_texts_that_are_asked_about():
    def held(n):
        asked = [f"{k} " + "the soup was cold and the room " * 60 for k in range(n)]
        tracemalloc.start()
        try:
            detect(CLASSIFIER, TRAIN, asked, method="character_ngrams")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert held(1500) < 1.3 * held(500)


def test_a_text_that_was_taught_is_its_own_first_neighbour():
    itself, second = (detect(CLASSIFIER, TRAIN, TRAIN[3:4], k=k)[0] for k in (1, 2))
    assert itself == pytest.approx(0, abs=1e-3)
    assert second > 0.1
    with pytest.raises(BadOption, match="k must"):
        detect(CLASSIFIER, TRAIN, TEXTS, k=0)
    with pytest.raises(BadOption, match="examples must"):
        detect(CLASSIFIER, TRAIN, TEXTS, examples=0)


def test_many_texts_are_measured_in_parts(monkeypatch):
    whole = detect(CLASSIFIER, TRAIN, TEXTS, k=2)
    monkeypatch.setattr("unhans.detectors.embedding_distance._CELLS", 1)
    np.testing.assert_allclose(detect(CLASSIFIER, TRAIN, TEXTS, k=2), whole)


def test_mahalanobis_is_the_distance_to_the_nearest_label():
    known, asked = states_of(CLASSIFIER, TRAIN), states_of(CLASSIFIER, ASKED)
    means = np.stack([known[n::3].mean(0) for n in range(3)])
    inverse = np.linalg.inv(LedoitWolf(assume_centered=True).fit(known - np.tile(means, (4, 1))).covariance_)
    expected = [min((x - mean) @ inverse @ (x - mean) for mean in means) for x in asked]
    np.testing.assert_allclose(detect(CLASSIFIER, TRAIN, TEXTS, method="mahalanobis"), expected, rtol=1e-5)
    with pytest.raises(BadData, match="embedding_distance"):
        detect(CLASSIFIER, tiny.SENTENCES, TEXTS, method="mahalanobis")


@pytest.mark.parametrize("shape", [(200, 5), (6, 20)])
def test_the_covariance_is_shrunk_as_scikit_learn_does(shape):
    table = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    theirs = LedoitWolf(assume_centered=True).fit(table).covariance_
    np.testing.assert_allclose(shrunk_covariance(table), theirs, atol=1e-9)
    np.testing.assert_array_equal(shrunk_covariance(np.zeros(shape)), np.eye(shape[1]))


def test_two_examples_can_be_measured_against():
    found = detect(CLASSIFIER, [TRAIN[0], TRAIN[3]], TEXTS, method="mahalanobis")
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_perplexity_is_what_the_language_model_says():
    model = tiny.language_model()
    expected = [-one for one in model.log_likelihoods(TEXTS[:3])] + [np.log(len(model.tokenizer))]
    found = detect(tiny.bag_of_words({}), [], TEXTS, method="perplexity", language_model=model)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# -- shares


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
def test_below_the_fewest_usual_scores_nothing_can_be_told(level):
    for n, told in ((fewest_usual(level) - 1, False), (fewest_usual(level), True)):
        low = strange_share(range(n), [1e9] * 300, level)[1]
        assert (low > 0.9) == told, n


def test_a_share_counts_what_is_beyond_the_bar():
    usual = np.arange(1, 1001)
    assert strange_share(usual, [950, 951, 1, 2])[0] == 0.25
    assert strange_share(usual, [500.5, 500], level=0.5)[0] == 0.5
    share, low, high = strange_share(usual, [2000.0] * 300)
    assert (share, high) == (1.0, 1.0)
    assert 0.97 < low < 1
    assert strange_share(usual, [0.0] * 300)[:2] == (0.0, 0.0)


def test_few_usual_texts_make_the_bar_uncertain():
    assert strange_share([1.0, 2.0, 3.0], [9.0] * 100)[1] == 0.0
    narrow, wide = (strange_share(range(n), [n * 0.97] * 50 + [0] * 50) for n in (10_000, 100))
    assert narrow[2] - narrow[1] < wide[2] - wide[1]


def test_the_interval_holds_what_it_promises():
    """Usual texts and others of a known distribution: the true share is inside at least 19 times of 20."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(300):
        _, low, high = strange_share(rng.normal(size=200), rng.normal(1.0, 1.0, size=150))
        inside += low <= 0.2595 <= high  # P(N(1, 1) > 1.645)
    assert inside >= 285


@pytest.mark.parametrize(("usual", "scores"), [([], [1.0]), ([1.0], []), ([1.0, float("nan")], [1.0])])
def test_a_share_of_nothing_is_refused(usual, scores):
    with pytest.raises(BadData, match="scores"):
        strange_share(usual, scores)
    with pytest.raises(BadOption, match="level"):
        strange_share([1.0], [1.0], level=1.0)
