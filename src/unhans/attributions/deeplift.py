"""DeepLift (Shrikumar et al. 2017), rescale rule."""

from __future__ import annotations

import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import BASELINES, Baseline, baseline_embeddings
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Differences
from unhans.types import Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1704.02685",
    terms=lambda o: Terms("logit", BASELINES[o["baseline"]], "sum over dimensions and pieces"),
)
def deeplift(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    *,
    baseline: Baseline = "pad",
) -> Tensor:
    """The rise of the logit over an empty text's, shared out by slopes between the two.

    Rules for products, softmax and layer normalisation make it exact for transformers: scores add up to the rise. One
    forward and one backward pass over text and baseline.
    """
    start, end = baseline_embeddings(classifier, batch, baseline), classifier.embed(batch)
    both = torch.cat([end, start])
    rules = Differences(classifier.model)
    # the gradient of the texts' logits; those of the references come along and are not used
    gradient = classifier.gradient(both, batch.repeated(2), targets.repeat(2), create_graph, rules)
    return batch.to_words(((end - start) * gradient[: len(end)]).sum(-1))
