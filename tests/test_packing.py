"""Packing: many rows in one forward pass, and exactly the model's own numbers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

import tiny
from unhans.attributions import attribute
from unhans.embeddings import states_of
from unhans.influences import prepare
from unhans.influences._gradients import twin
from unhans.influences._head import last_parameters
from unhans.listening import listening
from unhans.model import as_examples
from unhans.packing import MAX_PADDING, Forward, twice_differentiable
from unhans.text import Hole, Words, as_variant
from unhans.tokens import Row
from unhans.types import Example

SINGLES = ("The soup was cold", "A wonderful film, warm and funny!", "x", "", *tiny.SENTENCES)
PAIRS = (("the soup was cold", "he did not like it"), ("film", "the plot makes no sense at all, the music saves it"))
MASKED = ("bert", "roberta", "distilbert", "albert", "electra", "deberta", "deberta_v2", "mpnet")


@cache
def classifier(kind: str, labels: int = 2) -> Any:
    return tiny.transformer(kind, labels=labels)


@cache
def language_model(kind: str) -> tuple[Any, Forward]:
    model = tiny.model(kind, head="MaskedLM")
    return model, Forward(model, model.config.pad_token_id)


def own_logits(model: Any, row: Row) -> Any:
    """What the bare model says about one row, with nothing of ours around it."""
    inputs = {"input_ids": torch.tensor([row.ids])}
    if row.types is not None:
        inputs["token_type_ids"] = torch.tensor([row.types])
    with torch.inference_mode():
        return model(**inputs).logits[0].numpy()


def state(model: Any) -> Any:
    """What packing touches and must put back."""
    modules = list(model.modules())
    return (
        model.config._attn_implementation,
        [dict(module._forward_hooks) for module in modules],
        ["forward" in vars(module) for module in modules],
        model.training,
    )


# -- the model's own numbers


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("labels", [2, 3])
def test_single_texts_get_the_models_own_logits(kind: str, labels: int) -> None:
    model = classifier(kind, labels)
    rows = model.tokens.rows([as_variant(text) for text in SINGLES])

    together = np.concatenate([model.answer([rows[n] for n in batch]) for batch in model.batches(rows)])

    order = [n for batch in model.batches(rows) for n in batch]
    wanted = np.stack([own_logits(model.model, rows[n]) for n in order])
    assert together.shape == (len(rows), labels)
    np.testing.assert_allclose(together, wanted, atol=1e-5, rtol=1e-5)
    assert np.ptp(wanted, axis=0).min() > 0.1  # the texts are told apart, so a mix-up would show


@pytest.mark.parametrize("kind", tiny.ENCODERS)
def test_pairs_get_the_models_own_logits(kind: str) -> None:
    model = classifier(kind)
    rows = model.tokens.rows([as_variant(pair) for pair in PAIRS])

    wanted = np.stack([own_logits(model.model, row) for row in rows])

    np.testing.assert_allclose(np.concatenate([model.answer([row]) for row in rows]), wanted, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(model.answer(rows), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", tiny.ENCODERS)
def test_the_plain_way_gives_them_too_even_to_rows_of_different_length(kind: str) -> None:
    model = classifier(kind)
    rows = model.tokens.rows([as_variant(text) for text in (*PAIRS, ("x", "soup"))])
    wanted = np.stack([own_logits(model.model, row) for row in rows])

    with torch.inference_mode():
        found = model._forward._plain(rows, None).numpy()

    assert len({len(row) for row in rows}) > 1
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", tiny.PACKING)
def test_the_second_text_of_a_pair_has_a_say_and_so_has_its_type(kind: str) -> None:
    model = classifier(kind)
    texts = [("soup film", "film soup"), ("film soup", "soup film"), ("soup", "film film soup")]
    answers = model.answer(model.tokens.rows([as_variant(pair) for pair in texts]))

    assert np.abs(answers[0] - answers[1]).max() > 1e-3
    assert np.abs(answers[0] - answers[2]).max() > 1e-3


@pytest.mark.parametrize("kind", tiny.ENCODERS)
@pytest.mark.parametrize("hole", Hole)
def test_rows_with_hidden_words_get_the_models_own_logits(kind: str, hole: Hole) -> None:
    model = classifier(kind)
    words = Words("The soup was cold and good")
    rows = model.tokens.rows([words.without([k, k + 2], hole) for k in range(4)])

    for row in rows:
        np.testing.assert_allclose(model.answer([row])[0], own_logits(model.model, row), atol=1e-5, rtol=1e-5)
    if model._forward.packed:
        together = np.stack([own_logits(model.model, row) for row in rows])
        np.testing.assert_allclose(model.answer(rows), together, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", tiny.PACKING)
@settings(max_examples=25)
@given(lengths=st.lists(st.integers(1, tiny.LIMIT), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_any_mix_of_lengths_gives_each_row_its_own_answer(kind: str, lengths: list[int], seed: int) -> None:
    model = classifier(kind)
    rng = np.random.default_rng(seed)
    n_tokens = len(model.tokenizer)
    types = model.tokens.rows([as_variant("x")])[0].types is not None
    rows = [
        Row(tuple(rng.integers(5, n_tokens, n).tolist()), tuple(rng.integers(0, 2, n).tolist()) if types else None)
        for n in lengths
    ]

    wanted = np.stack([own_logits(model.model, row) for row in rows])

    np.testing.assert_allclose(model.answer(rows), wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", MASKED)
@settings(max_examples=10)
@given(data=st.data())
def test_a_language_model_is_read_at_the_positions_asked_for(kind: str, data: st.DataObject) -> None:
    model, forward = language_model(kind)
    sentences = data.draw(st.lists(st.sampled_from(tiny.SENTENCES), min_size=1, max_size=4))
    rows = tokens_for(kind).rows([as_variant(sentence) for sentence in sentences])
    single = data.draw(st.booleans())  # one position for each row takes another way through the last layer
    asked = [data.draw(st.lists(st.integers(0, len(row) - 1), min_size=1, max_size=1 if single else 4)) for row in rows]

    with torch.inference_mode():
        found = forward(rows, asked).numpy()

    wanted = [own_logits(model, row)[position] for row, places in zip(rows, asked, strict=True) for position in places]
    np.testing.assert_allclose(found, np.stack(wanted), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_a_language_model_may_be_asked_for_nothing_in_some_rows(kind: str) -> None:
    model, forward = language_model(kind)
    rows = tokens_for(kind).rows([as_variant(text) for text in SINGLES[:3]])

    with torch.inference_mode():
        found = forward(rows, [[1], [], [0, 1]]).numpy()

    wanted = [own_logits(model, rows[0])[1], own_logits(model, rows[2])[0], own_logits(model, rows[2])[1]]
    np.testing.assert_allclose(found, np.stack(wanted), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", tiny.PACKING)
def test_packed_logits_carry_the_same_gradients_as_plain_ones(kind: str) -> None:
    model = classifier(kind)
    rows = model.tokens.rows([as_variant(text) for text in SINGLES[:5]])
    weight = model.model.get_input_embeddings().weight

    packed = torch.autograd.grad(model._forward(rows)[:, 1].sum(), weight)[0]
    plain = torch.autograd.grad(sum(model._forward._plain([row], None)[0, 1] for row in rows), weight)[0]

    torch.testing.assert_close(packed, plain, atol=1e-4, rtol=1e-3)
    assert packed.abs().max() > 0


@pytest.mark.parametrize("kind", tiny.ENCODERS)
@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("texts", [SINGLES, PAIRS])
def test_gradients_of_a_mixed_batch_are_those_of_each_row_computed_plainly(kind: str, labels: int, texts: Any) -> None:
    model = classifier(kind, labels)
    examples = list(as_examples(texts))
    batch, targets = model.batch(examples), torch.arange(len(examples)) % labels

    found = model.gradient(model.embed(batch), batch, targets)

    for n, example in enumerate(examples):
        alone = model.batch([example])
        leaf = model.embed(alone).detach().requires_grad_()
        (wanted,) = torch.autograd.grad(model.logits(alone, leaf)[0, targets[n]], leaf)
        own = found[n][batch.mask[n].bool()]
        torch.testing.assert_close(own, wanted[0], atol=1e-5, rtol=1e-3)
        assert not found[n][~batch.mask[n].bool()].any()
    assert found.abs().max() > 0.01
    assert model._forward.differentiates == (kind in tiny.PACKING)


@pytest.mark.parametrize("kind", tiny.PACKING)
def test_so_are_second_derivatives(kind: str) -> None:
    model = classifier(kind)
    batch, targets = model.batch(list(as_examples(SINGLES[:4]))), torch.tensor([0, 1, 1, 0])
    weights = [weight for weight in model.model.parameters() if weight.requires_grad]

    def second(packed: bool) -> Any:
        leaf = model.embed(batch)
        with sdpa_kernel(SDPBackend.MATH):
            wanted = model.logits(batch, leaf, packed=packed).gather(1, targets[:, None]).sum()
            first = torch.autograd.grad(wanted, leaf, create_graph=True)[0]
            return torch.autograd.grad((first * batch.mask[..., None]).square().sum(), weights, allow_unused=True)

    found, wanted = second(True), second(False)

    compared = [(a, b) for a, b in zip(found, wanted, strict=True) if b is not None and b.any()]
    assert len(compared) > len(weights) / 2
    largest = max(float(b.abs().max()) for _, b in compared)  # some, as of keys' biases, are zero but for rounding
    for a, b in compared:
        torch.testing.assert_close(a, b, atol=1e-5 * largest, rtol=1e-2)


def test_a_model_in_training_is_not_packed_for_gradients() -> None:
    model = tiny.transformer("bert")
    batch = model.batch(list(as_examples(SINGLES[:3])))
    model.model.train()
    seen: list[Any] = []
    hook = model.model.bert.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape))

    model.gradient(model.embed(batch), batch, torch.tensor([0, 0, 0]))
    model.model.eval()
    model.gradient(model.embed(batch), batch, torch.tensor([0, 0, 0]))

    hook.remove()
    assert seen[0][:2] == batch.ids.shape
    assert seen[-1][:2] == (1, int(batch.mask.sum()))


def tokens_for(kind: str) -> Any:
    return classifier(kind).tokens


# -- which models pack


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_which_architectures_are_packed(kind: str) -> None:
    assert classifier(kind)._forward.packed == (kind in tiny.PACKING)


@pytest.mark.parametrize("kind", MASKED)
def test_which_language_models_are_packed(kind: str) -> None:
    assert language_model(kind)[1].packed == (kind in tiny.PACKING)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_batches_cost_no_padding_where_packed_and_next_to_none_elsewhere(kind: str) -> None:
    forward = classifier(kind)._forward
    lengths = np.random.default_rng(0).integers(2, tiny.LIMIT, 400).tolist()

    batches = list(forward.batches(lengths, 256))
    padded = sum(forward.padding([lengths[n] for n in batch]) for batch in batches)

    assert sorted(n for batch in batches for n in batch) == list(range(400))
    assert padded <= (0 if kind in (*tiny.PACKING, *tiny.DECODERS) else MAX_PADDING * sum(lengths))


def test_a_model_whose_packed_answers_are_off_is_run_plainly() -> None:
    model = tiny.model("bert")
    layer = model.bert.encoder.layer[0]
    real = layer.forward
    layer.forward = lambda hidden, *rest, **named: real(hidden, *rest, **named) + hidden.mean(dim=1, keepdim=True)

    forward = Forward(model, 0)

    assert not forward.packed
    row = tiny.transformer().tokens.rows([as_variant("the soup")])[0]
    with torch.inference_mode():
        np.testing.assert_allclose(forward([row])[0].numpy(), own_logits(model, row), atol=1e-5)


# -- nothing is left behind


@pytest.mark.parametrize("kind", tiny.PACKING)
def test_a_call_leaves_the_model_as_it_was(kind: str) -> None:
    model = tiny.transformer(kind)
    before, weights = state(tiny.model(kind)), {k: v.clone() for k, v in model.model.state_dict().items()}

    model.log_probs(SINGLES)

    assert state(model.model) == before
    assert all(torch.equal(value, weights[name]) for name, value in model.model.state_dict().items())


@pytest.mark.parametrize("kind", tiny.PACKING)
def test_so_does_a_call_that_breaks(kind: str) -> None:
    model = tiny.transformer(kind)
    before = state(tiny.model(kind))
    good = model.tokens.rows([as_variant("the soup was cold")])[0]
    answer = model.answer([good])
    bad = Row((10**6, *good.ids[1:]), good.types)

    with pytest.raises(IndexError):
        model.answer([good, bad])

    assert state(model.model) == before
    np.testing.assert_array_equal(model.answer([good]), answer)


@pytest.mark.parametrize("reads", [[[1]], [[0, 1]]])
def test_so_does_a_language_models(reads: list[list[int]]) -> None:
    model, forward = language_model("bert")
    before = state(model)
    row = tokens_for("bert").rows([as_variant("the soup")])[0]

    forward([row], reads)
    with pytest.raises(IndexError):
        forward([Row((10**6,) * 3, (0,) * 3)], reads)

    assert state(model) == before


def beside_each_other(works: Sequence[Callable[[], Any]], times: int) -> list[list[Any]]:
    """What each gives in a thread of its own, so many times."""
    found: list[list[Any]] = [[] for _ in works]

    def repeat(n: int) -> None:
        for _ in range(times):
            found[n].append(works[n]())

    threads = [threading.Thread(target=repeat, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_that_share_a_model_get_their_own_answers() -> None:
    model = tiny.transformer("bert")
    texts = [list(tiny.SENTENCES[n:]) for n in range(4)]
    wanted = [model.log_probs(some) for some in texts]
    found = beside_each_other([lambda some=some: model.log_probs(some) for some in texts], 10)
    for n in range(4):
        assert len(found[n]) == 10
        for answers in found[n]:
            np.testing.assert_allclose(answers, wanted[n], atol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "deberta"])  # packed, and not
def test_threads_that_share_a_model_explain_by_their_own_rules(kind: str) -> None:
    model = tiny.transformer(kind)
    methods = ("saliency", "deeplift", "guided_backprop", "lrp", "leave_one_out")
    works = [
        lambda method=method: [
            score
            for one in attribute(model, tiny.SENTENCES[:4], method=method, target="positive")
            for score in one.scores
        ]
        for method in methods
    ]
    wanted = [work() for work in works]
    for lines, right in zip(beside_each_other(works, 8), wanted, strict=True):
        assert len(lines) == 8
        for line in lines:
            np.testing.assert_allclose(line, right, rtol=1e-3, atol=1e-4)


@contextmanager
def others_asking(model: Any) -> Iterator[None]:
    """Inside, two other threads keep asking the model; outside, they have ended."""
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            model.log_probs(list(tiny.SENTENCES))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


LABELLED = [Example(str(n), text, label=("negative", "positive")[n % 2]) for n, text in enumerate(tiny.SENTENCES)]
TRACING: dict[str, dict[str, Any]] = {
    "projected_gradients": {},
    "ekfac": {"layers": 1},
    "representer": {},
    "lissa": {"depth": 3, "repeats": 1, "nearest": 4},
    "embedding_neighbours": {},
}


@pytest.mark.parametrize("method", TRACING)
def test_threads_that_share_an_index_get_their_own_scores(method: str) -> None:
    model = tiny.transformer()
    index = prepare(model, LABELLED, method=method, **TRACING[method])
    wanted = [index.scores(anchor) for anchor in LABELLED[:3]]
    with others_asking(model):
        found = beside_each_other([lambda anchor=anchor: index.scores(anchor) for anchor in LABELLED[:3]], 5)
    for lines, right in zip(found, wanted, strict=True):
        assert len(lines) == 5
        for line in lines:
            np.testing.assert_allclose(line, right, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", TRACING)
def test_an_index_is_prepared_while_others_ask_the_model(method: str) -> None:
    model = tiny.transformer()
    wanted = prepare(model, LABELLED, method=method, **TRACING[method]).scores(LABELLED[0])
    with others_asking(model):
        for _ in range(4):
            found = prepare(model, LABELLED, method=method, **TRACING[method]).scores(LABELLED[0])
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)


def test_copies_made_while_somebody_listens_do_not_listen() -> None:
    model, heard = tiny.transformer(), list[Any]()
    with listening([model.model.base_model], lambda *told: heard.append(told)):
        copies = [model.clone(), twin(model), pickle.loads(pickle.dumps(model))]
    for one in copies:
        one.log_probs(LABELLED[:2])
    assert not heard


def test_second_derivatives_are_there_until_the_last_who_needs_them_is_done() -> None:
    assert torch.backends.cuda.flash_sdp_enabled()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(twice_differentiable)
        second.enter_context(twice_differentiable)
        first.close()
        assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()


def test_parts_of_a_model_are_found_and_copied_while_others_ask_it() -> None:
    model = tiny.transformer()
    last, states, answers = last_parameters(model, 1), states_of(model, LABELLED), model.log_probs(LABELLED)
    with others_asking(model):
        for _ in range(20):
            assert last_parameters(model, 1) == last
            np.testing.assert_allclose(states_of(model, LABELLED), states, atol=1e-6)
            np.testing.assert_allclose(twin(model).log_probs(LABELLED), answers, atol=1e-6)
            np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).log_probs(LABELLED), answers, atol=1e-6)
