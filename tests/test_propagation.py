"""Rules of propagation against the papers' formulas, written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from captum.attr import LRP

import tiny
from unhans.attributions import attribute
from unhans.attributions._gradients import baseline_embeddings
from unhans.attributions._patterns import _pattern
from unhans.errors import Unsupported
from unhans.model import TransformerClassifier
from unhans.propagation import Deconvnet, Differences, Guided, LayerwiseRelevance, Rules, Watching, _texts
from unhans.types import Example

TEXT = Example("x", "The soup wasn't cold, was it?")
EVERY = {
    "plain": Rules,
    "guided": Guided,
    "deconvnet": Deconvnet,
    "differences": Differences,
    "watching": Watching,
    "attention": lambda model: LayerwiseRelevance(model, attention_aware=True, epsilon=1e-6),
    "epsilon": lambda model: LayerwiseRelevance(model, attention_aware=False, epsilon=1e-6),
}


def grid(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("rules", EVERY)
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_no_rule_changes_what_the_model_says(rules, kind):
    classifier = tiny.transformer(kind)
    batch = classifier.batch([TEXT]).repeated(2)  # text and reference are of one length
    embeddings = classifier.embed(batch)
    with EVERY[rules](classifier.model) as entered:
        entered.follow(embeddings)
        changed = classifier.logits(batch, embeddings)
    assert torch.allclose(changed, classifier.logits(batch, embeddings), atol=1e-4)


class Bent(torch.nn.Module):
    """An activation that no class of torch or transformers stands for."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def bent_bert(function):
    classifier = tiny.transformer("bert").clone()
    for layer in classifier.model.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = Bent(function)
    return classifier


@pytest.mark.parametrize("function", [F.relu6, F.silu, F.mish, F.hardswish, F.softplus, F.selu, torch.sigmoid])
def test_differences_add_up_through_any_activation(function):
    classifier = bent_bert(function)
    batch = classifier.batch([TEXT])
    low = classifier.logits(batch, baseline_embeddings(classifier, batch, "pad"))[0, 1]
    (found,) = attribute(classifier, [TEXT], method="deeplift", target="positive")
    assert sum(found.scores) == pytest.approx(float((classifier.logits(batch)[0, 1] - low).detach()), abs=1e-4)


def test_a_product_with_something_added_has_a_rule_too():
    a, bias = grid(4, 3, 5).requires_grad_(), grid(4, 3, 2, seed=2)
    rules = Differences(torch.nn.Identity())
    rules.follow(a)
    with rules:
        c = a * 2
        found = torch.baddbmm(bias, a, c.transpose(1, 2)[:, :, :2], beta=0.5, alpha=2.0)
    back = rules.gradient(found.flatten(1).sum(1), a, create_graph=False)
    rise = found.flatten(1).sum(1).chunk(2)
    steps = a.detach().chunk(2)
    told = ((steps[0] - steps[1]) * back[:2]).flatten(1).sum(1)
    lifted = (bias.chunk(2)[0] - bias.chunk(2)[1]).flatten(1).sum(1) * 0.5
    assert torch.allclose(told, rise[0] - rise[1] - lifted)


def test_a_product_may_name_its_factors_and_what_is_added_to_it_times_nothing_does_not_count():
    a = grid(4, 3, 5).requires_grad_()
    unset = torch.full((4, 3, 3), torch.nan, dtype=torch.float64)  # as GPT-2 gives it, made by torch.empty
    rules = Differences(torch.nn.Identity())
    rules.follow(a)
    with rules:
        b = (a * 2).transpose(1, 2)
        found = unset.baddbmm(batch1=a, batch2=b, beta=0, alpha=0.5)
        fixed = unset.baddbmm(batch1=b.detach().transpose(1, 2), batch2=b.detach(), beta=0, alpha=0.25)
    assert torch.allclose(found, a @ a.transpose(1, 2))
    assert torch.allclose(fixed, found)


