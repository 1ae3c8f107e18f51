"""Deletion: which words could the text do without (Li et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import in_turn
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.types import Edit


@counterfactual(needs={"predict"}, paper="arXiv:1612.08220")
def deletion(drafts: Sequence[Draft], constraints: Constraints) -> list[list[tuple[Edit, ...]]]:
    """Each word left out, in the order of the text: the smallest change there is, if seldom the most natural."""
    return [in_turn(on, constraints, {position: [""] for position in on.open}) for on in drafts]
