"""The patterns of a model's linear layers: the directions in their inputs that carry what they give out.

Kindermans et al. 2018 (arXiv:1705.05598), the two-component estimator: what a unit gives out where it is positive, and
where it is not, is explained by two different directions; after a ReLU only the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unhans.errors import Unsupported
from unhans.model import TransformerClassifier
from unhans.propagation import Watching
from unhans.types import Example


def patterns_of(classifier: TransformerClassifier, background: Sequence[Example]) -> list[tuple[Tensor, Tensor]]:
    """Pattern and weight of each linear layer, in the order they are used; refused where the path is not plain."""
    seen = Watching(classifier.model)
    with torch.no_grad():
        classifier.logits(classifier.batch(background), rules=seen)
    if not seen.plain or not seen.linears:
        raise Unsupported(
            "Patterns are defined for models made of linear layers, ReLUs and averages (see "
            "unhans.scratch.fresh_averaging_classifier), and this model has other layers. lrp works with it."
        )
    last = len(seen.linears) - 1
    return [(_pattern(x, w, y, positive=number < last), w) for number, (x, w, y) in enumerate(seen.linears)]


def _pattern(x: Tensor, weight: Tensor, y: Tensor, positive: bool) -> Tensor:
    """Units × inputs. `positive`: only where the unit fires; for the last layer, which has no ReLU, everywhere."""
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    fires = (y > 0).to(x.dtype) if positive else torch.ones_like(y)
    n = fires.sum(0).clamp(min=1)[:, None]
    mean_x = fires.T @ x / n
    mean_xy = (fires * y).T @ x / n
    covariance = (
        mean_xy - mean_x * y.mean(0)[:, None] if positive else mean_xy - mean_x * ((fires * y).sum(0)[:, None] / n)
    )
    along = (weight * covariance).sum(1, keepdim=True)
    # a unit that never fires carries no signal
    return torch.where(along.abs() > 1e-12, covariance / torch.where(along.abs() > 1e-12, along, 1.0), 0.0)
