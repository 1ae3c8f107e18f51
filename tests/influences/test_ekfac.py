"""EK-FAC: every part of it against the same thing worked out slowly, by differentiating one example at a time."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn
from torch.nn.functional import cross_entropy

import convex
import tiny
from unhans.errors import BadOption
from unhans.influences import prepare
from unhans.influences._gradients import Gradients
from unhans.influences.ekfac import _spread
from unhans.model import TransformerClassifier
from unhans.types import Example

_TRAIN = [
    Example("1", "A wonderful film, warm and funny.", label="positive"),
    Example("2", "The soup was cold.", "The waiter did not care.", label="negative"),
    Example("3", "good", label="positive"),
    Example("4", "good", label="positive"),  # the same again
    Example("5", "Never again: the room smelled, the bed was hard.", label="negative"),
]


@pytest.mark.parametrize("p", [(0.3, 0.7), (0.1, 0.2, 0.7), (0.4, 0.0, 0.1, 0.5), (0.0, 1.0, 0.0), (1.0, 0.0)])
def test_the_signs_give_the_covariance_of_an_answer(p: tuple[float, ...]) -> None:
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=len(p) - 1))).double()
    rows = _spread(torch.tensor([p]).double().expand(len(signs), -1), signs).numpy()
    assert np.allclose(rows.T @ rows / len(rows), np.diag(p) - np.outer(p, p))


@pytest.mark.parametrize("kind", ["averaging", "albert", "gpt2"])  # plain; layers used twice; weights the other way up
def test_it_is_its_own_formula_with_every_gradient_taken_singly(kind: str, tmp_path: Path) -> None:
    made = tiny.transformer(kind)
    index = prepare(made, _TRAIN, method="ekfac", folder=tmp_path, damping=0.5)
    vectors, values = (np.load(next(tmp_path.glob(f"*/{name}.npz"))) for name in ("vectors", "values"))
    layers = Gradients(made).layers
    names = [layer.name for layer in layers]
    p = np.exp(made.log_probs(_TRAIN))
    expected = np.zeros((2, len(_TRAIN)))
    per_label = [[_single(made, names, e, label) for label in made.labels] for e in _TRAIN]
    for k in range(len(layers)):
        left, right = vectors[f"out{k}"].T, vectors[f"in{k}"]
        turned = [[left @ g[k] @ right for g in both] for both in per_label]
        moments = np.mean([sum(p[e][c] * turned[e][c] ** 2 for c in (0, 1)) for e in range(len(_TRAIN))], axis=0)
        assert np.allclose(values[str(k)], moments, rtol=1e-3, atol=1e-4 * moments.max())
        own = [turned[n][made.label_number(str(e.label))] for n, e in enumerate(_TRAIN)]
        divisor = moments + 0.5 * moments.mean()
        expected += [[(own[a] / divisor * own[z]).sum() / len(_TRAIN) for z in range(len(_TRAIN))] for a in (0, 1)]
    assert np.allclose(index.scores(_TRAIN[:2]), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert np.allclose(index.self_influence()[:2], [expected[0, 0], expected[1, 1]], rtol=1e-3)


def _single(made: TransformerClassifier, names: list[str], example: Example, label: str) -> list[np.ndarray]:
    """The gradient of one example's loss, for one label, by the weights and bias of each layer."""
    modules = [made.model.get_submodule(name) for name in names]
    loss = cross_entropy(made.logits(made.batch([example])), torch.tensor([made.label_number(label)]))
    found = []
    for module in modules:
        by = torch.autograd.grad(loss, [module.weight, *_bias(module)], retain_graph=True)
        weight = by[0] if isinstance(module, nn.Linear) else by[0].T
        found.append(torch.cat([weight, *(b[:, None] for b in by[1:])], 1).double().numpy())
    return found


def _bias(module: nn.Module) -> list[torch.Tensor]:
    return [] if module.bias is None else [module.bias]  # type: ignore[list-item]


def test_the_eigenvectors_are_those_of_what_goes_in_and_what_comes_back(tmp_path: Path) -> None:
    made, (train, _) = convex.classifier(), convex.data()
    prepare(made, train, method="ekfac", folder=tmp_path)
    vectors = np.load(next(tmp_path.glob("*/vectors.npz")))
    x = convex.features(made, train)
    turned = vectors["in0"].T @ (x.T @ x / len(x)) @ vectors["in0"]
    assert np.allclose(turned, np.diag(np.diag(turned)), atol=1e-5 * turned.max())


@pytest.mark.parametrize("n_labels", [2, 3])
def test_lissa_ekfac_and_the_exact_head_agree_on_a_convex_head(n_labels: int) -> None:
    made, (train, others) = convex.classifier(20, n_labels), convex.data(20, n_labels)
    mean, largest = convex.share_of_mean(made, train), convex.share_of_largest(made, train)
    some = others[:6]
    exact = prepare(made, train, method="exact_head", damping=mean).scores(some)
    factored = prepare(made, train, method="ekfac", damping=mean, layers=0).scores(some)
    stepped = prepare(made, train, method="lissa", damping=largest, layers=0, depth=100, batch=10).scores(some)
    for one, two in ((exact, factored), (exact, stepped), (factored, stepped)):
        assert spearmanr(one.ravel(), two.ravel()).statistic >= 0.95


def test_an_example_that_is_there_twice_counts_twice_in_the_curvature() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    doubled = [*train, *train[:5], *train[:5]]
    mean = convex.share_of_mean(made, doubled)
    scores = prepare(made, doubled, method="ekfac", damping=mean).scores(others)
    assert spearmanr(scores.ravel(), convex.formula(made, doubled, others).ravel()).statistic > 0.95
    assert np.array_equal(scores[:, :5], scores[:, 20:25])


def test_layers_are_counted_from_the_head() -> None:
    made, texts = tiny.transformer("bert"), _TRAIN[:2]
    scores = [prepare(made, _TRAIN, method="ekfac", layers=n).scores(texts) for n in (0, 1, 2, -1)]
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[1], scores[2])
    assert np.array_equal(scores[2], scores[3])  # it has two


def test_what_makes_no_sense_is_refused() -> None:
    for options in ({"damping": 0}, {"layers": -2}):
        with pytest.raises(BadOption, match="must be"):
            prepare(tiny.transformer("averaging"), _TRAIN, method="ekfac", **options)
