"""The nearest training examples, as the model itself sees texts: the baseline that influence methods must beat.

A text's embedding is what the model's head reads. Likeness is the cosine, moved to between 0 and 1; a neighbour with
the anchor's label is said to have helped, one with another label to have harmed. Nothing here knows what the model
learnt from whom.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unhans.influences import How, Pushes, Shelf, Traced, influence
from unhans.influences._head import Floats, Seen, head_of, see, see_now
from unhans.model import TransformerClassifier
from unhans.types import Example


@influence(needs={"gradients"}, keeps=True, paper="arXiv:2010.09030")
def embedding_neighbours(classifier: TransformerClassifier, train: Sequence[Example], shelf: Shelf, how: How) -> Traced:
    """Likeness of the texts as the model's head reads them, positive under the same label: the baseline."""
    head = head_of(classifier)
    seen = see(classifier, head, train, shelf, how)
    known, labels = _directions(seen, head.in_features), seen.truth.argmax(1)

    def pushes(anchors: Sequence[Example], _: How) -> Pushes:
        asked = see_now(classifier, head, anchors)
        likeness = (1 + np.clip(_directions(asked, head.in_features) @ known.T, -1, 1)) / 2
        same = asked.truth.argmax(1)[:, None] == labels[None]
        return Pushes(np.where(same, likeness, -likeness))

    return Traced(pushes)


def _directions(seen: Seen, width: int) -> Floats:
    """Embeddings at length 1, without the input that is always 1."""
    own = seen.features[:, :width]
    found: Floats = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return found
