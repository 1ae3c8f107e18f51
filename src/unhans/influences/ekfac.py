"""Influence functions by a Kronecker-factored inverse, corrected in its eigenvalues (EK-FAC; Grosse et al. 2023).

The curvature of a linear layer's weights is taken to be a product of two small matrices: one of what goes into the
layer, one of the gradients by what comes out. In the eigenvectors of both it is nearly diagonal, and the diagonal is
then measured. The curvature is the Fisher matrix, which is the Gauss-Newton matrix of a softmax: nowhere negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.errors import BadOption
from unhans.influences import How, Pushes, Shelf, Traced, influence
from unhans.influences._gradients import Gradients, See, with_ones
from unhans.influences._head import Floats, last_parameters
from unhans.model import TransformerClassifier
from unhans.types import Example

Use = Callable[[int, list[int], Tensor], None]
"""Told the number of a layer, the numbers of some examples, and a matrix for each: examples × outputs × columns."""
_HELD = 50_000_000  # numbers of training examples' gradients held at once: 200 MB
_ASKED = 250_000_000  # of anchors' gradients: 1 GB. As often as it is full, all training examples are gone through
_LEAST = 1e-30  # a model that is sure of everything has no curvature


@influence(needs={"gradients"}, keeps=True, paper="arXiv:2308.03296")
def ekfac(  # noqa: PLR0917 - what it asks for, by name
    classifier: TransformerClassifier,
    train: Sequence[Example],
    counts: NDArray[np.int64],
    shelf: Shelf,
    rng: np.random.Generator,
    how: How,
    *,
    damping: Annotated[float, "added to the curvature of a layer, as a share of its mean eigenvalue"] = 0.1,
    layers: Annotated[int, "last layers looked at beside the head: 0 the head alone, -1 all"] = -1,
) -> Traced:
    """How the loss would change without a training example, by layers' curvature as two small matrices each.

    Linear layers count, and no others. The matrices are kept; the gradients of the training examples are not, so each
    request goes once forward and back through all of them.
    """
    if damping <= 0:
        raise BadOption(f"damping must be positive, not {damping}: without it the curvature has no inverse.")
    curvature = _Curvature(classifier, layers)
    seed, n = int(rng.integers(2**62)), int(counts.sum())
    # in an order of their own: the order that the examples came in must not change the last digits of a matrix
    order = sorted(range(len(train)), key=lambda k: (train[k].text_hash, str(train[k].label)))
    taught = _Taught([train[k] for k in order], counts[order] / n, seed, len(classifier.labels))
    factors = curvature.factors(taught, shelf, damping, how)

    def pushes(anchors: Sequence[Example], how: How) -> Pushes:
        at_once, scores = max(1, _ASKED // curvature.weights), np.empty((len(anchors), len(train)))
        for start in range(0, len(anchors), at_once):
            some = anchors[start : start + at_once]
            within = how.part(start, start + len(some), len(anchors))
            scores[start : start + len(some)] = curvature.products(factors, some, train, within)
        return Pushes(scores / n)

    def own(how: How) -> Floats:
        kept = shelf.arrays("own", lambda: {"scores": curvature.own(factors, train, how)})["scores"]
        return np.asarray(kept / n, np.float64)

    return Traced(pushes, own)


@dataclass(frozen=True)
class _Taught:
    """The training examples, what share each has in the mean loss, and the signs drawn for each."""

    examples: Sequence[Example]
    shares: Floats
    seed: int
    labels: int

    def signs(self, numbers: Sequence[int]) -> Tensor:
        """For each of these examples, a sign for every label but one; two labels need none."""
        if self.labels == 2:
            return torch.ones(len(numbers), 1, dtype=torch.float64)
        drawn = [self._drawn(self.examples[number]) for number in numbers]
        return torch.from_numpy(np.array(drawn) * 2.0 - 1.0)

    def _drawn(self, example: Example) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, int(example.text_hash, 16)]).integers(2, size=self.labels - 1)


@dataclass(frozen=True)
class _Factor:
    """The curvature of one layer: eigenvectors on both sides, and what to divide by between them."""

    incoming: Tensor  # columns × columns
    outgoing: Tensor  # outputs × outputs
    divisor: Tensor  # outputs × columns: eigenvalues and damping


class _Fisher(Gradients):
    """Shows gradients whose second moment is the Fisher matrix, beside those of the examples' own labels."""

    def spread(self, examples: Sequence[Example], signs: Tensor, see: See) -> None:
        """As `show`, of a loss whose gradient by the logits has the covariance of the model's own answer."""
        with self._seeing(see, len(examples)):
            logits = self.classifier.logits(self.classifier.batch(examples)).float()
            pull = _spread(logits.detach().double().softmax(1), signs.to(logits.device))
            (logits * pull.float()).sum().backward()  # type: ignore[no-untyped-call]


