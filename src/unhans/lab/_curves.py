"""How far scores survive when the model forgets, part by part (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unhans.bugs._weights import parts_of, redrawn
from unhans.comparison import SAME
from unhans.lab._explaining import Explainer
from unhans.lab._measures import Values, mean_and_error
from unhans.metrics import mean_over, spearman
from unhans.model import TransformerClassifier
from unhans.scoring import How
from unhans.types import Example, LayerCurve

WARNING = "does not depend on the model"


def layer_curves(
    classifier: TransformerClassifier,
    texts: Sequence[Example],
    methods: Sequence[Explainer],
    *,
    draws: int,
    seed: int,
    how: How,
) -> list[LayerCurve]:
    """Two curves for each method: from the head down to a part all drawn anew, and each part alone.

    A value is the mean over texts of the mean Spearman over `draws` random models, to the scores of the true model for
    the label that it predicts.
    """
    parts = list(parts_of(classifier.model))
    labels = classifier.predict(texts).labels
    stages = list(_stages(parts))
    found: dict[tuple[str, bool], list[Values]] = {}
    before = [method(classifier, texts, labels) for method in methods]
    for at, (chosen, cascading) in enumerate(stages):
        lines: list[list[Values]] = [[] for _ in methods]
        for draw in range(draws):
            model = redrawn(classifier, chosen, seed + draw)
            for n, method in enumerate(methods):
                after = method(
                    model,
                    texts,
                    labels,
                    how.part((at * draws + draw) * len(methods) + n, _steps(stages, draws, methods)),
                )
                lines[n].append(np.array([spearman(a, b) for a, b in zip(before[n], after, strict=True)]))
        for method, own in zip(methods, lines, strict=True):
            found.setdefault((method.name, cascading), []).append(mean_over(np.stack(own)))
    return [_curve(name, parts, columns, cascading) for (name, cascading), columns in found.items()]


def warnings_of(curves: Sequence[LayerCurve]) -> list[tuple[str, str]]:
    """Methods whose scores stay the same when the head is drawn anew, whatever the model then says."""
    return [
        (curve.method, WARNING)
        for curve in curves
        if curve.cascading and curve.correlations[0] is not None and curve.correlations[0] > SAME
    ]


def _stages(parts: Sequence[str]) -> Iterator[tuple[Sequence[str], bool]]:
    for depth in range(1, len(parts) + 1):
        yield parts[:depth], True
    for part in parts:
        yield [part], False


def _steps(stages: Sequence[object], draws: int, methods: Sequence[object]) -> int:
    return len(stages) * draws * len(methods)


def _curve(name: str, parts: Sequence[str], columns: Sequence[Values], cascading: bool) -> LayerCurve:
    points = [mean_and_error(column) for column in columns]
    values = tuple(value if n else None for value, _, n in points)
    return LayerCurve(name, tuple(parts), values, tuple(error for _, error, _ in points), cascading)
