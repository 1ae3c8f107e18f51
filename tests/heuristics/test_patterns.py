"""Each pattern on texts that have it, and on texts that nearly do."""

from __future__ import annotations

import numpy as np
import pytest

from unhans.errors import BadData, BadOption
from unhans.heuristics import choose_anchors, found_at, has, heuristic, patterns
from unhans.types import Example, Prediction


def pair(text: str, other: str) -> Example:
    return Example("e", text, other)


@pytest.mark.parametrize(
    ("text", "other", "named"),
    [  # McCoy et al. 2019, Table 1, and what the data of HANS calls them
        ("The doctor was paid by the actor.", "The doctor paid the actor.", {"lexical_overlap"}),
        (
            "The doctor near the actor danced.",
            "The actor danced.",
            {"lexical_overlap", "subsequence"},
        ),
        (
            "If the artist slept, the actor ran.",
            "The artist slept.",
            {"lexical_overlap", "subsequence", "constituent"},
        ),
        ("The judge helped the lawyer.", "The lawyer helped the judge.", {"lexical_overlap", "reverse_order"}),
        ("Life is not a series of fables.", "Life is a series of fables.", {"lexical_overlap", "negation"}),
        ("A cat sat.", "Nothing of the kind.", {"negation"}),
        ("A cat sat.", "A dog sat.", set()),
    ],
)
def test_patterns_of_pairs(text, other, named):
    assert set(patterns(pair(text, other))) == named


def test_words_are_whole_words():
    assert not has(pair("The painter slept.", "The paint"), "subsequence")  # the released code of HILDIF says it is
    assert not has(Example("e", "an artist"), "contains_word", word="art")
    assert has(Example("e", "Modern ART!"), "contains_word", word="modern art")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("Certainly the actors slept .", "The actors slept ."),
        ("The judge knew that the actors slept .", "The actors slept ."),
        ("The actors slept , and the judge ran .", "The judge ran ."),
        ("The actors slept (the judge ran).", "The judge ran"),
        ("He came in. The actors slept, but the judge ran. He left.", "The actors slept, but the judge ran."),
    ],
)
def test_clauses(text, clause):
    assert has(pair(text, clause), "constituent")


@pytest.mark.parametrize(
    ("text", "no_clause"),
    [
        ("The judge who saw the actors slept .", "The actors slept ."),
        ("The actors slept in the house .", "The actors slept ."),
        ("The actors slept .", "The actors slept ."),  # all of it is no part of it
        ("The actors slept , and the judge ran .", "Slept , and the judge ran"),
        ("Run , he said .", "Run"),
    ],
)
def test_words_cut_out_elsewhere_are_no_clauses(text, no_clause):
    assert has(pair(text, no_clause), "subsequence")
    assert not has(pair(text, no_clause), "constituent")


def test_negation_of_a_pair_is_a_difference():
    assert has(Example("e", "It wasn't bad."), "negation")
    assert not has(pair("It wasn't bad.", "It was never good."), "negation")
    assert has(pair("Es war nicht gut.", "Es war gut."), "negation", list_of="nicht kein")


def test_length_counts_words():
    assert has(Example("e", "one , two !"), "length", least=2, most=2)
    assert not has(Example("e", "one two three"), "length", most=2)
    with pytest.raises(BadOption, match="most is not below least"):
        has(Example("e", "one"), "length", least=3, most=2)


@pytest.mark.parametrize(("name", "share"), [("lexical_overlap", 0.0), ("reverse_order", 1.5)])
def test_shares_are_shares(name, share):
    with pytest.raises(BadOption, match="share must lie"):
        has(pair("a", "b"), name, share=share)


EXAMPLES = [
    Example("right", "the judge saw the actor", "the judge saw", label="yes"),
    Example("wrong", "the judge saw the actor", "the actor saw the judge", label="no"),
    Example("cut", "the judge near the actor slept", "the actor slept", label="no"),
    Example("other", "the judge saw the actor", "somebody slept", label="no"),
    Example("unlabelled", "the judge saw the actor", "the actor saw the judge"),
    Example("unasked", "the judge saw the actor", "the actor saw the judge", label="no"),
]
SAID = {e.id: Prediction(e.id, ("yes", "no"), (0.9, 0.1), "r") for e in EXAMPLES if e.id != "unasked"}


def test_anchors_are_wrong_and_have_the_pattern():
    assert {e.id for e in choose_anchors(EXAMPLES, SAID, n=9)} == {"wrong", "cut", "other"}
    assert {e.id for e in choose_anchors(EXAMPLES, SAID, heuristic="subsequence")} == {"cut"}
    either = choose_anchors(EXAMPLES, SAID, heuristic=("reverse_order", "subsequence"))
    assert {e.id for e in either} == {"wrong", "cut"}
    assert "right" in {e.id for e in choose_anchors(EXAMPLES, SAID, n=9, wrong=False, heuristic="lexical_overlap")}
    worded = choose_anchors(EXAMPLES, SAID, heuristic="contains_word", options={"word": "somebody"})
    assert [e.id for e in worded] == ["other"]


def test_anchors_are_drawn_by_the_seed():
    drawn = {tuple(e.id for e in choose_anchors(EXAMPLES, SAID, n=2, seed=seed)) for seed in range(20)}
    assert len(drawn) > 1
    assert choose_anchors(EXAMPLES, SAID, n=2, seed=3) == choose_anchors(EXAMPLES, SAID, n=2, seed=3)


def test_no_anchor_is_an_error_with_a_way_out():
    with pytest.raises(BadData, match=r"be predicted wrong and have the pattern constituent\. Give more"):
        choose_anchors(EXAMPLES, SAID, heuristic="constituent")
    with pytest.raises(BadOption, match="at least 1"):
        choose_anchors(EXAMPLES, SAID, n=0)


def test_a_part_is_found_wherever_it_is():
    rng = np.random.default_rng(0)
    for _ in range(200):
        words = tuple(rng.choice(["a", "b"], size=rng.integers(0, 9)).tolist())
        part = tuple(rng.choice(["a", "b"], size=rng.integers(1, 4)).tolist())
        slowly = [at for at in range(len(words)) if words[at : at + len(part)] == part]
        assert found_at(words, part) == slowly


class Counted(str):
    """A word that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("name", ["reverse_order", "subsequence", "lexical_overlap"])
def test_long_texts_are_read_once(name):
    """No word is compared with every other one: a screen asks this for each of its rows."""
    different = [Counted(f"w{n}") for n in range(1_000)]
    for words, others in (
        (different, different[::-1]),
        ([Counted("a")] * 1_000, [*[Counted("a")] * 500, Counted("b")]),
    ):
        Counted.compared = 0
        heuristic[name]({"example": pair("a", "b"), "words": tuple(words), "pair_words": tuple(others)})
        assert Counted.compared < 20_000
