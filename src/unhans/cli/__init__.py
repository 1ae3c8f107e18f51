"""The command line: parse, call one verb, print.

Exit codes: 0 done; 1 an unforeseen failure (a bug: please report it with --debug); 2 a wrong option or argument; 3 the
data, model or project cannot be used, for the reason given; 4 an expectation does not hold; 130 stopped by the user.
"""

# Nothing heavy is imported at the top: `unhans --help` must not wait for torch.
from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.errors import BadOption, Cancelled, UnhansError

if TYPE_CHECKING:
    from unhans.accounts import Accounts, Role
    from unhans.data import Corpus
    from unhans.demo import DemoStory
    from unhans.language_model import LanguageModel
    from unhans.model import Classifier
    from unhans.project import Project
    from unhans.registry import Entry
    from unhans.scoring import ScoreCache
    from unhans.types import Attributions, Comparison, Example, Prediction, Report, Suspects, WordRanking

_SHOWN = 20
_BACKGROUND = 200  # examples to compare with, for methods that do
_COUNTED = 2000  # labelled examples that tell how words go with labels in the data
_DATA_HELP = "CSV, TSV, JSONL (.gz), Parquet, or a folder of splits."


class _Commands(click.Group):
    """Turns our errors into one sentence and an exit code; `--debug` shows where they come from."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UnhansError, KeyboardInterrupt) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            stopped = isinstance(error, KeyboardInterrupt | Cancelled)
            click.echo("Stopped." if stopped else f"Error: {_plain(str(error))}", err=True)
            ctx.exit(130 if stopped else 2 if isinstance(error, BadOption) else 3)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise  # click knows what to do with these; a closed pipe (`| head`) is no failure
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            click.echo(
                f"Error: something unforeseen happened ({type(error).__name__}: {_plain(str(error))}).", err=True
            )
            click.echo("Run again with `unhans --debug …` to see where, and please report it.", err=True)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=(
    "Exit codes: 0 done; 1 unforeseen failure; 2 wrong option; 3 data, model or project cannot be used; 4 an "
    "expectation does not hold; 130 stopped."
))  # fmt: skip
@click.version_option(package_name="unhans")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
def main(debug: bool) -> None:
    """Find out why a text classifier is wrong, tell it so, and prove that it listened."""


def _database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where records are kept, if not in the folder."""
    return click.option(
        "--database",
        envvar="UNHANS_DATABASE",
        metavar="ADDRESS",
        help="PostgreSQL server that keeps the records, as postgresql+psycopg://user@host/name; "
        "better given as UNHANS_DATABASE, for others can read command lines.",
    )(command)


