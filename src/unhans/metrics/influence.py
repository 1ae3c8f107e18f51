"""How far can influence scores be trusted? Judged by what happens when models are trained without some examples.

The metrics beside this file judge explanations of words. These judge a table of influence scores, texts × training
examples, as `Index.scores` gives it, whatever made it: a method of `unhans.influences`, or one of your own.

`linear_datamodelling` and `leave_some_out` compare the scores with models that were trained on parts of the data
(`halves`, `groups_left_out` and `retrain` make them). `planted_recall` needs no training: of some training examples it
is known that they belong on top. Scores drawn by chance get about 0 from the first two, and the planted examples' share
from the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from unhans.errors import BadData, BadOption, Cancelled
from unhans.model import Classifier
from unhans.scoring import Progress
from unhans.types import Example

Scores = NDArray[np.float64]
Parts = NDArray[np.bool_]
Fit = Callable[[Sequence[Example]], Classifier]
"""Trains a model on these examples: as the model under test was trained, from the same start."""

_DRAWS = 1000


@dataclass(frozen=True)
class Retrained:
    """Models that were trained on parts of the data, and how sure they are of some texts' labels."""

    parts: Parts  # models × training examples: which of them it was trained on
    margins: Scores  # models × texts: log-odds of the text's label

    @property
    def losses(self) -> Scores:
        """Models × texts: what the label costs, in nats."""
        return np.logaddexp(0.0, -self.margins)


@dataclass(frozen=True)
class Judged:
    """A mean over texts with its 95 % interval, and what is behind it."""

    value: float
    low: float
    high: float
    values: Scores  # of each text; not a number where it is not defined
    draws: Scores  # the mean, with texts (and models) drawn again; the same draws for every table of scores

    def less(self, other: Judged) -> tuple[float, float, float]:
        """How much better than another table of scores for the same texts and models, with a paired 95 % interval."""
        low, high = np.nanpercentile(self.draws - other.draws, [2.5, 97.5])
        return self.value - other.value, float(low), float(high)


def halves(n_train: int, n_models: int, *, share: float = 0.5, seed: int = 0) -> Parts:
    """Random parts of the training examples, each with this share of them: models × training examples."""
    size = round(share * n_train)
    if n_models < 1 or not 0 < size < n_train:
        raise BadOption("Parts are some of the examples but not all: 0 < share < 1, and at least one model.")
    rng = np.random.default_rng([seed, 29])
    parts = np.zeros((n_models, n_train), bool)
    for row in parts:
        row[rng.permutation(n_train)[:size]] = True
    return parts


def groups_left_out(n_train: int, n_models: int, *, size: int, seed: int = 0) -> Parts:
    """All training examples but a random group of `size`, for each model."""
    if not 0 < size < n_train:
        raise BadOption(f"A group that is left out has 1 to {n_train - 1} examples, not {size}.")
    return halves(n_train, n_models, share=1 - size / n_train, seed=seed)


