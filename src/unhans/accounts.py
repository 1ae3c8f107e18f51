"""People: accounts, sessions, invitations, and the token by which a single local user comes in.

Secrets (of sessions and invitations) are 32 random bytes; the tables hold only their hashes, so that a copy of the
database opens nothing. Passwords are stored as scrypt with their own salt and parameters. There is no default password.

Whoever guesses is slowed down, never locked out: see `Throttle`. A change of role, projects or password and the
removal of an account hold from the next request on in this process, and within a second in others.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import BadOption, Busy, Conflict, NoSpace, NotAllowed, NotFound, ProjectProblem, TooMuch
from unhans.store import Store
from unhans.store.schema import invites, sessions, users

Role = Literal["admin", "manager", "annotator"]
Cost = tuple[int, int, int]
"""scrypt's n, r and p: memory is 128·n·r bytes."""

SESSION_SECONDS = 30 * 86_400.0  # counted from the last visit
INVITE_SECONDS = 7 * 86_400.0
PREFERENCES_BYTES = 20_000
COST: Cost = (2**14, 8, 5)  # 16 MiB and about 0.2 s
_RENEW_SECONDS = 86_400.0  # a session is written again at most once a day
_CACHE_SECONDS = 1.0
_CACHED = 4096
_SESSIONS_EACH = 50
_HASHING_AT_ONCE = threading.BoundedSemaphore(2)  # log-ins may not take all the memory and all the processors
_HASHING_WAIT = 5.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class TooFast(TooMuch):
    """Too many tries or writes in a short time; after `seconds` it may be tried again."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


@dataclass(frozen=True)
class User:
    """An account as it is at the moment."""

    name: str
    role: Role
    projects: tuple[str, ...]  # those it may work in; administrators may work in all
    preferences: dict[str, Any]
    at: str

    def may_see(self, project: str) -> bool:
        """Whether this person may know that the project exists, and work in it."""
        return self.role == "admin" or project in self.projects

    def may_manage(self, project: str) -> bool:
        """Whether this person may change the project, start jobs in it and see everybody's answers."""
        return self.role == "admin" or (self.role == "manager" and project in self.projects)


@dataclass(frozen=True)
class Invitation:
    """A link that makes one account; its secret is not kept."""

    id: str
    role: Role
    projects: tuple[str, ...]
    by: str  # "": made from the shell
    expires: str
    used_by: str | None


