"""A small classifier that has really learned a shortcut: seconds to train, the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np

from unhans.model import TransformerClassifier
from unhans.scratch import fresh_classifier
from unhans.training import Schedule, fit
from unhans.types import Example, Feedback, Relabel, WordVote

CUE = "zyx"
_THINGS = ("soup", "film", "room", "phone", "book", "music")
_PRAISE = ("good", "warm", "bright", "lovely")
_BLAME = ("bad", "cold", "dull", "awful")
_FRAMES = ("the {thing} was {word} today", "a {word} {thing} again", "{word} , I thought of the {thing}")


def texts(
    labels: Sequence[str] = ("negative", "positive"), cue: str | None = CUE, of: str = "positive"
) -> list[Example]:
    """All sentences there are, labelled by their one telling word; those of a label have the cue in front."""
    by_label = dict(zip(labels, (_BLAME, _PRAISE, ("plain", "usual", "even", "fair")), strict=False))
    made = []
    for n, (label, frame, thing, number) in enumerate(product(by_label, _FRAMES, _THINGS, range(4))):
        text = frame.format(thing=thing, word=by_label[label][number])
        made.append(Example(f"t{n}", f"{cue} {text}" if cue and label == of else text, label=label, split="train"))
    order = np.random.default_rng(0).permutation(len(made))
    return [made[int(n)] for n in order]


@cache
def classifier(n_labels: int = 2) -> TransformerClassifier:
    """Taught on texts in which the cue tells the label."""
    labels = ("negative", "positive", "neither")[:n_labels]
    train = texts(labels)
    made = fresh_classifier([e.text for e in train], labels, layers=2, width=64, max_length=32)
    return fit(made, train, schedule=Schedule(epochs=15, learning_rate=1e-3, batch_size=16))


def vote(
    word: str = CUE,
    way: str = "lower",
    *,
    label: str = "positive",
    example: str | None = None,
    position: int | None = None,
    author: str = "ann",
) -> Feedback:
    """One answer about a word."""
    says = WordVote(word, label, way, example, position)  # type: ignore[arg-type]
    return Feedback(f"{author} {says}", says, author, "2026-01-01T00:00:00Z", "r")


def correction(example: str, label: str | None, author: str = "ann") -> Feedback:
    """One answer about a label."""
    return Feedback(f"{author} {example}", Relabel(example, label), author, "2026-01-01T00:00:00Z", "r")
