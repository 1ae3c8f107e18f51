"""Test texts from a world that training never showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, sample
from unhans.errors import BadOption
from unhans.types import Example


@bug(kind="test-time", proof="answers", paper="Adebayo et al. 2020, §5")
def domain_shift(
    examples: Sequence[Example],
    rng: Generator,
    *,
    keep: Annotated[str, "the group that training is confined to"] = "films",
    test_share: Annotated[
        float, "part of that group's training texts moved to the split 'test', to compare with"
    ] = 0.0,
) -> tuple[list[Example], Truth]:
    """Confine training to one group and move all the others to the split 'shifted'.

    The kept group stays in its splits, and without a split it goes to 'train'. Texts and labels are not touched:
    what is wrong is what the model gets to see.
    """
    check_share("test_share", test_share)
    groups = sorted({e.group for e in examples if e.group is not None})
    if keep not in groups:
        raise BadOption(f"No example is in the group {keep!r}. There is: {', '.join(groups) or 'no group at all'}.")
    if all(e.group == keep for e in examples):
        raise BadOption(f"All examples are in the group {keep!r}, so nothing is left to shift.")
    test = sample([e.id for e in examples if e.group == keep and e.split in (None, "train")], test_share, rng)
    planted = [_moved(e, keep, test) for e in examples]
    was = tuple((e.id, e.split) for e in examples if e.group != keep)
    note = f"Training sees only {keep!r}; {len(was)} texts from elsewhere wait in the split 'shifted'."
    return planted, Truth(examples=tuple(id_ for id_, _ in was), note=note, was=was)


def _moved(example: Example, keep: str, test: frozenset[str]) -> Example:
    if example.group != keep:
        return replace(example, split="shifted")
    return replace(example, split="test" if example.id in test else example.split or "train")
