"""HotFlip against TextAttack, a naive search and the bare model: ratios measured side by side in one run.

    python bench/counterfactuals.py [--lengths 16,30,41] [--rounds 3] [--textattack PYTHON] [--json out.json]

Five flips, beam 10, ten candidates for each draft, one text at a time. The goal is out of reach (the head's bias holds
the label), so that everyone makes all five flips. Weights are random, the shape is MiniLM's, the vocabulary has 30,522
words, and every word of the texts is one token. Contestants take turns; the median of the rounds counts, and of the
lengths the worst. With one thread process CPU time is measured, which other work on the machine disturbs least.

- unhans: `find_flips(method="hotflip")`, with no alternatives for the steps, which nobody else looks for
- naive: TextAttack's algorithm written plainly: one gradient, one place's estimates, one question at a time
- ideal: as many gradients and questions as the naive search needed, at the speed of the bare model in its best batch,
  and one product of gradients and vocabulary for each gradient
- TextAttack: its own search; runs with --textattack, the Python of an environment that has it. To make one:

      make bench-opponents

  What had to be bypassed is told in `_textattack.py`.

Bars: >= 4 against TextAttack, >= 4.5 against naive, >= 0.85 of the ideal, and the naive search's best score.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from scoring import BATCH_TOKENS, SHAPES, VOCABULARY, clock, texts_of_length
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

from unhans.counterfactuals import find_flips
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_tokenizer
from unhans.text import Words

EDITS, BEAM, CANDIDATES = 5, 10, 10
HELD = 4.0  # log-odds that the head's bias adds to one label; five flips move it by less than 1
BARS = {
    "TextAttack": ("against TextAttack", 4.0),
    "naive": ("against the naive search", 4.5),
    "ideal": ("share of the ideal", 0.85),
}
SAME = 1e-4  # of log-odds: batches and single rows differ in the last digits


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    seconds: float
    score: float  # log-odds against the original label
    gradients: int = 0
    questions: int = 0


def make_classifier(shape: str, corpus: list[str]) -> TransformerClassifier:
    """Random weights, a vocabulary of the usual size, and a label that no five flips change.

    The weights are larger than those that a training begins with: then, as in a trained model, each edit changes the
    gradients of the other words, and drafts seldom get the same proposals.
    """
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    invented = ["".join(letters) for letters in rng.choice(list("abcdefghijklmnopqrstuvwxyz"), (VOCABULARY, 6))]
    tokenizer = fresh_tokenizer([*corpus, " ".join(invented)], vocab_size=VOCABULARY, max_length=512)
    config = BertConfig(vocab_size=VOCABULARY, num_labels=2, initializer_range=0.1, **SHAPES[shape])
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight *= 0.1
        model.classifier.bias[0] += HELD
    return TransformerClassifier(model, tokenizer, limit=512, device="cpu")


def plain_text(classifier: TransformerClassifier, corpus: list[str], tokens: int) -> str:
    """Words of the corpus without any sign, one token each, in a row of exactly this length."""
    (text,) = texts_of_length(classifier, corpus, 2 * tokens, 1)
    known = classifier.tokenizer.get_vocab()
    words = [word for word in Words(text.lower()).strings if word.isalnum() and word in known]
    return " ".join(words[: tokens - 2])


def ours(classifier: TransformerClassifier, text: str) -> Found:
    """The product, from a string to a counterfactual; nothing is left over from the round before."""
    classifier.tokens.forget()
    search = {"max_edits": EDITS, "beam": BEAM, "alternatives": 0}
    started = clock()
    (found,) = find_flips(classifier, text, method="hotflip", search=search, candidates=CANDIDATES)
    seconds = clock() - started
    assert not found.flips, "the goal is meant to be out of reach"
    assert len(found.steps) == EDITS
    own = found.before.probabilities.index(max(found.before.probabilities))
    kept = found.after.probabilities[own]
    return Found(seconds, math.log((1 - kept) / kept))


class Naive:
    """TextAttack's algorithm: a beam search that asks one thing at a time."""

    def __init__(self, classifier: TransformerClassifier) -> None:
        self.model, self.tokenizer = classifier.model, classifier.tokenizer
        ids = [n for n in classifier.tokens.whole_words[True] if n < VOCABULARY]
        self.words = [classifier.tokens.strings[n] for n in ids]
        self.table = self.model.get_input_embeddings().weight.detach()[ids]

    def search(self, text: str) -> Found:
        """All flips, however sure the model is."""
        started = clock()
        words = tuple(text.split(" "))
        label = int(self.logits(words).argmax())
        beam: list[tuple[tuple[str, ...], frozenset[int]]] = [(words, frozenset())]
        best, gradients, known = -math.inf, 0, {words: self.score(words, label)}
        for _ in range(EDITS):
            made: dict[tuple[str, ...], frozenset[int]] = {}
            for on, changed in beam:
                gradients += 1
                for place, word in self.candidates(on, changed, label):
                    made.setdefault((*on[:place], word, *on[place + 1 :]), changed | {place})
            for one in made:
                if one not in known:
                    known[one] = self.score(one, label)
            order = sorted(made, key=lambda one: -known[one])
            best = max(best, known[order[0]])
            beam = [(one, made[one]) for one in order[:BEAM]]
        return Found(clock() - started, best, gradients, len(known) - 1)

    def inputs(self, words: tuple[str, ...]) -> Tensor:
        """The token numbers of a text."""
        return self.tokenizer(" ".join(words), return_tensors="pt")["input_ids"]

    def logits(self, words: tuple[str, ...]) -> Tensor:
        """One question."""
        with torch.inference_mode():
            return self.model(input_ids=self.inputs(words)).logits[0]

    def score(self, words: tuple[str, ...], label: int) -> float:
        """Log-odds against the label."""
        logits = self.logits(words).double()
        return float(logits[1 - label] - logits[label])

    def candidates(self, words: tuple[str, ...], changed: frozenset[int], label: int) -> list[tuple[int, str]]:
        """The words with the greatest estimates, one for each line."""
        leaf = self.model.get_input_embeddings()(self.inputs(words)).detach().requires_grad_()
        loss = cross_entropy(self.model(inputs_embeds=leaf).logits, torch.tensor([label]))
        (gradient,) = torch.autograd.grad(loss, leaf)
        open_to = [n for n in range(len(words)) if n not in changed]
        pulls, own = gradient[0, 1:-1][open_to], leaf.detach()[0, 1:-1][open_to]
        gains = torch.stack([self.table.mv(pull) - pull @ old for pull, old in zip(pulls, own, strict=True)])
        found: list[tuple[int, str]] = []
        for number in gains.flatten().argsort(descending=True)[: 4 * CANDIDATES].tolist():
            slot, n = divmod(number, len(self.words))
            if self.words[n] != words[open_to[slot]]:
                found.append((open_to[slot], self.words[n]))
        return found[:CANDIDATES]


