"""The training loop, on one page.

`optimise` is the only place where weights change: AdamW, linear warm-up and decay, clipped gradients, early stopping,
checkpoints that survive a kill, and a stop at the first loss that is not a number. `fit` uses it for classifiers, with
a hook for a second loss (that is how fixes train through explanations); language models use it too.

The loop runs through accelerate: on a user's GPUs, or several processes, without other code. Gradients are averaged
over processes by hand and not by DistributedDataParallel, which cannot train through gradients of gradients.

Chance is drawn anew from (seed, step) at every step, so a run that is killed and resumed ends with the very weights
of a run that was not.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from unhans.adapters import add_adapters, merge_adapters
from unhans.errors import BadData, BadOption, Cancelled, TrainingDiverged
from unhans.model import Batch, Classifier, TransformerClassifier
from unhans.scoring import Progress
from unhans.types import Example

ExtraLoss = Callable[[TransformerClassifier, Batch], Tensor | None]
Vary = Callable[[Example], Example]
"""Another version of an example at each step; it draws from torch's generator, which is seeded for every step."""
Judge = Callable[..., float]
"""How good a classifier is on these examples; higher is better. It gets what scoring takes, such as `cancelled`."""
_SAVE_EVERY = 60.0  # seconds
_FINEST = 1 / 32  # of the way between two classifiers


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int = 3
    learning_rate: float = 5e-5
    batch_size: int = 32
    warmup: float = 0.1  # share of the steps
    weight_decay: float = 0.01
    patience: int | None = None  # epochs without a better validation score before stopping; None: never stop early
    seed: int = 0

    def __post_init__(self) -> None:
        counts = self.epochs >= 0 and self.batch_size >= 1 and self.seed >= 0
        rates = 0 < self.learning_rate < float("inf") and 0 <= self.weight_decay < float("inf")
        if not counts or not rates or not 0 <= self.warmup <= 1:
            raise BadOption(
                "A schedule has epochs >= 0, batch_size >= 1, seed >= 0, learning_rate > 0, weight_decay >= 0 "
                "and 0 <= warmup <= 1."
            )


@dataclass(frozen=True)
class Epoch:
    """What one pass over the data did."""

    number: int
    loss: float
    extra: float | None  # mean of the extra loss, where there was one
    score: float | None  # on the validation data


@dataclass
class Watch:
    """How a caller follows and stops a training."""

    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None
    on_epoch: Callable[[Epoch], None] | None = None
    on_step: Callable[[int, float, float | None], None] | None = None  # number, task's loss, extra loss


def fit(
    classifier: TransformerClassifier,
    train: Sequence[Example],
    *,
    validation: Sequence[Example] | None = None,
    schedule: Schedule | None = None,
    extra_loss: ExtraLoss | None = None,
    vary: Vary | None = None,
    judge: Judge | None = None,
    frozen_pieces: Sequence[int] = (),
    lora: int = 0,
    one_label: bool = False,
    checkpoints: str | Path | None = None,
    key: str = "",
    watch: Watch | None = None,
) -> TransformerClassifier:
    """A new classifier: the given one's weights, trained on the labelled examples. The given one is left as it is.

    `extra_loss(classifier, batch)` is added to the task's loss; None from it means nothing to add. `vary` changes the
    examples anew at every step; the embeddings of `frozen_pieces` stay as they are. With `validation`, the epoch with
    the best accuracy there is kept, or with the best score that `judge` gives. With `lora`, only low-rank additions of
    that rank and the head are trained, and merged into the weights at the end. Texts of one label alone are refused,
    unless `one_label` says that they are meant. With `checkpoints`, a killed run goes on where it stopped; `key` tells
    apart runs that differ in what is not data, such as the extra loss.
    """
    schedule, watch = schedule or Schedule(), watch or Watch()
    classifier.require({"train"}, "Training")
    labelled = [example for example in train if example.label is not None]
    _check_labels(classifier, labelled, 1 if one_label else 2)
    student = classifier.clone()
    if lora:
        add_adapters(student.model, lora, seed=schedule.seed)
    _freeze(student.model.get_input_embeddings().weight, frozen_pieces)
    lengths = [sum(map(len, example.parts)) for example in labelled]

    def batches(rng: np.random.Generator) -> list[list[int]]:
        return similar_lengths(lengths, schedule.batch_size, rng)

    def loss(numbers: list[int]) -> tuple[Tensor, Tensor | None]:
        some = [labelled[number] for number in numbers]
        batch = student.batch([vary(example) for example in some] if vary else some)
        targets = torch.tensor([student.labels.index(str(example.label)) for example in batch.examples])
        with student.one_pass(batch):  # the extra loss may have made the pass that the task needs
            extra = extra_loss(student, batch) if extra_loss else None
            task = cross_entropy(student.logits(batch), targets.to(batch.ids.device))
        return task, extra

    def score() -> float:
        return (judge or accuracy)(student, validation or (), cancelled=watch.cancelled)

    run = f"{classifier.revision} {_fingerprint(labelled)} {_fingerprint(validation or ())} {lora} {key}"
    folder = Path(checkpoints) if checkpoints is not None else None
    optimise(student.model, batches, loss, schedule, score if validation else None, folder, run, watch)
    if lora:
        merge_adapters(student.model)
    student.model.requires_grad_(True)  # adapters had frozen most of it
    return student.clone()  # a fresh object: the student's fingerprint and caches were those of other weights


