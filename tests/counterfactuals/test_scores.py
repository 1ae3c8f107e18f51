"""Scores of flips against slow formulas; selections against looking at every choice."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from unhans.attributions import attribute
from unhans.counterfactuals import find_flips
from unhans.counterfactuals.scores import diverse, scored, surprise, surprising
from unhans.errors import BadOption, Cancelled
from unhans.text import Words, visible_form
from unhans.types import Attribution, Counterfactual, Edit, Example, Prediction, Recipe, Span

EXAMPLES = {
    "one": Example("one", "The soup was cold"),
    "pair": Example("pair", "the film was good", "she liked it"),
    "word": Example("word", "good"),
    "empty": Example("empty", ""),
}
RECIPE = Recipe("counterfactuals", "deletion")


def flip(
    example: Example, *news: tuple[int, str], before: Any = (0.9, 0.1), after: Any = (0.2, 0.8), **more: Any
) -> Counterfactual:
    """A flip by these changes; of what a model would say only the probabilities are made up."""
    words = Words(example)
    edits = tuple(Edit(n, words.strings[n], new) for n, new in news)
    text, *pair = words.edited(edits).texts
    labels = tuple("abcdef"[: len(before)])
    said = [Prediction(example.id, labels, tuple(line), "r") for line in (before, after)]
    return Counterfactual(example.id, edits, text, pair[0] if pair else None, *said, RECIPE, **more)


FLIPS = [
    flip(EXAMPLES["one"], (3, "warm")),
    flip(EXAMPLES["one"], (1, "film"), (3, "")),
    flip(EXAMPLES["pair"], (3, "bad"), (5, "hated")),
    flip(EXAMPLES["pair"]),
    flip(EXAMPLES["word"], (0, "")),
    flip(EXAMPLES["empty"]),
]


# -- perplexity and similarity


def test_perplexity_and_similarity_come_from_the_language_model() -> None:
    model = tiny.language_model()
    for one, made in zip(FLIPS, scored(FLIPS, EXAMPLES, language_model=model), strict=True):
        original, edited = EXAMPLES[one.example], Example("x", one.text, one.pair)
        (old,), (new,) = (model.log_likelihoods([text]) for text in (original, edited))
        a, b = model.embed([original, edited])
        if old is None or new is None:
            assert made.perplexity is made.similarity is None
            continue
        assert made.perplexity == pytest.approx(np.log(np.exp(-new) / np.exp(-old)), abs=1e-4)
        assert made.similarity == pytest.approx(a @ b / np.sqrt((a @ a) * (b @ b)), abs=1e-5)
        assert (made.edits, made.id, made.after) == (one.edits, one.id, one.after)


def test_without_a_language_model_the_classifiers_embeddings_are_compared() -> None:
    classifier = tiny.transformer("bert", labels=3)
    table = classifier.model.get_input_embeddings().weight.detach().double().numpy()

    def mean(text: Example) -> Any:
        ids = classifier.tokenizer(text.text, text.pair, add_special_tokens=False)["input_ids"]
        return table[ids].mean(0)

    for one, made in zip(FLIPS, scored(FLIPS, EXAMPLES, classifier=classifier), strict=True):
        assert made.perplexity is None
        edited = Example("x", one.text, one.pair)
        if not len(Words(edited)):
            assert made.similarity is None
            continue
        a, b = mean(EXAMPLES[one.example]), mean(edited)
        assert made.similarity == pytest.approx(a @ b / np.sqrt((a @ a) * (b @ b)), abs=1e-6)


@pytest.mark.parametrize("given_model", [None, tiny.language_model()])
def test_an_unedited_text_is_as_likely_as_before_and_the_same(given_model: Any) -> None:
    classifier = tiny.transformer("roberta")
    (made,) = scored([FLIPS[3]], EXAMPLES, language_model=given_model, classifier=classifier)
    assert made.similarity == pytest.approx(1)
    assert made.perplexity == (None if given_model is None else 0)


def test_a_black_box_alone_gives_no_scores() -> None:
    assert scored(FLIPS, EXAMPLES, classifier=tiny.bag_of_words({})) == FLIPS
    assert scored([], {}, language_model=tiny.language_model(), classifier=tiny.transformer()) == []


def test_an_original_that_is_missing_is_told_and_a_stop_is_heard() -> None:
    with pytest.raises(BadOption, match="no original for the flip of 'one'"):
        scored(FLIPS, {}, language_model=tiny.language_model())
    with pytest.raises(Cancelled):
        scored(FLIPS, EXAMPLES, language_model=tiny.language_model(), cancelled=lambda: True)


# -- a diverse selection


def features(one: Counterfactual) -> set[Any]:
    return {(one.example, e.position) for e in one.edits} | {visible_form(e.new) for e in one.edits}


def unlikeness(a: Counterfactual, b: Counterfactual) -> float:
    both, either = features(a) & features(b), features(a) | features(b)
    return 1 - len(both) / len(either) if either else 0.0


CHANGES = st.dictionaries(st.integers(0, 3), st.sampled_from(("x", "y", "Z", "")), max_size=4)
SOME = st.lists(st.tuples(CHANGES, st.sampled_from((0.1, 0.6, 0.8))), max_size=7).map(
    lambda drawn: [flip(EXAMPLES["one"], *sorted(c.items()), after=(1 - p, p)) for c, p in drawn]
)


@settings(max_examples=60)
@given(SOME, st.integers(0, 8))
def test_each_choice_is_the_one_farthest_from_those_before(flips: list[Counterfactual], n: int) -> None:
    chosen = diverse(flips, n)
    assert len(chosen) == min(n, len(flips))
    assert all(sum(one is other for other in flips) >= 1 for one in chosen)
    if chosen:
        best = min(flips, key=lambda one: (not one.flips, len(one.edits), -one.margin))
        assert (chosen[0].flips, len(chosen[0].edits)) == (best.flips, len(best.edits))
    for k in range(1, len(chosen)):
        rest = [one for one in flips if not any(one is other for other in chosen[:k])]
        farthest = max(min(unlikeness(one, other) for other in chosen[:k]) for one in rest)
        assert min(unlikeness(chosen[k], other) for other in chosen[:k]) == pytest.approx(farthest)


def test_what_has_nothing_in_common_is_chosen_wherever_it_stands() -> None:
    flips = [flip(EXAMPLES["one"], *c) for c in ([(0, "x")], [(0, "y")], [(0, "x"), (1, "y")], [(2, "z"), (3, "w")])]
    for order in permutations(flips):
        first, second = diverse(order, 2)
        assert len(first.edits) == 1
        assert second is flips[3]


def test_the_best_flips_with_few_edits_and_a_likely_text() -> None:
    attempt = flip(EXAMPLES["one"], (0, "x"), after=(0.6, 0.4))
    two = flip(EXAMPLES["one"], (0, "x"), (1, "y"))
    odd, likely = (flip(EXAMPLES["one"], (0, new), perplexity=rise) for new, rise in (("x", 2.0), ("y", 0.5)))
    assert diverse([attempt, two, odd, likely], 1) == [likely]
    assert diverse([attempt, two], 1) == [two]


# -- surprising flips


def explanation(example: Example, *scores: float) -> Attribution:
    words = Words(example)
    spans = tuple(Span(span.start, span.end, span.part) for span in words.spans)
    return Attribution(example.id, "a", words.strings, spans, scores, Recipe("attributions", "random"), "r")


def test_surprise_is_what_moved_times_the_share_elsewhere() -> None:
    one = flip(EXAMPLES["one"], (1, "film"), (3, "warm"), before=(0.7, 0.2, 0.1), after=(0.3, 0.3, 0.4))
    assert surprise(one, explanation(EXAMPLES["one"], -4.0, 1.0, 3.0, -2.0)) == pytest.approx(0.4 * (1 - 3 / 10))
    assert surprise(one, explanation(EXAMPLES["one"], 0.0, 1.0, 0.0, 1.0)) == 0
    assert surprise(one, explanation(EXAMPLES["one"], 0.0, 0.0, 0.0, 0.0)) == pytest.approx(0.4)
    back = flip(EXAMPLES["one"], (1, "film"), before=(0.6, 0.4), after=(0.9, 0.1))
    assert surprise(back, explanation(EXAMPLES["one"], 1.0, 0.0, 0.0, 0.0)) == 0


def test_the_most_surprising_come_first_and_those_without_an_explanation_are_left_out() -> None:
    expected = flip(EXAMPLES["one"], (3, "warm"))
    odd = flip(EXAMPLES["one"], (0, "A"))
    little = flip(EXAMPLES["one"], (0, "A"), after=(0.85, 0.15))
    other = flip(EXAMPLES["pair"], (0, "a"))
    known = [explanation(EXAMPLES["one"], 1.0, 1.0, 0.0, 8.0)]
    assert surprising([expected, little, other, odd], known, 2) == [odd, expected]
    assert surprising([expected, little, other, odd], known, 9) == [odd, expected, little]
    assert surprising([odd], known, 0) == surprising([], known, 3) == surprising([odd], [], 3) == []


def test_an_explanation_of_other_words_is_refused() -> None:
    one = flip(EXAMPLES["one"], (3, "warm"))
    for wrong in (Example("one", "The soup was hot"), Example("one", "The soup")):
        with pytest.raises(BadOption, match="not about the words"):
            surprise(one, explanation(wrong, *[1.0] * len(Words(wrong))))


def test_found_flips_can_be_scored_and_chosen_from() -> None:
    classifier = tiny.transformer("bert", labels=3)
    examples = [EXAMPLES["one"], EXAMPLES["pair"], EXAMPLES["word"]]
    model = tiny.language_model()
    how = {"method": "masked_lm", "language_model": model, "search": {"max_edits": 2, "beam": 2}}
    flips = scored(find_flips(classifier, examples, keep=3, **how), EXAMPLES, language_model=model)
    assert all(one.perplexity is not None and one.similarity is not None for one in flips)
    assert len(diverse(flips, 3)) == 3
    explanations = attribute(classifier, examples, method="leave_one_out")
    found = surprising(flips, explanations, 10)
    assert [one for one in found if one not in flips] == []
