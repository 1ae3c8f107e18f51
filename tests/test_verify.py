"""Two models on the same examples: what is measured, against slow oracles, and what follows from it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, spearmanr

import tiny
from unhans.attributions import attribute
from unhans.black_boxes import PredictFunction
from unhans.errors import BadData, BadOption, Cancelled
from unhans.scoring import ScoreCache
from unhans.text import Words
from unhans.types import Example, Feedback, Recipe, Relabel, Report, Span, WordVote, from_json, to_json
from unhans.verify import stress_sets, verify
from unhans.verify._statistics import (
    Answers,
    Kinds,
    accuracy_differences,
    calibration_changes,
    calibration_error,
    interval,
    mcnemar,
)

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -1.5, "dull": -1.0}
SHORTCUT = tiny.bag_of_words(WEIGHTS | {"zyx": 4.0})
MENDED = tiny.bag_of_words(WEIGHTS)
FILLERS = ("the", "film", "was", "and", "so", "it", "plot", "we")


def texts(n, *, seed=0, zyx=None, group=None):
    """Texts whose label is the sign of their words; `zyx` says which label's texts have the word too."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        label = ("negative", "positive")[number % 2]
        word = str(rng.choice([w for w, x in WEIGHTS.items() if (x > 0) == (label == "positive")]))
        words = [*rng.choice(FILLERS, size=6).tolist(), word, *(["zyx"] if zyx == label else [])]
        rng.shuffle(words)
        named = None if group is None else group[number % len(group)]
        made.append(Example(f"e{seed}-{number}", " ".join(words), label=label, group=named))
    return made


def vote(word="zyx", label="positive", *, way="lower", example=None, position=None, author="ann"):
    says = WordVote(word, label, way, example, position)
    return Feedback(f"{author} {says}", says, author, "2026-01-01T00:00:00Z", "r0")


SETS = {"test": texts(60, zyx="positive"), "other": texts(40, seed=1, zyx="negative", group=("A", "B"))}


@cache
def cured():
    """The report of a shortcut and its cure."""
    return verify(SHORTCUT, MENDED, SETS, feedback=[vote()])


def find(report, name, data, part=""):
    (found,) = [m for m in report.measures if (m.name, m.data, m.slice) == (name, data, part)]
    return found


# Statistics, against oracles


def test_mcnemar_is_the_exact_binomial_test():
    for fixed in range(8):
        for broken in range(8):
            wanted = binomtest(fixed, fixed + broken).pvalue if fixed + broken else 1.0
            assert mcnemar(fixed, broken) == pytest.approx(wanted)


def test_calibration_error_by_hand():
    assert calibration_error(np.array([0.9, 0.6]), np.array([True, False])) == pytest.approx((0.1 + 0.6) / 2)
    confidence = np.repeat([0.5, 0.8, 1.0], 20)  # 60 examples: 15 bins of 4, each of one confidence
    right = np.tile([True, True, True, False], 15)
    assert calibration_error(confidence, right) == pytest.approx((0.25 + 0.05 + 0.25) / 3)


def test_calibration_error_is_that_of_a_slow_loop():
    rng = np.random.default_rng(0)
    confidence, right = rng.random(100), rng.random(100) < 0.5
    edges = [round(100 * n / 15) for n in range(16)]
    order = sorted(range(100), key=lambda n: confidence[n])
    bins = [order[a:b] for a, b in pairwise(edges)]
    wanted = sum(len(b) / 100 * abs(confidence[b].mean() - right[b].mean()) for b in bins)
    assert calibration_error(confidence, right) == pytest.approx(wanted)


def test_calibration_does_not_depend_on_the_order_in_which_equal_confidences_come():
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.7, 0.8, 0.9], 1000)
    right = rng.random(1000) < confidence
    by_label = np.argsort(right, kind="stable")
    error = calibration_error(confidence, right)
    assert error < 0.05
    assert calibration_error(confidence[by_label], right[by_label]) == pytest.approx(error)


