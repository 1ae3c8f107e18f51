"""The three experiments of "Debugging Tests for Model Explanations" (Adebayo et al. 2020) on pictures made on the spot.

`spurious_background` is its Table 2, `cascade` its Figure 7, `out_of_domain` its Table 3. Each takes models, so that
they can be run on a user's own; `train_all` makes those of the lab.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unhans.errors import BadData
from unhans.scoring import How, Progress
from unhans.training import Schedule, Watch
from unhans.vision.attributing import METHODS, attribute
from unhans.vision.classifier import ImageClassifier
from unhans.vision.measures import Floats, Mean, heat, ideal, mass, rank_correlation, relaxed, ssim
from unhans.vision.network import SCHEDULE, train
from unhans.vision.pictures import Pictures, digits, letters, shapes

_BACKGROUND = 128  # training pictures that patterns and expected gradients compare with


@dataclass(frozen=True)
class Taught:
    """A model and what it was taught on."""

    classifier: ImageClassifier
    pictures: Pictures

    def maps(self, images: NDArray[np.float32], method: str, **how: Any) -> Floats:
        """The maps of some pictures, with its own training pictures to compare with."""
        return attribute(self.classifier, images, method=method, background=self.pictures.images[:_BACKGROUND], **how)


@dataclass(frozen=True)
class Sighted:
    """How well the maps of one method show a background that the model goes by."""

    method: str
    ideal: Mean  # SSIM with GT-1
    relaxed: Mean  # SSIM with GT-2
    mass: Mean  # share of the map that is on the background
    clean_mass: Mean  # the same for a model that does not go by the background
    gaussian: float  # SSIM of the maps with raw Gaussian noise, the paper's calibration


@dataclass(frozen=True)
class Stage:
    """How alike maps still are when the weights of the top layers down to this one are drawn anew."""

    layer: str
    ssim: Mean
    rank: Mean


@dataclass(frozen=True)
class Likeness:
    """How alike the maps of two models are for the same pictures."""

    method: str
    model: str
    ssim: Mean
    rank: Mean


def spurious_background(
    spurious: Taught,
    clean: Taught,
    pictures: Pictures,
    *,
    methods: Sequence[str] = tuple(METHODS),
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[Sighted]:
    """Table 2: the maps of pictures with the spurious background against what they should be.

    The label explained is the picture's own, for the background without the object too.
    """
    how, rng, found = How(progress, cancelled), np.random.default_rng([seed, 41]), []
    truth = ideal(pictures.objects)
    noise = rng.standard_normal(truth.shape)
    given: dict[str, Any] = {"target": pictures.labels.tolist(), "seed": seed, "cancelled": cancelled}
    for done, method in enumerate(methods, start=1):
        maps = spurious.maps(pictures.images, method, **given)
        alone = spurious.maps(pictures.backgrounds, method, **given)
        shown = heat(maps)
        found.append(
            Sighted(
                method,
                Mean.of(ssim(shown, truth)),
                Mean.of(ssim(shown, relaxed(pictures.objects, alone))),
                Mean.of(mass(maps, truth)),
                Mean.of(mass(clean.maps(pictures.images, method, **given), truth)),
                float(ssim(shown, noise).mean()),
            )
        )
        how.tell(done, len(methods))
    return found


def cascade(
    taught: Taught,
    images: NDArray[np.float32],
    *,
    methods: Sequence[str] = tuple(METHODS),
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> dict[str, list[Stage]]:
    """Figure 7: the maps for the label first predicted, as layer after layer is drawn anew, from the top down."""
    labels = taught.classifier.log_probs(images).argmax(1).tolist()
    how, layers = How(progress, cancelled), layers_of(taught.classifier.model)
    given: dict[str, Any] = {"target": labels, "seed": seed, "cancelled": cancelled}
    depths = range(1, len(layers) + 1)
    broken = [Taught(reinitialised(taught.classifier, depth, seed), taught.pictures) for depth in depths]
    curves: dict[str, list[Stage]] = {}
    for method in methods:
        before = taught.maps(images, method, **given)
        curves[method] = []
        for layer, one in zip(layers, broken, strict=True):
            after = one.maps(images, method, **given)
            alike = Mean.of(ssim(heat(before), heat(after))), Mean.of(rank_correlation(before, after))
            curves[method].append(Stage(layer, *alike))
            how.tell(sum(map(len, curves.values())), len(methods) * len(layers))
    return curves


def out_of_domain(
    own: Taught,
    others: Mapping[str, Taught],
    images: NDArray[np.float32],
    *,
    methods: Sequence[str] = tuple(METHODS),
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[Likeness]:
    """Table 3: the maps of pictures by the model for them, against those by models for something else.

    Each model explains the label that it predicts.
    """
    how, found = How(progress, cancelled), []
    for method in methods:
        within = own.maps(images, method, seed=seed, cancelled=cancelled)
        for name, other in others.items():
            without = other.maps(images, method, seed=seed, cancelled=cancelled)
            alike = Mean.of(ssim(heat(within), heat(without))), Mean.of(rank_correlation(within, without))
            found.append(Likeness(method, name, *alike))
            how.tell(len(found), len(methods) * len(others))
    return found


def layers_of(module: nn.Module) -> list[str]:
    """The names of the layers with weights, the top one first; refused where one cannot be drawn anew by itself."""
    own = [(name, part) for name, part in module.named_modules() if part._parameters]
    if stray := [name for name, part in own if not hasattr(part, "reset_parameters")]:
        raise BadData(f"The layer {stray[0]!r} has weights, but no initialiser of its own (reset_parameters).")
    return [name for name, _ in reversed(own)]


def reinitialised(classifier: ImageClassifier, depth: int, seed: int) -> ImageClassifier:
    """A copy in which so many layers, from the top, are drawn anew by their own initialisers."""
    module = copy.deepcopy(classifier.model)
    parts = dict(module.named_modules())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name in layers_of(module)[:depth]:
            parts[name].reset_parameters()
    return ImageClassifier(module, classifier.labels, low=classifier.low, high=classifier.high)


def train_all(*, size: int = 1500, schedule: Schedule = SCHEDULE, watch: Watch | None = None) -> dict[str, Taught]:
    """The lab's models: shapes with a spurious background and without, two halves of the digits, and letters."""
    sets = {
        "spurious": shapes(size, spurious=True, seed=schedule.seed),
        "clean": shapes(size, spurious=False, seed=schedule.seed),
        "digits": _some(digits((0, 1, 2, 3, 4)), size, held_out=False),
        "other digits": _some(digits((5, 6, 7, 8, 9)), size, held_out=False),
        "letters": letters(min(size, 1000), seed=schedule.seed),
    }
    return {name: Taught(train(own, schedule=schedule, watch=watch), own) for name, own in sets.items()}


def held_out_digits(n: int) -> Pictures:
    """Digits 0 to 4 that `train_all` does not show to any model."""
    return _some(digits((0, 1, 2, 3, 4)), n, held_out=True)


def _some(pictures: Pictures, n: int, *, held_out: bool) -> Pictures:
    """Those in one of two parts, every fourth picture held out; at most n."""
    places = np.flatnonzero((np.arange(len(pictures)) % 4 == 0) == held_out)[:n]
    return Pictures(
        pictures.images[places],
        pictures.labels[places],
        pictures.names,
        pictures.textures[places],
        pictures.objects[places],
        pictures.backgrounds[places],
    )
