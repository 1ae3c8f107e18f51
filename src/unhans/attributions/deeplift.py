"""DeepLift (Shrikumar et al. 2017), rescale rule."""

from __future__ import annotations

import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import BASELINES, Baseline, baseline_embeddings
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Differences, does_not_add_up
from unhans.types import Terms

_WITHIN = 0.05  # of the rise
_LEAST, _ROUNDINGS = 1e-3, 16  # of the logits: at least so much, and so many times what their numbers can tell apart


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

    Rules for products, softmax and layer normalisation make it exact for transformers: scores add up to the rise, but
    for a twentieth of it and rounding, or none are given. One forward and one backward pass over text and baseline.
    """
    start, end = baseline_embeddings(classifier, batch, baseline), classifier.embed(batch)
    both = torch.cat([end, start])
    rules = Differences(classifier.model)
    # the gradient of the texts' logits; those of the references come along and are not used
    gradient = classifier.gradient(both, batch.repeated(2), targets.repeat(2), create_graph, rules)
    scores = ((end - start) * gradient[: len(end)]).sum(-1)
    if not create_graph:  # in training, dropout makes two models of text and baseline
        _check(scores.sum(1), *rules.outputs.chunk(2))
    return batch.to_words(scores)


def _check(told: Tensor, high: Tensor, low: Tensor) -> None:
    """Whether scores add up: a model may do what no rule is for, or lay out its batch as none expects."""
    rounding = max(_LEAST, _ROUNDINGS * torch.finfo(high.dtype).eps)
    told, high, low = told.double(), high.double(), low.double()
    allowed = _WITHIN * (high - low).abs() + rounding * (1 + torch.maximum(high.abs(), low.abs()))
    if not ((told - (high - low)).abs() <= allowed).all():
        raise does_not_add_up()
