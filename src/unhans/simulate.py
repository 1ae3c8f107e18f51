"""Simulated people: gold highlights or a word list stand in for those who would give feedback (XMD §5).

One **judgement** is what a person looks at in one go: a text with its explanation, or a word of the ranking. It takes
time, and so many minutes allow so many judgements. What comes out is feedback like any other, about this revision; the
same arguments always give the same, and more minutes only add to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from scipy import stats

from unhans.attributions import attribute
from unhans.errors import BadData, BadOption, Cancelled
from unhans.feedback import subject_of, value_of
from unhans.fixes import DEFAULT, mend
from unhans.model import Classifier, TransformerClassifier
from unhans.scoring import Progress, ScoreCache
from unhans.task import rank_words, suspects
from unhans.text import Words, visible_form
from unhans.training import Watch, accuracy
from unhans.types import Answer, Attribution, Example, Feedback, Review, Span, Suspects, WordVote

Policy = Literal["random", "xmd", "suspects"]
"""What is looked at first: anything; XMD's order (texts as they come, words by mean score); the worst suspects."""

Way = Literal["judging", "labelling"]
"""Whether people correct the model's explanation, or mark the text without seeing one."""

SECONDS: Mapping[Way, float] = {"judging": 60.0, "labelling": 110.0}  # a text, as XMD measured with two people
_START = datetime(2023, 1, 1, tzinfo=UTC)  # of the simulated clock
_EXPLAINED = 2000  # examples that words are ranked by and suspects found in, at most
_CANDIDATES = 200  # words that suspects are chosen from
_STEPS = 100  # of progress for each training of a curve

Due = Literal["raise", "lower"] | None


@dataclass(frozen=True)
class _Look:
    """What one judgement is about: words, and the vote that gold asks for on each (None: it is right as it is)."""

    label: str
    words: tuple[tuple[str, int | None, Due], ...]  # word, position, vote
    example: Example | None = None  # None: about a word everywhere

    @property
    def key(self) -> int:
        """A number of its own, so that neither order nor company decides who errs where."""
        told = "\x00".join(word for word, _, _ in self.words) if self.example is None else self.example.text_hash
        return int(blake2b(f"{self.label}\x00{told}".encode(errors="surrogatepass"), digest_size=8).hexdigest(), 16)


@dataclass(frozen=True)
class _Crew:
    """Who answers: how many people, how fast, how badly."""

    revision: str
    author: str
    people: int
    seconds: float
    error_rate: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1:
            raise BadOption(f"error_rate must lie between 0 and 1, not {self.error_rate}.")
        if not 0 < self.seconds < float("inf") or self.people < 1:
            raise BadOption("seconds_per_judgement must be more than 0, and people at least 1.")

    def judgements(self, minutes: float | None, n: int | None) -> int | None:
        """How many judgements the budget allows; None: as many as there is something to look at."""
        if (minutes is not None and not 0 <= minutes < float("inf")) or (n is not None and n < 0):
            raise BadOption("minutes and n must be 0 or more.")
        # in whole judgements of each person; a hair is added so that 1.1 minutes are 66 seconds
        timed = [] if minutes is None else [self.people * int(minutes * 60 / self.seconds + 1e-9)]
        return min([*timed, *([] if n is None else [n])], default=None)

    def answers(self, looks: Sequence[_Look]) -> list[Feedback]:
        """What they say, judgement by judgement; people take turns, and all work at once."""
        log: list[Feedback] = []
        waited = [0.0] * self.people  # time that went into words on which there was nothing to say
        for number, look in enumerate(looks):
            person, turn = number % self.people, number // self.people + 1
            said = list(self._said(look))
            waited[person] += self.seconds
            for answer in said:
                log.append(self._entry(answer, look, person, turn, waited[person] / len(said)))
            waited[person] = 0.0 if said else waited[person]
        return log

    def _said(self, look: _Look) -> Iterable[Answer]:
        errs = np.random.default_rng([self.seed, look.key]).random(len(look.words)) < self.error_rate
        id_ = look.example.id if look.example is not None else None
        for (word, position, due), wrong in zip(look.words, errs, strict=True):
            vote = _opposite(due) if wrong else due
            if vote is not None:
                yield WordVote(word, look.label, vote, id_, position)
        if id_ is not None:
            yield Review(id_, "done")

    def _entry(self, answer: Answer, look: _Look, person: int, turn: int, seconds: float) -> Feedback:
        author = self.author if self.people == 1 else f"{self.author}-{person + 1}"
        told = (self.revision, author, str(self.seed), subject_of(answer), value_of(answer))
        id_ = blake2b("\x00".join(told).encode(errors="surrogatepass"), digest_size=8).hexdigest()
        at = (_START + timedelta(seconds=turn * self.seconds)).isoformat(timespec="seconds")
        text_hash = look.example.text_hash if look.example is not None else None
        return Feedback(f"simulated-{id_}", answer, author, at, self.revision, text_hash, seconds=seconds)


