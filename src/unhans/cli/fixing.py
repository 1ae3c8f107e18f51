"""Commands that end the loop: vote, fix, look at what changed, publish or go back, check, export, simulate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import (
    _bar,
    _data_options,
    _database_option,
    _plain,
    _print_json,
    _print_table,
    _read,
    _tell,
    main,
)
from unhans.errors import BadData, BadOption, NotFound

if TYPE_CHECKING:
    from unhans.model import Classifier
    from unhans.project import Project
    from unhans.records import Records
    from unhans.shapes import Revisions
    from unhans.simulate import CurvePoint
    from unhans.types import Example, Feedback, Report, WordVote

FAILED = 4  # the exit code where an expectation does not hold
_SHOWN = 20
_LOCAL = "local"  # as the workbench calls whoever has its link


def _project_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """A project, and the server that keeps its records, if one does."""
    return click.argument("project", type=click.Path(path_type=Path))(_database_option(command))


def _expectation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What must hold, and where."""
    for option in reversed(
        (
            click.option("--expect", "expect", multiple=True, metavar="TEXT", help='As "accuracy >= 0.9"; repeatable.'),
            click.option(
                "--expectations",
                type=click.Path(path_type=Path, dir_okay=False),
                help="A file with one expectation a line; # begins a comment.",
            ),
            click.option(
                "--on", multiple=True, metavar="NAME=FILE", help="Another labelled set to verify on; repeatable."
            ),
        )
    ):
        command = option(command)
    return command


_json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@main.command()
@_project_option
@click.argument("word")
@click.option("--label", required=True, help="The label that the word should count more or less for.")
@click.option("--raise/--lower", "raises", default=None, help="Whether it should count more or less; one is needed.")
@click.option("--example", metavar="ID", help="Only in this example; by default wherever the word occurs.")
@click.option("--author", default=_LOCAL, show_default=True, help="Who says so.")
@_json_option
def vote(  # noqa: PLR0917 - click passes them by name
    project: Path,
    word: str,
    label: str,
    raises: bool | None,
    example: str | None,
    author: str,
    as_json: bool,
    database: str | None,
) -> None:
    """Say that a word should count more or less for a label: what a fix learns from."""
    from unhans.records import Records
    from unhans.records.judging import new_id
    from unhans.records.revising import now
    from unhans.text import word_spans
    from unhans.types import Feedback, WordVote, to_json

    if raises is None:
        raise BadOption("Say --raise if the word should count more, or --lower if less.")
    if len(word_spans(word)) != 1:
        raise BadOption(f"A vote names one word, not {_plain(word)!r}.")
    with Records.open(project, database=database) as records:
        said = [
            Feedback(new_id(), says, author, now(), records.current.id, text_hash)
            for says, text_hash in _votes(records, WordVote(word, label, "raise" if raises else "lower", example))
        ]
        records.log.add_many((entry, entry.id) for entry in said)
        use = records.feedback_use([author])
    if as_json:
        return _print_json([json.loads(to_json(entry)) for entry in said])
    touched = max((one.texts for one in use.votes if one.word == word), default=0)
    where = f"in {example}" if example else f"everywhere ({touched:,} training texts)"
    more = "more" if raises else "less"
    return click.echo(
        f"{_plain(word)!r} should count {more} for {_plain(label)}, {_plain(where)}. Next: unhans fix {project}"
    )


def _votes(records: Records, given: WordVote) -> Iterator[tuple[WordVote, str | None]]:
    """Votes as the log takes them, with the hash of the text: on an example, one for each place where the word is."""
    from dataclasses import replace

    from unhans.records.judging import check_answer
    from unhans.text import Words, visible_form

    if given.example is None:
        check_answer(given, None, records.labels)
        yield given, None
        return
    found = records.table.find([given.example])
    if given.example not in found:
        raise NotFound(f"There is no example {_plain(given.example)!r} in this project.")
    example = found[given.example][1]
    words = Words(example).strings
    places = [n for n, word in enumerate(words) if visible_form(word) == visible_form(given.word)]
    if not places:
        raise BadOption(f"The example {_plain(given.example)!r} does not have the word {_plain(given.word)!r}.")
    for place in places:
        says = replace(given, word=words[place], position=place)
        check_answer(says, example, records.labels)
        yield says, example.text_hash