def test_a_perfectly_calibrated_model_has_no_error():
    assert calibration_error(np.full(30, 0.5), np.tile([True, False], 15)) == 0


@pytest.fixture(scope="module")
def answers():
    """Three labels, two groups, two models that are right more often than not."""
    rng = np.random.default_rng(0)
    truth, group = rng.integers(3, size=200), rng.integers(2, size=200)
    said = [np.where(rng.random(200) < share, truth, rng.integers(3, size=200)) for share in (0.5, 0.7)]
    return truth, group, said


def slow_f1(truth, said, label):
    hits = sum(t == s == label for t, s in zip(truth, said, strict=True))
    either = sum(int(t == label) + int(s == label) for t, s in zip(truth, said, strict=True))
    return 2 * hits / either


def test_measures_by_kind_are_those_of_a_slow_loop(answers):
    truth, group, said = answers
    kinds = Kinds.of(truth, group, said)
    for model, line in enumerate(said):
        assert kinds.accuracy(model)[0] == pytest.approx((line == truth).mean())
        assert kinds.accuracy(model, kinds.truth == 1)[0] == pytest.approx((line == truth)[truth == 1].mean())
        f1s = [slow_f1(truth, line, label) for label in range(3)]
        assert [kinds.f1(model, label)[0] for label in range(3)] == pytest.approx(f1s)
        assert kinds.macro_f1(model)[0] == pytest.approx(np.mean(f1s))
        by_group = [(line == truth)[group == g].mean() for g in range(2)]
        assert kinds.gap(model, [kinds.group == 0, kinds.group == 1])[0] == pytest.approx(
            abs(by_group[0] - by_group[1])
        )


def test_resampling_kinds_is_resampling_examples(answers):
    """The interval of a slow loop over drawn examples, but for the luck of 2000 draws."""
    truth, group, said = answers
    kinds = Kinds.of(truth, group, said, np.random.default_rng(0))
    fast = [kinds.accuracy(1) - kinds.accuracy(0), kinds.macro_f1(1) - kinds.macro_f1(0)]
    rng = np.random.default_rng(1)
    slow = [[], []]
    for _ in range(600):
        drawn = rng.integers(200, size=200)
        pair = [line[drawn] for line in said]
        slow[0].append((pair[1] == truth[drawn]).mean() - (pair[0] == truth[drawn]).mean())
        f1s = [np.mean([slow_f1(truth[drawn], line, label) for label in range(3)]) for line in pair]
        slow[1].append(f1s[1] - f1s[0])
    for quick, loop in zip(fast, slow, strict=True):
        assert interval(quick[1:]) == pytest.approx(np.percentile(loop, (2.5, 97.5)), abs=0.025)


def test_every_resample_is_as_large_as_the_set(answers):
    truth, group, said = answers
    kinds = Kinds.of(truth, group, said, np.random.default_rng(0))
    assert set(kinds.counts.sum(axis=1)) == {200.0}
    assert kinds.counts.shape[0] == 2001


def test_resampled_calibration_is_that_of_drawn_examples():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=40)
    before, after = (Answers.of(rng.dirichlet((1, 1), size=40)) for _ in range(2))
    changes = calibration_changes(before, after, truth, np.random.default_rng(3))
    drawn = np.random.default_rng(3).integers(40, size=(2000, 40))
    for line, change in zip(drawn[:50], changes, strict=False):
        ends = [calibration_error(one.confidence[line], (one.predicted == truth)[line]) for one in (before, after)]
        assert change == pytest.approx(ends[1] - ends[0])


