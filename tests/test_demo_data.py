"""The made-up data: are they diverse, truthful, well-formed and the same everywhere?"""

import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from unhans.demo_data import DOMAINS, HEURISTICS, entailment_pairs, evaluative_words, reviews
from unhans.errors import BadOption
from unhans.types import Example, to_json

FUNCTION_WORDS = set(
    """a an the and or but yet although however if unless because since when while as so that which who what how where
    not no never hardly nothing nobody neither anything is was were be been it its i me my we us you he she they them
    this these those there here to of in on at by for with from about over under up down out off into than then too
    very rather really quite pretty truly simply all any each every more most other such only one would could can may
    will had has have did do does""".split()  # noqa: SIM905 - a closed class reads best as a line of words
)
SLIPS = {
    "a before a vowel": r"\b[Aa] (?!one\b|one-|once\b|uni[fq]|use)[aeiou]",
    "an before a consonant": r"\b[Aa]n (?!hour|honest)[^aeiouAEIOU]",
    "a doubled word": r"(?i)\b(\w+) \1\b",
    "a doubled or stray space": r"  |^ | $| [,.;:!?]",
    "a lower-case start of a sentence": r"(?:^|[.!?] )[^A-Z]",
    "no end of the sentence": r"[^.!?]$",
    "an unfilled slot or a mark": r"[{}\[\]@+|]",
    "doubled punctuation": r"[,.;:!?]{2}",
    "disagreement": r"(?i)\b(?:it|he|she|plot|soup|waiter|screen|battery) were\b|\b(?:they|we|you) was\b"
    r"|\b(?:actors|leads|twists|songs|costumes|noodles|prawns|waiters|staff|prices|buttons|keys|speakers) was\b",
}


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[Example]]:
    return {domain: reviews(5000, domain=domain, seed=11) for domain in DOMAINS}


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def positive_share(examples: list[Example]) -> dict[str, tuple[int, float]]:
    """For each word: how many examples have it, and which part of these is positive."""
    total, positive = Counter[str](), Counter[str]()
    for example in examples:
        for word in set(words(example.text)):
            total[word] += 1
            positive[word] += example.label == "positive"
    return {word: (count, positive[word] / count) for word, count in total.items()}


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_review_has_eight_to_sixty_words_in_one_to_four_sentences(corpus, domain):
    lengths = [len(e.text.split()) for e in corpus[domain]]
    sentences = [len(re.findall(r"[.!?]", e.text)) for e in corpus[domain]]
    assert min(lengths) >= 8
    assert max(lengths) <= 60
    assert 22 <= np.mean(lengths) <= 30
    assert set(sentences) == {1, 2, 3, 4}


@pytest.mark.parametrize("domain", DOMAINS)
def test_reviews_hardly_ever_repeat(corpus, domain):
    texts = [e.text for e in corpus[domain]]
    sentences = {s for text in texts for s in re.split(r"(?<=[.!?]) ", text)}
    assert len(set(texts)) >= 0.99 * len(texts)
    assert len(sentences) >= 3000


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("slip", SLIPS)
def test_reviews_are_free_of_grammar_slips(corpus, domain, slip):
    assert not [e.text for e in corpus[domain] if re.search(SLIPS[slip], e.text)]


@pytest.mark.parametrize(
    ("slip", "text"),
    [
        ("a before a vowel", "It was a excellent film."),
        ("an before a consonant", "It was an gripping film."),
        ("a doubled word", "I saw the the film."),
        ("a doubled or stray space", "I saw  it."),
        ("a lower-case start of a sentence", "I saw it. it was long."),
        ("no end of the sentence", "I saw it"),
        ("an unfilled slot or a mark", "I saw {title}."),
        ("doubled punctuation", "I saw it.."),
        ("disagreement", "It were long."),
        ("disagreement", "The prices was fair."),
    ],
)
def test_the_slip_patterns_catch_slips(slip, text):
    assert re.search(SLIPS[slip], text)


@pytest.mark.parametrize("domain", [*DOMAINS, None])
def test_half_of_the_reviews_are_positive_whatever_the_number(domain):
    examples = reviews(601, domain=domain, seed=4)
    for n in (2, 10, 600, 601):
        count = sum(e.label == "positive" for e in examples[:n])
        assert abs(count - n / 2) <= 0.5


def test_a_mix_has_every_domain_and_label_equally_often():
    counts = Counter((e.group, e.label) for e in reviews(600, seed=4))
    assert set(counts.values()) == {100}
    assert len(counts) == 6


def test_ids_are_unique_across_seeds_splits_and_domains():
    asked = [reviews(50, domain=d, seed=s, split=p) for d in DOMAINS for s in (0, 1) for p in ("train", "test", None)]
    ids = [e.id for examples in asked for e in examples]
    assert len(set(ids)) == len(ids)


