"""Word dropout: the cheapest way to say something a little otherwise (random deletion in EDA, Wei and Zou 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from unhans.augmentations import augmentation
from unhans.augmentations._words import turns
from unhans.errors import BadOption
from unhans.text import Words
from unhans.types import Example


@augmentation(paper="arXiv:1901.11196", single_texts=True)
def word_dropout(
    examples: Sequence[Example],
    rngs: Sequence[np.random.Generator],
    *,
    rate: Annotated[float, "how often each word goes missing"] = 0.1,
) -> Iterator[Iterator[tuple[str, ...]]]:
    """Some words go missing, one at least; negations stay, and so does at least one word."""
    if not 0 < rate < 1:
        raise BadOption(f"rate lies between 0 and 1, and is not {rate:g}.")
    return (_thinned(Words(example), rate, rng) for example, rng in zip(examples, rngs, strict=True))


def _thinned(words: Words, rate: float, rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
    open_to = [n for n, word in enumerate(words.strings) if any(map(str.isalnum, word))]
    loose = [n for n in open_to if not turns(words.strings[n])]
    while loose and len(open_to) > 1:
        gone = {n for n in loose if rng.random() < rate} or {int(rng.choice(loose))}
        if len(gone) == len(open_to):
            gone.discard(int(rng.choice(sorted(gone))))
        yield words.without(sorted(gone)).texts
