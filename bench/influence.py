"""The index of small gradients against forward passes, exact gradients and LiSSA: ratios from one run, side by side.

    python bench/influence.py --data DATA --model MODEL [--sentences 5000] [--threads 1] [--json out.json]

DATA is a folder with the set `sst`; without it, demo reviews. MODEL is the folder of a trained classifier with SST's
two labels; without it, MiniLM's shape with random weights: speed does not depend on them, Spearman does.

- build: small gradients of all sentences, the twin, the inverses, the lengths; against forward passes over the same
  sentences in the same batches, which take turns with it part by part. `bare` is Hugging Face's own forward pass
  without gradients, `packed` our own, which leaves out of the last layer what the head does not read (the index
  does so too)
- room: the folder of the index, with its inverses
- anchor: one sentence that was not trained on, from a string to the scores of all sentences; the median over anchors
  of the best of three
- LiSSA, as in FastIF: 1,000 steps of one sentence, last two layers and head, then a backward pass for each sentence.
  A few steps and backward passes are timed, and the rest is extrapolated
- Spearman of small gradients' products to exact ones, without the inverse between them, over anchors
- score pass: products of one direction with every gradient, by central differences, against packed forward passes

With one thread process CPU time is measured, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from _bars import Bar, Way, finish
from scipy.stats import spearmanr
from scoring import clock, make_classifier, timed
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from transformers.utils import logging

import unhans
from unhans.demo_data import reviews
from unhans.influences import Shelf, influence, prepare
from unhans.influences._gradients import Gradients, slopes, whole_gradient
from unhans.influences._head import last_parameters
from unhans.influences.projected_gradients import Projection, _lengths, _metric, _packed, _Part
from unhans.model import TransformerClassifier
from unhans.text import as_variant
from unhans.types import Example

DEPTH = 1000
FULL = 5000
PART = 250
BARS: dict[
    str, tuple[str, Way, float, float | None]
] = {  # target, direction, limit, tolerance (fewer sentences change some of them)
    "build, in bare forward passes": ("10", "<=", 2.2, 0.3),
    "room for 5,000 sentences, MB": ("10", "<=", 50, 0.1),
    "an anchor, ms": ("10", "<=", 60, None),
    "LiSSA with its score pass, in anchors": ("11", ">=", 1000, 0.5),
    "build, in LiSSA's anchors": ("11", "<=", 1, 0.5),
    "Spearman to exact products, mean": ("10", ">=", 0.95, 0.02),
    "score pass, in packed forward passes": ("12", "<=", 2.6, 0.25),
    "score pass, Spearman": ("12", ">=", 0.999, 0.005),
}


def sentences(options: argparse.Namespace, labels: Sequence[str]) -> tuple[list[Example], list[Example]]:
    """What the index is made of, and anchors, both under the model's labels."""
    if options.data is None:
        found = [Example(e.id, e.text, label=labels[n % 2]) for n, e in enumerate(reviews(2 * FULL, seed=1))]
        return found[: options.sentences], found[-options.anchors :]
    sst = unhans.read(options.data / "sst", label="label2")
    names = sorted({e.label for e in sst.split("train") if e.label is not None})
    renamed = dict(zip(names, labels, strict=True))
    train, test = (
        [Example(e.id, e.text, label=renamed[e.label]) for e in sst.split(part) if e.label is not None]
        for part in ("train", "test")
    )
    drawn = np.random.default_rng(0).permutation(len(test))[: options.anchors]
    return train[: options.sentences], [test[int(number)] for number in drawn]


def build(classifier: TransformerClassifier, train: list[Example]) -> dict[str, float]:
    """Seconds for the index and for forward passes, which take turns."""
    seconds = dict.fromkeys(("bare", "packed", "build"), 0.0)
    seconds["build"] += timed(lambda: Gradients(classifier))
    gradients = Gradients(classifier)
    settings = influence["projected_gradients"].settings({})
    small = Projection(gradients, int(settings["width"]), np.random.default_rng(0))
    order, rows = gradients.by_length(train), []
    for start in range(0, len(train), PART):
        some = [train[number] for number in order[start : start + PART]]
        batches = [[some[n] for n in numbers] for numbers in gradients.batches(some)]
        with torch.inference_mode():
            for batch in batches:
                seconds["bare"] += timed(lambda batch=batch: classifier.logits(classifier.batch(batch)))
                seconds["packed"] += timed(lambda batch=batch: gradients._logits(batch))
        seconds["build"] += timed(lambda some=some: rows.append(small.rows(some)))
    started, ends = clock(), np.cumsum([len(some) for some in rows])
    parts = [_Part(np.arange(end - len(some), end), _packed(some)) for some, end in zip(rows, ends, strict=True)]
    metric = _metric(small, parts, np.ones(len(train), int), float(settings["damping"]), True, Shelf(None))
    _lengths(metric, parts, Shelf(None))
    seconds["build"] += clock() - started
    return seconds


