"""The search behind flips, on models whose every answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from unhans.counterfactuals import Draft, Goal, counterfactual, find_flips
from unhans.errors import BadOption, Cancelled
from unhans.text import Words
from unhans.types import Edit, Example

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -2.0, "dull": -1.0, "not": -0.5}
reviews = st.lists(st.sampled_from([*WEIGHTS, "film", "the"]), min_size=0, max_size=7).map(" ".join)


def smallest(classifier, text: str, most: int) -> int | None:
    """How many words have to go for another label, by trying everything."""
    words = Words(text)
    before = classifier.predict([text])[0].label
    for n in range(1, most + 1):
        parts = [words.without(some).texts[0] for some in combinations(range(len(words)), n)]
        if parts and any(one.label != before for one in classifier.predict(parts)):
            return n
    return None


@settings(max_examples=40, deadline=None)
@given(reviews)
def test_a_wide_beam_finds_the_fewest_words_that_have_to_go(text):
    classifier = tiny.bag_of_words(WEIGHTS, bias=0.25)
    (found,) = find_flips(classifier, text, method="deletion", search={"beam": 200, "max_edits": 3, "alternatives": 0})
    fewest = smallest(classifier, text, 3)
    assert found.flips == (fewest is not None)
    if fewest is not None:
        assert len(found.edits) == fewest


def test_what_was_not_needed_is_in_the_steps_but_not_in_the_edits():
    classifier = tiny.bag_of_words({"good": 1.0, "fine": 0.6, "bad": -1.7})
    begun = [Edit(1, "good", "")]  # somebody's choice; deleting the other one would not have needed it
    (found,) = find_flips(
        classifier, "fine good film bad", method="deletion", start={"1": begun}, search={"max_edits": 3}
    )
    assert found.before.label == "negative"
    assert found.flips
    assert found.edits == (Edit(3, "bad", ""),)
    assert [step.edits for step in found.steps] == [(Edit(1, "good", ""),), (Edit(3, "bad", ""),)]


def test_the_best_attempt_is_kept_where_nothing_flips():
    classifier = tiny.bag_of_words({"good": 3.0, "fine": 1.0}, bias=5.0)
    (found,) = find_flips(classifier, "fine good film", method="deletion", search={"max_edits": 1})
    assert not found.flips
    assert found.edits == (Edit(1, "good", ""),)
    assert found.after.probabilities[0] > found.before.probabilities[0]


def test_alternatives_tell_what_they_would_have_done():
    classifier = tiny.bag_of_words({"not": -4.0, "never": -3.5, "good": 3.0})
    (found,) = find_flips(classifier, "good film", method="insertion", words="not never very", side="before")
    (step,) = found.steps
    assert step.edits[0].new.startswith("not ")
    others = {one.edit.new: one.probability for one in step.alternatives}
    for new, probability in others.items():
        edit = Edit(step.edits[0].position, step.edits[0].old, new)
        (told,) = classifier.predict([Words("good film").edited([edit]).texts[0]])
        assert probability == pytest.approx(told.probabilities[0])
    assert list(others.values()) == sorted(others.values(), reverse=True)


def test_each_question_is_put_to_the_model_once():
    asked: list[str] = []
    classifier = tiny.bag_of_words(WEIGHTS, asked=asked)
    find_flips(classifier, ["good fine film", "bad dull film"], method="deletion", keep=3)
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("target", [None, 0, 1, 2])
def test_gain_and_goal_are_those_of_the_loss(target):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 3))
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    goal = Goal(1, target)
    loss = log_probs[:, 1] if target is None else -log_probs[:, target]  # to be made small
    assert (np.argsort(loss) == np.argsort(-goal.gain(log_probs))).all()
    labels = log_probs.argmax(1)
    assert (goal.met(log_probs) == ((labels != 1) if target is None else (labels == target))).all()


def test_a_rewrite_that_is_too_long_does_not_end_the_search(monkeypatch):
    """One proposal changes eight words and flips; two single edits do so too, and they are what is asked for."""
    monkeypatch.setattr(counterfactual, "_entries", dict(counterfactual._entries) if list(counterfactual) else {})

    def overlong(drafts: Sequence[Draft]) -> list[list[tuple[Edit, ...]]]:
        """All eight at once, or one at a time."""
        return [[tuple(on.edit(n, "") for n in on.open), *((on.edit(n, ""),) for n in on.open)] for on in drafts]

    counterfactual(needs={"predict"})(overlong)
    weights = {f"w{n}": 1.0 for n in range(8)}
    known = tiny.bag_of_words(weights, bias=-6.5)
    (found,) = find_flips(known, " ".join(weights), method="overlong", search={"max_edits": 2, "beam": 3})
    assert found.flips
    assert len(found.edits) == 2


def test_a_text_that_has_the_label_already_is_not_flipped():
    found = find_flips(tiny.bag_of_words(WEIGHTS), ["good film", "bad film"], method="deletion", target="positive")
    assert found[0].flips
    assert found[0].edits == ()
    assert found.flip_rate == (0.5 if found[1].flips else 0.0)


def test_edits_that_do_not_fit_the_text_are_refused():
    classifier = tiny.bag_of_words(WEIGHTS)
    with pytest.raises(BadOption, match="is not"):
        find_flips(classifier, "good film", method="deletion", start={"1": [Edit(0, "bad", "")]})


def test_two_texts_with_one_id_are_refused():
    with pytest.raises(BadOption, match="same id"):
        find_flips(tiny.bag_of_words(WEIGHTS), [Example("a", "good"), Example("a", "bad")], method="deletion")


def test_progress_is_told_and_a_search_can_be_stopped():
    told: list[tuple[int, int]] = []
    texts = ["good fine film"] * 10
    find_flips(tiny.bag_of_words(WEIGHTS), texts, method="deletion", progress=lambda *now: told.append(now))
    assert told[-1] == (10, 10)
    assert told == sorted(told)
    with pytest.raises(Cancelled):
        find_flips(tiny.bag_of_words(WEIGHTS), texts, method="deletion", cancelled=lambda: len(told) > 0)
