"""What gradient methods share: every example's own gradient, layer by layer, for the price of two forward passes.

The gradient of an example's loss by the weights of a linear layer is a sum over its tokens: gradient by what came out
times what went in. So it is enough to see both, for all the examples of a batch together, and no gradient by a
parameter is ever computed. The work is done by a twin of the model that shares its weights and has its own hooks; the
model itself is not touched.

Layers count that every text passes through: weights and biases of linear layers. Tables of embeddings and norms do
not, nor do layers that read something else than the text, such as DeBERTa's for distances.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers.pytorch_utils import Conv1D

from unhans.errors import Unsupported
from unhans.model import TOKEN_BUDGET, TransformerClassifier
from unhans.scoring import batches_by_length
from unhans.text import as_variant
from unhans.types import Example

See = Callable[[int, Tensor, Tensor], None]
"""Told the number of a layer, what went in (rows × tokens × inputs), and the gradient of the loss by what came out
(rows × tokens × outputs); zero at padding. A layer that is used several times is told of as often."""
_TRIAL = 3  # texts of a trial: other things that a layer may read come in powers of two


@dataclass(frozen=True)
class Layer:
    """A linear layer: its outputs are weights · inputs, plus a bias if it has one."""

    name: str
    inputs: int
    outputs: int
    bias: bool

    @property
    def columns(self) -> int:
        """How many inputs its weights see; a bias is one more weight, of an input that is always 1."""
        return self.inputs + self.bias


class Gradients:
    """Every example's own gradient, through the linear layers of a classifier (`layers`, always in this order)."""

    def __init__(self, classifier: TransformerClassifier) -> None:
        self._of, self.classifier = classifier, twin(classifier)
        self._forward = self.classifier._forward
        self._alone = threading.RLock()  # the hooks know one `see` at a time
        self._see: See | None = None
        self._rows = 0
        found = [(name, module) for name, module in self.classifier.model.named_modules() if is_linear(module)]
        modules = sorted(self._read_by_texts(found), key=lambda pair: pair[0])
        self.layers = tuple(_described(name, module) for name, module in modules)
        if not self.layers:
            raise Unsupported("This model has no linear layer that reads texts; use embedding_neighbours instead.")
        for number, (_, module) in enumerate(modules):
            module.register_forward_hook(partial(self._passed, number))

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which makes a twin of its own."""
        return type(self), (self._of,)

    def by_length(self, examples: Sequence[Example]) -> list[int]:
        """The examples' numbers, short ones first: in this order batches need no padding."""
        lengths = self._lengths(examples)
        return sorted(range(len(examples)), key=lengths.__getitem__)

    def batches(self, examples: Sequence[Example], budget: int | None = None) -> Iterator[list[int]]:
        """Numbers of the examples, in batches of at most about `budget` tokens; those of a batch are equally long."""
        return batches_by_length(self._lengths(examples), budget or TOKEN_BUDGET)

    def passes(self, examples: Sequence[Example], see: See) -> Iterator[list[int]]:
        """Show `see` one batch after the other; after each, its examples' numbers are given out."""
        for numbers in self.batches(examples):
            self.show([examples[number] for number in numbers], see)
            yield numbers

    def show(self, examples: Sequence[Example], see: See) -> Tensor:
        """Show `see` what the loss of each example's label sends through every layer; gives the logits."""
        classifier = self.classifier
        targets = [classifier.label_number(str(example.label)) for example in examples]
        with self._seeing(see, len(examples)):
            logits = self._logits(examples)
            loss = cross_entropy(logits.float(), torch.tensor(targets, device=logits.device), reduction="sum")
            loss.backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    @contextmanager
    def _seeing(self, see: See, rows: int) -> Iterator[None]:
        """Inside, the layers tell `see`, and other threads wait."""
        with self._alone, torch.enable_grad():
            self._see, self._rows = see, rows
            try:
                yield
            finally:
                self._see = None

    def _logits(self, examples: Sequence[Example]) -> Tensor:
        rows = self.classifier.tokens.rows([as_variant(example) for example in examples])
        if len({len(row) for row in rows}) == 1:
            return self._forward(rows)  # where a model can be packed, the last layer is worked out for the head alone
        return self.classifier.logits(self.classifier.batch(examples))

    def _lengths(self, examples: Sequence[Example]) -> list[int]:
        return [len(row) for row in self.classifier.tokens.rows([as_variant(example) for example in examples])]

    def _passed(self, number: int, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """A layer was used: tell what went in, once the gradient by what came out is known."""
        if self._see is None:
            return
        if not output.requires_grad:
            output.requires_grad_()  # the first layers: nothing before them needs a gradient
        output.register_hook(partial(self._returned, number, inputs[0].detach()))  # type: ignore[no-untyped-call]

    def _returned(self, number: int, activations: Tensor, gradient: Tensor) -> None:
        assert self._see is not None  # `show` set it before the backward pass
        rows = self._rows
        self._see(
            number,
            activations.reshape(rows, -1, activations.shape[-1]),
            gradient.reshape(rows, -1, gradient.shape[-1]),
        )

    def _read_by_texts(self, found: Sequence[tuple[str, nn.Module]]) -> list[tuple[str, nn.Module]]:
        """The layers that see every text of a batch and nothing else."""
        seen: dict[str, list[bool]] = {name: [] for name, _ in found}
        texts = [Example("", "one text")] * _TRIAL
        tokens = sum(self._lengths(texts))

        def note(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[name].append(output[..., 0].numel() in {_TRIAL, tokens})

        hooks = [module.register_forward_hook(partial(note, name)) for name, module in found]
        try:
            with torch.inference_mode():
                self._logits(texts)
        finally:
            for hook in hooks:
                hook.remove()
        return [(name, module) for name, module in found if seen[name] and all(seen[name])]


def with_ones(layer: Layer, activations: Tensor) -> Tensor:
    """What went into a layer, with the input that is always 1 where the layer has a bias."""
    if not layer.bias:
        return activations
    return torch.cat([activations, activations.new_ones(*activations.shape[:-1], 1)], dim=-1)


def whole_gradient(layer: Layer, activations: Tensor, gradient: Tensor) -> Tensor:
    """Each example's gradient by the layer's weights: rows × outputs × columns, the bias last."""
    return torch.einsum("nto,nti->noi", gradient, with_ones(layer, activations))


def slopes(
    classifier: TransformerClassifier,
    examples: Sequence[Example],
    direction: Mapping[str, Tensor],
    *,
    step: float = 1e-5,
    tell: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """How fast each example's loss rises when the parameters named move in a direction: its gradient · direction.

    Two forward passes, a little ahead and a little behind (central differences). The step is relative to the length of
    the parameters: ten times longer, and a gradient of the model itself leads where the loss is no longer straight;
    much shorter, and it is lost in rounding.
    """
    parameters = dict(classifier.model.named_parameters())
    moved, size = _length(direction.values()), _length(parameters[name] for name in direction)
    if not moved:
        return np.zeros(len(examples))
    reach = step * size / moved
    ahead, behind = (
        _log_probs(_moved(classifier, direction, sign * reach), examples, tell, passes)
        for passes, sign in enumerate((1, -1))
    )
    middle = (ahead + behind) / 2
    shares = np.exp(middle - middle.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(examples)), [classifier.label_number(str(e.label)) for e in examples]] -= 1
    return np.asarray((shares * (ahead - behind)).sum(1) / (2 * reach))


def _length(parts: Iterable[Tensor]) -> float:
    return math.sqrt(sum(float((part.detach().double() ** 2).sum()) for part in parts))


def _log_probs(
    classifier: TransformerClassifier, examples: Sequence[Example], tell: Callable[[int, int], None] | None, before: int
) -> NDArray[np.float64]:
    n = len(examples)
    how: dict[str, Any] = {}
    if tell is not None:
        how["progress"] = lambda done, _: tell(before * n + done, 2 * n)
    return classifier.log_probs(examples, **how)


def _moved(classifier: TransformerClassifier, direction: Mapping[str, Tensor], by: float) -> TransformerClassifier:
    """The classifier with some parameters moved; the rest are shared with it."""
    own = {name: parameter.detach() for name, parameter in classifier.model.named_parameters()}
    return twin(classifier, {name: own[name] + by * part.to(own[name]) for name, part in direction.items()})


def twin(classifier: TransformerClassifier, instead: Mapping[str, Tensor] | None = None) -> TransformerClassifier:
    """Another classifier on the same weights, which need no gradient; some may be replaced."""
    model = classifier.model
    shared: dict[int, Any] = {id(buffer): buffer for buffer in model.buffers()}
    for name, parameter in model.named_parameters():
        own = (instead or {}).get(name, parameter.detach())
        shared[id(parameter)] = nn.Parameter(own, requires_grad=False)
    return type(classifier)(classifier.copied(shared), classifier.tokenizer, classifier.limit, str(model.device))


def is_linear(module: nn.Module) -> bool:
    """Whether it multiplies by weights and adds a bias, and does no more."""
    return isinstance(module, nn.Linear | Conv1D)


def _described(name: str, module: Any) -> Layer:
    outputs, inputs = module.weight.shape[::-1] if isinstance(module, Conv1D) else module.weight.shape
    return Layer(name, int(inputs), int(outputs), module.bias is not None)
