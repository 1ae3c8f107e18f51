"""Token rows: Hugging Face's own encoding, put together from known pieces, and aligned with words."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, normalizers
from transformers import PreTrainedTokenizerFast

import tiny
import unhans.tokens
from unhans.errors import BadModel, ModelFailed, Unsupported
from unhans.text import Hole, Words, as_variant
from unhans.tokens import Tokens, locate_tokens

NAMES = sorted(tiny.TOKENIZERS)
MASKED = ["bert", "roberta", "unigram", "boundless"]
PAIRED = [name for name in NAMES if name != "gpt"]
SPECIAL = ["[MASK]", "[SEP]", "[CLS]", "<mask>", "</s>", "<s>", "<pad>", "[UNK]", "<unk>", "<|endoftext|>", "\ue000"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "\u2028", "\u200b", "\ufeff", "\x1c", "\x00"]
WORDS = [
    *"ab日の!.,-'",
    "the",
    "soup",
    "don't",
    "film",
    "Grüße",
    "cafe\u0301",
    "😀",
    "👨\u200d👩\u200d👧",
    "x_y",
    "3.5",
    "ไทย",
    "ﬁ",
]
any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=25)
bits = st.sampled_from([*WORDS, *SPACES, *SPACES, *SPECIAL])
texts = st.lists(bits, max_size=16).map("".join) | any_text
long_texts = st.lists(st.sampled_from([*WORDS, " ", " "]), max_size=150).map("".join)
TOKENS: dict[tuple[str, int], Tokens] = {}


def tokens_of(name: str, limit: int = 10_000) -> Tokens:
    """One per tokenizer and limit for all tests, so that its memory is full of other texts' chunks."""
    return TOKENS.setdefault((name, limit), Tokens(tiny.TOKENIZERS[name](), limit))


def encoded(name: str, *texts: str, limit: int = 10_000, split: bool = True) -> dict[str, Any]:
    """What Hugging Face itself makes of a text or a pair."""
    found = tiny.TOKENIZERS[name]()(  # as a batch of one: a pair of "a" and "" would be taken for the text "a" alone
        *([text] for text in texts), truncation=True, max_length=limit, split_special_tokens=split, verbose=False
    )
    first = {key: value[0] for key, value in found.items()}
    control = tokens_of(name)._control.keys()
    if split:  # what we do about control words in the data is another test's subject
        assume(sum(token in control for token in first["input_ids"]) == frame_size(name, len(texts)))
    if not first["input_ids"]:  # a model without a frame cannot read nothing at all
        first["input_ids"] = [tiny.TOKENIZERS[name]().eos_token_id]
    return first


def frame_size(name: str, parts: int) -> int:
    """The number of control tokens around one text or two."""
    return len(tiny.TOKENIZERS[name]()(*["x"] * parts)["input_ids"]) - parts * len(
        tiny.TOKENIZERS[name]()("x", add_special_tokens=False)["input_ids"]
    )


def same(row: Any, wanted: dict[str, Any]) -> bool:
    types = wanted.get("token_type_ids")
    return list(row.ids) == list(wanted["input_ids"]) and (types is None or list(row.types) == list(types))


# -- rows


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150)
@given(text=texts)
def test_a_text_is_encoded_as_hugging_face_encodes_it(name: str, text: str) -> None:
    assert same(tokens_of(name).rows([as_variant(text)])[0], encoded(name, text))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50)
@given(text=texts, pair=texts)
def test_so_is_a_pair(name: str, text: str, pair: str) -> None:
    assert same(tokens_of(name).rows([as_variant((text, pair))])[0], encoded(name, text, pair))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(text=long_texts, limit=st.integers(5, 40))
