"""Flips of sentiment on SST: how often, with how many edits, and how natural they are, generator by generator.

    python examples/flips.py DATA MODEL [--encoder ENCODER] [--language-model FOLDER] [--texts 100] [--results FILE]

DATA is a folder with the set `sst`. MODEL is the folder of a classifier with the labels negative and positive, in that
order; if there is none, one is trained from ENCODER on 2,000 sentences and kept there. FOLDER is that of a masked
language model, likewise. Without it the rows that need one are left out, and nothing is said about how natural texts
are. Printed as Markdown: the share of texts flipped within five edits, the mean number of edits of those flipped, and
the change in log pseudo-perplexity, each with a 95 % interval from drawing texts again. A run goes on from its
`--results` file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _xmd import drawn, part

import unhans
from unhans import LanguageModel
from unhans.attributions import attribute
from unhans.counterfactuals import counterfactual, find_flips
from unhans.model import Classifier
from unhans.rationales import rationale_of
from unhans.scoring import ScoreCache
from unhans.training import Schedule
from unhans.types import Attribution, Example

LABELS = ("negative", "positive")
SOME = 10  # texts between two savings
_DRAWS = 5000


@dataclass(frozen=True)
class Row:
    """A row of the table: a generator, which words it may change, and by which rules."""

    name: str
    method: str
    share: float | None = None  # of the words, by leave_one_out; None: all words
    search: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


HOTFLIP, MASKED = "hotflip", "masked_lm"
ROWS = (
    Row("hotflip, rationale of 20 %", "hotflip", 0.2),
    Row(HOTFLIP, "hotflip"),
    Row(MASKED, "masked_lm"),
    Row("hotflip, rationale of 30 %", "hotflip", 0.3),
    Row("hotflip, rationale of 50 %", "hotflip", 0.5),
    Row("hotflip, any piece", "hotflip", search={"whole_words": False, "ordinary": False}),
    Row("hotflip, similarity 0.4", "hotflip", search={"similarity": 0.4}),
    Row("hotflip, fluency 3", "hotflip", search={"fluency": 3.0}),
    Row("antonyms", "antonyms"),
    Row("synonyms", "synonyms"),
    Row("deletion", "deletion"),
    Row("insertion", "insertion", options={"per_word": 0}),
    Row("masked_lm, no prompt", "masked_lm", options={"prompt": ""}),
)


class Results:
    """What was found, text by text, in a file that survives an interruption."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        self.likely: dict[str, float | None] = {}
        if path is not None and path.exists():
            told = json.loads(path.read_text())
            self.rows, self.likely = told["rows"], told["likely"]

    def save(self) -> None:
        """Write everything."""
        if self.path is not None:
            self.path.write_text(json.dumps({"rows": self.rows, "likely": self.likely}))


