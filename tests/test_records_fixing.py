"""What a fix may use, versions of the model and reports on them: all without a model."""

from __future__ import annotations

import json
import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from databases import KINDS, new_database
from small_project import lower, make, say
from unhans.artefacts import Artefacts
from unhans.errors import Conflict, NotFound
from unhans.feedback import subject_of
from unhans.records import Records
from unhans.records.parts import count_parts, divide, texts_with
from unhans.records.revising import thinned
from unhans.shapes import LossCurve, LossPoint
from unhans.types import (
    Example,
    Measure,
    Recipe,
    Relabel,
    Report,
    Revision,
    Ruling,
    WordVote,
    to_json,
)

BETTER = Measure("accuracy", "test", 0.5, 0.9, 0.3, 0.5, n=100)
WORSE = Measure("accuracy", "test", 0.9, 0.5, -0.5, -0.3, n=100)


@pytest.fixture
def records(tmp_path):
    with make(tmp_path / "p") as project:
        yield project


def propose(records: Records, name: str, *, feedback: tuple[str, ...] = (), parent: str | None = None) -> Revision:
    """A revision without weights, as a fix would leave it."""
    own = parent or records.current.id
    made = Revision(f"id of {name}", own, Recipe("fixes", "relabel"), records.labels, feedback, None, "2024-01-01")
    records.models.add(
        name, lambda folder: (folder / "x").write_text(name) and None, {"revision": json.loads(to_json(made))}
    )
    return made


def report(*measures: Measure) -> Report:
    return Report("a", "b", measures or (BETTER,))


# -- feedback


def test_opinions_that_stand_and_fit_are_used_and_others_are_told_with_their_reason(records):
    first = records.table.at(0)
    kept = lower(records)
    here = WordVote("the", "positive", "lower", first.id, 0)
    fits = say(records, here, text_hash=first.text_hash)
    say(records, here, "bob", text_hash="another text")
    say(records, Relabel("nowhere", "positive"), text_hash="gone")
    lower(records, "soup", revision="another model")
    taken_back = lower(records, "film")
    records.log.retract("ann", key="k" * 8, retracts=taken_back.id)
    assert records.usable_feedback() == [kept, fits]
    use = records.feedback_use()
    assert (use.usable, use.undecided, use.inherited) == (2, 0, 0)
    assert sorted(n for _, n in use.stale) == [1, 1, 1]
    assert {reason.split()[1] for reason, _ in use.stale} == {"text", "was"}
    assert [one.author for one in use.people] == ["ann"]


def test_what_the_model_in_use_was_taught_keeps_being_asked_for(records):
    first, second = lower(records), lower(records, "soup")
    propose(records, "r1", feedback=(first.id,))
    records.publish("r1", even_so=True)
    assert records.current.id == "id of r1"
    assert records.usable_feedback() == [first]
    new = lower(records, "film")
    propose(records, "r2", feedback=(new.id,))
    records.publish("r2", even_so=True)
    assert records.usable_feedback() == [first, new]  # of its parent, too
    use = records.feedback_use()
    assert (use.usable, use.inherited, [vote.inherited for vote in use.votes]) == (2, 2, [True, True])
    assert use.stale == (("It was given about another revision of the model.", 1),)
    records.log.retract("ann", key="k" * 8, retracts=first.id)
    assert records.usable_feedback() == [new]
    records.roll_back()
    records.roll_back()
    assert records.usable_feedback() == [second]


def test_people_are_taken_together_and_can_be_chosen(records):
    for author in ("ann", "bob", "cem"):
        lower(records, author=author)
    say(records, WordVote("great", "positive", "raise"), "dan")
    tied = [lower(records, "soup"), say(records, WordVote("soup", "positive", "raise"), "bob")]
    use = records.feedback_use()
    (vote,) = use.votes
    assert (vote.word, vote.vote, vote.people, vote.against, vote.ruled, vote.place) == (
        "great",
        "lower",
        3,
        1,
        False,
        None,
    )
    assert vote.texts == sum("great" in e.text for e in records.table.all() if e.split == "train") > 0
    assert use.undecided == 1
    assert {one.author: one.answers for one in use.people} == {"ann": 2, "bob": 2, "cem": 1, "dan": 1}
    assert [one.kind for one in use.agreement] == ["word_vote", "word_vote_everywhere", "relabel"]
    assert {one.author for one in records.usable_feedback(["ann"])} == {"ann"}
    assert records.feedback_use(["dan"]).votes[0].vote == "raise"
    say(records, Ruling(subject_of(tied[0].says), "raise"), "amy", revision="older")
    ruled = next(vote for vote in records.feedback_use().votes if vote.word == "soup")
    assert (ruled.vote, ruled.ruled) == ("raise", True)


