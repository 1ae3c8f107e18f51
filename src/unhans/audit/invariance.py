"""Changes that should not matter: names, numbers, punctuation, case, typing errors, a neutral opening."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Annotated

import numpy as np

from unhans.attributions import readable_words
from unhans.audit import Ask, Find, How, Outcome, check
from unhans.audit._look import changed, changes, places
from unhans.audit._rules import FEWEST, INVARIANCE, TYPOS
from unhans.audit._statistics import Flags, Floats, percent, share, wilson
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.text import Variant, Words, as_variant
from unhans.types import Example, Finding
from unhans.types import Variant as Changed

# Short lists of our own; a name that is not among them is not found.
_FIRST_NAMES = """
Anna Maria Sarah Laura Julia Emma Olivia Sophie Alice Helen Jane Mary Susan Linda Karen Nancy Betty Ruth Emily
Peter Paul John James Robert Michael William David Richard Thomas Charles Daniel Matthew Mark George Kevin Brian
Tom Sam Ben Jack Harry Oliver Leo Max Adam Eric Simon
"""
_NAMES = tuple(_FIRST_NAMES.split())
_OPENINGS = ("By the way, ", "As I said, ", "To be clear, ")
_END = re.compile(r"[\s.!?…]+$")
_SHOWN = 20
Change = Callable[[Example, "Sequence[int]", np.random.Generator], "Variant | None"]
"""The example changed, given the numbers of the words that the model reads; None where that cannot be."""


@check(
    title="Changes that should not matter",
    needs={"predict"},
    cost=1.0,
    order=8,
    paper="Ribeiro et al. 2020 (CheckList, invariance), arXiv:2005.04118",
)
def invariance(
    classifier: Classifier,
    examples: Sequence[Example],
    log_probs: Floats,
    ask: Ask,
    find: Find,
    how: How,
    seed: int,
    *,
    texts: Annotated[int, "texts that each change is tried on, as far as so many can have it"] = 400,
) -> Outcome:
    """Predictions that change with names, numbers, punctuation, case, one typing error or a neutral opening.

    A text is changed in one way at a time. The floor is in the rules: a change that moves fewer predictions than that
    is not told.
    """
    if texts < 1:
        raise BadOption(f"texts must be at least 1, not {texts}.")
    order = places(len(examples), len(examples), seed)
    np.random.default_rng([seed, 43]).shuffle(order)

    @cache
    def read(n: int) -> Sequence[int]:
        """What is changed behind the end of what is read says nothing."""
        return readable_words(classifier, examples[n], "word").open

    made = {kind: _made(examples, order, change, texts, seed, read) for kind, (_, change) in _CHANGES.items()}
    asked = [variant for some in made.values() for _, variant in some]
    answers, at, findings, told = ask(asked, how), 0, [], []
    for kind, some in made.items():
        after, at = answers[at : at + len(some)], at + len(some)
        if len(some) < FEWEST:
            told.append(f"{kind}: too few texts ({len(some)})")
            continue
        numbers = [n for n, _ in some]
        before, new = log_probs[numbers], [variant for _, variant in some]
        moved = changed(before, after)
        told.append(f"{kind}: {percent(moved.mean())} of {len(some):,}")
        shown = changes(classifier.labels, [examples[n] for n in numbers], new, before, after)
        findings += list(_findings(kind, moved, shown, find))
    return Outcome(f"Predictions that change with {'; '.join(told)}.", tuple(findings))


def _findings(kind: str, moved: Flags, shown: Sequence[Changed], find: Find) -> Iterator[Finding]:
    rule = TYPOS if kind == "typing errors" else INVARIANCE
    severity = rule(wilson(int(moved.sum()), len(moved))[0])
    if severity is None:
        return
    turned = [one for one in shown if one.before != one.after][:_SHOWN]
    yield find(
        severity,
        f"{percent(moved.mean())} of the predictions change with {kind}",
        says=f"{_CHANGES[kind][0]} A reader would not change the label for that.",
        evidence=[share(f"share of predictions that change with {kind}; usual: the floor", moved, rule.low)],
        examples=[one.example for one in turned],
        variants=turned,
        next="Look at the texts that changed sides; train on texts changed like that, under their own labels.",
        screen="examples",
        limits="The changes are made by rule, and now and then change the meaning. Nothing else than these is tried.",
    )


def _made(
    examples: Sequence[Example],
    order: Sequence[int],
    change: Change,
    most: int,
    seed: int,
    read: Callable[[int], Sequence[int]],
) -> list[tuple[int, Variant]]:
    """Up to so many examples with the changed text, in the order given."""
    found: list[tuple[int, Variant]] = []
    for n in order:
        if len(found) == most:
            break
        rng = np.random.default_rng([seed, int(examples[n].text_hash, 16)])
        new = change(examples[n], read(n), rng)
        if new is not None and new.texts != examples[n].parts:
            found.append((n, new))
    return found


def _edited(example: Example, edit: Callable[[str], str]) -> Variant:
    parts = [edit(part) for part in example.parts]
    return as_variant(parts[0] if len(parts) == 1 else (parts[0], parts[1]))


def _without_stop(example: Example, read: Sequence[int]) -> Variant | None:
    return _edited(example, lambda text: _END.sub("", text)) if len(read) == len(Words(example)) else None


def _names(example: Example, read: Sequence[int], rng: np.random.Generator) -> Variant | None:
    words = Words(example)
    found = sorted({words.strings[n] for n in read if words.strings[n] in _NAMES})
    if not found:
        return None
    others = [name for name in _NAMES if name not in found]
    new = dict(zip(found, rng.permutation(others), strict=False))
    return words.variant({n: str(new[word]) for n, word in enumerate(words.strings) if word in new})


def _numbers(example: Example, read: Sequence[int], rng: np.random.Generator) -> Variant | None:
    """Another number of as many digits for each; years and single digits stay, for they may mean something."""
    words = Words(example)
    strings = {n: words.strings[n] for n in read}
    found = {n: w for n, w in strings.items() if w.isdecimal() and len(w) > 1 and not _year(w)}
    if not found:
        return None
    return words.variant({n: str(rng.integers(10 ** (len(w) - 1), 10 ** len(w))) for n, w in found.items()})


def _year(word: str) -> bool:
    return len(word) == 4 and word[:2] in ("17", "18", "19", "20", "21")


def _typo(example: Example, read: Sequence[int], rng: np.random.Generator) -> Variant | None:
    """Two letters in the middle of one word change places."""
    words = Words(example)
    open_ = [
        (n, at)
        for n, word in ((n, words.strings[n]) for n in read)
        if word.isalpha()
        for at in range(1, len(word) - 2)
        if word[at] != word[at + 1]
    ]
    if not open_:
        return None
    positions = sorted({n for n, _ in open_})
    n = positions[int(rng.integers(len(positions)))]
    ats = [at for m, at in open_ if m == n]
    at, word = ats[int(rng.integers(len(ats)))], words.strings[n]
    return words.variant({n: word[:at] + word[at + 1] + word[at] + word[at + 2 :]})


def _opening(example: Example, _: Sequence[int], rng: np.random.Generator) -> Variant:
    chosen = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
    rest = example.text[:1].lower() + example.text[1:] if example.text[1:2].islower() else example.text
    return as_variant(chosen + rest if example.pair is None else (chosen + rest, example.pair))


_CHANGES: dict[str, tuple[str, Change]] = {
    "other names": ("First names were replaced by others.", _names),
    "other numbers": ("Numbers of two digits or more were replaced by others, years aside.", _numbers),
    "no stop at the end": (
        "Full stops, exclamation and question marks at the end were left out.",
        lambda example, read, _: _without_stop(example, read),
    ),
    "capital letters": ("All letters were made capital.", lambda example, *_: _edited(example, str.upper)),
    "small letters": ("All letters were made small.", lambda example, *_: _edited(example, str.lower)),
    "typing errors": ("Two letters inside one word changed places.", _typo),
    "a neutral opening": ("Words that say nothing were put in front.", _opening),
}