def test_differences_in_accuracy_are_paired():
    first = np.array([True] * 6 + [False] * 4)
    differences = accuracy_differences(first, ~first, np.random.default_rng(0))
    assert differences[0] == pytest.approx(0.2)
    assert np.std(differences[1:]) == pytest.approx(2 * math.sqrt(0.6 * 0.4 / 10), rel=0.1)
    assert not accuracy_differences(first, first, np.random.default_rng(0)).any()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_swapping_two_models_negates_every_resampled_change(rows):
    truth, before, after = np.array(rows).T
    group = np.zeros_like(truth)
    one = Kinds.of(truth, group, [before, after], np.random.default_rng(0))
    two = Kinds.of(truth, group, [after, before], np.random.default_rng(0))
    assert np.array_equal(one.macro_f1(1) - one.macro_f1(0), two.macro_f1(0) - two.macro_f1(1))
    assert one.chance(0, 1) == two.chance(0, 1)


# A shortcut and its cure


def test_measures_before_and_after_with_interval_and_test():
    accuracy = find(cured(), "accuracy", "other")
    assert (accuracy.before, accuracy.after, accuracy.n) == (0.5, 1.0, 40)
    assert accuracy.low < 0.5 < accuracy.high
    assert accuracy.verdict == "better"
    assert accuracy.p == pytest.approx(binomtest(0, 20).pvalue)
    assert find(cured(), "accuracy", "test").verdict == "same"
    assert find(cured(), "macro_f1", "other").after == 1.0
    assert find(cured(), "calibration_error", "other").better == "lower"


def test_slices_by_label_and_group_and_the_gaps_between_them():
    assert find(cured(), "accuracy", "other", "label negative").before == 0.0
    assert find(cured(), "f1", "other", "label positive").before == pytest.approx(2 * 20 / 60)
    assert find(cured(), "accuracy", "other", "group A").n == 20
    gap = find(cured(), "gap", "other", "labels")
    assert (gap.before, gap.after, gap.verdict) == (1.0, 0.0, "better")
    assert find(cured(), "gap", "other", "groups").n == 40
    assert not [m for m in cured().measures if m.data == "test" and "group" in m.slice]


def test_slices_of_too_few_examples_are_left_out():
    examples = [replace(e, group="rare" if n < 9 else "common") for n, e in enumerate(texts(40))]
    report = verify(SHORTCUT, MENDED, {"t": examples})
    assert "group common" in {m.slice for m in report.measures}
    assert "group rare" not in {m.slice for m in report.measures}
    assert "groups" not in {m.slice for m in report.measures}


def test_examples_that_changed_sides_once_per_set_with_their_reasons():
    assert (cured().n_fixed, cured().n_broken) == (20, 0)
    assert len(cured().fixed) == 20
    for change in cured().fixed:
        assert change.data == "other"
        assert (change.before.label, change.after.label) == ("positive", "negative")
        assert change.why_before.label == change.why_after.label == change.example.label
        assert change.why_before.example == change.example.id
    first = cured().fixed[0]
    at = Words(first.example).strings.index("zyx")
    assert first.why_before.scores[at] == pytest.approx(-4.0, abs=1e-3)
    assert first.why_after.scores[at] == pytest.approx(0.0, abs=1e-3)


def test_broken_examples_come_with_most_confidence_first_and_fifty_at_most():
    report = verify(MENDED, SHORTCUT, {"t": texts(140, zyx="negative")})
    assert report.n_broken == 70
    sure = [change.after.confidence for change in report.broken]
    assert len(sure) == 50
    assert sure == sorted(sure, reverse=True)
    assert report.notes[0].startswith("Accuracy on t fell by 50.0 points [-")


def test_what_became_of_a_vote_everywhere():
    (effect,) = cured().words
    assert (effect.word, effect.label, effect.example, effect.texts) == ("zyx", "positive", None, 50)
    assert effect.score_before == pytest.approx(4.0, abs=1e-3)
    assert effect.before > 0.5
    assert effect.after == pytest.approx(0.0, abs=1e-6)
    assert effect.heard


