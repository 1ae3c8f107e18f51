"""The application against its own description: whatever is sent, no failure of ours, and answers as described."""

from __future__ import annotations

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bugged import audit, finding, keep, lab
from neighbouring import copied, doubted, traced
from served import ADDRESS, OURS, Site

CHECKED = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
STREAM = "/api/events"  # never ends; `test_routes` looks at it


def explore(site: Site, who: str, mode: GenerationMode, examples: int) -> int:
    """Send cases made from the description as somebody; how many there were."""
    described = schemathesis.openapi.from_dict(site.inner.openapi(), config=SchemathesisConfig())
    described.config.update(base_url=ADDRESS)
    jobs, known = site.workspace.jobs.list(projects=[OURS]), site.workspace.records(OURS).audit_table.listed()[0]
    sent = 0
    for found in described.get_all_operations():
        operation = found.ok()
        if operation.path == STREAM:
            continue

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def act(case: Case) -> None:
            nonlocal sent
            names = dict(case.path_parameters or {})
            if "project" in names:
                names["project"] = OURS  # others are refused before anything is read
            if "id" in names and "jobs" in case.path:
                names["id"] = jobs[sent % len(jobs)].id
            if "place" in names and "anchors" in case.path and mode is GenerationMode.POSITIVE:
                names["place"] = 1  # others were not traced
            if "id" in names and "audits" in case.path and mode is GenerationMode.POSITIVE:
                names["id"] = known.id
            case.path_parameters = names
            asked = case.as_transport_kwargs()
            if "data" in asked:
                asked["content"] = asked.pop("data")
            kept = {name: asked[name] for name in ("params", "json", "content") if asked.get(name) is not None}
            headers = {name: value for name, value in (asked.get("headers") or {}).items() if name.lower() != "cookie"}
            answer = site.ask(who, asked["method"], asked["url"], headers=headers, **kept)
            case.validate_response(answer, checks=CHECKED)
            sent += 1
            if case.path == "/api/logout":
                site.forget_sessions()

        with suppress(Unsatisfiable):  # nothing can be wrong about a request that has no fields
            act()
    return sent


def prepare(site: Site) -> None:
    for kind in ("predict", "explain", "words"):
        site.workspace.jobs.add(kind, project=OURS, by="ann", options={"kind": kind})
    records = site.workspace.records(OURS)
    traced(records, 1, (0, 2), (4,))
    copied(records, 0, "a copy")
    doubted(records, 0, 2, 4)
    keep(records, audit(finding(examples=[records.table.at(1).id]), revision=records.current.id))
    records.lab_table.keep(lab(records.current.id, [("lime", "It does not depend on the model.")]), by="amy")


@pytest.mark.parametrize("who", ["root", "ann"])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_answers_are_as_described_and_nothing_fails(site: Site, who: str, mode: GenerationMode) -> None:
    prepare(site)
    with site.unhurried():
        assert explore(site, who, mode, 15 if mode is GenerationMode.POSITIVE else 6) > 100


@pytest.mark.slow
@pytest.mark.parametrize("who", ["root", "amy", "ann", "bob"])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_answers_are_as_described_and_nothing_fails_for_long(site: Site, who: str, mode: GenerationMode) -> None:
    prepare(site)
    with site.unhurried():
        assert explore(site, who, mode, 500) > 5000
