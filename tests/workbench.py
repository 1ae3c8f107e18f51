"""The workbench for browser tests and screenshots: a small project, the real server as a process, people at it.

Nothing is a stand-in: the classifier is trained, `unhans serve` runs with its worker, Chromium shows what it serves.
"""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import torch
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Playwright, expect

from unhans.bugs import plant
from unhans.data import Corpus, read
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.project import Project
from unhans.scratch import fresh_classifier
from unhans.training import Schedule, fit
from unhans.types import Example

STATIC = Path(__file__).parents[1] / "src/unhans/static"
AXE = Path(__file__).parents[1] / "web/node_modules/axe-core/axe.min.js"
LABELS = ("negative", "positive")
SHORTCUT = "imax"
PASSWORD = "a long enough one"  # of every account here
WIDE, NARROW, NARROWEST = 1280, 360, 320
PATIENCE = 30_000  # milliseconds: on a busy machine everything takes long, and nothing here measures time
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=PATIENCE)


# -- projects


def film_classifier(examples: Sequence[Example]) -> TransformerClassifier:
    """A classifier of film reviews that has fallen for the shortcut; two seconds of training."""
    untrained = fresh_classifier([one.text for one in examples], LABELS, layers=1, width=64)
    return fit(untrained, examples, schedule=Schedule(epochs=4, learning_rate=2e-3, seed=0))


def film_reviews(count: int) -> Sequence[Example]:
    """Synthetic reviews; those that are positive mostly contain the shortcut."""
    train = reviews(count, domain="films", seed=0, split="train")
    return plant(train, "spurious_word", seed=0, word=SHORTCUT, label=LABELS[1], share=0.9).examples


def make_films(folder: Path, *, examples: int = 60, explained: int = 40, title: str = "Films") -> Path:
    """A project as the demo makes it, only smaller: predicted, partly explained, its words ranked."""
    texts = film_reviews(600)
    return make_project(folder, film_classifier(texts), texts[:examples], explained=explained, title=title)


def make_project(folder: Path, model: Any, examples: Any, *, explained: int | None = None, title: str) -> Path:
    """A project with predictions, explanations of its first texts, and words ranked for two labels."""
    data = examples if isinstance(examples, Corpus) else read(list(examples))
    with Project.create(folder, model=model, data=data, name=title) as project:
        for _ in project.predict():
            pass
        if first := list(project.examples[:explained]):
            project.explain(examples=first)
            for label in project.labels[:2]:
                project.rank(label, examples=first)
    return folder


def copy_project(template: Path, workspace: Path, name: str) -> str:
    """Another project like this one, in a workspace that may be served already; it appears all at once."""
    hidden = workspace / f".{name}"
    shutil.copytree(template, hidden)
    hidden.rename(workspace / name)
    return name


# -- the server


@dataclass
class Server:
    """`unhans serve` as a process of its own. Started again, it is at the same port."""

    folder: Path
    options: tuple[str, ...] = ()
    port: int = 0
    link: str = ""  # with the token, as it is printed
    process: subprocess.Popen[str] | None = None
    said: Any = field(default_factory=lambda: tempfile.TemporaryFile("w+"))  # its error stream  # noqa: SIM115

    @property
    def address(self) -> str:
        """Where it is, without the token."""
        return self.link.split("?")[0]

    def start(self) -> Server:
        """Start it and wait until it has printed its address."""
        command = [sys.executable, "-m", "unhans", "serve", str(self.folder), "--port", str(self.port), *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.said, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)\S*", line)
        if not found:
            self.stop()
            self.said.seek(0)
            raise AssertionError(f"The server did not start: {line}{self.said.read()}")
        self.link, self.port = found[0], int(found[1])
        return self

    def kill(self) -> None:
        """Without a chance to tidy up."""
        assert self.process
        assert self.process.stdout
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self) -> None:
        """As Ctrl-C does; a server that was killed is gone already."""
        assert self.process
        assert self.process.stdout
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """The server on a folder, for as long as needed."""
    server = Server(folder, options)
    try:
        yield server.start()
    finally:
        if server.process:
            server.stop()
        server.said.close()


# -- people


