from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute
from unhans.errors import BadOption
from unhans.ranks import spearman
from unhans.text import Hole, Words
from unhans.types import Example

EIGHT = Example("e", "The soup was cold and the waiter left")
ODD = Example("o", "Good? It was cold, but nice.")
PAIR = Example("p", "She left. It was good.", "No!")
TREES = {  # written out by hand
    "e": (((0, 1), (2, 3)), ((4, 5), (6, 7))),  # "and" begins a phrase
    "o": ((0, 1), (((2, 3), (4, 5)), (6, (7, 8)))),  # sentence, phrase, halves
    "p": (((0, (1, 2)), ((3, 4), (5, 6))), (7, 8)),  # the parts, though a sentence ends nearer to the middle
}


def leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for branch in tree for leaf in leaves(branch)]


def orders(tree):
    """All orders of the words in which no branch of the tree is interrupted."""
    if isinstance(tree, int):
        return [[tree]]
    left, right = map(orders, tree)
    return [a + b for a, b in product(left, right)] + [b + a for a, b in product(left, right)]


def game(classifier, example, label, hole=None):
    words, known = Words(example), {}

    def value(kept):
        kept = frozenset(kept)
        if kept not in known:
            left = words.without(set(range(len(words))) - kept, hole)
            p = float(np.exp(classifier.log_probs([left]))[0, label])
            known[kept] = np.log(p / (1 - p))
        return known[kept]

    return value


def by_all_orders(value, tree):
    """Owen's definition: what each word adds to those before it, over the orders that keep groups together."""
    scores = np.zeros(len(leaves(tree)))
    every = orders(tree)
    for order in every:
        for place, word in enumerate(order):
            scores[word] += value(order[: place + 1]) - value(order[:place])
    return scores / len(every)


@pytest.mark.parametrize("example", [EIGHT, ODD, PAIR], ids=lambda e: e.id)
@pytest.mark.parametrize(("labels", "label"), [(2, 1), (3, 2)])
def test_scores_are_owen_values_of_the_text_s_own_parts(example, labels, label):
    classifier = tiny.transformer(labels=labels)
    truth = by_all_orders(game(classifier, example, label), TREES[example.id])
    (one,) = attribute(classifier, [example], method="owen", target=label)
    assert np.allclose(one.scores, truth, atol=1e-4)


def linkage(tree, n):
    """The tree as scipy and shap write it: one row for each branching, lowest first."""
    rows = []

    def number(branch):
        if isinstance(branch, int):
            return branch
        left, right = map(number, branch)
        rows.append((left, right, 1.0, len(leaves(branch))))
        return n + len(rows) - 1

    number(tree)
    return np.array(rows)


@pytest.mark.parametrize("example", [EIGHT, ODD], ids=lambda e: e.id)
def test_it_agrees_with_shaps_own_partition_explainer(example):
    shap = pytest.importorskip("shap")
    classifier = tiny.transformer()
    value = game(classifier, example, 1)
    n = len(Words(example))

    class Masker(shap.maskers.Masker):
        shape = (1, n)
        clustering = linkage(TREES[example.id], n)

        def __call__(self, mask, x):
            return (np.where(mask, x, 0)[None],)

    explainer = shap.explainers.Partition(lambda rows: np.array([value(np.flatnonzero(row)) for row in rows]), Masker())
    theirs = explainer(np.ones((1, n)), max_evals=1000, silent=True).values[0]
    (one,) = attribute(classifier, [example], method="partition_shap", target=1)
    assert np.allclose(one.scores, theirs, atol=1e-4)


@pytest.mark.parametrize("most", [2, 3, 4, 17, 64, 500])
@pytest.mark.parametrize("erase", ["delete", "mask"])
def test_scores_sum_to_what_the_whole_text_adds_however_few_the_answers(most, erase):
    classifier = tiny.transformer()
    example = Example("x", "The plot makes no sense, the actors try hard. The music saves it and the screen is bright")
    value = game(classifier, example, 1, None if erase == "delete" else Hole.MASK)
    words = range(len(Words(example)))
    (one,) = attribute(classifier, [example], method="owen", target=1, max_evals=most, erase=erase)
    assert sum(one.scores) == pytest.approx(value(words) - value(()), abs=1e-4)


@pytest.mark.parametrize("most", [2, 3, 17, 64])
def test_it_keeps_to_its_budget_and_uses_it(most):
    texts = []
    model = tiny.bag_of_words({"cold": -1.0, "left": 2.0}, asked=texts)
    example = Example("x", " ".join(f"word{n}" for n in range(30)))
    attribute(model, [example], method="owen", target=1, max_evals=most)
    assert most - 1 <= len(texts) <= most


def test_the_budget_goes_where_the_effect_is():
    words = [f"word{n}" for n in range(64)]
    model = tiny.bag_of_words({"word5": 3.0})
    (one,) = attribute(model, [Example("x", " ".join(words))], method="owen", target=1, max_evals=200)
    assert one.scores[5] == pytest.approx(3, abs=1e-3)
    assert np.allclose(np.delete(one.scores, 5), 0, atol=1e-3)


def test_without_a_budget_all_words_share_alike():
    (one,) = attribute(tiny.bag_of_words({"soup": 2.0}), [EIGHT], method="owen", target=1, max_evals=2)
    assert np.allclose(one.scores, 2 / 8, atol=1e-4)


def test_it_is_not_far_from_shapley_values():
    classifier = tiny.transformer()
    owen, shapley = (attribute(classifier, [EIGHT], method=name, target=1)[0].scores for name in ("owen", "shap"))
    assert spearman(np.array(owen), np.array(shapley)) > 0.7


def test_words_that_are_not_read_are_left_out_of_the_tree():
    tail = Example("x", "cold soup and the waiter " * 6 + "wonderful")
    read = Example("x", "cold soup and the waiter " * 6)
    classifier = tiny.transformer()
    long, short = (attribute(classifier, [e], method="owen", target=1)[0] for e in (tail, read))
    assert long.scores[:30] == pytest.approx(short.scores, abs=1e-4)
    assert long.scores[30] == 0


def test_a_budget_below_two_answers_is_refused():
    with pytest.raises(BadOption, match="max_evals"):
        attribute(tiny.bag_of_words({}), [EIGHT], method="owen", max_evals=1)
