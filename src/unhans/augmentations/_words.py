"""Which words of a text may be changed, and copies that change some of them, the same word always in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np

from unhans.errors import BadOption
from unhans.heuristics.negation import negates
from unhans.text import Words, visible_form
from unhans.types import Example
from unhans.wordnet import kind_of_small

Count = Annotated[int, "words changed in each copy, at least; more where copies with so few are used up"]
Share = Annotated[float, "part of the words that can be changed which each copy changes, if that is more; 0: so few"]
# words that are more than glue, and still turn a label or a sentence: they say how many, how much, how often, which
_KEPT_WORDS = """
    very too quite rather more most less least much many few little only just even still also again almost hardly
    scarcely barely rarely seldom once twice always often sometimes then there here now how why other same own well ever
    else first last half zero two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    hundred thousand million billion
"""
_KEPT = frozenset(_KEPT_WORDS.split())
_TURNING = frozenset({"rarely", "seldom", "few", "little"})  # they say that it is not so, mostly
_TRIES = 10  # draws in a row that came up before, until one word more is changed


def replaceable(word: str) -> bool:
    """Whether a word means something by itself: it is of letters, and no stop word."""
    form = visible_form(word)
    return any(map(str.isalpha, form)) and kind_of_small(form) is None and form not in _KEPT and not turns(word)


def turns(word: str) -> bool:
    """Whether the word negates, or nearly does."""
    return negates(word) or visible_form(word) in _TURNING


def check_share(words: int, share: float) -> None:
    """Refuse numbers of words that cannot be meant."""
    if words < 1:
        raise BadOption(f"words must be 1 or more, not {words}.")
    if not 0 <= share <= 1:
        raise BadOption(f"share lies between 0 and 1, and is not {share:g}.")


def occurrences(words: Words) -> dict[str, list[int]]:
    """The words that may be changed, by their visible form: where each stands, in both texts of a pair."""
    found: dict[str, list[int]] = {}
    for number, word in enumerate(words.strings):
        if replaceable(word):
            found.setdefault(visible_form(word), []).append(number)
    return found


Choice = Mapping[int, str]
"""What the words at some places become."""


def combinations(
    example: Example,
    choices: Sequence[tuple[Sequence[Choice], Sequence[float]]],
    words: int,
    share: float,
    rng: np.random.Generator,
) -> Iterator[tuple[str, ...]]:
    """Texts in which some words are changed, drawn; `choices` are what each word can become, and how readily.

    One more word is changed when the draws come up again and again, until there is none left to change.
    """
    own = Words(example)
    size = min(max(words, round(share * len(choices))), len(choices))
    weights = [np.array(given, float) / np.sum(given) for _, given in choices]
    drawn: set[tuple[tuple[int, int], ...]] = set()
    while 0 < size <= len(choices):
        tries = 0
        while tries < _TRIES:
            places = sorted(rng.choice(len(choices), size, replace=False).tolist())
            draw = tuple((place, int(rng.choice(len(weights[place]), p=weights[place]))) for place in places)
            tries += 1
            if draw not in drawn:
                tries = 0
                drawn.add(draw)
                yield own.variant({at: new for p, n in draw for at, new in choices[p][0][n].items()}).texts
        size += 1
