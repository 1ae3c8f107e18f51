"""Bulk work: something is found out about each of very many examples, and goes to disk as Parquet.

    done = fill("explained", explaining(classifier, method="integrated_gradients"), iter_examples("reviews.csv"))
    for one in done:            # Attributions, read part by part
        ...

Examples are read as they are needed and rows are written a part at a time, so memory does not grow with their number.
The same call again goes on where it stopped, and finds all of it there when nothing is missing. A crew (`unhans.crew`)
does the parts: this process, or workers of Ray. What a part comes to depends on its examples and the task alone, so
rows are the same whoever made them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unhans.attributions import attribute, attribution, choose_engine, terms_of
from unhans.attributions import check_usable as check_attributions
from unhans.bulk._folder import Folder, Made, Part, files_of, held, made_of, read_manifest
from unhans.bulk._tables import KINDS
from unhans.counterfactuals import check_usable as check_flips
from unhans.counterfactuals import counterfactual, find_flips, search_settings
from unhans.crew import HERE, Crew, check_crew, crew
from unhans.engines import Choice
from unhans.errors import BadOption, Cancelled, Conflict, NotFound
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.scoring import How
from unhans.store import batches
from unhans.text import Unit
from unhans.types import Example, Terms, to_json

__all__ = ["Filled", "Task", "explaining", "fill", "flipping", "predicting", "reopen", "settle"]

PART = 1000  # examples in a part: what a stop can cost, and what a worker is given at once
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Task:
    """What is found out about each example, and all that it depends on beside the example."""

    kind: str  # of table
    facts: Mapping[str, Any]  # in plain JSON: another task differs in one of them
    work: _Finding
    lasting: bool = True  # whether equal facts surely mean equal rows, in the next process too
    engine: str | None = None  # asked for, and not tried yet: `settle` does that


@dataclass(frozen=True)
class Filled:
    """A folder of rows: iterating gives the nouns, in the order of the examples, held a part at a time."""

    folder: Path
    kind: str
    facts: Mapping[str, Any]
    examples: int | None  # None: it is not all there yet
    computed: int = 0  # examples that the call that made it found something out about

    @property
    def files(self) -> list[Path]:
        """The parts that are there, in order; pyarrow, pandas, Polars and DuckDB read them."""
        return files_of(self.folder)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of one part after the other."""
        for file in self.files:
            yield pq.read_table(file, partitioning=None)

    def __iter__(self) -> Iterator[Any]:
        for table in self.tables():
            for row in table.to_pylist():
                yield KINDS[self.kind].noun(row, self.facts)


def reopen(folder: str | Path) -> Filled:
    """A folder that `fill` wrote, or began to write."""
    path = Path(folder).expanduser()
    manifest = read_manifest(path)
    if manifest is None:
        raise NotFound(f"{folder} is not a folder of parts: it has no manifest.json.")
    examples = manifest["data"]["examples"] if manifest["data"] else None
    return Filled(path, manifest["kind"], manifest["facts"], examples)


