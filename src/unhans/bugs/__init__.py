"""Bugs planted on purpose, so that we know what an explanation should find.

A member contaminates examples (data and test-time bugs) or a classifier (model bugs) and tells the truth about what it
did. It must leave everything else as it was, give the same result for the same seed, and name exactly what it touched.

Facts of a bug: `kind` says where in the pipeline it sits. `proof` says how `unhans.lab` shows that it took: "cue" (the
model answers to the cue alone), "labels" (it has learned the wrong ones), "copies" (they are found again), "answers"
(the model says something else), "none" (nothing was planted). `aligned=False` says that the words of a changed text do
not stand where those of the text before stood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unhans.errors import BadData, BadOption
from unhans.model import Classifier
from unhans.registry import Entry, Registry
from unhans.scoring import How, Progress
from unhans.text import Words, word_spans
from unhans.types import Example, Recipe

bug = Registry(
    "bugs",
    offers=(
        "examples",
        "classifier",  # the model to be contaminated
        "reader",  # the model that reads the texts, where it is they that are contaminated
        "other",  # a classifier of another domain, or the same one in another state
        "train",  # labelled examples, for bugs that train
        "rng",
        "how",  # progress and cancelled
    ),
    package="unhans.bugs",
)
_MISSING = {
    "classifier": "classifier=, the model to contaminate",
    "reader": "classifier=, the model that is to be misled",
    "other": "other=, a classifier of another domain, or an earlier state of the same one",
    "train": "train=, labelled examples to train on",
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What was planted: the answer that a method is scored against."""

    words: tuple[str, ...] = ()  # sorted; words that carry no meaning for the task, yet predict the label
    examples: tuple[str, ...] = ()  # ids of the examples that were changed or added, in the order of the data
    note: str = ""  # the same in a sentence
    was: tuple[tuple[str, str | None], ...] = ()  # id, and the label or split that the bug replaced, or what it copies
    cues: tuple[tuple[str, ...], ...] = ()  # what speaks for `label`: each is a run of words, and any of them will do
    label: str | None = None
    parts: tuple[str, ...] = ()  # of the model, from the top down, where that is what was changed

    def positions(self, words: Words) -> tuple[int, ...]:
        """Numbers of the words of a text that belong to a cue; a cue is never in the second text of a pair."""
        own = [number for number, span in enumerate(words.spans) if span.part == "text"]
        strings = [words.strings[number] for number in own]
        found: set[int] = set()
        for cue in self.cues:
            for start in range(len(own) - len(cue) + 1):
                if tuple(strings[start : start + len(cue)]) == cue:
                    found.update(own[start : start + len(cue)])
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Planted:
    """All examples, contaminated or not, in their old order; what was done to them; and how to do it again.

    Copies come after all others. `classifier` is the contaminated model, where the model is what was contaminated.
    """

    examples: tuple[Example, ...]
    truth: Truth
    recipe: Recipe
    classifier: Classifier | None = field(default=None, compare=False)


def plant(
    examples: Sequence[Example],
    name: str,
    *,
    classifier: Classifier | None = None,
    other: Classifier | None = None,
    train: Sequence[Example] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    **options: Any,
) -> Planted:
    """Contaminate examples, or a classifier, with the bug of that name; what is given is left alone.

    Bugs of the model want `classifier`, some of them `other` or `train` besides, and leave the examples as they are.
    """
    entry = bug[name]
    recipe = entry.recipe(options, seed)
    given: dict[str, Any] = {"classifier": classifier, "reader": classifier, "other": other, "train": train}
    _check(entry, examples, given)
    offered = {"examples": tuple(examples), "rng": np.random.default_rng(seed), "how": How(progress, cancelled)}
    made, truth = entry(offered | given, **options)
    if isinstance(made, Classifier):
        return Planted(tuple(examples), truth, recipe, made)
    return Planted(tuple(made), truth, recipe)


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


def words_in(text: str) -> tuple[str, ...]:
    """The words of a string, as explanations count them."""
    return tuple(text[span.start : span.end] for span in word_spans(text))


def _check(entry: Entry, examples: Sequence[Example], given: dict[str, Any]) -> None:
    """Refuse what a bug cannot be planted in; the truth names examples by id, so an id must mean one example."""
    for name, way_out in _MISSING.items():
        if name in entry.asks and not given[name]:
            raise BadOption(f"{entry.name} needs {way_out}.")
    if given["classifier"] is not None:
        given["classifier"].require(entry.needs, entry.name)
    if not examples:
        if "examples" in entry.asks:
            raise BadData("There are no examples to plant a bug in.")
        return
    id_, count = Counter(example.id for example in examples).most_common(1)[0]
    if count > 1:
        raise BadData(f"{count} examples share the id {id_!r}; a bug can only be planted where ids are unique.")
