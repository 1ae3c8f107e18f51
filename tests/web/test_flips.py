"""What people do on the screen Flips: have a text rewritten, choose other words, rate, and see what it comes to."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from screens import begin, ended, rate
from workbench import SHORTCUT, Desk, Person

Seat = Callable[..., Desk]
Somebody = Callable[..., Person]
Ann = tuple[Desk, Person, str]
GONE = r"ERR_(CONNECTION_|FAILED)"
LONG = 300_000  # milliseconds: a search waits for a worker that all tests share


# -- helpers


def open_flips(desk: Desk, project: str, place: int = 0) -> Page:
    """The screen with one example, ready to look for flips."""
    page = desk.go(f"/p/{project}/flips/{place}")
    expect(page.get_by_role("button", name=re.compile("^Find a flip")).first).to_be_visible()
    return page


def rated(page: Page) -> Locator:
    """The word that says that the open flip is rated."""
    return page.get_by_text("✓ rated", exact=True)


def flips_of(person: Person, project: str, place: int) -> list[dict[str, Any]]:
    """The rewritten texts of an example, newest first."""
    found: list[dict[str, Any]] = person.ask("GET", f"api/projects/{project}/examples/{place}/flips")["flips"]
    return found


def find(person: Person, project: str, **asked: Any) -> list[str]:
    """Have flips looked for without a browser; their ids."""
    ids: list[str] = ended(person, person.ask("POST", f"api/projects/{project}/flips", json=asked))["result"]["flips"]
    return ids


def ratings_of(person: Person, project: str) -> list[tuple[Any, ...]]:
    """What somebody has said about rewritten texts, oldest first; entries that take another back are told so."""
    return [
        ("back",) if one["retracts"] else tuple(one["says"][name] for name in ("plausible", "meaningful", "agrees"))
        for one in person.said(project)
        if one["says"]["kind"] == "flip_rating"
    ]


# -- stories


def test_a_flip_is_found_another_word_is_chosen_and_the_rating_becomes_the_risk(desk: Ann) -> None:
    window, ann, project = desk
    page = open_flips(window, project)
    expect(page.get_by_text("No flip of this text yet")).to_be_visible()
    page.get_by_role("button", name=re.compile("^All (words|of the text)")).click()
    window.press("r")
    expect(page.get_by_role("toolbar", name="Rate this flip")).to_be_visible(timeout=LONG)
    (first,) = flips_of(ann, project, 0)
    assert first["flips"]
    new = first["flip"]["edits"][0]["new"]
    expect(page.locator("ins").first).to_contain_text(new)
    expect(page.locator("del").first).to_contain_text(first["flip"]["edits"][0]["old"])
    assert first["id"] in page.url

    other = first["flip"]["steps"][0]["alternatives"][0]["edit"]
    page.get_by_label(re.compile("^Another word instead of")).first.select_option("0")
    expect(page.get_by_text("2 of 2").or_(page.get_by_text("1 of 2"))).to_be_visible(timeout=LONG)
    second, before = flips_of(ann, project, 0)
    assert before["id"] == first["id"]
    assert other in [edit for step in second["flip"]["steps"] for edit in step["edits"]]
    expect(page.locator("ins").first).to_contain_text(second["flip"]["edits"][0]["new"])

    window.press("4", "x")  # nothing is saved until all three are answered
    window.press("Enter")
    expect(page.get_by_text("not answered yet")).to_be_visible()
    assert ratings_of(ann, project) == []
    window.press("2", "Enter")
    window.saved()
    assert ratings_of(ann, project) == [(4, None, 2)]
    assert ann.said(project)[0]["says"]["counterfactual"] == second["id"]
    page.wait_for_function("(id) => location.href.includes(id)", arg=first["id"])  # the other one waits
    expect(rated(page)).to_have_count(0)

    page.get_by_role("link", name="All flips and the risk").click()
    expect(page.get_by_text("Judging is blind here")).to_be_visible()
    facts = page.locator("dl.facts")
    expect(facts).to_contain_text("3.00")  # 5 − 2
    expect(facts).to_contain_text("too few ratings")
    page.get_by_role("link", name="One text at a time").click()
    expect(page.get_by_role("toolbar", name="Rate this flip")).to_be_visible()
    page.get_by_role("link", name=re.compile("^2 · ")).click()
    page.wait_for_function("(id) => location.href.includes(id)", arg=first["id"])
    window.press("5", "5", "5", "Enter")
    expect(page.get_by_text("You have rated every rewritten text that waits for you.").last).to_be_visible()
    page.get_by_role("link", name="All flips and the risk").click()
    expect(facts).to_contain_text("1.50")  # the mean of 3 and 0

    page.get_by_role("button", name="Show the table").click()
    page.get_by_role("row").nth(2).get_by_role("link").click()  # newest first: below it the first one
    page.wait_for_function("(id) => location.href.includes(id)", arg=first["id"])
    expect(rated(page)).to_be_visible()
    window.press("Backspace")
    expect(rated(page)).to_have_count(0)
    window.saved()
    assert ratings_of(ann, project) == [(4, None, 2), (5, 5, 5), ("back",)]


def test_a_lost_line_keeps_the_rating(seat: Seat, somebody: Somebody, project: str) -> None:
    ann = somebody("ann", project)
    (id_,) = find(ann, project, places=[0])
    window = seat(ann)
    window.provokes(GONE)
    window.cut_line()
    page = window.go(f"/p/{project}/flips")  # opens what waits for a rating
    page.wait_for_function("(id) => location.href.includes(id)", arg=id_)
    expect(page.get_by_role("toolbar", name="Rate this flip")).to_be_visible()
    window.press("3")
    page.reload()  # an answer that is not saved yet is kept on the device
    expect(page.get_by_text("not saved yet")).to_be_visible()
    window.press("4", "5", "Enter")
    expect(page.get_by_text(re.compile("^Connection lost. 1 answer is kept"))).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile("^Connection lost. 1 answer is kept"))).to_be_visible()
    assert ratings_of(ann, project) == []
    window.mend_line()
    window.saved()
    assert ratings_of(ann, project) == [(3, 4, 5)]
    page = window.go(f"/p/{project}/flips/0")
    expect(rated(page)).to_be_visible()


def test_a_search_waits_survives_a_reload_and_can_be_stopped(desk: Ann, boss: Person) -> None:
    window, ann, project = desk
    boss.vote(project, SHORTCUT, "lower")
    before = begin(boss, project, "word_dropout", 10_000)  # what the search waits for
    try:
        page = open_flips(window, project, 3)
        window.press("r")
        stop = page.get_by_role("button", name="Stop looking for flips")
        expect(stop).to_be_visible()
        page.reload()
        expect(stop).to_be_visible()
        stop.click()
        expect(page.get_by_text(re.compile("^The search was stopped"))).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^Find a flip")).first).to_be_visible()
    finally:
        boss.ask("POST", f"api/jobs/{before['id']}/cancel")
    jobs = ann.ask("GET", "api/jobs", params={"project": project})
    assert [one["state"] for one in jobs if one["by"] == ann.name] == ["cancelled"]


def test_no_flip_is_a_result_and_others_stay_unseen(seat: Seat, somebody: Somebody, boss: Person, project: str) -> None:
    ann, ben = somebody("ann", project), somebody("ben", project)
    boss.settings(project, hide_prediction=True)
    ann.review(project, 5)  # the words come first: until then there are no flips of it
    find(ann, project, places=[5], editable=[0])
    (flip,) = flips_of(ann, project, 5)
    assert not flip["flips"]
    rate(ben, project, flip, 5, 5, 1)
    window = seat(ann)
    page = open_flips(window, project, 5)
    expect(page.get_by_text(re.compile("^The prediction is shown once"))).to_be_visible()
    expect(page.get_by_text("No flip", exact=False)).to_have_count(0)
    window.press("2", "3")  # the first two questions; what the model says is told then
    expect(page.get_by_text("No flip within 5 changes.")).to_be_visible()
    window.press("4", "Enter")
    window.saved()
    assert ratings_of(ann, project) == [(2, 3, 4)]
    expect(page.get_by_text(re.compile("^What others said"))).to_have_count(0)
    page = seat(boss).go(f"/p/{project}/flips/5")
    page.get_by_role("button", name="Show it now").click()
    page.get_by_text("What others said (2)").click()
    expect(page.get_by_text("plausible 5, makes sense 5, agrees 1")).to_be_visible()


def test_flips_are_taken_away_as_a_data_set(seat: Seat, boss: Person, project: str) -> None:
    find(boss, project, places=[0])
    page = seat(boss).go(f"/p/{project}/export")
    for name in ("Model", "Feedback"):
        page.get_by_role("checkbox", name=re.compile(f"^{name}")).uncheck()
    page.get_by_role("checkbox", name=re.compile("^Flips")).check()
    page.get_by_role("button", name="Make the export").click()
    link = page.get_by_role("link", name=re.compile("^Download the export"))
    expect(link).to_have_count(1, timeout=LONG)
    with page.expect_download() as download:
        link.click()
    with zipfile.ZipFile(download.value.path()) as file:
        assert any(name.endswith(".jsonl") for name in file.namelist())
