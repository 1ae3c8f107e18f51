"""Audits, labs and verdicts in tables: found again, compared, warned of; and predictions that wait for the words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bugged import HOSTILE, audit, finding, keep, lab
from databases import store  # noqa: F401 - a fixture
from flipped import rewritten
from neighbouring import doubted, traced
from small_project import make, say
from unhans.errors import BadOption, NotAllowed, NotFound
from unhans.feedback import OTHER_REVISION, verdicts_by_condition
from unhans.records import Records, auditing
from unhans.records.auditing import AuditTable, LabTable, asked_key, same_thing
from unhans.shapes import AnchorQuery, DeskQuery, DoubtQuery, Filter, FindingQuery, FlipQuery, ProjectSettings
from unhans.text import Words
from unhans.types import Attribution, Recipe, Relabel, Review, Revision, Verdict, WordVote, to_json


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A project whose model has said what it thinks; tests leave it as they find it, but for what they add."""
    with make(tmp_path_factory.mktemp("audited") / "p") as project:
        list(project.predict())
        yield project


@pytest.fixture
def records(kept):
    yield kept
    added = ("opinions", "feedback", "audits", "labs", "flips", "flip_searches", "traces", "doubts")
    kept.store.write(lambda connection: [connection.exec_driver_sql(f"DELETE FROM {name}") for name in added])


def views(records: Records, author: str = "ann", *, sees_others: bool = True):
    return records.audit_views(author, sees_others=sees_others)


def another_revision(records: Records, name: str = "r1") -> str:
    """Proposed, and not in use."""
    own = records.current
    made = Revision(f"id of {name}", own.id, Recipe("fixes", "relabel"), own.labels, (), None, "2024-01-01")
    if name not in [version.name for version in records.models.listed()]:
        facts = {"revision": json.loads(to_json(made))}
        records.models.add(name, lambda folder: (folder / "x").write_text(name) and None, facts)
    return made.id


# -- audits, in both databases


def test_an_audit_is_written_again_as_it_grows_and_found_again(store):  # noqa: F811
    table = AuditTable(store)
    assert (table.latest("r"), table.listed(), table.unfinished("asked")) == (None, [], None)
    id_ = table.begin(audit(done=0), asked="asked", by="amy", job="j1")
    found = table.one(id_)
    assert (found.audit, found.facts.complete, found.facts.job) == (audit(done=0), False, "j1")
    part = audit(finding(), finding(severity="low", title="x"), done=2)
    table.keep(id_, part, job="j2")
    now = table.latest("r")
    assert (now.audit, now.facts.id, now.facts.job, now.facts.at) == (part, id_, "j2", found.facts.at)
    assert (now.facts.high, now.facts.medium, now.facts.low) == (1, 0, 1)
    assert table.unfinished("asked") == now
    assert table.unfinished("something else") is None
    whole = replace(part, checks=audit().checks)
    table.keep(id_, whole)
    assert table.unfinished("asked") is None
    assert (table.one(id_).audit, table.one(id_).facts.job) == (whole, "j2")
    other = table.begin(audit(revision="s"), asked="asked", by="bob")
    assert [one.id for one in table.listed()] == [other, id_]
    assert [one.id for one in table.listed("r")] == [id_]
    table.begin(audit(done=1), asked="asked", by="bob")
    table.begin(audit(), asked="asked", by="bob")
    assert table.unfinished("asked") is None  # the newest of them is complete
    with pytest.raises(NotFound, match="no such audit"):
        table.one("0" * 16)


def test_labs_are_found_by_revision_and_what_they_warn_of_is_joined(store):  # noqa: F811
    table = LabTable(store)
    assert (table.latest("r"), table.warnings("r")) == (None, {})
    table.keep(lab(warnings=[("lime", "It wavers.")]), by="amy")
    newer = lab(warnings=[("lrp", "One."), ("lrp", "Two."), ("lime", HOSTILE)])
    table.keep(newer, by="amy")
    table.keep(lab("s"), by="bob")
    assert (table.latest("r").lab, table.latest("r").by) == (newer, "amy")
    assert table.warnings("r") == {"lrp": "One. Two.", "lime": HOSTILE}
    assert table.warnings("s") == {}


