"""Synonyms from WordNet, as in EDA (Wei and Zou 2019), which HILDIF augments with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np

from unhans.augmentations import augmentation
from unhans.augmentations._words import Choice, Count, Share, check_share, combinations, occurrences
from unhans.errors import BadOption, Unsupported
from unhans.text import Words, visible_form
from unhans.types import Example
from unhans.wordnet import WordNet, open_wordnet


def _missing() -> str:
    try:
        open_wordnet()
    except Unsupported as error:
        return str(error)
    return ""


@augmentation(paper="arXiv:1901.11196", opens=("wordnet",), installed=_missing)
def synonyms(
    examples: Sequence[Example],
    rngs: Sequence[np.random.Generator],
    cancelled: Callable[[], bool] | None,
    *,
    words: Count = 1,
    share: Share = 0.1,
    senses: Annotated[int, "how many of a word's meanings count, the commonest first"] = 3,
    wordnet: Annotated[
        str, "folder of WordNet; empty: where UNHANS_WORDNET says, or Debian's wordnet-base puts it"
    ] = "",
) -> Iterator[Iterator[tuple[str, ...]]]:
    """Some words give way to words that share a meaning with them, in the same form (English).

    A word that comes up more than once, in one text of a pair or in both, becomes the same new word each time, in
    whatever form it has there. Stop words stay, and no word comes in that the text has already. Meanings are looked up
    word by word, so a word may be taken in a sense that it does not have here; the commonest is drawn most often.
    """
    check_share(words, share)
    if senses < 1:
        raise BadOption(f"senses must be 1 or more, not {senses}.")
    known = open_wordnet(wordnet)
    return (
        combinations(example, _choices(example, known, senses), words, share, rng)
        for example, rng in zip(examples, rngs, strict=True)
    )


def _choices(example: Example, known: WordNet, senses: int) -> list[tuple[list[Choice], list[float]]]:
    """For each word (its forms together) what it can become, those of the commonest senses drawn more often."""
    words = Words(example)
    there = {visible_form(word) for word in words.strings}
    by_base: dict[str, dict[str, list[int]]] = {}
    for form, places in occurrences(words).items():
        by_base.setdefault(known.base(form), {})[form] = places
    found: list[tuple[list[Choice], list[float]]] = []
    for forms in by_base.values():
        places = [n for own in forms.values() for n in own]
        options = {n: known.same_meaning(words.strings[n], senses) for n in places}
        shared = [base for base in options[places[0]] if all(base in own for own in options.values())]
        all_of_them: list[Choice] = [{n: options[n][base] for n in places} for base in shared]
        choices = [one for one in all_of_them if there.isdisjoint(map(visible_form, one.values()))]
        if choices:
            found.append((choices, [1 / (1 + rank) for rank in range(len(choices))]))
    return found
