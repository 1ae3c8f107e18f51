"""Whole rewrites by a model that writes texts, steered by control codes as in Polyjuice (Wu et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import torch

from unhans.checkpoint import Checkpoint, open_writer
from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import check_counts
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.counterfactuals._search import LONGEST
from unhans.errors import BadOption, Cancelled
from unhans.model import Classifier, best_device
from unhans.text import Words, word_spans
from unhans.tokens import padded
from unhans.types import Edit, Span

_ROOM = 16  # tokens that a rewrite may have more than the text
_BLANK, _SEPARATOR, _ANSWER, _NOTHING = "[BLANK]", "[SEP]", "[ANSWER]", "[EMPTY]"


@counterfactual(needs={"predict"}, paper="arXiv:2101.00288", opens=("model",))
def generate(
    classifier: Classifier,
    drafts: Sequence[Draft],
    constraints: Constraints,
    rngs: Sequence[np.random.Generator],
    how: dict[str, Any],
    *,
    model: Annotated[str, "folder or hub id of a seq2seq or causal model that rewrites texts"] = "",
    prompt: Annotated[str, "what the model is given, with {text}, and perhaps {code} and {label}"] = (
        "{text} <|perturb|> [{code}]"
    ),
    codes: Annotated[str, "control codes to put in the prompt's place for them, separated by blanks"] = (
        "negation lexical insert delete"
    ),
    samples: Annotated[int, "rewrites drawn for each code"] = 4,
) -> list[list[tuple[Edit, ...]]]:
    """Rewrites of the text as a whole, cut into edits of words; those of more than 12 are dropped.

    Fit for Polyjuice (`uw-hai/polyjuice`) and models with prompts of their own. An answer with [BLANK]s, followed by
    [SEP] and what goes into them, is put together. Of a pair each part with words that may be changed is rewritten. A
    text that leaves no room in the model is not, nor one that has the model's control words in it.
    """
    if not model:
        raise BadOption("generate needs model=, the folder or hub id of a model that rewrites texts.")
    if "{text}" not in prompt:
        raise BadOption(f"The prompt of generate has no {{text}}; this one is {prompt!r}.")
    check_counts(1, samples=samples)
    writer = _opened(model)
    control = sorted(token.content for token in writer.tokenizer.added_tokens_decoder.values() if token.special)
    results: list[list[tuple[Edit, ...]]] = []
    for on, rng in zip(drafts, rngs, strict=True):
        if (cancelled := how.get("cancelled")) is not None and cancelled():
            raise Cancelled("Rewriting was stopped.")
        questions = list(_questions(on, prompt, codes.split(), classifier, control))
        found: dict[tuple[Edit, ...], None] = {}
        for number, written in _write(writer, questions, samples, int(rng.integers(2**31))):
            edits = edits_between(on, number, put_together(written))
            if edits and all(constraints.allows(on, edit) for edit in edits):
                found[edits] = None
        results.append(sorted(found, key=len))
    return results


def _questions(
    on: Draft, prompt: str, codes: Sequence[str], classifier: Classifier, control: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """For each part that may be changed and each code, what the model is given."""
    parts = sorted({on.words.spans[position].part == "pair" for position in on.open})
    # a text with a control word of the model's in it could not be told from the prompt
    parts = [number for number in parts if not any(word in on.example.parts[number] for word in control)]
    others = [n for n in range(len(classifier.labels)) if n != on.goal.original]
    targets = others if on.goal.target is None else [on.goal.target]
    for number in parts:
        before, _, after = prompt.partition("{text}")
        for code in codes if "{code}" in prompt else [""]:
            for target in targets if "{label}" in prompt else targets[:1]:
                said = (
                    piece.replace("{code}", code).replace("{label}", classifier.labels[target])
                    for piece in (before, after)
                )
                yield int(number), on.example.parts[number].join(said)


@lru_cache(maxsize=1)
def _opened(source: str) -> Checkpoint:
    """The model, kept for the next step of the search; one at a time, for they are large."""
    found = open_writer(source)
    return Checkpoint(found.model.to(best_device()), found.tokenizer, found.limit)


def _write(writer: Checkpoint, questions: Sequence[tuple[int, str]], samples: int, seed: int) -> list[tuple[int, str]]:
    """What the model answers, drawn from its own probabilities; nothing to a prompt that leaves no room."""
    model, tokenizer = writer.model, writer.tokenizer
    causal = not model.config.is_encoder_decoder  # it goes on where the prompt ends, so padding must stand before it
    lines = [(number, tokenizer(given, verbose=False)["input_ids"]) for number, given in questions]
    lines = [(number, ids) for number, ids in lines if 0 < len(ids) < (writer.limit if causal else writer.limit + 1)]
    if not lines:
        return []
    longest = max(len(ids) for _, ids in lines)
    end = tokenizer.eos_token_id
    fill = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end if end is not None else 0
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed)
        answers = model.generate(
            input_ids=torch.tensor(padded([ids for _, ids in lines], fill, left=causal), device=model.device),
            attention_mask=torch.tensor(padded([[1] * len(ids) for _, ids in lines], 0, causal), device=model.device),
            do_sample=True,
            num_return_sequences=samples,
            max_new_tokens=min(longest + _ROOM, writer.limit - longest) if causal else longest + _ROOM,
            pad_token_id=fill,
        )
    own = answers[:, longest:] if causal else answers
    numbers = [number for number, _ in lines for _ in range(samples)]
    return [(number, _ended(tokenizer, line.tolist())) for number, line in zip(numbers, own, strict=True)]


def _ended(tokenizer: Any, ids: list[int]) -> str:
    """The answer up to its end; control words of the model's language are kept, for they may mean something."""
    stops = {tokenizer.eos_token_id, tokenizer.pad_token_id} - {None}
    started = next((n for n, token in enumerate(ids) if token not in stops), len(ids))
    ended = next((n for n in range(started, len(ids)) if ids[n] in stops), len(ids))
    return str(tokenizer.decode(ids[started:ended])).strip()


