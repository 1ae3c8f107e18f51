"""What each kind of job does. Runs in a child of the worker, never in the web process."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from unhans.accounts import Accounts
from unhans.archives import unpack_model
from unhans.artefacts import hidden_name
from unhans.attributions import attribution, check_usable
from unhans.augmentations import augmentation
from unhans.counterfactuals import counterfactual, search_settings
from unhans.data import Corpus, columns_of, read
from unhans.errors import BadData, BadModel, Cancelled, UnhansError, Unsupported
from unhans.influences import influence
from unhans.jobs import Handle
from unhans.loading import load
from unhans.mending import Follow
from unhans.model import Classifier, TransformerClassifier
from unhans.project import Project, match_labels, sample
from unhans.rationales import rationale
from unhans.records.examples import MAX_CHARACTERS, MAX_EXAMPLES
from unhans.records.revising import MOST_POINTS, thinned
from unhans.shapes import (
    Check,
    Columns,
    LossCurve,
    LossPoint,
    NewAudit,
    NewComparison,
    NewCopies,
    NewDoubts,
    NewExport,
    NewFix,
    NewFlips,
    NewJob,
    NewLab,
    NewTrace,
    PlanReport,
    ProjectPlan,
)
from unhans.types import Audit, Example
from unhans.workspace import Workspace

_SHOWN = 5
_IDS = 100  # of what a search found, that its job tells
_CURVE_SECONDS = 1.0  # between two writings of a loss curve


def predict(handle: Handle) -> dict[str, Any]:
    """Predict all examples of a project."""
    with _project(handle) as project:
        handle.step("Predicting")
        n = sum(1 for _ in project.predict(progress=handle.progress, cancelled=handle.cancelled))
        return {"predicted": n}


def explain(handle: Handle) -> dict[str, Any]:
    """Explain some or all examples of a project; those that were explained like this before take no time."""
    asked = TypeAdapter(NewJob).validate_python(handle.job.options)
    with _project(handle) as project:
        entry = attribution[asked.method]
        _check_kept(project)
        check_usable(project.classifier, entry, background=True, language_model=True)
        if asked.places is not None:
            examples = project.table.some(asked.places)
        else:
            examples = list(project.examples)[: asked.limit]
        if "language_model" in entry.asks:
            handle.step("Preparing a language model of the project's own texts")
            project.language_model(progress=handle.progress, cancelled=handle.cancelled)
        handle.step(f"Explaining with {entry.name}")
        options: dict[str, Any] = dict(entry.settings(asked.options or {}))
        found = project.explain(
            asked.method,
            asked.target,
            asked.units,
            examples,
            seed=asked.seed,
            progress=handle.progress,
            cancelled=handle.cancelled,
            **options,
        )
        return {
            "explained": project.alike(entry, options, asked.target, asked.units, asked.seed).id,
            "texts": len(found),
        }


def flips(handle: Handle) -> dict[str, Any]:
    """Look for flips of some or all examples of a project; what was looked for like this before takes no time."""
    asked = TypeAdapter(NewFlips).validate_python(handle.job.options)
    with _project(handle) as project:
        entry = counterfactual[asked.method]
        _check_kept(project)
        if asked.places is not None:
            examples = project.table.some(asked.places)
        else:
            examples = list(project.examples)[: asked.limit]
        chosen = _chosen_words(handle, project, asked, examples)
        options: dict[str, Any] = dict(entry.settings(asked.options or {}))
        if "language_model" in entry.asks or search_settings(asked.search or {})["fluency"]:
            handle.step("Preparing a language model of the project's own texts")
            project.language_model(progress=handle.progress, cancelled=handle.cancelled)
        handle.step(f"Looking for flips with {entry.name}")
        found = project.find_flips(
            examples,
            asked.method,
            target=asked.target,
            **chosen,
            start={examples[0].id: asked.start} if asked.start else None,
            keep=asked.keep,
            search=asked.search,
            seed=asked.seed,
            by=handle.job.by,
            progress=handle.progress,
            cancelled=handle.cancelled,
            **options,
        )
        flipped = {one.example for one in found if one.flips and one.edits}
        return {
            "texts": len(examples),
            "flipped": len(flipped),
            "flips": [one.id for one in found if one.edits][:_IDS],
        }


def _chosen_words(
    handle: Handle, project: Project, asked: NewFlips, examples: list[Example]
) -> dict[str, dict[str, Sequence[int]]]:
    """The words that may be changed and those that are shown, where they were chosen: by hand, or by a rationale."""
    chosen: dict[str, dict[str, Sequence[int]]] = {}
    if asked.editable is not None:
        chosen["editable"] = {examples[0].id: asked.editable}
    if asked.reads is not None:
        chosen["reads"] = {examples[0].id: asked.reads}
    if "rationale" in (asked.edits_in, asked.reads_in):
        handle.step(f"Explaining with {asked.attribution}")
        known = {option.name for option in rationale[asked.rationale].options}  # without a word nothing could be done
        options: dict[str, Any] = {"never_empty": True} if "never_empty" in known else {}
        found = project.rationales(
            examples,
            asked.rationale,
            attribution=asked.attribution,
            progress=handle.progress,
            cancelled=handle.cancelled,
            **options,
        )
        masks: dict[str, Sequence[int]] = {one.example: one.chosen for one in found}
        chosen |= {"editable": masks} if asked.edits_in == "rationale" else {}
        chosen |= {"reads": masks} if asked.reads_in == "rationale" else {}
    return chosen


def trace(handle: Handle) -> dict[str, Any]:
    """Look for the training examples behind some examples; what was traced like this before takes no time."""
    asked = TypeAdapter(NewTrace).validate_python(handle.job.options)
    leads = _manages(handle)
    with _project(handle) as project:
        entry = influence[asked.method]
        _check_kept(project)
        options: dict[str, Any] = dict(entry.settings(asked.options or {}))
        handle.step(f"Looking at the training examples with {entry.name}")
        found = project.trace(
            project.table.some(asked.places) if asked.places is not None else None,
            entry.name,
            anchors=asked.anchors,
            wrong=asked.wrong,
            split=asked.split,
            heuristic=asked.heuristic,
            heuristic_options=asked.heuristic_options,
            of=asked.of,
            top=asked.top,
            seed=asked.seed,
            by=handle.job.by,
            leads=leads,
            progress=handle.progress,
            cancelled=handle.cancelled,
            **options,
        )
        places = project.table.find([one.example for one in found])
        return {
            "traced": len(found),
            "places": [places[one.example][0] for one in found][:_IDS],
            "neighbours": sum(len(one.helpful) for one in found),
        }


def copies(handle: Handle) -> dict[str, Any]:
    """Make copies of training examples that people rated."""
    asked = TypeAdapter(NewCopies).validate_python(handle.job.options)
    manages = _manages(handle)
    with _project(handle) as project:
        entry = augmentation[asked.method]
        options: dict[str, Any] = dict(entry.settings(asked.options or {}))
        if "language_model" in entry.asks or asked.check == "language_model":
            handle.step("Preparing a language model of the project's own texts")
            project.language_model(progress=handle.progress, cancelled=handle.cancelled)
        handle.step(f"Making copies with {entry.name}")
        found = project.augment(
            project.table.some(asked.places) if asked.places is not None else None,
            entry.name,
            copies_per_point=asked.copies_per_point if manages else None,
            check=asked.check,
            seed=asked.seed,
            by=handle.job.by,
            replaces=manages,
            progress=handle.progress,
            cancelled=handle.cancelled,
            **options,
        )
        told = Counter(one.source for one in found)
        if not manages:  # more would tell what others said
            told &= Counter(project.copies_wanted([handle.job.by]))
        return {"copies": told.total(), "sources": len(told)}


def doubts(handle: Handle) -> dict[str, Any]:
    """Rank the training examples by how doubtful their labels are."""
    asked = TypeAdapter(NewDoubts).validate_python(handle.job.options)
    with _project(handle) as project:
        _check_kept(project)
        handle.step("Looking for doubtful labels")
        found = project.doubts(asked.signs, seed=asked.seed, progress=handle.progress, cancelled=handle.cancelled)
        return {"doubts": len(found), "suspicious": sum(one.suggested != one.label for one in found)}


def audit(handle: Handle) -> dict[str, Any]:
    """Look for what can be said against a model; what was found is there while it runs, and after a stop."""
    asked = TypeAdapter(NewAudit).validate_python(handle.job.options)
    with _project(handle) as project:

        def tell(so_far: Audit) -> None:
            waiting = next((run.title for run in so_far.checks if run.state == "waiting"), None)
            handle.step(f"Checking: {waiting}" if waiting else "Done with all checks")

        handle.step("Asking the model about the examples")
        found = project.audit(
            asked.checks,
            options=asked.options,
            method=asked.method,
            revision=asked.revision,
            limit=asked.limit,
            seed=asked.seed,
            by=handle.job.by,
            job=handle.job.id,
            on_part=tell,
            progress=handle.progress,
            cancelled=handle.cancelled,
        )
        return {"findings": len(found.findings), "worst": found.worst, "examples": found.examples}


def lab(handle: Handle) -> dict[str, Any]:
    """Plant bugs, and see which explanation notices which."""
    asked = TypeAdapter(NewLab).validate_python(handle.job.options)
    with _project(handle) as project:
        handle.step("Planting bugs and looking for them")
        found = project.lab(
            asked.bugs,
            asked.methods,
            examples=asked.examples,
            limit=asked.limit,
            seed=asked.seed,
            by=handle.job.by,
            progress=handle.progress,
            cancelled=handle.cancelled,
        )
        return {"bugs": len(found.bugs), "warnings": len(found.warnings)}


def words(handle: Handle) -> dict[str, Any]:
    """Rank the words of a project, for one label or for all."""
    asked = TypeAdapter(NewJob).validate_python(handle.job.options)
    with _project(handle) as project:
        _check_kept(project)
        labels = [asked.target] if asked.target else list(project.labels)
        examples = None if asked.limit is None else sample(project.examples, asked.limit, asked.seed)
        options: dict[str, Any] = dict(attribution[asked.method].settings(asked.options or {}))
        for n, label in enumerate(labels, start=1):
            handle.step(f"Ranking words for {label} ({n} of {len(labels)})")
            project.rank(
                label,
                asked.method,
                examples=examples,
                seed=asked.seed,
                progress=handle.progress,
                cancelled=handle.cancelled,
                **options,
            )
        return {"labels": labels}


def fix(handle: Handle) -> dict[str, Any]:
    """Train a revision that listens to the feedback, and verify it; it is proposed, not published."""
    asked = TypeAdapter(NewFix).validate_python(handle.job.options)
    with _project(handle) as project:
        before = project.current_name
        curve = Curve(project, handle.job.id)
        name, report = project.mend(
            asked.fix,
            people=asked.people,
            options=asked.options,
            training=asked.training,
            seed=asked.seed,
            seeds=asked.seeds,
            rivals=asked.rivals,
            strengths=asked.strengths,
            expectations=asked.expectations,
            follow=Follow(handle.step, handle.progress, handle.cancelled, curve.point, curve.epoch),
        )
        curve.keep()
        return {"before": before, "after": name, "worse": len(report.worse), "holds": report.holds}


def compare(handle: Handle) -> dict[str, Any]:
    """Measure what changed from one revision to another."""
    asked = TypeAdapter(NewComparison).validate_python(handle.job.options)
    with _project(handle) as project:
        follow = Follow(handle.step, handle.progress, handle.cancelled)
        report = project.compare_revisions(asked.before, asked.after, asked.expectations, follow=follow)
        return {"before": asked.before, "after": asked.after, "worse": len(report.worse), "holds": report.holds}


def export(handle: Handle) -> dict[str, Any]:
    """Put a revision, the feedback and the report into a folder to take away, and flips into another."""
    asked = TypeAdapter(NewExport).validate_python(handle.job.options)
    parts = [part for part in ("model", "feedback", "report") if getattr(asked, part)]
    with _project(handle) as project:
        handle.step("Writing, reading again and checking")
        made = {"export": project.export(asked.revision, parts=parts).folder.name} if parts else {}
        if asked.flips:
            made["flips"] = project.export_flips(asked.revision).folder.name
        return made


def check(handle: Handle) -> dict[str, Any]:
    """Look at an uploaded model and data, and say what a project of them would be; nothing is made."""
    plan = _plan(handle)
    with _workspace(handle) as workspace, _unpacked(workspace, plan) as (folder, data, refused):
        handle.step("Checking the model")
        classifier, checks = _check_model(folder, refused)
        handle.step("Reading the data")
        corpus, more = _check_data(plan, data, handle)
        checks += more
        checks += _check_labels(plan, corpus, classifier)
        columns, chosen = _columns(data, plan)
        report = PlanReport(
            checks=tuple(checks),
            columns=columns,
            chosen=chosen,
            preview=tuple(corpus[:_SHOWN]) if corpus else (),
            data_labels=corpus.labels if corpus else (),
            model_labels=classifier.labels if classifier else (),
            examples=len(corpus) if corpus else 0,
        )
        told: dict[str, Any] = TypeAdapter(PlanReport).dump_python(report, mode="json")
        return told


def create(handle: Handle) -> dict[str, Any]:
    """Make a project of an uploaded model and data, and predict its examples.

    A former try that died may have made it already; then its predictions are all that is missing.
    """
    plan = _plan(handle)
    with _workspace(handle) as workspace:
        name = workspace.made_by(handle.job.id) or _make(handle, workspace, plan)
        workspace.let_in(handle.job.by, name)
        with Project.open(workspace.root / name, database=workspace.database) as project:
            handle.step("Predicting")
            for _ in project.predict(progress=handle.progress, cancelled=handle.cancelled):
                pass
        workspace.forget_uploads(plan.model, plan.data)
        return {"project": name}


def _make(handle: Handle, workspace: Workspace, plan: ProjectPlan) -> str:
    with _unpacked(workspace, plan) as (folder, data, refused):
        if refused:
            raise BadModel(refused)
        handle.step("Reading the data")
        corpus = _relabelled(plan, read(data, **_named(plan), limit=MAX_EXAMPLES + 1, progress=_loosely(handle)))
        handle.step("Checking and copying the model")
        name = workspace.free_name(plan.title)
        Project.create(
            workspace.root / name,
            model=folder,
            data=corpus,
            name=plan.title,
            database=workspace.database,
            origin=handle.job.id,
            progress=handle.progress,
        ).close()
        return name


HANDLERS: dict[str, Callable[[Handle], Any]] = {
    "predict": predict,
    "explain": explain,
    "words": words,
    "flips": flips,
    "trace": trace,
    "copies": copies,
    "doubts": doubts,
    "audit": audit,
    "lab": lab,
    "fix": fix,
    "compare": compare,
    "export": export,
    "check": check,
    "create": create,
}


class Curve:
    """The losses of a job, kept while it runs: thinned out, and written at most once a second.

    A job that was killed goes on with what is there; steps that are done again replace what they were.
    """

    def __init__(self, project: Project, job: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._project, self._job, self._clock = project, job, clock
        known = project.curve(job)
        self._points, self._epochs = list(known.points), list(known.epochs)
        self._written = clock()

    def point(self, new: LossPoint) -> None:
        """Another step."""
        if self._points and any(one.run == new.run and one.step >= new.step for one in self._points[-1:]):
            self._points = [one for one in self._points if one.run != new.run or one.step < new.step]
        self._points.append(new)
        if len(self._points) >= 2 * MOST_POINTS:
            self._points = list(thinned(self._points))
        if self._clock() - self._written >= _CURVE_SECONDS:
            self.keep()

    def epoch(self, told: str) -> None:
        """Another pass over the data is done."""
        if told not in self._epochs:
            self._epochs.append(told)
        self.keep()

    def keep(self) -> None:
        """Write what is there."""
        self._written = self._clock()
        self._project.keep_curve(LossCurve(self._job, tuple(self._points), tuple(self._epochs)))


@contextmanager
def _workspace(handle: Handle) -> Iterator[Workspace]:
    with Workspace.open(handle.root, database=handle.database) as workspace:
        yield workspace


@contextmanager
def _project(handle: Handle) -> Iterator[Project]:
    """The project that a job is about, opened in this process for its model."""
    with _workspace(handle) as workspace:
        folder = workspace.records(handle.job.project or "").folder
    with Project.open(folder, database=handle.database) as project:
        handle.step("Loading the model")
        project.describe_methods()
        yield project


def _manages(handle: Handle) -> bool:
    """Whether the job is of somebody who runs the project: what others ask for does not replace what everybody sees."""
    with _workspace(handle) as workspace:
        user = Accounts(workspace.store).get(handle.job.by)
    return user is not None and user.may_manage(handle.job.project or "")


def _check_kept(project: Project) -> None:
    """Refuse work whose outcome nobody would see."""
    if not project.classifier.lasting:
        raise Unsupported(
            "The answers of a service may change at any time, so its explanations are not kept and cannot be "
            "shown here. Nothing was changed; on the command line, `unhans explain` shows them."
        )


def _plan(handle: Handle) -> ProjectPlan:
    return TypeAdapter(ProjectPlan).validate_python(handle.job.options)


@contextmanager
def _unpacked(workspace: Workspace, plan: ProjectPlan) -> Iterator[tuple[Path, Path, str]]:
    """Folder of the model, file of the data, and why the model's archive was refused, if it was."""
    _, archive = workspace.upload(plan.model, "model")
    _, data = workspace.upload(plan.data, "data")
    scratch = archive.parent / hidden_name("partial", "unpacked")
    scratch.mkdir(mode=0o700)
    refused = ""
    try:
        try:
            unpack_model(archive, scratch / "model")
        except BadModel as error:
            refused = str(error)
        yield scratch / "model", data, refused
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_model(folder: Path, refused: str) -> tuple[Classifier | None, list[Check]]:
    if refused:
        return None, [Check("Model archive", "bad", refused)]
    checks = [Check("Model archive", "ok", "Only files of a model, none that could run.")]
    try:
        classifier = load(folder)
    except Cancelled:
        raise
    except UnhansError as error:
        return None, [*checks, Check("Model", "bad", str(error).replace(folder.name, "The model"))]
    if not isinstance(classifier, TransformerClassifier):
        return None, [*checks, Check("Model", "bad", "A project made here needs a Hugging Face model, not ONNX.")]
    shown = ", ".join(classifier.labels[:10]) + (" …" if len(classifier.labels) > 10 else "")
    weights = sum(weight.numel() for weight in classifier.model.parameters())
    kind = classifier.model.config.model_type
    checks += [
        Check("Weights", "ok", f"{kind}, {weights / 1e6:,.1f} million numbers, all finite; the trained head is there."),
        Check("Labels of the model", "ok", f"{len(classifier.labels)}: {shown}"),
        Check("Length limit", "ok", f"The model reads {classifier.limit:,} tokens; what is beyond is shown greyed."),
    ]
    fast = getattr(classifier.tokenizer, "is_fast", False)
    told = (
        "It knows which characters each token stands for." if fast else "It is slow, so words are matched by reading."
    )
    return classifier, [*checks, Check("Tokenizer", "ok" if fast else "note", told)]


