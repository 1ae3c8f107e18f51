"""The index of small gradients: against the formula, and over stops and starts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import tiny
from traced import examples, plain_gradients
from unhans.errors import BadOption, Cancelled, Unsupported
from unhans.influences import prepare
from unhans.influences._gradients import Gradients, slopes, whole_gradient
from unhans.influences.projected_gradients import _inverse
from unhans.types import Example


@pytest.mark.parametrize("kind", [*tiny.KINDS, "averaging"])
def test_every_example_has_its_own_gradient(kind):
    classifier = tiny.transformer(kind)
    texts = [*examples()[:3], Example("empty", "", label="positive")]
    gradients = Gradients(classifier)
    expected = plain_gradients(classifier, texts, gradients.layers)
    assert [layer.name for layer in gradients.layers] == sorted(layer.name for layer in gradients.layers)
    together = np.zeros_like(expected)
    for numbers in ([0, 1, 2], *gradients.batches(texts)):  # padded, and by length
        ends = np.cumsum([layer.outputs * layer.columns for layer in gradients.layers])
        together[numbers] = 0

        def see(layer, went_in, came_back, numbers=numbers, ends=ends):
            own = whole_gradient(gradients.layers[layer], went_in, came_back).flatten(1).numpy()
            together[numbers, ends[layer] - own.shape[1] : ends[layer]] += own

        gradients.show([texts[number] for number in numbers], see)
        assert np.allclose(together[numbers], expected[numbers], atol=1e-4 * np.abs(expected).max())


def test_slopes_are_products_with_the_gradient():
    classifier = tiny.transformer("bert")
    texts = examples()[:6]
    direction, found = {}, []
    for number, text in enumerate(texts):
        classifier.model.zero_grad()
        logits = classifier.logits(classifier.batch([text]))
        cross_entropy(logits, torch.tensor([classifier.label_number(text.label)])).backward()
        own = {name: p.grad.clone() for name, p in classifier.model.named_parameters() if p.grad is not None}
        direction = direction if number else own
        found.append(sum(float((direction[name] * own[name]).sum()) for name in direction))
    told = []
    assert np.allclose(
        slopes(classifier, texts, direction, tell=lambda *at: told.append(at)), found, atol=1e-2 * max(found)
    )
    assert told[-1] == (12, 12)
    assert not slopes(classifier, texts, {name: torch.zeros_like(part) for name, part in direction.items()}).any()


@pytest.mark.parametrize("relative", [False, True])
def test_wide_enough_it_is_the_formula(relative):
    """As many numbers as there are weights: nothing is lost but the choice of directions, which does not matter."""
    classifier = tiny.transformer("averaging")
    train = examples()
    layers = Gradients(classifier).layers
    gradients = plain_gradients(classifier, train, layers)
    if relative:
        gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    expected = np.zeros((len(train), len(train)))
    ends = np.cumsum([layer.outputs * layer.columns for layer in layers])
    for own in np.split(gradients, ends[:-1], axis=1):
        # with fewer examples than weights the inverse is that of the examples' own products
        products = own @ own.T
        damping = 0.2 * np.trace(products) / len(train) / own.shape[1]
        measured = np.linalg.solve(products / len(train) + damping * np.eye(len(train)), products)
        lengths = np.sqrt(np.diag(measured))
        expected += measured / np.outer(lengths, lengths) / len(layers) if relative else measured / len(train)
    found = prepare(classifier, train, width=1000, damping=0.2, relative=relative).scores(train)
    assert np.allclose(found, expected, atol=5e-3 * np.abs(expected).max())


def test_loud_training_examples_count_no_more_than_others():
    """Of two labels, a text's gradients go opposite ways, and the one that the model is less sure of is larger."""
    classifier, train = tiny.transformer("averaging"), examples()
    turned = {"positive": "negative", "negative": "positive"}
    other = Example("other", train[0].text, label=turned[train[0].label])
    relative, plain = (prepare(classifier, [*train, other], relative=choice) for choice in (True, False))
    scores = relative.scores(train)
    assert np.allclose(scores[:, 0], -scores[:, -1], atol=1e-3)
    assert np.allclose(np.diag(scores), 1, atol=1e-3)
    assert not np.allclose(plain.scores(train)[:, 0], -plain.scores(train)[:, -1], rtol=0.01)
    own = relative.self_influence()  # where loudness is the point
    assert not np.isclose(own[0], own[-1], rtol=0.01)


