"""Data that would like to be markup, and data that is merely odd: everything is shown as the text it is."""

from __future__ import annotations

import csv
import json
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from screens import ended, judge, mend, rate
from unhans.data import read
from unhans.project import Project
from unhans.records.auditing import asked_key
from unhans.scratch import fresh_classifier
from unhans.text import Words
from unhans.types import (
    Attribution,
    Audit,
    Change,
    CheckRun,
    Evidence,
    Example,
    Finding,
    Lab,
    LayerCurve,
    PlantedBug,
    Prediction,
    Recipe,
    Report,
    Rival,
    Sighting,
    Variant,
    WordEffect,
)
from workbench import Desk, Person, Server, make_project

Seat = Callable[..., Desk]
HIT = "window.hit=1"
PAYLOADS = (
    f"<img src=x onerror={HIT} class=payload>",
    f"<script class=payload>{HIT}</script>",
    f'"><svg onload={HIT} class=payload>',
    f"javascript:{HIT}",
    "{{7*7}} ${7*7}",
    "</script></title><!-- <b class=payload>",
    "unclosed \" ' ` quote",
    "\u2028line\u2029",
    "\x1b]0;x\x07bell",
    "\u202eturned around",
    "\u200b" * 5000 + "hidden",
)
LABELS = ("constructor", "__proto__", f"<img src=x onerror={HIT} class=payload>", "👩‍👩‍👧‍👦", "\u202elabel", "null")


@dataclass(frozen=True)
class Odd:
    """A project of such data."""

    name: str
    boss: Person
    server: Server


