"""What people do on the screen Label errors: have labels doubted, accept, keep, drop, and take back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from screens import ended
from workbench import Desk, Person

Seat = Callable[..., Desk]
Somebody = Callable[..., Person]
LONG = 300_000  # milliseconds: a job waits for a worker that all tests share


def labels_of(person: Person, project: str) -> list[Any]:
    """What somebody said the labels of examples are, oldest first; "back": taken back."""
    return ["back" if one["retracts"] else one["says"]["label"] for one in person.said(project)]


def test_labels_are_doubted_and_judged_by_keys(seat: Seat, somebody: Somebody, boss: Person, project: str) -> None:
    page = seat(boss).go(f"/p/{project}/label-errors")
    expect(page.get_by_text("Nobody has looked for label errors yet")).to_be_visible()
    for name in ("self influence", "neighbour disagreement", "confident learning", "contradiction"):
        page.get_by_role("checkbox", name=re.compile(f"^{name}")).uncheck()
    page.get_by_role("button", name="Look for label errors").click()
    expect(page.get_by_role("toolbar", name="Judge this label")).to_be_visible(timeout=LONG)
    found = boss.ask("GET", f"api/projects/{project}/doubts")
    assert [name for name, _ in found["items"][0]["doubt"]["signs"]] == ["low_confidence"]

    ann = somebody("ann", project)
    window = seat(ann)
    total, doubtful = found["total"], found["items"][0]
    page = window.go(f"/p/{project}/label-errors/{doubtful['place']}")
    expect(page.get_by_role("heading", name=f"Rank {doubtful['rank']}", exact=True)).to_be_visible()
    window.press("a")
    expect(page.get_by_role("heading", name=f"Rank {doubtful['rank']}", exact=True)).to_have_count(0)
    kept = page.get_by_role("heading", name=re.compile("^Rank")).inner_text()
    window.press("g")
    expect(page.get_by_role("heading", name=kept, exact=True)).to_have_count(0)
    window.press("d")
    window.saved()
    assert labels_of(ann, project)[::2] == [doubtful["doubt"]["suggested"], None]
    expect(page.get_by_text(f"3 of {total} training examples judged by you")).to_be_visible()
    window.press("Backspace")
    expect(page.get_by_text(f"2 of {total} training examples judged by you")).to_be_visible()
    window.saved()
    assert labels_of(ann, project)[-1] == "back"

    page.get_by_label("Not judged by me yet").check()
    expect(page.get_by_text(f"{total - 2} training examples in this list")).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"{total - 2} training examples in this list")).to_be_visible()
    page.get_by_role("button", name="Next ›").click()
    page.wait_for_function("() => /page=2/.test(location.hash)")
    expect(page.get_by_role("heading", name=re.compile("^Rank 2[123]$"))).to_be_visible()
    page.get_by_label("Another label").select_option("positive")
    window.saved()
    assert labels_of(ann, project)[-1] == "positive"


def test_what_waits_to_be_sent_survives_a_reload(seat: Seat, somebody: Somebody, boss: Person, project: str) -> None:
    ended(boss, boss.ask("POST", f"api/projects/{project}/doubts", json={"signs": ["low_confidence"]}))
    ann = somebody("ann", project)
    window = seat(ann)
    window.provokes(r"ERR_(CONNECTION_|FAILED)")
    window.cut_line()
    page = window.go(f"/p/{project}/label-errors")
    window.press("d")
    expect(page.get_by_text(re.compile("^Connection lost. 1 answer is kept"))).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name=re.compile("you: to be left out of the training"))).to_be_visible()
    window.mend_line()
    window.saved()
    assert labels_of(ann, project) == [None]
