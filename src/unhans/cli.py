"""The command line: parse, call one verb, print.

Exit codes: 0 done; 1 an unforeseen failure (a bug: please report it with --debug); 2 a wrong option or argument; 3 the
data, model or project cannot be used, for the reason given; 130 stopped by the user.
"""

# Nothing heavy is imported at the top: `unhans --help` must not wait for torch.
from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.errors import BadOption, Cancelled, UnhansError

if TYPE_CHECKING:
    from unhans.demo import DemoStory
    from unhans.types import Prediction

_SHOWN = 20


class _Commands(click.Group):
    """Turns our errors into one sentence and an exit code; `--debug` shows where they come from."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UnhansError, KeyboardInterrupt) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            stopped = isinstance(error, KeyboardInterrupt | Cancelled)
            click.echo(
                "Stopped. What was finished before is kept." if stopped else f"Error: {_plain(str(error))}", err=True
            )
            ctx.exit(130 if stopped else 2 if isinstance(error, BadOption) else 3)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            click.echo(
                f"Error: something unforeseen happened ({type(error).__name__}: {_plain(str(error))}).", err=True
            )
            click.echo("Your files are as they were. Run again with `unhans --debug …` to see where.", err=True)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=(
    "Exit codes: 0 done; 1 unforeseen failure; 2 wrong option; 3 data, model or project cannot be used; 130 stopped."
))  # fmt: skip
@click.version_option(package_name="unhans")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
def main(debug: bool) -> None:
    """Find out why a text classifier is wrong, tell it so, and prove that it listened."""


@main.command()
@click.argument("project", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="Hugging Face folder or id, ONNX file, or http(s) address.")
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="CSV, TSV, JSONL (.gz), Parquet, or a folder of splits.",
)
@click.option("--text", help="Column with the text; guessed by default.")
@click.option("--pair", help="Column with the second text of a pair.")
@click.option("--label", help="Column with the label.")
@click.option("--group", help="Column with the group an example belongs to.")
@click.option("--labels", help="Names of the labels 0, 1, …, separated by commas.")
@click.option("--json", "as_json", is_flag=True, help="Print facts as JSON.")
def init(project: Path, model: str, data: Path, labels: str | None, as_json: bool, **columns: str | None) -> None:
    """Make a project: a folder that keeps a model, data, and what is found out about them."""
    from unhans.data import read
    from unhans.project import Project

    with _bar("Reading") as progress:
        corpus = read(data, labels=labels.split(",") if labels else None, progress=progress, **columns)  # type: ignore[arg-type]
    _tell("Checking and copying the model …")
    made = Project.create(project, model=model, data=corpus)
    facts = {
        "project": str(project),
        "examples": len(corpus),
        "labels": list(made.classifier.labels),
        "splits": list(corpus.splits),
    }
    if as_json:
        return _print_json(facts | {"summary": corpus.summary()})
    click.echo(corpus.summary())
    click.echo(f"Made {project}: {len(corpus):,} examples, labels {', '.join(made.classifier.labels)}.")
    return click.echo(f"Next: unhans predict {project}")


@main.command()
@click.argument("project", required=False, type=click.Path(path_type=Path))
@click.option("--model", help="Instead of a project: Hugging Face folder or id, ONNX file, or http(s) address.")
@click.option("--data", type=click.Path(path_type=Path), help="Instead of a project: a data file or folder.")
@click.option("--text", "texts", multiple=True, help="A text to classify; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print one prediction per line as JSON.")
def predict(project: Path | None, model: str | None, data: Path | None, texts: tuple[str, ...], as_json: bool) -> None:
    """Let a model classify a project's data, a data file, or texts given here."""
    from unhans.data import read
    from unhans.loading import load
    from unhans.project import Project, accuracies, with_labels_of

    _tell("Loading the model …")
    opened = Project.open(project) if project else None
    if opened is None and model is None:
        raise BadOption("Give a project, or a --model with --data or --text.")
    classifier = load(model) if model else opened.classifier  # type: ignore[union-attr]
    if texts:
        corpus = read(list(texts))
    elif data:
        corpus = with_labels_of(classifier, read(data))
    elif opened:
        corpus = opened.examples
    else:
        raise BadOption("There is nothing to classify: give --data or --text.")
    with _bar("Predicting") as progress:
        own = opened is not None and not (model or data or texts)
        stream = (
            opened.predict(progress=progress)
            if own and opened
            else classifier.predict_stream(corpus, progress=progress)
        )
        predictions = _print_lines(stream) if as_json else list(stream)
    if not as_json:
        _print_predictions(corpus, predictions)
        for found in accuracies(corpus, predictions):
            click.echo(f"Accuracy ({found.split}): {found.share:.1%} of {found.labelled:,} labelled examples.")


