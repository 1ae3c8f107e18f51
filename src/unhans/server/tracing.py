"""Routes about neighbours: the training examples behind what a model says, copies of them, and labels in doubt.

Ratings and new labels are answers like others (`POST feedback`). Where judging is blind, everybody sees their own only.
Annotators have single examples traced, and copies made of single training examples; what is kept is for managers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from unhans.errors import BadOption, NotAllowed
from unhans.heuristics import has
from unhans.jobs import Job
from unhans.records.trace_views import TraceViews
from unhans.server.fixing import check_options
from unhans.server.identity import Here, Manager, Member, Seat
from unhans.server.judging import Place
from unhans.server.running import enqueue, known_method
from unhans.shapes import (
    AnchorPage,
    AnchorQuery,
    AnchorView,
    CopyChange,
    CopyId,
    CopyPage,
    CopyQuery,
    CopyView,
    DoubtPage,
    DoubtQuery,
    Method,
    Name,
    NeighbourOffer,
    NewCopies,
    NewDoubts,
    NewTrace,
)
from unhans.types import Example

router = APIRouter(prefix="/api/projects/{project}", tags=["tracing"])
_TIMES, _AT_LEAST = 10, 100  # a number can be ten times its default here, and up to 100 in any case
_SQUARED = {"width"}  # options that cost by their square: so many numbers of each of two sides are kept
_LONGEST_OPTION = 500  # characters: of a word to look for
_MADE = 50_000  # copies that one request may ask for


@router.get("/neighbours/methods")
def methods(seat: Member) -> NeighbourOffer:
    """The ways to trace, to choose anchors, to make copies and to doubt labels, and whether they work here."""
    return _views(seat).offer()


@router.get("/anchors")
def anchors(query: Annotated[AnchorQuery, Query()], seat: Member) -> AnchorPage:
    """A page of examples that were traced."""
    return _views(seat).anchors(query)


@router.post("/anchors")
def trace(given: NewTrace, seat: Member, here: Here) -> Job:
    """Look for the training examples behind some examples."""
    if not seat.manages and (given.places is None or len(given.places) != 1):
        raise NotAllowed("Annotators may have single examples traced; ask a manager for more.")
    if not seat.manages and (given.options or given.seed):  # each makes work that is kept, in place of what all use
        raise NotAllowed("Annotators trace with the usual options; ask a manager to change them.")
    offer = _offer(seat)
    method = _check_method(given.method, given.options, offer.methods, "way to trace")
    check_cost(given.options, method)
    _check_work(given.options, method)
    if given.heuristic is not None:
        _check_method(given.heuristic, given.heuristic_options, offer.heuristics, "pattern")
        has(Example("any", ""), given.heuristic, **(given.heuristic_options or {}))  # refuses what says nothing
    elif given.heuristic_options:
        raise BadOption("Options of a pattern were given, but no pattern. Name one.")
    if given.places is not None:
        if given.heuristic is not None:
            raise BadOption("Pick examples by hand or by a pattern, not both.")
        seat.records.table.some(given.places)
    if given.split is not None and given.split not in seat.records.table.splits():
        raise BadOption("There is no split of that name.")
    return enqueue("trace", given, seat, here, for_all=False)


@router.get("/anchors/{place}")
def anchor(place: Place, seat: Member, revision: Annotated[Name | None, Query()] = None) -> AnchorView:
    """An example beside the training examples behind it."""
    return _views(seat).anchor(place, revision)


@router.get("/copies")
def copies(query: Annotated[CopyQuery, Query()], seat: Member) -> CopyPage:
    """A page of rewritten training examples."""
    return _views(seat).copies(query)


@router.post("/copies")
def augment(given: NewCopies, seat: Member, here: Here) -> Job:
    """Make copies of training examples that were rated: the more similar they are said to be, the more."""
    if not seat.manages and (given.places is None or len(given.places) != 1):
        raise NotAllowed("Annotators may have copies of single examples made; ask a manager for more.")
    known = _offer(seat).augmentations
    check_cost(given.options, _check_method(given.method, given.options, known, "way to make copies"))
    usual = seat.records.copies_per_point
    if not seat.manages and given.copies_per_point not in {None, usual}:
        raise NotAllowed(f"One point of similarity makes {usual} copies here; only a manager can change that.")
    if given.places is not None:
        seat.records.table.some(given.places)
        if (made := 5 * (given.copies_per_point or usual) * len(given.places)) > _MADE:
            raise BadOption(f"That could be {made:,} copies; at most {_MADE:,} can be asked for at once.")
    return enqueue("copies", given, seat, here, for_all=False)


@router.patch("/copies/{id}")
def change_copy(id: Annotated[CopyId, Path()], given: CopyChange, seat: Manager) -> CopyView:
    """Rewrite a copy by hand; refused if somebody else changed it since it was seen."""
    return _views(seat).change_copy(id, given, seat.user.name)


@router.delete("/copies/{id}", status_code=204)
def delete_copy(id: Annotated[CopyId, Path()], seat: Manager) -> None:
    """Take a copy away: it is not trained on."""
    _views(seat).delete_copy(id, seat.user.name)


@router.get("/doubts")
def doubts(query: Annotated[DoubtQuery, Query()], seat: Member) -> DoubtPage:
    """A page of training examples, those whose label is the most doubtful first."""
    return _views(seat).doubts(query)


@router.post("/doubts")
def look(given: NewDoubts, seat: Manager, here: Here) -> Job:
    """Rank the training examples by how likely their label is wrong."""
    offer = _views(seat).offer()
    if offer.cannot_doubt:
        raise BadOption(offer.cannot_doubt)
    for sign in given.signs or ():
        known_method(sign, offer.doubts, "sign of a wrong label")
    return enqueue("doubts", given, seat, here)


def _views(seat: Seat) -> TraceViews:
    return seat.records.trace_views(seat.user.name, sees_others=seat.sees_others, words_first=seat.words_first)


def _offer(seat: Seat) -> NeighbourOffer:
    """What can be asked for; refused if nothing can be traced, for then there is nothing to copy either."""
    found = _views(seat).offer()
    if found.cannot:
        raise BadOption(found.cannot)
    return found


def _check_method(name: str, options: Mapping[str, Any] | None, known: tuple[Method, ...], what: str) -> Method:
    """Refuse what is not there or does not fit."""
    method = known_method(name, known, what)
    check_options(options, method.options, method.name)
    for option, value in (options or {}).items():
        if isinstance(value, str) and len(value) > _LONGEST_OPTION:
            raise BadOption(f"{option} can have {_LONGEST_OPTION} characters here at most.")
    return method


def check_cost(options: Mapping[str, Any] | None, method: Method) -> None:
    """Refuse numbers so large that it would take all day."""
    defaults = {option.name: option.default for option in method.options}
    for option, value in (options or {}).items():
        default = defaults[option]
        if isinstance(default, bool) or not isinstance(default, int | float):
            continue
        most = max(_TIMES * default, _AT_LEAST)
        if (float(value) if isinstance(default, float) else int(value)) > most:
            raise BadOption(f"{option} can be {most:g} here at most.")


def _check_work(options: Mapping[str, Any] | None, method: Method) -> None:
    """Refuse whole numbers that are each within bounds, but together make a trace that takes all day or all memory."""
    usual = {option.name: option.default for option in method.options}
    times = 1.0
    for option, value in (options or {}).items():
        default = usual[option]
        if isinstance(default, int) and not isinstance(default, bool) and default > 0:
            times *= max(1.0, int(value) / default) ** (2 if option in _SQUARED else 1)
    if times > _TIMES:
        raise BadOption(
            f"With these options {method.name} would cost {times:,.0f} times as much as usual; {_TIMES} times is what "
            "it can be here at most. Make them smaller, or trace on the command line."
        )
