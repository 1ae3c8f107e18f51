"""The nouns: frozen, checked at the door, the same in Python and in JSON."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unhans.types import (
    NOUNS,
    Alternative,
    Attribution,
    Audit,
    Change,
    CheckRun,
    Comparison,
    Copy,
    Counterfactual,
    Doubt,
    Edit,
    Evidence,
    Example,
    Expectation,
    Feedback,
    Finding,
    FlipRating,
    Grade,
    Influence,
    Lab,
    LayerCurve,
    LocalRisk,
    Measure,
    Neighbour,
    NeighbourRating,
    PlantedBug,
    PlantedText,
    Prediction,
    RankedMethod,
    RankedWord,
    RatedQuestion,
    Rationale,
    Recipe,
    Relabel,
    Report,
    Review,
    Revision,
    Risk,
    RiskChange,
    RiskSlice,
    Rival,
    Ruling,
    Sighting,
    Span,
    Step,
    Suspect,
    Suspects,
    Terms,
    Variant,
    Verdict,
    WordEffect,
    WordRanking,
    WordVote,
    from_json,
    json_schema,
    to_json,
)

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
texts = st.lists(text, max_size=3).map(tuple)
number = st.floats(allow_nan=False, allow_infinity=False)
count = st.integers(0, 10**9)
rating = st.integers(1, 5)
maybe = st.none()
spans = st.tuples(count, count, st.sampled_from(["text", "pair"])).map(lambda x: Span(*sorted(x[:2]), part=x[2]))
option = st.tuples(text, st.booleans() | st.integers(-(2**53), 2**53) | number | text | maybe)
recipes = st.builds(
    Recipe, text, text, st.lists(option, max_size=3, unique_by=lambda pair: pair[0]).map(tuple), maybe | count
)
examples = st.builds(
    Example,
    id=text,
    text=text,
    pair=maybe | text,
    label=maybe | text,
    highlights=maybe | st.lists(spans, max_size=2).map(tuple),
    group=maybe | text,
    split=maybe | text,
    notes=texts,
)


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    labels = draw(st.lists(text, min_size=1, max_size=4))
    probabilities = tuple(draw(number) for _ in labels)
    return Prediction(
        draw(text), tuple(labels), probabilities, draw(text), draw(st.lists(spans, max_size=2).map(tuple))
    )


@st.composite
def attributions(draw: st.DrawFn) -> Attribution:
    words = draw(texts)
    found = tuple(draw(spans) for _ in words)
    scores = tuple(draw(number) for _ in words)
    return Attribution(draw(text), draw(text), words, found, scores, draw(recipes), draw(text), draw(st.just((0, 2))))


@st.composite
def rationales(draw: st.DrawFn) -> Rationale:
    words = draw(texts)
    found = tuple(draw(spans) for _ in words)
    return Rationale(draw(text), draw(text), words, found, tuple(range(len(words))), draw(recipes), draw(text))


edits = st.builds(Edit, count, text, text)
alternatives = st.lists(st.builds(Alternative, edits, number), max_size=2).map(tuple)
steps = st.builds(Step, st.lists(edits, max_size=2).map(tuple), predictions(), alternatives)
ranked = st.builds(RankedWord, text, number, number, count, texts)
suspects = st.builds(Suspect, text, text, number, number, number, number, number, count, texts)
votes = st.builds(WordVote, text, text, st.sampled_from(["raise", "lower"]), maybe | text, maybe | count)
answers = (
    votes
    | st.builds(FlipRating, text, maybe | rating, maybe | rating, maybe | rating, maybe | text)
    | st.builds(NeighbourRating, text, text, rating)
    | st.builds(Relabel, text, text | st.none())
    | st.builds(Verdict, text, rating, st.just("labels_wrong"), maybe | text, st.booleans(), text)
)
measures = st.builds(
    Measure, text, text, maybe | number, number, maybe | number, maybe | number, st.sampled_from(["higher", "lower"])
)
changes = st.lists(
    st.builds(Change, examples, text, predictions(), predictions(), maybe | attributions(), maybe), max_size=1
).map(tuple)
effects = st.builds(WordEffect, text, text, st.sampled_from(["raise", "lower"]), maybe | text, *[number] * 4, count)
ways = st.sampled_from(["higher", "lower"])
numbers = [maybe | number] * 4
grades = st.builds(Grade, text, recipes, number, *numbers, ways, text, count, count, text, recipes, text)
ranked_methods = st.builds(RankedMethod, recipes, number, count, count, st.booleans(), text)
local = st.builds(LocalRisk, text, text, number, count)
parted = st.sampled_from(["label", "after", "group", "generator", "author", "outcome"])
slices = st.builds(RiskSlice, parted, maybe | text, number, maybe | number, maybe | number, *[count] * 4)
asked = st.sampled_from(["plausible", "meaningful", "agrees"])
questions = st.builds(RatedQuestion, asked, maybe | number, count, *[maybe | number] * 3, count, text)
neighbours = st.lists(st.builds(Neighbour, text, number), max_size=2).map(tuple)
evidence = st.builds(Evidence, text, number, *[maybe | number] * 3, count)
variants = st.builds(Variant, text, text, maybe | text, text, text, number)
findings = st.builds(
    Finding,
    recipes,
    text,
    st.sampled_from(["high", "medium", "low"]),
    text,
    st.lists(evidence, max_size=1).map(tuple),
    texts,
    texts,
    text,
    maybe | st.just("words"),
    text,
    text,
    st.lists(variants, max_size=1).map(tuple),
)
check_runs = st.builds(
    CheckRun, recipes, text, st.sampled_from(["waiting", "done", "left out"]), text, count, maybe | number
)
planted = st.builds(
    PlantedBug, text, st.sampled_from(["data", "control"]), maybe | recipes, text, text, maybe | number, maybe | number
)
sightings = st.builds(
    Sighting,
    text,
    text,
    st.sampled_from(["attribution", "detector", "doubt"]),
    st.sampled_from(["mass on the cue", "detection"]),
    number,
    maybe | number,
    maybe | number,
    count,
    maybe | st.booleans(),
)
curves = st.builds(
    LayerCurve, text, st.just(("head",)), st.tuples(maybe | number), st.tuples(maybe | number), st.booleans()
)
planted_texts = st.builds(
    PlantedText,
    text,
    examples,
    text,
    st.just(("a word",)),
    st.just((Span(0, 6),)),
    st.lists(st.tuples(text, st.tuples(number)), max_size=1).map(tuple),
)
NOUN_OF: dict[type, st.SearchStrategy[Any]] = {
    Recipe: recipes,
    Audit: st.builds(
        Audit,
        text,
        st.lists(findings, max_size=1).map(tuple),
        st.lists(check_runs, max_size=1).map(tuple),
        count,
        count,
        texts,
        maybe | recipes,
        maybe | text,
    ),
    Lab: st.builds(
        Lab,
        st.lists(planted, max_size=1).map(tuple),
        st.lists(sightings, max_size=1).map(tuple),
        st.lists(curves, max_size=1).map(tuple),
        st.lists(st.tuples(text, text), max_size=1).map(tuple),
        st.lists(st.tuples(text, texts), max_size=1).map(tuple),
        texts,
        text,
        maybe | recipes,
        maybe | text,
        st.lists(planted_texts, max_size=1).map(tuple),
    ),
    Example: examples,
    Prediction: predictions(),
    Attribution: attributions(),
    WordRanking: st.builds(WordRanking, text, st.lists(ranked, max_size=2).map(tuple), recipes, text),
    Suspects: st.builds(Suspects, st.lists(suspects, max_size=2).map(tuple), recipes, text),
    Rationale: rationales(),
    Counterfactual: st.builds(
        Counterfactual,
        text,
        st.lists(edits, max_size=2).map(tuple),
        text,
        maybe | text,
        predictions(),
        predictions(),
        recipes,
        maybe | text,
        st.lists(steps, max_size=2).map(tuple),
        maybe | st.just((0, 2)),
        maybe | st.just((1,)),
        maybe | number,
        maybe | number,
    ),
    Influence: st.builds(Influence, text, text, neighbours, neighbours, recipes, text, texts),
    Copy: st.builds(Copy, text, text, maybe | text, text, recipes, maybe | number),
    Doubt: st.builds(
        Doubt, text, text, text, number, st.lists(st.tuples(text, number), max_size=2).map(tuple), recipes, text
    ),
    Feedback: st.builds(Feedback, text, answers, text, text, text, maybe | text, maybe | text, maybe | number),
    Revision: st.builds(Revision, text, maybe | text, recipes, texts, texts, maybe | text, maybe | text),
    Report: st.builds(
        Report,
        maybe | text,
        text,
        st.lists(measures, max_size=2).map(tuple),
        st.lists(st.builds(Expectation, text, st.booleans(), maybe | number, text), max_size=2).map(tuple),
        changes,
        changes,
        count,
        count,
        st.lists(effects, max_size=2).map(tuple),
        maybe | number,
        st.lists(st.builds(Rival, recipes, st.lists(measures, max_size=1).map(tuple), text), max_size=1).map(tuple),
        texts,
        maybe | recipes,
        maybe | recipes,
        maybe | text,
    ),
    Grade: grades,
    Comparison: st.builds(
        Comparison,
        st.lists(grades, max_size=2).map(tuple),
        st.lists(ranked_methods, max_size=2).map(tuple),
        text,
        texts,
        count,
        text,
    ),
    Risk: st.builds(
        Risk,
        maybe | text,
        *[maybe | number] * 3,
        *[count] * 6,
        number,
        maybe | count,
        maybe | count,
        maybe | number,
        text,
        st.lists(questions, max_size=2).map(tuple),
        st.lists(slices, max_size=2).map(tuple),
        st.lists(local, max_size=2).map(tuple),
        recipes,
    ),
    RiskChange: st.builds(
        RiskChange, *[maybe | number] * 4, *[count] * 3, st.tuples(maybe | text, maybe | text), text, recipes
    ),
}
RECIPE = Recipe("attribution", "lime")
SCHEMA = json_schema()


@pytest.mark.parametrize("kind", NOUNS)
@given(data=st.data())
def test_every_noun_comes_back_from_json_as_it_was(kind: type, data: st.DataObject) -> None:
    noun = data.draw(NOUN_OF[kind])

    back = from_json(kind, to_json(noun))

    assert back == noun
    assert hash(back) == hash(noun)
    assert repr(back) == repr(noun)  # == takes 1, 1.0 and True for the same; the printed form does not


@pytest.mark.parametrize("kind", NOUNS)
@given(data=st.data())
def test_what_we_write_obeys_the_schema_we_publish(kind: type, data: st.DataObject) -> None:
    noun = data.draw(NOUN_OF[kind])

    assert not list(violations(json.loads(to_json(noun)), SCHEMA["$defs"][kind.__name__], SCHEMA))


def test_the_schema_knows_every_noun_and_what_they_are_made_of() -> None:
    parts = {
        Terms,
        Span,
        Edit,
        Step,
        Alternative,
        Neighbour,
        RankedMethod,
        RankedWord,
        Suspect,
        WordVote,
        FlipRating,
        NeighbourRating,
        Relabel,
        Review,
        Ruling,
        Measure,
        Expectation,
        Change,
        WordEffect,
        Rival,
        LocalRisk,
        RatedQuestion,
        RiskSlice,
        Verdict,
        Evidence,
        Finding,
        Variant,
        CheckRun,
        PlantedBug,
        PlantedText,
        Sighting,
        LayerCurve,
    }

    assert set(SCHEMA["$defs"]) == {kind.__name__ for kind in parts | set(NOUNS)}


def test_the_schema_refuses_what_python_refuses() -> None:
    line = json.loads(to_json(Feedback("1", FlipRating("c", 5, 1, 3), "ann", "2026-01-01", "r")))
    line["says"]["plausible"] = 6

    assert list(violations(line, SCHEMA["$defs"]["Feedback"], SCHEMA))


@pytest.mark.parametrize(
    "says",
    [
        WordVote("good", "positive", "lower", "e1", 3),
        FlipRating("c1", 1, 2, 3),
        NeighbourRating("e1", "t9", 5),
        Relabel("e1", "negative"),
    ],
    ids=lambda says: says.kind,
)
def test_an_answer_is_told_by_its_kind(says: Any) -> None:
    feedback = Feedback("f1", says, "ann", "2026-01-01T00:00:00Z", "r1")

    back = from_json(Feedback, to_json(feedback))

    assert type(back.says) is type(says)
    assert back == feedback


def test_an_answer_of_an_unknown_kind_is_refused() -> None:
    line = to_json(Feedback("f1", Relabel("e1", "x"), "ann", "t", "r1")).replace('"relabel"', '"shout"')

    with pytest.raises(ValueError, match="says"):
        from_json(Feedback, line)


@pytest.mark.parametrize("value", ["0", "6", "-1", "true", "2.5", '"much"', "null"])
def test_a_rating_is_a_whole_number_from_one_to_five(value: str) -> None:
    line = to_json(Feedback("f1", NeighbourRating("e1", "t1", 3), "ann", "t", "r1")).replace(
        '"similar":3', f'"similar":{value}'
    )

    with pytest.raises(ValueError, match="similar"):
        from_json(Feedback, line)


@pytest.mark.parametrize("value", [0, 6, -1, True, 2.5, "4"])
def test_a_rating_made_in_python_is_held_to_the_same_scale(value: Any) -> None:
    with pytest.raises(ValueError, match="1 to 5"):
        NeighbourRating("e1", "t1", value)
    with pytest.raises(ValueError, match="1 to 5"):
        FlipRating("c1", 3, value, 3)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_not_a_number_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Attribution("e", "l", ("a",), (Span(0, 1),), (score,), RECIPE, "r")
    with pytest.raises(ValueError, match="finite"):
        Prediction("e", ("a", "b"), (0.5, score), "r")
    with pytest.raises(ValueError, match="finite"):
        RankedWord("good", score, 0.0, 1, ("e",))
    with pytest.raises(ValueError, match="finite"):
        RankedWord("good", 0.0, score, 1, ("e",))
    with pytest.raises(ValueError, match="finite"):
        Suspect("good", "l", 0.0, 0.1, 0.1, 0.1, score, 1, ("e",))
    with pytest.raises(ValueError, match="finite"):
        Neighbour("t", score)
    with pytest.raises(ValueError, match="finite"):
        Measure("accuracy", "test", None, score)
    with pytest.raises(ValueError, match="finite"):
        Measure("accuracy", "test", 0.5, 0.5, low=score, high=0.5)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "null"])
def test_nor_does_such_a_score_come_in_through_json(value: str) -> None:
    line = to_json(Prediction("e", ("a", "b"), (0.25, 0.75), "r")).replace("0.25", value)

    with pytest.raises(ValueError, match="probabilities"):
        from_json(Prediction, line)


def test_words_spans_and_scores_must_be_equally_many() -> None:
    one = (Span(0, 1),)
    with pytest.raises(ValueError, match="2 words but 1 scores"):
        Attribution("e", "l", ("a", "b"), (*one, Span(2, 3)), (0.1,), RECIPE, "r")
    with pytest.raises(ValueError, match="2 words but 1 spans"):
        Attribution("e", "l", ("a", "b"), one, (0.1, 0.2), RECIPE, "r")
    with pytest.raises(ValueError, match="2 labels but 3 probabilities"):
        Prediction("e", ("a", "b"), (0.1, 0.2, 0.7), "r")


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3)])
def test_a_span_runs_forward(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="forward"):
        Span(start, end)


@pytest.mark.parametrize("kind", NOUNS)
@given(data=st.data())
def test_nouns_do_not_change(kind: type, data: st.DataObject) -> None:
    noun = data.draw(NOUN_OF[kind])
    field = dataclasses.fields(noun)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(noun, field, "other")


@given(recipes, st.randoms())
def test_a_recipe_does_not_depend_on_the_order_of_its_options(recipe: Recipe, random: Any) -> None:
    shuffled = list(recipe.options)
    random.shuffle(shuffled)
    other = Recipe(recipe.family, recipe.name, tuple(shuffled), recipe.seed)

    assert other == recipe
    assert other.key == recipe.key


@pytest.mark.parametrize(
    "other",
    [
        Recipe("attribution", "lime", (("n", 3),), 2),
        Recipe("attribution", "lime", (("n", 4),), 1),
        Recipe("attribution", "limes", (("n", 3),), 1),
        Recipe("attribution", "lime", (("n", "3"),), 1),
        Recipe("attribution", "lime", (("n", 3), ("m", None)), 1),
        Recipe("attribution", "lime", (("n", 3),)),
    ],
    ids=str,
)
def test_different_recipes_have_different_keys(other: Recipe) -> None:
    assert other.key != Recipe("attribution", "lime", (("n", 3),), 1).key


def test_a_recipe_has_the_same_key_in_every_process() -> None:
    made = 'Recipe("f", "grüße", (("b", True), ("a", 1.5), ("c", None)), 7)'
    program = f"from unhans.types import Recipe; print({made}.key)"

    keys = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert keys == {Recipe("f", "grüße", (("b", True), ("a", 1.5), ("c", None)), 7).key}


def test_a_recipe_is_captioned_by_its_settings() -> None:
    assert str(Recipe("attribution", "lime", (("n", 3), ("kernel", 0.5)), 1)) == "lime(kernel=0.5, n=3, seed=1)"


def test_the_fingerprint_of_a_text_tells_where_a_pair_is_split() -> None:
    hashes = [
        Example("1", *parts).text_hash for parts in [("ab",), ("a", "b"), ("ab", ""), ("", "ab"), ("a b",), ("a", "B")]
    ]

    assert len(set(hashes)) == len(hashes)


@given(st.text(max_size=5), st.none() | st.text(max_size=5), st.text(max_size=5), st.none() | st.text(max_size=5))
def test_only_equal_texts_share_a_fingerprint(text: str, pair: str | None, text2: str, pair2: str | None) -> None:
    same = Example("1", text, pair).text_hash == Example("2", text2, pair2, label="x").text_hash

    assert same == ((text, pair) == (text2, pair2))


def test_the_fingerprint_is_not_fooled_by_the_sign_between_the_parts() -> None:
    assert Example("1", "a\x00b").text_hash != Example("1", "a", "b").text_hash


def test_a_tie_goes_to_the_first_label() -> None:
    tied = Prediction("e", ("b", "a", "c"), (0.4, 0.4, 0.2), "r")

    assert (tied.label, tied.confidence) == ("b", 0.4)


def test_a_noun_without_a_drawing_is_shown_escaped() -> None:
    assert "<script>" not in Example("1", "<script>alert(1)</script>")._repr_html_()


def violations(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> Any:  # noqa: PLR0912
    """Where a JSON value breaks a schema: the part of JSON Schema that our nouns use, and an error for any other."""
    known = {"$ref", "anyOf", "oneOf", "discriminator", "type", "properties", "required", "items", "prefixItems"}
    known |= {
        "minItems",
        "maxItems",
        "maxLength",
        "const",
        "enum",
        "minimum",
        "maximum",
        "title",
        "description",
        "default",
    }
    assert schema.keys() <= known, schema.keys() - known
    if "$ref" in schema:
        yield from violations(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
        return
    for alternatives in (schema.get("anyOf"), schema.get("oneOf")):
        if alternatives and all(list(violations(value, one, root, at)) for one in alternatives):
            yield f"{at}: fits no alternative"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: not among {schema['enum']}"
    if "type" in schema:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        fits = {
            "string": isinstance(value, str),
            "integer": is_whole,
            "number": is_whole or isinstance(value, float),
            "boolean": isinstance(value, bool),
            "null": value is None,
            "array": isinstance(value, list),
            "object": isinstance(value, dict),
        }[schema["type"]]
        if not fits:
            yield f"{at}: not a {schema['type']}"
            return
    if "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        yield f"{at}: out of range"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{at}: too long"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{at}: {len(value)} items"
        prefix = schema.get("prefixItems", [])
        for i, item in enumerate(value):
            yield from violations(item, prefix[i] if i < len(prefix) else schema.get("items", {}), root, f"{at}[{i}]")
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            if name not in schema["properties"]:
                yield f"{at}: knows no {name}"
            else:
                yield from violations(item, schema["properties"][name], root, f"{at}.{name}")
