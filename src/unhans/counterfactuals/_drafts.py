"""What a search for flips moves among: texts with some words changed, and what they are to become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unhans.text import Words, word_spans
from unhans.types import Edit, Example


@dataclass(frozen=True)
class Goal:
    """The label that a text is to get: a certain one, or any other than the one it has."""

    original: int
    target: int | None = None

    def gain(self, log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        """How near each line is to the goal, as log-odds: the order of the goal's loss, and without its saturation.

        For a certain label they are its odds against all others; otherwise those of all others against the original.
        """
        label = self.original if self.target is None else self.target
        others = np.delete(log_probs, label, axis=1)
        odds: NDArray[np.float64] = log_probs[:, label] - np.logaddexp.reduce(others, axis=1)
        return -odds if self.target is None else odds

    def met(self, log_probs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which lines have the label sought. Of equal probabilities the first counts, as in a prediction."""
        found = np.exp(log_probs).argmax(axis=1)
        met: NDArray[np.bool_] = found != self.original if self.target is None else found == self.target
        return met


@dataclass(frozen=True)
class Draft:
    """An example with some words changed. Words are numbered as in the original, whatever was changed."""

    words: Words
    edits: tuple[Edit, ...]
    open: tuple[int, ...]  # words that may be changed
    goal: Goal
    example: Example  # as the model reads it after the edits
    places: Mapping[int, int]  # where an open word now stands among the words of `example`

    def edit(self, position: int, new: str) -> Edit:
        """Word number `position` becomes `new`."""
        return Edit(position, self.words.strings[position], new)

    def only(self, position: int) -> Draft:
        """The same draft with one word open."""
        return Draft(self.words, self.edits, (position,), self.goal, self.example, self.places)


def draft(words: Words, edits: Sequence[Edit], open_to: Iterable[int], goal: Goal, id_: str) -> Draft | None:
    """The example with these edits; None where changed words ran together with others and can no longer be told."""
    text, *pair = words.edited(edits).texts
    example = Example(id_, text, pair[0] if pair else None)
    new = {edit.position: edit.new for edit in edits}
    expected: list[str] = []
    places: dict[int, int] = {}
    for n in words.open:
        string = new.get(n, words.strings[n])
        own = [string[span.start : span.end] for span in word_spans(string)]
        if len(own) == 1:
            places[n] = len(expected)
        expected += own
    if tuple(expected) != Words(example).strings:
        return None
    return Draft(words, tuple(edits), tuple(n for n in open_to if n in places), goal, example, places)


def combined(before: Sequence[Edit], more: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits after others; of two edits of one word the later counts. In the order of the text: equal sets are equal."""
    by_position = {edit.position: edit for edit in (*before, *more)}
    return tuple(by_position[n] for n in sorted(by_position))
