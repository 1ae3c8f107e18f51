"""Probabilities from heads that did not see the example: a softmax regression on fixed embeddings, fold by fold."""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from unhans.doubts import Floats, How

Numbers = NDArray[np.int64]
_STEPS = 200  # of a head's training, at most


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
            found[held] = np.exp(_log_softmax(_with_one(points[held]) @ weights))
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
    inputs, truth = _with_one(points), np.eye(n_labels)[given]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(inputs.shape[1], n_labels)
        logs = _log_softmax(inputs @ weights)
        value = -(truth * logs).sum() + 0.5 * penalty * (weights**2).sum()
        slope = inputs.T @ (np.exp(logs) - truth) + penalty * weights
        return float(value), slope.ravel()

    start = np.zeros(inputs.shape[1] * n_labels)
    steps = count(1)
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS},
        callback=lambda _: how.tell(next(steps), _STEPS),
    )
    weights: Floats = found.x.reshape(inputs.shape[1], n_labels)
    return weights


def _with_one(points: Floats) -> Floats:
    return np.hstack([points, np.ones((len(points), 1))])


def _log_softmax(rows: Floats) -> Floats:
    found: Floats = rows - logsumexp(rows, axis=1, keepdims=True)
    return found
