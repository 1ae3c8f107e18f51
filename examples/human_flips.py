"""Do our rationales and flips touch the words that a person changed to turn a review's label?

    python examples/human_flips.py DATA MODEL [--texts 30] [--words 80] [--language-model FOLDER] [--results FILE]

DATA is a folder with the set `cad_imdb` (Kaushik et al. 2020): film reviews, each with a rewrite by a person who was
asked to turn its label with few changes. MODEL is the folder of a classifier with the labels negative and positive, in
that order (examples/flips.py makes one). Reviews of at most so many words are taken, of those that the model reads
whole and gets right. A word of the review counts as changed by the person if it is gone or replaced in the rewrite, or
if something was put in before it.

Printed as Markdown: precision, recall and F1 of the words that each way touches, means over reviews with 95 % intervals
from drawing reviews again, beside random words, as many in each review. A review in which nothing is touched counts 0.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flips import LABELS, interval

import unhans
from unhans import LanguageModel
from unhans.attributions import attribute
from unhans.counterfactuals import find_flips
from unhans.model import Classifier
from unhans.rationales import rationale_of
from unhans.scoring import ScoreCache
from unhans.text import Words, visible_form
from unhans.types import Example

SHARES = (0.1, 0.2)
LIMIT = 256  # tokens that the model reads
SOME = 4  # reviews between two savings
_RANDOM = 200  # random choices of as many words


@dataclass(frozen=True)
class Rewritten:
    """A review with the words that a person changed."""

    example: Example
    after: Example
    changed: frozenset[int]
    inserted: int  # of those, words that were kept and only got something before them


@dataclass(frozen=True)
class Way:
    """A way to flip: a generator, and how wide it searches."""

    method: str
    within: float | None = None  # share of the words, by leave_one_out, that may be changed; None: all
    search: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in the table."""
        where = "all words" if self.within is None else f"rationale of {100 * self.within:.0f} %"
        return f"flip by {self.method}, {where}"


# word by word, a wide beam over a whole review takes minutes; so it is narrow, and on the rationale
WAYS = (
    Way("hotflip", None, {"beam": 3}),
    Way("hotflip", 0.2, {"beam": 3}),
    Way("deletion", 0.2, {"beam": 3}),
    Way("masked_lm", 0.2, {"beam": 2}),
)
RATIONALES = ("leave_one_out", "input_x_gradient", "integrated_gradients", "random")


def changed_words(before: Words, after: Words) -> tuple[frozenset[int], int]:
    """Which words of the first text are changed in the second, and how many of them only got something before them."""
    old, new = ([visible_form(word) for word in words.strings] for words in (before, after))
    changed: set[int] = set()
    inserted: set[int] = set()
    for kind, start, end, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            changed.update(range(start, end))
        elif kind == "insert" and old:
            inserted.add(min(start, len(old) - 1))
    return frozenset(changed | inserted), len(inserted - changed)


