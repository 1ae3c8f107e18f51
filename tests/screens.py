"""Every screen and its main states, and how to get there: for the checks of how they look, and for the pictures."""

from __future__ import annotations

import csv
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from bugs_shown import METHODS, keep_audits, keep_lab
from unhans.data import read
from unhans.types import Example
from workbench import SHORTCUT, Desk, Person, Server, film_classifier, film_reviews, make_project, member

EXPECTED = ["accuracy >= 0.5", "score('imax') <= 0", "broken <= 3"]  # the second cannot hold
PATIENCE_FOR_WORK = 300  # seconds: the machine may be busy
TITLE = "Film reviews with a planted shortcut"
GUIDELINES = """## What to mark

Mark the words that *should* decide, and those that should not:

- **raise** what praises or blames the film
- **lower** names, places and technical words such as `imax`

Skip texts you cannot judge."""


@dataclass(frozen=True)
class Stage:
    """A server with a project that two people have judged, and somebody without a project."""

    server: Server
    boss: Person
    ann: Person
    guest: Person  # of no project
    project: str
    bare: str  # a project without explanations
    folder: Path  # for files to send


def make_judged(folder: Path, *, examples: int, explained: int) -> tuple[Path, Path]:
    """Two project folders to copy from: one with explanations and doubtful data, one with neither."""
    texts = film_reviews(max(600, 2 * examples))
    model = film_classifier(texts)
    table = folder / "reviews.csv"
    rows: list[Sequence[str | None]] = [
        (one.text, one.label, "test" if n % 3 == 2 else "train", one.group) for n, one in enumerate(texts[:examples])
    ]
    odd = [
        *rows[: examples // 20],
        (rows[0][0], "negative", "test", "films"),
        (rows[1][0], rows[1][1], "test", "films"),
        ("", "positive", "train", "films"),
        (" ", "negative", "train", "films"),
        ("go\u200bod film, see the [MASK]", "positive", "test", "films"),
    ]
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "split", "group"), *rows, *odd])
    judged = make_project(folder / "judged", model, read(table), explained=explained, title=TITLE)
    few = [
        Example("a", "A wonderful film.", label="positive"),
        Example("b", "A dull film. The music is fine, for all it matters. See another one!", label="negative"),
    ]
    bare = make_project(folder / "bare", model, few, explained=0, title="Not explained yet")
    return judged, bare


@contextmanager
def set_stage(server: Server, boss: Person, templates: tuple[Path, Path], folder: Path, name: str) -> Iterator[Stage]:
    """Put the projects into the workspace and let two people judge."""
    for template, project in zip(templates, (name, f"{name}-bare"), strict=True):
        shutil.copytree(template, server.folder / f".{project}")
        (server.folder / f".{project}").rename(server.folder / project)
    with ExitStack() as stack:
        ann = stack.enter_context(member(server, boss, f"ann-{name}", [name]))
        ben = stack.enter_context(member(server, boss, f"ben-{name}", [name]))
        guest = stack.enter_context(member(server, boss, f"guest-{name}", []))
        boss.settings(name, guidelines=GUIDELINES, overlap=2)
        for place in range(12):
            words = ann.view(name, place)["attribution"]["words"]
            alone = [one for one in words if words.count(one) == 1 and one.isalpha()]
            for n, one in enumerate(alone[:3]):
                usual = "lower" if one == SHORTCUT or n % 2 else "raise"
                ann.vote(name, one, usual, place)
                ben.vote(name, one, "raise" if place in (3, 7) else usual, place)
            state = "flagged" if place == 5 else "skipped" if place == 8 else "done"
            ann.review(name, place, state, note="sarcasm?" if place == 5 else "", seconds=25 + 7 * place)
            ben.review(name, place, seconds=90 - 5 * place)
        ann.vote(name, SHORTCUT, "lower")
        boss.vote(name, SHORTCUT, "lower")
        mend(boss, name, rivals=["word_dropout"], strengths=[3.0], seeds=2, expectations=EXPECTED)
        ended(boss, boss.ask("POST", f"api/projects/{name}/exports", json={"revision": "r1"}))
        rewrite(boss, name, [ann, ben])
        trace(boss, name, [ann, ben])
        audit(boss, name, server.folder / name, [ann, ben])
        yield Stage(server, boss, ann, guest, name, f"{name}-bare", folder)


