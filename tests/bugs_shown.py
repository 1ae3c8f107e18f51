"""Audits, a lab and verdicts for browser tests and pictures: what their screen shows, without the minutes it takes.

They are stored as the jobs store them, through the records of a project; the numbers are made up. What an audit really
finds is tested where it is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unhans.project import Project
from unhans.records.auditing import asked_key
from unhans.text import Words
from unhans.types import (
    Audit,
    CheckRun,
    Evidence,
    Example,
    Finding,
    Lab,
    LayerCurve,
    PlantedBug,
    PlantedText,
    Recipe,
    Sighting,
    Variant,
)

WARNED = "guided_backprop"
WARNING = "does not depend on the model"
METHODS = (
    "leave_one_out",
    "lime",
    "kernel_shap",
    "saliency",
    "input_x_gradient",
    "integrated_gradients",
    "smoothgrad",
    WARNED,
    "attention_rollout",
    "random",
)
PARTS = ("head", "layer 4", "layer 3", "layer 2", "layer 1", "embeddings")


# -- audits


def finding(examples: Sequence[Example], revision: str, word: str) -> Finding:
    """The shortcut as an audit tells of it: numbers, examples, texts without the word."""
    without = [
        Variant(one.id, one.text.replace(word, "").replace("  ", " "), None, "positive", "negative", -0.62)
        for one in examples
        if word in one.text.split()
    ]
    return Finding(
        check=Recipe("checks", "shortcut_words"),
        title=f"The word “{word}” alone turns predictions to positive",
        severity="high",
        says="Where it is taken out of a text, the prediction changes far more often than for other words as frequent. "
        "In the training examples it hardly ever occurs without the label positive.",
        evidence=(
            Evidence("share of texts whose label changes without it", 0.61, 0.04, 0.52, 0.7, 118),
            Evidence("share of training texts with it that are positive", 0.98, 0.5, 0.96, 0.99, 240),
            Evidence("standard deviations above other words' scores", 9.4, 0, 7.1, 11.6, 118),
        ),
        examples=tuple(one.example for one in without[:6]),
        words=(word,),
        next="Look at it among the words, lower it, and train a fix.",
        screen="words",
        limits="Words that only work together with others are not found by taking out one at a time.",
        revision=revision,
        variants=tuple(without[:5]),
    )


def _others(examples: Sequence[Example], revision: str) -> list[Finding]:
    some = tuple(one.id for one in examples[:4])
    told: dict[str, str] = {"limits": "Rare groups are left out: fewer than 20 texts say little.", "revision": revision}
    return [
        Finding(
            Recipe("checks", "leaks"),
            "12 texts are in the training split and in the test split",
            "medium",
            "What is measured on them is better than what the model can do on new texts.",
            (Evidence("share of test texts that are in the training split", 0.06, 0, 0.03, 0.1, 200),),
            some,
            (),
            "Set them aside before you measure.",
            "problems",
            **told,
        ),
        Finding(
            Recipe("checks", "slices"),
            "Texts with a negation are wrong more often",
            "medium",
            "The model says the opposite of what is given in a third of the texts with not, never or no.",
            (
                Evidence("errors in texts with a negation", 0.33, 0.09, 0.24, 0.43, 91),
                Evidence("difference in accuracy", -0.24, 0, -0.34, -0.13, 200),
            ),
            some,
            ("not", "never"),
            "See what the predictions hang on.",
            "flips",
            **told,
        ),
        Finding(
            Recipe("checks", "calibration"),
            "The model is surer than it is right",
            "low",
            "Of predictions given with 95 % confidence, 88 % are right.",
            (Evidence("expected calibration error", 0.07, 0.02, 0.05, 0.09, 200),),
            (),
            (),
            "Do not read its confidence as a probability.",
            None,
            **told,
        ),
    ]


def _runs(done: int) -> tuple[CheckRun, ...]:
    told = [
        CheckRun(Recipe("checks", "shortcut_words"), "Words that decide alone", "done", "", 1, 41.3),
        CheckRun(Recipe("checks", "leaks"), "Leaks between splits", "done", "", 1, 0.4),
        CheckRun(Recipe("checks", "slices"), "Groups of texts where it fails", "done", "", 1, 6.0),
        CheckRun(Recipe("checks", "calibration"), "Calibration", "done", "", 1, 0.2),
        CheckRun(
            Recipe("checks", "invariance"),
            "Changes that should not matter",
            "done",
            "Names, numbers and casing change 1.2 % of the predictions, as many as chance.",
            0,
            12.5,
        ),
        CheckRun(
            Recipe("checks", "groups"),
            "Groups of people",
            "left out",
            "The examples have no column that names a group.",
        ),
    ]
    return tuple(one if n < done else CheckRun(one.check, one.title, "waiting") for n, one in enumerate(told))


def keep_audits(folder: Path, by: str, word: str) -> tuple[str, str]:
    """Two audits of the model in use, an older and a newer one: their ids. The newer one no longer finds the leak."""
    with Project.open(folder) as project:
        revision, examples = project.current.id, list(project.examples[:60])
        first, (leak, *rest) = finding(examples, revision, word), _others(examples, revision)
        notes = ("The examples were not drawn anew: intervals are those of the examples that there are.",)
        facts = {"checks": _runs(6), "examples": 200, "training": 400, "notes": notes}
        older = Audit(revision, (first, leak, rest[1]), **facts)
        newer = Audit(revision, (first, *rest), **facts)
        table = project.audit_table
        return (
            table.begin(older, asked=asked_key("older"), by=by),
            table.begin(newer, asked=asked_key("newer"), by=by),
        )


def keep_stopped_audit(folder: Path, by: str, word: str) -> str:
    """An audit that was stopped after two checks: its id."""
    with Project.open(folder) as project:
        found = finding(list(project.examples[:60]), project.current.id, word)
        audit = Audit(project.current.id, (found,), _runs(2), 200, 400)
        return project.audit_table.begin(audit, asked=asked_key("stopped"), by=by)


# -- the lab


def keep_lab(folder: Path, by: str) -> str:
    """A run of the lab on the model in use: its id."""
    with Project.open(folder) as project:
        shows = project.examples[:5]
        return project.lab_table.keep(_lab(project.current.id, list(shows)), by=by)


def _text(one: Example) -> PlantedText:
    """With the planted word, which methods see the less the later they come, and random scores do not."""
    planted = replace(one, text=f"zeta {one.text}")
    words = Words(planted)
    usual = [math.sin(7 * n) / 4 for n in range(len(words))]
    scores = [(method, (0.1 if method == "random" else 1.0 - 0.08 * n, *usual[1:])) for n, method in enumerate(METHODS)]
    return PlantedText("spurious_word", planted, "positive", words.strings, words.spans, tuple(scores))


def _lab(revision: str, examples: Sequence[Example]) -> Lab:
    shows = tuple(one.id for one in examples)
    bugs = (
        PlantedBug("clean", "control", None, "Nothing was planted.", "", None),
        PlantedBug(
            "spurious_word",
            "data",
            Recipe("bugs", "spurious_word", (("share", 0.9), ("word", "zeta"))),
            "The word “zeta” was put into 90 % of the positive training texts.",
            "A model tested on the word alone says positive.",
            0.97,
            0.51,
        ),
        PlantedBug(
            "flipped_labels",
            "data",
            Recipe("bugs", "flipped_labels", (("share", 0.1),)),
            "One label in ten was turned into another.",
            "Accuracy on the turned labels.",
            0.42,
            0.06,
        ),
        PlantedBug(
            "reinitialised",
            "model",
            Recipe("bugs", "reinitialised", (("layers", 1),)),
            "The head and the top layer were drawn anew.",
            "Share of answers that changed.",
            0.48,
        ),
        PlantedBug(
            "other_language",
            "test-time",
            Recipe("bugs", "other_language"),
            "Texts in another language.",
            "Share of unknown words.",
            0.83,
            0.02,
        ),
    )
    sightings = [one for bug in bugs for n, method in enumerate(METHODS) for one in _sightings(bug, method, n)]
    sightings += [
        Sighting("other_language", name, "detector", "detection", value, 0.01, 0.5, 100, value > 0.8)
        for name, value in (("energy", 0.81), ("mahalanobis", 0.97), ("perplexity", 0.99))
    ]
    sightings += [
        Sighting("flipped_labels", name, "doubt", "detection", value, 0.02, 0.5, 100, value > 0.8)
        for name, value in (("confident_learning", 0.93), ("self_influence", 0.88))
    ]
    return Lab(
        bugs=bugs,
        sightings=tuple(sightings),
        curves=tuple(_curve(method, n, down) for down in (True, False) for n, method in enumerate(METHODS[:-1])),
        warnings=((WARNED, WARNING),),
        examples=(("spurious_word", shows), ("flipped_labels", shows[:2])),
        notes=("Each bug was planted once, with seed 0.",),
        revision=revision,
        texts=tuple(map(_text, examples[:3])),
    )


def _sightings(bug: PlantedBug, method: str, n: int) -> list[Sighting]:
    """The measures of one cell: cue measures for the planted word, likeness to the clean model's scores for others."""
    skill = 0.0 if method == "random" else (0.97 - 0.035 * n if bug.name == "spurious_word" else 0.2 + 0.02 * n)
    seen = bug.kind != "control" and skill > 0.6
    detection = Sighting(
        bug.name,
        method,
        "attribution",
        "detection",
        0.5 + skill / 2,
        0.012,
        0.5,
        100,
        None if bug.recipe is None else seen,
    )
    alike = 0.98 if method == WARNED else max(-0.05, 0.4 - 0.05 * n)
    others = [Sighting(bug.name, method, "attribution", "rank correlation", alike, 0.03, 0.0, 100, alike < 0.5)]
    if bug.name == "spurious_word":
        others += [
            Sighting(bug.name, method, "attribution", "mass on the cue", 0.07 + 0.8 * skill, 0.02, 0.07, 100, seen),
            Sighting(bug.name, method, "attribution", "likeness to the cue alone", 0.9 * skill, 0.02, 0.01, 100),
        ]
    return [detection, *others]


def _curve(method: str, n: int, down: bool) -> LayerCurve:
    falls = 0.05 if method == WARNED else 0.35 + 0.05 * n
    survive = [math.exp(-falls * (k + 1)) if down else 1 - falls / (k + 2) for k in range(len(PARTS))]
    known: list[float | None] = [round(one, 3) for one in survive]
    if n == 3:
        known[-1] = None
    return LayerCurve(
        method, PARTS, tuple(known), tuple(None if one is None else 0.02 for one in known), cascading=down
    )
