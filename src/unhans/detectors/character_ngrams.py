"""Character n-grams: how often training texts go on as this one does. The only detector that no model is asked for.

Interpolated as Witten and Bell (1991) do: after a history that was seen c times with t different characters behind it,
an unseen one is expected in t of c + t cases, and the shorter history says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from unhans.detectors import Floats, detector, some_of
from unhans.errors import BadOption
from unhans.scoring import How
from unhans.types import Example

Ints = NDArray[np.int64]
_BEFORE, _END = 0x110000, 0x110001  # no characters: what stands before a text, and what ends it


@detector(needs={"predict"}, paper="Arora et al. 2021, arXiv:2109.06827; Witten and Bell 1991")
def character_ngrams(
    train: Sequence[Example],
    texts: Sequence[Example],
    rng: np.random.Generator,
    how: How,
    *,
    order: Annotated[int, "characters looked at together, the last of them being the one that is expected"] = 5,
    characters: Annotated[int, "read of each text at most"] = 2000,
    examples: Annotated[int, "how many training texts to look at; of more, so many are drawn"] = 5000,
) -> Floats:
    """Mean surprise at each character after those before it, by how often training texts go on so.

    The classifier is not asked, so that held-out texts and those it was trained on are alike to it. In nats a
    character; the end of a text counts as one.
    """
    if order < 1 or characters < 1:
        raise BadOption(f"order and characters must be at least 1, not {order} and {characters}.")
    some = some_of(train, examples, rng)
    whole, of, read = _laid_out([*some, *texts], order, characters)
    known = of < len(some)
    signs = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    likely = np.full(int(read.sum()), 1 / (len(np.unique(whole[read & known])) + 1))
    taught, histories = known[read], np.zeros(len(whole), np.int64)
    for n in range(order):
        how.tell(n, order)
        # a number for each run of n + 1 characters, made of that of the n before and the last
        runs = np.unique(histories * (signs.max() + 1) + signs, return_inverse=True)[1].astype(np.int64)
        likely = _sharpened(likely, histories[read], runs[read], taught)
        histories = np.concatenate([[0], runs[:-1]])
    how.tell(order, order)
    numbers, surprise = of[read][~taught] - len(some), -np.log(likely[~taught])
    found: Floats = np.bincount(numbers, surprise) / np.bincount(numbers)
    return found


def _laid_out(examples: Sequence[Example], order: int, most: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """All characters one after the other, the number of the text that each is of, and whether it is one to expect."""
    parts = [(n, part[:most]) for n, example in enumerate(examples) for part in example.parts]
    sizes = np.array([order + len(part) for _, part in parts])  # with what stands before it and what ends it
    whole = np.full(int(sizes.sum()), _BEFORE, np.int64)
    read = np.zeros(len(whole), bool)
    for (_, part), end in zip(parts, sizes.cumsum().tolist(), strict=True):
        whole[end - 1 - len(part) : end - 1] = np.fromiter(map(ord, part), np.int64, len(part))
        whole[end - 1] = _END
        read[end - 1 - len(part) : end] = True
    return whole, np.repeat([n for n, _ in parts], sizes), read


def _sharpened(likely: Floats, histories: Ints, runs: Ints, taught: NDArray[np.bool_]) -> Floats:
    """How likely each character is after a longer history, given how likely it is after a shorter one."""
    times = np.bincount(histories[taught], minlength=int(histories.max()) + 1)
    seen = np.bincount(runs[taught], minlength=int(runs.max()) + 1)
    first = np.unique(runs[taught], return_index=True)[1]
    different = np.bincount(histories[taught][first], minlength=len(times))
    total = (times + different)[histories]
    sharper: Floats = np.where(total > 0, (seen[runs] + different[histories] * likely) / np.maximum(total, 1), likely)
    return sharper
