"""A folder of Parquet files, each the rows of so many examples, with a manifest that says what they were made by.

    explained/
    ├── manifest.json           kind, facts (recipe, revision, …), columns, examples in a part; at the end how many
    ├── part-0000000.parquet    rows of the first examples; its footer has the fingerprint of their texts
    └── part-0000001.parquet    …

A part takes its name when it is whole, so whoever dies at whatever moment, what is there counts. Which parts are
missing is seen from the folder; a damaged one is made again.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unhans import __version__
from unhans.bulk._tables import KINDS
from unhans.data.rows import clean
from unhans.data.writing import new_file
from unhans.errors import BadData, BadOption, Conflict
from unhans.types import Example, Recipe, from_json

MANIFEST = "manifest.json"
_FORMAT = 1
_FOOTER = b"unhans"


@dataclass(frozen=True)
class Part:
    """Some examples, one after the other in the data, and which part of it they are."""

    number: int
    examples: Sequence[Example]

    @property
    def fingerprint(self) -> str:
        """Of what its rows depend on: ids and texts."""
        digest = blake2b(digest_size=8)
        for example in self.examples:
            digest.update(f"{example.id}\x00{example.text_hash}\x01".encode(errors="surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True)
class Made:
    """The rows of a part as they are written."""

    number: int
    examples: int
    content: bytes


def made_of(part: Part, nouns: Iterable[Any], kind: str) -> Made:
    """What was found about a part as the bytes of a Parquet file: the same rows are the same bytes."""
    table = KINDS[kind]
    footer = {_FOOTER: json.dumps({"texts": part.fingerprint, "examples": len(part.examples)}).encode()}
    schema = table.schema.with_metadata(footer)
    rows = [table.row(noun) for noun in nouns]
    try:
        columns = pa.Table.from_pylist(rows, schema)
    except UnicodeEncodeError:  # half a surrogate pair in a text that came past the data door
        columns = pa.Table.from_pylist([_cleaned(row) for row in rows], schema)
    file = io.BytesIO()
    pq.write_table(columns, file, compression="zstd")
    return Made(part.number, len(part.examples), file.getvalue())


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items()}
    return [_cleaned(one) for one in value] if isinstance(value, list) else value


class Folder:
    """A folder of parts that this process writes, and nobody else meanwhile."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest
        self._digest = blake2b(digest_size=8)
        self.examples = self.parts = self.there = 0  # of the data so far; and how many examples were done before

    @property
    def size(self) -> int:
        """Examples in a part."""
        return int(self.manifest["part"])

    def missing(self, examples: Iterable[Sequence[Example]], over: Callable[[], None]) -> Iterator[Part]:
        """The parts of the data that are not there yet; those that are must be of the same texts, and `over` hears."""
        for number, some in enumerate(examples):
            part = Part(number, some)
            known, own = footer_of(self.file(number)), part.fingerprint
            if known is not None and known["texts"] != own:
                raise Conflict(
                    f"{self.path} holds rows of other texts than the data has now, from example "
                    f"{self.examples + 1:,} on. Nothing was changed; bring the data back, or choose a new folder."
                )
            self._digest.update(own.encode())
            self.examples += len(some)
            self.parts += 1
            if known is None:
                yield part
            else:
                self.there += len(some)
                over()

    def keep(self, made: Made) -> None:
        """Write a part, whole or not at all."""
        with new_file(self.file(made.number)) as file:
            file.write(made.content)

    def file(self, number: int) -> Path:
        """Where a part is, or will be."""
        return self.path / f"part-{number:07}.parquet"

    def finish(self) -> None:
        """Say that all of the data is there."""
        if not self.examples:
            raise BadData("There are no examples, so there are no rows either.")
        if len(files_of(self.path)) > self.parts:  # any later one: those who worked need not have stopped in order
            raise Conflict(
                f"{self.path} holds rows of more than the {self.examples:,} examples that the data has now. Nothing "
                "was removed; bring the data back, or choose a new folder."
            )
        counted = {"examples": self.examples, "parts": self.parts, "texts": self._digest.hexdigest()}
        if self.manifest["data"] != counted:
            self.manifest["data"] = counted
            write_manifest(self.path, self.manifest)


