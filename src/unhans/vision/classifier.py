"""Any torch image classifier, with pixels in the place of words.

The families of attributions ask a classifier for embeddings (rows × places × width), gradients by them, and answers to
variants with places missing. For a picture the places are its pixels, the width its channels, and a variant is the
picture with some regions grey. So the methods for texts run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unhans.attributions.gradient_shap import starts_from
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.propagation import Rules

Images = Tensor | NDArray[Any] | Sequence[Tensor]
"""Pictures, n × channels × height × width, in the classifier's range."""

_AT_ONCE = 64  # pictures in a forward pass
_PLAIN = (nn.Conv2d, nn.Linear, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_NOTHING = (nn.Flatten, nn.Dropout, nn.Dropout2d, nn.Identity)


@dataclass(frozen=True)
class ImageBatch:
    """Pictures as the methods see them: rows of pixels, each of which belongs to a region."""

    images: Tensor  # rows × channels × height × width
    owners: Tensor  # rows × pixels: number of each pixel's region

    @property
    def embeddings(self) -> Tensor:
        """Rows × pixels × channels."""
        return self.images.flatten(2).transpose(1, 2)

    def picture(self, embeddings: Tensor) -> Tensor:
        """Rows of pixels made into pictures again; there may be the same pictures several times over."""
        return embeddings.transpose(1, 2).reshape(-1, *self.images.shape[1:])

    def to_words(self, of_pixels: Tensor) -> Tensor:
        """Scores of pixels summed into scores of regions, rows × regions."""
        pooled = of_pixels.new_zeros(len(self.images), int(self.owners.max()) + 1)
        return pooled.scatter_add(1, self.owners, of_pixels)


@dataclass(frozen=True)
class Regions:
    """One picture in parts that can be taken out of it, as words can be taken out of a text."""

    image: Tensor  # channels × height × width
    owners: NDArray[np.int64]  # region of each pixel
    grey: float  # what is seen where a region is missing

    def __len__(self) -> int:
        return int(self.owners.max()) + 1

    @property
    def open(self) -> range:
        """The regions that may be taken out: all."""
        return range(len(self))

    def without(self, regions: Iterable[int], _: object = None) -> Tensor:
        """The picture with these regions grey."""
        missing = np.zeros(len(self), bool)
        missing[list(regions)] = True
        gone = torch.from_numpy(missing[self.owners].reshape(self.image.shape[1:]))
        return torch.where(gone.to(self.image.device), self.grey, self.image)


class ImageClassifier:
    """A torch module that gives each picture one logit a label.

    It takes the module over and sets it to evaluation mode. `low` and `high` are the range of the pixels as the module
    takes them, after whatever preprocessing it wants.
    """

    def __init__(self, module: nn.Module, labels: Sequence[str], *, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise BadOption(f"The range of pixels must go up, and {low} to {high} does not.")
        self.model, self.labels, self.low, self.high = module.eval(), tuple(labels), low, high
        leaves = [part for part in module.modules() if not list(part.children())]
        plain = all(isinstance(part, (*_PLAIN, *_NOTHING)) for part in leaves)
        self.capabilities = frozenset({"predict", "gradients"} | ({"plain_path"} if plain else set()))

    @property
    def grey(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    def require(self, needs: Iterable[str], who: str) -> None:
        """Refuse what this module cannot do."""
        if "plain_path" in set(needs) - self.capabilities:
            raise Unsupported(
                f"{who} is defined for networks of convolutions, linear layers, ReLUs and pooling alone, and this one "
                "has other layers. lrp works with it."
            )

    def label_number(self, label: str | int) -> int:
        """The column of a label, by name or number."""
        if isinstance(label, int) and 0 <= label < len(self.labels):
            return label
        if label not in self.labels:
            raise BadOption(f"There is no label {label!r}. There is: {', '.join(self.labels)}.")
        return self.labels.index(str(label))

    def checked(self, images: Images) -> Tensor:
        """The pictures as one tensor, if they are what this classifier takes."""
        given = torch.stack(list(images)) if isinstance(images, list | tuple) else torch.as_tensor(images)
        if given.ndim != 4 or not len(given):
            raise BadData(f"Pictures are a table of n × channels × height × width, not {tuple(given.shape)}.")
        given = given.to(next(self.model.parameters()))
        slack = 1e-4 * (self.high - self.low)
        if not torch.isfinite(given).all() or given.min() < self.low - slack or given.max() > self.high + slack:
            raise BadData(f"Some pixels are not between {self.low:g} and {self.high:g}, this classifier's range.")
        return given

    def batch(self, images: Images, owners: Tensor | None = None) -> ImageBatch:
        """Pictures for gradients; without owners every pixel is a region of its own."""
        given = self.checked(images)
        if owners is None:
            owners = torch.arange(given[0, 0].numel(), device=given.device).expand(len(given), -1)
        return ImageBatch(given, owners)

    def log_probs(self, images: Images, cancelled: Callable[[], bool] | None = None) -> NDArray[np.float64]:
        """Log-probability of every label for every picture."""
        given, found = self.checked(images), []
        for start in range(0, len(given), _AT_ONCE):
            if cancelled is not None and cancelled():
                raise Cancelled("Stopped; nothing was changed.")
            with torch.inference_mode():
                found.append(self._logits(given[start : start + _AT_ONCE]).double().log_softmax(1))
        lines: NDArray[np.float64] = torch.cat(found).cpu().numpy()
        return lines

    def accuracy(self, images: Images, labels: Sequence[int] | NDArray[np.int64]) -> float:
        """Share of pictures whose best label is the given one."""
        return float((self.log_probs(images).argmax(1) == np.asarray(labels)).mean())

    # -- what methods that differentiate ask for, under the names that they have for texts

    def embed(self, batch: ImageBatch) -> Tensor:
        """The pixels, rows × pixels × channels."""
        return batch.embeddings

    def logits(self, batch: ImageBatch, embeddings: Tensor | None = None, *, rules: Rules | None = None) -> Tensor:
        """Logits of the pictures, or of changed pixels in their place; `rules` are entered around the pass."""
        with rules or nullcontext():  # pixels are made into pictures inside, or nothing would come from the input
            return self._logits(batch.images if embeddings is None else batch.picture(embeddings))

    def gradient(
        self,
        embeddings: Tensor,
        batch: ImageBatch,
        targets: Tensor,
        create_graph: bool = False,
        rules: Rules | None = None,
    ) -> Tensor:
        """Gradient of each picture's target logit by its pixels; with `rules`, what they send back instead."""
        leaf = embeddings.detach().requires_grad_()
        if rules is not None:
            rules.follow(leaf)
        wanted = self.logits(batch, leaf, rules=rules).gather(1, targets[:, None])[:, 0]
        if rules is not None:
            return rules.gradient(wanted, leaf, create_graph)
        return torch.autograd.grad(wanted.sum(), leaf, create_graph=create_graph)[0]

    def gradients(
        self, points: Sequence[Tensor], batch: ImageBatch, targets: Tensor, create_graph: bool = False
    ) -> Iterator[Tensor]:
        """The gradient at each of several points (each rows × pixels × channels), as many at once as fill a batch."""
        at_once = max(1, _AT_ONCE // len(batch.images))
        for start in range(0, len(points), at_once):
            some = points[start : start + at_once]
            goals = targets.repeat(len(some))
            yield from self.gradient(torch.cat(list(some)), batch, goals, create_graph).chunk(len(some))

    def _logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(images)
        if logits.shape != (len(images), len(self.labels)):
            wanted = f"{len(images)} × {len(self.labels)}"
            raise BadData(f"The module gave an answer of shape {tuple(logits.shape)} where {wanted} was expected.")
        return logits


@starts_from.register
def _(
    batch: ImageBatch,
    classifier: ImageClassifier,
    rngs: Sequence[np.random.Generator],
    background: Images,
    n: int,
) -> list[Tensor]:
    """For expected gradients: other pictures, drawn for each picture and sample."""
    others = classifier.batch(background).embeddings
    chosen = np.stack([rng.integers(len(others), size=n) for rng in rngs], axis=1)
    return [others[torch.from_numpy(line)] for line in chosen]