def _check_data(plan: ProjectPlan, file: Path, handle: Handle) -> tuple[Corpus | None, list[Check]]:
    try:
        corpus = read(file, **_named(plan), limit=MAX_EXAMPLES + 1, progress=_loosely(handle))
    except BadData as error:
        return None, [Check("Data", "bad", str(error).replace(str(file), "the file").replace(file.name, "the file"))]
    if len(corpus) > MAX_EXAMPLES:
        return None, [Check("Data", "bad", f"More than {MAX_EXAMPLES:,} examples. Send fewer.")]
    reading = corpus.reading
    aside = sum(n for _, n in reading.reasons) if reading else 0
    checks = [Check("Data", "ok", f"{len(corpus):,} examples can be read.")]
    if aside and reading:
        reasons = ", ".join(f"{reason} ({n:,})" for reason, n in reading.reasons)
        checks.append(
            Check("Rows set aside", "note", f"{aside:,}: {reasons}. They will be listed under Data problems.")
        )
    if reading:
        checks += [Check("Noticed", "note", f"{note} ({n:,} rows)") for note, n in reading.notes]
    if any(len(part) > MAX_CHARACTERS for example in corpus for part in example.parts):
        checks.append(Check("Long texts", "bad", f"A text has more than {MAX_CHARACTERS:,} characters. Shorten it."))
    problems = corpus.problems()
    if problems.repeated or problems.shared:
        checks.append(Check("Repeated texts", "note", str(problems)))
    return corpus, checks


