"""Expected gradients (Erion et al. 2021), which captum calls GradientShap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from unhans.attributions import attribution
from unhans.errors import BadOption
from unhans.model import Batch, TransformerClassifier
from unhans.types import Example, Terms


@attribution(
    needs={"gradients"},
    paper="arXiv:1906.10670",
    aliases=("expected_gradients",),
    terms=Terms("logit", "words of other texts", "sum over dimensions and pieces, mean over samples"),
)
def gradient_shap(  # noqa: PLR0917 - what it asks for, by name
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    create_graph: bool,
    rngs: Sequence[np.random.Generator],
    background: Sequence[Example],
    *,
    num_samples: Annotated[int, "pairs of another text and a point on the way from it"] = 25,
) -> Tensor:
    """Integrated gradients from other texts instead of an empty one, averaged.

    Each sample takes the pieces of a background text in the place of the text's own (over again, if it is shorter), and
    the gradient at a point on the way from there; points are spread evenly. No noise is added, as in the paper.
    """
    if num_samples < 1:
        raise BadOption(f"num_samples must be at least 1, not {num_samples}.")
    end = classifier.embed(batch)
    starts = starts_from(batch, classifier, rngs, background, num_samples)
    shares = _shares(rngs, num_samples, end.device)
    points = [start + share * (end - start) for start, share in zip(starts, shares, strict=True)]
    found = classifier.gradients(points, batch, targets, create_graph)
    return batch.to_words(
        torch.stack([((end - start) * gradient).sum(-1) for start, gradient in zip(starts, found, strict=True)]).mean(0)
    )


@singledispatch
def starts_from(
    batch: Any,  # a Batch; of another kind whoever knows it registers what to do
    classifier: TransformerClassifier,
    rngs: Sequence[np.random.Generator],
    background: Sequence[Example],
    n: int,
) -> list[Tensor]:
    """For each sample the embeddings to start from, drawn from the background."""
    others = classifier.batch(background)
    pieces = [ids[owner >= 0] for ids, owner in zip(others.ids, others.owners, strict=True)]
    pieces = [one for one in pieces if len(one)]
    if not pieces:
        raise BadOption("The background examples have no words the model can read.")
    ids = batch.ids.repeat(n, 1, 1)
    for row, rng in enumerate(rngs):
        is_word = batch.owners[row] >= 0
        length = int(is_word.sum())
        for sample, other in enumerate(rng.integers(len(pieces), size=n)):
            taken = pieces[other].repeat(-(-length // len(pieces[other])))[:length]
            ids[sample, row, is_word] = taken
    embed = classifier.model.get_input_embeddings()
    return [embed(one) for one in ids]


def _shares(rngs: Sequence[np.random.Generator], n: int, device: torch.device) -> Tensor:
    """How far to go from each start: samples × rows × 1 × 1.

    One random point in each of n equal stretches: unbiased, and far steadier than n independent ones.
    """
    drawn = np.stack([(rng.permutation(n) + rng.random(n)) / n for rng in rngs], axis=1)
    return torch.from_numpy(drawn[:, :, None, None]).to(device, torch.float32)
