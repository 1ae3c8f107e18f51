"""A model that is given the token numbers of another tokenizer."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share
from unhans.errors import Unsupported
from unhans.model import TransformerClassifier


@bug(kind="model", proof="answers", needs={"train"}, paper="Adebayo et al. 2020, §2.1")
def tokenizer_mismatch(
    classifier: TransformerClassifier,
    rng: Generator,
    *,
    way: Annotated[
        Literal["permuted", "casing"],
        "numbers of the vocabulary change places, or capital letters are treated otherwise",
    ] = "permuted",
    share: Annotated[float, "with permuted, part of the vocabulary whose numbers change places"] = 0.5,
) -> tuple[TransformerClassifier, Truth]:
    """Read the texts with a tokenizer that is not the model's: other numbers for its pieces, or another casing.

    The tokenizer itself is another one, as when a folder got the files of two models. Control tokens stay what they
    are. The weights are left alone.
    """
    check_share("share", share)
    backend = getattr(classifier.tokenizer, "_tokenizer", None)
    if backend is None:
        raise Unsupported(
            "tokenizer_mismatch rewrites a fast tokenizer, and this model has a slow one. Leave the bug out, or load "
            "the model with its fast tokenizer."
        )
    told = json.loads(backend.to_str())
    if way == "casing":
        told["normalizer"], note = _other_casing(told["normalizer"])
    else:
        note = _permute(told, set(classifier.tokenizer.all_special_ids), share, rng)
    made = TransformerClassifier(
        classifier.copied(),
        _rebuilt(classifier.tokenizer, told),
        classifier.limit,
        str(classifier.model.device),
    )
    return made, Truth(note=note, parts=("tokenizer",))


def _rebuilt(tokenizer: Any, told: dict[str, Any]) -> Any:
    from tokenizers import Tokenizer

    made = copy.deepcopy(tokenizer)
    made._tokenizer = Tokenizer.from_str(json.dumps(told))  # Hugging Face has no other door for it
    return made


def _permute(told: dict[str, Any], special: set[int], share: float, rng: Generator) -> str:
    """Let a share of the pieces go round in a circle of numbers, each to the place of another."""
    fixed = special | {one["id"] for one in told["added_tokens"]}
    vocabulary = told["model"]["vocab"]
    listed = isinstance(vocabulary, list)  # Unigram: the place in the list is the number
    pieces = (
        {number: piece for number, piece in enumerate(vocabulary)} if listed else {n: p for p, n in vocabulary.items()}
    )
    able = sorted(set(pieces) - fixed)
    moved = rng.permutation(able)[: round(share * len(able))]
    goals = dict(zip(moved.tolist(), np.roll(moved, 1).tolist(), strict=True))
    placed = {goals.get(number, number): piece for number, piece in pieces.items()}
    told["model"]["vocab"] = (
        [placed[n] for n in sorted(placed)] if listed else {p: n for n, p in sorted(placed.items())}
    )
    return f"{len(moved)} of {len(pieces)} pieces of the vocabulary have another's number."


def _other_casing(normalizer: Any) -> tuple[Any, str]:
    """A normaliser that keeps capital letters where the old one did not, and the other way round."""
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    steps = [step for step in steps if step]
    lowers = [step for step in steps if step["type"] == "Lowercase" or step.get("lowercase")]
    if not lowers:
        return {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *steps]}, "Capital letters are made small."
    kept = [
        step | {"lowercase": False} if step.get("lowercase") else step for step in steps if step["type"] != "Lowercase"
    ]
    return {"type": "Sequence", "normalizers": kept}, "Capital letters are no longer made small."
