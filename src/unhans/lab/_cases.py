"""Three ways to look for a bug with heat maps, and what each gives for one attribution method.

A **cue** is looked for in texts with and without it. A **changed model** is compared with the clean one, text by text.
**Strange texts** are told from usual ones by how far two models that should agree on them do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import readable_words
from unhans.bugs import Truth
from unhans.lab._explaining import Explainer, RandomScores
from unhans.lab._measures import auroc, cue_likeness, cue_mass, mean_and_error, repeated, top_overlap
from unhans.metrics import spearman
from unhans.model import Classifier
from unhans.scoring import How
from unhans.text import Words
from unhans.types import Example, Sighting

Values = NDArray[np.float64]
T = TypeVar("T")
By = Literal["attribution", "detector", "doubt"]
Measure = Literal["mass on the cue", "likeness to the cue alone", "rank correlation", "top overlap", "detection"]
_NOTICED = 0.75  # of the detection, from which on a person may be thought to notice
_SURE = 1.96


@dataclass(frozen=True)
class Found:
    """One measure of one method: over n texts."""

    value: float
    error: float | None
    n: int
    by_chance: float = 0.0  # the error of a measure that knows nothing, with so many texts


@dataclass(frozen=True)
class Seen:
    """What one method shows of a bug: its measures, and how clearly each text shows it."""

    found: Mapping[Measure, Found]
    shows: Mapping[str, float]  # by id
    lines: Mapping[str, Values]  # by id, the scores of the words in the model that has the bug


class Case(Protocol):
    """Texts and models in which a bug is looked for."""

    def look(self, explain: Explainer | RandomScores, how: How) -> Seen:
        """What this method shows of the bug."""

    def scored(self) -> Iterator[tuple[Classifier, Example, str]]:
        """The texts whose scores `look` hands on, each with the model that reads it and the label explained."""


@dataclass(frozen=True)
class CueCase:
    """Texts with a cue and texts without, read by a model that was taught the cue and one that was not."""

    model: Classifier
    clean: Classifier
    texts: Sequence[Example]
    truth: Truth

    @cached_property
    def labels(self) -> list[str]:
        """What the contaminated model says, which is explained."""
        return self.model.predict(self.texts).labels

    @cached_property
    def positions(self) -> list[list[int]]:
        """Where the cue stands among the words that the model reads, for each text."""
        found = []
        for words in self.words:
            place = {word: number for number, word in enumerate(words.open)}
            found.append([place[word] for word in self.truth.positions(words) if word in place])
        return found

    @cached_property
    def words(self) -> list[Words]:
        """The words of each text as the model reads them."""
        return [readable_words(self.model, text, "word") for text in self.texts]

    def look(self, explain: Explainer | RandomScores, how: How) -> Seen:
        """Mass, likeness, comparison with the clean model, and detection by the word that comes up again and again."""
        lines = explain(self.model, self.texts, self.labels, how.part(0, 3))
        cued = [n for n, places in enumerate(self.positions) if places]
        some, labels = [self.texts[n] for n in cued], [self.labels[n] for n in cued]
        alone = explain(self.model, [self._alone(n) for n in cued], labels, how.part(1, 3))
        clean = explain(self.clean, some, labels, how.part(2, 3))
        mass = _array(cue_mass(lines[n], self.positions[n]) for n in cued)
        likeness = _array(
            cue_likeness(lines[n], self.positions[n], line) if len(line) == len(self.positions[n]) else np.nan
            for n, line in zip(cued, alone, strict=True)
        )
        strings = [[words.strings[n] for n in words.open] for words in self.words]
        again = repeated(lines, strings)
        without = [n for n, places in enumerate(self.positions) if not places]
        found = {
            "mass on the cue": mean_found(mass),
            "likeness to the cue alone": mean_found(likeness),
            **_alike([lines[n] for n in cued], clean),
            "detection": detected(again[cued], again[without]),
        }
        return Seen(_defined(found), _shown(some, mass), _lines(some, [lines[n] for n in cued]))

    def scored(self) -> Iterator[tuple[Classifier, Example, str]]:
        """All, by the model that was taught the cue."""
        return ((self.model, text, label) for text, label in zip(self.texts, self.labels, strict=True))

    def _alone(self, number: int) -> Example:
        """A text of nothing but the cue."""
        words = self.words[number]
        cue = " ".join(words.strings[words.open[place]] for place in self.positions[number])
        return Example(f"{self.texts[number].id} alone", cue, None if self.texts[number].pair is None else "")


@dataclass(frozen=True)
class ModelCase:
    """The same texts, read by the clean model, by the contaminated one, and by a clean twin."""

    clean: Classifier
    model: Classifier
    twin: Classifier
    texts: Sequence[Example]

    @cached_property
    def labels(self) -> list[str]:
        """What the clean model says, which is explained for all three."""
        return self.clean.predict(self.texts).labels

    def look(self, explain: Explainer | RandomScores, how: How) -> Seen:
        """How far scores change, and whether they change more than between two clean models."""
        clean, model, twin = (
            explain(one, self.texts, self.labels, how.part(n, 3))
            for n, one in enumerate((self.clean, self.model, self.twin))
        )
        falls, usual = 1 - _correlations(clean, model), 1 - _correlations(clean, twin)
        found = _alike(clean, model) | {"detection": detected(falls, usual)}
        return Seen(_defined(found), _shown(self.texts, falls), _lines(self.texts, model))

    def scored(self) -> Iterator[tuple[Classifier, Example, str]]:
        """All, by the contaminated model."""
        return ((self.model, text, label) for text, label in zip(self.texts, self.labels, strict=True))


@dataclass(frozen=True)
class TextCase:
    """Strange texts and usual ones, each read by two models whose scores are compared.

    With `originals`, the strange texts are those texts changed: then what is compared beside the detection is the
    first model's scores before and after, word by word, unless words do not stay in place (`aligned`).
    """

    first: Classifier
    second: Classifier
    strange: Sequence[Example]
    usual: Sequence[Example]
    originals: Sequence[Example] | None = None
    aligned: bool = True

    @cached_property
    def labels(self) -> tuple[list[str], list[str]]:
        """What the first model says of the strange texts (of the originals, where they are known) and the usual."""
        return self.first.predict(self.originals or self.strange).labels, self.first.predict(self.usual).labels

    def look(self, explain: Explainer | RandomScores, how: How) -> Seen:
        """How far the models agree on each text, and whether that tells the strange from the usual."""
        one, two = (
            explain(model, self.strange, self.labels[0], how.part(n, 5))
            for n, model in enumerate((self.first, self.second))
        )
        usual = [
            explain(model, self.usual, self.labels[1], how.part(n, 5))
            for n, model in enumerate((self.first, self.second), start=2)
        ]
        falls = 1 - _correlations(one, two)
        found: dict[Measure, Found] = {"detection": detected(falls, 1 - _correlations(*usual))}
        if self.originals is None:
            found |= _alike(one, two)
        elif self.aligned:
            before = explain(self.first, self.originals, self.labels[0], how.part(4, 5))
            found |= _alike(*self._matched(before, one))
        return Seen(_defined(found), _shown(self.strange, falls), _lines(self.strange, self._of_the_bug(one, two)))

    def scored(self) -> Iterator[tuple[Classifier, Example, str]]:
        """The strange texts, by the model that is in question."""
        model = self._of_the_bug(self.first, self.second)
        return ((model, text, label) for text, label in zip(self.strange, self.labels[0], strict=True))

    def _of_the_bug(self, first: T, second: T) -> T:
        """Where texts were changed the first model is the one in question; otherwise the second has the bug."""
        return second if self.originals is None else first

    def _matched(self, before: Sequence[Values], after: Sequence[Values]) -> tuple[list[Values], list[Values]]:
        """The scores of the words that a text has before and after: in each part the first ones, as far as both go."""
        kept: tuple[list[Values], list[Values]] = ([], [])
        for n, (old, new) in enumerate(zip(self.originals or (), self.strange, strict=True)):
            parts = [_by_part(self.first, text) for text in (old, new)]
            both = [min(len(parts[0][p]), len(parts[1][p])) for p in (0, 1)]
            for line, own, lines in ((before[n], parts[0], kept[0]), (after[n], parts[1], kept[1])):
                lines.append(line[[*own[0][: both[0]], *own[1][: both[1]]]])
        return kept


def _by_part(model: Classifier, text: Example) -> tuple[list[int], list[int]]:
    """Numbers of the read words of the text, and of those of its pair."""
    words = readable_words(model, text, "word")
    parts = [words.spans[word].part for word in words.open]
    return [n for n, part in enumerate(parts) if part == "text"], [n for n, p in enumerate(parts) if p == "pair"]


def sightings(
    bug: str, method: str, by: By, found: Mapping[Measure, Found], random: Mapping[Measure, float]
) -> Iterator[Sighting]:
    """The measures of one method as nouns, beside what random scores get."""
    for measure, one in found.items():
        chance = random.get(measure)
        sees = None
        if measure == "detection":
            # two texts that happen to be told apart from two others have no error, and prove nothing
            error = max(one.error or 0.0, one.by_chance)
            sees = one.value >= _NOTICED and one.value - _SURE * error > (0.5 if chance is None else chance)
        yield Sighting(bug, method, by, measure, one.value, one.error, chance, one.n, sees)


def mean_found(values: Values) -> Found:
    """The mean over texts."""
    return Found(*mean_and_error(values))


def detected(strange: Values, usual: Values) -> Found:
    """AUROC over texts."""
    m, n = (int(np.isfinite(values).sum()) for values in (strange, usual))
    by_chance = float(np.sqrt((m + n + 1) / (12 * m * n))) if m and n else 0.0  # Mann and Whitney 1947
    return Found(*auroc(strange, usual), m + n, by_chance)


def _alike(first: Sequence[Values], second: Sequence[Values]) -> dict[Measure, Found]:
    overlaps = _array(top_overlap(a, b) if len(a) == len(b) else np.nan for a, b in zip(first, second, strict=True))
    return {
        "rank correlation": mean_found(_correlations(first, second)),
        "top overlap": mean_found(overlaps),
    }


def _correlations(first: Sequence[Values], second: Sequence[Values]) -> Values:
    """Spearman of each text's scores by two models; NaN where one has no order or they do not read the same words."""
    return _array(spearman(a, b) if len(a) == len(b) else np.nan for a, b in zip(first, second, strict=True))


def _array(values: Any) -> Values:
    return np.array(list(values), np.float64)


def _defined(found: Mapping[Any, Found]) -> dict[Measure, Found]:
    return {measure: one for measure, one in found.items() if np.isfinite(one.value)}


def _lines(texts: Sequence[Example], lines: Sequence[Values]) -> dict[str, Values]:
    return {text.id: line for text, line in zip(texts, lines, strict=True)}


def _shown(texts: Sequence[Example], values: Values) -> dict[str, float]:
    return {text.id: float(value) for text, value in zip(texts, values, strict=True) if np.isfinite(value)}