def test_small_gradients_keep_the_products_of_large_ones():
    classifier = tiny.transformer("bert")
    train = examples()
    exact = prepare(classifier, train, method="gradient_dot").scores(train)
    drawn = [
        prepare(classifier, train, precondition=False, relative=False, width=4, seed=seed).scores(train) * len(train)
        for seed in range(4)
    ]
    assert np.corrcoef(exact.ravel(), np.mean(drawn, axis=0).ravel())[0, 1] > 0.95
    wide = prepare(classifier, train, precondition=False, relative=False, width=1000).scores(train) * len(train)
    assert np.allclose(exact, wide, atol=2e-3 * np.abs(exact).max())


def test_it_goes_on_from_the_last_part(tmp_path, monkeypatch):
    monkeypatch.setattr("unhans.influences.projected_gradients._PART", 4)
    classifier, train = tiny.transformer("bert"), examples()
    told = []
    with pytest.raises(Cancelled):
        prepare(
            classifier,
            train,
            folder=tmp_path,
            progress=lambda *at: told.append(at),
            cancelled=lambda: any(done >= 8 for done, _ in told),
        )
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("gradients-*.npy")}
    assert len(kept) == 2
    whole = prepare(classifier, train, folder=tmp_path).scores(train)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    monkeypatch.undo()
    assert np.allclose(whole, prepare(classifier, train).scores(train), rtol=1e-4)


def test_half_the_room_loses_nothing_of_very_small_gradients():
    """A model that is sure of everything has gradients below what half precision can write."""
    classifier = tiny.transformer("bert")
    with torch.no_grad():
        classifier.model.classifier.weight *= 20
        classifier.model.classifier.bias[:] = torch.tensor([-30.0, 30.0])
    train = [Example(str(n), text, label="positive") for n, text in enumerate(tiny.SENTENCES[:6])]
    own = prepare(classifier, train, precondition=False).self_influence()
    assert (own >= 0).all()
    for relative in (False, True):
        assert np.isfinite(prepare(classifier, train, relative=relative).scores(train)).all()


def test_a_layer_that_no_training_example_reaches_says_nothing():
    """A model so sure of all training examples that they have no gradients at all."""
    classifier = tiny.transformer("bert")
    with torch.no_grad():
        classifier.model.classifier.weight[:] = 0
        classifier.model.classifier.bias[:] = torch.tensor([-200.0, 200.0])
    train = [Example(str(n), text, label="positive") for n, text in enumerate(tiny.SENTENCES[:6])]
    for relative in (False, True):
        index = prepare(classifier, train, relative=relative)
        assert not index.scores([Example("a", "Never again", label="negative"), train[0]]).any()
        assert not index.self_influence().any()


def test_the_scale_of_the_gradients_does_not_matter():
    """Nearly sure models have gradients whose squares are below what single precision can write."""
    rng, damping = np.random.default_rng(0), 0.1
    moments = np.cov(rng.standard_normal((5, 40)))
    plain = np.linalg.inv(moments + damping * np.trace(moments) / 5 * np.eye(5))
    for scale in (1, 1e-50):
        inverse, mean = _inverse(moments * scale, damping)
        assert np.allclose(inverse / (mean / scale), plain)
    assert not _inverse(np.zeros((5, 5)), damping)[0].any()


def test_with_a_folder_the_gradients_stay_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("unhans.influences.projected_gradients._PART", 5)
    classifier, train = tiny.transformer("averaging"), examples()
    index = prepare(classifier, train, folder=tmp_path)
    kept = inspect.getclosurevars(index._traced.pushes).nonlocals["index"]
    assert len(kept) == 3
    assert all(isinstance(part.kept, np.memmap) and part.kept.dtype == np.float16 for part in kept)
    assert np.array_equal(index.self_influence(), prepare(classifier, train).self_influence())


def test_strange_options_and_classifiers_are_refused():
    classifier = tiny.transformer("bert")
    with pytest.raises(BadOption, match="width must be at least 1"):
        prepare(classifier, examples(), width=0)
    with pytest.raises(BadOption, match="damping above 0"):
        prepare(classifier, examples(), damping=0)
    with pytest.raises(Unsupported, match="projected_gradients needs gradients"):
        prepare(tiny.bag_of_words({"good": 1.0}), examples())


def test_an_index_too_large_to_hold_says_the_same(monkeypatch):
    """Gradients are written out in full once, or for every text where they would take too much memory."""
    classifier = tiny.transformer()
    train = [Example(str(n), text, label=classifier.labels[n % 2]) for n, text in enumerate(tiny.SENTENCES[:6])]
    held = prepare(classifier, train).scores(tiny.SENTENCES[7])
    monkeypatch.setattr("unhans.influences.projected_gradients._HELD", 0)
    assert np.array_equal(prepare(classifier, train).scores(tiny.SENTENCES[7]), held)
