"""Routes about flips: looking for them, what was found, the chart of all, the risk that ratings come to.

Ratings are answers like others (`POST feedback`). Where judging is blind, everybody sees their own only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from unhans.errors import BadOption, NotAllowed
from unhans.exchange import FORMATS
from unhans.jobs import Job
from unhans.records.flip_views import FlipViews
from unhans.records.flipping import check_edits
from unhans.server.fixing import check_options
from unhans.server.identity import Here, Manager, Member, Seat
from unhans.server.judging import Place, narrowed
from unhans.server.projects import attachment
from unhans.server.running import enqueue, known_method
from unhans.shapes import (
    DeskQuery,
    FlipChart,
    FlipDesk,
    FlipId,
    FlipOffer,
    FlipPage,
    FlipQuery,
    FlipView,
    Name,
    NewFlips,
    RiskView,
)
from unhans.text import Words
from unhans.types import Example

router = APIRouter(prefix="/api/projects/{project}", tags=["flipping"])
_LONGEST = 200  # characters of a word put in by hand
_MOST = {  # what a search may cost from here
    "max_edits": 10, "beam": 100, "alternatives": 50, "candidates": 1000, "per_word": 100, "senses": 50,
}  # fmt: skip
_TRIED = 10_000  # beam × words tried for each draft
_LONGEST_OPTION = 500  # characters: of words to put in or protect, or a prompt


@router.get("/flips")
def flips(query: Annotated[FlipQuery, Query()], seat: Member) -> FlipPage:
    """A page of rewritten texts, in the order they were found."""
    return _views(seat).page(query)


@router.post("/flips")
def search(given: NewFlips, seat: Member, here: Here) -> Job:
    """Look for flips; what was looked for in the same way before is there at once."""
    if not seat.manages and (given.places is None or len(given.places) != 1):
        raise NotAllowed("Annotators may have single examples rewritten; ask a manager for more.")
    offer = _views(seat).offer()
    if offer.cannot:
        raise BadOption(offer.cannot)
    method = known_method(given.method, offer.methods, "way to look for flips")
    check_options(given.options, method.options, method.name)
    check_options(given.search, offer.search, "The search")
    _check_cost(given)
    if "rationale" in (given.edits_in, given.reads_in):
        known_method(given.attribution, tuple(seat.records.methods()), "method")
        known_method(given.rationale, offer.rationales, "rationale")
    if given.target is not None and given.target not in seat.records.labels:
        raise BadOption("The model has no such label.")
    examples = seat.records.table.some(given.places) if given.places is not None else []
    _views(seat).check_judged(given.places or ())
    _check_masks(given, examples)
    return enqueue("flips", given, seat, here)


@router.get("/flips/methods")
def methods(seat: Member) -> FlipOffer:
    """The ways to look for flips, as the registry describes them, and whether they work with this model."""
    return _views(seat).offer()


@router.get("/flips/chart")
def chart(seat: Member, revision: Annotated[Name | None, Query()] = None) -> FlipChart:
    """All rewritten texts by probability and distance."""
    return _views(seat).chart(revision)


@router.get("/flips/export", response_class=StreamingResponse)
def export(
    seat: Manager, format: Literal["jsonl"] = "jsonl", revision: Annotated[Name | None, Query()] = None
) -> StreamingResponse:
    """Rewritten texts with their originals and all ratings as a file; of all revisions, or of one."""
    if revision is not None:
        seat.records.revision_id(revision)  # refused now: once the file has begun it is too late
    return attachment(_views(seat).dataset(revision), f"flips.{format}", FORMATS[format].media_type)


@router.get("/flips/{id}")
def flip(id: Annotated[FlipId, Path()], seat: Member) -> FlipView:
    """One rewritten text."""
    return _views(seat).one(id)


@router.get("/risk")
def risk(
    seat: Member,
    revision: Annotated[Name | None, Query()] = None,
    width: Annotated[float, Query(ge=0.01, le=4)] = 0.5,
) -> RiskView:
    """What ratings of flips come to, with an interval, and how many more make it as narrow as wished for."""
    return _views(seat).risk(revision, width)


@router.get("/examples/{place}/flips")
def desk(place: Place, query: Annotated[DeskQuery, Query()], seat: Member) -> FlipDesk:
    """An example to be rewritten: its sentences, its rationale, the flips there are."""
    return _views(seat).desk(place, query, narrowed(query, seat))


def _views(seat: Seat) -> FlipViews:
    return seat.records.flip_views(seat.user.name, sees_others=seat.sees_others, words_first=seat.words_first)


def _check_cost(given: NewFlips) -> None:
    settings: dict[str, Any] = {**(given.options or {}), **(given.search or {})}
    for name, most in _MOST.items():
        if name in settings and int(settings[name]) > most:
            raise BadOption(f"{name} can be {most} here at most.")
    tried = int(settings.get("beam", 10)) * max(int(settings.get(name, 10)) for name in ("candidates", "per_word"))
    if tried > _TRIED:
        raise BadOption(f"beam times the words that are tried can be {_TRIED:,} here at most, not {tried:,}.")
    if any(isinstance(value, str) and len(value) > _LONGEST_OPTION for value in settings.values()):
        raise BadOption(f"An option can have {_LONGEST_OPTION} characters here at most.")


def _check_masks(given: NewFlips, examples: list[Example]) -> None:
    masks = given.editable, given.reads
    if any(mask is not None for mask in masks) or given.start:
        if len(examples) != 1:
            raise BadOption("Words can be chosen for one example at a time. Name one place.")
        words = len(Words(examples[0]))
        for mask in masks:
            if mask is not None and any(position >= words for position in mask):
                raise BadOption("The example has no such word there. Reload it: its text may have changed.")
        check_edits(examples[0], given.start)
        if any(len(edit.new) > _LONGEST for edit in given.start):
            raise BadOption(f"A word has at most {_LONGEST} characters.")
    if (given.editable is not None and given.edits_in != "all") or (
        given.reads is not None and given.reads_in != "all"
    ):
        raise BadOption("Choose words by hand or by the rationale, not both.")
