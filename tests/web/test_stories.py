"""What people do at the workbench, from the first visit to the last answer, in a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import tiny
from proxies import proxy
from workbench import PASSWORD, PATIENCE, SHORTCUT, Desk, Person, Server, copy_project, member, owner, serving

Seat = Callable[..., Desk]
Somebody = Callable[..., Person]
Ann = tuple[Desk, Person, str]
GONE = r"ERR_(CONNECTION_|EMPTY_RESPONSE|INTERNET_DISCONNECTED|NETWORK_CHANGED|INCOMPLETE_CHUNKED|SOCKET_NOT_CONNECTED)"
REFUSED = r"status of %d"


# -- helpers


def start(desk: Desk, project: str) -> int:
    """Begin to judge; the place that is offered."""
    desk.go(f"/p/{project}/examples")
    return desk.place()


def onward(desk: Desk, *keys: str) -> int:
    """Press keys that lead to another example; the new place, once it can be judged."""
    before = desk.page.url
    desk.press(*keys)
    desk.page.wait_for_function("(before) => location.href !== before", arg=before)
    place = desk.place()
    expect(desk.page.get_by_role("heading", level=1)).to_be_focused()
    return place


def word(page: Page, number: int) -> Any:
    """A word of the text on the screen."""
    return page.locator(f"[data-at='{number}']")


def told(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Answers in short: what they say, or that an earlier one is taken back (as its number in the list)."""
    numbers = {entry["id"]: number for number, entry in enumerate(entries)}
    short: list[tuple[Any, ...]] = []
    for entry in entries:
        says = entry["says"]
        if entry["retracts"]:
            short.append(("back", numbers[entry["retracts"]]))
        elif says["kind"] == "word_vote":
            short.append((says["vote"], says["example"], says["position"], says["word"]))
        else:
            short.append((says["state"], says["example"], says["note"]))
    return short


def words_of(person: Person, project: str, place: int) -> tuple[str, list[str]]:
    """Id and words of an example."""
    view = person.view(project, place)
    return view["example"]["id"], view["attribution"]["words"]


# -- alone


def test_the_printed_link_leads_through_the_tour_to_the_first_example(films: Path, tmp_path: Path, seat: Seat) -> None:
    copy_project(films, tmp_path, "films")
    with serving(tmp_path, "--no-worker") as server:
        desk = seat(at=server)
        page = desk.page
        page.goto(server.link)
        assert "token" not in page.url
        dialog = page.get_by_role("dialog", name="A short tour")
        for step, name in enumerate(
            ["What the model leans on", "Say what should count", "Here or everywhere", "Nothing is lost"], 1
        ):
            expect(dialog.get_by_text(f"Step {step} of 4")).to_be_visible()
            expect(dialog.get_by_role("heading", name=name)).to_be_visible()
            page.keyboard.press("Tab")
            dialog.get_by_role("button", name="Start" if step == 4 else "Next", exact=True).click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
        page.get_by_role("link", name="Start", exact=True).click()
        assert desk.place() == 0
        expect(page.get_by_role("group", name="Words of the text")).to_be_visible()
        page.reload()
        desk.place()
        expect(dialog).to_have_count(0)
        desk.go("/")
        expect(page.get_by_text("0 of 60 yours")).to_be_visible()
        page.context.close()  # before the server goes, which the page would complain about


