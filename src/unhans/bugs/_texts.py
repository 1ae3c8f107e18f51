"""Texts that are not as they were when the model was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from numpy.random import Generator

from unhans.bugs import Truth, check_share, sample
from unhans.errors import BadData
from unhans.text import word_spans
from unhans.types import Example


def swappable(text: str) -> list[list[int]]:
    """For each word with two different inner letters side by side: where such two begin."""
    swaps = [
        [at for at in range(span.start + 1, span.end - 2) if text[at : at + 2].isalpha() and text[at] != text[at + 1]]
        for span in word_spans(text)
    ]
    return [places for places in swaps if places]


def swapped(text: str, places: Iterable[int]) -> str:
    """The text with the letters swapped that begin there."""
    letters = list(text)
    for at in places:
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def rewritten(
    examples: Sequence[Example], rng: Generator, share: float, change: Callable[[Example], Example], told: str
) -> tuple[list[Example], Truth]:
    """A share of the examples that a change makes different, changed; the others as they were."""
    check_share("share", share)
    made = {example.id: change(example) for example in examples}
    able = [example.id for example in examples if made[example.id] != example]
    if not able:
        raise BadData(f"None of the {len(examples)} examples can be changed so that it is {told}.")
    chosen = sample(able, share, rng)
    planted = [made[e.id] if e.id in chosen else e for e in examples]
    ids = tuple(e.id for e in examples if e.id in chosen)
    return planted, Truth(examples=ids, note=f"{len(ids)} texts are {told}.")