def put_together(answer: str) -> str:
    """An answer such as "It is [BLANK] good. [SEP] not [ANSWER]" with its blanks filled; any other as it is."""
    text, separator, rest = answer.partition(_SEPARATOR)
    if not separator:
        return answer
    fillings = [filling.strip().replace(_NOTHING, "") for filling in rest.split(_ANSWER)]
    pieces = text.split(_BLANK)
    said = [pieces[0]]
    for piece, filling in zip(pieces[1:], [*fillings, *[""] * len(pieces)], strict=False):
        said += [filling, piece]
    return " ".join("".join(said).split())


def edits_between(on: Draft, number: int, written: str) -> tuple[Edit, ...] | None:
    """The edits of words that make one part of a draft read as was written; None where no such edits do.

    New words join the word after them, at the end the word before. Only open words may change.
    """
    spans = word_spans(written)
    new = [written[span.start : span.end] for span in spans]
    words = Words(on.example)
    back = {place: position for position, place in on.places.items()}
    own = [place for place, span in enumerate(words.spans) if (span.part == "pair") == bool(number)]
    if not own:
        return None
    changes = _changes([words.strings[place] for place in own], new, written, spans)
    if len(changes) > LONGEST or any(back.get(own[n]) not in on.open for n in changes):
        return None
    edits = tuple(on.edit(back[own[n]], changes[n]) for n in sorted(changes))
    made = words.variant({own[n]: string for n, string in changes.items()}).texts
    others = [raw for n, raw in enumerate(words.parts) if n != number]
    if [raw for n, raw in enumerate(made) if n != number] != others or any(edit.old == edit.new for edit in edits):
        return None
    return edits if [made[number][s.start : s.end] for s in word_spans(made[number])] == new else None


def _changes(old: Sequence[str], new: Sequence[str], written: str, spans: Sequence[Span]) -> dict[int, str]:
    """What each old word that changes becomes, by the shortest script between the two lists of words."""

    def slice_of(first: int, last: int) -> str:
        return written[spans[first].start : spans[last - 1].end] if first < last else ""

    changes: dict[int, str] = {}
    begun: dict[int, int] = {}  # where the new words before a word that stays begin
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "insert" and i < len(old):
            changes[i], begun[i] = slice_of(j, j_end + 1), j
        elif tag == "insert":
            changes[i - 1] = slice_of(begun.get(i - 1, j - 1), j_end)
        elif tag != "equal":
            for k in range(i, i_end):  # one for one; what is left over stays with the last
                one = j + k - i
                changes[k] = slice_of(one, j_end if k == i_end - 1 else min(one + 1, j_end))
    return {k: string for k, string in changes.items() if string != old[k]}
