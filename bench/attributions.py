"""Explanation methods against the bare model and their peers: ratios measured side by side in one run.

    python bench/attributions.py [--shape minilm] [--lengths 16,32,64,128,256] [--threads 1] [--json out.json]
    python bench/attributions.py --model FOLDER --texts FILE --json out.json     # adds fidelity on a trained model

Speed (random weights; speed does not depend on them):
- share of the limit: the time the bare model would need for the token rows a method really asked, unpadded, at its best
  batch size, over the time of the whole method, from strings to word scores; and the share of the narrow limit, which
  is our own forward pass on the same rows: the last layer only where the head reads it. With one thread, whatever
  --threads says
- against peers on a text of about 27 words: `lime` with Hugging Face's pipeline as it comes, and batched by hand;
  captum's FeatureAblation with its default and 32 per evaluation; captum's integrated gradients with its 50 steps.
  They take turns; the median of the ratios of each turn counts

Fidelity (a trained classifier and a file of sentences, one a line; only those of 10 to 12 words count, of which some
are taken): how many texts a method must ask until its scores order the words as its own 20,000-sample reference does
(mean Spearman 0.95). lime and captum get the very same function of the very same words, so that only sampling and
fitting differ. A text asked twice counts twice for the peers, who do ask twice; ours asks each text once.

The bars of speed are those of the shape: MiniLM's with two threads, BERT-base's with one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from _fidelity import GOAL, fidelity, ig_convergence
from captum.attr import FeatureAblation, LayerIntegratedGradients
from lime.lime_text import LimeTextExplainer
from scoring import BATCH_TOKENS, SHAPES, make_classifier, seconds_per_row, texts_of_length, timed
from transformers import pipeline
from transformers.utils import logging

import unhans
from unhans.attributions import attribute
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.text import Words, as_variant
from unhans.types import Example

SAMPLES = 1000
LIMITS = {  # of speed on a text of about 27 words, for the shape and the number of threads they were set for
    "minilm": {"pipeline": 5.5, "by hand": 1.8, "short": 2.5, "default": 3.5, "best": 1.1, "gradients": 2.2},
    "bert-base": {"pipeline": 2.7, "by hand": 1.9, "short": 2.5, "default": 2.0, "best": 1.1, "gradients": 2.2},
}
FIDELITY = "needs a trained classifier and sentences: --model and --texts"


def asked_lengths(classifier: TransformerClassifier, work: Callable[[], Any]) -> Counter[int]:
    """How many token rows of which length a piece of work asks the model for."""
    seen: Counter[int] = Counter()
    plain = classifier.answer

    def counting(questions: Sequence[Any]) -> Any:
        seen.update(map(len, questions))
        return plain(questions)

    classifier.answer = counting
    try:
        work()
    finally:
        del classifier.answer
    return seen


def probed(lengths: Counter[int]) -> list[int]:
    """The lengths that are timed: the ends, the middle and the commonest; others are interpolated."""
    ordered = sorted(lengths)
    return sorted({ordered[0], ordered[len(ordered) // 2], ordered[-1], *(n for n, _ in lengths.most_common(2))})


def limit(lengths: Counter[int], seconds_of: Callable[[int, int], float]) -> float:
    """Seconds for these rows, unpadded, at the best batch size of whoever computes a row of so many tokens."""
    known = probed(lengths)
    speed = [min(seconds_of(n, tokens) for tokens in BATCH_TOKENS) / n for n in known]
    return sum(count * n * float(np.interp(n, known, speed)) for n, count in lengths.items())


def narrow_seconds(classifier: TransformerClassifier, length: int, tokens: int) -> float:
    """One call of our own forward pass on a full batch, per row."""
    n = max(1, tokens // length)
    rows = classifier.tokens.rows([as_variant(" ".join(["the"] * (length - 2)))] * n)
    return timed(lambda: classifier.answer(rows)) / n


def of_the_limit(
    classifier: TransformerClassifier, texts: list[str], rounds: int, samples: int
) -> dict[str, dict[str, list[float]]]:
    """Shares of both limits that leave-one-out and LIME reach, round by round."""
    works = {
        "leave_one_out": lambda: attribute(classifier, texts, target=1),
        "lime": lambda: attribute(classifier, texts[:1], method="lime", target=1, num_samples=samples),
    }
    found: dict[str, dict[str, list[float]]] = {}
    for name, work in works.items():
        lengths = asked_lengths(classifier, work)
        shares: dict[str, list[float]] = {"limit": [], "narrow limit": []}
        for _ in range(rounds):
            bare = limit(lengths, lambda n, tokens: seconds_per_row(classifier.model, n, tokens))
            classifier.tokens.forget()  # every round pays for its own tokenising
            took = timed(work)
            narrow = limit(lengths, lambda n, tokens: narrow_seconds(classifier, n, tokens))
            shares["limit"].append(bare / took)
            shares["narrow limit"].append(narrow / took)
        found[name] = shares
    return found


def peers(classifier: TransformerClassifier, text: str, rounds: int, samples: int) -> dict[str, Any]:
    """How many times as long each peer takes for one explanation of one text, turn by turn."""
    pipe = pipeline(
        "text-classification", model=classifier.model, tokenizer=classifier.tokenizer, device="cpu", top_k=None
    )
    batch = classifier.batch([Example("x", text)])
    empty = torch.where(batch.owners < 0, batch.ids, 0)

    def scores(found: list[list[dict[str, Any]]]) -> np.ndarray:
        return np.array([[one["score"] for one in sorted(line, key=lambda one: one["label"])] for line in found])

    def by_hand(texts: Sequence[str]) -> np.ndarray:
        lines = []
        for start in range(0, len(texts), 64):
            rows = classifier.tokenizer(list(texts[start : start + 64]), padding=True, return_tensors="pt")
            with torch.inference_mode():
                lines.append(classifier.model(**rows).logits.softmax(-1).numpy())
        return np.concatenate(lines)

    def lime(predict: Callable[[Sequence[str]], np.ndarray]) -> None:
        explainer = LimeTextExplainer(random_state=0)
        explainer.explain_instance(text, predict, labels=(1,), num_features=len(Words(text)), num_samples=samples)

    def forward(ids: torch.Tensor) -> torch.Tensor:
        return classifier.model(input_ids=ids).logits

    def ablate(per_eval: int) -> None:
        with torch.inference_mode():
            FeatureAblation(forward).attribute(batch.ids, empty, target=1, perturbations_per_eval=per_eval)

    def captum_ig() -> None:
        LayerIntegratedGradients(forward, classifier.model.get_input_embeddings()).attribute(
            batch.ids, empty, target=1, n_steps=50, internal_batch_size=max(1, 2048 // batch.ids.shape[1])
        )

    works = {
        # sampling as the package does it, so that both answer the same number of different texts
        "lime": lambda: attribute(classifier, [text], method="lime", target=1, num_samples=samples, sampling="plain"),
        "lime package, pipeline": lambda: lime(lambda texts: scores(pipe(list(texts)))),
        "lime package, batched": lambda: lime(by_hand),
        "leave_one_out": lambda: attribute(classifier, [text], target=1),
        "captum ablation, default": lambda: ablate(1),
        "captum ablation, 32": lambda: ablate(32),
        "integrated_gradients": lambda: attribute(classifier, [text], method="ig", target=1),
        "captum integrated gradients, 50": captum_ig,
    }
    seconds: dict[str, list[float]] = {name: [] for name in [*works, "bare"]}
    length = batch.ids.shape[1]
    for turn in range(5 * rounds):  # what takes a fraction of a second is measured more often
        for name, work in works.items():
            if turn < rounds or "lime" not in name:
                classifier.tokens.forget()  # ours pays for tokenising every time; captum gets token ids
                seconds[name].append(timed(work))
        seconds["bare"].append(seconds_per_row(classifier.model, length, 20 * length))  # as many rows as steps

    def ratios(slow: str, fast: str, times: float = 1.0) -> list[float]:
        return [a / b / times for a, b in zip(seconds[slow], seconds[fast], strict=True)]

    return {
        "words": len(Words(text)),
        "LIME against lime with pipeline()": ratios("lime package, pipeline", "lime"),
        "LIME against lime batched by hand": ratios("lime package, batched", "lime"),
        "leave-one-out against captum's default": ratios("captum ablation, default", "leave_one_out"),
        "leave-one-out against captum, 32 per evaluation": ratios("captum ablation, 32", "leave_one_out"),
        "integrated gradients against captum, 50 steps": ratios(
            "captum integrated gradients, 50", "integrated_gradients"
        ),
        "forwards for one step of integrated gradients": ratios("integrated_gradients", "bare", times=20),
    }


def main() -> None:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="minilm")
    parser.add_argument("--lengths", default="16,32,64,128,256")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of LIME on longer texts")
    parser.add_argument("--repeats", type=int, default=3, help="seeds for each point of the fidelity curves")
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0 leaves torch's choice")
    parser.add_argument("--model", type=Path, help="a trained classifier, for fidelity")
    parser.add_argument("--texts", type=Path, help="sentences, one a line, for fidelity")
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--no-speed", action="store_true", help="only fidelity; speed as the JSON file has it")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    found: dict[str, Any] = {}
    if options.no_speed and options.json and options.json.exists():
        found = json.loads(options.json.read_text(encoding="utf-8"))
    if not options.no_speed:
        found |= {"shape": options.shape, "samples": options.samples, **speed(options)}
    if options.model and options.texts:
        found["fidelity"] = on_trained(options)
    kept = {name: found[name] for name in ("shape", "samples", "of the limit", "peers", "fidelity") if name in found}
    finish(verdict(kept), options.json, **kept)


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """All that random weights can tell."""
    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = make_classifier(options.shape, corpus)
    shares, threads = {}, torch.get_num_threads()
    torch.set_num_threads(1)  # bursts of other work last longer than one of these: wall time strays by a third
    for length in map(int, options.lengths.split(",")):
        texts = texts_of_length(classifier, corpus, length, n=max(1, 256 // length))
        shares[length] = of_the_limit(classifier, texts, options.rounds, min(options.samples, 32_000 // length))
        print(f"{length:4} tokens: of the limit {shares[length]}", flush=True)
    torch.set_num_threads(threads)
    against = []
    # with punctuation about 27 and 12 words; that the short one has few different variants only many samples show
    for n, samples in ((25, options.samples), (10, SAMPLES)):
        text = " ".join(" ".join(corpus[:20]).split(" ")[:n])
        against.append(peers(classifier, text, options.rounds, samples))
        print(json.dumps(against[-1], indent=1), flush=True)
    return {"of the limit": shares, "peers": against}


def on_trained(options: argparse.Namespace) -> dict[str, Any]:
    """All that needs a model that has learned something."""
    classifier = unhans.load(options.model)
    assert isinstance(classifier, TransformerClassifier)
    lines = options.texts.read_text(encoding="utf-8").splitlines()
    sentences = [line for line in lines if 10 <= len(Words(line)) <= 12][: options.sentences]
    print(f"fidelity on {len(sentences)} sentences", flush=True)
    found = fidelity(classifier, sentences, options.repeats)
    return found | {"sentences": len(sentences), "integrated gradients": ig_convergence(classifier, sentences)}


def verdict(found: dict[str, Any]) -> list[Bar]:
    """The bars, each with its figures."""
    return [*speed_bars(found), *fidelity_bars(found)] if "of the limit" in found else fidelity_bars(found)


def speed_bars(found: dict[str, Any]) -> list[Bar]:
    """Shares of the limits, of which the worst length counts; and ratios to peers, of which the median turn does."""
    bars = []
    for method in ("leave_one_out", "lime"):
        for which, least in (("limit", 0.95), ("narrow limit", 0.8)):
            shares = tuple(median(by_length[method][which]) for by_length in found["of the limit"].values())
            bars.append(Bar("1", f"{method}, share of the {which}", ">=", least, shares, worst=True))
    long, short = found["peers"]
    limits = LIMITS[found["shape"]]

    def line(target: str, name: str, values: list[float], least: str) -> Bar:
        return Bar(target, name, ">=", limits[least], tuple(values))

    return [
        *bars,
        line("2", "LIME against lime with pipeline()", long["LIME against lime with pipeline()"], "pipeline"),
        line("2", "LIME against lime batched by hand", long["LIME against lime batched by hand"], "by hand"),
        line("3", "LIME, 12 words, against padded batches", short["LIME against lime batched by hand"], "short"),
        line("5", "leave-one-out against captum's default", long["leave-one-out against captum's default"], "default"),
        line(
            "5",
            "leave-one-out against captum's best",
            long["leave-one-out against captum, 32 per evaluation"],
            "best",
        ),
        line("7", "IG (20) against captum (50)", long["integrated gradients against captum, 50 steps"], "gradients"),
        Bar(
            "7",
            "forward passes for a step of IG",
            "<=",
            2.3,
            tuple(long["forwards for one step of integrated gradients"]),
        ),
    ]


def fidelity_bars(found: dict[str, Any]) -> list[Bar]:
    """What a trained model tells; for a shape that is only timed, nothing."""
    if found.get("shape") == "bert-base" and "fidelity" not in found:
        return []
    told = found.get("fidelity")
    needed = told["calls to 0.95"] if told else {}

    def calls(ours: str, theirs: str) -> Bar:
        name = f"{ours}: share of the calls of {theirs}"
        if needed.get(ours) and needed.get(theirs):
            return Bar("peers", name, "<=", 0.5, (needed[ours] / needed[theirs],))
        return Bar("peers", name, "<=", 0.5, reason=f"Spearman {GOAL} not reached" if told else FIDELITY)

    def spearman_bar(target: str, name: str, least: float, value: float | None) -> Bar:
        values = () if value is None else (value,)
        return Bar(target, name, ">=", least, values, tolerance=0.02, reason="" if values else FIDELITY)

    gradients = told["integrated gradients"]["20 steps, mean"] if told else None
    pairs = told["pairs"] if told and "pairs" in told else None
    return [
        calls("kernel_shap (ours)", "KernelShap (captum)"),
        calls("lime (ours, paired)", "lime (package)"),
        calls("kernel_shap (ours)", "lime (package)"),
        spearman_bar("7", "IG, 20 steps to 100, Spearman", 0.99, gradients),
        spearman_bar(
            "9",
            "LIME, 500 paired to 1,000 plain samples, ratio of Spearman to 20,000",
            1.0,
            pairs and pairs["500 paired"] / pairs["1000 plain"],
        ),
    ]


if __name__ == "__main__":
    main()
