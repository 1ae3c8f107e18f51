"""Representer points: a logit really is the sum of what the training examples are said to have added to it."""

import numpy as np
import pytest

import convex
from unhans.errors import BadOption, Cancelled
from unhans.influences import prepare


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_values_add_up_to_the_logit_of_the_label(n_labels: int) -> None:
    made, (train, others) = convex.classifier(20, n_labels), convex.data(20, n_labels)
    decay = convex.DECAY / (convex.features(made, train) ** 2).mean()
    scores = prepare(made, train, method="representer", decay=decay).scores(others)
    # the model was trained with the same decay, so the head that is fitted again is its own
    logits = convex.features(made, others) @ convex.head(made).T
    assert np.allclose(scores.sum(1), (logits * convex.truth(others, n_labels)).sum(1), atol=1e-5)


def test_each_value_is_the_papers_formula() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    x, y = convex.features(made, train), convex.truth(train, 2)
    index = prepare(made, train, method="representer", decay=convex.DECAY / (x**2).mean())
    wrong = convex.probabilities(convex.head(made), x) - y
    values = -wrong / (convex.DECAY * len(train))
    alike = convex.features(made, others) @ x.T
    expected = alike * (convex.truth(others, 2) @ values.T)
    assert np.allclose(index.scores(others), expected, atol=1e-5)
    assert np.allclose(index.self_influence(), (x**2).sum(1) * (y * values).sum(1), atol=1e-5)


def test_fitted_to_the_models_answers_the_labels_play_no_part() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    other_way = [type(e)(e.id, e.text, label=convex.LABELS[1 - convex.LABELS.index(str(e.label))]) for e in train]
    one, two = (prepare(made, t, method="representer", targets="answers").scores(others) for t in (train, other_way))
    assert np.allclose(one, two, atol=1e-6)


def test_an_example_that_is_there_twice_adds_its_value_twice() -> None:
    made, (train, others) = convex.classifier(), convex.data()
    doubled = [*train, *train[:5]]
    x, y = convex.features(made, doubled), convex.truth(doubled, 2)
    scores = prepare(made, doubled, method="representer", decay=convex.DECAY / (x**2).mean()).scores(others)
    head = convex.optimum(x, y, np.full(25, 1 / 25))
    logits = convex.features(made, others) @ head.T
    assert np.allclose(scores.sum(1), (logits * convex.truth(others, 2)).sum(1), atol=1e-5)


def test_a_stop_is_heard_while_the_head_is_fitted() -> None:
    made, (train, _), told = convex.classifier(), convex.data(), []
    with pytest.raises(Cancelled):
        prepare(
            made,
            train,
            method="representer",
            progress=lambda *at: told.append(at),
            cancelled=lambda: len(told) > 1,  # all texts are read after the first time
        )


def test_without_decay_it_is_refused() -> None:
    with pytest.raises(BadOption, match="decay must be positive"):
        prepare(convex.classifier(), convex.data()[0], method="representer", decay=-1)
