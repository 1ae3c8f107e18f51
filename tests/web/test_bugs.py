"""What people do on the screen Bugs: read findings and go on from them, look at the matrix, give verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bugs_shown import METHODS, WARNED, WARNING, keep_audits, keep_lab, keep_stopped_audit
from screens import judge
from workbench import SHORTCUT, Desk, Person, Server

Seat = Callable[..., Desk]
Somebody = Callable[..., Person]
Ann = tuple[Desk, Person, str]
LONG = 300_000  # milliseconds: a job waits for a worker that all tests share


# -- helpers


def verdicts_of(person: Person, project: str) -> list[Any]:
    """What somebody said of the model, oldest first; "back": taken back."""
    told = ("deploy", "reason", "method", "explanation_first", "note")
    entries = [one for one in person.said(project) if one["retracts"] or one["says"]["kind"] == "verdict"]
    return ["back" if one["retracts"] else tuple(one["says"][name] for name in told) for one in entries]


def open_verdicts(desk: Desk, project: str, query: str = "") -> Page:
    page = desk.go(f"/p/{project}/bugs?show=verdicts{query}")
    expect(page.get_by_role("heading", name="Your verdict")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^Example 1$"))).to_be_visible()
    return page


def choose_none(page: Page, group: str) -> None:
    """Leave out everything that a form lists."""
    for box in page.get_by_role("group", name=group).get_by_role("checkbox", checked=True).all()[::-1]:
        box.uncheck()


# -- audits


def test_findings_are_read_and_lead_on(desk: Ann, server: Server) -> None:
    window, ann, project = desk
    older, _ = keep_audits(server.folder / project, ann.name, SHORTCUT)
    page = window.go(f"/p/{project}/bugs")
    expect(page.get_by_role("status").filter(has_text="3 findings: 1 of high, 1 of medium, 1 of low")).to_be_visible()
    cards = page.get_by_role("article")
    expect(cards).to_have_count(3)
    first = cards.first
    expect(first.get_by_text("high severity")).to_be_visible()
    expect(first.get_by_role("heading")).to_contain_text(SHORTCUT)
    expect(first.get_by_text("0.61 (0.52 to 0.70) · usual 0.04 · 118 texts")).to_be_visible()
    first.locator("summary", has_text="that were changed").click()
    expect(first.locator("del").first).to_contain_text(SHORTCUT)
    expect(first.get_by_text("Words that only work together")).to_be_hidden()
    first.locator("summary", has_text="What this cannot show").click()
    expect(first.get_by_text("Words that only work together")).to_be_visible()
    expect(page.get_by_text("The examples have no column that names a group.")).to_be_visible()

    page.get_by_role("button", name=re.compile("^medium")).click()
    expect(cards).to_have_count(1)
    page.get_by_role("button", name=re.compile("^All")).click()
    expect(cards).to_have_count(3)
    page.get_by_label("Compare with").select_option(older)
    expect(page.get_by_role("heading", name="Gone (1)")).to_be_visible()
    expect(page.get_by_text("12 texts are in the training split")).to_be_visible()
    page.reload()  # the address holds it
    expect(page.get_by_role("heading", name="Still there (2)")).to_be_visible()

    for name in ("Download the report", "Download it as JSON"):
        answer = ann.client.get(page.get_by_role("link", name=name).get_attribute("href") or "")
        assert answer.status_code == 200
        assert SHORTCUT in answer.text
    first.get_by_role("link", name="Go to Words").click()
    page.wait_for_function("(word) => location.hash.includes(`/words?word=${word}`)", arg=SHORTCUT)


def test_a_stopped_audit_says_so_and_only_managers_start_one(
    seat: Seat, somebody: Somebody, boss: Person, server: Server, project: str
) -> None:
    keep_stopped_audit(server.folder / project, boss.name, SHORTCUT)
    page = seat(somebody("ann", project)).go(f"/p/{project}/bugs")
    expect(page.get_by_text("This audit was stopped before all checks had run.")).to_be_visible()
    expect(page.get_by_text("1 finding so far: 1 of high severity. 4 checks have not run yet.")).to_be_visible()
    expect(page.get_by_role("button", name="Audit again")).to_have_count(0)


def test_a_manager_has_the_model_audited_and_findings_come_by_themselves(
    seat: Seat, boss: Person, project: str
) -> None:
    page = seat(boss).go(f"/p/{project}/bugs")
    expect(page.get_by_text("Nobody has audited this model yet")).to_be_visible()
    page.locator("summary", has_text="Choose what is looked at").click()
    choose_none(page, "Checks")
    expect(page.get_by_text("Choose at least one check.")).to_be_visible()
    page.get_by_role("checkbox", name=re.compile("^calibration")).check()
    page.get_by_role("button", name="Audit the model").click()
    expect(page.get_by_role("heading", name="What was found")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("progressbar", name=re.compile("^Audit"))).to_have_count(0, timeout=LONG)
    row = boss.ask("GET", f"api/projects/{project}/audits")[0]
    assert row["complete"]
    expect(page.get_by_role("article")).to_have_count(row["high"] + row["medium"] + row["low"])
    expect(page.get_by_role("button", name="Audit again")).to_be_visible()


# -- the lab


def test_a_cell_of_the_matrix_leads_to_the_examples(desk: Ann, server: Server) -> None:
    window, ann, project = desk
    keep_lab(server.folder / project, ann.name)
    page = window.go(f"/p/{project}/bugs?show=lab")
    seen = page.get_by_role("button", name=re.compile("^leave one out, spurious word: detection 0.98 .* sees it$"))
    seen.focus()
    window.press("ArrowDown", "ArrowUp", "ArrowRight")
    expect(page.get_by_role("button", name=re.compile("^lime, spurious word"))).to_be_focused()
    window.press("Enter")
    expect(page.get_by_role("heading", name="lime on spurious word")).to_be_visible()
    expect(page.get_by_text("A model tested on the word alone says positive. (0.97, without it 0.51)")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^mass on the cue"))).to_be_visible()
    page.get_by_label("Measure", exact=True).select_option("rank correlation")
    expect(
        page.get_by_role("button", name=re.compile("rank correlation 0.98 .* does not see it$")).first
    ).to_be_visible()
    expect(page.get_by_role("columnheader", name=re.compile(f"{WARNING}: .*guided backprop"))).to_be_visible()
    page.get_by_label("Standard errors").check()
    expect(page.get_by_text("± 0.03").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Show the numbers")).click()
    expect(page.get_by_role("columnheader", name="guided backprop ⚠", exact=True)).to_be_visible()
    page.get_by_role("group", name="Methods in the chart").get_by_role("button", name="guided backprop").click()
    expect(page.get_by_role("columnheader", name="guided backprop ⚠", exact=True)).to_have_count(0)
    page.get_by_role("region", name="lime on spurious word").get_by_role("link", name="Example 3").click()
    assert window.place() == 2
    page.get_by_label("Explanation", exact=True).select_option("+")
    option = page.get_by_label("Method", exact=True).locator(f"option[value={WARNED}]")
    expect(option).to_have_text(re.compile(f"⚠ {WARNING}$"))  # the warning is shown where the method is offered


def test_a_manager_runs_the_lab_and_its_matrix_shows_numbers(seat: Seat, boss: Person, project: str) -> None:
    page = seat(boss).go(f"/p/{project}/bugs?show=lab")
    expect(page.get_by_text("The lab has not been run yet")).to_be_visible()
    for usual, group, wanted in (
        ("The usual bugs", "Bugs to plant", "reinitialised"),
        ("The usual explanations", "Explanations to try", "saliency"),
    ):
        page.get_by_label(usual).uncheck()
        choose_none(page, group)
        expect(page.get_by_text(re.compile("^Choose at least one"))).to_be_visible()
        page.get_by_role("group", name=group).get_by_role("checkbox", name=re.compile(f"^{wanted}\\b")).check()
    page.get_by_label("Examples explained for each bug").fill("10")
    page.get_by_role("button", name="Run the lab").click()
    cell = page.get_by_role("button", name=re.compile(r"^saliency, reinitialised: detection [01]\.\d\d "))
    expect(cell).to_be_visible(timeout=LONG)
    found = boss.ask("GET", f"api/projects/{project}/lab")["lab"]["sightings"]
    (value,) = (one["value"] for one in found if one["measure"] == "detection")
    expect(cell).to_contain_text(f"{value:.2f}")
    cell.click()
    expect(page.get_by_role("heading", name="saliency on reinitialised")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^rank correlation"))).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()  # the curve over layers
    expect(page.get_by_role("button", name="Run it again")).to_be_visible()


# -- verdicts


def test_a_verdict_is_given_by_keys_changed_and_taken_back(desk: Ann) -> None:
    window, ann, project = desk
    page = open_verdicts(window, project)
    expect(page.get_by_text(re.compile("% confident")).first).to_be_visible()  # not on heat maps alone
    window.press("Enter")
    expect(page.get_by_text("Say first whether you would deploy it.")).to_be_visible()
    window.press("2")
    expect(page.get_by_role("button", name=re.compile("^2 ?probably not"), pressed=True)).to_be_visible()
    page.get_by_role("radio", name=re.compile("^Other")).check()
    window.press("Enter")
    expect(page.get_by_text("Say in the note which other reason.")).to_be_visible()
    page.get_by_role("textbox", name=re.compile("^Note")).fill("It reads imax.")
    page.reload()  # what is being said is kept on the device
    expect(page.get_by_role("textbox", name=re.compile("^Note"))).to_have_value("It reads imax.")
    page.get_by_role("button", name="Save the verdict").click()
    expect(page.get_by_text("✓ this is your verdict")).to_be_visible()
    window.saved()
    expect(page.get_by_role("row", name=re.compile("^r0 ?leave one out"))).to_be_visible()
    page.get_by_role("heading", name="Your verdict").click()
    page.get_by_role("radio", name=re.compile("^Unexpected focus")).check()
    window.press("1", "Enter")
    window.saved()
    note = "It reads imax."
    assert verdicts_of(ann, project) == [
        (2, "other", METHODS[0], False, note),
        (1, "unexpected_focus", METHODS[0], False, note),
    ]
    page.get_by_label("Explanation shown").select_option("none")
    expect(page.get_by_text("✓ this is your verdict")).to_have_count(0)  # another condition is another question
    page.get_by_label("Explanation shown").select_option(METHODS[0])
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("No verdict yet")).to_be_visible()
    assert verdicts_of(ann, project)[-1] == "back"


def test_blind_reviewers_see_their_own_verdicts_only(
    seat: Seat, somebody: Somebody, boss: Person, project: str
) -> None:
    ann, ben = somebody("ann", project), somebody("ben", project)
    judge(ann, project, 1, "labels_wrong", None)
    judge(ben, project, 5, "labels_right", None)
    page = open_verdicts(seat(ann), project)
    expect(page.get_by_text("these are your own verdicts")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("1 person "))).to_be_visible()
    page = open_verdicts(seat(boss), project)
    expect(page.get_by_role("row", name=re.compile("2 people "))).to_be_visible()


# -- explanation first


def test_where_the_words_come_first_predictions_wait_for_them(
    seat: Seat, somebody: Somebody, boss: Person, project: str
) -> None:
    boss.settings(project, hide_prediction=True)
    ann = somebody("ann", project)
    window = seat(ann)
    page = window.go(f"/p/{project}/bugs")
    expect(page.get_by_text("The words come first here")).to_be_visible()
    page = open_verdicts(window, project)
    expect(page.get_by_text(re.compile("^Explanation first: what the model says of a text is hidden"))).to_be_visible()
    expect(page.get_by_text("% confident")).to_have_count(0)
    page.get_by_role("link", name="Judge its words").first.click()
    assert window.place() == 0
    expect(page.get_by_text("Explanation first: the prediction is shown once you have judged a word.")).to_be_visible()
    expect(page.get_by_text("confident")).to_have_count(0)
    window.press("ArrowRight", "+")
    window.saved()
    expect(page.get_by_text("confident", exact=True)).to_be_visible()
    page = open_verdicts(window, project)
    expect(page.get_by_text("% confident")).to_have_count(1)
    page.get_by_role("radio", name=re.compile("^Expected focus")).check()
    window.press("4", "Enter")
    window.saved()
    assert verdicts_of(ann, project)[-1][:4] == (4, "expected_focus", METHODS[0], True)


@pytest.mark.parametrize("shows", [False, True])
def test_explanation_first_by_ones_own_choice(seat: Seat, boss: Person, project: str, shows: bool) -> None:
    window = seat(boss)
    page = window.go(f"/p/{project}/examples/0?correct=any")
    page.get_by_label("Explanation first").check()
    expect(page.get_by_text("Explanation first: the prediction is shown once you have judged a word.")).to_be_visible()
    expect(page.get_by_text("Scores for the predicted label")).to_be_visible()
    expect(page.get_by_text("confident", exact=True)).to_have_count(0)
    if shows:
        page.get_by_role("button", name="Show it now").click()
    else:
        window.press("ArrowRight", "+")
        window.saved()
    expect(page.get_by_text("confident", exact=True)).to_be_visible()
    page.get_by_label("Explanation first").uncheck()  # it is kept with the person, whom other stories need
