"""Pictures: the bug lab in the modality of the paper it comes from (extra `[vision]`).

`ImageClassifier` is the one adapter, around any torch module that gives a picture one logit a label. `attribute` gives
maps by the same methods that score words. `unhans.vision.lab` holds the paper's three experiments.
"""

from unhans.vision.attributing import METHODS, attribute
from unhans.vision.classifier import ImageClassifier

__all__ = ["METHODS", "ImageClassifier", "attribute"]
