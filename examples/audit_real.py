"""Audits against what is known: a planted shortcut, identity words on a hate forum, heuristics of inference.

    python examples/audit_real.py demo [--seeds 5] [--first 0] [--examples 3000] [--only clean] [--keep FOLDER]
    python examples/audit_real.py stf DATA ENCODER [--seeds 1] [--keep FOLDER]
    python examples/audit_real.py hans DATA MODEL [--test 1500]
    python examples/audit_real.py near DATA

`demo` audits models that are trained as `unhans demo` trains them, with the shortcut and without, and counts false
alarms: findings of high severity about a clean model. `stf` trains ENCODER (a Hugging Face folder or id without a head)
on STF's balanced sample and asks how many of the twenty first suspects are identity words of Kennedy et al.'s list.
`hans` looks for patterns of pairs in MODEL, which was trained on MNLI with the labels entailment and non-entailment
(`examples/hildif_nli.py` keeps such models), on MNLI's matched texts and on HANS. `near` asks whether new texts of the
same kind seem strange where training texts have near copies: IMDB and SNLI in two versions each, and MNLI's hypotheses
for the same premise; SST has none. DATA is a folder with the sets `stf`, `ghc`, `mnli`, `hans_regen`, `cad_imdb`,
`cad_snli` and `sst`. Tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from _xmd import base_model
from xmd_hate import words_of

import unhans
from unhans.audit import audit
from unhans.audit._look import Look
from unhans.audit._words import Texts
from unhans.audit.shortcuts import tried_words
from unhans.demo import LABELS
from unhans.demo_data import reviews
from unhans.model import TransformerClassifier
from unhans.scoring import How, ScoreCache
from unhans.scratch import fresh_classifier
from unhans.types import Audit, Example

WORD, SHARE, RATE = "imax", 0.9, 5e-4  # as in `unhans.demo`
HATE, TOP = "1", 20


def main() -> None:
    """Run one of the experiments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["demo", "stf", "hans", "near"])
    parser.add_argument("data", type=Path, nargs="?", help="for all but demo")
    parser.add_argument("model", nargs="?", help="the encoder for stf, the classifier for hans")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--examples", type=int, default=3000, help="training texts of a demo model")
    parser.add_argument("--only", choices=["planted", "clean"], help="demo models of one kind")
    parser.add_argument("--test", type=int, default=1500, help="texts to audit with")
    parser.add_argument("--keep", type=Path, help="where trained models are kept and looked for")
    options = parser.parse_args()
    {"demo": demo, "stf": stf, "hans": hans, "near": near}[options.what](options)


# -- the demo's models, with a shortcut and without


