"""Texts as the model sees them: the mean of its last states over the tokens of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unhans.listening import listening
from unhans.model import TOKEN_BUDGET, Batch, Classifier, TransformerClassifier
from unhans.packing import MAX_PADDING
from unhans.scoring import batches_by_length
from unhans.text import as_variant
from unhans.types import Example

Floats = NDArray[np.float64]


def embeddings_of(
    classifier: Classifier, texts: Sequence[Example], tell: Callable[[int, int], None] | None = None
) -> Floats:
    """One line a text, seen from the middle of all and of length 1: products of lines are similarities."""
    table = states_of(classifier, texts, tell)
    return directions(table, table.mean(axis=0))


def directions(states: Floats, middle: Floats) -> Floats:
    """Where each text lies, seen from this middle, as lines of length 1; a text in the middle itself lies nowhere.

    The states of a fine-tuned model all point much the same way; from their middle they can be told apart.
    """
    table = states - middle
    sizes = np.linalg.norm(table, axis=1, keepdims=True)
    lines_of_length_1: Floats = np.divide(table, sizes, out=np.zeros_like(table), where=sizes > 1e-12)
    return lines_of_length_1


def states_of(
    classifier: Classifier, texts: Sequence[Example], tell: Callable[[int, int], None] | None = None
) -> Floats:
    """The mean of the last states over the tokens of each text: texts × width."""
    assert isinstance(classifier, TransformerClassifier)  # who asks for this needs gradients, so the front door checked
    lengths = [len(row) for row in classifier.tokens.rows([as_variant(text) for text in texts])]
    lines: dict[int, Floats] = {}
    for numbers in batches_by_length(lengths, TOKEN_BUDGET, MAX_PADDING):
        found = _states(classifier, classifier.batch([texts[n] for n in numbers]))
        lines.update(zip(numbers, found.double().cpu().numpy(), strict=True))
        if tell is not None:
            tell(len(lines), len(texts))
    return np.stack([lines[n] for n in range(len(texts))])


def _states(classifier: TransformerClassifier, batch: Batch) -> Tensor:
    """The mean of the last states of each text; what the last linear layer reads, in models without a state a token."""
    states: list[Tensor] = []

    base = classifier.model.base_model
    last = [part for part in classifier.model.modules() if isinstance(part, torch.nn.Linear)][-1]
    whole = base is classifier.model

    def keep(_: Any, given: tuple[Any, ...], output: Any) -> None:
        state = given[0] if whole else getattr(output, "last_hidden_state", None)
        if state is not None:
            states.append(state)

    with listening([last if whole else base], keep), torch.no_grad():
        classifier.logits(batch)
    state = states[-1].float()
    if state.ndim == 2:
        return state
    mask = batch.mask.to(state)[..., None]
    return (state * mask).sum(1) / mask.sum(1).clamp(min=1)
