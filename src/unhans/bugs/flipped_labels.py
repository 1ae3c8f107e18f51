"""Labels that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, labels_of, sample
from unhans.errors import BadData
from unhans.types import Example


@bug(kind="data", paper="Adebayo et al. 2020, §3.2")
def flipped_labels(
    examples: Sequence[Example],
    rng: Generator,
    *,
    share: Annotated[float, "part of the labelled texts that receive a wrong label"] = 0.1,
) -> tuple[list[Example], Truth]:
    """Give a random share of the texts a label that is not theirs, as careless annotators do.

    With more than two labels, every other label is equally likely. Texts without a label stay without.
    """
    check_share("share", share)
    labels = labels_of(examples)
    if len(labels) < 2:
        raise BadData(f"Labels can be flipped among two or more; there is: {', '.join(labels) or 'no label at all'}.")
    flipped = sample([e.id for e in examples if e.label is not None], share, rng)
    planted = [replace(e, label=_another(e.label, labels, rng)) if e.id in flipped else e for e in examples]
    was = tuple((e.id, e.label) for e in examples if e.id in flipped)
    note = f"{len(was)} labels are wrong."
    return planted, Truth(examples=tuple(id_ for id_, _ in was), note=note, was=was)


def _another(label: str | None, labels: Sequence[str], rng: Generator) -> str:
    others = [other for other in labels if other != label]
    return others[int(rng.integers(len(others)))]