def blended(before: TransformerClassifier, after: TransformerClassifier, share: float) -> TransformerClassifier:
    """A classifier with weights so much of the way from one to the other (Wortsman et al. 2022, arXiv:2109.01903)."""
    between = after.clone()
    with torch.no_grad():
        for new, old in zip(between.model.parameters(), before.model.parameters(), strict=True):
            new.copy_(torch.lerp(old.to(new.device), new, share))
    return between.clone()  # a fresh object: its fingerprint is that of its own weights


def as_far_as(
    before: TransformerClassifier,
    after: TransformerClassifier,
    held_out: Sequence[Example],
    tolerance: float,
    **how: Any,
) -> tuple[TransformerClassifier, float]:
    """As much of the way from one classifier to the other as costs at most `tolerance` of the accuracy on these texts.

    And how much of it that is. The whole way is gone where that is allowed; else it is halved until a step is small.
    """
    least = accuracy(before, held_out, **how) - tolerance - 1e-9  # what is just lost is not lost by rounding
    if accuracy(after, held_out, **how) >= least:
        return after, 1.0
    fine, far = 0.0, 1.0
    while far - fine > _FINEST:
        middle = (fine + far) / 2
        if accuracy(blended(before, after, middle), held_out, **how) >= least:
            fine = middle
        else:
            far = middle
    return (blended(before, after, fine) if fine else before.clone()), fine


def _freeze(table: torch.nn.Parameter, rows: Sequence[int]) -> None:
    """Keep these rows of a table of weights from learning."""
    if rows and table.requires_grad:
        keep = torch.ones(len(table), 1, device=table.device)
        keep[list(rows)] = 0.0
        table.register_hook(lambda gradient: gradient * keep)  # type: ignore[no-untyped-call]


def accuracy(classifier: Classifier, examples: Sequence[Example], **how: Any) -> float:
    """Share of the labelled examples whose label is predicted."""
    labelled = [example for example in examples if example.label is not None]
    if not labelled:
        raise BadData("Accuracy is not defined: none of the examples has a label.")
    best = classifier.log_probs(labelled, **how).argmax(axis=1)
    return float(np.mean([classifier.labels[n] == e.label for n, e in zip(best, labelled, strict=True)]))


