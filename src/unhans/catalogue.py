"""All families of methods, and the tables that describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unhans.attributions import attribution
from unhans.audit import check
from unhans.augmentations import augmentation
from unhans.bugs import bug
from unhans.counterfactuals import counterfactual
from unhans.detectors import detector
from unhans.doubts import doubt
from unhans.fixes import fix
from unhans.heuristics import heuristic
from unhans.influences import influence
from unhans.metrics import metric
from unhans.rationales import rationale
from unhans.registry import Entry, Option, Registry

_GIVEN = {
    "background": "background",
    "language_model": "language model",
    "other": "another model",
    "train": "training examples",
}
_TOLD = ("kind", "better", "of", "favours", "reads", "cheap", "cost", "keeps")  # facts that only some families have
FAMILIES: dict[str, Registry] = {
    family.family: family
    for family in (
        attribution,
        rationale,
        counterfactual,
        influence,
        heuristic,
        doubt,
        detector,
        check,
        bug,
        metric,
        augmentation,
        fix,
    )
}
QUESTIONS = {
    "attributions": "How much does each word speak for the label?",
    "rationales": "Which words may the model be said to use?",
    "counterfactuals": "What has to change for the model to change its mind?",
    "influences": "Which training examples are behind what the model says?",
    "heuristics": "Which texts invite a shortcut?",
    "doubts": "Which training examples may have the wrong label?",
    "detectors": "Which texts are unlike those that the model was taught on?",
    "checks": "What can be said against this model, without planting anything?",
    "bugs": "Which mistakes can be planted, so that the truth is known?",
    "metrics": "How far can these explanations be trusted?",
    "augmentations": "How can a training text be said otherwise, with the same label?",
    "fixes": "How is the model taught what people said of it?",
}


def describe(entry: Entry) -> dict[str, Any]:
    """A member as plain data: for JSON, forms and tables."""
    return {
        "family": entry.family,
        "name": entry.name,
        "aliases": list(entry.aliases),
        "summary": entry.summary,
        "needs": _needs(entry),
        "paper": entry.facts.get("paper"),
        "random": entry.random,
        **{fact: entry.facts[fact] for fact in _TOLD if fact in entry.facts},
        "differentiable": "create_graph" in entry.asks,
        "options": [
            {"name": o.name, "kind": o.kind, "default": o.default, "choices": list(o.choices), "help": o.help}
            for o in entry.options
        ],
    }


def markdown(family: Registry) -> str:
    """The table of a family for the docs: one row a member, then its options."""
    head = "| name | what it does | needs | paper |\n|---|---|---|---|"
    rows = [
        f"| `{e.name}`{_alias(e)} | {e.summary} | {', '.join(_needs(e)) or '–'} | {e.facts.get('paper', '–')} |"
        for e in family
    ]
    return "\n".join([head, *rows, "", *_options(family)]).rstrip()


def _options(family: Registry) -> Iterator[str]:
    for entry in family:
        for option in entry.options:
            yield f"- `{entry.name}` · `{option.name}={option.default}` ({kind_of(option)}): {option.help}"


def kind_of(option: Option) -> str:
    """What may be given for an option, in a word or as a list of choices."""
    return " / ".join(option.choices) if option.choices else option.kind


def _needs(entry: Entry) -> list[str]:
    """What a user must have: abilities of the classifier, then what must be given besides."""
    given = [told for name, told in _GIVEN.items() if name in entry.asks]
    return [
        *(need.replace("_", " ") for need in sorted(entry.needs)),
        *given,
        *(["highlights"] if entry.facts.get("highlights") else []),
    ]


def _alias(entry: Entry) -> str:
    return f" ({', '.join(f'`{alias}`' for alias in entry.aliases)})" if entry.aliases else ""
