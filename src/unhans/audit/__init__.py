"""Audits: what can be said against a model on its own data, without planting anything?

`audit` is the front door: it asks the model about the examples once, lets every check look, and collects findings, the
severest first. A check is one file with one function that gives an `Outcome`; the law tests run on every one of them.
Each finding says how bad it is (`_rules`), how we know, where to look, what to do, and what the check cannot show.

Facts of a check: `title` is what it looks for, as people say it; `needs={"predict"}` what the model must be able to do;
`cost` about how often it reads all the examples (5,000 of them), `order` where its findings stand among those equally
severe, `labelled=True` that it takes labelled examples, `trained=True` that it takes the training examples, and
`on="pair"` or `"single"` that it is about such texts alone. What cannot run is left out, and says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unhans.attributions import attribution
from unhans.audit._look import Ask, Find, Look, Outcome, drawn
from unhans.audit._rules import FEWEST
from unhans.crew import HERE, Crew, crew
from unhans.detectors import detector
from unhans.errors import BadData, BadOption, Unsupported
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.registry import Entry, Registry
from unhans.scoring import How, Progress, ScoreCache
from unhans.types import Audit, CheckRun, Example, Finding, Recipe

__all__ = ["SEVERITIES", "Ask", "Find", "How", "Outcome", "audit", "check", "needs_language_model", "usable"]

check = Registry(
    "checks",
    offers=(
        "classifier",
        "examples",  # those that are looked at
        "train",  # what the model was trained on, as far as it is known; may be empty
        "log_probs",  # what the model says of the examples, × labels
        "given",  # number of each example's label; -1: none
        "forms",  # the words of each example that the model reads, as they are counted
        "sizes",  # how many words each example has, read or not
        "explain",  # explanations of some examples; made once for all checks
        "ask",  # asks the model about more texts
        "find",  # makes a finding
        "how",  # progress and cancelled
        "method",  # the attribution method whose explanations people see
        "language_model",
        "folder",  # where influence may keep what it worked out, or None
        "limit",  # examples to look at
        "seed",
        "rng",
    ),
    package="unhans.audit",
)
SEVERITIES = ("high", "medium", "low")
_USUAL = "leave_one_out"
_STRANGENESS = "strangeness"  # the check that measures with a detector
_STEPS = 1000  # of the whole, for those who watch


def audit(
    classifier: Classifier,
    examples: Iterable[Example],
    *,
    train: Iterable[Example] | None = None,
    checks: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    language_model: LanguageModel | None = None,
    method: str | None = None,
    limit: int = 5000,
    seed: int = 0,
    cache: ScoreCache | None = None,
    folder: str | Path | None = None,
    on: str | Crew = HERE,
    workers: int | None = None,
    on_part: Callable[[Audit], None] | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Audit:
    """Everything that the checks find about a model on these examples, the severest first.

    `examples` are best such as the model was not trained on; `train` are those it was. At most `limit` examples
    are looked at, drawn by the seed. Training examples are all searched for copies and words, however many there are;
    `wrong_labels` asks the model about at most `limit` of them. Without `checks`, all run that can, the cheapest first;
    `options` are those of single checks, by their names. `method` is the attribution method whose explanations say
    which words to try. After each check `on_part` gets the audit so far, in which the checks to come are waiting.

    `on` and `workers` say who looks (`unhans.crew`): a check is a part. What the model says of the examples is asked
    once, here, and sent along. Explanations are made by whoever does the check that asks for them, once each; answers
    are shared by the checks of one worker, and `cache` and `folder` are used here alone.
    """
    entries, chosen = _entries(checks), options or {}
    if stray := sorted(set(chosen) - {entry.name for entry in entries}):
        raise BadOption(f"There are options for {stray[0]!r}, which is not among the checks asked for.")
    if limit < 1:
        raise BadOption(f"limit must be at least 1, not {limit}.")
    recipes = [entry.recipe(chosen.get(entry.name, {}), seed) for entry in entries]
    explained_by = attribution[method or _USUAL].name
    given, taught = list(examples), list(train or ())
    if not given:
        raise BadData("There are no examples to look at. Give some that the model was not trained on.")
    looked = drawn(given, limit, seed)
    way = _Way(progress, [1.0, *(float(entry.facts["cost"]) for entry in entries)])
    cache = cache or ScoreCache(size=300_000)
    how = How(way.inside, cancelled)
    with crew(on, workers) as hands:  # before the model is asked: nothing is lost if there is nobody
        said = classifier.log_probs(looked, cache=cache, progress=how.tell, cancelled=cancelled)
        way.past(0)
        look = Look(
            classifier, looked, taught, explained_by, language_model, cache,
            None if folder is None else Path(folder), seed, limit, said,
        )  # fmt: skip
        whole = _Whole(look, recipes, entries, notes=_notes(look, len(given)), limit=limit)
        asked = [(recipe, chosen.get(recipe.name, {})) for recipe in recipes]
        for number, taken in hands.spread(_Looking(look), asked, how):
            whole.keep(number, taken)
            way.past(number + 1)
            if on_part is not None:
                on_part(whole.audit())
    return whole.audit()


def usable(classifier: Classifier) -> tuple[str, ...]:
    """Names of the checks that this classifier can serve, in the order they run."""
    return tuple(entry.name for entry in _entries(None) if entry.needs <= classifier.capabilities)


def needs_language_model(
    checks: Sequence[str],
    *,
    method: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> bool:
    """Whether one of these checks would make use of a language model; fitting one takes longer than most of them."""
    explained = "language_model" in attribution[method or _USUAL].asks
    settings = check[_STRANGENESS].settings((options or {}).get(_STRANGENESS, {}))
    measured = "language_model" in detector[str(settings["detector"])].asks
    return any(
        (explained and not {"explain", "method"}.isdisjoint(entry.asks)) or (measured and entry.name == _STRANGENESS)
        for entry in (check[name] for name in checks)
    )


def _entries(checks: Sequence[str] | None) -> list[Entry]:
    """The checks by name, each once, the cheapest first."""
    found = list(check) if checks is None else list(dict.fromkeys(check[name] for name in checks))
    if not found:
        raise BadOption(f"Choose at least one check. There is: {', '.join(check.names)}.")
    return sorted(found, key=lambda entry: (entry.facts["cost"], entry.facts["order"]))


class _Way:
    """How far it is: the parts that are done, each of which counts for what it costs, and where the one at hand is."""

    def __init__(self, progress: Progress | None, costs: Sequence[float]) -> None:
        self._progress, self._costs = progress, costs
        self._waiting = dict.fromkeys(range(len(costs)))

    def past(self, number: int) -> None:
        """This part is done."""
        del self._waiting[number]
        self.inside(0, 1)

    def inside(self, done: int, of: int) -> None:
        """The part at hand, where there is but one at a time, is the first of those that are left."""
        left, whole = [self._costs[number] for number in self._waiting], sum(self._costs)
        at = sum(left[:1]) * min(1.0, done / max(1, of))
        if self._progress is not None:
            self._progress(round(_STEPS * (whole - sum(left) + at) / whole), _STEPS)


Asked = tuple[Recipe, Mapping[str, Any]]
"""A check, and its options."""
Taken = tuple[Outcome | str, float]
"""What a check came to, or why it was left out, and the seconds that it took."""


@dataclass(frozen=True)
class _Looking:
    """The checks as a crew does them; other processes know them by name."""

    look: Look

    def __call__(self, how: How) -> Callable[[Asked], Taken]:
        return lambda asked: self._taken(*asked, how)

    def _taken(self, recipe: Recipe, options: Mapping[str, Any], how: How) -> Taken:
        """Let one check look; one that cannot is left out, with the reason."""
        entry, begun = check[recipe.name], time.monotonic()
        how.tell(0, 1)
        try:
            _check_usable(entry, self.look)
            outcome: Outcome = entry({name: self._offer(name, recipe, how) for name in entry.asks}, **options)
        except (BadData, Unsupported) as reason:
            return str(reason), 0.0
        return outcome, round(time.monotonic() - begun, 3)

    def _offer(self, name: str, recipe: Recipe, how: How) -> Any:
        if name == "how":
            return how
        if name == "find":
            return self.look.finder(recipe)
        if name == "rng":  # each check draws its own, so that leaving one out changes no other
            return np.random.default_rng([self.look.seed, int(recipe.key, 16)])
        return getattr(self.look, name)


@dataclass
class _Whole:
    """The audit as it grows."""

    look: Look
    recipes: Sequence[Recipe]
    entries: Sequence[Entry]
    notes: tuple[str, ...]
    limit: int
    runs: list[CheckRun] = field(default_factory=list)
    found: dict[int, tuple[Finding, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pairs = zip(self.recipes, self.entries, strict=True)
        self.runs = [CheckRun(recipe, str(entry.facts["title"]), "waiting") for recipe, entry in pairs]

    def keep(self, number: int, taken: Taken) -> None:
        """What one check came to."""
        outcome, seconds = taken
        if isinstance(outcome, str):
            self.runs[number] = replace(self.runs[number], state="left out", says=outcome)
            return
        self.found[number] = outcome.findings
        n = len(outcome.findings)
        self.runs[number] = replace(self.runs[number], state="done", says=outcome.says, findings=n, seconds=seconds)

    def audit(self) -> Audit:
        """What is known so far."""
        ranked = sorted(  # in the order of the checks, whoever was done first
            ((self.entries[number].facts["order"], one) for number in sorted(self.found) for one in self.found[number]),
            key=lambda pair: (SEVERITIES.index(pair[1].severity), pair[0]),
        )
        look = self.look
        settings = (("limit", self.limit), ("method", look.method), ("checks", ", ".join(e.name for e in self.entries)))
        return Audit(
            revision=look.classifier.revision,
            findings=tuple(finding for _, finding in ranked),
            checks=tuple(self.runs),
            examples=len(look.examples),
            training=len(look.train),
            notes=self.notes,
            recipe=Recipe("checks", "audit", settings, look.seed),
        )


def _check_usable(entry: Entry, look: Look) -> None:
    """Refuse, in words, what this model or these examples cannot serve."""
    if entry.needs - look.classifier.capabilities:
        raise Unsupported("It looks inside the model, and this one only answers.")
    on = entry.facts.get("on", "any")
    if on == "pair" and not look.pairs:
        raise Unsupported("It is about pairs of texts, and these are single texts.")
    if on == "single" and look.pairs:
        raise Unsupported("It is about single texts, and these are pairs.")
    if entry.facts.get("trained") and not look.train:
        raise Unsupported("It compares with the training examples, and they are not known: give them as train.")
    known = int((look.given >= 0).sum())
    if entry.facts.get("labelled") and known < FEWEST:
        raise Unsupported(f"It takes {FEWEST} examples with a label or more, and there are {known}.")


def _notes(look: Look, given: int) -> tuple[str, ...]:
    """What must be known to read the audit."""
    told = []
    if given > len(look.examples):
        told.append(f"Of {given:,} examples {len(look.examples):,} were looked at, drawn by the seed {look.seed}.")
    strange = {str(e.label) for e in look.examples if e.label is not None} - set(look.classifier.labels)
    if strange:
        told.append(
            f"The label {sorted(strange)[0]!r} is not one of the model's ({', '.join(look.classifier.labels[:10])}): "
            "examples with it count as unlabelled. Say which is which when reading the data."
        )
    known = {example.text_hash for example in look.train}
    if known and all(example.text_hash in known for example in look.examples):
        told.append(
            "All of these examples are among the training examples: the model knows them, and looks better than it is."
        )
    return tuple(told)
