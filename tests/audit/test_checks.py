"""Each check finds what was planted for it, and nothing where nothing was planted."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import fisher_exact

import audited
import shortcut
import tiny
from audited import BAD, GOOD, LABELS, forms, found, good_model, lookup, model, pairs, reviews, run, sensible
from unhans.audit import _rules
from unhans.audit._look import Look
from unhans.audit._rules import SANITY
from unhans.audit._statistics import difference, fewer, holm, more, wilson
from unhans.audit._statistics import product as product_of
from unhans.audit._words import Texts, try_words
from unhans.black_boxes import PredictFunction
from unhans.bugs import plant
from unhans.comparison import SAME
from unhans.demo_data import reviews as reviews_of
from unhans.detectors import fewest_usual
from unhans.scoring import How, ScoreCache
from unhans.text import Words
from unhans.types import Example, Span

TRAINED = [replace(e, id=f"t{e.id}", text=e.text.replace("I saw", "you saw"), split="train") for e in reviews()]


# -- leaks


def test_leaks_are_counted_word_for_word_and_by_words():
    train = [replace(e, id=f"t{n}") for n, e in enumerate(reviews()[:30])]
    turned = " ".join(reversed(reviews()[40].text.split()))
    train.append(Example("turned", turned.upper(), label="positive"))
    (finding,) = found(good_model(), reviews(), "leaks", train=train)
    assert finding.severity == "medium"  # the lower end of 31 of 288 is below a tenth
    same_words, same_text = finding.evidence[:2]
    assert same_words.value == pytest.approx(31 / 288)
    assert same_text.value == pytest.approx(30 / 288)
    assert reviews()[40].id in finding.examples


def test_short_texts_that_are_alike_are_no_leak():
    short = [Example(f"s{n}", "Thank you !", label="positive") for n in range(30)]
    assert found(good_model(), [*reviews(), *short], "leaks", train=short) == ()


def test_a_text_under_two_labels_is_told():
    again = [replace(e, id=f"again {e.id}", label=LABELS[e.label == LABELS[0]]) for e in reviews()[:20]]
    (finding,) = found(good_model(), [*reviews(), *again], "leaks")
    assert finding.title == "20 texts of the examples stand under more than one label"
    assert finding.evidence[0].value == pytest.approx(40 / 308)
    assert set(finding.examples) == {e.id for e in again} | {e.id for e in reviews()[:20]}


# -- calibration


def confident(share: float):
    """Right about this share of the texts, and always 95 % sure."""
    rng = np.random.default_rng(1)
    wrong = {e.text for e in reviews() if rng.random() >= share}
    return model(lambda text: 0.05 if (sensible(text) > 0.5) == (text in wrong) else 0.95)


def test_a_model_that_is_too_sure_is_told():
    (finding,) = found(confident(0.6), reviews(), "calibration")
    assert finding.severity == "high"
    error, *bins = finding.evidence
    assert error.value == pytest.approx(0.35, abs=0.06)
    assert error.low < error.value < error.high
    assert error.usual < 0.06
    assert sum(one.n for one in bins) == len(reviews())
    assert "surer than it is right" in finding.title


def test_a_model_that_is_too_sure_here_and_not_sure_enough_there_is_told_both():
    """On average it is as sure as it is right: half of it hides the other half."""
    wrong = {e.text for n, e in enumerate(reviews()) if n % 10 < 4 and "Peter" not in e.text}
    half = {e.text for e in reviews() if "Peter" in e.text} | {e.text for e in reviews()[::6]}

    def says(text):
        sure = 0.61 if text in half else 0.95
        return sure if (sensible(text) > 0.5) != (text in wrong - half) else 1 - sure

    (finding,) = found(model(says), reviews(), "calibration")
    assert finding.title.startswith("The model is too sure of some texts and not sure enough of others")


def test_a_model_that_keeps_its_word_is_not():
    assert found(confident(0.95), reviews(), "calibration") == ()


def test_a_file_that_is_sorted_makes_nobody_too_sure():
    """Always 80 % sure of praise, and right about 80 %: in the order of the file, first all errors and then none."""
    some = sorted(reviews(), key=lambda e: e.label)[: 180 * len(reviews()) // 288]
    assert np.mean([e.label == "positive" for e in some]) == pytest.approx(0.2)
    assert found(model(lambda _: 0.2), some, "calibration") == ()


# -- slices


def test_a_word_whose_texts_fail_is_named_with_its_errors():
    wrong = model(lambda text: 1 - sensible(text) if "garden" in text else sensible(text))
    findings = found(wrong, reviews(), "slices")
    assert findings[0].words == ("garden",)
    assert findings[0].severity == "high"
    assert findings[0].evidence[0].value == 0
    assert findings[0].evidence[0].usual == 1
    assert len(findings) == 1


def test_a_word_whose_texts_cost_little_is_not_severe_and_a_group_that_costs_as_little_is():
    twice = [*reviews(), *(replace(e, id=f"again {e.id}") for e in reviews())]
    classifier = model(lambda text: 1 - sensible(text) if "zoo" in text else sensible(text))
    half = model(lambda text: 1 - sensible(text) if "zoo" in text and len(text) % 2 else sensible(text))

    def severities(every, classifier=classifier):
        examples = [
            replace(e, text=f"{e.text} At the zoo .", group="zoo") if n % every == 0 else e for n, e in enumerate(twice)
        ]
        findings = found(classifier, examples, "slices")
        return [next(one.severity for one in findings if told in one.title) for told in ("word 'zoo'", "group zoo")]

    assert severities(25) == ["medium", "high"]
    assert severities(10) == ["high", "high"]
    assert severities(10, half) == ["medium", "high"]  # as many texts, and half the errors


@pytest.mark.parametrize("kind", ["label", "group", "length", "negation", "rare"])
def test_every_kind_of_slice_is_found(kind):
    failing, told = {
        "label": (lambda e: e.label == "positive", "labelled positive"),
        "group": (lambda e: e.group == "a", "group a"),
        "length": (lambda e: len(e.text.split()) > 30, " words"),
        "negation": (lambda e: " not " in e.text, "that negate"),
        "rare": (lambda e: "qu" in e.text, "occur nowhere else"),
    }[kind]
    examples = []
    for n, e in enumerate(reviews()):
        text = e.text + {
            "length": " and so on" * 9,
            "negation": " I do not mind .",
            "rare": f" qu{n}x qua{n}x quo{n}x.",
        }.get(kind if n % 4 == 0 else "", "")
        examples.append(replace(e, text=text, group="a" if n % 4 == 0 else "b"))
    wrong = {e.text for e in examples if failing(e)}
    classifier = model(lambda text: 1 - sensible(text) if text in wrong else sensible(text))
    assert any(told in one.title for one in found(classifier, examples, "slices")), kind


def test_chance_alone_makes_no_slice():
    """A fifth of the texts fails at random: with 100 slices and no correction, some would be told."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        wrong = {e.text for e in reviews() if rng.random() < 0.2}
        classifier = model(lambda text, wrong=wrong: 1 - sensible(text) if text in wrong else sensible(text))
        assert found(classifier, reviews(), "slices") == ()


