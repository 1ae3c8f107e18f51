"""Deconvnet (Zeiler and Fergus 2014)."""

from __future__ import annotations

from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import AGGREGATIONS, Aggregate, aggregated
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Deconvnet
from unhans.types import Terms

WARNING = "Hardly depends on the model's upper layers (Nie et al. 2018); written for ReLU networks."


@attribution(
    needs={"gradients"},
    paper="arXiv:1311.2901",
    aliases=("deconvolution",),
    terms=lambda o: Terms(
        "logit", "nothing: a slope", AGGREGATIONS[o["aggregate"]], signed=o["aggregate"] != "norm", warning=WARNING
    ),
)
def deconvnet(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    aggregate: Aggregate = "times_input",
) -> Tensor:
    """The gradient, where an activation passes back all that is positive, whatever came in.

    GELU and its relatives are treated as ReLUs are. One forward and one backward pass.
    """
    embeddings = classifier.embed(batch)
    gradient = classifier.gradient(embeddings, batch, targets, create_graph, Deconvnet(classifier.model))
    return batch.to_words(aggregated(gradient, embeddings, aggregate))
