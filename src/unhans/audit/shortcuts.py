"""Single words that decide, whatever else a text says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from unhans.audit import Ask, Find, How, Outcome, check
from unhans.audit._candidates import candidates
from unhans.audit._rules import AGAINST, OVERRIDES, RELIANCE, SIGNIFICANT, mildest, worst
from unhans.audit._statistics import Floats, Ints, difference, fewer, holm, percent, share, wilson
from unhans.audit._words import Texts, Tried, try_words
from unhans.errors import BadOption
from unhans.model import Classifier
from unhans.types import Attributions, Evidence, Example, Finding, Severity

_FEWEST = 5  # texts with a word under other labels that say something about it
_RIVALS = 5  # the strongest other words, with which a word's effect is compared


@check(
    title="Shortcuts",
    needs={"predict"},
    cost=4.0,
    order=1,
    paper="Pezeshkpour et al. 2022, arXiv:2107.00323; Wang et al. 2022, arXiv:2110.07736",
)
def shortcuts(
    classifier: Classifier,
    examples: Sequence[Example],
    train: Sequence[Example],
    forms: Sequence[tuple[str, ...]],
    log_probs: Floats,
    given: Ints,
    explain: Callable[[How], Attributions],
    ask: Ask,
    find: Find,
    how: How,
    rng: np.random.Generator,
    seed: int,
    *,
    most: Annotated[int, "words that become findings at most"] = 10,
) -> Outcome:
    """Words that turn over clear texts of other labels, far beyond what other words do that matter too.

    Explanations and the data point at words; each is then taken out, exchanged for a comparable word, and put into
    clear texts of other labels. What comparable words do in the same texts is what is usual.
    """
    if most < 1:
        raise BadOption(f"most must be at least 1, not {most}.")
    texts = Texts(classifier, examples, train, forms, log_probs, given, seed)
    tried = tried_words(texts, explain, ask=ask, how=how, rng=rng)
    if not tried:
        return Outcome("No word occurs in enough texts to be tried.")
    graded = grades(tried)
    findings = [_finding(one, tried, classifier, find) for one in graded[:most]]
    first = ", ".join(repr(one.word) for one in tried[:5])
    said = f"{len(tried)} words were tried; the strongest are {first}."
    if len(graded) > most:
        said += (
            f" {len(graded) - most} more are like those found: {', '.join(one.tried.word for one in graded[most:])}."
        )
    return Outcome(said if graded else f"{said} None of them does more than words do that matter.", tuple(findings))


def tried_words(
    texts: Texts, explain: Callable[[How], Attributions], *, ask: Ask, how: How, rng: np.random.Generator
) -> list[Tried]:
    """The words on trial, the strongest first: by the effect of the word alone on clear texts of other labels."""
    explained = explain(how.part(0, 3))
    words = candidates(texts, explained, ask=ask, how=how.part(1, 3))
    tried = try_words(texts, words, ask=ask, how=how.part(2, 3), rng=rng) if words else []
    return sorted(tried, key=lambda one: (-one.effect, one.word))


@dataclass(frozen=True)
class _Graded:
    """A word that is a finding."""

    tried: Tried
    severity: Severity
    lost: float  # accuracy that other labels surely lose where the word stands; 0 if that may be chance


def grades(tried: Sequence[Tried]) -> list[_Graded]:
    """The words that are bad, the worst first; those level stay in their order."""
    lost = [_lost(one) for one in tried]
    surely = [p < SIGNIFICANT for p in holm([p for _, p in lost])]
    sure_losses = [low if sure else 0.0 for (low, _), sure in zip(lost, surely, strict=True)]
    found = [(one, _severity(one, low), low) for one, low in zip(tried, sure_losses, strict=True)]
    graded = [_Graded(one, severity, low) for one, severity, low in found if severity is not None]
    return sorted(graded, key=lambda one: ("high", "medium", "low").index(one.severity))


def _severity(one: Tried, lost: float) -> Severity | None:
    """How bad a word is: by how much of its label rests on it, or by the errors that it goes with in the examples.

    Neither counts for more than how many clear texts the word turns over when it is put there; errors alone, with a
    word that turns none over, are a hint.
    """
    turned = wilson(int(one.flips.sum()), len(one.flips))[0]
    overrides = OVERRIDES(turned) if turned > one.usual else None
    rests = mildest(RELIANCE(one.reliance[1]), overrides)
    errs = AGAINST(lost) and mildest(AGAINST(lost), overrides or "low")
    return worst(rests, errs)


def beyond(one: Tried, tried: Sequence[Tried]) -> float | None:
    """The effect of the strongest other words, to compare a word's effect with."""
    rivals = sorted((other.effect for other in tried if other.word != one.word), reverse=True)[:_RIVALS]
    return float(np.median(rivals)) if rivals else None


