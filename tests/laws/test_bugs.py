"""What every bug must obey."""

from dataclasses import replace
from functools import cache

import pytest
import torch

import tiny
import translators
from unhans.augmentations.back_translation import translated
from unhans.bugs import Planted, Truth, bug, plant
from unhans.bugs._weights import parts_of
from unhans.demo_data import entailment_pairs, reviews
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.registry import Entry
from unhans.text import Words
from unhans.types import Example, Span, from_json, to_json

LABELS = ("positive", "negative", "neither")
OF_TEXTS = [entry for entry in bug if "examples" in entry.asks]
OF_MODELS = [entry for entry in bug if "classifier" in entry.asks]
WITH_SHARE = [entry for entry in OF_TEXTS if any(option.name == "share" for option in entry.options)]
SHARES = [(e, o.name) for e in bug for o in e.options if o.kind == "float" and o.name != "learning_rate"]
QUICK = {"frozen_random_encoder": {"epochs": 1}}
PROOFS = {"cue", "labels", "copies", "answers", "none"}


def named(value: object) -> str:
    return getattr(value, "name", value)


def usable(entry: Entry) -> Entry:
    if entry.name == "other_language":
        translators.needed()
    return entry


@pytest.fixture(autouse=True)
def _translated_once(monkeypatch):
    """Apertium takes a second to start, and laws ask for the same translations again and again."""
    monkeypatch.setattr(
        "unhans.bugs.other_language.translated", lambda texts, mode, _: list(_apertium(tuple(texts), mode))
    )


@cache
def _apertium(texts: tuple[str, ...], mode: str) -> list[str]:
    return translated(texts, mode)


@pytest.fixture(params=list(bug), ids=named)
def entry(request) -> Entry:
    return usable(request.param)


@pytest.fixture(params=OF_TEXTS, ids=named)
def of_texts(request) -> Entry:
    return usable(request.param)


@pytest.fixture(params=OF_MODELS, ids=named)
def of_models(request) -> Entry:
    return request.param


def texts(labels=LABELS) -> tuple[Example, ...]:
    """Several labels, some examples without one, three groups, two splits, single texts and pairs."""
    made = reviews(60, seed=8)
    some = [replace(e, label=[*labels, None][i % (1 + len(labels))]) for i, e in enumerate(made)]
    some = [replace(e, split="test") if i % 3 == 0 else e for i, e in enumerate(some)]
    return tuple(replace(e, pair="A second text.") if i % 5 == 0 else e for i, e in enumerate(some))


@pytest.fixture(params=[LABELS, LABELS[:2]], ids=["three labels", "two labels"])
def examples(request) -> tuple[Example, ...]:
    return texts(request.param)


@cache
def models() -> dict:
    train = [e for e in texts(LABELS[:2]) if e.label is not None][:32]
    return {"classifier": tiny.transformer(), "other": tiny.transformer(seed=1), "train": train}


def planted_with(entry: Entry, examples=(), **options) -> Planted:
    """A bug with all that it may ask for."""
    return plant(examples, entry.name, **models(), **(QUICK.get(entry.name, {}) | options))


def in_texts(examples, name: str, **options) -> Planted:
    """A bug of texts, with the model that reads them: some look for what misleads it."""
    return plant(examples, name, classifier=models()["classifier"], **options)


def touched(before: tuple[Example, ...], planted: Planted) -> tuple[str, ...]:
    """Ids of examples that are new or not as they were."""
    known = {example.id: example for example in before}
    return tuple(e.id for e in planted.examples if known.get(e.id) != e)


def test_the_family_has_the_bugs_we_promise():
    cues = {"spurious_word", "spurious_phrase", "spurious_punctuation", "spurious_position", "spurious_group"}
    data = {"flipped_labels", "duplicated_rows"}
    model = {"reinitialised", "noisy_weights", "wrong_checkpoint", "tokenizer_mismatch", "frozen_random_encoder"}
    test_time = {"domain_shift", "wrong_domain", "changed_preprocessing", "typos", "adversarial_typos"}
    assert cues | data | model | test_time | {"other_language", "clean"} <= set(bug.names)
    assert {e.name for e in bug if e.facts["kind"] == "model"} >= model
    assert {e.name for e in bug if e.facts["proof"] == "cue"} >= cues
    assert not bug.broken


