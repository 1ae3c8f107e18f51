"""Reviews of films, restaurants and gadgets, with the words that justify each label marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from unhans.demo_data.films import FILMS
from unhans.demo_data.gadgets import GADGETS
from unhans.demo_data.grammar import (
    ADJECTIVES,
    ADVERBS,
    ASIDES,
    BETTER,
    CLAIMS,
    CONTRASTS,
    DENIALS,
    EXTREME,
    EXTREME_ADVERBS,
    FILLERS,
    HINTS,
    VERDICTS,
    Domain,
    Facet,
    Poles,
    with_articles,
)
from unhans.demo_data.restaurants import RESTAURANTS
from unhans.demo_data.streams import check_request, pick, stream
from unhans.errors import BadOption
from unhans.types import Example, Span

DomainName = Literal["films", "restaurants", "gadgets"]

DOMAINS: tuple[DomainName, ...] = get_args(DomainName)
LABELS = ("positive", "negative")
SHORTEST, LONGEST = 8, 60  # words
MOST_SENTENCES = 4

_GRAMMARS = {grammar.name: grammar for grammar in (FILMS, RESTAURANTS, GADGETS)}
_SHARED = 0.3  # chance that a judgement uses an adjective that all domains share
_SENTENCE_END = re.compile(r"[.!?]")
_MARKS = re.compile(r"[\[\]]")
_SLOT = re.compile(r"\{([a-z_]+)([012]?)\}")
_PLANS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.08, ("claim",)),
    (0.12, ("claim", "verdict")),
    (0.10, ("opener", "claim")),
    (0.14, ("opener", "claim", "verdict")),
    (0.08, ("claim", "fact", "verdict")),
    (0.08, ("opener", "fact", "claim")),
    (0.06, ("opener", "fact", "claim", "verdict")),
    (0.05, ("fact", "claim", "claim")),
    (0.05, ("claim", "aside", "hint")),
    (0.05, ("hint", "verdict")),
    (0.05, ("opener", "hint", "hint")),
    (0.06, ("contrast", "verdict")),
    (0.05, ("opener", "contrast", "verdict")),
    (0.03, ("contrast", "fact", "verdict")),
)
"""What a review consists of, and how often. Hints stand alone in one review of twenty; contrasts never do."""


def reviews(n: int, *, domain: DomainName | None = None, seed: int = 0, split: str | None = "train") -> list[Example]:
    """Made-up English reviews: half of them positive, half negative, the domain as their group.

    `domain=None` mixes the three in equal parts. Splits differ in their texts, so that "test" is unseen. The
    highlights are what justifies the label; words that speak for the other side (in "slow, but gripping") are left
    out. An id is the same review whatever `n` is and whether the domains were mixed or not.
    """
    check_request(n, seed)
    if domain is not None and domain not in _GRAMMARS:
        raise BadOption(f"There is no domain called {domain!r}. There is: {', '.join(DOMAINS)}.")
    plan = [(domain or _domain(seed, split, i), _label(seed, split, i)) for i in range(n)]
    return [_review(name, label, seed, split, i) for i, (name, label) in enumerate(plan)]


def evaluative_words(domain: DomainName | None = None) -> frozenset[str]:
    """Lower-case words that judge: those of the lexicon's phrases for one label that its phrases for the other lack."""
    grammars = [_GRAMMARS[domain]] if domain else list(_GRAMMARS.values())
    words = [[{*" ".join(phrases).split()} for phrases in (p.positive, p.negative)] for p in _lexicon(grammars)]
    return frozenset().union(*(positive ^ negative for positive, negative in words))


