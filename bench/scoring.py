"""The scoring core against the bare model and Hugging Face's pipeline: ratios measured side by side in one run.

    python bench/scoring.py [--shape minilm] [--lengths 16,32,64,128,256] [--rounds 2] [--json out.json]

For each text length, some texts are explained in the two ways that ask most of a core: every word left out once, and
LIME's sampling (the `lime` package's own: a random number of random words left out, at first the text itself). Four
things answer the same variants and take turns; of the ratios of each round the median counts:

- limit: the bare model's forward pass on rows of exactly that length, without padding, at its best batch size; the
  time it would take for the different variants at that speed
- core: `unhans`, from strings to log-probabilities, tokenising, removing duplicates and packing included
- batched: `pipeline(texts, batch_size=32)`
- default: `pipeline(texts)`

The weights are random (speed does not depend on them). Only the ratios mean anything on another machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from transformers import BertConfig, BertForSequenceClassification, pipeline
from transformers.utils import logging

from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scoring import Tally
from unhans.scratch import fresh_tokenizer
from unhans.text import Variant, Words, as_variant

SHAPES = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "bert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
}
MOST_TOKENS = {"minilm": 6000, "bert-base": 1200}  # of a workload, about; the pipelines need minutes for these
BATCH_TOKENS = (512, 1024, 2048)  # more was slower at every length
REPEATS = 3  # of limit and core in a round: they take a second where the pipelines take minutes
VOCABULARY = 30_522


def clock() -> float:
    """Wall time; with one thread the process's own CPU time, which other work on the machine does not disturb."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def make_classifier(shape: str, corpus: list[str]) -> TransformerClassifier:
    """A BERT of this shape with random weights and a vocabulary fitted on the corpus."""
    torch.manual_seed(0)
    tokenizer = fresh_tokenizer(corpus, vocab_size=4000, max_length=512)
    model = BertForSequenceClassification(BertConfig(vocab_size=VOCABULARY, num_labels=2, **SHAPES[shape]))
    return TransformerClassifier(model, tokenizer, limit=512, device="cpu")


def texts_of_length(classifier: TransformerClassifier, corpus: list[str], tokens: int, n: int) -> list[str]:
    """Demo reviews joined and cut at a word so that each row has about (at most) this many tokens."""
    texts = []
    for number in range(n):
        words = " ".join(corpus[tokens + 40 * number : tokens + 40 * (number + 1)]).split(" ")[: 2 * tokens]
        while len(classifier.tokens.rows([as_variant(" ".join(words))])[0]) > tokens:
            words.pop()
        texts.append(" ".join(words))
    return texts


def leave_one_out(words: Words) -> list[Variant]:
    """Every word left out once."""
    return [words.without([position]) for position in range(len(words))]


def lime_samples(words: Words, n: int, rng: np.random.Generator) -> list[Variant]:
    """The text, and n - 1 times as many random words left out as a die says: how `lime` samples."""
    counts = rng.integers(1, len(words) + 1, n - 1)
    return [words.variant({})] + [words.without(rng.permutation(len(words))[:count].tolist()) for count in counts]


def workloads(texts: list[str], samples: int) -> dict[str, list[Variant]]:
    """What leave-one-out asks about all the texts, and what LIME asks about the first."""
    words = [Words(text) for text in texts]
    return {
        "leave one out": [variant for one in words for variant in leave_one_out(one)],
        "LIME": lime_samples(words[0], samples, np.random.default_rng(0)),
    }


