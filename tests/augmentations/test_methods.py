"""What single augmentations promise beyond the laws, against oracles: WordNet, Apertium, and the formulas."""

from __future__ import annotations

import math
import subprocess
import sys
from copy import deepcopy
from itertools import pairwise

import pytest
import torch
import transformers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
import translators
import wordnets
from unhans.augmentations import Seen, augment, augmentation, available
from unhans.augmentations._checks import changed
from unhans.augmentations._words import replaceable, turns
from unhans.augmentations.back_translation import pivots_of, translated
from unhans.checkpoint import save_folder
from unhans.errors import BadOption, Cancelled, Unsupported
from unhans.text import Hole, Words, visible_form
from unhans.types import Example

FILM = Example("film", "The film was not wonderful, it was a dull and silly movie.", label="negative")
PAIR = Example("p", "Two dogs ran while a man was playing", "The dog runs and the man plays music", label="neutral")


# Synonyms


def test_every_new_word_is_one_that_wordnet_lists():
    known = wordnets.needed()
    for copy in augment([FILM], 40):
        old, new = Words(FILM).strings, Words(copy.text).strings
        assert len(old) == len(new)
        differ = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        assert differ
        assert all(b in known.synonyms(a, 3) for a, b in differ)
        assert all(replaceable(a) for a, _ in differ)


def test_a_word_becomes_the_same_one_in_all_its_forms():
    known = wordnets.needed()
    made = augment([PAIR], 40)
    assert len(made) == 40
    for copy in made:
        text, pair = Words(copy.text).strings, Words(copy.pair or "").strings
        for one, other in ((text[1], pair[1]), (text[2], pair[2]), (text[5], pair[5])):  # dogs, ran, man
            assert {s.base for s in known.senses(one)} & {s.base for s in known.senses(other)}
    assert {copy.pair.split()[1] for copy in made} > {"dog"}


def test_one_word_or_a_share_of_them_is_changed():
    wordnets.needed()
    long = Example("l", "A cold soup, a warm room, a silly film, a dull book and a bright day", label="x")

    def at(copy):
        return {n for n, (a, b) in enumerate(zip(Words(long).strings, Words(copy.text).strings, strict=True)) if a != b}

    assert {len(at(copy)) for copy in augment([long], 10, share=0.0)} == {1}
    assert {len(at(copy)) for copy in augment([long], 10, words=3, share=0.0)} == {3}
    every = set().union(*(at(copy) for copy in augment([long], 200)))  # words that have synonyms
    assert {len(at(copy)) for copy in augment([long], 10, share=0.5)} == {round(len(every) / 2)}
    short = Example("s", "a silly film", label="x")
    sizes = [sum(a != b for a, b in zip(short.text.split(), c.text.split(), strict=True)) for c in augment([short], 99)]
    assert set(sizes) == {1, 2}  # all with one new word are used up, then two are changed
    assert sizes == sorted(sizes)


def test_the_commonest_sense_comes_most_often():
    wordnets.needed()
    (first,) = {copy.text for copy in augment([Example("x", "a film", label="x")], 20, senses=1, words=1)} & {"a movie"}
    assert first
    every = {copy.text for copy in augment([Example("x", "a film", label="x")], 99, senses=9)}
    assert len(every) > len(augment([Example("x", "a film", label="x")], 99, senses=1))


def test_options_that_cannot_be_meant_are_refused():
    wordnets.needed()
    for options in ({"words": 0}, {"share": 2.0}, {"share": -0.1}, {"senses": 0}):
        with pytest.raises(BadOption):
            augment([FILM], 1, **options)
    with pytest.raises(BadOption):
        augment([FILM], 1, method="masked_lm", language_model=tiny.language_model(), per_word=0)
    with pytest.raises(Unsupported, match="apt-get install wordnet-base"):
        augment([FILM], 1, wordnet="/nowhere")


def test_wordnet_that_is_missing_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setenv("UNHANS_WORDNET", "/nowhere")
    assert "wordnet-base" in available(augmentation["synonyms"])


# A language model


