"""How far scores survive when the model forgets, part by part (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unhans.bugs._weights import parts_of, redrawn
from unhans.comparison import SAME
from unhans.lab._explaining import Explainer, Refusals
from unhans.lab._measures import Values, mean_and_error
from unhans.metrics import mean_over, spearman
from unhans.model import TransformerClassifier
from unhans.scoring import How
from unhans.types import Example, LayerCurve

WARNING = "does not depend on the model"
BUT_SIGN = "does not depend on the model but for its sign"


def layer_curves(
    classifier: TransformerClassifier,
    texts: Sequence[Example],
    methods: Sequence[Explainer],
    *,
    draws: int,
    seed: int,
    how: How,
    refusals: Refusals,
) -> tuple[list[LayerCurve], list[LayerCurve]]:
    """Two curves for each method, of scores and of strengths: drawn anew from the head down to a part, and it alone.

    A value is the mean over texts of the mean Spearman over `draws` random models, to the scores of the true model for
    the label that it predicts. Strengths are the scores without their sign, as in the paper's maps: a model that says
    the opposite for the same words has other scores, and the same strengths. A method that refuses one of the models
    has no curves.
    """
    parts = list(parts_of(classifier.model))
    labels = classifier.predict(texts).labels
    stages = list(_stages(parts))
    before = {m.name: refusals.heed(m.name, "layers", m, classifier, texts, labels) for m in methods}
    found: dict[tuple[str, bool], list[tuple[Values, Values]]] = {}
    steps = len(stages) * draws * len(methods)
    for at, (chosen, cascading) in enumerate(stages):
        lines: dict[str, list[tuple[Values, Values]]] = {name: [] for name, own in before.items() if own is not None}
        for draw in range(draws):
            model = redrawn(classifier, chosen, seed + draw)
            for n, method in enumerate(methods):
                if (true := before[method.name]) is not None:
                    part = how.part((at * draws + draw) * len(methods) + n, steps)
                    after = refusals.heed(method.name, "layers", method, model, texts, labels, part)
                    if after is not None:
                        lines[method.name].append(_alike(true, after))
                    else:
                        before[method.name] = None
                        del lines[method.name]
        for name, own in lines.items():
            signed, strong = (mean_over(np.stack(column)) for column in zip(*own, strict=True))
            found.setdefault((name, cascading), []).append((signed, strong))
    whole = [(name, down, columns) for (name, down), columns in found.items() if before[name] is not None]
    return (
        [_curve(name, parts, [one for one, _ in columns], down) for name, down, columns in whole],
        [_curve(name, parts, [two for _, two in columns], down) for name, down, columns in whole],
    )


def warnings_of(curves: Sequence[LayerCurve], strengths: Sequence[LayerCurve]) -> list[tuple[str, str]]:
    """Methods whose scores, or whose strengths, stay the same when the head is drawn anew, whatever it then says."""
    same = [curve.method for curve in curves if _survives(curve)]
    but_sign = [curve.method for curve in strengths if _survives(curve) and curve.method not in same]
    return [*((name, WARNING) for name in same), *((name, BUT_SIGN) for name in but_sign)]


def _survives(curve: LayerCurve) -> bool:
    return curve.cascading and curve.correlations[0] is not None and curve.correlations[0] > SAME


def _alike(before: Sequence[Values], after: Sequence[Values]) -> tuple[Values, Values]:
    pairs = list(zip(before, after, strict=True))
    signed = np.array([spearman(a, b) for a, b in pairs])
    return signed, np.array([spearman(np.abs(a), np.abs(b)) for a, b in pairs])


def _stages(parts: Sequence[str]) -> Iterator[tuple[Sequence[str], bool]]:
    for depth in range(1, len(parts) + 1):
        yield parts[:depth], True
    for part in parts:
        yield [part], False


def _curve(name: str, parts: Sequence[str], columns: Sequence[Values], cascading: bool) -> LayerCurve:
    points = [mean_and_error(column) for column in columns]
    values = tuple(value if n else None for value, _, n in points)
    return LayerCurve(name, tuple(parts), values, tuple(error for _, error, _ in points), cascading)
