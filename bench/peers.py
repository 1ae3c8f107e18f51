"""Every method that has a peer, against it at equal settings: ratios measured side by side in one run.

    python bench/peers.py [--shape minilm] [--texts 8] [--samples 200] [--rounds 5] [--threads 1] [--json out.json]

Methods of attribution explain the same texts of 25 words, one after the other, from strings to word scores; the peers
are given token ids, as many samples or steps, and as good batches as they take (captum: 32 evaluations at once).
Leave-one-out, integrated gradients and the lime package have bars of their own in `attributions.py`. Without a peer
that runs on such a model: attention rollout, LRP (captum's knows no attention), guided backpropagation and deconvnets
(captum's know ReLU alone), patterns, and methods with a language model.

Methods by gradients do the same passes as captum's on a single text, so there the two can only be level. Many texts
ours take in one call, where they are batched; captum takes tensors and leaves that to its user. Both are measured.

Of DeepLift the two do not compute the same: captum's knows neither GELU nor attention and falls back to gradients
there, ours has rules for them and adds up exactly, which is dearer.

- confident_learning: heads by folds and how much surer than usual they are, against scikit-learn's logistic
  regression by folds and cleanlab's scores, on the same embeddings
- embedding_neighbours: the nearest of many training texts for a text, against one bare forward pass and faiss

The weights are random (speed does not depend on them). Works take turns; the median of the ratios counts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from captum.attr import (
    GradientShap,
    KernelShap,
    LayerDeepLift,
    LayerGradientXActivation,
    Lime,
    NoiseTunnel,
    Saliency,
)
from scoring import SHAPES, make_classifier, timed
from threadpoolctl import threadpool_limits
from transformers.utils import logging

from unhans.attributions import attribute
from unhans.demo_data import reviews
from unhans.doubts import confident_learning as learning
from unhans.influences import prepare
from unhans.model import Batch, TransformerClassifier
from unhans.scoring import How
from unhans.types import Example

Work = Callable[[], Any]
NOISY = {"smoothgrad": "smoothgrad", "smoothgrad_squared": "smoothgrad_sq", "vargrad": "vargrad"}
BY_GRADIENTS = (*NOISY, "saliency", "input_x_gradient", "deeplift", "gradient_shap")


class Captum:
    """captum on single texts, each as token ids with a baseline of padding tokens."""

    def __init__(self, classifier: TransformerClassifier, texts: Sequence[str]) -> None:
        self.model = classifier.model
        self.layer = self.model.get_input_embeddings()
        self.batches = [classifier.batch([Example("x", text)]) for text in texts]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of token ids."""
        return self.model(input_ids=ids).logits

    def from_embeddings(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Logits of embeddings."""
        return self.model(inputs_embeds=embeddings).logits

    def on_each(self, explain: Callable[[torch.Tensor, torch.Tensor], Any]) -> Work:
        """A method on every text: its ids, and the same with nothing but padding between the control tokens."""

        def work() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for batch in self.batches:
                    explain(batch.ids, self.empty(batch))

        return work

    @staticmethod
    def empty(batch: Batch) -> torch.Tensor:
        """The text with padding in place of its words."""
        return torch.where(batch.owners < 0, batch.ids, 0)

    def works(self, samples: int) -> dict[str, Work]:
        """The peer of each method, under the method's name."""
        at_once = {"perturbations_per_eval": 32}
        sampled = {
            name: self.on_each(
                lambda ids, empty, kind=kind: kind(self.forward).attribute(
                    ids, empty, target=1, n_samples=samples, **at_once
                )
            )
            for name, kind in (("kernel_shap", KernelShap), ("lime", Lime))
        }
        noisy = {
            name: self.on_each(
                lambda ids, _, kind=kind: NoiseTunnel(Saliency(self.from_embeddings)).attribute(
                    self.layer(ids).detach(), nt_type=kind, nt_samples=25, stdevs=0.15, target=1, abs=False
                )
            )
            for name, kind in NOISY.items()
        }
        return {
            **sampled,
            **noisy,
            "saliency": self.on_each(
                lambda ids, _: Saliency(self.from_embeddings).attribute(self.layer(ids).detach(), target=1)
            ),
            "input_x_gradient": self.on_each(
                lambda ids, _: LayerGradientXActivation(self.forward, self.layer).attribute(ids, target=1)
            ),
            "deeplift": self.on_each(
                lambda ids, empty: LayerDeepLift(Wrapped(self.model), self.layer).attribute(ids, empty, target=1)
            ),
            "gradient_shap": self.on_each(
                lambda ids, empty: GradientShap(self.from_embeddings).attribute(
                    self.layer(ids).detach(), self.layer(empty).detach(), n_samples=25, target=1
                )
            ),
        }


class Wrapped(torch.nn.Module):
    """A module whose output is the logits, for the peer that takes modules only."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of token ids."""
        return self.model(input_ids=ids).logits


def shap_work(classifier: TransformerClassifier, texts: Sequence[str], evaluations: int) -> Work:
    """shap's partition explainer with its own text masker, asked in batches."""
    import shap

    def predict(some: Sequence[str]) -> np.ndarray:
        rows = classifier.tokenizer(list(map(str, some)), padding=True, return_tensors="pt")
        with torch.inference_mode():
            return classifier.model(**rows).logits.softmax(-1).numpy()

    explainer = shap.Explainer(predict, shap.maskers.Text(classifier.tokenizer), algorithm="partition", silent=True)
    return lambda: explainer(list(texts), max_evals=evaluations, batch_size=64)


def ours(
    classifier: TransformerClassifier, texts: Sequence[str], method: str, samples: int, in_one_call: bool = False
) -> Work:
    """One of our methods with as many samples, on one text after the other or on all at once."""
    options: dict[str, Any] = {}
    if method in ("kernel_shap", "lime"):
        options = {"num_samples": samples} | ({"sampling": "plain"} if method == "lime" else {})
    if method == "partition_shap":
        options = {"max_evals": samples}
    if method == "gradient_shap":
        options = {"background": [Example("b", texts[0])]}

    def work() -> None:
        classifier.tokens.forget()  # ours pays for tokenising every time
        for some in [texts] if in_one_call else texts:
            attribute(classifier, some, method=method, target=1, **options)

    return work


def attributing(classifier: TransformerClassifier, texts: Sequence[str], samples: int) -> dict[str, tuple[Work, Work]]:
    """Ours and the peer, for each method of attribution."""
    theirs = Captum(classifier, texts).works(samples)
    theirs["partition_shap"] = shap_work(classifier, texts, samples)
    pairs = {name: (ours(classifier, texts, name, samples), work) for name, work in theirs.items()}
    at_once = {f"{name}, {len(texts)} texts in one call": name for name in theirs if name in BY_GRADIENTS}
    return pairs | {
        told: (ours(classifier, texts, name, samples, in_one_call=True), theirs[name]) for told, name in at_once.items()
    }


def doubting(rows: int) -> tuple[Work, Work]:
    """Labels doubted by heads that did not see them; ours, and scikit-learn with cleanlab."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    rng = np.random.default_rng(0)
    given = rng.integers(0, 2, rows)
    points = rng.standard_normal((rows, 384)) + given[:, None] * 0.2
    flipped = np.where(rng.random(rows) < 0.1, 1 - given, given)

    def theirs() -> None:
        says = cross_val_predict(LogisticRegression(max_iter=200), points, flipped, cv=5, method="predict_proba")
        get_label_quality_scores(flipped, says)

    def own() -> None:
        says = learning.out_of_fold(
            points, flipped, np.arange(rows), 2, np.random.default_rng(0), How(), folds=5, penalty=10.0
        )
        learning._heights(says, flipped)

    return own, theirs


def neighbouring(classifier: TransformerClassifier, corpus: Sequence[str], rows: int) -> tuple[Work, Work]:
    """The twenty nearest training texts of a text; ours, and a bare forward pass with faiss."""
    import faiss

    labels = classifier.labels
    train = [Example(str(n), text, label=labels[n % 2]) for n, text in enumerate(corpus[:rows])]
    index = prepare(classifier, train, method="embedding_neighbours")
    anchor = Example("a", corpus[-1], label=labels[0])
    flat = faiss.IndexFlatIP(classifier.model.config.hidden_size)
    flat.add(np.random.default_rng(0).standard_normal((rows, flat.d)).astype(np.float32))

    def theirs() -> None:
        row = classifier.tokenizer(anchor.text, return_tensors="pt")
        with torch.inference_mode():
            states = classifier.model.base_model(**row).last_hidden_state[:, 0]
        flat.search(states.numpy(), 20)

    return lambda: index.neighbours(anchor, index.scores(anchor)[0], 20), theirs


def main() -> None:
    """Measure in turns, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="minilm")
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000, help="training examples for doubts and neighbours")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", help="some of the methods, separated by commas")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    threadpool_limits(options.threads)  # numpy's: idle threads that spin would be counted
    logging.set_verbosity_error()
    corpus = [example.text for example in reviews(max(2000, options.rows + 1), seed=1)]
    classifier = make_classifier(options.shape, corpus)
    words = " ".join(corpus).split(" ")
    texts = [" ".join(words[25 * n : 25 * (n + 1)]) for n in range(options.texts)]
    pairs = attributing(classifier, texts, options.samples)
    reasons = {}
    if find_spec("cleanlab") and find_spec("sklearn"):
        pairs["confident_learning"] = doubting(options.rows)
    else:
        reasons["confident_learning"] = "cleanlab or scikit-learn is not installed"
    if find_spec("faiss"):
        pairs["embedding_neighbours"] = neighbouring(classifier, corpus, options.rows)
    else:
        reasons["embedding_neighbours"] = "faiss is not installed"
    if options.only:
        asked = options.only.split(",")
        pairs = {name: pair for name, pair in pairs.items() if name.split(",")[0] in asked}
    ratios = measured(pairs, options.rounds)
    bars = [Bar("peers", told(name), ">=", 1.0, tuple(values)) for name, values in ratios.items()]
    bars += [Bar("peers", told(name), ">=", 1.0, reason=reason) for name, reason in reasons.items()]
    settings = {"shape": options.shape, "texts": options.texts, "samples": options.samples, "rows": options.rows}
    finish(bars, options.json, settings=settings | {"rounds": options.rounds})


PEERS = {
    "partition_shap": "shap",
    "confident_learning": "scikit-learn and cleanlab",
    "embedding_neighbours": "a forward pass and faiss",
}


def told(name: str) -> str:
    """A method and its peer."""
    return f"{name} against {PEERS.get(name, 'captum')}"


def measured(pairs: dict[str, tuple[Work, Work]], rounds: int) -> dict[str, list[float]]:
    """How many times as long the peer takes, round by round; the first, which warms up, does not count."""
    ratios: dict[str, list[float]] = {name: [] for name in pairs}
    for turn in range(rounds + 1):
        for name, (own, theirs) in pairs.items():
            took = timed(own)
            ratio = timed(theirs) / took
            if turn:
                ratios[name].append(ratio)
            print(f"{name:24} {ratio:6.2f}{'' if turn else ' (warming up)'}", flush=True)
    return ratios


if __name__ == "__main__":
    main()