def _check_labels(plan: ProjectPlan, corpus: Corpus | None, classifier: Classifier | None) -> list[Check]:
    if corpus is None or classifier is None:
        return []
    if not corpus.labels:
        return [Check("Labels", "note", "The data has no labels: texts can be explained, accuracy cannot be measured.")]
    try:
        match_labels(_relabelled(plan, corpus).labels, classifier.labels)
    except BadData as error:
        return [Check("Labels", "bad", str(error).partition(" Say which")[0] + " Say below which is which.")]
    missing = [label for label in classifier.labels if label not in _relabelled(plan, corpus).labels]
    if len(corpus.labels) == 1:
        return [Check("Labels", "note", f"All rows are {corpus.labels[0]!r}: explaining works, training would not.")]
    told = "Every label of the data is one of the model's."
    if missing and len(missing) < len(classifier.labels):
        told += f" The data has no example of {', '.join(missing[:5])}."
    return [Check("Labels", "ok", told)]


def _relabelled(plan: ProjectPlan, corpus: Corpus) -> Corpus:
    return corpus.relabelled(plan.labels) if plan.labels else corpus


def _named(plan: ProjectPlan) -> dict[str, Any]:
    """The columns that were named."""
    return {role: column for role, column in asdict(plan.columns).items() if column is not None}


def _columns(file: Path, plan: ProjectPlan) -> tuple[tuple[str, ...], Columns]:
    """Names of the columns of a file, and which would be taken for what; none if it cannot be read."""
    try:
        columns, roles = columns_of(file, **_named(plan))
    except BadData:
        return (), plan.columns
    if roles is None:
        return columns, plan.columns
    return columns, Columns(
        **{name: getattr(roles, name) for name in ("text", "pair", "label", "group", "split", "id")}
    )


def _loosely(handle: Handle) -> Callable[[int, int | None], None]:
    """Progress where the total may not be known."""
    return lambda done, total: handle.progress(done, total) if total else None