def test_every_bug_says_what_it_is(entry):
    assert entry.summary.endswith((".", ","))
    assert entry.facts["kind"] in {"data", "model", "test-time", "control"}
    assert entry.facts["proof"] in PROOFS
    assert entry.facts["paper"]
    assert all(option.help for option in entry.options)


# -- bugs of texts


def test_the_truth_names_exactly_what_was_planted_and_the_rest_is_untouched(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=1)
    assert bool(planted.truth.examples) == (of_texts.facts["kind"] != "control")
    assert planted.truth.examples == touched(examples, planted)
    assert planted.truth.note
    assert planted.classifier is None


def test_a_recorded_value_is_the_one_before(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=1)
    before, after = ({e.id: e for e in some} for some in (examples, planted.examples))
    for id_, old in planted.truth.was:
        if id_ in before:
            assert old in (before[id_].label, before[id_].split)
        else:
            assert before[old].text_hash == after[id_].text_hash


@pytest.mark.parametrize("entry", WITH_SHARE, ids=named)
@pytest.mark.parametrize("value", [0.0, 0.2, 0.5, 1.0])
def test_the_contaminated_share_is_as_asked(entry, examples, value):
    usable(entry)
    most = len(in_texts(examples, entry.name, seed=1, share=1.0).truth.examples)
    assert most > 0
    assert len(in_texts(examples, entry.name, seed=1, share=value).truth.examples) == round(value * most)


def test_the_same_seed_plants_the_same(of_texts, examples):
    assert in_texts(examples, of_texts.name, seed=3) == in_texts(list(examples), of_texts.name, seed=3)


@pytest.mark.parametrize("entry", WITH_SHARE, ids=named)
def test_another_seed_plants_something_else(entry, examples):
    usable(entry)
    assert (
        in_texts(examples, entry.name, seed=3, share=0.5).truth
        != in_texts(examples, entry.name, seed=4, share=0.5).truth
    )


def test_the_examples_given_are_not_changed(of_texts, examples):
    given = list(examples)
    copies = [to_json(e) for e in given]
    in_texts(given, of_texts.name, seed=1)
    assert [to_json(e) for e in given] == copies
    assert len(given) == len(examples)


def test_order_ids_and_groups_stay_and_ids_are_unique(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=1).examples
    old = planted[: len(examples)]
    assert [(e.id, e.group) for e in old] == [(e.id, e.group) for e in examples]
    assert len({e.id for e in planted}) == len(planted)


def test_no_label_is_invented_or_given_to_an_unlabelled_text(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=1).examples[: len(examples)]
    assert {e.label for e in planted} <= {*LABELS, None}
    assert [e.label is None for e in planted] == [e.label is None for e in examples]


def test_pairs_survive_and_highlights_stay_inside_them(of_texts):
    pairs = [replace(e, group=e.group.split("/")[0], highlights=(Span(0, 3, "pair"),)) for e in entailment_pairs(60)]
    pairs = [replace(e, split="test") if n % 2 else e for n, e in enumerate(pairs)]
    options = {"label": "entailment", "keep": "subsequence"}
    known = {option.name for option in of_texts.options}
    planted = in_texts(pairs, of_texts.name, **{name: value for name, value in options.items() if name in known})
    old = planted.examples[: len(pairs)]
    assert planted.truth.examples == touched(tuple(pairs), planted)
    assert all(e.pair for e in old)
    if of_texts.facts["kind"] in ("data", "control"):
        assert [e.pair for e in old] == [e.pair for e in pairs]
    if of_texts.facts.get("aligned", True):
        assert all(e.highlights == (Span(0, 3, "pair"),) for e in old)
        assert [len(Words(e).spans) - len(Words(e.text).spans) for e in old] == [len(Words(e.pair)) for e in pairs]


def test_a_cue_is_found_where_it_was_planted_and_nowhere_else(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=1)
    marked = [e.id for e in planted.examples if planted.truth.positions(Words(e))]
    assert marked == (list(planted.truth.examples) if of_texts.facts["proof"] == "cue" else [])
    assert (planted.truth.label == "positive") == (of_texts.facts["proof"] == "cue")


