"""Audits and labs for tests of what is kept of them: made by hand, so that no model is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unhans.records import Records
from unhans.types import Audit, CheckRun, Evidence, Finding, Lab, PlantedBug, Recipe, Variant

CHECKS = ("leaks", "slices", "shortcuts", "explanation_sanity")
HOSTILE = "<img src=x onerror=alert(1)>\u202e'\"; DROP TABLE audits; --\u2028"


def finding(
    check: str = "shortcuts",
    title: str = "The word decides alone",
    severity: Any = "high",
    *,
    words: Sequence[str] = ("imax",),
    examples: Sequence[str] = (),
    revision: str = "r",
    **more: Any,
) -> Finding:
    """A finding that says little."""
    told = {"says": "It was seen.", "next": "Look at it.", "screen": "words", "limits": "It cannot show all."} | more
    evidence = (Evidence("share of texts that change", 0.5, 0.1, 0.4, 0.6, 20),)
    variants = tuple(Variant(id_, "another text", None, "positive", "negative", -0.5) for id_ in examples[:1])
    return Finding(
        Recipe("checks", check),
        title,
        severity,
        evidence=evidence,
        examples=tuple(examples),
        words=tuple(words),
        revision=revision,
        variants=variants,
        **told,
    )


def audit(*findings: Finding, revision: str = "r", done: int = len(CHECKS), method: str = "leave_one_out") -> Audit:
    """An audit of which so many checks have run."""
    runs = tuple(
        CheckRun(Recipe("checks", name), name.title(), "done" if n < done else "waiting")
        for n, name in enumerate(CHECKS)
    )
    ranked = sorted(findings, key=lambda one: ("high", "medium", "low").index(one.severity))
    return Audit(revision, tuple(ranked), runs, 20, 40, recipe=Recipe("checks", "audit", (("method", method),), 0))


def keep(records: Records, found: Audit, *, by: str = "amy", job: str | None = None, asked: str = "by hand") -> str:
    """Its id, once it is stored."""
    return records.audit_table.begin(found, asked=asked, by=by, job=job)


def lab(revision: str = "r", warnings: Sequence[tuple[str, str]] = (), shows: Sequence[str] = ()) -> Lab:
    """A lab in which one bug was planted."""
    planted = PlantedBug("spurious_word", "data", Recipe("bugs", "spurious_word"), "It was put in.", "It took.", 1.0)
    return Lab((planted,), (), (), tuple(warnings), (("spurious_word", tuple(shows)),), (), revision)
