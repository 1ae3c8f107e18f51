"""WordNet: words that mean the same or the opposite, and what part of speech a word most often is.

It is read from the files of WordNet 3 as Debian's `wordnet-base` installs them in /usr/share/wordnet; the environment
variable UNHANS_WORDNET names another folder. We read them ourselves, because nltk's reader asks for files that
Debian's package does not have, and a dictionary of fixed-width offsets is read in a page.

Words keep their ending where that is simple: plurals of nouns, forms of verbs, comparison of short adjectives, by
WordNet's own lists of irregular forms and the usual rules of spelling. What is not done: choosing between the past
tense and the participle of an irregular verb (both are given), "more" and "most", doubled consonants that WordNet does
not list, and the "a" or "an" of the word before. English only, and one word at a time: nothing here reads a sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from unhans.errors import BadData, Unsupported

VARIABLE = "UNHANS_WORDNET"
USUAL = "/usr/share/wordnet"
Part = Literal["noun", "verb", "adjective", "adverb"]
_FILES: dict[Part, str] = {"noun": "noun", "verb": "verb", "adjective": "adj", "adverb": "adv"}
_LETTERS: dict[str, Part] = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
_NUMBERS: dict[str, Part] = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
_ENDINGS: dict[Part, tuple[tuple[str, str, str], ...]] = {  # how forms end, how the base does, and what form it is
    "noun": (
        ("s", "", "s"), ("ses", "s", "s"), ("xes", "x", "s"), ("zes", "z", "s"), ("ches", "ch", "s"),
        ("shes", "sh", "s"), ("men", "man", "s"), ("ies", "y", "s"),
    ),
    "verb": (
        ("s", "", "s"), ("ies", "y", "s"), ("es", "e", "s"), ("es", "", "s"), ("ed", "e", "ed"), ("ed", "", "ed"),
        ("ied", "y", "ed"), ("ing", "e", "ing"), ("ing", "", "ing"),
    ),
    "adjective": (("er", "", "er"), ("est", "", "est"), ("er", "e", "er"), ("est", "e", "est"), ("ier", "y", "er"),
        ("iest", "y", "est")),
    "adverb": (),
}  # fmt: skip
# WordNet has no words that only hold a sentence together, or has them as something else: "a" as a vitamin, "in" as
# indium. They have no synonyms here, and a part of speech of their own.
_SMALL_WORDS = {
    "determiner": "the a an this that these those some any each every no either neither both all another such",
    "pronoun": "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs "
    "myself yourself himself herself itself ourselves themselves who whom whose which what one someone somebody "
    "something anyone anybody anything everyone everybody everything nobody nothing none",
    "preposition": "of in on at by for with from to into onto about as than over under between through during before "
    "after above below against among around behind beside besides beyond despite except inside outside like near "
    "since till toward towards until upon within without",
    "conjunction": "and or but nor so yet because although though while whereas when where if unless whether",
    "auxiliary": "be am is are was were been being have has had having do does did doing will would can could may "
    "might shall should must ought cannot isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't "
    "wouldn't can't couldn't shouldn't mustn't ain't",
    "negation": "not n't never",
}
_SMALL = {word: kind for kind, words in _SMALL_WORDS.items() for word in words.split()}
_VOWELS = re.compile(r"[aeiouy]+")


class Sense(NamedTuple):
    """One meaning of a word: where it stands in WordNet, and how often it was met in texts."""

    part: Part
    offset: int
    met: int
    base: str
    ending: str


@dataclass(frozen=True)
class _Meaning:
    """A line of WordNet: words that share a meaning, and what it points to."""

    words: tuple[str, ...]
    pointers: tuple[tuple[str, int, Part, int, int], ...]  # symbol, offset, part, number of our word and of theirs
    satellite: bool  # an adjective that is like another, whose opposites it borrows


class WordNet:
    """The dictionary in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = [f"{kind}.{name}" for name in _FILES.values() for kind in ("index", "data")]
        files += [*(f"{name}.exc" for name in _FILES.values()), "cntlist.rev"]
        if missing := [name for name in files if not (folder / name).is_file()]:
            raise Unsupported(
                f"WordNet is not in {folder}: {missing[0]} is missing. Install it (on Debian and Ubuntu: apt-get "
                f"install wordnet-base), or give its folder in the environment variable {VARIABLE}."
            )

    def synonyms(self, word: str, senses: int = 3) -> list[str]:
        """Words that can mean the same, in the same form: those of the commonest senses first, then similar ones."""
        own = self.senses(word)[:senses]
        same = [(sense, other) for sense in own for other in self._meaning(sense.part, sense.offset).words]
        near = [(sense, other) for sense in own for other in self._similar(self._meaning(sense.part, sense.offset))]
        return self._written(word, same, near)

    def same_meaning(self, word: str, senses: int = 3) -> dict[str, str]:
        """Only words that share a meaning, and no similar ones: their bases, those of the commonest senses first.

        The senses are those of what the word most often is: "dog" is a noun here. With each base comes how it is
        written in the form of the word, so that forms of one word ("dog", "dogs") can be given the same new one.
        """
        every = self.senses(word)
        own = [sense for sense in every if sense.part == every[0].part][:senses]
        found: dict[str, str] = {}
        for sense in own:
            for other in self._meaning(sense.part, sense.offset).words:
                written = self._written(word, [(sense, other)], [])
                if written and other not in {one.base for one in own}:
                    found.setdefault(other, written[0])
        return found

    def base(self, word: str) -> str:
        """The base of the word in its commonest sense; the plain word where WordNet does not have it."""
        return next((sense.base for sense in self.senses(word)), _plain(word))

    def antonyms(self, word: str, senses: int = 3) -> list[str]:
        """Words that can mean the opposite, in the same form: direct ones, those of a similar word, and similar ones.

        WordNet opposes few adjectives ("wet", "dry") and groups the others around them: "arid" is like "dry", so its
        opposite is "wet", and so are, further off, "soggy" and "moist".
        """
        own = self.senses(word)[:senses]
        direct, borrowed, near = [], [], []
        for sense in own:
            meaning = self._meaning(sense.part, sense.offset)
            opposed = list(self._opposed(meaning, sense.base))
            direct += [(sense, other) for _, other in opposed]
            if not opposed and meaning.satellite:
                opposed = [pair for head in self._heads(meaning) for pair in self._opposed(head, None)]
                borrowed += [(sense, other) for _, other in opposed]
            near += [(sense, other) for there, _ in opposed for other in (*there.words, *self._similar(there))]
        return self._written(word, direct + borrowed, near)

    def parts_of_speech(self, word: str) -> list[Part]:
        """What the word can be, the commonest first; nothing for a word that WordNet does not have."""
        counts: dict[Part, int] = {}
        for sense in self.senses(word):
            counts[sense.part] = counts.get(sense.part, 0) + sense.met
        return sorted(counts, key=lambda part: -counts[part])

    def most_frequent_pos(self, word: str) -> str:
        """What the word most often is, whatever it is here.

        Names of the kinds: noun, verb, adjective, adverb, those of small words (determiner, pronoun, preposition,
        conjunction, auxiliary, negation), number, sign. A word that WordNet does not have is taken for a noun.
        """
        if (small := _SMALL.get(_plain(word))) is not None:
            return small
        if not any(map(str.isalpha, word)):
            return "number" if any(map(str.isdigit, word)) else "sign"
        return next(iter(self.parts_of_speech(word)), "noun")

    def tag(self, words: Sequence[str]) -> list[str]:
        """The most frequent part of speech of each word: a tagger for `find_flips`, for want of a better one."""
        return [self.most_frequent_pos(word) for word in words]

    def senses(self, word: str) -> list[Sense]:
        """The meanings of a word in any of its readings, the commonest first; small words and numbers have none."""
        plain = _plain(word)
        if plain in _SMALL or not any(map(str.isalpha, plain)):
            return []
        found: dict[tuple[Part, int], Sense] = {}
        for base, part, ending in self._readings(plain):
            for number, offset in enumerate(self._offsets(part, base), start=1):
                sense = Sense(part, offset, self._counts.get((base, part, number), 0), base, ending)
                found.setdefault((part, offset), sense)
        return sorted(found.values(), key=lambda sense: -sense.met)

    # -- from forms to bases and back

    def _readings(self, plain: str) -> Iterator[tuple[str, Part, str]]:
        """The bases that a form can be of, with the part of speech and what form it is ("": the base itself)."""
        for part in _FILES:
            bases = [(plain, ""), *((base, _ending(part, plain)) for base in self._irregular[part].get(plain, ()))]
            if len(bases) == 1:
                for end, other, ending in _ENDINGS[part]:
                    if plain.endswith(end) and len(plain) > len(end):
                        bases.append((plain.removesuffix(end) + other, ending))
            for base, ending in dict.fromkeys(bases):
                if base in self._index[part]:
                    yield base, part, ending

    def _forms(self, base: str, part: Part, ending: str) -> list[str]:
        """A base in this form; nothing where it has none that we know."""
        if not ending:
            return [base]
        irregular = [form for form in self._forms_of[part].get(base, ()) if _ending(part, form) == ending]
        return irregular or _regular(base, ending)

    def _written(self, word: str, *groups: Iterable[tuple[Sense, str]]) -> list[str]:
        """Other single words in the form and with the capitals of the word; the last group's commonest come first."""
        *ordered, last = (
            [pair for pair in group if re.fullmatch(r"[a-z]+(?:[-'][a-z]+)*", pair[1])] for group in groups
        )
        last = sorted(last, key=lambda pair: -self._common(pair[1], pair[0].part))
        own = {_plain(word), *(sense.base for group in (*ordered, last) for sense, _ in group)}
        found: dict[str, None] = {}
        for sense, other in (pair for group in (*ordered, last) for pair in group):
            if other not in own:
                for form in self._forms(other, sense.part, sense.ending):
                    found[in_the_case_of(word, form)] = None
        return list(found)

    # -- the files

    def _meaning(self, part: Part, offset: int) -> _Meaning:
        if (part, offset) not in self._known:
            self._known[part, offset] = self._read(part, offset)
        return self._known[part, offset]

    def _read(self, part: Part, offset: int) -> _Meaning:
        lines = self._lines[part]
        try:
            line = lines[offset : lines.index(b"\n", offset)].decode("ascii").partition("|")[0].split()
            n = int(line[3], 16)
            words = tuple(word.partition("(")[0] for word in line[4 : 4 + 2 * n : 2])
            rest = line[4 + 2 * n :]
            fields = [rest[1 + 4 * k : 5 + 4 * k] for k in range(int(rest[0]))]
            pointers = tuple((s, int(o), _LETTERS[p], int(ends[:2], 16), int(ends[2:], 16)) for s, o, p, ends in fields)
            if int(line[0]) != offset:
                raise ValueError(line[0])
        except (ValueError, LookupError) as error:
            raise BadData(
                f"WordNet in {self.folder} is damaged: data.{_FILES[part]} has no entry at {offset}. Install it anew."
            ) from error
        return _Meaning(words, pointers, line[2] == "s")

    def _similar(self, meaning: _Meaning) -> Iterator[str]:
        for head in self._heads(meaning):
            yield from head.words

    def _heads(self, meaning: _Meaning) -> Iterator[_Meaning]:
        """The adjectives that this one is grouped with."""
        return (self._meaning(part, offset) for symbol, offset, part, *_ in meaning.pointers if symbol == "&")

    def _opposed(self, meaning: _Meaning, base: str | None) -> Iterator[tuple[_Meaning, str]]:
        """The opposites of one word of a meaning, or of all of them, each with the meaning it belongs to."""
        for symbol, offset, part, ours, theirs in meaning.pointers:
            if symbol == "!" and (base is None or ours == 0 or meaning.words[ours - 1].lower() == base):
                there = self._meaning(part, offset)
                yield from ((there, word) for n, word in enumerate(there.words, start=1) if theirs in (0, n))

    def _offsets(self, part: Part, base: str) -> list[int]:
        fields = self._index[part][base].split()
        try:
            return [int(offset) for offset in fields[-int(fields[1]) :]]
        except (ValueError, LookupError) as error:
            raise BadData(
                f"WordNet in {self.folder} is damaged: index.{_FILES[part]} is not readable at {base}. Install it anew."
            ) from error

    def _common(self, base: str, part: Part) -> int:
        return sum(self._counts.get((base, part, number), 0) for number in range(1, 10))

    @cached_property
    def _known(self) -> dict[tuple[Part, int], _Meaning]:
        return {}

    @cached_property
    def _index(self) -> dict[Part, dict[str, str]]:
        """For each part of speech and base, the rest of its line in the index."""
        return {part: dict(self._split(f"index.{name}")) for part, name in _FILES.items()}

    @cached_property
    def _lines(self) -> dict[Part, bytes]:
        return {part: (self.folder / f"data.{name}").read_bytes() for part, name in _FILES.items()}

    @cached_property
    def _irregular(self) -> dict[Part, dict[str, list[str]]]:
        """For each part of speech and irregular form, its bases."""
        return {part: {f: rest.split() for f, rest in self._split(f"{name}.exc")} for part, name in _FILES.items()}

    @cached_property
    def _forms_of(self) -> dict[Part, dict[str, list[str]]]:
        """For each part of speech and base, its irregular forms."""
        found: dict[Part, dict[str, list[str]]] = {part: {} for part in _FILES}
        for part, forms in self._irregular.items():
            for form, bases in forms.items():
                for base in bases:
                    found[part].setdefault(base, []).append(form)
        return found

    @cached_property
    def _counts(self) -> dict[tuple[str, Part, int], int]:
        """How often a sense was met in the texts that WordNet's makers have read."""
        counts: dict[tuple[str, Part, int], int] = {}
        for key, rest in self._split("cntlist.rev"):
            base, _, kind = key.partition("%")
            number, count = rest.split()
            counts[base, _NUMBERS[kind[:1]], int(number)] = int(count)
        return counts

    def _split(self, name: str) -> Iterator[tuple[str, str]]:
        """The lines of a file, each as its first word and the rest; the licence at the top is left out."""
        with (self.folder / name).open(encoding="ascii", errors="replace") as file:
            for line in file:
                if not line.startswith(" "):
                    first, _, rest = line.partition(" ")
                    yield first, rest


