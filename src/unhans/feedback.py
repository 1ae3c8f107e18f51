"""What people answered: which question, what stands, what is out of date, and how far people agree.

The log of feedback only grows; a retraction is another entry. Functions here read nouns and know no database. An
**opinion** is an entry that stands (`resolve`), and a **question** is what was asked, whoever answered (`subject_of`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from unhans.text import visible_form
from unhans.types import (
    Answer,
    Feedback,
    FlipRating,
    NeighbourRating,
    Reason,
    Relabel,
    Review,
    Ruling,
    Verdict,
    WordVote,
)

Level = Literal["nominal", "ordinal", "interval"]
"""How far two answers are apart: alike or not; by the answers that lie between; by their difference."""

Value = str | float
_Floats = NDArray[np.float64]

_RESAMPLES = 1000
_LEAVE = "leave"

CHANGED = "The text has changed since."
GONE = "The text is no longer in the data."
NO_LABEL = "∅"  # what an answer comes to that says that none of the labels fits
MOST_COPIES = 1000  # of one training example, however many people find it alike to however many texts
OTHER_REVISION = "It was given about another revision of the model."


# Questions and answers


def subject_of(answer: Answer) -> str:
    """The question that is answered, as the text of a JSON array: two answers have equal keys if they answer the same.

    A vote on a word of one example asks about the word at that position (or, without a position, about the word
    wherever it occurs in the example); a vote everywhere about all words that look alike: case and hidden characters
    aside, as `task.rank_words` counts them.
    """
    return json.dumps(_question(answer), ensure_ascii=False, separators=(",", ":"))


def _question(answer: Answer) -> list[str | int | None]:
    match answer:
        case WordVote(example=example, position=position, label=label):
            place = _form(answer.word) if example is None or position is None else position
            return [answer.kind, example, place, label]  # the number 1 is not the word "1", in JSON either
        case FlipRating(counterfactual=counterfactual):
            return [answer.kind, counterfactual]
        case NeighbourRating(anchor=anchor, train=train):
            return [answer.kind, anchor, train]
        case Relabel(example=example) | Review(example=example):
            return [answer.kind, example]
        case Ruling(subject=subject):
            return [answer.kind, subject]
        case Verdict(model=model, method=method, explanation_first=first):
            return [answer.kind, model, method, int(first)]
        case _:
            assert_never(answer)


def _form(word: str) -> str:
    return visible_form(word) or word  # hidden characters alone have no visible form


def value_of(answer: Answer) -> str:
    """What was answered, in short: the vote, the ratings (and the label of a flip), the label, the state."""
    match answer:
        case WordVote(vote=vote):
            return vote
        case FlipRating(plausible=plausible, meaningful=meaningful, agrees=agrees, label=label):
            ratings = ["–" if rating is None else str(rating) for rating in (plausible, meaningful, agrees)]
            return " ".join(ratings if label is None else [*ratings, label])
        case NeighbourRating(similar=similar):
            return str(similar)
        case Relabel(label=label):
            return NO_LABEL if label is None else label
        case Review(state=value) | Ruling(value=value):
            return value
        case Verdict(deploy=deploy, reason=reason):
            return f"{deploy} {reason}"
        case _:
            assert_never(answer)


def numbers_of(answer: Answer) -> dict[str, int]:
    """The ratings of an answer by what they rate; none for answers that are not ratings, or do not apply."""
    match answer:
        case FlipRating(plausible=plausible, meaningful=meaningful, agrees=agrees):
            given = {"plausible": plausible, "meaningful": meaningful, "agrees": agrees}
            return {name: rating for name, rating in given.items() if rating is not None}
        case NeighbourRating(similar=similar):
            return {"similar": similar}
        case Verdict(deploy=deploy):
            return {"deploy": deploy}
    return {}


def resolve(log: Iterable[Feedback]) -> dict[tuple[str, str], Feedback]:
    """By author and question, the last entry that was not taken back; in the order of the log.

    The order of the log decides, not the time in the entries. An entry with `retracts` takes back an earlier entry of
    the same author and is no opinion itself; taken back in turn, it has no effect. An id that comes again is the same
    entry sent twice.
    """
    first: dict[str, Feedback] = {}
    for entry in log:
        first.setdefault(entry.id, entry)
    taken_back: set[tuple[str, str]] = set()
    opinions: dict[tuple[str, str], Feedback] = {}
    for entry in reversed(first.values()):  # whatever could take an entry back is seen before it
        if (entry.author, entry.id) in taken_back:
            continue
        if entry.retracts is not None:
            taken_back.add((entry.author, entry.retracts))
        else:
            opinions.setdefault((entry.author, subject_of(entry.says)), entry)
    return dict(reversed(opinions.items()))


def stale_reason(feedback: Feedback, *, text_hash: str | None, revision: str) -> str | None:
    """Why an entry no longer fits: the text is gone or has changed, or the model has; None if it fits.

    `text_hash` is what the example's text is now, None if there is none. What the right label is, and whether two
    texts share a pattern, is asked about texts alone: such answers outlive a revision. So do verdicts, each of which
    names the revision that it is about.
    """
    if feedback.text_hash is not None and feedback.text_hash != text_hash:
        return GONE if text_hash is None else CHANGED
    if feedback.revision != revision and not isinstance(feedback.says, Relabel | NeighbourRating | Verdict):
        return OTHER_REVISION
    return None


# Krippendorff's alpha


def krippendorff_alpha(ratings: Sequence[Mapping[str, Value]], level: Level = "nominal") -> float | None:
    """How far people agree beyond chance: 1 always, 0 as much as chance, below 0 less; None if it is not defined.

    A rating is a question's answers by person; people may be missing. Questions with fewer than two answers do not
    count. It is not defined if no question is left, or if all answers are the same. Ordinal and interval answers are
    numbers. (K. Krippendorff, Content Analysis, ch. 11.)
    """
    return _Table(_units(ratings), level).alpha()


def alpha_interval(
    ratings: Sequence[Mapping[str, Value]], level: Level = "nominal", *, seed: int, resamples: int = _RESAMPLES
) -> tuple[float, float] | None:
    """The middle 95 % of alpha when the questions are drawn again and again, with replacement; None if undefined."""
    return _Table(_units(ratings), level).interval(seed, resamples)


class _Unit(NamedTuple):
    """Answers to a question, without the names; `times` questions of a `group` had them."""

    answers: tuple[Value, ...]  # sorted
    times: int
    group: Hashable  # what is drawn together: words of one text are not independent of each other


def _units(ratings: Iterable[Mapping[str, Value]]) -> Iterator[_Unit]:
    for number, answers in enumerate(ratings):
        yield _Unit(tuple(sorted(answers.values())), 1, number)


class _Table:
    """Questions with at least two answers as rows of counts, like rows of like groups told once."""

    def __init__(self, units: Iterable[_Unit], level: Level) -> None:
        groups: dict[Hashable, Counter[tuple[Value, ...]]] = defaultdict(Counter)
        for unit in units:
            if len(unit.answers) > 1:
                groups[unit.group][unit.answers] += unit.times
        alike = Counter(frozenset(rows.items()) for rows in groups.values())
        rows = [(group, answers, times) for group, rows in enumerate(alike) for answers, times in rows]
        self.values: list[Value] = sorted({value for _, answers, _ in rows for value in answers})
        place = {value: number for number, value in enumerate(self.values)}
        self._level = level
        self._group_times = np.array(list(alike.values()), dtype=np.int64)
        self._group = np.array([group for group, _, _ in rows], dtype=np.int64)
        self._times = np.array([times for _, _, times in rows], dtype=np.float64)
        self._counts = np.zeros((len(rows), len(self.values)))
        for number, (_, answers, _) in enumerate(rows):
            np.add.at(self._counts[number], [place[value] for value in answers], 1)
        self._answers = self._counts.sum(1)
        self.questions = int(self._times @ self._group_times[self._group]) if rows else 0
        self._fixed = None if level == "ordinal" else self._distances(np.zeros(len(self.values)))
        self._apart = None if self._fixed is None else self._disagreements(self._fixed)

    def alpha(self) -> float | None:
        return self._alpha(self._group_times)

    def interval(self, seed: int, resamples: int = _RESAMPLES) -> tuple[float, float] | None:
        """None where alpha is undefined, in all draws too, or there is one group only."""
        n_groups = int(self._group_times.sum())
        if n_groups < 2 or self.alpha() is None:
            return None
        draws = np.random.default_rng(seed).multinomial(n_groups, self._group_times / n_groups, size=resamples)
        found = [alpha for draw in draws if (alpha := self._alpha(draw)) is not None]
        if not found:
            return None
        low, high = np.quantile(found, (0.025, 0.975))
        return float(low), float(high)

    def _alpha(self, group_times: NDArray[np.int64]) -> float | None:
        """1 − observed / expected disagreement, each group taken so many times.

        The coincidence of values c and k is the sum over questions of n_c (n_k − [c = k]) / (m − 1). It is only ever
        multiplied by their squared distance, which is 0 for c = k, so that [c = k] can go.
        """
        weights = self._times * group_times[self._group]
        totals = weights @ self._counts
        n = totals.sum()
        distances = self._distances(totals) if self._fixed is None else self._fixed
        apart = self._disagreements(distances) if self._apart is None else self._apart
        expected = totals @ distances @ totals
        if n == 0 or expected == 0:
            return None
        return float(1 - (n - 1) * (weights @ apart) / expected)

    def _disagreements(self, distances: _Floats) -> _Floats:
        apart: _Floats = ((self._counts @ distances) * self._counts).sum(1) / (self._answers - 1)
        return apart

    def _distances(self, totals: _Floats) -> _Floats:
        """Squared distances between the values; those of ordinal ones depend on how often each was given."""
        if self._level == "nominal":
            return 1 - np.eye(len(self.values))
        at = np.cumsum(totals) - totals / 2 if self._level == "ordinal" else np.array(self.values, dtype=np.float64)
        squared: _Floats = (at[:, None] - at[None, :]) ** 2
        return squared


# Agreement between people


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's alpha for one kind of feedback; None where it is not defined, and `note` says why."""

    kind: str
    alpha: float | None
    low: float | None  # 95 % bootstrap interval
    high: float | None
    questions: int  # answered by at least two people
    people: int  # who answered at least one question of this kind
    note: str


