"""The parts of a model from the top down, and how they are made to forget."""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

from unhans.errors import BadData
from unhans.model import TransformerClassifier

Parts = dict[str, list[tuple[str, nn.Parameter]]]
"""Named weights by the part of the model they belong to, from the top down."""


def parts_of(model: nn.Module) -> Parts:
    """The parameters from the top of a model down: head (with pooler), layers, embeddings.

    Layers are the longest list of modules, or where there is none the longest sequence; what is registered before them
    is below them, and what has to do with embedding is too, wherever it is registered.
    """
    stack, layers = _layers(model)
    embedding = {name for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    parts: Parts = {"head": []}
    parts |= {f"layer {number}": [] for number in reversed(sorted(layers.values()))}
    parts["embeddings"] = []
    above = not layers
    for name, weight in model.named_parameters():
        if layers and name.startswith(f"{stack}."):
            above = True
            parts[f"layer {layers[name[len(stack) + 1 :].partition('.')[0]]}"].append((name, weight))
        elif not above or "embed" in name or name.rpartition(".")[0] in embedding:
            parts["embeddings"].append((name, weight))
        else:
            parts["head"].append((name, weight))
    if not parts["head"]:
        raise BadData("This model has no weights above its layers, so there is no head to draw anew.")
    return {part: weights for part, weights in parts.items() if weights}


def _layers(model: nn.Module) -> tuple[str, dict[str, int]]:
    """Where the layers are, and their numbers by name: from 1, those without weights (a ReLU) left out."""
    for kind in (nn.ModuleList, nn.Sequential):
        stacks = [(name, module) for name, module in model.named_modules() if name and isinstance(module, kind)]
        if stacks:
            stack, modules = max(stacks, key=lambda pair: len(list(pair[1].children())))
            own = [name for name, module in modules.named_children() if any(True for _ in module.parameters())]
            return stack, {name: number for number, name in enumerate(own, start=1)}
    return "", {}


def redraw(model: nn.Module, names: Collection[str], seed: int) -> None:
    """Give these parts of a model new random weights, in place.

    The head gets Xavier's weights and no bias, norms become neutral, all other weights are normal with the spread they
    had, so that the model stays a model of its kind and only forgets.
    """
    drawn = torch.Generator().manual_seed(seed)
    norms = {
        name for name, module in model.named_modules() if "norm" in type(module).__name__.lower()
    }  # LayerNorm, RMSNorm and the architectures' own
    with torch.no_grad():
        for part, weights in parts_of(model).items():
            for name, weight in weights if part in names else ():
                owner, _, kind = name.rpartition(".")
                if owner in norms:
                    weight.fill_(0.0 if kind == "bias" else 1.0)
                elif part == "head" and weight.ndim < 2:
                    weight.zero_()
                elif part == "head":
                    reach = math.sqrt(6 / (weight.shape[0] + weight.shape[1]))
                    weight.copy_((torch.rand(weight.shape, generator=drawn) * 2 - 1) * reach)
                else:
                    weight.copy_(torch.randn(weight.shape, generator=drawn) * spread(weight))


def spread(weight: Tensor) -> float:
    """Standard deviation of the numbers in a weight."""
    return float(weight.detach().float().std(correction=0))


def randomised(classifier: TransformerClassifier, depth: int, seed: int) -> TransformerClassifier:
    """A copy whose `depth` uppermost parts have new random weights."""
    return redrawn(classifier, list(parts_of(classifier.model))[:depth], seed)


def redrawn(classifier: TransformerClassifier, names: Collection[str], seed: int) -> TransformerClassifier:
    """A copy in which the parts of these names have new random weights."""
    copy = classifier.clone()
    redraw(copy.model, names, seed)
    return copy
