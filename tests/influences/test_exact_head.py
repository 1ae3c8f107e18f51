"""The head's influence: the formula, what training again really does, and the heads it refuses."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.nn.functional import cross_entropy
from transformers.modeling_outputs import SequenceClassifierOutput

import convex
import tiny
from unhans.averaging import AveragingForSequenceClassification
from unhans.errors import BadOption, Cancelled, Unsupported
from unhans.influences import prepare
from unhans.influences._head import head_of, see_now
from unhans.model import TransformerClassifier
from unhans.types import Example


@pytest.mark.parametrize("n_labels", [2, 3])
def test_scores_are_the_formula(n_labels: int) -> None:
    made, (train, others) = convex.classifier(20, n_labels), convex.data(20, n_labels)
    index = prepare(made, train, method="exact_head", damping=convex.share_of_mean(made, train))
    expected, own = convex.formula(made, train, others), convex.formula(made, train, train)
    assert np.allclose(index.scores(others), expected, atol=1e-5 * np.abs(expected).max())
    assert np.allclose(index.self_influence(), np.diag(own), atol=1e-5 * np.abs(own).max())


def test_scores_tell_what_training_again_without_an_example_does() -> None:
    made, (train, others) = convex.classifier(60), convex.data(60)
    scores = prepare(made, train, method="exact_head", damping=convex.share_of_mean(made, train)).scores(others)
    really = convex.effects(60)
    assert spearmanr(scores.ravel(), really.ravel()).statistic > 0.99
    slope = np.polyfit(scores.ravel(), really.ravel(), 1)[0]
    assert 0.9 < slope < 1.25  # a step of Newton's method falls short of the whole way, the more the fewer examples


def test_an_example_that_is_there_twice_counts_twice_in_the_curvature() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    doubled = [*train, *train[:5], *train[:5]]
    scores = prepare(made, doubled, method="exact_head", damping=convex.share_of_mean(made, doubled)).scores(others)
    expected = convex.formula(made, doubled, others)
    assert np.allclose(scores, expected, atol=1e-5 * np.abs(expected).max())
    assert np.array_equal(scores[:, :5], scores[:, 20:25])


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2", "averaging"])
def test_the_head_is_seen_as_it_is_in_every_architecture(kind: str) -> None:
    made = tiny.transformer(kind, labels=3)
    examples = [
        Example("1", "A wonderful film, warm and funny.", label="label 0"),
        Example("2", "good", label="label 2"),
        Example("3", "The soup was cold.", "The waiter did not care.", label="label 1"),
    ]
    head = head_of(made)
    seen = see_now(made, head, examples)
    for n, example in enumerate(examples):
        target = torch.tensor([made.label_number(str(example.label))])
        loss = cross_entropy(made.logits(made.batch([example])), target)
        by_weight = torch.autograd.grad(loss, head.weight)[0].numpy()
        formula = np.outer(seen.errors[n], seen.features[n][: head.in_features])
        assert np.allclose(formula, by_weight, atol=1e-5)
    assert seen.features.shape[1] == head.in_features + (head.bias is not None)


def test_without_damping_it_is_refused() -> None:
    with pytest.raises(BadOption, match="damping must be positive"):
        prepare(convex.classifier(), convex.data()[0], method="exact_head", damping=0)


def test_a_stop_is_heard_while_the_hessian_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made, (train, others), told = convex.classifier(), convex.data(), []
    whole = prepare(made, train, method="exact_head").scores(others)
    monkeypatch.setattr("unhans.influences.exact_head._FEW", 7)
    assert np.allclose(prepare(made, train, method="exact_head").scores(others), whole)
    with pytest.raises(Cancelled):
        prepare(
            made,
            train,
            method="exact_head",
            progress=lambda *at: told.append(at),
            cancelled=lambda: len(told) > 1,  # all texts are read after the first time
        )


def test_a_head_too_large_for_its_hessian_is_refused_with_a_way_out() -> None:
    made = tiny.transformer("averaging", labels=400)
    with pytest.raises(Unsupported, match=r"13,167 rows.*ekfac"):
        prepare(made, [Example("1", "good", label="label 7")], method="exact_head")


class _Squashed(AveragingForSequenceClassification):
    def forward(self, *given: Any, **named: Any) -> SequenceClassifierOutput:
        return SequenceClassifierOutput(logits=3 * torch.tanh(super().forward(*given, **named).logits))


def test_a_model_that_does_not_end_in_a_linear_layer_is_refused() -> None:
    plain = tiny.model("averaging")
    made = TransformerClassifier(_Squashed(plain.config), tiny.bert_tokenizer(), tiny.LIMIT, "cpu")
    with pytest.raises(Unsupported, match="not a linear layer"):
        prepare(made, [Example("1", "good", label="positive")], method="exact_head")
