"""A model with the weights of another state."""

from __future__ import annotations

from typing import Annotated

import torch

from unhans.bugs import Truth, bug, check_share
from unhans.bugs._weights import parts_of
from unhans.errors import BadOption
from unhans.model import Classifier, TransformerClassifier


@bug(kind="model", proof="answers", needs={"train"}, paper="Adebayo et al. 2020, §2.1")
def wrong_checkpoint(
    classifier: TransformerClassifier,
    other: Classifier,
    *,
    share: Annotated[float, "how far the weights go to the other state: 1 is that state itself"] = 1.0,
) -> tuple[TransformerClassifier, Truth]:
    """Load the weights of another checkpoint of the same model, or stop on the way there.

    Such as the state before training was finished. Both must have the same labels and the same shape.
    """
    check_share("share", share)
    theirs = other.model.state_dict() if isinstance(other, TransformerClassifier) else {}
    copy = classifier.clone()
    own = dict(copy.model.named_parameters())
    if other.labels != classifier.labels or any(
        name not in theirs or theirs[name].shape != weight.shape for name, weight in own.items()
    ):
        raise BadOption("The other checkpoint is of another model: its labels or the shapes of its weights differ.")
    touched = set()
    with torch.no_grad():
        for name, weight in own.items():
            goal = theirs[name].to(weight)
            if share and not torch.equal(goal, weight):
                touched.add(name)
                weight.copy_(goal if share == 1 else torch.lerp(weight, goal, share))
    parts = [part for part, weights in parts_of(copy.model).items() if any(name in touched for name, _ in weights)]
    return copy, Truth(note=f"The weights are {share:.0%} of the way to another checkpoint.", parts=tuple(parts))
