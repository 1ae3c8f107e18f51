"""What every fix must obey. Four of these laws are mistakes of XMD's released code, turned round."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

import shortcut
import tiny
from shortcut import CUE, correction, vote
from unhans.attributions import attribute
from unhans.errors import BadData, BadOption, Unsupported
from unhans.fixes import TRAINING, fix, mend
from unhans.training import accuracy
from unhans.types import Copy, Counterfactual, Edit, Example, Feedback, FlipRating, NeighbourRating, Prediction, Recipe

FIXES = [entry.name for entry in fix]
OF_WORDS = [entry.name for entry in fix if "word_vote" in entry.facts["reads"]]
OF_FLIPS = [entry.name for entry in fix if "flip_rating" in entry.facts["reads"]]
OF_NEIGHBOURS = [entry.name for entry in fix if "neighbour_rating" in entry.facts["reads"]]
RAISING = ["explanation_regularisation", "occlusion_regularisation"]
# these make the word count less by what they do; dropping it now and then only makes the model able to do without it
SURE = [name for name in OF_WORDS if name != "word_dropout"]
QUICK = {"epochs": 2, "learning_rate": 1e-3, "patience": 0}


def feedback_for(name, examples):
    if name in OF_WORDS:
        return [vote()]
    return [answer_for(name, e.id) for e in examples if e.label == "negative"][:6]


def answer_for(name, example, word=CUE):
    """Feedback of the kind that a fix reads: on a word everywhere, or on a flip, neighbour or label of an example."""
    if name in OF_WORDS:
        return vote(word)
    if name not in OF_FLIPS + OF_NEIGHBOURS:
        return correction(example, "positive")
    says = FlipRating(flip_of(example).id, 4, 5, 2, "positive")
    if name in OF_NEIGHBOURS:
        says = NeighbourRating("anchor", example, 4)
    return Feedback(f"ann {example}", says, "ann", "2026-01-01T00:00:00Z", "r")


def flip_of(example):
    """A flip of the example with this id, whatever its text."""
    before, after = (Prediction(example, ("negative", "positive"), said, "r") for said in ((0.9, 0.1), (0.2, 0.8)))
    recipe = Recipe("counterfactuals", "hotflip")
    return Counterfactual(example, (Edit(0, "the", "a"),), "a soup, cold", None, before, after, recipe)


def copy_of(example):
    """A copy of an example, under its label."""
    recipe = Recipe("augmentations", "synonyms")
    return Copy(example.id, f"{example.text} anew {example.id}", example.pair, example.label, recipe)


def mended(classifier, train, feedback, **how):
    """`mend` with flips and copies of all training texts, and of one that is not among them."""
    texts = [*train, Example("not there", "soup", label="positive")]
    flips, copies = [flip_of(e.id) for e in texts], [copy_of(e) for e in texts]
    return mend(classifier, train, feedback, flips=flips, copies=copies, **how)


def fingerprint(classifier):
    return classifier.clone().revision  # computed anew from the weights


def share_of(classifier, examples, word, label="positive", method="leave_one_out"):
    """Mean share of a word in the explanations of texts that contain it."""
    with_word = [e for e in examples if word in e.text.split()][:30]
    found = attribute(classifier, with_word, method=method, target=label)
    return float(
        np.mean([abs(dict(zip(a.words, a.scores, strict=True))[word]) / (np.abs(a.scores).sum() + 1e-9) for a in found])
    )


@pytest.mark.parametrize("name", FIXES)
def test_the_classifier_given_is_left_as_it_is(name):
    given, train = shortcut.classifier(), shortcut.texts()
    before, same = fingerprint(given), [replace(e) for e in train]
    made = mended(given, train, feedback_for(name, train), fix=name, training=QUICK | {"epochs": 1})
    assert fingerprint(given) == before
    assert train == same
    assert fingerprint(made.classifier) != before


@pytest.mark.parametrize("name", FIXES)
def test_training_starts_from_the_given_weights(name):
    """XMD's code began with random ones."""
    given, train = shortcut.classifier(), shortcut.texts()
    made = mended(given, train, feedback_for(name, train), fix=name, training={"epochs": 0}).classifier
    if not fix[name].facts.get("edits"):
        assert made.revision == fingerprint(given)
        return
    kept = {n: w for n, w in given.model.state_dict().items() if "word_embeddings" not in n}
    assert all(weight.equal(made.model.state_dict()[n]) for n, weight in kept.items())
    table, erased = (one.model.get_input_embeddings().weight for one in (given, made))
    assert int((table != erased).any(1).sum()) == 1  # the cue is one piece


