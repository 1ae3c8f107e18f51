"""Feedback as a folder that `datasets` loads: a table of answers, and a table of texts with their words marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unhans.data.rows import clean
from unhans.errors import BadData, ProjectProblem
from unhans.feedback import resolve, settle, stale_reason
from unhans.text import Words, visible_form
from unhans.types import Example, Feedback, Relabel, WordVote

_TEXT, _WHOLE, _FLAGS = pa.string(), pa.int64(), pa.list_(pa.bool_())
_ANSWERS = pa.schema(
    {
        "id": _TEXT,
        "kind": _TEXT,
        "author": _TEXT,
        "at": _TEXT,
        "seconds": pa.float64(),
        "revision": _TEXT,
        "text_hash": _TEXT,
        "stale": pa.bool_(),
        "why_stale": _TEXT,
        "example": _TEXT,
        "position": _WHOLE,
        "word": _TEXT,
        "label": _TEXT,
        "vote": _TEXT,
        "counterfactual": _TEXT,
        "plausible": _WHOLE,
        "meaningful": _WHOLE,
        "agrees": _WHOLE,
        "anchor": _TEXT,
        "train": _TEXT,
        "similar": _WHOLE,
        "state": _TEXT,
        "note": _TEXT,
        "subject": _TEXT,
        "value": _TEXT,
    }
)
_HIGHLIGHTS = pa.schema(
    {
        "id": _TEXT,
        "text": _TEXT,
        "pair": _TEXT,
        "label": _TEXT,
        "corrected": _TEXT,
        "dropped": pa.bool_(),
        "split": _TEXT,
        "text_hash": _TEXT,
        "for_label": _TEXT,
        "words": pa.list_(_TEXT),
        "raised": _FLAGS,
        "lowered": _FLAGS,
        "votes": _WHOLE,
    }
)
_ABOUT = {
    "feedback": "a row for each answer that stands. `position` counts the words of an example. `stale` says whether "
    "the answer no longer fits, and `why_stale` why: the text was changed or is gone, or it was given about another "
    "revision of the model.",
    "highlights": "a row for each example and label that votes are about (`for_label`): its words, which of them are "
    "to count more (`raised`) and which less (`lowered`), by majority; `votes` is the number of votes behind it. "
    "`label` is the given label, `corrected` the one that most people say is right, `dropped` whether they say that "
    "none of the labels is. Votes that hold everywhere are in `feedback` only.",
}


def write_feedback(
    folder: Path, examples: Iterable[Example], feedback: Sequence[Feedback], revision: str, names: bool
) -> str:
    """Write both tables and their card; what comes back says what is in them."""
    opinions = list(resolve(feedback).values())
    about = {id_ for one in opinions for id_ in _examples_of(one)}
    known = {example.id: example for example in examples if example.id in about}
    people = {author: f"person-{n}" for n, author in enumerate(dict.fromkeys(one.author for one in opinions), 1)}
    answers = [
        _answer_row(one, known, revision, one.author if names else people[one.author], names) for one in opinions
    ]
    highlights = list(_highlight_rows(opinions, known))
    found = [
        (name, rows, schema)
        for name, rows, schema in (("feedback", answers, _ANSWERS), ("highlights", highlights, _HIGHLIGHTS))
        if rows  # `datasets` refuses a table without rows
    ]
    if not found:
        raise BadData("Nobody has said anything that stands, so there is no feedback to export. Nothing was written.")
    write_tables(folder, found, "Feedback on a text classifier", _ABOUT)
    return f"{_n(answers, 'answer')} and {_n(highlights, 'text')} with marked words were written and read back."


def write_tables(
    folder: Path, tables: Sequence[tuple[str, list[dict[str, Any]], pa.Schema]], title: str, about: Mapping[str, str]
) -> None:
    """Tables with rows as Parquet, read back, and the card from which `datasets` knows them."""
    for name, rows, schema in tables:
        pq.write_table(pa.Table.from_pylist([_valid(row) for row in rows], schema), folder / f"{name}.parquet")
        if pq.read_table(folder / f"{name}.parquet").num_rows != len(rows):
            raise ProjectProblem(f"The table {name} cannot be read back. Nothing was kept; check the disk.")
    card = _card(title, {name: about[name] for name, _, _ in tables})
    (folder / "README.md").write_text(card, encoding="utf-8")


def _n(rows: Sequence[Any], noun: str) -> str:
    return f"{len(rows):,} {noun}{'' if len(rows) == 1 else 's'}"


def _card(title: str, tables: Mapping[str, str]) -> str:
    """README.md: for `datasets`, where each table is; for people, what is in it."""
    configs = [f"- config_name: {name}\n  data_files:\n  - split: train\n    path: {name}.parquet" for name in tables]
    front = ["---", "license: unknown", "tags:", "- unhans", "configs:", *configs, "---"]
    load = f'Load it with `datasets.load_dataset(folder, "{next(iter(tables))}")`. The tables:'
    about = "\n".join(f"- **{name}**: {text}" for name, text in tables.items())
    return "\n\n".join(["\n".join(front), f"# {title}", load, about]) + "\n"


def _examples_of(entry: Feedback) -> tuple[str, ...]:
    told = asdict(entry.says)
    return tuple(told[name] for name in ("example", "anchor", "train") if told.get(name) is not None)


def _answer_row(entry: Feedback, known: dict[str, Example], revision: str, author: str, names: bool) -> dict[str, Any]:
    told = asdict(entry.says)
    if not names:
        told.pop("note", None)  # free text, in which people may name each other
    example = known.get(told.get("example") or told.get("anchor") or "")
    why = stale_reason(entry, text_hash=example.text_hash if example is not None else None, revision=revision)
    entered = {name: getattr(entry, name) for name in ("id", "at", "seconds", "revision", "text_hash")}
    return entered | told | {"author": author, "stale": why is not None, "why_stale": why}


def _highlight_rows(opinions: Iterable[Feedback], known: dict[str, Example]) -> Iterable[dict[str, Any]]:
    """For each example and label, what most people say of its words; votes on another text than this do not count."""
    fresh = [one for one in opinions if _fits(one, known)]
    votes: dict[tuple[str, str | None], list[tuple[WordVote, int]]] = {}
    corrected: dict[str, str | None] = {}
    for one in settle(fresh)[0]:
        if isinstance(one.says, Relabel):
            corrected[one.says.example] = one.says.label
        elif one.says.example is not None:
            votes.setdefault((one.says.example, one.says.label), []).append((one.says, one.people))
    voted = {id_ for id_, _ in votes}
    votes |= {(id_, None): [] for id_ in corrected if id_ in known and id_ not in voted}
    order = {id_: n for n, id_ in enumerate(known)}
    for (id_, label), said in sorted(votes.items(), key=lambda item: order[item[0][0]]):
        example = known[id_]
        words = Words(example).strings
        yield {
            **{name: getattr(example, name) for name in ("id", "text", "pair", "label", "split", "text_hash")},
            "corrected": corrected.get(id_),
            "dropped": id_ in corrected and corrected[id_] is None,
            "for_label": label,
            "words": list(words),
            "raised": _mask(words, said, "raise"),
            "lowered": _mask(words, said, "lower"),
            "votes": sum(people for _, people in said),
        }


def _fits(entry: Feedback, known: dict[str, Example]) -> bool:
    """Whether a vote or correction is about a text that is there, as it is now."""
    if not isinstance(entry.says, WordVote | Relabel):
        return True
    example = known.get(entry.says.example or "")
    return example is not None and entry.text_hash in (None, example.text_hash)


def _mask(words: Sequence[str], said: Iterable[tuple[WordVote, int]], wanted: str) -> list[bool]:
    """Which words the votes are about: the one at the position, or all that look like it where there is none."""
    mask = [False] * len(words)
    for vote, _ in said:
        if vote.vote == wanted:
            form = visible_form(vote.word)
            at = range(len(words)) if vote.position is None else [vote.position]
            for n in at:
                if n < len(words) and visible_form(words[n]) == form:
                    mask[n] = True
    return mask


def _valid(cell: Any) -> Any:
    """Strings that Parquet can hold, wherever in a row they are."""
    match cell:
        case str():
            return clean(cell)
        case dict():
            return {name: _valid(inner) for name, inner in cell.items()}
        case list():
            return [_valid(inner) for inner in cell]
    return cell
