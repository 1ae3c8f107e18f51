"""Attacks on the real application: what people, files and web pages could try, and what must come of it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa

import tiny
import unhans.server
from databases import KINDS
from flipped import rewritten
from neighbouring import copied, traced
from served import OTHER, OURS, PASSWORD, Site, dump, new_folder, new_key, serve
from unhans import __version__
from unhans.accounts import Throttle
from unhans.server.security import RateLimit
from unhans.store import batches
from unhans.store.schema import users
from unhans.supervising import WorkerSettings, tamed
from unhans.text import Words
from unhans.types import Feedback, Recipe, Revision, from_json, to_json

HERE = ("host", "localhost:8000")
P = f"/api/projects/{OURS}"
RAW = {"content-type": "application/octet-stream"}
RAW_BODY = {"content": b"\n", "headers": RAW}


def code_of(answer: Any) -> str:
    """The code of an error, which has the one shape."""
    told = answer.json()
    assert set(told["error"]) == {"code", "message", "request_id"}
    assert told["error"]["request_id"] == answer.headers["x-request-id"]
    return told["error"]["code"]


def entries(site: Site, project: str = OURS) -> list[Feedback]:
    return list(site.workspace.records(project).log.entries())


# -- names and paths

NAMES = (
    "../../e.csv",
    "/etc/x.csv",
    "a\\..\\b.csv",
    "%2e%2e%2fe.csv",
    "..%252f..%252fe.csv",
    "C:\\x.csv",
    f"{'x' * 300}.csv",
    "CON.csv",
    "\u202egnp.exe.csv",
    "a\r\nSet-Cookie: x=1.csv",
    "<script>.csv",
    "~root/x.csv",
    "\ufffe\x1b]0;x\x07.csv",
    ".csv",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_stored_under_a_name_of_our_own_whatever_it_was_called(site: Site, name: str) -> None:
    root = site.workspace.root
    before = {path for path in root.parent.rglob("*") if "uploads" not in path.parts}
    answer = site.ask("amy", "POST", "/api/uploads", params={"kind": "data", "name": name}, content=b"x", headers=RAW)
    assert answer.status_code == 200
    told = answer.json()
    assert re.fullmatch("[0-9a-f]{32}", told["id"])
    assert [path.name for path in (root / "uploads" / told["id"]).iterdir()] == ["data.csv"]
    assert told["name"].isprintable()
    assert not set("/\\") & set(told["name"])
    assert len(told["name"]) <= 200
    assert {path for path in root.parent.rglob("*") if "uploads" not in path.parts} == before


@pytest.mark.parametrize("name", ["x.html", "x.svg", "x.csv/..", "x.csv ", "x.csv\0", "x", "..", "x.zip", "x.csv\n"])
def test_a_file_of_another_kind_is_refused_and_nothing_is_left(site: Site, name: str) -> None:
    folder = site.workspace.root / "uploads"
    before = sorted(folder.iterdir()) if folder.exists() else []
    answer = site.ask("amy", "POST", "/api/uploads", params={"kind": "data", "name": name}, content=b"x", headers=RAW)
    assert answer.status_code in (400, 422)
    assert code_of(answer) in ("invalid", "bad_option")
    assert (sorted(folder.iterdir()) if folder.exists() else []) == before


def test_a_nul_byte_sent_as_it_is_is_refused(site: Site) -> None:
    headers = [HERE, *site.cookie("amy").items(), *RAW.items()]
    assert site.raw("POST", "/api/uploads", headers, b"x", query=b"kind=data&name=a\0.csv")[0] == 400
    assert site.raw("GET", f"{P}/examples\0", headers)[0] == 404
    assert site.raw("GET", f"{P}\0", headers)[0] == 404


OUTSIDE = (
    "/assets/../index.html",
    "/assets/..%2findex.html",
    "/assets/%2e%2e/index.html",
    "/assets/....//index.html",
    "/assets//etc/passwd",
    "/assets/%2fetc%2fpasswd",
    "/assets/\0",
    "/assets/app.js\0",
    "/assets/leads-out.js",
    "/assets/leads-out/index.html",
    "/assets/\\..\\index.html",
    "/assets/C:/x",
    f"/assets/{'a/' * 500}x",
    f"/assets/{'a' * 5000}",
    "/assets/.",
    "/assets/",
    f"/api/projects/..%2f{OURS}",
    "/api/projects/..",
    "/api/projects/.",
    f"/api/projects/{OURS}/..",
    f"/api/projects/{OURS}/../{OTHER}/examples",
    f"/api/projects/{OURS}/problems/../../{OTHER}",
    f"/api/projects/{OURS}/problems/%2e%2e/set-aside.csv",
    f"/api/projects/{OURS}/unhans.sqlite",
    "/unhans.sqlite",
    "/workspace.json",
    "/uploads",
    "//etc/passwd",
    "/../../etc/passwd",
)


@pytest.mark.parametrize("path", OUTSIDE)
def test_an_address_that_leads_elsewhere_leads_nowhere(site: Site, path: str) -> None:
    folder = unhans.server.STATIC
    for link, target in (("leads-out.js", folder / "index.html"), ("leads-out", folder)):
        if not (folder / "assets" / link).is_symlink():
            (folder / "assets" / link).symlink_to(target)
    status, _, body = site.raw("GET", path, [HERE, *site.cookie("root").items()])
    assert status == 404
    assert b"doctype" not in body
    decoded = path.replace("%2f", "/").replace("%2e", ".")
    assert site.raw("GET", decoded, [HERE, *site.cookie("root").items()])[0] == 404


def test_what_was_sent_cannot_be_fetched_back(site: Site) -> None:
    page = b"<script>alert(1)</script>"
    sent = site.ask("amy", "POST", "/api/uploads", params={"kind": "data", "name": "x.csv"}, content=page, headers=RAW)
    id_ = sent.json()["id"]
    for path in (f"/api/uploads/{id_}", f"/uploads/{id_}/data.csv", f"/assets/../uploads/{id_}/data.csv"):
        status, _, body = site.raw("GET", path, [HERE, *site.cookie("amy").items()])
        assert status in (404, 405)
        assert page not in body


@pytest.mark.parametrize(
    "path",
    [f"{P}/problems/set-aside.csv"]
    + [f"{P}/feedback/export?format={name}" for name in ("jsonl", "csv", "eraser", "prodigy", "label_studio")],
)
def test_a_download_is_never_shown_by_the_browser(site: Site, path: str) -> None:
    example = site.workspace.records(OURS).table.at(1)
    site.answer("amy", {"kind": "review", "example": example.id, "state": "flagged", "note": "<script>x</script>"})
    answer = site.ask("amy", "GET", path)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "html" not in answer.headers["content-type"]
    assert "default-src 'self'" in answer.headers["content-security-policy"]


# -- strings that mean something elsewhere


@pytest.fixture(scope="module")
def canary() -> Iterator[tuple[int, list[Any]]]:
    """A server on this machine that nothing should ever ask."""
    hits: list[Any] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            hits.append(self.client_address)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1], hits
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module", params=KINDS)
def any_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The application on each database."""
    if request.param == "sqlite":
        yield request.getfixturevalue("module_site")
        return
    folder, database = new_folder(tmp_path_factory.mktemp("other"), request.param)
    with serve(folder, database) as served:
        yield served


