"""Groups of people that the model treats unlike others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from unhans.attributions import readable_words
from unhans.audit import Ask, Find, How, Outcome, check
from unhans.audit._look import changed, changes
from unhans.audit._rules import FEWEST, GROUPS, SIGNIFICANT, SWAPS
from unhans.audit._statistics import Flags, Floats, Ints, difference, holm, more, percent, share, wilson
from unhans.model import Classifier
from unhans.text import Variant, Words, visible_form
from unhans.types import Evidence, Example, Finding
from unhans.types import Variant as Changed

# Words of ours that name groups of people, kind by kind: those of a line can stand for each other in most sentences.
# The list is short, English, and names what such words are, not who belongs where.
IDENTITY = {
    "women and men": ("women men", "woman man", "girls boys", "girl boy", "female male"),
    "religion": ("muslims christians jews hindus", "muslim christian jewish hindu", "islam christianity judaism"),
    "origin": ("blacks whites asians africans mexicans", "black white asian african mexican", "immigrants refugees"),
    "orientation": ("gay straight lesbian homosexual heterosexual", "gays straights lesbians homosexuals"),
}
_LINES = {word: line.split() for lines in IDENTITY.values() for line in lines for word in line.split()}
_KIND = {word: kind for kind, lines in IDENTITY.items() for line in lines for word in line.split()}
_LIST = "The words are a short English list of ours; whom a text is really about is not known. "
_MOST = 400  # texts in which one group is named instead of another


@dataclass(frozen=True)
class _Part:
    """Some of the examples, and whom they are about."""

    name: str
    inside: Flags
    words: tuple[str, ...] = ()
    of_data: bool = False  # a group of the examples, which need not be one of people


@check(
    title="Groups of people",
    needs={"predict"},
    cost=0.4,
    order=4,
    paper="Dixon et al. 2018, doi:10.1145/3278721.3278729; Hardt et al. 2016, arXiv:1610.02413",
)
def group_gaps(
    classifier: Classifier,
    examples: Sequence[Example],
    forms: Sequence[tuple[str, ...]],
    sizes: Ints,
    log_probs: Floats,
    given: Ints,
    ask: Ask,
    find: Find,
    how: How,
    rng: np.random.Generator,
) -> Outcome:
    """False alarms by group, and by mention of a group of people; and whether naming another group changes the label.

    Groups are those of the examples, and words of a short list of ours (`IDENTITY`). Each is compared, label by given
    label, with texts of about the same length (half to twice as many words) that are of no such group: Fisher's exact
    test, Holm's correction.
    """
    said = log_probs.argmax(axis=1)
    parts = [one for one in _parts(examples, forms) if one.inside.sum() >= FEWEST]
    named = np.array([any(word in _LINES for word in words) for words in forms], bool)
    rows = []
    for part in parts:
        for label, other in permutations(range(len(classifier.labels)), 2):
            one, rest = _compared(part, named, given == other, sizes)
            if min(one.sum(), rest.sum()) >= FEWEST:
                rows.append((part, label, other, one, rest))
    alarms = [tuple(int(k) for some in (one, rest) for k in ((said[some] == label).sum(), some.sum()))
              for _, label, _, one, rest in rows]  # fmt: skip
    findings = []
    for (part, label, other, one, _), counts, p in zip(rows, alarms, holm([more(*c) for c in alarms]), strict=True):
        if p < SIGNIFICANT:
            wrong = [examples[n].id for n in np.flatnonzero(one & (said == label))[:50]]
            findings += list(_gap(part, classifier.labels, (label, other), counts, wrong, find))
    moved, shown = _swapped(classifier, examples, log_probs, ask, how, rng)
    findings += list(_swap(moved, shown, find))
    told = f"{len(parts)} groups or mentions of groups were compared in {len(rows)} ways"
    swaps = f"; {percent(moved.mean())} of {len(moved):,} predictions change with the group named" if len(moved) else ""
    return Outcome(f"{told}{swaps}.", tuple(findings))


def _parts(examples: Sequence[Example], forms: Sequence[tuple[str, ...]]) -> Iterator[_Part]:
    groups = sorted({example.group for example in examples if example.group is not None})
    for group in groups if len(groups) > 1 else ():
        yield _Part(f"texts of the group {group}", np.array([e.group == group for e in examples], bool), of_data=True)
    for kind in IDENTITY:
        inside = np.array([any(_KIND.get(word) == kind for word in words) for words in forms], bool)
        yield _Part(f"texts that name groups of people ({kind})", inside)
    for word in _LINES:
        inside = np.array([word in words for words in forms], bool)
        yield _Part(f"texts with the word {word!r}", inside, (word,))


def _compared(part: _Part, named: Flags, labelled: Flags, sizes: Ints) -> tuple[Flags, Flags]:
    """The texts of the part that are labelled so, and comparable ones outside."""
    one = part.inside & labelled
    if not one.any():
        return one, one
    low, high = np.median(sizes[one]) / 2, 2 * np.median(sizes[one])
    outside = ~part.inside if part.of_data else ~named
    return one, labelled & outside & (sizes >= low) & (sizes <= high)


def _gap(
    part: _Part,
    labels: Sequence[str],
    said_and_given: tuple[int, int],
    counts: tuple[int, ...],
    wrong: Sequence[str],
    find: Find,
) -> Iterator[Finding]:
    alarms, n, others, m = counts
    label, other = (labels[number] for number in said_and_given)
    without = "without being so" if len(labels) == 2 else f"where the label is {other}"
    severity = GROUPS(difference(alarms, n, others, m)[0])
    if severity is None:
        return
    low, high = wilson(alarms, n)
    what = f"{part.name} that are labelled {other} and called {label}; usual: comparable texts of no such group"
    yield find(
        severity,
        f"{percent(alarms / n)} of {part.name} are called {label} {without}, {percent(others / m)} of others",
        says=f"Texts {'of this group' if part.of_data else 'about these people'} get the label more often where it is "
        "wrong than comparable texts do.",
        evidence=[Evidence(what, alarms / n, others / m, low, high, n)],
        examples=wrong,
        words=part.words,
        next="Look at the errors; if they have a reason in common, train on more such texts, or teach the model."
        if part.of_data
        else "Lower the words that should not decide, and teach the model that; or train on more such texts.",
        screen="examples" if part.of_data else "words",
        limits=("" if part.of_data else _LIST) + "Comparable means the same labels and about the same length, no more.",
    )


def _swapped(
    classifier: Classifier,
    examples: Sequence[Example],
    log_probs: Floats,
    ask: Ask,
    how: How,
    rng: np.random.Generator,
) -> tuple[Flags, list[Changed]]:
    """Texts in which another group of the same kind is named."""
    numbers: list[int] = []
    made: list[Variant] = []
    for number, example in enumerate(examples):
        new = _other_group(classifier, example, rng)
        if new is not None and len(made) < _MOST:
            numbers.append(number)
            made.append(new)
    before, after = log_probs[numbers], ask(made, how)
    return changed(before, after), changes(classifier.labels, [examples[n] for n in numbers], made, before, after)


def _other_group(classifier: Classifier, example: Example, rng: np.random.Generator) -> Variant | None:
    words = Words(example)
    forms = [visible_form(word) for word in words.strings]
    found = sorted({form for form in forms if form in _LINES})
    if len(found) != 1:  # of several groups nobody knows which is meant
        return None
    if not any(forms[n] == found[0] for n in readable_words(classifier, example, "word").open):
        return None  # the model does not read who is named
    others = [word for word in _LINES[found[0]] if word != found[0]]
    new = str(rng.choice(others))
    return words.variant(
        {n: new.capitalize() if words.strings[n][:1].isupper() else new for n, f in enumerate(forms) if f == found[0]}
    )


def _swap(moved: Flags, shown: Sequence[Changed], find: Find) -> Iterator[Finding]:
    severity = SWAPS(wilson(int(moved.sum()), len(moved))[0]) if len(moved) >= FEWEST else None
    if severity is None:
        return
    turned = [one for one in shown if one.before != one.after][:20]
    yield find(
        severity,
        f"{percent(moved.mean())} of the predictions change when another group of people is named",
        says='A word for a group was replaced by one for another group of the same kind, as "women" by "men".',
        evidence=[share("predictions that change with the group that is named; usual: none", moved, 0.0)],
        examples=[one.example for one in turned],
        variants=turned,
        next="Lower the words that should not decide, and teach the model that.",
        screen="words",
        limits="Some sentences mean something else with another group in them. The words are a short list of ours.",
    )