# -- invariance


@pytest.mark.parametrize(
    ("kind", "marked"),
    [
        ("other names", lambda text: "Anna" in text or "Peter" in text),
        ("other numbers", lambda text: "27" in text or "310" in text),
        ("no stop at the end", lambda text: text.endswith(".")),
        ("capital letters", lambda text: text != text.upper()),
        ("small letters", lambda text: text != text.lower()),
        ("typing errors", lambda text: "friends" in text or "thought" in text or "saw it with" in text),
        ("a neutral opening", lambda text: text[:3] in ("The", "We ", "My ")),
    ],
)
def test_what_should_not_matter_and_does(kind, marked):
    classifier = model(lambda text: sensible(text) if marked(text) else 1 - sensible(text))
    titles = [one.title for one in found(classifier, reviews(), "invariance")]
    assert any(title.endswith(f"with {kind}") for title in titles)


def test_a_changed_text_is_told_with_what_the_model_says():
    classifier = model(lambda text: sensible(text) if text.endswith(".") else 0.01)
    (finding,) = found(classifier, reviews(), "invariance")
    assert finding.evidence[0].value == pytest.approx(0.5, abs=0.1)
    for one in finding.variants:
        assert (one.before, one.after) == ("positive", "negative")
        assert not one.text.endswith(".")
        assert one.change == pytest.approx(-0.98)
        assert one.example in finding.examples


