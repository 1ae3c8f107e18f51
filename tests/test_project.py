from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import tiny
from unhans.data import read
from unhans.errors import BadData, ProjectProblem
from unhans.project import Project, _lasting, count, match_labels
from unhans.types import Example, Prediction, from_json

EXAMPLES = [
    Example("a", "The soup was cold", label="negative", split="train"),
    Example("b", "A wonderful film", label="positive", split="train"),
    Example("c", "Is the battery good?", split="test"),
]


def test_a_project_is_found_again_with_model_and_data(tmp_path):
    classifier = tiny.transformer()
    Project.create(tmp_path / "p", model=classifier, data=EXAMPLES)
    found = Project.open(tmp_path / "p")
    assert found.classifier.revision == classifier.revision
    assert list(found.examples) == EXAMPLES
    assert [revision.id for revision in found.revisions] == [classifier.revision]
    assert found.revisions[0].at is not None
    assert found.name == "p"


def test_predictions_are_kept_once_complete_and_answered_from_the_cache_next_time(tmp_path):
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    final = tmp_path / f"p/predictions/{project.classifier.revision}.jsonl"
    stream = project.predict()
    next(stream)
    assert not final.exists()
    stream.close()
    assert list(final.parent.iterdir()) == []
    predictions = list(project.predict())
    lines = final.read_text().splitlines()
    assert [from_json(Prediction, line) for line in lines] == predictions
    again = Project.open(tmp_path / "p")
    again.classifier.answer = None  # must not be needed: all answers are on disk
    assert list(again.predict()) == predictions


def test_an_existing_folder_is_never_written_over(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "mine.txt").write_text("precious")
    with pytest.raises(ProjectProblem, match="Nothing was changed"):
        Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    assert (tmp_path / "p" / "mine.txt").read_text() == "precious"


def test_a_failed_creation_leaves_nothing_behind(tmp_path):
    with pytest.raises(BadData):
        Project.create(tmp_path / "p", model=tiny.transformer(), data=[Example("a", "x", label="strange")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "not a project"),
        ("{", "cannot be read"),
        ('{"format": 99}', "another version"),
        ('{"format": 1}', "damaged"),
        ('{"format": 1, "name": "x", "notes": {}, "revisions": [{"id": 3}]}', "damaged"),
    ],
)
def test_a_folder_that_is_no_project_is_told_why(tmp_path, content, said):
    if content is not None:
        (tmp_path / "project.json").write_text(content)
    with pytest.raises(ProjectProblem, match=said):
        Project.open(tmp_path)


def test_a_function_cannot_be_kept_in_a_project(tmp_path):
    with pytest.raises(ProjectProblem, match="on disk"):
        Project.create(tmp_path / "p", model=lambda texts: [[0.5, 0.5]] * len(texts), data=EXAMPLES)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["positive", "negative"], {"positive": "positive", "negative": "negative"}),
        (["Positive", " NEGATIVE"], {"Positive": "positive", " NEGATIVE": "negative"}),
        (["0", "1"], {"0": "negative", "1": "positive"}),
        ([], {}),
    ],
)
def test_labels_of_the_data_are_matched_with_those_of_the_model(given, expected):
    assert match_labels(given, ("negative", "positive")) == expected


@pytest.mark.parametrize("given", [["0", "2"], ["pos"], ["0", "positive"]])
def test_labels_that_do_not_match_are_an_error_that_lists_the_models(given):
    with pytest.raises(BadData, match="negative, positive"):
        match_labels(given, ("negative", "positive"))


def test_numbered_labels_are_stored_by_name(tmp_path):
    project = Project.create(
        tmp_path / "p", model=tiny.transformer(), data=read([{"text": "soup", "label": 1}, {"text": "x", "label": 0}])
    )
    assert [example.label for example in project.examples] == ["positive", "negative"]


def test_accuracy_is_counted_by_split_over_labelled_examples():
    tally = {}
    for example in EXAMPLES:
        count(example, Prediction(example.id, ("negative", "positive"), (0.9, 0.1), "r"), tally)
    (found,) = tally.values()
    assert (found.split, found.right, found.labelled, found.share) == ("train", 1, 2, 0.5)


def test_a_model_that_is_not_copied_is_found_from_anywhere(tmp_path, monkeypatch):
    folder = tiny.save_folder(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    assert _lasting("m") == str(folder)
    assert _lasting("https://example.org/model") == "https://example.org/model"


def test_two_predictions_at_once_do_not_disturb_each_other(tmp_path):
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    first, second = project.predict(), project.predict()
    next(first), next(second)
    assert len(list(first)) == len(list(second)) == 2


def test_a_damaged_cache_is_made_anew(tmp_path):
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    (tmp_path / "p/cache").mkdir()
    (tmp_path / "p/cache/answers.sqlite").write_bytes(b"this is no database" * 100)
    assert len(list(project.predict())) == 3


def test_a_place_that_cannot_be_a_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProjectProblem, match="No folder can be made"):
        Project.create(tmp_path / "file" / "p", model=tiny.transformer(), data=EXAMPLES)


def test_the_project_file_is_plain_json(tmp_path):
    Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES, notes={"demo": True})
    assert json.loads((tmp_path / "p/project.json").read_text())["notes"] == {"demo": True}


def test_a_creation_that_fails_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    classifier = tiny.transformer()

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(classifier.tokenizer, "save_pretrained", full)
    with pytest.raises(OSError, match="no space"):
        Project.create(tmp_path / "p", model=classifier, data=EXAMPLES)
    assert list(tmp_path.iterdir()) == []


def test_a_project_is_for_its_owner_only(tmp_path):
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    assert project.folder.stat().st_mode & 0o077 == 0


class _Service(BaseHTTPRequestHandler):
    """Says 60 % to every text, and counts how often it was asked."""

    asked = 0

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        type(self).asked += len(texts)
        answer = json.dumps({"labels": ["negative", "positive"], "probabilities": [[0.4, 0.6]] * len(texts)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def test_a_service_is_asked_anew_because_it_may_have_changed(tmp_path):
    server = HTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        project = Project.create(tmp_path / "p", model=address, data=EXAMPLES)
        assert len(list(project.predict())) == 3
        before = _Service.asked
        assert len(list(project.predict())) == 3
        assert _Service.asked == before + 3
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
