"""What reaches the application, and what leaves it: tables of attacks on a small real application."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from fastapi.staticfiles import StaticFiles
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from unhans import errors
from unhans.accounts import TooFast
from unhans.server.security import (
    LOOPBACK,
    Body,
    RateLimit,
    Settings,
    StrictJSON,
    check_bind,
    check_json,
    clear_cookie,
    error_answer,
    install_errors,
    protect,
    scrub,
    set_cookie,
)

HERE = ("host", "localhost:8000")
JSON = ("content-type", "application/json")
RAW = ("content-type", "application/octet-stream")


class Vote(BaseModel):
    model_config = ConfigDict(extra="forbid")
    word: Annotated[str, StringConstraints(min_length=1, max_length=5)]
    stars: Annotated[int, Field(ge=1, le=5)] = 1
    more: dict[str, Any] = {}


RAISED: dict[str, Exception] = {}


def small_app(folder: Path | None = None) -> FastAPI:
    app = FastAPI(openapi_url=None)
    install_errors(app, [folder] if folder else [])
    app.state.votes = []
    app.state.sizes = []

    @app.get("/healthz")
    def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/")
    def home() -> dict[str, str]:
        return {"page": "home"}

    @app.get("/api/votes")
    def votes(contains: str = "") -> dict[str, Any]:
        return {"votes": app.state.votes}

    @app.api_route("/api/votes", methods=["POST", "PUT", "PATCH", "DELETE"])
    def vote(vote: Vote) -> dict[str, int]:
        app.state.votes.append(vote.word)
        return {"count": len(app.state.votes)}

    @app.post("/api/logout", status_code=204)
    def logout() -> None:
        app.state.votes.append("logout")

    @app.post("/api/uploads")
    async def upload(request: Request) -> dict[str, int]:
        size = 0
        async for part in request.stream():
            size += len(part)
        app.state.sizes.append(size)
        return {"size": size}

    @app.get("/api/events")
    def events() -> StreamingResponse:
        return StreamingResponse(iter([": ping\n\n", "data: 1\n\n"]), media_type="text/event-stream")

    @app.get("/api/raise/{name}")
    def fail(name: str) -> None:
        raise RAISED[name]

    @app.get("/api/half")
    def half() -> StreamingResponse:
        def parts() -> Iterator[str]:
            yield "first"
            raise RuntimeError("secret /etc/passwd")

        return StreamingResponse(parts())

    @app.get("/api/nan", response_class=StrictJSON)
    def nan() -> Any:
        return StrictJSON({"x": float("nan")})

    if folder is not None:
        app.mount("/static", StaticFiles(directory=folder))
    return app


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        values = [value for key, value in self.headers if key == name]
        assert len(values) == 1, (name, values)
        return values[0]

    @property
    def error(self) -> dict[str, str]:
        told = json.loads(self.body)
        assert set(told) == {"error"}
        assert set(told["error"]) == {"code", "message", "request_id"}
        assert told["error"]["request_id"] == self["x-request-id"]
        return told["error"]


def call(
    app: Any,
    method: str,
    address: str,
    headers: Sequence[tuple[str, str]] = (HERE,),
    body: Sequence[bytes] = (b"",),
    *,
    raw_path: str | None = None,
) -> Answer:
    """One request as a server would hand it over; two headers of one name are possible, unlike in most clients."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path if raw_path is None else raw_path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": ("192.0.2.1", 1234),
        "server": ("127.0.0.1", 8000),
    }
    pieces = [{"type": "http.request", "body": part, "more_body": True} for part in body]
    pieces[-1]["more_body"] = False
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if pieces:
            return pieces.pop(0)
        await asyncio.sleep(3600)
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["type"] == "http.response.start"
    assert not sent[-1].get("more_body", False)
    named = [(name.decode().lower(), value.decode()) for name, value in sent[0]["headers"]]
    return Answer(sent[0]["status"], named, b"".join(message.get("body", b"") for message in sent[1:]))


@pytest.fixture
def app() -> FastAPI:
    return small_app()


@pytest.fixture
def site(app: FastAPI) -> Any:
    return protect(app, Settings())


def post(site: Any, body: bytes | str, *headers: tuple[str, str], to: str = "/api/votes") -> Answer:
    return call(site, "POST", to, [HERE, JSON, *headers], [body if isinstance(body, bytes) else body.encode()])


VOTE = '{"word": "good"}'