def test_a_language_models_words_are_its_likeliest_ones():
    model, text = tiny.language_model(), "the soup was cold"
    made = augment([Example("x", text, label="x")], 50, method="masked_lm", language_model=model, per_word=3, share=0.0)
    words = Words(text)
    for copy in made[:6]:
        ((place, new),) = [(n, w) for n, w in enumerate(Words(copy.text).strings) if w != words.strings[n]]
        hidden = words.without([place], Hole.MASK)
        fillers = [filler.word for filler in model.fill([hidden], k=40)[0][0]]
        fitting = [w for w in fillers if replaceable(w) and visible_form(w) not in map(visible_form, words.strings)]
        assert new in fitting[:3]


def test_words_beyond_the_language_models_limit_stay():
    text = "the soup was cold " * 40
    made = augment([Example("x", text, label="x")], 3, method="masked_lm", language_model=tiny.language_model())
    assert made
    long = Example("x", "of the " * 200 + "soup", label="x")
    assert augment([long], 3, method="masked_lm", language_model=tiny.language_model()) == []


# Words that go or move


def test_negations_and_one_word_stay():
    for method in ("word_dropout", "word_swap"):
        for copy in augment([FILM, Example("n", "not good", label="x")], 30, method=method):
            assert "not" in copy.text.split()
    assert [turns(w) for w in ("not", "Never", "don’t", "isn't", "no", "nothing", "note")] == [True] * 6 + [False]
    assert all(map(turns, ("hardly", "barely", "scarcely", "nowhere", "rarely", "seldom", "few", "little", "without")))
    for copy in augment([Example("h", "it was hardly good", label="x")], 30, method="word_dropout", rate=0.5):
        assert "hardly" in copy.text.split()
    (two,) = {
        len(c.text.split()) for c in augment([Example("x", "cold soup", label="x")], 9, method="word_dropout", rate=0.9)
    }
    assert two == 1
    for copy in augment([FILM], 20, method="word_swap"):
        assert sorted(copy.text.replace(".", " ").replace(",", " ").split()) == sorted(
            FILM.text.replace(".", " ").replace(",", " ").split()
        )


# Back-translation


def by_hand(text, mode):
    ran = subprocess.run(["apertium", "-u", mode], input=text + "\n", capture_output=True, text=True, check=True)
    return " ".join(ran.stdout.split())


def test_apertium_says_what_it_says_by_hand():
    translators.needed()
    texts = ["The film was not wonderful.", "saw the light", "A man runs (fast)! Why?"]
    assert translated(["", *texts], "eng-spa") == ["", *(by_hand(text, "eng-spa") for text in texts)]
    copies = augment([Example("x", texts[0], texts[2], label="x")], 3, method="back_translation")
    assert [(copy.text, copy.pair) for copy in copies] == [
        tuple(by_hand(by_hand(text, "eng-spa"), "spa-eng") for text in (texts[0], texts[2]))
    ]


def test_lines_stay_lines_and_odd_signs_do_no_harm():
    translators.needed()
    text = "A dog runs.\n\nIt is warm.\n[x] ^y$ {z} <b> \\ / @ ½ \ud83d"
    (made,) = translated([text], "eng-spa")
    lines = made.split("\n")
    assert len(lines) == 4
    assert (lines[0], lines[1]) == (by_hand("A dog runs.", "eng-spa"), "")


def test_what_apertium_cannot_do_is_said():
    translators.needed()
    with pytest.raises(BadOption, match="cannot go from eng to xyz"):
        augment([FILM], 1, method="back_translation", pivots="xyz")
    with pytest.raises(Unsupported, match="cannot go from tlh"):
        augment([FILM], 1, method="back_translation", language="tlh")
    with pytest.raises(Cancelled):
        translated([f"{FILM.text} {n}" for n in range(20_000)], "eng-spa", lambda: True)


