"""Energy (Liu et al. 2020): how little the model has to say for any label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy.special import logsumexp

from unhans.detectors import Floats, detector
from unhans.errors import BadOption, ModelFailed
from unhans.model import TransformerClassifier
from unhans.scoring import How, ask
from unhans.types import Example


# a black box answers in probabilities; they sum to 1, so that the energy of every text would be 0
@detector(needs={"gradients"}, paper="Liu et al. 2020, arXiv:2010.03759")
def energy(
    classifier: TransformerClassifier,
    texts: Sequence[Example],
    how: How,
    *,
    temperature: Annotated[float, "what logits are divided by; high ones look at all labels alike"] = 1.0,
) -> Floats:
    """How little the logits of all labels come to: the negative logarithm of the sum of their exponentials."""
    if temperature <= 0:
        raise BadOption(f"temperature must be more than 0, not {temperature}.")
    logits = ask(classifier, texts, progress=how.tell).astype(np.float64)
    if not np.isfinite(logits).all():
        raise ModelFailed("The model answered with values that are not numbers.")
    little: Floats = -temperature * logsumexp(logits / temperature, axis=1)
    return little