def test_a_long_text_is_cut_where_hugging_face_cuts_it(name: str, text: str, limit: int) -> None:
    row = tokens_of(name, limit).rows([as_variant(text)])[0]

    assert same(row, encoded(name, text, limit=limit))
    assert len(row) <= limit
    assert row.cut == (len(encoded(name, text)["input_ids"]) > limit)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(text=long_texts, pair=long_texts, limit=st.integers(5, 40))
def test_of_a_long_pair_the_longer_part_gives_way_as_in_hugging_face(
    name: str, text: str, pair: str, limit: int
) -> None:
    row = tokens_of(name, limit).rows([as_variant((text, pair))])[0]

    assert same(row, encoded(name, text, pair, limit=limit))
    assert row.cut == (len(encoded(name, text, pair)["input_ids"]) > limit)


@given(text=long_texts, limit=st.integers(4, 40))
def test_a_tokenizer_that_cuts_on_the_left_is_followed(text: str, limit: int) -> None:
    tokenizer = tiny.bert_tokenizer.__wrapped__()
    tokenizer.truncation_side = "left"
    wanted = tokenizer(text, truncation=True, max_length=limit, split_special_tokens=True)

    assert same(Tokens(tokenizer, limit).rows([as_variant(text)])[0], wanted)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(text=texts, pair=st.none() | texts, data=st.data())
def test_an_edited_text_is_encoded_as_if_it_had_been_written_so(
    name: str, text: str, pair: str | None, data: st.DataObject
) -> None:
    words = Words(text if pair is None else (text, pair))
    assume(words)
    tokens = tokens_of(name)
    tokens.rows([words.variant({})])
    changed = data.draw(
        st.dictionaries(st.sampled_from(range(len(words))), st.sampled_from(["", "", "film", "日", "!"]))
    )
    variant = words.variant(changed)

    assert same(tokens.rows([variant])[0], encoded(name, *variant.texts))


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_what_was_asked_together(name: str) -> None:
    variants = [as_variant(text) for text in (*tiny.SENTENCES, "", " ", "a  b")]

    together = Tokens(tiny.TOKENIZERS[name](), 20).rows(variants)

    assert together == [Tokens(tiny.TOKENIZERS[name](), 20).rows([variant])[0] for variant in variants]


# -- holes and control tokens


@pytest.mark.parametrize("name", MASKED)
@settings(max_examples=80)
@given(text=st.lists(st.sampled_from([*WORDS, " ", " ", " ", "\n", "\t"]), max_size=14).map("".join), data=st.data())
def test_a_masked_word_is_what_the_mask_written_into_the_text_is(name: str, text: str, data: st.DataObject) -> None:
    words = Words(text)
    assume(words)
    position = data.draw(st.integers(0, len(words) - 1))
    span = words.spans[position]
    written = text[: span.start] + tiny.TOKENIZERS[name]().mask_token + text[span.end :]

    row = tokens_of(name).rows([words.without([position], Hole.MASK)])[0]

    assert same(row, encoded(name, written, split=False))


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("hole", Hole)
def test_each_hole_is_one_token_and_the_rest_stays(name: str, hole: Hole) -> None:
    tokens = tokens_of(name)
    words = Words("the soup was cold, not warm")
    row = tokens.rows([words.without([1, 5], hole)])[0]

    assert row.ids.count(tokens.hole_id(hole)) == 2
    kept = [tokens.rows([as_variant(bit)])[0].ids for bit in ("the", "was cold, ", "warm")]
    if tokens.chunkwise:
        assert set(kept[0]) <= set(row.ids)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("literal", SPECIAL)
def test_a_control_word_in_the_data_stays_text(name: str, literal: str) -> None:
    tokens = tokens_of(name)
    special = set(tokens.tokenizer.all_special_ids) - {tokens.tokenizer.unk_token_id}
    frame = [token for token in tokens.rows([as_variant("soup")])[0].ids if token in special]

    for text in (literal, f"the {literal} soup", f"the{literal}soup", literal * 3):
        for example in (text, Words(text).variant({0: "film"})):
            ids = tokens.rows([as_variant(example)])[0].ids
            found = [token for token in ids if token in special]
            assert found == frame


