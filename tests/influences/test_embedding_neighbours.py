"""The baseline: likeness of embeddings, signed by the label."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tiny
from traced import examples
from unhans.influences import prepare
from unhans.types import Example


@pytest.mark.parametrize("kind", ["bert", "roberta", "averaging"])
def test_likeness_is_the_cosine_of_what_the_head_reads(kind):
    classifier = tiny.transformer(kind)
    train = examples()
    head = classifier.model.classifier
    read = []
    hook = (head.out_proj if kind == "roberta" else head).register_forward_pre_hook(lambda _, x: read.append(x[0][0]))
    with torch.no_grad():
        for example in train:
            classifier.logits(classifier.batch([example]))
    hook.remove()
    cosines = torch.nn.functional.cosine_similarity(read[0][None], torch.stack(read)).numpy()
    signs = np.where([e.label == "negative" for e in train], 1, -1)
    anchor = Example("a", train[0].text, label="negative")
    found = prepare(classifier, train, method="embedding_neighbours").scores(anchor)[0]
    assert np.allclose(found, signs * (1 + cosines) / 2, atol=1e-4)
    assert found[0] == pytest.approx(1)
