"""A report in a terminal, as Markdown, as JUnit XML and as a page: complete, escaped, worst news first."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from unhans.present import heat_map, tint
from unhans.reporting import (
    called,
    headline,
    report_junit,
    report_markdown,
    report_page,
    report_text,
    sentence,
    short_names,
)
from unhans.reporting._curve import _ticks
from unhans.types import (
    Attribution,
    Change,
    Example,
    Expectation,
    Measure,
    Prediction,
    Recipe,
    Report,
    Rival,
    Span,
    WordEffect,
    to_html,
)

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=x>',
    "\x1b]0;x\x07",
    "a\u202eb",
    "| *b* [x](http://y) @all",
]
METHOD = Recipe("attributions", "leave_one_out")


def fix(strength, name="regularise"):
    return Recipe("fixes", name, (("epochs", 3), ("strength", strength)))


def attribution(example, scores):
    text = example.text.split()
    return Attribution(
        example.id,
        str(example.label),
        tuple(text),
        tuple(Span(n, n + 1) for n in range(len(text))),
        scores,
        METHOD,
        "r",
    )


def change(text="fine film", *, id_="e1", given="positive", before="negative", after="positive", data="test"):
    example = Example(id_, text, label=given)
    n = len(text.split())
    said = [Prediction(id_, (label, "other"), (0.9, 0.1), "r") for label in (before, after)]
    why = [attribution(example, tuple(top / (k + 1) for k in range(n))) for top in (4.0, -1.0)]
    return Change(example, data, *said, *why)


def made(text="word"):
    """A report with everything in it, and this text wherever a text can stand."""
    data, stress = f"test {text}", f"test {text} · without voted words"
    measures = (
        Measure("accuracy", data, 0.90, 0.85, -0.08, -0.02, n=400, p=0.004, runs=(0.85, 0.87)),
        Measure("macro_f1", data, 0.90, 0.85, -0.08, 0.01, n=400),
        Measure("calibration_error", data, 0.05, 0.04, -0.03, 0.01, better="lower", n=400),
        Measure("accuracy", data, 0.90, 0.70, -0.3, -0.1, slice=f"label {text}", n=40, p=0.0001),
        Measure("gap", data, 0.10, 0.05, -0.08, -0.02, better="lower", slice="groups", n=400),
        Measure("accuracy", stress, 0.50, 0.90, 0.3, 0.5, n=200, p=0.0),
    )
    rivals = (
        Rival(fix(0.1), (replace(measures[0], after=0.89), replace(measures[5], after=0.6)), "no worse"),
        Rival(fix(10.0), (replace(measures[0], after=0.80), replace(measures[5], after=0.95)), ""),
        Rival(Recipe("fixes", f"cheap {text}"), (measures[0], measures[5]), f"The fix beats {text}."),
    )
    words = (
        WordEffect(text, text, "lower", None, 0.4, 0.1, 2.0, 0.5, 100),
        WordEffect(text, text, "raise", text, 0.2, 0.1, 1.0, 0.5, 1),
    )
    return Report(
        before="r0",
        after="r1",
        measures=measures,
        expectations=(
            Expectation(f"accuracy('{text}') >= 0.9", False, 0.85, f"accuracy is 0.85 on {text}."),
            Expectation("broken <= 5", True, 1.0, "broken is 1."),
        ),
        fixed=(change(f"{text} fine", given=text, after=text),),
        broken=(replace(change(f"{text} dull", before="positive", after=text), why_before=None, why_after=None),),
        n_fixed=1,
        n_broken=1,
        words=words,
        moved=0.83,
        rivals=rivals,
        notes=(sentence(measures[0]), f"A caveat about {text}."),
        recipe=fix(1.0),
        method=METHOD,
        at="2026-01-01T00:00:00Z",
    )


@cache
def plain():
    return made()


class Tags(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and that they are closed in order."""

    EMPTY = ("meta", "br", "line", "circle", "rect", "polyline")

    def __init__(self, page):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