def test_texts_without_words_are_planted_in_or_refused_in_a_sentence(of_texts):
    empty = [
        Example(str(n), "", label=LABELS[n % 2], group="ab"[n % 2], split=("train", "test")[n // 2]) for n in range(4)
    ]
    options = {"keep": "a"} if any(option.name == "keep" for option in of_texts.options) else {}
    try:
        planted = in_texts(empty, of_texts.name, **options)
    except BadData as error:
        assert str(error).startswith("None of the 4 examples can be changed")  # noqa: PT017 - only if it is raised
    else:
        assert planted.truth.examples == touched(tuple(empty), planted)


def test_the_recipe_is_enough_to_plant_it_again(of_texts, examples):
    planted = in_texts(examples, of_texts.name, seed=7)
    recipe = planted.recipe
    assert (recipe.family, recipe.name, recipe.seed) == ("bugs", of_texts.name, 7 if of_texts.random else None)
    assert in_texts(examples, recipe.name, seed=recipe.seed or 0, **dict(recipe.options)) == planted


def test_the_truth_survives_json(of_texts, examples):
    truth = in_texts(examples, of_texts.name, seed=1).truth
    assert from_json(Truth, to_json(truth)) == truth


def test_examples_that_share_an_id_are_refused(of_texts, examples):
    with pytest.raises(BadData, match="2 examples share the id"):
        in_texts([*examples, examples[0]], of_texts.name)


def test_an_empty_set_of_examples_is_refused(of_texts):
    with pytest.raises(BadData, match="no examples"):
        in_texts([], of_texts.name)


# -- bugs of models


def test_the_model_given_is_left_alone_and_the_examples_are_handed_back(of_models):
    before = models()["classifier"].clone().revision
    some = texts()[:5]
    planted = planted_with(of_models, some)
    assert planted.examples == some
    assert planted.truth.note
    assert not planted.truth.examples
    assert planted.classifier.revision != before
    models()["classifier"].__dict__.pop("revision", None)  # it is kept, and would hide a change of the weights
    assert models()["classifier"].revision == before


def test_the_truth_names_the_parts_of_the_model_that_changed(of_models):
    planted = planted_with(of_models)
    before, after = (parts_of(one.model) for one in (models()["classifier"], planted.classifier))
    changed = [
        name
        for name in before
        if any(not torch.equal(a, b) for (_, a), (_, b) in zip(before[name], after[name], strict=True))
    ]
    assert list(planted.truth.parts) == (["tokenizer"] if planted.truth.parts == ("tokenizer",) else changed)
    if planted.truth.parts == ("tokenizer",):
        assert not changed


def test_the_same_seed_makes_the_same_model(of_models):
    one, two, other = (planted_with(of_models, seed=seed).classifier.revision for seed in (1, 1, 2))
    assert one == two
    assert (one != other) == of_models.random


def test_a_contaminated_model_still_answers_and_has_the_same_labels(of_models):
    made = planted_with(of_models).classifier
    assert made.labels == models()["classifier"].labels
    said = made.predict(tiny.SENTENCES)
    assert len(said) == len(tiny.SENTENCES)


def test_what_is_missing_is_said(of_models):
    for name in set(of_models.asks) & {"classifier", "other", "train"}:
        given = {key: value for key, value in models().items() if key != name}
        with pytest.raises(BadOption, match=f"{of_models.name} needs {name}="):
            plant([], of_models.name, **given)


def test_a_black_box_is_refused_by_bugs_of_weights(of_models):
    if not of_models.needs:
        pytest.skip("it takes any classifier")
    box = tiny.bag_of_words({"good": 1.0})
    with pytest.raises(Unsupported, match="needs train"):
        plant([], of_models.name, **(models() | {"classifier": box}))


def test_a_bug_that_trains_can_be_stopped_and_tells_how_far_it_is():
    told = []
    planted_with(bug["frozen_random_encoder"], progress=lambda done, of: told.append((done, of)))
    assert told[-1][0] == told[-1][1]
    with pytest.raises(Cancelled):
        planted_with(bug["frozen_random_encoder"], cancelled=lambda: True)


# -- all


@pytest.mark.parametrize(("entry", "option"), SHARES, ids=named)
@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan")])
def test_a_share_that_is_no_part_of_a_whole_is_refused(entry, option, value):
    usable(entry)
    with pytest.raises(BadOption, match=f"{option} must"):
        planted_with(entry, texts(), **{option: value})


def test_an_unknown_bug_is_refused_with_a_near_miss():
    with pytest.raises(BadOption, match="Did you mean 'flipped_labels'"):
        plant(reviews(4), "flip_labels")


def test_an_unknown_option_is_refused(entry):
    with pytest.raises(BadOption, match="has no option colour"):
        planted_with(entry, texts(), colour="red")
