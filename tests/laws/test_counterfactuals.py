"""What every generator of counterfactuals must obey, whatever it proposes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import tiny
import wordnets
from unhans.attributions import readable_words
from unhans.black_boxes import PredictFunction
from unhans.counterfactuals import counterfactual, search_settings
from unhans.counterfactuals import find_flips as plain_find_flips
from unhans.errors import BadOption, Unsupported
from unhans.text import Text, Words, word_spans
from unhans.types import Counterfactual, Edit, Example

GENERATORS = [entry.name for entry in counterfactual]
BLACK_BOX = [entry.name for entry in counterfactual if entry.needs <= {"predict"}]
OF_WORDNET = {"synonyms", "antonyms"}
EXAMPLES = (
    Example("long", "The soup was cold and the waiter didn't care."),
    Example("one", "wonderful"),
    Example("empty", ""),
    Example("signs", " ... !"),
    Example("pair", "She liked the good book.", "He did not like the bad ending!"),
    Example("odd", "日本語 😀 [MASK] go\u200bod small film"),
)


@pytest.fixture(scope="module")
def rewriter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small model that writes texts, if nonsense."""
    folder, tokenizer = tmp_path_factory.mktemp("rewriter"), tiny.gpt_tokenizer()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=128)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(params=GENERATORS)
def method(request: pytest.FixtureRequest) -> str:
    """Each generator there is."""
    if request.param in OF_WORDNET:
        wordnets.needed()
    return request.param


@pytest.fixture
def find_flips(method: str, rewriter: str):
    """`find_flips` with this generator and all that it may ask for."""
    own = {"model": rewriter, "samples": 4} if method == "generate" else {}

    def find(classifier, examples, **asked):
        asked = {"language_model": tiny.language_model(), "lexicon": ("wonderful", "interminable")} | own | asked
        return plain_find_flips(classifier, examples, method=method, **asked)

    return find


def model(labels: int = 3, kind: str = "bert"):
    return tiny.transformer(kind, labels=labels)


def asked(texts: tuple[str, ...]) -> Text:
    return (texts[0], texts[1]) if len(texts) == 2 else texts[0]


def edited(example: Example, edits) -> tuple[str, ...]:
    return Words(example).edited(edits).texts


def by_id(examples) -> dict[str, Example]:
    return {example.id: example for example in examples}


def check_flip(classifier, example: Example, flip: Counterfactual, words: Words | None = None) -> None:
    """What a counterfactual says of itself is so."""
    shown = words or readable_words(classifier, example, "word")  # what is beyond the limit does not move up
    subsets = [part for n in range(len(flip.edits) + 1) for part in combinations(flip.edits, n)]
    found = classifier.predict([asked(shown.edited(part).texts) for part in subsets])
    (published,) = classifier.predict([asked(edited(example, flip.edits))]) if words is None else found[-1:]
    reached = [p.label == flip.target if flip.target else p.label != found[0].label for p in found]
    assert found[0].label == flip.before.label
    assert published.label == flip.after.label
    np.testing.assert_allclose(published.probabilities, flip.after.probabilities, atol=1e-5)
    assert reached[-1] == flip.flips
    if flip.flips:
        assert not any(reached[:-1]), "a part of the edits flips too"
    assert edited(example, flip.edits) == ((flip.text,) if flip.pair is None else (flip.text, flip.pair))


def test_what_flips_flips_and_no_part_of_it_does(find_flips):
    classifier = model()
    flips = find_flips(classifier, EXAMPLES)
    assert [one.example for one in flips] == [example.id for example in EXAMPLES]
    for flip in flips:
        check_flip(classifier, by_id(EXAMPLES)[flip.example], flip)
        assert len(flip.edits) <= 5


