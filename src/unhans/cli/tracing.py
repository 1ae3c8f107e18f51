"""Commands about the training examples behind what a model says: trace, neighbours, augment, doubts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from unhans.cli import (
    _bar,
    _crew_options,
    _open,
    _plain,
    _predict,
    _print_json,
    _print_table,
    _read,
    _Source,
    _source_options,
    _spelled_as,
    _tell,
    main,
)
from unhans.cli.bulk import crew_of
from unhans.cli.fixing import _LOCAL, _json_option, _pairs, _project_option
from unhans.errors import BadData, BadOption, NotFound

if TYPE_CHECKING:
    from unhans.records import Records
    from unhans.records.trace_views import TraceViews
    from unhans.registry import Entry
    from unhans.shapes import AnchorPage, AnchorRow, AnchorView, CopyView, NeighbourView
    from unhans.types import Answer, Copy, Doubt, Example, Feedback, Influence, Prediction

_TRAIN = "train"
_SHOWN = 20
_COLUMNS = ("text_column", "pair_column", "label_column", "group_column", "labels")
_LONGEST = 300  # characters of a text that are shown
_SCALE = "1 very different · 2 · 3 · 4 · 5 very similar · s skip · q stop"
_author_option = click.option("--author", default=_LOCAL, show_default=True, help="Who says so.")
_seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
_set_option = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeatable."
)


def _anchor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which examples to trace."""
    for option in reversed(
        (
            click.option("--id", "ids", multiple=True, metavar="ID", help="An example to trace; repeatable."),
            click.option(
                "--anchors", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many to choose."
            ),
            click.option("--wrong/--any", default=True, show_default=True, help="Only where the model is wrong."),
            click.option("--split", help="Choose from this split; by default from all but train."),
            click.option("--heuristic", help="Choose among those with a pattern: see `unhans methods heuristics`."),
            click.option(
                "--set-heuristic", multiple=True, metavar="NAME=VALUE", help="An option of --heuristic; repeatable."
            ),
        )
    ):
        command = option(command)
    return command