@main.command()
@_project_option
@click.option(
    "--fix", "name", default="occlusion_regularisation", show_default=True, help="See `unhans methods fixes`."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the fix; repeatable.")
@click.option("--train", "training", multiple=True, metavar="NAME=VALUE", help="As epochs=3; repeatable.")
@click.option("--person", "people", multiple=True, metavar="NAME", help="Use this person's answers only; repeatable.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--seeds", type=click.IntRange(1, 10), default=1, show_default=True, help="Train it so often.")
@click.option("--rival", "rivals", multiple=True, metavar="NAME", help="A fix to measure beside it; repeatable.")
@click.option("--strength", "strengths", multiple=True, type=float, help="Measure it so strong, too; repeatable.")
@_expectation_options
@click.option(
    "--publish/--keep",
    "publishes",
    default=False,
    show_default=True,
    help="Use the new model at once, unless something got worse or an expectation fails.",
)
@_json_option
def fix(  # noqa: PLR0917 - click passes them by name
    project: Path,
    name: str,
    settings: tuple[str, ...],
    training: tuple[str, ...],
    people: tuple[str, ...],
    seed: int,
    seeds: int,
    rivals: tuple[str, ...],
    strengths: tuple[float, ...],
    expect: tuple[str, ...],
    expectations: Path | None,
    on: tuple[str, ...],
    publishes: bool,
    as_json: bool,
    database: str | None,
) -> None:
    """Teach a project's model what people said, and report what that changed. The model in use stays."""
    from unhans.mending import Follow
    from unhans.project import Project

    expected = _expected(expect, expectations)
    options, trained = _pairs("--set", settings), _pairs("--train", training)
    _tell("Loading the model …")
    with Project.open(project, database=database) as opened:
        opened.describe_methods()
        before = opened.current_name
        with _bar("Fixing") as progress:
            made, report = opened.mend(
                name,
                people=people or None,
                options=options,
                training=trained,
                seed=seed,
                seeds=seeds,
                rivals=rivals,
                strengths=strengths,
                expectations=expected,
                on=_sets(on, opened.classifier),
                follow=Follow(progress=progress),
            )
        _print_report(report, as_json, {"revision": made})
        if publishes and report.holds:
            opened.publish(made, expects=before)
            click.echo(f"{made} is in use now. To go back: unhans rollback {project}", err=as_json)
        else:
            click.echo(f"{made} is proposed; {before} stays in use. Next: unhans publish {project} {made}", err=as_json)
    _exit_if_failed(report)


@main.command()
@_project_option
@_json_option
def revisions(project: Path, as_json: bool, database: str | None) -> None:
    """List the versions of a project's model, and what each changed."""
    from unhans.records import Records

    with Records.open(project, database=database) as records:
        _print_revisions(records.revision_tree(), as_json)


@main.command()
@_project_option
@click.argument("name")
@click.option("--even-so", is_flag=True, help="Although something got worse, or nobody has compared it.")
@_json_option
def publish(project: Path, name: str, even_so: bool, as_json: bool, database: str | None) -> None:
    """Make a version of the model the one in use."""
    from unhans.records import Records

    with Records.open(project, database=database) as records:
        found = records.publish(name, expects=records.current_name, even_so=even_so)
    if as_json:
        return _print_revisions(found, as_json)
    return click.echo(f"{found.current} is in use now. To go back: unhans rollback {project}")


@main.command()
@_project_option
@_json_option
def rollback(project: Path, as_json: bool, database: str | None) -> None:
    """Make the version of the model the one in use that was so before."""
    from unhans.records import Records

    with Records.open(project, database=database) as records:
        found = records.roll_back(expects=records.current_name)
    if as_json:
        return _print_revisions(found, as_json)
    return click.echo(f"{found.current} is in use again.")


@main.command()
@click.argument("project", required=False, type=click.Path(path_type=Path))
@click.option("--model", help="Instead of the project's: Hugging Face folder or id, ONNX file, or http(s) address.")
@click.option("--data", type=click.Path(path_type=Path), help="Labelled examples, instead of the project's.")
@click.option("--revision", metavar="NAME", help="Of the project; by default the one in use.")
@click.option("--before", metavar="MODEL", help="What to compare with: a version of the project, or a model.")
@_expectation_options
@_data_options
@_database_option
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML, which CI servers read.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write the report as Markdown.")
@click.option("--html", type=click.Path(path_type=Path), help="Also write the report as a page that opens offline.")
@_json_option
def check(  # noqa: PLR0917 - click passes them by name
    project: Path | None,
    model: str | None,
    data: Path | None,
    revision: str | None,
    before: str | None,
    expect: tuple[str, ...],
    expectations: Path | None,
    on: tuple[str, ...],
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
    as_json: bool,
    database: str | None,
    **columns: str | None,
) -> None:
    """Hold a model against expectations, like tests: exits with 4 if one of them does not hold.

    Without any, those count that were written down last in the project.
    """
    from unhans.project import Project

    if project is None and (model is None or data is None):
        raise BadOption("Give a project, or a --model with --data.")
    if project is None and revision is not None:
        raise BadOption("--revision names a version of a project's model: give the project.")
    expected = _expected(expect, expectations)
    _tell("Loading the model …")
    opened = Project.open(project, database=database) if project else None
    try:
        report = _checked(opened, model, data, revision, before, expected, on, columns)
    finally:
        if opened:
            opened.close()
    _print_report(report, as_json)
    _write_reports(report, junit, markdown, html)
    _exit_if_failed(report)


def _checked(  # noqa: PLR0917 - the middle of `check`
    opened: Project | None,
    model: str | None,
    data: Path | None,
    revision: str | None,
    before: str | None,
    expected: list[str],
    on: tuple[str, ...],
    columns: dict[str, str | None],
) -> Report:
    from unhans.loading import load
    from unhans.verify import verify

    if not expected and opened is not None:
        expected = list(opened.setting("expectations") or ())
    if not expected:
        raise BadOption('Give at least one expectation, as --expect "accuracy >= 0.9".')
    after = load(model) if model else opened.classifier_of(revision or opened.current_name)  # type: ignore[union-attr]
    sets: dict[str, Any] = {}
    if data is not None:
        sets = _by_split(_labelled_as(after, _read(data, columns)))
    elif opened is not None:
        sets = opened.verifying()
    with _bar("Checking") as progress:
        return verify(
            _before(opened, before),
            after,
            sets | _sets(on, after),
            feedback=opened.usable_feedback() if opened else (),
            expectations=expected,
            progress=progress,
        )


@main.command()
@_project_option
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--revision", metavar="NAME", help="By default the one in use.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(["model", "feedback", "report"]),
    help="By default all; repeatable.",
)
@click.option("--push-to", metavar="ID", help="Also upload the model (alone) to this repository of the hub, private.")
@_json_option
def export(
    project: Path,
    folder: Path,
    *,
    revision: str | None,
    parts: tuple[str, ...],
    push_to: str | None,
    as_json: bool,
    database: str | None,
) -> None:
    """Write a version of the model, the feedback and the report into a new folder that others can use."""
    from unhans.project import Project

    if push_to is not None and parts not in ((), ("model",)):
        raise BadOption("A repository of the hub holds the model alone: leave --part out, or give --part model.")
    _tell("Loading the model …")
    with Project.open(project, database=database) as opened:
        made = opened.export(revision, folder, parts=parts or ("model", "feedback", "report"), push_to=push_to)
    if as_json:
        told = {"folder": str(made.folder), "files": list(made.files), "size": made.size, "parts": list(made.parts)}
        return _print_json(told | {"checked": made.checked})
    click.echo(f"Written to {made.folder}: {', '.join(made.parts)}; {len(made.files)} files.")
    return click.echo(_plain(made.checked))