def test_a_vote_on_an_example_that_does_not_train_touches_nothing(records):
    trains, verifies = (next(e for e in records.table.all() if e.split == split) for split in ("train", "test"))
    for example in (trains, verifies):
        say(records, Relabel(example.id, "positive"), text_hash=example.text_hash)
    assert [vote.texts for vote in records.feedback_use().votes] == [1, 0]
    assert [vote.place for vote in records.feedback_use().votes] == [0, 4]


# -- which examples are for what


def corpus(*splits: str | None, n: int = 10) -> list[Example]:
    return [Example(f"{s}-{k}", f"text {s} {k}", label="positive", split=s) for s in splits for k in range(n)] + [
        Example("unlabelled", "no label", split="train")
    ]


@pytest.mark.parametrize(
    ("splits", "train", "validation", "sets"),
    [
        (("train", "test"), {"train"}, set(), {"test"}),
        (("train", "dev", "test", "films"), {"train"}, {"dev"}, {"films", "test"}),
        (("train", "validation"), {"train"}, set(), {"validation"}),
        (("train", None), {"train"}, set(), {"no split"}),
        (("films", None, "test"), {"films", None}, set(), {"test"}),
        (("train",), {"train"}, set(), {"held out"}),
        ((None,), {None}, set(), {"held out"}),
        (("test",), set(), set(), {"test"}),
    ],
)
def test_examples_are_divided_so_that_none_is_for_two_things(tmp_path, splits, train, validation, sets):
    data = corpus(*splits)
    with make(tmp_path / "p", data) as records:
        parts = divide(records.store)
        assert {e.split for e in data if parts.trains(e)} == train
        assert {e.split for e in data if parts.validates(e)} == validation
        assert {name for e in data if (name := parts.set_of(e))} == sets
        for example in data:
            roles = [parts.trains(example), parts.validates(example), parts.set_of(example) is not None]
            assert sum(roles) == (example.label is not None)
        counts = sum(map(parts.trains, data)), sum(parts.set_of(e) is not None for e in data)
        assert count_parts(records.store, parts) == counts
        if sets == {"held out"}:
            assert counts[1] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_counted_in_training_texts_only_and_estimated_when_time_is_short(tmp_path, kind, monkeypatch):
    database = new_database() if kind == "postgresql" else None
    with make(tmp_path / "p", database=database) as records:
        data = [example for example in records.table.all() if example.split == "train"]
        expected = {word: sum(word in e.text.split() for e in data) for word in ("great", "soup", "nowhere")}
        assert texts_with(records.store, records.parts, expected) == expected
        monkeypatch.setattr("unhans.records.parts._AT_ONCE", 6)
        ticks = iter(range(100))
        rough = texts_with(records.store, records.parts, expected, lambda: 2.0 * next(ticks))
        assert rough["nowhere"] == 0
        assert rough["great"] % 4 == 0  # of 6 texts that stand for 24


# -- revisions


def test_a_tree_tells_what_is_known_of_each_revision(records):
    propose(records, "r1")
    propose(records, "r2", parent="id of r1")
    records.keep_report("r0", "r1", report(BETTER, WORSE, replace(BETTER, slice="label positive")))
    tree = records.revision_tree()
    assert [(one.name, one.state) for one in tree.items] == [
        ("r0", "current"), ("r1", "proposed"), ("r2", "proposed")
    ]  # fmt: skip
    assert (tree.current, tree.back_to, tree.reports) == ("r0", None, (("r0", "r1"),))
    assert (tree.items[1].headline, tree.items[1].report, tree.items[1].worse) == ((BETTER, WORSE), "r0", 1)
    assert (tree.items[2].headline, tree.items[2].report, tree.items[2].worse) == ((), None, 0)
    assert all(one.problem == "" and one.size > 0 for one in tree.items)
    (records.folder / "models" / "r2" / "x").unlink()
    assert [one.problem != "" for one in records.revision_tree().items] == [False, False, True]


def test_publishing_is_refused_where_something_got_worse_or_nobody_looked(records):
    propose(records, "r1")
    with pytest.raises(Conflict, match="not been compared"):
        records.publish("r1", expects="r0")
    records.keep_report("r0", "r1", report(BETTER, WORSE))
    with pytest.raises(Conflict, match=r"accuracy on test went from 0\.9 to 0\.5\. Nothing was changed"):
        records.publish("r1", expects="r0")
    assert records.current_name == "r0"
    assert records.publish("r1", expects="r0", even_so=True).current == "r1"
    assert records.publish("r0", expects="r1").current == "r0"  # it was in use before: nobody has to prove it anew
    with pytest.raises(NotFound):
        records.publish("r9", expects="r0")
    records.keep_report("r0", "r1", report(BETTER))
    assert records.publish("r1", expects="r0").current == "r1"