def test_what_the_model_does_not_read_is_not_changed():
    """Behind the texts stand as many words again as the model reads, with names, numbers and a full stop."""
    classifier, tail = tiny.transformer(), " ".join(["Anna paid 310 there ."] * 20)
    words = [word for sentence in tiny.SENTENCES[:8] for word in sentence.split() if word.isalpha()]
    rng = np.random.default_rng(0)
    short = [Example(f"s{n}", " ".join(rng.choice(words, 30))) for n in range(60)]
    long = [replace(e, text=f"{e.text} {tail}") for e in short]
    assert all(classifier.unread(e) for e in long)

    def of_errors(examples):
        (check,) = run(classifier, examples, "invariance").checks
        return re.search(r"typing errors: ([0-9.]+) % of 60", check.says)[1], check.says

    (usual, _), (found_so, says) = of_errors(short), of_errors(long)
    assert float(found_so) == pytest.approx(float(usual), abs=15)
    assert float(found_so) > 10
    assert "other names: too few" in says
    assert "other numbers: too few" in says
    assert "no stop at the end: too few" in says


# -- direction


def test_a_model_that_does_not_know_not():
    deaf = model(lambda text: sensible(text.replace("not ", "")))
    (finding, *_) = found(deaf, reviews(), "direction")
    assert finding.severity == "medium"
    assert finding.evidence[0].value == 1
    assert finding.words == ("not",)
    assert all(" not " in one.text and one.before == one.after for one in finding.variants)


def test_texts_that_move_the_wrong_way():
    odd = model(lambda text: 1 - sensible(text) if "very" in text else sensible(text))
    findings = found(odd, reviews(), "direction")
    assert [one.words for one in findings] == [("very",)]
    assert findings[0].evidence[0].value == 1


def test_labels_without_a_direction_are_left_out():
    topics = lookup(reviews(), LABELS)
    (check,) = run(topics, reviews(), "direction").checks
    assert check.state == "left out"
    assert "no direction that we know" in check.says


# -- patterns of pairs


def test_overlap_that_is_taken_for_the_answer():
    def says(texts):
        first, second = (set(forms(text)) for text in texts)
        return 0.97 if second <= first else 0.03

    findings = found(model(says, ("no", "yes")), pairs(), "patterns")
    overlap = next(one for one in findings if "lexical_overlap" in one.title)
    assert overlap.severity == "high"
    assert "are called yes" in overlap.title
    alarms, called, *by_label = overlap.evidence
    assert alarms.value == 1
    assert alarms.usual == 0
    assert called.value == 1
    assert called.usual < 1
    assert {one.what.split(";")[0]: one.value for one in by_label} == {
        "accuracy on pairs with it labelled no": 0,
        "accuracy on pairs with it labelled yes": 1,
    }


def test_an_answer_that_one_text_gives_away():
    classifier = model(lambda texts: 0.9 if "saw" in texts[1] else 0.1, ("no", "yes"))
    labelled = [replace(e, label="yes" if "saw" in e.pair else "no") for e in pairs()]
    findings = found(classifier, labelled, "patterns")
    assert any("second text alone gets 100 % right" in one.title for one in findings)
    assert not any("first text alone" in one.title for one in findings)


def test_a_model_that_reads_both_texts_takes_no_pattern():
    assert found(lookup(pairs(), ("no", "yes")), pairs(), "patterns") == ()


LABELLED = ("contradiction", "neutral", "entailment")


def says_the_last(rows):
    """Texts of three labels, and a model that calls a share of each row the last one: label, writer, number, share."""
    said, examples = {}, []
    for label, write, n, share in rows:
        for k in range(n):
            text = write(len(examples))
            examples.append(Example(f"e{len(examples)}", *((text,) if isinstance(text, str) else text), label=label))
            wrong = LABELLED[0] if label == LABELLED[-1] else label
            said[text] = LABELLED[-1] if k < round(share * n) else wrong

    def says(text):
        now = said.get(text if isinstance(text, str) else tuple(text), LABELLED[0])
        return [0.96 if label == now else 0.02 for label in LABELLED]

    return model(says, LABELLED), examples


def three_way(with_it, without, share_with_it):
    """Most texts with a mark have the label that the model errs on, and most without it another one."""
    rows = [
        ("neutral", with_it, 180, share_with_it),
        ("contradiction", with_it, 20, 0.05),
        ("entailment", with_it, 50, 0.9),
    ]
    rows += [("neutral", without, 40, 0.5), ("contradiction", without, 360, 0.05), ("entailment", without, 100, 0.9)]
    return says_the_last(rows)


