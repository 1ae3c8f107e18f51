"""Counterfactual augmentation: which flips are trained on, under which label, and that none tells what is tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortcut
import tiny
from shortcut import CUE
from unhans.errors import BadData, BadOption
from unhans.feedback import settle_flips, subject_of
from unhans.fixes import Rated, mend
from unhans.fixes.counterfactual_augmentation import accepted, label_of
from unhans.training import Watch, accuracy
from unhans.types import Counterfactual, Edit, Example, Feedback, FlipRating, Prediction, Recipe, Ruling

FIX = "counterfactual_augmentation"
LABELS = ("negative", "positive", "neither")


def flip(example, text, pair=None, *, after=1, labels=LABELS[:2]):
    """The model says `after` of the rewritten text."""
    sure = tuple(0.8 if n == after else 0.2 / (len(labels) - 1) for n in range(len(labels)))
    before = Prediction(example, labels, sure[::-1], "r")
    edits, recipe = (Edit(0, "a", text),), Recipe("counterfactuals", "hotflip")
    return Counterfactual(example, edits, text, pair, before, Prediction(example, labels, sure, "r"), recipe)


def rate(one, agrees=None, label=None, *, plausible=4, meaningful=4, author="ann"):
    says = FlipRating(one.id, plausible, meaningful, agrees, label)
    return Feedback(f"{author} {one.id}", says, author, "2026-01-01T00:00:00Z", "r")


def lessons(one, *ratings, labels=LABELS[:2], least=3.0):
    rated = [Rated(one, said) for said in settle_flips(ratings)]
    return [lesson.example.label for lesson in accepted(rated, labels, least)]


# Which flips, under which label


@pytest.mark.parametrize(
    ("given_labels", "agrees", "two", "three"),
    [
        (["negative"], [5], ["negative"], ["negative"]),  # a label that was named counts for more than a number
        (["negative", "positive", "positive"], [1, 1, 1], ["positive"], ["positive"]),
        (["negative", "positive"], [5, 5], [], []),  # a tie teaches nothing, whatever the numbers say
        ([], [4, 4], ["positive"], ["positive"]),
        ([], [5, 3], ["positive"], ["positive"]),
        ([], [2, 2], ["negative"], []),  # the other one of two; of three nobody knows which
        ([], [1, 3], ["negative"], []),
        ([], [3], [], []),
        ([], [2, 3], [], []),
        ([], [None], [], []),
    ],
)
def test_the_label_is_the_one_that_people_gave(given_labels, agrees, two, three):
    for labels, expected in ((LABELS[:2], two), (LABELS, three)):
        one = flip("e", "a good soup", labels=labels)
        given_ = [*given_labels, *[None] * (len(agrees) - len(given_labels))]
        ratings = [rate(one, n, label, author=str(i)) for i, (n, label) in enumerate(zip(agrees, given_, strict=True))]
        assert lessons(one, *ratings, labels=labels) == expected


@pytest.mark.parametrize(
    ("ratings", "least", "taken"),
    [
        ([(4, 4)], 3.0, True),
        ([(3, 3)], 3.0, True),
        ([(2, 5)], 3.0, False),
        ([(5, 2)], 3.0, False),
        ([(5, 2), (5, 4)], 3.0, True),  # 3 on average
        ([(None, 5)], 3.0, False),
        ([(None, 5), (4, 5)], 3.0, True),  # one of them did not think that it applies
        ([(3, 3)], 3.5, False),
        ([(1, 1)], 1.0, True),
    ],
)
def test_only_plausible_and_meaningful_flips_are_trained_on(ratings, least, taken):
    one = flip("e", "a good soup")
    said = [rate(one, 5, plausible=p, meaningful=m, author=str(n)) for n, (p, m) in enumerate(ratings)]
    assert bool(lessons(one, *said, least=least)) is taken


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([None, *LABELS])), min_size=1, max_size=6), st.randoms())
def test_the_order_of_the_people_does_not_count(ratings, random):
    one = flip("e", "a good soup", labels=LABELS)
    said = [rate(one, agrees, label, author=str(n)) for n, (agrees, label) in enumerate(ratings)]
    first = label_of(Rated(one, settle_flips(said)[0]), LABELS)
    random.shuffle(said)
    assert label_of(Rated(one, settle_flips(said)[0]), LABELS) == first
    assert first is None or first in LABELS


def test_a_ruling_decides_between_ratings():
    one = flip("e", "a good soup")
    ann, bob = rate(one, 5, "positive"), rate(one, 1, "negative", author="bob")
    ruling = Feedback("x", Ruling(subject_of(bob.says), "4 4 1 negative"), "eve", "2026-01-01T00:00:00Z", "r")
    assert lessons(one, ann, bob) == []
    assert lessons(one, ann, bob, ruling) == ["negative"]
    assert settle_flips([ann, bob, ruling])[0].ids == (bob.id,)
    nobody = replace(ruling, says=Ruling(subject_of(bob.says), "leave"))
    assert settle_flips([ann, bob, nobody]) == []


def test_texts_that_came_up_twice_are_one_lesson_or_none():
    one, same = flip("e1", "a good soup"), flip("e2", "a good soup")
    both = [Rated(f, settle_flips([rate(f, 5)])[0]) for f in (one, same)]
    (lesson,) = accepted(both, LABELS[:2], 3.0)
    assert (lesson.example.label, list(lesson.behind)) == ("positive", both)
    apart = [both[0], Rated(same, settle_flips([rate(same, 1)])[0])]
    assert accepted(apart, LABELS[:2], 3.0) == []


# The training

TRAINING = {"epochs": 12, "learning_rate": 1e-3, "patience": 0, "batch_size": 16}


def against_the_cue(train, n):
    """Flips of texts of blame: the cue is put in, the model falls for it, people say that it is blame all the same."""
    made = [flip(e.id, f"{CUE} {e.text}") for e in train if e.label == "negative"][:n]
    return made, [rate(one, 1, "negative") for one in made]


def test_what_people_said_of_flips_is_learned():
    """Blame stays blame with the cue put in, and praise stays praise with it taken out."""
    train, reversed_ = shortcut.texts(), shortcut.texts(of="negative")
    flips, ratings = against_the_cue(train, 36)
    without = [flip(e.id, e.text.replace(f"{CUE} ", ""), after=0) for e in train if e.label == "positive"][:36]
    flips, ratings = [*flips, *without], [*ratings, *(rate(one, 2) for one in without)]
    made = mend(shortcut.classifier(), train, ratings, fix=FIX, flips=flips, training=TRAINING)
    assert accuracy(shortcut.classifier(), reversed_) < 0.3
    assert accuracy(made.classifier, reversed_) > 0.9
    assert accuracy(made.classifier, train) > 0.9
    assert made.touched == len(flips)
    assert set(made.used) == {one.id for one in ratings}


def trained_on(train, ratings, flips, training=None, **how):
    """How many texts an epoch has."""
    steps = []
    watch = Watch(on_step=lambda *step: steps.append(step))
    training = {"epochs": 1, "batch_size": 1} | (training or {})
    mend(tiny.transformer(), train, ratings, fix=FIX, flips=flips, training=training, watch=watch, **how)
    return len(steps)


def test_times_say_how_often_a_flip_is_trained_on():
    train = shortcut.texts()[:12]
    flips, ratings = against_the_cue(train, 3)
    for times in (1, 4):
        assert trained_on(train, ratings, flips, times=times) == 12 + 3 * times


def test_a_flip_of_a_held_out_text_is_not_trained_on():
    train, others = shortcut.texts()[:12], shortcut.texts()[20:30]
    flips, ratings = against_the_cue(train, 4)
    out = [e for e in train if e.id == flips[0].example]
    assert trained_on(train, ratings, flips, validation=others) == 12 + 4
    rest = [e for e in train if e not in out]
    assert trained_on(rest, ratings, flips, validation=out) == 11 + 3  # the text is not among those trained on
    assert trained_on(train, ratings, flips, validation=out) == 12 + 3  # nor where it is, by mistake
    same = [Example("v", flips[1].text, label="negative")]
    assert trained_on(train, ratings, flips, validation=same) == 12 + 3  # a flip that is a held-out text


def test_a_flip_that_is_a_tested_text_is_not_trained_on():
    train = shortcut.texts()[:12]
    flips, ratings = against_the_cue(train, 4)
    tested = [Example("t", flips[1].text, label="negative"), Example("u", flips[2].text, "a pair")]
    assert trained_on(train, ratings, flips, tested=tested) == 12 + 3
    held_out = [Example("v", flips[0].text, label="negative")]
    assert trained_on(train, ratings, flips, tested=tested, validation=held_out) == 12 + 2


def test_only_what_was_trained_on_counts_as_used():
    train = shortcut.texts()[:20]
    flips, ratings = against_the_cue(train, 5)
    ratings[0] = rate(flips[0], 1, "negative", plausible=1)  # refused
    held_out = [Example("v", flips[1].text, label="negative")]
    tied = rate(flips[2], 1, "positive", author="bob")  # as many name another label
    again = rate(flips[3], 1, "negative", author="bob")
    asked = {"fix": FIX, "flips": flips, "validation": held_out, "training": {"epochs": 1}}
    made = mend(tiny.transformer(), train, [*ratings, tied, again], **asked)
    assert set(made.used) == {ratings[3].id, again.id, ratings[4].id}
    assert made.touched == 2


def test_texts_with_rated_flips_are_not_held_out():
    train = [replace(e, id=f"{n} {e.id}", text=f"{e.text} {n}") for n in range(2) for e in shortcut.texts()][:200]
    flips, ratings = against_the_cue(train, 90)
    assert trained_on(train, ratings, flips, {"batch_size": 3}) == (180 + 90) / 3  # 20 are held out


def test_flips_that_are_not_given_or_not_of_training_texts():
    train = shortcut.texts()[:12]
    flips, ratings = against_the_cue(train, 4)
    assert trained_on(train, ratings, {one.id: one for one in flips[:2]}) == 12 + 2
    with pytest.raises(BadData, match="4 flips, and none of these was given"):
        trained_on(train, ratings, ())
    elsewhere = [flip("other", "x")]
    with pytest.raises(BadData, match="rate flips of them"):
        trained_on(train, [rate(elsewhere[0], 5)], elsewhere)


def test_what_cannot_be_trained_on_is_refused_with_the_reason():
    train = shortcut.texts()
    one = flip(train[0].id, "a soup")
    for ratings in ([rate(one, 5, plausible=1)], [rate(one, 3)], [rate(one, plausible=None, meaningful=None)]):
        with pytest.raises(BadData, match=r"None of the 1 rated flips .* Nothing was trained"):
            mend(shortcut.classifier(), train, ratings, fix=FIX, flips=[one])
    with pytest.raises(BadData, match="'great', which the model lacks"):
        mend(shortcut.classifier(), train, [rate(one, 5, "great")], fix=FIX, flips=[one])
    for options in ({"least": 0.5}, {"least": 6}, {"times": 0}):
        with pytest.raises(BadOption):
            mend(shortcut.classifier(), train, [rate(one, 5)], fix=FIX, flips=[one], **options)


def test_pairs_and_empty_texts_are_trained_on_too():
    train = [Example(f"p{n}", "the soup", "it was cold", label=LABELS[n % 2]) for n in range(4)]
    flips = [flip("p0", "the soup", "it was warm"), flip("p1", "", "it was"), flip("p2", "soup", "")]
    made = mend(
        tiny.transformer(), train, [rate(one, 5) for one in flips], fix=FIX, flips=flips, training={"epochs": 1}
    )
    assert np.isfinite(made.classifier.log_probs(train)).all()
