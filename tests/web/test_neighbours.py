"""What people do on the screen Neighbours: have a test case traced, rate pairs by keys, read and change copies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from screens import compare, ended
from workbench import Desk, Person

Seat = Callable[..., Desk]
Somebody = Callable[..., Person]
Ann = tuple[Desk, Person, str]
GONE = r"ERR_(CONNECTION_|FAILED)"
LONG = 300_000  # milliseconds: a job waits for a worker that all tests share
PLACE = 2


# -- helpers


def trace(person: Person, project: str, *places: int, top: int = 3) -> Any:
    """Have test cases traced without a browser; what is shown of the last."""
    for place in places:
        asked = {"places": [place], "top": top, "method": "embedding_neighbours"}
        ended(person, person.ask("POST", f"api/projects/{project}/anchors", json=asked))
    return person.ask("GET", f"api/projects/{project}/anchors/{places[-1]}")


def open_pair(desk: Desk, project: str, place: int = PLACE, query: str = "") -> Page:
    """The screen with one test case."""
    page = desk.go(f"/p/{project}/neighbours/{place}{query}")
    expect(page.get_by_role("toolbar", name="Rate this pair")).to_be_visible()
    return page


def answers_of(person: Person, project: str) -> list[Any]:
    """How similar somebody found pairs and what they called training examples, oldest first; "back": taken back."""
    return [
        "back" if one["retracts"] else one["says"].get("similar", one["says"].get("label"))
        for one in person.said(project)
    ]


def at_pair(page: Page, number: int) -> None:
    expect(page.get_by_role("heading", name=re.compile(f"^Training example {number} of"))).to_be_visible()


# -- stories


def test_a_test_case_is_traced_and_its_pairs_are_rated_by_keys(desk: Ann) -> None:
    window, ann, project = desk
    window.provokes("status of 404")  # it has not been traced yet
    page = window.go(f"/p/{project}/neighbours/{PLACE}")
    page.get_by_role("link", name="Choose how").click()
    expect(page.get_by_label("Number of the example")).to_have_value(str(PLACE + 1))
    page.get_by_label("Training examples for each").fill("3")
    page.get_by_role("button", name="Trace this test case").click()
    page.get_by_role("link", name=re.compile("0 of 3")).click(timeout=LONG)
    at_pair(page, 1)
    helpful = ann.ask("GET", f"api/projects/{project}/anchors/{PLACE}")["helpful"]
    expect(page.get_by_role("button", name=re.compile("^4 rather similar"))).to_be_visible()

    window.press("4")
    at_pair(page, 2)  # it goes on by itself
    assert f"train={helpful[1]['place']}" in page.url
    window.press("s")
    at_pair(page, 3)
    window.press("1")
    at_pair(page, 2)  # the one that was skipped waits
    window.press("ArrowUp")
    at_pair(page, 1)
    expect(page.get_by_text("Your answer makes 40 copies")).to_be_visible()
    page.reload()
    at_pair(page, 1)
    expect(page.get_by_role("button", name=re.compile("^4 "), pressed=True)).to_be_visible()
    window.saved()
    window.press("Backspace")  # what was said before the reload is undone where it was said
    expect(page.get_by_role("button", pressed=True, name=re.compile("^4 "))).to_have_count(0)
    window.saved()
    assert answers_of(ann, project) == [4, 1, "back"]
    window.press("5")
    at_pair(page, 2)
    window.press("3")
    expect(page.get_by_text("You have rated every pair that waits for you.").last).to_be_visible()
    window.saved()
    assert answers_of(ann, project)[3:] == [5, 3]
    page.get_by_role("link", name="All test cases").click()
    expect(page.get_by_text("You have rated 3 of 3 pairs")).to_be_visible()


def test_a_lost_line_keeps_ratings_and_labels(seat: Seat, somebody: Somebody, project: str) -> None:
    ann = somebody("ann", project)
    trace(ann, project, PLACE)
    window = seat(ann)
    window.provokes(GONE)
    window.cut_line()
    page = open_pair(window, project)
    window.press("2")
    at_pair(page, 2)
    window.press("d")  # none of its labels fits
    expect(page.get_by_text("you said: to be left out of the training")).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile("^Connection lost. 2 answers are kept"))).to_be_visible()
    expect(page.get_by_text("you said: to be left out of the training")).to_be_visible()
    assert answers_of(ann, project) == []
    window.mend_line()
    window.saved()
    assert answers_of(ann, project) == [2, None]


def test_harmful_examples_are_relabelled_and_taken_back(seat: Seat, somebody: Somebody, project: str) -> None:
    ann = somebody("ann", project)
    anchor = trace(ann, project, PLACE)
    given = anchor["harmful"][0]["example"]["label"]
    other = next(one for one in ("negative", "positive") if one != given)
    window = seat(ann)
    page = open_pair(window, project)
    window.press("t")
    expect(page.get_by_text("Is the label of this training example right?")).to_be_visible()
    page.get_by_label("No, it should be").select_option(other)
    expect(page.get_by_text(f"you said: ‘{other}’")).to_be_visible()
    window.saved()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text(re.compile("^you said"))).to_have_count(0)
    page.get_by_role("button", name=f"Yes, {given} is right").click()
    expect(page.get_by_text(f"you said: ‘{given}’")).to_be_visible()
    window.saved()
    assert answers_of(ann, project) == [other, "back", given]


@pytest.mark.parametrize("conflict", [False, True])
def test_a_copy_is_made_rewritten_and_deleted(seat: Seat, boss: Person, project: str, conflict: bool) -> None:
    anchor = trace(boss, project, PLACE, top=1)
    train = anchor["helpful"][0]
    compare(boss, project, anchor, train, 3)
    window = seat(boss)
    page = open_pair(window, project, query=f"?train={train['place']}")
    page.get_by_role("button", name="Preview the copies").click()
    page.locator("summary", has_text="How they are made").click()
    page.get_by_label("Way to make copies").select_option("word_dropout")
    page.get_by_label("Copies per point").fill("1")
    page.get_by_label("Copies per point").press("Tab")
    expect(page.get_by_text("Your answer makes 3 copies")).to_be_visible()
    page.get_by_role("button", name="Make the copies").click()
    edit = page.get_by_role("button", name="Edit this copy")
    expect(edit.first).to_be_visible(timeout=LONG)
    before = boss.ask("GET", f"api/projects/{project}/copies")["items"]
    expect(page.get_by_text(re.compile("^label (kept|may be lost)"))).to_have_count(len(before))

    edit.first.click()
    page.get_by_label("Text of the copy").fill("Written by hand.")
    page.reload()  # what is being written is kept on the device
    page.get_by_role("button", name="Preview the copies").click()
    expect(page.get_by_label("Text of the copy")).to_have_value("Written by hand.")
    if conflict:
        window.provokes("status of 409")
        path = f"api/projects/{project}/copies/{before[0]['id']}"
        boss.ask("PATCH", path, json={"seen": before[0]["at"], "text": "Somebody was faster."})
        page.get_by_role("button", name="Save the copy").click()
        expect(page.get_by_text("As it is now: Somebody was faster.")).to_be_visible()
        page.get_by_role("button", name="Use mine all the same").click()
    else:
        page.get_by_role("button", name="Save the copy").click()
    expect(page.get_by_label("Text of the copy")).to_have_count(0)  # it closes when the copy is saved
    expect(page.get_by_text(re.compile("^written by"))).to_be_visible()
    changed = boss.ask("GET", f"api/projects/{project}/copies")["items"]
    assert [one["copy"]["text"] for one in changed if one["edited"]] == ["Written by hand."]

    page.get_by_role("button", name="Delete this copy").first.click()
    expect(page.get_by_role("button", name="Delete this copy")).to_have_count(len(before) - 1)
    assert boss.ask("GET", f"api/projects/{project}/copies")["total"] == len(before) - 1
