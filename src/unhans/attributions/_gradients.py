"""What gradient methods share: baselines to start from, noise, and how dimensions become one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from unhans.errors import BadOption
from unhans.model import Batch, TransformerClassifier
from unhans.text import Hole

Baseline = Annotated[Literal["pad", "mask", "unk", "zero"], "what every word piece is compared with"]
Aggregate = Annotated[
    Literal["times_input", "signed", "norm"],
    "gradient · embedding, sum of the gradient, or its length (strength only)",
]
NoisySamples = Annotated[int, "noisy copies"]
Noise = Annotated[float, "spread of the noise, as a share of the range of the embeddings"]
BASELINES = {
    "pad": "padding tokens",
    "mask": "mask tokens",
    "unk": "unknown tokens",
    "zero": "zero embeddings",
}
AGGREGATIONS = {
    "times_input": "gradient · embedding, summed over pieces",
    "signed": "gradient summed over dimensions and pieces",
    "norm": "length of the gradient, summed over pieces",
}


def baseline_embeddings(classifier: TransformerClassifier, batch: Batch, kind: str) -> Tensor:
    """Embeddings that say nothing: control tokens and padding stay, every piece of a word is replaced."""
    own = classifier.embed(batch)
    words = batch.owners >= 0
    if kind == "zero":
        return torch.where(words[..., None], 0.0, own)
    # every classifier has a padding id, also where its tokenizer has no padding token
    token = classifier.model.config.pad_token_id if kind == "pad" else classifier.tokens.hole_id(Hole(kind))
    said = classifier.model.get_input_embeddings()(torch.tensor(token, device=own.device))
    return torch.where(words[..., None], said, own)


def aggregated(gradient: Tensor, embeddings: Tensor, how: str) -> Tensor:
    """One number for each token."""
    if how == "times_input":
        return (gradient * embeddings).sum(-1)
    return gradient.sum(-1) if how == "signed" else torch.linalg.vector_norm(gradient, dim=-1)


def noisy(embeddings: Tensor, batch: Batch, rngs: Sequence[np.random.Generator], n: int, share: float) -> list[Tensor]:
    """Copies of the embeddings with normal noise on the words; its spread is a share of their range in each text.

    Each text draws from its own generator and for its own length, so that padding and batch mates change nothing.
    """
    if n < 1 or share < 0:
        raise BadOption(f"num_samples must be at least 1 and noise not negative, not {n} and {share}.")
    words = batch.owners >= 0
    noise = torch.zeros(n, *embeddings.shape, device=embeddings.device, dtype=embeddings.dtype)
    for row, (rng, is_word) in enumerate(zip(rngs, words, strict=True)):
        if is_word.any():
            own = embeddings[row][is_word].detach()
            drawn = rng.standard_normal((n, *own.shape), dtype=np.float32)
            noise[:, row, is_word] = torch.from_numpy(drawn).to(own) * share * (own.max() - own.min())
    return [embeddings + one for one in noise]