def seconds_per_row(model: BertForSequenceClassification, length: int, tokens: int) -> float:
    """One forward pass on a full, unpadded batch of about this many tokens, per row."""
    n = max(1, tokens // length)
    ids = torch.randint(1000, 4000, (n, length))
    started = clock()
    with torch.inference_mode():
        model(input_ids=ids)
    return (clock() - started) / n


def measure(
    classifier: TransformerClassifier, variants: list[Variant], rounds: int, pipes: dict[str, Callable]
) -> dict[str, Any]:
    """All contenders on the same variants, taking turns; each round gives its own ratios, and their median counts."""
    rows = set(classifier.tokens.rows(variants))
    texts = [variant.texts[0] for variant in variants]
    lengths = Counter(map(len, rows))
    ratios: dict[str, list[float]] = {"of the limit": [], **{f"against {name}": [] for name in pipes}}
    tally = Tally()
    for _ in range(rounds):
        cores = []
        for _ in range(REPEATS):
            limit = bare_seconds(classifier, lengths)
            classifier.tokens.forget()  # every time it pays for its own tokenising
            tally = Tally()
            cores.append(timed(lambda tally=tally: classifier.log_probs(variants, tally=tally)))
            ratios["of the limit"].append(limit / cores[-1])
        for name, pipe in pipes.items():
            ratios[f"against {name}"].append(timed(lambda pipe=pipe: pipe(texts)) / median(cores))
    return {
        "variants": len(variants),
        "different": len(rows),
        "answered": tally.answered,
        "asked for each": tally.answered / len(rows),
        "padded": tally.padded / max(1, tally.padded + tally.cells),
        **{name: median(values) for name, values in ratios.items()},
        "rounds": ratios,
        "largest logit difference": logit_difference(classifier, texts),
    }


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = clock()
    work()
    return clock() - started


def bare_seconds(classifier: TransformerClassifier, lengths: Counter[int]) -> float:
    """What the bare model needs for rows of these lengths: the three commonest are timed, the rest interpolated."""
    known = sorted(sorted(lengths, key=lambda length: -lengths[length])[:3])
    speed = [min(seconds_per_row(classifier.model, n, tokens) for tokens in BATCH_TOKENS) / n for n in known]
    return sum(count * n * float(np.interp(n, known, speed)) for n, count in lengths.items())


def logit_difference(classifier: TransformerClassifier, texts: list[str]) -> float:
    """Between the core and Hugging Face's own tokenizer and forward pass, on some of the texts."""
    worst = 0.0
    some = texts[:: max(1, len(texts) // 20)]
    ours = classifier.answer(classifier.questions([Words(text).variant({}) for text in some]))
    for text, line in zip(some, ours, strict=True):
        with torch.inference_mode():
            theirs = classifier.model(**classifier.tokenizer(text, return_tensors="pt")).logits[0].numpy()
        worst = max(worst, float(np.abs(theirs - line).max()))
    return worst


def main() -> None:
    """Measure, print, and say whether the bars of the design hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--lengths", default="16,32,64,128,256")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--samples", type=int, default=1000, help="LIME samples")
    parser.add_argument("--most", type=int, help="tokens a workload may have, about")
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0 leaves torch's choice")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    corpus = [example.text for example in reviews(2000, seed=1)]
    results = []
    for shape in options.shape or SHAPES:
        classifier = make_classifier(shape, corpus)
        with tempfile.TemporaryDirectory() as folder:
            saved = classifier.save(Path(folder) / "model")
            plain = pipeline("text-classification", model=str(saved), tokenizer=classifier.tokenizer, device="cpu")
        pipes = {"batched": lambda texts, p=plain: p(texts, batch_size=32), "default": lambda texts, p=plain: p(texts)}
        for length in map(int, options.lengths.split(",")):
            texts = texts_of_length(classifier, corpus, length, n=max(1, 512 // length))
            for kind, variants in workloads(texts, options.samples).items():
                found = {"shape": shape, "tokens": length, "kind": kind}
                most = (options.most or MOST_TOKENS[shape]) * (2 if kind == "LIME" else 1) // length
                found |= measure(classifier, variants[:most], options.rounds, pipes)
                results.append(found)
                print(describe(found), flush=True)
    settings = {"rounds": options.rounds, "samples": options.samples, "lengths": options.lengths}
    finish([*verdict(results), *precision(classifier)], options.json, settings=settings, results=results)


def describe(found: dict) -> str:
    """One line of the table."""
    return (
        f"{found['shape']:10} {found['tokens']:4} tokens  {found['kind']:14} {found['variants']:4} variants, "
        f"{found['answered']:4} of {found['different']:4} asked | of the limit {found['of the limit']:.2f} | "
        f"batched {found['against batched']:.1f}x  default {found['against default']:.1f}x | "
        f"padded {found['padded']:.1%} | logits within {found['largest logit difference']:.0e}"
    )


def verdict(results: list[dict[str, Any]]) -> list[Bar]:
    """The bars, each with its figures over all workloads, of which the worst counts."""

    def values(key: str) -> tuple[float, ...]:
        return tuple(found[key] for found in results)

    return [
        Bar("core", "share of the limit", ">=", 0.95, values("of the limit"), worst=True),
        Bar("4", "padded cells, share", "<=", 0.02, values("padded"), worst=True),
        Bar("4", "texts asked for each different one", "<=", 1, values("asked for each"), worst=True, tolerance=0.0),
        Bar("6", "logits against Hugging Face's", "<=", 1e-5, values("largest logit difference"), worst=True),
        Bar("core", "against pipeline(batch_size=32)", ">=", 2, values("against batched"), worst=True),
        Bar("core", "against pipeline()", ">=", 5, values("against default"), worst=True),
    ]


def precision(classifier: TransformerClassifier) -> list[Bar]:
    """Which parts of a model, opened as the product opens it, compute in anything but fp32."""
    seen: dict[str, torch.dtype] = {}

    def look(name: str) -> Callable[..., None]:
        def see(_: Any, __: Any, out: Any) -> None:
            if isinstance(out, torch.Tensor):
                seen[name] = out.dtype

        return see

    hooks = [part.register_forward_hook(look(name)) for name, part in classifier.model.named_modules()]
    classifier.log_probs(["A plain text."])
    for hook in hooks:
        hook.remove()
    other = sum(dtype != torch.float32 for dtype in seen.values())
    small = sum(weight.dtype != torch.float32 for weight in classifier.model.state_dict().values() if weight.ndim > 1)
    return [
        Bar("15", "parts of a model that answer in another precision", "<=", 0, (float(other),), tolerance=0.0),
        Bar("8", "weights in another precision by default", "<=", 0, (float(small),), tolerance=0.0),
    ]


if __name__ == "__main__":
    main()
