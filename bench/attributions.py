"""Explanation methods against the bare model and their peers: ratios measured side by side in one run.

    python bench/attributions.py [--shape minilm] [--lengths 16,32,64,128,256] [--threads 1] [--json out.json]
    python bench/attributions.py --model FOLDER --texts FILE --json out.json     # adds fidelity on a trained model

Speed (random weights; speed does not depend on them):
- share of the limit: the time the bare model would need for the token rows a method really asked, unpadded, at its best
  batch size, over the time of the whole method, from strings to word scores
- against peers on a text of about 27 words: `lime` with Hugging Face's pipeline as it comes, and batched by hand;
  captum's FeatureAblation with its default and 32 per evaluation; captum's integrated gradients with its 50 steps

Fidelity (a trained classifier and a file of sentences, one a line; only those of 10 to 12 words count, of which 20 are
taken): how many texts a method must ask until its scores order the words as its own 20,000-sample reference does
(mean Spearman 0.95). lime and captum get the very same function of the very same words, so that only sampling and
fitting differ. A text asked twice counts twice for the peers, who do ask twice; ours asks each text once.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum.attr import FeatureAblation, KernelShap, LayerIntegratedGradients
from lime.lime_text import LimeTextExplainer
from scipy.stats import spearmanr
from scoring import BATCH_TOKENS, SHAPES, clock, machine, make_classifier, seconds_per_row, texts_of_length
from transformers import pipeline
from transformers.utils import logging

import unhans
from unhans.attributions import attribute
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scoring import ScoreCache
from unhans.text import Words
from unhans.types import Example

SAMPLES = 1000
REFERENCE = 20_000
GRID = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400)
GOAL = 0.95


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = clock()
    work()
    return clock() - started


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


def limit(classifier: TransformerClassifier, lengths: Counter[int], rounds: int) -> float:
    """Seconds the bare forward pass needs for these rows, unpadded, at its best batch size; some are interpolated."""
    ordered = sorted(lengths)
    probed = sorted({ordered[0], ordered[len(ordered) // 2], ordered[-1], *(n for n, _ in lengths.most_common(2))})
    speed = [
        min(seconds_per_row(classifier.model, n, tokens) for tokens in BATCH_TOKENS for _ in range(rounds)) / n
        for n in probed
    ]
    return sum(count * n * float(np.interp(n, probed, speed)) for n, count in lengths.items())


def of_the_limit(classifier: TransformerClassifier, texts: list[str], rounds: int, samples: int) -> dict[str, float]:
    """Share of the limit that leave-one-out and LIME reach."""
    works = {
        "leave_one_out": lambda: attribute(classifier, texts, target=1),
        "lime": lambda: attribute(classifier, texts[:1], method="lime", target=1, num_samples=samples),
    }
    found = {}
    for name, work in works.items():
        lengths = asked_lengths(classifier, work)
        shares = []
        for _ in range(rounds):
            classifier.tokens.forget()  # every round pays for its own tokenising
            took = timed(work)
            shares.append(limit(classifier, lengths, 1) / took)
        found[name] = max(shares)
    return found


def peers(classifier: TransformerClassifier, text: str, rounds: int) -> dict[str, float]:
    """How many times as long each peer takes for one explanation of one text."""
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
        explainer.explain_instance(text, predict, labels=(1,), num_features=len(Words(text)), num_samples=SAMPLES)

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
        "lime": lambda: attribute(classifier, [text], method="lime", target=1, num_samples=SAMPLES, sampling="plain"),
        "lime package, pipeline": lambda: lime(lambda texts: scores(pipe(list(texts)))),
        "lime package, batched": lambda: lime(by_hand),
        "leave_one_out": lambda: attribute(classifier, [text], target=1),
        "captum ablation, default": lambda: ablate(1),
        "captum ablation, 32": lambda: ablate(32),
        "integrated_gradients": lambda: attribute(classifier, [text], method="ig", target=1),
        "captum integrated gradients, 50": captum_ig,
    }
    best = dict.fromkeys(works, float("inf"))
    for turn in range(5 * rounds):  # what takes a fraction of a second is measured more often
        for name, work in works.items():
            if turn < rounds or "lime" not in name:
                classifier.tokens.forget()  # ours pays for tokenising every time; captum gets token ids
                best[name] = min(best[name], timed(work))
    length = batch.ids.shape[1]
    bare = min(seconds_per_row(classifier.model, length, 20 * length) for _ in range(5 * rounds))  # as many as steps
    return {
        "words": len(Words(text)),
        "LIME against lime with pipeline()": best["lime package, pipeline"] / best["lime"],
        "LIME against lime batched by hand": best["lime package, batched"] / best["lime"],
        "leave-one-out against captum's default": best["captum ablation, default"] / best["leave_one_out"],
        "leave-one-out against captum, 32 per evaluation": best["captum ablation, 32"] / best["leave_one_out"],
        "integrated gradients against captum, 50 steps": best["captum integrated gradients, 50"]
        / best["integrated_gradients"],
        "forwards for one step of integrated gradients": best["integrated_gradients"] / 20 / bare,
    }


# -- fidelity


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Rank correlation."""
    return float(spearmanr(a, b).statistic)


