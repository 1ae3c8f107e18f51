"""What every influence method must obey, whatever it computes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import tiny
from unhans.errors import Cancelled, Unsupported
from unhans.influences import How, influence, prepare
from unhans.types import Example

METHODS = [entry.name for entry in influence]
KEEPING = [entry.name for entry in influence if entry.facts.get("keeps")]
ONE_SIDED = {"representer"}  # weighs how wrong the head is on the training example, not on the text: no inner product
# a short recursion will do; over the head alone, for the curvature of untrained layers is not positive
FEW = {"lissa": {"depth": 8, "batch": 2, "layers": 0}}
PASSES_EACH_TIME = {"ekfac"}  # keeps the curvature, and reads the training examples for every few texts
# a slope is the difference of two nearly equal losses: other batches round it off in the third digit, by processor
ROUNDED = {"lissa": 1e-2}
WATCHED = "waiter"


def examples(labels, sentences=tiny.SENTENCES):
    return [Example(f"t{n}", text, label=labels[n % len(labels)]) for n, text in enumerate(sentences)]


@cache
def model(kind="bert", labels=2, seed=0):
    return tiny.transformer(kind, labels=labels, seed=seed)


def index(method, classifier, train, **how):
    states = [(classifier, 0.1), (classifier.clone(), 0.05)] if method == "tracin" else []
    return prepare(classifier, train, method=method, checkpoints=states, **FEW.get(method, {}), **how)


def close(first, second, share=2e-3):
    """Equal up to rounding, which grows with the scores."""
    return np.allclose(first, second, atol=share * np.nanmax(np.abs(first)), equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "averaging"])
def test_there_is_one_score_for_each_training_example(method, kind):
    classifier = model(kind)
    train = examples(classifier.labels)
    anchors = [Example("a", "The room was cold.", label="negative"), Example("b", "", label="positive")]
    scores = index(method, classifier, train).scores(anchors)
    assert scores.shape == (2, len(train))
    assert np.isfinite(scores).all()
    assert not np.allclose(scores[0], scores[1])


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_company_change_nothing(method, monkeypatch):
    classifier = model()
    train = examples(classifier.labels)
    anchors = train[:2]
    together = index(method, classifier, train).scores(anchors)
    for module in ("influences._gradients", "influences._hessians", "model"):
        monkeypatch.setattr(f"unhans.{module}.TOKEN_BUDGET", 8)
    alone = index(method, classifier, train)
    each = np.concatenate([alone.scores(anchor) for anchor in anchors])
    assert close(together, each, ROUNDED.get(method, 2e-3))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_training_examples_is_only_an_order(method):
    classifier = model()
    train = examples(classifier.labels)
    forwards = index(method, classifier, train).scores(train[:2])
    backwards = index(method, classifier, train[::-1]).scores(train[:2])
    assert close(forwards, backwards[:, ::-1])


@pytest.mark.parametrize("method", METHODS)
def test_equal_texts_under_equal_labels_score_alike(method):
    classifier = model()
    train = examples(classifier.labels)
    twin = Example("twin", train[0].text, label=train[0].label)
    other = Example("other", train[0].text, label=train[1].label)
    scores = index(method, classifier, [*train, twin, other]).scores("A lovely room.")[0]
    assert scores[-2] == scores[0]
    assert scores[-1] != scores[0]


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_scores(method):
    classifier = model()
    train = examples(classifier.labels)
    first, second = (index(method, classifier, train, seed=3).scores(train[:2]) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("method", METHODS)
def test_a_training_example_is_in_the_half_that_helped_it_most(method):
    classifier = model()
    train = examples(classifier.labels)
    scores = index(method, classifier, train).scores(train[:5])
    own = np.diag(scores)
    assert (own > 0).all()
    assert ((scores > own[:, None]).sum(axis=1) < len(train) / 2).all()  # larger gradients may come before its own


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tokenizer", ["bert", "bytes"])
def test_many_labels_pairs_and_slow_tokenizers_work(method, tokenizer):
    classifier = tiny.transformer("bert", labels=4, tokenizer=tiny.TOKENIZERS[tokenizer]())
    train = [
        Example(f"p{n}", first, second, label=classifier.labels[n % 4])
        for n, (first, second) in enumerate(zip(tiny.SENTENCES[:6], tiny.SENTENCES[6:], strict=True))
    ]
    anchor = Example("a", "She liked it.", "He did not.", "label 3")
    scores = index(method, classifier, train).scores([anchor, Example("b", anchor.text, anchor.pair, "label 0")])
    assert np.isfinite(scores).all()
    assert not close(scores[0], scores[1])


@pytest.mark.parametrize("method", [name for name in KEEPING if name not in PASSES_EACH_TIME])
def test_what_was_kept_answers_without_the_training_examples_being_read_again(method, tmp_path):
    classifier = tiny.transformer("bert")
    train = examples(classifier.labels)
    first = index(method, classifier, train, folder=tmp_path).scores("Is the soup good?")
    read = []
    classifier.model.register_forward_pre_hook(
        lambda _, __, inputs: read.extend(inputs["input_ids"].flatten().tolist()), with_kwargs=True
    )
    again = index(method, classifier, train, folder=tmp_path).scores("Is the soup good?")
    assert np.array_equal(first, again)
    assert classifier.tokenizer.convert_tokens_to_ids("soup") in read
    assert classifier.tokenizer.convert_tokens_to_ids(WATCHED) not in read


@pytest.mark.parametrize("method", KEEPING)
def test_a_stop_is_heard_and_loses_nothing(method, tmp_path):
    classifier = model()
    train = examples(classifier.labels)
    with pytest.raises(Cancelled, match="is kept"):
        index(method, classifier, train, folder=tmp_path, cancelled=lambda: True)
    told = []
    stopped = index(method, classifier, train, folder=tmp_path, progress=lambda *at: told.append(at))
    assert np.array_equal(stopped.scores(train[:1]), index(method, classifier, train).scores(train[:1]))
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize("method", METHODS)
def test_what_an_example_did_for_itself_agrees_with_its_own_score(method):
    classifier = model()
    train = examples(classifier.labels)
    traced = index(method, classifier, train)
    try:
        own = traced.self_influence()
    except Unsupported:
        return  # it does not tell
    scores = traced.scores(train[:4])
    assert (own >= 0).all()
    if close(np.diag(scores), np.ones(4)):  # all are taken at the same loudness, and the loudness is what is told
        own = np.ones(len(train))
    assert close(own[:4], np.diag(scores))
    if method not in ONE_SIDED:
        assert (scores**2 <= 1.01 * own[:4, None] * own).all()  # nobody is nearer to an example than it is itself


@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_is_sure_of_all_it_was_taught_is_answered_for(method):
    classifier = tiny.transformer("bert")
    with torch.no_grad():
        classifier.model.classifier.bias[:] = torch.tensor([-200.0, 200.0])
    train = examples(["positive"])
    scores = index(method, classifier, train).scores([Example("a", "Never again.", label="negative"), train[0]])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", METHODS)
def test_progress_goes_forwards_to_its_end_and_a_stop_is_heard(method):
    classifier = model()
    train = examples(classifier.labels)
    prepared, traced = [], []

    def told(to):
        return lambda done, of: to.append(done / of)

    found = index(method, classifier, train, progress=told(prepared))
    how = How(told(traced))
    found.trace(train[:5], influence[method].recipe({}, 0), at_once=2, how=how)
    assert prepared == sorted(prepared)  # nothing is told of it when texts are answered
    assert traced == sorted(traced)
    assert traced[-1] == 1
    with pytest.raises(Cancelled):
        found.trace(train[:5], influence[method].recipe({}, 0), how=How(cancelled=lambda: True))


def test_the_model_is_left_as_it_was():
    classifier = tiny.transformer("bert")
    before = classifier.clone().revision
    for method in METHODS:
        index(method, classifier, examples(classifier.labels)).scores("A good book.")
    assert classifier.clone().revision == before
    assert all(parameter.requires_grad and parameter.grad is None for parameter in classifier.model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in classifier.model.modules())
