"""Texts and models for audits: answers that are known beforehand, so that what a check finds was planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from unhans.audit import audit
from unhans.black_boxes import PredictFunction
from unhans.types import Audit, Example, Finding

LABELS = ("negative", "positive")
GOOD = ("good", "great", "lovely", "pleasant", "superb", "fine")
BAD = ("bad", "awful", "dreadful", "boring", "poor", "dull")
_THINGS = ("soup", "film", "room", "phone", "book", "music", "garden", "train")
_FRAMES = (
    "The {0} was {1} , and I saw it with Anna on day 27 .",
    "We thought that the {0} here is {1} . Peter paid 310 for it .",
    "My friends say the {0} was {1} and the weather mild .",
)


@cache
def reviews() -> tuple[Example, ...]:
    """288 texts, labelled by their one telling word; no two have the same words."""
    made = []
    for label, words in zip(LABELS, (BAD, GOOD), strict=True):
        for frame, thing, word in product(_FRAMES, _THINGS, words):
            made.append(Example(f"e{len(made)}", frame.format(thing, word), label=label, split="test"))
    order = np.random.default_rng(5).permutation(len(made))
    return tuple(made[n] for n in order)


def model(says: Callable[[Any], float | Sequence[float]], labels: Sequence[str] = LABELS) -> PredictFunction:
    """A black box that says so with this probability of the last label (or these of all) for each text."""

    def predict(texts: Sequence[Any]) -> Any:
        lines = [says(text) for text in texts]
        return np.array([line if isinstance(line, Sequence) else (1 - line, line) for line in lines])

    return PredictFunction(predict, labels, name=f"{id(says)}")


def forms(text: str) -> list[str]:
    """Words as these texts have them: between blanks, which is a hundred times faster than to look for words."""
    return text.casefold().replace(".", " . ").split()


def good_model() -> PredictFunction:
    """Right about every review, changed or not: it counts words of praise and blame, and knows what "not" does."""
    return model(sensible)


def sensible(text: str) -> float:
    words = forms(text)
    total = 0.0
    for n, word in enumerate(words):
        sign = (word in _ALL_GOOD) - (word in _ALL_BAD)
        total += -sign if n and words[n - 1] == "not" else sign
    return 0.99 if total > 0 else 0.01 if total < 0 else 0.3


_ALL_GOOD = {*GOOD, "excellent", "wonderful", "amazing", "fantastic", "brilliant", "perfect", "delightful"}
_ALL_BAD = {*BAD, "terrible", "horrible", "disappointing", "disgusting", "unpleasant", "useless"}


@cache
def pairs() -> tuple[Example, ...]:
    """200 pairs, half of which say the same in other words or in the same ones; half do not, likewise."""
    people = ("judge", "actor", "doctor", "lawyer", "singer", "baker", "farmer", "pilot", "nurse", "clerk")
    made = []
    for n, (one, other) in enumerate((a, b) for a in people for b in people if a != b):
        first = f"The {one} saw the {other} near the {'river' if n % 2 else 'bridge'} ."
        for label, second in (
            ("yes", f"The {one} saw the {other} ." if n % 2 else f"Somebody noticed a {other} ."),
            ("no", f"The {other} saw the {one} ." if n % 3 else f"Nobody noticed a {other} ."),
        ):
            made.append(Example(f"p{len(made)}", first, second, label, split="test"))
    return tuple(made)


def lookup(examples: Sequence[Example], labels: Sequence[str]) -> PredictFunction:
    """A black box that knows the labels of these by heart, and says nothing of other texts."""
    known = {e.parts if e.pair is not None else e.text: labels.index(str(e.label)) for e in examples}

    def says(text: Any) -> list[float]:
        number = known.get(tuple(text) if not isinstance(text, str) else text)
        if number is None:
            return [1 / len(labels)] * len(labels)
        return [0.98 if n == number else 0.02 / (len(labels) - 1) for n in range(len(labels))]

    return model(says, labels)


def run(classifier: Any, examples: Sequence[Example], name: str, **how: Any) -> Audit:
    """One check alone."""
    options = {name: how.pop("options")} if "options" in how else None
    return audit(classifier, examples, checks=[name], options=options, **how)


def found(classifier: Any, examples: Sequence[Example], name: str, **how: Any) -> tuple[Finding, ...]:
    """What one check finds; it must have run."""
    done = run(classifier, examples, name, **how)
    assert done.checks[0].state == "done", done.checks[0].says
    return done.findings
