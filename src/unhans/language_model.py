"""Masked language models: what could stand here instead of this word?

Load one by hub id or folder, or `fit` one on the data's own texts where no hub can be reached: from an existing
encoder, or a small one from scratch in about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from unhans.checkpoint import open_checkpoint, save_folder
from unhans.errors import BadData, Cancelled, Unsupported
from unhans.model import TOKEN_BUDGET, best_device
from unhans.packing import Forward
from unhans.scoring import Progress
from unhans.scratch import fresh_language_model, fresh_tokenizer
from unhans.text import Hole, Variant, as_variant
from unhans.tokens import Row, Tokens
from unhans.training import Schedule, Watch, optimise, similar_lengths

_FILL_BUDGET = TOKEN_BUDGET // 2  # every hole costs a line as long as the vocabulary


@dataclass(frozen=True, slots=True)
class Filler:
    """A word that fits a hole, with the model's probability for it."""

    word: str
    probability: float


class LanguageModel:
    """A masked language model with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, limit: int, device: str | None = None) -> None:
        if tokenizer.mask_token_id is None:
            raise Unsupported("This tokenizer has no mask token, so the model cannot fill words in.")
        self.model = model.eval().to(device or best_device())
        self.tokenizer, self.limit = tokenizer, limit
        self.tokens = Tokens(tokenizer, limit)
        self._forward = Forward(self.model, tokenizer.pad_token_id)

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
            if cancelled is not None and cancelled():
                raise Cancelled("Filling was stopped.")
            numbers = [asked[place] for place in batch]
            lines = iter(self._log_probs([rows[n] for n in numbers], [holes[n] for n in numbers]))
            for number in numbers:
                for hole in seen[number]:
                    results[number][hole] = self._best(next(lines), k, whole_words, wanted[number][hole])
            done += len(batch)
            if progress is not None:
                progress(done, len(asked))
        return results

    def save(self, folder: str | Path) -> Path:
        """Write a folder that Hugging Face loads; whole or not at all."""
        return save_folder(folder, self.model, self.tokenizer)

    def _log_probs(self, rows: Sequence[Row], holes: Sequence[Sequence[int]]) -> Tensor:
        with torch.inference_mode():
            return log_softmax(self._forward(rows, holes).float(), dim=-1).cpu()

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