def test_hiding_words_needs_a_token_to_hide_them_by() -> None:
    words = Words("the soup")

    with pytest.raises(Unsupported, match="has no mask token: delete words instead of hiding them"):
        tokens_of("gpt").rows([words.without([0], Hole.MASK)])
    with pytest.raises(Unsupported, match="has no mask token: hide words by unk or pad, or delete them"):
        tokens_of("bytes").rows([words.without([0], Hole.MASK)])


# -- words and tokens


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100)
@given(text=texts, pair=st.none() | texts)
def test_every_token_of_the_text_has_a_word_and_no_control_token_has(name: str, text: str, pair: str | None) -> None:
    tokens = tokens_of(name)
    words = Words(text if pair is None else (text, pair))
    assume(len(words) and (pair is None or (len(Words(pair)) and len(Words(text)))))

    row, owners = tokens.row_of_words(words)

    assert row == tokens.rows([words.variant({})])[0]
    assert len(owners) == len(row)
    assert sum(owner == -1 for owner in owners) == frame_size(name, len(words.parts))
    assert set(owners) <= {-1, *range(len(words))}
    own = [owner for owner in owners if owner >= 0]
    assert own == sorted(own)


@pytest.mark.parametrize("name", sorted(tiny.FAST))
@settings(max_examples=100)
@given(text=texts)
def test_a_tokens_word_lies_under_the_characters_that_hugging_face_says(name: str, text: str) -> None:
    tokens = tokens_of(name)
    words = Words(text)
    assume(words)

    _, owners = tokens.row_of_words(words)

    encoded(name, text)  # without control words
    offsets = tokens.tokenizer(text, split_special_tokens=True, return_offsets_mapping=True)["offset_mapping"]
    for owner, (start, end) in zip(owners, offsets, strict=True):
        touched = [n for n, span in enumerate(words.spans) if span.start < end and start < span.end]
        if owner >= 0 and touched:
            assert owner in touched


@pytest.mark.parametrize("name", sorted(tiny.SLOW))
@pytest.mark.parametrize(
    "text",
    [
        "The soup was cold, really.",
        "Grüße aus Köln!",
        "日本語の映画",
        "a 😀 smile",
        "don't  well-made",
        "cafe\u0301 noir",
    ],
)
def test_a_slow_tokenizer_is_aligned_letter_by_letter(name: str, text: str) -> None:
    tokens = tokens_of(name)
    words = Words(text)
    row, owners = tokens.row_of_words(words)
    per_word = {
        number: [token for token, owner in zip(row.ids, owners, strict=True) if owner == number]
        for number in range(len(words))
    }

    for number, word in enumerate(words.strings):
        wanted = tokens.tokenizer(word, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        blank = tokens.tokenizer(" ", add_special_tokens=False)["input_ids"]
        assert [token for token in per_word[number] if token not in blank] == list(wanted)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "boundless"])  # its tokens lie across words
def test_words_beyond_the_limit_own_no_token_and_all_before_them_do(name: str) -> None:
    limit = 12
    words = Words("the soup was cold and the waiter did not care about it")
    row, owners = tokens_of(name, limit).row_of_words(words)

    read = {owner for owner in owners if owner >= 0}
    assert row.cut
    assert len(row) == limit
    assert read == set(range(len(read)))
    assert 0 < len(read) < len(words)


def test_tokens_are_found_in_the_text_by_their_letters() -> None:
    text = "Grüße, Café 😀 end"
    tokens = ["gru", "##ße", ",", "▁cafe", "[UNK]", "Ġend"]

    assert [text[start:end] for start, end in locate_tokens(text, tokens)] == ["Grü", "ße", ",", "Café", "😀", "end"]


