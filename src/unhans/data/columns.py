"""Which column is what: guessed from the names data sets use, unless the caller says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unhans.data.highlights import looks_like_highlights
from unhans.errors import BadData

Choice = str | Literal[False] | None
"""A column's name; None: guess it; False: there is none."""

_COUPLES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("text_a", "text_b"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "passage"),
)
_TEXTS = (
    *("text", "sentence", "premise", "sentence1", "review", "content", "comment", "tweet", "post", "body"),
    *("document", "message", "utterance", "passage", "abstract", "headline", "title", "question", "query"),
    *("tokens", "words"),
)
_TEXT_ENDINGS = ("_text", "_body", "_content")  # review_body, comment_text
_PAIRS = ("pair", "text_pair", "hypothesis")
_LABELS = (
    *("label", "gold_label", "labels", "class", "target", "sentiment", "polarity", "category", "stance"),
    *("intent", "emotion", "stars", "rating"),
)
_IDS = (
    *("id", "idx", "guid", "uid", "uuid", "pairid", "example_id", "document_id", "text_id", "sentence_id"),
    *("tweet_id", "post_id", "comment_id", "review_id"),
)
_SPLITS = ("split", "partition")
_GROUPS = ("group", "domain", "category", "subcase", "functionality", "target_ident", "genre", "kind")
_HIGHLIGHTS = (
    *("highlights", "highlight", "spans", "rationale_majority", "rationale", "rationales", "evidence"),
    *("evidences", "evidence_spans", "highlight_mask", "rationale_mask"),
)
_HIGHLIGHT_ENDINGS = ("highlights", "highlight", "spans", "rationale", "rationales", "mask")
_NUMBERED_LABEL = re.compile(r"label_?\d+")
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Roles:
    """The column that plays each part; None where there is none."""

    text: str
    pair: str | None = None
    label: str | None = None
    id: str | None = None
    group: str | None = None
    highlights: str | None = None
    pair_highlights: str | None = None
    split: str | None = None
    notes: str | None = None
    other_labels: tuple[str, ...] = ()  # numbered labels that were passed over

    def sentence(self) -> str:
        """What was taken from where, for the summary."""
        named = {
            "text": self.text,
            "second text": self.pair,
            "label": self.label,
            "highlights": self.highlights,
            "highlights of the second text": self.pair_highlights,
            "group": self.group,
            "id": self.id,
            "split": self.split,
        }
        told = ", ".join(f"{role} from {column!r}" for role, column in named.items() if column is not None)
        if self.other_labels:
            told += f" (there is also {', '.join(map(repr, self.other_labels))}: choose with label=)"
        return told[0].upper() + told[1:] + "."

    def columns(self) -> list[str]:
        """All columns that are read, each once."""
        named = (self.text, self.pair, self.label, self.id, self.group, self.highlights, self.pair_highlights)
        return list(dict.fromkeys(c for c in (*named, self.split, self.notes) if c is not None))


def has_text_column(columns: Iterable[str]) -> bool:
    """Whether a header names a text under one of the usual names."""
    return _guess_texts(_by_name(columns))[0] is not None


def missing(columns: Sequence[str], wanted: Mapping[str, Choice]) -> list[str]:
    """The columns the caller named and the table does not have."""
    return [name for name in wanted.values() if isinstance(name, str) and name not in columns]


def no_such_column(name: str, columns: Sequence[str], where: str) -> BadData:
    """The refusal of a column that does not exist, with what does."""
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return BadData(f"{where} has no column {name!r}.{hint} Its columns are {listed(columns)}.")


def no_text_column(columns: Sequence[str], where: str) -> BadData:
    """The refusal of a table in which no column is known to be a text."""
    if any(_is_number(name) for name in columns):
        return BadData(
            f"{where} has no header: its first line is {listed(columns)}. "
            "Add a first line that names the columns, such as text and label."
        )
    return BadData(
        f"{where} has no column that is called like a text. Its columns are {listed(columns)}. "
        "Say which one is the text with text=."
    )