@main.command()
@_source_options
@_anchor_options
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    help="Training examples, where --model or --data is given; columns are named as for --data.",
)
@click.option("--method", default="projected_gradients", show_default=True, help="See `unhans methods influences`.")
@_set_option
@click.option(
    "--of",
    type=click.Choice(["label", "prediction"]),
    default="label",
    show_default=True,
    help="What spoke for the given label, or for what the model says.",
)
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="Training examples of each.")
@_crew_options
@_seed_option
@_json_option
def trace(  # noqa: PLR0917 - click passes them by name
    ids: tuple[str, ...],
    anchors: int,
    wrong: bool,
    split: str | None,
    heuristic: str | None,
    set_heuristic: tuple[str, ...],
    train: Path | None,
    method: str,
    settings: tuple[str, ...],
    of: Literal["label", "prediction"],
    top: int,
    place: str | None,
    workers: int | None,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Find the training examples behind what a model says: those that helped it, those that worked against it.

    By default of five examples that are predicted wrong, drawn by the seed. A project keeps what is found.
    """
    from unhans.heuristics import heuristic as heuristics
    from unhans.influences import influence
    from unhans.types import to_json

    entry = influence[method]
    options = entry.settings(_pairs("--set", settings))
    pattern = heuristics[heuristic] if heuristic else None
    if set_heuristic and pattern is None:
        raise BadOption("--set-heuristic sets an option of --heuristic: name one.")
    chosen = pattern.settings(_pairs("--set-heuristic", set_heuristic)) if pattern else {}
    if (ids or source["texts"]) and (heuristic or split is not None):
        raise BadOption("--heuristic and --split choose examples to trace; those that --id or --text names are chosen.")
    columns = {name: source[name] for name in _COLUMNS}
    own = source | dict.fromkeys(_COLUMNS) if train is not None and source["data"] is None else source
    on = _open(**own)
    taught = _training(on, train, columns)
    picked = _anchors(on, taught, ids, split, pattern, {"n": anchors, "wrong": wrong, "options": chosen, "seed": seed})
    asked = {"method": entry.name, "of": of, "top": top, "seed": seed} | options
    asked |= dict(zip(("on", "workers"), crew_of(place, workers, on.project), strict=True))
    found = _traced(on, picked, taught, train is None, entry, asked)
    if as_json:
        for one in found:
            click.echo(to_json(one))
        return
    _print_traced(on, picked, taught, found)
    if on.own:
        click.echo(
            f"The project keeps them. Next: unhans neighbours {source['project']} --ask, or the screen Neighbours."
        )


@main.command()
@_project_option
@click.option("--anchor", metavar="ID", help="Show the training examples behind this one.")
@click.option("--ask", is_flag=True, help="Be asked how similar each two are, one after the other.")
@click.option(
    "--rate",
    nargs=3,
    type=(str, str, click.IntRange(1, 5)),
    metavar="ANCHOR TRAIN 1-5",
    help="Say how similar two are: the same kind of pattern, not the same topic.",
)
@_author_option
@_json_option
def neighbours(  # noqa: PLR0917 - click passes them by name
    project: Path,
    anchor: str | None,
    ask: bool,
    rate: tuple[str, str, int] | None,
    author: str,
    as_json: bool,
    database: str | None,
) -> None:
    """List the examples that were traced, and say how similar the training examples behind them are.

    Similar means that both show the same pattern, not that they are about the same things.
    """
    from unhans.records import Records
    from unhans.types import NeighbourRating

    if sum(map(bool, (anchor, ask, rate))) > 1:
        raise BadOption("Give one of --anchor, --ask and --rate.")
    with Records.open(project, database=database) as records:
        views = records.trace_views(author, sees_others=True)
        if rate is not None:
            return _told(_answer(records, NeighbourRating(*rate), author), as_json, f"unhans augment {project}")
        if anchor is not None:
            return _print_anchor(views.anchor(_place(records, anchor), None), as_json)
        if ask:
            return _ask_all(records, views, author, project)
        return _print_anchors(list(_pages(views)), as_json, project)


@main.command()
@_project_option
@click.option("--method", default="synonyms", show_default=True, help="See `unhans methods augmentations`.")
@_set_option
@click.option(
    "--copies-per-point",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Copies for each point of similarity.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only of this training example; repeatable.")
@click.option(
    "--check",
    type=click.Choice(["none", "model", "language_model"]),
    default="model",
    show_default=True,
    help="Who says whether the label still holds.",
)
@_seed_option
@click.option("--list", "lists", is_flag=True, help="Show the copies there are instead.")
@click.option("--delete", multiple=True, metavar="COPY", help="Take this copy away instead, by its id; repeatable.")
@_author_option
@_json_option
def augment(  # noqa: PLR0917 - click passes them by name
    project: Path,
    method: str,
    settings: tuple[str, ...],
    copies_per_point: int,
    ids: tuple[str, ...],
    check: Literal["none", "model", "language_model"],
    seed: int,
    lists: bool,
    delete: tuple[str, ...],
    author: str,
    as_json: bool,
    database: str | None,
) -> None:
    """Make copies of training examples that people found similar to an error, under their labels, to train on.

    The more similar, the more copies. The project keeps them; the fix similarity_augmentation trains on them.
    """
    from unhans.augmentations import augmentation, available
    from unhans.errors import Unsupported
    from unhans.project import Project
    from unhans.records import Records

    if lists or delete:
        with Records.open(project, database=database) as records:
            views = records.trace_views(author, sees_others=True)
            for id_ in delete:
                views.delete_copy(id_, author)
            return _print_copies(list(_stored_copies(views)), as_json, project)
    entry = augmentation[method]
    options: dict[str, Any] = entry.settings(_pairs("--set", settings))
    if reason := available(entry):
        raise Unsupported(reason)
    _tell("Loading the model …")
    with Project.open(project, database=database) as opened:
        chosen = _found(opened, ids) if ids else None
        with _bar("Making copies") as progress:
            made = opened.augment(
                chosen,
                method=entry.name,
                copies_per_point=copies_per_point,
                check=check,
                seed=seed,
                by=author,
                progress=progress,
                **options,
            )
        asked = opened.copies_wanted(None, copies_per_point)
        _print_made(made, opened, sum(asked.get(id_, 0) for id_ in ids or asked), as_json)
    return None


@main.command()
@_source_options
@click.option("--sign", "signs", multiple=True, metavar="NAME", help="See `unhans methods doubts`; repeatable.")
@click.option("--top", type=click.IntRange(1), default=_SHOWN, show_default=True, help="How many to show.")
@click.option("--relabel", nargs=2, multiple=True, metavar="ID LABEL", help="Say what its label is; repeatable.")
@click.option("--drop", multiple=True, metavar="ID", help="Say that no label fits: train without it; repeatable.")
@_author_option
@_seed_option
@_json_option
def doubts(  # noqa: PLR0917 - click passes them by name
    signs: tuple[str, ...],
    top: int,
    relabel: tuple[tuple[str, str], ...],
    drop: tuple[str, ...],
    author: str,
    seed: int,
    as_json: bool,
    **source: Any,
) -> None:
    """Rank training examples by how likely their label is wrong; say what it should be (the fix relabel learns it)."""
    from unhans.types import to_json

    if relabel or drop:
        return _relabel(source, relabel, drop, author, as_json)
    if source["texts"]:
        raise BadOption("A text typed in was not trained on. Give a project, or a --model with --data.")
    on = _open(**source)
    found = _doubted(on, signs, seed)
    if as_json:
        for one in found:
            click.echo(to_json(one))
        return None
    _print_doubts(found[:top], on)
    if len(found) > top:
        click.echo(f"These are the first {top:,} of {len(found):,} training examples (all of them with --json).")
    if on.own:
        click.echo(
            f"To correct one: --relabel ID LABEL, or --drop ID; then unhans fix {source['project']} --fix relabel."
        )
    return None


# -- finding


def _training(on: _Source, file: Path | None, columns: Mapping[str, str | None] | None = None) -> list[Example]:
    """What the model was trained on, as far as anybody knows."""
    if file is not None:
        if on.own:
            raise BadOption("A project knows its training examples; leave --train out.")
        found = list(_spelled_as(on.classifier, _read(file, dict(columns or dict.fromkeys(_COLUMNS)))))
        if all(example.label is None for example in found):
            raise BadData(
                f"{file} has no example with a label that the model knows, so nothing could have been learnt from it. "
                "Name its columns with --text-column and --label-column, or say what its labels mean with --labels."
            )
        return found
    if on.project is not None:
        return on.project.taught_examples()
    if on.typed:
        raise BadOption("Say what the model was trained on: give a project, or --train FILE.")
    return list(on.corpus.split(_TRAIN) if _TRAIN in on.corpus.splits else on.corpus)


def _anchors(  # noqa: PLR0917 - what the options of `_anchor_options` say
    on: _Source,
    taught: Sequence[Example],
    ids: tuple[str, ...],
    split: str | None,
    pattern: Entry | None,
    how: dict[str, Any],
) -> list[Example]:
    """The examples to be traced: those named or typed, or some that are chosen."""
    from unhans.heuristics import choose_anchors

    if on.typed:
        return list(on.corpus)
    if ids:
        known = {example.id: example for example in on.corpus}
        if strange := [id_ for id_ in ids if id_ not in known]:
            raise NotFound(f"There is no example {_plain(strange[0])!r} here.")
        return [known[id_] for id_ in dict.fromkeys(ids)]
    if split is not None and split not in on.corpus.splits:
        raise BadOption(f"There is no split {_plain(split)!r}. There is: {', '.join(on.corpus.splits) or 'none'}.")
    trained = {example.text_hash for example in taught}
    rest = [e for e in on.corpus if (e.split == split if split is not None else e.text_hash not in trained)]
    among = rest or list(on.corpus)
    predictions = {example.id: said for example, said in zip(among, _predict(on, among), strict=True)}
    return choose_anchors(among, predictions, heuristic=pattern.name if pattern else None, **how)


def _traced(  # noqa: PLR0917 - the middle of `trace`
    on: _Source, picked: list[Example], taught: list[Example], own: bool, entry: Entry, asked: dict[str, Any]
) -> Sequence[Influence]:
    from unhans.influences import check_usable
    from unhans.influences import trace as trace_

    check_usable(on.classifier, entry)
    with _bar("Looking at training examples") as progress:
        if on.project is not None and on.own:
            return on.project.trace(picked, by=_LOCAL, progress=progress, **asked)
        # texts of another file may have the ids of training examples, and would be taken for them
        known = {example.text_hash: example.id for example in taught}
        apart = [replace(e, id=known.get(e.text_hash, f"text {n} of {len(taught)}")) for n, e in enumerate(picked)]
        if on.project is not None and own and on.classifier is on.project.classifier:
            found = on.project.trace(apart, leads=False, progress=progress, **asked)
        else:
            found = trace_(on.classifier, apart, taught, progress=progress, **asked)
        return [replace(one, example=example.id) for one, example in zip(found, picked, strict=True)]


def _doubted(on: _Source, signs: tuple[str, ...], seed: int) -> list[Doubt]:
    from unhans.doubts import doubt
    from unhans.doubts import doubts as doubts_

    named = [doubt[name].name for name in signs] or None
    with _bar("Looking at labels") as progress:
        if on.project is not None and on.own:
            return list(on.project.doubts(named, seed=seed, progress=progress))
        return list(doubts_(on.classifier, _training(on, None), signs=named, seed=seed, progress=progress))


# -- answering


def _answer(records: Records, says: Answer, author: str) -> Feedback:
    """An answer, stored."""
    from unhans.records.judging import new_id
    from unhans.records.revising import now
    from unhans.types import Feedback

    text_hash = records.check(says, records.current.id)
    entry = Feedback(new_id(), says, author, now(), records.current.id, text_hash)
    records.log.add(entry, key=entry.id)
    return entry


def _relabel(
    source: Mapping[str, Any],
    relabel: tuple[tuple[str, str], ...],
    drop: tuple[str, ...],
    author: str,
    as_json: bool,
) -> None:
    from unhans.records import Records
    from unhans.types import Relabel, to_json

    if source["project"] is None:
        raise BadOption("New labels are kept by a project: give one.")
    said = [Relabel(id_, label) for id_, label in relabel] + [Relabel(id_, None) for id_ in drop]
    if twice := next((id_ for id_, n in Counter(one.example for one in said).items() if n > 1), None):
        raise BadOption(f"Two things are said of {_plain(twice)!r}: say one. Nothing was stored.")
    with Records.open(source["project"], database=source["database"]) as records:
        for one in said:
            records.check(one, records.current.id)  # all of them, or none
        kept = [_answer(records, one, author) for one in said]
        known = records.table.find([one.example for one in said])
        trained = any(records.parts.trains(example) for _, example in known.values())
    if as_json:
        return _print_json([json.loads(to_json(entry)) for entry in kept])
    if not trained:
        return click.echo(f"{len(kept)} stored. No training example is among them, so no fix learns from them.")
    return click.echo(f"{len(kept)} stored. Next: unhans fix {source['project']} --fix relabel")


def _ask_all(records: Records, views: TraceViews, author: str, project: Path) -> None:
    """One pair after the other that this person has not rated."""
    from unhans.types import NeighbourRating

    click.echo("Do both show the same kind of pattern? The same topic does not count.")
    rated = 0
    for row in _rows(views, waiting=True):
        view = views.anchor(row.place, None)
        for one in view.helpful:
            if one.mine is not None:
                continue
            _print_pair(view, one)
            said = click.prompt(_SCALE, type=click.Choice([*"12345", "s", "q"]), show_choices=False)
            if said == "q":
                return click.echo(f"{rated} rated. Next: unhans augment {project}")
            if said != "s":
                _answer(records, NeighbourRating(view.example.id, one.example.id, int(said)), author)
                rated += 1
    return click.echo(f"{rated} rated; no more wait for you. Next: unhans augment {project}")


def _place(records: Records, id_: str) -> int:
    found = records.table.find([id_]).get(id_)
    if found is None:
        raise NotFound(f"There is no example {_plain(id_)!r} in this project.")
    return found[0]


def _found(records: Records, ids: tuple[str, ...]) -> list[Example]:
    return [records.table.at(_place(records, id_)) for id_ in ids]


def _pages(views: TraceViews, waiting: bool | None = None) -> Iterator[AnchorPage]:
    from unhans.shapes import AnchorQuery

    cursor: str | None = None
    while True:
        page = views.anchors(AnchorQuery(waiting=waiting, cursor=cursor, limit=200))
        yield page
        if (cursor := page.next) is None:
            return


def _rows(views: TraceViews, waiting: bool | None = None) -> list[AnchorRow]:
    """All of them at once: rating changes which ones wait."""
    return [row for page in _pages(views, waiting) for row in page.items]


def _stored_copies(views: TraceViews) -> Iterator[CopyView]:
    from unhans.shapes import CopyQuery

    cursor: str | None = None
    while True:
        page = views.copies(CopyQuery(cursor=cursor, limit=100))
        yield from page.items
        if (cursor := page.next) is None:
            return


# -- printing


def _both(example: Example | Copy) -> str:
    """A text with both sides of a pair, cut where it is very long."""
    whole = example.text if example.pair is None else f"{example.text} ‖ {example.pair}"
    return whole if len(whole) <= _LONGEST else whole[: _LONGEST - 1] + "…"


def _said(label: str | None, prediction: Prediction | None) -> str:
    given = f"given {label}" if label is not None else "no label given"
    if prediction is None:
        return given
    wrong = " (wrong)" if label not in (None, prediction.label) else ""
    return f"{given}, predicted {prediction.label} ({prediction.confidence:.1%}){wrong}"


def _told(entry: Feedback, as_json: bool, following: str) -> None:
    from unhans.types import to_json

    if as_json:
        return _print_json(json.loads(to_json(entry)))
    return click.echo(f"Rated. Next: {following}")


def _print_traced(
    on: _Source, picked: Sequence[Example], taught: Sequence[Example], found: Sequence[Influence]
) -> None:
    by_id = {example.id: example for example in taught}
    shown = {n.train: by_id[n.train] for one in found for n in (*one.helpful, *one.harmful)}
    said = dict(zip(shown, _predict(on, list(shown.values())), strict=True)) if shown else {}
    for example, prediction, one in zip(picked, _predict(on, list(picked)), found, strict=True):
        click.secho(_plain(f"{example.id}: {_said(example.label, prediction)}"), bold=True)
        click.echo(_plain(_both(example)))
        for title, some in ((f"Helped {one.label}:", one.helpful), (f"Worked against {one.label}:", one.harmful)):
            if some:
                click.echo(_plain(title))
                _print_neighbours((rank, n, shown[n.train], said[n.train]) for rank, n in enumerate(some, 1))
        if not one.helpful and not one.harmful:
            click.echo("No other training example helped, and none worked against it.")
        _print_notes(one.notes)
        click.echo()
    click.echo(f"{len(found)} traced among {len(taught):,} training examples, by {found[0].recipe}.")


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"- {_plain(note)}")


def _print_neighbours(some: Any) -> None:
    rows = (
        (
            str(rank),
            f"{n.score:+.3g}",
            example.id,
            example.label or "–",
            f"{prediction.label} {prediction.confidence:.0%}" if prediction else "–",
            _both(example),
        )
        for rank, n, example, prediction in some
    )
    _print_table(("rank", "score", "example", "label", "predicted", "text"), rows)


def _print_anchor(view: AnchorView, as_json: bool) -> None:
    from pydantic import TypeAdapter

    from unhans.shapes import AnchorView
    from unhans.types import Neighbour

    if as_json:
        return _print_json(TypeAdapter(AnchorView).dump_python(view, mode="json"))
    click.secho(_plain(f"{view.example.id}: {_said(view.example.label, view.prediction)}"), bold=True)
    click.echo(_plain(_both(view.example)))
    if view.stale:
        click.echo(_plain(view.stale))
    for title, some in ((f"Helped {view.label}:", view.helpful), (f"Worked against {view.label}:", view.harmful)):
        if some:
            click.echo(_plain(title))
            _print_neighbours((n.rank, Neighbour(n.example.id, n.score), n.example, n.prediction) for n in some)
    return _print_notes(view.notes)


def _print_pair(view: AnchorView, one: NeighbourView) -> None:
    click.echo()
    click.secho(_plain(f"{view.example.id}: {_said(view.example.label, view.prediction)}"), bold=True)
    click.echo(_plain(_both(view.example)))
    click.secho(_plain(f"  {one.rank}. {one.example.id}: {_said(one.example.label, one.prediction)}"), bold=True)
    click.echo(f"  {_plain(_both(one.example))}")
    if one.heuristics:
        click.echo(f"  Patterns of both: {_plain(', '.join(one.heuristics))}")


def _print_anchors(pages: list[AnchorPage], as_json: bool, project: Path) -> None:
    from dataclasses import asdict

    rows = [row for page in pages for row in page.items]
    if as_json:
        return _print_json([asdict(row) for row in rows])
    if not rows:
        return click.echo(f"Nothing has been traced yet. Next: unhans trace {project}")
    _print_table(
        ("example", "label", "predicted", "rated", "patterns", "text"),
        (
            (
                row.id,
                row.label or "–",
                row.predicted or "–",
                f"{row.rated} of {row.neighbours}",
                ", ".join(row.heuristics) or "–",
                row.snippet,
            )
            for row in rows
        ),
    )
    click.echo(f"{pages[0].rated:,} of {pages[0].pairs:,} pairs rated. Next: unhans neighbours {project} --ask")
    return None


def _print_made(made: Sequence[Copy], records: Records, asked: int, as_json: bool) -> None:
    from unhans.types import to_json

    if as_json:
        for one in made:
            click.echo(to_json(one))
        return
    sources = records.table.find(list(dict.fromkeys(one.source for one in made)))
    for id_, (_, example) in sources.items():
        own = [one for one in made if one.source == id_]
        click.secho(_plain(f"{id_} ({example.label}): {len(own)} copies"), bold=True)
        click.echo(_plain(_both(example)))
        for one in own[:3]:
            click.echo(_plain(f"  {one.id}  {_kept(one)}{_both(one)}"))
        if len(own) > 3:
            click.echo(f"  … and {len(own) - 3:,} more")
    doubtful = sum(one.label_kept is not None and one.label_kept < 0.5 for one in made)
    click.echo(f"{len(made):,} copies of {len(sources):,} training examples; {doubtful:,} may have lost their label.")
    if len(made) < asked:
        click.echo(
            f"{asked:,} were asked for. The rest could not be made, were deleted before, or are too much like the "
            "text, another copy or a text that is tested on."
        )
    click.echo(
        f"Next: unhans augment {records.folder} --list, or unhans fix {records.folder} --fix similarity_augmentation"
    )


def _print_copies(found: Sequence[CopyView], as_json: bool, project: Path) -> None:
    from pydantic import TypeAdapter

    from unhans.shapes import CopyView

    if as_json:
        return _print_json(TypeAdapter(list[CopyView]).dump_python(list(found), mode="json"))
    if not found:
        return click.echo(f"There are no copies. Rate neighbours first, then: unhans augment {project}")
    for one in found:
        told = " (edited)" if one.edited else ""
        click.echo(
            _plain(f"{one.id}  of {one.original.id} ({one.copy.label}){told}: {_kept(one.copy)}{_both(one.copy)}")
        )
        if one.stale:
            click.echo(f"  {_plain(one.stale)}")
    return click.echo(f"{len(found):,} copies. To take one away: unhans augment {project} --delete ID")


def _kept(one: Copy) -> str:
    if one.label_kept is None:
        return ""
    # a language model knows words, and nothing of labels
    says = "fits in" if ("check", "language_model") in one.recipe.options else "label holds"
    return f"[{says} {one.label_kept:.0%}] "


def _print_doubts(found: Sequence[Doubt], on: _Source) -> None:
    by_id = {example.id: example for example in on.corpus}
    _print_table(
        ("doubt", "example", "label", "suggested", "text"),
        (
            (
                f"{one.score:.2f}",
                one.example,  # whole, for it is what --relabel and --drop are told
                one.label,
                one.suggested,
                _both(by_id[one.example]),
            )
            for one in found
        ),
    )
