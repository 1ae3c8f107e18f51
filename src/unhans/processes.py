"""Which process is which: its number is used again by the system, its number and the time it started are not."""

from __future__ import annotations

import os
from pathlib import Path


def born_at(pid: int) -> float | None:
    """When a process started, in seconds since the machine did; None if there is none, or it is dead already.

    Seconds since the epoch would move whenever somebody sets the clock. Systems without `/proc` answer 0.0: there, a
    process is known by its number only.
    """
    if not Path("/proc/self/stat").exists():
        return 0.0 if _exists(pid) else None
    try:
        # the name of the program stands in brackets and may itself hold brackets and blanks
        facts = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if facts[0] in (b"Z", b"X") else int(facts[19]) / os.sysconf("SC_CLK_TCK")


def alive(pid: int, born: float) -> bool:
    """Whether the process that started then is still there, and not another one under its number."""
    found = born_at(pid)
    return found is not None and abs(found - born) < 0.005


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
