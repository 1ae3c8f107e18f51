"""The nouns that travel through the system: frozen, hashable, JSON in and out.

Fields are strings, numbers, tuples and other nouns, so that one schema serves Python, HTTP and TypeScript
(`json_schema()`; `docs/schema.json` is that schema, written by `make docs`). Arrays stay inside computation.

All positions are **code points** into the raw text (Python's indexing), never bytes or UTF-16 units. Whoever
draws a text in a browser uses the word strings, or converts.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter

from unhans.errors import Unsupported

Part = Literal["text", "pair"]
"""Which of an example's two texts a position points into."""

OptionValue = bool | int | float | str | None
Severity = Literal["high", "medium", "low"]
Screen = Literal["examples", "words", "flips", "neighbours", "label-errors", "problems", "fix", "bugs"]
"""A screen of the workbench."""


@singledispatch
def to_html(noun: Any) -> str:
    """A noun as self-contained, escaped HTML; `present` registers the drawings."""
    return f"<pre>{escape(repr(noun))}</pre>"


class _Drawn:
    """Shown by `to_html` in notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return to_html(self)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (exclusive, in code points) of one part of an example."""

    start: int
    end: int
    part: Part = "text"

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span runs forward from 0, not from {self.start} to {self.end}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What was run: enough to run it again, to key a cache, and to caption a result."""

    family: str
    name: str
    options: tuple[tuple[str, OptionValue], ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def key(self) -> str:
        """A short fingerprint: equal recipes have equal keys, in every process and on every machine."""
        return hashlib.blake2b(to_json(self).encode(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self.options]
        if self.seed is not None:
            settings.append(f"seed={self.seed}")
        return f"{self.name}({', '.join(settings)})"


@dataclass(frozen=True, slots=True)
class Example(_Drawn):
    """One text, or a pair of texts, with what people know about it."""

    id: str
    text: str
    pair: str | None = None
    label: str | None = None
    highlights: tuple[Span, ...] | None = None  # None: nobody was asked; (): asked, and nothing was marked
    group: str | None = None
    split: str | None = None
    notes: tuple[str, ...] = ()  # what the data door changed or noticed, a sentence each

    @property
    def parts(self) -> tuple[str, ...]:
        """The text, or the text and its pair."""
        return (self.text,) if self.pair is None else (self.text, self.pair)

    @property
    def text_hash(self) -> str:
        """Fingerprint of what the model reads; feedback on another fingerprint is stale."""
        joined = "\x00".join((str(len(self.text)), *self.parts))  # the length tells a pair from a text with a NUL
        return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Prediction(_Drawn):
    """What one revision of a model says about one example."""

    example: str
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    revision: str
    unread: tuple[Span, ...] = ()  # the tail beyond the model's length limit, which had no say

    def __post_init__(self) -> None:
        _same_length("labels", self.labels, "probabilities", self.probabilities)
        _finite("probabilities", self.probabilities)

    @property
    def label(self) -> str:
        """The most probable label; the first of them on a tie."""
        return self.labels[self.probabilities.index(max(self.probabilities))]

    @property
    def confidence(self) -> float:
        """Probability of the predicted label."""
        return max(self.probabilities)

    def __repr__(self) -> str:
        return f"Prediction({self.example!r}: {self.label!r} {self.confidence:.1%})"


@dataclass(frozen=True, slots=True)
class Terms:
    """How scores are to be read. Two tools that differ in these give opposite answers, so every result says them."""

    space: str = "unknown"  # which output of the model: logit, log_odds, probability; "none": not the output at all
    baseline: str = "unknown"  # what a word is compared with
    aggregation: str = "unknown"  # how pieces, dimensions or samples became one number
    signed: bool = True  # otherwise scores are strengths, and say neither for nor against
    unit: Literal["word", "phrase", "sentence"] = "word"
    warning: str = ""
    engine: str = ""  # a sentence: whether the engine that was asked for answered, and how near it is to fp32

    def __str__(self) -> str:
        told = [self.space.replace("_", "-"), f"against {self.baseline}", self.aggregation]
        return " · ".join(told + ([] if self.signed else ["strength only, no sign"]))


@dataclass(frozen=True, slots=True)
class Attribution(_Drawn):
    """How much each word of one example speaks for `label`: positive for it, negative against it."""

    example: str
    label: str
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    scores: tuple[float, ...]
    recipe: Recipe
    revision: str
    unread: tuple[int, ...] = ()  # positions of words beyond the model's limit; their score is 0 and means nothing
    terms: Terms = Terms()
    errors: tuple[float, ...] | None = None  # standard error of each score, where scores are estimated by sampling
    stability: float | None = None  # Spearman between the scores of two halves of the samples
    asked: int | None = None  # texts that the model was asked about, where that depends on sampling

    def __post_init__(self) -> None:
        _same_length("words", self.words, "scores", self.scores)
        _same_length("words", self.words, "spans", self.spans)
        _finite("scores", self.scores)
        if self.errors is not None:
            _same_length("words", self.words, "errors", self.errors)
            _finite("errors", self.errors)

    @property
    def caption(self) -> str:
        """Target, method, terms and reliability in one line."""
        told = [f"for {self.label}", str(self.recipe), str(self.terms)]
        if self.stability is not None:
            told.append(f"stability {self.stability:.2f} over {self.asked:,} texts")
        return " · ".join(told)

    def __repr__(self) -> str:
        strongest = sorted(zip(self.words, self.scores, strict=True), key=lambda pair: -abs(pair[1]))[:8]
        told = ", ".join(f"{word!r} {score:+.3g}" for word, score in strongest)
        more = ", …" if len(self.words) > 8 else ""
        return f"Attribution({self.example!r}: {told}{more} | {self.caption})"


class Attributions(list[Attribution]):
    """Attributions in the order of the examples: iterable, savable, drawn one below the other in notebooks."""

    def to_dict(self) -> list[dict[str, Any]]:
        """One plain dictionary for each."""
        return [json.loads(to_json(one)) for one in self]

    def to_json(self) -> str:
        """Lines of JSON, one for each; `from_json(Attribution, line)` reads them."""
        return "".join(to_json(one) + "\n" for one in self)

    def to_dataframe(self) -> Any:
        """A pandas table with one row for each word."""
        try:
            import pandas
        except ImportError as error:
            raise Unsupported("A data frame needs pandas: pip install 'unhans[pandas]'.") from error
        columns = ("example", "label", "position", "word", "start", "end", "part", "score", "error", "unread")
        return pandas.DataFrame([row for one in self for row in _word_rows(one)], columns=list(columns))

    def to_html(self) -> str:
        """Self-contained, escaped HTML of all of them."""
        return "\n".join(to_html(one) for one in self)

    def __repr__(self) -> str:
        shown = "\n".join(f"  {one!r}" for one in self[:5])
        more = f"\n  … and {len(self) - 5} more" if len(self) > 5 else ""
        return f"{len(self)} attributions\n{shown}{more}" if self else "no attributions"

    def _repr_html_(self) -> str:
        more = f"<p>… and {len(self) - 20} more</p>" if len(self) > 20 else ""
        return Attributions(self[:20]).to_html() + more


def _word_rows(one: Attribution) -> Iterator[tuple[Any, ...]]:
    for n, (word, span, score) in enumerate(zip(one.words, one.spans, one.scores, strict=True)):
        error = None if one.errors is None else one.errors[n]
        yield (one.example, one.label, n, word, span.start, span.end, span.part, score, error, n in one.unread)


@dataclass(frozen=True, slots=True)
class RankedWord:
    """One row of a `WordRanking`: a word and its mean score over the examples that contain it."""

    word: str
    score: float
    spread: float  # standard deviation of the score over those examples
    count: int  # number of examples
    examples: tuple[str, ...]  # ids of some of them, strongest first
    correct: float | None = None  # share of them that the model predicts right, where labels are known
    z: float | None = None  # standard errors above what the word's association with the label in the data explains

    def __post_init__(self) -> None:
        known = (value for value in (self.correct, self.z) if value is not None)
        _finite("score, spread, correct and z", (self.score, self.spread, *known))


@dataclass(frozen=True, slots=True)
class WordRanking(_Drawn):
    """The vocabulary ordered by mean score for one label: what the model has learned about the task."""

    label: str
    words: tuple[RankedWord, ...]
    recipe: Recipe
    revision: str

    def __repr__(self) -> str:
        rows = "\n".join(
            f"  {row.word!r:20} {row.score:+.3f} ± {row.spread:.3f} in {row.count}" for row in self.words[:10]
        )
        more = f"\n  … and {len(self.words) - 10} more" if len(self.words) > 10 else ""
        return f"{len(self.words)} words for {self.label!r} by {self.recipe}\n{rows}{more}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A word that may be a shortcut: the model leans on it, often, and is wrong or says something else without it."""

    word: str
    label: str  # of those explained, the one it speaks for most
    score: float  # mean score for that label
    weight: float  # its share of the absolute scores of a text, on average over the examples that contain it
    coverage: float  # share of the explained examples that contain it
    disagreement: float  # share of those for which the model, once the word is gone, misses the label
    damage: float  # weight × coverage × disagreement
    count: int  # number of examples that contain it
    examples: tuple[str, ...]  # ids of some of them, strongest first

    def __post_init__(self) -> None:
        shares = (self.weight, self.coverage, self.disagreement, self.damage)
        _finite("score, weight, coverage, disagreement and damage", (self.score, *shares))