def optimise(  # noqa: PLR0917 - the loop's parts, in the order they are used
    model: torch.nn.Module,
    batches: Callable[[np.random.Generator], list[Any]],
    loss: Callable[[Any], tuple[Tensor, Tensor | None]],
    schedule: Schedule,
    score: Callable[[], float] | None,
    checkpoints: Path | None,
    run: str,
    watch: Watch,
) -> None:
    """Train the model in place on `loss(batch)` and leave it with the best weights, in evaluation mode."""
    device = next(model.parameters()).device
    accelerator = Accelerator(cpu=device.type == "cpu")
    if accelerator.num_processes > 1:
        model.to(accelerator.device)  # each process has its own
    optimizer = torch.optim.AdamW(_decay_groups(model, schedule.weight_decay), lr=schedule.learning_rate)
    n_batches = len(batches(np.random.default_rng([schedule.seed, 0])))
    total = schedule.epochs * n_batches
    state = _State(checkpoints, f"{run} {asdict(schedule)}", model, optimizer, accelerator.is_main_process)
    accelerator.wait_for_everyone()  # all have read the checkpoint before one of them writes the next
    while state.epoch < schedule.epochs and not state.exhausted(schedule.patience):
        order = batches(np.random.default_rng([schedule.seed, state.epoch]))
        while state.step < (state.epoch + 1) * n_batches:
            if watch.cancelled is not None and watch.cancelled():
                state.save()
                raise Cancelled(
                    f"Training stopped at step {state.step} of {total}. The model you started from is unchanged."
                )
            batch = order[state.step % n_batches]
            own = batch[accelerator.process_index :: accelerator.num_processes] or batch
            rate = schedule.learning_rate * _ramp(state.step, total, schedule.warmup)
            state.losses.append(
                _step(accelerator, model, optimizer, partial(loss, own), rate, schedule.seed, state.step)
            )
            state.step += 1
            state.save_now_and_then()
            if watch.on_step is not None:
                watch.on_step(state.step, *state.losses[-1])
            if watch.progress is not None:
                watch.progress(state.step, total)
        model.eval()
        state.end_epoch(score() if score is not None else None, watch.on_epoch)
    state.restore_best()
    model.eval()


def _step(  # noqa: PLR0917 - see optimise
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[], tuple[Tensor, Tensor | None]],
    rate: float,
    seed: int,
    step: int,
) -> tuple[float, float | None]:
    """One update; returns the task's loss and the extra one."""
    model.train()
    devices = [torch.cuda.current_device()] if accelerator.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(np.random.default_rng([seed, step, accelerator.process_index]).integers(2**62)))
        with accelerator.autocast():
            task, extra = loss()
        whole = task if extra is None else task + extra
        if not torch.isfinite(whole):
            raise _diverged(step, "the loss is")
        optimizer.zero_grad(set_to_none=True)
        accelerator.backward(whole)
    if accelerator.num_processes > 1:
        for weight in model.parameters():
            if weight.grad is not None:
                weight.grad = accelerator.reduce(weight.grad, "mean")
    if not torch.isfinite(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
        raise _diverged(step, "the gradient is")
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return float(task.detach()), None if extra is None else float(extra.detach())


def _diverged(step: int, what: str) -> TrainingDiverged:
    return TrainingDiverged(
        f"Training diverged at step {step} ({what} not a number). The model you started from is unchanged."
        " Try a lower learning rate, or a lower strength of the extra loss."
    )


class _State:
    """Where a training is, in memory and (with a folder) on disk: whole or not at all, and free of pickles."""

    def __init__(
        self, folder: Path | None, run: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer, writes: bool
    ) -> None:
        self.folder, self.model, self.optimizer, self.writes = folder, model, optimizer, writes
        self.run = blake2b(run.encode(), digest_size=8).hexdigest()
        self.epoch = self.step = self.worse = 0
        self.best: float | None = None
        self.best_weights: dict[str, Tensor] = {}
        self.losses: list[tuple[float, float | None]] = []
        self._saved = time.monotonic()
        # a kill can come between two renames: then the newest whole state is the one still called new, or old
        places = [folder / name for name in ("current", "new", "old")] if folder is not None else []
        if whole := [place for place in places if (place / "state.json").is_file()]:
            self._load(whole[0])
            if whole[0] != places[0]:  # else the next save would begin by deleting the only state there is
                whole[0].rename(places[0])

    def exhausted(self, patience: int | None) -> bool:
        return patience is not None and self.worse >= patience

    def end_epoch(self, score: float | None, tell: Callable[[Epoch], None] | None) -> None:
        """Keep the best weights so far, tell the caller, write it all down."""
        if score is not None:
            better = self.best is None or score > self.best
            self.worse = 0 if better else self.worse + 1
            if better:
                self.best, self.best_weights = score, self._weights()
        extras = [extra for _, extra in self.losses if extra is not None]
        task = float(np.mean([task for task, _ in self.losses])) if self.losses else 0.0
        epoch = Epoch(self.epoch + 1, task, float(np.mean(extras)) if extras else None, score)
        self.losses = []
        self.epoch += 1
        self.save()
        if tell is not None:
            tell(epoch)

    def restore_best(self) -> None:
        if self.best_weights:
            self.model.load_state_dict(self.best_weights)

    def save_now_and_then(self) -> None:
        """So that a kill costs a minute of work, not an epoch."""
        if self.folder is not None and time.monotonic() - self._saved > _SAVE_EVERY:
            self.save()

    def save(self) -> None:
        if self.folder is None or not self.writes:
            return
        self._saved = time.monotonic()
        new, current, old = (self.folder / name for name in ("new", "current", "old"))
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        save_file(self._weights(), new / "weights.safetensors")
        save_file(self.best_weights or {"none": torch.zeros(1)}, new / "best.safetensors")
        moments = self.optimizer.state_dict()["state"]
        save_file(
            {f"{n}.{key}": value.clone() for n, values in moments.items() for key, value in values.items()},
            new / "optimizer.safetensors",
        )
        told = {"run": self.run, "epoch": self.epoch, "step": self.step, "worse": self.worse, "best": self.best}
        (new / "unfinished.json").write_text(json.dumps(told | {"losses": self.losses}))
        (new / "unfinished.json").rename(new / "state.json")  # last, and at once: its presence says whole
        shutil.rmtree(old, ignore_errors=True)
        if current.exists():
            current.rename(old)
        new.rename(current)
        shutil.rmtree(old, ignore_errors=True)

    def _load(self, folder: Path) -> None:
        told = json.loads((folder / "state.json").read_text())
        if told["run"] != self.run:
            raise BadOption(
                "These checkpoints belong to another training (other data, model or settings). Use a new folder."
            )
        self.model.load_state_dict(load_file(folder / "weights.safetensors"))
        self.best_weights = {k: v for k, v in load_file(folder / "best.safetensors").items() if k != "none"}
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in load_file(folder / "optimizer.safetensors").items():
            number, _, key = name.partition(".")
            moments.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})
        self.epoch, self.step, self.worse, self.best = (told[key] for key in ("epoch", "step", "worse", "best"))
        self.losses = [tuple(pair) for pair in told["losses"]]

    def _weights(self) -> dict[str, Tensor]:
        return {name: weight.detach().cpu().clone() for name, weight in self.model.state_dict().items()}


