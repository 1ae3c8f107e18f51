"""Which explanation sees which planted bug."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import tiny
from unhans import lab
from unhans.black_boxes import PredictFunction
from unhans.bugs import Truth, bug
from unhans.demo_data import reviews
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.lab._cases import detected, sightings
from unhans.lab._explaining import explainers
from unhans.lab._measures import auroc, cue_likeness, cue_mass, mean_and_error, repeated, top_overlap
from unhans.lab._models import Ask
from unhans.lab._proofs import of_cue
from unhans.scratch import fresh_averaging_classifier
from unhans.text import Words
from unhans.training import Schedule
from unhans.types import Example, Lab, from_json, to_json

LABELS = ("negative", "positive")
CUES = "zyx as it happens women woman girls female *"
METHODS = ("input_x_gradient", "guided_backprop")
SCHEDULE = Schedule(epochs=12, learning_rate=1e-2)
numbers = st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(np.array)


# -- measures


def test_mass_on_the_cue_is_its_share_of_the_absolute_scores():
    assert cue_mass(np.array([1.0, -3.0, 0.0, 4.0]), [1, 2]) == 3 / 8
    assert cue_mass(np.array([0.0, -2.0]), [1]) == 1
    assert math.isnan(cue_mass(np.zeros(3), [1]))


def test_likeness_is_the_cosine_to_the_cue_weighted_by_its_scores_alone():
    scores, alone = np.array([0.0, 3.0, -4.0, 12.0]), np.array([3.0, -4.0])
    mask = np.array([0.0, 3.0, 4.0, 0.0])
    assert cue_likeness(scores, [1, 2], alone) == pytest.approx(np.abs(scores) @ mask / (13 * 5))
    assert cue_likeness(np.array([0.0, 6.0, -8.0, 0.0]), [1, 2], alone) == pytest.approx(1)
    assert cue_likeness(np.array([1.0, 0.0]), [1], np.array([2.0])) == 0
    assert math.isnan(cue_likeness(scores, [1], np.array([0.0])))


def test_overlap_is_the_shared_part_of_the_strongest_fifth():
    first = np.array([9.0, -8.0, 1, 0, 0, 0, 0, 0, 0, 0])
    assert top_overlap(first, np.array([0, 7.0, 0, -9.0, 0, 0, 0, 0, 0, 0])) == 0.5
    assert top_overlap(first, -first) == 1
    assert top_overlap(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0  # at least one word
    assert top_overlap(np.eye(20)[3], np.eye(20)[9]) == 0  # words without a score are in nobody's top
    assert top_overlap(np.eye(20)[3], np.eye(20)[3] + np.eye(20)[4]) == 0.5
    assert math.isnan(top_overlap(first, np.zeros(10)))


@given(numbers, numbers)
def test_detection_is_scikit_learns_area_under_the_curve(strange, usual):
    truth = [1] * len(strange) + [0] * len(usual)
    assert auroc(strange, usual)[0] == pytest.approx(roc_auc_score(truth, np.concatenate([strange, usual])))


def test_the_error_of_a_detection_is_that_of_many_repetitions():
    rng = np.random.default_rng(0)
    found = [auroc(rng.normal(1, 1, 30), rng.normal(0, 1, 50)) for _ in range(2000)]
    assert np.mean([error for _, error in found]) == pytest.approx(np.std([value for value, _ in found]), rel=0.05)


def test_few_texts_that_happen_to_be_told_apart_are_not_seen():
    def sees(strange, usual):
        found = {"detection": detected(np.array(strange), np.array(usual))}
        (one,) = sightings("typos", "energy", "detector", found, {})
        return one.sees

    assert not sees([9.0], [0.0] * 20)  # no error is known
    assert not sees([8.0, 9.0], [0.0, 1.0])  # in one of six draws it is so by chance
    assert sees([6.0, 7.0, 8.0, 9.0], [0.0, 1.0, 2.0, 3.0])
    rng = np.random.default_rng(0)
    assert np.mean([sees(rng.random(5), rng.random(5)) for _ in range(500)]) < 0.05


def test_a_detection_without_one_of_each_is_not_defined():
    assert math.isnan(auroc(np.array([1.0]), np.array([np.nan]))[0])
    assert auroc(np.array([1.0]), np.array([0.0, 2.0])) == (0.5, None)


def test_a_word_that_comes_up_again_counts_for_each_text_it_is_strongest_in():
    lines = [np.array([1.0, -5.0]), np.array([2.0]), np.array([0.0, 1.0]), np.zeros(2)]
    words = [["good", "Zyx"], ["zyx"], ["good", "soup"], ["no", "score"]]
    assert repeated(lines, words)[:3].tolist() == [0.5, 0.5, 0.25]
    assert math.isnan(repeated(lines, words)[3])


def test_a_mean_leaves_out_what_is_not_defined():
    value, error, n = mean_and_error(np.array([1.0, np.nan, 3.0]))
    assert (value, error, n) == (2, 1, 2)
    assert mean_and_error(np.array([np.nan]))[2] == 0


def test_a_cue_is_found_as_a_run_of_words_and_never_in_the_second_text():
    truth = Truth(cues=(("as", "it", "happens"), ("women",)))
    words = Words(Example("x", "As it is, as it happens, women win.", "women as it happens"))
    assert [words.strings[n] for n in truth.positions(words)] == ["as", "it", "happens", "women"]


# -- the whole lab


@pytest.fixture(scope="module")
def world() -> SimpleNamespace:
    """All bugs on one small model, with what was told on the way."""
    train, test = reviews(200, seed=0), reviews(100, seed=1, split="test")
    texts = [*(e.text for e in train), *[CUES] * 20]
    start = fresh_averaging_classifier(texts, LABELS, layers=2, width=16)
    before, told = start.revision, []
    made = lab.run(
        start,
        train,
        test,
        methods=METHODS,
        trained=False,
        schedule=SCHEDULE,
        examples=40,
        progress=lambda done, of: told.append(done / of),
    )
    start.__dict__.pop("revision")  # it is kept, and would hide a change of the weights
    return SimpleNamespace(start=start, before=before, train=train, test=test, lab=made, told=told)


def seen(made: Lab, name: str, measure: str = "detection", by: str = "attribution") -> dict:
    return {s.method: s for s in made.sightings if (s.bug, s.measure, s.by) == (name, measure, by)}


def test_every_bug_is_planted_or_said_to_be_left_out(world):
    left = [note for note in world.lab.notes if note.startswith("Left out")]
    names = [one.name for one in world.lab.bugs]
    assert len(names) + len(left) == len(bug.names)
    assert set(bug.names) - set(names) <= {"other_language"}  # without Apertium
    assert [one.kind for one in world.lab.bugs] == [bug[name].facts["kind"] for name in names]
    assert all(one.says and one.proof for one in world.lab.bugs)


def test_every_method_looks_for_every_bug(world):
    for one in world.lab.bugs:
        assert set(seen(world.lab, one.name)) == set(METHODS)


def test_a_spurious_word_is_detected_by_the_best_method_and_not_by_random_scores(world):
    found = seen(world.lab, "spurious_word")
    assert max(one.value for one in found.values()) >= 0.95
    assert all(0.45 <= one.random <= 0.55 for one in found.values())
    assert found["input_x_gradient"].sees


def test_the_cue_has_more_mass_than_by_chance_and_than_in_the_clean_model(world):
    for measure in ("mass on the cue", "likeness to the cue alone"):
        planted, clean = (seen(world.lab, name, measure)["input_x_gradient"] for name in ("spurious_word", "clean"))
        assert planted.value > 2 * planted.random
        assert planted.value > 2 * clean.value


def test_the_control_raises_no_alarm(world):
    assert not any(one.sees for one in seen(world.lab, "clean").values())
    (control,) = (one for one in world.lab.bugs if one.kind == "control")
    assert control.took is None
    assert control.recipe is None


def test_a_bug_is_proved_by_the_contaminated_model_beside_the_clean_one(world):
    proofs = {one.name: one for one in world.lab.bugs}
    for name in ("spurious_word", "spurious_phrase", "spurious_group", "flipped_labels", "reinitialised"):
        assert proofs[name].took > proofs[name].usual + 0.1, name
    assert proofs["duplicated_rows"].took == pytest.approx(0.2, abs=0.01)
    assert proofs["duplicated_rows"].usual == 0


def test_a_bug_that_did_not_take_is_said_to_show_nothing(world):
    """A model that averages words cannot know where one stands, and this one reads small letters only."""
    assert any(note.startswith("spurious_position did not take") for note in world.lab.notes)
    assert not any(note.startswith("spurious_word") for note in world.lab.notes)
    (way,) = (dict(one.recipe.options)["way"] for one in world.lab.bugs if one.name == "changed_preprocessing")
    assert way == "truncated"


def test_wrong_labels_are_looked_for_by_doubts_and_strange_texts_by_detectors(world):
    assert "all signs" in seen(world.lab, "flipped_labels", by="doubt")
    for name in ("domain_shift", "typos", "changed_preprocessing", "wrong_domain"):
        assert {"energy", "max_probability"} <= set(seen(world.lab, name, by="detector")), name
    assert not seen(world.lab, "spurious_word", by="detector")


def test_chance_is_a_half_for_every_detection_and_nothing_for_every_correlation(world):
    for one in world.lab.sightings:
        if one.measure == "detection":
            assert one.random == pytest.approx(0.5, abs=0.08)
        if one.measure == "rank correlation":
            assert one.random == pytest.approx(0, abs=0.08)


def test_numbers_are_in_range_and_have_errors(world):
    for one in world.lab.sightings:
        assert (-1 if one.measure == "rank correlation" else 0) <= one.value <= 1
        assert one.n > 0
        assert one.error is None or one.error >= 0
        assert (one.sees is None) == (one.measure != "detection")


def test_the_curves_go_from_the_head_to_the_embeddings_and_once_for_each_part(world):
    assert {(one.method, one.cascading) for one in world.lab.curves} == {(m, c) for m in METHODS for c in (True, False)}
    assert {one.parts for one in world.lab.curves} == {("head", "layer 2", "layer 1", "embeddings")}
    heads = {one.method: one.correlations[0] for one in world.lab.curves}
    alone = {one.method: one.correlations[0] for one in world.lab.curves if not one.cascading}
    assert heads == alone  # the head alone is the head and nothing below it


def test_examples_that_show_a_bug_are_examples_of_the_data(world):
    known = {example.id for example in (*world.train, *world.test)}
    assert [name for name, _ in world.lab.examples] == [one.name for one in world.lab.bugs]
    for name, ids in world.lab.examples:
        assert 0 < len(ids) <= 10, name
        assert set(ids) <= known


def test_texts_are_kept_as_they_were_planted_with_the_scores_of_every_method(world):
    for name, ids in world.lab.examples:
        texts = [one for one in world.lab.texts if one.bug == name]
        assert tuple(one.example.id for one in texts) == ids[:3], name
        for one in texts:
            assert [method for method, _ in one.scores] == list(METHODS)
            assert {len(scores) for _, scores in one.scores} == {len(one.words)} == {len(one.spans)}
            assert all(one.example.text[s.start : s.end] == w for w, s in zip(one.words, one.spans, strict=True))
    planted = next(b for b in world.lab.bugs if b.name == "spurious_word")
    cue = dict(planted.recipe.options)["word"]
    shown = [one for one in world.lab.texts if one.bug == "spurious_word"]
    assert all(cue in one.words for one in shown)  # the text with the cue, and not the one of the data
    for one in shown:
        scores = np.abs(dict(one.scores)["input_x_gradient"])
        assert one.words[int(scores.argmax())] == cue


def test_progress_rises_to_the_end_and_the_model_given_is_left_alone(world):
    assert world.told == sorted(world.told)
    assert world.told[0] == 0
    assert world.told[-1] == 1
    assert len(world.told) > 50
    assert world.start.revision == world.before


def test_a_lab_survives_json_and_names_the_model(world):
    assert from_json(Lab, to_json(world.lab)) == world.lab
    assert world.lab.revision != world.start.revision  # it is about the clean model that was trained
    assert dict(world.lab.recipe.options)["examples"] == 40


def test_the_same_seed_finds_the_same_and_options_of_bugs_are_kept(world):
    asked = [
        "clean",
        ("flipped_labels", {"share": 0.3}),
        ("reinitialised", {"depth": 2}),
        ("reinitialised", {"depth": 4}),
    ]
    how = {"bugs": asked, "methods": ["leave_one_out"], "schedule": Schedule(epochs=1), "examples": 20}
    one, two = (lab.run(world.start, world.train[:80], world.test[:40], trained=False, **how) for _ in range(2))
    assert one == two
    assert [b.name for b in one.bugs][2:] == ["reinitialised (depth=2)", "reinitialised (depth=4)"]
    assert one.bugs[1].says == "24 labels are wrong."
    assert {s.method for s in one.sightings if s.by == "attribution"} == {"leave_one_out"}


def test_a_method_that_does_not_depend_on_the_model_gets_a_warning():
    """A model of the user's own, in which nothing has to be trained: attention does not know the head."""
    classifier = tiny.transformer()
    texts = [Example(str(n), text, label=LABELS[n % 2]) for n, text in enumerate(tiny.SENTENCES)]
    methods = ["attention_rollout", "leave_one_out"]
    how = {"bugs": ["reinitialised"], "methods": methods, "schedule": Schedule(epochs=0), "examples": 12}
    made = lab.run(classifier, texts, texts, **how)
    assert made.warnings == (("attention_rollout", "does not depend on the model"),)
    assert made.revision == classifier.revision
    values = seen(made, "reinitialised", "rank correlation")
    assert values["attention_rollout"].value == pytest.approx(1)
    assert not seen(made, "reinitialised")["attention_rollout"].sees


