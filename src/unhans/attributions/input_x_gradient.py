"""Input × gradient (Shrikumar et al. 2016), XMD's own attribution."""

from __future__ import annotations

from torch import Tensor

from unhans.attributions import attribution
from unhans.model import Batch, TransformerClassifier
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1605.01713",
    aliases=("ixg",),
    terms=Terms("logit", "the zero embedding, to first order", "sum over dimensions and pieces"),
)
def input_x_gradient(classifier: TransformerClassifier, batch: Batch, targets: Tensor, create_graph: bool) -> Tensor:
    """Each word's embedding times the gradient of the label's logit there.

    The slope of the logit in the word's own direction, summed over the word's pieces. One forward and one backward
    pass. Differentiable, so fixes can train through it.
    """
    embeddings = classifier.embed(batch)
    gradient = classifier.gradient(embeddings, batch, targets, create_graph)
    return batch.to_words((embeddings * gradient).sum(-1))
