"""A project: a model, data, and what was found out about them, kept in a folder and a database.

`Project` is `Records` with a model: its methods are the loop, and everything they find is stored.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from pydantic import TypeAdapter

from unhans import __version__, lab
from unhans.artefacts import Artefacts, hidden_name, sync
from unhans.attributions import attribute, attribution, check_usable, choose_engine
from unhans.audit import SEVERITIES, audit, check, needs_language_model
from unhans.augmentations import COPIES_PER_POINT, Check, Seen, augment, augmentation, available
from unhans.augmentations import DEFAULT as AUGMENTING
from unhans.augmentations import recipe_of as copies_recipe
from unhans.bugs import bug
from unhans.catalogue import describe
from unhans.counterfactuals import DEFAULT as FLIPPING
from unhans.counterfactuals import SEARCH, Counterfactuals, counterfactual, find_flips, search_settings
from unhans.counterfactuals import check_usable as check_flips
from unhans.counterfactuals.scores import scored
from unhans.crew import HERE, Crew
from unhans.data import Corpus, read
from unhans.doubts import Doubts, doubt, doubts
from unhans.errors import BadData, BadOption, Cancelled, Conflict, ProjectProblem, Unsupported
from unhans.expectations import check_expectations
from unhans.export import Exported, export_bundle, export_flips, export_model, facts_of
from unhans.fixes import DEFAULT, TRAINING, Mended, fix
from unhans.heuristics import choose_anchors, heuristic
from unhans.influences import DEFAULT as TRACING
from unhans.influences import How, Influences, Of, influence, prepare
from unhans.influences import check_usable as check_traces
from unhans.influences import recipe_of as trace_recipe
from unhans.language_model import LanguageModel
from unhans.loading import load
from unhans.mending import Follow, Round, Run, Shares, checkpoints, planned
from unhans.model import Classifier, TransformerClassifier
from unhans.rationales import rationale, rationale_of
from unhans.records import FACTS, FORMAT, Records
from unhans.records.auditing import KnownAudits
from unhans.records.auditing import asked_key as audit_key
from unhans.records.examples import ExampleTable
from unhans.records.explained import Alike
from unhans.records.flipping import Asked, Find, KnownFlips, by_flip
from unhans.records.revising import USABLE, KnownFix, KnownFixes, ancestors, now
from unhans.records.tracing import KnownTraces, StoredCopy, asked_key
from unhans.registry import Entry, Option, Registry
from unhans.scoring import Progress, ScoreCache, Tally
from unhans.shapes import Method, MethodOption, Revisions
from unhans.store import Store, batches
from unhans.task import rank_words, suspects
from unhans.text import Unit, word_spans
from unhans.training import Watch
from unhans.types import (
    Attributions,
    Audit,
    CheckRun,
    Copy,
    Counterfactual,
    Edit,
    Example,
    Feedback,
    Influence,
    Lab,
    Prediction,
    Rationale,
    Recipe,
    Report,
    Revision,
    Suspects,
    WordRanking,
    to_json,
)
from unhans.verify import verify
from unhans.wordnet import open_wordnet

_REGISTRY = fix  # under a name that the parameter of `mend` does not hide
_AT_ONCE = 256  # explanations between two writings: what a stop can cost
_BACKGROUND, _TEXTS = 200, 20_000  # examples to compare with; texts that a language model is fitted on
_FIRST = "r0"
_RANKED = 2000  # explained examples that words are ranked by, at most
_SUSPECTS = 50
_TIMED = 10  # texts that must have been answered before their time is worth noting
_CHECKPOINTS, _LANGUAGE_MODEL = ".fixing", "language_model"
_FLIPPED_AT_ONCE = 8  # examples between two writings of flips: what a stop can cost
_LEXICON = 20_000  # words of the project's texts that a flip may put in
_VALIDATED = 2000  # examples that choose the epoch, at most: all of them are asked after each
_TRACED_AT_ONCE = 16  # examples between two writings of traces
_INDEXES = 4  # of one revision: methods and options that the next trace need not look at all training examples for
T = TypeVar("T")
_Named = tuple[str, str, str | None]  # id, hash of the text, and label
_COPIED_AT_ONCE = 200  # training examples between two writings of copies
_COPIES = 50_000  # that one call makes, at most
_LAB_TEXTS = 2000  # training examples of the lab, unless more are asked for: it trains a model for each planted bug
_WAYS_TO_COPY = ("word_dropout", "masked_lm", "back_translation")  # where the usual one cannot be used
_DATABASE_NAME = re.compile(r"[^a-z0-9]+")


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


@dataclass(frozen=True)
class _Masks:
    """What may be changed, what the model is shown and what is changed already, each by the example's id."""

    editable: Mapping[str, Collection[int]]
    reads: Mapping[str, Collection[int]]
    start: Mapping[str, Sequence[Edit]]

    def asked(self, whole: Asked, id_: str) -> str:
        """The id of a search with what is asked of this example."""
        editable, reads = (
            tuple(sorted(set(mask[id_]))) if id_ in mask else None for mask in (self.editable, self.reads)
        )
        return replace(whole, editable=editable, reads=reads, start=tuple(self.start.get(id_, ()))).id

    def of(self, examples: Sequence[Example]) -> dict[str, Any]:
        """What of it is about these examples."""
        ids = {example.id for example in examples}
        own = {"editable": self.editable, "reads": self.reads, "start": self.start}
        return {name: {id_: mask[id_] for id_ in mask if id_ in ids} for name, mask in own.items()}