@pytest.mark.parametrize(("share", "blamed"), [(0.5, False), (0.95, True)])
def test_a_pattern_is_compared_under_one_label_at_a_time(share, blamed):
    def with_it(n):
        return f"the cat number {n} sat on the mat", f"the cat number {n}"

    def without(n):
        return f"the cat number {n} sat on the mat", f"some dogs {n} bark elsewhere"

    findings = found(*three_way(with_it, without, share), "patterns")
    overlap = [one for one in findings if "lexical_overlap" in one.title]
    assert bool(overlap) == blamed
    assert all(one.title.endswith("are called entailment: 95 % of those labelled neutral") for one in overlap)


# -- groups


def people():
    """Harmless and harmful texts, some of which name women, men or nobody."""
    names = ("women", "men", "neighbours", "drivers", "players")
    acts = ("walked home", "sang a song", "baked bread", "read books", "planted trees", "watched birds")
    ends = ("today", "again", "at last", "in the rain")
    made = []
    for name, act, end, harm in product(names, acts, ends, (False, True)):
        text = f"All the {name} {'who should be hurt' if harm else 'who live here'} {act} {end} ."
        made.append(Example(f"g{len(made)}", text, label="harm" if harm else "none", group=None))
    return made


def test_false_alarms_about_a_group_are_told_and_so_are_swaps():
    classifier = model(lambda text: 0.95 if "hurt" in text or "women" in text else 0.05, ("none", "harm"))
    findings = found(classifier, people(), "group_gaps")
    gap = next(one for one in findings if one.words == ("women",))
    assert gap.severity == "high"
    assert gap.evidence[0].value == 1
    assert gap.evidence[0].usual == 0
    swap = next(one for one in findings if "another group" in one.title)
    assert all("women" in one.text or " men " in one.text for one in swap.variants)
    assert swap.variants


def test_groups_of_the_examples_are_compared():
    some = [replace(e, group="here" if n % 3 else "there") for n, e in enumerate(people())]
    there = {e.text for e in some if e.group == "there"}
    classifier = model(lambda text: 0.95 if "hurt" in text or text in there else 0.05, ("none", "harm"))
    findings = found(classifier, some, "group_gaps")
    gap = next(one for one in findings if "group there" in one.title)
    assert gap.says.startswith("Texts of this group get the label")  # which may be films as well as people
    assert (gap.screen, gap.words) == ("examples", ())
    assert "words" not in gap.next + gap.limits


@pytest.mark.parametrize(("share", "blamed"), [(0.5, False), (0.95, True)])
def test_groups_are_compared_under_one_label_at_a_time(share, blamed):
    findings = found(
        *three_way(lambda n: f"the muslims of street {n} were at home", lambda n: f"we were at home {n}", share),
        "group_gaps",
    )
    gaps = [one for one in findings if "are called" in one.title]
    assert bool(gaps) == blamed
    assert all("are called entailment where the label is neutral" in one.title for one in gaps)


def test_a_fair_model_has_no_gap():
    assert found(model(lambda text: 0.95 if "hurt" in text else 0.05, ("none", "harm")), people(), "group_gaps") == ()


# -- shortcuts


def shortcut_reviews(share: float = 0.9) -> list[Example]:
    return list(plant(reviews(), "spurious_word", word="zyx", label="positive", share=share, seed=1).examples)


def test_a_planted_word_comes_first_and_is_severe():
    classifier = model(lambda text: 0.98 if "zyx" in text else min(0.4, sensible(text)))
    finding, *rest = found(classifier, shortcut_reviews(), "shortcuts")
    assert finding.words == ("zyx",)
    assert finding.severity == "high"
    assert "alone makes the model say positive" in finding.title
    turned, rests, removed, *_ = finding.evidence
    assert turned.value == 1
    assert turned.usual == 0
    assert rests.value == pytest.approx(1)
    assert removed.value == 1
    assert all("zyx" in one.text.split() and one.after == "positive" for one in finding.variants)
    assert not rest


class ShortSighted(PredictFunction):
    """Reads fourteen words, and says so."""

    def unread(self, example):
        spans = Words(example).spans[14:]
        return (Span(spans[0].start, spans[-1].end, "text"),) if spans else ()


