"""Classifiers: what they can do, and the transformer among them.

`Classifier` is what the rest of the system sees: labels, capabilities, and answers through the scoring core.
`TransformerClassifier` adds what its weights allow: gradients, training, saving. Nothing ever changes a classifier's
weights in place; a fix works on a `clone`.
"""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unhans.checkpoint import check_labels, open_checkpoint, save_folder, write_files
from unhans.errors import BadOption, ModelFailed, Unsupported
from unhans.packing import Forward, twice_differentiable
from unhans.present import html_table
from unhans.propagation import Rules
from unhans.scoring import Answers, Question, ask
from unhans.text import Text, Variant, Words, as_variant
from unhans.tokens import Row, Tokens, padded
from unhans.types import Example, Part, Prediction, Span

TOKEN_BUDGET = 2048  # tokens a batch: the plateau of the bare model's speed on CPUs (bench/scoring.py)
_ALL = ("predict", "gradients", "train", "plain_path")  # plain: linear layers, ReLUs and averages only
_STREAM = 8192
_PROBE = "Don't you know?  É 日本 😀 x_1"
_NO_MATTER = {"_name_or_path", "architectures", "auto_map", "dtype", "torch_dtype", "transformers_version", "use_cache"}


class Classifier(ABC):
    """Something that gives each text a probability for every label."""

    labels: tuple[str, ...]
    revision: str
    capabilities: frozenset[str] = frozenset({"predict"})
    lasting = True  # whether equal revisions surely give equal answers, next year too

    @abstractmethod
    def questions(self, variants: Sequence[Variant]) -> Sequence[Question]:
        """The variants as this model reads them."""

    @abstractmethod
    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """Numbers of the questions, in the batches that suit the model."""

    @abstractmethod
    def answer(self, questions: Sequence[Any]) -> Answers:
        """Logits or log-probabilities, questions × labels."""

    def unread(self, example: Example) -> tuple[Span, ...]:
        """The parts of an example beyond the model's length limit; a black box does not tell."""
        return ()

    def unknown_share(self, example: Example) -> float | None:
        """How much of an example the model's vocabulary lacks; a black box does not tell."""
        return None

    def log_probs(self, texts: Iterable[Text], **how: Any) -> NDArray[np.float64]:
        """Log-probability of every label for every text; `how` goes to `scoring.ask` (cache, progress, …)."""
        answers = ask(self, texts, **how).astype(np.float64).reshape(-1, len(self.labels))
        if not np.isfinite(answers).all():
            raise ModelFailed("The model answered with values that are not numbers.")
        shifted = answers - answers.max(axis=1, keepdims=True)
        normed: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return normed

    def predict(self, texts: Text | Iterable[Text], **how: Any) -> Predictions:
        """What the model says about each text, in order. Plain strings are numbered from 1."""
        return Predictions(self.predict_stream(texts, **how))

    def predict_stream(self, texts: Text | Iterable[Text], **how: Any) -> Iterator[Prediction]:
        """The same, a few thousand texts at a time: for data that should not be in memory all at once."""
        examples = as_examples(texts)
        total, done, tell = len(texts) if isinstance(texts, Sized) else None, 0, how.pop("progress", None)
        while window := list(islice(examples, _STREAM)):
            if tell is not None:
                whole = total if total is not None else done + len(window)
                how["progress"] = lambda n, _, before=done, whole=whole: tell(before + n, whole)
            done += len(window)
            for example, line in zip(window, np.exp(self.log_probs(window, **how)), strict=True):
                yield Prediction(example.id, self.labels, tuple(line.tolist()), self.revision, self.unread(example))

    def label_number(self, label: str | int) -> int:
        """The column of a label, by name or number."""
        if isinstance(label, int) and 0 <= label < len(self.labels):
            return label
        if label not in self.labels:
            raise BadOption(f"There is no label {label!r}. There is: {', '.join(self.labels)}.")
        return self.labels.index(str(label))

    def require(self, needs: Iterable[str], who: str, instead: str = "") -> None:
        """Refuse, with the way out, what this classifier cannot do."""
        lacking = [need for need in _ALL if need in set(needs) - self.capabilities]
        if lacking:
            can = ", ".join(sorted(self.capabilities))
            way_out = instead or "Load the model from a Hugging Face folder to have gradients and training."
            raise Unsupported(f"{who} needs {' and '.join(lacking)}, and this classifier has only: {can}. {way_out}")

    def __repr__(self) -> str:
        labels = ", ".join(self.labels[:5]) + (", …" if len(self.labels) > 5 else "")
        can = ", ".join(sorted(self.capabilities))
        return f"{type(self).__name__}(labels=[{labels}], can=[{can}], revision={self.revision[:12]!r})"


