"""The paper's small network: five convolutions and three linear layers, trained in a minute."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from unhans.training import Schedule, Watch, optimise
from unhans.vision.classifier import ImageClassifier
from unhans.vision.pictures import SIDE, Pictures

SCHEDULE = Schedule(epochs=6, learning_rate=2e-3, batch_size=32)
_WIDTHS = (8, 16, 16, 32, 32)
_POOLED = (1, 3, 4)  # convolutions after which the picture is halved


def small_network(n_labels: int, *, seed: int = 0) -> nn.Sequential:
    """Untrained, for grey pictures of the size that `unhans.vision.pictures` makes; ReLUs and max-pooling between."""
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for number, width in enumerate(_WIDTHS):
            before = _WIDTHS[number - 1] if number else 1
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if number in _POOLED else []
        flat = _WIDTHS[-1] * (SIDE >> len(_POOLED)) ** 2
        layers += [nn.Flatten(), nn.Linear(flat, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, n_labels)]
        return nn.Sequential(*layers)


def train(pictures: Pictures, *, schedule: Schedule = SCHEDULE, watch: Watch | None = None) -> ImageClassifier:
    """A small network taught on these pictures."""
    made = small_network(len(pictures.names), seed=schedule.seed)
    images, labels = torch.from_numpy(pictures.images), torch.from_numpy(pictures.labels)

    def batches(rng: np.random.Generator) -> list[list[int]]:
        order = rng.permutation(len(labels)).tolist()
        return [order[start : start + schedule.batch_size] for start in range(0, len(order), schedule.batch_size)]

    def loss(numbers: Any) -> tuple[Tensor, Tensor | None]:
        return cross_entropy(made(images[numbers]), labels[numbers]), None

    optimise(made, batches, loss, schedule, None, None, "pictures", watch or Watch())
    return ImageClassifier(made, pictures.names)
