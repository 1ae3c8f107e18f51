from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import binary_cross_entropy_with_logits

import shortcut
import tiny
import unhans
from unhans.errors import BadData, BadModel, BadOption, Cancelled, Unsupported
from unhans.scratch import fresh_classifier
from unhans.select_then_predict import MARK, Selector, SelectThenPredict, only
from unhans.text import Hole, Words
from unhans.training import Schedule, Watch, accuracy
from unhans.types import Example, Span

LABELS = ("negative", "positive", "neither")
EXAMPLES = (
    Example("long", "The soup was cold and the waiter didn't care."),
    Example("short", "wonderful"),
    Example("pair", "She liked the book.", "He did not like the ending!"),
    Example("odd", "日本語 😀 [MASK] go\u200bod"),
    Example("empty", ""),
)


def marked(example, telling):
    """The example with these of its words marked, as if by people."""
    words = Words(example)
    return replace(
        example, highlights=tuple(s for s, word in zip(words.spans, words.strings, strict=True) if word in telling)
    )


@cache
def data(n_labels=2):
    """Texts that start with a word that tells the label; that word is marked in them."""
    cues = dict(zip(LABELS, ("xux", "zyx", "qoq"), strict=True))
    plain = shortcut.texts(LABELS[:n_labels], cue=None)
    return [marked(replace(e, text=f"{cues[e.label]} {e.text}"), cues.values()) for e in plain]


def untrained(examples, n_labels=2):
    texts = [text for example in examples for text in example.parts]
    return fresh_classifier(texts, LABELS[:n_labels], layers=1, width=64, max_length=32)


SCHEDULE = Schedule(epochs=10, learning_rate=3e-3, batch_size=8)


@cache
def trained(n_labels=2):
    examples = data(n_labels)
    cut = len(examples) * 3 // 4
    return SelectThenPredict.fit(
        untrained(examples, n_labels), examples[:cut], validation=examples[cut:], weight=1.0, schedule=SCHEDULE
    )


def untaught(kind="bert", labels=2, **own):
    """Both stages with random weights: laws hold for them too."""
    start = tiny.transformer(kind, labels, **own)
    return SelectThenPredict(Selector.fresh(start, seed=1), tiny.transformer(kind, labels, seed=5, **own))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_planted_highlights_and_labels_are_learned(n_labels):
    model, held_out = trained(n_labels), data(n_labels)[len(data(n_labels)) * 3 // 4 :]
    assert accuracy(model, held_out) >= 0.9
    found = model.rationales(held_out)
    assert np.mean([one.chosen == (0,) for one in found]) >= 0.9
    assert {one.revision for one in found} == {model.revision}
    assert [one.label for one in found] == model.predict(held_out).labels


def test_pairs_are_learned_on_both_texts():
    examples = [
        marked(Example(e.id, e.text.split(" ", 1)[1], e.text, label=e.label), {"xux", "zyx"}) for e in data()[:100]
    ]
    model = SelectThenPredict.fit(untrained(examples), examples, weight=1.0, only_correct=False, schedule=SCHEDULE)
    assert accuracy(model, examples) >= 0.9
    found = model.rationales(examples)
    assert np.mean([[one.words[n] for n in one.chosen] in (["xux"], ["zyx"]) for one in found]) >= 0.9


def test_what_it_says_is_what_the_predictor_says_of_the_chosen_words_alone():
    model = untaught(labels=3)
    for one, example, line in zip(model.rationales(EXAMPLES), EXAMPLES, model.log_probs(EXAMPLES), strict=True):
        masked = only(example, one.chosen)
        assert np.allclose(line, model.predictor.log_probs([masked])[0], atol=1e-4)
        assert [word for part in masked.texts for word in Words(part).strings] == [one.words[n] for n in one.chosen]


def test_words_outside_the_rationale_have_no_say_once_it_is_chosen():
    assert only(Example("x", "cold soup, again"), [0, 3]).texts == ("cold again",)
    assert only(Example("x", "one text", "and another"), [2]).texts == ("", "and")
    assert only(Example("x", "one text"), []).texts == ("",)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "deberta", "gpt2"])
def test_batch_mates_change_nothing(kind):
    model = untaught(kind)
    examples = EXAMPLES if kind != "gpt2" else EXAMPLES[:2]
    together = model.log_probs(examples)
    alone = np.concatenate([model.log_probs([example]) for example in examples])
    assert np.allclose(together, alone, atol=1e-4)
    assert np.allclose(together, model.log_probs(examples[::-1])[::-1], atol=1e-4)
    assert np.allclose(np.exp(together).sum(axis=1), 1)


