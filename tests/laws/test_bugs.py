"""What every bug must obey."""

from dataclasses import replace

import pytest

from unhans.bugs import Planted, bug, plant
from unhans.demo_data import entailment_pairs, reviews
from unhans.errors import BadData, BadOption
from unhans.registry import Entry
from unhans.types import Example, Span, from_json, to_json

LABELS = ("positive", "negative", "neither")
WITH_SHARE = [entry.name for entry in bug if any(option.name == "share" for option in entry.options)]
SHARES = [(entry, option.name) for entry in bug for option in entry.options if option.kind == "float"]


@pytest.fixture(params=list(bug), ids=lambda entry: entry.name)
def entry(request) -> Entry:
    return request.param


@pytest.fixture
def examples() -> tuple[Example, ...]:
    """Three labels, some examples without one, three groups, single texts and pairs."""
    made = reviews(240, seed=8)
    some = [replace(e, label=[*LABELS, None][i % 4]) for i, e in enumerate(made)]
    return tuple(replace(e, pair="A second text.") if i % 5 == 0 else e for i, e in enumerate(some))


def changed(before: tuple[Example, ...], planted: Planted) -> tuple[str, ...]:
    return tuple(a.id for a, b in zip(before, planted.examples, strict=True) if a != b)


def test_the_family_has_the_bugs_we_promise():
    assert {"spurious_word", "flipped_labels", "domain_shift"} <= set(bug.names)
    assert not bug.broken


def test_every_bug_says_what_it_is(entry):
    assert entry.summary.endswith((".", ","))
    assert entry.facts["kind"] in {"data", "model", "test-time"}
    assert entry.facts["paper"]
    assert all(option.help for option in entry.options)


def test_the_truth_names_exactly_what_was_planted_and_the_rest_is_untouched(entry, examples):
    planted = plant(examples, entry.name, seed=1)
    assert planted.truth.examples
    assert planted.truth.examples == changed(examples, planted)
    assert planted.truth.note


def test_a_recorded_value_is_the_one_before(entry, examples):
    planted = plant(examples, entry.name, seed=1)
    before = {e.id: e for e in examples}
    assert all(old in (before[id_].label, before[id_].split) for id_, old in planted.truth.was)


@pytest.mark.parametrize("name", WITH_SHARE)
@pytest.mark.parametrize("value", [0.0, 0.2, 0.5, 1.0])
def test_the_contaminated_share_is_as_asked(name, examples, value):
    most = len(plant(examples, name, seed=1, share=1.0).truth.examples)
    assert most > 0
    assert len(plant(examples, name, seed=1, share=value).truth.examples) == round(value * most)


def test_the_same_seed_plants_the_same(entry, examples):
    assert plant(examples, entry.name, seed=3) == plant(list(examples), entry.name, seed=3)


@pytest.mark.parametrize("name", WITH_SHARE)
def test_another_seed_plants_something_else(name, examples):
    assert plant(examples, name, seed=3, share=0.5).truth != plant(examples, name, seed=4, share=0.5).truth


def test_the_examples_given_are_not_changed(entry, examples):
    given = list(examples)
    copies = [to_json(e) for e in given]
    plant(given, entry.name, seed=1)
    assert [to_json(e) for e in given] == copies
    assert len(given) == len(examples)


def test_order_ids_and_groups_stay(entry, examples):
    planted = plant(examples, entry.name, seed=1)
    assert [(e.id, e.group) for e in planted.examples] == [(e.id, e.group) for e in examples]


def test_no_label_is_invented_or_given_to_an_unlabelled_text(entry, examples):
    planted = plant(examples, entry.name, seed=1)
    assert {e.label for e in planted.examples} <= {*LABELS, None}
    assert [e.label is None for e in planted.examples] == [e.label is None for e in examples]


def test_pairs_survive(entry):
    pairs = [replace(e, group=e.group.split("/")[0], highlights=(Span(0, 3, "pair"),)) for e in entailment_pairs(60)]
    options = {"label": "entailment", "keep": "subsequence"}
    known = {option.name for option in entry.options}
    planted = plant(pairs, entry.name, **{name: value for name, value in options.items() if name in known})
    assert [e.pair for e in planted.examples] == [e.pair for e in pairs]
    assert all(e.highlights == (Span(0, 3, "pair"),) for e in planted.examples)
    assert planted.truth.examples == changed(tuple(pairs), planted)


def test_the_recipe_is_enough_to_plant_it_again(entry, examples):
    planted = plant(examples, entry.name, seed=7)
    recipe = planted.recipe
    assert (recipe.family, recipe.name, recipe.seed) == ("bugs", entry.name, 7)
    assert plant(examples, recipe.name, seed=recipe.seed, **dict(recipe.options)) == planted


def test_what_was_planted_survives_json(entry, examples):
    planted = plant(examples, entry.name, seed=1)
    assert from_json(Planted, to_json(planted)) == planted


@pytest.mark.parametrize(("entry", "option"), SHARES, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan")])
def test_a_share_that_is_no_part_of_a_whole_is_refused(entry, option, value, examples):
    with pytest.raises(BadOption, match=f"{option} must"):
        plant(examples, entry.name, **{option: value})


def test_examples_that_share_an_id_are_refused(entry, examples):
    with pytest.raises(BadData, match="2 examples share the id"):
        plant([*examples, examples[0]], entry.name)


def test_an_empty_set_of_examples_is_refused(entry):
    with pytest.raises(BadData, match="no examples"):
        plant([], entry.name)


def test_an_unknown_bug_is_refused_with_a_near_miss():
    with pytest.raises(BadOption, match="Did you mean 'flipped_labels'"):
        plant(reviews(4), "flip_labels")


def test_an_unknown_option_is_refused(entry, examples):
    with pytest.raises(BadOption, match="has no option colour"):
        plant(examples, entry.name, colour="red")
