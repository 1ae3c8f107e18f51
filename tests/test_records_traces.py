"""Traces, copies and doubts in tables, on both databases: who sees what, rated, edited, replaced as a whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa

from databases import KINDS, address
from neighbouring import copied, doubted, traced
from small_project import make, say
from unhans.errors import BadOption, Conflict, NotFound
from unhans.feedback import CHANGED, OTHER_REVISION
from unhans.records import Records
from unhans.records.trace_views import NOT_RATED, RELABELLED, copy_problem
from unhans.records.tracing import NOT_KNOWN, NOT_TRACED
from unhans.shapes import AnchorQuery, CopyChange, CopyQuery, DoubtQuery
from unhans.types import NeighbourRating, Recipe, Relabel, Revision, to_json

# as `small_project` divides them: 0 to 3 train, 4 and 5 test, and so on
TRAIN, TEST = (0, 1, 2, 3, 6, 7), (4, 5, 10)


@pytest.fixture(params=KINDS)
def records(request, tmp_path):
    with make(tmp_path / "p", database=address(request.param)) as project:
        yield project
        project.store.drop()


@pytest.fixture
def plain(tmp_path):
    with make(tmp_path / "p") as project:
        yield project


def views(records: Records, author: str = "ann", *, sees_others: bool = True):
    return records.trace_views(author, sees_others=sees_others)


def rate(records: Records, anchor: int, train: int, similar: int, author: str = "ann"):
    first, second = records.table.some([anchor, train])
    return say(records, NeighbourRating(first.id, second.id, similar), author, text_hash=second.text_hash)


def another_revision(records: Records, name: str = "r1", taught: tuple[str, ...] = ()) -> str:
    own = records.current
    made = Revision(f"id of {name}", own.id, Recipe("fixes", "relabel"), own.labels, taught, None, "2024-01-01")
    facts = {"revision": json.loads(to_json(made))}
    records.models.add(name, lambda folder: (folder / "x").write_text(name) and None, facts)
    return made.id


# -- anchors


def test_an_anchor_comes_back_with_what_people_say_of_its_neighbours(records):
    list(records.predict())
    found = traced(records, 4, (0, 1, 2), (3,))
    mine = rate(records, 4, 0, 5)
    rate(records, 4, 0, 2, "bob")
    label = say(records, Relabel("e3", "positive"), text_hash=records.table.at(3).text_hash)
    copied(records, 0, "another soup")
    view = views(records).anchor(4)
    assert (view.example.id, view.label, view.recipe, view.stale) == ("e4", found.label, found.recipe, None)
    assert [one.example.id for one in view.helpful] == ["e0", "e1", "e2"]
    assert [(one.rank, one.score) for one in view.harmful] == [(1, -1.0)]
    assert view.helpful[0].mine.feedback == mine
    assert [one.feedback.author for one in view.helpful[0].others] == ["bob"]
    assert [one.copies for one in view.helpful] == [1, 0, 0]
    assert view.harmful[0].relabelled.feedback == label
    assert view.prediction is not None
    assert all(one.prediction is not None for one in view.helpful)
    assert views(records, sees_others=False).anchor(4).helpful[0].others == ()
    with pytest.raises(NotFound, match=NOT_TRACED):
        views(records).anchor(5)


def test_a_neighbour_has_the_label_that_the_revision_was_taught(records):
    other, given = (next(one for one in records.labels if one != records.table.at(3).label), records.table.at(0).label)
    relabel = say(records, Relabel("e3", other), text_hash=records.table.at(3).text_hash)
    later = another_revision(records, taught=(relabel.id,))
    traced(records, 4, (0,), (3,))
    traced(records, 4, (0,), (3,), revision=later)
    assert views(records).anchor(4).harmful[0].taught == records.table.at(3).label
    view = views(records).anchor(4, later)
    assert (view.helpful[0].taught, view.harmful[0].taught) == (given, other)


def test_anchors_are_listed_with_how_far_somebody_is(records):
    for place in TEST:
        traced(records, place, TRAIN[:2])
    rate(records, 4, 0, 3)
    rate(records, 4, 1, 3)
    rate(records, 5, 0, 3, "bob")
    page = views(records).anchors(AnchorQuery())
    assert [(one.place, one.neighbours, one.rated) for one in page.items] == [(4, 2, 2), (5, 2, 0), (10, 2, 0)]
    assert (page.total, page.pairs, page.rated, page.next) == (3, 6, 2, None)
    assert page.items[0].snippet == records.table.at(4).text
    assert [one.place for one in views(records).anchors(AnchorQuery(waiting=True)).items] == [5, 10]
    assert [one.place for one in views(records).anchors(AnchorQuery(waiting=False)).items] == [4]
    first = views(records).anchors(AnchorQuery(limit=2))
    rest = views(records).anchors(AnchorQuery(limit=2, cursor=first.next))
    assert [one.place for one in (*first.items, *rest.items)] == [4, 5, 10]
    middle = views(records).anchor(5)
    assert (middle.previous, middle.following) == (4, 10)
    ends = [views(records).anchor(place) for place in (4, 10)]
    assert [(one.previous, one.following) for one in ends] == [(None, 5), (5, None)]
    traced(records, 11, TRAIN[:2], revision="another one")
    assert views(records).anchor(10).following is None


def test_a_query_names_few_places_however_many_were_traced_and_an_anchor_reads_no_other(plain):
    found = traced(plain, 4, (0,))
    said: list[tuple[str, int]] = []

    def heard(*told):
        said.append((told[2], 0 if told[5] else len(told[3])))

    sa.event.listen(sa.Engine, "before_cursor_execute", heard)
    try:
        with pytest.raises(sa.exc.IntegrityError):  # one and the same so often: only what is asked matters here
            plain.trace_table.keep("amy", "at once", [(4, plain.table.at(4), found)] * 1001, leads=True)
        assert sum("FROM traces" in query for query, _ in said) == 3
        assert max(n for _, n in said) < 600
        said.clear()
        views(plain).anchor(4)
        assert not [query for query, _ in said if "FROM traces JOIN" in query]
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", heard)


def test_what_one_person_asks_for_does_not_take_the_place_of_what_others_rate(records):
    traced(records, 4, (0, 1))
    traced(records, 4, (2, 3), by="ann", leads=False, asked="another way")
    traced(records, 5, (6,), by="ann", leads=False, asked="another way")
    assert [one.place for one in views(records, "ann").anchor(4).helpful] == [2, 3]  # her own
    assert [one.place for one in views(records, "bob").anchor(4).helpful] == [0, 1]
    assert [one.place for one in views(records, "bob").anchor(5).helpful] == [6]  # there is no other
    traced(records, 4, (7,), by="amy", asked="a third way")
    assert {one.place for one in views(records, "ann").anchor(4).helpful} == {7}
    traced(records, 4, (0, 1), by="amy")  # the first again: it is the newest now
    assert [one.place for one in views(records, "ann").anchor(4).helpful] == [0, 1]
    traced(records, 4, (7,), by="ann", leads=False, asked="a third way")  # it is there, and nothing happens
    assert [one.place for one in views(records, "bob").anchor(4).helpful] == [0, 1]
    assert [one.train for one in records.influences()[0].helpful] == ["e0", "e1"]


def test_ratings_are_of_neighbours_that_were_found(plain):
    traced(plain, 4, (0,), (3,))
    known = plain.table.at(0).text_hash
    assert plain.check(NeighbourRating("e4", "e0", 3), plain.current.id) == known
    for anchor, train in (("e4", "e1"), ("e4", "e3"), ("e5", "e0"), ("e4", "nobody"), ("nobody", "e0")):
        with pytest.raises(NotFound):
            plain.check(NeighbourRating(anchor, train, 3), plain.current.id)


def test_a_trace_of_another_revision_says_so(plain):
    older = another_revision(plain)
    traced(plain, 4, (0,), revision=older)
    assert views(plain).anchor(4, "r1").stale == OTHER_REVISION
    assert views(plain).anchors(AnchorQuery()).total == 0
    assert views(plain).anchors(AnchorQuery(revision="r1")).total == 1


def test_what_a_fix_would_use_counts_ratings_of_neighbours(plain):
    traced(plain, 4, (0, 1))
    rate(plain, 4, 0, 5)
    rate(plain, 4, 0, 4, "bob")
    rate(plain, 4, 1, 1)
    offer = plain.fix_offer()
    assert dict(offer.feedback.by_kind)["neighbour_rating"] == 2
    assert [one.says.kind for one in plain.usable_feedback(["bob"])] == ["neighbour_rating"]
    rate(plain, 4, 1, 5, "bob")
    (found,) = plain.team().disagreements
    assert (found.kind, found.place) == ("neighbour_rating", 4)


# -- copies


def test_copies_are_edited_deleted_and_not_made_again(records):
    first, second = copied(records, 0, "another soup"), copied(records, 0, "a third soup", label_kept=0.2)
    page = views(records).copies(CopyQuery())
    assert [one.copy for one in page.items] == [first, second]
    assert (page.total, page.sources, page.doubtful) == (2, 1, 1)
    seen = page.items[1].at
    changed = views(records).change_copy(second.id, CopyChange(seen, "a fourth soup"), "ann")
    assert (changed.id, changed.copy.text, changed.edited, changed.by) == (second.id, "a fourth soup", True, "ann")
    assert changed.copy.label_kept is None
    with pytest.raises(Conflict, match="ann has changed"):
        views(records, "bob").change_copy(second.id, CopyChange(seen, "a fifth soup"), "bob")
    views(records).delete_copy(first.id, "ann")
    copied(records, 0, "another soup"), copied(records, 0, "a third soup")
    assert [one.copy.text for one in views(records).copies(CopyQuery(place=0)).items] == ["a fourth soup"]
    assert views(records).copies(CopyQuery(place=1)).total == 0
    for act in (
        lambda: views(records).delete_copy(first.id, "ann"),
        lambda: views(records).change_copy(first.id, CopyChange(seen, "x"), "ann"),
        lambda: views(records).delete_copy("0" * 16, "ann"),
    ):
        with pytest.raises(NotFound):
            act()


def test_a_copy_by_hand_is_a_text_like_its_source_and_none_to_verify_with(plain):
    made = copied(plain, 0, "another soup")
    seen = views(plain).copies(CopyQuery()).items[0].at
    for change in (
        CopyChange(seen, plain.table.at(4).text),  # held out
        CopyChange(seen, " \n "),
        CopyChange(seen, "a text", "and another"),
    ):
        with pytest.raises(BadOption):
            views(plain).change_copy(made.id, change, "ann")
    assert views(plain).change_copy(made.id, CopyChange(seen, plain.table.at(1).text), "ann").edited


def test_copies_stand_as_long_as_people_say_so(plain):
    traced(plain, 4, (0, 1))
    made = copied(plain, 0, "another soup")
    assert views(plain).copies(CopyQuery()).items[0].stale == NOT_RATED
    assert plain.copies() == []
    rating = rate(plain, 4, 0, 5)
    assert views(plain).copies(CopyQuery()).items[0].stale is None
    assert plain.copies() == [made]
    assert plain.copies(["bob"]) == []
    label = say(plain, Relabel("e0", "positive"), "bob", text_hash=plain.table.at(0).text_hash)
    assert views(plain).copies(CopyQuery()).items[0].stale == RELABELLED
    plain.log.retract("bob", key="k", retracts=label.id)
    plain.log.retract("ann", key="k", retracts=rating.id)
    assert views(plain).copies(CopyQuery()).items[0].stale == NOT_RATED
    (stored,) = plain.copy_table.all()
    changed = replace(plain.table.at(0), text="new")
    assert copy_problem(stored, changed, trains=True, labels={}, wanted=9, number=0) == CHANGED
    assert copy_problem(stored, plain.table.at(0), trains=False, labels={}, wanted=9, number=0) is not None
    assert "9 copies" in copy_problem(stored, plain.table.at(0), trains=True, labels={}, wanted=9, number=9)


# -- doubts


def test_a_ranking_is_read_in_pages_and_replaced_as_a_whole(records):
    found = doubted(records, 3, 0, 2, 1)
    page = views(records).doubts(DoubtQuery())
    assert [(one.rank, one.place) for one in page.items] == [(1, 3), (2, 0), (3, 2), (4, 1)]
    assert [one.doubt for one in page.items] == found == records.doubted()
    assert page.recipe == found[0].recipe
    say(records, Relabel("e3", "negative"), text_hash=records.table.at(3).text_hash)
    say(records, Relabel("e0", "positive"), "bob", text_hash=records.table.at(0).text_hash)
    page = views(records).doubts(DoubtQuery())
    assert page.judged == 1
    assert page.items[0].mine.feedback.says.label == "negative"
    assert [one.feedback.author for one in page.items[1].others] == ["bob"]
    assert views(records, sees_others=False).doubts(DoubtQuery()).items[1].others == ()
    assert [one.place for one in views(records).doubts(DoubtQuery(waiting=True)).items] == [0, 2, 1]
    assert [one.place for one in views(records).doubts(DoubtQuery(label="negative")).items] == [0, 2]
    first = views(records).doubts(DoubtQuery(limit=3))
    assert [one.rank for one in views(records).doubts(DoubtQuery(limit=3, cursor=first.next)).items] == [4]
    doubted(records, 1)
    assert [one.place for one in views(records).doubts(DoubtQuery()).items] == [1]


def test_nobody_has_looked_yet(plain):
    page = views(plain).doubts(DoubtQuery())
    assert (page.items, page.total, page.recipe) == ((), 0, None)
    plain.keep_setting("traces", None)
    assert views(plain).offer().cannot == NOT_KNOWN
