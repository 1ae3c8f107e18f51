"""Metrics: how far can these explanations be trusted?

`measure` is the front door: it explains the examples, lets one metric judge the scores, lets the same metric judge
random scores, and wraps both into a `Grade`. A metric is one function that gives a value for each example (NaN where
it is not defined), or for each model that it trained; the law tests run on every one of them.

No metric is neutral. Those that erase words favour methods that erase them the same way (Pham et al. 2022), so each
says in `favours` whom it flatters, and every grade repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unhans.attributions import attribute, generator, readable_words
from unhans.crew import HERE, Crew, Here, check_crew, crew
from unhans.errors import BadData, BadOption
from unhans.language_model import LanguageModel
from unhans.model import Classifier, TransformerClassifier, as_examples
from unhans.ranks import spearman as alike
from unhans.registry import Entry, Registry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Text, Unit, Words
from unhans.types import Attribution, Attributions, Example, Grade, Recipe

Values = NDArray[np.float64]

metric = Registry(
    "metrics",
    offers=(
        "classifier",
        "examples",
        "words",  # of each example, as the model can read them
        "scores",  # of each example, one for each word; 0 for words that the model does not read
        "targets",  # number of the label that was explained, one per example
        "explain",  # the same method once more: on another model, with another seed, on other texts
        "language_model",
        "train",  # labelled examples, for metrics that train models
        "start",  # the classifier such a training starts from, or None for a small fresh one
        "rng",  # one generator for the whole run
        "crew",  # those who work, for metrics that train models
        "rngs",  # one generator per example, the same whatever else is measured with it
        "how",  # what scoring takes: cache, cancelled
        "progress",  # done and total of this metric's own work, for those that take minutes
    ),
    package="unhans.metrics",
)
_REGISTRY = metric  # under a name that the parameter of `measure` does not hide
_DRAWS = 3  # random explanations that the baseline is the mean of
_RESAMPLES = 2000
_MISSING = {
    "language_model": "language_model=, a masked language model: LanguageModel.open(folder or id), or "
    "LanguageModel.fit(texts) to train one on your own texts",
    "train": "train=, labelled examples to train new models on",
}


class Explain(Protocol):
    """The measured method once more; without a seed with the one it had, without targets for the predicted labels."""

    def __call__(
        self,
        classifier: Classifier,
        examples: Sequence[Example],
        *,
        seed: int | None = None,
        targets: Sequence[int] | None = None,
    ) -> list[Values]:
        """Scores of each example, one for each word."""


@dataclass(frozen=True)
class Found:
    """What a metric found, where there is more to say than numbers."""

    values: Values
    note: str = ""


@dataclass(frozen=True)
class Measurement:
    """A grade with the values behind it: one per example (NaN: undefined) or one per trained model."""

    grade: Grade
    values: Values


@dataclass(frozen=True)
class Subject:
    """The explanations under test, and how to make more of them."""

    classifier: Classifier
    examples: Sequence[Example]
    attributions: Sequence[Attribution]
    explain: Explain

    @cached_property
    def words(self) -> list[Words]:
        """The words of each example, as the model can read them."""
        return [readable_words(self.classifier, example, self.unit) for example in self.examples]

    @cached_property
    def targets(self) -> list[int]:
        """Number of the label that was explained, for each example."""
        return [self.classifier.label_number(one.label) for one in self.attributions]

    @property
    def unit(self) -> Unit:
        """What has the scores: words, phrases or sentences."""
        return self.attributions[0].terms.unit

    @property
    def signed(self) -> bool:
        """Whether the scores say for and against, or only how strongly."""
        return self.attributions[0].terms.signed

    @property
    def recipe(self) -> Recipe:
        """The method."""
        return self.attributions[0].recipe


@dataclass(frozen=True)
class Means:
    """What metrics may need besides the explanations."""

    language_model: LanguageModel | None = None
    train: Sequence[Example] | None = None
    start: TransformerClassifier | None = None
    seed: int = 0
    how: dict[str, Any] = field(default_factory=dict)
    crew: Crew = field(default_factory=Here)  # who trains


@contextmanager
def crewed(means: Means, entries: Iterable[Entry], on: str | Crew, workers: int | None) -> Iterator[Means]:
    """The means with those who work; nobody is sent for if none of the metrics trains models."""
    if isinstance(on, str):
        check_crew(on, workers)
    if not any("crew" in entry.asks for entry in entries):
        yield means
        return
    with crew(on, workers) as hands:
        yield replace(means, crew=hands)


def measure(
    classifier: Classifier,
    examples: Text | Iterable[Text],
    *,
    metric: str,
    method: str = "leave_one_out",
    method_options: Mapping[str, Any] | None = None,
    target: str | int | None = None,
    language_model: LanguageModel | None = None,
    background: Sequence[Example] | None = None,
    train: Sequence[Example] | None = None,
    start: TransformerClassifier | None = None,
    attributions: Sequence[Attribution] | None = None,
    seed: int = 0,
    on: str | Crew = HERE,
    workers: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
    **options: Any,
) -> Grade:
    """How well a method explains these examples by one metric, against random scores.

    With `attributions`, those are measured, and their own recipe says which method is run where a metric needs it
    again. `options` are the metric's. `on` and `workers` say who trains (`unhans.crew`), for metrics that train models.
    A metric that is defined for none of the examples is an error, never a 0.
    """
    entry = _REGISTRY[metric]
    entry.settings(options)
    how = {"cancelled": cancelled, "cache": cache}
    given = {"language_model": language_model, "background": background}
    means = Means(language_model, train, start, seed, how)
    chosen = list(as_examples(examples))
    check_measurable(classifier, entry, chosen, means)
    with crewed(means, [entry], on, workers) as means:
        if attributions is None:
            made = subject(classifier, chosen, method, method_options or {}, target=target, seed=seed, **given, **how)
        else:
            made = subject_of(classifier, chosen, attributions, seed=seed, **given, **how)
        return measurement(entry, made, means, options, progress).grade


def subject(
    classifier: Classifier,
    examples: Sequence[Example],
    method: str,
    options: Mapping[str, Any],
    *,
    target: str | int | None = None,
    seed: int = 0,
    **given: Any,
) -> Subject:
    """The examples explained by a method; `given` is what `attribute` takes besides."""
    if not examples:
        raise BadData("There are no examples to measure explanations on.")
    explain = _Again(method, dict(options), seed, target, given)
    return Subject(classifier, examples, explain.attributions(classifier, examples), explain)


def subject_of(
    classifier: Classifier, examples: Sequence[Example], attributions: Sequence[Attribution], *, seed: int, **given: Any
) -> Subject:
    """Explanations that were made before."""
    if not examples:
        raise BadData("There are no examples to measure explanations on.")
    if [one.example for one in attributions] != [example.id for example in examples]:
        raise BadOption("The attributions are not of these examples, or not in this order.")
    if any(one.recipe != attributions[0].recipe for one in attributions):
        raise BadOption("The attributions were made by different methods. Measure one method at a time.")
    if any(one.revision != classifier.revision for one in attributions):
        raise BadOption("The attributions explain another model. Make them anew with this one.")
    recipe, unit = attributions[0].recipe, attributions[0].terms.unit
    options = dict(recipe.options) | ({} if unit == "word" else {"units": unit})
    explain = _Again(recipe.name, options, seed if recipe.seed is None else recipe.seed, None, given)
    return Subject(classifier, examples, attributions, explain)


def check_measurable(classifier: Classifier, entry: Entry, examples: Sequence[Example], means: Means) -> None:
    """Refuse, with the way out, a metric that this classifier, these examples or this call cannot serve."""
    classifier.require(entry.needs, entry.name)
    for name, way_out in _MISSING.items():
        if name in entry.asks and not getattr(means, name):
            raise BadOption(f"{entry.name} needs {way_out}.")
    if entry.facts.get("highlights") and all(example.highlights is None for example in examples):
        raise BadData(f"{entry.name} needs examples with highlights, the words that people marked; none has them.")


def measurement(
    entry: Entry,
    subject: Subject,
    means: Means,
    options: Mapping[str, Any],
    progress: Progress | None = None,
    baselines: dict[Any, list[Values]] | None = None,
) -> Measurement:
    """One metric on one subject and on random scores like its own.

    `baselines` keeps what random scores got, for further subjects that explain the same labels of the same examples.
    """
    if entry.facts.get("signs") and not subject.signed:
        raise BadData(f"{entry.name} compares signs, and {subject.recipe.name} gives strengths without a sign.")
    draws = entry.facts.get("draws", _DRAWS)
    found = _run(entry, subject, None, means, options, _part(progress, 0, 1 + draws))
    defined = found.values[np.isfinite(found.values)]
    if not len(defined):
        raise BadData(
            f"{entry.name} is defined for none of the {len(subject.examples)} examples: {entry.facts['undefined']}."
        )
    baselines = {} if baselines is None else baselines
    key = entry.recipe(options, means.seed), subject.signed, subject.unit
    if key not in baselines:
        blind = [_Blind(subject.signed, subject.unit, draw) for draw in range(draws)]
        parts = [_part(progress, 1 + draw, 1 + draws) for draw in range(draws)]
        baselines[key] = [
            _run(entry, subject, one, means, options, part).values for one, part in zip(blind, parts, strict=True)
        ]
    random = mean_over(np.stack(baselines[key]))
    runs = entry.facts.get("per") == "run"
    low, high = _interval_of_runs(defined) if runs else _interval(defined, means.seed)
    random_defined = random[np.isfinite(random)]
    grade = Grade(
        metric=entry.name,
        method=subject.recipe,
        value=float(defined.mean()),
        low=low,
        high=high,
        random=float(random_defined.mean()) if len(random_defined) else None,
        p=_chance(found.values - random, runs),
        better=entry.facts["better"],
        family=entry.facts["family"],
        examples=len(subject.examples) if runs else len(defined),
        undefined=0 if runs else len(found.values) - len(defined),
        note=" ".join(filter(None, (favours(entry), found.note))),
        recipe=entry.recipe(options, means.seed),
        revision=subject.classifier.revision,
    )
    return Measurement(grade, found.values)


def favours(entry: Entry) -> str:
    """The sentence that says whom a metric flatters; empty if it is not known to flatter anyone."""
    told = entry.facts.get("favours")
    return f"Favours {told}." if told else ""


def spearman(first: Values, second: Values) -> float:
    """Rank correlation; NaN where one of them has no order."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return alike(first, second)