def test_ten_examples_are_judged_by_keyboard_alone(desk: Ann) -> None:  # noqa: PLR0915
    window, ann, project = desk
    page = window.page
    expected: list[tuple[Any, ...]] = []

    def here() -> tuple[str, list[str]]:
        return words_of(ann, project, window.place())

    start(window, project)
    id_, words = here()  # 1: raise one word, lower the next
    window.press("ArrowRight", "+", "ArrowRight", "-")
    expect(word(page, 0)).to_have_attribute("aria-description", re.compile("marked raise here"))
    expect(word(page, 1)).to_have_attribute("aria-description", re.compile("marked lower here"))
    onward(window, "Enter")
    expected += [("raise", id_, 0, words[0]), ("lower", id_, 1, words[1]), ("done", id_, "")]

    id_, words = here()  # 2: a vote that counts everywhere
    window.press("e", "ArrowRight", "-")
    expect(word(page, 0)).to_have_attribute("aria-description", re.compile("marked lower everywhere"))
    onward(window, "h", "Enter")
    expected += [("lower", None, None, words[0]), ("done", id_, "")]

    id_, _ = here()  # 3 and 4: not for me
    onward(window, "s")
    expected.append(("skipped", id_, ""))
    id_, _ = here()
    onward(window, "f")
    expected.append(("flagged", id_, ""))

    id_, _ = here()  # 5: with a note, in which keys are letters
    window.press("n")
    expect(page.get_by_label("For yourself and the managers")).to_be_focused()
    page.keyboard.type("so - f+s? n0")
    window.press("Tab", "Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    onward(window, "Enter")
    expected.append(("done", id_, "so - f+s? n0"))

    id_, words = here()  # 6: a vote undone
    window.press("ArrowRight", "ArrowRight", "+")
    expect(word(page, 1)).to_have_class(re.compile(r"\braise\b"))
    window.press("Backspace")
    expect(word(page, 1)).not_to_have_class(re.compile(r"\braise\b"))
    onward(window, "Control+Enter")
    expected += [("raise", id_, 1, words[1]), ("back", len(expected)), ("done", id_, "")]

    place = window.place()  # 7: look at the next one, come back
    id_, _ = here()
    assert onward(window, "j") != place
    assert onward(window, "k") == place
    onward(window, "Enter")
    expected.append(("done", id_, ""))

    id_, words = here()  # 8: a vote reset
    window.press("ArrowRight", "-")
    expect(word(page, 0)).to_have_class(re.compile(r"\blower\b"))
    window.press("0")
    expect(word(page, 0)).not_to_have_class(re.compile(r"\blower\b"))
    onward(window, "Control+Enter")
    expected += [("lower", id_, 0, words[0]), ("back", len(expected)), ("done", id_, "")]

    place = window.place()  # 9: too fast; undo opens it again
    id_, _ = here()
    onward(window, "Enter")
    assert onward(window, "Control+z") == place
    expect(page.locator(".status .tag")).to_have_text("not judged")
    onward(window, "Enter")
    expected += [("done", id_, ""), ("back", len(expected)), ("done", id_, "")]

    id_, words = here()  # 10: through the menu of a word
    window.press("ArrowRight", "Enter")
    expect(page.get_by_role("button", name=re.compile("^Raise")).last).to_be_focused()
    window.press("Tab", "Enter")
    expect(word(page, 0)).to_be_focused()
    expect(word(page, 0)).to_have_class(re.compile(r"\blower\b"))
    onward(window, "Enter")
    expected += [("lower", id_, 0, words[0]), ("done", id_, "")]

    window.saved()
    entries = ann.said(project)
    assert told(entries) == expected
    assert all(entry["seconds"] > 0 for entry in entries if not entry["retracts"])
    assert all(entry["text_hash"] for entry in entries if entry["says"].get("example"))
    progress = ann.ask("GET", f"api/projects/{project}")["progress"]
    assert (progress["mine"], progress["skipped"], progress["flagged"]) == (8, 1, 1)


def test_three_words_are_judged_and_one_is_taken_back(desk: Ann) -> None:
    window, ann, project = desk
    page = window.go(f"/p/{project}/words?label=positive")
    rows = page.locator("[data-word]")
    expect(rows.first).to_have_attribute("aria-current", "true")
    words = [rows.nth(n).get_attribute("data-word") for n in range(3)]
    current = page.get_by_role("heading", name=re.compile("^Current word"))
    for number, (asked, key) in enumerate(zip(words, "-+-", strict=True)):
        if number:
            window.press("ArrowDown")
        expect(current).to_have_text(f"Current word {asked}")
        expect(rows.nth(number)).to_have_attribute("aria-current", "true")
        window.press(key)
        expect(rows.nth(number)).to_have_class(re.compile(r"\braise\b" if key == "+" else r"\blower\b"))
    expect(page.get_by_text(re.compile(r"A vote touches \d+ texts?, \d+ predicted right"))).to_be_visible()
    window.saved()
    votes = [("lower", None, None, words[0]), ("raise", None, None, words[1]), ("lower", None, None, words[2])]
    assert told(ann.said(project)) == votes

    window.press("Backspace")
    expect(rows.nth(2)).not_to_have_class(re.compile(r"\blower\b"))
    window.saved()
    assert told(ann.said(project)) == [*votes, ("back", 2)]
    page.reload()
    expect(rows.nth(1)).to_have_class(re.compile(r"\braise\b"))
    expect(rows.nth(2)).not_to_have_class(re.compile(r"\blower\b"))
    assert SHORTCUT in words, "the planted word is among the first suspects"


def test_a_vote_against_votes_on_single_texts_says_so(desk: Ann) -> None:
    window, ann, project = desk
    place = next(
        row["place"]
        for row in ann.ask("GET", f"api/projects/{project}/examples", params={"word": SHORTCUT, "label": "positive"})[
            "items"
        ]
        if row["place"] < 40
    )
    ann.vote(project, SHORTCUT, "raise", place)
    page = window.go(f"/p/{project}/words?label=positive&word={SHORTCUT}")
    page.get_by_role("button", name=re.compile("^Lower")).click()
    expect(page.get_by_text("1 vote on single texts says the opposite")).to_be_visible()


def test_a_reload_keeps_example_filter_view_and_marks(desk: Ann) -> None:
    window, _, project = desk
    page = window.go(f"/p/{project}/examples/?label=positive&word={SHORTCUT}&view=bars")
    window.place()
    onward(window, "j")
    window.press("ArrowRight", "-")
    expect(word(page, 0)).to_have_class(re.compile(r"\blower\b"))
    window.saved()
    address = page.url
    assert "label=positive" in address
    assert "view=bars" in address
    heading = page.get_by_role("heading", level=1).inner_text()
    page.reload()
    window.place()
    assert page.url == address
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    expect(word(page, 0)).to_have_class(re.compile(r"\blower\b"))
    expect(page.get_by_role("button", name="Bars")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".rows .row-link")).not_to_have_count(0)
    expect(page.locator(".rows .row-link", has_not_text="positive")).to_have_count(0)


