"""The three experiments of "Debugging Tests for Model Explanations" on pictures made on the spot.

    python examples/vision_lab.py [--size 1500] [--images 40] [--few 20] [--seeds 0,1,2] [--methods gradient,lime]

Trains five small networks (five convolutions, three linear layers) a seed, and prints the tables beside the paper's
numbers: the spurious background (Table 2), layers drawn anew from the top down (Figure 7), and models for something
else (Table 3). Needs the extra `[vision]`. The paper's pictures, models and sizes are others; what can be compared is
which methods see the bug and which do not. A number is the mean over pictures; with several seeds, of all of them,
and ± is the standard error over the seeds' pictures together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from unhans.vision.attributing import METHODS
from unhans.vision.lab import (
    Likeness,
    Sighted,
    Stage,
    Taught,
    cascade,
    held_out_digits,
    out_of_domain,
    spurious_background,
    train_all,
)
from unhans.vision.measures import Mean
from unhans.vision.network import SCHEDULE
from unhans.vision.pictures import shapes

# Table 2: SSIM with GT-1 and GT-2. Table 3: SSIM and rank correlation, Fashion MNIST on an MNIST model.
PAPER = {
    "gradient": (0.62, 0.83, 0.70, 0.0013),
    "smoothgrad": (0.63, 0.83, 0.54, 8.8e-4),
    "smoothgrad_squared": (0.063, 0.89, 0.49, 0.37),
    "vargrad": (0.075, 0.98, 0.92, 0.37),
    "input_x_gradient": (0.69, 0.85, 0.71, 0.0021),
    "integrated_gradients": (0.70, 0.85, 0.69, -0.003),
    "expected_gradients": (0.63, 0.85, 0.71, 0.002),
    "lime": (0.59, 0.88, 0.46, -0.01),
    "kernel_shap": (0.58, 0.78, 0.41, 0.034),
    "guided_backprop": (0.58, 0.82, 0.81, 0.51),
    "deconvnet": (0.60, 0.83, 0.50, 0.027),
    "lrp_epsilon": (0.65, 0.85, 0.77, 0.011),
    "pattern_net": (0.51, 0.85, 0.58, -0.14),
    "pattern_attribution": (0.44, 0.80, 0.77, 0.0082),
    "lrp_preset_a_flat": (0.69, 0.85, 0.66, 0.12),
}
INVARIANT = {"guided_backprop", "deconvnet", "pattern_net", "pattern_attribution", "lrp_preset_a_flat"}
LINEAR = 3  # layers at the top


def main() -> None:
    """Train, explain, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=40, help="in the two tables")
    parser.add_argument("--few", type=int, default=20, help="pictures whose maps are made again for every layer")
    parser.add_argument("--size", type=int, default=1500, help="training pictures of each model, at most")
    parser.add_argument("--seeds", default="0", help="separated by commas")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    methods, seeds = options.methods.split(","), [int(seed) for seed in options.seeds.split(",")]
    sighted, curves, alike = [], [], []
    for seed in seeds:
        start = time.perf_counter()
        taught = train_all(size=options.size, schedule=replace(SCHEDULE, seed=seed))
        test, usual = shapes(options.images, spurious=True, seed=seed + 1000), held_out_digits(options.images)
        print(_proof(taught, seed), flush=True)
        sighted.append(spurious_background(taught["spurious"], taught["clean"], test, methods=methods, seed=seed))
        print(f"seed {seed}: spurious background, {time.perf_counter() - start:.0f} s", flush=True)
        few = shapes(options.few, spurious=False, seed=seed + 2000).images
        curves.append(cascade(taught["clean"], few, methods=methods, seed=seed))
        print(f"seed {seed}: cascade, {time.perf_counter() - start:.0f} s", flush=True)
        others = {name: taught[name] for name in ("other digits", "letters", "clean")}
        alike.append(out_of_domain(taught["digits"], others, usual.images, methods=methods, seed=seed))
        print(f"seed {seed}: out of domain, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"\nTable 2, spurious background\n\n{_table_2(sighted)}")
    print(f"\nFigure 7, layers drawn anew from the top down\n\n{_figure_7(curves)}")
    print(f"\nTable 3, models for something else\n\n{_table_3(alike)}")


def _proof(taught: Mapping[str, Taught], seed: int) -> str:
    """Whether the bug took: what the models make of backgrounds without an object, and of mixed ones."""
    tied, mixed = (shapes(500, spurious=spurious, seed=seed + 3000) for spurious in (True, False))
    lines = [f"seed {seed}: accuracy"]
    for name in ("spurious", "clean"):
        model = taught[name].classifier
        alone = model.accuracy(tied.backgrounds, tied.textures)
        figures = f"tied {model.accuracy(tied.images, tied.labels):.3f}, backgrounds alone {alone:.3f}"
        lines.append(f"  {name}: {figures}, mixed {model.accuracy(mixed.images, mixed.labels):.3f}")
    held_out = held_out_digits(200)
    lines.append(f"  digits, held out: {taught['digits'].classifier.accuracy(held_out.images, held_out.labels):.3f}")
    return "\n".join(lines)


def _pooled(means: Sequence[Mean]) -> str:
    value = np.mean([mean.value for mean in means])
    return f"{value:.2f} ± {np.sqrt(sum(mean.error**2 for mean in means)) / len(means):.3f}"


def _cells(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _table_2(seeds: Sequence[Sequence[Sighted]]) -> str:
    head = ("method", "SSIM, GT-1", "SSIM, GT-2", "the paper's", "on the background", "clean model's", "Gaussian SSIM")
    lines = [_cells(*head), "|---" * len(head) + "|"]
    for rows in zip(*seeds, strict=True):
        name = rows[0].method
        paper = "{:.2g}, {:.2g}".format(*PAPER[name][:2]) if name in PAPER else "–"
        own = [_pooled([getattr(row, what) for row in rows]) for what in ("ideal", "relaxed")]
        masses = [_pooled([getattr(row, what) for row in rows]) for what in ("mass", "clean_mass")]
        gaussian = f"{np.mean([row.gaussian for row in rows]):.1e}"
        lines.append(_cells(f"`{name}`", *own, paper, *masses, gaussian))
    return "\n".join(lines)


def _figure_7(seeds: Sequence[Mapping[str, Sequence[Stage]]]) -> str:
    """SSIM, and below it rank correlation, after each layer; the paper calls some methods invariant."""
    names = [stage.layer for stage in next(iter(seeds[0].values()))]
    kinds = [f"linear {n}" if n <= LINEAR else f"convolution {n - LINEAR}" for n in range(1, len(names) + 1)]
    lines = [_cells("method", "", *kinds, "the paper"), "|---" * (len(kinds) + 3) + "|"]
    for method in seeds[0]:
        for what, told in (("ssim", "SSIM"), ("rank", "rank")):
            cells = [
                f"{np.mean([getattr(curves[method][n], what).value for curves in seeds]):.2f}"
                for n in range(len(names))
            ]
            verdict = "invariant" if method in INVARIANT else ""
            lines.append(_cells(f"`{method}`" if what == "ssim" else "", told, *cells, verdict * (what == "ssim")))
    return "\n".join(lines)


def _table_3(seeds: Sequence[Sequence[Likeness]]) -> str:
    models = list(dict.fromkeys(row.model for row in seeds[0]))
    head = ["method", *(f"{model}: {what}" for model in models for what in ("SSIM", "rank")), "the paper's"]
    lines = [_cells(*head), "|---" * len(head) + "|"]
    for method in dict.fromkeys(row.method for row in seeds[0]):
        cells = []
        for model in models:
            own = [row for rows in seeds for row in rows if (row.method, row.model) == (method, model)]
            cells += [_pooled([row.ssim for row in own]), _pooled([row.rank for row in own])]
        paper = "{:.2g}, {:.2g}".format(*PAPER[method][2:]) if method in PAPER else "–"
        lines.append(_cells(f"`{method}`", *cells, paper))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