def calls_needed(curve: dict[int, tuple[float, float]]) -> float | None:
    """Texts asked where the mean Spearman first reaches the goal, between grid points on a logarithmic scale."""
    before = None
    for asked, value in curve.values():
        if value >= GOAL:
            if before is None:
                return asked
            share = (GOAL - before[1]) / (value - before[1])
            return float(np.exp(np.log(before[0]) + share * (np.log(asked) - np.log(before[0]))))
        before = (asked, value)
    return None


def fidelity(classifier: TransformerClassifier, sentences: list[str], repeats: int) -> dict[str, Any]:
    """For each sampled method: mean Spearman to its own 20,000-sample reference by the number of texts asked."""
    cache = ScoreCache(size=10_000_000)  # every method pays for each text in calls, none twice in time
    curves: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for done, text in enumerate(sentences):
        words = Words(text)
        n = len(words)

        def probability(masks: np.ndarray, words: Words = words) -> np.ndarray:
            variants = [words.without(np.flatnonzero(mask == 0).tolist()) for mask in masks]
            return np.exp(classifier.log_probs(variants, cache=cache))

        def ours(method: str, samples: int, seed: int, text: str = text, **options: Any) -> tuple[float, np.ndarray]:
            (one,) = attribute(
                classifier, [text], method=method, target=1, num_samples=samples, seed=seed, cache=cache, **options
            )
            return one.asked, np.array(one.scores)

        def lime(samples: int, seed: int, n: int = n, ask: Any = probability) -> tuple[float, np.ndarray]:
            joined = " ".join(f"w{number}" for number in range(n))

            def predict(texts: Sequence[str]) -> np.ndarray:
                here = [{int(word[1:]) for word in one.split()} for one in texts]
                return ask(np.array([[number in kept for number in range(n)] for kept in here]))

            explainer = LimeTextExplainer(bow=False, mask_string="", split_expression=" ", random_state=seed)
            found = explainer.explain_instance(joined, predict, labels=(1,), num_features=n, num_samples=samples)
            scores = np.zeros(n)
            for place, score in found.as_map()[1]:
                scores[place] = score
            return samples, scores

        def captum(samples: int, seed: int, n: int = n, ask: Any = probability) -> tuple[float, np.ndarray]:
            torch.manual_seed(seed)
            np.random.seed(seed)

            def forward(masks: torch.Tensor) -> torch.Tensor:
                return torch.from_numpy(ask(masks.numpy())[:, 1])

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = KernelShap(forward).attribute(
                    torch.ones(1, n), torch.zeros(1, n), n_samples=samples, perturbations_per_eval=256
                )
            return samples, found[0].numpy()

        methods: dict[str, Callable[[int, int], tuple[float, np.ndarray]]] = {
            "lime (ours, paired)": lambda s, seed: ours("lime", s, seed),
            "lime (package)": lime,
            "kernel_shap (ours)": lambda s, seed: ours("kernel_shap", s, seed, unit="probability"),
            "KernelShap (captum)": captum,
        }
        for name, method in methods.items():
            _, reference = method(REFERENCE, 0)
            for samples in GRID:
                for seed in range(1, repeats + 1):
                    asked, scores = method(samples, seed)
                    curves.setdefault(name, {}).setdefault(samples, []).append((asked, spearman(scores, reference)))
        print(f"  fidelity: {done + 1} of {len(sentences)} sentences", flush=True)
    means = {
        name: {s: (float(np.mean([a for a, _ in v])), float(np.nanmean([r for _, r in v]))) for s, v in curve.items()}
        for name, curve in curves.items()
    }
    return {"curves": means, "calls to 0.95": {name: calls_needed(curve) for name, curve in means.items()}}