def test_an_answer_not_sent_before_a_reload_is_sent_after_it(desk: Ann) -> None:
    window, ann, project = desk
    window.provokes(GONE)
    page = window.page
    window.cut_line()
    start(window, project)
    window.press("ArrowRight", "+")
    expect(page.get_by_text("Connection lost. 1 answer is kept on this device and will be sent.")).to_be_visible()
    assert ann.said(project) == []
    window.mend_line()
    page.reload()
    window.place()
    window.saved()
    assert len(ann.said(project)) == 1


def test_double_clicks_and_keys_held_down_are_one_answer(desk: Ann) -> None:
    window, ann, project = desk
    page = window.page
    first = start(window, project)
    page.get_by_role("button", name=re.compile("^Save and next")).dblclick()
    page.wait_for_function("(place) => !location.hash.includes(`examples/${place}`)", arg=first)
    second = window.place()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    window.saved()
    assert len(ann.said(project)) == 1

    for _ in range(6):
        page.keyboard.down("Enter")  # without letting go
    page.wait_for_function("(place) => !location.hash.includes(`examples/${place}`)", arg=second)
    third = window.place()
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    window.saved()
    states = [entry["says"]["example"] for entry in ann.said(project)]
    assert states == [words_of(ann, project, place)[0] for place in (first, second)]
    assert window.place() == third

    word(page, 0).dblclick()  # opens and closes the menu
    page.keyboard.down("+")
    page.keyboard.down("+")
    page.keyboard.up("+")
    window.saved()
    assert [one[0] for one in told(ann.said(project))] == ["done", "done", "raise"]