class Accounts:
    """The people of a workspace. All methods may be called from any thread."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time, *, cost: Cost = COST) -> None:
        self._store, self._clock, self._cost = store, clock, cost
        self.throttle = Throttle(clock)
        self._known: OrderedDict[str, tuple[User, float, float]] = OrderedDict()  # session → user, its end, when read
        self._changes = 0
        self._guard = threading.Lock()
        self._nobody = _hashed(secrets.token_hex(16), cost)

    # -- accounts

    def add(self, name: str, role: Role, password: str | None, projects: Iterable[str] = ()) -> User:
        """A new account. Without a password it can only be entered by the token that the server prints."""
        row = self._row(name, role, password, projects)
        self._store.write(lambda connection: self._insert(connection, row))
        return _user(row)

    def remove(self, name: str) -> None:
        """Remove an account with its sessions and open invitations. Its feedback stays, under its name."""

        def act(connection: Connection) -> None:
            found = self._locked(connection, name)
            self._keep_an_admin(connection, found)
            self._withdraw_invites(connection, name)
            connection.execute(sa.delete(sessions).where(sessions.c.user == name))
            connection.execute(sa.delete(users).where(users.c.name == name))

        self._store.write(act)
        self._forget()

    def list(self) -> tuple[User, ...]:
        """All accounts, by name."""
        with self._store.read() as connection:
            return tuple(_user(row) for row in _rows(connection, sa.select(users).order_by(users.c.name)))

    def get(self, name: str) -> User | None:
        """The account of this name."""
        if not _NAME.fullmatch(name):
            return None
        with self._store.read() as connection:
            found = _rows(connection, sa.select(users).where(users.c.name == name))
        return _user(found[0]) if found else None

    def can_log_in(self) -> bool:
        """Whether an administrator with a password exists: what a server that others can reach needs."""
        asked = sa.select(users.c.name).where(users.c.role == "admin", users.c.password.is_not(None)).limit(1)
        with self._store.read() as connection:
            return connection.execute(asked).first() is not None

    def change(self, name: str, *, role: Role | None = None, projects: Iterable[str] | None = None) -> User:
        """Change an account's role or projects; None leaves it. Its open invitations are withdrawn: they were given
        with the rights it had.
        """
        new: dict[str, Any] = {}
        if role is not None:
            new["role"] = _checked_role(role)
        if projects is not None:
            new["projects"] = _listed(projects)

        def act(connection: Connection) -> User:
            found = self._locked(connection, name)
            if new.get("role", "admin") != "admin":
                self._keep_an_admin(connection, found)
            if new:
                connection.execute(sa.update(users).where(users.c.name == name).values(**new))
                self._withdraw_invites(connection, name)
            return _user({**found, **new})

        changed = self._store.write(act)
        self._forget()
        return changed

    def set_password(self, name: str, password: str, *, keep: str | None = None) -> None:
        """Give an account a new password and end its sessions, except the one whose secret is `keep`."""
        stored = _hashed(_checked_password(password), self._cost)
        kept = _hash(keep) if keep else ""

        def act(connection: Connection) -> None:
            self._locked(connection, name)
            connection.execute(sa.update(users).where(users.c.name == name).values(password=stored))
            connection.execute(sa.delete(sessions).where(sessions.c.user == name, sessions.c.secret != kept))

        self._store.write(act)
        self._forget()

    def change_password(self, name: str, old: str, new: str, address: str, *, keep: str | None = None) -> None:
        """Change one's own password: the old one is asked for, and guesses are slowed down as at the log-in."""
        _checked_password(new)
        if self._right_password(name, old, address) is None:
            raise NotAllowed("The old password is not right. Nothing was changed; try again.")
        self.set_password(name, new, keep=keep)

    def set_preferences(self, name: str, preferences: Mapping[str, Any]) -> User:
        """Keep what the browser wants to know next time: a JSON object of at most 20 kB."""
        try:
            size = len(json.dumps(preferences, ensure_ascii=False, allow_nan=False).encode())
        except (ValueError, TypeError, RecursionError):  # a lone surrogate is a ValueError
            raise BadOption("Preferences must be a plain JSON object. Nothing was changed.") from None
        if size > PREFERENCES_BYTES:
            raise TooMuch("Preferences may take 20 kB. Nothing was changed.")
        stored = json.dumps(dict(preferences), allow_nan=False)

        def act(connection: Connection) -> User:
            found = self._locked(connection, name)
            connection.execute(sa.update(users).where(users.c.name == name).values(preferences=stored))
            return _user({**found, "preferences": stored})

        changed = self._store.write(act)
        self._forget()
        return changed

    # -- sessions

    def log_in(self, name: str, password: str, address: str) -> str:
        """The secret of a new session. Unknown names and wrong passwords look and cost the same."""
        stored = self._right_password(name, password, address)
        if stored is None:
            raise NotAllowed("Name or password is not right. Try again, or ask an administrator for a new invitation.")
        return self.open_session(name, stored)

    def open_session(self, name: str, password: str | None = None) -> str:
        """The secret of a new session, for someone who has shown who they are; `password` as it was stored then."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        key = _hash(secret)

        def act(connection: Connection) -> None:
            found = self._locked(connection, name)
            if password is not None and found["password"] != password:
                raise NotAllowed("The password was changed at this moment. Log in with the new one.")
            mine = sessions.c.user == name
            # an act may run twice: what its first run made goes with the old ones
            connection.execute(sa.delete(sessions).where(sa.or_(sessions.c.until <= now, sessions.c.secret == key)))
            newest = sa.select(sessions.c.secret).where(mine).order_by(sessions.c.until.desc())
            kept = connection.execute(newest.limit(_SESSIONS_EACH - 1)).scalars().all()
            connection.execute(sa.delete(sessions).where(mine, sessions.c.secret.not_in(kept)))
            row = {"secret": key, "user": name, "until": now + SESSION_SECONDS}
            connection.execute(sa.insert(sessions).values(row))

        self._store.write(act)
        self._forget()  # the oldest session may have ended
        return secret

    def log_out(self, secret: str) -> None:
        """End a session; one that does not exist is over already."""
        ended = sa.delete(sessions).where(sessions.c.secret == _hash(secret))
        self._store.write(lambda connection: connection.execute(ended))
        self._forget()

    def who(self, secret: str) -> User | None:
        """Whose session this is; None if it is nobody's, has ended or expired. Meant for every request."""
        if len(secret) > 200:
            return None
        key, now = _hash(secret), self._clock()
        with self._guard:
            changes, known = self._changes, self._known.get(key)
        if known is None or time.monotonic() - known[2] > _CACHE_SECONDS:
            known = self._read_session(key)
            if known is None:
                return None
            self._remember(key, known, changes)
        user, until, _ = known
        if until <= now:
            return None
        if until - now < SESSION_SECONDS - _RENEW_SECONDS:
            self._renew(key, now)
        return user

    # -- invitations

    def invite(self, role: Role, projects: Iterable[str], by: str | None) -> tuple[Invitation, str]:
        """An invitation and its secret. Administrators invite anyone, managers annotators of their own projects.

        `by` is the name of who invites; None for the shell, which may do everything.
        """
        secret, listed = secrets.token_urlsafe(32), _listed(projects)
        row = {
            "id": secrets.token_hex(16),
            "secret": _hash(secret),
            "role": _checked_role(role),
            "projects": listed,
            "by": by or "",
            "until": self._clock() + INVITE_SECONDS,
            "used_by": None,
        }
        wanted = json.loads(listed)

        def act(connection: Connection) -> None:
            if by is not None:  # looked up here, so that rights which end at this moment give nothing away
                host = _user(self._locked(connection, by))
                own = role == "annotator" and wanted and all(map(host.may_manage, wanted))
                if not (host.role == "admin" or own):
                    raise NotAllowed("Managers may invite annotators, to their own projects. Nobody was invited.")
            connection.execute(sa.delete(invites).where(invites.c.id == row["id"]))  # made by a first run of this act
            connection.execute(sa.insert(invites).values(row))

        self._store.write(act)
        return _invitation(row), secret

    def invites(self, by: str | None = None) -> tuple[Invitation, ...]:
        """Invitations that are open or were used, the latest first; those that one person made, or all."""
        asked = sa.select(invites).where(sa.or_(invites.c.used_by.is_not(None), invites.c.until > self._clock()))
        asked = asked if by is None else asked.where(invites.c.by == by)
        with self._store.read() as connection:
            rows = _rows(connection, asked.order_by(invites.c.until.desc(), invites.c.id))
        return tuple(_invitation(row) for row in rows)

    def revoke(self, id: str, by: str | None = None) -> None:
        """Withdraw an invitation that nobody has used; with `by`, only one that this person made."""
        gone = sa.delete(invites).where(invites.c.id == id, invites.c.used_by.is_(None))
        gone = gone if by is None else gone.where(invites.c.by == by)

        def act(connection: Connection) -> None:
            if connection.execute(gone).rowcount != 1:
                raise NotFound("There is no such open invitation; it may have been used or withdrawn already.")

        self._store.write(act)

    def accept(self, secret: str, name: str, password: str, address: str) -> str:
        """Make the account that an invitation is for, once, and log it in: the secret of its first session."""
        mine, now = _hash(secret), self._clock()
        is_open = sa.and_(invites.c.secret == mine, invites.c.used_by.is_(None), invites.c.until > now)
        refusal = "This invitation is not valid any more. No account was made; ask for a new invitation."
        with self._store.read() as connection:
            found = _rows(connection, sa.select(invites).where(is_open))
        if not found:  # before the costly part: strangers may not make us hash
            self.throttle.attempt(address)
            raise NotAllowed(refusal)
        row = self._row(name, found[0]["role"], password, json.loads(found[0]["projects"]))

        def act(connection: Connection) -> None:
            self._store.lock(connection, "users")
            if self._is_made(connection, row):
                return
            if connection.execute(sa.update(invites).where(is_open).values(used_by=name)).rowcount != 1:
                raise NotAllowed(refusal)
            self._insert(connection, row)

        self._store.write(act)
        return self.open_session(name)

    # -- inside

    def _row(self, name: str, role: Role, password: str | None, projects: Iterable[str]) -> dict[str, Any]:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadOption("A name has 1 to 64 letters, digits or . _ @ - and begins with a letter or digit.")
        return {
            "name": name,
            "role": _checked_role(role),
            "projects": _listed(projects),
            "password": None if password is None else _hashed(_checked_password(password), self._cost),
            "preferences": "{}",
            "at": _moment(self._clock()),
        }

    def _insert(self, connection: Connection, row: dict[str, Any]) -> None:
        self._store.lock(connection, "users")
        if self._is_made(connection, row):
            return
        alike = sa.select(users.c.name).where(sa.func.lower(users.c.name) == row["name"].lower())
        if connection.execute(alike).first():  # names that differ in case only would be taken for one another
            raise Conflict("This name is taken. No account was made; choose another name.")
        connection.execute(sa.insert(users).values(row))

    def _is_made(self, connection: Connection, row: dict[str, Any]) -> bool:
        """Whether this very account is there already: an act runs again if the answer to its commit was lost."""
        asked = sa.select(users.c.password).where(users.c.name == row["name"])
        return row["password"] is not None and connection.execute(asked).scalar() == row["password"]

    def _locked(self, connection: Connection, name: str) -> dict[str, Any]:
        """The row of an account, while nobody else changes accounts."""
        self._store.lock(connection, "users")
        found = _rows(connection, sa.select(users).where(users.c.name == name)) if _NAME.fullmatch(name) else []
        if not found:
            raise NotFound("There is no account of this name.")
        return found[0]

    def _keep_an_admin(self, connection: Connection, row: Mapping[str, Any]) -> None:
        others = sa.select(users.c.name).where(users.c.role == "admin", users.c.name != row["name"]).limit(1)
        if row["role"] == "admin" and connection.execute(others).first() is None:
            raise Conflict("This is the last administrator. Nothing was changed; make someone else one first.")

    def _withdraw_invites(self, connection: Connection, name: str) -> None:
        connection.execute(sa.delete(invites).where(invites.c.by == name, invites.c.used_by.is_(None)))

    def _right_password(self, name: str, password: str, address: str) -> str | None:
        """The password as it is stored, if this is it."""
        attempt, stored = self.throttle.attempt(address, name), None
        if _NAME.fullmatch(name):  # PostgreSQL cannot even be asked for some strings
            with self._store.read() as connection:
                stored = connection.execute(sa.select(users.c.password).where(users.c.name == name)).scalar()
        if not _matches(password, stored or self._nobody) or stored is None:
            return None
        attempt.succeed()
        return cast(str, stored)

    def _read_session(self, key: str) -> tuple[User, float, float] | None:
        asked = sa.select(users, sessions.c.until).join_from(sessions, users).where(sessions.c.secret == key)
        read = time.monotonic()
        with self._store.read() as connection:
            found = _rows(connection, asked)
        return (_user(found[0]), found[0]["until"], read) if found else None

    def _remember(self, key: str, known: tuple[User, float, float], changes: int) -> None:
        with self._guard:
            if changes != self._changes:  # somebody changed accounts while we read: what we read may be old
                return
            self._known[key] = known
            if len(self._known) > _CACHED:
                self._known.popitem(last=False)

    def _forget(self) -> None:
        with self._guard:
            self._changes += 1
            self._known.clear()

    def _renew(self, key: str, now: float) -> None:
        later = sa.update(sessions).where(sessions.c.secret == key).values(until=now + SESSION_SECONDS)
        # reading goes on when nothing can be written; the session is good as it is, and the next visit tries again
        with suppress(NoSpace, Busy, ProjectProblem):
            self._store.write(lambda connection: connection.execute(later))
        self._forget()


