"""Synonyms from WordNet: the same said otherwise, so a flip shows a model that minds the wording (Ren et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import Positions, check_counts, of_words
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.model import Classifier
from unhans.types import Edit
from unhans.wordnet import open_wordnet

PerWord = Annotated[int, "new words tried for each word"]
Senses = Annotated[int, "how many of a word's meanings count, the commonest first"]
Folder = Annotated[str, "folder of WordNet; empty: where UNHANS_WORDNET says, or Debian's wordnet-base puts it"]


@counterfactual(needs={"predict"}, paper="10.18653/v1/P19-1103", opens=("wordnet",))
def synonyms(
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
    """Words that can mean the same, in the same form (English).

    They leave the meaning as it was, if the sense fits; so the label should stay, and a flip is a fault of the model.
    """
    check_counts(1, senses=senses)
    known = open_wordnet(wordnet)
    return of_words(
        lambda word: known.synonyms(word, senses), classifier, drafts, constraints, how, per_word, positions
    )
