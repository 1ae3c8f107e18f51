"""LiSSA: the recursion against the Hessian written out, its search for a scale, and FastIF's short cuts."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.func import functional_call, hessian
from torch.nn.functional import cross_entropy

import convex
import tiny
from unhans.errors import BadOption
from unhans.influences import How, prepare, trace
from unhans.influences._head import last_parameters
from unhans.influences._hessians import Curvature
from unhans.influences.lissa import _Search
from unhans.model import TransformerClassifier
from unhans.types import Example


def _written_out(
    made: TransformerClassifier, names: list[str], examples: list[Example]
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of the examples (examples × weights) and the Hessian of their mean loss, by differentiating twice."""
    own = {name: value.detach().double() for name, value in made.model.named_parameters()}
    sizes = [own[name].numel() for name in names]
    batch = made.batch(examples)
    targets = torch.tensor([made.label_number(str(e.label)) for e in examples])

    def losses(flat: torch.Tensor) -> torch.Tensor:
        parts = {name: part.view_as(own[name]) for name, part in zip(names, flat.split(sizes), strict=True)}
        given = {"input_ids": batch.ids, "attention_mask": batch.mask}
        logits = functional_call(made.model, own | parts, kwargs=given).logits
        return cross_entropy(logits, targets, reduction="none")

    start = torch.cat([own[name].flatten() for name in names])
    return torch.func.jacrev(losses)(start).numpy(), hessian(lambda flat: losses(flat).mean())(start).numpy()


def test_it_is_the_inverse_of_the_hessian_on_a_model_that_is_not_convex() -> None:
    train, others = convex.data(30)
    made = tiny.transformer("averaging", tokenizer=convex.classifier().tokenizer, hidden_size=6, hidden_layers=1)
    names = last_parameters(made, 1)
    assert names == ["layers.0.weight", "layers.0.bias", "classifier.weight", "classifier.bias"]
    by_train, curved = _written_out(made, names, train)
    by_others, _ = _written_out(made, names, others[:5])
    largest = np.abs(np.linalg.eigvalsh(curved)).max()
    matrix = curved + 0.2 * largest * np.eye(len(curved))
    assert np.linalg.eigvalsh(matrix).min() > 0
    expected = by_others @ np.linalg.solve(matrix, by_train.T) / len(train)
    scores = prepare(made, train, method="lissa", layers=1, damping=0.2, depth=80, batch=16).scores(others[:5])
    assert spearmanr(scores.ravel(), expected.ravel()).statistic > 0.95
    assert np.polyfit(expected.ravel(), scores.ravel(), 1)[0] == pytest.approx(1, abs=0.15)


def test_a_product_with_the_hessian_and_its_largest_eigenvalue_are_those_of_the_hessian_written_out() -> None:
    made, (train, _) = convex.classifier(), convex.data()
    names = last_parameters(made, 0)
    _, curved = _written_out(made, names, train)
    curvature = Curvature(made, train, np.ones(len(train), np.int64), names)
    direction = np.random.default_rng(0).standard_normal(len(curved))
    parts = [torch.from_numpy(direction[:12]).float().view(2, 6), torch.from_numpy(direction[12:]).float()]
    found = torch.cat([part.flatten() for part in curvature.times(parts, train)]).numpy()
    assert np.allclose(found, curved @ direction, atol=1e-5)
    largest = curvature.largest(np.random.default_rng(0), How())
    assert largest == pytest.approx(np.linalg.eigvalsh(curved)[-1], rel=0.25)  # of a sample of them


