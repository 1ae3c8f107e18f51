"""Which examples train a fix, which choose its epoch, and which verify it: never the same ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from unhans.store import Store
from unhans.store.schema import examples
from unhans.text import visible_form, word_spans
from unhans.types import Example

HELD_OUT = "held out"
_TRAIN, _TEST = "train", "test"
_VALIDATION = ("validation", "dev", "valid", "val")
_NO_SPLIT = "no split"
_SHARE = 5  # one in so many texts is held out where no split is for verifying
_COUNTING_SECONDS = 1.0
_AT_ONCE = 1000


@dataclass(frozen=True)
class Parts:
    """How the labelled examples are divided. It depends on the data alone, so that it is the same for every fix."""

    train: tuple[str | None, ...]  # splits; None: examples without one
    validation: tuple[str | None, ...]
    sets: tuple[tuple[str, str | None], ...]  # name and split of each set that verifies
    up_to: str | None = None  # where no split is for verifying: training texts whose hash is up to this one do

    def trains(self, example: Example) -> bool:
        """Whether a fix may learn from an example."""
        own = example.label is not None and example.split in self.train
        return own and (self.up_to is None or example.text_hash > self.up_to)

    def validates(self, example: Example) -> bool:
        """Whether an example helps to choose the epoch."""
        return example.label is not None and example.split in self.validation

    def set_of(self, example: Example) -> str | None:
        """The set that an example verifies in, if it does."""
        if example.label is None:
            return None
        if self.up_to is not None:
            return HELD_OUT if example.split in self.train and example.text_hash <= self.up_to else None
        return next((name for name, split in self.sets if split == example.split), None)


def divide(store: Store) -> Parts:
    """How the examples of a project are divided.

    The split `train` trains, or all that is neither for testing nor for validation. Every other split verifies, as a
    set of its own. Where there is none, a fifth of the training texts is held out, by their hash: texts that occur
    twice stay together.
    """
    labelled = sa.select(examples.c.split, sa.func.count().label("n")).where(examples.c.label.is_not(None))
    with store.read() as connection:
        counts: dict[str | None, int] = {
            row.split: row.n for row in connection.execute(labelled.group_by(examples.c.split))
        }
        splits = sorted(counts, key=str)
        train = tuple(s for s in splits if (s == _TRAIN if _TRAIN in counts else s not in (*_VALIDATION, _TEST)))
        validation = tuple(s for s in splits if s in _VALIDATION)
        verify = tuple(s for s in splits if s not in train and s not in validation)
        if not verify:  # then the fix holds out some of its training texts by itself to choose its epoch
            validation, verify = (), validation
        if verify or not train:
            return Parts(train, validation, tuple((s or _NO_SPLIT, s) for s in verify))
        query = sa.select(examples.c.text_hash).where(examples.c.label.is_not(None), _among(train))
        place = max(1, sum(counts[split] for split in train) // _SHARE) - 1
        up_to = connection.execute(query.order_by(examples.c.text_hash).offset(place).limit(1)).scalar_one()
    return Parts(train, (), ((HELD_OUT, None),), up_to)


def count_parts(store: Store, parts: Parts) -> tuple[int, int]:
    """How many examples train, and how many verify."""
    held = sa.false() if parts.up_to is None else examples.c.text_hash <= parts.up_to
    labelled = sa.select(sa.func.count()).where(examples.c.label.is_not(None))
    verify = sa.and_(_among(parts.train), held)
    if parts.up_to is None:
        verify = _among([split for _, split in parts.sets])
    with store.read() as connection:
        train = connection.execute(labelled.where(_among(parts.train), ~held)).scalar_one()
        return train, connection.execute(labelled.where(verify)).scalar_one()


def texts_with(
    store: Store, parts: Parts, words: Collection[str], clock: Callable[[], float] = time.monotonic
) -> dict[str, int]:
    """How many training examples have each of these words (in their visible form).

    Where there are more texts than can be looked at in a second, those that were looked at stand for all.
    """
    found: Counter[str] = Counter()
    wanted = set(words)
    if not wanted:
        return {}
    total, _ = count_parts(store, parts)
    query = _of_training(sa.select(examples.c.text, examples.c.pair), parts)
    seen, began = 0, clock()
    with store.read() as connection:
        # by hash, so that what is looked at first is like the rest
        streaming = connection.execution_options(yield_per=_AT_ONCE)
        with streaming.execute(query.order_by(examples.c.text_hash)) as rows:
            for row in rows:
                found.update(_words_of(row.text, row.pair, wanted))
                seen += 1
                if seen % _AT_ONCE == 0 and clock() - began > _COUNTING_SECONDS:
                    break
    return {word: round(found[word] * total / max(1, seen)) for word in wanted}


def training_groups(store: Store, parts: Parts) -> list[str]:
    """The groups of the training examples."""
    query = _of_training(sa.select(examples.c.group).where(examples.c.group.is_not(None)), parts).distinct()
    with store.read() as connection:
        return sorted(connection.execute(query).scalars())


def _of_training(query: sa.Select[Any], parts: Parts) -> sa.Select[Any]:
    """Of the training examples alone."""
    query = query.where(examples.c.label.is_not(None), _among(parts.train))
    return query if parts.up_to is None else query.where(examples.c.text_hash > parts.up_to)


def _words_of(text: str, pair: str | None, wanted: Collection[str]) -> set[str]:
    """Those of the words that a text has; a quick look first, for most texts have none."""
    found: set[str] = set()
    for part in (text, pair or ""):
        folded = part.casefold() if part.isascii() else visible_form(part)
        if likely := {word for word in wanted if word in folded}:
            found |= likely & {visible_form(part[span.start : span.end]) for span in word_spans(part)}
    return found


def _among(splits: Collection[str | None]) -> sa.ColumnElement[bool]:
    named = examples.c.split.in_([split for split in splits if split is not None])
    return sa.or_(named, examples.c.split.is_(None)) if None in splits else named
