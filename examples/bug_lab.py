"""Which explanation sees which planted bug: on generated reviews, on SST, and layer by layer.

    python examples/bug_lab.py DATA ENCODER [--part reviews|sst|layers] [--results FOLDER]

DATA is a folder with the set `sst`, ENCODER the folder or id of a Hugging Face encoder; both are needed for the part
`sst` only. Without `--part` all three run. Tables are printed as Markdown; with `--results` each lab is kept there as
JSON, and one that is there is not run again.

- `reviews`: a small transformer (2 layers, 64 wide) from scratch on generated reviews of three domains; every bug, and
  every attribution method that needs no language model.
- `sst`: the encoder trained on sentences of SST; some bugs, and the methods that take few passes.
- `layers`: the curve over layers of deep averaging networks with ReLUs, the text models nearest to the paper's
  convolutional ones, for the methods that change how gradients flow back, with and without the sign of the scores.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import unhans
from unhans import lab
from unhans.attributions import attribution
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_averaging_classifier, fresh_classifier
from unhans.training import Schedule, accuracy, fit
from unhans.types import Lab, LayerCurve, from_json, to_json

LABELS = ("negative", "positive")
CUES = "zyx as it happens women woman girls female *"  # so that a fresh vocabulary knows them
FEW = {"num_samples": 200}  # of what methods that sample ask
SAMPLING = ("kernel_shap", "lime")
ON_SST = ("clean", "spurious_word", "flipped_labels", "reinitialised", "tokenizer_mismatch", "typos", "other_language")
BACK = (
    "leave_one_out",
    "input_x_gradient",
    "integrated_gradients",
    "lrp",
    "guided_backprop",
    "deconvnet",
    "pattern_net",
    "pattern_attribution",
)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("encoder", nargs="?")
    parser.add_argument("--part", choices=["reviews", "sst", "layers"], action="append")
    parser.add_argument("--results", type=Path, help="folder in which labs are kept")
    parser.add_argument("--examples", type=int, default=60, help="texts for each bug")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parts = options.part or ["reviews", "sst", "layers"]
    if "sst" in parts and options.encoder is None:
        parser.error("the part sst needs DATA and ENCODER; choose others with --part")
    if "reviews" in parts:
        show("Generated reviews", kept(options.results, "reviews", lambda: on_reviews(options.examples)))
    if "sst" in parts:
        made = kept(options.results, "sst", lambda: on_sst(options.data, options.encoder, options.examples))
        show("SST", made)
    if "layers" in parts:
        by_layers()


def kept(folder: Path | None, name: str, make: Callable[[], Lab]) -> Lab:
    """The lab of this name from the folder, or made now and put there."""
    file = None if folder is None else folder / f"{name}.json"
    if file is not None and file.is_file():
        return from_json(Lab, file.read_text(encoding="utf-8"))
    made = make()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(to_json(made), encoding="utf-8")
    return made


def on_reviews(examples: int) -> Lab:
    """The whole matrix on generated reviews."""
    train, test = reviews(1200, seed=0), reviews(400, seed=1, split="test")
    start = fresh_classifier([*(e.text for e in train), *[CUES] * 50], LABELS, width=64)
    methods: list[lab.Method] = [(name, FEW) if name in SAMPLING else name for name in served_by(start)]
    schedule = Schedule(epochs=6, learning_rate=1e-3)
    return lab.run(start, train, test, methods=methods, trained=False, schedule=schedule, examples=examples)


def served_by(classifier: TransformerClassifier) -> list[str]:
    """All attribution methods that a model can serve without a language model."""
    usable = [entry for entry in attribution if entry.needs <= classifier.capabilities]
    return [entry.name for entry in usable if "language_model" not in entry.asks and entry.name != "random"]


def on_sst(data: Path, encoder: str, examples: int) -> Lab:
    """Some bugs on sentences of films, with a pretrained encoder."""
    sst = unhans.read(data / "sst", label="label2")
    named = sst.relabelled({"0": LABELS[0], "1": LABELS[1]})
    rng = random.Random(0)  # in the treebank's own order nearly all of the first thousand praise
    train, test = (
        rng.sample([e for e in named.split(name) if e.label], n) for name, n in (("train", 1000), ("test", 300))
    )
    start = TransformerClassifier.open(encoder, labels=LABELS, max_length=64)
    schedule = Schedule(epochs=3, learning_rate=5e-5)
    return lab.run(
        start, train, test, bugs=ON_SST, methods="usual", trained=False, schedule=schedule, examples=examples
    )


def by_layers() -> None:
    """Networks of ReLUs, shallow and deep: whose scores survive when the model forgets."""
    train, test = reviews(1200, seed=0), reviews(200, seed=1, split="test")
    for layers in (2, 6):
        start = fresh_averaging_classifier([e.text for e in train], LABELS, layers=layers, width=64)
        model = fit(start, train, schedule=Schedule(epochs=8, learning_rate=2e-3))
        signed, strengths = lab.curves(model, test[:40], methods=BACK, background=train[:100], draws=5)
        print(f"\n### Averaging network with {layers} layers (accuracy {accuracy(model, test):.0%})")
        print_curves(signed, "scores")
        print_curves(strengths, "strengths")


# -- printing


def show(title: str, made: Lab) -> None:
    """A lab as Markdown."""
    print(f"\n## {title}\n\n| bug | kind | took | clean model | proof |\n|---|---|---|---|---|")
    for bug in made.bugs:
        print(f"| {bug.name} | {bug.kind} | {number(bug.took)} | {number(bug.usual)} | {bug.proof} |")
    names = [bug.name for bug in made.bugs]
    for measure in dict.fromkeys(one.measure for one in made.sightings):
        print(f"\n### {measure}\n\n| method | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
        cells = {(one.method, one.bug): one for one in made.sightings if one.measure == measure}
        for method in dict.fromkeys(one.method for one in made.sightings if one.measure == measure):
            own = [cells.get((method, name)) for name in names]
            told = ("–" if one is None else number(one.value) + ("*" if one.sees else "") for one in own)
            print(f"| {method} | {' | '.join(told)} |")
        chance = {one.bug: one.random for one in cells.values() if one.by == "attribution"}
        print(f"| *random scores* | {' | '.join(number(chance.get(name)) for name in names)} |")
    print_curves(made.curves, "scores")
    for method, warning in made.warnings:
        print(f"- {method} {warning}.")
    for note in made.notes:
        print(f"- {note}")


def print_curves(curves: Sequence[LayerCurve], what: str) -> None:
    """Rank correlations of a method's scores, a row each."""
    for cascading, title in ((True, "drawn anew from the head down to"), (False, "drawn anew alone")):
        own = [curve for curve in curves if curve.cascading is cascading]
        if own:
            print(f"\nRank correlation of {what}, {title}:\n\n| method | {' | '.join(own[0].parts)} |")
            print(f"|---{'|---' * len(own[0].parts)}|")
            for curve in own:
                print(f"| {curve.method} | {' | '.join(map(number, curve.correlations))} |")


def number(value: float | None) -> str:
    """Two figures."""
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
