"""Synthetic English text with known answers: reviews and premise-hypothesis pairs.

Everything here is made up. The grammars and word lists were written by us for this project; no third-party text went
into them. All of it is seeded: the same arguments give the same examples in every process and on every machine, and
an id always stands for the same example, however many are asked for.
"""

from unhans.demo_data.pairs import HEURISTICS, entailment_pairs
from unhans.demo_data.reviews import DOMAINS, DomainName, evaluative_words, reviews

__all__ = ["DOMAINS", "HEURISTICS", "DomainName", "entailment_pairs", "evaluative_words", "reviews"]
