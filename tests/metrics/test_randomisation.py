from __future__ import annotations

import numpy as np
import pytest
import torch

import tiny
from known_scores import attribution
from unhans.attributions import attribute
from unhans.bugs._weights import parts_of, randomised
from unhans.errors import BadData, BadOption, Unsupported
from unhans.metrics import Means, Subject, measure, measurement, metric
from unhans.metrics.randomisation import randomisation_curve
from unhans.text import Words
from unhans.types import Example

EXAMPLES = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES[:4])]


def weights(classifier):
    return {name: weight.detach().clone() for name, weight in classifier.model.named_parameters()}


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_weight_belongs_to_one_part_from_the_head_down(kind):
    model = tiny.transformer(kind).model
    parts = parts_of(model)
    names = [name for part in parts.values() for name, _ in part]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    layers = ["layer 1"] if kind == "albert" else ["layer 2", "layer 1"]
    assert list(parts) == ["head", *layers, "embeddings"]
    assert all("embed" not in name for name, _ in parts["head"])
    assert any(name.startswith(("classifier", "score")) for name, _ in parts["head"])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_only_the_uppermost_parts_are_drawn_anew_and_the_model_is_left_alone(depth):
    classifier = tiny.transformer()
    before = weights(classifier)
    after = weights(randomised(classifier, depth, 0))
    parts = list(parts_of(classifier.model).values())
    for number, part in enumerate(parts):
        changed = [not torch.equal(before[name], after[name]) for name, weight in part if weight.ndim > 1]
        assert all(changed) if number < depth else not any(changed)
    assert all(torch.equal(weight, before[name]) for name, weight in weights(classifier).items())


def test_weights_keep_their_spread_norms_become_neutral_and_the_head_has_xaviers():
    classifier = tiny.transformer()
    before, after = weights(classifier), weights(randomised(classifier, 4, 0))
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    assert float(after[name].std() / before[name].std()) == pytest.approx(1, abs=0.05)
    assert after["bert.encoder.layer.1.output.LayerNorm.weight"].eq(1).all()
    assert after["bert.encoder.layer.1.output.LayerNorm.bias"].eq(0).all()
    head = after["bert.pooler.dense.weight"]
    reach = (6 / sum(head.shape)) ** 0.5
    assert 0.95 * reach < float(head.abs().max()) <= reach


def test_the_same_seed_draws_the_same_model():
    one, two, other = (randomised(tiny.transformer(), 2, seed) for seed in (1, 1, 2))
    assert one.revision == two.revision != other.revision


def test_the_checks_compare_the_same_label_before_and_after():
    classifier = tiny.transformer()
    seed = int(np.random.default_rng(5).integers(2**31))
    before = attribute(classifier, EXAMPLES)
    new = randomised(classifier, 1, seed)
    after = [attribute(new, [e], target=old.label)[0] for e, old in zip(EXAMPLES, before, strict=True)]
    assert [one.label for one in attribute(new, EXAMPLES)] != [one.label for one in before]  # or nothing is shown
    pairs = [(np.array(a.scores), np.array(b.scores)) for a, b in zip(before, after, strict=True)]
    ranks = [np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1] for a, b in pairs]
    signs = [np.mean(np.sign(a) != np.sign(b)) for a, b in pairs]
    sizes = [np.abs(a - b).sum() / (np.abs(a).sum() + np.abs(b).sum()) for a, b in pairs]

    def value(name):
        return measure(classifier, EXAMPLES, metric=f"sanity_{name}", seed=5, models=1).value

    assert value("spearman") == pytest.approx(np.mean(ranks), abs=0.02)  # near ties may fall either way
    assert value("sign_changes") == pytest.approx(np.mean(signs), abs=0.02)
    assert value("magnitude_change") == pytest.approx(np.mean(sizes), abs=1e-3)


def test_several_random_models_are_averaged():
    classifier = tiny.transformer()
    rng = np.random.default_rng(5)
    scores = [np.array(one.scores) for one in attribute(classifier, EXAMPLES, target=0)]
    sizes = []
    for _ in range(3):
        new = randomised(classifier, 1, int(rng.integers(2**31)))
        after = [np.array(one.scores) for one in attribute(new, EXAMPLES, target=0)]
        sizes += [np.abs(a - b).sum() / (np.abs(a).sum() + np.abs(b).sum()) for a, b in zip(scores, after, strict=True)]
    grade = measure(classifier, EXAMPLES, metric="sanity_magnitude_change", seed=5, target=0)
    assert grade.value == pytest.approx(np.mean(sizes), abs=1e-3)
    with pytest.raises(BadOption, match="at least 1"):
        measure(classifier, EXAMPLES, metric="sanity_spearman", models=0)


def word_length(classifier, examples, *, seed=None, targets=None):
    """A method that does not look at the model."""
    return [np.array([float(len(word)) for word in Words(example).strings]) for example in examples]


@pytest.mark.parametrize(("name", "value"), [("spearman", 1.0), ("sign_changes", 0.0), ("magnitude_change", 0.0)])
@pytest.mark.parametrize("depth", ["head", "half", "all"])
def test_a_method_that_does_not_look_at_the_model_is_caught(name, value, depth):
    classifier = tiny.transformer()
    lines = word_length(classifier, EXAMPLES)
    given = [attribution(classifier, e, line) for e, line in zip(EXAMPLES, lines, strict=True)]
    subject = Subject(classifier, EXAMPLES, given, word_length)
    grade = measurement(metric[f"sanity_{name}"], subject, Means(), {"depth": depth}).grade
    assert grade.value == pytest.approx(value)
    assert not grade.beats_random


def test_strengths_have_no_signs_to_change():
    classifier = tiny.transformer()
    given = [attribution(classifier, e, np.ones(len(Words(e))), signed=False) for e in EXAMPLES]
    with pytest.raises(BadData, match="without a sign"):
        measure(classifier, EXAMPLES, metric="sanity_sign_changes", attributions=given)


def test_a_black_box_has_no_weights_to_draw():
    with pytest.raises(Unsupported, match="train"):
        measure(tiny.bag_of_words({}), EXAMPLES, metric="sanity_spearman")


def test_the_curve_goes_from_the_head_to_the_embeddings():
    classifier = tiny.transformer()
    stages = randomisation_curve(classifier, EXAMPLES, method="input_x_gradient", seed=1)
    assert [stage.part for stage in stages] == ["head", "layer 2", "layer 1", "embeddings"]
    assert len({stage.spearman for stage in stages}) == 4
    assert all(stage.magnitude_change > 0.2 for stage in stages)