def _lost(one: Tried) -> tuple[float, float]:
    """How much accuracy other labels lose in texts with the word: the lower end of the interval, and Fisher's p."""
    (right, n), (rest, m) = one.against.tolist()
    if min(n, m) < _FEWEST:
        return 0.0, 1.0
    return difference(rest, m, right, n)[0], fewer(right, n, rest, m)


def _finding(graded: _Graded, tried: Sequence[Tried], classifier: Classifier, find: Find) -> Finding:
    one = graded.tried
    label, rests = classifier.labels[one.label], one.reliance[0]
    return find(
        graded.severity,
        _title(graded, classifier.labels),
        says=f"Put into clear texts of other labels, it turns {percent(one.turned)} of them over; comparable words "
        f"turn {percent(one.usual)}. {percent(rests)} of all predictions of {label} would change without it.",
        evidence=_evidence(one, tried, classifier.labels),
        examples=one.examples,
        words=[one.word],
        variants=one.variants,
        next="If the word should not decide, lower it, and teach the model that.",
        screen="words",
        limits="A word that carries the label's meaning does the same on a smaller scale: whether it should decide is "
        "for people to say. Words in fewer than five texts, and shortcuts that are no single word, are not tried.",
    )


def _title(graded: _Graded, labels: Sequence[str]) -> str:
    """The worst that was measured of the word."""
    one = graded.tried
    label = labels[one.label]
    if OVERRIDES(wilson(int(one.flips.sum()), len(one.flips))[0]) == "high":
        return f"The word {one.word!r} alone makes the model say {label}"
    if AGAINST(graded.lost):
        assert one.other is not None  # what was lost was lost under that label
        where = f"stands under {labels[one.other]}" if len(labels) > 2 else f"does not mean {label}"
        return f"The model is wrong where the word {one.word!r} {where}"
    return f"Much of what the model calls {label} rests on the word {one.word!r}"


def _evidence(one: Tried, tried: Sequence[Tried], labels: Sequence[str]) -> list[Evidence]:
    label, (value, low, high) = labels[one.label], one.reliance
    what = f"clear texts of other labels that become {label} with the word; usual: with comparable words"
    told = [share(what, one.flips, one.usual)]
    if len(one.removed):
        what = f"predictions of {label} that would change without the word, of all of them; usual: none"
        told.append(Evidence(what, value, 0.0, low, high, len(one.removed)))
        told.append(share("predictions that change when the word is taken out of its texts", one.removed))
    if len(one.swapped):
        told.append(share("predictions that change when a comparable word takes its place", one.swapped))
    told += _accuracy(one, labels)
    what = f"mean change of the log odds of {label} with the word; usual: with the strongest other words"
    told.append(Evidence(what, one.effect, beyond(one, tried), n=len(one.flips)))
    if one.excess is not None:
        told.append(Evidence("standard errors of its score above what the data explain", one.excess, 0.0, n=one.texts))
    if one.base:
        what = f"share of the labelled texts with the word that are {label}; usual: of all labelled texts"
        told.append(Evidence(what, one.share, one.base, n=one.labelled))
    return told


def _accuracy(one: Tried, labels: Sequence[str]) -> list[Evidence]:
    """How often the model is right about the word's texts under the other label that most of them have."""
    (right, n), (rest, m) = one.against.tolist()
    if one.other is None or not n or not m:
        return []
    low, high = wilson(right, n)
    given = "other label" if len(labels) == 2 else f"label {labels[one.other]}"
    what = f"accuracy where the word stands under the {given}; usual: under it without the word"
    return [Evidence(what, right / n, rest / m, low, high, n)]
