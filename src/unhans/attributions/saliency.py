"""Gradient (Simonyan et al. 2014)."""

from __future__ import annotations

from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import AGGREGATIONS, Aggregate, aggregated
from unhans.model import Batch, TransformerClassifier
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1312.6034",
    aliases=("gradient",),
    terms=lambda o: Terms("logit", "nothing: a slope", AGGREGATIONS[o["aggregate"]], signed=o["aggregate"] != "norm"),
)
def saliency(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    aggregate: Aggregate = "norm",
) -> Tensor:
    """How steeply the label's logit changes at the word: the length of its gradient.

    Says how sensitive the model is there, not for or against what. One forward and one backward pass.
    """
    embeddings = classifier.embed(batch)
    gradient = classifier.gradient(embeddings, batch, targets, create_graph)
    return batch.to_words(aggregated(gradient, embeddings, aggregate))
