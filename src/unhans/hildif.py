"""HILDIF: a model is debugged by the training examples behind its errors (Zylberajch et al. 2021, Algorithm 1).

`loop` is the whole of it in one call: draw anchors, trace each to the training examples that helped it most, ask
somebody how far each shares the anchor's shortcut, make copies of it for that, and train on them. `ablation` runs the
loop with and without people's scores (HS), copies (DA) and anchors with a pattern (H), as the paper's Figure 1c does,
and counts right answers by pattern and label, by group, and on the data that the model was made for.

People can be simulated (`SimulatedPerson`): they judge by the patterns in `heuristics` that two texts share.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import chain, islice, product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from unhans.augmentations import COPIES_PER_POINT, augment, augmentation
from unhans.augmentations import DEFAULT as SYNONYMS
from unhans.crew import HERE, Crew, crew
from unhans.errors import BadData, BadOption
from unhans.feedback import copies_wanted, settle_neighbours
from unhans.fixes import mend, training_settings
from unhans.heuristics import choose_anchors, has, heuristic, patterns
from unhans.influences import DEFAULT, Index, Influences, influence, prepare, recipe_of
from unhans.influences import How as Tracing
from unhans.language_model import LanguageModel
from unhans.model import TransformerClassifier
from unhans.scoring import How, Progress
from unhans.training import Schedule, Watch, as_far_as, fit
from unhans.types import Copy, Example, Feedback, Influence, NeighbourRating, Recipe

__all__ = [
    "OURS",
    "PAPER",
    "Configuration",
    "Debugged",
    "Plan",
    "Round",
    "SimulatedPerson",
    "ablation",
    "configurations",
]
__all__ += ["loop", "table"]

Score = Callable[[Example, Example], int | None]
"""How far a training example (the second) shares the shortcut of an anchor: 1 to 5, or None to skip the question."""
Bars = Callable[[str], Progress]
"""A progress bar by its title."""
Kind = Callable[[Example], str | None]
"""Under which name an example of the stress set is counted; None: under none but its label's."""

_ALIKE = 5  # what every neighbour gets where nobody is asked
_LOOKED_AT = 500  # texts that anchors are sought among
_HELD_OUT = 1000  # texts that say how far to go
_CLOSE = 0.8  # share of words in common from which on a pair is nearly an overlap
_NESTED = ("constituent", "subsequence", "lexical_overlap")  # who has the first has the others
_AS_PAPER = {"epochs": 2, "learning_rate": 1e-5, "batch_size": 16, "patience": 0}


@dataclass(frozen=True)
class Plan:
    """How the loop is run: the paper's numbers, unless told otherwise."""

    anchors: int = 5
    heuristic: str | tuple[str, ...] | None = None  # anchors have this pattern, or one of these; None: any
    contrast: bool = False  # as many anchors again that are just right, under the label that the others are taken for
    top: int = 10  # neighbours of each anchor
    alike: bool = False  # only neighbours that have a pattern of the anchor (of `heuristic`, if that is given)
    longest: int = 0  # words that a neighbour has at most, for somebody has to read it; 0: any number
    method: str = DEFAULT  # of tracing
    augmentation: str | None = SYNONYMS  # None: neighbours are trained on as they are
    per_point: int = COPIES_PER_POINT
    balance: bool = False  # as many copies under every label
    only_copies: bool = False  # the paper's variant: nothing else is replayed
    training: Mapping[str, Any] = field(default_factory=dict)  # see `fixes.TRAINING`
    rounds: int = 1

    def __post_init__(self) -> None:
        if min(self.anchors, self.top, self.per_point, self.rounds) < 1:
            raise BadOption("anchors, top, per_point and rounds are 1 or more.")
        if self.longest < 0:
            raise BadOption(f"longest is 0 or more, not {self.longest}.")


PAPER = Plan(only_copies=True, training=_AS_PAPER)
OURS = Plan(training={"epochs": 2, "learning_rate": 2e-5, "replay": 0.25, "patience": 0})


