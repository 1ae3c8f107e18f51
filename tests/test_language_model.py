"""Masked language models: fillers are Hugging Face's own numbers, for the hole that was asked about."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

import tiny
import unhans
from unhans.errors import BadData, BadModel, BadOption, Cancelled, Unsupported
from unhans.language_model import Filler, LanguageModel
from unhans.model import TransformerClassifier
from unhans.scratch import fresh_classifier
from unhans.text import Hole, Variant, Words, as_variant
from unhans.training import Schedule, Watch

KINDS = ("bert", "roberta", "distilbert", "electra", "albert", "deberta_v2", "mpnet")
TEXT = "The soup was cold and the waiter did not care."


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = tiny.save_folder(tmp_path_factory.mktemp("mlm") / kind, kind, head="MaskedLM")
        return made[kind]

    return folder


def hidden(text: Any, *positions: int) -> Variant:
    return Words(text).without(positions, Hole.MASK)


def oracle(folder: Path, *parts: str) -> torch.Tensor:
    """Probabilities at each mask of a text that contains the tokenizer's mask token, straight from Hugging Face."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    marked = [part.replace("{}", tokenizer.mask_token) for part in parts]
    inputs = tokenizer(*marked, truncation=True, max_length=tiny.LIMIT, return_tensors="pt")
    with torch.no_grad():
        probabilities = model(**inputs).logits.softmax(-1)[0]
    return probabilities[inputs["input_ids"][0] == tokenizer.mask_token_id]