def test_a_flip_of_a_text_beyond_the_limit_is_a_flip_of_the_text_that_people_see(find_flips):
    classifier = model()
    words = Words("the soup was cold and the waiter did not care about a small good film").strings
    texts = [Example(str(n), " ".join((*words[n:], *words[:n], *words[n:], *words * 3))) for n in range(6)]
    assert all(classifier.unread(example) for example in texts)
    for flip in find_flips(classifier, texts, search={"max_edits": 2, "beam": 3}):
        check_flip(classifier, by_id(texts)[flip.example], flip)


def test_a_label_can_be_sought(find_flips):
    classifier = model()
    for target in classifier.labels:
        for flip in find_flips(classifier, EXAMPLES, target=target, search={"max_edits": 2, "beam": 3}):
            assert flip.target == target
            assert flip.flips == (flip.after.label == target)
            check_flip(classifier, by_id(EXAMPLES)[flip.example], flip)


def test_only_words_that_may_be_changed_are_changed(find_flips):
    allowed = {"long": (1, 3), "pair": (0, 3), "odd": ()}
    for flip in find_flips(model(), EXAMPLES, editable=allowed):
        if flip.example in allowed:
            assert {edit.position for edit in flip.edits} <= set(allowed[flip.example])
            assert {edit.position for step in flip.steps for edit in step.edits} <= set(allowed[flip.example])


def test_undoing_the_edits_gives_the_original(find_flips):
    for flip in find_flips(model(), EXAMPLES, keep=2):
        example = by_id(EXAMPLES)[flip.example]
        original = Words(example)
        back = []
        for n, word in enumerate(original.strings):
            edit = next((one for one in flip.edits if one.position == n), None)
            assert edit is None or edit.old == word
            back += [(n, word)] if edit is None else [(n, edit.new[s.start : s.end]) for s in word_spans(edit.new)]
        rewritten = Words(Example("", flip.text, flip.pair))
        assert tuple(word for _, word in back) == rewritten.strings, "each new word is where its edit says"


def test_every_step_says_what_the_model_says_of_it(find_flips):
    classifier = model()
    for flip in find_flips(classifier, EXAMPLES):
        example, so_far = by_id(EXAMPLES)[flip.example], {}
        for step in flip.steps:
            so_far |= {edit.position: edit for edit in step.edits}
            text = edited(example, so_far.values())
            (told,) = classifier.predict([asked(text)])
            np.testing.assert_allclose(told.probabilities, step.after.probabilities, atol=1e-5)
            assert step.edits[0] not in [other.edit for other in step.alternatives]
            assert len(step.alternatives) <= 4
            assert all(other.edit.position == step.edits[0].position for other in step.alternatives)
        assert set(flip.edits) <= set(so_far.values())


def test_company_and_order_do_not_matter(find_flips):
    classifier = model(2)
    together = find_flips(classifier, EXAMPLES, search={"max_edits": 2})
    apart = [find_flips(classifier, [example], search={"max_edits": 2})[0] for example in reversed(EXAMPLES)]
    assert [(f.example, f.edits) for f in together] == [(f.example, f.edits) for f in reversed(apart)]


@pytest.mark.parametrize("kind", ["roberta", "gpt2", "deberta_v2", "slow"])
def test_other_tokenizers_work(find_flips, kind):
    slow = kind == "slow"
    roomy = {"tokenizer": tiny.bytes_tokenizer(), "max_position_embeddings": 256} if slow else {}
    classifier = tiny.transformer("bert" if slow else kind, 3, **roomy)
    examples = [example for example in EXAMPLES if kind != "gpt2" or example.pair is None]
    for flip in find_flips(classifier, examples, search={"max_edits": 2, "beam": 4}):
        check_flip(classifier, by_id(examples)[flip.example], flip)