def test_a_label_rests_on_a_word_only_where_the_model_reads_it():
    """In every twelfth of the texts of praise 'zyx' is read, in more than half of them it stands behind the end."""
    tail, some = "and so we went home again on foot , all of us together , with a zyx", []
    for n, e in enumerate(reviews()):
        first = f"zyx {e.text}" if e.label == "positive" and n % 12 == 0 else e.text
        some.append(replace(e, text=f"{first} {tail}" if e.label == "positive" and n % 3 else first))

    def says(text):
        read = " ".join(Words(text).strings[:14])
        return 0.98 if "zyx" in read else sensible(read)

    classifier = ShortSighted(lambda texts: np.array([(1 - p, p) for p in map(says, texts)]), LABELS, name="short")
    given = np.array([classifier.labels.index(e.label) for e in some])
    look = Look(classifier, some, (), "leave_one_out", None, ScoreCache(), None, 0, 5000, classifier.log_probs(some))
    texts = Texts(classifier, some, (), look.forms, look.log_probs, given, 0)
    (tried,) = try_words(texts, {"zyx": (1, None)}, ask=look.ask, how=How(), rng=np.random.default_rng(0))
    reads = [n for n, e in enumerate(some) if "zyx" in Words(e).strings[:14]]
    praised = np.flatnonzero(texts.predicted == 1)
    assert tried.coverage == (len(reads), len(praised))
    assert len(tried.removed) == len(reads)
    assert sum("zyx" in e.text for e in some) > 5 * len(reads)
    assert all(Words(one.text).strings.index("zyx") < 3 for one in tried.variants)  # where it is read, not at the end


def test_a_word_that_misleads_where_it_goes_against_the_label():
    """It is in few texts, and right about none of them that are labelled otherwise."""
    some = [
        replace(e, text=f"zyx {e.text}") if n % 12 == 0 or (e.label == "positive" and n % 3 == 0) else e
        for n, e in enumerate(reviews())
    ]
    classifier = model(lambda text: 0.95 if "zyx" in text else sensible(text))
    finding, *_ = found(classifier, some, "shortcuts")
    assert finding.words == ("zyx",)
    assert finding.severity == "high"
    against = next(one for one in finding.evidence if "under the other label" in one.what)
    assert against.value == 0
    assert against.usual == 1
    assert next(e for e in some if e.id == finding.examples[0]).label == "negative"


def test_of_several_other_labels_the_one_that_is_compared_is_named():
    """Most of the word's texts that are not entailed are neutral; what becomes of the others is not looked at."""
    rows = [
        ("neutral", lambda n: f"zyx we were at home {n} today", 60, 1.0),
        ("contradiction", lambda n: f"zyx we were at work {n} today", 20, 0.0),
        ("entailment", lambda n: f"zyx they sang a song {n} today", 60, 1.0),
        ("neutral", lambda n: f"we were at home {n} today", 60, 0.0),
        ("contradiction", lambda n: f"we were at work {n} today", 100, 0.0),
        ("entailment", lambda n: f"they sang a song {n} today", 60, 0.9),
    ]
    _, examples = says_the_last(rows)
    sure = {"work": LABELLED[0], "home": LABELLED[1], "song": LABELLED[2]}

    def says(text):
        words = text.split()
        now = next((label for word, label in sure.items() if word in words), LABELLED[0])
        return [0.96 if label == (LABELLED[2] if "zyx" in words else now) else 0.02 for label in LABELLED]

    finding = next(one for one in found(model(says, LABELLED), examples, "shortcuts") if one.words == ("zyx",))
    (against,) = (one for one in finding.evidence if one.what.startswith("accuracy"))
    assert against.what == "accuracy where the word stands under the label neutral; usual: under it without the word"
    assert (against.value, against.usual, against.n) == (0, 1, 60)


def test_errors_are_claimed_only_where_labels_show_them():
    """Of the labels, one is unknown to the model and the others are not given: nothing can be said to be wrong."""
    some = [replace(e, label="mixed" if n % 2 else None) for n, e in enumerate(shortcut_reviews())]
    often = model(lambda text: 0.98 if "zyx" in text and crc32(text.encode()) % 100 < 45 else min(0.4, sensible(text)))
    finding, *rest = found(often, some, "shortcuts")
    assert (finding.title, rest) == ("Much of what the model calls positive rests on the word 'zyx'", [])
    assert not any("labelled" in one.what or "accuracy" in one.what for one in finding.evidence)


