"""The loss against slow formulas; gradients that reach the weights; one pass for task and explanation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import shortcut
import tiny
from shortcut import CUE, vote
from unhans.attributions import attribution
from unhans.fixes import Aims, mend
from unhans.fixes.explanation_regularisation import gap
from unhans.types import Example

NAN = float("nan")
SCORES = [[0.5, -2.0, 1.0, 0.0], [3.0, 0.3, -0.6, 1.5]]
WANTED = [[0.0, NAN, 1.0, NAN], [NAN, 0.0, 0.0, NAN]]
PRESENT = [[True, True, True, False], [True, True, True, True]]


def rows():
    """Relative scores, wants and which words there are, row by row."""
    for scores, wanted, present in zip(SCORES, WANTED, PRESENT, strict=True):
        top = max(map(abs, scores))
        yield [score / top for score in scores], wanted, present


def asked():
    return [(s, w) for scores, wanted, _ in rows() for s, w in zip(scores, wanted, strict=True) if not math.isnan(w)]


def share(score, want):
    return max(score, 0.0) if want == 1 else abs(score)


def slow_kl():
    found = []
    for scores, wanted, present in rows():
        goal = [
            ((share(s, w) if math.isnan(w) else w) + 1e-4) * p for s, w, p in zip(scores, wanted, present, strict=True)
        ]
        have = [(share(s, w) + 1e-4) * p for s, w, p in zip(scores, wanted, present, strict=True)]
        terms = [
            g / sum(goal) * math.log(g / sum(goal) / (h / sum(have))) for g, h in zip(goal, have, strict=True) if g
        ]
        found.append(sum(terms))
    return np.mean(found)


def slow_order():
    found = []
    for scores, wanted, present in rows():
        shares = [share(s, w) for s, w in zip(scores, wanted, strict=True)]
        free = [s for s, w, p in zip(shares, wanted, present, strict=True) if p and math.isnan(w)]
        others = [s for s, w, p in zip(shares, wanted, present, strict=True) if p and w != 1]
        for s, w in zip(shares, wanted, strict=True):
            if not math.isnan(w):
                found.append(max(0.0, max(others) - s if w == 1 else s - np.mean(free)) ** 2)
    return np.mean(found)


def near(value):
    return min(max(value, 1e-4), 1 - 1e-4)


ORACLES = {
    "squared": lambda: np.mean([(s - w) ** 2 for s, w in asked()]),
    "absolute": lambda: np.mean([abs(s - w) for s, w in asked()]),
    "huber": lambda: np.mean([0.5 * d * d if d < 0.5 else 0.5 * (d - 0.25) for d in (abs(s - w) for s, w in asked())]),
    "bce": lambda: np.mean([-math.log(near(share(s, w)) if w else 1 - near(share(s, w))) for s, w in asked()]),
    "kl": slow_kl,
    "order": slow_order,
}


@pytest.mark.parametrize("distance", ORACLES)
def test_each_distance_is_what_its_formula_says(distance):
    found = gap(torch.tensor(SCORES), torch.tensor(WANTED), torch.tensor(PRESENT), distance)
    assert float(found) == pytest.approx(ORACLES[distance](), abs=1e-5)


@pytest.mark.parametrize("distance", ORACLES)
def test_following_each_distance_lowers_what_should_fall_and_raises_what_should_rise(distance):
    scores = torch.tensor(SCORES, requires_grad=True)
    gap(scores, torch.tensor(WANTED), torch.tensor(PRESENT), distance).backward()
    step = -scores.grad
    assert step[0, 0] <= 0  # a lowered word that speaks for the label
    assert step[0, 2] > 0  # a raised word
    assert step[1, 2] >= 0  # a lowered word that speaks against it comes up to nothing
    assert (step[0, 0] < 0) or distance in ("order", "kl")
    if distance != "kl":  # free words are free; in a distribution they share what others lose
        assert step[0, 1] == 0
        assert step[1, 0] == 0


@pytest.mark.parametrize("distance", ORACLES)
def test_scores_as_wanted_cost_nothing_or_next_to_it(distance):
    scores = torch.tensor([[0.0, 1.0, 0.2]])
    wanted = torch.tensor([[0.0, 1.0, NAN]])
    assert float(gap(scores, wanted, torch.ones(1, 3, dtype=torch.bool), distance)) < 2e-4


@pytest.mark.parametrize("method", ["input_x_gradient", "integrated_gradients", "gradient_shap", "deeplift", "lrp"])
def test_the_explanation_loss_moves_weights_behind_the_embeddings(method):
    """In XMD's released code it moved none."""
    given, train = shortcut.classifier(), shortcut.texts()
    made = {}
    for strength in (0.0, 5.0):
        asked = {"method": method, "strength": strength, "samples": 1}
        training = {"epochs": 1, "learning_rate": 1e-3, "patience": 0}
        made[strength] = mend(given, train, [vote()], fix="explanation_regularisation", training=training, **asked)
    plain, pulled = (made[strength].classifier.model.state_dict() for strength in (0.0, 5.0))
    moved = [name for name in plain if not plain[name].equal(pulled[name])]
    assert any("attention" in name for name in moved)
    assert made[0.0].epochs[0].extra is None
    assert made[5.0].epochs[0].extra > 0


