"""Drafts and rules, for tests of single generators without a search around them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import tiny
from unhans.counterfactuals import Constraints, Draft, Goal, search_settings
from unhans.counterfactuals._drafts import draft
from unhans.model import Classifier
from unhans.text import Text, Words
from unhans.types import Edit, Example


def draft_of(
    text: Text,
    edits: Sequence[Edit] = (),
    *,
    original: int = 0,
    target: int | None = None,
    open_to: Collection[int] | None = None,
    gone: Collection[int] = (),
) -> Draft:
    """A text after these edits, all of whose other words may be changed, or only some."""
    words = Words(text, gone=gone)
    changed = {edit.position for edit in edits}
    free = [n for n in words.open if n not in changed and (open_to is None or n in open_to)]
    made = draft(words, edits, free, Goal(original, target), text.id if isinstance(text, Example) else "x")
    assert made is not None
    return made


def rules_for(classifier: Classifier | None = None, **settings: Any) -> Constraints:
    return Constraints(search_settings(settings), classifier or tiny.bag_of_words({}))
