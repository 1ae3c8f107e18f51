"""HotFlip (Ebrahimi et al. 2018): the gradient tells which word, put in the place of which, would help most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import check_counts
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.model import TOKEN_BUDGET, Batch, TransformerClassifier
from unhans.scoring import batches_by_length
from unhans.text import as_variant
from unhans.types import Edit

_LOOKED_AT = 40  # estimates looked through for each candidate wanted, for the rules forbid some
_ESTIMATES = 8_000_000  # positions × words held at once: more are not faster
_BLOCK = 64  # estimates of which first only the greatest is looked at


@counterfactual(needs={"predict", "gradients"}, paper="arXiv:1712.06751")
def hotflip(
    classifier: TransformerClassifier,
    drafts: Sequence[Draft],
    constraints: Constraints,
    lexicon: Sequence[str],
    *,
    candidates: Annotated[int, "words tried for each draft in each step, wherever they stand"] = 10,
) -> list[list[tuple[Edit, ...]]]:
    """Words whose embedding lies where the gradient points, seen from the word they replace.

    A word's embedding is the mean of its pieces', its gradient the sum of theirs: for words of one piece that is
    HotFlip's estimate to the letter, and words of several pieces can go and come. New words are those of the model's
    vocabulary, and of the lexicon where that is made of several pieces.
    """
    check_counts(1, candidates=candidates)
    vocabulary = _vocabulary(classifier, constraints, lexicon)
    found: list[list[tuple[Edit, ...]]] = [[] for _ in drafts]
    rows = classifier.questions([as_variant(one.example) for one in drafts])
    asked = [n for n, one in enumerate(drafts) if one.open]
    for numbers in batches_by_length([len(rows[n]) for n in asked], TOKEN_BUDGET, waste=0.3):
        some = [asked[n] for n in numbers]
        chosen = [drafts[n] for n in some]
        best = _best(chosen, _pulls(classifier, chosen), vocabulary, constraints, candidates)
        for n, edits in zip(some, best, strict=True):
            found[n] = edits
    return found


class _Vocabulary:
    """Words that may come in, each with its embedding."""

    def __init__(self, strings: Sequence[str], table: Tensor, lowers: bool) -> None:
        self.strings, self.table, self.lowers = strings, table, lowers

    def like(self, n: int, old: str) -> str:
        """Word number n, with a capital where the old word had one and the model does not see the difference."""
        new = self.strings[n]
        return new.capitalize() if self.lowers and old[:1].isupper() and not old[1:].isupper() else new


_kept: WeakKeyDictionary[TransformerClassifier, dict[tuple[bool, bool, int], _Vocabulary]] = WeakKeyDictionary()


def _vocabulary(classifier: TransformerClassifier, rules: Constraints, lexicon: Sequence[str]) -> _Vocabulary:
    """Made once for a classifier and its rules: it takes as long as a few dozen model calls."""
    key = (rules.whole_words, rules.ordinary, hash(tuple(lexicon)))
    own = _kept.setdefault(classifier, {})
    if key not in own:
        own[key] = _make(classifier, rules, lexicon)
    return own[key]


def _make(classifier: TransformerClassifier, rules: Constraints, lexicon: Sequence[str]) -> _Vocabulary:
    tokens, weights = classifier.tokens, classifier.model.get_input_embeddings().weight.detach()
    every = tokens.ordinary if rules.ordinary else range(len(tokens.strings))
    ids = [n for n in (tokens.whole_words[True] if rules.whole_words else every) if n < len(weights)]
    strings = [tokens.strings[n] for n in ids]
    known = set(strings)
    more = [word for word in dict.fromkeys(lexicon) if word not in known]
    control = set(classifier.tokenizer.all_special_ids)
    pieces = [[n for n in row.ids if n not in control] for row in tokens.rows([as_variant(f" {w}") for w in more])]
    several = [(word, own) for word, own in zip(more, pieces, strict=True) if len(own) > 1]
    table = [weights[ids], *(weights[own].mean(0, keepdim=True) for _, own in several)]
    upper, lower = tokens.rows([as_variant("The"), as_variant("the")])
    return _Vocabulary([*strings, *(word for word, _ in several)], torch.cat(table), upper.ids == lower.ids)


def _pulls(classifier: TransformerClassifier, drafts: Sequence[Draft]) -> list[tuple[Tensor, Tensor]]:
    """For each open word of each draft, the gradient of the goal by it, and its own embedding."""
    batch = classifier.batch([one.example for one in drafts])
    leaf = classifier.embed(batch).detach().requires_grad_()
    gain = _gain(classifier.logits(batch, leaf, packed=True), drafts)
    (gradient,) = torch.autograd.grad(gain.sum(), leaf)
    return [_of_words(batch, n, one, gradient[n], leaf[n].detach()) for n, one in enumerate(drafts)]


def _gain(logits: Tensor, drafts: Sequence[Draft]) -> Tensor:
    """`Goal.gain` with gradients: log-odds, whose gradient is of one size however sure the model is."""
    labels = [one.goal.original if one.goal.target is None else one.goal.target for one in drafts]
    own = torch.zeros_like(logits, dtype=torch.bool)
    own[torch.arange(len(labels)), labels] = True
    odds = logits[own] - logits.masked_fill(own, -torch.inf).logsumexp(1)
    signs = torch.tensor([-1.0 if one.goal.target is None else 1.0 for one in drafts], device=logits.device)
    return odds * signs


def _of_words(batch: Batch, row: int, on: Draft, gradient: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
    slots = {on.places[n]: k for k, n in enumerate(on.open)}
    owners = torch.tensor([slots.get(owner, len(slots)) for owner in batch.owners[row].tolist()])
    owners = owners.to(gradient.device)[:, None].expand_as(gradient)
    empty = gradient.new_zeros(len(slots) + 1, gradient.shape[1])
    pulls = empty.scatter_add(0, owners, gradient)
    olds = empty.scatter_reduce(0, owners, embedded, "mean", include_self=False)
    return pulls[:-1], olds[:-1]


def _best(
    drafts: Sequence[Draft],
    pulls: Sequence[tuple[Tensor, Tensor]],
    vocabulary: _Vocabulary,
    rules: Constraints,
    wanted: int,
) -> Iterator[list[tuple[Edit, ...]]]:
    """For each draft the edits with the greatest estimates that keep to the rules, best first."""
    for one, (values, numbers) in zip(drafts, _greatest(pulls, vocabulary.table, wanted), strict=True):
        edits: dict[Edit, None] = {}
        for number in numbers[np.argsort(-values, kind="stable")].tolist():
            slot, n = divmod(number, len(vocabulary.strings))
            position = one.open[slot]
            edit = one.edit(position, vocabulary.like(n, one.words.strings[position]))
            if edit not in edits and rules.allows(one, edit):
                edits[edit] = None
                if len(edits) == wanted:
                    break
        yield [(edit,) for edit in edits]


def _greatest(
    pulls: Sequence[tuple[Tensor, Tensor]], table: Tensor, wanted: int
) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """For each draft its greatest estimates and where they stand, place by place and word by word.

    Drafts share one product as far as memory allows: products of few rows are slow.
    """
    every = torch.cat([own for own, _ in pulls])
    stay = torch.cat([(own * olds).sum(1, keepdim=True) for own, olds in pulls])
    begins = [0, *accumulate(len(own) for own, _ in pulls)]
    found: list[list[tuple[Tensor, Tensor]]] = [[] for _ in pulls]
    at_once = max(1, _ESTIMATES // len(table))
    for start in range(0, len(every), at_once):
        stop = min(start + at_once, len(every))
        gains = (every[start:stop] @ table.T).sub_(stay[start:stop])
        for n, (begin, end) in enumerate(pairwise(begins)):
            low, high = max(begin, start), min(end, stop)
            if low < high:
                values, numbers = _top(gains[low - start : high - start].flatten(), wanted * _LOOKED_AT)
                found[n].append((values, numbers + (low - begin) * len(table)))
    return [
        (torch.cat(v).float().cpu().numpy(), torch.cat(i).cpu().numpy())
        for v, i in (zip(*one, strict=True) for one in found)
    ]


def _top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k greatest of very many values, and where they stand.

    They are all in the k blocks with the greatest maxima, which are found much faster than they are.
    """
    whole = len(values) // _BLOCK
    if whole <= k:
        return torch.topk(values, min(k, len(values)))
    blocks = values[: whole * _BLOCK].view(whole, _BLOCK)
    chosen = blocks.amax(1).topk(k).indices
    inside = torch.arange(_BLOCK, device=values.device)
    rest = torch.arange(whole * _BLOCK, len(values), device=values.device)
    numbers = torch.cat([(chosen[:, None] * _BLOCK + inside).flatten(), rest])
    top = values[numbers].topk(k)
    return top.values, numbers[top.indices]
