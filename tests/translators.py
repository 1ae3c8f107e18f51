"""Apertium for the tests that need it."""

from __future__ import annotations

import os

import pytest

from unhans.augmentations import augmentation, available


def needed() -> None:
    """Leave the test out where Apertium is not installed, or fail where it has to be there."""
    if told := available(augmentation["back_translation"]):
        pytest.fail(told) if os.environ.get("UNHANS_NEEDS_APERTIUM") == "1" else pytest.skip(told)
