"""Antonyms from WordNet: the opposite, so the label should change with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import Positions, check_counts, of_words
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.counterfactuals.synonyms import Folder, PerWord, Senses
from unhans.model import Classifier
from unhans.types import Edit
from unhans.wordnet import open_wordnet


@counterfactual(needs={"predict"}, paper="10.1145/219717.219748", opens=("wordnet",))
def antonyms(
    classifier: Classifier,
    drafts: Sequence[Draft],
    constraints: Constraints,
    how: dict[str, Any],
    *,
    per_word: PerWord = 10,
    positions: Positions = 10,
    senses: Senses = 3,
    wordnet: Folder = "",
) -> list[list[tuple[Edit, ...]]]:
    """Words that can mean the opposite, in the same form (English): direct ones first, then words like them."""
    check_counts(1, senses=senses)
    known = open_wordnet(wordnet)
    return of_words(
        lambda word: known.antonyms(word, senses), classifier, drafts, constraints, how, per_word, positions
    )
