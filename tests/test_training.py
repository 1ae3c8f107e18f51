"""Training: from the given weights, the same for the same seed, and the same again after a kill."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import tiny
import unhans
from unhans.errors import BadData, BadOption, Cancelled, TrainingDiverged, Unsupported
from unhans.model import Batch, TransformerClassifier
from unhans.scratch import fresh_classifier
from unhans.training import Epoch, Schedule, Watch, _ramp, accuracy, as_far_as, blended, fit, similar_lengths
from unhans.types import Example

QUICK = Schedule(epochs=2, learning_rate=1e-3, batch_size=8)


def mood(n: int = 32, seed: int = 0, labels: tuple[str, ...] = ("negative", "positive")) -> list[Example]:
    """Texts in which one word tells the label."""
    rng = np.random.default_rng(seed)
    tells = ("cold", "good", "light", "hard", "quick")
    about = ("soup", "film", "phone", "room", "book", "plot")
    examples = []
    for number in range(n):
        which = number % len(labels)
        filler = " ".join(rng.choice(about, rng.integers(1, 5)))
        examples.append(Example(str(number), f"the {filler} was {tells[which]}", label=labels[which]))
    return examples


def weights(classifier: TransformerClassifier) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in classifier.model.state_dict().items()}


def cancel_after(steps: int) -> Watch:
    watch = Watch()
    done = 0

    def progress(step: int, _: int) -> None:
        nonlocal done
        done = step

    watch.progress, watch.cancelled = progress, lambda: done >= steps
    return watch


# -- what it starts from and leaves alone


def test_the_given_classifier_is_left_as_it_is() -> None:
    classifier = tiny.transformer()
    before, revision = weights(classifier), classifier.revision
    trained = fit(classifier, mood(), schedule=QUICK)
    assert trained.revision != revision
    assert all(torch.equal(weight, before[name]) for name, weight in classifier.model.state_dict().items())
    assert classifier.clone().revision == revision
    assert all(weight.grad is None for weight in classifier.model.parameters())
    assert not classifier.model.training
    assert not trained.model.training


def test_no_epochs_give_the_same_model() -> None:
    classifier = tiny.transformer()
    trained = fit(classifier, mood(), schedule=replace(QUICK, epochs=0))
    assert trained.revision == classifier.revision
    assert trained is not classifier


def test_training_starts_from_the_given_weights() -> None:
    """At a rate next to nothing, the trained model is next to the given one, and not next to another."""
    classifier = tiny.transformer()
    trained = fit(classifier, mood(), schedule=replace(QUICK, learning_rate=1e-9))
    assert trained.revision != classifier.revision
    for name, weight in weights(trained).items():
        assert torch.allclose(weight, classifier.model.state_dict()[name], atol=1e-6), name


def test_global_chance_is_neither_used_nor_changed() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    one = fit(tiny.transformer(), mood(), schedule=QUICK)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]
    assert random.getstate() == states[2]
    torch.manual_seed(2)
    assert fit(tiny.transformer(), mood(), schedule=QUICK).revision == one.revision


def test_the_same_seed_gives_the_same_model_and_another_seed_another() -> None:
    classifier = tiny.transformer()
    revisions = [fit(classifier, mood(), schedule=replace(QUICK, seed=seed)).revision for seed in (0, 0, 1)]
    assert revisions[0] == revisions[1]
    assert revisions[0] != revisions[2]


# -- that it learns


@pytest.mark.parametrize("kind", ["bert", "distilbert", "gpt2"])
def test_a_simple_task_is_learned(kind: str) -> None:
    classifier, held_out = tiny.transformer(kind), mood(40, seed=1)
    trained = fit(classifier, mood(200), schedule=Schedule(epochs=6, learning_rate=3e-3, batch_size=16))
    assert accuracy(classifier, held_out) < 0.8
    assert accuracy(trained, held_out) >= 0.95


def test_three_labels_are_learned() -> None:
    labels = tiny.label_names(3)
    trained = fit(
        tiny.transformer(labels=3),
        mood(240, labels=labels),
        schedule=Schedule(epochs=10, learning_rate=3e-3, batch_size=16),
    )
    held_out = mood(60, seed=1, labels=labels)
    assert accuracy(trained, held_out) > 0.9
    assert set(trained.predict(held_out).labels) == set(labels)


def test_pairs_are_learned_by_what_stands_in_the_second_text() -> None:
    def pairs(n: int, seed: int) -> list[Example]:
        return [replace(example, text="the soup was cold and good", pair=example.text) for example in mood(n, seed)]

    trained = fit(tiny.transformer(), pairs(200, 0), schedule=Schedule(epochs=4, learning_rate=3e-3, batch_size=16))
    assert accuracy(trained, pairs(40, 1)) > 0.9


def test_examples_without_a_label_are_left_out() -> None:
    classifier = tiny.transformer()
    some = [*mood(), *(Example(f"x{n}", "no label here") for n in range(5))]
    assert fit(classifier, some, schedule=QUICK).revision == fit(classifier, mood(), schedule=QUICK).revision


# -- the schedule


def test_the_rate_rises_over_the_warm_up_and_then_falls_to_nothing() -> None:
    rates = [_ramp(step, 100, 0.1) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(1 / 90)
    assert rates[100] == 0.0
    assert [_ramp(step, 4, 0.0) for step in range(4)] == pytest.approx([1, 1, 2 / 3, 1 / 3])
    assert _ramp(0, 1, 0.1) == 1.0
    assert all(
        0 < _ramp(step, total, share) <= 1 for total in (1, 2, 7) for step in range(total) for share in (0, 0.5, 1)
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": -1},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"learning_rate": float("inf")},
        {"warmup": 1.5},
        {"weight_decay": -0.1},
        {"seed": -1},
    ],
)
def test_a_schedule_that_could_not_be_kept_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match="A schedule has"):
        Schedule(**wrong)


def test_batches_hold_every_example_once_and_similar_lengths_together() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 1000).tolist()
    batches = similar_lengths(lengths, 16, np.random.default_rng(1))
    assert sorted(number for batch in batches for number in batch) == list(range(1000))
    assert max(map(len, batches)) == 16
    spread = np.mean([max(lengths[n] for n in batch) - min(lengths[n] for n in batch) for batch in batches])
    assert spread < 20
    order = [lengths[batch[0]] for batch in batches]
    assert order != sorted(order)


def test_progress_goes_forward_to_the_end_and_epochs_are_told() -> None:
    told: list[tuple[int, int]] = []
    epochs: list[Epoch] = []
    watch = Watch(progress=lambda step, total: told.append((step, total)), on_epoch=epochs.append)
    fit(tiny.transformer(), mood(30), validation=mood(10, seed=1), schedule=replace(QUICK, epochs=3), watch=watch)
    assert told == [(step, 12) for step in range(1, 13)]
    assert [epoch.number for epoch in epochs] == [1, 2, 3]
    assert all(epoch.loss > 0 and epoch.extra is None and 0 <= epoch.score <= 1 for epoch in epochs)


# -- the best epoch


def test_the_best_epoch_is_kept_and_training_stops_when_it_gets_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The validation scores are dictated; the model must be the one that stood at the best of them."""
    scores = iter([0.5, 0.8, 0.7, 0.8, 0.9])
    seen: list[str] = []

    def dictated(student: TransformerClassifier, examples: Any, **how: Any) -> float:
        seen.append(student.clone().revision)
        return next(scores)

    monkeypatch.setattr("unhans.training.accuracy", dictated)
    schedule = Schedule(epochs=9, learning_rate=1e-3, batch_size=8, patience=2)
    trained = fit(tiny.transformer(), mood(), validation=mood(4), schedule=schedule)
    assert len(seen) == 4  # two epochs without a better score: an equal one is not better
    assert trained.revision == seen[1]


