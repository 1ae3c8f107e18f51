"""Probabilities from heads that did not see the example: a softmax regression on fixed embeddings, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax

from unhans.doubts import Floats, How

Numbers = NDArray[np.int64]
Loss = Callable[[Floats], tuple[float, Floats]]
_STEPS = 200  # of a head's training, at most
_LEVEL = 1e-5  # slope of the mean loss at which a head is trained: probabilities are right to three digits


def out_of_fold(  # noqa: PLR0917 - the examples, as parallel columns
    points: Floats,
    given: Numbers,
    texts: Numbers,
    n_labels: int,
    rng: np.random.Generator,
    how: How,
    *,
    folds: int = 5,
    penalty: float = 1.0,
) -> Floats:
    """Probability of every label for each example, by a head trained on the other folds: examples × labels.

    Equal texts are in the same fold, or a head would know the answer from a copy.
    """
    fold = _folds(given, texts, folds, rng)
    found = np.full((len(given), n_labels), 1 / n_labels)
    for number in range(folds):
        held = fold == number
        if held.any() and not held.all():
            weights = _head(points[~held], given[~held], n_labels, penalty, how.part(number, folds))
            found[held] = softmax(_with_one(points[held]) @ weights, axis=1)
        how.tell(number + 1, folds)
    return found


def _folds(given: Numbers, texts: Numbers, folds: int, rng: np.random.Generator) -> Numbers:
    """A fold for each example: by text, and the labels spread evenly."""
    _, first = np.unique(texts, return_index=True)
    order = rng.permutation(len(first))
    order = order[np.argsort(given[first][order], kind="stable")]  # one label after the other, dealt out in turn
    dealt = np.empty(len(first), int)
    dealt[order] = np.arange(len(first)) % folds
    by_text: Numbers = dealt[texts]
    return by_text


def _head(points: Floats, given: Numbers, n_labels: int, penalty: float, how: How) -> Floats:
    """Weights (width + 1) × labels of the head with the least penalised loss; one minimum, found from any start."""
    inputs = _with_one(points)
    columns = np.ascontiguousarray(inputs.T)  # products with a few lines of weights are twice as fast this way round
    if n_labels == 2:  # the two lines of weights are each other's opposite: half the work
        half = _least(_loss_of_two(inputs, columns, given, penalty), inputs.shape[1], how) / 2
        return np.stack([-half, half], 1)
    found = _least(_loss_of_many(inputs, columns, np.eye(n_labels)[given], penalty), inputs.shape[1] * n_labels, how)
    return found.reshape(n_labels, -1).T


def _least(loss: Loss, size: int, how: How) -> Floats:
    steps = count(1)
    options = {"maxiter": _STEPS, "gtol": _LEVEL, "ftol": 64 * np.finfo(np.float64).eps}
    tell = {"callback": lambda _: how.tell(next(steps), _STEPS)}
    found: Floats = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options=options, **tell).x
    return found


def _loss_of_many(inputs: Floats, columns: Floats, truth: Floats, penalty: float) -> Loss:
    """The mean loss with weights labels × (width + 1), and its slope."""
    wanted, n = np.ascontiguousarray(truth.T), len(truth)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(len(wanted), -1)
        logits = weights @ columns
        logits -= logits.max(0)
        odds = np.exp(logits)
        total = odds.sum(0)
        value = np.log(total).sum() - (wanted * logits).sum() + 0.5 * penalty * (flat @ flat)
        slope = (odds / total - wanted) @ inputs + penalty * weights
        return float(value) / n, slope.ravel() / n

    return loss


def _loss_of_two(inputs: Floats, columns: Floats, given: Numbers, penalty: float) -> Loss:
    """The same for two labels, by the difference of their weights."""
    sign, n = np.where(given == 1, 1.0, -1.0), len(given)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (weights @ columns)
        value = np.logaddexp(0, -margin).sum() + 0.25 * penalty * (weights @ weights)
        slope = -(sign * expit(-margin)) @ inputs + 0.5 * penalty * weights
        return float(value) / n, slope / n

    return loss


def _with_one(points: Floats) -> Floats:
    return np.hstack([points, np.ones((len(points), 1))])
