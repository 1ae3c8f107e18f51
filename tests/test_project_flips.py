"""A project that looks for flips: kept, found again, stopped, taught and taken away, with real tiny models."""

from __future__ import annotations

from dataclasses import replace

import pytest
from datasets import load_dataset

import tiny
from databases import KINDS, address
from flipped import rate, rewritten
from small_project import QUICK, examples, make, say
from unhans.errors import BadData, BadOption, Cancelled, NotFound
from unhans.export import read_flips
from unhans.project import Project
from unhans.text import Words
from unhans.types import Edit, Example, Ruling


@pytest.fixture
def project(tmp_path):
    with make(tmp_path / "p") as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_flips_are_kept_and_not_looked_for_twice(tmp_path, kind):
    with make(tmp_path / "p", database=address(kind)) as project:
        found = project.find_flips(project.examples[:10], keep=2, by="ann")
        assert {one.example for one in found} == {f"e{n}" for n in range(10)}
        assert [one.example for one in found] == sorted((one.example for one in found), key=lambda id_: int(id_[1:]))
        assert all(one.similarity is not None and one.perplexity is None for one in found)
        assert project.flips() == list(found)
        told = []
        again = project.find_flips(project.examples[:12], keep=2, progress=lambda *at: told.append(at))
        assert list(again)[: len(found)] == list(found)
        assert told[-1] == (2, 2)  # what was there took no time
        assert {row.by for row in project.flip_table.all()} == {"ann", ""}
        project.store.drop()


def test_another_search_is_another_and_the_same_flip_is_kept_once(project):
    first = project.find_flips(project.examples[:4])
    wider = project.find_flips(project.examples[:4], search={"beam": 11})
    assert len(project.flips()) == len({one.id for one in [*first, *wider]})
    target = project.find_flips(project.examples[:2], target="positive")
    assert all(one.target == "positive" for one in target)
    assert {one.id for one in target}.isdisjoint(one.id for one in first)


def test_masks_say_what_may_be_changed_and_what_is_shown(project):
    example = project.examples[3]
    (edited,) = project.find_flips([example], editable={example.id: [1, 2]}, search={"max_edits": 2})
    assert {edit.position for edit in edited.edits} <= {1, 2}
    (shown,) = project.find_flips([example], editable={example.id: [1, 2]}, reads={example.id: [0, 1, 2, 3]})
    assert shown.reads == (0, 1, 2, 3)
    assert shown.before != edited.before
    word = Words(example).strings[4]
    (begun,) = project.find_flips([example], start={example.id: [Edit(4, word, "soup")]})
    assert Edit(4, word, "soup") in [edit for step in begun.steps for edit in step.edits]
    assert {one.id for one in project.flips()} == {edited.id, shown.id, begun.id}


def test_rationales_are_of_explanations_that_are_kept(project):
    some = project.examples[:3]
    found = project.rationales(some, share=0.5)
    assert [one.example for one in found] == [example.id for example in some]
    assert project.explained.sets(project.current.id)[0].count == 3
    assert all(0 < len(one.chosen) <= 5 for one in found)
    assert project.rationales(some, "threshold", explain={}, target="negative")[0].label == "negative"
    with pytest.raises(BadOption):
        project.rationales(some, depth=3)
    flips = project.find_flips(some, "deletion", editable={one.example: one.chosen for one in found})
    assert all({e.position for e in flip.edits} <= set(one.chosen) for flip, one in zip(flips, found, strict=True))


def test_one_that_is_stopped_keeps_what_it_found_and_goes_on(project):
    told = []
    with pytest.raises(Cancelled):
        project.find_flips(progress=lambda *at: told.append(at), cancelled=lambda: any(done >= 8 for done, _ in told))
    kept = project.flips()
    assert len({one.example for one in kept}) == 8
    project.find_flips()
    assert project.flips()[: len(kept)] == kept
    assert {one.example for one in project.flips()} == {example.id for example in examples()}


def test_texts_that_are_not_the_project_s_are_looked_at_and_not_kept(project):
    strange = Example("strange", "the film was great")
    changed = replace(project.examples[0], text="the soup was cold")
    assert len(project.find_flips([strange, changed])) == 2
    assert project.flips() == []


def test_where_nothing_can_be_changed_the_attempt_is_told_and_not_shown(project):
    (found,) = project.find_flips(project.examples[:1], editable={"e0": []})
    assert (found.flips, found.edits) == (False, ())
    (again,) = project.find_flips(project.examples[:1], editable={"e0": []})
    assert again == found
    assert project.flips() == []


