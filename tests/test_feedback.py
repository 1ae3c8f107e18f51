"""Questions, what stands in the log, what is stale, and how far people agree."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from unhans.feedback import (
    MOST_COPIES,
    NO_LABEL,
    Contribution,
    PersonAgreement,
    agreement_by_kind,
    alpha_interval,
    contributions,
    copies_wanted,
    disagreements,
    krippendorff_alpha,
    numbers_of,
    person_agreement,
    resolve,
    settle,
    settle_flips,
    settle_neighbours,
    stale_reason,
    subject_of,
    value_of,
)
from unhans.text import visible_form
from unhans.types import Feedback, FlipRating, NeighbourRating, Relabel, Review, Ruling, WordVote, from_json, to_json

_numbers = itertools.count()


def said(author, says, **fields):
    return Feedback(**{"id": f"f{next(_numbers)}", "says": says, "author": author, "at": "t", "revision": "r"} | fields)


def vote(author, position, value="raise", *, label="pos", example="x"):
    return said(author, WordVote("w", label, value, example, position))


def everywhere(author, word, value="raise", label="pos"):
    return said(author, WordVote(word, label, value))


def done(author, example="x"):
    return said(author, Review(example, "done"))


def agreement(opinions, kind, **options):
    return {one.kind: one for one in agreement_by_kind(opinions, **options)}[kind]


# Questions and answers

NAMES = (
    st.sampled_from(["", "a", "A", "1", "null", '"', '","', "[]", "\\", "__proto__", "é", "😀", "שלום", "a b"])
    | st.text()
)
RATINGS = st.integers(1, 5)
ANSWERS = st.one_of(
    st.builds(
        WordVote,
        NAMES,
        NAMES,
        st.sampled_from(["raise", "lower"]),
        st.none() | NAMES,
        st.none() | st.integers(0, 3),
    ),
    st.builds(FlipRating, NAMES, RATINGS, RATINGS, RATINGS),
    st.builds(NeighbourRating, NAMES, NAMES, RATINGS),
    st.builds(Relabel, NAMES, st.none() | NAMES),
    st.builds(Review, NAMES, st.sampled_from(["done", "skipped", "flagged"]), NAMES),
    st.builds(Ruling, NAMES, NAMES),
)


def the_question(answer):
    """What makes two answers answers to the same question, said another way than `subject_of` does."""
    match answer:
        case WordVote(example=None):
            return (WordVote, "everywhere", visible_form(answer.word) or answer.word, answer.label)
        case WordVote(position=None):
            return (WordVote, "in", answer.example, visible_form(answer.word) or answer.word, answer.label)
        case WordVote():
            return (WordVote, "at", answer.example, answer.position, answer.label)
    asked = {"vote", "plausible", "meaningful", "agrees", "similar", "label", "state", "note", "value"}
    return (type(answer), *(getattr(answer, name) for name in answer.__slots__ if name not in asked))


@settings(max_examples=500)
@given(ANSWERS, ANSWERS)
def test_answers_have_equal_subjects_if_and_only_if_they_answer_the_same_question(one, other):
    assert (subject_of(one) == subject_of(other)) == (the_question(one) == the_question(other))
    assert isinstance(json.loads(subject_of(one)), list)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (WordVote("a", "b", "raise"), WordVote("a", "b", "raise", "x", 0)),
        (WordVote("0", "b", "raise", "x"), WordVote("0", "b", "raise", "x", 0)),
        (WordVote("a", "l", "raise", "x"), WordVote("b", "l", "raise", "x")),
        (WordVote("a", 'b","c', "raise"), WordVote('a","b', "c", "raise")),
        (NeighbourRating("a", "b", 1), NeighbourRating("b", "a", 1)),
        (Relabel("x", "a"), Review("x", "done")),
        (WordVote("a", "null", "raise", None), WordVote("a", "null", "raise", "null")),
    ],
)
def test_odd_names_do_not_make_two_questions_one(one, other):
    assert subject_of(one) != subject_of(other)


def test_a_vote_everywhere_is_about_all_words_that_look_alike():
    same = ["Café", "cafe\u0301", "CAFÉ", "ca\u00adfé"]
    assert len({subject_of(WordVote(word, "pos", "raise")) for word in same}) == 1
    assert subject_of(WordVote("cafe", "pos", "raise")) != subject_of(WordVote("café", "pos", "raise"))


def test_the_word_of_a_vote_on_a_position_is_not_part_of_the_question():
    assert subject_of(WordVote("a", "l", "raise", "x", 3)) == subject_of(WordVote("b", "l", "lower", "x", 3))


@pytest.mark.parametrize(
    ("answer", "value", "numbers"),
    [
        (WordVote("w", "l", "lower"), "lower", {}),
        (FlipRating("c", 1, 2, 3), "1 2 3", {"plausible": 1, "meaningful": 2, "agrees": 3}),
        (FlipRating("c", 1, None, 3, "not it"), "1 – 3 not it", {"plausible": 1, "agrees": 3}),
        (NeighbourRating("a", "b", 4), "4", {"similar": 4}),
        (Relabel("x", "__proto__"), "__proto__", {}),
        (Relabel("x", None), NO_LABEL, {}),
        (Review("x", "skipped", "why"), "skipped", {}),
        (Ruling("q", "raise"), "raise", {}),
    ],
)
def test_the_value_of_an_answer_is_what_was_answered(answer, value, numbers):
    assert (value_of(answer), numbers_of(answer)) == (value, numbers)


# What stands


def test_the_last_answer_stands_and_the_times_do_not_matter():
    first, last = vote("a", 0), replace(vote("a", 0, "lower"), at="1970")
    assert list(resolve([first, last]).values()) == [last]
    assert list(resolve([first, replace(last, retracts=None), said("a", last.says, retracts=last.id)]).values()) == [
        first
    ]


def test_a_retraction_can_be_taken_back():
    entry = vote("a", 0)
    back = said("a", entry.says, retracts=entry.id)
    again = said("a", entry.says, retracts=back.id)
    assert resolve([entry, back]) == {}
    assert list(resolve([entry, back, again]).values()) == [entry]


def test_nobody_takes_back_what_another_said():
    entry = vote("a", 0)
    assert list(resolve([entry, said("b", entry.says, retracts=entry.id)]).values()) == [entry]


def test_only_earlier_entries_can_be_taken_back():
    entry = vote("a", 0)
    assert list(resolve([said("a", entry.says, retracts=entry.id), entry]).values()) == [entry]


def test_an_entry_sent_twice_is_one_entry():
    entry = vote("a", 0)
    assert resolve([entry, said("a", entry.says, retracts=entry.id), entry]) == {}
    assert list(resolve([entry, replace(vote("a", 0, "lower"), id=entry.id)]).values()) == [entry]


class Log(RuleBasedStateMachine):
    """`resolve` against the definition: an entry stands unless a later entry of its author that stands names it."""

    def __init__(self):
        super().__init__()
        self.log = []

    @rule(author=st.sampled_from("ab"), position=st.integers(0, 1), value=st.sampled_from(["raise", "lower"]))
    def answer(self, author, position, value):
        self.log.append(vote(author, position, value))

    @rule(author=st.sampled_from("ab"), place=st.integers(0, 30))
    def take_back(self, author, place):
        if self.log:
            earlier = self.log[place % len(self.log)]
            self.log.append(said(author, earlier.says, retracts=earlier.id))

    def stands(self, place):
        entry = self.log[place]
        return not any(
            later.retracts == entry.id and later.author == entry.author and self.stands(there)
            for there, later in enumerate(self.log)
            if there > place
        )

    @invariant()
    def resolve_says_what_the_definition_says(self):
        expected = {}
        for place, entry in enumerate(self.log):
            if entry.retracts is None and self.stands(place):
                expected[entry.author, subject_of(entry.says)] = entry
        assert resolve(self.log) == expected


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=14)


# What is stale


def test_an_answer_fits_as_long_as_text_and_model_are_the_same():
    entry = replace(vote("a", 0), text_hash="h", revision="one")
    assert stale_reason(entry, text_hash="h", revision="one") is None
    assert stale_reason(entry, text_hash="i", revision="one") == "The text has changed since."
    assert stale_reason(entry, text_hash=None, revision="one") == "The text is no longer in the data."
    assert stale_reason(entry, text_hash="h", revision="two") == "It was given about another revision of the model."
    assert stale_reason(entry, text_hash="i", revision="two") == "The text has changed since."


def test_answers_about_texts_alone_outlive_a_revision():
    for says in (Relabel("x", "pos"), NeighbourRating("x", "y", 3)):
        assert stale_reason(said("a", says, text_hash="h"), text_hash="h", revision="two") is None
        assert (
            stale_reason(said("a", says, text_hash="h"), text_hash="i", revision="r") == "The text has changed since."
        )


def test_an_answer_that_is_about_no_text_does_not_grow_stale_by_one():
    assert stale_reason(everywhere("a", "w"), text_hash="h", revision="r") is None
    assert stale_reason(everywhere("a", "w"), text_hash=None, revision="r") is None


# Krippendorff's alpha


def slow_alpha(ratings, level):
    """Alpha by its definition: all pairs of answers inside questions against all pairs of answers at all."""
    units = [list(answers.values()) for answers in ratings if len(answers) > 1]
    pool = [value for unit in units for value in unit]
    if len(set(pool)) < 2:
        return None

    def apart(one, other):
        if level == "nominal":
            return float(one != other)
        if level == "interval":
            return float((one - other) ** 2)
        low, high = sorted((one, other))
        between = sum(low <= value <= high for value in pool)
        return (between - (pool.count(low) + pool.count(high)) / 2) ** 2 if low != high else 0.0

    observed = sum(
        sum(apart(one, other) for one, other in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(pool)
    expected = sum(apart(one, other) for one, other in itertools.permutations(pool, 2)) / (len(pool) * (len(pool) - 1))
    return 1 - observed / expected


@settings(max_examples=300)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), max_size=4), max_size=8),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_what_all_pairs_say(ratings, level):
    assert krippendorff_alpha(ratings, level) == pytest.approx(slow_alpha(ratings, level), abs=1e-9)


def test_alpha_of_a_table_worked_out_by_hand():
    # Two people, four questions, answers 00 11 01 11. Coincidences: 00 → 2, 01 and 10 → 1 each, 11 → 4; n = 8, with
    # three 0 and five 1. Observed 2/8; expected 2·3·5/(8·7) = 30/56. Alpha = 1 − (1/4)/(15/28) = 8/15.
    ratings = [{"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 0, "b": 1}, {"a": 1, "b": 1}]
    assert krippendorff_alpha(ratings) == pytest.approx(8 / 15)
    # Ratings 1-1, 1-3, 3-3. Three 1 and three 3 among six answers; one pair of six apart each way.
    # Observed (1 + 1)/6 · d, expected 2·3·3/(6·5) · d, whatever the distance d: alpha = 1 − (1/3)/(3/5) = 4/9.
    rated = [{"a": 1, "b": 1}, {"a": 1, "b": 3}, {"a": 3, "b": 3}]
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(rated, level) == pytest.approx(4 / 9)
    # 1-2 and 1-3: n = 4, two 1, one 2, one 3. Interval: observed (2·1 + 2·4)/4 = 2.5;
    # expected 2·(2·1 + 2·4 + 1·1)/(4·3) = 22/12. Alpha = 1 − 30/22 = −4/11.
    assert krippendorff_alpha([{"a": 1, "b": 2}, {"a": 1, "b": 3}], "interval") == pytest.approx(-4 / 11)


def test_alpha_is_one_when_all_agree_and_about_nought_when_answers_are_random():
    assert krippendorff_alpha([{"a": v, "b": v, "c": v} for v in "xyxz"]) == 1
    rng = np.random.default_rng(0)
    noise = [{"a": int(one), "b": int(other)} for one, other in rng.integers(0, 3, (4000, 2))]
    assert abs(krippendorff_alpha(noise)) < 0.03


def test_alpha_is_undefined_without_overlap_or_with_one_answer_only():
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([{"a": "x"}, {"b": "y"}]) is None
    assert krippendorff_alpha([{"a": "x", "b": "x"}]) is None


def test_a_missing_answer_is_not_an_answer():
    whole = [{"a": 1, "b": 2}, {"a": 2, "b": 2}]
    assert krippendorff_alpha([*whole, {"c": 5}], "ordinal") == krippendorff_alpha(whole, "ordinal")


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_the_interval_is_that_of_drawing_questions_again(level):
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 6, 60)
    ratings = [{"a": int(t), "b": int(t if rng.random() < 0.7 else rng.integers(1, 6))} for t in truth]
    low, high = alpha_interval(ratings, level, seed=3)
    drawn = [krippendorff_alpha([ratings[n] for n in rng.integers(0, 60, 60)], level) for _ in range(1000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))), abs=0.05)
    assert low < krippendorff_alpha(ratings, level) < high
    assert alpha_interval(ratings, level, seed=3) == (low, high)
    assert alpha_interval(ratings, level, seed=4) != (low, high)


def test_there_is_no_interval_of_one_question_or_of_an_undefined_alpha():
    assert alpha_interval([{"a": 1, "b": 2}], seed=0) is None
    assert alpha_interval([{"a": 1, "b": 1}] * 5, seed=0) is None
    one_draw = [alpha_interval([{"a": 1, "b": 1}, {"a": 1, "b": 2}], seed=seed, resamples=1) for seed in range(20)]
    assert {found is None for found in one_draw} == {True, False}


# Agreement between people


def test_a_word_that_a_person_who_finished_did_not_mark_was_left():
    opinions = [vote("a", 0), vote("a", 2, "lower"), vote("b", 0), done("a"), done("b")]
    found = agreement(opinions, "word_vote", words={"x": 4})
    as_said = [
        {"a": "raise", "b": "raise"},
        {"a": "leave", "b": "leave"},
        {"a": "lower", "b": "leave"},
        {"a": "leave", "b": "leave"},
    ]
    assert found.alpha == pytest.approx(krippendorff_alpha(as_said))
    assert (found.questions, found.people, found.note) == (4, 2, "")
    assert agreement(opinions, "word_vote", words=lambda example: 4) == found


def test_a_person_who_has_not_finished_has_left_nothing():
    opinions = [vote("a", 0), vote("b", 1), vote("c", 0), done("a"), done("c")]
    found = agreement(opinions, "word_vote", words={"x": 3})
    assert found.alpha == 1
    assert (found.questions, found.people) == (3, 3)
    flagged = [*opinions[:3], done("a"), said("c", Review("x", "flagged"))]
    assert agreement(flagged, "word_vote", words={"x": 3}).note == "No two people have finished the same example."


def test_words_are_asked_about_once_for_each_label_voted_on():
    opinions = [vote("a", 0, label="p"), vote("b", 0, label="q"), done("a"), done("b")]
    found = agreement(opinions, "word_vote", words={"x": 5})
    assert found.questions == 10
    split = [{"a": "raise", "b": "leave"}] * 2 + [{"a": "leave", "b": "leave"}] * 8
    assert found.alpha == pytest.approx(krippendorff_alpha(split))


def test_examples_on_which_all_left_all_words_count_as_agreement():
    marked = [vote("a", 0), vote("b", 1), done("a"), done("b")]
    more = [*marked, done("a", "y"), done("b", "y")]
    counts = {"x": 3, "y": 50}
    assert agreement(more, "word_vote", words=counts).questions == 53
    assert agreement(more, "word_vote", words=counts).alpha > agreement(marked, "word_vote", words=counts).alpha


def test_without_the_numbers_of_words_only_marked_ones_count_and_the_note_says_so():
    found = agreement([vote("a", 0), vote("b", 0), vote("a", 1), done("a"), done("b")], "word_vote")
    assert (found.questions, found.note) == (2, "Only words that somebody marked are counted.")


def test_what_only_people_who_have_not_finished_marked_is_no_question():
    opinions = [vote("a", 0), vote("b", 0), vote("c", 1), vote("c", 2, label="other"), done("a"), done("b")]
    assert agreement(opinions, "word_vote").questions == 1
    assert agreement(opinions, "word_vote", words={"x": 4}).questions == 4
    assert {one.author: one.questions for one in person_agreement(opinions)} == {"a": 1, "b": 1, "c": 0}


def test_the_interval_of_word_votes_draws_examples_not_words():
    opinions = []
    for n in range(12):  # in half of the examples all agree on all words, in the others on none
        for position in range(10):
            opinions += [vote("a", position, example=f"x{n}")]
            opinions += [vote("b", position, "raise" if n % 2 else "lower", example=f"x{n}")]
        opinions += [done("a", f"x{n}"), done("b", f"x{n}")]
    found = agreement(opinions, "word_vote", words=lambda example: 10)
    words = [{"a": "raise", "b": "raise" if n % 2 else "lower"} for n in range(12) for _ in range(10)]
    low, high = alpha_interval(words, seed=0)
    assert found.high - found.low > 2 * (high - low)


def test_votes_everywhere_are_compared_between_those_who_voted():
    opinions = [everywhere("a", "Bad"), everywhere("b", "bad", "lower"), everywhere("a", "good"), done("b")]
    found = agreement(opinions, "word_vote_everywhere")
    assert (found.questions, found.people) == (1, 2)
    assert found.alpha == krippendorff_alpha([{"a": "raise", "b": "lower"}])


def test_ratings_are_compared_one_scale_at_a_time():
    opinions = [
        said(author, FlipRating(f"c{n}", plausible, 3, agrees))
        for n, answers in enumerate([((1, 5), (1, 1)), ((5, 1), (5, 5)), ((3, 2), (3, 4))])
        for author, (plausible, agrees) in zip("ab", answers, strict=True)
    ]
    assert agreement(opinions, "flip_plausible").alpha == 1
    assert agreement(opinions, "flip_agrees").alpha == pytest.approx(
        slow_alpha([{"a": 5, "b": 1}, {"a": 1, "b": 5}, {"a": 2, "b": 4}], "ordinal")
    )
    assert (
        agreement(opinions, "flip_meaningful").note == "All answers are the same: agreement cannot be told from chance."
    )


def test_the_note_says_why_there_is_no_alpha():
    assert agreement([], "relabel").note == "Nobody has answered such a question."
    assert agreement([said("a", Relabel("x", "p"))], "relabel").note == "Only one person has answered such questions."
    apart = [said("a", Relabel("x", "p")), said("b", Relabel("y", "p"))]
    assert agreement(apart, "relabel").note == "No two people have answered the same question."
    assert all(one.alpha is None for one in agreement_by_kind(apart))


def test_many_labels_with_odd_names_are_compared_as_they_are():
    labels = ["__proto__", "constructor", "", "😀", "null", "1e999", "א"]
    opinions = [said(author, Relabel(f"x{n}", label)) for author in "abc" for n, label in enumerate(labels)]
    assert agreement(opinions, "relabel").alpha == 1
    opinions[0] = said("a", Relabel("x0", "other"))
    assert 0.8 < agreement(opinions, "relabel").alpha < 1


def test_each_person_is_compared_with_the_majority_of_the_others():
    opinions = [said(a, Relabel("x", label)) for a, label in zip("abcd", "ppqp", strict=True)]
    opinions += [said(a, Relabel("y", label)) for a, label in zip("ab", "pq", strict=True)]
    found = {one.author: one for one in person_agreement(opinions)}
    assert found["c"] == PersonAgreement("c", 0.0, 1)
    assert found["a"] == PersonAgreement("a", 0.5, 2)
    assert found["d"] == PersonAgreement("d", 1.0, 1)


def test_a_question_on_which_the_others_are_split_does_not_count():
    opinions = [said(a, Relabel("x", label)) for a, label in zip("abc", "pqp", strict=True)]
    found = {one.author: one for one in person_agreement(opinions)}
    assert found["a"] == PersonAgreement("a", None, 0)
    assert found["b"] == PersonAgreement("b", 0.0, 1)


def test_a_rating_is_with_the_others_if_it_is_near_their_median():
    opinions = [said(a, NeighbourRating("x", "y", rating)) for a, rating in zip("abcd", (2, 3, 2, 5), strict=True)]
    assert [one.share for one in person_agreement(opinions)] == [1, 1, 1, 0]


def test_somebody_who_marks_every_word_stands_out():
    opinions = [done(author) for author in "abcz"]
    opinions += [vote(author, 0) for author in "abc"] + [vote("z", position, "lower") for position in range(20)]
    found = {one.author: one.share for one in person_agreement(opinions)}
    assert found == {"a": 1, "b": 1, "c": 1, "z": 0}
    contribution = contributions(opinions)[0]
    assert contribution == Contribution("z", 20, 20 / 23, (("word_vote", 20, "lower", 1.0),))


def test_contributions_count_answers_and_name_the_usual_one():
    opinions = [said("a", FlipRating(f"c{n}", 5, 5, 5)) for n in range(3)]
    opinions += [said("b", Relabel("x", "p")), done("b"), said("b", Ruling("q", "p")), said("a", Relabel("x", "q"))]
    assert contributions(opinions) == [
        Contribution("a", 4, 0.8, (("flip_rating", 3, "5 5 5", 1.0), ("relabel", 1, "q", 1.0))),
        Contribution("b", 1, 0.2, (("relabel", 1, "p", 1.0),)),
    ]
    assert contributions([]) == []


def test_disagreements_are_questions_with_opposite_answers():
    opinions = [
        vote("a", 0), vote("b", 0, "lower"),
        vote("a", 1), vote("b", 1),
        said("a", Relabel("x", "p")), said("b", Relabel("x", "q")), said("c", Relabel("x", "p")),
        said("a", NeighbourRating("x", "y", 3)), said("b", NeighbourRating("x", "y", 5)),
        said("a", FlipRating("c", 1, 1, 2)), said("b", FlipRating("c", 3, 3, 4)),
        said("a", Review("x", "done")), said("b", Review("x", "skipped")),
    ]  # fmt: skip
    found = disagreements(opinions)
    assert [one.kind for one in found] == ["word_vote", "relabel", "flip_rating"]
    assert found[1].answers == (("a", "p"), ("b", "q"), ("c", "p"))
    assert {one.settled for one in found} == {None}


def test_different_labels_of_a_flip_are_opposite_and_a_ruling_chooses_one():
    ann, bob = said("ann", FlipRating("c", 4, 4, 1, "positive")), said("bob", FlipRating("c", 4, 4, 1, "negative"))
    (found,) = disagreements([ann, bob])
    assert found.answers == (("ann", "4 4 1 positive"), ("bob", "4 4 1 negative"))
    assert settle_flips([ann, bob])[0].disputed
    ruling = said("m", Ruling(found.subject, found.answers[0][1]))
    (settled,) = settle_flips([ann, bob, ruling])
    assert (settled.label, settled.disputed, settled.ids) == ("positive", False, (ann.id,))
    assert disagreements([ann, bob, ruling])[0].settled == "4 4 1 positive"
    unnamed = said("cleo", FlipRating("c", 4, 4, 1))
    assert disagreements([ann, unnamed]) == []  # who names none does not name another


def test_a_ruling_settles_a_disagreement_and_the_last_one_counts():
    opinions = [vote("a", 0), vote("b", 0, "lower"), everywhere("a", "w"), everywhere("b", "W", "lower")]
    subject = subject_of(opinions[0].says)
    rulings = [said("m", Ruling(subject, "raise")), said("n", Ruling(subject, "lower"))]
    assert [(one.subject == subject, one.settled) for one in disagreements([*opinions, *rulings])] == [
        (False, None),
        (True, "lower"),
    ]


def test_nouns_of_the_log_survive_json():
    entry = said("a", Ruling(subject_of(WordVote('"', "[", "raise")), "raise"))
    assert from_json(Feedback, to_json(entry)) == entry


# -- what several people's answers come to


def voted(author, value, word="zyx"):
    return Feedback(f"{author} {word} {value}", WordVote(word, "positive", value), author, "2026-01-01", "r")


def test_most_voices_settle_a_question_and_a_tie_settles_nothing():
    opinions = [voted("ann", "lower"), voted("bob", "lower"), voted("eve", "raise"), voted("ann", "raise", "good")]
    opinions += [voted("bob", "lower", "fine"), voted("eve", "raise", "fine")]
    settled, undecided = settle(opinions)
    assert [(one.says.word, one.says.vote, one.people, one.against, one.ruled) for one in settled] == [
        ("zyx", "lower", 2, 1, False),
        ("good", "raise", 1, 0, False),
    ]
    assert set(settled[0].ids) == {"ann zyx lower", "bob zyx lower"}
    assert undecided == 1


def test_a_ruling_overrules_most_voices_and_one_for_what_nobody_said_asks_for_nothing():
    opinions = [voted("ann", "lower"), voted("bob", "lower"), voted("eve", "raise")]
    subject = subject_of(opinions[0].says)
    for value, kept in (("raise", ["raise"]), ("leave", [])):
        ruling = Feedback("r", Ruling(subject, value), "boss", "2026-01-02", "r")
        settled, undecided = settle([*opinions, ruling])
        assert undecided == 0
        assert [one.says.vote for one in settled] == kept
        assert all(one.ruled for one in settled)


def test_reviews_and_ratings_are_not_settled():
    settled, undecided = settle([Feedback("1", Review("e", "done"), "ann", "2026-01-01", "r")])
    assert (settled, undecided) == ([], 0)


def test_that_no_label_fits_is_an_answer_like_any_label():
    ann, bob, cleo = (said(author, Relabel("x", label)) for author, label in (("a", None), ("b", "p"), ("c", None)))
    (settled,), undecided = settle([ann, bob, cleo])
    assert (settled.says, settled.people, settled.against, undecided) == (Relabel("x", None), 2, 1, 0)
    assert settled.ids == (ann.id, cleo.id)
    assert settle([ann, bob]) == ([], 1)
    (found,) = disagreements([ann, bob])
    assert found.answers == (("a", NO_LABEL), ("b", "p"))
    for value, label in ((NO_LABEL, None), ("p", "p")):
        (settled,), _ = settle([ann, bob, said("m", Ruling(found.subject, value))])
        assert settled.says.label == label
    agreed = [said(author, Relabel(f"x{n}", label)) for author in "ab" for n, label in enumerate(("p", None, "q"))]
    assert agreement(agreed, "relabel").alpha == 1
    assert agreement([*agreed[:-1], said("b", Relabel("x2", None))], "relabel").alpha < 1
    assert contributions([ann])[0].by_kind == (("relabel", 1, NO_LABEL, 1.0),)


def similar(author, rating, train="t", anchor="x", **fields):
    return said(author, NeighbourRating(anchor, train, rating), **fields)


def test_ratings_of_neighbours_come_to_their_mean_and_what_was_taken_back_is_gone():
    log = [similar("a", 5), similar("b", 2), similar("a", 1, "u"), similar("b", 4, anchor="y"), done("a")]
    log += [similar("c", 1), similar("c", 3)]  # who answers again has changed their mind
    found = {(one.anchor, one.train): one for one in settle_neighbours(log)}
    assert {pair: one.similar for pair, one in found.items()} == {("x", "t"): 10 / 3, ("x", "u"): 1, ("y", "t"): 4}
    assert (found["x", "t"].ids, found["x", "t"].people) == ((log[0].id, log[1].id, log[6].id), 3)
    log.append(similar("b", 2, retracts=log[1].id))
    assert settle_neighbours(log)[0].similar == 4
    assert settle_neighbours(resolve(log).values()) == settle_neighbours(log)
    assert settle_neighbours([log[2], similar("a", 1, "u", retracts=log[2].id)]) == []


@pytest.mark.parametrize(
    ("value", "rating", "who"), [("5", 5, "a"), ("3", 3, "m"), ("leave", None, ""), ("6", None, "")]
)
def test_a_ruling_decides_how_similar_neighbours_are(value, rating, who):
    given_ = [similar("a", 5), similar("b", 1)]
    ruling = said("m", Ruling(subject_of(given_[0].says), value))
    ids = {"a": given_[0].id, "m": ruling.id}
    expected = [] if rating is None else [(rating, (ids[who],))]
    assert [(one.similar, one.ids) for one in settle_neighbours([*given_, ruling])] == expected


def test_copies_are_wanted_by_the_point_over_all_texts():
    log = [similar("a", 5), similar("b", 2), similar("a", 1, "u"), similar("a", 3, anchor="y")]
    settled = settle_neighbours(log)
    assert copies_wanted(settled) == {"t": 65, "u": 10}
    assert copies_wanted(settled, 1) == {"t": 6, "u": 1}
    assert copies_wanted(settle_neighbours([similar("a", 5, anchor=str(n)) for n in range(50)])) == {"t": MOST_COPIES}
    assert copies_wanted([]) == {}
