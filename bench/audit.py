"""What an audit costs: seconds, CPU seconds, and forward passes over the data, the predictions and check by check.

    python bench/audit.py ENCODER DATA [--label label] [--examples 5000] [--threads 2] [--json FILE]

ENCODER is a Hugging Face folder or id without a classification head, DATA a file or folder that `unhans.read` reads,
with labelled texts. A head is put on and **not** trained: what a model costs does not depend on what it knows. Half of
the texts, at most as many as the examples, stand for the training examples. The ratio is the CPU time of a check to
that of asking the bare model about all examples once, and can be compared between machines. Bar: the whole within ten
minutes on two cores with 5,000 examples of a MiniLM-size model.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import torch
from _bars import Bar, finish

import unhans
from unhans.audit import audit
from unhans.model import Classifier
from unhans.scoring import ScoreCache
from unhans.types import Audit, Example

BAR = 600.0  # seconds
PREDICTIONS = "the predictions"  # of all examples; every check has them
FULL = 5000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder")
    parser.add_argument("data", type=Path)
    parser.add_argument("--label", default="label", help="column of the labels")
    parser.add_argument("--examples", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    labelled = [example for example in unhans.read(options.data, text="text", label=options.label) if example.label]
    examples, train = halves(labelled, options.examples)
    classifier = unhans.load(options.encoder, labels=sorted({str(e.label) for e in labelled}))
    begun = time.process_time()
    classifier.log_probs(examples)
    once = time.process_time() - begun
    told = measured(classifier, examples, train, once)
    print(f"{len(examples):,} examples, {len(train):,} training examples, {options.threads} threads, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}. One pass over the examples takes {once:.0f} CPU seconds.\n")
    print("| part | CPU seconds | passes | state |\n|---|---|---|---|")
    for name, row in told["checks"].items():
        print(f"| {name} | {row['cpu']:.1f} | {row['passes']:.2f} | {row['state']} |")
    print(f"\nThe whole: {told['seconds']:.0f} seconds, {told['cpu']:.0f} CPU seconds.")
    facts = {"examples": len(examples), "train": len(train), "threads": options.threads}
    finish(verdict(told, len(examples)), options.json, settings=facts, **told)


def verdict(told: dict[str, Any], examples: int) -> list[Bar]:
    """The time of the whole, which is this machine's, and the passes, which are not."""
    few = f"of {examples:,} examples, the bar is for {FULL:,}" if examples < FULL else ""
    time_bar = Bar(
        "audit", "a whole audit", "<=", BAR, () if few else (told["seconds"],), unit="s", tolerance=None, reason=few
    )
    return [
        time_bar,
        Bar("audit", "a whole audit, in passes over the data", "<=", None, (told["passes"],), tolerance=0.5),
    ]


def halves(labelled: list[Example], n: int) -> tuple[list[Example], list[Example]]:
    """Examples to look at, and others that stand for the training examples."""
    n = min(n, len(labelled))
    rest = labelled[n:] or labelled[::2]
    return labelled[:n], rest[:n]


def measured(classifier: Classifier, examples: list[Example], train: list[Example], once: float) -> dict[str, Any]:
    """Time of the predictions and of each check."""
    cache = ScoreCache(size=300_000)
    begun, wall = time.process_time(), time.monotonic()
    classifier.log_probs(examples, cache=cache)  # the audit would ask first; so that no check is charged with it
    marks = [time.process_time()]

    def mark(_: Audit) -> None:
        marks.append(time.process_time())

    done = audit(classifier, examples, train=train, on_part=mark, limit=len(examples), cache=cache)
    names = [(PREDICTIONS, "done"), *((run.check.name, run.state) for run in done.checks)]
    rows = {
        name: {"cpu": end - start, "passes": (end - start) / once, "state": state}
        for (name, state), start, end in zip(names, [begun, *marks[:-1]], marks, strict=True)
    }
    cpu = time.process_time() - begun
    return {"seconds": time.monotonic() - wall, "cpu": cpu, "once": once, "passes": cpu / once, "checks": rows}


if __name__ == "__main__":
    main()