def retrain(
    fit: Fit,
    train: Sequence[Example],
    texts: Sequence[Example],
    parts: Parts,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Retrained:
    """Train one model on each part, and ask it for the label of each text."""
    if not len(texts) or any(text.label is None for text in texts):
        raise BadData("Influence is judged on texts with a label, and at least one.")
    margins = []
    for done, row in enumerate(parts):
        if cancelled is not None and cancelled():
            raise Cancelled(f"Stopped after {done} of {len(parts)} models.")
        margins.append(label_margins(fit([e for e, there in zip(train, row, strict=True) if there]), texts))
        if progress is not None:
            progress(done + 1, len(parts))
    return Retrained(np.asarray(parts, bool), np.array(margins))


def label_margins(classifier: Classifier, texts: Sequence[Example]) -> Scores:
    """Log-odds that a model gives each text's own label."""
    logs = classifier.log_probs(texts)
    own = np.array([classifier.label_number(str(text.label)) for text in texts], int)
    rows = np.arange(len(texts))
    others = logs.copy()
    others[rows, own] = -np.inf
    found: Scores = logs[rows, own] - logsumexp(others, axis=1)
    return found


def linear_datamodelling(
    scores: Scores, retrained: Retrained, *, held: NDArray[np.floating] | None = None, seed: int = 0
) -> Judged:
    """Linear datamodelling score (Park et al. 2023, TRAK): can the scores tell what a model trained on a part will say?

    For each text, the rank correlation over models between the sum of the scores of the examples that a model was
    trained on and the margin it gives the text's label. 1 is perfect, 0 is chance.

    `held`, models × anything, is what may not help to tell: both ranks are freed of it first. A model that happened to
    see more texts of a label says that label more readily, so scores that know nothing but labels do well on small data
    unless the counts of labels are held (`label_counts`).
    """
    told = _known(scores) @ retrained.parts.T.astype(float)
    return _correlation(told, retrained.margins.T, seed, ranks=True, held=held)


def label_counts(train: Sequence[Example], parts: Parts) -> Scores:
    """How many examples of each label each model was trained on: models × labels."""
    labels = np.array([str(example.label) for example in train])
    return np.stack([parts[:, labels == one].sum(axis=1) for one in np.unique(labels)], axis=1).astype(np.float64)


def leave_some_out(scores: Scores, retrained: Retrained, *, seed: int = 0) -> Judged:
    """Leave-some-out correlation (Koh & Liang 2017): do the scores tell how much a loss rises without some examples?

    For each text, the correlation over models between the sum of the scores of the examples left out and the loss of
    the text's label. 1 is perfect, 0 is chance.
    """
    told = _known(scores) @ (~retrained.parts).T.astype(float)
    return _correlation(told, retrained.losses.T, seed, ranks=False)


def planted_recall(scores: Scores, planted: Parts, *, seed: int = 0) -> Judged:
    """Which share of the training examples that are known to matter is on top?

    `planted` says for each text which training examples those are: copies of the text (`with_duplicates`), or examples
    with the same planted cue (`sharing`). Of k planted ones, those among the k highest scores are found. Equal scores
    share places: a table of zeros gets the planted examples' share, and not what their order happens to be.
    """
    table = _known(scores, lowest=True)
    if planted.shape != table.shape:
        raise BadData(f"The scores are {table.shape} and what was planted {planted.shape}; they must be alike.")
    if not planted.any(axis=1).all() or planted.all(axis=1).any():
        raise BadData("Every text needs planted training examples, and some that are not.")
    values = np.array([_found(row, there) for row, there in zip(table, planted, strict=True)])
    picks = _picks(len(values), seed)
    return _judged(values, values[picks].mean(axis=1))


def with_duplicates(
    train: Sequence[Example], texts: Sequence[Example], *, copies: int = 1
) -> tuple[list[Example], Parts]:
    """Training examples with copies of the texts at the end, and which of them are copies of which text."""
    if copies < 1:
        raise BadOption(f"copies must be at least 1, not {copies}.")
    made = [replace(text, id=f"{text.id} copy {n + 1}") for text in texts for n in range(copies)]
    planted = np.zeros((len(texts), len(train) + len(made)), bool)
    for n in range(len(texts)):
        planted[n, len(train) + n * copies : len(train) + (n + 1) * copies] = True
    return [*train, *made], planted


def sharing(train: Sequence[Example], texts: Sequence[Example], has: Callable[[Example], bool]) -> Parts:
    """For texts with a planted cue, which training examples have it too: `has` says whether an example does.

    These are what a model learned the cue from, and belong on top for a text that it misjudges because of it.
    """
    if lacking := [text.id for text in texts if not has(text)]:
        raise BadData(f"The text {lacking[0]!r} lacks the cue. Choose texts that have it.")
    return np.tile([has(example) for example in train], (len(texts), 1))


def _known(scores: Scores, *, lowest: bool = False) -> Scores:
    """The scores; examples that a method did not look at count as none, or as less than any other."""
    table = np.atleast_2d(np.asarray(scores, np.float64))
    if not np.isfinite(table).any(axis=1).all():
        raise BadData("A text has no scores at all.")
    floor = np.nanmin(np.where(np.isfinite(table), table, np.nan), axis=1, keepdims=True) - 1.0
    return np.where(np.isfinite(table), table, floor if lowest else 0.0)


def _found(row: Scores, planted: Parts) -> float:
    """The share of the planted places that planted examples hold; those of equal scores are shared out."""
    k = int(planted.sum())
    bar = np.sort(row)[::-1][k - 1]
    above, level = row > bar, row == bar
    left = k - int(above.sum())
    return float((planted[above].sum() + left * planted[level].mean()) / k)


def _correlation(
    told: Scores, happened: Scores, seed: int, *, ranks: bool, held: NDArray[np.floating] | None = None
) -> Judged:
    """Correlation over models, one for each text; models and texts are drawn again for the interval."""
    if told.shape != happened.shape:
        raise BadData(f"There are scores for {len(told)} texts, and models were asked about {len(happened)}.")
    if told.shape[1] < 3:
        raise BadData(f"A correlation over {told.shape[1]} models says nothing. Train at least three, better dozens.")
    if ranks:  # among all models; drawing models again keeps them
        told, happened = stats.rankdata(told, axis=1), stats.rankdata(happened, axis=1)
    if held is not None:
        told, happened = (_freed(one, stats.rankdata(held, axis=0)) for one in (told, happened))
    values = _pearson(told, happened)
    if not np.isfinite(values).any():
        raise BadData("All models say the same, or all scores are alike; there is nothing to compare.")
    n_texts, n_models = told.shape
    texts, models = _picks(n_texts, seed), _picks(n_models, seed + 1)
    draws = [_mean(_pearson(told[t][:, m], happened[t][:, m])) for t, m in zip(texts, models, strict=True)]
    return _judged(values, np.array(draws))


def _freed(rows: Scores, held: Scores) -> Scores:
    """Of each row what is left when the best combination of the columns held is taken out."""
    columns = np.column_stack([np.ones(len(held)), held])
    found: Scores = rows - (columns @ np.linalg.lstsq(columns, rows.T, rcond=None)[0]).T
    return found


def _pearson(first: Scores, second: Scores) -> Scores:
    """Correlation of each pair of rows; not a number where a row is constant."""
    first, second = (one - one.mean(axis=1, keepdims=True) for one in (first, second))
    size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    known = size > 1e-9
    found: Scores = np.where(known, (first * second).sum(axis=1) / np.where(known, size, 1.0), np.nan)
    return found


def _picks(n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, 31]).integers(0, n, (_DRAWS, n))


def _mean(values: Scores) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _judged(values: Scores, draws: Scores) -> Judged:
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return Judged(_mean(values), float(low), float(high), values, draws)
