"""Detectors: which texts are unlike those that the model was taught on?

`detect` is the front door: one number a text, higher for a stranger text. A detector is one file with one function; the
law tests run on every one of them. What a number means is the detector's own business: compare it with the numbers of
texts that are known to be usual, held out from training, as `strange_share` does.

Equal texts have equal numbers, whatever else is asked about and in whatever order.

Facts of a detector: `needs={"gradients"}` says that it looks inside the model; a black box does without it.
`labels=True` says that it reads the labels of the training examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.detectors._shares import fewest_usual, strange_share
from unhans.errors import BadData, BadOption
from unhans.language_model import LanguageModel
from unhans.model import Classifier, as_examples
from unhans.registry import Entry, Registry
from unhans.scoring import How, Progress
from unhans.text import Text
from unhans.types import Example

__all__ = ["detect", "detector", "fewest_usual", "strange_share", "usable"]

Floats = NDArray[np.float64]

detector = Registry(
    "detectors",
    offers=(
        "classifier",
        "train",  # examples that the model was taught on, each text once under each label
        "texts",  # those asked about, each once
        "language_model",
        "rng",
        "how",  # progress and cancelled
    ),
    package="unhans.detectors",
)


def detect(
    classifier: Classifier,
    train: Iterable[Text],
    texts: Text | Iterable[Text],
    *,
    method: str = "embedding_distance",
    language_model: LanguageModel | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    **options: Any,
) -> Floats:
    """How strange each text is to this model, in the order of the texts: higher is stranger.

    `train` is what the model was taught on, or enough of it; detectors that only ask the model what it makes of a text
    do not look at it. To see how many texts are strange, score usual ones as well, which must not be from `train`, and
    give both to `strange_share`.
    """
    entry = detector[method]
    _check_usable(classifier, entry, language_model)
    entry.settings(options)  # a wrong option is noticed before anything is read
    asked = list(as_examples(texts))
    if not asked:
        return np.zeros(0)
    different, how = _different(asked, labelled=False), How(progress, cancelled).part(0, 1)
    how.tell(0, 1)
    offered = {
        "classifier": classifier,
        "train": _taught(train) if "train" in entry.asks else [],
        "texts": list(different.values()),
        "language_model": language_model,
        "rng": np.random.default_rng([seed, 29]),
        "how": how,
    }
    found = dict(zip(different, entry(offered, **options), strict=True))
    how.tell(1, 1)
    return np.array([found[_key(example, labelled=False)] for example in asked], np.float64)


def usable(classifier: Classifier, language_model: LanguageModel | None = None) -> list[str]:
    """The detectors that work with this classifier, and with this language model if there is one."""
    return [
        entry.name
        for entry in detector
        if entry.needs <= classifier.capabilities and ("language_model" not in entry.asks or language_model)
    ]


def _check_usable(classifier: Classifier, entry: Entry, language_model: LanguageModel | None) -> None:
    work = ", ".join(usable(classifier, language_model))
    classifier.require(entry.needs, entry.name, f"Detectors that work with it: {work}.")
    if "language_model" in entry.asks and language_model is None:
        raise BadOption(
            f"{entry.name} needs language_model=, a masked language model: LanguageModel.open(folder or id), or "
            "LanguageModel.fit(texts) to train one on your own texts."
        )


def _taught(train: Iterable[Text]) -> list[Example]:
    found = list(_different(as_examples(train), labelled=True).values())
    if not found:
        raise BadData("There are no training examples, so nothing is known to be usual.")
    return found


def _different(examples: Iterable[Example], *, labelled: bool) -> dict[tuple[str, str], Example]:
    """Each text once (under each label), in an order that does not depend on theirs, so that neither do the numbers."""
    return dict(sorted({_key(example, labelled=labelled): example for example in examples}.items()))


def _key(example: Example, *, labelled: bool) -> tuple[str, str]:
    return example.text_hash, str(example.label or "") if labelled else ""


def some_of(examples: Sequence[Example], at_most: int, rng: np.random.Generator) -> list[Example]:
    """All of them, or so many drawn at random."""
    if at_most < 1:
        raise BadOption(f"examples must be at least 1, not {at_most}.")
    if len(examples) <= at_most:
        return list(examples)
    return [examples[n] for n in np.sort(rng.choice(len(examples), at_most, replace=False))]
