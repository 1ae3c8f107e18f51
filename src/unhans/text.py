"""Words: the unit of explanation is what a person clicks on.

A text is cut into words with character spans into the raw text. Two rules hold for every Unicode string, and are
property tests: a word never splits a grapheme (what a reader sees as one character), and every visible character
belongs to exactly one word. "don't", "well-made", "3.5", "#topic" and a web address are one word each; a punctuation
mark or an emoji is a word of its own; scripts written without spaces give one word per character; hidden characters
inside a word stay inside it.

A `Variant` is a text with some words deleted, replaced or hidden: what explanation methods ask a model about. It is
kept in **chunks** (characters up to the next space), because tokenizers work chunk by chunk: nearly all chunks of a
variant are chunks of the original, so their tokens are known already.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import Literal

import regex

from unhans.errors import BadOption
from unhans.types import Edit, Example, Part, Span

# Every atom is a whole grapheme (\X) chosen by its first character, so that no word can end inside one.
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_LETTER = rf"(?:(?=[\p{{L}}\p{{N}}\p{{M}}_])(?![{_NO_SPACES}])\X)"
_HIDDEN = r"(?:(?=[\p{Cf}\p{Cc}])(?!\s)\X)"
_SINGLE = rf"(?![{_NO_SPACES}])\p{{L}}"
_JOINER = (
    r"(?:(?=['’‘ʼ‐‑-])\X|(?<=\p{N})(?=[.,:])\X(?=\p{N})"
    rf"|(?<=(?<!{_SINGLE})\p{{L}})(?=\.)\X(?={_SINGLE}(?!{_SINGLE})))"
)
_WORD = regex.compile(
    rf"https?://(?:(?!\s)\X)+"
    rf"|[@#]{_LETTER}+"
    rf"|{_LETTER}+(?:(?:{_HIDDEN}+|{_JOINER}){_LETTER}+)*"
    rf"|\X"
)
_INVISIBLE = regex.compile(r"[\p{Z}\p{Cc}\p{Cf}]+")
# A blank begins a chunk, but not inside a grapheme, nor after another white or hidden sign: tokenizers may join them.
_CHUNK = regex.compile(r" *[^ ]+(?:(?<=[\s\p{Z}\p{C}\p{GCB=Prepend}]) [^ ]*)*| +")
_APART = regex.compile(rf"[ \n].|(?:(?=\p{{L}})[{_NO_SPACES}]){{2}}", regex.DOTALL)  # two signs that never join


class Hole(Enum):
    """A word that is there but not said: the model sees one of its own special tokens in its place."""

    MASK = "mask"
    UNK = "unk"
    PAD = "pad"


Chunk = str | tuple[str | Hole, ...]
Unit = Literal["word", "phrase", "sentence"]
"""What an explanation gives a score to."""


@dataclass(frozen=True)
class Variant:
    """What a model is asked about: one text or two, as chunks; equal variants are the same question."""

    parts: tuple[tuple[Chunk, ...], ...]

    @property
    def has_holes(self) -> bool:
        """Whether some word is hidden by a special token, which no plain string can say."""
        return any(not isinstance(chunk, str) for part in self.parts for chunk in part)

    @property
    def texts(self) -> tuple[str, ...]:
        """The raw text, or the text and its pair; only for variants without holes."""
        if self.has_holes:
            raise BadOption("A text with hidden words has no plain form. Delete the words instead of hiding them.")
        return tuple("".join(part) for part in self.parts)  # type: ignore[arg-type]


Text = str | tuple[str, str] | Example | Variant
"""Anything that can be scored: a text, a pair, an example, or a variant of one."""


def as_variant(text: Text) -> Variant:
    """The text as a question to a model, unedited."""
    match text:
        case Variant():
            return text
        case Example():
            return Variant(tuple(tuple(_CHUNK.findall(part)) for part in text.parts))
        case str():
            return Variant((tuple(_CHUNK.findall(text)),))
        case (str() as first, str() as second):
            return Variant((tuple(_CHUNK.findall(first)), tuple(_CHUNK.findall(second))))
    raise BadOption(f"A text is a string, a pair of strings or an Example, not {type(text).__name__}.")


def word_spans(text: str, part: Part = "text") -> list[Span]:
    """Where the words of a text are, in reading order."""
    found = (match.span() for match in _WORD.finditer(text) if not _INVISIBLE.fullmatch(match.group()))
    return [Span(start, end, part) for start, end in found]


def visible_form(word: str) -> str:
    """The form under which equal-looking words are counted together: composed, case-folded, hidden signs dropped."""
    shown = "".join(sign for sign in word if unicodedata.category(sign) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", shown).casefold())


class Words:
    """The words of one example, numbered across both parts, and the variants that editing them makes.

    `gone` words are missing from every variant: those that a model does not read must not move up when others are
    deleted. With `units`, sentences or phrases take the place of words: numbered, erased and shown as one.
    """

    def __init__(self, text: Text, *, units: Unit = "word", gone: Iterable[int] = ()) -> None:
        self.parts = as_variant(text).texts
        parts: tuple[Part, ...] = ("text", "pair")
        spans = [word_spans(raw, part) for raw, part in zip(self.parts, parts, strict=False)]
        self._atoms: tuple[Span, ...] = tuple(span for group in spans for span in group)
        self._gone: dict[int, str | Hole] = dict.fromkeys(gone, "")
        self.groups = _groups(self.parts, self._atoms, units, self._gone)  # the words of each unit
        ends = [(self._atoms[group[0]], self._atoms[group[-1]]) for group in self.groups]
        self.spans: tuple[Span, ...] = tuple(Span(first.start, last.end, first.part) for first, last in ends)
        self.strings: tuple[str, ...] = tuple(
            self.parts[span.part == "pair"][span.start : span.end] for span in self.spans
        )
        self.open = tuple(n for n, group in enumerate(self.groups) if group[0] not in self._gone)  # may be changed

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        return f"Words({' '.join(self.strings)!r})"

    @cached_property
    def chunks(self) -> tuple[_ChunkOfWords, ...]:
        """The chunks of both parts in order; each knows the words inside it."""
        found: list[_ChunkOfWords] = []
        first_word = 0
        for number, raw in enumerate(self.parts):
            own = [span for span in self._atoms if (span.part == "pair") == bool(number)]
            found.extend(_cut_into_chunks(raw, own, number, first_word))
            first_word += len(own)
        return tuple(found)

    @cached_property
    def _standing(self) -> tuple[tuple[int, _ChunkOfWords], ...]:
        """The chunks that some variant can have, with their numbers."""
        return tuple((number, chunk) for number, chunk in enumerate(self.chunks) if chunk.lone not in self._gone)

    @cached_property
    def _chunk_of(self) -> dict[int, int]:
        return {word: c for c, chunk in enumerate(self.chunks) for word in chunk.words}

    def edited(self, edits: Iterable[Edit]) -> Variant:
        """The example after these edits. An edit of a word that is not there, or reads otherwise, is an error."""
        changes: dict[int, str | Hole] = {}
        for edit in edits:
            if not 0 <= edit.position < len(self) or self.strings[edit.position] != edit.old:
                raise BadOption(f"Word {edit.position} is not {edit.old!r} in this text.")
            changes[edit.position] = edit.new
        return self.variant(changes)

    def without(self, positions: Iterable[int], hole: Hole | None = None) -> Variant:
        """The example with these words deleted, or hidden by a special token."""
        return self.variant(dict.fromkeys(positions, "" if hole is None else hole))

    def variant(self, changes: Mapping[int, str | Hole]) -> Variant:
        """The example with each word at a given position replaced; an empty string deletes it."""
        changes = self._gone | {
            word: new if first or isinstance(new, Hole) else ""  # a replacement takes the place of the whole unit
            for unit, new in changes.items()
            for first, word in zip((True, *[False] * len(self.groups[unit])), self.groups[unit], strict=False)
        }
        touched = {self._chunk_of[word] for word in changes}
        parts: list[list[Chunk]] = [[] for _ in self.parts]
        for number, chunk in self._standing:
            if number not in touched:
                parts[chunk.part].append(chunk.raw)
            elif chunk.lone is None or changes[chunk.lone] != "":
                parts[chunk.part].extend(chunk.rebuilt(changes))
        for part, raw in zip(parts, self.parts, strict=True):
            if touched and part:  # a new first word must not start with a blank
                part[:1] = _starting(raw[: len(raw) - len(raw.lstrip(" "))], part[0])
        return Variant(tuple(map(tuple, parts)))


def _groups(
    parts: Sequence[str], spans: Sequence[Span], units: Unit, gone: Mapping[int, str | Hole]
) -> tuple[tuple[int, ...], ...]:
    """The words of each unit. A unit never spans two parts, nor words that are read and words that are gone."""
    if units == "word":
        return tuple((number,) for number in range(len(spans)))
    groups: list[list[int]] = []
    for number, span in enumerate(spans):
        before = spans[number - 1] if number else None
        raw = parts[span.part == "pair"]
        if (
            before is None
            or before.part != span.part
            or ((number - 1) in gone) != (number in gone)
            or _begins_unit(raw, before, span, units)
        ):
            groups.append([])
        groups[-1].append(number)
    return tuple(map(tuple, groups))


_CLOSING = r"[\"'”’»)\]]*"
_ENDED = regex.compile(rf"(?:[!?…。！？؟।]+{_CLOSING}\s*| \.{_CLOSING}\s+)$")
_STOPPED = regex.compile(rf"\.{_CLOSING}\s+$")  # ends a sentence unless a small letter follows
_MARKED = regex.compile(rf"[,;:—–，、；：]{_CLOSING}\s*$")
_CLOSES = regex.compile(r"[.!?…。！？؟।,;:—–，、；：\"'”’»)\]]+")
_CONJUNCTIONS = regex.compile(  # English; phrases of other languages are cut at punctuation alone
    r"and|but|or|nor|so|yet|because|although|though|while|whereas|when|if|unless|since|which|who|that"
)


def _begins_unit(raw: str, before: Span, span: Span, units: Unit) -> bool:
    """Whether a sentence or phrase begins at this word: a rule of thumb on punctuation, lines and conjunctions."""
    word = raw[span.start : span.end]
    if "\n" in raw[before.end : span.start]:
        return True
    if _CLOSES.fullmatch(word):  # closing signs stay with what they close
        return False
    tail = raw[max(0, span.start - 12) : span.start]
    if _ENDED.search(tail) or (_STOPPED.search(tail) and not word[:1].islower()):
        return True
    return units == "phrase" and bool(_MARKED.search(tail) or _CONJUNCTIONS.fullmatch(word.casefold()))


@dataclass(frozen=True)
class _ChunkOfWords:
    """Characters up to the next space: the raw string, and its cut into literals and words (by number)."""

    raw: str
    part: int
    pieces: tuple[str | int, ...]
    strings: Mapping[int, str]
    lone: int | None  # the only word, if there is nothing else but blanks: then deleting it deletes the chunk

    @property
    def words(self) -> tuple[int, ...]:
        return tuple(self.strings)

    def rebuilt(self, changes: Mapping[int, str | Hole]) -> list[Chunk]:
        """The chunk after the changes: nothing if all of it went, more than one if words had to be kept apart."""
        pieces: list[str | Hole] = []
        seams: list[int] = []
        changed = False
        for piece in self.pieces:
            new = piece if isinstance(piece, str) else changes.get(piece, self.strings[piece])
            before, changed = changed, piece in changes
            if new == "":
                continue
            if before or changed:
                seams.append(len(pieces))
            pieces.append(new)
        if new == "" and pieces and isinstance(pieces[-1], str):  # the blanks before a last word go with it
            rest = pieces.pop().rstrip(" ")  # type: ignore[union-attr]
            pieces += [rest] if rest else []
        starts = [0, *_merging(pieces, seams)]
        groups = [pieces[start:end] for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
        found = [_chunk(groups[0]), *(_chunk([" ", *group]) for group in groups[1:])]
        return found if len(found) > 1 or not isinstance(found[0], str) or found[0].strip(" ") else []


def _chunk(pieces: Sequence[str | Hole]) -> Chunk:
    """Neighbouring strings joined; a plain string if there is no hole."""
    joined: list[str | Hole] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    if any(isinstance(piece, Hole) for piece in joined):
        return tuple(joined)
    return "".join(joined)  # type: ignore[arg-type]


def _starting(blanks: str, chunk: Chunk) -> list[Chunk]:
    """The first chunk of a text, with these blanks before it and no others; nothing if nothing is left."""
    first, *rest = (chunk,) if isinstance(chunk, str) else chunk
    if isinstance(first, str):
        first = blanks + first.lstrip(" ")
    again = _chunk([piece for piece in (first, *rest) if piece != ""])
    return [again] if again else []


def _merging(pieces: Sequence[str | Hole], seams: Iterable[int]) -> list[int]:
    """The seams that would end up inside a word: "end.Next" without the stop is "end Next", not "endNext"."""
    strings = [piece if isinstance(piece, str) else "\n" for piece in pieces]
    inner = (seam for seam in seams if 0 < seam < len(strings))
    open_to = [seam for seam in inner if not _APART.fullmatch(strings[seam - 1][-1] + strings[seam][0])]
    found: list[int] = []
    while open_to:
        at = [0, *accumulate(map(len, strings))]
        inside = {place for span in word_spans("".join(strings)) for place in range(span.start + 1, span.end)}
        merging = [seam for seam in open_to if at[seam] in inside]
        if not merging:
            break
        for seam in merging:  # once they are apart, other pieces may find together: look again
            strings[seam] = "\n" + strings[seam]
        found += merging
    return sorted(found)


def _cut_into_chunks(raw: str, spans: Sequence[Span], part: int, first_word: int) -> Iterable[_ChunkOfWords]:
    """Split a raw text at spaces, and each chunk at its words."""
    word = 0
    for match in _CHUNK.finditer(raw):
        start, end = match.span()
        pieces: list[str | int] = []
        strings: dict[int, str] = {}
        at = start
        while word < len(spans) and spans[word].start < end:
            span = spans[word]
            if span.start > at:
                pieces.append(raw[at : span.start])
            pieces.append(first_word + word)
            strings[first_word + word] = raw[span.start : span.end]
            at, word = span.end, word + 1
        if at < end:
            pieces.append(raw[at:end])
        lone = next(iter(strings)) if len(strings) == 1 and not "".join(_literals(pieces)).strip(" ") else None
        yield _ChunkOfWords(match.group(), part, tuple(pieces), strings, lone)


def _literals(pieces: Iterable[str | int]) -> Iterable[str]:
    return (piece for piece in pieces if isinstance(piece, str))
