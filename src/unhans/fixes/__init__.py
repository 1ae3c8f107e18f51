"""Fixes: how a model is taught what people said of it.

`mend` is the front door: it settles what people said, finds the words in the training texts that their votes are about,
lets one fix train a clone of the classifier, and says what was used. The classifier given is left as it is; training
starts from its weights. A fix is one function; the law tests run on every one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import torch

from unhans.augmentations import Seen
from unhans.errors import BadData, BadOption
from unhans.feedback import Settled, SettledFlip, SettledNeighbour, settle, settle_flips, settle_neighbours
from unhans.model import Classifier, TransformerClassifier
from unhans.registry import Option, Registry
from unhans.text import Words, visible_form
from unhans.training import Epoch, ExtraLoss, Schedule, Vary, Watch, as_far_as, fit
from unhans.types import Copy, Counterfactual, Example, Feedback, Recipe, Relabel, WordVote

On = Literal["all", "correct", "incorrect"]
LowerOn = Annotated[On, "texts a lowering vote everywhere touches, by whether they are predicted right (XMD: all)"]
RaiseOn = Annotated[On, "texts a raising vote everywhere touches, by whether they are predicted right (XMD: correct)"]
Insert = Annotated[
    float, "part of the other texts into which a lowered word is put, for the votes' loss alone (XMD: 0)"
]
Strength = Annotated[float, "weight of what the votes ask for against the task; 0 is plain training"]

fix = Registry(
    "fixes",
    offers=(
        "classifier",  # the one to start from
        "train",  # examples that votes touch, and those that are replayed, with the labels that people say are right
        "aims",  # what the votes ask of which word
        "rated",  # flips of the training examples, with what people's ratings of them come to
        "copied",  # training examples that people found similar to others, with their copies
        "train_on",  # the training loop with all its settings
        "rng",
    ),
    package="unhans.fixes",
)
_REGISTRY = fix  # under a name that the parameter of `mend` does not hide
DEFAULT = "occlusion_regularisation"
TRAINING = (
    Option("epochs", "int", 3, help="passes over the training texts; 0 trains nothing"),
    Option("learning_rate", "float", 2e-5, help="about 2e-5 for pretrained models, more for small ones from scratch"),
    Option("batch_size", "int", 32, help="texts a step"),
    Option("replay", "float", 1.0, help="part of the texts that no vote touches to train on too, against forgetting"),
    Option(
        "patience", "int", 2, help="epochs without a better one on held-out texts before stopping; 0: keep the last"
    ),
    Option(
        "tolerance",
        "float",
        1.0,
        help="accuracy on held-out texts that may be lost; the way from the old weights to the new is gone as far as "
        "that allows; 1: all the way",
    ),
    Option("lora", "int", 0, help="rank of low-rank adapters, for large models; 0 trains all weights"),
)
_REMEMBERED = 100_000  # examples whose aims are kept, for every epoch asks again
_HELD_OUT, _FEWEST = 0.1, 20  # share of the training texts that chooses the epoch; fewer texts choose nothing
_WANTED = {
    "word_vote": "votes on words: say of some words that they should count more or less",
    "relabel": "corrected labels: say of some examples what the right label is",
    "flip_rating": "ratings of flips: say of some whether a person could have written them, and what their label is",
    "neighbour_rating": "ratings of neighbours: say of some training examples how similar they are to the texts that "
    "they stand behind",
}


@dataclass(frozen=True, slots=True)
class Aim:
    """What the votes ask of one word of one text: to count for nothing for a label, or for as much as any."""

    position: int
    label: int
    wants: Literal["lower", "raise"]


@dataclass(frozen=True)
class Aims:
    """What settled votes ask of the words of any example."""

    labels: tuple[str, ...]
    votes: tuple[WordVote, ...]
    right: Callable[[], Mapping[str, bool]]  # example id → whether the classifier given predicts it right
    lower_on: On = "all"
    raise_on: On = "correct"

    def by(self, lower_on: On, raise_on: On) -> Aims:
        """The same votes with other rules about those that are for everywhere."""
        return replace(self, lower_on=lower_on, raise_on=raise_on)

    @cached_property
    def lowered(self) -> tuple[str, ...]:
        """The words that some vote lowers everywhere, in their visible form."""
        return tuple(dict.fromkeys(visible_form(v.word) for v in self.votes if v.vote == "lower" and v.example is None))

    def of(self, example: Example) -> tuple[Aim, ...]:
        """What is asked of the words of an example; a vote on this example overrules one everywhere."""
        if example not in self._known:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[example] = self._find(example)
        return self._known[example]

    @cached_property
    def _known(self) -> dict[Example, tuple[Aim, ...]]:
        return {}

    def _find(self, example: Example) -> tuple[Aim, ...]:
        here = self._here.get(example.id, ())
        if not here and not self._everywhere:
            return ()
        forms = [visible_form(word) for word in Words(example).strings]
        found: dict[tuple[int, int], Aim] = {}
        for form in dict.fromkeys(forms):
            votes = [vote for vote in self._everywhere.get(form, ()) if self._touches(vote, example)]
            for vote in votes:
                self._add(found, vote, [n for n, other in enumerate(forms) if other == form])
        for vote in here:
            own = visible_form(vote.word)
            at = range(len(forms)) if vote.position is None else [vote.position]
            # a position that now has another word is a vote on another text
            self._add(found, vote, [n for n in at if n < len(forms) and forms[n] == own])
        return tuple(found[key] for key in sorted(found))

    def borrowed(self, examples: Sequence[Example], share: float) -> list[Example]:
        """Some of the examples with a lowered word put in: what is to count for nothing counts for nothing there too.

        The data may never show a shortcut beside the other label, and a vote is for everywhere. Draws from torch's
        generator, which is seeded for every training step.
        """
        if not self.lowered or not share:
            return []
        chosen = [e for e in examples if float(torch.rand(())) < share and not self.positions(e, "lower")]
        drawn = torch.randint(len(self.lowered), (len(chosen),)).tolist()
        return [with_word(e, self.lowered[n], float(torch.rand(()))) for e, n in zip(chosen, drawn, strict=True)]

    def positions(self, example: Example, wants: Literal["lower", "raise"]) -> list[int]:
        """The words of an example that are to count less, or more, for whichever label."""
        return sorted({aim.position for aim in self.of(example) if aim.wants == wants})

    @cached_property
    def _everywhere(self) -> dict[str, list[WordVote]]:
        found: dict[str, list[WordVote]] = defaultdict(list)
        for vote in self.votes:
            if vote.example is None:
                found[visible_form(vote.word)].append(vote)
        return found

    @cached_property
    def _here(self) -> dict[str, list[WordVote]]:
        found: dict[str, list[WordVote]] = defaultdict(list)
        for vote in self.votes:
            if vote.example is not None:
                found[vote.example].append(vote)
        return found

    def _touches(self, vote: WordVote, example: Example) -> bool:
        rule = self.lower_on if vote.vote == "lower" else self.raise_on
        return rule == "all" or self.right().get(example.id) is (rule == "correct")

    def _add(self, found: dict[tuple[int, int], Aim], vote: WordVote, positions: Sequence[int]) -> None:
        label = self.labels.index(vote.label)
        found.update({(n, label): Aim(n, label, vote.vote) for n in positions})


@dataclass(frozen=True, slots=True)
class Rated:
    """A flip of a training example, and what people said of it."""

    flip: Counterfactual
    said: SettledFlip

    @property
    def ids(self) -> tuple[str, ...]:
        """The feedback behind it."""
        return self.said.ids

    @property
    def example(self) -> Example:
        """The rewritten text, without a label: what the model says of it need not be right."""
        return Example(f"{self.flip.example} {self.flip.id}", self.flip.text, self.flip.pair)


@dataclass(frozen=True, slots=True)
class Copied:
    """A training example that people rated, what they said of it beside each text, and its copies."""

    example: Example
    said: tuple[SettledNeighbour, ...]
    copies: tuple[Copy, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The feedback behind it."""
        return tuple(id_ for one in self.said for id_ in one.ids)


