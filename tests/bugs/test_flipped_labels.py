"""Wrong labels."""

from collections import Counter
from dataclasses import replace

import pytest

from unhans.bugs import plant
from unhans.demo_data import reviews
from unhans.errors import BadData
from unhans.types import Example


@pytest.mark.parametrize(("share", "n", "wrong"), [(0.1, 200, 20), (0.0, 50, 0), (1.0, 50, 50), (0.25, 10, 2)])
def test_exactly_the_asked_share_of_labels_changes(share, n, wrong):
    examples = reviews(n, seed=2)
    planted = plant(examples, "flipped_labels", share=share)
    assert sum(a.label != b.label for a, b in zip(examples, planted.examples, strict=True)) == wrong


def test_the_truth_remembers_every_label_that_was_replaced():
    examples = reviews(100, seed=2)
    planted = plant(examples, "flipped_labels", share=0.3)
    was = dict(planted.truth.was)
    assert tuple(was) == planted.truth.examples
    restored = tuple(replace(e, label=was.get(e.id, e.label)) for e in planted.examples)
    assert restored == tuple(examples)


def test_with_many_labels_every_other_label_is_used():
    examples = [Example(str(i), "text", label="abcd"[i % 4]) for i in range(800)]
    planted = plant(examples, "flipped_labels", share=1.0)
    moves = Counter((a.label, b.label) for a, b in zip(examples, planted.examples, strict=True))
    assert len(moves) == 12
    assert min(moves.values()) > 40
    assert all(old != new for old, new in moves)


def test_texts_without_a_label_stay_without_and_do_not_count():
    examples = [Example(str(i), "text", label="ab"[i % 2] if i < 20 else None) for i in range(100)]
    planted = plant(examples, "flipped_labels", share=0.5)
    assert planted.examples[20:] == tuple(examples[20:])
    assert len(planted.truth.examples) == 10


def test_one_label_alone_cannot_be_flipped():
    with pytest.raises(BadData, match="two or more; there is: a"):
        plant([Example("1", "text", label="a")], "flipped_labels")