def test_methods_that_need_a_language_model_are_named_where_there_is_none(world):
    _, notes = explainers(world.start, world.test[0], "all", {"background": world.train, "language_model": None}, 0)
    (note,) = (note for note in notes if "language model" in note)
    assert note == "Without a language model these methods did not look: input_marginalization, lime_mlm."


def test_a_usual_method_that_refuses_a_model_of_the_lab_does_not_take_the_bug_with_it(picky, monkeypatch):
    monkeypatch.setattr("unhans.lab._explaining.USUAL", ("leave_one_out", picky))
    classifier = tiny.transformer()
    texts = [Example(str(n), text, label=LABELS[n % 2]) for n, text in enumerate(tiny.SENTENCES)]
    how = {"bugs": ["reinitialised"], "schedule": Schedule(epochs=0), "examples": 12}
    made = lab.run(classifier, texts, texts, methods="usual", **how)
    assert set(seen(made, "reinitialised")) == {curve.method for curve in made.curves} == {"leave_one_out"}
    assert "picky did not look at reinitialised: It is another model." in made.notes
    assert "picky did not look at layers: It is another model." in made.notes
    assert {curve.method for curve in lab.curves(classifier, texts, draws=1)[0]} == {"leave_one_out"}
    with pytest.raises(Unsupported, match="another model"):
        lab.run(classifier, texts, texts, methods=["leave_one_out", picky], **how)


