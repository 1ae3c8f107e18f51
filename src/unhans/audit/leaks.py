"""Texts to test with that the model was trained on, and texts that stand under two labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from unhans.audit import Find, Outcome, check
from unhans.audit._rules import CONTRADICTIONS, LEAKS
from unhans.audit._statistics import Flags, Floats, Ints, percent, share, wilson
from unhans.data.corpus import counted
from unhans.heuristics import words_of
from unhans.types import Evidence, Example, Finding

_FEWEST_WORDS = 4  # shorter texts are alike by chance: two people write "thank you"
_SHOWN = 50


@check(
    title="Leaks and contradictions",
    needs={"predict"},
    cost=0.01,
    order=3,
    paper="Lee et al. 2022, arXiv:2107.06499",
)
def leaks(examples: Sequence[Example], train: Sequence[Example], log_probs: Floats, given: Ints, find: Find) -> Outcome:
    """Texts that are in the training data too, word for word or with the same words, and texts with two labels.

    Texts of fewer than four words are passed over. The same words: in any order, whatever case and punctuation.
    """
    told, findings = [], []
    if train:
        leaked = _leaked(examples, train)
        told.append(f"{counted(int(leaked.sum()), 'example')} of {len(examples):,} stand in the training data.")
        findings += list(_leak(examples, train, leaked, log_probs, given, find))
    else:
        told.append("The training examples are not known, so leaks could not be looked for.")
    for name, some in (("training examples", train), ("examples", examples)):
        twice, n = _contradictions(some)
        if n:
            told.append(f"{counted(len(twice), 'text')} of {n:,} {name} stand under more than one label.")
            findings += list(_contradiction(name, twice, n, find))
    return Outcome(" ".join(told), tuple(findings))


def _key(example: Example, *, near: bool) -> tuple[object, ...] | None:
    parts = [words_of(part) for part in example.parts]
    if sum(map(len, parts)) < _FEWEST_WORDS:
        return None
    return tuple(tuple(sorted(words)) for words in parts) if near else example.parts


def _keys(examples: Iterable[Example], *, near: bool) -> list[tuple[object, ...] | None]:
    return [_key(example, near=near) for example in examples]


def _leaked(examples: Sequence[Example], train: Sequence[Example]) -> Flags:
    """Whether the same words stand in a training example; the same text has the same words."""
    known = set(_keys(train, near=True)) - {None}
    return np.array([key in known for key in _keys(examples, near=True)], bool)


def _leak(
    examples: Sequence[Example], train: Sequence[Example], leaked: Flags, log_probs: Floats, given: Ints, find: Find
) -> Iterator[Finding]:
    low, _ = wilson(int(leaked.sum()), len(leaked))
    severity = LEAKS(low)
    if severity is None or not leaked.any():
        return
    exact = set(_keys(train, near=False)) - {None}
    same = np.array([key in exact for key in _keys(examples, near=False)], bool)
    evidence = [
        share("share of the examples whose words, in whatever order, are those of a training example", leaked, 0.0),
        share("share of the examples that are a training example word for word", same, 0.0),
    ]
    right, known = log_probs.argmax(axis=1) == given, given >= 0
    if (known & leaked).any() and (known & ~leaked).any():
        apart = float(right[known & ~leaked].mean())
        evidence.append(
            share("accuracy on the examples that leaked; usual: on the others", right[known & leaked], apart)
        )
    yield find(
        severity,
        f"{counted(int(leaked.sum()), 'example')} to test with ({percent(leaked.mean())}) are in the training data",
        says="The model has seen these texts with their labels. What is measured on them says how well it remembers, "
        "not how well it reads.",
        evidence=evidence,
        examples=[examples[n].id for n in np.flatnonzero(leaked)[:_SHOWN]],
        next="Take them out of one of the two sets, and measure again.",
        screen="problems",
        limits="Texts that were rewritten, translated or cut are not found.",
    )


def _contradictions(examples: Iterable[Example]) -> tuple[list[list[str]], int]:
    """Ids of the examples of each text that stands under several labels, and how many labelled examples there are."""
    labels: dict[tuple[object, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    n = 0
    for example in examples:
        if example.label is not None:
            n += 1
            if (key := _key(example, near=False)) is not None:
                labels[key][example.label].append(example.id)
    return [[id_ for ids in by.values() for id_ in ids] for by in labels.values() if len(by) > 1], n


def _contradiction(name: str, twice: Sequence[Sequence[str]], n: int, find: Find) -> Iterator[Finding]:
    ids = [id_ for group in twice for id_ in group]
    low, high = wilson(len(ids), n)
    severity = CONTRADICTIONS(low)
    if severity is None:
        return
    what = f"share of the labelled {name} whose text stands under another label too"
    yield find(
        severity,
        f"{counted(len(twice), 'text')} of the {name} stand under more than one label",
        says="The same text has different labels. At least one of them is wrong, or the text alone does not tell.",
        evidence=[Evidence(what, len(ids) / n, 0.0, low, high, n)],
        examples=ids[:_SHOWN],
        next="Decide what their label is, or take them out.",
        screen="label-errors" if name.startswith("training") else "problems",
        limits="Only texts that are equal sign for sign are compared.",
    )
