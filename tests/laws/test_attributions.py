"""What every attribution method must obey, whatever it computes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
from unhans.attributions import attribute as plain_attribute
from unhans.attributions import attribution
from unhans.attributions._gradients import baseline_embeddings
from unhans.types import Example

METHODS = [entry.name for entry in attribution]
DIFFERENTIABLE = [entry.name for entry in attribution if "create_graph" in entry.asks]
BLACK_BOX = [entry.name for entry in attribution if entry.needs <= {"predict"}]
UNRELATED_TO_WEIGHTS = {"random"}
EXAMPLES = (
    Example("long", "The soup was cold and the waiter didn't care."),
    Example("short", "wonderful"),
    Example("pair", "She liked the book.", "He did not like the ending!"),
    Example("odd", "日本語 😀 [MASK] go\u200bod"),
)


BACKGROUND = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES[:4])]
# what these say does not depend on the label, or on which words matter; each says so in its own docs
LABEL_FREE = {"attention_rollout", "random"}


def attribute(classifier, examples, **asked):
    """With all that any method may ask for; sampling methods draw little, for laws hold for few samples too."""
    if "num_samples" in {option.name for option in attribution[asked["method"]].options}:
        asked = {"num_samples": 40} | asked
    return plain_attribute(classifier, examples, background=BACKGROUND, language_model=tiny.language_model(), **asked)


def model_for(method, kind="bert", **sizes):
    """A model of this kind, or of the plain kind for methods that work on no other."""
    plain = "plain_path" in attribution[method].needs
    return tiny.transformer("averaging" if plain else kind, **sizes)


def behind_the_embeddings(parameter):
    return not any(part in parameter for part in ("embed", "wte", "wpe"))


def scores_of(found):
    return [np.array(one.scores) for one in found]


def close(first, second, tolerance=5e-4):
    """Equal up to rounding, which grows with the scores."""
    top = max(1.0, *(np.abs(line).max(initial=0.0) for line in first))
    return all(np.allclose(a, b, atol=tolerance * top) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_there_is_one_score_for_each_word(method, kind):
    examples = EXAMPLES if kind != "gpt2" else EXAMPLES[:2]
    for one, example in zip(attribute(model_for(method, kind), examples, method=method), examples, strict=True):
        assert one.example == example.id
        assert [example.parts[span.part == "pair"][span.start : span.end] for span in one.spans] == list(one.words)
        assert len(one.scores) == len(one.words) > 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_batch_size_and_batch_mates_change_nothing(method, kind):
    examples = EXAMPLES if kind not in tiny.DECODERS else EXAMPLES[:2]
    classifier = model_for(method, kind)
    together = scores_of(attribute(classifier, examples, method=method, target="positive"))
    alone = [scores_of(attribute(classifier, [e], method=method, target="positive", batch_size=1))[0] for e in examples]
    assert close(together, alone)


@pytest.mark.parametrize("method", METHODS)
def test_each_row_belongs_to_its_own_text(method):
    classifier = model_for(method)
    forwards = scores_of(attribute(classifier, EXAMPLES, method=method, target="positive"))
    backwards = scores_of(attribute(classifier, EXAMPLES[::-1], method=method, target="positive"))
    assert close(forwards, backwards[::-1])
    assert not np.allclose(forwards[0][:1], forwards[1])


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_scores(method):
    classifier = model_for(method)
    first, second = (scores_of(attribute(classifier, EXAMPLES, method=method, seed=3)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("method", [name for name in METHODS if name not in LABEL_FREE])
def test_three_labels_work_and_are_told_apart(method):
    classifier = model_for(method, labels=3)
    by_label = [scores_of(attribute(classifier, EXAMPLES, method=method, target=label)) for label in classifier.labels]
    assert not close(by_label[0], by_label[1], 1e-3)
    assert not close(by_label[1], by_label[2], 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_label_the_predicted_one_is_explained(method):
    classifier = model_for(method, labels=3)
    found = attribute(classifier, EXAMPLES, method=method)
    assert [one.label for one in found] == classifier.predict(EXAMPLES).labels


@pytest.mark.parametrize("method", METHODS)
def test_words_beyond_the_limit_score_nothing_and_are_listed(method):
    long = Example("x", " ".join(["the soup was cold and"] * 12))
    (one,) = attribute(model_for(method), [long], method=method)
    assert one.unread == tuple(range(30, 60))  # 32 tokens, two of them control tokens
    assert all(one.scores[n] == 0 for n in one.unread)
    assert any(score != 0 for score in one.scores)


@pytest.mark.parametrize("method", METHODS)
def test_a_text_without_words_gives_no_scores(method):
    (one,) = attribute(model_for(method), [Example("x", " \u200b ")], method=method)
    assert one.scores == ()


@pytest.mark.parametrize("method", METHODS)
def test_no_examples_give_no_attributions(method):
    assert attribute(model_for(method), [], method=method) == []


@pytest.mark.parametrize("method", [name for name in BLACK_BOX if name not in UNRELATED_TO_WEIGHTS])
def test_a_bag_of_words_is_ranked_as_its_weights_are(method):
    weights = {"awful": -3.0, "dull": -1.0, "nice": 0.5, "great": 2.0}
    example = Example("x", "nice but dull and awful then great")
    given = {"background": BACKGROUND, "language_model": tiny.language_model()}
    (one,) = plain_attribute(tiny.bag_of_words(weights), [example], method=method, target="positive", **given)
    truth = [weights.get(word, 0.0) for word in one.words]
    for (first, low), (second, high) in itertools.permutations(zip(one.scores, truth, strict=True), 2):
        assert low >= high or first < second


@pytest.mark.parametrize("method", DIFFERENTIABLE)
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2"])
def test_a_loss_on_the_scores_reaches_the_weights_behind_the_embeddings(method, kind):
    classifier = tiny.transformer(kind).clone()
    batch = classifier.batch(EXAMPLES[:2])
    targets = torch.tensor([0, 1])
    offered = {"classifier": classifier, "batch": batch, "targets": targets, "create_graph": True}
    offered |= {"rngs": [np.random.default_rng(n) for n in range(2)], "background": BACKGROUND}
    attribution[method](offered).square().sum().backward()
    moved = {name for name, w in classifier.model.named_parameters() if w.grad is not None and w.grad.abs().max() > 0}
    inner = [name for name in moved if behind_the_embeddings(name)]
    assert any("attention" in name or "attn" in name for name in inner)


@pytest.mark.parametrize(
    ("method", "options"), [*((name, {}) for name in DIFFERENTIABLE), ("lrp", {"rules": "epsilon"})]
)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "averaging"])
def test_a_loss_on_the_scores_moves_the_weights_as_differences_say(method, options, kind):
    classifier = tiny.transformer(kind).clone()
    classifier.model.double()
    batch, targets = classifier.batch(EXAMPLES[:2]), torch.tensor([0, 1])

    def loss():
        offered = {"classifier": classifier, "batch": batch, "targets": targets, "create_graph": True}
        offered |= {"rngs": [np.random.default_rng(n) for n in range(2)], "background": BACKGROUND}
        scores = attribution[method](offered, **options)
        return (scores * torch.arange(scores.numel()).view_as(scores).sin()).sum()

    loss().backward()
    drawn = torch.Generator().manual_seed(0)
    # noise is as wide as the embeddings, whoever made them so, and padding's embedding never moves
    weights = [
        w for name, w in classifier.model.named_parameters() if w.grad is not None and behind_the_embeddings(name)
    ]
    steps = [torch.randn(w.shape, generator=drawn, dtype=w.dtype) for w in weights]
    told = sum(float((w.grad * step).sum()) for w, step in zip(weights, steps, strict=True))

    def loss_after(share):
        with torch.no_grad():
            for w, step in zip(weights, steps, strict=True):
                w.add_(step, alpha=share)
        return float(loss().detach())

    width = 1e-8
    above, below = loss_after(width), loss_after(-2 * width)
    assert told == pytest.approx((above - below) / (2 * width), rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_the_input_is_left_alone(method):
    classifier, before = model_for(method), tuple(replace(e) for e in EXAMPLES)
    revision = classifier.revision
    attribute(classifier, EXAMPLES, method=method)
    del classifier.__dict__["revision"]  # computed anew from the weights
    assert classifier.revision == revision
    assert before == EXAMPLES


# methods that are exact where the model is linear, and the options that make them compare with nothing
LINEAR = {
    "input_x_gradient": {},
    "integrated_gradients": {"baseline": "zero"},
    "deeplift": {"baseline": "zero"},
    "lrp": {"epsilon": 0.0},
    "smoothgrad": {},
    "guided_backprop": {},
    "deconvnet": {},
    "saliency": {"aggregate": "times_input"},
}


@pytest.mark.parametrize(("method", "options"), LINEAR.items())
def test_on_a_linear_model_the_score_is_what_the_word_adds_to_the_logit(method, options):
    classifier = tiny.transformer("averaging", hidden_layers=0)
    (one,) = attribute(classifier, EXAMPLES[:1], method=method, target="positive", **options)
    batch = classifier.batch(EXAMPLES[:1])
    adds = classifier.embed(batch) @ classifier.model.classifier.weight[1] / batch.ids.shape[1]
    assert np.allclose(one.scores, batch.to_words(adds).detach()[0], atol=1e-5)


@pytest.mark.parametrize("method", ["integrated_gradients", "deeplift"])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_scores_add_up_to_the_rise_of_the_logit_over_the_empty_text(method, kind):
    classifier = tiny.transformer(kind)
    examples = EXAMPLES if kind not in tiny.DECODERS else EXAMPLES[:2]
    options, within = ({"n_steps": 200}, 2e-2) if method == "integrated_gradients" else ({}, 1e-3)  # kinks are hard
    found = attribute(classifier, examples, method=method, target="positive", **options)
    for one, example in zip(found, examples, strict=True):
        batch = classifier.batch([example])
        empty = baseline_embeddings(classifier, batch, "pad")
        rise = float((classifier.logits(batch) - classifier.logits(batch, empty))[0, 1].detach())
        assert sum(one.scores) == pytest.approx(rise, abs=within)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_how_its_scores_are_to_be_read(method):
    (one,) = attribute(model_for(method), EXAMPLES[:1], method=method)
    assert "unknown" not in (one.terms.space, one.terms.baseline, one.terms.aggregation)
    assert one.terms.signed or all(score >= 0 for score in one.scores)
    assert one.label in one.caption
    assert one.recipe.name in one.caption


@pytest.mark.parametrize("method", [name for name in METHODS if name != "input_marginalization"])
def test_larger_units_get_one_score_each(method):
    example = Example("x", "The soup was cold. The waiter, who was new, did not care!")
    for units, n in (("sentence", 2), ("phrase", 4)):
        (one,) = attribute(model_for(method), [example], method=method, units=units)
        assert len(one.scores) == n
        assert " ".join(one.words) == example.text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tokenizer", ["bytes", "characters"])
def test_slow_tokenizers_work_too(method, tokenizer):
    classifier = model_for(method, tokenizer=tiny.TOKENIZERS[tokenizer]())
    (one,) = attribute(classifier, [Example("x", "cold soup")], method=method)
    assert one.words == ("cold", "soup")
    assert all(score != 0 for score in one.scores)
