"""Kinds of work for the tests of the worker: small, but real."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from unhans.errors import BadModel, Cancelled
from unhans.jobs import Handle
from unhans.processes import born_at


def items(root: Path) -> sqlite3.Connection:
    """What was finished: a row for each item of each job, with the process that did it."""
    connection = sqlite3.connect(root / "items.sqlite", timeout=30, isolation_level=None)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS items (job TEXT, item INTEGER, pid INTEGER, PRIMARY KEY (job, item))"
    )
    return connection


def _sign(handle: Handle) -> None:
    """Let the test know which process this is."""
    part = handle.root / f".{handle.job.id}"
    part.write_text(f"{os.getpid()} {born_at(os.getpid())}")
    part.rename(handle.root / f"{handle.job.id}.pid")


def count(handle: Handle):
    """Items in batches of ten, each batch in a transaction; goes on where a former try stopped."""
    connection, total = items(handle.root), handle.job.options["items"]
    handle.step("counting")
    (begin,) = connection.execute("SELECT count(*) FROM items WHERE job = ?", (handle.job.id,)).fetchone()
    _sign(handle)
    for start in range(begin, total, 10):
        if handle.cancelled():
            raise Cancelled("Asked to.")
        time.sleep(handle.job.options.get("seconds", 0.002))
        connection.execute("BEGIN IMMEDIATE")
        rows = [(handle.job.id, item, os.getpid()) for item in range(start, start + 10)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
        handle.progress(start + 10, total)
    connection.close()
    return {"from": begin, "to": total}


def surroundings(handle: Handle):
    names = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "RUST_BACKTRACE", "OMP_WAIT_POLICY")
    return {
        "environ": {name: os.environ[name] for name in names if name in os.environ},
        "secret": any("a-secret" in part for part in [*os.environ.values(), *sys.argv]),
        "first environ": "a-secret" in Path("/proc/self/environ").read_text(),
        "nice": os.nice(0),
        "leads its session": os.getsid(0) == os.getpid() == os.getpgid(0),
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        "cpu": resource.getrlimit(resource.RLIMIT_CPU)[0],
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "root": str(handle.root),
        "database": handle.database,
    }


def foreseen(handle: Handle):
    raise BadModel(
        f"There is no folder {handle.root}/models/one, nor /srv/secret/place/two. Choose 1/2 of https://a/b/c."
    )


def unforeseen(handle: Handle):
    handle.progress(17, 100)
    raise ZeroDivisionError(f"in {handle.root}\r\n\x1b[31mred")


def odd(handle: Handle):
    return {1, 2}


def panic(handle: Handle):
    """A tokenizer.json whose regular expression needs for ever: the library panics, which is no Exception."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(
        '{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "post_processor": null,'
        '"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}, "pre_tokenizer": null,'
        '"decoder": null, "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}'
    )
    handle.progress(3, 9)
    return tokenizer.encode("a" * 40 + "!").ids


def greedy(handle: Handle):
    """Asks for as much memory as the batch size says. It is not touched: the machine may have less than the limit."""
    size = handle.job.options.get("batch_size", 16)
    return len(bytes(size * handle.job.options["bytes"]))


def killed_if_large(handle: Handle):
    """As the system does to who takes too much."""
    if handle.job.options["batch_size"] > handle.job.options["fits"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return "fits"


def polite(handle: Handle):
    """Tidies up when asked to stop."""
    _sign(handle)
    while not handle.cancelled():
        time.sleep(0.01)
    (handle.root / f"{handle.job.id}.goodbye").touch()
    raise Cancelled("Asked to.")


def stubborn(handle: Handle):
    _sign(handle)
    time.sleep(600)


def frozen(handle: Handle):
    _sign(handle)
    os.kill(os.getpid(), signal.SIGSTOP)


def busy(handle: Handle):
    while True:
        pass


def leaves(handle: Handle):
    os._exit(0)


def stops_by_itself(handle: Handle):
    raise Cancelled("It is enough.")


def litters(handle: Handle):
    """Leaves a process behind."""
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    left.returncode = 0  # nobody waits for it
    return [left.pid, born_at(left.pid)]


HANDLERS = {
    function.__name__: function
    for function in (
        count, surroundings, foreseen, unforeseen, odd, panic, greedy, killed_if_large, polite, stubborn, frozen, busy,
        leaves, stops_by_itself, litters,
    )
}  # fmt: skip
