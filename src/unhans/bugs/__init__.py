"""Bugs planted on purpose, so that we know what an explanation should find.

A member takes examples and returns them contaminated, with the truth about what it did. It must leave everything else
as it was, give the same result for the same seed, and name exactly what it touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unhans.errors import BadData, BadOption
from unhans.registry import Registry
from unhans.types import Example, Recipe

bug = Registry("bugs", offers=("examples", "rng"), package="unhans.bugs")


@dataclass(frozen=True, slots=True)
class Truth:
    """What was planted: the answer that a method is scored against."""

    words: tuple[str, ...] = ()  # sorted; words that carry no meaning for the task, yet predict the label
    examples: tuple[str, ...] = ()  # ids of the examples that were changed, in the order of the data
    note: str = ""  # the same in a sentence
    was: tuple[tuple[str, str | None], ...] = ()  # id, and the label or split that the bug replaced


@dataclass(frozen=True, slots=True)
class Planted:
    """All examples, contaminated or not, in their old order; what was done to them; and how to do it again."""

    examples: tuple[Example, ...]
    truth: Truth
    recipe: Recipe


def plant(examples: Sequence[Example], name: str, *, seed: int = 0, **options: Any) -> Planted:
    """Contaminate examples with the bug of that name; the examples given are left alone."""
    entry = bug[name]
    recipe = entry.recipe(options, seed)
    _check_ids(examples)
    rng = np.random.default_rng(seed)
    planted, truth = entry({"examples": tuple(examples), "rng": rng}, **options)
    return Planted(tuple(planted), truth, recipe)


def check_share(name: str, share: float) -> None:
    """Refuse an option that is no part of a whole."""
    if not 0 <= share <= 1:
        raise BadOption(f"{name} must lie between 0 and 1, not {share}.")


def sample(ids: Sequence[str], share: float, rng: np.random.Generator) -> frozenset[str]:
    """A random share of the ids, rounded to a whole number of them."""
    return frozenset(ids[i] for i in rng.choice(len(ids), size=round(share * len(ids)), replace=False))


def labels_of(examples: Sequence[Example]) -> list[str]:
    """The labels that occur, sorted."""
    return sorted({example.label for example in examples if example.label is not None})


def _check_ids(examples: Sequence[Example]) -> None:
    """The truth names examples by id, so an id must mean one example."""
    if not examples:
        raise BadData("There are no examples to plant a bug in.")
    id_, count = Counter(example.id for example in examples).most_common(1)[0]
    if count > 1:
        raise BadData(f"{count} examples share the id {id_!r}; a bug can only be planted where ids are unique.")