def ig_convergence(classifier: TransformerClassifier, sentences: list[str]) -> dict[str, float]:
    """Spearman of few steps of integrated gradients to 100, mean and least over the sentences."""
    reference = attribute(classifier, sentences, method="ig", target=1, n_steps=100)
    found = {}
    for steps in (5, 10, 20):
        some = attribute(classifier, sentences, method="ig", target=1, n_steps=steps)
        values = [spearman(a.scores, b.scores) for a, b in zip(some, reference, strict=True)]
        found[f"{steps} steps, mean"], found[f"{steps} steps, least"] = float(np.mean(values)), min(values)
    return found


def main() -> None:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="minilm")
    parser.add_argument("--lengths", default="16,32,64,128,256")
    parser.add_argument("--rounds", type=int, default=2)
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
    if options.json and options.json.exists():
        found = json.loads(options.json.read_text(encoding="utf-8"))
    if not options.no_speed:
        found |= {"machine": machine(), "shape": options.shape, **speed(options)}
    if options.model and options.texts:
        found["fidelity"] = on_trained(options)
    found["bars"] = verdict(found)
    print("\n".join([found.get("machine", ""), *found["bars"]]))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """All that random weights can tell."""
    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = make_classifier(options.shape, corpus)
    shares = {}
    for length in map(int, options.lengths.split(",")):
        texts = texts_of_length(classifier, corpus, length, n=max(1, 256 // length))
        shares[length] = of_the_limit(classifier, texts, options.rounds, min(SAMPLES, 32_000 // length))
        print(f"{length:4} tokens: of the limit {shares[length]}", flush=True)
    against = []
    for n in (25, 10):  # with punctuation about 27 and 12 words
        text = " ".join(" ".join(corpus[:20]).split(" ")[:n])
        against.append(peers(classifier, text, options.rounds))
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


def verdict(found: dict[str, Any]) -> list[str]:
    """The bars, each with its figure."""

    def line(name: str, value: float | None, bar: float, least: bool = True) -> str:
        ok = value is not None and (value >= bar if least else value <= bar)
        told = "not reached" if value is None else f"{value:.3g}"
        return f"{'holds' if ok else 'FAILS'}: {name} {'>=' if least else '<='} {bar}: {told}"

    bars = []
    if "of the limit" in found:
        for name in ("leave_one_out", "lime"):
            worst = min(shares[name] for shares in found["of the limit"].values())
            bars.append(line(f"{name}, share of the limit (worst length)", worst, 0.95))
        long, short = found["peers"]
        bars += [
            line("LIME against lime with pipeline()", long["LIME against lime with pipeline()"], 5.5),
            line("LIME against lime batched by hand", long["LIME against lime batched by hand"], 1.8),
            line("LIME, 12 words, against padded batches", short["LIME against lime batched by hand"], 2.5),
            line("leave-one-out against captum's default", long["leave-one-out against captum's default"], 3.5),
            line("leave-one-out against captum's best", long["leave-one-out against captum, 32 per evaluation"], 1.1),
            line("IG (20) against captum (50)", long["integrated gradients against captum, 50 steps"], 2.2),
            line("forwards per IG step", long["forwards for one step of integrated gradients"], 2.3, least=False),
        ]
    if "fidelity" in found:
        needed = found["fidelity"]["calls to 0.95"]
        for name, peer in (("kernel_shap (ours)", "KernelShap (captum)"), ("lime (ours, paired)", "lime (package)")):
            ratio = needed[name] / needed[peer] if needed[name] and needed[peer] else None
            bars.append(line(f"{name}: share of the calls of {peer}", ratio, 0.5, least=False))
        if needed["kernel_shap (ours)"] and needed["lime (package)"]:
            ratio = needed["kernel_shap (ours)"] / needed["lime (package)"]
            bars.append(line("kernel_shap (ours): share of the calls of lime (package)", ratio, 0.5, least=False))
        bars.append(
            line("IG, 20 steps to 100, Spearman", found["fidelity"]["integrated gradients"]["20 steps, mean"], 0.99)
        )
    return bars


if __name__ == "__main__":
    main()
