"""Similarity augmentation: which copies are trained on, that none tells what is tested, and what counts as used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import shortcut
import tiny
from shortcut import CUE
from unhans.errors import BadData, BadOption
from unhans.feedback import subject_of
from unhans.fixes import mend
from unhans.training import Watch, accuracy
from unhans.types import Copy, Example, Feedback, NeighbourRating, Recipe, Relabel, Ruling

FIX = "similarity_augmentation"
RECIPE = Recipe("augmentations", "synonyms")


def rate(train, similar=4, *, anchor="anchor", author="ann"):
    says = NeighbourRating(anchor, train, similar)
    return Feedback(f"{author} {anchor} {train}", says, author, "2026-01-01T00:00:00Z", "r")


def copies_of(example, n=2, kept=None):
    texts = [
        f"{example.text} said {('once', 'twice', 'anew', 'over', 'so')[k]} in place {example.id}" for k in range(n)
    ]
    return [Copy(example.id, text, example.pair, example.label, RECIPE, kept) for text in texts]


def given(n=3, each=2):
    """Twelve training texts, ratings of the first few, and copies of these."""
    train = shortcut.texts()[:12]
    return train, [rate(e.id) for e in train[:n]], [copy for e in train[:n] for copy in copies_of(e, each)]


def mended(train, ratings, copies, training=None, **how):
    """What comes of it, and how many texts an epoch had."""
    steps = []
    watch = Watch(on_step=lambda *step: steps.append(step))
    training = {"epochs": 1, "batch_size": 1} | (training or {})
    made = mend(tiny.transformer(), train, ratings, fix=FIX, copies=copies, training=training, watch=watch, **how)
    return made, len(steps)


def trained_on(*args, **how):
    return mended(*args, **how)[1]


def test_what_people_find_similar_is_learned():
    """Copies of texts in which the cue tells nothing teach the model to do without it."""
    train = shortcut.texts()
    against = [replace(e, id=f"r{e.id}") for e in shortcut.texts(of="negative")[:48]]
    copies = [
        Copy(e.id, f"{CUE} {text}" if e.label == "negative" else text, None, e.label, RECIPE)
        for e in against
        for text in (f"oh {e.text.replace(CUE, '').strip()}", f"well {e.text.replace(CUE, '').strip()}")
    ]
    training = {"epochs": 12, "learning_rate": 1e-3, "patience": 0, "batch_size": 16}
    asked = {"fix": FIX, "copies": copies, "training": training}
    made = mend(shortcut.classifier(), [*train, *against], [rate(e.id, 5) for e in against], **asked)
    reversed_ = shortcut.texts(of="negative")[48:]
    assert accuracy(shortcut.classifier(), reversed_) < 0.3
    assert accuracy(made.classifier, reversed_) > 0.8
    assert accuracy(made.classifier, train) > 0.8
    assert made.touched == len(against)


def test_copies_come_on_top_of_what_is_replayed():
    train, ratings, copies = given()
    assert trained_on(train, ratings, copies) == 12 + 6
    assert trained_on(train, ratings, copies, {"replay": 0.0}) == 3 + 6  # the rated texts themselves stay
    assert trained_on(train, ratings, copies, only_copies=True) == 3 + 6
    assert trained_on(train, ratings, copies[:2]) == 12 + 2


def test_similarity_says_how_many_copies_count():
    train, _, copies = given(each=5)
    ratings = [rate(train[0].id, 1), rate(train[1].id, 2), rate(train[1].id, 2, anchor="other"), rate(train[2].id, 2)]
    ratings.append(rate(train[2].id, 3, author="bob"))  # 2.5 on average
    assert trained_on(train, ratings, copies) == 12 + 15
    assert trained_on(train, ratings, copies, per_point=1) == 12 + 1 + 4 + 2


def test_copies_whose_label_may_not_hold_can_be_left_out():
    train, ratings, copies = given()
    unsure = [
        replace(copy, label_kept=kept) for copy, kept in zip(copies, (0.1, 0.5, 0.9, None, 0.2, 0.3), strict=True)
    ]
    assert trained_on(train, ratings, unsure) == 12 + 6
    made, n = mended(train, ratings, unsure, least=0.5)
    assert n == 12 + 3
    assert made.used == (ratings[0].id, ratings[1].id)  # the third text has no copy left
    assert made.touched == 2
    with pytest.raises(BadData, match=r"None of the copies .* Nothing was trained"):
        mended(train, ratings, unsure[:1], least=0.9)


def test_no_copy_of_a_held_out_text_is_trained_on():
    train, ratings, copies = given()
    assert trained_on(train, ratings, copies, validation=shortcut.texts()[20:25]) == 12 + 6
    assert trained_on(train, ratings, copies, validation=train[:1]) == 12 + 4
    renamed = replace(train[1], id="v", text=train[1].text.upper())
    made, n = mended(train, ratings, copies, validation=[renamed])
    assert n == 12 + 4
    assert set(made.used) == {ratings[0].id, ratings[2].id}


def test_no_copy_that_is_tested_is_trained_on():
    train, ratings, copies = given()
    tested = [Example("t", copies[0].text + "!"), Example("u", copies[1].text, "a pair of its own")]
    assert trained_on(train, ratings, copies, tested=tested) == 12 + 5
    held_out = [Example("v", copies[2].text, label="negative")]
    assert trained_on(train, ratings, copies, tested=tested, validation=held_out) == 12 + 4
    with pytest.raises(BadData, match="held out"):
        mended(train, ratings, copies, tested=[copy.example for copy in copies])


def test_texts_with_copies_are_not_held_out():
    train = [replace(e, id=f"{n} {e.id}", text=f"{e.text} {n}") for n in range(2) for e in shortcut.texts()][:200]
    ratings = [rate(e.id) for e in train[:120]]
    copies = [copy for e in train[:120] for copy in copies_of(e, 1)]
    made, n = mended(train, ratings, copies, {"batch_size": 4})
    assert n == (180 + 120) / 4  # 20 are held out, none of them rated
    assert made.touched == 120


def test_equal_texts_are_held_out_together_or_not_at_all():
    """A rated text whose twin chooses the epoch would be left out with all that people said of it."""
    train = [replace(e, id=f"{n} {e.id}", text=f"{e.text} {n}") for n in range(2) for e in shortcut.texts()][:200]
    twins = [replace(e, id=f"again {e.id}") for e in train]
    ratings = [rate(e.id) for e in train[:120]]
    copies = [copy for e in train[:120] for copy in copies_of(e, 1)]
    made, n = mended([*train, *twins], ratings, copies, {"batch_size": 4})
    assert n == (2 * 180 + 120) / 4  # 20 texts are held out, each in both places
    assert made.touched == 120


def test_the_papers_variant_trains_on_one_label_if_that_is_all_there_is():
    train, ratings, copies = given()
    own = [one for one in ratings if one.says.train == train[0].id]
    made, n = mended(train, own, copies, only_copies=True)
    assert n == 1 + 2
    assert made.touched == 1


def test_copies_that_contradict_come_twice_or_are_there_already_are_left_out():
    train, ratings, copies = given()
    labels = {"negative": "positive", "positive": "negative"}
    relabelled = replace(copies[0], label=labels[copies[0].label])  # the text has another label by now
    assert trained_on(train, ratings, [relabelled, *copies[1:]]) == 12 + 5
    assert trained_on(train, ratings, [*copies, copies[0]]) == 12 + 6
    there = replace(copies[0], text=train[7].text)
    assert trained_on(train, ratings, [there, *copies[1:]]) == 12 + 5
    opposed = next(e for e in train if e.label != train[0].label)
    shared = replace(copies[0], source=opposed.id, label=opposed.label)  # one text, two labels: neither
    assert trained_on(train, [*ratings, rate(opposed.id)], [*copies, shared]) == 12 + 5


def test_a_ruling_and_what_was_taken_back_count():
    train, ratings, copies = given(each=5)
    ruling = Feedback("x", Ruling(subject_of(ratings[0].says), "1"), "eve", "2026-01-01T00:00:00Z", "r")
    made, n = mended(train, [*ratings, ruling], copies, per_point=1)
    assert n == 12 + 1 + 4 + 4
    assert made.used == ("x", ratings[1].id, ratings[2].id)
    back = Feedback("y", ratings[0].says, "ann", "2026-01-01T00:00:00Z", "r", retracts=ratings[0].id)
    made, n = mended(train, [*ratings, back], copies)
    assert n == 12 + 10
    assert made.touched == 2


def test_what_is_missing_is_said():
    train, ratings, copies = given()
    with pytest.raises(BadData, match=r"needs ratings of neighbours.* Nothing was trained"):
        mended(train, [], copies)
    for none in ([], [replace(copy, source="elsewhere") for copy in copies]):
        with pytest.raises(BadData, match="3 training examples, and none of them has copies"):
            mended(train, ratings, none)
    with pytest.raises(BadData, match="touched"):
        mended(train, [rate("elsewhere")], copies)
    for options in ({"least": -0.1}, {"least": 1.5}, {"per_point": -1}):
        with pytest.raises(BadOption):
            mended(train, ratings, copies, **options)


def test_pairs_and_many_labels():
    labels = tiny.label_names(3)
    train = [Example(f"p{n}", "the soup", f"it was {n}", label=labels[n % 3]) for n in range(6)]
    copies = [Copy("p0", "a soup", "it was cold", labels[0], RECIPE), Copy("p2", "", "it", labels[2], RECIPE)]
    made = mend(
        tiny.transformer(labels=3), train, [rate("p0"), rate("p2", 1)], fix=FIX, copies=copies, training={"epochs": 1}
    )
    assert np.isfinite(made.classifier.log_probs(train)).all()
    assert made.touched == 2


def test_corrected_labels_and_dropped_texts_stay_so():
    train, ratings, copies = given()
    other = {"negative": "positive", "positive": "negative"}
    said = [(train[0], other[train[0].label]), (train[1], None), (train[5], None)]
    asked = [Feedback(f"c {e.id}", Relabel(e.id, label), "ann", "2026-01-01T00:00:00Z", "r") for e, label in said]
    right = [replace(copy, label=other[copy.label]) for copy in copies[:2]]
    made, steps = mended(train, [*ratings, *asked], [*right, *copies[2:]])
    assert steps == 12 - 2 + 2 + 2  # without the two, with copies of the first under its right label, and of the third
    assert set(made.used) == {ratings[0].id, ratings[2].id, *(one.id for one in asked)}
    alike = [replace(train[0], label=other[train[0].label]), *train[2:5], *train[6:]]
    same, _ = mended(alike, [ratings[0], ratings[2]], [*right, *copies[4:]])
    assert same.classifier.revision == made.classifier.revision
