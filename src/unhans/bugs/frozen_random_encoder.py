"""A model that was trained on top of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._weights import parts_of, redrawn
from unhans.model import TransformerClassifier
from unhans.scoring import How
from unhans.training import Schedule, Watch, fit
from unhans.types import Example


@bug(kind="model", proof="answers", needs={"train"}, paper="Adebayo et al. 2020, §4")
def frozen_random_encoder(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    rng: Generator,
    how: How,
    *,
    epochs: Annotated[int, "passes over the training examples"] = 3,
    learning_rate: Annotated[float, "at its peak"] = 1e-3,
) -> tuple[TransformerClassifier, Truth]:
    """Draw everything below the head anew, keep it as it is, and train the head alone on top of it.

    What happens when the pretrained weights were not loaded and the encoder is frozen: the loss still falls.
    """
    parts = parts_of(classifier.model)
    start = redrawn(classifier, list(parts), int(rng.integers(2**31)))
    head = {name for name, _ in parts["head"]}
    for name, weight in start.model.named_parameters():
        weight.requires_grad_(name in head)
    schedule = Schedule(epochs=epochs, learning_rate=learning_rate, seed=int(rng.integers(2**31)))
    made = fit(start, train, schedule=schedule, watch=Watch(how.progress, how.cancelled))
    return made, Truth(note="The head was trained on top of a random encoder.", parts=tuple(parts))
