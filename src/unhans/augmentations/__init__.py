"""Augmentations: a training text said otherwise, so that it counts for more than once.

`augment` is the front door. A method is one file with one function that **proposes** rewritten texts, best or drawn
first, as many as it can; the front door takes those that differ from the text, from each other and from any text that
is to be tested on, puts the label of the text on them, and has the label checked if that is asked for. The law tests
run on every method.

Nothing here knows what a text means: a copy may well no longer deserve its label. See docs/augmentations.md.

Facts of a method: `single_texts=True` says that it makes no sense for pairs; `installed` is a function that says what
of this machine is missing; `opens=("model",)` names options that say which folder or model to open, which nobody may
set from a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from unhans.augmentations._alike import ALIKE, Seen
from unhans.augmentations._checks import by_language_model, by_model
from unhans.errors import BadData, BadOption, Cancelled
from unhans.feedback import MOST_COPIES
from unhans.present import progress_bars
from unhans.registry import Entry, Registry
from unhans.types import Copy, Example, Recipe

if TYPE_CHECKING:  # models take seconds to import, and copies by WordNet need none
    from unhans.language_model import LanguageModel
    from unhans.model import Classifier
    from unhans.scoring import Progress

__all__ = ["COPIES_PER_POINT", "DEFAULT", "MOST", "Check", "Seen", "augment", "augmentation", "available", "recipe_of"]

Check = Literal["none", "model", "language_model"]
Parts = tuple[str, ...]
"""A rewritten text, or a text and its pair."""

augmentation = Registry(
    "augmentations",
    offers=(
        "examples",
        "wanted",  # how many copies are sought of each; more may be proposed, for some will be dropped
        "rngs",  # one generator of random numbers for each example
        "language_model",
        "cancelled",
    ),
    package="unhans.augmentations",
)
DEFAULT = "synonyms"
COPIES_PER_POINT = 10  # of a training example for each point of similarity that people give it (HILDIF, §3)
MOST = MOST_COPIES  # of one example
_AT_ONCE = 32  # examples that are worked on together: enough to fill batches, few enough to show progress
_PATIENCE = 25  # proposals in a row that are too much like others before a method is taken to have no more


def augment(
    examples: Iterable[Example],
    copies: int | Mapping[str, int],
    *,
    method: str = DEFAULT,
    language_model: LanguageModel | None = None,
    classifier: Classifier | None = None,
    check: Check = "none",
    tested: Iterable[Example] | Seen = (),
    alike: float = ALIKE,
    seed: int = 0,
    show_progress: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    **options: Any,
) -> list[Copy]:
    """Up to so many copies of each example, in the order of the examples, under the label that the example has.

    `copies` is one number for all, or one for each by id; examples that it does not name get none. There may be fewer:
    copies that are the text again, or another copy, or one of the `tested` texts, are left out, also where they only
    look alike (`alike`: the share of their three-letter runs that both have, from which on they count as the same).
    Who calls often makes a `Seen` of the tested texts once, and gives that.

    `check` says how sure it is that the label still holds (`Copy.label_kept`): "model" by how probable the classifier
    finds it for the copy, against the text; "language_model" by how well the new words fit in, against the old ones.
    It only reports; nothing is left out for it.
    """
    entry = augmentation[method]
    given = list(examples)
    numbers = _numbers(given, copies)
    recipe = recipe_of(entry, options, check, seed)
    check_usable(entry, given, check, language_model=language_model, classifier=classifier)
    if not 0 < alike <= 1:
        raise BadOption(f"alike lies between 0 and 1, and is not {alike:g}.")
    taboo = tested if isinstance(tested, Seen) else Seen(alike, tested)
    found: list[Copy] = []
    with ExitStack() as stack:
        tell = progress or (stack.enter_context(progress_bars())("Making copies") if show_progress else None)
        todo = [(example, n) for example, n in zip(given, numbers, strict=True) if n]
        for first in range(0, len(todo), _AT_ONCE):
            some = todo[first : first + _AT_ONCE]
            _stop_if(cancelled, first, len(todo))
            offered = {
                "examples": [example for example, _ in some],
                "wanted": [n for _, n in some],
                "rngs": [_generator(seed, example) for example, _ in some],
                "language_model": language_model,
                "cancelled": cancelled,
            }
            made = entry(offered, **options)
            pairs = []
            for (example, n), proposals in zip(some, made, strict=True):
                _stop_if(cancelled, first, len(todo))
                pairs += [
                    (example, copy) for copy in _copies(example, _different(example, proposals, n, taboo), recipe)
                ]
            told = _kept(check, [(e, copy.example) for e, copy in pairs], classifier, language_model, cancelled)
            found += [replace(copy, label_kept=kept) for (_, copy), kept in zip(pairs, told, strict=True)]
            if tell is not None:
                tell(first + len(some), len(todo))
    return found


def available(entry: Entry) -> str:
    """Nothing if a method can be used on this machine, or else the sentence that says what to install."""
    missing: Callable[[], str] | None = entry.facts.get("installed")
    return missing() if missing is not None else ""


def check_usable(
    entry: Entry,
    examples: Iterable[Example] = (),
    check: str = "none",
    *,
    language_model: object = None,
    classifier: Classifier | None = None,
) -> None:
    """Refuse, with the way out, a method that this call or these texts cannot serve."""
    if check not in get_args(Check):
        raise BadOption(f"check must be one of {', '.join(get_args(Check))}, not {check!r}.")
    if not language_model and (who := entry.name if "language_model" in entry.asks else _asks_for(check)):
        raise BadOption(
            f"{who} needs language_model=, a masked language model: LanguageModel.open(folder or id), or "
            "LanguageModel.fit(texts) to train one on your own texts."
        )
    if check == "model" and classifier is None:
        raise BadOption('check="model" needs classifier=, the model that is to say whether the label still holds.')
    labels = {example.label for example in examples}
    if classifier is not None and check == "model" and (strange := labels - {None, *classifier.labels}):
        raise BadData(f"A text has the label {min(map(str, strange))!r}, which the model lacks.")
    if entry.facts.get("single_texts") and any(example.pair is not None for example in examples):
        others = [other.name for other in augmentation if not other.facts.get("single_texts")]
        raise BadOption(
            f"{entry.name} is for single texts: what it does to one text of a pair can turn round what the two have to "
            f"do with each other. For pairs there is: {', '.join(others)}."
        )


def recipe_of(entry: Entry, options: Mapping[str, Any], check: str, seed: int) -> Recipe:
    """What is run: the method's recipe, and how the label is checked."""
    own = entry.recipe(options, seed)
    return Recipe(own.family, own.name, (*own.options, ("check", check)), own.seed)


