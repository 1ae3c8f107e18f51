"""Premise and hypothesis: pairs on which three shortcuts of inference models hold, and pairs on which they fail.

The shortcuts are those of McCoy et al. 2019 (HANS): a hypothesis is taken to follow if its words all occur in the
premise (lexical overlap), if it is a stretch of the premise (subsequence), or if it is a clause of it (constituent).
Templates and vocabulary are our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from unhans.demo_data.grammar import with_articles
from unhans.demo_data.streams import check_request, pick, stream
from unhans.errors import BadOption
from unhans.types import Example

Heuristic = Literal["lexical_overlap", "subsequence", "constituent"]
Templates = Mapping[str, tuple[tuple[str, str], ...]]  # subcase: (premise, hypothesis) patterns

HEURISTICS: tuple[str, ...] = get_args(Heuristic)
ENTAILED, NOT_ENTAILED = "entailment", "non-entailment"

WORDS: Mapping[str, tuple[str, ...]] = {
    "person": (
        "baker", "pilot", "nurse", "judge", "farmer", "dentist", "painter", "tailor", "sailor", "poet", "gardener",
        "plumber", "librarian", "butcher", "drummer", "surgeon", "lifeguard", "architect", "miner", "florist",
        "juggler",
        "clerk", "novelist", "violinist", "carpenter", "beekeeper",
    ),
    "did_to": (
        "thanked", "greeted", "blamed", "praised", "hired", "scolded", "interrupted", "recognised", "rescued",
        "mocked",
        "trained", "photographed", "admired", "ignored", "followed",
    ),
    "did": (
        "laughed", "coughed", "sneezed", "danced", "slept", "waited", "resigned", "hesitated", "shouted", "whistled",
        "apologised", "yawned", "stumbled", "sang",
    ),
    "where": (
        "near the fountain", "behind the barn", "beside the piano", "in the cellar", "on the ferry",
        "under the bridge",
        "at the market", "by the window",
    ),
    "next_to": ("near", "behind", "beside", "next to", "opposite"),
    "adjective": ("tired", "cheerful", "elderly", "famous", "nervous", "young", "clever", "patient"),
    "activity": (
        "read the letter|read", "painted the fence|painted", "drank the tea|drank", "sang the ballad|sang",
        "cooked the stew|cooked", "ate the pear|ate", "studied the map|studied", "wrote the report|wrote",
        "drove the van|drove", "knitted the scarf|knitted",
    ),
    "washed": ("dressed", "washed", "shaved", "drove", "painted", "taught", "phoned", "left", "stopped"),
    "heard": ("heard", "knew", "believed", "understood", "doubted", "suspected", "feared"),
    "participle": (
        "paid in the office", "served on the ferry", "painted in the attic", "pushed towards the gate",
        "called during the storm", "dropped near the harbour", "taught at the academy", "phoned from the tower",
    ),
    "since": ("because", "since", "after", "although", "when", "as soon as"),
    "if": ("if", "unless", "supposing that", "provided that"),
    "knew_that": ("knew that", "remembered that", "noticed that", "realised that", "regretted that", "forgot that"),
    "thought_that": ("thought that", "claimed that", "hoped that", "feared that", "suspected that", "denied that"),
    "surely": ("of course", "obviously", "luckily", "sadly", "as everyone saw,", "unsurprisingly"),
    "perhaps": ("perhaps", "maybe", "supposedly", "allegedly", "according to one rumour,", "hopefully"),
}  # fmt: skip

ORDINARY_WORDS: Mapping[str, tuple[str, ...]] = {
    "who": (
        "doctor|physician", "lawyer|attorney", "writer|author", "schoolmaster|teacher", "constable|police officer",
        "burglar|criminal", "greengrocer|shopkeeper", "cellist|musician", "goalkeeper|footballer", "soprano|singer",
        "king|monarch", "lad|boy", "psychologist|scientist", "stonemason|builder",
    ),
    "helped": (
        "helped|assisted|hindered", "praised|applauded|criticised", "hired|employed|dismissed", "found|located|lost",
        "scolded|told off|commended", "trusted|had faith in|suspected", "phoned|rang up|avoided",
        "freed|released|imprisoned", "welcomed|greeted|turned away", "chased|pursued|ran from",
    ),
    "animal": (
        "poodles|dogs", "kittens|cats", "sparrows|birds", "salmon|fish", "ponies|horses", "wasps|insects",
        "adders|snakes", "ewes|sheep",
    ),
    "number": ("two", "three", "four", "five", "six", "seven"),
    "moved": (
        "sprinted|ran", "strolled|walked", "whispered|spoke", "dozed|slept", "giggled|laughed", "sobbed|cried",
        "devoured a pie|ate something", "sipped some juice|drank something",
    ),
    "event": (
        "our roof needed new tiles", "snow covered all fields", "a train stood on platform nine",
        "eleven boats lay at anchor", "coffee became expensive again", "somebody lit candles upstairs",
        "two bicycles were missing", "an orchestra played outside", "bread sold out before noon",
        "most windows stayed shut", "rain fell throughout that night", "nothing grew along this road",
    ),
    "extra": (
        "for a large sum of money", "on three separate occasions", "in order to win a bet", "despite heavy rain",
        "shortly before midnight", "with some help from a relative", "in a crowded theatre",
    ),
}  # fmt: skip

LEXICAL_ENTAILED: Templates = {
    "conjunction": (
        ("the {person1} and the {person2} {did_to1} the {person3}.", "the {person1} {did_to1} the {person3}."),
        ("the {person1} {did_to1} the {person2} and the {person3}.", "the {person1} {did_to1} the {person3}."),
    ),
    "passive": (
        ("the {person1} was {did_to1} by the {person2}.", "the {person2} {did_to1} the {person1}."),
        ("the {people1} were {did_to1} by the {person2} {where1}.", "the {person2} {did_to1} the {people1}."),
    ),
    "relative_clause": (
        ("the {person1} that the {person2} {did_to1} {did1}.", "the {person2} {did_to1} the {person1}."),
        (
            "the {person1} {did_to2} the {people1} that the {person2} {did_to1}.",
            "the {person2} {did_to1} the {people1}.",
        ),
    ),
    "prepositional_phrase": (
        ("the {person1} {next_to1} the {person2} {did_to1} the {person3}.", "the {person1} {did_to1} the {person3}."),
        ("the {people1} {where1} {did_to1} the {person3}.", "the {people1} {did_to1} the {person3}."),
    ),
}
LEXICAL_NOT_ENTAILED: Templates = {
    "swap": (
        ("the {person1} {did_to1} the {person2}.", "the {person2} {did_to1} the {person1}."),
        ("the {people1} {did_to1} the {person2} {where1}.", "the {person2} {did_to1} the {people1}."),
    ),
    "conjunction": (
        ("the {person1} and the {person2} {did_to1} the {person3}.", "the {person1} {did_to1} the {person2}."),
        ("the {person1} {did_to1} the {person2} and the {people1}.", "the {people1} {did_to1} the {person2}."),
    ),
    "passive": (
        ("the {person1} was {did_to1} by the {person2}.", "the {person1} {did_to1} the {person2}."),
        ("the {people1} were {did_to1} by the {person2} {where1}.", "the {people1} {did_to1} the {person2}."),
    ),
    "relative_clause": (
        ("the {person1} that the {person2} {did_to1} {did1}.", "the {person1} {did_to1} the {person2}."),
        (
            "the {person1} {did_to1} the {people1} that the {person2} {did_to2}.",
            "the {people1} {did_to2} the {person2}.",
        ),
    ),
    "prepositional_phrase": (
        ("the {person1} {next_to1} the {person2} {did_to1} the {person3}.", "the {person3} {did_to1} the {person1}."),
        ("the {person1} {did_to1} the {person2} {next_to1} the {people1}.", "the {people1} {did_to1} the {person2}."),
    ),
}
SUBSEQUENCE_ENTAILED: Templates = {
    "conjunction": (
        ("the {person1} and the {people1} {did1}.", "the {people1} {did1}."),
        ("the {person1} {did_to1} the {person2} and the {people1}.", "the {person1} {did_to1} the {person2}."),
    ),
    "adjective": (
        ("{adjective1} {people1} {did_to1} the {person1}.", "{people1} {did_to1} the {person1}."),
        ("{adjective1} {people1} {did1} {where1}.", "{people1} {did1} {where1}."),
    ),
    "understood_object": (
        ("the {person1} {activity1}.", "the {person1} {activity1b}."),
        ("{where1} the {people1} {activity1}.", "the {people1} {activity1b}."),
    ),
    "relative_clause_on_object": (
        (
            "the {person1} {did_to1} the {person2} that the {people1} {did_to2}.",
            "the {person1} {did_to1} the {person2}.",
        ),
        ("the {people1} {did_to1} the {person2} that {did1}.", "the {people1} {did_to1} the {person2}."),
    ),
    "phrase_on_object": (
        ("the {person1} {did_to1} the {person2} {where1}.", "the {person1} {did_to1} the {person2}."),
        ("the {people1} {did_to1} the {person2} {next_to1} the {person3}.", "the {people1} {did_to1} the {person2}."),
    ),
}
SUBSEQUENCE_NOT_ENTAILED: Templates = {
    "sentence_complement": (
        ("the {person1} {heard1} the {person2} {did1}.", "the {person1} {heard1} the {person2}."),
        ("the {people1} {heard1} the {person2} {did_to1} the {person3}.", "the {people1} {heard1} the {person2}."),
    ),
    "past_participle": (
        ("the {person1} {participle1} {did1}.", "the {person1} {participle1}."),
        ("the {people1} {participle1} {did_to1} the {person2}.", "the {people1} {participle1}."),
    ),
    "phrase_on_subject": (
        ("the {person1} {next_to1} the {person2} {did1}.", "the {person2} {did1}."),
        ("the {people1} {next_to1} the {person2} {did_to1} the {person3}.", "the {person2} {did_to1} the {person3}."),
    ),
    "relative_clause_on_subject": (
        ("the {person1} that {did_to1} the {person2} {did1}.", "the {person2} {did1}."),
        (
            "the {people1} that {did_to1} the {person2} {did_to2} the {person3}.",
            "the {person2} {did_to2} the {person3}.",
        ),
    ),
    "clause_boundary": (
        ("while the {person1} {washed1} the {person2} {did1}.", "the {person1} {washed1} the {person2}."),
        ("as the {people1} {washed1} the {person1} {did1}.", "the {people1} {washed1} the {person1}."),
    ),
}
CONSTITUENT_ENTAILED: Templates = {
    "embedded_after_since": (
        ("{since1} the {person1} {did1}, the {people1} {did2}.", "the {person1} {did1}."),
        (
            "{since1} the {people1} {did_to1} the {person1}, the {person2} {did1}.",
            "the {people1} {did_to1} the {person1}.",
        ),
    ),
    "main_after_since": (
        (
            "{since1} the {person1} {did1}, the {people1} {did_to1} the {person2}.",
            "the {people1} {did_to1} the {person2}.",
        ),
    ),
    "embedded_after_knew": (
        ("the {person1} {knew_that1} the {person2} {did1}.", "the {person2} {did1}."),
        ("the {people1} {knew_that1} the {person1} {did_to1} the {person2}.", "the {person1} {did_to1} the {person2}."),
    ),
    "conjunction": (
        ("the {person1} {did1}, and the {people1} {did_to1} the {person2}.", "the {people1} {did_to1} the {person2}."),
        ("the {person1} {did_to1} the {person2}, and the {people1} {did1}.", "the {person1} {did_to1} the {person2}."),
    ),
    "adverb": (
        ("{surely1} the {person1} {did1} {where1}.", "the {person1} {did1} {where1}."),
        ("{surely1} the {people1} {did_to1} the {person1}.", "the {people1} {did_to1} the {person1}."),
    ),
}
CONSTITUENT_NOT_ENTAILED: Templates = {
    "embedded_after_if": (
        ("{if1} the {person1} {did1}, the {people1} {did2}.", "the {person1} {did1}."),
        (
            "{if1} the {people1} {did_to1} the {person1}, the {person2} {did1}.",
            "the {people1} {did_to1} the {person1}.",
        ),
    ),
    "main_after_if": (
        (
            "{if1} the {person1} {did1}, the {people1} {did_to1} the {person2}.",
            "the {people1} {did_to1} the {person2}.",
        ),
    ),
    "embedded_after_thought": (
        ("the {person1} {thought_that1} the {person2} {did1}.", "the {person2} {did1}."),
        (
            "the {people1} {thought_that1} the {person1} {did_to1} the {person2}.",
            "the {person1} {did_to1} the {person2}.",
        ),
    ),
    "disjunction": (
        ("the {person1} {did1}, or the {people1} {did_to1} the {person2}.", "the {people1} {did_to1} the {person2}."),
        ("the {person1} {did_to1} the {person2}, or the {people1} {did1}.", "the {person1} {did_to1} the {person2}."),
    ),
    "adverb": (
        ("{perhaps1} the {person1} {did1} {where1}.", "the {person1} {did1} {where1}."),
        ("{perhaps1} the {people1} {did_to1} the {person1}.", "the {people1} {did_to1} the {person1}."),
    ),
}
ORDINARY_ENTAILED: Templates = {
    "synonyms": (
        ("the {who1} {helped1} the {who2}.", "a {who1b} {helped1b} a {who2b}."),
        ("the {who1} {helped1} the {who2} {extra1}.", "a {who1b} {helped1b} a {who2b}."),
    ),
    "broader_terms": (
        ("the {who1} fed the {animal1} {where1}.", "some {animal1b} got food."),
        ("the {who1} {moved1} {where1}.", "somebody {moved1b}."),
        ("{number1} {who1}s {moved1} {where1}.", "some {who1b}s {moved1b}."),
    ),
}
ORDINARY_NOT_ENTAILED: Templates = {
    "unrelated": (
        ("the {who1} {helped1} the {who2} {where1}.", "{event1}."),
        ("the {person1} {did_to1} the {people1}.", "{event1}."),
    ),
    "opposites": (
        ("the {who1} {helped1} the {who2}.", "a {who1b} {helped1c} a {who2b}."),
        ("the {who1} {helped1} the {who2} {where1}.", "a {who1b} {helped1c} a {who2b}."),
    ),
    "swapped_synonyms": (
        ("the {who1} {helped1} the {who2}.", "a {who2b} {helped1b} a {who1b}."),
        ("the {who1} {helped1} the {who2} {where1}.", "a {who2b} {helped1b} a {who1b}."),
    ),
    "added_detail": (
        ("the {who1} {helped1} the {who2}.", "a {who1b} {helped1b} a {who2b} {extra1}."),
        ("the {who1} {moved1}.", "somebody {moved1b} {where1}."),
    ),
}

TEMPLATES: Mapping[tuple[str, str], Templates] = {
    ("lexical_overlap", ENTAILED): LEXICAL_ENTAILED,
    ("lexical_overlap", NOT_ENTAILED): LEXICAL_NOT_ENTAILED,
    ("subsequence", ENTAILED): SUBSEQUENCE_ENTAILED,
    ("subsequence", NOT_ENTAILED): SUBSEQUENCE_NOT_ENTAILED,
    ("constituent", ENTAILED): CONSTITUENT_ENTAILED,
    ("constituent", NOT_ENTAILED): CONSTITUENT_NOT_ENTAILED,
    ("ordinary", ENTAILED): ORDINARY_ENTAILED,
    ("ordinary", NOT_ENTAILED): ORDINARY_NOT_ENTAILED,
}

_SLOT = re.compile(r"\{([a-z_]+)(\d)([bc]?)\}")
_VOCABULARY = {**WORDS, **ORDINARY_WORDS}


def entailment_pairs(
    n: int,
    *,
    heuristic: Heuristic | None = None,
    heuristic_share: float = 0.5,
    ordinary_share: float = 0.0,
    seed: int = 0,
    split: str | None = "train",
) -> list[Example]:
    """Premises (`text`) and hypotheses (`pair`) whose every word, in the hypothesis, comes from the premise.

    `heuristic_share` is the share of those pairs for which the shortcut gives the right answer (entailment): 0.5 makes
    a balanced challenge, 1.0 training data that teach the shortcut. `ordinary_share` of all pairs have next to no word
    in common instead; between a quarter and three quarters of them are entailed, whatever balances the labels best, so
    that overlap alone does not settle the label. To train: `heuristic_share=1.0, ordinary_share=0.67`.

    Groups are `<heuristic>/<subcase>` or `ordinary/<subcase>`. An id is the same pair whatever the shares and `n` are.
    """
    check_request(n, seed)
    if heuristic is not None and heuristic not in HEURISTICS:
        raise BadOption(f"There is no heuristic called {heuristic!r}. There is: {', '.join(HEURISTICS)}.")
    _check_share("heuristic_share", heuristic_share)
    _check_share("ordinary_share", ordinary_share)
    kinds = HEURISTICS if heuristic is None else (heuristic,)
    plan = _plan(n, kinds, heuristic_share, ordinary_share)
    order = stream(seed, split or "", "order").permutation(n)
    return [_example(*plan[i], seed=seed, split=split) for i in order]


def _plan(n: int, kinds: tuple[str, ...], heuristic_share: float, ordinary_share: float) -> list[tuple[str, str, int]]:
    """Kind, label and running number of every pair."""
    n_ordinary = round(n * ordinary_share)
    n_right = round((n - n_ordinary) * heuristic_share)
    n_wrong = n - n_ordinary - n_right
    n_entailed = min(max(n // 2 - n_right, n_ordinary // 4), n_ordinary - n_ordinary // 4)
    return [
        *_numbered(n_right, kinds, ENTAILED),
        *_numbered(n_wrong, kinds, NOT_ENTAILED),
        *_numbered(n_entailed, ("ordinary",), ENTAILED),
        *_numbered(n_ordinary - n_entailed, ("ordinary",), NOT_ENTAILED),
    ]


def _numbered(n: int, kinds: tuple[str, ...], label: str) -> list[tuple[str, str, int]]:
    return [(kinds[i % len(kinds)], label, i // len(kinds)) for i in range(n)]


def _example(kind: str, label: str, number: int, *, seed: int, split: str | None) -> Example:
    rng = stream(seed, split or "", kind, label, number)
    subcases = TEMPLATES[kind, label]
    subcase = tuple(subcases)[number % len(subcases)]
    premise, hypothesis = _fill(pick(rng, subcases[subcase]), rng)
    id_ = "-".join([kind, label, str(seed), *([split] if split else []), str(number)])
    return Example(id_, premise, hypothesis, label, group=f"{kind}/{subcase}", split=split)


def _fill(patterns: tuple[str, str], rng: np.random.Generator) -> tuple[str, str]:
    """Both sentences, with the same word in the same slot and different words in different slots."""
    chosen: dict[str, list[str]] = {}

    def word(match: re.Match[str]) -> str:
        name, slot, form = match[1], match[1] + match[2], match[3]
        if slot not in chosen:
            source = _VOCABULARY["person" if name == "people" else name]
            taken = list(chosen.values())
            chosen[slot] = pick(rng, [w for w in source if w.split("|") not in taken]).split("|")
        plural = "s" if name == "people" else ""
        return chosen[slot]["abc".index(form or "a")] + plural

    first, second = (with_articles(_SLOT.sub(word, pattern)) for pattern in patterns)
    return first[0].upper() + first[1:], second[0].upper() + second[1:]


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise BadOption(f"{name} must lie between 0 and 1, not {share}.")
