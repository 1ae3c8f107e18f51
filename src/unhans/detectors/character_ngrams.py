"""Character n-grams: how often training texts go on as this one does. The only detector that no model is asked for.

Interpolated as Witten and Bell (1991) do: after a history that was seen c times with t different characters behind it,
an unseen one is expected in t of c + t cases, and the shorter history says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from unhans.detectors import Floats, detector, some_of
from unhans.errors import BadOption
from unhans.scoring import How
from unhans.types import Example

Ints = NDArray[np.int64]
_BEFORE, _END = 0x110000, 0x110001  # no characters: what stands before a text, and what ends it
_AT_ONCE = 500_000  # characters that are asked about, if all texts are as long as is read


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
    size = max(1, _AT_ONCE // characters)  # texts asked about at once: what is held does not grow with their number
    starts = range(0, len(texts), size)
    taught = _taught(some_of(train, examples, rng), order, characters, how.part(0, 2))
    found = np.zeros(len(texts))
    for done, start in enumerate(starts):
        how.part(1, 2).tell(done, len(starts))
        found[start : start + size] = _surprise(taught, texts[start : start + size], order, characters)
    how.tell(1, 1)
    return found


@dataclass(frozen=True)
class _Counts:
    """How training texts go on after histories of one length; runs are histories with what is behind them."""

    codes: Ints  # of each run, in order: the number of its history among shorter runs, and its last character
    seen: Ints  # how often each run is there
    times: Ints  # how often something is behind each history
    different: Ints  # and how many different things


@dataclass(frozen=True)
class _Taught:
    """What is known of the training texts."""

    alphabet: Ints  # characters that are there, and the two signs that are none
    expected: int  # how many of them can be behind something
    counts: tuple[_Counts, ...]  # for longer and longer histories


def _taught(train: Sequence[Example], order: int, most: int, how: How) -> _Taught:
    whole, _, read = _laid_out(train, order, most)
    alphabet, signs = np.unique(whole, return_inverse=True)
    counts: list[_Counts] = []
    histories, size = np.zeros(len(whole), np.int64), 1
    for n in range(order):
        how.tell(n, order)
        # a number for each run of n + 1 characters, made of that of the n before and the last
        codes, runs = np.unique(histories * len(alphabet) + signs, return_inverse=True)
        seen = np.bincount(runs[read], minlength=len(codes))
        different = np.bincount(codes[seen > 0] // len(alphabet), minlength=size)
        counts.append(_Counts(codes, seen, np.bincount(histories[read], minlength=size), different))
        histories, size = np.concatenate([[0], runs[:-1]]), len(codes)
    return _Taught(alphabet, len(np.unique(whole[read])), tuple(counts))


def _surprise(taught: _Taught, texts: Sequence[Example], order: int, most: int) -> Floats:
    """Of each text, the mean over its characters."""
    whole, of, read = _laid_out(texts, order, most)
    signs = _places(taught.alphabet, whole)
    likely, histories = np.full(len(whole), 1 / (taught.expected + 1)), np.zeros(len(whole), np.int64)
    for counts in taught.counts:
        known = (histories >= 0) & (signs >= 0)
        runs = _places(counts.codes, np.where(known, histories * len(taught.alphabet) + signs, -1))
        likely = _sharpened(likely, histories, runs, counts)
        histories = np.concatenate([[0], runs[:-1]])
    found: Floats = np.bincount(of[read], -np.log(likely[read])) / np.bincount(of[read])
    return found


def _places(known: Ints, asked: Ints) -> Ints:
    """Where each number stands among those known, which are in order; -1: nowhere."""
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    found: Ints = np.where(known[at] == asked, at, -1)
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


def _sharpened(likely: Floats, histories: Ints, runs: Ints, counts: _Counts) -> Floats:
    """How likely each character is after a longer history, given how likely it is after a shorter one."""
    different = np.where(histories >= 0, counts.different[histories], 0)
    total = np.where(histories >= 0, counts.times[histories], 0) + different
    seen = np.where(runs >= 0, counts.seen[runs], 0)
    sharper: Floats = np.where(total > 0, (seen + different * likely) / np.maximum(total, 1), likely)
    return sharper