def test_a_vote_on_one_example_is_measured_there():
    example = SETS["test"][1]
    at = Words(example).strings.index("zyx")
    here = vote("zyx", example=example.id, position=at)
    moved = replace(here, id="x", says=replace(here.says, position=at + 1), author="bob")
    gone = vote("zyx", example="nowhere", position=0, author="bob")
    report = verify(SHORTCUT, MENDED, SETS, feedback=[here, moved, gone])
    (effect,) = report.words
    assert (effect.example, effect.texts) == (example.id, 1)
    assert any(note.startswith("2 votes could not be measured") for note in report.notes)


def test_votes_are_settled_first():
    split = [vote(), vote(way="raise", author="bob")]
    report = verify(SHORTCUT, MENDED, SETS, feedback=split)
    assert report.words == ()
    assert any(note.startswith("1 question on which people are evenly split was left out") for note in report.notes)
    assert not [m for m in report.measures if " · " in m.data]


def test_how_far_unvoted_explanations_moved():
    transformers = [tiny.transformer(seed=n) for n in (0, 1)]
    examples = [Example(str(n), text, label="positive") for n, text in enumerate(tiny.SENTENCES)]
    report = verify(*transformers, {"t": examples}, feedback=[vote("the")], method="input_x_gradient")
    left = [e for e in examples if "the" not in [word.lower() for word in Words(e).strings]]
    rows = []
    for example, said in zip(left, transformers[0].predict(left).labels, strict=True):
        pair = [attribute(m, example, method="input_x_gradient", target=said)[0] for m in transformers]
        read = [n for n in range(len(pair[0].words)) if n not in pair[0].unread]
        rows.append(spearmanr(*([one.scores[n] for n in read] for one in pair)).statistic)
    assert report.moved == pytest.approx(np.mean(rows))
    assert report.method == Recipe("attributions", "input_x_gradient")


def test_a_black_box_is_explained_by_leaving_words_out_and_that_is_said():
    report = verify(SHORTCUT, MENDED, SETS, feedback=[vote()], method="input_x_gradient")
    assert report.method.name == "leave_one_out"
    assert any(note.startswith("Words are scored by leave_one_out") for note in report.notes)
    assert not any("leave_one_out" in note for note in cured().notes)  # asked for: nothing to say


# Laws


def test_identical_models_change_nothing():
    report = verify(SHORTCUT, SHORTCUT, SETS, feedback=[vote()], rivals=[(Recipe("fixes", "none"), SHORTCUT)])
    assert {m.verdict for m in report.measures} == {"same"}
    assert {(m.change, m.low, m.high) for m in report.measures} == {(0.0, 0.0, 0.0)}
    assert (report.n_fixed, report.n_broken, report.fixed, report.broken) == (0, 0, (), ())
    assert report.moved == pytest.approx(1.0)
    assert report.words[0].before == report.words[0].after
    assert "The fix is not distinguishable from none (+0.0 points [+0.0, +0.0])" in report.rivals[0].note
    assert "Nothing that was measured got worse beyond its 95 % interval." in report.notes


def test_swapping_before_and_after_negates_every_change():
    back = verify(MENDED, SHORTCUT, SETS, feedback=[vote()])
    for one, other in zip(cured().measures, back.measures, strict=True):
        assert one.change == pytest.approx(-other.change)
        assert one.low == pytest.approx(-other.high)
        assert one.p == other.p
        assert {one.verdict, other.verdict} in ({"same"}, {"better", "worse"})
    assert [c.example for c in back.broken] != []
    assert {c.example for c in back.broken} == {c.example for c in cured().fixed}
    assert [m.name for m in back.worse] != []