@pytest.fixture(scope="module")
def odd(server: Server, boss: Person, tmp_path_factory: pytest.TempPathFactory) -> Odd:
    """Payloads in texts, pairs, labels, groups, splits, ids, title, file name, guidelines, notes, keys, slices."""
    folder = tmp_path_factory.mktemp("odd")
    table = folder / f"<img src=x onerror={HIT} class=payload>.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "pair", "label", "group", "split", "id"])
        for n, payload in enumerate(PAYLOADS):
            rows.writerow(
                [
                    f"good {payload} word",
                    f"second {payload}",
                    LABELS[n % len(LABELS)],
                    payload,
                    payload,
                    f"{n}{payload}",
                ]
            )
        rows.writerow(["", "", LABELS[0], "", "", PAYLOADS[0]])  # set aside
    data = read(table)
    model = fresh_classifier([one.text for one in data], LABELS, layers=1, width=32, max_length=64)
    make_project(server.folder / ".odd", model, data, title=f"{PAYLOADS[0]} {PAYLOADS[2]} {PAYLOADS[5]}")
    (server.folder / ".odd").rename(server.folder / "odd")
    boss.settings(
        "odd",
        guidelines=f"# {PAYLOADS[0]}\n\n{PAYLOADS[1]} [link](javascript:{HIT}) ![i](http://127.0.0.1/x) {PAYLOADS[2]}",
    )
    for place, payload in enumerate(PAYLOADS[:6]):
        boss.review("odd", place, "flagged", note=payload)
    entry = next(one for one in boss.said("odd"))
    forged = entry | {"id": secrets.token_hex(16), "author": PAYLOADS[0]}
    answer = boss.client.post(
        "api/projects/odd/feedback/import?format=jsonl",
        content=json.dumps(forged),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code < 500
    boss.vote("odd", "good", "lower", label=LABELS[2])
    boss.vote("odd", PAYLOADS[0], "raise", label=LABELS[1])
    expected = f"score('<img src=x onerror={HIT} class=payload>') <= 0.5"
    mend(boss, "odd", rivals=["word_dropout"], expectations=[expected])
    ended(boss, boss.ask("POST", "api/projects/odd/exports", json={"revision": "r1"}))
    ended(boss, boss.ask("POST", "api/projects/odd/flips", json={"limit": len(PAYLOADS), "search": {"beam": 2}}))
    for one in boss.ask("GET", "api/projects/odd/flips")["items"]:
        rate(boss, "odd", one, 3, None, 2)
    with Project.open(server.folder / "odd") as project:
        project.keep_report("r0", "r1", forged_report(project.report("r0", "r1"), data))
        audit = forged_audit(project.current.id, data)
        for found in (replace(audit, findings=audit.findings[3:]), audit):
            project.audit_table.begin(found, asked=asked_key(len(found.findings)), by=PAYLOADS[0])
        project.lab_table.keep(forged_lab(project.current.id, data), by=PAYLOADS[0])
    judge(boss, "odd", 2, "other", None, note=PAYLOADS[0])
    return Odd("odd", boss, server)


def forged_report(report: Report, data: Sequence[Example]) -> Report:
    """The report with payloads wherever it has a string, and with every text among the changed ones."""
    bad = replace(report.measures[0], before=0.9, after=0.5, low=-0.5, high=-0.3, better="higher")
    measures = [replace(bad, data=one, slice=part) for one in PAYLOADS[:3] for part in ("", *PAYLOADS)]
    votes = [WordEffect(one, LABELS[2], "lower", None, 0.4, 0.1, 1.0, 0.1, 3) for one in PAYLOADS]
    recipe = Recipe("fixes", PAYLOADS[0], ((PAYLOADS[1], PAYLOADS[2]), ("strength", 1.0)), 0)
    rivals = [Rival(replace(recipe, options=(("strength", n),)), tuple(measures), PAYLOADS[1]) for n in (2.0, 3.0)]
    changes = [_change(example) for example in data]
    return replace(
        report,
        measures=tuple(measures),
        broken=tuple(changes),
        fixed=tuple(changes[::-1]),
        n_broken=len(changes),
        n_fixed=99,
        words=tuple(votes),
        rivals=tuple(rivals),
        notes=PAYLOADS,
        recipe=recipe,
    )


def _change(example: Example) -> Change:
    words = Words(example)
    scores = tuple((-1.0) ** n * n for n in range(len(words.strings)))
    why = Attribution(example.id, LABELS[2], words.strings, words.spans, scores, Recipe("attributions", "lime"), "r")
    said = [Prediction(example.id, LABELS, tuple(np.eye(6)[n].tolist()), "r") for n in (1, 2)]
    return Change(example, PAYLOADS[0], said[0], said[1], why, why)


def forged_audit(revision: str, data: Sequence[Example]) -> Audit:
    """An audit with payloads wherever it has a string: a finding and a check for each of them."""
    ids, evidence = tuple(one.id for one in data), {"value": 0.5, "usual": 0.1, "low": 0.4, "high": 0.6, "n": 20}
    found = [
        Finding(
            Recipe("checks", bad),
            bad,
            "high",
            bad,
            (Evidence(bad, **evidence),),
            ids,
            (bad,),
            bad,
            "words",
            bad,
            revision,
            (Variant(one.id, bad, bad, LABELS[2], LABELS[0], -0.5),),
        )
        for bad, one in zip(PAYLOADS, data, strict=True)
    ]
    runs = [CheckRun(Recipe("checks", bad), bad, "done", bad, 1) for bad in PAYLOADS]
    return Audit(revision, tuple(found), tuple(runs), len(data), 0, PAYLOADS, Recipe("checks", PAYLOADS[0]))


def forged_lab(revision: str, data: Sequence[Example]) -> Lab:
    """The same of a lab: a bug and a method for each payload."""
    bugs = [PlantedBug(bad, "data", Recipe("bugs", bad), bad, bad, 0.9, 0.5) for bad in PAYLOADS]
    seen = [
        Sighting(bug, bad, "attribution", "detection", 0.9, 0.1, 0.5, 9, True) for bug in PAYLOADS for bad in PAYLOADS
    ]
    return Lab(
        bugs=tuple(bugs),
        sightings=tuple(seen),
        curves=tuple(LayerCurve(bad, PAYLOADS, (0.5,) * len(PAYLOADS), (0.1,) * len(PAYLOADS)) for bad in PAYLOADS),
        warnings=tuple((bad, bad) for bad in PAYLOADS),
        examples=tuple((bad, tuple(one.id for one in data)) for bad in PAYLOADS),
        notes=PAYLOADS,
        revision=revision,
    )


def untouched(desk: Desk) -> None:
    """Nothing of the data has become an element, a script or a dialog."""
    page = desk.page
    assert page.evaluate("() => window.hit") is None
    assert page.locator(".payload, img[src=x], b.payload").count() == 0
    assert page.evaluate("() => [...document.scripts].filter((one) => !one.src).length") == 0
    assert (
        page.evaluate(
            "() => [...document.querySelectorAll('a[href]')].filter((a) => a.protocol === 'javascript:').length"
        )
        == 0
    )
    assert not desk.troubles()


@pytest.fixture
def keyed(boss: Person) -> Iterator[None]:
    """Hostile keys and slices of one's own."""
    before = boss.ask("GET", "api/me")["preferences"]
    boss.ask(
        "PUT",
        "api/me/preferences",
        json={
            "tour_seen": True,
            "keys": {"raise": ["<img src=x>"], "__proto__": ["x"]},
            "slices": [{"name": PAYLOADS[0], "query": {"label": PAYLOADS[2]}}],
            "theme": PAYLOADS[0],
        },
    )
    yield
    boss.ask("PUT", "api/me/preferences", json=before)


@pytest.mark.usefixtures("keyed")
def test_nothing_in_the_data_becomes_markup_on_any_screen(odd: Odd, seat: Seat, tmp_path: Path) -> None:
    desk = seat(odd.boss, at=odd.server)
    page = desk.page
    base = f"/p/{odd.name}"
    for place in range(len(PAYLOADS)):
        desk.go(f"{base}/examples/{place}?correct=any")
        desk.place()
        untouched(desk)
        if place < 7:
            expect(page.locator(".given").first).to_contain_text(
                PAYLOADS[place].replace("\x1b", "␛").replace("\x07", "␇")
            )
    page.locator("[data-at='1']").click()
    page.get_by_role("button", name="Guidelines").click()
    page.locator("summary", has_text="Filter").first.click()
    page.locator("summary", has_text="Saved slices").click()
    desk.press("Escape")
    untouched(desk)
    for place in (
        f"{base}/examples?contains={PAYLOADS[0]}&correct=any",
        f"{base}/words?label={LABELS[2]}&search={PAYLOADS[0]}",
        "/",
        "/jobs",
        "/settings",
        f"{base}/team",
        f"{base}/problems",
        f"{base}/settings",
        f"{base}/words?label=constructor",
        f"{base}/words?label=__proto__",
        f"{base}/fix",
        f"{base}/revisions",
        f"{base}/export",
    ):
        desk.go(place)
        untouched(desk)
    desk.go(f"{base}/fix")
    expect(page.get_by_role("row", name=re.compile(f"^good.*{re.escape(LABELS[2])}"))).to_be_visible()
    desk.go(f"{base}/compare/r0/r1")
    expect(page.get_by_text(f"score('<img src=x onerror={HIT} class=payload>') <= 0.5").last).to_be_visible()
    for name in ("^Show .* parts of", "^Show 6 more", "^Show all", "^Show the numbers"):
        page.get_by_role("button", name=re.compile(name)).first.click()
    expect(page.locator(".sides li").nth(10)).to_contain_text("second")
    untouched(desk)
    desk.go(f"{base}/problems")
    expect(page.get_by_role("cell", name=f"<img src=x onerror={HIT} class=payload>.csv").first).to_be_visible()
    desk.go("/new")
    wrong = tmp_path / f"<img src=x onerror={HIT} class=payload>.txt"
    wrong.write_text("x")
    page.locator("input[type=file]").first.set_input_files(wrong)
    expect(page.get_by_text("<img src=x onerror").first).to_be_visible()
    untouched(desk)


def test_nothing_in_a_rewritten_text_becomes_markup(odd: Odd, seat: Seat) -> None:
    desk = seat(odd.boss, at=odd.server)
    page = desk.page
    for place in range(len(PAYLOADS)):
        desk.go(f"/p/{odd.name}/flips/{place}")
        expect(page.get_by_role("toolbar", name="Rate this flip")).to_be_visible()
        for choice in ("All of the text", "All words"):
            if page.get_by_role("button", name=choice).is_visible():
                page.get_by_role("button", name=choice).click()
        untouched(desk)
    desk.go(f"/p/{odd.name}/flips?show=all")
    expect(page.locator("canvas").first).to_be_visible()
    expect(page.get_by_role("heading", name="By group")).to_be_visible()
    page.get_by_role("button", name="Show the table").click()
    expect(page.get_by_role("row", name=re.compile("__proto__|constructor|null|label")).first).to_be_visible()
    untouched(desk)


def test_nothing_in_an_audit_a_lab_or_a_verdict_becomes_markup(odd: Odd, seat: Seat) -> None:
    desk = seat(odd.boss, at=odd.server)
    page = desk.go(f"/p/{odd.name}/bugs")
    cards = page.get_by_role("article")
    expect(cards).to_have_count(len(PAYLOADS))
    for n in range(len(PAYLOADS)):
        for told in ("was changed", "cannot show"):
            cards.nth(n).locator("summary", has_text=told).click()
    expect(cards.first.locator(".changed").first).to_contain_text(PAYLOADS[0])
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.get_by_role("heading", name="New (3)")).to_be_visible()
    untouched(desk)
    report = odd.boss.client.get(page.get_by_role("link", name="Download the report").get_attribute("href") or "")
    assert "<img src=x" not in report.text
    desk.go(f"/p/{odd.name}/bugs?show=lab")
    page.locator("[data-cell='0-0']").click()
    expect(page.get_by_role("region", name=re.compile(" on ")).first).to_contain_text(PAYLOADS[0])
    page.get_by_role("button", name=re.compile("^Show the numbers")).click()
    untouched(desk)
    desk.go(f"/p/{odd.name}/bugs?show=verdicts&method=none")
    expect(page.get_by_role("heading", name="What people say, by what they were shown")).to_be_visible()
    expect(page.get_by_role("textbox", name=re.compile("^Note"))).to_have_value(PAYLOADS[0])
    untouched(desk)


