from __future__ import annotations

import pytest

import unhans
from unhans.present import heat_line, printable, scale
from unhans.types import (
    Attribution,
    Comparison,
    Example,
    Grade,
    Prediction,
    RankedMethod,
    RankedWord,
    Recipe,
    Span,
    WordRanking,
)

PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    '"><svg onload=x>',
    "</script><script>x",
    "\x1b]0;x\x07",
    "a\u202eb",
    "&amp;",
]
RECIPE = Recipe("attributions", "x")


def drawn(payload):
    """Every noun that is drawn, with the payload in each of its texts."""
    recipe = Recipe("attributions", payload, (("by", payload),))
    grade = Grade(payload, recipe, 1.0, 0.5, 1.5, 0.2, 0.01, "higher", payload, 3, 0, payload, recipe, "r")
    return [
        Example("<b>" + payload, payload, payload, label=payload, group=payload, split=payload),
        Prediction(payload, (payload, "other"), (0.4, 0.6), "r"),
        Attribution(payload, payload, (payload, "b"), (Span(0, 1), Span(2, 3)), (1.0, -0.5), RECIPE, "r", unread=(1,)),
        WordRanking(payload, (RankedWord(payload, 1.0, 0.1, 3, ("a",)),), RECIPE, "r"),
        grade,
        Comparison((grade,), (RankedMethod(recipe, 1.0, 0, 1, False),), payload, (payload,), 3, "r"),
    ]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_from_data_becomes_markup(payload):
    assert unhans.to_json is not None  # the package registers the drawings when first used
    for noun in drawn(payload):
        html = noun._repr_html_()
        assert "<img" not in html
        assert "<svg" not in html
        assert "<script" not in html
        assert "\x1b" not in html
        assert html != f"<pre>{noun!r}</pre>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("two\nlines", "two\\x0alines"),
        ("👨‍👩‍👧 é 日", "👨‍👩‍👧 é 日"),
    ],
)
def test_control_characters_are_spelled_out(text, shown):
    assert printable(text) == shown


def test_the_sign_is_told_without_colour():
    one = Attribution("x", "pos", ("good", "bad", "the"), (Span(0, 1),) * 3, (2.0, -1.0, 0.0), RECIPE, "r")
    line = heat_line(one)
    assert line.plain == "good+2.0 bad-1.0 the "
    styles = [str(span.style) for span in line.spans]
    assert any(style.startswith("bold") for style in styles)
    assert any(style.startswith("underline") for style in styles)
    html = one._repr_html_()
    assert "solid" in html
    assert "dashed" in html


def test_all_zero_scores_are_drawn_without_dividing_by_zero():
    assert scale((0.0, 0.0)) == 1.0
    one = Attribution("x", "pos", ("a",), (Span(0, 1),), (0.0,), RECIPE, "r")
    assert heat_line(one).plain == "a "
    assert "nan" not in one._repr_html_()


def test_scores_too_small_to_mean_anything_are_not_painted():
    one = Attribution("x", "pos", ("a", "b"), (Span(0, 1),) * 2, (1e-7, -1e-8), RECIPE, "r")
    assert heat_line(one).plain == "a b "
    assert "all words weigh about the same" in one._repr_html_()