@dataclass(frozen=True, slots=True)
class PersonAgreement:
    """How often one person is with the majority of the others."""

    author: str
    share: float | None  # None: no question on which the others have a majority
    questions: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question on which people said opposite things."""

    subject: str
    kind: str
    says: Answer  # one of the answers, for its example, word and label
    answers: tuple[tuple[str, str], ...]  # author, answer
    settled: str | None  # the last ruling


@dataclass(frozen=True, slots=True)
class Contribution:
    """How much of the feedback is one person's, and how monotonous it is."""

    author: str
    answers: int
    share: float  # of everybody's answers
    by_kind: tuple[tuple[str, int, str, float], ...]  # kind, answers, the most frequent answer, its share


@dataclass(frozen=True, slots=True)
class Settled:
    """A question with one answer: what most people said, or what was ruled."""

    says: WordVote | Relabel
    ids: tuple[str, ...]  # entries behind it
    people: int  # who said so
    against: int  # who said otherwise
    ruled: bool


@dataclass(frozen=True, slots=True)
class SettledFlip:
    """What people's ratings of one flip come to: means, and the label that most of them would give the text."""

    counterfactual: str
    plausible: float | None  # 1 to 5; None: nobody rated it, or it does not apply
    meaningful: float | None
    agrees: float | None
    label: str | None  # None: nobody named one, or as many named another
    disputed: bool  # as many named another label
    ids: tuple[str, ...]  # entries behind it
    people: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What people say of one model in one condition: which explanation they saw, and whether before the prediction."""

    model: str  # id of the revision
    method: str | None
    explanation_first: bool
    counts: tuple[int, int, int, int, int]  # from definitely not to definitely
    people: int
    median: float
    low: float  # quartiles
    high: float
    reasons: tuple[tuple[Reason, int], ...]  # all of them, and how many people gave each


@dataclass(frozen=True, slots=True)
class SettledNeighbour:
    """How far people find a training example to share the pattern of a text: the mean over them, or what was ruled."""

    anchor: str
    train: str
    similar: float  # 1 to 5
    ids: tuple[str, ...]  # entries behind it
    people: int


_LEVELS: dict[str, Level] = {
    "word_vote": "nominal",
    "word_vote_everywhere": "nominal",
    "relabel": "nominal",
    "flip_plausible": "ordinal",
    "flip_meaningful": "ordinal",
    "flip_agrees": "ordinal",
    "neighbour_similar": "ordinal",
    "verdict_deploy": "ordinal",
}


def agreement_by_kind(
    opinions: Iterable[Feedback], *, words: Mapping[str, int] | Callable[[str], int] | None = None, seed: int = 0
) -> list[Agreement]:
    """Alpha for each kind of question. `words` tells the number of words of an example.

    Votes on words of one example are compared between those who finished it (`Review` done): a word they did not mark
    is a word they said to leave as it is. So the question is the word at a position for a label that somebody voted
    on, and the answers are raise, leave and lower. Where `words` is not given, only words that somebody marked count,
    which makes people look less agreed than they are. Votes everywhere are compared between those who voted.
    """
    asked = _asked(opinions)
    units: dict[str, list[_Unit]] = {
        kind: [_Unit(tuple(sorted(answers.values())), 1, question) for question, answers in asked.of(kind)]
        for kind in _LEVELS
    }
    count_of = words.__getitem__ if isinstance(words, Mapping) else words
    units["word_vote"] = list(_word_units(asked, count_of))
    return [_agreement(kind, units[kind], asked.people[kind], seed, words is None) for kind in _LEVELS]


def _agreement(kind: str, units: Sequence[_Unit], people: set[str], seed: int, marked_only: bool) -> Agreement:
    table = _Table(units, _LEVELS[kind])
    alpha, interval = table.alpha(), table.interval(seed)
    note = "Only words that somebody marked are counted." if kind == "word_vote" and marked_only else ""
    if not people:
        note = "Nobody has answered such a question."
    elif len(people) == 1:
        note = "Only one person has answered such questions."
    elif not table.questions:
        finished = "finished the same example" if kind == "word_vote" else "answered the same question"
        note = f"No two people have {finished}."
    elif alpha is None:
        note = "All answers are the same: agreement cannot be told from chance."
    low, high = interval or (None, None)
    return Agreement(kind, alpha, low, high, table.questions, len(people), note)


class _Asked:
    """Explicit answers by kind and question, and who finished which example."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, dict[str, Value]]] = {kind: defaultdict(dict) for kind in _LEVELS}
        self.people: dict[str, set[str]] = {kind: set() for kind in _LEVELS}
        self.finished: dict[str, set[str]] = defaultdict(set)
        self.votes: dict[str, dict[str, dict[int | str, dict[str, str]]]] = defaultdict(dict)  # example, label, word

    def of(self, kind: str) -> Iterator[tuple[str, dict[str, Value]]]:
        return iter(self.answers[kind].items())

    def add(self, kind: str, subject: str, author: str, value: Value) -> None:
        self.answers[kind][subject][author] = value
        self.people[kind].add(author)