def test_a_key_of_ones_own_works_and_the_theme_keeps_the_place(desk: Ann) -> None:
    window, ann, project = desk
    page = window.go("/settings")
    page.get_by_role("button", name="Change the key for Raise the word: it should count more").click()
    expect(page.get_by_role("button", name="press a key, Escape to keep")).to_be_focused()
    window.press("x")
    expect(page.get_by_role("row", name=re.compile("Raise the word")).locator("kbd")).to_have_text("X")
    start(window, project)
    onward(window, "j")
    place = window.place()
    window.press("ArrowRight", "+")
    window.press("ArrowRight", "x")
    expect(word(page, 1)).to_have_class(re.compile(r"\braise\b"))
    expect(word(page, 0)).not_to_have_class(re.compile(r"\braise\b"))
    assert ann.ask("GET", "api/me")["preferences"]["keys"] == {"raise": ["x"]}

    theme = page.get_by_role("button", name=re.compile("^Theme"))
    address = page.url
    for chosen in ("light", "dark", "system"):
        theme.click()
        expect(page.locator("html")).to_have_attribute("data-theme", chosen)
        assert (page.url, window.place()) == (address, place)
        expect(word(page, 1)).to_have_class(re.compile(r"\braise\b"))


# -- from a vote to a better model


def test_a_vote_becomes_a_model_that_is_published_and_taken_back(project: str, somebody: Somebody, seat: Seat) -> None:
    max_ = somebody("max", project, role="manager")
    window = seat(max_)
    page = window.go(f"/p/{project}/words?label=positive&word={SHORTCUT}")
    page.get_by_role("button", name=re.compile("^Lower")).click()
    window.saved()

    page.get_by_role("link", name="Fix", exact=True).click()
    expect(page.get_by_text("1 settled question", exact=True)).to_be_visible()
    expect(page.get_by_role("row", name=re.compile(f"{SHORTCUT}.*lower.*everywhere"))).to_be_visible()
    expect(page.get_by_role("radio", name=re.compile("^occlusion regularisation"))).to_be_checked()
    expect(page.get_by_role("checkbox", name=re.compile("^word dropout"))).to_be_checked()
    page.locator("summary", has_text="Training").click()
    page.get_by_label("epochs").fill("4")
    page.get_by_label("learning rate").fill("0.004")
    page.get_by_label("Expectations, one a line").fill("broken <= 60\naccuracy >= 0.1")
    page.get_by_role("button", name="Start the fix").click()
    page.get_by_role("link", name="See before and after").click(timeout=10 * PATIENCE)

    expect(page.get_by_role("heading", name="What got worse")).to_be_visible()
    expect(page.get_by_text("2 of 2 hold")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile(f"^{SHORTCUT} for positive"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^word dropout"))).to_be_visible()
    worse = page.get_by_text("Nothing that was measured fell").count() == 0
    obvious = page.get_by_role("button", name="Keep the current model" if worse else "Publish the new one")
    expect(obvious).to_be_focused()
    page.get_by_role("button", name="Publish the new one").click()
    if worse:
        page.get_by_role("button", name="Publish all the same").click()
    expect(page.get_by_text("r1 is the model in use.")).to_be_visible()
    revisions = max_.ask("GET", f"api/projects/{project}/revisions")
    assert (revisions["current"], revisions["back_to"]) == ("r1", "r0")
    assert revisions["items"][1]["revision"]["id"] == max_.ask("GET", f"api/projects/{project}")["current"]

    page.get_by_role("link", name="Revisions", exact=True).first.click()
    page.get_by_role("button", name="Roll back to r0").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back to r0").click()
    expect(page.get_by_text("Back to r0.")).to_be_visible()
    expect(page.locator("li.current h2")).to_have_text("r0")
    assert max_.ask("GET", f"api/projects/{project}/revisions")["current"] == "r0"

    page.get_by_role("link", name="Export", exact=True).click()
    page.get_by_label("Revision", exact=True).select_option("r1")
    page.get_by_role("button", name="Make the export").click()
    with page.expect_download(timeout=10 * PATIENCE) as download:
        page.get_by_role("link", name=re.compile("^Download")).click(timeout=10 * PATIENCE)
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.testzip() is None
        assert any(name.endswith("model.safetensors") for name in archive.namelist())


def test_a_fix_is_stopped_and_nothing_has_changed(project: str, somebody: Somebody, seat: Seat) -> None:
    max_ = somebody("max", project, role="manager")
    max_.vote(project, SHORTCUT, "lower")
    window = seat(max_)
    page = window.go(f"/p/{project}/fix")
    page.locator("summary", has_text="Training").click()
    page.get_by_label("epochs").fill("10000")
    page.get_by_label("patience").fill("0")
    page.get_by_role("button", name="Start the fix").click()
    expect(page.locator("canvas").first).to_be_visible(timeout=10 * PATIENCE)
    expect(page.get_by_text(re.compile("^Up to step"))).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("The last fix was stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Start the fix")).to_be_enabled()
    assert [one["name"] for one in max_.ask("GET", f"api/projects/{project}/revisions")["items"]] == ["r0"]


def test_annotators_are_not_offered_what_managers_decide(desk: Ann) -> None:
    window, _, project = desk
    window.provokes(REFUSED % 403)
    page = window.go(f"/p/{project}/fix")
    expect(page.get_by_text("Fixing is for managers.")).to_be_visible()
    for name in ("Fix", "Revisions", "Export"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    window.go(f"/p/{project}/revisions")
    expect(page.get_by_role("alert")).to_contain_text("Judging is blind here")


# -- broken lines and sessions


def test_a_killed_server_loses_nothing_and_gets_every_answer_once(films: Path, tmp_path: Path, seat: Seat) -> None:
    copy_project(films, tmp_path, "films")
    with (
        serving(tmp_path, "--no-worker") as server,
        owner(server) as admin,
        member(server, admin, "ann", ["films"]) as ann,
    ):
        desk = seat(ann, at=server)
        desk.provokes(GONE)
        page = desk.page
        first = start(desk, "films")
        desk.press("ArrowRight", "+")
        desk.saved()
        server.kill()
        desk.press("ArrowRight", "-", "Enter")
        expect(page.get_by_text("Connection lost. 2 answers are kept on this device and will be sent.")).to_be_visible()
        expect(page.get_by_text("Not sent — kept on this device")).to_be_visible()
        server.start()
        expect(page.get_by_text("Back online — 2 answers sent")).to_be_visible()
        desk.saved()
        id_, words = words_of(ann, "films", first)
        expected = [("raise", id_, 0, words[0]), ("lower", id_, 1, words[1]), ("done", id_, "")]
        assert told(ann.said("films")) == expected
        page.reload()
        assert desk.place() != first
        page.context.close()


def test_without_a_line_judging_goes_on_and_answers_are_sent_later(desk: Ann) -> None:
    window, ann, project = desk
    window.provokes(GONE)
    page = window.page
    start(window, project)
    page.context.set_offline(True)
    window.press("ArrowRight", "+", "ArrowRight", "-")
    expect(page.get_by_text("Connection lost. 2 answers are kept on this device and will be sent.")).to_be_visible()
    expect(word(page, 0)).to_have_class(re.compile(r"\braise\b"))
    window.press("Backspace")
    expect(word(page, 1)).not_to_have_class(re.compile(r"\blower\b"))
    page.context.set_offline(False)
    expect(page.get_by_text(re.compile("Back online — 3 answers sent"))).to_be_visible()
    window.saved()
    assert [one[0] for one in told(ann.said(project))] == ["raise", "lower", "back"]


def test_who_is_signed_out_in_the_middle_comes_back_to_the_same_place(desk: Ann) -> None:
    window, ann, project = desk
    window.provokes(REFUSED % 401, REFUSED % 403)
    page = window.page
    start(window, project)
    onward(window, "j")
    address = page.url
    ann.ask("POST", "api/logout")
    window.press("ArrowRight", "-")
    expect(page.get_by_text("Please sign in again. Nothing was lost: 1 answer is kept")).to_be_visible()
    page.get_by_label("Name").fill(ann.name)
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    window.place()
    assert page.url == address
    expect(word(page, 0)).to_have_class(re.compile(r"\blower\b"))
    window.saved()
    ann.ask("POST", "api/login", json={"name": ann.name, "password": PASSWORD})
    assert [one[0] for one in told(ann.said(project))] == ["lower"]


def test_two_devices_that_differ_are_asked_which_answer_counts(desk: Ann, seat: Seat) -> None:
    window, ann, project = desk
    other = seat(ann)
    other.provokes(REFUSED % 409)
    page = other.page
    first = start(window, project)
    window.press("ArrowRight")
    for mine, stands in (("Keep", "raise"), ("Use", "lower")):
        other.go(f"/p/{project}/examples/{first}")
        page.reload()
        other.place()
        window.press("0", "+")
        window.saved()
        other.press("ArrowRight", "-")
        dialog = page.get_by_role("dialog", name="Answered elsewhere")
        expect(dialog.get_by_text("You said raise")).to_be_visible()
        dialog.get_by_role("button", name=re.compile(f"^{mine}")).click()
        expect(dialog).to_have_count(0)
        expect(word(page, 0)).to_have_class(re.compile(rf"\b{stands}\b"))
        other.saved()
        opinions = ann.ask("GET", f"api/projects/{project}/examples/{first}")["mine"]
        assert [one["feedback"]["says"]["vote"] for one in opinions] == [stands]


def test_another_tab_shows_what_was_said_in_this_one(desk: Ann, seat: Seat) -> None:
    window, _, project = desk
    first = start(window, project)
    other = seat(context=window.page.context)
    other.go(f"/p/{project}/examples/{first}")
    other.place()
    window.press("ArrowRight", "-")
    expect(word(other.page, 0)).to_have_class(re.compile(r"\blower\b"))
    expect(other.page.get_by_text("Updated in another tab.").first).to_be_visible()


# -- together


def test_two_people_join_by_link_and_are_given_different_examples(
    boss: Person, project: str, films: Path, server: Server, seat: Seat
) -> None:
    chief = seat(boss)
    doubled = copy_project(films, server.folder, f"{project}-twice")
    boss.settings(doubled, overlap=2)
    windows: list[Desk] = []
    link = ""
    for name in (f"bea-{project}", f"cem-{project}"):
        page = chief.go(f"/p/{project}/team")
        page.locator(f"fieldset input[value='{doubled}']").check()
        with page.expect_response("**/api/invites"):
            page.get_by_role("button", name="Make an invitation link").click()
        expect(page.get_by_label("Invitation link")).not_to_have_value(link)
        link = page.get_by_label("Invitation link").input_value()
        guest = seat()
        guest.provokes(REFUSED % 401)
        guest.page.goto(link)
        guest.page.get_by_label("Name").fill(name)
        guest.page.get_by_label("Password", exact=True).fill(PASSWORD)
        guest.page.get_by_label("Password again").fill("something else")
        guest.page.get_by_role("button", name="Join").click()
        expect(guest.page.get_by_text("The two passwords differ.")).to_be_visible()
        guest.page.get_by_label("Password again").fill(PASSWORD)
        guest.page.get_by_role("button", name="Join").click()
        expect(guest.page.get_by_role("heading", name="Home", level=1)).to_be_visible()
        guest.page.get_by_role("dialog").get_by_role("button", name="Skip").click()
        windows.append(guest)
    bea, cem = windows
    places = [start(bea, project), start(cem, project)]
    for _ in range(2):
        places += [onward(bea, "Enter"), onward(cem, "Enter")]
    assert len(set(places)) == len(places), "nobody is given what somebody else has"
    bea.saved()
    cem.saved()
    assert boss.ask("GET", f"api/projects/{project}")["progress"]["anyone"] == 4
    assert start(bea, doubled) == start(cem, doubled), "two shall judge each"
    bea.go("/")
    expect(bea.page.get_by_text("2 of 60 yours")).to_be_visible()


def test_the_team_screen_shows_agreement_and_settles_a_disagreement(
    boss: Person, project: str, somebody: Somebody, seat: Seat
) -> None:
    ann, ben = somebody("ann", project), somebody("ben", project)
    for place in range(6):
        _, words = words_of(ann, project, place)
        said = next(n for n, one in enumerate(words) if words.count(one) == 1)
        ann.vote(project, words[said], "raise" if place % 2 else "lower", place)
        ben.vote(project, words[said], "lower" if place in (0, 1) else "raise" if place % 2 else "lower", place)
        ann.review(project, place, seconds=30)
        ben.review(project, place)
    page = seat(boss).go(f"/p/{project}/team")
    row = page.get_by_role("region", name="Who did what").get_by_role("row", name=re.compile(ann.name))
    expect(row.get_by_role("cell").nth(1)).to_have_text("6")
    expect(row).to_contain_text("30 s")
    alpha = next(
        one for one in boss.ask("GET", f"api/projects/{project}/team")["agreement"] if one["kind"] == "word_vote"
    )
    assert 0 < alpha["alpha"] < 1
    expect(page.get_by_text(f"{alpha['alpha']:.2f}").first).to_be_attached()
    question = page.get_by_role("region", name="Disagreements to settle")
    expect(question.get_by_text("1 question open")).to_be_visible()
    question.get_by_role("button", name="Rule: raise").click()
    expect(question.get_by_text("All are settled.")).to_be_visible()
    assert boss.ask("GET", f"api/projects/{project}/team")["disagreements"][0]["settled"] == "raise"


def test_feedback_goes_out_and_comes_in_again(  # noqa: PLR0917
    boss: Person, project: str, films: Path, server: Server, somebody: Somebody, seat: Seat, tmp_path: Path
) -> None:
    ann = somebody("ann", project)
    ann.vote(project, words_of(ann, project, 0)[1][0], "lower", 0)
    ann.vote(project, SHORTCUT, "lower")
    ann.review(project, 0, note="=1+1")
    page = seat(boss).go(f"/p/{project}/team")
    files = {}
    for name in ("JSON lines", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name, exact=True).click()
        files[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[name])
    entries = [json.loads(line) for line in files["JSON lines"].read_text(encoding="utf-8").splitlines()]
    assert len([one for one in entries if "says" in one]) == 3
    cells = [cell for row in csv.reader(files["CSV"].read_text(encoding="utf-8-sig").splitlines()) for cell in row]
    assert "'=1+1" in cells
    assert "=1+1" not in cells

    other = copy_project(films, server.folder, f"{project}-back")
    page = seat(boss).go(f"/p/{other}/team")
    page.get_by_label("File", exact=True).set_input_files(files["JSON lines"])
    page.get_by_role("button", name="Bring it in").click()
    expect(page.get_by_text("3 answers stored, 0 known already, 0 refused.")).to_be_visible()
    page.get_by_role("button", name="Bring it in").click()
    expect(page.get_by_text("0 answers stored, 3 known already, 0 refused.")).to_be_visible()
    expect(page.get_by_role("region", name="Who did what").get_by_text(ann.name)).to_be_visible()


# -- work for the machine


def test_a_model_and_a_table_become_a_project(boss: Person, seat: Seat, tmp_path: Path) -> None:
    tiny.save_folder(tmp_path / "model")
    model = shutil.make_archive(str(tmp_path / "tiny-model"), "zip", tmp_path / "model")
    table = tmp_path / "few-texts.csv"
    rows = [
        ["comment", "sentiment"],
        *([text, ("bad", "positive")[n % 2]] for n, text in enumerate(tiny.SENTENCES)),
        ["", "bad"],
    ]
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    desk = seat(boss)
    page = desk.go("/new")
    page.locator("input[type=file]").first.set_input_files(model)
    expect(page.get_by_text("✓ arrived")).to_have_count(1)
    page.locator("input[type=file]").set_input_files(table)
    expect(page.get_by_text("✓ arrived")).to_have_count(2)
    expect(page.get_by_role("heading", name="Which label is which")).to_be_visible()
    expect(page.get_by_role("button", name="Create the project")).to_be_disabled()
    page.get_by_label("The data's label bad").select_option(label="negative")
    expect(page.get_by_text("Nothing has been started yet.").last).to_be_visible()
    expect(page.get_by_role("button", name="Create the project")).to_be_enabled()
    expect(page.get_by_role("table").get_by_text(tiny.SENTENCES[0])).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Create the project")).to_be_enabled()
    page.get_by_label("Title of the project").fill("A few texts")
    page.get_by_role("button", name="Create the project").click()
    expect(page.get_by_role("heading", name="The project is ready")).to_be_visible()
    page.get_by_role("link", name="Open the project").click()
    desk.place()
    expect(page.get_by_text("No explanations yet.")).to_be_visible()
    facts = boss.ask("GET", "api/projects/a-few-texts")
    assert (facts["title"], facts["examples"], facts["labels"]) == ("A few texts", 12, ["negative", "positive"])
    desk.go("/p/a-few-texts/problems")
    expect(page.get_by_role("heading", name="Set aside 1 row")).to_be_visible()
    shutil.rmtree(tmp_path / "model")


def test_a_job_is_started_watched_and_stopped(boss: Person, project: str, seat: Seat) -> None:
    page = seat(boss).go(f"/jobs?project={project}")
    page.get_by_role("button", name="New job").click()
    page.get_by_role("radio", name=re.compile("^Explain")).check()
    page.get_by_label("Method").select_option("kernel_shap")
    page.get_by_text(re.compile("^Options of")).click()
    page.get_by_label("num samples").fill("20000")
    page.get_by_label(re.compile("^all ")).check()
    page.get_by_role("button", name="Explain 60 texts").click()
    running = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=re.compile("Explanations")))
    expect(running.get_by_text("running", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("Explanations"))).to_be_visible()
    expect(running.get_by_role("progressbar").first).to_be_visible()
    running.get_by_role("button", name=re.compile("^Stop")).click()
    expect(running.get_by_text("stopped", exact=True)).to_be_visible()
    expect(running.get_by_role("button", name=re.compile("^Try again"))).to_be_visible()
    assert boss.ask("GET", "api/jobs", params={"project": project})[0]["state"] == "cancelled"