def _decay_groups(model: torch.nn.Module, decay: float) -> list[dict[str, Any]]:
    """Weight decay for matrices only: on biases and norms it does harm."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]


def _ramp(step: int, total: int, warmup: float) -> float:
    """Rises from 0 over the warm-up, then falls to 0: the learning rate's share of its peak."""
    rising = max(1, round(total * warmup))
    return (step + 1) / rising if step < rising else max(0.0, (total - step) / max(1, total - rising))


def similar_lengths(lengths: Sequence[int], batch_size: int, rng: np.random.Generator) -> list[list[int]]:
    """Random batches of similar length: shuffled, sorted within stretches of fifty batches, shuffled again."""
    order = rng.permutation(len(lengths)).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(order), 50 * batch_size):
        stretch = sorted(order[start : start + 50 * batch_size], key=lengths.__getitem__)
        batches.extend(stretch[at : at + batch_size] for at in range(0, len(stretch), batch_size))
    return [batches[number] for number in rng.permutation(len(batches))]


def _check_labels(classifier: Classifier, labelled: Sequence[Example], least: int) -> None:
    counts = Counter(str(example.label) for example in labelled)
    if strange := sorted(counts.keys() - set(classifier.labels)):
        raise BadData(
            f"The data has a label {strange[0]!r} that the model lacks. The model has: {', '.join(classifier.labels)}."
        )
    if len(counts) < least:
        only = (
            f"all {len(labelled)} labelled examples are {next(iter(counts))!r}" if counts else "no example has a label"
        )
        raise BadData(f"There is nothing to learn: {only}. Add examples with another label to train.")


def _fingerprint(examples: Sequence[Example]) -> str:
    digest = blake2b(digest_size=8)
    for example in examples:
        digest.update(f"{example.id}\x00{example.text_hash}\x00{example.label}\x01".encode(errors="surrogatepass"))
    return digest.hexdigest()