# -- Host


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "localhost:8000", "localhost:1", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000"],
)
def test_the_loopback_names_are_ours(site, host):
    assert call(site, "GET", "/", [("host", host)]).status == 200


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.com"],
        ["localhost.evil.com"],
        ["evil.localhost"],
        ["127.0.0.1.nip.io"],
        ["127.0.0.2"],
        ["0.0.0.0"],
        ["::1"],
        ["[::1"],
        ["localhost."],
        ["localhost:"],
        ["localhost:x"],
        ["localhost:80@evil.com"],
        ["evil.com@localhost"],
        ["localhost/evil.com"],
        ["localhost, evil.com"],
        ["localhost evil.com"],
        ["localhost", "localhost"],
        ["localhost", "evil.com"],
        ["evil.com", "localhost"],
        ["x" * 10_000],
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/api/votes"), ("POST", "/api/votes"), ("GET", "/no")]
)
def test_other_names_are_refused_on_every_route(app, site, hosts, method, path):
    answer = call(site, method, path, [*(("host", host) for host in hosts), JSON], [VOTE.encode()])
    assert answer.status == 421
    assert answer.error["code"] == "wrong_host"
    assert app.state.votes == []


def test_the_health_of_the_server_can_be_asked_under_any_name(site):
    for hosts in ([], [("host", "evil.com")], [("host", "10.0.0.7:8000")]):
        assert call(site, "GET", "/healthz", hosts).status == 200
    assert call(site, "GET", "/healthz/../api/votes", [("host", "evil.com")]).status == 421


def test_given_names_are_ours_too(app):
    site = protect(app, Settings(allowed_hosts=("Tool.example.org", "[2001:db8::1]:8443")))
    for host in ("tool.example.org", "TOOL.example.org:443", "[2001:db8::1]", "localhost"):
        assert call(site, "GET", "/", [("host", host)]).status == 200
    for host in ("example.org", "x.tool.example.org", "tool.example.org.evil.com"):
        assert call(site, "GET", "/", [("host", host)]).status == 421


@pytest.mark.parametrize("name", ["", "*", "*.example.org", "http://x", "a b", "x/y", "a:b", "x@y"])
def test_only_exact_names_can_be_given(name):
    with pytest.raises(errors.BadOption):
        Settings(allowed_hosts=(name,))


@pytest.mark.parametrize("path", ["/", "x", "/x/", "//x", "/a b", "/a?b", "http://x"])
def test_only_plain_root_paths_can_be_given(path):
    with pytest.raises(errors.BadOption):
        Settings(root_path=path)


# -- where requests come from

OWN = ("sec-fetch-site", "same-origin")
SITES = [
    ([], True),
    ([OWN], True),
    ([("sec-fetch-site", "none")], True),
    ([("sec-fetch-site", "cross-site")], False),
    ([("sec-fetch-site", "same-site")], False),
    ([("sec-fetch-site", "")], False),
    ([("sec-fetch-site", "Same-Origin")], False),
    ([OWN, ("sec-fetch-site", "cross-site")], False),
    ([("origin", "http://localhost:8000")], True),
    ([("origin", "http://LOCALHOST:8000")], True),
    ([("origin", "http://localhost")], False),
    ([("origin", "http://localhost:8001")], False),
    ([("origin", "http://127.0.0.1:8000")], False),
    ([("origin", "http://evil.com")], False),
    ([("origin", "http://localhost:8000.evil.com")], False),
    ([("origin", "http://evil.com:8000")], False),
    ([("origin", "http://localhost:8000@evil.com")], False),
    ([("origin", "http://evil.com/localhost:8000")], False),
    ([("origin", "null")], False),
    ([("origin", "")], False),
    ([("origin", "file://")], False),
    ([("origin", "ftp://localhost:8000")], False),
    ([("origin", "localhost:8000")], False),
    ([("origin", "http://localhost:8000"), ("origin", "http://evil.com")], False),
    ([("origin", "http://localhost:8000"), ("sec-fetch-site", "cross-site")], False),
    ([("origin", "http://tool.example.org"), OWN], True),  # a proxy that changes Host
]


