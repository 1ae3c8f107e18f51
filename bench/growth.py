"""How cost grows: with the words of a text, the number of examples, and the number of labels.

    python bench/growth.py [--words 16,32,64,128,256,512] [--examples 100,1000,10000,100000]
                           [--predicted 100,1000,10000,100000,1000000] [--labels 2,10,100,500]

Sizes take turns within a round; the median of the rounds counts. Between two sizes stands an exponent: 1 means that
twice the size costs twice as much. `--json out.json` writes all of them.

- words: one text of so many words (MiniLM's shape, room for 1,024 tokens). Leave-one-out asks about as many texts as
  there are words, each as long: 2 at best. LIME with 200 samples and gradients are linear but for attention, whose
  share grows with the length; so is one forward pass of the bare model, which is measured beside them
- examples: demo reviews stream through `unhans.bulk` to Parquet (a transformer of two narrow layers, so that most of
  the cost is ours); time for each, and the most memory the process ever had. Explaining 1000000 takes about an hour, so
  that many are only predicted unless it is asked for
- labels: the same texts explained by models with so many labels, one label at a time
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from _bars import Bar, finish, peak_memory
from scoring import SHAPES, VOCABULARY, timed
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

from unhans.attributions import attribute
from unhans.bulk import explaining, fill, predicting
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_tokenizer
from unhans.types import Example

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
ROOM = 1024
MOST = {  # exponents of words: what the method asks for, and some room for attention
    "leave_one_out": 2.3,
    "lime": 1.3,
    "input_x_gradient": 1.3,
    "integrated_gradients": 1.3,
    "the bare model": None,
}
Curve = dict[int, list[float]]


def make(shape: dict[str, int], corpus: Sequence[str], labels: int = 2) -> TransformerClassifier:
    """A BERT of this shape with random weights and room for long texts."""
    torch.manual_seed(0)
    tokenizer = fresh_tokenizer(list(corpus), vocab_size=4000, max_length=ROOM)
    names = {n: f"label {n}" for n in range(labels)}
    config = BertConfig(vocab_size=VOCABULARY, max_position_embeddings=ROOM, num_labels=labels, id2label=names, **shape)
    return TransformerClassifier(BertForSequenceClassification(config), tokenizer, limit=ROOM, device="cpu")


def measured(works: dict[str, dict[int, Callable[[], Any]]], rounds: int) -> dict[str, Curve]:
    """Seconds by work and size; sizes and works take turns."""
    found: dict[str, Curve] = {name: {size: [] for size in sizes} for name, sizes in works.items()}
    for _ in range(rounds):
        for name, sizes in works.items():
            for size, work in sizes.items():
                found[name][size].append(timed(work))
                print(f"{name:24} {size:>9,}: {found[name][size][-1]:8.2f} s", flush=True)
    return found


def exponents(curve: Curve) -> list[float]:
    """From each size to the next."""
    seconds = {size: median(values) for size, values in curve.items()}
    return [math.log(seconds[b] / seconds[a]) / math.log(b / a) for a, b in pairwise(sorted(curve))]


# -- words


def by_words(sizes: Sequence[int], rounds: int) -> tuple[dict[str, Curve], list[Bar]]:
    """Texts of so many words."""
    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = make(SHAPES["minilm"], corpus)
    words = [word for word in " ".join(corpus).split(" ") if word.isalpha()]
    texts = {size: " ".join(words[:size]) for size in sizes}

    def explain(text: str, method: str) -> Callable[[], Any]:
        options = {"num_samples": 200} if method == "lime" else {}
        return lambda: attribute(classifier, text, method=method, target=1, **options)

    def bare(text: str) -> Callable[[], Any]:
        def work() -> None:
            for _ in range(20):
                with torch.inference_mode():
                    classifier.model(**classifier.tokenizer(text, return_tensors="pt"))

        return work

    for name in MOST.keys() - {"the bare model"}:
        explain(texts[sizes[0]], name)()  # the first call of each is slower
    works = {
        name: {size: bare(text) if name == "the bare model" else explain(text, name) for size, text in texts.items()}
        for name in MOST
    }
    curves = measured(works, rounds)
    return curves, [
        # below 64 words fixed costs count most, which makes exponents small and says nothing
        _exponent(f"{name}, exponent of words", MOST[name], _long(curve))
        for name, curve in curves.items()
    ]


def _exponent(name: str, limit: float, found: Sequence[float]) -> Bar:
    reason = "" if found else "one size alone says nothing about growth"
    return Bar("growth", name, "<=", limit, tuple(found), worst=True, reason=reason)


def _long(curve: Curve) -> list[float]:
    kept = {size: values for size, values in curve.items() if size >= 64}
    return exponents(kept if len(kept) > 1 else curve)


# -- examples


def stream(n: int) -> Iterator[Example]:
    """So many different short reviews, made as they are asked for."""
    some = [example.text for example in reviews(2000, seed=3)]
    for number in range(n):
        yield Example(str(number), f"{some[number % len(some)]} {number}", label="label 0")


def by_examples(explained: Sequence[int], predicted: Sequence[int]) -> tuple[dict[str, Any], list[Bar]]:
    """So many examples, each size once and in order: the peak of memory can only rise."""
    wanted, sizes = {"predicting": predicted, "explaining": explained}, sorted({*explained, *predicted})
    classifier = make(TINY, [example.text for example in reviews(2000, seed=1)])
    tasks = {
        "predicting": predicting(classifier),
        "explaining": explaining(classifier, method="input_x_gradient", target=0),
    }
    curves: dict[str, Curve] = {name: {} for name in tasks}
    peaks: dict[int, float] = {}
    _filled(tasks["explaining"], 1000)  # the first calls are slower
    for size in sizes:
        for name, task in ((name, task) for name, task in tasks.items() if size in wanted[name]):
            curves[name][size] = [timed(lambda task=task, size=size: _filled(task, size))]
            print(f"{name:24} {size:>9,}: {curves[name][size][0]:8.2f} s, peak {peak_memory():,.0f} MB", flush=True)
        peaks[size] = peak_memory()
    bars = [_exponent(f"{name}, exponent of examples", 1.1, exponents(curve)) for name, curve in curves.items()]
    rise = peaks[sizes[-1]] / peaks[sizes[0]]
    name = "memory for most examples, against that for fewest"
    return {"seconds": curves, "peaks": peaks}, [*bars, Bar("growth", name, "<=", 1.2, (rise,))]


def _filled(task: Any, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "out", task, stream(n), total=n)


# -- labels


def by_labels(sizes: Sequence[int], rounds: int) -> tuple[dict[str, Curve], list[Bar]]:
    """Models with so many labels."""
    corpus = [example.text for example in reviews(2000, seed=1)]
    texts, works = corpus[:8], dict[str, dict[int, Callable[[], Any]]]()
    models = {size: make(SHAPES["minilm"], corpus, labels=size) for size in sizes}

    def explain(classifier: TransformerClassifier, method: str) -> Callable[[], Any]:
        options = {"num_samples": 200} if method == "lime" else {}
        return lambda: attribute(classifier, texts, method=method, target=1, **options)

    for classifier in models.values():
        attribute(classifier, texts, target=1)  # the first call is slower
    for method in ("leave_one_out", "lime", "integrated_gradients"):
        works[method] = {size: explain(classifier, method) for size, classifier in models.items()}
    curves = measured(works, rounds)
    few, many = min(sizes), max(sizes)
    bars = []
    for name, curve in curves.items():
        ratios = tuple(b / a for a, b in zip(curve[few], curve[many], strict=True))
        bars.append(Bar("growth", f"{name}, most labels against fewest", "<=", 1.3, ratios))
    return curves, bars


def main() -> None:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def sizes(text: str) -> list[int]:
        return sorted(int(part) for part in text.split(","))

    parser.add_argument("--words", type=sizes, default=[16, 32, 64, 128, 256, 512])
    parser.add_argument("--examples", type=sizes, default=[100, 1000, 10_000, 100_000], help="that are explained")
    parser.add_argument("--predicted", type=sizes, default=[100, 1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--labels", type=sizes, default=[2, 10, 100, 500])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    # first, or the memory of the others would hide what it takes
    examples, bars = by_examples(options.examples, options.predicted)
    words, more = by_words(options.words, options.rounds)
    labels, most = by_labels(options.labels, options.rounds)
    steps = {name: exponents(curve) for name, curve in words.items()}
    found = {"words": words, "exponents of words": steps, "examples": examples, "labels": labels}
    finish([*bars, *more, *most], options.json, settings={"rounds": options.rounds}, **found)


if __name__ == "__main__":
    main()
