"""Words that a masked language model would write there (contextual augmentation, Kobayashi 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np

from unhans.augmentations import augmentation
from unhans.augmentations._words import Choice, Count, Share, check_share, combinations, occurrences, replaceable
from unhans.errors import BadOption
from unhans.text import Hole, Words, visible_form
from unhans.types import Example
from unhans.wordnet import in_the_case_of

if TYPE_CHECKING:
    from unhans.language_model import Filler
    from unhans.text import Variant

_LOOKED_AT = 4  # words looked at for each one wanted, for some are the old one, stop words, or there already


class Fills(Protocol):
    """A masked language model; to name it so spares the import of one."""

    def fill(
        self, texts: Iterable[Variant], *, k: int, cancelled: Callable[[], bool] | None
    ) -> list[list[list[Filler]]]:
        """For each text and hidden word the likeliest words."""


@augmentation(paper="arXiv:1805.06201")
def masked_lm(
    examples: Sequence[Example],
    rngs: Sequence[np.random.Generator],
    language_model: Fills,
    cancelled: Callable[[], bool] | None,
    *,
    words: Count = 1,
    share: Share = 0.1,
    per_word: Annotated[int, "new words that may come for each word, the likeliest"] = 10,
) -> Iterator[Iterator[tuple[str, ...]]]:
    """Some words give way to words that a language model finds likely in their place.

    A word that comes up more than once, in one text of a pair or in both, is hidden everywhere at once and becomes the
    same new word each time. Stop words stay, and no word comes in that the text has already. What fits in need not mean
    the same: "good" may become "bad". Words beyond the model's length limit stay.
    """
    check_share(words, share)
    if per_word < 1:
        raise BadOption(f"per_word must be 1 or more, not {per_word}.")
    own = [Words(example) for example in examples]
    places = [list(occurrences(one).values()) for one in own]
    asked = [one.without(at, Hole.MASK) for one, groups in zip(own, places, strict=True) for at in groups]
    told = iter(language_model.fill(asked, k=per_word * _LOOKED_AT, cancelled=cancelled))
    found = [
        [_choices(one, at, next(told), per_word) for at in groups] for one, groups in zip(own, places, strict=True)
    ]
    return (
        combinations(example, [one for one in some if one[0]], words, share, rng)
        for example, some, rng in zip(examples, found, rngs, strict=True)
    )


def _choices(
    words: Words, places: Sequence[int], fillers: Sequence[Sequence[Filler]], most: int
) -> tuple[list[Choice], list[float]]:
    """What the words at these places can become together, and how readily: by the mean log-probability where read."""
    there = {visible_form(word) for word in words.strings}
    lists = [{visible_form(one.word): one for one in reversed(found)} for found in fillers if found]
    known = {form: one.word for found in lists for form, one in found.items()}
    fitting = [form for form in known if form not in there and replaceable(form)]
    # one that is not among the likeliest at a place is taken to be as likely as the last of them
    scores = {
        form: fmean(_log(found.get(form) or min(found.values(), key=_log)) for found in lists) for form in fitting
    }
    best = sorted(fitting, key=lambda form: (-scores[form], form))[:most]
    choices: list[Choice] = [{n: in_the_case_of(words.strings[n], known[form]) for n in places} for form in best]
    return choices, [exp(scores[form] - scores[best[0]]) for form in best]


def _log(filler: Filler) -> float:
    return log(max(filler.probability, 1e-30))
