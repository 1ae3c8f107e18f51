"""What every detector of strange texts must obey, whatever it looks at."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import shortcut
import tiny
from unhans.detectors import detect, detector, strange_share, usable
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.language_model import LanguageModel
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_classifier
from unhans.training import Schedule, fit
from unhans.types import Example

DETECTORS = [entry.name for entry in detector]
INSIDE = [entry.name for entry in detector if "gradients" in entry.needs]
OUTSIDE = [entry.name for entry in detector if "gradients" not in entry.needs]
LABEL_FREE = [entry.name for entry in detector if not entry.facts.get("labels")]
BAG = tiny.bag_of_words({"good": 2.0, "bad": -2.0})
MIXED = [
    *tiny.SENTENCES[:8],
    *("wonderful", "", " ... !", "日本語 😀 [MASK] go\u200bod"),
    *[("She liked the book.", "He did not."), ("She liked the book.", ""), ("", "")],
]


def asked(classifier, train, texts, name, **how):
    return detect(classifier, train, texts, method=name, language_model=tiny.language_model(), **how)


def taught(labels):
    return [Example(f"t{n}", text, label=labels[n % len(labels)]) for n, text in enumerate(tiny.SENTENCES)]


TELLING = {"good", "warm", "bright", "lovely", "bad", "cold", "dull", "awful"}
WORLD = shortcut.texts(cue=None)


@cache
def knows_its_labels() -> TransformerClassifier:
    """A classifier of a small world: a few sentences about soup, films and rooms."""
    made = fresh_classifier([e.text for e in WORLD], ("negative", "positive"), layers=2, width=64, max_length=32)
    return fit(made, WORLD[:110], schedule=Schedule(epochs=15, learning_rate=1e-3, batch_size=16))


@cache
def knows_its_texts() -> LanguageModel:
    """A language model of the same world."""
    schedule = Schedule(epochs=6, learning_rate=3e-3, batch_size=16)
    return LanguageModel.fit([example.text for example in WORLD], width=32, schedule=schedule)


def test_the_family_has_the_detectors_we_promise():
    promised = {"max_probability", "energy", "mahalanobis", "embedding_distance", "perplexity", "character_ngrams"}
    assert set(DETECTORS) >= promised
    assert set(DETECTORS) - set(LABEL_FREE) == {"mahalanobis"}
    assert not detector.broken


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_says_what_it_is(name):
    assert detector[name].summary.endswith(".")
    assert detector[name].facts["paper"]
    assert detector[name].needs


@pytest.mark.parametrize("name", DETECTORS)
def test_texts_of_another_world_are_stranger(name):
    """The same words, but none that tells a label, and in an order that is never taught."""
    words = sorted({word for example in WORLD for word in example.text.split()} - TELLING)
    rng, held_out = np.random.default_rng(0), WORLD[110:]
    odd = [" ".join(rng.choice(words, 3)) for _ in range(40)]
    scores = detect(
        knows_its_labels(), WORLD[:110], [*held_out, *odd], method=name, language_model=knows_its_texts(), seed=1
    )
    usual, strange = scores[: len(held_out)], scores[len(held_out) :]
    assert (strange[:, None] > usual[None]).mean() > 0.7
    share, low, high = strange_share(usual, strange, level=0.8)
    assert low <= share <= high
    assert share > 0.4


@pytest.mark.parametrize("kind", ["bert", "gpt2", "averaging"])
@pytest.mark.parametrize("name", DETECTORS)
def test_texts_of_every_kind_and_many_labels(name, kind):
    classifier = tiny.transformer(kind, labels=7)
    scores = asked(classifier, taught(classifier.labels), MIXED, name)
    assert scores.dtype == np.float64
    assert scores.shape == (len(MIXED),)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", DETECTORS)
def test_neither_order_nor_company_nor_copies_matter(name):
    classifier = tiny.transformer(labels=3)
    train = taught(classifier.labels)
    scores = asked(classifier, train, MIXED, name)
    order = np.random.default_rng(0).permutation(len(MIXED))
    np.testing.assert_array_equal(asked(classifier, train, [MIXED[n] for n in order], name), scores[order])
    np.testing.assert_array_equal(asked(classifier, [*train, *train][::-1], [*MIXED, *MIXED], name)[15:], scores)
    alone = [asked(classifier, train, text, name)[0] for text in MIXED[::4]]
    np.testing.assert_allclose(alone, scores[::4], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DETECTORS)
def test_one_training_text_is_enough_and_no_text_needs_nothing(name):
    classifier = tiny.transformer()
    only = [Example("only", "A film.", label="positive")]
    assert np.isfinite(asked(classifier, only, ["A film.", "A soup."], name)).all()
    assert asked(classifier, [], [], name).shape == (0,)


@pytest.mark.parametrize("name", [name for name in DETECTORS if "train" in detector[name].asks])
def test_without_training_texts_nothing_is_usual(name):
    with pytest.raises(BadData, match="no training examples"):
        asked(tiny.transformer(), [], ["A film."], name)


@pytest.mark.parametrize("name", LABEL_FREE)
def test_labels_are_not_looked_at(name):
    classifier = tiny.transformer()
    train = taught(classifier.labels)
    bare = [replace(example, label=None) for example in train]
    np.testing.assert_array_equal(asked(classifier, bare, MIXED, name), asked(classifier, train, MIXED, name))


@pytest.mark.parametrize("name", DETECTORS)
def test_it_tells_how_far_it_is_and_can_be_stopped(name):
    classifier, told = tiny.transformer(), []
    train = taught(classifier.labels)
    asked(classifier, train, MIXED, name, progress=lambda *so_far: told.append(so_far))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert len(set(told)) > 1
    with pytest.raises(Cancelled, match="Stopped"):
        asked(classifier, train, MIXED, name, cancelled=lambda: True)
    half_way = iter([False, False])
    with pytest.raises(Cancelled, match="Stopped"):
        asked(classifier, train, MIXED, name, cancelled=lambda: next(half_way, True))


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_black_box_can_be_asked(name):
    assert asked(BAG, taught(BAG.labels), ["good", "soup"], name).shape == (2,)


@pytest.mark.parametrize("name", INSIDE)
def test_what_looks_inside_refuses_a_black_box_and_says_what_works(name):
    with pytest.raises(Unsupported, match="work with it: character_ngrams, max_probability"):
        detect(BAG, taught(BAG.labels), ["good"], method=name)


def test_usable_names_what_works():
    assert usable(BAG) == ["character_ngrams", "max_probability"]
    assert usable(BAG, language_model=tiny.language_model()) == sorted(OUTSIDE)
    assert usable(tiny.transformer(), tiny.language_model()) == DETECTORS
    with pytest.raises(BadOption, match="language_model="):
        detect(BAG, [], ["good"], method="perplexity")


@pytest.mark.parametrize("name", [entry.name for entry in detector if entry.random])
def test_the_seed_decides_what_is_drawn(name):
    classifier = tiny.transformer()
    train = taught(classifier.labels)
    first, again, other = (asked(classifier, train, MIXED, name, seed=seed, examples=5) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
