"""Gradients made small, kept for good, and compared with an anchor's in one product: the usual method.

For each linear layer, what goes in and what comes back are both multiplied by a random matrix with `width` columns
before they meet (LoGra), so that an example's gradient becomes width² numbers a layer, and products of gradients stay
what they were on average. The small gradients are kept; another text costs one pass through the model, and one product.

Between the two gradients stands the inverse of the training examples' own second moments, layer by layer: directions
that every example pushes in count little, as in an influence function. Its damping is relative to their mean, so that
it fits models of any scale.

How large a gradient is at the end of training says little of what an example did during it: what the model is sure of
by now had its say before. So every example is taken at the same loudness, and every layer has one vote: the score is
the cosine of the two gradients as the inverse measures them, in the mean over layers. Without `relative` the products
stay as they are, and a few odd examples with large gradients come up for every text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from unhans.errors import BadOption
from unhans.influences import How, Pushes, Scores, Shelf, Traced, influence
from unhans.influences._gradients import Gradients, Layer
from unhans.model import TransformerClassifier
from unhans.types import Example

_PART = 512  # examples kept in one file: what a stop can lose
_HELD = 2**28  # bytes up to which all of them are held in full
_LEAST = float(np.finfo(np.float32).tiny) ** 2  # mean square of gradients that single precision cannot write
Rows = NDArray[np.float32]
Floats = NDArray[np.float64]
_Float = TypeVar("_Float", np.float32, np.float64)


@influence(needs={"gradients"}, keeps=True, paper="arXiv:2405.13954, arXiv:2303.14186")
def projected_gradients(  # noqa: PLR0917 - a member names all that it asks for
    classifier: TransformerClassifier,
    train: Sequence[Example],
    counts: NDArray[np.int64],
    shelf: Shelf,
    rng: np.random.Generator,
    how: How,
    *,
    width: Annotated[int, "numbers kept of each side of a layer: more are more exact, and take more room"] = 11,
    precondition: Annotated[bool, "count little what all examples push for; plain products of gradients if not"] = True,
    damping: Annotated[float, "added to the second moments before they are inverted, as a share of their mean"] = 0.3,
    relative: Annotated[bool, "cosines in the mean over layers: loud examples count no more than others"] = True,
) -> Traced:
    """Gradients made small by random projections and kept: then any text is answered at once."""
    if width < 1 or damping <= 0:
        raise BadOption(f"width must be at least 1 and damping above 0, not {width} and {damping}.")
    small = Projection(Gradients(classifier), width, rng)
    index = _index(small, train, shelf, how)
    metric = _metric(small, index, counts, damping if precondition else None, relative, shelf)
    lengths = _lengths(metric, index, shelf)
    if relative:
        index = [replace(part, spread=partial(metric.spread, own)) for part, own in zip(index, lengths, strict=True)]
    total = int(counts.sum())

    def pushes(anchors: Sequence[Example], how: How) -> Pushes:
        rows = small.rows(anchors).astype(np.float64)
        times = metric.times(rows)
        asked, powers = _in_units(
            times / (metric.spread(metric.lengths(rows, times)) * len(small.places) if relative else total)
        )
        scores = np.empty((len(anchors), len(train)))
        for at, part in enumerate(index):
            products = asked.astype(np.float32) @ part.units().T
            shared = 0 if relative else part.powers  # cosines have no units
            scores[:, part.numbers] = np.ldexp(products.astype(np.float64), powers[:, None] + shared)
            how.tell(at + 1, len(index))
        return Pushes(scores)

    def own(how: How) -> Scores:
        scores = np.empty(len(train))
        for part, layers in zip(index, lengths, strict=True):
            scores[part.numbers] = np.ldexp((layers**2).sum(axis=1) / total, 2 * part.powers)
        return scores

    return Traced(pushes, own)


class Projection:
    """Two random matrices for each layer, drawn in the order of the layers."""

    def __init__(self, gradients: Gradients, width: int, rng: np.random.Generator) -> None:
        self.gradients = gradients
        device = gradients.classifier.model.device
        drawn = [
            tuple(_matrix(size, width, rng) for size in (layer.columns, layer.outputs)) for layer in gradients.layers
        ]
        self._widths = [(inputs.shape[1], outputs.shape[1]) for inputs, outputs in drawn]
        self._sides = [(_broad(inputs).to(device), _broad(outputs).to(device)) for inputs, outputs in drawn]
        sizes = [inputs * outputs for inputs, outputs in self._widths]
        ends = np.cumsum(sizes).tolist()
        self.places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def rows(self, examples: Sequence[Example], how: How | None = None, done: int = 0, of: int = 0) -> Rows:
        """The small gradient of each example."""
        found = np.empty((len(examples), self.places[-1].stop), np.float32)
        for numbers in self.gradients.batches(examples):
            found[numbers] = self._batch([examples[number] for number in numbers]).cpu().numpy()
            done += len(numbers)
            if how is not None:
                how.tell(done, of)
        return found

    def _batch(self, examples: Sequence[Example]) -> Tensor:
        device = self.gradients.classifier.model.device
        found = torch.zeros(len(examples), self.places[-1].stop, device=device)

        def see(number: int, activations: Tensor, gradient: Tensor) -> None:
            (inputs, outputs), (columns, rows) = self._sides[number], self._widths[number]
            went_in = _through(self.gradients.layers[number], activations, inputs)
            both = torch.bmm((gradient @ outputs).mT, went_in)[:, :rows, :columns]
            found[:, self.places[number]] += both.flatten(1)

        self.gradients.show(examples, see)
        return found


def _matrix(size: int, width: int, rng: np.random.Generator) -> Tensor:
    """Orthogonal directions drawn at random, so long that lengths are kept on average; all of them if so few."""
    if size <= width:
        return torch.eye(size)
    directions, _ = np.linalg.qr(rng.standard_normal((size, width)))
    return torch.from_numpy((directions * np.sqrt(size / width)).astype(np.float32))


def _broad(matrix: Tensor) -> Tensor:
    """With columns of zeros up to a multiple of sixteen: products with eleven columns take three times as long."""
    return pad(matrix, (0, -matrix.shape[1] % 16))


def _through(layer: Layer, activations: Tensor, matrix: Tensor) -> Tensor:
    """What went into a layer, and the 1 that its bias reads, made small."""
    if not layer.bias:
        return activations @ matrix
    return activations @ matrix[:-1] + matrix[-1]


@dataclass(frozen=True)
class _Part:
    """The small gradients of some training examples, as they are kept: on disk, where there is one for them.

    In half precision, every row in units of a power of two, which is its last number. Where there are many they are
    written out in full only part by part, so that there may be more of them than fit into memory.
    """

    numbers: NDArray[np.int64]
    kept: NDArray[np.floating]
    held: bool = False  # written out in full once and for all: that takes longer than the products with a text
    spread: Callable[[], Floats] | None = None  # what every number is to be divided by, worked out when it is needed

    def units(self) -> Rows:
        """The rows, each in its own units."""
        return self._units if self.held else self._written_out()

    @cached_property
    def _units(self) -> Rows:
        return self._written_out()

    def _written_out(self) -> Rows:
        rows = self.kept[:, :-1].astype(np.float32)
        return rows if self.spread is None else (rows / self.spread()).astype(np.float32)

    @property
    def powers(self) -> NDArray[np.int32]:
        """The powers of two."""
        return self.kept[:, -1].astype(np.int32)


def _index(small: Projection, train: Sequence[Example], shelf: Shelf, how: How) -> list[_Part]:
    """The small gradients of all training examples; worked out in order of length, so that batches are full."""
    order = shelf.arrays("order", lambda: {"order": np.array(small.gradients.by_length(train))})["order"].astype(int)
    n = len(train)

    def part(start: int, end: int) -> NDArray[np.float16]:
        return _packed(small.rows([train[number] for number in order[start:end]], how, start, n))

    held = n * small.places[-1].stop * np.float32().nbytes <= _HELD
    parts, start = [], 0
    for kept in shelf.parts("gradients", n, part, how.tell, _PART):
        parts.append(_Part(order[start : start + len(kept)], kept, held))
        start += len(kept)
    return parts


def _packed(rows: Rows) -> NDArray[np.float16]:
    units, powers = _in_units(rows)
    return np.concatenate([units, powers[:, None]], axis=1).astype(np.float16)


def _in_units(rows: NDArray[_Float]) -> tuple[NDArray[_Float], NDArray[np.int32]]:
    """Every row divided by a power of two, so that its largest number is about 1, and the powers."""
    _, powers = np.frexp(np.abs(rows).max(axis=1))
    return np.ldexp(rows, -powers[:, None]), powers


@dataclass(frozen=True)
class _Metric:
    """How long a small gradient is, layer by layer: by the inverse of the damped second moments, or as it stands."""

    places: Sequence[slice]
    inverses: Sequence[NDArray[np.floating]] | None  # times the mean of the moments that each is the inverse of
    means: Floats

    def times(self, rows: Floats) -> Floats:
        """The rows, multiplied by the inverses."""
        if self.inverses is None:
            return rows
        found = np.empty_like(rows)
        for place, inverse, mean in zip(self.places, self.inverses, self.means, strict=True):
            found[:, place] = rows[:, place] @ inverse / mean
        return found

    def lengths(self, rows: Floats, times: Floats) -> Floats:
        """Of each row in each layer; `times` are the rows multiplied by the inverses."""
        starts = [place.start for place in self.places]
        return np.sqrt(np.maximum(np.add.reduceat(times * rows, starts, axis=1), 0))

    def spread(self, lengths: NDArray[np.floating]) -> Floats:
        """For every number the length of its layer to divide by; 1 where there is nothing."""
        sizes = [place.stop - place.start for place in self.places]
        return np.repeat(np.where(lengths > 0, lengths, 1.0), sizes, axis=1)


def _metric(  # noqa: PLR0917 - all of it is in what is kept
    small: Projection,
    index: Sequence[_Part],
    counts: NDArray[np.int64],
    damping: float | None,
    relative: bool,
    shelf: Shelf,
) -> _Metric:
    """The inverse of the second moments of each layer; where all are to be equally loud, of gradients of length one."""

    def compute() -> dict[str, NDArray[np.floating]]:
        shares = np.sqrt(counts / counts.sum())
        moments = [np.zeros((place.stop - place.start,) * 2) for place in small.places]
        for part in index:
            rows = part.units().astype(np.float64)
            if relative:
                whole = np.linalg.norm(rows, axis=1, keepdims=True)
                rows /= np.where(whole > 0, whole, 1.0)
            else:
                rows = np.ldexp(rows, part.powers[:, None])
            rows *= shares[part.numbers, None]
            for number, place in enumerate(small.places):
                moments[number] += rows[:, place].T @ rows[:, place]
        found = [_inverse(moment, damping or 0.0) for moment in moments]
        return {
            "means": np.array([mean for _, mean in found]),
            **{str(number): inverse.astype(np.float32) for number, (inverse, _) in enumerate(found)},
        }

    if damping is None:
        return _Metric(small.places, None, np.ones(len(small.places)))
    kept = shelf.arrays("inverses", compute)
    inverses = [kept[str(number)] for number in range(len(small.places))]
    return _Metric(small.places, inverses, kept["means"].astype(np.float64))


def _inverse(moments: Floats, damping: float) -> tuple[Floats, float]:
    """Of the damped moments in units of their mean, which may be far too small to be inverted itself; and that mean.

    Nothing for a layer that no training example sends a gradient through.
    """
    mean = float(np.trace(moments)) / len(moments)
    if mean <= _LEAST:
        return np.zeros_like(moments), 1.0
    return np.asarray(np.linalg.inv(moments / mean + damping * np.eye(len(moments))), np.float64), mean


def _lengths(metric: _Metric, index: Sequence[_Part], shelf: Shelf) -> list[NDArray[np.floating]]:
    """The length of each small gradient in each layer, in its own units, part by part."""

    def compute() -> dict[str, NDArray[np.floating]]:
        rows = (part.units().astype(np.float64) for part in index)
        return {str(at): metric.lengths(some, metric.times(some)) for at, some in enumerate(rows)}

    kept = shelf.arrays("lengths", compute)
    return [kept[str(at)] for at in range(len(index))]