def main() -> None:
    """Look for flips, judge how natural they are, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--encoder", help="Hugging Face folder or id that missing models are trained from")
    parser.add_argument("--language-model", type=Path)
    parser.add_argument("--texts", type=int, default=100, help="labelled test sentences, drawn with seed 0")
    parser.add_argument("--rows", help="only rows with one of these names, separated by semicolons")
    parser.add_argument("--results", type=Path, help="JSON file, written as results come")
    parser.add_argument("--only-tables", action="store_true", help="print what --results holds, and run nothing")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sst = unhans.read(options.data / "sst", label="label2")
    texts = drawn(sst.split("test"), options.texts)
    results = Results(options.results)
    if not options.only_tables:
        wanted = None if options.rows is None else options.rows.split(";")
        rows = [row for row in ROWS if wanted is None or row.name in wanted]
        classifier = the_classifier(options, sst.split("train"))
        judge = the_language_model(options, sst.split("train"))
        run(classifier, judge, texts, rows, results)
        if judge is not None:
            note_likelihoods(judge, texts, results)
    print(table(texts, results))
    print()
    print(compared(texts, results))


def the_classifier(options: argparse.Namespace, train: Sequence[Example]) -> Classifier:
    """The one in the folder, or a new one that is kept there."""
    if not options.model.exists():
        untrained = unhans.load(options.encoder, labels=LABELS)
        named = [Example(e.id, e.text, label=LABELS[int(e.label)]) for e in part(train, 2000, 0) if e.label]
        made = unhans.fit(untrained, named, schedule=Schedule(epochs=3, learning_rate=5e-5))
        made.save(options.model)
    return unhans.load(options.model, labels=LABELS)


def the_language_model(options: argparse.Namespace, train: Sequence[Example]) -> LanguageModel | None:
    """The one in the folder, or a new one that is kept there: one epoch over the shorter training sentences."""
    folder = options.language_model
    if folder is None:
        return None
    if not folder.exists():
        schedule = Schedule(epochs=1, learning_rate=5e-4, batch_size=32)
        texts = [example.text for example in train if len(example.text.split()) <= 20]
        LanguageModel.fit(texts, encoder=options.encoder, schedule=schedule, max_length=128).save(folder)
    return LanguageModel.open(folder, max_length=128)


def run(
    classifier: Classifier,
    judge: LanguageModel | None,
    texts: Sequence[Example],
    rows: Sequence[Row],
    results: Results,
) -> None:
    """Every row that is not complete yet, some texts at a time."""
    cache = ScoreCache()
    for row in rows:
        if judge is None and ("language_model" in counterfactual[row.method].asks or row.search.get("fluency")):
            print(f"# left out without a language model: {row.name}", flush=True)
            continue
        own = results.rows.setdefault(row.name, {})
        left = [text for text in texts if text.id not in own]
        for start in range(0, len(left), SOME):
            some = left[start : start + SOME]
            own |= flips_of(classifier, judge, some, row, cache)
            results.save()
        found = [own[text.id] for text in texts]
        print(f"# {row.name}: {sum(one['flips'] for one in found)} of {len(found)} flipped", flush=True)


def flips_of(
    classifier: Classifier, judge: LanguageModel | None, texts: Sequence[Example], row: Row, cache: ScoreCache
) -> dict[str, dict[str, Any]]:
    """What was found for each text, by its id."""
    started = time.process_time()
    editable = None
    if row.share is not None:
        explained = attribute(classifier, texts, method="leave_one_out", cache=cache)
        editable = {one.example: words_of(one, row.share) for one in explained}
    found = find_flips(
        classifier,
        texts,
        method=row.method,
        editable=editable,
        search={"max_edits": 5, "beam": 10, "alternatives": 0, **row.search},
        language_model=judge,
        cache=cache,
        **row.options,
    )
    seconds = (time.process_time() - started) / len(texts)
    return {
        one.example: {
            "flips": one.flips,
            "edits": [[edit.position, edit.old, edit.new] for edit in one.edits],
            "text": one.text,
            "seconds": seconds,
            "words": len(one.editable or ()),
        }
        for one in found
    }


def words_of(explained: Attribution, share: float) -> tuple[int, ...]:
    """The words of a rationale."""
    return rationale_of(explained, method="top_share", share=share, never_empty=True).chosen


def note_likelihoods(judge: LanguageModel, texts: Sequence[Example], results: Results) -> None:
    """How likely every text is that was flipped, before and after; each is asked about once."""
    before = {text.id: text.text for text in texts}
    flipped = [(id_, one["text"]) for row in results.rows.values() for id_, one in row.items() if one["flips"]]
    every = dict.fromkeys(text for id_, after in flipped if id_ in before for text in (before[id_], after))
    left = [text for text in every if text not in results.likely]
    for start in range(0, len(left), SOME):
        some = left[start : start + SOME]
        results.likely |= dict(zip(some, judge.log_likelihoods(some), strict=True))
        results.save()


def changes(texts: Sequence[Example], results: Results, row: str) -> dict[str, float]:
    """By how much each flipped text became less likely, as the change in log pseudo-perplexity."""
    found = {}
    for text in texts:
        one = results.rows.get(row, {}).get(text.id)
        if one is not None and one["flips"]:
            old, new = results.likely.get(text.text), results.likely.get(one["text"])
            if old is not None and new is not None:
                found[text.id] = old - new
    return found


def interval(values: Sequence[float], of: Callable[..., Any] = np.mean, digits: int = 2) -> str:
    """A mean with its 95 % interval; texts are drawn again."""
    if not values:
        return "–"
    array = np.array(values, float)
    draws = np.random.default_rng(0).integers(0, len(array), (_DRAWS, len(array)))
    low, high = np.quantile(of(array[draws], axis=1), [0.025, 0.975])
    return f"{of(array):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def table(texts: Sequence[Example], results: Results) -> str:
    """One line for each row that is complete for these texts."""
    head = ("generator", "words open", "flipped", "edits", "change in log perplexity", "median", "CPU s a text")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in ROWS:
        found = [results.rows.get(row.name, {}).get(text.id) for text in texts]
        if not all(found):
            continue
        done = [one for one in found if one is not None]
        change = list(changes(texts, results, row.name).values())
        cells = [
            row.name,
            f"{np.mean([one['words'] for one in done]):.1f}",
            interval([one["flips"] for one in done]),
            interval([len(one["edits"]) for one in done if one["flips"]]),
            interval(change),
            f"{np.median(change):.2f}" if change else "–",
            f"{np.mean([one['seconds'] for one in done]):.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def compared(texts: Sequence[Example], results: Results) -> str:
    """Every row against unconstrained hotflip, on the texts that both flip."""
    own = changes(texts, results, HOTFLIP)
    lines = []
    for row in ROWS:
        other = changes(texts, results, row.name)
        both = [id_ for id_ in own if id_ in other]
        if row.name != HOTFLIP and both:
            apart = interval([other[id_] - own[id_] for id_ in both])
            lines.append(f"- {row.name} less hotflip, on the {len(both)} texts that both flip: {apart}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
