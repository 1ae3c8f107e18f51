"""Texts unlike those that the model was taught on."""

from __future__ import annotations

from collections.abc import Sequence
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


@check(
    title="Strange texts",
    needs={"predict"},
    cost=0.8,
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

    Half of the training texts stand for what was taught, the other half for what is usual. A model was taught both
    halves, and may know them by heart: what it makes of a text tells new from known as well as strange from usual. So
    texts are compared with texts, without the model; a detector that asks a model never makes more than a hint.
    """
    name = known[detector].name
    if name not in usable(classifier, language_model):
        raise BadData(f"The detector {name} cannot be used with this model.")
    seen = {example.text_hash for example in train}
    fresh = drawn([e for e in examples if e.text_hash not in seen], _MOST, seed)
    some = drawn(list({e.text_hash: e for e in train}.values()), 2 * _MOST, seed)
    taught, usual = some[::2], some[1::2]
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
        limits="Strange is not wrong: the model may still be right about them."
        + (" A model may know its training texts by heart, and then any new text is strange to it." * asks_a_model),
    )
    return Outcome(said, (finding,))
