"""Word balancing: lowered words are put into texts of every label, so that they stop telling any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch

from unhans.errors import BadData, BadOption
from unhans.fixes import Aims, TrainOn, fix, with_word, without
from unhans.fixes.word_dropout import check_lowers
from unhans.model import TransformerClassifier
from unhans.types import Example


@fix(reads=("word_vote",), cheap=True, cost=1.0, paper="–")
def word_balancing(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    aims: Aims,
    train_on: TrainOn,
    *,
    rate: Annotated[float, "part of all texts, whatever their label, that hold a lowered word at a step"] = 0.5,
) -> TransformerClassifier:
    """Train on texts from which lowered words were taken, and into which one was put at random, the label kept.

    After that the word goes with no label. It works on words that mean nothing where they stand: a name or a cue, not
    half of an idiom. Only votes everywhere put words in.
    """
    if not 0 <= rate <= 1:
        raise BadOption(f"rate must lie between 0 and 1, not {rate}.")
    check_lowers(aims, "word_balancing")
    if not aims.lowered:
        raise BadData("word_balancing needs votes that lower a word everywhere; all there are is about single texts.")

    def balance(example: Example) -> Example:
        bare = without(example, aims.positions(example, "lower"))
        if float(torch.rand(())) >= rate:
            return bare
        word = aims.lowered[int(torch.randint(len(aims.lowered), ()))]
        return with_word(bare, word, float(torch.rand(())))

    return train_on(classifier, train, vary=balance)
