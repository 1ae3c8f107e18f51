"""Which of several attribution methods to trust on these texts, by many metrics at once.

Metrics of one family tend to agree with each other whoever is right, so ranks are averaged inside each family first:
ten metrics that delete words count as one opinion. A method that does not change when the model does is never
recommended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unhans.crew import HERE, Crew
from unhans.errors import BadData, BadOption, Cancelled, UnhansError, Unsupported
from unhans.language_model import LanguageModel
from unhans.metrics import Means, Measurement, Subject, check_measurable, crewed, favours, measurement, metric, subject
from unhans.model import Classifier, TransformerClassifier, as_examples
from unhans.registry import Entry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Text
from unhans.types import Comparison, Example, RankedMethod, Recipe

Method = str | tuple[str, Mapping[str, Any]]
"""A method by name, or with options."""

# Being better than random scores is asked of faithfulness only: a check says nothing about the best scores, and who
# explains a shortcut faithfully disagrees with people.
_NO_CONTEST = ("dependence on the model", "stability", "agreement with people")
_OTHER_FAMILIES = ("sanity_spearman", "stability")  # what is added to metrics that only erase, the first that works
SAME = 0.95  # a rank correlation from which on the scores of two models count as the same
_RESAMPLES = 1000


def compare(
    classifier: Classifier,
    examples: Text | Iterable[Text],
    *,
    methods: Sequence[Method] | None = None,
    metrics: Sequence[str] | None = None,
    language_model: LanguageModel | None = None,
    background: Sequence[Example] | None = None,
    train: Sequence[Example] | None = None,
    start: TransformerClassifier | None = None,
    budget: float = 600.0,
    seed: int = 0,
    on: str | Crew = HERE,
    workers: int | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
) -> Comparison:
    """Every method by every metric, with a verdict.

    Without `methods`, some that differ in kind and cost little, and serve this model. Without `metrics`, all run that
    can; those that train new models (`roar`) only when asked for by name. What is left out is in the notes with the
    reason. After `budget` seconds no further metric is begun; one that has begun is finished for all methods, so that
    they stay comparable. `on` and `workers` say who trains (`unhans.crew`), the models of one method at a time.
    """
    chosen = list(as_examples(examples))
    how = {"cancelled": cancelled, "cache": cache or ScoreCache()}  # metrics ask much the same questions
    means = Means(language_model, train, start, seed, how)
    entries, notes = _metrics(classifier, chosen, metrics, means)
    named = usual_methods(classifier) if methods is None else methods
    begun, steps = time.monotonic(), len(named) * (1 + len(entries))
    with crewed(means, entries, on, workers) as means:
        subjects = []
        for one in _subjects(classifier, chosen, named, means, background, notes if methods is None else None):
            subjects.append(one)
            _tell(progress, len(subjects), steps)
        results, steps = _Results(subjects), len(subjects) * (1 + len(entries))
        for number, entry in enumerate(entries, start=1):
            if number > 1 and time.monotonic() - begun > budget:
                skipped = ", ".join(late.name for late in entries[number - 1 :])
                notes.append(f"Not measured: {skipped}, because the budget of {budget:g} seconds was used up.")
                break
            for place, reason in enumerate(results.measure(entry, means), start=1):
                notes += [reason] if reason else []
                _tell(progress, len(subjects) * number + place, steps)
    return results.comparison([*notes, *_flattery(entries, results)], seed)


def _subjects(  # noqa: PLR0917 - what all of them are made of
    classifier: Classifier,
    examples: Sequence[Example],
    methods: Sequence[Method],
    means: Means,
    background: Sequence[Example] | None,
    refusals: list[str] | None,
) -> Iterator[Subject]:
    """The examples explained by each method. One that refuses this model is left out where refusals are noted."""
    recipes: set[Recipe | str] = set()
    for method in methods:
        name, options = (method, {}) if isinstance(method, str) else method
        given: dict[str, Any] = {"language_model": means.language_model, "background": background, **means.how}
        try:
            made = subject(classifier, examples, name, options, seed=means.seed, **given)
        except Unsupported as error:
            if refusals is None:
                raise
            refusals.append(f"Left out: {name}: {error}")
            recipes.add(name)
        else:
            recipes.add(made.recipe)
            yield made
    if len(recipes) < max(1, len(methods)):
        raise BadOption("Give the names of the methods to compare, each once.")


def usual_methods(classifier: Classifier) -> list[str]:
    """What to compare where nobody said: methods that differ in kind and cost little, as far as the model allows."""
    within = ["leave_one_out", "input_x_gradient", "integrated_gradients", "deeplift", "lrp"]
    return within if "gradients" in classifier.capabilities else ["leave_one_out", "kernel_shap", "partition_shap"]


def _metrics(
    classifier: Classifier, examples: Sequence[Example], asked: Sequence[str] | None, means: Means
) -> tuple[list[Entry], list[str]]:
    """The metrics that can run here, and a sentence for each that cannot or was added."""
    wanted = [entry for entry in metric if "train" not in entry.asks] if asked is None else [metric[n] for n in asked]
    usable: list[Entry] = []
    obstacles: dict[str, list[str]] = {}
    for entry in dict.fromkeys(wanted):
        if reason := _obstacle(classifier, entry, examples, means):
            obstacles.setdefault(reason.removeprefix(f"{entry.name} "), []).append(entry.name)
        else:
            usable.append(entry)
    notes = [f"Left out: {', '.join(names)}: {reason}" for reason, names in obstacles.items()]
    if not usable:
        raise BadOption("None of these metrics can be used here. " + " ".join(notes))
    if all("erasure" in entry.facts["family"] for entry in usable):
        others = [metric[name] for name in _OTHER_FAMILIES]
        added = next(entry for entry in others if not _obstacle(classifier, entry, examples, means))
        usable.append(added)
        notes.append(
            f"{added.name} was added: metrics that erase words favour methods that erase them alike, "
            "so no verdict rests on them alone."
        )
    return sorted(usable, key=lambda entry: str(entry.facts["family"])), notes  # families together, as they are read


def _obstacle(classifier: Classifier, entry: Entry, examples: Sequence[Example], means: Means) -> str:
    try:
        check_measurable(classifier, entry, examples, means)
    except UnhansError as error:
        return str(error)
    return ""


def _flattery(entries: Sequence[Entry], results: _Results) -> list[str]:
    """Whom the metrics favour, metrics with the same bias together."""
    told: dict[str, list[str]] = {}
    for entry in entries:
        if (sentence := favours(entry)) and entry.name in results.metrics:
            told.setdefault(sentence, []).append(entry.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in told.items()]


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


@dataclass
class _Results:
    """What was measured, and what follows from it."""

    subjects: Sequence[Subject]
    found: dict[tuple[str, Recipe], Measurement] = field(default_factory=dict)
    _baselines: dict[Any, list[NDArray[np.float64]]] = field(default_factory=dict)

    def measure(self, entry: Entry, means: Means) -> Iterator[str]:
        """Every method by one metric; each comes with the reason why it has no grade, or with nothing."""
        cancelled = means.how["cancelled"]
        for one in self.subjects:
            if cancelled is not None and cancelled():
                raise Cancelled("The comparison was stopped.")
            try:
                self.found[entry.name, one.recipe] = measurement(entry, one, means, {}, baselines=self._baselines)
            except (BadData, Unsupported) as error:  # such as a method on a model whose head was drawn anew
                yield f"{entry.name} does not grade {one.recipe.name}: {error}"
            else:
                yield ""

    @property
    def recipes(self) -> list[Recipe]:
        return [one.recipe for one in self.subjects]

    @property
    def metrics(self) -> list[str]:
        """Metrics that graded at least one method."""
        return list(dict.fromkeys(name for name, _ in self.found))

    def comparison(self, notes: Sequence[str], seed: int) -> Comparison:
        if not self.found:
            raise BadData("None of the metrics is defined on these examples. " + " ".join(notes))
        shared = [name for name in self.metrics if all((name, recipe) in self.found for recipe in self.recipes)]
        partial = [name for name in self.metrics if name not in shared]
        if not shared:
            raise BadData("No metric grades all of these methods, so they cannot be ranked. " + " ".join(notes))
        ranks = self._ranks(shared, self._samples(shared, seed))
        rows = self._rows(ranks[0], ranks[1:])
        families = {metric[name].facts["family"] for name in shared}
        some = [f"{', '.join(partial)}: shown, but not ranked, since not all methods have a grade."] if partial else []
        grades = [self.found[n, r].grade for n in self.metrics for r in self.recipes if (n, r) in self.found]
        n = len(self.subjects[0].examples)
        verdict = _verdict(rows, n, len(families))
        return Comparison(tuple(grades), rows, verdict, (*notes, *some), n, self.subjects[0].classifier.revision)

    def _rows(self, ranks: NDArray[np.float64], drawn: NDArray[np.float64]) -> tuple[RankedMethod, ...]:
        """The methods, those without a warning first, then by rank; ties in the order they were given in."""
        warnings = [self._warning(recipe) for recipe in self.recipes]
        order = sorted(range(len(ranks)), key=lambda n: (bool(warnings[n]), ranks[n]))
        best = order[0]
        rows = []
        for n in order:
            wins, contests = self._contests(self.recipes[n])
            near = n != best and not warnings[n] and float(np.percentile(drawn[:, n] - drawn[:, best], 2.5)) <= 0
            rows.append(RankedMethod(self.recipes[n], float(ranks[n]), wins, contests, near, warnings[n]))
        return tuple(rows)

    def _samples(self, names: Sequence[str], seed: int) -> dict[int, NDArray[np.float64]]:
        """How often each example (or run) counts: first once, then as drawn with replacement, alike for all methods."""
        rng = np.random.default_rng(seed)
        sizes = sorted({len(self.found[name, self.recipes[0]].values) for name in names})
        return {n: np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)]) for n in sizes}

    def _ranks(self, names: Sequence[str], samples: Mapping[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Mean over families of the mean rank inside each: samples × methods."""
        by_family: dict[str, list[NDArray[np.float64]]] = {}
        for name in names:
            lines = [self.found[name, recipe].values for recipe in self.recipes]
            means = np.stack([_means(line, samples[len(line)]) for line in lines], axis=1)
            lower_is_better = -means if metric[name].facts["better"] == "higher" else means
            ranks = stats.rankdata(np.round(lower_is_better, 12), axis=1)  # equal but for rounding is equal
            by_family.setdefault(metric[name].facts["family"], []).append(ranks)
        mean: NDArray[np.float64] = np.mean([np.mean(ranks, axis=0) for ranks in by_family.values()], axis=0)
        return mean

    def _contests(self, recipe: Recipe) -> tuple[int, int]:
        grades = [one.grade for (_, method), one in self.found.items() if method == recipe]
        open_to = [grade for grade in grades if grade.family not in _NO_CONTEST]
        return sum(grade.beats_random for grade in open_to), len(open_to)

    def _warning(self, recipe: Recipe) -> str:
        """Why a method is not to be recommended."""
        told = []
        check = self.found.get(("sanity_spearman", recipe))
        if check is not None and check.grade.value > SAME:
            told.append("does not depend on the model")
        wins, contests = self._contests(recipe)
        if 2 * wins < contests:
            told.append(f"is no better than random by {contests - wins} of {contests} metrics of faithfulness")
        return " and ".join(told)


