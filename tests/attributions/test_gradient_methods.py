"""Gradient methods against captum, and against their formulas written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import Deconvolution, DeepLift, GuidedBackprop, LayerIntegratedGradients, Saliency

import tiny
from unhans.attributions import attribute
from unhans.attributions._gradients import baseline_embeddings, noisy
from unhans.errors import BadOption, Unsupported
from unhans.types import Example

TEXT = Example("x", "The soup wasn't cold, was it?")
EXAMPLES = (TEXT, Example("p", "She liked it.", "He did not!"))
TARGET = 1


def scores(classifier, method, examples=(TEXT,), **options):
    found = attribute(classifier, examples, method=method, target=TARGET, **options)
    return [np.array(one.scores) for one in found]


def to_words(batch, of_tokens):
    return batch.to_words(of_tokens.detach().float())[0].numpy()


def logits_of(classifier, batch):
    """The model as captum wants it: embeddings in, logits out."""
    return lambda embeddings: classifier.logits(batch.repeated(len(embeddings) // len(batch.examples)), embeddings)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "deberta"])
def test_saliency_is_captums(kind):
    classifier = tiny.transformer(kind)
    batch = classifier.batch([TEXT])
    embeddings = classifier.embed(batch).detach()
    gradient = Saliency(logits_of(classifier, batch)).attribute(embeddings.requires_grad_(), TARGET, abs=False)
    assert np.allclose(scores(classifier, "saliency")[0], to_words(batch, gradient.norm(dim=-1)), atol=1e-4)
    signed = scores(classifier, "saliency", aggregate="signed")[0]
    assert np.allclose(signed, to_words(batch, gradient.sum(-1)), atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_integrated_gradients_are_captums(kind, example):
    classifier = tiny.transformer(kind, labels=3)
    batch = classifier.batch([example])
    controls = batch.owners < 0
    empty = torch.where(controls, batch.ids, classifier.model.config.pad_token_id)

    def forward(ids):
        return classifier.logits(batch.repeated(len(ids)), classifier.model.get_input_embeddings()(ids))

    embeddings = classifier.model.get_input_embeddings()
    method = LayerIntegratedGradients(forward, embeddings)
    theirs = method.attribute(batch.ids, empty, target=TARGET, n_steps=12, method="gausslegendre").sum(-1)
    (ours,) = scores(classifier, "integrated_gradients", [example], n_steps=12)
    assert np.allclose(ours, to_words(batch, theirs), atol=1e-4)


@pytest.mark.parametrize("baseline", ["pad", "mask", "unk", "zero"])
def test_a_baseline_replaces_every_piece_of_a_word_and_no_control_token(baseline):
    classifier = tiny.transformer("bert")
    batch = classifier.batch([TEXT])
    found, own = baseline_embeddings(classifier, batch, baseline)[0], classifier.embed(batch)[0]
    assert torch.equal(found[0], own[0])
    assert torch.equal(found[-1], own[-1])
    table = classifier.model.get_input_embeddings().weight
    wanted = torch.zeros(32) if baseline == "zero" else table[getattr(classifier.tokenizer, f"{baseline}_token_id")]
    assert torch.equal(found[1:-1], wanted.expand(len(found) - 2, -1))


def test_expected_gradients_follow_the_formula():
    classifier, background = (
        tiny.transformer(),
        [Example("a", "good"), Example("b", "A wonderful film, warm and funny")],
    )
    (ours,) = scores(classifier, "gradient_shap", background=background, num_samples=400)
    batch = classifier.batch([TEXT])
    end, n = classifier.embed(batch), int((batch.owners >= 0).sum())
    slow = torch.zeros(batch.ids.shape)
    for other in background:
        pieces = classifier.batch([other]).ids[0][1:-1].tolist()
        ids = batch.ids.clone()
        ids[0, 1:-1] = torch.tensor((pieces * n)[:n])
        start = classifier.model.get_input_embeddings()(ids)
        for share in (np.arange(100) + 0.5) / 100:
            point = (start + share * (end - start)).detach()
            slow += ((end - start) * classifier.gradient(point, batch, torch.tensor([TARGET]))).sum(-1).detach() / 200
    spread = np.abs(to_words(batch, slow)).max()
    assert np.allclose(ours, to_words(batch, slow), atol=0.15 * spread)
    assert np.corrcoef(ours, to_words(batch, slow))[0, 1] > 0.99


@pytest.mark.parametrize("method", ["smoothgrad", "smoothgrad_squared", "vargrad"])
def test_noisy_gradients_follow_their_formulas(method):
    classifier = tiny.transformer()
    batch = classifier.batch(EXAMPLES)
    from unhans.attributions import attribution

    def offered():
        rngs = [np.random.default_rng(n) for n in range(2)]
        made = {"classifier": classifier, "batch": batch, "targets": torch.tensor([1, 1]), "create_graph": False}
        return made | {"rngs": rngs}

    ours = attribution[method](offered(), num_samples=7, noise=0.3)
    embeddings = classifier.embed(batch).detach()
    gradients = []
    for point in noisy(embeddings, batch, offered()["rngs"], 7, 0.3):
        leaf = point.clone().requires_grad_()
        classifier.logits(batch, leaf)[:, 1].sum().backward()
        gradients.append(leaf.grad)
    stack = torch.stack(gradients)
    slow = {
        "smoothgrad": (stack.mean(0) * embeddings).sum(-1),
        "smoothgrad_squared": (stack**2).mean(0).sum(-1),
        "vargrad": ((stack - stack.mean(0)) ** 2).mean(0).sum(-1),
    }[method]
    assert torch.allclose(ours.detach(), batch.to_words(slow), atol=1e-4)


def test_noise_is_a_share_of_the_range_and_falls_on_words_only():
    classifier = tiny.transformer()
    batch = classifier.batch([TEXT])
    embeddings = classifier.embed(batch).detach()
    drawn = torch.stack(noisy(embeddings, batch, [np.random.default_rng(0)], 500, 0.2)) - embeddings
    own = embeddings[0, 1:-1]
    assert float(drawn[:, 0, 1:-1].std()) == pytest.approx(0.2 * float(own.max() - own.min()), rel=0.02)
    assert not drawn[:, 0, [0, -1]].any()


@pytest.mark.parametrize("method", ["smoothgrad", "integrated_gradients", "gradient_shap"])
def test_fewer_than_one_sample_is_refused(method):
    option = {"n_steps": 0} if method == "integrated_gradients" else {"num_samples": 0}
    with pytest.raises(BadOption, match="at least 1"):
        attribute(tiny.transformer(), [TEXT], method=method, background=[TEXT], **option)


def test_expected_gradients_without_other_texts_are_refused_with_the_way_out():
    with pytest.raises(BadOption, match="background="):
        attribute(tiny.transformer(), [TEXT], method="expected_gradients")


@pytest.mark.parametrize(
    ("method", "theirs"), [("deeplift", DeepLift), ("guided_backprop", GuidedBackprop), ("deconvnet", Deconvolution)]
)
def test_on_a_relu_network_changed_propagation_is_captums(method, theirs):
    classifier = tiny.transformer("averaging", labels=3, initializer_range=1.0)
    batch = classifier.batch([TEXT])
    model = classifier.model
    network = torch.nn.Sequential(*model.layers, model.classifier)
    embeddings = classifier.embed(batch).detach()
    state = embeddings.mean(1).requires_grad_()
    if method == "deeplift":
        start = baseline_embeddings(classifier, batch, "zero").detach()
        with pytest.warns(UserWarning, match="hooks"):
            change = theirs(network).attribute(state, start.mean(1), target=TARGET) / (state - start.mean(1))
        expected, options = (change * (embeddings - start)).sum(-1), {"baseline": "zero"}
    else:
        with pytest.warns(UserWarning, match="backward hooks"):
            change = theirs(network).attribute(state, target=TARGET)
        expected, options = (change[:, None] * embeddings).sum(-1), {}
    (ours,) = scores(classifier, method, **options)
    assert np.allclose(ours, to_words(batch, expected / embeddings.shape[1]), atol=1e-4)


@pytest.mark.parametrize(("kind", "read"), [("bert", 0), ("roberta", 0), ("distilbert", 0), ("gpt2", -1)])
def test_rollout_multiplies_hugging_faces_attention(kind, read):
    classifier = tiny.transformer(kind)
    plain = classifier.clone().model
    plain.set_attn_implementation("eager")
    batch = classifier.batch([TEXT])
    attentions = plain(input_ids=batch.ids, attention_mask=batch.mask, output_attentions=True).attentions
    n = batch.ids.shape[1]
    flow = np.eye(n)
    for weights in attentions:
        flow = (0.5 * weights[0].mean(0).detach().numpy() + 0.5 * np.eye(n)) @ flow
    expected = to_words(batch, torch.tensor(flow[read])[None])
    assert np.allclose(scores(classifier, "attention_rollout")[0], expected, atol=1e-5)


def test_rollout_is_refused_where_there_is_no_attention():
    with pytest.raises(Unsupported, match="none"):
        attribute(tiny.transformer("averaging"), [TEXT], method="rollout")
