"""A project: one folder with a model, data and what was found out about them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from unhans.data import Corpus, read, write
from unhans.errors import BadData, ProjectProblem
from unhans.loading import load
from unhans.model import Classifier, TransformerClassifier
from unhans.scoring import Progress, ScoreCache
from unhans.types import Example, Prediction, Recipe, Revision, from_json, to_json

_FORMAT = 1
_FACTS, _DATA, _FIRST = "project.json", "data/examples.parquet", "models/r0"


@dataclass
class Accuracy:
    """How many of the labelled examples of a split are predicted right, counted as they come."""

    split: str
    right: int = 0
    labelled: int = 0

    @property
    def share(self) -> float:
        """Right among labelled."""
        return self.right / self.labelled


class Project:
    """Owns a folder. `create` makes one, `open` finds it again; nothing in it is ever half-written."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder, self.facts = folder, facts

    @classmethod
    def create(
        cls,
        folder: str | Path,
        *,
        model: Any,
        data: Any,
        name: str | None = None,
        notes: dict[str, Any] | None = None,
    ) -> Project:
        """A new project from a classifier (or what `load` takes) and a corpus (or what `read` takes).

        Labels of the data are matched with those of the model by name, ignoring case, or by number.
        """
        target = Path(folder).expanduser()
        check_free(target)
        classifier = load(model)
        if not isinstance(classifier, TransformerClassifier) and not isinstance(model, str | Path):
            raise ProjectProblem(
                "A project keeps its model on disk: give a model folder, a model id, ONNX file or address."
            )
        corpus = with_labels_of(classifier, data if isinstance(data, Corpus) else read(data))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        except OSError as error:
            raise ProjectProblem(f"No folder can be made at {target} ({error.strerror}).") from error
        try:
            stored = _store_model(classifier, partial)
            (partial / "data").mkdir()
            write(corpus, partial / _DATA)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            recipe = Recipe("load", type(classifier).__name__)
            first = Revision(classifier.revision, None, recipe, classifier.labels, folder=stored, at=now)
            facts = {
                "format": _FORMAT,
                "name": name or target.name,
                "model": None if stored else _lasting(model),
                "revisions": [json.loads(to_json(first))],
                "notes": notes or {},
            }
            (partial / _FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")
            if target.exists():
                target.rmdir()  # empty, as checked above
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return cls.open(target)

    @classmethod
    def open(cls, folder: str | Path) -> Project:
        """The project in a folder, or a sentence why there is none."""
        path = Path(folder).expanduser()
        try:
            facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ProjectProblem(f"{path} is not a project: it has no {_FACTS}. Make one with `unhans init`.") from None
        except (OSError, ValueError) as error:
            raise ProjectProblem(f"The {_FACTS} of {path} cannot be read ({type(error).__name__}).") from error
        if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
            raise ProjectProblem(f"{path} was made by another version of unhans. Nothing was changed; update unhans.")
        project = cls(path, facts)
        try:
            whole = bool(project.name and project.revisions and isinstance(facts["notes"], dict))
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise ProjectProblem(f"The {_FACTS} of {path} is damaged: what it says about the model cannot be read.")
        return project

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.facts["name"])

    @property
    def revisions(self) -> list[Revision]:
        """All versions of the model, oldest first."""
        return [from_json(Revision, json.dumps(revision)) for revision in self.facts["revisions"]]

    @cached_property
    def classifier(self) -> Classifier:
        """The newest revision, loaded."""
        newest = self.revisions[-1]
        return load(self.folder / newest.folder if newest.folder else self.facts["model"])

    @cached_property
    def examples(self) -> Corpus:
        """The data, with the model's label names."""
        return read(self.folder / _DATA)

    @cached_property
    def cache(self) -> ScoreCache:
        """Answers of the model that need not be asked again."""
        return ScoreCache(self.folder / "cache" / "answers.sqlite")

    def predict(
        self, *, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Iterator[Prediction]:
        """A prediction for every example, in order; kept in `predictions/` once the last one has been given."""
        cache = self.cache if self.classifier.lasting else None
        final = self.folder / "predictions" / f"{self.classifier.revision}.jsonl"
        final.parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=final.parent, suffix=".partial")  # its own: two may run at once
        partial = Path(name)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                for prediction in self.classifier.predict_stream(
                    self.examples, cache=cache, progress=progress, cancelled=cancelled
                ):
                    file.write(to_json(prediction) + "\n")
                    yield prediction
                file.flush()
                os.fsync(file.fileno())
            partial.replace(final)
        finally:
            partial.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {len(self.examples)} examples, {len(self.revisions)} revisions)"


def check_free(folder: Path) -> None:
    """Refuse a place where something is already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectProblem(f"{folder} exists already and is not empty. Nothing was changed; choose a new folder.")


def _lasting(source: str | Path) -> str:
    """A reference that holds wherever the project is opened from."""
    path = Path(source).expanduser()
    return str(path.resolve()) if path.exists() else str(source)


def _store_model(classifier: Classifier, folder: Path) -> str | None:
    """Copy the weights into the project, if there are weights; other models stay where they are."""
    if not isinstance(classifier, TransformerClassifier):
        return None
    classifier.save(folder / _FIRST)
    return _FIRST


def with_labels_of(classifier: Classifier, corpus: Corpus) -> Corpus:
    """The corpus with its labels spelled as the model spells them."""
    spelling = match_labels(corpus.labels, classifier.labels)
    return corpus if all(old == new for old, new in spelling.items()) else corpus.relabelled(spelling)


def match_labels(given: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Which of the model's labels each label in the data means: the same name, but for case, or its number."""
    folded = {name.casefold().strip(): name for name in known}
    found = {label: folded.get(label.casefold().strip()) for label in given}
    if any(name is None for name in found.values()) and all(_is_number(label, len(known)) for label in given):
        found = {label: known[int(label)] for label in given}
    strange = [label for label, name in found.items() if name is None]
    if strange:
        raise BadData(
            f"The data has the label {strange[0]!r}, and the model does not: it knows {', '.join(known)}. "
            "Say which is which when reading the data: read(..., labels={...})."
        )
    return {label: name for label, name in found.items() if name is not None}


def count(example: Example, prediction: Prediction, tally: dict[str, Accuracy]) -> None:
    """Add one prediction to the accuracy of its example's split, if the example has a label."""
    if example.label is not None:
        split = tally.setdefault(example.split or "all", Accuracy(example.split or "all"))
        split.right += prediction.label == example.label
        split.labelled += 1


def _is_number(label: str, n: int) -> bool:
    return label.isdecimal() and int(label) < n