SQL = (
    "' OR '1'='1", "'; DROP TABLE users; --", "x') UNION SELECT name, password FROM users --", "%", "_\\", "%s",
    ":name", "$1", "\ufffe", "1e999",
)  # fmt: skip


def hostile(port: int, secret: Path) -> tuple[str, ...]:
    return (
        *SQL, "{{7*7}}", "/etc/passwd", str(secret), f"file://{secret}", "~", "../..", "C:\\x", f"http://127.0.0.1:{port}/x",
        f"//127.0.0.1:{port}/", "(a+)+$", "__proto__", "null", "\U0001f600", "ß" * 100,
    )  # fmt: skip


def requests(site: Site) -> list[tuple[str, str, str, Any]]:
    """Requests that are in order: method, path, `json` or `params`, and what is sent; every string in it is a slot."""
    key, revision = new_key(), site.revision
    somebody = site.accounts.add(new_key(), "annotator", None).name
    example = site.workspace.records(OURS).table.at(0)
    vote = site.says("raise")
    everywhere = vote | {"example": None, "position": None}
    common = {"revision": revision, "text_hash": example.text_hash, "expects": ""}
    answers = [
        vote,
        everywhere,
        {"kind": "relabel", "example": example.id, "label": "positive"},
        {"kind": "review", "example": example.id, "state": "done", "note": "n"},
        {"kind": "ruling", "subject": "s", "value": "raise"},
        {"kind": "flip_rating", "counterfactual": "c", "plausible": 1, "meaningful": 1, "agrees": 1},
        {"kind": "neighbour_rating", "anchor": "a", "train": "t", "similar": 1},
    ]
    filters = {"label": "positive", "predicted": "positive", "contains": "a", "word": "the", "split": "x", "group": "x"}
    shown = filters | {"state": "done", "sort": "order", "cursor": "WzAuMCwgMF0"}
    explained = site.workspace.records(OURS).explained.sets(revision)[0].id
    job = {"kind": "explain", "method": "leave_one_out", "target": "positive", "units": "word", "options": {"a": "b"}}
    fix = {"fix": "word_dropout", "options": {"rate": "x"}, "training": {"lora": "x"}, "rivals": ["relabel"]}
    fix |= {"people": ["ann"], "expectations": ["accuracy >= 0"]}
    records = site.workspace.records(OURS)
    flip, word = rewritten(records, 0), Words(example).strings[0]
    rating = {"kind": "flip_rating", "counterfactual": flip.id, "plausible": 1, "meaningful": 1, "agrees": None}
    hunt = {"method": "hotflip", "options": {"candidates": "5"}, "search": {"protected": "x"}, "target": "positive"}
    hunt |= {"places": [0], "start": [{"position": 0, "old": word, "new": "x"}], "edits_in": "rationale"}
    hunt |= {"attribution": "leave_one_out", "rationale": "top_share"}
    traced(records, 1, (0,))
    similar = {"kind": "neighbour_rating", "anchor": records.table.at(1).id, "train": example.id, "similar": 1}
    search = {"method": "lissa", "options": {"depth": "5"}, "places": [1], "of": "label"}
    chosen = {"split": "test", "heuristic": "contains_word", "heuristic_options": {"word": "a"}}
    copy = copied(records, 0, "a copy to be attacked")
    copies = {"method": "word_dropout", "options": {"share": "0.1"}, "places": [0], "check": "model"}
    plan = {"model": "0" * 32, "data": "0" * 32, "title": "x", "labels": {"a": "b"}}
    columns = dict.fromkeys(("text", "pair", "label", "group", "split", "id"), "x")
    return [
        ("POST", "/api/login", "json", {"name": "nobody", "password": PASSWORD}),
        ("POST", "/api/join", "json", {"invite": "x", "name": "x", "password": PASSWORD}),
        ("PUT", "/api/me/preferences", "json", {"theme": "dark"}),
        ("POST", "/api/me/password", "json", {"old": "x", "new": PASSWORD}),
        ("PATCH", f"/api/people/{somebody}", "json", {"role": "annotator", "projects": [OTHER]}),
        ("POST", "/api/invites", "json", {"role": "annotator", "projects": [OURS]}),
        ("GET", "/api/jobs", "params", {"project": OURS}),
        ("POST", "/api/uploads", "params", {"kind": "data", "name": "x.csv"}),
        ("POST", "/api/checks", "json", plan | {"columns": columns}),
        ("POST", "/api/projects", "json", plan | {"columns": columns}),
        ("PATCH", P, "json", {"guidelines": "x"}),
        ("GET", f"{P}/examples", "params", shown),
        ("GET", f"{P}/examples/0", "params", filters | {"explained": explained}),
        ("POST", f"{P}/next", "json", {"filter": filters}),
        *(("POST", f"{P}/feedback", "json", {"key": key, "says": says} | common) for says in answers),
        ("POST", f"{P}/undo", "json", {"key": key, "retracts": "x", "example": example.id}),
        ("GET", f"{P}/feedback", "params", {"author": "ann", "cursor": "1"}),
        ("GET", f"{P}/feedback/export", "params", {"format": "csv"}),
        ("POST", f"{P}/feedback/import", "params", {"format": "csv"}),
        ("GET", f"{P}/words", "params", {"label": "positive", "search": "a", "order": "score", "explained": explained}),
        ("GET", f"{P}/words", "params", {"label": "positive", "cursor": "WzAuMCwgMF0"}),
        ("GET", f"{P}/word", "params", {"label": "positive", "word": "the", "explained": explained}),
        ("POST", f"{P}/jobs", "json", job),
        ("GET", f"{P}/fixes", "params", {"people": "ann"}),
        ("POST", f"{P}/fixes", "json", fix),
        ("POST", f"{P}/revisions/r0/publish", "json", {"expects": "r7"}),
        ("POST", f"{P}/rollback", "json", {"expects": "r7"}),
        ("POST", f"{P}/comparisons", "json", {"before": "r0", "after": "r7", "expectations": ["accuracy >= 0"]}),
        ("POST", f"{P}/exports", "json", {"revision": "r7"}),
        ("POST", f"{P}/feedback", "json", {"key": key, "says": rating | {"label": "positive"}} | common),
        ("GET", f"{P}/flips", "params", {"revision": "r0", "method": "hotflip", "cursor": "WzAuMCwgMF0"}),
        ("POST", f"{P}/flips", "json", hunt),
        ("GET", f"{P}/flips/chart", "params", {"revision": "r0"}),
        ("GET", f"{P}/flips/export", "params", {"revision": "r0", "format": "jsonl"}),
        ("GET", f"{P}/risk", "params", {"revision": "r0", "width": "0.5"}),
        ("GET", f"{P}/examples/0/flips", "params", filters | {"explained": explained, "rationale": "spans"}),
        ("GET", f"{P}/examples/0/flips", "params", {"revision": "r0", "sort": "order"}),
        ("POST", f"{P}/feedback", "json", {"key": key, "says": similar} | common),
        ("GET", f"{P}/anchors", "params", {"revision": "r0", "waiting": "true", "cursor": "WzAuMCwgMF0"}),
        ("GET", f"{P}/anchors/1", "params", {"revision": "r0"}),
        ("POST", f"{P}/anchors", "json", search),
        ("POST", f"{P}/anchors", "json", chosen),
        ("GET", f"{P}/copies", "params", {"place": "0", "cursor": "WzAuMCwgMF0"}),
        ("POST", f"{P}/copies", "json", copies),
        ("PATCH", f"{P}/copies/{copy.id}", "json", {"seen": "x", "text": "x", "pair": "x"}),
        ("GET", f"{P}/doubts", "params", {"revision": "r0", "label": "positive", "cursor": "WzAuMCwgMF0"}),
        ("POST", f"{P}/doubts", "json", {"signs": ["low_confidence"]}),
    ]


