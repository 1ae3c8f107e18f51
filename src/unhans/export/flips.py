"""Flips and what people said of them as a data set: lines of JSON with everything, and tables that `datasets` loads.

flips/
├── flips.jsonl           a line for each flip: original, edits, steps, predictions, ratings; `read_flips` reads it
├── flips.parquet         a row for each flip
├── ratings.parquet       a row for each rating, left out if there is none
├── README.md             the card
└── manifest.json         size and sha256 of every file
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from unhans.errors import BadData, ProjectProblem
from unhans.export.dataset import write_tables
from unhans.export.keeping import Exported, keep
from unhans.feedback import SettledFlip, resolve, settle_flips
from unhans.types import Counterfactual, Edit, Example, Feedback, FlipRating, from_json, to_json

_LINES = "flips.jsonl"
_TEXT, _WHOLE, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_NUMBERS = pa.list_(_NUMBER)
_EDITS = pa.list_(pa.struct({"position": _WHOLE, "old": _TEXT, "new": _TEXT}))
_FLIPS = pa.schema(
    {
        "id": _TEXT,
        "example": _TEXT,
        "original": _TEXT,
        "original_pair": _TEXT,
        "original_label": _TEXT,
        "group": _TEXT,
        "split": _TEXT,
        "text": _TEXT,
        "pair": _TEXT,
        "edits": _EDITS,
        "flips": _FLAG,
        "target": _TEXT,
        "labels": pa.list_(_TEXT),
        "predicted_before": _TEXT,
        "predicted_after": _TEXT,
        "probabilities_before": _NUMBERS,
        "probabilities_after": _NUMBERS,
        "steps": pa.list_(pa.struct({"edits": _EDITS, "predicted": _TEXT, "probabilities": _NUMBERS})),
        "perplexity": _NUMBER,
        "similarity": _NUMBER,
        "generator": _TEXT,
        "recipe": _TEXT,
        "revision": _TEXT,
        "ratings": _WHOLE,
        "plausible": _NUMBER,
        "meaningful": _NUMBER,
        "agrees": _NUMBER,
        "label": _TEXT,
    }
)
_RATINGS = pa.schema(
    {
        "id": _TEXT,
        "flip": _TEXT,
        "author": _TEXT,
        "at": _TEXT,
        "seconds": _NUMBER,
        "revision": _TEXT,
        "plausible": _WHOLE,
        "meaningful": _WHOLE,
        "agrees": _WHOLE,
        "label": _TEXT,
    }
)
_ABOUT = {
    "flips": "a row for each flip: the original, the rewritten text, its edits (`position` counts the words of the "
    "original), what the model (`revision`) said before and after, and after each step on the way. `flips` is false "
    "for the best attempt where no flip was found. `plausible`, `meaningful` and `agrees` are mean ratings from 1 to "
    "5, and `label` is what most people call the rewritten text; all are empty where nobody said so.",
    "ratings": "a row for each rating that stands. An empty cell: the question does not apply.",
}


@dataclass(frozen=True, slots=True)
class FlipRecord:
    """One line: a flip, the text it was made from (None: no longer there), and the ratings that stand."""

    id: str
    revision: str
    original: Example | None
    flip: Counterfactual
    ratings: tuple[Feedback, ...] = ()


def export_flips(
    flips: Iterable[Counterfactual],
    ratings: Iterable[Feedback],
    originals: Mapping[str, Example] | Iterable[Example],
    folder: str | Path,
    *,
    names: bool = False,
) -> Exported:
    """A new folder with the flips and the ratings of them that stand; `datasets.load_dataset` and `read_flips` load it.

    Rulings among the ratings decide what those come to, as they do for a fix; all ratings are told even so. Ratings of
    other flips and other feedback are left out. Authors are person-1, person-2, … unless `names` are asked
    for.
    """
    opinions = list(resolve(ratings).values())
    records = _records(flips, opinions, originals, names)
    if not records:
        raise BadData("There are no flips to export. Nothing was written; find some first.")
    revisions = dict.fromkeys(record.revision for record in records)
    settled = {one.counterfactual: one for one in settle_flips(opinions)}
    return keep(
        folder, lambda partial: _write(partial, records, settled), parts=("flips",), revision=", ".join(revisions)
    )


def read_flips(path: str | Path) -> list[FlipRecord]:
    """What an export of flips says: from its folder, or from the lines of JSON in it."""
    place = Path(path).expanduser()
    place = place / _LINES if place.is_dir() else place
    try:
        lines = place.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadData(
            f"{place} cannot be read ({type(error).__name__}). Give the folder of an export of flips."
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(from_json(FlipRecord, line))
            except ValueError as error:
                raise BadData(f"Line {number} of {place} is not a flip with its ratings. Nothing was read.") from error
    return found


def _records(
    flips: Iterable[Counterfactual],
    opinions: Iterable[Feedback],
    originals: Mapping[str, Example] | Iterable[Example],
    names: bool,
) -> list[FlipRecord]:
    chosen = {flip.id: flip for flip in flips}
    about = {flip.example for flip in chosen.values()}
    given = originals.values() if isinstance(originals, Mapping) else originals
    texts = {example.id: example for example in given if example.id in about}
    by_flip: dict[str, list[Feedback]] = defaultdict(list)
    people: dict[str, str] = {}
    for one in opinions:
        if isinstance(one.says, FlipRating) and one.says.counterfactual in chosen:
            person = people.setdefault(one.author, one.author if names else f"person-{len(people) + 1}")
            by_flip[one.says.counterfactual].append(replace(one, author=person))
    return [
        FlipRecord(id_, flip.before.revision, texts.get(flip.example), flip, tuple(by_flip[id_]))
        for id_, flip in chosen.items()
    ]


def _write(folder: Path, records: Sequence[FlipRecord], settled: Mapping[str, SettledFlip]) -> str:
    """Write the lines and the tables; what comes back says what is in them."""
    with (folder / _LINES).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(to_json(record) + "\n" for record in records)
    if read_flips(folder) != list(records):
        raise ProjectProblem("The flips that were written are not those that are read back. Nothing was kept.")
    ratings = [_rating_row(one) for record in records for one in record.ratings]
    tables = [("flips", [_flip_row(record, settled.get(record.id)) for record in records], _FLIPS)]
    tables += [("ratings", ratings, _RATINGS)] if ratings else []  # `datasets` refuses a table without rows
    write_tables(folder, tables, "Flips: small rewrites that change what a text classifier says", _ABOUT)
    alone = sum(record.original is None for record in records)
    gone = f" Of {alone:,} the original is no longer there." if alone else ""
    return f"{len(records):,} flips and {len(ratings):,} ratings were written and read back.{gone}"


def _flip_row(record: FlipRecord, said: SettledFlip | None) -> dict[str, Any]:
    flip, original = record.flip, record.original
    row: dict[str, Any] = {
        "id": record.id,
        "example": flip.example,
        "text": flip.text,
        "pair": flip.pair,
        "edits": _edits(flip.edits),
        "flips": flip.flips,
        "target": flip.target,
        "labels": list(flip.after.labels),
        "predicted_before": flip.before.label,
        "predicted_after": flip.after.label,
        "probabilities_before": list(flip.before.probabilities),
        "probabilities_after": list(flip.after.probabilities),
        "steps": [
            {"edits": _edits(s.edits), "predicted": s.after.label, "probabilities": list(s.after.probabilities)}
            for s in flip.steps
        ],
        "perplexity": flip.perplexity,
        "similarity": flip.similarity,
        "generator": flip.recipe.name,
        "recipe": str(flip.recipe),
        "revision": record.revision,
        "ratings": len(record.ratings),
    }
    if original is not None:
        row |= {"original": original.text, "original_pair": original.pair, "original_label": original.label}
        row |= {"group": original.group, "split": original.split}
    if said is not None:
        row |= {name: getattr(said, name) for name in ("plausible", "meaningful", "agrees", "label")}
    return row


def _edits(edits: Iterable[Edit]) -> list[dict[str, Any]]:
    return [asdict(edit) for edit in edits]


def _rating_row(entry: Feedback) -> dict[str, Any]:
    assert isinstance(entry.says, FlipRating)
    row = {name: getattr(entry, name) for name in ("id", "author", "at", "seconds", "revision")}
    said = {name: getattr(entry.says, name) for name in ("plausible", "meaningful", "agrees", "label")}
    return row | said | {"flip": entry.says.counterfactual}
