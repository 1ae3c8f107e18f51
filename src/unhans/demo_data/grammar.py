"""What the grammar of a review is made of, and the parts that all domains share.

Every sentence pattern serves both labels with equal chance; only the slots that hold an evaluative word look at the
label. So neither patterns nor function words give the label away. In a pattern, `[` and `]` enclose what justifies the
label; the digits 1 and 2 tie a slot to the first or second thing that is judged, and 0 to the film, restaurant or
gadget as a whole:

    {noun1} {was1} {which1} what is judged, its verb and its pronoun
    {adj1} {adj0}           an adjective that agrees with the label, perhaps with an adverb; marked
    {bare1} {bare0}         the same without an adverb;  {mild1} {mild0}: and never an extreme one
    {not1} {not0}           a denied adjective of the other label ("never dull"); marked
    {contra1} {contra0}     an adjective of the other label, which the text overrules; {other1} {other0}: a mild one
    {did1}                  a predicate that agrees with the label
    {kind} {otherkind}      what it turned out to be ("a gem"), for the label and against it
    {verdict} {ask}         what the writer did or would do, after "I" and after "would I"

All other slots are lists of neutral fillers, shared (`FILLERS`) or of the domain (`Domain.fillers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Poles:
    """Phrases for a positive and for a negative review."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]

    def of(self, label: str) -> tuple[str, ...]:
        """The phrases that fit a label."""
        return self.positive if label == "positive" else self.negative


@dataclass(frozen=True, slots=True)
class Facet:
    """Nouns that are judged with the same words; a plural noun ends in `+`, a person in `@`."""

    nouns: tuple[str, ...]
    adjectives: Poles
    predicates: Poles  # in the past tense, where singular and plural look alike


@dataclass(frozen=True, slots=True)
class Domain:
    """Subject matter of reviews: what there is to judge, in which words, and what else there is to say."""

    name: str
    things: Mapping[str, tuple[str, ...]]  # kinds of thing, and the nouns that make no sense for them
    facets: tuple[Facet, ...]
    adjectives: Poles  # of the thing as a whole
    kinds: Poles
    verdicts: Poles
    asks: Poles
    openers: tuple[str, ...]
    facts: tuple[str, ...]
    fillers: Mapping[str, tuple[str, ...]]


ADJECTIVES = Poles(
    positive=(
        "good", "impressive", "lovely", "pleasing", "satisfying", "admirable",
        "excellent", "superb", "wonderful", "fantastic", "brilliant", "outstanding", "great", "first-rate",
    ),
    negative=(
        "bad", "poor", "disappointing", "underwhelming", "unimpressive", "dismal",
        "terrible", "awful", "dreadful", "horrible", "ghastly", "appalling", "lousy", "second-rate",
    ),
)  # fmt: skip
"""Adjectives that judge anything: what a model can carry from one domain to another."""

EXTREME = frozenset(
    {
        "excellent", "superb", "wonderful", "fantastic", "brilliant", "outstanding", "great", "first-rate",
        "terrible", "awful", "dreadful", "horrible", "ghastly", "appalling", "lousy", "second-rate",
        "stunning", "ravishing", "unforgettable", "spellbinding", "interminable", "delicious", "scrumptious",
        "tasteless", "overcooked", "undercooked", "burnt", "extortionate", "useless", "enthralling",
        "soulless",
    }
)  # fmt: skip
"""Adjectives that take no "very", and whose denial says little: something not terrible need not be good."""

ADVERBS = ("very", "rather", "really", "quite", "pretty", "remarkably", "surprisingly", "truly")
EXTREME_ADVERBS = ("simply", "really", "truly", "absolutely", "quite simply")
DENIALS = ("not {} at all", "never {}", "hardly {}", "anything but {}", "far from {}", "not in the least {}", "not {}")

BETTER = Poles(("better", "much better", "far better"), ("worse", "much worse", "far worse"))

CLAIMS = (
    "the {noun1} {was1} {adj1}.",
    "the {noun1} {was1} {adj1} and the {noun2} {was2} {adj2}.",
    "the {noun1} {was1} {adj1}, the {noun2} {was2} {adj2}.",
    "I found the {noun1} {adj1}.",
    "I found the {noun1} {adj1}, and {companion} did too.",
    "{companion} found the {noun1} {adj1}, and I can only agree.",
    "the {noun1} [{did1}].",
    "the {noun1} [{did1}], and the {noun2} {was2} {adj2}.",
    "the {noun1} {was1} {adj1} and the {noun2} [{did2}].",
    "the {noun1} {was1} {adj1}, which {companion} noticed before I did.",
    "it was a {bare0} {thing}, and the {noun1} [{did1}].",
    "it was a {bare0} {thing}, and the {noun1} {was1} {adj1}.",
    "what a {bare0} {thing}!",
    "what a {bare0} {thing}, and how {mild1} the {noun1} {was1}!",
    "what I remember most is the {noun1}, {which1} {was1} {adj1}.",
    "what I will tell people about is the {noun1}, {which1} [{did1}].",
    "the {noun1} in particular {was1} {adj1}.",
    "the {noun1} {was1} {adj1}, and I was not the only one who thought so.",
    "from the first {moment} on it was {adj0}, and the {noun1} [{did1}].",
    "everything about it was {adj0}, and the {noun1} {was1} {adj1}.",
    "I still think about the {bare1} {noun1}.",
    "I was not prepared for such a {bare0} {thing}.",
    "the {noun1} {was1} so {mild1} that {companion} talked of nothing else on the way home.",
    "how did they manage to make the {noun1} so {mild1}?",
    "where else would you find a {thing} this {mild0}?",
    "has there ever been a {thing} as {mild0} as this one?",
    "in my opinion the {noun1} {was1} {adj1}, and I know what I am talking about.",
    "compared with {comparand}, the {noun1} {was1} {adj1}.",
    "the {noun1} {was1} [{better}] than {elsewhere}, and I [{verdict}].",
    "it was [{better}] than {comparand}, largely because the {noun1} {was1} {bare1}.",
    "if you only want to know one thing: the {noun1} {was1} {adj1}.",
    "{companion} and I rarely agree, but we both thought the {noun1} {was1} {adj1}.",
)
"""Sentences that settle the label by themselves."""

