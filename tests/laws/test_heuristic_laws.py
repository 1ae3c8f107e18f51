"""What every heuristic must obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unhans.demo_data import entailment_pairs, reviews
from unhans.errors import BadOption
from unhans.heuristics import has, heuristic, patterns
from unhans.registry import Entry
from unhans.types import Example

TOLD = {"contains_word": {"word": "the"}, "length": {"least": 8}}  # those that must be told what to look for
ODD = ["", " ", "…", "one", "ﬁne\u200b", "don't", "\U0001f469\u200d\U0001f4bb !", "a b a b a", "über Ünder"]


@pytest.fixture(params=list(heuristic), ids=lambda entry: entry.name)
def entry(request) -> Entry:
    return request.param


def told(entry: Entry) -> dict[str, object]:
    return TOLD[entry.name] if entry.facts.get("asked") else {}


def test_the_family_has_the_patterns_we_promise():
    pairs = {"lexical_overlap", "subsequence", "constituent", "negation", "reverse_order"}
    assert pairs | {"contains_word", "length"} <= set(heuristic.names)
    assert not heuristic.broken


def test_every_pattern_says_what_it_is(entry):
    assert entry.summary.endswith(".")
    assert entry.facts["paper"]
    assert entry.facts["on"] in {"pair", "any"}
    assert all(option.help for option in entry.options)
    assert not entry.random


def test_every_pattern_answers_yes_or_no_about_anything(entry):
    for text in ODD:
        for pair in (None, *ODD):
            assert has(Example("e", text, pair), entry.name, **told(entry)) in (True, False)


def test_single_texts_have_no_pattern_of_pairs(entry):
    if entry.facts["on"] == "pair":
        assert not any(has(example, entry.name) for example in reviews(20))


def test_some_texts_have_it_and_some_do_not(entry):
    examples = [*entailment_pairs(200), *reviews(100)]
    examples += [
        Example("c", "If the actor slept , the judge left .", "The judge left ."),
        Example("n", "He did not go.", "He went."),
    ]
    assert {has(example, entry.name, **told(entry)) for example in examples} == {True, False}


def test_neither_label_nor_id_nor_case_nor_the_last_stop_decides(entry):
    for example in entailment_pairs(60):
        other = Example("other", f"{example.text.upper()}  ", f"{(example.pair or '').lower()} .")
        assert has(example, entry.name, **told(entry)) == has(other, entry.name, **told(entry))


def test_patterns_are_those_that_need_not_be_told(entry):
    for example in (*entailment_pairs(40), *reviews(20)):
        listed = entry.name in patterns(example)
        assert listed == (not entry.facts.get("asked") and has(example, entry.name))


def test_those_that_must_be_told_say_so(entry):
    if entry.facts.get("asked"):
        with pytest.raises(BadOption, match="has to be told what to look for"):
            has(Example("e", "a text"), entry.name)


@given(st.text(max_size=30), st.text(max_size=30))
def test_what_is_cut_out_overlaps(text, pair):
    example = Example("e", text, pair)
    if has(example, "constituent"):
        assert has(example, "subsequence")
    if has(example, "subsequence"):
        assert has(example, "lexical_overlap")