def test_only_the_newest_are_kept(store, monkeypatch):  # noqa: F811
    monkeypatch.setattr(auditing, "_KEPT", 2)
    audits, labs = AuditTable(store), LabTable(store)
    ids = [audits.begin(audit(), asked="a", by="amy") for _ in range(4)]
    for n in range(4):
        labs.keep(lab(str(n)), by="amy")
    assert [one.id for one in audits.listed()] == [ids[3], ids[2]]
    assert [labs.latest(str(n)) is None for n in range(4)] == [True, True, False, False]


def test_what_an_audit_depends_on_has_one_key():
    assert asked_key("r", {"a": 1, "b": 2}) == asked_key("r", {"b": 2, "a": 1})
    assert len({asked_key("r", 1), asked_key("r", "1"), asked_key("s", 1), asked_key("r", 1, None)}) == 4


# -- what is shown of them


def test_findings_come_in_pages_with_the_places_of_all_examples_they_name(records):
    examples = records.table.some([0, 1, 2])
    found = [
        finding(title=f"{n}", severity=("high", "low")[n % 2], words=(str(n),), examples=[examples[n % 3].id, "gone"])
        for n in range(5)
    ]
    id_ = keep(records, audit(*found, finding("leaks", HOSTILE, "medium", words=(), examples=[HOSTILE], says=HOSTILE)))
    seen, cursor = [], None
    while True:
        page = views(records).findings(id_, FindingQuery(limit=2, cursor=cursor))
        assert page.total == 6
        seen += page.items
        if (cursor := page.next) is None:
            break
    assert [one.finding.severity for one in seen] == ["high"] * 3 + ["medium"] + ["low"] * 2
    assert [one.places for one in seen if one.finding.title == "1"] == [{examples[1].id: 1}]
    assert [one.finding.title for one in seen if not one.places] == [HOSTILE]
    only = views(records).findings(id_, FindingQuery(severity="low"))
    assert ([one.finding.title for one in only.items], only.total) == (["1", "3"], 2)
    only = views(records).findings(id_, FindingQuery(check="leaks"))
    assert [one.finding.says for one in only.items] == [HOSTILE]
    assert views(records).findings(id_, FindingQuery(check="magic")).total == 0


def test_a_variant_of_an_example_that_the_finding_does_not_name_has_a_place_too(records):
    one = finding(examples=[records.table.at(3).id])
    id_ = keep(records, audit(replace(one, examples=())))
    (view,) = views(records).findings(id_, FindingQuery()).items
    assert view.places == {records.table.at(3).id: 3}


def test_the_latest_audit_of_a_revision_is_told_with_its_counts(records):
    own, other = records.current.id, another_revision(records)
    assert views(records).latest() is None
    keep(records, audit(finding(), revision=own))
    newest = keep(records, audit(finding(severity="medium"), revision=own, done=1), job="a job")
    keep(records, audit(revision=other))
    row = views(records).latest().row
    assert (row.id, row.name, row.worst, row.complete, row.job) == (newest, "r0", "medium", False, "a job")
    assert views(records).latest("r1").row.worst is None
    assert [one.name for one in views(records).audits()] == ["r1", "r0", "r0"]
    assert [one.name for one in views(records).audits("r1")] == ["r1"]
    assert [one.complete for one in records.audits()] == [True, False, True]
    assert records.latest_audit(own).worst == "medium"
    with pytest.raises(NotFound):
        views(records).latest("r99")


