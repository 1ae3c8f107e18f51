"""A small classifier whose head was really trained to its optimum: the mean of fixed embeddings, then one layer.

With the features fixed, training is a convex problem that Newton's method solves to the last digit, so what becomes of
the model without a training example can be worked out by training it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch

import shortcut
from unhans.averaging import AveragingConfig, AveragingForSequenceClassification
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_tokenizer
from unhans.types import Example

LABELS = ("negative", "positive", "neither")
DECAY = 0.1  # half of this times the squared weights is added to the mean loss


def data(n: int = 20, n_labels: int = 2) -> tuple[list[Example], list[Example]]:
    """Training examples, one in ten with a wrong label, and other texts."""
    every = shortcut.texts(LABELS[:n_labels], cue=None)
    train = [
        Example(e.id, e.text, label=LABELS[(LABELS.index(str(e.label)) + 1) % n_labels] if k % 10 == 3 else e.label)
        for k, e in enumerate(every[:n])
    ]
    return train, every[n : n + 20]


@cache
def classifier(n: int = 20, n_labels: int = 2, width: int = 6) -> TransformerClassifier:
    """Trained on `data`."""
    train, _ = data(n, n_labels)
    made = untrained(n_labels, width)
    found = optimum(features(made, train), truth(train, n_labels), np.ones(n) / n)
    with torch.no_grad():
        made.model.classifier.weight.copy_(torch.from_numpy(found[:, :-1]))
        made.model.classifier.bias.copy_(torch.from_numpy(found[:, -1]))
    return TransformerClassifier(made.model, made.tokenizer, made.limit, "cpu")


def untrained(n_labels: int, width: int) -> TransformerClassifier:
    """Fixed random embeddings and a head that knows nothing."""
    tokenizer = fresh_tokenizer([e.text for e in shortcut.texts(LABELS, cue=None)], max_length=32)
    config = AveragingConfig(
        len(tokenizer), width, 0, 32, initializer_range=3.0, id2label=dict(enumerate(LABELS[:n_labels]))
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = AveragingForSequenceClassification(config)
    return TransformerClassifier(model, tokenizer, 32, "cpu")


def features(made: TransformerClassifier, examples: Sequence[Example]) -> np.ndarray:
    """What the head reads: the mean of the embeddings, and a 1 for the bias."""
    batch = made.batch(examples)
    mask = batch.mask[..., None].double()
    words = made.model.embeddings(batch.ids).detach().double()
    mean = (words * mask).sum(1) / mask.sum(1)
    return np.hstack([mean.numpy(), np.ones((len(examples), 1))])


def truth(examples: Sequence[Example], n_labels: int) -> np.ndarray:
    """1 for the label of each example, 0 elsewhere."""
    return np.eye(n_labels)[[LABELS.index(str(e.label)) for e in examples]]


def probabilities(head: np.ndarray, x: np.ndarray) -> np.ndarray:
    odds = np.exp(x @ head.T)
    return odds / odds.sum(1, keepdims=True)


def losses(head: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -np.log((probabilities(head, x) * y).sum(1))


def gradients(head: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each example's loss by all weights: examples × (labels · features)."""
    return np.einsum("el,ef->elf", probabilities(head, x) - y, x).reshape(len(x), -1)


def hessian(head: np.ndarray, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Of the weighted sum of the losses, without decay: the formula."""
    p = probabilities(head, x)
    spread = np.einsum("e,el,lm->elm", shares, p, np.eye(p.shape[1])) - np.einsum("e,el,em->elm", shares, p, p)
    return np.einsum("elm,ef,eg->lfmg", spread, x, x, optimize=True).reshape(head.size, head.size)


def optimum(x: np.ndarray, y: np.ndarray, shares: np.ndarray, decay: float = DECAY) -> np.ndarray:
    """The head, labels × features, that minimises the loss: Newton's method until nothing moves."""
    head = np.zeros((y.shape[1], x.shape[1]))
    for _ in range(100):
        slope = shares @ gradients(head, x, y) + decay * head.ravel()
        step = np.linalg.solve(hessian(head, x, shares) + decay * np.eye(head.size), slope)
        head = head - step.reshape(head.shape)
        if np.abs(step).max() < 1e-12:
            return head
    raise AssertionError("Newton's method did not converge")


@cache
def effects(n: int = 20, n_labels: int = 2, width: int = 6) -> np.ndarray:
    """What really happens: how much the loss of each other text grows when a training example is left out."""
    made = untrained(n_labels, width)
    train, others = data(n, n_labels)
    x, y = features(made, train), truth(train, n_labels)
    tested = features(made, others), truth(others, n_labels)
    before = losses(optimum(x, y, np.full(n, 1 / n)), *tested)
    columns = []
    for left_out in range(n):
        shares = np.full(n, 1 / n)  # the decay does not grow with fewer examples
        shares[left_out] = 0
        columns.append(losses(optimum(x, y, shares), *tested) - before)
    return np.array(columns).T


def head(made: TransformerClassifier) -> np.ndarray:
    """Labels × features, the bias last."""
    layer = made.model.classifier
    return torch.cat([layer.weight, layer.bias[:, None]], 1).detach().double().numpy()


def curvature(made: TransformerClassifier, train: Sequence[Example]) -> np.ndarray:
    """The Hessian of the mean loss by the head, without decay."""
    return hessian(head(made), features(made, train), np.full(len(train), 1 / len(train)))


def formula(made: TransformerClassifier, train: Sequence[Example], others: Sequence[Example]) -> np.ndarray:
    """What influence functions say, with the decay as damping: others × train."""
    of, n = head(made), len(made.labels)
    matrix = curvature(made, train) + DECAY * np.eye(of.size)
    back = gradients(of, features(made, train), truth(train, n))
    return gradients(of, features(made, others), truth(others, n)) @ np.linalg.solve(matrix, back.T) / len(train)


def share_of_mean(made: TransformerClassifier, train: Sequence[Example]) -> float:
    """The decay as a share of the mean eigenvalue."""
    return DECAY / float(np.diag(curvature(made, train)).mean())


def share_of_largest(made: TransformerClassifier, train: Sequence[Example]) -> float:
    """The decay as a share of the largest eigenvalue."""
    return DECAY / float(np.linalg.eigvalsh(curvature(made, train))[-1])
