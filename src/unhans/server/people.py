"""Routes about people: signing in, accounts, invitations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from unhans import __version__
from unhans.accounts import Invitation, User
from unhans.errors import NotFound
from unhans.server.identity import Administrator, Creator, Here, SignedIn, address_of, secret_of
from unhans.server.security import clear_cookie, set_cookie
from unhans.shapes import Invite, Join, Login, Me, NewInvite, NewPassword, Person, PersonChange, UserName

router = APIRouter(prefix="/api", tags=["people"])


@router.post("/login")
def login(given: Login, request: Request, response: Response, here: Here) -> Me:
    """Name and password become a session."""
    secret = here.accounts.log_in(given.name, given.password, address_of(request))
    set_cookie(response, here.settings, secret)
    return _me(here, here.accounts.who(secret))


@router.post("/join")
def join(given: Join, request: Request, response: Response, here: Here) -> Me:
    """An invitation becomes an account, which is signed in."""
    secret = here.accounts.accept(given.invite, given.name, given.password, address_of(request))
    set_cookie(response, here.settings, secret)
    return _me(here, here.accounts.who(secret))


@router.post("/logout", status_code=204)
def logout(request: Request, response: Response, here: Here) -> None:
    """End this session."""
    here.accounts.log_out(secret_of(request))
    clear_cookie(response, here.settings)


@router.get("/me")
def me(user: SignedIn, here: Here) -> Me:
    """Who I am."""
    return _me(here, user)


@router.put("/me/preferences")
def change_preferences(given: dict[str, Any], user: SignedIn, here: Here) -> Me:
    """Keep what my browser wants to know next time."""
    return _me(here, here.accounts.set_preferences(user.name, given))


@router.post("/me/password")
def change_password(given: NewPassword, user: SignedIn, request: Request, here: Here) -> Me:
    """Change my password; my other sessions end."""
    here.accounts.change_password(user.name, given.old, given.new, address_of(request), keep=secret_of(request))
    return _me(here, user)


@router.get("/people")
def people(user: Administrator, here: Here) -> list[Person]:
    """All accounts."""
    return [_person(one) for one in here.accounts.list()]


@router.patch("/people/{name}")
def change_person(name: UserName, given: PersonChange, user: Administrator, here: Here) -> Person:
    """Change somebody's role or projects, from their next request on."""
    return _person(here.accounts.change(name, role=given.role, projects=given.projects))


@router.delete("/people/{name}", status_code=204)
def remove_person(name: UserName, user: Administrator, here: Here) -> None:
    """Remove an account; what it answered stays."""
    here.accounts.remove(name)


@router.get("/invites")
def invites(user: Creator, here: Here) -> list[Invite]:
    """Invitations: all for administrators, one's own for managers."""
    return [_invite(one) for one in here.accounts.invites(None if user.role == "admin" else user.name)]


@router.post("/invites")
def invite(given: NewInvite, user: Creator, here: Here) -> Invite:
    """A link that makes one account."""
    known = set(filter(user.may_see, here.workspace.names()))  # others must not be found out by guessing
    if unknown := [name for name in given.projects if name not in known]:
        raise NotFound(f"There is no project {unknown[0]!r}. Nobody was invited.")
    made, secret = here.accounts.invite(given.role, given.projects, user.name)
    return _invite(made, secret)


@router.delete("/invites/{id}", status_code=204)
def withdraw(id: Annotated[str, Path(max_length=64)], user: Creator, here: Here) -> None:
    """Withdraw an invitation that nobody has used."""
    here.accounts.revoke(id, None if user.role == "admin" else user.name)


def _me(here: Here, user: User | None) -> Me:
    assert user is not None
    alone = here.token is not None and user.name == here.token.name and len(here.accounts.list()) == 1
    return Me(user.name, user.role, alone, __version__, user.preferences)


def _person(user: User) -> Person:
    return Person(user.name, user.role, user.projects, user.at)


def _invite(made: Invitation, secret: str | None = None) -> Invite:
    return Invite(made.id, made.role, made.projects, made.by, made.expires, made.used_by, secret)