@dataclass(frozen=True)
class _Again:
    """A method with all that it takes."""

    method: str
    options: Mapping[str, Any]
    seed: int
    target: str | int | None
    given: Mapping[str, Any]

    def __call__(
        self,
        classifier: Classifier,
        examples: Sequence[Example],
        *,
        seed: int | None = None,
        targets: Sequence[int] | None = None,
    ) -> list[Values]:
        if targets is None:
            return [np.array(one.scores) for one in self.attributions(classifier, examples, seed=seed)]
        scores: dict[int, Values] = {}
        for target in sorted(set(targets)):  # `attribute` explains one label at a time
            numbers = [n for n, goal in enumerate(targets) if goal == target]
            made = self.attributions(classifier, [examples[n] for n in numbers], seed=seed, target=target)
            scores.update((n, np.array(one.scores)) for n, one in zip(numbers, made, strict=True))
        return [scores[n] for n in range(len(examples))]

    def attributions(
        self,
        classifier: Classifier,
        examples: Sequence[Example],
        *,
        seed: int | None = None,
        target: str | int | None = None,
    ) -> Attributions:
        return attribute(
            classifier,
            examples,
            method=self.method,
            target=self.target if target is None else target,
            seed=self.seed if seed is None else seed,
            **self.given,
            **self.options,
        )


