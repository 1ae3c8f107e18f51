"""SmoothGrad-squared (Hooker et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import Noise, NoisySamples, noisy
from unhans.model import Batch, TransformerClassifier
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1806.10758",
    aliases=("smoothgrad_sq",),
    terms=Terms(
        "logit", "nothing: slopes around the text", "squared gradient, mean over samples, summed", signed=False
    ),
)
def smoothgrad_squared(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    rngs: Sequence[np.random.Generator],
    *,
    num_samples: NoisySamples = 25,
    noise: Noise = 0.15,
) -> Tensor:
    """The squared gradient averaged over noisy copies of the text's embeddings: strength only."""
    points = noisy(classifier.embed(batch), batch, rngs, num_samples, noise)
    gradients = torch.stack(list(classifier.gradients(points, batch, targets, create_graph)))
    return batch.to_words(gradients.square().mean(0).sum(-1))
