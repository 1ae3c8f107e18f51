"""Heuristics: patterns of texts that a model may take a shortcut by.

Each asks one thing of an example: does it have the pattern? Nobody says that the pattern is wrong; only that a model
which is right about texts with it for one label, and wrong for another, has learnt the pattern instead of the task.
`has` asks for one pattern, `patterns` for all, and `choose_anchors` draws the texts that a search for neighbours
(`influences`) starts from. A pattern is one function, and outside packages add theirs under `unhans.heuristics`.

Facts of a member: `on="pair"` says that it is about pairs alone (a single text never has it); `asked=("word",)` names
options of which at least one must be given, for without it the pattern says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from unhans.errors import BadData, BadOption
from unhans.registry import Entry, Registry
from unhans.text import visible_form, word_spans
from unhans.types import Example, Prediction

__all__ = ["choose_anchors", "found_at", "has", "heuristic", "patterns", "word_form", "words_of"]

heuristic = Registry(
    "heuristics",
    offers=(
        "example",
        "words",  # of the first text, case-folded, without punctuation
        "pair_words",  # of the second; none in a single text
    ),
    package="unhans.heuristics",
)


def has(example: Example, name: str, **options: Any) -> bool:
    """Whether an example has the pattern of that name."""
    entry = heuristic[name]
    _check_asked(entry, entry.settings(options))
    return _asked(entry, _offered(example), options)


def patterns(example: Example) -> tuple[str, ...]:
    """Names of all patterns that an example has, sorted; those that must be told what to look for are left out."""
    return _patterns(example.text, example.pair, tuple(heuristic.names))


def choose_anchors(
    examples: Sequence[Example],
    predictions: Mapping[str, Prediction],
    *,
    n: int = 5,
    wrong: bool = True,
    heuristic: str | Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> list[Example]:
    """Up to `n` labelled examples drawn at random: those that are predicted wrong, unless told otherwise.

    With a `heuristic` only such as have that pattern; with several, such as have one of them. `options` are those of
    the pattern. Examples without a prediction are passed over.
    """
    if n < 1:
        raise BadOption(f"n must be at least 1, not {n}.")
    names = [heuristic] if isinstance(heuristic, str) else list(heuristic or ())
    known = [e for e in examples if e.label is not None and e.id in predictions]
    usable = [e for e in known if not wrong or predictions[e.id].label != e.label]
    found = [e for e in usable if not names or any(has(e, name, **(options or {})) for name in names)]
    if not found:
        told = f" and have the pattern {' or '.join(names)}" if names else ""
        raise BadData(
            f"Of {len(known):,} labelled examples with a prediction, none can be an anchor: they must "
            f"{'be predicted wrong' if wrong else 'have a label'}{told}. Give more examples, or ask for less."
        )
    order = np.random.default_rng([seed, 5]).permutation(len(found))[:n]
    return [found[int(place)] for place in order]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in the form in which they are compared: case-folded, and without punctuation."""
    return tuple(form for span in word_spans(text) if (form := word_form(text[span.start : span.end])))


def found_at(words: Sequence[str], part: Sequence[str]) -> list[int]:
    """Where a part with at least one word begins in a text; in one pass, however often words repeat themselves.

    Knuth, Morris and Pratt: after a mismatch, what is known of the words read so far tells how much of the part they
    end with, so that none is read twice.
    """
    ends = [0] * len(part)  # with how many of its first words each beginning of the part ends
    for at in range(1, len(part)):
        ends[at] = _longer(part, ends, ends[at - 1], part[at])
    found, matched = [], 0
    for at, word in enumerate(words):
        matched = _longer(part, ends, matched, word)
        if matched == len(part):
            found.append(at + 1 - matched)
            matched = ends[-1]
    return found


def _longer(part: Sequence[str], ends: Sequence[int], matched: int, word: str) -> int:
    """How many of the part's first words the words read end with, now that one more is read."""
    while matched and part[matched] != word:
        matched = ends[matched - 1]
    return matched + (part[matched] == word)


@lru_cache(maxsize=50_000)  # the words of a data set come again and again
def word_form(word: str) -> str:
    """A word in the form in which it is compared; empty if it is no word but a sign."""
    form = visible_form(word)
    return form if any(sign.isalnum() for sign in form) else ""


@lru_cache(maxsize=1_000)  # a page of anchors asks for the same few texts again and again
def _patterns(text: str, pair: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    example = Example("", text, pair)
    offered, known = _offered(example), [heuristic[name] for name in names]
    return tuple(e.name for e in known if not e.facts.get("asked") and _asked(e, offered, {}))


def _offered(example: Example) -> dict[str, Any]:
    pair = () if example.pair is None else words_of(example.pair)
    return {"example": example, "words": words_of(example.text), "pair_words": pair}


def _asked(entry: Entry, offered: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    if entry.facts.get("on") == "pair" and offered["example"].pair is None:
        return False
    return bool(entry(offered, **options))


def _check_asked(entry: Entry, settings: Mapping[str, Any]) -> None:
    asked = entry.facts.get("asked", ())
    if asked and not any(settings[name] for name in asked):
        raise BadOption(f"{entry.name} has to be told what to look for: give {' or '.join(asked)}.")