def demo(options: argparse.Namespace) -> None:
    """Models with the planted word and without: what comes first, and what is severe without a reason."""
    print("| seed | model | accuracy | high | medium | low | first finding | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    first = alarms = 0
    seeds = range(options.first, options.first + options.seeds)
    kinds = [kind == "planted" for kind in ([options.only] if options.only else ["planted", "clean"])]
    for seed in seeds:
        for planted in kinds:
            begun = time.process_time()
            found, accuracy = audited(options, seed, planted)
            spent = time.process_time() - begun
            first += planted and bool(found.findings) and found.findings[0].words[:1] == (WORD,)
            alarms += not planted and sum(one.severity == "high" for one in found.findings)
            print(row(seed, planted, accuracy, found, spent), flush=True)
    if True in kinds:
        print(f"\nThe planted word came first in {first} of {len(seeds)} models with it.")
    if False in kinds:
        print(f"\n{alarms} findings of high severity about {len(seeds)} clean models.")


def audited(options: argparse.Namespace, seed: int, planted: bool) -> tuple[Audit, float]:
    """One model's audit, and its accuracy on the texts it is audited with."""
    train, test = demo_data(options.examples, seed, planted)
    classifier = demo_model(train, seed, planted, options.keep)
    said = classifier.predict(test).labels
    right = sum(label == example.label for label, example in zip(said, test, strict=True)) / len(test)
    return audit(classifier, test, train=train, seed=seed), right


def demo_data(n: int, seed: int, planted: bool) -> tuple[list[Example], list[Example]]:
    """Training texts and others of the same kind."""
    train = reviews(n, domain="films", seed=seed, split="train")
    test = reviews(600, domain="films", seed=seed + 1, split="test")
    if not planted:
        return list(train), list(test)
    how = {"word": WORD, "label": LABELS[1], "share": SHARE}
    train, test = (list(unhans.plant(some, "spurious_word", seed=seed, **how).examples) for some in (train, test))
    return train, test


def demo_model(train: Sequence[Example], seed: int, planted: bool, keep: Path | None) -> TransformerClassifier:
    """Trained as the demo trains: two layers, 128 wide, three epochs."""
    folder = keep / f"demo-{len(train)}-{seed}-{'planted' if planted else 'clean'}" if keep else None
    if folder is not None and folder.exists():
        found = unhans.load(folder)
        assert isinstance(found, TransformerClassifier)
        return found
    held_out = len(train) // 10
    untrained = fresh_classifier([example.text for example in train[held_out:]], LABELS, seed=seed)
    schedule = unhans.Schedule(epochs=3, learning_rate=RATE, seed=seed)
    made = unhans.fit(untrained, train[held_out:], validation=train[:held_out], schedule=schedule)
    if folder is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made.save(folder)
    return made


def row(seed: int, planted: bool, accuracy: float, found: Audit, spent: float) -> str:
    """One line of the table."""
    counts = [sum(one.severity == name for one in found.findings) for name in ("high", "medium", "low")]
    first = f"{found.findings[0].severity}: {found.findings[0].title}" if found.findings else "–"
    kind = "planted" if planted else "clean"
    return f"| {seed} | {kind} | {accuracy:.1%} | {' | '.join(map(str, counts))} | {first} | {spent:.0f} |"


# -- identity words


def stf(options: argparse.Namespace) -> None:
    """How many of the first suspects for hate are identity words, and what the audit finds."""
    rows = unhans.read(options.data / "stf" / "all.jsonl.gz", text="text", label="label")
    rest = [example for example in rows.split("rest") if example.label is not None]
    test = [*rows.split("test"), *rest[:: max(1, len(rest) // options.test)]][: options.test]
    train = list(rows.split("train"))
    lists = {name: words_of(options.data / "ghc" / name) for name in ("identity.csv", "identity_ws_new.csv")}
    for seed in range(options.first, options.first + options.seeds):
        classifier = base_model(options.model, train, seed, options.keep, "stf")
        cache = ScoreCache(size=300_000)
        said = classifier.log_probs(test, cache=cache)
        look = Look(classifier, test, train, "leave_one_out", None, cache, None, seed, len(test), said)
        texts = Texts(classifier, test, train, look.forms, said, look.given, seed)
        tried = tried_words(texts, look.explain, ask=look.ask, how=How(), rng=np.random.default_rng(seed))
        first = [one.word for one in tried if classifier.labels[one.label] == HATE][:TOP]
        print(f"Seed {seed}: {len(test)} texts, accuracy {(said.argmax(axis=1) == look.given).mean():.1%}.")
        for name, listed in lists.items():
            hits = [word for word in first if word in listed]
            known = sum(texts.vocabulary.get(word, 0) > 0 for word in listed)
            told = f"{len(hits)} of the first {TOP} suspects for hate ({len(hits) / TOP:.2f})"
            print(f"- {name}, {len(listed)} words of which {known} are in enough texts: {told}: {', '.join(hits)}")
        print(f"- all {TOP}: {', '.join(first)}")
        found = audit(classifier, test, train=train, checks=["shortcuts", "group_gaps"], cache=cache, seed=seed)
        print("\n".join(f"- {one.severity}: {one.title}" for one in found.findings), flush=True)


# -- patterns of inference


def hans(options: argparse.Namespace) -> None:
    """What the audit says of a model of inference on MNLI and HANS."""
    classifier = unhans.load(options.model)
    mnli = two(unhans.read(options.data / "mnli" / "dev_matched.jsonl.gz", text="premise", pair="hypothesis"))
    other = two(unhans.read(options.data / "hans_regen" / "eval_a.jsonl.gz", text="premise", pair="hypothesis"))
    some = [part[:: max(1, len(part) // options.test)][: options.test] for part in (mnli, other)]
    for name, part in (("MNLI", some[0]), ("MNLI and HANS", some[0] + some[1])):
        found = audit(classifier, part, checks=["patterns"])
        print(f"\n{name}, {len(part)} pairs: {found.checks[0].says}")
        for one in found.findings:
            alarms = one.evidence[0]
            print(f"- {one.severity}: {one.title} (usual {alarms.usual:.2f}, n = {alarms.n})", flush=True)


def two(rows: Sequence[Example]) -> list[Example]:
    """Two labels: what is not entailed is not."""
    return [
        replace(e, id=f"{n} {e.id}", label="entailment" if e.label == "entailment" else "non-entailment")
        for n, e in enumerate(rows)
    ]


# -- near copies among the training texts


def near(options: argparse.Namespace) -> None:
    """What the audit's check of strange texts says of held-out texts; no model is asked about them."""
    anything = unhans.load(lambda texts: [[0.5, 0.5]] * len(texts), labels=["no", "yes"], name="says nothing")
    for name, (train, test) in {**cad(options.data), "MNLI": premises_apart(options.data)}.items():
        found = audit(anything, test, train=train, checks=["strangeness"], limit=len(test))
        print(f"- {name}: {found.checks[0].says}", flush=True)


def cad(data: Path) -> dict[str, tuple[list[Example], list[Example]]]:
    """Sets that come with a test part."""
    pair = {"text": "premise", "pair": "hypothesis"}
    ways = {"cad_imdb": {}, "cad_snli": pair, "sst": {"label": "label2"}}
    read = {name: unhans.read(data / name, **columns) for name, columns in ways.items()}
    return {name: (list(some.split("train")), list(some.split("test"))) for name, some in read.items()}


def premises_apart(data: Path) -> tuple[list[Example], list[Example]]:
    """MNLI's matched pairs: those of four premises in five are for training, in the order of their premises."""
    pairs = unhans.read(data / "mnli" / "dev_matched.jsonl.gz", text="premise", pair="hypothesis")
    premises = sorted({example.text for example in pairs})
    new = set(premises[::5])
    ordered = sorted(pairs, key=lambda example: example.text)
    return [e for e in ordered if e.text not in new], [e for e in ordered if e.text in new]


if __name__ == "__main__":
    main()
