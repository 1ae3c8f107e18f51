"""When something is worth telling, and how bad it is: every threshold of the audit, in one place.

A rule grades one number. Where the number is an estimate, the end of its 95 % interval nearer to nothing is graded, so
that few texts never make a severe finding. `docs/audit.md` has the same table, and a test holds the two together. The
figures for shortcuts were chosen on other seeds than those the page reports (`examples/audit_real.py demo`); the rest
are plain conventions, to be read as such.
"""

from __future__ import annotations

from dataclasses import dataclass

from unhans.types import Severity


@dataclass(frozen=True)
class Rule:
    """From which value on a finding is of which severity; None: never that severe."""

    of: str  # what is graded, in words
    high: float | None
    medium: float | None
    low: float

    def __call__(self, value: float | None) -> Severity | None:
        """How severe this is; None: not worth telling."""
        if value is None:
            return None
        for name, least in (("high", self.high), ("medium", self.medium), ("low", self.low)):
            if least is not None and value >= least:
                return name  # type: ignore[return-value]
        return None


LEAKS = Rule("share of the examples that the model was trained on, lower end", 0.1, 0.01, 0.0005)
CONTRADICTIONS = Rule("share of the texts that occur with different labels, lower end", None, 0.03, 0.001)
WRONG_LABELS = Rule("estimated share of wrong labels, lower end", 0.2, 0.1, 0.05)
CALIBRATION = Rule("calibration error beyond that of a model that keeps its word, lower end", 0.15, 0.08, 0.03)
SLICES = Rule("accuracy of the rest less that of the slice, lower end", 0.25, 0.12, 0.04)
INVARIANCE = Rule("share of predictions that change although nothing that matters does, lower end", 0.25, 0.1, 0.02)
TYPOS = Rule("share of predictions that change with one typing error, lower end", 0.4, 0.2, 0.08)
DIRECTION = Rule("share of texts that move the wrong way, lower end", None, 0.5, 0.15)
PATTERNS = Rule("false alarms beyond those among texts without the pattern, lower end", 0.25, 0.1, 0.04)
PARTIAL = Rule("accuracy beyond the commonest label when one of the two texts is missing, lower end", 0.25, 0.12, 0.06)
STRANGE = Rule("share of the texts that are strange beyond the usual 5 %, lower end", 0.45, 0.2, 0.05)
GROUPS = Rule("false alarms of a group beyond those of comparable texts, lower end", 0.2, 0.1, 0.03)
SWAPS = Rule("share of predictions that change when one group is named instead of another, lower end", 0.25, 0.1, 0.03)
SANITY = Rule("rank correlation with the explanations of a model that was drawn anew", None, 0.95, 0.95)
OVERRIDES = Rule("share of clear texts of other labels that one word turns over, lower end", 0.5, 0.3, 0.15)
RELIANCE = Rule("share of a label's predictions that would change without one word, lower end", 0.15, 0.07, 0.03)
AGAINST = Rule("accuracy lost where the word stands under another label, lower end", 0.25, 0.15, 0.05)

SIGNIFICANT = 0.05  # after Holm's correction for all that one check looked at
FEWEST = 20  # texts that a share is told of
_ORDER: tuple[Severity, ...] = ("high", "medium", "low")


def worst(*severities: Severity | None) -> Severity | None:
    """The severest of these."""
    return min((one for one in severities if one is not None), key=_ORDER.index, default=None)


def mildest(*severities: Severity | None) -> Severity | None:
    """The least severe; None if one of them is nothing."""
    if None in severities:
        return None
    return max((one for one in severities if one is not None), key=_ORDER.index, default=None)
