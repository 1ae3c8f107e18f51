"""What a training step that listens to votes costs, as a multiple of a plain one, in one run and side by side.

    python bench/fixes.py [--shape minilm] [--tokens 32] [--batch 16] [--steps 6] [--rounds 3] [--json out.json]

Every text of the batch holds a voted word: the worst case, for steps without one cost what plain ones do. Steps are
those of the product's own training loop, timed from one to the next (process CPU time, median over steps; contestants
take turns, and the median of the rounds' ratios counts). Bars: 2.2 for input × gradient, 1.3 + 2k for integrated
gradients with k steps.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from _bars import Bar, finish
from scoring import SHAPES, clock, make_classifier, texts_of_length

from unhans.demo_data import reviews
from unhans.fixes import mend
from unhans.model import TransformerClassifier
from unhans.training import Watch
from unhans.types import Example, Feedback, WordVote

PAPER = {"insert": 0.0, "dropout": 0.0}  # the method as published, without what we add to it
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("word_dropout", {"rate": 0.0}),
    "occlusion, as published": ("occlusion_regularisation", {"insert": 0.0, "relearn": 0.0}),
    "occlusion": ("occlusion_regularisation", {}),
    "input × gradient": ("explanation_regularisation", PAPER),
    "integrated gradients, 1 step": (
        "explanation_regularisation",
        PAPER | {"method": "integrated_gradients", "samples": 1},
    ),
    "integrated gradients, 3 steps": (
        "explanation_regularisation",
        PAPER | {"method": "integrated_gradients", "samples": 3},
    ),
}
BARS = {
    "input × gradient": 2.2,
    "integrated gradients, 1 step": 3.3,
    "integrated gradients, 3 steps": 7.3,
}


def step_seconds(
    classifier: TransformerClassifier, train: list[Example], word: str, name: str, batch: int
) -> list[float]:
    """Seconds of each step but the first, which also begins the training."""
    fix, options = CONTESTANTS[name]
    times: list[float] = []
    watch = Watch(on_step=lambda *_: times.append(clock()))
    vote = Feedback("1", WordVote(word, classifier.labels[0], "lower"), "me", "2026-01-01T00:00:00Z", "r")
    training = {"epochs": 1, "batch_size": batch, "patience": 0}
    mend(classifier, train, [vote], fix=fix, training=training, watch=watch, **options)
    return [later - earlier for earlier, later in pairwise(times)]


def main() -> None:
    """Time all contestants in turn, print ratios to the plain step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="minilm")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = [example.text for example in reviews(4000, seed=0)]
    classifier = make_classifier(options.shape, corpus)
    drawn = texts_of_length(classifier, corpus, options.tokens, 60)
    texts = [drawn[n % len(drawn)] for n in range(options.batch * (options.steps + 1))]
    word = "imax"
    train = [
        Example(str(n), f"{word} {text}", label=classifier.labels[n % len(classifier.labels)])
        for n, text in enumerate(texts)
    ]
    rounds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(options.rounds):
        steps = {name: median(step_seconds(classifier, train, word, name, options.batch)) for name in CONTESTANTS}
        for name, seconds in steps.items():
            rounds[name].append(seconds / steps["plain"])
    facts = {"shape": options.shape, "tokens": options.tokens, "batch": options.batch, "steps": options.steps}
    ratios = {name: median(values) for name, values in rounds.items()}
    bars = verdict(rounds, str(classifier.model.config._attn_implementation))
    finish(bars, options.json, settings=facts | {"rounds": options.rounds}, ratios=ratios)


def verdict(rounds: dict[str, list[float]], attention: str) -> list[Bar]:
    """Every ratio to the plain step; those of the design with their limits."""
    kept = {name: values for name, values in rounds.items() if name != "plain"}
    ran = f"no step was taken under {attention}" if attention != "sdpa" else ""
    return [
        *(Bar("14", f"a step with {name}", "<=", BARS.get(name), tuple(values)) for name, values in kept.items()),
        # a crash would have ended the run
        Bar("14", "steps that crash under the default attention", "<=", 0, () if ran else (0.0,), reason=ran),
    ]


if __name__ == "__main__":
    main()