def best(folder: Path, line: torch.Tensor, marks: str, k: int) -> list[tuple[str, float]]:
    """The k likeliest tokens that are words: those that begin with the mark, or (no mark) do not continue a word."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    words = {n: tokenizer.decode([n]).strip() for n in range(len(tokenizer)) if n not in tokenizer.all_special_ids}
    allowed = [
        n
        for n, word in words.items()
        if word.replace("'", "").replace("-", "").isalnum()
        and (tokens[n].startswith(marks) if marks else not tokens[n].startswith("##"))
    ]
    ranked = sorted(allowed, key=lambda n: -line[n])[:k]
    return [(words[n], float(line[n])) for n in ranked]


def same(fillers: list[Filler], wanted: list[tuple[str, float]]) -> bool:
    words = [filler.word for filler in fillers] == [word for word, _ in wanted]
    return words and [f.probability for f in fillers] == pytest.approx([p for _, p in wanted], rel=1e-3, abs=1e-7)


MARK = {"roberta": "Ġ", "mpnet": "Ġ", "albert": "▁", "deberta_v2": "▁"}


# -- filling


@pytest.mark.parametrize("kind", KINDS)
def test_fillers_are_hugging_faces_likeliest_words(folders: Any, kind: str) -> None:
    folder = folders(kind)
    ((fillers,),) = LanguageModel.open(folder).fill([hidden(TEXT, 3)], k=7)
    (line,) = oracle(folder, "The soup was {} and the waiter did not care.")
    assert same(fillers, best(folder, line, MARK.get(kind, ""), 7))


@pytest.mark.parametrize("kind", KINDS)
def test_several_holes_are_filled_in_reading_order(folders: Any, kind: str) -> None:
    folder = folders(kind)
    ((first, second),) = LanguageModel.open(folder).fill([hidden(TEXT, 6, 1)], k=3)
    lines = oracle(folder, "The {} was cold and the {} did not care.")
    assert same(first, best(folder, lines[0], MARK.get(kind, ""), 3))
    assert same(second, best(folder, lines[1], MARK.get(kind, ""), 3))
    assert first != second


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_holes_in_both_parts_of_a_pair_are_filled(folders: Any, kind: str) -> None:
    folder = folders(kind)
    ((first, second),) = LanguageModel.open(folder).fill(
        [hidden(("The soup was cold", "the film was good"), 1, 5)], k=3
    )
    lines = oracle(folder, "The {} was cold", "the {} was good")
    assert same(first, best(folder, lines[0], MARK.get(kind, ""), 3))
    assert same(second, best(folder, lines[1], MARK.get(kind, ""), 3))


def test_a_first_word_is_filled_with_tokens_that_stand_at_the_beginning(folders: Any) -> None:
    """Byte-level BPE spells a word after a blank otherwise than at the start; SentencePiece does not."""
    model = LanguageModel.open(folders("roberta"))
    (line,) = oracle(folders("roberta"), "{} soup was cold")
    raw = {token: n for n, token in enumerate(model.tokenizer.convert_ids_to_tokens(list(range(len(model.tokenizer)))))}
    for text, at in (("The soup was cold", 0), ('so "soup" was', 2), ("so (soup) was", 2)):
        ((fillers,),) = model.fill([hidden(text, at)], k=400)
        assert fillers
        assert all(filler.word in raw for filler in fillers), "each exists without a blank"
        assert all(any(f"Ġ{form}" in raw for form in (f.word, f.word.lower(), f.word.title())) for f in fillers)
    ((start,),) = model.fill([hidden("The soup was cold", 0)], k=1)
    assert start[0].probability == pytest.approx(float(line[raw[start[0].word]]), rel=1e-3)

    unigram = LanguageModel.open(folders("albert"))
    ((fillers,),) = unigram.fill([hidden(TEXT, 0)], k=5)
    (line,) = oracle(folders("albert"), "{} soup was cold and the waiter did not care.")
    assert same(fillers, best(folders("albert"), line, "▁", 5))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_words_are_neither_pieces_nor_signs_nor_control_tokens(folders: Any, kind: str) -> None:
    model = LanguageModel.open(folders(kind))
    special = set(model.tokenizer.all_special_tokens)
    for text, at in product((TEXT, "(soup) was cold"), (0, 1, 2, 3)):
        ((fillers,),) = model.fill([hidden(text, at)], k=1000)
        assert fillers
        assert all(f.word.replace("'", "").replace("-", "").isalnum() for f in fillers)
        assert special.isdisjoint(f.word for f in fillers)
        assert "ing" not in {f.word for f in fillers}  # the end of a word, and never one


def test_with_pieces_anything_but_control_tokens_may_fill(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    ((some,),) = model.fill([hidden(TEXT, 3)], k=10_000, whole_words=False)
    assert len(some) == len(model.tokenizer) - len(model.tokenizer.all_special_ids)
    assert {"ing", "."} <= {filler.word for filler in some}
    assert [f.probability for f in some] == sorted((f.probability for f in some), reverse=True)


def test_a_control_word_in_the_raw_text_is_not_filled(folders: Any) -> None:
    for kind, control in (("bert", "[MASK]"), ("roberta", "<mask>"), ("albert", "[MASK]")):
        model = LanguageModel.open(folders(kind))
        text = f"The soup was {control} cold"
        assert model.fill([as_variant(text)]) == [[]]
        (found,) = model.fill([hidden(text, 1)])
        assert len(found) == 1
        assert found[0]


def test_a_hole_beyond_the_limit_gets_no_fillers(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    text = " ".join(["soup"] * 40)
    ((seen, unseen),) = model.fill([hidden(text, 2, 35)])
    assert seen
    assert unseen == []
    assert model.fill([hidden(text, 35)]) == [[[]]]


def test_holes_of_a_cut_pair_are_not_mixed_up(folders: Any) -> None:
    """The first text's hole is cut off; what is found belongs to the second text's."""
    model = LanguageModel.open(folders("bert"))
    pair = (" ".join(["soup"] * 40), "the film was good")
    ((first, second),) = model.fill([hidden(pair, 39, 41)], k=3)
    lines = oracle(folders("bert"), " ".join(["soup"] * 40), "the {} was good")
    assert first == []
    assert same(second, best(folders("bert"), lines[0], "", 3))


def test_holes_of_a_text_cut_at_the_left_are_not_mixed_up(folders: Any) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders("bert"), truncation_side="left")
    model = LanguageModel(tiny.model("bert", head="MaskedLM"), tokenizer, tiny.LIMIT)
    ((first, second),) = model.fill([hidden(" ".join(["soup"] * 40), 2, 35)])
    assert first == []
    assert second


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta_v2"])
def test_the_company_of_other_texts_does_not_matter(folders: Any, kind: str) -> None:
    model = LanguageModel.open(folders(kind))
    variants = [hidden(text, 1, 2) for text in tiny.SENTENCES[:8]] + [hidden(TEXT, n) for n in range(5)]
    together = model.fill(variants, k=3)
    for variant, found in zip(variants, together, strict=True):
        (alone,) = model.fill([variant], k=3)
        for one, other in zip(alone, found, strict=True):
            assert same(one, [(f.word, f.probability) for f in other])


def test_texts_without_holes_and_no_texts_get_nothing(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    assert model.fill([]) == []
    assert model.fill([as_variant(TEXT), hidden(TEXT, 1), as_variant("")], k=1)[::2] == [[], []]


def test_filling_tells_its_progress_and_can_be_stopped(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    told: list[tuple[int, int]] = []
    variants = [hidden(text, 1) for text in tiny.SENTENCES] * 20
    model.fill(variants, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(variants), len(variants))
    assert told == sorted(told)
    with pytest.raises(Cancelled):
        model.fill(variants, cancelled=lambda: True)


# -- loading


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    with pytest.raises(Unsupported, match="no mask token"):
        LanguageModel(tiny.model("gpt2"), tiny.gpt_tokenizer(), tiny.LIMIT)


def test_a_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="language model"):
        LanguageModel.open(tiny.save_folder(tmp_path / "gpt", "gpt2"))


def test_a_folder_without_a_language_model_head_is_refused_but_can_be_fitted(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "classifier")
    with pytest.raises(BadModel, match="would be random"):
        LanguageModel.open(folder)
    torch.manual_seed(1)
    schedule = Schedule(epochs=1, batch_size=4)
    first = LanguageModel.fit(tiny.SENTENCES, encoder=folder, schedule=schedule)
    torch.manual_seed(2)
    again = LanguageModel.fit(tiny.SENTENCES, encoder=folder, schedule=schedule)
    other = LanguageModel.fit(tiny.SENTENCES, encoder=folder, schedule=Schedule(epochs=1, batch_size=4, seed=1))
    variants = [hidden(TEXT, 3)]
    assert first.fill(variants) == again.fill(variants)
    assert first.fill(variants) != other.fill(variants)


def test_fitting_an_encoder_starts_from_its_weights(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "classifier")
    fitted = LanguageModel.fit(tiny.SENTENCES, encoder=folder, schedule=Schedule(epochs=0))
    given = unhans.load(folder)
    assert isinstance(given, TransformerClassifier)
    for name, weight in given.model.bert.encoder.state_dict().items():
        assert torch.equal(fitted.model.bert.encoder.state_dict()[name], weight), name
    other = LanguageModel.fit(tiny.SENTENCES, encoder=folder, schedule=Schedule(epochs=0, seed=1))
    assert not torch.equal(
        fitted.model.cls.predictions.transform.dense.weight, other.model.cls.predictions.transform.dense.weight
    )  # the head is new, and drawn from the seed


# -- fitting

ANIMALS = ("cat", "dog", "horse", "cow", "sheep")
FOODS = ("soup", "bread", "rice", "cake", "salad")
COLOURS = ("red", "blue", "green", "white", "black")


def stories() -> list[str]:
    every = list(product(ANIMALS, FOODS, COLOURS))
    told = [f"the {colour} {animal} eats {food} in the garden" for animal, food, colour in every]
    return [*told, *(f"she bought a {colour} {animal} and cooked {food}" for animal, food, colour in every)]


@pytest.fixture(scope="module")
def fitted() -> LanguageModel:
    return LanguageModel.fit(
        stories(), schedule=Schedule(epochs=8, learning_rate=3e-3, batch_size=16), width=64, layers=2, max_length=16
    )


def test_a_small_model_from_scratch_learns_what_kind_of_word_goes_where(fitted: LanguageModel) -> None:
    text = "the white dog eats rice in the garden"
    fillers = fitted.fill([hidden(text, place) for place in (1, 2, 4)], k=5)
    for (found,), kind in zip(fillers, (COLOURS, ANIMALS, FOODS), strict=True):
        assert {filler.word for filler in found} == set(kind)
        assert sum(filler.probability for filler in found) > 0.8


def test_the_same_seed_fits_the_same_model() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        schedule = Schedule(epochs=1, learning_rate=2e-3, batch_size=16, seed=seed)
        return LanguageModel.fit(stories()[:60], schedule=schedule, width=32, layers=1).model.state_dict()

    first = weights(0)
    torch.manual_seed(9)
    state = torch.get_rng_state()
    again, other = weights(0), weights(1)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_a_fitted_model_can_be_saved_and_opened(fitted: LanguageModel, tmp_path: Path) -> None:
    opened = LanguageModel.open(fitted.save(tmp_path / "mlm"))
    variants = [hidden("the white dog eats rice in the garden", 1, 4)]
    assert opened.fill(variants) == fitted.fill(variants)
    assert opened.limit == fitted.limit == 16
    with pytest.raises(BadModel, match="exists already"):
        fitted.save(tmp_path / "mlm")


def test_a_stopped_fit_goes_on_and_ends_as_one_that_was_not(tmp_path: Path) -> None:
    texts, schedule = stories()[:48], Schedule(epochs=2, learning_rate=2e-3, batch_size=16)
    whole = LanguageModel.fit(texts, schedule=schedule, width=32, layers=1)
    steps: list[int] = []
    stop = Watch(progress=lambda step, _: steps.append(step), cancelled=lambda: len(steps) >= 4)
    with pytest.raises(Cancelled):
        LanguageModel.fit(texts, schedule=schedule, width=32, layers=1, checkpoints=tmp_path, watch=stop)
    resumed = LanguageModel.fit(texts, schedule=schedule, width=32, layers=1, checkpoints=tmp_path)
    variants = [hidden(texts[0], 1, 2)]
    assert resumed.fill(variants) == whole.fill(variants)
    for other in ({"width": 64}, {"layers": 2}, {"mask_share": 0.5}):
        with pytest.raises(BadOption, match="another training"):
            LanguageModel.fit(texts, schedule=schedule, checkpoints=tmp_path, **{"width": 32, "layers": 1} | other)


@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n"]])
def test_nothing_to_fit_on_is_refused(texts: list[str]) -> None:
    with pytest.raises(BadData, match="there are none"):
        LanguageModel.fit(texts)


@pytest.mark.parametrize("texts", [["good"], ["a"], ["😀😀", "日本語"], ["x " * 1000]])
def test_odd_texts_can_be_fitted_on(texts: list[str]) -> None:
    model = LanguageModel.fit(texts, schedule=Schedule(epochs=1), width=32, layers=1)
    assert all(torch.isfinite(weight).all() for weight in model.model.parameters())


def test_texts_of_a_classifiers_own_data_can_be_fitted_on_and_filled(tmp_path: Path) -> None:
    """The way of the demo: one encoder for the classifier, and a language model made of it."""
    classifier = fresh_classifier(stories(), ["a", "b"], layers=1, width=32)
    folder = classifier.save(tmp_path / "model")
    model = LanguageModel.fit(stories()[:100], encoder=folder, schedule=Schedule(epochs=1, learning_rate=1e-3))
    ((fillers,),) = model.fill([hidden(stories()[0], 2)], k=5)
    assert len(fillers) == 5
