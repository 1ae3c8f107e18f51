"""A project: one folder with a model, data and what was found out about them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from unhans.attributions import attribute, attribution
from unhans.data import Corpus, read, write
from unhans.data.writing import new_file
from unhans.errors import BadData, ProjectProblem
from unhans.language_model import LanguageModel
from unhans.loading import load
from unhans.model import Classifier, TransformerClassifier
from unhans.registry import Entry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Unit
from unhans.training import Watch
from unhans.types import Attribution, Attributions, Example, Prediction, Recipe, Revision, from_json, to_json

_FORMAT = 1
_AT_ONCE = 256  # explanations between two writings: what a stop can cost
_BACKGROUND, _TEXTS = 200, 20_000  # examples to compare with; texts that a language model is fitted on
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
        self._language_model: LanguageModel | None = None

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

    def explain(
        self,
        method: str = "leave_one_out",
        target: str | int | None = None,
        units: Unit = "word",
        examples: Sequence[Example] | None = None,
        *,
        seed: int = 0,
        language_model: LanguageModel | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Attributions:
        """An attribution for every example given, or for all of the project's; `attribute` says what the rest means.

        They are kept in `explanations/`, so only texts that were not explained like this before take time. Methods that
        compare with other examples get training examples; those that need a language model get the project's own,
        unless another is given (then nothing is kept, for it may change).
        """
        classifier, entry, wanted = (
            self.classifier,
            attribution[method],
            list(self.examples if examples is None else examples),
        )
        needed: dict[str, Any] = {}
        if "background" in entry.asks:
            needed["background"] = self.background(seed)
        if "language_model" in entry.asks:
            needed["language_model"] = language_model or self.language_model(progress=progress, cancelled=cancelled)
        keeps = classifier.lasting and ("language_model" not in entry.asks or language_model is None)
        file = self._explanations(entry, entry.recipe(options, seed), target, units, seed)
        known = _read_kept(file) if keeps else {}
        missing = list({e.text_hash: e for e in wanted if e.text_hash not in known}.values())
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            made = attribute(
                classifier,
                some,
                method=method,
                target=target,
                units=units,
                seed=seed,
                progress=_shifted(progress, start, len(missing)),
                cancelled=cancelled,
                cache=self.cache if classifier.lasting else None,
                **needed,
                **options,
            )
            known |= {example.text_hash: one for example, one in zip(some, made, strict=True)}
            if keeps:
                _write_kept(file, known)
        return Attributions(replace(known[example.text_hash], example=example.id) for example in wanted)

    def background(self, seed: int = 0) -> list[Example]:
        """Some training examples, for methods that compare with them; of all examples if no split is for training."""
        return sample(self.examples.split("train") or self.examples, _BACKGROUND, seed)

    def language_model(
        self, *, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> LanguageModel:
        """The project's masked language model; the first time, one is fitted on its texts (about a minute) and kept."""
        if self._language_model is None:
            folder = self.folder / "language_model"
            if folder.exists():
                self._language_model = LanguageModel.open(folder)
            else:
                texts = [part for example in sample(self.examples, _TEXTS, 0) for part in example.parts][:_TEXTS]
                self._language_model = LanguageModel.fit(texts, watch=Watch(progress=progress, cancelled=cancelled))
                self._language_model.save(folder)
        return self._language_model

    def _explanations(self, entry: Entry, recipe: Recipe, target: str | int | None, units: Unit, seed: int) -> Path:
        """The file of explanations that were made alike: same model, recipe, target, units and other examples."""
        goal = None if target is None else self.classifier.label_number(target)
        told = (recipe.key, self.classifier.revision, goal, units, seed if "background" in entry.asks else None)
        name = blake2b(repr(told).encode(), digest_size=8).hexdigest()
        return self.folder / "explanations" / f"{recipe.name}-{name}.jsonl"

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {len(self.examples)} examples, {len(self.revisions)} revisions)"


@dataclass(frozen=True)
class _Kept:
    """A line of a file of explanations: found again by the text, for an id may come to mean another one."""

    text_hash: str
    attribution: Attribution


def _read_kept(file: Path) -> dict[str, Attribution]:
    if not file.exists():
        return {}
    try:
        lines = [from_json(_Kept, line) for line in file.read_bytes().splitlines()]
    except (OSError, ValueError) as error:
        raise ProjectProblem(
            f"The explanations in {file} cannot be read ({type(error).__name__}). Nothing was changed. "
            "Delete the file, and they will be computed anew."
        ) from error
    return {line.text_hash: line.attribution for line in lines}


def _write_kept(file: Path, known: Mapping[str, Attribution]) -> None:
    file.parent.mkdir(exist_ok=True)
    with new_file(file) as out:
        for text_hash, one in known.items():
            out.write((to_json(_Kept(text_hash, one)) + "\n").encode())


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress through a part of the work, told as progress through all of it."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def sample(examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    """At most n examples drawn by the seed, in their own order."""
    if len(examples) <= n:
        return list(examples)
    chosen = np.random.default_rng(seed).choice(len(examples), n, replace=False)
    return [examples[int(number)] for number in sorted(chosen)]


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
