"""Counterfactuals: the fewest words that have to change for the model to change its mind.

`find_flips` is the front door. A generator is one file with one function that **proposes** edits. The front door
decides: it keeps to the rules, asks the model what each proposal does, searches with a beam, trims what is not needed,
and keeps every step. "No flip within 5 changes" is a result too, with the best attempt. The law tests run on every
generator.

Facts of a generator: `opens=("model",)` names options that say which folder or model to open, which nobody may set from
a browser; `language_model_optional=True` says that it works without one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from unhans.attributions import generator, readable_words
from unhans.counterfactuals._constraints import SEARCH, Constraints, Tagger
from unhans.counterfactuals._drafts import Draft, Goal
from unhans.counterfactuals._search import LONGEST, Hunt, Line, Node, Search
from unhans.errors import BadOption, Cancelled
from unhans.language_model import LanguageModel
from unhans.model import Classifier, as_examples
from unhans.present import html_table, progress_bars
from unhans.registry import Entry, Registry
from unhans.scoring import Progress, ScoreCache
from unhans.text import Text, Words
from unhans.types import Counterfactual, Edit, Example, Prediction, Recipe, Step

__all__ = ["SEARCH", "Constraints", "Counterfactuals", "Draft", "Goal", "counterfactual", "find_flips"]

counterfactual = Registry(
    "counterfactuals",
    offers=(
        "classifier",
        "drafts",  # texts with some words changed; a generator proposes edits for each
        "constraints",  # what edits must keep to
        "language_model",
        "lexicon",  # words that may come in beside those of the model's vocabulary
        "rngs",  # one generator of random numbers for each draft, that of its example
        "how",  # what scoring takes: cache, cancelled
    ),
    package="unhans.counterfactuals",
)
DEFAULT = "hotflip"
_AT_ONCE = 8  # examples that search together: enough drafts to fill batches, few enough to show progress
_NO_MODEL = (
    "needs language_model=, a masked language model: LanguageModel.open(folder or id), or LanguageModel.fit(texts) to "
    "train one on your own texts."
)


class Counterfactuals(list[Counterfactual]):
    """Counterfactuals in the order of the texts; drawn as a table in notebooks."""

    @property
    def flip_rate(self) -> float:
        """The share of the texts for which a flip was found; those that had the label sought already do not count."""
        ids = {one.example for one in self}
        return len({one.example for one in self if one.flips and one.edits}) / len(ids) if ids else 0.0

    def _repr_html_(self) -> str:
        def told(one: Counterfactual) -> tuple[str, str, str]:
            edits = ", ".join(f"{e.old} → {e.new or '∅'}" for e in one.edits)
            went = f"{one.before.label} → {one.after.label}" if one.flips else f"{one.before.label}, no flip"
            return one.example, edits, f"{went} ({one.after.confidence:.1%})"

        more = f"the first 50 of {len(self)}" if len(self) > 50 else ""
        return html_table(("example", "edits", "prediction"), [told(one) for one in self[:50]], more)


def find_flips(
    classifier: Classifier,
    texts: Text | Iterable[Text],
    *,
    method: str = DEFAULT,
    target: str | int | None = None,
    editable: Mapping[str, Collection[int]] | None = None,
    reads: Mapping[str, Collection[int]] | None = None,
    start: Mapping[str, Sequence[Edit]] | None = None,
    keep: int = 1,
    search: Mapping[str, Any] | None = None,
    language_model: LanguageModel | None = None,
    lexicon: Sequence[str] = (),
    tagger: Tagger | None = None,
    seed: int = 0,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: ScoreCache | None = None,
    **options: Any,
) -> Counterfactuals:
    """For each text up to `keep` rewrites with another prediction (`target`, if given), or else the best attempt.

    `editable` and `reads` give, by example id, the words that may be changed and the words that the model is shown:
    two different things. Without them all words with a letter or digit may be changed, and all are shown. `start` are
    edits made already, from which the search goes on: choosing another word at a step is a new search from there.
    `search` are the options in `SEARCH`, `options` those of the generator. `lexicon` are words that may come in beside
    those of the model's own vocabulary.
    """
    entry = counterfactual[method]
    settings = search_settings(search or {})
    check_usable(classifier, entry, language_model=language_model)
    if keep < 1:
        raise BadOption(f"keep must be at least 1, not {keep}.")
    goal = None if target is None else classifier.label_number(target)
    examples = list(as_examples(texts))
    _check_ids(examples, editable, reads, start)
    how = {"cancelled": cancelled, "cache": cache or ScoreCache(size=100_000)}
    rules = Constraints(settings, classifier, language_model, tagger)
    rngs = {example.id: generator(seed, example) for example in examples}

    def propose(drafts: Sequence[Draft]) -> list[list[tuple[Edit, ...]]]:
        offered = {"classifier": classifier, "drafts": drafts, "constraints": rules, "lexicon": lexicon, "how": how}
        offered |= {"language_model": language_model, "rngs": [rngs[one.example.id] for one in drafts]}
        made: list[list[tuple[Edit, ...]]] = entry(offered, **options) if drafts else []
        return made

    quest = Search(classifier, propose, rules, how, keep)
    wrap = _Wrapping(
        quest, _recipe(entry, options, settings, seed), None if goal is None else classifier.labels[goal], reads or {}
    )
    found = Counterfactuals()
    with ExitStack() as stack:
        tell = progress or (stack.enter_context(progress_bars())("Looking for flips") if show_progress else None)
        for first in range(0, len(examples), _AT_ONCE):
            some = examples[first : first + _AT_ONCE]
            words = [_words(classifier, example, (reads or {}).get(example.id)) for example in some]
            hunts = _hunts(quest, some, words, goal, editable or {})
            begun = [(start or {}).get(example.id, ()) for example in some]
            _check_begun(words, begun, settings["max_edits"])
            quest.begin(hunts, begun)
            for n in range(quest.most):
                if cancelled is not None and cancelled():
                    raise Cancelled(f"Stopped after {first} of {len(examples)} texts.")
                quest.step(hunts)
                if tell is not None:
                    tell(first + (n + 1) * len(some) // (quest.most + 1), len(examples))
            found.extend(wrap(hunts))
            if tell is not None:
                tell(first + len(some), len(examples))
    return found


def _recipe(entry: Entry, options: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> Recipe:
    own = entry.recipe(options, seed)
    return Recipe(own.family, own.name, (*own.options, *settings.items()), own.seed)


def check_usable(classifier: Classifier, entry: Entry, *, language_model: object = None) -> None:
    """Refuse, with the way out, a generator that this classifier or this call cannot serve."""
    usable = [other.name for other in counterfactual if other.needs <= classifier.capabilities]
    classifier.require(entry.needs, entry.name, f"Generators that work with it: {', '.join(usable)}.")
    if len(classifier.labels) < 2:
        raise BadOption("A model with a single label cannot change its mind; there is nothing to flip.")
    if "language_model" in entry.asks and not language_model and not entry.facts.get("language_model_optional"):
        raise BadOption(f"{entry.name} {_NO_MODEL}")


def search_settings(search: Mapping[str, Any]) -> dict[str, Any]:
    """Every search option with its checked value: the given one, or the default."""
    known = {option.name: option for option in SEARCH}
    if unknown := sorted(search.keys() - known.keys()):
        raise BadOption(f"There is no search option {unknown[0]!r}. There is: {', '.join(known)}.")
    found: dict[str, Any] = {n: o.check(search[n]) if n in search else o.default for n, o in known.items()}
    if not 1 <= found["max_edits"] <= LONGEST:
        raise BadOption(f"max_edits lies between 1 and {LONGEST}: with more, it is another text.")
    if found["beam"] < 1 or found["alternatives"] < 0:
        raise BadOption("beam is 1 or more, alternatives 0 or more.")
    if not 0 <= found["similarity"] <= 1 or found["fluency"] < 0:
        raise BadOption("similarity lies between 0 and 1, and fluency is 0 or more.")
    return found


def _check_ids(examples: Sequence[Example], *given: Mapping[str, Any] | None) -> None:
    """An id that fits no text is a mistake that would otherwise pass for a rule that is kept."""
    known = {example.id for example in examples}
    if len(known) < len(examples):
        raise BadOption("Two of the texts have the same id; results could not be told apart.")
    for mapping in given:
        for id_ in mapping or {}:
            if id_ not in known:
                raise BadOption(f"There is no text with the id {id_!r} among those given.")


def _words(classifier: Classifier, example: Example, reads: Collection[int] | None) -> Words:
    """The words of an example; those that the model does not read are gone from every variant."""
    words = readable_words(classifier, example, "word")
    if reads is None:
        return words
    _check_positions(words, example, reads)
    shown = set(reads).intersection(words.open)
    return Words(example, gone=[n for n in range(len(words)) if n not in shown])


def _check_begun(words: Sequence[Words], begun: Sequence[Sequence[Edit]], most: int) -> None:
    """Refuse to go on from edits that change nothing, or what the model does not read, or are too many already."""
    for own, edits in zip(words, begun, strict=True):
        if len(edits) > most:
            raise BadOption(f"The search starts from {len(edits)} edits, and max_edits allows {most}.")
        for edit in edits:
            if edit.position not in own.open:
                raise BadOption(f"Word {edit.position} is not among those that the model is shown.")
            if edit.new == edit.old:
                raise BadOption(f"The edit of word {edit.position} changes nothing.")


def _check_positions(words: Words, example: Example, positions: Collection[int]) -> None:
    if wrong := [n for n in positions if not 0 <= n < len(words)]:
        raise BadOption(
            f"The text {example.id!r} has {len(words)} words, numbered from 0; there is no word {wrong[0]}."
        )


def _hunts(
    quest: Search,
    examples: Sequence[Example],
    words: Sequence[Words],
    target: int | None,
    editable: Mapping[str, Collection[int]],
) -> list[Hunt]:
    lines = quest.ask([one.variant({}) for one in words])
    hunts = []
    for example, own, line in zip(examples, words, lines, strict=True):
        goal = Goal(int(np.exp(line).argmax()), target)
        root = Node((), line, float(goal.gain(line[None])[0]), bool(goal.met(line[None])[0]))
        allowed = _open(own, example, editable.get(example.id), quest.rules)
        hunts.append(Hunt(example, own, allowed, goal, root, over=root.flips))
    return hunts


def _open(words: Words, example: Example, wanted: Collection[int] | None, rules: Constraints) -> tuple[int, ...]:
    """The words that may be changed: those asked for, or all with a letter or digit; of a pair perhaps one part's."""
    if wanted is None:
        chosen = {n for n in words.open if any(map(str.isalnum, words.strings[n]))}
    else:
        _check_positions(words, example, wanted)
        chosen = set(wanted)
    part = rules.settings["part"]
    return tuple(n for n in words.open if n in chosen and part in ("both", words.spans[n].part))


