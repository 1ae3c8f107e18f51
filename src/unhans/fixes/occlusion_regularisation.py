"""Occlusion regularisation (Kennedy et al. 2020): first derivatives only, for models where second ones are too dear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from unhans.errors import BadOption
from unhans.fixes import Aims, Insert, LowerOn, RaiseOn, Strength, TrainOn, fix, without
from unhans.model import Batch, TransformerClassifier
from unhans.text import Words, visible_form
from unhans.types import Example


@fix(needs={"gradients"}, reads=("word_vote",), cost=1.9, paper="arXiv:2005.02439")
def occlusion_regularisation(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    aims: Aims,
    train_on: TrainOn,
    *,
    strength: Strength = 0.1,
    margin: Annotated[float, "logits that the label should lose when a raised word goes"] = 1.0,
    relearn: Annotated[
        float, "weight of the task's loss on texts without their lowered word (Kennedy et al.: 0)"
    ] = 1.0,
    insert: Insert = 0.5,
    lower_on: LowerOn = "all",
    raise_on: RaiseOn = "correct",
) -> TransformerClassifier:
    """Train on while penalising the change in logits when a voted word is taken out of its text.

    For a lowered word the change of the vote's label against the others should be nothing; for a raised one the label
    should lose at least `margin`. The label must follow from the rest of the text, so it is also taught without the
    word: a model that may no longer use its shortcut would otherwise just become unsure. One more forward pass over the
    texts that votes touch.
    """
    if min(strength, relearn) < 0 or margin <= 0:
        raise BadOption("strength and relearn must not be negative, and margin must be above 0.")
    rules = aims.by(lower_on, raise_on)

    def penalty(student: TransformerClassifier, batch: Batch) -> Tensor | None:
        borrowed = rules.borrowed(batch.examples, insert)
        everything = [*batch.examples, *borrowed]
        asked = [one for row, example in enumerate(everything) for one in _asked(rules, row, example)]
        if not asked or strength == 0:
            return None
        rows, labels, raised, torn = zip(*asked, strict=True)
        logits = student.logits(batch)
        if borrowed:
            logits = torch.cat([logits, student.logits(student.batch(borrowed))])
        full, rest = logits[list(rows)], student.logits(student.batch(torn))
        change = (full - full.mean(1, keepdim=True)) - (rest - rest.mean(1, keepdim=True))
        fall = change.gather(1, torch.tensor(labels, device=change.device)[:, None])[:, 0]
        up = torch.tensor(raised, device=change.device)
        cost = strength * torch.where(up, (margin - fall).clamp(min=0), fall).square().mean()
        if not relearn or up.all():
            return cost
        truth = torch.tensor([student.labels.index(str(example.label)) for example in torn], device=change.device)
        return cost + relearn * cross_entropy(rest[~up], truth[~up])

    return train_on(classifier, train, extra_loss=penalty)


def _asked(aims: Aims, row: int, example: Example) -> list[tuple[int, int, bool, Example]]:
    """Row, label, whether to raise, and the text without the word, for each word and label that is asked about."""
    found: dict[tuple[str, int, bool], list[int]] = {}
    strings = Words(example).strings if (own := aims.of(example)) else ()
    for aim in own:
        found.setdefault((visible_form(strings[aim.position]), aim.label, aim.wants == "raise"), []).append(
            aim.position
        )
    return [(row, label, raised, without(example, at)) for (_, label, raised), at in found.items()]