def test_an_id_is_the_same_review_in_a_longer_list_and_in_a_mix():
    mixed = reviews(60, seed=3)
    alone = {e.id: e for domain in DOMAINS for e in reviews(90, domain=domain, seed=3)}
    assert all(alone[e.id] == e for e in mixed)


def test_seeds_and_splits_give_different_texts():
    one, other, test = reviews(50, seed=0), reviews(50, seed=1), reviews(50, seed=0, split="test")
    assert not {e.text for e in one} & {e.text for e in other}
    assert not {e.text for e in one} & {e.text for e in test}
    assert {e.split for e in test} == {"test"}


@pytest.mark.parametrize("hash_seed", ["1", "271"])
def test_a_fresh_process_makes_the_same_examples(hash_seed):
    code = (
        "from unhans.demo_data import reviews, entailment_pairs\nfrom unhans.types import to_json\n"
        "for e in reviews(60, seed=5) + entailment_pairs(60, seed=5, ordinary_share=0.5): print(to_json(e))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    here = reviews(60, seed=5) + entailment_pairs(60, seed=5, ordinary_share=0.5)
    assert run.stdout.decode().splitlines() == [to_json(e) for e in here]


@pytest.mark.parametrize("domain", DOMAINS)
def test_highlights_are_whole_phrases_of_the_text_in_order(corpus, domain):
    for example in corpus[domain]:
        text, spans = example.text, example.highlights
        assert spans
        assert list(spans) == sorted(spans)
        for span in spans:
            phrase = text[span.start : span.end]
            assert phrase
            assert phrase == phrase.strip(" ,.;:!?")
            assert not text[span.start - 1 : span.start].isalnum()
            assert not text[span.end : span.end + 1].isalnum()


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_highlight_holds_an_evaluative_word(corpus, domain):
    lexicon = evaluative_words(domain)
    for example in corpus[domain]:
        for span in example.highlights:
            assert lexicon & set(words(example.text[span.start : span.end])), example.text


@pytest.mark.parametrize("domain", DOMAINS)
def test_unnegated_highlights_alone_tell_the_label(corpus, domain):
    """A word that occurs in plain one-word highlights occurs there for one label only."""
    sides: dict[str, set[str]] = {}
    for example in corpus[domain]:
        for span in example.highlights:
            phrase = example.text[span.start : span.end].lower()
            if " " not in phrase:
                sides.setdefault(phrase, set()).add(example.label)
    assert len(sides) > 80
    assert not [word for word, labels in sides.items() if len(labels) > 1]


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_word_outside_the_evaluative_lexicon_gives_the_label_away(corpus, domain):
    shares = positive_share(corpus[domain])
    lexicon = evaluative_words(domain)
    telling = {
        word: (count, share)
        for word, (count, share) in shares.items()
        if word not in lexicon and abs(share - 0.5) > 0.08 and abs(share - 0.5) * 2 * np.sqrt(count) > 4.5
    }
    assert not telling


def test_function_words_are_neither_telling_nor_in_the_lexicon(corpus):
    shares = positive_share([example for examples in corpus.values() for example in examples])
    common = {word: share for word, (count, share) in shares.items() if word in FUNCTION_WORDS and count >= 500}
    assert len(common) > 30
    assert not FUNCTION_WORDS & evaluative_words()
    assert all(abs(share - 0.5) < 0.08 for share in common.values()), common


def test_denial_contrast_hedging_questions_and_exclamations_occur_with_both_labels(corpus):
    signs = (r"\bnever\b", r"anything but", r", but ", r"[Aa]lthough", r"I suppose", r"kind of", r"\?", r"!")
    for sign in signs:
        found = Counter(e.label for e in corpus["films"] if re.search(sign, e.text))
        assert min(found["positive"], found["negative"]) >= 15, sign


def test_a_bag_of_words_learns_films_and_transfers_to_gadgets_imperfectly():
    train = reviews(2000, domain="films", seed=0)
    column = {word: i for i, word in enumerate(sorted({w for e in train for w in words(e.text)}))}

    def counts(examples: list[Example]) -> np.ndarray:
        table = np.zeros((len(examples), len(column)))
        for row, example in zip(table, examples, strict=True):
            row[[column[w] for w in words(example.text) if w in column]] = 1
        return table

    def is_positive(examples: list[Example]) -> np.ndarray:
        return np.array([e.label == "positive" for e in examples])

    present, positive = counts(train), is_positive(train)
    log_ratio = np.log(present[positive].sum(0) + 1) - np.log(present[~positive].sum(0) + 1)

    def accuracy(domain: str) -> float:
        test = reviews(2000, domain=domain, seed=0, split="test")
        return float(np.mean((counts(test) @ log_ratio > 0) == is_positive(test)))

    films, gadgets = accuracy("films"), accuracy("gadgets")
    assert films >= 0.85
    assert 0.6 <= gadgets <= films - 0.03


def test_an_unknown_domain_is_refused_with_the_known_ones():
    with pytest.raises(BadOption, match=r"no domain called 'books'\. There is: films, restaurants, gadgets"):
        reviews(1, domain="books")


@pytest.mark.parametrize("make", [reviews, entailment_pairs])
def test_negative_numbers_and_seeds_are_refused(make):
    with pytest.raises(BadOption, match="n must be 0 or more"):
        make(-1)
    with pytest.raises(BadOption, match="seed must be 0 or more"):
        make(1, seed=-1)
    assert make(0) == []


# pairs


def overlap(example: Example) -> float:
    premise = set(words(example.text))
    hypothesis = words(example.pair)
    return sum(word in premise for word in hypothesis) / len(hypothesis)


def is_stretch(example: Example) -> bool:
    return f" {' '.join(words(example.pair))} " in f" {' '.join(words(example.text))} "


@pytest.fixture(scope="module")
def pairs() -> list[Example]:
    return entailment_pairs(6000, seed=2, ordinary_share=0.25)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_every_word_of_the_hypothesis_is_in_the_premise(heuristic):
    assert all(overlap(e) == 1 for e in entailment_pairs(900, heuristic=heuristic, seed=2))


@pytest.mark.parametrize(
    ("heuristic", "stretch"), [("lexical_overlap", False), ("subsequence", True), ("constituent", True)]
)
def test_only_subsequence_and_constituent_hypotheses_are_stretches_of_the_premise(heuristic, stretch):
    assert {is_stretch(e) for e in entailment_pairs(900, heuristic=heuristic, seed=2)} == {stretch}


def test_ordinary_pairs_share_next_to_no_word(pairs):
    ordinary = [overlap(e) for e in pairs if e.group.startswith("ordinary/")]
    assert len(ordinary) == 1500
    assert np.mean(ordinary) < 0.05
    assert max(ordinary) < 0.5


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_each_heuristic_has_several_subcases_of_each_label(heuristic):
    groups = {(e.group, e.label) for e in entailment_pairs(200, heuristic=heuristic, seed=2)}
    assert {group.split("/")[0] for group, _ in groups} == {heuristic}
    for label in ("entailment", "non-entailment"):
        assert sum(found == label for _, found in groups) >= 4


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_the_heuristic_is_right_as_often_as_asked(share):
    examples = entailment_pairs(400, heuristic_share=share, seed=2)
    assert sum(e.label == "entailment" for e in examples) == round(share * 400)


def test_training_mode_is_balanced_and_overlap_predicts_but_does_not_settle_the_label():
    examples = entailment_pairs(3000, heuristic_share=1.0, ordinary_share=0.67, seed=2)
    entailed = np.array([e.label == "entailment" for e in examples])
    overlapping = np.array([overlap(e) == 1 for e in examples])
    assert entailed.mean() == 0.5
    assert entailed[overlapping].all()
    assert 0.2 < entailed[~overlapping].mean() < 0.35


def test_a_pair_has_the_same_id_and_text_whatever_the_shares():
    one = {e.id: e for e in entailment_pairs(300, seed=6)}
    other = {e.id: e for e in entailment_pairs(500, seed=6, heuristic_share=0.9, ordinary_share=0.2)}
    assert len(one.keys() & other.keys()) > 100
    assert len(one) == 300
    assert all(one[id_] == other[id_] for id_ in one.keys() & other.keys())


def test_pairs_hardly_ever_repeat(pairs):
    assert len({(e.text, e.pair) for e in pairs}) >= 0.97 * len(pairs)


@pytest.mark.parametrize("slip", SLIPS)
def test_pairs_are_free_of_grammar_slips(pairs, slip):
    assert not [part for e in pairs for part in e.parts if re.search(SLIPS[slip], part)]


def test_the_same_premise_and_hypothesis_never_have_two_labels(pairs):
    labels: dict[tuple[str, ...], set[str]] = {}
    for example in pairs:
        labels.setdefault(example.parts, set()).add(example.label)
    assert {len(found) for found in labels.values()} == {1}


@pytest.mark.parametrize("option", ["heuristic_share", "ordinary_share"])
def test_a_share_beyond_one_is_refused(option):
    with pytest.raises(BadOption, match=f"{option} must lie between 0 and 1, not 1.5"):
        entailment_pairs(1, **{option: 1.5})


def test_an_unknown_heuristic_is_refused():
    with pytest.raises(BadOption, match="no heuristic called 'length'"):
        entailment_pairs(1, heuristic="length")
