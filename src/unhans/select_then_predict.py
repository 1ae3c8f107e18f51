"""Select, then predict (ExPred; Zhang et al. 2021): a classifier that reads only the words it has chosen.

Stage 1, the **selector**, is one encoder with two heads: one says the label, one says of every word whether a person
would mark it. It learns both from texts with human highlights. Stage 2, the **predictor**, is a classifier of its own,
trained on texts from which all other words are **deleted**. So what it reads is plain text: SparCAssist's M(x ⊙ m) is
`predictor` on the words of the mask, for any mask and any tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from unhans.black_boxes import BlackBox, Texts
from unhans.checkpoint import whole_folder
from unhans.errors import BadData, BadModel, BadOption, Cancelled, Unsupported
from unhans.listening import listening
from unhans.model import TOKEN_BUDGET, Batch, TransformerClassifier, as_examples
from unhans.packing import MAX_PADDING
from unhans.scoring import batches_by_length
from unhans.text import Text, Variant, Words, as_variant
from unhans.training import Schedule, Watch, accuracy, fit
from unhans.types import Attribution, Attributions, Example, Rationale, Recipe, Span, Terms

MARK = "select_then_predict.json"
_HEAD_FILE = "words.safetensors"
_WORD_HEAD = "highlights"  # name of the second head inside the model
_TERMS = Terms("none", "nothing: it is what stage 1 says of each word", "the highest of a word's pieces", signed=False)


class Selector:
    """Stage 1: a classifier with a second head, which says of each word how probably a person would mark it."""

    def __init__(self, classifier: TransformerClassifier) -> None:
        self.classifier = classifier

    @classmethod
    def fresh(cls, start: TransformerClassifier, seed: int = 0) -> Self:
        """The start's weights and label head, and an untrained head for words."""
        classifier = start.clone()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = nn.Linear(classifier.model.config.hidden_size, 1).to(classifier.model.device)
        classifier.model.add_module(_WORD_HEAD, head)
        made = cls(classifier)
        made.word_logits(classifier.batch([Example("", "one text")]))  # says so at once if the encoder is no good
        return made

    def word_logits(self, batch: Batch) -> Tensor:
        """Rows × words: the highest of each word's pieces; minus infinity for words that were not read.

        The pass is the one that gives the labels, and in training it is made once for both.
        """
        states: list[Tensor] = []

        def keep(_: Any, __: Any, output: Any) -> None:
            if getattr(output, "last_hidden_state", None) is not None:
                states.append(output.last_hidden_state)

        with listening([self.classifier.model.base_model], keep):
            self.classifier.logits(batch)
        if not states or states[0].shape[:2] != batch.ids.shape:
            raise Unsupported(
                "This kind of model has no state for each token, so it cannot say which words matter. Start from an "
                "encoder such as BERT or RoBERTa."
            )
        of_tokens: Tensor = getattr(self.classifier.model, _WORD_HEAD)(states[0])[..., 0]
        slots = torch.where(batch.owners < 0, batch.n_words, batch.owners)
        pooled = of_tokens.new_full((len(batch.examples), batch.n_words + 1), -torch.inf)
        return pooled.scatter_reduce(1, slots, of_tokens, "amax")[:, :-1]

    def loss(self, batch: Batch) -> Tensor | None:
        """How far the words are from the highlights; None where the batch has none.

        In each text the marked words weigh as much as all the others together, however few they are.
        """
        losses = []
        for line, example, words in zip(self.word_logits(batch), batch.examples, batch.words, strict=True):
            own = line[: len(words)]
            truth = torch.tensor(_marked(example, words), device=line.device)
            own, truth = own[torch.isfinite(own)], truth[torch.isfinite(own)]
            if truth.any():
                each = binary_cross_entropy_with_logits(own, truth.to(own.dtype), reduction="none")
                kinds = [each[kind].mean() for kind in (truth, ~truth) if kind.any()]
                losses.append(torch.stack(kinds).mean())
        return torch.stack(losses).mean() if losses else None

    def scores(
        self, examples: Sequence[Example], cancelled: Callable[[], bool] | None = None
    ) -> list[NDArray[np.float64]]:
        """Probability of each word to be marked, one line per example; 0 for words that are not read."""
        rows = self.classifier.tokens.rows([as_variant(example) for example in examples])
        lines: dict[int, NDArray[np.float64]] = {}
        for numbers in batches_by_length([len(row) for row in rows], TOKEN_BUDGET, MAX_PADDING):
            if cancelled is not None and cancelled():
                raise Cancelled(f"Stopped after the words of {len(lines)} of {len(examples)} texts were chosen.")
            batch = self.classifier.batch([examples[n] for n in numbers])
            with torch.inference_mode():
                found = torch.sigmoid(self.word_logits(batch)).double().cpu().numpy()
            for number, words, line in zip(numbers, batch.words, found, strict=True):
                lines[number] = line[: len(words)]
        return [lines[n] for n in range(len(examples))]

    def chosen(self, examples: Sequence[Example], threshold: float, **how: Any) -> list[tuple[int, ...]]:
        """Numbers of the words that reach the threshold, for each example; possibly none."""
        return [tuple(np.flatnonzero(line >= threshold).tolist()) for line in self.scores(examples, **how)]

    def masked(self, examples: Sequence[Example], threshold: float, **how: Any) -> list[Example]:
        """The examples as stage 2 reads them: without the words that are not chosen."""
        return [
            _as_example(only(example, chosen), example)
            for example, chosen in zip(examples, self.chosen(examples, threshold, **how), strict=True)
        ]