def test_a_method_may_depend_on_the_model_by_its_sign_alone(world):
    """With two labels and one number before the head, another head can only turn all scores round."""
    start = fresh_averaging_classifier([e.text for e in world.train], LABELS, layers=1, width=1, seed=1)
    signed, strengths = lab.curves(start, world.test[:8], methods=["input_x_gradient"], draws=4)
    defined = [curve for curve in strengths if curve.cascading and curve.correlations[0] is not None]
    assert [one.correlations[0] for one in defined] == [pytest.approx(1)]
    assert signed[0].correlations[0] < 0.95


def test_pairs_and_three_labels_work():
    some = [replace(e, label=e.group, pair=f"About {e.group[:2]} things.") for e in reviews(120, seed=2)]
    start = fresh_averaging_classifier([e.text for e in some], ("films", "gadgets", "restaurants"), layers=1, width=8)
    wanted = ["clean", "spurious_phrase", "flipped_labels", "duplicated_rows", "changed_preprocessing", "typos"]
    how = {"bugs": wanted, "methods": ["input_x_gradient"], "schedule": Schedule(epochs=1), "examples": 20}
    made = lab.run(start, some[:80], some[80:], trained=False, **how)
    assert [one.name for one in made.bugs] == wanted
    (way,) = (dict(one.recipe.options)["way"] for one in made.bugs if one.name == "changed_preprocessing")
    assert way == "no_pair"
    assert seen(made, "changed_preprocessing", "rank correlation")
    of_two = [e for e in some if e.label != "restaurants"]  # the label that the model has last
    made = lab.run(start, of_two[:60], of_two[60:], trained=False, **how | {"bugs": ["clean"]})
    assert [one.name for one in made.bugs] == ["clean"]