def _asked(opinions: Iterable[Feedback]) -> _Asked:
    asked = _Asked()
    for opinion in opinions:
        author, says = opinion.author, opinion.says
        match says:
            case Review(example=example, state="done"):
                asked.finished[example].add(author)
                asked.people["word_vote"].add(author)
            case WordVote(example=str() as example, label=label):
                word = _form(says.word) if says.position is None else says.position
                asked.votes[example].setdefault(label, {}).setdefault(word, {})[author] = says.vote
                asked.people["word_vote"].add(author)
            case WordVote():
                asked.add("word_vote_everywhere", subject_of(says), author, says.vote)
            case Relabel():
                asked.add("relabel", subject_of(says), author, value_of(says))
            case FlipRating() | NeighbourRating() | Verdict():
                family = says.kind.partition("_")[0]
                for name, rating in numbers_of(says).items():
                    asked.add(f"{family}_{name}", subject_of(says), author, rating)
    return asked


def _marked(asked: _Asked) -> Iterator[tuple[str, str, int | str, dict[str, Value]]]:
    """Example, label and word that somebody who finished the example marked, with the answers of all who did."""
    for example, people in asked.finished.items():
        for label, words in asked.votes.get(example, {}).items():
            for word, votes in words.items():
                if not people.isdisjoint(votes):
                    yield example, label, word, {person: votes.get(person, _LEAVE) for person in people}


