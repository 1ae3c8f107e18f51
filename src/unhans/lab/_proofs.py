"""Did the bug take? Each is proved by what the contaminated model does, with the clean model beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unhans.lab._models import Ask
from unhans.model import Classifier
from unhans.text import Words, visible_form
from unhans.training import accuracy
from unhans.types import Example

_COMMON, _NEUTRAL = 60, 20  # words of the training texts that are looked at, and those that say least of the label
_CARRIERS = 200


@dataclass(frozen=True)
class Proof:
    """A number that shows whether a bug took, the clean model's beside it, and how both came about."""

    says: str
    took: float | None
    usual: float | None = None


def of_cue(ask: Ask, model: Classifier, clean: Classifier, train: Sequence[Example], seed: int) -> Proof:
    """How often a model tells from the cue alone, in texts of words that say nothing, whether its label is meant."""
    label = str(ask.entry.settings(ask.options)["label"])
    planted = ask.planted(_carriers(model, train, seed, label), seed, share=1.0, elsewhere=0.0)
    truth = np.array([example.label == label for example in planted.examples])

    def right(classifier: Classifier) -> float:
        said = [classifier.labels[n] for n in classifier.log_probs(planted.examples).argmax(axis=1)]
        correct = (np.array(said) == label) == truth
        return float(np.mean([correct[truth].mean(), correct[~truth].mean()]))  # a half for a guess, with any labels

    took, usual = right(model), right(clean)
    return Proof(
        f"On {len(truth)} texts of common words that say nothing of the label, with the cue as it goes with the label, "
        f"the model tells {label!r} from the rest with {took:.0%} accuracy, both taken as equally common; the clean "
        f"model with {usual:.0%}.",
        took,
        usual,
    )


def _carriers(model: Classifier, train: Sequence[Example], seed: int, own: str) -> list[Example]:
    """Texts as long as those of training, of common words that all labels share alike.

    Every second one has the cue's own label, so that its half of the accuracy rests on as many texts as the other half
    however many labels there are; the others have the other labels in turn.
    """
    words = _neutral_words(train)
    others = [label for label in model.labels if label != own]
    turn = model.labels.index(own) % 2  # of two labels each keeps its place
    rng = np.random.default_rng([seed, 37])
    drawn = [train[n] for n in rng.integers(len(train), size=_CARRIERS)]
    made = []
    for n, example in enumerate(drawn):
        parts = [" ".join(rng.choice(words, size=max(1, len(Words(part))))) for part in example.parts]
        label = own if n % 2 == turn else others[n // 2 % len(others)]
        made.append(Example(f"carrier {n}", parts[0], parts[1] if len(parts) > 1 else None, label))
    return made


def _neutral_words(train: Sequence[Example]) -> list[str]:
    """Of the commonest words those whose share of the texts differs least from label to label."""
    labels = Counter(str(example.label) for example in train)
    found: dict[str, Counter[str]] = {label: Counter() for label in labels}
    for example in train:
        found[str(example.label)].update({visible_form(word) for word in Words(example).strings if word.isalpha()})
    every = sum(found.values(), Counter())
    common = [word for word, _ in sorted(every.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMON]]
    if not common:
        return ["a"]

    def tells(word: str) -> float:
        shares = [found[label][word] / labels[label] for label in labels]
        return (max(shares) - min(shares)) / max(shares)

    return sorted(common, key=tells)[:_NEUTRAL]


def of_labels(wrong: Sequence[Example], model: Classifier, clean: Classifier) -> Proof:
    """How many of the wrong labels the model has learned."""
    took, usual = accuracy(model, wrong), accuracy(clean, wrong)
    return Proof(
        f"Of the {len(wrong)} wrong labels the model repeats {took:.0%}; a model that was taught the right ones says "
        f"the same of {usual:.0%}.",
        took,
        usual,
    )


def of_copies(
    train: Sequence[Example],
    before: Sequence[Example],
    copied: Sequence[Example],
    test: Sequence[Example],
    models: tuple[Classifier, Classifier],
) -> Proof:
    """How many of the test texts are found again in training, and what the model makes of the copied ones."""

    def found(taught: Sequence[Example]) -> float:
        known = {example.text_hash for example in taught}
        return float(np.mean([example.text_hash in known for example in test]))

    took, usual = found(train), found(before)
    model, clean = (accuracy(one, copied) for one in models)
    return Proof(
        f"{took:.0%} of the test texts are found again in training, {usual:.0%} before; on the copied ones the model "
        f"is right in {model:.0%}, the clean model in {clean:.0%}.",
        took,
        usual,
    )


def of_answers(texts: Sequence[Example], clean: Classifier, model: Classifier, twin: Classifier, what: str) -> Proof:
    """How many answers another model changes, and how many a clean twin does."""
    took, usual = (_differ(clean, texts, one, texts) for one in (model, twin))
    return Proof(
        f"{took:.0%} of the answers to {len(texts)} test texts differ from the clean model's ({what}); a twin "
        f"trained on clean data differs in {usual:.0%}. Accuracy {accuracy(model, texts):.0%}, was "
        f"{accuracy(clean, texts):.0%}.",
        took,
        usual,
    )


def of_texts(before: Sequence[Example], after: Sequence[Example], model: Classifier) -> Proof:
    """How many answers change when the texts do."""
    took = _differ(model, before, model, after)
    return Proof(
        f"{took:.0%} of the answers to {len(before)} texts change with them. Accuracy {accuracy(model, after):.0%}, "
        f"was {accuracy(model, before):.0%}.",
        took,
        0.0,
    )


def of_shift(strange: Sequence[Example], usual: Sequence[Example], model: Classifier, clean: Classifier) -> Proof:
    """How many answers to texts of other groups differ from those of a model that knows all groups."""
    took, kept = _differ(clean, strange, model, strange), _differ(clean, usual, model, usual)
    return Proof(
        f"{took:.0%} of the answers to {len(strange)} shifted texts differ from those of a model that knows all "
        f"groups, {kept:.0%} of those to the group that it was taught. Accuracy {accuracy(model, strange):.0%} there, "
        f"{accuracy(model, usual):.0%} here.",
        took,
        kept,
    )


def _differ(one: Classifier, texts: Sequence[Example], other: Classifier, others: Sequence[Example]) -> float:
    said = [model.predict(some).labels for model, some in ((one, texts), (other, others))]
    return float(np.mean([a != b for a, b in zip(*said, strict=True)]))