# -- work that a screen is about

REWRITTEN = 10  # examples
HARD = 5  # where no flip is found if only the first words may be changed


def rewrite(boss: Person, project: str, people: Sequence[Person]) -> None:
    """Have some examples rewritten, one without success, and let people rate most of what was found."""
    ended(boss, boss.ask("POST", f"api/projects/{project}/flips", json={"limit": REWRITTEN}))
    found = boss.ask("GET", f"api/projects/{project}/flips", params={"limit": 100})["items"]
    for shift, person in enumerate(people):
        for n, one in enumerate(found[2:]):  # the first two wait
            rate(person, project, one, 1 + n % 4, None if n == 3 else 2 + (n + shift) % 3, 5 - (n + shift) % 4)
    only = {"places": [HARD], "editable": [1, 2]}
    ended(boss, boss.ask("POST", f"api/projects/{project}/flips", json=only))


TRACED = [2, 5, 8, 11]  # test cases


def trace(boss: Person, project: str, people: Sequence[Person]) -> None:
    """Have some test cases traced, let people rate pairs, make copies of what they rated, and doubt all labels."""
    asked = {"places": TRACED, "top": 4}
    ended(boss, boss.ask("POST", f"api/projects/{project}/anchors", json=asked))
    for shift, person in enumerate(people):
        for n, place in enumerate(TRACED[1:]):  # the first one waits
            anchor = person.ask("GET", f"api/projects/{project}/anchors/{place}")
            for one in anchor["helpful"][: 4 - n]:
                compare(person, project, anchor, one, 1 + (place + shift + one["rank"]) % 5)
    few = {"method": "word_dropout", "copies_per_point": 1}
    ended(boss, boss.ask("POST", f"api/projects/{project}/copies", json=few))
    ended(boss, boss.ask("POST", f"api/projects/{project}/doubts", json={"signs": ["low_confidence", "contradiction"]}))
    for person in people:
        for one in person.ask("GET", f"api/projects/{project}/doubts")["items"][1:4]:
            relabel(person, project, one, None if one["rank"] == 3 else one["doubt"]["suggested"])


def audit(boss: Person, project: str, folder: Path, people: Sequence[Person]) -> None:
    """Audits and a lab as they are stored, and what people would do with the model."""
    keep_audits(folder, boss.name, SHORTCUT)
    keep_lab(folder, boss.name)
    for n, person in enumerate((boss, *people)):
        judge(person, project, 2 + n, ("unexpected_focus", "labels_right", "expected_focus")[n % 3], METHODS[0])
        judge(person, project, 4 - n, "labels_wrong", None)


def judge(person: Person, project: str, deploy: int, reason: str, method: str | None, **more: Any) -> None:
    """Say whether one would deploy the model in use, and why."""
    model = person.ask("GET", f"api/projects/{project}")["current"]
    says = {"kind": "verdict", "model": model, "deploy": deploy, "reason": reason, "method": method}
    person.say(project, says | {"explanation_first": False, "note": ""} | more, seconds=30)


def compare(person: Person, project: str, anchor: Any, neighbour: Any, similar: int) -> None:
    """Say how similar a test case and a training example are."""
    ends = {"anchor": anchor["example"]["id"], "train": neighbour["example"]["id"]}
    person.say(project, {"kind": "neighbour_rating", "similar": similar} | ends, neighbour["text_hash"], seconds=8)


def relabel(person: Person, project: str, view: Any, label: str | None) -> None:
    """Say what the right label of a training example is; None: none fits."""
    person.say(project, {"kind": "relabel", "example": view["example"]["id"], "label": label}, view["text_hash"])


def rate(person: Person, project: str, flip: Any, *ratings: int | None) -> None:
    """Answer the three questions about a rewritten text."""
    says = dict(zip(("plausible", "meaningful", "agrees"), ratings, strict=True))
    given = {"kind": "flip_rating", "counterfactual": flip["id"], "label": None} | says
    person.say(project, given, flip["text_hash"], seconds=12)


def mend(boss: Person, project: str, fix: str = "explanation_regularisation", epochs: int = 4, **asked: Any) -> Any:
    """Have a project fixed, and wait for it."""
    return ended(boss, begin(boss, project, fix, epochs, **asked))