@contextmanager
def held(path: Path, kind: str, facts: Mapping[str, Any], part: int | None, usual: int) -> Iterator[Folder]:
    """The folder to write to, new or begun by the same task; any other is refused, and left as it is."""
    if part is not None and part < 1:
        raise BadOption(f"A part has at least 1 example, not {part}.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption(f"No folder can be made at {path} ({error.strerror}). Nothing was written.") from error
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(f"Another process is writing to {path}. Nothing was changed; wait for it.") from error
        except OSError as error:  # network folders may have no locks
            raise BadOption(
                f"{path} cannot be locked against other processes ({error.strerror}). Nothing was changed; choose a "
                "folder on another disk."
            ) from error
        manifest = read_manifest(path)
        wanted, fresh = {"kind": kind, "facts": dict(facts)}, manifest is None
        if manifest is None:
            manifest = _begun(path, wanted, part or usual)
        else:
            _check_same(path, manifest, wanted, part)
        for left in path.glob(".*.part"):  # of a process that died: we alone are here
            left.unlink()
        try:
            yield Folder(path, manifest)
        except BaseException:
            if fresh and not files_of(path):  # what never began must not keep other work out
                (path / MANIFEST).unlink()
            raise
    finally:
        os.close(handle)


def files_of(path: Path) -> list[Path]:
    """The parts that are there, in order."""
    return sorted(path.glob("part-*.parquet"))


def _begun(path: Path, wanted: Mapping[str, Any], part: int) -> dict[str, Any]:
    if any(not file.match(f".{MANIFEST}.*.part") for file in path.iterdir()):  # but for our own that was cut short
        raise BadOption(
            f"{path} has other files in it, and no {MANIFEST}. Nothing was changed; choose a new folder, or an empty "
            "one."
        )
    columns = {field.name: str(field.type) for field in KINDS[wanted["kind"]].schema}
    manifest = {"format": _FORMAT, "unhans": __version__, **wanted, "columns": columns, "part": part, "data": None}
    write_manifest(path, manifest)
    return manifest


def _check_same(path: Path, manifest: dict[str, Any], wanted: Mapping[str, Any], part: int | None) -> None:
    begun = {"kind": manifest["kind"], **manifest["facts"]}
    now = {"kind": wanted["kind"], **json.loads(json.dumps(wanted["facts"]))}
    if other := [name for name in {**begun, **now} if begun.get(name) != now.get(name)]:
        if "recipe" in other or "engine" in other:
            other = [name for name in other if name != "terms"]  # they follow from it
        told = "; ".join(f"{name} was {_told(begun.get(name))} and is {_told(now.get(name))}" for name in other[:3])
        raise Conflict(
            f"{path} was begun with something else: {told}. Nothing was changed; choose a new folder, or say the same "
            "as then."
        )
    if part not in (None, manifest["part"]):
        raise BadOption(
            f"{path} has parts of {manifest['part']:,} examples, not {part:,}. Nothing was changed; leave the size out."
        )


def _told(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"family", "name", "options", "seed"}:
        value = from_json(Recipe, json.dumps(value))
    told = "nothing" if value is None else str(value)
    return told if len(told) <= 150 else told[:149] + "…"


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What a folder says about itself; None if it does not."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        if manifest["format"] != _FORMAT:
            raise BadData(f"{path} was written by a newer unhans. Nothing was changed; update it.")
        if manifest["kind"] not in KINDS or not {"facts", "part", "data"} <= manifest.keys():
            raise KeyError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(
            f"The {MANIFEST} of {path} is damaged. The parts are as they were; bring it back from a backup, or choose "
            "a new folder."
        ) from error
    assert isinstance(manifest, dict)
    return manifest


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """In one step."""
    with new_file(path / MANIFEST) as file:
        file.write(json.dumps(manifest, indent=1, ensure_ascii=False).encode(errors="backslashreplace"))


def footer_of(file: Path) -> dict[str, Any] | None:
    """What a part says about its texts; None if there is no such file, or it is damaged: then it is made again."""
    try:
        found = json.loads(pq.read_schema(file).metadata[_FOOTER])
        return {"texts": found["texts"], "examples": found["examples"]}
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None
