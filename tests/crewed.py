"""Work that tests spread over crews; in a module of its own, so that other processes can import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unhans.errors import BadData
from unhans.scoring import How


@dataclass(frozen=True)
class Squares:
    """Squares numbers; notes who opened it, and dies of one of them as often as it is told."""

    folder: Path
    dies_of: int | None = None
    times: int = 1
    refuses: int | None = None
    rests_at: int | None = None

    def __call__(self, how: How) -> Callable[[int], int]:
        (self.folder / f"opened by {os.getpid()}").touch()

        def act(number: int) -> int:
            if number == self.dies_of and self._deaths() < self.times:
                (self.folder / f"died {self._deaths()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if number == self.rests_at:
                time.sleep(3600)
            if number == self.refuses:
                raise BadData(f"{number} cannot be squared.")
            return number * number

        return act

    def _deaths(self) -> int:
        return len(list(self.folder.glob("died *")))

    @property
    def openers(self) -> set[int]:
        return {int(path.name.rsplit(" ", 1)[1]) for path in self.folder.glob("opened by *")}