@dataclass(frozen=True)
class _Blind:
    """Random scores that know nothing of the text or the model: the same for every model, others for every seed."""

    signed: bool
    unit: Unit
    draw: int

    def __call__(
        self,
        classifier: Classifier,
        examples: Sequence[Example],
        *,
        seed: int | None = None,
        targets: Sequence[int] | None = None,
    ) -> list[Values]:
        made = []
        for example in examples:
            words = readable_words(classifier, example, self.unit)
            line = np.zeros(len(words))
            drawn = np.random.default_rng([self.draw, seed or 0, int(example.text_hash, 16)]).normal(
                size=len(words.open)
            )
            line[list(words.open)] = drawn if self.signed else np.abs(drawn)
            made.append(line)
        return made


def _run(
    entry: Entry,
    subject: Subject,
    blind: _Blind | None,
    means: Means,
    options: Mapping[str, Any],
    progress: Progress | None,
) -> Found:
    """What a metric says about the subject, or about random scores in its place."""
    classifier, examples = subject.classifier, subject.examples
    offered = {
        "classifier": classifier,
        "examples": examples,
        "words": subject.words,
        "scores": blind(classifier, examples) if blind else [np.array(one.scores) for one in subject.attributions],
        "targets": subject.targets,
        "explain": blind or subject.explain,
        "language_model": means.language_model,
        "train": means.train,
        "start": means.start,
        "rng": np.random.default_rng(means.seed),
        "crew": means.crew,
        "rngs": [generator(means.seed, example) for example in examples],
        "how": means.how,
        "progress": progress,
    }
    found = entry(offered, **options)
    if progress is not None:
        progress(1, 1)
    return found if isinstance(found, Found) else Found(np.asarray(found, dtype=np.float64))


