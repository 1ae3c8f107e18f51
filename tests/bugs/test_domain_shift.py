"""Training on one group, tested on others."""

from dataclasses import replace

import pytest

from unhans.bugs import plant
from unhans.demo_data import reviews
from unhans.errors import BadOption


def test_the_kept_group_stays_in_training_and_all_others_are_shifted():
    planted = plant(reviews(90, seed=3), "domain_shift", keep="gadgets")
    assert {(e.group, e.split) for e in planted.examples} == {
        ("films", "shifted"),
        ("restaurants", "shifted"),
        ("gadgets", "train"),
    }


def test_kept_examples_keep_their_split_and_get_one_if_they_have_none():
    examples = reviews(30, domain="films", split="test") + reviews(30, domain="films", split=None) + reviews(6)
    planted = plant(examples, "domain_shift")
    assert {e.split for e in planted.examples[:30]} == {"test"}
    assert {e.split for e in planted.examples[30:60]} == {"train"}


def test_the_truth_names_the_shifted_examples_and_their_old_split():
    examples = reviews(60, seed=3)
    truth = plant(examples, "domain_shift").truth
    assert truth.examples == tuple(e.id for e in examples if e.group != "films")
    assert truth.was == tuple((e.id, "train") for e in examples if e.group != "films")


def test_a_share_of_the_kept_group_can_be_held_back_for_comparison():
    planted = plant(reviews(300, seed=3), "domain_shift", test_share=0.2)
    held_back = [e for e in planted.examples if e.split == "test"]
    assert len(held_back) == 20
    assert {e.group for e in held_back} == {"films"}
    assert not {e.id for e in held_back} & set(planted.truth.examples)


def test_an_unknown_group_is_refused_with_the_known_ones():
    with pytest.raises(BadOption, match=r"group 'books'\. There is: films, gadgets, restaurants\."):
        plant(reviews(12), "domain_shift", keep="books")
    with pytest.raises(BadOption, match="no group at all"):
        plant([replace(e, group=None) for e in reviews(12)], "domain_shift")


def test_a_single_group_leaves_nothing_to_shift():
    with pytest.raises(BadOption, match="nothing is left to shift"):
        plant(reviews(12, domain="films"), "domain_shift")
