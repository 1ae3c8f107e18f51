"""Small transformers from scratch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
import unhans
from unhans.errors import BadModel
from unhans.scratch import fresh_classifier, fresh_language_model, fresh_tokenizer


def test_a_fresh_tokenizer_knows_the_words_of_the_texts_whatever_their_case() -> None:
    tokenizer = fresh_tokenizer(["the soup was cold", "the film was good"], vocab_size=200, max_length=20)
    assert tokenizer.tokenize("The SOUP was cold") == ["the", "soup", "was", "cold"]
    assert tokenizer.model_max_length == 20
    single, pair = tokenizer("soup")["input_ids"], tokenizer("soup", "film")
    assert [tokenizer.decode([token]) for token in single] == ["[CLS]", "soup", "[SEP]"]
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1]
    assert tokenizer.mask_token_id is not None


def test_a_fresh_tokenizer_reads_the_same_after_saving(tmp_path: Path) -> None:
    classifier = fresh_classifier(tiny.SENTENCES, ["bad", "good"], layers=1, width=32)
    opened = unhans.load(classifier.save(tmp_path / "model"))
    texts = [*tiny.SENTENCES, "Grüße, CAFÉ! don't 日本語 \u200b😀"]
    assert np.abs(opened.log_probs(texts) - classifier.log_probs(texts)).max() < 1e-6
    assert opened.revision == classifier.revision


def test_the_vocabulary_is_no_larger_than_asked_for() -> None:
    assert len(fresh_tokenizer(tiny.SENTENCES, vocab_size=120)) <= 120


def test_the_same_seed_gives_the_same_weights_and_leaves_global_chance_alone() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()

    def weights(seed: int) -> torch.Tensor:
        return fresh_classifier(["a b c"], ["x", "y"], layers=1, width=32, seed=seed).model.classifier.weight

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("n_labels", [2, 3, 20])
def test_a_fresh_classifier_has_the_labels_and_sizes_asked_for(n_labels: int) -> None:
    labels = [f"label {n}" for n in range(n_labels)]
    classifier = fresh_classifier(tiny.SENTENCES, labels, layers=3, width=64, max_length=24)
    assert classifier.labels == tuple(labels)
    assert classifier.limit == 24
    assert classifier.model.config.num_hidden_layers == 3
    assert sum(classifier.predict("soup " * 100)[0].probabilities) == pytest.approx(1)


def test_a_fresh_classifier_is_packed_and_has_every_capability() -> None:
    classifier = fresh_classifier(tiny.SENTENCES, ["x", "y"], layers=1, width=32)
    assert classifier.capabilities == {"predict", "gradients", "train"}
    assert classifier.padding([*classifier.questions([unhans.text.as_variant(t) for t in ("a", "a b c")])]) == 0


def test_unusable_labels_are_refused() -> None:
    with pytest.raises(BadModel, match="both called"):
        fresh_classifier(["a"], ["x", "x"])


def test_a_fresh_language_model_fits_its_tokenizer() -> None:
    tokenizer = fresh_tokenizer(tiny.SENTENCES)
    model = fresh_language_model(tokenizer, layers=1, width=32)
    assert model.get_input_embeddings().weight.shape == (len(tokenizer), 32)


def test_the_vocabulary_does_not_depend_on_the_order_of_the_texts() -> None:
    texts = ["cold soup", "warm film", "dull plot", "fine cast"]
    forwards, backwards = (fresh_tokenizer(given, vocab_size=60).get_vocab() for given in (texts, texts[::-1]))
    assert forwards == backwards
