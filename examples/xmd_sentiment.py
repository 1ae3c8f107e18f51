"""XMD's Table 1 in our setting: votes on the words of single texts, and accuracy here and elsewhere (sentiment).

    python examples/xmd_sentiment.py DATA ENCODER [--seeds 3] [--test N] [--keep FOLDER] [--results FILE] [--curve]

DATA is a folder with the sets `sst`, `uci_sentiment`, `yelp_polarity_1k` and `eraser_movies`; ENCODER is a Hugging Face
folder or id without a classification head. A base model is trained on binary SST for each seed; simulated people, who
know SST's highlights, correct its explanations; each fix starts from the base model. Tables are printed as Markdown.
`--curve` prints accuracy against minutes of people's time instead (Fig. 7), for the first seed's base model.
"""

from __future__ import annotations

import argparse

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
    training_of,
)

import unhans
from unhans.simulate import learning_curve, simulate
from unhans.types import Example, WordVote

ROWS = (
    Row(BASE),
    CONTROL,
    Row("explanation, squared", "explanation_regularisation", {"distance": "squared", **AS_IN_XMD}),
    Row("explanation, absolute", "explanation_regularisation", {"distance": "absolute", **AS_IN_XMD}),
    Row("occlusion", "occlusion_regularisation"),
    Row("word dropout", "word_dropout"),
)
SHORT = {"amazon": "uci_sentiment/amazon_cells_labelled.jsonl.gz", "imdb": "uci_sentiment/imdb_labelled.jsonl.gz"}
LONG = {"yelp": "yelp_polarity_1k/test1k.jsonl.gz", "movies": "eraser_movies/val.jsonl.gz"}


def main() -> None:
    """Train, simulate people, fix, measure."""
    parser = arguments(__doc__, judged=60)
    parser.add_argument("--long", type=int, default=200, help="texts of each set of long texts (yelp, movies)")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    results = prepare(options)
    names = ["sst", *SHORT, *LONG]
    if not options.only_tables:
        sst = unhans.read(options.data / "sst", label="label2")
        sets = {"sst": drawn(sst.split("test"), options.test)}
        for named, n in ((SHORT, options.test), (LONG, options.long)):
            for name, path in named.items():
                sets[name] = drawn(unhans.read(options.data / path, label="label"), n)
        if options.curve:
            curve(options, part(sst.split("train"), options.train, 0), sets)
            return
        for seed in range(options.seeds):
            train = part(sst.split("train"), options.train, seed)
            base = base_model(options.encoder, train, seed, options.keep, "sst")
            feedback = simulate(base, train[: 4 * options.judged], policy="random", n=options.judged, seed=seed)
            votes = [one.says.vote for one in feedback if isinstance(one.says, WordVote)]
            print(f"# seed {seed}: {votes.count('raise')} words raised, {votes.count('lower')} lowered", flush=True)
            measure(results, ROWS, Trial(seed, base, train, feedback), sets, options)
    print(table(results, ROWS, names))
    print()
    print(extras(results, ROWS))


def curve(options: argparse.Namespace, train: list[Example], sets: dict[str, list[Example]]) -> None:
    """Accuracy against minutes, for correcting explanations and for labelling without them (Fig. 7)."""
    base = base_model(options.encoder, train, 0, options.keep, "sst")
    found = learning_curve(
        base,
        train,
        sets,
        minutes=(0, 10, 30, 60),
        ways=("judging", "labelling"),
        policy="random",
        people=2,
        fix="explanation_regularisation",
        fix_options={"distance": "squared", **AS_IN_XMD},
        training=training_of(options),
        seeds=tuple(range(options.seeds)),
    )
    print("| way | minutes | votes | " + " | ".join(sets) + " |\n|---|---|---|" + "---|" * len(sets))
    for way, minutes in dict.fromkeys((point.way, point.minutes) for point in found):
        own = {point.data: point for point in found if (point.way, point.minutes) == (way, minutes)}
        cells = " | ".join(f"{100 * own[name].mean:.1f}" for name in sets)
        print(f"| {way} | {minutes:g} | {next(iter(own.values())).votes:.0f} | {cells} |")


if __name__ == "__main__":
    main()
