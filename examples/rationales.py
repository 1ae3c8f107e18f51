"""Select, then predict (ExPred) on texts with human highlights, beside a plain classifier explained afterwards.

    python examples/rationales.py DATA [--encoder FOLDER] [--only movies] [--movies 300] [--pairs 2500] [--epochs 2]

DATA is a folder with the sets `eraser_movies` and `esnli_highlights`; FOLDER is a Hugging Face folder or id without a
classification head (without it, a little BERT is trained from scratch). For each set a `SelectThenPredict` is trained
on labels and highlights, and a plain classifier on the labels of the same texts for as many epochs. Printed as
Markdown: how well labels are predicted, and how well the chosen words agree with those that people marked. Only words
within the length limit count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import unhans
from unhans.model import Classifier, TransformerClassifier
from unhans.rationales import rationale_of
from unhans.scoring import ScoreCache
from unhans.scratch import fresh_classifier
from unhans.select_then_predict import SelectThenPredict
from unhans.text import Words
from unhans.training import Watch, accuracy
from unhans.types import Attribution, Attributions, Example, Rationale

CACHE = ScoreCache()
COLUMNS = ("model", "rationale", "accuracy", "token F1", "token IoU", "IoU-F1", "AUPRC", "words chosen")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


@dataclass(frozen=True)
class Task:
    """A data set in three parts, and how much highlights count in its training."""

    name: str
    train: list[Example]
    validation: list[Example]
    test: list[Example]
    weight: float
    max_length: int


def main() -> None:
    """Train, choose, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--only", choices=("movies", "esnli"))
    parser.add_argument("--movies", type=int, default=300, help="reviews to train on")
    parser.add_argument("--pairs", type=int, default=2500, help="pairs to train on")
    parser.add_argument("--test", type=int, default=500, help="texts to measure on, at most")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a review that are read")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate")
    parser.add_argument("--weight", type=float, help="of the highlights; 5 for movies and 2 for pairs if not given")
    parser.add_argument("--all", action="store_true", help="stage 2 learns also from texts that stage 1 gets wrong")
    parser.add_argument("--attribution", default="integrated_gradients", help="explains the plain classifier")
    parser.add_argument("--share", type=float, default=0.2, help="part of the words that top_share takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for make in (movies, esnli):
        if options.only in (None, make.__name__):
            run(make(options), options)


def movies(options: argparse.Namespace) -> Task:
    """ERASER's film reviews. The test set's highlights are complete, those of the other parts are not."""
    data = unhans.read(options.data / "eraser_movies")
    train, validation, test = (shuffled(data.split(name), options.seed) for name in ("train", "val", "test"))
    weight = 5.0 if options.weight is None else options.weight
    return Task("movies", train[: options.movies], validation[:60], test[: options.test], weight, options.max_length)


def esnli(options: argparse.Namespace) -> Task:
    """Pairs of e-SNLI's development set that entail or contradict each other, in three parts by chance.

    No premise is in two parts: SNLI has several pairs of each, and a model could know it again.
    """
    pairs = shuffled(unhans.read(options.data / "esnli_highlights"), options.seed)
    train = pairs[: options.pairs]
    rest = with_other_premises(pairs[options.pairs :], train)
    validation = rest[:300]
    test = with_other_premises(rest[300:], validation)
    weight = 2.0 if options.weight is None else options.weight
    return Task("esnli", train, validation, test[: options.test], weight, 128)


def with_other_premises(pairs: Sequence[Example], than: Sequence[Example]) -> list[Example]:
    """Those whose first text is not one of these."""
    seen = {example.text for example in than}
    return [example for example in pairs if example.text not in seen]


def shuffled(examples: Sequence[Example], seed: int) -> list[Example]:
    """In an order of chance, always the same."""
    return [examples[int(n)] for n in np.random.default_rng(seed).permutation(len(examples))]


def run(task: Task, options: argparse.Namespace) -> None:
    """Both models on one data set, and a table."""
    labels = sorted({str(example.label) for example in task.train})
    if options.encoder is None:
        start = fresh_classifier([t for e in task.train for t in e.parts], labels, max_length=task.max_length)
    else:
        start = TransformerClassifier.open(options.encoder, labels=labels, max_length=task.max_length)
    schedule = unhans.Schedule(options.epochs, options.rate, options.batch, patience=2, seed=options.seed)
    began = time.process_time()
    watch = Watch(on_epoch=lambda epoch: print(f"# {task.name}: {epoch}", flush=True))
    model = SelectThenPredict.fit(
        start,
        task.train,
        validation=task.validation,
        weight=task.weight,
        only_correct=not options.all,
        schedule=schedule,
        watch=watch,
    )
    middle = time.process_time()
    plain = unhans.fit(start, task.train, validation=task.validation, schedule=schedule, watch=watch)
    ended = time.process_time()
    print(f"# {task.name}: {middle - began:.0f} s of training in two stages, {ended - middle:.0f} s plain", flush=True)
    n = len(task.train), len(task.validation), len(task.test)
    print(f"\n{task.name}: {n[0]} texts to train on, {n[1]} to choose the epoch, {n[2]} to measure on\n\n{HEAD}")
    scores = model.word_scores(task.test)
    row("select then predict, stage 1", "", model.selector.classifier, task.test)
    row(
        "select then predict, stage 2",
        "stage 1's words",
        model,
        task.test,
        scores=scores,
        chosen=model.rationales(task.test),
    )
    explained = unhans.attribute(plain, task.test, method=options.attribution)
    for method, own in (("top_share", {"share": options.share}), ("spans", {})):
        chosen = [rationale_of(one, text=e, method=method, **own) for one, e in zip(explained, task.test, strict=True)]
        row("plain", f"{method} of {options.attribution}", plain, task.test, scores=explained, chosen=chosen)
    random = unhans.attribute(plain, task.test, method="random", seed=options.seed)
    drawn = [rationale_of(one, share=options.share, counts="absolute") for one in random]
    row("plain", "top_share of random scores", plain, task.test, scores=random, chosen=drawn)


def row(
    model: str,
    way: str,
    classifier: Classifier,
    test: Sequence[Example],
    *,
    scores: Attributions | None = None,
    chosen: Sequence[Rationale] = (),
) -> None:
    """One line of the table."""
    cells = [f"{accuracy(classifier, test):.3f}"]
    if scores is not None:
        hard = [as_scores(one, choice) for one, choice in zip(scores, chosen, strict=True)]
        cells += [f"{grade(classifier, test, hard, metric):.3f}" for metric in ("token_f1", "token_iou")]
        cells += [f"{iou_f1(classifier, test, chosen):.3f}", f"{grade(classifier, test, scores, 'auprc'):.3f}"]
        read = [max(1, len(one.words) - len(one.unread)) for one in scores]
        cells += [f"{np.mean([len(one.chosen) / n for one, n in zip(chosen, read, strict=True)]):.1%}"]
    print(f"| {model} | {way} | {' | '.join(cells + ['–'] * (6 - len(cells)))} |", flush=True)


def as_scores(one: Attribution, choice: Rationale) -> Attribution:
    """Chosen or not as 1 or 0, so that metrics of scores judge the choice and no threshold of their own."""
    return replace(one, scores=tuple(float(n in set(choice.chosen)) for n in range(len(one.words))), errors=None)


def grade(classifier: Classifier, test: Sequence[Example], scores: Sequence[Attribution], metric: str) -> float:
    """The mean over all texts with highlights, whether their label is predicted right or not."""
    return unhans.measure(classifier, test, metric=metric, attributions=scores, only_correct=False, cache=CACHE).value


def iou_f1(classifier: Classifier, test: Sequence[Example], chosen: Sequence[Rationale]) -> float:
    """ERASER's IoU-F1: a span counts as found if it shares half of all its words with one that people marked.

    The mean over the texts with a marked word that is read.
    """
    found = []
    for example, choice in zip(test, chosen, strict=True):
        words, tails = Words(example), classifier.unread(example)
        read = [not any(s.part == t.part and t.start <= s.start < t.end for t in tails) for s in words.spans]
        marked = [
            n
            for n, s in enumerate(words.spans)
            if read[n]
            and any(s.part == h.part and s.start < h.end and h.start < s.end for h in example.highlights or ())
        ]
        if marked:
            truth, mine = runs(marked, words), runs(choice.chosen, words)
            hits = sum(any(len(a & b) / len(a | b) >= 0.5 for b in truth) for a in mine)
            met = sum(any(len(a & b) / len(a | b) >= 0.5 for a in mine) for b in truth)
            precision, recall = hits / max(1, len(mine)), met / len(truth)
            found.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return float(np.mean(found))


def runs(numbers: Sequence[int], words: Words) -> list[set[int]]:
    """Neighbouring words of one part, together."""
    found: list[set[int]] = []
    for n in numbers:
        joined = n - 1 in (found[-1] if found else ()) and words.spans[n].part == words.spans[n - 1].part
        found[-1:] = [found[-1] | {n}] if joined else [*found[-1:], {n}]
    return found


if __name__ == "__main__":
    main()
