"""Faster engines against fp32: how much time LIME saves, and whether the words stay in order.

    python bench/engines.py [--threads 1] [--rounds 3] [--sentences 20] [--samples 1000] [--json out.json]
    python bench/engines.py --model FOLDER --texts FILE --json out.json     # on a trained classifier of your own

Order means nothing where weights are random: without a model, one of MiniLM's shape is trained on the demo's reviews
first, for some minutes, and explained on reviews that it has not seen. Sentences of 8 to 30 words are taken.

- gain: the time of LIME in fp32, from strings to word scores, over its time by an engine; they take turns, sentence by
  sentence, and a round is all sentences. Exporting is not counted: it is done once
- Spearman: of the word scores to fp32's, the mean over the sentences and the least; same samples, so that what differs
  is the engine. Beside it, two runs of fp32 with other samples: LIME's own noise
- leave-one-out with int8, which the product refuses: why it does
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _bars import Bar, finish
from scoring import timed
from transformers.utils import logging

import unhans
from unhans.attributions import attribute
from unhans.demo_data import reviews
from unhans.engines import LEAST, Choice, Engine, open_engine
from unhans.model import Classifier, TransformerClassifier
from unhans.ranks import spearman
from unhans.scratch import fresh_classifier
from unhans.text import Words
from unhans.training import Schedule, fit

GAIN = 1.3
ENGINES = ("onnx", "int8")


def trained(folder: Path | None) -> TransformerClassifier:
    """The classifier that was given, or one that has learned something in some minutes."""
    if folder is not None:
        given = unhans.load(folder)
        assert isinstance(given, TransformerClassifier), "engines are for transformers"
        return given
    examples = reviews(2000, seed=1)
    labels = sorted({str(example.label) for example in examples})
    start = fresh_classifier([example.text for example in examples], labels, layers=6, width=384)
    return fit(start, examples, schedule=Schedule(epochs=2, learning_rate=1e-4, seed=0))


def sentences(file: Path | None, n: int) -> list[str]:
    """Of the file, one a line; or reviews that nothing was trained on."""
    lines = file.read_text(encoding="utf-8").splitlines() if file else [one.text for one in reviews(400, seed=2)]
    return [line for line in lines if 8 <= len(Words(line)) <= 30][:n]


def lime(classifier: Classifier, text: str, samples: int, seed: int = 0, **how: Any) -> np.ndarray:
    """Word scores of one text."""
    (one,) = attribute(classifier, [text], method="lime", target=1, num_samples=samples, seed=seed, **how)
    return np.array(one.scores)


def gains(classifier: TransformerClassifier, engine: Engine, texts: list[str], samples: int) -> float:
    """Seconds of fp32 over seconds of the engine, both taking turns."""
    seconds = {True: 0.0, False: 0.0}
    choice = Choice(engine.name, engine)
    for number, text in enumerate(texts):
        for fast in (number % 2 == 0, number % 2 == 1):
            classifier.tokens.forget()  # everyone pays for tokenising
            how = {"engine": choice} if fast else {}
            seconds[fast] += timed(lambda how=how, text=text: lime(classifier, text, samples, **how))
    return seconds[False] / seconds[True]


def order(classifier: TransformerClassifier, engine: Engine, texts: list[str], samples: int) -> dict[str, list[float]]:
    """Spearman to fp32 for each sentence: of LIME, of LIME with other samples in fp32, and of leave-one-out."""
    found: dict[str, list[float]] = {"lime": [], "other samples": [], "leave_one_out": []}
    for text in texts:
        exact = lime(classifier, text, samples)
        found["lime"].append(spearman(exact, lime(classifier, text, samples, engine=Choice(engine.name, engine))))
        found["other samples"].append(spearman(exact, lime(classifier, text, samples, seed=1)))
        # the engine in the classifier's place: as a method's engine it would be refused
        lines = [np.array(attribute(one, [text], target=1)[0].scores) for one in (classifier, engine)]
        found["leave_one_out"].append(spearman(*lines))
    return found


def verdict(results: dict[str, Any]) -> list[Bar]:
    """The bars of int8, and the other figures beside them."""
    bars = []
    for name, found in results.items():
        gain, least = (GAIN, LEAST) if name == "int8" else (None, LEAST)
        means = {method: float(np.mean(values)) for method, values in found["order"].items()}
        bars += [
            Bar("8", f"LIME with {name}: Spearman to fp32", ">=", least, (means["lime"],), tolerance=0.02),
            Bar("8", f"LIME with {name}: gain", ">=", gain, tuple(found["gains"])),
            Bar("8", f"leave-one-out with {name}: Spearman to fp32", ">=", None, (means["leave_one_out"],)),
        ]
    noise = float(np.mean(results["int8"]["order"]["other samples"]))
    return [*bars, Bar("8", "LIME in fp32 with other samples: Spearman", ">=", None, (noise,))]


def main() -> None:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a trained classifier; without, a small one is trained")
    parser.add_argument("--texts", type=Path, help="sentences, one a line")
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000, help="of LIME")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0 leaves torch's choice")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    classifier, texts = trained(options.model), sentences(options.texts, options.sentences)
    results: dict[str, Any] = {}
    for name in ENGINES:
        engine = open_engine(classifier, name)
        rounds = [gains(classifier, engine, texts, options.samples) for _ in range(options.rounds)]
        results[name] = {"gains": rounds, "order": order(classifier, engine, texts, options.samples)}
        least = min(results[name]["order"]["lime"])
        print(f"{name}: gain {np.median(rounds):.2f}x, least Spearman of a sentence {least:.3f}", flush=True)
    model = "given by --model" if options.model else "trained on the demo's reviews"  # a path would tell of one machine
    settings = {"model": model, "sentences": len(texts), "samples": options.samples, "rounds": options.rounds}
    finish(verdict(results), options.json, settings=settings, results=results)


if __name__ == "__main__":
    main()
