"""What sampled methods share, tested through Kernel SHAP and LIME and, where that cannot show it, directly."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute
from unhans.attributions._surrogates import estimates, paired_masks, plain_masks
from unhans.errors import BadOption, Cancelled
from unhans.ranks import spearman
from unhans.text import Words
from unhans.types import Example

SAMPLED = ("kernel_shap", "lime")
TWELVE = Example("x", "The soup was cold and the waiter did not care at all")
LONG = Example("y", "The plot makes no sense, the actors try hard, the music saves it and the screen is bright")


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", range(1, 9))
def test_few_words_have_all_their_masks_once(n):
    draws = paired_masks(rng(), n, 2**n)
    assert draws.exact
    assert {tuple(mask) for mask in draws.masks.tolist()} == set(product([False, True], repeat=n))
    assert len(draws.masks) == 2**n


@pytest.mark.parametrize(("n", "most"), [(5, 31), (8, 100), (13, 1000), (40, 300), (300, 101)])
def test_pairs_are_complements_and_no_mask_comes_twice(n, most):
    draws = paired_masks(rng(), n, most)
    assert not draws.exact
    assert len(draws.masks) == most - most % 2
    assert (draws.masks[::2] == ~draws.masks[1::2]).all()
    assert (draws.units[::2] == draws.units[1::2]).all()
    assert len({mask.tobytes() for mask in draws.masks}) == len(draws.masks)
    assert {int(size) for size in draws.masks[:2].sum(1)} == {0, n}
    assert all(0 < size < n for size in draws.masks[2:].sum(1))


@pytest.mark.parametrize("n", [12, 13])
def test_sizes_are_equally_frequent_until_their_masks_are_used_up(n):
    counts = np.bincount(paired_masks(rng(), n, 1000).masks.sum(1), minlength=n + 1)[1:n]
    used_up = np.array([comb(n, size) for size in range(1, n)])
    full = counts == used_up
    assert full[0]
    assert full[-1]
    assert not full.all()
    assert np.ptp(counts[~full]) <= 2
    assert counts[full].max() <= counts[~full].min()


def test_within_a_size_every_word_is_as_likely_as_any_other():
    masks = np.vstack([paired_masks(rng(seed), 9, 60).masks for seed in range(400)])
    for size in range(1, 9):
        shares = masks[masks.sum(1) == size].mean(0)
        assert np.allclose(shares, size / 9, atol=0.04)


def test_plain_masks_hide_every_number_of_words_alike():
    draws = plain_masks(rng(), 5, 20_001)
    assert draws.masks[0].all()
    hidden = 5 - draws.masks[1:].sum(1)
    assert np.allclose(np.bincount(hidden, minlength=6) / 20_000, [0, 0.2, 0.2, 0.2, 0.2, 0.2], atol=0.02)
    assert np.allclose(draws.masks[1:].mean(0), 0.4, atol=0.02)


def test_spearman_is_scipys_and_knows_lines_without_an_order():
    from scipy.stats import spearmanr

    first, second = rng(1).integers(0, 6, 30).astype(float), rng(2).integers(0, 6, 30).astype(float)
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    flat, slope = np.zeros(3), np.arange(3.0)
    assert (spearman(flat, flat), spearman(flat, slope), spearman(slope, -slope)) == (1, 0, -1)
    assert spearman(np.ones(1), np.zeros(1)) == 1


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize(("text", "asked"), [("", 0), ("soup", 2), ("cold soup", 4)])
def test_the_shortest_texts_have_sure_and_finite_scores(method, text, asked):
    for tolerance in (0.0, 0.1):
        (one,) = attribute(tiny.transformer(), [Example("x", text)], method=method, tolerance=tolerance)
        assert (one.asked, one.stability, set(one.errors)) == (asked, 1.0, {0.0} if text else set())
        assert all(score != 0 for score in one.scores)


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
def test_what_is_said_to_be_asked_is_asked_once(method, tolerance):
    texts = []
    model = tiny.bag_of_words({"cold": -1.0}, asked=texts)
    (one,) = attribute(model, [TWELVE], method=method, target="positive", num_samples=300, tolerance=tolerance)
    assert len(set(texts)) == len(texts) == one.asked == 300
    assert TWELVE.text in texts
    assert "" in texts


@pytest.mark.parametrize("method", SAMPLED)
def test_a_clear_case_stops_early_and_its_neighbour_goes_on(method):
    weights = {word: 0.25 * (n + 1) - 2 for n, word in enumerate(TWELVE.text.split())}
    texts = []
    model = tiny.bag_of_words(weights, asked=texts)
    muddle = Example("z", "so so so so so so so so so so so so")  # nothing to be found here but noise
    examples = [TWELVE, muddle]
    clear, noise = attribute(model, examples, method=method, target="positive", tolerance=0.02, num_samples=600)
    assert clear.stability >= 0.98
    assert clear.asked < 400
    whole = attribute(model, [TWELVE], method=method, target="positive", num_samples=600)[0]
    assert whole.asked == 600
    assert spearman(np.array(clear.scores), np.array(whole.scores)) > 0.95
    assert noise.asked > 0
    alone = attribute(model, [TWELVE], method=method, target="positive", tolerance=0.02, num_samples=600)[0]
    assert alone.scores == pytest.approx(clear.scores)
    assert alone.asked == clear.asked


@pytest.mark.parametrize("method", SAMPLED)
def test_a_stricter_tolerance_asks_more_and_none_asks_for_all(method):
    classifier = tiny.bag_of_words({word: 0.1 * n - 1 for n, word in enumerate(LONG.text.split())})
    asked = [
        attribute(classifier, [LONG], method=method, num_samples=1000, tolerance=tolerance)[0].asked
        for tolerance in (0.5, 0.02, 0.0)
    ]
    assert asked == sorted(asked)
    assert asked[0] < asked[2] == 1000


@pytest.mark.parametrize("method", SAMPLED)
def test_errors_shrink_with_samples_and_cover_the_truth(method):
    classifier = tiny.transformer()
    (truth,) = attribute(classifier, [TWELVE], method=method, target="positive", num_samples=4096)
    assert truth.asked == 4096
    assert set(truth.errors) == {0.0}
    means = []
    for number in (100, 400):
        runs = [
            attribute(classifier, [TWELVE], method=method, target="positive", num_samples=number, seed=seed)[0]
            for seed in range(6)
        ]
        off = np.array([np.subtract(run.scores, truth.scores) for run in runs])
        errors = np.array([run.errors for run in runs])
        assert 0.8 <= np.mean(np.abs(off) <= 2 * errors) <= 1
        assert 0.4 <= np.sqrt(np.mean(off**2) / np.mean(errors**2)) <= 1.5
        means.append(errors.mean())
    assert means[1] < 0.75 * means[0]


def test_a_share_of_the_samples_has_every_size_count_as_much_as_all_of_them():
    seen = []

    def fit(masks, values, counts):
        seen.append((masks.sum(1), counts))
        return values[:12]

    words = Words(TWELVE)
    how = {"draw": paired_masks, "fit": fit, "unit": "probability", "num_samples": 301, "tolerance": 0.0}
    change = lambda asked: [one.without(hidden) for one, hidden in asked]  # noqa: E731
    estimates(tiny.bag_of_words({}), [words], [1], [rng()], {}, change=change, **how)
    assert len(seen) == 1 + 10 + 2  # all, all but a tenth, halves
    for sizes, counts in seen:
        assert np.allclose(np.bincount(sizes, counts), np.bincount(sizes))
    halves = [counts for _, counts in seen[11:]]
    assert not any((first > 0 and second > 0) for first, second in zip(*halves, strict=True) if first != 1)
    assert [counts[:2].tolist() for counts in halves] == [[1, 1], [1, 1]]


@pytest.mark.parametrize("method", SAMPLED)
def test_more_samples_are_more_stable(method):
    classifier = tiny.transformer()
    few, many = (attribute(classifier, [LONG], method=method, num_samples=number)[0] for number in (60, 2000))
    assert -1 <= few.stability < many.stability <= 1


@pytest.mark.parametrize("method", SAMPLED)
def test_words_that_are_not_read_are_not_sampled(method):
    seen = []

    class Counting(type(tiny.transformer())):
        def questions(self, variants):
            seen.extend(variants)
            return super().questions(variants)

    classifier = tiny.transformer()
    classifier.__class__ = Counting
    tail = Example("x", "cold soup and the waiter " * 6 + "wonderful")  # 30 words fill the model's 32 tokens
    (one,) = attribute(classifier, [tail], method=method, target="positive", num_samples=200)
    assert one.unread == (30,)
    assert one.errors[30] == one.scores[30] == 0
    changed = [variant for variant in seen if "".join(variant.parts[0]) != tail.text]
    assert len(changed) >= 199
    assert not any("wonderful" in "".join(variant.parts[0]) for variant in changed)


@pytest.mark.parametrize("method", [*SAMPLED, "lime_mlm", "partition_shap"])
@pytest.mark.parametrize("units", ["phrase", "sentence"])
def test_phrases_and_sentences_are_hidden_whole(method, units):
    texts = []
    model = tiny.bag_of_words({"cold": -1.0}, asked=texts)
    example = Example("x", "The soup was cold, and the bed was hard. Never again!")
    (one,) = attribute(
        model, [example], method=method, target="positive", units=units, language_model=tiny.language_model()
    )
    assert len(one.words) == {"phrase": 3, "sentence": 2}[units]
    assert int(np.argmin(one.scores)) == 0
    if method != "lime_mlm":
        assert all("The soup was cold" in text or "soup" not in text for text in texts)


@pytest.mark.parametrize("method", SAMPLED)
def test_options_without_sense_are_refused(method):
    for options in ({"num_samples": 9}, {"tolerance": -0.1}):
        with pytest.raises(BadOption, match=next(iter(options))):
            attribute(tiny.bag_of_words({}), [TWELVE], method=method, **options)


@pytest.mark.parametrize("method", SAMPLED)
def test_sampling_can_be_stopped(method):
    calls = iter(range(10**6))
    with pytest.raises(Cancelled):
        attribute(tiny.bag_of_words({}), [TWELVE], method=method, cancelled=lambda: next(calls) > 3)