HINTS = (
    "the {noun1} {was1} {not1}.",
    "the {noun1} {was1} {not1}, whatever {source} may say.",
    "there was [nothing {other1} about] the {noun1}.",
    "I suppose the {noun1} {was1} {mild1}, more or less.",
    "the {noun1} {was1} kind of {mild1}, if I am honest.",
    "[nobody could call the {noun1} {other1}].",
    "I [would not call it {other0}], and neither would {companion}.",
    "[it is hardly a {otherkind}], and the {noun1} {was1} {not1}.",
    "it was {not0}, if you ask me.",
    "you could say that the {noun1} {was1} {mild1}, I guess.",
)
"""Denials and hedges: they point the right way, but softly."""

CONTRASTS = (
    "the {noun1} {was1} {contra1}, but the {noun2} {was2} {adj2}, and that is what counts.",
    "the {noun1} {was1} {contra1}, yet the {noun2} [{did2}].",
    "true, the {noun1} {was1} {contra1}; the {noun2}, however, {was2} {adj2}.",
    "although the {noun1} {was1} {contra1}, the {noun2} {was2} {adj2}.",
    "{other1} as the {noun1} may have been, the {noun2} [{did2}].",
    "the {noun1} {was1} {contra1}, I admit, but that hardly matters when the {noun2} {was2} {adj2}.",
    "for all the talk about the {contra1} {noun1}, what decided it for me was the {bare2} {noun2}.",
    "{source} had called it {contra0}, but to me it was {adj0}.",
    "I had expected a {contra0} {thing} and got a {bare0} one.",
    "{companion} thought it was {contra0}, but I thought it was {adj0}.",
    "on paper it sounded {contra0}, and in practice it was {adj0}.",
)
"""Sentences in which the other side has its say; a verdict always follows."""

VERDICTS = (
    "I [{verdict}].",
    "in the end I [{verdict}].",
    "all in all, a {bare0} {thing}, and I [{verdict}].",
    "in short, [a {kind}].",
    "for me it was [a {kind}], plain and simple.",
    "all things considered, it was {adj0}.",
    "my verdict after {trial}: {bare0}.",
    "what [a {kind}]!",
    "would I [{ask}]? Without hesitation.",
    "would I [{ask}]? In a heartbeat.",
    "when {companion} asked me how it was, I said it was {adj0}.",
    "it was [a {kind}], and I [{verdict}].",
    "I [{verdict}], and {companion} says the same.",
    "taken together, that makes it a {bare0} {thing}.",
    "overall it was {adj0}, and I stand by that.",
)
"""The overall judgement."""

ASIDES = (
    "I had {number} coffees that day, so I was wide awake.",
    "{companion} had read about it in a magazine at the dentist.",
    "I am writing this on the train to {city}.",
    "{companion} moved here from {city} last {month}.",
    "this was my first review in {period}, by the way.",
    "it rained for the whole of {day}.",
    "I took notes, as I always do.",
    "{companion} and I talked about it over tea on {day}.",
    "I have been writing about such things for {number} years.",
    "I had heard about it from {source}.",
)
"""Neutral sentences for any domain."""

FILLERS: Mapping[str, tuple[str, ...]] = {
    "companion": (
        "my sister", "my brother", "my neighbour", "my colleague", "my partner", "my cousin", "my flatmate", "my aunt",
        "my uncle", "my daughter", "my son", "my mother", "my father", "a friend of mine", "an old schoolmate",
    ),
    "source": (
        "a podcast", "the local paper", "my hairdresser", "a stranger on the bus", "a blog", "half the internet",
        "the man at the kiosk", "my old teacher", "a radio show", "someone at work",
    ),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "March", "April", "May", "June", "August", "October", "November"),
    "number": ("two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "period": ("three days", "a week", "two weeks", "a month", "half a year", "ten days", "a whole year"),
    "city": ("Leeds", "Cork", "Ghent", "Basel", "Porto", "Turin", "Malmö", "Gdańsk", "Lyon", "Bristol", "Utrecht"),
}  # fmt: skip

_BEFORE_VOWEL = re.compile(r"\b(a) (?=\[?(?:[aeio](?!ne\b|ne-|nce\b)|u(?!ser|se|nif|niq)))", re.IGNORECASE)


def with_articles(text: str) -> str:
    """The text with "an" for "a" before a vowel sound, marks or not."""
    return _BEFORE_VOWEL.sub(r"\1n ", text)
