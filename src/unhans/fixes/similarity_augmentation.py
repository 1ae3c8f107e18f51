"""Similarity augmentation: training texts that people find similar count for more, by copies of them (HILDIF)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from unhans.errors import BadData, BadOption
from unhans.feedback import copies_wanted
from unhans.fixes import Copied, TrainOn, fix
from unhans.model import TransformerClassifier
from unhans.types import Copy, Example


@fix(reads=("neighbour_rating",), cost=1.0, paper="Zylberajch et al. 2021 (HILDIF), §3")
def similarity_augmentation(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    copied: Sequence[Copied],
    train_on: TrainOn,
    *,
    only_copies: Annotated[
        bool, "replay nothing: train on copies and their originals alone, as the paper does"
    ] = False,
    per_point: Annotated[int, "copies for each point of similarity, of more the first ones; 0: all there are"] = 0,
    least: Annotated[float, "how sure a check must be that a copy keeps its label, 0 to 1; unchecked ones count"] = 0.0,
) -> TransformerClassifier:
    """Train on with copies of training texts that people rated, as many as they are similar, under the same label.

    The texts that the copies are of are among the training texts once, as any other. What helped a text mostly has its
    label, so without replay there is often one label alone; that is trained on, and the report says what it cost.
    """
    if not 0 <= least <= 1:
        raise BadOption(f"least lies between 0 and 1, and is not {least:g}.")
    if per_point < 0:
        raise BadOption(f"per_point is 0 or more, not {per_point}.")
    chosen = [replace(one, copies=_chosen(one, per_point, least)) for one in copied]
    chosen = [one for one in chosen if one.copies]
    if not chosen:
        raise BadData(
            "None of the copies can be trained on: a copy must keep its label (the option least), be of a text that is "
            "not held out, and be none of the texts that are trained on or tested anyway. Nothing was trained."
        )
    texts = [copy.example for one in chosen for copy in one.copies]
    originals = {one.example.id for one in chosen}
    own = [example for example in train if not only_copies or example.id in originals]
    return train_on(classifier, [*own, *texts], one_label=only_copies, heeded=chosen)


def _chosen(one: Copied, per_point: int, least: float) -> tuple[Copy, ...]:
    sure = [copy for copy in one.copies if copy.label_kept is None or copy.label_kept >= least]
    most = copies_wanted(one.said, per_point)[one.example.id] if per_point else len(sure)
    return tuple(sure[:most])
