"""How generators that go word by word gather their proposals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice, zip_longest

from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.types import Edit


def in_turn(
    on: Draft, rules: Constraints, candidates: Mapping[int, Iterable[str]], most: int | None = None
) -> list[tuple[Edit, ...]]:
    """Edits that keep to the rules: the best of each word first, then the second of each, and so on.

    `candidates` are the words that may stand at each open position, best first; `most` of them are taken.
    """
    lists = [islice(_allowed(on, rules, position, some), most) for position, some in candidates.items()]
    return [(edit,) for rank in zip_longest(*lists) for edit in rank if edit is not None]


def _allowed(on: Draft, rules: Constraints, position: int, words: Iterable[str]) -> Iterable[Edit]:
    edits = (on.edit(position, word) for word in dict.fromkeys(words))
    return (edit for edit in edits if edit.new != edit.old and rules.allows(on, edit))