NAMED = (
    ("GET", "/api/projects/SLOT"),
    ("DELETE", "/api/people/SLOT"),
    ("GET", "/api/jobs/SLOT"),
    ("POST", "/api/jobs/SLOT/cancel"),
    ("DELETE", "/api/invites/SLOT"),
    ("GET", f"{P}/examples/SLOT"),
    ("GET", f"{P}/fixes/SLOT/curve"),
    ("GET", f"{P}/reports/SLOT/r0"),
    ("GET", f"{P}/reports/r0/SLOT/page.html"),
    ("GET", f"{P}/exports/SLOT.zip"),
    ("GET", f"{P}/flips/SLOT"),
    ("GET", f"{P}/examples/SLOT/flips"),
    ("GET", f"{P}/anchors/SLOT"),
    ("DELETE", f"{P}/copies/SLOT"),
)


def grouped(asked: list[Any]) -> Iterator[list[Any]]:
    """Requests to be sent together: of uploads, two at a time are taken."""
    uploads = [one for one in asked if one[1] == "/api/uploads"]
    others = [one for one in asked if one[1] != "/api/uploads"]
    yield from batches(uploads, 2)
    yield from batches(others, 50)


def slots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from slots(inner, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: str) -> Any:
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = put(copied[path[0]], path[1:], new)
    return copied


def test_no_string_in_any_field_is_taken_for_a_path_an_address_or_a_piece_of_sql(
    any_site: Site, canary: tuple[int, list[Any]], tmp_path: Path
) -> None:
    site, (port, hits) = any_site, canary
    site.forget_sessions()
    secret = tmp_path / "secret.csv"
    secret.write_text("text,label\nkept-from-everybody,positive\n")
    texts = hostile(port, secret) if site.workspace.store.is_sqlite else SQL
    asked = [
        (method, path, {how: put(sent, slot, text)} | (RAW_BODY if (method, how) == ("POST", "params") else {}))
        for method, path, how, sent in requests(site)
        for slot in slots(sent)
        for text in texts
    ]
    asked += [(method, path.replace("SLOT", quote(text, safe="")), {}) for method, path in NAMED for text in texts]
    people = [row.name for row in site.accounts.list()]
    log = len(entries(site, OTHER))
    with site.unhurried():
        for some in grouped(asked):
            for (method, path, sent), answer in zip(
                some, site.together(*(("root", *one) for one in some)), strict=True
            ):
                told = (method, path, sent, answer.status_code, answer.text[:200])
                assert answer.status_code < 500, told
                assert "kept-from-everybody" not in answer.text, told
                assert "root:" not in answer.text, told
                assert "scrypt" not in answer.text, told
    assert [row.name for row in site.accounts.list() if not row.name.isascii() or row.name in people] == people
    assert len(entries(site, OTHER)) == log
    assert site.workspace.names() == [OURS, OTHER]
    assert not hits
    for job in site.workspace.jobs.list(projects=None, states=("queued",), limit=10_000):
        site.workspace.jobs.cancel(job.id)  # what they ask for is told to their owner, and others look for paths there