def test_without_patience_every_epoch_runs_and_the_best_is_kept() -> None:
    epochs: list[Epoch] = []
    held_out = mood(40, seed=1)
    trained = fit(
        tiny.transformer(),
        mood(64),
        validation=held_out,
        schedule=replace(QUICK, epochs=4),
        watch=Watch(on_epoch=epochs.append),
    )
    assert len(epochs) == 4
    assert accuracy(trained, held_out) == max(epoch.score for epoch in epochs if epoch.score is not None)


# -- a second loss


def test_an_extra_loss_sees_the_batch_and_moves_the_weights() -> None:
    seen: list[Batch] = []

    def pull(student: TransformerClassifier, batch: Batch) -> torch.Tensor:
        seen.append(batch)
        return 100 * student.model.classifier.weight.square().sum()

    epochs: list[Epoch] = []
    classifier = tiny.transformer()
    schedule = Schedule(epochs=5, learning_rate=1e-2, batch_size=8)
    pulled = fit(classifier, mood(), schedule=schedule, extra_loss=pull, watch=Watch(on_epoch=epochs.append))
    plain = fit(classifier, mood(), schedule=schedule)
    assert sorted(e.id for batch in seen[:4] for e in batch.examples) == sorted(e.id for e in mood())
    assert pulled.model.classifier.weight.norm() < 0.8 * plain.model.classifier.weight.norm()
    assert epochs[0].extra > epochs[-1].extra > 0


