"""What an example did for itself: what the model could not learn from others it had to learn by heart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unhans.doubts import How, Sign, doubt
from unhans.influences import How as Telling
from unhans.influences import prepare
from unhans.model import TransformerClassifier
from unhans.types import Example


@doubt(
    needs={"gradients"}, weight=0.1, paper="Koh & Liang 2017, arXiv:1703.04730; Pruthi et al. 2020, arXiv:2002.08484"
)
def self_influence(
    classifier: TransformerClassifier, train: Sequence[Example], folder: Path | None, seed: int, how: How
) -> Sign:
    """How much higher the loss of the given label would be had the model not been taught this very example.

    By the default method of `unhans.influences`. Copies with the same label count as one, and share what they did.
    """
    index = prepare(classifier, train, folder=folder, seed=seed, progress=how.part(0, 2).tell)
    return Sign(index.self_influence(Telling(how.part(1, 2).tell)))