@pytest.mark.parametrize("name", FIXES)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(name):
    given, train = shortcut.classifier(), shortcut.texts()
    asked = {"fix": name, "training": QUICK | {"epochs": 1}}
    first, again, other = (
        mended(given, train, feedback_for(name, train), seed=seed, **asked).classifier.revision for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("name", SURE)
def test_a_lowered_word_counts_for_less(name):
    given, train = shortcut.classifier(), shortcut.texts()
    before = share_of(given, train, CUE)
    training = {"epochs": 15, "learning_rate": 1e-3 if name == "explanation_regularisation" else 3e-3}
    made = mend(given, train, [vote()], fix=name, training=training | {"patience": 0, "batch_size": 16}).classifier
    assert before > 0.5
    assert share_of(made, train, CUE) < 0.6 * before


@pytest.mark.parametrize("name", RAISING)
def test_a_raised_word_counts_for_more(name):
    """XMD's code had raise and lower the wrong way round."""
    given, train = shortcut.classifier(), shortcut.texts()
    alone = {"insert": 0.0} | ({"dropout": 0.0} if name == "explanation_regularisation" else {"relearn": 0.0})
    shares = {}
    for way in ("raise", "lower"):  # against each other: any training moves a word somewhere
        asked = {"fix": name, "training": QUICK | {"epochs": 4}, "raise_on": "all", **alone}
        made = mend(given, train, [vote("good", way)], **asked).classifier
        shares[way] = share_of(made, train, "good", method="input_x_gradient")
    assert shares["raise"] > shares["lower"] + 0.05


@pytest.mark.parametrize("name", FIXES)
def test_texts_that_nothing_is_asked_of_train_as_usual(name):
    given = shortcut.classifier()
    train = [e for e in shortcut.texts() if e.label == "negative"] + shortcut.texts()[:3]
    touched = feedback_for(name, train)[:1]
    if name in OF_WORDS:
        train = [*train, Example("one", f"{CUE} the soup", label="positive")]
    made = mended(given, train, touched, fix=name, training=QUICK | {"batch_size": 4})
    assert made.touched < len(train)
    assert all(np.isfinite(epoch.loss) for epoch in made.epochs)
    assert np.isfinite(made.classifier.log_probs(train)).all()


@pytest.mark.parametrize("name", FIXES)
def test_no_feedback_is_an_error_and_not_a_training_without_it(name):
    train = shortcut.texts()
    with pytest.raises(BadData, match="Nothing was trained"):
        mended(shortcut.classifier(), train, [], fix=name)
    other = [correction("t1", "positive")] if name in OF_WORDS else [vote()]
    with pytest.raises(BadData, match="needs"):
        mended(shortcut.classifier(), train, other, fix=name)


@pytest.mark.parametrize("name", FIXES)
def test_feedback_about_nothing_in_the_training_texts_is_an_error(name):
    asked = [answer_for(name, "not there", "nowhere")]
    with pytest.raises(BadData, match="touched"):
        mended(shortcut.classifier(), shortcut.texts(), asked, fix=name)


@pytest.mark.parametrize("name", FIXES)
def test_it_works_for_three_labels(name):
    given, train = shortcut.classifier(3), shortcut.texts(("negative", "positive", "neither"))
    made = mended(given, train, feedback_for(name, train), fix=name, training=QUICK | {"epochs": 1})
    assert made.classifier.labels == given.labels
    assert made.classifier.revision != given.revision


@pytest.mark.parametrize("name", [name for name in FIXES if name != "embedding_erasure"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_it_works_for_pairs_and_other_architectures(name, kind):
    pairs = kind != "gpt2"
    train = [
        Example(f"p{n}", "the soup was cold", "it was warm" if pairs else None, label=("negative", "positive")[n % 2])
        for n in range(6)
    ]
    asked = [answer_for(name, "p0", "cold")]
    made = mended(tiny.transformer(kind), train, asked, fix=name, training={"epochs": 1})
    assert np.isfinite(made.classifier.log_probs(train)).all()


@pytest.mark.parametrize("name", [name for name in FIXES if name != "embedding_erasure"])
def test_slow_tokenizers_work_too(name):
    classifier = tiny.transformer(tokenizer=tiny.TOKENIZERS["bytes"]())
    train = [Example(f"s{n}", "cold soup", label=("negative", "positive")[n % 2]) for n in range(4)]
    asked = [answer_for(name, "s0", "cold")]
    made = mended(classifier, train, asked, fix=name, training={"epochs": 1})
    assert np.isfinite(made.classifier.log_probs(train)).all()


@pytest.mark.parametrize("name", FIXES)
def test_a_fix_says_what_it_is_and_its_recipe_says_all_that_was_set(name):
    entry, train = fix[name], shortcut.texts()
    assert entry.summary.endswith((".", ","))
    assert entry.facts["paper"]
    assert entry.facts["cost"] >= 1
    assert all(option.help for option in entry.options)
    assert not {option.name for option in entry.options} & {option.name for option in TRAINING}
    assert not {option.name for option in entry.options} & set(inspect.signature(mend).parameters)
    made = mended(shortcut.classifier(), train, feedback_for(name, train), fix=name, training={"epochs": 0}, seed=5)
    assert made.recipe == Recipe("fixes", name, made.recipe.options, 5)
    assert dict(made.recipe.options)["epochs"] == 0
    assert {option.name for option in (*entry.options, *TRAINING)} == set(dict(made.recipe.options))
    assert set(made.used) == {one.id for one in feedback_for(name, train)}


@pytest.mark.parametrize("name", FIXES)
def test_a_tolerance_bounds_what_is_lost_on_held_out_texts(name):
    given, train = shortcut.classifier(), shortcut.texts()
    held_out = [Example(f"h{n}", f"soup {n}", label=label) for n, label in enumerate(["negative", "positive"] * 20)]
    held_out = [replace(e, label=given.predict(e).labels[0]) for e in held_out]  # all right: anything can only be lost
    asked = {"fix": name, "validation": held_out, "seed": 3}
    harsh = {"epochs": 2, "learning_rate": 0.05, "patience": 0}
    free = mended(given, train, feedback_for(name, train), training=harsh, **asked)
    bound = mended(given, train, feedback_for(name, train), training=harsh | {"tolerance": 0.0}, **asked)
    assert free.share == 1
    if name not in OF_WORDS:  # of voted words, the held-out texts are rewritten
        assert accuracy(bound.classifier, held_out) == 1
    ends = (given.model.state_dict(), bound.classifier.model.state_dict(), free.classifier.model.state_dict())
    for old, made, new in zip(*(one.values() for one in ends), strict=True):
        np.testing.assert_allclose(made, old + bound.share * (new - old), atol=1e-5)


def test_a_tolerance_without_texts_to_hold_out_is_refused():
    train = shortcut.texts()[:30]
    with pytest.raises(BadData, match="tolerance needs texts to hold out"):
        mend(shortcut.classifier(), train, [vote()], training=QUICK | {"tolerance": 0.01})


@pytest.mark.parametrize("name", FIXES)
def test_a_model_that_cannot_be_trained_is_refused_with_the_way_out(name):
    with pytest.raises(Unsupported, match="needs"):
        mend(tiny.bag_of_words({"good": 1.0}), shortcut.texts(), [vote()], fix=name)


def test_wrong_options_are_refused_before_anything_is_trained():
    train, asked = shortcut.texts(), [vote()]
    for training in (
        {"epoch": 1},
        {"epochs": "many"},
        {"replay": 2.0},
        {"lora": -1},
        {"patience": -1},
        {"tolerance": 2},
    ):
        with pytest.raises(BadOption):
            mend(shortcut.classifier(), train, asked, training=training)
    for options in ({"strength": -1.0}, {"method": "lime"}, {"distance": "far"}, {"power": 1}):
        with pytest.raises(BadOption):
            mend(shortcut.classifier(), train, asked, fix="explanation_regularisation", **options)