@pytest.mark.parametrize(("headers", "ours"), SITES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_sites_change_nothing(app, site, headers, ours, method):
    for cookie in ([], [("cookie", "unhans-8000=secret")]):
        app.state.votes.clear()
        answer = call(site, method, "/api/votes", [HERE, JSON, *headers, *cookie], [VOTE.encode()])
        assert answer.status == (200 if ours else 403)
        assert app.state.votes == ["good"] * ours
        assert ours or answer.error["code"] == "cross_site"


@pytest.mark.parametrize(("headers", "ours"), SITES)
@pytest.mark.parametrize("path", ["/api/events", "/api/votes"])
def test_other_sites_read_neither_the_event_stream_nor_the_interface(site, headers, ours, path):
    answer = call(site, "GET", path, [HERE, *headers])
    assert answer.status == (200 if ours else 403)
    assert (b"data: 1" in answer.body or b"votes" in answer.body) is ours


def test_other_sites_may_link_to_the_page(site):
    assert call(site, "GET", "/", [HERE, ("sec-fetch-site", "cross-site")]).status == 200


def test_unknown_methods_are_unsafe(site):
    for method in ("TRACE", "CONNECT", "FOO", "post"):
        assert call(site, method, "/", [HERE, ("origin", "http://evil.com")]).status == 403


@pytest.mark.parametrize(
    ("origin", "secure", "ours"),
    [
        ("https://tool.example.org", True, True),
        ("http://tool.example.org", True, False),
        ("http://tool.example.org", False, True),
        ("https://tool.example.org:8443", True, False),
        ("https://other.example.org:8443", True, True),
        ("https://other.example.org", True, False),
        ("https://evil.com", True, False),
    ],
)
def test_behind_a_proxy_the_given_name_is_where_pages_come_from(app, origin, secure, ours):
    given = ("tool.example.org", "other.example.org:8443")
    site = protect(app, Settings(allowed_hosts=given, secure=secure))
    answer = call(site, "POST", "/api/votes", [("host", "127.0.0.1:8000"), JSON, ("origin", origin)], [VOTE.encode()])
    assert answer.status == (200 if ours else 403)


def test_web_sockets_are_refused(site):
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(site({"type": "websocket", "path": "/api/events", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# -- bodies


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([JSON], 200),
        ([("content-type", "application/json; charset=utf-8")], 200),
        ([("content-type", 'Application/JSON;charset="UTF-8"')], 200),
        ([("content-type", "application/json; charset=utf-16")], 415),
        ([("content-type", "text/plain")], 415),
        ([("content-type", "application/x-www-form-urlencoded")], 415),
        ([("content-type", "multipart/form-data; boundary=x")], 415),
        ([("content-type", "application/octet-stream")], 415),
        ([("content-type", "text/plain; application/json")], 415),
        ([("content-type", "application/json, text/plain")], 415),
        ([("content-type", "")], 415),
        ([JSON, ("content-type", "text/plain")], 415),
        ([JSON, ("content-encoding", "gzip")], 415),
        ([], 415),
    ],
)
def test_json_routes_take_json_only(app, site, headers, status):
    answer = call(site, "POST", "/api/votes", [HERE, *headers], [VOTE.encode()])
    assert answer.status == status
    assert app.state.votes == ["good"] * (status == 200)


def test_requests_without_a_body_need_no_type(app, site):
    assert call(site, "POST", "/api/logout").status == 204
    assert call(site, "POST", "/api/logout", [HERE, JSON]).status == 204
    assert call(site, "POST", "/api/logout", [HERE, ("content-type", "text/plain")]).status == 415


@pytest.mark.parametrize(
    "body",
    [
        "[" * 200_000,
        "[" * 200_000 + "]" * 200_000,
        '{"word":' * 100_000 + "1" + "}" * 100_000,
        '{"word": "good", "more": ' + '{"a":' * 64 + "1" + "}" * 65,
        '{"word": "good", "stars": ' + "1" * 5000 + "}",
        '{"word": "good", "stars": 9223372036854775808}',
        '{"word": "good", "more": {"x": -9223372036854775809}}',
        '{"word": "good", "more": {"x": NaN}}',
        '{"word": "good", "more": {"x": Infinity}}',
        '{"word": "good", "more": {"x": -Infinity}}',
        '{"word": "good", "more": {"x": 1e999}}',
        '{"word": "good", "word": "bad"}',
        '{"word": "good", "more": {"a": 1, "\\u0061": 2}}',
        '{"word": "\\ud800"}',
        '{"word": "\\udc00\\ud800"}',
        '{"word": "good", "more": {"\\ud800": 1}}',
        '{"word": "good", "more": {"x": [["\\ud800"]]}}',
        '{"word": "a\\u0000"}',
        '{"word": "a\0"}',
        '{"word": "good"} {}',
        '{"word": "good",}',
        "{'word': 'good'}",
        "\ufeff" + VOTE,
        VOTE.encode("utf-16"),
        b'{"word": "\xff"}',
        b'{"word": "\xed\xa0\x80"}',
        "{",
        '"' + '\\"' * 100_000 + "[" * 100,
    ],
    ids=lambda body: repr(body[:40]),
)
def test_hostile_json_is_refused_politely(app, site, body):
    answer = post(site, body)
    assert answer.status == 400
    assert answer.error["code"] == "invalid"
    assert app.state.votes == []


@pytest.mark.parametrize(
    "body",
    [
        VOTE,
        '{"word": "\\ud83d\\ude00"}',
        '{"word": "[[[[["}',
        '{"word": "a\\\\u"}',
        '{"word": "good", "more": {"x": 9223372036854775807, "y": -9223372036854775808, "z": 1e300}}',
        '{"word": "good", "more": ' + '{"a":' * 62 + "1" + "}" * 63,
        '{"word": "good", "more": {"x": "' + "[{" * 1000 + '"}}',
        '{"word": "good", "more": {"x": [' + ",".join(["[]"] * 500) + "]}}",
    ],
    ids=lambda body: body[:40],
)
def test_plain_json_passes(site, body):
    assert post(site, body).status == 200


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False,
       allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
       lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"],
       exclude_characters="\0")), inner)), st.booleans())  # fmt: skip