def test_an_extra_loss_may_train_through_gradients() -> None:
    """A penalty on what one word adds to the answer makes that word add less."""

    def weight_of(student: TransformerClassifier, batch: Batch, create_graph: bool) -> torch.Tensor:
        embeddings = student.embed(batch)
        targets = torch.ones(len(batch.examples), dtype=torch.long)
        gradient = student.gradient(embeddings, batch, targets, create_graph)
        return batch.to_words((gradient * embeddings).sum(-1))[:, 0].square().mean()

    classifier = tiny.transformer()
    batch = classifier.batch(mood(8))
    before = float(weight_of(classifier, batch, False).detach())
    trained = fit(classifier, mood(64), schedule=QUICK, extra_loss=lambda s, b: 10 * weight_of(s, b, True))
    assert float(weight_of(trained, trained.batch(mood(8)), False).detach()) < 0.5 * before


def test_nothing_to_add_trains_as_usual() -> None:
    classifier = tiny.transformer()
    with_none = fit(classifier, mood(), schedule=QUICK, extra_loss=lambda *_: None)
    assert with_none.revision == fit(classifier, mood(), schedule=QUICK).revision


# -- what cannot be trained on


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ([], "no example has a label"),
        ([Example("1", "a"), Example("2", "b")], "no example has a label"),
        ([Example(str(n), "a", label="positive") for n in range(3)], "all 3 labelled examples are 'positive'"),
        ([Example("1", "a", label="positive"), Example("2", "b", label="Negative")], "label 'Negative'"),
    ],
)
def test_data_without_two_known_labels_is_refused(examples: list[Example], said: str) -> None:
    with pytest.raises(BadData, match=said):
        fit(tiny.transformer(), examples)


def test_accuracy_of_nothing_is_not_defined() -> None:
    with pytest.raises(BadData, match="not defined"):
        accuracy(tiny.transformer(), [Example("1", "a")])


def test_a_model_that_only_predicts_is_refused() -> None:
    with pytest.raises(Unsupported, match="Training needs train"):
        fit(tiny.bag_of_words({}), mood())  # type: ignore[arg-type]


# -- divergence


@pytest.mark.parametrize("what", ["rate", "inf", "nan", "gradient"])
def test_divergence_is_told_and_the_given_model_is_unchanged(what: str) -> None:
    def extra(student: TransformerClassifier, _: Batch) -> torch.Tensor:
        weight = student.model.classifier.weight
        if what == "gradient":
            return (weight.sum() * 0).sqrt()  # 0, but with an infinite slope
        return weight.sum() * float(what)

    classifier = tiny.transformer()
    revision = classifier.revision
    diverging = Schedule(epochs=30, learning_rate=1e38 if what == "rate" else 1e-3, batch_size=8)
    with pytest.raises(TrainingDiverged, match=r"diverged at step \d+ .*unchanged.*lower learning rate"):
        fit(classifier, mood(), schedule=diverging, extra_loss=None if what == "rate" else extra)
    assert classifier.clone().revision == revision


def test_a_last_step_that_diverges_gives_no_model() -> None:
    """Nothing looks at the loss after the last step, so its gradient must be looked at."""

    def extra(student: TransformerClassifier, _: Batch) -> torch.Tensor:
        return (student.model.classifier.weight.sum() * 0).sqrt()

    with pytest.raises(TrainingDiverged, match="gradient"):
        fit(tiny.transformer(), mood(8), schedule=replace(QUICK, epochs=1), extra_loss=extra)


