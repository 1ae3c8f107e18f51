"""Representer points (Yeh et al. 2018): what the head says of a text as a sum over the training examples.

The weights of a head that minimises a loss with weight decay are a sum of the training examples' features, each times
how wrong the head is there. So a logit of a text is a sum of one value for each training example: how wrong the head is
there, times how much its features look like the text's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from unhans.errors import BadOption
from unhans.influences import How, Pushes, Shelf, Traced, influence
from unhans.influences._head import Floats, head_of, see, see_now, softmax
from unhans.model import TransformerClassifier
from unhans.types import Example

_STEPS = 5_000
_FLAT = 1e-8  # slope of the loss at which the head counts as fitted


@influence(needs={"gradients"}, keeps=True, paper="arXiv:1811.09720")
def representer(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    counts: NDArray[np.int64],
    shelf: Shelf,
    how: How,
    *,
    decay: Annotated[float, "weight decay of the head, as a share of the features' mean square"] = 0.01,
    targets: Annotated[Literal["labels", "answers"], "what the head is fitted to: labels, or the model's answers"] = (
        "labels"
    ),
) -> Traced:
    """How much of the logit of a text's label comes from each training example.

    That holds for a head at its optimum with weight decay, so the head is fitted again on the features that it reads;
    the notes tell how often it then says the same as the model. The paper fits it to the model's own answers, where a
    training example's label plays no part.
    """
    if decay <= 0:
        raise BadOption(f"decay must be positive, not {decay}: without it a logit is not a sum over the examples.")
    head = head_of(classifier)
    seen, shares = see(classifier, head, train, shelf, how), counts / counts.sum()
    goals = seen.truth if targets == "labels" else seen.p
    strength = decay * float(shares @ (seen.features**2).mean(1))
    fitted = shelf.arrays("fitted", lambda: {"head": fitted_head(seen.features, goals, shares, strength, how)})["head"]
    said = seen.features @ fitted.T
    # a bias is the weight of a feature that is always 1, and decays like the others
    values = (goals - softmax(said)) / (strength * counts.sum())
    same = float(shares @ (said.argmax(1) == seen.p.argmax(1)))
    note = (
        f"Fitted again with weight decay, the head says the same as the model of {same:.1%} of the training examples."
    )

    def pushes(anchors: Sequence[Example], _: How) -> Pushes:
        asked = see_now(classifier, head, anchors)
        return Pushes((asked.features @ seen.features.T) * (asked.truth @ values.T), (note,))

    def own(_: How) -> Floats:
        found: Floats = (seen.features**2).sum(1) * (seen.truth * values).sum(1)
        return found

    return Traced(pushes, own)


def fitted_head(features: Floats, goals: Floats, shares: Floats, decay: float, how: How | None = None) -> Floats:
    """The head (labels × features) with the least mean cross-entropy plus half the decay times its square."""
    n, how = len(features), how or How()
    shape = goals.shape[1], features.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        head = flat.reshape(shape)
        logits = features @ head.T
        logits -= logits.max(1, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        slope = ((np.exp(log_p) - goals) * shares[:, None]).T @ features + decay * head
        return float(-shares @ (goals * log_p).sum(1) + decay / 2 * (flat**2).sum()), slope.ravel()

    start = np.zeros(shape[0] * shape[1])
    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "gtol": _FLAT, "ftol": 0.0}
    # nobody knows how many steps it will be; all examples are seen, and a stop is heard at every step
    made = minimize(loss, start, jac=True, method="L-BFGS-B", options=options, callback=lambda _: how.tell(n, n))
    found: Floats = made.x.reshape(shape)
    return found
