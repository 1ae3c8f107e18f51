"""Risk: the paper's formula, an interval that holds what it promises, and how many more ratings it takes."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unhans.errors import BadData, BadOption
from unhans.feedback import krippendorff_alpha
from unhans.risk import FEWEST, FEWEST_EXAMPLES, WORST, assess, compare
from unhans.types import (
    Counterfactual,
    Edit,
    Feedback,
    FlipRating,
    Prediction,
    Recipe,
    Risk,
    WordVote,
    from_json,
    to_json,
)

LABELS = ("negative", "positive", "neither")


def flip(example, number=0, *, generator="hotflip", before=0, after=1, revision="r"):
    """A flip of an example; the number tells those of one example apart."""

    def says(label):
        return Prediction(example, LABELS, tuple(0.8 if n == label else 0.1 for n in range(3)), revision)

    edits = (Edit(number, "good", "bad"),)
    return Counterfactual(
        example, edits, "a text", None, says(before), says(after), Recipe("counterfactuals", generator)
    )


def rating(of, author="ann", agrees=3, plausible=4, meaningful=4):
    says = FlipRating(of if isinstance(of, str) else of.id, plausible, meaningful, agrees)
    return Feedback(f"{author} {says.counterfactual}", says, author, "2026-01-01T00:00:00Z", "r")


def by_id(flips):
    return {one.id: one for one in flips}


def study(rng, texts, people, *, of_text=1.0, of_person=0.5, noise=0.7, most=3, offset=0.0):
    """Ratings by everybody of one to some flips of each text; texts and people differ."""
    text_effects, person_effects = rng.normal(0, of_text, texts), rng.normal(0, of_person, people)
    flips, ratings = {}, []
    for text in range(texts):
        own = [flip(f"e{text}", number) for number in range(rng.integers(1, most + 1))]
        flips |= by_id(own)
        for person in range(people):
            drawn = 3 + offset + text_effects[text] + person_effects[person] + rng.normal(0, noise, len(own))
            ratings += [
                rating(one, f"p{person}", int(agrees))
                for one, agrees in zip(own, np.clip(drawn.round(), 1, 5), strict=True)
            ]
    return ratings, flips


def papers_risk(ratings, flips):
    """§2.2 word for word: each annotator's risk around an instance, then their average by number of counterfactuals."""
    faithful = defaultdict(list)
    for one in ratings:
        if one.says.agrees is not None:
            faithful[one.author, flips[one.says.counterfactual].example].append(one.says.agrees)
    risks = {who: sum(5 - f for f in given) / len(given) for who, given in faithful.items()}
    weights = {who: len(given) for who, given in faithful.items()}
    return sum(risks[who] * weights[who] for who in risks) / sum(weights.values())


# The formula

some_ratings = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from(["ann", "bob", "eve"])),
    st.none() | st.integers(1, 5),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30, deadline=None)
@given(some_ratings, st.randoms())
def test_risk_is_the_papers_formula_and_the_mean_over_all_ratings(answers, random):
    flips = by_id(flip(f"e{text}", number) for text, number, _ in answers)
    ratings = [rating(flip(f"e{text}", number), who, agrees) for (text, number, who), agrees in answers.items()]
    given_ = [agrees for agrees in answers.values() if agrees is not None]
    found = assess(ratings, flips)
    assert (found.n, found.not_applicable) == (len(given_), len(answers) - len(given_))
    if not given_:
        assert found.value is None
        return
    assert found.value == pytest.approx(papers_risk(ratings, flips))
    assert found.value == pytest.approx(mean(5 - agrees for agrees in given_))
    assert 0 <= found.value <= WORST
    assert found.low is None or 0 <= found.low <= found.value <= found.high <= WORST
    assert sum(one.value * one.n for one in found.local) / found.n == pytest.approx(found.value)
    for by in ("label", "after", "generator", "author", "outcome"):  # parts make up the whole
        parts = [one for one in found.slices if one.by == by]
        assert sum(one.n for one in parts) == found.n
        assert sum(one.value * one.n for one in parts) / found.n == pytest.approx(found.value)
    random.shuffle(ratings)
    again = assess(ratings, flips)
    assert (again.low, again.high, again.more) == (found.low, found.high, found.more)
    assert again.value == pytest.approx(found.value)


