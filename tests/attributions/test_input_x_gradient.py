from __future__ import annotations

import numpy as np
import pytest
import torch

import tiny
from unhans.attributions import attribute
from unhans.errors import Unsupported
from unhans.text import Words
from unhans.types import Example

EXAMPLES = (Example("a", "The soup was cold, wasn't it?"), Example("b", "wonderful"))


def slow_scores(classifier, example, label):
    """The formula, one text at a time, without padding; pieces found by Hugging Face's own offsets."""
    encoded = classifier.tokenizer(example.text, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    embeddings = classifier.model.get_input_embeddings()(encoded.pop("input_ids")).detach().requires_grad_()
    classifier.model(inputs_embeds=embeddings, **encoded).logits[0, label].backward()
    products = (embeddings * embeddings.grad).sum(-1)[0].tolist()
    spans = Words(example).spans
    scores = [0.0] * len(spans)
    for (start, end), product in zip(offsets, products, strict=True):
        for number, span in enumerate(spans):
            blank_before = start == end == span.start > 0  # byte-level BPE may keep the blank before a word apart
            if blank_before or (start < end and max(start, span.start) < min(end, span.end)):
                scores[number] += product
    return scores


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "deberta"])
@pytest.mark.parametrize("label", [0, 1])
def test_scores_follow_the_formula(kind, label):
    classifier = tiny.transformer(kind)
    found = attribute(classifier, EXAMPLES, method="input_x_gradient", target=classifier.labels[label])
    for one, example in zip(found, EXAMPLES, strict=True):
        assert np.allclose(one.scores, slow_scores(classifier, example, label), atol=1e-4)


def test_it_refuses_a_black_box_and_names_what_works():
    with pytest.raises(Unsupported, match="leave_one_out"):
        attribute(tiny.bag_of_words({}), EXAMPLES, method="ixg")


def test_differentiable_scores_are_the_same_scores():
    classifier = tiny.transformer()
    batch, targets = classifier.batch(EXAMPLES), torch.tensor([1, 1])
    from unhans.attributions.input_x_gradient import input_x_gradient

    plain, graph = (input_x_gradient(classifier, batch, targets, wanted) for wanted in (False, True))
    assert torch.allclose(plain, graph, atol=1e-5)