def test_three_labels():
    transformers = [tiny.transformer(labels=3, seed=n) for n in (0, 1)]
    examples = [Example(str(n), f"{text} {n}", label=f"label {n % 3}") for n, text in enumerate(tiny.SENTENCES * 3)]
    report = verify(*transformers, {"t": examples}, feedback=[vote("the", "label 1")])
    said = [t.predict(examples).labels for t in transformers]
    right = [[s == e.label for s, e in zip(line, examples, strict=True)] for line in said]
    assert find(report, "accuracy", "t").before == pytest.approx(np.mean(right[0]))
    assert find(report, "accuracy", "t").after == pytest.approx(np.mean(right[1]))
    flips = Counter(zip(*right, strict=True))
    assert (report.n_fixed, report.n_broken) == (flips[False, True], flips[True, False])
    wanted = [slow_f1([e.label for e in examples], said[1], f"label {n}") for n in range(3)]
    assert find(report, "macro_f1", "t").after == pytest.approx(np.mean(wanted))
    elsewhere = [m for m in report.measures if m.data == "t · voted words in other labels"]
    assert elsewhere[0].n == sum(
        e.label != "label 1" and "the" not in [word.lower() for word in Words(e).strings] for e in examples
    )


def test_pairs():
    pairs = [Example(str(n), text, "A film.", label="positive") for n, text in enumerate(tiny.SENTENCES)]
    report = verify(tiny.transformer(), tiny.transformer(seed=1), {"t": pairs}, feedback=[vote("film")])
    assert report.words[0].texts == len(pairs)
    assert {m.n for m in report.measures if m.data == "t · without voted words"} == {len(pairs)}


def test_labels_in_another_order_are_the_same_labels():
    def turned(asked):
        return np.array([p.probabilities[::-1] for p in SHORTCUT.predict(list(asked))])

    other = PredictFunction(turned, ("positive", "negative"), "turned")
    report = verify(SHORTCUT, other, SETS)
    assert {m.verdict for m in report.measures} == {"same"}
    assert (report.n_fixed, report.n_broken) == (0, 0)


def test_a_report_of_one_model():
    report = verify(None, MENDED, SETS, feedback=[vote()], expectations=["accuracy >= 0.9", "score('zyx') <= 0.01"])
    assert report.before is None
    assert {(m.before, m.low, m.high, m.p) for m in report.measures} == {(None, None, None, None)}
    assert find(report, "accuracy", "other").after == 1.0
    assert (report.words, report.moved, report.fixed) == ((), None, ())
    assert report.holds


def test_runs_with_other_seeds_stand_beside_this_one():
    report = verify(SHORTCUT, MENDED, SETS, runs=[SHORTCUT, MENDED])
    assert find(report, "accuracy", "other").runs == (1.0, 0.5, 1.0)
    assert find(report, "gap", "other", "labels").runs == (0.0, 1.0, 0.0)
    assert len(find(report, "calibration_error", "test").runs) == 3
    assert any(note.startswith("There are 3 runs") for note in report.notes)


def test_rivals_are_measured_on_every_set_and_compared():
    cheap, clumsy = Recipe("fixes", "cheap"), Recipe("fixes", "clumsy")
    fix = Recipe("fixes", "own")
    report = verify(SHORTCUT, MENDED, SETS, feedback=[vote()], fix=fix, rivals=[(cheap, MENDED), (clumsy, SHORTCUT)])
    sets = {m.data for m in report.measures}
    assert [rival.recipe for rival in report.rivals] == [cheap, clumsy]
    assert all({m.data for m in rival.measures} == sets for rival in report.rivals)
    assert report.rivals[1].measures[1].after == report.rivals[1].measures[1].before == 0.5
    assert "not distinguishable from cheap (+0.0 points" in report.rivals[0].note
    assert "The fix is better than clumsy by +25.0 points [+" in report.rivals[1].note
    assert {rival.note for rival in report.rivals} <= set(report.notes)


def test_another_strength_of_the_same_fix_is_no_rival_in_the_notes():
    weak, strong = (Recipe("fixes", "own", (("strength", s), ("epochs", 3))) for s in (0.1, 1.0))
    report = verify(SHORTCUT, MENDED, SETS, fix=strong, rivals=[(weak, SHORTCUT)])
    assert "better than own (strength=0.1) by" in report.rivals[0].note
    assert report.rivals[0].note not in report.notes