def begin(boss: Person, project: str, fix: str, epochs: int, **asked: Any) -> Any:
    """Ask for a fix that trains for so many epochs; small models from scratch need a high rate of learning."""
    training = {"epochs": epochs, "learning_rate": 4e-3, "patience": 0}
    return boss.ask("POST", f"api/projects/{project}/fixes", json={"fix": fix, "training": training, **asked})


def ended(boss: Person, job: Any) -> Any:
    """A job once it has ended, which must be well."""
    until = time.monotonic() + PATIENCE_FOR_WORK
    while job["state"] in ("queued", "running"):
        assert time.monotonic() < until, job
        time.sleep(0.1)
        job = boss.ask("GET", f"api/jobs/{job['id']}")
    assert job["state"] == "done", job
    return job


def stop_work(stage: Stage) -> None:
    """Stop what a screen has begun: nobody else should wait for it."""
    for job in stage.boss.ask("GET", "api/jobs", params={"project": stage.project}):
        if job["state"] in ("queued", "running"):
            stage.boss.ask("POST", f"api/jobs/{job['id']}/cancel")


# -- the screens

Way = Callable[[Desk, Stage], None]
SCREENS: dict[str, tuple[str, Way]] = {}  # name → who looks, how to get there


def _screen(name: str, who: str = "boss") -> Callable[[Way], Way]:
    def keep(way: Way) -> Way:
        SCREENS[name] = (who, way)
        return way

    return keep


def _settings(stage: Stage) -> Any:
    return stage.boss.ask("GET", f"api/projects/{stage.project}")["settings"]


def _example(desk: Desk, stage: Stage, place: int = 0, query: str = "correct=any") -> None:
    desk.go(f"/p/{stage.project}/examples/{place}?{query}")
    desk.place()
    expect(desk.page.get_by_role("group", name="Words of the text")).to_be_visible()


@_screen("home")
def _(desk: Desk, stage: Stage) -> None:
    desk.go("/")


@_screen("home-empty", "guest")
def _(desk: Desk, stage: Stage) -> None:
    desk.go("/")
    expect(desk.page.get_by_text("No project is open to you yet.")).to_be_visible()


@_screen("examples", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage)


@_screen("examples-bars", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage, query="correct=any&view=bars")


@_screen("examples-menu", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage, 13)
    desk.page.locator("[data-at='1']").click()
    desk.page.get_by_role("button", name=re.compile("^Everywhere")).last.click()
    expect(desk.page.get_by_text(re.compile("^Touches")).first).to_be_visible()


@_screen("examples-filter")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage)
    list_button = desk.page.get_by_role("button", name=re.compile("^List and filters"))
    if list_button.is_visible():
        list_button.click()
    for name in ("Filter", "More filters", "Saved slices"):
        desk.page.locator("summary", has_text=name).first.click()


@_screen("examples-guidelines-and-others")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage, 3)
    desk.page.get_by_role("button", name="Guidelines").click()
    desk.page.get_by_text(re.compile("^What others said")).click()
    desk.page.get_by_text("all labels").click()


@_screen("examples-note", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage, 5)
    desk.page.get_by_role("button", name=re.compile("^Note")).click()


@_screen("examples-keys", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage)
    desk.press("?")
    expect(desk.page.get_by_role("dialog")).to_be_visible()


@_screen("examples-methods")
def _(desk: Desk, stage: Stage) -> None:
    _example(desk, stage)
    desk.page.get_by_label("Explanation", exact=True).select_option("+")
    expect(desk.page.get_by_label("Scores speak for")).to_be_visible()


@_screen("examples-no-explanations")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/examples/0?correct=any")
    expect(desk.page.get_by_text("No explanations yet.")).to_be_visible()


@_screen("examples-none-fit")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/examples?contains=nobody+says+this")
    expect(desk.page.get_by_text("Nothing left to judge here")).to_be_visible()


@_screen("examples-missing")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 404")
    desk.go(f"/p/{stage.project}/examples/99999")
    expect(desk.page.get_by_role("alert").first).to_be_visible()


@_screen("project-missing")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 404")
    desk.go("/p/there-is-none/words")
    expect(desk.page.get_by_role("heading", name="This project cannot be shown")).to_be_visible()


