"""Each member against its definition, worked out slowly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from unhans.errors import BadOption
from unhans.rationales import drawn, rationale_of
from unhans.text import Words
from unhans.types import Attribution, Example, Recipe, Terms

TEXTS = (
    Example("plain", "one two three four five six seven"),
    Example("sentences", "Cold soup. The waiter laughed! Never again"),
    Example("pair", "She liked it.", "He did not. At all"),
    Example("one", "wonderful"),
)


def explained(example, scores, unread=(), unit="word"):
    words = Words(example, units=unit)
    given = tuple(float(score) for score in scores)
    recipe = Recipe("attributions", "known")
    terms = Terms(unit=unit)
    return Attribution(example.id, "positive", words.strings, words.spans, given, recipe, "r", tuple(unread), terms)


def lines(seed, n):
    """Scores with and without ties, of both signs."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) if seed % 2 else rng.integers(-3, 4, size=n) / 2


def cases():
    for example, seed in itertools.product(TEXTS, range(12)):
        n = len(Words(example))
        unread = range(n - 2, n) if seed % 3 == 0 and n > 3 else ()
        scores = [0.0 if k in unread else score for k, score in enumerate(lines(seed, n))]
        yield example, scores, set(unread)


def passages(example, by, unread):
    groups = [range(len(Words(example)))] if by == "text" else Words(example, units="sentence").groups
    kept = [[n for n in group if n not in unread] for group in groups]
    return [group for group in kept if group]


def strengths(scores, counts):
    return [abs(score) for score in scores] if counts == "absolute" else list(scores)


@pytest.mark.parametrize("by", ["text", "sentence"])
@pytest.mark.parametrize("counts", ["for", "absolute"])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 1.0])
def test_top_share_is_the_strongest_part_of_each_passage(by, counts, share):
    for example, scores, unread in cases():
        strength, wanted = strengths(scores, counts), []
        for passage in passages(example, by, unread):
            room = max(1, math.ceil(share * len(passage) - 1e-9))
            for n in passage:
                stronger = sum(strength[m] > strength[n] or (strength[m] == strength[n] and m < n) for m in passage)
                wanted += [n] if stronger < room and strength[n] > 0 else []
        one = explained(example, scores, unread)
        found = rationale_of(one, text=example, method="top_share", share=share, by=by, counts=counts)
        assert found.chosen == tuple(sorted(wanted))


@pytest.mark.parametrize("by", ["text", "sentence"])
@pytest.mark.parametrize("counts", ["for", "absolute"])
@pytest.mark.parametrize(("of", "at"), [("largest", 0.5), ("largest", 1.0), ("absolute", 0.7)])
def test_threshold_takes_all_that_reach_it(by, counts, of, at):
    for example, scores, unread in cases():
        strength, wanted = strengths(scores, counts), []
        for passage in passages(example, by, unread):
            least = at * max(strength[n] for n in passage) if of == "largest" else at
            wanted += [n for n in passage if strength[n] >= least and strength[n] > 0]
        one = explained(example, scores, unread)
        found = rationale_of(one, text=example, method="threshold", at=at, of=of, by=by, counts=counts)
        assert found.chosen == tuple(sorted(wanted))


def all_choices(passage, example, n, longest):
    """Every way to take at most n spans of neighbours of one part that do not overlap."""
    spans = Words(example).spans
    single = [
        tuple(range(first, first + size))
        for first in passage
        for size in range(1, longest + 1)
        if all(m in passage and spans[m].part == spans[first].part for m in range(first, first + size))
    ]
    for count in range(n + 1):
        for some in itertools.combinations(single, count):
            flat = [m for span in some for m in span]
            if len(flat) == len(set(flat)):
                yield flat


