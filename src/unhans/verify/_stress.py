"""Stress sets: the same texts with the voted words taken out, put where they do not belong, or replaced."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unhans.feedback import resolve, settle
from unhans.reporting import MADE
from unhans.text import Variant, Words, visible_form
from unhans.types import Example, Feedback, Span, WordVote

WITHOUT, ELSEWHERE, REPLACED = "without voted words", "voted words in other labels", "voted words replaced"
_NEAR = 50  # a word is put among the first so many, which nearly every model reads
_FILLERS = 10  # the most neutral words, of which one is drawn


def stress_sets(
    sets: Mapping[str, Sequence[Example]], feedback: Sequence[Feedback], seed: int = 0
) -> dict[str, list[Example]]:
    """New sets from labelled examples and the votes that lower a word, wherever it was lowered.

    Three of each set, as far as its texts have the words: without them; with one of them put into texts of labels that
    it was not lowered for; and with each replaced by a word that is about as frequent and goes with no label in
    particular. They hold the changed texts only, under their given labels.
    """
    settled, _ = settle(resolve(feedback).values())
    lowered = [one.says for one in settled if isinstance(one.says, WordVote) and one.says.vote == "lower"]
    words = _Lowered.of(lowered)
    if not words.labels:
        return {}
    given = {name: [example for example in examples if example.label is not None] for name, examples in sets.items()}
    fillers = _fillers([example for examples in given.values() for example in examples], set(words.labels), seed)
    made: dict[str, list[Example]] = {}
    for name, examples in given.items():
        kinds: dict[str, list[Example]] = {WITHOUT: [], ELSEWHERE: [], REPLACED: []}
        for text in map(_Text, examples):
            for kind, new in (
                (WITHOUT, _without(text, words)),
                (ELSEWHERE, _elsewhere(text, words, seed)),
                (REPLACED, _replaced(text, fillers)),
            ):
                kinds[kind] += [new] if new is not None else []
        made |= {f"{name}{MADE}{kind}": found for kind, found in kinds.items() if found}
    return made


class _Text:
    """An example with its words as they are and as they are counted."""

    def __init__(self, example: Example) -> None:
        self.example, self.words = example, Words(example)
        self.forms = [visible_form(word) for word in self.words.strings]


@dataclass(frozen=True)
class _Lowered:
    """The words that are to count less: as they were written, and for which labels."""

    labels: Mapping[str, set[str]]
    written: Mapping[str, str]

    @classmethod
    def of(cls, votes: Iterable[WordVote]) -> _Lowered:
        labels: dict[str, set[str]] = defaultdict(set)
        written: dict[str, str] = {}
        for vote in votes:
            if form := visible_form(vote.word):
                labels[form].add(vote.label)
                written.setdefault(form, vote.word)
        return cls(labels, written)


def _without(text: _Text, lowered: _Lowered) -> Example | None:
    gone = [n for n, form in enumerate(text.forms) if form in lowered.labels]
    return _changed(text.example, text.words.without(gone), "without") if gone else None


def _elsewhere(text: _Text, lowered: _Lowered, seed: int) -> Example | None:
    label, there = text.example.label, set(text.forms)
    foreign = sorted(form for form, labels in lowered.labels.items() if label not in labels and form not in there)
    starts = [n for n, span in enumerate(text.words.spans[:_NEAR]) if _stands_apart(text.example, span)]
    if not foreign or not starts:
        return None
    rng = np.random.default_rng([seed, int(text.example.text_hash, 16)])
    at = starts[int(rng.integers(len(starts)))]
    new = lowered.written[foreign[int(rng.integers(len(foreign)))]]
    return _changed(text.example, text.words.variant({at: f"{new} {text.words.strings[at]}"}), "elsewhere")


def _stands_apart(example: Example, span: Span) -> bool:
    """Whether a new word can stand before this one: in the first text of a pair, and after a blank."""
    return span.part == "text" and (span.start == 0 or example.text[span.start - 1].isspace())


def _replaced(text: _Text, fillers: Mapping[str, str]) -> Example | None:
    old = text.words.strings
    changes = {n: _like(old[n], fillers[form]) for n, form in enumerate(text.forms) if form in fillers}
    return _changed(text.example, text.words.variant(changes), "replaced") if changes else None


def _like(old: str, new: str) -> str:
    return new.capitalize() if old[:1].isupper() else new


def _changed(example: Example, variant: Variant, how: str) -> Example | None:
    """The example with its new text; None if nothing is left to read."""
    text, *pair = variant.texts
    if not any(part.strip() for part in (text, *pair)):
        return None
    return replace(example, id=f"{example.id}{MADE}{how}", text=text, pair=pair[0] if pair else None, highlights=None)


def _fillers(examples: Sequence[Example], lowered: set[str], seed: int) -> dict[str, str]:
    """For each lowered word that occurs, another of about its frequency (within a factor of two, if there is one)."""
    with_word: dict[str, Counter[str]] = defaultdict(Counter)  # texts that have it, by label
    for example in examples:
        for form in {visible_form(word) for word in Words(example).strings}:
            with_word[form][str(example.label)] += 1
    base = Counter(str(example.label) for example in examples)
    shares = {label: n / base.total() for label, n in base.items()}

    def bias(form: str) -> float:
        own = with_word[form]
        return max(abs(own[label] / own.total() - share) for label, share in shares.items())

    usable = [form for form in sorted(with_word) if form.isalpha() and form not in lowered]
    chosen: dict[str, str] = {}
    for form in sorted(lowered & with_word.keys()):
        size = _size(with_word[form].total())
        nearest = min((abs(_size(with_word[other].total()) - size) for other in usable), default=0)
        like = [other for other in usable if abs(_size(with_word[other].total()) - size) == nearest]
        if like:
            rng = np.random.default_rng([seed, len(chosen)])
            neutral = sorted(like, key=bias)[:_FILLERS]
            chosen[form] = neutral[int(rng.integers(len(neutral)))]
    return chosen


def _size(count: int) -> int:
    """The power of two that a count reaches."""
    return count.bit_length()