def _word_units(asked: _Asked, count_of: Callable[[str], int] | None) -> Iterator[_Unit]:
    n_marked: Counter[tuple[str, str]] = Counter()
    labels: dict[str, set[str]] = defaultdict(set)
    for example, label, word, answers in _marked(asked):
        yield _Unit(tuple(sorted(answers.values())), 1, example)
        n_marked[example, label] += isinstance(word, int)
        labels[example].add(label)
    if count_of is None:
        return
    for example, people in asked.finished.items():
        for label in labels.get(example, {""}):  # nobody marked anything: they were asked about one label, whichever
            left = count_of(example) - n_marked[example, label]
            if len(people) > 1 and left > 0:
                yield _Unit((_LEAVE,) * len(people), left, example)


def person_agreement(opinions: Iterable[Feedback]) -> list[PersonAgreement]:
    """How often each person is with the majority of the others, over questions of all kinds.

    A question counts for a person if the others have one most frequent answer. A rating is with the others if it is
    within one point of their median. Of the words of an example that several people finished, those count that
    somebody marked.
    """
    asked = _asked(opinions)
    with_others: Counter[str] = Counter()
    questions: Counter[str] = Counter()
    rows = [(_LEVELS[kind], answers) for kind in _LEVELS for _, answers in asked.of(kind)]
    rows += [("nominal", answers) for _, _, _, answers in _marked(asked)]
    for level, answers in rows:
        for person in answers:
            agrees = _agrees(answers[person], [answers[other] for other in answers if other != person], level)
            if agrees is not None:
                questions[person] += 1
                with_others[person] += agrees
    people = sorted(set().union(*asked.people.values()))
    return [
        PersonAgreement(name, with_others[name] / questions[name] if questions[name] else None, questions[name])
        for name in people
    ]