def _opposite(due: Due) -> Literal["raise", "lower"]:
    """A wrong answer: the other vote, or a vote against a word that was right as it is."""
    return "raise" if due == "lower" else "lower"


def simulate(
    classifier: Classifier,
    train: Sequence[Example],
    *,
    gold: Literal["highlights"] | Sequence[str] = "highlights",
    way: Way = "judging",
    policy: Policy = "xmd",
    minutes: float | None = None,
    n: int | None = None,
    seconds_per_judgement: float | None = None,
    error_rate: float = 0.0,
    people: int = 1,
    only_correct: bool = True,
    top: int | None = None,
    method: str = "input_x_gradient",
    seed: int = 0,
    author: str = "simulated",
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
) -> list[Feedback]:
    """The feedback that people would give who know the `gold`, in so many minutes or `n` judgements.

    With `gold="highlights"` they look at one explained text after the other (correctly predicted ones only, unless told
    otherwise). Of the `top` words by absolute score (None: as many as are highlighted) those outside the highlights are
    lowered; highlighted words that are not among them, or speak against the label, are raised. With a list of words
    they go through the ranking word by word and lower those on the list, everywhere.

    `way="labelling"` is how highlights are made without a model: every highlighted word of a text is raised, every
    other lowered, in 110 seconds a text instead of 60. Each answer, also that a word is right as it is, is wrong with
    probability `error_rate`. `people` share the work, and `minutes` are those of each.
    """
    seconds = _seconds(way) if seconds_per_judgement is None else seconds_per_judgement
    crew = _Crew(classifier.revision, author, people, seconds, error_rate, seed)
    most = crew.judgements(minutes, n)
    how = {"progress": progress, "cancelled": cancelled, "cache": cache}
    view = _View(classifier, tuple(train), gold, policy, only_correct, top, method, seed, how)
    return crew.answers(view.looks(way, most))


def _seconds(way: Way) -> float:
    if way not in SECONDS:
        raise BadOption(f"way must be one of {', '.join(SECONDS)}, not {way!r}.")
    return SECONDS[way]


