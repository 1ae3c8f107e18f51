"""Counterfactual augmentation: flips that people accepted become training texts, with the label people gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from unhans.errors import BadData, BadOption
from unhans.feedback import SettledFlip
from unhans.fixes import Rated, TrainOn, fix
from unhans.model import TransformerClassifier
from unhans.types import Example

_RIGHT, _WRONG = 4, 2  # `agrees`: from here on people take the model's label, up to here they do not


@fix(reads=("flip_rating",), cost=1.0, paper="Zhang et al. 2022, §2; Kaushik et al. 2020")
def counterfactual_augmentation(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    rated: Sequence[Rated],
    train_on: TrainOn,
    *,
    least: Annotated[float, "mean rating, plausible and meaningful, from which on a flip is trained on; 1 to 5"] = 3.0,
    times: Annotated[int, "how often each accepted flip is among the training texts"] = 1,
) -> TransformerClassifier:
    """Train on with flips that people found plausible and meaningful, under the label that people gave them.

    The label is the one most people named. Where nobody named one, it is the model's if people agree with it (4 or more
    on average), and with two labels the other one if they do not (2 or less). All else teaches nothing.
    """
    if not 1 <= least <= 5:
        raise BadOption(f"least is a rating, from 1 to 5, and not {least:g}.")
    if times < 1:
        raise BadOption(f"times must be 1 or more, not {times}; without flips there is nothing to fix.")
    lessons = accepted(rated, classifier.labels, least)
    if not lessons:
        raise BadData(
            f"None of the {len(rated):,} rated flips of training texts can be trained on: people must find one "
            f"plausible and meaningful ({least:g} or more on average), and say what its label is. Nothing was trained."
        )
    texts = [replace(one.example, id=f"{one.example.id} {n}") for n in range(times) for one in lessons]
    return train_on(classifier, [*train, *texts], heeded=[flip for one in lessons for flip in one.behind])


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text to train on, with its label, and the rated flips that are this text."""

    example: Example
    behind: tuple[Rated, ...]


def accepted(rated: Sequence[Rated], labels: Sequence[str], least: float) -> list[Lesson]:
    """The flips to train on; of texts that came up more than once, those with one label, once."""
    found: dict[str, list[tuple[Rated, str]]] = defaultdict(list)
    for one in rated:
        label = label_of(one, labels)
        if label is not None and _plausible(one.said, least):
            found[one.example.text_hash].append((one, label))
    return [
        Lesson(replace(same[0][0].example, label=same[0][1]), tuple(one for one, _ in same))
        for same in found.values()
        if len({label for _, label in same}) == 1
    ]


def label_of(one: Rated, labels: Sequence[str]) -> str | None:
    """What people call the rewritten text; None if they do not say, or not with one voice."""
    said, model = one.said, one.flip.after.label
    if said.label is not None and said.label not in labels:
        raise BadData(f"A flip was given the label {said.label!r}, which the model lacks. Nothing was trained.")
    if said.label is not None or said.disputed or said.agrees is None:
        return said.label
    if said.agrees >= _RIGHT:
        return model if model in labels else None
    others = [label for label in labels if label != model]
    return others[0] if said.agrees <= _WRONG and len(others) == 1 else None


def _plausible(said: SettledFlip, least: float) -> bool:
    return all(mean is not None and mean >= least for mean in (said.plausible, said.meaningful))