@pytest.mark.parametrize(
    ("needle", "found"),
    [
        ("(a+)+$", 0), (".*", 0), ("^", 0), ("[a-z]", 0), ("%", 0), ("_", 0), ("\\", 0), ("the", 7), ("THE", 7),
        ("GRÜ", 1), ("299.95", 1), ("299x95", 0), ("日本", 1),
    ],
)  # fmt: skip
def test_searching_is_for_the_very_signs_and_never_a_pattern(any_site: Site, needle: str, found: int) -> None:
    assert found == sum(needle.casefold() in text.casefold() for text in tiny.SENTENCES)
    for field in ("contains", "word"):
        answer = any_site.ask("root", "GET", f"{P}/examples", params={field: needle})
        assert answer.status_code == 200
        if field == "contains":
            assert len(answer.json()["items"]) == found
    assert any_site.ask("root", "GET", f"{P}/words", params={"label": "positive", "search": needle}).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "user__password=a", "owner.email=a", "sort=password", "sort=confidence;DROP", "sort=", "order=x", "id=x",
        "label__startswith=p", "label[$ne]=x", "predicted->>'x'=1", "state=done' OR 1=1", "correct=maybe",
        "min_confidence=NaN", "min_confidence=1e999", "limit=0", "limit=100000", "limit=-1", "limit=1;", "cursor=",
        "cursor=zzz", "cursor=WzAuNSwgSW5maW5pdHld", "cursor=WzFlOTk5LCAwXQ", "cursor=WzAsIDFlOTld", "min_words=-1",
    ],
)  # fmt: skip
def test_lists_are_narrowed_and_ordered_by_fields_that_are_offered_and_by_nothing_else(site: Site, query: str) -> None:
    assert site.ask("ann", "GET", f"{P}/examples?{query}").status_code == 422
    assert site.ask("ann", "GET", f"{P}/words?label=positive&{query}").status_code == 422


def test_a_filter_in_a_body_has_only_its_own_fields(site: Site) -> None:
    for extra in ({"user__password": "a"}, {"sort": "order"}, {"author": "art"}):
        answer = site.ask("ann", "POST", f"{P}/next", json={"filter": extra})
        assert answer.status_code == 422
        assert next(iter(extra)) not in answer.text


# -- web pages on the same machine, and programs that pretend to be elsewhere

FOREIGN: list[tuple[str, list[tuple[str, str]], int]] = [
    ("another host", [("host", "evil.example")], 421),
    ("a host that begins like ours", [("host", "localhost.evil.example")], 421),
    ("a name that leads to this machine", [("host", "127.0.0.1.nip.io")], 421),
    ("no name", [("host", "")], 421),
    ("no host", [], 421),
    ("two hosts", [("host", "localhost"), ("host", "evil.example")], 421),
    ("a host with a user", [("host", "localhost:80@evil.example")], 421),
    ("another origin", [HERE, ("origin", "http://evil.example")], 403),
    ("no origin to speak of", [HERE, ("origin", "null")], 403),
    ("another port of ours", [HERE, ("origin", "http://localhost:8001")], 403),
    ("another site", [HERE, ("sec-fetch-site", "cross-site")], 403),
    ("another name of the same site", [HERE, ("sec-fetch-site", "same-site")], 403),
]


@pytest.mark.parametrize(("headers", "expected"), [(h, e) for _, h, e in FOREIGN], ids=[name for name, _, _ in FOREIGN])
def test_a_request_from_elsewhere_is_refused_with_and_without_a_cookie(
    site: Site, headers: list[tuple[str, str]], expected: int
) -> None:
    cookie = list(site.cookie("ann").items())
    body = json.dumps({"key": new_key(), "says": site.says("raise"), "revision": site.revision}).encode()
    before = dump(*site.stores)
    for signed in ([], cookie):
        as_json = [*headers, *signed, ("content-type", "application/json")]
        assert site.raw("POST", f"{P}/feedback", as_json, body)[0] == expected
        assert site.raw("POST", "/api/logout", [*headers, *signed])[0] == expected
        for path in ("/api/me", "/api/events", f"{P}/examples"):
            assert site.raw("GET", path, [*headers, *signed])[0] == expected
        if expected == 421:
            assert site.raw("GET", "/", [*headers, *signed])[0] == expected
        assert site.raw("GET", "/healthz", [*headers, *signed])[0] == 200
    assert dump(*site.stores) == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""]
)
def test_json_that_does_not_say_so_is_refused(site: Site, kind: str) -> None:
    body = json.dumps({"key": new_key(), "says": site.says("raise"), "revision": site.revision})
    before = len(entries(site))
    answer = site.ask("ann", "POST", f"{P}/feedback", content=body, headers={"content-type": kind} if kind else {})
    assert (answer.status_code, code_of(answer)) == (415, "wrong_type")
    assert len(entries(site)) == before


def test_there_are_no_web_sockets(site: Site) -> None:
    sent: list[Any] = []

    async def act() -> None:
        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost:8000"), *((k.encode(), v.encode()) for k, v in site.cookie("root").items())]
        await site.app({"type": "websocket", "path": "/api/events", "headers": headers}, receive, send)

    site.run(act)
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize("onward", ["//evil.example", "/\\evil.example", "https:evil.example", "%2f%2fevil.example"])
def test_nobody_is_sent_to_another_site(site: Site, onward: str) -> None:
    for path in ("/", "/assets", f"{P}/", f"/{onward}/", f"{onward}/assets"):
        for query in (f"next={onward}", f"token={site.token.token}&next={onward}", f"redirect={onward}"):
            _, headers, _ = site.raw("GET", path, [HERE], query=query.encode())
            for value in (value.decode() for name, value in headers if name == b"location"):
                assert value == "./" or value.startswith("http://localhost:8000/")
    answer = site.ask(None, "POST", f"/api/login?next={onward}", json={"name": "ann", "password": PASSWORD})
    assert "location" not in answer.headers


