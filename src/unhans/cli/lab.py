"""The command that finds out which explanation sees which bug: lab."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import (
    _bar,
    _names,
    _open,
    _plain,
    _print_json,
    _print_table,
    _Source,
    _source_options,
    main,
)
from unhans.cli.fixing import _json_option
from unhans.cli.tracing import _COLUMNS, _seed_option, _training
from unhans.errors import BadOption

if TYPE_CHECKING:
    from unhans.lab import Bug
    from unhans.types import Example, Lab, LayerCurve, Sighting

_BARS = "▁▂▃▄▅▆▇█"
_TRAIN = "train"


@main.command()
@_source_options
@click.option("--train", type=click.Path(path_type=Path), help="Training examples, where --data has no split train.")
@click.option(
    "--bug", "bugs", multiple=True, metavar="NAME", help="See `unhans methods bugs`; repeatable; by default all."
)
@click.option(
    "--methods", default="usual", show_default=True, help="Attribution methods, with commas; or usual, or all."
)
@click.option("--set", "settings", multiple=True, metavar="BUG.NAME=VALUE", help="An option of a bug; repeatable.")
@click.option("--examples", "n", type=click.IntRange(10), default=100, show_default=True, help="Texts for each bug.")
@_seed_option
@_json_option
def lab(  # noqa: PLR0917 - click passes them by name
    train: Path | None,
    bugs: tuple[str, ...],
    methods: str,
    settings: tuple[str, ...],
    n: int,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Plant bugs in a model and its data, and find out which explanations would show them.

    Models are trained for it, from the given model's weights; the given model is left as it is. A project keeps what is
    found, and marks methods that do not depend on the model wherever they are offered.
    """
    from unhans.attributions import attribution
    from unhans.types import to_json

    chosen = _bugs(bugs, settings)
    looking = methods if methods in ("usual", "all") else [attribution[name].name for name in _names(methods)]
    if not looking:
        raise BadOption("--methods names no method. Leave it out for the usual ones, or say all.")
    if source["texts"] or not (source["project"] or (source["model"] and source["data"])):
        raise BadOption("Models are trained in the lab: give a project, or a --model with --data.")
    on = _open(**source)
    how: dict[str, Any] = {"bugs": chosen, "methods": looking, "examples": n, "seed": seed}
    with _bar("Planting and looking") as progress:
        if on.project is not None and on.own:
            if train is not None:
                raise BadOption("A project knows its training examples; leave --train out.")
            found = on.project.lab(progress=progress, **how)
        else:
            columns = {name: source[name] for name in _COLUMNS}
            found = _run(on, train, columns, how | {"progress": progress})
    if as_json:
        return _print_json(json.loads(to_json(found)))
    return _print_lab(found)


def _bugs(names: tuple[str, ...], settings: tuple[str, ...]) -> list[Bug] | None:
    """The bugs with their options, checked before anything is loaded; None: all."""
    from unhans.bugs import bug
    from unhans.cli.fixing import _pairs

    options: dict[str, dict[str, Any]] = {bug[name].name: {} for name in names}
    for place, value in _pairs("--set", settings).items():
        name, _, option = place.partition(".")
        if not option or bug[name].name not in options:
            raise BadOption(f"--set takes BUG.NAME=VALUE with a bug that was named by --bug, not {place!r}.")
        options[bug[name].name][option] = value
    # only those given: the lab fills in the others from the data
    checked = {name: bug[name].settings(own) for name, own in options.items()}
    return [(name, {k: checked[name][k] for k in own}) if own else name for name, own in options.items()] or None


def _run(on: _Source, file: Path | None, columns: dict[str, str | None], how: dict[str, Any]) -> Lab:
    from unhans.lab import run
    from unhans.model import TransformerClassifier

    on.classifier.require({"train"}, "The lab")
    assert isinstance(on.classifier, TransformerClassifier)  # nothing else can be trained
    examples: list[Example] = list(on.corpus)
    if file is not None:
        return run(on.classifier, _training(on, file, columns), examples, **how)
    train = [example for example in examples if example.split == _TRAIN]
    test = [example for example in examples if example.split != _TRAIN]
    if not train or not test:
        told = (
            "All examples have the split train, so none is left to look at." if train else "No split is called train."
        )
        raise BadOption(
            f"{told} Nothing was trained. Give the training examples with --train FILE, others with --data."
        )
    return run(on.classifier, train, test, **how)


# -- printing


def _print_lab(found: Lab) -> None:
    for bug in found.bugs:
        rows = _rows([one for one in found.sightings if one.bug == bug.name])
        click.secho(f"\n{bug.name} ({bug.kind})", bold=True)
        click.echo(f"{_plain(bug.says)} {_plain(bug.proof)}")
        _print_table(rows[0], rows[1])
    _print_curves(found.curves)
    for method, warning in found.warnings:
        click.secho(f"{method} {warning}: do not trust it.", bold=True)
    for note in found.notes:
        click.echo(f"- {_plain(note)}")


def _rows(sightings: Sequence[Sighting]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A method a row, those that detect the bug best first; a measure a column, with what random scores get."""
    measures = list(dict.fromkeys(one.measure for one in sightings))
    cells = {(one.method, one.by, one.measure): one for one in sightings}
    rows = sorted(
        dict.fromkeys((one.method, one.by) for one in sightings),
        key=lambda row: -cells[*row, "detection"].value if (*row, "detection") in cells else 1.0,
    )
    chance = {one.measure: one.random for one in sightings if one.by == "attribution"}
    table = [
        (
            method,
            by,
            *(_cell(cells.get((method, by, measure))) for measure in measures),
            _sees(cells.get((method, by, "detection"))),
        )
        for method, by in rows
    ]
    told = ["–" if (value := chance.get(measure)) is None else f"{value:.2f}" for measure in measures]
    return ("method", "kind", *measures, "sees it"), [*table, ("random scores", "", *told, "")]


def _cell(one: Sighting | None) -> str:
    if one is None:
        return "–"
    return f"{one.value:.2f}" if one.error is None else f"{one.value:.2f} ± {one.error:.2f}"


def _sees(one: Sighting | None) -> str:
    return "–" if one is None or one.sees is None else "yes" if one.sees else "no"


def _print_curves(curves: Sequence[LayerCurve]) -> None:
    for cascading, title in ((True, "Drawn anew from the top down to"), (False, "Drawn anew alone")):
        own = [curve for curve in curves if curve.cascading is cascading]
        if own:
            click.secho(f"\n{title}: rank correlation with the scores before", bold=True)
            rows = (
                (curve.method, "".join(map(_bar_of, curve.correlations)), *map(_number, curve.correlations))
                for curve in own
            )
            _print_table(("method", "", *own[0].parts), rows)


def _bar_of(value: float | None) -> str:
    return " " if value is None else _BARS[round(max(0.0, value) * (len(_BARS) - 1))]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
