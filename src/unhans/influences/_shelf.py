"""What a method worked out of the training examples: in memory, or in a folder, for the next process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from unhans.crew import Crew, Here
from unhans.scoring import How

Array = NDArray[np.floating]
Kept = TypeVar("Kept")
_PARTS = 128  # files that rows are spread over, at most: each is held open while it is looked at
_DAMAGED = (BadZipFile, ValueError, EOFError, KeyError)  # what reading a cut-off or overwritten file comes to


class Shelf:
    """Keeps arrays by name. A folder's name says all that they depend on, so what is there fits."""

    def __init__(
        self,
        folder: Path | None,
        send_for: Callable[[], AbstractContextManager[Crew]] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.folder = folder
        # who works out what is missing: they are sent for when something is, as that takes seconds
        self._send_for, self._cancelled = send_for or (lambda: nullcontext(Here())), cancelled
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # where many are kept, those that were used last stay

    def __reduce__(self) -> tuple[type[Shelf], tuple[None]]:
        """In another process it keeps things in memory: the folder and those who work are of this one."""
        return Shelf, (None,)

    def arrays(self, name: str, compute: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
        """What `compute` gives, or what it gave before."""
        path = None if self.folder is None else self.folder / f"{name}.npz"
        if path is not None and (kept := _read(path, _loaded)) is not None:
            return kept
        found = {key: np.asarray(value) for key, value in compute().items()}
        if path is not None:
            _write(path, lambda file: np.savez(file, **found))  # type: ignore[arg-type]
        return found

    def parts(
        self, name: str, n: int, compute: Callable[[int, int], Array], tell: Callable[[int, int], None], at_once: int
    ) -> list[Array]:
        """A row for each of n examples, worked out about `at_once` at a time; after a stop it goes on from the last.

        In a folder they are left on disk, and read from there whenever they are looked at.
        """
        at_once = max(at_once, -(-n // _PARTS))
        bounds = [(start, min(n, start + at_once)) for start in range(0, n, at_once)]
        names = [f"{name}-{start}-{end}.npy" for start, end in bounds]
        found = {number: kept for number, name in enumerate(names) if (kept := self._kept(name)) is not None}
        missing = [number for number in range(len(bounds)) if number not in found]
        done = sum(len(rows) for rows in found.values())
        if missing:
            work, how = _Rows(compute), How(cancelled=self._cancelled)
            with self._send_for() as hands:
                # no name for what they do: a stop must end it here, while they are still there to be let go
                for at, rows in hands.spread(work, [bounds[number] for number in missing], how):
                    found[missing[at]] = self._keep(names[missing[at]], rows)
                    done += len(rows)
                    tell(done, n)
        return [found[number] for number in range(len(bounds))]

    def rows(
        self, name: str, n: int, compute: Callable[[int, int], Array], tell: Callable[[int, int], None], at_once: int
    ) -> Array:
        """The same as one array in memory."""
        return np.concatenate(self.parts(name, n, compute, tell, at_once))

    def _kept(self, name: str) -> Array | None:
        return None if self.folder is None else _read(self.folder / name, _mapped)

    def _keep(self, name: str, rows: Array) -> Array:
        if self.folder is None:
            return rows
        _write(self.folder / name, lambda file: np.save(file, rows))
        return _mapped(self.folder / name)


@dataclass(frozen=True)
class _Rows:
    """Rows from one example to another, as a crew works them out."""

    compute: Callable[[int, int], Array]

    def __call__(self, how: How) -> Callable[[tuple[int, int]], Array]:
        return lambda bounds: self.compute(*bounds)


def _loaded(path: Path) -> dict[str, Array]:
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as stored:  # never unpickles
        return {key: stored[key] for key in stored.files}


def _mapped(path: Path) -> Array:
    """An array that stays on disk; so it does, for who has it, if the file is removed."""
    found: Array = np.lib.format.open_memmap(path, mode="r")  # refuses pickles
    return found


def _read(path: Path, load: Callable[[Path], Kept]) -> Kept | None:
    """What is in a file; None if there is none, or if it is damaged, and then it is removed: it can be made again."""
    try:
        return load(path)
    except FileNotFoundError:
        return None
    except _DAMAGED:
        path.unlink(missing_ok=True)
        return None


def _write(path: Path, save: Callable[[IO[bytes]], None]) -> None:
    """Write a file at once: what is under the name is whole, even if the machine stops."""
    unfinished = path.with_suffix(f".{uuid4().hex}.partial")  # a name of its own for every thread
    try:
        with unfinished.open("wb") as file:
            save(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
