"""HotFlip against its formula, one word and one text at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from unhans.counterfactuals import Constraints, Goal, find_flips, search_settings
from unhans.counterfactuals._drafts import combined, draft
from unhans.counterfactuals.hotflip import _top, hotflip
from unhans.model import TransformerClassifier
from unhans.text import Words, visible_form
from unhans.types import Edit

TEXT = "The soup was cold and the waiter was rude"
LOOSE = {"whole_words": True, "ordinary": True}


def odds(classifier: TransformerClassifier, logits: torch.Tensor, goal: Goal) -> torch.Tensor:
    """The logarithm of the odds of what is sought, from its definition."""
    chances = logits.double().softmax(-1)
    own = chances[goal.original if goal.target is None else goal.target]
    value = torch.log(own / (1 - own))
    return -value if goal.target is None else value


def gradient(classifier: TransformerClassifier, text: str, goal: Goal) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """The plain model's gradient by its word embeddings; the embeddings; the tokens."""
    told = classifier.tokenizer(text, return_tensors="pt")
    leaf = classifier.model.get_input_embeddings()(told["input_ids"]).detach().requires_grad_()
    logits = classifier.model(inputs_embeds=leaf, attention_mask=told["attention_mask"]).logits[0]
    (found,) = torch.autograd.grad(odds(classifier, logits, goal), leaf)
    return found[0], leaf[0].detach(), told["input_ids"][0].tolist()


def words_of(classifier: TransformerClassifier) -> list[tuple[str, torch.Tensor]]:
    table = classifier.model.get_input_embeddings().weight.detach()
    vocabulary = sorted(classifier.tokenizer.get_vocab().items(), key=lambda pair: pair[1])
    plain = [(word, n) for word, n in vocabulary if word.replace("'", "").replace("-", "").isalnum()]
    return [(word, table[n]) for word, n in plain]


def naive_proposals(classifier: TransformerClassifier, words: Words, edits, goal: Goal, n: int) -> list[Edit]:
    """Every word of the vocabulary for every open word of one piece, by gradient · (new - old)."""
    text = words.edited(edits).texts[0]
    gradients, olds, tokens = gradient(classifier, text, goal)
    strings = classifier.tokenizer.convert_ids_to_tokens(tokens)
    now = Words(text).strings
    found = []
    for position in set(range(len(words))) - {edit.position for edit in edits}:
        at = strings.index(now[position].lower())  # all words of the text are one piece, and different
        for new, vector in words_of(classifier):
            if visible_form(new) != visible_form(words.strings[position]):
                cased = new.capitalize() if words.strings[position][0].isupper() else new
                gain = float(gradients[at] @ (vector - olds[at]))
                found.append((gain, Edit(position, words.strings[position], cased)))
    found.sort(key=lambda pair: -pair[0])
    return [edit for _, edit in found[:n]]


@pytest.fixture(scope="module")
def classifier() -> TransformerClassifier:
    return tiny.transformer("bert", labels=3)


@pytest.fixture(scope="module")
def text(classifier: TransformerClassifier) -> str:
    """Words that are one piece each to this model's tokenizer, and occur once."""
    known = classifier.tokenizer.get_vocab()
    words = [word for word in dict.fromkeys(TEXT.lower().split()) if word in known]
    assert len(words) >= 5
    return " ".join([words[0].capitalize(), *words[1:]])


@pytest.mark.parametrize("target", [None, 0, 1])
def test_proposals_are_those_of_the_formula(classifier, text, target):
    words = Words(text)
    goal = Goal(2, target)
    rules = Constraints(search_settings({}), classifier)
    on = draft(words, (), range(len(words)), goal, "1")
    assert on is not None

    (found,) = hotflip(classifier, [on], rules, (), candidates=25)

    assert [edit for (edit,) in found] == naive_proposals(classifier, words, (), goal, 25)


@pytest.mark.parametrize("room", [1, 1000, 10**9])
def test_drafts_that_share_a_product_or_are_split_over_several_get_each_its_own_proposals(
    classifier, text, room, monkeypatch
):
    monkeypatch.setattr("unhans.counterfactuals.hotflip._ESTIMATES", room)
    rules = Constraints(search_settings({}), classifier)
    texts = [Words(text), Words(" ".join(text.split()[:2])), Words(" ".join(reversed(text.lower().split())))]
    on = [draft(words, (), range(len(words)), Goal(n), str(n)) for n, words in enumerate(texts)]

    found = hotflip(classifier, on, rules, (), candidates=12)

    for n, (words, own) in enumerate(zip(texts, found, strict=True)):
        assert [edit for (edit,) in own] == naive_proposals(classifier, words, (), Goal(n), 12)


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 5000), k=st.integers(1, 60), kinds=st.integers(1, 5000), seed=st.integers(0, 99))
def test_the_greatest_are_found_by_blocks_also_where_many_are_equal(size, k, kinds, seed):
    values = torch.from_numpy(np.random.default_rng(seed).integers(0, kinds, size).astype(np.float32))

    found, numbers = _top(values, k)

    assert torch.equal(found, values.sort(descending=True).values[:k])
    assert torch.equal(values[numbers], found)
    assert len(set(numbers.tolist())) == len(numbers)


