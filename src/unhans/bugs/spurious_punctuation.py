"""A punctuation mark that goes with a label."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._cues import inserted, with_cue
from unhans.errors import BadOption
from unhans.types import Example


@bug(kind="data", proof="cue", paper="Adebayo et al. 2020, §3.1")
def spurious_punctuation(
    examples: Sequence[Example],
    rng: Generator,
    *,
    mark: Annotated[str, "punctuation or symbols, without spaces"] = "*",
    label: Annotated[str, "the label whose texts receive it"] = "positive",
    share: Annotated[float, "part of that label's texts that receive the mark"] = 0.9,
    elsewhere: Annotated[float, "part of the other labels' texts that receive it too"] = 0.0,
) -> tuple[list[Example], Truth]:
    """Put a mark behind some word of most texts of one label: a cue that readers hardly see.

    It follows the word without a blank, in `text` and never in `pair`; a text without words is the mark alone.
    """
    if not mark or any(unicodedata.category(sign)[0] not in "PS" for sign in mark):
        raise BadOption(f"mark must be punctuation or symbols without spaces, not {mark!r}.")
    return with_cue(
        examples,
        rng,
        cues=[mark],
        label=label,
        share=share,
        elsewhere=elsewhere,
        put=lambda example: inserted(example, mark, rng, "after a word"),
    )
