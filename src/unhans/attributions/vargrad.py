"""VarGrad (Adebayo et al. 2018)."""

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
    paper="arXiv:1810.03307",
    terms=Terms("logit", "its own mean around the text", "variance of the gradient over samples, summed", signed=False),
)
def vargrad(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    rngs: Sequence[np.random.Generator],
    *,
    num_samples: NoisySamples = 25,
    noise: Noise = 0.15,
) -> Tensor:
    """The variance of the gradient over noisy copies of the text's embeddings: where the model is least linear."""
    points = noisy(classifier.embed(batch), batch, rngs, num_samples, noise)
    gradients = torch.stack(list(classifier.gradients(points, batch, targets, create_graph)))
    return batch.to_words(gradients.var(0, correction=0).sum(-1))