def test_everything_that_is_json_passes_the_check(value, ascii_only):
    assert check_json(json.dumps(value, ensure_ascii=ascii_only).encode()) is None


@given(st.binary())
def test_the_check_never_raises_and_passes_only_what_python_reads(body):
    if check_json(body) is None:
        json.loads(body)


def limited(app: FastAPI, **changes: Any) -> Any:
    rules = (
        Body("/api/uploads", ("application/octet-stream",), 3000, kind="model"),
        Body("/api/uploads", ("application/octet-stream",), 1000),
    )
    return protect(app, Settings(bodies=rules, json_bytes=500, **changes))


@pytest.mark.parametrize(
    ("query", "size", "status"),
    [
        ("?kind=data", 1000, 200),
        ("?kind=data", 1001, 413),
        ("", 1001, 413),
        ("?kind=model", 3000, 200),
        ("?kind=model", 3001, 413),
        ("?kind=model&kind=data", 1001, 413),
        ("?kind=data&kind=model", 1001, 413),
        ("?x=kind=model", 1001, 413),
    ],
)
@pytest.mark.parametrize("length", [[], [("content-length", "10")]])
def test_uploads_are_counted_while_they_come_in(app, query, size, status, length):
    parts = [b"x" * 100] * (size // 100) + [b"x" * (size % 100)]
    answer = call(limited(app), "POST", f"/api/uploads{query}", [HERE, RAW, *length], parts)
    assert answer.status == status
    assert app.state.sizes == [size] * (status == 200)
    assert status == 200 or answer.error["code"] == "too_large"


@pytest.mark.parametrize("headers", [[], [JSON], [("content-type", "text/html")]])
def test_uploads_have_their_own_types(app, headers):
    assert call(limited(app), "POST", "/api/uploads", [HERE, *headers], [b"x"]).status == 415


def test_json_is_limited_whatever_length_is_announced(app):
    body = json.dumps({"word": "good", "more": {"x": "y" * 500}}).encode()
    for length in ([], [("content-length", "5")]):
        assert call(limited(app), "POST", "/api/votes", [HERE, JSON, *length], [body[:9], body[9:]]).status == 413
    assert call(limited(app), "POST", "/api/votes", [HERE, JSON, ("content-length", "501")]).status == 413
    assert app.state.votes == []


def test_the_limits_are_those_that_are_promised():
    limits = {(rule.path, rule.kind): rule.limit for rule in Settings().bodies}
    assert limits == {
        ("/api/uploads", "model"): 2 * 2**30,
        ("/api/uploads", None): 256 * 2**20,
        ("/api/projects/[^/]+/feedback/import", None): 64 * 2**20,
    }
    assert Settings().json_bytes == 2 * 2**20


@pytest.mark.parametrize(("kind", "status"), [("text/csv", 404), ("application/x-ndjson", 404), ("text/html", 415)])
def test_imports_have_their_own_types(site, kind, status):
    headers = [HERE, ("content-type", kind)]
    assert call(site, "POST", "/api/projects/films/feedback/import?format=csv", headers, [b"x"]).status == status
    assert call(site, "POST", "/api/projects/a/b/feedback/import", headers, [b"x"]).status == 415


def test_the_application_cannot_make_another_answer_of_a_body_that_is_too_large(app):
    async def stubborn(scope: Any, receive: Any, send: Any) -> None:
        try:
            while (await receive()).get("more_body"):
                pass
        except Exception:  # noqa: BLE001 - as careless as a route could be
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"fine"})

    site = protect(stubborn, Settings(bodies=(Body("/x", ("application/octet-stream",), 10),)))
    assert call(site, "POST", "/x", [HERE, RAW], [b"x" * 6, b"x" * 6]).status == 413