class Predictions(list[Prediction]):
    """Predictions in the order of the texts; drawn as a table in notebooks."""

    @property
    def labels(self) -> list[str]:
        """The predicted label of each."""
        return [prediction.label for prediction in self]

    def __repr__(self) -> str:
        shown = "\n".join(f"  {p.example}: {p.label} ({p.confidence:.1%})" for p in self[:10])
        more = f"\n  … and {len(self) - 10} more" if len(self) > 10 else ""
        return f"{len(self)} predictions\n{shown}{more}" if self else "no predictions"

    def _repr_html_(self) -> str:
        rows = [(p.example, p.label, f"{p.confidence:.1%}") for p in self[:50]]
        more = f"the first 50 of {len(self)}" if len(self) > 50 else ""
        return html_table(("example", "label", "confidence"), rows, more)


@dataclass(frozen=True)
class Batch:
    """Examples as aligned tensors (rows × tokens); the alignment with words is worked out when asked for."""

    examples: tuple[Example, ...]
    ids: Tensor
    mask: Tensor
    types: Tensor | None
    positions: Tensor | None
    tokens: Tokens
    padded_left: bool

    @cached_property
    def words(self) -> tuple[Words, ...]:
        """The words of each example."""
        return tuple(Words(example) for example in self.examples)

    @cached_property
    def owners(self) -> Tensor:
        """Number of each token's word; -1 for control tokens and padding."""
        lines = [self.tokens.row_of_words(words)[1] for words in self.words]
        return torch.tensor(padded(lines, -1, self.padded_left), device=self.ids.device)

    @property
    def n_words(self) -> int:
        """The width of word-level results: the longest example's number of words, at least 1."""
        return max(1, *(len(words) for words in self.words))

    def repeated(self, n: int) -> Batch:
        """The whole batch n times, one below the other."""
        return replace(
            self,
            examples=self.examples * n,
            ids=self.ids.repeat(n, 1),
            mask=self.mask.repeat(n, 1),
            types=None if self.types is None else self.types.repeat(n, 1),
            positions=None if self.positions is None else self.positions.repeat(n, 1),
        )

    def to_words(self, of_tokens: Tensor) -> Tensor:
        """Token scores summed into word scores, rows × words; zero beyond a row's last word. Differentiable."""
        pooled = of_tokens.new_zeros(len(self.examples), self.n_words + 1)
        slots = torch.where(self.owners < 0, self.n_words, self.owners)
        return pooled.scatter_add(1, slots, of_tokens)[:, :-1]


@dataclass
class _Pass:
    """What was computed of one batch."""

    batch: Batch
    embeddings: Tensor | None = None
    logits: Tensor | None = None
    from_embeddings: bool = False  # then they can be differentiated by the embeddings


