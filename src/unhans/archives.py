"""A model that somebody sent, unpacked: nothing in the archive is believed, and nothing is left if it is refused."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path

from unhans.errors import BadModel

MAX_UNPACKED = 4 * 10**9
_MAX_ENTRIES = 200
_MAX_NAME = 200
_MAX_RATIO = 200  # no weights shrink like that; a bomb does
_SMALL = 1_000_000  # below this a high ratio harms nobody: vocabularies shrink well
_CHUNK = 1 << 20
# what a tokenizer or a model is made of; everything else in the archive is left out, or refused if it could run
_WANTED = (".json", ".safetensors", ".txt", ".model")


def unpack_model(archive: Path, folder: Path, max_unpacked: int = MAX_UNPACKED) -> Path:
    """The files of a model in a zip, written flat into a new folder; `BadModel` says why not."""
    folder.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(archive) as packed:
            most = min(max_unpacked, max(_SMALL, _MAX_RATIO * archive.stat().st_size))
            _write(packed, _chosen(packed), folder, most)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadModel("The archive is damaged, or no zip. Zip the model's folder anew and send it again.") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _chosen(packed: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The entries to unpack, by their plain file names; the archive is refused as a whole if one entry is odd."""
    entries = packed.infolist()
    if len(entries) > _MAX_ENTRIES:
        raise BadModel(f"The archive has {len(entries):,} entries; a model has a dozen. It was refused.")
    folders, chosen = set(), dict[str, zipfile.ZipInfo]()
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        parts = name.removesuffix("/").split("/")
        odd = (
            len(name) > _MAX_NAME
            or "\\" in name
            or ":" in name
            or not name.isprintable()
            or name != entry.orig_filename
        )
        if odd or any(part in ("", ".", "..") for part in parts) or len(parts) > 2:
            raise BadModel("The archive has an entry whose name leads somewhere else. It was refused as a whole.")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise BadModel("The archive has an entry that is a link or a device. It was refused as a whole.")
        if entry.flag_bits & 1:
            raise BadModel("The archive is encrypted. Send it without a password.")
        if entry.is_dir() or parts[0] == "__MACOSX":
            continue
        folders.add("/".join(parts[:-1]))
        plain = parts[-1]
        if plain.lower() in seen:
            raise BadModel("The archive has two files of the same name. It was refused as a whole.")
        seen.add(plain.lower())
        if plain.lower().endswith(_WANTED):
            chosen[plain] = entry
    if len(folders) > 1:
        raise BadModel("The archive has more than one folder with files. Zip the model's folder alone.")
    if not chosen:
        raise BadModel("The archive has no files of a model: config.json, model.safetensors, tokenizer.json …")
    return chosen


def _write(packed: zipfile.ZipFile, chosen: dict[str, zipfile.ZipInfo], folder: Path, most: int) -> None:
    """Unpack while counting what really comes out, whatever the headers claim."""
    total = 0
    for name, entry in chosen.items():
        size = 0
        with packed.open(entry) as source, (folder / name).open("xb") as target:
            while some := source.read(_CHUNK):
                size += len(some)
                total += len(some)
                if total > most or (size > _SMALL and size > _MAX_RATIO * max(1, entry.compress_size)):
                    raise BadModel("The archive unpacks to far more than a model takes. It was refused as a whole.")
                target.write(some)
