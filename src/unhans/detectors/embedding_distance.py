"""Nearest neighbours (Sun et al. 2022): how far it is to texts that the model was taught on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from unhans.detectors import Floats, detector, some_of
from unhans.embeddings import directions, states_of
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.scoring import How
from unhans.types import Example

_CELLS = 2_000_000  # of the table of distances that is held at a time


@detector(needs={"gradients"}, paper="Sun et al. 2022, arXiv:2204.06507")
def embedding_distance(
    classifier: Classifier,
    train: Sequence[Example],
    texts: Sequence[Example],
    rng: np.random.Generator,
    how: How,
    *,
    k: Annotated[int, "which of the nearest training texts is measured to; of fewer texts, the last"] = 10,
    examples: Annotated[int, "how many training texts to look at; of more, so many are drawn"] = 5000,
) -> Floats:
    """Distance to the k-th nearest training text in the model's own space, between 0 and 2.

    Embeddings are seen from the middle of the training texts and have length 1. A text that was trained on has itself
    as its first neighbour, so texts that pass for usual must be held out.
    """
    if k < 1:
        raise BadOption(f"k must be at least 1, not {k}.")
    once = list({example.text_hash: example for example in train}.values())
    known = states_of(classifier, some_of(once, examples, rng), how.part(0, 2).tell)
    asked = states_of(classifier, texts, how.part(1, 2).tell)
    middle = known.mean(axis=0)
    return _distances(directions(asked, middle), directions(known, middle), min(k, len(known)), how)


def _distances(points: Floats, known: Floats, k: int, how: How) -> Floats:
    """From each point to the k-th nearest of those known."""
    at_once, found = max(1, _CELLS // len(known)), []
    sizes = (known**2).sum(axis=1)
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once]
        squares = (some**2).sum(axis=1)[:, None] - 2 * some @ known.T + sizes
        found.append(np.partition(squares, k - 1, axis=1)[:, k - 1])
        how.tell(1, 1)  # seconds at most: only a place to stop
    distances: Floats = np.sqrt(np.maximum(np.concatenate(found), 0.0))
    return distances
