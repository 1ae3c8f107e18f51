"""TracIn: what the training examples did for a text while the model was trained, added up over its earlier states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unhans.errors import BadData, BadOption
from unhans.influences import How, Pushes, Scores, Shelf, Traced, influence
from unhans.influences._gradients import Gradients
from unhans.influences.gradient_dot import products, squares
from unhans.model import TransformerClassifier
from unhans.types import Example


@influence(needs={"gradients"}, paper="arXiv:2002.08484")
def tracin(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    checkpoints: Sequence[tuple[TransformerClassifier, float]],
    shelf: Shelf,
) -> Traced:
    """Products of gradients times the learning rate, added up over states that the model went through in training."""
    if not checkpoints:
        raise BadOption(
            "tracin adds up over earlier states of the model, and none were given. Give checkpoints=[(classifier, "
            "learning rate), …], or use gradient_dot, which asks the finished model alone."
        )
    if any(earlier.labels != classifier.labels for earlier, _ in checkpoints):
        raise BadData("A checkpoint has other labels than the model. Give states that this model went through.")
    states = [(Gradients(earlier), rate) for earlier, rate in checkpoints]
    of = len(states)

    def pushes(anchors: Sequence[Example], how: How) -> Pushes:
        parts = [rate * products(s, anchors, train, how.part(n, n + 1, of)) for n, (s, rate) in enumerate(states)]
        return Pushes(np.sum(parts, axis=0))

    def own(how: How) -> Scores:
        def compute() -> dict[str, Scores]:
            return {str(n): squares(state, train, how.part(n, n + 1, of)) for n, (state, _) in enumerate(states)}

        kept = shelf.arrays("own", compute)
        return np.asarray(np.sum([rate * kept[str(n)] for n, (_, rate) in enumerate(states)], axis=0), np.float64)

    return Traced(pushes, own)
