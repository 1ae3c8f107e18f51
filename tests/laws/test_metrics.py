"""What every metric must obey, whatever it measures."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tiny
from unhans.errors import UnhansError
from unhans.metrics import measure, metric
from unhans.scratch import fresh_classifier
from unhans.types import Example, Span

METRICS = [entry.name for entry in metric]
PER_EXAMPLE = [entry.name for entry in metric if entry.facts.get("per") != "run"]
WEIGHTS = {"wonderful": 2.0, "warm": 1.0, "funny": 1.5, "cold": -1.5, "hard": -1.0, "joke": -2.0}
FILLING = ("the", "book", "was", "and", "soup", "film", "bed", "music", "ending", "plot")
QUICK = {"share": 0.1, "models": 1, "epochs": 1}


def made(n, seed=0):
    """Texts of eight words with one or two that the bag of words knows, and highlights on those that speak for it."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(n):
        label = ("negative", "positive")[number % 2]
        telling = [word for word, weight in WEIGHTS.items() if (weight > 0) == (label == "positive")]
        words = [str(word) for word in rng.choice(FILLING, size=8)]
        for place in rng.choice(8, size=1 + number // 2 % 2, replace=False):
            words[place] = str(rng.choice(telling))
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        marks = [Span(int(s), int(s) + len(w)) for s, w in zip(starts, words, strict=False) if w in telling]
        examples.append(Example(f"{seed}-{number}", " ".join(words), label=label, highlights=tuple(marks)))
    return examples


EXAMPLES = made(24)
BAG = tiny.bag_of_words(WEIGHTS)


def asked(name, examples=EXAMPLES, classifier=None, **options):
    """The grade of leave-one-out, which is exact on a bag of words; a transformer where weights are needed."""
    entry = metric[name]
    classifier = classifier or (tiny.transformer() if entry.needs else BAG)
    if "train" in entry.asks:
        train = made(160, seed=1)
        start = fresh_classifier([e.text for e in train], BAG.labels, layers=1, width=32)  # a small one learns it too
        pace = {"share": 0.25, "learning_rate": 3e-3, "models": 2, "epochs": 15, "start": start}
        options = {"train": train} | (options or pace)
    return measure(classifier, examples, metric=name, language_model=tiny.language_model(), **options)


def test_the_family_has_the_metrics_we_promise():
    assert set(METRICS) >= {
        *("deletion_auc", "insertion_auc", "deletion_mlm_auc", "comprehensiveness", "sufficiency"),
        *("aopc_comprehensiveness", "aopc_sufficiency", "roar", "roar_mlm", "infidelity", "stability"),
        *("token_iou", "token_precision", "token_recall", "token_f1", "auprc_plausibility"),
        *("sanity_spearman", "sanity_sign_changes", "sanity_magnitude_change"),
    }
    assert not metric.broken


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_what_it_is(name):
    facts = metric[name].facts
    assert facts["better"] in ("higher", "lower")
    assert facts["of"]
    assert facts["family"]
    assert facts["paper"]
    assert facts["undefined"]
    assert metric[name].summary


@pytest.mark.parametrize("name", METRICS)
def test_what_erases_words_says_whom_it_favours(name):
    facts = metric[name].facts
    assert ("erasure" in facts["family"]) == bool(facts.get("favours"))


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_answer_beats_a_random_one_in_the_declared_direction_and_in_range(name):
    grade = asked(name)
    low, high = metric[name].facts["range"]
    assert low <= grade.value <= high
    assert low <= grade.random <= high
    assert grade.value > grade.random if grade.better == "higher" else grade.value < grade.random
    if name in PER_EXAMPLE:  # two runs prove nothing, whatever they find
        assert grade.beats_random
        assert grade.low <= grade.value <= grade.high


@pytest.mark.parametrize("name", METRICS)
def test_undefined_is_an_error_and_not_a_number(name):
    with pytest.raises(UnhansError, match="none"):
        asked(name, [Example("1", " \u200b ", highlights=(Span(0, 1),)), Example("2", "")], **_cheap(name))


@pytest.mark.parametrize("name", METRICS)
def test_no_examples_are_an_error(name):
    with pytest.raises(UnhansError, match="no"):
        asked(name, [], **_cheap(name))


@pytest.mark.parametrize("name", METRICS)
def test_the_same_seed_gives_the_same_grade(name):
    first, second = (asked(name, EXAMPLES[:6], seed=3, **_cheap(name)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_the_order_of_the_examples_changes_nothing(name):
    examples = EXAMPLES[:7]
    forwards, backwards = asked(name, examples), asked(name, examples[::-1])
    assert forwards.value == pytest.approx(backwards.value, abs=1e-5)
    assert forwards.random == pytest.approx(backwards.random, abs=1e-5)


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_an_example_without_words_is_counted_as_undefined_and_not_in_the_mean(name):
    some = asked(name, EXAMPLES[:5])
    more = asked(name, [*EXAMPLES[:5], Example("x", " ", label="positive", highlights=(Span(0, 1),))])
    assert more.value == pytest.approx(some.value, abs=1e-5)
    assert (more.examples, more.undefined) == (some.examples, some.undefined + 1)


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_pairs_and_three_labels_work(name):
    pairs = [
        Example("1", "She liked the book.", "He did not like the ending!", highlights=(Span(3, 6, "pair"),)),
        Example("2", "The soup was cold", "A wonderful film", highlights=(Span(0, 8),)),
    ]
    options = {"only_correct": False} if metric[name].facts.get("highlights") else {}
    grade = asked(name, pairs, tiny.transformer(labels=3), **options)
    assert math.isfinite(grade.value)
    assert grade.examples == 2


def _cheap(name):
    return QUICK | {"train": made(40, seed=1)} if "train" in metric[name].asks else {}
