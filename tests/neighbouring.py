"""Traces, copies and doubts for tests of what is kept of them: made by hand, so that no model is needed."""

from __future__ import annotations

from unhans.records import Records
from unhans.types import Copy, Doubt, Influence, Neighbour, Recipe

BY_HAND = Recipe("influences", "projected_gradients", (("of", "label"),))


def traced(
    records: Records,
    place: int,
    helpful: tuple[int, ...] = (),
    harmful: tuple[int, ...] = (),
    *,
    by: str = "amy",
    leads: bool = True,
    asked: str | None = None,
    revision: str | None = None,
) -> Influence:
    """The examples at these places are what is behind the one at this place."""
    example = records.table.at(place)
    found = Influence(
        example.id,
        str(example.label),
        tuple(Neighbour(records.table.at(p).id, 1 / n) for n, p in enumerate(helpful, 1)),
        tuple(Neighbour(records.table.at(p).id, -1 / n) for n, p in enumerate(harmful, 1)),
        BY_HAND,
        revision or records.current.id,
    )
    records.trace_table.keep(by, asked or f"by hand {helpful} {harmful}", [(place, example, found)], leads=leads)
    return found


def copied(records: Records, place: int, text: str, *, by: str = "amy", label_kept: float | None = None) -> Copy:
    """A copy of the training example at a place."""
    source = records.table.at(place)
    made = Copy(
        source.id, text, source.pair, str(source.label), Recipe("augmentations", "synonyms", ()), label_kept=label_kept
    )
    records.copy_table.keep(by, [(place, source, made)])
    return made


def doubted(records: Records, *places: int, revision: str | None = None) -> list[Doubt]:
    """The labels at these places are in doubt, the first most of all."""
    chosen, found = revision or records.current.id, []
    for n, place in enumerate(places):
        example = records.table.at(place)
        other = next(label for label in records.labels if label != example.label)
        score = 1 - n / len(places)
        signs = (("low_confidence", score),)
        recipe = Recipe("doubts", "combined", (("signs", "low_confidence"),))
        found.append((place, example, Doubt(example.id, str(example.label), other, score, signs, recipe, chosen)))
    records.doubt_table.keep(chosen, found)
    return [one for _, _, one in found]