def test_by_hand():
    one, two, three = flip("e1", 0), flip("e1", 1), flip("e2", 0, generator="masked_lm", before=1, after=2)
    ratings = [rating(one, agrees=5), rating(two, agrees=2), rating(three, agrees=1), rating(three, "bob", 3)]
    found = assess(ratings, by_id([one, two, three]), groups={"e1": "A"})
    assert found.value == (0 + 3 + 4 + 2) / 4
    assert (found.n, found.flips, found.examples, found.people) == (4, 3, 2, 2)
    local = {(x.example, x.author): (x.value, x.n) for x in found.local}
    assert local == {("e1", "ann"): (1.5, 2), ("e2", "ann"): (4.0, 1), ("e2", "bob"): (2.0, 1)}
    assert found.local[0].example == "e2"  # the riskiest first
    parts = {(x.by, x.name): (x.value, x.n) for x in found.slices}
    assert parts == {
        ("label", "negative"): (1.5, 2),
        ("label", "positive"): (3.0, 2),
        ("after", "positive"): (1.5, 2),
        ("after", "neither"): (3.0, 2),
        ("group", "A"): (1.5, 2),
        ("group", None): (3.0, 2),
        ("generator", "hotflip"): (1.5, 2),
        ("generator", "masked_lm"): (3.0, 2),
        ("author", "ann"): (7 / 3, 3),
        ("author", "bob"): (2.0, 1),
        ("outcome", "flip"): (2.25, 4),
    }
    assert found.revision == "r"
    assert from_json(Risk, to_json(found)) == found


def test_attempts_that_did_not_flip_are_a_part_of_their_own():
    there, not_there = flip("e1"), flip("e2", before=1, after=1)
    found = assess([rating(there, agrees=1), rating(not_there, agrees=5)], by_id([there, not_there]))
    assert {x.name: x.value for x in found.slices if x.by == "outcome"} == {"flip": 4.0, "no flip": 0.0}


# What counts


def test_without_ratings_there_is_no_risk_and_no_error():
    for ratings, flips in (([], {}), ([], by_id([flip("e")])), ([rating("gone")], {})):
        found = assess(ratings, flips)
        assert (found.value, found.low, found.more, found.n) == (None, None, None, 0)
        assert "Nobody has rated" in found.note
        assert [one.n for one in found.questions] == [0, 0, 0]
        assert found.unknown == len(ratings)


def test_one_rating_is_a_value_without_an_interval():
    one = flip("e")
    found = assess([rating(one, agrees=2)], by_id([one]))
    assert (found.value, found.low, found.high, found.more, found.design) == (3.0, None, None, None, None)
    assert f"An interval takes {FEWEST} ratings about {FEWEST_EXAMPLES} texts" in found.note


def test_what_does_not_apply_does_not_count():
    one = flip("e")
    found = assess([rating(one, who, None, None, None) for who in ("ann", "bob")], by_id([one]))
    assert (found.value, found.n, found.not_applicable) == (None, 0, 2)
    plausible = assess([rating(one, agrees=None, plausible=2)], by_id([one]))
    assert plausible.value is None
    assert {x.question: (x.mean, x.n) for x in plausible.questions} == {
        "plausible": (2.0, 1),
        "meaningful": (4.0, 1),
        "agrees": (None, 0),
    }


def test_only_what_stands_counts_and_other_feedback_does_not():
    one = flip("e")
    first = replace(rating(one, agrees=1), id="1")
    later = replace(rating(one, agrees=4), id="2")
    vote = Feedback("3", WordVote("good", "positive", "lower"), "ann", "2026-01-01T00:00:00Z", "r")
    assert assess([first, later, vote], by_id([one])).value == 1.0
    taken_back = replace(later, id="4", retracts="2")
    assert assess([first, later, taken_back], by_id([one])).value == 4.0
    assert assess([first, later, vote, rating("other")], by_id([one])).unknown == 1


def test_flips_of_two_revisions_are_not_mixed():
    flips = by_id([flip("e"), flip("e", revision="r2")])
    assert len(flips) == 2
    with pytest.raises(BadData, match="2 revisions"):
        assess([], flips)


@pytest.mark.parametrize("width", [0, -1, 1e-160, 1e-100, 0.0099, math.inf, math.nan])
def test_a_width_is_one_that_ratings_can_reach(width):
    with pytest.raises(BadOption, match="width"):
        assess([], {}, width=width)


@pytest.mark.parametrize("people", [1, 3])
def test_the_narrowest_interval_takes_many_ratings_and_they_are_counted(people):
    found = assess(*study(np.random.default_rng(5), 12, people), width=0.01)
    assert found.more is None or found.more > 1000
    assert found.more_people > 100


