"""What the checks of one audit share: the texts, what the model says of them, and how to ask it more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unhans.attributions import attribute, attribution, readable_words
from unhans.audit._statistics import Flags, Floats, Ints
from unhans.errors import Unsupported
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.scoring import How, ScoreCache
from unhans.text import Text, Variant, Words, visible_form
from unhans.types import Attributions, Evidence, Example, Finding, Recipe, Screen, Severity
from unhans.types import Variant as Changed

_EXPLAINED = 300  # examples whose explanations say which words to try


class Ask(Protocol):
    """Asks the model about many texts at once, in batches and through the cache."""

    def __call__(self, texts: Sequence[Text], how: How) -> Floats:
        """Log-probability of every label for each text."""


class Find(Protocol):
    """Makes a finding of the check that runs."""

    def __call__(
        self,
        severity: Severity,
        title: str,
        *,
        says: str,
        evidence: Sequence[Evidence],
        next: str,
        limits: str,
        screen: Screen | None = None,
        examples: Sequence[str] = (),
        words: Sequence[str] = (),
        variants: Sequence[Changed] = (),
    ) -> Finding:
        """With the recipe and the revision filled in."""


@dataclass(frozen=True)
class Outcome:
    """What a check came to."""

    says: str  # in a sentence or two: what was looked at, and what came of it
    findings: tuple[Finding, ...] = ()


@dataclass
class Look:
    """One audit's material; what takes long is made when a check first asks for it."""

    classifier: Classifier
    examples: Sequence[Example]
    train: Sequence[Example]
    method: str
    language_model: LanguageModel | None
    cache: ScoreCache
    folder: Path | None
    seed: int
    limit: int
    log_probs: Floats  # of the examples, × labels
    _explained: Attributions | None = None

    def __getstate__(self) -> dict[str, Any]:
        """In another process without the folder, which is of this machine; what is kept there saves time, no more."""
        return vars(self) | {"folder": None}

    @cached_property
    def given(self) -> Ints:
        """Number of each example's label; -1: none, or none that the model knows."""
        return np.array([self._number(example.label) for example in self.examples], dtype=np.int64)

    @cached_property
    def forms(self) -> list[tuple[str, ...]]:
        """The words of each example that the model reads, in the form in which they are counted.

        Whatever stands behind the end of what it reads can do nothing, and would only be counted in vain.
        """
        words = (readable_words(self.classifier, example, "word") for example in self.examples)
        return [tuple(visible_form(own.strings[n]) for n in own.open) for own in words]

    @cached_property
    def sizes(self) -> Ints:
        """How many words each example has, those that the model does not read too."""
        return np.array([len(Words(example)) for example in self.examples], dtype=np.int64)

    @property
    def pairs(self) -> bool:
        """Whether the examples are pairs of texts."""
        return any(example.pair is not None for example in self.examples)

    def _number(self, label: str | None) -> int:
        return self.classifier.labels.index(label) if label in self.classifier.labels else -1

    def ask(self, texts: Sequence[Text], how: How) -> Floats:
        """See `Ask`."""
        if not texts:
            return np.empty((0, len(self.classifier.labels)))
        return self.classifier.log_probs(texts, cache=self.cache, progress=how.tell, cancelled=how.cancelled)

    def explain(self, how: How) -> Attributions:
        """Explanations of some of the examples for the label that the model predicts; made once."""
        if self._explained is None:
            if "language_model" in attribution[self.method].asks and self.language_model is None:
                raise Unsupported(f"{self.method} needs a language model, and none was given.")
            self._explained = attribute(
                self.classifier,
                drawn(self.examples, _EXPLAINED, self.seed),
                method=self.method,
                background=drawn(self.train or self.examples, 200, self.seed),
                language_model=self.language_model,
                seed=self.seed,
                cache=self.cache,
                progress=how.tell,
                cancelled=how.cancelled,
            )
        return self._explained

    def finder(self, recipe: Recipe) -> Find:
        """What makes findings of the check with this recipe."""

        def find(severity: Severity, title: str, **told: Any) -> Finding:
            for name in ("evidence", "examples", "words", "variants"):
                told[name] = tuple(told.get(name, ()))
            told.setdefault("screen", None)
            return Finding(recipe, title, severity, revision=self.classifier.revision, **told)

        return find


def drawn(examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    """At most n examples, drawn by the seed, in their own order."""
    return [examples[place] for place in places(len(examples), n, seed)]


def places(size: int, n: int, seed: int) -> list[int]:
    """At most n of the numbers below `size`, drawn by the seed, in order."""
    if size <= n:
        return list(range(size))
    return sorted(int(place) for place in np.random.default_rng([seed, 41]).choice(size, n, replace=False))


def changes(
    labels: Sequence[str], examples: Sequence[Example], variants: Sequence[Variant], before: Floats, after: Floats
) -> list[Changed]:
    """The changed texts with what the model says of each before and after, those that changed most first."""
    was, now = before.argmax(axis=1), after.argmax(axis=1)
    rows = np.arange(len(was))
    moved = np.exp(after[rows, was]) - np.exp(before[rows, was])
    found = []
    for n in np.lexsort((moved, was == now)):
        text, *pair = variants[n].texts
        told = (text, pair[0] if pair else None, labels[was[n]], labels[now[n]], float(moved[n]))
        found.append(Changed(examples[n].id, *told))
    return found


def changed(before: Floats, after: Floats) -> Flags:
    """Whether the predicted label changes."""
    return np.asarray(before.argmax(axis=1) != after.argmax(axis=1))