def test_a_huge_rate_gives_finite_weights_or_a_sentence() -> None:
    try:
        trained = fit(tiny.transformer(), mood(), schedule=replace(QUICK, learning_rate=1e6, epochs=5))
    except TrainingDiverged:
        return
    assert all(torch.isfinite(weight).all() for weight in trained.model.parameters())


# -- stopping and going on


def test_a_stopped_training_goes_on_and_ends_as_one_that_was_not(tmp_path: Path) -> None:
    classifier, held_out = tiny.transformer(), mood(12, seed=1)
    schedule = replace(QUICK, epochs=3, patience=2)
    whole = fit(classifier, mood(), validation=held_out, schedule=schedule)
    for stop in (2, 5, 9):
        with pytest.raises(Cancelled, match=rf"stopped at step {stop} of 12\. .*unchanged"):
            fit(
                classifier,
                mood(),
                validation=held_out,
                schedule=schedule,
                checkpoints=tmp_path,
                watch=cancel_after(stop),
            )
    steps: list[int] = []
    watch = Watch(progress=lambda step, _: steps.append(step))
    resumed = fit(classifier, mood(), validation=held_out, schedule=schedule, checkpoints=tmp_path, watch=watch)
    assert steps == [10, 11, 12]
    assert resumed.revision == whole.revision
    again = fit(classifier, mood(), validation=held_out, schedule=schedule, checkpoints=tmp_path)
    assert again.revision == whole.revision


def test_losses_are_told_whole_after_a_stop(tmp_path: Path) -> None:
    epochs: list[Epoch] = []
    fit(tiny.transformer(), mood(), schedule=QUICK, watch=Watch(on_epoch=epochs.append))
    with pytest.raises(Cancelled):
        fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=cancel_after(2))
    resumed: list[Epoch] = []
    fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=Watch(on_epoch=resumed.append))
    assert resumed == epochs


def test_a_stop_without_checkpoints_is_a_stop() -> None:
    with pytest.raises(Cancelled):
        fit(tiny.transformer(), mood(), schedule=QUICK, watch=cancel_after(1))


@pytest.mark.parametrize("other", ["data", "labels", "validation", "schedule", "model"])
def test_checkpoints_of_another_training_are_refused(tmp_path: Path, other: str) -> None:
    with pytest.raises(Cancelled):
        fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=cancel_after(2))
    classifier = tiny.transformer(seed=1) if other == "model" else tiny.transformer()
    data = mood(32, seed=5) if other == "data" else mood()
    if other == "labels":
        data = [replace(data[0], label="positive"), *data[1:]]
    schedule = replace(QUICK, learning_rate=2e-3) if other == "schedule" else QUICK
    validation = mood(4) if other == "validation" else None
    with pytest.raises(BadOption, match="belong to another training"):
        fit(classifier, data, validation=validation, schedule=schedule, checkpoints=tmp_path)


def test_checkpoints_hold_no_pickles(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=cancel_after(6))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_text())
        else:
            with safe_open(path, framework="pt") as opened:
                assert list(opened.keys())


@pytest.mark.parametrize("left", ["new", "old", "new and old"])
def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path, left: str) -> None:
    whole = fit(tiny.transformer(), mood(), schedule=QUICK)
    with pytest.raises(Cancelled):
        fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=cancel_after(3))
    first, *others = left.split(" and ")
    (tmp_path / "current").rename(tmp_path / first)
    for other in others:
        (tmp_path / other).mkdir()
    told: list[tuple[int, bool]] = []
    watch = Watch(progress=lambda step, _: told.append((step, (tmp_path / "current" / "state.json").is_file())))
    resumed = fit(tiny.transformer(), mood(), schedule=QUICK, checkpoints=tmp_path, watch=watch)
    assert told[0] == (4, True)  # in its place again before the next save begins by clearing up
    assert resumed.revision == whole.revision


