"""Training examples to be traced, and their gradients as torch itself tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import tiny
from unhans.types import Example


def examples(labels: Sequence[str] = ("negative", "positive")) -> list[Example]:
    """A dozen sentences, labelled in turn."""
    return [Example(f"t{n}", text, label=labels[n % len(labels)]) for n, text in enumerate(tiny.SENTENCES)]


def plain_gradients(classifier: Any, texts: Sequence[Example], layers: Sequence[Any]) -> Any:
    """Line by line, by torch itself: all weights of these layers of each text, the bias after the weights."""
    modules, lines = dict(classifier.model.named_modules()), []
    for text in texts:
        classifier.model.zero_grad()
        logits = classifier.logits(classifier.batch([text]))
        cross_entropy(logits, torch.tensor([classifier.label_number(text.label)])).backward()
        parts = []
        for layer in layers:
            module = modules[layer.name]
            weight = module.weight.grad.T if type(module).__name__ == "Conv1D" else module.weight.grad
            bias = [module.bias.grad[:, None]] if layer.bias else []
            parts.append(torch.cat([weight, *bias], dim=1).flatten())
        lines.append(torch.cat(parts))
    classifier.model.zero_grad()
    return torch.stack(lines).double().numpy()
