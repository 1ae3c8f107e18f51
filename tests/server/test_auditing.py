"""Bugs over HTTP: who sees audits, the lab and verdicts, what is refused, and predictions that wait for the words."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from html import escape
from typing import Any

import pytest

from bugged import HOSTILE, audit, finding, keep, lab
from flipped import rewritten
from served import OURS, Site, new_folder, new_key, serve
from small_project import make
from unhans.records import Records
from unhans.types import Audit, from_json
from working import ended, worker

P = f"/api/projects/{OURS}"


@pytest.fixture
def records(site: Site) -> Records:
    return site.workspace.records(OURS)


def get(site: Site, who: str, path: str, **params: Any) -> Any:
    answer = site.ask(who, "GET", f"{P}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post_verdict(site: Site, who: str, **more: Any) -> Any:
    says = {"kind": "verdict", "model": site.revision, "deploy": 2, "reason": "labels_wrong"} | more
    body = {"key": new_key(), "says": says, "revision": says["model"]}
    return site.ask(who, "POST", f"{P}/feedback", json=body)


# -- looking


def test_an_audit_is_seen_as_far_as_it_has_come_with_its_job(site: Site, records: Records) -> None:
    job = site.workspace.jobs.add("audit", project=OURS, by="amy", options={})
    found = audit(finding(examples=[records.table.at(1).id]), revision=site.revision, done=1)
    id_ = keep(records, found, job=job.id)
    view = get(site, "ann", "audit")
    assert view == get(site, "ann", f"audits/{id_}")
    assert (view["row"]["id"], view["row"]["complete"], view["job"]["id"]) == (id_, False, job.id)
    assert [one["state"] for one in view["checks"]] == ["done", "waiting", "waiting", "waiting"]
    assert get(site, "ann", "audits")[0] == view["row"]
    (one,) = get(site, "ann", f"audits/{id_}/findings")["items"]
    assert one["places"] == {records.table.at(1).id: 1}
    site.workspace.jobs.cancel(job.id)
    other = keep(records, found, job="of another workspace")
    assert get(site, "ann", f"audits/{other}")["job"] is None


def test_a_hostile_finding_is_told_as_it_is_and_downloads_are_downloads(site: Site, records: Records) -> None:
    some = [records.table.at(2).id, HOSTILE]
    told = {"words": [HOSTILE], "says": HOSTILE, "next": HOSTILE, "examples": some}
    made = audit(finding("leaks", HOSTILE, **told), revision=site.revision)
    id_ = keep(records, made)
    (one,) = get(site, "amy", f"audits/{id_}/findings")["items"]
    assert one["finding"]["title"] == HOSTILE
    answer = site.ask("amy", "GET", f"{P}/audits/{id_}/audit.json")
    assert "attachment" in answer.headers["content-disposition"]
    assert from_json(Audit, answer.content) == made
    answer = site.ask("amy", "GET", f"{P}/audits/{id_}/page.html")
    assert "attachment" in answer.headers["content-disposition"]
    assert ("<img src=x" in answer.text, "&lt;img src=x" in answer.text) == (False, True)
    assert escape(records.table.at(2).text) in answer.text


def test_what_became_of_findings_is_told(site: Site, records: Records) -> None:
    before = keep(records, audit(finding(words=["a"]), finding(words=["b"]), revision=site.revision))
    after = keep(records, audit(finding(words=["b"]), finding(words=["c"]), revision=site.revision))
    found = get(site, "ann", f"audits/{after}/changes", since=before)
    assert [one["finding"]["words"] for one in found["gone"]] == [["a"]]
    assert [one["finding"]["words"] for one in found["new"]] == [["c"]]
    assert [one["after"]["finding"]["words"] for one in found["stayed"]] == [["b"]]


def test_what_the_lab_found_warns_of_methods(site: Site, records: Records) -> None:
    assert get(site, "ann", "lab") is None
    records.lab_table.keep(lab(site.revision, [("lime", HOSTILE)], shows=[records.table.at(0).id]), by="amy")
    view = get(site, "ann", "lab")
    assert (view["places"], view["by"]) == ({records.table.at(0).id: 0}, "amy")
    for methods in (get(site, "ann", "methods"), get(site, "ann", "lab/offer")["methods"]):
        assert {one["name"]: one["warning"] for one in methods if one["warning"]} == {"lime": HOSTILE}
    records.lab_table.keep(lab(site.revision), by="amy")


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("audits", {"revision": "r99"}, 404),
        ("audits", {"limit": 5}, 422),
        ("audit", {"revision": "r99"}, 404),
        ("audits/0123456789abcdef", {}, 404),
        ("audits/x", {}, 422),
        ("audits/0123456789abcdef/findings", {}, 404),
        ("audits/0123456789abcdef/findings", {"limit": 101}, 422),
        ("audits/0123456789abcdef/findings", {"severity": "worst"}, 422),
        ("audits/0123456789abcdef/findings", {"sort": "x"}, 422),
        ("audits/0123456789abcdef/changes", {}, 422),
        ("audits/0123456789abcdef/changes", {"since": "0123456789abcdef"}, 404),
        ("audits/0123456789abcdef/audit.json", {}, 404),
        ("audits/0123456789abcdef/page.html", {}, 404),
        ("lab", {"revision": "r99"}, 404),
        ("verdicts", {"revision": "r99"}, 404),
        ("verdicts", {"author": "ann"}, 422),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused(
    site: Site, path: str, query: dict[str, Any], code: int
) -> None:
    answer = site.ask("amy", "GET", f"{P}/{path}", params=query)
    assert (answer.status_code, set(answer.json()["error"])) == (code, {"code", "message", "request_id"})


def test_a_cursor_that_was_made_up_is_refused(site: Site, records: Records) -> None:
    id_ = keep(records, audit(revision=site.revision))
    answer = site.ask("amy", "GET", f"{P}/audits/{id_}/findings", params={"cursor": "zzz"})
    assert answer.status_code == 422


# -- asking


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("audits", {"checks": []}, ""),
        ("audits", {"checks": ["magic"]}, "There is no check"),
        ("audits", {"checks": ["leaks"] * 51}, ""),
        ("audits", {"checks": ["x" * 201]}, ""),
        ("audits", {"checks": ["patterns"]}, "pairs"),
        ("audits", {"checks": ["leaks"], "options": {"slices": {}}}, "not among the checks"),
        ("audits", {"options": {"magic": {}}}, "There is no check"),
        ("audits", {"options": {"invariance": {"nothing": 1}}}, "no option"),
        ("audits", {"options": {"invariance": {"texts": "many"}}}, "must be"),
        ("audits", {"options": {"invariance": {"texts": 10**9}}}, "at most"),
        ("audits", {"method": "magic"}, "There is no explanation method"),
        ("audits", {"revision": "r99"}, ""),
        ("audits", {"limit": 9}, ""),
        ("audits", {"limit": 20_001}, ""),
        ("audits", {"limit": "100"}, ""),
        ("audits", {"seed": -1}, ""),
        ("lab", {"bugs": []}, ""),
        ("lab", {"bugs": ["magic"]}, "There is no bug"),
        ("lab", {"bugs": ["wrong_checkpoint"]}, "no other state of the model"),
        ("lab", {"methods": ["magic"]}, "There is no explanation method"),
        ("lab", {"methods": ["lime"] * 51}, ""),
        ("lab", {"examples": 9}, ""),
        ("lab", {"examples": 1001}, ""),
        ("lab", {"limit": 20_001}, ""),
    ],
    ids=lambda given: str(given)[:60],
)
def test_what_cannot_be_done_is_refused_at_once(site: Site, path: str, body: dict[str, Any], said: str) -> None:
    before = len(site.workspace.jobs.list(projects=[OURS]))
    answer = site.ask("amy", "POST", f"{P}/{path}", json=body)
    assert 400 <= answer.status_code < 500
    assert said in answer.json()["error"]["message"]
    assert len(site.workspace.jobs.list(projects=[OURS])) == before


def test_every_number_of_every_check_has_a_bound(site: Site) -> None:
    asked = 0
    for check in get(site, "amy", "audits/checks")["checks"]:
        for option in check["options"]:
            if check["usable"] and option["kind"] in ("int", "float"):
                body = {"checks": [check["name"]], "options": {check["name"]: {option["name"]: 10**12}}}
                answer = site.ask("amy", "POST", f"{P}/audits", json=body)
                assert (answer.status_code, "at most" in answer.text) == (422, True), (check["name"], option)
                asked += 1
    assert asked


def test_the_same_audit_is_asked_for_once(site: Site) -> None:
    first, second = (site.ask("amy", "POST", f"{P}/audits", json={"checks": ["leaks"]}).json() for _ in range(2))
    assert (first["id"], first["kind"], first["by"]) == (second["id"], "audit", "amy")
    site.workspace.jobs.cancel(first["id"])


# -- verdicts


def test_a_verdict_is_stored_changed_and_hidden_from_others(site: Site) -> None:
    assert post_verdict(site, "ann", method="lime").status_code == 200
    saved = post_verdict(site, "ann", method="lime", deploy=5, reason="other", note="I know the data.").json()
    assert saved["opinion"]["stale"] is None
    assert post_verdict(site, "art", method="lime", deploy=1).status_code == 200
    mine, everybody = get(site, "ann", "verdicts"), get(site, "amy", "verdicts")
    assert (mine["own"], [one["counts"] for one in mine["conditions"]]) == (True, [[0, 0, 0, 0, 1]])
    assert [one["feedback"]["author"] for one in mine["said"]] == ["ann"]
    assert mine["agreement"] is None
    (one,) = everybody["conditions"]
    assert (one["counts"], one["people"], one["median"]) == ([1, 0, 0, 0, 1], 2, 3.0)
    assert {each["reason"]: each["share"] for each in one["reasons"] if each["people"]} == {
        "labels_wrong": 0.5,
        "other": 0.5,
    }
    site.ask("amy", "PATCH", P, json={"blind": False})
    assert get(site, "art", "verdicts")["conditions"] == everybody["conditions"]
    site.ask("amy", "PATCH", P, json={"blind": True})
    for who in ("ann", "ann", "art"):
        site.ask(who, "POST", f"{P}/undo", json={"key": new_key()})
    assert get(site, "amy", "verdicts")["conditions"] == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"deploy": 0}, 422),
        ({"deploy": 6}, 422),
        ({"deploy": "3"}, 422),
        ({"deploy": True}, 422),
        ({"reason": "taste"}, 422),
        ({"reason": "other"}, 422),
        ({"reason": "other", "note": "  "}, 422),
        ({"note": "x" * 5001}, 422),
        ({"method": "magic"}, 422),
        ({"model": "nobody's"}, 404),
        ({"model": "' OR 1=1"}, 404),
        ({"explanation_first": True}, 422),
    ],
    ids=lambda given: str(given)[:50],
)
def test_verdicts_that_are_none_are_refused(site: Site, more: dict[str, Any], code: int) -> None:
    assert post_verdict(site, "ann", **more).status_code == code
    assert get(site, "amy", "verdicts")["conditions"] == []


def test_verdicts_come_back_from_a_file_and_those_of_other_models_are_refused(site: Site, records: Records) -> None:
    assert post_verdict(site, "ann", note="=1+1", method="lime").status_code == 200
    for format in ("jsonl", "csv"):
        raw = site.ask("amy", "GET", f"{P}/feedback/export", params={"format": format}).content
        sent = {"params": {"format": format}, "headers": {"content-type": "application/octet-stream"}}
        told = site.ask("amy", "POST", f"{P}/feedback/import", content=raw, **sent).json()
        assert (told["stored"], told["refused"]) == (0, [])
        strange = raw.replace(site.revision.encode(), b"nobody's").replace(b'"id":"', b'"id":"x')
        if format == "csv":
            head, _, rest = strange.partition(b"\r\n")
            strange = head + b"\r\nx" + rest
        told = site.ask("amy", "POST", f"{P}/feedback/import", content=strange, **sent).json()
        assert told["stored"] == 0
        assert any("no such revision" in line for line in told["refused"])
    site.ask("ann", "POST", f"{P}/undo", json={"key": new_key()})


# -- explanation first


@pytest.fixture
def words_first(site: Site) -> Iterator[Site]:
    site.ask("amy", "PATCH", P, json={"hide_prediction": True})
    yield site
    site.ask("amy", "PATCH", P, json={})


def judge(site: Site, who: str, place: int, state: str = "done") -> None:
    example = site.workspace.records(OURS).table.at(place)
    assert site.answer(who, {"kind": "review", "example": example.id, "state": state}).status_code == 200


def test_the_server_keeps_predictions_until_the_words_are_judged(words_first: Site, records: Records) -> None:
    site = words_first
    flip = rewritten(records, 3)
    assert get(site, "amy", "examples/3")["prediction"] is not None
    view = get(site, "ann", "examples/3")
    assert (view["prediction"], view["hidden"]) == (None, True)
    assert get(site, "ann", "examples/3/flips")["hidden"]
    for path, body in ((f"flips/{flip.id}", None), ("flips", {"places": [3]})):
        refused = site.ask("ann", "POST" if body else "GET", f"{P}/{path}", json=body)
        assert (refused.status_code, "words come first" in refused.text) == (403, True)
    judge(site, "ann", 3, "skipped")
    assert get(site, "ann", "examples/3")["hidden"]
    judge(site, "ann", 3)
    view = get(site, "ann", "examples/3")
    assert (view["prediction"] is not None, view["hidden"]) == (True, False)
    assert get(site, "ann", f"flips/{flip.id}")["id"] == flip.id
    assert get(site, "art", "examples/3")["hidden"]


def test_no_list_tells_predictions_by_what_it_leaves_out(words_first: Site, records: Records) -> None:
    site = words_first
    whole = get(site, "art", "examples", limit=200)
    assert {(one["predicted"], one["confidence"], one["correct"]) for one in whole["items"]} == {(None, None, None)}
    plain = {"predicted": "positive", "correct": True, "min_confidence": 0.9, "max_confidence": 0.1}
    for name, value in plain.items():
        assert get(site, "art", "examples", limit=200, **{name: value}) == whole
    assert get(site, "art", "examples", limit=200, sort="least_confident") == whole
    assert get(site, "art", "examples", limit=200, split="train")["total"] < whole["total"]
    # one that nobody else in this file judges
    wrong = next(row for row in get(site, "amy", "examples", correct=False)["items"] if row["place"] > 4)
    before = get(site, "art", f"examples/{wrong['place'] - 1}", correct=True)
    assert before["following"] == wrong["place"]
    taken = site.ask("art", "POST", f"{P}/next", json={"after": wrong["place"] - 1}).json()  # right ones, by default
    assert taken["place"] == wrong["place"]


def test_audits_are_for_managers_where_the_words_come_first(words_first: Site, records: Records) -> None:
    site = words_first
    id_ = keep(records, audit(finding(), revision=site.revision))
    records.lab_table.keep(lab(site.revision), by="amy")
    told = [
        "audits",
        "audit",
        f"audits/{id_}",
        f"audits/{id_}/findings",
        f"audits/{id_}/audit.json",
        f"audits/{id_}/page.html",
        "lab",
    ]
    for path in told:
        assert site.ask("amy", "GET", f"{P}/{path}").status_code == 200
        refused = site.ask("ann", "GET", f"{P}/{path}")
        assert (refused.status_code, "words are judged first" in refused.text) == (403, True)
    for path in ("audits/checks", "lab/offer", "verdicts"):
        assert site.ask("ann", "GET", f"{P}/{path}").status_code == 200


def test_a_verdict_says_truly_whether_the_words_came_first(words_first: Site) -> None:
    site = words_first
    refused = post_verdict(site, "ann")
    assert (refused.status_code, "before the prediction" in refused.text) == (422, True)
    assert post_verdict(site, "ann", explanation_first=True).status_code == 200
    for said in (False, True):  # who sees all knows best what they have looked at first
        assert post_verdict(site, "amy", explanation_first=said).status_code == 200
    conditions = get(site, "amy", "verdicts")["conditions"]
    assert [(one["explanation_first"], one["people"]) for one in conditions] == [(False, 1), (True, 2)]
    for who in ("ann", "amy", "amy"):
        site.ask(who, "POST", f"{P}/undo", json={"key": new_key()})


# -- with a worker


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of a project with something to learn, and a worker."""
    folder, _ = new_folder(tmp_path_factory.mktemp("worked"))
    shutil.rmtree(folder / OURS)
    with make(folder / OURS) as project:
        list(project.predict())
    with serve(folder) as site, worker(folder):
        yield site


