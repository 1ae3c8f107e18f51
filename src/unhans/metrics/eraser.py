"""Are the highest-scored words needed, and do they suffice? (DeYoung et al. 2020)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadOption
from unhans.metrics import metric
from unhans.metrics._erasing import BY_DELETION, NO_WORDS, Share, probabilities, top
from unhans.model import Classifier
from unhans.text import Words

Shares = Annotated[str, "parts of the words, with commas"]
_PAPER = "10.18653/v1/2020.acl-main.408"
_FAMILY = "erasure by deletion"


@metric(
    better="higher",
    of="fall in the label's probability without the highest-scored words",
    family=_FAMILY,
    favours=BY_DELETION,
    range=(-1.0, 1.0),
    undefined=NO_WORDS,
    paper=_PAPER,
)
def comprehensiveness(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    share: Share = 0.2,
) -> NDArray[np.float64]:
    """Fall in the label's probability when the highest-scored words are deleted: were they needed?"""
    return _falls(classifier, words, scores, targets, how, [share], keep=False)


@metric(
    better="lower",
    of="fall in the label's probability with only the highest-scored words",
    family=_FAMILY,
    favours=BY_DELETION,
    range=(-1.0, 1.0),
    undefined=NO_WORDS,
    paper=_PAPER,
)
def sufficiency(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    share: Share = 0.2,
) -> NDArray[np.float64]:
    """Fall in the label's probability when all but the highest-scored words are deleted: do they suffice?"""
    return _falls(classifier, words, scores, targets, how, [share], keep=True)


@metric(
    better="higher",
    of="fall in the label's probability without the highest-scored words, over several shares",
    family=_FAMILY,
    favours=BY_DELETION,
    range=(-1.0, 1.0),
    undefined=NO_WORDS,
    paper=_PAPER,
    aliases=("aopc_compr",),
)
def aopc_comprehensiveness(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    shares: Shares = "0.05,0.1,0.2,0.5",
) -> NDArray[np.float64]:
    """Comprehensiveness, the mean over several shares."""
    return _falls(classifier, words, scores, targets, how, _numbers(shares), keep=False)


@metric(
    better="lower",
    of="fall in the label's probability with only the highest-scored words, over several shares",
    family=_FAMILY,
    favours=BY_DELETION,
    range=(-1.0, 1.0),
    undefined=NO_WORDS,
    paper=_PAPER,
    aliases=("aopc_suff",),
)
def aopc_sufficiency(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    *,
    shares: Shares = "0.05,0.1,0.2,0.5",
) -> NDArray[np.float64]:
    """Sufficiency, the mean over several shares."""
    return _falls(classifier, words, scores, targets, how, _numbers(shares), keep=True)


def _falls(
    classifier: Classifier,
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    targets: Sequence[int],
    how: dict[str, Any],
    shares: Sequence[float],
    keep: bool,
) -> NDArray[np.float64]:
    """Mean over the shares of P(label | whole text) - P(label | text without the top words, or with them alone)."""
    lines = []
    for one, line in zip(words, scores, strict=True):
        chosen = [set(top(one, line, share)) for share in shares]
        gone = [set(one.open) - some if keep else some for some in chosen]
        lines.append([one.variant({}), *map(one.without, gone)])
    found = probabilities(classifier, lines, targets, how)
    return np.array([p[0] - p[1:].mean() if one.open else np.nan for p, one in zip(found, words, strict=True)])


def _numbers(shares: str) -> list[float]:
    try:
        return [float(share) for share in shares.split(",")]
    except ValueError:
        raise BadOption(f"shares must be numbers with commas between them, not {shares!r}.") from None
