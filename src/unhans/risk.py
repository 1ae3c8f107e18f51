"""How risky is it to let this model answer? People rate its flips; this turns their ratings into a number with a range.

A flip is a small rewrite that changes what the model says. Where people agree with the new answer, the rewrite was a
real change of meaning; where they do not, the model would be fooled by it. The risk around an example, as one person
sees it, is the mean of 5 − `agrees` over the flips of it that this person rated: 0 to 4. The risk of the model is the
mean of these, weighted by the numbers of flips: the mean over all ratings. (SparCAssist, Zhang et al. 2022, §2.2.)

The paper leaves open how many ratings are enough. `assess` answers it for an interval of a chosen width. Only numpy and
the nouns are needed here: no model is asked.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadData, BadOption
from unhans.feedback import agreement_by_kind, numbers_of, resolve
from unhans.types import (
    Counterfactual,
    Feedback,
    FlipRating,
    LocalRisk,
    RatedQuestion,
    Recipe,
    Risk,
    RiskChange,
    RiskSlice,
)

WORST = 4.0  # 5 − 1: everybody disagrees with everything
NARROWEST = 0.01  # interval to wish for: the ratings for less could not be counted
FEWEST = 10  # ratings that an interval is made of at least,
FEWEST_EXAMPLES = 5  # and the texts that they must be about
_FEW_PEOPLE = 5  # fewer hardly tell how people differ
_RESAMPLES = 1000
_CELLS = 1_000_000  # numbers of a resample that are in memory at once
_LEVEL = 0.95

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
By = Literal["label", "after", "group", "generator", "author", "outcome"]
Question = Literal["plausible", "meaningful", "agrees"]


@dataclass(frozen=True, slots=True)
class _Rated:
    """One rating that counts, and the flip it is about."""

    author: str
    id: str  # of the flip
    flip: Counterfactual
    disagrees: int  # 5 − agrees


def assess(
    ratings: Iterable[Feedback],
    flips: Mapping[str, Counterfactual],
    *,
    groups: Mapping[str, str | None] | None = None,
    width: float = 0.5,
    seed: int = 0,
) -> Risk:
    """The risk of one revision of a model, from people's ratings of its flips (by id).

    `ratings` is the log of feedback, or what stands of it (whoever leaves stale entries out, leaves them out before).
    Entries of other kinds are passed over; ratings of flips that are not among `flips` do not count, and their number
    is told. All `flips` must be of one revision. `groups` tells the group of an example. `width` is that of the 95 %
    interval you wish for: `Risk.more` says how many more ratings it takes.
    """
    _check_width(width)
    revisions = {flip.before.revision for flip in flips.values()}
    if len(revisions) > 1:
        raise BadData(
            f"These flips are of {len(revisions)} revisions of the model, and a risk is that of one. Nothing was "
            "assessed; give the flips of one revision."
        )
    opinions = [one for one in resolve(ratings).values() if isinstance(one.says, FlipRating)]
    known = [one for one in opinions if _flip_of(one) in flips]
    rated = [
        _Rated(one.author, _flip_of(one), flips[_flip_of(one)], 5 - agrees)
        for one in known
        if (agrees := numbers_of(one.says).get("agrees")) is not None
    ]
    cells = _Cells.of(_local(rated))
    found = _interval(cells, len(rated), seed) if rated else _Interval()
    plan = _plan(found, cells, len(rated), width)
    return Risk(
        revision=next(iter(revisions), None),
        value=_mean([one.disagrees for one in rated]),
        low=found.low,
        high=found.high,
        **_counts(rated),
        not_applicable=len(known) - len(rated),
        unknown=len(opinions) - len(known),
        width=float(width),
        more=plan.more,
        more_people=plan.people,
        design=_design(found, rated),
        note=" ".join(_notes(rated, found, plan, width)),
        questions=_questions(known, seed),
        slices=_slices(rated, groups or {}, seed),
        local=tuple(sorted(_local(rated), key=lambda one: (-one.value, one.example, one.author))),
        recipe=Recipe("risk", "assess", (("resamples", _RESAMPLES), ("width", float(width))), seed),
    )


def compare(before: Risk, after: Risk, *, seed: int = 0) -> RiskChange:
    """The change of the risk between two revisions, with its 95 % interval.

    Texts and people are drawn for both at once. So a text that was rated before and after is compared with itself, and
    that one person is stricter than another does not count as a change; what was rated only once is compared with all.
    If nobody rated before and after, the people cannot be told from the model, and there is no interval.
    """
    cells = _Cells.of(before.local, after.local)
    enough = all(one.n >= FEWEST and one.examples >= FEWEST_EXAMPLES for one in (before, after))
    people = {one.author for one in before.local} & {one.author for one in after.local}
    told = enough and bool(people)
    found = _interval(cells, min(before.n, after.n), seed, bounds=(-WORST, WORST)) if told else _Interval()
    shared = {one.example for one in before.local} & {one.example for one in after.local}
    notes = [] if enough else [f"An interval takes {FEWEST} ratings about {FEWEST_EXAMPLES} texts, before and after."]
    notes += [found.note] if found.note else []
    if before.n and after.n and cells.people > 1 and len(people) < _FEW_PEOPLE:
        notes.append(_few_shared(len(people)))
    if before.n and after.n and not shared:
        notes.append("No text was rated before and after: part of the change may be that of the texts.")
    return RiskChange(
        before=before.value,
        after=after.value,
        low=found.low,
        high=found.high,
        shared=len(shared),
        n_before=before.n,
        n_after=after.n,
        revisions=(before.revision, after.revision),
        note=" ".join(notes),
        recipe=Recipe("risk", "compare", (("resamples", _RESAMPLES),), seed),
    )


def _few_shared(people: int) -> str:
    if not people:
        return "Nobody rated before and after: the change may be that of the people, so there is no interval."
    who = "1 person" if people == 1 else f"{people} people"
    return f"Only {who} rated before and after: part of the change may be that of the people."


def _check_width(width: float) -> None:
    if not NARROWEST <= width < math.inf:
        raise BadOption(
            f"The width of an interval is a number from {NARROWEST:g} on, not {width}; risks go from 0 to {WORST:g}."
        )


def _flip_of(entry: Feedback) -> str:
    assert isinstance(entry.says, FlipRating)
    return entry.says.counterfactual


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _counts(rated: Sequence[_Rated]) -> dict[str, int]:
    return {
        "n": len(rated),
        "flips": len({one.id for one in rated}),
        "examples": len({one.flip.example for one in rated}),
        "people": len({one.author for one in rated}),
    }


def _local(rated: Iterable[_Rated]) -> list[LocalRisk]:
    """The paper's first step: the risk around an example, for each person who rated flips of it."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in rated:
        found[one.flip.example, one.author].append(one.disagrees)
    return [LocalRisk(example, author, sum(v) / len(v), len(v)) for (example, author), v in found.items()]


