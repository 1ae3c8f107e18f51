"""Texts in a language that the model was not taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.augmentations.back_translation import pivots_of, translated
from unhans.bugs import Truth, bug
from unhans.bugs._texts import rewritten
from unhans.errors import BadOption, Unsupported
from unhans.scoring import How
from unhans.types import Example


def _missing(language: str = "eng") -> str:
    """What to install before texts of this language can be translated; nothing if it is there."""
    try:
        pivots_of(language)
    except Unsupported:
        return (
            "other_language needs Apertium with the two languages (on Debian and Ubuntu: apt-get install apertium "
            "apertium-eng-spa). Leave the bug out, or install it."
        )
    return ""


@bug(kind="test-time", proof="answers", aligned=False, installed=_missing, paper="Adebayo et al. 2020, §5")
def other_language(
    examples: Sequence[Example],
    rng: Generator,
    how: How,
    *,
    language: Annotated[str, "Apertium's code of the language of the texts"] = "eng",
    into: Annotated[str, "Apertium's code of the other language"] = "spa",
    share: Annotated[float, "part of the texts"] = 1.0,
) -> tuple[list[Example], Truth]:
    """Translate the texts with Apertium, both texts of a pair; highlights are lost, for words do not stay in place."""
    if missing := _missing(language):
        raise Unsupported(missing)
    if into not in (known := pivots_of(language)):
        raise BadOption(f"Apertium cannot go from {language} to {into}. There is: {', '.join(known)}.")
    parts = [part for example in examples for part in example.parts]
    told = dict(zip(parts, translated(parts, f"{language}-{into}", how.cancelled), strict=True))

    def change(example: Example) -> Example:
        pair = None if example.pair is None else told[example.pair]
        text = told[example.text]
        if (text, pair) == (example.text, example.pair):
            return example
        return replace(example, text=text, pair=pair, highlights=None)

    return rewritten(examples, rng, share, change, f"in another language ({into})")
