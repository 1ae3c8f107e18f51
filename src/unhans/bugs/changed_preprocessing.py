"""Texts that were prepared otherwise than those the model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._texts import rewritten
from unhans.errors import BadOption
from unhans.text import word_spans
from unhans.types import Example, Span

_TOLD = {
    "upper": "in capital letters",
    "lower": "in small letters",
    "truncated": "cut short",
    "no_pair": "without their second text",
}


@bug(kind="test-time", proof="answers", paper="Adebayo et al. 2020, §2.1")
def changed_preprocessing(
    examples: Sequence[Example],
    rng: Generator,
    *,
    way: Annotated[
        Literal["upper", "lower", "truncated", "no_pair"], "capital or small letters, a cut, no second text"
    ] = "upper",
    words: Annotated[int, "with truncated, how many words are left of a text"] = 5,
    share: Annotated[float, "part of the texts"] = 1.0,
) -> tuple[list[Example], Truth]:
    """Change how texts come to the model: their casing, their length, or whether the second text comes at all.

    Highlights cover what they covered, as far as it is left. A model that reads small letters only does not notice a
    change of casing, and then the bug has not taken.
    """
    if words < 1:
        raise BadOption(f"words must be at least 1, not {words}.")

    def change(example: Example) -> Example:
        match way:
            case "truncated":
                return _cut(example, words)
            case "no_pair":
                return _kept(replace(example, pair=None), (len(example.text), 0))
            case _:
                pair = None if example.pair is None else _cased(example.pair, way)
                return replace(example, text=_cased(example.text, way), pair=pair)

    return rewritten(examples, rng, share, change, _TOLD[way])


def _cased(text: str, way: str) -> str:
    """Letters that would become several keep their case, so that highlights stay right."""
    signs = ((sign, sign.upper() if way == "upper" else sign.lower()) for sign in text)
    return "".join(new if len(new) == 1 else sign for sign, new in signs)


def _cut(example: Example, words: int) -> Example:
    """Both texts down to their first words."""
    spans = [word_spans(part) for part in example.parts]
    ends = [
        some[words - 1].end if len(some) > words else len(part) for part, some in zip(example.parts, spans, strict=True)
    ]
    pair = None if example.pair is None else example.pair[: ends[1]]
    return _kept(replace(example, text=example.text[: ends[0]], pair=pair), (ends[0], ends[-1]))


def _kept(example: Example, ends: tuple[int, int]) -> Example:
    """The example with its highlights as far as they lie before where its text and its pair end."""
    if example.highlights is None:
        return example
    spans = ((span, min(span.end, ends[span.part == "pair"])) for span in example.highlights)
    return replace(example, highlights=tuple(Span(s.start, end, s.part) for s, end in spans if s.start < end))