def test_addresses_with_nul_lead_nowhere(site):
    assert call(site, "GET", "/x", raw_path="/static/x\0.css").status == 404
    assert call(site, "GET", "/api/votes?contains=%00").status == 400
    assert call(site, "GET", "/api/votes?contains=%2500").status == 200


def test_a_client_that_goes_away_is_no_failure_of_ours(app, caplog):
    async def run() -> list[Any]:
        sent = []
        pieces = [{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}]

        async def receive() -> dict[str, Any]:
            return pieces.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/octet-stream")]
        scope = {"type": "http", "method": "POST", "path": "/api/uploads", "query_string": b"", "headers": headers}
        await protect(app, Settings())(scope, receive, send)
        return sent

    with caplog.at_level(logging.INFO, "unhans"):
        asyncio.run(run())
    assert app.state.sizes == []
    assert "failed" not in caplog.text
    assert " POST /api/uploads 499 " in caplog.text


# -- answers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/api/votes", 200),
        ("GET", "/api/events", 200),
        ("GET", "/nothing", 404),
        ("DELETE", "/", 405),
        ("POST", "/api/votes", 422),
        ("GET", "/api/nan", 500),
        ("GET", "/static/page.html", 200),
        ("GET", "/static/none.html", 404),
    ],
)
def test_every_answer_carries_the_headers(tmp_path, method, path, status):
    (tmp_path / "page.html").write_text("<h1>page</h1>", encoding="utf-8")
    site = protect(small_app(tmp_path), Settings())
    answer = call(site, method, path)
    assert answer.status == status
    csp = dict(part.strip().partition(" ")[::2] for part in answer["content-security-policy"].split(";"))
    for name in ("default-src", "script-src", "style-src", "connect-src", "form-action"):
        assert csp[name] == "'self'"
    for name in ("object-src", "base-uri", "frame-ancestors"):
        assert csp[name] == "'none'"
    assert csp["img-src"] == "'self' data:"
    assert "unsafe" not in answer["content-security-policy"]
    assert answer["x-content-type-options"] == "nosniff"
    assert answer["referrer-policy"] == "no-referrer"
    assert answer["x-frame-options"] == "DENY"
    assert answer["cross-origin-opener-policy"] == "same-origin"
    assert answer["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in answer["permissions-policy"]
    assert re.fullmatch("[0-9a-f]{16}", answer["x-request-id"])
    assert not [name for name, _ in answer.headers if name.startswith("access-control")]
    if path.startswith("/api/") or status >= 400:
        assert answer["cache-control"] == "no-store"
    if status >= 400:
        assert answer.error["message"]


def test_every_request_has_its_own_id(site):
    assert len({call(site, "GET", "/")["x-request-id"] for _ in range(20)}) == 20


def test_under_a_root_path_the_same_rules_hold(app):
    site = protect(app, Settings(root_path="/tool"))
    headers = [HERE, ("sec-fetch-site", "cross-site")]
    assert call(site, "GET", "/tool/api/votes", headers).status == 403
    assert call(site, "GET", "/tool/healthz", [("host", "evil.com")]).status != 421
    assert call(site, "GET", "/toolbox/healthz", [("host", "evil.com")]).status == 421
    assert call(site, "GET", "/tool/api/votes")["cache-control"] == "no-store"


# -- errors


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.NotFound("x"), 404, "not_found"),
        (errors.NotAllowed("x"), 403, "forbidden"),
        (errors.Conflict("x"), 409, "conflict"),
        (errors.TooMuch("x"), 413, "too_large"),
        (TooFast("x", 2.5), 429, "too_fast"),
        (errors.Busy("x"), 503, "busy"),
        (errors.NoSpace("x"), 507, "no_space"),
        (errors.BadData("x"), 422, "bad_data"),
        (errors.BadModel("x"), 422, "bad_model"),
        (errors.BadOption("x"), 422, "bad_option"),
        (errors.Unsupported("x"), 422, "unsupported"),
        (errors.TrainingDiverged("x"), 422, "diverged"),
        (errors.ModelFailed("x"), 502, "model_failed"),
        (errors.ProjectProblem("x"), 503, "project_problem"),
        (errors.Cancelled("x"), 409, "cancelled"),
        (errors.UnhansError("x"), 422, "refused"),
        (HTTPException(401), 401, "signed_out"),
        (HTTPException(403, "x"), 403, "forbidden"),
        (HTTPException(418), 418, "refused"),
        (RuntimeError("x"), 500, "internal"),
        (KeyError("x"), 500, "internal"),
        (RecursionError(), 500, "internal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_failure_has_the_one_shape(site, error, status, code):
    RAISED["it"] = error
    answer = call(site, "GET", "/api/raise/it")
    assert (answer.status, answer.error["code"]) == (status, code)
    if isinstance(error, errors.UnhansError):
        assert answer.error["message"] == "x"
    if status in (429, 503):
        assert answer["retry-after"] == ("3" if status == 429 else "1")


def test_every_kind_of_our_errors_has_a_status_of_its_own_choosing(site):
    for kind in (kind for kind in errors.UnhansError.__subclasses__() if kind.__module__ == errors.__name__):
        RAISED["it"] = kind("x")
        assert call(site, "GET", "/api/raise/it").error["code"] != "refused", kind


SECRETS = [
    "/etc/passwd",
    "/home/anna/models/x",
    "/tmp/pytest-of-root/x.sqlite",
    "C:\\Users\\anna\\x",
    "postgresql+psycopg://unhans:pass@db.internal:5432/unhans",
    "http://169.254.169.254/latest",
    "hf_abcdefghijklmnop",
    "a" * 43,
    "0123456789abcdef" * 4,
    "~/.cache/x",
    "\\\\server\\share",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "frame", ["The model {} cannot be read.", "Missing from {}.", "in '{}', try again", "({})", "{}"]
)
@pytest.mark.parametrize("kind", [errors.BadModel, errors.ProjectProblem, RuntimeError])
def test_no_path_address_or_token_leaves_the_server(site, secret, frame, kind):
    RAISED["it"] = kind(frame.format(secret))
    answer = call(site, "GET", "/api/raise/it")
    told = answer.error["message"].replace(answer["x-request-id"], "")
    for part in re.split(r"[/\\:@.]+", secret):
        assert len(part) < 3 or part not in told, part


def test_folders_with_blanks_are_hidden_too(tmp_path):
    folder = tmp_path / "my private" / "work"
    folder.mkdir(parents=True)
    site = protect(small_app(folder), Settings())
    RAISED["it"] = errors.ProjectProblem(f"The database is missing from {folder}/x. Bring it back.")
    assert call(site, "GET", "/api/raise/it").error["message"] == "The database is missing from … Bring it back."
    RAISED["it"] = errors.ProjectProblem("'/srv/some where/x' is missing.")
    assert call(site, "GET", "/api/raise/it").error["message"] == "'…' is missing."


@pytest.mark.parametrize(
    "text",
    [
        "Too many answers wait to be stored. Nothing was stored; try again in a moment.",
        "Rows 1/2 and/or 3 km/h; label n/a · 50 % (see --allowed-host NAME)",
        "There is no upload 0123456789abcdef0123456789abcdef.",
        "Wait 5 seconds / minutes.",
    ],
)
def test_ordinary_sentences_stay_as_they_are(text):
    assert scrub(text) == text


def test_what_went_wrong_is_in_the_log_only_with_the_same_reference(site, caplog):
    RAISED["it"] = RuntimeError("the secret of /etc/passwd")
    with caplog.at_level(logging.INFO, "unhans"):
        answer = call(site, "GET", "/api/raise/it")
    reference = answer.error["request_id"]
    assert answer.error["message"] == f"Something went wrong (ref {reference}). What was saved before is safe."
    assert f"request {reference} failed" in caplog.text
    assert "the secret of /etc/passwd" in caplog.text
    assert "Traceback" in caplog.text
    for hidden in (b"secret", b"Traceback", b".py", b"passwd"):
        assert hidden not in answer.body


def test_an_answer_that_breaks_half_way_is_not_taken_for_whole(site, caplog):
    with pytest.raises(Exception, match="Something went wrong"):
        call(site, "GET", "/api/half")
    assert "secret /etc/passwd" in caplog.text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{}", "word is missing"),
        ('{"word": ""}', "word is shorter than 1 characters"),
        ('{"word": "SENT-IN-HERE"}', "word is longer than 5 characters"),
        ('{"word": ["SENT-IN-HERE"]}', "word is not valid"),
        ('{"word": "x", "stars": 999}', "stars is more than 5"),
        ('{"word": "x", "stars": 0}', "stars is less than 1"),
        ('{"word": "x", "stars": "SENT-IN-HERE"}', "stars is not valid"),
        ('{"word": "x", "SENT-IN-HERE": 1}', "the content is not valid"),
        ('["SENT-IN-HERE"]', "the content is not valid"),
        ("null", "the content is not valid"),
    ],
)
def test_invalid_requests_name_the_field_and_never_what_was_sent(site, body, says):
    answer = post(site, body)
    assert (answer.status, answer.error["code"]) == (422, "invalid")
    assert says in answer.error["message"]
    assert b"SENT-IN-HERE" not in answer.body