@dataclass(frozen=True)
class _View:
    """What people are shown, in which order."""

    classifier: Classifier
    train: tuple[Example, ...]
    gold: Literal["highlights"] | Sequence[str]
    policy: Policy
    only_correct: bool
    top: int | None
    method: str
    seed: int
    how: dict[str, Any]

    def __post_init__(self) -> None:
        if self.policy not in ("random", "xmd", "suspects"):
            raise BadOption(f"policy must be one of random, xmd, suspects, not {self.policy!r}.")
        if isinstance(self.gold, str) and self.gold != "highlights":
            raise BadOption("gold is 'highlights', or a list of words.")
        if self.top is not None and self.top < 1:
            raise BadOption(f"top must be at least 1, not {self.top}.")

    def looks(self, way: Way, most: int | None) -> list[_Look]:
        """The first judgements, as many as are allowed."""
        if way == "labelling":
            return self._labelled(most)
        return self._texts(most) if self.gold == "highlights" else self._words(most)

    def _labelled(self, most: int | None) -> list[_Look]:
        if self.gold != "highlights" or self.policy == "suspects":
            raise BadOption(
                "Labelling does not look at the model: it needs gold='highlights', and the policy random or xmd."
            )
        found = []
        for example in self._ordered(self._highlighted(), most):
            marked = _marked(example)
            strings = Words(example).strings
            votes: list[tuple[str, int | None, Due]] = [
                (word, number, "raise" if number in marked else "lower") for number, word in enumerate(strings)
            ]
            found.append(_Look(str(example.label), tuple(votes), example))
        return found

    def _texts(self, most: int | None) -> list[_Look]:
        shown = self._highlighted()
        if self.only_correct:
            best = self.classifier.log_probs(shown, **self.how).argmax(axis=1)
            shown = [e for e, number in zip(shown, best, strict=True) if e.label == self.classifier.labels[number]]
            if not shown:
                raise BadData("None of the highlighted examples is predicted right; only_correct=False shows others.")
        chosen = self._ordered(shown, most)
        return [self._look(e, one) for e, one in zip(chosen, self._explained(chosen), strict=True)]

    def _look(self, example: Example, one: Attribution) -> _Look:
        """The strongest and the highlighted words of a text, and which of them the model should use otherwise."""
        read = [number for number in range(len(one.words)) if number not in one.unread]
        marked = _marked(example) & set(read)
        strongest = sorted(read, key=lambda number: -abs(one.scores[number]))
        used = set(strongest[: len(marked) if self.top is None else self.top])
        votes: list[tuple[str, int | None, Due]] = []
        for number in sorted(used | marked):
            helps = number in used and (one.scores[number] > 0 or not one.terms.signed)
            due: Due = "lower" if number not in marked else None if helps else "raise"
            votes.append((one.words[number], number, due))
        return _Look(one.label, tuple(votes), example)

    def _words(self, most: int | None) -> list[_Look]:
        if not self.train:
            raise BadData("There are no examples to rank the words of.")
        listed = {visible_form(word) for word in self.gold}
        chosen = self._some(self.train)
        found = attribute(self.classifier, chosen, method=self.method, seed=self.seed, **self.how)
        ranked = self._ranked(chosen, found)
        if self.policy == "suspects":
            first = {row.word: row.label for row in self._suspects(chosen, found).words}
            ranked = first | {word: label for word, label in ranked.items() if word not in first}
        order = list(ranked)
        if self.policy == "random":
            order = [order[number] for number in np.random.default_rng(self.seed).permutation(len(order))]
        return [_Look(ranked[word], ((word, None, "lower" if word in listed else None),)) for word in order[:most]]

    def _ranked(self, examples: Sequence[Example], found: Sequence[Attribution]) -> dict[str, str]:
        """Every word with the label that it speaks for most, by its mean score for it."""
        rows = [
            (row.score, row.word, label)
            for label in dict.fromkeys(one.label for one in found)
            for row in rank_words(found, label=label, examples=examples).words
        ]
        best: dict[str, str] = {}
        for _, word, label in sorted(rows, key=lambda row: (-row[0], row[1:])):
            best.setdefault(word, label)
        return best

    def _ordered(self, shown: Sequence[Example], most: int | None) -> list[Example]:
        if self.policy == "random":
            order = np.random.default_rng(self.seed).permutation(len(shown))
            shown = [shown[number] for number in order]
        elif self.policy == "suspects":
            chosen = self._some(shown)
            worst = self._suspects(chosen, self._explained(chosen))
            damage = {row.word: row.damage for row in worst.words}
            # by the worst word of a text, then by its second worst
            shown = sorted(shown, key=lambda example: _damages(example, damage), reverse=True)
        return list(shown[:most])

    def _suspects(self, examples: Sequence[Example], found: Sequence[Attribution]) -> Suspects:
        return suspects(self.classifier, examples, found, keep=_CANDIDATES, candidates=_CANDIDATES, **self.how)

    def _explained(self, examples: Sequence[Example]) -> list[Attribution]:
        """An explanation of each for its given label, which is what the highlights justify."""
        found: dict[int, Attribution] = {}
        for label in dict.fromkeys(str(example.label) for example in examples):
            numbers = [n for n, example in enumerate(examples) if example.label == label]
            own = [examples[n] for n in numbers]
            made = attribute(self.classifier, own, method=self.method, target=label, seed=self.seed, **self.how)
            found.update(zip(numbers, made, strict=True))
        return [found[n] for n in range(len(examples))]

    def _highlighted(self) -> list[Example]:
        found = [e for e in self.train if e.label in self.classifier.labels and _marked(e)]
        if not found:
            raise BadData(
                "None of the examples has both a label of the model and highlighted words. Give data with highlights, "
                "or a list of words as gold."
            )
        return found

    def _some(self, examples: Sequence[Example]) -> list[Example]:
        if len(examples) <= _EXPLAINED:
            return list(examples)
        chosen = np.random.default_rng(self.seed).choice(len(examples), _EXPLAINED, replace=False)
        return [examples[number] for number in sorted(chosen)]


def _marked(example: Example) -> set[int]:
    """Positions of the words that a highlight covers, at least in part."""
    if not example.highlights:
        return set()
    return {
        number
        for number, span in enumerate(Words(example).spans)
        if any(_overlap(span, highlight) for highlight in example.highlights)
    }


def _overlap(word: Span, highlight: Span) -> bool:
    return word.part == highlight.part and word.start < highlight.end and highlight.start < word.end


