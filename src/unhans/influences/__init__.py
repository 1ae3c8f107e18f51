"""Influences: the training examples behind what a model says of a text.

`prepare` is the front door: it lets a method look at the training examples once and gives an `Index` that answers for
any text. `trace` does both for a few texts. A positive score helped: without that training example the loss of the
text's label would be higher. A method is one file with one function; the law tests run on every one of them.

Equal texts under equal labels are one training example to every method, with a count, and so score alike.

Facts of a method: `keeps=True` says that it keeps what it works out of the training examples, so that the next text is
answered from that; `at_once=1` how many texts it should be asked about together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from unhans.crew import HERE, Crew, check_crew, crew
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.influences._shelf import Shelf
from unhans.model import Classifier, TransformerClassifier, as_examples
from unhans.present import html_table, progress_bars
from unhans.registry import Entry, Registry
from unhans.scoring import Progress
from unhans.text import Text
from unhans.types import Example, Influence, Neighbour, Recipe

__all__ = ["DEFAULT", "Index", "Influences", "Pushes", "Shelf", "Traced", "influence", "prepare", "trace"]

Scores = NDArray[np.float64]
Of = Literal["label", "prediction"]

influence = Registry(
    "influences",
    offers=(
        "classifier",
        "train",  # different training examples: no two have the same text and label
        "counts",  # how often each of them is in the data
        "checkpoints",  # earlier states of the classifier with the learning rate each was trained with
        "shelf",  # where to keep what was worked out of the training examples
        "rng",
        "how",  # progress and cancelled
    ),
    package="unhans.influences",
)
DEFAULT = "projected_gradients"
_AT_ONCE = 16  # texts a method is asked about together
_FINE = 100  # steps that progress within a part is told in


@dataclass(frozen=True)
class How:
    """Whom to tell how far it is, and whom to ask whether to stop."""

    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None

    def __reduce__(self) -> tuple[type[How], tuple[()]]:
        """In another process there is nobody to tell or to ask."""
        return How, ()

    def tell(self, done: int, of: int) -> None:
        """So much of it is done; stops here if somebody wants that."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled(f"Stopped after {done:,} of {of:,}. What was worked out so far is kept.")
        if self.progress is not None:
            self.progress(done, of)

    def part(self, start: int, end: int, of: int) -> How:
        """The same for what brings it from `start` to `end`."""
        tell = self.progress
        if tell is None:
            return self

        def within(done: int, total: int) -> None:
            tell(_FINE * start + _FINE * (end - start) * min(done, total) // max(1, total), _FINE * of)

        return How(within, self.cancelled)


@dataclass(frozen=True)
class Pushes:
    """What every training example did for each of some texts."""

    scores: Scores  # texts × training examples; positive helped, not a number where it was not looked at
    notes: tuple[str, ...] = ()  # how far it converged, what was left out


@dataclass(frozen=True)
class Traced:
    """A method that has seen the training examples. Each question has a progress of its own."""

    pushes: Callable[[Sequence[Example], How], Pushes]  # of texts with the label whose loss is meant
    own: Callable[[How], Scores] | None = None  # what each training example did for itself


class Influences(list[Influence]):
    """Influences in the order of the texts; drawn as a table in notebooks."""

    def _repr_html_(self) -> str:
        rows = [
            (one.example, one.label, ", ".join(n.train for n in one.helpful), ", ".join(n.train for n in one.harmful))
            for one in self[:50]
        ]
        more = f"the first 50 of {len(self)}" if len(self) > 50 else ""
        return html_table(("example", "label", "helped", "harmed"), rows, more)


class Index:
    """A method that has seen the training examples of one model, ready for any text."""

    def __init__(
        self,
        classifier: Classifier,
        train: Sequence[Example],
        places: Sequence[int],
        traced: Traced,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.classifier, self.train = classifier, tuple(train)
        self._places = np.asarray(places, int)  # of each training example among the different ones
        self._traced = traced
        self._quietly = How(cancelled=cancelled)  # where nobody else is to be told or asked
        self._numbers: dict[str, list[int]] = {}
        for number, example in enumerate(self.train):
            self._numbers.setdefault(example.id, []).append(number)

    def scores(self, texts: Text | Iterable[Text], *, of: Of = "label") -> Scores:
        """What each training example did for each text: texts × training examples, in the order they were given."""
        return self._pushes(self.anchors(texts, of), self._quietly).scores

    def self_influence(self, how: How | None = None) -> Scores:
        """What each training example did for itself: large where the model had to learn it by heart."""
        if self._traced.own is None:
            raise Unsupported("This method does not tell what a training example did for itself. Use another one.")
        own: Scores = self._traced.own(how or self._quietly)[self._places]
        return own

    def anchors(self, texts: Text | Iterable[Text], of: Of = "label") -> list[Example]:
        """The texts, each with the label that is to be explained: its given one, or what the model says."""
        _check_of(of)
        examples = list(as_examples(texts))
        if strange := [e.label for e in examples if e.label is not None and e.label not in self.classifier.labels]:
            raise BadData(f"A text has the label {strange[0]!r}, which the model lacks.")
        asked = [e for e in examples if of == "prediction" or e.label is None]
        said = dict(zip(map(id, asked), self.classifier.predict(asked), strict=True)) if asked else {}
        return [_labelled(e, said[id(e)].label if id(e) in said else e.label) for e in examples]

    def _pushes(self, anchors: Sequence[Example], how: How) -> Pushes:
        if not anchors:
            return Pushes(np.empty((0, len(self.train))))
        found = self._traced.pushes(anchors, how)
        return Pushes(found.scores[:, self._places], found.notes)

    def neighbours(self, anchor: Example, row: Scores, top: int) -> tuple[tuple[Neighbour, ...], tuple[Neighbour, ...]]:
        """The most helpful and the most harmful training examples of a text, without the text itself."""
        usable = np.isfinite(row)
        # plain strings are numbered, and so may be training examples: a text is known by its words as well
        usable[[n for n in self._numbers.get(anchor.id, ()) if self.train[n].text_hash == anchor.text_hash]] = False
        helpful, harmful = (_first(np.where(usable, side, -np.inf), top) for side in (row, -row))
        return self._told(helpful, row), self._told(harmful, row)

    def _told(self, numbers: Sequence[int], row: Scores) -> tuple[Neighbour, ...]:
        return tuple(Neighbour(self.train[number].id, float(row[number])) for number in numbers)

    def trace(
        self,
        texts: Text | Iterable[Text],
        recipe: Recipe,
        *,
        top: int = 10,
        of: Of = "label",
        at_once: int = _AT_ONCE,
        how: How | None = None,
    ) -> Influences:
        """The training examples behind each text."""
        anchors, found, how = self.anchors(texts, of), Influences(), how or self._quietly
        for start in range(0, len(anchors), at_once):
            some = anchors[start : start + at_once]
            pushes = self._pushes(some, how.part(start, start + len(some), len(anchors)))
            for anchor, row in zip(some, pushes.scores, strict=True):
                helpful, harmful = self.neighbours(anchor, row, top)
                found.append(
                    Influence(
                        anchor.id,
                        str(anchor.label),
                        helpful,
                        harmful,
                        recipe,
                        self.classifier.revision,
                        pushes.notes,
                    )
                )
            how.tell(start + len(some), len(anchors))
        return found


def prepare(
    classifier: Classifier,
    train: Iterable[Example],
    *,
    method: str = DEFAULT,
    folder: str | Path | None = None,
    checkpoints: Sequence[tuple[TransformerClassifier, float]] = (),
    seed: int = 0,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    **options: Any,
) -> Index:
    """Let a method look at the training examples, once; then any text is answered.

    With a `folder`, what was worked out is kept there, by model, texts, labels and options: the next process goes on
    from it, and after a stop it resumes. Examples without a label are left out. `on` and `workers` say who looks at
    them (`unhans.crew`), for methods that keep something of each; nobody is sent for when nothing is missing.
    """
    entry = influence[method]
    check_usable(classifier, entry)
    if isinstance(on, str):
        check_crew(on, workers)
    recipe = entry.recipe(options, seed)
    labelled, different, counts, places = _different(classifier, train)
    place = Path(folder) / _key(classifier, recipe, different, counts, checkpoints) if folder else None
    shelf = Shelf(place, partial(crew, on, workers), cancelled)
    with ExitStack() as stack:
        tell = progress or (
            stack.enter_context(progress_bars())("Looking at training examples") if show_progress else None
        )
        offered = {"classifier": classifier, "train": different, "counts": np.array(counts), "shelf": shelf}
        offered |= {"checkpoints": tuple(checkpoints), "rng": np.random.default_rng([seed, 3])}
        traced: Traced = entry(offered | {"how": How(tell, cancelled)}, **options)
    return Index(classifier, labelled, places, traced, cancelled)


def trace(
    classifier: Classifier,
    texts: Text | Iterable[Text],
    train: Iterable[Example],
    *,
    method: str = DEFAULT,
    top: int = 10,
    of: Of = "label",
    folder: str | Path | None = None,
    checkpoints: Sequence[tuple[TransformerClassifier, float]] = (),
    seed: int = 0,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    **options: Any,
) -> Influences:
    """For each text the `top` training examples that helped most, and those that harmed most.

    `of="label"` is about the text's given label: what would have made the model say it (what the model says counts
    where no label is given). `of="prediction"` is about what the model says, right or wrong.
    """
    if top < 1:
        raise BadOption(f"top must be at least 1, not {top}.")
    entry = influence[method]
    recipe = recipe_of(entry, options, of, seed)
    with ExitStack() as stack:
        bars = stack.enter_context(progress_bars()) if show_progress and progress is None else None
        index = prepare(
            classifier,
            train,
            method=method,
            folder=folder,
            checkpoints=checkpoints,
            seed=seed,
            progress=progress or (bars("Looking at training examples") if bars else None),
            cancelled=cancelled,
            on=on,
            workers=workers,
            **options,
        )
        how = How(progress or (bars("Tracing") if bars else None), cancelled)
        return index.trace(texts, recipe, top=top, of=of, at_once=entry.facts.get("at_once", _AT_ONCE), how=how)


def recipe_of(entry: Entry, options: dict[str, Any], of: Of, seed: int) -> Recipe:
    """What was run: the method's recipe, and which label it was about."""
    _check_of(of)
    own = entry.recipe(options, seed)
    return Recipe(own.family, own.name, (*own.options, ("of", of)), own.seed)


def check_usable(classifier: Classifier, entry: Entry) -> None:
    """Refuse, with the way out, a method that this classifier cannot serve."""
    usable = [other.name for other in influence if other.needs <= classifier.capabilities]
    can = f"Methods that work with it: {', '.join(usable)}." if usable else ""
    classifier.require(entry.needs, entry.name, can)


def _check_of(of: str) -> None:
    if of not in get_args(Of):
        raise BadOption(f"of must be one of {', '.join(get_args(Of))}, not {of!r}.")


def _first(scores: Scores, top: int) -> list[int]:
    """Numbers of the highest positive scores, highest first; of equal ones the first given."""
    n = min(top, len(scores))
    least = np.partition(scores, len(scores) - n)[len(scores) - n]
    found = np.flatnonzero((scores >= least) & (scores > 0))
    order = found[np.argsort(-scores[found], kind="stable")][:n]
    return [int(number) for number in order]


def _labelled(example: Example, label: str | None) -> Example:
    return Example(example.id, example.text, example.pair, label)


def _different(
    classifier: Classifier, train: Iterable[Example]
) -> tuple[list[Example], list[Example], list[int], list[int]]:
    """The labelled examples, the different ones among them, how often each is there, and which is which."""
    labelled = [example for example in train if example.label is not None]
    if not labelled:
        raise BadData("None of the training examples has a label; there is nothing that could have been learnt.")
    if strange := [e.label for e in labelled if e.label not in classifier.labels]:
        raise BadData(
            f"A training example has the label {strange[0]!r}, which the model lacks. "
            f"The model has: {', '.join(classifier.labels)}."
        )
    numbers: dict[tuple[str, str], int] = {}
    different: list[Example] = []
    counts: list[int] = []
    places: list[int] = []
    for example in labelled:
        number = numbers.setdefault((example.text_hash, str(example.label)), len(different))
        if number == len(different):
            different.append(example)
            counts.append(0)
        counts[number] += 1
        places.append(number)
    return labelled, different, counts, places


def _key(
    classifier: Classifier,
    recipe: Recipe,
    train: Sequence[Example],
    counts: Sequence[int],
    checkpoints: Sequence[tuple[TransformerClassifier, float]],
) -> str:
    """A folder's name: another for another model, other texts or labels, another method or other options."""
    digest = blake2b(digest_size=12)
    digest.update(repr((classifier.revision, recipe.key, [(c.revision, rate) for c, rate in checkpoints])).encode())
    for example, count in zip(train, counts, strict=True):
        digest.update(f"{example.text_hash}\x00{example.label}\x00{count}\x01".encode(errors="surrogatepass"))
    return f"{recipe.name}-{digest.hexdigest()}"