def test_odd_labels_can_be_voted_about(odd: Odd, seat: Seat) -> None:
    desk = seat(odd.boss, at=odd.server)
    for place in range(len(LABELS)):
        desk.go(f"/p/{odd.name}/examples/{place}?correct=any")
        desk.place()
        desk.press("ArrowRight", "+")
        expect(desk.page.locator("[data-at='0']")).to_have_class(re.compile(r"\braise\b"))
        desk.saved()
    votes = [one["says"] for one in odd.boss.said(odd.name) if one["says"].get("position") is not None]
    assert [one["label"] for one in votes] == list(LABELS)


def test_a_word_that_turns_its_text_around_turns_only_itself(odd: Odd, seat: Seat) -> None:
    desk = seat(odd.boss, at=odd.server)
    desk.go(f"/p/{odd.name}/examples/{PAYLOADS.index(chr(0x202E) + 'turned around')}?correct=any")
    desk.place()
    places = (
        desk.page.locator("p.text")
        .first.locator("[data-at]")
        .evaluate_all("(all) => all.map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().left])")
    )
    assert len(places) >= 4
    assert places == sorted(places), "words stand in the order in which they are read"


@pytest.fixture(scope="module")
def strange(server: Server, boss: Person) -> Odd:
    """One word, Arabic, Chinese, emoji, ten thousand words; five hundred labels."""
    labels = [f"label {n}" for n in range(500)]
    texts = [
        "good",
        "مرحبا بالعالم الجميل اليوم",
        "这部电影非常好看",
        "😀 love 👨‍👩‍👧 it",
        "word " * 9_999 + "end",
        "a plain text about nothing",
    ]
    examples = [Example(str(n), text, label=labels[n * 90]) for n, text in enumerate(texts)]
    examples += [Example(label, f"a text of {label}", label=label) for label in labels[1:31]]
    model = fresh_classifier(texts, labels, layers=1, width=32, max_length=64)
    make_project(server.folder / ".strange", model, examples, explained=len(texts), title="Strange")
    (server.folder / ".strange").rename(server.folder / "strange")
    return Odd("strange", boss, server)


