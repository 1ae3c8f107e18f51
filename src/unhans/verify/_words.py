"""What became of the voted words, and of everything else, in the explanations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unhans.attributions import attribute, attribution
from unhans.errors import Unsupported
from unhans.metrics import spearman
from unhans.model import Classifier
from unhans.scoring import Progress, ScoreCache
from unhans.text import Words, visible_form
from unhans.types import Attribution, Example, Recipe, WordEffect, WordVote

TEXTS = 100  # that a word, or how far explanations moved, is measured on at most
MOST_VOTES = 500
_EXPLAINED = 2000  # texts for all votes together, as long as each has ten
_FALLBACK = "leave_one_out"

Wanted = tuple[Example, str]
"""An example, and the label to explain."""
Found = Mapping[tuple[str, str], Attribution]
"""Attributions by the example's text hash and the label."""
Place = tuple[Example, tuple[int, ...]]
"""An example, and the positions of a word in it."""


@dataclass(frozen=True)
class Explaining:
    """One attribution method for all models that are compared."""

    method: str
    seed: int
    cache: ScoreCache | None
    cancelled: Callable[[], bool] | None
    note: str = ""

    @classmethod
    def by(cls, method: str, classifiers: Sequence[Classifier], **how: object) -> Explaining:
        """The method asked for, or one that only predicts, if a classifier lacks what it needs."""
        entry = attribution[method]
        try:
            for classifier in classifiers:
                classifier.require(entry.needs, entry.name)
        except Unsupported:
            note = f"Words are scored by {_FALLBACK}: {entry.name} needs more than one of the models can do."
            return cls(_FALLBACK, note=note, **how)  # type: ignore[arg-type]
        return cls(entry.name, **how)  # type: ignore[arg-type]

    @property
    def recipe(self) -> Recipe:
        """What is run."""
        return attribution[self.method].recipe({}, self.seed)

    def __call__(self, classifier: Classifier, wanted: Iterable[Wanted], progress: Progress | None = None) -> Found:
        """Each different text once for each label."""
        by_label: dict[str, dict[str, Example]] = defaultdict(dict)
        for example, label in wanted:
            by_label[label].setdefault(example.text_hash, example)
        total, done, found = sum(map(len, by_label.values())), 0, {}
        for label, texts in by_label.items():
            made = attribute(
                classifier,
                list(texts.values()),
                method=self.method,
                target=label,
                seed=self.seed,
                cache=self.cache,
                cancelled=self.cancelled,
                progress=_onwards(progress, done, total),
            )
            done += len(texts)
            found.update({(hash_, label): one for hash_, one in zip(texts, made, strict=True)})
        return found


def _onwards(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


def shuffled(sets: Mapping[str, Sequence[Example]], seed: int) -> list[Example]:
    """The examples of all sets in a random order, equal texts once."""
    different = list({example.text_hash: example for examples in sets.values() for example in examples}.values())
    return [different[n] for n in np.random.default_rng(seed).permutation(len(different))]


def places_of_words(words: Iterable[str], examples: Sequence[Example], most: int) -> dict[str, list[Place]]:
    """The first texts that have each word (by its visible form), with its positions."""
    found: dict[str, list[Place]] = {visible_form(word): [] for word in words}
    if not found:
        return {}
    for example in examples:
        at: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(Words(example).strings):
            at[visible_form(word)].append(position)
        for form in at.keys() & found.keys():
            if len(found[form]) < most:
                found[form].append((example, tuple(at[form])))
    return found


def places_of_votes(
    votes: Sequence[WordVote], different: Sequence[Example], examples: Iterable[Example]
) -> list[tuple[WordVote, list[Place]]]:
    """Where each vote can be measured: on different texts with the word, or on the example that it is about."""
    most = max(10, min(TEXTS, _EXPLAINED // max(1, len(votes))))
    everywhere = places_of_words([vote.word for vote in votes if vote.example is None], different, most)
    by_id: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_id[example.id].append(example)
    return [
        (vote, everywhere[visible_form(vote.word)] if vote.example is None else _there(vote, by_id[vote.example]))
        for vote in votes
    ]


def _there(vote: WordVote, examples: Sequence[Example]) -> list[Place]:
    for example in examples:
        forms = [visible_form(word) for word in Words(example).strings]
        at = range(len(forms)) if vote.position is None else range(vote.position, vote.position + 1)
        if places := tuple(n for n in at if n < len(forms) and forms[n] == visible_form(vote.word)):
            return [(example, places)]
    return []


def effect(vote: WordVote, places: Sequence[Place], before: Found, after: Found) -> WordEffect | None:
    """What became of a vote; None if the word is nowhere that the models read."""
    pairs = [
        (one, two)
        for example, at in places
        if (one := weight(before[example.text_hash, vote.label], at)) is not None
        and (two := weight(after[example.text_hash, vote.label], at)) is not None
    ]
    if not pairs:
        return None
    (before_, score_before), (after_, score_after) = np.mean(pairs, axis=0).tolist()
    texts = len(pairs)
    return WordEffect(vote.word, vote.label, vote.vote, vote.example, before_, after_, score_before, score_after, texts)


def weight(one: Attribution, positions: Iterable[int]) -> tuple[float, float] | None:
    """A word's share of the absolute scores of a text, and its score; None if the model did not read it."""
    read = [position for position in positions if position not in one.unread]
    if not read:
        return None
    total = sum(map(abs, one.scores))
    share = sum(abs(one.scores[n]) for n in read) / total if total else 0.0
    return share, sum(one.scores[n] for n in read)


def without_words(words: Iterable[str], examples: Iterable[Example], most: int = TEXTS) -> list[Example]:
    """The first texts that have none of the words."""
    forms = {visible_form(word) for word in words}
    found: list[Example] = []
    for example in examples:
        if len(found) == most:
            break
        if forms.isdisjoint(map(visible_form, Words(example).strings)):
            found.append(example)
    return found


def likeness(pairs: Iterable[tuple[Attribution, Attribution]]) -> float | None:
    """Mean Spearman between scores before and after, of words that both models read; None if it is never defined."""
    found = []
    for before, after in pairs:
        read = [n for n in range(len(before.words)) if n not in before.unread and n not in after.unread]
        lines = [np.array([one.scores[n] for n in read]) for one in (before, after)]
        found.append(spearman(*lines))
    defined = [value for value in found if np.isfinite(value)]
    return float(np.mean(defined)) if defined else None
