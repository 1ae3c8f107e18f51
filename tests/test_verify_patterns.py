"""Parts of a set by pattern and label, and what is said where one label paid for another."""

from __future__ import annotations

import numpy as np
import pytest

from unhans.black_boxes import PredictFunction
from unhans.heuristics import has
from unhans.reporting import report_markdown, report_text
from unhans.types import Example
from unhans.verify import verify

LABELS = ("yes", "no")
NOUNS = ("judge", "actor", "lawyer", "doctor", "artist")


def pairs() -> list[Example]:
    """Hypotheses that follow and that do not, all in the premise's words; and such in words of their own."""
    made = []
    for n, (one, two) in enumerate((a, b) for a in NOUNS for b in NOUNS if a != b):
        made += [
            Example(f"y{n}", f"the {one} saw the {two} today", f"the {one} saw the {two}", "yes", group="se"),
            Example(f"n{n}", f"the {one} saw the {two} today", f"the {two} saw the {one}", "no", group="ln"),
            Example(f"o{n}", f"the {one} saw the {two} today", "nobody came", "no", group="plain"),
        ]
    return made


def by(name, rule) -> PredictFunction:
    """A model that says yes where the rule does."""

    def probabilities(texts):
        sure = np.array([0.9 if rule(Example("e", *text)) else 0.1 for text in texts])
        return np.stack([sure, 1 - sure], axis=1)

    return PredictFunction(probabilities, LABELS, name=name)


OVERLAP = by("overlap", lambda e: has(e, "lexical_overlap"))
NEVER = by("never", lambda e: False)
CURED = by("cured", lambda e: has(e, "subsequence"))


def part(report, pattern, label):
    (found,) = [m for m in report.measures if m.slice == f"pattern {pattern}, label {label}"]
    return found


def test_every_pattern_is_measured_label_by_label():
    report = verify(OVERLAP, CURED, {"t": pairs()})
    swapped = part(report, "lexical_overlap", "no")
    assert (swapped.before, swapped.after, swapped.n, swapped.verdict) == (0.0, 1.0, 20, "better")
    assert part(report, "lexical_overlap", "yes").after == 1.0
    assert part(report, "subsequence", "yes").n == 20
    assert not [m for m in report.measures if m.slice == "pattern subsequence, label no"]  # there is none
    assert {"group se", "group ln", "group plain"} <= {m.slice for m in report.measures}
    assert not [note for note in report.notes if "was bought" in note]


def test_measures_of_a_part_are_those_of_the_part_alone():
    report = verify(OVERLAP, CURED, {"t": pairs()})
    alone = [e for e in pairs() if has(e, "reverse_order") and e.label == "no"]
    (whole,) = [m for m in verify(OVERLAP, CURED, {"t": alone}).measures if m.name == "accuracy" and not m.slice]
    found = part(report, "reverse_order", "no")
    assert (found.before, found.after, found.n) == (whole.before, whole.after, whole.n)
    assert found.p == pytest.approx(whole.p)


def test_a_gain_that_was_bought_is_told():
    report = verify(OVERLAP, NEVER, {"t": pairs()})
    told = [note for note in report.notes if "was bought" in note]
    assert told[0] == (
        "A gain on one label was bought with another on t: no +50.0 points, yes -100.0 points; "
        "the mean over labels -25.0 points."
    )
    assert "on t (pattern lexical_overlap): no +100.0 points, yes -100.0 points; the mean over labels +0.0" in told[1]
    for drawn in (report_text(report), report_markdown(report)):
        assert "was bought with another" in drawn
    assert "pattern lexical" in report_text(report)


def test_few_texts_with_a_pattern_are_no_part():
    few = [e for e in pairs() if e.group == "plain"] + [e for e in pairs() if e.group == "ln"][:9]
    report = verify(OVERLAP, CURED, {"t": few})
    assert not [m for m in report.measures if "reverse_order" in m.slice]


def test_a_report_of_one_model_has_the_parts_too():
    report = verify(None, CURED, {"t": pairs()})
    assert part(report, "lexical_overlap", "no").before is None
    assert not [note for note in report.notes if "was bought" in note]
