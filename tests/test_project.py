from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute, attribution
from unhans.data import read
from unhans.errors import BadData, Cancelled, NoSpace, ProjectProblem, Unsupported
from unhans.project import Project, _lasting, count, match_labels, sample
from unhans.text import Hole, Words
from unhans.types import Example, Prediction
from unhans.work import _check_kept

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


def test_predictions_are_kept_as_they_come_and_answered_from_the_cache_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr("unhans.project._AT_ONCE", 1)
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)
    revision = project.classifier.revision
    stream = project.predict()
    next(stream)
    stream.close()
    assert len(list(project.table.predictions(revision))) == 1
    predictions = list(project.predict())
    assert list(project.table.predictions(revision)) == predictions
    again = Project.open(tmp_path / "p")
    again.classifier.answer = None  # must not be needed: all answers are on disk
    assert list(again.predict()) == predictions
    assert list(again.table.predictions(revision)) == predictions


def test_how_much_of_a_text_is_unknown_is_kept_with_its_prediction(tmp_path):
    data = [Example("a", "the soup was cold"), Example("b", "☃☃ ☃")]
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=data)
    list(project.predict())
    revision = project.current.id
    assert project.table.unknown_share(0, revision) == 0
    assert project.table.unknown_share(1, revision) > 0.5
    assert "unknown to the model" in " ".join(project.example_view(1, author="me", sees_others=True).warnings)


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
        ('{"format": 1}', "make it anew"),
        ('{"format": 2}', "damaged"),
        ('{"format": 2, "name": "x", "notes": {}, "model": null, "schema": 3}', "damaged"),
        ('{"format": 2, "name": "x", "notes": {}, "model": null, "schema": "unhans_x"}', "PostgreSQL"),
        ('{"format": 2, "name": "x", "notes": {}, "model": null, "schema": null}', "database unhans.sqlite is missing"),
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
    with pytest.raises(NoSpace, match="disk is full"):
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
        project.explain()
        before = _Service.asked
        project.explain()
        assert _Service.asked > before
        assert project.explained.sets(project.current.id) == ()
        with pytest.raises(Unsupported, match="not kept"):  # so a job for the screens would be in vain
            _check_kept(project)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- explaining


@pytest.fixture
def project(tmp_path):
    return Project.create(tmp_path / "p", model=tiny.transformer(), data=EXAMPLES)


@pytest.fixture
def asking():
    """Two methods that ask for more than the model, and note what they got."""
    got = []

    def compared(words, background) -> list:
        """Compares."""
        got.append([example.id for example in background])
        return [np.ones(len(one)) for one in words]

    def filled(words, language_model) -> list:
        """Fills."""
        got.append(language_model)
        return [np.ones(len(one)) for one in words]

    attribution.names  # noqa: B018 - finds the others first
    attribution()(compared)
    attribution()(filled)
    yield got
    for name in ("compared", "filled"):
        del attribution._entries[name]


def forbid_work(monkeypatch):
    def work(*_, **__):
        raise AssertionError("this was explained before")

    monkeypatch.setattr("unhans.project.attribute", work)


def test_explanations_equal_those_made_directly_and_are_kept(project, monkeypatch):
    found = project.explain("loo", target="positive")
    assert found == attribute(project.classifier, EXAMPLES, target="positive")
    again = Project.open(project.folder)
    forbid_work(monkeypatch)
    assert again.explain("leave_one_out", target="positive") == found
    assert again.explain("loo", target=1, examples=EXAMPLES[1:2]) == found[1:2]


@pytest.mark.parametrize(
    "other",
    [{"target": "negative"}, {"target": None}, {"units": "phrase"}, {"method": "ixg"}, {"erase": "mask"}],
    ids=str,
)
def test_explanations_made_otherwise_are_made_anew(project, monkeypatch, other):
    how = {"method": "loo", "target": "positive"}
    project.explain(**how)
    forbid_work(monkeypatch)
    project.explain(**how)
    with pytest.raises(AssertionError, match="before"):
        project.explain(**(how | other))


def test_only_texts_that_were_not_explained_before_take_time(project, monkeypatch):
    real, asked = attribute, []

    def counting(classifier, examples, **how):
        asked.extend(example.id for example in examples)
        return real(classifier, examples, **how)

    monkeypatch.setattr("unhans.project.attribute", counting)
    project.explain(examples=EXAMPLES[:1])
    project.explain(examples=EXAMPLES)
    assert asked == ["a", "b", "c"]