def test_the_token_leaves_the_address_and_is_told_to_nobody(site: Site) -> None:
    answer = site.ask(None, "GET", "/", params={"token": site.token.token})
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert site.token.token not in str(answer.headers) + answer.text
    wrong = site.ask(None, "GET", "/", params={"token": "f" * 64})
    assert wrong.status_code == 403
    assert "set-cookie" not in wrong.headers
    assert "f" * 64 not in wrong.text


# -- sessions


def test_a_session_ends_with_the_password_the_role_the_project_and_the_account(site: Site) -> None:
    def looks(who: str) -> tuple[int, int, int]:
        return tuple(  # type: ignore[return-value]
            site.ask(who, "GET", path).status_code for path in ("/api/me", f"{P}/examples", f"{P}/team")
        )

    site.accounts.add("eve", "manager", PASSWORD, [OURS])
    assert looks("eve") == (200, 200, 200)
    job = site.ask("eve", "POST", f"{P}/jobs", json={"kind": "predict"}).json()["id"]
    site.ask("root", "PATCH", "/api/people/eve", json={"role": "annotator"})
    assert looks("eve") == (200, 200, 403)
    site.ask("root", "PATCH", "/api/people/eve", json={"projects": []})
    assert looks("eve") == (200, 404, 404)
    assert site.ask("eve", "GET", f"/api/jobs/{job}").status_code == 404
    assert site.ask("eve", "POST", f"/api/jobs/{job}/cancel").status_code == 404
    assert job not in site.ask("eve", "GET", "/api/jobs").text
    site.accounts.set_password("eve", f"{PASSWORD} 2")
    assert looks("eve") == (401, 401, 401)
    site.forget_sessions()
    assert looks("eve") == (200, 404, 404)
    site.ask("root", "DELETE", "/api/people/eve")
    assert looks("eve") == (401, 401, 401)


def test_who_is_no_manager_any_more_cannot_have_a_project_made_after_all(site: Site) -> None:
    site.accounts.add("max", "manager", PASSWORD, [OURS])
    made = site.workspace.jobs.add("create", project=None, by="max", options={})
    site.workspace.jobs.cancel(made.id)
    site.ask("root", "PATCH", "/api/people/max", json={"role": "annotator"})
    assert site.ask("max", "POST", f"/api/jobs/{made.id}/retry").status_code == 403


def test_a_stream_of_news_ends_with_the_session(site: Site) -> None:
    site.accounts.add("sue", "annotator", PASSWORD, [OURS])
    headers = [HERE, *site.cookie("sue").items()]

    async def act() -> list[Any]:
        sent: list[Any] = []
        begun = asyncio.Event()

        async def receive() -> Any:
            await asyncio.sleep(3600)

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("body"):
                begun.set()

        scope = {
            "type": "http", "method": "GET", "path": "/api/events", "raw_path": b"/api/events", "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in headers], "client": ("192.0.2.1", 1), "scheme": "http",
            "http_version": "1.1", "server": ("127.0.0.1", 8000), "root_path": "", "asgi": {"version": "3.0"},
        }  # fmt: skip
        task = asyncio.create_task(site.app(scope, receive, send))
        await begun.wait()
        await asyncio.to_thread(site.accounts.remove, "sue")
        await asyncio.wait_for(task, 30)
        return sent

    sent = site.run(act)
    assert sent[0]["status"] == 200
    assert b"event: jobs" in sent[1]["body"]
    assert not sent[-1].get("more_body")


# -- things of other projects


def test_what_belongs_to_another_project_does_not_exist_in_this_one(site: Site) -> None:
    theirs = site.workspace.records(OTHER)
    example = theirs.table.at(0)
    explained = theirs.explained.sets(theirs.current.id)[0].id
    with site.unhurried():
        says = {"kind": "review", "example": example.id, "state": "done"}
        answered = site.ask(
            "bob",
            "POST",
            f"/api/projects/{OTHER}/feedback",
            json={"key": new_key(), "says": says, "revision": theirs.current.id},
        ).json()["feedback"]["id"]
    job = site.workspace.jobs.add("predict", project=OTHER, by="ben", options={})
    site.cookie("amy")
    before = dump(*site.stores)
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", f"{P}/feedback", {"json": {"key": new_key(), "says": says, "revision": site.revision}}),
        (
            "POST",
            f"{P}/feedback",
            {
                "json": {
                    "key": new_key(),
                    "says": site.says("raise") | {"example": example.id},
                    "revision": site.revision,
                }
            },
        ),
        (
            "POST",
            f"{P}/feedback",
            {
                "json": {
                    "key": new_key(),
                    "says": {"kind": "relabel", "example": example.id, "label": "positive"},
                    "revision": site.revision,
                }
            },
        ),
        (
            "POST",
            f"{P}/feedback",
            {"json": {"key": new_key(), "says": site.says("raise"), "revision": theirs.current.id}},
        ),
        ("POST", f"{P}/undo", {"json": {"key": new_key(), "retracts": answered}}),
        ("GET", f"{P}/examples/0", {"params": {"explained": explained}}),
        ("GET", f"{P}/words", {"params": {"label": "positive", "explained": explained}}),
        ("GET", f"{P}/word", {"params": {"label": "positive", "word": "the", "explained": explained}}),
        ("GET", f"{P}/examples/{len(tiny.SENTENCES)}", {}),
        ("POST", f"{P}/jobs", {"json": {"kind": "explain", "places": [len(tiny.SENTENCES)]}}),
        ("GET", f"/api/jobs/{job.id}", {}),
        ("POST", f"/api/jobs/{job.id}/cancel", {}),
        ("GET", "/api/jobs", {"params": {"project": OTHER}}),
        ("POST", "/api/invites", {"json": {"projects": [OTHER]}}),
    ]
    for method, path, more in asked:
        answer = site.ask("amy", method, path, **more)
        assert (answer.status_code, code_of(answer)) == (404, "not_found"), (path, more, answer.text)
    undone = site.ask("amy", "POST", f"{P}/undo", json={"key": new_key(), "example": example.id})
    assert undone.json()["feedback"] is None
    assert site.ask("amy", "GET", f"{P}/feedback", params={"author": "bob"}).json()["items"] == []
    for path in ("/api/jobs", "/api/home", "/api/invites", "/api/uploads"):
        assert OTHER not in site.ask("amy", "GET", path).text
    assert dump(*site.stores) == before


