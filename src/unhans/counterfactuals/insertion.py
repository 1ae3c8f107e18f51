"""Insertion: a word more, such as a "not" or a "very", or what a language model would add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import Positions, check_counts, in_turn, telling
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.counterfactuals._prompts import Prompt, fill_each
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.text import Variant, Words
from unhans.types import Edit
from unhans.wordnet import in_the_case_of

Side = Literal["before", "after", "both"]
_PLACEHOLDER = "x"


@counterfactual(needs={"predict"}, paper="arXiv:2004.01970", language_model_optional=True)
def insertion(
    classifier: Classifier,
    drafts: Sequence[Draft],
    constraints: Constraints,
    language_model: LanguageModel | None,
    how: dict[str, Any],
    *,
    words: Annotated[str, "words to put in, separated by blanks"] = "not never hardly very really",
    side: Annotated[Side, "where the new word stands: before or after the word that is there"] = "before",
    per_word: Annotated[int, "with a language model: words of its own tried at each place"] = 5,
    positions: Positions = 10,
) -> list[list[tuple[Edit, ...]]]:
    """Negations and intensifiers put before a word, and with a language model what it would write there.

    The edit is of the word that is there: "good" becomes "not good".
    """
    check_counts(per_word=per_word, positions=positions)
    sides = ("before", "after") if side == "both" else (side,)
    places = telling(classifier, [(on, on.open) for on in drafts], positions, how)
    asked = [
        {p: dict(_gaps(on, p, sides, language_model)) for p in own} for on, own in zip(drafts, places, strict=True)
    ]
    found: dict[Variant, list[str]] = {}
    if language_model is not None and per_word > 0:
        variants = (variant for some in asked for own in some.values() for variant in own.values())
        found = fill_each(language_model, variants, per_word, how.get("cancelled"))
    given = {one: words.split() for one in sides}
    results = []
    for on, some in zip(drafts, asked, strict=True):
        candidates = {}
        for position, gaps in some.items():
            old = on.words.strings[position]
            own = {one: found.get(variant, []) for one, variant in gaps.items()}
            candidates[position] = [
                _joined(old, in_the_case_of(old, word), one)
                for one, word in chain(_pairs(given), _pairs(own))
                if word.lower() != old.lower()
            ]
        results.append(in_turn(on, constraints, candidates))
    return results


def _gaps(on: Draft, position: int, sides: Sequence[str], model: LanguageModel | None) -> Iterator[tuple[str, Variant]]:
    """The text with a hidden word more, before or after a word; not where the two would run together."""
    words, place = Words(on.example), on.places[position]
    for side in sides if model is not None else ():
        text, *pair = words.variant({place: _joined(words.strings[place], _PLACEHOLDER, side)}).texts
        longer = Words((text, pair[0]) if pair else text)
        at = place + (side == "after")
        if len(longer) == len(words) + 1 and longer.strings[at] == _PLACEHOLDER:
            assert model is not None  # or there would be no sides
            yield side, Prompt().hide(model, longer, [at])[at]


def _pairs(by_side: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((side, word) for side, words in by_side.items() for word in words)


def _joined(old: str, new: str, side: str) -> str:
    return f"{new} {old}" if side == "before" else f"{old} {new}"
