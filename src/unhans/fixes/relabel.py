"""Relabelling: train again with the labels that people corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unhans.fixes import TrainOn, fix
from unhans.model import TransformerClassifier
from unhans.types import Example


@fix(reads=("relabel",), cost=1.0, paper="Adebayo et al. 2020, §3.2")
def relabel(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    corrections: Mapping[str, str],
    train_on: TrainOn,
) -> TransformerClassifier:
    """Train on with the labels that people corrected in place of the given ones."""
    return train_on(classifier, [replace(e, label=corrections.get(e.id, e.label)) for e in train])
