"""Word dropout: the cheap baseline that every clever fix has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch

from unhans.errors import BadData, BadOption
from unhans.fixes import Aims, TrainOn, fix, without
from unhans.model import TransformerClassifier
from unhans.training import Vary
from unhans.types import Example


@fix(reads=("word_vote",), cheap=True, cost=1.0, paper="–")
def word_dropout(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    aims: Aims,
    train_on: TrainOn,
    *,
    rate: Annotated[float, "how often a text loses its lowered words, drawn anew at each step; 1: always"] = 0.5,
) -> TransformerClassifier:
    """Train on while lowered words go missing from their texts at random, the label kept.

    The model learns to do without them; nothing makes it distrust them where they are.
    """
    check_lowers(aims, "word_dropout")
    return train_on(classifier, train, vary=dropping(aims, rate))


def dropping(aims: Aims, rate: float) -> Vary:
    """Examples without their lowered words, this often."""
    if not 0 <= rate <= 1:
        raise BadOption(f"The rate of dropping must lie between 0 and 1, not {rate}.")

    def drop(example: Example) -> Example:
        positions = aims.positions(example, "lower")
        return without(example, positions) if positions and float(torch.rand(())) < rate else example

    return drop


def check_lowers(aims: Aims, who: str) -> None:
    """Refuse votes that only raise: a fix that takes words out has nothing to do."""
    if not any(vote.vote == "lower" for vote in aims.votes):
        raise BadData(f"{who} only knows how to make words count less, and no vote asks for that. Nothing was trained.")
