"""Embedding erasure: the model is made unable to read the lowered words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unhans.errors import BadData
from unhans.fixes import Aims, TrainOn, fix
from unhans.fixes.word_dropout import check_lowers
from unhans.model import TransformerClassifier
from unhans.text import visible_form
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
    made = train_on(erased, train)
    with torch.no_grad():  # training has moved them
        made.model.get_input_embeddings().weight[pieces] = nothing
    return made.clone()  # its fingerprint is that of other weights


def _own_pieces(classifier: TransformerClassifier, train: Sequence[Example], aims: Aims) -> list[int]:
    """Ids of the pieces that lowered words consist of and no other word does."""
    lowered, shared = set(aims.lowered), set[int]()
    wanted: dict[str, set[int]] = {}
    for example in train:
        batch = classifier.batch([example])
        for token, owner in zip(batch.ids[0].tolist(), batch.owners[0].tolist(), strict=True):
            if owner < 0:
                continue
            form = visible_form(batch.words[0].strings[owner])
            if form in lowered:
                wanted.setdefault(form, set()).add(token)
            else:
                shared.add(token)
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
