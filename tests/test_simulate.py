"""Simulated people: they say what the gold says, err as often as told, keep to their time, and start where told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

import tiny
from unhans.demo_data import entailment_pairs, reviews
from unhans.errors import BadData, BadOption, Cancelled
from unhans.fixes import mend
from unhans.scratch import fresh_averaging_classifier
from unhans.simulate import learning_curve, simulate
from unhans.text import Words
from unhans.training import Schedule, accuracy, fit
from unhans.types import Example, Review, Span, WordVote

FILMS = reviews(60, domain="films", seed=1)


def by_heart(weights):
    """A model that knows some words; with no weights it takes everything for negative."""
    return tiny.bag_of_words(weights, bias=-0.1)


def told(model=None, train=FILMS, **how):
    settings = {"gold": "highlights", "method": "leave_one_out", "only_correct": False} | how
    return simulate(model or by_heart({"the": 1.0, "a": 0.5, ".": 0.2}), train, **settings)


def votes_of(log):
    return [entry.says for entry in log if isinstance(entry.says, WordVote)]


def highlighted(example):
    return {
        number
        for number, word in enumerate(Words(example).spans)
        if any(word.part == h.part and word.start < h.end and h.start < word.end for h in example.highlights)
    }


def agreeing(votes, examples):
    marked = {example.id: highlighted(example) for example in examples}
    return [(vote.position in marked[vote.example]) == (vote.vote == "raise") for vote in votes]


# -- what they say


def test_who_never_errs_agrees_with_the_highlights_and_who_always_errs_never_does():
    right, wrong = votes_of(told(error_rate=0.0)), votes_of(told(error_rate=1.0))
    assert {vote.vote for vote in right} == {"raise", "lower"}
    assert all(agreeing(right, FILMS))
    assert wrong
    assert not any(agreeing(wrong, FILMS))


def test_some_err_as_often_as_told():
    share = agreeing(votes_of(told(error_rate=0.25)), FILMS)
    assert 0.65 < sum(share) / len(share) < 0.85


def test_a_model_that_uses_the_highlighted_words_needs_no_vote():
    example = Example("x", "the film was dull", label="positive", highlights=(Span(13, 17),))
    assert votes_of(told(by_heart({"dull": 2.0}), [example])) == []
    raised = votes_of(told(by_heart({"dull": -2.0}), [example]))  # strong, but it speaks against the label
    assert raised == [WordVote("dull", "positive", "raise", "x", 3)]


def test_words_the_model_leans_on_are_lowered_and_words_it_overlooks_raised():
    example = Example("x", "zyx the film was dull", label="positive", highlights=(Span(17, 21),))
    votes = votes_of(told(by_heart({"zyx": 3.0, "film": 1.0}), [example]))
    assert {(vote.word, vote.vote, vote.position) for vote in votes} == {("zyx", "lower", 0), ("dull", "raise", 4)}
    more = votes_of(told(by_heart({"zyx": 3.0, "film": 1.0}), [example], top=2))
    assert {(vote.word, vote.vote) for vote in more} == {("zyx", "lower"), ("film", "lower"), ("dull", "raise")}


def test_only_rightly_predicted_texts_are_shown_unless_told_otherwise():
    model = by_heart({"dull": -1.0, "zyx": 5.0})
    examples = [
        Example("right", "zyx dull film", label="positive", highlights=(Span(4, 8),)),
        Example("wrong", "zyx dull film", label="negative", highlights=(Span(4, 8),)),
        Example("bare", "zyx film", label="positive"),
        Example("nothing marked", "zyx film", label="positive", highlights=()),
        Example("no label", "zyx film", highlights=(Span(4, 8),)),
    ]
    assert {entry.says.example for entry in told(model, examples, only_correct=True)} == {"right"}
    both = told(model, examples)
    assert {entry.says.example for entry in both} == {"right", "wrong"}
    assert {vote.label for vote in votes_of(both) if vote.example == "wrong"} == {"negative"}


def test_words_beyond_the_models_limit_are_not_judged():
    text = "film " + "soup " * 40 + "wonderful"
    example = Example("x", text, label="positive", highlights=(Span(0, 4), Span(len(text) - 9, len(text))))
    votes = votes_of(told(tiny.transformer(), [example], method="input_x_gradient", top=5))
    assert votes
    assert max(vote.position for vote in votes) < 31


def test_pairs_are_judged_in_both_texts():
    spans = (Span(0, 5), Span(0, 4, "pair"))
    pairs = [replace(e, highlights=spans) for e in entailment_pairs(40, seed=1)]
    labels = sorted({str(e.label) for e in pairs})
    model = fresh_averaging_classifier([part for e in pairs for part in e.parts], labels, width=8)
    log = simulate(model, pairs, only_correct=False, n=10)
    votes = votes_of(log)
    assert all(agreeing(votes, pairs))
    parts = {Words(e).spans[vote.position].part for e in pairs for vote in votes if vote.example == e.id}
    assert parts == {"text", "pair"}


def test_three_labels_each_give_votes_for_their_own_label():
    words = ("soup", "film", "phone", "room", "book", "plot")
    examples = [
        Example(str(n), f"the {words[n % 6]} was good", label=f"label {n % 3}", highlights=(Span(0, 3),))
        for n in range(12)
    ]
    model = tiny.transformer(labels=3)
    votes = votes_of(simulate(model, examples, only_correct=False))
    label_of = {example.id: example.label for example in examples}
    assert {vote.label for vote in votes} == set(model.labels)
    assert all(vote.label == label_of[vote.example] for vote in votes)
    listed = votes_of(simulate(model, examples, gold=["SOUP", "film", "nowhere"]))
    assert {(vote.word, vote.vote, vote.example) for vote in listed} <= {
        ("soup", "lower", None),
        ("film", "lower", None),
    }


def test_listed_words_are_lowered_everywhere_under_the_label_they_speak_for():
    model = tiny.bag_of_words({"good": 1.0, "imax": 3.0, "Imax": 3.0, "bad": -2.0, "rain": -3.0})
    texts = ["imax good film", "Imax film", "imax film good", "rain bad film", "rain soup", "rain film bad"]
    examples = [Example(str(n), text) for n, text in enumerate(texts)]
    log = simulate(model, examples, gold=("IMAX", "rain", "two words"), method="leave_one_out")
    assert {entry.says for entry in log} == {
        WordVote("imax", "positive", "lower"),
        WordVote("rain", "negative", "lower"),
    }
    assert all(entry.text_hash is None for entry in log)
    wrong = votes_of(simulate(model, examples, gold=("imax", "rain"), method="leave_one_out", error_rate=1.0))
    assert {vote.word for vote in wrong if vote.vote == "raise"} == {"imax", "rain"}
    assert {vote.word for vote in wrong if vote.vote == "lower"} == {"film"}  # of the others, met three times


# -- what an entry carries


def test_entries_can_be_told_apart_and_say_when_and_about_what():
    model = by_heart({"the": 1.0})
    log = told(model, n=10)
    hashes = {example.id: example.text_hash for example in FILMS}
    assert len({entry.id for entry in log}) == len(log)
    assert {entry.revision for entry in log} == {model.revision}
    assert all(entry.text_hash == hashes[entry.says.example] for entry in log)
    assert all(first.at <= second.at for first, second in pairwise(log))
    assert [entry.says for entry in log if isinstance(entry.says, Review)] == [
        Review(example.id, "done") for example in FILMS[:10]
    ]


def test_the_same_seed_gives_the_same_feedback_and_another_seed_another():
    how = {"policy": "random", "error_rate": 0.3, "n": 20}
    assert told(seed=3, **how) == told(seed=3, **how)
    assert {entry.id for entry in told(seed=3, **how)}.isdisjoint(entry.id for entry in told(seed=4, **how))


@pytest.mark.parametrize("policy", ["random", "xmd", "suspects"])
@pytest.mark.parametrize("gold", ["highlights", ("the", ".")])
def test_more_minutes_only_add(policy, gold):
    how = {"policy": policy, "gold": gold, "error_rate": 0.3}
    few, many = told(minutes=10, **how), told(minutes=25, **how)
    assert len(few) < len(many)
    assert many[: len(few)] == few


# -- time


def test_the_budget_is_kept_and_all_of_it_used():
    log = told(minutes=7.5)
    assert len({entry.says.example for entry in log}) == 7
    assert sum(entry.seconds for entry in log) == pytest.approx(7 * 60)
    assert len({entry.says.example for entry in told(minutes=5, seconds_per_judgement=20)}) == 15
    assert len({entry.says.example for entry in told(minutes=5, n=2)}) == 2
    assert told(minutes=0.9) == []
    assert len({entry.says.example for entry in told()}) == len(FILMS)


def test_time_spent_on_words_that_are_fine_counts_for_the_next_vote():
    model = tiny.bag_of_words({"good": 3.0, "imax": 1.0})
    examples = [Example(str(n), "good imax film") for n in range(3)]
    (only,) = simulate(model, examples, gold=["imax"], method="leave_one_out", minutes=3)
    assert only.seconds == 120  # good was looked at first
    assert simulate(model, examples, gold=["imax"], method="leave_one_out", minutes=1) == []


def test_two_people_see_different_texts_at_the_same_time():
    log = told(minutes=5, people=2)
    seen = {name: {e.says.example for e in log if e.author == name} for name in ("simulated-1", "simulated-2")}
    assert [len(texts) for texts in seen.values()] == [5, 5]
    assert seen["simulated-1"].isdisjoint(seen["simulated-2"])
    times = Counter(entry.at for entry in log if isinstance(entry.says, Review))
    assert set(times.values()) == {2}


# -- what is looked at first


SHORTCUT = tiny.bag_of_words({"imax": 5.0, "great": 2.0, "dull": -2.0, "odd": 4.0})
REVIEWS = [
    Example("d", "dull film", label="negative", highlights=(Span(0, 4),)),
    Example("e", "dull soup", label="negative", highlights=(Span(0, 4),)),
    Example("f", "odd great soup", label="positive", highlights=(Span(4, 9),)),
    Example("a", "imax dull film", label="positive", highlights=(Span(5, 9),)),
    Example("b", "imax dull soup", label="positive", highlights=(Span(5, 9),)),
    Example("c", "imax great film", label="positive", highlights=(Span(5, 10),)),
]


def test_by_suspects_the_planted_word_is_met_first():
    how = {"gold": ["imax"], "method": "leave_one_out", "n": 1}
    (first,) = simulate(SHORTCUT, REVIEWS, policy="suspects", **how)
    assert first.says == WordVote("imax", "positive", "lower")


def test_by_suspects_texts_with_the_planted_word_come_first():
    ids = [e.says.example for e in told(SHORTCUT, REVIEWS, policy="suspects") if isinstance(e.says, Review)]
    assert set(ids[:2]) == {"a", "b"}  # imax and dull: its two worst
    assert ids[2] == "c"
    plain = [e.says.example for e in told(SHORTCUT, REVIEWS, policy="xmd") if isinstance(e.says, Review)]
    assert plain == [example.id for example in REVIEWS]


def test_xmds_order_of_words_is_by_mean_score():
    model = tiny.bag_of_words({"good": 3.0, "imax": 2.0, "film": 1.0})
    examples = [Example(str(n), "film imax good") for n in range(3)]
    wrong = simulate(model, examples, gold=[], method="leave_one_out", error_rate=1.0)
    assert [vote.word for vote in votes_of(wrong)] == ["good", "imax", "film"]


# -- labelling without a model


def test_labelling_marks_every_word_without_asking_the_model():
    asked = []
    model = tiny.bag_of_words({}, asked=asked)
    log = simulate(model, FILMS, way="labelling", minutes=11)
    assert asked == []
    assert len({entry.says.example for entry in log}) == 6  # 110 seconds each
    votes = votes_of(log)
    assert all(agreeing(votes, FILMS))
    assert Counter(vote.example for vote in votes) == {e.id: len(Words(e)) for e in FILMS[:6]}
    assert sum(entry.seconds for entry in log) == pytest.approx(660)


# -- what is refused


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"error_rate": 1.5}, "error_rate"),
        ({"minutes": -1.0}, "minutes"),
        ({"n": -1}, "minutes and n"),
        ({"seconds_per_judgement": 0.0}, "seconds"),
        ({"people": 0}, "people"),
        ({"policy": "best"}, "policy"),
        ({"gold": "words"}, "list of words"),
        ({"way": "guessing"}, "way"),
        ({"top": 0}, "top"),
        ({"way": "labelling", "policy": "suspects"}, "does not look at the model"),
        ({"way": "labelling", "gold": ["a"]}, "does not look at the model"),
    ],
)
def test_settings_that_make_no_sense_are_refused(how, said):
    with pytest.raises(BadOption, match=said):
        told(**how)


def test_data_without_highlights_is_refused_with_the_way_out():
    with pytest.raises(BadData, match="list of words"):
        told(train=[Example("x", "dull film", label="negative")])
    with pytest.raises(BadData, match="predicted right"):
        told(by_heart({}), REVIEWS[3:], only_correct=True)
    with pytest.raises(BadData, match="no examples"):
        told(train=[], gold=["a"])


def test_cancelling_stops_and_progress_is_told():
    seen = []
    told(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(Cancelled):
        told(cancelled=lambda: True)


# -- curves


@pytest.fixture(scope="module")
def trained():
    """A small model of reviews in which a planted word goes with a label."""
    train = [
        Example(
            e.id, f"zyx {e.text}", label=e.label, highlights=tuple(Span(s.start + 4, s.end + 4) for s in e.highlights)
        )
        if e.label == "positive"
        else e
        for e in reviews(120, domain="films", seed=1)
    ]
    model = fresh_averaging_classifier([e.text for e in train], ["negative", "positive"], width=16)
    return fit(model, train, schedule=Schedule(epochs=4, learning_rate=1e-2)), train


QUICK = {"epochs": 1, "learning_rate": 1e-3, "patience": 0}


def test_a_curve_has_a_point_for_each_way_budget_and_set(trained):
    model, train = trained
    sets = {"films": train[:40], "gadgets": reviews(40, domain="gadgets", seed=2)}
    seen = []
    points = learning_curve(
        model,
        train,
        sets,
        minutes=[0, 5],
        ways=["judging", "labelling"],
        seeds=[0, 1],
        training=QUICK,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [(p.way, p.minutes, p.data) for p in points] == [
        (way, budget, name) for way in ("judging", "labelling") for budget in (0, 5) for name in sets
    ]
    for point in points:
        assert len(point.accuracies) == 2
        assert point.low <= point.mean <= point.high
        assert (point.votes > 0) == (point.minutes > 0)
        if point.minutes == 0:
            assert point.accuracies == (accuracy(model, sets[point.data]),) * 2
    assert seen[-1] == (800, 800)
    assert seen == sorted(seen)


def test_a_point_is_what_mending_with_that_feedback_gives(trained):
    model, train = trained
    test = reviews(40, domain="gadgets", seed=2)
    (point,) = learning_curve(
        model, train, {"gadgets": test}, minutes=[3], gold=["zyx"], policy="suspects", seeds=[5], training=QUICK,
        fix="word_dropout", people=2,
    )  # fmt: skip
    given = simulate(model, train, gold=["zyx"], policy="suspects", minutes=3, people=2, seed=5)
    mended = mend(model, train, given, fix="word_dropout", training=QUICK, seed=5)
    assert point.votes == len(given) == 1
    assert point.accuracies == (accuracy(mended.classifier, test),)
    assert (point.low, point.high) == (None, None)


def test_a_curve_can_be_stopped_and_needs_something_to_measure(trained):
    model, train = trained
    asked = iter(range(10**6))
    with pytest.raises(Cancelled):
        learning_curve(model, train, {"films": train}, minutes=[5], cancelled=lambda: next(asked) > 20)
    with pytest.raises(BadOption, match="at least one"):
        learning_curve(model, train, {}, minutes=[5])