def done(site: Site, path: str, **body: Any) -> Any:
    """The job, once it is done."""
    answer = site.ask("amy", "POST", f"{P}/{path}", json=body)
    assert answer.status_code == 200, answer.text
    job = ended(site, answer.json()["id"])
    assert job.state == "done", job.message
    return job


def test_a_worker_audits_and_tries_explanations_on_planted_bugs(worked: Site) -> None:
    job = done(worked, "audits", checks=["leaks", "calibration"], limit=10)
    view = get(worked, "ann", "audit")
    assert (view["row"]["complete"], view["row"]["by"], view["job"]["id"]) == (True, "amy", job.id)
    assert {one["check"]["name"]: one["state"] for one in view["checks"]} == {
        "leaks": "done",
        "calibration": "left out",  # there are too few labelled examples
    }
    assert view["row"]["examples"] == 10
    assert job.result["findings"] == get(worked, "ann", f"audits/{view['row']['id']}/findings")["total"]
    job = done(worked, "lab", bugs=["reinitialised"], methods=["saliency", "random"], examples=10, limit=20)
    found = get(worked, "ann", "lab")
    assert [one["name"] for one in found["lab"]["bugs"]] == ["reinitialised"]
    assert {one["method"] for one in found["lab"]["sightings"]} == {"saliency", "random"}
    assert job.result["warnings"] == len(found["lab"]["warnings"])
