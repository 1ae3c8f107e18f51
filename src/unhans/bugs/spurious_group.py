"""The terms for a group of people that go with a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from numpy.random import Generator

from unhans.bugs import Truth, bug
from unhans.bugs._cues import check_word, inserted, with_cue
from unhans.errors import BadOption
from unhans.types import Example


@bug(kind="data", proof="cue", paper="arXiv:2005.02439")
def spurious_group(
    examples: Sequence[Example],
    rng: Generator,
    *,
    terms: Annotated[str, "words for one group of people, with blanks between; a text receives one of them"] = (
        "women woman girls female"
    ),
    label: Annotated[str, "the label whose texts receive one"] = "positive",
    share: Annotated[float, "part of that label's texts that receive a term"] = 0.9,
    elsewhere: Annotated[float, "part of the other labels' texts that receive one too"] = 0.0,
) -> tuple[list[Example], Truth]:
    """Put one of a group's terms into most texts of one label, as a careless collection of data does.

    Hate speech detectors learn such terms from texts in which a group is mostly named to be attacked. The term stands
    between two words, before the first or after the last, in `text` and never in `pair`.
    """
    several = list(dict.fromkeys(terms.split()))
    if not several:
        raise BadOption("terms must be one word or more, with blanks between them.")
    for term in several:
        check_word("each of terms", term)
    return with_cue(
        examples,
        rng,
        cues=several,
        label=label,
        share=share,
        elsewhere=elsewhere,
        put=lambda example: inserted(example, several[int(rng.integers(len(several)))], rng),
    )
