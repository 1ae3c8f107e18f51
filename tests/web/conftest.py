"""What all browser tests share: the built page, Chromium, one server with its worker, people, a project for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from workbench import (
    STATIC,
    Desk,
    Person,
    Server,
    copy_project,
    find_browser,
    launch,
    make_films,
    member,
    open_desk,
    owner,
    serving,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A story is played a second time before it counts as failed. On a busy machine a browser, a server and a worker
    that share two cores can be late in ways that no test foresees; pytest tells which were played twice."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1))


_numbers = itertools.count(1)
Somebody = Callable[..., Person]
Seat = Callable[..., Desk]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium with the page built for it."""
    path = find_browser()
    if path is None:
        told = "No Chromium is installed; `apt-get install chromium` or the like brings one."
        pytest.fail(told) if os.environ.get("UNHANS_NEEDS_BROWSER") == "1" else pytest.skip(told)
    if not (STATIC / "index.html").is_file():
        pytest.fail("The page is not built: `make test` builds it, or `python web/npm.py run build`.")
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def films(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project to copy from."""
    return make_films(tmp_path_factory.mktemp("template") / "films")


@pytest.fixture(scope="session")
def server(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server with its worker for all tests; each test has a project of its own in it."""
    workspace = tmp_path_factory.mktemp("workspace")
    copy_project(films, workspace, "films")
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="session")
def boss(server: Server) -> Iterator[Person]:
    """The local user, an administrator."""
    with owner(server) as person:
        person.ask("PUT", "api/me/preferences", json={"tour_seen": True})
        yield person


@pytest.fixture
def project(server: Server, films: Path) -> str:
    """A project that no other test touches."""
    return copy_project(films, server.folder, f"films-{next(_numbers)}")


@pytest.fixture
def somebody(server: Server, boss: Person) -> Iterator[Somebody]:
    """Makes people: `somebody("ann", project)`, `somebody("max", project, role="manager")`."""
    with ExitStack() as stack:

        def make(name: str, *projects: str, **role: Any) -> Person:
            return stack.enter_context(member(server, boss, f"{name}{next(_numbers)}", projects, **role))

        yield make


@pytest.fixture
def seat(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Seat]:
    """Opens windows, closes them, and lets nothing pass that went wrong in them."""
    desks: list[Desk] = []

    def take(person: Person | None = None, *, at: Server | None = None, address: str = "", **looks: Any) -> Desk:
        here = address or (at or request.getfixturevalue("server")).address
        desks.append(open_desk(browser, here, person, **looks))
        return desks[-1]

    yield take
    troubles = [told for desk in desks for told in desk.troubles()]
    for context in {id(desk.page.context): desk.page.context for desk in desks}.values():
        context.close()
    assert not troubles


@pytest.fixture
def desk(seat: Seat, somebody: Somebody, project: str) -> tuple[Desk, Person, str]:
    """An annotator at a window, in a project: what most stories begin with."""
    person = somebody("ann", project)
    return seat(person), person, project
