"""Words on trial: what a model does when a word is taken out, exchanged, or put where it does not belong.

Any word that carries the meaning of a label changes what a model says. What tells a shortcut from it is that one word
carries much of a label (without it, the model says something else about a good part of the texts with the label), or
that the model is wrong where the word stands under another label. Every word on trial is put into the same clear texts
of other labels, and so are **comparable** words, drawn among those of about its frequency that nothing points at: what
happens with them is what happens with any word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unhans.attributions import readable_words
from unhans.audit._look import Ask, changes
from unhans.audit._statistics import Flags, Floats, Ints, product
from unhans.errors import BadData
from unhans.heuristics.negation import negates
from unhans.model import Classifier
from unhans.scoring import How
from unhans.text import Variant, Words, visible_form
from unhans.types import Example, Part
from unhans.types import Variant as Changed

_FEWEST = 5  # texts that a word must be in to be tried
_HOSTS = 40  # clear texts that each word is put into
_OWN = 40  # texts with the word, from which it is taken out
_CONTROLS = 20  # comparable words
_REACH = 3  # words behind a negation that may belong to it, as in "not in the least"
_PART_OF_IT = 2 / 3  # share of its texts in which a word stands there, from which on it is part of negating


@dataclass(frozen=True)
class Tried:
    """What became of one word."""

    word: str
    label: int  # number of the label that it speaks for
    texts: int  # that contain it, those trained on included
    labelled: int  # of these, those with a label
    excess: float | None  # standard errors of its score above what the data explain
    effect: float  # mean change of the log odds of the label when it is put into clear texts of others
    flips: Flags  # for each of those texts: whether the model now says the label
    usual: float  # share of such flips by comparable words
    coverage: tuple[int, int]  # texts predicted as the label that have the word, and all that are predicted so
    removed: Flags  # for some of these: whether the prediction changes without the word
    swapped: Flags  # the same with a comparable word in its place
    other: int | None  # number of the other label that most labelled examples with the word have, if any has one
    against: Ints  # right and all, of the examples of that other label with the word, then of those without the word
    share: float  # of the labelled texts with the word, those with its label
    base: float  # the same share of all labelled texts
    variants: tuple[Changed, ...] = field(repr=False, default=())
    examples: tuple[str, ...] = ()  # ids of texts with it: those that are predicted wrong first

    @property
    def turned(self) -> float:
        """Share of clear texts of other labels that it turns over."""
        return float(self.flips.mean()) if len(self.flips) else 0.0

    @property
    def reliance(self) -> tuple[float, float, float]:
        """Share of all predictions of the label that would change without the word, with its interval."""
        having, every = self.coverage
        if not len(self.removed) or not every:
            return 0.0, 0.0, 0.0
        low, high = product(int(self.removed.sum()), len(self.removed), having, every)
        return float(self.removed.mean()) * having / every, low, high


@dataclass(frozen=True)
class Texts:
    """The examples of an audit with what the model says of them."""

    classifier: Classifier
    examples: Sequence[Example]
    train: Sequence[Example]
    forms: Sequence[tuple[str, ...]]  # what the model reads of each
    log_probs: Floats
    given: Ints
    seed: int

    @cached_property
    def predicted(self) -> Ints:
        """Number of the predicted label of each."""
        return np.asarray(self.log_probs.argmax(axis=1))

    @cached_property
    def containing(self) -> Mapping[str, list[int]]:
        """Numbers of the examples in which the model reads each word."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, words in enumerate(self.forms):
            for word in dict.fromkeys(words):
                found[word].append(number)
        return found

    @cached_property
    def written(self) -> dict[str, tuple[str, Part]]:
        """How each word is mostly written, and in which text of a pair it mostly stands."""
        counts: dict[str, Counter[tuple[str, Part]]] = defaultdict(Counter)
        for example in (*self.examples, *self.train):
            words = Words(example)
            for string, span in zip(words.strings, words.spans, strict=True):
                counts[visible_form(string)][string, span.part] += 1
        return {word: max(found, key=lambda key: (found[key], key)) for word, found in counts.items()}

    @cached_property
    def labelled(self) -> tuple[list[tuple[str, ...]], Ints]:
        """Words and labels of all labelled examples, those trained on included: what the data say of words."""
        extra = [e for e in self.train if e.label in self.classifier.labels]
        known = np.flatnonzero(self.given >= 0)
        words = [self.forms[n] for n in known.tolist()]
        words += [tuple(map(visible_form, Words(e).strings)) for e in extra]
        numbers = [int(self.given[n]) for n in known] + [self.classifier.labels.index(str(e.label)) for e in extra]
        return words, np.array(numbers, dtype=np.int64)

    @cached_property
    def counts(self) -> Mapping[str, Counter[int]]:
        """In how many labelled texts each word is, by label; -1 counts the examples without one."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        numbers = [*self.labelled[1].tolist(), *[-1] * (len(self._every) - len(self.labelled[1]))]
        for some, number in zip(self._every, numbers, strict=True):
            for word in set(some):
                found[word][number] += 1
        return found

    @cached_property
    def _every(self) -> list[tuple[str, ...]]:
        """The words of all texts, those trained on included: first those with a label, then those without."""
        return [*self.labelled[0], *(self.forms[n] for n in np.flatnonzero(self.given < 0).tolist())]

    def times(self, word: str) -> int:
        """In how many labelled texts a word is: those without a label speak for none, and against none."""
        return self.counts[word].total() - self.counts[word][-1]

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Words that can be tried, with the number of texts they are in: enough of them.

        Words that negate, or mostly stand right behind one that does, are left to other checks: they change the
        meaning wherever they are put.
        """
        found = {word: counts.total() for word, counts in sorted(self.counts.items())}
        negating = {word for word in found if negates(word)}
        behind = Counter(word for words in self._every for word in _behind(words, negating))
        return {
            word: n
            for word, n in found.items()
            if n >= _FEWEST and word not in negating and behind[word] < _PART_OF_IT * n
        }

    def hosts(self, label: int) -> list[int]:
        """Clear texts of other labels, drawn by the seed: the surer half of those that the model is not wrong about."""
        right = (self.given < 0) | (self.given == self.predicted)
        other = np.flatnonzero((self.predicted != label) & right & np.array([len(w) > 0 for w in self.forms]))
        sure = self.log_probs[other, self.predicted[other]]
        clear = other[sure >= np.median(sure)] if len(other) else other
        return [int(n) for n in np.random.default_rng([self.seed, 47, label]).permutation(clear)]


