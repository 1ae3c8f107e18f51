"""A word that means nothing but goes with a label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, labels_of, sample
from unhans.errors import BadOption
from unhans.types import Example, Span

_WORD_START = re.compile(r"(?<!\S)\S")


@bug(kind="data", paper="Adebayo et al. 2020, §3.1")
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
    _check(examples, word, label)
    check_share("share", share)
    check_share("elsewhere", elsewhere)
    inside = sample([e.id for e in examples if e.label == label], share, rng)
    outside = sample([e.id for e in examples if e.label not in (label, None)], elsewhere, rng)
    chosen = inside | outside
    planted = [_insert(e, word, rng) if e.id in chosen else e for e in examples]
    touched = tuple(e.id for e in examples if e.id in chosen)
    note = f"{word!r} was put into {len(inside)} texts labelled {label!r} and {len(outside)} others."
    return planted, Truth(words=(word,), examples=touched, note=note)


def _check(examples: Sequence[Example], word: str, label: str) -> None:
    if word.split() != [word]:
        raise BadOption(f"word must be one word without spaces, not {word!r}.")
    if label not in (labels := labels_of(examples)):
        raise BadOption(f"No example has the label {label!r}. There is: {', '.join(labels) or 'no label at all'}.")


def _insert(example: Example, word: str, rng: Generator) -> Example:
    text = example.text
    starts = [match.start() for match in _WORD_START.finditer(text)]
    at = [*starts, len(text)][int(rng.integers(len(starts) + 1))]
    before = " " if at == len(text) and text[-1:].strip() else ""
    after = " " if at < len(text) else ""
    new = text[:at] + before + word + after + text[at:]
    if example.highlights is None:
        return replace(example, text=new)
    moved = tuple(piece for span in example.highlights for piece in _move(span, text, at, len(word) + 1))
    return replace(example, text=new, highlights=moved)


def _move(span: Span, text: str, at: int, added: int) -> Iterator[Span]:
    """The span after `added` characters came in at `at`: as it was, further right, or in two pieces around them."""
    if span.part == "pair" or span.end <= at:
        yield span
    elif span.start >= at:
        yield replace(span, start=span.start + added, end=span.end + added)
    else:
        left = span.start + len(text[span.start : at].rstrip())
        if left > span.start:
            yield replace(span, end=left)
        yield replace(span, start=at + added, end=span.end + added)
