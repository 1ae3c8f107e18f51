"""Token rows: the model's private view of a text, made once per chunk of characters.

A tokenizer's work on a text is the work on its chunks (characters up to the next space), laid end to end. So each
chunk is tokenised once, kept, and a thousand variants of a text are put together from known pieces. Whether a
tokenizer really works chunk by chunk is tried at load time; one that does not is given whole texts instead.

Text is always read as text: a literal `[MASK]` or `</s>` in the data is spelled out, never turned into the model's
control token. Only a `Hole` becomes one, by its id.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from unhans.errors import BadModel, ModelFailed, Unsupported
from unhans.text import Chunk, Hole, Variant, Words, as_variant

_CACHED_CHUNKS = 200_000
_LOCATED_CHUNKS = 20_000  # with the place of each token in them; only chunks of several words need it
_BLANKS = ("Ġ", "▁")  # how tokens that begin with a blank are written
_RESERVED = re.compile(r"\[unused\d+\]|madeupword\d+|<extra_id_\d+>|<unused\d+>")
_PROBES = (
    "Hello there, world",
    'Don\'t you -- really -- think so? "Yes!" (No.)',
    "Two  blanks and a trailing one ",
    " a leading one",
    "Grüße aus 日本語 and 😀 smiles",
    "1,000.5 of x_y/z ... the the the",
    "line\nbreak and\ttab",
)


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of one text or pair, with the model's control tokens; equal rows get equal answers."""

    ids: tuple[int, ...]
    types: tuple[int, ...] | None = None  # for models that tell the two texts of a pair apart by type
    cut: bool = False  # whether the text went beyond the limit

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class _Template:
    """The control tokens before, between and after the texts, and the token types of all five sections."""

    frame: tuple[tuple[int, ...], ...]  # before, after — or before, between, after
    types: tuple[tuple[int, ...], ...] | None  # of the frame's tokens
    part_types: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.frame))

    def fill(self, parts: Sequence[Sequence[int]], cut: bool) -> Row:
        ids: list[int] = [*self.frame[0]]
        for part, after in zip(parts, self.frame[1:], strict=True):
            ids.extend(part)
            ids.extend(after)
        if self.types is None:
            return Row(tuple(ids), None, cut)
        types: list[int] = [*self.types[0]]
        for part, kind, after in zip(parts, self.part_types, self.types[1:], strict=True):
            types.extend([kind] * len(part))
            types.extend(after)
        return Row(tuple(ids), tuple(types), cut)


def padded(lines: Sequence[Sequence[int]], fill: int, left: bool = False) -> list[list[int]]:
    """Lines of different length made equal, filled up at the right or at the left."""
    longest = max(map(len, lines))
    gaps = ([fill] * (longest - len(line)) for line in lines)
    return [[*gap, *line] if left else [*line, *gap] for line, gap in zip(lines, gaps, strict=True)]


