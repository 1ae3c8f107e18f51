"""Input marginalization (Kim et al. 2020): a word against all that a language model would put in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unhans.attributions import attribution
from unhans.attributions._erasing import log_odds
from unhans.errors import BadOption
from unhans.language_model import Filler, LanguageModel
from unhans.model import Classifier
from unhans.text import Hole, Words
from unhans.types import Terms

WARNING = (
    "Words that the language model predicts easily score about zero, whatever they mean to the classifier: in Pham et "
    "al. (2022) its first guess was the very word in 49 to 65 % of cases."
)
_MOST = 100  # candidates for one word, as far down as the likely ones may go


@attribution(
    needs={"predict"},
    paper="arXiv:2010.13984",
    aliases=("im",),
    at_once=8,
    terms=Terms("log_odds", "what a language model would write there", "one difference for each word", warning=WARNING),
)
def input_marginalization(
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    language_model: LanguageModel,
    how: dict[str, Any],
    *,
    candidates: Annotated[
        Literal["top", "likely"], "which words take its place: the `k` likeliest, or all at least `threshold` likely"
    ] = "top",
    k: Annotated[int, "how many words take its place (top)"] = 10,
    threshold: Annotated[float, "how likely a word must be to take its place (likely); at most 100 do"] = 1e-5,
) -> list[NDArray[np.float64]]:
    """Fall in the label's log-odds when a language model rewrites the word.

    The label's probability is averaged over the candidates as the language model weighs them, and then made log-odds.
    Candidates are whole words. A word for which there are none, as beyond the language model's length limit, is deleted
    instead. Words that the language model predicts easily score about zero, whatever they mean to the classifier.
    """
    if any(len(group) > 1 for one in words for group in one.groups):
        raise BadOption("input_marginalization replaces single words: it cannot explain phrases or sentences.")
    if not 1 <= k <= _MOST:
        raise BadOption(f"k must be from 1 to {_MOST}, not {k}.")
    if not 0 <= threshold < 1:
        raise BadOption(f"threshold must be from 0 to less than 1, not {threshold}.")
    places = [(n, position) for n, one in enumerate(words) for position in one.open]
    masked = [words[n].without([position], Hole.MASK) for n, position in places]
    number, least = (k, 0.0) if candidates == "top" else (_MOST, threshold)
    found = language_model.fill(masked, k=number, cancelled=how.get("cancelled"))
    plans = [_plan(fillers, least) for (fillers,) in found]
    changed = [words[n].variant({at: new}) for (n, at), plan in zip(places, plans, strict=True) for new in plan]
    answers = iter(np.exp(classifier.log_probs([*(one.variant({}) for one in words), *changed], **how)))
    wholes = [float(next(answers)[goal]) for goal in targets]
    lines = [np.zeros(len(one)) for one in words]
    for (n, position), plan in zip(places, plans, strict=True):
        expected = sum(share * float(next(answers)[targets[n]]) for share in plan.values())
        lines[n][position] = np.subtract(*log_odds(np.array([wholes[n], expected])))
    return lines


def _plan(fillers: Sequence[Filler], least: float) -> dict[str, float]:
    """What takes the word's place, and how much each counts; nothing at all does, if there is no candidate."""
    likely: dict[str, float] = {}
    for filler in fillers:
        if filler.probability >= least:
            likely[filler.word] = likely.get(filler.word, 0.0) + filler.probability  # tokens may read alike
    total = sum(likely.values())
    return {word: probability / total for word, probability in likely.items()} if total > 0 else {"": 1.0}