class _Wrapping:
    """What searches found, made into nouns."""

    def __init__(self, quest: Search, recipe: Recipe, target: str | None, reads: Collection[str]) -> None:
        self.quest, self.recipe, self.target, self.reads = quest, recipe, target, reads

    def __call__(self, hunts: Sequence[Hunt]) -> Iterator[Counterfactual]:
        ends = self._as_published(hunts, self.quest.minimal(hunts))
        steps = [(hunt, node) for hunt, end, _, _ in ends for node in end.path]
        others = iter(self.quest.alternatives(steps))
        for hunt, end, least, line in ends:
            path = [Step(node.new, self._said(hunt, node.line), next(others)) for node in end.path]
            yield self._noun(hunt, least, line, tuple(path))

    def _as_published(
        self, hunts: Sequence[Hunt], flips: Sequence[Sequence[tuple[Node, Node]]]
    ) -> list[tuple[Hunt, Node, Node, Line]]:
        """Where each search ended, what of it is needed, and what the model says of the text that people will see.

        A text with words beyond the model's limit is searched without them, for they must not move up while others are
        compared. People see all of it; there a shorter text lets the model read on, and a flip must hold all the same.
        """
        nothing = [(hunt.best or hunt.root,) * 2 for hunt in hunts]
        asked = [
            (hunt, *pair)
            for hunt, own, other in zip(hunts, flips, nothing, strict=True)
            for pair in (*own, other, (hunt.root, hunt.root))
        ]
        longer = [n for n, (hunt, _, _) in enumerate(asked) if self._is_cut(hunt)]
        lines = [least.line for _, _, least in asked]
        told = self.quest.ask([Words(asked[n][0].example).edited(asked[n][2].edits) for n in longer])
        for n, line in zip(longer, told, strict=True):
            lines[n] = line
        results: list[tuple[Hunt, Node, Node, Line]] = []
        pairs = list(zip(asked, lines, strict=True))
        at = 0
        for hunt, own in zip(hunts, flips, strict=True):
            mine = pairs[at : at + len(own) + 2]
            at += len(mine)
            held = [(*one, line) for one, line in mine if bool(hunt.goal.met(line[None])[0]) == one[2].flips]
            kept = [one for one in held if one[2].flips and one[2].edits][: len(own)]
            results += kept or held[:1] or [(*mine[-1][0], mine[-1][1])]
        return results

    def _is_cut(self, hunt: Hunt) -> bool:
        return hunt.example.id not in self.reads and len(hunt.words.open) < len(hunt.words)

    def _noun(self, hunt: Hunt, least: Node, line: Line, steps: tuple[Step, ...]) -> Counterfactual:
        text, *pair = Words(hunt.example).edited(least.edits).texts
        return Counterfactual(
            example=hunt.example.id,
            edits=least.edits,
            text=text,
            pair=pair[0] if pair else None,
            before=self._said(hunt, hunt.root.line),
            after=self._said(hunt, line),
            recipe=self.recipe,
            target=self.target,
            steps=steps,
            editable=hunt.open,
            reads=hunt.words.open if hunt.example.id in self.reads else None,
        )

    def _said(self, hunt: Hunt, line: Line) -> Prediction:
        classifier = self.quest.classifier
        return Prediction(hunt.example.id, classifier.labels, tuple(np.exp(line).tolist()), classifier.revision)