# How far chance could have moved it


@dataclass(frozen=True)
class _Cells:
    """Sums of disagreement by text and person; of a comparison, those before count negative."""

    example: Ints
    person: Ints
    totals: Floats
    counts: Floats
    after: NDArray[np.bool_]  # of a comparison; True everywhere where there is nothing to compare with

    @classmethod
    def of(cls, *sides: Sequence[LocalRisk]) -> _Cells:
        """Of one set of local risks, or of those before and those after."""
        rows = [(one, number == len(sides) - 1) for number, side in enumerate(sides) for one in side]
        counts = np.array([one.n for one, _ in rows], dtype=np.float64)
        return cls(
            _numbered([one.example for one, _ in rows]),
            _numbered([one.author for one, _ in rows]),
            counts * np.array([one.value for one, _ in rows], dtype=np.float64),
            counts,
            np.array([after for _, after in rows], dtype=bool),
        )

    @property
    def examples(self) -> int:
        """How many texts there are."""
        return int(self.example.max(initial=-1)) + 1

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.person.max(initial=-1)) + 1

    def values(self, weights: Floats) -> Floats:
        """The mean, or the mean after less that before, with each cell so many times; NaN where there is none."""
        found = self._mean(weights, self.after)
        return found if self.after.all() else found - self._mean(weights, ~self.after)

    def _mean(self, weights: Floats, which: NDArray[np.bool_]) -> Floats:
        sums, counts = weights @ (self.totals * which), weights @ (self.counts * which)
        found: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return found

    def pulls(self) -> Floats:
        """How far each cell pulls the value away from what it would be if the cell were like the others."""
        all_of_it, found = np.ones((1, len(self.counts))), np.zeros(len(self.counts))
        for which, sign in ((self.after, 1.0), (~self.after, -1.0)):
            if which.any():
                mean = self._mean(all_of_it, which)[0]
                found += which * sign * (self.totals - mean * self.counts) / (self.counts @ which)
        return found

    def draws(self, rng: np.random.Generator) -> Floats:
        """The value of each resample: texts drawn with replacement, and people, each with all that belongs to them."""
        found = []
        size = len(self.counts) + self.examples + self.people
        for start in range(0, _RESAMPLES, max(1, _CELLS // size)):
            rows = min(_RESAMPLES - start, max(1, _CELLS // size))
            texts = _drawn(rng, rows, self.examples)
            people = _drawn(rng, rows, self.people) if self.people > 1 else np.ones((rows, 1))
            found.append(self.values(texts[:, self.example] * people[:, self.person]))
        values = np.concatenate(found)
        return values[np.isfinite(values)]


def _numbered(names: Sequence[str]) -> Ints:
    places = {name: number for number, name in enumerate(sorted(set(names)))}  # the order of the ratings does not count
    return np.array([places[name] for name in names], dtype=np.int64)


def _drawn(rng: np.random.Generator, rows: int, n: int) -> Floats:
    """How often each of n was drawn, n times with replacement."""
    drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


@dataclass(frozen=True)
class _Interval:
    """An interval, and what its width is made of; None where there is none."""

    low: float | None = None
    high: float | None = None
    wide: float = 0.0  # before it is cut at the ends of the scale
    texts: float = 0.0  # variance of the value because other texts could have been rated
    people: float = 0.0  # the same for other people
    note: str = ""


def _interval(cells: _Cells, n: int, seed: int, bounds: tuple[float, float] = (0.0, WORST)) -> _Interval:
    """Where the value would lie in 95 of 100 studies with other texts and other people.

    Ratings of one text are alike, and so are those of one person, so that ratings cannot be drawn one by one. Texts
    are drawn with replacement and people too, and a rating counts as often as its text times its person was drawn
    (the pigeonhole bootstrap: Owen 2007). That counts the noise of single ratings three times over, and drawing from
    very few people shows too little of how people differ. So the draws say how much of the interval lies on either
    side, and its width comes from the variance clustered both ways (Cameron, Gelbach and Miller 2011), with Student's
    t for the number of texts and people that it rests on (Satterthwaite).
    """
    texts, people, alone = _variances(cells)
    if n < FEWEST or cells.examples < FEWEST_EXAMPLES:
        return _Interval(texts=texts, people=people, note=_too_few(n, cells.examples))
    if texts + people < 1e-12:
        return _Interval(note=_ALIKE)
    value = float(cells.values(np.ones((1, len(cells.counts))))[0])
    moved = cells.draws(np.random.default_rng(seed)) - value
    below, above = np.abs(np.quantile(moved, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)))
    wide = _width(texts, people, cells.examples, cells.people)
    low, high = value - wide * below / (below + above), value + wide * above / (below + above)
    found = float(max(bounds[0], low)), float(min(bounds[1], high))
    return _Interval(*found, wide, texts, people, _ONE_PERSON if alone else "")


_ALIKE = "The ratings do not vary, so they do not tell how far those of others would be from them."
_ONE_PERSON = "All ratings are one person's: the interval is about other texts, not about other people."


def _variances(cells: _Cells) -> tuple[float, float, bool]:
    """Of the value: what other texts would change, what other people would besides; whether there is one person."""
    pulls = cells.pulls()
    texts = _clustered(pulls, cells.example)
    if cells.people < 2:
        return texts, 0.0, True
    both = _clustered(pulls, cells.example * cells.people + cells.person)
    # noise of single ratings is in both: taken out once, but never so far that either alone would be more
    return texts, max(_clustered(pulls, cells.person) - min(both, texts), 0.0), False


def _clustered(pulls: Floats, cluster: Ints) -> float:
    """The variance of a mean of clusters that were drawn independently."""
    _, numbers = np.unique(cluster, return_inverse=True)
    sums = np.bincount(numbers, weights=pulls)
    return float((sums**2).sum() * len(sums) / (len(sums) - 1)) if len(sums) > 1 else 0.0


def _width(texts: float, people: float, examples: float, persons: float) -> float:
    """From end to end: standard errors of a normal value, and more of them where it rests on few texts or people."""
    parts = texts**2 / (examples - 1) + (people**2 / (persons - 1) if people else 0.0)
    freedom = (texts + people) ** 2 / parts
    from scipy.special import stdtrit  # half a second to import, which a server has no use for at its start

    return 2 * math.sqrt(texts + people) * float(stdtrit(freedom, (1 + _LEVEL) / 2))


def _too_few(n: int, examples: int) -> str:
    texts = "1 text" if examples == 1 else f"{examples} texts"
    return (
        f"Too few ratings: {n} of flips of {texts}. An interval takes {FEWEST} ratings about {FEWEST_EXAMPLES} texts."
    )


# How many more ratings


@dataclass(frozen=True)
class _Plan:
    """What it takes until the interval is as narrow as wished; None: cannot be reached so, or cannot be told."""

    more: int | None = None
    people: int | None = None
    at_best: float = 0.0  # the width that no number of ratings by the same people gets below


def _plan(found: _Interval, cells: _Cells, n: int, width: float) -> _Plan:
    """More ratings by the same people, or more people.

    The variance of the value is a part that new texts make smaller, in proportion to their number, and one that only
    other people do. The first answer leaves the second part as it is, and Student's t too. The second makes both
    smaller: people who rate as many flips as those so far, of texts of their own.
    """
    if found.low is None or found.high is None:
        return _Plan()
    if found.high - found.low <= width:
        return _Plan(0, 0)
    errors = found.wide / math.sqrt(found.texts + found.people)  # from end to end
    at_best = errors * math.sqrt(found.people)
    left = (width / errors) ** 2 - found.people
    more = max(1, math.ceil(n * found.texts / left - n)) if left > 0 else None
    return _Plan(more, _people(found, cells, width), at_best)


def _people(found: _Interval, cells: _Cells, width: float) -> int:
    """The smallest number of more people with which the formula of the interval gives the width, or less."""

    def wide(more: int) -> float:
        times = 1 + more / cells.people
        return _width(found.texts / times, found.people / times, cells.examples * times, cells.people * times)

    high = 1
    while wide(high) > width:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wide(middle) <= width else (middle, high)
    return high


def _design(found: _Interval, rated: Sequence[_Rated]) -> float | None:
    """How many times the variance of the value is that of as many unrelated ratings."""
    if found.low is None:
        return None
    return (found.texts + found.people) * len(rated) / float(np.var([one.disagrees for one in rated], ddof=1))


def _notes(rated: Sequence[_Rated], found: _Interval, plan: _Plan, width: float) -> list[str]:
    if not rated:
        return ["Nobody has rated how far these predictions are right."]
    notes = [found.note] if found.note else []
    people = len({one.author for one in rated})
    if found.low is not None and 1 < people < _FEW_PEOPLE:
        notes.append(f"Only {people} people have rated: how far others would differ from them is a rough guess.")
    if plan.more == 0:
        notes.append(f"The interval is no wider than {width:g} already.")
    elif plan.more is not None:
        notes.append(f"About {plan.more:,} more ratings, of flips of other texts, make the interval {width:g} wide.")
    elif plan.people is not None:
        notes.append(
            "These people differ so much that however many flips they rate, the interval stays "
            f"{min(plan.at_best, WORST):.2g} wide; with about {plan.people:,} more people who rate as much, it becomes "
            f"{width:g}."
        )
    return notes


# Parts and questions


def _slices(rated: Sequence[_Rated], groups: Mapping[str, str | None], seed: int) -> tuple[RiskSlice, ...]:
    """Each part of the ratings, by what it is a part of; the highest risk first."""
    keys: dict[By, Callable[[_Rated], str | None]] = {
        "label": lambda one: one.flip.before.label,
        "after": lambda one: one.flip.after.label,
        "group": lambda one: groups.get(one.flip.example),
        "generator": lambda one: one.flip.recipe.name,
        "author": lambda one: one.author,
        "outcome": lambda one: "flip" if one.flip.flips else "no flip",
    }
    found = []
    for by, key in keys.items():
        parts: dict[str | None, list[_Rated]] = defaultdict(list)
        for one in rated:
            parts[key(one)].append(one)
        if set(parts) != {None}:  # no example has a group
            made = [_slice(by, name, part, seed) for name, part in parts.items()]
            found += sorted(made, key=lambda one: (-one.value, one.name or ""))
    return tuple(found)


def _slice(by: By, name: str | None, rated: Sequence[_Rated], seed: int) -> RiskSlice:
    found = _interval(_Cells.of(_local(rated)), len(rated), seed)
    return RiskSlice(
        by, name, float(np.mean([one.disagrees for one in rated])), found.low, found.high, **_counts(rated)
    )


def _questions(opinions: Sequence[Feedback], seed: int) -> tuple[RatedQuestion, ...]:
    """What was answered to each of the three questions, and how far people agree on it."""
    agreed = {one.kind: one for one in agreement_by_kind(opinions, seed=seed)}
    found = []
    for question in get_args(Question):
        given = [numbers[question] for one in opinions if question in (numbers := numbers_of(one.says))]
        one = agreed[f"flip_{question}"]
        found.append(
            RatedQuestion(
                question, _mean(given), len(given), one.alpha, one.low, one.high, one.questions, note=one.note
            )
        )
    return tuple(found)
