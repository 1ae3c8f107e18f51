"""A masked language model under a label prompt, as in SparCAssist (Zhang et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from unhans.counterfactuals import counterfactual
from unhans.counterfactuals._candidates import Positions, check_counts, in_turn, telling
from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft
from unhans.counterfactuals._prompts import Prompt, check_prompt, default_prompt, fill_each
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.text import Words
from unhans.types import Edit
from unhans.wordnet import in_the_case_of

_LOOKED_AT = 4  # fillers looked at for each one wanted, for the rules forbid some


@counterfactual(needs={"predict"}, paper="arXiv:2205.01588")
def masked_lm(
    classifier: Classifier,
    drafts: Sequence[Draft],
    constraints: Constraints,
    language_model: LanguageModel,
    how: dict[str, Any],
    *,
    prompt: Annotated[
        str, "sentence around the {text} that names the {label} sought; auto: from the label names; empty: none"
    ] = "auto",
    per_word: Annotated[int, "new words tried for each word"] = 10,
    positions: Positions = 10,
) -> list[list[tuple[Edit, ...]]]:
    """Words that a language model would write there, told which label the text has.

    One word is hidden at a time, in the text quoted and followed by a sentence such as "The sentiment of this text is
    negative." Any label but the present one is sought: then the sentence names the one that the model gives the second
    place. Labels whose names say nothing (LABEL_0) get no such sentence unless you write one. Of a text longer than the
    language model reads, it is shown the words around the hidden one.
    """
    check_counts(per_word=per_word, positions=positions)
    template = check_prompt(default_prompt(classifier.labels) if prompt == "auto" else prompt)
    labels = _labels_sought(classifier, drafts, how) if "{label}" in template else [""] * len(drafts)
    places = telling(classifier, [(on, on.open) for on in drafts], positions, how)
    asked = []
    for on, label, own in zip(drafts, labels, places, strict=True):
        hidden = Prompt.made(template, label).hide(language_model, Words(on.example), [on.places[p] for p in own])
        asked.append({p: hidden[on.places[p]] for p in own})
    variants = (variant for some in asked for variant in some.values())
    found = fill_each(language_model, variants, per_word * _LOOKED_AT, how.get("cancelled"))
    results = []
    for on, some in zip(drafts, asked, strict=True):
        old = on.words.strings
        candidates = {p: [in_the_case_of(old[p], word) for word in found[variant]] for p, variant in some.items()}
        results.append(in_turn(on, constraints, candidates, per_word))
    return results


def _labels_sought(classifier: Classifier, drafts: Sequence[Draft], how: dict[str, Any]) -> list[str]:
    """For each draft the label to be had: the target, or the one that is next to the original as things stand."""
    lines = classifier.log_probs([on.example for on in drafts], **how)
    lines[range(len(drafts)), [on.goal.original for on in drafts]] = -np.inf
    seconds = lines.argmax(axis=1).tolist()
    targets = [n if on.goal.target is None else on.goal.target for on, n in zip(drafts, seconds, strict=True)]
    return [classifier.labels[n] for n in targets]
