"""The command that runs HILDIF's ablation: hildif."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unhans.cli import _crew_options, _data_options, _plain, _print_json, _read, _spelled_as, _tell, main
from unhans.cli.bulk import crew_of
from unhans.cli.fixing import _json_option
from unhans.errors import BadData, BadOption, Unsupported

if TYPE_CHECKING:
    from unhans.language_model import LanguageModel
    from unhans.model import Classifier
    from unhans.registry import Entry
    from unhans.types import Example

_PATTERNS = ("lexical_overlap", "subsequence")
_file = click.Path(exists=True, path_type=Path)


@main.command()
@click.argument("model")
@click.argument("data", type=_file)
@click.option("--stress", type=_file, required=True, help="Labelled texts that put the shortcut to the test.")
@click.option(
    "--held-out", type=_file, help="Labelled texts like those trained on; by default the splits of DATA besides train."
)
@click.option(
    "--pattern",
    "picked",
    multiple=True,
    default=_PATTERNS,
    show_default=True,
    help="Of picked anchors: see `unhans methods heuristics`; repeatable.",
)
@click.option("--anchors", type=click.IntRange(1, 1000), default=5, show_default=True, help="In each run.")
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="Neighbours of each anchor.")
@click.option("--longest", type=click.IntRange(0), default=0, help="Words of a neighbour at most; 0: any number.")
@click.option("--method", default="projected_gradients", show_default=True, help="See `unhans methods influences`.")
@click.option("--copies-by", default="synonyms", show_default=True, help="See `unhans methods augmentations`.")
@click.option(
    "--language-model", metavar="FOLDER", help="Folder or id of a masked language model, for copies by masked_lm."
)
@click.option("--error-rate", type=click.FloatRange(0, 1), default=0.0, help="Of the simulated people's answers.")
@click.option("--only", multiple=True, metavar="NAME", help="A configuration, such as 'HS DA H'; repeatable.")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option(
    "--results", type=click.Path(path_type=Path, dir_okay=False), help="A file to keep runs in, and go on from."
)
@_crew_options
@_data_options
@_json_option
def hildif(  # noqa: PLR0917 - click passes them by name
    model: str,
    data: Path,
    stress: Path,
    held_out: Path | None,
    picked: tuple[str, ...],
    anchors: int,
    top: int,
    longest: int,
    method: str,
    copies_by: str,
    language_model: str | None,
    error_rate: float,
    only: tuple[str, ...],
    seeds: int,
    results: Path | None,
    place: str | None,
    workers: int | None,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Debug MODEL by the training examples behind its errors, in the eight ways of HILDIF's ablation and in ours.

    DATA is what it was trained on. People are simulated: they judge by the patterns that two texts share. With and
    without their scores (HS), copies (DA) and anchors with a pattern (H); each is measured on the stress set, label by
    label, and on half of the held-out texts. Anchors are from the other half.
    """
    from unhans.augmentations import augmentation
    from unhans.heuristics import heuristic
    from unhans.hildif import OURS, PAPER, SimulatedPerson, ablation, configurations, table
    from unhans.influences import influence
    from unhans.language_model import LanguageModel
    from unhans.loading import load
    from unhans.model import TransformerClassifier
    from unhans.present import progress_bars

    place, workers = crew_of(place, workers, None)
    names = tuple(heuristic[name].name for name in picked)
    shared: dict[str, Any] = {"anchors": anchors, "top": top, "longest": longest}
    shared |= {"method": influence[method].name, "augmentation": augmentation[copies_by].name}
    rows = configurations(names, replace(PAPER, **shared), replace(OURS, **shared))
    if unknown := set(only) - {row.name for row in rows}:
        known = ", ".join(row.name for row in rows)
        raise BadOption(f"There is no configuration {min(unknown)!r}. There is: {known}.")
    _tell("Loading the model …")
    classifier = load(model)
    classifier.require({"train"}, "HILDIF")
    assert isinstance(classifier, TransformerClassifier)  # `train` has made sure
    train, others = _sets(classifier, data, held_out, columns)
    words = LanguageModel.open(language_model) if language_model else None
    rows = [row for row in rows if not only or row.name in only]
    if words is not None and "language_model" not in augmentation[copies_by].asks:
        raise BadOption(f"{copies_by} makes copies without a language model: leave --language-model out.")
    plans = [row.plan for row in rows if row.plan is not None]
    if any(plan.augmentation for plan in plans):
        _check_copies(augmentation[copies_by], words, train)
    if any(plan.heuristic for plan in plans):
        _check_patterns([heuristic[name] for name in names], train)
    with progress_bars() as bars:
        runs = ablation(
            classifier,
            train,
            others[1::2],
            _labelled(classifier, stress, columns),
            others[::2],
            rows=rows,
            score=SimulatedPerson(error_rate=error_rate),
            seeds=range(seeds),
            results=results,
            language_model=words,
            bars=bars,
            on=place,
            workers=workers,
            told=lambda run: _tell(f"{run['configuration']}, seed {run['seed']}: {run['seconds']} s"),
        )
    if as_json:
        _print_json(runs)
    else:
        for line in table(runs, [row.name for row in rows]).splitlines():
            click.echo(_plain(line))


def _check_copies(copying: Entry, language_model: LanguageModel | None, train: Sequence[Example]) -> None:
    """Refuse now what would be refused when all training examples have been looked at."""
    from unhans.augmentations import available, check_usable

    if reason := available(copying):
        raise Unsupported(reason)
    if "language_model" in copying.asks and language_model is None:
        raise BadOption(f"{copying.name} needs a masked language model: name one with --language-model.")
    check_usable(copying, train, language_model=language_model)


def _check_patterns(picked: Sequence[Entry], train: Sequence[Example]) -> None:
    """Picked anchors come late: in the second of the eight ways, maybe hours from now."""
    if told := [entry.name for entry in picked if entry.facts.get("asked")]:
        raise BadOption(
            f"{told[0]} has to be told what to look for, which cannot be done here. Name another --pattern."
        )
    if all(entry.facts.get("on") == "pair" for entry in picked) and all(example.pair is None for example in train):
        raise BadOption(
            "These are single texts, and the patterns of picked anchors are about pairs: try --pattern negation."
        )


def _sets(
    classifier: Classifier, data: Path, held_out: Path | None, columns: dict[str, str | None]
) -> tuple[list[Example], list[Example]]:
    """What the model was trained on, and labelled texts that it was not."""
    everything = _labelled(classifier, data, columns)
    if held_out is not None:
        return everything, _labelled(classifier, held_out, columns)
    train = [example for example in everything if example.split == "train"]
    others = [example for example in everything if example.split not in (None, "train")]
    if not train or len(others) < 2:
        raise BadOption(
            f"{data} has no split train beside another one, so nothing is known of texts that the model was not "
            "trained on. Give some with --held-out."
        )
    return train, others


def _labelled(classifier: Classifier, path: Path, columns: dict[str, str | None]) -> list[Example]:
    found = [example for example in _spelled_as(classifier, _read(path, columns)) if example.label is not None]
    if not found:
        raise BadData(f"{path} has no example with a label that the model knows.")
    return found