def _label(seed: int, split: str | None, index: int) -> str:
    """Of two neighbours one is positive; a coin says which."""
    coin = int(stream(seed, split or "", "labels", index // 2).integers(2))
    return LABELS[(index + coin) % 2]


def _domain(seed: int, split: str | None, index: int) -> str:
    """Six neighbours have each domain twice, once with each label."""
    block, pair = index // 6, index % 6 // 2
    return DOMAINS[int(stream(seed, split or "", "domains", block).permutation(3)[pair])]


def _review(name: str, label: str, seed: int, split: str | None, index: int) -> Example:
    rng = stream(seed, split or "", name, index)
    text, highlights = "", tuple[Span, ...]()
    while not SHORTEST <= len(text.split()) <= LONGEST or len(_SENTENCE_END.findall(text)) > MOST_SENTENCES:
        text, highlights = _finish(_Writer(_GRAMMARS[name], label, rng).write())
    id_ = "-".join([name, str(seed), *([split] if split else []), str(index)])
    return Example(id_, text, label=label, highlights=highlights, group=name, split=split)


class _Writer:
    """The state of one review while it is written: what it is about, and which phrases are used up."""

    def __init__(self, domain: Domain, label: str, rng: np.random.Generator) -> None:
        self.domain, self.label, self.rng = domain, label, rng
        self.other = LABELS[label == "positive"]
        self.used: set[str] = set()
        self.thing = pick(rng, tuple(domain.things))
        self.phrases: dict[str, tuple[str, ...]] = {
            "thing": (self.thing,),
            "kind": domain.kinds.of(label),
            "otherkind": domain.kinds.of(self.other),
            "verdict": domain.verdicts.of(label),
            "ask": domain.asks.of(label),
            "better": BETTER.of(label),
        }
        self.facets: tuple[Facet, ...] = ()
        self.nouns: tuple[str, ...] = ()

    def write(self) -> str:
        """The marked text of one review."""
        patterns = {
            "claim": CLAIMS,
            "hint": HINTS,
            "contrast": CONTRASTS,
            "verdict": VERDICTS,
            "opener": self.domain.openers,
            "fact": self.domain.facts,
            "aside": ASIDES,
        }
        return " ".join(self.sentence(self.fresh(patterns[kind])) for kind in self.plan())

    def plan(self) -> tuple[str, ...]:
        """The kinds of sentence in this review, in order."""
        draw = self.rng.random()
        for share, kinds in _PLANS:
            draw -= share
            if draw < 0:
                return kinds
        return _PLANS[0][1]

    def sentence(self, pattern: str) -> str:
        """A pattern with all slots filled and a capital letter."""
        self.facets, self.nouns = zip(*(self.something() for _ in range(2)), strict=True)
        filled = self.fill(pattern)
        start = 1 if filled[0] == "[" else 0
        return filled[:start] + filled[start].upper() + filled[start + 1 :]

    def something(self) -> tuple[Facet, str]:
        """A noun to judge that this kind of thing has and the review has not judged yet."""
        senseless = self.domain.things[self.thing]
        while True:
            facet = pick(self.rng, self.domain.facets)
            noun = pick(self.rng, facet.nouns)
            if noun not in self.used and noun.rstrip("+@") not in senseless:
                self.used.add(noun)
                return facet, noun

    def fill(self, pattern: str) -> str:
        """The pattern with every slot replaced, from left to right."""
        return _SLOT.sub(lambda match: self.slot(match[1], match[2]), pattern)

    def slot(self, name: str, which: str) -> str:
        """What goes into one slot; the module `grammar` lists them."""
        if not which:
            return self.phrase(name)
        if which == "0":
            return self.judgement(name, self.domain.adjectives)
        facet, noun = self.facets[int(which) - 1], self.nouns[int(which) - 1]
        if name == "did":
            return self.fresh(facet.predicates.of(self.label))
        forms = {
            "noun": noun.rstrip("+@"),
            "was": "were" if "+" in noun else "was",
            "which": "who" if "@" in noun else "which",
        }
        return forms.get(name) or self.judgement(name, facet.adjectives)

    def phrase(self, name: str) -> str:
        """A slot that is not about an adjective."""
        return self.fill(self.fresh(self.phrases.get(name) or self.domain.fillers.get(name) or FILLERS[name]))

    def judgement(self, name: str, poles: Poles) -> str:
        """An adjective, its denial, or an adjective of the other label."""
        if name == "not":
            return f"[{pick(self.rng, DENIALS).format(self.adjective(poles, self.other, mild=True))}]"
        if name in ("contra", "other"):
            return self.adjective(poles, self.other, mild=name == "other")
        adjective = self.adjective(poles, self.label, mild=name == "mild")
        return self.adverb(adjective) + f"[{adjective}]" if name == "adj" else f"[{adjective}]"

    def adjective(self, poles: Poles, label: str, *, mild: bool) -> str:
        """An adjective of the facet, or one of those that fit everything."""
        words = (ADJECTIVES if self.rng.random() < _SHARED else poles).of(label)
        return self.fresh([word for word in words if word not in EXTREME] if mild else words)

    def adverb(self, adjective: str) -> str:
        """Nothing, mostly; otherwise an adverb and a space."""
        if self.rng.random() < 0.6:
            return ""
        return pick(self.rng, EXTREME_ADVERBS if adjective in EXTREME else ADVERBS) + " "

    def fresh(self, phrases: Sequence[str]) -> str:
        """One of the phrases, if possible one that the review has not used."""
        phrase = pick(self.rng, [p for p in phrases if p not in self.used] or phrases)
        self.used.add(phrase)
        return phrase


def _finish(marked: str) -> tuple[str, tuple[Span, ...]]:
    """The text without its marks, with "an" where it belongs, and the spans that were marked."""
    marked = with_articles(marked)
    starts, ends = (
        [match.start() - k for k, match in enumerate(_MARKS.finditer(marked)) if match[0] == mark] for mark in "[]"
    )
    return _MARKS.sub("", marked), tuple(Span(*ends_) for ends_ in zip(starts, ends, strict=True))


def _lexicon(grammars: Sequence[Domain]) -> list[Poles]:
    own = [poles for g in grammars for poles in (g.adjectives, g.kinds, g.verdicts, g.asks)]
    facets = [poles for g in grammars for facet in g.facets for poles in (facet.adjectives, facet.predicates)]
    return [ADJECTIVES, BETTER, *own, *facets]