def test_two_audits_tell_what_is_gone_new_and_stayed(records):
    same, later = finding(words=("imax",), title="7 texts"), finding(words=("imax",), title="3 texts", severity="low")
    gone, new = finding(words=("film",)), finding("slices", "Long texts fail in 30 %", "low", words=())
    unlooked = finding("explanation_sanity", "lime explains the text", words=())
    before = keep(records, audit(same, gone, unlooked))
    after = keep(records, audit(later, new, done=3))
    found = views(records).changes(before, after)
    assert [one.finding for one in found.gone] == [gone]
    assert [one.finding for one in found.new] == [new]
    assert [(one.before.finding, one.after.finding) for one in found.stayed] == [(same, later)]
    assert [one.finding for one in found.unknown] == [unlooked]  # its check did not run again
    assert (found.before.id, found.after.id) == (before, after)
    back = views(records).changes(after, before)
    assert ([one.finding for one in back.gone], [one.finding for one in back.unknown]) == ([new], [unlooked])
    with pytest.raises(NotFound):
        views(records).changes(before, "0" * 16)


def test_the_same_thing_is_known_by_its_words_or_by_its_title_without_numbers():
    assert same_thing(finding(title="a", revision="x")) == same_thing(finding(title="b", revision="y"))
    assert same_thing(finding(words=("a",))) != same_thing(finding(words=("b",)))
    assert same_thing(finding("slices")) != same_thing(finding("leaks"))
    long, longer = (finding(title=f"Texts fail in {n} %", words=()) for n in (30, 45))
    assert same_thing(long) == same_thing(longer)
    assert same_thing(long) != same_thing(finding(title="Pairs fail in 30 %", words=()))
    few, many = (finding(title=f"{told} of the texts fail", words=()) for told in ("9.5 %", "1,012.5 %"))
    assert same_thing(few) == same_thing(many)
    title = "It is right on {} % of texts of {} words, and on 90 % of the others"
    short, worse, mid = (
        finding(title=title.format(*told), words=()) for told in ((50, "3 to 5"), (9.5, "3 to 5"), (50, "6 to 9"))
    )
    assert same_thing(short) == same_thing(worse) != same_thing(mid)


def test_labels_and_groups_that_are_numbers_are_not_the_same_thing():
    title = "It is right on {} % of texts labelled {}, and on 90.5 % of the others"
    zero, worse, one = (finding(title=title.format(*told), words=()) for told in ((50, 0), (9.5, 0), (50, 1)))
    assert same_thing(zero) == same_thing(worse) != same_thing(one)
    few, many = (finding(title=f"{n} texts of the examples stand under two labels", words=()) for n in ("7", "1,012"))
    assert same_thing(few) == same_thing(many)
    groups = (finding(title=f"60 % of texts of the group {n} are called 1", words=()) for n in (1, 12, 2.5))
    assert len(set(map(same_thing, groups))) == 3


def test_gaps_of_one_word_under_several_labels_are_several_things():
    title = "{} % of texts with the word 'women' are called {} where the label is {}, 3 % of others"
    told = [("30", "0", "1"), ("30", "1", "2"), ("40", "0", "2"), ("45", "0", "1")]
    keys = [same_thing(finding("group_gaps", title.format(*one), words=("women",))) for one in told]
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3
    plain, moved = (f"30 % of {what}" for what in ("plain sentences keep their label", "the texts move the wrong way"))
    assert same_thing(finding("direction", plain, words=("not",))) != same_thing(
        finding("direction", moved, words=("not",))
    )


def test_the_places_of_the_lab_s_examples_are_told(records):
    assert views(records).lab() is None
    made = lab(records.current.id, shows=[records.table.at(2).id, "planted"])
    records.lab_table.keep(made, by="amy")
    view = views(records).lab()
    assert (view.lab, view.name, view.by, view.places) == (made, "r0", "amy", {records.table.at(2).id: 2})
    assert (records.latest_lab(), views(records).lab(another_revision(records))) == (made, None)