KILLER = """
import os, random, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
import tiny, test_training, unhans.training
unhans.training._SAVE_EVERY = 0.0
rng, reached, kills = random.Random(0), 0, 0
while True:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        watch = unhans.training.Watch(progress=lambda step, _: os.write(writing, f"{step}\\n".encode()))
        print("done", kills, test_training.long_training(watch, Path(sys.argv[2])), flush=True)
        os._exit(0)
    os.close(writing)
    stop_at, killed = reached + rng.randint(1, 3), False
    for step in map(int, os.fdopen(reading)):
        assert step <= reached + 2, "a step was lost"  # saved and killed before it was told is not lost
        reached = max(reached, step)
        if step >= stop_at and not killed:
            time.sleep(rng.random() * 0.02)
            os.kill(child, signal.SIGKILL)
            kills, killed = kills + 1, True
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        break
"""


def long_training(watch: Watch, checkpoints: Path | None) -> str:
    """Thirty steps; the revision at their end."""
    schedule = Schedule(epochs=6, learning_rate=1e-3, batch_size=8)
    held_out = mood(8, seed=1)
    return fit(
        tiny.transformer(), mood(40), validation=held_out, schedule=schedule, checkpoints=checkpoints, watch=watch
    ).revision


def test_a_training_that_is_killed_again_and_again_ends_as_one_that_was_not(tmp_path: Path) -> None:
    """Killed for real (SIGKILL) while it saves after every step, at moments that chance picks."""
    command = [sys.executable, "-c", KILLER, str(Path(__file__).parent), str(tmp_path / "checkpoints")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said, kills, revision = done.stdout.split()
    assert said == "done"
    assert int(kills) >= 8
    assert revision == long_training(Watch(), None)


# -- small things


def test_an_untrained_head_on_an_encoder_learns(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "encoder", head="MaskedLM")
    classifier = unhans.load(folder, labels=["negative", "positive"])
    assert isinstance(classifier, TransformerClassifier)
    trained = fit(classifier, mood(200), schedule=Schedule(epochs=4, learning_rate=3e-3, batch_size=16))
    assert accuracy(trained, mood(40, seed=1)) > 0.9


def test_a_fresh_classifier_learns() -> None:
    train = mood(200)
    fresh = fresh_classifier([e.text for e in train], ["negative", "positive"], layers=1, width=32)
    trained = fit(fresh, train, schedule=Schedule(epochs=4, learning_rate=3e-3, batch_size=16))
    assert accuracy(trained, mood(40, seed=1)) >= 0.95


# -- as far as the held-out texts allow


def test_a_blend_lies_between_and_its_ends_are_the_two() -> None:
    before = tiny.transformer()
    after = fit(before, mood(), schedule=QUICK)
    assert blended(before, after, 0.0).revision == before.clone().revision
    assert blended(before, after, 1.0).revision == after.clone().revision
    half, old, new = (weights(one) for one in (blended(before, after, 0.5), before, after))
    for name, weight in half.items():
        torch.testing.assert_close(weight, (old[name] + new[name]) / 2)


def test_no_more_accuracy_is_lost_than_allowed_and_no_less_of_the_way_is_gone_than_could_be() -> None:
    right = mood(64)
    before = fit(tiny.transformer(), right, schedule=Schedule(epochs=6, learning_rate=3e-3, batch_size=8))
    known = accuracy(before, right)
    assert known > 0.9
    wrong = [replace(e, label="positive" if e.label == "negative" else "negative") for e in right]
    after = fit(before, wrong, schedule=Schedule(epochs=6, learning_rate=3e-3, batch_size=8))
    assert accuracy(after, right) < 0.1
    made, share = as_far_as(before, after, right, 0.1)
    assert 0 < share < 1
    assert accuracy(made, right) >= known - 0.1
    assert accuracy(blended(before, after, share + 1 / 32), right) < known - 0.1
    assert as_far_as(before, after, right, 1.0) == (after, 1.0)


def test_where_nothing_may_be_lost_and_any_step_loses_the_weights_stay() -> None:
    before = tiny.transformer()
    own = [replace(e, label=before.predict(e).labels[0]) for e in mood(20)]
    # what goes to the head's biases turns every answer, and by the smallest step
    after = before.clone()
    with torch.no_grad():
        list(after.model.parameters())[-1][:] += torch.tensor(
            [-1e4, 1e4] if own[0].label == "negative" else [1e4, -1e4]
        )
    made, share = as_far_as(before, after, own, 0.0)
    assert share == 0
    assert made.revision == before.clone().revision
