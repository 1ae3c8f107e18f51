"""Nouns as rows of a table, and back: what they have in common is in the facts, and said once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from unhans.types import Attribution, Counterfactual, Prediction, Recipe, Span, Terms, from_json, to_json

Facts = Mapping[str, Any]
noun_of = cache(from_json)  # the same few for all rows
_SPAN = pa.struct({"start": pa.int32(), "end": pa.int32(), "part": pa.string()})
_EDIT = pa.struct({"position": pa.int32(), "old": pa.string(), "new": pa.string()})


@dataclass(frozen=True)
class Kind:
    """One kind of table: its columns, a noun as a row, and a row with the facts as a noun."""

    schema: pa.Schema
    row: Callable[[Any], dict[str, Any]]
    noun: Callable[[dict[str, Any], Facts], Any]


def _predicted(one: Prediction) -> dict[str, Any]:
    return {
        "example": one.example,
        "label": one.label,
        "confidence": one.confidence,
        "probabilities": list(one.probabilities),
        "unread": _plain(one.unread),
    }


def _prediction(row: dict[str, Any], facts: Facts) -> Prediction:
    return Prediction(
        row["example"], tuple(facts["labels"]), tuple(row["probabilities"]), facts["revision"], _spans(row["unread"])
    )


def _attributed(one: Attribution) -> dict[str, Any]:
    return {
        "example": one.example,
        "label": one.label,
        "words": list(one.words),
        "scores": list(one.scores),
        "spans": _plain(one.spans),
        "unread": list(one.unread),
        "errors": None if one.errors is None else list(one.errors),
        "stability": one.stability,
        "asked": one.asked,
    }


def _attribution(row: dict[str, Any], facts: Facts) -> Attribution:
    return Attribution(
        example=row["example"],
        label=row["label"],
        words=tuple(row["words"]),
        spans=_spans(row["spans"]),
        scores=tuple(row["scores"]),
        recipe=noun_of(Recipe, json.dumps(facts["recipe"])),
        revision=facts["revision"],
        unread=tuple(row["unread"]),
        terms=noun_of(Terms, json.dumps(facts["terms"])),
        errors=None if row["errors"] is None else tuple(row["errors"]),
        stability=row["stability"],
        asked=row["asked"],
    )


def _flipped(one: Counterfactual) -> dict[str, Any]:
    return {
        "example": one.example,
        "flips": one.flips,
        "before": one.before.label,
        "after": one.after.label,
        "edits": [{"position": edit.position, "old": edit.old, "new": edit.new} for edit in one.edits],
        "text": one.text,
        "pair": one.pair,
        "json": to_json(one),
    }


def _flip(row: dict[str, Any], facts: Facts) -> Counterfactual:
    return from_json(Counterfactual, row["json"])


def _plain(spans: tuple[Span, ...]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "part": span.part} for span in spans]


def _spans(rows: list[dict[str, Any]]) -> tuple[Span, ...]:
    return tuple(Span(row["start"], row["end"], row["part"]) for row in rows)


KINDS = {
    "predictions": Kind(
        pa.schema(
            {
                "example": pa.string(),
                "label": pa.string(),
                "confidence": pa.float64(),
                "probabilities": pa.list_(pa.float64()),  # in the order of the labels in the facts
                "unread": pa.list_(_SPAN),
            }
        ),
        _predicted,
        _prediction,
    ),
    "attributions": Kind(
        pa.schema(
            {
                "example": pa.string(),
                "label": pa.string(),
                "words": pa.list_(pa.string()),
                "scores": pa.list_(pa.float64()),
                "spans": pa.list_(_SPAN),
                "unread": pa.list_(pa.int32()),
                "errors": pa.list_(pa.float64()),
                "stability": pa.float64(),
                "asked": pa.int64(),
            }
        ),
        _attributed,
        _attribution,
    ),
    "counterfactuals": Kind(
        pa.schema(
            {
                "example": pa.string(),
                "flips": pa.bool_(),
                "before": pa.string(),
                "after": pa.string(),
                "edits": pa.list_(_EDIT),
                "text": pa.string(),
                "pair": pa.string(),
                "json": pa.string(),  # all of it, with the way there
            }
        ),
        _flipped,
        _flip,
    ),
}
