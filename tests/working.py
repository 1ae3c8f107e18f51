"""A real worker beside a served workspace, and waiting for what it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from served import Site
from unhans.jobs import Job
from unhans.supervising import WorkerSettings

PATHS = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


@contextmanager
def worker(folder: Path, database: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The program that does the jobs of a workspace."""
    settings = WorkerSettings(str(folder), database, lease_seconds=5.0, poll_seconds=0.02, server=os.getpid())
    process = subprocess.Popen(
        [sys.executable, "-m", "unhans.worker"],
        stdin=subprocess.PIPE,
        env=os.environ | PATHS | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdin
    process.stdin.write(json.dumps(asdict(settings)).encode())
    process.stdin.close()
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def until(condition: Callable[[], object]) -> None:
    """Wait for it; on a busy machine everything takes long."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def ended(site: Site, id_: str) -> Job:
    """The job, once it is over."""
    until(lambda: site.workspace.jobs.get(id_).finished)
    return site.workspace.jobs.get(id_)