def only(example: Example, chosen: Iterable[int]) -> Variant:
    """The example with these words and no others."""
    words, kept = Words(example), set(chosen)
    return words.without(n for n in range(len(words)) if n not in kept)


class SelectThenPredict(BlackBox):
    """Two stages as one classifier: what it says, it says on the words of its rationale alone.

    It can be asked, saved and loaded like any classifier. It has no gradient of its own, for choosing words has none;
    `predictor` has, on the words that it reads.
    """

    batch_size = 256  # texts; the stages make batches of their own

    def __init__(self, selector: Selector, predictor: TransformerClassifier, threshold: float = 0.5) -> None:
        if selector.classifier.labels != predictor.labels:
            raise BadModel("The two stages do not have the same labels: they do not belong together.")
        if not 0 < threshold < 1:
            raise BadOption(f"threshold is a probability between 0 and 1, not {threshold}.")
        self.selector, self.predictor, self.threshold = selector, predictor, threshold
        self.labels = predictor.labels

    @classmethod
    def fit(
        cls,
        start: TransformerClassifier,
        train: Sequence[Example],
        *,
        validation: Sequence[Example] | None = None,
        weight: float = 5.0,
        threshold: float = 0.5,
        only_correct: bool = True,
        schedule: Schedule | None = None,
        predictor_schedule: Schedule | None = None,
        checkpoints: str | Path | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Train both stages from the weights of `start`, which is left as it is.

        `weight` is how much highlights count beside labels in stage 1; it depends on the task (ExPred's λ: 5 for
        movies, 2 for FEVER, 20 for MultiRC). Examples without highlights teach the label only. With `only_correct`,
        stage 2 learns from the training texts that stage 1 gets right, as in ExPred; else from all. With `validation`,
        stage 1 keeps the epoch with the best mean of accuracy and word F1, stage 2 that with the best accuracy; a
        schedule with `patience` stops early. With `checkpoints`, a killed training goes on where it stopped.
        """
        start.require({"train"}, "Select-then-predict")
        if not 0 < weight < float("inf"):
            raise BadOption(f"weight must be above 0, not {weight}: without it no word is learned to be chosen.")
        labelled = [example for example in train if example.label is not None]
        if not any(example.highlights for example in labelled):
            raise BadData(
                "Select-then-predict learns from highlights, the words that people marked, and none of the labelled "
                "training examples has any. Nothing was trained; give data with highlights, or use `select`."
            )
        schedule, folder = schedule or Schedule(), None if checkpoints is None else Path(checkpoints)
        learned = fit(
            Selector.fresh(start, schedule.seed).classifier,
            labelled,
            validation=validation,
            schedule=schedule,
            extra_loss=_word_loss(weight),
            judge=_judged(threshold),
            checkpoints=None if folder is None else folder / "selector",
            key=f"select {weight} {threshold} {_highlights_key(labelled)} {_highlights_key(validation or ())}",
            watch=_stage(watch, 0),
        )
        selector = Selector(learned)
        read = selector.masked(_learnable(learned, labelled, only_correct), threshold)
        predictor = fit(
            start,
            read,
            validation=None if validation is None else selector.masked(validation, threshold),
            schedule=predictor_schedule or schedule,
            checkpoints=None if folder is None else folder / "predictor",
            watch=_stage(watch, 1),
        )
        return cls(selector, predictor, threshold)

    @classmethod
    def open(cls, folder: str | Path, *, max_length: int | None = None, device: str | None = None) -> Self:
        """Load what `save` wrote."""
        place = Path(folder)
        threshold, *limits = _read_mark(place / MARK)
        first, second = (
            TransformerClassifier.open(place / name, max_length=min(limit, max_length or limit), device=device)
            for name, limit in zip(("selector", "predictor"), limits, strict=True)
        )
        head = _read_head(place / _HEAD_FILE, first.model.config.hidden_size)
        first.model.add_module(_WORD_HEAD, head.to(first.model.device))
        return cls(Selector(first), second, threshold)

    def save(self, folder: str | Path) -> Path:
        """Write a folder that `unhans.load` opens: whole or not at all, and never over an existing one."""
        with whole_folder(folder) as partial:
            (partial / "selector").mkdir()
            (partial / "predictor").mkdir()
            self._bare_selector().save_into(partial / "selector")
            self.predictor.save_into(partial / "predictor")
            head = getattr(self.selector.classifier.model, _WORD_HEAD)
            save_file({n: w.detach().cpu().contiguous() for n, w in head.named_parameters()}, partial / _HEAD_FILE)
            limits = [self.selector.classifier.limit, self.predictor.limit]  # may be less than the folders' own
            (partial / MARK).write_text(json.dumps({"format": 1, "threshold": self.threshold, "limits": limits}))
        return Path(folder)

    def _bare_selector(self) -> TransformerClassifier:
        """The selector without its second head: a folder that Hugging Face loads without a question."""
        bare = self.selector.classifier.clone()
        delattr(bare.model, _WORD_HEAD)
        return bare

    @cached_property
    def revision(self) -> str:  # type: ignore[override]
        """Fingerprint of both stages and the threshold."""
        told = (self.selector.classifier.revision, self.predictor.revision, self.threshold)
        return blake2b(repr(told).encode(), digest_size=8).hexdigest()

    def probabilities(self, texts: Texts) -> Any:
        """What the predictor says on the words that the selector chose."""
        read = self.selector.masked(list(as_examples(texts)), self.threshold)
        return np.exp(self.predictor.log_probs(read))

    def unread(self, example: Example) -> tuple[Span, ...]:
        """The parts of an example beyond the selector's length limit: they cannot be chosen."""
        return self.selector.classifier.unread(example)

    def unknown_share(self, example: Example) -> float | None:
        """How much of an example the selector's vocabulary lacks."""
        return self.selector.classifier.unknown_share(example)

    def rationales(self, texts: Text | Iterable[Text], **how: Any) -> list[Rationale]:
        """The words that the answer for each text rests on: all that the predictor has read."""
        recipe = Recipe("rationales", "select_then_predict", (("threshold", self.threshold),))
        return [
            Rationale(
                one.example,
                one.label,
                one.words,
                one.spans,
                tuple(n for n, score in enumerate(one.scores) if score >= self.threshold),
                recipe,
                one.revision,
            )
            for one in self.word_scores(texts, **how)
        ]

    def word_scores(self, texts: Text | Iterable[Text], **how: Any) -> Attributions:
        """What stage 1 says of each word, before the threshold: the probability that a person would mark it."""
        examples = list(as_examples(texts))
        labels = [self.labels[n] for n in self.log_probs(examples, **how).argmax(axis=1)] if examples else []
        lines = self.selector.scores(examples, how.get("cancelled"))
        recipe = Recipe("select_then_predict", "word_scores")
        found = Attributions()
        for example, label, line in zip(examples, labels, lines, strict=True):
            words, tails = Words(example), self.unread(example)
            missed = tuple(n for n, span in enumerate(words.spans) if any(_inside(span, tail) for tail in tails))
            made = (example.id, label, words.strings, words.spans, tuple(line.tolist()), recipe, self.revision, missed)
            found.append(Attribution(*made, terms=_TERMS))
        return found


def is_select_then_predict(source: str | Path) -> bool:
    """Whether this names a folder that `SelectThenPredict.save` wrote."""
    try:
        return (Path(source).expanduser() / MARK).is_file()
    except (OSError, RuntimeError, ValueError):  # not a name that a disk could have
        return False


def _read_mark(path: Path) -> tuple[float, int, int]:
    """The threshold, and how many tokens each stage reads."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        threshold, (first, second) = told["threshold"], told["limits"]
        known = told["format"] == 1
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise BadModel(f"{path.parent.name} is no select-then-predict model: {MARK} is missing or damaged.") from error
    sound = type(threshold) is float and 0 < threshold < 1 and all(type(n) is int and n > 0 for n in (first, second))
    if not known or not sound:
        raise BadModel(f"{path.parent.name} was written by another version of unhans, or its {MARK} is damaged.")
    return threshold, first, second


def _read_head(path: Path, width: int) -> nn.Linear:
    try:
        weights = load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise BadModel(f"The weight file {path.name} is missing or damaged.") from error
    head = nn.Linear(width, 1)
    wanted = {name: weight.shape for name, weight in head.named_parameters()}
    if {name: weight.shape for name, weight in weights.items()} != wanted:
        raise BadModel(f"The weights in {path.name} are not those of a head for a model of width {width}.")
    if not all(torch.isfinite(weight).all() for weight in weights.values()):
        raise BadModel(f"The weights in {path.name} contain values that are not numbers.")
    head.load_state_dict(weights)
    return head


def _word_loss(weight: float) -> Callable[[TransformerClassifier, Batch], Tensor | None]:
    def loss(student: TransformerClassifier, batch: Batch) -> Tensor | None:
        found = Selector(student).loss(batch)
        return None if found is None else weight * found

    return loss


def _judged(threshold: float) -> Callable[..., float]:
    """Labels and words count alike; words only where the validation data has some marked."""

    def judge(student: TransformerClassifier, examples: Sequence[Example], **how: Any) -> float:
        right = accuracy(student, examples, **how)
        marked = [example for example in examples if example.highlights]
        chosen = Selector(student).chosen(marked, threshold, **how)
        found = [_f1(example, some) for example, some in zip(marked, chosen, strict=True)]
        return (right + float(np.mean(found))) / 2 if found else right

    return judge


def _f1(example: Example, chosen: Sequence[int]) -> float:
    marked = np.flatnonzero(_marked(example, Words(example)))
    both = len(set(marked.tolist()).intersection(chosen))
    return 2 * both / max(1, len(marked) + len(chosen))


def _learnable(selector: TransformerClassifier, labelled: Sequence[Example], only_correct: bool) -> list[Example]:
    """The examples that stage 2 learns from; it must not lose a label that stage 1 never gets right."""
    if not only_correct:
        return list(labelled)
    best = selector.log_probs(labelled).argmax(axis=1)
    right = [e for n, e in zip(best, labelled, strict=True) if selector.labels[n] == e.label]
    if lost := sorted({str(e.label) for e in labelled} - {str(e.label) for e in right}):
        raise BadData(
            f"Stage 1 gets {len(right)} of {len(labelled)} training texts right, and none with the label {lost[0]!r}, "
            "so stage 2 could not learn it. Nothing was kept. Train stage 1 longer (schedule), or let stage 2 learn "
            "from all texts: only_correct=False."
        )
    return right


def _marked(example: Example, words: Words) -> list[bool]:
    return [any(_overlap(span, mark) for mark in example.highlights or ()) for span in words.spans]


def _overlap(word: Span, mark: Span) -> bool:
    return word.part == mark.part and word.start < mark.end and mark.start < word.end


def _inside(span: Span, tail: Span) -> bool:
    return span.part == tail.part and tail.start <= span.start < tail.end


def _as_example(variant: Variant, example: Example) -> Example:
    text, pair = islice((*variant.texts, None), 2)
    return replace(example, text=text or "", pair=pair, highlights=None)


def _highlights_key(examples: Sequence[Example]) -> str:
    told = repr([(example.id, example.highlights) for example in examples])
    return blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _stage(watch: Watch | None, number: int) -> Watch:
    """The same watch for one of two stages, each of them half of the work."""
    if watch is None or watch.progress is None:
        return watch or Watch()
    tell = watch.progress
    return replace(watch, progress=lambda done, total: tell(number * total + done, 2 * total))
