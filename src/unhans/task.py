"""Task explanations: what a model has learned about the words of a task, and which of them to look at first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadData
from unhans.model import Classifier
from unhans.scoring import Progress, ScoreCache
from unhans.text import Unit, Words, visible_form
from unhans.types import Attribution, Example, Prediction, RankedWord, Suspect, Suspects, WordRanking

_ENOUGH = 8  # words: a line through fewer says nothing about the rest
_IDS = 100  # examples named for each suspect
_HUBER = 1.345  # standard deviations: what lies farther out pulls the line with constant force only
_TO_DEVIATION = 1.4826  # from the median absolute residual of a normal distribution to its standard deviation


def rank_words(
    attributions: Sequence[Attribution],
    *,
    label: str,
    examples: Iterable[Example] | None = None,
    predictions: Iterable[Prediction] | None = None,
    order: Literal["mean", "total"] = "mean",
    min_count: int = 3,
    keep: int = 20,
) -> WordRanking:
    """The vocabulary by its mean score for a label over the examples that contain the word.

    Words are counted together when they look alike (case and hidden characters aside); a word that occurs twice in an
    example counts once there, with the sum of its scores. `total` orders by mean × number of examples instead, which
    puts what the model leans on most often first.

    Labelled `examples` (the explained ones, or more) tell how strongly each word goes with the label in the data; `z`
    is how far the model's score exceeds that. With `predictions` too, `correct` is the share of right ones. Each word
    names up to `keep` examples.
    """
    chosen = [one for one in attributions if one.label == label]
    if not chosen:
        raise BadData(f"None of the attributions is for the label {label!r}, so there is nothing to rank.")
    first = _source(chosen)
    scores = {word: found for word, found in _scores_by_word(chosen).items() if len(found) >= min_count}
    labelled = [example for example in examples or () if example.label is not None]
    right = _right(labelled, predictions or ())
    rows = [_ranked(word, found, right, keep) for word, found in scores.items()]
    excess = _excess(rows, _associations(labelled, label, scores, first.terms.unit))
    rows = [row if z is None else replace(row, z=z) for row, z in zip(rows, excess, strict=True)]
    weight = (lambda row: row.score * row.count) if order == "total" else (lambda row: row.score)
    return WordRanking(label, tuple(sorted(rows, key=weight, reverse=True)), first.recipe, first.revision)


def suspects(
    classifier: Classifier,
    examples: Iterable[Example],
    attributions: Sequence[Attribution],
    *,
    label: str | None = None,
    keep: int = 20,
    candidates: int = 50,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
) -> Suspects:
    """The words that a person should look at first, by expected damage: weight × coverage × disagreement.

    Weight is a word's share of the absolute scores of a text, coverage the share of the explained examples that contain
    it, and disagreement the share of those where the model, once every occurrence of the word is gone, misses the given
    label (where none is known: changes its prediction). The model is asked about the `candidates` with the greatest
    weight × coverage, in one go; the worst `keep` come back. With `label`, only attributions for it count.
    """
    chosen = [one for one in attributions if label in (None, one.label)]
    if not chosen:
        raise BadData("There are no attributions to find suspects in" + (f" for {label!r}." if label else "."))
    first = _source(chosen)
    if first.revision != classifier.revision:
        raise BadData("The attributions explain another revision of the model than the one given; explain this one.")
    known = {example.id: example for example in examples}
    if missing := [one.example for one in chosen if one.example not in known]:
        raise BadData(f"The example {missing[0]!r} is explained but not among the examples given.")
    texts = {one.example: _as_read(known[one.example], one) for one in chosen}
    places, weights = _places(texts), _weights(chosen)
    coverage = {word: len(found) / len(texts) for word, found in places.items()}
    asked = sorted(places, key=lambda word: -weights[word] * coverage[word])[:candidates]
    truth = _truth(classifier, [known[id_] for id_ in texts])
    unlabelled = [id_ for id_ in texts if id_ not in truth]
    variants = [texts[id_].variant({}) for id_ in unlabelled]
    variants += [texts[id_].without(at) for word in asked for id_, at in places[word].items()]
    answers = classifier.log_probs(variants, cache=cache, cancelled=cancelled, progress=progress).argmax(axis=1)
    left = iter(answers.tolist())
    truth |= {id_: next(left) for id_ in unlabelled}
    scores = {name: _scores_by_word(one for one in chosen if one.label == name) for name in classifier.labels}
    rows = []
    for word in asked:
        missed = sum(next(left) != truth[id_] for id_ in places[word]) / len(places[word])
        means = {name: float(np.mean(list(by[word].values()))) for name, by in scores.items() if word in by}
        speaks_for = max(means, key=means.__getitem__)
        damage = weights[word] * coverage[word] * missed
        ids = _strongest(scores[speaks_for][word], _IDS)
        told = (speaks_for, means[speaks_for], weights[word], coverage[word], missed, damage, len(places[word]), ids)
        rows.append(Suspect(word, *told))
    rows.sort(key=lambda row: (-row.damage, -row.weight * row.coverage))
    return Suspects(tuple(rows[:keep]), first.recipe, first.revision)


def _source(attributions: Sequence[Attribution]) -> Attribution:
    """One of the attributions, after making sure that their scores can be compared."""
    if len({(one.recipe, one.revision, one.terms) for one in attributions}) > 1:
        raise BadData("The attributions come from different methods or models; their scores cannot be compared.")
    return attributions[0]


def _scores_by_word(attributions: Iterable[Attribution]) -> dict[str, dict[str, float]]:
    """For each word, its score in each example that contains it, summed over its occurrences."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in attributions:
        for position, (word, score) in enumerate(zip(one.words, one.scores, strict=True)):
            if position not in one.unread:
                found[visible_form(word)][one.example] += score
    return found


