"""Attributions for the lab: each text explained once for each model and label, whichever bugs ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution, readable_words
from unhans.errors import BadOption, Cancelled, UnhansError, Unsupported
from unhans.metrics import Explain, subject
from unhans.model import Classifier
from unhans.registry import Entry
from unhans.scoring import How
from unhans.text import Words
from unhans.types import Example

T = TypeVar("T")
Values = NDArray[np.float64]
Method = str | tuple[str, Mapping[str, Any]]
"""An attribution method by name, or with options."""

USUAL = (  # of every kind, at a few passes through the model for each text
    "leave_one_out",
    "saliency",
    "input_x_gradient",
    "integrated_gradients",
    "deeplift",
    "lrp",
    "guided_backprop",
    "deconvnet",
    "pattern_net",
    "pattern_attribution",
    "attention_rollout",
)
_AT_ONCE = 64  # texts between two looks at whether to stop: some methods prepare themselves anew each time


@dataclass
class Explainer:
    """A method, and what it has said so far."""

    name: str
    explain: Explain
    _known: dict[tuple[str, str, int], Values] = field(default_factory=dict)

    def __call__(
        self, model: Classifier, examples: Sequence[Example], labels: Sequence[str], how: How | None = None
    ) -> list[Values]:
        """Scores of the words that the model reads, for each example and its label."""
        targets = [model.label_number(label) for label in labels]
        keys = [(model.revision, e.text_hash, target) for e, target in zip(examples, targets, strict=True)]
        wanted = dict(zip(keys, zip(examples, targets, strict=True), strict=True))
        new = [key for key in wanted if key not in self._known]
        for start in range(0, len(new), _AT_ONCE):
            if how is not None:
                how.tell(start, len(new))
            some = new[start : start + _AT_ONCE]
            texts, goals = [wanted[key][0] for key in some], [wanted[key][1] for key in some]
            lines = self.explain(model, texts, targets=goals)
            read = (_read(model, text, line) for text, line in zip(texts, lines, strict=True))
            self._known.update(zip(some, read, strict=True))
        if how is not None:
            how.tell(1, 1)
        return [self._known[key] for key in keys]


@dataclass
class Refusals:
    """What became of methods that serve the classifier and refuse a model of the lab, such as one drawn anew."""

    by_name: bool  # whether somebody asked for these methods: then a refusal is an error
    notes: list[str] = field(default_factory=list)

    def heed(self, who: str, where: str, look: Callable[..., T], *told: Any) -> T | None:
        """What a method finds; nothing and a note if it refuses."""
        try:
            return look(*told)
        except Unsupported as error:
            if self.by_name:
                raise
            self.notes.append(f"{who} did not look at {where}: {error}")
            return None


@dataclass(frozen=True)
class RandomScores:
    """The attribution `random` in the place of a method: other scores for every model and text, none of them earned."""

    draw: int
    words: dict[str, Words]  # by text, shared by all draws
    name: str = "random"

    def __call__(
        self, model: Classifier, examples: Sequence[Example], labels: Sequence[str], how: How | None = None
    ) -> list[Values]:
        """As many random numbers as the model reads words of each example."""
        for example in examples:
            if example.text_hash not in self.words:
                self.words[example.text_hash] = readable_words(model, example, "word")
        words = [self.words[example.text_hash] for example in examples]
        seeds = [[self.draw, int(model.revision, 16), int(example.text_hash, 16)] for example in examples]
        lines = attribution["random"]({"words": words, "rngs": [np.random.default_rng(seed) for seed in seeds]})
        return [line[list(own.open)] for line, own in zip(lines, words, strict=True)]


def _read(model: Classifier, text: Example, line: Values) -> Values:
    """The scores of the words that the model reads."""
    return line[list(readable_words(model, text, "word").open)] if model.unread(text) else line


def explainers(
    classifier: Classifier, probe: Example, methods: Sequence[Method] | str, given: Mapping[str, Any], seed: int
) -> tuple[list[Explainer], list[str]]:
    """The methods that this classifier can serve, and a sentence for each that was asked for in vain."""
    if isinstance(methods, str) and methods not in ("all", "usual"):
        raise BadOption(f"methods is 'all', 'usual' or a list of names, not {methods!r}.")
    made: list[Explainer] = []
    notes: list[str] = []
    for name, options in _chosen(methods):
        entry = attribution[name]
        if isinstance(methods, str) and not _serves(classifier, entry, given):
            continue
        shown = ", ".join(f"{key}={value}" for key, value in options.items())
        try:
            tried = subject(classifier, [probe], entry.name, options, seed=seed, **given)
        except Cancelled:
            raise
        except UnhansError as error:
            if not isinstance(methods, str):
                raise
            notes.append(f"Left out: {entry.name}: {error}")
            continue
        made.append(Explainer(f"{entry.name} ({shown})" if options else entry.name, tried.explain))
    if len({one.name for one in made}) < len(made) or not made:
        raise BadOption("Give the names of the attribution methods to look with, each once.")
    if methods == "all" and not given["language_model"]:
        dumb = [entry.name for entry in attribution if _lacks_language_model(entry, given)]
        notes.append(f"Without a language model these methods did not look: {', '.join(dumb)}.")
    return made, notes


def _serves(classifier: Classifier, entry: Entry, given: Mapping[str, Any]) -> bool:
    """Whether the classifier can serve a method, with the language model that there is or not."""
    return entry.needs <= classifier.capabilities and not _lacks_language_model(entry, given)


def _lacks_language_model(entry: Entry, given: Mapping[str, Any]) -> bool:
    return "language_model" in entry.asks and not given["language_model"]


def _chosen(methods: Sequence[Method] | str) -> list[tuple[str, Mapping[str, Any]]]:
    if methods == "all":
        return [(name, {}) for name in attribution.names if name != "random"]
    if methods == "usual":
        return [(name, {}) for name in USUAL]
    return [(method, {}) if isinstance(method, str) else method for method in methods]