def main() -> None:
    """Choose reviews, explain and flip them, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=int, default=30, help="reviews, drawn with seed 0")
    parser.add_argument("--words", type=int, default=80, help="words of a review at most; time grows with the square")
    parser.add_argument("--language-model", type=Path)
    parser.add_argument("--results", type=Path, help="JSON file, written as results come; a run goes on from it")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    classifier = unhans.load(options.model, labels=LABELS, max_length=LIMIT)
    judge = None if options.language_model is None else LanguageModel.open(options.language_model, max_length=128)
    pairs = read_pairs(options.data / "cad_imdb" / "test.jsonl.gz")
    print(beyond(classifier, pairs), flush=True)
    reviews = chosen(classifier, pairs, options.texts, options.words)
    print(about(classifier, reviews), flush=True)
    found = touched_in(classifier, judge, reviews, options.results)
    print(table(reviews, found))


def read_pairs(path: Path) -> list[Rewritten]:
    """Each original with its rewrite; pairs in which not one of the two is marked as the original are left out."""
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    rewrites = {row["pair_id"]: row["text"] for row in rows if not row["original"]}
    found = []
    for row in rows:
        if row["original"] and row["pair_id"] in rewrites:
            before = Example(row["pair_id"], row["text"], label=LABELS[row["label"]])
            after = Example(row["pair_id"], rewrites[row["pair_id"]])
            found.append(Rewritten(before, after, *changed_words(Words(before), Words(after))))
    return found


def beyond(classifier: Classifier, pairs: Sequence[Rewritten]) -> str:
    """How much of what people changed the model never reads."""
    every = sum(len(one.changed) for one in pairs)
    unread = sum(len(one.changed - set(read_of(classifier, one.example))) for one in pairs)
    return f"- words changed by people beyond the first {LIMIT} tokens: {unread} of {every} ({unread / every:.1%})"


def read_of(classifier: Classifier, example: Example) -> tuple[int, ...]:
    """The words that the model reads."""
    (found,) = attribute(classifier, [example], method="random")
    return tuple(n for n in range(len(found.words)) if n not in found.unread)


def chosen(classifier: Classifier, pairs: Sequence[Rewritten], n: int, words: int) -> list[Rewritten]:
    """So many reviews that are short enough and predicted right, always the same."""
    short = [one for one in pairs if one.changed and len(Words(one.example)) <= words]
    some = [short[int(k)] for k in np.random.default_rng(0).permutation(len(short))]
    found = []
    for one in some:
        if len(found) == n:
            break
        if classifier.predict(one.example)[0].label == one.example.label:
            found.append(one)
    return found


def about(classifier: Classifier, reviews: Sequence[Rewritten]) -> str:
    """What the reviews are like, and whether the model follows the people."""
    words = [len(Words(one.example)) for one in reviews]
    follows = [classifier.predict(one.after)[0].label != one.example.label for one in reviews]
    changed = [len(one.changed) for one in reviews]
    inserted = sum(one.inserted for one in reviews)
    return (
        f"- {len(reviews)} reviews of {np.mean(words):.0f} words; people changed {np.mean(changed):.1f} words of each "
        f"({sum(changed) / sum(words):.1%}; {inserted} of {sum(changed)} only got something before them)\n"
        f"- the rewrite flips the model too: {interval(follows)} of the reviews\n"
    )


def touched_in(
    classifier: Classifier, judge: LanguageModel | None, reviews: Sequence[Rewritten], path: Path | None
) -> dict[str, dict[str, list[int]]]:
    """Which words each way touches in each review: by the way's name, then by the review's id."""
    found: dict[str, dict[str, list[int]]] = json.loads(path.read_text()) if path and path.exists() else {}
    cache = ScoreCache()
    ways = [way for way in WAYS if way.method != "masked_lm" or judge is not None]
    names = [*RATIONALES, *(way.name for way in ways)]
    left = [one.example for one in reviews if any(one.example.id not in found.get(name, {}) for name in names)]
    for start in range(0, len(left), SOME):
        some = left[start : start + SOME]
        for name, own in rationales(classifier, some, cache).items():
            found.setdefault(name, {}).update(own)
        for way in ways:
            open_to = None
            if way.within is not None:
                open_to = {one.id: found["leave_one_out"][one.id][: most(one, way.within)] for one in some}
            flips = find_flips(
                classifier,
                some,
                method=way.method,
                editable=open_to,
                search={"alternatives": 0, **way.search},
                language_model=judge,
                cache=cache,
            )
            own = {one.example: [edit.position for edit in one.edits] if one.flips else [] for one in flips}
            found.setdefault(way.name, {}).update(own)
        if path is not None:
            path.write_text(json.dumps(found))
    return found


def rationales(classifier: Classifier, texts: Sequence[Example], cache: ScoreCache) -> dict[str, dict[str, list[int]]]:
    """Words that speak for the label by each explanation, the strongest first, as many as the largest share."""
    found = {}
    for method in RATIONALES:
        explained = attribute(classifier, texts, method=method, cache=cache)
        found[method] = {
            one.example: sorted(
                rationale_of(one, method="top_share", share=max(SHARES)).chosen, key=lambda n, s=one.scores: -s[n]
            )
            for one in explained
        }
    return found


def most(example: Example, share: float) -> int:
    """How many words a share is."""
    return max(1, round(share * len(Words(example))))


def agreement(touched: Collection[int], changed: Collection[int]) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    both = len(set(touched) & set(changed))
    if not both:
        return 0.0, 0.0, 0.0
    precision, recall = both / len(touched), both / len(changed)
    return precision, recall, 2 * precision * recall / (precision + recall)


def by_chance(words: int, touched: int, changed: Collection[int], rng: np.random.Generator) -> tuple[float, ...]:
    """The mean agreement of as many random words."""
    draws = [agreement(rng.permutation(words)[:touched].tolist(), changed) for _ in range(_RANDOM)]
    return tuple(np.mean(draws, axis=0))


def table(reviews: Sequence[Rewritten], found: Mapping[str, Mapping[str, Sequence[int]]]) -> str:
    """One line for each way, with the random words' F1 beside it."""
    head = ("way", "touched", "words", "precision", "recall", "F1", "F1 of random words", "difference")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    rows = [(f"{name}, {100 * share:.0f} % of the words", name, share) for name in RATIONALES for share in SHARES]
    rows += [(way.name, way.name, None) for way in WAYS if way.name in found]
    for shown, name, share in rows:
        rng = np.random.default_rng(0)
        scores, chance, counts = [], [], []
        for one in reviews:
            words = found[name][one.example.id]
            own = words if share is None else words[: most(one.example, share)]
            counts.append(len(own))
            scores.append(agreement(own, one.changed))
            chance.append(by_chance(len(Words(one.example)), len(own), one.changed, rng))
        precision, recall, f1 = np.array(scores).T
        random = np.array(chance)[:, 2]
        cells = [shown, f"{np.mean(np.array(counts) > 0):.2f}", f"{np.mean(counts):.1f}"]
        cells += [interval(list(values)) for values in (precision, recall, f1, random, f1 - random)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
