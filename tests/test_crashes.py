"""Processes die at any moment; what was acknowledged is there afterwards, once, and nothing is half done."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from served import PROJECT, Crowd, Server, check_nothing_lost, check_screens, make_workspace
from unhans.records import Records

SEED = int(os.environ.get("UNHANS_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
PEOPLE = 20


@pytest.fixture
def sessions(tmp_path) -> dict[str, str]:
    return make_workspace(tmp_path / "work", PEOPLE)


def opened(tmp_path: Path, database: str | None = None) -> Records:
    return Records.open(tmp_path / "work" / PROJECT, database=database)


def harass(server: Server, crowd: Crowd, rounds: int, chance: random.Random) -> None:
    """Kill the server again and again, each time after it has saved something; sometimes hold it up first."""
    for number in range(rounds):
        before, deadline = crowd.acknowledged(), time.monotonic() + 30
        while crowd.acknowledged() == before:
            assert time.monotonic() < deadline, "nothing can be saved any more"
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.6))
        if number % 10 == 5:
            server.send(signal.SIGSTOP)
            time.sleep(2)
            server.send(signal.SIGCONT)
            time.sleep(chance.uniform(0.0, 0.5))
        server.kill()
        server.start()


@pytest.mark.parametrize("rounds", [int(os.environ.get("R", "20")), pytest.param(200, marks=pytest.mark.slow)])
def test_what_was_saved_survives_kill_9_of_the_server(tmp_path, sessions, rounds):
    print("UNHANS_SEED", SEED)
    with Server(tmp_path / "work") as server:
        with Crowd(sessions, server, SEED) as crowd:
            harass(server, crowd, rounds, random.Random(SEED))
        with opened(tmp_path) as records:
            check_screens(server, sessions, records)
    with opened(tmp_path) as records:
        counted = check_nothing_lost(records, crowd.people)
    print(dict(counted))
    assert counted["ok"] > rounds
    assert counted["fail"]