def test_slow_tokenizers_work_too():
    model = untaught(tokenizer=tiny.bytes_tokenizer())
    (one,) = model.rationales(["cold soup"])
    assert one.words == ("cold", "soup")


def test_word_scores_are_the_highest_of_the_pieces_and_nothing_beyond_the_limit():
    model = untaught()
    long = Example("x", " ".join(["the unsoupable soup"] * 12))
    (one,) = model.word_scores([long])
    classifier = model.selector.classifier
    batch = classifier.batch([long])
    with torch.no_grad():
        states = classifier.model.bert(batch.ids, batch.mask, batch.types).last_hidden_state[0]
        each = torch.sigmoid(classifier.model.highlights(states)[:, 0]).tolist()
    owners = batch.owners[0].tolist()
    for n, score in enumerate(one.scores):
        own = [p for p, owner in zip(each, owners, strict=True) if owner == n]
        assert score == pytest.approx(max(own, default=0.0), abs=1e-5)
    assert one.unread
    assert not set(one.unread) & set(model.rationales([long])[0].chosen)
    assert model.unread(long)


def test_the_loss_weighs_marked_words_as_much_as_all_others():
    selector = Selector.fresh(tiny.transformer())
    first = Example("1", "the soup was cold", highlights=(Span(13, 17),))
    unmarked, all_marked = Example("2", "the soup"), Example("3", "cold", highlights=(Span(0, 4),))
    batch = selector.classifier.batch([first, unmarked, all_marked])
    logits = selector.word_logits(batch).detach()

    def each(x, y):
        return float(binary_cross_entropy_with_logits(x, torch.tensor(y)))

    others = np.mean([each(logits[0, n], 0.0) for n in range(3)])
    slow = ((each(logits[0, 3], 1.0) + others) / 2 + each(logits[2, 0], 1.0)) / 2
    assert float(selector.loss(batch).detach()) == pytest.approx(slow, rel=1e-4)
    assert selector.loss(selector.classifier.batch([unmarked])) is None


def test_the_best_epoch_is_kept_and_not_the_last():
    examples, seen = data(), []
    cut = len(examples) * 3 // 4
    train, held_out = examples[:cut], examples[cut:]
    model = SelectThenPredict.fit(
        untrained(examples),
        train,
        validation=held_out,
        weight=1.0,
        only_correct=False,
        schedule=replace(SCHEDULE, epochs=4),
        predictor_schedule=replace(SCHEDULE, epochs=1),
        watch=Watch(on_epoch=seen.append),
    )
    stage1 = [epoch.score for epoch in seen[:4]]
    assert all(epoch.extra is not None for epoch in seen[:4])
    right = accuracy(model.selector.classifier, held_out)
    chosen = model.selector.chosen(held_out, 0.5)
    f1 = np.mean([2 * (0 in some) / (1 + len(some)) for some in chosen])
    assert (right + f1) / 2 == pytest.approx(max(stage1))


def test_the_start_is_left_alone_and_progress_covers_both_stages():
    examples, told = data()[:48], []
    start = untrained(examples)
    revision = start.revision
    SelectThenPredict.fit(
        start,
        examples,
        only_correct=False,
        schedule=Schedule(epochs=1),
        watch=Watch(progress=lambda *of: told.append(of)),
    )
    del start.__dict__["revision"]  # computed anew from the weights
    assert start.revision == revision
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_training_can_be_stopped():
    with pytest.raises(Cancelled, match="unchanged"):
        SelectThenPredict.fit(untrained(data()), data(), watch=Watch(cancelled=lambda: True))


def test_a_killed_training_goes_on_to_the_same_model(tmp_path):
    examples, asked = data()[:48], []
    settings = {"only_correct": False, "schedule": Schedule(epochs=2)}
    whole = SelectThenPredict.fit(untrained(examples), examples, **settings)
    stop = Watch(cancelled=lambda: asked.append(1) or len(asked) == 4)
    with pytest.raises(Cancelled):
        SelectThenPredict.fit(untrained(examples), examples, checkpoints=tmp_path, watch=stop, **settings)
    again = SelectThenPredict.fit(untrained(examples), examples, checkpoints=tmp_path, **settings)
    assert again.revision == whole.revision
    with pytest.raises(BadOption, match="another training"):
        SelectThenPredict.fit(untrained(examples), examples, checkpoints=tmp_path, weight=9.0, **settings)


