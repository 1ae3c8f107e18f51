"""Masked language models: fillers are Hugging Face's own numbers, for the hole that was asked about."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
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


# -- how likely a text is


def guesses(folder: Path, *parts: str, together: tuple[int, ...] | None = None) -> list[float]:
    """Log-probability of each token of a text, hidden alone (or of these, hidden together), straight from transformers.

    Token numbers count from the first one of the text, control tokens left out.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    inputs = tokenizer(
        *parts, truncation=True, max_length=tiny.LIMIT, return_tensors="pt", return_special_tokens_mask=True
    )
    own = [n for n, control in enumerate(inputs.pop("special_tokens_mask")[0].tolist()) if not control]
    found = []
    for hidden_now in [[n] for n in own] if together is None else [[own[n] for n in together]]:
        ids = inputs["input_ids"].clone()
        ids[0, hidden_now] = tokenizer.mask_token_id
        with torch.no_grad():
            lines = model(**{**inputs, "input_ids": ids}).logits[0].log_softmax(-1)
        found.extend(float(lines[n, inputs["input_ids"][0, n]]) for n in hidden_now)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_texts_likelihood_is_the_mean_over_tokens_hidden_one_at_a_time(folders: Any, kind: str) -> None:
    folder, model = folders(kind), LanguageModel.open(folders(kind))
    texts = [TEXT, "soup", ("The soup was cold", "the film was good"), tiny.SENTENCES[3]]
    found = model.log_likelihoods(texts)
    for text, value in zip(texts, found, strict=True):
        wanted = guesses(folder, *([text] if isinstance(text, str) else text))
        assert value == pytest.approx(sum(wanted) / len(wanted), rel=1e-4, abs=1e-5)


