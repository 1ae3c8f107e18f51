"""What a project holds, read a page at a time: the pages must be what going through everything would find."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa

import tiny
from databases import KINDS, address
from unhans.data import read
from unhans.errors import BadData, BadOption, NotFound, ProjectProblem, TooMuch
from unhans.project import Project
from unhans.records import Records
from unhans.records import examples as examples_module
from unhans.records.examples import ExampleTable
from unhans.records.judging import check_answer, new_id
from unhans.shapes import Filter, ProjectSettings
from unhans.text import Words, visible_form
from unhans.types import Example, Feedback, FlipRating, Relabel, Review, Span, WordVote

SOURCE = list(
    read(
        [
            Example(
                f"id {n}",
                text=("The Straße was cold" if n % 3 else "A wonderful film, straße und so\u200bup")
                + f" {n}" * (n % 4 + 1),
                pair="Soup is soup." if n % 5 == 0 else None,
                label=None if n % 7 == 0 else ("positive" if n % 2 else "negative"),
                split="train" if n < 40 else "test",
                group="a" if n % 2 else None,
                notes=("It has a hidden character.",) if n % 11 == 0 else (),
                highlights=(Span(0, 3),) if n % 13 == 0 else None,
            )
            for n in range(60)
        ]
    )
)


@pytest.fixture(scope="module", params=KINDS)
def records(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records") / "p"
    with Project.create(folder, model=tiny.transformer(), data=SOURCE, database=address(request.param)) as made:
        list(made.predict())
        made.explain(examples=SOURCE[:20])
        for n in (1, 4, 9):
            vote = WordVote("was", "positive", "raise", f"id {n}", 2)
            say(made, "me", vote if n % 3 else Review(f"id {n}", "flagged"))
        say(made, "me", Review("id 4", "done"))
        say(made, "me", Review("id 5", "skipped"))
        say(made, "you", WordVote("was", "positive", "lower", "id 1", 2))
        yield made
        made.store.drop()


def say(records, author, answer, **more):
    entry = Feedback(new_id(), answer, author, "2026-01-01T00:00:00+00:00", records.current.id, **more)
    return records.log.add(entry, key=entry.id)


def naive(records, wanted):
    """The same filter, straight from its description."""
    predictions = {one.example: one for one in records.table.predictions(records.current.id)}
    state = {"id 1": "draft", "id 4": "done", "id 5": "skipped", "id 9": "flagged"}
    for place, example in enumerate(records.table.all()):
        said = predictions[example.id]
        both = " ".join(example.parts)
        tests = {
            "label": lambda v, e=example: e.label == v,
            "predicted": lambda v, s=said: s.label == v,
            "correct": lambda v, e=example, s=said: e.label is not None and (e.label == s.label) == v,
            "min_confidence": lambda v, s=said: s.confidence >= v,
            "max_confidence": lambda v, s=said: s.confidence <= v,
            "contains": lambda v, b=both: v.casefold() in b.casefold(),
            "word": lambda v, e=example: visible_form(v) in map(visible_form, Words(e).strings),
            "min_words": lambda v, b=both: len(b.split()) >= v,
            "max_words": lambda v, b=both: len(b.split()) <= v,
            "split": lambda v, e=example: e.split == v,
            "group": lambda v, e=example: e.group == v,
            "state": lambda v, e=example: state.get(e.id, "pending") == v,
            "disagreement": lambda v, e=example: (e.id == "id 1") == v,
            "noted": lambda v, e=example: bool(e.notes) == v,
        }
        if all(tests[name](value) for name, value in wanted.model_dump(exclude_none=True).items()):
            yield place, said.confidence


FILTERS = [
    {},
    {"label": "positive"},
    {"predicted": "negative"},
    {"correct": True},
    {"correct": False},
    {"min_confidence": 0.6},
    {"max_confidence": 0.6, "correct": False},
    {"contains": "STRASSE"},
    {"contains": "100% _\\"},
    {"contains": "soup is"},
    {"word": "Soup"},
    {"word": "straße", "label": "negative"},
    {"word": "sou"},
    {"min_words": 6},
    {"max_words": 6, "split": "test"},
    {"group": "a"},
    *({"state": state} for state in ("pending", "draft", "done", "skipped", "flagged")),
    {"disagreement": True},
    {"disagreement": False, "correct": True},
    {"noted": True},
    {"noted": False, "word": "film"},
    {"label": "nothing of that name"},
]


@pytest.mark.parametrize("window", [7, 20_000])
@pytest.mark.parametrize("sort", ["order", "least_confident", "most_confident"])
@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_pages_are_what_going_through_everything_finds(records, wanted, sort, window, monkeypatch):
    monkeypatch.setattr(examples_module, "_WINDOW", window)
    wanted = Filter(**wanted)
    expected = list(naive(records, wanted))
    if sort != "order":
        sign = -1 if sort == "most_confident" else 1
        expected.sort(key=lambda one: (sign * one[1], sign * one[0]))
    how = {"revision": records.current.id, "author": "me", "sort": sort, "limit": 4}
    found, page = [], records.table.page(wanted, **how)
    assert page.total is None or page.total == len(expected)
    found += page.items
    while page.next:
        page = records.table.page(wanted, cursor=page.next, **how)
        found += page.items
    assert [row.place for row in found] == [place for place, _ in expected]
    assert page.complete
    for n in range(0, len(expected), 3):
        before, after = records.table.neighbours(
            expected[n][0], wanted, revision=records.current.id, author="me", sort=sort
        )
        assert before == (expected[n - 1][0] if n else None)
        assert after == (expected[n + 1][0] if n + 1 < len(expected) else None)


def test_a_search_that_takes_too_long_gives_what_it_has_and_where_to_go_on(records, monkeypatch):
    monkeypatch.setattr(examples_module, "_WINDOW", 10)
    clock = iter(range(0, 10_000, 2))  # two seconds pass at every look
    table = ExampleTable(records.store, clock=lambda: next(clock))
    how = {"revision": records.current.id, "author": "me", "limit": 50}
    page = table.page(Filter(word="soup"), **how)
    assert not page.complete
    assert page.next is not None
    found = list(page.items)
    while page.next:
        page = table.page(Filter(word="soup"), cursor=page.next, **how)
        found += page.items
    assert [row.place for row in found] == [place for place, _ in naive(records, Filter(word="soup"))]


def test_examples_come_back_as_they_were(records):
    stored = [replace(example, label=example.label) for example in SOURCE]
    assert list(records.table.all()) == stored
    assert list(records.table.corpus()) == stored
    assert records.table.at(59) == stored[59]
    assert records.table.some([5, 3]) == [stored[5], stored[3]]
    assert records.table.find(["id 7", "nobody"]) == {"id 7": (7, stored[7])}
    assert records.table.lookup("", stored[8].text, stored[8].pair).text == stored[8].text


@pytest.mark.parametrize("place", [-1, 60, 10**6])
def test_a_place_where_nothing_is_is_told(records, place):
    with pytest.raises(NotFound):
        records.table.at(place)
    with pytest.raises(NotFound):
        records.table.some([0, place])


@pytest.mark.parametrize("cursor", ["x", "WzAuMCwgOTld!", "W10", "eyJhIjogMX0", "WzAsIC0xXQ", "WzAsIDEuNV0", "é"])
def test_a_cursor_that_is_none_is_refused(records, cursor):
    with pytest.raises(BadOption, match="Begin at the top"):
        records.table.page(Filter(), revision=records.current.id, author="me", cursor=cursor)


def test_a_word_is_counted_in_all_texts_and_in_those_predicted_right(records):
    places = {place for place, _ in naive(records, Filter(word="soup"))}
    right = {place for place, _ in naive(records, Filter(word="soup", correct=True))}
    assert records.table.with_word("SOUP", records.current.id) == (len(places), len(right), True)


def test_accuracy_is_by_split_and_over_labelled_examples(records):
    predicted, found = records.table.accuracy(records.current.id)
    assert predicted == 60
    assert {one.split: one.labelled for one in found} == {
        split: sum(e.split == split and e.label is not None for e in SOURCE) for split in ("train", "test")
    }
    right = len(list(naive(records, Filter(correct=True, split="test"))))
    assert next(one.right for one in found if one.split == "test") == right


def test_the_view_of_an_example_has_my_votes_my_state_and_others_only_where_i_may_see_them(records):
    (chosen,) = records.explained.sets(records.current.id)
    view = records.example_view(1, author="me", sees_others=False, explained=chosen.id)
    assert [one.feedback.says.vote for one in view.mine] == ["raise"]
    assert view.others == ()
    assert view.state == "draft"
    assert view.attribution.words == Words(SOURCE[1]).strings
    assert view.text_hash == SOURCE[1].text_hash
    seen = records.example_view(1, author="me", sees_others=True).others
    assert [(one.feedback.author, one.feedback.says.vote) for one in seen] == [("you", "lower")]
    assert records.example_view(30, author="me", sees_others=True, explained=chosen.id).attribution is None
    with pytest.raises(NotFound):
        records.example_view(1, author="me", sees_others=True, explained="nothing")


def test_feedback_on_another_text_or_revision_is_stale(records):
    entry = Feedback("x", WordVote("was", "positive", "raise", "id 1", 2), "a", "", records.current.id, "another hash")
    assert "changed" in records.opinion(entry, SOURCE[1].text_hash).stale
    assert records.opinion(replace(entry, text_hash=SOURCE[1].text_hash), SOURCE[1].text_hash).stale is None
    older = replace(entry, text_hash=None, revision="older")
    assert "revision" in records.opinion(older).stale


def test_votes_on_a_word_everywhere_and_here_are_told_apart(records):
    say(records, "she", WordVote("was", "positive", "lower"))
    assert records.log.votes_on(["Was", "film"], "positive", "she", sees_others=True) == {
        "Was": ("lower", 2, 1),
        "film": (None, 0, 0),
    }
    view = records.word_view("was", "positive", author="she", sees_others=True)
    assert (view.raised_here, view.lowered_here, view.opinion.feedback.says.vote) == (2, 1, "lower")
    assert records.word_view("was", "negative", author="she", sees_others=True).opinion is None


def test_settings_are_kept(records):
    new = ProjectSettings(guidelines="# Look\nhere", overlap=3, blind=False)
    records.change_settings(new)
    assert records.settings == new
    records.change_settings(ProjectSettings())
    assert records.settings == ProjectSettings()


def test_team_counts_what_stands(records):
    team = {one.name: one for one in records.team().people}
    assert (team["me"].judged, team["me"].skipped, team["me"].flagged, team["me"].votes) == (1, 1, 1, 2)
    (one,) = [d for d in records.team().disagreements if d.place is not None]
    assert (one.place, one.word, dict(one.answers)) == (1, "was", {"me": "raise", "you": "lower"})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (WordVote("was", "positive", "raise", "nobody", 0), NotFound),
        (WordVote("was", "no such label", "raise", "id 1", 2), BadOption),
        (WordVote("was", "positive", "raise", "id 1", 99), BadOption),
        (WordVote("was", "positive", "raise", "id 1", -1), BadOption),
        (WordVote("was", "positive", "raise", "id 1", None), BadOption),
        (WordVote("cold", "positive", "raise", "id 1", 2), BadOption),
        (WordVote("was", "positive", "raise", None, 2), BadOption),
        (WordVote("\u200b", "positive", "raise"), BadOption),
        (WordVote("x" * 501, "positive", "raise"), BadOption),
        (Relabel("id 1", "no such label"), BadOption),
        (Review("nobody", "done"), NotFound),
        (FlipRating("nothing", 1, 1, 1), NotFound),
    ],
    ids=str,
)
def test_answers_about_what_is_not_there_are_refused(answer, error):
    about = getattr(answer, "example", None)
    with pytest.raises(error):
        check_answer(answer, SOURCE[1] if about == "id 1" else None, ("negative", "positive"))


# -- what next


def fresh(tmp_path, kind="sqlite", n=4):
    data = [Example(str(k), f"soup {k}", label="positive") for k in range(n)]
    project = Project.create(tmp_path / "p", model=tiny.transformer(), data=data, database=address(kind))
    list(project.predict())
    return project


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_gets_something_else_until_enough_have_judged_it(tmp_path, kind):
    with fresh(tmp_path, kind) as project:
        now = [1000.0]
        project.log._clock = lambda: now[0]
        ask = {"revision": project.current.id, "overlap": 1}
        assert [project.log.next_place(name, Filter(), **ask).place for name in "abcd"] == [0, 1, 2, 3]
        told = project.log.next_place("e", Filter(), **ask)
        assert told.place is None
        assert "4 examples are open with colleagues" in told.message
        assert project.log.next_place("a", Filter(), after=0, **ask).place == 0  # what one holds is given back first
        now[0] += 15 * 60 + 1
        assert project.log.next_place("e", Filter(), **ask).place == 0  # who leaves holds nothing for ever
        say(project, "e", Review("0", "done"))
        assert project.log.next_place("e", Filter(), **ask).place == 1
        two = {"revision": project.current.id, "overlap": 2}
        assert project.log.next_place("f", Filter(), **two).place == 0
        for n in range(4):
            say(project, "g", Review(str(n), "done"))
        told = project.log.next_place("g", Filter(), **two)
        assert told.place is None
        assert "you have judged 4" in told.message
        project.store.drop()


def test_the_search_for_the_next_one_begins_behind_the_last_and_comes_round(tmp_path):
    with fresh(tmp_path) as project:
        ask = {"revision": project.current.id, "overlap": 1}
        assert project.log.next_place("a", Filter(), after=2, **ask).place == 3
        say(project, "a", Review("3", "skipped"))
        assert project.log.next_place("a", Filter(), after=3, **ask).place == 0


# -- made once, kept whole


def test_reading_problems_are_kept_with_the_project(tmp_path):
    rows = [
        {"text": "good soup", "label": "positive", "split": "train"},
        {"text": "good soup", "label": "negative", "split": "test"},
        {"text": "  ", "label": "positive", "split": "train"},
        {"text": "a\u200bb film", "label": "positive", "split": "train"},
    ]
    with Project.create(tmp_path / "p", model=tiny.transformer(), data=read(rows)) as project:
        found = project.table.problems()
        assert found.set_aside == (("empty text", 1),)
        assert [row.row for row in found.first_set_aside] == [3]
        assert list(project.table.all_set_aside()) == list(found.first_set_aside)
        assert (found.repeated, found.contradictions, found.shared) == (1, 1, (("train", "test", 1),))
        assert found.contradicting_places == (0, 1)
        assert dict(found.labels) == {"positive": 2, "negative": 1}
        assert found.notes


def test_too_many_and_too_long_examples_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(examples_module, "MAX_EXAMPLES", 2)
    monkeypatch.setattr(examples_module, "MAX_CHARACTERS", 10)
    with pytest.raises(TooMuch, match="more than 2 examples"):
        Project.create(tmp_path / "p", model=tiny.transformer(), data=["a", "b", "c"])
    with pytest.raises(BadData, match="more than 10 characters"):
        Project.create(tmp_path / "p", model=tiny.transformer(), data=["a" * 11])
    assert list(tmp_path.iterdir()) == []


def test_a_project_on_a_server_asks_for_the_server(tmp_path):
    with fresh(tmp_path, "postgresql") as project:
        with pytest.raises(ProjectProblem, match="--database"):
            Records.open(project.folder)
        with fresh(tmp_path / "other") as other, pytest.raises(ProjectProblem, match="Leave --database"):
            Records.open(other.folder, database=address("postgresql"))
        assert "postgresql" not in (project.folder / "project.json").read_text()
        project.store.drop()


def test_a_creation_that_fails_leaves_no_schema_behind(tmp_path, monkeypatch):
    engine = sa.create_engine(address("postgresql"))
    before = set(sa.inspect(engine).get_schema_names())
    monkeypatch.setattr(examples_module, "MAX_EXAMPLES", 1)
    with pytest.raises(TooMuch):
        Project.create(tmp_path / "p", model=tiny.transformer(), data=["a", "b"], database=address("postgresql"))
    assert set(sa.inspect(engine).get_schema_names()) == before
    engine.dispose()


def test_a_damaged_manifest_is_told(tmp_path):
    with fresh(tmp_path) as project:
        folder = project.folder
    manifest = folder / "models/r0/manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(told | {"facts": {}}))
    with pytest.raises(ProjectProblem, match="damaged"):
        Records.open(folder)
    manifest.unlink()
    with pytest.raises(ProjectProblem, match="no whole model"):
        Records.open(folder)
