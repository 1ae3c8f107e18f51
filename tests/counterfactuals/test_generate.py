"""generate: whole rewrites become edits of words, and the edits give the rewrite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from hypothesis import assume, given
from hypothesis import strategies as st

import tiny
from drafting import draft_of, rules_for
from unhans.counterfactuals import find_flips
from unhans.counterfactuals.generate import _changes, edits_between, generate, put_together
from unhans.errors import BadModel, BadOption, Cancelled
from unhans.text import Words, word_spans
from unhans.types import Edit, Example

BEFORE, AFTER = "The soup was cold", "The soup was not good at all"
WORDS = st.lists(st.sampled_from(("a", "b", "c", "dd", "don't", "!", "日")), max_size=8)


def saved(folder: Path, model: Any, tokenizer: Any) -> str:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def long_tokenizer() -> Any:
    """The byte-level one, with room for prompts."""
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=tiny.gpt_tokenizer().backend_tokenizer, eos_token="<|endoftext|>", model_max_length=128
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def causal(tokenizer: Any, seed: int = 0) -> Any:
    sizes = {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 128}
    ends = {"bos_token_id": tokenizer.eos_token_id, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(seed)
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=len(tokenizer), **sizes, **ends))


def seq2seq(tokenizer: Any) -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 2}
    ends = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    torch.manual_seed(0)
    return hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=len(tokenizer), **sizes, **ends))


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A causal model that has learnt one rewrite by heart."""
    tokenizer = long_tokenizer()
    model = causal(tokenizer)
    given_ids = tokenizer(f"{BEFORE} <|perturb|> [negation]")["input_ids"]
    told = tokenizer(f" {AFTER}")["input_ids"] + [tokenizer.eos_token_id]
    ids = torch.tensor([given_ids + told])
    labels = torch.tensor([[-100] * len(given_ids) + told])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        loss = model(input_ids=ids, labels=labels).loss
        if float(loss.detach()) < 0.005:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return saved(tmp_path_factory.mktemp("models") / "writer", model, tokenizer)


