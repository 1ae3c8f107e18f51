"""Perplexity: how little a masked language model would have expected these words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unhans.detectors import Floats, detector
from unhans.language_model import LanguageModel
from unhans.scoring import How
from unhans.types import Example


@detector(needs={"predict"}, paper="Salazar et al. 2020, arXiv:1910.14659")
def perplexity(texts: Sequence[Example], language_model: LanguageModel, how: How) -> Floats:
    """Logarithm of the pseudo-perplexity of the text; the classifier is not asked.

    It knows what texts are like if the language model was fitted on texts like those trained on. A text without words
    counts as one whose words can only be guessed: the logarithm of the vocabulary's size.
    """
    likely = language_model.log_likelihoods(texts, progress=how.tell)
    guessed = -math.log(len(language_model.tokenizer))
    return np.array([-(guessed if one is None else one) for one in likely], np.float64)
