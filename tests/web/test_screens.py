"""How every screen stands up to axe, to both themes, to narrow windows and to the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from screens import SCREENS, Stage, make_judged, set_stage, stop_work
from workbench import AXE, NARROW, NARROWEST, WIDE, Desk, Person, Server

Seat = Callable[..., Desk]
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="session")
def stage(server: Server, boss: Person, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A project with judgements of two people."""
    folder = tmp_path_factory.mktemp("stage")
    with set_stage(server, boss, make_judged(folder, examples=60, explained=30), folder / "files", "judged") as stage:
        yield stage


@pytest.fixture
def _no_work_left(stage: Stage) -> Iterator[None]:
    yield
    stop_work(stage)


def person_of(stage: Stage, who: str) -> Person | None:
    return {"boss": stage.boss, "ann": stage.ann, "guest": stage.guest, "nobody": None}[who]


def violations(page: Page) -> list[str]:
    """What axe has to say against the page as it stands."""
    found: list[dict[str, Any]] = page.evaluate(
        "(standards) => axe.run({runOnly: standards, resultTypes: ['violations']}).then((all) => all.violations)",
        STANDARDS,
    )
    return [
        f"{one['id']}: {node['html'][:160]} — {node['failureSummary'][:300]}" for one in found for node in one["nodes"]
    ]


def overflow(page: Page) -> int:
    """How far the page is wider than the window."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.usefixtures("_no_work_left")
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_accessible_in_both_themes_wide_and_narrow(name: str, stage: Stage, seat: Seat) -> None:
    who, way = SCREENS[name]
    desk = seat(
        person_of(stage, who), at=stage.server, bypass_csp=True
    )  # axe itself is a script that the policy forbids
    page = desk.page
    way(desk, stage)
    page.add_script_tag(path=AXE)
    menu = name == "examples-menu"  # closes when the window changes
    found = {}
    for width in (WIDE, NARROW):
        page.set_viewport_size(
            {"width": width, "height": 2400}
        )  # so that no bar at the bottom lies over what is tested
        if menu:
            page.locator("[data-at='1']").click()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.evaluate("() => window.scrollTo(0, 0)")  # and what was scrolled under the bar at the top is not hidden
            page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            found[width, theme] = violations(page)
    assert not any(found.values()), "\n".join(f"{look}: {told}" for look, all_ in found.items() for told in all_)
    for width in (NARROW, NARROWEST):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) <= 0, f"at {width} px"


@pytest.mark.parametrize(
    "name",
    [
        "home",
        "examples",
        "words",
        "flips",
        "neighbours-pair",
        "label-errors",
        "bugs",
        "bugs-lab",
        "fix",
        "before-after",
        "revisions",
        "team",
        "settings",
    ],
)
def test_where_the_focus_is_can_be_seen(name: str, stage: Stage, seat: Seat) -> None:
    who, way = SCREENS[name]
    desk = seat(person_of(stage, who), at=stage.server)
    way(desk, stage)
    seen = set()
    for _ in range(14):
        desk.press("Tab")
        told = desk.page.evaluate(
            """() => {
                const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
                return {
                    what: one.outerHTML.slice(0, 120),
                    ring: parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none',
                    inside: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
                };
            }"""
        )
        if told["what"].startswith("<body"):  # past the end; the next Tab begins anew
            continue
        seen.add(told["what"])
        assert told["ring"], told
        assert told["inside"], told
    assert len(seen) > 10, "Tab goes on"


@pytest.mark.parametrize(
    "name",
    [
        "examples-menu",
        "examples-keys",
        "examples-note",
        "flips-keys",
        "neighbours-keys",
        "bugs-keys",
        "before-after-dialog",
        "tour",
    ],
)
def test_escape_closes_what_is_open_and_focus_returns(name: str, stage: Stage, seat: Seat) -> None:
    who, way = SCREENS[name]
    desk = seat(person_of(stage, who), at=stage.server)
    way(desk, stage)
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    desk.press("Escape")
    expect(dialog).to_have_count(0)


def test_words_are_described_for_those_who_do_not_see_the_colours(stage: Stage, seat: Seat) -> None:
    desk = seat(stage.ann, at=stage.server)
    SCREENS["examples"][1](desk, stage)
    words = desk.page.locator("[data-at]")
    told = words.evaluate_all("(all) => all.map((one) => [one.innerText, one.ariaDescription, one.tabIndex])")
    assert len(told) > 5
    assert all(description for _, description, _ in told)
    assert any("supports ‘" in description for _, description, _ in told)
    assert [index for _, _, index in told].count(0) == 1, "one stop of Tab for all words"
    marked = desk.page.locator("[data-at].lower, [data-at].raise").first
    expect(marked.locator(".mark")).to_have_text(["✕"] if "lower" in (marked.get_attribute("class") or "") else ["+"])