class LocalToken:
    """The token in the address that the server prints: who has it is the local user, an administrator.

    It is new at each start and good as often as it is used until the server stops, so that the printed link can be
    opened again (after a reload, in another browser). It is exchanged for a session at once and leaves the address.
    The right token (like the right invitation) is never slowed down: it cannot be guessed, and a web page that sends
    wrong ones from the user's own machine must not keep the user out.
    """

    def __init__(self, accounts: Accounts, name: str = "local") -> None:
        self._accounts, self.name, self.token = accounts, name, secrets.token_hex(32)
        if accounts.get(name) is None:
            with suppress(Conflict):  # another process was faster
                accounts.add(name, "admin", None)

    def exchange(self, given: str, address: str) -> str:
        """The secret of a new session of the local user."""
        if hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return self._accounts.open_session(self.name)
        self._accounts.throttle.attempt(address)
        raise NotAllowed("This link is not valid any more. Open the one that the server printed when it started.")


# -- slowing down guesses


_Key = tuple[str, str, str]
_Mark = tuple[_Key, float, float]


@dataclass
class _Count:
    failures: float = 0.0
    until: float = 0.0  # no try before this moment
    last: float = 0.0


@dataclass(frozen=True)
class _Rule:
    free: int  # failures without a pause
    longest: float  # pause in seconds