def test_agreement_is_krippendorffs_on_each_question():
    ratings, flips = study(np.random.default_rng(1), 12, 3)
    ratings = [replace(x, says=replace(x.says, plausible=1 + n % 5)) for n, x in enumerate(ratings)]
    found = {one.question: one for one in assess(ratings, flips).questions}
    for name in ("plausible", "agrees"):
        answers = defaultdict(dict)
        for one in ratings:
            answers[one.says.counterfactual][one.author] = getattr(one.says, name)
        assert found[name].alpha == pytest.approx(krippendorff_alpha(list(answers.values()), "ordinal"))
        assert found[name].low < found[name].alpha < found[name].high
        assert found[name].shared == len(flips)
    assert found["meaningful"].alpha is None
    assert "the same" in found["meaningful"].note
    assert found["agrees"].alpha > found["plausible"].alpha + 0.2


# The interval


def test_ratings_that_are_all_the_same_promise_nothing():
    flips = [flip(f"e{n}") for n in range(20)]
    found = assess([rating(one, who, 4) for one in flips for who in ("ann", "bob")], by_id(flips))
    assert (found.value, found.low, found.high, found.more, found.design) == (1.0, None, None, None, None)
    assert "do not vary" in found.note


def test_one_persons_ratings_are_said_to_be_one_persons():
    ratings, flips = study(np.random.default_rng(2), 20, 1)
    found = assess(ratings, flips)
    assert found.low < found.value < found.high
    assert "one person's" in found.note
    assert all(one.note for one in found.questions)


def test_many_ratings_of_few_texts_have_no_interval():
    flips = [flip(f"e{n % 4}", n) for n in range(40)]
    found = assess([rating(one, agrees=1 + n % 5) for n, one in enumerate(flips)], by_id(flips))
    assert found.low is None
    assert "4 texts" in found.note


def test_the_same_seed_gives_the_same_interval():
    ratings, flips = study(np.random.default_rng(3), 15, 4)
    assert assess(ratings, flips, seed=1) == assess(ratings, flips, seed=1)
    assert assess(ratings, flips, seed=1).low != assess(ratings, flips, seed=2).low


def naive(values):
    """The interval for which every rating is a draw of its own."""
    error = 1.96 * np.std(values, ddof=1) / math.sqrt(len(values))
    return np.mean(values) - error, np.mean(values) + error


def test_the_interval_holds_the_true_risk_as_often_as_it_says():
    """Six people, twenty texts; both differ. The scale is symmetric about 3, so that the true risk is 2."""
    rng, hits, naive_hits, times = np.random.default_rng(4), 0, 0, 60
    for _ in range(times):
        ratings, flips = study(rng, 20, 6, most=2)
        found = assess(ratings, flips)
        hits += found.low <= 2 <= found.high
        low, high = naive([5 - one.says.agrees for one in ratings])
        naive_hits += low <= 2 <= high
    assert hits / times >= 0.88  # 95 % less what 60 studies may be off by
    assert naive_hits / times < 0.7


def test_related_ratings_are_worth_less_than_unrelated_ones():
    alike = assess(*study(np.random.default_rng(5), 30, 5, of_text=1.5, of_person=0.0, noise=0.2))
    unrelated = assess(*study(np.random.default_rng(5), 30, 5, of_text=0.0, of_person=0.0, noise=1.5))
    assert alike.design > 3
    assert unrelated.design < 2


# How many more


def test_so_many_more_ratings_make_the_interval_so_wide():
    rng = np.random.default_rng(6)
    now = assess(*study(rng, 30, 8, of_person=0.1), width=0.35)
    assert now.high - now.low > 0.35
    then = assess(*study(rng, round(30 * (1 + now.more / now.n)), 8, of_person=0.1), width=0.35)
    assert then.high - then.low == pytest.approx(0.35, rel=0.3)


def test_people_who_differ_need_company():
    rng = np.random.default_rng(7)
    now = assess(*study(rng, 20, 12, of_text=0.3, of_person=1.0), width=0.6)
    assert now.more is None
    assert f"{now.more_people:,} more people" in now.note
    then = assess(*study(rng, 40, 12 + now.more_people, of_text=0.3, of_person=1.0), width=0.6)
    assert then.high - then.low == pytest.approx(0.6, rel=0.4)  # twelve people tell roughly how people differ


