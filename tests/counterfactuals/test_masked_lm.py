"""masked_lm: what a language model writes under a label prompt, for the right word, by the right label."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tiny
from drafting import draft_of, rules_for
from unhans.black_boxes import PredictFunction
from unhans.counterfactuals import find_flips
from unhans.counterfactuals._prompts import Prompt, check_prompt, default_prompt
from unhans.counterfactuals.masked_lm import masked_lm
from unhans.errors import BadOption, Cancelled
from unhans.language_model import LanguageModel
from unhans.text import Hole, Words
from unhans.types import Edit

TEXT = "The soup was cold"


def three_labels() -> PredictFunction:
    """It says b to texts with "soup" in them, a to all others; c is next to both."""

    def predict(texts: Any) -> list[list[float]]:
        return [[0.1, 0.6, 0.3] if "soup" in str(text) else [0.6, 0.1, 0.3] for text in texts]

    return PredictFunction(predict, ("a", "b", "c"), "soup")


def proposals(
    classifier: Any, drafts: list[Any], model: LanguageModel | None = None, **options: Any
) -> list[list[tuple[Edit, ...]]]:
    return masked_lm(classifier, drafts, rules_for(classifier), model or tiny.language_model(), {}, **options)


def oracle(masked: str, pair: str | None = None) -> list[str]:
    """The model's likeliest tokens for the mask in a string, straight from transformers."""
    tokenizer = tiny.bert_tokenizer()
    model = tiny.model("bert", tokenizer=tokenizer, head="MaskedLM")
    inputs = tokenizer(masked, pair, return_tensors="pt")
    assert inputs["input_ids"].shape[1] <= tiny.LIMIT
    with torch.no_grad():
        line = model(**inputs).logits[0][inputs["input_ids"][0] == tokenizer.mask_token_id][0]
    return tokenizer.convert_ids_to_tokens(line.argsort(descending=True).tolist())


def words_only(tokens: list[str], old: str) -> list[str]:
    signs = set(tiny.bert_tokenizer().all_special_tokens)
    usable = [t for t in tokens if t not in signs and not t.startswith("##")]
    return [t for t in usable if t.replace("'", "").replace("-", "").isalnum() and t != old.lower()]


def at(found: list[tuple[Edit, ...]], position: int) -> list[str]:
    return [edit.new for (edit,) in found if edit.position == position]


def test_proposals_are_the_likeliest_words_in_the_prompted_text() -> None:
    classifier = tiny.bag_of_words({})
    (found,) = proposals(classifier, [draft_of(TEXT, target=1)], prompt='"{text}" is {label}', per_word=6)
    for position, word in enumerate(Words(TEXT).strings):
        hidden = TEXT.replace(word, "[MASK]")
        wanted = words_only(oracle(f'"{hidden}" is positive'), word)[:6]
        assert [w.lower() for w in at(found, position)] == wanted
    assert all(new == new.capitalize() for new in at(found, 0))  # a capital where the old word had one
    assert [edit.position for (edit,) in found[:4]] == [0, 1, 2, 3]  # the best of each word comes first


def test_without_a_prompt_the_text_alone_is_shown() -> None:
    (found,) = proposals(tiny.bag_of_words({}), [draft_of(TEXT)], prompt="", per_word=3)
    assert at(found, 3) == words_only(oracle("The soup was [MASK]"), "cold")[:3]


def test_of_a_pair_the_part_that_is_edited_is_prompted_and_the_other_kept() -> None:
    pair = ("the soup", "it was cold")
    (found,) = proposals(tiny.bag_of_words({}), [draft_of(pair, target=0)], prompt="{label}: {text}", per_word=4)
    assert at(found, 1) == words_only(oracle("negative: the [MASK]", "it was cold"), "soup")[:4]
    assert at(found, 4) == words_only(oracle("the soup", "negative: it was [MASK]"), "cold")[:4]


def test_what_was_edited_before_is_shown_edited_and_left_alone() -> None:
    on = draft_of(TEXT, [Edit(1, "soup", "good film")])
    (found,) = proposals(tiny.bag_of_words({}), [on], prompt="", per_word=4)
    assert {edit.position for (edit,) in found} == {0, 2, 3}
    assert at(found, 3) == words_only(oracle("The good film was [MASK]"), "cold")[:4]


def test_words_that_the_model_does_not_read_are_not_shown() -> None:
    on = draft_of("The soup was not very cold", gone={3, 4})
    (found,) = proposals(tiny.bag_of_words({}), [on], prompt="", per_word=4)
    assert {edit.position for (edit,) in found} == {0, 1, 2, 5}
    assert at(found, 5) == words_only(oracle("The soup was [MASK]"), "cold")[:4]


@pytest.mark.parametrize("goal", [0, 1, 2])
def test_where_any_other_label_will_do_the_prompt_names_the_second(goal: int) -> None:
    """By the text as it stands: that is "c" for either text, but where the original is itself the second."""
    classifier = three_labels()
    for text, second in ((TEXT, {0: "b", 1: "c", 2: "b"}), ("The film was cold", {0: "c", 1: "a", 2: "a"})):
        (found,) = proposals(classifier, [draft_of(text, original=goal)], prompt="{label} {text}", per_word=3)
        (wanted,) = proposals(classifier, [draft_of(text)], prompt=f"{second[goal]} {{text}}", per_word=3)
        assert found == wanted


