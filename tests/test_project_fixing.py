"""A project taught by feedback: trained, proposed, verified, published, gone back from, exported."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from transformers import AutoModelForSequenceClassification

from small_project import QUICK, examples, lower, make, say
from unhans.errors import BadData, BadOption, Busy, Cancelled, NotFound, Unsupported
from unhans.mending import Follow, Shares, checkpoints, planned
from unhans.project import Project, _next_name
from unhans.shapes import LossPoint
from unhans.types import Example, Relabel, WordVote
from unhans.work import Curve


@pytest.fixture
def project(tmp_path):
    with make(tmp_path / "p") as made:
        lower(made)
        yield made


class Watcher:
    """Hears all that is told, and stops when it should."""

    def __init__(self, stop_at: str = "") -> None:
        self.steps: list[str] = []
        self.progress: list[tuple[int, int]] = []
        self.points = []
        self.epochs: list[str] = []
        self.stop_at = stop_at

    def follow(self) -> Follow:
        return Follow(
            self.steps.append,
            lambda *at: self.progress.append(at),
            self.cancelled,
            self.points.append,
            self.epochs.append,
        )

    def cancelled(self) -> bool:
        return bool(self.stop_at) and any(self.stop_at in step for step in self.steps)


def test_a_fix_is_proposed_verified_and_reported_but_not_in_use(project):
    before, watcher = project.classifier, Watcher()
    name, report = project.mend(
        "word_dropout", training=QUICK, follow=watcher.follow(), expectations=["broken <= 1000"]
    )
    assert (name, project.current_name, project.classifier) == ("r1", "r0", before)
    made = project.named("r1")
    assert made.id != before.revision
    assert (made.parent, made.recipe.name, made.folder) == (before.revision, "word_dropout", "models/r1")
    assert made.feedback == tuple(one.id for one in project.usable_feedback())
    assert (report.before, report.after) == (before.revision, made.id)
    assert {measure.data for measure in report.measures if measure.name == "accuracy"} >= {"test"}
    assert report.holds
    assert project.report("r0", "r1") == report
    assert project.fix_offer().expectations == ("broken <= 1000",)
    assert project.classifier_of("r1").revision == made.id
    # publishing has nothing left to do: all examples were predicted
    assert project.table.accuracy(made.id)[0] == len(project.examples)
    # what was told meanwhile
    assert watcher.steps[0].startswith("Training: epoch 1 of 1, loss ")
    assert {"Predicting with r1", "Verifying: before and after"} <= set(watcher.steps)
    done = [done for done, _ in watcher.progress]
    assert done == sorted(done)
    assert watcher.progress[-1] == (10_000, 10_000)
    assert {point.run for point in watcher.points} == {"word_dropout"}
    assert [point.step for point in watcher.points] == [1, 2, 3]
    assert watcher.epochs[0].startswith("word_dropout, epoch 1: loss ")
    assert list((project.folder / ".fixing").iterdir()) == []


def test_after_publishing_the_new_model_answers_and_after_going_back_the_old(project):
    project.mend("word_dropout", training=QUICK)
    old = project.classifier.revision
    project.publish("r1", expects="r0", even_so=True)
    assert project.classifier.revision == project.named("r1").id == project.current.id
    assert project.roll_back(expects="r1").current == "r0"
    assert project.classifier.revision == old
    with Project.open(project.folder) as other:
        other.publish("r1", even_so=True)
        assert other.classifier.revision != old
    assert project.classifier_of("r1").revision == project.current.id  # also if another process published


def test_a_second_round_asks_for_what_the_first_asked_for(project):
    project.mend("word_dropout", training=QUICK)
    project.publish("r1", even_so=True)
    (first,) = project.named("r1").feedback
    new = lower(project, "soup")
    name, _ = project.mend("word_dropout", training=QUICK)
    assert name == "r2"
    assert project.named("r2").feedback == (first, new.id)
    assert project.named("r2").parent == project.named("r1").id


def test_the_very_same_fix_twice_is_kept_once(project):
    assert [project.mend("word_dropout", training=QUICK)[0] for _ in range(2)] == ["r1", "r1"]
    assert project.mend("word_dropout", training=QUICK, seed=1)[0] == "r2"
    assert _next_name(["r0", "r10", "r9", "other", "current"]) == "r11"


def test_seeds_rivals_and_strengths_are_measured_beside_it_and_what_fails_is_noted(project):
    project.log.retract("ann", key="k" * 8, retracts=project.usable_feedback()[0].id)
    say(project, WordVote("great", "positive", "raise"))
    name, report = project.mend(
        "explanation_regularisation",
        training=QUICK,
        options={"raise_on": "all"},
        seeds=2,
        rivals=["word_dropout"],
        strengths=[0.0, 1e30],
    )
    assert name == "r1"
    (accuracy,) = (m for m in report.measures if (m.name, m.data, m.slice) == ("accuracy", "test", ""))
    assert len(accuracy.runs) == 2
    strengths = [dict(rival.recipe.options)["strength"] for rival in report.rivals]
    assert 0.0 in strengths
    assert any("word_dropout could not be measured beside it" in note for note in report.notes)
    assert [one.name for one in project.revision_tree().items] == ["r0", "r1"]  # none of them is kept


def test_stopped_work_is_kept_and_goes_on(project):
    with pytest.raises(Cancelled):
        project.mend("word_dropout", training=QUICK | {"epochs": 2}, follow=Watcher("epoch 2 of 2").follow())
    (left,) = (project.folder / ".fixing").iterdir()
    again = Watcher()
    name, _ = project.mend("word_dropout", training=QUICK | {"epochs": 2}, follow=again.follow())
    assert again.points[0].step > 1  # and not from the beginning
    assert not left.exists()
    whole = replace(project.named(name), at=None)
    other = make(project.folder.parent / "other")
    other.log.add(project.usable_feedback()[0], key="k" * 8)
    other.mend("word_dropout", training=QUICK | {"epochs": 2})
    assert replace(other.named("r1"), at=None) == whole  # the very weights of one that was not stopped
    other.close()


def test_work_stopped_after_training_keeps_the_revision_and_the_next_try_ends_it(project):
    with pytest.raises(Cancelled):
        project.mend("word_dropout", training=QUICK, follow=Watcher("Predicting with").follow())
    (_, proposed) = project.revision_tree().items
    assert (proposed.name, proposed.state, proposed.report) == ("r1", "proposed", None)
    watcher = Watcher()
    assert project.mend("word_dropout", training=QUICK, follow=watcher.follow())[0] == "r1"
    assert watcher.points == []  # nothing was trained again
    assert project.revision_tree().items[1].report == "r0"


def test_what_cannot_be_trained_is_refused_before_anything_is_done(project, tmp_path):
    with pytest.raises(BadOption, match=r"no .* among the fixes"):
        project.mend("magic")
    with pytest.raises(BadOption, match="no option"):
        project.mend("word_dropout", options={"depth": 3})
    with pytest.raises(BadOption, match="no option strength"):
        project.mend("word_dropout", strengths=[0.5])
    with pytest.raises(BadOption, match="training option"):
        project.mend("word_dropout", training={"speed": 3})
    with pytest.raises(BadOption):
        project.mend("word_dropout", expectations=["nonsense"])
    with pytest.raises(BadData, match="corrected labels"):
        project.mend("relabel")
    with pytest.raises(BadData, match="votes on words"):
        project.mend("word_dropout", people=["nobody"])
    assert not (project.folder / ".fixing").exists()
    assert [one.name for one in project.revision_tree().items] == ["r0"]
    with make(tmp_path / "one", [Example("a", "great soup", label="positive", split="train")]) as small:
        lower(small)
        with pytest.raises(BadData):
            small.mend("word_dropout")


class Service(BaseHTTPRequestHandler):
    """A model somewhere else, as a project may have one."""

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["inputs"]
        answer = [[{"label": "negative", "score": 0.4}, {"label": "positive", "score": 0.6}] for _ in texts]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_black_box_is_told_what_would_work(tmp_path):
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        with Project.create(tmp_path / "p", model=address, data=examples()) as project:
            lower(project)
            with pytest.raises(Unsupported, match="Load the model from a Hugging Face folder"):
                project.mend("word_dropout")
            assert "Hugging Face folder" in project.fix_offer().cannot
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_two_revisions_can_be_compared_again_with_other_expectations_and_sets(project):
    project.mend("word_dropout", training=QUICK, rivals=["embedding_erasure"])
    rivals = project.report("r0", "r1").rivals
    other = [Example(f"o{n}", f"great book {n}", label="positive") for n in range(4)]
    watcher = Watcher()
    report = project.compare_revisions(
        "r0", "r1", ["accuracy(elsewhere) >= 2"], on={"elsewhere": other}, follow=watcher.follow()
    )
    assert not report.holds
    assert {measure.data for measure in report.measures} >= {"test", "elsewhere"}
    assert report.rivals == rivals  # what took a training to know is not thrown away
    assert [word.word for word in report.words] == ["great"]
    assert project.report("r0", "r1") == report
    back = project.compare_revisions("r1", "r0")
    assert (back.before, back.after) == (report.after, report.before)
    with pytest.raises(NotFound):
        project.compare_revisions("r0", "r7")


def test_where_no_split_verifies_some_texts_are_never_trained_on(tmp_path):
    with make(tmp_path / "p", examples(40, (None,))) as project:
        example = next(e for e in project.examples if project.parts.trains(e))
        say(project, Relabel(example.id, "positive"), text_hash=example.text_hash)
        _, report = project.mend("relabel", training=QUICK)
        (accuracy,) = (m for m in report.measures if m.name == "accuracy" and not m.slice)
        assert (accuracy.data, accuracy.n) == ("held out", 8)


def test_an_export_is_whole_loads_and_is_listed(project):
    project.mend("word_dropout", training=QUICK)
    made = project.export("r1")
    assert made.folder == project.folder / "exports" / "r1-1"
    assert made.parts == ("model", "feedback", "report")
    AutoModelForSequenceClassification.from_pretrained(made.folder / "model")
    assert project.export("r0", parts=["feedback"]).folder.name == "r0-1"
    assert project.export(folder=project.folder.parent / "taken").parts == ("model", "feedback")  # r0 has no report
    found = project.export_list()
    assert {(one.name, one.revision, one.parts) for one in found} == {
        ("r1-1", "r1", ("model", "feedback", "report")),
        ("r0-1", "r0", ("feedback",)),
    }
    assert all(one.size > 0 and one.files > 0 for one in found)


def test_one_progress_tells_of_all_parts():
    told = []
    shares = Shares(lambda *at: told.append(at), [30, 10])
    first = shares.next()
    first(1, 2)
    first(2, 2)
    shares.next()(5, 5)
    assert told == [(0, 10_000), (3750, 10_000), (7500, 10_000), (7500, 10_000), (10_000, 10_000)]


def test_a_plan_has_no_training_twice():
    runs = planned(
        "explanation_regularisation",
        {"strength": 0.5},
        seed=3,
        seeds=2,
        rivals=["word_dropout"] * 2,
        strengths=[0.5, 2],
    )
    assert [(run.name, run.seed, run.role) for run in runs] == [
        ("explanation_regularisation", 3, "fix"),
        ("explanation_regularisation, seed 4", 4, "seed"),
        ("word_dropout", 3, "rival"),
        ("explanation_regularisation, strength 2", 3, "rival"),
    ]


def test_the_same_checkpoints_are_not_used_by_two_and_old_ones_go(tmp_path, monkeypatch):
    with checkpoints(tmp_path, "a") as folder, pytest.raises(Busy, match="another process"), checkpoints(tmp_path, "a"):
        pass
    assert not folder.exists()
    (tmp_path / "left").mkdir()
    monkeypatch.setattr("unhans.mending._LEFT_SECONDS", -1)
    with pytest.raises(ZeroDivisionError), checkpoints(tmp_path, "b") as folder:
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == [folder]


def test_settings_describe_fixes_for_processes_that_cannot_load_them(project):
    told = json.dumps(project.setting("fixes"))
    assert "explanation_regularisation" in told
    assert "learning_rate" in told


def test_a_loss_curve_is_written_now_and_then_and_goes_on_after_a_death(project):
    seconds = [0.0]
    curve = Curve(project, "job", lambda: seconds[0])
    for step in range(1, 1001):
        curve.point(LossPoint(step, 1 / step, None, "word_dropout"))
    assert project.curve("job").points == ()  # no second has passed
    seconds[0] = 1.0
    curve.point(LossPoint(1001, 0.1, 0.5, "word_dropout"))
    found = project.curve("job").points
    assert len(found) <= 300
    assert (found[0].step, found[-1].step, found[-1].extra) == (1, 1001, 0.5)
    curve.epoch("epoch 1")
    again = Curve(project, "job", lambda: seconds[0])  # in another process, from a checkpoint at step 500
    again.point(LossPoint(501, 9.0, None, "word_dropout"))
    again.epoch("epoch 1")
    found = project.curve("job")
    assert [point.step for point in found.points] == sorted({point.step for point in found.points})
    assert (found.points[-1].step, found.points[-1].task, found.epochs) == (501, 9.0, ("epoch 1",))