_RULES = {
    "pair": _Rule(5, 60.0),  # one account from one address: somebody who types, or guesses
    "address": _Rule(30, 30.0),  # many people may share one
    "account": _Rule(20, 30.0),  # guessing from many addresses
}


class Throttle:
    """Pauses after failures, doubling from a second: per account and address together, per address, per account.

    A try counts as failed until it has succeeded, so that tries at the same time do not slip through. Whoever has
    succeeded from an address before is held up there only by their own failures: nobody can lock them out by guessing
    at their account, or from behind the same address. Old and surplus counts are dropped, so memory is bounded.
    """

    KEPT = 20_000
    FORGET_SECONDS = 900.0

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: OrderedDict[_Key, _Count] = OrderedDict()
        self._trusted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._guard = threading.Lock()

    def attempt(self, address: str, account: str = "") -> Attempt:
        """Begin a try, which counts as failed unless it is told otherwise; TooFast if it is too early for one.

        Without an account it is about a secret that cannot be guessed; only addresses are counted then.
        """
        address, account = _network(address), account.lower()[:64]
        keys = [("pair", address, account), ("address", address, "")]
        keys += [("account", "", account)] if account else []
        now = self._clock()
        with self._guard:
            binding = keys[:1] if (address, account) in self._trusted else keys
            wait = max(self._count(key, now).until - now for key in binding)
            if wait > 0:
                raise TooFast(f"Too many tries. Wait {int(wait) + 1} seconds, then try again.", wait)
            marks = tuple((key, *self._fail(key, now)) for key in keys)
        return Attempt(self, (address, account), marks)

    def succeeded(self, pair: tuple[str, str], marks: tuple[_Mark, ...]) -> None:
        """Take the failures back that `attempt` counted."""
        with self._guard:
            for key, before, after in marks:
                if (count := self._counts.get(key)) is not None:
                    count.failures = max(0.0, count.failures - 1) if key[0] != "pair" else 0.0
                    count.until = before if count.until == after else count.until
            self._trusted[pair] = None
            self._trusted.move_to_end(pair)
            if len(self._trusted) > self.KEPT:
                self._trusted.popitem(last=False)

    def _count(self, key: _Key, now: float) -> _Count:
        count = self._counts.get(key)
        # a clock that was set back must not prolong a pause
        if count is None or not count.last <= now <= count.last + self.FORGET_SECONDS:
            return _Count()
        return count

    def _fail(self, key: _Key, now: float) -> tuple[float, float]:
        """Count a failure; when the next try was allowed before, and when it is now."""
        count, rule = self._count(key, now), _RULES[key[0]]
        before = count.until
        count.failures += 1
        count.last = now
        over = count.failures - rule.free
        if over >= 0:
            count.until = max(before, now + min(rule.longest, 2.0 ** min(over, 30)))
        self._counts[key] = count
        self._counts.move_to_end(key)
        if len(self._counts) > self.KEPT:
            self._counts.popitem(last=False)
        return before, count.until