# In words


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        (
            Measure("accuracy", "restaurants", 0.9, 0.869, -0.05, -0.012),
            "Accuracy on restaurants fell by 3.1 points [-5.0, -1.2].",
        ),
        (
            Measure("f1", "test", 0.5, 0.6, 0.05, 0.15, slice="label sad"),
            "F1 on test, label sad, rose by 10.0 points [+5.0, +15.0].",
        ),
        (
            Measure("gap", "test", 0.1, 0.2, 0.0, 0.2, "lower", "groups"),
            "The gap in accuracy between groups on test rose by 10.0 points [+0.0, +20.0].",
        ),
        (Measure("accuracy", "few", 0.5, 0.6), "Accuracy on few rose by 10.0 points."),
    ],
)
def test_a_change_is_a_sentence(measure, told):
    assert sentence(measure) == told
    assert called(measure).lower() in told.lower()


def test_the_headline_says_what_got_worse_first():
    assert headline(plain()) == "2 of 6 measures got worse, 2 got better, beyond their 95 % intervals."
    assert headline(replace(plain(), before=None)).startswith("A report of one model")
    same = tuple(replace(m, low=-0.5, high=0.5) for m in plain().measures)
    assert headline(replace(plain(), measures=same)).startswith("Nothing that was measured changed")


def test_fixes_are_named_by_what_sets_them_apart():
    recipes = [fix(1.0), fix(2.0), fix(1.0, "other"), None]
    assert short_names(recipes) == ["regularise (strength=1.0)", "regularise (strength=2.0)", "other", "this model"]
    seeds = [Recipe("fixes", "a", (), 0), Recipe("fixes", "a", (), 1)]
    assert short_names(seeds) == ["a (seed=0)", "a (seed=1)"]


# Terminal, Markdown, JUnit


def test_a_terminal_gets_verdict_notes_expectations_and_tables():
    told = report_text(plain()).splitlines()
    assert told[0] == headline(plain())
    assert told[1].startswith("- Accuracy on test word fell by 5.0 points")
    assert "1 of 2 expectations failed." in told
    assert any(line.split()[:1] == ["FAIL"] and "accuracy is 0.85" in line for line in told)
    (row,) = [line for line in told if line.startswith("  accuracy ") and "▼ worse" in line and "[-8.0" in line]
    assert row.split()[:4] == ["accuracy", "90.0", "85.0", "-5.0"]
    assert "85.0 to 87.0" in row
    assert any("gap between groups" in line and "▲ better" in line for line in told)
    assert any(line.startswith("  test word · without voted words") for line in told)
    assert any("✗ not heard" in line for line in told)
    assert any("sets made from votes, mean" in line for line in told)


def test_a_terminal_gets_no_control_characters():
    told = report_text(made("\x1b[31m\u202e\n"))
    assert set(re.findall(r"[\x00-\x1f\u202e]", told)) == {"\n"}


