"""Which words to put on trial: those that matter in a few texts, and those that explanations point at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unhans.audit._look import Ask
from unhans.audit._words import Questions, Texts, Trial
from unhans.scoring import How
from unhans.task import rank_words, suspects
from unhans.types import Attributions

_SCREENED, _FEW_HOSTS = 500, 4  # words that are first put into a few texts each, to see which matter
_BY_EFFECT, _BY_SCORE = 15, 6  # candidates for each label: by that screening, by the model's explanations
_MOST = 50  # candidates in all


def candidates(texts: Texts, explained: Attributions, *, ask: Ask, how: How) -> dict[str, tuple[int, float | None]]:
    """Words to try, with the label that each speaks for and its excess over what the data explain, if it is known.

    Those that matter most in a few texts, among the words that go with a label in the data; those that explanations
    point at; and the suspects of the task's explanation.
    """
    labels = texts.classifier.labels
    lists, excess = _screened(texts, ask, how.part(0, 2)), dict[str, float]()
    known = [e for e in (*texts.examples, *texts.train) if e.label in labels]
    for name in dict.fromkeys(one.label for one in explained):
        rows = rank_words(explained, label=name, examples=known, min_count=3).words
        for row in rows:
            if row.z is not None and row.z > excess.get(row.word, -np.inf):
                excess[row.word] = row.z
        by_excess = sorted(rows, key=lambda row: -(row.z if row.z is not None else row.score))
        by_total = sorted(rows, key=lambda row: -row.score * row.count)
        lists += [[(row.word, labels.index(name)) for row in some[:_BY_SCORE]] for some in (by_total, by_excess)]
    shown = {one.example for one in explained}
    chosen = [e if e.label in labels else replace(e, label=None) for e in texts.examples if e.id in shown]
    told = how.part(1, 2)
    worst = suspects(texts.classifier, chosen, explained, keep=_BY_EFFECT, progress=told.tell, cancelled=told.cancelled)
    lists.append([(row.word, labels.index(row.label)) for row in worst.words])
    return {word: (label, excess.get(word)) for word, label in _merged(texts, lists).items()}


def _merged(texts: Texts, lists: Sequence[Sequence[tuple[str, int]]]) -> dict[str, int]:
    """The first of every list, then the second, and so on, each word once."""
    found: dict[str, int] = {}
    most = min(_MOST, len(texts.vocabulary) // 2)  # the others are there to be compared with
    for place in range(max(map(len, lists), default=0)):
        for some in lists:
            if place < len(some) and len(found) < most and some[place][0] in texts.vocabulary:
                found.setdefault(*some[place])
    return found


def _screened(texts: Texts, ask: Ask, how: How) -> list[list[tuple[str, int]]]:
    """For each label, the words that make it most probable, of those that go with it in the data."""
    bound = _bound(texts)
    questions = Questions(texts)
    hosts = {label: texts.hosts(label) for label in {label for _, label in bound}}
    put = {word: questions.put(word, hosts[label], _FEW_HOSTS) for word, label in bound}
    trial = Trial(texts, questions, ask(questions.made, how))
    effects = {word: trial.effect(put[word], label) for word, label in bound}
    found = []
    for number in sorted(hosts):
        own = sorted((word for word, label in bound if label == number), key=lambda word: (-effects[word], word))
        found.append([(word, number) for word in own[:_BY_EFFECT]])
    return found


def _bound(texts: Texts) -> list[tuple[str, int]]:
    """The words that go with a label most surely in the data (z of two shares), each with its label."""
    _, numbers = texts.labelled
    base = np.bincount(numbers, minlength=len(texts.classifier.labels)) / max(1, len(numbers))
    z: dict[tuple[str, int], float] = {}
    for word in texts.vocabulary:
        counts, n = texts.counts[word], texts.times(word)
        scores = {
            label: (counts[label] - share * n) / np.sqrt(share * (1 - share) * n)
            for label, share in enumerate(base)
            if 0 < share < 1 and n
        }
        if scores:
            label = max(scores, key=scores.__getitem__)
            z[word, label] = scores[label]
    return sorted(z, key=lambda key: (-z[key], key))[:_SCREENED]