def _damages(example: Example, damage: Mapping[str, float]) -> list[float]:
    words = {visible_form(word) for word in Words(example).strings}
    return sorted((damage[word] for word in words if word in damage), reverse=True)


# -- accuracy against minutes


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Accuracy on one set after so many minutes of each person's time; the interval is of the mean over seeds, 95 %."""

    minutes: float
    data: str  # name of the set
    way: Way
    votes: float  # mean number over the seeds
    accuracies: tuple[float, ...]  # a seed each
    mean: float
    low: float | None  # None: one seed only
    high: float | None


def learning_curve(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    sets: Mapping[str, Sequence[Example]],
    *,
    minutes: Sequence[float],
    gold: Literal["highlights"] | Sequence[str] = "highlights",
    ways: Sequence[Way] = ("judging",),
    policy: Policy = "xmd",
    seconds: Mapping[Way, float] = SECONDS,
    error_rate: float = 0.0,
    people: int = 1,
    only_correct: bool = True,
    top: int | None = None,
    method: str = "input_x_gradient",
    fix: str = DEFAULT,
    fix_options: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    validation: Sequence[Example] | None = None,
    seeds: Sequence[int] = (0,),
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[CurvePoint]:
    """Accuracy on each set after simulated feedback of so many minutes and a fix: XMD's Fig. 7, which has `people=2`.

    At each budget the fix starts from the classifier given, with all the feedback up to then. Where the budget allows
    no vote, as at 0 minutes, the classifier given is measured. A seed decides about chance both in the feedback and in
    the training. `ways=("judging", "labelling")` compares correcting explanations with traditional labelling.
    """
    budgets = list(dict.fromkeys(minutes))
    if not sets or not budgets or not seeds or not ways:
        raise BadOption("A curve needs at least one set, one budget in minutes, one seed and one way.")
    how = {"progress": None, "cancelled": cancelled, "cache": ScoreCache()}
    before = _accuracies(classifier, sets, cancelled)
    taught = {"fix": fix, "validation": validation, "training": training, **(fix_options or {})}
    runs, done = len(ways) * len(seeds) * len(budgets), 0
    found: dict[tuple[Way, float], list[tuple[int, dict[str, float]]]] = {}
    for way, seed in itertools.product(ways, seeds):
        crew = _Crew(classifier.revision, "simulated", people, seconds.get(way, _seconds(way)), error_rate, seed)
        view = _View(classifier, tuple(train), gold, policy, only_correct, top, method, seed, how)
        looks = view.looks(way, crew.judgements(max(budgets), None))
        for budget in budgets:
            if cancelled is not None and cancelled():
                raise Cancelled(f"Stopped after {done} of {runs} trainings. The model given is unchanged.")
            given = crew.answers(looks[: crew.judgements(budget, None)])
            votes, scores = sum(isinstance(one.says, WordVote) for one in given), before
            if votes:
                watch = Watch(progress=_part(progress, done, runs), cancelled=cancelled)
                mended = mend(classifier, train, given, seed=seed, watch=watch, **taught)
                scores = _accuracies(mended.classifier, sets, cancelled)
            found.setdefault((way, budget), []).append((votes, scores))
            done += 1
            if progress is not None:
                progress(done * _STEPS, runs * _STEPS)
    return [_point(*key, name, measured) for key, measured in found.items() for name in sets]


def _accuracies(
    classifier: Classifier, sets: Mapping[str, Sequence[Example]], cancelled: Callable[[], bool] | None
) -> dict[str, float]:
    return {name: accuracy(classifier, examples, cancelled=cancelled) for name, examples in sets.items()}


def _part(progress: Progress | None, done: int, runs: int) -> Progress | None:
    """Progress through one training, told as progress through all of them."""
    if progress is None:
        return None
    return lambda step, total: progress(done * _STEPS + _STEPS * step // max(1, total), runs * _STEPS)


def _point(way: Way, minutes: float, data: str, measured: Sequence[tuple[int, dict[str, float]]]) -> CurvePoint:
    scores = [accuracies[data] for _, accuracies in measured]
    mean, low, high = float(np.mean(scores)), None, None
    if len(scores) > 1:
        reach = float(stats.t.ppf(0.975, len(scores) - 1) * np.std(scores, ddof=1) / np.sqrt(len(scores)))
        low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    votes = float(np.mean([votes for votes, _ in measured]))
    return CurvePoint(minutes, data, way, votes, tuple(scores), mean, low, high)
