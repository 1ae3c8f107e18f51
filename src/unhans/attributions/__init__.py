"""Attributions: how much each word speaks for a label.

`attribute` is the front door: it chooses the label, checks what the classifier can do, batches, and wraps scores into
`Attribution`s. A method is one file with one function; the law tests run on every one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.errors import BadData, BadOption
from unhans.model import Classifier, TransformerClassifier, as_examples
from unhans.registry import Registry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Text, Words, visible_form
from unhans.types import Attribution, Example, RankedWord, Recipe, Span, WordRanking

Scores = Tensor | Sequence[NDArray[np.float64]]
"""What a method returns: rows × words (zero beyond a row's last word), or one line of scores per example."""

attribution = Registry(
    "attributions",
    offers=("classifier", "words", "batch", "targets", "create_graph", "rng", "how"),  # how: what scoring takes
    package="unhans.attributions",
)
_EXAMPLES_AT_ONCE = 256  # for methods that query: enough variants to fill batches, few enough to show progress


def attribute(
    classifier: Classifier,
    texts: Text | Iterable[Text],
    *,
    method: str = "leave_one_out",
    label: str | None = None,
    seed: int = 0,
    batch_size: int = 16,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
    **options: Any,
) -> list[Attribution]:
    """One attribution per text or example, for `label` or else for the label the model predicts.

    Scores are signed: positive words speak for the label. Their unit depends on the method. Words beyond the model's
    length limit score 0 and are listed as unread.
    """
    entry = attribution[method]
    usable = [other.name for other in attribution if other.needs <= classifier.capabilities]
    classifier.require(entry.needs, method, f"Methods that work with it: {', '.join(usable)}.")
    recipe = entry.recipe(options, seed)
    if batch_size < 1:
        raise BadOption(f"batch_size must be at least 1, not {batch_size}.")
    examples, how = list(as_examples(texts)), {"cancelled": cancelled, "cache": cache}
    targets = _targets(classifier, examples, label, how)
    size = batch_size if "batch" in entry.asks else _EXAMPLES_AT_ONCE
    found: list[Attribution] = []
    for start in range(0, len(examples), size):
        some, goals = examples[start : start + size], targets[start : start + size]
        offered = _offer(classifier, some, goals, "batch" in entry.asks)
        offered |= {"create_graph": False, "rng": np.random.default_rng([seed, start]), "how": how}
        lines = _lines(entry(offered, **options))
        for example, words, goal, line in zip(some, offered["words"], goals, lines, strict=True):
            found.append(_wrap(classifier, example, words, label=classifier.labels[goal], line=line, recipe=recipe))
        if progress is not None:
            progress(len(found), len(examples))
    return found


def rank_words(
    attributions: Sequence[Attribution],
    *,
    label: str,
    order: Literal["mean", "total"] = "mean",
    min_count: int = 3,
    keep: int = 20,
) -> WordRanking:
    """The vocabulary by its mean score for a label over the examples that contain the word.

    Words are counted together when they look alike (case and hidden characters aside); a word that occurs twice in an
    example counts once there, with the sum of its scores. `total` orders by mean × number of examples instead, which
    puts what the model leans on most often first.
    """
    chosen = [one for one in attributions if one.label == label]
    if not chosen:
        raise BadData(f"None of the attributions is for the label {label!r}, so there is nothing to rank.")
    by_word: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in chosen:
        for position, (word, score) in enumerate(zip(one.words, one.scores, strict=True)):
            if position not in one.unread:
                by_word[visible_form(word)][one.example] += score
    rows = [_ranked(word, scores, keep) for word, scores in by_word.items() if len(scores) >= min_count]
    weight = (lambda row: row.score * row.count) if order == "total" else (lambda row: row.score)
    return WordRanking(label, tuple(sorted(rows, key=weight, reverse=True)), chosen[0].recipe, chosen[0].revision)


def _ranked(word: str, scores: dict[str, float], keep: int) -> RankedWord:
    values = np.array(list(scores.values()))
    strongest = sorted(scores, key=lambda example: -abs(scores[example]))[:keep]
    return RankedWord(word, float(values.mean()), float(values.std()), len(values), tuple(strongest))


def _targets(classifier: Classifier, examples: Sequence[Example], label: str | None, how: dict[str, Any]) -> list[int]:
    if label is not None:
        return [classifier.label_number(label)] * len(examples)
    return [int(n) for n in classifier.log_probs(examples, **how).argmax(axis=1)] if examples else []


def _lines(scores: Scores) -> Sequence[Any]:
    return list(scores.detach().cpu().double().numpy()) if isinstance(scores, Tensor) else scores


def _offer(classifier: Classifier, examples: Sequence[Example], targets: Sequence[int], batch: bool) -> dict[str, Any]:
    """Words and targets for methods that query; a batch and tensors for those that differentiate."""
    if not batch:
        return {"classifier": classifier, "words": [Words(example) for example in examples], "targets": targets}
    assert isinstance(classifier, TransformerClassifier)  # `needs` has made sure
    made = classifier.batch(examples)
    goals = torch.tensor(targets, device=made.ids.device)
    return {"classifier": classifier, "words": made.words, "targets": goals, "batch": made}


def _wrap(
    classifier: Classifier, example: Example, words: Words, *, label: str, line: Sequence[float], recipe: Recipe
) -> Attribution:
    tails = classifier.unread(example)
    unread = tuple(n for n, span in enumerate(words.spans) if any(_inside(span, tail) for tail in tails))
    scores = tuple(0.0 if n in unread else float(score) for n, score in enumerate(line[: len(words)]))
    return Attribution(example.id, label, words.strings, words.spans, scores, recipe, classifier.revision, unread)


def _inside(span: Span, tail: Span) -> bool:
    return span.part == tail.part and tail.start <= span.start < tail.end