@main.command()
@_project_option
@click.option(
    "--words", help="Words that should not count, with commas; by default the data's highlights are the truth."
)
@click.option("--minutes", multiple=True, type=click.FloatRange(0), help="Of each person's time; several: a curve.")
@click.option("--judgements", type=click.IntRange(1), help="So many, instead of minutes.")
@click.option("--way", type=click.Choice(["judging", "labelling"]), default="judging", show_default=True)
@click.option("--policy", type=click.Choice(["random", "xmd", "suspects"]), default="xmd", show_default=True)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Of one judgement.")
@click.option("--error-rate", type=click.FloatRange(0, 1), default=0.0, show_default=True)
@click.option("--people", type=click.IntRange(1), default=1, show_default=True)
@click.option("--fix", "name", default="occlusion_regularisation", show_default=True, help="For a curve.")
@click.option("--train", "training", multiple=True, metavar="NAME=VALUE", help="For a curve: as epochs=3; repeatable.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--seeds", type=click.IntRange(1, 10), default=1, show_default=True, help="For a curve.")
@click.option("--store", is_flag=True, help="Put the answers into the project's log, by an author called simulated.")
@_json_option
def simulate(  # noqa: PLR0917 - click passes them by name
    project: Path,
    words: str | None,
    minutes: tuple[float, ...],
    judgements: int | None,
    way: Any,
    policy: Any,
    seconds: float | None,
    error_rate: float,
    people: int,
    name: str,
    training: tuple[str, ...],
    seed: int,
    seeds: int,
    store: bool,
    as_json: bool,
    database: str | None,
) -> None:
    """Let simulated people give feedback who know the truth: their answers, or a curve of accuracy by minutes."""
    from unhans.project import Project
    from unhans.simulate import SECONDS, learning_curve
    from unhans.simulate import simulate as simulate_

    if len(minutes) > 1 and (store or judgements):
        raise BadOption("A curve takes several --minutes and nothing else: it stores no answers.")
    if not minutes and judgements is None:
        raise BadOption("Say for how many --minutes, or how many --judgements.")
    gold: Any = [word.strip() for word in words.split(",") if word.strip()] if words else "highlights"
    how: dict[str, Any] = {"gold": gold, "policy": policy, "error_rate": error_rate, "people": people}
    trained = _pairs("--train", training)
    _tell("Loading the model …")
    with Project.open(project, database=database) as opened, _bar("Simulating") as progress:
        train = opened.training_examples()
        if len(minutes) > 1:
            points = learning_curve(
                opened.trainable(),
                train,
                opened.verifying(),
                minutes=minutes,
                ways=(way,),
                seconds=SECONDS if seconds is None else {**SECONDS, way: seconds},
                fix=name,
                training=trained,
                seeds=range(seed, seed + seeds),
                progress=progress,
                **how,
            )
            return _print_curve(points, as_json)
        found = simulate_(
            opened.classifier,
            train,
            way=way,
            minutes=minutes[0] if minutes else None,
            n=judgements,
            seconds_per_judgement=seconds,
            seed=seed,
            progress=progress,
            **how,
        )
        if store:
            opened.log.add_many((entry, entry.id) for entry in found)
    return _print_answers(found, store, as_json)


