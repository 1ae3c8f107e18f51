"""What the two XMD examples share: base models, rows of a table, and intervals that are paired by seed and by text."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unhans
from unhans.fixes import mend
from unhans.model import TransformerClassifier
from unhans.types import Example, Feedback

BASE, PLAIN = "none", "plain training"
_DRAWS = 5000


@dataclass(frozen=True)
class Row:
    """A row of the table: which fix, with which options; no fix is the base model."""

    name: str
    fix: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


# the control: the same texts for as many steps, and no word is ever taken out
CONTROL = Row(PLAIN, "word_dropout", {"rate": 0.0})
AS_IN_XMD = {"insert": 0.0, "dropout": 0.0}  # our fix does more than the paper's; these turn it off


def arguments(doc: str | None, *, judged: int | None = None) -> argparse.ArgumentParser:
    """The options of both scripts."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--train", type=int, default=2000, help="texts that the base model is trained on")
    parser.add_argument("--test", type=int, default=400, help="texts of each set to measure on, drawn with seed 0")
    parser.add_argument("--epochs", type=int, default=1, help="passes of a fix")
    parser.add_argument("--batch", type=int, default=32, help="texts a step of a fix")
    parser.add_argument("--replay", type=float, default=0.3, help="part of the untouched texts that a fix trains on")
    parser.add_argument("--keep", type=Path, help="folder of base models: loaded if there, kept if not")
    parser.add_argument("--results", type=Path, help="JSON file, written after every row; a run goes on from it")
    parser.add_argument("--only-tables", action="store_true", help="print what --results holds, and run nothing")
    parser.add_argument("--threads", type=int, default=1)
    if judged is not None:
        parser.add_argument("--judged", type=int, default=judged, help="texts that simulated people look at")
    return parser


def drawn(examples: Sequence[Example], n: int) -> list[Example]:
    """So many labelled examples, always the same."""
    labelled = [example for example in examples if example.label is not None]
    return [labelled[int(k)] for k in np.random.default_rng(0).permutation(len(labelled))[:n]]


def part(train: Sequence[Example], n: int, seed: int) -> list[Example]:
    """The labelled texts that a seed trains on."""
    labelled = [example for example in train if example.label is not None]
    return [labelled[int(k)] for k in np.random.default_rng(seed).permutation(len(labelled))[:n]]


def base_model(
    encoder: str, train: Sequence[Example], seed: int, keep: Path | None, name: str
) -> TransformerClassifier:
    """The model to fix: trained for three epochs on these texts, or the one that was kept."""
    folder = keep / f"{name}-{seed}" if keep is not None else None
    if folder is not None and folder.exists():
        found = unhans.load(folder)
        assert isinstance(found, TransformerClassifier)
        return found
    untrained = unhans.load(encoder, labels=["0", "1"])
    made = unhans.fit(untrained, train, schedule=unhans.Schedule(epochs=3, learning_rate=5e-5, seed=seed))
    if folder is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made.save(folder)
    return made


