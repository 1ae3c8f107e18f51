"""Linear datamodelling scores of the influence methods on SST, with what each costs.

    python examples/influence_quality.py DATA ENCODER --results FOLDER [--models 48] [--texts 100] [--seeds 0]

DATA is a folder with the set `sst`, ENCODER the folder or id of a Hugging Face model. One model is trained on 300
short sentences, and one on each of `--models` random halves of them, from the same start with the same settings. A
method has to tell from the one model what the others say: the score is the rank correlation over the halves between
the sum of the influence of a half's sentences and the margin of a test sentence, in the mean over test sentences.
Intervals (95 %) come from drawing test sentences and halves again, differences from the same draws for both.

A half that happens to have more sentences of a label makes a model that says it more readily, so the score is also
given with the counts of labels held, and `label alone` (1 for a training sentence of the same label, -1 for another)
tells what is to be had from labels.

Everything is kept in FOLDER, and a run goes on from there; `--stages` and `--methods` run a part of it. Every seed is
another experiment with other sentences; the table is their mean. The default method's settings were chosen on seed 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

import unhans
from unhans.influences import DEFAULT, influence, prepare
from unhans.metrics.influence import Judged, Retrained, halves, label_counts, label_margins, linear_datamodelling
from unhans.model import TransformerClassifier
from unhans.training import Epoch, Schedule, Watch, accuracy
from unhans.types import Example

LABELS = ("negative", "positive")
TRAIN, WORDS = 300, (4, 14)  # sentences, and their least and most words: short ones, to train dozens of models
SCHEDULE = Schedule(epochs=4, learning_rate=1e-4, batch_size=16)


@dataclass(frozen=True)
class Row:
    """A row of the table: a method with its options."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    texts: int | None = None  # the first so many test sentences only, for methods that take long for each


LABEL = "label alone"
ROWS = (
    Row(DEFAULT, DEFAULT),
    Row(f"{DEFAULT}, products", DEFAULT, {"relative": False}),
    *(
        Row(name, name, texts=20 if name == "lissa" else None)
        for name in ("embedding_neighbours", "gradient_dot", "tracin", "ekfac", "lissa", "exact_head", "representer")
    ),
)


def main() -> None:
    """Train, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--results", type=Path, required=True, help="folder for models, answers and scores")
    parser.add_argument("--models", type=int, default=48, help="halves to train on")
    parser.add_argument("--texts", type=int, default=100, help="test sentences")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--methods", help="only these, separated by commas, with all their rows")
    parser.add_argument("--stages", default="train,score,table", help="some of them only")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    studies = [Study(options, seed) for seed in options.seeds]
    stages = options.stages.split(",")
    for study in studies:
        if "train" in stages:
            study.train_all()
        if "score" in stages:
            study.score_all(None if options.methods is None else options.methods.split(","))
    if "table" in stages:
        print(table(studies))


class Study:
    """The sentences, the models, and what was found, in a folder."""

    def __init__(self, options: argparse.Namespace, seed: int) -> None:
        self.folder = options.results / f"seed-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.encoder, self.seed, self.n_models = options.encoder, seed, options.models
        sst = unhans.read(options.data / "sst", label="label2")
        self.train = short(sst.split("train"), TRAIN, seed)
        self.texts = short(sst.split("test"), options.texts, seed)
        self.parts = halves(TRAIN, 1000, seed=seed)[: self.n_models]  # more models later: the same ones first

    def train_all(self) -> None:
        """The model under test with its checkpoints, then one for each half; those that are there already stay."""
        untrained = self.untrained()
        if not (self.folder / "model.json").exists():
            states = self.folder / "states"
            trained = trained_by_epochs(untrained, self.train, states)
            for epochs, model in enumerate(trained, start=1):
                model.save(self.folder / f"epoch-{epochs}")
            shutil.rmtree(states)
            (self.folder / "model.json").write_text(json.dumps({"accuracy": accuracy(self.model(), self.texts)}))
        for number, part in enumerate(self.parts):
            path = self.folder / f"half-{number}.npy"
            if path.exists():
                continue
            chosen = [e for e, there in zip(self.train, part, strict=True) if there]
            margins = label_margins(unhans.fit(untrained, chosen, schedule=SCHEDULE), self.texts)
            np.save(path, margins)
            print(f"# half {number + 1} of {self.n_models}: right {np.mean(margins > 0):.0%}", flush=True)

    def untrained(self) -> TransformerClassifier:
        """The start of all trainings, with one and the same untrained head."""
        start = self.folder / "untrained"
        if not start.exists():
            torch.manual_seed(self.seed)
            unhans.load(self.encoder, labels=LABELS).save(start)  # type: ignore[attr-defined]
        found = unhans.load(start, labels=LABELS)
        assert isinstance(found, TransformerClassifier)
        return found

    def model(self, epochs: int = SCHEDULE.epochs) -> TransformerClassifier:
        """The model under test, or an earlier state of it."""
        found = unhans.load(self.folder / f"epoch-{epochs}", labels=LABELS)
        assert isinstance(found, TransformerClassifier)
        return found

    def score_all(self, wanted: Sequence[str] | None) -> None:
        """The influence scores of each row, and the CPU seconds they took."""
        for row in ROWS:
            path = self.folder / f"scores-{row.name}.npz"
            if path.exists() or row.method not in influence.names or (wanted is not None and row.method not in wanted):
                continue
            texts, started = self.texts[: row.texts], time.process_time()
            index = prepare(
                self.model(), self.train, method=row.method, checkpoints=self.checkpoints(row.method), **row.options
            )
            prepared = time.process_time()
            scores = index.scores(texts)
            np.savez(path, scores=scores, seconds=[prepared - started, time.process_time() - prepared])
            print(f"# {row.name}: {time.process_time() - started:.0f} CPU seconds", flush=True)

    def checkpoints(self, method: str) -> list[tuple[TransformerClassifier, float]]:
        """Earlier states with the learning rate of that epoch, for the method that asks for them."""
        if "checkpoints" not in influence[method].asks:
            return []
        rates = [SCHEDULE.learning_rate * (1 - (n - 0.5) / SCHEDULE.epochs) for n in range(1, SCHEDULE.epochs + 1)]
        return [(self.model(n), rate) for n, rate in enumerate(rates, start=1)]

    def scores(self, name: str) -> tuple[np.ndarray, float, float] | None:
        """The scores of a row, with CPU seconds once and for each text; None where it was not run."""
        if name == LABEL:
            own, theirs = ([e.label for e in some] for some in (self.texts, self.train))
            return np.array([[1.0 if a == b else -1.0 for b in theirs] for a in own]), 0.0, 0.0
        path = self.folder / f"scores-{name}.npz"
        if not path.exists():
            return None
        stored = np.load(path)
        once, every = stored["seconds"]
        return stored["scores"], float(once), float(every) / len(stored["scores"])

    def judged(self, name: str, texts: int, held: bool) -> Judged:
        """How well a row tells what the halves' models say of the first so many texts."""
        done = [n for n in range(self.n_models) if (self.folder / f"half-{n}.npy").exists()]
        margins = np.array([np.load(self.folder / f"half-{n}.npy") for n in done])[:, :texts]
        retrained, found = Retrained(self.parts[done], margins), self.scores(name)
        assert found is not None
        counts = label_counts(self.train, retrained.parts) if held else None
        return linear_datamodelling(found[0][:texts], retrained, held=counts)


