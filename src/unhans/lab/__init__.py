"""The bug lab: which explanation sees which bug, on this model and these data (Adebayo et al. 2020).

`run` plants bugs of which the truth is known, proves that each took, and lets every attribution method look for each,
beside random scores, and beside the methods that are made for the purpose: doubts for wrong labels, detectors for
strange texts. What the measures mean is in docs/lab.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unhans import __version__
from unhans.attributions import readable_words
from unhans.errors import BadOption, Cancelled, UnhansError
from unhans.lab._cases import Found, Measure, Seen, detected, sightings
from unhans.lab._curves import layer_curves, warnings_of
from unhans.lab._explaining import USUAL, Explainer, Method, RandomScores, Refusals, explainers
from unhans.lab._keeping import SoFar, fingerprint
from unhans.lab._models import Models, apart, asks, checked, obstacle, some_of
from unhans.lab._planting import Planter, Scene
from unhans.language_model import LanguageModel
from unhans.model import Classifier, TransformerClassifier
from unhans.scoring import How, Progress, ScoreCache
from unhans.text import Words
from unhans.training import Schedule
from unhans.types import Example, Lab, LayerCurve, OptionValue, PlantedBug, PlantedText, Recipe, Sighting

__all__ = ["USUAL", "Bug", "Method", "curves", "obstacle", "run"]

Bug = str | tuple[str, Mapping[str, Any]]
"""A bug by name, or with options."""

_BACKGROUND = 100  # training texts that methods compare with
_DRAWS = 20  # of random scores
_CURVE_TEXTS, _CURVE_DRAWS = 20, 2
_SHOWN, _DRAWN = 10, 3  # examples of each bug that are named, and that are kept with their scores
_TOOK = 0.05  # beyond the clean model's number, without which a bug has not taken


def run(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    test: Sequence[Example],
    *,
    bugs: Sequence[Bug] | None = None,
    methods: Sequence[Method] | str | None = None,
    trained: bool = True,
    other: Classifier | None = None,
    other_domain: Classifier | None = None,
    schedule: Schedule | None = None,
    examples: int = 100,
    language_model: LanguageModel | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Lab:
    """Plant bugs, and tell which attribution methods see which.

    Without `bugs`, all that can be planted here; what is left out is in the notes. `methods` are names, names with
    options, 'usual', which are cheap, or 'all' that the classifier can serve, as without any. With `trained`, the
    classifier is the model in question: bugs of weights and of test time are planted in it, and trainings start from
    its weights. Otherwise it is only a start, and a clean model is trained first. All models of the lab are trained
    from the same start with the same `schedule`. `other` is another state of the model, such as an earlier one;
    `other_domain` a model with the same labels of other texts. At most `examples` test texts are explained for each
    bug. With a `folder`, what is found is kept there bug by bug, and a run that was stopped goes on if the very same is
    asked for again. Nothing given is changed.
    """
    classifier.require({"train"}, "The lab")
    if examples < 10:
        raise BadOption(f"examples must be at least 10, not {examples}.")
    taught = checked(train, classifier, "train")
    tested = apart(taught, checked(test, classifier, "test"))
    plan = replace(schedule or Schedule(), seed=(schedule or Schedule()).seed + seed)
    models = Models(classifier, taught, tested, trained, other, other_domain, plan)
    chosen, notes = asks(bugs, models)
    given = {
        "background": some_of(taught, _BACKGROUND, seed),
        "language_model": language_model,
        "cancelled": cancelled,
        "cache": ScoreCache(),
    }
    looking, left_out = explainers(classifier, tested[0], "all" if methods is None else methods, given, seed)
    states = [None if one is None else one.revision for one in (classifier, other, other_domain)]
    named = [(ask.name, ask.options) for ask in chosen], [one.name for one in looking]
    told = [__version__, states, named, trained, examples, asdict(plan), seed]
    so_far = SoFar(None if folder is None else Path(folder), fingerprint(told, language_model, taught, tested))
    refusals = Refusals(by_name=not isinstance(methods, str | None))
    bench = _Bench(looking, seed, refusals, so_far.read())
    curved = any(ask.entry.name == "reinitialised" for ask in chosen)
    how, steps = How(progress, cancelled), len(chosen) + curved
    how.tell(0, 1)
    planter = Planter(models, examples, seed, language_model)
    for number, ask in enumerate(chosen):
        own = how.part(number, steps)
        if any(one.name == ask.name for one in bench.bugs):
            continue  # found before the run was stopped
        try:
            bench.look(planter.scene(ask, own.part(0, 2)), own.part(1, 2))
        except Cancelled:
            raise
        except UnhansError as error:
            if bugs is not None:
                raise
            notes.append(f"Left out: {ask.name}: {error}")
        else:
            so_far.keep(bench.lab(classifier.revision))
    signed: list[LayerCurve] = []
    strengths: list[LayerCurve] = []
    if curved:
        texts = some_of(tested, min(examples, _CURVE_TEXTS), seed)
        part = how.part(len(chosen), steps)
        clean = models.reference(part)
        signed, strengths = layer_curves(
            clean, texts, looking, draws=_CURVE_DRAWS, seed=seed, how=part, refusals=refusals
        )
    how.tell(1, 1)
    so_far.forget()
    return replace(
        bench.lab(models.reference(how).revision),
        curves=tuple(signed),
        warnings=tuple(warnings_of(signed, strengths)),
        notes=(*notes, *left_out, *refusals.notes, *_doubtful(bench.bugs)),
        recipe=_recipe([ask.name for ask in chosen], [one.name for one in looking], trained, examples, plan, seed),
    )


def curves(
    classifier: TransformerClassifier,
    texts: Sequence[Example],
    *,
    methods: Sequence[Method] | str = "usual",
    background: Sequence[Example] | None = None,
    language_model: LanguageModel | None = None,
    draws: int = _CURVE_DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[list[LayerCurve], list[LayerCurve]]:
    """How far each method's scores survive when a model is drawn anew, part by part; then the same of their strengths.

    Of each method two curves: from the head down to a part, and the part alone; of a usual one that refuses one of the
    models, none. Nothing is trained.
    """
    classifier.require({"train"}, "A curve over layers")
    if not texts or draws < 1:
        raise BadOption("A curve needs at least one text and one random model.")
    given = {"background": background, "language_model": language_model, "cancelled": cancelled, "cache": ScoreCache()}
    looking, _ = explainers(classifier, texts[0], methods, given, seed)
    how, refusals = How(progress, cancelled).part(0, 1), Refusals(by_name=not isinstance(methods, str))
    return layer_curves(classifier, texts, looking, draws=draws, seed=seed, how=how, refusals=refusals)


class _Bench:
    """Where all methods look at one bug after the other."""

    def __init__(self, methods: Sequence[Explainer], seed: int, refusals: Refusals, known: Lab | None = None) -> None:
        self.methods, self.seed, self.refusals = methods, seed, refusals
        self.refusals.notes += known.notes if known else ()
        words: dict[str, Words] = {}
        self.random = [RandomScores(draw, words) for draw in range(_DRAWS)]
        self.bugs: list[PlantedBug] = list(known.bugs) if known else []
        self.sightings: list[Sighting] = list(known.sightings) if known else []
        self.examples: list[tuple[str, tuple[str, ...]]] = list(known.examples) if known else []
        self.texts: list[PlantedText] = list(known.texts) if known else []

    def lab(self, revision: str) -> Lab:
        """What was seen so far of the bugs of this model."""
        found = tuple(self.bugs), tuple(self.sightings), (), (), tuple(self.examples)
        return Lab(*found, notes=tuple(self.refusals.notes), revision=revision, texts=tuple(self.texts))

    def look(self, scene: Scene, how: How) -> None:
        """What all methods show of one bug."""
        name, steps = scene.bug.name, len(self.methods) + 1
        chance = _means([scene.case.look(one, How()).found for one in self.random])
        seen: dict[str, Seen] = {}
        told: list[Sighting] = []
        for number, method in enumerate(self.methods):
            if own := self.refusals.heed(method.name, name, scene.case.look, method, how.part(number, steps)):
                seen[method.name] = own
                told += sightings(name, method.name, "attribution", own.found, chance)
        if scene.beside is not None:
            for other, by, found in scene.beside(how.part(len(self.methods), steps)):
                told += sightings(name, other, by, {"detection": found}, {"detection": self._chance(found)})
        best = _best(seen)
        self.sightings += told  # only now: a bug that could not be looked at with all methods is left out as a whole
        self.bugs.append(scene.bug)
        self.examples.append((name, best))
        self.texts += _texts(scene, best[:_DRAWN], seen)

    def _chance(self, found: Found) -> float:
        """Detection by random numbers on as many texts."""
        rng = np.random.default_rng([self.seed, 41])
        half = max(1, found.n // 2)
        return float(np.mean([detected(rng.random(half), rng.random(half)).value for _ in self.random]))


def _means(several: Sequence[Mapping[Measure, Found]]) -> dict[Measure, float]:
    found: dict[Measure, list[float]] = {}
    for one in several:
        for measure, value in one.items():
            found.setdefault(measure, []).append(value.value)
    return {measure: float(np.mean(values)) for measure, values in found.items()}


def _best(seen: Mapping[str, Seen]) -> tuple[str, ...]:
    """Ids of the texts that show a bug best to the method that detects it best."""

    def detection(one: Seen) -> float:
        return one.found["detection"].value if "detection" in one.found else 0.0

    best = max(seen.values(), key=detection).shows
    return tuple(sorted(best, key=lambda id_: -best[id_])[:_SHOWN])


def _texts(scene: Scene, wanted: Sequence[str], seen: Mapping[str, Seen]) -> list[PlantedText]:
    """These texts as they were planted, with the scores that each method gives their words."""
    known = {text.id: (model, text, label) for model, text, label in scene.case.scored() if text.id in wanted}
    found = []
    for model, text, label in (known[id_] for id_ in wanted):
        words = readable_words(model, text, "word")
        strings, spans = tuple(words.strings[n] for n in words.open), tuple(words.spans[n] for n in words.open)
        scores = tuple((method, tuple(one.lines[text.id].tolist())) for method, one in seen.items())
        found.append(PlantedText(scene.bug.name, text, label, strings, spans, scores))
    return found


def _doubtful(bugs: Sequence[PlantedBug]) -> list[str]:
    """Bugs that did not take: their rows show nothing."""
    return [
        f"{one.name} did not take, so its row shows nothing: {one.proof}"
        for one in bugs
        if one.took is not None and one.took - (one.usual or 0.0) < _TOOK
    ]


def _recipe(  # noqa: PLR0917 - what was run
    bugs: Sequence[str], methods: Sequence[str], trained: bool, examples: int, schedule: Schedule, seed: int
) -> Recipe:
    settings: dict[str, OptionValue] = {
        "epochs": schedule.epochs,
        "learning_rate": schedule.learning_rate,
        "batch_size": schedule.batch_size,
    }
    options: dict[str, OptionValue] = {
        "bugs": ", ".join(bugs),
        "methods": ", ".join(methods),
        "trained": trained,
        "examples": examples,
    }
    return Recipe("lab", "lab", tuple((options | settings).items()), seed)
