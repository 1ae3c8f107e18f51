"""The web application around a workspace: `make_app`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import anyio
from fastapi import FastAPI, Query, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp

from unhans import __version__
from unhans.accounts import Accounts, LocalToken
from unhans.errors import NotFound, ProjectProblem
from unhans.records.judging import Differs
from unhans.server import auditing, fixing, flipping, judging, people, projects, running, tracing
from unhans.server.feed import JobFeed
from unhans.server.identity import Here, NotSignedIn, Room, address_of
from unhans.server.security import RateLimit, Settings, StrictJSON, error_answer, install_errors, protect, set_cookie
from unhans.shapes import ErrorAnswer
from unhans.types import to_json
from unhans.workspace import Workspace

STATIC = Path(__file__).resolve().parent.parent / "static"
_UPLOADS_AT_ONCE = 2
_ERRORS = {
    code: {"model": ErrorAnswer} for code in (400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 500, 503, 507)
}


def make_app(
    workspace: Workspace,
    *,
    accounts: Accounts | None = None,
    token: LocalToken | None = None,
    settings: Settings | None = None,
    stopping: threading.Event | None = None,
) -> ASGIApp:
    """The application that serves a workspace, behind all its guards. It runs no model: jobs do, elsewhere.

    `token` lets the single local user in; `stopping` ends streams of news when the server is about to stop.
    """
    settings = settings or Settings()
    return protect(bare_app(workspace, accounts, token, settings, stopping), settings)


def bare_app(
    workspace: Workspace,
    accounts: Accounts | None = None,
    token: LocalToken | None = None,
    settings: Settings | None = None,
    stopping: threading.Event | None = None,
) -> FastAPI:
    """The application without its guards, for its schema and its routes."""

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        app.state.uploads = anyio.CapacityLimiter(_UPLOADS_AT_ONCE)
        anyio.to_thread.current_default_thread_limiter().total_tokens = 64
        await room.feed.start()
        try:
            yield
        finally:
            room.stopping.set()
            await room.feed.stop()

    app = FastAPI(
        title="unhans",
        version=__version__,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        lifespan=living,
        default_response_class=StrictJSON,
        responses=_ERRORS,  # type: ignore[arg-type]
    )
    room = Room(
        workspace=workspace,
        accounts=accounts or Accounts(workspace.store),
        token=token,
        settings=settings or Settings(),
        feed=JobFeed(workspace.jobs),
        limit=RateLimit(),
        problems=tuple(workspace.tidy(time.time())),
        stopping=stopping or threading.Event(),
    )
    app.state.room, app.state.streams = room, {}
    install_errors(app, [workspace.root])
    app.add_exception_handler(NotSignedIn, _not_signed_in)
    app.add_exception_handler(Differs, _differs)
    for module in (people, projects, judging, running, fixing, flipping, tracing, auditing):
        app.include_router(module.router)
    app.add_api_route("/healthz", _health, include_in_schema=False)
    app.add_api_route("/", _page, include_in_schema=False, response_class=Response)
    app.add_api_route("/icon.svg", _icon, include_in_schema=False, response_class=Response)
    app.mount("/assets", StaticFiles(directory=STATIC / "assets", check_dir=False))
    return app


def _health() -> dict[str, bool]:
    """Whether the server answers."""
    return {"ok": True}


def _page(request: Request, here: Here, token: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """The page; with the token that the server printed, a session first, and the token leaves the address."""
    if token is not None and here.token is not None:
        answer = RedirectResponse("./", status_code=303)
        set_cookie(answer, here.settings, here.token.exchange(token, address_of(request)))
        return answer
    page = STATIC / "index.html"
    if not page.is_file():
        raise ProjectProblem("The page is not built. Install unhans anew (`pip install .`), which builds it.")
    return FileResponse(page, headers={"Cache-Control": "no-cache"})


def _icon() -> Response:
    """The sign in the browser's tab."""
    if not (STATIC / "icon.svg").is_file():
        raise NotFound("There is no such file.")
    return FileResponse(STATIC / "icon.svg")


async def _not_signed_in(request: Request, error: Exception) -> Response:
    return error_answer(request, 401, "sign_in", str(error))


async def _differs(request: Request, error: Exception) -> Response:
    assert isinstance(error, Differs)
    current = json.loads(to_json(error.current)) if error.current else None
    return error_answer(request, 409, "conflict", str(error), current=current)
