"""The rule of propagation that only pictures have: LRP's sequential preset A, flat at the input."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unhans.propagation import LayerwiseRelevance, sent_through


class PresetAFlat(LayerwiseRelevance):
    """Epsilon for linear layers, alpha 1 beta 0 for convolutions, and the first layer spreads evenly over its patch.

    So Kohlbrenner et al. (2020, arXiv:1910.09840) and the paper's iNNvestigate have it. Because the first layer gives
    black pixels their part as well, the gradient that comes back is the relevance itself and not one to be multiplied
    by the input. Between layers relevance is value × gradient, as in the epsilon rule.
    """

    def __init__(self, model: nn.Module, *, epsilon: float) -> None:
        super().__init__(model, attention_aware=False, epsilon=epsilon)
        self._first = True

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """The epsilon rule, unless it is the first layer."""
        if self._is_first():
            return _flat(F.linear(x, weight, bias), x, torch.ones_like(weight), F.linear)
        return super().linear(x, weight, bias)

    def convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, **how: Any) -> Tensor:
        """Only what speaks for a unit shares in its relevance, by how much it does."""

        def convolve(pixels: Tensor, weights: Tensor) -> Tensor:
            return F.conv2d(pixels, weights, None, **how)

        y = F.conv2d(x, weight, bias, **how)
        if self._is_first():
            return _flat(y, x, torch.ones_like(weight), convolve)
        speaks = convolve(x.clamp(min=0), weight.clamp(min=0)) + convolve(x.clamp(max=0), weight.clamp(max=0))
        if bias is not None:
            speaks = speaks + bias.clamp(min=0)[:, None, None]
        return sent_through(y, speaks, _share(y, speaks))

    def _is_first(self) -> bool:
        first, self._first = self._first, False
        return first


def _flat(y: Tensor, x: Tensor, ones: Tensor, layer: Any) -> Tensor:
    """Every input of a unit gets the same part of its relevance."""
    return sent_through(y, layer(x, ones), _share(y, layer(torch.ones_like(x), ones)))


def _share(y: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 1e-9, y / whole.clamp(min=1e-9), 0.0).detach()
