"""Verify: what a fix changed, for better and for worse.

`verify` asks two models about the same examples and makes a `Report`: measures with the interval of their change, the
examples that became right and wrong, what became of every vote, sets that put the votes to the test, and whether a
cheap fix would have done as well. What got worse is said first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unhans.errors import BadData, BadOption, Cancelled
from unhans.expectations import Expected, Findings, check_expectations, judge, words_of
from unhans.feedback import resolve, settle
from unhans.model import Classifier
from unhans.reporting import short_names
from unhans.scoring import Progress, ScoreCache
from unhans.text import visible_form
from unhans.types import Change, Example, Feedback, Recipe, Report, Rival, WordEffect, WordVote
from unhans.verify._notes import Circumstances, notes_of
from unhans.verify._sets import Scored
from unhans.verify._statistics import Floats, accuracy_differences
from unhans.verify._stress import stress_sets
from unhans.verify._words import (
    MOST_VOTES,
    TEXTS,
    Explaining,
    Found,
    Place,
    Wanted,
    effect,
    likeness,
    places_of_votes,
    places_of_words,
    shuffled,
    weight,
    without_words,
)

__all__ = ["check_expectations", "stress_sets", "verify"]

_SHOWN = 50  # examples that became right, and that became wrong


def verify(
    before: Classifier | None,
    after: Classifier,
    sets: Mapping[str, Sequence[Example]],
    *,
    feedback: Sequence[Feedback] = (),
    expectations: Sequence[str] = (),
    method: str = "leave_one_out",
    fix: Recipe | None = None,
    runs: Sequence[Classifier] = (),
    rivals: Sequence[tuple[Recipe, Classifier]] = (),
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
) -> Report:
    """What became of a model, on labelled examples that it was not trained on.

    `sets` are measured one by one, and so are stress sets made from the votes in `feedback`. `runs` are models that
    the same fix made with other seeds, `rivals` what other fixes made. Words are scored by `method`, or by
    `leave_one_out` where a model cannot be looked into: it is the default too, for local gradients of a model that is
    sure of itself are nearly nothing, before or after, whatever it leans on. Without `before` it is a report of one
    model: nothing has changed, and expectations are all there is to judge.
    """
    expected = check_expectations(expectations)
    models = [*([] if before is None else [before]), after, *runs, *(model for _, model in rivals)]
    given, unlabelled = _labelled(sets, models)
    settled, undecided = settle(resolve(feedback).values())
    votes = [one.says for one in settled if isinstance(one.says, WordVote)]
    stressed = stress_sets(given, feedback, seed)
    everything = given | stressed
    compared = [model for model in (before, after) if model is not None]
    explaining = Explaining.by(method, compared, seed=seed, cache=cache, cancelled=cancelled)
    chosen = _Chosen.of(given, votes, expected, after.labels, seed)
    n_texts = sum(map(len, everything.values()))
    reserved = chosen.size(before is not None)
    bar = _Bar(progress, len(models) * n_texts + len(compared) * reserved, cancelled)
    how = {"cache": cache, "cancelled": cancelled}
    answers = [_ask(model, everything, after.labels, how | {"progress": bar.part(n_texts)}) for model in models]
    scored = [
        Scored(name, examples, after.labels, [lines[name] for lines in answers], len(compared) - 1, len(runs))
        for name, examples in everything.items()
    ]
    measures = []
    for number, one in enumerate(scored):
        bar.check()
        measures += one.measures(np.random.default_rng([seed, number]), sliced=one.name in given)
    own = scored[: len(given)]
    changed = _Changed.of(own, before, after)
    bars = [bar.part(reserved) for _ in compared]
    why = _explain(compared, chosen, changed, scored=own, explaining=explaining, bars=bars)
    findings = Findings(
        sets=tuple(given),
        measures=tuple(measures),
        shares=why.shares(chosen),
        fixed=None if before is None else {name: changed.n_fixed[name] for name in given},
        broken=None if before is None else {name: changed.n_broken[name] for name in given},
        moved=why.moved(),
    )
    effects = why.effects(chosen)
    report = Report(
        before=None if before is None else before.revision,
        after=after.revision,
        measures=tuple(measures),
        expectations=tuple(judge(one, findings) for one in expected),
        fixed=tuple(why.of(change) for change in changed.fixed),
        broken=tuple(why.of(change) for change in changed.broken),
        n_fixed=changed.n_fixed.total(),
        n_broken=changed.n_broken.total(),
        words=tuple(effects),
        moved=findings.moved,
        rivals=_rivals(scored, set(given), fix, [recipe for recipe, _ in rivals], seed),
        recipe=fix,
        method=explaining.recipe,
    )
    bar.finish()
    unmeasured = 0 if before is None else len(votes) - len(effects)
    told = Circumstances(unlabelled, undecided, unmeasured, tuple(stressed), explaining.note)
    return replace(report, notes=notes_of(report, told))


# Asking the models


def _labelled(
    sets: Mapping[str, Sequence[Example]], models: Sequence[Classifier]
) -> tuple[dict[str, list[Example]], int]:
    """The examples with labels that the models know, and how many have none."""
    labels = models[0].labels
    if any(set(model.labels) != set(labels) for model in models):
        raise BadOption("The models do not have the same labels, so they cannot be compared.")
    if not sets:
        raise BadData("There is no set of examples to verify on. Give at least one, such as sets={'test': examples}.")
    given = {name: [example for example in examples if example.label is not None] for name, examples in sets.items()}
    for name, examples in given.items():
        if not examples:
            raise BadData(f"The set {name!r} has no labelled examples, so nothing can be verified on it.")
        if strange := sorted({str(example.label) for example in examples} - set(labels)):
            raise BadData(
                f"The set {name!r} has the label {strange[0]!r}, and the model does not: it knows {', '.join(labels)}. "
                "Say which is which when reading the data: read(..., labels={...})."
            )
    return given, sum(map(len, sets.values())) - sum(map(len, given.values()))


class _Bar:
    """One bar for all of the work, of which the parts take their share one after the other."""

    def __init__(self, progress: Progress | None, total: int, cancelled: Callable[[], bool] | None) -> None:
        self._progress, self._total, self._cancelled, self._at = progress, total, cancelled, 0

    def part(self, size: int) -> Progress | None:
        """Progress of the next so many units of the whole, whatever unit it is told in."""
        tell, start, whole = self._progress, self._at, self._total
        self._at += size
        return None if tell is None else lambda done, total: tell(start + size * done // max(1, total), whole)

    def check(self) -> None:
        """Stop here if that was asked for."""
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("Verifying was stopped; no report was made.")

    def finish(self) -> None:
        """All is done."""
        self.check()
        if self._progress is not None:
            self._progress(self._total, self._total)


def _ask(
    model: Classifier, sets: Mapping[str, Sequence[Example]], labels: Sequence[str], how: dict[str, Any]
) -> dict[str, Floats]:
    """Probabilities of the labels, in the given order, for every example of every set."""
    texts = [example for examples in sets.values() for example in examples]
    columns = [model.labels.index(label) for label in labels]
    lines = np.exp(model.log_probs(texts, **how))[:, columns]
    ends = np.cumsum([len(examples) for examples in sets.values()])[:-1]
    return dict(zip(sets, np.split(lines, ends), strict=True))


# What changed


@dataclass(frozen=True)
class _Changed:
    """The examples that became right and wrong: those to be shown, and how many there are in each set."""

    fixed: list[Change] = field(default_factory=list)
    broken: list[Change] = field(default_factory=list)
    n_fixed: Counter[str] = field(default_factory=Counter)
    n_broken: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, scored: Iterable[Scored], before: Classifier | None, after: Classifier) -> _Changed:
        """Those first about which the model is surest now."""
        if before is None:
            return cls()
        changes = [change for one in scored for change in one.changes(before, after)]
        changes.sort(key=lambda change: -change.after.confidence)
        fixed = [change for change in changes if change.after.label == change.example.label]
        broken = [change for change in changes if change.after.label != change.example.label]
        counts = [Counter(change.data for change in some) for some in (fixed, broken)]
        return cls(fixed[:_SHOWN], broken[:_SHOWN], *counts)


def _rivals(
    scored: Sequence[Scored], given: set[str], fix: Recipe | None, recipes: Sequence[Recipe], seed: int
) -> tuple[Rival, ...]:
    """The accuracy of each rival on every set, and whether the fix beats it."""
    found = []
    names = short_names([fix, *recipes])[1:]
    for number, (recipe, name) in enumerate(zip(recipes, names, strict=True)):
        at = number - len(recipes)  # they are the last of the models
        rngs = [np.random.default_rng([seed, number, n]) for n in range(len(scored))]
        measures, leads = [], {}
        for one, rng in zip(scored, rngs, strict=True):
            measures.append(one.rival(len(one.lines) + at, rng))
            leads[one.name] = accuracy_differences(one.right[one.after], one.right[at], rng)
        note = f"The fix is {_against([lead for data, lead in leads.items() if data in given], name)}"
        if stressed := [lead for data, lead in leads.items() if data not in given]:
            note += f"; on the sets made from votes it is {_against(stressed)}"
        found.append(Rival(recipe, tuple(measures), f"{note}."))
    return tuple(found)


def _against(leads: Sequence[Floats], name: str = "") -> str:
    """Better, worse or neither, by the mean over the sets of the difference in accuracy."""
    mean = np.mean(leads, axis=0)
    low, high = np.percentile(mean[1:], (2.5, 97.5))
    measured = f"{100 * mean[0]:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"
    if low <= 0 <= high:
        return f"not distinguishable{f' from {name}' if name else ''} ({measured})"
    return f"{'better' if low > 0 else 'worse'}{f' than {name}' if name else ''} by {measured}"


# What the explanations say


@dataclass(frozen=True)
class _Chosen:
    """The texts to explain besides those that changed: where votes are measured, and where nobody voted."""

    votes: Sequence[tuple[WordVote, list[Place]]]
    unvoted: Sequence[Example]
    asked: Mapping[tuple[str, str | None], list[Place]]  # words, with labels, that expectations name

    @classmethod
    def of(
        cls,
        sets: Mapping[str, Sequence[Example]],
        votes: Sequence[WordVote],
        expected: Sequence[Expected],
        labels: Sequence[str],
        seed: int,
    ) -> _Chosen:
        different = shuffled(sets, seed)
        usable = [vote for vote in votes if vote.label in labels]
        first = sorted(usable, key=lambda vote: vote.example is not None)[:MOST_VOTES]  # votes everywhere touch most
        asked = [(word, label) for word, label in words_of(expected) if label is None or label in labels]
        places = places_of_words([word for word, _ in asked], different, TEXTS)
        return cls(
            places_of_votes(first, different, (example for examples in sets.values() for example in examples)),
            without_words([vote.word for vote in votes], different),
            {(word, label): places[visible_form(word)] for word, label in asked},
        )

    def size(self, compared: bool) -> int:
        """How many explanations of each model to expect, about."""
        asked = sum(map(len, self.asked.values()))
        return asked + (sum(len(at) for _, at in self.votes) + len(self.unvoted) + 2 * _SHOWN if compared else 0)


@dataclass(frozen=True)
class _Why:
    """Explanations by the models before and after, and what follows from them."""

    before: Found
    after: Found
    unvoted: Sequence[Wanted]
    asked: Mapping[tuple[str, str | None], Sequence[tuple[Wanted, Place]]]

    def of(self, change: Change) -> Change:
        """A change with its reasons, for the label that the example should have."""
        key = change.example.text_hash, str(change.example.label)
        why = [replace(found[key], example=change.example.id) for found in (self.before, self.after)]
        return replace(change, why_before=why[0], why_after=why[1])

    def effects(self, chosen: _Chosen) -> list[WordEffect]:
        """What became of the votes that can be measured."""
        if not self.before:
            return []
        found = [effect(vote, places, self.before, self.after) for vote, places in chosen.votes]
        return [one for one in found if one is not None]

    def moved(self) -> float | None:
        """How alike explanations of texts without a voted word are, before and after."""
        keys = [(example.text_hash, label) for example, label in self.unvoted]
        return likeness((self.before[key], self.after[key]) for key in keys)

    def shares(self, chosen: _Chosen) -> dict[tuple[str, str | None], tuple[float, int]]:
        """Mean share of each word that an expectation names, and on how many texts."""
        found = {}
        for key in chosen.asked:
            weights = [weight(self.after[e.text_hash, label], at) for (e, label), (_, at) in self.asked[key]]
            if read := [share for share, _ in filter(None, weights)]:
                found[key] = float(np.mean(read)), len(read)
        return found


def _explain(
    models: Sequence[Classifier],
    chosen: _Chosen,
    changed: _Changed,
    *,
    scored: Sequence[Scored],
    explaining: Explaining,
    bars: Sequence[Progress | None],
) -> _Why:
    """All that is to be explained, in one go for each model."""
    said = {
        example.text_hash: tuple(one.labels[int(answers.predicted[n])] for answers in one.answers[: one.after + 1])
        for one in scored
        for n, example in enumerate(one.examples)
    }
    asked = {
        (word, label): [((example, label or said[example.text_hash][-1]), (example, at)) for example, at in places]
        for (word, label), places in chosen.asked.items()
    }
    voiced = [wanted for places in asked.values() for wanted, _ in places]
    if len(models) == 1:
        return _Why({}, explaining(models[0], voiced, bars[0]), [], asked)
    unvoted = [(example, said[example.text_hash][0]) for example in chosen.unvoted]
    both = [(change.example, str(change.example.label)) for change in (*changed.fixed, *changed.broken)]
    both += [(example, vote.label) for vote, places in chosen.votes for example, _ in places] + unvoted
    found = explaining(models[0], both, bars[0]), explaining(models[1], [*both, *voiced], bars[1])
    return _Why(*found, unvoted, asked)
