"""Our EK-FAC against kronfluence's: how alike the scores are, and what they cost, from one run, side by side.

    python bench/ekfac.py [--data DATA] [--model MODEL] [--sentences 300] [--rounds 1] [--layers -1] [--json out.json]

DATA is a folder with the set `sst`; without it, demo reviews. MODEL is the folder of a trained classifier with SST's
two labels; without it, a tiny BERT with random weights. Needs kronfluence, which is no requirement of unhans:

    make bench-opponents && PYTHONPATH=.venv-bench/beside python bench/ekfac.py

Both look at the same linear layers, with a damping of a tenth of each layer's mean eigenvalue. Kronfluence draws labels
from the model's answers, ours needs no draw for two labels; so with other seeds kronfluence differs from itself, and
`--again` tells by how much. The batches differ: kronfluence takes 32 sentences at a time, short ones first, and pads
them to the longest; ours takes sentences of one length, as many as have about 2,000 tokens.

With one thread process CPU time is measured, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from kronfluence.analyzer import Analyzer, prepare_model
from kronfluence.arguments import FactorArguments, ScoreArguments
from kronfluence.task import Task
from kronfluence.utils.dataset import DataLoaderKwargs
from scipy.stats import spearmanr
from scoring import clock
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification

import unhans
from unhans.demo_data import reviews
from unhans.influences import prepare
from unhans.influences._gradients import Gradients
from unhans.influences._head import last_parameters
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_tokenizer
from unhans.types import Example

DAMPING = 0.1
BATCH = 32


class Classification(Task):
    """Our loss, as kronfluence asks for it."""

    def __init__(self, layers: list[str]) -> None:
        self._layers = layers

    def compute_train_loss(self, batch: dict[str, Tensor], model: Any, sample: bool = False) -> Tensor:
        """Of the labels, or of labels drawn from the model's own answer."""
        given = {name: value for name, value in batch.items() if name != "labels"}
        logits = model(**given).logits
        labels = batch["labels"]
        if sample:
            labels = torch.multinomial(logits.detach().softmax(-1), 1).flatten()
        return cross_entropy(logits, labels, reduction="sum")

    def compute_measurement(self, batch: dict[str, Tensor], model: Any) -> Tensor:
        """What an anchor is asked about."""
        return self.compute_train_loss(batch, model)

    def get_influence_tracked_modules(self) -> list[str]:
        """The layers that ours looks at."""
        return self._layers

    def get_attention_mask(self, batch: dict[str, Tensor]) -> Tensor:
        """Padding does not count."""
        return batch["attention_mask"]


def theirs(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    anchors: Sequence[Example],
    layers: list[str],
    seed: int,
) -> tuple[np.ndarray, float, float]:
    """Scores (anchors × train), seconds for the curvature and for the scores."""

    def collate(some: list[Example]) -> dict[str, Tensor]:
        batch = classifier.batch(some)
        labels = torch.tensor([classifier.label_number(str(e.label)) for e in some])
        return {"input_ids": batch.ids, "attention_mask": batch.mask, "token_type_ids": batch.types, "labels": labels}

    torch.manual_seed(seed)
    task = Classification(layers)
    loading = DataLoaderKwargs(collate_fn=collate, num_workers=0)
    with tempfile.TemporaryDirectory() as folder:
        analyzer = Analyzer(
            "bench", prepare_model(classifier.clone().model, task), task, cpu=True, disable_tqdm=True, output_dir=folder
        )
        start = clock()
        analyzer.fit_all_factors(
            "factors",
            list(train),
            per_device_batch_size=BATCH,
            dataloader_kwargs=loading,
            factor_args=FactorArguments(strategy="ekfac"),
        )
        built = clock()
        analyzer.compute_pairwise_scores(
            "scores",
            "factors",
            list(anchors),
            list(train),
            per_device_query_batch_size=len(anchors),
            per_device_train_batch_size=BATCH,
            dataloader_kwargs=loading,
            score_args=ScoreArguments(damping_factor=None),  # a tenth of the mean eigenvalue
        )
        done = clock()
        scores = analyzer.load_pairwise_scores("scores")["all_modules"].numpy() / len(train)
    return scores, built - start, done - built