class Tokens:
    """A tokenizer that never does the same work twice, and knows which token belongs to which word."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        self.tokenizer, self.limit = tokenizer, limit
        self.holes = {
            Hole.MASK: tokenizer.mask_token_id,
            Hole.UNK: tokenizer.unk_token_id,
            Hole.PAD: tokenizer.pad_token_id,
        }
        self._control = _control_tokens(tokenizer)
        mask = tokenizer.added_tokens_decoder.get(tokenizer.mask_token_id)
        self._swallows_blanks = mask is None or mask.lstrip
        self._known: dict[str, tuple[int, ...]] = {}
        self._located: dict[str, Sequence[tuple[int, int]]] = {}
        self._lock = threading.Lock()  # Hugging Face's tokenizers serve one thread at a time
        self._templates = {1: self._template("hello"), 2: self._template("hello", "world")}
        self.chunkwise = all(self._is_chunkwise(text) for text in _PROBES)
        for template in self._templates.values():
            if template and template.size >= limit:
                raise BadModel(f"The model reads only {limit} tokens, which leaves no room for text.")

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: it learns its chunks anew, and has a lock of its own."""
        return type(self), (self.tokenizer, self.limit)

    def forget(self) -> None:
        """Drop all known chunks: memory is given back, and the next texts are tokenised anew."""
        with self._lock:
            self._known.clear()
            self._located.clear()

    def rows(self, texts: Iterable[Variant]) -> list[Row]:
        """One row per variant; each new chunk is tokenised once, all of them in one call."""
        variants = list(texts)
        with self._lock:
            self._learn(piece for variant in variants for part in variant.parts for piece in self._pieces(part))
            return [self._row([self._ids(part) for part in variant.parts]) for variant in variants]

    def row_of_words(self, words: Words) -> tuple[Row, tuple[int, ...]]:
        """The row of an unedited example, and for each token the number of its word (-1: a control token)."""
        whole = as_variant(words.parts[0] if len(words.parts) == 1 else (words.parts[0], words.parts[1]))
        parts: list[list[int]] = []
        owners: list[list[int]] = []
        with self._lock:
            self._learn(piece for part in whole.parts for piece in self._pieces(part))
            for number, part in enumerate(whole.parts):
                parts.append(self._ids(part))
                owners.append(self._owners(words, number))
        row = self._row(parts)
        kept = self._room([len(part) for part in parts])
        template = self._templates[len(parts)]
        assert template is not None  # _row has used it
        frame = [[-1] * len(section) for section in template.frame]
        flat = frame[0] + [
            owner
            for part, n, after in zip(owners, kept, frame[1:], strict=True)
            for owner in [*self._keep(part, n), *after]
        ]
        return row, tuple(flat) or (-1,) * len(row)

    def holes_read(self, variant: Variant, hole: Hole) -> list[int]:
        """Which of a variant's holes of this kind (by number) are left where the text had to be cut."""
        wanted = self.hole_id(hole)
        with self._lock:
            self._learn(piece for part in variant.parts for piece in self._pieces(part))
            parts = [self._ids(part) for part in variant.parts]
        read: list[int] = []
        first = 0
        for ids, room in zip(parts, self._room([len(ids) for ids in parts]), strict=True):
            places = [at for at, token in enumerate(ids) if token == wanted]
            kept = set(self._keep(range(len(ids)), room))
            read.extend(first + number for number, at in enumerate(places) if at in kept)
            first += len(places)
        return read

    def hole_id(self, hole: Hole) -> int:
        """The token that stands for a hidden word."""
        found = self.holes[hole]
        if found is None:
            has = [kind.value for kind, token in self.holes.items() if token is not None]
            instead = (
                f"hide words by {' or '.join(has)}, or delete them" if has else "delete words instead of hiding them"
            )
            raise Unsupported(f"This model's tokenizer has no {hole.value} token: {instead}.")
        return int(found)

    # -- what the vocabulary says

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """Every token of the vocabulary as a reader would see it."""
        with self._lock:
            decoded = [self.tokenizer.decode([token]) for token in range(len(self.tokenizer))]
        return tuple(string.strip().removeprefix("##") for string in decoded)

    @cached_property
    def ordinary(self) -> tuple[int, ...]:
        """Tokens that stand for text: not for control, not reserved for later use."""
        special = set(self.tokenizer.all_special_ids)
        return tuple(n for n, s in enumerate(self.strings) if s and n not in special and not _RESERVED.fullmatch(s))

    @cached_property
    def whole_words(self) -> dict[bool, tuple[int, ...]]:
        """Tokens that are whole words after a blank (True), and at a text's start or against another sign (False)."""
        raw = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        usable = [n for n in self.ordinary if self.strings[n].replace("'", "").replace("-", "").isalnum()]
        opening = tuple(n for n in usable if raw[n].startswith(_BLANKS))
        if not opening:  # WordPiece marks what continues a word, byte-level BPE and SentencePiece what begins one
            words = tuple(n for n in usable if not raw[n].startswith("##"))
            return {True: words, False: words}
        # without the mark it may be the end of a word ("ing"); it is taken for a word if it also occurs with the mark
        known = {self.strings[n].lower() for n in opening}
        glued = [n for n in usable if not raw[n].startswith(_BLANKS) and self.strings[n].lower() in known]
        return {True: opening, False: tuple(glued) or opening}

    @cached_property
    def start_is_blank(self) -> bool:
        """Whether the tokenizer marks a text's first word like any other, as SentencePiece does."""
        first = self.rows([as_variant("the")])[0].ids
        return any(token.startswith(_BLANKS) for token in self.tokenizer.convert_ids_to_tokens(list(first)))

    # -- from chunks to rows

    def _pieces(self, part: Sequence[Chunk]) -> Iterable[str | Hole]:
        """The strings and holes of a part, as they are tokenised."""
        for chunk in self._grouped(part):
            if isinstance(chunk, str):
                yield chunk
                continue
            for piece, after in zip(chunk, (*chunk[1:], ""), strict=True):
                if isinstance(piece, str) and isinstance(after, Hole) and self._swallows_blanks:
                    piece = piece.rstrip()  # noqa: PLW2901 - as the tokenizer does before its own mask token
                if piece:
                    yield piece

    def _ids(self, part: Sequence[Chunk]) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces(part):
            if isinstance(piece, str):
                ids.extend(self._known[piece])
            else:
                ids.append(self.hole_id(piece))
        return ids

    def _grouped(self, part: Sequence[Chunk]) -> Sequence[Chunk]:
        """The chunks as they are, or all in one for a tokenizer that needs whole texts."""
        if self.chunkwise or not part:
            return part
        pieces: list[str | Hole] = []
        for piece in (piece for chunk in part for piece in ((chunk,) if isinstance(chunk, str) else chunk)):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        return (pieces[0],) if len(pieces) == 1 and isinstance(pieces[0], str) else (tuple(pieces),)

    def _learn(self, pieces: Iterable[str | Hole]) -> None:
        """Tokenise the strings not seen before."""
        wanted = {piece for piece in pieces if isinstance(piece, str)}
        if len(self._known) > _CACHED_CHUNKS:
            self._known.clear()
        new = [string for string in wanted if string not in self._known]
        for string, ids in zip(new, self._tokenise(new) if new else (), strict=True):
            self._known[string] = tuple(ids) if self._control.keys().isdisjoint(ids) else self._spelled(string)

    def _spelled(self, string: str) -> tuple[int, ...]:
        """Ids of a string with a control word in it, which some tokenizers know as a word like any other."""
        found = (token for ids in self._tokenise(self._inside(string)) for token in ids)
        return tuple(token for token in found if token not in self._control)

    def _inside(self, string: str) -> list[str]:
        """The string in pieces that contain no control word: each is cut after its first letter."""
        words = (re.escape(word) for word in self._control.values() if len(word) > 1)
        ends = [0, *(found.start() + 1 for found in re.finditer("|".join(words) or "(?!)", string)), len(string)]
        return [string[start:end] for start, end in pairwise(ends)]

    def _tokenise(self, strings: Sequence[str], **extra: Any) -> Any:
        settings = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        try:
            found = self.tokenizer(list(strings), return_attention_mask=False, **settings, **extra)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # the Rust tokenizers' own, outside Exception
                raise
            raise ModelFailed(
                "The model's tokenizer broke down on a text: its rules are damaged or hostile."
            ) from error
        return found if extra else found["input_ids"]

    def _row(self, parts: Sequence[Sequence[int]]) -> Row:
        template = self._templates[len(parts)]
        if template is None:
            raise Unsupported("This model's tokenizer takes single texts only, and this example is a pair.")
        kept = self._room([len(part) for part in parts])
        cut = any(n < len(part) for n, part in zip(kept, parts, strict=True))
        row = template.fill([self._keep(part, n) for part, n in zip(parts, kept, strict=True)], cut)
        return row if row.ids else self._nothing

    @cached_property
    def _nothing(self) -> Row:
        """An empty text for a model without a frame: such models (decoders) cannot read nothing at all."""
        known = self.tokenizer
        for token in (known.bos_token_id, known.eos_token_id, known.pad_token_id, known.unk_token_id):
            if token is not None:
                return Row((int(token),))
        raise Unsupported("This model cannot read an empty text: its tokenizer has no token to stand for one.")

    def _keep(self, part: Sequence[int], n: int) -> Sequence[int]:
        if len(part) <= n:
            return part
        return part[len(part) - n :] if self.tokenizer.truncation_side == "left" else part[:n]

    def _room(self, lengths: Sequence[int]) -> list[int]:
        """How many tokens of each part fit; of a pair the longer part gives way first, as in Hugging Face."""
        template = self._templates[len(lengths)]
        room = self.limit - (template.size if template else 0)
        if sum(lengths) <= room:
            return list(lengths)
        if len(lengths) == 1:
            return [room]
        short = min(room // 2, *lengths)
        pair_yields = lengths[0] > lengths[1] or (min(lengths) > short and not self.tokenizer.is_fast)
        return [room - short, short] if pair_yields else [short, room - short]

    # -- what the tokenizer is like

    def _template(self, *texts: str) -> _Template | None:
        """The frame of control tokens, read off an encoded probe; None if the tokenizer takes no pairs."""
        bare = [list(ids) for ids in self._tokenise(texts)]
        try:
            framed = self.tokenizer(*texts)
        except (TypeError, ValueError, NotImplementedError):
            return None
        ids, types = list(framed["input_ids"]), framed.get("token_type_ids")
        frame, frame_types, part_types, at = [], [], [], 0
        for part in bare:
            start = next((i for i in range(at, len(ids)) if ids[i : i + len(part)] == part), None)
            if start is None:
                return None
            frame.append(tuple(ids[at:start]))
            frame_types.append(tuple(types[at:start]) if types else ())
            part_types.append(types[start] if types else 0)
            at = start + len(part)
        frame.append(tuple(ids[at:]))
        frame_types.append(tuple(types[at:]) if types else ())
        return _Template(tuple(frame), tuple(frame_types) if types else None, tuple(part_types))

    def _is_chunkwise(self, text: str) -> bool:
        chunks = as_variant(text).parts[0]
        whole, *single = self._tokenise([text, *chunks])  # type: ignore[list-item]
        return list(whole) == [token for ids in single for token in ids]

    # -- which token belongs to which word

    def _owners(self, words: Words, part: int) -> list[int]:
        """For each token of a part, the number of its word."""
        own = [chunk for chunk in words.chunks if chunk.part == part]
        if not self.chunkwise and own:
            located: list[tuple[int, int, int]] = []
            for number, span in enumerate(words.spans):
                if (span.part == "pair") == bool(part):
                    located.append((span.start, span.end, number))
            return self._align(words.parts[part], located)
        owners: list[int] = []
        first = min((word for chunk in own for word in chunk.words), default=-1)
        for chunk in own:
            if not chunk.strings:
                owners.extend([owners[-1] if owners else first] * len(self._known[chunk.raw]))
                continue
            if len(chunk.strings) == 1:
                owners.extend([chunk.words[0]] * len(self._known[chunk.raw]))
                continue
            located, at = [], 0
            for piece in chunk.pieces:
                length = len(piece) if isinstance(piece, str) else len(chunk.strings[piece])
                if isinstance(piece, int):
                    located.append((at, at + length, piece))
                at += length
            owners.extend(self._align(chunk.raw, located))
        return owners

    def _align(self, string: str, located: Sequence[tuple[int, int, int]]) -> list[int]:
        """The word under each token of a string; a token over two words belongs to the one it covers more of."""
        owners, last = [], located[0][2] if located else -1
        for start, end in self._offsets(string):
            overlap, owner = max(((min(end, e) - max(start, s), n) for s, e, n in located), default=(0, -1))
            if overlap > 0:
                last = owner
            owners.append(last)
        return owners

    def _offsets(self, string: str) -> Sequence[tuple[int, int]]:
        """Character span of each token; looked for once."""
        if string not in self._located:
            if len(self._located) > _LOCATED_CHUNKS:
                self._located.clear()
            self._located[string] = self._locate(string)
        return self._located[string]

    def _locate(self, string: str) -> Sequence[tuple[int, int]]:
        """Character span of each token; worked out from the token strings where the tokenizer does not tell."""
        if not self.tokenizer.is_fast:
            return locate_tokens(string, self.tokenizer.convert_ids_to_tokens(list(self._known[string])))
        found = self._tokenise([string], return_offsets_mapping=True)
        ids, offsets, shift = found["input_ids"][0], found["offset_mapping"][0], 0
        if self._control.keys().isdisjoint(ids):
            return [(int(start), int(end)) for start, end in offsets]
        spans: list[tuple[int, int]] = []
        pieces = self._inside(string)
        found = self._tokenise(pieces, return_offsets_mapping=True)
        for piece, ids, offsets in zip(pieces, found["input_ids"], found["offset_mapping"], strict=True):
            pairs = zip(ids, offsets, strict=True)
            spans.extend((shift + start, shift + end) for token, (start, end) in pairs if token not in self._control)
            shift += len(piece)
        return spans


def _control_tokens(tokenizer: Any) -> dict[int, str]:
    """The tokens that steer the model and must never come out of a text; the one for unknown words may."""
    added = {number: token.content for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    named = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    return {number: word for number, word in (added | named).items() if number != tokenizer.unk_token_id}


def locate_tokens(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Character spans of tokens in a text, by matching their letters in order.

    Case, accents, compatibility forms and the usual continuation marks are ignored. A token that cannot be found
    (unknown to the vocabulary, or a single byte of a longer character) covers the gap up to the next one that can.
    """
    signs = [sign.encode(errors="surrogatepass") for sign in text]
    if list(tokens) == [chr(byte) for sign in signs for byte in sign]:  # one token per byte
        return [(n, n + 1) for n, sign in enumerate(signs) for _ in sign]
    folded, origin = [], []
    for position, sign in enumerate(text):
        for plain in _plain(sign):
            folded.append(plain)
            origin.append(position)
    letters = "".join(folded)
    starts: list[int | None] = []
    ends: list[int] = []
    at = 0
    for token in tokens:
        wanted = "".join(_plain(sign) for sign in token.removeprefix("##").removesuffix("</w>").strip("▁Ġ@ "))
        found = letters.find(wanted, at) if wanted else -1
        # a match far ahead is a chance match of a short token, not the next piece of this text
        if found == -1 or found - at > 4 + len(wanted):
            starts.append(None)
            ends.append(at)
            continue
        starts.append(found)
        at = found + len(wanted)
        ends.append(at)
    spans: list[tuple[int, int]] = []
    for number, start in enumerate(starts):
        if start is not None:
            first, stop = start, ends[number]
        else:
            first = ends[number]
            stop = next((later for later in starts[number:] if later is not None), len(letters))
        first = min(first, max(len(letters) - 1, 0))
        spans.append((origin[first], origin[max(stop, first + 1) - 1] + 1) if letters else (0, len(text)))
    return spans


def _plain(sign: str) -> str:
    """A character as its bare lower-case letters; nothing for blanks and marks."""
    folded = unicodedata.normalize("NFKD", sign).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in ("Mn", "Cf", "Cc"))
