"""A model some parts of which were never loaded."""

from __future__ import annotations

from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._weights import parts_of, redrawn
from unhans.errors import BadOption
from unhans.model import TransformerClassifier


@bug(kind="model", proof="answers", needs={"train"}, paper="Adebayo et al. 2020, §4")
def reinitialised(
    classifier: TransformerClassifier,
    rng: Generator,
    *,
    depth: Annotated[int, "parts drawn anew, counted from the top: 1 is the head, 2 the head and the last layer"] = 1,
    alone: Annotated[bool, "only the part at that depth, and not those above it"] = False,
) -> tuple[TransformerClassifier, Truth]:
    """Draw the weights of the head anew, and those of the layers below it down to a depth, or of one part alone.

    What happens when a checkpoint is loaded whose names do not fit: a warning that nobody reads, and random weights.
    """
    parts = list(parts_of(classifier.model))
    if not 1 <= depth <= len(parts):
        raise BadOption(f"depth must be from 1 to {len(parts)}, not {depth}. The parts are: {', '.join(parts)}.")
    chosen = parts[depth - 1 : depth] if alone else parts[:depth]
    made = redrawn(classifier, chosen, int(rng.integers(2**31)))
    return made, Truth(note=f"Drawn anew: {', '.join(chosen)}.", parts=tuple(chosen))
