"""Products of the Hessian of the mean training loss with a direction, without the Hessian."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from unhans.influences import How
from unhans.model import TOKEN_BUDGET, TransformerClassifier
from unhans.packing import twice_differentiable
from unhans.scoring import batches_by_length
from unhans.text import as_variant
from unhans.types import Example

_SAMPLE = 64  # training examples whose largest eigenvalue is found
_ROUNDS = 20  # of power iteration, at most
_WASTE = 0.5  # share of padded cells in a batch: few examples are looked at together, if their lengths allow it
_SETTLED = 0.01  # change of the eigenvalue from one round to the next


class Curvature:
    """The second derivatives of a classifier's loss by some of its parameters."""

    def __init__(
        self,
        classifier: TransformerClassifier,
        train: Sequence[Example],
        counts: NDArray[np.int64],
        names: Sequence[str],
    ) -> None:
        self._classifier = classifier.clone()  # its parameters are marked for gradients; the user's stay as they are
        by_name = dict(self._classifier.model.named_parameters())
        for parameter in by_name.values():
            parameter.requires_grad_(False)
        self._parameters = [by_name[name].requires_grad_(True) for name in names]
        # in an order of their own, so that the order they came in does not change what is drawn
        order = sorted(range(len(train)), key=lambda n: (train[n].text_hash, str(train[n].label)))
        self._train = [train[n] for n in order]
        self._shares = counts[order] / counts.sum()

    def draw(self, rng: np.random.Generator, n: int) -> list[Example]:
        """Training examples, each as likely as it is frequent in the data."""
        return [self._train[k] for k in rng.choice(len(self._train), n, p=self._shares)]

    def gradient(self, example: Example) -> list[Tensor]:
        """Of one example's loss."""
        with torch.enable_grad():
            return list(torch.autograd.grad(self._loss([example]), self._parameters))

    def times(self, direction: Sequence[Tensor], examples: Sequence[Example]) -> list[Tensor]:
        """The Hessian of the mean loss of these examples, times a direction; some of them at a time."""
        lengths = [len(row) for row in self._classifier.tokens.rows([as_variant(example) for example in examples])]
        total = [torch.zeros_like(part) for part in self._parameters]
        for numbers in batches_by_length(lengths, TOKEN_BUDGET // 2, _WASTE):
            share = len(numbers) / len(examples)
            bent = self._times(direction, [examples[n] for n in numbers])
            total = [so_far + share * part for so_far, part in zip(total, bent, strict=True)]
        return total

    def _times(self, direction: Sequence[Tensor], examples: Sequence[Example]) -> list[Tensor]:
        with torch.enable_grad(), twice_differentiable:
            slopes = torch.autograd.grad(self._loss(examples), self._parameters, create_graph=True)
            along = torch.stack([(s * d).sum() for s, d in zip(slopes, direction, strict=True)]).sum()
            return list(torch.autograd.grad(along, self._parameters))

    def largest(self, rng: np.random.Generator, how: How) -> float:
        """About the largest eigenvalue, by absolute value, of the Hessian on a sample: power iteration."""
        examples = self.draw(rng, _SAMPLE)
        state = [torch.from_numpy(rng.standard_normal(p.shape)).to(p) for p in self._parameters]
        value = 0.0
        for round_ in range(_ROUNDS):
            size = length(state)
            if not size or not math.isfinite(size):
                break
            before, state = value, self.times([part / size for part in state], examples)
            value = length(state)
            how.tell(round_ + 1, _ROUNDS)
            if abs(value - before) <= _SETTLED * value:
                break
        return max(value, 1e-12)  # a model that is sure of everything has no curvature

    def _loss(self, examples: Sequence[Example]) -> Tensor:
        targets = [self._classifier.label_number(str(example.label)) for example in examples]
        logits = self._classifier.logits(self._classifier.batch(examples)).float()
        return cross_entropy(logits, torch.tensor(targets, device=logits.device))


def length(direction: Sequence[Tensor]) -> float:
    """Of a direction in the space of all parameters."""
    return math.sqrt(sum(float((part.double() ** 2).sum()) for part in direction))
