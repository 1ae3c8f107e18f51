"""Maps of pictures by the very methods that score words.

`METHODS` are the fifteen of "Debugging Tests for Model Explanations" and a random one: each is a member of the
attributions family with the options that make it a map of pixels. Only LRP's preset A flat is for pictures alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.attributions import Estimate, attribution
from unhans.errors import BadOption
from unhans.registry import Entry
from unhans.scoring import How, Progress
from unhans.vision.classifier import ImageBatch, ImageClassifier, Images, Regions
from unhans.vision.rules import PresetAFlat

Floats = NDArray[np.float64]
Target = str | int | np.integer[Any] | Sequence[int] | NDArray[np.integer[Any]] | Tensor
Units = Literal["pixel", "superpixel"]

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient": ("saliency", {"aggregate": "norm"}),
    "smoothgrad": ("smoothgrad", {"aggregate": "norm"}),
    "smoothgrad_squared": ("smoothgrad_squared", {}),
    "vargrad": ("vargrad", {}),
    "input_x_gradient": ("input_x_gradient", {}),
    "integrated_gradients": ("integrated_gradients", {"baseline": "zero"}),
    "expected_gradients": ("gradient_shap", {}),
    "lime": ("lime", {"num_samples": 300}),
    "kernel_shap": ("kernel_shap", {"num_samples": 300}),
    "guided_backprop": ("guided_backprop", {"aggregate": "signed"}),
    "deconvnet": ("deconvnet", {"aggregate": "signed"}),
    "lrp_epsilon": ("lrp", {"rules": "epsilon"}),
    "lrp_preset_a_flat": ("", {}),
    "pattern_net": ("pattern_net", {"aggregate": "signed"}),
    "pattern_attribution": ("pattern_attribution", {"aggregate": "signed"}),
    "random": ("random", {}),
}
_BY_REGION = {"lime", "kernel_shap"}  # a few hundred samples say nothing about a thousand pixels
_OF_TEXTS = {"erase", "baseline"}  # options that name tokens
_EPSILON = 0.1  # of preset A, as iNNvestigate has it


def attribute(
    classifier: ImageClassifier,
    images: Images,
    *,
    method: str = "integrated_gradients",
    target: Target | None = None,
    units: Units | None = None,
    segments: int = 30,
    background: Images | None = None,
    seed: int = 0,
    batch_size: int = 16,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    **options: Any,
) -> Floats:
    """One map a picture, n × height × width: what each pixel says for the target label, or else the predicted one.

    `target` is one label for all, or the number of a label for each. Channels are added up as the dimensions of a
    word's embedding are. Methods that take regions out of the picture (lime, kernel_shap) score superpixels, about
    `segments` of them, and every pixel of one gets its score divided by its size; with `units` others do so too, or
    these score single pixels. Patterns and expected gradients need a `background` of other pictures.
    """
    given, how = classifier.checked(images), How(progress, cancelled)
    if batch_size < 1:
        raise BadOption(f"batch_size must be at least 1, not {batch_size}.")
    explain, by_words = _chosen(classifier, method, background, options)
    units = units or ("superpixel" if method in _BY_REGION else "pixel")
    goals = _goals(classifier, given, target)
    maps = []
    for start in range(0, len(given), batch_size):
        some, labels = given[start : start + batch_size], goals[start : start + batch_size]
        owners = np.stack([regions_of(classifier, image, units, segments) for image in some])
        offered = _offer(classifier, some, owners, labels, by_words)
        offered["rngs"] = [_generator(seed, image) for image in some]
        offered |= {"background": background, "create_graph": False, "how": {"cancelled": cancelled}}
        for line, own in zip(_lines(explain(offered)), owners, strict=True):
            maps.append((line[: own.max() + 1] / np.bincount(own))[own].reshape(some.shape[2:]))
        how.tell(len(maps), len(given))
    return np.stack(maps)


def _goals(classifier: ImageClassifier, images: Tensor, target: Target | None) -> NDArray[np.int64]:
    if target is None:
        best: NDArray[np.int64] = classifier.log_probs(images).argmax(1)
        return best
    given = target if isinstance(target, str) else np.asarray(target).tolist()  # arrays and tensors have numbers alike
    several = given if isinstance(given, list) else [given] * len(images)
    if len(several) != len(images):
        raise BadOption(f"There are {len(several)} targets for {len(images)} pictures.")
    return np.array([classifier.label_number(one) for one in several], np.int64)


def regions_of(classifier: ImageClassifier, image: Tensor, units: str, segments: int) -> NDArray[np.int64]:
    """The region of every pixel: itself, or a superpixel of pixels that are near and alike (SLIC)."""
    if units not in ("pixel", "superpixel"):
        raise BadOption(f"units must be pixel or superpixel, not {units!r}.")
    if segments < 1:
        raise BadOption(f"segments must be at least 1, not {segments}.")
    if units == "pixel":
        return np.arange(image[0].numel())
    from skimage.segmentation import slic

    seen = ((image - classifier.low) / (classifier.high - classifier.low)).clamp(0, 1).cpu().double().numpy()
    picture, axis = (seen[0], None) if len(seen) == 1 else (np.moveaxis(seen, 0, -1), -1)
    found = slic(picture, n_segments=segments, compactness=0.1 if axis is None else 10.0, channel_axis=axis)
    numbers: NDArray[np.int64] = np.unique(found, return_inverse=True)[1].reshape(-1)
    return numbers


def _chosen(
    classifier: ImageClassifier, method: str, background: Images | None, options: dict[str, Any]
) -> tuple[Callable[[dict[str, Any]], Any], bool]:
    """What makes the scores, and whether it asks about regions instead of differentiating."""
    if method not in METHODS:
        raise BadOption(f"There is no {method!r} among the methods for pictures. There is: {', '.join(METHODS)}.")
    name, usual = METHODS[method]
    if not name:
        return partial(_preset_a_flat, **options), False
    entry: Entry = attribution[name]
    if stray := sorted(_OF_TEXTS & set(options)):
        raise BadOption(f"{stray[0]} is an option for texts: pictures have no tokens.")
    entry.settings(usual | options)
    classifier.require(entry.needs, method)
    if "background" in entry.asks and (background is None or not len(background)):
        raise BadOption(f"{method} needs background=, other pictures to compare with: some training pictures will do.")
    return partial(entry, **(usual | options)), "batch" not in entry.asks


def _offer(
    classifier: ImageClassifier, images: Tensor, owners: NDArray[np.int64], targets: NDArray[np.int64], by_words: bool
) -> dict[str, Any]:
    if by_words:
        words = [Regions(image, own, classifier.grey) for image, own in zip(images, owners, strict=True)]
        return {"classifier": classifier, "words": words, "targets": targets.tolist()}
    batch = classifier.batch(images, torch.from_numpy(owners).to(images.device))
    return {"classifier": classifier, "batch": batch, "targets": torch.from_numpy(targets).to(images.device)}


def _preset_a_flat(offered: dict[str, Any], *, epsilon: float = _EPSILON) -> Tensor:
    if epsilon < 0:
        raise BadOption(f"epsilon must not be negative, as {epsilon} is.")
    classifier, batch = offered["classifier"], offered["batch"]
    assert isinstance(batch, ImageBatch)
    rules = PresetAFlat(classifier.model, epsilon=epsilon)
    return batch.to_words(classifier.gradient(batch.embeddings, batch, offered["targets"], rules=rules).sum(-1))


def _lines(scores: Any) -> Iterator[Floats]:
    if isinstance(scores, Tensor):
        yield from scores.detach().cpu().double().numpy()
    else:
        yield from (one.scores if isinstance(one, Estimate) else np.asarray(one, np.float64) for one in scores)


def _generator(seed: int, image: Tensor) -> np.random.Generator:
    """One of the picture's own, so that neither order nor company changes what is drawn for it."""
    digest = blake2b(image.detach().cpu().float().numpy().tobytes(), digest_size=8).hexdigest()
    return np.random.default_rng([seed, int(digest, 16)])