def _means(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the defined values in each sample; of all of them where a sample has missed every one."""
    defined = np.isfinite(values)
    kept, weights = values[defined], counts[:, defined]
    weights[weights.sum(axis=1) == 0] = 1.0
    means: NDArray[np.float64] = weights @ kept / weights.sum(axis=1)
    return means


def _verdict(rows: Sequence[RankedMethod], examples: int, families: int) -> str:
    """What follows, in a sentence or three."""
    plain = [row.method.name for row in rows]
    names = [name if plain.count(name) == 1 else str(row.method) for name, row in zip(plain, rows, strict=True)]
    best = rows[0]
    if best.warning:
        told = f"On these {examples} texts none of the methods can be trusted"
    elif len(rows) == 1:
        told = f"On these {examples} texts {names[0]} raised no alarm; it was compared with random scores only"
    else:
        kinds = f"{families} kinds of metric" if families > 1 else "one kind of metric"
        told = f"On these {examples} texts trust {names[0]} most: mean rank {best.rank:.1f} over {kinds}"
        near = [name for name, row in zip(names, rows, strict=True) if row.within_noise]
        if near:
            told += f"; {_list(near)} {'is' if len(near) == 1 else 'are'} within noise"
    warned = [f"{name} {row.warning}." for name, row in zip(names, rows, strict=True) if row.warning]
    return " ".join([f"{told}.", *warned])


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
