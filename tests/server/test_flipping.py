"""Flips over HTTP: who may ask for what, what is refused, ratings and risk, and searches done by a real worker."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flipped import rewritten
from served import OURS, Site, new_folder, new_key, serve
from small_project import QUICK, make
from unhans.export import read_flips
from unhans.records import Records
from unhans.text import Words
from working import ended, until, worker

P = f"/api/projects/{OURS}"


@pytest.fixture
def records(site: Site) -> Records:
    return site.workspace.records(OURS)


def get(site: Site, who: str, path: str, **params: Any) -> Any:
    answer = site.ask(who, "GET", f"{P}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rate(site: Site, who: str, id_: str, *ratings: int | None, **more: Any) -> Any:
    says = dict(zip(("plausible", "meaningful", "agrees"), ratings, strict=True))
    view = get(site, who, f"flips/{id_}")
    body = {
        "key": new_key(),
        "says": {"kind": "flip_rating", "counterfactual": id_, **says, **more},
        "revision": view["flip"]["before"]["revision"],
        "text_hash": view["text_hash"],
    }
    return site.ask(who, "POST", f"{P}/feedback", json=body)


# -- looking


def test_a_flip_is_seen_in_its_page_its_chart_its_desk_and_alone(site: Site, records: Records) -> None:
    made = rewritten(records, 1, "somebody", similarity=0.5)
    alone = get(site, "ann", f"flips/{made.id}")
    assert (alone["id"], alone["place"], alone["flips"], alone["by"]) == (made.id, 1, True, "ann")
    assert alone["original"]["text"] == records.table.at(1).text
    assert alone["flip"]["edits"][0]["new"] == "somebody"
    assert alone["margin"] == pytest.approx(0.4)
    assert alone in get(site, "ann", "flips", place=1)["items"]
    assert alone in get(site, "ann", "examples/1/flips")["flips"]
    (dot,) = [dot for dot in get(site, "ann", "flips/chart")["dots"] if dot["id"] == made.id]
    assert (dot["place"], dot["edits"], dot["similarity"], dot["rated"]) == (1, 1, 0.5, False)


def test_a_desk_has_the_words_of_its_example_and_its_rationale(site: Site, records: Records) -> None:
    told = get(site, "ann", "examples/0/flips")
    words = Words(records.table.at(0))
    assert tuple(told["words"]) == words.strings
    assert sorted(n for one in told["sentences"] for n in one["words"]) == list(range(len(words)))
    explained = [one["id"] for one in site.ask("ann", "GET", P).json()["explained"] if one["target"] == "positive"]
    asked = get(site, "ann", "examples/0/flips", explained=explained[0], rationale="spans")
    assert asked["rationale"]["label"] == "positive"
    assert asked["no_rationale"] == ""


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("flips/0123456789abcdef", {}, 404),
        ("flips/nonsense", {}, 422),
        ("flips", {"limit": 1000}, 422),
        ("flips", {"place": -1}, 422),
        ("flips", {"cursor": "zzz"}, 422),
        ("flips", {"revision": "r99"}, 404),
        ("flips", {"order": "x"}, 422),
        ("flips/chart", {"revision": "r99"}, 404),
        ("flips/export", {"revision": "r99"}, 404),
        ("flips/export", {"format": "exe"}, 422),
        ("examples/99999/flips", {}, 404),
        ("examples/0/flips", {"rationale": "magic"}, 422),
        ("examples/0/flips", {"explained": "nothing"}, 404),
        ("risk", {"revision": "r99"}, 404),
        ("risk", {"width": 0}, 422),
        ("risk", {"width": "NaN"}, 422),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused(
    site: Site, path: str, query: dict[str, Any], code: int
) -> None:
    answer = site.ask("amy", "GET", f"{P}/{path}", params=query)
    assert (answer.status_code, set(answer.json()["error"])) == (code, {"code", "message", "request_id"})


def test_the_ways_to_look_for_flips_have_no_option_that_names_a_folder(site: Site) -> None:
    offer = get(site, "ann", "flips/methods")
    assert offer["cannot"] == ""
    assert offer["methods"][0]["name"] == "hotflip"
    known = {method["name"]: method for method in offer["methods"]}
    assert not known["generate"]["usable"]
    assert "command line" in known["generate"]["unusable"]
    names = {option["name"] for method in offer["methods"] for option in method["options"]}
    assert not names & {"model", "wordnet"}
    assert {"top_share", "threshold", "spans"} <= {one["name"] for one in offer["rationales"]}


# -- asking


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"method": "magic"}, "There is no way"),
        ({"method": "generate", "options": {"model": "/etc"}}, "command line"),
        ({"method": "synonyms", "options": {"wordnet": "/etc"}}, "no option"),
        ({"options": {"depth": 1}}, "no option"),
        ({"options": {"candidates": "many"}}, "must be"),
        ({"search": {"depth": 1}}, "no option"),
        ({"search": {"beam": "wide"}}, "must be"),
        ({"search": {"beam": 10**6}}, "at most"),
        ({"search": {"max_edits": 10**9}}, "at most"),
        ({"target": "neutral"}, "no such label"),
        ({"places": []}, ""),
        ({"places": [99_999]}, "no example"),
        ({"places": list(range(1001))}, ""),
        ({"places": [-1]}, ""),
        ({"limit": 0}, ""),
        ({"keep": 0}, ""),
        ({"keep": 1000}, ""),
        ({"editable": [0]}, "one example at a time"),
        ({"places": [0, 1], "reads": [0]}, "one example at a time"),
        ({"places": [0], "editable": [5000]}, "no such word"),
        ({"places": [0], "reads": [5000]}, "no such word"),
        ({"places": [0], "editable": [-1]}, ""),
        ({"places": [0], "editable": [0], "edits_in": "rationale"}, "not both"),
        ({"places": [0], "start": [{"position": 0, "old": "another", "new": "x"}]}, "no such word"),
        ({"places": [0], "start": [{"position": 9999, "old": "x", "new": "x"}]}, "no such word"),
        ({"start": [{"position": 0, "old": "x", "new": "x"}]}, "one example at a time"),
        ({"edits_in": "rationale", "rationale": "magic"}, "There is no rationale"),
        ({"edits_in": "rationale", "attribution": "magic"}, "There is no method"),
    ],
    ids=str,
)
def test_a_search_that_cannot_be_done_is_refused_at_once(site: Site, body: dict[str, Any], said: str) -> None:
    before = len(site.workspace.jobs.list(projects=[OURS]))
    answer = site.ask("amy", "POST", f"{P}/flips", json=body)
    assert 400 <= answer.status_code < 500
    assert said in answer.json()["error"]["message"]
    assert len(site.workspace.jobs.list(projects=[OURS])) == before


def test_a_word_put_in_by_hand_is_a_word(site: Site, records: Records) -> None:
    first = Words(records.table.at(0)).strings[0]
    long = {"position": 0, "old": first, "new": "x" * 300}
    assert "200 characters" in site.ask("amy", "POST", f"{P}/flips", json={"places": [0], "start": [long]}).text
    twice = [{"position": 0, "old": first, "new": new} for new in ("a", "b")]
    assert "same word" in site.ask("amy", "POST", f"{P}/flips", json={"places": [0], "start": twice}).text


def test_annotators_have_single_examples_rewritten(site: Site) -> None:
    for body in ({}, {"limit": 1}, {"places": [0, 1]}):
        refused = site.ask("ann", "POST", f"{P}/flips", json=body)
        assert (refused.status_code, "single examples" in refused.text) == (403, True)
    asked = {"places": [0], "editable": [0], "keep": 2}
    first, second = (site.ask("ann", "POST", f"{P}/flips", json=asked).json() for _ in range(2))
    assert (first["id"], first["kind"], first["by"]) == (second["id"], "flips", "ann")
    site.workspace.jobs.cancel(first["id"])


def test_a_project_of_an_earlier_version_says_what_to_do(site: Site, records: Records) -> None:
    known = records.setting("flips")
    records.keep_setting("flips", None)
    try:
        answer = site.ask("amy", "POST", f"{P}/flips", json={})
        assert (answer.status_code, "predicted once" in answer.text) == (422, True)
        assert "predicted once" in get(site, "ann", "flips/methods")["cannot"]
    finally:
        records.keep_setting("flips", known)


# -- rating


def test_a_rating_is_stored_shown_changed_and_taken_back(site: Site, records: Records) -> None:
    made = rewritten(records, 2, "somebody")
    assert rate(site, "ann", made.id, 5, None, 1, label="negative").json()["opinion"]["stale"] is None
    view = get(site, "ann", f"flips/{made.id}")
    assert view["mine"]["feedback"]["says"] == {
        "kind": "flip_rating",
        "counterfactual": made.id,
        "plausible": 5,
        "meaningful": None,
        "agrees": 1,
        "label": "negative",
    }
    assert rate(site, "ann", made.id, 4, 4, 4).status_code == 200
    assert get(site, "ann", f"flips/{made.id}")["ratings"] == 1
    assert made.id not in [one["id"] for one in get(site, "ann", "flips", rated=False)["items"]]
    for _ in range(2):
        site.ask("ann", "POST", f"{P}/undo", json={"key": new_key()})
    assert get(site, "ann", f"flips/{made.id}")["mine"] is None


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"counterfactual": "0" * 16}, 404),
        ({"counterfactual": "' OR 1=1"}, 404),
        ({"plausible": 0}, 422),
        ({"plausible": 6}, 422),
        ({"plausible": "5"}, 422),
        ({"plausible": 2.5}, 422),
        ({"label": "neutral"}, 422),
    ],
    ids=str,
)
def test_ratings_that_are_none_are_refused(site: Site, records: Records, says: dict[str, Any], code: int) -> None:
    made = rewritten(records, 0)
    whole = {"kind": "flip_rating", "counterfactual": made.id, "plausible": 1, "meaningful": 1, "agrees": 1}
    assert site.answer("ann", whole | says).status_code == code


def test_a_rating_names_the_revision_that_was_shown(site: Site, records: Records) -> None:
    made = rewritten(records, 0, "whoever", revision="another")
    says = {"kind": "flip_rating", "counterfactual": made.id, "plausible": 1, "meaningful": 1, "agrees": 1}
    answer = site.answer("ann", says)
    assert (answer.status_code, "another revision" in answer.text) == (422, True)


def test_others_see_ratings_only_where_judging_is_open(site: Site, records: Records) -> None:
    made = rewritten(records, 3, "somebody")
    rate(site, "ann", made.id, 1, 1, 1)
    hidden, managed = (get(site, who, f"flips/{made.id}") for who in ("art", "amy"))
    assert (hidden["others"], hidden["ratings"]) == ([], 0)
    assert [one["feedback"]["author"] for one in managed["others"]] == ["ann"]
    assert get(site, "art", "risk")["own"]
    assert get(site, "art", "risk")["risk"]["n"] == 0
    site.ask("amy", "PATCH", P, json={"blind": False})
    assert get(site, "art", f"flips/{made.id}")["ratings"] == 1
    assert get(site, "art", "risk")["risk"]["n"] >= 1
    site.ask("amy", "PATCH", P, json={"blind": True})


def test_risk_is_what_ratings_come_to_with_an_interval_and_what_is_missing(site: Site, records: Records) -> None:
    made = [rewritten(records, place, "nobody", "") for place in range(6)]
    for who in ("ann", "art"):
        for n, one in enumerate(made):
            assert rate(site, who, one.id, 5, 5, None if n == 5 else 1 + n % 4).status_code == 200
    told = get(site, "amy", "risk", width=0.5)
    own = get(site, "ann", "risk")
    assert not told["own"]
    assert own["own"]
    assert told["risk"]["n"] >= 10
    assert own["risk"]["n"] < told["risk"]["n"]
    assert 0 <= told["risk"]["low"] <= told["risk"]["value"] <= told["risk"]["high"] <= 4
    assert told["risk"]["not_applicable"] >= 2
    assert {one["question"] for one in told["risk"]["questions"]} == {"plausible", "meaningful", "agrees"}
    assert set(told["places"]) == {one["example"] for one in told["risk"]["local"]}
    assert (told["before"], told["change"], told["verdict"]) == (None, None, None)
    assert get(site, "amy", "risk", revision="r0")["risk"] == told["risk"]
    narrow = get(site, "amy", "risk", width=0.01)["risk"]["more"]
    assert narrow is None or narrow > (told["risk"]["more"] or 0)


def test_an_export_of_flips_reads_back(site: Site, records: Records, tmp_path: Path) -> None:
    made = rewritten(records, 5, "somebody")
    rate(site, "ann", made.id, 2, None, 2)
    answer = site.ask("amy", "GET", f"{P}/flips/export", params={"revision": "r0"})
    assert answer.headers["content-disposition"] == 'attachment; filename="flips.jsonl"'
    file = tmp_path / "flips.jsonl"
    file.write_bytes(answer.content)
    (found,) = [one for one in read_flips(file) if one.id == made.id]
    assert (found.flip, found.original) == (made, records.table.at(5))
    assert [one.says.plausible for one in found.ratings] == [2]


def test_a_log_with_ratings_comes_back_by_import(site: Site, records: Records) -> None:
    made = rewritten(records, 6, "somebody")
    rate(site, "ann", made.id, 2, None, 3, label="positive")
    for format in ("jsonl", "csv"):
        sent = site.ask("amy", "GET", f"{P}/feedback/export", params={"format": format}).content
        answer = site.ask(
            "amy",
            "POST",
            f"{P}/feedback/import",
            params={"format": format},
            content=sent,
            headers={"content-type": "application/octet-stream"},
        )
        assert answer.status_code == 200, answer.text
        assert (answer.json()["stored"], answer.json()["refused"]) == (0, []), answer.text


# -- with a worker


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, int]]:
    """A site of a project with something to learn, and the number of the worker's process."""
    folder, _ = new_folder(tmp_path_factory.mktemp("worked"))
    shutil.rmtree(folder / OURS)
    with make(folder / OURS) as project:
        list(project.predict())
    with serve(folder) as site, worker(folder) as process:
        yield site, process.pid


