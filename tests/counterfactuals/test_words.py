"""Synonyms, antonyms, deletion and insertion: single words, by rules that can be said in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
import wordnets
from drafting import draft_of, rules_for
from unhans.black_boxes import PredictFunction
from unhans.counterfactuals import find_flips
from unhans.counterfactuals.antonyms import antonyms
from unhans.counterfactuals.deletion import deletion
from unhans.counterfactuals.insertion import insertion
from unhans.counterfactuals.synonyms import synonyms
from unhans.errors import BadOption, Unsupported
from unhans.language_model import LanguageModel
from unhans.text import Hole, Words
from unhans.types import Edit, Example

TEXT = "The film was good"
NONE = tiny.bag_of_words({})
GENERATORS: dict[str, Any] = {
    "synonyms": synonyms,
    "antonyms": antonyms,
    "insertion": lambda classifier, drafts, rules, how, **o: insertion(classifier, drafts, rules, None, how, **o),
}


def news(found: list[tuple[Edit, ...]], position: int) -> list[str]:
    return [edit.new for (edit,) in found if edit.position == position]


# -- WordNet


def test_synonyms_and_opposites_come_from_wordnet_best_first() -> None:
    known = wordnets.needed()
    (same,), (opposite,) = (method(NONE, [draft_of(TEXT)], rules_for(), {}) for method in (synonyms, antonyms))
    assert news(same, 1) == known.synonyms("film")[:10]
    assert news(opposite, 3) == known.antonyms("good")[:10]
    assert news(same, 0) == news(same, 2) == []  # "the" and "was" have none
    assert [edit.position for (edit,) in same[:2]] == [1, 3]  # the best of each word first
    (few,) = synonyms(NONE, [draft_of(TEXT)], rules_for(), {}, per_word=2, senses=1)
    assert len(few) == 4
    assert news(few, 1) == known.synonyms("film", 1)[:2]


@pytest.mark.parametrize("method", [synonyms, antonyms])
def test_words_of_a_pair_and_of_texts_without_any(method: Any) -> None:
    wordnets.needed()
    pair, one, none = method(
        NONE, [draft_of(("a good film", "Bad soups")), draft_of("good"), draft_of("")], rules_for(), {}
    )
    assert {edit.position for (edit,) in pair} >= {1, 3}
    assert all(edit.new[0].isupper() for (edit,) in pair if edit.position == 3)
    assert one
    assert none == []


def test_rules_are_kept_and_only_open_words_are_changed() -> None:
    wordnets.needed()
    on = draft_of(TEXT, [Edit(1, "film", "good film")], open_to={3})
    for method in (synonyms, antonyms):
        assert {edit.position for (edit,) in method(NONE, [on], rules_for(), {})[0]} == {3}
        assert method(NONE, [on], rules_for(protected="GOOD"), {}) == [[]]


def test_an_opposite_flips_a_black_box_and_a_synonym_another() -> None:
    wordnets.needed()
    classifier = tiny.bag_of_words({"good": 2.0, "bad": -2.0, "movie": -9.0}, bias=0.5)
    (opposite,) = find_flips(classifier, TEXT, method="antonyms")
    assert opposite.edits == (Edit(3, "good", "bad"),)
    (same,) = find_flips(classifier, TEXT, method="synonyms")
    assert same.edits == (Edit(1, "film", "movie"),)


def test_a_folder_without_wordnet_is_told(tmp_path: Any) -> None:
    with pytest.raises(Unsupported, match="wordnet-base"):
        find_flips(tiny.bag_of_words({}), TEXT, method="synonyms", wordnet=str(tmp_path))


@pytest.mark.parametrize("method", ["synonyms", "antonyms", "insertion"])
def test_of_many_words_those_are_tried_without_which_the_goal_is_nearest(method: str) -> None:
    wordnets.needed()
    classifier = tiny.bag_of_words({"good": 2.0, "funny": 1.0, "the": 9.0 if method != "insertion" else 0.0})
    on = draft_of("the good warm bad funny film", original=1)
    (found,) = GENERATORS[method](classifier, [on], rules_for(), {}, positions=2)
    assert {edit.position for (edit,) in found} == {1, 4}  # "the" has no synonyms, so it takes nobody's place
    (every,) = GENERATORS[method](classifier, [on], rules_for(), {}, positions=0)
    assert {edit.position for (edit,) in every} >= {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("synonyms", {"per_word": -1}),
        ("antonyms", {"senses": 0}),
        ("insertion", {"positions": -1}),
        ("masked_lm", {"per_word": -1}),
        ("generate", {"samples": 0, "model": "x"}),
    ],
)
def test_numbers_that_cannot_be_are_refused(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=f"{next(iter(options))} must be"):
        find_flips(NONE, TEXT, method=method, language_model=tiny.language_model(), **options)


# -- deletion


@given(st.text(max_size=30), st.data())
def test_deletion_proposes_each_open_word_once(text: str, data: Any) -> None:
    chosen = set(data.draw(st.lists(st.integers(0, 20))))
    on = draft_of(text, open_to=chosen)
    (found,) = deletion([on], rules_for())
    words = Words(text).strings
    # a word that is only hidden signs reads like none: leaving it out is no change
    assert {edit.position for (edit,) in found} <= set(on.open)
    assert [edit for (edit,) in found] == [Edit(n, words[n], "") for n in on.open if (Edit(n, words[n], ""),) in found]
    assert len(found) == len(on.open) or any(not words[n].isprintable() for n in on.open)


def test_deletion_finds_the_words_that_hold_a_label_in_place() -> None:
    def predict(texts: Any) -> list[list[float]]:
        counts = [(str(text).count("a"), str(text).count("b"), 0.5) for text in texts]
        return [[c / sum(line) for c in line] for line in counts]

    classifier = PredictFunction(predict, ("a", "b", "neither"), "counts")
    (flip,) = find_flips(classifier, "a a b", method="deletion", target="b")
    assert [edit.new for edit in flip.edits] == ["", ""]
    assert flip.text == "b"
    (any_other,) = find_flips(classifier, "a a b", method="deletion", target="neither")
    assert any_other.text == ""
    (pair,) = find_flips(classifier, [Example("p", "b x", "a a")], method="deletion", target="b")
    assert (pair.text, pair.pair) == ("b x", "")
    assert [edit.position for edit in pair.edits] == [2, 3]


# -- insertion


def test_insertion_puts_words_before_or_after() -> None:
    def found(**options: Any) -> list[tuple[Edit, ...]]:
        return insertion(NONE, [draft_of(TEXT)], rules_for(), None, {}, **options)[0]

    assert news(found(), 3) == ["not good", "never good", "hardly good", "very good", "really good"]
    assert news(found(words="not", side="after"), 3) == ["good not"]
    assert news(found(words="not", side="both"), 3) == ["not good", "good not"]
    assert news(found(words="not"), 0) == ["Not The"]
    assert news(found(words="film GOOD not"), 1) == ["GOOD film", "not film"]  # no word twice


def oracle(model: LanguageModel, text: str, at: int, k: int) -> list[str]:
    ((fillers,),) = model.fill([Words(text).without([at], Hole.MASK)], k=k)
    return [filler.word for filler in fillers]


def test_with_a_language_model_its_own_words_come_in_too() -> None:
    model = tiny.language_model()
    (found,) = insertion(NONE, [draft_of(TEXT)], rules_for(), model, {}, words="not", side="both", per_word=3)
    before, after = oracle(model, "The film was x good", 3, 3), oracle(model, "The film was good x", 4, 3)
    wanted = ["not good", "good not", *(f"{word} good" for word in before), *(f"good {word}" for word in after)]
    assert news(found, 3) == wanted
    (none,) = insertion(NONE, [draft_of(TEXT)], rules_for(), model, {}, words="", per_word=0)
    assert none == []


def test_language_models_see_a_pair_and_the_edits_so_far() -> None:
    model = tiny.language_model()
    on = draft_of(("the film", "was good"), [Edit(0, "the", "a warm")])
    (found,) = insertion(NONE, [on], rules_for(), model, {}, words="", per_word=3)
    ((fillers,),) = model.fill([Words(("a warm film", "x was good")).without([3], Hole.MASK)], k=3)
    assert news(found, 2) == [f"{filler.word} was" for filler in fillers]
    assert news(found, 0) == []


def test_insertion_beyond_the_language_models_limit() -> None:
    long = " ".join(["soup"] * 60)
    (found,) = insertion(
        NONE, [draft_of(long, open_to={50})], rules_for(), tiny.language_model(), {}, words="", per_word=4
    )
    assert len(news(found, 50)) == 4


@settings(max_examples=30)
@given(st.text(max_size=20))
def test_what_is_inserted_keeps_the_word_that_was_there(text: str) -> None:
    on = draft_of(text)
    (found,) = insertion(NONE, [on], rules_for(whole_words=False), tiny.language_model(), {}, side="both", per_word=2)
    for (edit,) in found:
        assert edit.old == on.words.strings[edit.position]
        assert edit.new.startswith(f"{edit.old} ") or edit.new.endswith(f" {edit.old}")
        assert edit.position in on.open


def test_a_negation_flips_a_black_box_without_a_language_model() -> None:
    classifier = tiny.bag_of_words({"good": 1.0, "not": -3.0})
    (flip,) = find_flips(classifier, TEXT, method="insertion")
    assert len(flip.edits) == 1
    assert "not" in flip.text.split() or "Not" in flip.text.split()
    assert flip.flips