def fill(
    folder: str | Path,
    task: Task,
    examples: Iterable[Example],
    *,
    part: int | None = None,
    total: int | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Filled:
    """Find something out about each example, and write it to the folder as Parquet files of `part` examples.

    A folder that was begun by the same task goes on where it stopped: its parts are read over, and their texts must be
    the same. One begun by another task is refused and left as it is. `on` and `workers` are what `unhans.crew.crew`
    takes. `progress` hears the examples done and the `total`, if it is known. After a stop, what is written counts.
    """
    path = Path(folder).expanduser()
    if isinstance(on, str):
        check_crew(on, workers)
    if not task.lasting and read_manifest(path) is not None:
        raise Conflict(
            f"{path} was begun before, and whether the model is still the same cannot be told. Nothing was changed; "
            "load the model with a name, or choose a new folder."
        )
    if task.engine is not None:
        stream = iter(examples)
        ahead = list(islice(stream, PART))
        task, examples = settle(task, path, ahead, cancelled=cancelled), chain(ahead, stream)
    with held(path, task.kind, task.facts, part, PART) as kept:
        way = _Way(kept, total, progress, cancelled)
        missing = kept.missing(batches(examples, kept.size), way.over)
        computed = 0
        if (first := next(missing, None)) is not None:  # or else nobody is sent for
            with crew(on, workers) as hands:
                how = How(way.inside, cancelled)
                for _, made in hands.spread(_Parts(task.kind, task.work), chain([first], missing), how):
                    kept.keep(made)
                    computed += made.examples
                    way.past(made)
        kept.finish()
        if progress is not None:
            progress(kept.examples, kept.examples)
    return Filled(path, task.kind, task.facts, kept.examples, computed)


def settle(
    task: Task, folder: str | Path, examples: Iterable[Example], *, cancelled: Callable[[], bool] | None = None
) -> Task:
    """The task with its engine chosen, for all parts and whoever does them: `fill` does this, if nobody did.

    It is tried on a few of the first examples; a folder that was begun says what was chosen then. `facts` say it.
    """
    if task.engine is None:
        return task
    work, manifest = task.work, read_manifest(Path(folder).expanduser())
    if manifest is None:
        some = list(islice(examples, PART))
        choice = choose_engine(work.classifier, some, task.engine, cancelled=cancelled, **work.asked)
    else:
        choice = Choice.again(work.classifier, task.engine, manifest["facts"].get("engine"))
    facts = {**task.facts, "engine": choice.facts, "terms": {**task.facts["terms"], "engine": str(choice)}}
    return replace(task, facts=facts, work=replace(work, asked={**work.asked, "engine": choice}), engine=None)


class _Way:
    """How far it is: parts that were there, parts that are finished, and where the one at hand is."""

    def __init__(
        self, kept: Folder, total: int | None, progress: Progress | None, cancelled: Callable[[], bool] | None
    ) -> None:
        self._kept, self._total, self._progress, self._cancelled = kept, total, progress, cancelled
        self._done = 0

    def over(self) -> None:
        """A part that was there has been read over: that alone may take long."""
        if self._cancelled is not None and self._cancelled():
            raise Cancelled(f"Stopped after {self._kept.examples:,} examples; what is finished is kept.")
        self.inside(0, 1)

    def past(self, made: Made) -> None:
        self._done += made.examples
        self.inside(0, 1)

    def inside(self, done: int, _: int) -> None:
        if self._progress is not None:
            self._progress(self._kept.there + self._done + done, self._total)


@dataclass(frozen=True)
class _Parts:
    """The work as a crew does it: a part comes in, the bytes of its file go out."""

    kind: str
    work: _Finding

    def __call__(self, how: How) -> Callable[[Part], Made]:
        return lambda part: made_of(part, self.work.find(part.examples, how), self.kind)


@dataclass(frozen=True)
class _Finding:
    """A front door with what it is asked; other processes get it as it is."""

    front: Callable[..., Iterable[Any]]
    classifier: Classifier
    asked: Mapping[str, Any]

    def find(self, examples: Sequence[Example], how: How) -> Iterable[Any]:
        return self.front(self.classifier, examples, progress=how.progress, cancelled=how.cancelled, **self.asked)


# -- tasks


def predicting(classifier: Classifier) -> Task:
    """What the model says about each example."""
    facts = {"revision": classifier.revision, "labels": list(classifier.labels)}
    return Task("predictions", facts, _Finding(_predict, classifier, {}), classifier.lasting)


def _predict(classifier: Classifier, examples: Sequence[Example], **how: Any) -> Iterable[Any]:
    return classifier.predict_stream(examples, **how)


def explaining(
    classifier: Classifier,
    *,
    method: str = "leave_one_out",
    target: str | int | None = None,
    units: Unit = "word",
    background: Sequence[Example] | None = None,
    language_model: LanguageModel | None = None,
    seed: int = 0,
    engine: str | None = None,
    **options: Any,
) -> Task:
    """How much each word of each example speaks for a label; all as `attribute` takes it."""
    entry = attribution[method]
    check_attributions(classifier, entry, background=background, language_model=language_model, engine=engine)
    goal = None if target is None else classifier.labels[classifier.label_number(target)]
    settings = entry.settings(options)
    compared = None if background is None or "background" not in entry.asks else Part(0, background).fingerprint
    facts = {
        "recipe": json.loads(to_json(entry.recipe(settings, seed))),
        "revision": classifier.revision,
        "target": goal,
        "units": units,
        "terms": _plain_terms(terms_of(entry, settings, units)),
        "background": compared,
        "language_model": _revision_of(language_model if "language_model" in entry.asks else None),
    }
    asked: dict[str, Any] = {
        "method": entry.name,
        "target": goal,
        "units": units,
        "background": background,
        "seed": seed,
    }
    asked |= {"language_model": language_model, **settings}
    return Task("attributions", facts, _Finding(attribute, classifier, asked), classifier.lasting, engine)


def _plain_terms(terms: Terms) -> dict[str, Any]:
    """In plain JSON; without an engine as they were before there were any, so that folders begun then go on."""
    return {name: value for name, value in json.loads(to_json(terms)).items() if name != "engine" or value}


def flipping(
    classifier: Classifier,
    *,
    method: str = "hotflip",
    target: str | int | None = None,
    keep: int = 1,
    search: Mapping[str, Any] | None = None,
    language_model: LanguageModel | None = None,
    lexicon: Sequence[str] = (),
    seed: int = 0,
    **options: Any,
) -> Task:
    """The fewest words of each example that have to change for another prediction; all as `find_flips` takes it."""
    entry, settings = counterfactual[method], search_settings(search or {})
    check_flips(classifier, entry, language_model=language_model)
    if keep < 1:
        raise BadOption(f"keep must be at least 1, not {keep}.")
    goal = None if target is None else classifier.labels[classifier.label_number(target)]
    own = entry.settings(options)
    facts = {
        "recipe": json.loads(to_json(entry.recipe(own, seed))),
        "search": settings,
        "revision": classifier.revision,
        "target": goal,
        "keep": keep,
        "language_model": _revision_of(language_model),
        "lexicon": blake2b("\x00".join(lexicon).encode(errors="surrogatepass"), digest_size=8).hexdigest(),
    }
    asked: dict[str, Any] = {"method": entry.name, "target": goal, "keep": keep, "search": settings, "seed": seed}
    asked |= {"language_model": language_model, "lexicon": tuple(lexicon), **own}
    return Task("counterfactuals", facts, _Finding(find_flips, classifier, asked), classifier.lasting)


def _revision_of(language_model: LanguageModel | None) -> str | None:
    return None if language_model is None else language_model.revision
