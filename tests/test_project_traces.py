"""A project that traces, makes copies and doubts labels: kept, found again, stopped, taught, with real tiny models."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from databases import KINDS, address
from neighbouring import traced
from small_project import QUICK, examples, lower, make, say
from unhans.augmentations import augmentation, available
from unhans.errors import BadData, BadOption, Cancelled, NotFound, Unsupported
from unhans.influences import trace
from unhans.project import Project, _remove_unused
from unhans.shapes import AnchorQuery, CopyChange, CopyQuery
from unhans.store import Store
from unhans.types import Example, NeighbourRating, Relabel

DROPOUT = {"method": "word_dropout", "copies_per_point": 1}


@pytest.fixture
def project(tmp_path):
    with make(tmp_path / "p") as made:
        yield made


def rate(project: Project, anchor: str, train: str, similar: int, author: str = "ann"):
    text_hash = project.table.find([train])[train][1].text_hash
    return say(project, NeighbourRating(anchor, train, similar), author, text_hash=text_hash)


def rate_some(project: Project, similar: int = 4):
    """Two neighbours of an anchor, rated."""
    (found,) = project.trace(anchors=1, wrong=False)
    trains = [one.train for one in found.helpful[:2]]
    return trains, [rate(project, found.example, train, similar) for train in trains]


# -- tracing


@pytest.mark.parametrize("kind", KINDS)
def test_traces_are_kept_and_not_made_twice(tmp_path, kind):
    with make(tmp_path / "p", database=address(kind)) as project:
        some = project.examples.split("test")[:3]
        found = project.trace(some, by="amy", top=4)
        train = {example.id for example in project.training_examples()}
        assert [one.example for one in found] == [example.id for example in some]
        assert all({n.train for n in (*one.helpful, *one.harmful)} <= train for one in found)
        assert all(len(one.helpful) <= 4 for one in found)
        assert project.influences() == list(found)
        told = []
        again = project.trace(some, by="bob", top=4, progress=lambda *at: told.append(at))
        assert (again, told) == (found, [])  # what was there took no time
        view = project.trace_views("ann", sees_others=True).anchor(project.table.find([some[0].id])[some[0].id][0])
        assert [one.example.id for one in view.helpful] == [one.train for one in found[0].helpful]
        project.store.drop()


def test_a_project_finds_what_the_library_finds(project):
    some = project.examples.split("test")[:2]
    assert project.trace(some) == trace(project.classifier, some, project.training_examples())
    said = project.trace(some, of="prediction")
    assert [one.label for one in said] == [one.label for one in project.classifier.predict(some)]
    assert dict(said[0].recipe.options)["of"] == "prediction"


def test_anchors_are_chosen_among_what_was_not_trained_on(project):
    wrong = {
        example.id
        for example, said in zip(project.examples, project.classifier.predict(project.examples), strict=True)
        if said.label != example.label and example.split == "test"
    }
    assert {one.example for one in project.trace(anchors=3)} <= wrong
    assert project.table.accuracy(project.current.id)[0] == len(project.examples.split("test"))  # predictions are kept
    some = project.trace(anchors=50, wrong=False, heuristic="negation")
    texts = {example.id: example.text for example in project.examples}
    assert some
    assert all("not" in texts[one.example] for one in some)
    (own,) = project.trace(anchors=1, wrong=False, split="train")
    assert own.example not in {n.train for n in (*own.helpful, *own.harmful)}  # it is not its own neighbour
    for asked in ({"split": "nowhere"}, {"wrong": False, "heuristic": "contains_word"}, {"top": 0}, {"depth": 3}):
        with pytest.raises((BadData, BadOption)):
            project.trace(**asked)


def test_one_that_is_stopped_keeps_what_it_found_and_goes_on(project, tmp_path):
    with make(tmp_path / "whole") as other:
        whole = other.trace(list(other.examples))
    with pytest.raises(Cancelled):
        project.trace(list(project.examples), cancelled=lambda: True)
    assert project.influences() == []
    told = []
    with pytest.raises(Cancelled):  # the training examples are looked at, and some anchors
        project.trace(
            list(project.examples),
            progress=lambda done, of: told.append(done / of),
            cancelled=lambda: bool(project.influences()),
        )
    assert told == sorted(told)
    kept = project.influences()
    assert 0 < len(kept) < len(whole)
    assert project.trace(list(project.examples)) == whole
    assert project.influences()[: len(kept)] == kept


def test_texts_that_are_not_the_project_s_are_traced_and_not_kept(project):
    changed = replace(project.examples[4], text="the soup was cold")
    other_label = replace(project.examples[5], label="negative")
    assert len(project.trace([Example("strange", "the film was great"), changed, other_label])) == 3
    assert project.influences() == []


def test_texts_of_one_id_each_get_their_own_answer(project):
    own = project.examples[4]
    others = [replace(own, text="the soup was great"), replace(own, label="positive")]
    found = project.trace([others[0], own, others[1], own])
    assert [one.label for one in found] == ["negative", "negative", "positive", "negative"]
    alone = list(trace(project.classifier, [others[0], own, others[1]], project.training_examples()))
    assert found == [*alone, alone[1]]
    assert project.influences() == [alone[1]]
    assert project.trace([own, own]) == [alone[1], alone[1]]


def test_a_way_that_asks_for_earlier_revisions_waits_for_them(project):
    offered = {one.name: one for one in project.trace_views("ann", sees_others=True).offer().methods}
    assert "once a fix is published" in offered["tracin"].unusable
    with pytest.raises(Unsupported, match="once a fix is published"):
        project.trace(anchors=1, wrong=False, method="tracin")
    lower(project)
    project.publish(project.mend(training=QUICK)[0], even_so=True)
    project.describe_methods()
    offered = {one.name: one for one in project.trace_views("ann", sees_others=True).offer().methods}
    assert offered["tracin"].usable
    assert project.trace(anchors=1, wrong=False, method="tracin")[0].helpful


def test_a_method_that_reads_everything_for_each_text_tells_one_progress(project):
    told = []
    project.trace(list(project.examples)[:20], method="gradient_dot", progress=lambda done, of: told.append(done / of))
    assert told == sorted(told)
    assert sum(share > 0.8 for share in told) > 2  # within a pass, too
    assert told[-1] == 1


def test_a_folder_that_is_removed_before_it_is_held_is_made_again(project, monkeypatch):
    root, opened, open_ = project.folder / "cache" / "influences", [], os.open

    def slowly(path, flags, *how):
        """Between opening and locking, and before opening, another worker removes what nobody holds."""
        if Path(path).parent == root:
            if not opened:
                Path(path).rmdir()
            opened.append(path)
        handle = open_(path, flags, *how)
        if len(opened) == 2 and Path(path).parent == root:
            Path(path).rmdir()
        return handle

    monkeypatch.setattr(os, "open", slowly)
    with project._index_folder() as folder:
        assert folder.is_dir()
        monkeypatch.undo()
        _remove_unused(folder)
        assert folder.is_dir()
    assert len(opened) == 3
    _remove_unused(folder)
    assert not folder.exists()


def test_many_labels_and_pairs_are_traced_copied_and_doubted(tmp_path):
    data = [
        Example(f"{split} {n}", f"the soup was number {n}", f"the film was {n % 3} {split}", label=f"label {n % 3}",
                split=split)
        for split in ("train", "test")
        for n in range(9)
    ]  # fmt: skip
    with Project.create(tmp_path / "p", model=tiny.transformer(labels=3), data=data) as project:
        (found,) = project.trace(project.examples.split("test")[:1])
        assert len(project.doubts()) == 9
        rate(project, found.example, found.helpful[0].train, 5)
        offer = project.trace_views("ann", sees_others=True).offer()
        usable = {one.name: one.usable for one in offer.augmentations}
        assert not usable["word_dropout"]  # it is for single texts
        assert next(one for one in offer.heuristics if one.name == "lexical_overlap").usable
        with pytest.raises(BadOption, match="single texts"):
            project.augment(**DROPOUT)


def test_what_was_worked_out_counts_as_new_whenever_it_is_used(project):
    first, second = project.examples.split("test")[:2]
    project.trace([first])
    (index,) = (project.folder / "cache" / "influences" / project.current.id).iterdir()
    os.utime(index, (0, 0))
    project.trace([second])
    assert index.stat().st_mtime > 0  # of many, the oldest is removed


def test_only_what_the_model_in_use_needs_stays_on_disk(project):
    project.trace(anchors=1, wrong=False)
    root = project.folder / "cache" / "influences"
    assert [path.name for path in root.iterdir()] == [project.current.id]
    for width in range(1, 6):
        project.trace(anchors=1, wrong=False, width=width)
    assert len(list((root / project.current.id).iterdir())) <= 5
    lower(project)
    name, _ = project.mend("word_dropout", training=QUICK)
    project.publish(name, even_so=True)
    project.trace(anchors=1, wrong=False)
    assert [path.name for path in root.iterdir()] == [project.current.id]
    assert project.influences("r0")  # what was found stays


# -- copies


def test_ratings_ask_for_copies_and_copies_teach(project):
    trains, ratings = rate_some(project)
    made = project.augment(**DROPOUT, check="model", by="amy")
    own = {example.id: example for example in project.examples}
    assert {one.source for one in made} == set(trains)
    assert all(one.label == own[one.source].label and one.label_kept is not None for one in made)
    assert all(sum(one.source == train for one in made) <= 4 for train in trains)
    assert project.augment(**DROPOUT, check="model") == made  # the same again
    name, report = project.mend("similarity_augmentation", training=QUICK)
    taught = project.named(name)
    assert set(taught.feedback) == {one.id for one in ratings}
    assert (report.after, taught.recipe.name) == (taught.id, "similarity_augmentation")
    project.publish(name, even_so=True)
    assert project.trace_views("ann", sees_others=True).anchors(AnchorQuery()).total == 0
    assert [one.stale for one in project.trace_views("ann", sees_others=True).copies(CopyQuery()).items] == [
        None
    ] * len(made)
    assert {one.id for one in ratings} <= {one.id for one in project.usable_feedback()}  # they outlive the revision


def test_what_people_deleted_or_edited_is_not_made_again(project):
    rate_some(project)
    made = project.augment(**DROPOUT)
    views = project.trace_views("ann", sees_others=True)
    gone, changed = made[0].id, views.copies(CopyQuery()).items[1]
    views.delete_copy(gone, "ann")
    views.change_copy(changed.id, CopyChange(changed.at, "written by hand"), "ann")
    again = project.augment(**DROPOUT)
    assert len(again) == len(made) - 1
    assert gone not in {one.id for one in again}
    assert "written by hand" in [one.text for one in again]
    other = project.augment(**DROPOUT, rate=0.4, replaces=False)
    assert other == again  # somebody else's wish does not take away what is there
    other = project.augment(**DROPOUT, rate=0.4)
    assert "written by hand" in [one.text for one in other]
    assert {dict(one.recipe.options)["rate"] for one in other if one.text != "written by hand"} == {0.4}
    assert gone not in {one.id for one in other}


def test_fewer_copies_stand_when_ratings_fall(project):
    (train, _), _ = rate_some(project, 5)
    many = [one for one in project.augment(**DROPOUT) if one.source == train]
    rate(project, project.influences()[0].example, train, 1)
    assert [one for one in project.copies() if one.source == train] == many[:1]


def test_no_copy_is_a_text_that_is_held_out(tmp_path):
    with make(tmp_path / "p") as first:
        trains, _ = rate_some(first)
        leaks = [one.text for one in first.augment(**DROPOUT)]
    held_out = [Example(f"leak {n}", text, label="negative", split="test") for n, text in enumerate(leaks)]
    with make(tmp_path / "q", [*examples(), *held_out]) as second:
        for train in trains:
            rate(second, "leak 0", train, 4)
        assert {one.text for one in second.augment(**DROPOUT)}.isdisjoint(leaks)


def test_a_fix_makes_the_copies_that_are_missing(project):
    trains, ratings = rate_some(project, 1)
    project.keep_setting("copies_per_point", 3)
    name, _ = project.mend("similarity_augmentation", training=QUICK)
    assert {one.source for one in project.copies()} == set(trains)
    method = "word_dropout" if available(augmentation["synonyms"]) else "synonyms"
    assert {one.recipe.name for one in project.copies()} == {method}
    assert set(project.named(name).feedback) == {one.id for one in ratings}


def test_without_ratings_there_is_a_sentence(project):
    with pytest.raises(BadData, match="Trace some examples"):
        project.augment(**DROPOUT)
    with pytest.raises(BadData, match="ratings of neighbours"):
        project.mend("similarity_augmentation", training=QUICK)
    trains, _ = rate_some(project)
    other = next(example for example in project.training_examples() if example.id not in trains)
    with pytest.raises(BadData, match="None of these"):
        project.augment([other], **DROPOUT)
    for train in trains:  # what is trained without is not copied
        say(project, Relabel(train, None), text_hash=project.table.find([train])[train][1].text_hash)
    with pytest.raises(BadData, match="no label fits"):
        project.augment(**DROPOUT)
    with pytest.raises(BadOption):
        project.augment(method="word_dropout", copies_per_point=0)


def test_copies_have_the_label_that_people_say_is_right(project):
    trains, _ = rate_some(project)
    old = project.augment(**DROPOUT)
    place, example = project.table.find(trains[:1])[trains[0]]
    other = "positive" if example.label == "negative" else "negative"
    say(project, Relabel(example.id, other), text_hash=example.text_hash)
    assert {one.source for one in project.copies()} == {trains[1]}
    made = project.augment([example], **DROPOUT, replaces=False)
    assert {one.label for one in made} == {other}
    assert {one.id for one in made} == {one.id for one in old if one.source == example.id}  # in place of the old ones
    assert project.copy_table.counts([place])[place] == len(made)
    assert {one.source: one.label for one in project.copies()}[example.id] == other


def test_a_later_fix_of_another_kind_does_not_undo_corrected_labels(project):
    trains, _ = rate_some(project)
    first, second, third = [one for one in project.training_examples() if one.id not in trains][:3]
    other = "positive" if first.label == "negative" else "negative"
    said = [
        say(project, Relabel(one.id, label), text_hash=one.text_hash) for one, label in ((first, other), (second, None))
    ]
    name, _ = project.mend("relabel", training=QUICK)
    project.publish(name, even_so=True)
    lower(project)
    for fix in ("word_dropout", "similarity_augmentation"):
        name, _ = project.mend(fix, training=QUICK)
        project.publish(name, even_so=True)
        assert {one.id for one in said} <= set(project.current.feedback)
        taught = {example.id: example.label for example in project.taught_examples()}
        assert (taught[first.id], second.id in taught, taught[third.id]) == (other, False, third.label)


def test_only_who_replaces_copies_changes_how_many_a_point_makes(project):
    rate_some(project, 1)
    project.augment(**DROPOUT)
    assert project.copies_per_point == 1
    project.augment(method="word_dropout", copies_per_point=3, replaces=False)
    assert project.copies_per_point == 1
    offer = project.trace_views("ann", sees_others=True).offer()
    assert offer.copies_per_point == 1
    project.augment(method="word_dropout")
    assert project.copies_per_point == 1


# -- doubts


def test_doubts_lead_to_new_labels_and_these_to_a_revision(project):
    found = project.doubts()
    train = {example.id: example for example in project.training_examples()}
    assert {one.example for one in found} == set(train)
    assert project.doubted() == list(found)
    first, second = train[found[0].example], train[found[1].example]
    other = "positive" if first.label == "negative" else "negative"
    say(project, Relabel(first.id, other), text_hash=first.text_hash)
    say(project, Relabel(second.id, None), text_hash=second.text_hash)
    assert project.taught_examples() == list(train.values())  # nothing was taught yet
    name, _ = project.mend("relabel", training=QUICK)
    assert project.doubted() == list(found)
    project.publish(name, even_so=True)
    taught = {example.id: example.label for example in project.taught_examples()}
    assert taught[first.id] == other
    assert second.id not in taught
    assert project.doubted() == []
    again = {one.example: one.label for one in project.doubts(["low_confidence"])}
    assert again == taught
    with pytest.raises((BadOption, NotFound)):
        project.doubts(["nonsense"])


# -- what is there


def test_the_ways_are_described_for_screens(project):
    offer = project.trace_views("ann", sees_others=True).offer()
    assert offer.methods[0].name == "projected_gradients"
    assert offer.methods[0].usable
    assert offer.augmentations[0].name == "synonyms"
    assert (offer.copies_per_point, offer.cannot) == (10, "")
    assert {"self_influence", "low_confidence"} <= {one.name for one in offer.doubts}
    shown = {one.name: {option.name for option in one.options} for one in offer.augmentations}
    for entry in augmentation:
        assert shown[entry.name].isdisjoint(entry.facts.get("opens", ()))
    assert not next(one for one in offer.heuristics if one.name == "lexical_overlap").usable  # no pairs here


def test_a_project_of_the_version_before_gets_the_new_tables(tmp_path):
    with make(tmp_path / "p") as project:
        vote = lower(project)
    file = tmp_path / "p" / "unhans.sqlite"
    with sqlite3.connect(file) as connection:
        for table in ("traces", "copies", "doubts", "audits", "labs"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
    connection.close()
    with Project.open(tmp_path / "p") as project:
        assert [one.id for one in project.log.opinions()] == [vote.id]
        traced(project, 4, (0,))
        assert len(project.influences()) == 1
        assert project.store.check() is None
    assert (tmp_path / "p" / "unhans.before-0003.sqlite").exists()  # as it was
    Store.open(tmp_path / "p").close()
