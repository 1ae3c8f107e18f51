"""How generators that go word by word gather their proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Annotated, Any

import numpy as np

from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft, combined
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.types import Edit

Positions = Annotated[int, "words of a draft that are tried: those without which the goal is nearest; 0: all"]


def check_counts(least: int = 0, **counts: int) -> None:
    """Refuse numbers of things that there cannot be."""
    for name, count in counts.items():
        if count < least:
            raise BadOption(f"{name} must be {least} or more, not {count}.")


def telling(
    classifier: Classifier, asked: Sequence[tuple[Draft, Sequence[int]]], most: int, how: dict[str, Any]
) -> list[tuple[int, ...]]:
    """Of some open words of each draft, those without which it would be nearest to its goal, in the order of the text.

    All of them where there are no more than `most`, or `most` is 0; then the model is not asked.
    """
    many = [n for n, (_, open_to) in enumerate(asked) if 0 < most < len(open_to)]
    without = [
        (on, [on.words.edited(combined(on.edits, [on.edit(p, "")])) for p in own])
        for on, own in map(asked.__getitem__, many)
    ]
    lines = classifier.log_probs([variant for _, some in without for variant in some], **how)
    chosen = [tuple(open_to) for _, open_to in asked]
    at = 0
    for n, (on, some) in zip(many, without, strict=True):
        gains = on.goal.gain(lines[at : at + len(some)])
        at += len(some)
        chosen[n] = tuple(sorted(chosen[n][k] for k in np.argsort(-gains, kind="stable")[:most]))
    return chosen


def of_words(  # noqa: PLR0917 - what the generators that look words up have in common
    look_up: Callable[[str], Sequence[str]],
    classifier: Classifier,
    drafts: Sequence[Draft],
    rules: Constraints,
    how: dict[str, Any],
    per_word: int,
    positions: int,
) -> list[list[tuple[Edit, ...]]]:
    """Proposals of a generator that looks words up, whatever text they stand in."""
    check_counts(per_word=per_word, positions=positions)
    found = [{p: words for p in on.open if (words := look_up(on.words.strings[p]))} for on in drafts]
    places = telling(classifier, [(on, tuple(own)) for on, own in zip(drafts, found, strict=True)], positions, how)
    return [
        in_turn(on, rules, {p: own[p] for p in chosen}, per_word)
        for on, own, chosen in zip(drafts, found, places, strict=True)
    ]


def in_turn(
    on: Draft, rules: Constraints, candidates: Mapping[int, Iterable[str]], most: int | None = None
) -> list[tuple[Edit, ...]]:
    """Edits that keep to the rules: the best of each word first, then the second of each, and so on.

    `candidates` are the words that may stand at each open position, best first; `most` of them are taken.
    """
    lists = [islice(_allowed(on, rules, position, some), most) for position, some in candidates.items()]
    return [(edit,) for rank in zip_longest(*lists) for edit in rank if edit is not None]


def _allowed(on: Draft, rules: Constraints, position: int, words: Iterable[str]) -> Iterable[Edit]:
    edits = (on.edit(position, word) for word in dict.fromkeys(words))
    return (edit for edit in edits if edit.new != edit.old and rules.allows(on, edit))
