"""The model of another domain on the same texts."""

from __future__ import annotations

from unhans.bugs import Truth, bug
from unhans.bugs._weights import parts_of
from unhans.errors import BadOption
from unhans.model import Classifier, TransformerClassifier


@bug(kind="test-time", proof="answers", paper="Adebayo et al. 2020, §5")
def wrong_domain(classifier: Classifier, other: Classifier) -> tuple[Classifier, Truth]:
    """Ask a model that was taught something else: the same labels, learned from texts of another kind."""
    if set(other.labels) != set(classifier.labels):
        raise BadOption(
            f"The other model has other labels ({', '.join(other.labels)}), so their answers cannot be compared."
        )
    parts = tuple(parts_of(other.model)) if isinstance(other, TransformerClassifier) else ()
    return other, Truth(note="The model was taught on texts of another domain.", parts=parts)
