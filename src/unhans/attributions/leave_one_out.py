"""Leave-one-out (Li et al. 2016; Pham et al. 2022 find it a strong baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution
from unhans.model import Classifier
from unhans.text import Hole, Words

_LEAST = 1e-6  # probabilities are kept this far from 0 and 1, so that log-odds stay finite


@attribution(needs={"predict"}, paper="arXiv:1612.08220", alias="loo")
def leave_one_out(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    erase: Annotated[Literal["delete", "mask", "unk", "pad"], "what becomes of the word"] = "delete",
    unit: Annotated[Literal["log_odds", "probability"], "what is compared"] = "log_odds",
) -> list[NDArray[np.float64]]:
    """Fall in the label's log-odds when one word goes.

    Asks the model once for each word; equal texts that arise are asked once.
    """
    hole = None if erase == "delete" else Hole(erase)
    variants = [one.without([position], hole) for one in words for position in range(len(one))]
    wholes = classifier.log_probs([one.variant({}) for one in words], **how)
    parts = iter(classifier.log_probs(variants, **how))
    return [
        np.array([_measure(whole[goal], unit) - _measure(next(parts)[goal], unit) for _ in range(len(one))])
        for one, whole, goal in zip(words, wholes, targets, strict=True)
    ]


def _measure(log_prob: float, unit: str) -> float:
    p = float(np.exp(log_prob))
    if unit == "probability":
        return p
    p = min(max(p, _LEAST), 1 - _LEAST)
    return float(np.log(p) - np.log1p(-p))