class TransformerClassifier(Classifier):
    """A Hugging Face sequence classifier with its tokenizer.

    It takes the model object over: sets it to evaluation mode, moves it to the device, and gives it a padding token if
    it has none.
    """

    def __init__(self, model: Any, tokenizer: Any, limit: int, device: str | None = None) -> None:
        names = model.config.id2label
        self.labels = check_labels([str(names[number]) for number in range(len(names))])
        try:
            self.model = model.eval().to(device or best_device())
        except (RuntimeError, AssertionError) as error:
            raise BadOption(
                f"The device {device!r} cannot be used on this machine. Leave it out, or use 'cpu'."
            ) from error
        self.tokenizer, self.limit = tokenizer, limit
        self.tokens = Tokens(tokenizer, limit)
        self.capabilities = frozenset(_ALL) - (frozenset() if _is_plain(model) else {"plain_path"})
        model.config.pad_token_id = self._padding_token()
        self._forward = Forward(self.model, model.config.pad_token_id)
        self._shared: _Pass | None = None
        self._contrasts = False

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        labels: Sequence[str] | None = None,
        max_length: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Load a folder or hub id; `labels` puts a new, untrained head with these labels on it."""
        found = open_checkpoint(source, "classifier", new_labels=labels)
        return cls(found.model, found.tokenizer, min(found.limit, max_length or found.limit), device)

    @cached_property
    def revision(self) -> str:  # type: ignore[override]
        """Fingerprint of weights, settings, labels, tokenizer and length limit: equal revisions give equal answers."""
        return fingerprint(self.model, self.tokens, (self.labels, self.limit))

    def questions(self, variants: Sequence[Variant]) -> Sequence[Row]:
        """Token rows."""
        return self.tokens.rows(variants)

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """Batches of about `TOKEN_BUDGET` tokens, rows of equal length together."""
        return self._forward.batches([len(question) for question in questions], TOKEN_BUDGET)

    def padding(self, rows: Sequence[Row]) -> int:
        """Padded cells in such a batch."""
        return self._forward.padding([len(row) for row in rows])

    def answer(self, questions: Sequence[Row]) -> Answers:
        """Logits of token rows; a batch too large for the device's memory is halved."""
        try:
            with torch.inference_mode():
                logits: Answers = self._forward(questions).float().cpu().numpy()
        except torch.OutOfMemoryError:
            if len(questions) == 1:
                raise ModelFailed(
                    "The device ran out of memory on a single text. Use max_length, or another device."
                ) from None
            half = len(questions) // 2
            return np.concatenate([self.answer(questions[:half]), self.answer(questions[half:])])
        return logits

    def unread(self, example: Example) -> tuple[Span, ...]:
        """The tail of each part that did not fit (the head, if the tokenizer cuts there): the words past the last read.

        A word inside may have no token to itself, such as a full stop that is one token with the word before it.
        """
        if not self.tokens.rows([as_variant(example)])[0].cut:
            return ()
        words = Words(example)
        _, owners = self.tokens.row_of_words(words)
        unread: list[Span] = []
        parts: tuple[Part, ...] = ("text", "pair")
        for part in parts:
            own = [number for number, span in enumerate(words.spans) if span.part == part]
            read = set(own).intersection(owners)
            first, last = (min(read), max(read)) if read else (len(words), -1)
            missed = [number for number in own if number < first or number > last]
            if missed:
                unread.append(Span(words.spans[missed[0]].start, words.spans[missed[-1]].end, part))
        return tuple(unread)

    def unknown_share(self, example: Example) -> float | None:
        """Share of the tokens of the text that are the unknown token; None where the vocabulary has none."""
        unknown = self.tokenizer.unk_token_id
        if unknown is None:
            return None
        special = set(self.tokenizer.all_special_ids) - {unknown}
        own = [token for token in self.tokens.rows([as_variant(example)])[0].ids if token not in special]
        return own.count(unknown) / len(own) if own else 0.0

    # -- inside the weights

    def batch(self, examples: Sequence[Example]) -> Batch:
        """The examples as tensors, for gradients and training."""
        rows = self.tokens.rows([as_variant(example) for example in examples])
        left = self._forward.is_causal  # such a head reads the last token, so padding must stand before the text
        device = self.model.device

        def tensor(lines: Sequence[Sequence[int]], fill: int) -> Tensor:
            return torch.tensor(padded(lines, fill, left), device=device)

        mask = tensor([(1,) * len(row) for row in rows], 0)
        return Batch(
            examples=tuple(examples),
            ids=tensor([row.ids for row in rows], self.model.config.pad_token_id),
            mask=mask,
            types=tensor([row.types or () for row in rows], 0) if rows[0].types is not None else None,
            positions=(mask.cumsum(1) - 1).clamp(min=0) if left else None,
            tokens=self.tokens,
            padded_left=left,
        )

    @property
    def reads_last(self) -> bool:
        """Whether the head reads the last token, as decoders' do, and not the first."""
        return self._forward.is_causal

    def embed(self, batch: Batch) -> Tensor:
        """Word-piece embeddings, rows × tokens × width, before positions are added."""
        shared = self._pass_of(batch)
        if shared is None:
            return self.model.get_input_embeddings()(batch.ids)  # type: ignore[no-any-return]
        if shared.embeddings is None:
            found: Tensor = self.model.get_input_embeddings()(batch.ids)
            # those of a frozen table would be cut off anew for each gradient, and the pass could not be shared
            shared.embeddings = found if found.requires_grad else found.requires_grad_()
        return shared.embeddings

    def _pass_of(self, batch: Batch) -> _Pass | None:
        return self._shared if self._shared is not None and self._shared.batch is batch else None

    @contextmanager
    def one_pass(self, batch: Batch) -> Iterator[None]:
        """Inside, embeddings and logits of this batch are computed once, whoever asks for them.

        A training step through explanations needs the same pass for the task and for the explanation.
        """
        self._shared = _Pass(batch)
        try:
            yield
        finally:
            self._shared = None

    @contextmanager
    def contrasting(self) -> Iterator[None]:
        """Inside, gradients are those of a label's logit minus the mean of all labels' logits.

        That is the same model, for no probability depends on the mean; but what a word adds to every label alike
        counts for nothing, and what it takes from the others counts.
        """
        self._contrasts = True
        try:
            yield
        finally:
            self._contrasts = False

    def logits(
        self, batch: Batch, embeddings: Tensor | None = None, *, packed: bool = False, rules: Rules | None = None
    ) -> Tensor:
        """Logits, rows × labels; from changed embeddings if given. Carries gradients.

        `packed` computes the same from embeddings without padding, where the model allows it and is not in training;
        whoever watches the model's modules then sees one long row. `rules` are entered around a pass of its own.
        """
        if packed and embeddings is not None and self._pass_of(batch) is None and self._packs_gradients():
            return self._forward.from_embeddings(embeddings, batch.mask, batch.types)
        inputs: dict[str, Tensor] = {"attention_mask": batch.mask}
        inputs |= {"input_ids": batch.ids} if embeddings is None else {"inputs_embeds": embeddings}
        if batch.types is not None:
            inputs["token_type_ids"] = batch.types
        if batch.positions is not None:
            inputs["position_ids"] = batch.positions
        shared = self._pass_of(batch)
        if shared is None or rules is not None or (embeddings is not None and embeddings is not shared.embeddings):
            return self._answer_batch(batch, inputs, rules)
        if shared.logits is None or (embeddings is not None and not shared.from_embeddings):
            shared.logits = self._answer_batch(batch, inputs)
            shared.from_embeddings = embeddings is not None
        return shared.logits

    def _packs_gradients(self) -> bool:
        return not self.model.training and self._forward.differentiates

    def _answer_batch(self, batch: Batch, inputs: dict[str, Tensor], rules: Rules | None = None) -> Tensor:
        # a packed call in another thread has the model rewired while it runs, and so do rules
        with self._forward.lock, rules or nullcontext():
            known = batch.ids != self.model.config.pad_token_id
            if not hasattr(self.model, "score") or ("input_ids" in inputs and known.any(1).all()):
                return self.model(**inputs).logits  # type: ignore[no-any-return]
            # a decoder's head reads the last token that is not padding. It cannot tell from embeddings which that is,
            # nor from the ids of an empty text, which may be the very token that padding is made of
            every = self.model.score(self.model.base_model(**inputs).last_hidden_state)
            places = torch.arange(batch.ids.shape[1], device=batch.ids.device)
            last = torch.where(known, places, 0).argmax(1)
            last = torch.where(known.any(1), last, batch.mask.argmax(1))
            return every[torch.arange(len(last)), last]  # type: ignore[no-any-return]

    def gradient(
        self,
        embeddings: Tensor,
        batch: Batch,
        targets: Tensor,
        create_graph: bool = False,
        rules: Rules | None = None,
    ) -> Tensor:
        """Gradient of each row's target logit by its embeddings; itself differentiable with `create_graph`.

        With `rules` (`unhans.propagation`) operations send back something else than their derivative.
        """
        with twice_differentiable if create_graph else nullcontext():
            leaf = embeddings if embeddings.requires_grad else embeddings.detach().requires_grad_()
            if rules is not None:
                leaf = leaf * 1  # a pass of its own: what the rules send back must not reach the task's loss
                rules.follow(leaf)
            logits = self.logits(batch, leaf, packed=rules is None, rules=rules)  # rules follow single operations
            if self._contrasts:
                logits = logits - logits.mean(1, keepdim=True)
            wanted = logits.gather(1, targets[:, None])[:, 0]
            if rules is not None:
                return rules.gradient(wanted, leaf, create_graph)
            return torch.autograd.grad(wanted.sum(), leaf, create_graph=create_graph)[0]

    def gradients(
        self, points: Sequence[Tensor], batch: Batch, targets: Tensor, create_graph: bool = False
    ) -> Iterator[Tensor]:
        """The gradient at each of several points (each rows × tokens × width), as many at once as fill half a batch.

        That is as fast as a whole one, and most of the memory is what is kept for the way back.
        """
        # what is computed: where rows are not packed, padding too
        cells = int(batch.mask.sum()) if self._packs_gradients() else batch.ids.numel()
        at_once = max(1, TOKEN_BUDGET // 2 // cells)
        for start in range(0, len(points), at_once):
            some = points[start : start + at_once]
            many, goals = batch.repeated(len(some)), targets.repeat(len(some))
            yield from self.gradient(torch.cat(list(some)), many, goals, create_graph).chunk(len(some))

    def _padding_token(self) -> int:
        """The model's own; where it has none, as many decoders, one that cannot be taken for the end of a text."""
        known = range(self.model.get_input_embeddings().weight.shape[0])
        if self.model.config.pad_token_id in known:
            return int(self.model.config.pad_token_id)
        end = self.tokens.rows([as_variant(_PROBE)])[0].ids[-1]
        kinds = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, self.tokenizer.bos_token_id, 0, 1)
        return next(token for token in kinds if token in known and token != end)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, where it runs on the best device that is there."""
        return _arrived, (type(self), self.copied().cpu(), self.tokenizer, self.limit, self.revision)

    def clone(self) -> Self:
        """An independent copy that training may change."""
        return type(self)(self.copied(), self.tokenizer, self.limit, str(self.model.device))

    def copied(self, shared: Mapping[int, Any] | None = None) -> Any:
        """The bare model once more, as it is when no call in another thread has it rewired.

        Tensors in `shared`, by their `id`, are replaced by what stands there, and not copied.
        """
        with self._forward.lock:
            return copy.deepcopy(self.model, dict(shared or {}))

    def save(self, folder: str | Path) -> Path:
        """Write a folder that Hugging Face loads; whole or not at all, and never over an existing one."""
        return save_folder(folder, self.model, self.tokenizer)

    def save_into(self, folder: Path) -> None:
        """Write the same files into a folder that somebody else keeps whole, such as a version of an artefact."""
        write_files(folder, self.model, self.tokenizer)


def _arrived(
    kind: type[TransformerClassifier], model: Any, tokenizer: Any, limit: int, revision: str
) -> TransformerClassifier:
    """A classifier that was sent from another process; its fingerprint need not be taken again."""
    made = kind(model, tokenizer, limit)
    made.__dict__["revision"] = revision
    return made


def _is_plain(model: Any) -> bool:
    parts = [part for part in model.modules() if not list(part.children()) and not isinstance(part, nn.Sequential)]
    return all(isinstance(part, nn.Embedding | nn.Linear | nn.ReLU | nn.Dropout | nn.Identity) for part in parts)


def fingerprint(model: Any, tokens: Tokens, told: tuple[Any, ...]) -> str:
    """A short name for weights, settings and tokenizer, and what else is told: equal ones give equal answers."""
    config = {key: value for key, value in model.config.to_diff_dict().items() if key not in _NO_MATTER}
    tokenizer = tokens.tokenizer
    read = tokens.rows([as_variant(_PROBE)]), sorted(tokenizer.get_vocab().items())
    kept = tokenizer.truncation_side, sorted(map(repr, tokenizer.special_tokens_map.items()))
    told = (*told, type(model).__name__, read, kept)
    digest = blake2b(json.dumps([repr(told), config], sort_keys=True, default=str).encode(), digest_size=8)
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def best_device() -> str:
    """Where a model runs unless told otherwise."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def as_examples(texts: Text | Iterable[Text]) -> Iterator[Example]:
    """Whatever a user calls texts, one or many, as examples; plain strings are numbered from 1."""
    several: Any = [texts] if _is_one(texts) else texts
    if not isinstance(several, Iterable) or isinstance(several, Mapping):
        raise BadOption(f"Give a text, a pair of texts or a list of them, not {type(texts).__name__}.")
    return (_as_example(text, number) for number, text in enumerate(several, start=1))


def _is_one(texts: object) -> bool:
    """Whether this is a single text and not a collection; a tuple of two strings is a pair."""
    pair = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(part, str) for part in texts)
    return isinstance(texts, str | Example) or pair


def _as_example(text: Text, number: int) -> Example:
    match text:
        case Example():
            return text
        case str():
            return Example(str(number), text)
        case (str() as first, str() as second):
            return Example(str(number), first, second)
    raise BadOption(f"A text to predict is a string, a pair of strings or an Example, not {type(text).__name__}.")
