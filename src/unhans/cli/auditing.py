"""The command that looks for what can be said against a model: audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import _cache, _crew_options, _names, _open, _plain, _Source, _source_options, _tell, main
from unhans.cli.bulk import crew_of
from unhans.cli.tracing import _COLUMNS, _training
from unhans.errors import BadOption

if TYPE_CHECKING:
    from unhans.types import Audit, Example

_TRAIN = "train"
_LEVELS = ("high", "medium", "low")
_FAILED = 4  # the exit code of expectations that do not hold


@main.command()
@_source_options
@click.option("--train", type=click.Path(path_type=Path), help="Training examples, where --model or --data is given.")
@click.option("--checks", help="Checks, with commas; by default all that can run. See `unhans methods checks`.")
@click.option(
    "--method", help="Attribution method whose explanations say which words to try; by default leave_one_out."
)
@click.option("--limit", type=click.IntRange(1), default=5000, show_default=True, help="Examples to look at, at most.")
@_crew_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page that opens offline.")
@click.option(
    "--fail-on", type=click.Choice(_LEVELS), help="End with exit code 4 if a finding is so severe, or severer."
)
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON.")
def audit(  # noqa: PLR0917 - click passes them by name
    train: Path | None,
    checks: str | None,
    method: str | None,
    limit: int,
    place: str | None,
    workers: int | None,
    seed: int,
    html: Path | None,
    fail_on: str | None,
    as_json: bool,
    **source: Any,
) -> None:
    """Look for what can be said against a model on its own data: the severest findings first.

    Best on examples that the model was not trained on: a split called train is taken for its training examples. A
    project keeps the audit for the screen Bugs.
    """
    from unhans.attributions import attribution
    from unhans.audit import check
    from unhans.data.writing import new_file
    from unhans.reporting import audit_page, audit_text
    from unhans.types import to_json

    if checks is not None and not _names(checks):
        raise BadOption(f"--checks names no check. Leave it out for all, or choose from: {', '.join(check.names)}.")
    asked = {"checks": None if checks is None else [check[name].name for name in _names(checks)]}
    how: dict[str, Any] = {"method": None if method is None else attribution[method].name, "limit": limit, "seed": seed}
    if source["texts"] or not (source["project"] or (source["model"] and source["data"])):
        raise BadOption("An audit takes more than single texts. Give a project, or a --model with --data.")
    if html is not None:
        _make_room(html)
    on = _open(**source)
    how |= dict(zip(("on", "workers"), crew_of(place, workers, on.project), strict=True))
    examples, taught = _sets(on, train, {name: source[name] for name in _COLUMNS})
    found = _audited(on, examples, taught, asked | how)
    if html is not None:
        with new_file(html) as file:
            file.write(audit_page(found, examples=_shown(chain(examples, taught), found)).encode(errors="replace"))
        click.echo(f"Written to {html}.", err=True)
    click.echo(to_json(found) if as_json else audit_text(found), nl=as_json)
    if fail_on is not None and found.worst in _LEVELS[: _LEVELS.index(fail_on) + 1]:
        click.echo(f"There is a finding of severity {fail_on} or above.", err=True)
        click.get_current_context().exit(_FAILED)


def _make_room(page: Path) -> None:
    """The folder of a page, before an audit that may take minutes is lost for want of it."""
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption(
            f"No folder can be made for {page}: {error.strerror}. Nothing was audited; choose another with --html."
        ) from error


def _sets(on: _Source, train: Path | None, columns: dict[str, str | None]) -> tuple[Iterable[Example], list[Example]]:
    """What is audited, and what the model was trained on where that is told apart; a project tells that itself."""
    if on.project is not None and on.own:
        if train is not None:
            raise BadOption("A project knows its training examples; leave --train out.")
        return on.corpus, []
    taught = _training(on, train, columns) if train or on.project or _TRAIN in on.corpus.splits else []
    known = {example.text_hash for example in taught} if on.project else set()
    rest = [e for e in on.corpus if train or (e.split != _TRAIN and e.text_hash not in known)] or list(on.corpus)
    return rest, _told_apart(taught, rest)


def _told_apart(taught: Sequence[Example], others: Iterable[Example]) -> list[Example]:
    """Training examples under ids that none of the others has, as in a project: findings name examples by their ids."""
    known = {example.id: example for example in others}
    if all(known.get(example.id, example) == example for example in taught):
        return list(taught)
    return [replace(example, id=f"{_TRAIN}:{example.id}") for example in taught]


def _audited(on: _Source, examples: Iterable[Example], taught: Sequence[Example], asked: dict[str, Any]) -> Audit:
    from unhans.audit import audit as audit_
    from unhans.present import progress_bars

    with progress_bars() as bar:
        how = asked | {"progress": bar("Auditing"), "on_part": _teller()}
        if on.project is not None and on.own:
            return on.project.audit(**how)
        return audit_(on.classifier, examples, train=taught, cache=_cache(on), **how)


def _teller() -> Callable[[Audit], None]:
    """Tells each new finding as it comes, on standard error."""
    seen: set[str] = set()

    def tell(part: Audit) -> None:
        for one in part.findings:
            if one.id not in seen:
                seen.add(one.id)
                _tell(_plain(f"{one.severity}: {one.title}"))

    return tell


def _shown(examples: Iterable[Example], found: Audit) -> dict[str, Example]:
    """The examples that findings name."""
    wanted = {id_ for one in found.findings for id_ in one.examples}
    return {example.id: example for example in examples if example.id in wanted}
