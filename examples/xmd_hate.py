"""XMD's Table 2 in our setting: votes that identity words should not count, everywhere, and what follows (hate speech).

    python examples/xmd_hate.py DATA ENCODER [--seeds 3] [--test N] [--keep FOLDER] [--results FILE]

DATA is a folder with the sets `stf`, `hateval`, `ghc`, `latent_hatred` and `hatecheck`; ENCODER is a Hugging Face
folder or id without a classification head. A base model is trained on STF's balanced sample for each seed; each word
of Kennedy et al.'s list for STF gets one vote to lower it everywhere; each fix starts from the base model. Tables are
printed as Markdown. Two columns hold nothing but harmless texts with a listed word, where the shortcut does its harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _xmd import (
    AS_IN_XMD,
    BASE,
    CONTROL,
    Row,
    Trial,
    arguments,
    base_model,
    drawn,
    extras,
    measure,
    part,
    prepare,
    table,
)

import unhans
from unhans.attributions import attribute
from unhans.fixes import without
from unhans.model import TransformerClassifier
from unhans.text import Words, visible_form
from unhans.types import Example, Feedback, WordVote

HATE, HARMLESS = "1", "0"
ER = "explanation_regularisation"
ROWS = (
    Row(BASE),
    CONTROL,
    Row("explanation, squared, all", ER, {"lower_on": "all", **AS_IN_XMD}),
    Row("occlusion", "occlusion_regularisation"),
    Row("word balancing", "word_balancing"),
    Row("word dropout", "word_dropout"),
    Row("explanation, squared, correct", ER, {"lower_on": "correct", **AS_IN_XMD}),
    Row("explanation, squared, incorrect", ER, {"lower_on": "incorrect", **AS_IN_XMD}),
    Row("explanation, absolute, all", ER, {"distance": "absolute", **AS_IN_XMD}),
    Row("explanation, our settings", ER),
)
OTHERS = {
    "hateval": "hateval/test.jsonl.gz",
    "ghc": "ghc/test.jsonl.gz",
    "latent": "latent_hatred/stg1_posts_sample.jsonl.gz",
    "hatecheck": "hatecheck/test_suite.jsonl.gz",
}
HELD_OUT, CHECKED = "stf, harmless with a listed word", "hatecheck, harmless with a listed word"


def main() -> None:
    """Train, vote, fix, measure."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=len(ROWS), help="only the first N rows")
    options = parser.parse_args()
    results = prepare(options)
    rows = ROWS[: options.rows]
    if not options.only_tables:
        listed = words_of(options.data / "ghc" / "identity_ws_new.csv")
        stf = unhans.read(options.data / "stf" / "all.jsonl.gz", text="text", label="label")
        others = {name: unhans.read(options.data / path, text="text", label="label") for name, path in OTHERS.items()}
        sets = {"stf": drawn(stf.split("test"), options.test)}
        sets |= {name: drawn(list(examples), options.test) for name, examples in others.items()}
        # STF's other sentences are outside its balanced sample: no model has seen them
        sets[HELD_OUT] = drawn(harmless(stf.split("rest"), listed), options.test)
        sets[CHECKED] = drawn(harmless(list(others["hatecheck"]), listed), options.test)
        named = [example for example in stf.split("test") if places(example, listed)]
        for seed in range(options.seeds):
            train = part(stf.split("train"), options.train, seed)
            base = base_model(options.encoder, train, seed, options.keep, "stf")
            trial = Trial(seed, base, train, votes(base, listed))
            measure(results, rows, trial, sets, options, more=lambda made: reliance(made, named, listed))
    print(table(results, rows, ["stf", *OTHERS]))
    print()
    print(table(results, rows, [HELD_OUT, CHECKED]))
    print()
    print(extras(results, rows))


def words_of(path: Path) -> set[str]:
    """The identity words of Kennedy et al.'s file: a word and its weight a line."""
    return {visible_form(line.split("\t")[0]) for line in path.read_text().splitlines() if line}


def places(example: Example, listed: set[str]) -> list[int]:
    """Where an example has a word of the list."""
    return [n for n, word in enumerate(Words(example).strings) if visible_form(word) in listed]


def harmless(examples: Sequence[Example], listed: set[str]) -> list[Example]:
    """The harmless ones that have a word of the list."""
    return [example for example in examples if example.label == HARMLESS and places(example, listed)]


def votes(base: TransformerClassifier, listed: set[str]) -> list[Feedback]:
    """Somebody who lowers every word of the list, everywhere."""
    return [
        Feedback(f"vote-{word}", WordVote(word, HATE, "lower"), "simulated", "2023-01-01T00:00:00+00:00", base.revision)
        for word in sorted(listed)
    ]


def reliance(made: TransformerClassifier, named: Sequence[Example], listed: set[str]) -> dict[str, float]:
    """How much listed words still count on STF's test texts: by the explanation, and by taking them out."""
    found = attribute(made, named, method="input_x_gradient", target=HATE)
    shares = []
    for example, one in zip(named, found, strict=True):
        sizes = np.abs(one.scores)
        shares.append(sizes[places(example, listed)].sum() / max(sizes.sum(), 1e-12))
    column = made.labels.index(HATE)
    bare = [without(example, places(example, listed)) for example in named]
    full, rest = (np.exp(made.log_probs(texts))[:, column] for texts in (named, bare))
    return {
        "share of absolute scores": float(np.mean(shares)),
        "P(hate) lost without the words": float(np.mean(full - rest)),
    }


if __name__ == "__main__":
    main()
