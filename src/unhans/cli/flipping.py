"""Commands about what it takes to change a model's mind: rationale, flips, rate, risk."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import (
    _bar,
    _cache,
    _crew_options,
    _explain,
    _how,
    _open,
    _part_option,
    _plain,
    _print_json,
    _Source,
    _source_options,
    bulk,
    main,
)
from unhans.cli.fixing import _LOCAL, _json_option, _pairs, _project_option
from unhans.errors import BadOption

if TYPE_CHECKING:
    from unhans.language_model import LanguageModel
    from unhans.project import Project
    from unhans.registry import Entry
    from unhans.types import Counterfactual, Example, Rationale

_rating = click.IntRange(1, 5)


def _chosen_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how words are chosen from an explanation."""
    for option in reversed(
        (
            click.option(
                "--explained-by", default="leave_one_out", show_default=True, help="See `unhans methods attributions`."
            ),
            click.option("--choose", default="top_share", show_default=True, help="See `unhans methods rationales`."),
            click.option(
                "--set-choice", multiple=True, metavar="NAME=VALUE", help="An option of --choose; repeatable."
            ),
        )
    ):
        command = option(command)
    return command


@main.command()
@_source_options
@_chosen_options
@click.option("--target", metavar="LABEL", help="The label to explain; by default the predicted one.")
@click.option("--examples", "n", type=click.IntRange(1), default=10, show_default=True, help="The first so many.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@_json_option
def rationale(  # noqa: PLR0917 - click passes them by name
    explained_by: str,
    choose: str,
    set_choice: tuple[str, ...],
    target: str | None,
    n: int,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Show which words a model may be said to use, between [ and ]."""
    from unhans.types import to_json

    on = _open(**source)
    examples = list(on.corpus[:n])
    found = _rationales(on, examples, explained_by, choose, set_choice, {"target": target, "seed": seed})
    for example, one in zip(examples, found, strict=True):
        if as_json:
            click.echo(to_json(one))
            continue
        words = [f"[{word}]" if n in one.chosen else word for n, word in enumerate(one.words)]
        click.secho(_plain(f"{example.id}: {one.label}"), bold=True)
        click.echo(_plain(" ".join(words)) + "\n")
    if not as_json and len(on.corpus) > n:
        click.echo(f"These are the first {n:,} of {len(on.corpus):,} examples (more with --examples N).")


@main.command()
@_source_options
@click.option("--method", default="hotflip", show_default=True, help="See `unhans methods counterfactuals`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable.")
@click.option(
    "--search",
    "searching",
    multiple=True,
    metavar="NAME=VALUE",
    help="As max_edits=3 or protected='he she'; repeatable.",
)
@click.option("--target", metavar="LABEL", help="The label to reach; by default any other than the predicted one.")
@click.option("--rationale", "only_rationale", is_flag=True, help="Change only words the model may be said to use.")
@_chosen_options
@click.option("--keep", type=click.IntRange(1, 20), default=1, show_default=True, help="Flips of each text at most.")
@click.option("--language-model", metavar="FOLDER", help="A masked language model; a project makes its own.")
@click.option("--examples", "n", type=click.IntRange(1), help="The first so many: 10 by default, all with --out.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for Parquet files, for any number of examples; the same command again goes on where it stopped.",
)
@_part_option
@_crew_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@_json_option
def flips(  # noqa: PLR0917 - click passes them by name
    method: str,
    settings: tuple[str, ...],
    searching: tuple[str, ...],
    target: str | None,
    only_rationale: bool,
    explained_by: str,
    choose: str,
    set_choice: tuple[str, ...],
    keep: int,
    language_model: str | None,
    n: int | None,
    out: Path | None,
    part: int | None,
    place: str | None,
    workers: int | None,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Find the fewest words that have to change for the model to change its mind. A project keeps what is found."""
    from unhans.counterfactuals import counterfactual, search_settings
    from unhans.types import to_json

    entry, search = counterfactual[method], search_settings(_pairs("--search", searching))
    options = entry.settings(_pairs("--set", settings))
    asked: dict[str, Any] = {"method": entry.name, "target": target, "keep": keep, "search": search, "seed": seed}
    bulky = bulk.Asked(out, n, part, place, workers, as_json)
    if out is not None:
        if only_rationale:
            raise BadOption("--rationale is for what is shown here; leave it out, or leave --out out.")
        return bulk.flips(bulky, entry, language_model, asked | options, source)
    bulky.refuse()
    on = _open(**source)
    examples = list(on.corpus[: n or 10])
    if only_rationale:
        chosen = _rationales(on, examples, explained_by, choose, set_choice, {"seed": seed})
        asked["editable"] = {one.example: one.chosen for one in chosen}
    found = _flips(on, examples, entry, _language_model(on, entry, search, language_model), asked | options)
    if as_json:
        for one in found:
            click.echo(to_json(one))
        return None
    for one in found:
        _print_flip(one)
    flipped = len({one.example for one in found if one.flips and one.edits})
    click.echo(f"{flipped} of {len(examples)} texts flip within {search['max_edits']} changes, by {entry.name}.")
    if on.own:
        click.echo("The project keeps them: judge them in the workbench, or with unhans rate.")
    return None


@main.command()
@_project_option
@click.argument("flip")
@click.option("--plausible", type=_rating, help="1 to 5: could a person have written it? Left out: does not apply.")
@click.option("--meaningful", type=_rating, help="1 to 5: does it make sense?")
@click.option("--agrees", type=_rating, help="1 to 5: do you agree with what the model says of it?")
@click.option("--label", help="What you would call the rewritten text.")
@click.option("--author", default=_LOCAL, show_default=True, help="Who says so.")
@_json_option
def rate(  # noqa: PLR0917 - click passes them by name
    project: Path,
    flip: str,
    plausible: int | None,
    meaningful: int | None,
    agrees: int | None,
    label: str | None,
    author: str,
    as_json: bool,
    database: str | None,
) -> None:
    """Rate a flip, by its id: what the risk of a model is made of."""
    from unhans.records import Records
    from unhans.records.judging import check_answer, new_id
    from unhans.records.revising import now
    from unhans.types import Feedback, FlipRating, to_json

    if all(given is None for given in (plausible, meaningful, agrees, label)):
        raise BadOption("Rate something: --plausible, --meaningful, --agrees (1 to 5), or say what --label it has.")
    with Records.open(project, database=database) as records:
        stored = records.flip_table.one(flip)
        says = FlipRating(flip, plausible, meaningful, agrees, label)
        check_answer(says, None, records.labels, flip=True)
        entry = Feedback(new_id(), says, author, now(), stored.flip.before.revision, stored.text_hash)
        records.log.add_many([(entry, entry.id)])
    if as_json:
        return _print_json(json.loads(to_json(entry)))
    return click.echo(f"Rated. Next: unhans risk {project}")


@main.command()
@_project_option
@click.option("--revision", metavar="NAME", help="By default the model in use.")
@click.option("--width", type=click.FloatRange(0.01, 4), default=0.5, show_default=True, help="Of the interval.")
@_json_option
def risk(project: Path, revision: str | None, width: float, as_json: bool, database: str | None) -> None:
    """Tell how far people disagree with what the model says of its flips, and how many more ratings it takes."""
    from unhans.records import Records
    from unhans.types import to_json

    with Records.open(project, database=database) as records:
        found = records.risk(revision, width=width)
    if as_json:
        return _print_json(json.loads(to_json(found)))
    first, *rest = repr(found).splitlines()
    click.secho(_plain(first), bold=True)
    for line in rest:
        click.echo(f"  {_plain(line)}")
    return None


def _rationales(  # noqa: PLR0917 - what the options of `_chosen_options` say
    on: _Source, examples: list[Example], method: str, choose: str, settings: tuple[str, ...], asked: Mapping[str, Any]
) -> list[Rationale]:
    from unhans.rationales import rationale as family
    from unhans.rationales import rationale_of

    entry = family[choose]
    options = entry.settings(_pairs("--set-choice", settings))
    made = _explain(on, examples, _how(method, (), None, int(asked["seed"])) | dict(asked) | {"units": "word"})
    return [rationale_of(one, text=e, method=entry.name, **options) for one, e in zip(made, examples, strict=True)]


def _language_model(on: _Source, entry: Entry, search: Mapping[str, Any], folder: str | None) -> LanguageModel | None:
    """The one given; or the project's own, if the generator or a rule needs one."""
    if folder is not None and on.own:
        raise BadOption("A project has a language model of its own, which its flips are kept with; leave it out.")
    return opened_language_model(on.project, entry, search, folder)


def opened_language_model(
    project: Project | None, entry: Entry, search: Mapping[str, Any], folder: str | None
) -> LanguageModel | None:
    """The same, where nothing is kept with it."""
    from unhans.language_model import LanguageModel

    if folder is not None:
        return LanguageModel.open(folder)
    if "language_model" not in entry.asks and not search["fluency"]:
        return None
    if project is None:
        if entry.facts.get("language_model_optional") and not search["fluency"]:
            return None
        raise BadOption(f"{entry.name} needs --language-model FOLDER; a project makes one of its own texts.")
    with _bar("Preparing a language model") as progress:
        return project.language_model(progress=progress)


def _flips(
    on: _Source, examples: list[Example], entry: Entry, language_model: LanguageModel | None, asked: dict[str, Any]
) -> Collection[Counterfactual]:
    from unhans.counterfactuals import check_usable, find_flips

    check_usable(on.classifier, entry, language_model=True)
    with _bar("Looking for flips") as progress:
        if on.project is not None and on.own:
            return on.project.find_flips(examples, by=_LOCAL, progress=progress, **asked)
        return find_flips(
            on.classifier, examples, language_model=language_model, progress=progress, cache=_cache(on), **asked
        )


def _print_flip(one: Counterfactual) -> None:
    before, after = one.before, one.after
    went = f"{before.label} ({before.confidence:.1%}) → {after.label} ({after.confidence:.1%})"
    told = went if one.flips else f"{went}: no flip; this is the best attempt"
    click.secho(_plain(f"{one.example}: {told}"), bold=True)
    click.echo(_plain(_changes(one)))
    click.echo(_plain(one.text if one.pair is None else f"{one.text} | {one.pair}"))
    click.echo(_plain(f"id {one.id}") + "\n")


def _changes(one: Counterfactual) -> str:
    def told(edits: Iterable[Any]) -> str:
        return ", ".join(f"{edit.old} → {edit.new or '(gone)'}" for edit in edits)

    return told(one.edits) or "nothing was changed"
