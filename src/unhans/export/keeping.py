"""How an export comes to be: in a new folder, whole or not at all, under a manifest of sizes and hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unhans.artefacts import Artefacts
from unhans.export.card import versions


@dataclass(frozen=True, slots=True)
class Exported:
    """Something to take away, complete and checked."""

    folder: Path
    files: tuple[str, ...]  # relative to the folder
    size: int  # bytes
    checked: str  # what was checked, in a sentence
    parts: tuple[str, ...] = ()


def keep(
    folder: str | Path, write: Callable[[Path], str], *, parts: Sequence[str], revision: str, needs: int = 0
) -> Exported:
    """Have a new folder filled, and say in its manifest what it is; `write` says what was checked."""
    target = Path(folder).expanduser().absolute()
    facts: dict[str, Any] = {"parts": list(parts), "revision": revision, "versions": versions()}

    def fill(partial: Path) -> None:
        facts["checked"] = write(partial)
        partial.chmod(0o755)  # an export is for others, too

    Artefacts(target.parent).add(target.name, fill, facts, needs=needs)
    files = tuple(sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()))
    size = sum((target / name).stat().st_size for name in files)
    return Exported(target, files, size, facts["checked"], tuple(parts))
