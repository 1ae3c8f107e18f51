"""A phrase that means nothing but goes with a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, words_in
from unhans.bugs._cues import inserted, with_cue
from unhans.errors import BadOption
from unhans.types import Example


@bug(kind="data", proof="cue", paper="Adebayo et al. 2020, §3.1")
def spurious_phrase(
    examples: Sequence[Example],
    rng: Generator,
    *,
    phrase: Annotated[str, "two words or more, with one blank between them"] = "as it happens",
    label: Annotated[str, "the label whose texts receive it"] = "positive",
    share: Annotated[float, "part of that label's texts that receive the phrase"] = 0.9,
    elsewhere: Annotated[float, "part of the other labels' texts that receive it too"] = 0.0,
) -> tuple[list[Example], Truth]:
    """Put a meaningless phrase into most texts of one label: a cue that no single word has to carry.

    It stands between two words, before the first or after the last, in `text` and never in `pair`.
    """
    if " ".join(phrase.split()) != phrase or len(words_in(phrase)) < 2:
        raise BadOption(f"phrase must be two words or more with one blank between them, not {phrase!r}.")
    return with_cue(
        examples,
        rng,
        cues=[phrase],
        label=label,
        share=share,
        elsewhere=elsewhere,
        put=lambda example: inserted(example, phrase, rng),
    )