class Results:
    """Predictions of every row on every set, seed by seed, in a file that survives an interruption."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.told: dict[str, Any] = {"gold": {}, "seeds": {}}
        if path is not None and path.exists():
            self.told = json.loads(path.read_text())

    def has(self, seed: int, row: str) -> bool:
        """Whether this row was measured already."""
        return row in self.told["seeds"].get(str(seed), {})

    def add(self, seed: int, row: str, measured: Mapping[str, Any]) -> None:
        """Remember a row, at once."""
        self.told["seeds"].setdefault(str(seed), {})[row] = measured
        if self.path is not None:
            self.path.write_text(json.dumps(self.told))

    def complete(self, rows: Sequence[str]) -> tuple[list[str], list[str]]:
        """Seeds with every row that the first seed has, and those rows."""
        seeds = self.told["seeds"]
        if not seeds:
            return [], []
        own = [row for row in rows if row in seeds[min(seeds)]]
        return [seed for seed in sorted(seeds) if all(row in seeds[seed] for row in own)], own

    def right(self, seeds: Sequence[str], row: str, name: str) -> np.ndarray:
        """Whether each text is predicted right: seeds × texts."""
        gold = np.array(list(self.told["gold"][name]))
        return np.array([np.array(list(self.told["seeds"][s][row]["predicted"][name])) == gold for s in seeds], float)


def training_of(options: argparse.Namespace) -> dict[str, Any]:
    """How every fix trains; the last epoch is kept."""
    own = {"epochs": options.epochs, "batch_size": options.batch, "replay": options.replay}
    return own | {"learning_rate": 2e-5, "patience": 0}


@dataclass(frozen=True)
class Trial:
    """One seed: a base model, the texts it was trained on, and what people said of it."""

    seed: int
    base: TransformerClassifier
    train: Sequence[Example]
    feedback: Sequence[Feedback]


def measure(
    results: Results,
    rows: Sequence[Row],
    trial: Trial,
    sets: Mapping[str, Sequence[Example]],
    options: argparse.Namespace,
    *,
    more: Callable[[TransformerClassifier], Mapping[str, float]] = lambda _: {},
) -> None:
    """Every row that is not there yet, for one seed."""
    results.told["gold"] = {name: "".join(str(e.label) for e in examples) for name, examples in sets.items()}
    seed, base = trial.seed, trial.base
    training = training_of(options)
    for row in rows:
        if results.has(seed, row.name):
            continue
        began = time.process_time()
        made, touched = base, 0
        if row.fix is not None:
            mended = mend(base, trial.train, trial.feedback, fix=row.fix, training=training, seed=seed, **row.options)
            made, touched = mended.classifier, mended.touched
        trained = time.process_time() - began
        predicted = {
            name: "".join(made.labels[n] for n in made.log_probs(examples).argmax(axis=1))
            for name, examples in sets.items()
        }
        told = {"predicted": predicted, "touched": touched, "seconds": round(trained, 1), "more": dict(more(made))}
        results.add(seed, row.name, told)
        print(f"# seed {seed}, {row.name}: {trained:.0f} s of training", flush=True)


def prepare(options: argparse.Namespace) -> Results:
    """Threads, and what an earlier run left."""
    torch.set_num_threads(options.threads)
    return Results(options.results)


def interval(difference: np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and texts of seeds × texts, with 95 % by drawing texts again."""
    texts = difference.mean(axis=0)
    drawn_again = np.random.default_rng(0).choice(texts, (_DRAWS, len(texts))).mean(axis=1)
    low, high = np.quantile(drawn_again, [0.025, 0.975])
    return float(texts.mean()), float(low), float(high)


def table(results: Results, rows: Sequence[Row], sets: Sequence[str]) -> str:
    """Accuracy of each row on each set, with the difference to no fix; a star: the control differs as well."""
    seeds, own = results.complete([row.name for row in rows])
    if not seeds:
        return "Nothing was measured."
    sizes = [len(results.told["gold"][name]) for name in sets]
    lines = [
        f"Seeds: {', '.join(seeds)}. Accuracy in %, mean over seeds; in brackets the difference to no fix with its "
        "95 % interval. Bold: the interval leaves out 0. Star: so does that of the difference to plain training.",
        "",
        "| fix | " + " | ".join(f"{name} ({n})" for name, n in zip(sets, sizes, strict=True)) + " |",
        "|---|" + "---|" * len(sets),
    ]
    for row in own:
        cells = [_cell(results, seeds, own, row, name) for name in sets]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(results: Results, seeds: Sequence[str], rows: Sequence[str], row: str, name: str) -> str:
    right = results.right(seeds, row, name)
    shown = f"{100 * right.mean():.1f}"
    if row == BASE:
        return shown
    mean, low, high = interval(right - results.right(seeds, BASE, name))
    mean, low, high = (round(100 * value, 1) + 0.0 for value in (mean, low, high))  # no negative 0
    shown = f"{shown} ({mean:+.1f}: {low:+.1f} to {high:+.1f})"
    if low > 0 or high < 0:
        shown = f"**{shown}**"
    if row != PLAIN and PLAIN in rows:
        _, low, high = interval(right - results.right(seeds, PLAIN, name))
        shown += " *" if low > 0 or high < 0 else ""
    return shown


def extras(results: Results, rows: Sequence[Row]) -> str:
    """Everything else that was measured of each row, as means over the seeds."""
    seeds, own = results.complete([row.name for row in rows])
    if not seeds:
        return ""
    names = list(results.told["seeds"][seeds[0]][own[0]]["more"])
    head = [*names, "texts touched", "CPU s of training"]
    lines = ["| fix | " + " | ".join(head) + " |", "|---|" + "---|" * len(head)]
    for row in own:
        found = [results.told["seeds"][seed][row] for seed in seeds]
        means = [f"{np.mean([one['more'][name] for one in found]):.3f}" for name in names]
        means += [f"{np.mean([one[name] for one in found]):.0f}" for name in ("touched", "seconds")]
        lines.append(f"| {row} | " + " | ".join(means) + " |")
    return "\n".join(lines)
