"""Texts typed in a hurry, or past a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share
from unhans.bugs._texts import rewritten, swappable, swapped
from unhans.types import Example


@bug(kind="test-time", proof="answers", paper="arXiv:1711.02173")
def typos(
    examples: Sequence[Example],
    rng: Generator,
    *,
    words: Annotated[float, "part of the words of a text that are misspelt, at least one"] = 0.3,
    share: Annotated[float, "part of the texts"] = 1.0,
) -> tuple[list[Example], Truth]:
    """Swap two neighbouring letters inside some words, in both texts of a pair.

    First and last letters stay, and words whose inner letters are all the same, so that people can still read them.
    No word becomes longer or shorter, so highlights stay where they are.
    """
    check_share("words", words)

    def change(example: Example) -> Example:
        pair = None if example.pair is None else _misspelt(example.pair, words, rng)
        return replace(example, text=_misspelt(example.text, words, rng), pair=pair)

    return rewritten(examples, rng, share, change, "misspelt")


def _misspelt(text: str, share: float, rng: Generator) -> str:
    able = swappable(text)
    chosen = rng.choice(len(able), size=max(1, round(share * len(able))), replace=False) if able else ()
    return swapped(text, [able[number][int(rng.integers(len(able[number])))] for number in chosen])