# -- blind judging


def everything(site: Site, who: str) -> dict[str, Any]:
    """All that somebody can look at in our project."""
    paths = [
        "/api/home", "/api/jobs", P, f"{P}/problems", f"{P}/feedback", f"{P}/methods",
        *(f"{P}/examples?{query}" for query in ("", "sort=least_confident", *(f"state={s}" for s in STATES))),
        *(f"{P}/examples/{place}" for place in range(4)),
        *(f"{P}/words?label={label}&order={order}" for label in LABELS for order in ("damage", "total", "score")),
        *(f"{P}/word?label={label}&word={word}" for label in LABELS for word in ("The", "the", "soup", "was")),
    ]  # fmt: skip
    return {path: site.ask(who, "GET", path).json() for path in paths}


STATES, LABELS = ("pending", "draft", "done", "skipped", "flagged"), ("positive", "negative")


def test_an_annotator_cannot_find_out_how_others_voted(site: Site) -> None:
    site.ask("amy", "PATCH", P, json={"blind": True, "overlap": 3})
    for vote in (site.says("raise"), site.says("raise") | {"example": None, "position": None}):
        assert site.answer("ann", vote).status_code == 200
    before = everything(site, "ann")
    example = site.workspace.records(OURS).table.at(0).id
    said = [
        site.says("lower"),
        site.says("lower", word=1),
        site.says("raise", place=1),
        site.says("lower") | {"example": None, "position": None},
        {"kind": "relabel", "example": example, "label": "positive"},
    ]
    for says in said:
        assert site.answer("art", says).status_code == 200
    assert everything(site, "ann") == before
    for author in ("art", "*"):
        assert site.ask("ann", "GET", f"{P}/feedback", params={"author": author}).status_code == 403
    for path in ("team", "feedback/export?format=jsonl", "feedback/export?format=csv"):
        assert site.ask("ann", "GET", f"{P}/{path}").status_code == 403
    for wanted in ("true", "false"):
        assert site.ask("ann", "GET", f"{P}/examples?disagreement={wanted}").status_code == 403
        assert site.ask("ann", "GET", f"{P}/examples/0?disagreement={wanted}").status_code == 403
        asked = {"filter": {"disagreement": wanted == "true"}}
        assert site.ask("ann", "POST", f"{P}/next", json=asked).status_code == 403


def test_managers_see_what_blind_annotators_do_not_and_so_does_everybody_where_judging_is_open(site: Site) -> None:
    site.answer("ann", site.says("raise", place=2))
    site.answer("art", site.says("lower", place=2))
    word = site.says("raise", place=2)["word"]

    def seen(who: str) -> tuple[int, int, int]:
        listed = site.ask(who, "GET", f"{P}/examples?disagreement=true")
        others = {one["feedback"]["author"] for one in site.ask(who, "GET", f"{P}/examples/2").json()["others"]}
        view = site.ask(who, "GET", f"{P}/word", params={"label": "positive", "word": word}).json()
        return listed.status_code, len(others - {who}), view["raised_here"] + view["lowered_here"]

    site.ask("amy", "PATCH", P, json={"blind": True})
    assert seen("ann") == (403, 0, 1)
    status, others, votes = seen("amy")
    assert (status, others, votes >= 2) == (200, 2, True)
    site.ask("amy", "PATCH", P, json={"blind": False})
    status, others, votes = seen("ann")
    assert (status, others, votes >= 2) == (200, 1, True)
    site.ask("amy", "PATCH", P, json={"blind": True})


def test_finished_examples_of_others_count_in_the_progress_and_show_nowhere_else(site: Site) -> None:
    before = everything(site, "ann")
    example = site.workspace.records(OURS).table.at(3).id
    done = site.ask("ann", "GET", P).json()["progress"]["anyone"]
    site.answer("art", {"kind": "review", "example": example, "state": "done", "note": "secret note"})
    after = everything(site, "ann")
    assert after[P]["progress"]["anyone"] == done + 1
    changed = {path for path, told in after.items() if told != before[path]}
    assert changed == {P, "/api/home"}
    assert "secret note" not in json.dumps(after)


# -- bodies that break parsers

LARGE = "9" * 5000


@pytest.mark.parametrize(
    "note",
    [
        "[" * 200_000,
        LARGE,
        "1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        '"\\ud800"',
        '"\\u0000"',
        '"a", "note": "b"',
        "{",
        '"\xff"',
    ],
    ids=["deep", "digits", "1e400", "NaN", "inf", "-inf", "surrogate", "nul", "twice", "open", "latin-1"],
)
def test_json_that_breaks_readers_is_refused_and_nothing_is_stored(site: Site, note: str) -> None:
    example = site.workspace.records(OURS).table.at(0).id
    body = (
        f'{{"key": "{new_key()}", "revision": "{site.revision}", '
        f'"says": {{"kind": "review", "example": "{example}", "state": "done", "note": {note}}}}}'
    )
    before = len(entries(site))
    headers = {"content-type": "application/json"}
    answer = site.ask("ann", "POST", f"{P}/feedback", content=body.encode("latin-1"), headers=headers)
    assert (answer.status_code, code_of(answer)) == (400, "invalid")
    assert len(entries(site)) == before


@pytest.mark.parametrize("seconds", [True, "5", -1, 1e9])
def test_numbers_are_numbers_and_in_their_bounds(site: Site, seconds: Any) -> None:
    answer = site.answer("ann", site.says("raise"), seconds=seconds)
    assert answer.status_code == 422


FILES = {
    "jsonl": [b"\x00", b"\xff\xfe", b"[" * 100_000, b'{"id": "\\ud800"}', b"NaN", b"{}", b'{"id": 1e999}', b"null\n\n"],
    "csv": [b"\x00", b'"', b"id,id\n1,2", b"=1", b"id,author\n\x00,b", b"\xff\xfe\x00", b"," * 100_000],
    "eraser": [b"{}", b"[]", b'{"annotation_id": "\\ud800"}'],
    "prodigy": [b"{}", b'{"text": "\\u0000", "spans": 7}'],
    "label_studio": [b"[" * 1000, b"{}", b'[{"annotations": null}]', b'[{"data": {"text": "\\ud800"}}]'],
}


