"""Wrong labels in SST: which signs find them, and how cleanlab does in the same run.

    python examples/label_errors.py DATA ENCODER --results FOLDER [--train 1000] [--seeds 0,1,2] [--folds-too]

DATA is a folder with the set `sst`, ENCODER the folder or id of a Hugging Face model. For each seed: other sentences,
10 % of their labels flipped, a model trained on all of them as they are, and every way of looking for the flips in that
model. The measure is average precision: 1 if all flipped labels come first, 0.1 by chance. Intervals (95 %) come from
drawing sentences again, within each seed.

The rows named cleanlab are its ways to rank (three label quality scores, and its issues first), each on three sets of
out-of-fold probabilities: those of our own sign `confident_learning`; those of scikit-learn's logistic regression on
the same model's embeddings, and on the untrained encoder's, as cleanlab's guide for texts recommends. With
`--folds-too`, the model itself is trained five times more, for out-of-fold probabilities of its own (cleanlab's other
recommendation); that costs five trainings.

Everything is kept in FOLDER, and a run goes on from there. The way signs are combined, with the settings of heads and
neighbours, was chosen with seed 100; figures are to be reported of other seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import unhans
from unhans.bugs import plant
from unhans.doubts import How, doubt, doubts, embeddings_of, usable
from unhans.model import TransformerClassifier
from unhans.training import Schedule
from unhans.types import Example

LABELS = ("negative", "positive")
WAYS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
COMBINED = "combined"
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_DRAWS = 500
SCHEDULE = Schedule(epochs=3, learning_rate=5e-5, batch_size=32)


def main() -> None:
    """Plant, train, look, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--results", type=Path, required=True, help="folder for models and what was found")
    parser.add_argument("--train", type=int, default=1000, help="sentences")
    parser.add_argument("--seeds", default="0,1,2", help="separated by commas")
    parser.add_argument("--folds-too", action="store_true", help="train the model on each of five folds as well")
    parser.add_argument("--only-train", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sst = unhans.read(options.data / "sst", label="label2")
    trials = [Trial(options, sst.split("train"), int(seed)) for seed in options.seeds.split(",")]
    for trial in trials:
        trial.model()
        if not options.only_train:
            trial.look()
            if options.folds_too:
                trial.look_by_folds()
    if not options.only_train:
        print(table(trials))


class Trial:
    """One seed: sentences with planted flips, the model that learned them, and what was found."""

    def __init__(self, options: argparse.Namespace, examples: Sequence[Example], seed: int) -> None:
        self.folder = options.results / f"{options.train}-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.encoder, self.seed = options.encoder, seed
        labelled = [example for example in examples if example.label is not None]
        order = np.random.default_rng([seed, 41]).permutation(len(labelled))[: options.train]
        clean = [Example(labelled[k].id, labelled[k].text, label=LABELS[int(str(labelled[k].label))]) for k in order]
        planted = plant(clean, "flipped_labels", share=0.1, seed=seed)
        self.train = planted.examples
        self.flipped = np.isin([example.id for example in self.train], planted.truth.examples)

    def model(self) -> TransformerClassifier:
        """The model that was trained on the labels as they are."""
        return self.trained("model", self.train)

    def look(self) -> None:
        """The signs, their combination, and cleanlab's ways to rank: higher is more doubtful."""
        if self.has("doubts"):
            return
        classifier, started = self.model(), time.process_time()
        found = {one.example: one for one in doubts(classifier, self.train, seed=self.seed)}
        seconds = time.process_time() - started
        mine = [found[example.id] for example in self.train]
        values = {COMBINED: [one.score for one in mine]}
        for name in usable(classifier):
            values[name] = [dict(one.signs)[name] for one in mine]
        texts, given = np.arange(len(self.train)), self.given()
        points = embeddings_of(classifier, self.train)
        ours = doubt["confident_learning"](
            {"classifier": classifier, "embeddings": points, "given": given, "texts": texts, "how": How()}
            | {"rng": np.random.default_rng([self.seed, 23])}
        ).says
        untrained = unhans.load(self.encoder, labels=LABELS)
        values |= by_cleanlab("our out-of-fold probabilities", given, ours)
        for name, some in (("the model's embeddings", points), ("the encoder's", embeddings_of(untrained, self.train))):
            head = LogisticRegression(max_iter=400)
            says = cross_val_predict(head, some, given, cv=5, method="predict_proba")
            values |= by_cleanlab(f"logistic regression on {name}", given, says)
        self.keep("doubts", values)
        print(f"# seed {self.seed}: doubts took {seconds:.0f} CPU seconds", flush=True)

    def look_by_folds(self) -> None:
        """Cleanlab on out-of-fold probabilities of the model itself, trained five times more."""
        if self.has("folds"):
            return
        given, says = self.given(), np.zeros((len(self.train), len(LABELS)))
        folds = StratifiedKFold(5, shuffle=True, random_state=self.seed).split(given, given)
        for number, (others, held) in enumerate(folds):
            model = self.trained(f"fold-{number}", [self.train[n] for n in others])
            says[held] = np.exp(model.log_probs([self.train[n] for n in held]))
        self.keep("folds", by_cleanlab("the model trained on five folds", given, says))

    def given(self) -> Numbers:
        """The number of each label, right or wrong."""
        return np.array([LABELS.index(str(example.label)) for example in self.train])

    def has(self, name: str) -> bool:
        """Whether this was done in an earlier run."""
        return (self.folder / f"{name}.npz").exists()

    def keep(self, name: str, values: Mapping[str, Any]) -> None:
        """For a later run."""
        np.savez(self.folder / f"{name}.npz", **{row: np.asarray(line, float) for row, line in values.items()})

    def found(self) -> dict[str, Floats]:
        """What every row says of each sentence."""
        every: dict[str, Floats] = {}
        for name in ("doubts", "folds"):
            if self.has(name):
                with np.load(self.folder / f"{name}.npz") as stored:
                    every |= {row: stored[row] for row in stored.files}
        return every

    def trained(self, name: str, train: Sequence[Example]) -> TransformerClassifier:
        """A model trained on these, or the one that is there."""
        folder = self.folder / name
        if not folder.exists():
            torch.manual_seed(self.seed)
            untrained = unhans.load(self.encoder, labels=LABELS)
            unhans.fit(untrained, train, schedule=SCHEDULE).save(folder)
            print(f"# {folder.name} of seed {self.seed} is trained", flush=True)
        found = unhans.load(folder, labels=LABELS)
        assert isinstance(found, TransformerClassifier)
        return found


def by_cleanlab(name: str, given: Numbers, says: Floats) -> dict[str, Floats]:
    """Cleanlab's ways to rank by these out-of-fold probabilities: its three scores, and its issues before the rest."""
    says = says / says.sum(axis=1, keepdims=True)
    ways = {way: -get_label_quality_scores(given, says, method=way) for way in WAYS}
    issues = find_label_issues(given, says, return_indices_ranked_by="normalized_margin", n_jobs=1)
    first = ways["normalized_margin"] + 10.0 * np.isin(np.arange(len(given)), issues)
    return {f"cleanlab, {name}: {way}": values for way, values in (ways | {"issues first": first}).items()}


def table(trials: Sequence[Trial]) -> str:
    """Average precision of every row: the mean with its interval, the combination's lead, and each seed's."""
    found = [trial.found() for trial in trials]
    rows = [row for row in found[0] if all(row in one for one in found)]
    rng = np.random.default_rng(0)
    picks = [[rng.integers(0, len(t.flipped), len(t.flipped)) for _ in range(_DRAWS)] for t in trials]
    draws, means, each = {}, {}, {}
    for row in rows:
        each[row] = [precision(t.flipped, one[row]) for t, one in zip(trials, found, strict=True)]
        means[row] = float(np.mean(each[row]))
        again = [
            [precision(t.flipped[pick], one[row][pick]) for pick in own]
            for t, one, own in zip(trials, found, picks, strict=True)
        ]
        draws[row] = np.mean(again, axis=0)
    head = ("sign", "average precision", "combined less this", "seeds")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        gap = f"{means[COMBINED] - means[row]:+.3f} ({interval(draws[COMBINED] - draws[row], sign='+')})"
        seeds = ", ".join(f"{value:.3f}" for value in each[row])
        told = "–" if row == COMBINED else gap
        lines.append(f"| {row} | {means[row]:.3f} ({interval(draws[row])}) | {told} | {seeds} |")
    best = max((row for row in rows if row.startswith("cleanlab")), key=means.__getitem__)
    return "\n".join([*lines, "", f"Cleanlab's best here: {best}."])


def precision(flipped: Flags, values: Floats) -> float:
    """Average precision; those that are level count as a group (as in scikit-learn, whose own takes minutes here)."""
    order = np.argsort(-values)
    ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    hits = np.cumsum(flipped[order])[ends]
    return float((np.diff(hits, prepend=0) * hits / (ends + 1)).sum() / flipped.sum())


def interval(draws: Floats, sign: str = "") -> str:
    """What 95 % of the draws lie in."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{low:{sign}.3f} to {high:{sign}.3f}"


if __name__ == "__main__":
    main()
