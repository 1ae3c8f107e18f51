"""The baseline of Hendrycks and Gimpel: a model is less sure of what it does not know."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.detectors import Floats, detector
from unhans.model import Classifier
from unhans.scoring import How
from unhans.types import Example


@detector(needs={"predict"}, paper="Hendrycks & Gimpel 2017, arXiv:1610.02136")
def max_probability(classifier: Classifier, texts: Sequence[Example], how: How) -> Floats:
    """How improbable the model finds even its best label: the negative logarithm of the highest probability."""
    surest: Floats = -classifier.log_probs(texts, progress=how.tell).max(axis=1)
    return surest