def done(site: Site, who: str, path: str, **body: Any) -> Any:
    """The result of a job."""
    answer = site.ask(who, "POST", f"{P}/{path}", json=body)
    assert answer.status_code == 200, answer.text
    job = ended(site, answer.json()["id"])
    assert job.state == "done", job.message
    return job.result


def test_a_search_that_is_killed_goes_on_with_what_is_there(worked: tuple[Site, int]) -> None:
    site, pid = worked
    records = site.workspace.records(OURS)
    slow = {"method": "hotflip", "keep": 2, "search": {"beam": 30}, "seed": 1}
    job = site.ask("amy", "POST", f"{P}/flips", json=slow).json()["id"]
    until(lambda: records.flips() or site.workspace.jobs.get(job).finished)
    before = records.flips()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if children:  # it may be over already
        os.kill(int(children[0]), signal.SIGKILL)
    finished = ended(site, job)
    assert finished.state == "done", finished.message
    assert finished.result["texts"] == 36
    flips = records.flips()
    assert flips[: len(before)] == before
    assert {one.example for one in flips} == {f"e{n}" for n in range(36)}
    assert len({one.id for one in flips}) == len(flips)
    lines = site.ask("amy", "GET", f"{P}/flips/export").text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one.id for one in flips]


def test_flips_are_looked_for_chosen_from_rated_and_trained_on(worked: tuple[Site, int]) -> None:
    site, _ = worked
    found = done(site, "ann", "flips", places=[0], keep=2)
    assert (found["texts"], found["flipped"], len(found["flips"])) == (1, 1, 2)
    view = get(site, "ann", f"flips/{found['flips'][0]}")
    assert (view["flips"], view["place"], view["stale"]) == (True, 0, None)
    assert view["flip"]["similarity"] is not None

    step = view["flip"]["steps"][0]
    other = step["alternatives"][0]["edit"]  # another word at a step: the rest is found anew
    again = done(site, "ann", "flips", places=[0], start=[other])
    edits = get(site, "ann", f"flips/{again['flips'][0]}")["flip"]["edits"]
    assert {"position": other["position"], "old": other["old"], "new": other["new"]} in edits

    masked = done(site, "ann", "flips", places=[1], editable=[1], reads=[0, 1, 2, 3])
    one = get(site, "ann", f"flips/{masked['flips'][0]}")["flip"]
    assert {edit["position"] for edit in one["edits"]} == {1}
    assert one["reads"] == [0, 1, 2, 3]

    many = done(site, "amy", "flips", limit=6, edits_in="rationale", method="deletion")
    assert many["texts"] == 6
    desk = get(site, "amy", "examples/5/flips")
    assert desk["rationale"]["chosen"]
    for id_ in many["flips"]:
        told = get(site, "amy", f"flips/{id_}")["flip"]
        chosen = get(site, "amy", f"examples/{told['example'].removeprefix('e')}/flips")["rationale"]["chosen"]
        assert {edit["position"] for edit in told["edits"]} <= set(chosen)

    whole = done(site, "amy", "flips", target="positive", search={"max_edits": 2})
    assert whole["texts"] == 36
    rated = get(site, "amy", "flips", limit=100, flips=True)["items"]
    for one in rated:
        assert rate(site, "amy", one["id"], 5, 5, 5, label=one["original"]["label"]).status_code == 200
    answers = {one["method"]["name"]: one["answers"] for one in get(site, "amy", "fixes")["methods"]}
    assert answers["counterfactual_augmentation"] == len(rated)
    taken = done(site, "amy", "exports", revision="r0", model=False, feedback=False, report=False, flips=True)
    assert taken == {"flips": "r0-flips-1"}
    with zipfile.ZipFile(io.BytesIO(site.ask("amy", "GET", f"{P}/exports/r0-flips-1.zip").content)) as archive:
        assert "r0-flips-1/flips.jsonl" in archive.namelist()
    fixed = done(site, "amy", "fixes", fix="counterfactual_augmentation", training=QUICK)
    assert (fixed["before"], fixed["after"]) == ("r0", "r1")
    site.ask("amy", "POST", f"{P}/revisions/r1/publish", json={"expects": "r0", "even_so": True})
    after = get(site, "amy", "risk")
    assert (after["risk"]["n"], after["flips"], after["before"]["n"]) == (0, 0, len(rated))
    taught = [one for one in rated if one["original"]["split"] == "train"]
    assert 0 < get(site, "amy", "fixes")["feedback"]["inherited"] <= len(taught)
