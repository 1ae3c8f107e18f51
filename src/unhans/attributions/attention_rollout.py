"""Attention rollout (Abnar and Zuidema 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.errors import Unsupported
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Watching
from unhans.types import Terms

WARNING = "A weak explanation: it is the same for every label, and leaves out all that is not attention."


@attribution(
    needs={"gradients"},
    paper="arXiv:2005.00928",
    aliases=("rollout",),
    terms=Terms(
        "none",
        "nothing",
        "attention multiplied over layers, mean over heads, summed over pieces",
        False,
        warning=WARNING,
    ),
)
def attention_rollout(classifier: TransformerClassifier, batch: Batch) -> Tensor:
    """How much attention flows from the word to where the label is read: strength only, a weak explanation.

    The same for every label. One forward pass.
    """
    seen = Watching(classifier.model)
    with torch.no_grad():
        classifier.logits(batch, rules=seen)
    if not seen.attentions:
        raise Unsupported("attention_rollout needs a model with attention, and this one has none.")
    n = batch.ids.shape[1]
    flow = torch.eye(n, device=batch.ids.device).expand(len(batch.ids), n, n)
    for weights in seen.attentions:
        flow = (weights.mean(1) + torch.eye(n, device=flow.device)) / 2 @ flow
    # a decoder's head reads the last token, an encoder's the first
    read = batch.mask.cumsum(1).argmax(1) if classifier.reads_last else batch.mask.argmax(1)
    return batch.to_words(flow[torch.arange(len(flow)), read])
