"""Words: what a person clicks on, for every string there is."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import pytest
import regex
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unhans.errors import BadOption
from unhans.text import Hole, Variant, Words, as_variant, visible_form, word_spans
from unhans.types import Edit, Example, Span

# Signs that are apt to be cut wrongly: marks, joiners, flags, jamo, prefixes, hidden and control characters, …
ODD = [
    *"abzß.,:;-'’!?#@_/()\" 3579½²",
    *["\u0301", "\u0308", "\u20e3", "\ufe0f", "\u0e31", "\u093f", "\u094d", "\u17d2", "\u0345"],
    *["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2028", "\u00a0", "\u3000", "\u2009"],
    *["\x00", "\x07", "\x1c", "\x85", "\t", "\n", "\r", "\r\n"],
    *["👩", "👧", "👍🏽", "❤️", "👨\u200d👩\u200d👧", "🇩", "🇪", "🇫🇷", "🏴\U000e0067\U000e007f", "1️⃣"],
    *["ᄀ", "ᅡ", "ᆨ", "각", "日", "の", "カ", "ー", "〇", "ไ", "ท", "ย", "မ", "ក", "བོ"],
    *["क", "ष", "س", "ل", "א", "שָׁ", "é", "e\u0301", "𝒳", "\u0600", "\u06dd", "\u0d4e", "\U000110bd"],
    *["http://", "https://x.y", "don't", "U.S.", "well-made", "[MASK]", "</s>", "  ", "\ud83d", "\U0010ffff"],
]
any_text = st.text(st.characters(exclude_categories=()), max_size=25)
odd_text = st.lists(st.sampled_from(ODD), max_size=14).map("".join)
texts = odd_text | any_text | st.tuples(odd_text, any_text, odd_text).map("".join)
inputs = texts | st.tuples(texts, texts)
more = settings(max_examples=400)
VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}]")
OWNS_A_BLANK = regex.compile(r" [\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}]")


def grapheme_ends(text: str) -> set[int]:
    """Where a reader sees a character end; computed from the front, apart from any word."""
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


def words_of(text: str) -> list[str]:
    return [text[span.start : span.end] for span in word_spans(text)]


# -- cutting


@more
@given(texts)
def test_words_stand_in_order_and_do_not_overlap(text: str) -> None:
    spans = word_spans(text)

    assert all(span.start < span.end for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert all(span.end <= len(text) for span in spans)


@more
@given(texts)
def test_no_word_begins_or_ends_inside_a_grapheme(text: str) -> None:
    ends = grapheme_ends(text)

    assert all({span.start, span.end} <= ends for span in word_spans(text))


@more
@given(texts)
def test_every_visible_character_belongs_to_a_word_and_every_word_has_one(text: str) -> None:
    covered = {place for span in word_spans(text) for place in range(span.start, span.end)}

    assert {match.start() for match in VISIBLE.finditer(text)} <= covered
    assert all(VISIBLE.search(word) for word in words_of(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't", ["I", "don't"]),
        ("I don’t", ["I", "don’t"]),
        ("a well-made film", ["a", "well-made", "film"]),
        ("'quoted' -- so", ["'", "quoted", "'", "-", "-", "so"]),
        ("the U.S. army", ["the", "U.S", ".", "army"]),
        ("e.g. this", ["e.g", ".", "this"]),
        ("end.Next", ["end", ".", "Next"]),
        ("x.yz ab.c", ["x", ".", "yz", "ab", ".", "c"]),
        ("3.5 of 1,000.25 at 12:30.", ["3.5", "of", "1,000.25", "at", "12:30", "."]),
        ("50%", ["50", "%"]),
        ("snake_case", ["snake_case"]),
        ("#tag @user # alone", ["#tag", "@user", "#", "alone"]),
        ("see https://x.org/a?b=c#d now", ["see", "https://x.org/a?b=c#d", "now"]),
        ("good!!", ["good", "!", "!"]),
        ("a 👨\u200d👩\u200d👧 b", ["a", "👨\u200d👩\u200d👧", "b"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("I ❤️ it", ["I", "❤️", "it"]),
        ("日本語の映画", ["日", "本", "語", "の", "映", "画"]),
        ("カメラは", ["カメラ", "は"]),
        ("한국어 좋아요", ["한국어", "좋아요"]),
        ("مرحبا بالعالم!", ["مرحبا", "بالعالم", "!"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("ไทยดี", ["ไ", "ท", "ย", "ดี"]),
        ("हिन्दी है", ["हिन्दी", "है"]),
        ("go\u200bod", ["go\u200bod"]),
        ("go\u00adod\u200b", ["go\u00adod"]),
        ("cafe\u0301 café", ["cafe\u0301", "café"]),
        ("say [MASK] or </s>", ["say", "[", "MASK", "]", "or", "<", "/", "s", ">"]),
        ("GPT4all 2nd x²", ["GPT4all", "2nd", "x²"]),
        ("line\nbreak\ttab\u00a0hard", ["line", "break", "tab", "hard"]),
        ("\ufeffstart", ["start"]),
        (" \u200b\t\n\u3000", []),
        ("", []),
    ],
)
def test_words_are_what_a_person_would_click_on(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_positions_are_code_points() -> None:
    assert word_spans("😀 love", "pair") == [Span(0, 1, "pair"), Span(2, 6, "pair")]


# -- equal-looking words


@pytest.mark.parametrize(
    "others",
    [
        ("café", "cafe\u0301", "CAFÉ", "CAFE\u0301"),
        ("good", "Good", "go\u200bod", "go\u00adod", "\ufeffgood", "go\x07od"),
        ("straße", "STRASSE", "Straße"),
        ("각", "각"),
    ],
    ids=lambda others: others[0],
)
def test_words_that_look_equal_count_together(others: Sequence[str]) -> None:
    assert len({visible_form(word) for word in others}) == 1


@given(texts)
def test_the_visible_form_does_not_depend_on_composition_and_is_final(text: str) -> None:
    form = visible_form(text)

    assert visible_form(unicodedata.normalize("NFD", text)) == form
    assert visible_form(unicodedata.normalize("NFC", text)) == form
    assert visible_form(form) == form


def test_different_words_keep_different_forms() -> None:
    words = ["good", "goods", "gut", "日", "日本", "é", "e", "3.5", "35", "!", "👩", "👧"]

    assert len({visible_form(word) for word in words}) == len(words)


# -- variants


@more
@given(inputs)
def test_a_text_without_changes_is_itself(text: str | tuple[str, str]) -> None:
    raw = (text,) if isinstance(text, str) else text

    assert as_variant(text).texts == raw
    assert Words(text).variant({}) == as_variant(text)
    assert Words(text).variant({}).texts == raw


@more
@given(inputs)
def test_putting_every_word_in_its_own_place_changes_nothing(text: str | tuple[str, str]) -> None:
    words = Words(text)

    assert words.variant(dict(enumerate(words.strings))).texts == words.parts


@more
@given(inputs)
def test_words_and_what_lies_between_them_make_up_the_text(text: str | tuple[str, str]) -> None:
    words = Words(text)
    chunks = words.chunks

    for number, raw in enumerate(words.parts):
        own = [chunk for chunk in chunks if chunk.part == number]
        assert "".join(chunk.raw for chunk in own) == raw
        assert tuple(chunk.raw for chunk in own) == as_variant(raw).parts[0]
    assert [word for chunk in chunks for word in chunk.words] == list(range(len(words)))
    for chunk in chunks:
        assert "".join(chunk.strings[p] if isinstance(p, int) else p for p in chunk.pieces) == chunk.raw


@more
@given(inputs)
@example("\u0d4e abc d")
@example(" \U000191d3 0")
def test_when_all_words_go_nothing_visible_stays(text: str | tuple[str, str]) -> None:
    words = Words(text)

    assert not any(VISIBLE.search(part) for part in words.without(range(len(words))).texts)


@more
@given(inputs, st.data())
@example("end.Next", None)
@example("don!'t", None)
@example("#!tag", None)
@example("🇩!🇪🇫", None)
@example("a.b日c", None)
@example("日U.S", None)
@example("http!://x", None)
@example("a\u200b!\u200bb", None)
def test_deleting_words_leaves_the_others_as_they_were(text: str | tuple[str, str], data: st.DataObject | None) -> None:
    """Neighbours that would run into one another are kept apart by a blank."""
    words = Words(text)
    assume(not any(OWNS_A_BLANK.search(raw) for raw in words.parts))  # " ´" is one grapheme: the blank is the word's
    one_by_one = [{position} for position in range(len(words))]
    chosen = one_by_one if data is None else [data.draw(st.sets(st.sampled_from(range(len(words)))))] if words else []

    for gone in chosen:
        left = [string for number, string in enumerate(words.strings) if number not in gone]
        after = words.without(gone).texts
        assert list(Words(after if len(after) == 2 else after[0]).strings) == left


@given(inputs, st.data())
def test_a_deletion_touches_only_the_chunk_of_the_word(text: str | tuple[str, str], data: st.DataObject) -> None:
    words = Words(text)
    assume(words)
    position = data.draw(st.integers(0, len(words) - 1))
    part = words.spans[position].part == "pair"
    before, after = words.variant({}).parts, words.without([position]).parts

    assert [p for n, p in enumerate(after) if n != part] == [p for n, p in enumerate(before) if n != part]
    assert len(set(after[part]) - set(before[part])) <= 2


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a good film", [1], "a film"),
        ("a good film", [0], "good film"),
        ("a good film", [2], "a good"),
        ("a  good  film", [1], "a  film"),
        ("  a film", [0], "  film"),
        ("good film ", [1], "good "),
        ("Good, really.", [1], "Good really."),
        ('"Good" (so)', [1], '"" (so)'),
        ("a\ngood\nfilm", [1], "a\n\nfilm"),
        ("a\n  good film", [1], "a\n film"),
        ("a\n (good) film", [2], "a\n () film"),
        ("日本語", [1], "日語"),
        ("one", [0], ""),
        ("and/or", [1], "and or"),
    ],
)
def test_deletions_read_naturally(text: str, gone: list[int], left: str) -> None:
    assert Words(text).without(gone).texts == (left,)


@more
@given(inputs, st.data())
def test_an_edit_undone_gives_the_text_back(text: str | tuple[str, str], data: st.DataObject) -> None:
    words = Words(text)
    assume(words)
    position = data.draw(st.integers(0, len(words) - 1))
    edit = Edit(position, words.strings[position], data.draw(st.sampled_from(["better", "日", "!", "x-y", "7"])))
    after = words.edited([edit]).texts
    assume(sum(map(len, after)) == sum(map(len, words.parts)) - len(edit.old) + len(edit.new))  # nothing kept apart
    edited = Words(after if len(after) == 2 else after[0])
    assume(edited.strings[position : position + 1] == (edit.new,))  # a new word of several words has no inverse

    assert edited.edited([Edit(position, edit.new, edit.old)]).texts == words.parts


@more
@given(inputs, st.data())
@example("x#?\u2060a", None)
@example("end.Next", None)
def test_a_new_word_stays_a_word_among_its_neighbours(text: str | tuple[str, str], data: st.DataObject | None) -> None:
    words = Words(text)
    assume(words)
    assume(not any(OWNS_A_BLANK.search(raw) for raw in words.parts))
    positions = range(len(words)) if data is None else [data.draw(st.integers(0, len(words) - 1))]
    new = "better" if data is None else data.draw(st.sampled_from(["better", "日", "!", "x-y", "7"]))

    for position in positions:
        after = words.variant({position: new}).texts
        expected = [*words.strings]
        expected[position] = new
        assert list(Words(after if len(after) == 2 else after[0]).strings) == expected


@pytest.mark.parametrize("edit", [Edit(5, "a", "b"), Edit(-1, "film", "b"), Edit(1, "god", "b")])
def test_an_edit_of_a_word_that_is_not_there_is_refused(edit: Edit) -> None:
    with pytest.raises(BadOption, match="is not"):
        Words("a good film").edited([edit])


def test_words_are_numbered_across_both_parts() -> None:
    words = Words(("a film", "so good"))

    assert words.strings == ("a", "film", "so", "good")
    assert [span.part for span in words.spans] == ["text", "text", "pair", "pair"]
    assert words.variant({0: "", 3: "bad"}).texts == ("film", "so bad")


def test_an_example_and_its_texts_have_the_same_words() -> None:
    assert Words(Example("1", "a film", "so good")).spans == Words(("a film", "so good")).spans


# -- holes


@pytest.mark.parametrize("hole", Hole)
def test_a_hole_stands_where_the_word_stood(hole: Hole) -> None:
    variant = Words("so (good) film").without([2], hole)

    assert variant.parts == (("so", (" (", hole, ")"), " film"),)
    assert variant.has_holes


def test_a_hole_keeps_its_neighbours_apart_without_a_blank() -> None:
    assert Words("end.Next").without([1], Hole.MASK).parts == ((("end", Hole.MASK, "Next"),),)


def test_a_new_first_word_does_not_begin_with_a_blank_even_beside_a_hole() -> None:
    words = Words("bad (good) film")

    assert words.variant({0: "", 2: Hole.MASK}).parts[0][0] == ("(", Hole.MASK, ")")
    assert words.variant({0: Hole.MASK}).parts[0] == ((Hole.MASK,), " (good)", " film")


def test_a_text_with_holes_has_no_plain_form() -> None:
    with pytest.raises(BadOption, match="no plain form"):
        _ = Words("a film").without([0], Hole.UNK).texts


def test_a_literal_mask_is_no_hole() -> None:
    assert not as_variant("a [MASK] </s> <mask>").has_holes


@given(inputs, st.data())
def test_equal_changes_make_equal_variants_and_different_ones_do_not(
    text: str | tuple[str, str], data: st.DataObject
) -> None:
    words = Words(text)
    assume(words)
    some = data.draw(st.sets(st.sampled_from(range(len(words)))))
    other = data.draw(st.sets(st.sampled_from(range(len(words)))))
    one, two = words.without(some, Hole.MASK), words.without(other, Hole.MASK)

    assert (hash(one), one) == (hash(words.without(some, Hole.MASK)), words.without(some, Hole.MASK))
    assert (one == two) == (some == other)


@pytest.mark.parametrize("odd", [3, None, b"bytes", ("a",), ("a", "b", "c"), ("a", 1)])
def test_what_is_no_text_is_refused(odd: object) -> None:
    with pytest.raises(BadOption, match="A text is a string, a pair of strings or an Example"):
        as_variant(odd)  # type: ignore[arg-type]


def test_a_variant_is_taken_as_it_is() -> None:
    variant = Variant((("a", " b"),))

    assert as_variant(variant) is variant


# -- words that are gone, and larger units


def test_words_that_are_gone_are_in_no_variant():
    words = Words("The soup was cold. Never again", gone=[5, 6])
    assert words.open == (0, 1, 2, 3, 4)
    assert words.variant({}).texts == ("The soup was cold.",)
    assert words.without([1]).texts == ("The was cold.",)
    assert words.strings[6] == "again"


def test_gone_words_at_the_start_leave_no_blank():
    assert Words("one two three", gone=[0]).variant({}).texts == ("two three",)


@pytest.mark.parametrize(
    ("text", "units", "expected"),
    [
        ("The soup was cold. Never again!", "sentence", ["The soup was cold.", "Never again!"]),
        ("a fine film . see it", "sentence", ["a fine film .", "see it"]),
        ("It cost 3.5 euros. fine", "sentence", ["It cost 3.5 euros. fine"]),
        ("What?! Who said “no.” Me", "sentence", ["What?!", "Who said “no.”", "Me"]),
        ("one line\nanother line", "sentence", ["one line", "another line"]),
        ("warm, funny and short; but loud", "phrase", ["warm,", "funny", "and short;", "but loud"]),
        ("日本語の映画。とても良い", "sentence", ["日本語の映画。", "とても良い"]),
    ],
)
def test_sentences_and_phrases(text, units, expected):
    assert list(Words(text, units=units).strings) == expected


def test_a_unit_is_erased_and_replaced_as_a_whole():
    words = Words("The soup was cold. Never again!", units="sentence")
    assert words.without([0]).texts == ("Never again!",)
    assert words.variant({1: "Fine."}).texts == ("The soup was cold. Fine.",)
    assert words.without([1], Hole.MASK) == Words("The soup was cold. Never again!").without([5, 6, 7], Hole.MASK)


def test_units_do_not_reach_across_parts_nor_from_read_to_unread_words():
    words = Words(("One two", "three four"), units="sentence", gone=[3])
    assert words.strings == ("One two", "three", "four")
    assert words.open == (0, 1)
