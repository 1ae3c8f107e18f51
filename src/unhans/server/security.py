"""What stands between the network and the application: `protect` around it, `install_errors` inside it.

`protect` looks at every request before the application does: for whom it is meant (Host), where it comes from (Origin),
what it carries (type, size, speed, well-formed JSON); and at every answer: headers, one shape of errors, a request id.
Nothing here knows about people or projects; who may do what is decided by the routes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unhans import errors
from unhans.accounts import SESSION_SECONDS, TooFast
from unhans.errors import BadOption, UnhansError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
JSON_BYTES = 2 * 2**20
_DEPTH = 64
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?)(?::([0-9]{1,5}))?", re.IGNORECASE)
_access, _log = logging.getLogger("unhans.access"), logging.getLogger("unhans.server")


# -- settings


@dataclass(frozen=True)
class Body:
    """What requests to some paths may carry; the first rule that fits counts."""

    path: str  # a regular expression for the whole path, without the root path
    types: tuple[str, ...]
    limit: int  # bytes
    kind: str | None = None  # the query's only `kind`, if it matters


BODIES = (
    Body(r"/api/uploads", ("application/octet-stream",), 2 * 2**30, kind="model"),
    Body(r"/api/uploads", ("application/octet-stream",), 256 * 2**20),
    Body(
        r"/api/projects/[^/]+/feedback/import",
        ("application/octet-stream", "application/x-ndjson", "application/jsonl", "text/csv"),
        64 * 2**20,
    ),
)
_JSON = ("application/json",)


@dataclass(frozen=True)
class Settings:
    """How this server is reached, and what it takes."""

    allowed_hosts: tuple[str, ...] = ()  # besides the loopback names: `name`, or `name:port` if people type a port
    root_path: str = ""  # where a proxy has put us, such as /unhans
    secure: bool = False  # people reach us by https (which a proxy in front of us speaks)
    port: int = 8000  # browsers send cookies to all ports of a host: two servers must not share one
    bodies: tuple[Body, ...] = BODIES  # everything else carries JSON or nothing
    json_bytes: int = JSON_BYTES
    grace_seconds: float = 10.0  # waiting for a body may take this long in all …
    slowest: float = 10_000.0  # … and a second more for every so many bytes that came

    def __post_init__(self) -> None:
        for name in self.allowed_hosts:
            if not _HOST.fullmatch(name):
                raise BadOption(f"--allowed-host takes a host name such as unhans.example.org, not {name!r}.")
        if self.root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", self.root_path):
            raise BadOption("--root-path takes a path such as /unhans, without a slash at the end.")

    @property
    def cookie(self) -> str:
        """Name of the session cookie."""
        return f"{'__Host-' if self.secure and not self.root_path else ''}unhans-{self.port}"


def check_bind(host: str, has_accounts: bool, allowed_hosts: Sequence[str]) -> None:
    """Refuse to listen where others can reach us, unless people must log in and the name they use is known."""
    if host.lower() == "localhost":
        return
    try:
        if ip_address(host.strip("[]")).is_loopback:
            return
    except ValueError:
        pass  # a name, which may lead anywhere
    if not (has_accounts and allowed_hosts):
        raise BadOption(
            f"--host {_plain(host)} would let other machines reach this server. It was not started. For that, make an "
            "administrator with a password (unhans user add NAME --role admin) and give the name in the address that "
            "people will open (--allowed-host NAME)."
        )


def set_cookie(response: Response, settings: Settings, secret: str) -> None:
    """Hand a session to the browser."""
    response.set_cookie(
        settings.cookie,
        secret,
        max_age=int(SESSION_SECONDS),
        path=settings.root_path or "/",
        secure=settings.secure,
        httponly=True,
        samesite="lax",
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    """Take the session from the browser."""
    path = settings.root_path or "/"
    response.delete_cookie(settings.cookie, path=path, secure=settings.secure, httponly=True, samesite="lax")


# -- around the application


def protect(app: ASGIApp, settings: Settings) -> ASGIApp:
    """The application behind all checks that do not depend on who asks."""
    return _Guard(app, settings)


class _Refused(Exception):
    """An answer that is given instead of the application's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Guard:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._hosts = {_split_host(name)[0] for name in (*LOOPBACK, *settings.allowed_hosts)}
        self._given = {_split_host(name) for name in settings.allowed_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # there are none; before `accept`, this is a 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id, path, root = secrets.token_hex(8), _route(scope, self._settings), self._settings.root_path
        scope = {**scope, "state": {**scope.get("state", {}), "request_id": request_id}}
        if root:
            scope |= {"root_path": root, "path": root + path}
        out = _Outgoing(send, request_id, path)
        body: _Incoming | None = None
        started = time.monotonic()
        try:
            self._check_request(scope, path)
            if scope["method"] not in _SAFE:
                body = await self._check_body(scope, path, receive)
            await self._app(scope, body or receive, out.application(body))
            if body is not None and body.refusal is not None:
                raise body.refusal
        except _Refused as refusal:
            await out.refuse(refusal)
        except ClientDisconnect:
            out.status = 499  # nobody is left to answer; the number is for the log
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets the one shape and the log the trace
            if body is not None and body.refusal is not None:
                await out.refuse(body.refusal)
            else:
                _log.error("request %s failed", request_id, exc_info=error)
                await out.refuse(_unforeseen(request_id))
        finally:
            address = (scope.get("client") or ("-",))[0]
            spent = (time.monotonic() - started) * 1000
            line = (request_id, address, scope["method"], scope["path"], out.status, f"{spent:.0f}ms")
            _access.info("%s", " ".join(_plain(str(part)).replace(" ", "%20") for part in line))

    def _check_request(self, scope: Scope, path: str) -> None:
        if path == "/healthz":
            return
        hosts = _headers(scope, b"host")
        try:
            host = _split_host(hosts[0]) if len(hosts) == 1 else None
        except ValueError:
            host = None
        if host is None or host[0] not in self._hosts:
            raise _Refused(
                421, "wrong_host", "This server does not go by that name. It is added by --allowed-host NAME."
            )
        if (scope["method"] not in _SAFE or f"{path}/".startswith("/api/")) and not self._is_from_here(scope, host):
            raise _Refused(
                403, "cross_site", "This request came from another website and was refused. Nothing changed."
            )
        if "\0" in scope["path"]:
            raise _Refused(404, "not_found", _SENTENCES[404])
        if "\0" in unquote(scope.get("query_string", b"").decode("latin-1")):
            raise _Refused(400, "invalid", "The address contains a character that no text here has.")

    def _is_from_here(self, scope: Scope, host: tuple[str, int | None]) -> bool:
        """Whether the page that sent this is ours, as far as the browser says; other programs say nothing."""
        if sites := _headers(scope, b"sec-fetch-site"):
            return all(site in ("same-origin", "none") for site in sites)
        origins = _headers(scope, b"origin")
        if not origins:
            return True
        scheme, _, rest = origins[0].partition("://")
        usual = {"https": 443, "http": 80}.get(scheme)
        if len(origins) > 1 or usual is None or (self._settings.secure and scheme != "https"):
            return False
        try:
            name, port = _split_host(rest)
        except ValueError:
            return False
        # a proxy may send its own Host; the name that people use is then the one given by --allowed-host
        return any((name, port or usual) == (known, known_port or usual) for known, known_port in {host, *self._given})

    async def _check_body(self, scope: Scope, path: str, receive: Receive) -> _Incoming:
        rule = self._rule(scope, path)
        types, encodings = _headers(scope, b"content-type"), _headers(scope, b"content-encoding")
        kind, _, options = (types or [""])[0].lower().partition(";")
        charset = options.replace(" ", "").replace('"', "")
        is_json = rule.types == _JSON
        known = not types if is_json and not kind else kind.strip() in rule.types and charset in ("", "charset=utf-8")
        wrong_type = f"This address takes {' or '.join(rule.types)} only. Nothing was changed."
        if len(types) > 1 or encodings or not known:
            raise _Refused(415, "wrong_type", wrong_type)
        body = _Incoming(receive, rule.limit, self._settings)
        body.check_length(_headers(scope, b"content-length"))
        if is_json and (whole := await body.read()):
            if not types:
                raise _Refused(415, "wrong_type", wrong_type)
            large = len(whole) > 100_000  # takes long enough to be felt by others
            problem = await asyncio.to_thread(check_json, whole) if large else check_json(whole)
            if problem is not None:
                raise _Refused(400, "invalid", f"The request is not proper JSON: {problem}. Nothing was changed.")
        return body

    def _rule(self, scope: Scope, path: str) -> Body:
        kinds = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("kind")
        for rule in self._settings.bodies:
            if re.fullmatch(rule.path, path) and (rule.kind is None or kinds == [rule.kind]):
                return rule
        return Body(".*", _JSON, self._settings.json_bytes)


class _Incoming:
    """A body that is counted and timed while it comes in; a JSON one is read first and played back."""

    def __init__(self, receive: Receive, limit: int, settings: Settings) -> None:
        self._receive, self._limit, self._settings = receive, limit, settings
        self._count, self._waited, self._ended = 0, 0.0, False
        self._held: Message | None = None
        self.refusal: _Refused | None = None

    async def __call__(self) -> Message:
        if self._held is not None:
            message, self._held = self._held, None
            return message
        if self._ended:
            return await self._receive()  # waits for the client to go away, for as long as it takes
        return await self._next()

    async def read(self) -> bytes:
        """All of it; afterwards the application gets it in one piece."""
        parts = []
        while not self._ended:
            message = await self._next()
            if message["type"] != "http.request":
                raise self._refuse(400, "invalid", "The request ended too early. Nothing was changed.")
            parts.append(message.get("body", b""))
        whole = b"".join(parts)
        self._held = {"type": "http.request", "body": whole, "more_body": False}
        return whole

    async def _next(self) -> Message:
        """The next piece. Only the time that we wait counts: a slow disk of ours is not the sender's fault."""
        began = time.monotonic()
        left = self._settings.grace_seconds + self._count / self._settings.slowest - self._waited
        try:
            async with asyncio.timeout(max(0.0, left)):
                message = await self._receive()
        except TimeoutError:
            raise self._refuse(
                408, "too_slow", "The request came in too slowly. Nothing was changed; try again."
            ) from None
        self._waited += time.monotonic() - began
        self._count += len(message.get("body", b""))
        if self._count > self._limit:
            raise self._too_large()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def check_length(self, given: list[str]) -> None:
        """What is announced as too large need not be sent. What is announced as small is counted all the same."""
        if any(length.isascii() and length.isdigit() and int(length[:20]) > self._limit for length in given):
            raise self._too_large()

    def _too_large(self) -> _Refused:
        most = f"{self._limit / 2**20:,.0f} MB" if self._limit >= 2**20 else f"{self._limit:,} bytes"
        return self._refuse(
            413, "too_large", f"This is larger than the {most} that are taken here. Nothing was changed."
        )

    def _refuse(self, status: int, code: str, message: str) -> _Refused:
        # kept, because the application may make another answer of the exception
        self.refusal = _Refused(status, code, message)
        return self.refusal


class _Outgoing:
    """Adds headers to whatever is answered, and puts our own refusal in the application's place."""

    def __init__(self, send: Send, request_id: str, path: str) -> None:
        self._send, self._request_id, self._path = send, request_id, path
        self.status = 0  # nothing was answered
        self._ended = False

    def application(self, body: _Incoming | None) -> Send:
        async def send(message: Message) -> None:
            if body is not None and body.refusal is not None:
                return  # what the application makes of a body that was cut off
            await self._pass(message)

        return send

    async def refuse(self, refusal: _Refused) -> None:
        if self._ended:
            return  # the application has answered all the same
        if self.status:
            raise refusal  # too late for an answer: the server closes the connection, so that nobody takes it for whole
        content = json.dumps(_shape(refusal.code, refusal.message, self._request_id), ensure_ascii=False).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),  # the rest of the body is not waited for
        ]
        await self._pass({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._pass({"type": "http.response.body", "body": content})

    async def _pass(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            added = {**_HEADERS, b"x-request-id": self._request_id.encode()}
            if f"{self._path}/".startswith("/api/") or self.status >= 400:
                added[b"cache-control"] = b"no-store"
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in added]
            message = {**message, "headers": [*kept, *added.items()]}
        await self._send(message)
        self._ended = message["type"] == "http.response.body" and not message.get("more_body", False)


_CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _CSP.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def _route(scope: Scope, settings: Settings) -> str:
    """The path as the routes know it; some proxies pass the root path on, some take it away."""
    path, root = str(scope["path"]), settings.root_path
    return path.removeprefix(root) if root and path.startswith(f"{root}/") else path


def _headers(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for name, value in scope["headers"] if name.lower() == wanted]


def _split_host(host: str) -> tuple[str, int | None]:
    found = _HOST.fullmatch(host)
    if found is None:
        raise ValueError("not a host")
    return found[1].lower(), int(found[2]) if found[2] else None


def _plain(text: str) -> str:
    """For one line of a log or a terminal: what cannot be printed is written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:500])


# -- JSON

_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)  # takes time in proportion to the text


def check_json(body: bytes) -> str | None:
    """What is wrong with a JSON text, or None.

    Besides what is no JSON at all: nesting that could exhaust the stack, names given twice (readers disagree on which
    counts), numbers that are not finite or do not fit 64 bits, and characters that cannot be stored.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return "it is not UTF-8"
    if text.count("[") + text.count("{") > _DEPTH and _is_deep(text):
        return f"it is nested more than {_DEPTH} levels deep"
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    except _BadJson as problem:
        return str(problem)
    except (ValueError, RecursionError):
        return "it cannot be read"
    if "\\u" in text and not _is_storable(value):
        return "a text contains a character that cannot be stored"
    return None


class _BadJson(ValueError):
    pass


def _is_deep(text: str) -> bool:
    depth = 0
    for found in _STRINGS_AND_BRACKETS.finditer(text):
        first = found[0][0]
        depth += (first in "[{") - (first in "]}")
        if depth > _DEPTH:
            return True
    return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _BadJson("a name is given twice")
    return made


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise _BadJson("a number is not finite")
    return value


def _whole(number: str) -> int:
    if len(number) > 20 or not -(2**63) <= int(number) < 2**63:
        raise _BadJson("a number is too large")
    return int(number)


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_is_storable(name) and _is_storable(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(map(_is_storable, value))


class StrictJSON(JSONResponse):
    """An answer in which NaN and infinities are a mistake of ours (500) rather than broken JSON or a silent null."""

    def render(self, content: Any) -> bytes:
        """JSON, or a ValueError."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


# -- errors

_SENTENCES = {
    400: "The request cannot be understood. Nothing was changed.",
    401: "Please sign in. Nothing was lost.",
    403: "You may not do this. Nothing was changed.",
    404: "There is no such thing here.",
    405: "This cannot be done here. Nothing was changed.",
    429: "That was too fast. Wait a moment, then try again.",
    503: "The server cannot take this now. Nothing was changed; try again in a moment.",
}
_PHRASES = {status.value: status.phrase for status in HTTPStatus}  # what the framework says by itself
_CODES = {
    400: "invalid",
    401: "signed_out",
    403: "forbidden",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "wrong_type",
    422: "invalid",
    429: "too_fast",
    503: "busy",
    507: "no_space",
}
_STATUSES: tuple[tuple[type[UnhansError], int, str], ...] = (  # the first that fits
    (errors.NotFound, 404, "not_found"),
    (errors.NotAllowed, 403, "forbidden"),
    (errors.Conflict, 409, "conflict"),
    (TooFast, 429, "too_fast"),
    (errors.TooMuch, 413, "too_large"),
    (errors.Busy, 503, "busy"),
    (errors.NoSpace, 507, "no_space"),
    (errors.BadData, 422, "bad_data"),
    (errors.BadModel, 422, "bad_model"),
    (errors.BadOption, 422, "bad_option"),
    (errors.Unsupported, 422, "unsupported"),
    (errors.TrainingDiverged, 422, "diverged"),
    (errors.ModelFailed, 502, "model_failed"),
    (errors.ProjectProblem, 503, "project_problem"),
    (errors.Cancelled, 409, "cancelled"),
    (UnhansError, 422, "refused"),
)


def error_answer(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """The one shape of errors; `more` stands beside `error`."""
    hidden = getattr(request.app.state, "hidden_folders", ())
    content = {**_shape(code, scrub(message, hidden), _request_id(request)), **more}
    return StrictJSON(content, status, headers=dict(headers or {}))


def install_errors(app: FastAPI, folders: Iterable[Path] = ()) -> None:
    """Make every failure of the application an answer of the one shape. A subclass may have a handler of its own.

    `folders` are ours: sentences that name them are told without.
    """
    app.state.hidden_folders = tuple(str(folder) for folder in folders)
    app.add_exception_handler(UnhansError, _foreseen)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _internal)


async def _foreseen(request: Request, error: Exception) -> Response:
    status, code = next((status, code) for kind, status, code in _STATUSES if isinstance(error, kind))
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = str(math.ceil(getattr(error, "seconds", 1.0)))
    if status >= 500:
        trace = None if isinstance(error, errors.Busy) else error  # a crowd should not fill the log
        _log.warning("request %s: %s", _request_id(request), _plain(str(error)), exc_info=trace)
    return error_answer(request, status, code, str(error), headers)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if status in (204, 304):
        return Response(status_code=status, headers=error.headers)
    said = error.detail if isinstance(error.detail, str) and error.detail != _PHRASES.get(status) else ""
    message = said or _SENTENCES.get(status, "This cannot be done. Nothing was changed.")
    return error_answer(request, status, _CODES.get(status, "refused"), message, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    said = [_says(problem) for problem in error.errors()[:20]]
    first = next(iter(dict.fromkeys(said)), "something is not valid")
    return error_answer(request, 422, "invalid", f"The request is not valid: {first}. Nothing was changed.")


async def _internal(request: Request, error: Exception) -> Response:
    # logged by `protect`, to which the framework hands the exception on
    refusal = _unforeseen(_request_id(request))
    return error_answer(request, refusal.status, refusal.code, refusal.message)


def _says(problem: Mapping[str, Any]) -> str:
    """Which field, and what about it: from the schema only, never from what was sent."""
    place = [part for part in problem.get("loc", ())[1:] if not isinstance(part, int)]
    if problem.get("type") in ("extra_forbidden", "unexpected_keyword_argument"):
        place = place[:-1]  # a name that the sender made up
    name, limits = (str(place[0]) if place else "the content"), problem.get("ctx", {})
    match problem.get("type"):
        case "missing" | "missing_argument" if len(place) <= 1:
            return f"{name} is missing"
        case "string_too_long":
            return f"{name} is longer than {limits.get('max_length')} characters"
        case "string_too_short":
            return f"{name} is shorter than {limits.get('min_length')} characters"
        case "greater_than_equal":
            return f"{name} is less than {limits.get('ge')}"
        case "less_than_equal":
            return f"{name} is more than {limits.get('le')}"
    return f"{name} is not valid"


def _unforeseen(request_id: str) -> _Refused:
    return _Refused(500, "internal", f"Something went wrong (ref {request_id}). What was saved before is safe.")


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "-"))


def _shape(code: str, message: str, request_id: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "request_id": request_id}}


_HIDDEN = re.compile(
    r"""
    (?P<quote>['"`])(?:[a-z]:[\\/]|\\\\|~?/)[^'"`\n]*(?P=quote)  # a quoted path, blanks and all
    | \b[a-z][a-z0-9+.-]*://[^\s'"`]+                           # an address, with whatever credentials
    | (?<![\w.…/])(?:[a-z]:[\\/]|\\\\|~?/)[^\s'"`,;]+           # a path
    | \b[a-z0-9_-]{40,}                                         # a token or a long hash
    | \bhf_[a-z0-9]+
    """,
    re.VERBOSE | re.IGNORECASE,
)


def scrub(text: str, folders: Iterable[str] = ()) -> str:
    """A sentence without absolute paths, addresses and tokens; `folders` are known paths, which may have blanks."""
    for folder in sorted({*folders, os.path.expanduser("~")} - {"/", "~", "."}, key=len, reverse=True):
        text = re.sub(rf"{re.escape(folder)}(?![\w-])[^\s'\"`,;]*", "…", text)
    return _HIDDEN.sub(_hide, text)


def _hide(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    end = "." if not quote and found[0].endswith(".") else ""
    return f"{quote}…{quote}{end}"


# -- for routes


class RateLimit:
    """So many acts a second per key, with some at once: a token bucket each. Call `take(user.name)` before a write."""

    def __init__(
        self, rate: float = 50.0, burst: int = 200, *, kept: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._kept, self._clock = rate, burst, kept, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when
        self._guard = threading.Lock()

    def take(self, key: str) -> None:
        """Count an act; TooFast if it is one too many."""
        with self._guard:
            now = self._clock()
            left, at = self._buckets.pop(key, (float(self._burst), now))
            left = min(float(self._burst), left + (now - at) * self._rate)
            self._buckets[key] = (left - 1 if left >= 1 else left, now)
            if len(self._buckets) > self._kept:
                self._buckets.popitem(last=False)
        if left < 1:
            raise TooFast("That was too fast. Nothing was stored; it goes on in a moment.", (1 - left) / self._rate)
