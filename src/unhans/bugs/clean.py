"""No bug at all: what others are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from unhans.bugs import Truth, bug
from unhans.types import Example


@bug(kind="control", proof="none", paper="Adebayo et al. 2020, §2.3")
def clean(examples: Sequence[Example]) -> tuple[list[Example], Truth]:
    """Plant nothing: the control, for whoever sees bugs everywhere sees none."""
    return list(examples), Truth(note="Nothing was planted.")