@given(st.text(max_size=20), st.lists(st.text(max_size=4), max_size=8))
def test_whatever_the_tokens_are_they_get_a_place_inside_the_text(text: str, tokens: list[str]) -> None:
    for start, end in locate_tokens(text, tokens):
        assert 0 <= start <= end <= len(text)


# -- what the tokenizer is like


def test_which_tokenizers_work_chunk_by_chunk() -> None:
    assert {name for name in NAMES if tokens_of(name).chunkwise} == set(NAMES) - {"boundless"}


def test_a_tokenizer_that_takes_single_texts_only_says_so() -> None:
    tokenizer = tiny.bert_tokenizer.__wrapped__()
    tokens = Tokens(tokenizer, 32)
    tokens._templates[2] = None

    with pytest.raises(Unsupported, match="single texts only"):
        tokens.rows([as_variant(("a", "b"))])


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(BadModel, match="reads only 2 tokens"):
        Tokens(tiny.bert_tokenizer(), 2)


def test_known_chunks_are_not_tokenised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(tiny.bert_tokenizer(), 64)
    words = Words(tiny.SENTENCES[1])
    tokens.rows([words.variant({})])
    seen: list[str] = []
    real = tokens.tokenizer

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def __call__(self, strings: list[str], **how: Any) -> Any:
            seen.extend(strings)
            return real(strings, **how)

    tokens.tokenizer = Watched()
    tokens.rows([words.without([k]) for k in range(len(words))])

    chunks = {chunk for chunk in words.variant({}).parts[0] if isinstance(chunk, str)}
    assert not chunks & set(seen)
    assert len(seen) == len(set(seen)) <= len(words)


def test_the_memory_of_chunks_has_a_bound_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unhans.tokens, "_CACHED_CHUNKS", 50)
    tokens = Tokens(tiny.bert_tokenizer(), 32)
    fresh = tokens.rows([as_variant("the soup")])[0]

    for n in range(40):
        tokens.rows([as_variant(f"number {n} is {n * 7} and {n * 11}")])
        assert len(tokens._known) <= 50 + 10

    assert tokens.rows([as_variant("the soup")])[0] == fresh


def test_a_batch_larger_than_the_memory_is_still_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unhans.tokens, "_CACHED_CHUNKS", 5)
    tokens = Tokens(tiny.bert_tokenizer(), 32)
    texts = [f"text {n} of {n + 100}" for n in range(50)]

    for _ in range(2):
        assert [row.ids for row in tokens.rows(map(as_variant, texts))] == [
            tuple(tiny.bert_tokenizer()(text)["input_ids"]) for text in texts
        ]


@pytest.mark.parametrize("name", NAMES)
def test_threads_may_share_a_tokenizer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unhans.tokens, "_CACHED_CHUNKS", 5)
    tokens = Tokens(tiny.TOKENIZERS[name](), 64)
    texts = [[f"{thread} the soup {n} was {n * thread}" for n in range(30)] for thread in range(4)]
    found: dict[int, list[Any]] = {}

    def work(thread: int) -> None:
        found[thread] = [
            (tokens.rows([as_variant(text)])[0], tokens.row_of_words(Words(text))[1]) for text in texts[thread]
        ]

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    alone = Tokens(tiny.TOKENIZERS[name](), 64)
    for thread in range(4):
        assert found[thread] == [
            (alone.rows([as_variant(text)])[0], alone.row_of_words(Words(text))[1]) for text in texts[thread]
        ]


def test_a_tokenizer_whose_rules_blow_up_is_reported_and_not_a_crash() -> None:
    tokenizer = tiny.bert_tokenizer()._tokenizer.from_str(tiny.bert_tokenizer()._tokenizer.to_str())
    tokenizer.normalizer = normalizers.Replace(Regex("(a*)*$"), "b")
    hostile = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )

    with pytest.raises(ModelFailed, match="broke down on a text"):
        Tokens(hostile, 32).rows([as_variant("a" * 40 + "!")])
