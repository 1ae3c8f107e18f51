"""Exact products of gradients: what one small step on a training example would do to the anchor's loss.

An example's gradient in a linear layer is a sum over tokens of (gradient by what came out) × (what went in). So the
product of two such gradients is a sum over pairs of tokens of two small products, and neither gradient is ever written
down. All training examples are passed through the model for every handful of anchors: exact, with nothing to keep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from unhans.influences import How, Pushes, Scores, Shelf, Traced, influence
from unhans.influences._gradients import Gradients
from unhans.model import TransformerClassifier
from unhans.types import Example

_FEW = 256  # tokens a batch whose layers are all held at once


@influence(needs={"gradients"}, paper="arXiv:2102.05262")
def gradient_dot(classifier: TransformerClassifier, train: Sequence[Example], shelf: Shelf) -> Traced:
    """Exact products of the gradients of all linear layers; every few texts cost a pass over the training examples."""
    gradients = Gradients(classifier)

    def own(how: How) -> Scores:
        return shelf.arrays("own", lambda: {"own": squares(gradients, train, how)})["own"].astype(np.float64)

    return Traced(lambda anchors, how: Pushes(products(gradients, anchors, train, how)), own)


@dataclass(frozen=True)
class _Side:
    """All tokens of the anchors in one layer, and whose they are."""

    went_in: Tensor  # tokens × inputs
    came_back: Tensor  # tokens × outputs
    owners: Tensor  # tokens × anchors, one 1 in each line


def products(gradients: Gradients, anchors: Sequence[Example], train: Sequence[Example], how: How) -> Scores:
    """The product of each anchor's gradient with each training example's."""
    sides = _sides(gradients, anchors)
    scores = np.empty((len(anchors), len(train)))
    done = 0
    for numbers in gradients.batches(train):
        found = torch.zeros(len(numbers), len(anchors), device=gradients.classifier.model.device)

        def see(number: int, went_in: Tensor, came_back: Tensor, found: Tensor = found) -> None:
            side = sides[number]
            pairs = went_in @ side.went_in.T + gradients.layers[number].bias
            found += (pairs * (came_back @ side.came_back.T)).sum(1) @ side.owners

        gradients.show([train[number] for number in numbers], see)
        scores[:, numbers] = found.T.cpu().numpy()
        done += len(numbers)
        how.tell(done, len(train))
    return scores


def squares(gradients: Gradients, examples: Sequence[Example], how: How) -> Scores:
    """The squared length of each example's gradient."""
    scores = np.empty(len(examples))
    done = 0
    for numbers in gradients.batches(examples, _FEW):
        seen: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)  # a layer may be used more than once
        gradients.show([examples[n] for n in numbers], lambda number, *both, seen=seen: seen[number].append(both))
        found = torch.zeros(len(numbers), device=gradients.classifier.model.device)
        for number, uses in seen.items():
            went_in, came_back = (torch.cat(parts, dim=1) for parts in zip(*uses, strict=True))
            pairs = went_in @ went_in.mT + gradients.layers[number].bias
            found += (pairs * (came_back @ came_back.mT)).sum((1, 2))
        scores[numbers] = found.cpu().numpy()
        done += len(numbers)
        how.tell(done, len(examples))
    return scores


def _sides(gradients: Gradients, anchors: Sequence[Example]) -> list[_Side]:
    seen: list[list[tuple[Tensor, Tensor, Tensor]]] = [[] for _ in gradients.layers]
    for numbers in gradients.batches(anchors):
        own = one_hot(torch.tensor(numbers), len(anchors)).float().to(gradients.classifier.model.device)

        def see(number: int, went_in: Tensor, came_back: Tensor, own: Tensor = own) -> None:
            owners = own.repeat_interleave(went_in.shape[1], dim=0)
            seen[number].append((went_in.flatten(0, 1), came_back.flatten(0, 1), owners))

        gradients.show([anchors[number] for number in numbers], see)
    return [_Side(*(torch.cat(parts) for parts in zip(*uses, strict=True))) for uses in seen]
