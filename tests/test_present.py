from __future__ import annotations

import re

import pytest

import unhans
from unhans.present import heat_block, heat_line, html_page, printable, scale
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
    Suspect,
    Suspects,
    Terms,
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
        Suspects((Suspect(payload, payload, 1.0, 0.1, 0.1, 0.1, 0.001, 3, (payload,)),), RECIPE, "r"),
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
    assert "2px solid" in html
    assert "2px dashed" in html


def test_all_zero_scores_are_drawn_without_dividing_by_zero():
    assert scale((0.0, 0.0)) == 1.0
    one = Attribution("x", "pos", ("a",), (Span(0, 1),), (0.0,), RECIPE, "r")
    assert heat_line(one).plain == "a "
    assert "nan" not in one._repr_html_()


def test_scores_too_small_to_mean_anything_are_not_painted():
    one = Attribution("x", "pos", ("a", "b"), (Span(0, 1),) * 2, (1e-7, -1e-8), RECIPE, "r")
    assert heat_line(one).plain == "a b "
    assert "all words weigh about the same" in one._repr_html_()


# -- signs, captions and pages


def attributed(words, scores, **facts):
    """An attribution of words with one blank between them."""
    spans, at = [], 0
    for word in words:
        spans.append(Span(at, at + len(word)))
        at += len(word) + 1
    return Attribution(
        facts.pop("example", "x"),
        facts.pop("label", "pos"),
        tuple(words),
        facts.pop("spans", tuple(spans)),
        tuple(scores),
        RECIPE,
        "r",
        **facts,
    )


STRENGTH = Terms("none", "nothing", "mean", signed=False, warning="Weights are no reasons.")


def test_scores_without_a_sign_are_shown_without_one():
    one = attributed(["good", "bad"], [2.0, 1.0], terms=STRENGTH)
    assert heat_line(one).plain == "good·2.0 bad·1.0 "
    assert not any("underline" in str(span.style) for span in heat_line(one).spans)
    html = one._repr_html_()
    assert "+" not in html
    assert "solid" not in html
    assert "dashed" not in html
    assert "strength only" in html


def test_target_method_terms_stability_and_warning_stand_below_the_words():
    one = attributed(["good"], [2.0], terms=STRENGTH, errors=(0.03,), stability=0.9, asked=1200)
    for shown in (heat_block(one).plain, one._repr_html_()):
        for part in ("for pos", "x()", "against nothing", "stability 0.90 over 1,200 texts", "Caution: Weights are no"):
            assert part in shown
    assert 'title="2 ± 0.03"' in one._repr_html_()
    assert 'title="+0.41 ± 0.03"' in attributed(["a"], [0.41], errors=(0.03,))._repr_html_()


def test_the_texts_of_a_pair_are_drawn_one_below_the_other():
    spans = (Span(0, 4), Span(0, 4, "pair"))
    one = attributed(["soup", "film"], [1.0, -1.0], spans=spans)
    assert heat_block(one).plain.splitlines()[:2] == ["first text: soup+1.0 ", "second text: film-1.0 "]
    html = one._repr_html_()
    assert html.index("first text") < html.index("soup") < html.index("second text") < html.index("film")
    assert "first text" not in attributed(["a"], [1.0])._repr_html_()


def test_words_that_were_not_read_are_grey_and_counted():
    one = attributed(["a", "b", "c"], [1.0, 0.0, 0.0], unread=(1, 2))
    assert "2 words were beyond the model's length limit" in heat_block(one).plain
    html = one._repr_html_()
    assert "2 words were beyond" in html
    assert html.count('title="not read"') == 2
    assert "1 word was" in heat_block(attributed(["a", "b"], [1.0, 0.0], unread=(1,))).plain


def test_words_that_touch_in_the_text_touch_in_the_drawing():
    one = attributed(["film", ".", "Good"], [1.0, 0.0, 1.0], spans=(Span(0, 4), Span(4, 5), Span(6, 10)))
    html = one._repr_html_()
    assert "film</bdi><bdi" in html
    assert ".</bdi> <bdi" in html


def test_a_text_runs_in_the_direction_of_its_letters():
    assert 'dir="rtl"' in attributed(["«", "זה", "good"], [1.0, 1.0, 1.0])._repr_html_()
    assert 'dir="ltr"' in attributed(["1", "good", "זה"], [1.0, 1.0, 1.0])._repr_html_()


EXAMPLES = [Example("a", "good film", label="pos"), Example("b", "good film", label="neg")]
PREDICTIONS = [Prediction(id_, ("neg", "pos"), (0.2, 0.8), "r") for id_ in "ab"]


def page(**facts):
    shown = [
        attributed(["good", "film"], [1.0, -1.0], example="a"),
        attributed(["good", "film"], [1.0, 0.5], example="b", terms=STRENGTH, unread=(1,)),
    ]
    return html_page(shown, examples=EXAMPLES, predictions=PREDICTIONS, **facts)


def test_a_page_is_one_file_that_loads_nothing_and_tells_labels_and_predictions():
    html = page(title="<Mine>")
    assert "&lt;Mine&gt;" in html
    assert not re.search(r"<script|<link|<img|src=|@import|url\(", html)
    assert html.count("predicted <b><bdi>pos</bdi></b> (80.0%)") == 2
    assert html.index("✓ right") < html.index("✗ wrong")
    assert html.count('class="scale"') == 2  # with and without signs
    assert html.count("dashed line: against it") == 1
    assert "nothing to show" in html_page([])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_from_data_becomes_markup_on_a_page(payload):
    example = Example(payload, payload, label=payload)
    one = attributed([payload], [1.0], example=payload, label=payload, terms=Terms(warning=payload))
    html = html_page(
        [one], examples=[example], predictions=[Prediction(payload, (payload,), (1.0,), "r")], title=payload
    )
    assert not re.search(r"<img|<svg|<script|\x1b|\u202e", html)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(top, opacity, below):
    return tuple(opacity * t + (1 - opacity) * b for t, b in zip(top, below, strict=True))


def test_black_on_white_has_the_contrast_that_the_standard_says():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stays_readable_on_the_strongest_colours_in_both_themes(theme):
    html = page()
    grounds, inks = re.findall(r"--ground:#(\w{6})", html), re.findall(r"--ink:#(\w{6})", html)
    assert len(grounds) == len(inks) == 2
    ground, ink = (tuple(bytes.fromhex(colours[theme])) for colours in (grounds, inks))
    painted = {tuple(map(float, found)) for found in re.findall(r"background:rgba\((\d+),(\d+),(\d+),([\d.]+)\)", html)}
    assert len({colour[:3] for colour in painted}) == 3  # blue, orange, purple
    for *colour, opacity in painted:
        assert contrast(ink, over(colour, opacity, ground)) >= 4.5
    faded = {float(found) for found in re.findall(r"[;\"]opacity:([\d.]+)", html)}
    assert len(faded) == 2  # captions, and words that were not read
    for opacity in faded:
        assert contrast(over(ink, opacity, ground), ground) >= 4.5