def _agrees(own: Value, others: list[Any], level: Level) -> bool | None:
    """Whether an answer is that of the majority of the others; None if they have none."""
    if not others:
        return None
    if level == "ordinal":
        return bool(abs(float(own) - median(others)) <= 1)
    (most, n_most), *rest = Counter(others).most_common(2)
    return None if rest and rest[0][1] == n_most else bool(own == most)


def disagreements(opinions: Iterable[Feedback]) -> list[Disagreement]:
    """Questions with opposite answers, those without a ruling first, otherwise in the order they came up.

    Opposite are raise and lower, different labels (of a flip too), and ratings of at most 2 and at least 4. A word that
    one person marks and another leaves is no such question: leaving it was not an answer anybody gave. What people
    think of a model as a whole (`Verdict`) is not for somebody else to settle.
    """
    by_subject: dict[str, dict[str, Answer]] = defaultdict(dict)
    rulings: dict[str, str] = {}
    for opinion in opinions:
        if isinstance(opinion.says, Ruling):
            rulings[opinion.says.subject] = opinion.says.value
        elif not isinstance(opinion.says, Review | Verdict):
            by_subject[subject_of(opinion.says)][opinion.author] = opinion.says
    found = [
        Disagreement(
            subject,
            next(iter(answers.values())).kind,
            next(iter(answers.values())),
            tuple((author, value_of(answer)) for author, answer in answers.items()),
            rulings.get(subject),
        )
        for subject, answers in by_subject.items()
        if _are_opposite(list(answers.values()))
    ]
    return sorted(found, key=lambda one: one.settled is not None)