@pytest.mark.parametrize("kind", ["bloom", "gpt2"])
def test_models_that_add_to_products_can_be_explained(kind):
    tokenizer = tiny.gpt_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "n_layer": 2, "n_head": 4, "num_labels": 2}
    if kind == "bloom":
        model = hf.BloomForSequenceClassification(hf.BloomConfig(hidden_size=32, **sizes))
    else:
        config = hf.GPT2Config(n_embd=32, reorder_and_upcast_attn=True, attn_implementation="eager", **sizes)
        model = hf.GPT2ForSequenceClassification(config)
    classifier = TransformerClassifier(model, tokenizer, tiny.LIMIT, "cpu")
    batch, target = classifier.batch([TEXT]), torch.tensor([1])
    embeddings = classifier.embed(batch)
    plain = classifier.gradient(embeddings, batch, target, rules=Rules(classifier.model))
    assert torch.allclose(plain, classifier.gradient(embeddings, batch, target), atol=1e-3)
    for method in ("deeplift", "lrp", "guided_backprop", "deconvnet"):
        (found,) = attribute(classifier, [TEXT], method=method, target=1)
        assert np.isfinite(found.scores).all()


def test_scores_that_would_not_add_up_are_refused():
    classifier = bent_bert(lambda x: 5 * torch.sin(8 * x))  # which no rule is for
    with pytest.raises(Unsupported, match="integrated_gradients works"):
        attribute(classifier, [TEXT], method="deeplift")
    attribute(classifier, [TEXT], method="integrated_gradients")


def test_a_great_bias_does_not_hide_that_scores_do_not_add_up():
    classifier = bent_bert(torch.sin)
    with torch.no_grad():
        classifier.model.classifier.bias += 100  # of both labels: the rise is what it was
    with pytest.raises(Unsupported, match="integrated_gradients works"):
        attribute(classifier, [TEXT], method="deeplift", target=1)


def test_models_that_put_tokens_before_rows_are_refused():
    tokenizer = tiny.bert_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "num_labels": 2}
    model = hf.XLNetForSequenceClassification(hf.XLNetConfig(pad_token_id=0, **sizes))
    classifier = TransformerClassifier(model, tokenizer, tiny.LIMIT, "cpu")
    with pytest.raises(Unsupported, match="rows that are not its texts"):
        attribute(classifier, [TEXT.text, "film"], method="deeplift")


def test_slopes_are_taken_of_whole_pairs_of_texts_and_references_alone():
    rules = Differences(tiny.transformer().model)
    rules.follow(torch.ones(4, 3))
    assert len(_texts(torch.ones(8, 3), rules)) == 4
    with pytest.raises(Unsupported, match="rows that are not its texts"):
        _texts(torch.ones(6, 3), rules)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "deberta"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_is_not_taken_for_a_model_on_which_scores_do_not_add_up(kind, dtype):
    exact = tiny.transformer(kind)
    rounded = TransformerClassifier(exact.copied().to(dtype), exact.tokenizer, exact.limit, "cpu")
    found = attribute(rounded, tiny.SENTENCES, method="deeplift", target=1)
    wanted = attribute(exact, tiny.SENTENCES, method="deeplift", target=1)
    for one, other in zip(found, wanted, strict=True):
        assert np.corrcoef(one.scores, other.scores)[0, 1] > 0.95


@pytest.mark.parametrize("kind", ["albert", "gpt2"])
def test_the_model_is_left_as_it_was_even_after_an_error(kind):
    classifier = tiny.transformer(kind)
    before = {name: module.forward for name, module in classifier.model.named_modules()}
    with pytest.raises(RuntimeError, match="stop"), Guided(classifier.model):
        raise RuntimeError("stop")
    assert {name: module.forward for name, module in classifier.model.named_modules()} == before


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_plain_rules_give_the_gradient(kind):
    classifier = tiny.transformer(kind)
    batch, target = classifier.batch([TEXT]), torch.tensor([1])
    embeddings = classifier.embed(batch)
    plain = classifier.gradient(embeddings, batch, target, rules=Rules(classifier.model))
    assert torch.allclose(plain, classifier.gradient(embeddings, batch, target), atol=1e-3)


