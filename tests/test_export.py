"""Exports: whole or absent, loaded by other tools as they are, checked before they are kept, and true to the facts."""

from __future__ import annotations

import base64
import http.server
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import tiny
from unhans.errors import BadData, BadModel, BadOption, Conflict, NotAllowed, ProjectProblem, Unsupported
from unhans.export import (
    Facts,
    check_export,
    export_bundle,
    export_feedback,
    export_model,
    export_report,
    facts_of,
    model_card,
    push,
)
from unhans.model import TransformerClassifier
from unhans.scoring import ask
from unhans.types import (
    Example,
    Expectation,
    Feedback,
    FlipRating,
    Measure,
    NeighbourRating,
    Recipe,
    Relabel,
    Report,
    Review,
    Revision,
    Ruling,
    WordEffect,
    WordVote,
)

TEXTS = [
    Example(str(n), sentence, label=("negative", "positive")[n % 2], split=("train", "test")[n // 6])
    for n, sentence in enumerate(tiny.SENTENCES)
]
CARD = Facts("reviews")


def exported(folder, kind="bert", labels=2, check_on=TEXTS, card=CARD, **how):
    model = tiny.transformer(kind, labels)
    return model, export_model(model, folder, card=card, check_on=check_on, **how)


def said(n, says, author="ada", text_hash=None, revision="r", **more):
    return Feedback(f"f{n}", says, author, "2024-05-06T07:08:09+00:00", revision, text_hash, **more)


# -- the model


@pytest.mark.parametrize(("kind", "labels"), [("bert", 2), ("roberta", 3), ("gpt2", 2)])
def test_transformers_loads_the_folder_as_it_is_and_answers_the_same(tmp_path, kind, labels):
    model, made = exported(tmp_path / "out", kind, labels)
    bare = AutoModelForSequenceClassification.from_pretrained(made.folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(made.folder)
    expected = ask(model, TEXTS)
    for example, line in zip(TEXTS, expected, strict=True):
        inputs = tokenizer(example.text, return_tensors="pt", truncation=True)
        with torch.inference_mode():
            found = bare(**inputs).logits[0].numpy()
        assert np.abs(found - line).max() < 1e-4
    assert tuple(bare.config.id2label.values()) == model.labels
    assert TransformerClassifier.open(made.folder).revision == model.revision


def test_pairs_are_checked_and_loaded_too(tmp_path):
    pairs = [replace(example, pair="the soup was good") for example in TEXTS]
    model, made = exported(tmp_path / "out", labels=3, check_on=pairs)
    bare = AutoModelForSequenceClassification.from_pretrained(made.folder).eval()
    inputs = AutoTokenizer.from_pretrained(made.folder)(pairs[0].text, pairs[0].pair, return_tensors="pt")
    with torch.inference_mode():
        assert np.abs(bare(**inputs).logits.numpy() - ask(model, pairs[:1])).max() < 1e-4


def test_a_shorter_limit_goes_with_the_model(tmp_path):
    own = tiny.transformer()
    short = TransformerClassifier(own.model, own.tokenizer, 8, "cpu")
    made = export_model(short, tmp_path / "out", card=CARD, check_on=TEXTS)
    assert TransformerClassifier.open(made.folder).limit == 8
    assert own.tokenizer.model_max_length == tiny.LIMIT
    assert "At most 8 tokens" in (made.folder / "README.md").read_text()


def test_what_comes_back_is_what_is_there(tmp_path):
    _, made = exported(tmp_path / "deep" / "out", check_on=TEXTS * 20)
    there = sorted(path.name for path in made.folder.iterdir())
    assert sorted(made.files) == there
    assert {"README.md", "config.json", "manifest.json", "model.safetensors"} <= set(there)
    assert made.size == sum(path.stat().st_size for path in made.folder.iterdir())
    assert "50 predictions" in made.checked
    assert not [name for name in there if name.endswith((".bin", ".pkl", ".pt", ".py"))]


def test_the_manifest_says_what_it_is_and_notices_tampering(tmp_path):
    model, made = exported(tmp_path / "out")
    manifest = json.loads((made.folder / "manifest.json").read_text())
    assert manifest["facts"]["revision"] == model.revision
    assert {"unhans", "torch", "transformers"} <= manifest["facts"]["versions"].keys()
    assert set(manifest["files"]) == set(made.files) - {"manifest.json"}
    assert all(len(facts["sha256"]) == 64 for facts in manifest["files"].values())
    assert check_export(made.folder) is None
    weights = made.folder / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    assert "model.safetensors" in check_export(made.folder)
    with pytest.raises(ProjectProblem, match="Nothing was uploaded"):
        push(made.folder, "me/reviews")


def test_nothing_is_ever_written_over(tmp_path):
    _, made = exported(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in made.folder.iterdir()}
    with pytest.raises(Conflict, match="unchanged"):
        exported(tmp_path / "out")
    assert {path.name: path.read_bytes() for path in made.folder.iterdir()} == before


@pytest.mark.parametrize("damage", [float("nan"), float("inf")])
def test_weights_that_are_not_numbers_are_refused(tmp_path, damage):
    model = tiny.transformer()
    with torch.no_grad():
        model.model.classifier.weight[0, 0] = damage
    with pytest.raises(BadModel, match="not numbers"):
        export_model(model, tmp_path / "out", card=CARD, check_on=TEXTS)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_answers_otherwise_once_written_is_not_kept(tmp_path):
    class Forgetful(TransformerClassifier):
        """What it does to its answers is in no file."""

        def answer(self, questions):
            return -super().answer(questions)

    own = tiny.transformer()
    model = Forgetful(own.model, own.tokenizer, own.limit, "cpu")
    with pytest.raises(BadModel, match="12 of 12 predictions differ"):
        export_model(model, tmp_path / "out", card=CARD, check_on=TEXTS)
    assert list(tmp_path.iterdir()) == []


def test_black_boxes_and_exports_without_a_check_are_refused(tmp_path):
    with pytest.raises(Unsupported, match="weights are not here"):
        export_model(tiny.bag_of_words({}), tmp_path / "out", card=CARD, check_on=TEXTS)
    with pytest.raises(BadData, match="checked on examples"):
        exported(tmp_path / "out", check_on=[])
    assert list(tmp_path.iterdir()) == []


# -- the card

NASTY = "a|b\n# c <script>alert(1)</script> [x](http://evil.example) `d` **e** \u202e $x$"
RECIPE = Recipe("fixes", "explanation_regularisation", (("strength", 2.0), ("method", NASTY)), 3)
REPORT = Report(
    "r0",
    "r1",
    (
        Measure("accuracy", "test", 0.9, 0.95, 0.02, 0.08, n=500),
        Measure("accuracy", NASTY, 0.8, 0.7, -0.15, -0.05, slice="label positive", n=200),
        Measure("accuracy", "test · without voted words", 0.8, 0.81, -0.05, 0.06, n=200),
    ),
    (Expectation("accuracy >= 0.99", False, 0.95, "It is 0.95."), Expectation("broken <= 50", True, 7.0)),
    n_fixed=32,
    n_broken=7,
    words=(WordEffect(NASTY, "positive", "lower", None, 0.4, 0.1, 2.0, 0.1, 30),),
    notes=(NASTY,),
    recipe=RECIPE,
)
LOG = [
    said(1, WordVote("cold", "negative", "lower", "0", 3), "ada lovelace", TEXTS[0].text_hash),
    said(2, WordVote("cold", "negative", "lower", "0", 3), "bob", TEXTS[0].text_hash),
    said(3, Review("0", "done", "ask ada"), "ada lovelace"),
    said(4, Review("0", "done"), "bob"),
    said(5, Relabel("1", "negative"), "bob", TEXTS[1].text_hash),
    said(6, WordVote("film", "positive", "raise"), "bob"),
]
REVISION = Revision(
    "r1-id", "r0-id", RECIPE, ("negative", "positive"), ("f1", "f2", "f5"), at="2024-05-06T08:00:00+00:00"
)


def card(**changed):
    facts = facts_of(NASTY, examples=TEXTS, feedback=LOG, revision=REVISION, report=REPORT, command="unhans export x")
    return model_card(tiny.transformer(), replace(facts, **changed), "It was checked.")


def test_the_card_begins_with_yaml_that_the_hub_reads():
    _, front, _ = card().split("---\n", 2)
    told = yaml.safe_load(front)
    assert told["pipeline_tag"] == "text-classification"
    assert told["license"] == "unknown"
    assert "unhans" in told["tags"]
    assert "language" not in told
    given = yaml.safe_load(card(licence="mit\ntags: [x]", language="de").split("---\n", 2)[1])
    assert (given["license"], given["language"]) == ("mit\ntags: [x]", "de")
    assert given["tags"] == told["tags"]


def test_what_got_worse_is_said_first():
    text = card()
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert sections[0] == "## What got worse"
    first = text[text.index("## What got worse") : text.index(sections[1])]
    assert "fell by 10.0 points" in first
    assert "accuracy &gt;= 0.99" in first
    assert "7 examples that were right became wrong" in first
    assert "not compared" in card(report=None)
    calm = replace(REPORT, measures=REPORT.measures[:1], expectations=(), n_broken=0)
    assert "Nothing that was measured fell beyond its interval." in card(report=calm)


def test_the_card_has_the_facts():
    text = card()
    for fact in ("r1-id", "r0-id", "strength: 2.0", "seed: 3", "unhans export x", "It was checked.", "32 tokens"):
        assert fact in text
    assert "| train | negative | 3 |" in text
    assert "| word vote | 2 |" in text
    assert "| relabel | 1 |" in text
    assert "Given by 2 people." in text
    assert "Krippendorff" in text
    assert "90.0 | 95.0 | +5.0 (+2.0 to +8.0) | better" in text
    assert "Language of the texts: unknown" in text
    assert "were made from the votes" in text


def test_nobody_is_named_unless_asked():
    assert "ada" not in card()
    named = facts_of("x", examples=TEXTS, feedback=LOG, revision=REVISION, names=True)
    assert "ada lovelace" in model_card(tiny.transformer(), named, "")


def test_nothing_from_people_is_markup():
    text = card()
    body = text.split("---\n", 2)[2]
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(", body)
    assert "://" not in body
    assert "\u202e" not in text
    assert sum(line.startswith("# ") for line in body.splitlines()) == 1
    tables = [line.replace("\\|", "") for line in body.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} <= {3, 4, 5, 9}
    assert "**e**" not in body


def test_labels_with_markup_stay_in_their_cell(tmp_path):
    names = ("a|b", "<img src=x>")
    examples = [Example(str(n), text.text, label=names[n % 2]) for n, text in enumerate(TEXTS)]
    model = tiny.transformer()
    model.model.config.id2label = dict(enumerate(names))
    model = TransformerClassifier(model.model, model.tokenizer, model.limit, "cpu")
    text = model_card(model, facts_of("x", examples=examples), "")
    assert "| all | a\\|b | 6 |" in text
    assert "| all | &lt;img src=x&gt; | 6 |" in text


def test_a_model_without_history_says_so():
    text = model_card(tiny.transformer("averaging"), CARD, "")
    for fact in (
        "Nothing is recorded about the data",
        "not taught any feedback",
        "Nothing was measured",
        "Parent: none",
    ):
        assert fact in text
    assert "import unhans.averaging" in text  # transformers does not have the architecture
    assert "import unhans" not in card()


# -- feedback


def table(folder: Path, config: str, cache: Path):
    return datasets.load_dataset(str(folder), config, split="train", cache_dir=str(cache))


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    datasets.disable_progress_bars()


@pytest.mark.usefixtures("offline")
def test_datasets_loads_answers_and_highlights(tmp_path):
    made = export_feedback(tmp_path / "out", TEXTS, LOG, revision="r")
    rows = list(table(made.folder, "feedback", tmp_path / "cache"))
    assert [row["kind"] for row in rows] == [entry.says.kind for entry in LOG]
    assert [row["author"] for row in rows] == ["person-1", "person-2"] + ["person-1"] + ["person-2"] * 3
    assert (rows[0]["word"], rows[0]["vote"], rows[0]["example"], rows[0]["position"]) == ("cold", "lower", "0", 3)
    assert not any(row["stale"] for row in rows)
    assert {row["note"] for row in rows} == {None}
    first, second = table(made.folder, "highlights", tmp_path / "cache")
    assert first["text"] == TEXTS[0].text
    assert [word for word, low in zip(first["words"], first["lowered"], strict=True) if low] == ["cold"]
    assert not any(first["raised"])
    assert (first["label"], first["for_label"], first["votes"], first["corrected"]) == ("negative", "negative", 2, None)
    assert (second["id"], second["label"], second["corrected"]) == ("1", "positive", "negative")
    assert "6 answers and 2 texts" in made.checked


@pytest.mark.usefixtures("offline")
def test_a_table_without_rows_is_left_out(tmp_path):
    made = export_feedback(tmp_path / "out", TEXTS, LOG[5:], revision="r")  # a vote everywhere marks no text
    assert len(table(made.folder, "feedback", tmp_path / "cache")) == 1
    assert "highlights.parquet" not in made.files
    assert "highlights" not in (made.folder / "README.md").read_text()
    with pytest.raises(BadData, match="Nobody has said anything"):
        export_feedback(tmp_path / "none", TEXTS, [], revision="r")
    assert not (tmp_path / "none").exists()


def rows_of(folder: Path, name: str):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def test_answers_of_all_kinds_have_their_columns(tmp_path):
    log = [
        said(1, FlipRating("c", 1, 2, 3)),
        said(2, NeighbourRating("0", "1", 4)),
        said(3, Ruling('["relabel","1"]', "positive")),
    ]
    flip, neighbour, ruling = rows_of(export_feedback(tmp_path / "out", TEXTS, log, revision="r").folder, "feedback")
    assert (flip["plausible"], flip["meaningful"], flip["agrees"]) == (1, 2, 3)
    assert (neighbour["anchor"], neighbour["train"], neighbour["similar"]) == ("0", "1", 4)
    assert ruling["value"] == "positive"


def test_stale_answers_are_flagged_and_highlight_nothing(tmp_path):
    log = [
        said(1, WordVote("cold", "negative", "lower", "0", 3), text_hash="another"),
        said(2, WordVote("cold", "negative", "lower", "gone", 3), text_hash="another"),
        said(3, WordVote("film", "positive", "lower", "1", 2), text_hash=TEXTS[1].text_hash, revision="older"),
    ]
    folder = export_feedback(tmp_path / "out", TEXTS, log, revision="r").folder
    assert [row["stale"] for row in rows_of(folder, "feedback")] == [True, True, True]
    whys = [row["why_stale"] for row in rows_of(folder, "feedback")]
    assert len(set(whys)) == 3
    (row,) = rows_of(folder, "highlights")  # another revision was asked, but the text is the same
    assert row["id"] == "1"


def test_the_majority_marks_words_and_a_tie_marks_nothing(tmp_path):
    votes = {"ada": "raise", "bob": "raise", "cyd": "lower"}
    log = [said(n, WordVote("soup", "negative", vote, "0", 1), name) for n, (name, vote) in enumerate(votes.items())]
    log += [said(10, WordVote("the", "negative", "lower", "0"), "ada")]  # no position: wherever it stands
    log += [
        said(n + 20, WordVote("care", "negative", v, "0", 10), who)
        for n, (who, v) in enumerate(list(votes.items())[1:])
    ]
    (row,) = rows_of(export_feedback(tmp_path / "out", TEXTS, log, revision="r").folder, "highlights")
    words = list(zip(row["words"], row["raised"], row["lowered"], strict=True))
    assert [word for word, up, _ in words if up] == ["soup"]
    assert [word for word, _, down in words if down] == ["The", "the"]


def test_retracted_answers_are_gone_and_names_come_if_asked(tmp_path):
    log = [*LOG, said(7, Review("0", "done"), "bob", retracts="f6")]
    plain = rows_of(export_feedback(tmp_path / "plain", TEXTS, log, revision="r").folder, "feedback")
    assert "f6" not in {row["id"] for row in plain}
    named = rows_of(export_feedback(tmp_path / "named", TEXTS, log, revision="r", names=True).folder, "feedback")
    assert {row["author"] for row in named} == {"ada lovelace", "bob"}
    assert "ask ada" in {row["note"] for row in named}
    assert b"lovelace" not in (tmp_path / "plain" / "feedback.parquet").read_bytes()


def test_strange_texts_can_be_stored(tmp_path):
    example = Example("x", "half \ud800 a pair", label="a\x00b")
    log = [said(1, WordVote("half", "a\x00b", "lower", "x", 0), "\ud800")]
    (row,) = rows_of(export_feedback(tmp_path / "out", [example], log, revision="r").folder, "highlights")
    assert row["text"] == "half \ufffd a pair"


# -- the report, and all of it


def test_a_report_is_one_page_that_needs_nothing_else(tmp_path):
    path = export_report(REPORT, tmp_path / "new" / "report.html", NASTY)
    page = path.read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "<script>alert" not in page
    assert "src=" not in page
    with pytest.raises(Conflict, match="exists already"):
        export_report(REPORT, path)


def bundle(folder, **how):
    given = {"report": REPORT, "feedback": LOG, "examples": TEXTS, "revision": REVISION} | how
    return export_bundle(folder, **{"classifier": tiny.transformer()} | given)


def test_a_bundle_has_all_parts_under_one_manifest(tmp_path):
    made = bundle(tmp_path / "out")
    assert made.parts == ("model", "feedback", "report")
    assert {"manifest.json", "report.html", "model/config.json", "model/README.md", "feedback/README.md"} <= set(
        made.files
    )
    AutoModelForSequenceClassification.from_pretrained(made.folder / "model")
    assert len(rows_of(made.folder / "feedback", "feedback")) == len(LOG)
    manifest = json.loads((made.folder / "manifest.json").read_text())
    assert set(manifest["files"]) == set(made.files) - {"manifest.json"}
    assert manifest["facts"]["parts"] == list(made.parts)
    assert "predictions are the same" in made.checked
    assert check_export(made.folder) is None
    (made.folder / "report.html").write_text("all is well")
    assert "report.html" in check_export(made.folder)


def test_a_bundle_has_only_what_was_asked_for_and_there_is(tmp_path):
    few = bundle(tmp_path / "few", parts=("feedback",), classifier=tiny.bag_of_words({}))
    assert {name.split("/")[0] for name in few.files} == {"feedback", "manifest.json"}
    bare = bundle(tmp_path / "bare", report=None, parts=("report", "feedback"))
    assert bare.parts == ("feedback",)
    silent = bundle(tmp_path / "silent", feedback=[], parts=("report", "feedback"))
    assert silent.parts == ("report",)
    with pytest.raises(BadOption, match="nothing to export"):
        bundle(tmp_path / "none", report=None, parts=("report",))
    with pytest.raises(BadOption, match="no part 'weights'"):
        bundle(tmp_path / "none", parts=("weights",))
    assert not (tmp_path / "none").exists()


def test_a_bundle_that_fails_half_way_is_not_there(tmp_path):
    with pytest.raises((TypeError, AttributeError)):
        bundle(tmp_path / "out", title=None)  # no page can have it, and the page is written last
    assert list(tmp_path.iterdir()) == []


# -- the hub


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as an upload needs: it makes repositories, wants every file in the commit, and keeps it."""

    seen: list[tuple[str, bytes]]
    status = 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.path, body))
        if self.path.endswith("/preupload/main"):
            told = {"files": [f | {"uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]]}
        elif self.path.endswith("/commit/main"):
            told = {
                "commitUrl": f"http://{self.headers['Host']}/me/reviews/commit/1",
                "commitOid": "1" * 40,
                "success": True,
            }
        elif self.path.endswith("/validate-yaml"):
            told = {"errors": [], "warnings": []}
        else:
            told = {"url": f"http://{self.headers['Host']}/me/reviews", "name": "me/reviews", "id": "me/reviews"}
        self._answer(self.status, told)

    def do_GET(self):
        self._answer(404 if "model_info" in self.path else 200, {"sha": "0" * 40, "id": "me/reviews", "siblings": []})

    def _answer(self, status, told):
        content = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(monkeypatch):
    handler = type("Own", (Hub,), {"seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_hub_gets_the_files_as_they_are(tmp_path, hub):
    _, made = exported(tmp_path / "out")
    assert push(made.folder, "me/reviews", token="hf_x").endswith("/me/reviews/commit/1")
    created = next(json.loads(body) for path, body in hub.seen if path == "/api/repos/create")
    assert created["name"] == "reviews"
    assert created.get("private") is True or created.get("visibility") == "private"
    commit = next(body for path, body in hub.seen if path.endswith("/commit/main"))
    files = [line["value"] for line in map(json.loads, commit.splitlines()) if line["key"] == "file"]
    assert {file["path"]: base64.b64decode(file["content"]) for file in files} == {
        name: (made.folder / name).read_bytes() for name in made.files
    }


def test_a_token_that_may_not_write_is_told_so(tmp_path, hub):
    hub.status = 403
    _, made = exported(tmp_path / "out")
    with pytest.raises(NotAllowed, match="does not let this token write"):
        push(made.folder, "me/reviews", token="hf_x")
    hub.status = 400
    with pytest.raises(Unsupported, match="HTTP 400"):
        push(made.folder, "me/reviews", token="hf_x")


def test_without_the_hub_the_export_is_still_there(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(Unsupported, match="The export itself is whole"):
        exported(tmp_path / "out", push_to="me/reviews", token="hf_x")
    assert check_export(tmp_path / "out") is None
    with pytest.raises(BadOption, match="name/model"):
        exported(tmp_path / "other", push_to="not a name!")
    assert not (tmp_path / "other").exists()
