"""Whether a copy still deserves the label of its text: by the model itself, or by how well its new words fit in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from math import exp
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from unhans.text import Words, visible_form
from unhans.types import Example

if TYPE_CHECKING:
    from unhans.language_model import LanguageModel
    from unhans.model import Classifier

Pairs = Sequence[tuple[Example, Example]]
"""Each text with a copy of it."""


def by_model(classifier: Classifier, pairs: Pairs, cancelled: Callable[[], bool] | None) -> list[float]:
    """The probability of the label for the copy, by that for the text; 1 where it rose."""
    if not pairs:
        return []
    texts = [text for pair in pairs for text in pair]
    labels = [classifier.labels.index(str(text.label)) for text, _ in pairs]
    lines = classifier.log_probs(texts, cancelled=cancelled)
    at = np.arange(len(pairs))
    risen = lines[1::2][at, labels] - lines[::2][at, labels]
    return [exp(min(0.0, float(change))) for change in risen]


def by_language_model(model: LanguageModel, pairs: Pairs, cancelled: Callable[[], bool] | None) -> list[float]:
    """How likely the new words are where they stand, by how likely the old ones were: means by word; 1 where it rose.

    Where words only went missing, the words beside the gap are compared.
    """
    asked: list[tuple[Example, int]] = []
    sizes: list[tuple[int, int]] = []
    for text, copy in pairs:
        old, new = changed(Words(text).strings, Words(copy).strings)
        asked += [*((text, n) for n in old), *((copy, n) for n in new)]
        sizes.append((len(old), len(new)))
    told = iter(model.word_log_probs(asked, cancelled=cancelled))
    found = []
    for n_old, n_new in sizes:
        before, after = ([next(told) for _ in range(n)] for n in (n_old, n_new))
        found.append(exp(min(0.0, fmean(after) - fmean(before))) if before and after else 1.0)
    return found


def changed(old: Sequence[str], new: Sequence[str]) -> tuple[list[int], list[int]]:
    """The words that differ, by number in either text; beside a place where words only came or went, its neighbours."""
    before, after = ([visible_form(word) for word in words] for words in (old, new))
    ours: set[int] = set()
    theirs: set[int] = set()
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            ours.update(range(i, i_end) if i < i_end else (i - 1, i))
            theirs.update(range(j, j_end) if j < j_end else (j - 1, j))
    return [n for n in sorted(ours) if 0 <= n < len(old)], [n for n in sorted(theirs) if 0 <= n < len(new)]
