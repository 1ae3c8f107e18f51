"""Findings that go to a folder of Parquet files: what `explain`, `flips` and `predict` do with --out FOLDER."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import (
    _BACKGROUND,
    _bar,
    _crew_options,
    _named,
    _opened,
    _own_language_model,
    _plain,
    _print_json,
    _told_on_the_command_line,
    main,
)
from unhans.cli.fixing import _project_option
from unhans.errors import BadOption

if TYPE_CHECKING:
    from unhans.bulk import Task
    from unhans.model import Classifier
    from unhans.project import Project
    from unhans.registry import Entry
    from unhans.types import Example


_KEPT = "crew"  # the project's setting
_FILES = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".html", ".txt", ".xlsx"}  # nobody calls a folder so


@dataclass(frozen=True)
class Asked:
    """What the options say about the folder, and about who works."""

    out: Path | None
    examples: int | None
    part: int | None
    place: str | None
    workers: int | None
    as_json: bool

    def refuse(self) -> None:
        """Where nothing goes to a folder, these options would do nothing."""
        if self.part or self.place or self.workers:
            raise BadOption(
                "--on, --workers and --part are for bulk work: say where it goes as well, with --out FOLDER."
            )


@dataclass(frozen=True)
class _Stream:
    """A model, and examples that are read as they are needed, from the beginning whenever somebody asks."""

    project: Project | None
    classifier: Classifier
    typed: bool
    total: int
    read: Callable[[], Iterable[Example]]
    crew: tuple[str, int | None]  # who works, and how many

    def background(self, method: str, seed: int) -> list[Example]:
        """Examples to compare with, the same that would be drawn if all were in memory."""
        from unhans.project import sample

        if self.project is not None:
            return self.project.background(seed)
        if self.typed:
            raise BadOption(f"{method} needs examples to compare with: give a project, or --data instead of --text.")
        chosen = set(sample(range(self.total), _BACKGROUND, seed))
        return [example for number, example in enumerate(self.read()) if number in chosen]


def explain(asked: Asked, how: dict[str, Any], source: dict[str, Any]) -> None:
    """Explanations of all examples."""
    from unhans.attributions import attribution, check_usable
    from unhans.bulk import explaining, settle

    on, entry = _stream(asked, source), attribution[how["method"]]
    check_usable(on.classifier, entry, background=True, language_model=True)
    how = how | {"language_model": _own_language_model(on.project, entry, how) or how["language_model"]}
    if "background" in entry.asks:
        how |= {"background": on.background(entry.name, how["seed"])}
    assert asked.out is not None  # that is how we came here
    task = settle(explaining(on.classifier, **how), asked.out, on.read())
    if task.facts["terms"].get("engine"):  # before the long work, and not after it
        click.echo(task.facts["terms"]["engine"], err=True)
    _fill(asked, on, task, "Explaining")


def flips(asked: Asked, entry: Entry, language_model: str | None, how: dict[str, Any], source: dict[str, Any]) -> None:
    """Flips of all examples."""
    from unhans.bulk import flipping
    from unhans.cli.flipping import opened_language_model
    from unhans.counterfactuals import check_usable

    on = _stream(asked, source)
    check_usable(on.classifier, entry, language_model=True)
    model = opened_language_model(on.project, entry, how["search"], language_model)
    lexicon = on.project.lexicon if on.project is not None else ()
    task = flipping(on.classifier, language_model=model, lexicon=lexicon, **how)
    _fill(asked, on, task, "Looking for flips")


def predict(asked: Asked, source: dict[str, Any]) -> None:
    """Predictions of all examples."""
    from unhans.bulk import predicting

    on = _stream(asked, source)
    _fill(asked, on, predicting(on.classifier), "Predicting")


def _stream(asked: Asked, source: dict[str, Any]) -> _Stream:
    """Model and examples as the options of `_source_options` say; the examples are counted, and not held."""
    from unhans.crew import check_crew
    from unhans.data import SetAside, iter_examples

    if asked.out is not None and asked.out.suffix.lower() in _FILES:
        raise BadOption(
            f"{asked.out.name} looks like a file, and this writes a folder of Parquet files. Nothing was done; name a "
            f"folder, such as --out {asked.out.stem}."
        )
    project, classifier, given, columns = _opened(**source)
    who = crew_of(asked.place, asked.workers, project)
    check_crew(*who)  # before all data is read for nothing
    if given is None:
        assert project is not None  # `_opened` has made sure
        held = project.examples[: asked.examples]
        return _Stream(project, classifier, False, len(held), lambda: held, who)

    def read(tell: Callable[[SetAside], None] | None = None) -> Iterable[Example]:
        return iter_examples(given, **_named(columns), limit=asked.examples, set_aside=tell)

    aside: Counter[str] = Counter()
    with _bar("Reading") as progress, _told_on_the_command_line():
        total = 0
        for total, _ in enumerate(read(lambda row: aside.update([row.reason])), start=1):
            if total % 10_000 == 0:
                progress(total, None)
    if aside:
        reasons = ", ".join(f"{_plain(reason)} ({n:,})" for reason, n in aside.most_common(5))
        click.echo(f"{aside.total():,} rows are set aside: {reasons}.", err=True)
    return _Stream(project, classifier, bool(source["texts"]), total, read, who)


def _fill(asked: Asked, on: _Stream, task: Task, title: str) -> None:
    """Do it, with a bar, and say what came of it."""
    from unhans.bulk import fill

    assert asked.out is not None  # that is how we came here
    place, workers = on.crew
    with _bar(title) as progress:
        done = fill(
            asked.out,
            task,
            on.read(),
            part=asked.part,
            total=on.total,
            on=place,
            workers=workers,
            progress=progress,
        )
    facts = {"folder": str(done.folder), "kind": done.kind, "examples": done.examples, "computed": done.computed}
    if asked.as_json:
        return _print_json(facts | {"files": len(done.files)})
    there = "" if done.computed == done.examples else f" {done.computed:,} of them now; the others were there."
    return click.echo(f"{done.folder} has the {done.kind} of {done.examples:,} examples in Parquet files.{there}")


def crew_of(place: str | None, workers: int | None, project: Project | None) -> tuple[str, int | None]:
    """Who works: as the command says, or else as the project does."""
    from unhans.crew import HERE, check_place

    kept = (project.setting(_KEPT) if project is not None and place is None else None) or {}
    return check_place(place or kept.get("on", HERE)), workers or kept.get("workers")


def refuse_idle(place: str | None, workers: int | None, metrics: Sequence[str]) -> None:
    """Where no model is trained, those who train would have nothing to do."""
    from unhans.metrics import metric

    if (place or workers) and not any("crew" in metric[name].asks for name in metrics):
        train = ", ".join(entry.name for entry in metric if "crew" in entry.asks)
        raise BadOption(f"--on and --workers are for metrics that train models: name one with --metrics ({train}).")


@main.command()
@_project_option
@_crew_options
@click.option("--json", "as_json", is_flag=True, help="Print who works as JSON.")
def crew(project: Path, place: str | None, workers: int | None, as_json: bool, database: str | None) -> None:
    """Say who does a project's bulk work where a command does not: this process, or workers of Ray."""
    from unhans.crew import HERE, check_crew
    from unhans.records import Records

    with Records.open(project, database=database) as records:
        if place is not None:
            check_crew(place, workers)
            records.keep_setting(_KEPT, {"on": place, "workers": workers})
        elif workers is not None:
            raise BadOption("Say where they work as well: --on ray, or --on ray://HOST:PORT.")
        kept = records.setting(_KEPT) or {"on": HERE, "workers": None}
    if as_json:
        return _print_json(kept)
    many = f", {kept['workers']} workers" if kept["workers"] else ""
    return click.echo(f"Bulk work is done on {_plain(kept['on'])}{many}." if kept["on"] != HERE else "It is done here.")