def test_without_highlights_there_is_nothing_to_learn_from():
    for nothing in (None, ()):
        bare = [replace(example, highlights=nothing) for example in data()]
        with pytest.raises(BadData, match="none of the labelled training examples has any"):
            SelectThenPredict.fit(untrained(bare), bare)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_label_that_the_first_stage_never_gets_right_is_not_lost_in_silence(n_labels):
    examples = data(n_labels)[:48]
    with pytest.raises(BadData, match=r"none with the label .* only_correct=False"):
        SelectThenPredict.fit(untrained(examples, n_labels), examples, schedule=Schedule(epochs=0))


def test_what_makes_no_sense_is_refused():
    for weight in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadOption, match="weight"):
            SelectThenPredict.fit(untrained(data()), data(), weight=weight)
    with pytest.raises(BadOption, match="threshold"):
        SelectThenPredict(Selector.fresh(tiny.transformer()), tiny.transformer(), 1.0)
    with pytest.raises(BadModel, match="same labels"):
        SelectThenPredict(Selector.fresh(tiny.transformer()), tiny.transformer(labels=3))
    with pytest.raises(Unsupported, match="state for each token"):
        Selector.fresh(tiny.transformer("averaging"))


def test_it_only_predicts_and_says_so():
    model = untaught()
    assert model.capabilities == {"predict"}
    with pytest.raises(Unsupported, match="needs gradients"):
        unhans.attribute(model, EXAMPLES[:1], method="input_x_gradient")
    with pytest.raises(Unsupported, match="Delete the words"):
        model.log_probs([Words("cold soup").without([0], Hole.MASK)])
    (one,) = unhans.attribute(model, EXAMPLES[:1])
    assert one.revision == model.revision
    assert "gradients" in model.predictor.capabilities


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_saved_and_loaded_it_says_the_same(kind, tmp_path):
    model = untaught(kind)
    examples = EXAMPLES if kind != "gpt2" else EXAMPLES[:2]
    model.save(tmp_path / "model")
    again = unhans.load(tmp_path / "model", device="cpu")
    assert isinstance(again, SelectThenPredict)
    assert again.revision == model.revision
    assert np.array_equal(again.log_probs(examples), model.log_probs(examples))
    assert again.rationales(examples) == model.rationales(examples)


def test_a_shorter_limit_is_kept_with_the_model(tmp_path):
    tiny.save_folder(tmp_path / "start")
    start = unhans.load(tmp_path / "start", max_length=12, device="cpu")
    model = SelectThenPredict(Selector.fresh(start), start, 0.3)
    model.save(tmp_path / "model")
    again = unhans.load(str(tmp_path / "model"), device="cpu")
    assert (again.selector.classifier.limit, again.predictor.limit, again.threshold) == (12, 12, 0.3)
    assert again.revision == model.revision
    assert unhans.load(tmp_path / "model", max_length=8).selector.classifier.limit == 8


def test_each_part_of_it_is_in_the_revision():
    start = tiny.transformer()
    first = SelectThenPredict(Selector.fresh(start, seed=1), start)
    others = [
        SelectThenPredict(Selector.fresh(start, seed=2), start),
        SelectThenPredict(Selector.fresh(start, seed=1), tiny.transformer(seed=3)),
        SelectThenPredict(Selector.fresh(start, seed=1), start, 0.4),
    ]
    assert SelectThenPredict(Selector.fresh(start, seed=1), start).revision == first.revision
    assert len({first.revision, *(other.revision for other in others)}) == 4


def test_the_door_refuses_damaged_folders(tmp_path):
    folder = untaught().save(tmp_path / "model")
    with pytest.raises(BadModel, match="exists already"):
        untaught().save(folder)
    with pytest.raises(BadOption, match="knows its own labels"):
        unhans.load(folder, labels=["a", "b"])
    good, head = (folder / MARK).read_text(), load_file(folder / "words.safetensors")
    told = json.loads(good)
    wrong = [told | {"format": 2}, told | {"threshold": 7.0}, told | {"limits": [0, 5]}, told | {"limits": "ab"}]
    for bad in ("", "[]", "{}", '"x"', *map(json.dumps, wrong)):
        (folder / MARK).write_text(bad)
        with pytest.raises(BadModel, match="damaged"):
            unhans.load(folder)
    (folder / MARK).write_text(good)
    for weights in (
        {"weight": head["weight"]},
        head | {"weight": torch.zeros(1, 3)},
        head | {"bias": torch.tensor([torch.nan])},
    ):
        save_file(weights, folder / "words.safetensors")
        with pytest.raises(BadModel, match="weights in"):
            unhans.load(folder)
    (folder / "words.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadModel, match="missing or damaged"):
        unhans.load(folder)
    (folder / "words.safetensors").unlink()
    with pytest.raises(BadModel, match="missing or damaged"):
        unhans.load(folder)
