"""Kinds of texts on which the model fails more often than on the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from unhans.audit import Find, Outcome, check
from unhans.audit._rules import FEWEST, SIGNIFICANT, SLICES
from unhans.audit._statistics import Flags, Floats, Ints, difference, fewer, holm, percent, share
from unhans.errors import BadOption
from unhans.heuristics import has
from unhans.model import Classifier
from unhans.types import Example, Finding

_WORDS = 200  # the commonest words that are looked at
_COST = 0.05  # of the whole accuracy, from which on a slice by a word is severe: of so many words a few are always hard
_RARE = 0.15  # share of a text's words that occur nowhere else, from which on it may be mistyped


@dataclass(frozen=True)
class _Slice:
    """Some of the labelled examples, and what they have in common."""

    name: str
    inside: Flags
    kind: str
    word: str | None = None


@check(
    title="Slices where it fails",
    needs={"predict"},
    cost=0.05,
    order=5,
    labelled=True,
    paper="Chung et al. 2019, arXiv:1807.06068",
)
def slices(
    classifier: Classifier,
    examples: Sequence[Example],
    log_probs: Floats,
    given: Ints,
    forms: Sequence[tuple[str, ...]],
    sizes: Ints,
    find: Find,
    *,
    words: Annotated[int, "findings about single words at most; the others are told in a sentence"] = 5,
) -> Outcome:
    """Lengths, labels, groups, negations, rare spellings and words whose texts the model gets wrong more often.

    Each slice is compared with all other labelled texts: Fisher's exact test, with Holm's correction for all slices
    that were looked at; the interval of the difference is Newcombe's.
    """
    if words < 0:
        raise BadOption(f"words must be 0 or more, not {words}.")
    known = np.flatnonzero(given >= 0)
    right = (log_probs.argmax(axis=1) == given)[known]
    some = [examples[n] for n in known.tolist()]
    found = list(_slices(classifier, some, given[known], [forms[n] for n in known.tolist()], sizes[known]))
    chances = [_chance(one.inside, right) for one in found]
    sure = [one for one, p in zip(found, holm(chances), strict=True) if p < SIGNIFICANT]
    ranked = sorted(sure, key=lambda one: -_gap(one.inside, right)[0])
    named = [one for one in ranked if one.word is not None]
    kept = [one for one in ranked if one.word is None or one in named[:words]]
    findings = [made for one in kept if (made := _finding(one, some, right, find)) is not None]
    said = (
        f"Right on {percent(right.mean())} of {len(known):,} texts; {len(found):,} slices were compared with the rest"
    )
    if rest := [str(one.word) for one in named[words:]]:
        said += f"; texts with these words are worse, too: {', '.join(rest[:20])}"
    return Outcome(f"{said}.", tuple(findings))


def _slices(
    classifier: Classifier, examples: Sequence[Example], given: Ints, forms: Sequence[tuple[str, ...]], sizes: Ints
) -> Iterator[_Slice]:
    """All slices that are large enough, and so are the texts outside."""
    for one in _all(classifier, examples, given, forms, sizes):
        if FEWEST <= one.inside.sum() <= len(examples) - FEWEST:
            yield one


def _all(
    classifier: Classifier, examples: Sequence[Example], given: Ints, forms: Sequence[tuple[str, ...]], sizes: Ints
) -> Iterator[_Slice]:
    ends = np.unique(np.quantile(sizes, (0, 0.2, 0.4, 0.6, 0.8, 1)).round().astype(int))
    for low, high in pairwise(ends):
        last = high == ends[-1]
        told = f"texts of {low} to {high if last else high - 1} words"
        yield _Slice(told, (sizes >= low) & ((sizes <= high) if last else (sizes < high)), "length")
    for number, label in enumerate(classifier.labels):
        yield _Slice(f"texts labelled {label}", given == number, "label")
    for group in sorted({e.group for e in examples if e.group is not None}):
        yield _Slice(f"texts of the group {group}", np.array([e.group == group for e in examples]), "group")
    yield _Slice("texts that negate", np.array([has(e, "negation") for e in examples], bool), "negation")
    counts = Counter(word for words in forms for word in set(words))
    rare = [sum(counts[w] == 1 for w in words) >= max(1, _RARE * len(words)) for words in forms]
    yield _Slice("texts with many words that occur nowhere else, as mistyped ones do", np.array(rare, bool), "typos")
    for word, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_WORDS]:
        yield _Slice(f"texts with the word {word!r}", np.array([word in words for words in forms], bool), "word", word)


def _chance(inside: Flags, right: Flags) -> float:
    a, b = right[inside], right[~inside]
    return fewer(int(a.sum()), len(a), int(b.sum()), len(b))


def _gap(inside: Flags, right: Flags) -> tuple[float, float]:
    """How much lower the accuracy is inside, with its interval: its lower and upper end."""
    a, b = right[inside], right[~inside]
    return difference(int(b.sum()), len(b), int(a.sum()), len(a))


def _finding(one: _Slice, examples: Sequence[Example], right: Flags, find: Find) -> Finding | None:
    gap = _gap(one.inside, right)[0]
    severity = SLICES(gap)
    if severity is None:
        return None
    if severity == "high" and one.word is not None and gap * one.inside.mean() < _COST:
        severity = "medium"
    inside, rest = float(right[one.inside].mean()), float(right[~one.inside].mean())
    wrong = np.flatnonzero(one.inside & ~right)
    return find(
        severity,
        f"It is right on {percent(inside)} of {one.name}, and on {percent(rest)} of the others",
        says=f"The difference is more than chance makes of it among all the slices that were looked at. "
        f"{int(one.inside.sum()):,} texts are in this one.",
        evidence=[share("accuracy in the slice; usual: outside of it", right[one.inside], rest)],
        examples=[examples[n].id for n in wrong[:50]],
        words=[one.word] if one.word else [],
        next="Look at the errors; if they have a reason in common, give the model more such texts, or teach it.",
        screen="words" if one.word else "examples",
        limits="A slice that is harder for people too looks the same. Slices overlap: one cause may show in several.",
    )