@dataclass(frozen=True)
class Attempt:
    """A try that counts as failed unless `succeed` is called."""

    _throttle: Throttle
    _pair: tuple[str, str]
    _marks: tuple[_Mark, ...]

    def succeed(self) -> None:
        """The try was right."""
        self._throttle.succeeded(self._pair, self._marks)


def _network(address: str) -> str:
    """What one person has: an IPv4 address, or a /64 of IPv6 addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


# -- small parts


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _scrypt(password: str, salt: bytes, cost: Cost) -> bytes:
    n, r, p = cost
    plain = unicodedata.normalize("NFC", password).encode("utf-8", "replace")  # keyboards differ in how they compose é
    if not _HASHING_AT_ONCE.acquire(timeout=_HASHING_WAIT):
        raise Busy("Too many people log in at this moment. Try again in a moment.")
    try:
        return hashlib.scrypt(plain, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r + 2**20)
    finally:
        _HASHING_AT_ONCE.release()


def _hashed(password: str, cost: Cost) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${cost[0]}${cost[1]}${cost[2]}${salt.hex()}${_scrypt(password, salt, cost).hex()}"


def _matches(password: str, stored: str) -> bool:
    _, n, r, p, salt, right = stored.split("$")
    return hmac.compare_digest(_scrypt(password, bytes.fromhex(salt), (int(n), int(r), int(p))), bytes.fromhex(right))


def _checked_password(password: str) -> str:
    if not isinstance(password, str) or not 10 <= len(password) <= 500:
        raise BadOption("A password has 10 to 500 characters. Nothing was changed; choose a longer one.")
    return password


def _checked_role(role: str) -> Role:
    if role not in get_args(Role):
        raise BadOption(f"A role is one of {', '.join(get_args(Role))}.")
    return cast(Role, role)


def _listed(projects: Iterable[str]) -> str:
    names = [] if isinstance(projects, str) else sorted(set(projects))
    if isinstance(projects, str) or len(names) > 1000 or not all(0 < len(n) <= 200 and n.isprintable() for n in names):
        raise BadOption("Projects are given as a list of at most 1,000 names.")
    return json.dumps(names)


def _rows(connection: Connection, asked: sa.Select[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(asked).mappings()]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _user(row: Mapping[str, Any]) -> User:
    projects, preferences = tuple(json.loads(row["projects"])), json.loads(row["preferences"])
    return User(row["name"], row["role"], projects, preferences, row["at"])


def _invitation(row: Mapping[str, Any]) -> Invitation:
    projects, expires = tuple(json.loads(row["projects"])), _moment(row["until"])
    return Invitation(row["id"], row["role"], projects, row["by"], expires, row["used_by"])