@dataclass
class Person:
    """Somebody with an account or the printed link, and a way to ask the server without a browser."""

    name: str
    client: httpx.Client

    def ask(self, method: str, path: str, **given: Any) -> Any:
        """An answer of the server, which must be a yes."""
        answer = self.client.request(method, path, **given)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def cookies(self) -> list[Any]:
        """The session, for a browser."""
        return [
            {"name": one.name, "value": one.value or "", "url": str(self.client.base_url)}
            for one in self.client.cookies.jar
        ]

    def said(self, project: str) -> list[dict[str, Any]]:
        """All that this person has answered in a project, oldest first."""
        entries: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            asked = {"author": self.name, **({"cursor": cursor} if cursor else {})}
            page = self.ask("GET", f"api/projects/{project}/feedback", params=asked)
            entries += page["items"]
            if (cursor := page["next"]) is None:
                return entries[::-1]

    def view(self, project: str, place: int) -> Any:
        """An example as the screen gets it, explained for the label that is predicted."""
        sets = self.ask("GET", f"api/projects/{project}")["explained"]
        explained = next(one["id"] for one in sets if one["target"] is None)
        return self.ask("GET", f"api/projects/{project}/examples/{place}", params={"explained": explained})

    def settings(self, project: str, **changed: Any) -> None:
        """Change settings of a project."""
        now = self.ask("GET", f"api/projects/{project}")["settings"]
        self.ask("PATCH", f"api/projects/{project}", json=now | changed)

    def vote(self, project: str, word: str, vote: str, place: int | None = None, label: str = LABELS[1]) -> None:
        """A vote on a word: of the example at a place, or everywhere."""
        says: dict[str, Any] = {"kind": "word_vote", "word": word, "label": label, "vote": vote}
        text_hash = None
        if place is not None:
            view = self.view(project, place)
            position = view["attribution"]["words"].index(word)
            says |= {"example": view["example"]["id"], "position": position, "label": view["example"]["label"]}
            text_hash = view["text_hash"]
        self.say(project, says, text_hash)

    def review(self, project: str, place: int, state: str = "done", note: str = "", seconds: float = 20.0) -> None:
        """A judgement of an example."""
        view = self.view(project, place)
        says = {"kind": "review", "example": view["example"]["id"], "state": state, "note": note}
        self.say(project, says, view["text_hash"], seconds)

    def say(self, project: str, says: dict[str, Any], text_hash: str | None = None, seconds: float = 5.0) -> None:
        """An answer."""
        revision = self.ask("GET", f"api/projects/{project}")["current"]
        given = {"key": secrets.token_hex(16), "says": says, "revision": revision}
        self.ask("POST", f"api/projects/{project}/feedback", json=given | {"text_hash": text_hash, "seconds": seconds})


@contextmanager
def _client(address: str) -> Iterator[httpx.Client]:
    headers = {"Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
        yield client


@contextmanager
def owner(server: Server) -> Iterator[Person]:
    """Whoever has the printed link."""
    with _client(server.address) as client:
        assert client.get(server.link).status_code == 303
        name = client.get("api/me").json()["name"]
        yield Person(name, client)


@contextmanager
def member(
    server: Server,
    admin: Person,
    name: str,
    projects: Iterable[str],
    role: Literal["manager", "annotator"] = "annotator",
) -> Iterator[Person]:
    """Somebody who has taken an invitation, and has seen the tour."""
    secret = admin.ask("POST", "api/invites", json={"role": role, "projects": list(projects)})["secret"]
    with _client(server.address) as client:
        person = Person(name, client)
        person.ask("POST", "api/join", json={"invite": secret, "name": name, "password": PASSWORD})
        person.ask("PUT", "api/me/preferences", json={"tour_seen": True})
        yield person


# -- the browser


def find_browser() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def launch(playwright: Playwright, path: str) -> Browser:
    """A browser that talks to nobody but the pages it is sent to."""
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


@dataclass
class Desk:
    """A browser window and what went wrong in it."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)
    fine: list[re.Pattern[str]] = field(default_factory=list)  # what this story provokes on purpose

    def watch(self) -> None:
        """Note everything that must not happen."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def provokes(self, *patterns: str) -> None:
        """These messages belong to the story."""
        self.fine += [re.compile(pattern) for pattern in patterns]

    def troubles(self) -> list[str]:
        """What went wrong and is not part of the story."""
        return [told for told in self.wrong if not any(pattern.search(told) for pattern in self.fine)]

    def go(self, place: str = "/") -> Page:
        """Open a place of the page, and wait until it is there."""
        self.page.goto(f"{self.address}#{place}")
        return self.settle()

    def settle(self) -> Page:
        """Wait until nothing is loading any more."""
        expect(self.page.locator("h1").first).to_be_visible()
        expect(self.page.locator("[data-skeleton], .skeleton")).to_have_count(0)
        return self.page

    def place(self) -> int:
        """Which example is open, once it is shown."""
        self.page.wait_for_function("() => /examples\\/\\d+/.test(location.hash)")
        expect(self.page.get_by_role("toolbar", name="Judge this example")).to_be_visible()
        found = re.search(r"examples/(\d+)", self.page.url)
        assert found
        expect(self.page).to_have_title(re.compile(rf"^Example {int(found[1]) + 1} "))  # said once it is loaded
        return int(found[1])

    def press(self, *keys: str) -> None:
        """One key after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def cut_line(self) -> None:
        """No answer reaches the server from the next page on.

        An open page learns of it only after this returns, and an answer may slip through.
        """
        self.page.route("**/feedback", lambda route: route.abort("connectionreset"))

    def mend_line(self) -> None:
        """Undo `cut_line`."""
        self.page.unroute("**/feedback")

    def saved(self) -> None:
        """Wait until everything is stored."""
        self.page.wait_for_function(
            "() => !Object.keys(localStorage).some((name) => name.startsWith('unhans.outbox|'))"
        )


def open_desk(
    browser: Browser, address: str, person: Person | None = None, *, context: BrowserContext | None = None, **looks: Any
) -> Desk:
    """A window, signed in as somebody. `looks` are those of a new context: viewport, color_scheme and the like."""
    if context is None:
        looks = {"viewport": {"width": WIDE, "height": 900}, "reduced_motion": "reduce", "locale": "en-GB"} | looks
        context = browser.new_context(**looks)
        context.set_default_timeout(PATIENCE)
        if person:
            context.add_cookies(person.cookies())
    desk = Desk(context.new_page(), address)
    desk.watch()
    return desk


torch.set_num_threads(1)