# -- warnings


def test_a_method_that_does_not_depend_on_the_model_is_warned_of_wherever_it_is_offered(records):
    def warned(methods) -> dict[str, str]:
        return {one.name: one.warning for one in methods if one.warning}

    assert warned(records.methods()) == {}
    records.lab_table.keep(lab(another_revision(records), [("lime", "Of another revision.")]), by="amy")
    assert warned(records.methods()) == {}
    records.lab_table.keep(lab(records.current.id, [("saliency", "Does not depend on the model.")]), by="amy")
    sane = finding("explanation_sanity", "lime explains the text and not the model", words=())
    keep(records, audit(sane, revision=records.current.id, method="lime"))
    told = {"saliency": "Does not depend on the model.", "lime": "lime explains the text and not the model."}
    assert warned(records.methods()) == told
    assert warned(views(records).offer().methods) == told
    assert warned(views(records).lab_offer().methods) == told
    records.lab_table.keep(lab(records.current.id), by="amy")
    keep(records, audit(revision=records.current.id, method="lime"))
    assert warned(records.methods()) == told  # the weights are the same, and these did not look into it
    records.lab_table.keep(lab(records.current.id, [("saliency", "Newer.")]), by="amy")
    assert warned(records.methods()) == told | {"saliency": "Newer."}


def test_a_warning_of_a_method_with_options_reaches_the_method(records):
    told = [("lime (num_samples=200)", "does not depend on the model"), ("lrp", "One.")]
    records.lab_table.keep(lab(records.current.id, told), by="amy")
    found = {one.name: one.warning for one in records.methods() if one.warning}
    assert found == {"lime": "does not depend on the model (num_samples=200)", "lrp": "One."}


def test_a_project_of_an_earlier_version_says_what_to_do(records):
    known = records.setting("audits")
    try:
        records.keep_setting("audits", None)
        assert "predicted once" in views(records).offer().cannot
        assert "predicted once" in views(records).lab_offer().cannot
    finally:
        records.keep_setting("audits", known)
    offer, planted = views(records).offer(), views(records).lab_offer()
    assert (offer.cannot, offer.examples, offer.training, planted.cannot) == ("", 12, 24, "")


# -- verdicts


def verdict(records: Records, deploy: int, author: str, **more) -> None:
    says = Verdict(**({"model": records.current.id, "deploy": deploy, "reason": "labels_wrong"} | more))
    say(records, says, author, revision=says.model)


def test_verdicts_are_summed_up_by_condition(records):
    own, other = records.current.id, another_revision(records)
    for author, deploy, reason in (("a", 1, "labels_wrong"), ("b", 2, "labels_wrong"), ("c", 5, "expected_focus")):
        verdict(records, deploy, author, method="lime", reason=reason)
        verdict(records, deploy, author, method="lime", reason=reason, model=other)
    verdict(records, 3, "a")
    verdict(records, 4, "a")  # once more: the last one holds
    verdict(records, 4, "a", method="lime", explanation_first=True)
    found = views(records, "a").verdicts()
    assert [(one.name, one.method, one.explanation_first) for one in found.conditions] == [
        ("r0", None, False),
        ("r0", "lime", False),
        ("r0", "lime", True),
        ("r1", "lime", False),
    ]
    one = found.conditions[1]
    assert (one.counts, one.people, one.median, one.low, one.high) == ((1, 1, 0, 0, 1), 3, 2.0, 1.5, 3.5)
    shares = {each.reason: (each.people, round(each.share, 3)) for each in one.reasons}
    assert shares["labels_wrong"] == (2, 0.667)
    assert shares["other"] == (0, 0.0)
    assert len(shares) == 5
    assert found.conditions[0].counts == (0, 0, 0, 1, 0)
    assert (found.people, found.own) == (3, False)
    assert found.agreement.questions == 2
    assert found.agreement.alpha is not None
    assert [opinion.stale for opinion in found.said] == [None] * 8  # also of a revision that is not in use
    assert {one.revision for one in views(records).verdicts("r1").conditions} == {other}
    mine = views(records, "b", sees_others=False).verdicts()
    assert (mine.own, mine.people, mine.agreement) == (True, 1, None)
    assert [one.counts for one in mine.conditions] == [(0, 1, 0, 0, 0)] * 2
    assert {opinion.feedback.author for opinion in mine.said} == {"b"}
    assert views(records, "nobody", sees_others=False).verdicts().conditions == ()
    assert own != other