def test_a_text_without_words_has_no_likelihood(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    assert model.log_likelihoods(["", " \u200b ", ("", "")]) == [None, None, None]
    assert model.log_likelihoods([]) == []
    (some,) = model.log_likelihoods([("", "soup")])
    assert some == pytest.approx(guesses(folders("bert"), "", "soup")[0], rel=1e-4)


def test_of_a_text_that_is_too_long_what_is_read_counts(folders: Any) -> None:
    long = " ".join(["the soup was cold and"] * 12)
    (found,) = LanguageModel.open(folders("bert")).log_likelihoods([long])
    wanted = guesses(folders("bert"), long)
    assert len(wanted) == tiny.LIMIT - 2
    assert found == pytest.approx(sum(wanted) / len(wanted), rel=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta_v2"])
def test_the_company_of_other_texts_does_not_matter_to_likelihoods(folders: Any, kind: str) -> None:
    model = LanguageModel.open(folders(kind))
    together = model.log_likelihoods([*tiny.SENTENCES[:6], tiny.SENTENCES[0]])
    alone = [model.log_likelihoods([text])[0] for text in tiny.SENTENCES[:6]]
    assert together[:6] == pytest.approx(alone, rel=1e-4)
    assert together[6] == together[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_is_judged_with_all_its_tokens_hidden_at_once(folders: Any, kind: str) -> None:
    folder, model = folders(kind), LanguageModel.open(folders(kind))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text, pair = "The soups was wonderful", ("The soup was cold", "the films was good")
    asked = [(text, 1), (text, 3), (pair, 5)]
    for (whole, number), value in zip(asked, model.word_log_probs(asked), strict=True):
        parts = [whole] if isinstance(whole, str) else list(whole)
        owners = [n for m in range(len(parts)) for n in _words_of_tokens(tokenizer, parts, m)]
        wanted = guesses(folder, *parts, together=tuple(n for n, owner in enumerate(owners) if owner == number))
        assert value == pytest.approx(sum(wanted) / len(wanted), rel=1e-4, abs=1e-5)


def _words_of_tokens(tokenizer: Any, parts: list[str], number: int) -> list[int]:
    """The word under each token of one part, by character offsets; words are counted over both parts."""
    found = tokenizer(parts[number], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    before = len(" ".join(parts[:number]).split())
    return [before + len(parts[number][:end].split()) - 1 for _, end in found]


def test_a_word_beyond_the_limit_is_judged_among_those_around_it(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    filler = ["soup"] * 40
    long = " ".join([*filler[:35], "waiter", *filler[:35]])
    window, place = model.around(long, 35)
    assert len(window.split()) == tiny.LIMIT - 2
    assert window.split()[place] == "waiter"
    assert model.word_log_probs([(long, 35), (("the film", long), 37)]) == pytest.approx(
        [model.word_log_probs([(window, place)])[0]] * 2
    )


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_what_stands_around_a_word_fits_and_is_as_much_as_fits(folders: Any, kind: str) -> None:
    model = LanguageModel.open(folders(kind))
    long = " ".join(tiny.SENTENCES)
    for at, word in enumerate(Words(long).strings):
        shorter, place = model.around(long, at)
        assert shorter in long
        assert Words(shorter).strings[place] == word
        (row,) = model.tokens.rows([as_variant(shorter)])
        assert not row.cut
        assert tiny.LIMIT - 12 < len(row) <= tiny.LIMIT  # the next word would not have fitted
    assert model.around("the soup", 1) == ("the soup", 1)
    assert model.around("the cold soup", 1, room=0) == ("cold", 0)


def test_a_word_that_is_not_there_is_refused(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    for text, number in (("soup", 1), ("", 0), ("soup", -1)):
        with pytest.raises(BadOption, match=f"no word {number}"):
            model.word_log_probs([(text, number)])
    assert model.word_log_probs([]) == []


def test_what_was_learnt_is_likelier_than_what_was_not(fitted: LanguageModel) -> None:
    right, wrong = fitted.log_likelihoods(
        ["the white dog eats rice in the garden", "the white rice dog eats in the garden"]
    )
    assert right > wrong  # type: ignore[operator]
    good, bad = fitted.word_log_probs([("the white dog eats rice", 2), ("the white eats eats rice", 2)])
    assert good > bad + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_texts_embedding_is_the_mean_of_the_last_layer(folders: Any, kind: str) -> None:
    folder, model = folders(kind), LanguageModel.open(folders(kind))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    base = AutoModelForMaskedLM.from_pretrained(folder).eval().base_model
    texts: list[Any] = [TEXT, "soup", "", ("The soup was cold", "the film was good"), " ".join(["soup"] * 40)]
    found = model.embed(texts)
    assert found.shape == (5, 32)
    for text, line in zip(texts, found, strict=True):
        parts = [text] if isinstance(text, str) else list(text)
        inputs = tokenizer(*parts, truncation=True, max_length=tiny.LIMIT, return_tensors="pt")
        with torch.no_grad():
            wanted = base(**inputs).last_hidden_state[0].mean(0)
        assert line == pytest.approx(wanted.tolist(), rel=1e-3, abs=1e-4)
    assert model.embed([]).shape == (0, 32)


def test_a_slow_tokenizer_serves_as_well() -> None:
    tokenizer = hf.ByT5Tokenizer(model_max_length=64, mask_token="<mask>")
    built = tiny.model("bert", tokenizer=tokenizer, head="MaskedLM", max_position_embeddings=64)
    model = LanguageModel(built, tokenizer, 64)
    assert not tokenizer.is_fast
    whole, nothing = model.log_likelihoods(["the soup", ""])
    ids = tokenizer("the soup")["input_ids"]
    wanted = []
    for at in range(len(ids) - 1):
        masked = torch.tensor([[*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]])
        with torch.no_grad():
            wanted.append(float(built(masked).logits[0].log_softmax(-1)[at, ids[at]]))
    assert whole == pytest.approx(sum(wanted) / len(wanted), rel=1e-4)
    assert nothing is None
    assert model.word_log_probs([("the soup", 1)])[0] < 0
    assert model.embed(["the soup", ""]).shape == (2, 32)


def test_measuring_tells_its_progress_and_can_be_stopped(folders: Any) -> None:
    model = LanguageModel.open(folders("bert"))
    for measure, asked in (
        (model.log_likelihoods, tiny.SENTENCES),
        (model.embed, tiny.SENTENCES),
        (model.word_log_probs, [(text, 1) for text in tiny.SENTENCES[:6]]),
    ):
        told: list[tuple[int, int]] = []
        measure(asked, progress=lambda done, total, told=told: told.append((done, total)))  # type: ignore[operator]
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0
        with pytest.raises(Cancelled):
            measure(asked, cancelled=lambda: True)  # type: ignore[operator]
