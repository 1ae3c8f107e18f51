"""Strange texts: which detectors tell them from the texts that a model was taught on?

    python examples/out_of_distribution.py DATA MODEL [--texts 500] [--train 5000] [--results FOLDER]

DATA is a folder with the sets `sst`, `stf`, `mnli` and `yelp_polarity_1k`, MODEL the folder of a classifier trained on
the first 5,000 labelled training sentences of SST. The usual texts are sentences of SST's test set; the strange ones
those of the other sets. The measure is the area under the ROC curve: the share of pairs of a usual and a strange text
in which the strange one has the higher score, so 0.5 is chance. Intervals (95 %) come from drawing texts again. The
first row is a control: SST's dev set is as usual as its test set. Yelp's reviews come whole, and cut to about the
length of a sentence of SST, because length alone tells the whole ones. The language model is a small one, fitted on the
training sentences (about a minute). With `--results` it is kept there with the scores, and a run goes on from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

import unhans
from unhans.detectors import detect, detector, strange_share
from unhans.types import Example

LABELS = ("negative", "positive")
Floats = NDArray[np.float64]
_DRAWS = 500
_WORDS = 19  # of a sentence of SST, on average


def main() -> None:
    """Read, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=500, help="of each set")
    parser.add_argument("--train", type=int, default=5000, help="training sentences that detectors may look at")
    parser.add_argument("--results", type=Path, help="folder for the language model and the scores")
    parser.add_argument("--methods", help="only these detectors, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    classifier = unhans.load(options.model)
    train, usual, sets = _sets(options.data, options.texts, options.train)
    names = options.methods.split(",") if options.methods else detector.names
    asks = any("language_model" in detector[name].asks for name in names)
    language_model = _language_model(options.results, [example.text for example in train]) if asks else None
    every, ends = [*usual, *(text for texts in sets.values() for text in texts)], [len(usual)]
    ends += [ends[0] + n for n in np.cumsum([len(texts) for texts in sets.values()])]
    scores: dict[str, dict[str, Floats]] = {}
    for name in names:
        start, kept = time.perf_counter(), options.results and options.results / f"{name}-{len(train)}-{len(every)}.npy"
        if kept and kept.exists():
            found = np.load(kept)
        else:
            found = detect(classifier, train, every, method=name, language_model=language_model)
            print(f"{name}: {time.perf_counter() - start:.0f} s for {len(every):,} texts", flush=True)
        if kept:
            np.save(kept, found)
        scores[name] = dict(zip(["usual", *sets], np.split(found, ends[:-1]), strict=True))
    print(f"\nAUROC against {len(usual)} sentences of SST's test set\n\n{_areas(scores)}")
    print(f"\nShare that is stranger than 95 % of SST's test sentences\n\n{_shares(scores)}")


def _sets(data: Path, size: int, n_train: int) -> tuple[list[Example], list[Example], dict[str, list[Example]]]:
    """What was trained on, what is usual, and what is strange."""
    sst = unhans.read(data / "sst", label="label2")
    train = [e for e in sst.split("train") if e.label is not None][:n_train]
    train = [Example(e.id, e.text, label=LABELS[int(str(e.label))]) for e in train]
    rng = np.random.default_rng(0)

    def some(texts: Sequence[str]) -> list[Example]:
        kept = list(dict.fromkeys(text for text in texts if text.strip()))
        chosen = rng.permutation(len(kept))[:size]
        return [Example(str(n), kept[n]) for n in chosen]

    yelp = [e.text for e in unhans.read(data / "yelp_polarity_1k")]
    sets = {
        "SST dev (control)": [e.text for e in sst.split("dev")],
        "Stormfront sentences": [e.text for e in unhans.read(data / "stf")],
        "MNLI premises": [e.text for e in unhans.read(data / "mnli" / "dev_matched.jsonl.gz")],
        "Yelp reviews": yelp,
        f"Yelp, first {_WORDS} words": [" ".join(text.split()[:_WORDS]) for text in yelp],
    }
    return train, some([e.text for e in sst.split("test")]), {name: some(texts) for name, texts in sets.items()}


def _language_model(results: Path | None, texts: Sequence[str]) -> unhans.LanguageModel:
    folder = results and results / f"language-model-{len(texts)}"
    if folder and folder.exists():
        return unhans.LanguageModel.open(folder)
    made = unhans.LanguageModel.fit(texts)
    if folder:
        results.mkdir(parents=True, exist_ok=True)
        made.save(folder)
    return made


def _areas(scores: dict[str, dict[str, Floats]]) -> str:
    def cell(own: dict[str, Floats], name: str) -> str:
        area, low, high = auroc(own["usual"], own[name])
        return f"{area:.3f} ({low:.3f} to {high:.3f})"

    return _table(scores, cell)


def _shares(scores: dict[str, dict[str, Floats]]) -> str:
    def cell(own: dict[str, Floats], name: str) -> str:
        share, low, high = strange_share(own["usual"], own[name])
        return f"{share:.2f} ({low:.2f} to {high:.2f})"

    return _table(scores, cell)


def _table(scores: dict[str, dict[str, Floats]], cell) -> str:
    names = [name for name in next(iter(scores.values())) if name != "usual"]
    lines = [f"| | {' | '.join(f'`{name}`' for name in scores)} |", "|---" * (len(scores) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cell(own, name) for own in scores.values()) + " |" for name in names]
    return "\n".join(lines)


def auroc(usual: Floats, strange: Floats) -> tuple[float, float, float]:
    """The area under the ROC curve, and an interval from drawing texts of both sides again."""
    rng = np.random.default_rng(0)
    drawn = [_area(rng.choice(usual, len(usual)), rng.choice(strange, len(strange))) for _ in range(_DRAWS)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return _area(usual, strange), float(low), float(high)


def _area(usual: Floats, strange: Floats) -> float:
    """By ranks (Mann and Whitney): ties count half."""
    n = len(strange)
    ranks = rankdata(np.concatenate([usual, strange]))[len(usual) :]
    return float((ranks.sum() - n * (n + 1) / 2) / (n * len(usual)))


if __name__ == "__main__":
    main()
