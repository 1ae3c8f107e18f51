"""Texts unlike those that the model was taught on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import numpy as np

from unhans.audit import Find, How, Outcome, check
from unhans.audit._look import drawn
from unhans.audit._rules import FEWEST, STRANGE, mildest
from unhans.audit._statistics import percent
from unhans.detectors import detect, fewest_usual, strange_share, usable
from unhans.detectors import detector as known
from unhans.errors import BadData
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.types import Evidence, Example

_LEVEL = 0.95
_MOST = 2000  # texts on each side
_BLOCKS = 10  # of each half


@check(
    title="Strange texts",
    needs={"predict"},
    cost=0.1,
    order=10,
    trained=True,
    paper="Lee et al. 2018, arXiv:1807.03888; Hendrycks & Gimpel 2017, arXiv:1610.02136",
)
def strangeness(
    classifier: Classifier,
    examples: Sequence[Example],
    train: Sequence[Example],
    language_model: LanguageModel | None,
    find: Find,
    how: How,
    seed: int,
    *,
    detector: Annotated[
        Literal["character_ngrams", "embedding_distance", "mahalanobis", "energy", "max_probability", "perplexity"],
        "how strangeness is measured (see `unhans methods detectors`)",
    ] = "character_ngrams",
) -> Outcome:
    """The share of the examples that are stranger than 95 % of the training texts are to each other.

    Half of the training texts stand for what was taught, the other half for what is usual; near copies, which mostly
    begin alike, are kept in one half. A model was taught both
    halves, and may know them by heart: what it makes of a text tells new from known as well as strange from usual. So
    texts are compared with texts, without the model; a detector that asks a model never makes more than a hint.
    """
    name = known[detector].name
    if name not in usable(classifier, language_model):
        raise BadData(f"The detector {name} cannot be used with this model.")
    seen = {example.text_hash for example in train}
    fresh = drawn([e for e in examples if e.text_hash not in seen], _MOST, seed)
    some = drawn(list({e.text_hash: e for e in train}.values()), 2 * _MOST, seed)
    taught, usual = _halves(some)
    least = max(FEWEST, fewest_usual(_LEVEL))
    if len(fresh) < FEWEST or len(usual) < least:
        raise BadData(
            f"It takes {FEWEST} examples that are not trained on, and {2 * least} different ones that are; there are "
            f"{len(fresh)} and {len(some)}. With fewer, no share of strange texts could be told from chance."
        )
    scores = detect(
        classifier,
        taught,
        [*usual, *fresh],
        method=name,
        language_model=language_model,
        seed=seed,
        progress=how.tell,
        cancelled=how.cancelled,
    )
    own = scores[len(usual) :]
    share, low, high = strange_share(scores[: len(usual)], own, _LEVEL)
    said = f"{percent(share)} of {len(fresh):,} texts are stranger than 95 % of the training texts ({name})."
    severity = STRANGE(low - (1 - _LEVEL))
    if severity is None:
        return Outcome(said)
    asks_a_model = not {"classifier", "language_model"}.isdisjoint(known[name].asks)
    if asks_a_model:
        severity = mildest(severity, "low")
    assert severity is not None
    what = f"share of the examples that are stranger than 95 % of the training texts, by {name}"
    finding = find(
        severity,
        f"{percent(share)} of the texts are unlike those that the model was trained on",
        says=f"{said} Of texts like those it was trained on, 5 % would be. Explanations of strange texts look as usual "
        "as others, and say little.",
        evidence=[Evidence(what, share, 1 - _LEVEL, low, high, len(fresh))],
        examples=[fresh[n].id for n in np.argsort(-own, kind="stable")[:50]],
        next="Look at the strangest: are these texts that the model is meant for? If so, train on such texts.",
        screen="examples",
        limits="Strange is not wrong: the model may still be right about them. Training texts that are near copies of "
        "each other and do not begin alike make new texts look stranger than they are."
        + (" A model may know its training texts by heart, and then any new text is strange to it." * asks_a_model),
    )
    return Outcome(said, (finding,))


def _halves(some: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Two halves, each of some stretches of the texts in the order of the alphabet.

    Several hypotheses for a premise, contrast sets and paraphrases are near copies of each other, and mostly begin
    alike. Were one taught and the other usual, what is usual would be all but known, and every new text strange.
    """
    n, alike = len(some), sorted(some, key=lambda example: example.parts)
    sizes = zip(_shares(n - n // 2), _shares(n // 2), strict=True)
    rest, taught, usual = iter(alike), list[Example](), list[Example]()
    for one, other in sizes:
        taught += islice(rest, one)
        usual += islice(rest, other)
    return taught, usual


def _shares(n: int) -> list[int]:
    """As many in each block, or one more."""
    return [(k + 1) * n // _BLOCKS - k * n // _BLOCKS for k in range(_BLOCKS)]
