"""Test texts that training has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, sample
from unhans.errors import BadOption
from unhans.types import Example


@bug(kind="data", proof="copies", paper="arXiv:2107.06499")
def duplicated_rows(
    examples: Sequence[Example],
    rng: Generator,
    *,
    share: Annotated[float, "part of the texts of the one split that are copied"] = 0.2,
    source: Annotated[str, "the split whose texts are copied"] = "test",
    into: Annotated[str, "the split that the copies go to"] = "train",
) -> tuple[list[Example], Truth]:
    """Copy a share of the test texts into training, with their labels, so that the test flatters the model.

    Copies have ids of their own, come after all other examples, and are those that the truth names; it tells of each
    the id that it was copied from.
    """
    check_share("share", share)
    if source == into:
        raise BadOption(f"Copies must go to another split than {source!r}.")
    own = [e for e in examples if e.split == source]
    if not own:
        splits = sorted({e.split for e in examples if e.split is not None})
        raise BadOption(f"No example is in the split {source!r}. There is: {', '.join(splits) or 'no split at all'}.")
    chosen = sample([e.id for e in own], share, rng)
    taken = {e.id for e in examples}
    copies = [replace(e, id=_new_id(e.id, taken), split=into) for e in own if e.id in chosen]
    was = tuple((copy.id, e.id) for copy, e in zip(copies, (e for e in own if e.id in chosen), strict=True))
    note = f"{len(copies)} texts of the split {source!r} are in {into!r} as well."
    return [*examples, *copies], Truth(examples=tuple(copy.id for copy in copies), note=note, was=was)


def _new_id(id_: str, taken: set[str]) -> str:
    new = f"{id_} copy"
    while new in taken:
        new += " copy"
    return new
