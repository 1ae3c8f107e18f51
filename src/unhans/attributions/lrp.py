"""Layer-wise relevance propagation (Bach et al. 2015), for transformers by AttnLRP (Achtibat et al. 2024)."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from unhans.attributions import attribution
from unhans.errors import BadOption
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import LayerwiseRelevance
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:2402.05602",
    aliases=("attnlrp",),
    terms=lambda o: Terms("logit", "zero, shared with biases and positions", "relevance summed over pieces"),
)
def lrp(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    rules: Annotated[
        Literal["attention", "epsilon"], "attention weights share in the relevance (AttnLRP), or are constants"
    ] = "attention",
    epsilon: Annotated[float, "damping of relevance through sums near zero"] = 1e-6,
) -> Tensor:
    """The logit handed back layer by layer, to each input its part of every sum.

    Without biases and positions the scores would add up to the logit; those take their share. One forward and one
    backward pass.
    """
    if epsilon < 0:
        raise BadOption(f"epsilon must not be negative, as {epsilon} is.")
    embeddings = classifier.embed(batch)
    way = LayerwiseRelevance(classifier.model, attention_aware=rules == "attention", epsilon=epsilon)
    gradient = classifier.gradient(embeddings, batch, targets, create_graph, way)
    return batch.to_words((embeddings * gradient).sum(-1))