def _weights(attributions: Iterable[Attribution]) -> dict[str, float]:
    """For each word, its share of the absolute scores of an attribution, on average over those that contain it."""
    shares: dict[str, list[float]] = defaultdict(list)
    for one in attributions:
        strengths = replace(one, scores=tuple(map(abs, one.scores)))
        total = sum(strengths.scores) or 1.0
        for word, strength in _scores_by_word([strengths]).items():
            shares[word].append(strength[one.example] / total)
    return {word: sum(found) / len(found) for word, found in shares.items()}


def _ranked(word: str, scores: Mapping[str, float], right: Mapping[str, bool], keep: int) -> RankedWord:
    values = np.array(list(scores.values()))
    verdicts = [right[id_] for id_ in scores if id_ in right]
    correct = sum(verdicts) / len(verdicts) if verdicts else None
    return RankedWord(
        word, float(values.mean()), float(values.std()), len(values), _strongest(scores, keep), correct=correct
    )


def _strongest(scores: Mapping[str, float], keep: int) -> tuple[str, ...]:
    return tuple(sorted(scores, key=lambda id_: -abs(scores[id_]))[:keep])


def _right(labelled: Iterable[Example], predictions: Iterable[Prediction]) -> dict[str, bool]:
    """Whether each prediction that can be checked is right."""
    truth = {example.id: example.label for example in labelled}
    return {one.example: one.label == truth[one.example] for one in predictions if one.example in truth}


def _associations(
    labelled: Sequence[Example], label: str, words: Iterable[str], unit: Unit
) -> NDArray[np.float64] | None:
    """Log odds ratio of each word with the label in the data; none where all examples have it, or none.

    One more example is imagined on each side, in the proportion of the labels: a word that is rare has no association.
    """
    with_label = sum(example.label == label for example in labelled)
    if not 0 < with_label < len(labelled):
        return None
    counts: dict[str, list[int]] = {word: [0, 0] for word in words}
    for example in labelled:
        for word in {visible_form(string) for string in Words(example, units=unit).strings} & counts.keys():
            counts[word][example.label == label] += 1
    share = with_label / len(labelled)
    without, with_ = np.array(list(counts.values()), float).reshape(-1, 2).T
    others = len(labelled) - with_label
    inside = np.log(with_ + share) - np.log(without + 1 - share)
    outside = np.log(with_label - with_ + share) - np.log(others - without + 1 - share)
    ratio: NDArray[np.float64] = inside - outside
    return ratio


def _excess(rows: Sequence[RankedWord], association: NDArray[np.float64] | None) -> list[float] | list[None]:
    """For each word, standard errors between its score and the line of scores by association (Huber's regression)."""
    if association is None or len(rows) < _ENOUGH:
        return [None] * len(rows)
    scores, spreads = np.array([row.score for row in rows]), np.array([row.spread for row in rows])
    counts = np.array([row.count for row in rows], float)
    least = 1e-6 * max(1e-12, np.abs(scores).max())  # keeps a perfect line from dividing by zero
    design = np.stack([np.ones(len(rows)), association - np.average(association, weights=counts)], axis=1)
    trust = np.ones(len(rows))
    for _ in range(20):  # settles to three digits well before
        root = np.sqrt(counts * trust)
        line = np.linalg.lstsq(design * root[:, None], scores * root, rcond=None)[0]
        residuals = scores - design @ line
        deviation = max(least, _TO_DEVIATION * float(np.median(np.abs(residuals))))
        trust = np.minimum(1.0, _HUBER * deviation / np.maximum(least, np.abs(residuals)))
    z = residuals / np.sqrt(deviation**2 + spreads**2 / counts)
    return [float(value) for value in z]


def _as_read(example: Example, attribution: Attribution) -> Words:
    """The explained units of an example; what the model did not read is gone, so that it does not move up."""
    tails = [attribution.spans[position] for position in attribution.unread]
    gone = [
        number
        for number, span in enumerate(Words(example).spans if tails else ())
        if any(span.part == tail.part and tail.start <= span.start < tail.end for tail in tails)
    ]
    words = Words(example, units=attribution.terms.unit, gone=gone)
    if words.strings != attribution.words:
        raise BadData(f"The attribution of {attribution.example!r} explains another text than the example has.")
    return words


def _places(texts: Mapping[str, Words]) -> dict[str, dict[str, list[int]]]:
    """For each word, where it stands in each example that contains it and is read there."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for id_, text in texts.items():
        for position in text.open:
            found[visible_form(text.strings[position])][id_].append(position)
    return found


def _truth(classifier: Classifier, examples: Iterable[Example]) -> dict[str, int]:
    """Numbers of the given labels, where there are any."""
    given = {example.id: example.label for example in examples if example.label is not None}
    if strange := sorted(set(given.values()) - set(classifier.labels)):
        raise BadData(
            f"The examples have the label {strange[0]!r}, and the model does not: it knows "
            f"{', '.join(classifier.labels)}. Say which is which when reading the data: read(..., labels={{...}})."
        )
    return {id_: classifier.label_number(label) for id_, label in given.items()}
