"""Linear datamodelling scores of the influence methods on SST, with what each costs.

    python examples/influence_quality.py DATA ENCODER --results FOLDER [--models 48] [--texts 100] [--seed 0]

DATA is a folder with the set `sst`, ENCODER the folder or id of a Hugging Face model. One model is trained on 300
short sentences, and one on each of `--models` random halves of them, from the same start with the same settings. A
method has to tell from the one model what the others say: the score is the rank correlation over the halves between
the sum of the influence of a half's sentences and the margin of a test sentence, in the mean over test sentences.
Intervals (95 %) come from drawing test sentences and halves again, differences from the same draws for both.

Everything is kept in FOLDER, and a run goes on from there; `--stages` and `--methods` run a part of it. Another
`--seed` is another experiment with other sentences. Methods run with their defaults, none of which was chosen by these
figures; the default method runs a second time with relative influence.
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
from unhans.metrics.influence import Judged, Retrained, halves, label_margins, linear_datamodelling
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


ROWS = (
    Row(DEFAULT, DEFAULT),
    Row(f"{DEFAULT}, relative", DEFAULT, {"relative": True}),
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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", help="only these, separated by commas, with all their rows")
    parser.add_argument("--stages", default="train,score,table", help="some of them only")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    study = Study(options)
    stages = options.stages.split(",")
    if "train" in stages:
        study.train_all()
    if "score" in stages:
        study.score_all(None if options.methods is None else options.methods.split(","))
    if "table" in stages:
        print(study.table())


class Study:
    """The sentences, the models, and what was found, in a folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder = options.results / f"seed-{options.seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.encoder, self.seed, self.n_models = options.encoder, options.seed, options.models
        sst = unhans.read(options.data / "sst", label="label2")
        self.train = short(sst.split("train"), TRAIN, options.seed)
        self.texts = short(sst.split("test"), options.texts, options.seed)
        self.parts = halves(TRAIN, 1000, seed=options.seed)[: self.n_models]  # more models later: the same ones first

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

    def table(self) -> str:
        """A line for each row that was run."""
        done = [n for n in range(self.n_models) if (self.folder / f"half-{n}.npy").exists()]
        margins = np.array([np.load(self.folder / f"half-{n}.npy") for n in done])[:, : len(self.texts)]
        retrained = Retrained(self.parts[done], margins)
        judged: dict[str, Judged] = {}
        head = ("method", "LDS", "default less this", "CPU s once", "CPU s a text", "texts")
        lines = [f"{len(done)} half models.", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in ROWS:
            path = self.folder / f"scores-{row.name}.npz"
            if not path.exists():
                continue
            stored = np.load(path)
            scores, (once, every) = stored["scores"], stored["seconds"]
            some = Retrained(retrained.parts, retrained.margins[:, : len(scores)])
            judged[row.name] = found = linear_datamodelling(scores, some)
            first = judged[DEFAULT] if len(scores) == len(self.texts) else self.default_on(some)
            told = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
            gap, low, high = first.less(found)
            against = "–" if row.name == DEFAULT else f"{gap:+.3f} ({low:+.3f} to {high:+.3f})"
            lines.append(
                f"| `{row.name}` | {told} | {against} | {once:.1f} | {every / len(scores):.3f} | {len(scores)} |"
            )
        return "\n".join(lines)

    def default_on(self, some: Retrained) -> Judged:
        """The default method on the same few texts."""
        scores = np.load(self.folder / f"scores-{DEFAULT}.npz")["scores"]
        return linear_datamodelling(scores[: some.margins.shape[1]], some)


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