@pytest.mark.parametrize(("format", "content"), [(f, content) for f, some in FILES.items() for content in some])
def test_a_broken_file_of_feedback_is_told_of_and_adds_nothing(any_site: Site, format: str, content: bytes) -> None:
    before = len(entries(any_site))
    answer = any_site.ask(
        "amy", "POST", f"{P}/feedback/import", params={"format": format}, content=content, headers=RAW
    )
    assert answer.status_code in (200, 422), answer.text
    assert answer.status_code == 422 or answer.json()["stored"] == 0
    assert len(entries(any_site)) == before


def test_imported_names_with_characters_that_cannot_be_stored_are_set_aside_on_both_databases(any_site: Site) -> None:
    line = json.loads(to_json(an_entry(any_site, "x-1", "ann")))
    lines = [line | {"id": "x-\0"}, line | {"id": "x-2", "author": "\ud800"}, line | {"id": "x" * 100_000}]
    body = "\n".join(json.dumps(one) for one in lines).encode()
    answer = any_site.ask("amy", "POST", f"{P}/feedback/import?format=jsonl", content=body, headers=RAW)
    assert answer.status_code == 200
    assert answer.json()["stored"] + len(answer.json()["refused"]) == 3


def an_entry(site: Site, id_: str, author: str, note: str = "") -> Feedback:
    example = site.workspace.records(OURS).table.at(5)
    told = {"kind": "review", "example": example.id, "state": "flagged", "note": note}
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return from_json(
        Feedback,
        json.dumps({"id": id_, "says": told, "author": author, "at": at, "revision": site.revision, "text_hash": None}),
    )


# -- files that others open

FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "'=1")


def test_an_exported_table_has_no_formulas_and_the_lines_of_json_are_exact(site: Site) -> None:
    example = site.workspace.records(OURS).table.at(4).id
    for note in FORMULAS:
        assert (
            site.answer("ann", {"kind": "review", "example": example, "state": "done", "note": note}).status_code == 200
        )
    table = site.ask("amy", "GET", f"{P}/feedback/export", params={"format": "csv"}).content.decode()
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    assert len(rows) == len(entries(site))
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
    lines = site.ask("amy", "GET", f"{P}/feedback/export", params={"format": "jsonl"}).content.decode().split("\n")
    told = [from_json(Feedback, line) for line in lines if line]
    assert told == entries(site)
    assert {one.says.note for one in told if one.says.kind == "review"} >= set(FORMULAS)


# -- too much


def test_a_third_upload_at_the_same_time_is_asked_to_come_again(site: Site) -> None:
    async def act() -> list[int]:
        release = asyncio.Event()
        begun = [asyncio.Event(), asyncio.Event()]

        async def slow(n: int) -> Any:
            yield b"some"
            begun[n].set()
            await release.wait()
            yield b"more"

        def upload(content: Any) -> Any:
            address = "/api/uploads?kind=data&name=x.csv"
            return site.send("amy", "POST", address, content=content, headers=RAW)

        first = [asyncio.create_task(upload(slow(n))) for n in range(2)]
        for event in begun:
            await event.wait()
        third = await upload(b"x")
        release.set()
        sizes = [(await task).json()["size"] for task in first]
        again = await upload(b"x")
        assert sizes == [8, 8]
        return [third.status_code, again.status_code]

    assert site.run(act) == [503, 200]


def test_an_upload_that_breaks_off_leaves_nothing(site: Site) -> None:
    folder = site.workspace.root / "uploads"
    before = sorted(folder.iterdir()) if folder.exists() else []

    async def act() -> None:
        coming = [{"type": "http.request", "body": b"some", "more_body": True}, {"type": "http.disconnect"}]

        async def receive() -> Any:
            return coming.pop(0)

        async def send(_: Any) -> None:
            pass

        headers = [HERE, *site.cookie("amy").items(), *RAW.items()]
        scope = {
            "type": "http", "method": "POST", "path": "/api/uploads", "raw_path": b"/api/uploads", "scheme": "http",
            "query_string": b"kind=data&name=x.csv", "headers": [(k.encode(), v.encode()) for k, v in headers],
            "client": ("192.0.2.1", 1), "http_version": "1.1", "server": ("127.0.0.1", 8000), "root_path": "",
            "asgi": {"version": "3.0"},
        }  # fmt: skip
        await site.app(scope, receive, send)

    site.run(act)
    assert (sorted(folder.iterdir()) if folder.exists() else []) == before


def test_who_sends_too_fast_is_slowed_down_and_nobody_else(site: Site) -> None:
    room = site.inner.state.room
    now = [0.0]
    site.inner.state.room = replace(room, limit=RateLimit(rate=50, burst=20, clock=lambda: now[0]))
    try:
        before = len(entries(site))
        bodies = [{"key": new_key(), "says": site.says("raise"), "revision": site.revision} for _ in range(60)]
        told = site.together(*(("ann", "POST", f"{P}/feedback", {"json": body}) for body in bodies))
        codes = [answer.status_code for answer in told]
        assert (codes.count(200), codes.count(429)) == (20, 40)
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in told if answer.status_code == 429)
        assert len(entries(site)) == before + 20
        assert site.ask("art", "POST", f"{P}/feedback", json=bodies[0]).status_code == 200
        assert site.ask("ann", "GET", f"{P}/examples").status_code == 200
        now[0] += 1
        assert site.ask("ann", "POST", f"{P}/feedback", json=bodies[-1]).status_code == 200
    finally:
        site.inner.state.room = room


# -- what errors tell


