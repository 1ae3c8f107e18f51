"""The models of the lab: the clean ones, and one for each bug that is trained in, all from the same start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unhans.bugs import Planted, bug, labels_of, plant, sample
from unhans.errors import BadData, BadOption
from unhans.model import Classifier, TransformerClassifier
from unhans.registry import Entry
from unhans.scoring import How
from unhans.text import as_variant
from unhans.training import Schedule, Watch, fit
from unhans.types import Example


@dataclass
class Models:
    """Trains what bugs need, each model once."""

    given: TransformerClassifier
    train: list[Example]
    test: list[Example]
    trained: bool  # whether the given classifier is a model to examine, or only where trainings start
    other: Classifier | None  # another state of the given one
    other_domain: Classifier | None
    schedule: Schedule
    _made: dict[str, TransformerClassifier] = field(default_factory=dict)

    def reference(self, how: How) -> TransformerClassifier:
        """The model that bugs of weights and of test time are planted in."""
        return self.given if self.trained else self.control(how)

    def control(self, how: How) -> TransformerClassifier:
        """Trained as the contaminated models are, on clean data."""
        return self.fitted("control", self.train, how)

    def twin(self, how: How) -> TransformerClassifier:
        """Another clean model: how far attributions differ without any bug.

        The examined model trained further on clean data, or for a fresh start a training with another seed.
        """
        if self.trained:
            return self.control(how)
        return self.fitted("twin", self.train, how, replace(self.schedule, seed=self.schedule.seed + 1))

    def fitted(
        self, key: str, train: Sequence[Example], how: How, schedule: Schedule | None = None
    ) -> TransformerClassifier:
        """A model trained from the start on these examples, or the one that was trained under this key before."""
        if key not in self._made:
            watch = Watch(how.progress, how.cancelled)
            self._made[key] = fit(self.given, train, schedule=schedule or self.schedule, watch=watch)
        return self._made[key]

    def contaminated(self, train: Sequence[Example], how: How) -> TransformerClassifier:
        """A model trained from the same start on contaminated examples; nobody else needs it, so it is not kept."""
        return fit(self.given, train, schedule=self.schedule, watch=Watch(how.progress, how.cancelled))


@dataclass(frozen=True)
class Ask:
    """A bug as it is to be planted here: its options are filled in from the data."""

    name: str  # unique in the lab
    entry: Entry
    options: Mapping[str, Any]
    group: str | None = None  # that the model of the domain is trained on, for bugs of domains

    def planted(self, examples: Sequence[Example], seed: int, how: How | None = None, **given: Any) -> Planted:
        """The bug in these examples or this classifier; `given` may overrule options that the bug has."""
        known = {option.name for option in self.entry.options}
        means = {name: given.pop(name) for name in ("classifier", "other", "train") if name in given}
        options = {**self.options, **{name: value for name, value in given.items() if name in known}}
        how = how or How()
        return plant(
            examples, self.entry.name, seed=seed, progress=how.progress, cancelled=how.cancelled, **means, **options
        )


def asks(bugs: Sequence[str | tuple[str, Mapping[str, Any]]] | None, models: Models) -> tuple[list[Ask], list[str]]:
    """The bugs to plant with their options, and a sentence for each that cannot be planted here.

    What was asked for by name and cannot be planted is an error.
    """
    wanted = (
        [(entry.name, {}) for entry in bug] if bugs is None else [(b, {}) if isinstance(b, str) else b for b in bugs]
    )
    names = [bug[name].name for name, _ in wanted]
    found: list[Ask] = []
    notes: list[str] = []
    for name, (_, options) in zip(names, wanted, strict=True):
        entry = bug[name]
        shown = f"{name} ({', '.join(f'{k}={v}' for k, v in options.items())})" if names.count(name) > 1 else name
        groups = {example.group for example in models.train if example.group is not None}
        other = models.other is not None or not models.trained
        if reason := obstacle(entry, len(groups), other=other, other_domain=models.other_domain is not None):
            if bugs is not None:
                raise BadOption(f"{name} cannot be planted here: {reason}")
            notes.append(f"Left out: {name}: {reason}")
            continue
        settings = {**_defaults(entry, models), **options}
        entry.settings(settings)  # a wrong option is noticed before anything is trained
        found.append(Ask(shown, entry, settings, _largest_group(models)))
    if not found or len({one.name for one in found}) < len(found):
        raise BadOption(f"Choose bugs to plant, each once, or with other options. There is: {', '.join(bug.names)}.")
    return found, notes


def checked(examples: Sequence[Example], classifier: Classifier, split: str) -> list[Example]:
    """The labelled examples, as members of this split; the lab can do nothing with others."""
    labelled = [replace(example, split=split) for example in examples if example.label is not None]
    if len(labels := labels_of(labelled)) < 2:
        raise BadData(
            f"The lab needs {split} examples of two labels or more that the model knows; there is: "
            f"{', '.join(labels) or 'none'}. Nothing was trained. Add examples of another label."
        )
    if strange := [label for label in labels if label not in classifier.labels]:
        raise BadData(
            f"The data has a label {strange[0]!r} that the model lacks. The model has: {', '.join(classifier.labels)}."
        )
    return labelled


def apart(train: Sequence[Example], test: Sequence[Example]) -> list[Example]:
    """The test examples, those renamed whose id a training example has: a bug names examples by id."""
    taken = {example.id for example in train}
    return [replace(e, id=f"{e.id} (test)") if e.id in taken else e for e in test]


def some_of(examples: Sequence[Example], at_most: int, seed: int) -> list[Example]:
    """So many of them at most, drawn by the seed, in their order."""
    share = min(1.0, at_most / max(1, len(examples)))
    drawn = sample([example.id for example in examples], share, np.random.default_rng([seed, 31]))
    return [example for example in examples if example.id in drawn]


def obstacle(entry: Entry, groups: int, *, other: bool, other_domain: bool = False) -> str:
    """Why a bug cannot be planted with training examples of so many groups and these models; empty: it can."""
    if entry.name == "wrong_checkpoint" and not other:
        return "no other state of the model is known. A project with two revisions has one; from Python, give other=."
    if entry.name == "wrong_domain" and not other_domain and groups < 2:
        return "there is no model of another domain. Give examples of two groups, or from Python other_domain=."
    if entry.name == "domain_shift" and groups < 2:
        return "the examples are not of two groups or more."
    return ""


def _defaults(entry: Entry, models: Models) -> dict[str, Any]:
    """Options that depend on the data: the commonest label, the largest group, a change that the model notices."""
    known = {option.name for option in entry.options}
    counts = {label: sum(e.label == label for e in models.train) for label in models.given.labels}
    found: dict[str, Any] = {}
    if "label" in known and entry.facts["proof"] == "cue":
        found["label"] = max(counts, key=lambda label: (counts[label], models.given.labels.index(label)))
    if "keep" in known:
        found["keep"] = _largest_group(models)
    if entry.name == "changed_preprocessing":
        found["way"] = _noticed(models)
    return found


def _largest_group(models: Models) -> str | None:
    groups = [example.group for example in models.train if example.group is not None]
    return max(sorted(set(groups)), key=groups.count) if groups else None


def _noticed(models: Models) -> str:
    """A change of the texts that this model can notice: no second text, capital letters, or a cut."""
    if any(example.pair is not None for example in models.test):
        return "no_pair"
    loud = "A Loud Word"
    same = models.given.tokens.rows([as_variant(loud)]) == models.given.tokens.rows([as_variant(loud.upper())])
    return "truncated" if same else "upper"
