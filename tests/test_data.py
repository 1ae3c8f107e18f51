"""The data door: whatever comes in becomes examples, or is set aside with a reason."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from unhans.data import Corpus, SetAside, iter_examples, read, write
from unhans.data.rows import CONTROL, HIDDEN
from unhans.errors import BadData, BadOption
from unhans.types import Example, Part, Span

anything = st.text(st.characters(exclude_categories=()), max_size=30)  # surrogates and NUL included
visible = anything.map(lambda text: text + "x")
settled = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def put_lines(folder: Path, name: str, *rows: Any) -> Path:
    return put(folder, name, "".join(json.dumps(row) + "\n" for row in rows))


def put_csv(folder: Path, name: str, *rows: list[str], delimiter: str = ",") -> Path:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    return put(folder, name, buffer.getvalue())


def texts(corpus: Corpus) -> list[str]:
    return [e.text for e in corpus]


def reasons(corpus: Corpus) -> list[tuple[int, str]]:
    return [(row.row, row.reason) for row in corpus.set_aside]


# Formats


ROWS = [{"text": "good film", "label": "pos"}, {"text": "bad, film", "label": "neg"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'text,label\ngood film,pos\n"bad, film",neg\n'),
        ("a.tsv", "text\tlabel\ngood film\tpos\nbad, film\tneg\n"),
        ("a.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("a.ndjson", "\n\n".join(json.dumps(row) for row in ROWS)),
        ("a.json", json.dumps(ROWS)),
        ("pretty.json", json.dumps(ROWS, indent=2)),
        ("lines.json", "".join(json.dumps(row) + "\r\n" for row in ROWS)),
        ("semicolons.csv", "text;label\ngood film;pos\nbad, film;neg\n"),
        ("tabs.csv", "text\tlabel\ngood film\tpos\nbad, film\tneg\n"),
        ("json.csv", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("table.jsonl", 'text,label\ngood film,pos\n"bad, film",neg\n'),
        ("table.txt", 'text,label\ngood film,pos\n"bad, film",neg\n'),
        ("old_mac.csv", 'text,label\rgood film,pos\r"bad, film",neg\r'),
        ("no_last_newline.csv", 'text,label\r\ngood film,pos\r\n"bad, film",neg'),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_gives_the_same_examples(tmp_path: Path, name: str, content: str, packed: bool) -> None:
    data = gzip.compress(content.encode()) if packed else content.encode()
    corpus = read(put(tmp_path, name + ".gz" * packed, data))
    assert [(e.text, e.label) for e in corpus] == [("good film", "pos"), ("bad, film", "neg")]
    stem = name.partition(".")[0]
    assert [e.id for e in corpus] == [f"{stem}-1", f"{stem}-2"]


def test_gzip_and_parquet_are_known_by_their_content_whatever_the_name(tmp_path: Path) -> None:
    assert len(read(put(tmp_path, "a.jsonl", gzip.compress(b'{"text": "x"}\n')))) == 1
    written = write(read(ROWS), tmp_path / "b.parquet")
    assert texts(read(written.rename(tmp_path / "b.csv"))) == ["good film", "bad, film"]


def test_a_list_may_hold_dicts_examples_texts_and_pairs() -> None:
    assert texts(read(["one", "two"])) == ["one", "two"]
    assert [(e.text, e.pair) for e in read([("one", "two")])] == [("one", "two")]
    given_example = Example("a", "one two", "three", "x", (Span(0, 3), Span(0, 5, "pair")), "g", "s", ("note",))
    assert list(read([given_example])) == [given_example]
    assert texts(read(iter([{"text": str(n)} for n in range(2_500)]))) == [str(n) for n in range(2_500)]


def test_a_mapping_is_read_as_splits() -> None:
    corpus = read({"train": ["one"], "test": [{"sentence": "two"}]})
    assert [(e.id, e.text, e.split) for e in corpus] == [("train-1", "one", "train"), ("test-1", "two", "test")]


@pytest.mark.parametrize("source", [{}, {"text": ["a"], "label": ["b"]}, 3, b"bytes", None, Example("a", "b")])
def test_a_source_we_do_not_know_is_refused(source: Any) -> None:
    with pytest.raises(BadData):
        read(source)


def test_a_data_frame_is_read_by_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["one", None], "label": [1.0, float("nan")]})
    corpus = read(frame)
    assert [(e.text, e.label) for e in corpus] == [("one", "1")]
    assert reasons(corpus) == [(2, "no text")]


def test_a_folder_is_read_as_splits_in_their_usual_order(tmp_path: Path) -> None:
    put_lines(tmp_path, "test.jsonl", {"text": "c"})
    put_csv(tmp_path, "dev.csv", ["sentence", "label"], ["b", "1"])
    put_lines(tmp_path, "train.jsonl", {"text": "a"}, {"text": "a2", "split": "held out"})
    put_lines(tmp_path, "extra-00000-of-00002.jsonl", {"text": "d"})
    put_lines(tmp_path, "extra-00001-of-00002.jsonl", {"text": "e"})
    put(tmp_path, "README.md", "# not data")
    put(tmp_path, ".hidden.jsonl", "{}")
    corpus = read(tmp_path)
    assert texts(corpus) == ["a", "a2", "b", "c", "d", "e"]
    assert corpus.splits == ("train", "held out", "dev", "test", "extra")
    assert texts(corpus.split("extra")) == ["d", "e"]
    assert len({e.id for e in corpus}) == 6
    assert "train.jsonl: Text from 'text', split from 'split'." in corpus.summary()


def test_a_file_without_texts_in_a_folder_is_left_out_with_a_remark(tmp_path: Path) -> None:
    put_lines(tmp_path, "dev.jsonl", {"text": "a"})
    put(tmp_path, "words.csv", "muslim\t3.16\njew\t2.95\n")
    put(tmp_path, "empty.csv", "text,label\n")
    summary = read(tmp_path).summary()
    assert "Left out: words.csv has no header: its first line is muslim, 3.16." in summary
    assert "Left out: empty.csv has no rows." in summary


def test_datasets_are_read_with_the_names_of_their_labels() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    rows = {"sentence": ["bad", "good", "so so"], "label": [0, 1, -1]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    expected = [("bad", "neg"), ("good", "pos"), ("so so", None)]
    assert [(e.text, e.label) for e in read(dataset)] == expected
    assert [(e.text, e.label) for e in read(dataset.to_iterable_dataset())] == expected
    assert [(e.text, e.label) for e in read(dataset.with_format("numpy"))] == expected
    both = read(datasets.DatasetDict({"train": dataset, "test": dataset}))
    assert both.splits == ("train", "test")
    assert [e.id for e in both][:4] == ["train-1", "train-2", "train-3", "test-1"]


def test_a_parquet_file_from_the_hub_keeps_the_names_of_its_labels(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    datasets.Dataset.from_dict({"text": ["bad"], "label": [0]}, features=features).to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[0].label == "neg"


# Files that cannot be read


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "", "a.csv is empty."),
        ("a.csv", "text,label\n", "a.csv has no rows."),
        ("a.csv", "text,text,label\na,b,c\n", "a.csv has two columns called text: rename one of them."),
        ("a.csv", "foo,bar\na,b\n", "a.csv has no column that is called like a text. Its columns are foo, bar."),
        ("a.csv", "muslim\t3.16\njew\t2.95\n", "a.csv has no header: its first line is muslim, 3.16."),
        ("a.json", '{\n "data": []}', "a.json must be a list of objects, or have one object a line."),
        ("a.json", "[]", "a.json has no rows."),
        ("a.xlsx", b"PK\x03\x04rest", "a.xlsx is a zip archive or a spreadsheet."),
        ("a.bin", "just a line", "a.bin is of no format we know"),
        ("a.jsonl", "no json\nat all\n", "Nothing could be read of the first 2 rows. a.jsonl, row 1 (line 1): invalid"),
        ("a.jsonl", '{"text": ""}\n', "Nothing could be read of 1 row: empty text (1). First: a.jsonl, row 1 (line 1)"),
        (
            "a.jsonl",
            gzip.compress(b'{"text": "a"}\n' * 99, mtime=0)[:-9],
            "a.jsonl cannot be read: Compressed file ended",
        ),
        ("a.jsonl", b"\x1f\x8b\x08nonsense", "a.jsonl cannot be read"),
        ("a.parquet", b"PAR1nonsense", "a.parquet cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(BadData, match=re.escape(sentence)):
        read(put(tmp_path, name, content))


def test_a_path_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.csv", "a\x00b", "x" * 5_000):
        with pytest.raises(BadData):
            read(path)
    with pytest.raises(BadData, match="holds no"):
        read(tmp_path)


def test_no_rows_are_refused() -> None:
    sources: list[Any] = [[], iter(()), {"train": []}]
    for source in sources:
        with pytest.raises(BadData, match="has no rows"):
            read(source)


def test_a_named_column_must_exist(tmp_path: Path) -> None:
    path = put_csv(tmp_path, "a.csv", ["text", "stars"], ["a", "5"])
    with pytest.raises(BadData, match=re.escape("a.csv has no column 'star'. Did you mean 'stars'?")):
        read(path, label="star")
    with pytest.raises(BadData, match="Its columns are text, stars"):
        read(path, text="review")


@settled
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a"]))
@example(content=b'text\n"', name="a.csv")
@example(content=b"\xff\xfet", name="a.csv")
@example(content=b"\xff\xfe\x00\x00t", name="a.csv")
@example(content=b"[" * 100_000, name="a.json")
@example(content=b'{"text":' * 100_000, name="a.jsonl")
def test_any_bytes_give_a_corpus_or_bad_data(tmp_path: Path, content: bytes, name: str) -> None:
    try:
        corpus = read(put(tmp_path, name, content))
    except BadData:
        return
    assert len(corpus) > 0
    assert corpus.summary()


@settled
@given(
    content=st.binary(max_size=200),
    start=st.sampled_from([b"text,label\n", b'{"text": "a"}\n', b'[{"text":1},', b"text\t\n"]),
)
@example(content=b'"a', start=b"text,label\n")
def test_any_bytes_after_a_good_beginning_give_a_corpus_or_bad_data(
    tmp_path: Path, content: bytes, start: bytes
) -> None:
    try:
        corpus = read(put(tmp_path, "a.csv", start + content))
    except BadData:
        return
    assert all(e.text for e in corpus)


# Bad rows


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"text": ""}', "empty text"),
        ('{"text": " \\t\\n\\u00a0"}', "empty text"),
        ('{"text": "\\u200b\\ufeff\\u2060"}', "empty text"),
        ('{"text": "\\u0000"}', "empty text"),
        ('{"text": null}', "no text"),
        ('{"label": "x"}', "no text"),
        ('{"text": 5}', "text is not a string"),
        ('{"text": {"a": "b"}}', "text is not a string"),
        ('{"text": "%s"}' % ("a" * 100_001), "text longer than 100,000 characters"),
        ('["text"]', "not an object"),
        ("7", "not an object"),
        ('{"text": "a"', "invalid JSON"),
        ('{"text": "a", "score": NaN}', "invalid JSON"),
        ('{"text": "a", "score": -Infinity}', "invalid JSON"),
        ('{"text": "a", "text": "b"}', "invalid JSON"),
        ('{"text": "a", "n": %s}' % ("9" * 5_000), "invalid JSON"),
        ('{"text": "a", "n": %s}' % ("[" * 100_000 + "]" * 100_000), "invalid JSON"),
        ('{"text": "a", "label": ["x", "y"]}', "label is not a name or a number"),
        ('{"text": "a", "label": %s}' % (10**30), "label is not a name or a number"),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_bad_row_is_set_aside_and_the_others_are_read(tmp_path: Path, name: str, row: str, reason: str) -> None:
    good = '{"text": "good", "label": "x"}'
    lines = [good, row, good]
    path = put(tmp_path, name, "[" + ",\n".join(lines) + "]" if name == "a.json" else "\n".join(lines))
    if name == "a.json" and (row == '{"text": "a"' or "[[" in row):  # where it ends cannot be told
        assert reasons(read(path)) == [(2, "invalid JSON")]
        return
    corpus = read(path)
    assert texts(corpus) == ["good", "good"]
    assert reasons(corpus) == [(2, reason)]
    assert [e.id for e in corpus] == ["a-1", "a-3"]
    with pytest.raises(BadData, match=re.escape(f"{name}, row 2") + ".*" + re.escape(reason)):
        read(path, strict=True)


def test_csv_rows_with_too_few_or_too_many_cells_are_set_aside(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a.csv", "text,label\nfine,1\nshort\n\na,b,c\nfine too,2\n"))
    assert texts(corpus) == ["fine", "fine too"]
    assert corpus.set_aside == (
        SetAside(2, "wrong number of cells", "a.csv", 3, "1 where the header has 2"),
        SetAside(3, "wrong number of cells", "a.csv", 5, "3 where the header has 2"),
    )
    assert str(corpus.set_aside[0]) == "a.csv, row 2 (line 3): wrong number of cells (1 where the header has 2)."


def test_a_quote_that_is_never_closed_costs_its_own_row_only(tmp_path: Path) -> None:
    rest = "".join(f"row {n},0\n" for n in range(50))
    corpus = read(put(tmp_path, "a.csv", f'text,label\n"open,1\n{rest}'))
    assert reasons(corpus) == [(1, "quote never closed")]
    assert texts(corpus) == [f"row {n}" for n in range(50)]
    assert corpus[0].id == "a-2"


def test_a_quote_that_is_closed_by_another_row_costs_its_own_row_only(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a.csv", 'text,label\n"open,1\nplain,0\n"a good, text",0\n'))
    assert texts(corpus) == ["plain", "a good, text"]
    assert reasons(corpus) == [(1, "quote never closed")]


def test_quotes_out_of_order_inside_one_line_are_read_leniently(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a.csv", 'text,label\n"so" he said,1\n5" pipe,0\n"many\nlines",1\n'))
    assert texts(corpus) == ["so he said", '5" pipe', "many\nlines"]


def test_quotes_in_tab_separated_files_are_text_when_they_do_not_close(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", 'text\tlabel\n"open\t1\nclose"\t0\n"so" he said\t1\n"two\nlines"\t0\n"end\t1\n')
    assert texts(read(path)) == ['"open', 'close"', '"so" he said', "two\nlines", '"end']


def test_long_lines_are_set_aside_and_long_fields_are_read(tmp_path: Path) -> None:
    short_of = "a" * 99_999
    long = "b" * 10_000_001
    for name, content in (
        ("a.csv", f"text,label\n{short_of},1\n{long},0\nok,1\n"),
        ("a.jsonl", f'{{"text": "{short_of}"}}\n{{"text": "{long}"}}\n{{"text": "ok"}}\n'),
    ):
        corpus = read(put(tmp_path, name, content))
        assert texts(corpus) == [short_of, "ok"]
        assert reasons(corpus) == [(2, "line longer than 10 MB")]
    field = read(put(tmp_path, "b.csv", f'text,label\n"{"c" * 200_000}",1\nok,1\n'))
    assert reasons(field) == [(1, "text longer than 100,000 characters")]


def test_ten_thousand_columns_are_read(tmp_path: Path) -> None:
    names = ["text", *(f"x{n}" for n in range(9_999))]
    assert texts(read(put_csv(tmp_path, "a.csv", names, ["fine"] * 10_000))) == ["fine"]


def test_at_most_ten_thousand_rows_are_remembered_as_set_aside_and_all_are_counted() -> None:
    corpus = read(["", "ok"] * 12_000)
    assert len(corpus.set_aside) == 10_000
    assert "12,000 set aside: empty text (12,000)." in corpus.summary()


def test_unnamed_columns_are_no_duplicates(tmp_path: Path) -> None:
    assert texts(read(put(tmp_path, "a.csv", ",text,,\n0,fine,,\n"))) == ["fine"]


# Texts and encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_encodings_are_told_apart(tmp_path: Path, encoding: str) -> None:
    corpus = read(put(tmp_path, "a.csv", "text,label\nça va 😀,oui\n".encode(encoding)))
    assert (corpus[0].text, corpus[0].label, corpus[0].notes) == ("ça va 😀", "oui", ())


def test_a_file_that_is_not_unicode_is_read_as_windows_1252_with_a_remark(tmp_path: Path) -> None:
    content = "text,label\n" + "ascii,1\n" * 30_000 + "déjà “vu”,0\n"
    corpus = read(put(tmp_path, "a.csv", content.encode("cp1252")))
    assert corpus[-1].text == "déjà “vu”"
    assert "a.csv is not UTF-8 and was read as Windows-1252 (Latin-1)." in corpus.summary()
    assert "Windows" not in read(put(tmp_path, "a.csv", content)).summary()


def test_single_invalid_bytes_are_replaced_with_a_note(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a.csv", "text\nçédille naïve\nbroken XX\n".encode().replace(b"XX", b"\xff")))
    assert texts(corpus) == ["çédille naïve", "broken \ufffd"]
    assert corpus[1].notes == ("Characters that are not valid Unicode were replaced by U+FFFD.",)
    assert "replaced by U+FFFD. (1 row)" in corpus.summary()


def test_nul_is_removed_and_lone_surrogates_are_replaced_with_a_note(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a.jsonl", '{"text": "a\\u0000b"}\n{"text": "\\ud83d!"}\n{"text": "\\ud83d\\ude00"}\n'))
    assert texts(corpus) == ["ab", "\ufffd!", "😀"]
    assert [len(e.notes) for e in corpus] == [1, 1, 0]


@pytest.mark.parametrize("text", ["NA", "null", "None", "nan", "NaN", "N/A", "#N/A", "true", "0", "1e999"])
def test_words_that_other_readers_take_for_nothing_stay_texts_and_labels(tmp_path: Path, text: str) -> None:
    corpus = read(put(tmp_path, "a.csv", f"text,label\n{text},{text}\n"))
    assert (corpus[0].text, corpus[0].label) == (text, text)


def test_texts_keep_their_white_space() -> None:
    assert texts(read(["  two  spaces\n"])) == ["  two  spaces\n"]


@settled
@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=5))
def test_csv_rows_with_any_text_survive(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    clean = [(re.sub("[\x00\ud800-\udfff]", "", a) + "x", re.sub("[\x00\ud800-\udfff]", "", b) + "y") for a, b in rows]
    path = put_csv(tmp_path, "a.csv", ["text", "pair"], *map(list, clean))
    assert [(e.text, e.pair) for e in read(path)] == clean


# Columns


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"premise": "a", "hypothesis": "b", "gold_label": "c"}, Example("", "a", "b", "c")),
        ({"sentence1": "a", "sentence2": "b", "label": "c", "genre": "g"}, Example("", "a", "b", "c", group="g")),
        ({"question": "a", "sentence": "b", "label": 0}, Example("", "a", "b", "0")),
        ({"Review Text": "a", "Class": "b"}, Example("", "a", label="b")),
        ({"title": "t", "text": "a", "category": "c"}, Example("", "a", label="c")),
        ({"text": "a", "label": "b", "category": "c"}, Example("", "a", label="b", group="c")),
        ({"text": "a", "sentiment": "b", "domain": "c"}, Example("", "a", label="b", group="c")),
        ({"text": "a", "text_pair": "b", "target": 1.0}, Example("", "a", "b", "1")),
        ({"tokens": ["a", "b"], "label": "c"}, Example("", "a b", label="c")),
        (
            {"text": "a", "label": "b", "functionality": "f", "target_ident": "t"},
            Example("", "a", None, "b", None, "f"),
        ),
        ({"text": "a", "highlights": "a summary of it"}, Example("", "a")),
        ({"text": "a", "notes": "somebody's own"}, Example("", "a")),
    ],
)
def test_columns_are_found_by_their_usual_names(row: dict[str, Any], expected: Example) -> None:
    found = read([row])[0]
    assert replace(found, id="") == expected


def test_a_numbered_label_is_taken_only_when_there_is_no_plain_one() -> None:
    numbered = read([{"text": "a", "label5": 3, "label2": 1}])
    assert numbered[0].label == "3"
    assert "label from 'label5' (there is also 'label2': choose with label=)." in numbered.summary()
    assert read([{"text": "a", "label4": "noHate", "label": 0}])[0].label == "0"


def test_columns_can_be_named_and_denied() -> None:
    row = {"text": "a", "pair": "b", "label": "c", "hypothesis": "h", "id": "i", "group": "g"}
    assert read([row], text="hypothesis", pair=False, label=False, id=False, group=False)[0] == Example("row-1", "h")
    assert read([row], text="label", label="text")[0] == Example("i", "c", "b", "a", group="g")


def test_keys_that_the_first_rows_lack_are_found() -> None:
    corpus = read([{"text": "a"}] * 500 + [{"text": "b c", "label": "x", "highlights": "01"}])
    assert (corpus[-1].label, corpus[-1].highlights) == ("x", (Span(2, 3),))


def test_the_summary_says_where_everything_comes_from() -> None:
    summary = read([{"premise": "a", "hypothesis": "b", "gold_label": "c", "pairID": "d"}]).summary()
    assert "Text from 'premise', second text from 'hypothesis', label from 'gold_label', id from 'pairID'." in summary


def test_rows_without_a_second_text_are_counted() -> None:
    corpus = read([{"text": "a", "pair": "b"}, {"text": "c", "pair": None}, {"text": "d", "pair": " "}])
    assert [e.pair for e in corpus] == ["b", None, None]
    assert "2 rows have no second text." in corpus.summary()
    assert "The second text is blank and was left out. (1 row)" in corpus.summary()


# Labels


@pytest.mark.parametrize("label", [1, 1.0, "1", " 1 ", "1.0", True])
def test_one_is_one_however_it_is_written(label: Any) -> None:
    assert read([{"text": "a", "label": label}])[0].label == "1"
    assert read([{"text": "a", "label": label}], labels=["no", "yes"])[0].label == "yes"


@pytest.mark.parametrize("label", [None, "", "  ", -1, "-1", -1.0, "-", float("nan")])
def test_a_missing_label_is_none_and_counted(label: Any) -> None:
    corpus = read([{"text": "a", "label": label}, {"text": "b", "label": "x"}])
    assert [e.label for e in corpus] == [None, "x"]
    assert "1 row has no label: explain only." in corpus.summary()


def test_scalars_of_numpy_are_labels_and_ids() -> None:
    numpy = pytest.importorskip("numpy")
    row = {"text": numpy.str_("a"), "label": numpy.int64(2), "id": numpy.int32(7), "group": numpy.float64(3)}
    assert read([row])[0] == Example("7", "a", label="2", group="3")
    assert read([{"text": "a", "label": numpy.bool_(True)}])[0].label == "1"


def test_labels_are_named_by_a_mapping_or_a_sequence() -> None:
    rows = [{"text": "a", "label": n} for n in (0, 1, "pos", 7, -1)]
    assert [e.label for e in read(rows, labels=["neg", "pos"])] == ["neg", "pos", "pos", None, None]
    assert [e.label for e in read(rows, labels={"0": "neg", 1: "pos", 7: None})] == ["neg", "pos", "pos", None, None]
    assert [e.label for e in read(rows, labels={0: "a", 1: "b", "pos": "b", 7: "c", -1: "d"})] == list("abbcd")
    summary = read(rows, labels=["neg", "pos"]).summary()
    assert "The label is not among the given names and was left out. (1 row)" in summary
    with pytest.raises(BadOption, match="labels must be"):
        read(rows, labels="neg")


def test_labels_are_sorted_and_integers_by_value() -> None:
    assert read([{"text": "a", "label": n} for n in (10, 9, 2)]).labels == ("2", "9", "10")
    assert read([{"text": "a", "label": n} for n in ("b", 10, "a")]).labels == ("10", "a", "b")


def test_labels_that_differ_in_case_only_are_pointed_out_and_kept() -> None:
    corpus = read([{"text": "a", "label": label} for label in ("Hate", "hate", "none")])
    assert corpus.labels == ("Hate", "hate", "none")
    assert "The labels 'Hate', 'hate' differ in case only: one of them may be a slip." in corpus.summary()


def test_a_single_label_is_pointed_out() -> None:
    summary = read([{"text": "a", "label": "hate"}]).summary()
    assert "All labels are 'hate': add another one to train." in summary


# Ids


def test_ids_that_repeat_get_a_suffix() -> None:
    corpus = read([{"text": str(n), "id": id_} for n, id_ in enumerate(["a", "b", "a", "a", "a#2", None, " "])])
    assert [e.id for e in corpus] == ["a", "b", "a#2", "a#3", "a#2#2", "row-6", "row-7"]
    assert "3 rows had the id of an earlier row and got a suffix such as #2." in corpus.summary()


@settled
@given(st.lists(st.sampled_from(["a", "a#2", "a#3", "b", "row-2", None]), min_size=1, max_size=30))
def test_ids_are_unique(ids: list[str | None]) -> None:
    corpus = read([{"text": "t", "id": id_} for id_ in ids])
    assert len({e.id for e in corpus}) == len(ids)


def test_ids_are_unique_beyond_the_first_size_of_the_table() -> None:
    corpus = read({"text": "t", "id": n % 15_000} for n in range(20_000))
    assert len({e.id for e in corpus}) == 20_000
    assert corpus[15_000].id == "0#2"


# Highlights


@pytest.mark.parametrize(
    ("value", "spans"),
    [
        ("0110", [(2, 8)]),
        ("0 1 1 0", [(2, 8)]),
        ("1001", [(0, 1), (9, 10)]),
        ([0, 1, 1, 0], [(2, 8)]),
        ([False, True, True, False], [(2, 8)]),
        ([0.0, 1.0, 0.0, 0.0], [(2, 4)]),
        (["0", "1", "0", "0"], [(2, 4)]),
        ("[0, 1, 0, 0]", [(2, 4)]),
        ("0000", []),
        ([], []),
        ([[2, 4]], [(2, 4)]),
        ([[5, 8], [2, 4]], [(2, 4), (5, 8)]),
        ([[2, 4], [4, 6], [5, 8]], [(2, 8)]),
        ([[3, 3]], []),
        ("[[2, 4]]", [(2, 4)]),
        ("[(2, 4)]", [(2, 4)]),
        ([[2, 4, "TOXIC"]], [(2, 4)]),
        ([{"start": 2, "end": 4, "label": "X", "token_start": 1}], [(2, 4)]),
        ({"start": [2, 5], "end": [4, 8]}, [(2, 4), (5, 8)]),
        (["0110", "0100", "1100"], [(2, 4)]),
        ([[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]], [(2, 8)]),
        (["0110", "1100"], [(2, 4)]),
    ],
)
def test_highlights_are_read_in_every_form(value: Any, spans: list[tuple[int, int]]) -> None:
    found = read([{"text": "I am bad 😀", "highlights": value}])[0]
    assert found.highlights == tuple(Span(start, end) for start, end in spans)
    assert found.notes == ()


@pytest.mark.parametrize(
    "value",
    ["011", [0, 1], ["0110", "011"], [[2, 99]], [[4, 2]], [[-1, 2]], [[2, 4], "x"], "[[2, 4", "word", 5, {"start": 1}],
)
def test_highlights_that_do_not_fit_are_left_out_with_a_note(value: Any) -> None:
    corpus = read([{"text": "I am bad 😀", "highlights": "1000"}, {"text": "I am bad 😀", "highlights": value}])
    assert corpus[1].highlights is None
    assert corpus[1].notes == ("The highlights do not fit the text and were left out.",)
    assert "The highlights do not fit the text and were left out. (1 row)" in corpus.summary()


@pytest.mark.parametrize("value", [None, "", float("nan")])
def test_no_highlights_is_not_the_same_as_none_marked(value: Any) -> None:
    assert read([{"text": "a", "highlights": value}, {"text": "a", "highlights": "1"}])[0].highlights is None


def test_masks_count_words_split_by_single_spaces_or_by_any_white_space() -> None:
    assert read([{"text": "2\u00a01/2 stars", "highlights": "01"}])[0].highlights == (Span(6, 11),)
    assert read([{"text": "two\nlines  here", "highlights": "011"}])[0].highlights == (Span(4, 15),)


def test_masks_of_given_tokens_count_the_tokens() -> None:
    row = {"tokens": ["New York", "is", "big"], "rationales": ["100", "101", "001"]}
    assert read([row])[0].highlights == (Span(0, 8), Span(12, 15))


def test_pairs_of_zeros_and_ones_are_masks_of_two_words_and_else_spans() -> None:
    votes = [[0, 1], [0, 1], [1, 0]]
    assert read([{"text": "so bad", "rationales": votes}])[0].highlights == (Span(3, 6),)
    assert read([{"text": "not so bad", "rationales": [[0, 1], [0, 1]]}])[0].highlights == (Span(0, 1),)


def test_each_part_of_a_pair_has_its_own_highlights() -> None:
    row = {"premise": "a b", "hypothesis": "c d", "premise_highlight": "10", "hypothesis_highlight": "01"}
    assert read([row])[0].highlights == (Span(0, 1, "text"), Span(2, 3, "pair"))
    other = {"premise": "a b", "hypothesis": "c d", "mine": None, "yours": [[0, 1]]}
    assert read([other], highlights="mine", pair_highlights="yours")[0].highlights == (Span(0, 1, "pair"),)


def test_spans_move_with_the_text_when_nul_is_removed() -> None:
    found = read([{"text": "a\x00b cd", "highlights": [[4, 6]]}])[0]
    assert [found.text[s.start : s.end] for s in found.highlights or ()] == ["cd"]


# The corpus


def corpus_of(n: int) -> Corpus:
    return read([{"id": f"i{k}", "text": f"text {k}", "label": str(k % 3), "split": "ab"[k % 2]} for k in range(n)])


def test_a_corpus_is_a_frozen_sequence() -> None:
    corpus, as_list = corpus_of(25_000), list(corpus_of(25_000))
    assert list(corpus) == as_list
    assert [corpus[k] for k in (0, 9_999, 10_000, -1)] == [as_list[k] for k in (0, 9_999, 10_000, -1)]
    for place in (slice(9_990, 10_010), slice(-3, None), slice(None, None, 7_000), slice(5, 2), slice(4, None, -2)):
        assert list(corpus[place]) == as_list[place]
    assert corpus[3:9][2] == as_list[5]
    assert as_list[3] in corpus
    assert corpus.index(as_list[7]) == 7
    with pytest.raises(IndexError):
        corpus[25_000]
    with pytest.raises(TypeError):
        corpus[0] = as_list[0]  # type: ignore[index]
    assert corpus == corpus_of(25_000)
    assert corpus != corpus[1:]
    assert corpus != as_list
    assert pickle.loads(pickle.dumps(corpus[:50])) == corpus[:50]


def test_splits_are_corpora(tmp_path: Path) -> None:
    corpus = corpus_of(10)
    assert corpus.splits == ("a", "b")
    assert [e.id for e in corpus.split("b")] == ["i1", "i3", "i5", "i7", "i9"]
    assert len(corpus.split("c")) == 0
    assert corpus.split("a").labels == ("0", "1", "2")
    assert corpus.split("a").summary() == "5 rows. Labels: 0, 1, 2."


def test_the_summary_counts_what_was_read_and_what_was_not() -> None:
    rows = [{"text": f"t{n}", "label": "ab"[n % 2]} for n in range(9_948)]
    rows += [{"text": f"u{n}", "label": ""} for n in range(40)] + [{"text": "", "label": "a"}] * 12
    assert read(rows).summary() == (
        "9,988 of 10,000 rows read. 12 set aside: empty text (12). 40 rows have no label: explain only. "
        "Labels: a, b. Text from 'text', label from 'label'."
    )


def test_a_corpus_shows_itself_briefly_and_escapes_what_it_shows() -> None:
    corpus = read([{"text": "<script>alert(1)</script>" + "a" * 500, "label": "<b>", "split": "x"}, {"text": "b"}])
    assert repr(corpus) == "<Corpus: 2 examples, labels <b>, splits x>"
    shown = corpus._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert "2 of 2 rows read." in shown
    assert len(shown) < 2_000


def test_problems_are_repetitions_contradictions_and_texts_in_two_splits() -> None:
    rows = [
        ("same", "x", "train"),
        ("same", "y", "test"),
        ("same", "y", "test"),
        ("twice", "x", "train"),
        ("twice", None, "train"),
        ("once", "x", "test"),
    ]
    problems = read([{"id": str(n), "text": t, "label": y, "split": s} for n, (t, y, s) in enumerate(rows)]).problems()
    assert (problems.repeated, problems.contradictions, problems.shared) == (2, 1, (("train", "test", 1),))
    assert problems.repeated_ids == ("0", "1", "2", "3", "4")
    assert problems.contradicting_ids == ("0", "1", "2")
    assert str(problems) == (
        "2 texts occur repeatedly. 1 text occurs with different labels. 1 text occurs in both train and test."
    )
    assert str(read(["a", "b"]).problems()) == "No text occurs twice."


def test_a_text_with_another_pair_is_another_text() -> None:
    assert read([("a", "b"), ("a", "c")]).problems().repeated == 0


def test_limit_stops_reading(tmp_path: Path) -> None:
    corpus = read(corpus_of(100), limit=10)
    assert len(corpus) == 10
    assert "Reading stopped after 10 examples, as asked." in corpus.summary()
    with pytest.raises(BadOption):
        read(["a"], limit=0)


def test_progress_is_told_every_ten_thousand_rows_and_at_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    read(["a"] * 25_000, progress=lambda done, total: told.append((done, total)))
    assert told == [(10_000, 25_000), (20_000, 25_000), (25_000, 25_000)]
    told.clear()
    read(put(tmp_path, "a.csv", "text\na\n"), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, None)]


def test_examples_can_be_streamed(tmp_path: Path) -> None:
    path = put_lines(tmp_path, "a.jsonl", {"text": "a"}, {"text": ""}, {"text": "b"})
    aside: list[SetAside] = []
    stream = iter_examples(path, set_aside=aside.append)
    assert isinstance(stream, Iterator)
    assert [e.id for e in stream] == ["a-1", "a-3"]
    assert aside == [SetAside(2, "empty text", "a.jsonl", 2)]
    with pytest.raises(BadData):  # before the first example is asked for
        iter_examples(path, text="sentence")


# Writing


def examples() -> st.SearchStrategy[Example]:
    @st.composite
    def draw_example(draw: Callable[..., Any]) -> Example:
        text = draw(visible)
        pair = draw(st.none() | visible)
        parts: dict[Part, int] = {"text": len(text)} if pair is None else {"text": len(text), "pair": len(pair)}
        span = st.sampled_from(sorted(parts)).flatmap(
            lambda part: st.lists(st.integers(0, parts[part]), min_size=2, max_size=2).map(
                lambda ends: Span(min(ends), max(ends), part)
            )
        )
        return Example(
            id=draw(anything),
            text=text,
            pair=pair,
            label=draw(st.none() | anything),
            highlights=draw(st.none() | st.lists(span, max_size=3).map(tuple)),
            group=draw(st.none() | anything),
            split=draw(st.none() | anything),
            notes=draw(st.lists(anything, max_size=2).map(tuple)),
        )

    return draw_example()


@settled
@given(st.lists(examples(), min_size=1, max_size=5))
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_what_is_read_is_read_again_after_writing(tmp_path: Path, name: str, raw: list[Example]) -> None:
    corpus = read(raw)
    assert len(corpus) == len(raw)
    assert read(write(corpus, tmp_path / name)) == corpus


@settled
@given(st.lists(examples(), min_size=1, max_size=5))
def test_csv_gives_back_all_but_notes_and_formulas(tmp_path: Path, raw: list[Example]) -> None:
    corpus = read(raw)
    for before, after in zip(corpus, read(write(corpus, tmp_path / "a.csv")), strict=True):
        assert after.text == ("'" + before.text if before.text[0] in "=+-@\t\r" else before.text)
        assert set(after.notes) <= {CONTROL, HIDDEN}  # noticed anew in the text, not carried by the file
        if before.highlights is not None and after.text == before.text and (after.pair == before.pair):
            assert after.highlights == before.highlights


def test_raw_examples_can_be_written(tmp_path: Path) -> None:
    raw = [Example("a", "half \ud83d, nul \x00", highlights=(Span(0, 4),))]
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert read(write(raw, tmp_path / name))[0].text == "half \ufffd, nul "


def test_highlights_after_a_thousand_rows_without_are_not_lost(tmp_path: Path) -> None:
    raw = [Example(str(n), "text") for n in range(1_500)] + [Example("last", "text", highlights=(Span(0, 2),))]
    assert read(write(raw, tmp_path / "a.jsonl"))[-1].highlights == (Span(0, 2),)


def test_spreadsheets_find_no_formula(tmp_path: Path) -> None:
    write([Example("a", "=1+1", label="@x"), Example("b", "fine", label="y")], tmp_path / "a.csv")
    assert [(e.text, e.label) for e in read(tmp_path / "a.csv")] == [("'=1+1", "'@x"), ("fine", "y")]


def test_the_same_examples_give_the_same_bytes(tmp_path: Path) -> None:
    corpus = corpus_of(10)
    assert write(corpus, tmp_path / "a.jsonl.gz").read_bytes() == write(corpus, tmp_path / "b.jsonl.gz").read_bytes()


def test_a_file_is_replaced_only_when_the_new_one_is_complete(tmp_path: Path) -> None:
    def broken() -> Iterator[Example]:
        yield Example("a", "b")
        raise RuntimeError

    path = put(tmp_path, "a.jsonl", "old")
    with pytest.raises(RuntimeError):
        write(broken(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=re.escape("the name must end in .jsonl")):
        write([], tmp_path / "a.xlsx")
    with pytest.raises(BadData, match="cannot be written"):
        write([], tmp_path / "missing" / "a.jsonl")


@pytest.mark.parametrize("text", ["a [MASK] here", "the end</s>", "<|endoftext|>", "<pad>"])
def test_a_control_word_of_a_model_leaves_a_note(text: str) -> None:
    (example,) = read([text, "plain [brackets] and <tags>"])[:1]
    assert example.text == text
    assert "control word" in example.notes[0]
    assert read(["plain [brackets] and <tags>"])[0].notes == ()


def test_a_path_may_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("text\nx\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(read("~/a.csv")) == 1


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("go\u200bod", True),
        ("\ufeffgood", True),
        ("\u202egood", True),
        ("soft\u00adhyphen", True),
        ("👨\u200d👩\u200d👧 family", False),
        ("می\u200cخواهم", False),
        ("good\n\tsoup", False),
    ],
    ids=ascii,
)
def test_hidden_characters_are_kept_and_noted(text: str, noted: bool) -> None:
    (example,) = read([text])
    assert example.text == text
    assert (HIDDEN in example.notes) == noted