def open_wordnet(folder: str | Path = "") -> WordNet:
    """The WordNet in a folder; without one, where UNHANS_WORDNET says or Debian puts it. Read once, then kept."""
    return _opened(str(folder) or os.environ.get(VARIABLE, "") or USUAL)


def kind_of_small(word: str) -> str | None:
    """What a word is that only holds a sentence together (determiner, pronoun, negation, ...); None for all others."""
    return _SMALL.get(_plain(word))


def tag(words: Sequence[str]) -> list[str]:
    """The most frequent part of speech of each word, by the WordNet of this machine."""
    return open_wordnet().tag(words)


@cache
def _opened(folder: str) -> WordNet:
    return WordNet(Path(folder).expanduser())


def in_the_case_of(old: str, new: str) -> str:
    """A new word with capitals as the old one has them; one that has capitals of its own keeps them."""
    if new != new.lower():
        return new
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _plain(word: str) -> str:
    return word.lower().replace("’", "'")


def _ending(part: Part, form: str) -> str:
    """What form an irregular word is."""
    if part == "noun":
        return "s"
    if part == "verb":
        return "ing" if form.endswith("ing") else "s" if form.endswith(("es", "has")) else "ed"
    return "est" if form.endswith("st") else "er"


def _regular(base: str, ending: str) -> list[str]:
    """A regular form; none for the comparison of longer adjectives, which takes a word more."""
    y = base.endswith("y") and base[-2:-1] not in tuple("aeiou")
    if ending == "s":
        return [f"{base[:-1]}ies" if y else f"{base}es" if base.endswith(("s", "x", "z", "ch", "sh")) else f"{base}s"]
    if ending == "ing":
        if base.endswith("ie"):
            return [f"{base[:-2]}ying"]
        return [f"{base[:-1]}ing" if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) else f"{base}ing"]
    if ending in ("er", "est") and len(_VOWELS.findall(base.removesuffix("e"))) > 1 + y:
        return []
    return [f"{base[:-1]}i{ending}" if y else f"{base}{ending[1:]}" if base.endswith("e") else f"{base}{ending}"]
