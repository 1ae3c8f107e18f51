"""Influence functions by stochastic recursion (Koh & Liang 2017), with FastIF's short cuts (Guo et al. 2021).

What an anchor asks for is its gradient after the inverse of the damped Hessian, s = (H + λ)⁻¹ g. The recursion
h ← g + h - (H h + λ h) / scale approaches scale · s, with the Hessian of another few training examples in each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.errors import BadOption, ModelFailed
from unhans.influences import How, Pushes, Shelf, Traced, influence
from unhans.influences._gradients import slopes
from unhans.influences._head import Floats, head_of, last_parameters, see, see_now
from unhans.influences._hessians import Curvature, length
from unhans.model import TransformerClassifier
from unhans.types import Example

_TRIES = 10  # scales and dampings
_PATIENCE = 3  # of them at the damping asked for
_SETTLED = 0.05  # change by the last tenth; what still grows with every step changes by 0.067
_LEAST = 1e-30


@influence(needs={"gradients"}, at_once=1, paper="arXiv:1703.04730, arXiv:2012.15781")
def lissa(  # noqa: PLR0917 - what it asks for, by name
    classifier: TransformerClassifier,
    train: Sequence[Example],
    counts: NDArray[np.int64],
    shelf: Shelf,
    rng: np.random.Generator,
    how: How,
    *,
    depth: Annotated[int, "steps of the recursion"] = 500,
    batch: Annotated[int, "training examples looked at in each step"] = 8,
    damping: Annotated[
        float, "added to the curvature, as a share of its largest eigenvalue; more converges faster"
    ] = 0.01,
    layers: Annotated[int, "last layers looked at beside the head: 0 the head alone, -1 all weights"] = 2,
    nearest: Annotated[int, "score only so many training examples, those the head sees nearest; 0 scores all"] = 0,
    repeats: Annotated[int, "recursions averaged"] = 1,
) -> Traced:
    """How the loss would change without a training example, by a stochastic estimate of the inverse Hessian.

    The scale starts at the largest eigenvalue, found by power iteration, and is doubled until the recursion does not
    diverge; where that does not help (the Hessian has negative eigenvalues), the damping is raised. The notes tell
    both, and whether the recursion has converged.
    """
    if min(depth, batch, repeats) < 1 or nearest < 0 or damping <= 0:
        raise BadOption("depth, batch and repeats must be at least 1, damping positive, and nearest not negative.")
    names, n = last_parameters(classifier, layers), int(counts.sum())
    seed = int(rng.integers(2**62))
    curvature = Curvature(classifier, train, counts, names)
    looks = 2 if nearest else 1
    largest = curvature.largest(np.random.default_rng([seed, 0]), how.part(0, 1, looks))
    search = _Search(curvature, depth, batch, repeats, damping * largest, (1 + damping) * largest)
    head = head_of(classifier) if nearest else None
    features = see(classifier, head, train, shelf, how.part(1, 2, looks)).features if head else None

    def pushes(anchors: Sequence[Example], how: How) -> Pushes:
        lines, notes = np.full((len(anchors), len(train)), np.nan), []
        for at, (line, anchor) in enumerate(zip(lines, anchors, strict=True)):
            # the recursion first, and then two passes through the model
            found = search(anchor, seed, how.part(2 * at, 2 * at + 1, 2 * len(anchors)))
            some = np.arange(len(train))
            if head is not None and features is not None:
                some = _nearest(features, see_now(classifier, head, [anchor]).features[0], nearest)
            direction = dict(zip(names, found.direction, strict=True))
            tell = how.part(2 * at + 1, 2 * at + 2, 2 * len(anchors)).tell
            line[some] = slopes(classifier, [train[int(k)] for k in some], direction, tell=tell) / n
            notes.append(found.note(depth, repeats))
            if len(some) < len(train):
                notes.append(f"Only the nearest {len(some):,} of {len(train):,} different training texts were scored.")
        return Pushes(lines, tuple(dict.fromkeys(notes)))

    return Traced(pushes)


@dataclass(frozen=True)
class _Found:
    """Where a recursion came to."""

    direction: list[Tensor]
    scale: float
    damping: float
    change: float

    def note(self, depth: int, repeats: int) -> str:
        """The sentence that tells how far it can be trusted."""
        again = f", averaged over {repeats} recursions" if repeats > 1 else ""
        said = f"{depth} steps at scale {self.scale:.3g} with damping {self.damping:.3g}{again}"
        said += f"; the last tenth of them changed the result by {self.change:.1%}"
        return f"{said}." if self.change <= _SETTLED else f"{said}: it has not converged, so raise depth or damping."


@dataclass(frozen=True)
class _Search:
    """Recursions at one scale after the other, until one does not diverge."""

    curvature: Curvature
    depth: int
    batch: int
    repeats: int
    damping: float
    scale: float

    def __call__(self, anchor: Example, seed: int, how: How) -> _Found:
        """Neither the other anchors nor their order changes what is drawn for this one."""
        gradient = self.curvature.gradient(anchor)
        scale, damping = self.scale, self.damping
        for tried in range(_TRIES):
            runs = []
            # nobody knows how many tries it will be: each has half of what is left
            left = 2 ** (_TRIES - tried)
            now = how.part(2**_TRIES - left, 2**_TRIES - left // 2, 2**_TRIES)
            for repeat in range(self.repeats):
                rng = np.random.default_rng([seed, int(anchor.text_hash, 16), repeat])
                within = now.part(repeat, repeat + 1, self.repeats)
                runs.append(self._recursion(gradient, scale, damping, rng, within))
                if runs[-1] is None:
                    break
            whole = [run for run in runs if run is not None]
            if len(whole) == self.repeats:
                direction = [torch.stack(parts).mean(0) for parts in zip(*(run[0] for run in whole), strict=True)]
                return _Found(direction, scale, damping, max(run[1] for run in whole))
            scale *= 2
            if tried >= _PATIENCE:
                damping *= 4
                scale += damping  # a scale below curvature and damping together diverges anyway
        raise ModelFailed(
            f"The recursion diverged at every scale up to {scale / 2:.3g}. The model was not changed. "
            "Raise batch or damping, or use ekfac, which cannot diverge."
        )

    def _recursion(
        self, gradient: list[Tensor], scale: float, damping: float, rng: np.random.Generator, how: How
    ) -> tuple[list[Tensor], float] | None:
        """The mean of the second half of the steps, and how much its last tenth changed it; None if it diverged."""
        half, tenth = self.depth // 2, max(1, self.depth // 10)
        # no solution is longer than this where the curvature is nowhere negative
        bound = 3 * scale / damping * length(gradient)
        state = [part.clone() for part in gradient]
        total = early = [torch.zeros_like(part) for part in gradient]
        for step in range(self.depth):
            bent = self.curvature.times(state, self.curvature.draw(rng, self.batch))
            state = [g + h - (b + damping * h) / scale for g, h, b in zip(gradient, state, bent, strict=True)]
            if not length(state) <= bound:  # not a number is no length either
                return None
            if step == self.depth - tenth:
                early = total
            if step >= half:
                total = [so_far + part for so_far, part in zip(total, state, strict=True)]
            how.tell(step + 1, self.depth)
        mean = [part / (self.depth - half) for part in total]
        before = [part / max(1, self.depth - half - tenth) for part in early]
        change = length([now - then for now, then in zip(mean, before, strict=True)]) / max(length(mean), _LEAST)
        return [part / scale for part in mean], change


def _nearest(features: Floats, anchor: Floats, n: int) -> NDArray[np.int64]:
    """Numbers of the training examples that are nearest to an anchor: an exact search through all of them.

    The same as by FastIF's flat index of FAISS: a difference for each of them, next to nothing beside the recursion.
    """
    distances = ((features - anchor) ** 2).sum(1)
    return np.argsort(distances, kind="stable")[:n]
