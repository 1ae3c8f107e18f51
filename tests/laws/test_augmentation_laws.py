"""What every augmentation must obey."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tiny
import translators
import wordnets
from unhans.augmentations import MOST, augment, augmentation, available, recipe_of
from unhans.errors import BadData, BadOption, Cancelled
from unhans.text import Words, visible_form
from unhans.types import Copy, Example

METHODS = [entry.name for entry in augmentation]
OF_PAIRS = [entry.name for entry in augmentation if not entry.facts.get("single_texts")]
TEXTS = [
    Example("film", "The film was not wonderful, it was a dull and silly movie.", label="negative"),
    Example("soup", "A good warm soup on a cold day", label="positive"),
    Example("odd", 'Good — "GOOD"! 🙂 3.5 [x] <b>  http://a.b/c', label="positive"),
]
SMALL = [
    Example("empty", "", label="negative"),
    Example("blank", "  \n ", label="negative"),
    Example("sign", "!", label="negative"),
    Example("word", "good", label="positive"),
    Example("unknown", "zzyzx", label="positive"),
]
PAIRS = [
    Example("p", "A man is running and a dog runs", "The man has a warm dog", label="entailment"),
    Example("half", "", "good dog", label="neutral"),
    Example("none", "", "", label="neutral"),
]


@cache
def need(name):
    """Leave a method out that this machine cannot serve."""
    if name == "synonyms":
        wordnets.needed()
    if name == "back_translation":
        translators.needed()


def copies(name, examples, n=6, **how):
    need(name)
    return augment(examples, n, method=name, language_model=tiny.language_model(), **how)


@cache
def usual(name):
    """Six copies of all single texts, made once: starting Apertium takes a second."""
    return copies(name, [*TEXTS, *SMALL])


def of(example, made):
    return [copy for copy in made if copy.source == example.id]


def plain(copy):
    """A text as readers would compare it: words without capitals and punctuation."""
    texts = (copy.text,) if copy.pair is None else (copy.text, copy.pair)
    words = ([visible_form(w) for w in Words(text).strings if any(map(str.isalnum, w))] for text in texts)
    return tuple(map(tuple, words))


@pytest.mark.parametrize("name", METHODS)
def test_copies_keep_label_and_differ_and_are_as_many_as_asked_for_at_most(name):
    for n, made in ((6, usual(name)), (1, copies(name, TEXTS, 1))):
        for example in TEXTS:
            own = of(example, made)
            assert len(own) <= n
            assert {copy.label for copy in own} <= {example.label}
            assert len({plain(copy) for copy in own} | {plain(example)}) == len(own) + 1
            assert all(copy.pair is None and copy.label_kept is None for copy in own)
        places = [[e.id for e in (*TEXTS, *SMALL)].index(copy.source) for copy in made]
        assert places == sorted(places)
        assert made, "it makes something of these texts"


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_copies_in_any_company(name):
    made, again = usual(name), copies(name, [*SMALL[::-1], *TEXTS[::-1]])
    assert all(of(example, again) == of(example, made) for example in (*TEXTS, *SMALL))
    assert copies(name, TEXTS[1:2]) == of(TEXTS[1], made)
    assert {copy.recipe for copy in made} == {recipe_of(augmentation[name], {}, "none", 0)}
    if name != "back_translation":  # rules draw nothing
        assert [c.text for c in copies(name, TEXTS, seed=4)] != [c.text for c in copies(name, TEXTS)]


@pytest.mark.parametrize("name", METHODS)
def test_no_copy_is_a_tested_text_or_looks_like_one(name):
    made = [copy for example in TEXTS for copy in of(example, usual(name))]
    tested = [Example("t", made[0].text.upper() + " !"), Example("u", made[-1].text, "not it: a pair")]
    again = copies(name, TEXTS, tested=tested)
    assert plain(made[0]) not in {plain(copy) for copy in again}
    assert plain(made[-1]) in {plain(copy) for copy in again}
    assert copies(name, TEXTS, alike=0.01) == []  # everything looks alike then


@pytest.mark.parametrize("name", METHODS)
def test_it_ends_on_texts_of_one_word_or_none(name):
    made = [copy for example in SMALL for copy in of(example, usual(name))]
    assert {copy.source for copy in made} <= {"word", "unknown"}
    assert all(copy.text.strip() for copy in made)
    assert copies(name, [], 5) == copies(name, TEXTS, 0) == []


@pytest.mark.parametrize("name", OF_PAIRS)
def test_pairs_stay_pairs_and_a_word_of_both_becomes_the_same_word(name):
    made = copies(name, PAIRS, 8)
    assert {copy.source for copy in made} <= {"p", "half"}
    assert all(copy.pair is not None for copy in made)
    assert all(copy.text == "" for copy in made if copy.source == "half")
    for copy in made if name != "back_translation" else ():  # whose words do not stand where they stood
        if copy.source == "p":
            text, pair = Words(copy.text).strings, Words(copy.pair or "").strings
            assert (text[1], text[6]) == (pair[1], pair[5])


@pytest.mark.parametrize("name", [name for name in METHODS if name not in OF_PAIRS])
def test_what_is_for_single_texts_refuses_pairs_and_names_what_is_not(name):
    with pytest.raises(BadOption, match=r"for single texts.* back_translation, masked_lm, synonyms"):
        copies(name, [*TEXTS, *PAIRS])


@pytest.mark.parametrize("name", METHODS)
def test_it_can_be_stopped_and_tells_how_far_it_is(name):
    need(name)
    many = [Example(str(n), f"{TEXTS[n % 2].text} {n}", label="positive") for n in range(40)]
    looks, told = [], []

    def stop():
        looks.append(1)
        return len(looks) > 1

    with pytest.raises(Cancelled):
        copies(name, many, 2, cancelled=stop)
    copies(name, many, 1, progress=lambda *step: told.append(step))
    assert told == [(32, 40), (40, 40)]


@pytest.mark.parametrize("check", ["model", "language_model"])
@pytest.mark.parametrize("name", METHODS)
def test_a_check_says_how_far_the_label_holds_and_leaves_nothing_out(name, check):
    asked = {"classifier": tiny.transformer(), "check": check}
    examples = [*TEXTS, *SMALL]
    if name in OF_PAIRS:
        examples += [Example("p", PAIRS[0].text, PAIRS[0].pair, "positive")]
    made = copies(name, examples, 6, **asked)
    told = [(copy.source, copy.text, copy.pair) for copy in made if copy.pair is None]
    assert told == [(copy.source, copy.text, copy.pair) for copy in usual(name)]
    assert all(0 <= copy.label_kept <= 1 for copy in made)
    assert dict(made[0].recipe.options)["check"] == check
    if check == "model":
        model = asked["classifier"]
        sources = {example.id: example for example in examples}
        for copy in made:
            label = model.labels.index(copy.label)
            before, after = np.exp(model.log_probs([sources[copy.source], copy.example]))[:, label]
            assert copy.label_kept == pytest.approx(min(1, after / before), rel=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_is_and_whether_it_can_be_used_here(name):
    entry = augmentation[name]
    assert entry.summary.endswith((".", ","))
    assert entry.facts["paper"]
    assert all(option.help for option in entry.options)
    assert set(entry.facts.get("opens", ())) <= {option.name for option in entry.options}
    need(name)
    assert available(entry) == ""


def test_copies_by_id_and_what_cannot_be_meant():
    made = copies("word_dropout", TEXTS, {"soup": 2, "film": 1})
    assert [copy.source for copy in made] == ["film", "soup", "soup"]
    for asked in ({"nobody": 1}, {"film": -1}, -1, MOST + 1):
        with pytest.raises(BadOption):
            copies("word_dropout", TEXTS, asked)
    with pytest.raises(BadOption, match="same id"):
        copies("word_dropout", [TEXTS[0]] * 2)
    with pytest.raises(BadData, match="no label"):
        copies("word_dropout", [Example("x", "a b c")])
    assert copies("word_dropout", [Example("x", "a b c"), TEXTS[1]], {"soup": 1})[0].source == "soup"
    for how in ({"alike": 0}, {"alike": 1.1}, {"check": "people"}, {"rate": 0.0}):
        with pytest.raises(BadOption):
            copies("word_dropout", TEXTS, **how)


def test_what_is_missing_is_named():
    with pytest.raises(BadOption, match="masked_lm needs language_model="):
        augment(TEXTS, 1, method="masked_lm")
    with pytest.raises(BadOption, match='check="language_model" needs language_model='):
        augment(TEXTS, 1, method="word_dropout", check="language_model")
    with pytest.raises(BadOption, match="needs classifier="):
        augment(TEXTS, 1, method="word_dropout", check="model")
    strange = Example("x", "a b c", label="great")
    with pytest.raises(BadData, match="'great', which the model lacks"):
        augment([strange], 1, method="word_dropout", check="model", classifier=tiny.transformer())


def test_a_copy_is_an_example_under_a_name_of_its_own():
    one, other = copies("word_dropout", TEXTS[:1], 2)
    assert isinstance(one, Copy)
    assert one.example.label == "negative"
    assert len({one.example.id, other.example.id, one.source}) == 3