def _behind(words: Sequence[str], negating: Collection[str]) -> set[str]:
    """The words of a text that stand close behind one that negates."""
    at = [n for n, word in enumerate(words) if word in negating]
    return {word for n in at for word in words[n + 1 : n + 1 + _REACH]}


def comparable(texts: Texts, tried: Iterable[str], rng: np.random.Generator) -> list[str]:
    """Words of about the frequency of those on trial that explanations did not point at."""
    names = set(tried)
    middle = float(np.median([np.log(texts.vocabulary[word]) for word in names]))
    pool = [word for word in texts.vocabulary if word not in names and word.isalpha()]
    near = sorted(pool, key=lambda word: (abs(np.log(texts.vocabulary[word]) - middle), word))[: 3 * _CONTROLS]
    return [str(word) for word in rng.permutation(near)[:_CONTROLS]]


@dataclass
class Questions:
    """Changed texts, to be asked about all at once; each knows the example it was made of."""

    texts: Texts
    made: list[Variant] = field(default_factory=list)
    of: list[int] = field(default_factory=list)
    _words: dict[int, Words] = field(default_factory=dict)
    _shares: dict[str, list[float]] = field(default_factory=dict)

    def words(self, number: int) -> Words:
        """The words of an example as the model reads them."""
        if number not in self._words:
            self._words[number] = readable_words(self.texts.classifier, self.texts.examples[number], "word")
        return self._words[number]

    def add(self, number: int, variant: Variant) -> int:
        """One more question; where its answer will be."""
        self.made.append(variant)
        self.of.append(number)
        return len(self.made) - 1

    def put(self, word: str, hosts: Sequence[int], most: int = _HOSTS) -> list[int]:
        """The word put into as many of these as are wanted and do not have it."""
        string, part = self.texts.written[word]
        found: list[int] = []
        for number in hosts:
            if len(found) == most:
                break
            at = self._place(word, number, part) if word not in self.texts.forms[number] else None
            if at is not None:
                old = self.words(number).strings[abs(at)]
                new = f"{old} {string}" if at < 0 else f"{string} {old}"
                found.append(self.add(number, self.words(number).variant({abs(at): new})))
        return found

    def _place(self, word: str, number: int, part: Part) -> int | None:
        """Before which word it goes, or, below 0, behind which: where in its own texts it often stands.

        A model may look for a cue in one place only, as at the beginning.
        """
        words, example = self.words(number), self.texts.examples[number]
        raw = " " + example.parts[part == "pair"] if part == "text" or example.pair is not None else ""
        own = [n for n in words.open if words.spans[n].part == part]
        starts = [n for n in own if raw[words.spans[n].start].isspace()]  # the sign before the word
        if not starts:
            return None
        rng = np.random.default_rng([self.texts.seed, int(example.text_hash, 16)])
        share = float(rng.choice(self.shares(word, part)))
        if share == 1.0 and len(own) > 1:
            return -own[-1]
        return starts[min(len(starts) - 1, round(share * len(starts)))]

    def shares(self, word: str, part: Part) -> list[float]:
        """How far into its texts a word stands: 0 at the beginning, 1 at the end."""
        if word not in self._shares:
            found = []
            for number in self.texts.containing.get(word, ())[:_OWN]:
                words = self.words(number)
                own = [n for n in words.open if words.spans[n].part == part]
                places = [n for n, at in enumerate(own) if visible_form(words.strings[at]) == word]
                found += [place / max(1, len(own) - 1) for place in places[:1]]
            self._shares[word] = found or [0.0, 0.25, 0.5, 0.75, 1.0]
        return self._shares[word]

    def change(self, word: str, new: str, numbers: Sequence[int]) -> list[int]:
        """The word replaced in these by another; by nothing if that is empty."""
        found = []
        for number in numbers:
            words = self.words(number)
            at = [n for n in words.open if visible_form(words.strings[n]) == word]
            if at:
                found.append(self.add(number, words.variant(dict.fromkeys(at, new))))
        return found