def test_a_text_without_an_explanation_is_explained_on_demand(boss: Person, project: str, seat: Seat) -> None:
    desk = seat(boss)
    page = desk.go(f"/p/{project}/examples/50?correct=any")
    page.get_by_role("button", name="Explain this text").click()
    expect(page.get_by_role("group", name="Words of the text")).to_be_visible(timeout=4 * PATIENCE)  # a job, at nice 19


# -- behind a proxy


@pytest.mark.parametrize("strips", [True, False], ids=["stripping", "keeping"])
def test_it_works_behind_a_proxy_that_puts_it_under_a_path(
    strips: bool, films: Path, tmp_path: Path, seat: Seat
) -> None:
    copy_project(films, tmp_path, "films")
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, "--no-worker", "--root-path", "/some/path"))
        front = stack.enter_context(proxy(server.port, "/some/path", strips=strips))
        desk = seat(address=f"{front}/some/path/")
        page = desk.page
        page.goto(f"{desk.address}?{server.link.split('?')[1]}")
        page.get_by_role("dialog").get_by_role("button", name="Skip").click()
        assert page.url.startswith(f"{desk.address}#/")
        page.get_by_role("link", name="Start", exact=True).click()
        desk.place()
        desk.press("ArrowRight", "+", "Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Example 2")
        desk.saved()
        page.reload()
        assert desk.place() == 1
        page.context.close()