class _Curvature:
    """The linear layers of a classifier that count, and what is worked out of them."""

    def __init__(self, classifier: TransformerClassifier, layers: int) -> None:
        names = set(last_parameters(classifier, layers))
        self.gradients = _Fisher(classifier)
        known = self.gradients.layers
        self.layers = {k: layer for k, layer in enumerate(known) if f"{layer.name}.weight" in names}
        self.weights = sum(layer.outputs * layer.columns for layer in self.layers.values())
        self.uses = Counter[int]()
        self.gradients.show([Example("", "a", label=classifier.labels[0])], lambda k, *_: self.uses.update([k]))

    def factors(self, taught: _Taught, shelf: Shelf, damping: float, how: How) -> dict[int, _Factor]:
        """The curvature of every layer: two passes over the training examples, unless the shelf has it."""
        vectors = shelf.arrays("vectors", lambda: self._vectors(taught, how.part(0, 1, 2)))
        unfinished = {
            k: _Factor(self._here(vectors[f"in{k}"]), self._here(vectors[f"out{k}"]), torch.ones(()))
            for k in self.layers
        }
        values = shelf.arrays("values", lambda: self._values(taught, unfinished, how.part(1, 2, 2)))
        return {k: replace(f, divisor=self._divisor(values[f"{k}"], damping)) for k, f in unfinished.items()}

    def products(
        self, factors: Mapping[int, _Factor], anchors: Sequence[Example], train: Sequence[Example], how: How
    ) -> Floats:
        """Gradient of each anchor · inverse curvature · gradient of each training example."""
        steps = {k: self._here(np.zeros((len(anchors), one.outputs, one.columns))) for k, one in self.layers.items()}
        scores = torch.zeros(len(anchors), len(train), dtype=torch.float64)

        def ask(k: int, rows: list[int], matrix: Tensor) -> None:
            one = factors[k]
            steps[k][rows] = one.outgoing @ (matrix / one.divisor) @ one.incoming.T

        def answer(k: int, rows: list[int], matrix: Tensor) -> None:
            scores[:, rows] += (steps[k].flatten(1) @ matrix.flatten(1).T).cpu().double()

        for numbers in self.gradients.batches(anchors):
            self.gradients.show([anchors[n] for n in numbers], self._whole(numbers, ask, factors))
        self._through(train, answer, how)
        return scores.numpy()

    def own(self, factors: Mapping[int, _Factor], train: Sequence[Example], how: How) -> Floats:
        """The same of each training example with itself."""
        scores = torch.zeros(len(train), dtype=torch.float64)

        def answer(k: int, rows: list[int], matrix: Tensor) -> None:
            scores[rows] += (matrix**2 / factors[k].divisor).sum((1, 2)).cpu().double()

        self._through(train, answer, how, factors)
        return scores.numpy()

    def _through(
        self, train: Sequence[Example], use: Use, how: How, rotate: Mapping[int, _Factor] | None = None
    ) -> None:
        done = 0
        for numbers in self.gradients.batches(train):
            self.gradients.show([train[n] for n in numbers], self._whole(numbers, use, rotate))
            done += len(numbers)
            how.tell(done, len(train))

    def _spread_through(self, taught: _Taught, watch: Callable[[list[int]], See], how: How) -> None:
        done = 0
        for numbers in self.gradients.batches(taught.examples):
            some = [taught.examples[n] for n in numbers]
            self.gradients.spread(some, taught.signs(numbers), watch(numbers))
            done += len(numbers)
            how.tell(done, len(taught.examples))

    def _vectors(self, taught: _Taught, how: How) -> dict[str, NDArray[np.float32]]:
        """Eigenvectors of the second moments of what goes in and of what comes back, over all tokens that matter."""
        moments: dict[str, Tensor] = {}

        def watch(numbers: list[int]) -> See:
            shares = self._here(taught.shares[numbers])

            def see(k: int, activations: Tensor, gradient: Tensor) -> None:
                if k not in self.layers:
                    return
                matters = (gradient != 0).any(-1)  # padding does not, nor what nobody reads
                weight = shares[:, None].expand_as(matters)[matters][:, None]
                for side, x in (("in", with_ones(self.layers[k], activations)), ("out", gradient)):
                    rows = x[matters].float()
                    moments[f"{side}{k}"] = moments.get(f"{side}{k}", 0) + ((rows * weight).T @ rows).double()

            return see

        self._spread_through(taught, watch, how)
        return {name: torch.linalg.eigh(moment)[1].float().cpu().numpy() for name, moment in moments.items()}

    def _values(self, taught: _Taught, factors: Mapping[int, _Factor], how: How) -> dict[str, NDArray[np.float32]]:
        """The diagonal in those eigenvectors: the mean square of every example's gradient there."""
        found = {k: self._here(np.zeros((one.outputs, one.columns))) for k, one in self.layers.items()}
        shares = self._here(taught.shares)

        def use(k: int, rows: list[int], matrix: Tensor) -> None:
            found[k] += torch.einsum("n,noi->oi", shares[rows], matrix**2)

        self._spread_through(taught, lambda numbers: self._whole(numbers, use, factors), how)
        return {f"{k}": values.cpu().numpy() for k, values in found.items()}

    def _whole(self, numbers: Sequence[int], use: Use, rotate: Mapping[int, _Factor] | None = None) -> See:
        """Hand on each example's gradient by a layer, in the layer's eigenvectors if wanted.

        A layer that is used several times has several parts to its gradient; they are put together as more tokens.
        """
        waiting: dict[int, list[tuple[Tensor, Tensor]]] = {k: [] for k in self.layers}

        def see(k: int, activations: Tensor, gradient: Tensor) -> None:
            if k not in self.layers:
                return
            waiting[k].append((activations, gradient))
            if len(waiting[k]) < self.uses[k]:
                return
            x, y = (torch.cat(parts, 1).float() for parts in zip(*waiting.pop(k), strict=True))
            x = with_ones(self.layers[k], x)
            if rotate is not None:
                x, y = x @ rotate[k].incoming, y @ rotate[k].outgoing
            at_once = max(1, _HELD // (x.shape[-1] * y.shape[-1]))
            for start in range(0, len(x), at_once):
                rows = slice(start, start + at_once)
                use(k, list(numbers[rows]), torch.einsum("nto,nti->noi", y[rows], x[rows]))

        return see

    def _divisor(self, values: NDArray[np.floating], damping: float) -> Tensor:
        return self._here(values + damping * values.mean() + _LEAST)

    def _here(self, values: NDArray[np.floating]) -> Tensor:
        return torch.from_numpy(values).float().to(self.gradients.classifier.model.device)


def _spread(p: Tensor, signs: Tensor) -> Tensor:
    """Rows with mean 0 over the signs and the covariance of an answer, diag(p) - p pᵀ; exactly that for two labels.

    A Cholesky factor of that covariance, times the signs.
    """
    left = p.flip(1).cumsum(1).flip(1)  # the probability of this label and those after it
    after = (left - p).clamp(min=1e-150)[:, :-1]
    weight = signs * torch.sqrt(p[:, :-1] / (left[:, :-1].clamp(min=1e-150) * after))
    before = torch.cat([torch.zeros_like(p[:, :1]), weight.cumsum(1)], 1)
    own = torch.cat([weight * after, torch.zeros_like(p[:, :1])], 1)
    return own - p * before