Told = Settled | SettledFlip | SettledNeighbour
"""What people's answers to one question come to."""


class TrainOn(Protocol):
    """The training loop, with schedule, held-out texts, checkpoints and whoever watches already settled."""

    def __call__(
        self,
        classifier: TransformerClassifier,
        train: Sequence[Example],
        *,
        extra_loss: ExtraLoss | None = None,
        vary: Vary | None = None,
        frozen_pieces: Sequence[int] = (),
        one_label: bool = False,
        heeded: Sequence[Rated | Copied] = (),
    ) -> TransformerClassifier:
        """A trained clone; `heeded` are the rated flips, or rated examples with copies, that are among the texts.

        Texts of one label alone are refused, unless `one_label` says that they are meant.
        """


@dataclass(frozen=True)
class Mended:
    """A new classifier, and what made it."""

    classifier: TransformerClassifier
    recipe: Recipe
    epochs: tuple[Epoch, ...]
    used: tuple[str, ...]  # ids of the feedback behind it
    touched: int  # training examples that some of it is about
    share: float = 1.0  # of the way to the trained weights that `tolerance` allowed


def mend(
    classifier: Classifier,
    train: Sequence[Example],
    feedback: Sequence[Feedback],
    *,
    fix: str = DEFAULT,
    flips: Mapping[str, Counterfactual] | Iterable[Counterfactual] = (),
    copies: Iterable[Copy] = (),
    validation: Sequence[Example] | None = None,
    tested: Iterable[Example] = (),
    training: Mapping[str, Any] | None = None,
    seed: int = 0,
    checkpoints: str | Path | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Mended:
    """A classifier that was taught what people said, starting from the weights of the one given, which is unchanged.

    Of the `feedback`, what stands and is settled counts (`feedback.settle`): a tie between people teaches nothing.
    `training` are the options in `TRAINING`, `options` those of the fix. Without `validation`, a tenth of the training
    examples is held out to choose the epoch, and to say how far to go where `tolerance` asks that. There, words that
    are to count less are taken out and put in, so that nothing is chosen for the shortcut it still takes.

    Whatever the fix, training examples have the labels that people say are right, and those that no label fits are
    left out: training on what people corrected would unlearn it.

    `flips` are those that ratings are about; ratings of others are passed over. Only flips of training examples teach:
    those of texts that are held out, or that are not in `train`, would tell the model what it is to be tested on. So
    would flips that are word for word one of the `tested` texts, those that it will be verified on.

    `copies` are those that training examples were given for being similar to texts (`augmentations.augment`). The same
    holds for them: none of a text that is held out, none that is or looks like a tested one.
    """
    entry = _REGISTRY[fix]
    classifier.require({"train", *entry.needs}, entry.name)
    assert isinstance(classifier, TransformerClassifier)  # `train` has made sure
    settings = training_settings(training or {})
    recipe = Recipe("fixes", entry.name, (*entry.settings(options).items(), *settings.items()), seed)
    settled = wanted(feedback, entry.facts["reads"], entry.name)
    relabels = _relabels(classifier, feedback, train)
    labelled = _corrected(train, relabels)
    watch = watch or Watch()
    aims = _aims(classifier, settled, labelled, watch)
    rated = _rated(settled, flips, {example.id for example in labelled})
    alike = _copied(settled, copies, labelled)
    rewritten = {one.flip.example for one in rated} | {one.example.id for one in alike}
    told = {e.id for e in labelled if aims.by("all", "all").of(e)}
    told |= relabels.keys() if "relabel" in entry.facts["reads"] else set()
    touched = told | rewritten
    if not touched:
        raise BadData(
            f"None of the {len(labelled):,} training examples is touched by this feedback. Nothing was trained; vote "
            "on words that occur in them, or rate flips of them, or how similar they are to others."
        )
    rng = np.random.default_rng([seed, 1])
    own, held_out = _divided(labelled, validation, settings, rng, rewritten)
    if settings["tolerance"] < 1 and not held_out:
        raise BadData(
            f"tolerance needs texts to hold out, and of {len(labelled):,} training examples too few are free. Nothing "
            "was trained; give validation texts, or leave tolerance at 1."
        )
    replayed = [e for e in own if e.id in touched or e.id in relabels or rng.random() < settings["replay"]]
    seen = _Watched(watch)
    loop = _Loop(settings, seed, _without_shortcut(held_out, aims, rng), checkpoints, seen.watch, repr(recipe))
    offered = {"classifier": classifier, "train": replayed, "aims": aims}
    tested = list(tested)
    offered |= {"rated": _unseen(rated, held_out, tested), "copied": _teachable(alike, own, held_out, tested)}
    made = entry(offered | {"train_on": loop, "rng": np.random.default_rng([seed, 2])}, **options)
    made, share = loop.tolerated(classifier, made)
    behind = (*(s for s in settled if isinstance(s, Settled)), *relabels.values(), *loop.heeded)
    used = tuple(dict.fromkeys(id_ for one in behind for id_ in one.ids))
    heeded = {one.flip.example if isinstance(one, Rated) else one.example.id for one in loop.heeded}
    return Mended(made, recipe, tuple(seen.epochs), used, len(told | heeded | relabels.keys()), share)


def training_settings(training: Mapping[str, Any]) -> dict[str, Any]:
    """Every training option with its checked value: the given one, or the default."""
    known = {option.name: option for option in TRAINING}
    if unknown := sorted(training.keys() - known.keys()):
        raise BadOption(f"There is no training option {unknown[0]!r}. There is: {', '.join(known)}.")
    found: dict[str, Any] = {
        name: o.check(training[name]) if name in training else o.default for name, o in known.items()
    }
    if not 0 <= found["replay"] <= 1:
        raise BadOption(f"replay must lie between 0 and 1, not {found['replay']}.")
    if found["patience"] < 0 or found["lora"] < 0:
        raise BadOption("patience and lora are 0 or more.")
    if not 0 <= found["tolerance"] <= 1:
        raise BadOption(f"tolerance must lie between 0 and 1, not {found['tolerance']}.")
    return found


def wanted(feedback: Sequence[Feedback], kinds: Sequence[str], who: str) -> list[Told]:
    """What people said that a fix can read, settled; an error if that is nothing."""
    settled, ties = settle(feedback)
    found: list[Told] = [one for one in settled if one.says.kind in kinds]
    found += settle_flips(feedback) if "flip_rating" in kinds else []
    found += settle_neighbours(feedback) if "neighbour_rating" in kinds else []
    if not found:
        tied = f" On {ties} questions as many said one thing as the other." if ties else ""
        raise BadData(f"{who} needs {' or '.join(_WANTED[kind] for kind in kinds)}.{tied} Nothing was trained.")
    return found


def _aims(classifier: Classifier, told: Sequence[Told], train: Sequence[Example], watch: Watch) -> Aims:
    settled = [one for one in told if isinstance(one, Settled)]
    votes = tuple(one.says for one in settled if isinstance(one.says, WordVote))
    if strange := [vote.label for vote in votes if vote.label not in classifier.labels]:
        raise BadData(f"A vote is about the label {strange[0]!r}, which the model lacks.")
    known: dict[str, bool] = {}

    def right() -> Mapping[str, bool]:
        if not known:
            found = classifier.predict(train, cancelled=watch.cancelled)
            known.update((e.id, p.label == e.label) for e, p in zip(train, found, strict=True))
        return known

    return Aims(classifier.labels, votes, right)


def _relabels(classifier: Classifier, feedback: Sequence[Feedback], train: Sequence[Example]) -> dict[str, Settled]:
    """What people say the right label of labelled training examples is, by their ids."""
    known = {example.id for example in train if example.label is not None}
    found = {one.says.example: one for one in settle(feedback)[0] if isinstance(one.says, Relabel)}
    labels = [one.says.label for one in found.values()]
    if strange := [label for label in labels if label is not None and label not in classifier.labels]:
        raise BadData(f"An example was given the label {strange[0]!r}, which the model lacks.")
    return {id_: one for id_, one in found.items() if id_ in known}


def _corrected(train: Sequence[Example], relabels: Mapping[str, Settled]) -> list[Example]:
    """The labelled examples with the labels that people say are right, without those that no label fits."""
    found = (replace(e, label=relabels[e.id].says.label) if e.id in relabels else e for e in train)
    return [example for example in found if example.label is not None]


def _rated(
    settled: Sequence[Told],
    flips: Mapping[str, Counterfactual] | Iterable[Counterfactual],
    train: Collection[str],
) -> list[Rated]:
    """The flips of training examples that people rated; an error if none of the rated flips was given at all."""
    said = [one for one in settled if isinstance(one, SettledFlip)]
    if not said:
        return []
    known = flips if isinstance(flips, Mapping) else {flip.id: flip for flip in flips}
    found = [Rated(known[one.counterfactual], one) for one in said if one.counterfactual in known]
    if not found:
        raise BadData(
            f"The ratings are about {len(said):,} flips, and none of these was given. Nothing was trained; hand in the "
            "flips with flips=."
        )
    return [one for one in found if one.flip.example in train]


def _unseen(rated: Sequence[Rated], held_out: Sequence[Example], tested: Iterable[Example]) -> list[Rated]:
    """Without flips of texts that choose the epoch, and without such that are these very texts, or tested ones."""
    ids, texts = {example.id for example in held_out}, {example.text_hash for example in (*held_out, *tested)}
    return [one for one in rated if one.flip.example not in ids and one.example.text_hash not in texts]


def _copied(settled: Sequence[Told], copies: Iterable[Copy], train: Sequence[Example]) -> list[Copied]:
    """The training examples that people rated, with their copies; an error if none of them has any."""
    said: dict[str, list[SettledNeighbour]] = defaultdict(list)
    for one in settled:
        if isinstance(one, SettledNeighbour):
            said[one.train].append(one)
    of: dict[str, list[Copy]] = defaultdict(list)
    for copy in copies if said else ():
        of[copy.source].append(copy)
    found = [Copied(e, tuple(said[e.id]), tuple(of[e.id])) for e in train if e.id in said]
    if found and not any(one.copies for one in found):
        raise BadData(
            f"People rated {len(found):,} training examples, and none of them has copies. Nothing was trained; make "
            "some with augment, and hand them in with copies=."
        )
    return [one for one in found if one.copies]


def _teachable(
    alike: Sequence[Copied], train: Sequence[Example], held_out: Sequence[Example], tested: Sequence[Example]
) -> list[Copied]:
    """Without copies that would tell what is tested, or that are another text's under another label, or come twice."""
    if not alike:
        return []
    ids, taboo = {example.id for example in held_out}, Seen(examples=[*held_out, *tested])
    labels: dict[str, set[str]] = defaultdict(set)  # that each text has, as a training text or as a copy
    for example in (*train, *(copy.example for one in alike for copy in one.copies)):
        labels[example.text_hash].add(str(example.label))
    there = {example.text_hash for example in train}

    def fits(copy: Copy, example: Example) -> bool:
        hash_ = copy.example.text_hash
        if copy.label != example.label or len(labels[hash_]) > 1 or hash_ in there or taboo.has(copy.example.parts):
            return False
        there.add(hash_)
        return True

    own = [one for one in alike if one.example.id not in ids and not taboo.has(one.example.parts)]
    found = [replace(one, copies=tuple(copy for copy in one.copies if fits(copy, one.example))) for one in own]
    return [one for one in found if one.copies]


def _divided(
    labelled: list[Example],
    validation: Sequence[Example] | None,
    settings: Mapping[str, Any],
    rng: np.random.Generator,
    rewritten: Collection[str],
) -> tuple[list[Example], list[Example]]:
    """Texts to train on, and texts that choose the epoch and how far to go: none if nobody asks, or if they are few.

    A text with rated flips, or copies, is trained on: held out, it would take what people said of it along. Equal texts
    go together: one that is trained on under another id says nothing about an epoch.
    """
    if not settings["patience"] and settings["tolerance"] == 1:
        return labelled, []
    if validation is not None:
        return labelled, [example for example in validation if example.label is not None]
    texts = dict.fromkeys(example.text_hash for example in labelled)
    told = {example.text_hash for example in labelled if example.id in rewritten}
    free = [text for text in texts if text not in told]
    n = min(round(_HELD_OUT * len(texts)), len(free))
    if n < _FEWEST:
        return labelled, []
    out = {free[number] for number in rng.choice(len(free), n, replace=False).tolist()}
    return [e for e in labelled if e.text_hash not in out], [e for e in labelled if e.text_hash in out]


def _without_shortcut(held_out: Sequence[Example], aims: Aims, rng: np.random.Generator) -> list[Example]:
    """Held-out texts in which lowered words tell nothing: each text without them, and with one of them put in."""
    if not aims.lowered:
        return list(held_out)
    bare = [without(example, aims.positions(example, "lower")) for example in held_out]
    return [*bare, *(with_word(e, str(rng.choice(aims.lowered)), rng.random()) for e in bare)]


def pieces_of(classifier: TransformerClassifier, train: Sequence[Example], aims: Aims) -> dict[str, set[int]]:
    """Ids of the word pieces that each voted word is read as, by its visible form."""
    found: dict[str, set[int]] = defaultdict(set)
    for example in train:
        if not (asked := {aim.position for aim in aims.of(example)}):
            continue
        batch = classifier.batch([example])
        for token, owner in zip(batch.ids[0].tolist(), batch.owners[0].tolist(), strict=True):
            if owner in asked:
                found[visible_form(batch.words[0].strings[owner])].add(token)
    return found


def without(example: Example, positions: Sequence[int]) -> Example:
    """The example with these words deleted, its id and label kept; highlights would no longer fit and go."""
    return _rewritten(example, Words(example).without(positions).texts) if positions else example


def with_word(example: Example, word: str, where: float) -> Example:
    """The example with a word put in before one of its own: `where` from 0, the first, to 1, behind the last."""
    words = Words(example)
    own = [n for n, span in enumerate(words.spans) if span.part == "text"]
    place = int(where * (len(own) + 1))
    if place >= len(own):
        return _rewritten(example, (f"{example.text} {word}".lstrip(), *example.parts[1:]))
    return _rewritten(example, words.variant({own[place]: f"{word} {words.strings[own[place]]}"}).texts)


def _rewritten(example: Example, texts: Sequence[str]) -> Example:
    return replace(example, text=texts[0], pair=texts[1] if len(texts) > 1 else None, highlights=None)


@dataclass(frozen=True)
class _Loop:
    """`fit` with everything that does not depend on the fix."""

    settings: Mapping[str, Any]
    seed: int
    held_out: Sequence[Example]
    checkpoints: str | Path | None
    watch: Watch
    key: str
    heeded: list[Rated | Copied] = field(default_factory=list)  # what the fix says that it trains on

    def __call__(
        self,
        classifier: TransformerClassifier,
        train: Sequence[Example],
        *,
        extra_loss: ExtraLoss | None = None,
        vary: Vary | None = None,
        frozen_pieces: Sequence[int] = (),
        one_label: bool = False,
        heeded: Sequence[Rated | Copied] = (),
    ) -> TransformerClassifier:
        self.heeded.extend(heeded)
        schedule = Schedule(
            epochs=self.settings["epochs"],
            learning_rate=self.settings["learning_rate"],
            batch_size=self.settings["batch_size"],
            patience=self.settings["patience"] or None,
            seed=self.seed,
        )
        return fit(
            classifier,
            train,
            validation=(self.held_out or None) if self.settings["patience"] else None,
            schedule=schedule,
            extra_loss=extra_loss,
            vary=vary,
            frozen_pieces=frozen_pieces,
            lora=self.settings["lora"],
            one_label=one_label,
            checkpoints=self.checkpoints,
            key=self.key,
            watch=self.watch,
        )

    def tolerated(
        self, before: TransformerClassifier, after: TransformerClassifier
    ) -> tuple[TransformerClassifier, float]:
        """As much of what was learned as the held-out texts can bear, and the share of the way that it is."""
        if self.settings["tolerance"] == 1:
            return after, 1.0
        return as_far_as(before, after, self.held_out, self.settings["tolerance"], cancelled=self.watch.cancelled)


class _Watched:
    """A watch that also remembers the epochs."""

    def __init__(self, given: Watch) -> None:
        self.epochs: list[Epoch] = []
        self._tell = given.on_epoch
        self.watch = replace(given, on_epoch=self._hear)

    def _hear(self, epoch: Epoch) -> None:
        self.epochs.append(epoch)
        if self._tell is not None:
            self._tell(epoch)
