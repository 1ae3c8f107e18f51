"""Labels that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, labels_of, sample
from unhans.bugs._cues import check_label
from unhans.errors import BadData, BadOption
from unhans.types import Example


@bug(kind="data", proof="labels", paper="Adebayo et al. 2020, §3.2")
def flipped_labels(
    examples: Sequence[Example],
    rng: Generator,
    *,
    share: Annotated[float, "part of the labelled texts in question that receive a wrong label"] = 0.1,
    way: Annotated[
        Literal["uniform", "one_label", "one_annotator"],
        "whose texts are in question: all, those of one label, or those that fell to one careless annotator",
    ] = "uniform",
    label: Annotated[str, "with one_label, which; empty: the first by the alphabet"] = "",
    annotators: Annotated[int, "with one_annotator, among how many the texts were shared out"] = 5,
) -> tuple[list[Example], Truth]:
    """Give a random share of the texts a label that is not theirs, as careless annotators do.

    With more than two labels, every other label is equally likely; the one annotator takes each label for the next by
    the alphabet, always. Texts without a label stay without.
    """
    check_share("share", share)
    labels = labels_of(examples)
    if len(labels) < 2:
        raise BadData(f"Labels can be flipped among two or more; there is: {', '.join(labels) or 'no label at all'}.")
    asked = [e.id for e in examples if e.label is not None]
    if way == "one_label":
        check_label(examples, label or labels[0])
        asked = [e.id for e in examples if e.label == (label or labels[0])]
    elif way == "one_annotator":
        if annotators < 1:
            raise BadOption(f"annotators must be at least 1, not {annotators}.")
        own = sample(asked, 1 / annotators, rng)
        asked = [id_ for id_ in asked if id_ in own]
    flipped = sample(asked, share, rng)
    wrong = _next if way == "one_annotator" else _another
    planted = [replace(e, label=wrong(e.label, labels, rng)) if e.id in flipped else e for e in examples]
    was = tuple((e.id, e.label) for e in examples if e.id in flipped)
    note = f"{len(was)} labels are wrong."
    return planted, Truth(examples=tuple(id_ for id_, _ in was), note=note, was=was)


def _another(label: str | None, labels: Sequence[str], rng: Generator) -> str:
    others = [other for other in labels if other != label]
    return others[int(rng.integers(len(others)))]


def _next(label: str | None, labels: Sequence[str], _: Generator) -> str:
    return labels[(labels.index(str(label)) + 1) % len(labels)]
