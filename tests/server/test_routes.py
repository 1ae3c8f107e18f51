"""Every route, asked by everybody: who may do what, and that looking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from bugged import audit, finding, keep
from flipped import rewritten
from neighbouring import copied, traced
from served import OTHER, OURS, PASSWORD, ROLES, Site, dump, new_key
from unhans.types import Report

# anonymous, annotator elsewhere, annotator, manager elsewhere, manager, admin
ALL = (200,) * 6
SIGNED_IN = (401, *(200,) * 5)
MEMBER = (401, 404, 200, 404, 200, 200)
MANAGER = (401, 404, 403, 404, 200, 200)
CREATOR = (401, 403, 403, 200, 200, 200)
ADMIN = (401, 403, 403, 403, 403, 200)
P = "/api/projects/{project}"

Asked = Callable[[Site], dict[str, Any]]
"""What else a request needs: `path` for the names in the address, and whatever `Site.ask` takes."""


def nothing(site: Site) -> dict[str, Any]:
    return {}


def with_json(**body: Any) -> Asked:
    return lambda site: {"json": body}


def with_query(**query: Any) -> Asked:
    return lambda site: {"params": query}


def with_body(**query: Any) -> Asked:
    raw = {"content-type": "application/octet-stream"}
    return lambda site: {"params": query, "content": b"\n", "headers": raw}


def a_job(state: str) -> Asked:
    def make(site: Site) -> dict[str, Any]:
        jobs = site.workspace.jobs
        made = jobs.add("predict", project=OURS, by="amy", options={"kind": "predict"})
        return {"path": {"id": (jobs.cancel(made.id) if state == "cancelled" else made).id}}

    return make


def an_invitation(site: Site) -> dict[str, Any]:
    return {"path": {"id": site.accounts.invite("annotator", [OURS], "amy")[0].id}}


def joining(site: Site) -> dict[str, Any]:
    _, secret = site.accounts.invite("annotator", [OURS], None)
    return {"json": {"invite": secret, "name": new_key(), "password": PASSWORD}}


def a_person(site: Site) -> dict[str, Any]:
    name = new_key()
    site.accounts.add(name, "annotator", None)
    return {"path": {"name": name}}


def a_plan(site: Site) -> dict[str, Any]:
    """Of files that nobody else sent; for others they do not exist."""
    sent = []
    for kind, name in (("model", "m.zip"), ("data", "d.csv")):
        with site.workspace.receive(kind, name, "amy") as file:
            file.write(b"x")
        assert file.upload
        sent.append(file.upload.id)
    return {"json": {"model": sent[0], "data": sent[1], "title": "New"}}


def an_answer(site: Site) -> dict[str, Any]:
    return {"json": {"key": new_key(), "says": site.says("lower"), "revision": site.revision}}


def some_feedback(site: Site) -> dict[str, Any]:
    site.answer("amy", site.says("lower"))
    return {"json": {"fix": "word_dropout"}}


def a_fix(site: Site) -> dict[str, Any]:
    return {"path": {"job": site.workspace.jobs.add("fix", project=OURS, by="amy", options={"fix": "relabel"}).id}}


def a_version(site: Site) -> dict[str, Any]:
    """That somebody has published, so that there is a way back."""
    records = site.workspace.records(OURS)
    if "r1" not in [version.name for version in records.models.listed()]:
        facts = records.models.get("r0").facts
        other = facts["revision"] | {"id": "another", "parent": facts["revision"]["id"]}
        records.models.add("r1", lambda folder: (folder / "x").touch(), {"revision": other})
    records.models.publish("r1")
    return {"json": {"expects": "r1"}}


def two_versions(site: Site) -> dict[str, Any]:
    a_version(site)
    site.workspace.records(OURS).roll_back()
    return {"json": {"before": "r0", "after": "r1"}}


def a_report(site: Site) -> dict[str, Any]:
    site.workspace.records(OURS).keep_report("r0", "r1", Report("a", "b", ()))
    return {"path": {"before": "r0", "after": "r1"}}


def an_export(site: Site) -> dict[str, Any]:
    exports = site.workspace.records(OURS).exports
    if not exports.listed():
        exports.add("r0-1", lambda folder: (folder / "report.html").touch(), {"revision": site.revision})
    return {"path": {"name": "r0-1"}}


def a_flip(site: Site) -> dict[str, Any]:
    return {"path": {"id": rewritten(site.workspace.records(OURS), 0).id}}


def an_anchor(site: Site) -> dict[str, Any]:
    traced(site.workspace.records(OURS), 1, (0, 2))
    return {"path": {"place": 1}}


def a_copy(site: Site) -> dict[str, Any]:
    """With the moment at which it was made, as whoever changes it has seen it."""
    records = site.workspace.records(OURS)
    made = copied(records, 0, f"a copy {new_key()}")
    change = {"seen": records.copy_table.one(made.id).at, "text": "another copy"}
    return {"path": {"id": made.id}, "json": change}


def a_copy_to_delete(site: Site) -> dict[str, Any]:
    return {"path": a_copy(site)["path"]}


def an_audit(site: Site) -> dict[str, Any]:
    return {"path": {"id": keep(site.workspace.records(OURS), audit(finding(), revision=site.revision))}}


def two_audits(site: Site) -> dict[str, Any]:
    return an_audit(site) | {"params": {"since": an_audit(site)["path"]["id"]}}


def new_password(site: Site) -> dict[str, Any]:
    return {"json": {"old": PASSWORD, "new": PASSWORD}}


ROUTES: dict[tuple[str, str], tuple[tuple[int, ...], Asked]] = {
    ("GET", "/healthz"): (ALL, nothing),
    ("GET", "/"): (ALL, nothing),
    ("GET", "/icon.svg"): (ALL, nothing),
    ("MOUNT", "/assets"): ((404,) * 6, nothing),  # of a file that is not there
    ("POST", "/api/login"): (ALL, with_json(name="ann", password=PASSWORD)),
    ("POST", "/api/join"): (ALL, joining),
    ("POST", "/api/logout"): ((204,) * 6, nothing),
    ("GET", "/api/me"): (SIGNED_IN, nothing),
    ("PUT", "/api/me/preferences"): (SIGNED_IN, with_json(theme="dark")),
    ("POST", "/api/me/password"): (SIGNED_IN, new_password),
    ("GET", "/api/people"): (ADMIN, nothing),
    ("PATCH", "/api/people/{name}"): (ADMIN, lambda site: a_person(site) | {"json": {"role": "annotator"}}),
    ("DELETE", "/api/people/{name}"): ((401, 403, 403, 403, 403, 204), a_person),
    ("GET", "/api/invites"): (CREATOR, nothing),
    ("POST", "/api/invites"): ((401, 403, 403, 404, 200, 200), with_json(role="annotator", projects=[OURS])),
    ("DELETE", "/api/invites/{id}"): ((401, 403, 403, 404, 204, 204), an_invitation),
    ("GET", "/api/home"): (SIGNED_IN, nothing),
    ("POST", "/api/uploads"): (CREATOR, with_body(kind="data", name="a.csv")),
    ("GET", "/api/uploads"): (CREATOR, nothing),
    ("POST", "/api/checks"): ((401, 403, 403, 404, 200, 200), a_plan),
    ("POST", "/api/projects"): ((401, 403, 403, 404, 200, 200), a_plan),
    ("GET", P): (MEMBER, nothing),
    ("PATCH", P): (MANAGER, with_json(overlap=2)),
    ("GET", f"{P}/methods"): (MEMBER, nothing),
    ("GET", f"{P}/problems"): (MEMBER, nothing),
    ("GET", f"{P}/problems/set-aside.csv"): (MANAGER, nothing),
    ("GET", f"{P}/examples"): (MEMBER, nothing),
    ("GET", f"{P}/examples/{{place}}"): (MEMBER, lambda site: {"path": {"place": 0}}),
    ("POST", f"{P}/next"): (MEMBER, with_json()),
    ("POST", f"{P}/feedback"): (MEMBER, an_answer),
    ("POST", f"{P}/undo"): (MEMBER, lambda site: {"json": {"key": new_key()}}),
    ("GET", f"{P}/feedback"): (MEMBER, nothing),
    ("GET", f"{P}/feedback/export"): (MANAGER, with_query(format="jsonl")),
    ("POST", f"{P}/feedback/import"): (MANAGER, with_body(format="jsonl")),
    ("GET", f"{P}/words"): (MEMBER, with_query(label="positive")),
    ("GET", f"{P}/word"): (MEMBER, with_query(label="positive", word="the")),
    ("GET", f"{P}/team"): (MANAGER, nothing),
    ("GET", f"{P}/fixes"): (MANAGER, nothing),
    ("POST", f"{P}/fixes"): (MANAGER, some_feedback),
    ("GET", f"{P}/fixes/{{job}}/curve"): (MANAGER, a_fix),
    ("GET", f"{P}/revisions"): (MANAGER, nothing),  # as long as judging is blind
    ("POST", f"{P}/revisions/{{name}}/publish"): (MANAGER, lambda site: a_version(site) | {"path": {"name": "r1"}}),
    ("POST", f"{P}/rollback"): (MANAGER, a_version),
    ("POST", f"{P}/comparisons"): (MANAGER, two_versions),
    ("GET", f"{P}/reports/{{before}}/{{after}}"): (MANAGER, a_report),
    ("GET", f"{P}/reports/{{before}}/{{after}}/page.html"): (MANAGER, a_report),
    ("POST", f"{P}/exports"): (MANAGER, with_json(revision="r0")),
    ("GET", f"{P}/exports"): (MANAGER, nothing),
    ("GET", f"{P}/exports/{{name}}.zip"): (MANAGER, an_export),
    ("GET", f"{P}/flips"): (MEMBER, nothing),
    ("POST", f"{P}/flips"): (MANAGER, with_json()),
    ("GET", f"{P}/flips/methods"): (MEMBER, nothing),
    ("GET", f"{P}/flips/chart"): (MEMBER, nothing),
    ("GET", f"{P}/flips/export"): (MANAGER, nothing),
    ("GET", f"{P}/flips/{{id}}"): (MEMBER, a_flip),
    ("GET", f"{P}/risk"): (MEMBER, nothing),
    ("GET", f"{P}/examples/{{place}}/flips"): (MEMBER, lambda site: {"path": {"place": 0}}),
    ("GET", f"{P}/neighbours/methods"): (MEMBER, nothing),
    ("GET", f"{P}/anchors"): (MEMBER, nothing),
    ("POST", f"{P}/anchors"): (MANAGER, with_json()),
    ("GET", f"{P}/anchors/{{place}}"): (MEMBER, an_anchor),
    ("GET", f"{P}/copies"): (MEMBER, nothing),
    ("POST", f"{P}/copies"): (MANAGER, with_json(method="word_dropout")),
    ("PATCH", f"{P}/copies/{{id}}"): (MANAGER, a_copy),
    ("DELETE", f"{P}/copies/{{id}}"): ((401, 404, 403, 404, 204, 204), a_copy_to_delete),
    ("GET", f"{P}/doubts"): (MEMBER, nothing),
    ("POST", f"{P}/doubts"): (MANAGER, with_json()),
    ("GET", f"{P}/audits"): (MEMBER, nothing),
    ("POST", f"{P}/audits"): (MANAGER, with_json()),
    ("GET", f"{P}/audits/checks"): (MEMBER, nothing),
    ("GET", f"{P}/audit"): (MEMBER, nothing),
    ("GET", f"{P}/audits/{{id}}"): (MEMBER, an_audit),
    ("GET", f"{P}/audits/{{id}}/findings"): (MEMBER, an_audit),
    ("GET", f"{P}/audits/{{id}}/changes"): (MEMBER, two_audits),
    ("GET", f"{P}/audits/{{id}}/page.html"): (MEMBER, an_audit),
    ("GET", f"{P}/audits/{{id}}/audit.json"): (MEMBER, an_audit),
    ("GET", f"{P}/lab"): (MEMBER, nothing),
    ("POST", f"{P}/lab"): (MANAGER, with_json()),
    ("GET", f"{P}/lab/offer"): (MEMBER, nothing),
    ("GET", f"{P}/verdicts"): (MEMBER, nothing),
    ("POST", f"{P}/jobs"): (MANAGER, with_json(kind="predict")),
    ("GET", "/api/jobs"): (SIGNED_IN, nothing),
    ("GET", "/api/jobs/{id}"): (MEMBER, a_job("queued")),
    ("POST", "/api/jobs/{id}/cancel"): (MANAGER, a_job("queued")),
    ("POST", "/api/jobs/{id}/retry"): (MANAGER, a_job("cancelled")),
    ("GET", "/api/events"): (SIGNED_IN, nothing),
}
STREAMS = ("/api/events",)


def found_routes(routes: list[Any]) -> set[tuple[str, str]]:
    """All that the application answers to, as deep as it goes."""
    found = set()
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            found |= found_routes(inner.routes)
        else:
            found |= {(method, route.path) for method in getattr(route, "methods", None) or {"MOUNT"}}
    return found


def asked(site: Site, who: str | None, method: str, route: str, more: dict[str, Any]) -> int:
    names = {"project": OURS} | more.pop("path", {})
    path = route.format(**names) + ("/none.js" if method == "MOUNT" else "")
    if route in STREAMS:
        headers = [("host", "localhost:8000"), *site.cookie(who).items()]
        return site.raw(method, path, headers)[0]
    return site.ask(who, "GET" if method == "MOUNT" else method, path, **more).status_code


def test_every_route_has_a_decision_on_who_may_use_it_and_every_decision_a_route(site: Site) -> None:
    assert found_routes(site.inner.routes) == set(ROUTES)


@pytest.mark.parametrize(("method", "route"), ROUTES)
def test_a_route_answers_each_role_as_decided(site: Site, method: str, route: str) -> None:
    expected, make = ROUTES[method, route]
    found = tuple(asked(site, who, method, route, make(site)) for who in ROLES.values())
    assert dict(zip(ROLES, found, strict=True)) == dict(zip(ROLES, expected, strict=True))


@pytest.mark.parametrize(("method", "route"), [(m, r) for m, r in ROUTES if "{project}" in r])
def test_a_project_of_others_cannot_be_told_from_one_that_does_not_exist(site: Site, method: str, route: str) -> None:
    def told(project: str) -> tuple[int, dict[str, Any]]:
        more = ROUTES[method, route][1](site)
        path = route.format(**({"project": project} | more.pop("path", {})))
        answer = site.ask("ann", method, path, **more)
        return answer.status_code, {**answer.json()["error"], "request_id": ""}

    assert told(OTHER) == told("nowhere")
    assert told(OTHER)[0] == 404


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_looking_changes_nothing(site: Site, method: str) -> None:
    site.answer("ann", site.says("raise"))
    made = {route: make(site) for (kind, route), (_, make) in ROUTES.items() if kind == "GET"}
    for who in ROLES.values():
        site.cookie(who)
    before = dump(*site.stores)
    for route, more in made.items():
        for who in ROLES.values():
            asked(site, who, method, route, {**more, "path": dict(more.get("path", {}))})
    assert dump(*site.stores) == before


def test_looking_computes_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {route: make(site) for (kind, route), (_, make) in ROUTES.items() if kind == "GET"}
    computed: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "__call__", lambda self, *_, **__: computed.append(type(self).__name__))
    answers = {route: asked(site, "root", "GET", route, more) for route, more in made.items()}
    assert computed == []
    assert sum(code == 200 for code in answers.values()) > len(answers) / 2


def test_a_query_that_asks_for_another_method_is_a_query(site: Site) -> None:
    site.cookie("amy")
    before = dump(*site.stores)
    for name in ("_method", "method", "X-HTTP-Method-Override"):
        answer = site.ask("amy", "GET", f"/api/projects/{OURS}", params={name: "PATCH"}, headers={name: "PATCH"})
        assert answer.status_code == 200
    assert dump(*site.stores) == before


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/metrics", "/docs/oauth2-redirect", "/debug"])
@pytest.mark.parametrize("who", [None, "root"])
def test_nobody_gets_a_description_of_the_inside(site: Site, path: str, who: str | None) -> None:
    assert site.ask(who, "GET", path).status_code == 404
