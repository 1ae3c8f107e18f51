"""Changes that should matter, in a known direction: negation, and words that make others stronger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from unhans.attributions import readable_words
from unhans.audit import Ask, Find, How, Outcome, check
from unhans.audit._look import changes
from unhans.audit._rules import DIRECTION, FEWEST
from unhans.audit._statistics import Flags, Floats, percent, share, wilson
from unhans.errors import BadOption, Unsupported
from unhans.heuristics import has
from unhans.model import Classifier
from unhans.text import Variant, Words, as_variant, visible_form
from unhans.types import Example, Finding
from unhans.types import Variant as Changed

# Words of ours that praise and blame whatever they are said of.
_GOOD = "good great excellent wonderful lovely amazing fantastic brilliant perfect superb delightful pleasant"
_BAD = "bad awful terrible horrible dreadful poor disappointing boring disgusting unpleasant dull useless"
_PRAISE, _BLAME = _GOOD.split(), _BAD.split()
_PLAIN = ("It was {}.", "That is {}.", "This one is {}.")
_LINKS = "is are was were be been seems seemed looks looked feels felt"
_BEFORE = frozenset(_LINKS.split())
_LEARNT = 0.8  # share of plain sentences of praise that have one label, and of blame another
_ALLOWED = 0.1  # of the probability, by which a text may move the wrong way: CheckList's margin


@check(
    title="Changes that should matter",
    needs={"predict"},
    cost=0.15,
    order=9,
    on="single",
    paper="Ribeiro et al. 2020 (CheckList, directional), arXiv:2005.04118",
)
def direction(
    classifier: Classifier,
    examples: Sequence[Example],
    log_probs: Floats,
    ask: Ask,
    find: Find,
    how: How,
    *,
    texts: Annotated[int, "texts that each change is tried on at most"] = 300,
) -> Outcome:
    """Negated praise and blame, and praise and blame made stronger, in plain sentences and in the texts at hand.

    Which labels mean praise and blame is learnt from the model itself: it is asked about 72 plain sentences of ours
    ("It was awful."). If most of the praise gets one label and most of the blame another, those are the two; else the
    labels have no direction that we know, and the check is left out.
    """
    if texts < 1:
        raise BadOption(f"texts must be at least 1, not {texts}.")
    words = [(word, pole) for pole, some in enumerate((_BLAME, _PRAISE)) for word in some]
    plain = [(frame.format(word), pole) for word, pole in words for frame in _PLAIN]
    said = ask([text for text, _ in plain], how.part(0, 3))
    poles = _poles(classifier, said.argmax(axis=1), np.array([pole for _, pole in plain]))
    own = _in_texts(classifier, examples, texts)
    findings = list(_plain_negation(classifier, plain, said, poles, ask, find, how.part(1, 3)))
    told = []
    for name, word in (("negation", "not"), ("a stronger word", "very")):
        found = [(n, at, pole) for n, at, pole in own if word != "not" or not has(examples[n], "negation")]
        if len(found) < FEWEST:
            told.append(f"{name}: too few texts ({len(found)})")
            continue
        made = [_with(examples[n], at, word) for n, at, _ in found]
        numbers = [n for n, _, _ in found]
        before, after = log_probs[numbers], ask(made, how.part(2, 3))
        wanted = np.array([poles[pole] for _, _, pole in found])
        rows = np.arange(len(found))
        moved = np.exp(after[rows, wanted]) - np.exp(before[rows, wanted])
        wrong = moved > _ALLOWED if word == "not" else moved < -_ALLOWED
        told.append(f"{name}: {percent(wrong.mean())} of {len(found):,} the wrong way")
        some = [m for m in np.flatnonzero(wrong)]
        shown = changes(classifier.labels, [examples[numbers[m]] for m in some], [made[m] for m in some],
                        before[some], after[some])  # fmt: skip
        findings += list(_findings(name, word, wrong, shown, find))
    names = f"{classifier.labels[poles[1]]!r} for praise and {classifier.labels[poles[0]]!r} for blame"
    return Outcome(f"The model says {names}. In the texts, {'; '.join(told)}.", tuple(findings))


def _poles(classifier: Classifier, said: Floats, pole: Floats) -> tuple[int, int]:
    """The labels of blame and of praise."""
    found = []
    for number in (0, 1):
        own = said[pole == number].astype(int)
        label = int(np.bincount(own).argmax())
        found.append((label, float((own == label).mean())))
    (blame, first), (praise, second) = found
    if blame == praise or min(first, second) < _LEARNT:
        raise Unsupported(
            f"The labels ({', '.join(classifier.labels[:5])}) have no direction that we know: plain sentences of "
            "praise and of blame do not get two different ones."
        )
    return blame, praise


def _plain_negation(
    classifier: Classifier,
    plain: Sequence[tuple[str, int]],
    said: Floats,
    poles: tuple[int, int],
    ask: Ask,
    find: Find,
    how: How,
) -> Iterator[Finding]:
    """ "It was not awful." where "It was awful." is understood: the label must not stay."""
    understood = [n for n, (_, pole) in enumerate(plain) if said[n].argmax() == poles[pole]]
    made = [plain[n][0].replace(" was ", " was not ").replace(" is ", " is not ") for n in understood]
    after = ask(made, how)
    stays = after.argmax(axis=1) == said[understood].argmax(axis=1)
    severity = DIRECTION(wilson(int(stays.sum()), len(stays))[0])
    if severity is None:
        return
    examples = [Example(f"plain sentence {n + 1}", plain[n][0]) for n in understood]
    kept = np.flatnonzero(stays)
    shown = changes(classifier.labels, [examples[m] for m in kept], [as_variant(made[m]) for m in kept],
                    said[[understood[m] for m in kept]], after[kept])  # fmt: skip
    yield find(
        severity,
        f"{percent(stays.mean())} of plain sentences keep their label when they are negated",
        says='The model understands "It was awful.", and says the same of "It was not awful.".',
        evidence=[share("plain sentences that keep their label with 'not'; usual: none", stays, 0.0)],
        words=["not"],
        variants=shown[:20],
        next="Give the model negated sentences to train on.",
        screen="flips",
        limits="The sentences are ours and short; the texts at hand may negate otherwise, or not at all.",
    )


def _in_texts(classifier: Classifier, examples: Sequence[Example], most: int) -> list[tuple[int, int, int]]:
    """Where a text says that something is good or bad: its number, the word's place, and whether it is praise.

    Only where the model reads it.
    """
    pole = dict.fromkeys(_BLAME, 0) | dict.fromkeys(_PRAISE, 1)
    found: list[tuple[int, int, int]] = []
    for number, example in enumerate(examples):
        strings = [visible_form(word) for word in Words(example).strings]
        places = [n for n in range(1, len(strings)) if strings[n] in pole and strings[n - 1] in _BEFORE]
        if places and len(found) < most:
            read = readable_words(classifier, example, "word").open
            found += [(number, at, pole[strings[at]]) for at in places if at in read][:1]
    return found


def _with(example: Example, at: int, word: str) -> Variant:
    words = Words(example)
    return words.variant({at: f"{word} {words.strings[at]}"})


def _findings(name: str, word: str, wrong: Flags, shown: Sequence[Changed], find: Find) -> Iterator[Finding]:
    severity = DIRECTION(wilson(int(wrong.sum()), len(wrong))[0])
    if severity is None:
        return
    yield find(
        severity,
        f"{percent(wrong.mean())} of the texts move the wrong way with {name}",
        says=f"{word!r} was put before a word of praise or blame. The label of that word should then be "
        f"{'less' if word == 'not' else 'no less'} probable.",
        evidence=[share(f"texts that move by more than {_ALLOWED:g} the wrong way; usual: none", wrong, 0.0)],
        examples=[one.example for one in shown],
        words=[word],
        variants=shown[:20],
        next="Look at these texts, and give the model such sentences to train on.",
        screen="flips",
        limits='Only words of a short list of ours after a form of "be" or the like are changed.',
    )