def _are_opposite(answers: Sequence[Answer]) -> bool:
    if isinstance(answers[0], WordVote | Relabel):
        return len(set(map(value_of, answers))) > 1
    if len({one.label for one in answers if isinstance(one, FlipRating) and one.label is not None}) > 1:
        return True
    rated: dict[str, list[int]] = defaultdict(list)
    for answer in answers:
        for name, rating in numbers_of(answer).items():
            rated[name].append(rating)
    return any(min(ratings) <= 2 and max(ratings) >= 4 for ratings in rated.values())


def settle(opinions: Iterable[Feedback]) -> tuple[list[Settled], int]:
    """What people's votes and labels come to, in the order they came up; and how many questions are undecided.

    A ruling decides; without one, most voices do. As many on one side as on the other is no answer, and nothing that
    a model should be taught.
    """
    by_subject: dict[str, list[Feedback]] = defaultdict(list)
    rulings: dict[str, str] = {}
    for opinion in opinions:
        if isinstance(opinion.says, Ruling):
            rulings[opinion.says.subject] = opinion.says.value
        elif isinstance(opinion.says, WordVote | Relabel):
            by_subject[subject_of(opinion.says)].append(opinion)
    settled, ties = [], 0
    for subject, given in by_subject.items():
        counts = Counter(value_of(one.says) for one in given)
        (value, times), *rest = counts.most_common()
        ruled = rulings.get(subject)
        if ruled is None and rest and rest[0][1] == times:
            ties += 1
            continue
        value = value if ruled is None else ruled
        said = [one for one in given if value_of(one.says) == value]
        if said:  # a ruling for what nobody said (leave it, say) asks for nothing
            assert isinstance(said[0].says, WordVote | Relabel)
            ids = tuple(one.id for one in said)
            settled.append(Settled(said[0].says, ids, len(said), len(given) - len(said), ruled is not None))
    return settled, ties


def settle_flips(opinions: Iterable[Feedback]) -> list[SettledFlip]:
    """What people's ratings of each flip come to, in the order they came up; of a ruled one, the ratings ruled for."""
    by_flip: dict[str, list[tuple[Feedback, FlipRating]]] = defaultdict(list)
    rulings: dict[str, str] = {}
    for opinion in opinions:
        if isinstance(opinion.says, Ruling):
            rulings[opinion.says.subject] = opinion.says.value
        elif isinstance(opinion.says, FlipRating):
            by_flip[opinion.says.counterfactual].append((opinion, opinion.says))
    settled = []
    for flip, given in by_flip.items():
        ruled = rulings.get(subject_of(given[0][1]))
        said = [(one, says) for one, says in given if ruled is None or value_of(says) == ruled]
        if said:
            settled.append(_settled_flip(flip, [one.id for one, _ in said], [says for _, says in said]))
    return settled


def _settled_flip(flip: str, ids: Sequence[str], ratings: Sequence[FlipRating]) -> SettledFlip:
    numbers: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        for name, number in numbers_of(rating).items():
            numbers[name].append(number)
    means = {name: fmean(numbers[name]) if numbers[name] else None for name in ("plausible", "meaningful", "agrees")}
    named = Counter(rating.label for rating in ratings if rating.label is not None).most_common(2)
    disputed = len(named) == 2 and named[0][1] == named[1][1]
    label = named[0][0] if named and not disputed else None
    return SettledFlip(flip, **means, label=label, disputed=disputed, ids=tuple(ids), people=len(ratings))


