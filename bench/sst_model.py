"""The classifier and the sentences that benchmarks of fidelity are run on.

    python bench/sst_model.py ENCODER DATA FOLDER

ENCODER is a Hugging Face folder or id without a classification head, DATA a folder with the set `sst`. Trains the
encoder on SST's first 5,000 labelled training sentences (three epochs, 3e-5, batches of 32, seed 0; some six minutes on
two cores), says how often it is right on the test set, and writes FOLDER/model and FOLDER/texts.txt: 200 test
sentences, one a line. What is there already is left alone, so that runs can be compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import unhans
from unhans.training import Schedule, fit

SENTENCES = 5000
SHOWN = 200


def main() -> None:
    """Train, test, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder")
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    sst = unhans.read(options.data / "sst", label="label2")
    train, test = ([one for one in sst.split(part) if one.label is not None] for part in ("train", "test"))
    model, texts = options.folder / "model", options.folder / "texts.txt"
    options.folder.mkdir(parents=True, exist_ok=True)
    if not model.exists():
        train = train[:SENTENCES]  # neutral sentences have no label
        start = unhans.load(options.encoder, labels=sorted({str(example.label) for example in train}))
        made = fit(start, train, schedule=Schedule(epochs=3, learning_rate=3e-5, batch_size=32, seed=0))
        right = [said.label == one.label for said, one in zip(made.predict(test), test, strict=True)]
        print(f"{sum(right) / len(right):.1%} of {len(test):,} test sentences are right.")
        made.save(model)
    if not texts.exists():
        lines = (" ".join(example.text.split()) for example in test[:SHOWN])
        texts.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