def listed(columns: Sequence[str]) -> str:
    """Column names in a sentence, the first twenty of them."""
    shown = ", ".join(name if len(name) <= 40 else name[:40] + "…" for name in columns[:20])
    more = f" and {len(columns) - 20:,} more" if len(columns) > 20 else ""
    return (shown or "(none)") + more


def assign_roles(columns: Sequence[str], wanted: Mapping[str, Choice], rows: Sequence[Mapping[str, Any]]) -> Roles:
    """A role for every column that has one: as the caller wants, else by name.

    `rows` are the first of the table: a column called `highlights` is one only if its values look it, for summaries
    are called so too. Columns the caller names must exist (see `missing`); the text must be there.
    """
    free = _by_name(column for column in columns if column not in wanted.values())
    text, pair = _texts(columns, wanted, free)

    def choose(role: str, names: Iterable[str]) -> str | None:
        choice = wanted.get(role)
        if choice is None:
            return _take(free, names)
        return choice if choice is not False and choice in columns else None

    def marks(*names: str) -> list[str]:
        return [name for name in names if name in free and _may_be_highlights(free[name], rows)]

    numbered = [name for name in free if _NUMBERED_LABEL.fullmatch(name)]
    only_numbered = wanted.get("label") is None and not any(name in free for name in _LABELS)
    return Roles(
        text=text,
        pair=pair,
        label=choose("label", (*_LABELS, *numbered)),
        id=choose("id", _IDS),
        split=choose("split", _SPLITS),
        highlights=choose("highlights", marks(*_endings(text), *_HIGHLIGHTS)),
        pair_highlights=choose("pair_highlights", marks(*_endings(pair), *_endings("pair"))) if pair else None,
        group=choose("group", _GROUPS),
        notes=_take(free, ["notes"]),
        other_labels=tuple(free[name] for name in numbered[1:]) if only_numbered else (),
    )


def _texts(columns: Sequence[str], wanted: Mapping[str, Choice], free: dict[str, str]) -> tuple[str, str | None]:
    """The text and its pair, taken out of the free columns."""
    text, pair = wanted.get("text"), wanted.get("pair")
    if isinstance(text, str):
        partners = [second for first, second in _COUPLES if first == _fold(text)]
        guess: str | None = _take(free, (*_PAIRS[:2], *partners))
    else:
        text, guess = _guess_texts(free)
        if text is None:
            raise no_text_column(columns, "The table")
    if pair is None:
        pair = guess
    for used in (text, pair):
        if used:
            free.pop(_fold(used), None)
    return text, pair if pair and pair in columns else None


def _guess_texts(free: Mapping[str, str]) -> tuple[str | None, str | None]:
    generic = next((free[name] for name in _PAIRS if name in free), None)
    if "text" in free:
        return free["text"], generic
    for first, second in _COUPLES:
        if first in free and second in free:
            return free[first], free[second]
    names = [name for name in _TEXTS if name in free] + [name for name in free if name.endswith(_TEXT_ENDINGS)]
    return (free[names[0]], generic) if names else (None, None)


def _endings(column: str | None) -> tuple[str, ...]:
    """How highlights of one particular column are called: premise_highlight, text_spans."""
    return tuple(f"{_fold(column)}_{ending}" for ending in _HIGHLIGHT_ENDINGS) if column else ()


def _may_be_highlights(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    values = [value for row in rows if (value := row.get(column)) not in (None, "")]
    return not values or any(looks_like_highlights(value) for value in values)


def _take(free: dict[str, str], names: Iterable[str]) -> str | None:
    for name in names:
        if name in free:
            return free.pop(name)
    return None


def _by_name(columns: Iterable[str]) -> dict[str, str]:
    """Columns under their folded names; of two that fold to the same, the first."""
    by_name: dict[str, str] = {}
    for column in columns:
        by_name.setdefault(_fold(column), column)
    return by_name


def _fold(name: str) -> str:
    return _NOT_ALPHANUMERIC.sub("_", name.strip().lower()).strip("_")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
