"""Flips as a data set: everything is in it, other tools load it, and what is read back is what was written."""

from __future__ import annotations

import json
from dataclasses import replace

import datasets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unhans.errors import BadData, Conflict
from unhans.export import check_export, export_flips, read_flips
from unhans.export.flips import FlipRecord
from unhans.types import (
    Alternative,
    Counterfactual,
    Edit,
    Example,
    Feedback,
    FlipRating,
    Prediction,
    Recipe,
    Step,
    WordVote,
)

LABELS = ("negative", "positive", "neither")
ORIGINALS = [
    Example("1", "the soup was good", label="positive", group="A", split="train"),
    Example("2", "the soup was good", "it was\u2028warm", label="neither"),
    Example("3", "nobody rewrote this"),
]


def says(example, best, n=3):
    return Prediction(example, LABELS[:n], tuple(0.7 if k == best else 0.3 / (n - 1) for k in range(n)), "r7")


def flip(example="1", new="bad", pair=None, **more):
    edit = Edit(3, "good", new)
    steps = (Step((edit,), says(example, 0), (Alternative(Edit(3, "good", "cold"), 0.4),)),)
    recipe = Recipe("counterfactuals", "hotflip", (("beam", 10),), 3)
    text = f"the soup was {new}"
    return Counterfactual(example, (edit,), text, pair, says(example, 1), says(example, 0), recipe, steps=steps, **more)


def rate(one, author="ann", ratings=(5, 4, 2), label=None, **more):
    rating = FlipRating(one.id, *ratings, label)
    return Feedback(f"{author} {one.id}", rating, author, "2026-01-02T03:04:05Z", "r7", **more)


FLIPS = [
    flip(perplexity=0.25, similarity=0.9, editable=(3,)),
    flip("2", "", "it was\u2028warm", target="neither"),
    flip("gone", "great"),
]
RATINGS = [
    rate(FLIPS[0], seconds=4.5, text_hash="x"),
    rate(FLIPS[0], "bob", (None, 2, 4), "negative"),
    rate(FLIPS[1], "bob", (None, None, None)),
]


def test_what_is_read_back_is_what_was_written(tmp_path):
    made = export_flips(FLIPS, RATINGS, ORIGINALS, tmp_path / "out", names=True)
    expected = [
        FlipRecord(FLIPS[0].id, "r7", ORIGINALS[0], FLIPS[0], tuple(RATINGS[:2])),
        FlipRecord(FLIPS[1].id, "r7", ORIGINALS[1], FLIPS[1], tuple(RATINGS[2:])),
        FlipRecord(FLIPS[2].id, "r7", None, FLIPS[2]),
    ]
    assert read_flips(made.folder) == read_flips(made.folder / "flips.jsonl") == expected
    assert check_export(made.folder) is None
    assert made.checked.startswith("3 flips and 3 ratings were written and read back. Of 1 the original")
    assert set(made.files) == {"README.md", "flips.jsonl", "flips.parquet", "ratings.parquet", "manifest.json"}
    assert json.loads((made.folder / "manifest.json").read_text())["facts"]["revision"] == "r7"


