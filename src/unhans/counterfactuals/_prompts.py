"""Texts with one word hidden, as a language model is shown them: perhaps with a sentence that names a label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unhans.errors import BadOption
from unhans.language_model import LanguageModel
from unhans.text import Hole, Variant, Words, as_variant

_NAMELESS = re.compile(r"(?:label|class)?[\W_]*\d*", re.IGNORECASE)
_SENTIMENTS = {"positive", "negative", "neutral", "mixed", "pos", "neg", "neu", "very positive", "very negative"}
_SEAM = 2  # tokens more that a text may have where it meets the prompt


def default_prompt(labels: Sequence[str]) -> str:
    """A sentence that makes the label known; none where the labels' names say nothing, such as LABEL_0."""
    if any(_NAMELESS.fullmatch(label) for label in labels):
        return ""
    if {named(label).lower() for label in labels} <= _SENTIMENTS:
        return '"{text}" The sentiment of this text is {label}.'
    return '"{text}" The label of this text is {label}.'


def named(label: str) -> str:
    """A label's name as it would stand in a sentence."""
    return " ".join(label.replace("_", " ").split())


def check_prompt(prompt: str) -> str:
    """The template, if it has one place for the text: with two, the hidden word could be read at the other."""
    if prompt and prompt.count("{text}") != 1:
        raise BadOption(f"A prompt has {{text}} once, and perhaps {{label}}; this one is {prompt!r}.")
    return prompt


@dataclass(frozen=True)
class Prompt:
    """What stands before and after the text in which a word is hidden."""

    before: str = ""
    after: str = ""

    @classmethod
    def made(cls, template: str, label: str) -> Prompt:
        """A template for this label; an empty one adds nothing."""
        before, _, after = template.partition("{text}")
        return cls(before.replace("{label}", named(label)), after.replace("{label}", named(label)))

    def hide(self, model: LanguageModel, words: Words, places: Iterable[int]) -> dict[int, Variant]:
        """The text with one word hidden, for each of these places.

        Of a pair, the part with the word is prompted and the other kept. What is too long for the model is cut
        down to the words around the hidden one, and the other part of a pair left out.
        """
        wholes = self._around(words, places)
        rows = model.tokens.rows(wholes.values())
        return {
            place: self._window(model, words, place) if row.cut else whole
            for (place, whole), row in zip(wholes.items(), rows, strict=True)
        }

    def _window(self, model: LanguageModel, words: Words, place: int) -> Variant:
        number = words.spans[place].part == "pair"
        inside = place - sum(span.part == "text" for span in words.spans) * number
        room = model.limit - len(model.tokens.rows([as_variant(self.before + self.after)])[0]) - _SEAM
        shown = self if room >= model.limit // 4 else Prompt()  # a prompt that leaves no room for the text goes
        part, inside = model.around(words.parts[number], inside, room if shown is self else None)
        return shown._around(Words(part), [inside])[inside]

    def _around(self, words: Words, places: Iterable[int]) -> dict[int, Variant]:
        """The prompt laid around the part with the word; not where the two would run together."""
        found: dict[int, Variant] = {}
        laid = [self._laid(words.parts, number) for number in range(len(words.parts))]
        for place in places:
            span = words.spans[place]
            prompted, numbers = laid[span.part == "pair"]
            there = numbers.get((span.part, span.start + len(self.before), span.end + len(self.before)))
            hidden, at = (prompted, there) if there is not None else (words, place)
            found[place] = hidden.without([at], Hole.MASK)
        return found

    def _laid(self, parts: Sequence[str], number: int) -> tuple[Words, dict[tuple[str, int, int], int]]:
        """The words with the prompt around one part, and their numbers by where they stand."""
        said = [f"{self.before}{raw}{self.after}" if n == number else raw for n, raw in enumerate(parts)]
        words = Words(said[0] if len(said) == 1 else (said[0], said[1]))
        return words, {(span.part, span.start, span.end): n for n, span in enumerate(words.spans)}


def fill_each(
    model: LanguageModel, variants: Iterable[Variant], k: int, cancelled: Any = None
) -> dict[Variant, list[str]]:
    """The k likeliest words for the one hole of each variant; equal ones are asked about once."""
    asked = list(dict.fromkeys(variants))
    found = model.fill(asked, k=k, cancelled=cancelled)
    return {one: [filler.word for filler in fillers] for one, (fillers,) in zip(asked, found, strict=True)}
