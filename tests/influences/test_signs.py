"""Whether a training example helped or harmed: what the methods say against training again without it.

The rule: on twenty examples and a convex head, of the effects that are at least a quarter of the largest one, at least
nine in ten have the sign that the method gave them, with its options left alone (LiSSA's recursion is cut short).
`embedding_neighbours` knows nothing of the loss and claims no sign.
"""

import numpy as np
import pytest

import convex
from unhans.influences import influence, prepare

_LITTLE_WORK = {"lissa": {"depth": 30, "layers": 0}}


@pytest.mark.parametrize("method", [entry.name for entry in influence if entry.name != "embedding_neighbours"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_signs_are_those_of_training_again(method: str, n_labels: int) -> None:
    made, (train, others) = convex.classifier(20, n_labels), convex.data(20, n_labels)
    steps = [(made, 1.0)] if method == "tracin" else []
    index = prepare(made, train, method=method, checkpoints=steps, **_LITTLE_WORK.get(method, {}))
    really = convex.effects(20, n_labels)
    large = np.abs(really) >= np.abs(really).max() / 4
    asked = np.flatnonzero(large.any(1))[:12]
    scores, really, large = index.scores([others[n] for n in asked]), really[asked], large[asked]
    right = np.sign(scores)[large] == np.sign(really)[large]
    assert large.sum() >= 8
    assert right.mean() >= 0.9