def test_an_id_that_means_another_text_is_explained_anew(project):
    project.explain(examples=EXAMPLES[:1])
    (one,) = project.explain(examples=[Example("a", "good film")])
    assert one.words == ("good", "film")
    (same,) = project.explain(examples=[Example("z", "good film")])
    assert (same.example, same.scores) == ("z", one.scores)


def test_no_examples_are_no_explanations(project):
    assert project.explain(examples=[]) == []


def test_a_stop_keeps_what_was_finished(project, monkeypatch):
    monkeypatch.setattr("unhans.project._AT_ONCE", 1)
    seen = []
    with pytest.raises(Cancelled):
        project.explain(progress=lambda *told: seen.append(told), cancelled=lambda: len(seen) >= 2)
    assert seen == [(1, 3), (2, 3)]
    (kept,) = project.explained.sets(project.current.id)
    assert kept.count == 2


def test_line_separators_in_a_text_do_no_harm(project):
    odd = [Example("a", "soup\u2028film x"), Example("b", "good\u2029 film")]
    found = project.explain(units="sentence", examples=odd)
    assert "\u2028" in found[0].words[0]
    assert Project.open(project.folder).explain(units="sentence", examples=odd) == found


def test_methods_that_compare_get_training_examples_and_others_nothing(project, asking):
    project.explain("compared")
    assert asking == [["a", "b"]]
    assert not (project.folder / "language_model").exists()


def test_other_examples_to_compare_with_are_another_explanation(tmp_path, asking, monkeypatch):
    monkeypatch.setattr("unhans.project._BACKGROUND", 3)
    many = [Example(str(n), f"film {n}") for n in range(40)]
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=many)
    for seed in (0, 0, 1):
        project.explain("compared", examples=many[:1], seed=seed)
    first, second = asking
    assert len(first) == len(second) == 3
    assert first != second


def test_the_language_model_is_fitted_once_and_found_again(project, asking):
    project.explain("filled")
    assert project.language_model() is asking[0]
    again = Project.open(project.folder).language_model()
    assert len(again.fill([Words("The soup was cold").without([1], Hole.MASK)])[0][0]) > 0


def test_explanations_with_a_given_language_model_are_not_kept(project, asking):
    other = tiny.language_model()
    project.explain("filled", language_model=other)
    assert asking == [other]
    assert project.explained.sets(project.current.id) == ()
    assert not (project.folder / "language_model").exists()


def test_a_sample_is_drawn_by_its_seed_and_keeps_the_order():
    many = [Example(str(n), "x") for n in range(100)]
    assert sample(many, 100, 0) == many
    some = sample(many, 10, 1)
    assert some == sample(many, 10, 1) != sample(many, 10, 2)
    assert [int(e.id) for e in some] == sorted({int(e.id) for e in some})


# -- ranking


def test_ranked_words_are_kept_with_their_suspects_and_shown_a_page_at_a_time(project):
    many = [Example(str(n), f"The soup {n} was cold", label="negative") for n in range(8)]
    ranking, worst = project.rank("positive", examples=many)
    page = project.word_page("positive", author="me", sees_others=True, limit=2, order="total")
    assert page.total == len(ranking.words)
    seen = list(page.items)
    while page.next:
        page = project.word_page("positive", author="me", sees_others=True, limit=2, order="total", cursor=page.next)
        seen += page.items
    assert [row.word for row in seen] == [row.word for row in ranking.words]
    ranked = {row.word for row in ranking.words}  # rare words are not
    damage = {one.word: one.damage for one in worst.words if one.word in ranked}
    assert {row.word: row.damage for row in seen if row.damage is not None} == damage
    first = project.word_page("positive", author="me", sees_others=True, order="damage").items[0]
    assert first.damage == max(damage.values())
    assert project.word_page("negative", author="me", sees_others=True).explained is None


def test_a_second_ranking_takes_the_place_of_the_first(project):
    for n in (8, 4):
        many = [Example(str(k), f"The soup {k} was cold", label="negative") for k in range(n)]
        project.rank("positive", examples=many)
    assert {row.count for row in project.word_page("positive", author="me", sees_others=True).items} == {4}


def test_the_methods_are_described_for_those_who_cannot_load_them(project):
    found = {method.name: method for method in project.methods()}
    assert set(found) == set(attribution.names)
    assert found["leave_one_out"].usable
    assert not found["pattern_net"].usable
    assert "plain" in found["pattern_net"].unusable
    assert {option.name for option in found["lime"].options} == {o.name for o in attribution["lime"].options}