@pytest.fixture(scope="module")
def rewriter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A seq2seq model with a slow tokenizer, which writes nonsense."""
    tokenizer = hf.ByT5Tokenizer(model_max_length=128)
    return saved(tmp_path_factory.mktemp("models") / "rewriter", seq2seq(tokenizer), tokenizer)


def rewrites(model: str, drafts: list[Any], seed: int = 0, **options: Any) -> list[list[tuple[Edit, ...]]]:
    classifier = tiny.bag_of_words({})
    rngs = [np.random.default_rng(seed) for _ in drafts]
    return generate(classifier, drafts, rules_for(whole_words=False, ordinary=False), rngs, {}, model=model, **options)


# -- with models


def test_what_a_model_has_learnt_to_write_becomes_edits(writer: str) -> None:
    (found,) = rewrites(writer, [draft_of(BEFORE)], codes="negation")
    assert (Edit(3, "cold", "not good at all"),) in found
    classifier = tiny.bag_of_words({"not": -2.0}, bias=1.0)
    (flip,) = find_flips(classifier, BEFORE, method="generate", model=writer, codes="negation")
    assert flip.flips
    assert flip.text == AFTER
    assert len(flip.steps) == 1


@pytest.mark.parametrize("kind", ["writer", "rewriter"])
def test_the_seed_decides_and_the_state_of_torch_does_not(kind: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    drafts = [draft_of("soup", target=1)]
    asked = {"samples": 8, "prompt": "{label}: {text}"}
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = rewrites(model, drafts, **asked)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert rewrites(model, drafts, **asked) == first
    assert rewrites(model, drafts, seed=1, **asked) != first


def test_a_seq2seq_model_with_a_slow_tokenizer_proposes_too(rewriter: str) -> None:
    pair = draft_of(("soup", "good film"))
    found, none, empty = rewrites(rewriter, [pair, draft_of("soup", open_to=()), draft_of("")], samples=12)
    assert found
    assert none == empty == []
    for edits in found:
        assert {pair.words.spans[edit.position].part for edit in edits} in ({"text"}, {"pair"})


def test_a_text_that_leaves_no_room_or_has_control_words_is_not_rewritten(writer: str) -> None:
    long, control = draft_of("soup " * 300), draft_of("soup <|endoftext|> film")
    assert rewrites(writer, [long, control]) == [[], []]


def test_a_stop_is_heard(writer: str) -> None:
    with pytest.raises(Cancelled):
        generate(
            tiny.bag_of_words({}),
            [draft_of(BEFORE)],
            rules_for(),
            [np.random.default_rng(0)],
            {"cancelled": lambda: True},
            model=writer,
        )


def test_a_model_must_be_named_and_must_write(tmp_path: Path, writer: str) -> None:
    classifier = tiny.bag_of_words({})
    with pytest.raises(BadOption, match="needs model="):
        find_flips(classifier, BEFORE, method="generate")
    with pytest.raises(BadOption, match=r"no \{text\}"):
        find_flips(classifier, BEFORE, method="generate", model=writer, prompt="{code}")
    with pytest.raises(BadModel, match="would be random"):
        find_flips(classifier, BEFORE, method="generate", model=str(tiny.save_folder(tmp_path / "bert")))
    with pytest.raises(BadModel, match="no folder"):
        find_flips(classifier, BEFORE, method="generate", model=str(tmp_path / "nowhere"))


# -- from a rewrite to edits


@pytest.mark.parametrize(
    ("written", "edits"),
    [
        ("The soup was warm", (Edit(3, "cold", "warm"),)),
        ("The soup was not cold", (Edit(3, "cold", "not cold"),)),
        ("The soup was cold!", (Edit(3, "cold", "cold!"),)),
        ("The soup was very cold indeed", (Edit(3, "cold", "very cold indeed"),)),
        ("So the soup was cold", (Edit(0, "The", "So the"),)),
        ("soup was cold", (Edit(0, "The", ""),)),
        ("The", (Edit(1, "soup", ""), Edit(2, "was", ""), Edit(3, "cold", ""))),
        ("A film was cold", (Edit(0, "The", "A"), Edit(1, "soup", "film"))),
        ("A good warm film was cold", (Edit(0, "The", "A"), Edit(1, "soup", "good warm film"))),
        ("The soup was cold", ()),
        ("", tuple(Edit(n, word, "") for n, word in enumerate(BEFORE.split()))),
    ],
)
def test_edits_of_a_rewrite(written: str, edits: tuple[Edit, ...]) -> None:
    assert edits_between(draft_of(BEFORE), 0, written) == edits


@given(WORDS, WORDS)
def test_edits_give_the_rewrite(old: list[str], new: list[str]) -> None:
    written = " ".join(new)
    on = draft_of(" ".join(old))
    edits = edits_between(on, 0, written)
    assume(edits is not None)
    assert edits is not None
    assert Words(Words(" ".join(old)).edited(edits).texts[0]).strings == Words(written).strings
    assert len({edit.position for edit in edits}) == len(edits)
    assert all(edit.old != edit.new for edit in edits)


@given(WORDS, WORDS)
def test_few_rewrites_cannot_be_said_in_edits(old: list[str], new: list[str]) -> None:
    """The words that the changes put down are those of the rewrite, always; only their seams may run together."""
    written = " ".join(new)
    spans = word_spans(written)
    assume(old)
    changes = _changes(old, [written[s.start : s.end] for s in spans], written, spans)
    put_down = " ".join(changes.get(n, word) for n, word in enumerate(old))
    assert put_down.split() == written.split()


def test_only_open_words_of_the_right_part_change() -> None:
    on = draft_of(("the soup", "was cold"), [Edit(0, "the", "a warm")], open_to={1, 2, 3})
    assert edits_between(on, 0, "a warm film") == (Edit(1, "soup", "film"),)
    assert edits_between(on, 0, "a cold soup") is None  # that word was changed before, and is closed
    assert edits_between(on, 1, "was good") == (Edit(3, "cold", "good"),)
    assert edits_between(draft_of("the soup", open_to={0}), 0, "the film") is None
    assert edits_between(draft_of(""), 0, "the film") is None


def test_a_rewrite_of_another_text_altogether_is_dropped() -> None:
    old = " ".join("abcdefghijklmnop")
    assert edits_between(draft_of(old), 0, " ".join("ABCDEFGHIJKLMNOP")) is None
    assert len(edits_between(draft_of(old), 0, " ".join("ABCDEFGHIJKLmnop")) or ()) == 12


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("It is good.", "It is good."),
        ("It is [BLANK] good. [SEP] not [ANSWER]", "It is not good."),
        ("[BLANK] is [BLANK]. [SEP] She [ANSWER] not here [ANSWER]", "She is not here."),
        ("It is [BLANK] good [SEP] [EMPTY] [ANSWER]", "It is good"),
        ("It is [BLANK] and [BLANK] [SEP] good", "It is good and"),
        ("It is [SEP] not [ANSWER]", "It is"),
        ("", ""),
    ],
)
def test_answers_with_blanks_are_put_together(answer: str, wanted: str) -> None:
    assert put_together(answer) == wanted


def test_of_a_pair_one_part_is_rewritten_at_a_time(writer: str) -> None:
    pair = draft_of(Example("p", "it was", BEFORE))
    (found,) = rewrites(writer, [pair], codes="negation", samples=2)
    assert (Edit(5, "cold", "not good at all"),) in found
