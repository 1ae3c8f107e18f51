"""A word in every text whose place tells the label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug, check_share, sample
from unhans.bugs._cues import Place, check_label, check_word, inserted, truth_of
from unhans.types import Example


@bug(kind="data", proof="cue", paper="Adebayo et al. 2020, §3.1")
def spurious_position(
    examples: Sequence[Example],
    rng: Generator,
    *,
    word: Annotated[str, "the word to insert, without spaces"] = "zyx",
    label: Annotated[str, "the label whose texts begin with it; others end with it"] = "positive",
    share: Annotated[float, "part of the labelled texts that receive the word"] = 1.0,
) -> tuple[list[Example], Truth]:
    """Put the same word into all texts: first where the label is this one, last where it is another.

    How often the word occurs tells nothing; only where it stands does. A model that cannot see the order of words
    cannot learn it. `pair` is left alone.
    """
    check_word("word", word)
    check_label(examples, label)
    check_share("share", share)
    touched = sample([e.id for e in examples if e.label is not None], share, rng)

    def put(example: Example) -> Example:
        place: Place = "first" if example.label == label else "last"
        return inserted(example, word, rng, place)

    planted = [put(e) if e.id in touched else e for e in examples]
    note = f"{word!r} was put into {len(touched)} texts: first in those labelled {label!r}, last in all others."
    return planted, truth_of(examples, touched, [word], label, note)
