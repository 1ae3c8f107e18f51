from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from unhans.errors import BadData, BadOption
from unhans.metrics import measure
from unhans.model import TransformerClassifier
from unhans.text import Hole, Words
from unhans.training import accuracy
from unhans.types import Example

BAG = tiny.bag_of_words({"wonderful": 2.0, "cold": -2.0})
TEST = [
    Example(str(n), f"{word} {('cold', 'wonderful')[n % 2]} soup and film", label=("negative", "positive")[n % 2])
    for n, word in enumerate(("the", "a", "no", "book", "bed", "music", "plot", "screen"))
]
TRAIN = [replace(e, id=f"t{e.id}") for e in TEST]


class Recording(TransformerClassifier):
    """Remembers the texts that it was trained on."""

    seen: tuple[list[str], ...] = ([],)

    def batch(self, examples):
        self.seen[0].extend(example.text for example in examples)
        return super().batch(examples)


@pytest.fixture
def recording():
    plain = tiny.transformer()
    Recording.seen[0].clear()
    return Recording(plain.model, plain.tokenizer, plain.limit, "cpu")


def test_the_highest_scored_words_are_deleted_from_the_training_texts(recording):
    measure(BAG, TEST, metric="roar", train=TRAIN, start=recording, models=1, epochs=1)
    own = Recording.seen[0][: len(TRAIN)]  # the random baseline is trained after it
    assert sorted(own) == sorted(e.text for e in erased(TRAIN))


def test_and_from_the_test_texts(recording):
    untrained = tiny.transformer()
    said = untrained.predict(erased(TEST)).labels
    test = [replace(e, label=label) for e, label in zip(TEST, said, strict=True)]
    grade = measure(BAG, test, metric="roar", train=TRAIN, start=recording, models=1, epochs=1, learning_rate=1e-9)
    assert grade.value == 1.0  # at this rate nothing is learned, and these are its own labels
    assert accuracy(untrained, test) < 1.0  # which it would not give to the whole texts


def erased(examples):
    return [replace(e, text=e.text.replace(" cold", "").replace(" wonderful", "")) for e in examples]


def test_random_scores_delete_other_words(recording):
    measure(BAG, TEST, metric="roar", train=TRAIN, start=recording, models=1, epochs=1)
    assert any("cold" in text or "wonderful" in text for text in Recording.seen[0][len(TRAIN) :])


def test_the_language_model_fills_training_and_test_texts(recording):
    lm = tiny.language_model()
    words = [Words(e) for e in TEST]
    guesses = [lm.fill([w.without([1], Hole.MASK)], k=1)[0][0][0].word for w in words]
    grade = measure(BAG, TEST, metric="roar_mlm", train=TRAIN, start=recording, language_model=lm, models=1, epochs=1)
    assert set(Recording.seen[0][: len(TRAIN)]) == {
        w.variant({1: g}).texts[0] for w, g in zip(words, guesses, strict=True)
    }
    assert grade.note.startswith("Favours")


def test_without_labels_there_is_no_accuracy():
    with pytest.raises(BadData, match="none of the examples has a label"):
        measure(BAG, [replace(e, label=None) for e in TEST], metric="roar", train=TRAIN, models=1, epochs=0)


def test_without_training_examples_it_says_what_to_give():
    with pytest.raises(BadOption, match="train="):
        measure(BAG, TEST, metric="roar")


def test_at_least_one_model_is_trained():
    with pytest.raises(BadOption, match="models"):
        measure(BAG, TEST, metric="roar", train=TRAIN, models=0)
