"""Routes about jobs: asking for work, watching it, stopping it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from unhans.accounts import User
from unhans.errors import BadOption, NotAllowed, NotFound, TooMuch
from unhans.jobs import Job
from unhans.server.identity import Here, Member, Room, Seat, SignedIn, secret_of
from unhans.server.projects import may_watch, visible
from unhans.shapes import Method, NewJob

router = APIRouter(prefix="/api", tags=["jobs"])
JobId = Annotated[str, Path(max_length=64)]
_STREAMS_EACH = 12  # tabs of one person
_PING_SECONDS = 15
_WAITING = 100  # jobs of a project that may wait
_jobs = TypeAdapter(list[Job])


@router.post("/projects/{project}/jobs")
def ask(given: NewJob, seat: Member, here: Here) -> Job:
    """Have a project's examples predicted or explained, or its words ranked."""
    alone = given.kind == "explain" and given.places is not None and len(given.places) == 1
    if not seat.manages and not alone:
        raise NotAllowed("Annotators may have single examples explained; ask a manager for more.")
    if given.kind != "predict":
        method = known_method(given.method, tuple(seat.records.methods()), "method")
        if unknown := set(given.options or {}) - {option.name for option in method.options}:
            raise BadOption(f"{method.name} has no option {sorted(unknown)[0][:50]!r}.")
    if given.target is not None and given.target not in seat.records.labels:
        raise BadOption("The model has no such label.")
    if given.places:
        seat.records.table.some(given.places[:1000])
        if len(given.places) > 1000:
            raise TooMuch("At most 1,000 places can be named; use limit for more.")
    return enqueue(given.kind, given, seat, here)


def enqueue(kind: str, given: Any, seat: Seat, here: Room, *, for_all: bool = True) -> Job:
    """Have some work done in a project; where the very same waits or runs already, that is it.

    What depends on who asks for it is not `for_all`: it is the same only if the same person asked.
    """
    options = json.loads(json.dumps(asdict(given)))  # as it comes back from the queue: lists for tuples
    waiting = here.workspace.jobs.list(projects=[seat.project], states=["queued", "running"], limit=_WAITING)
    if len(waiting) >= _WAITING:
        raise TooMuch(f"{_WAITING} jobs of this project are waiting already. Nothing was added.")
    asked = [job for job in waiting if for_all or job.by == seat.user.name]
    same = next((job for job in asked if job.kind == kind and job.options == options), None)
    return same or here.workspace.jobs.add(kind, project=seat.project, by=seat.user.name, options=options)


def known_method(name: str, known: tuple[Method, ...], what: str) -> Method:
    """The one of this name, if it is there and can be used."""
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise BadOption(f"There is no {what} {name[:50]!r}.")
    if not found.usable:
        raise BadOption(found.unusable)
    return found


@router.get("/jobs")
def jobs(user: SignedIn, here: Here, project: Annotated[str | None, Query(max_length=200)] = None) -> list[Job]:
    """Jobs that I may see, newest first."""
    return _seen(here, user, project)


@router.get("/jobs/{id}")
def job(id: JobId, user: SignedIn, here: Here) -> Job:
    """One job."""
    return _one(id, user, here)


@router.post("/jobs/{id}/cancel")
def cancel(id: JobId, user: SignedIn, here: Here) -> Job:
    """Stop a job; what it has finished is kept."""
    _may_change(user, _one(id, user, here))
    return here.workspace.jobs.cancel(id)


@router.post("/jobs/{id}/retry")
def retry(id: JobId, user: SignedIn, here: Here) -> Job:
    """Have a job that failed or was stopped done again; it goes on from what is there."""
    _may_change(user, _one(id, user, here))
    return here.workspace.jobs.retry(id)


@router.get("/events", response_class=StreamingResponse)
async def events(user: SignedIn, request: Request, here: Here) -> StreamingResponse:
    """Server-sent events: `jobs` with the list, now and whenever one of them changed."""
    streams: dict[str, int] = request.app.state.streams
    if streams.get(user.name, 0) >= _STREAMS_EACH:
        raise TooMuch("Too many windows are open. Close some of them.")
    secret = secret_of(request)

    async def news() -> AsyncIterator[str]:
        streams[user.name] = streams.get(user.name, 0) + 1
        try:
            seen, quiet = -1, 0
            while not here.stopping.is_set():
                now = here.feed.seen if seen < 0 else await here.feed.next(seen, 1.0)
                # a session may have ended, or a role changed, since the last piece of news
                asking = await run_in_threadpool(here.accounts.who, secret)
                if asking is None:
                    return
                if now == seen:
                    quiet += 1
                    if quiet % _PING_SECONDS == 0:
                        yield ": still here\n\n"
                    continue
                seen, quiet = now, 0
                found = await run_in_threadpool(_seen, here, asking, None)
                yield f"event: jobs\ndata: {_jobs.dump_json(found).decode()}\n\n"
        finally:
            streams[user.name] -= 1

    return StreamingResponse(news(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _seen(here: Room, user: User, project: str | None) -> list[Job]:
    if project is not None and not user.may_see(project):
        raise NotFound("There is no such project.")
    if project is not None:
        return list(here.workspace.jobs.list(projects=[project], limit=100))
    # the making of a project belongs to none yet: whoever asked for it sees it
    return list(here.workspace.jobs.list(projects=visible(here, user), by=user.name, limit=100))


def _one(id_: str, user: User, here: Room) -> Job:
    found = here.workspace.jobs.get(id_)
    if not may_watch(user, found):
        raise NotFound("There is no such job.")
    return found


def _may_change(user: User, job: Job) -> None:
    own = job.by == user.name and (job.project is not None or user.role != "annotator")  # roles may have changed
    if not (own or user.role == "admin" or (job.project is not None and user.may_manage(job.project))):
        raise NotAllowed("Only managers, and whoever asked for it, may change this job.")