def test_a_handler_may_add_to_the_shape(app, site):
    class Newer(errors.Conflict):
        pass

    async def handler(request: Request, error: Exception) -> Any:
        return error_answer(request, 409, "conflict", str(error), current={"id": "7"})

    app.add_exception_handler(Newer, handler)
    RAISED["it"] = Newer("Somebody was faster.")
    told = json.loads(call(site, "GET", "/api/raise/it").body)
    assert told["current"] == {"id": "7"}
    assert told["error"]["message"] == "Somebody was faster."


# -- logs


def test_the_log_has_one_plain_line_per_request_and_no_query(site, caplog):
    with caplog.at_level(logging.INFO, "unhans.access"):
        call(site, "GET", "/?token=SECRET")
        call(site, "GET", "/x", raw_path="/a\nFORGED 200\x1b]0;x\x07\u202e b")
    first, second = (record.getMessage() for record in caplog.records)
    assert re.fullmatch(r"[0-9a-f]{16} 192\.0\.2\.1 GET / 200 \d+ms", first)
    assert "SECRET" not in caplog.text
    assert re.fullmatch(r"[0-9a-f]{16} 192\.0\.2\.1 GET /a\\nFORGED%20200\\x1b]0;x\\x07\\u202e%20b 404 \d+ms", second)


