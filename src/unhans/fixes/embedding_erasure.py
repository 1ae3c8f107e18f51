"""Embedding erasure: the model is made unable to read the lowered words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unhans.errors import BadData
from unhans.fixes import Aims, TrainOn, fix, pieces_of, without
from unhans.fixes.word_dropout import check_lowers
from unhans.model import TransformerClassifier
from unhans.text import as_variant
from unhans.types import Example


@fix(reads=("word_vote",), cheap=True, cost=1.0, edits="embeddings", paper="–")
def embedding_erasure(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    aims: Aims,
    train_on: TrainOn,
    *,
    to: Annotated[
        Literal["mean", "unk", "zero"], "what their pieces become: the mean piece, the unknown one, nothing"
    ] = ("mean"),
) -> TransformerClassifier:
    """Give the word pieces of words lowered everywhere an embedding that says nothing, then train on without them.

    A piece is erased only where it stands for the lowered word alone: pieces that other words of the training texts
    share stay. A word none of whose pieces can be erased is an error.
    """
    check_lowers(aims, "embedding_erasure")
    pieces = _own_pieces(classifier, train, aims)
    erased = classifier.clone()
    table = erased.model.get_input_embeddings().weight
    nothing = _nothing(erased, table, to)
    with torch.no_grad():
        table[pieces] = nothing
    made = train_on(erased, train, frozen_pieces=pieces)
    with torch.no_grad():  # weight decay has moved them a little
        made.model.get_input_embeddings().weight[pieces] = nothing
    return made.clone()  # its fingerprint is that of other weights


def _own_pieces(classifier: TransformerClassifier, train: Sequence[Example], aims: Aims) -> list[int]:
    """Ids of the pieces that words lowered everywhere consist of and no other word of the training texts does."""
    lowered = set(aims.lowered)
    wanted = {form: pieces for form, pieces in pieces_of(classifier, train, aims).items() if form in lowered}
    others = [without(example, aims.positions(example, "lower")) for example in train]
    shared = {token for row in classifier.tokens.rows([as_variant(e) for e in others]) for token in row.ids}
    found = {form: pieces - shared for form, pieces in wanted.items()}
    if stuck := sorted(form for form, pieces in found.items() if not pieces):
        raise BadData(
            f"{stuck[0]!r} is read as pieces that other words share, so it cannot be erased by itself. Nothing was "
            "trained; use another fix."
        )
    if not found:
        raise BadData("embedding_erasure needs votes that lower a word everywhere, and the word in training texts.")
    return sorted(set().union(*found.values()))


def _nothing(classifier: TransformerClassifier, table: Tensor, to: str) -> Tensor:
    if to == "zero":
        return torch.zeros_like(table[0])
    unknown: Any = classifier.tokenizer.unk_token_id
    if to == "unk" and unknown is not None:
        return table[unknown].detach().clone()
    return table.detach().mean(0)
