"""Prodigy: spans over characters (code points), a line for each annotator of an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unhans.exchange.shared import (
    Find,
    Judged,
    Refused,
    Vote,
    covered,
    example_of,
    listed,
    objects,
    operation_of,
    optional,
    position_of,
    single,
    state_of,
    string,
    votes_of,
)
from unhans.text import Words
from unhans.types import Example

_ANSWER_OF = {"done": "accept", "skipped": "ignore", "flagged": "reject"}
_STATE_OF = {answer: state for state, answer in _ANSWER_OF.items()}
_SEAM = "\n\n"  # between the two texts of a pair, which Prodigy shows as one


def records(example: Example, words: Words, judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """A line for each person."""
    text = _SEAM.join(example.parts)
    pair_start = len(example.text) + len(_SEAM)
    at = [
        (span.start + pair_start, span.end + pair_start) if span.part == "pair" else (span.start, span.end)
        for span in words.spans
    ]
    about = {"id": example.id, "pair_start": None if example.pair is None else pair_start}
    for one in judged:
        meta = {**about, "state": one.state, "note": one.note or None, "drop": one.drop}
        yield {
            "text": text,
            "meta": {name: value for name, value in meta.items() if value is not None},
            "tokens": [
                {"text": word, "start": start, "end": end, "id": number, "ws": text[end : end + 1] == " "}
                for number, (word, (start, end)) in enumerate(zip(words.strings, at, strict=True))
            ],
            "spans": [
                {
                    "start": at[position][0],
                    "end": at[position][1],
                    "token_start": position,
                    "token_end": position,  # Prodigy's is the last token, not the one behind
                    "label": f"{vote}:{label}",
                }
                for position, label, vote in one.votes
            ],
            **({} if one.label is None else {"accept": [one.label]}),
            **({} if one.state is None else {"answer": _ANSWER_OF[one.state]}),
            "_annotator_id": one.author,
            "_session_id": one.author,
        }


def judged(cells: Mapping[str, Any], find: Find) -> Iterator[Judged]:
    """What the annotator of a line said."""
    meta = cells.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    text, pair, pair_start = string(cells, "text"), None, meta.get("pair_start")
    if type(pair_start) is int and len(_SEAM) <= pair_start <= len(text):
        text, pair = text[: pair_start - len(_SEAM)], text[pair_start:]
    example = example_of(find, optional(meta.get("id")), text, pair)
    words = Words(example)
    answer = cells.get("answer")
    if answer not in (None, *_STATE_OF):
        raise Refused("the answer is none of accept, reject and ignore.")
    state = None if answer is None else _STATE_OF[answer]
    votes = _votes(objects(listed(cells, "spans"), "spans"), example, words)
    yield Judged(
        example,
        words,
        optional(cells.get("_annotator_id")) or optional(cells.get("_session_id")),
        votes if state in (None, "done", state_of(meta.get("state"))) else (),  # marks that somebody rejects are void
        single(listed(cells, "accept")),
        meta.get("drop") is True,
        state,
        optional(meta.get("note")),
    )


def _votes(spans: Sequence[Mapping[str, Any]], example: Example, words: Words) -> tuple[Vote, ...]:
    pair_start = len(example.text) + len(_SEAM)

    def positions(span: Mapping[str, Any]) -> range:
        start, end = position_of(span, "start"), position_of(span, "end")
        if example.pair is not None and start >= pair_start:
            return covered(words, "pair", start - pair_start, end - pair_start)
        return covered(words, "text", start, end)

    return votes_of((positions(span), *operation_of(string(span, "label"))) for span in spans)