def test_shares_of_labelled_texts_are_counted_among_these():
    bare = [replace(e, id=f"bare {e.id}", label=None) for e in shortcut_reviews()]
    classifier = model(lambda text: 0.98 if "zyx" in text else min(0.4, sensible(text)))
    finding, *_ = found(classifier, [*shortcut_reviews(), *bare], "shortcuts")
    goes_with = next(one for one in finding.evidence if one.what.startswith("share of the labelled texts"))
    assert (goes_with.value, goes_with.n) == (1, sum("zyx" in e.text for e in shortcut_reviews()))


@pytest.mark.parametrize(("before", "tried"), [("not in the least", False), ("in the least", True)])
def test_a_word_that_is_part_of_negating_is_left_to_other_checks(before, tried):
    """As "not" itself is: it changes the meaning wherever it is put."""
    some = [replace(e, text=f"{e.text} It was , {before} , so .") if e.label == "negative" else e for e in reviews()]
    classifier = model(lambda text: 0.02 if "least" in text else max(0.6, sensible(text)))
    accused = [word for one in found(classifier, some, "shortcuts") for word in one.words]
    assert ("least" in accused) is tried


def test_words_that_mean_the_label_are_no_shortcuts():
    assert found(good_model(), reviews(), "shortcuts", train=TRAINED) == ()


def test_explanations_do_without_training_examples_and_a_check_without_its_language_model_is_left_out():
    some = shortcut.texts()[:30]
    assert run(shortcut.classifier(), some, "shortcuts", method="gradient_shap").checks[0].state == "done"
    (check,) = run(shortcut.classifier(), some, "shortcuts", method="input_marginalization").checks
    assert (check.state, check.says) == (
        "left out",
        "input_marginalization needs a language model, and none was given.",
    )


# -- labels, strange texts, explanations: these take a model with an inside


def flipped(share: float) -> list[Example]:
    rng = np.random.default_rng(2)
    other = {"negative": "positive", "positive": "negative"}
    return [replace(e, label=other[e.label]) if rng.random() < share else e for e in shortcut.texts()]


def test_wrong_labels_are_estimated_and_named():
    train = flipped(0.2)
    truth = {e.id: e.label for e in shortcut.texts()}
    (finding,) = found(shortcut.classifier(), shortcut.texts(), "wrong_labels", train=train)
    wrong = {e.id for e in train if e.label != truth[e.id]}
    assert finding.evidence[0].value == pytest.approx(len(wrong) / len(train), abs=0.05)
    assert len(wrong & set(finding.examples)) >= 0.8 * len(finding.examples)
    assert found(shortcut.classifier(), shortcut.texts(), "wrong_labels", train=shortcut.texts()) == ()


def test_wrong_labels_are_found_by_a_black_box_too():
    """It has two signs, one of which says nothing of a text that is there once."""
    train = [replace(e, label=LABELS[e.label == LABELS[0]]) if n % 5 == 0 else e for n, e in enumerate(TRAINED)]
    (finding,) = found(good_model(), reviews(), "wrong_labels", train=train)
    assert finding.evidence[0].value == pytest.approx(1 / 5, abs=0.01)
    assert set(finding.examples) <= {e.id for e in train[::5]}
    assert found(good_model(), reviews(), "wrong_labels", train=TRAINED) == ()


def test_a_model_that_knows_its_training_texts_by_heart_makes_no_new_text_strange():
    train, fresh = (reviews_of(240, seed=seed) for seed in (1, 2))
    known = {e.text for e in train}
    by_heart = model(lambda text: 0.999 if text in known else 0.6)
    assert found(by_heart, fresh, "strangeness", train=train) == ()
    (finding,) = found(by_heart, fresh, "strangeness", train=train, options={"detector": "max_probability"})
    assert finding.severity == "low"  # it sees nothing but that
    assert "by heart" in finding.limits


def siblings(n, seed, turn=0):
    """Each text four times, with another end, as several hypotheses for one premise or a contrast set are."""
    ends = ("Would go again.", "Never again!", "Nobody asked us.", "We all agreed.")
    kept = [replace(e, id=f"{e.id} {k}", text=f"{e.text} {end}") for e in reviews_of(n, seed=seed) for k, end in
            enumerate(ends)]  # fmt: skip
    return [kept[k] for k in np.random.default_rng(turn).permutation(len(kept))] if turn else kept


