"""Masked language models: what could stand here instead of this word, and how likely is what stands here?

Load one by hub id or folder, or `fit` one on the data's own texts where no hub can be reached: from an existing
encoder, or a small one from scratch in about a minute.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from unhans.checkpoint import open_checkpoint, save_folder
from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.model import TOKEN_BUDGET, best_device, fingerprint
from unhans.packing import MAX_PADDING, Forward
from unhans.scoring import Progress, batches_by_length
from unhans.text import Hole, Text, Variant, Words, as_variant
from unhans.tokens import Row, Tokens, padded
from unhans.training import Schedule, Watch, optimise, similar_lengths

_FILL_BUDGET = TOKEN_BUDGET // 2  # every hole costs a line as long as the vocabulary


@dataclass(frozen=True, slots=True)
class Filler:
    """A word that fits a hole, with the model's probability for it."""

    word: str
    probability: float


@dataclass(frozen=True, slots=True)
class _Gap:
    """Tokens of a row that are to be hidden together and guessed."""

    row: Row
    holes: tuple[int, ...]

    def hidden(self, mask: int) -> Row:
        """The row as the model is shown it."""
        ids = list(self.row.ids)
        for at in self.holes:
            ids[at] = mask
        return Row(tuple(ids), self.row.types)


class LanguageModel:
    """A masked language model with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, limit: int, device: str | None = None) -> None:
        if tokenizer.mask_token_id is None:
            raise Unsupported("This tokenizer has no mask token, so the model cannot fill words in.")
        self.model = model.eval().to(device or best_device())
        self.tokenizer, self.limit = tokenizer, limit
        self.tokens = Tokens(tokenizer, limit)
        self._forward = Forward(self.model, tokenizer.pad_token_id)

    @cached_property
    def revision(self) -> str:
        """Fingerprint of weights, settings, tokenizer and length limit: equal revisions fill in the same words."""
        return fingerprint(self.model, self.tokens, (self.limit,))

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, where it runs on the best device that is there."""
        with self._forward.lock:  # a call in another thread may have it rewired
            model = copy.deepcopy(self.model).cpu()
        return type(self), (model, self.tokenizer, self.limit)

    @classmethod
    def open(cls, source: str | Path, *, max_length: int | None = None, device: str | None = None) -> Self:
        """Load a folder or a hub id; one without a language-model head is refused."""
        found = open_checkpoint(source, "language_model")
        return cls(found.model, found.tokenizer, min(found.limit, max_length or found.limit), device)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        *,
        encoder: str | Path | None = None,
        schedule: Schedule | None = None,
        mask_share: float | None = None,
        vocab_size: int = 4000,
        width: int = 128,
        layers: int = 2,
        max_length: int | None = None,
        checkpoints: Path | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Train one to fill gaps in these texts: from an encoder's folder or id, or a small one from scratch."""
        texts = [text for text in texts if text.strip()]
        if not texts:
            raise BadData("A language model needs texts to be fitted on, and there are none.")
        if encoder is not None:
            schedule, share = schedule or Schedule(epochs=2), 0.15 if mask_share is None else mask_share
            found = open_checkpoint(encoder, "language_model", new_head=True, seed=schedule.seed)
            learner = cls(found.model, found.tokenizer, min(found.limit, max_length or found.limit))
        else:
            # found by trial: about a minute on two cores, whatever the number of texts
            epochs = min(40, max(1, round(24_000 / len(texts))))
            schedule = schedule or Schedule(epochs=epochs, learning_rate=2e-3, batch_size=16)
            share = 0.3 if mask_share is None else mask_share
            size = max_length or 128
            # here and not above: it takes seconds to import BERT, which who fits no model does without
            from unhans.scratch import fresh_language_model, fresh_tokenizer

            tokenizer = fresh_tokenizer(texts, vocab_size=vocab_size, max_length=size)
            model = fresh_language_model(tokenizer, layers=layers, width=width, max_length=size, seed=schedule.seed)
            learner = cls(model, tokenizer, size)
        rows = learner.tokens.rows(as_variant(text) for text in texts)
        batches, loss = learner._gap_task(rows, schedule, share)
        optimise(
            learner.model,
            batches,
            loss,
            schedule,
            None,
            checkpoints,
            f"{encoder} {share} {width} {layers} {_fingerprint(rows)}",
            watch or Watch(),
        )
        return learner

    def fill(
        self,
        texts: Iterable[Variant],
        *,
        k: int = 10,
        whole_words: bool = True,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[list[list[Filler]]]:
        """For each text, for each masked word in reading order, the k likeliest words.

        Words are hidden with `Words.without(positions, Hole.MASK)`. With `whole_words` only tokens that are words by
        themselves count. Probabilities are the model's own over its whole vocabulary and do not sum to 1. A hole beyond
        the model's length limit gets no fillers.
        """
        variants = list(texts)
        rows = self.tokens.rows(variants)
        mask = self.tokens.hole_id(Hole.MASK)
        holes = [[at for at, token in enumerate(row.ids) if token == mask] for row in rows]
        wanted = [_holes_after_blank(variant, self.tokens.start_is_blank) for variant in variants]
        seen = [
            self.tokens.holes_read(v, Hole.MASK) if row.cut else range(len(w))
            for v, row, w in zip(variants, rows, wanted, strict=True)
        ]
        results: list[list[list[Filler]]] = [[[] for _ in blanks] for blanks in wanted]
        asked = [number for number, found in enumerate(holes) if found]
        done = 0
        for batch in self._forward.batches([len(rows[number]) for number in asked], _FILL_BUDGET):
            _stop_if(cancelled)
            numbers = [asked[place] for place in batch]
            lines = iter(self._log_probs([rows[n] for n in numbers], [holes[n] for n in numbers]))
            for number in numbers:
                for hole in seen[number]:
                    results[number][hole] = self._best(next(lines), k, whole_words, wanted[number][hole])
            done += len(batch)
            if progress is not None:
                progress(done, len(asked))
        return results

    def log_likelihoods(
        self,
        texts: Iterable[Text],
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[float | None]:
        """How likely each text is: the mean log-probability of its tokens, each hidden in turn and guessed.

        That is the pseudo-log-likelihood of Salazar et al. (2020, arXiv:1910.14659) by token, so exp(-x) is the
        pseudo-perplexity. A text costs as many rows as it has tokens. What is beyond the model's length limit is not
        counted; None for a text without words.
        """
        asked = [self.tokens.row_of_words(Words(text)) for text in texts]
        rows = list(dict.fromkeys(row for row, _ in asked))  # equal texts are one question
        inside = {row: [at for at, owner in enumerate(owners) if owner >= 0] for row, owners in asked}
        gaps = [_Gap(row, (at,)) for row in rows for at in inside[row]]
        sums = dict.fromkeys(rows, 0.0)
        for gap, found in zip(gaps, self._guess(gaps, progress, cancelled), strict=True):
            sums[gap.row] += found
        return [sums[row] / len(inside[row]) if inside[row] else None for row, _ in asked]

    def word_log_probs(
        self,
        asked: Sequence[tuple[Text, int]],
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[float]:
        """How well word number n fits each text: the mean log-probability of its tokens, all hidden at once.

        A word beyond the model's length limit is judged among the words around it, in its own part of a pair. A word
        that has no token to itself, such as a full stop that is one token with the word before it, is no guess: 0.
        """
        found = [self._gap_of_word(Words(text), number) for text, number in asked]
        gaps = list(dict.fromkeys(gap for gap in found if gap.holes))
        known = dict(zip(gaps, self._guess(gaps, progress, cancelled), strict=True))
        return [known[gap] / len(gap.holes) if gap.holes else 0.0 for gap in found]

    def embed(
        self,
        texts: Iterable[Text],
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> NDArray[np.float64]:
        """What each text means to the model, texts × width: the mean of its last layer over all tokens of a text."""
        rows = self.tokens.rows(as_variant(text) for text in texts)
        found = np.zeros((len(rows), self.model.config.hidden_size))
        done = 0
        for batch in batches_by_length([len(row) for row in rows], TOKEN_BUDGET, MAX_PADDING):
            _stop_if(cancelled)
            found[batch] = self._mean_of_last_layer([rows[number] for number in batch])
            done += len(batch)
            if progress is not None:
                progress(done, len(rows))
        return found

    def around(self, text: str, position: int, room: int | None = None) -> tuple[str, int]:
        """The largest stretch of whole words around word number `position` that the model reads, and its number there.

        Of a text that fits, all of it. `room` is how many tokens there are for it, if less than the model's limit
        leaves; the word itself is kept in any case.
        """
        words = Words(text)
        _, owners = self._whole.row_of_words(words)
        frame = owners.count(-1)
        free = self.limit - frame if room is None else room
        sizes = [owners.count(number) for number in range(len(words))]
        if sum(sizes) <= free:
            return text, position
        first, last = _stretch(sizes, position, free)
        while True:  # a word may fall into other tokens where its neighbours are gone
            part = text[words.spans[first].start : words.spans[last - 1].end]
            if len(self._whole.rows([as_variant(part)])[0]) - frame <= free or last - first == 1:
                return part, position - first
            first, last = (first + 1, last) if position - first >= last - position else (first, last - 1)

    def save(self, folder: str | Path) -> Path:
        """Write a folder that Hugging Face loads; whole or not at all."""
        return save_folder(folder, self.model, self.tokenizer)

    def _log_probs(self, rows: Sequence[Row], holes: Sequence[Sequence[int]]) -> Tensor:
        with torch.inference_mode():
            return log_softmax(self._forward(rows, holes).float(), dim=-1).cpu()

    def _guess(
        self, gaps: Sequence[_Gap], progress: Progress | None, cancelled: Callable[[], bool] | None
    ) -> list[float]:
        """For each gap, the sum of the log-probabilities of what really stands there."""
        found = [0.0] * len(gaps)
        mask, done = self.tokens.hole_id(Hole.MASK), 0
        for batch in self._forward.batches([len(gap.row) for gap in gaps], _FILL_BUDGET):
            _stop_if(cancelled)
            chosen = [gaps[number] for number in batch]
            lines = self._log_probs([gap.hidden(mask) for gap in chosen], [gap.holes for gap in chosen])
            truth = torch.tensor([gap.row.ids[at] for gap in chosen for at in gap.holes])
            values = iter(lines.gather(1, truth[:, None])[:, 0].tolist())
            for number, gap in zip(batch, chosen, strict=True):
                found[number] = sum(next(values) for _ in gap.holes)
            done += len(batch)
            if progress is not None:
                progress(done, len(gaps))
        return found

    def _gap_of_word(self, words: Words, number: int) -> _Gap:
        """A text with all tokens of one word to be hidden; of a text that is too long, the words around it."""
        if not 0 <= number < len(words):
            raise BadOption(f"There is no word {number} in a text of {len(words)} words.")
        row, owners = self.tokens.row_of_words(words)
        if row.cut:
            pair = words.spans[number].part == "pair"
            before = sum(span.part == "text" for span in words.spans) if pair else 0
            part, number = self.around(words.parts[pair], number - before)
            row, owners = self.tokens.row_of_words(Words(part))
        return _Gap(row, tuple(at for at, owner in enumerate(owners) if owner == number))

    def _mean_of_last_layer(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        def tensor(lines: Sequence[Sequence[int]], fill: int) -> Tensor:
            return torch.tensor(padded(lines, fill), device=self.model.device)

        mask = tensor([(1,) * len(row) for row in rows], 0)
        inputs = {"input_ids": tensor([row.ids for row in rows], self.tokenizer.pad_token_id or 0)}
        if rows[0].types is not None:
            inputs["token_type_ids"] = tensor([row.types or () for row in rows], 0)
        with self._forward.lock, torch.inference_mode():  # a packed call in another thread has the model rewired
            layer = self.model.base_model(attention_mask=mask, **inputs).last_hidden_state.double()
        mean: NDArray[np.float64] = ((layer * mask[..., None]).sum(1) / mask.sum(1)[:, None]).cpu().numpy()
        return mean

    @cached_property
    def _whole(self) -> Tokens:
        """Tokens of texts of any length, to see where a text that is too long may be cut."""
        return Tokens(self.tokenizer, sys.maxsize)

    def _best(self, line: Tensor, k: int, whole_words: bool, after_blank: bool) -> list[Filler]:
        allowed = self._word_tokens[after_blank] if whole_words else self._any_tokens
        values, places = line[allowed].topk(min(k, len(allowed)))
        ids = allowed[places].tolist()
        return [
            Filler(self.tokens.strings[token], float(value.exp())) for token, value in zip(ids, values, strict=True)
        ]

    @cached_property
    def _any_tokens(self) -> Tensor:
        return torch.tensor(self.tokens.ordinary)

    @cached_property
    def _word_tokens(self) -> dict[bool, Tensor]:
        return {after_blank: torch.tensor(found) for after_blank, found in self.tokens.whole_words.items()}

    def _gap_task(
        self, rows: Sequence[Row], schedule: Schedule, share: float
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Batches and loss of BERT's own training: hide a share of the tokens, guess them."""
        special, mask, usable = (
            set(self.tokenizer.all_special_ids),
            self.tokens.hole_id(Hole.MASK),
            self._any_tokens.tolist(),
        )

        def batches(rng: np.random.Generator) -> list[list[int]]:
            return similar_lengths([len(row) for row in rows], schedule.batch_size, rng)

        def loss(numbers: list[int]) -> tuple[Tensor, None]:
            rng = np.random.default_rng(int(torch.randint(2**62, ())))  # the loop has seeded torch for this step
            shown: list[Row] = []
            holes: list[list[int]] = []
            truth: list[int] = []
            for row in (rows[number] for number in numbers):
                open_to = [at for at, token in enumerate(row.ids) if token not in special] or [0]
                places = sorted(rng.choice(open_to, max(1, round(share * len(open_to))), replace=False).tolist())
                ids = list(row.ids)
                for at, dice in zip(places, rng.random(len(places)), strict=True):
                    ids[at] = mask if dice < 0.8 else ids[at] if dice < 0.9 else int(rng.choice(usable))
                shown.append(Row(tuple(ids), row.types))
                holes.append(places)
                truth.extend(row.ids[at] for at in places)
            logits = self._forward(shown, holes)
            return cross_entropy(logits, torch.tensor(truth, device=logits.device)), None

        return batches, loss


def _stretch(sizes: Sequence[int], position: int, room: int) -> tuple[int, int]:
    """The largest range around a position whose sizes add up to no more than the room: in turn one at either side."""
    first, last = position, position + 1
    room -= sizes[position]
    while True:
        before = first > 0 and sizes[first - 1] <= room
        if before:
            first -= 1
            room -= sizes[first]
        after = last < len(sizes) and sizes[last] <= room
        if after:
            room -= sizes[last]
            last += 1
        if not before and not after:
            return first, last


def _stop_if(cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled("The language model was stopped.")


def _fingerprint(rows: Sequence[Row]) -> str:
    return blake2b(repr([row.ids for row in rows]).encode(), digest_size=8).hexdigest()


def _holes_after_blank(variant: Variant, start_is_blank: bool) -> list[bool]:
    """For each masked word: does it stand after a blank (True) or against other signs?"""
    found: list[bool] = []
    for part in variant.parts:
        for number, chunk in enumerate(part):
            for place, piece in enumerate(chunk if isinstance(chunk, tuple) else ()):
                if piece is Hole.MASK:
                    before = chunk[place - 1] if place else " " if number == 0 and start_is_blank else None
                    found.append(isinstance(before, str) and before.endswith(" "))
    return found
