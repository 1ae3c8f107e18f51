"""Guided back-propagation (Springenberg et al. 2015)."""

from __future__ import annotations

from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import AGGREGATIONS, Aggregate, aggregated
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Guided
from unhans.types import Terms

WARNING = "Hardly depends on the model's upper layers (Adebayo et al. 2018); written for ReLU networks."


@attribution(
    needs={"gradients"},
    paper="arXiv:1412.6806",
    terms=lambda o: Terms(
        "logit", "nothing: a slope", AGGREGATIONS[o["aggregate"]], signed=o["aggregate"] != "norm", warning=WARNING
    ),
)
def guided_backprop(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    aggregate: Aggregate = "times_input",
) -> Tensor:
    """The gradient, where only what is positive passes back through an activation.

    GELU and its relatives are treated as ReLUs are. One forward and one backward pass.
    """
    embeddings = classifier.embed(batch)
    gradient = classifier.gradient(embeddings, batch, targets, create_graph, Guided(classifier.model))
    return batch.to_words(aggregated(gradient, embeddings, aggregate))