def at(odd: Odd, seat: Seat, place: int) -> Desk:
    desk = seat(odd.boss, at=odd.server)
    desk.go(f"/p/{odd.name}/examples/{place}?correct=any")
    desk.place()
    return desk


def test_one_word_has_nothing_to_be_compared_with(strange: Odd, seat: Seat) -> None:
    page = at(strange, seat, 0).page
    expect(page.get_by_text("Only one word: nothing to compare.")).to_be_visible()
    expect(page.locator("[data-at]")).to_have_count(1)


def test_arrows_follow_the_direction_of_the_text(strange: Odd, seat: Seat) -> None:
    desk = at(strange, seat, 1)
    expect(desk.page.locator("p.text").first).to_have_attribute("dir", "rtl")
    lefts = desk.page.locator("[data-at]").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().left)")
    assert lefts == sorted(lefts, reverse=True)
    desk.press("ArrowLeft", "ArrowLeft")
    expect(desk.page.locator("[data-at='1']")).to_be_focused()


def test_chinese_and_emoji_are_cut_where_words_end(strange: Odd, seat: Seat) -> None:
    desk = at(strange, seat, 3)
    texts = desk.page.locator("[data-at] bdi").all_inner_texts()
    assert "love" in texts
    assert "😀" in texts
    assert "👨‍👩‍👧" in texts
    desk.go("/p/strange/examples/2?correct=any")
    desk.place()
    expect(desk.page.locator("[data-at]").first).to_be_visible()
    assert "".join(desk.page.locator("[data-at] bdi").all_inner_texts()) == "这部电影非常好看"