@dataclass(frozen=True)
class SimulatedPerson:
    """Somebody who judges by the patterns that two texts share: all of them is 5, some are 2 to 4, none is 1.

    Two texts without any pattern cannot be told: 3. `error_rate` of the answers are any other number, `skip_rate` are
    no answer. `knows` are patterns to look for, with options, instead of all that need none. The same two texts are
    always judged the same.
    """

    error_rate: float = 0.0
    skip_rate: float = 0.0
    knows: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.error_rate <= 1 and 0 <= self.skip_rate <= 1):
            raise BadOption("error_rate and skip_rate lie between 0 and 1.")

    def __call__(self, anchor: Example, train: Example) -> int | None:
        """How similar; None: skipped."""
        told = f"{anchor.text_hash} {train.text_hash}".encode()
        rng = np.random.default_rng([self.seed, int(blake2b(told, digest_size=8).hexdigest(), 16)])
        skips, errs = rng.random(2)
        if skips < self.skip_rate:
            return None
        right = self._right(anchor, train)
        others = [score for score in range(1, 6) if score != right]
        return int(rng.choice(others)) if errs < self.error_rate else right

    def _right(self, anchor: Example, train: Example) -> int:
        one, other = self._seen(anchor), self._seen(train)
        if not one and not other:
            return 3
        if shared := one & other:
            return 1 + round(4 * len(shared) / len(one | other))
        return 2 if "lexical_overlap" in one and has(train, "lexical_overlap", share=_CLOSE) else 1

    def _seen(self, example: Example) -> set[str]:
        if self.knows is None:
            return set(patterns(example))
        return {name for name, options in self.knows if has(example, name, **dict(options))}


@dataclass(frozen=True)
class Round:
    """One time round the loop: what was drawn, traced, said, copied and made."""

    anchors: tuple[Example, ...]
    influences: Influences
    feedback: tuple[Feedback, ...]
    copies: tuple[Copy, ...]
    classifier: TransformerClassifier


@dataclass(frozen=True)
class Debugged:
    """The classifier in the end, and how it came about."""

    classifier: TransformerClassifier
    rounds: tuple[Round, ...]

    @property
    def judgements(self) -> int:
        """Questions that somebody answered."""
        return sum(len(one.feedback) for one in self.rounds)

    @property
    def copies(self) -> Counter[str]:
        """Copies that were trained on, by label."""
        return Counter(copy.label for one in self.rounds for copy in one.copies)