def test_markdown_tables_keep_their_shape():
    told = report_markdown(plain(), "Films")
    assert told.startswith("# Films\n\n**2 of 6 measures got worse")
    for table in re.findall(r"(?:^\|.*\n?)+", told, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "✗ FAILS" in told
    assert "## 1 became wrong" in told
    assert told.index("became wrong") < told.index("became right")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_from_data_becomes_markdown(payload):
    told = report_markdown(made(payload), payload)
    assert "<script" not in told
    assert "<img" not in told
    assert not re.search(r"(?<!\\)\]\(", told)
    assert "@all" not in told
    assert "\x1b" not in told


def test_junit_has_a_case_for_each_expectation():
    root = ElementTree.fromstring(report_junit(plain()))
    assert root.tag == "testsuites"
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == ["accuracy('word') >= 0.9", "broken <= 5"]
    assert [failure.get("message") for failure in root.iter("failure")] == ["accuracy is 0.85 on word."]
    assert cases[1].find("failure") is None
    values = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert values["accuracy(test word)"] == "0.85"


@pytest.mark.parametrize("payload", [*PAYLOADS, "\x00\x0b\ufffe\ud800 & ]]>"])
def test_junit_is_well_formed_whatever_the_text(payload):
    told = report_junit(made(payload))
    root = ElementTree.fromstring(told.encode())
    assert len(list(root.iter("testcase"))) == 2
    assert next(root.iter("failure")).text.startswith("accuracy is 0.85 on ")


def test_junit_without_expectations_is_an_empty_suite():
    root = ElementTree.fromstring(report_junit(replace(plain(), expectations=())))
    assert (root.get("tests"), root.get("failures")) == ("0", "0")


# The page


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_from_data_becomes_markup(payload):
    for page in (report_page(made(payload), payload), to_html(made(payload))):
        tags = Tags(page)
        names = {tag for tag, _ in tags.found}
        assert not names & {"script", "img", "iframe", "link", "object", "a", "b onerror"}
        assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
        assert "\x1b" not in page
        assert "\u202e" not in page


def test_the_page_needs_nothing_else_and_can_run_nothing():
    page = report_page(plain(), "Films")
    tags = Tags(page)
    assert not any("src" in attributes or "href" in attributes for _, attributes in tags.found)
    assert "url(" not in page
    policy = next(a["content"] for tag, a in tags.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "prefers-color-scheme:dark" in page


def test_the_page_says_worse_and_better_in_words_and_worse_first():
    words = " ".join(Tags(report_page(plain())).words)
    assert words.index("▼ worse") < words.index("▲ better")
    assert words.index("became wrong") < words.index("became right")
    for told in ("✗ fails", "✓ holds", "✗ not heard", "✓ heard", "= same", "rank correlation 0.83", "2026-01-01"):
        assert told in words


def test_parts_that_got_worse_are_open_and_others_behind_a_click():
    assert "<details open><summary>By label and group: 2 measures, 1 worse" in report_page(plain())
    calm = replace(plain(), measures=tuple(replace(m, low=-0.5, high=0.5) for m in plain().measures))
    assert "<details><summary>By label and group: 2 measures</summary>" in report_page(calm)


def test_the_heat_maps_of_a_change_share_one_scale():
    one = change("fine film")
    page = report_page(replace(plain(), fixed=(one,), broken=(), n_broken=0))
    assert heat_map(one.why_before, 4.0) in page
    assert heat_map(one.why_after, 4.0) in page
    (_, full), (_, faint) = tint(one.why_before, 0, 4.0), tint(one.why_after, 0, 4.0)
    assert full == pytest.approx(0.6)
    assert faint == pytest.approx(0.45 / 4)
    assert tint(one.why_after, 0)[1] == pytest.approx(0.45)


def test_many_changes_are_shown_a_few_at_a_time():
    many = tuple(change(id_=f"e{n}") for n in range(50))
    page = report_page(replace(plain(), fixed=many, n_fixed=120, broken=(), n_broken=0))
    assert "<summary>45 of 115 more</summary>" in page
    assert page.count("<article>") == 50
    assert "None." in page


def test_strengths_of_the_same_fix_are_a_curve():
    page = report_page(plain())
    tags = Tags(page)
    (drawing,) = [attributes for tag, attributes in tags.found if attributes.get("role") == "img"]
    assert "test word: 89.0 at 0.1, 85.0 at 1, 80.0 at 10." in drawing["aria-label"]
    assert "sets made from votes, mean: 60.0 at 0.1, 90.0 at 1, 95.0 at 10." in drawing["aria-label"]
    assert "<svg" not in report_page(replace(plain(), rivals=plain().rivals[2:]))
    assert "<svg" not in report_page(replace(plain(), recipe=None))


@pytest.mark.parametrize(
    ("points", "ticks"),
    [
        ([54.3, 90.8], [50, 60, 70, 80, 90, 100]),
        ([80.0, 80.0], [80, 85]),
        ([81.0, 88.0], [80, 85, 90]),
        ([0.0, 100.0], [0, 20, 40, 60, 80, 100]),
    ],
)
def test_ticks_are_round_and_hold_all_points(points, ticks):
    assert _ticks(points) == ticks


def test_a_report_of_one_model_has_no_columns_for_change():
    alone = Report(None, "r1", (Measure("accuracy", "test", None, 0.9, n=50),))
    page = Tags(report_page(alone))
    assert "change [95 %]" not in page.words
    assert "before" not in page.words
    assert "90.0" in page.words
    assert "measure   after  n\n" in report_text(alone)
    assert report_markdown(alone)


def test_a_report_is_drawn_in_notebooks():
    drawn = plain()._repr_html_()
    assert drawn.startswith("<div><p><b>2 of 6 measures got worse")
    assert "▼ worse" in drawn