def test_the_explanation_loss_falls():
    given, train = shortcut.classifier(), shortcut.texts()
    training = {"epochs": 5, "learning_rate": 1e-3, "patience": 0, "batch_size": 16}
    epochs = mend(given, train, [vote()], fix="explanation_regularisation", training=training).epochs
    assert epochs[-1].extra < 0.5 * epochs[0].extra


def test_one_pass_gives_the_gradients_of_two():
    classifier = tiny.transformer(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).clone()
    batch = classifier.batch([Example("1", "the soup was cold"), Example("2", "wonderful film")])
    targets = torch.tensor([0, 1])

    def losses():
        offered = {"classifier": classifier, "batch": batch, "targets": targets, "create_graph": True}
        extra = attribution["input_x_gradient"](offered).square().sum()
        return extra + torch.nn.functional.cross_entropy(classifier.logits(batch), targets)

    def gradients(loss):
        classifier.model.zero_grad()
        loss.backward()
        return {n: w.grad.clone() for n, w in classifier.model.named_parameters() if w.grad is not None}

    apart = gradients(losses())
    calls = []
    handle = classifier.model.register_forward_hook(lambda *_: calls.append(1))
    with classifier.one_pass(batch):
        shared = losses()
    handle.remove()
    assert len(calls) == 1
    together = gradients(shared)
    assert apart.keys() == together.keys()
    assert all(torch.allclose(apart[name], together[name], atol=1e-4, rtol=1e-3) for name in apart)


def test_rules_of_propagation_do_not_leak_into_the_tasks_loss():
    classifier = tiny.transformer(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).clone()
    batch = classifier.batch([Example("1", "the soup was cold")])
    targets = torch.tensor([1])

    def task_gradient(with_rules):
        with classifier.one_pass(batch):
            if with_rules:
                offered = {"classifier": classifier, "batch": batch, "targets": targets, "create_graph": True}
                attribution["lrp"](offered)
            loss = torch.nn.functional.cross_entropy(classifier.logits(batch), targets)
        return torch.autograd.grad(loss, classifier.model.classifier.weight)[0]

    assert torch.allclose(task_gradient(False), task_gradient(True), atol=1e-5)


def aims(*votes, right=None):
    return Aims(("negative", "positive"), tuple(one.says for one in votes), lambda: right or {})


def test_votes_touch_the_words_they_are_about_and_no_others():
    example = Example("e", "Zyx was good and ZYX was bad", label="positive")
    here = vote("good", "raise", example="e", position=2)
    found = {(aim.position, aim.wants) for aim in aims(vote(), here).of(example)}
    assert found == {(0, "lower"), (4, "lower"), (2, "raise")}
    assert aims(vote("good", "raise", example="other")).of(example) == ()
    assert aims(vote("good", "raise", example="e", position=3)).of(example) == ()  # another word stands there now
    assert aims(vote("good", "raise", example="e", position=99)).of(example) == ()


def test_a_vote_on_one_example_overrules_one_everywhere():
    example = Example("e", "zyx is good", label="positive")
    (aim,) = aims(vote(), vote(CUE, "raise", example="e", position=0)).of(example)
    assert aim.wants == "raise"


@pytest.mark.parametrize(("rule", "texts"), [("all", {"a", "b"}), ("correct", {"a"}), ("incorrect", {"b"})])
def test_votes_everywhere_touch_texts_by_whether_they_are_predicted_right(rule, texts):
    right = {"a": True, "b": False}
    for way in ("lower", "raise"):
        one = aims(vote(CUE, way), right=right).by(rule, rule)
        assert {e for e in "ab" if one.of(Example(e, "zyx here"))} == texts


def test_words_of_a_pair_are_numbered_across_both_texts():
    example = Example("e", "the soup", "zyx was cold")
    assert [aim.position for aim in aims(vote()).of(example)] == [2]
