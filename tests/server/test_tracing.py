"""Neighbours over HTTP: who may ask for what, what is refused, ratings, copies and doubts, work by a worker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from neighbouring import copied, doubted, traced
from served import OURS, Site, new_folder, new_key, serve
from small_project import QUICK, make
from unhans.records import Records
from unhans.records.trace_views import NOT_NOW, RELABELLED
from working import ended, worker

P = f"/api/projects/{OURS}"
TRAIN, TEST = (0, 2, 4, 6), (1, 3, 5)  # places, as `served` makes them


@pytest.fixture
def records(site: Site) -> Records:
    return site.workspace.records(OURS)


def get(site: Site, who: str, path: str, **params: Any) -> Any:
    answer = site.ask(who, "GET", f"{P}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rate(site: Site, who: str, place: int, similar: Any, neighbour: int = 0, **more: Any) -> Any:
    """How similar an anchor is to one of its helpful neighbours."""
    view = get(site, who, f"anchors/{place}")
    one = view["helpful"][neighbour]
    says = {"kind": "neighbour_rating", "anchor": view["example"]["id"], "train": one["example"]["id"]}
    body = {"key": new_key(), "says": says | {"similar": similar} | more, "text_hash": one["text_hash"]}
    return site.ask(who, "POST", f"{P}/feedback", json=body | {"revision": site.revision})


# -- looking


def test_an_anchor_is_seen_in_its_page_and_alone(site: Site, records: Records) -> None:
    found = traced(records, 1, (0, 2, 4), (6,))
    view = get(site, "ann", "anchors/1")
    assert (view["place"], view["label"], view["stale"]) == (1, found.label, None)
    assert [one["place"] for one in view["helpful"]] == [0, 2, 4]
    assert [one["rank"] for one in view["helpful"]] == [1, 2, 3]
    assert [one["score"] for one in view["harmful"]] == [-1.0]
    assert view["helpful"][0]["example"]["text"] == records.table.at(0).text
    assert view["helpful"][0]["prediction"] is not None
    page = get(site, "ann", "anchors")
    (row,) = [one for one in page["items"] if one["place"] == 1]
    assert (row["id"], row["neighbours"], row["rated"]) == (records.table.at(1).id, 3, 0)
    assert page["pairs"] >= 3


def test_pages_go_on_where_they_stopped(site: Site, records: Records) -> None:
    for place in TEST:
        traced(records, place, TRAIN)
    for n in range(3):
        copied(records, 0, f"a copy with the number {n} of pages")
    doubted(records, *TRAIN)
    for path in ("anchors", "copies", "doubts"):
        whole = get(site, "amy", path, limit=100)
        seen, cursor = [], None
        while True:
            page = get(site, "amy", path, limit=2, **({"cursor": cursor} if cursor else {}))
            seen += page["items"]
            if (cursor := page["next"]) is None:
                break
        assert seen == whole["items"]
        assert len(seen) == whole["total"]


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("anchors/99999", {}, 404),
        ("anchors/7", {}, 404),
        ("anchors/x", {}, 422),
        ("anchors/-1", {}, 422),
        ("anchors/1", {"revision": "r99"}, 404),
        ("anchors", {"revision": "r99"}, 404),
        ("anchors", {"limit": 1000}, 422),
        ("anchors", {"cursor": "zzz"}, 422),
        ("anchors", {"order": "x"}, 422),
        ("copies", {"place": -1}, 422),
        ("copies", {"limit": 1000}, 422),
        ("copies", {"cursor": "zzz"}, 422),
        ("doubts", {"revision": "r99"}, 404),
        ("doubts", {"limit": 1000}, 422),
        ("doubts", {"cursor": "zzz"}, 422),
        ("doubts", {"sort": "x"}, 422),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused(
    site: Site, path: str, query: dict[str, Any], code: int
) -> None:
    answer = site.ask("amy", "GET", f"{P}/{path}", params=query)
    assert (answer.status_code, set(answer.json()["error"])) == (code, {"code", "message", "request_id"})


def test_the_ways_have_no_option_that_names_a_folder_or_a_model(site: Site) -> None:
    offer = get(site, "ann", "neighbours/methods")
    assert offer["cannot"] == ""
    assert offer["methods"][0]["name"] == "projected_gradients"
    assert offer["augmentations"][0]["name"] == "synonyms"
    assert offer["copies_per_point"] == 10
    assert {"lexical_overlap", "contains_word"} <= {one["name"] for one in offer["heuristics"]}
    assert {"self_influence", "low_confidence"} <= {one["name"] for one in offer["doubts"]}
    every = [*offer["methods"], *offer["heuristics"], *offer["augmentations"], *offer["doubts"]]
    names = {option["name"] for method in every for option in method["options"]}
    assert not names & {"model", "wordnet", "folder", "language_model", "there", "back", "forward", "backward"}


# -- asking


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("anchors", {"method": "magic"}, "There is no way to trace"),
        ("anchors", {"options": {"nothing": 1}}, "no option"),
        ("anchors", {"method": "lissa", "options": {"depth": 10**9}}, "at most"),
        ("anchors", {"method": "lissa", "options": {"depth": "many"}}, "must be"),
        ("anchors", {"method": "lissa", "options": {"depth": 2000, "batch": 24}}, "12 times as much"),
        ("anchors", {"options": {"width": 44}}, "16 times as much"),
        ("anchors", {"places": []}, ""),
        ("anchors", {"places": [99_999]}, "no example"),
        ("anchors", {"places": [-1]}, ""),
        ("anchors", {"places": list(range(1001))}, ""),
        ("anchors", {"anchors": 0}, ""),
        ("anchors", {"anchors": 1001}, ""),
        ("anchors", {"top": 51}, ""),
        ("anchors", {"of": "everything"}, ""),
        ("anchors", {"split": "nowhere"}, "no split"),
        ("anchors", {"heuristic": "magic"}, "There is no pattern"),
        ("anchors", {"heuristic": "contains_word", "heuristic_options": {"words": "x"}}, "no option"),
        ("anchors", {"heuristic": "contains_word", "heuristic_options": {"word": "x" * 501}}, "500 characters"),
        ("anchors", {"heuristic": "contains_word"}, "has to be told"),
        ("anchors", {"heuristic": "length", "heuristic_options": {"least": 5, "most": 2}}, "least"),
        ("anchors", {"heuristic_options": {"word": "x"}}, "no pattern"),
        ("anchors", {"places": [1], "heuristic": "negation"}, "not both"),
        ("copies", {"method": "magic"}, "There is no way to make copies"),
        ("copies", {"options": {"wordnet": "/etc"}}, "no option"),
        ("copies", {"method": "back_translation", "options": {"model": "/etc"}}, ""),
        ("copies", {"copies_per_point": 0}, ""),
        ("copies", {"copies_per_point": 51}, ""),
        ("copies", {"places": [99_999]}, "no example"),
        ("copies", {"places": [0] * 1000, "copies_per_point": 50}, "at most 50,000"),
        ("copies", {"check": "magic"}, ""),
        ("doubts", {"signs": ["magic"]}, "There is no sign"),
        ("doubts", {"signs": []}, ""),
        ("doubts", {"seed": -1}, ""),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_at_once(site: Site, path: str, body: dict[str, Any], said: str) -> None:
    before = len(site.workspace.jobs.list(projects=[OURS]))
    answer = site.ask("amy", "POST", f"{P}/{path}", json=body)
    assert 400 <= answer.status_code < 500
    assert said in answer.json()["error"]["message"]
    assert len(site.workspace.jobs.list(projects=[OURS])) == before


def test_every_number_of_every_method_has_a_bound(site: Site) -> None:
    offer = get(site, "amy", "neighbours/methods")
    for path, methods in (("anchors", offer["methods"]), ("copies", offer["augmentations"])):
        for method in (one for one in methods if one["usable"]):
            for option in method["options"]:
                if option["kind"] in ("int", "float"):
                    body = {"method": method["name"], "options": {option["name"]: 10**12}}
                    answer = site.ask("amy", "POST", f"{P}/{path}", json=body)
                    assert (answer.status_code, "at most" in answer.text) == (422, True), (method["name"], option)


@pytest.mark.parametrize("path", ["anchors", "copies"])
def test_annotators_ask_for_single_examples(site: Site, path: str) -> None:
    for body in ({}, {"places": [0, 1]}):
        refused = site.ask("ann", "POST", f"{P}/{path}", json=body)
        assert (refused.status_code, "single examples" in refused.text) == (403, True)
    if path == "anchors":
        for more in ({"options": {"damping": 0.2}}, {"seed": 7}):
            refused = site.ask("ann", "POST", f"{P}/{path}", json={"places": [0]} | more)
            assert (refused.status_code, "usual options" in refused.text) == (403, True)
    more = {"method": "word_dropout"} if path == "copies" else {}
    first, second = (site.ask("ann", "POST", f"{P}/{path}", json={"places": [0]} | more).json() for _ in range(2))
    kind = {"anchors": "trace", "copies": "copies"}[path]
    assert (first["id"], first["kind"], first["by"]) == (second["id"], kind, "ann")
    site.workspace.jobs.cancel(first["id"])


def test_a_project_of_an_earlier_version_says_what_to_do(site: Site, records: Records) -> None:
    known = records.setting("traces")
    assert known is not None
    records.keep_setting("traces", None)
    try:
        for path in ("anchors", "copies", "doubts"):
            answer = site.ask("amy", "POST", f"{P}/{path}", json={})
            assert (answer.status_code, "predicted once" in answer.text) == (422, True)
        offer = get(site, "ann", "neighbours/methods")
        assert all("predicted once" in offer[why] for why in ("cannot", "cannot_doubt"))
    finally:
        records.keep_setting("traces", known)


def test_labels_are_doubted_where_nothing_can_be_traced(site: Site, records: Records) -> None:
    """As a model that only predicts has it: some signs of wrong labels need no gradients."""
    known = records.setting("traces")
    plain = {"usable": False, "unusable": "It has no gradients."}
    needy = [one | plain if "gradients" in one["needs"] else one for one in known["doubts"]]
    methods = [one | plain for one in known["methods"]]
    records.keep_setting("traces", known | {"methods": methods, "doubts": needy})
    try:
        offer = get(site, "amy", "neighbours/methods")
        assert (offer["cannot"], offer["cannot_doubt"]) == ("It has no gradients.", "")
        assert site.ask("amy", "POST", f"{P}/anchors", json={}).status_code == 422
        refused = site.ask("amy", "POST", f"{P}/doubts", json={"signs": ["self_influence"]})
        assert (refused.status_code, "no gradients" in refused.text) == (422, True)
        job = site.ask("amy", "POST", f"{P}/doubts", json={"signs": ["low_confidence"]}).json()
        assert job["kind"] == "doubts"
        site.workspace.jobs.cancel(job["id"])
    finally:
        records.keep_setting("traces", known)


# -- rating


def test_a_rating_is_stored_shown_changed_and_taken_back(site: Site, records: Records) -> None:
    traced(records, 3, (0, 2))
    before = get(site, "ann", "anchors")
    answer = rate(site, "ann", 3, 4)
    assert answer.status_code == 200, answer.text
    assert answer.json()["opinion"]["stale"] is None
    assert get(site, "ann", "anchors/3")["helpful"][0]["mine"]["feedback"]["says"]["similar"] == 4
    assert get(site, "ann", "anchors")["rated"] == before["rated"] + 1
    assert rate(site, "ann", 3, 1).status_code == 200
    assert get(site, "ann", "anchors")["rated"] == before["rated"] + 1
    assert rate(site, "ann", 3, 5, 1).status_code == 200
    assert 3 not in [one["place"] for one in get(site, "ann", "anchors", waiting=True)["items"]]
    for _ in range(3):
        site.ask("ann", "POST", f"{P}/undo", json={"key": new_key()})
    assert [one["mine"] for one in get(site, "ann", "anchors/3")["helpful"]] == [None, None]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"similar": 0}, 422),
        ({"similar": 6}, 422),
        ({"similar": 2.5}, 422),
        ({"similar": "3"}, 422),
        ({"anchor": "nobody"}, 404),
        ({"train": "nobody"}, 404),
        ({"train": "' OR 1=1"}, 404),
    ],
    ids=str,
)
def test_ratings_that_are_none_are_refused(site: Site, records: Records, more: dict[str, Any], code: int) -> None:
    traced(records, 3, (0, 2))
    assert rate(site, "ann", 3, **({"similar": 3} | more)).status_code == code


def test_only_neighbours_are_rated(site: Site, records: Records) -> None:
    traced(records, 5, (0,))
    stranger = records.table.at(8).id
    assert 400 <= rate(site, "ann", 5, 3, train=stranger).status_code < 500


def test_others_see_ratings_only_where_judging_is_open(site: Site, records: Records) -> None:
    traced(records, 5, (0, 2))
    assert rate(site, "ann", 5, 3).status_code == 200
    hidden, managed = (get(site, who, "anchors/5")["helpful"][0] for who in ("art", "amy"))
    assert (hidden["mine"], hidden["others"]) == (None, [])
    assert [one["feedback"]["author"] for one in managed["others"]] == ["ann"]
    site.ask("amy", "PATCH", P, json={"blind": False})
    assert len(get(site, "art", "anchors/5")["helpful"][0]["others"]) == 1
    site.ask("amy", "PATCH", P, json={"blind": True})


def test_a_trace_of_an_annotator_does_not_take_the_place_of_what_others_rate(site: Site, records: Records) -> None:
    traced(records, 7, (0, 2))
    traced(records, 7, (4,), by="ann", leads=False, asked="by ann")
    assert [one["place"] for one in get(site, "art", "anchors/7")["helpful"]] == [0, 2]
    assert [one["place"] for one in get(site, "amy", "anchors/7")["helpful"]] == [0, 2]


# -- copies


def test_a_copy_is_changed_once_by_who_has_seen_it_and_taken_away(site: Site, records: Records) -> None:
    made = copied(records, 2, "a copy to be changed", label_kept=0.2)
    (view,) = [one for one in get(site, "amy", "copies", place=2)["items"] if one["id"] == made.id]
    assert (view["copy"]["text"], view["edited"]) == (made.text, False)
    assert view["original"]["text"] == records.table.at(2).text
    change = {"seen": view["at"], "text": "a copy that was changed"}
    new = site.ask("amy", "PATCH", f"{P}/copies/{made.id}", json=change)
    assert (new.status_code, new.json()["id"], new.json()["edited"]) == (200, made.id, True)
    assert (new.json()["copy"]["text"], new.json()["copy"]["label_kept"]) == ("a copy that was changed", None)
    late = site.ask("root", "PATCH", f"{P}/copies/{made.id}", json=change | {"text": "too late"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    assert get(site, "amy", "copies", place=2)["items"][-1]["copy"]["text"] == "a copy that was changed"
    assert site.ask("amy", "DELETE", f"{P}/copies/{made.id}").status_code == 204
    assert site.ask("amy", "DELETE", f"{P}/copies/{made.id}").status_code == 404
    assert made.id not in [one["id"] for one in get(site, "amy", "copies", place=2)["items"]]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "x"},
        {"seen": "x", "text": ""},
        {"seen": "x", "text": "x" * 20_001},
        {"seen": "x", "text": 1},
        {"seen": "x", "text": "   "},
    ],
    ids=lambda body: str(body)[:40],
)
def test_changes_that_are_none_are_refused(site: Site, records: Records, body: dict[str, Any]) -> None:
    made = copied(records, 4, "a copy that stays")
    assert site.ask("amy", "PATCH", f"{P}/copies/{made.id}", json=body).status_code == 422
    assert get(site, "amy", "copies", place=4)["items"][-1]["copy"]["text"] == made.text


def test_a_copy_of_a_single_text_gets_no_second_text(site: Site, records: Records) -> None:
    made = copied(records, 4, "a copy of a single text")
    (view,) = [one for one in get(site, "amy", "copies", place=4)["items"] if one["id"] == made.id]
    change = {"seen": view["at"], "text": "x", "pair": "y"}
    assert site.ask("amy", "PATCH", f"{P}/copies/{made.id}", json=change).status_code == 422


def test_copies_do_not_tell_what_others_said(site: Site, records: Records) -> None:
    traced(records, 5, (6,))
    assert rate(site, "ann", 5, 5).status_code == 200
    for n in range(12):
        copied(records, 6, f"one of a dozen copies, number {n}", label_kept=0.1)
    assert get(site, "amy", "anchors/5")["helpful"][0]["copies"] == 12
    assert get(site, "art", "anchors/5")["helpful"][0]["copies"] == 0
    page = get(site, "art", "copies", place=6)
    assert (page["items"], page["total"], page["doubtful"]) == ([], 0, 0)
    assert rate(site, "art", 5, 1).status_code == 200
    assert get(site, "art", "anchors/5")["helpful"][0]["copies"] == 10  # as many as the own answer asks for
    seen, more = [], {}
    while more.get("cursor", "") is not None:
        page = get(site, "art", "copies", place=6, limit=4, **more)
        assert page["total"] == 10
        seen += page["items"]
        more = {"cursor": page["next"]}
    assert [one["copy"]["text"][-1] for one in seen] == list("0123456789")
    example = records.table.at(6)
    body = {"key": new_key(), "says": {"kind": "relabel", "example": example.id, "label": None}}
    body |= {"revision": site.revision, "text_hash": example.text_hash}
    assert site.ask("ann", "POST", f"{P}/feedback", json=body).status_code == 200
    assert {one["stale"] for one in get(site, "art", "copies", place=6)["items"]} == {NOT_NOW}
    assert {one["stale"] for one in get(site, "amy", "copies", place=6)["items"]} == {RELABELLED}


def test_only_managers_say_how_many_copies_a_point_makes(site: Site, records: Records) -> None:
    records.keep_setting("copies_per_point", 3)
    try:
        assert get(site, "ann", "neighbours/methods")["copies_per_point"] == 3
        asked = {"places": [0], "method": "word_dropout"}
        answer = site.ask("ann", "POST", f"{P}/copies", json=asked | {"copies_per_point": 50})
        assert (answer.status_code, "3 copies" in answer.text) == (403, True)
        for more in ({}, {"copies_per_point": 3}):
            assert site.ask("ann", "POST", f"{P}/copies", json=asked | more).status_code == 200
    finally:
        records.keep_setting("copies_per_point", None)


# -- doubts


def test_doubts_are_told_in_their_order_and_judged(site: Site, records: Records) -> None:
    found = doubted(records, *TRAIN)
    page = get(site, "ann", "doubts")
    assert [one["example"]["id"] for one in page["items"]] == [one.example for one in found]
    assert [one["rank"] for one in page["items"]] == [1, 2, 3, 4]
    first = page["items"][0]
    label = first["doubt"]["suggested"]
    for says in (label, None):  # another label, then none of them
        body = {"key": new_key(), "says": {"kind": "relabel", "example": first["example"]["id"], "label": says}}
        body |= {"revision": site.revision, "text_hash": first["text_hash"]}
        assert site.ask("ann", "POST", f"{P}/feedback", json=body).status_code == 200
        page = get(site, "ann", "doubts")
        assert page["items"][0]["mine"]["feedback"]["says"]["label"] == says
    assert page["judged"] >= 1
    assert first["place"] not in [one["place"] for one in get(site, "ann", "doubts", waiting=True)["items"]]
    assert get(site, "art", "doubts")["items"][0]["others"] == []
    only = get(site, "ann", "doubts", label=first["doubt"]["label"])["items"]
    assert {one["doubt"]["label"] for one in only} == {first["doubt"]["label"]}


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


def done(site: Site, who: str, path: str, **body: Any) -> Any:
    """The result of a job."""
    answer = site.ask(who, "POST", f"{P}/{path}", json=body)
    assert answer.status_code == 200, answer.text
    job = ended(site, answer.json()["id"])
    assert job.state == "done", job.message
    return job.result


def test_examples_are_traced_rated_copied_and_the_model_fixed(worked: Site) -> None:
    site = worked
    done(site, "amy", "anchors", wrong=False, anchors=2, top=3)
    anchors = get(site, "ann", "anchors")["items"]
    assert len(anchors) == 2
    before = get(site, "ann", f"anchors/{anchors[0]['place']}")
    done(site, "ann", "anchors", places=[anchors[0]["place"]], top=1, method="embedding_neighbours")
    assert get(site, "art", f"anchors/{anchors[0]['place']}") == before
    for anchor in anchors:
        for n, _ in enumerate(get(site, "amy", f"anchors/{anchor['place']}")["helpful"]):
            assert rate(site, "amy", anchor["place"], 5, n).status_code == 200
    answers = {one["method"]["name"]: one["answers"] for one in get(site, "amy", "fixes")["methods"]}
    assert answers["similarity_augmentation"] >= 1
    done(site, "amy", "copies", method="word_dropout", copies_per_point=1, check="model")
    page = get(site, "amy", "copies")
    assert page["total"] >= 1
    assert all(0 <= one["copy"]["label_kept"] <= 1 for one in page["items"])
    assert {one["stale"] for one in page["items"]} == {None}
    fixed = done(site, "amy", "fixes", fix="similarity_augmentation", training=QUICK)
    assert (fixed["before"], fixed["after"]) == ("r0", "r1")


def test_labels_are_doubted(worked: Site) -> None:
    done(worked, "amy", "doubts", signs=["low_confidence", "neighbour_disagreement"])
    page = get(worked, "amy", "doubts", limit=100)
    assert page["total"] == 24  # all that train
    assert page["recipe"] is not None
    assert {name for one in page["items"] for name, _ in one["doubt"]["signs"]} == {
        "low_confidence",
        "neighbour_disagreement",
    }