# -- for routes


def test_writes_are_limited_per_user_and_not_for_others():
    now = [0.0]
    limit = RateLimit(rate=50, burst=200, clock=lambda: now[0])
    for _ in range(200):
        limit.take("anna")
    with pytest.raises(TooFast) as error:
        limit.take("anna")
    assert error.value.seconds == pytest.approx(1 / 50)
    limit.take("mia")
    now[0] += 1.0
    for _ in range(50):
        limit.take("anna")
    with pytest.raises(TooFast):
        limit.take("anna")
    now[0] += 3600
    for _ in range(200):
        limit.take("anna")
    with pytest.raises(TooFast):
        limit.take("anna")


def test_the_limit_takes_bounded_memory():
    limit = RateLimit(kept=10)
    for number in range(100):
        limit.take(str(number))
    assert len(limit._buckets) == 10


def test_a_flood_is_answered_by_429(app, site):
    limit = RateLimit(rate=0.001, burst=3)

    @app.post("/api/limited", status_code=204)
    def limited_route() -> None:
        limit.take("anna")

    answers = [call(site, "POST", "/api/limited") for _ in range(5)]
    assert [answer.status for answer in answers] == [204] * 3 + [429] * 2
    assert int(answers[-1]["retry-after"]) >= 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]", "127.8.8.8"])
def test_the_loopback_needs_no_accounts(host):
    check_bind(host, False, ())


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.5", "example.org", "localhost.evil.com", "0", "2130706433"]
)
@pytest.mark.parametrize(("accounts", "names"), [(False, ()), (True, ()), (False, ("example.org",))])
def test_other_addresses_need_accounts_and_a_name(host, accounts, names):
    with pytest.raises(errors.BadOption) as error:
        check_bind(host, accounts, names)
    assert "--host" in str(error.value)
    assert "--allowed-host" in str(error.value)
    assert "user add" in str(error.value)
    check_bind(host, True, ("example.org",))