def settle_neighbours(feedback: Iterable[Feedback]) -> list[SettledNeighbour]:
    """How similar people find the two texts of each pair, in the order they came up; what was taken back is gone.

    A ruling decides; one that is no rating (leave it, say) asks for nothing.
    """
    given: dict[str, list[tuple[Feedback, NeighbourRating]]] = defaultdict(list)
    rulings: dict[str, Feedback] = {}
    for opinion in resolve(feedback).values():
        if isinstance(opinion.says, Ruling):
            rulings[opinion.says.subject] = opinion
        elif isinstance(opinion.says, NeighbourRating):
            given[subject_of(opinion.says)].append((opinion, opinion.says))
    settled = []
    for subject, said in given.items():
        about, ruling = said[0][1], rulings.get(subject)
        behind = [one for one, says in said if ruling is None or value_of(says) == value_of(ruling.says)]
        if ruling is None:
            similar = fmean(says.similar for _, says in said)
        elif value_of(ruling.says) in ("1", "2", "3", "4", "5"):
            similar = float(value_of(ruling.says))
        else:
            continue
        ids = tuple(one.id for one in behind) or ((ruling.id,) if ruling is not None else ())
        settled.append(SettledNeighbour(about.anchor, about.train, similar, ids, len(behind)))
    return settled


def verdicts_by_condition(opinions: Iterable[Feedback]) -> list[Verdicts]:
    """What people say of models, by model, explanation and order; without an explanation first, otherwise by name."""
    given: dict[tuple[str, str | None, bool], list[Verdict]] = defaultdict(list)
    for opinion in opinions:
        if isinstance(says := opinion.says, Verdict):
            given[says.model, says.method, says.explanation_first].append(says)
    return [_verdicts(*key, given[key]) for key in sorted(given, key=lambda key: (key[0], key[1] or "", key[2]))]


def _verdicts(model: str, method: str | None, first: bool, given: Sequence[Verdict]) -> Verdicts:
    numbers, reasons = Counter(one.deploy for one in given), Counter(one.reason for one in given)
    low, middle, high = (float(value) for value in np.quantile([one.deploy for one in given], (0.25, 0.5, 0.75)))
    counts = (numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
    told = tuple((reason, reasons[reason]) for reason in get_args(Reason))
    return Verdicts(model, method, first, counts, len(given), middle, low, high, told)


def copies_wanted(settled: Iterable[SettledNeighbour], per_point: float = 10) -> dict[str, int]:
    """How many copies of each rated training example there should be: so many for each point, over all texts."""
    points: dict[str, float] = defaultdict(float)
    for one in settled:
        points[one.train] += one.similar
    return {train: min(MOST_COPIES, round(per_point * sum_)) for train, sum_ in points.items()}


def contributions(opinions: Iterable[Feedback]) -> list[Contribution]:
    """Each person's part in the answers a fix may use, largest first; reviews, rulings and verdicts are none.

    One person's flood shows in `share`, and somebody who always gives the same answer in `by_kind`.
    """
    given: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for opinion in opinions:
        if not isinstance(opinion.says, Review | Ruling | Verdict):
            given[opinion.author][opinion.says.kind][value_of(opinion.says)] += 1
    sizes = {author: sum(values.total() for values in kinds.values()) for author, kinds in given.items()}
    everybody = sum(sizes.values())
    return [
        Contribution(
            author,
            sizes[author],
            sizes[author] / everybody,
            tuple(_usual(kind, values) for kind, values in sorted(given[author].items())),
        )
        for author in sorted(sizes, key=lambda author: (-sizes[author], author))
    ]


def _usual(kind: str, values: Counter[str]) -> tuple[str, int, str, float]:
    (most, times), total = values.most_common(1)[0], values.total()
    return kind, total, most, times / total