def naive_search(classifier, words: Words, goal: Goal, steps: int, *, beam: int, candidates: int) -> float:
    """Beam search as anybody would write it: one gradient and one question at a time; the best odds it comes by."""
    best, drafts = -np.inf, [()]
    for _ in range(steps):
        scored = {}
        for edits in drafts:
            for new in naive_proposals(classifier, words, edits, goal, candidates):
                made = combined(edits, [new])
                told = classifier.tokenizer(words.edited(made).texts[0], return_tensors="pt")
                with torch.inference_mode():
                    scored[made] = float(odds(classifier, classifier.model(**told).logits[0], goal))
        drafts = sorted(scored, key=lambda made: -scored[made])[:beam]
        best = max(best, *scored.values())
    return best


def test_the_search_finds_what_a_naive_search_finds(classifier, text):
    words = Words(text)
    (before,) = classifier.predict([text])
    original = classifier.labels.index(before.label)
    beyond = min(range(3), key=lambda n: before.probabilities[n])  # the label that is farthest away
    asked = {"beam": 4, "max_edits": 4, "alternatives": 0}

    (found,) = find_flips(classifier, text, target=beyond, search=asked, candidates=3)

    chances = [step.after.probabilities[beyond] for step in found.steps]
    naive = naive_search(classifier, words, Goal(original, beyond), len(found.steps), beam=4, candidates=3)
    assert len(found.steps) > 1
    assert max(np.log(one / (1 - one)) for one in chances) == pytest.approx(naive, abs=1e-3)


def test_words_of_several_pieces_can_go_and_come(classifier):
    known = classifier.tokenizer.get_vocab()
    assert "interminable" not in known
    words = Words("The interminable film was cold")
    on = draft(words, (), [1], Goal(0), "1")
    assert on is not None
    rules = Constraints(search_settings({}), classifier)

    (gone,) = hotflip(classifier, [on], rules, (), candidates=5)
    (come,) = hotflip(classifier, [on], rules, ("unbelievably",), candidates=len(known) + 1)

    assert len(gone) == 5
    assert all(edit.position == 1 for (edit,) in gone)
    assert "unbelievably" in {edit.new for (edit,) in come}


def test_pieces_and_reserved_words_come_in_only_when_asked_for(classifier):
    words = Words("The soup was cold")
    on = draft(words, (), [3], Goal(0), "1")
    assert on is not None
    size = len(classifier.tokenizer)

    def offered(**rules: bool) -> set[str]:
        (found,) = hotflip(classifier, [on], Constraints(search_settings(rules), classifier), (), candidates=size)
        return {edit.new for (edit,) in found}

    special = set(classifier.tokenizer.all_special_tokens)
    assert not special & offered()
    assert offered(whole_words=False) > offered()
    assert not special & offered(whole_words=False)
    assert special & offered(whole_words=False, ordinary=False)


def test_new_words_are_near_the_old_ones_if_that_is_asked(classifier):
    words = Words("The soup was cold")
    on = draft(words, (), [3], Goal(0), "1")
    assert on is not None
    table = dict(words_of(classifier))
    rules = Constraints(search_settings({"similarity": 0.2}), classifier)

    (found,) = hotflip(classifier, [on], rules, (), candidates=len(classifier.tokenizer))

    near = {
        word
        for word, vector in table.items()
        if torch.cosine_similarity(vector, table["cold"], dim=0) >= 0.2 and word != "cold"
    }
    assert {edit.new for (edit,) in found} == near
    assert near


def test_the_part_of_speech_is_kept_if_that_is_asked(classifier):
    def tagger(words):
        return [len(word) % 3 for word in words]

    found = find_flips(classifier, "The soup was cold", search={"same_pos": True}, tagger=tagger)

    assert found[0].steps
    assert all(len(edit.new) % 3 == len(edit.old) % 3 for step in found[0].steps for edit in step.edits)


def test_models_of_half_precision_can_be_flipped():
    exact = tiny.transformer()
    half = TransformerClassifier(exact.copied().to(torch.bfloat16), exact.tokenizer, exact.limit, "cpu")
    assert len(find_flips(half, [TEXT], method="hotflip")) == 1