def ours(
    classifier: TransformerClassifier, train: Sequence[Example], anchors: Sequence[Example], layers: int
) -> tuple[np.ndarray, float, float]:
    """The same of ours."""
    start = clock()
    index = prepare(classifier, train, method="ekfac", damping=DAMPING, layers=layers)
    built = clock()
    scores = index.scores(anchors)
    return scores, built - start, clock() - built


def alike(one: np.ndarray, two: np.ndarray) -> dict[str, float]:
    """Spearman over the training examples, for each anchor."""
    found = [spearmanr(a, b).statistic for a, b in zip(one, two, strict=True)]
    return {"mean": float(np.mean(found)), "least": float(np.min(found))}


def sentences(data: Path | None, n: int) -> list[Example]:
    """Different sentences with labels, drawn at random."""
    if data is None:
        found = [Example(str(k), e.text, label=e.label) for k, e in enumerate(reviews(2 * n))]
    else:
        with gzip.open(data / "sst" / "train.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        kept = [line for line in lines if line.get("label2") in (0, 1)]
        found = [Example(str(line["id"]), line["text"], label=str(line["label2"])) for line in kept]
    different = list({(e.text, e.label): e for e in found}.values())
    return [different[k] for k in np.random.default_rng(0).permutation(len(different))[:n]]


def open_model(folder: str | None, examples: Sequence[Example]) -> tuple[TransformerClassifier, list[Example]]:
    """The classifier, and the examples under its labels."""
    if folder is None:
        torch.manual_seed(0)
        tokenizer = fresh_tokenizer([e.text for e in examples], max_length=64)
        sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
        config = BertConfig(vocab_size=len(tokenizer), num_labels=2, initializer_range=0.1, **sizes)
        made = TransformerClassifier(BertForSequenceClassification(config), tokenizer, 64, "cpu")
    else:
        made = unhans.load(folder)
    names = sorted({str(e.label) for e in examples})
    return made, [Example(e.id, e.text, label=made.labels[names.index(str(e.label))]) for e in examples]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--anchors", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--layers", type=int, default=-1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    every = sentences(asked.data, asked.sentences + asked.anchors)
    classifier, every = open_model(asked.model, every)
    anchors, train = every[: asked.anchors], every[asked.anchors :]
    gradients = Gradients(classifier)
    train = [train[n] for n in gradients.by_length(train)]
    wanted = set(last_parameters(classifier, asked.layers))
    layers = [layer.name for layer in gradients.layers if f"{layer.name}.weight" in wanted]
    rounds = []
    for _ in range(asked.rounds):
        own, build, score = ours(classifier, train, anchors, asked.layers)
        other, their_build, their_score = theirs(classifier, train, anchors, layers, seed=0)
        rounds.append({"curvature": their_build / build, "scores": their_score / score})
    found: dict[str, Any] = {
        "sentences": len(train),
        "anchors": len(anchors),
        "linear layers": len(layers),
        "curvature, seconds": {"unhans": round(build, 2), "kronfluence": round(their_build, 2)},
        "scores, seconds": {"unhans": round(score, 2), "kronfluence": round(their_score, 2)},
        "Spearman of unhans and kronfluence": alike(own, other),
        "slope": float(np.polyfit(other.ravel(), own.ravel(), 1)[0]),
    }
    if asked.again:
        found["Spearman of kronfluence with another seed"] = alike(
            theirs(classifier, train, anchors, layers, seed=1)[0], other
        )
    print(json.dumps(found, indent=2))
    finish(verdict(rounds, found), asked.json, **found)


def verdict(rounds: list[dict[str, float]], found: dict[str, Any]) -> list[Bar]:
    """How many times as long kronfluence takes, and how alike the scores are."""
    alike_as = (found["Spearman of unhans and kronfluence"]["mean"],)
    return [
        *(
            Bar("peers", f"EK-FAC, {part}, against kronfluence", ">=", 1.0, tuple(one[part] for one in rounds))
            for part in ("curvature", "scores")
        ),
        Bar("peers", "EK-FAC, Spearman to kronfluence's scores", ">=", None, alike_as, tolerance=0.05),
    ]


if __name__ == "__main__":
    main()