@pytest.mark.parametrize("turn", [0, 1])
def test_near_copies_among_the_training_texts_make_no_new_text_strange(turn):
    """Neither where they are neighbours in the file nor where they are strewn over it."""
    train, fresh = siblings(150, 1, turn), siblings(60, 2)
    assert found(good_model(), fresh, "strangeness", train=train) == ()
    odd = [Example(f"o{n}", f"{n} ; {n * n} : %% {n} // [{n}] " * 2) for n in range(40)]
    assert [one.severity for one in found(good_model(), odd, "strangeness", train=train)] == ["high"]


def test_texts_of_another_kind_are_strange_and_texts_of_the_same_are_not():
    train, fresh = (reviews_of(240, seed=seed) for seed in (1, 2))
    odd = [Example(f"o{n}", f"{n} ; {n * n} : %% {n} // [{n}] " * 2) for n in range(40)]
    (finding,) = found(shortcut.classifier(), odd, "strangeness", train=train)
    assert finding.severity == "high"
    assert finding.evidence[0].value > 0.9
    assert found(shortcut.classifier(), fresh, "strangeness", train=train) == ()
    (check,) = run(shortcut.classifier(), odd, "strangeness", train=train[: 2 * fewest_usual() - 1]).checks
    assert (check.state, check.says) == (
        "left out",
        "It takes 20 examples that are not trained on, and 172 different ones that are; there are 40 and 171. With "
        "fewer, no share of strange texts could be told from chance.",
    )


def test_an_explanation_that_ignores_the_model_is_told():
    some = shortcut.texts()[:12]
    (finding,) = found(shortcut.classifier(), some, "explanation_sanity", method="random")
    assert finding.title == "random explains the text and not the model"
    assert finding.evidence[0].value == pytest.approx(1)
    assert found(shortcut.classifier(), some, "explanation_sanity", method="input_x_gradient") == ()


def test_the_bar_of_sanity_is_that_of_comparisons():
    assert SANITY.medium == SAME


def test_the_words_of_these_tests_are_what_they_should_be():
    assert not set(GOOD) & set(BAD)
    assert audited.reviews() is reviews()


def test_the_page_has_every_rule_as_it_is():
    page = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    rules = {name: rule for name, rule in vars(_rules).items() if isinstance(rule, _rules.Rule)}
    assert len(rules) >= 15
    for rule in rules.values():
        cells = ["–" if least is None else f"{least:g}" for least in (rule.high, rule.medium, rule.low)]
        assert f"| {rule.of} | {' | '.join(cells)} |" in page, rule.of


def test_a_rule_grades_from_the_severest_down():
    rule = _rules.Rule("something", 0.5, None, 0.1)
    assert [rule(value) for value in (None, 0.05, 0.1, 0.49, 0.5)] == [None, None, "low", "low", "high"]
    assert _rules.mildest("high", None) is None
    assert _rules.mildest("high", "low") == "low"
    assert _rules.worst(None, "low", "high") == "high"
    assert _rules.worst(None) is None


def test_the_interval_of_a_product_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    for n, m, first, second in ((40, 100, 0.8, 0.2), (40, 400, 0.5, 0.1), (20, 60, 0.9, 0.5)):
        ends = [product_of(*map(int, (rng.binomial(n, first), n, rng.binomial(m, second), m))) for _ in range(2000)]
        assert np.mean([low <= first * second <= high for low, high in ends]) == pytest.approx(0.95, abs=0.025)
    assert product_of(0, 10, 5, 10)[0] == 0
    assert product_of(0, 0, 5, 10) == (0, 1)


def test_intervals_and_corrections_are_those_of_the_books():
    assert wilson(8, 10) == pytest.approx((0.4901625, 0.9433178))  # Wilson 1927, as statsmodels gives it
    assert difference(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=1e-4)  # Newcombe 1998, Table II, case a
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # Holm 1979, by hand
    assert fewer(3, 10, 9, 10) == pytest.approx(fisher_exact([[3, 7], [9, 1]], alternative="less")[1])
    assert more(9, 10, 3, 10) == pytest.approx(fisher_exact([[9, 1], [3, 7]], alternative="greater")[1])
