"""Remove and retrain: can a new model learn the task without the highest-scored words? (Hooker et al. 2019)

Retraining answers the objection that a model asked about torn texts is out of its depth. It measures what of the task
the removed words carried, and so the method and the data, not the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import readable_words
from unhans.crew import Crew
from unhans.errors import BadData, BadOption
from unhans.language_model import LanguageModel
from unhans.metrics import Explain, Found, metric
from unhans.metrics._erasing import BY_DELETION, BY_LANGUAGE_MODEL, Share, filled, top
from unhans.model import Classifier, TransformerClassifier
from unhans.scoring import Progress
from unhans.scratch import fresh_classifier
from unhans.sweeps import judge_each
from unhans.text import Variant, Words
from unhans.training import Schedule, accuracy
from unhans.types import Example

Models = Annotated[int, "models to train, each with a seed of its own"]
Epochs = Annotated[int, "passes over the training examples"]
Rate = Annotated[float, "learning rate; about 2e-5 if training starts from a large model"]
_FAMILY = "retraining after erasure"
_PAPER = "arXiv:1806.10758"
_UNDEFINED = "it takes labelled examples"


@metric(
    better="lower",
    of="accuracy of new models trained and tested without the highest-scored words",
    family=_FAMILY,
    favours=BY_DELETION,
    range=(0.0, 1.0),
    per="run",
    draws=1,
    undefined=_UNDEFINED,
    paper=_PAPER,
)
def roar(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    explain: Explain,
    train: Sequence[Example],
    start: TransformerClassifier | None,
    rng: np.random.Generator,
    crew: Crew,
    how: dict[str, Any],
    progress: Progress | None,
    *,
    share: Share = 0.1,
    models: Models = 3,
    epochs: Epochs = 3,
    learning_rate: Rate = 5e-4,
) -> NDArray[np.float64]:
    """Accuracy of new models after the highest-scored words were deleted from all texts, for training and testing."""

    def erased(some: Sequence[Words], orders: Sequence[list[int]]) -> list[Variant]:
        return [one.without(order) for one, order in zip(some, orders, strict=True)]

    test, known = _erase(examples, words, scores, erased, share), _labelled(train)
    learned = _erase(known, *_explained(classifier, explain, known), erased, share)
    schedule = Schedule(epochs=epochs, learning_rate=learning_rate)
    return _retrained(classifier, start, known, learned, test, schedule, _seeds(rng, models), crew, how, progress)


@metric(
    better="lower",
    of="accuracy of new models trained and tested with the highest-scored words replaced by likely ones",
    family=_FAMILY,
    favours=BY_LANGUAGE_MODEL,
    range=(0.0, 1.0),
    per="run",
    draws=1,
    undefined=_UNDEFINED,
    paper="10.18653/v1/2022.acl-short.35",
    aliases=("roar_bert",),
)
def roar_mlm(
    classifier: Classifier,
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    explain: Explain,
    train: Sequence[Example],
    start: TransformerClassifier | None,
    language_model: LanguageModel,
    rng: np.random.Generator,
    crew: Crew,
    how: dict[str, Any],
    progress: Progress | None,
    *,
    share: Share = 0.1,
    models: Models = 3,
    epochs: Epochs = 3,
    learning_rate: Rate = 5e-4,
) -> Found:
    """Accuracy of new models after a language model replaced the highest-scored words of all texts.

    Both texts of a pair are filled. A word that the language model cannot fill stays.
    """
    short = 0

    def erased(some: Sequence[Words], orders: Sequence[list[int]]) -> list[Variant]:
        nonlocal short
        lines = filled(language_model, some, orders, **how)
        short += sum(len(line) <= len(order) for line, order in zip(lines, orders, strict=True))
        return [line[-1] for line in lines]

    test, known = _erase(examples, words, scores, erased, share), _labelled(train)
    learned = _erase(known, *_explained(classifier, explain, known), erased, share)
    schedule = Schedule(epochs=epochs, learning_rate=learning_rate)
    values = _retrained(classifier, start, known, learned, test, schedule, _seeds(rng, models), crew, how, progress)
    return Found(
        values, f"In {short} texts the language model could not fill every word; those stayed." if short else ""
    )


def _labelled(train: Sequence[Example]) -> list[Example]:
    return [example for example in train if example.label is not None]


def _seeds(rng: np.random.Generator, models: int) -> list[int]:
    if models < 1:
        raise BadOption(f"models must be at least 1, not {models}.")
    return [int(seed) for seed in rng.integers(2**31, size=models)]


def _explained(
    classifier: Classifier, explain: Explain, train: Sequence[Example]
) -> tuple[list[Words], list[NDArray[np.float64]]]:
    """Words and scores of the training examples."""
    scores = explain(classifier, train)
    made = [readable_words(classifier, example, "word") for example in train]
    if any(len(one) != len(line) for one, line in zip(made, scores, strict=True)):
        raise BadOption("Retraining erases words. Explain words, not phrases or sentences, to use it.")
    return made, scores


def _erase(
    examples: Sequence[Example],
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float64]],
    erased: Callable[[Sequence[Words], Sequence[list[int]]], list[Variant]],
    share: float,
) -> list[Example]:
    orders = [top(one, line, share) for one, line in zip(words, scores, strict=True)]
    return [
        replace(example, text=texts[0], pair=texts[1] if len(texts) > 1 else None, highlights=None)
        for example, texts in zip(examples, (variant.texts for variant in erased(words, orders)), strict=True)
    ]


def _retrained(
    classifier: Classifier,
    start: TransformerClassifier | None,
    known: Sequence[Example],
    learned: Sequence[Example],
    test: Sequence[Example],
    schedule: Schedule,
    seeds: Sequence[int],
    crew: Crew,
    how: dict[str, Any],
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Accuracy on the erased test examples of one model per seed, trained on the erased training examples."""
    if all(example.label is None for example in test):
        raise BadData("Retraining is judged by accuracy, and none of the examples has a label.")
    # the vocabulary comes from the whole texts, so that it is the same for every method
    texts = [part for e in known for part in e.parts]
    runs = [
        (start or fresh_classifier(texts, classifier.labels, seed=seed), replace(schedule, seed=seed)) for seed in seeds
    ]
    judge, cancelled = partial(accuracy, examples=test), how.get("cancelled")
    return np.array(judge_each(runs, learned, judge, on=crew, progress=progress, cancelled=cancelled))
