"""Training examples whose label is probably wrong, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unhans.audit import Find, How, Outcome, check
from unhans.audit._look import drawn
from unhans.audit._rules import FEWEST, WRONG_LABELS
from unhans.audit._statistics import Flags, percent, wilson
from unhans.doubts import Doubts, doubts
from unhans.errors import BadData
from unhans.model import Classifier
from unhans.types import Evidence, Example

_SHOWN = 50
_ENOUGH = 3  # signs, from which on one that has nothing to say does not decide the median


@check(
    title="Wrong labels",
    needs={"predict"},
    cost=3.0,
    order=6,
    trained=True,
    paper="Northcutt et al. 2021, arXiv:1911.00068",
)
def wrong_labels(
    classifier: Classifier,
    train: Sequence[Example],
    find: Find,
    how: How,
    folder: Path | None,
    limit: int,
    seed: int,
) -> Outcome:
    """Training examples whose label several signs doubt (`unhans.doubts`), and an estimate of their share."""
    labelled = [e for e in train if e.label in classifier.labels]
    if len(labelled) < FEWEST or len({e.label for e in labelled}) < 2:
        raise BadData(f"It takes {FEWEST} training examples or more, with two labels or more.")
    some = drawn(labelled, limit, seed)
    ranked = doubts(classifier, some, folder=folder, seed=seed, progress=how.tell, cancelled=how.cancelled)
    wrong = likely_wrong(ranked)
    value = float(wrong.mean())
    low, high = wilson(int(wrong.sum()), len(wrong))
    said = f"Of {len(some):,} training examples an estimated {percent(value)} have a wrong label."
    severity = WRONG_LABELS(low)
    if severity is None:
        return Outcome(said)
    named = [one.example for one, yes in zip(ranked, wrong, strict=True) if yes]
    finding = find(
        severity,
        f"About {percent(value)} of the training labels are probably wrong",
        says=f"{said} Signs that do not trust the given label agree on another one for these.",
        evidence=[Evidence("estimated share of wrong labels in the training data", value, 0.0, low, high, len(some))],
        examples=named[:_SHOWN],
        next="Look at the most doubtful first; correct them, and train again.",
        screen="label-errors",
        limits="Texts that are hard, or that a shortcut decides, look like wrong labels. The interval is that of "
        "counting, and not of the estimate's own error.",
    )
    return Outcome(said, (finding,))


def likely_wrong(ranked: Doubts) -> Flags:
    """Whether each example counts as wrong: another label is suggested, and most signs find it doubtful."""
    return np.array([one.suggested != one.label and _median(one.signs) >= 0.5 for one in ranked], bool)


def _median(signs: Sequence[tuple[str, float]]) -> float:
    """A text that is there once contradicts nothing, which says nothing: of few signs it would outvote the others."""
    ranks = [rank for name, rank in signs if rank > 0 or name != "contradiction" or len(signs) >= _ENOUGH]
    return float(np.median(ranks))
