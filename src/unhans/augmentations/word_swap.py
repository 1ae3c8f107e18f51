"""Word swap: some words change places (random swap in EDA, Wei and Zou 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unhans.augmentations import augmentation
from unhans.augmentations._words import Count, Share, check_share, turns
from unhans.text import Words
from unhans.types import Example


@augmentation(paper="arXiv:1901.11196", single_texts=True)
def word_swap(
    examples: Sequence[Example],
    rngs: Sequence[np.random.Generator],
    *,
    words: Count = 2,
    share: Share = 0.1,
) -> Iterator[Iterator[tuple[str, ...]]]:
    """Some words change places with each other, two at a time; negations stay where they are."""
    check_share(words, share)
    return (_shuffled(Words(example), words, share, rng) for example, rng in zip(examples, rngs, strict=True))


def _shuffled(words: Words, least: int, share: float, rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
    loose = [n for n, word in enumerate(words.strings) if any(map(str.isalnum, word)) and not turns(word)]
    swaps = max(1, round(max(least, share * len(loose)) / 2))
    while len(loose) > 1:
        strings = list(words.strings)
        for _ in range(swaps):
            one, other = rng.choice(loose, 2, replace=False).tolist()
            strings[one], strings[other] = strings[other], strings[one]
        yield words.variant({n: strings[n] for n in loose if strings[n] != words.strings[n]}).texts