@dataclass(frozen=True, slots=True)
class Suspects(_Drawn):
    """The words that a person should look at first, by expected damage."""

    words: tuple[Suspect, ...]
    recipe: Recipe
    revision: str

    def __repr__(self) -> str:
        head = f"  {'word':20} {'label':12} {'score':>7} {'weight':>7} {'coverage':>9} {'disagreement':>13}"
        rows = "".join(
            f"\n  {row.word!r:20} {row.label:12} {row.score:>+7.3f} {row.weight:>7.1%} {row.coverage:>9.1%}"
            f" {row.disagreement:>13.1%} {row.damage:>8.4f}"
            for row in self.words[:10]
        )
        more = f"\n  … and {len(self.words) - 10} more" if len(self.words) > 10 else ""
        return f"{len(self.words)} suspects by {self.recipe}\n{head} {'damage':>8}{rows}{more}"


@dataclass(frozen=True, slots=True)
class Edit:
    """Word number `position` becomes `new`; an empty `new` deletes it. `old` makes the edit reversible."""

    position: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Rationale:
    """The words that a model may be said to use for a label: some of an example's words, by number."""

    example: str
    label: str
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    chosen: tuple[int, ...]
    recipe: Recipe
    revision: str

    def __post_init__(self) -> None:
        _same_length("words", self.words, "spans", self.spans)
        if any(not 0 <= n < len(self.words) for n in self.chosen):
            raise ValueError(f"a rationale of {len(self.words)} words cannot choose others than these")


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another word that could stand at the place of a step, and how probable it makes the label that is sought."""

    edit: Edit
    probability: float


@dataclass(frozen=True, slots=True)
class Step:
    """One change on the way to a flip, and what the model says after it."""

    edits: tuple[Edit, ...]  # what is new in this step: one word, but for texts that were rewritten as a whole
    after: Prediction
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A rewritten example and what the rewriting did to the prediction.

    `edits` is what was needed: left out any of them, and the prediction stays. `steps` is the way there, with changes
    that turned out not to be needed. If nothing was found (`flips` is false) it is the best attempt.
    """

    example: str
    edits: tuple[Edit, ...]
    text: str
    pair: str | None
    before: Prediction
    after: Prediction
    recipe: Recipe
    target: str | None = None  # the label sought; None: any other than before
    steps: tuple[Step, ...] = ()
    editable: tuple[int, ...] | None = None  # words that could be changed; None: all
    reads: tuple[int, ...] | None = None  # words that the model was shown; None: all
    perplexity: float | None = (
        None  # how much less likely the text became to a language model: change in log perplexity
    )
    similarity: float | None = None  # of the two texts' embeddings: 1 is alike

    @property
    def flips(self) -> bool:
        """Whether the predicted label is the one sought, or any other than before."""
        return self.after.label != self.before.label if self.target is None else self.after.label == self.target

    @property
    def margin(self) -> float:
        """How far the model is from the boundary after the edits: the best label's probability less the next one's."""
        first, second, *_ = (*sorted(self.after.probabilities, reverse=True), 0.0)
        return first - second

    @property
    def id(self) -> str:
        """The same for the same edits of the same example, judged by the same model that is shown the same words."""
        edits = [(e.position, e.old, e.new) for e in self.edits]
        told = (self.example, self.before.revision, self.target, self.reads, edits)
        return hashlib.blake2b(repr(told).encode(errors="surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A training example that pushed a prediction; positive helped it, negative worked against it."""

    train: str
    score: float

    def __post_init__(self) -> None:
        _finite("score", (self.score,))


@dataclass(frozen=True, slots=True)
class Influence:
    """The training examples behind what a model says of one text.

    `helpful` ones lowered the loss of `label`: without them the model would say it less surely. `harmful` ones raised
    it. Both strongest first.
    """

    example: str
    label: str  # the given one, or the predicted one: see the recipe
    helpful: tuple[Neighbour, ...]
    harmful: tuple[Neighbour, ...]
    recipe: Recipe
    revision: str
    notes: tuple[str, ...] = ()  # how far the method converged, what it left out


@dataclass(frozen=True, slots=True)
class Copy:
    """A rewritten training text, under the label of the one it was made from."""

    source: str  # id of the training example
    text: str
    pair: str | None
    label: str
    recipe: Recipe
    label_kept: float | None = None  # how sure a check is that the label still holds, 0 to 1; None: not checked

    @property
    def id(self) -> str:
        """The same for the same words made from the same example."""
        told = repr((self.source, self.text, self.pair))
        return hashlib.blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()

    @property
    def example(self) -> Example:
        """As an example to train on."""
        return Example(f"{self.source} {self.id}", self.text, self.pair, self.label)


@dataclass(frozen=True, slots=True)
class Doubt:
    """How likely one training example has the wrong label, among all: 0 surely right, 1 the first to look at.

    `signs` are the ranks that each way of looking gives it, on the same scale.
    """

    example: str
    label: str  # the given one
    suggested: str  # what the model and the neighbours would call it
    score: float
    signs: tuple[tuple[str, float], ...]
    recipe: Recipe
    revision: str

    def __post_init__(self) -> None:
        _finite("score", (self.score, *(value for _, value in self.signs)))


@dataclass(frozen=True, slots=True)
class WordVote:
    """Should this word count more or less for this label, here or everywhere?"""

    word: str
    label: str
    vote: Literal["raise", "lower"]
    example: str | None = None  # None: everywhere
    position: int | None = None  # which occurrence, when `example` is given
    kind: Literal["word_vote"] = "word_vote"


@dataclass(frozen=True, slots=True)
class FlipRating:
    """Could a person have written this rewrite, does it make sense, is the model right about it?

    Each 1 to 5, or None where the question does not apply. `label` is what the reader would call the rewritten text.
    """

    counterfactual: str
    plausible: Rating | None
    meaningful: Rating | None
    agrees: Rating | None
    label: str | None = None
    kind: Literal["flip_rating"] = "flip_rating"

    def __post_init__(self) -> None:
        given = {"plausible": self.plausible, "meaningful": self.meaningful, "agrees": self.agrees}
        _on_scale(**{name: rating for name, rating in given.items() if rating is not None})


@dataclass(frozen=True, slots=True)
class NeighbourRating:
    """Do these two texts share the same pattern? 1 very different, 5 very similar."""

    anchor: str
    train: str
    similar: Rating
    kind: Literal["neighbour_rating"] = "neighbour_rating"

    def __post_init__(self) -> None:
        _on_scale(similar=self.similar)


@dataclass(frozen=True, slots=True)
class Relabel:
    """What is the right label?"""

    example: str
    label: str | None  # None: none of the labels fits, and the example is not to be trained on
    kind: Literal["relabel"] = "relabel"


@dataclass(frozen=True, slots=True)
class Review:
    """How far this person is with this example: judged, skipped, or flagged for somebody else to look at."""

    example: str
    state: Literal["done", "skipped", "flagged"]
    note: Annotated[str, Field(max_length=5000)] = ""
    kind: Literal["review"] = "review"


@dataclass(frozen=True, slots=True)
class Ruling:
    """The last word on a question (`feedback.subject_of`) on which people disagree."""

    subject: str
    value: str
    kind: Literal["ruling"] = "ruling"


Reason = Literal["labels_wrong", "labels_right", "unexpected_focus", "expected_focus", "other"]
"""Why somebody would or would not deploy a model: by its predictions, by its explanations, or something else."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Would you deploy this model? 1 definitely not, 5 definitely; and what made you say so.

    One for each revision and condition: the explanation that was shown, and whether it came before the prediction.
    """

    model: str  # id of the revision
    deploy: Rating
    reason: Reason
    method: str | None = None  # attribution that was shown; None: none
    explanation_first: bool = False  # words were judged before the prediction was seen
    note: Annotated[str, Field(max_length=5000)] = ""
    kind: Literal["verdict"] = "verdict"

    def __post_init__(self) -> None:
        _on_scale(deploy=self.deploy)
        if self.reason == "other" and not self.note.strip():
            raise ValueError("a verdict for another reason says which, in its note")


Rating = Annotated[int, Field(ge=1, le=5, strict=True)]
Answer = Annotated[
    WordVote | FlipRating | NeighbourRating | Relabel | Review | Ruling | Verdict, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True)
class Feedback:
    """One human judgement: the answer, and who gave it, when, and about what."""

    id: str
    says: Answer
    author: str
    at: str  # ISO 8601, UTC
    revision: str
    text_hash: str | None = None  # of the example it is about, so that stale feedback can be told
    retracts: str | None = None  # id of an earlier entry that this one takes back
    seconds: float | None = None  # how long the person took


@dataclass(frozen=True, slots=True)
class Revision:
    """A version of a model: where it comes from, what made it, which feedback it used."""

    id: str
    parent: str | None
    recipe: Recipe
    labels: tuple[str, ...]
    feedback: tuple[str, ...] = ()
    folder: str | None = None  # relative to the project; None for models that are not ours to store
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """One number before and after, on one set of examples, with the 95 % interval of the change."""

    name: str
    data: str
    before: float | None
    after: float
    low: float | None = None
    high: float | None = None
    better: Literal["higher", "lower"] = "higher"
    slice: str = ""  # part of the set, such as "label positive" or "group A"; empty: all of it
    n: int = 0  # examples behind it
    p: float | None = None  # how often chance alone would give such a change, where there is a paired test
    runs: tuple[float, ...] = ()  # the same after training with each of several seeds, this one first

    def __post_init__(self) -> None:
        known = (self.before, self.after, self.low, self.high, self.p, *self.runs)
        _finite("measured values", tuple(value for value in known if value is not None))

    @property
    def change(self) -> float | None:
        """After minus before; None without a before."""
        return None if self.before is None else self.after - self.before

    @property
    def verdict(self) -> Literal["better", "worse", "same"]:
        """Whether the whole interval of the change lies on one side of nothing."""
        if self.low is None or self.high is None or (self.low <= 0 <= self.high):
            return "same"
        return "better" if (self.low > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition somebody wrote down, and whether it holds."""

    text: str
    holds: bool
    value: float | None = None
    says: str = ""  # what was measured, or why nothing could be, in a sentence


@dataclass(frozen=True, slots=True)
class Change:
    """An example that a fix made right or wrong: what each model says of it and, where explained, why."""

    example: Example
    data: str  # the set it is from
    before: Prediction
    after: Prediction
    why_before: Attribution | None = None  # both for the same label, so that one colour scale serves them
    why_after: Attribution | None = None


@dataclass(frozen=True, slots=True)
class WordEffect:
    """What became of one vote: the word's mean share of a text's explanation before and after.

    A share is the absolute score of the word by the sum of the absolute scores of its text: it does not depend on how
    large the model's logits are. `score_before` and `score_after` are the plain mean scores for the label.
    """

    word: str
    label: str
    vote: Literal["raise", "lower"]
    example: str | None  # None: a vote everywhere
    before: float
    after: float
    score_before: float
    score_after: float
    texts: int  # that it was measured on

    @property
    def heard(self) -> bool:
        """Whether it moved the way the vote asked for, by a tenth at least: any training moves everything a little."""
        return self.after < 0.9 * self.before if self.vote == "lower" else self.after > 1.1 * self.before

    def __post_init__(self) -> None:
        _finite("shares and scores", (self.before, self.after, self.score_before, self.score_after))


@dataclass(frozen=True, slots=True)
class Rival:
    """Another fix for the same feedback (a cheap baseline, another strength), measured like the one reported."""

    recipe: Recipe
    measures: tuple[Measure, ...]  # over whole sets; before is what the report's before is
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report(_Drawn):
    """What a fix changed, for better and for worse; what got worse is said first."""

    before: str | None  # revision ids
    after: str
    measures: tuple[Measure, ...]
    expectations: tuple[Expectation, ...] = ()
    fixed: tuple[Change, ...] = ()  # examples that became right, some of them if there are many
    broken: tuple[Change, ...] = ()  # and that became wrong
    n_fixed: int = 0
    n_broken: int = 0
    words: tuple[WordEffect, ...] = ()
    moved: float | None = None  # mean Spearman of explanations, before to after, of texts without a voted word
    rivals: tuple[Rival, ...] = ()
    notes: tuple[str, ...] = ()  # what must be known to read it, a sentence each
    recipe: Recipe | None = None  # the fix
    method: Recipe | None = None  # the attribution that scores of words are by
    at: str | None = None

    @property
    def worse(self) -> tuple[Measure, ...]:
        """What fell beyond its interval."""
        return tuple(measure for measure in self.measures if measure.verdict == "worse")

    @property
    def holds(self) -> bool:
        """Whether every expectation holds."""
        return all(expectation.holds for expectation in self.expectations)


@dataclass(frozen=True, slots=True)
class Grade(_Drawn):
    """How one attribution method did by one metric: the mean over examples, and what random scores would have got."""

    metric: str
    method: Recipe
    value: float
    low: float | None  # 95 % interval of the mean; None where there is only one value
    high: float | None
    random: float | None  # the same metric on random scores; None where it is not defined for them
    p: float | None  # how often chance alone would part the method from random scores this far
    better: Literal["higher", "lower"]
    family: str  # metrics of one family tend to agree with each other, whoever is right
    examples: int  # on which it is defined
    undefined: int  # examples on which it is not; they are not in the mean
    note: str  # what must be known to read the number
    recipe: Recipe
    revision: str

    def __post_init__(self) -> None:
        known = (self.value, self.low, self.high, self.random, self.p)
        _finite("the numbers of a grade", tuple(value for value in known if value is not None))

    @property
    def beats_random(self) -> bool:
        """Whether it is better than random scores, and hardly by chance."""
        if self.random is None or self.p is None or self.p >= 0.05:
            return False
        return self.value > self.random if self.better == "higher" else self.value < self.random

    def __repr__(self) -> str:
        interval = (
            "" if self.low is None or self.high is None else f" (95 % interval {self.low:.3g} to {self.high:.3g})"
        )
        lines = [f"{self.recipe} of {self.method}: {self.value:.3g}{interval}, {self.better} is better"]
        if self.random is not None:
            chance = "" if self.p is None else f", p = {self.p:.2g}"
            verdict = "better than random" if self.beats_random else "not better than random"
            lines.append(f"random scores get {self.random:.3g}{chance}: {verdict}")
        without = f", undefined on {self.undefined} more" if self.undefined else ""
        lines.append(f"{self.family}, on {self.examples} examples{without}")
        return "\n  ".join(lines + ([self.note] if self.note else []))


@dataclass(frozen=True, slots=True)
class RankedMethod:
    """One method in a `Comparison`."""

    method: Recipe
    rank: float  # mean over the families of metrics of the mean rank inside each; 1 is the best possible
    beats_random: int  # metrics by which it is better than random scores
    contests: int  # metrics by which it could be
    within_noise: bool  # other texts of the same kind might have put it first
    warning: str = ""  # why it is not to be recommended, whatever its rank

    def __post_init__(self) -> None:
        _finite("rank", (self.rank,))


@dataclass(frozen=True, slots=True)
class Comparison(_Drawn):
    """Several attribution methods by several metrics, and what follows from it."""

    grades: tuple[Grade, ...]
    methods: tuple[RankedMethod, ...]  # to be trusted most first
    verdict: str
    notes: tuple[str, ...]
    examples: int
    revision: str

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Head and rows for printing: a metric a row, a method a column; `*` is better than random."""
        recipes = [row.method for row in self.methods]
        plain = [recipe.name for recipe in recipes]
        names = [name if plain.count(name) == 1 else str(recipe) for name, recipe in zip(plain, recipes, strict=True)]
        rows = []
        for metric in dict.fromkeys(grade.metric for grade in self.grades):
            own = {grade.method: grade for grade in self.grades if grade.metric == metric}
            first = next(iter(own.values()))
            cells = [f"{own[r].value:.3g}{'*' if own[r].beats_random else ''}" if r in own else "–" for r in recipes]
            random = "–" if first.random is None else f"{first.random:.3g}"
            rows.append((metric, first.family, first.better, *cells, random))
        return ("metric", "family", "better", *names, "random"), rows

    def __repr__(self) -> str:
        head, rows = self.table()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
        ]
        return "\n".join([*lines, "* better than random scores (p < 0.05)", self.verdict, *self.notes])


@dataclass(frozen=True, slots=True)
class LocalRisk:
    """The risk around one example as one person sees it: the mean of 5 − agrees over the flips that person rated."""

    example: str
    author: str
    value: float
    n: int  # flips rated

    def __post_init__(self) -> None:
        _finite("value", (self.value,))


@dataclass(frozen=True, slots=True)
class RiskSlice:
    """The risk in one part of the ratings, such as those of flips of one generator."""

    by: Literal["label", "after", "group", "generator", "author", "outcome"]
    name: str | None  # None: examples without a group
    value: float
    low: float | None  # 95 % interval; None: too few ratings, or all the same
    high: float | None
    n: int  # ratings
    flips: int
    examples: int
    people: int

    def __post_init__(self) -> None:
        _finite("the numbers of a slice", tuple(x for x in (self.value, self.low, self.high) if x is not None))


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """What people answered to one of the three questions about flips, and how far they agree (Krippendorff's alpha)."""

    question: Literal["plausible", "meaningful", "agrees"]
    mean: float | None  # 1 to 5; None: no rating
    n: int  # ratings
    alpha: float | None  # ordinal; None: not defined, and `note` says why
    low: float | None  # 95 % interval of alpha
    high: float | None
    shared: int  # flips rated by two people or more
    note: str = ""

    def __post_init__(self) -> None:
        known = (self.mean, self.alpha, self.low, self.high)
        _finite("mean and alpha", tuple(value for value in known if value is not None))


@dataclass(frozen=True, slots=True)
class Risk(_Drawn):
    """How far people disagree with what a model says of its flips: from 0, not at all, to 4; made by `unhans.risk`."""

    revision: str | None  # None: no flips
    value: float | None  # None: no ratings
    low: float | None  # 95 % interval; None: `note` says why
    high: float | None
    n: int  # ratings that count
    flips: int  # with such a rating
    examples: int
    people: int
    not_applicable: int  # ratings that leave the question open
    unknown: int  # ratings of flips that were not given: of another revision, perhaps
    width: float  # of the interval that is wished for
    more: (
        int | None
    )  # ratings of flips of new texts, by the same people, until it is so narrow; None: never, or unknown
    more_people: int | None  # or how many more people, each of whom rates as much as those so far
    design: float | None  # design effect: a rating is worth 1 / design ratings of unrelated texts by unrelated people
    note: str  # what must be known to read the numbers, in sentences
    questions: tuple[RatedQuestion, ...]
    slices: tuple[RiskSlice, ...]
    local: tuple[LocalRisk, ...]  # by example and person, the highest first
    recipe: Recipe

    def __post_init__(self) -> None:
        known = (self.value, self.low, self.high, self.width, self.design)
        _finite("the numbers of a risk", tuple(value for value in known if value is not None))

    def __repr__(self) -> str:
        if self.value is None:
            return f"Risk(no ratings; {self.note})"
        interval = (
            "" if self.low is None or self.high is None else f" (95 % interval {self.low:.2f} to {self.high:.2f})"
        )
        lines = [
            f"risk {self.value:.2f} of 4{interval}: {self.n} ratings of {self.flips} flips of {self.examples} texts"
        ]
        lines[0] += f" by {self.people} {'person' if self.people == 1 else 'people'}"
        for one in self.slices:
            ends = "" if one.low is None or one.high is None else f" ({one.low:.2f} to {one.high:.2f})"
            lines.append(f"{one.by} {one.name}: {one.value:.2f}{ends}, {one.n} ratings")
        return "\n  ".join([*lines, self.note] if self.note else lines)


@dataclass(frozen=True, slots=True)
class RiskChange(_Drawn):
    """The risk of two revisions of a model, and the 95 % interval of the difference; made by `unhans.risk.compare`."""

    before: float | None
    after: float | None
    low: float | None
    high: float | None
    shared: int  # examples with ratings before and after: these are compared with themselves
    n_before: int  # ratings
    n_after: int
    revisions: tuple[str | None, str | None]
    note: str
    recipe: Recipe

    def __post_init__(self) -> None:
        known = (self.before, self.after, self.low, self.high)
        _finite("the numbers of a change", tuple(value for value in known if value is not None))

    @property
    def change(self) -> float | None:
        """After minus before; None where one of them has no ratings."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def verdict(self) -> Literal["better", "worse", "same"]:
        """Whether the whole interval lies on one side of nothing; a lower risk is better."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "same"
        return "better" if self.high < 0 else "worse"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number behind a finding, with what it would be if there were nothing to find."""

    what: str  # in words, so that the number can be read without the code
    value: float
    usual: float | None = None  # by chance, for other words, for clean texts: `what` says which
    low: float | None = None  # 95 % interval of the value
    high: float | None = None
    n: int = 0  # texts behind it

    def __post_init__(self) -> None:
        known = (self.value, self.usual, self.low, self.high)
        _finite("the numbers of evidence", tuple(value for value in known if value is not None))


@dataclass(frozen=True, slots=True)
class Finding(_Drawn):
    """Something that an audit found: how bad, how we know, where to look, what to do, and what this cannot show."""

    check: Recipe  # what was run to find it
    title: str  # the finding in one sentence
    severity: Severity
    says: str  # what was seen, in a few sentences
    evidence: tuple[Evidence, ...]
    examples: tuple[str, ...]  # ids of examples that show it, the most telling first
    words: tuple[str, ...]  # that it is about, the worst first
    next: str  # what to do about it, in a sentence
    screen: Screen | None  # where that is done
    limits: str  # what the check cannot show, in a sentence
    revision: str
    variants: tuple[Variant, ...] = ()  # texts that were changed to find it, with what the model says of them

    @property
    def id(self) -> str:
        """The same for the same thing found by the same check about the same revision."""
        told = repr((self.check.key, self.title, self.words, self.revision))
        return hashlib.blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Variant:
    """A text as an audit changed it, and what the model says before and after."""

    example: str  # id of the example that was changed
    text: str
    pair: str | None
    before: str  # label
    after: str
    change: float  # of the probability of the label before


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One part of an audit: whether it ran, what it came to, and if not, why not."""

    check: Recipe
    title: str
    state: Literal["waiting", "done", "left out"]
    says: str = ""  # what it came to where nothing was found, or why it was left out
    findings: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Audit(_Drawn):
    """What can be said against a model on its own data; the severest findings first."""

    revision: str
    findings: tuple[Finding, ...]
    checks: tuple[CheckRun, ...]  # in the order they run; those that wait are there from the start
    examples: int  # that were looked at
    training: int  # examples that it was trained on, as far as they are given
    notes: tuple[str, ...] = ()  # what must be known to read it
    recipe: Recipe | None = None
    at: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every check has run or was left out."""
        return all(one.state != "waiting" for one in self.checks)

    @property
    def worst(self) -> Severity | None:
        """The severity of the first finding; None: nothing was found."""
        return self.findings[0].severity if self.findings else None


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug that was planted to see who notices it, with the proof that it took."""

    name: str  # unique in the lab: the bug's name, and its options where it is there twice
    kind: Literal["data", "model", "test-time", "control"]
    recipe: Recipe | None  # None: nothing was planted
    says: str  # what was done, in a sentence
    proof: str  # how it was checked that the bug took, and what came of it
    took: float | None  # that number: accuracy on the cue alone, share of answers that changed; None: not applicable
    usual: float | None = None  # the same for the clean model


@dataclass(frozen=True, slots=True)
class Sighting:
    """How well one method sees one bug, by one measure: the mean over examples with its standard error."""

    bug: str  # PlantedBug.name
    method: str
    by: Literal["attribution", "detector", "doubt"]  # what kind of method it is
    measure: Literal[
        "mass on the cue",
        "likeness to the cue alone",
        "rank correlation",
        "top overlap",
        "detection",
    ]
    value: float
    error: float | None  # standard error of the mean
    random: float | None  # the same measure for random scores
    n: int  # examples
    sees: bool | None = None  # whether it would be noticed; None: this measure does not tell

    def __post_init__(self) -> None:
        known = (self.value, self.error, self.random)
        _finite("the numbers of a sighting", tuple(value for value in known if value is not None))


@dataclass(frozen=True, slots=True)
class LayerCurve:
    """How far a method's scores survive when the model is drawn anew, part by part from the top down."""

    method: str
    parts: tuple[str, ...]  # "head", "layer 2", ..., "embeddings"
    correlations: tuple[float | None, ...]  # Spearman to the scores of the true model; None: no order left to compare
    errors: tuple[float | None, ...]
    cascading: bool = True  # False: each part alone was drawn anew

    def __post_init__(self) -> None:
        _same_length("parts", self.parts, "correlations", self.correlations)
        _same_length("parts", self.parts, "errors", self.errors)
        _finite("correlations", tuple(value for value in (*self.correlations, *self.errors) if value is not None))


@dataclass(frozen=True, slots=True)
class PlantedText:
    """A text that shows a bug, as the model with the bug reads it, and what each method makes of it."""

    bug: str  # PlantedBug.name
    example: Example  # with what was planted
    label: str  # that is explained
    words: tuple[str, ...]  # that the model reads
    spans: tuple[Span, ...]
    scores: tuple[tuple[str, tuple[float, ...]], ...]  # of the words, by method


@dataclass(frozen=True, slots=True)
class Lab(_Drawn):
    """Which explanation sees which bug: planted bugs by methods, on one model and one data set."""

    bugs: tuple[PlantedBug, ...]
    sightings: tuple[Sighting, ...]
    curves: tuple[LayerCurve, ...]
    warnings: tuple[tuple[str, str], ...]  # methods not to be trusted, and why: "does not depend on the model"
    examples: tuple[tuple[str, tuple[str, ...]], ...]  # by bug, ids of the examples that show it best
    notes: tuple[str, ...]
    revision: str
    recipe: Recipe | None = None
    at: str | None = None
    texts: tuple[PlantedText, ...] = ()  # of each bug a few, those that show it best first


Explanation = Attribution | WordRanking | Suspects | Rationale | Counterfactual | Influence
NOUNS = (
    Example,
    Prediction,
    Attribution,
    WordRanking,
    Suspects,
    Rationale,
    Counterfactual,
    Influence,
    Copy,
    Doubt,
    Feedback,
    Revision,
    Report,
    Grade,
    Comparison,
    Risk,
    RiskChange,
    Audit,
    Lab,
    Recipe,
)

N = TypeVar("N")


def to_json(noun: Any) -> str:
    """A noun as one line of JSON."""
    return _adapter(type(noun)).dump_json(noun).decode()


def from_json(kind: type[N], line: str | bytes) -> N:
    """The noun of this kind in a line of JSON; `ValueError` says which field is wrong."""
    noun: N = _adapter(kind).validate_json(line)
    return noun


def json_schema() -> dict[str, Any]:
    """JSON Schema of all nouns: the contract of files, HTTP and the browser."""
    inputs = [(noun, "serialization", _adapter(noun)) for noun in NOUNS]
    _, schema = TypeAdapter.json_schemas(inputs, title="unhans")  # type: ignore[arg-type]
    return schema


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


_adapters: dict[type[Any], TypeAdapter[Any]] = {}  # building one takes milliseconds, using one microseconds


def _same_length(one: str, first: Sequence[Any], other: str, second: Sequence[Any]) -> None:
    if len(first) != len(second):
        raise ValueError(f"{len(first)} {one} but {len(second)} {other}")


def _finite(name: str, values: Sequence[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{name} must be finite numbers")


def _on_scale(**ratings: int) -> None:
    for name, rating in ratings.items():
        if type(rating) is not int or not 1 <= rating <= 5:
            raise ValueError(f"{name} is rated 1 to 5, not {rating!r}")