def lissa(classifier: TransformerClassifier, train: list[Example], anchor: Example, steps: int) -> dict[str, float]:
    """Seconds of a step and of a backward pass for one sentence, the mean of a few."""
    names = set(last_parameters(classifier, 2))
    parameters = [p for name, p in classifier.model.named_parameters() if name in names]

    def loss(example: Example) -> torch.Tensor:
        logits = classifier.logits(classifier.batch([example]))
        return cross_entropy(logits, torch.tensor([classifier.label_number(str(example.label))]))

    direction = [g.detach() for g in torch.autograd.grad(loss(anchor), parameters)]

    def step(example: Example) -> None:
        with sdpa_kernel(SDPBackend.MATH):
            first = torch.autograd.grad(loss(example), parameters, create_graph=True)
            torch.autograd.grad(first, parameters, direction)

    def score(example: Example) -> None:
        found = torch.autograd.grad(loss(example), parameters)
        sum(float((g * d).sum()) for g, d in zip(found, direction, strict=True))

    some = train[:: max(1, len(train) // steps)][:steps]
    return {
        "step": mean(timed(lambda e=e: step(e)) for e in some),
        "score": mean(timed(lambda e=e: score(e)) for e in some),
    }


def exactness(classifier: TransformerClassifier, train: list[Example], anchors: list[Example]) -> list[float]:
    """Spearman of the small gradients' products to the exact ones, for each anchor."""
    exact = prepare(classifier, train, method="gradient_dot").scores(anchors)
    small = prepare(classifier, train, precondition=False, relative=False).scores(anchors)
    return [float(spearmanr(a, b).statistic) for a, b in zip(exact, small, strict=True)]


def score_pass(
    classifier: TransformerClassifier, train: list[Example], compared: list[Example], anchor: Example
) -> tuple[float, float]:
    """Cost of central differences in forward passes over all sentences, and their Spearman to exact products."""
    gradients, direction = Gradients(classifier), {}

    def see(number: int, went_in: torch.Tensor, came_back: torch.Tensor) -> None:
        layer = gradients.layers[number]
        whole = whole_gradient(layer, went_in, came_back)[0]
        direction[f"{layer.name}.weight"] = whole[:, : layer.inputs]
        if layer.bias:
            direction[f"{layer.name}.bias"] = whole[:, -1]

    gradients.show([anchor], see)
    exact = prepare(classifier, compared, method="gradient_dot").scores(anchor)[0]
    found = slopes(classifier, compared, direction)
    forwards = timed(lambda: classifier.log_probs(train))
    passes = timed(lambda: slopes(classifier, train, direction))
    forwards += timed(lambda: classifier.log_probs(train))
    return 2 * passes / forwards, float(spearmanr(found, exact).statistic)


def room(folder: Path) -> int:
    """Bytes of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure, print, and say whether the bars of the design hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the set sst")
    parser.add_argument("--model", type=Path, help="folder of a trained classifier")
    parser.add_argument("--sentences", type=int, default=FULL)
    parser.add_argument("--compared", type=int, default=300, help="sentences whose exact products are worked out")
    parser.add_argument("--anchors", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10, help="of LiSSA that are timed")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; 0 leaves torch's choice")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = (
        TransformerClassifier.open(options.model, device="cpu") if options.model else make_classifier("minilm", corpus)
    )
    train, anchors = sentences(options, classifier.labels)
    tokens = sum(len(question) for question in classifier.questions([as_variant(e) for e in train]))
    classifier.log_probs(train[:50])  # the first calls are slower
    figures: dict[str, float] = {}

    seconds = build(classifier, train)
    figures["build, in bare forward passes"] = seconds["build"] / seconds["bare"]
    figures["build, in packed forward passes"] = seconds["build"] / seconds["packed"]
    print(f"{len(train)} sentences, {tokens} tokens: {seconds}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        index = prepare(classifier, train, folder=folder)
        rows = sum(path.stat().st_size for path in Path(folder).rglob("gradients-*"))
        figures["room for 5,000 sentences, MB"] = (room(Path(folder)) - rows + rows * FULL / len(train)) / 1e6
    per_anchor = median([min(timed(lambda a=a: index.scores(a)) for _ in range(3)) for a in anchors])
    figures["an anchor, ms"] = 1000 * per_anchor
    slow = lissa(classifier, train, anchors[0], options.steps)
    figures["LiSSA with its score pass, s"] = DEPTH * slow["step"] + len(train) * slow["score"]
    figures["LiSSA with its score pass, in anchors"] = figures["LiSSA with its score pass, s"] / per_anchor
    figures["build, in LiSSA's anchors"] = seconds["build"] / figures["LiSSA with its score pass, s"]
    print(figures, flush=True)
    compared = train[:: max(1, len(train) // options.compared)][: options.compared]
    agreement = exactness(classifier, compared, anchors[:10])
    figures["Spearman to exact products, mean"] = mean(agreement)
    figures["Spearman to exact products, lowest"] = min(agreement)
    cost, order = score_pass(classifier, train, compared, anchors[0])
    figures["score pass, in packed forward passes"], figures["score pass, Spearman"] = cost, order
    facts = {"sentences": len(train), "tokens": tokens, "compared": len(compared), "anchors": len(anchors)}
    finish(
        verdict(figures, bool(options.model)),
        options.json,
        settings=facts | {"trained": bool(options.model)},
        figures=figures,
    )


def verdict(figures: dict[str, float], trained: bool) -> list[Bar]:
    """Every bar with what was measured; Spearman of random weights is no figure, for it says nothing."""
    bars = []
    for name, (target, way, limit, tolerance) in BARS.items():
        told = trained or "Spearman" not in name
        values, reason = ((figures[name],), "") if told else ((), "needs a trained classifier: --model")
        bars.append(Bar(target, name, way, limit, values, tolerance=tolerance, reason=reason))
    return bars


if __name__ == "__main__":
    main()
