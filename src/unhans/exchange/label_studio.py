"""Label Studio: a list of tasks, each an example with the annotations of all people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from unhans.data.rows import clean
from unhans.exchange.shared import (
    STATES,
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
from unhans.types import Example, Part

_DRAFT = "draft"  # no review yet
_NONE_FITS = "none of the labels fits"


def labelling_config(labels: Iterable[str], *, pair: bool = False) -> str:
    """The labelling interface for Label Studio (XML) in which tasks of this format can be worked on."""
    labels = [_xml(label) for label in labels]
    marks = "".join(
        f"    <Label value={quoteattr(f'{vote}:{label}')} background={quoteattr(colour)}/>\n"
        for label in labels
        for vote, colour in (("raise", "#2b7a3d"), ("lower", "#b3362b"))
    )
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in labels)
    states = "".join(f'    <Choice value="{state}"/>\n' for state in (*STATES, _DRAFT))
    texts = "".join(
        f'  <Labels name="{name}_marks" toName="{name}">\n{marks}  </Labels>\n'
        f'  <Text name="{name}" value="${name}" saveTextResult="yes" granularity="word"/>\n'
        for name in (("text", "pair") if pair else ("text",))
    )
    return (
        "<View>\n  <Style>.htx-text{ white-space: pre-wrap; }</Style>\n"  # otherwise blanks are not counted as they are
        f"{texts}"
        f'  <Choices name="label" toName="text" choice="single">\n{choices}  </Choices>\n'
        f'  <Choices name="drop" toName="text" choice="single">\n    <Choice value="{_NONE_FITS}"/>\n  </Choices>\n'
        f'  <Choices name="state" toName="text" choice="single">\n{states}  </Choices>\n'
        '  <TextArea name="note" toName="text" maxSubmissions="1"/>\n</View>\n'
    )


def _xml(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", clean(text))  # XML cannot say these at all


def records(example: Example, words: Words, judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """One task with everybody's annotations. Offsets are code points, as Label Studio writes them today."""
    data = {"id": example.id, "text": example.text, "pair": example.pair, "label": example.label}
    yield {
        "data": {name: value for name, value in data.items() if value is not None},
        "annotations": [
            {
                "completed_by": {"email": one.author},
                "was_cancelled": one.state == "skipped",
                "result": _results(words, one),
            }
            for one in judged
        ],
    }


def _results(words: Words, one: Judged) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, (position, label, vote) in enumerate(one.votes):
        span = words.spans[position]
        value = {"start": span.start, "end": span.end, "text": words.strings[position], "labels": [f"{vote}:{label}"]}
        names = {"id": f"w{number}", "from_name": f"{span.part}_marks", "to_name": span.part}
        found.append({**names, "type": "labels", "value": value})
    told = [
        ("label", "choices", one.label),
        ("drop", "choices", _NONE_FITS if one.drop else None),
        ("state", "choices", one.state or _DRAFT),
        ("note", "text", one.note or None),
    ]
    for name, key, said in told:
        if said is not None:
            kind = "textarea" if key == "text" else "choices"
            found.append({"id": name, "from_name": name, "to_name": "text", "type": kind, "value": {key: [said]}})
    return found


def judged(cells: Mapping[str, Any], find: Find) -> Iterator[Judged | Refused]:
    """What each annotator of a task said; one that is refused does not keep the others out."""
    data = cells.get("data")
    if not isinstance(data, dict):
        raise Refused("the task has no data.")
    pair = data.get("pair")
    example = example_of(find, optional(data.get("id")), string(data, "text"), None if pair is None else optional(pair))
    words = Words(example)
    for annotation in objects(listed(cells, "annotations"), "annotations"):
        try:
            yield _annotation(annotation, example, words)
        except Refused as refused:
            yield refused


def _annotation(annotation: Mapping[str, Any], example: Example, words: Words) -> Judged:
    results = objects(listed(annotation, "result"), "result")
    if not all(isinstance(one.get("value"), dict) for one in results):
        raise Refused("a result has no value.")
    regions = [one for one in results if one.get("type") == "labels"]
    chosen = [one for one in results if one.get("type") == "choices"]
    submitted = "skipped" if annotation.get("was_cancelled") else "done"
    state = _said(chosen, "choices", lambda name: name == "state") or submitted
    return Judged(
        example,
        words,
        _annotator(annotation.get("completed_by")),
        _votes(regions, example, words),
        _said(chosen, "choices", lambda name: name not in ("state", "drop")),
        _said(chosen, "choices", lambda name: name == "drop") is not None,
        None if state == _DRAFT else state_of(state),
        _said(results, "text", lambda name: name == "note") or "",
    )


def _said(results: Sequence[Mapping[str, Any]], key: str, is_from: Callable[[Any], bool]) -> str | None:
    """The one thing that was said in the results of a control."""
    return single([said for one in results if is_from(one.get("from_name")) for said in listed(one["value"], key)])


def _votes(regions: Sequence[Mapping[str, Any]], example: Example, words: Words) -> tuple[Vote, ...]:
    """Votes of the regions of one annotation.

    Label Studio counts code points since late 2021, UTF-16 units before, and files do not say which. The text inside
    the regions tells: the unit is the first in which all of them fit.
    """
    for unit in (_code_points, _utf16_units):
        spans = [_span(region, example, unit) for region in regions]
        if None not in spans:
            return votes_of(
                (covered(words, *span), *operation_of(mark if isinstance(mark, str) else ""))
                for span, region in zip(spans, regions, strict=True)
                for mark in listed(region["value"], "labels")
                if span is not None
            )
    raise Refused("a mark does not lie where the text says it does.")


def _span(
    region: Mapping[str, Any], example: Example, unit: Callable[[str, int, int], tuple[int, int] | None]
) -> tuple[Part, int, int] | None:
    """Where the region is, if it is there in this unit."""
    value = region["value"]
    part: Part = "pair" if region.get("to_name") == "pair" else "text"
    text = (example.pair or "") if part == "pair" else example.text
    span = unit(text, position_of(value, "start"), position_of(value, "end"))
    said = value.get("text")
    if span is None or (isinstance(said, str) and not _reads(text[slice(*span)], clean(said))):
        return None
    return part, *span


def _code_points(text: str, start: int, end: int) -> tuple[int, int] | None:
    return (start, end) if start <= end <= len(text) else None


def _utf16_units(text: str, start: int, end: int) -> tuple[int, int] | None:
    units = text.encode("utf-16-le", "surrogatepass")
    if not start <= end <= len(units) // 2:
        return None
    try:
        return len(units[: 2 * start].decode("utf-16-le")), len(units[: 2 * end].decode("utf-16-le"))
    except UnicodeDecodeError:  # inside a pair of surrogates
        return None


def _reads(found: str, said: str) -> bool:
    return found == said or found == said.replace("\\n", "\n")  # Label Studio escapes the line ends of a region


def _annotator(completed_by: Any) -> str:
    """The name in the file: an e-mail address if there is one, else the number of the user."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return optional(completed_by) if isinstance(completed_by, str | int) else ""
