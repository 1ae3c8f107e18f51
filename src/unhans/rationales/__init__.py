"""Rationales: which words a model may be said to use.

An attribution gives every word a score; a rationale says yes or no. A member of the family makes the one into the
other. `select` explains texts and chooses, `rationale_of` chooses from an explanation that exists already, `drawn`
takes what a person chose. Only `select` needs a model: everything else runs without the libraries of models.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unhans.errors import BadOption
from unhans.registry import Entry, Registry
from unhans.text import Text, Words, word_spans
from unhans.types import Attribution, Example, OptionValue, Part, Rationale, Recipe, Span

if TYPE_CHECKING:
    from unhans.language_model import LanguageModel
    from unhans.model import Classifier
    from unhans.scoring import Progress, ScoreCache

rationale = Registry(
    "rationales",
    offers=(
        "scores",  # one for each word; 0 for words that were not read
        "words",  # `Readable`: the words themselves, which of them were read, and their sentences
    ),
    package="unhans.rationales",
)
_DRAWN = Recipe("rationales", "drawn")


@dataclass(frozen=True)
class Readable:
    """What has a score (words, or phrases or sentences), and which of it the model read."""

    strings: tuple[str, ...]
    spans: tuple[Span, ...]
    unread: frozenset[int]
    parts: tuple[str, ...]  # the raw texts

    @cached_property
    def open(self) -> tuple[int, ...]:
        """Numbers of those that were read: only they can be chosen."""
        return tuple(n for n in range(len(self.spans)) if n not in self.unread)

    def passages(self, by: Literal["text", "sentence"]) -> list[tuple[int, ...]]:
        """What is chosen from on its own: all that was read, or what was read of each sentence."""
        if by == "text":
            return [self.open]
        ends = {(span.part, span.end) for span in Words(_as_text(self.parts), units="sentence").spans}
        starts = [0, *(n for n in range(1, len(self.spans)) if self._new_sentence(n, ends))]
        cuts = zip(starts, [*starts[1:], len(self.spans)], strict=True)
        found = [tuple(n for n in range(start, end) if n not in self.unread) for start, end in cuts]
        return [passage for passage in found if passage]

    def _new_sentence(self, n: int, ends: Container[tuple[str, int]]) -> bool:
        before = self.spans[n - 1]
        return before.part != self.spans[n].part or (before.part, before.end) in ends

    def neighbours(self, first: int, second: int) -> bool:
        """Whether one stands right before the other, in the same text."""
        return second == first + 1 and self.spans[first].part == self.spans[second].part


def select(
    classifier: Classifier,
    texts: Text | Iterable[Text],
    *,
    method: str = "top_share",
    attribution: str = "leave_one_out",
    explain: Mapping[str, Any] | None = None,
    target: str | int | None = None,
    background: Sequence[Example] | None = None,
    language_model: LanguageModel | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
    **options: Any,
) -> list[Rationale]:
    """One rationale per text, for the label `target` or else for the label the model predicts.

    The texts are explained by `attribution` with the options `explain` (`units` is one of them: with sentences, whole
    sentences are chosen); `options` are those of the rationale's own method.
    """
    from unhans.attributions import attribute  # needs torch, which choosing does not
    from unhans.model import as_examples

    rationale[method].settings(options)  # before the work, not after it
    examples = list(as_examples(texts))
    found = attribute(
        classifier,
        examples,
        method=attribution,
        target=target,
        background=background,
        language_model=language_model,
        seed=seed,
        progress=progress,
        cancelled=cancelled,
        cache=cache,
        **(explain or {}),
    )
    return [rationale_of(one, text=e, method=method, **options) for one, e in zip(found, examples, strict=True)]


def rationale_of(
    attribution: Attribution, *, text: Text | None = None, method: str = "top_share", **options: Any
) -> Rationale:
    """The rationale that follows from an explanation.

    Its positions are those of words, also where phrases or sentences have the scores. An attribution does not know
    what stands between its words, so without `text` a sentence that ends at a line break alone is not seen to end.
    """
    entry = rationale[method]
    settings = entry.settings(options)
    words = Readable(attribution.words, attribution.spans, frozenset(attribution.unread), _parts(attribution, text))
    if settings.get("by") == "sentence" and attribution.terms.unit == "sentence":
        raise BadOption("These are scores of whole sentences. Choose by text, or explain words to choose by sentence.")
    offered = {"scores": np.array(attribution.scores, np.float64), "words": words}
    units = sorted(entry(offered, **options)) if words.open else []
    groups = [_words_in(string, span) for string, span in zip(words.strings, words.spans, strict=True)]
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    spans = [span for group in groups for span in group]
    raw = {"text": words.parts[0], "pair": words.parts[-1]}
    return Rationale(
        attribution.example,
        attribution.label,
        tuple(raw[span.part][span.start : span.end] for span in spans),
        tuple(spans),
        tuple(n for unit in units for n in range(starts[unit], starts[unit + 1])),
        _recipe(entry, settings, attribution),
        attribution.revision,
    )


def drawn(example: Example, positions: Iterable[int], label: str, revision: str) -> Rationale:
    """The words that a person chose, by number; a number that no word has is an error."""
    words, chosen = Words(example), list(positions)
    if odd := [n for n in chosen if type(n) is not int or not 0 <= n < len(words)]:
        has = f"words 0 to {len(words) - 1}" if len(words) else "no words"
        raise BadOption(f"There is no word {odd[0]!r} in example {example.id!r}: it has {has}. Nothing was chosen.")
    return Rationale(example.id, label, words.strings, words.spans, tuple(sorted(set(chosen))), _DRAWN, revision)


def _recipe(entry: Entry, settings: Mapping[str, OptionValue], attribution: Attribution) -> Recipe:
    """The member's own options, and after the name of the attribution those of the attribution."""
    told: dict[str, OptionValue] = {**settings, "attribution": attribution.recipe.name}
    told |= {f"attribution.{name}": value for name, value in attribution.recipe.options}
    if attribution.terms.unit != "word":
        told["attribution.units"] = attribution.terms.unit
    return Recipe(entry.family, entry.name, tuple(told.items()), attribution.recipe.seed)


def _parts(attribution: Attribution, text: Text | None) -> tuple[str, ...]:
    """The raw texts: those given, or the words at their places with blanks between."""
    if text is None:
        kinds: tuple[Part, ...] = ("text", "pair") if any(s.part == "pair" for s in attribution.spans) else ("text",)
        return tuple(_laid_out(attribution, kind) for kind in kinds)
    parts = Words(text).parts
    for word, span in zip(attribution.words, attribution.spans, strict=True):
        if (span.part == "pair" and len(parts) == 1) or parts[span.part == "pair"][span.start : span.end] != word:
            raise BadOption(
                f"The explanation of {attribution.example!r} is not one of this text: {word!r} is elsewhere."
            )
    return parts


def _laid_out(attribution: Attribution, part: Part) -> str:
    raw = ""
    for word, span in zip(attribution.words, attribution.spans, strict=True):
        if span.part == part:
            raw = raw.ljust(span.start) + word
    return raw


def _words_in(string: str, span: Span) -> list[Span]:
    return [Span(span.start + word.start, span.start + word.end, span.part) for word in word_spans(string)]


def _as_text(parts: Sequence[str]) -> Text:
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])