def table(studies: Sequence[Study]) -> str:
    """A line for each row that was run on all seeds: means over them, intervals from draws of each."""
    head = (
        "method",
        "LDS",
        "default less this",
        "LDS, counts held",
        "default less this",
        "CPU s once",
        "a text",
        "texts",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in (*(row.name for row in ROWS), LABEL):
        found = [study.scores(name) for study in studies]
        if any(one is None for one in found):
            continue
        known = [one for one in found if one is not None]
        n, cells = min(len(scores) for scores, _, _ in known), [f"`{name}`" if name != LABEL else name]
        for held in (False, True):
            if name == LABEL and held:  # nothing is left of it
                cells += ["–", "–"]
                continue
            own, default = ([s.judged(which, n, held) for s in studies] for which in (name, DEFAULT))
            low, high = interval([one.draws for one in own])
            cells.append(f"{np.mean([one.value for one in own]):.3f} ({low:.3f} to {high:.3f})")
            gap = float(np.mean([d.value - o.value for d, o in zip(default, own, strict=True)]))
            low, high = interval([d.draws - o.draws for d, o in zip(default, own, strict=True)])
            cells.append("–" if name == DEFAULT else f"{gap:+.3f} ({low:+.3f} to {high:+.3f})")
        cells += [f"{np.mean([one[1] for one in known]):.1f}", f"{np.mean([one[2] for one in known]):.3f}", str(n)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def interval(draws: Sequence[np.ndarray]) -> tuple[float, float]:
    """Of the mean over seeds, whose draws have nothing to do with each other."""
    rng = np.random.default_rng(41)
    mixed = np.mean([one[rng.permutation(len(one))] for one in draws], axis=0)
    low, high = np.nanpercentile(mixed, [2.5, 97.5])
    return float(low), float(high)


def trained_by_epochs(
    untrained: TransformerClassifier, train: Sequence[Example], states: Path
) -> list[TransformerClassifier]:
    """The model after each epoch of its training."""
    found: list[TransformerClassifier] = []

    def keep(_: Epoch) -> None:
        state = untrained.clone()
        state.model.load_state_dict(load_file(states / "current" / "weights.safetensors"))
        found.append(state)

    shutil.rmtree(states, ignore_errors=True)
    unhans.fit(untrained, train, schedule=SCHEDULE, checkpoints=states, watch=Watch(on_epoch=keep))
    return found


def short(examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    """So many labelled short sentences."""
    least, most = WORDS
    fitting = [e for e in examples if e.label is not None and least <= len(e.text.split()) <= most]
    order = np.random.default_rng([seed, 37]).permutation(len(fitting))[:n]
    return [Example(fitting[k].id, fitting[k].text, label=LABELS[int(str(fitting[k].label))]) for k in order]


if __name__ == "__main__":
    main()