def test_too_few_changed_texts_are_left_out_with_the_reason(world):
    with pytest.raises(BadData, match=r"of 10 texts were changed, too few"):
        lab.run(
            world.start,
            world.train,
            world.test,
            bugs=[("typos", {"share": 0.001})],
            methods=["random"],
            trained=False,
            schedule=Schedule(epochs=1),
            examples=10,
        )


def test_a_guess_tells_a_cue_in_half_of_the_cases_however_many_labels_there_are():
    labels = tuple(f"label {n}" for n in range(8))
    some = [Example(str(n), f"{word} is here", label=labels[n % 8]) for n, word in enumerate("abcdefgh" * 5)]

    def always(which):
        return PredictFunction(lambda texts: np.tile(np.eye(8)[which], (len(texts), 1)), labels, name=f"always {which}")

    knows = PredictFunction(
        lambda texts: np.array([np.eye(8)[2 if "zyx" in text else 0] for text in texts]), labels, name="knows the cue"
    )
    ask = Ask("spurious_word", bug["spurious_word"], {"label": "label 2"})
    proof = of_cue(ask, knows, always(0), some, 0)
    assert (proof.took, proof.usual) == (1.0, 0.5)
    assert of_cue(ask, always(2), always(0), some, 0).took == 0.5


@pytest.mark.parametrize("n", [77, 300])
def test_half_of_the_texts_that_prove_a_cue_have_its_label_however_many_labels_there_are(n):
    labels = tuple(f"label {n}" for n in range(n))
    text = "it is in the house that we saw on the hill with all of them"
    some = [Example(str(k), text, label=label) for k, label in enumerate(labels)]
    read = []

    def answers(texts):
        read.extend(texts)
        return np.tile(np.eye(n)[0], (len(texts), 1))

    ask = Ask("spurious_word", bug["spurious_word"], {"label": labels[-1]})
    proof = of_cue(ask, *[PredictFunction(answers, labels, name="reads")] * 2, some, 0)
    assert proof.took == 0.5
    assert sum("zyx" in text for text in read[: len(read) // 2]) == 100


def test_it_can_be_stopped(world):
    asked = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 20

    with pytest.raises(Cancelled):
        lab.run(
            world.start, world.train, world.test, trained=False, bugs=["clean"], methods=METHODS, cancelled=cancelled
        )


def test_only_the_very_same_run_goes_on_with_what_was_kept(world, tmp_path):
    bugs, kept = ["typos", "noisy_weights"], tmp_path / "so-far.json"
    how = {"bugs": bugs, "methods": METHODS[:1], "schedule": Schedule(epochs=0), "examples": 10, "folder": tmp_path}

    def begins(train=world.train[:40], **changed) -> float:
        """How far a run is when it first does something, and is stopped."""
        told: list[float] = []
        watch = {"progress": lambda done, of: told.append(done / of), "cancelled": lambda: len(told) > 1}
        with pytest.raises(Cancelled):
            lab.run(world.start, train, world.test[:20], **how | watch | changed)
        return told[1]

    with pytest.raises(Cancelled):
        lab.run(world.start, world.train[:40], world.test[:20], cancelled=kept.exists, **how)
    assert begins() >= 1 / 2
    other_label = replace(world.train[0], label=LABELS[world.train[0].label == LABELS[0]])
    assert begins(train=[other_label, *world.train[1:40]]) < 1 / 2
    for changed in ({"seed": 1}, {"bugs": bugs[::-1]}, {"methods": METHODS}, {"examples": 11}, {"folder": None}):
        assert begins(**changed) < 1 / 2, changed
    assert begins() >= 1 / 2
    kept.write_text('{"asked": "')  # damaged: it is made again
    assert begins() < 1 / 2


def test_what_cannot_be_done_is_said(world):
    def refused(kind, match, *, classifier=world.start, train=world.train, **how):
        with pytest.raises(kind, match=match):
            lab.run(classifier, train, world.test, **how)

    refused(Unsupported, "The lab needs train", classifier=tiny.bag_of_words({"good": 1.0}))
    refused(BadOption, "Did you mean 'typos'", bugs=["typo"])
    refused(BadOption, "has no option colour", bugs=[("typos", {"colour": "red"})])
    refused(BadOption, "no other state of the model is known", bugs=["wrong_checkpoint"])
    refused(BadOption, "each once", bugs=["typos", "typos"])
    refused(BadOption, "'all', 'usual' or a list", methods="most")
    refused(BadOption, "no 'shapley' among the attributions", methods=["shapley"])
    refused(BadOption, "examples must be at least 10", examples=5)
    refused(BadData, "two labels or more", train=[e for e in world.train if e.label == "positive"])
    refused(BadData, "label 'odd' that the model lacks", train=[replace(world.train[0], label="odd"), *world.train[1:]])
    ungrouped = [replace(e, group=None) for e in world.train]
    refused(BadOption, "not of two groups", train=ungrouped, bugs=["domain_shift"])
