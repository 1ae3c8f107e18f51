"""HILDIF on MNLI and HANS: eight configurations of the loop, the model as it was, and ours (the paper's Figure 1c).

    python examples/hildif_nli.py DATA ENCODER [--seeds 3] [--first 0] [--keep FOLDER] [--results FILE] [--only-tables]

DATA is a folder with the sets `mnli` and `hans_regen`; ENCODER is a Hugging Face folder or id without a classification
head. For each seed a base model is trained on 8,000 pairs of MNLI with two labels (or taken from FOLDER, where it is
kept). Anchors are from matched dev pairs that are not measured; people are simulated by the patterns that two pairs
share. Measured on HANS, so many pairs of each of the 30 subcases, and on matched dev pairs. Printed as Markdown beside
the paper's numbers; a run goes on from its `--results` file. `--trial` measures on other pairs of both sets, so that
nothing is chosen by those that are reported; `--try` adds rows with other settings than ours, and has its own results:

    python examples/hildif_nli.py DATA ENCODER --seeds 1 --trial --results trials.json --try '{"anchors": 20}'
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import unhans
from unhans.hildif import OURS, PAPER, Configuration, ablation, configurations, table
from unhans.model import TransformerClassifier
from unhans.training import Schedule
from unhans.types import Example

LABELS = ("entailment", "non-entailment")
KINDS = {"l": "LO", "s": "SUB", "c": "CON"}
LONGEST = 30  # words of a training pair that people are shown
PUBLISHED = """
| configuration | LO | SUB | CON |
|---|---|---|---|
| baseline | 99.6 / 1.0 | 100.0 / 1.3 | 99.0 / 5.7 |
| HS DA H | 94.0 / 18.2 | 98.9 / 12.1 | 93.0 / 36.1 |
| HS DA ¬H | 98.9 / 3.6 | 99.7 / 2.7 | 97.1 / 12.1 |
| HS ¬DA H | 95.5 / 6.8 | 96.4 / 5.3 | 93.7 / 22.3 |
| HS ¬DA ¬H | 98.8 / 2.2 | 98.7 / 2.3 | 95.6 / 16.1 |
| ¬HS DA H | 99.4 / 2.9 | 99.7 / 3.2 | 96.0 / 32.2 |
| ¬HS DA ¬H | 99.1 / 1.9 | 99.8 / 2.8 | 97.7 / 9.7 |
| ¬HS ¬DA H | 98.1 / 3.1 | 99.6 / 2.9 | 97.0 / 10.0 |
| ¬HS ¬DA ¬H | 99.5 / 0.9 | 99.3 / 1.7 | 97.9 / 6.1 |
""".strip()


def main() -> None:
    """Train, trace, score, copy, train on, measure."""
    options = _arguments()
    torch.set_num_threads(options.threads)
    if not options.only_tables:
        for seed in range(options.first, options.first + options.seeds):
            _seed(options, seed)
    runs = _latest(options.results)
    names = list(dict.fromkeys([*(row.name for row in _rows()), *(run["configuration"] for run in runs)]))
    print(f"As measured (entailment / non-entailment):\n\n{table(runs, names)}\n")
    print(f"By subcase:\n\n{_subcases(runs, names)}\n")
    print(f"The paper (BERT-base, ten neighbours):\n\n{PUBLISHED}\n\n{_bar(runs, names)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--each", type=int, default=50, help="pairs of each subcase of HANS")
    parser.add_argument("--dev", type=int, default=1500, help="matched dev pairs that are measured")
    parser.add_argument("--keep", type=Path, default=Path("hildif-models"), help="folder of the base models")
    parser.add_argument("--results", type=Path, default=Path("hildif.json"))
    parser.add_argument("--trial", action="store_true", help="measure on other pairs than those reported")
    parser.add_argument("--rows", nargs="*", help="only these configurations")
    parser.add_argument("--try", action="append", default=[], dest="tried", help="settings beside ours, as JSON")
    parser.add_argument("--only-tables", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _rows() -> list[Configuration]:
    """The order in which they are run: what matters most first."""
    rows = configurations(paper=replace(PAPER, longest=LONGEST), ours=replace(OURS, longest=LONGEST))
    first = ("baseline", "ours", "HS DA H")
    return sorted(rows, key=lambda row: first.index(row.name) if row.name in first else len(first))


def _tried(given: str) -> Configuration:
    """Ours with some settings changed: those of a plan, and under `training` those of a training."""
    settings = json.loads(given)
    plan = {"longest": LONGEST}
    plan |= {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    plan["training"] = {**OURS.training, **settings.get("training", {})}
    (ours,) = (row for row in configurations(ours=replace(OURS, **plan)) if row.name == "ours")
    return replace(ours, name=f"ours, {given}")


def _latest(path: Path) -> list[dict]:
    """The runs in a file; of those made again with other settings, the last."""
    runs = json.loads(path.read_text(encoding="utf-8"))
    return list({(run["configuration"], run["seed"]): run for run in runs}.values())


def _seed(options: argparse.Namespace, seed: int) -> None:
    train = _train(options.data, seed)
    base = _base(options, train, seed)
    dev, rest = _divided(_two(_read(options.data / "mnli" / "dev_matched.jsonl.gz")), options.dev, options.trial)
    hans = _drawn(_read(options.data / "hans_regen" / "eval_a.jsonl.gz", group="subcase"), options.each, options.trial)
    ablation(
        base,
        train,
        rest,
        hans,
        dev,
        rows=[row for row in _rows() if options.rows is None or row.name in options.rows]
        + [_tried(given) for given in options.tried],
        kind=lambda example: KINDS[str(example.group)[0]],
        seeds=(seed,),
        results=options.results,
        folder=options.keep / "index",
        told=_tell,
    )


def _read(path: Path, **columns: str) -> list[Example]:
    return list(unhans.read(path, text="premise", pair="hypothesis", label="label", **columns))


def _two(examples: Sequence[Example]) -> list[Example]:
    labelled = (e for e in examples if e.label is not None)
    return [replace(e, label=LABELS[0] if e.label == LABELS[0] else LABELS[1]) for e in labelled]


def _train(data: Path, seed: int) -> list[Example]:
    everything = _read(data / "mnli" / "train_part.jsonl.gz")
    by_label: dict[str | None, list[Example]] = defaultdict(list)
    for number in np.random.default_rng(seed).permutation(len(everything)):
        by_label[everything[int(number)].label].append(everything[int(number)])
    return _two([*by_label["entailment"][:4000], *by_label["neutral"][:2000], *by_label["contradiction"][:2000]])


def _base(options: argparse.Namespace, train: Sequence[Example], seed: int) -> TransformerClassifier:
    folder = options.keep / f"mnli-{seed}"
    if not folder.exists():
        print(f"# training the base model of seed {seed}", flush=True)
        fresh = unhans.load(options.encoder, labels=list(LABELS), max_length=128)
        schedule = Schedule(epochs=2, learning_rate=5e-5, batch_size=32, seed=seed)
        unhans.fit(fresh, train, schedule=schedule).save(folder)
    found = unhans.load(folder)
    assert isinstance(found, TransformerClassifier)
    return found


def _divided(dev: Sequence[Example], n: int, trial: bool) -> tuple[list[Example], list[Example]]:
    """Pairs to measure, and pairs that anchors are chosen from: neither those reported nor those tried on."""
    order = [dev[int(place)] for place in np.random.default_rng(0).permutation(len(dev))]
    return order[n : 2 * n] if trial else order[:n], order[2 * n :]


def _drawn(hans: Sequence[Example], each: int, trial: bool) -> list[Example]:
    """So many of every subcase; on trial, the next so many."""
    found: dict[str | None, list[Example]] = defaultdict(list)
    for place in np.random.default_rng(0).permutation(len(hans)):
        found[hans[int(place)].group].append(hans[int(place)])
    return [e for own in found.values() for e in (own[each : 2 * each] if trial else own[:each])]


def _tell(run: dict[str, object]) -> None:
    print(f"# {run['seed']} {run['configuration']}: {run['labels']} {run['held_out']} {run['seconds']} s", flush=True)


def _shares(runs: Sequence[dict], name: str, what: str, key: str) -> float:
    own = [run[what][key] for run in runs if run["configuration"] == name]
    return 100 * float(np.mean([right / n for right, n in own])) if own else float("nan")


def _subcases(runs: Sequence[dict], names: Sequence[str]) -> str:
    names = [name for name in names if any(run["configuration"] == name for run in runs)]
    lines = [f"| subcase | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for key in sorted({key for run in runs for key in run["groups"]}):
        cells = [f"{_shares(runs, name, 'groups', key):.0f}" for name in names]
        lines.append(f"| {key.partition('|')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _bar(runs: Sequence[dict], names: Sequence[str]) -> str:
    """Whether non-entailment rose by 15 points for at most 2 on MNLI, and what became of entailment."""
    lines = []
    for name in (name for name in names if name != "baseline"):
        seeds = {r["seed"] for r in runs if r["configuration"] == name}
        own = [r for r in runs if r["configuration"] in (name, "baseline") and r["seed"] in seeds]
        if not seeds or not any(r["configuration"] == "baseline" for r in own):
            continue
        for_, against = (
            _shares(own, name, "labels", label) - _shares(own, "baseline", "labels", label) for label in LABELS[::-1]
        )
        there = [
            100 * float(np.mean([r["held_out"][0] / r["held_out"][1] for r in own if r["configuration"] == which]))
            for which in (name, "baseline")
        ]
        lost = there[0] - there[1]
        met = "met" if for_ >= 15 and lost >= -2 else "not met"
        lines.append(
            f"- {name}: non-entailment {for_:+.1f} points, entailment {against:+.1f}, mean of both "
            f"{(for_ + against) / 2:+.1f}, MNLI matched {lost:+.1f} (bar of +15 for at most -2: {met})"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
