"""Versions of something that takes many files (a model, an export), of which one is current.

A version is written into a hidden folder, brought to disk, described in a manifest with the hash of every file, and
only then given its name. Which one is current stands in one small file that is replaced in one step. Whoever dies at
whatever moment, the current version is whole, and it is either the former or the new one.

    models/
    ├── current                 {"current": "r1", "published": [{"name": "r0", "manifest": …}, …], "trail": ["r0"]}
    ├── r0/  manifest.json  …   complete
    ├── r1/  manifest.json  …   complete
    └── .partial-r2-…/          being written, or left by a process that died: `clean` removes it
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unhans.errors import BadOption, Conflict, NoSpace, NotFound, ProjectProblem
from unhans.processes import alive, born_at

_FORMAT = 1
_POINTER, _MANIFEST = "current", "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HIDDEN = re.compile(r"\.(?:partial|pointer)-.*-(\d+)-(\d+\.\d+)-[0-9a-f]{8}")
_TRAIL = 100  # versions that can be gone back to, one by one
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SAID_FULL = re.compile(r"no space left|os error (?:28|122)\b|disk quota", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Version:
    """A complete version: every file its manifest names is there, in the size it names."""

    name: str
    number: int | None  # of its first publication, from 1; None: never published
    folder: Path
    facts: dict[str, Any]
    size: int  # bytes
    at: str  # when it was written
    files: int = 0


class Artefacts:
    """A folder of versions. Several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, write: Callable[[Path], None], facts: dict[str, Any], *, needs: int = 0) -> Version:
        """Have `write` fill a new folder, and keep it under this name: whole, or not at all.

        The version is not current before it is published. `needs` bytes must be free, or nothing is begun.
        """
        self._refuse_name(name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _foreseen(error, self.folder, 0) from error
        check_space(self.folder, needs)
        partial = self.folder / hidden_name("partial", name)
        try:
            partial.mkdir(mode=0o700)
            write(partial)
            self._complete(partial, facts)
            self._settle(partial, name)
        except BaseException as error:
            written = sum(path.lstat().st_size for path in partial.rglob("*") if not path.is_dir())
            shutil.rmtree(partial, ignore_errors=True)
            if _is_full(error):
                raise _foreseen(error, self.folder, written) from error
            raise
        sync(self.folder)
        return self.get(name)

    def publish(self, name: str, *, expects: str | None = None) -> Version:
        """Make a complete version the current one, in one step; an older one too.

        `expects` is the version that is believed to be current; if another one is, nothing happens but `Conflict`.
        """
        with self._alone():
            version, pointer = self.get(name), self._pointer()
            _check_current(pointer, expects)
            published, former = pointer["published"], pointer["current"]
            if name not in [entry["name"] for entry in published]:
                published.append({"name": name, "manifest": _hash(version.folder / _MANIFEST)})
            if former not in (None, name):
                pointer["trail"] = [*_trail(pointer), former][-_TRAIL:]
            return self._point(pointer, name)

    def roll_back(self, *, expects: str | None = None) -> Version:
        """Make the version current that was so before; going back again leads further back."""
        with self._alone():
            pointer = self._pointer()
            _check_current(pointer, expects)
            trail = self._whole_trail(pointer)
            if not trail:
                raise Conflict("There is no earlier version to go back to. Nothing was changed.")
            pointer["trail"] = trail[:-1]
            return self._point(pointer, trail[-1])

    @property
    def back_to(self) -> str | None:
        """Where going back leads: the version that was current before, if it is still whole."""
        return next(iter(self._whole_trail(self._pointer())[-1:]), None)

    def _point(self, pointer: dict[str, Any], name: str) -> Version:
        new = self.folder / hidden_name("pointer", name)
        try:
            _write(new, pointer | {"current": name})
            os.replace(new, self.folder / _POINTER)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise _foreseen(error, self.folder, 0) from error
        sync(self.folder)
        return self.get(name)

    def _whole_trail(self, pointer: dict[str, Any]) -> list[str]:
        """The versions that were current before, oldest first, without those that are damaged or current again."""
        return [name for name in _trail(pointer) if name != pointer["current"] and self._read(name) is not None]

    @property
    def current(self) -> Version | None:
        """The version that was published last; None if none ever was. A damaged one raises `ProjectProblem`."""
        name = self._pointer()["current"]
        if name is None:
            return None
        try:
            return self.get(name)
        except NotFound as error:
            raise ProjectProblem(
                f"The current version {name!r} is missing or incomplete. The others are unchanged; publish one of "
                "them, or bring this one back from a backup."
            ) from error

    @property
    def pointed(self) -> str | None:
        """Name of the current version, whatever state it is in; None if none was ever published."""
        name = self._pointer()["current"]
        return None if name is None else str(name)

    @property
    def versions(self) -> tuple[Version, ...]:
        """Those that were published and are complete, in the order in which they first were."""
        published = [entry["name"] for entry in self._pointer()["published"]]
        complete = {version.name: version for version in self._complete_ones()}
        return tuple(complete[name] for name in published if name in complete)

    def orphans(self) -> tuple[Version, ...]:
        """Complete but never published: somebody died between the two, or has not decided yet. Never used by itself."""
        return tuple(version for version in self._complete_ones() if version.number is None)

    def listed(self) -> tuple[Version, ...]:
        """All that have a readable manifest, published or not, damaged (`problem`) or not, in the order of names."""
        folders = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        found = (self._described(folder.name) for folder in folders if _NAME.fullmatch(folder.name))
        return tuple(version for version in found if version is not None)

    def get(self, name: str) -> Version:
        """A complete version by its name; `NotFound` if there is none."""
        version = self._read(name) if _NAME.fullmatch(name) else None
        if version is None:
            raise NotFound(f"There is no complete version {name[:100]!r}.")
        return version

    def problem(self, name: str) -> str | None:
        """What a quick look finds wrong with a version, without reading all of it (`verify` does); None: nothing."""
        manifest = _manifest(self.folder / name) if _NAME.fullmatch(name) else None
        if manifest is None:
            return "Its manifest is missing or cannot be read."
        noted = {entry["name"]: entry["manifest"] for entry in self._pointer()["published"]}
        if noted.get(name, _hash(self.folder / name / _MANIFEST)) != _hash(self.folder / name / _MANIFEST):
            return "Its manifest was changed since it was published."
        return None if _sizes_agree(self.folder / name, manifest) else "Files of it are missing or were changed."

    def verify(self, name: str) -> str | None:
        """None if every byte is as it was written, or a sentence that says what is not."""
        folder = self.folder / name
        manifest = _manifest(folder) if _NAME.fullmatch(name) else None
        if manifest is None:
            return f"Version {name[:100]!r} is missing, or has no readable manifest."
        noted = {entry["name"]: entry["manifest"] for entry in self._pointer()["published"]}
        if name in noted and noted[name] != _hash(folder / _MANIFEST):
            return f"The manifest of version {name!r} was changed since it was published."
        listed = manifest["files"]
        there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not _is_folder(path)}
        del there[_MANIFEST]
        for path in sorted(listed.keys() | there.keys()):
            if path not in there:
                return f"Version {name!r} lacks the file {path!r}."
            if path not in listed:
                return f"Version {name!r} has a file {path!r} that was not written with it."
            if there[path].is_symlink() or _facts(there[path]) != listed[path]:
                return f"The file {path!r} of version {name!r} was changed."
        return None

    def clean(self) -> tuple[str, ...]:
        """Remove what dead processes left unfinished; what a living one is writing stays. The names come back."""
        removed = []
        for path in sorted(self.folder.glob(".*")):
            found = _HIDDEN.fullmatch(path.name)
            if found is None or alive(int(found[1]), float(found[2])):
                continue
            if _is_folder(path):
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            removed.append(path.name)
        return tuple(removed)

    def _complete(self, partial: Path, facts: dict[str, Any]) -> None:
        """Bring all that was written to disk, and say in a manifest what that is."""
        paths = sorted(partial.rglob("*"))
        for path in paths:
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise ProjectProblem(f"{path.name!r} is a link or a device. A version consists of files only.")
        files = {path.relative_to(partial).as_posix(): path for path in paths if path.is_file()}
        if _MANIFEST in files:
            raise ProjectProblem(f"{_MANIFEST!r} is the name of the list of files. Choose another one.")
        for path in files.values():
            sync(path)
        manifest = {
            "format": _FORMAT,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "facts": facts,
            "files": {name: _facts(path) for name, path in files.items()},
        }
        _write(partial / _MANIFEST, manifest)
        for folder in [path for path in reversed(paths) if path.is_dir()]:
            sync(folder)
        sync(partial)
        read = _manifest(partial)
        if read is None or read != json.loads(json.dumps(manifest)) or not _sizes_agree(partial, read):
            raise ProjectProblem("What was written cannot be read back. Nothing was kept; check the disk.")

    def _settle(self, partial: Path, name: str) -> None:
        try:
            os.rename(partial, self.folder / name)
        except OSError as error:  # a version is never empty, so the system refuses to put one in the place of another
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise _taken(name) from error
            raise

    def _complete_ones(self) -> Iterator[Version]:
        for folder in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            if _NAME.fullmatch(folder.name) and (version := self._read(folder.name)):
                yield version

    def _read(self, name: str) -> Version | None:
        """A complete version."""
        manifest = _manifest(self.folder / name)
        whole = manifest is not None and _sizes_agree(self.folder / name, manifest)
        return self._described(name) if whole else None

    def _described(self, name: str) -> Version | None:
        folder = self.folder / name
        manifest = _manifest(folder)
        if manifest is None:
            return None
        published = [entry["name"] for entry in self._pointer()["published"]]
        number = published.index(name) + 1 if name in published else None
        size = sum(file["size"] for file in manifest["files"].values())
        return Version(name, number, folder, manifest["facts"], size, manifest["at"], len(manifest["files"]))

    def _pointer(self) -> dict[str, Any]:
        try:
            pointer = json.loads((self.folder / _POINTER).read_bytes())
            if pointer["format"] != _FORMAT:
                raise ProjectProblem("These versions were published by a newer unhans. Nothing was changed; update it.")
            if not all({"name", "manifest"} <= entry.keys() for entry in pointer["published"]):
                raise KeyError
        except FileNotFoundError:
            return {"format": _FORMAT, "current": None, "published": []}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProjectProblem(
                "The file that says which version is current is damaged. The versions themselves are unchanged; bring "
                "it back from a backup."
            ) from error
        assert isinstance(pointer, dict)
        return pointer

    def _refuse_name(self, name: str) -> None:
        if not _NAME.fullmatch(name) or name == _POINTER:
            raise BadOption(f"{name[:100]!r} cannot be the name of a version: letters, digits, '.', '_' and '-' only.")
        if (self.folder / name).exists():
            raise _taken(name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else publishes meanwhile; the system lets go of the lock of whoever dies."""
        if not self.folder.is_dir():
            raise NotFound("There are no versions yet.")
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _trail(pointer: dict[str, Any]) -> list[str]:
    """What was current before, the last one last; pointers of the first unhans have none."""
    return [name for name in pointer.get("trail", []) if isinstance(name, str) and _NAME.fullmatch(name)]


def _check_current(pointer: dict[str, Any], expects: str | None) -> None:
    if expects is not None and pointer["current"] != expects:
        raise Conflict(
            f"Not {expects[:100]!r} but {pointer['current']!r} is in use now: somebody was faster. Nothing was "
            "changed; look again and decide anew."
        )


def check_space(folder: Path, needed: int) -> None:
    """Raise `NoSpace` unless so many bytes are free where this folder is or will be."""
    free = _free(folder)
    if needed > free:
        raise NoSpace(
            f"This needs {_size(needed)}, but only {_size(free)} are free. Nothing was changed; make room and try "
            "again."
        )


def _free(folder: Path) -> int:
    there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    return shutil.disk_usage(there).free


def hidden_name(kind: str, name: str) -> str:
    """A name for something unfinished that says which process is at it: `clean` removes it once that is dead."""
    born = born_at(os.getpid())
    assert born is not None
    return f".{kind}-{name}-{os.getpid()}-{born:.2f}-{secrets.token_hex(4)}"


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a version {name!r} already. It is unchanged; choose another name.")


def _foreseen(error: BaseException, folder: Path, written: int) -> NoSpace | ProjectProblem:
    if _is_full(error):
        return NoSpace(
            f"The disk is full: {_size(written)} were written and more are needed, but only {_size(_free(folder))} are "
            "free. What was there before is unchanged; make room and try again."
        )
    reason = error.strerror if isinstance(error, OSError) else type(error).__name__
    return ProjectProblem(f"The folder {folder.name!r} cannot be written ({reason}). Nothing was changed.")


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind this: libraries in other languages say it in words only."""
    while error is not None:
        if (isinstance(error, OSError) and error.errno in _FULL) or _SAID_FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _size(count: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        if manifest["format"] != _FORMAT or not {"facts", "at"} <= manifest.keys():
            return None
        if not all({"size", "sha256"} == facts.keys() for facts in manifest["files"].values()):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    assert isinstance(manifest, dict)
    return manifest


def _sizes_agree(folder: Path, manifest: dict[str, Any]) -> bool:
    try:
        return all((folder / name).lstat().st_size == facts["size"] for name, facts in manifest["files"].items())
    except OSError:
        return False


def _facts(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": _hash(path)}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _write(path: Path, content: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to disk now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