@_screen("words", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/words?label=positive&word={SHORTCUT}")
    expect(desk.page.get_by_role("heading", name=re.compile("^Current word"))).to_be_visible()
    expect(desk.page.locator("canvas").first).to_be_visible()


@_screen("words-none-fit")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/words?label=positive&search=nobodysaysthis")
    expect(desk.page.get_by_text("No word fits the search.")).to_be_attached()


@_screen("words-no-ranking")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/words")
    expect(desk.page.get_by_text(re.compile("^No explanations yet|^No words have been ranked")).first).to_be_visible()


def _flip(desk: Desk, stage: Stage, place: int, query: str = "") -> None:
    desk.go(f"/p/{stage.project}/flips/{place}{query}")
    expect(desk.page.get_by_role("toolbar", name="Rate this flip")).to_be_visible()
    expect(desk.page.get_by_role("button", name=re.compile("^Find a flip"))).to_be_visible()


@_screen("flips", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _flip(desk, stage, 2)


@_screen("flips-empty", "boss")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/flips/1")
    expect(desk.page.get_by_text("No flip of this text yet")).to_be_visible()


@_screen("flips-no-flip", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _flip(desk, stage, HARD)
    expect(desk.page.get_by_text("No flip within 5 changes.")).to_be_visible()


@_screen("flips-rating", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _flip(desk, stage, 0)
    desk.press("4", "x", "Enter")
    expect(desk.page.get_by_text("not answered yet")).to_be_visible()


@_screen("flips-list-and-options")
def _(desk: Desk, stage: Stage) -> None:
    _flip(desk, stage, HARD)
    desk.press("ArrowDown")
    desk.page.get_by_role("button", name=re.compile("^Show all .* sentences")).click()
    desk.page.get_by_role("button", name=re.compile("^Other examples")).click()
    for name in ("Filter", "Options", "What others said"):
        desk.page.locator("summary", has_text=name).first.click()


@_screen("flips-hidden", "ann")
def _(desk: Desk, stage: Stage) -> None:
    stage.boss.settings(stage.project, hide_prediction=True, hide_texts=True)
    _flip(desk, stage, 1)
    expect(desk.page.get_by_role("button", name="Show the text")).to_be_visible()
    stage.boss.settings(stage.project, hide_prediction=False, hide_texts=False)


@_screen("flips-waiting")
def _(desk: Desk, stage: Stage) -> None:
    begin(stage.boss, stage.project, "explanation_regularisation", 10_000)
    stage.boss.ask("POST", f"api/projects/{stage.project}/flips", json={"places": [3], "editable": [1]})
    desk.go(f"/p/{stage.project}/flips/3")
    expect(desk.page.get_by_role("button", name="Stop looking for flips")).to_be_visible()


@_screen("flips-keys", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _flip(desk, stage, 2)
    desk.press("?")
    expect(desk.page.get_by_role("dialog")).to_be_visible()


@_screen("flips-all")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/flips?show=all")
    expect(desk.page.locator("canvas").first).to_be_visible()
    expect(desk.page.get_by_role("heading", name="By person")).to_be_visible()


@_screen("flips-all-table", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/flips?show=all")
    desk.page.get_by_role("button", name="Show the table").click()


@_screen("flips-all-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/flips?show=all")
    expect(desk.page.get_by_text("No text has been rewritten yet")).to_be_visible()


def _pair(desk: Desk, stage: Stage, place: int, query: str = "") -> None:
    desk.go(f"/p/{stage.project}/neighbours/{place}{query}")
    expect(desk.page.get_by_role("toolbar", name="Rate this pair")).to_be_visible()
    # the first that has not been judged: on another screen its label may have been
    expect(desk.page.get_by_role("heading", name=re.compile(r"^Training example \d+ of"))).to_be_visible()


@_screen("neighbours")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/neighbours")
    expect(desk.page.get_by_text(re.compile("^You have rated"))).to_be_visible()
    desk.page.get_by_role("button", name="Choose which to trace").click()
    desk.page.get_by_label("With a pattern").check()
    desk.page.locator("summary", has_text="Options of").first.click()


@_screen("neighbours-all-copies")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/neighbours")
    desk.page.locator("summary", has_text="Read the copies").click()
    expect(desk.page.get_by_role("button", name="Edit this copy").first).to_be_visible()
    desk.page.locator("summary", has_text="How they are made").click()


@_screen("neighbours-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/neighbours")
    expect(desk.page.get_by_text(re.compile("^No test case has been traced|^Nothing can be traced"))).to_be_visible()


@_screen("neighbours-untraced", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 404")
    desk.go(f"/p/{stage.project}/neighbours/14")
    expect(desk.page.get_by_role("button", name="Trace it")).to_be_visible()


@_screen("neighbours-pair", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _pair(desk, stage, TRACED[0])


@_screen("neighbours-copies")
def _(desk: Desk, stage: Stage) -> None:
    anchor = stage.boss.ask("GET", f"api/projects/{stage.project}/anchors/{TRACED[1]}")
    _pair(desk, stage, TRACED[1], f"?train={anchor['helpful'][0]['place']}")
    desk.page.get_by_role("button", name="Preview the copies").click()
    desk.page.locator("summary", has_text="What others said").click()
    expect(desk.page.get_by_role("button", name="Edit this copy").first).to_be_visible()
    desk.page.get_by_role("button", name="Edit this copy").first.click()
    expect(desk.page.get_by_label("Text of the copy").first).to_be_visible()


@_screen("neighbours-harmful", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _pair(desk, stage, TRACED[1], "?side=harmful")
    expect(desk.page.get_by_text("Is the label of this training example right?")).to_be_visible()


@_screen("neighbours-hidden", "ann")
def _(desk: Desk, stage: Stage) -> None:
    stage.boss.settings(stage.project, hide_prediction=True, hide_texts=True)
    _pair(desk, stage, TRACED[0])
    expect(desk.page.get_by_role("button", name="Show the texts")).to_be_visible()
    stage.boss.settings(stage.project, hide_prediction=False, hide_texts=False)


@_screen("neighbours-waiting")
def _(desk: Desk, stage: Stage) -> None:
    begin(stage.boss, stage.project, "explanation_regularisation", 10_000)
    stage.boss.ask("POST", f"api/projects/{stage.project}/anchors", json={"places": [14]})
    stage.boss.ask("POST", f"api/projects/{stage.project}/copies", json={"method": "word_dropout"})
    desk.go(f"/p/{stage.project}/neighbours")
    expect(desk.page.get_by_role("button", name="Stop tracing")).to_be_visible()
    expect(desk.page.get_by_role("button", name="Stop making copies")).to_be_visible()


@_screen("neighbours-keys", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _pair(desk, stage, TRACED[0])
    desk.press("?")
    expect(desk.page.get_by_role("dialog")).to_be_visible()


@_screen("label-errors", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/label-errors")
    expect(desk.page.get_by_role("toolbar", name="Judge this label")).to_be_visible()


@_screen("label-errors-signs")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/label-errors")
    desk.page.get_by_role("button", name="Look again").click()
    desk.page.get_by_role("link", name=re.compile("you: to be left out")).or_(
        desk.page.locator("a", has_text="negative")
    ).first.click()
    expect(desk.page.get_by_role("button", name="Look for label errors")).to_be_visible()


@_screen("label-errors-hidden", "ann")
def _(desk: Desk, stage: Stage) -> None:
    stage.boss.settings(stage.project, hide_prediction=True, hide_texts=True)
    desk.go(f"/p/{stage.project}/label-errors")
    waits = desk.page.get_by_text("What the model says is shown once you have judged it.")
    expect(waits.or_(desk.page.get_by_role("button", name="Show what the model says"))).to_be_visible()
    stage.boss.settings(stage.project, hide_prediction=False, hide_texts=False)


@_screen("label-errors-none-fit", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/label-errors?label=nobody")
    expect(desk.page.get_by_role("button", name="Show all")).to_be_visible()


@_screen("label-errors-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/label-errors")
    expect(desk.page.get_by_text("Nobody has looked for label errors yet")).to_be_visible()


def _bugs(desk: Desk, stage: Stage, query: str = "", heading: str = "What was found") -> None:
    desk.go(f"/p/{stage.project}/bugs{query}")
    expect(desk.page.get_by_role("heading", name=heading)).to_be_visible()


@_screen("bugs", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage)
    desk.page.locator("summary", has_text="that were changed").first.click()
    expect(desk.page.locator("del").first).to_be_visible()
    desk.page.locator("summary", has_text="What this cannot show").first.click()


@_screen("bugs-compared")
def _(desk: Desk, stage: Stage) -> None:
    newer, older = (one["id"] for one in stage.boss.ask("GET", f"api/projects/{stage.project}/audits")[:2])
    _bugs(desk, stage, f"?audit={newer}&against={older}")
    expect(desk.page.get_by_role("heading", name=re.compile("Still there"))).to_be_visible()


@_screen("bugs-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/bugs")
    expect(desk.page.get_by_text(re.compile("^Nobody has audited this|^Nothing can be audited"))).to_be_visible()


@_screen("bugs-again")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage)
    desk.page.get_by_role("button", name="Audit again").click()
    desk.page.locator("summary", has_text="Choose what is looked at").click()
    expect(desk.page.get_by_role("button", name="Audit it again")).to_be_visible()


@_screen("bugs-waiting")
def _(desk: Desk, stage: Stage) -> None:
    begin(stage.boss, stage.project, "explanation_regularisation", 10_000)
    stage.boss.ask("POST", f"api/projects/{stage.project}/audits", json={"checks": ["calibration"]})
    _bugs(desk, stage)
    expect(desk.page.get_by_role("button", name="Stop the audit")).to_be_visible()


@_screen("bugs-lab-again")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage, "?show=lab", "Which explanation sees which bug")
    desk.page.get_by_role("button", name="Run it again").click()
    desk.page.get_by_label("The usual bugs").uncheck()
    desk.page.get_by_label("The usual explanations").uncheck()
    expect(desk.page.get_by_role("button", name="Run the lab again")).to_be_visible()


@_screen("bugs-lab", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage, f"?show=lab&bug=spurious_word&method={METHODS[0]}", "Which explanation sees which bug")
    expect(desk.page.get_by_role("heading", name=re.compile("on spurious word$"))).to_be_visible()
    expect(desk.page.locator("canvas").first).to_be_visible()


@_screen("bugs-lab-errors")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage, "?show=lab&measure=rank+correlation", "Which explanation sees which bug")
    desk.page.get_by_label("Standard errors").check()
    desk.page.get_by_role("button", name=re.compile("^Show the numbers")).click()


@_screen("bugs-lab-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/bugs?show=lab")
    expect(desk.page.get_by_text(re.compile("^The lab has not been run|^No bug can be planted"))).to_be_visible()


@_screen("bugs-verdicts", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage, "?show=verdicts", "What people say, by what they were shown")
    expect(desk.page.get_by_text("✓ this is your verdict")).to_be_visible()


@_screen("bugs-verdicts-results")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage, "?show=verdicts&method=none", "What people say, by what they were shown")
    expect(desk.page.get_by_role("region", name="Verdicts by condition")).to_be_visible()


@_screen("bugs-words-first", "ann")
def _(desk: Desk, stage: Stage) -> None:
    stage.boss.settings(stage.project, hide_prediction=True)
    desk.go(f"/p/{stage.project}/bugs?show=verdicts")
    expect(desk.page.get_by_text(re.compile("^Explanation first: what the model says"))).to_be_visible()
    stage.boss.settings(stage.project, hide_prediction=False)


@_screen("bugs-keys", "ann")
def _(desk: Desk, stage: Stage) -> None:
    _bugs(desk, stage)
    desk.press("?")
    expect(desk.page.get_by_role("dialog")).to_be_visible()


@_screen("fix")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/fix")
    desk.page.locator("summary", has_text="Training").click()
    desk.page.get_by_label(re.compile("^Strengths to try")).fill("much")
    expect(desk.page.get_by_text("“much” is not a strength")).to_be_visible()


@_screen("fix-nothing-yet")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/fix")
    expect(desk.page.get_by_text("Nothing to learn from yet.")).to_be_visible()


@_screen("fix-running")
def _(desk: Desk, stage: Stage) -> None:
    begin(stage.boss, stage.project, "explanation_regularisation", 10_000)
    desk.go(f"/p/{stage.project}/fix")
    expect(desk.page.get_by_role("heading", name="Training")).to_be_visible()
    expect(desk.page.locator("canvas").first).to_be_visible()


@_screen("before-after")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/compare/r0/r1")
    expect(desk.page.get_by_role("heading", name="What got worse")).to_be_visible()
    expect(desk.page.locator("canvas").first).to_be_visible()
    folded = desk.page.get_by_role("button", name=re.compile("^Show .* (parts? of|made from)"))
    while folded.count():
        folded.first.click()


@_screen("before-after-dialog")
def _(desk: Desk, stage: Stage) -> None:
    stage.boss.ask("PATCH", f"api/projects/{stage.project}", json=_settings(stage) | {"hide_texts": True})
    desk.go(f"/p/{stage.project}/compare/r0/r1")
    desk.page.get_by_role("button", name="Publish the new one").click()
    expect(desk.page.get_by_role("dialog", name="Publish r1 all the same?")).to_be_visible()
    stage.boss.ask("PATCH", f"api/projects/{stage.project}", json=_settings(stage) | {"hide_texts": False})


@_screen("before-after-not-compared")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 404")
    desk.go(f"/p/{stage.project}/compare/r1/r0")
    desk.page.locator("summary", has_text="Expectations").click()


@_screen("revisions")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/revisions")
    for name in ("r0", "r1"):
        desk.page.get_by_role("checkbox", name=f"Choose {name} to compare").check()


@_screen("revisions-one")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/revisions")


@_screen("export")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/export")
    expect(desk.page.get_by_role("link", name=re.compile("^Download"))).to_be_visible()


@_screen("export-none-yet")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/export")
    expect(desk.page.get_by_text("No exports yet")).to_be_visible()


@_screen("team")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/team")
    expect(desk.page.locator("canvas").first).to_be_visible()
    desk.page.get_by_role("button", name="Make an invitation link").click()
    expect(desk.page.get_by_label("Invitation link")).to_be_visible()


@_screen("team-empty")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/team")
    expect(desk.page.get_by_text("Nobody has judged anything yet").first).to_be_visible()


@_screen("problems")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/problems")
    expect(desk.page.get_by_role("heading", name=re.compile("^Set aside"))).to_be_visible()


@_screen("problems-none")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.bare}/problems")
    expect(desk.page.get_by_text("Nothing doubtful was found")).to_be_visible()


@_screen("project-settings")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/p/{stage.project}/settings")


@_screen("settings", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go("/settings")


@_screen("tour", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.go("/settings")
    desk.page.get_by_role("button", name="Take the tour").click()
    desk.page.get_by_role("dialog").get_by_role("button", name="Next").click()


@_screen("jobs-new")
def _(desk: Desk, stage: Stage) -> None:
    desk.go(f"/jobs?project={stage.project}&start")
    desk.page.get_by_text(re.compile("^Options of")).click()


@_screen("jobs")
def _(desk: Desk, stage: Stage) -> None:
    given = {"kind": "predict"}
    if not stage.boss.ask("GET", "api/jobs", params={"project": stage.bare}):
        stage.boss.ask("POST", f"api/projects/{stage.bare}/jobs", json=given)
    desk.go("/jobs")
    expect(desk.page.locator("details > summary").first).to_be_visible()
    desk.page.locator("details > summary").first.click()
    desk.page.get_by_role("tab", name="Technical").first.click()


@_screen("new-project")
def _(desk: Desk, stage: Stage) -> None:
    desk.go("/new")
    stage.folder.mkdir(exist_ok=True)
    wrong = stage.folder / "notes.txt"
    wrong.write_text("no model")
    if desk.page.get_by_text("✓ arrived").count() == 0:
        desk.page.locator("input[type=file]").first.set_input_files(wrong)
        expect(desk.page.get_by_role("alert").first).to_be_visible()


@_screen("login", "nobody")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 401", "status of 403")
    desk.go("/login")
    desk.page.get_by_label("Name").fill("ann")
    desk.page.get_by_label("Password").fill("wrong password")
    desk.page.get_by_role("button", name="Sign in").click()
    expect(desk.page.get_by_role("alert")).to_be_visible()


@_screen("join", "nobody")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("status of 401")
    desk.go("/join/none")
    desk.page.get_by_role("button", name="Join").click()
    expect(desk.page.get_by_text("At least 10 characters.")).to_be_visible()


@_screen("line-lost", "ann")
def _(desk: Desk, stage: Stage) -> None:
    desk.provokes("ERR_")
    desk.cut_line()
    _example(desk, stage, 14)
    desk.press("ArrowRight", "+")
    expect(desk.page.get_by_text(re.compile("^Connection lost"))).to_be_visible()
