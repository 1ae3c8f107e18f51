"""What things cost, counted and not timed: questions to the model, cells it computes, padding, texts tokenised.

The numbers follow from what a method is. A method without an entry below fails: whoever adds one says what it costs.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import click
import pytest
import torch

import audited
import tiny
import unhans.model
from unhans.attributions import attribute, attribution
from unhans.audit import audit
from unhans.bulk import explaining
from unhans.cli import main
from unhans.counterfactuals import find_flips
from unhans.influences import influence, prepare
from unhans.model import TransformerClassifier
from unhans.project import Project
from unhans.scoring import ScoreCache
from unhans.task import rank_words, suspects
from unhans.text import Words, as_variant
from unhans.tokens import Row
from unhans.types import Example

EXAMPLES = [Example(str(n), tiny.SENTENCES[n], label="positive") for n in (0, 4, 6)]
BACKGROUND = [Example(f"b{n}", text) for n, text in enumerate(tiny.SENTENCES[:3])]
SAMPLES, STEPS, COPIES, FILLERS = 24, 20, 25, 2
WORDS = sum(len(Words(example)) for example in EXAMPLES)

# questions for all examples together, at most
QUERIES = {
    "leave_one_out": WORDS + len(EXAMPLES),
    "lime": SAMPLES * len(EXAMPLES),
    "kernel_shap": SAMPLES * len(EXAMPLES),
    "partition_shap": SAMPLES * len(EXAMPLES),
    "lime_mlm": SAMPLES * len(EXAMPLES),
    "input_marginalization": FILLERS * WORDS + len(EXAMPLES),
    "random": 0,
}
# rows that go through the model for each example, exactly; patterns read the background first
PASSES = {
    "saliency": 1,
    "input_x_gradient": 1,
    "guided_backprop": 1,
    "deconvnet": 1,
    "lrp": 1,
    "attention_rollout": 1,
    "deeplift": 2,  # the text and its reference
    "integrated_gradients": STEPS,
    "smoothgrad": COPIES,
    "smoothgrad_squared": COPIES,
    "vargrad": COPIES,
    "gradient_shap": COPIES,
    "pattern_net": 1,
    "pattern_attribution": 1,
}
PLAIN_GRADIENTS = (  # the others follow single operations, or read single modules
    "saliency",
    "input_x_gradient",
    "integrated_gradients",
    "smoothgrad",
    "smoothgrad_squared",
    "vargrad",
    "gradient_shap",
)
OPTIONS = {
    "lime": {"num_samples": SAMPLES},
    "kernel_shap": {"num_samples": SAMPLES},
    "partition_shap": {"max_evals": SAMPLES},
    "lime_mlm": {"num_samples": SAMPLES},
    "input_marginalization": {"k": FILLERS},
}


@dataclass
class Meter:
    """What a model was made to do."""

    asked: list[Row] = field(default_factory=list)  # questions that reached it
    rows: int = 0  # of all forward passes, questions not counted
    cells: int = 0  # tokens of all forward passes, with padding
    padded: int = 0
    calls: int = 0
    differentiated: int = 0  # calls with embeddings in place of tokens
    tokenised: list[str] = field(default_factory=list)
    located: list[str] = field(default_factory=list)  # tokenised to learn where in the text each token stands


class Watched:
    """A tokenizer that notes which strings it is given."""

    def __init__(self, real: Any, meter: Meter) -> None:
        self.real, self.meter = real, meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __len__(self) -> int:
        return len(self.real)

    def __call__(self, strings: list[str], **how: Any) -> Any:
        seen = self.meter.located if how.get("return_offsets_mapping") else self.meter.tokenised
        seen.extend(strings)
        return self.real(strings, **how)


@contextmanager
def metered(classifier: TransformerClassifier) -> Iterator[Meter]:
    """Inside, everything that this classifier computes is counted."""
    meter, plain, tokens = Meter(), classifier.answer, classifier.tokens
    _ = classifier.revision  # taken once and kept; it tokenises a probe
    forward = classifier._forward
    _ = forward.differentiates  # tried once and kept
    packed = forward.from_embeddings

    def answer(questions: Sequence[Row]) -> Any:
        meter.asked.extend(questions)
        return plain(questions)

    def from_embeddings(embeddings: Any, mask: Any, types: Any) -> Any:
        meter.rows += len(mask) - 1  # laid end to end, the model sees them as one
        return packed(embeddings, mask, types)

    def look(_: Any, __: Any, given: dict[str, Any]) -> None:
        ids, embeddings, mask = (given.get(name) for name in ("input_ids", "inputs_embeds", "attention_mask"))
        n, length = ids.shape if ids is not None else embeddings.shape[:2]
        meter.calls += 1
        meter.differentiated += embeddings is not None
        meter.rows += n
        meter.cells += n * length
        meter.padded += 0 if mask is None else int((mask == 0).sum())

    hook = classifier.model.register_forward_pre_hook(look, with_kwargs=True)
    classifier.answer = answer  # type: ignore[method-assign]
    forward.from_embeddings = from_embeddings  # type: ignore[method-assign]
    real, tokens.tokenizer = tokens.tokenizer, Watched(tokens.tokenizer, meter)
    try:
        yield meter
    finally:
        hook.remove()
        del classifier.answer, forward.from_embeddings
        tokens.tokenizer = real


def model_for(method: str, kind: str = "bert") -> TransformerClassifier:
    return tiny.transformer("averaging" if "plain_path" in attribution[method].needs else kind)


def explain(classifier: Any, method: str, examples: Sequence[Example] = EXAMPLES, **more: Any) -> Any:
    given = {"background": BACKGROUND, "language_model": tiny.language_model(), "target": "positive"}
    return attribute(classifier, examples, method=method, **given, **OPTIONS.get(method, {}), **more)


# -- attributions


def test_every_method_says_what_it_costs() -> None:
    assert {entry.name for entry in attribution} == QUERIES.keys() | PASSES.keys()


@pytest.mark.parametrize("method", QUERIES)
def test_a_method_that_asks_does_so_as_often_as_its_formula_says_and_never_twice(method: str) -> None:
    classifier = model_for(method)
    with metered(classifier) as meter:
        explain(classifier, method)

    assert len(meter.asked) <= QUERIES[method]
    assert len(meter.asked) >= QUERIES[method] / 2  # it does ask: equal texts are few here
    assert len(meter.asked) == len(set(meter.asked))
    assert meter.cells == sum(map(len, meter.asked))  # packed: not one cell of padding


@pytest.mark.parametrize("method", ["leave_one_out", "lime", "kernel_shap", "input_marginalization"])
def test_all_questions_about_some_examples_are_put_in_batches_of_the_budget(method: str) -> None:
    classifier = model_for(method)
    with metered(classifier) as meter:
        explain(classifier, method)

    assert meter.calls == ceil(meter.cells / unhans.model.TOKEN_BUDGET)


@pytest.mark.parametrize("method", [*QUERIES, *PASSES])
def test_no_method_computes_in_another_precision_than_fp32_unless_told_to(method: str) -> None:
    """Half precision takes eight times as long on processors without AVX-512, and 8 bits ruin the order of words."""
    classifier, seen = model_for(method), set()

    def look(_: Any, given: Any, out: Any) -> None:
        seen.update(one.dtype for one in (*given, out) if isinstance(one, torch.Tensor) and one.is_floating_point())

    with metered(classifier) as meter:
        for part in classifier.model.modules():
            part.register_forward_hook(look)
        explain(classifier, method)

    assert seen == ({torch.float32} if meter.calls else set())
    assert {weight.dtype for weight in classifier.model.parameters()} == {torch.float32}


def test_nothing_chooses_an_engine_by_itself() -> None:
    """Whoever takes an engine takes none by default, and only they open one."""
    for door in (attribute, explaining, Project.explain, unhans.attributions.check_usable):
        assert inspect.signature(door).parameters["engine"].default is None
    above = click.Context(main, **main.context_settings)  # a command keeps the help option of its first context
    for command in ("explain", "words"):
        assert main.commands[command].make_context(command, ["project"], above).params["engine"] is None
    root = Path(unhans.__file__).parent
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"open_engine|choose_engine|unhans\.engines|torch\.autocast", path.read_text(encoding="utf-8"))
    }
    assert users == {"engines.py", "attributions/__init__.py", "bulk/__init__.py", "project.py"}


def test_leave_one_out_asks_about_each_word_and_the_whole_and_nothing_else() -> None:
    classifier = model_for("leave_one_out")
    with metered(classifier) as meter:
        explain(classifier, "leave_one_out")

    words = [Words(example) for example in EXAMPLES]
    variants = [one.variant({}) for one in words] + [one.without([n]) for one in words for n in range(len(one))]
    assert set(meter.asked) == set(classifier.tokens.rows(variants))


def test_sampled_methods_tell_how_many_texts_they_asked_about() -> None:
    classifier = model_for("lime")
    with metered(classifier) as meter:
        found = explain(classifier, "lime", EXAMPLES[:1])

    assert found[0].asked == SAMPLES
    assert len(meter.asked) <= SAMPLES


@pytest.mark.parametrize("method", [name for name in QUERIES if name not in ("random", "lime_mlm")])
def test_where_rows_cannot_be_packed_padding_is_at_most_two_per_cent(method: str) -> None:
    classifier = model_for(method, "deberta")
    with metered(classifier) as meter:
        explain(classifier, method)

    assert meter.cells > 0
    assert meter.padded <= 0.02 * meter.cells


@pytest.mark.parametrize("method", PASSES)
def test_a_method_that_differentiates_passes_each_text_as_often_as_its_formula_says(method: str) -> None:
    classifier = model_for(method)
    with metered(classifier) as meter:
        explain(classifier, method)

    before = len(BACKGROUND) if method.startswith("pattern") else 0
    assert meter.rows - before == PASSES[method] * len(EXAMPLES)
    room = unhans.model.TOKEN_BUDGET // 2 // int(classifier.batch(EXAMPLES).mask.sum())
    steps = PASSES[method] if method in PLAIN_GRADIENTS else 1
    assert meter.calls - bool(before) == ceil(steps / room)  # all examples together, as many steps as the budget allows
    assert not meter.asked


@pytest.mark.parametrize("method", PLAIN_GRADIENTS)
def test_gradients_cost_not_one_cell_of_padding(method: str) -> None:
    classifier = model_for(method)
    tokens = int(classifier.batch(EXAMPLES).mask.sum())
    assert tokens < classifier.batch(EXAMPLES).ids.numel()
    with metered(classifier) as meter:
        explain(classifier, method)

    assert meter.cells == PASSES[method] * tokens


@pytest.mark.parametrize("method", ["integrated_gradients", "smoothgrad", "gradient_shap"])
def test_as_many_steps_go_together_as_half_a_batch_has_room_for(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = model_for(method)
    tokens = int(classifier.batch(EXAMPLES).mask.sum())
    monkeypatch.setattr(unhans.model, "TOKEN_BUDGET", 2 * 8 * tokens)
    with metered(classifier) as meter:
        explain(classifier, method)

    assert meter.calls == ceil(PASSES[method] / 8)


def test_where_padding_is_computed_it_takes_room_from_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = model_for("integrated_gradients", "deberta")  # which is not packed
    some = [Example(str(n), text) for n, text in enumerate(["soup", "soup", "soup", tiny.SENTENCES[0]])]
    room = 4 * classifier.batch(some).ids.numel()
    monkeypatch.setattr(unhans.model, "TOKEN_BUDGET", 2 * room)
    with metered(classifier) as meter:
        explain(classifier, "integrated_gradients", some, batch_size=4)

    assert meter.calls == STEPS / 4
    assert meter.cells == meter.calls * room


def test_examples_of_like_length_share_a_batch_whatever_their_order() -> None:
    classifier = model_for("input_x_gradient")
    texts = ["good soup", "the soup was cold and the waiter did not care"] * 4
    some = [Example(str(n), text) for n, text in enumerate(texts)]
    with metered(classifier) as meter:
        explain(classifier, "input_x_gradient", some, batch_size=4)

    assert (meter.calls, meter.rows, meter.padded) == (2, 8, 0)


@pytest.mark.parametrize("method", [*QUERIES, *PASSES])
def test_no_string_is_tokenised_twice(method: str) -> None:
    classifier = model_for(method)
    with metered(classifier) as meter:
        classifier.predict(EXAMPLES)
        explain(classifier, method)
        first, places = list(meter.tokenised), list(meter.located)
        explain(classifier, method)

    assert first
    assert len(first) == len(set(first))
    assert len(places) == len(set(places))  # of chunks with several words, for gradients are added up by word
    assert (meter.tokenised, meter.located) == (first, places)  # the second time all of it is known


@pytest.mark.parametrize("method", ["leave_one_out", "lime", "kernel_shap", "partition_shap"])
def test_with_a_cache_the_same_explanation_asks_nothing(method: str) -> None:
    classifier, cache = model_for(method), ScoreCache()
    with metered(classifier) as meter:
        explain(classifier, method, cache=cache)
        asked = len(meter.asked)
        explain(classifier, method, cache=cache)

    assert len(meter.asked) == asked > 0


# -- flips, tasks, audits, traces


def test_a_search_takes_one_gradient_pass_a_step_for_all_drafts_of_all_examples() -> None:
    classifier, edits, beam = tiny.transformer(), 3, 2
    with metered(classifier) as meter:
        found = find_flips(
            classifier, EXAMPLES, method="hotflip", search={"max_edits": edits, "beam": beam}, candidates=3
        )

    assert found
    assert 1 <= meter.differentiated <= edits
    assert len(meter.asked) == len(set(meter.asked))


def test_a_search_asks_about_no_more_texts_than_there_are_candidates() -> None:
    classifier, edits, beam, candidates = tiny.transformer(), 2, 2, 3
    with metered(classifier) as meter:
        find_flips(
            classifier,
            EXAMPLES,
            method="hotflip",
            search={"max_edits": edits, "beam": beam, "alternatives": 0},
            candidates=candidates,
        )

    drafts = 1 + (edits - 1) * beam
    subsets = 2**edits  # of what flips, to find what of it is needed
    assert len(meter.asked) <= len(EXAMPLES) * (1 + drafts * candidates * subsets)


def test_words_are_ranked_without_asking_and_suspects_are_asked_about_once_for_each_text_they_stand_in() -> None:
    classifier = tiny.transformer()
    found = explain(classifier, "leave_one_out")
    with metered(classifier) as meter:
        rank_words(found, label="positive")
        assert meter.calls == 0
        suspects(classifier, EXAMPLES, found, candidates=5)

    occurrences = sum(len(set(Words(example).strings)) for example in EXAMPLES)
    assert 0 < len(meter.asked) <= min(occurrences, 5 * len(EXAMPLES))
    assert len(meter.asked) == len(set(meter.asked))
    assert meter.calls == 1


def test_a_whole_audit_asks_about_hardly_any_text_twice() -> None:
    asked: Counter[Any] = Counter()

    def says(text: Any) -> float:
        asked[text] += 1
        return audited.sensible(text)

    audit(audited.model(says), audited.reviews()[:60], train=audited.reviews()[60:100])

    # detectors and doubts ask for themselves, past the audit's cache; so does what follows the words of explanations
    assert len(asked) > 1000
    assert asked.total() <= 1.3 * len(asked)
    assert max(asked.values()) <= 2


PROBE = 3  # tokens of one word, which methods on the head try each time to learn what the head reads
READS_AGAIN = {"ekfac"}  # keeps the curvature alone
KEPT = [entry.name for entry in influence if entry.facts.get("keeps") and entry.name not in READS_AGAIN]


def labelled(classifier: TransformerClassifier, n: int) -> list[Example]:
    texts = tiny.SENTENCES[:n]
    return [Example(f"t{n}", text, label=classifier.labels[n % 2]) for n, text in enumerate(texts)]


def tokens_of(classifier: TransformerClassifier, examples: Sequence[Example]) -> int:
    return sum(map(len, classifier.tokens.rows(map(as_variant, examples))))


@pytest.mark.parametrize("method", KEPT)
def test_an_anchor_costs_one_pass_and_the_kept_training_examples_none(method: str, tmp_path: Any) -> None:
    classifier = tiny.transformer()
    anchor = Example("a", "Is the soup good?", label="positive")
    states = [(classifier, 0.1)] if method == "tracin" else []
    opened = []
    for n in (4, 12):
        how: dict[str, Any] = {"method": method, "folder": tmp_path / str(n), "checkpoints": states}
        prepare(classifier, labelled(classifier, n), **how)
        with metered(classifier) as meter:  # a copy of the model, which some methods make, is counted with it
            index = prepare(classifier, labelled(classifier, n), **how)
            opened.append(meter.cells)
            index.scores(anchor)

    own = tokens_of(classifier, [anchor])
    assert opened[0] == opened[1]  # a text or two is tried to learn what the layers are; no training example is read
    assert own <= meter.cells - opened[1] <= own + PROBE


def test_an_index_is_built_in_one_pass_over_the_training_examples(tmp_path: Any) -> None:
    classifier = tiny.transformer()
    cells = []
    for n in (4, 12):
        with metered(classifier) as meter:
            prepare(classifier, labelled(classifier, n), folder=tmp_path / str(n))
        cells.append(meter.cells)

    assert cells[1] - cells[0] == tokens_of(classifier, labelled(classifier, 12)[4:])
