"""Flips for tests of what is kept of them: rewritten by hand, so that no model is needed."""

from __future__ import annotations

from typing import Any

from small_project import say
from unhans.records import Records
from unhans.records.flipping import Find, StoredFlip
from unhans.text import Words
from unhans.types import Counterfactual, Edit, Example, Feedback, FlipRating, Prediction, Recipe

LABELS = ("negative", "positive")


def flip(
    example: Example, *new: str, revision: str, method: str = "hotflip", flips: bool = True, **more: Any
) -> Counterfactual:
    """The first words of an example become these; empty strings delete."""
    words = Words(example)
    edits = tuple(Edit(n, words.strings[n], word) for n, word in enumerate(new))
    text, *pair = words.edited(edits).texts
    before = Prediction(example.id, LABELS, (0.9, 0.1), revision)
    after = Prediction(example.id, LABELS, (0.3, 0.7) if flips else (0.8, 0.2), revision)
    recipe = Recipe("counterfactuals", method, (("beam", 10),))
    return Counterfactual(example.id, edits, text, pair[0] if pair else None, before, after, recipe, **more)


def found(
    records: Records, place: int, *made: Counterfactual, by: str = "ann", asked: str | None = None
) -> list[StoredFlip]:
    """Store flips of the example at a place, as a search would."""
    search = asked or f"search {place} {[one.id for one in made]}"
    records.flip_table.keep(by, [Find(search, place, records.table.at(place), made)])
    return list(records.flip_table.some(one.id for one in made).values())


def rewritten(records: Records, place: int, *new: str, **more: Any) -> Counterfactual:
    """One flip of the example at a place, stored."""
    made = flip(records.table.at(place), *(new or ("nobody",)), **({"revision": records.current.id} | more))
    found(records, place, made)
    return made


def rate(
    records: Records,
    made: Counterfactual,
    author: str = "ann",
    ratings: tuple[int | None, int | None, int | None] = (5, 5, 5),
    label: str | None = None,
) -> Feedback:
    """A rating, stored."""
    says = FlipRating(made.id, *ratings, label=label)
    stored = records.flip_table.one(made.id)
    return say(records, says, author, revision=made.before.revision, text_hash=stored.text_hash)
