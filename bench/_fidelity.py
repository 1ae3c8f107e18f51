"""How many texts a sampled method must ask until it orders the words as its own reference does; for attributions.py."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import KernelShap
from lime.lime_text import LimeTextExplainer
from scipy.stats import spearmanr

from unhans.attributions import attribute
from unhans.model import TransformerClassifier
from unhans.scoring import ScoreCache
from unhans.text import Words

REFERENCE = 20_000
GRID = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400)
GOAL = 0.95


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
    halves: list[float] = []
    wholes: list[float] = []
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
        truth = ours("lime", REFERENCE, 0)[1]
        for seed in range(1, repeats + 1):
            halves.append(spearman(ours("lime", 500, seed)[1], truth))
            wholes.append(spearman(ours("lime", 1000, seed, sampling="plain")[1], truth))
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
    needed = {name: calls_needed(curve) for name, curve in means.items()}
    pairs = {"500 paired": float(np.nanmean(halves)), "1000 plain": float(np.nanmean(wholes))}
    return {"curves": means, "calls to 0.95": needed, "pairs": pairs}


def ig_convergence(classifier: TransformerClassifier, sentences: list[str]) -> dict[str, float]:
    """Spearman of few steps of integrated gradients to 100, mean and least over the sentences."""
    reference = attribute(classifier, sentences, method="ig", target=1, n_steps=100)
    found = {}
    for steps in (5, 10, 20):
        some = attribute(classifier, sentences, method="ig", target=1, n_steps=steps)
        values = [spearman(a.scores, b.scores) for a, b in zip(some, reference, strict=True)]
        found[f"{steps} steps, mean"], found[f"{steps} steps, least"] = float(np.mean(values)), min(values)
    return found