def test_many_labels_and_pairs_are_flipped_and_kept(tmp_path):
    data = [
        Example("a", "the soup was cold", "the film was great", label="label 0"),
        Example("b", "great", "cold", label="label 2"),
    ]
    with Project.create(tmp_path / "p", model=tiny.transformer(labels=3), data=data) as project:
        found = project.find_flips(search={"part": "pair"})
        assert {one.example for one in found} == {"a", "b"}
        for one in found:
            spans = Words(project.examples[int(one.example == "b")]).spans
            assert {spans[edit.position].part for edit in one.edits} <= {"pair"}
            assert one.text == project.examples[int(one.example == "b")].text
        assert {one.target for one in project.find_flips(target="label 1")} == {"label 1"}


def test_wrong_options_are_refused_before_any_work(project):
    with pytest.raises(BadOption):
        project.find_flips(method="magic")
    with pytest.raises(BadOption):
        project.find_flips(search={"depth": 1})
    with pytest.raises(BadOption):
        project.find_flips(depth=1)
    with pytest.raises(BadOption):
        project.find_flips(project.examples[:1], editable={"e0": [999]})
    assert project.flips() == []


def test_rated_flips_teach_and_the_new_revision_has_a_risk_of_its_own(project):
    found = [one for one in project.find_flips() if one.flips]
    own = {example.id: example for example in project.examples}
    for one in found:
        rate(project, one, "ann", (5, 5, 1), own[one.example].label)
    assert project.risk().value == 4
    name, report = project.mend("counterfactual_augmentation", training=QUICK)
    taught = project.named(name)
    assert taught.feedback
    assert report.after == taught.id
    train = {example.id for example in project.training_examples()}
    used = [one for one in project.log.opinions(kinds=("flip_rating",)) if one.id in taught.feedback]
    assert {project.flip_table.one(one.says.counterfactual).flip.example for one in used} <= train
    project.publish(name, even_so=True)
    assert project.risk().value is None
    assert project.flips() == []
    assert {one.id for one in found} <= {one.id for one in project.flips("r0")}
    assert project.risk("r0").n == len(found)
    assert project.find_flips(project.examples[:1])[0].before.revision == taught.id


def test_a_flip_that_is_a_text_to_verify_with_teaches_nothing(tmp_path):
    own = examples()
    train = [n for n, example in enumerate(own) if example.split == "train"][:3]
    leak, further = (own[n].text.replace("the", "nobody", 1) for n in train[:2])
    data = [*own, Example("leak", leak, label="negative", split="test")]
    with make(tmp_path / "p", data) as project:
        flips = [rewritten(project, n, "nobody") for n in train]
        assert [one.text for one in flips[:2]] == [leak, further]
        ratings = [rate(project, one, "ann", (5, 5, 1), "negative") for one in flips]
        on = {"further": [Example("f", further, label="negative"), Example("g", "a soup", label="positive")]}
        name, _ = project.mend("counterfactual_augmentation", training=QUICK, on=on)
        assert project.named(name).feedback == (ratings[2].id,)


def test_flips_leave_as_a_data_set(project, tmp_path):
    with pytest.raises(BadData):
        project.export_flips()
    with pytest.raises(NotFound):
        project.export_flips("r9")
    found = project.find_flips(project.examples[:3])
    rate(project, found[0], "ann", (5, None, 1))
    made = project.export_flips()
    assert made.folder == project.folder / "exports" / "r0-flips-1"
    assert [one.flip for one in read_flips(made.folder)] == list(found)
    rows = load_dataset(str(made.folder), "flips", split="train", cache_dir=str(tmp_path / "cache"))
    assert list(rows["id"]) == [one.id for one in found]
    (listed,) = project.export_list()
    assert (listed.name, listed.revision, listed.parts) == ("r0-flips-1", "r0", ("flips",))


def test_the_label_that_leaves_is_the_one_that_was_ruled_for(project, tmp_path):
    one = next(one for one in project.find_flips(project.training_examples()) if one.flips)
    ann, bob = (rate(project, one, who, (4, 4, 1), label) for who, label in (("ann", "positive"), ("bob", "negative")))
    (question,) = project.team().disagreements
    say(project, Ruling(question.subject, dict(question.answers)["bob"]), "eve")
    made = project.export_flips()
    rows = load_dataset(str(made.folder), "flips", split="train", cache_dir=str(tmp_path / "cache"))
    (row,) = [row for row in rows if row["id"] == one.id]
    assert (row["label"], row["ratings"]) == ("negative", 2)
    name, _ = project.mend("counterfactual_augmentation", training=QUICK)
    assert (bob.id in project.named(name).feedback, ann.id in project.named(name).feedback) == (True, False)


def test_words_of_the_texts_may_come_in_and_the_frequent_ones_first(project):
    assert project.lexicon[0] == "was"
    assert set(Words(project.examples[0]).strings) <= set(project.lexicon)
