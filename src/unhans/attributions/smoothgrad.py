"""SmoothGrad (Smilkov et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import AGGREGATIONS, Aggregate, Noise, NoisySamples, aggregated, noisy
from unhans.model import Batch, TransformerClassifier
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1706.03825",
    terms=lambda o: Terms(
        "logit",
        "nothing: slopes around the text",
        f"{AGGREGATIONS[o['aggregate']]}, mean over samples",
        signed=o["aggregate"] != "norm",
    ),
)
def smoothgrad(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    rngs: Sequence[np.random.Generator],
    *,
    num_samples: NoisySamples = 25,
    noise: Noise = 0.15,
    aggregate: Aggregate = "times_input",
) -> Tensor:
    """The gradient averaged over noisy copies of the text's embeddings.

    Irons out slopes that hold only at the very point of the text. One forward and one backward pass per copy.
    """
    embeddings = classifier.embed(batch)
    points = noisy(embeddings, batch, rngs, num_samples, noise)
    gradient = torch.stack(list(classifier.gradients(points, batch, targets, create_graph))).mean(0)
    return batch.to_words(aggregated(gradient, embeddings, aggregate))
