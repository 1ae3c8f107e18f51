"""What an edit must keep to; each rule can be switched off."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from unhans.counterfactuals._drafts import Draft, combined, draft
from unhans.errors import BadOption
from unhans.language_model import LanguageModel
from unhans.model import Classifier, TransformerClassifier
from unhans.registry import Option
from unhans.text import as_variant, visible_form, word_spans
from unhans.types import Edit
from unhans.wordnet import open_wordnet

SEARCH = (
    Option("max_edits", "int", 5, help="words changed at most"),
    Option("beam", "int", 10, help="drafts kept after each step"),
    Option("alternatives", "int", 4, help="other words shown for each step"),
    Option("part", "choice", "both", ("both", "text", "pair"), "of a pair, which text may be changed"),
    Option("whole_words", "bool", True, help="new words are whole words, not pieces of a vocabulary or signs"),
    Option("ordinary", "bool", True, help="no control tokens and none that a vocabulary keeps in reserve"),
    Option("once", "bool", True, help="each word is changed once at most"),
    Option("same_pos", "bool", False, help="the new word is of the same part of speech as the old one"),
    Option("similarity", "float", 0.0, help="least cosine between the model's embeddings of old and new word; 0: any"),
    Option(
        "fluency", "float", 0.0, help="most that a new word may be less likely to a language model, in nats; 0: any"
    ),
    Option("protected", "str", "", help="words that stay as they are, separated by blanks"),
)
_REMEMBERED = 200_000
_CONTROL = re.compile(r"\[(?:unused\d+|[A-Z]+)\]|</?[a-z_|0-9]+>|madeupword\d+")
_JOINING = str.maketrans("", "", "'’-")
Tagger = Callable[[Sequence[str]], Sequence[str]]
"""Gives each word of a text its part of speech. Without one, WordNet says which is the usual one of each word."""


@dataclass(frozen=True)
class Constraints:
    """The rules of one search."""

    settings: Mapping[str, Any]
    classifier: Classifier
    language_model: LanguageModel | None = None
    tagger: Tagger | None = None
    _tags: dict[tuple[str, ...], Sequence[str]] = field(default_factory=dict)
    _embedded: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.settings["same_pos"] and self.tagger is None:
            open_wordnet()  # says so at once if there is none either
        if self.settings["similarity"] and not isinstance(self.classifier, TransformerClassifier):
            raise BadOption("similarity compares the model's own embeddings, and this classifier does not show any.")
        if self.settings["fluency"] and self.language_model is None:
            raise BadOption(
                "fluency needs language_model=, a masked language model: LanguageModel.open(folder or id), or "
                "LanguageModel.fit(texts) to train one on your own texts."
            )

    @property
    def whole_words(self) -> bool:
        """Whether new words must be whole words."""
        return bool(self.settings["whole_words"])

    @property
    def ordinary(self) -> bool:
        """Whether control tokens and reserved ones are out."""
        return bool(self.settings["ordinary"])

    @cached_property
    def protected(self) -> frozenset[str]:
        """The words that stay, in their visible form."""
        return frozenset(map(visible_form, str(self.settings["protected"]).split()))

    def allows(self, on: Draft, edit: Edit) -> bool:
        """Whether a single edit of a draft keeps to the rules, the fluency aside, which costs more to check."""
        old, new = on.words.strings[edit.position], edit.new
        if edit.position not in on.open or visible_form(old) == visible_form(new):
            return False
        if self.protected and visible_form(old) in self.protected:
            return False
        if self.whole_words and not all(map(_is_word, _words(new))):
            return False
        if self.ordinary and _CONTROL.search(new):
            return False
        return self._is_near(old, new) and self._same_pos(on, edit)

    def fluent(self, asked: Sequence[tuple[Draft, tuple[Edit, ...]]], cancelled: Any = None) -> list[bool]:
        """Which proposals a language model does not find much less likely than the words they replace.

        Insertions and deletions are not words in the place of another, and pass.
        """
        if not self.settings["fluency"]:
            return [True] * len(asked)
        assert self.language_model is not None  # made sure at the start
        questions: list[tuple[Any, int]] = []
        ranges: list[tuple[int, int]] = []
        for on, edits in asked:
            made = draft(on.words, combined(on.edits, edits), on.words.open, on.goal, on.example.id)
            both = [e.position for e in edits if made and e.position in made.places and e.position in on.places]
            start = len(questions)
            questions += [(on.example, on.places[n]) for n in both]
            questions += [(made.example, made.places[n]) for n in both] if made else []
            ranges.append((start, len(both)))
        likely = self.language_model.word_log_probs(questions, cancelled=cancelled)
        most = float(self.settings["fluency"])
        return [all(likely[start + k] - likely[start + n + k] <= most for k in range(n)) for start, n in ranges]

    def _is_near(self, old: str, new: str) -> bool:
        least = float(self.settings["similarity"])
        if not least or not new:
            return True
        return float(cosine_similarity(self._embedding(old), self._embedding(new), dim=0)) >= least

    def _embedding(self, word: str) -> Tensor:
        """The mean of a word's pieces in the model's own table."""
        if word not in self._embedded:
            assert isinstance(self.classifier, TransformerClassifier)  # made sure at the start
            if len(self._embedded) > _REMEMBERED:
                self._embedded.clear()
            control = set(self.classifier.tokenizer.all_special_ids)
            ids = [n for n in self.classifier.tokens.rows([as_variant(f" {word}")])[0].ids if n not in control]
            table = self.classifier.model.get_input_embeddings().weight
            self._embedded[word] = table[ids].detach().mean(0) if ids else torch.zeros(table.shape[1])
        return self._embedded[word]

    def _same_pos(self, on: Draft, edit: Edit) -> bool:
        if not self.settings["same_pos"] or not edit.new or len(_words(edit.new)) != 1:
            return True
        before = on.words.strings
        after = (*before[: edit.position], edit.new, *before[edit.position + 1 :])
        return self._tagged(before)[edit.position] == self._tagged(after)[edit.position]

    def _tagged(self, words: tuple[str, ...]) -> Sequence[str]:
        if words not in self._tags:
            if len(self._tags) > _REMEMBERED // 20:
                self._tags.clear()
            self._tags[words] = (self.tagger or open_wordnet().tag)(words)
        return self._tags[words]


def _words(string: str) -> list[str]:
    return [string[span.start : span.end] for span in word_spans(string)]


def _is_word(string: str) -> bool:
    return string.translate(_JOINING).isalnum()
