"""What single fixes promise beyond the laws; adapters; how an epoch is chosen; what goes on after a kill."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import shortcut
import tiny
from shortcut import CUE, correction, vote
from unhans.errors import BadData, Cancelled
from unhans.fixes import mend, with_word, without
from unhans.training import Watch, accuracy
from unhans.types import Example

LONG = {"epochs": 15, "learning_rate": 1e-3, "patience": 0, "batch_size": 16}


def test_words_are_taken_out_and_put_in_where_they_belong():
    pair = Example("e", "the soup was cold.", "He left.", label="x")
    assert without(pair, [1, 5]).parts == ("the was cold.", "left.")
    assert without(pair, []) is pair
    places = {with_word(pair, "zyx", where).text for where in np.linspace(0, 0.999, 50)}
    assert {"zyx the soup was cold.", "the zyx soup was cold.", "the soup was cold. zyx"} <= places
    assert all(with_word(pair, "zyx", where).pair == "He left." for where in (0.0, 0.5, 0.99))
    assert with_word(Example("e", ""), "zyx", 0.3).text == "zyx"


def test_the_loss_of_occlusion_is_the_change_when_the_word_goes():
    """With all weights as they are (no rate to speak of), the first step's loss is the formula's."""
    given, train = shortcut.classifier(), shortcut.texts()
    training = {"epochs": 1, "learning_rate": 1e-12, "patience": 0, "batch_size": len(train)}
    asked = {"insert": 0.0, "relearn": 0.0, "strength": 0.5}
    given = given.clone()
    for part in given.model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    made = mend(given, train, [vote()], fix="occlusion_regularisation", training=training, **asked)
    touched = [e for e in train if CUE in e.text.split()]
    bare = [Example(e.id, e.text.replace(f"{CUE} ", "")) for e in touched]

    def lead(examples):  # of positive over the mean of both labels
        logs = given.log_probs(examples)
        return logs[:, 1] - logs.mean(axis=1)

    assert made.epochs[0].extra == pytest.approx(0.5 * np.mean((lead(touched) - lead(bare)) ** 2), rel=1e-3)


def test_balancing_makes_a_word_tell_nothing():
    train, reversed_ = shortcut.texts(), shortcut.texts(of="negative")
    made = mend(shortcut.classifier(), train, [vote()], fix="word_balancing", training=LONG).classifier
    assert accuracy(shortcut.classifier(), reversed_) < 0.3
    assert accuracy(made, reversed_) > 0.9


def test_an_erased_word_cannot_be_read():
    train = shortcut.texts()
    made = mend(shortcut.classifier(), train, [vote()], fix="embedding_erasure", training={"epochs": 1}).classifier
    row = made.tokenizer.convert_tokens_to_ids(CUE)
    table = made.model.get_input_embeddings().weight
    erased = mend(shortcut.classifier(), train, [vote()], fix="embedding_erasure", training={"epochs": 0}).classifier
    assert torch.equal(table[row], erased.model.get_input_embeddings().weight[row])
    for to, norm in (("zero", 0.0), ("unk", None)):
        one = mend(shortcut.classifier(), train, [vote()], fix="embedding_erasure", training={"epochs": 0}, to=to)
        weights = one.classifier.model.get_input_embeddings().weight
        wanted = weights[one.classifier.tokenizer.unk_token_id] if norm is None else torch.zeros_like(weights[0])
        assert torch.equal(weights[row], wanted)


def test_a_word_whose_pieces_others_need_is_not_erased():
    texts = [("xaby", "positive"), ("x aby", "negative"), ("xa xb xy", "negative")]  # read letter by letter
    train = [Example(str(n), text, label=label) for n, (text, label) in enumerate(texts)]
    with pytest.raises(BadData, match="pieces that other words share"):
        mend(tiny.transformer(), train, [vote("xaby")], fix="embedding_erasure")


def test_corrected_labels_are_learned():
    train = shortcut.texts(cue=None)
    start = shortcut.classifier()
    turned = [e for e in train if "bad" in e.text.split()]
    made = mend(start, train, [correction(e.id, "positive") for e in turned], fix="relabel", training=LONG)
    found = made.classifier.predict(turned).labels
    assert found.count("positive") > 0.9 * len(turned)
    assert made.touched == len(turned)


def test_texts_that_no_label_fits_are_trained_without():
    train = shortcut.texts()[:12]
    asked = [correction(e.id, None) for e in train[:4]] + [correction(train[4].id, "positive")]
    steps = []
    watch = Watch(on_step=lambda *step: steps.append(step))
    training = {"epochs": 1, "batch_size": 1}
    made = mend(tiny.transformer(), train, asked, fix="relabel", training=training, watch=watch)
    assert len(steps) == 8
    assert made.touched == 5
    assert set(made.used) == {one.id for one in asked}
    everything = [correction(e.id, None) for e in train]
    with pytest.raises(BadData, match=r"every training example .* Nothing was trained"):
        mend(tiny.transformer(), train, everything, fix="relabel", training=training)


def test_a_tie_between_people_teaches_nothing_and_a_majority_does():
    train = shortcut.texts()
    tie = [vote(), vote(CUE, "raise", author="bob")]
    with pytest.raises(BadData, match="as many said one thing as the other"):
        mend(shortcut.classifier(), train, tie)
    made = mend(shortcut.classifier(), train, [*tie, vote(author="eve")], training={"epochs": 0})
    assert set(made.used) == {vote().id, vote(author="eve").id}


def test_only_raising_votes_give_dropping_nothing_to_do():
    for name in ("word_dropout", "word_balancing", "embedding_erasure"):
        with pytest.raises(BadData, match="count less"):
            mend(shortcut.classifier(), shortcut.texts(), [vote("good", "raise")], fix=name)


def test_replay_decides_how_many_untouched_texts_are_trained_on():
    train, steps = shortcut.texts(), {}
    for replay in (0.0, 0.5, 1.0):
        seen = []
        watch = Watch(on_step=lambda step, task, extra, seen=seen: seen.append((step, task, extra)))
        training = {"epochs": 1, "replay": replay, "batch_size": 8, "patience": 0}
        wide = [*train, Example("n", "zyx bad", label="negative")]  # some touched text of the other label
        mend(shortcut.classifier(), wide, [vote()], fix="word_dropout", training=training, watch=watch)
        steps[replay] = len(seen)
    assert steps[0.0] < steps[0.5] < steps[1.0]


def test_low_rank_adapters_train_little_and_leave_a_plain_model(tmp_path):
    given, train = shortcut.classifier(), shortcut.texts()
    same = mend(given, train, [vote()], training={"epochs": 0, "lora": 4}).classifier
    assert same.revision == given.clone().revision
    made = mend(given, train, [vote()], fix="word_balancing", training=LONG | {"lora": 4, "learning_rate": 3e-3})
    assert type(made.classifier.model) is type(given.model)
    assert made.classifier.model.state_dict().keys() == given.model.state_dict().keys()
    before, after = given.model.state_dict(), made.classifier.model.state_dict()
    assert before["bert.embeddings.word_embeddings.weight"].equal(after["bert.embeddings.word_embeddings.weight"])
    query = "bert.encoder.layer.0.attention.self.query.weight"
    change = after[query] - before[query]
    assert 0 < int(torch.linalg.matrix_rank(change, tol=1e-5)) <= 4
    assert not np.allclose(made.classifier.log_probs(train), given.log_probs(train), atol=0.1)
    assert all(weight.requires_grad for weight in made.classifier.model.parameters())
    folder = made.classifier.save(tmp_path / "plain")
    assert not list(folder.glob("adapter*"))


def test_the_epoch_is_not_chosen_for_the_shortcut_it_still_takes():
    """On held-out texts as they are, the model given is right already, and every epoch would be the best."""
    scores = []
    watch = Watch(on_epoch=lambda epoch: scores.append(epoch.score))
    train = shortcut.texts() + [Example(f"x{e.id}", f"{e.text} .", label=e.label) for e in shortcut.texts()]
    mend(shortcut.classifier(), train, [vote()], fix="word_dropout", training={"epochs": 1, "replay": 1.0}, watch=watch)
    assert scores[0] < 0.9


@pytest.mark.parametrize("name", ["explanation_regularisation", "word_balancing"])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(name, tmp_path):
    given, train = shortcut.classifier(), shortcut.texts()
    asked = {"fix": name, "training": {"epochs": 2, "patience": 0}, "seed": 3}
    whole = mend(given, train, [vote()], **asked).classifier.revision
    steps = []
    watch = Watch(on_step=lambda *step: steps.append(step), cancelled=lambda: len(steps) >= 4)
    with pytest.raises(Cancelled, match="unchanged"):
        mend(given, train, [vote()], checkpoints=tmp_path / "state", watch=watch, **asked)
    assert mend(given, train, [vote()], checkpoints=tmp_path / "state", **asked).classifier.revision == whole