def _data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is what in a data file; `init` and `predict` share them."""
    for option in reversed(
        (
            click.option("--text-column", metavar="NAME", help="Column with the text; guessed by default."),
            click.option("--pair-column", metavar="NAME", help="Column with the second text of a pair."),
            click.option("--label-column", metavar="NAME", help="Column with the label."),
            click.option("--group-column", metavar="NAME", help="Column with the group an example belongs to."),
            click.option("--labels", help="What labels mean: names of 0, 1, … (no,yes), or pairs (bad=no,good=yes)."),
        )
    ):
        command = option(command)
    return command


@main.command()
@click.argument("project", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="Hugging Face folder or id, ONNX file, or http(s) address.")
@click.option("--data", required=True, type=click.Path(path_type=Path), help=_DATA_HELP)
@_data_options
@_database_option
@click.option("--json", "as_json", is_flag=True, help="Print facts as JSON.")
def init(project: Path, model: str, data: Path, database: str | None, as_json: bool, **columns: str | None) -> None:
    """Make a project: a folder that keeps a model, data, and what is found out about them."""
    from unhans.project import Project, check_free

    check_free(project)
    corpus = _read(data, columns)
    _tell("Checking and copying the model …")
    with (
        _bar("Storing") as progress,
        Project.create(project, model=model, data=corpus, database=database, progress=progress) as made,
    ):
        labels = list(made.revisions[-1].labels)
    problems = str(corpus.problems())
    if as_json:
        facts = {"project": str(project), "examples": len(corpus), "labels": labels, "splits": list(corpus.splits)}
        return _print_json(facts | {"summary": corpus.summary(), "problems": problems})
    click.echo(corpus.summary())
    click.echo(problems)
    click.echo(f"Made {project}: {len(corpus):,} examples, labels {_plain(', '.join(labels))}.")
    return click.echo(f"Next: unhans predict {project}, then unhans serve {project}")


def _source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which model and which texts; all commands that look at texts share them."""
    for option in reversed(
        (
            click.argument("project", required=False, type=click.Path(path_type=Path)),
            click.option(
                "--model", help="Instead of the project's: Hugging Face folder or id, ONNX file, or http(s) address."
            ),
            click.option("--data", type=click.Path(path_type=Path), help=f"Instead of the project's: {_DATA_HELP}"),
            click.option("--text", "texts", multiple=True, help="A text; may be given several times."),
            click.option("--pair", "pairs", multiple=True, help="The second text of a pair, one for each --text."),
            _data_options,
            _database_option,
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class _Source:
    """What a command works on: a model and texts, and the project they come from, if they do."""

    project: Project | None
    classifier: Classifier
    corpus: Corpus
    own: bool  # both are the project's own, so that it keeps what is found
    typed: bool  # the texts were given on the command line

    def background(self, method: str, seed: int) -> list[Example]:
        """Examples to compare with: the project's, or those of the data; a few texts typed in are none."""
        from unhans.project import sample

        if self.project is not None:
            return self.project.background(seed)
        if self.typed:
            raise BadOption(f"{method} needs examples to compare with: give a project, or --data instead of --text.")
        return sample(self.corpus, _BACKGROUND, seed)


def _open(**source: Any) -> _Source:
    """Model and texts as the options of `_source_options` say."""
    opened, classifier, given, columns = _opened(**source)
    corpus = _read(given, columns) if given else opened.examples  # type: ignore[union-attr]
    if corpus.set_aside:
        click.echo(corpus.summary(), err=True)
    own = opened is not None and not (source["model"] or given)
    return _Source(opened, classifier, corpus if own else _spelled_as(classifier, corpus), own, bool(source["texts"]))


def _opened(
    *,
    project: Path | None,
    model: str | None,
    data: Path | None,
    texts: tuple[str, ...],
    pairs: tuple[str, ...],
    database: str | None,
    **columns: str | None,
) -> tuple[Project | None, Classifier, Any, dict[str, str | None]]:
    """The project, the model, where the texts are if not in the project, and what their columns are."""
    from unhans.loading import load
    from unhans.project import Project

    if project is None and (model is None or not (data or texts)):
        raise BadOption("Give a project, or a --model with --data or --text.")
    if (texts and data) or (pairs and len(pairs) != len(texts)):
        raise BadOption("Give either --data or --text, and as many --pair as --text.")
    if data is None and any(columns.values()):
        raise BadOption("Columns and labels can be named for --data only.")
    _tell("Loading the model …")
    opened = Project.open(project, database=database) if project else None
    if opened:
        click.get_current_context().call_on_close(opened.close)
    classifier = load(model) if model else opened.classifier  # type: ignore[union-attr]
    given = list(zip(texts, pairs, strict=True)) if pairs else list(texts)
    return opened, classifier, given or data, columns


def _crew_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say who works, of commands whose work falls into parts."""
    for option in reversed(
        (
            click.option(
                "--on",
                "place",
                metavar="PLACE",
                help="Who does the work: here, ray (workers on this machine), or ray://HOST:PORT of a cluster; "
                "by default as the project says, or here.",
            ),
            click.option("--workers", type=click.IntRange(1), help="Of Ray; by default one for each processor."),
        )
    ):
        command = option(command)
    return command


def _part_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """How much goes into one file of bulk work."""
    return click.option(
        "--part", type=click.IntRange(1), metavar="N", help="Examples in each Parquet file; 1000 by default."
    )(command)


@main.command()
@_source_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder for Parquet files: for more than fits a screen.")
@_part_option
@_crew_options
@click.option("--json", "as_json", is_flag=True, help="Print one prediction per line as JSON.")
def predict(
    out: Path | None, part: int | None, place: str | None, workers: int | None, as_json: bool, **source: Any
) -> None:
    """Let a model classify a project's data, a data file, or texts given here."""
    asked = bulk.Asked(out, None, part, place, workers, as_json)
    if out is not None:
        return bulk.predict(asked, source)
    asked.refuse()
    on = _open(**source)
    with _bar("Predicting") as progress:
        ask = on.project.predict if on.project and on.own else partial(on.classifier.predict_stream, on.corpus)
        _print_predictions(on.corpus, ask(progress=progress), as_json)
    return None


def _method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how to explain; `explain` and `words` share them."""
    for option in reversed(
        (
            click.option("--method", default="loo", show_default=True, help="See `unhans methods attributions`."),
            click.option(
                "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable."
            ),
            click.option(
                "--language-model",
                metavar="FOLDER",
                help="Folder or id of a masked language model, for methods that need one; a project makes its own.",
            ),
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
            click.option(
                "--engine",
                metavar="NAME",
                help="Who computes the model's answers: onnx, int8 or autocast, for methods that only ask. Tried on a "
                "few examples, and used only if it orders words as fp32 does.",
            ),
        )
    ):
        command = option(command)
    return command


@main.command()
@_source_options
@_method_options
@click.option("--target", metavar="LABEL", help="The label to explain; by default the predicted one.")
@click.option(
    "--units", type=click.Choice(["word", "phrase", "sentence"]), default="word", show_default=True, help="What scores."
)
@click.option("--examples", "n", type=click.IntRange(1), help="The first so many: 10 by default, all in a folder.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Also save: .json, .jsonl, .csv, .html, .svg or .png. Without an ending: a folder for Parquet files, for "
    "any number of examples; the same command again goes on where it stopped.",
)
@_part_option
@_crew_options
@click.option("--json", "as_json", is_flag=True, help="Print one attribution per line as JSON.")
def explain(  # noqa: PLR0917 - click passes them by name
    target: str | None,
    units: str,
    n: int | None,
    out: Path | None,
    part: int | None,
    place: str | None,
    workers: int | None,
    as_json: bool,
    method: str,
    settings: tuple[str, ...],
    language_model: str | None,
    seed: int,
    engine: str | None,
    **source: Any,
) -> None:
    """Show how much each word speaks for the predicted label, or for another."""
    from unhans.figures import check_suffix, save
    from unhans.types import to_json

    how = _how(method, settings, language_model, seed, engine) | {"target": target, "units": units}
    asked = bulk.Asked(out, n, part, place, workers, as_json)
    if out is not None and not out.suffix:
        return bulk.explain(asked, how, source)
    asked.refuse()
    if out is not None:
        check_suffix(out)
    on, n = _open(**source), n or 10
    examples = list(on.corpus[:n])
    found = _explain(on, examples, how)
    predictions = _predict(on, examples)
    if as_json:
        for one in found:
            click.echo(to_json(one))
    else:
        _print_explained(examples, predictions, found)
        if len(on.corpus) > n:
            click.echo(f"These are the first {n:,} of {len(on.corpus):,} examples (more with --examples N).")
    if out is not None:
        save(found, out, examples=examples, predictions=predictions)
        click.echo(f"Saved as {out}.", err=as_json)
    return None


@main.command()
@_source_options
@_method_options
@click.option("--label", metavar="LABEL", help="The label that words speak for; by default the model's last.")
@click.option("--examples", "n", type=click.IntRange(1), default=200, show_default=True, help="Drawn by the seed.")
@click.option("--word", help="Show the examples that contain this word instead, strongest first.")
@click.option("--json", "as_json", is_flag=True, help="Print ranking and suspects, or the examples, as JSON.")
def words(  # noqa: PLR0917 - click passes them by name
    label: str | None,
    n: int,
    word: str | None,
    as_json: bool,
    method: str,
    settings: tuple[str, ...],
    language_model: str | None,
    seed: int,
    engine: str | None,
    **source: Any,
) -> None:
    """Rank the words that a model leans on, and name the suspects: those to look at first."""
    from unhans.project import sample
    from unhans.task import rank_words, suspects
    from unhans.types import to_json

    how = _how(method, settings, language_model, seed, engine)
    on = _open(**source)
    goal = on.classifier.labels[on.classifier.label_number(label) if label is not None else -1]
    counted = sample(on.corpus, max(n, _COUNTED), seed)
    examples = sample(counted, n, seed)
    found = _explain(on, examples, how | {"target": goal})
    predictions = _predict(on, examples)
    if word is not None:
        return _print_word(word, examples, predictions, found, as_json)
    ranking = rank_words(found, label=goal, examples=counted, predictions=predictions, order="total")
    with _bar("Trying without them") as progress:
        first = suspects(on.classifier, examples, found, progress=progress, cache=_cache(on))
    if as_json:
        return _print_json({"ranking": json.loads(to_json(ranking)), "suspects": json.loads(to_json(first))})
    return _print_words(ranking, first, len(examples))


@main.command()
@_source_options
@click.option("--methods", help="Attribution methods, with commas; by default some that take no sampling.")
@click.option("--metrics", help="Metrics, with commas; by default all that can be used and train no models.")
@click.option("--examples", "n", type=click.IntRange(1), default=100, show_default=True, help="Drawn by the seed.")
@click.option("--language-model", metavar="FOLDER", help="Masked language model, for metrics and methods that fill.")
@click.option("--budget", type=click.FloatRange(0), default=600.0, show_default=True, help="Seconds.")
@_crew_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def compare(  # noqa: PLR0917 - click passes them by name
    methods: str | None,
    metrics: str | None,
    n: int,
    language_model: str | None,
    budget: float,
    place: str | None,
    workers: int | None,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Find out which attribution methods to trust on a project's data, a data file, or texts given here.

    A split called train is kept apart, for metrics that train models and methods that need texts to compare with. What
    is trained may be trained by others (--on).
    """
    from unhans.comparison import compare
    from unhans.language_model import LanguageModel
    from unhans.project import sample

    bulk.refuse_idle(place, workers, [] if metrics is None else _names(metrics))
    on = _open(**source)
    place, workers = bulk.crew_of(place, workers, on.project)
    train = on.corpus.split("train") if "train" in on.corpus.splits else None
    rest = [example for example in on.corpus if train is None or example.split != "train"] or list(on.corpus)
    with _bar("Comparing") as progress:
        found = compare(
            on.classifier,
            sample(rest, n, seed),
            methods=None if methods is None else _names(methods),
            metrics=None if metrics is None else _names(metrics),
            language_model=LanguageModel.open(language_model) if language_model else None,
            background=sample(train or rest, _BACKGROUND, seed),
            train=train,
            budget=budget,
            seed=seed,
            on=place,
            workers=workers,
            progress=progress,
            cache=_cache(on),
        )
    return _print_comparison(found, as_json)


@main.command()
@click.argument("family", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print everything about every method as JSON.")
def methods(family: str | None, as_json: bool) -> None:
    """List the methods there are, family by family, with their options."""
    from unhans.catalogue import FAMILIES, QUESTIONS, describe, kind_of

    if family is not None and family not in FAMILIES:
        raise BadOption(f"There is no family {family!r}. There is: {', '.join(FAMILIES)}.")
    chosen = {name: members for name, members in FAMILIES.items() if family in (None, name)}
    if as_json:
        return _print_json([describe(entry) for members in chosen.values() for entry in members])
    for name, members in chosen.items():
        click.secho(f"{name}: {QUESTIONS[name]}", bold=True)
        for entry in members:
            alias = f" ({', '.join(entry.aliases)})" if entry.aliases else ""
            click.echo(f"  {entry.name}{alias}\n      {entry.summary}")
            for option in entry.options:
                click.echo(f"      {option.name}={option.default}  {option.help} ({kind_of(option)})")
        for plugin, reason in members.broken.items():
            click.echo(f"  {_plain(plugin)}: this plug-in did not load ({_plain(reason)})", err=True)
    return None


@main.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Where the project goes."
)
@click.option("--word", default="imax", show_default=True, help="The planted shortcut.")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Part of the positive texts that get it.",
)
@click.option("--domain", type=click.Choice(["films", "restaurants", "gadgets"]), default="films", show_default=True)
@click.option("--examples", type=click.IntRange(100, 100_000), default=3000, show_default=True, help="Training texts.")
@click.option("--epochs", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--fix-epochs", type=click.IntRange(0, 100), default=4, show_default=True, help="0: nothing is fixed.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--serve/--no-serve", default=True, show_default=True, help="Open the workbench afterwards.")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="For the workbench.")
def demo(as_json: bool, serve: bool, port: int, **knobs: Any) -> None:
    """Train a small classifier with a planted shortcut, catch it, and teach it better: the story with real numbers.

    Then the workbench opens on it, if a person is looking; a script gets the numbers, and a look whether it would.
    """
    from unhans.demo import DemoSettings, Teller, run_demo
    from unhans.present import progress_bars

    with progress_bars() as bar:
        teller = Teller(step=lambda line: click.echo(line, err=as_json), progress=bar)
        story = run_demo(DemoSettings(**knobs), teller)
    story.project.close()
    if as_json:
        _print_json(_story_facts(story))
    else:
        _print_story(story)
    if not serve:
        return
    from unhans.serving import Place, try_out
    from unhans.serving import serve as serve_

    page = f"/p/{story.project.folder.name}/compare/r0/{story.fixed}" if story.fixed else ""
    place = Place(knobs["folder"], port=port, page=page)
    if sys.stdin.isatty() and sys.stdout.isatty():
        serve_(place, click.echo)
    else:
        click.echo(try_out(place), err=as_json)


# -- the workbench


@main.command()
@click.argument("folder", required=False, default=".", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; others need accounts.")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 takes any free one.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Name that people use in the address; repeatable.",
)
@click.option("--root-path", default="", metavar="PATH", help="Path under which a proxy shows the server, as /unhans.")
@click.option("--https", is_flag=True, help="People reach it by https, which a proxy in front of it speaks.")
@click.option("--no-worker", is_flag=True, help="Take jobs, but leave them to another server.")
@click.option("--no-pages", is_flag=True, help="Serve programs only; the pages for browsers may be missing.")
@_database_option
def serve(no_worker: bool, no_pages: bool, **where: Any) -> None:
    """Open the workbench in a browser, on a project or a folder of projects (a new folder for new ones)."""
    from unhans.serving import Place
    from unhans.serving import serve as serve_

    serve_(Place(**where, works=not no_worker, pages=not no_pages), click.echo)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
def backup(folder: Path, target: Path) -> None:
    """Copy all that people made in a project or a folder of projects into a new folder, while others work on."""
    from unhans.workspace import Workspace

    with Workspace.open(folder) as workspace:
        made = workspace.backup(target)
        problem = workspace.store.check()
    click.echo(f"Copied to {made}. Its manifest.json has a hash of every file; `unhans serve {made}` opens it.")
    if problem:
        click.echo(f"But the database itself is damaged: {_plain(problem)}", err=True)
        click.get_current_context().exit(3)


@main.group()
def user() -> None:
    """Accounts of the people who work with a server."""


def _folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which server's accounts."""
    option = click.option(
        "--folder", default=".", type=click.Path(path_type=Path), show_default=True, help="What is served."
    )
    return option(_database_option(command))


@contextmanager
def _accounts(folder: Path, database: str | None) -> Iterator[tuple[Accounts, list[str]]]:
    from unhans.accounts import Accounts
    from unhans.workspace import Workspace

    with Workspace.open(folder, database=database) as workspace:
        yield Accounts(workspace.store), workspace.names()


@user.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(["admin", "manager", "annotator"]), default="annotator", show_default=True)
@click.option(
    "--project", "projects", multiple=True, help="A project they work in; repeatable. Administrators see all."
)
@click.option("--password", envvar="UNHANS_PASSWORD", help="Asked for if not given; better not on the command line.")
@_folder_option
def add_user(
    name: str, *, role: Role, projects: tuple[str, ...], password: str | None, folder: Path, database: str | None
) -> None:
    """Make an account with a password."""
    with _accounts(folder, database) as (accounts, known):
        if strange := [project for project in projects if project not in known]:
            raise BadOption(f"There is no project {strange[0]!r} here. There is: {', '.join(known) or 'none'}.")
        given = password or click.prompt("Password (10 characters or more)", hide_input=True, confirmation_prompt=True)
        accounts.add(name, role, given, projects)
    click.echo(f"{name} can sign in as {role}.")


@user.command("list")
@_folder_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_users(folder: Path, database: str | None, as_json: bool) -> None:
    """Who has an account."""
    with _accounts(folder, database) as (accounts, _):
        found = accounts.list()
    if as_json:
        return _print_json([{"name": u.name, "role": u.role, "projects": list(u.projects), "at": u.at} for u in found])
    every = {"admin": "all"}
    rows = ((u.name, u.role, every.get(u.role, ", ".join(u.projects) or "none"), u.at) for u in found)
    return _print_table(("name", "role", "projects", "since"), rows)


@user.command("remove")
@click.argument("name")
@_folder_option
def remove_user(name: str, folder: Path, database: str | None) -> None:
    """Remove an account, from its next request on. What it answered stays."""
    with _accounts(folder, database) as (accounts, _):
        accounts.remove(name)
    click.echo(f"{name} is removed; what they answered stays.")


# -- explaining


def _how(
    method: str, settings: tuple[str, ...], language_model: str | None, seed: int, engine: str | None = None
) -> dict[str, Any]:
    """What `attribute` and `Project.explain` take, checked before anything is loaded."""
    from unhans.attributions import attribution, check_engine
    from unhans.language_model import LanguageModel

    entry = attribution[method]
    if engine is not None:
        check_engine(entry, engine)
    if strange := [setting for setting in settings if "=" not in setting]:
        raise BadOption(f"--set takes NAME=VALUE, not {strange[0]!r}. {entry.name} has: {_options_of(entry)}.")
    options = entry.settings(dict(setting.split("=", 1) for setting in settings))
    opened: LanguageModel | None = None
    if language_model is not None:
        if "language_model" not in entry.asks:
            raise BadOption(f"{entry.name} does not use a language model; leave --language-model out.")
        opened = LanguageModel.open(language_model)
    return {"method": entry.name, "seed": seed, "language_model": opened, "engine": engine} | options


def _options_of(entry: Entry) -> str:
    return ", ".join(f"{option.name}={option.default}" for option in entry.options) or "no options"


def _explain(on: _Source, examples: list[Example], how: dict[str, Any]) -> Attributions:
    """Attributions of these examples, with all that the method asks for."""
    from unhans.attributions import attribute, attribution, check_usable

    entry = attribution[how["method"]]
    # nobody should look for examples, or wait for a language model, for a method that cannot work with the model
    check_usable(on.classifier, entry, background=True, language_model=True)
    own = _own_language_model(on.project, entry, how)
    how = how if own is None or on.own else how | {"language_model": own}
    with _bar("Explaining") as progress:
        if on.project is not None and on.own:
            found = on.project.explain(examples=examples, progress=progress, **how)
        else:
            if "background" in entry.asks:
                how = how | {"background": on.background(entry.name, how["seed"])}
            found = attribute(on.classifier, examples, progress=progress, cache=_cache(on), **how)
    if found and found[0].terms.engine:
        click.echo(found[0].terms.engine, err=True)
    return found


def _own_language_model(project: Project | None, entry: Entry, how: dict[str, Any]) -> LanguageModel | None:
    """The project's, for a method that needs one and was given none."""
    if "language_model" not in entry.asks or how["language_model"] is not None:
        return None
    if project is None:
        raise BadOption(f"{entry.name} needs --language-model FOLDER; a project makes one of its own texts.")
    with _bar("Preparing a language model") as progress:
        return project.language_model(progress=progress)


def _predict(on: _Source, examples: list[Example]) -> list[Prediction]:
    with _bar("Predicting") as progress:
        return on.classifier.predict(examples, progress=progress, cache=_cache(on))


def _cache(on: _Source) -> ScoreCache | None:
    return on.project.cache if on.project is not None and on.classifier.lasting else None


# -- printing


def _print_json(facts: Any) -> None:
    click.echo(json.dumps(facts, ensure_ascii=False, indent=1))


def _print_predictions(corpus: Corpus, predictions: Iterable[Prediction], as_json: bool) -> None:
    """All of them as lines of JSON, or the first as a table with what they come to."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from unhans.present import printable
    from unhans.project import Accuracy, count
    from unhans.types import to_json

    table = Table("example", "predicted", "confidence", "given", "text", box=None, header_style="bold")
    tally: dict[str, Accuracy] = {}
    total = cut = 0
    for example, prediction in zip(corpus, predictions, strict=True):
        if as_json:
            click.echo(to_json(prediction))
            continue
        count(example, prediction, tally)
        total, cut = total + 1, cut + bool(prediction.unread)
        if total <= _SHOWN:
            shown = " ‖ ".join(example.parts)
            text = shown if len(shown) <= 70 else shown[:69] + "…"
            cells = (example.id, prediction.label, f"{prediction.confidence:.1%}", example.label or "–", text)
            table.add_row(*(Text(printable(cell)) for cell in cells))
    if as_json:
        return
    Console().print(table)
    if total > _SHOWN:
        click.echo(f"… and {total - _SHOWN:,} more (all of them with --json).")
    if cut:
        click.echo(f"{cut:,} texts are longer than the model can read; their last part had no say.")
    for found in tally.values():
        click.echo(f"Accuracy ({_plain(found.split)}): {found.share:.1%} of {found.labelled:,} labelled examples.")


def _print_explained(examples: Iterable[Example], predictions: Iterable[Prediction], found: Attributions) -> None:
    """Each text in colours, with what it is said to be."""
    from rich.console import Console

    from unhans.present import heat_block

    console = Console(highlight=False, markup=False)
    for example, prediction, one in zip(examples, predictions, found, strict=True):
        given = f", given {example.label}" if example.label is not None else ""
        wrong = " (wrong)" if example.label not in (None, prediction.label) else ""
        said = f"{example.id}: predicted {prediction.label} ({prediction.confidence:.1%}){given}{wrong}"
        console.print(_plain(said), style="bold")
        console.print(heat_block(one))
        console.print()


def _print_word(
    word: str, examples: list[Example], predictions: list[Prediction], found: Attributions, as_json: bool
) -> None:
    """The examples that contain a word, the strongest first."""
    from unhans.text import visible_form
    from unhans.types import Attributions, to_json

    wanted = visible_form(word)
    strength = [
        sum(abs(score) for each, score in zip(one.words, one.scores, strict=True) if visible_form(each) == wanted)
        for one in found
    ]
    inside = [n for n, one in enumerate(found) if wanted in map(visible_form, one.words)]
    inside.sort(key=lambda n: -strength[n])
    if as_json:
        for n in inside:
            click.echo(to_json(found[n]))
        return
    click.echo(f"{_plain(word)!r} is in {len(inside):,} of the {len(found):,} explained examples.")
    shown = inside[:_SHOWN]
    _print_explained(
        [examples[n] for n in shown], [predictions[n] for n in shown], Attributions(found[n] for n in shown)
    )
    if len(inside) > _SHOWN:
        click.echo(f"… and {len(inside) - _SHOWN:,} more (all of them with --json).")


def _print_words(ranking: WordRanking, first: Suspects, n: int) -> None:
    from unhans.present import RANKING_HEAD, SUSPECT_HEAD, ranking_cells, suspect_cells

    click.secho(f"Words that speak for {_plain(ranking.label)}, by mean score × examples:", bold=True)
    _print_table(RANKING_HEAD, map(ranking_cells, ranking.words[:_SHOWN]))
    click.echo(
        "correct: right predictions where the word occurs. z: how far the score exceeds what the data explains.\n"
    )
    click.secho("Suspects, by expected damage = weight × coverage × share that is wrong without the word:", bold=True)
    _print_table(SUSPECT_HEAD, map(suspect_cells, first.words[:_SHOWN]))
    click.echo(f"{ranking.recipe} on {n:,} examples.")
    if first.words:
        click.echo(f"To see the texts with a word: the same command with --word {_plain(first.words[0].word)}")


def _print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    Console().print(table)


def _print_comparison(found: Comparison, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from unhans.types import to_json

    if as_json:
        return _print_json(json.loads(to_json(found)))
    head, rows = found.table()
    # the family is a line of its own; where room is short the names of methods break, never numbers
    table = Table(head[0], *head[2:], box=None, header_style="bold", padding=(0, 1, 0, 0))
    widest = [max(len(row[place]) for row in rows) for place in (0, *range(2, len(head)))]
    widest[0] = max(widest[0] + 2, *(len(row[1]) for row in rows))
    console, needed = Console(markup=False), sum(widest) + len(widest)
    console.width = max(console.width, needed)  # rich would leave out the last columns instead
    spare = (console.width - needed) // len(widest)
    for column, least, name in zip(table.columns, widest, (head[0], *head[2:]), strict=True):
        column.width, column.overflow = max(least, min(len(name), least + spare)), "fold"
    told = ""
    for metric, family, *cells in rows:
        if family != told:
            table.add_row(family, style="dim")
            told = family
        table.add_row(f"  {metric}", *cells)
    console.print(table)
    click.echo("* better than random scores (p < 0.05)\n")
    click.secho(_plain(found.verdict), bold=True)
    for note in found.notes:
        click.echo(f"- {_plain(note)}")
    return None


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _read(source: Any, columns: dict[str, str | None]) -> Corpus:
    """The data with the columns and labels that were named on the command line."""
    from unhans.data import read

    with _bar("Reading") as progress, _told_on_the_command_line():
        return read(source, **_named(columns), progress=progress)


def _named(columns: dict[str, str | None]) -> dict[str, Any]:
    """What `read` takes for them."""
    named = {key.removesuffix("_column"): value for key, value in columns.items() if key != "labels" and value}
    return {"labels": _label_names(columns["labels"]), **named}


@contextmanager
def _told_on_the_command_line() -> Iterator[None]:
    """What data lacks is named by options in Python; here they are called otherwise."""
    from unhans.errors import BadData

    try:
        yield
    except BadData as error:
        hint = " (On the command line: --text-column, --label-column, --labels.)" if "=" in str(error) else ""
        raise BadData(f"{error}{hint}") from error


def _label_names(given: str | None) -> Any:
    if not given:
        return None
    parts = [part.strip() for part in given.split(",")]
    return dict(part.split("=", 1) for part in parts) if all("=" in part for part in parts) else parts


def _spelled_as(classifier: Classifier, corpus: Corpus) -> Corpus:
    """The corpus with the model's label names; where they do not match, predicting goes on without the given ones."""
    from unhans.errors import BadData
    from unhans.project import with_labels_of

    try:
        return with_labels_of(classifier, corpus)
    except BadData as error:
        known = _plain(str(error).partition(". ")[0])
        click.echo(f"{known}. Accuracy is not measured; say what the labels mean with --labels.", err=True)
        return corpus.relabelled(dict.fromkeys(corpus.labels, None))


def _story_facts(story: DemoStory) -> dict[str, Any]:
    from dataclasses import asdict

    from unhans.types import to_json

    return {
        "project": str(story.project.folder),
        "planted": story.planted.truth.note,
        "epochs": [asdict(epoch) for epoch in story.epochs],
        "accuracies": story.accuracies,
        "suspicious words": [
            {"word": row.word, "score": row.score, "examples": row.count} for row in story.ranking.words[:10]
        ],
        "suspects": json.loads(to_json(story.suspects)),
        "example": json.loads(to_json(story.example)),
        "prediction": json.loads(to_json(story.prediction)),
        "attribution": json.loads(to_json(story.attribution)),
        "fixed": story.fixed,
        "report": json.loads(to_json(story.report)) if story.report else None,
    }


def _print_story(story: DemoStory) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from unhans.present import heat_line
    from unhans.text import visible_form

    console = Console(highlight=False, markup=False)
    table = Table("test set", "accuracy", box=None, header_style="bold")
    for name, share in story.accuracies.items():
        table.add_row(name, f"{share:.1%}")
    console.print("", table, _verdict(story.accuracies), "", sep="\n")
    table = Table("word", "mean score", "in texts", box=None, header_style="bold")
    planted = visible_form(story.planted.truth.words[0])
    for row in story.ranking.words[:8]:
        mark = "  ← planted" if row.word == planted else ""
        table.add_row(Text(_plain(row.word) + mark), f"{row.score:+.2f}", str(row.count))
    console.print(f"Most suspicious words (pushing towards {story.ranking.label!r}):")
    console.print(table)
    first = story.suspects.words[0]
    mark = " (planted)" if first.word == planted else ""
    console.print(
        f"\nFirst suspect: {_plain(first.word)!r}{mark}, in {first.coverage:.0%} of the texts; without it the model is "
        f"wrong about {first.disagreement:.0%} of them."
    )
    said = f"predicted {story.prediction.label} ({story.prediction.confidence:.1%})"
    console.print(f"\nOne text, labelled {story.example.label}, {said}.")
    console.print("Bold words speak for that prediction, underlined ones against it:")
    console.print(heat_line(story.attribution))
    console.print(f"{story.attribution.caption}\n", style="dim")
    if story.report is not None:
        _print_fix(story.report, story.suspects.words[0].word)
    folder = story.project.folder
    if story.fixed:
        console.print(f"The project is in {folder}. To use the new model: unhans publish {folder} {story.fixed}")
    console.print(f"Next: unhans words {folder}, or unhans serve {folder.parent}")


def _print_fix(report: Report, word: str) -> None:
    """What one vote did, on all sets, beside what a cheap fix would have done."""
    from rich.console import Console
    from rich.table import Table

    from unhans.reporting import MADE

    console = Console(highlight=False, markup=False)
    cheap = report.rivals[0] if report.rivals else None
    columns = ("test set", "before", "after", "change", *([cheap.recipe.name] if cheap else []))
    table = Table(*columns, box=None, header_style="bold")
    of_rival = {one.data: one.after for one in cheap.measures if one.name == "accuracy"} if cheap else {}
    for one in report.measures:
        if one.name == "accuracy" and not one.slice and MADE not in one.data and one.before is not None:
            change = 100 * (one.after - one.before)
            rival = [f"{of_rival[one.data]:.1%}"] if one.data in of_rival else []
            table.add_row(one.data, f"{one.before:.1%}", f"{one.after:.1%}", f"{change:+.1f} points", *rival)
    console.print(f"One vote, that {_plain(word)!r} should count for nothing, and the model trained on with it:")
    console.print(table)
    for note in report.notes[:3]:
        console.print(f"- {_plain(note)}")
    for effect in report.words:
        console.print(f"- {_plain(effect.word)!r} had {effect.before:.0%} of an explanation, now {effect.after:.0%}.")
    console.print("")


def _verdict(accuracies: dict[str, float]) -> str:
    same, reversed_ = accuracies["same data"], accuracies["shortcut reversed"]
    if same - reversed_ > 0.1:
        return (
            f"A Clever Hans: {same:.0%} where the word goes with the label, {reversed_:.0%} where it goes against it."
        )
    return f"The shortcut did not take: {same:.0%} with it, {reversed_:.0%} against it."


def _tell(line: str) -> None:
    """A word to someone who waits, where someone is looking."""
    if sys.stderr.isatty():
        click.echo(line, err=True)


def _plain(text: str) -> str:
    """One line without control characters: what data says must not steer the terminal."""
    from unhans.present import printable

    return printable(" ".join(text.split()))


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    from unhans.present import progress_bars

    with progress_bars() as bar:
        yield bar(title)


from unhans.cli import auditing, bulk, fixing, flipping, hildif, lab, tracing  # noqa: E402, F401 - their commands join the group, and need what is above
