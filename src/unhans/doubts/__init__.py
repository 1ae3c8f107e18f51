"""Doubts: which training examples probably have the wrong label?

`doubts` is the front door: it lets several signs look at all labelled training examples, turns what each says into
ranks, and combines the ranks. A sign is one file with one function that gives a number for each example, higher for a
label more doubtful; the law tests run on every one of them. People decide what is done about a doubt (`Relabel`).

A rank is the share of the examples that are less doubtful: 0 for the least doubtful, near 1 for the first to look at.
The score is a weighted geometric mean of what the ranks leave to 1, so that being on top of one list counts more than
being in the middle of all. Equal texts under equal labels have equal doubts; equal texts under different labels are a
sign of their own (`contradiction`).

Facts of a sign: `needs={"gradients"}` says that it looks inside the model; a black box does without it. `weight=1.0` is
how much it counts beside others (docs/label-errors.md says how the weights were chosen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.embeddings import embeddings_of
from unhans.errors import BadData, BadOption
from unhans.model import Classifier
from unhans.present import html_table, progress_bars
from unhans.registry import Entry, Registry
from unhans.scoring import How, Progress
from unhans.types import Doubt, Example, OptionValue, Recipe

__all__ = ["DEFAULT", "Doubts", "How", "Sign", "doubt", "doubts", "embeddings_of", "usable"]

Floats = NDArray[np.float64]

doubt = Registry(
    "doubts",
    offers=(
        "classifier",
        "train",  # labelled examples
        "given",  # number of the label of each
        "texts",  # number of the text of each: equal texts have equal numbers
        "log_probs",  # what the model says of each, examples × labels
        "embeddings",  # of each, as the model sees it, of length 1: examples × width
        "folder",  # where influence may keep what it worked out, or None
        "seed",
        "rng",
        "how",  # progress and cancelled
    ),
    package="unhans.doubts",
)
DEFAULT = ("confident_learning", "contradiction", "low_confidence", "neighbour_disagreement", "self_influence")


@dataclass(frozen=True)
class Sign:
    """What a sign says of each example."""

    values: Floats  # higher is more doubtful
    says: Floats | None = None  # probability of every label in its eyes, examples × labels, where it has an opinion


class Doubts(list[Doubt]):
    """Doubts, the most doubtful first; drawn as a table in notebooks."""

    def _repr_html_(self) -> str:
        rows = [(one.example, one.label, one.suggested, f"{one.score:.3f}") for one in self[:50]]
        more = f"the first 50 of {len(self)}" if len(self) > 50 else ""
        return html_table(("example", "label", "suggested", "doubt"), rows, more)


def doubts(
    classifier: Classifier,
    train: Iterable[Example],
    *,
    signs: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Doubts:
    """All labelled training examples with how doubtful their label is, the most doubtful first.

    Without `signs`, all the usual ones that this classifier can serve. `options` are those of single signs, by their
    names. `suggested` is what the model, held-out heads and neighbours together would call the example; it may be the
    label it has. With a `folder`, what influence works out is kept there for the next call.
    """
    entries, chosen = _entries(classifier, signs), options or {}
    if stray := sorted(set(chosen) - {entry.name for entry in entries}):
        raise BadOption(f"There are options for {stray[0]!r}, which is not among the signs asked for.")
    recipe = recipe_of(entries, chosen, seed)
    with ExitStack() as stack:
        tell = progress or (stack.enter_context(progress_bars())("Looking for wrong labels") if show_progress else None)
        look = _Look(classifier, _labelled(classifier, train), folder, seed, How(tell, cancelled))
        found = look.signs(entries, chosen)
    ranks = {name: _ranks(sign.values) for name, sign in found.items()}
    scores = _combined(np.stack(list(ranks.values())), [float(entry.facts.get("weight", 1.0)) for entry in entries])
    suggested = look.suggested([sign.says for sign in found.values() if sign.says is not None])
    made = [
        Doubt(
            example=example.id,
            label=str(example.label),
            suggested=classifier.labels[suggested[n]],
            score=float(scores[n]),
            signs=tuple((name, float(line[n])) for name, line in ranks.items()),
            recipe=recipe,
            revision=classifier.revision,
        )
        for n, example in enumerate(look.train)
    ]
    return Doubts(made[n] for n in np.argsort(-scores, kind="stable"))  # those level stay in the order they were given


def usable(classifier: Classifier) -> tuple[str, ...]:
    """The usual signs that this classifier can serve."""
    return tuple(name for name in DEFAULT if doubt[name].needs <= classifier.capabilities)


def recipe_of(entries: Sequence[Entry], options: Mapping[str, Mapping[str, Any]], seed: int) -> Recipe:
    """What was run: the signs, and the settings of each."""
    settings: list[tuple[str, OptionValue]] = [("signs", ", ".join(entry.name for entry in entries))]
    for entry in entries:
        own = entry.settings(options.get(entry.name, {}))
        settings += [(f"{entry.name}.{name}", value) for name, value in own.items()]
    name = entries[0].name if len(entries) == 1 else "combined"
    drawn = any(entry.random or "seed" in entry.asks for entry in entries)
    return Recipe("doubts", name, tuple(settings), seed if drawn else None)


def _entries(classifier: Classifier, signs: Sequence[str] | None) -> list[Entry]:
    """The signs by name, each once."""
    names = dict.fromkeys(usable(classifier) if signs is None else [doubt[name].name for name in signs])
    if not names:
        raise BadOption(f"Choose at least one sign. There is: {', '.join(doubt.names)}.")
    entries = [doubt[name] for name in sorted(names)]
    for entry in entries:
        classifier.require(entry.needs, entry.name, f"Signs that work with it: {', '.join(usable(classifier))}.")
    return entries


def _labelled(classifier: Classifier, train: Iterable[Example]) -> list[Example]:
    labelled = [example for example in train if example.label is not None]
    if not labelled:
        raise BadData("None of the training examples has a label; there is nothing to doubt.")
    if strange := [e.label for e in labelled if e.label not in classifier.labels]:
        raise BadData(
            f"A training example has the label {strange[0]!r}, which the model lacks. "
            f"The model has: {', '.join(classifier.labels)}."
        )
    return labelled


class _Look:
    """The examples, and what several signs need of them, worked out once and only if asked for."""

    def __init__(
        self, classifier: Classifier, train: list[Example], folder: str | Path | None, seed: int, how: How
    ) -> None:
        self.classifier, self.train, self.seed, self.how = classifier, train, seed, how
        numbers: dict[str, int] = {}
        self.texts = np.array([numbers.setdefault(example.text_hash, len(numbers)) for example in train], int)
        self.given = np.array([classifier.label_number(str(example.label)) for example in train], int)
        self.folder = None if folder is None else Path(folder)

    def signs(self, entries: Sequence[Entry], options: Mapping[str, Mapping[str, Any]]) -> dict[str, Sign]:
        """What each sign says."""
        asked = {name for entry in entries for name in entry.asks}
        makers = {"log_probs": self._log_probs, "embeddings": self._embeddings}
        needed = [name for name in makers if name in asked]
        parts = len(needed) + len(entries)
        offered: dict[str, Any] = {
            "classifier": self.classifier,
            "train": self.train,
            "given": self.given,
            "texts": self.texts,
            "folder": self.folder,
            "seed": self.seed,
        }
        for at, name in enumerate(needed):
            offered[name] = makers[name](self.how.part(at, parts))
        found = {}
        for at, entry in enumerate(entries, start=len(needed)):
            how = self.how.part(at, parts)
            own = {"rng": np.random.default_rng([self.seed, 23]), "how": how}
            found[entry.name] = entry(offered | own, **options.get(entry.name, {}))
            how.tell(1, 1)
        return found

    def suggested(self, opinions: Sequence[Floats]) -> NDArray[np.int64]:
        """The label that those with an opinion find most probable on the whole; without any, the given one."""
        if not opinions:
            return self.given
        logs = np.mean([np.log(np.clip(says, 1e-3, 1.0)) for says in opinions], axis=0)
        best: NDArray[np.int64] = logs.argmax(axis=1)
        return best

    def _log_probs(self, how: How) -> Floats:
        return self.classifier.log_probs(self.train, progress=how.tell)

    def _embeddings(self, how: How) -> Floats:
        """Each different text is read once."""
        _, first = np.unique(self.texts, return_index=True)
        each: Floats = embeddings_of(self.classifier, [self.train[n] for n in first], how.tell)[self.texts]
        return each


def _ranks(values: Floats) -> Floats:
    """The share of the examples that are less doubtful; those level have the same."""
    order = np.sort(values)
    below: Floats = np.searchsorted(order, values, side="left") / len(values)
    return below


def _combined(ranks: Floats, weights: Sequence[float]) -> Floats:
    """One score of the ranks of several signs, on the same scale: 1 less the geometric mean of what is left to 1.

    Signs × examples. A place near the top of any list counts more than the middle of all lists.
    """
    left = 1.0 - ranks  # never 0: nobody is less doubtful than itself
    scores: Floats = 1.0 - np.exp(np.average(np.log(left), axis=0, weights=weights))
    return scores