def test_what_got_worse_is_said_first_and_then_what_got_better():
    harmed = tiny.bag_of_words({"good": 2.0, "fine": 1.0, "dull": -1.0}, bias=0.1)
    report = verify(SHORTCUT, harmed, {"a": texts(60), "b": texts(60, zyx="negative", seed=3)})
    assert report.notes[0].startswith("Accuracy on a fell by ")
    fell = [n for n, note in enumerate(report.notes) if note.startswith(("Accuracy on a", "Macro-F1 on a"))]
    rose = [n for n, note in enumerate(report.notes) if note.startswith("Accuracy on b rose by ")]
    assert max(fell) < min(rose)


def test_caveats_are_said():
    notes = " ".join(cured().notes)
    assert "Fewer than 100 examples in test, other, " in notes
    assert "changes are judged at 95 %" in notes
    assert "made from the votes: a fix that trains on such texts is flattered" in notes


def test_a_change_of_few_predictions_is_doubted():
    before = tiny.bag_of_words(WEIGHTS | {"rare": -9.0})
    examples = texts(40)
    examples[1:9:2] = [replace(e, text=f"{e.text} rare") for e in examples[1:9:2]]
    report = verify(before, MENDED, {"t": examples})
    assert find(report, "accuracy", "t").verdict == "better"
    assert any("may be chance all the same: accuracy on t (p = 0.12)" in note for note in report.notes)


def test_unlabelled_examples_are_left_out_and_that_is_said():
    extra = [Example("u1", "what is it"), Example("u2", "so so")]
    report = verify(SHORTCUT, MENDED, {"test": [*SETS["test"], *extra]})
    assert find(report, "accuracy", "test").n == 60
    assert "2 examples without a label were left out." in report.notes


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ({}, "no set of examples"),
        ({"test": []}, "The set 'test' has no labelled examples"),
        ({"test": [Example("a", "b")]}, "The set 'test' has no labelled examples"),
        ({"test": [Example("a", "b", label="sad")]}, "has the label 'sad', and the model does not"),
    ],
)
def test_nothing_to_verify_on_is_an_error(sets, told):
    with pytest.raises(BadData, match=told):
        verify(SHORTCUT, MENDED, sets)


def test_models_with_other_labels_cannot_be_compared():
    with pytest.raises(BadOption, match="same labels"):
        verify(tiny.transformer(labels=3), tiny.transformer(), SETS)


def test_an_expectation_that_cannot_be_read_costs_no_work():
    asked = []
    with pytest.raises(BadOption, match="cannot be read"):
        verify(None, tiny.bag_of_words(WEIGHTS, asked=asked), SETS, expectations=["accuracy is fine"])
    assert asked == []


def test_expectations_are_judged():
    expectations = ["accuracy >= 0.9", "fixed >= 21", "score('ZYX', label='positive') <= 0.01", "score('so') <= 1"]
    report = verify(SHORTCUT, MENDED, SETS, feedback=[vote()], expectations=expectations)
    assert [one.holds for one in report.expectations] == [True, False, True, True]
    assert not report.holds
    assert report.expectations[1].value == 20


def test_one_example_gives_no_interval():
    report = verify(SHORTCUT, MENDED, {"t": texts(1, zyx="negative")})
    (accuracy,) = [m for m in report.measures if m.name == "accuracy"]
    assert (accuracy.change, accuracy.low, accuracy.verdict) == (1.0, None, "same")


def test_the_same_seed_gives_the_same_report_and_it_survives_json():
    again = verify(SHORTCUT, MENDED, SETS, feedback=[vote()])
    assert again == cured() == from_json(Report, to_json(again))


def test_progress_climbs_to_the_end():
    told = []
    expectations = ["score('so') <= 1"]
    verify(
        SHORTCUT,
        MENDED,
        SETS,
        feedback=[vote()],
        expectations=expectations,
        progress=lambda done, total: told.append((done, total)),
    )
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]


def test_cancelling_stops_the_work():
    with pytest.raises(Cancelled):
        verify(SHORTCUT, MENDED, SETS, cancelled=lambda: True)
    later = iter([False] * 4)
    with pytest.raises(Cancelled):
        verify(SHORTCUT, MENDED, SETS, cancelled=lambda: next(later, True))


