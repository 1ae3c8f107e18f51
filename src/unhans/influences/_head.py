"""The head of a classifier: its last linear layer, on the features that it reads.

With the features held fixed the head is a softmax regression, a convex problem: its gradients and its Hessian are
formulas. A weight is counted once for each label and feature; a bias is one more feature that is always 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unhans.errors import BadOption, Unsupported
from unhans.influences import How, Shelf
from unhans.listening import listening
from unhans.model import TransformerClassifier
from unhans.text import as_variant
from unhans.tokens import Row
from unhans.types import Example

Floats = NDArray[np.float64]
_AT_ONCE = 512  # examples whose features are kept together
_SAME = 1e-3  # of a logit: how far the head's own answer may be from the model's


@dataclass(frozen=True)
class Seen:
    """Some labelled examples as the head sees them."""

    features: Floats  # examples × features; the last one is 1 if the head has a bias
    p: Floats  # examples × labels
    truth: Floats  # examples × labels: 1 for the label of each, 0 elsewhere

    @property
    def errors(self) -> Floats:
        """How the loss of each example changes with its logits."""
        return self.p - self.truth

    def some(self, numbers: NDArray[np.int64]) -> Seen:
        """These of them."""
        return Seen(self.features[numbers], self.p[numbers], self.truth[numbers])


def head_of(classifier: TransformerClassifier) -> nn.Linear:
    """The linear layer that gives the logits: the last one used that has as many outputs as there are labels."""
    n = len(classifier.labels)
    called: list[Any] = []
    layers = [m for m in classifier.model.modules() if isinstance(m, nn.Linear) and m.out_features == n]
    with listening(layers, lambda layer, *_: called.append(layer)), torch.no_grad():
        classifier.logits(classifier.batch([Example("", "a")]))
    if not called:
        raise _not_linear()
    found: nn.Linear = called[-1]
    return found


def last_parameters(classifier: TransformerClassifier, layers: int) -> list[str]:
    """Names of the parameters of the head and of so many layers before it; -1 takes all there are."""
    if layers < -1:
        raise BadOption(f"layers must be -1 (all), 0 (the head alone) or a number of layers, not {layers}.")
    every = dict(classifier.model.named_parameters())
    if layers == -1:
        return list(every)
    head = head_of(classifier)
    wanted = {id(p) for m in [head, *_used_since(classifier, head, layers)] for p in m.parameters(recurse=False)}
    return [name for name, parameter in every.items() if id(parameter) in wanted]


def _used_since(classifier: TransformerClassifier, head: nn.Module, layers: int) -> list[nn.Module]:
    """The modules that a text passes from the last so many layers on."""
    used: list[nn.Module] = []
    modules = [m for m in classifier.model.modules() if list(m.parameters(recurse=False))]
    starts = _blocks(classifier.model) or [m for m in modules if m is not head and not isinstance(m, nn.Embedding)]
    if not layers or not starts:
        return []
    first = starts[-min(layers, len(starts))]

    def note(module: nn.Module, *_: Any) -> None:
        if used or module is first:
            used.append(module)

    with listening({first, *modules}, note, beginning=True), torch.no_grad():
        classifier.logits(classifier.batch([Example("", "a")]))
    return used


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The layers of a transformer: the longest list of modules in it, and the last of several."""
    lists = [list(module) for module in model.modules() if isinstance(module, nn.ModuleList)]
    return max(reversed(lists), key=len, default=[])


def see(
    classifier: TransformerClassifier, head: nn.Linear, examples: Sequence[Example], shelf: Shelf, how: How
) -> Seen:
    """The labelled examples as the head sees them; what the model was asked for is kept on the shelf.

    Finding the head takes a forward pass, so it is found once and handed over.
    """

    # by name: another process, if one reads them, has a head of its own
    name = next(name for name, module in classifier.model.named_modules() if module is head)

    def rows(start: int, end: int) -> NDArray[np.float32]:
        return _read(classifier, classifier.model.get_submodule(name), examples[start:end])

    read = shelf.rows("head", len(examples), rows, how.tell, _AT_ONCE).astype(np.float64)
    features, logits = read[:, : head.in_features], read[:, head.in_features :]
    if head.bias is not None:
        features = np.hstack([features, np.ones((len(features), 1))])
    truth = np.zeros_like(logits)
    truth[np.arange(len(truth)), [classifier.label_number(str(e.label)) for e in examples]] = 1
    return Seen(features, softmax(logits), truth)


def see_now(classifier: TransformerClassifier, head: nn.Linear, examples: Sequence[Example]) -> Seen:
    """The same for a few texts, kept nowhere."""
    return see(classifier, head, examples, Shelf(None), How())


def softmax(logits: Floats) -> Floats:
    """Probabilities, line by line."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    p: Floats = odds / odds.sum(axis=1, keepdims=True)
    return p


def mean_curvature(seen: Seen, shares: Floats) -> float:
    """The mean eigenvalue of the Hessian of the mean loss, over all weights of the head."""
    spread = seen.p.sum(1) - (seen.p**2).sum(1)  # trace of diag(p) - p pᵀ
    total = float((shares * spread * (seen.features**2).sum(1)).sum())
    return total / float(seen.p.shape[1] * seen.features.shape[1])


def _read(classifier: TransformerClassifier, head: nn.Linear, examples: Sequence[Example]) -> NDArray[np.float32]:
    """Features and logits of each example, side by side."""
    rows = classifier.questions([as_variant(e) for e in examples])
    found = np.empty((len(examples), head.in_features + head.out_features), np.float32)
    for numbers in classifier.batches(rows):  # short rows first, which is the order they are packed in
        found[numbers] = _read_batch(classifier, head, [rows[n] for n in numbers])
    return found


def _read_batch(classifier: TransformerClassifier, head: nn.Linear, rows: Sequence[Row]) -> NDArray[np.float32]:
    inputs: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Any, ...], __: Any) -> None:
        features = given[0].float()
        # a decoder's head answers for every token; its batches have rows of one length, whose last one counts
        inputs.append(features[:, -1] if features.dim() == 3 else features)

    with listening([head], keep, beginning=True):
        logits = classifier.answer(rows)
    with torch.inference_mode():
        features = torch.cat(inputs)
        own = nn.functional.linear(features, head.weight.detach().float(), _detached(head.bias)).cpu().numpy()
    if own.shape != logits.shape or np.abs(own - logits).max() > _SAME * (1 + np.abs(logits).max()):
        raise _not_linear()
    return np.hstack([features.cpu().numpy(), logits])


def _detached(bias: Tensor | None) -> Tensor | None:
    return None if bias is None else bias.detach().float()


def _not_linear() -> Unsupported:
    return Unsupported(
        "The last step of this model is not a linear layer, which this method is about. Nothing was changed. "
        "Methods that follow all weights, such as gradient_dot, work with it."
    )