def test_errors_tell_no_paths_addresses_traces_or_secrets(site: Site) -> None:
    root = site.workspace.root
    broken(root, "vanished")
    site.workspace.records("vanished").store.close()  # so that it must be opened again
    (root / "vanished" / "unhans.sqlite").write_bytes(b"")
    broken(root, "no-database").joinpath("unhans.sqlite").unlink()
    broken(root, "no database, with blanks").joinpath("unhans.sqlite").unlink()
    broken(root, "not-a-database").joinpath("unhans.sqlite").write_bytes(b"not a database" * 1000)
    broken(root, "no-manifest").joinpath("models", "r0", "manifest.json").unlink()
    broken(root, "bad-manifest").joinpath("models", "r0", "manifest.json").write_text("{")
    broken(root, "no-pointer").joinpath("models", "current").unlink()
    broken(root, "bad-facts").joinpath("project.json").write_text("{")
    broken(root, "odd-facts").joinpath("project.json").write_text('{"format": 2, "name": 7}')
    broken(root, "newer").joinpath("project.json").write_text('{"format": 99}')
    try:
        said = []
        for name in site.workspace.names():
            for path in ("", "/examples", "/examples/0", "/words?label=positive", "/team", "/problems", "/methods"):
                said.append(site.ask("root", "GET", f"/api/projects/{name}{path}"))
            if name not in (OURS, OTHER):
                assert said[-7].status_code in (500, 503), (name, said[-7].text)
                body = {"key": new_key(), "says": site.says("raise"), "revision": site.revision}
                said.append(site.ask("root", "POST", f"/api/projects/{name}/feedback", json=body))
        home = site.ask("root", "GET", "/api/home")
        assert home.status_code == 200
        assert len(home.json()["problems"]) >= 8
        said += [home, site.ask("amy", "GET", "/api/home"), site.ask("root", "GET", "/nowhere")]
        secrets = [site.token.token, *(value.partition("=")[2] for value in site.cookie("root").values())]
        for answer in said:
            told = answer.text + str(answer.headers)
            for leak in (str(root), str(root.parent), str(Path.home()), "Traceback", ".py", "sqlite:/", *secrets):
                assert leak not in told, told
            assert not re.search(r"(?<![\w<.])/(?:tmp|home|usr|var|root|etc)\b", answer.text), told
    finally:
        for path in root.iterdir():
            if path.is_dir() and path.name not in (OURS, OTHER, "uploads"):
                shutil.rmtree(path)


def broken(root: Path, name: str) -> Path:
    """A copy of a project, to be broken."""
    return Path(shutil.copytree(root / OURS, root / name))


def test_a_page_that_is_missing_is_told_of_without_saying_where_it_should_be(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("unhans.server.STATIC", tmp_path / "none")
    for path in ("/", "/icon.svg"):
        answer = site.ask(None, "GET", path)
        assert answer.status_code in (404, 503), answer.text
        assert str(tmp_path) not in answer.text


def test_what_a_stranger_is_told_is_the_same_whether_or_not_an_account_exists(site: Site) -> None:
    told = []
    site.accounts.throttle = Throttle()
    for name in ("ann", "nobody", "x' OR 1=1"):
        answer = site.ask(None, "POST", "/api/login", json={"name": name, "password": "not the password"})
        told.append((answer.status_code, answer.json()["error"]["message"]))
    assert len(set(told)) == 1
    assert told[0][0] == 403


# -- answers about what is not any more


def test_answers_about_another_revision_or_another_text_are_marked_as_stale(site: Site) -> None:
    root = site.workspace.root
    broken(root, "revised")
    records = site.workspace.records("revised")
    example, old = records.table.at(0), records.current
    path = "/api/projects/revised"

    def send(place: int, text_hash: str) -> None:
        says = {"kind": "review", "example": records.table.at(place).id, "state": "done"}
        body = {"key": new_key(), "says": says, "revision": records.current.id, "text_hash": text_hash}
        assert site.ask("root", "POST", f"{path}/feedback", json=body).status_code == 200

    def stale(place: int) -> list[str | None]:
        mine = site.ask("root", "GET", f"{path}/examples/{place}").json()["mine"]
        return [one["stale"] for one in mine if one["feedback"]["says"]["kind"] == "review"]

    send(0, example.text_hash)
    send(1, "another text")
    assert stale(0) == [None]
    assert stale(1)[0] is not None
    new = Revision("f" * 16, old.id, Recipe("load", "x"), old.labels, folder="models/r1", at=old.at)
    records.models.add("r1", lambda folder: None, {"revision": json.loads(to_json(new))})
    records.models.publish("r1")
    assert site.ask("root", "GET", path).json()["current"] == "f" * 16
    assert stale(0)[0] is not None
    send(0, example.text_hash)
    assert stale(0) == [None]
    records.close()
    del site.workspace._open["revised"]
    shutil.rmtree(root / "revised")


# -- the rest


def test_work_on_models_of_others_gets_no_tokens_and_no_way_out() -> None:
    secrets = {
        "HF_TOKEN": "hf_x", "HUGGING_FACE_HUB_TOKEN": "hf_x", "HUGGINGFACE_HUB_TOKEN": "hf_x", "HF_TOKEN_PATH": "x",
        "UNHANS_DATABASE": "postgresql://a:b@c/d", "UNHANS_PASSWORD": "p",
    }  # fmt: skip
    left = tamed(secrets | {"PATH": "/bin"}, WorkerSettings("x"))
    assert not set(secrets) & set(left)
    assert (left["PATH"], left["HF_HUB_OFFLINE"], left["TRANSFORMERS_OFFLINE"]) == ("/bin", "1", "1")
    assert left["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"


def test_everybody_is_told_the_version_so_that_an_old_page_can_tell(site: Site) -> None:
    for who in ("ann", "root"):
        assert site.ask(who, "GET", "/api/me").json()["version"] == __version__


def test_the_log_and_the_accounts_are_not_reachable_through_any_answer(site: Site) -> None:
    stored = [row.password for row in rows(site, users)]
    assert all(stored[:3])
    for path in ("/api/people", "/api/me", "/api/home", "/api/invites", f"{P}/team"):
        told = site.ask("root", "GET", path).text
        assert not any(password in told for password in stored if password)
        assert "scrypt" not in told


def rows(site: Site, table: sa.Table) -> list[Any]:
    with site.workspace.store.read() as connection:
        return list(connection.execute(sa.select(table)))