def try_words(
    texts: Texts,
    words: Mapping[str, tuple[int, float | None]],
    *,
    ask: Ask,
    how: How,
    rng: np.random.Generator,
) -> list[Tried]:
    """Each word on trial, in the order given."""
    controls = comparable(texts, words, rng)
    if not controls:
        raise BadData("There are too few different words to compare with.")
    labels = sorted({label for label, _ in words.values()})
    hosts = {label: texts.hosts(label) for label in labels}
    if not any(hosts.values()):
        raise BadData("The model says the same of all texts, so no word can be seen to matter.")
    questions = Questions(texts)
    usual = {label: [questions.put(word, hosts[label]) for word in controls] for label in labels}
    put = {word: questions.put(word, hosts[label]) for word, (label, _) in words.items()}
    own = {word: _own(texts, word, label) for word, (label, _) in words.items()}
    fillers = {word: texts.written[str(rng.choice(controls))][0] for word in words}
    gone = {word: questions.change(word, "", own[word]) for word in words}
    other = {word: questions.change(word, fillers[word], own[word]) for word in words}
    trial = Trial(texts, questions, ask(questions.made, how))
    nulls = {label: [trial.turned(at, label).mean() for at in some if at] or [0.0] for label, some in usual.items()}
    found = []
    for word, (label, excess) in words.items():
        given, share, base = _other(texts, word, label), *_goes_with(texts, word, label)
        turned = trial.turned(put[word], label)
        found.append(
            Tried(
                word,
                label,
                texts.counts[word].total(),
                texts.times(word),
                excess,
                trial.effect(put[word], label),
                turned,
                usual=float(np.mean(nulls[label])),
                coverage=_coverage(texts, word, label),
                removed=trial.moved(gone[word]),
                swapped=trial.moved(other[word]),
                other=given,
                against=_against(texts, word, given),
                share=share,
                base=base,
                variants=tuple(trial.shown(put[word], label)),
                examples=_telling(texts, word, label),
            )
        )
    return found