# -- reading options


def _pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    pairs = [setting.split("=", 1) for setting in given]
    if strange := [pair[0] for pair in pairs if len(pair) != 2]:
        raise BadOption(f"{option} takes NAME=VALUE, not {strange[0]!r}.")
    return {name: value for name, value in pairs}


def _expected(given: tuple[str, ...], file: Path | None) -> list[str]:
    """The expectations of the command line and of a file, checked before anything is loaded."""
    from unhans.expectations import check_expectations

    lines: list[str] = []
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadData(f"The expectations in {file} cannot be read ({type(error).__name__}).") from error
    found = [*given, *(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))]
    check_expectations(found)
    return found


def _sets(given: tuple[str, ...], classifier: Classifier) -> dict[str, list[Example]]:
    """Further sets to verify on, each from a file."""
    columns = dict.fromkeys(("text_column", "pair_column", "label_column", "group_column", "labels"), None)
    return {
        name: list(_labelled_as(classifier, _read(Path(file), dict(columns))))
        for name, file in _pairs("--on", given).items()
    }


def _labelled_as(classifier: Classifier, corpus: Any) -> Any:
    """The corpus with the model's label names; without labels nothing can be checked."""
    from unhans.project import with_labels_of

    if not corpus.labels:
        raise BadData("The data has no labels, so nothing can be verified on it.")
    return with_labels_of(classifier, corpus)


