"""Who is asking, and whether they may: the dependencies that routes are guarded by.

A route that is not open to all takes one of `SignedIn`, `Creator`, `Administrator`, `Member` and `Manager`; a test
walks through all routes and all roles. A project that somebody may not see answers as one that does not exist.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request

from unhans.accounts import Accounts, LocalToken, User
from unhans.errors import NotAllowed, NotFound
from unhans.records import Records
from unhans.server.feed import JobFeed
from unhans.server.security import RateLimit, Settings
from unhans.workspace import Workspace

SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Room:
    """What all routes share; handed to the application when it is made."""

    workspace: Workspace
    accounts: Accounts
    token: LocalToken | None
    settings: Settings
    feed: JobFeed
    limit: RateLimit
    problems: tuple[str, ...]  # found at the start, for managers
    stopping: threading.Event  # set when the server is about to stop


class NotSignedIn(NotAllowed):
    """Nobody knows who is asking."""


@dataclass(frozen=True)
class Seat:
    """Somebody in a project."""

    user: User
    project: str  # its address
    records: Records
    manages: bool

    @property
    def sees_others(self) -> bool:
        """Whether other people's answers may be shown."""
        return self.manages or not self.records.settings.blind

    @property
    def words_first(self) -> bool:
        """Whether what the model says of an example is told only once this person has judged its words."""
        return not self.manages and self.records.settings.hide_prediction


def room(request: Request) -> Room:
    """What the application was made with."""
    found: Room = request.app.state.room
    return found


def secret_of(request: Request) -> str:
    """The session that the browser holds; empty if none."""
    return request.cookies.get(room(request).settings.cookie, "")


def address_of(request: Request) -> str:
    """Where the request came from, for slowing down guesses."""
    return request.client.host if request.client else "-"


def signed_in(request: Request) -> User:
    """Somebody whose session holds."""
    here = room(request)
    user = here.accounts.who(secret_of(request))
    if user is None:
        raise NotSignedIn("Please sign in again. Nothing was lost.")
    if request.method not in SAFE:
        here.limit.take(user.name)
    return user


def creator(user: Annotated[User, Depends(signed_in)]) -> User:
    """Somebody who may make projects."""
    if user.role == "annotator":
        raise NotAllowed("Only managers may do this. Ask one of them.")
    return user


def administrator(user: Annotated[User, Depends(signed_in)]) -> User:
    """Somebody who may do everything."""
    if user.role != "admin":
        raise NotAllowed("Only administrators may do this. Ask one of them.")
    return user


def member(
    request: Request,
    project: Annotated[str, Path(min_length=1, max_length=200)],
    user: Annotated[User, Depends(signed_in)],
) -> Seat:
    """Somebody who may work in this project."""
    if not user.may_see(project):
        raise NotFound("There is no such project.")
    return Seat(user, project, room(request).workspace.records(project), user.may_manage(project))


def manager(seat: Annotated[Seat, Depends(member)]) -> Seat:
    """Somebody who runs this project."""
    if not seat.manages:
        raise NotAllowed("Only managers of this project may do this. Ask one of them.")
    return seat


Here = Annotated[Room, Depends(room)]
SignedIn = Annotated[User, Depends(signed_in)]
Creator = Annotated[User, Depends(creator)]
Administrator = Annotated[User, Depends(administrator)]
Member = Annotated[Seat, Depends(member)]
Manager = Annotated[Seat, Depends(manager)]
