from __future__ import annotations

import logging
from itertools import combinations, permutations

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute
from unhans.attributions._surrogates import paired_masks
from unhans.attributions.kernel_shap import shapley
from unhans.black_boxes import PredictFunction
from unhans.ranks import spearman
from unhans.text import Hole, Words
from unhans.types import Example

SHORT = Example("s", "The soup was cold, wasn't it")
PAIR = Example("p", "She liked it.", "He did not!")
LONG = Example("l", "A plot makes no sense; these actors try hard but the music saves it and its screen is bright")


def game(classifier, example, label):
    """Log-odds of the label by the set of words that are left, asked one text at a time."""
    words, known = Words(example), {}

    def value(kept):
        kept = frozenset(kept)
        if kept not in known:
            p = float(np.exp(classifier.log_probs([words.without(set(range(len(words))) - kept)]))[0, label])
            known[kept] = np.log(p / (1 - p))
        return known[kept]

    return value, len(words)


def by_all_orders(value, n):
    """Shapley's definition: what each adds to those before it, over all orders."""
    scores = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        for place, word in enumerate(order):
            scores[word] += value(order[: place + 1]) - value(order[:place])
    return scores / len(orders)


@pytest.mark.parametrize("example", [SHORT, PAIR])
@pytest.mark.parametrize(("labels", "label"), [(2, 1), (3, 2)])
def test_few_words_get_their_shapley_values(example, labels, label):
    classifier = tiny.transformer(labels=labels)
    value, n = game(classifier, example, label)
    (one,) = attribute(classifier, [example], method="shap", target=label)
    assert one.asked == 2**n
    assert np.allclose(one.scores, by_all_orders(value, n), atol=1e-4)  # the same texts in other batches


@pytest.mark.parametrize("n", range(1, 8))
def test_the_fit_is_exact_on_all_subsets_of_any_game(n):
    rng = np.random.default_rng(n)
    known = {frozenset(c): rng.normal() for size in range(n + 1) for c in combinations(range(n), size)}
    masks = np.array([[word in kept for word in range(n)] for kept in known])
    truth = by_all_orders(lambda kept: known[frozenset(kept)], n)
    assert np.allclose(shapley(masks, np.array(list(known.values())), np.ones(2**n)), truth, atol=1e-6)


def test_it_agrees_with_shaps_own_explainer():
    shap = pytest.importorskip("shap")
    logging.getLogger("shap").setLevel(logging.CRITICAL)
    classifier = tiny.transformer()
    value, n = game(classifier, SHORT, 1)
    explainer = shap.KernelExplainer(
        lambda rows: np.array([value(np.flatnonzero(row)) for row in rows]), np.zeros((1, n))
    )
    theirs = explainer.shap_values(np.ones((1, n)), nsamples=2**n, silent=True, l1_reg=False)[0]
    (one,) = attribute(classifier, [SHORT], method="kernel_shap", target=1)
    assert np.allclose(one.scores, theirs, atol=1e-4)


@pytest.mark.parametrize("number", [10, 50, 301])
@pytest.mark.parametrize("erase", ["delete", "mask"])
def test_scores_sum_to_what_the_whole_text_adds_however_few_the_samples(number, erase):
    classifier = tiny.transformer()
    words = Words(LONG)
    none = words.without(range(len(words)), None if erase == "delete" else Hole.MASK)
    whole, empty = np.diff(classifier.log_probs([LONG, none]), axis=1)[:, 0]
    (one,) = attribute(classifier, [LONG], method="kernel_shap", target=1, num_samples=number, erase=erase)
    assert sum(one.scores) == pytest.approx(whole - empty, abs=1e-4)


def test_on_a_bag_of_words_the_scores_are_the_weights():
    weights = {"plot": 1.0, "sense": -0.5, "music": 0.25}
    truth = [weights.get(word, 0.0) for word in Words(LONG).strings]
    for number in (120, 400):
        (one,) = attribute(tiny.bag_of_words(weights), [LONG], method="shap", target="positive", num_samples=number)
        assert np.allclose(one.scores, truth, atol=1e-4)


def interacting(n):
    """A game in which words, twos and threes of them have effects of their own: its values, and Shapley's."""
    rng = np.random.default_rng(0)
    sets = [frozenset(some) for size in (1, 2, 3) for some in combinations(range(n), size)]
    effects = np.array([rng.normal() / (8 * len(some) ** 2) for some in sets])
    members = np.array([[word in some for word in range(n)] for some in sets], float)
    truth = (effects / members.sum(1)) @ members
    return lambda rows: (np.asarray(rows, float) @ members.T >= members.sum(1)) @ effects, truth


def test_hardly_more_pairs_than_words_do_not_blow_up_the_noise():
    value, truth = interacting(20)
    errors = []
    for seed in range(10):
        masks = paired_masks(np.random.default_rng(seed), 20, 2 + 2 * 22).masks
        some, size = masks[2:], masks[2:].sum(1, keepdims=True)
        total = value(masks[1]) - value(masks[0])
        rest = value(some) - value(masks[0]) - size[:, 0] * total / 20
        bare = total / 20 + np.linalg.lstsq(some - size / 20, rest)[0]
        ours = shapley(masks, value(masks), np.ones(len(masks)))
        errors.append([np.square(scores - truth).sum() for scores in (ours, bare)])
    ours, bare = np.mean(errors, axis=0)
    assert ours < 0.7 * bare


def test_it_needs_less_than_half_of_captums_samples_where_words_interact():
    attr = pytest.importorskip("captum.attr")
    import torch

    text = "a plot makes no sense these actors try hard but the music saves it and its screen is bright"
    n = len(text.split())
    log_odds, truth = interacting(n)

    def predict(texts):
        x = log_odds([[word in left for word in text.split()] for left in map(str.split, texts)])
        return np.stack([1 / (1 + np.exp(x)), 1 / (1 + np.exp(-x))], axis=1)

    def captums(seed):
        torch.manual_seed(seed)
        explainer = attr.KernelShap(lambda rows: torch.tensor(log_odds(rows.numpy())))
        ends = torch.ones(1, n), torch.zeros(1, n)
        return explainer.attribute(*ends, n_samples=600, perturbations_per_eval=600)[0].numpy()

    def ours(seed):
        classifier = PredictFunction(predict, ("negative", "positive"), "interacting")
        return np.array(attribute(classifier, text, method="shap", target=1, num_samples=200, seed=seed)[0].scores)

    assert np.mean([spearman(ours(seed), truth) for seed in range(4)]) > 0.9
    errors = [np.mean([np.square(some(seed) - truth).sum() for seed in range(4)]) for some in (ours, captums)]
    assert errors[0] < errors[1]