def loop(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    validation: Sequence[Example],
    plan: Plan = PAPER,
    *,
    score: Score | None = None,
    anchors: Sequence[Example] | None = None,
    tested: Iterable[Example] = (),
    index: Index | None = None,
    language_model: LanguageModel | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    bars: Bars | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Debugged:
    """A classifier that was debugged with a few anchors from `validation`; the one given is left as it is.

    `score` says how far a training example shares an anchor's shortcut; without it, all do. `anchors` are hand-picked
    ones, instead of those drawn. No copy is, or looks like, one of the `tested` texts, and no neighbour that is one is
    trained on. `index` is what the first round traces with, if somebody has prepared it already; else it is made here,
    and kept in `folder` if there is one.
    """
    known = {example.id: example for example in train if example.label is not None}
    run = _Run(plan, known, tuple(tested), tuple(validation), language_model, seed, _reused(bars), cancelled)
    rounds: list[Round] = []
    for number in range(plan.rounds):
        chosen = list(anchors) if anchors is not None else run.anchors(classifier, validation, number)
        if index is None or number:
            index = run.index(classifier, folder)
        influences = run.trace(index, chosen)
        feedback = run.ask(influences, chosen, score, classifier.revision)
        copies = run.copies(feedback)
        classifier = run.teach(classifier, feedback, copies)
        rounds.append(Round(tuple(chosen), influences, tuple(feedback), tuple(copies), classifier))
    return Debugged(classifier, tuple(rounds))


def _reused(bars: Bars | None) -> Bars | None:
    """One bar for every title, however often it comes up."""
    return None if bars is None else cache(bars)


@dataclass(frozen=True)
class _Run:
    """The steps of a round, with all that they share."""

    plan: Plan
    train: Mapping[str, Example]
    tested: tuple[Example, ...]
    validation: tuple[Example, ...]
    language_model: LanguageModel | None
    seed: int
    bars: Bars | None
    cancelled: Callable[[], bool] | None
    _patterns: dict[str, set[str]] = field(default_factory=dict)

    def _bar(self, title: str) -> Progress | None:
        return self.bars(title) if self.bars is not None else None

    def anchors(self, classifier: TransformerClassifier, validation: Sequence[Example], number: int) -> list[Example]:
        """Texts that are predicted wrong; with `contrast` as many that are just right, under the label overused.

        Of those about which the model is least sure: of what is never in doubt nothing can be traced.
        """
        usable = self._looked_at([example for example in validation if example.label is not None], number)
        how = {"progress": self._bar("Looking for errors"), "cancelled": self.cancelled}
        said = dict(zip((e.id for e in usable), classifier.predict(usable, **how), strict=True))
        drawing: dict[str, Any] = {
            "n": self.plan.anchors,
            "heuristic": self.plan.heuristic,
            "seed": self.seed * 1000 + number,
        }
        wrong = choose_anchors(usable, said, **drawing)
        if not self.plan.contrast:
            return wrong
        taken_for = {said[example.id].label for example in wrong}
        right = [e for e in usable if e.label in taken_for and said[e.id].label == e.label]
        return [*wrong, *sorted(right, key=lambda e: said[e.id].confidence)[: self.plan.anchors]]

    def _looked_at(self, examples: Sequence[Example], number: int) -> list[Example]:
        """Those with the pattern, of which some are drawn: errors are not so rare that a model has to read them all."""
        fit = [e for e in examples if not self._names or any(has(e, name) for name in self._names)]
        order = np.random.default_rng([self.seed, number, 6]).permutation(len(fit))[:_LOOKED_AT]
        return [fit[int(place)] for place in order]

    def index(self, classifier: TransformerClassifier, folder: str | Path | None, on: str | Crew = HERE) -> Index:
        """Whatever tells which training examples helped."""
        most = self.plan.longest
        shown = [e for e in self.train.values() if not most or has(e, "length", most=most)]
        if not shown:
            raise BadData(f"None of the {len(self.train):,} training examples has {most:,} words or fewer.")
        return prepare(
            classifier,
            shown,
            method=self.plan.method,
            folder=folder,
            on=on,
            progress=self._bar("Looking at training examples"),
            cancelled=self.cancelled,
        )

    def trace(self, index: Index, anchors: Sequence[Example]) -> Influences:
        """The training examples that helped each anchor's label most."""
        recipe = recipe_of(influence[self.plan.method], {}, "label", 0)
        how = Tracing(self._bar("Tracing"), self.cancelled)
        if not self.plan.alike:
            return index.trace(anchors, recipe, top=self.plan.top, how=how)
        texts = {example.id: example for example in anchors}
        found = index.trace(anchors, recipe, top=len(index.train), how=how)
        return Influences(self._shown(one, self._named(texts[one.example])) for one in found)

    def _shown(self, one: Influence, wanted: set[str]) -> Influence:
        """The first that have one of the patterns."""
        sides = (
            tuple(islice((n for n in side if wanted & self._named(self.train[n.train])), self.plan.top))
            for side in (one.helpful, one.harmful)
        )
        helpful, harmful = sides
        return replace(one, helpful=helpful, harmful=harmful)

    def _named(self, example: Example) -> set[str]:
        """The patterns of an example that count here."""
        if example.id not in self._patterns:
            self._patterns[example.id] = set(patterns(example)) & set(self._names or heuristic.names)
        return self._patterns[example.id]

    @property
    def _names(self) -> list[str]:
        return [self.plan.heuristic] if isinstance(self.plan.heuristic, str) else list(self.plan.heuristic or ())

    def ask(
        self, influences: Influences, anchors: Sequence[Example], score: Score | None, revision: str
    ) -> list[Feedback]:
        """What somebody says of each neighbour; questions that are skipped leave nothing."""
        texts = {example.id: example for example in anchors}
        found = []
        for one in influences:
            for neighbour in one.helpful:
                said = _ALIKE if score is None else score(texts[one.example], self.train[neighbour.train])
                if said is not None:
                    found.append(_rating(texts[one.example], neighbour.train, said, revision))
        if not found:
            raise BadData("Nobody rated any of the neighbours, or there are none. Nothing was trained.")
        return found

    def copies(self, feedback: Sequence[Feedback]) -> list[Copy]:
        """So many copies of each neighbour for every point that it got."""
        if self.plan.augmentation is None:
            return []
        wanted = copies_wanted(settle_neighbours(feedback), self.plan.per_point)
        made = augment(
            [self.train[id_] for id_ in wanted],
            wanted,
            method=self.plan.augmentation,
            language_model=self.language_model,
            tested=self.tested,
            seed=self.seed,
            progress=self._bar("Making copies"),
            cancelled=self.cancelled,
        )
        return _balanced(made) if self.plan.balance else made

    def teach(
        self, classifier: TransformerClassifier, feedback: Sequence[Feedback], copies: Sequence[Copy]
    ) -> TransformerClassifier:
        """Train on with the copies, or with the neighbours themselves where none are wanted."""
        watch = Watch(progress=self._bar("Training"), cancelled=self.cancelled)
        points = copies_wanted(settle_neighbours(feedback), 1)
        if self.plan.augmentation is None:  # each as often as it has points
            texts = [self.train[id_] for id_, n in points.items() for _ in range(n)]
            return self._train_alone(classifier, texts, watch)
        if self.plan.only_copies:
            originals = [self.train[id_] for id_ in dict.fromkeys(copy.source for copy in copies)]
            return self._train_alone(classifier, [*originals, *(copy.example for copy in copies)], watch)
        made = mend(
            classifier,
            list(self.train.values()),
            feedback,
            fix="similarity_augmentation",
            copies=copies,
            validation=self._held_out,
            tested=self.tested,
            training=self.plan.training,
            seed=self.seed,
            watch=watch,
        )
        return made.classifier

    @property
    def _held_out(self) -> list[Example]:
        """Some of the validation texts: they say how far to go, where `training` has a tolerance."""
        labelled = [example for example in self.validation if example.label is not None]
        order = np.random.default_rng([self.seed, 8]).permutation(len(labelled))[:_HELD_OUT]
        return [labelled[int(place)] for place in order]

    def _train_alone(
        self, classifier: TransformerClassifier, texts: Sequence[Example], watch: Watch
    ) -> TransformerClassifier:
        """As the paper does: all epochs on these, with nobody held out to choose one; often they have one label."""
        settings = training_settings(self.plan.training)
        schedule = Schedule(
            epochs=settings["epochs"],
            learning_rate=settings["learning_rate"],
            batch_size=settings["batch_size"],
            seed=self.seed,
        )
        taboo = {example.text_hash for example in self.tested}
        taught = [e for e in self._beside(texts, settings["replay"]) if e.text_hash not in taboo]
        if not taught:
            raise BadData("All that could be trained on is tested too. Nothing was trained.")
        made = fit(classifier, taught, schedule=schedule, one_label=True, watch=watch)
        if settings["tolerance"] == 1:
            return made
        return as_far_as(classifier, made, self._held_out, settings["tolerance"], cancelled=self.cancelled)[0]

    def _beside(self, texts: Sequence[Example], replay: float) -> list[Example]:
        """The texts, with a part of all others unless nothing is to be replayed."""
        if self.plan.only_copies:
            return list(texts)
        rng, own = np.random.default_rng([self.seed, 7]), {example.id for example in texts}
        return [*texts, *(e for e in self.train.values() if e.id not in own and rng.random() < replay)]


def _rating(anchor: Example, train: str, similar: int, revision: str) -> Feedback:
    says = NeighbourRating(anchor.id, train, similar)
    id_ = blake2b(repr((revision, says)).encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return Feedback(f"hildif-{id_}", says, "hildif", "2021-01-01T00:00:00+00:00", revision, anchor.text_hash)


def _balanced(copies: Sequence[Copy]) -> list[Copy]:
    """As many under every label as the label with the fewest has; every source keeps its first ones."""
    by_label: dict[str, dict[str, list[Copy]]] = defaultdict(lambda: defaultdict(list))
    for copy in copies:
        by_label[copy.label][copy.source].append(copy)
    turns = {
        label: [copy for copy in chain.from_iterable(zip_longest(*sources.values())) if copy is not None]
        for label, sources in by_label.items()
    }
    fewest = min(map(len, turns.values()), default=0)
    return [copy for own in turns.values() for copy in own[:fewest]]


# The ablation


@dataclass(frozen=True)
class Configuration:
    """A row of the table: how the loop is run, and whether people are asked; no plan is the model as it was."""

    name: str
    plan: Plan | None
    scored: bool = True


def configurations(
    picked: str | tuple[str, ...] = ("lexical_overlap", "subsequence"), paper: Plan = PAPER, ours: Plan = OURS
) -> list[Configuration]:
    """The model as it was, ours, and the paper's eight: with and without scores, copies, and anchors with a pattern.

    `picked` are the patterns of anchors that are picked; ours may name its own.
    """
    own = ours if ours.heuristic else replace(ours, heuristic=picked)
    rows = [Configuration("baseline", None), Configuration("ours", own)]
    for scored, copied, chosen in product((True, False), repeat=3):
        names = [f"{'' if on else '¬'}{name}" for name, on in (("HS", scored), ("DA", copied), ("H", chosen))]
        plan = replace(paper, augmentation=paper.augmentation if copied else None, heuristic=picked if chosen else None)
        rows.append(Configuration(" ".join(names), plan, scored))
    return rows


def narrowest(example: Example) -> str | None:
    """The narrowest of the nested patterns of pairs: constituent, subsequence or lexical_overlap; else the first."""
    found = patterns(example)
    return next((name for name in _NESTED if name in found), found[0] if found else None)


def ablation(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    validation: Sequence[Example],
    stress: Sequence[Example],
    held_out: Sequence[Example],
    *,
    rows: Sequence[Configuration] | None = None,
    score: Score | None = None,
    kind: Kind = narrowest,
    seeds: Sequence[int] = (0,),
    results: str | Path | None = None,
    folder: str | Path | None = None,
    language_model: LanguageModel | None = None,
    bars: Bars | None = None,
    told: Callable[[dict[str, Any]], None] | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[dict[str, Any]]:
    """Every configuration with every seed: how many it gets right of the stress set and of the held-out set.

    People are simulated unless `score` is given. Each run is one dictionary, and `told` of as it is done: right answers
    and sizes by `kind` and label, by group and label, of the held-out set, with how many questions were answered and
    copies made. With a file of `results` a run that was stopped goes on where it was: runs that are in it already, of
    this model and with these settings, are not made again, and others stay there. The training examples are looked at
    once. `on` and `workers` say who looks and runs (`unhans.crew`): a configuration with a seed is a part. What is
    given back are the runs of this model with these settings, by seed and configuration.
    """
    rows = configurations() if rows is None else rows
    score = score or SimulatedPerson()
    store, bars = _Results.open(results), _reused(bars)
    data = _fingerprint(language_model, train, validation, stress, held_out)
    keys = {row.name: _key(row, score, kind, data) for row in rows}
    facts = {"revision": classifier.revision}
    asked = [
        (row, facts | {"configuration": row.name, "seed": seed, "run": keys[row.name]})
        for seed, row in product(dict.fromkeys(seeds), rows)
    ]
    missing = [(row, key) for row, key in asked if not store.has(key)]
    if missing:  # or else nobody is sent for
        work = _Runs(classifier, train, validation, stress, held_out, score, kind, language_model, bars)
        with crew(on, workers) as hands:
            work.look([row.plan for row, _ in missing if row.plan is not None], folder, hands, cancelled)
            for number, found in work.spread(missing, hands, cancelled):
                store.add(missing[number][1] | found)
                if told is not None:
                    told(store.runs[-1])
    order = list(keys)
    own = [run for run in store.runs if facts.items() <= run.items() and run["run"] in keys.values()]
    return sorted(own, key=lambda run: (run["seed"], order.index(run["configuration"])))


@dataclass(frozen=True)
class _Runs:
    """The runs of an ablation, as a crew makes them."""

    classifier: TransformerClassifier
    train: Sequence[Example]
    validation: Sequence[Example]
    stress: Sequence[Example]
    held_out: Sequence[Example]
    score: Score
    kind: Kind
    language_model: LanguageModel | None
    bars: Bars | None
    indexes: dict[tuple[str, int], Index] = field(default_factory=dict)  # by all of a plan that they depend on

    def __getstate__(self) -> dict[str, Any]:
        """In another process nobody is looking at bars."""
        return vars(self) | {"bars": None}

    def look(
        self, plans: Iterable[Plan], folder: str | Path | None, hands: Crew, cancelled: Callable[[], bool] | None
    ) -> None:
        """Let every way of tracing that is wanted look at the training examples."""
        known = {example.id: example for example in self.train if example.label is not None}
        for plan in plans:
            if (plan.method, plan.longest) not in self.indexes:
                run = _Run(plan, known, (), (), None, 0, self.bars, cancelled)
                self.indexes[plan.method, plan.longest] = run.index(self.classifier, folder, hands)

    def spread(
        self,
        missing: Sequence[tuple[Configuration, Mapping[str, Any]]],
        hands: Crew,
        cancelled: Callable[[], bool] | None,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """What each run comes to, with its number, as they are finished."""
        tell = self.bars("Runs") if self.bars is not None else None
        parts = [(row, int(key["seed"])) for row, key in missing]
        for done, made in enumerate(hands.spread(self, parts, How(cancelled=cancelled)), start=1):
            if tell is not None:
                tell(done, len(missing))
            yield made

    def __call__(self, how: How) -> Callable[[tuple[Configuration, int]], dict[str, Any]]:
        return lambda part: self._run(*part, how)

    def _run(self, row: Configuration, seed: int, how: How) -> dict[str, Any]:
        started, found = time.monotonic(), Debugged(self.classifier, ())
        if row.plan is not None:
            found = loop(
                self.classifier,
                self.train,
                self.validation,
                row.plan,
                score=self.score if row.scored else None,
                tested=(*self.stress, *self.held_out),
                index=self.indexes[row.plan.method, row.plan.longest],
                language_model=self.language_model,
                seed=seed,
                bars=self.bars,
                cancelled=how.cancelled,
            )
        measured = _measured(found.classifier, self.stress, self.held_out, self.kind, self.bars)
        anchors = [example.id for one in found.rounds for example in one.anchors]
        facts = {"judgements": found.judgements, "copies": dict(found.copies), "anchors": anchors}
        return measured | facts | {"seconds": round(time.monotonic() - started, 1)}


def _key(row: Configuration, score: Score, kind: Kind, data: str) -> str:
    """Another one for other settings, other people or other texts: what was run with those is not what is wanted."""
    given = [getattr(one, "__qualname__", None) or repr(one) for one in (score, kind)]
    given.append(data)
    recipes: list[Recipe] = []  # a method whose defaults have changed since is another
    if row.plan is not None:
        recipes.append(influence[row.plan.method].recipe({}, 0))
        recipes += [augmentation[row.plan.augmentation].recipe({}, 0)] if row.plan.augmentation else []
    return blake2b(repr((row, given, recipes)).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _fingerprint(language_model: LanguageModel | None, *sets: Sequence[Example]) -> str:
    """Another one for another language model, other texts, labels, groups or ids, or these in another set or order."""
    digest = blake2b(digest_size=8)
    for name, weight in sorted(language_model.model.state_dict().items()) if language_model is not None else ():
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().contiguous().numpy())
    for examples in sets:
        digest.update(f"{len(examples)}\n".encode())
        for example in examples:
            told = (example.id, example.text_hash, example.label, example.group)
            digest.update(f"{told!r}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()


@dataclass
class _Results:
    """Runs, kept in a file of JSON if there is one."""

    path: Path | None
    runs: list[dict[str, Any]]

    @classmethod
    def open(cls, path: str | Path | None) -> _Results:
        if path is None or not Path(path).exists():
            return cls(None if path is None else Path(path), [])
        try:
            return cls(Path(path), json.loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise BadData(f"{path} holds no results of an earlier run ({error}). Name another file.") from error

    def has(self, key: Mapping[str, Any]) -> bool:
        return any(key.items() <= run.items() for run in self.runs)

    def add(self, run: dict[str, Any]) -> None:
        self.runs.append(run)
        if self.path is not None:  # written beside and moved, so that a kill leaves the old or the new
            beside = self.path.with_suffix(f"{self.path.suffix}.part")
            beside.write_text(json.dumps(self.runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            beside.replace(self.path)


def _measured(
    classifier: TransformerClassifier,
    stress: Sequence[Example],
    held_out: Sequence[Example],
    kind: Kind,
    bars: Bars | None,
) -> dict[str, Any]:
    """Right answers and sizes: of each kind and label, each group and label, and of the held-out set.

    Beside them, how well the labels of each kind are told apart, wherever the line between them is drawn.
    """
    bar = bars("Measuring") if bars is not None else None
    everything = [example for example in (*stress, *held_out) if example.label is not None]
    scores = classifier.log_probs(everything, progress=bar)
    right = [classifier.labels[n] == e.label for n, e in zip(scores.argmax(axis=1).tolist(), everything, strict=True)]
    n = sum(example.label is not None for example in stress)
    own = list(zip(everything[:n], right[:n], strict=True))
    places: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(everything[:n]):
        if (name := kind(example)) is not None:
            places[name].append(place)
    return {
        "apart": {
            name: _apart(scores[at], [classifier.labels.index(str(everything[place].label)) for place in at])
            for name, at in sorted(places.items())
        },
        "kinds": _counted((f"{name}|{e.label}", ok) for e, ok in own if (name := kind(e)) is not None),
        "labels": _counted((str(e.label), ok) for e, ok in own),
        "groups": _counted((f"{e.group}|{e.label}", ok) for e, ok in own if e.group is not None),
        "held_out": [sum(right[n:]), len(right) - n],
    }


def _apart(scores: np.ndarray, labels: Sequence[int]) -> float | None:
    """How often a text of a label has a higher score for it than a text of another: 0.5 is chance, 1 is always.

    That is the area under the ROC curve, the mean over the labels. A model that merely says one label more often than
    before gets as much as it had. None where all have one label.
    """
    areas = []
    for label in set(labels):
        own = np.equal(labels, label)
        here, others = int(own.sum()), int((~own).sum())
        if others:
            ranks = rankdata(scores[:, label])
            areas.append((float(ranks[own].sum()) - here * (here + 1) / 2) / (here * others))
    return float(np.mean(areas)) if areas else None


def _counted(answers: Iterable[tuple[str, bool]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, ok in answers:
        found[name][0] += ok
        found[name][1] += 1
    return dict(sorted(found.items()))


def table(runs: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> str:
    """The runs as Markdown: accuracy in percent, the mean over seeds; a row for each configuration.

    Columns are kinds with one number for each label (in alphabetical order, between bars), then each label over the
    whole stress set, their mean, how well they are told apart (the area under the ROC curve, by kind), and the held-out
    set. Behind the numbers of the whole stand their standard deviations over seeds, where there are several.
    """
    if not runs:
        raise BadData("There are no runs to make a table of.")
    names = list(dict.fromkeys(str(run["configuration"]) for run in runs)) if names is None else names
    kinds = sorted({key.partition("|")[0] for run in runs for key in run["kinds"]})
    labels = sorted({label for run in runs for label in run["labels"]})
    head = ["configuration", *kinds, *labels, "mean of labels", "told apart", "held out"]
    head += ["judgements", "copies", "seeds"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in names:
        own = [run for run in runs if run["configuration"] == name]
        if not own:
            continue
        cells = [" / ".join(_mean(own, "kinds", f"{kind}|{label}") for label in labels) for kind in kinds]
        cells += [_spread([_share(run["labels"][label]) for run in own]) for label in labels]
        cells.append(_spread([float(np.mean([_share(run["labels"][label]) for label in labels])) for run in own]))
        cells.append(" / ".join(_told_apart(own, kind) for kind in kinds) or "–")
        cells.append(_spread([_share(run["held_out"]) for run in own]))
        asked = float(np.mean([run["judgements"] for run in own]))
        copies = float(np.mean([sum(run["copies"].values()) for run in own]))
        cells += [f"{asked:.0f}", f"{copies:.0f}", str(len(own))]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def _spread(shares: Sequence[float]) -> str:
    """Their mean in percent, with the standard deviation where there are several."""
    deviation = f" ± {100 * np.std(shares, ddof=1):.1f}" if len(shares) > 1 else ""
    return f"{100 * float(np.mean(shares)):.1f}{deviation}"


def _told_apart(runs: Sequence[Mapping[str, Any]], kind: str) -> str:
    known = [area for run in runs if (area := run.get("apart", {}).get(kind)) is not None]
    return f"{100 * float(np.mean(known)):.1f}" if known else "–"


def _share(counted: Sequence[int]) -> float:
    return counted[0] / counted[1] if counted[1] else float("nan")


def _mean(runs: Sequence[Mapping[str, Any]], what: str, key: str) -> str:
    known = [_share(run[what][key]) for run in runs if key in run[what]]
    return f"{100 * float(np.mean(known)):.1f}" if known else "–"