def test_long_texts_are_looked_at_a_few_at_a_time_and_the_product_is_the_same(monkeypatch) -> None:
    made, (train, _) = tiny.transformer("bert"), convex.data()
    train = [Example("long", "warm and funny " * 20, label=train[0].label), *train[:12]]
    curvature = Curvature(made, train, np.ones(len(train), np.int64), last_parameters(made, 1))
    direction = [torch.ones_like(parameter) for parameter in curvature._parameters]
    together = torch.cat([part.flatten() for part in curvature.times(direction, train)])
    cells = []
    curvature._classifier.model.register_forward_pre_hook(
        lambda _, __, inputs: cells.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    monkeypatch.setattr("unhans.influences._hessians.TOKEN_BUDGET", 64)
    apart = torch.cat([part.flatten() for part in curvature.times(direction, train)])
    assert len(cells) > 2
    assert max(cells) <= 64  # half of it padding, at most
    assert torch.allclose(together, apart, rtol=1e-3, atol=1e-4 * float(together.abs().max()))


def test_from_a_scale_at_which_it_diverges_it_finds_one_at_which_it_does_not() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    curvature = Curvature(made, train, np.ones(len(train), np.int64), last_parameters(made, 0))
    largest = curvature.largest(np.random.default_rng(0), How())
    found = _Search(curvature, 60, 8, 1, 0.1 * largest, largest / 6)(others[0], 0, How())
    good = _Search(curvature, 60, 8, 1, 0.1 * largest, largest)(others[0], 0, How())
    assert found.scale > largest / 6
    assert found.damping == 0.1 * largest
    one, two = (torch.cat([part.flatten() for part in f.direction]).numpy() for f in (found, good))
    assert np.corrcoef(one, two)[0, 1] > 0.9


def test_a_hopeless_start_raises_the_damping_too() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    curvature = Curvature(made, train, np.ones(len(train), np.int64), last_parameters(made, 0))
    largest = curvature.largest(np.random.default_rng(0), How())
    found = _Search(curvature, 30, 8, 1, 0.1 * largest, largest / 100)(others[0], 0, How())
    assert found.damping > 0.1 * largest


def test_the_notes_tell_whether_it_converged() -> None:
    made, (train, others) = convex.classifier(), convex.data()

    def told(**options: float) -> str:
        return trace(made, others[:1], train, method="lissa", layers=0, batch=20, **options)[0].notes[0]

    assert "120 steps at scale" in told(depth=120, damping=0.2)
    assert "has not converged" not in told(depth=120, damping=0.2)
    assert "has not converged, so raise depth or damping" in told(depth=4, damping=0.001)
    assert "averaged over 2 recursions" in told(depth=4, repeats=2)


def test_only_the_nearest_are_scored_and_as_without_the_short_cut() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    how = {"method": "lissa", "layers": 0, "depth": 10}
    every = prepare(made, train, **how).scores(others[:2])
    some = prepare(made, train, nearest=4, **how).scores(others[:2])
    x, asked = convex.features(made, train), convex.features(made, others[:2])
    for line, whole, anchor in zip(some, every, asked, strict=True):
        near = np.argsort(((x - anchor) ** 2).sum(1))[:4]
        assert set(np.flatnonzero(np.isfinite(line))) == set(near)
        assert np.allclose(line[near], whole[near], rtol=1e-4, atol=1e-7)


def test_what_was_not_scored_is_told() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    how = {"method": "lissa", "layers": 0, "depth": 2}
    (one,) = trace(made, others[:1], train, nearest=4, **how)
    assert one.notes[1:] == ("Only the nearest 4 of 20 different training texts were scored.",)
    assert len(one.helpful) + len(one.harmful) == 4
    (whole,) = trace(made, others[:1], train, nearest=20, **how)
    assert len(whole.notes) == 1


def test_an_example_is_drawn_as_often_as_it_is_in_the_data() -> None:
    train, _ = convex.data(4)
    made = convex.classifier()
    curvature = Curvature(made, train, np.array([1, 1, 1, 7]), last_parameters(made, 0))
    drawn = [e.id for e in curvature.draw(np.random.default_rng(0), 1000)]
    assert drawn.count(train[3].id) == pytest.approx(700, abs=60)


def test_neither_company_nor_order_changes_a_score() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    index = prepare(made, train, method="lissa", layers=0, depth=10)
    turned = prepare(made, train[::-1], method="lissa", layers=0, depth=10)
    assert np.allclose(index.scores(others[:3]), turned.scores(others[2::-1])[::-1, ::-1], rtol=1e-4, atol=1e-7)


def test_layers_are_counted_from_the_head() -> None:
    made = tiny.transformer("bert")
    head, one, two, every = (last_parameters(made, n) for n in (0, 1, 2, -1))
    assert head == ["classifier.weight", "classifier.bias"]
    assert {name.split(".")[1] for name in one} == {"encoder", "pooler", "weight", "bias"}
    assert all(".layer.1." in name for name in one if "encoder" in name)
    assert set(head) < set(one) < set(two) < set(every)
    assert set(every) - set(two) == {name for name in every if "embeddings" in name}


def test_what_makes_no_sense_is_refused() -> None:
    made, (train, _) = convex.classifier(), convex.data()
    for options in ({"depth": 0}, {"batch": 0}, {"damping": 0}, {"nearest": -1}, {"repeats": 0}, {"layers": -2}):
        with pytest.raises(BadOption, match="must be"):
            prepare(made, train, method="lissa", **options)