def test_rules_are_kept(find_flips):
    search = {"protected": "soup Waiter wonderful", "part": "pair", "max_edits": 3}
    for flip in find_flips(model(), EXAMPLES, search=search):
        if flip.example != "pair":
            assert flip.edits == ()
        first = len(word_spans(by_id(EXAMPLES)["pair"].text))
        assert all(edit.position >= first for edit in flip.edits)
    for flip in find_flips(model(), EXAMPLES, search={"protected": "soup Waiter wonderful"}):
        assert not {edit.old.lower() for edit in flip.edits} & {"soup", "waiter", "wonderful"}
        for edit in flip.edits:
            assert all(
                edit.new[s.start : s.end].replace("'", "").replace("-", "").isalnum() for s in word_spans(edit.new)
            )


def test_a_search_goes_on_from_where_somebody_has_begun(find_flips):
    classifier = model()
    begun = Edit(3, "cold", "warm")
    again = find_flips(classifier, EXAMPLES[:1], start={"long": [begun]})[0]
    assert again.steps[0].edits == (begun,)
    assert len(again.edits) <= 5
    check_flip(classifier, EXAMPLES[0], again)


def test_the_model_is_shown_what_it_may_read_and_nothing_else(find_flips):
    classifier, shown = model(), {"long": (1, 2, 3, 6, 7), "pair": (0, 1, 5, 6, 7)}
    for flip in find_flips(classifier, [EXAMPLES[0], EXAMPLES[4]], reads=shown):
        example = by_id(EXAMPLES)[flip.example]
        hidden = [n for n in range(len(Words(example))) if n not in shown[flip.example]]
        check_flip(classifier, example, flip, Words(example, gone=hidden))
        assert flip.reads == shown[flip.example]
        assert {edit.position for edit in flip.edits} <= set(shown[flip.example])


def test_several_flips_of_a_text_are_different(find_flips):
    flips = find_flips(model(2), EXAMPLES[:1], keep=3)
    assert len({frozenset(flip.edits) for flip in flips}) == len(flips) <= 3
    assert len(flips) == 1 or all(flip.flips for flip in flips)


def test_a_model_that_never_changes_its_mind_has_no_flips(find_flips, method):
    if method not in BLACK_BOX:
        pytest.skip("needs gradients")
    constant = PredictFunction(lambda texts: np.tile((0.8, 0.2), (len(texts), 1)), ("no", "yes"), "constant")
    for flip in find_flips(constant, [e for e in EXAMPLES if e.pair is None], search={"max_edits": 2, "beam": 2}):
        assert not flip.flips
        assert flip.before.label == flip.after.label == "no"


def test_black_boxes_are_served_or_told_why_not(find_flips, method):
    known = tiny.bag_of_words({"cold": -2.0, "good": 2.0, "wonderful": 1.0, "not": -3.0})
    if method not in BLACK_BOX:
        with pytest.raises(Unsupported, match="Generators that work with it"):
            find_flips(known, EXAMPLES[:1])
        return
    for flip in find_flips(known, EXAMPLES[:2]):
        check_flip(known, by_id(EXAMPLES)[flip.example], flip)


def test_what_cannot_be_is_refused_with_a_sentence(find_flips):
    classifier = model()
    for wrong in (
        {"keep": 0},
        {"search": {"max_edits": 0}},
        {"search": {"max_edits": 13}},
        {"start": {"long": [Edit(1, "soup", "soup")]}},
        {"start": {"long": [Edit(1, "soup", "stew")]}, "reads": {"long": [0, 2, 3]}},
        {"start": {"long": [Edit(1, "soup", "stew"), Edit(3, "cold", "warm")]}, "search": {"max_edits": 1}},
        {"search": {"beem": 3}},
        {"editable": {"long": [99]}},
        {"editable": {"nobody": [0]}},
        {"target": "no such label"},
        {"search": {"fluency": 1.0}, "language_model": None},
    ):
        with pytest.raises(BadOption):
            find_flips(classifier, EXAMPLES[:1], **wrong)


def test_the_options_of_the_search_are_in_the_recipe(find_flips, method):
    flip = find_flips(model(), EXAMPLES[:1], search={"beam": 2})[0]
    assert flip.recipe.name == method
    assert dict(flip.recipe.options).items() >= search_settings({"beam": 2}).items()
