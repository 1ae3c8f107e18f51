"""Whether the model is as often right as it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unhans.audit import Find, Outcome, check
from unhans.audit._rules import CALIBRATION
from unhans.audit._statistics import Flags, Floats, Ints, percent, wilson
from unhans.types import Evidence, Example
from unhans.verify._statistics import calibration_error

_DRAWS = 500
_BINS = 5  # shown
_ONE_WAY = 0.5  # share of the error that the whole must be off by, to say that it errs one way
_WHAT = "calibration error; usual: of a model that keeps its word"


@check(
    title="Calibration",
    needs={"predict"},
    cost=0.02,
    order=7,
    labelled=True,
    paper="Guo et al. 2017, arXiv:1706.04599",
)
def calibration(
    examples: Sequence[Example], log_probs: Floats, given: Ints, find: Find, rng: np.random.Generator
) -> Outcome:
    """How far the model's confidence is from how often it is right, against a model that keeps its word.

    The error is the mean distance of confidence from accuracy over 15 bins of equally many texts. What is usual is
    drawn: a model with the same confidences that is right exactly as often as it says has some error too, by chance.
    """
    known = rng.permutation(np.flatnonzero(given >= 0))  # where many are equally sure, bins show no order of the file
    sure = np.exp(log_probs[known].max(axis=1)).clip(0.0, 1.0)
    right = log_probs[known].argmax(axis=1) == given[known]
    error, n = calibration_error(sure, right), len(known)
    honest = np.array([calibration_error(sure, rng.random(n) < sure) for _ in range(_DRAWS)])
    again = np.array([calibration_error(sure[r], right[r]) for r in rng.integers(n, size=(_DRAWS, n))])
    # chance only ever adds to the error, in a resample once more: the interval is moved back by as much
    low, high = np.percentile(again, (2.5, 97.5)) + error - again.mean()
    usual, most = float(honest.mean()), float(np.percentile(honest, 95))
    severity = CALIBRATION(max(0.0, float(low) - usual)) if error > most else None
    said = f"It is right on {percent(right.mean())} of {n:,} texts and {percent(sure.mean())} sure on average"
    if severity is None:
        return Outcome(f"{said}; the calibration error is {error:.3f}, that of an honest model {usual:.3f}.")
    wrong = known[~right][np.argsort(-sure[~right])]
    finding = find(
        severity,
        _title(sure, right, error - usual),
        says=f"{said}. Its confidence is no share of right answers, and thresholds on it do not mean what they say.",
        evidence=[Evidence(_WHAT, error, usual, max(0.0, float(low)), max(0.0, float(high)), n), *_bins(sure, right)],
        examples=[examples[n].id for n in wrong[:50]],
        next="Set thresholds by measured accuracy, or scale the model's scores on held-out texts.",
        screen="examples",
        limits="Labels that are wrong make an honest model look too sure. It says nothing about other data than these.",
    )
    return Outcome(f"{said}; the calibration error is {error:.3f}, that of an honest model {usual:.3f}.", (finding,))


def _title(sure: Floats, right: Flags, error: float) -> str:
    """Which way it is wrong about itself; both, where the one hides the other in the whole. `error` without chance."""
    gap = float(sure.mean() - right.mean())
    if abs(gap) < _ONE_WAY * error:
        return f"The model is too sure of some texts and not sure enough of others, by {percent(error)} on average"
    way = "surer" if gap > 0 else "less sure"
    return f"The model is {way} than it is right: {percent(sure.mean())} sure, {percent(right.mean())} right"


def _bins(sure: Floats, right: Flags) -> list[Evidence]:
    """How often it is right, by how sure it is."""
    found = []
    for part in np.array_split(np.argsort(sure, kind="stable"), min(_BINS, len(sure))):
        low, high = wilson(int(right[part].sum()), len(part))
        what = (
            f"right where it is {percent(sure[part[0]])} to {percent(sure[part[-1]])} sure; usual: as often as it says"
        )
        found.append(Evidence(what, float(right[part].mean()), float(sure[part].mean()), low, high, len(part)))
    return found