def _asks_for(check: str) -> str:
    return 'check="language_model"' if check == "language_model" else ""


def _numbers(examples: Sequence[Example], copies: int | Mapping[str, int]) -> list[int]:
    """How many copies of each example; what cannot be meant is refused."""
    ids = {example.id for example in examples}
    if len(ids) < len(examples):
        raise BadOption("Two of the examples have the same id; their copies could not be told apart.")
    if isinstance(copies, Mapping):
        if unknown := next((id_ for id_ in copies if id_ not in ids), None):
            raise BadOption(f"There is no example with the id {unknown!r} among those given.")
        found = [copies.get(example.id, 0) for example in examples]
    else:
        found = [copies] * len(examples)
    if wrong := next((n for n in found if not 0 <= n <= MOST), None):
        raise BadOption(f"An example gets 0 to {MOST:,} copies, not {wrong:,}.")
    for example, n in zip(examples, found, strict=True):
        if n and example.label is None:
            raise BadData(f"The example {example.id!r} has no label that its copies could keep.")
    return found


def _generator(seed: int, example: Example) -> np.random.Generator:
    """A generator of the text's own, so that neither order nor company changes what is drawn for it."""
    return np.random.default_rng([seed, int(example.text_hash, 16)])


def _different(example: Example, proposals: Iterable[Parts], n: int, taboo: Seen) -> Iterator[Parts]:
    """The first n proposals that are neither the text, nor another copy, nor a text that is to be tested on."""
    own = Seen(taboo.alike, [example])
    idle = taken = 0
    for parts in proposals:
        emptied = any(was.strip() and not part.strip() for was, part in zip(example.parts, parts, strict=True))
        if emptied or own.has(parts) or taboo.has(parts):
            idle += 1
            if idle >= _PATIENCE:
                return
            continue
        own.add(parts)
        yield parts
        idle, taken = 0, taken + 1
        if taken == n:
            return


def _copies(example: Example, made: Iterable[Parts], recipe: Recipe) -> Iterator[Copy]:
    for text, *pair in made:
        yield Copy(example.id, text, pair[0] if pair else None, str(example.label), recipe)


def _kept(
    check: str,
    pairs: Sequence[tuple[Example, Example]],
    classifier: Classifier | None,
    language_model: LanguageModel | None,
    cancelled: Callable[[], bool] | None,
) -> Sequence[float | None]:
    """What a check says of the label of each copy."""
    if check == "model" and classifier is not None:
        return by_model(classifier, pairs, cancelled)
    if check == "language_model" and language_model is not None:
        return by_language_model(language_model, pairs, cancelled)
    return [None] * len(pairs)


def _stop_if(cancelled: Callable[[], bool] | None, done: int, of: int) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled(f"Stopped after copies of {done:,} of {of:,} examples.")