def test_a_line_says_everything(tmp_path):
    made = export_flips(FLIPS, RATINGS, {one.id: one for one in ORIGINALS}, tmp_path / "out", names=True)
    line = json.loads((made.folder / "flips.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert line["id"] == FLIPS[0].id
    assert line["revision"] == "r7"
    assert line["original"]["text"] == "the soup was good"
    assert line["flip"]["text"] == "the soup was bad"
    assert line["flip"]["edits"] == [{"position": 3, "old": "good", "new": "bad"}]
    assert line["flip"]["before"]["probabilities"] == list(FLIPS[0].before.probabilities)
    assert line["flip"]["steps"][0]["alternatives"][0]["edit"]["new"] == "cold"
    assert line["flip"]["recipe"]["name"] == "hotflip"
    assert (line["flip"]["perplexity"], line["flip"]["similarity"]) == (0.25, 0.9)
    assert [(one["author"], one["at"]) for one in line["ratings"]] == [
        ("ann", "2026-01-02T03:04:05Z"),
        ("bob", "2026-01-02T03:04:05Z"),
    ]
    assert line["ratings"][1]["says"]["label"] == "negative"


def test_datasets_loads_the_folder(tmp_path):
    made = export_flips(FLIPS, RATINGS, ORIGINALS, tmp_path / "out")
    rows = datasets.load_dataset(str(made.folder), "flips", split="train", cache_dir=str(tmp_path / "cache"))
    first, second, third = rows
    assert (first["original"], first["text"], first["group"]) == ("the soup was good", "the soup was bad", "A")
    assert first["edits"] == [{"position": 3, "old": "good", "new": "bad"}]
    assert first["steps"][0]["predicted"] == "negative"
    assert first["probabilities_after"] == pytest.approx(list(FLIPS[0].after.probabilities))
    assert (first["ratings"], first["plausible"], first["meaningful"], first["agrees"]) == (2, 5.0, 3.0, 3.0)
    assert (first["label"], first["revision"], first["generator"]) == ("negative", "r7", "hotflip")
    assert (second["pair"], second["target"], second["flips"]) == ("it was\u2028warm", "neither", False)
    assert (second["ratings"], second["agrees"]) == (1, None)
    assert (third["original"], third["ratings"], third["label"]) == (None, 0, None)
    ratings = datasets.load_dataset(str(made.folder), "ratings", split="train", cache_dir=str(tmp_path / "cache"))
    assert [(r["flip"], r["author"], r["plausible"], r["agrees"]) for r in ratings] == [
        (FLIPS[0].id, "person-1", 5, 2),
        (FLIPS[0].id, "person-2", None, 4),
        (FLIPS[1].id, "person-2", None, None),
    ]
    assert ratings[0]["at"] == "2026-01-02T03:04:05Z"


def test_people_are_not_named_unless_asked_for(tmp_path):
    ratings = [replace(one, id=str(n)) for n, one in enumerate(RATINGS)]
    made = export_flips(FLIPS, ratings, ORIGINALS, tmp_path / "out")
    assert not any(name in (made.folder / "flips.jsonl").read_text(encoding="utf-8") for name in ('"ann"', '"bob"'))
    assert {one.author for record in read_flips(made.folder) for one in record.ratings} == {"person-1", "person-2"}


def test_only_ratings_of_these_flips_that_stand_are_in_it(tmp_path):
    first, later = replace(rate(FLIPS[0]), id="1"), replace(rate(FLIPS[0], ratings=(1, 1, 1)), id="2")
    back = replace(RATINGS[1], id="3", retracts=RATINGS[1].id)
    vote = Feedback("4", WordVote("good", "positive", "lower"), "ann", "2026-01-01T00:00:00Z", "r7")
    log = [first, later, RATINGS[1], back, vote, rate(flip(new="else"))]
    made = export_flips(FLIPS[:1] * 2, log, ORIGINALS, tmp_path / "out", names=True)
    (record,) = read_flips(made.folder)
    assert record.ratings == (later,)


def test_flips_without_ratings_are_a_data_set_too(tmp_path):
    made = export_flips(FLIPS, [], ORIGINALS, tmp_path / "out")
    assert "ratings.parquet" not in made.files
    rows = datasets.load_dataset(str(made.folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(rows) == 3


def test_nothing_to_write_nothing_over_anything_and_nothing_else_read(tmp_path):
    with pytest.raises(BadData, match="no flips"):
        export_flips([], RATINGS, ORIGINALS, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    made = export_flips(FLIPS, RATINGS, ORIGINALS, tmp_path / "out")
    with pytest.raises(Conflict, match="unchanged"):
        export_flips(FLIPS, RATINGS, ORIGINALS, tmp_path / "out")
    with pytest.raises(BadData, match="cannot be read"):
        read_flips(tmp_path / "nowhere")
    bad = tmp_path / "bad.jsonl"
    bad.write_text((made.folder / "flips.jsonl").read_text(encoding="utf-8") + '{"id": 3}\n', encoding="utf-8")
    with pytest.raises(BadData, match="Line 4"):
        read_flips(bad)


anything = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(anything, anything, st.none() | anything), min_size=1, max_size=3))
def test_any_text_survives(tmp_path_factory, rewritten):
    flips = [replace(flip(), edits=(Edit(0, old, text),), text=text, pair=pair) for old, text, pair in rewritten]
    flips = list({one.id: one for one in flips}.values())
    originals = [Example("1", rewritten[0][0], rewritten[0][2])]
    made = export_flips(
        flips, [rate(one) for one in flips], originals, tmp_path_factory.mktemp("any") / "out", names=True
    )
    found = read_flips(made.folder)
    assert [one.flip for one in found] == flips
    assert all(one.original == originals[0] and one.ratings == (rate(one.flip),) for one in found)