def test_verdicts_teach_no_fix_are_nobody_s_to_settle_and_count_for_agreement(records):
    verdict(records, 1, "ann")
    verdict(records, 5, "bob")
    assert records.usable_feedback() == []
    team = records.team()
    assert team.disagreements == ()
    (agreed,) = [one for one in team.agreement if one.kind == "verdict_deploy"]
    assert (agreed.questions, agreed.people) == (1, 2)
    assert records.feedback_use().people == ()
    assert verdicts_by_condition([]) == []


def test_a_verdict_names_a_revision_of_the_project_and_a_known_method(records):
    own, other = records.current.id, another_revision(records)
    for good in (Verdict(own, 3, "labels_right"), Verdict(own, 3, "labels_right", "lime")):
        assert records.check(good, own) is None
    assert records.check(Verdict(other, 3, "labels_right"), other) is None  # proposed, and not in use
    with pytest.raises(NotFound, match="no such revision"):
        records.check(Verdict("nobody's", 3, "labels_right"), "nobody's")
    with pytest.raises(BadOption, match="another revision"):
        records.check(Verdict(own, 3, "labels_right"), other)
    with pytest.raises(BadOption, match="no such explanation method"):
        records.check(Verdict(own, 3, "labels_right", "magic"), own)
    entry = say(records, Verdict(other, 3, "labels_right"), revision=other)
    assert records.opinion(entry).stale is None
    vote = say(records, WordVote("great", "positive", "lower"), revision=other)
    assert records.opinion(vote).stale == OTHER_REVISION


# -- explanation first


def explained(records: Records, place: int) -> str:
    """The id of a set in which the example is explained, for what the model says."""
    example = records.table.at(place)
    records.explain("leave_one_out", examples=[example])
    return records.explained.sets(records.current.id)[0].id


def test_what_the_model_says_of_an_example_is_told_once_its_words_were_judged(records):
    example, chosen = records.table.at(4), explained(records, 4)
    say(records, WordVote(Words(example).strings[0], "positive", "raise", example.id, 0), "bob")
    open_ = records.example_view(4, author="ann", sees_others=True, explained=chosen)

    def seen(words_first: bool = True):
        return records.example_view(4, author="ann", sees_others=True, words_first=words_first, explained=chosen)

    def row():
        page = records.table.page(Filter(), revision=records.current.id, author="ann", words_first=True)
        return next(one for one in page.items if one.place == 4)

    hidden = seen()
    assert (hidden.prediction, hidden.others, hidden.hidden) == (None, (), True)
    assert isinstance(hidden.attribution, Attribution)
    assert (hidden.attribution.label, hidden.attribution.terms.signed) == ("", False)
    assert hidden.attribution.scores == tuple(map(abs, open_.attribution.scores))
    assert any(score < 0 for score in open_.attribution.scores)
    assert open_.prediction.label not in to_json(hidden.attribution)
    assert (row().predicted, row().confidence, row().correct) == (None, None, None)
    say(records, Review(example.id, "skipped"))
    say(records, WordVote(Words(example).strings[0], "positive", "raise"))  # everywhere, and not here
    assert seen().hidden
    review = say(records, Review(example.id, "done"))
    shown = seen()
    assert (shown.prediction, shown.attribution, len(shown.others)) == (open_.prediction, open_.attribution, 1)
    assert (shown.hidden, row().predicted) == (False, open_.prediction.label)
    records.log.retract("ann", key="back", retracts=review.id, clear=True)
    assert seen().hidden
    assert not seen(words_first=False).hidden