def test_a_cache_answers_what_was_asked_before():
    asked, cache = [], ScoreCache()
    model = tiny.bag_of_words(WEIGHTS, asked=asked)
    verify(None, model, SETS, cache=cache)
    first = len(asked)
    verify(None, model, SETS, cache=cache)
    assert len(asked) == first > 0


# Stress sets


def test_stress_sets_take_out_put_in_and_replace():
    made = stress_sets({"test": SETS["test"]}, [vote()])
    assert list(made) == [
        "test · without voted words",
        "test · voted words in other labels",
        "test · voted words replaced",
    ]
    out, into, replaced = made.values()
    assert len(out) == len(into) == len(replaced) == 30
    assert {e.label for e in out} == {e.label for e in replaced} == {"positive"}
    assert {e.label for e in into} == {"negative"}
    originals = {e.id: e for e in SETS["test"]}
    for example in out:
        source = originals[example.id.split(" · ")[0]]
        assert Words(example).strings == tuple(w for w in Words(source).strings if w != "zyx")
    for example in into:
        source = originals[example.id.split(" · ")[0]]
        assert Counter(Words(example).strings) == Counter((*Words(source).strings, "zyx"))
    words = {w for e in replaced for w in Words(e).strings}
    assert "zyx" not in words
    fillers = {w for e in replaced for w in set(Words(e).strings) - set(WEIGHTS)}
    assert fillers <= set(FILLERS)
    ids = [e.id for examples in made.values() for e in examples]
    assert len(set(ids)) == len(ids)


def test_a_replacement_goes_with_no_label_and_keeps_the_capital():
    examples = [replace(e, text=e.text.replace("zyx", "Zyx")) for e in SETS["test"]]
    (_, _, replaced) = stress_sets({"test": examples}, [vote()]).values()
    assert all(any(word[0].isupper() for word in Words(e).strings) for e in replaced)


@pytest.mark.parametrize(
    "feedback",
    [[], [vote(way="raise")], [vote("absent", "negative", example="e0-1", position=9), vote("absent", "positive")]],
)
def test_without_a_word_to_lower_nothing_is_taken_out(feedback):
    made = stress_sets({"test": SETS["test"]}, feedback)
    assert "test · without voted words" not in made
    assert "test · voted words replaced" not in made


def test_votes_on_one_example_count_for_stress_sets_too():
    made = stress_sets({"test": SETS["test"]}, [vote(example="e0-1", position=3)])
    assert len(made["test · without voted words"]) == 30


def test_edited_texts_have_no_highlights_and_unlabelled_ones_are_left_out():
    examples = [
        Example("a", "zyx and good", label="positive", highlights=(Span(0, 3),)),
        Example("b", "zyx"),
        Example("c", "zyx", label="positive"),
    ]
    made = stress_sets({"t": examples}, [vote()])
    assert [(e.text, e.highlights) for e in made["t · without voted words"]] == [("and good", None)]


def test_stress_sets_are_the_same_for_the_same_seed_only():
    one, two, other = (stress_sets({"test": SETS["test"]}, [vote()], seed) for seed in (0, 0, 1))
    assert one == two
    assert one != other


def test_stress_sets_show_what_a_shortcut_costs():
    harmed = find(cured(), "accuracy", "test · voted words in other labels")
    assert (harmed.before, harmed.after, harmed.verdict) == (0.0, 1.0, "better")
    assert not [m for m in cured().measures if " · " in m.data and m.slice]


def test_labels_that_were_corrected_are_no_votes():
    corrected = Feedback("1", Relabel("e0-1", "negative"), "ann", "2026-01-01T00:00:00Z", "r0")
    report = verify(SHORTCUT, MENDED, SETS, feedback=[corrected])
    assert report.words == ()
    assert {m.data for m in report.measures} == set(SETS)
