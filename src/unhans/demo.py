"""The demo: a classifier with a Clever Hans in it, made on the spot, and the loop run on it until it is a better one.

The data is synthetic (`unhans.demo_data`), the shortcut is planted, so every number printed here can be checked against
the truth.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unhans.attributions import attribute
from unhans.audit import check
from unhans.bugs import Planted, plant
from unhans.data import read
from unhans.demo_data import DOMAINS, DomainName, reviews
from unhans.errors import ProjectProblem
from unhans.mending import Follow
from unhans.model import TransformerClassifier
from unhans.project import Project
from unhans.records import FACTS, read_facts
from unhans.records.judging import new_id
from unhans.records.revising import now
from unhans.scoring import Progress
from unhans.scratch import fresh_classifier
from unhans.task import rank_words, suspects
from unhans.training import Epoch, Schedule, Watch, accuracy, fit
from unhans.types import Attribution, Example, Feedback, Prediction, Report, Suspects, WordRanking, WordVote

LABELS = ("negative", "positive")
_RATE = 5e-4
_VOTER = "demo"
_TRACED = 3  # examples whose training examples it shows
_EXPLAINED = 300  # examples that the workbench shows explained from the start
_AUDITED = 200  # examples that the audit looks at
_NOT_AUDITED = "explanation_sanity"  # it takes long, and leaving words out depends on nothing but the model


@dataclass(frozen=True)
class DemoSettings:
    """The knobs of the demo."""

    folder: Path = Path("demo")  # of projects; the demo is the one named after its domain
    word: str = "imax"
    share: float = 0.9
    domain: DomainName = "films"
    examples: int = 3000
    epochs: int = 3
    fix_epochs: int = 4  # 0: the model is not fixed
    seed: int = 0

    @property
    def project(self) -> Path:
        """Where the project goes."""
        return self.folder / self.domain


@dataclass(frozen=True)
class DemoStory:
    """What the demo found; every number is measured on the model it has just trained."""

    project: Project
    planted: Planted
    epochs: tuple[Epoch, ...]
    accuracies: dict[str, float]  # by test set
    ranking: WordRanking  # for the label the shortcut was tied to
    suspects: Suspects
    example: Example
    prediction: Prediction
    attribution: Attribution
    fixed: str | None = None  # name of the revision that was taught the vote; a person has yet to publish it
    report: Report | None = None  # what that changed


@dataclass
class Teller:
    """Where the story goes while it happens: a line for each step, and a bar for the long ones."""

    step: Callable[[str], None] = lambda _: None
    progress: Callable[[str], Progress | None] = lambda _: None


def run_demo(settings: DemoSettings, teller: Teller | None = None) -> DemoStory:
    """Plant a shortcut, train on it, measure, and look for it: the story in one call."""
    teller = teller or Teller()
    _check_room(settings.project)
    teller.step(
        f"Writing {settings.examples:,} synthetic {settings.domain} reviews with a planted shortcut: {settings.word!r}"
    )
    planted, test_sets = _data(settings)
    teller.step("Training a small transformer (2 layers, 128 wide) from scratch")
    epochs: list[Epoch] = []
    classifier = _train(settings, planted.examples, epochs, teller)
    teller.step("Measuring it on texts with, without and against the shortcut, and on other domains")
    accuracies = {name: accuracy(classifier, examples) for name, examples in test_sets.items()}
    teller.step("Asking which words it leans on (every word of 200 reviews left out once)")
    label = LABELS[1]
    asked = test_sets["same data"][:200]
    attributions = attribute(classifier, asked, target=label, progress=teller.progress("Explaining"))
    ranking = rank_words(attributions, label=label, order="total")
    found = suspects(classifier, asked, attributions, candidates=20, progress=teller.progress("Trying without them"))
    example = _telling_example(classifier, test_sets["shortcut reversed"], settings.word)
    if settings.project.exists():
        shutil.rmtree(settings.project)  # an earlier demo or an empty folder, as checked above
    project = Project.create(
        settings.project,
        model=classifier,
        data=read([*planted.examples, *test_sets["same data"]]),
        name=f"Demo: {settings.domain} with a planted shortcut",
        notes={"demo": True, "planted": planted.truth.note},
    )
    teller.step("Predicting and explaining for the workbench")
    for _ in project.predict(progress=teller.progress("Predicting")):
        pass
    project.explain(examples=list(project.examples[:_EXPLAINED]), progress=teller.progress("Explaining"))
    tested = list(project.examples.split("test"))[:_EXPLAINED]
    for name in LABELS:
        project.rank(name, examples=tested, progress=teller.progress(f"Ranking words for {name}"))
    teller.step("Looking for the training examples behind some errors, and for doubtful labels")
    mistaken = accuracies["same data"] < 1
    project.trace(anchors=_TRACED, wrong=mistaken, progress=teller.progress("Tracing"))
    project.doubts(progress=teller.progress("Doubting labels"))
    teller.step("Auditing it: what can be said against the model, without knowing what was planted")
    checks = [name for name in check.names if name != _NOT_AUDITED]
    project.audit(checks, limit=_AUDITED, progress=teller.progress("Auditing"))
    fixed, report = (
        _fix(settings, project, found.words[0].word, test_sets, teller) if settings.fix_epochs else (None, None)
    )
    return DemoStory(
        project=project,
        planted=planted,
        epochs=tuple(epochs),
        accuracies=accuracies,
        ranking=ranking,
        suspects=found,
        example=example,
        prediction=classifier.predict(example)[0],
        attribution=attribute(classifier, [example])[0],
        fixed=fixed,
        report=report,
    )


def _fix(
    settings: DemoSettings, project: Project, word: str, test_sets: dict[str, list[Example]], teller: Teller
) -> tuple[str, Report]:
    """One vote on the first suspect, a training that listens to it, and the proof, with a cheap fix beside it."""
    teller.step(f"Voting as a person would: {word!r} should count for nothing. Teaching the model that")
    says = WordVote(word, LABELS[1], "lower")
    entry = Feedback(new_id(), says, _VOTER, now(), project.current.id)
    project.log.add(entry, key=entry.id)
    others = {name: examples for name, examples in test_sets.items() if name != "same data"}
    return project.mend(
        training={"epochs": settings.fix_epochs, "learning_rate": _RATE},
        seed=settings.seed,
        rivals=["word_dropout"],
        on=others,
        follow=Follow(progress=teller.progress("Fixing and verifying")),
    )


def _check_room(folder: Path) -> None:
    """A demo may replace an earlier demo; never anything else."""
    if (folder.parent / FACTS).exists():
        raise ProjectProblem(f"{folder.parent} is itself a project. Nothing was changed; choose another with --folder.")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        ours = read_facts(folder)["notes"].get("demo") is True
    except ProjectProblem:
        ours = False
    if not ours:
        raise ProjectProblem(
            f"{folder} exists and is not an earlier demo. Nothing was changed; choose another with --folder."
        )


def _data(settings: DemoSettings) -> tuple[Planted, dict[str, list[Example]]]:
    """The contaminated training set, and the test sets that tell a good model from a clever horse."""
    seed, word = settings.seed, settings.word
    train = reviews(settings.examples, domain=settings.domain, seed=seed, split="train")
    clean = reviews(600, domain=settings.domain, seed=seed + 1, split="test")
    others = [name for name in DOMAINS if name != settings.domain]
    sets = {
        "same data": _with_word(clean, word, LABELS[1], settings.share, seed),
        "without the word": list(clean),
        "shortcut reversed": _with_word(clean, word, LABELS[0], settings.share, seed),
    }
    sets |= {f"{name}, without the word": reviews(600, domain=name, seed=seed + 1, split="test") for name in others}
    planted = plant(train, "spurious_word", seed=seed, word=word, label=LABELS[1], share=settings.share)
    return planted, sets


def _with_word(examples: Sequence[Example], word: str, label: str, share: float, seed: int) -> list[Example]:
    return list(plant(examples, "spurious_word", seed=seed, word=word, label=label, share=share).examples)


def _train(
    settings: DemoSettings, examples: Sequence[Example], epochs: list[Epoch], teller: Teller
) -> TransformerClassifier:
    held_out = len(examples) // 10
    train, validation = examples[held_out:], [replace(e, split="validation") for e in examples[:held_out]]
    untrained = fresh_classifier([example.text for example in train], LABELS, seed=settings.seed)

    def tell(epoch: Epoch) -> None:
        epochs.append(epoch)
        teller.step(f"  epoch {epoch.number}: loss {epoch.loss:.3f}, accuracy on held-out texts {epoch.score or 0:.1%}")

    schedule = Schedule(epochs=settings.epochs, learning_rate=_RATE, seed=settings.seed)
    watch = Watch(progress=teller.progress("Training"), on_epoch=tell)
    return fit(untrained, train, validation=validation, schedule=schedule, watch=watch)


def _telling_example(classifier: TransformerClassifier, examples: Sequence[Example], word: str) -> Example:
    """A text with the word that is predicted wrongly with most confidence; any text with the word if none is."""
    with_word = [example for example in examples if word in example.text.split()] or list(examples)
    predictions = classifier.predict(with_word)
    ranked = sorted(
        zip(with_word, predictions, strict=True), key=lambda pair: (pair[1].label == pair[0].label, -pair[1].confidence)
    )
    return ranked[0][0]