@pytest.mark.parametrize("judgement", ["vote", "label", "flag"])
def test_each_judgement_of_an_example_shows_it(records, judgement):
    example = records.table.at(5)
    says = {
        "vote": WordVote(Words(example).strings[1], "positive", "lower", example.id, 1),
        "label": Relabel(example.id, None),
        "flag": Review(example.id, "flagged"),
    }[judgement]
    say(records, says, text_hash=example.text_hash)
    assert records.table.judged("ann", [example.id, "another"]) == {example.id}
    assert records.table.judged("bob", [example.id]) == set()


def test_flips_of_an_example_wait_for_its_words(records):
    flip, other = rewritten(records, 4), rewritten(records, 5)
    mine = records.flip_views("ann", sees_others=True, words_first=True)
    query = DeskQuery(explained=explained(records, 4))
    example = records.table.at(4)
    say(records, Review(records.table.at(5).id, "done"))
    assert [one.id for one in mine.page(FlipQuery()).items] == [other.id]
    assert mine.page(FlipQuery()).total == 1
    assert [one.id for one in mine.chart(None).dots] == [other.id]
    assert mine.chart(None).total == 1
    with pytest.raises(NotAllowed, match="words come first"):
        mine.one(flip.id)
    desk = mine.desk(4, query, Filter())
    assert (desk.prediction, desk.flips, desk.hidden, desk.rationale.label) == (None, (), True, "")
    assert desk.rationale.chosen
    say(records, Review(example.id, "done"))
    assert {one.id for one in mine.page(FlipQuery()).items} == {flip.id, other.id}
    assert mine.one(flip.id).id == flip.id
    desk = mine.desk(4, query, Filter())
    assert (desk.hidden, desk.rationale.label) == (False, desk.prediction.label)
    assert records.flip_views("bob", sees_others=True).page(FlipQuery()).total == 2


def test_predictions_of_neighbours_and_doubts_wait_as_well(records):
    traced(records, 4, (0, 1))
    doubted(records, 0, 1)
    mine = records.trace_views("ann", sees_others=True, words_first=True)
    view = mine.anchor(4)
    assert (view.hidden, view.prediction, view.label) == (True, None, records.table.at(4).label)
    assert [one.prediction for one in view.helpful] == [None, None]
    assert [one.predicted for one in mine.anchors(AnchorQuery()).items] == [None]
    (first, _) = mine.doubts(DoubtQuery()).items
    assert (first.hidden, first.prediction, first.doubt.suggested, first.doubt.signs) == (True, None, "", ())
    say(records, Relabel(records.table.at(0).id, "positive"))
    (first, second) = mine.doubts(DoubtQuery()).items
    assert (first.hidden, second.hidden) == (False, True)
    assert first.doubt.suggested
    assert [one.prediction is not None for one in mine.anchor(4).helpful] == [True, False]
    say(records, Review(records.table.at(4).id, "done"))
    assert mine.anchor(4).prediction is not None
    assert mine.anchors(AnchorQuery()).items[0].predicted is not None


def test_predicted_labels_that_were_traced_are_not_named(records):
    found = traced(records, 10, (0,))
    said = replace(found, label=next(one for one in records.labels if one != found.label))
    records.trace_table.keep("amy", "of predictions", [(10, records.table.at(10), said)], leads=True)
    assert records.trace_views("ann", sees_others=True).anchor(10).label == said.label
    assert records.trace_views("ann", sees_others=True, words_first=True).anchor(10).label == ""


def test_the_setting_is_kept(records):
    records.change_settings(ProjectSettings(hide_prediction=True))
    assert records.settings.hide_prediction
    records.change_settings(ProjectSettings())
