"""What a server serves: a folder that is a project, or a folder whose subfolders are projects.

Its own database holds people, invitations, uploads and jobs; that of each project holds the rest, so that nothing of
one project can be reached through another. Where the folder is itself a project the two are one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from unhans.artefacts import Artefacts
from unhans.errors import BadOption, NotFound, ProjectProblem
from unhans.jobs import Jobs
from unhans.records import FACTS, Records, check_database, read_facts
from unhans.shapes import Upload
from unhans.store import FILE, Store
from unhans.store.schema import uploads, users

_MARK = "workspace.json"
_FORMAT = 1
_LOCK = "server.lock"
_UPLOADS = "uploads"
_MODELS = ("models", "language_model")
_SUFFIXES = {
    "model": (".zip",),
    "data": (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz"),
}
_UPLOAD = re.compile(r"[0-9a-f]{32}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_KEPT_SECONDS = 7 * 86_400  # uploads that nothing was made of


class Workspace:
    """A folder to serve; open it with `Workspace.open`."""

    def __init__(self, root: Path, database: str | None, store: Store, only: Records | None) -> None:
        self.root, self.database, self.store, self._only = root, database, store, only
        self.jobs = Jobs(store)
        self._open: dict[str, Records] = {}
        self._opening = threading.Lock()

    @classmethod
    def open(cls, folder: str | Path, *, database: str | None = None) -> Self:
        """The workspace in a folder; an empty or new folder becomes one."""
        root = Path(folder).expanduser().resolve()
        if (root / FACTS).exists():
            only = Records.open(root, database=database)
            return cls(root, database, only.store, only)
        _check_may_serve(root)
        return cls(root, database, _own_store(root, database), None)

    def close(self) -> None:
        """Let go of all databases."""
        with self._opening:
            for records in self._open.values():
                records.close()
            self._open = {}
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- projects

    @property
    def cannot_create(self) -> str:
        """Why no project can be added here; empty if one can."""
        if self._only is None:
            return ""
        return "This server was started for one project. To hold several: `unhans serve FOLDER`, with an empty folder."

    def names(self) -> list[str]:
        """Addresses of the projects: the names of their folders. Links are not followed: they lead elsewhere."""
        if self._only is not None:
            return [self.root.name]
        return sorted(
            path.name
            for path in self.root.iterdir()
            if not path.name.startswith(".") and not path.is_symlink() and (path / FACTS).is_file()
        )

    def records(self, name: str) -> Records:
        """The project at an address. Only names that are listed are ever looked up."""
        if self._only is not None and name == self.root.name:
            return self._only
        with self._opening:
            if name in self._open:
                return self._open[name]
            if name not in self.names():
                raise NotFound("There is no such project.")
            self._open[name] = Records.open(self.root / name, database=self.database)
            return self._open[name]

    def made_by(self, origin: str) -> str | None:
        """The project that was made by a job, if it has come so far."""
        for name in self.names():
            with suppress(ProjectProblem):  # another one that is damaged
                if read_facts(self.root / name).get("origin") == origin:
                    return name
        return None

    def let_in(self, manager: str, project: str) -> None:
        """Have a manager work in a project that was made for them; their role may have changed meanwhile."""

        def act(connection: sa.Connection) -> None:
            self.store.lock(connection, "users")
            one = sa.and_(users.c.name == manager, users.c.role == "manager")
            known = connection.execute(sa.select(users.c.projects).where(one)).scalar()
            if known is not None:
                changed = json.dumps(sorted({*json.loads(known), project}))
                connection.execute(users.update().where(one).values(projects=changed))

        self.store.write(act)

    def free_name(self, title: str) -> str:
        """A folder name for a new project that resembles its title."""
        stem = _NOT_IN_NAMES.sub("-", title.lower()).strip("-")[:50] or "project"
        taken = {path.name for path in self.root.iterdir()}
        return next(name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}-{n}") not in taken)

    # -- uploads

    @contextmanager
    def receive(self, kind: str, name: str, by: str) -> Iterator[Receiving]:
        """A place for a file that is being sent; it is kept, under a name of our own, when all has arrived."""
        suffix = _suffix(kind, name)
        id_ = secrets.token_hex(16)
        folder = self.root / _UPLOADS / id_
        folder.mkdir(mode=0o700, parents=True)
        try:
            with (folder / f"{kind}{suffix}").open("xb") as file:
                receiving = Receiving(file, id_)
                yield receiving
                file.flush()
                os.fsync(file.fileno())
            receiving.upload = Upload(id_, kind, _shown(name), receiving.size, by, _now())  # type: ignore[arg-type]
            row = {key: getattr(receiving.upload, key) for key in ("id", "kind", "name", "size", "by", "at")}
            self.store.write(lambda connection: connection.execute(uploads.insert().values(**row)))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def upload(self, id_: str, kind: str) -> tuple[Upload, Path]:
        """A file that has arrived, and where it is."""
        with self.store.read() as connection:
            row = connection.execute(
                sa.select(uploads).where(uploads.c.id == id_, uploads.c.kind == kind)
            ).one_or_none()
        found = None if row is None else next(iter((self.root / _UPLOADS / row.id).glob(f"{kind}.*")), None)
        if row is None or found is None:
            raise NotFound("This upload is not there any more. Send the file again.")
        return Upload(row.id, row.kind, row.name, row.size, row.by, row.at), found

    def uploads(self, by: str) -> list[Upload]:
        """What somebody has sent, newest first."""
        with self.store.read() as connection:
            rows = connection.execute(
                sa.select(uploads).where(uploads.c.by == by).order_by(uploads.c.at.desc()).limit(100)
            ).all()
        return [Upload(row.id, row.kind, row.name, row.size, row.by, row.at) for row in rows]

    def forget_uploads(self, *ids: str) -> None:
        """Remove files that have been made use of."""
        for id_ in ids:
            shutil.rmtree(self.root / _UPLOADS / id_, ignore_errors=True)
        self.store.write(lambda connection: connection.execute(uploads.delete().where(uploads.c.id.in_(ids))))

    def tidy(self, now: float) -> list[str]:
        """At the start: remove what nobody needs, and say what somebody should look at."""
        known = {row.id: row for row in self._all_uploads()}
        folder = self.root / _UPLOADS
        for path in folder.iterdir() if folder.is_dir() else ():
            if not _UPLOAD.fullmatch(path.name):
                continue  # not ours: perhaps a project that somebody called like this
            old = path.name in known and now - path.stat().st_mtime > _KEPT_SECONDS
            if old or path.name not in known:
                self.forget_uploads(path.name)
            else:
                Artefacts(path).clean()  # models that were being unpacked
        Artefacts(self.root).clean()  # projects that were being made
        said = []
        for name in self.names():
            try:
                records = self.records(name)
            except ProjectProblem as problem:
                said.append(f"{name}: {problem}")
                continue
            records.models.clean()
            records.exports.clean()
            compared = {after for _, after in records.reports.pairs()}
            left = [one.name for one in records.models.orphans() if one.name not in compared]
            said += [f"{name}: the model version {one!r} was neither compared nor published." for one in left]
        return said

    def _all_uploads(self) -> list[Any]:
        with self.store.read() as connection:
            return list(connection.execute(sa.select(uploads)))

    # -- backup

    def backup(self, target: Path) -> Path:
        """A copy of all that people made, as it is now, in a new folder with a manifest; others may go on working.

        It can be served as it is. Databases come first, so that no answer is about a model that the copy lacks. Caches,
        uploads, exports and logs are left out; databases on a server are copied with the server's own tools.
        """
        if not self.store.is_sqlite:
            self.store.backup(target)  # says what to do instead

        def write(folder: Path) -> None:
            parts = [self._only] if self._only else [self.records(name) for name in self.names()]
            if self._only is None:
                self.store.backup(folder / FILE)
                shutil.copy2(self.root / _MARK, folder / _MARK)
            for records in parts:
                own = folder if records is self._only else folder / records.folder.name
                own.mkdir(mode=0o700, exist_ok=True)
                records.store.backup(own / FILE)
                shutil.copy2(records.folder / FACTS, own / FACTS)
                for name in _MODELS:
                    if (records.folder / name).is_dir():
                        shutil.copytree(records.folder / name, own / name, ignore=shutil.ignore_patterns(".*"))

        target = target.expanduser().resolve()
        facts = {"workspace": self.root.name, "projects": self.names()}
        return Artefacts(target.parent).add(target.name, write, facts).folder

    # -- one server at a time

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder; a second server is refused. The system lets go of it for whoever dies."""
        handle = os.open(self.root / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                other = os.read(handle, 20).decode(errors="replace").strip()
                raise ProjectProblem(
                    f"Another server{f' (process {other})' if other.isdecimal() else ''} is using this folder already. "
                    "Nothing was changed; use that one, or stop it."
                ) from None
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(handle)


class Receiving:
    """A file on its way in."""

    def __init__(self, file: Any, id_: str) -> None:
        self._file, self.id, self.size = file, id_, 0
        self.upload: Upload | None = None

    def write(self, some: bytes) -> None:
        """More of it."""
        self._file.write(some)
        self.size += len(some)


def _check_may_serve(root: Path) -> None:
    """A folder full of other things does not become a workspace by a slip of the hand."""
    if root.exists() and not root.is_dir():
        raise ProjectProblem(f"{root} is a file. Give a project, a folder of projects, or a new folder.")
    there = [path for path in root.iterdir() if not path.name.startswith(".")] if root.exists() else []
    if there and not (root / _MARK).exists() and not any((path / FACTS).is_file() for path in there):
        raise ProjectProblem(
            f"{root} is neither a project nor a folder of projects. Give one of these, or a new folder."
        )


def _own_store(root: Path, database: str | None) -> Store:
    mark = root / _MARK
    try:
        if mark.exists():
            schema = json.loads(mark.read_text(encoding="utf-8"))["schema"]
        else:
            root.mkdir(parents=True, exist_ok=True)
            schema = f"unhans_workspace_{secrets.token_hex(4)}" if database else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProjectProblem(
            f"The folder {root} cannot be used ({type(error).__name__}). Nothing was changed."
        ) from error
    check_database(root, schema, database)
    known = mark.exists()
    store = Store.open(root, database=database, schema=schema or "unhans", create=not known)
    if not known:
        mark.write_text(json.dumps({"format": _FORMAT, "schema": schema}), encoding="utf-8")
    return store


def _suffix(kind: str, name: str) -> str:
    """The ending that says how a file is to be read; nothing else of the sender's name is ever used."""
    known = _SUFFIXES[kind]
    found = [suffix for suffix in known if name.lower().endswith(suffix)]
    if not found:
        what = "A model is a zip of its folder" if kind == "model" else "Data"
        raise BadOption(f"{what}: the name must end in {', '.join(known)}. Nothing was stored.")
    return max(found, key=len)


def _shown(name: str) -> str:
    """The sender's name for a file, for display: without folders, controls and length."""
    last = re.split(r"[\\/]", name)[-1]
    return "".join(sign for sign in last if sign.isprintable())[:200] or "file"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