def _part(progress: Progress | None, at: int, of: int) -> Progress | None:
    """The progress of one of several equal parts, told as progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(round(100 * (at + done / total)), 100 * of)


def mean_over(lines: Values) -> Values:
    """The mean of each column over the lines where it is defined; NaN where it is nowhere."""
    defined = np.isfinite(lines)
    counts = defined.sum(axis=0)
    sums = np.where(defined, lines, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _interval(values: Values, seed: int) -> tuple[float | None, float | None]:
    """95 % percentile bootstrap of the mean over examples."""
    n = len(values)
    if n < 2:
        return None, None
    rng = np.random.default_rng(seed)
    low, high = np.percentile([values[rng.integers(n, size=n)].mean() for _ in range(_RESAMPLES)], [2.5, 97.5])
    return float(low), float(high)


def _interval_of_runs(values: Values) -> tuple[float | None, float | None]:
    """95 % t-interval of the mean over a few trained models."""
    if len(values) < 2:
        return None, None
    reach = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return float(values.mean()) - reach, float(values.mean()) + reach


def _chance(gaps: Values, runs: bool) -> float | None:
    """Two-sided p of the paired gaps: Wilcoxon's signed ranks over examples, t over a few runs."""
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < 2:
        return None
    if not gaps.any():
        return 1.0
    if not runs:
        gaps = gaps[gaps != 0]
        ties = len(np.unique(np.abs(gaps))) < len(
            gaps
        )  # the exact distribution knows none, and permuting takes seconds
        return float(stats.wilcoxon(gaps, method="exact" if len(gaps) <= 25 and not ties else "asymptotic").pvalue)
    if np.ptp(gaps) == 0:  # the t of equal gaps is infinite, and two or three runs do not prove that much
        return None
    return float(stats.ttest_1samp(gaps, 0.0).pvalue)