def test_only_open_words_are_changed_and_rules_are_kept() -> None:
    classifier = tiny.bag_of_words({})
    on = draft_of(TEXT, open_to={1, 3})
    (found,) = masked_lm(classifier, [on], rules_for(protected="soup"), tiny.language_model(), {}, prompt="")
    assert {edit.position for (edit,) in found} == {3}
    assert len(found) == 10
    (found,) = masked_lm(classifier, [draft_of(TEXT)], rules_for(whole_words=False), tiny.language_model(), {})
    assert found


def test_of_many_words_those_are_tried_without_which_the_goal_is_nearest() -> None:
    classifier = tiny.bag_of_words({"soup": 2.0, "cold": -3.0, "was": 1.0})
    up, down = draft_of(TEXT, original=0), draft_of(TEXT, original=1)
    (found, other) = proposals(classifier, [up, down], prompt="", positions=1)
    assert {edit.position for (edit,) in found} == {3}  # without "cold" it is positive
    assert {edit.position for (edit,) in other} == {1}
    (two,) = proposals(classifier, [draft_of(TEXT, [Edit(1, "soup", "film")], original=1)], prompt="", positions=2)
    assert {edit.position for (edit,) in two} == {0, 2}
    asked: list[Any] = []
    proposals(tiny.bag_of_words({}, asked=asked), [up], prompt="", positions=4)
    assert asked == []  # no more than four: nothing to choose


def test_texts_of_one_word_or_none_and_no_texts() -> None:
    one, none = proposals(tiny.bag_of_words({}), [draft_of("soup"), draft_of("")], prompt="", per_word=3)
    assert at(one, 0) == words_only(oracle("[MASK]"), "soup")[:3]
    assert none == []
    assert proposals(tiny.bag_of_words({}), []) == []


def test_a_word_beyond_the_limit_is_filled_among_those_around_it() -> None:
    long = " ".join(["soup"] * 40 + ["waiter"] + ["film"] * 40)
    (found,) = proposals(tiny.bag_of_words({}), [draft_of(long, open_to={40})], prompt="{text} good", per_word=3)
    assert len(at(found, 40)) == 3
    variant = Prompt("", " good").hide(tiny.language_model(), Words(long), [40])[40]
    (row,) = tiny.language_model().tokens.rows([variant])
    assert not row.cut
    assert len(row) >= tiny.LIMIT - 3
    assert variant.parts[0][-1] == " good"
    other = Prompt("", " " + "good " * 40).hide(tiny.language_model(), Words(("a b", long)), [42])[42]
    assert " good" not in other.parts[0]  # a prompt that leaves no room is left out
    assert len(other.parts) == 1


def test_prompts_are_checked() -> None:
    for wrong in ("{label}", "{text} {text}", "nothing"):
        with pytest.raises(BadOption, match="once"):
            proposals(tiny.bag_of_words({}), [draft_of(TEXT)], prompt=wrong)
    assert check_prompt("") == ""


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (("negative", "positive"), '"{text}" The sentiment of this text is {label}.'),
        (("Very_Negative", "neutral", "Positive"), '"{text}" The sentiment of this text is {label}.'),
        (("sports", "world news"), '"{text}" The label of this text is {label}.'),
        (("LABEL_0", "LABEL_1"), ""),
        (("0", "1", "2"), ""),
        (("class 1", "class 2"), ""),
    ],
)
def test_the_default_prompt_comes_from_the_label_names(labels: tuple[str, ...], wanted: str) -> None:
    assert default_prompt(labels) == wanted


@given(st.text(max_size=40), st.text(max_size=8), st.text(max_size=8), st.data())
def test_exactly_one_word_is_hidden_whatever_text_and_prompt(text: str, before: str, after: str, data: Any) -> None:
    words = Words(text)
    if not len(words):
        return
    place = data.draw(st.integers(0, len(words) - 1))
    variant = Prompt(before, after).hide(tiny.language_model(), words, [place])[place]
    pieces = [
        piece for part in variant.parts for chunk in part for piece in ([chunk] if isinstance(chunk, str) else chunk)
    ]
    assert pieces.count(Hole.MASK) == 1
    whole = "".join(words.strings[place] if piece is Hole.MASK else piece for piece in pieces)
    assert words.strings[place] in whole


def test_a_stop_is_heard() -> None:
    model, classifier = tiny.language_model(), tiny.bag_of_words({})
    with pytest.raises(Cancelled):
        masked_lm(classifier, [draft_of(TEXT)], rules_for(), model, {"cancelled": lambda: True}, prompt="")


def test_a_search_takes_the_filler_that_flips_a_black_box() -> None:
    fifth = words_only(oracle("The soup was [MASK]"), "cold")[4]
    classifier = tiny.bag_of_words({fifth: 3.0}, bias=-1.0)
    (flip,) = find_flips(classifier, TEXT, method="masked_lm", language_model=tiny.language_model(), prompt="")
    assert flip.edits == (Edit(3, "cold", fifth),)
    assert flip.flips
    assert dict(flip.recipe.options)["prompt"] == ""
    with pytest.raises(BadOption, match="language_model="):
        find_flips(classifier, TEXT, method="masked_lm")