@main.command()
@click.argument("family", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print everything about every method as JSON.")
def methods(family: str | None, as_json: bool) -> None:
    """List the methods there are, family by family, with their options."""
    from unhans.catalogue import FAMILIES, QUESTIONS, describe

    if family is not None and family not in FAMILIES:
        raise BadOption(f"There is no family {family!r}. There is: {', '.join(FAMILIES)}.")
    chosen = {name: members for name, members in FAMILIES.items() if family in (None, name)}
    if as_json:
        return _print_json([describe(entry) for members in chosen.values() for entry in members])
    for name, members in chosen.items():
        click.secho(f"{name}: {QUESTIONS[name]}", bold=True)
        for entry in members:
            alias = f" ({entry.facts['alias']})" if entry.facts.get("alias") else ""
            click.echo(f"  {entry.name}{alias}\n      {entry.summary}")
            for option in entry.options:
                kind = " | ".join(option.choices) if option.choices else option.kind
                click.echo(f"      -o {option.name}={option.default}  {option.help} ({kind})")
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
    type=click.FloatRange(0, 1),
    default=0.9,
    show_default=True,
    help="Part of the positive texts that get it.",
)
@click.option("--domain", type=click.Choice(["films", "restaurants", "gadgets"]), default="films", show_default=True)
@click.option("--examples", type=click.IntRange(100, 100_000), default=3000, show_default=True, help="Training texts.")
@click.option("--epochs", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(as_json: bool, **knobs: Any) -> None:
    """Train a small classifier with a planted shortcut, and catch it: the story with real numbers."""
    from unhans.demo import DemoSettings, Teller, run_demo

    with _bars() as bar:
        teller = Teller(step=lambda line: click.echo(line, err=as_json), progress=bar)
        story = run_demo(DemoSettings(**knobs), teller)
    if as_json:
        return _print_json(_story_facts(story))
    return _print_story(story)


# -- printing


def _print_json(facts: Any) -> None:
    click.echo(json.dumps(facts, ensure_ascii=False, indent=1))


def _print_lines(predictions: Iterable[Prediction]) -> list[Prediction]:
    from unhans.types import to_json

    for prediction in predictions:
        click.echo(to_json(prediction))
    return []


def _print_predictions(corpus: Any, predictions: list[Prediction]) -> None:
    from rich.console import Console
    from rich.table import Table

    from unhans.present import printable

    table = Table("example", "predicted", "confidence", "given", "text", box=None, header_style="bold")
    for example, prediction in zip(corpus[:_SHOWN], predictions, strict=False):
        given = example.label or "–"
        shown = " ‖ ".join(example.parts)
        text = printable(shown if len(shown) <= 70 else shown[:69] + "…")
        cells = (
            printable(example.id),
            printable(prediction.label),
            f"{prediction.confidence:.1%}",
            printable(given),
            text,
        )
        table.add_row(*(cell.replace("[", "\\[") for cell in cells))
    Console().print(table)
    if len(predictions) > _SHOWN:
        click.echo(f"… and {len(predictions) - _SHOWN:,} more (all of them with --json).")
    cut = sum(bool(prediction.unread) for prediction in predictions)
    if cut:
        click.echo(f"{cut:,} texts are longer than the model can read; their last part had no say.")


def _story_facts(story: DemoStory) -> dict[str, Any]:
    from unhans.types import to_json

    return {
        "project": str(story.project.folder),
        "planted": story.planted.truth.note,
        "accuracies": story.accuracies,
        "suspicious words": [
            {"word": row.word, "score": row.score, "examples": row.count} for row in story.ranking.words[:10]
        ],
        "example": json.loads(to_json(story.example)),
        "prediction": json.loads(to_json(story.prediction)),
        "attribution": json.loads(to_json(story.attribution)),
    }


def _print_story(story: DemoStory) -> None:
    from rich.console import Console
    from rich.table import Table

    from unhans.present import heat_line

    console, word = Console(), story.planted.truth.words[0]
    console.print()
    table = Table("test set", "accuracy", box=None, header_style="bold")
    for name, share in story.accuracies.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)
    console.print(_verdict(story.accuracies), "\n", highlight=False)
    table = Table("word", "mean score", "in texts", box=None, header_style="bold")
    for row in story.ranking.words[:8]:
        table.add_row(f"{row.word}  ← planted" if row.word == word else row.word, f"{row.score:+.2f}", str(row.count))
    console.print(f"Most suspicious words (pushing towards {story.ranking.label!r}):", highlight=False)
    console.print(table)
    predicted = f"[bold]{story.prediction.label}[/] ({story.prediction.confidence:.1%})"
    console.print(f"\nOne text, labelled {story.example.label} but predicted {predicted}.", highlight=False)
    console.print("Bold words speak for that prediction, underlined ones against it:", highlight=False)
    console.print(heat_line(story.attribution))
    console.print(f"[dim]{story.attribution.recipe}, log-odds[/]\n", highlight=False)
    console.print(
        f"The project is in [bold]{story.project.folder}[/]. Next: unhans predict {story.project.folder}",
        highlight=False,
    )


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
def _bars() -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Progress bars on standard error, one for each title; nothing where no one is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
        redirect_stdout=sys.stdout.isatty(),  # lines appear above the bar; a file or pipe must get them untouched
    ) as progress:

        def bar(title: str) -> Callable[[int, int | None], None]:
            task = progress.add_task(title, total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield bar


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    with _bars() as bar:
        yield bar(title)