def relevance(rules, inputs, outputs, compute):
    """Input × changed gradient, for relevance `outputs` at the end."""
    leaves = [t.clone().requires_grad_() for t in inputs]
    with rules:
        for leaf in leaves:
            rules.follow(leaf)
        found = compute(*leaves)
    gradients = torch.autograd.grad(found, leaves, outputs / found.detach())
    return [leaf.detach() * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]


def test_attention_shares_relevance_as_attnlrp_says():
    query, key, value = (grid(1, 1, 3, 4, seed=n) for n in range(3))
    given = grid(1, 1, 3, 4, seed=9)
    rules = LayerwiseRelevance(torch.nn.Identity(), attention_aware=True, epsilon=0.0)
    found = relevance(rules, (query, key, value), given, F.scaled_dot_product_attention)
    logits = query @ key.transpose(-1, -2) / 2
    weights = logits.softmax(-1)
    ratio = (given / (weights @ value))[0, 0]
    a, v, s, q, k = weights[0, 0], value[0, 0], logits[0, 0], query[0, 0], key[0, 0]
    of_weights = torch.zeros(3, 3, dtype=torch.float64)
    of_value, of_query, of_key = (torch.zeros(3, 4, dtype=torch.float64) for _ in range(3))
    for j in range(3):
        for i in range(3):
            for p in range(4):  # equation 7: both factors get the same half
                share = a[j, i] * v[i, p] * ratio[j, p] / 2
                of_weights[j, i] += share
                of_value[i, p] += share
    for j in range(3):
        of_logits = s[j] * (of_weights[j] - a[j] * of_weights[j].sum())  # equation 5
        for i in range(3):
            for d in range(4):
                share = q[j, d] * k[i, d] / 2 * of_logits[i] / s[j, i] / 2
                of_query[j, d] += share
                of_key[i, d] += share
    for ours, slow in zip(found, (of_query, of_key, of_value), strict=True):
        assert torch.allclose(ours[0, 0], slow, atol=1e-8)


