"""A small project with feedback, for tests of fixing: a tiny real model that reads the word "great" as positive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tiny
from unhans.project import Project
from unhans.records import Records
from unhans.records.judging import new_id
from unhans.types import Answer, Example, Feedback, WordVote

QUICK = {"epochs": 1, "learning_rate": 1e-3, "batch_size": 8, "patience": 0}
WORDS = ("soup", "film", "phone", "book", "battery")


def examples(n: int = 36, splits: Sequence[str | None] = ("train", "train", "test")) -> list[Example]:
    """Texts of which every second one is positive and says great."""
    found = []
    for n_ in range(n):
        label, word = ("negative", "positive")[n_ % 2], WORDS[n_ % len(WORDS)]
        text = f"the {word} was {('cold', 'great')[n_ % 2]} and number {n_} was {'not ' * (n_ % 3)}worth it"
        found.append(Example(f"e{n_}", text, label=label, split=splits[n_ // 2 % len(splits)]))
    return found


def make(folder: Path, data: Sequence[Example] | None = None, **more: Any) -> Project:
    """A project of a tiny model."""
    return Project.create(folder, model=tiny.transformer(), data=list(data or examples()), **more)


def say(
    records: Records, says: Answer, author: str = "ann", *, revision: str | None = None, text_hash: str | None = None
) -> Feedback:
    """An answer, stored."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = Feedback(new_id(), says, author, at, revision or records.current.id, text_hash)
    records.log.add(entry, key=entry.id)
    return entry


def lower(records: Records, word: str = "great", author: str = "ann", **more: Any) -> Feedback:
    """A vote everywhere against a word."""
    return say(records, WordVote(word, "positive", "lower"), author, **more)