@pytest.mark.parametrize("by", ["text", "sentence"])
@pytest.mark.parametrize("counts", ["for", "absolute"])
@pytest.mark.parametrize(("n", "longest"), [(1, 1), (1, 3), (2, 2), (3, 5)])
def test_spans_have_the_highest_total_there_is_and_then_the_fewest_words(by, counts, n, longest):
    for example, scores, unread in cases():
        strength = strengths(scores, counts)
        one = explained(example, scores, unread)
        found = rationale_of(one, text=example, method="spans", n=n, longest=longest, by=by, counts=counts).chosen
        for passage in passages(example, by, unread):
            choices = [sorted(choice) for choice in all_choices(passage, example, n, longest)]
            mine = [m for m in found if m in passage]
            assert mine in choices
            best = max(sum(strength[m] for m in choice) for choice in choices)
            assert sum(strength[m] for m in mine) == pytest.approx(best)
            close = [choice for choice in choices if abs(sum(strength[m] for m in choice) - best) < 1e-12]
            assert len(mine) == min(map(len, close))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("top_share", {"share": 0.0}),
        ("top_share", {"share": 1.1}),
        ("threshold", {"at": 0.0}),
        ("threshold", {"at": 1.5}),
        ("threshold", {"at": -1.0, "of": "absolute"}),
        ("spans", {"n": 0}),
        ("spans", {"longest": 0}),
        ("top_share", {"by": "page"}),
        ("top_share", {"colour": 1}),
    ],
)
def test_values_that_make_no_sense_are_refused(method, options):
    with pytest.raises(BadOption):
        rationale_of(explained(TEXTS[0], range(7)), method=method, **options)


def test_whole_sentences_can_be_chosen_and_come_as_words():
    one = explained(TEXTS[1], (1.0, -1.0, 3.0), unit="sentence")
    found = rationale_of(one, text=TEXTS[1], share=0.3)
    assert found.words == Words(TEXTS[1]).strings
    assert found.spans == Words(TEXTS[1]).spans
    assert [found.words[n] for n in found.chosen] == ["Never", "again"]
    assert ("attribution.units", "sentence") in found.recipe.options


def test_sentences_are_not_chosen_from_sentence_by_sentence():
    with pytest.raises(BadOption, match="whole sentences"):
        rationale_of(explained(TEXTS[1], (1.0, 2.0, 3.0), unit="sentence"), by="sentence")


def test_without_the_text_only_a_bare_line_break_is_missed():
    punctuated, broken = TEXTS[1], Example("x", "cold soup\nwarm beer")
    scores = range(1, len(Words(punctuated)) + 1)
    one = explained(punctuated, scores)
    assert rationale_of(one, by="sentence").chosen == rationale_of(one, text=punctuated, by="sentence").chosen
    lines_of = explained(broken, (4, 3, 2, 1))
    assert rationale_of(lines_of, text=broken, by="sentence").chosen == (0, 2)
    assert rationale_of(lines_of, by="sentence").chosen == (0,)


def test_a_sentence_end_in_one_text_is_none_in_the_other():
    pair = Example("x", "It is. So", "ab cd. ef gh")  # "is" ends where nothing ends in the pair
    one = explained(pair, range(1, len(Words(pair)) + 1))
    wanted = tuple(group[-1] for group in Words(pair, units="sentence").groups)
    assert rationale_of(one, text=pair, by="sentence").chosen == wanted


def test_an_explanation_of_another_text_is_refused():
    for other in (Example("x", "quite another text than that one was"), TEXTS[3]):
        with pytest.raises(BadOption, match="not one of this text"):
            rationale_of(explained(TEXTS[2], range(10)), text=other)


def test_a_mask_drawn_by_a_person_is_checked():
    found = drawn(TEXTS[2], [5, 1, 5], "positive", "r")
    assert (found.chosen, found.label, found.revision, found.recipe.name) == ((1, 5), "positive", "r", "drawn")
    assert found.words == Words(TEXTS[2]).strings
    assert drawn(Example("x", ""), [], "positive", "r").chosen == ()
    for wrong in (-1, 99, True, "1", 1.0):
        with pytest.raises(BadOption, match="There is no word"):
            drawn(TEXTS[2], [0, wrong], "positive", "r")
    with pytest.raises(BadOption, match="no words"):
        drawn(Example("x", " "), [0], "positive", "r")
