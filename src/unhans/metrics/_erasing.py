"""What metrics that erase words share: which words go, what is put in their place, what the model then says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadOption
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.text import Hole, Variant, Words

Share = Annotated[float, "part of the words, those with the highest scores"]
BY_DELETION = "methods that delete words themselves, such as leave_one_out: both ask the model about the same texts"
BY_LANGUAGE_MODEL = (
    "methods that fill words in themselves, such as input_marginalization and LIME with a language model"
)
NO_WORDS = "a text without words has nothing to erase"


def top(words: Words, scores: NDArray[np.float64], share: float, least: int = 1) -> list[int]:
    """Positions of the highest-scored share of the words that can be changed, highest first; ties in reading order."""
    if not 0 < share <= 1:
        raise BadOption(f"share must be above 0 and at most 1, not {share}.")
    n = len(words.open)
    count = min(n, max(least, math.ceil(round(share * n, 9))))  # 0.28 × 25 is 7.000000000000001
    return sorted(words.open, key=lambda position: -scores[position])[:count]


def filled(
    language_model: LanguageModel, words: Sequence[Words], orders: Sequence[Sequence[int]], **how: Any
) -> list[list[Variant]]:
    """Each text untouched, then after each word of its order was replaced by the language model's best other guess.

    Each word is guessed from the text as it has become by then. A line ends early where the language model has no
    other word to offer, as beyond its length limit.
    """
    steps = [[one.variant({})] for one in words]
    changes: list[dict[int, str | Hole]] = [{} for _ in words]
    for step in range(max(map(len, orders), default=0)):
        live = [n for n, order in enumerate(orders) if step < len(order) and len(steps[n]) == step + 1]
        holed = [words[n].variant({**changes[n], orders[n][step]: Hole.MASK}) for n in live]
        guesses = language_model.fill(holed, k=2, cancelled=how.get("cancelled"))
        for n, holes in zip(live, guesses, strict=True):
            place = orders[n][step]
            old = words[n].strings[place].casefold()
            other = [guess.word for guess in holes[0] if guess.word.casefold() != old]
            if other:
                changes[n][place] = other[0]
                steps[n].append(words[n].variant(changes[n]))
    return steps


def probabilities(
    classifier: Classifier, lines: Sequence[Sequence[Variant]], targets: Sequence[int], how: dict[str, Any]
) -> list[NDArray[np.float64]]:
    """Probability of each example's label in every one of its variants."""
    answers = iter(np.exp(classifier.log_probs([variant for line in lines for variant in line], **how)))
    return [np.array([next(answers)[goal] for _ in line]) for line, goal in zip(lines, targets, strict=True)]


def area(curve: NDArray[np.float64]) -> float:
    """Area under a curve over steps of equal width from 0 to 1; NaN where there is no step."""
    return float(np.trapezoid(curve, dx=1 / (len(curve) - 1))) if len(curve) > 1 else float("nan")
