"""What single bugs do, beyond the laws that hold for all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

import tiny
from unhans.bugs import plant
from unhans.bugs._weights import parts_of
from unhans.demo_data import reviews
from unhans.errors import BadData, BadOption, Unsupported
from unhans.text import Words, as_variant, word_spans
from unhans.types import Example, Span

PAIR = Example(
    "p", "One Two three four five six seven.", "Eight nine Ten.", "positive", (Span(4, 17), Span(0, 5, "pair"))
)


def test_the_place_of_a_word_tells_the_label():
    for one in plant(reviews(60, seed=1), "spurious_position").examples:
        assert one.text.split()[0 if one.label == "positive" else -1] == "zyx"
        assert one.text.split().count("zyx") == 1


def test_a_mark_follows_a_word_without_a_blank():
    before = reviews(40, seed=1)
    for old, new in zip(before, plant(before, "spurious_punctuation", share=1.0).examples, strict=True):
        assert new.text.replace("*", "") == old.text
        assert " *" not in new.text
        assert ("*" in new.text) == (old.label == "positive")


def test_each_text_receives_one_of_a_groups_terms_and_all_of_them_occur():
    planted = plant(reviews(200, seed=1), "spurious_group", share=1.0, terms="nuns monks")
    found = Counter(word for e in planted.examples for word in e.text.split() if word in ("nuns", "monks"))
    assert set(found) == {"nuns", "monks"}
    assert found.total() == len(planted.truth.examples)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("spurious_phrase", {"phrase": "one"}),
        ("spurious_phrase", {"phrase": "two  blanks"}),
        ("spurious_punctuation", {"mark": "a"}),
        ("spurious_group", {"terms": " "}),
        ("spurious_position", {"label": "odd"}),
        ("flipped_labels", {"way": "one_annotator", "annotators": 0}),
        ("duplicated_rows", {"source": "validation"}),
        ("duplicated_rows", {"source": "train"}),
        ("changed_preprocessing", {"way": "truncated", "words": 0}),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(name, options):
    with pytest.raises(BadOption):
        plant(reviews(10), name, **options)


def test_labels_can_be_wrong_for_one_label_only_or_by_one_annotator_who_is_always_wrong_alike():
    examples = [Example(str(n), "text", label="abc"[n % 3]) for n in range(150)]
    one = plant(examples, "flipped_labels", way="one_label", label="b", share=0.5)
    assert {old for _, old in one.truth.was} == {"b"}
    assert len(one.truth.was) == 25
    other = plant(examples, "flipped_labels", way="one_annotator", share=1.0, annotators=5)
    assert len(other.truth.was) == 30
    after = {e.id: e.label for e in other.examples}
    assert {(old, after[id_]) for id_, old in other.truth.was} == {("a", "b"), ("b", "c"), ("c", "a")}


def test_one_part_alone_or_all_down_to_a_depth_is_drawn_anew():
    classifier = tiny.transformer()
    names = list(parts_of(classifier.model))
    assert plant([], "reinitialised", classifier=classifier, depth=2).truth.parts == tuple(names[:2])
    assert plant([], "reinitialised", classifier=classifier, depth=2, alone=True).truth.parts == (names[1],)
    with pytest.raises(BadOption, match=r"from 1 to 4, not 5\. The parts are: head, layer 2, layer 1, embeddings"):
        plant([], "reinitialised", classifier=classifier, depth=5)


def test_layers_of_a_plain_sequence_are_parts():
    assert list(parts_of(tiny.transformer("averaging").model)) == ["head", "layer 2", "layer 1", "embeddings"]


def test_a_checkpoint_lies_where_it_is_said_to_lie_between_two():
    one, two = tiny.transformer(), tiny.transformer(seed=1)
    half = plant([], "wrong_checkpoint", classifier=one, other=two, share=0.5).classifier
    name = "bert.encoder.layer.0.output.dense.weight"
    weights = [dict(model.model.named_parameters())[name] for model in (one, half, two)]
    assert torch.allclose(weights[1], (weights[0] + weights[2]) / 2)
    assert plant([], "wrong_checkpoint", classifier=one, other=two).classifier.revision == two.revision
    with pytest.raises(BadOption, match="another model"):
        plant([], "wrong_checkpoint", classifier=one, other=tiny.transformer(labels=3))


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_another_tokenizer_gives_the_same_pieces_other_numbers_and_keeps_control_tokens(kind):
    classifier = tiny.transformer(kind)
    made = plant([], "tokenizer_mismatch", classifier=classifier, share=1.0).classifier
    text = as_variant(tiny.SENTENCES[0])
    (old,), (new,) = (one.tokens.rows([text]) for one in (classifier, made))
    assert len(old) == len(new)
    assert (old.ids[0], old.ids[-1]) == (new.ids[0], new.ids[-1])
    assert all(a != b for a, b in zip(old.ids[1:-1], new.ids[1:-1], strict=True))
    pieces = [one.tokenizer.convert_ids_to_tokens(row.ids) for one, row in ((classifier, old), (made, new))]
    assert pieces[0] == pieces[1]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_another_casing_turns_what_the_tokenizer_does_round(kind):
    classifier = tiny.transformer(kind)
    made = plant([], "tokenizer_mismatch", classifier=classifier, way="casing").classifier

    def tells_apart(one):
        first, second = one.tokens.rows([as_variant("The soup"), as_variant("the soup")])
        return first.ids != second.ids

    assert tells_apart(made) is not tells_apart(classifier)


def test_a_slow_tokenizer_is_refused_with_the_way_out():
    with pytest.raises(Unsupported, match="fast tokenizer"):
        plant([], "tokenizer_mismatch", classifier=tiny.transformer(tokenizer=tiny.bytes_tokenizer()))


def test_a_model_of_another_domain_must_have_the_same_labels():
    with pytest.raises(BadOption, match="other labels"):
        plant([], "wrong_domain", classifier=tiny.transformer(), other=tiny.transformer(labels=3))


def test_texts_are_cut_cased_or_lose_their_pair_and_highlights_cover_what_is_left():
    def made(way):
        return plant([PAIR], "changed_preprocessing", way=way, words=3).examples[0]

    assert (made("truncated").text, made("truncated").pair) == ("One Two three", "Eight nine Ten")
    assert made("truncated").highlights == (Span(4, 13), Span(0, 5, "pair"))
    assert made("upper").text == PAIR.text.upper()
    assert made("lower").pair == "eight nine ten."
    assert made("upper").highlights == PAIR.highlights
    assert (made("no_pair").pair, made("no_pair").highlights) == (None, (Span(4, 17),))
    with pytest.raises(BadData, match="without their second text"):
        plant([replace(PAIR, pair=None, highlights=None)], "changed_preprocessing", way="no_pair")


def test_a_typo_swaps_letters_inside_a_word():
    (made,) = plant([PAIR], "typos", words=1.0).examples
    for old, new in zip(Words(PAIR).strings, Words(made).strings, strict=True):
        assert sorted(old) == sorted(new)
        assert (old[0], old[-1]) == (new[0], new[-1])
    assert made.text != PAIR.text
    assert made.pair != PAIR.pair


def test_an_adversarial_typo_misleads_more_than_a_random_one_and_can_be_read():
    before, model = [*reviews(30, seed=3), PAIR], tiny.transformer()
    after = {name: plant(before, name, classifier=model, words=0.3).examples for name in ("typos", "adversarial_typos")}
    said = model.log_probs([as_variant(e) for e in before])
    ours = range(len(before)), said.argmax(1)
    left = {name: model.log_probs([as_variant(e) for e in made])[ours] for name, made in after.items()}
    assert left["adversarial_typos"].mean() < left["typos"].mean()
    assert left["adversarial_typos"].mean() < said[ours].mean()
    for old, new in zip(before, after["adversarial_typos"], strict=True):
        for was, now in zip(Words(old).strings, Words(new).strings, strict=True):
            assert sorted(was) == sorted(now)
            assert (was[0], was[-1]) == (now[0], now[-1])


def test_one_adversarial_typo_is_the_worst_of_all_swaps():
    model, text = tiny.transformer(), reviews(1, seed=3)[0].text
    (made,) = plant([Example("a", text)], "adversarial_typos", classifier=model, words=0.0, tries=99).examples
    swaps = [at for span in word_spans(text) for at in range(span.start + 1, span.end - 2)]
    all_ = [text[:at] + text[at + 1] + text[at] + text[at + 2 :] for at in swaps]
    answers = model.log_probs([as_variant(Example("a", one)) for one in [text, *all_]])
    assert made.text == [text, *all_][answers[:, answers[0].argmax()].argmin()]


def test_adversarial_typos_need_a_model_and_at_least_one_try():
    with pytest.raises(BadOption, match="the model that is to be misled"):
        plant([PAIR], "adversarial_typos")
    with pytest.raises(BadOption, match="tries must be at least 1"):
        plant([PAIR], "adversarial_typos", classifier=tiny.transformer(), tries=0)
