"""A model whose weights were damaged on the way."""

from __future__ import annotations

from typing import Annotated

import torch
from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share
from unhans.bugs._weights import parts_of, spread
from unhans.model import TransformerClassifier


@bug(kind="model", proof="answers", needs={"train"}, paper="Adebayo et al. 2020, §2.1")
def noisy_weights(
    classifier: TransformerClassifier,
    rng: Generator,
    *,
    noise: Annotated[float, "part of every weight that gives way to noise of the same spread"] = 0.5,
) -> tuple[TransformerClassifier, Truth]:
    """Mix noise into all weights, as a bad conversion or too coarse a number format does."""
    check_share("noise", noise)
    copy = classifier.clone()
    drawn = torch.Generator().manual_seed(int(rng.integers(2**31)))
    parts = parts_of(copy.model) if noise else {}
    with torch.no_grad():
        for weights in parts.values():
            for _, weight in weights:
                added = torch.randn(weight.shape, generator=drawn) * spread(weight)
                weight.mul_(1 - noise).add_(added.to(weight), alpha=noise)
    return copy, Truth(note=f"{noise:.0%} of every weight is noise.", parts=tuple(parts))
