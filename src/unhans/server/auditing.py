"""Routes about bugs: audits of a model, the lab in which explanations are tried on planted bugs, people's verdicts.

An audit tells what the model says of single texts. Where the explanation comes first, it is for managers to see, and
others come to the predictions through the words. Verdicts are answers like others (`POST feedback`); where judging is
blind, everybody sees their own only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from unhans.errors import BadOption, NotAllowed, NotFound
from unhans.jobs import Job
from unhans.records.audit_views import AuditViews, named_by
from unhans.reporting import audit_page
from unhans.server.fixing import check_options
from unhans.server.identity import Here, Manager, Member, Room, Seat
from unhans.server.projects import attachment
from unhans.server.running import enqueue, known_method
from unhans.server.tracing import check_cost
from unhans.shapes import (
    AuditChange,
    AuditId,
    AuditOffer,
    AuditQuery,
    AuditRow,
    AuditView,
    FindingPage,
    FindingQuery,
    LabOffer,
    LabView,
    NewAudit,
    NewLab,
    VerdictSummary,
)
from unhans.types import to_json

router = APIRouter(prefix="/api/projects/{project}", tags=["auditing"])
Id = Annotated[AuditId, Path()]


@router.get("/audits")
def audits(query: Annotated[AuditQuery, Query()], seat: Member) -> list[AuditRow]:
    """The audits of a revision or of all, newest first; those that run among them."""
    return _seen(seat).audits(query.revision)


@router.post("/audits")
def audit(given: NewAudit, seat: Manager, here: Here) -> Job:
    """Look for what can be said against a revision of the model."""
    offer = _views(seat).offer()
    if offer.cannot:
        raise BadOption(offer.cannot)
    if given.revision is not None:
        seat.records.named(given.revision)
    for name in given.checks or ():
        known_method(name, offer.checks, "check")
    for name, options in (given.options or {}).items():
        if given.checks is not None and name not in given.checks:
            raise BadOption(f"Options of {name[:50]!r} were given, but it is not among the checks. Name it.")
        check = known_method(name, offer.checks, "check")
        check_options(options, check.options, check.name)
        check_cost(options, check)
    if given.method is not None:
        known_method(given.method, offer.methods, "explanation method")
    return enqueue("audit", given, seat, here)


@router.get("/audits/checks")
def checks(seat: Member) -> AuditOffer:
    """What can be looked at, and whether it works here."""
    return _views(seat).offer()


@router.get("/audit")
def latest(query: Annotated[AuditQuery, Query()], seat: Member, here: Here) -> AuditView | None:
    """The newest audit of a revision, as far as it has come; nothing, where there is none."""
    found = _seen(seat).latest(query.revision)
    return None if found is None else _with_job(found, here)


@router.get("/audits/{id}")
def one(id: Id, seat: Member, here: Here) -> AuditView:
    """One audit, as far as it has come."""
    return _with_job(_seen(seat).audit(id), here)


@router.get("/audits/{id}/findings")
def findings(id: Id, query: Annotated[FindingQuery, Query()], seat: Member) -> FindingPage:
    """A page of what an audit found, the severest first."""
    return _seen(seat).findings(id, query)


@router.get("/audits/{id}/changes")
def changes(id: Id, since: Annotated[AuditId, Query()], seat: Member) -> AuditChange:
    """What of another audit's findings is gone in this one, what is new, and what stayed."""
    return _seen(seat).changes(since, id)


@router.get("/audits/{id}/page.html", response_class=StreamingResponse)
def page(id: Id, seat: Member) -> StreamingResponse:
    """An audit as a page that opens without a network."""
    view, found = _seen(seat).audit(id), seat.records.audit_table.one(id).audit
    named = seat.records.table.find([id_ for one in found.findings for id_ in named_by(one)])
    texts = {id_: example for id_, (_, example) in named.items()}
    title = f"{seat.records.name}: audit of {view.row.name or view.row.revision}"
    return attachment(
        iter([audit_page(found, title, texts)]), f"audit-{view.row.name or id}.html", "text/html; charset=utf-8"
    )


@router.get("/audits/{id}/audit.json", response_class=StreamingResponse)
def file(id: Id, seat: Member) -> StreamingResponse:
    """An audit as it is, for programs."""
    view, found = _seen(seat).audit(id), seat.records.audit_table.one(id)
    return attachment(iter([to_json(found.audit)]), f"audit-{view.row.name or id}.json", "application/json")


@router.get("/lab")
def lab(query: Annotated[AuditQuery, Query()], seat: Member) -> LabView | None:
    """What the lab last found out about the explanations of a revision; nothing, where it was not there yet."""
    return _seen(seat).lab(query.revision)


@router.post("/lab")
def plant(given: NewLab, seat: Manager, here: Here) -> Job:
    """Plant bugs, and see which explanation notices which."""
    offer = _views(seat).lab_offer()
    if offer.cannot:
        raise BadOption(offer.cannot)
    for name in given.bugs or ():
        known_method(name, offer.bugs, "bug")
    for name in given.methods or ():
        known_method(name, offer.methods, "explanation method")
    return enqueue("lab", given, seat, here)


@router.get("/lab/offer")
def lab_offer(seat: Member) -> LabOffer:
    """What the lab can plant and compare here."""
    return _views(seat).lab_offer()


@router.get("/verdicts")
def verdicts(query: Annotated[AuditQuery, Query()], seat: Member) -> VerdictSummary:
    """Whether people would deploy a revision, or any, by what they were shown; where judging is blind, my own."""
    return _views(seat).verdicts(query.revision)


def _views(seat: Seat) -> AuditViews:
    return seat.records.audit_views(seat.user.name, sees_others=seat.sees_others)


def _seen(seat: Seat) -> AuditViews:
    """The same for what tells predictions; refused to those who are to judge the words first."""
    if seat.words_first:
        raise NotAllowed("The words are judged first here: what the model says of texts is for managers to see.")
    return _views(seat)


def _with_job(view: AuditView, here: Room) -> AuditView:
    if view.row.job is None:
        return view
    try:
        return replace(view, job=here.workspace.jobs.get(view.row.job))
    except NotFound:  # of another workspace, where the project was before
        return view