def test_ten_thousand_words_can_still_be_judged(strange: Odd, seat: Seat) -> None:
    desk = at(strange, seat, 4)
    page = desk.page
    expect(page.get_by_text(re.compile(r"The model read the first \d+ words\."))).to_be_visible()
    desk.press("ArrowRight", "ArrowRight", "-")
    expect(page.locator("[data-at='1']")).to_have_class(re.compile(r"\blower\b"))
    assert page.locator("[data-at]").count() < 100, "what was not read cannot be marked"
    desk.saved()


def test_five_hundred_labels_are_searched_not_listed(strange: Odd, seat: Seat) -> None:
    desk = at(strange, seat, 5)
    page = desk.page
    page.get_by_text("all labels").click()
    expect(page.get_by_text("The 6 most probable of 500.")).to_be_visible()
    page.locator("summary", has_text="Filter").first.click()
    given = page.get_by_role("combobox", name="Given label")
    given.fill("label 90")
    given.press("Enter")
    expect(page.locator(".rows .row-link")).to_have_count(1)
    desk.go("/p/strange/problems")
    page.get_by_label("Search all").fill("label 27")
    expect(page.get_by_text("label 27", exact=True)).to_be_visible()


def test_the_address_leads_nowhere_else_after_signing_in(server: Server, seat: Seat) -> None:
    desk = seat(at=server)
    desk.provokes("status of 401")
    for bad in ("//evil.example", "/\\evil.example", "https:evil.example", f"javascript:{HIT}"):
        desk.go(f"/login?next={bad}")
        untouched(desk)
        assert desk.page.url.startswith(server.address)
