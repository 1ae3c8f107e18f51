"""A process that adds and publishes two kinds of "models" in turn, until it is killed.

All files of a model carry one number, so a mixture of two shows. With a number as second argument the process kills
itself at that call of the system that makes something last: before it, or (third argument) right after.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path

from unhans.artefacts import Artefacts

LASTING = ("mkdir", "fsync", "rename", "replace")


def die_at(nth: int, after: bool) -> None:
    counter = itertools.count(1)
    for name in LASTING:
        setattr(os, name, _deadly(getattr(os, name), counter, nth, after))


def _deadly(function, counter, nth, after):
    def call(*args, **options):
        now = next(counter) == nth
        if now and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return function(*args, **options)
        finally:
            if now:
                os.kill(os.getpid(), signal.SIGKILL)

    return call


def fill(number: int, folder: Path) -> None:
    (folder / "config.json").write_text(str(number))
    (folder / "parts").mkdir()
    for part in range(3):
        (folder / "parts" / f"{part}.bin").write_bytes(bytes([number]) * 300_000)


def add(artefacts: Artefacts, name: str, number: int) -> None:
    artefacts.add(name, lambda folder: fill(number, folder), {"number": number})


def main() -> None:
    artefacts = Artefacts(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        die_at(int(sys.argv[2]), sys.argv[3] == "after")
        add(artefacts, "new", 2)
        artefacts.publish("new")
        return
    for turn in itertools.count():
        name = f"{os.getpid()}-{turn}"
        add(artefacts, name, 1 + turn % 2)
        artefacts.publish(name)
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
