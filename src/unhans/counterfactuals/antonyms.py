"""Antonyms from WordNet: the opposite, so the label should change with it."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import in_turn
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.counterfactuals.synonyms import Folder, PerWord, Senses
from unhans.types import Edit
from unhans.wordnet import open_wordnet


@counterfactual(needs={"predict"}, paper="10.1145/219717.219748")
def antonyms(
    drafts: Sequence[Draft],
    constraints: Constraints,
    *,
    per_word: PerWord = 10,
    senses: Senses = 3,
    wordnet: Folder = "",
) -> list[list[tuple[Edit, ...]]]:
    """Words that can mean the opposite, in the same form (English): direct ones first, then words like them."""
    known = open_wordnet(wordnet)
    return [
        in_turn(on, constraints, {p: known.antonyms(on.words.strings[p], senses) for p in on.open}, per_word)
        for on in drafts
    ]