class Project(Records):
    """Records with a model. `create` makes one, `open` finds it again; nothing in it is ever half-written."""

    def __init__(self, folder: Path, facts: dict[str, Any], store: Store) -> None:
        super().__init__(folder, facts, store)
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
        database: str | None = None,
        origin: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A new project from a classifier (or what `load` takes) and a corpus (or what `read` takes).

        Labels of the data are matched with those of the model by name, ignoring case, or by number. The records go into
        a file of the folder, or to the PostgreSQL server at `database`. Whoever makes it may leave a name by which to
        find it again (`origin`).
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
            partial = target.parent / hidden_name("partial", target.name)
            partial.mkdir(mode=0o700)
        except OSError as error:
            raise ProjectProblem(f"No folder can be made at {target} ({error.strerror}).") from error
        schema = (
            f"unhans_{_DATABASE_NAME.sub('_', target.name.lower())[:30]}_{secrets.token_hex(4)}" if database else None
        )
        store: Store | None = None
        try:
            _store_model(classifier, partial / "models")
            store = Store.open(partial, database=database, schema=schema or "unhans", create=True)
            table = ExampleTable(store)
            table.fill(corpus, len(corpus), progress)
            table.note_reading(corpus, corpus.set_aside)
            facts = {
                "format": FORMAT,
                "name": name or target.name,
                "model": None if isinstance(classifier, TransformerClassifier) else _lasting(model),
                "schema": schema,
                "notes": notes or {},
                "origin": origin,
            }
            (partial / FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")
            store.close()
            for path in (partial / FACTS, partial):
                sync(path)
            if target.exists():
                target.rmdir()  # empty, as checked above
            partial.rename(target)
        except BaseException:
            if store is not None:
                store.drop()
                store.close()
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(target.parent)  # from here on the project is there, and nothing of it may be taken back
        project = cls.open(target, database=database)
        project.__dict__["classifier"] = classifier  # the one that was stored, so that it need not be read again
        project.describe_methods()
        return project

    @cached_property
    def classifier(self) -> Classifier:
        """The current revision, loaded."""
        current = self.current
        return load(self.folder / current.folder if current.folder else self.facts["model"])

    @cached_property
    def examples(self) -> Corpus:
        """The data, with the model's label names."""
        return self.table.corpus()

    @cached_property
    def cache(self) -> ScoreCache:
        """Answers of the model that need not be asked again."""
        return ScoreCache(self.folder / "cache" / "answers.sqlite")

    def predict(
        self, *, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Iterator[Prediction]:
        """A prediction for every example, in order, stored as they come; what a stop leaves is a part of them."""
        yield from self._predict_with(self.classifier, progress, cancelled)

    def _predict_with(
        self,
        classifier: Classifier,
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
        examples: Sequence[Example] | None = None,
    ) -> Iterator[Prediction]:
        """The same by any revision, and of some examples alone; how long it took tells how long a fix may take."""
        cache, tally, seconds = self.cache if classifier.lasting else None, Tally(), 0.0
        wanted = self.examples if examples is None else examples
        stream = classifier.predict_stream(wanted, cache=cache, progress=progress, cancelled=cancelled, tally=tally)
        pairs = batches(zip(wanted, stream, strict=True), _AT_ONCE)
        while True:
            began = time.monotonic()
            some = next(pairs, None)
            seconds += time.monotonic() - began
            if some is None:
                break
            found = [prediction for _, prediction in some]
            unknown = [classifier.unknown_share(example) for example, _ in some]
            self.table.predicted(classifier.revision, found, unknown)
            yield from found
        self.table.tidy()
        if tally.answered >= _TIMED:
            self.keep_setting("pace", seconds / tally.answered)

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
        engine: str | None = None,
        **options: Any,
    ) -> Attributions:
        """An attribution for every example given, or for all of the project's; `attribute` says what the rest means.

        They are kept, so only texts that were not explained like this before take time. Methods that compare with other
        examples get training examples; those that need a language model get the project's own, unless another is given
        (then nothing is kept, for it may change). What an engine answered is not kept either: people judge fp32.
        """
        classifier, entry, wanted = (
            self.classifier,
            attribution[method],
            list(self.examples if examples is None else examples),
        )
        asked: dict[str, Any] = {"method": method, "target": target, "units": units, "seed": seed, **options}
        asked |= {"cancelled": cancelled, "cache": self.cache if classifier.lasting else None}
        if "background" in entry.asks:
            asked["background"] = self.background(seed)
        if "language_model" in entry.asks:
            asked["language_model"] = language_model or self.language_model(progress=progress, cancelled=cancelled)
        keeps = classifier.lasting and engine is None and ("language_model" not in entry.asks or language_model is None)
        alike = self.alike(entry, options, target, units, seed)
        known = self.explained.kept(alike, [example.text_hash for example in wanted]) if keeps else {}
        missing = list({e.text_hash: e for e in wanted if e.text_hash not in known}.values())
        chosen = None if engine is None else choose_engine(classifier, missing, engine, **asked)
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            shifted = _shifted(progress, start, len(missing))
            made = attribute(classifier, some, progress=shifted, engine=chosen, **asked)
            new = {example.text_hash: one for example, one in zip(some, made, strict=True)}
            known |= new
            if keeps:
                self.explained.keep(alike, new)
        return Attributions(replace(known[example.text_hash], example=example.id) for example in wanted)

    def alike(self, entry: Entry, options: dict[str, Any], target: str | int | None, units: Unit, seed: int) -> Alike:
        """What explanations made in this way have in common: they are one set."""
        goal = None if target is None else self.classifier.labels[self.classifier.label_number(target)]
        others = f"background {seed}" if "background" in entry.asks else ""
        return Alike(self.classifier.revision, entry.recipe(options, seed), goal, units, others)

    def describe_methods(self) -> None:
        """Keep what the registry says about the methods, for the screens: the web process does not load them.

        Done again whenever another version of unhans, or another revision, opens the project to work on it.
        """
        families = attribution, fix, counterfactual, rationale, influence, heuristic, augmentation, doubt, check, bug
        missing = [available(entry) for entry in augmentation]
        known_to = [__version__, self.current.id, *(family.names for family in families), _has_wordnet(), missing]
        if self.methods() and self.setting("methods_of") == known_to:
            return

        def explains(entry: Entry) -> None:
            check_usable(self.classifier, entry, background=True, language_model=True)

        def fixes(entry: Entry) -> None:
            self.classifier.require({"train", *entry.needs}, "Fixing")

        def flips(entry: Entry) -> None:
            check_flips(self.classifier, entry, language_model=True)
            if "wordnet" in _opens(entry):
                open_wordnet()
            if "model" in _opens(entry):
                raise Unsupported(
                    f"{entry.name} reads a model that you name, from a folder or the hub, so it is for the command "
                    f"line: `unhans flips --method {entry.name}`."
                )

        found = [_described(entry, explains) for entry in attribution]
        ways = tuple(
            KnownFix(
                _described(entry, fixes),
                tuple(entry.facts["reads"]),
                float(entry.facts.get("cost", 1.0)),
                bool(entry.facts.get("cheap", False)),
            )
            for entry in sorted(fix, key=lambda entry: entry.name != DEFAULT)  # the usual one first
        )
        told = KnownFixes(ways, tuple(map(_option, TRAINING)))
        generators = sorted(counterfactual, key=lambda entry: entry.name != FLIPPING)
        hunts = KnownFlips(
            tuple(_for_the_browser(entry, _described(entry, flips)) for entry in generators),
            tuple(map(_option, SEARCH)),
            tuple(_described(entry, lambda _: None) for entry in rationale),
        )
        self.keep_setting("audits", TypeAdapter(KnownAudits).dump_python(self._known_audits(), mode="json"))
        self.keep_setting("traces", TypeAdapter(KnownTraces).dump_python(self._known_traces(), mode="json"))
        self.keep_setting("methods", TypeAdapter(list[Method]).dump_python(found, mode="json"))
        self.keep_setting("fixes", TypeAdapter(KnownFixes).dump_python(told, mode="json"))
        self.keep_setting("flips", TypeAdapter(KnownFlips).dump_python(hunts, mode="json"))
        self.keep_setting("methods_of", known_to)

    def _known_traces(self) -> KnownTraces:
        """What the registry says about tracing, patterns, copies and doubts."""
        pairs = self.table.at(0).pair is not None

        def traces(entry: Entry) -> None:
            self._check_traces(self.classifier, entry)

        def fits(entry: Entry) -> None:
            if entry.facts.get("on") == "pair" and not pairs:
                raise Unsupported(f"{entry.name} is about pairs of texts, and these are single ones.")

        def copies(entry: Entry) -> None:
            if reason := available(entry):
                raise Unsupported(reason)
            if pairs and entry.facts.get("single_texts"):
                raise Unsupported(f"{entry.name} is for single texts, and these are pairs.")

        def doubts(entry: Entry) -> None:
            self.classifier.require(entry.needs, entry.name)

        def told(family: Registry, check: Callable[[Entry], None], first: str = "") -> tuple[Method, ...]:
            entries = sorted(family, key=lambda entry: entry.name != first)
            return tuple(_for_the_browser(entry, _described(entry, check)) for entry in entries)

        return KnownTraces(
            methods=told(influence, traces, TRACING),
            heuristics=told(heuristic, fits),
            augmentations=told(augmentation, copies, AUGMENTING),
            doubts=told(doubt, doubts),
            copies_per_point=COPIES_PER_POINT,
        )

    def _known_audits(self) -> KnownAudits:
        """What the registry says about checks and bugs."""
        pairs, trained, groups = self.table.at(0).pair is not None, bool(self.trains_on()), len(self.groups_to_train())

        def looks(entry: Entry) -> None:
            self.classifier.require(entry.needs, entry.name)
            if entry.facts.get("on", "any") not in ("any", "pair" if pairs else "single"):
                raise Unsupported(f"{entry.name} is about {'single texts' if pairs else 'pairs of texts'}.")
            if entry.facts.get("trained") and not trained:
                raise Unsupported(f"{entry.name} compares with training examples, and no labelled example is one.")

        def plants(entry: Entry) -> None:
            self.classifier.require({"train", *entry.needs}, "The lab")
            if reason := lab.obstacle(entry, groups, other=self.parent_of(self.current.id) is not None):
                raise Unsupported(f"{entry.name} cannot be planted here: {reason}")
            if reason := available(entry):
                raise Unsupported(reason)

        return KnownAudits(
            checks=tuple(_described(entry, looks) for entry in _in_running_order()),
            bugs=tuple(_described(entry, plants) for entry in bug),
        )

    def rank(
        self,
        label: str,
        method: str = "leave_one_out",
        *,
        examples: Sequence[Example] | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> tuple[WordRanking, Suspects]:
        """The words that speak for a label, and which of them to look at first; both are kept.

        All of the project's examples are explained for that label; of many, some are drawn.
        """
        chosen = list(examples) if examples is not None else sample(self.examples, _RANKED, seed)
        found = self.explain(
            method, label, examples=chosen, seed=seed, progress=progress, cancelled=cancelled, **options
        )
        cache = self.cache if self.classifier.lasting else None
        predictions = self.classifier.predict(chosen, cache=cache, cancelled=cancelled)
        ranking = rank_words(found, label=label, examples=chosen, predictions=predictions, order="total")
        worst = suspects(
            self.classifier,
            chosen,
            found,
            label=label,
            keep=_SUSPECTS,
            progress=progress,
            cancelled=cancelled,
            cache=cache,
        )
        alike = self.alike(attribution[method], options, label, "word", seed)
        if self.classifier.lasting:
            self.explained.rank(alike, ranking, worst.words)
        return ranking, worst

    def background(self, seed: int = 0) -> list[Example]:
        """Some training examples, for methods that compare with them; of all examples if no split is for training."""
        return sample(self.examples.split("train") or self.examples, _BACKGROUND, seed)

    def language_model(
        self, *, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> LanguageModel:
        """The project's masked language model; the first time, one is fitted on its texts (about a minute) and kept."""
        if self._language_model is None:
            folder = self.folder / _LANGUAGE_MODEL
            if folder.exists():
                self._language_model = LanguageModel.open(folder)
            else:
                texts = [part for example in sample(self.examples, _TEXTS, 0) for part in example.parts][:_TEXTS]
                self._language_model = LanguageModel.fit(texts, watch=Watch(progress=progress, cancelled=cancelled))
                self._language_model.save(folder)
        return self._language_model

    # -- flipping

    def rationales(
        self,
        examples: Sequence[Example] | None = None,
        method: str = "top_share",
        *,
        attribution: str = "leave_one_out",
        explain: Mapping[str, Any] | None = None,
        target: str | int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> list[Rationale]:
        """Which words the model may be said to use, for every example given or all of the project's.

        They are chosen from explanations by `attribution` with the options `explain`, which are kept; `options` are
        those of the rationale.
        """
        rationale[method].settings(options)  # before the work, not after it
        wanted = list(self.examples if examples is None else examples)
        asked: dict[str, Any] = dict(explain or {})
        made = self.explain(
            attribution, target, examples=wanted, seed=seed, progress=progress, cancelled=cancelled, **asked
        )
        return [rationale_of(one, text=e, method=method, **options) for one, e in zip(made, wanted, strict=True)]

    def find_flips(
        self,
        examples: Sequence[Example] | None = None,
        method: str = FLIPPING,
        *,
        target: str | int | None = None,
        editable: Mapping[str, Collection[int]] | None = None,
        reads: Mapping[str, Collection[int]] | None = None,
        start: Mapping[str, Sequence[Edit]] | None = None,
        keep: int = 1,
        search: Mapping[str, Any] | None = None,
        seed: int = 0,
        by: str = "",
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Counterfactuals:
        """Flips for every example given, or for all of the project's; `counterfactuals.find_flips` says what is what.

        They are kept, `by` whom they were asked for, so only searches that were not done before take time. New words
        are those of the model and of the project's texts. Generators and rules that need a language model get the
        project's own, and where there is one it says how much less likely a text became.
        """
        classifier, entry = self._loaded_current(), counterfactual[method]
        wanted, settings = list(self.examples if examples is None else examples), search_settings(search or {})
        check_flips(classifier, entry, language_model=True)
        if "language_model" in entry.asks or settings["fluency"]:
            self.language_model(progress=progress, cancelled=cancelled)
        goal = None if target is None else classifier.labels[classifier.label_number(target)]
        recipe = entry.recipe(options, seed)
        whole = Asked(classifier.revision, recipe, tuple(settings.items()), goal, keep, seed)
        masks = _Masks(editable or {}, reads or {}, start or {})
        searches = {example.id: masks.asked(whole, example.id) for example in wanted}
        places = self._places(wanted) if classifier.lasting else {}
        found = self._known_flips(searches, places)
        missing = list({example.id: example for example in wanted if example.id not in found}.values())
        for first in range(0, len(missing), _FLIPPED_AT_ONCE):
            some = missing[first : first + _FLIPPED_AT_ONCE]
            made = find_flips(
                classifier,
                some,
                method=method,
                target=target,
                **masks.of(some),
                keep=keep,
                search=search,
                language_model=self._fitted_language_model(),
                lexicon=self.lexicon,
                seed=seed,
                progress=_shifted(progress, first, len(missing)),
                cancelled=cancelled,
                cache=self.cache if classifier.lasting else None,
                **options,
            )
            told = scored(
                made,
                {example.id: example for example in some},
                language_model=self._fitted_language_model(),
                classifier=classifier,
                cancelled=cancelled,
            )
            own = {example.id: tuple(one for one in told if one.example == example.id) for example in some}
            kept = [Find(searches[e.id], places[e.id], e, own[e.id]) for e in some if e.id in places]
            self.flip_table.keep(by, kept)
            # what was found before by another search stays as people rated it, and is what comes back the next time too
            found |= own | self._known_flips(searches, {id_: places[id_] for id_ in own if id_ in places})
        return Counterfactuals(flip for example in wanted for flip in found[example.id])

    @cached_property
    def lexicon(self) -> list[str]:
        """Words of the project's texts, the most frequent first: what people write in such texts."""
        texts = (part for example in sample(self.examples, _TEXTS, 0) for part in example.parts)
        counts = Counter(text[span.start : span.end] for text in texts for span in word_spans(text))
        return [word for word, _ in counts.most_common(_LEXICON) if any(map(str.isalnum, word))]

    def _places(self, examples: Sequence[Example]) -> dict[str, int]:
        """Where those of the examples are that are the project's own, by their ids."""
        known = self.table.find([example.id for example in examples])
        hashes = {id_: example.text_hash for id_, (_, example) in known.items()}
        return {e.id: known[e.id][0] for e in examples if hashes.get(e.id) == e.text_hash}

    def _known_flips(
        self, searches: Mapping[str, str], places: Mapping[str, int]
    ) -> dict[str, tuple[Counterfactual, ...]]:
        """What was found before by the same searches (their ids, by example)."""
        done = self.flip_table.found({place: searches[id_] for id_, place in places.items()})
        stored = self.flip_table.some(flip for ids in done.values() for flip in ids)
        return {id_: tuple(stored[flip].flip for flip in done[place]) for id_, place in places.items() if place in done}

    def _fitted_language_model(self) -> LanguageModel | None:
        """The project's language model, if it has been fitted."""
        there = self._language_model is not None or (self.folder / _LANGUAGE_MODEL).exists()
        return self.language_model() if there else None

    # -- tracing

    def taught_examples(self, revision: str | None = None) -> list[Example]:
        """The training examples with the labels that a revision was taught: corrected ones, where it learnt them.

        Without one (its id), the revision in use. Examples that it was taught to do without, for no label fits them,
        are left out.
        """
        labels = self.taught_labels(revision or self.current.id)
        own = (replace(e, label=labels[e.id]) if e.id in labels else e for e in self.training_examples())
        return [example for example in own if example.label is not None]

    def trace(
        self,
        examples: Sequence[Example] | None = None,
        method: str = TRACING,
        *,
        anchors: int = 5,
        wrong: bool = True,
        split: str | None = None,
        heuristic: str | None = None,
        heuristic_options: Mapping[str, Any] | None = None,
        of: Of = "label",
        top: int = 10,
        seed: int = 0,
        by: str = "",
        leads: bool = True,
        on: str | Crew = HERE,
        workers: int | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Influences:
        """The training examples behind every example given, or behind some that are chosen (`choose_anchors`).

        `influences.trace` says what the rest means. They are kept, `by` whom they were asked for, so that only what was
        not traced like this before takes time; if it `leads`, everybody sees it in place of older ones. What the method
        works out of the training examples is kept too, until another revision is traced.
        """
        classifier, entry = self._loaded_current(), influence[method]
        self._check_traces(classifier, entry)
        recipe = trace_recipe(entry, options, of, seed)
        if top < 1:
            raise BadOption(f"top must be at least 1, not {top}.")
        if examples is None:
            chosen = {"n": anchors, "wrong": wrong, "heuristic": heuristic, "options": heuristic_options, "seed": seed}
            examples = self._anchors(split, chosen, progress, cancelled)
        asked, places = asked_key(recipe, top), self._own_places(examples) if classifier.lasting else {}
        known = self.trace_table.known(asked, classifier.revision, list(places.values()))
        kept = {name: known[place] for name, place in places.items() if place in known}
        found = {name: one.influence for name, one in kept.items() if one.text_hash == name[1]}
        missing = list({_named(example): example for example in examples if _named(example) not in found}.values())
        if missing:
            spread = {"on": on, "workers": workers, **options}
            made = self._traced(missing, entry, recipe, seed, progress, cancelled, {"top": top, "of": of}, spread)
            for some in made:
                stored = [(places[_named(e)], e, one) for e, one in some if _named(e) in places]
                self.trace_table.keep(by, asked, stored, leads=leads)
                found |= {_named(example): one for example, one in some}
        if leads:  # what was there before is what everybody sees now
            again = {_named(example): example for example in examples if _named(example) in kept}
            stored = [(places[name], example, found[name]) for name, example in again.items()]
            self.trace_table.keep(by, asked, stored, leads=True)
        return Influences(found[_named(example)] for example in examples)

    def _traced(  # noqa: PLR0917 - the inside of `trace`
        self,
        missing: Sequence[Example],
        entry: Entry,
        recipe: Recipe,
        seed: int,
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
        how: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> Iterator[list[tuple[Example, Influence]]]:
        """Influences in the order of the examples, some at a time; the training examples are looked at before."""
        shares = Shares(progress, [4, 1])  # looking at the training examples is most of it
        with self._index_folder() as folder:
            index = prepare(
                self.classifier,
                self.taught_examples(),
                method=entry.name,
                folder=folder if self.classifier.lasting else None,
                checkpoints=self._checkpoints() if "checkpoints" in entry.asks else (),
                seed=seed,
                progress=shares.next(),
                cancelled=cancelled,
                **options,
            )
            telling, at_once = How(shares.next(), cancelled), int(entry.facts.get("at_once", _TRACED_AT_ONCE))
            for first in range(0, len(missing), at_once):
                some = missing[first : first + at_once]
                if cancelled is not None and cancelled():
                    raise Cancelled(f"Stopped after {first:,} of {len(missing):,}. What was found so far is kept.")
                now = telling.part(first, first + len(some), len(missing))
                yield list(zip(some, index.trace(some, recipe, at_once=at_once, how=now, **how), strict=True))

    def _anchors(
        self,
        split: str | None,
        how: Mapping[str, Any],
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
    ) -> list[Example]:
        """Some examples of a split, or of all that the model was not trained on; they are predicted, if need be."""
        rest = [e for e in self.examples if (not self.parts.trains(e) if split is None else e.split == split)]
        if not rest:
            raise BadData(
                "All examples are for training, so none is left that could be an anchor. Name a split, or examples."
                if split is None
                else f"There is no example in the split {split[:100]!r}. There is: {', '.join(self.examples.splits)}."
            )
        said = {one.example: one for one in self.table.predictions(self.classifier.revision)}
        if unknown := [example for example in rest if example.id not in said]:
            said |= {one.example: one for one in self._predict_with(self.classifier, progress, cancelled, unknown)}
        return choose_anchors(rest, said, **how)

    def _own_places(self, examples: Sequence[Example]) -> dict[_Named, int]:
        """Where those of the examples are that are the project's own, text and label."""
        known = self.table.find([example.id for example in examples])
        places = {_named(example): place for place, example in known.values()}
        return {_named(e): places[_named(e)] for e in examples if _named(e) in places}

    def _check_traces(self, classifier: Classifier, entry: Entry) -> None:
        """Refuse a method that this classifier cannot serve, or that asks for more than the project has."""
        check_traces(classifier, entry)
        if "checkpoints" in entry.asks and not self._earlier():
            raise Unsupported(
                f"{entry.name} adds up over revisions that the model in use was trained on from, and there is none "
                "before it. It can be used once a fix is published; until then use another method."
            )

    def _earlier(self) -> list[tuple[str, float]]:
        """Names of the revisions that the model in use was made from, oldest first, with the rate they were left by."""
        found: list[tuple[str, float]] = []
        names = {revision.id: name for name, revision in self._listed()}
        line = ancestors(self.current, [revision for _, revision in self._listed()])
        for younger, older in pairwise(line):
            rate = dict(younger.recipe.options).get("learning_rate")
            if isinstance(rate, float):
                found.append((names[older.id], rate))
        return found[::-1]

    def _checkpoints(self) -> list[tuple[TransformerClassifier, float]]:
        """Earlier states of the model in use, with the rate they were left by."""
        states = [(self.classifier_of(name), rate) for name, rate in self._earlier()]
        return [(state, rate) for state, rate in states if isinstance(state, TransformerClassifier)]

    @contextmanager
    def _index_folder(self) -> Iterator[Path]:
        """Where influence keeps what it worked out for the model in use; that of other revisions is removed.

        What another process is using stays: each holds a lock that the system lets go of when it dies.
        """
        root = self.folder / "cache" / "influences"
        own = root / self.classifier.revision
        handle = _hold(own)
        try:
            for other in root.iterdir():
                if other != own:
                    _remove_unused(other)
            yield own
        finally:
            os.close(handle)

    def augment(
        self,
        examples: Sequence[Example] | None = None,
        method: str = AUGMENTING,
        *,
        copies_per_point: int | None = None,
        people: Sequence[str] | None = None,
        check: Check = "none",
        seed: int = 0,
        by: str = "",
        replaces: bool = True,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
        **options: Any,
    ) -> list[Copy]:
        """Copies of the training examples that people rated, of all or of those given: the ones that stand now.

        They are kept; none is or looks like a text that is held out. Those that were made otherwise before, and that
        nobody has edited, give way, unless they shall not be replaced. What people deleted is not made again.

        Copies have the label that people say is right. `copies_per_point` is the project's from then on, unless nothing
        is to be replaced; without it, it is the number that was last asked for.
        """
        per_point = self.copies_per_point if copies_per_point is None else copies_per_point
        entry = augmentation[method]
        if reason := available(entry):
            raise Unsupported(reason)
        recipe = copies_recipe(entry, options, check, seed)
        sources = self._sources(examples, people, per_point)
        if (asked := sum(n for _, _, n in sources)) > _COPIES:
            raise BadOption(f"That would be {asked:,} copies, and at most {_COPIES:,} are made. Ask for fewer a point.")
        if "language_model" in entry.asks or check == "language_model":
            self.language_model(progress=progress, cancelled=cancelled)
        if replaces:
            self.keep_setting("copies_per_point", per_point)
        there: dict[int, list[StoredCopy]] = defaultdict(list)
        for one in self.copy_table.all():
            there[one.place].append(one)
        todo = [one for one in sources if _short(there[one[0]], recipe, one, replaces)]
        held_out = Seen(examples=(example for example in self.examples if not self.parts.trains(example)))
        for first in range(0, len(todo), _COPIED_AT_ONCE):
            some = todo[first : first + _COPIED_AT_ONCE]
            made = augment(
                [source for _, source, _ in some],
                {source.id: n for _, source, n in some},
                method=method,
                language_model=self._fitted_language_model(),
                classifier=self._loaded_current(),
                check=check,
                tested=held_out,
                seed=seed,
                progress=_shifted(progress, first, len(todo)),
                cancelled=cancelled,
                **options,
            )
            new: list[tuple[int, Example, Copy]] = []
            old: list[str] = []
            for place, source, n in some:
                stays = [one for one in there[place] if _stays(one, recipe, source, replaces)]
                old += [one.id for one in there[place] if one not in stays]
                known = {one.id for one in stays}
                fresh = [copy for copy in made if copy.source == source.id and copy.id not in known]
                new += [(place, source, copy) for copy in fresh[: max(0, n - len(stays))]]
            self.copy_table.keep(by, new, instead_of=old)
        ids = {source.id for _, source, _ in sources}
        return [copy for copy in self.copies(people) if copy.source in ids]

    def _sources(
        self, examples: Sequence[Example] | None, people: Sequence[str] | None, per_point: int
    ) -> list[tuple[int, Example, int]]:
        """Place, example and number of copies of each training example that people's ratings ask copies of."""
        if per_point < 1:
            raise BadOption(f"copies_per_point must be at least 1, not {per_point}.")
        wanted, labels = self.copies_wanted(people, per_point), self.corrected(people)
        found = self.table.find([id_ for id_, n in wanted.items() if n])
        chosen = None if examples is None else {example.id for example in examples}
        rated = [
            (place, replace(example, label=labels.get(id_, example.label)), wanted[id_])
            for id_, (place, example) in found.items()
            if self.parts.trains(example) and (chosen is None or id_ in chosen)
        ]
        sources = [one for one in rated if one[1].label is not None]
        if rated and not sources:
            raise BadData(
                "People say that no label fits the training examples that were rated. They are trained without, so no "
                "copies are made of them."
            )
        if not sources:
            which = "No training example was" if chosen is None else "None of these training examples was"
            raise BadData(
                f"{which} rated for being similar to another text, so there is nothing to make copies of. Trace some "
                "examples, and say how similar the training examples behind them are."
            )
        return sorted(sources)

    def _copies_for(self, people: Sequence[str] | None, follow: Follow) -> list[Copy]:
        """The copies that stand; of rated training examples that have none, some are made first."""
        try:
            rated = self._sources(None, people, self.copies_per_point)
        except BadData:
            return self.copies(people)  # none, and the fix says what is missing
        standing = {copy.source for copy in self.copies(people)}
        bare = [example for _, example, _ in rated if example.id not in standing]
        if bare:
            method = self._usual_augmentation()
            follow.step(f"Making copies with {method}")
            self.augment(
                bare,
                method,
                people=people,
                replaces=False,
                progress=follow.progress,
                cancelled=follow.cancelled,
            )
        return self.copies(people)

    def _usual_augmentation(self) -> str:
        """The first way to make copies that works on this machine, and for these texts."""
        pairs = self.table.at(0).pair is not None
        names = (AUGMENTING, *(name for name in _WAYS_TO_COPY if name in augmentation.names))
        entries = [augmentation[name] for name in names]
        fitting = [e.name for e in entries if not available(e) and not (pairs and e.facts.get("single_texts"))]
        if not fitting:
            raise Unsupported(f"No copies can be made on this machine. {available(entries[0])}")
        return fitting[0]

    def doubts(
        self,
        signs: Sequence[str] | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Doubts:
        """The training examples by how doubtful their labels are, the most doubtful first (`doubts.doubts`).

        The ranking is kept, in place of the revision's earlier one.
        """
        classifier, train = self._loaded_current(), self.taught_examples()
        if not train:
            raise BadData("No labelled example is for training, so there is no label to doubt.")
        with self._index_folder() as folder:
            found = doubts(
                classifier,
                train,
                signs=signs,
                folder=folder if classifier.lasting else None,
                seed=seed,
                progress=progress,
                cancelled=cancelled,
            )
        if classifier.lasting:
            known = self.table.find([one.example for one in found])
            self.doubt_table.keep(classifier.revision, [(*known[one.example], one) for one in found])
        return found

    # -- auditing

    def audit(
        self,
        checks: Sequence[str] | None = None,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        method: str | None = None,
        revision: str | None = None,
        limit: int = 5000,
        seed: int = 0,
        by: str = "local",
        job: str | None = None,
        on: str | Crew = HERE,
        workers: int | None = None,
        on_part: Callable[[Audit], None] | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Audit:
        """What can be said against a revision (its name), or the one in use, on the examples it was not trained on.

        `unhans.audit.audit` says what the rest means. It is kept, `by` whom and for which `job` it was asked for, as it
        comes. One that was stopped goes on with the checks that are missing, if the very same is asked for again.
        """
        name = revision or self.current_name
        classifier, given = self.classifier_of(name), options or {}
        begun = _nothing_yet(classifier.revision, checks, given, seed)
        examples = [example for example in self.examples if not self.parts.trains(example)]
        if not examples:
            raise BadData("All examples are for training, so none is left to look at. Add a split called test.")
        asked = audit_key(
            [__version__, classifier.revision, len(self.examples), method, limit, seed],
            [run.check.key for run in begun.checks],
        )
        former = self.audit_table.unfinished(asked) if classifier.lasting else None
        if former is None:
            id_, so_far = self.audit_table.begin(begun, asked=asked, by=by, job=job), begun
        else:
            id_, so_far = former.facts.id, former.audit
            self.audit_table.keep(id_, so_far, job=job)
        missing = [run.check.name for run in so_far.checks if run.state == "waiting"]
        if needs_language_model(missing, method=method, options=given):
            self.language_model(progress=progress, cancelled=cancelled)

        def keep(part: Audit) -> None:
            whole = _joined(so_far, part)
            self.audit_table.keep(id_, whole)
            if on_part is not None:
                on_part(whole)

        with self._index_folder() as folder:
            made = audit(
                classifier,
                examples,
                train=self.taught_examples(classifier.revision),
                checks=missing,
                options={name: chosen for name, chosen in given.items() if name in missing},
                language_model=self._fitted_language_model(),
                method=method,
                limit=limit,
                seed=seed,
                cache=self.cache if classifier.lasting else None,
                folder=folder if classifier.lasting and classifier.revision == self.current.id else None,
                on=on,
                workers=workers,
                on_part=keep,
                progress=progress,
                cancelled=cancelled,
            )
        return _joined(so_far, made)

    def lab(
        self,
        bugs: Sequence[lab.Bug] | None = None,
        methods: Sequence[lab.Method] | str | None = None,
        *,
        examples: int = 100,
        limit: int = _LAB_TEXTS,
        seed: int = 0,
        by: str = "local",
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Lab:
        """Which explanation sees which planted bug, on the model in use and its data; it is kept.

        `unhans.lab.run` says what is what; without `methods`, the usual ones are compared. At most `limit` training
        examples, drawn by the seed, are what its models are trained on. One that was stopped goes on with the bugs that
        are missing, if the very same is asked for again.
        """
        classifier, parent = self.trainable(), self.parent_of(self.current.id)
        named = [] if methods is None or isinstance(methods, str) else methods
        if any("language_model" in attribution[one if isinstance(one, str) else one[0]].asks for one in named):
            self.language_model(progress=progress, cancelled=cancelled)
        taught = self.taught_examples()
        train = sample(taught, limit, seed)
        found = lab.run(
            classifier,
            train,
            [example for examples in self.verifying().values() for example in examples],
            bugs=bugs,
            methods=methods or "usual",
            other=None if parent is None else self.classifier_of(self.revision_names()[parent]),
            examples=examples,
            language_model=self._fitted_language_model(),
            seed=seed,
            folder=self.folder / "cache" / "lab" if classifier.lasting else None,
            progress=progress,
            cancelled=cancelled,
        )
        if len(train) < len(taught):
            told = f"Its models were trained on {len(train):,} of {len(taught):,} examples, drawn by the seed {seed}."
            found = replace(found, notes=(*found.notes, told))
        found = replace(found, at=now())
        self.lab_table.keep(found, by=by)
        return found

    # -- fixing

    def mend(
        self,
        fix: str = DEFAULT,
        *,
        people: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        seed: int = 0,
        seeds: int = 1,
        rivals: Sequence[str] = (),
        strengths: Sequence[float] = (),
        expectations: Sequence[str] = (),
        on: Mapping[str, Sequence[Example]] | None = None,
        follow: Follow | None = None,
    ) -> tuple[str, Report]:
        """A revision that was taught the feedback, proposed and not published: its name, and what it changed.

        It is trained on what `parts` says is for training and verified on the rest, and on further sets `on`.
        `rivals` (other fixes), `strengths` and further `seeds` are trained to be measured beside it, and not kept. Work
        that was killed goes on where it stopped, if it is asked for again.
        """
        follow = follow or Follow()
        check_expectations(expectations)
        parent, before, feedback = self.current_name, self._loaded_current(), self.usable_feedback(people)
        runs = planned(fix, options or {}, seed=seed, seeds=seeds, rivals=rivals, strengths=strengths)
        train, validation, sets = self._divided(on or {})
        flips = {id_: stored.flip for id_, stored in self.flip_table.some(by_flip(feedback)).items()}
        tested = [example for examples in sets.values() for example in examples]
        work = Round(before, train, validation, feedback, dict(training or {}), flips, tested=tested)
        work.check(runs[0])
        if any("neighbour_rating" in _REGISTRY[run.fix].facts["reads"] for run in runs):
            work = replace(work, copies=self._copies_for(people, follow))
        self.keep_setting("expectations", list(expectations))
        verifying = sum(map(len, sets.values())) * (len(runs) + 4)
        weights = [work.passes(runs[0]), len(self.examples), *map(work.passes, runs[1:]), verifying]
        shares = Shares(follow.progress, weights)
        texts = [(one.id, one.label) for one in work.copies]
        what = (before.revision, [one.id for one in feedback], work.training, [asdict(run) for run in runs], texts)
        with checkpoints(self.folder / _CHECKPOINTS, *what) as folder:
            first = work.mend(runs[0], folder, follow, shares.next())
            assert first is not None  # the one that counts is made, or raises
            name = self._propose(first, parent, follow)
            follow.step(f"Predicting with {name}")
            for _ in self._predict_with(first.classifier, shares.next(), follow.cancelled):
                pass
            others = [(run, work.mend(run, folder, follow, shares.next())) for run in runs[1:]]
            report = self._verify(before, first, others, sets, feedback, expectations, seed, follow, shares.next())
            report = replace(report, notes=(*report.notes, *work.notes), at=now())
            self.keep_report(parent, name, report)
        return name, report

    def compare_revisions(
        self,
        before: str,
        after: str,
        expectations: Sequence[str] = (),
        *,
        on: Mapping[str, Sequence[Example]] | None = None,
        follow: Follow | None = None,
    ) -> Report:
        """What changed from one revision to another, by their names; it is kept."""
        follow = follow or Follow()
        check_expectations(expectations)
        older, newer = self.named(before), self.named(after)
        follow.step("Loading the models")
        first, second = self.classifier_of(before), self.classifier_of(after)
        _, _, sets = self._divided(on or {})
        follow.step(f"Comparing {after} with {before}")
        report = verify(
            first,
            second,
            sets,
            feedback=self._taught(newer),
            expectations=expectations,
            fix=newer.recipe if newer.parent == older.id else None,
            progress=follow.progress,
            cancelled=follow.cancelled,
            cache=self.cache,
        )
        known = self.reports.one(before, after)
        report = replace(report, rivals=known.rivals if known else (), at=now())  # they were trained for it: kept
        self.keep_setting("expectations", list(expectations))
        self.keep_report(before, after, report)
        return report

    def classifier_of(self, name: str) -> Classifier:
        """A revision by its name, loaded."""
        if name == self.current_name:
            return self._loaded_current()
        folder = self.named(name).folder
        return load(self.folder / folder if folder else self.facts["model"])

    def publish(self, name: str, *, expects: str | None = None, even_so: bool = False) -> Revisions:
        """Make a revision the one in use (see `Records.publish`)."""
        found = super().publish(name, expects=expects, even_so=even_so)
        self.__dict__.pop("classifier", None)
        return found

    def roll_back(self, *, expects: str | None = None) -> Revisions:
        """Make the revision the one in use that was so before."""
        found = super().roll_back(expects=expects)
        self.__dict__.pop("classifier", None)
        return found

    def export(
        self,
        revision: str | None = None,
        folder: Path | None = None,
        *,
        parts: Sequence[str] = ("model", "feedback", "report"),
        push_to: str | None = None,
    ) -> Exported:
        """A revision, the feedback and the report in a folder to take away: whole and checked, or not there at all.

        By default of the revision in use, into a new folder of `exports/`. With `push_to`, the id of a repository on
        the Hugging Face hub, it is the model alone, and it is uploaded there.
        """
        name = revision or self.current_name
        target = folder or self.folder / "exports" / _free_name(self.exports, name)
        chosen, (compared, report) = self.named(name), self.reports.first().get(name, ("", None))
        classifier, feedback = self.classifier_of(name), list(self.log.entries())
        facts = facts_of(self.name, examples=self.examples, feedback=feedback, revision=chosen, report=report)
        if push_to is not None:
            return export_model(classifier, target, card=facts, check_on=self.examples, push_to=push_to)
        return export_bundle(
            target,
            classifier=classifier,
            report=report,
            feedback=feedback,
            examples=self.examples,
            parts=parts,
            revision=chosen,
            card=facts,
            title=f"{self.name}: {compared} to {name}",
        )

    def export_flips(self, revision: str | None = None, folder: Path | None = None, *, names: bool = False) -> Exported:
        """The flips of a revision with the ratings of them, in a folder to take away: whole and checked, or not there.

        By default of the revision in use, into a new folder of `exports/`; who rated is told only if `names` are asked
        for.
        """
        name = revision or self.current_name
        target = folder or self.folder / "exports" / _free_name(self.exports, f"{name}-flips")
        ratings = self.log.opinions(kinds=("flip_rating", "ruling"))
        return export_flips(self.flips(name), ratings, self.examples, target, names=names)

    def training_examples(self) -> list[Example]:
        """The labelled examples that a fix may learn from."""
        return [example for example in self.examples if self.parts.trains(example)]

    def verifying(self) -> dict[str, list[Example]]:
        """The sets of labelled examples that models are verified on, by name."""
        return self._divided({})[2]

    def trainable(self) -> TransformerClassifier:
        """The model in use, if it can be trained; `Unsupported` says what would work if it cannot."""
        classifier = self._loaded_current()
        classifier.require({"train"}, "Fixing")
        assert isinstance(classifier, TransformerClassifier)  # `train` has made sure
        return classifier

    def _loaded_current(self) -> Classifier:
        """The model in use, also if another process has published one since this was opened."""
        if self.classifier.revision != self.current.id:
            self.__dict__.pop("classifier", None)
        return self.classifier

    def _divided(
        self, on: Mapping[str, Sequence[Example]]
    ) -> tuple[list[Example], list[Example] | None, dict[str, list[Example]]]:
        """Examples to train on, those that choose the epoch (None: the fix sees to it), and those that verify."""
        train, validation, sets = [], [], dict[str, list[Example]]()
        for example in self.examples:
            if self.parts.trains(example):
                train.append(example)
            elif self.parts.validates(example):
                validation.append(example)
            elif name := self.parts.set_of(example):
                sets.setdefault(name, []).append(example)
        sets |= {name: list(examples) for name, examples in on.items()}
        if not sets:
            raise BadData(
                "No labelled example is left to verify with. Add a split called test, or more labelled examples."
            )
        return train, sample(validation, _VALIDATED, 0) or None, sets

    def _propose(self, made: Mended, parent: str, follow: Follow) -> str:
        """Keep a trained model as a revision that nobody uses yet. The very same is kept once, however often made."""
        own = made.classifier
        new = Revision(own.revision, self.named(parent).id, made.recipe, own.labels, made.used)
        for name, known in self._listed():
            if replace(known, folder=None, at=None) == new and self.models.problem(name) is None:
                return name
        follow.step("Keeping the new version of the model")
        size = sum(weight.numel() * weight.element_size() for weight in own.model.parameters())
        while True:
            name = _next_name([path.name for path in self.models.folder.iterdir()])
            facts = replace(new, folder=f"models/{name}", at=now())
            try:
                self.models.add(name, own.save_into, {"revision": json.loads(to_json(facts))}, needs=size)
            except Conflict:
                continue  # another process has just taken this name
            return name

    def _verify(  # noqa: PLR0917 - the second half of `mend`
        self,
        before: Classifier,
        made: Mended,
        others: Sequence[tuple[Run, Mended | None]],
        sets: Mapping[str, Sequence[Example]],
        feedback: Sequence[Feedback],
        expectations: Sequence[str],
        seed: int,
        follow: Follow,
        progress: Progress,
    ) -> Report:
        follow.step("Verifying: before and after")
        there = [(run, other) for run, other in others if other is not None]
        return verify(
            before,
            made.classifier,
            sets,
            feedback=feedback,
            expectations=expectations,
            fix=made.recipe,
            runs=[other.classifier for run, other in there if run.role == "seed"],
            rivals=[(other.recipe, other.classifier) for run, other in there if run.role == "rival"],
            seed=seed,
            progress=progress,
            cancelled=follow.cancelled,
            cache=self.cache,
        )

    def _taught(self, revision: Revision) -> list[Feedback]:
        """The feedback that a revision was taught, as far as it stands; of one that was taught none, what is usable."""
        standing = self.log.opinions(kinds=USABLE)
        return [one for one in standing if one.id in revision.feedback] or self.usable_feedback()

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {self.table.count()} examples, {len(self.revisions)} revisions)"


def _named(example: Example) -> _Named:
    """What tells an example that is traced from others: two texts may have the same id."""
    return example.id, example.text_hash, example.label


def _in_running_order() -> list[Entry]:
    """All checks, the cheapest first."""
    return sorted(check, key=lambda entry: (entry.facts["cost"], entry.facts["order"]))


def _nothing_yet(
    revision: str, checks: Sequence[str] | None, options: Mapping[str, Mapping[str, Any]], seed: int
) -> Audit:
    """An audit of which all checks wait."""
    names = None if checks is None else {check[name].name for name in checks}
    entries = [entry for entry in _in_running_order() if names is None or entry.name in names]
    if stray := sorted(set(options) - {entry.name for entry in entries}):
        raise BadOption(f"There are options for {stray[0][:50]!r}, which is not among the checks asked for.")
    runs = [
        CheckRun(entry.recipe(options.get(entry.name, {}), seed), str(entry.facts["title"]), "waiting")
        for entry in entries
    ]
    return Audit(revision, (), tuple(runs), 0, 0, at=now())


def _joined(former: Audit, later: Audit) -> Audit:
    """An audit that was stopped, with the checks that were run since: as if all had been run at once."""
    new = {run.check.name: run for run in later.checks}
    runs = tuple(new.get(run.check.name, run) for run in former.checks)
    findings = sorted(
        (*former.findings, *later.findings),
        key=lambda one: (SEVERITIES.index(one.severity), int(check[one.check.name].facts["order"])),
    )
    recipe = later.recipe
    if recipe is not None:
        every = ", ".join(run.check.name for run in runs)
        options = tuple((name, every if name == "checks" else value) for name, value in recipe.options)
        recipe = replace(recipe, options=options)
    return replace(later, findings=tuple(findings), checks=runs, recipe=recipe, at=former.at)


def _described(entry: Entry, check: Callable[[Entry], None]) -> Method:
    """A member of a family as screens see it; `check` raises if the model cannot do it."""
    try:
        check(entry)
        unusable = ""
    except (Unsupported, BadOption) as reason:
        unusable = str(reason)
    told = describe(entry)
    plain = (told["name"], told["summary"], tuple(told["needs"]), told["paper"], told["random"])
    return Method(*plain, tuple(map(_option, entry.options)), not unusable, unusable)


def _stays(stored: StoredCopy, recipe: Recipe, source: Example, replaces: bool) -> bool:
    """Whether a copy stays when others are made in this way; one under a label that was corrected since does not."""
    if stored.copy.label != source.label:
        return stored.edited or stored.deleted
    return stored.edited or not replaces or stored.copy.recipe == recipe


def _short(there: Sequence[StoredCopy], recipe: Recipe, asked: tuple[int, Example, int], replaces: bool) -> bool:
    """Whether copies must be made so that there are enough; those that people deleted count, for they were made."""
    _, source, wanted = asked
    stays = [one for one in there if _stays(one, recipe, source, replaces)]
    return len(stays) < wanted or len(stays) < len(there)


def _hold(folder: Path) -> int:
    """Make a folder and hold a lock on it, so that nobody removes it; made again if that was done before it was held.

    Of the indexes in it the oldest are removed, if nobody else uses the folder.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        with suppress(BlockingIOError):  # somebody else is at it: too many are removed another time
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # what is under the name now may be another's, who holds it
            kept = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime) if _is_at(handle, folder) else []
            for old in kept[:-_INDEXES]:
                shutil.rmtree(old, ignore_errors=True)
        fcntl.flock(handle, fcntl.LOCK_SH)  # between the two locks, too, somebody may remove it
        if _is_at(handle, folder):
            return handle
        os.close(handle)


def _is_at(handle: int, folder: Path) -> bool:
    """Whether what is open is what is under that name."""
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False


def _remove_unused(folder: Path) -> None:
    """Remove a folder that no other process is using."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # another process was faster
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(handle)


def _has_wordnet() -> bool:
    try:
        open_wordnet()
    except Unsupported:
        return False
    return True


def _for_the_browser(entry: Entry, method: Method) -> Method:
    """Without options that name folders of this machine, or models of a hub: they are not for the browser to set."""
    return replace(method, options=tuple(one for one in method.options if one.name not in _opens(entry)))


def _opens(entry: Entry) -> tuple[str, ...]:
    """The options of a generator that name what it opens; it says so itself."""
    return tuple(entry.facts.get("opens", ()))


def _option(option: Option) -> MethodOption:
    return MethodOption(option.name, option.kind, option.default, option.choices, option.help)


def _next_name(taken: Sequence[str]) -> str:
    """The next free name of a revision: r0, r1, …"""
    numbers = [int(name[1:]) for name in taken if name[:1] == "r" and name[1:].isdecimal()]
    return f"r{max(numbers, default=0) + 1}"


def _free_name(exports: Artefacts, revision: str) -> str:
    taken = {path.name for path in exports.folder.iterdir()} if exports.folder.is_dir() else set()
    return next(name for n in range(1, len(taken) + 2) if (name := f"{revision}-{n}") not in taken)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress through a part of the work, told as progress through all of it."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def sample(examples: Sequence[T], n: int, seed: int) -> list[T]:
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


def _store_model(classifier: Classifier, folder: Path) -> None:
    """The first revision: the weights, if there are weights; other models stay where they are."""
    own = classifier if isinstance(classifier, TransformerClassifier) else None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    stored = f"{folder.name}/{_FIRST}" if own else None
    recipe = Recipe("load", type(classifier).__name__)
    first = Revision(classifier.revision, None, recipe, classifier.labels, folder=stored, at=now)
    versions = Artefacts(folder)

    def write(partial: Path) -> None:
        if own:
            own.save_into(partial)

    versions.add(_FIRST, write, {"revision": json.loads(to_json(first))})
    versions.publish(_FIRST)


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