@pytest.mark.parametrize(
    ("settings", "name", "attributes"),
    [
        (Settings(), "unhans-8000", {"HttpOnly", "SameSite=lax", "Path=/"}),
        (Settings(port=9), "unhans-9", {"HttpOnly", "SameSite=lax", "Path=/"}),
        (Settings(secure=True), "__Host-unhans-8000", {"HttpOnly", "SameSite=lax", "Path=/", "Secure"}),
        (
            Settings(secure=True, root_path="/tool"),
            "unhans-8000",
            {"HttpOnly", "SameSite=lax", "Path=/tool", "Secure"},
        ),
    ],
)
def test_the_cookie_is_for_this_server_only_and_not_for_scripts(settings, name, attributes):
    for act in (lambda answer: set_cookie(answer, settings, "SECRET"), lambda answer: clear_cookie(answer, settings)):
        answer = StrictJSON({})
        act(answer)
        first, *rest = answer.headers["set-cookie"].split("; ")
        assert first.startswith(f"{name}=")
        assert {part for part in rest if not part.startswith(("Max-Age", "expires"))} == attributes
        assert "Domain" not in answer.headers["set-cookie"]


# -- through a real server


@pytest.fixture
def served(app: FastAPI) -> Iterator[int]:
    site = limited(app, grace_seconds=0.5, slowest=1_000_000.0)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            site, log_level="critical", access_log=False, server_header=False, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """What the server says until it closes the connection."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break  # it has closed already, having said why
            time.sleep(pause)
        try:
            while piece := connection.recv(65536):
                said += piece
        except ConnectionResetError:
            pass  # because of what we sent after the answer
    return said


def request(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


UPLOAD = ("POST /api/uploads HTTP/1.1", "Host: localhost", "Content-Type: application/octet-stream")


def test_a_body_of_a_byte_now_and_then_is_cut_off(served, app):
    slow = [b"1\r\nx\r\n"] * 40
    said = talk(served, request(*UPLOAD, "Transfer-Encoding: chunked"), *slow, pause=0.1)
    assert said.startswith(b"HTTP/1.1 408")
    assert b'"too_slow"' in said
    said = talk(served, request("POST /api/votes HTTP/1.1", "Host: localhost", "Content-Type: application/json",
                                "Content-Length: 100"), b"{")  # fmt: skip
    assert said.startswith(b"HTTP/1.1 408")
    assert app.state.sizes == []
    assert app.state.votes == []


def test_a_body_without_end_is_cut_off(served, app):
    said = talk(served, request(*UPLOAD, "Transfer-Encoding: chunked"), *[b"64\r\n" + b"x" * 100 + b"\r\n"] * 100)
    assert said.startswith(b"HTTP/1.1 413")
    assert app.state.sizes == []


def test_what_is_announced_as_too_large_is_refused_before_it_comes(served):
    said = talk(served, request(*UPLOAD, "Content-Length: 99999999999", "Expect: 100-continue"))
    assert said.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in said.lower()


def test_others_are_served_while_a_slow_one_hangs(served):
    with socket.create_connection(("127.0.0.1", served), timeout=20) as hanging:
        hanging.sendall(request(*UPLOAD, "Content-Length: 100"))
        said = talk(served, request("GET /api/votes HTTP/1.1", "Host: localhost", "Connection: close"))
        assert said.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "hosts", [["localhost", "localhost"], ["localhost", "evil.com"], ["evil.com"], ["localhost:80@evil.com"], [""], []]
)
def test_a_real_server_refuses_other_names(served, hosts):
    said = talk(served, request("GET / HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close"))
    assert re.match(rb"HTTP/1\.1 4\d\d ", said)
    assert b"home" not in said


def test_a_real_server_answers_its_friends(served):
    said = talk(served, request("GET / HTTP/1.1", f"Host: localhost:{served}", "Connection: close"))
    assert said.startswith(b"HTTP/1.1 200")
    assert b"content-security-policy" in said
    said = talk(served, request(*UPLOAD, "Content-Length: 5", "Connection: close"), b"12345")
    assert said.endswith(b'{"size":5}')


def test_a_real_server_accepts_no_web_socket(served):
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    foreign = ("Sec-WebSocket-Version: 13", "Origin: http://evil.com")
    said = talk(served, request("GET /api/events HTTP/1.1", "Host: localhost", *upgrade, *foreign))
    assert b" 101 " not in said
    assert re.match(rb"HTTP/1\.1 4\d\d ", said)


def test_the_loopback_names_are_the_only_ones_by_default():
    assert LOOPBACK == ("localhost", "127.0.0.1", "[::1]")
    assert Settings().allowed_hosts == ()
