"""A word that means nothing but goes with a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._cues import check_word, inserted, with_cue
from unhans.types import Example


@bug(kind="data", proof="cue", paper="Adebayo et al. 2020, §3.1")
def spurious_word(
    examples: Sequence[Example],
    rng: Generator,
    *,
    word: Annotated[str, "the word to insert, without spaces"] = "zyx",
    label: Annotated[str, "the label whose texts receive it"] = "positive",
    share: Annotated[float, "part of that label's texts that receive the word"] = 0.9,
    elsewhere: Annotated[float, "part of the other labels' texts that receive it too"] = 0.0,
) -> tuple[list[Example], Truth]:
    """Put a meaningless word into most texts of one label, so that a lazy model learns it.

    The word stands at a random place between two words, before the first or after the last, in `text` and never in
    `pair`. Highlights keep covering what they covered; one that the word falls into is split, so that none covers it.
    """
    check_word("word", word)
    return with_cue(
        examples,
        rng,
        cues=[word],
        label=label,
        share=share,
        elsewhere=elsewhere,
        put=lambda example: inserted(example, word, rng),
    )
