"""Flips in tables, on both databases: kept once, found again, rated, counted, taken away."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from databases import KINDS, address
from flipped import flip, found, rate, rewritten
from small_project import make, say
from unhans.errors import BadOption, NotFound
from unhans.export import read_flips
from unhans.feedback import CHANGED, OTHER_REVISION
from unhans.records import Records
from unhans.records.flipping import NOT_KNOWN, Asked, Find, check_edits
from unhans.records.judging import check_answer
from unhans.shapes import DeskQuery, Filter, FlipQuery, ProjectSettings
from unhans.types import Edit, Example, FlipRating, Recipe, Revision, Step, to_json


@pytest.fixture(params=KINDS)
def records(request, tmp_path):
    with make(tmp_path / "p", database=address(request.param)) as project:
        yield project
        project.store.drop()


@pytest.fixture
def plain(tmp_path):
    with make(tmp_path / "p") as project:
        yield project


def another_revision(records: Records, name: str = "r1") -> str:
    own = records.current
    made = Revision(f"id of {name}", own.id, Recipe("fixes", "relabel"), own.labels, (), None, "2024-01-01")
    facts = {"revision": json.loads(to_json(made))}
    records.models.add(name, lambda folder: (folder / "x").write_text(name) and None, facts)
    return made.id


def page(records: Records, author: str = "ann", *, sees_others: bool = True, **wanted: object):
    return records.flip_views(author, sees_others=sees_others).page(FlipQuery(**wanted))


# -- keeping


def test_a_flip_comes_back_as_it_was_found(records):
    example, revision = records.table.at(3), records.current.id
    first = flip(example, "nobody", "", revision=revision, perplexity=0.5, similarity=0.25, editable=(0, 1))
    first = replace(first, steps=(Step(first.edits[:1], first.after), Step(first.edits[1:], first.after)))
    (stored,) = found(records, 3, first, by="amy")
    assert (stored.flip, stored.place, stored.by, stored.text_hash) == (first, 3, "amy", example.text_hash)
    assert records.flip_table.one(first.id) == stored
    assert records.flips() == [first]
    with pytest.raises(NotFound):
        records.flip_table.one("0" * 16)


def test_one_that_is_found_again_stays_as_people_rated_it(records):
    first = rewritten(records, 0)
    again = replace(first, recipe=Recipe("counterfactuals", "masked_lm"), perplexity=1.0)
    assert again.id == first.id
    found(records, 0, again, asked="another search")
    assert records.flips() == [first]
    assert records.flip_table.found({0: "another search"}) == {0: (first.id,)}


def test_what_was_looked_for_is_known_also_where_nothing_could_be_changed(records):
    unchanged = flip(records.table.at(1), revision=records.current.id, flips=False)
    found(records, 1, unchanged, asked="a")
    found(records, 2, asked="a")
    assert records.flip_table.found({0: "a", 1: "a", 2: "a"}) == {1: (unchanged.id,), 2: ()}
    assert records.flip_table.found({1: "b", 2: "a"}) == {2: ()}
    assert page(records).total == records.flip_table.count(records.current.id) == 0  # there is nothing to look at
    assert records.flip_views("ann", sees_others=True).chart(None).dots == ()


def test_searches_differ_in_all_that_they_depend_on():
    recipe = Recipe("counterfactuals", "hotflip", (("candidates", 10),))
    first = Asked("r", recipe, (("beam", 10), ("max_edits", 5)), None, 1, 0)
    same = replace(first, search=(("max_edits", 5), ("beam", 10)))
    others = [
        replace(first, **changed)
        for changed in (
            {"revision": "s"},
            {"recipe": Recipe("counterfactuals", "hotflip", (("candidates", 11),))},
            {"search": (("beam", 11), ("max_edits", 5))},
            {"target": "positive"},
            {"keep": 2},
            {"seed": 1},
            {"editable": ()},
            {"editable": (1,)},
            {"reads": (1,)},
            {"start": (Edit(0, "a", "b"),)},
        )
    ]
    assert first.id == same.id
    assert len({first.id, *(one.id for one in others)}) == len(others) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_several_who_store_the_same_at_once_store_it_once(tmp_path, kind):
    with make(tmp_path / "p", database=address(kind)) as records:
        made = flip(records.table.at(0), "nobody", revision=records.current.id)
        finds = [Find("a", 0, records.table.at(0), (made,))]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda _: records.flip_table.keep("ann", finds), range(12)))
        assert records.flips() == [made]
        records.store.drop()


# -- pages


def test_pages_go_through_all_that_fit_in_the_order_they_were_found(records):
    made = [rewritten(records, place, "nobody", flips=place % 2 == 0) for place in range(7)]
    other = rewritten(records, 2, "somebody", method="masked_lm")
    seen, cursor = [], None
    while True:
        some = page(records, limit=3, cursor=cursor)
        assert some.total == 8
        seen += [one.flip for one in some.items]
        if (cursor := some.next) is None:
            break
    assert seen == [*made, other]
    assert [one.place for one in page(records, place=2).items] == [2, 2]
    assert [one.flip for one in page(records, method="masked_lm").items] == [other]
    assert [one.place for one in page(records, flips=False).items] == [1, 3, 5]
    assert page(records, place=30).items == ()
    with pytest.raises(BadOption):
        page(records, cursor="nonsense")


def test_who_rates_what_decides_what_waits(records):
    records.change_settings(ProjectSettings(overlap=2))
    first, second, third = (rewritten(records, place) for place in range(3))
    rate(records, first, "ann")
    rate(records, second, "bob")
    rate(records, second, "cem")
    assert [one.flip for one in page(records, rated=True).items] == [first]
    assert [one.flip for one in page(records, rated=False).items] == [second, third]
    assert [one.flip for one in page(records, waiting=True).items] == [third]
    assert [one.flip for one in page(records, waiting=False).items] == [first, second]
    assert [one.flip for one in page(records, "dan", waiting=True).items] == [first, third]


def test_ratings_of_others_are_shown_to_those_who_may_see_them(records):
    made = rewritten(records, 0)
    mine, theirs = rate(records, made, "ann", (1, None, 3)), rate(records, made, "bob")
    seen, blind = (page(records, sees_others=open_).items[0] for open_ in (True, False))
    assert seen.mine.feedback == blind.mine.feedback == mine
    assert [one.feedback for one in seen.others] == [theirs]
    assert (seen.ratings, blind.ratings, blind.others) == (2, 1, ())
    assert page(records, "dan", sees_others=False).items[0].mine is None


def test_a_rating_that_is_changed_or_taken_back_is_shown_as_it_stands(records):
    made = rewritten(records, 0)
    first = rate(records, made, "ann", (1, 1, 1))
    rate(records, made, "ann", (2, None, 2), "negative")
    (view,) = page(records).items
    assert view.mine.feedback.says == FlipRating(made.id, 2, None, 2, "negative")
    assert view.ratings == 1
    records.log.retract("ann", key="k" * 8)
    assert page(records).items[0].mine.feedback == first
    records.log.retract("ann", key="l" * 8)
    assert page(records).items[0].mine is None


def test_flips_of_another_revision_are_asked_for_by_its_name_or_id_and_do_not_fit(records):
    made = rewritten(records, 0)
    other = another_revision(records)
    records.publish("r1", even_so=True)
    assert page(records).total == 0
    for given in ("r0", made.before.revision):
        (view,) = page(records, revision=given).items
        assert (view.flip, view.stale) == (made, OTHER_REVISION)
    rate(records, made)
    assert page(records, revision="r0").items[0].mine.stale is None  # it is about the revision that was shown
    assert records.revision_id("r1") == records.revision_id(None) == other
    with pytest.raises(NotFound):
        page(records, revision="r9")


def test_a_flip_whose_text_is_another_now_is_told_apart(plain):
    made = flip(plain.table.at(0), "nobody", revision=plain.current.id)
    plain.flip_table.keep("ann", [Find("a", 0, replace(plain.table.at(0), text="the soup"), (made,))])
    assert page(plain).items[0].stale == CHANGED


# -- the chart and the desk


def test_the_chart_has_a_dot_for_each_and_of_many_the_newest(records):
    made = [rewritten(records, place, "nobody", "was", similarity=0.5, flips=place != 1) for place in range(3)]
    rate(records, made[2], "ann")
    rate(records, made[0], "bob")
    chart = records.flip_views("ann", sees_others=False).chart(None)
    assert (chart.revision, chart.total, [dot.id for dot in chart.dots]) == (
        records.current.id,
        3,
        [one.id for one in made],
    )
    first = chart.dots[0]
    assert (first.before, first.after, first.probability, first.edits, first.similarity) == (
        "negative",
        "positive",
        0.7,
        2,
        0.5,
    )
    assert first.share == pytest.approx(2 / len(records.table.at(0).text.split()))
    assert [dot.flips for dot in chart.dots] == [True, False, True]
    assert [dot.rated for dot in chart.dots] == [False, False, True]
    dots, total = records.flip_table.chart(records.current.id, "ann", most=2)
    assert ([dot.id for dot in dots], total) == ([one.id for one in made[1:]], 3)


def desk(records: Records, place: int, **query: object):
    return records.flip_views("ann", sees_others=True).desk(place, DeskQuery(**query), Filter())


def test_a_desk_cuts_texts_into_sentences_and_says_which_hold_the_rationale(tmp_path):
    texts = [
        Example("long", "the soup was cold. The film was great! We were never there", label="positive"),
        Example("pair", "the soup was cold", "great. The film was", label="negative"),
        Example("last", "great", label="positive"),
    ]
    with make(tmp_path / "p", texts) as project:
        before = desk(project, 0)
        assert (before.rationale, before.explained, before.prediction) == (None, None, None)
        assert "Have it explained" in before.no_rationale
        assert [one.weight for one in before.sentences] == [0, 0, 0]
        list(project.predict())
        project.explain(examples=texts)
        told = desk(project, 0)
        assert [one.words for one in told.sentences] == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9), (10, 11, 12, 13)]
        assert told.words[:4] == ("the", "soup", "was", "cold")
        assert told.rationale.chosen == tuple(n for one in told.sentences for n in one.rationale)
        assert sum(one.weight for one in told.sentences) == pytest.approx(1)
        assert (told.no_rationale, told.explained) == ("", project.explained.sets(project.current.id)[0].id)
        assert told.prediction.label == told.rationale.label
        assert [(one.part, one.words) for one in desk(project, 1).sentences] == [
            ("text", (0, 1, 2, 3)),
            ("pair", (4, 5)),
            ("pair", (6, 7, 8)),
        ]
        assert [one.words for one in desk(project, 2).sentences] == [(0,)]
        assert (desk(project, 1).previous, desk(project, 1).following) == (0, 2)
        spans = desk(project, 0, rationale="spans", explained=told.explained)
        assert spans.rationale.recipe.name == "spans"


def test_a_desk_shows_the_newest_flips_of_its_example_first(records):
    first, second = rewritten(records, 0, "nobody"), rewritten(records, 0, "somebody")
    rewritten(records, 1)
    assert [one.flip for one in desk(records, 0).flips] == [second, first]


def test_a_desk_refuses_explanations_that_are_not_of_words_or_of_another_revision(plain):
    list(plain.predict())
    plain.explain(units="sentence", examples=plain.examples[:1])
    (sentences,) = plain.explained.sets(plain.current.id)
    assert desk(plain, 0).rationale is None
    with pytest.raises(BadOption, match="Choose some that are of words"):
        desk(plain, 0, explained=sentences.id)
    another_revision(plain)
    with pytest.raises(NotFound):
        desk(plain, 0, explained=sentences.id, revision="r1")
    with pytest.raises(NotFound):
        desk(plain, 0, explained="nothing")
    with pytest.raises(BadOption, match="magic"):
        desk(plain, 0, rationale="magic")
    with pytest.raises(NotFound):
        desk(plain, 99)


# -- ratings


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (FlipRating("nothing", 1, 1, 1), NotFound),
        (FlipRating("nothing", None, None, None), NotFound),
        (FlipRating("IT", 1, 1, 1, "no such label"), BadOption),
    ],
    ids=str,
)
def test_ratings_of_what_is_not_there_are_refused(plain, answer, error):
    made = rewritten(plain, 0)
    answer = replace(answer, counterfactual=answer.counterfactual.replace("IT", made.id))
    with pytest.raises(error):
        plain.check(answer, plain.current.id)


def test_a_rating_belongs_to_the_revision_whose_flip_it_rates(plain):
    made = rewritten(plain, 0)
    says = FlipRating(made.id, 1, None, 5, "positive")
    assert plain.check(says, plain.current.id) == plain.table.at(0).text_hash
    other = another_revision(plain)
    with pytest.raises(BadOption, match="another revision"):
        plain.check(says, other)
    check_answer(says, None, plain.labels, flip=True)


def test_edits_that_are_not_of_the_example_are_refused():
    example = Example("a", "the soup was cold", "great")
    check_edits(example, [Edit(1, "soup", ""), Edit(4, "great", "not great")])
    for wrong in ([Edit(1, "film", "")], [Edit(5, "great", "")], [Edit(-1, "great", "")]):
        with pytest.raises(BadOption, match="no such word there"):
            check_edits(example, wrong)
    with pytest.raises(BadOption, match="same word"):
        check_edits(example, [Edit(1, "soup", "a"), Edit(1, "soup", "b")])


def test_risk_is_of_the_ratings_that_stand_on_flips_of_one_revision(records):
    revision = records.current.id
    assert records.risk().value is None
    made = [rewritten(records, place) for place in range(4)]
    for one, agrees in zip(made, (1, 5, None, 3), strict=True):
        rate(records, one, "ann", (5, 5, agrees))
    rate(records, made[0], "bob", (5, 5, 3))
    found_ = records.risk()
    assert (found_.value, found_.n, found_.flips, found_.not_applicable, found_.unknown) == (2, 4, 3, 1, 0)
    assert found_.revision == revision
    assert records.risk(author="bob").value == 2
    assert records.risk(author="bob").n == 1
    records.log.retract("bob", key="k" * 8)
    assert records.risk().n == 3
    other = another_revision(records)
    records.publish("r1", even_so=True)
    assert (records.risk().n, records.risk().revision, records.risk("r0").n) == (0, other, 3)
    rate(records, rewritten(records, 0), "ann", (5, 5, 5))
    view = records.flip_views("ann", sees_others=True).risk(None, 0.5)
    assert (view.risk.value, view.before.value, view.change.before, view.change.after) == (0, 2, 2, 0)
    assert (view.revision, view.flips, view.own, view.verdict) == (other, 1, False, "same")
    assert view.places == {records.table.at(0).id: 0}
    first = records.flip_views("bob", sees_others=False).risk("r0", 0.5)
    assert (first.own, first.before, first.change, first.risk.n, first.flips) == (True, None, None, 0, 4)


def test_people_who_rate_opposite_disagree_and_the_place_is_told(plain):
    made = rewritten(plain, 4)
    rate(plain, made, "ann", (1, 1, 1))
    rate(plain, made, "bob", (5, 5, 5))
    (told,) = plain.team().disagreements
    assert (told.kind, told.place, told.answers) == ("flip_rating", 4, (("ann", "1 1 1"), ("bob", "5 5 5")))


def test_ratings_teach_also_after_another_revision_was_published(plain):
    first, second = rewritten(plain, 0), rewritten(plain, 1)
    ratings = [rate(plain, first, "ann"), rate(plain, first, "bob"), rate(plain, second, "ann")]
    say(plain, FlipRating("gone", 5, 5, 5), text_hash="of no text")
    assert plain.usable_feedback() == ratings
    use = plain.feedback_use()
    assert (use.usable, dict(use.by_kind)) == (2, {"flip_rating": 2})
    assert sum(n for _, n in use.stale) == 1
    assert plain.usable_feedback(["bob"]) == ratings[1:2]
    another_revision(plain)
    plain.publish("r1", even_so=True)
    assert plain.usable_feedback() == ratings


# -- elsewhere


def test_a_data_set_has_originals_edits_predictions_and_ratings(records, tmp_path):
    made = rewritten(records, 1, "nobody", "")
    rating = rate(records, made, "bob", (4, None, 2), "negative")
    rewritten(records, 2)
    another_revision(records)
    views = records.flip_views("amy", sees_others=True)
    lines = list(views.dataset(None))
    (tmp_path / "flips.jsonl").write_text("".join(lines), encoding="utf-8")
    first, second = read_flips(tmp_path / "flips.jsonl")
    assert (first.id, first.flip, first.original, first.revision) == (
        made.id,
        made,
        records.table.at(1),
        records.current.id,
    )
    assert (first.ratings, second.ratings) == ((rating,), ())
    assert json.loads(lines[0])["by"] == "ann"
    assert list(views.dataset("r1")) == []


def test_a_project_of_an_earlier_version_says_what_to_do_until_it_is_described(plain):
    offer = plain.flip_views("ann", sees_others=True).offer()
    assert offer.cannot == ""
    assert offer.methods[0].name == "hotflip"
    assert {"max_edits", "beam"} <= {option.name for option in offer.search}
    assert "top_share" in {one.name for one in offer.rationales}
    plain.keep_setting("flips", None)
    assert plain.flip_views("ann", sees_others=True).offer().cannot == NOT_KNOWN
    plain.keep_setting("methods_of", None)
    plain.describe_methods()
    assert plain.flip_views("ann", sees_others=True).offer() == offer
