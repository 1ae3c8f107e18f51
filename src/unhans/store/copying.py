"""A SQLite file copied while others use it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from unhans.errors import ProjectProblem


def copy_sqlite(source: Path, target: Path) -> None:
    """A consistent copy of a SQLite file, through SQLite's own backup."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.close(os.open(part, os.O_CREAT | os.O_RDWR, 0o600))
        with sqlite3.connect(source) as old, sqlite3.connect(part) as new:
            old.backup(new)
        old.close()
        new.close()
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except (OSError, sqlite3.Error) as error:
        raise ProjectProblem(f"{target.name} cannot be written ({error}). The database itself is unchanged.") from error
    finally:
        part.unlink(missing_ok=True)