class Bare:
    """The model's own speed, without padding, at its best batch size."""

    def __init__(self, classifier: TransformerClassifier, text: str) -> None:
        self.model = classifier.model
        self.ids = classifier.tokenizer(text, return_tensors="pt")["input_ids"]
        words = len(classifier.tokens.whole_words[True])
        self.table = torch.randn(words, self.model.config.hidden_size)
        self.pulls = torch.randn(self.ids.shape[1] - 2 - EDITS // 2, self.table.shape[1])  # places open, on average

    def rows(self, tokens: int) -> Tensor:
        """A full batch."""
        return self.ids.repeat(max(1, tokens // self.ids.shape[1]), 1)

    def question(self) -> float:
        """Seconds of a forward pass, for one row."""
        return min(self._forward(self.rows(tokens)) for tokens in BATCH_TOKENS)

    def gradient(self) -> float:
        """Seconds of a forward pass and a backward pass to the embeddings, for one row."""
        return min(self._backward(self.rows(tokens)) for tokens in BATCH_TOKENS)

    def product(self) -> float:
        """Seconds of all estimates for one draft."""
        started = clock()
        torch.mm(self.pulls, self.table.T)
        return clock() - started

    def _forward(self, rows: Tensor) -> float:
        started = clock()
        with torch.inference_mode():
            self.model(input_ids=rows)
        return (clock() - started) / len(rows)

    def _backward(self, rows: Tensor) -> float:
        started = clock()
        leaf = self.model.get_input_embeddings()(rows).detach().requires_grad_()
        loss = cross_entropy(self.model(inputs_embeds=leaf).logits, torch.zeros(len(rows), dtype=torch.long))
        torch.autograd.grad(loss, leaf)
        return (clock() - started) / len(rows)


class TextAttack:
    """TextAttack in an environment of its own, asked line by line."""

    def __init__(self, python: str, classifier: TransformerClassifier) -> None:
        self.folder = tempfile.TemporaryDirectory()
        saved = classifier.save(Path(self.folder.name) / "model")
        command = [python, str(Path(__file__).with_name("_textattack.py")), str(saved), str(torch.get_num_threads())]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def search(self, text: str) -> Found:
        """One attack, timed by the child."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        asked = {"text": text, "edits": EDITS, "beam": BEAM, "candidates": CANDIDATES}
        print(json.dumps(asked), file=self.child.stdin, flush=True)
        return Found(**json.loads(self.child.stdout.readline()))

    def close(self) -> None:
        """End the child."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()
        self.folder.cleanup()


def measure(classifier: TransformerClassifier, text: str, rounds: int, peer: TextAttack | None) -> dict[str, Any]:
    """All contestants on one text, in turn."""
    bare, naive = Bare(classifier, text), Naive(classifier)
    speeds: dict[str, list[float]] = {"question": [], "gradient": [], "product": []}
    found: dict[str, list[Found]] = {"unhans": [], "naive": [], "TextAttack": []}
    ours(classifier, text)  # the vocabulary of a classifier is made once
    for _ in range(rounds):
        for name, times in speeds.items():
            times.append(getattr(bare, name)())
        found["unhans"].append(ours(classifier, text))
        for name, times in speeds.items():
            times.append(getattr(bare, name)())
        found["naive"].append(naive.search(text))
        if peer is not None:
            found["TextAttack"].append(peer.search(text))
    plain = found["naive"][0]
    # around each of our searches the bare model was timed twice
    ideals = [
        plain.gradients * (mean(pair["gradient"]) + mean(pair["product"])) + plain.questions * mean(pair["question"])
        for pair in ({name: times[2 * n : 2 * n + 2] for name, times in speeds.items()} for n in range(rounds))
    ]
    own = [one.seconds for one in found["unhans"]]
    others = {name: [one.seconds for one in some] for name, some in found.items() if some and name != "unhans"}
    ratios = {
        name: [a / b for a, b in zip(times, own, strict=True)] for name, times in (others | {"ideal": ideals}).items()
    }
    return {
        "tokens": len(classifier.tokenizer(text)["input_ids"]),
        "words that may come in": len(naive.words),
        "gradients": plain.gradients,
        "questions": plain.questions,
        "ratios": {name: median(values) for name, values in ratios.items()},
        "rounds": ratios,
        "scores": {name: some[0].score for name, some in found.items() if some},
        "seconds": {name: median(times) for name, times in (others | {"unhans": own, "ideal": ideals}).items()},
        "TextAttack asked": [[one.gradients, one.questions] for one in found["TextAttack"][:1]],
    }


def verdict(results: list[dict[str, Any]]) -> list[Bar]:
    """Each bar with its figure for each length."""
    bars = []
    for name, (what, least) in BARS.items():
        ratios = tuple(found["ratios"][name] for found in results if name in found["ratios"])
        reason = "" if ratios else "no --textattack, the Python of an environment that has it: make bench-opponents"
        bars.append(Bar("13", f"HotFlip, {what}", ">=", least, ratios, worst=True, reason=reason))
    apart = tuple(abs(found["scores"]["unhans"] - found["scores"]["naive"]) for found in results)
    return [*bars, Bar("13", "HotFlip, best score apart from the naive search's", "<=", SAME, apart, worst=True)]


def main() -> None:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="minilm")
    parser.add_argument("--lengths", default="16,30,41", help="tokens of the texts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--textattack", metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=1, help="with more than one, wall time is measured")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = make_classifier(options.shape, corpus)
    peer = TextAttack(options.textattack, classifier) if options.textattack else None
    results = []
    try:
        for length in map(int, options.lengths.split(",")):
            found = measure(classifier, plain_text(classifier, corpus, length), options.rounds, peer)
            results.append(found)
            told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in found["ratios"].items())
            best = ", ".join(f"{name} {score:.5f}" for name, score in found["scores"].items())
            print(f"{length} tokens: {told} | best score: {best}", file=sys.stderr, flush=True)
    finally:
        if peer is not None:
            peer.close()
    finish(verdict(results), options.json, rounds=options.rounds, results=results)


if __name__ == "__main__":
    main()
