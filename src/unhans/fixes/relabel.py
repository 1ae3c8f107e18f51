"""Relabelling: train again with the labels that people corrected, and without the texts that no label fits."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.errors import BadData
from unhans.fixes import TrainOn, fix
from unhans.model import TransformerClassifier
from unhans.types import Example


@fix(reads=("relabel",), cost=1.0, paper="Adebayo et al. 2020, §3.2")
def relabel(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    train_on: TrainOn,
) -> TransformerClassifier:
    """Train on with the labels that people corrected in place of the given ones.

    Examples of which people say that none of the labels fits are left out. `mend` has seen to both, as for every fix.
    """
    if not train:
        raise BadData(
            "People say of every training example that none of the labels fits it. Nothing was trained; there would be "
            "nothing left to learn from."
        )
    return train_on(classifier, train)