ACTIVATIONS = {
    **{f.__name__: f for f in (F.relu, F.gelu, F.silu, F.mish, F.softplus, F.selu, F.hardswish, F.hardsigmoid)},
    **{f.__name__: f for f in (F.leaky_relu, F.relu6, F.hardtanh, torch.tanh, torch.sigmoid)},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_activation_hands_back_its_rise_from_the_origin(name, dtype):
    x = torch.cat([grid(50) * 3, torch.logspace(-9, 0, 40), -torch.logspace(-9, 0, 40)]).to(dtype)
    function, leaf = ACTIVATIONS[name], x.clone().requires_grad_()
    rules = LayerwiseRelevance(torch.nn.Identity(), attention_aware=False, epsilon=0.0)
    rules.follow(leaf)
    with rules:
        found = function(leaf)
    slope = rules.gradient(found, leaf, create_graph=False)
    rise = function(x.double()) - function(torch.zeros((), dtype=torch.float64))  # which f(0) has no part in
    assert torch.allclose(slope.double(), rise / x.double(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("function", [torch.sigmoid, F.softplus, F.hardsigmoid])
def test_what_an_activation_gives_at_zero_is_a_bias_and_without_it_nothing_is_lost(function):
    x, below, above = grid(4, 6).requires_grad_(), grid(5, 6, seed=1), grid(1, 5, seed=2)
    rules = LayerwiseRelevance(torch.nn.Identity(), attention_aware=False, epsilon=0.0)
    rules.follow(x)
    with rules:
        found = F.linear(function(F.linear(x, below)) - function(grid(1) * 0), above)
    handed_back = x * rules.gradient(found, x, create_graph=False)
    assert torch.allclose(handed_back.sum(1, keepdim=True), found)


@pytest.mark.parametrize("way", [Guided, Deconvnet])
def test_only_activations_that_hold_negative_values_back_are_like_relus(way):
    def sent_back(layer):
        x = torch.tensor([-2.0, -0.5, 0.5, 2.0]).requires_grad_()
        rules = way(torch.nn.Identity())
        rules.follow(x)
        with rules:
            y = layer(x)
        return rules.gradient(-y, x, create_graph=False).tolist()

    assert sent_back(torch.nn.Hardtanh()) == [0, -1, -1, 0]  # its own derivative, as for tanh
    assert sent_back(torch.nn.ReLU6()) == sent_back(torch.nn.ReLU()) == [0, 0, 0, 0]


def test_the_softmax_between_two_inputs_is_exact():
    x = (grid(4, 6) * 30).requires_grad_()  # far apart: most weights are nearly 0 or 1
    rules = Differences(torch.nn.Identity())
    with rules:
        rules.follow(x)
        y = x.softmax(-1)
    for place in range(6):
        (slope,) = torch.autograd.grad(y[:2, place].sum(), x, retain_graph=True)
        rise = (slope[:2] * (x[:2] - x[2:])).sum(-1)
        assert torch.allclose(rise, y[:2, place] - y[2:, place], atol=1e-10)


def test_constant_attention_gives_all_relevance_to_the_values():
    query, key, value = (grid(1, 1, 3, 4, seed=n) for n in range(3))
    given = grid(1, 1, 3, 4, seed=9)
    rules = LayerwiseRelevance(torch.nn.Identity(), attention_aware=False, epsilon=0.0)
    leaves = [t.clone().requires_grad_() for t in (query, key, value)]
    with rules:
        for leaf in leaves:
            rules.follow(leaf)
        found = F.scaled_dot_product_attention(*leaves)
    of_query, of_value = torch.autograd.grad(found, [leaves[0], leaves[2]], given / found.detach(), allow_unused=True)
    assert of_query is None
    assert torch.allclose((of_value * value).sum(), given.sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_epsilon_rule_on_a_linear_layer(epsilon):
    x, weight, given = grid(2, 5), grid(3, 5, seed=1), grid(2, 3, seed=2)
    rules = LayerwiseRelevance(torch.nn.Identity(), attention_aware=True, epsilon=epsilon)
    (found,) = relevance(rules, (x,), given, lambda t: F.linear(t, weight))
    z = x @ weight.T
    slow = torch.einsum("ni,ji,nj->ni", x, weight, given / (z + epsilon * z.sign()))
    assert torch.allclose(found, slow)


def test_relevance_on_a_relu_network_is_captums():
    classifier = tiny.transformer("averaging", labels=3, initializer_range=1.0)
    batch = classifier.batch([TEXT])
    network = torch.nn.Sequential(*classifier.model.layers, classifier.model.classifier)
    embeddings = classifier.embed(batch).detach()
    state = embeddings.mean(1).requires_grad_()
    theirs = LRP(network).attribute(state, target=1) / state
    expected = batch.to_words((theirs[:, None] * embeddings).sum(-1).detach() / embeddings.shape[1])[0]
    (one,) = attribute(classifier, [TEXT], method="lrp", target=1, epsilon=1e-9)
    assert one.scores == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2", "llama"])
def test_without_biases_and_positions_relevance_adds_up_to_the_logit(kind):
    # holds with constant attention; AttnLRP's softmax also hands relevance to a bias term
    classifier = tiny.transformer(kind).clone()
    with torch.no_grad():
        for name, weight in classifier.model.named_parameters():
            if name.endswith("bias") or "position_embeddings" in name or "token_type" in name or "wpe" in name:
                weight.zero_()
    batch, target = classifier.batch([TEXT]), torch.tensor([1])
    embeddings = classifier.embed(batch)
    way = LayerwiseRelevance(classifier.model, attention_aware=False, epsilon=0.0)
    total = float((embeddings * classifier.gradient(embeddings, batch, target, rules=way)).sum().detach())
    logit = float(classifier.logits(batch)[0, 1].detach())
    assert total == pytest.approx(logit, abs=1e-3 * max(1.0, abs(logit)))


@pytest.mark.parametrize("rules", ["attention", "epsilon"])
def test_the_option_chooses_the_rules(rules):
    classifier = tiny.transformer()
    batch, target = classifier.batch([TEXT]), torch.tensor([1])
    embeddings = classifier.embed(batch)
    way = LayerwiseRelevance(classifier.model, attention_aware=rules == "attention", epsilon=0.1)
    expected = batch.to_words((embeddings * classifier.gradient(embeddings, batch, target, rules=way)).sum(-1))
    (one,) = attribute(classifier, [TEXT], method="lrp", target=1, rules=rules, epsilon=0.1)
    assert one.scores == pytest.approx(expected[0].tolist(), abs=1e-5)
    (other,) = attribute(classifier, [TEXT], method="lrp", target=1, epsilon=0.1, rules="attention")
    assert (other.scores == pytest.approx(one.scores, abs=1e-3)) == (rules == "attention")


def test_patterns_find_the_signal_and_not_the_weights():
    # the paper's own example: x = signal·y + distractor; weights must cancel the distractor, patterns must not
    y, noise = grid(4000, 1), grid(4000, 1, seed=1)
    signal, distractor = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[1.0, 1.0]]).double()
    x = y @ signal + noise @ distractor
    weight = torch.tensor([[1.0, -1.0]]).double()
    pattern = _pattern(x, weight, x @ weight.T, positive=False)
    assert torch.allclose(pattern, signal, atol=0.05)


def test_a_pattern_of_a_firing_unit_follows_the_formula():
    x, weight = grid(200, 3) + 0.5, grid(2, 3, seed=1)
    y = x @ weight.T + 0.3
    found = _pattern(x, weight, y, positive=True)
    for unit in range(2):
        fires = y[:, unit] > 0
        up = (x[fires] * y[fires, unit : unit + 1]).mean(0) - x[fires].mean(0) * y[:, unit].mean()
        assert torch.allclose(found[unit], up / (weight[unit] @ up))


@pytest.mark.parametrize("method", ["pattern_net", "pattern_attribution"])
def test_signals_go_back_through_patterns_layer_by_layer(method):
    classifier = tiny.transformer("averaging", hidden_layers=1, initializer_range=1.0)
    background = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES)]
    model, others, batch = classifier.model, classifier.batch(background), classifier.batch([TEXT])
    means = (classifier.embed(others) * others.mask[..., None]).sum(1) / others.mask.sum(1, keepdim=True)
    below, above = model.layers[0], model.classifier
    hidden = below(means)
    first = _pattern(means, below.weight, hidden, positive=True)
    second = _pattern(hidden.relu(), above.weight, above(hidden.relu()), positive=False)
    if method == "pattern_attribution":
        first, second = first * below.weight, second * above.weight
    embeddings = classifier.embed(batch)[0]
    fires = (below(embeddings.mean(0)) > 0).float()
    signal = (second[1] * fires) @ first
    expected = batch.to_words((embeddings @ signal / len(embeddings))[None]).detach()[0]
    (one,) = attribute(classifier, [TEXT], method=method, target=1, background=background)
    assert one.scores == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("method", ["pattern_net", "pattern_attribution"])
def test_patterns_are_refused_for_transformers(method):
    with pytest.raises(Unsupported, match="plain_path"):
        attribute(tiny.transformer(), [TEXT], method=method, background=[TEXT])
