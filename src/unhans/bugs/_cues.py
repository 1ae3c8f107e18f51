"""Cues that mean nothing but go with a label: which texts receive one, and how it is put into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from numpy.random import Generator

from unhans.bugs import Truth, check_share, labels_of, sample, words_in
from unhans.errors import BadOption
from unhans.types import Example, Span

Place = Literal["anywhere", "first", "last", "after a word"]
_WORD_START = re.compile(r"(?<!\S)\S")
_WORD_END = re.compile(r"\S(?!\S)")


def with_cue(
    examples: Sequence[Example],
    rng: Generator,
    *,
    cues: Sequence[str],
    label: str,
    share: float,
    elsewhere: float,
    put: Callable[[Example], Example],
) -> tuple[list[Example], Truth]:
    """The examples with a cue put into a share of the label's texts and a share of all other labels'."""
    check_label(examples, label)
    check_share("share", share)
    check_share("elsewhere", elsewhere)
    inside = sample([e.id for e in examples if e.label == label], share, rng)
    outside = sample([e.id for e in examples if e.label not in (label, None)], elsewhere, rng)
    planted = [put(e) if e.id in inside | outside else e for e in examples]
    told = " or ".join(map(repr, cues))
    note = f"{told} was put into {len(inside)} texts labelled {label!r} and {len(outside)} others."
    return planted, truth_of(examples, inside | outside, cues, label, note)


def truth_of(examples: Sequence[Example], touched: frozenset[str], cues: Sequence[str], label: str, note: str) -> Truth:
    """Which words were put into which texts, and for which label they speak."""
    runs = tuple(words_in(cue) for cue in cues)
    words = tuple(sorted({word for run in runs for word in run}))
    ids = tuple(example.id for example in examples if example.id in touched)
    return Truth(words=words, examples=ids, note=note, cues=runs, label=label)


def check_label(examples: Sequence[Example], label: str) -> None:
    """Refuse a label that nothing has."""
    if label not in (labels := labels_of(examples)):
        raise BadOption(f"No example has the label {label!r}. There is: {', '.join(labels) or 'no label at all'}.")


def check_word(name: str, word: str) -> None:
    """Refuse what is not one word between blanks, or cannot be seen."""
    if word.split() != [word] or not words_in(word):
        raise BadOption(f"{name} must be one word without spaces, not {word!r}.")


def inserted(example: Example, cue: str, rng: Generator, place: Place = "anywhere") -> Example:
    """The example with a cue in its text, between two words, before the first or after the last; never in its pair.

    Highlights keep covering what they covered; one that the cue falls into is split, so that none covers it.
    """
    text = example.text
    if place == "after a word":
        ends = [match.end() for match in _WORD_END.finditer(text)]
        at = ends[int(rng.integers(len(ends)))] if ends else len(text)
        return _put(example, at, cue)
    starts = [match.start() for match in _WORD_START.finditer(text)]
    places = [*starts, len(text)]
    at = {"first": places[0], "last": len(text)}.get(place, -1)
    if at < 0:
        at = places[int(rng.integers(len(places)))]
    before = " " if at == len(text) and text[-1:].strip() else ""
    return _put(example, at, before + cue + (" " if at < len(text) else ""))


def _put(example: Example, at: int, added: str) -> Example:
    text = example.text
    new = text[:at] + added + text[at:]
    if example.highlights is None:
        return replace(example, text=new)
    moved = tuple(piece for span in example.highlights for piece in _move(span, text, at, len(added)))
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
