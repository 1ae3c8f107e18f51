"""What the lab has found so far, in a file: a run that was stopped goes on with the bugs that are missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unhans.data.writing import new_file
from unhans.language_model import LanguageModel
from unhans.types import Example, Lab, from_json, to_json


@dataclass(frozen=True)
class SoFar:
    """One file of a folder, for the newest run; `asked` is a fingerprint of all that a run depends on."""

    folder: Path | None  # None: nothing is kept
    asked: str

    @property
    def _file(self) -> Path | None:
        return None if self.folder is None else self.folder / "so-far.json"

    def read(self) -> Lab | None:
        """What the very same run had found when it was stopped. A damaged file is none: it can be made again."""
        if self._file is None or not self._file.exists():
            return None
        try:
            told = json.loads(self._file.read_text(encoding="utf-8"))
        except ValueError:
            return None
        return from_json(Lab, told["lab"]) if isinstance(told, dict) and told.get("asked") == self.asked else None

    def keep(self, lab: Lab) -> None:
        """In the place of what was kept before, at once."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with new_file(self._file) as file:
                file.write(json.dumps({"asked": self.asked, "lab": to_json(lab)}).encode())

    def forget(self) -> None:
        """All is found, and whoever asked has it."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def fingerprint(told: Any, language_model: LanguageModel | None, *sets: Sequence[Example]) -> str:
    """Another one for other settings, another language model, or other texts, labels, groups or ids."""
    digest = blake2b(json.dumps(told, sort_keys=True, default=str).encode(), digest_size=8)
    for name, weight in sorted(language_model.model.state_dict().items()) if language_model is not None else ():
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().contiguous().numpy())
    for examples in sets:
        for example in examples:
            known = (example.id, example.text_hash, example.label, example.group)
            digest.update(f"{known!r}\n".encode(errors="surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()
