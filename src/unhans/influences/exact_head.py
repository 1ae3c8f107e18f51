"""The influence function of the head, exactly (Koh & Liang 2017): features held fixed, the problem is convex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from unhans.errors import BadOption, Unsupported
from unhans.influences import How, Pushes, Shelf, Traced, influence
from unhans.influences._head import Floats, Seen, head_of, mean_curvature, see, see_now
from unhans.model import TransformerClassifier
from unhans.types import Example

_MOST = 10_000  # rows of a Hessian: 800 MB
_AT_ONCE = 256  # examples whose own influence is worked out together
_FEW = 4096  # examples between two looks at whether to stop
_LEAST = 1e-12  # a model that is sure of everything has no curvature


@influence(needs={"gradients"}, keeps=True, paper="arXiv:1703.04730")
def exact_head(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    counts: NDArray[np.int64],
    shelf: Shelf,
    how: How,
    *,
    damping: Annotated[float, "added to the curvature, as a share of its mean eigenvalue"] = 0.1,
) -> Traced:
    """How the loss would change were the head trained without an example, by the inverse of the head's Hessian.

    Exact for a head that was trained to its optimum on fixed features, with as much weight decay as there is damping;
    it knows nothing of what the layers below have learned from an example.
    """
    if damping <= 0:
        raise BadOption(f"damping must be positive, not {damping}: without it the Hessian has no inverse.")
    n = counts.sum()
    head = head_of(classifier)
    seen = see(classifier, head, train, shelf, how)
    apart = _contrasts(seen.p.shape[1])
    _check_size(apart.shape[1] * seen.features.shape[1])
    hessian = _hessian(seen, counts / n, apart, how)
    hessian[np.diag_indices(len(hessian))] += damping * mean_curvature(seen, counts / n) + _LEAST
    factor = cho_factor(hessian, lower=True, overwrite_a=True)

    def steps(some: Seen) -> Floats:
        """Where the head's weights would go without each of these examples, times n: examples × labels × features."""
        gradients = (some.errors @ apart)[:, :, None] * some.features[:, None, :]
        solved = cho_solve(factor, gradients.reshape(len(gradients), -1).T).T.reshape(gradients.shape)
        found: Floats = np.einsum("lk,ekf->elf", apart, solved)
        return found

    def pushes(anchors: Sequence[Example], _: How) -> Pushes:
        moved = steps(see_now(classifier, head, anchors))
        return Pushes(np.einsum("alf,zl,zf->az", moved, seen.errors, seen.features, optimize=True) / n)

    def own(how: How) -> Floats:
        scores = np.empty(len(train))
        for numbers in np.array_split(np.arange(len(train)), -(-len(train) // _AT_ONCE)):
            some = seen.some(numbers)
            scores[numbers] = np.einsum("elf,el,ef->e", steps(some), some.errors, some.features)
            how.tell(int(numbers[-1]) + 1, len(train))
        return np.asarray(scores / n, np.float64)

    return Traced(pushes, own)


def _contrasts(labels: int) -> Floats:
    """Directions in which labels differ, labels × (labels - 1): what moves all logits alike changes no probability."""
    unit = np.eye(labels) - 1 / labels
    directions: Floats = np.linalg.svd(unit)[0][:, : labels - 1]
    return directions


def _hessian(seen: Seen, shares: Floats, apart: Floats, how: How) -> Floats:
    """Of the mean loss by the head's weights, in the directions in which labels differ."""
    p, x = seen.p @ apart, seen.features
    spread = np.einsum("el,lk,lm->ekm", seen.p, apart, apart) - p[:, :, None] * p[:, None, :]
    k, f = apart.shape[1], x.shape[1]
    found = np.zeros((k, f, k, f))
    for a in range(k):
        for b in range(a + 1):
            for start in range(0, len(x), _FEW):
                some = slice(start, start + _FEW)
                found[a, :, b] += x[some].T @ (x[some] * (shares * spread[:, a, b])[some, None])
                how.tell(len(x), len(x))  # all examples are seen; this hears whether to stop
            found[b, :, a] = found[a, :, b]
    return found.reshape(k * f, k * f)


def _check_size(rows: int) -> None:
    if rows > _MOST:
        raise Unsupported(
            f"The Hessian of this head has {rows:,} rows, and at most {_MOST:,} can be held. Nothing was changed. "
            "ekfac with layers=0 looks at the same head and needs far less memory."
        )