def test_without_apertium_the_way_out_is_named(monkeypatch):
    pivots_of.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "apertium-eng-spa" in available(augmentation["back_translation"])
    with pytest.raises(Unsupported, match="not installed"):
        augment([FILM], 1, method="back_translation")


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """An encoder-decoder that has learnt nothing: what it writes is nonsense, and real."""
    tokenizer = deepcopy(tiny.bert_tokenizer())  # the one that all tests share keeps its limit
    tokenizer.model_max_length = 128
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 2}
    pad, end = tokenizer.pad_token_id, tokenizer.sep_token_id
    ends = {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": pad}
    torch.manual_seed(1)  # one of those that do not fall silent
    model = hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=len(tokenizer), **sizes, **ends))
    return str(save_folder(tmp_path_factory.mktemp("models") / "translator", model, tokenizer))


def test_two_models_translate_there_and_back(translator):
    asked = {"method": "back_translation", "there": translator, "back": translator}
    short = Example("x", "soup", label="x")
    pair = Example("y", "", "cold", label="x")
    made = augment([short, pair], 6, **asked)
    own, others = ([copy for copy in made if copy.source == source] for source in "xy")
    assert own
    assert others
    assert all(copy.text == "" and copy.pair for copy in others)  # nothing stays nothing, and words stay words
    assert augment([pair, short], 6, **asked) == others + own  # in other company, the same
    assert augment([Example("z", "soup " * 200, label="x")], 2, **asked) == []  # longer than the model reads
    with pytest.raises(BadOption, match="go together"):
        augment([short], 1, method="back_translation", there=translator)
    with pytest.raises(Cancelled):
        augment([short], 1, cancelled=lambda: True, **asked)


# What looks alike, and what changed


def jaccard(one, other):
    def runs(text):
        words = " ".join(visible_form(w) for w in Words(text).strings if any(map(str.isalnum, w)))
        padded = f" {words} " if words else ""
        return {padded[n : n + 3] for n in range(len(padded) - 2)}

    a, b = runs(one), runs(other)
    return len(a & b) / len(a | b) if a | b else 1.0


@settings(max_examples=200)
@given(
    st.lists(st.text("abc .", max_size=12), max_size=6), st.text("abc .", max_size=12), st.sampled_from([0.3, 0.7, 1])
)
def test_what_looks_alike_is_found_as_by_comparing_with_every_text(texts, text, alike):
    seen = Seen(alike, [Example(str(n), t) for n, t in enumerate(texts)])
    assert seen.has((text,)) == any(jaccard(text, other) >= alike for other in texts)


def test_a_pair_is_not_its_two_texts_in_one():
    seen = Seen(0.9, [Example("x", "a cold soup", "it is warm")])
    assert seen.has(("A cold soup!", "It is warm"))
    assert not seen.has(("a cold soup it is warm",))
    assert not seen.has(("it is warm", "a cold soup"))


def test_changed_words_are_those_that_differ_or_stand_beside_a_gap():
    assert changed(["a", "b", "c"], ["a", "x", "c"]) == ([1], [1])
    assert changed(["a", "b", "c"], ["a", "c"]) == ([1], [0, 1])
    assert changed(["a", "c"], ["a", "b", "c"]) == ([0, 1], [1])
    assert changed(["a"], ["A"]) == ([], [])
    assert changed(["a"], []) == ([0], [])


def test_fluency_is_the_ratio_of_the_changed_words_likelihoods():
    model = tiny.language_model()
    source = Example("x", "the soup was cold", label="x")
    copies = augment([source], 5, method="masked_lm", language_model=model, check="language_model", share=0.0)
    for copy in copies:
        (place,) = [
            n for n, (a, b) in enumerate(zip(Words(source).strings, Words(copy.text).strings, strict=True)) if a != b
        ]
        before, after = model.word_log_probs([(source, place), (copy.text, place)])
        assert copy.label_kept == pytest.approx(min(1.0, math.exp(after - before)), rel=1e-4)


def test_the_front_door_opens_without_loading_models():
    code = (
        "import sys; from unhans.augmentations import augmentation, augment; augmentation.names; "
        "from unhans.types import Example; augment([Example('x', 'a b c', label='l')], 1, method='word_dropout'); "
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_more_copies_contain_fewer_copies():
    few, many = (augment([FILM], n, method="word_dropout") for n in (3, 9))
    assert many[:3] == few
    assert all(one.id != other.id for one, other in pairwise(many))
