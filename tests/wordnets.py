"""WordNet for the tests that need it."""

from __future__ import annotations

import os

import pytest

from unhans.errors import Unsupported
from unhans.wordnet import WordNet, open_wordnet


def needed() -> WordNet:
    """The WordNet of this machine; without one the test is left out, or fails where it has to be there."""
    try:
        return open_wordnet()
    except Unsupported as error:
        told = str(error)
    pytest.fail(told) if os.environ.get("UNHANS_NEEDS_WORDNET") == "1" else pytest.skip(told)
    raise AssertionError  # one of the two has left already
