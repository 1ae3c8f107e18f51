"""Feedback survives its way through files, and files of others do no harm."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example as case
from hypothesis import given, settings
from hypothesis import strategies as st

from unhans.errors import BadData, BadOption
from unhans.exchange import (
    FORMATS,
    Refusal,
    Written,
    by_example,
    finder,
    labelling_config,
    read_feedback,
    read_rationales,
    write_documents,
    write_feedback,
    write_rationales,
)
from unhans.feedback import subject_of, value_of
from unhans.text import Words
from unhans.types import (
    Example,
    Feedback,
    FlipRating,
    NeighbourRating,
    Relabel,
    Review,
    Ruling,
    Verdict,
    WordVote,
    to_json,
)

AT = "2026-01-02T03:04:05+00:00"
LOGS = [name for name, format in FORMATS.items() if format.is_log]
RATIONALES = [name for name, format in FORMATS.items() if not format.is_log]


def written(entries, format):
    file = io.BytesIO()
    assert write_feedback(entries, file, format) == len(entries)
    return file.getvalue()


def read(raw, format, **options):
    return list(read_feedback(io.BytesIO(raw), format, **options))


def exported(opinions, examples, format):
    file = io.BytesIO()
    told = write_rationales(by_example(opinions, examples), file, format)
    return file.getvalue(), told


def imported(raw, format, examples, **options):
    raw = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    given_ = {"find": finder(examples), "revision": "r", "at": AT} | options
    return list(read_rationales(io.BytesIO(raw), format, **given_))


def what(entries):
    """Who said what, without what an import makes up."""
    assert not [entry for entry in entries if isinstance(entry, Refusal)]
    return {(e.author, subject_of(e.says), value_of(e.says), getattr(e.says, "note", ""), e.text_hash) for e in entries}


def votes(entries):
    return [
        (one.says.position, one.says.word, one.says.vote, one.says.label)
        for one in entries
        if one.says.kind == "word_vote"
    ]


def said(author, says, example=None):
    hash_ = None if example is None else example.text_hash
    return Feedback(f"id{author}{subject_of(says)}"[:400], says, author, AT, "r", hash_)


def vote(author, example, position, value="raise", label="pos"):
    return said(author, WordVote(Words(example).strings[position], label, value, example.id, position), example)


# The log

CLEAN = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=8)
NAMES = CLEAN | st.sampled_from(
    [
        "=1+1",
        "'=1",
        "''",
        "'",
        "-",
        "'-'",
        "@a",
        "\tx",
        "\rx",
        "'\t",
        "a\r\nb",
        "\n",
        '"',
        ",",
        ";",
        "__proto__",
        "😀",
        "שלום",
        "\u2028",
        "\ufeff",
    ]
)
FULL = NAMES.filter(bool)
RATINGS = st.integers(1, 5)
ANSWERS = st.one_of(
    st.builds(
        WordVote, NAMES, NAMES, st.sampled_from(["raise", "lower"]), st.none() | FULL, st.none() | st.integers(0, 9)
    ),
    st.builds(FlipRating, NAMES, *[st.none() | RATINGS] * 3, st.none() | FULL),
    st.builds(NeighbourRating, NAMES, NAMES, RATINGS),
    st.builds(Relabel, NAMES, st.none() | FULL),
    st.builds(Review, NAMES, st.sampled_from(["done", "skipped", "flagged"]), NAMES),
    st.builds(Ruling, NAMES, NAMES),
    st.builds(Verdict, NAMES, RATINGS, st.just("labels_wrong"), st.none() | FULL, st.booleans(), NAMES),
    st.builds(Verdict, NAMES, RATINGS, st.just("other"), st.none(), st.booleans(), NAMES.filter(str.strip)),
)
ENTRIES = st.builds(
    Feedback,
    FULL,
    ANSWERS,
    FULL,
    st.datetimes(timezones=st.timezones() | st.none()).map(lambda time: time.isoformat()),
    FULL,
    st.none() | FULL,
    st.none() | FULL,
    st.none() | st.floats(0, 1e6),
)


@pytest.mark.parametrize("format", LOGS)
@settings(max_examples=200)
@given(entries=st.lists(ENTRIES, max_size=4))
def test_the_log_comes_back_as_it_was(format, entries):
    assert read(written(entries, format), format) == entries


def test_csv_cells_are_no_formulas_and_come_back():
    odd = ["=1+1", "+1", "-1", "@a", "\tx", "\rx", "'=1", "''=1", "'t", "'"]
    entries = [said(word, Relabel(word, word)) for word in odd]
    raw = written(entries, "csv")
    rows = list(csv.DictReader(io.StringIO(raw.decode(), newline="")))
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row["label"] for row in rows[-2:]] == ["'t", "'"]
    assert read(raw, "csv") == entries


def test_csv_has_a_column_for_everything_and_keeps_the_operation():
    raw = written([said("a", WordVote("bad", "pos", "lower", "x", 3))], "csv").decode()
    header = (
        "id,author,at,revision,text_hash,retracts,seconds,kind,example,word,position,label,vote,"
        "counterfactual,plausible,meaningful,agrees,anchor,train,similar,state,note,subject,value,"
        "model,deploy,reason,method,explanation_first"
    )
    assert raw.splitlines()[0] == header
    assert ",word_vote,x,bad,3,pos,lower,," in raw


def test_csv_that_went_through_a_spreadsheet_is_read():
    entry = said("a", Relabel("x", "pos"))
    rows = list(csv.reader(io.StringIO(written([entry], "csv").decode())))
    file = io.StringIO()
    csv.writer(file, delimiter=";").writerows(rows)
    assert read(b"\xef\xbb\xbf" + file.getvalue().encode(), "csv") == [entry]


def test_an_empty_id_in_csv_is_none():
    entry = said("a", WordVote("w", "pos", "raise", ""))
    assert read(written([entry], "csv"), "csv") == [replace(entry, says=replace(entry.says, example=None))]


def test_a_csv_without_a_usable_header_is_no_log():
    with pytest.raises(BadData, match="two columns"):
        read(b"id,id\n1,2\n", "csv")


GOOD = json.loads(to_json(said("a", Relabel("x", "pos"))))


def broken(**changes):
    return json.dumps({**GOOD, **changes}).encode()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "invalid JSON"),
        (b"[]", "not an object"),
        (b'{"id": "1", "id": "2"}', "a key occurs twice"),
        (b"[" * 100_000, "invalid JSON"),
        (b'{"a":' * 50_000, "invalid JSON"),
        (broken(seconds=float("nan")), "NaN is not a JSON number"),
        (broken().replace(b"null", b"1e999"), "text_hash"),
        (broken(seconds=0).replace(b": 0}", b": 1e999}"), "seconds is not a duration"),
        (broken(seconds=-1), "seconds is not a duration"),
        (broken(seconds=0).replace(b": 0}", b": " + b"9" * 5000 + b"}"), "thousands of digits"),
        (broken(author=""), "author must have 1 to 500 characters"),
        (broken(author="a" * 501), "author must have 1 to 500 characters"),
        (broken(author=["a"]), "author is no plain value"),
        (broken(at="yesterday"), "ISO 8601"),
        (broken(says=None), "there is no answer"),
        (broken(says={"kind": "poem"}), "says: "),
        (broken(says={"kind": "word_vote", "word": "w", "label": "l", "vote": "remove"}), "raise"),
        (
            broken(says={"kind": "flip_rating", "counterfactual": "c", "plausible": 6, "meaningful": 1, "agrees": 1}),
            "5",
        ),
        (broken(says={"kind": "relabel", "example": "x", "label": "l" * 100_001}), "longer than 100,000"),
        (
            broken(
                says={"kind": "word_vote", "word": "w", "label": "l", "vote": "raise", "example": "x", "position": -1}
            ),
            "position",
        ),
    ],
)
def test_a_bad_line_is_refused_and_the_others_are_read(line, reason):
    good = written([said("a", Relabel("x", "pos"))], "jsonl")
    first, refusal, last = read(good + line + b"\n" + good, "jsonl")
    assert first == last == said("a", Relabel("x", "pos"))
    assert isinstance(refusal, Refusal)
    assert str(refusal).startswith("Line 2: ")
    assert reason in str(refusal)


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("position", "1.5", "position"),
        ("position", "x", "position"),
        ("kind", "", "says"),
        ("vote", "remove", "vote"),
        ("seconds", "soon", "seconds"),
    ],
)
def test_a_bad_row_is_refused_and_the_others_are_read(column, cell, reason):
    entry = said("a", WordVote("w", "pos", "raise", "x", 3))
    rows = list(csv.reader(io.StringIO(written([entry] * 3, "csv").decode())))
    rows[2][rows[0].index(column)] = cell
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    first, refusal, last = read(file.getvalue().encode(), "csv")
    assert first == last == entry
    assert str(refusal).startswith("Line 3: ")
    assert reason in str(refusal)


def test_text_of_the_log_is_cleaned_as_at_the_data_door():
    raw = broken(says={"kind": "relabel", "example": "a\x00b", "label": "\ud83d"}) + b"\n"
    assert read(raw, "jsonl")[0].says == Relabel("ab", "\ufffd")
    assert read(broken(author="caf~").replace(b"~", b"\xe9") + b"\n", "jsonl")[0].author == "caf\ufffd"


def test_there_is_a_limit_and_the_last_refusal_says_so():
    raw = written([said("a", Relabel(str(n), "pos")) for n in range(5)], "jsonl")
    *entries, refusal = read(raw, "jsonl", limit=3)
    assert len(entries) == 3
    assert str(refusal) == "Line 4: only the first 3 are read; split the file."


def test_files_stay_open_and_formats_are_checked_at_once():
    for format in LOGS:
        file = io.BytesIO()
        write_feedback([], file, format)
        assert not file.closed
        assert list(read_feedback(file, format)) == []
        assert not file.closed
    with pytest.raises(BadOption, match="jsonl, csv"):
        read_feedback(io.BytesIO(), "prodigy")
    with pytest.raises(BadOption, match="eraser, prodigy, label_studio"):
        read_rationales(io.BytesIO(), "csv", find=finder([]), revision="r", at=AT)
    with pytest.raises(BadOption, match="jsonl, csv"):
        write_feedback([], io.BytesIO(), "xml")


def test_the_log_is_read_a_line_at_a_time():
    lines = iter([written([said("a", Relabel("x", "pos"))], "jsonl")] * 200_000)

    class Endless(io.RawIOBase):
        taken = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            line = next(lines, b"")
            self.taken += len(line)
            buffer[: len(line)] = line
            return len(line)

    file = Endless()
    entries = read_feedback(file, "jsonl")
    next(entries)
    assert file.taken < 100_000
    entries.close()


# Rationales

FILM = Example("film", "😀 A truly bad, bad film.", label="neg")
PAIR = Example("שלום", "👨‍👩‍👧 אני אוהב 🎉 זה!", "It's   not\nbad", label="__proto__")
LABELS = ["neg", "pos", "__proto__", "a:b", '<&">', "א"]


def texts():
    words = st.sampled_from(
        [
            "good",
            "bad",
            "😀",
            "👩🏽‍🚀",
            "don't",
            "זה",
            "🇩🇪",
            ",",
            "!",
            " ",
            "\n",
            "\u00a0\u0308",
            "a\u0301",
            "很",
            "𝒳",
            "'",
        ]
    )
    return st.lists(words, min_size=1, max_size=9).map(" ".join) | st.lists(words, min_size=1, max_size=9).map("".join)


@st.composite
def judged_examples(draw):
    examples = [
        Example(id_, draw(texts()), draw(st.none() | texts()), draw(st.none() | st.sampled_from(LABELS)))
        for id_ in draw(
            st.lists(st.sampled_from(["1", "__proto__", "x y", "😀", "a@b", '"', "=1"]), unique=True, max_size=3)
        )
    ]
    opinions = []
    for one in examples:
        for author in draw(st.lists(st.sampled_from(["ann", "bob@example.org", "constructor"]), unique=True)):
            places = (
                st.tuples(st.integers(0, len(Words(one)) - 1), st.sampled_from(LABELS))
                if len(Words(one))
                else st.nothing()
            )
            marks = (
                draw(st.dictionaries(places, st.sampled_from(["raise", "lower"]), max_size=4))
                if len(Words(one))
                else {}
            )
            opinions += [vote(author, one, position, value, label) for (position, label), value in marks.items()]
            if draw(st.booleans()):
                opinions.append(said(author, Relabel(one.id, draw(st.none() | st.sampled_from(LABELS))), one))
            if draw(st.booleans()):
                state = draw(st.sampled_from(["done", "skipped", "flagged"]))
                opinions.append(
                    said(author, Review(one.id, state, draw(st.sampled_from(["", "look\n again 😀"]))), one)
                )
    return examples, opinions


@pytest.mark.parametrize("format", RATIONALES)
@settings(max_examples=100)
@given(judged=judged_examples())
def test_what_people_marked_comes_back_as_it_was(format, judged):
    examples, opinions = judged
    raw, told = exported(opinions, examples, format)
    assert told == Written(len(opinions), 0)
    found = imported(raw, format, examples, labels=LABELS)
    assert what(found) == what(opinions)
    assert len(found) == len(opinions)
    assert len({entry.id for entry in found}) == len(found)
    assert imported(raw, format, examples) == found


@pytest.mark.parametrize("format", RATIONALES)
def test_what_a_format_has_no_place_for_is_left_out_and_counted(format):
    opinions = [
        vote("a", FILM, 1),
        said("a", WordVote("bad", "pos", "raise", "film"), FILM),  # no particular occurrence
        said("a", WordVote("good", "pos", "raise", "film", 1), FILM),  # the text has another word there
        said("a", WordVote("film", "pos", "raise", "film", 99), FILM),
        said("a", WordVote("bad", "pos", "raise", "film", -5), FILM),
    ]
    raw, told = exported([*opinions, said("a", WordVote("bad", "pos", "raise"))], [FILM, PAIR], format)
    assert told == Written(1, 4)
    assert votes(imported(raw, format, [FILM])) == [(1, "A", "raise", "pos")]
    assert FORMATS[format].carries == {"word_vote", "relabel", "review"}


@pytest.mark.parametrize("format", RATIONALES)
def test_authors_can_be_mapped_and_unknown_labels_are_refused(format):
    raw, _ = exported([vote("ann", FILM, 1), vote("bob", FILM, 2, label="new")], [FILM], format)
    found = imported(raw, format, [FILM], author=lambda name: f"old-{name}", labels=["pos"])
    assert {entry.author for entry in found if isinstance(entry, Feedback)} == {"old-ann"}
    assert [refusal.reason for refusal in found if isinstance(refusal, Refusal)] == ["there is no label 'new'."]


@pytest.mark.parametrize("format", RATIONALES)
def test_marks_on_another_text_are_refused(format):
    raw, _ = exported([vote("a", FILM, 1)], [FILM], format)
    changed = replace(FILM, text="Quite another text.")
    (refusal,) = imported(raw, format, [changed])
    assert isinstance(refusal, Refusal)
    (unknown,) = imported(raw, format, [])
    assert "no example" in str(unknown)


@pytest.mark.parametrize("format", ["prodigy", "label_studio"])
def test_examples_are_found_by_their_text_when_the_id_is_unknown(format):
    raw, _ = exported([vote("a", PAIR, 7, "lower"), vote("a", PAIR, 0)], [PAIR], format)
    renamed = replace(PAIR, id="other")
    assert {entry.says.example for entry in imported(raw, format, [renamed])} == {"other"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["raise:pos", "done", 10**30, -1, "\ud83d", "a\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def with_change(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = with_change(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("format", RATIONALES)
@settings(max_examples=250)
@given(data=st.data())
def test_no_change_to_a_file_makes_reading_fail(format, data):
    opinions = [vote("a", FILM, 1), vote("a", FILM, 3, "lower"), said("a", Review("film", "done", "n"), FILM)]
    opinions += [said("a", Relabel("film", "pos"), FILM), vote("b", FILM, 2)]
    raw, _ = exported(opinions, [FILM], format)
    record = json.loads(raw) if FORMATS[format].suffix == ".json" else json.loads(raw.splitlines()[0])
    if format == "eraser" and data.draw(st.booleans()):
        del record["operations"]
    path = data.draw(st.sampled_from(list(places(record))))
    changed = with_change(record, path, data.draw(JSON))
    for entry in imported(json.dumps(changed).encode(), format, [FILM]):
        assert isinstance(entry, Refusal) or to_json(entry)


@pytest.mark.parametrize("format", RATIONALES)
@settings(max_examples=100)
@given(raw=st.binary(max_size=40))
@case(raw=b"[{")
@case(raw=b"[[[[")
@case(raw=b"{}\n\n{}")
@case(raw=b"[null, 1, {}]")
@case(raw=b'{"text": NaN}')
@case(raw=b"[" * 100_000)
def test_bytes_of_any_kind_are_refused_without_a_crash(format, raw):
    assert all(isinstance(entry, Refusal) for entry in imported(raw, format, [FILM]))


def test_marks_that_would_flood_memory_are_refused():
    text = Example("long", "a " * 5_000)
    spans = [{"start": 0, "end": 10_000, "label": f"raise:{n}"} for n in range(1_000)]
    (refusal,) = imported({"text": text.text, "spans": spans}, "prodigy", [text])
    assert "the marks cover more than 200,000 words." in str(refusal)
    (refusal,) = imported({"text": text.text, "spans": [{}] * 10_001}, "prodigy", [text])
    assert "more than 10,000 elements" in str(refusal)


# ERASER


def test_eraser_has_raised_words_as_evidence_and_all_votes_as_operations():
    opinions = [vote("a", FILM, n, label="neg") for n in (3, 2, 6)] + [
        vote("a", FILM, 1, "lower", "neg"),
        vote("a", FILM, 0),
    ]
    raw, _ = exported(opinions, [FILM], "eraser")
    record = json.loads(raw)
    assert (record["annotation_id"], record["classification"], record["docids"]) == ("film@a", "neg", ["film"])
    assert record["evidences"] == [
        [
            {
                "docid": "film",
                "start_token": 2,
                "end_token": 4,
                "start_sentence": 0,
                "end_sentence": 1,
                "text": "truly bad",
            }
        ],
        [{"docid": "film", "start_token": 6, "end_token": 7, "start_sentence": 0, "end_sentence": 1, "text": "film"}],
    ]
    assert [(one["position"], one["operation"]) for one in record["operations"]] == [
        (0, "raise"), (1, "lower"), (2, "raise"), (3, "raise"), (6, "raise"),
    ]  # fmt: skip


@settings(max_examples=100)
@given(judged_examples())
def test_eraser_tokens_are_those_of_the_documents(judged):
    examples, opinions = judged
    raw, _ = exported(opinions, examples, "eraser")
    file = io.BytesIO()
    assert write_documents(examples, file) == len(examples)
    documents = {one["docid"]: one["document"] for one in map(json.loads, file.getvalue().splitlines())}
    for record in map(json.loads, raw.splitlines()):
        for (evidence,) in record["evidences"]:
            lines = documents[evidence["docid"]].split("\n")
            tokens = [token for line in lines for token in line.split(" ") if token]
            assert " ".join(tokens[evidence["start_token"] : evidence["end_token"]]) == evidence["text"]
            assert evidence["text"] in lines[evidence["start_sentence"]]


def test_eraser_evidence_never_spans_two_texts():
    pair = Example("p", "so bad", "so good", label="neg")
    raw, _ = exported([vote("a", pair, n, label="neg") for n in (1, 2)], [pair], "eraser")
    found = [(one["text"], one["start_sentence"]) for (one,) in json.loads(raw)["evidences"]]
    assert found == [("bad", 0), ("so", 1)]


def plain_eraser(*evidences, label="pos", id_="film"):
    return {
        "annotation_id": id_,
        "query": "what is the sentiment?",
        "query_type": None,
        "classification": label,
        "evidences": [[{"docid": id_, "start_sentence": -1, "end_sentence": -1, **one}] for one in evidences],
    }


def test_plain_eraser_files_become_raise_votes():
    found = imported(plain_eraser({"text": "TRULY BAD ,", "start_token": 2, "end_token": 5}), "eraser", [FILM])
    assert votes(found) == [(2, "truly", "raise", "pos"), (3, "bad", "raise", "pos"), (4, ",", "raise", "pos")]
    assert {entry.author for entry in found} == {"eraser"}


@pytest.mark.parametrize(("near", "position"), [(0, 0), (1, 0), (2, 3), (3, 3), (5, 6), (99, 6)])
def test_of_equal_words_the_one_nearest_to_the_token_is_meant(near, position):
    example = Example("film", "bad film and bad film so bad")
    found = imported(plain_eraser({"text": "bad", "start_token": near, "end_token": near + 1}), "eraser", [example])
    assert votes(found) == [(position, "bad", "raise", "pos")]


def test_evidence_is_found_by_its_letters_when_the_tokens_were_rewritten():
    example = Example("film", 'He said "don\'t!" twice')
    found = imported(plain_eraser({"text": "said `` do n't !", "start_token": 1, "end_token": 5}), "eraser", [example])
    assert [position for position, *_ in votes(found)] == [1, 2, 3]


def test_evidence_without_text_counts_white_space_tokens():
    found = imported(plain_eraser({"start_token": 2, "end_token": 4}), "eraser", [FILM])
    assert [word for _, word, *_ in votes(found)] == ["truly", "bad", ","]
    (refusal,) = imported(plain_eraser({"start_token": 2, "end_token": 40}), "eraser", [FILM])
    assert str(refusal) == "Line 1: the evidence lies outside the text."


def test_evidence_that_is_not_in_the_text_is_refused():
    (refusal,) = imported(plain_eraser({"text": "wonderful", "start_token": 1, "end_token": 2}), "eraser", [FILM])
    assert str(refusal) == "Line 1: the text has no 'wonderful'."


def test_evidence_in_a_pair_is_found():
    found = imported(plain_eraser({"text": "not bad", "start_token": 6}, id_=PAIR.id), "eraser", [PAIR])
    assert [word for _, word, *_ in votes(found)] == ["not", "bad"]
    assert all(Words(PAIR).spans[position].part == "pair" for position, *_ in votes(found))


# Prodigy


def test_prodigy_spans_are_code_points_and_name_the_operation():
    raw, _ = exported(
        [vote("ann", FILM, 3, "lower", "a:b"), said("ann", Review("film", "done"), FILM)], [FILM], "prodigy"
    )
    record = json.loads(raw)
    assert record["spans"] == [{"start": 10, "end": 13, "token_start": 3, "token_end": 3, "label": "lower:a:b"}]
    assert record["text"][10:13] == "bad"
    assert (record["answer"], record["_annotator_id"], record["meta"]["id"]) == ("accept", "ann", "film")
    assert record["tokens"][3] == {"text": "bad", "start": 10, "end": 13, "id": 3, "ws": False}
    assert record["tokens"][2]["ws"]


def prodigy(*spans, **fields):
    return {"text": FILM.text, "spans": list(spans), "answer": "accept", "_session_id": "set-ann", **fields}


def test_a_prodigy_span_marks_every_word_it_touches():
    found = imported(prodigy({"start": 4, "end": 12, "label": "raise:pos"}), "prodigy", [FILM])
    assert [word for _, word, *_ in votes(found)] == ["truly", "bad"]
    assert found[-1].says == Review("film", "done")
    assert {entry.author for entry in found} == {"set-ann"}


def test_a_rejected_prodigy_task_is_flagged_and_an_ignored_one_skipped_and_their_marks_do_not_count():
    span = {"start": 4, "end": 9, "label": "raise:pos"}
    assert [one.says for one in imported(prodigy(span, answer="reject"), "prodigy", [FILM])] == [
        Review("film", "flagged")
    ]
    assert [one.says for one in imported(prodigy(span, answer="ignore"), "prodigy", [FILM])] == [
        Review("film", "skipped")
    ]
    exported_done = prodigy(span, answer="reject", meta={"id": "film", "state": "done"})
    assert votes(imported(exported_done, "prodigy", [FILM])) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (prodigy({"start": 4, "end": 9, "label": "RATIONALE"}), "neither raise:LABEL nor lower:LABEL"),
        (prodigy({"start": 9, "end": 10, "label": "raise:pos"}), "covers no word"),
        (prodigy({"start": 4, "label": "raise:pos"}), "end is no position"),
        (prodigy(*({"start": 4, "end": 9, "label": f"{one}:pos"} for one in ("raise", "lower"))), "both more and less"),
        (prodigy(answer="maybe"), "none of accept, reject and ignore"),
        (prodigy(accept=["a", "b"]), "more than one label"),
    ],
)  # fmt: skip
def test_prodigy_lines_that_make_no_sense_are_refused_whole(record, reason):
    (refusal,) = imported(record, "prodigy", [FILM])
    assert reason in str(refusal)


# Label Studio


def studio(*regions, example=FILM, **fields):
    result = [{"type": "labels", "from_name": "text_marks", "to_name": "text", "value": value} for value in regions]
    return [{"id": 7, "data": {"text": example.text}, "annotations": [{"completed_by": 3, "result": result, **fields}]}]


def test_label_studio_offsets_are_code_points_and_the_text_is_beside_them():
    raw, _ = exported([vote("ann", FILM, 3), vote("ann", PAIR, 7)], [FILM, PAIR], "label_studio")
    film, pair = json.loads(raw)
    region = film["annotations"][0]["result"][0]
    assert region["value"] == {"start": 10, "end": 13, "text": "bad", "labels": ["raise:pos"]}
    assert film["annotations"][0]["completed_by"] == {"email": "ann"}
    assert pair["data"]["pair"] == PAIR.pair
    assert pair["annotations"][0]["result"][0]["to_name"] == "pair"


@pytest.mark.parametrize(("start", "unit"), [(10, "code points"), (11, "UTF-16 units")])
def test_label_studio_offsets_of_either_unit_are_understood_by_their_text(start, unit):
    value = {"start": start, "end": start + 3, "text": "bad", "labels": ["lower:pos"]}
    assert votes(imported(studio(value), "label_studio", [FILM])) == [(3, "bad", "lower", "pos")], unit


def test_all_regions_of_an_annotation_are_in_one_unit():
    example = Example("x", "😀!!! b")  # the "!" at 2 in UTF-16 is the first, at 2 in code points the second
    regions = [{"start": at, "end": at + 1, "text": text, "labels": ["raise:pos"]} for at, text in ((2, "!"), (6, "b"))]
    found = votes(imported(studio(*regions, example=example), "label_studio", [example]))
    assert [(position, word) for position, word, *_ in found] == [(1, "!"), (4, "b")]
    found = votes(imported(studio(regions[0], example=example), "label_studio", [example]))
    assert [position for position, *_ in found] == [2]


@settings(max_examples=100)
@given(texts(), st.data())
def test_regions_counted_by_javascript_mark_the_words_a_person_saw(text, data):
    example = Example("x", text)
    words = Words(example)
    if not len(words):
        return
    position = data.draw(st.integers(0, len(words) - 1))
    span = words.spans[position]
    start, end = (len(text[:at].encode("utf-16-le")) // 2 for at in (span.start, span.end))
    region = {"start": start, "end": end, "text": words.strings[position], "labels": ["raise:pos"]}
    assert [word for _, word, *_ in votes(imported(studio(region, example=example), "label_studio", [example]))] == [
        words.strings[position]
    ]


def test_a_region_that_does_not_read_as_it_says_is_refused():
    (refusal,) = imported(
        studio({"start": 4, "end": 7, "text": "bad", "labels": ["raise:pos"]}), "label_studio", [FILM]
    )
    assert str(refusal) == "Element 1: a mark does not lie where the text says it does."


def test_line_ends_that_label_studio_escapes_are_understood():
    example = Example("x", "so\nbad")
    region = {"start": 0, "end": 6, "text": "so\\nbad", "labels": ["raise:pos"]}
    assert len(votes(imported(studio(region, example=example), "label_studio", [example]))) == 2


def test_a_submitted_annotation_is_done_and_a_cancelled_one_skipped():
    assert [one.says for one in imported(studio(), "label_studio", [FILM])] == [Review("film", "done")]
    assert [one.says for one in imported(studio(was_cancelled=True), "label_studio", [FILM])] == [
        Review("film", "skipped")
    ]
    assert imported(studio(), "label_studio", [FILM])[0].author == "3"


def test_choices_of_any_name_are_the_right_label():
    choice = {"type": "choices", "from_name": "sentiment", "to_name": "text", "value": {"choices": ["pos"]}}
    found = imported(studio(result=[choice]), "label_studio", [FILM], labels=["pos", "neg"])
    assert [one.says for one in found] == [Relabel("film", "pos"), Review("film", "done")]


def test_one_bad_annotation_does_not_keep_the_others_out():
    (task,) = studio()
    task["annotations"] += [{"result": 5}, {"completed_by": {"email": "ann"}, "result": []}]
    found = imported([task], "label_studio", [FILM])
    assert [one.author if isinstance(one, Feedback) else one.reason for one in found] == [
        "3",
        "result is no list.",
        "ann",
    ]


def test_the_labelling_config_is_well_formed_whatever_the_labels():
    config = ET.fromstring(labelling_config([*LABELS, "\x00\x01\ud83d", "\n"], pair=True))
    marks = [one.get("value") for one in config.findall("Labels")[1]]
    assert marks[:2] == ["raise:neg", "lower:neg"]
    assert {f"{vote}:{label}" for label in LABELS for vote in ("raise", "lower")} <= set(marks)
    assert "raise:\ufffd" in marks
    assert [one.get("value") for one in config.findall("Text")] == ["$text", "$pair"]
    assert len(ET.fromstring(labelling_config(["a"])).findall("Text")) == 1


def test_the_files_shown_in_the_documentation_are_read():
    page = (Path(__file__).parent.parent / "docs" / "feedback.md").read_text(encoding="utf-8")
    log, *files = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert read(log.encode(), "jsonl")[0].says == WordVote("bad", "pos", "lower", "film", 3)
    shown = {"eraser": FILM, "prodigy": Example("film", "A bad film"), "label_studio": Example("film", "A bad film")}
    for (format, example), raw in zip(shown.items(), files, strict=True):
        found = imported(raw.encode(), format, [example])
        assert votes(found)[0][2] == "lower"
        assert found[-1].says == Review("film", "done")


def test_exchange_does_not_need_torch():
    script = "import sys, unhans.exchange, unhans.feedback; assert not {'torch', 'transformers'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
