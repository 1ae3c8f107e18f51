"""Routes about projects: what there is, new ones, their settings, their data."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Literal

from anyio import CapacityLimiter, WouldBlock
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import SQLAlchemyError

from unhans.accounts import User
from unhans.data.writing import harmless
from unhans.errors import Busy, NotAllowed, NotFound, UnhansError
from unhans.jobs import Job
from unhans.server.identity import Creator, Here, Manager, Member, Room, SignedIn
from unhans.server.security import scrub
from unhans.shapes import (
    DataProblems,
    Home,
    Method,
    ProjectCard,
    ProjectFacts,
    ProjectPlan,
    ProjectSettings,
    Upload,
)

router = APIRouter(prefix="/api", tags=["projects"])
_RECENT = 20
_log = logging.getLogger("unhans.server")


@router.get("/home")
def home(user: SignedIn, here: Here) -> Home:
    """What needs attention first."""
    cards, problems = [], list(here.problems) if user.role != "annotator" else []
    for name in filter(user.may_see, here.workspace.names()):
        try:
            cards.append(_card(here, user, name))
        except (UnhansError, SQLAlchemyError) as error:  # one project that is damaged must not hide the others
            _log.warning("the project %r cannot be shown", name, exc_info=error)
            if user.may_manage(name):
                told = str(error) if isinstance(error, UnhansError) else "Its database cannot be read."
                problems.append(f"{name}: {told}")
    jobs = here.workspace.jobs.list(projects=visible(here, user), by=user.name, limit=_RECENT)
    open_ = [job for job in jobs if job.state in ("queued", "running", "failed") and may_watch(user, job)]
    cannot = here.workspace.cannot_create if user.role != "annotator" else "Only managers make projects."
    plain = tuple(scrub(problem, [str(here.workspace.root)]) for problem in problems)
    return Home(tuple(cards), tuple(open_), plain, not cannot, cannot)


@router.get("/projects/{project}/methods")
def methods(seat: Member) -> list[Method]:
    """The ways to explain, as the registry describes them, and whether they work with this model."""
    return seat.records.methods()


@router.post("/uploads")
async def upload(
    request: Request,
    kind: Literal["model", "data"],
    name: Annotated[str, Query(min_length=1, max_length=1000)],
    user: Creator,
    here: Here,
) -> Upload:
    """Send a file; the sender's name for it is only ever shown."""
    slots: CapacityLimiter = request.app.state.uploads
    try:
        slots.acquire_on_behalf_of_nowait(request)
    except WouldBlock as error:
        raise Busy("Other files are arriving just now. Nothing was stored; try again in a minute.") from error
    try:
        async with contextmanager_in_threadpool(here.workspace.receive(kind, name, user.name)) as file:
            async for some in request.stream():
                if some:
                    await run_in_threadpool(file.write, some)
    finally:
        slots.release_on_behalf_of(request)
    assert file.upload is not None
    return file.upload


@router.get("/uploads")
def uploads(user: Creator, here: Here) -> list[Upload]:
    """What I have sent and not yet made use of."""
    return here.workspace.uploads(user.name)


@router.post("/checks")
def check(plan: ProjectPlan, user: Creator, here: Here) -> Job:
    """Look at a model and data before a project is made of them."""
    return _planned("check", plan, user, here)


@router.post("/projects")
def create(plan: ProjectPlan, user: Creator, here: Here) -> Job:
    """Make a project of a model and data that were sent."""
    return _planned("create", plan, user, here)


@router.get("/projects/{project}")
def facts(seat: Member) -> ProjectFacts:
    """What a project is and how far it has come."""
    return seat.records.told(seat.project, seat.user.name)


@router.patch("/projects/{project}")
def change(given: ProjectSettings, seat: Manager) -> ProjectFacts:
    """Decide about the judging."""
    seat.records.change_settings(given)
    return seat.records.told(seat.project, seat.user.name)


@router.get("/projects/{project}/problems")
def problems(seat: Member) -> DataProblems:
    """What is doubtful about the data."""
    return seat.records.table.problems()


@router.get("/projects/{project}/problems/set-aside.csv", response_class=StreamingResponse)
def set_aside(seat: Manager) -> StreamingResponse:
    """All rows that were not read, as a table."""

    def lines() -> Iterator[str]:
        columns = ("row", "file", "line", "reason", "detail")
        yield _csv_line(columns)
        for row in seat.records.table.all_set_aside():
            told = asdict(row)
            yield _csv_line([harmless("" if told[name] is None else str(told[name])) for name in columns])

    return attachment(lines(), "set-aside.csv", "text/csv; charset=utf-8")


def attachment(lines: Iterator[str] | Iterator[bytes], name: str, kind: str) -> StreamingResponse:
    """A download: never shown by the browser, whatever is in it."""
    return StreamingResponse(lines, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def visible(here: Room, user: User) -> list[str] | None:
    """The projects whose jobs somebody may see; None: all of them."""
    return None if user.role == "admin" else [name for name in here.workspace.names() if user.may_see(name)]


def may_watch(user: User, job: Job) -> bool:
    """Whether a job may be shown: it belongs to a project of theirs, or to none and they asked for it."""
    return user.role == "admin" or (job.by == user.name if job.project is None else user.may_see(job.project))


def _card(here: Room, user: User, name: str) -> ProjectCard:
    records = here.workspace.records(name)
    return ProjectCard(
        name=name,
        title=records.name,
        examples=records.table.count(),
        labels=records.labels,
        progress=records.log.progress(user.name),
        resume=records.log.last_example(user.name),
    )


def _planned(kind: str, plan: ProjectPlan, user: User, here: Room) -> Job:
    if reason := here.workspace.cannot_create:
        raise NotAllowed(reason)
    for id_, what in ((plan.model, "model"), (plan.data, "data")):
        found, _ = here.workspace.upload(id_, what)
        if found.by != user.name and user.role != "admin":
            raise NotFound("This upload is not there any more. Send the file again.")
    return here.workspace.jobs.add(kind, project=None, by=user.name, options=asdict(plan))


def _csv_line(cells: list[str] | tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
