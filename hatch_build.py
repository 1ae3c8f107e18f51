"""Builds the page of the workbench into the package. Node comes from PyPI: the machine needs none of its own."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCES = ("index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "src", "public")
_STAMP = "sources.txt"  # beside the page: what it was built from


class PageHook(BuildHookInterface[Any]):
    """Runs `npm ci` and `npm run build` before the files are gathered, unless the page is there already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the page: for wheels, editable installs and source distributions alike."""
        root = Path(self.root)
        page = root / "src" / "unhans" / "static"
        if (root / "PKG-INFO").is_file() and (page / "index.html").is_file():
            return  # a source distribution carries the page
        web = root / "web"
        built_from = _digest(web)
        if (page / "index.html").is_file() and _read(page / _STAMP) == built_from:
            return
        _npm(web, "ci", "--no-audit", "--no-fund")
        _npm(web, "run", "build")
        (page / _STAMP).write_text(built_from, encoding="utf-8")


def _npm(web: Path, *arguments: str) -> None:
    ended = runpy.run_path(str(web / "npm.py"))["npm"](*arguments, capture_output=True)
    if ended.returncode != 0:
        said = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-30:])
        raise RuntimeError(
            f"The page of the workbench could not be built: `npm {' '.join(arguments)}` in the folder web ended with "
            f"{ended.returncode}. Nothing was installed. It said:\n{said}\n"
            "If it could not reach the package registry, check the network or set npm's `registry`, then try again."
        )


def _digest(web: Path) -> str:
    digest = hashlib.sha256()
    files = [file for name in _SOURCES for file in [web / name, *(web / name).rglob("*")] if file.is_file()]
    for file in sorted(files):
        digest.update(file.relative_to(web).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""
