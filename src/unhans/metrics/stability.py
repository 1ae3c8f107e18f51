"""Does a method give the same answer twice?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadOption
from unhans.metrics import Explain, Found, metric, spearman
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Example


@metric(
    better="higher",
    of="rank correlation of the scores under different seeds",
    family="stability",
    range=(-1.0, 1.0),
    undefined="it takes two words with different scores",
    paper="arXiv:1806.08049",
)
def stability(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    explain: Explain,
    rng: np.random.Generator,
    *,
    runs: Annotated[int, "how often each text is explained, the first time included"] = 3,
) -> Found:
    """Mean rank correlation between explanations of the same text under different seeds."""
    if runs < 2:
        raise BadOption(f"runs must be at least 2, not {runs}.")
    seeds = [int(seed) for seed in rng.integers(2**31, size=runs - 1)]
    made = [scores, *(explain(classifier, examples, seed=seed, targets=targets) for seed in seeds)]
    if all(np.array_equal(old, new) for other in made[1:] for old, new in zip(scores, other, strict=True)):
        values = np.array([1.0 if one.open else np.nan for one in words])
        return Found(values, "This method draws nothing at random: every seed gives the same scores.")
    lines = [[line[list(one.open)] for line in lines] for one, *lines in zip(words, *made, strict=True)]
    return Found(np.array([np.mean([spearman(a, b) for a, b in combinations(line, 2)]) for line in lines]))
