"""Texts misspelt where it misleads the model most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share
from unhans.bugs._texts import rewritten, swappable, swapped
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.scoring import How
from unhans.text import as_variant
from unhans.types import Example

Place = tuple[Literal["text", "pair"], int, int]  # which text, the number of the word in it, the first of two letters


@bug(kind="test-time", proof="answers", paper="Pruthi et al. 2019, arXiv:1905.11268")
def adversarial_typos(
    examples: Sequence[Example],
    reader: Classifier,
    rng: Generator,
    how: How,
    *,
    words: Annotated[float, "part of the words of a text that are misspelt, at least one"] = 0.3,
    tries: Annotated[int, "swaps that are tried in each word"] = 3,
    share: Annotated[float, "part of the texts"] = 1.0,
) -> tuple[list[Example], Truth]:
    """Swap two neighbouring letters inside the words where it misleads the model most, in both texts of a pair.

    Some swaps are tried in each word, each alone; the worst of a word counts, and the worst words are misspelt, all
    at once. People can still read them: first and last letters stay. It takes one question for each swap.
    """
    check_share("words", words)
    if tries < 1:
        raise BadOption(f"tries must be at least 1, not {tries}.")
    offers = [_places(example, tries, rng) for example in examples]
    asked = [as_variant(example) for example in examples]
    asked += [as_variant(_misspelt(e, [at])) for e, places in zip(examples, offers, strict=True) for at in places]
    answers = reader.log_probs(asked, progress=how.tell, cancelled=how.cancelled)
    said, after = answers[: len(examples)].argmax(1), iter(answers[len(examples) :])
    made = {}
    for example, places, label in zip(examples, offers, said.tolist(), strict=True):
        left = np.array([next(after)[label] for _ in places])
        worst = {places[n][:2]: places[n] for n in np.argsort(-left, kind="stable")}  # the last of a word is its worst
        ranked = [worst[word] for word in dict.fromkeys(places[n][:2] for n in np.argsort(left, kind="stable"))]
        made[example.id] = _misspelt(example, ranked[: max(1, round(words * len(ranked)))])
    return rewritten(examples, rng, share, lambda example: made[example.id], "misspelt where it misleads the model")


def _places(example: Example, tries: int, rng: Generator) -> list[Place]:
    """Swaps to try: at most so many in each word, drawn."""
    found: list[Place] = []
    for part, text in (("text", example.text), ("pair", example.pair or "")):
        for number, able in enumerate(swappable(text)):
            some = rng.choice(able, size=min(tries, len(able)), replace=False)
            found += [(part, number, int(at)) for at in some]  # type: ignore[misc]
    return found


def _misspelt(example: Example, places: Sequence[Place]) -> Example:
    text = swapped(example.text, [at for part, _, at in places if part == "text"])
    pair = None if example.pair is None else swapped(example.pair, [at for part, _, at in places if part == "pair"])
    return replace(example, text=text, pair=pair)
