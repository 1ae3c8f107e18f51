"""Texts that are the same but for what does not count, and texts that are nearly the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import ceil

import numpy as np
from numpy.typing import NDArray

from unhans.text import visible_form
from unhans.types import Example

Runs = NDArray[np.uint32]
ALIKE = 0.95  # share of three-letter runs in common from which on two texts are the same
_WORD = re.compile(r"[^\W_]+")
_FACTORS = np.array([2654435761, 2246822519, 3266489917], np.uint64)  # large primes that spread signs over 32 bits


class Seen:
    """Texts met so far, and whether another one is too much like one of them.

    Alike are texts whose words are the same, capitals and punctuation aside, and texts of which a share of the
    three-letter runs is the same (Jaccard's index). Two sets that are so much alike have one of their few first members
    in common, in whatever order (Bayardo et al. 2007); so only texts under the same few runs are compared. Runs are
    kept as numbers of 32 bits: a few kilobytes for a long text, and tens of thousands of texts may be held out.
    """

    def __init__(self, alike: float = ALIKE, examples: Iterable[Example] = ()) -> None:
        self.alike = alike
        self._plain: set[bytes] = set()
        self._under: dict[int, list[Runs]] = defaultdict(list)
        for example in examples:
            self.add(example.parts)

    def add(self, parts: Sequence[str]) -> None:
        """Remember a text, or a text and its pair."""
        plain, runs = _form(tuple(parts))
        if plain not in self._plain:
            self._plain.add(plain)
            for run in self._first(runs):
                self._under[run].append(runs)

    def has(self, parts: Sequence[str]) -> bool:
        """Whether this text, or one much like it, was met."""
        plain, runs = _form(tuple(parts))
        if plain in self._plain:
            return True
        return any(
            self._same(runs, other) for run in self._first(runs) if run in self._under for other in self._under[run]
        )

    def _same(self, one: Runs, other: Runs) -> bool:
        if min(len(one), len(other)) < self.alike * max(len(one), len(other)):
            return False
        shared = len(np.intersect1d(one, other, assume_unique=True))
        return shared >= self.alike * (len(one) + len(other) - shared)

    def _first(self, runs: Runs) -> list[int]:
        """The members of a set of which two sets that are alike share one: the smallest, for they are sorted."""
        n = len(runs) - ceil(self.alike * len(runs) - 1e-9) + 1
        return [int(run) for run in runs[:n]]


@lru_cache(maxsize=256)  # a copy is looked up among several, then remembered
def _form(parts: tuple[str, ...]) -> tuple[bytes, Runs]:
    """A fingerprint of the words of each text, and its runs, sorted."""
    shown = (visible_form(" ".join(part.split())) for part in parts)  # first of all: a line break is a hidden sign
    plain = [" ".join(_WORD.findall(part)) for part in shown]
    told = "\x00".join(plain).encode(errors="surrogatepass")
    runs = [_runs(part, number) for number, part in enumerate(plain) if part]
    return blake2b(told, digest_size=16).digest(), np.unique(np.concatenate(runs)) if runs else np.empty(0, np.uint32)


def _runs(plain: str, number: int) -> Runs:
    """Every run of three signs as a number, another one in the second text of a pair than in the first."""
    signs = np.frombuffer(f" {plain} ".encode("utf-32-le", errors="surrogatepass"), np.uint32).astype(np.uint64)
    mixed = sum(signs[at : len(signs) - 2 + at] * _FACTORS[at] for at in range(3)) + np.uint64(number * 40503)
    folded: Runs = (((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)).astype(
        np.uint32
    )
    return folded
