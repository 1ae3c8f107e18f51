"""Attributions with scores that we choose, of a classifier whose weights we know."""

from __future__ import annotations

from unhans.text import Words
from unhans.types import Attribution, Recipe, Terms

RECIPE = Recipe("attributions", "leave_one_out", (("erase", "delete"), ("unit", "log_odds")))


def attribution(classifier, example, scores, label="positive", signed=True):
    words = Words(example)
    terms = Terms(signed=signed)
    return Attribution(
        example.id, label, words.strings, words.spans, tuple(scores), RECIPE, classifier.revision, terms=terms
    )
