"""Attributions: how much each word speaks for a label.

`attribute` is the front door: it chooses the label, checks what the classifier can do, batches, and wraps scores into
`Attribution`s. A method is one file with one function; the law tests run on every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.engines import Choice, check_name, choose
from unhans.errors import BadOption, Cancelled
from unhans.language_model import LanguageModel
from unhans.model import Classifier, TransformerClassifier, as_examples
from unhans.present import progress_bars
from unhans.registry import Entry, Registry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Text, Unit, Words, as_variant
from unhans.types import Attribution, Attributions, Example, Recipe, Span, Terms


@dataclass(frozen=True)
class Estimate:
    """Scores of one example that come from sampling, and how far to trust them."""

    scores: NDArray[np.float64]
    errors: NDArray[np.float64]
    stability: float
    asked: int


Scores = Tensor | Sequence[NDArray[np.float64]] | Sequence[Estimate]
"""What a method returns: rows × words (zero beyond a row's last word), or one line of scores per example."""

attribution = Registry(
    "attributions",
    offers=(
        "classifier",
        "words",  # of each example; what the model does not read is gone from every variant
        "batch",  # the examples as tensors, for methods that differentiate
        "targets",  # number of the label to explain, one per example
        "create_graph",
        "rngs",  # one generator per example, the same whatever else is explained with it
        "background",  # other examples, for methods that compare with them
        "language_model",
        "how",  # what scoring takes: cache, cancelled
    ),
    package="unhans.attributions",
)
_AT_ONCE = 32  # examples, for methods that query: enough variants to fill batches, few enough to show progress
_MISSING = {
    "background": "needs background=, examples to compare with: some training texts will do.",
    "language_model": "needs language_model=, a masked language model: LanguageModel.open(folder or id), or "
    "LanguageModel.fit(texts) to train one on your own texts.",
}


def attribute(
    classifier: Classifier,
    texts: Text | Iterable[Text],
    *,
    method: str = "leave_one_out",
    target: str | int | None = None,
    units: Unit = "word",
    background: Sequence[Example] | None = None,
    language_model: LanguageModel | None = None,
    seed: int = 0,
    batch_size: int = 16,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
    engine: str | Choice | None = None,
    **options: Any,
) -> Attributions:
    """One attribution per text or example, for the label `target` or else for the label the model predicts.

    Scores are signed: positive words speak for the label (`terms.signed` says if a method has no sign). Their unit and
    what they are measured against are in `terms`. Words beyond the model's length limit score 0 and are listed as
    unread. With `units`, phrases or sentences get the scores: methods that erase erase them whole, others add up.

    An `engine` (`unhans.engines`) answers in place of the model in fp32 where it orders the words of some of the
    examples alike; `terms.engine` says whether. What is explained is the label that the model itself predicts.
    """
    entry = attribution[method]
    check_usable(classifier, entry, background=background, language_model=language_model, engine=engine)
    recipe, terms = entry.recipe(options, seed), terms_of(entry, options, units)
    if batch_size < 1:
        raise BadOption(f"batch_size must be at least 1, not {batch_size}.")
    if units not in ("word", "phrase", "sentence"):
        raise BadOption(f"units must be one of word, phrase, sentence, not {units!r}.")
    # without a cache of the caller's, a small one: predicting the target and explaining it ask about the same texts
    examples, how = list(as_examples(texts)), {"cancelled": cancelled, "cache": cache or ScoreCache(size=10_000)}
    if isinstance(engine, str):
        asked = {"target": target, "units": units, "background": background, "language_model": language_model}
        engine = choose_engine(classifier, examples, engine, method=method, seed=seed, **asked, **how, **options)
    targets, answering = _targets(classifier, examples, target, how), (engine and engine.engine) or classifier
    extras = {"background": background, "language_model": language_model, "create_graph": False, "how": how}
    lines: dict[int, Any] = {}
    with ExitStack() as stack:
        tell = progress or (stack.enter_context(progress_bars())("Explaining") if show_progress else None)
        for numbers in _batches(classifier, entry, examples, batch_size):
            if cancelled is not None and cancelled():
                raise Cancelled(f"Stopped after {len(lines)} of {len(examples)} explanations.")
            some, goals = [examples[n] for n in numbers], [targets[n] for n in numbers]
            offered = _offer(answering, entry, some, goals, units) | extras
            offered["rngs"] = [generator(seed, example) for example in some]
            scores = entry(offered, **options)
            found = list(scores.detach().cpu().double().numpy()) if isinstance(scores, Tensor) else scores
            lines.update(zip(numbers, found, strict=True))
            if tell is not None:
                tell(len(lines), len(examples))
    terms = replace(terms, engine=str(engine or ""))
    wrap = _Wrapping(classifier, recipe, terms, summed="batch" in entry.asks)
    return Attributions(wrap(e, classifier.labels[targets[n]], lines[n]) for n, e in enumerate(examples))


def choose_engine(
    classifier: Classifier, examples: Sequence[Example], engine: str, *, method: str = "leave_one_out", **asked: Any
) -> Choice:
    """Try an engine on a few of these examples; the rest is what `attribute` takes, which takes the choice as `engine`.

    For work that falls into parts: chosen once, all of it is answered alike.
    """
    check_engine(attribution[method], engine)

    def explain(by: Choice | None, some: Sequence[Example]) -> Attributions:
        return attribute(classifier, some, engine=by, method=method, **asked)

    return choose(classifier, engine, examples, explain, asked.get("units", "word"))


def check_usable(classifier: Classifier, entry: Entry, *, engine: str | Choice | None = None, **given: Any) -> None:
    """Refuse, with the way out, a method that this classifier or this call cannot serve."""
    usable = [other.name for other in attribution if other.needs <= classifier.capabilities]
    classifier.require(entry.needs, entry.name, f"Methods that work with it: {', '.join(usable)}.")
    for name, way_out in _MISSING.items():
        if name in entry.asks and not given.get(name):
            raise BadOption(f"{entry.name} {way_out}")
    if engine is not None:
        check_engine(entry, engine if isinstance(engine, str) else engine.name)


def check_engine(entry: Entry, engine: str) -> None:
    """Refuse, with the way out, an engine that there is not, or that this method cannot use."""
    check_name(engine)
    asking = [other for other in attribution if other.needs == {"predict"}]
    if entry not in asking:
        raise BadOption(
            f"{entry.name} looks inside the model, and the engine {engine} only predicts. Leave the engine out, or use "
            f"a method that only asks: {', '.join(other.name for other in asking)}."
        )
    if engine in entry.facts.get("never_by", {}):
        others = ", ".join(other.name for other in asking if engine not in other.facts.get("never_by", {}))
        raise BadOption(
            f"{entry.name} is never computed by {engine}: {entry.facts['never_by'][engine]} Leave the engine out, use "
            f"another one, or one of these methods: {others}."
        )


def terms_of(entry: Entry, options: Mapping[str, Any], units: Unit = "word") -> Terms:
    """How the scores of a method with these options are to be read."""
    terms: Terms | Callable[[Mapping[str, Any]], Terms] = entry.facts.get("terms", Terms())
    if callable(terms):
        terms = terms(entry.settings(options))
    return replace(terms, unit=units)


def generator(seed: int, example: Example) -> np.random.Generator:
    """A generator of the text's own, so that neither order nor company changes what is drawn for it."""
    return np.random.default_rng([seed, int(example.text_hash, 16)])


def _targets(
    classifier: Classifier, examples: Sequence[Example], target: str | int | None, how: dict[str, Any]
) -> list[int]:
    if target is not None:
        return [classifier.label_number(target)] * len(examples)
    return [int(n) for n in classifier.log_probs(examples, **how).argmax(axis=1)] if examples else []


def _batches(
    classifier: Classifier, entry: Entry, examples: Sequence[Example], batch_size: int
) -> Iterator[Sequence[int]]:
    """Numbers of the examples that a method gets together: of similar length where they become one tensor."""
    order: Sequence[int] = range(len(examples))
    size = entry.facts.get("at_once", _AT_ONCE)
    if "batch" in entry.asks:
        size = batch_size
        rows = classifier.questions([as_variant(e) for e in examples])
        order = sorted(order, key=lambda number: len(rows[number]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _offer(
    classifier: Classifier, entry: Entry, examples: Sequence[Example], targets: Sequence[int], units: Unit
) -> dict[str, Any]:
    """Words and targets for methods that query; a batch and tensors for those that differentiate."""
    if "batch" not in entry.asks:
        return {
            "classifier": classifier,
            "targets": targets,
            "words": [readable_words(classifier, e, units) for e in examples],
        }
    assert isinstance(classifier, TransformerClassifier)  # `needs` has made sure
    made = classifier.batch(examples)
    goals = torch.tensor(targets, device=made.ids.device)
    return {"classifier": classifier, "targets": goals, "words": made.words, "batch": made}


def readable_words(classifier: Classifier, example: Example, units: Unit) -> Words:
    """The words of an example as this model can read them."""
    tails = classifier.unread(example)
    gone = [n for n, span in enumerate(Words(example).spans) if any(_inside(span, t) for t in tails)] if tails else ()
    return Words(example, units=units, gone=gone)


def _inside(span: Span, tail: Span) -> bool:
    return span.part == tail.part and tail.start <= span.start < tail.end


@dataclass(frozen=True)
class _Wrapping:
    """Lines of numbers made into nouns."""

    classifier: Classifier
    recipe: Recipe
    terms: Terms
    summed: bool  # whether scores came word by word, to be added up where units are larger

    def __call__(self, example: Example, label: str, line: Any) -> Attribution:
        units = readable_words(self.classifier, example, self.terms.unit)
        unread = tuple(n for n in range(len(units)) if n not in set(units.open))
        scores = line.scores if isinstance(line, Estimate) else line
        if self.summed:
            scores = [sum(float(scores[word]) for word in group) for group in units.groups]
        kept = tuple(0.0 if n in unread else float(scores[n]) for n in range(len(units)))
        made = (example.id, label, units.strings, units.spans, kept, self.recipe, self.classifier.revision, unread)
        if not isinstance(line, Estimate):
            return Attribution(*made, terms=self.terms)
        errors = tuple(0.0 if n in unread else float(line.errors[n]) for n in range(len(units)))
        return Attribution(*made, terms=self.terms, errors=errors, stability=line.stability, asked=line.asked)