@dataclass(frozen=True)
class Trial:
    """The answers, and what they say about each word."""

    texts: Texts
    questions: Questions
    answers: Floats

    def _before(self, at: Sequence[int]) -> Floats:
        return self.texts.log_probs[[self.questions.of[n] for n in at]]

    def turned(self, at: Sequence[int], label: int) -> Flags:
        """Whether each now has the label."""
        return np.asarray(self.answers[list(at)].argmax(axis=1) == label)

    def moved(self, at: Sequence[int]) -> Flags:
        """Whether each has another label than before."""
        return np.asarray(self.answers[list(at)].argmax(axis=1) != self._before(at).argmax(axis=1))

    def effect(self, at: Sequence[int], label: int) -> float:
        """Mean change of the log odds of a label."""
        if not at:
            return 0.0
        return float((_log_odds(self.answers[list(at)], label) - _log_odds(self._before(at), label)).mean())

    def shown(self, at: Sequence[int], label: int) -> list[Changed]:
        """The texts with the word put in that changed sides."""
        turned = [n for n, yes in zip(at, self.turned(at, label), strict=True) if yes]
        examples = [self.texts.examples[self.questions.of[n]] for n in turned]
        made = [self.questions.made[n] for n in turned]
        return changes(self.texts.classifier.labels, examples, made, self._before(turned), self.answers[turned])[:10]


def _log_odds(log_probs: Floats, label: int) -> Floats:
    own = log_probs[:, label]
    rest: Floats = np.log(-np.expm1(np.minimum(own, -1e-12)))
    return own - rest


def _own(texts: Texts, word: str, label: int) -> list[int]:
    """Some of the texts with the word for which the model says its label."""
    found = [n for n in texts.containing.get(word, ()) if texts.predicted[n] == label]
    return [int(n) for n in np.random.default_rng([texts.seed, 53]).permutation(found)[:_OWN]]


def _coverage(texts: Texts, word: str, label: int) -> tuple[int, int]:
    """How many of the texts predicted as the label have the word, and how many there are."""
    own = texts.predicted == label
    return int(sum(own[n] for n in texts.containing.get(word, ()))), int(own.sum())


def _other(texts: Texts, word: str, label: int) -> int | None:
    """The other label that most of the examples with the word have.

    One of them and not all: thrown together, a word that is common under a label that is hard anyway would look as if
    it misled.
    """
    given = texts.given[list(texts.containing.get(word, ()))].tolist()
    found = Counter(n for n in given if n >= 0 and n != label)
    return max(sorted(found), key=found.__getitem__, default=None)


def _against(texts: Texts, word: str, given: int | None) -> Ints:
    """Right and all: of the examples of this label with the word, and of those of this label without it."""
    if given is None:
        return np.zeros((2, 2), int)
    with_word = np.zeros(len(texts.examples), bool)
    with_word[list(texts.containing.get(word, ()))] = True
    own, right = texts.given == given, texts.predicted == texts.given
    return np.array([[(right & some).sum(), some.sum()] for some in (own & with_word, own & ~with_word)])


def _goes_with(texts: Texts, word: str, label: int) -> tuple[float, float]:
    """How often the label goes with the word in the data, and without regard to it."""
    words, numbers = texts.labelled
    own = numbers[np.array([word in some for some in words], bool)]
    return float((own == label).mean()) if len(own) else 0.0, float((numbers == label).mean()) if len(numbers) else 0.0


def _telling(texts: Texts, word: str, label: int) -> tuple[str, ...]:
    """Ids of the texts with the word: first those where it goes against the given label and the model follows it."""
    at = texts.containing.get(word, ())
    led = [n for n in at if texts.predicted[n] == label and 0 <= texts.given[n] != label]
    rest = [n for n in at if texts.predicted[n] == label and n not in set(led)]
    return tuple(texts.examples[n].id for n in (led + rest)[:50])