def _by_split(corpus: Any) -> dict[str, list[Example]]:
    """The labelled examples by split, those for training left out where there are others; all as one without splits."""
    found: dict[str, list[Example]] = {}
    for example in corpus:
        if example.label is not None:
            found.setdefault(example.split or "data", []).append(example)
    others = {name: some for name, some in found.items() if name != "train"}
    return others or found


def _before(opened: Project | None, given: str | None) -> Classifier | None:
    """What to compare with: a version of the project by its name, or any model."""
    from unhans.loading import load

    if given is None:
        return None
    known = [version.name for version in opened.models.listed()] if opened else []
    return opened.classifier_of(given) if opened and given in known else load(given)


# -- printing


def _print_report(report: Report, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    from unhans.reporting import report_text
    from unhans.types import to_json

    if as_json:
        return _print_json({**(more or {}), "report": json.loads(to_json(report))})
    return click.echo(report_text(report))


def _write_reports(report: Report, junit: Path | None, markdown: Path | None, html: Path | None) -> None:
    from unhans.data.writing import new_file
    from unhans.reporting import report_junit, report_markdown, report_page

    for path, made in ((junit, report_junit), (markdown, report_markdown), (html, report_page)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with new_file(path) as file:
                file.write(made(report).encode(errors="replace"))


def _exit_if_failed(report: Report) -> None:
    if not report.holds:
        click.get_current_context().exit(FAILED)


def _print_revisions(found: Revisions, as_json: bool) -> None:
    from pydantic import TypeAdapter

    from unhans.shapes import Revisions

    if as_json:
        return _print_json(TypeAdapter(Revisions).dump_python(found, mode="json"))
    names = {one.revision.id: one.name for one in reversed(found.items)}
    rows = [
        (
            one.name,
            one.state,
            names.get(one.revision.parent or "", "–"),
            one.revision.recipe.name,
            ", ".join(f"{m.data} {m.after:.1%}" for m in one.headline) or "–",
            f"{one.worse} worse" if one.worse else "not compared" if one.report is None and one.revision.parent else "",
            one.problem,
        )
        for one in found.items
    ]
    _print_table(("name", "state", "from", "made by", "accuracy", "report", "problem"), rows)
    back = f" Going back leads to {found.back_to}." if found.back_to else ""
    return click.echo(f"In use: {found.current}.{back}")


def _print_answers(found: list[Feedback], stored: bool, as_json: bool) -> None:
    from unhans.types import WordVote, to_json

    if as_json:
        for one in found:
            click.echo(to_json(one))
        return
    votes = [one.says for one in found if isinstance(one.says, WordVote)]
    rows = ((v.word, v.label, v.vote, v.example or "everywhere") for v in votes[:_SHOWN])
    _print_table(("word", "label", "vote", "where"), rows)
    if len(votes) > _SHOWN:
        click.echo(f"… and {len(votes) - _SHOWN:,} more (all of them with --json).")
    took = sum(one.seconds or 0 for one in found) / 60
    kept = "They are in the project's log." if stored else "Nothing was stored (--store does)."
    click.echo(f"{len(votes):,} votes in {took:,.1f} simulated minutes. {kept}")


def _print_curve(points: Iterable[CurvePoint], as_json: bool) -> None:
    from dataclasses import asdict

    found = list(points)
    if as_json:
        return _print_json([asdict(point) for point in found])
    rows = (
        (
            f"{one.minutes:g}",
            one.data,
            f"{one.votes:g}",
            f"{one.mean:.1%}",
            "–" if one.low is None or one.high is None else f"{one.low:.1%} to {one.high:.1%}",
        )
        for one in found
    )
    return _print_table(("minutes", "set", "votes", "accuracy", "95 % interval"), rows)
