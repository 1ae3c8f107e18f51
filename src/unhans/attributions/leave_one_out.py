"""Leave-one-out (Li et al. 2016; Pham et al. 2022 find it a strong baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution
from unhans.attributions._erasing import BASELINES, Erase, Measured, hole_of, measured
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Terms


@attribution(
    needs={"predict"},
    paper="arXiv:1612.08220",
    aliases=("loo", "occlusion"),
    terms=lambda o: Terms(o["unit"], BASELINES[o["erase"]], "one difference for each word"),
    never_by={"int8": "rounding changes more than one word often counts, and in our measurements ruined the order."},
)
def leave_one_out(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    erase: Erase = "delete",
    unit: Measured = "log_odds",
) -> list[NDArray[np.float64]]:
    """Fall in the label's log-odds when one word goes.

    Asks the model once for each word; equal texts that arise are asked once.
    """
    hole = hole_of(erase)
    # whole texts and variants in one go: a single text more costs little in a batch, and much alone
    wholes = [one.variant({}) for one in words]
    variants = [one.without([position], hole) for one in words for position in one.open]
    answers = iter(measured(classifier.log_probs([*wholes, *variants], **how), unit))
    whole = [next(answers)[goal] for goal in targets]
    lines = [np.zeros(len(one)) for one in words]
    for one, line, goal, before in zip(words, lines, targets, whole, strict=True):
        for position in one.open:
            line[position] = before - next(answers)[goal]
    return lines
