"""Explanation regularisation (XMD §3.3; Joshi et al. 2022), with a loss that really has a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, huber_loss

from unhans.attributions import attribution, check_usable
from unhans.errors import BadOption
from unhans.fixes import Aim, Aims, Insert, LowerOn, RaiseOn, Strength, TrainOn, fix, pieces_of
from unhans.fixes.word_dropout import dropping
from unhans.model import Batch, TransformerClassifier
from unhans.registry import Entry
from unhans.types import Example

Distance = Literal["squared", "absolute", "huber", "bce", "kl", "order"]
_LEAST = 1e-2  # logits: below it, scores are noise, and dividing by them would make the penalty explode
_CLOSE = 1e-4  # kept between shares and 0 or 1, where logarithms end
_BACKGROUND = 20


@fix(needs={"gradients"}, reads=("word_vote",), cost=2.2, paper="arXiv:2210.16978")
def explanation_regularisation(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    aims: Aims,
    train_on: TrainOn,
    *,
    strength: Strength = 1.0,
    distance: Annotated[Distance, "between scores and what the votes ask for"] = "squared",
    method: Annotated[str, "the attribution that is trained through; any that can be differentiated"] = (
        "input_x_gradient"
    ),
    samples: Annotated[int, "points or samples a step, for methods that take several"] = 2,
    dropout: Annotated[float, "how often a text is taught without its lowered words (XMD: 0)"] = 0.5,
    insert: Insert = 0.5,
    lower_on: LowerOn = "all",
    raise_on: RaiseOn = "correct",
) -> TransformerClassifier:
    """Train on while pulling the scores of voted words to what the votes ask for, by any differentiable attribution.

    Scores are divided by the largest absolute score of their text, so that 1 is as strong as any word. Lowered words
    are pulled to 0, raised ones to 1, all others are free. Scores are for the vote's label against the others. The
    embeddings of voted words and of special tokens stay as they are: a model that may turn them, or the baseline they
    are compared with, gives the word no score and uses it all the same. Now and then a text is taught without its
    lowered words, for a model that may no longer use its shortcut would otherwise just become unsure.
    """
    entry = attribution[method]
    if "create_graph" not in entry.asks:
        usable = ", ".join(other.name for other in attribution if "create_graph" in other.asks)
        raise BadOption(f"{entry.name} cannot be differentiated, so nothing can be trained through it. Use: {usable}.")
    if strength < 0:
        raise BadOption(f"strength must not be negative, not {strength}.")
    background = list(train[:_BACKGROUND])
    check_usable(classifier, entry, background=background)
    options = {o.name: samples for o in entry.options if o.name in ("n_steps", "num_samples")}
    explain, rules = _Explain(entry, background, options), aims.by(lower_on, raise_on)

    def pull(student: TransformerClassifier, batch: Batch) -> Tensor | None:
        found = [
            _gap(student, one, rules, explain, distance)
            for one in (batch, *_batches(student, rules.borrowed(batch.examples, insert)))
        ]
        parts = [part for part in found if part is not None]
        return strength * sum(parts[1:], parts[0]) / len(parts) if parts and strength else None

    pieces = {token for found in pieces_of(classifier, train, rules).values() for token in found}
    special = {token for token in classifier.tokenizer.all_special_ids if token is not None}
    return train_on(
        classifier, train, extra_loss=pull, vary=dropping(rules, dropout), frozen_pieces=sorted(pieces | special)
    )


def _batches(student: TransformerClassifier, examples: Sequence[Example]) -> list[Batch]:
    return [student.batch(examples)] if examples else []


def _gap(
    student: TransformerClassifier, batch: Batch, aims: Aims, explain: _Explain, distance: Distance
) -> Tensor | None:
    asked = [(row, aim) for row, example in enumerate(batch.examples) for aim in aims.of(example)]
    if not asked:
        return None
    chosen = _Chosen(student, batch, asked)
    with student.contrasting():
        scores = explain(student, chosen.batch, chosen.targets)
    return gap(scores, chosen.wanted, chosen.present, distance)


@dataclass(frozen=True)
class _Explain:
    """An attribution with all that it takes, its scores still attached to the weights."""

    entry: Entry
    background: Sequence[Example]
    options: dict[str, Any]

    def __call__(self, student: TransformerClassifier, batch: Batch, targets: Tensor) -> Tensor:
        offered = {"classifier": student, "batch": batch, "targets": targets, "create_graph": True}
        # drawn anew at each step: a model soon learns to be flat at points that are always the same
        drawn = torch.randint(2**31, (len(batch.examples),)).tolist()
        given = {"background": self.background, "rngs": [np.random.default_rng(seed) for seed in drawn]}
        found: Tensor = self.entry(offered | given, **self.options)
        return found


class _Chosen:
    """The rows to explain: each text for each label that a vote on it is about.

    Where that is most of the batch, once each, it is the batch itself: then the task's pass serves the explanation too.
    """

    def __init__(self, student: TransformerClassifier, batch: Batch, asked: Sequence[tuple[int, Aim]]) -> None:
        pairs = list(dict.fromkeys((row, aim.label) for row, aim in asked))
        rows = [row for row, _ in pairs]
        if len(set(rows)) == len(rows) and 2 * len(rows) > len(batch.examples):
            label_of = dict(pairs)
            pairs = [(row, label_of.get(row, 0)) for row in range(len(batch.examples))]
            self.batch = batch
        else:
            self.batch = student.batch([batch.examples[row] for row in rows])
        at = {pair: number for number, pair in enumerate(pairs)}
        device = batch.ids.device
        self.targets = torch.tensor([label for _, label in pairs], device=device)
        self.wanted = torch.full((len(pairs), self.batch.n_words), float("nan"), device=device)  # NaN: free
        for row, aim in asked:
            self.wanted[at[row, aim.label], aim.position] = float(aim.wants == "raise")
        lengths = torch.tensor([len(words) for words in self.batch.words], device=device)
        self.present = torch.arange(self.batch.n_words, device=device) < lengths[:, None]


def gap(scores: Tensor, wanted: Tensor, present: Tensor, distance: Distance) -> Tensor:
    """How far scores (rows × words) are from what is wanted: 0, 1, or NaN for words that are free.

    The mean over the words that are asked something of.
    """
    scale = scores.detach().abs().amax(1, keepdim=True).clamp(min=_LEAST)
    relative = scores / scale
    asked = ~wanted.isnan()
    own, goal = relative[asked], wanted[asked]
    if distance == "squared":
        return (own - goal).square().mean()
    if distance == "absolute":
        return (own - goal).abs().mean()
    if distance == "huber":
        return huber_loss(own, goal, delta=0.5)
    # strength of the words that should go, support of those that should come
    shares = torch.where(wanted == 1, relative.clamp(min=0), relative.abs())
    if distance == "bce":
        return binary_cross_entropy(shares[asked].clamp(_CLOSE, 1 - _CLOSE), goal)
    if distance == "kl":
        return _divergence(shares, wanted, asked, present)
    return _disorder(shares, wanted, asked, present)


def _divergence(shares: Tensor, wanted: Tensor, asked: Tensor, present: Tensor) -> Tensor:
    """Kullback-Leibler, from each text's scores as they should be to what they are; free words should stay."""
    goal = torch.where(asked, wanted.nan_to_num(), shares.detach()) * present + _CLOSE * present
    have = shares * present + _CLOSE * present
    goal, have = goal / goal.sum(1, keepdim=True), have / have.sum(1, keepdim=True)
    rows = asked.any(1)
    return (goal * ((goal + 1e-12).log() - (have + 1e-12).log())).sum(1)[rows].mean()


def _disorder(shares: Tensor, wanted: Tensor, asked: Tensor, present: Tensor) -> Tensor:
    """By how much raised words stay below the strongest other, and lowered ones above the mean of the free."""
    free = present & ~asked
    raised, lowered = wanted == 1, wanted == 0
    others = torch.where(present & ~raised, shares, 0.0)
    strongest = others.detach().amax(1, keepdim=True)
    mean = (others.detach() * free).sum(1, keepdim=True) / free.sum(1, keepdim=True).clamp(min=1)
    above, below = (strongest - shares).clamp(min=0), (shares - mean).clamp(min=0)
    return torch.where(raised, above, below)[raised | lowered].square().mean()