def test_going_back_is_one_step_and_leads_further_back_the_next_time(records):
    for name in ("r1", "r2"):
        propose(records, name)
        records.publish(name, even_so=True)
    assert records.revision_tree().back_to == "r1"
    with pytest.raises(Conflict, match="somebody was faster"):
        records.roll_back(expects="r1")
    assert (records.roll_back(expects="r2").current, records.current.id) == ("r1", "id of r1")
    assert records.roll_back().current == "r0"
    assert records.revision_tree().back_to is None
    with pytest.raises(Conflict, match="no earlier"):
        records.roll_back()
    records.publish("r2")
    (records.folder / "models" / "r2" / "x").unlink()  # whatever became of it, there is a way back
    assert records.roll_back(expects="r2").current == "r0"
    assert Records.open(records.folder).current_name == "r0"


def test_of_two_who_publish_at_once_exactly_one_wins(records):
    for name in ("r1", "r2"):
        propose(records, name)

    def publish(name: str, began: threading.Barrier, answers: list[str]) -> None:
        with Records.open(records.folder) as own:
            began.wait()
            try:
                answers.append(own.publish(name, expects="r0", even_so=True).current)
            except Conflict as error:
                answers.append(type(error).__name__)

    for _ in range(5):
        began, answers = threading.Barrier(4), list[str]()
        threads = [threading.Thread(target=publish, args=(name, began, answers)) for name in ("r1", "r2", "r1", "r2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers)[:3] == ["Conflict"] * 3
        assert records.current_name == sorted(answers)[3]
        records.roll_back()


def _publish(folder: Path, results: multiprocessing.Queue) -> None:
    try:
        Artefacts(folder / "models").publish("r1", expects="r0")
        results.put("won")
    except Conflict:
        results.put("lost")


def test_of_two_processes_that_publish_the_same_one_hears_that_somebody_was_faster(records):
    propose(records, "r1")
    results = multiprocessing.get_context("fork").Queue()
    both = [multiprocessing.get_context("fork").Process(target=_publish, args=(records.folder, results)) for _ in "ab"]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert sorted([results.get(), results.get()]) == ["lost", "won"]
    assert records.current.id == "id of r1"  # the other process's doing is noticed


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_kept_as_they_are_and_replaced(tmp_path, kind):
    database = new_database() if kind == "postgresql" else None
    with make(tmp_path / "p", database=database) as records:
        with pytest.raises(NotFound, match="not been compared yet"):
            records.report("r0", "r1")
        records.keep_report("r0", "r1", report(WORSE))
        records.keep_report("r0", "r1", report(BETTER))
        records.keep_report("r1", "r0", report(WORSE))
        assert records.report("r0", "r1") == report(BETTER)
        with Records.open(records.folder, database=database) as again:
            assert again.report("r1", "r0") == report(WORSE)
            assert set(again.reports.pairs()) == {("r0", "r1"), ("r1", "r0")}


def test_curves_are_thinned_and_the_oldest_forgotten(records, monkeypatch):
    monkeypatch.setattr("unhans.records.revising._CURVES", 2)
    points = tuple(LossPoint(n, 1 / (n + 1), None, "word_dropout") for n in range(1000))
    assert records.curve("job") == LossCurve("job", (), ())
    records.keep_curve(LossCurve("job", points, ("epoch 1",)))
    found = records.curve("job")
    assert (len(found.points), found.points[0], found.points[-1]) == (300, points[0], points[-1])
    assert found.epochs == ("epoch 1",)
    assert thinned(points[:300]) == points[:300]
    for job in ("b", "c"):
        records.keep_curve(LossCurve(job, points[:1], ()))
    assert [len(records.curve(job).points) for job in ("job", "b", "c")] == [0, 1, 1]


def test_an_offer_names_what_can_be_done_with_what_is_there(records):
    offer = records.fix_offer()
    assert offer.cannot == ""
    by_name = {one.method.name: one for one in offer.methods}
    assert {"explanation_regularisation", "word_dropout", "relabel"} <= set(by_name)
    assert by_name["word_dropout"].answers == 0
    assert (offer.train, offer.held_out) == (24, 12)
    assert [option.name for option in offer.training][:2] == ["epochs", "learning_rate"]
    assert by_name["word_dropout"].seconds is None  # nothing was predicted yet, so nothing is known
    list(records.predict())
    lower(records)
    offer = records.fix_offer()
    by_name = {one.method.name: one for one in offer.methods}
    assert (by_name["word_dropout"].answers, by_name["relabel"].answers) == (1, 0)
    assert by_name["explanation_regularisation"].seconds > by_name["word_dropout"].seconds > 0


def test_what_cannot_be_fixed_says_why(tmp_path):
    with make(tmp_path / "p", [Example(f"e{n}", f"text {n}", split="train") for n in range(3)]) as records:
        assert "No labelled example" in records.fix_offer().cannot
        records.keep_setting("fixes", None)
        assert "predicted once" in records.fix_offer().cannot