def test_an_interval_that_is_narrow_enough_needs_nothing():
    found = assess(*study(np.random.default_rng(8), 20, 5), width=4.0)
    assert (found.more, found.more_people) == (0, 0)


def test_narrower_takes_more():
    ratings, flips = study(np.random.default_rng(9), 25, 5, of_person=0.0)
    more = [assess(ratings, flips, width=width).more for width in (0.6, 0.4, 0.2)]
    assert more == sorted(more)
    assert more[0] < more[-1]


# Before and after


def test_a_fix_that_helps_every_text_is_seen_although_texts_differ():
    """Paired by text: the spread between texts is wider than the change."""
    rng = np.random.default_rng(10)
    ratings, flips = study(rng, 25, 3, of_text=1.2, noise=0.2, offset=-0.8)
    before = assess(ratings, flips)
    later = {one.id: replace(one, before=replace(one.before, revision="r2")) for one in flips.values()}
    later = {one.id: (old, one) for old, one in later.items()}
    new_id = {old: new for new, (old, _) in later.items()}
    eased = [
        rating(new_id[x.says.counterfactual], x.author, min(5, x.says.agrees + int(rng.integers(3)))) for x in ratings
    ]
    after = assess(eased, {new: one for new, (_, one) in later.items()})
    change = compare(before, after)
    assert change.change == after.value - before.value
    assert change.low < change.change < change.high < 0
    assert change.verdict == "better"
    assert change.high - change.low < 0.5 * (before.high - before.low)
    assert (change.shared, change.revisions) == (25, ("r", "r2"))
    back = compare(after, before)
    assert back.verdict == "worse"
    assert back.low == pytest.approx(-change.high, abs=0.05)
    assert compare(before, before).verdict == "same"


def test_other_texts_after_are_compared_with_all_and_it_is_said():
    rng = np.random.default_rng(11)
    before = assess(*study(rng, 15, 3))
    ratings, flips = study(rng, 15, 3)
    renamed = {id_: replace(one, example=f"new {one.example}") for id_, one in flips.items()}
    change = compare(before, assess(ratings, renamed))
    assert change.shared == 0
    assert "No text was rated before and after" in change.note
    assert change.high - change.low > before.high - before.low


def rated_by(author, agrees, revision="r"):
    """One person's ratings, of a flip of each text."""
    flips = [flip(f"e{n}", revision=revision) for n in range(len(agrees))]
    return [rating(one, author, n) for one, n in zip(flips, agrees, strict=True)], by_id(flips)


LENIENT, STRICT = [5, 4, 5, 3, 5, 4, 4, 5, 2, 5, 4, 5], [3, 2, 4, 1, 3, 2, 3, 4, 1, 3, 2, 3]


def test_other_people_after_are_no_change_of_the_model():
    before, after = assess(*rated_by("ann", LENIENT)), assess(*rated_by("bob", STRICT, "r2"))
    change = compare(before, after)
    assert change.change > 1
    assert (change.low, change.high, change.verdict) == (None, None, "same")
    assert change.note.startswith("Nobody rated before and after")
    alone = compare(before, assess(*rated_by("ann", STRICT, "r2")))
    assert (alone.verdict, alone.low > 0) == ("worse", True)
    assert "before and after" not in alone.note  # that all are one person's is said


def test_few_people_who_rated_before_and_after_are_said_to_be_few():
    ratings, flips = rated_by("ann", STRICT, "r2")
    before = assess(*rated_by("ann", LENIENT))
    change = compare(before, assess([*ratings, *rated_by("bob", STRICT, "r2")[0]], flips))
    assert change.low is not None
    assert "Only 1 person rated before and after" in change.note
    rng = np.random.default_rng(4)
    assert "Only 4 people rated" in compare(assess(*study(rng, 12, 4)), assess(*study(rng, 12, 9))).note
    assert compare(assess(*study(rng, 12, 5)), assess(*study(rng, 12, 9))).note == ""


def test_too_few_ratings_after_a_fix_are_said_to_be_too_few():
    before, one = assess(*study(np.random.default_rng(12), 15, 3)), flip("e0", revision="r2")
    change = compare(before, assess([rating(one, agrees=5)], by_id([one])))
    assert (change.low, change.high, change.verdict) == (None, None, "same")
    assert change.change == -before.value
    nothing = compare(before, assess([], {}))
    assert (nothing.after, nothing.change, nothing.low) == (None, None, None)
    assert "An interval takes" in nothing.note
