"""Planted shortcut → first suspect → one vote → fix → is the model as good as one that never saw the shortcut?

    python examples/story.py [--seeds 5] [--examples 3000] [--fix NAME] [--epochs 6] [--json FILE]

For each seed, two small transformers are trained from scratch on the same synthetic film reviews, one with a planted
word and one without. The first is explained, its first suspect gets one vote, and the fix teaches it that. The table
has the accuracy of all three on texts with, without and against the shortcut.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import unhans
from unhans.demo_data import reviews
from unhans.fixes import DEFAULT, mend
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_classifier
from unhans.training import accuracy
from unhans.types import Example, Feedback, WordVote

WORD, LABELS, SHARE, RATE = "imax", ("negative", "positive"), 0.9, 5e-4


@dataclass(frozen=True)
class Told:
    """One seed's story."""

    seed: int
    suspect: str
    shortcut: dict[str, float]
    fixed: dict[str, float]
    clean: dict[str, float]


def planted(examples: list[Example], label: str, seed: int) -> list[Example]:
    """The examples with the word in most texts of a label."""
    return list(unhans.plant(examples, "spurious_word", seed=seed, word=WORD, label=label, share=SHARE).examples)


def train(examples: list[Example], seed: int) -> TransformerClassifier:
    """A small transformer from scratch; a tenth of the texts chooses the epoch."""
    n = len(examples) // 10
    untrained = fresh_classifier([example.text for example in examples[n:]], LABELS, seed=seed)
    schedule = unhans.Schedule(epochs=3, learning_rate=RATE, seed=seed)
    return unhans.fit(untrained, examples[n:], validation=examples[:n], schedule=schedule)


def tell(seed: int, n: int, fix: str, epochs: int) -> Told:
    """The story for one seed."""
    texts, test = (
        reviews(n, domain="films", seed=seed, split="train"),
        reviews(600, domain="films", seed=seed + 1000, split="test"),
    )
    sets = {
        "with the shortcut": planted(test, LABELS[1], seed),
        "without it": test,
        "against it": planted(test, LABELS[0], seed),
    }
    dirty = planted(texts, LABELS[1], seed)
    shortcut, clean = train(dirty, seed), train(texts, seed)
    asked = sets["with the shortcut"][:200]
    explained = unhans.attribute(shortcut, asked, target=LABELS[1])
    first = unhans.suspects(shortcut, asked, explained).words[0]
    vote = Feedback("1", WordVote(first.word, LABELS[1], "lower"), "me", "2026-01-01T00:00:00Z", shortcut.revision)
    made = mend(shortcut, dirty, [vote], fix=fix, training={"epochs": epochs, "learning_rate": RATE}, seed=seed)
    found = [{name: accuracy(c, e) for name, e in sets.items()} for c in (shortcut, made.classifier, clean)]
    return Told(seed, first.word, *found)


def main() -> None:
    """All seeds, then what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--examples", type=int, default=3000)
    parser.add_argument("--fix", default=DEFAULT)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    stories = []
    for seed in range(options.seeds):
        one = tell(seed, options.examples, options.fix, options.epochs)
        stories.append(one)
        print(f"seed {seed}: first suspect {one.suspect!r}", flush=True)
        for name in one.clean:
            print(
                f"  {name:18} {one.shortcut[name]:.1%} → {one.fixed[name]:.1%} (clean {one.clean[name]:.1%})",
                flush=True,
            )
    print(f"\nmean of {len(stories)} seeds")
    for name in stories[0].clean:
        means = [float(np.mean([getattr(s, kind)[name] for s in stories])) for kind in ("shortcut", "fixed", "clean")]
        print(f"  {name:18} {means[0]:.1%} → {means[1]:.1%} (clean {means[2]:.1%})")
    if options.json:
        options.json.write_text(json.dumps([vars(story) for story in stories], indent=1))


if __name__ == "__main__":
    main()
