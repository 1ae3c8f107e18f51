"""What goes over the wire besides the nouns: requests, pages, and what a screen needs at once.

The nouns of `unhans.types` travel as they are. Everything here is a frozen dataclass, so that the OpenAPI schema, and
the TypeScript types made of it, say the same as Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from unhans.jobs import Job
from unhans.types import (
    Answer,
    Attribution,
    CheckRun,
    Copy,
    Counterfactual,
    Doubt,
    Edit,
    Example,
    Feedback,
    Finding,
    Lab,
    Measure,
    OptionValue,
    Part,
    Prediction,
    Rationale,
    Reason,
    Recipe,
    Revision,
    Risk,
    RiskChange,
    Severity,
    Span,
)

Role = Literal["admin", "manager", "annotator"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
Password = Annotated[str, StringConstraints(min_length=10, max_length=500)]
Secret = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
UploadId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Looked = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Sort = Literal["order", "least_confident", "most_confident"]
State = Literal["pending", "draft", "done", "skipped", "flagged"]
ExchangeFormat = Literal["jsonl", "csv", "eraser", "prodigy", "label_studio"]


# -- errors


@dataclass(frozen=True)
class Problem:
    """The inside of every error answer."""

    code: str  # such as not_found, forbidden, conflict, invalid, too_large, no_space
    message: str  # what happened, what is safe, what to do
    request_id: str


@dataclass(frozen=True)
class ErrorAnswer:
    """The one shape of errors."""

    error: Problem
    current: Feedback | None = None  # with a conflict: what is stored


# -- people


@dataclass(frozen=True)
class Me:
    """Who is asking, and what they may do."""

    name: str
    role: Role
    alone: bool  # the single local user of a server without accounts
    version: str
    preferences: dict[str, Any]  # theme, keys, tour_seen, slices: the browser's own affair


@dataclass(frozen=True)
class Login:
    """Name and password."""

    name: Secret
    password: Secret


@dataclass(frozen=True)
class Join:
    """An invitation accepted."""

    invite: Secret
    name: UserName
    password: Password


@dataclass(frozen=True)
class NewPassword:
    """Changing one's own password; all other sessions of the account end."""

    old: Secret
    new: Password


@dataclass(frozen=True)
class Person:
    """An account, as administrators see it."""

    name: str
    role: Role
    projects: tuple[str, ...]  # those it may work in; administrators may work in all
    at: str


@dataclass(frozen=True)
class PersonChange:
    """What an administrator may change about an account; None leaves it."""

    role: Role | None = None
    projects: tuple[Name, ...] | None = None


@dataclass(frozen=True)
class NewInvite:
    """Whom to invite."""

    role: Role = "annotator"
    projects: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Invite:
    """A link that makes one account; its secret is shown once."""

    id: str
    role: Role
    projects: tuple[str, ...]
    by: str
    expires: str
    used_by: str | None
    secret: str | None = None  # only in the answer that makes it: open `#/join/SECRET`


# -- home and new projects


@dataclass(frozen=True)
class Progress:
    """How far the judging is: examples with a finished judgement."""

    total: int
    mine: int
    anyone: int
    flagged: int
    skipped: int  # by me


@dataclass(frozen=True)
class ProjectCard:
    """A project on the home screen."""

    name: str  # in addresses
    title: str
    examples: int
    labels: tuple[str, ...]
    progress: Progress
    resume: int | None  # place of the example I looked at last


@dataclass(frozen=True)
class Home:
    """What needs attention first."""

    projects: tuple[ProjectCard, ...]
    jobs: tuple[Job, ...]  # running, waiting, and those that failed lately
    problems: tuple[str, ...]  # for managers, a sentence each
    can_create: bool  # this server can hold more projects
    cannot_create: str = ""  # and if not, why


@dataclass(frozen=True)
class Upload:
    """A file that has arrived, under a name of the server's making."""

    id: str
    kind: Literal["model", "data"]
    name: str  # as the sender called it; only ever shown
    size: int
    by: str
    at: str


@dataclass(frozen=True)
class Columns:
    """Which column is what; None lets the reader guess."""

    text: Name | None = None
    pair: Name | None = None
    label: Name | None = None
    group: Name | None = None
    split: Name | None = None
    id: Name | None = None


@dataclass(frozen=True)
class ProjectPlan:
    """What a project is to be made of; `check` looks at it, `create` does it."""

    model: UploadId
    data: UploadId
    title: Name
    columns: Columns = Columns()
    labels: dict[str, str | None] | None = None  # label in the data → the model's label; None leaves it out


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "note", "bad"]
    says: str


@dataclass(frozen=True)
class PlanReport:
    """What `check` found; the project can be made if no check is bad. It is the result of the job `check`."""

    checks: tuple[Check, ...]
    columns: tuple[str, ...]
    chosen: Columns
    preview: tuple[Example, ...]
    data_labels: tuple[str, ...]
    model_labels: tuple[str, ...]
    examples: int


# -- a project


@dataclass(frozen=True)
class Accuracy:
    """How many of the labelled and predicted examples of a split are right."""

    split: str
    right: int
    labelled: int


@dataclass(frozen=True)
class ExplanationSet:
    """Explanations that were made alike: one revision, one recipe, one target, one unit."""

    id: str
    method: str
    options: dict[str, OptionValue]
    target: str | None  # None: each text's predicted label
    units: str
    revision: str
    count: int  # texts explained so far
    scale: float  # the 99th percentile of absolute scores: one colour scale for all texts
    at: str
    ranked: tuple[str, ...]  # labels for which words have been ranked


@dataclass(frozen=True)
class ProjectSettings:
    """What a manager decides about the judging."""

    guidelines: Annotated[str, StringConstraints(max_length=20_000)] = ""  # Markdown without HTML
    overlap: Annotated[int, Field(ge=1, le=100, strict=True)] = 1  # how many people judge each example
    blind: bool = True  # annotators do not see each other's answers
    hide_texts: bool = False  # texts are blurred until asked for: the data may offend
    hide_prediction: bool = False  # explanation first: annotators see what the model says once they judged the words


@dataclass(frozen=True)
class ProjectFacts:
    """What a project is and how far it has come."""

    name: str
    title: str
    labels: tuple[str, ...]
    revisions: tuple[Revision, ...]
    current: str  # id of the revision in use
    examples: int
    predicted: int  # by the current revision
    splits: tuple[str, ...]
    accuracy: tuple[Accuracy, ...]
    explained: tuple[ExplanationSet, ...]  # of the current revision, newest first
    settings: ProjectSettings
    progress: Progress
    notes: dict[str, Any]


# -- examples


class Filter(BaseModel):
    """Which examples; every field narrows. A field that does not exist is refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Name | None = None
    predicted: Name | None = None
    correct: bool | None = None
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    max_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    contains: Looked | None = None  # anywhere in the text
    word: Looked | None = None  # as a whole word
    min_words: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    max_words: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    split: Name | None = None
    group: Name | None = None
    state: State | None = None  # mine
    disagreement: bool | None = None  # people said opposite things about it
    noted: bool | None = None  # the data door noticed something (hidden characters, control words …)


class ListQuery(Filter):
    """A page of examples: the query of `GET examples`."""

    sort: Sort = "order"
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ViewQuery(Filter):
    """One example and its neighbours under a filter: the query of `GET examples/{place}`."""

    sort: Sort = "order"
    explained: Name | None = None  # id of the explanation set to show


class WordQuery(BaseModel):
    """A page of words: the query of `GET words`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Name
    explained: Name | None = None
    search: Looked | None = None
    order: Literal["damage", "total", "score"] = "damage"
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@dataclass(frozen=True)
class ExampleRow:
    """An example in a list."""

    place: int  # its number in the project, from 0: its address
    id: str
    text: str  # the beginning
    pair: str | None
    label: str | None
    predicted: str | None
    confidence: float | None
    correct: bool | None
    state: State  # mine
    votes: int  # my votes on its words
    noted: bool


@dataclass(frozen=True)
class ExamplePage:
    """Some rows and where to go on."""

    items: tuple[ExampleRow, ...]
    next: str | None  # opaque: give it back as `cursor`
    total: int | None  # at most 1,001: "more than 1,000"; None where counting would take too long
    complete: bool  # False: the search ran out of time before the page was full; `next` goes on from there


@dataclass(frozen=True)
class Opinion:
    """What somebody thinks now: the last entry on one question that was not taken back."""

    feedback: Feedback
    stale: str | None  # why it no longer fits: another text, an older revision; None: it fits


@dataclass(frozen=True)
class ExampleView:
    """All that the instance screen shows about one example."""

    place: int
    example: Example
    text_hash: str  # of what was shown: answers carry it
    prediction: Prediction | None
    attribution: Attribution | None  # of the explanation set asked for; where `hidden`, strengths without direction
    scale: float | None
    state: State
    mine: tuple[Opinion, ...]  # my votes, reviews and labels of this example
    everywhere: tuple[Opinion, ...]  # my votes on words of this example that count everywhere
    others: tuple[Opinion, ...]  # everybody else's, where I may see them
    warnings: tuple[str, ...]  # one word only, mostly unknown words, cut off, control words …
    previous: int | None  # places of the neighbours under the same filter
    following: int | None
    hidden: bool = False  # what the model says is not told before I have judged the words (explanation first)


@dataclass(frozen=True)
class NextPlace:
    """What to judge next."""

    place: int | None
    until: str | None  # when the reservation ends
    message: str  # why there is none


@dataclass(frozen=True)
class NextRequest:
    """Ask for an example that still needs me."""

    filter: Filter = field(default_factory=lambda: Filter(correct=True))
    after: Annotated[int, Field(ge=0, lt=1_000_000, strict=True)] | None = None  # begin behind this place


# -- feedback


@dataclass(frozen=True)
class NewFeedback:
    """One answer, sent as often as needed under one key."""

    key: Key
    says: Answer
    revision: Secret
    text_hash: Secret | None = None
    seconds: Annotated[float, Field(ge=0, le=86_400, strict=True)] | None = None
    expects: str | None = None  # id of the entry I believe is mine and current on this question, "" for none


@dataclass(frozen=True)
class Retraction:
    """Take back an entry of mine: a named one, or my latest that stands. What I said before it holds again."""

    key: Key
    retracts: str | None = None
    example: str | None = None  # my latest on this example
    clear: Annotated[bool, Field(strict=True)] = False  # with `retracts`: all that I ever said on its question


@dataclass(frozen=True)
class Saved:
    """What is stored now."""

    feedback: Feedback | None  # the entry that this request made; None: there was nothing to take back
    opinion: Opinion | None  # what now stands on that question
    state: State | None  # of the example, if it is about one
    progress: Progress


@dataclass(frozen=True)
class History:
    """Entries of the log, newest first."""

    items: tuple[Feedback, ...]
    next: str | None


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    stored: int
    known: int  # were there already
    refused: tuple[str, ...]  # a sentence each, the first hundred


# -- words


@dataclass(frozen=True)
class WordRow:
    """A word of the task explanation."""

    word: str
    score: float
    spread: float
    count: int
    correct: float | None
    z: float | None
    weight: float | None  # these four where the word is a suspect
    coverage: float | None
    disagreement: float | None
    damage: float | None
    vote: Literal["raise", "lower"] | None  # mine, everywhere
    conflicts: int  # votes on single examples, as far as I may see them, that say the opposite of mine everywhere


@dataclass(frozen=True)
class WordPage:
    """Some ranked words and where to go on."""

    label: str
    explained: ExplanationSet | None  # None: nothing has been ranked yet
    items: tuple[WordRow, ...]
    next: str | None
    total: int


@dataclass(frozen=True)
class WordView:
    """What a vote on a word would touch, and who has voted how."""

    word: str
    label: str
    row: WordRow | None
    texts: int  # that contain it
    correct: int  # of these, predicted right: a raise touches only them
    counted: bool  # False: there are more; not all texts could be looked at in the time
    scores: tuple[float, ...]  # of the word in explained texts that contain it, for drawing their spread
    opinion: Opinion | None  # mine, everywhere
    raised_here: int  # votes on single examples, as far as I may see them
    lowered_here: int


# -- team and data


@dataclass(frozen=True)
class Teammate:
    """What one person has done."""

    name: str
    judged: int
    votes: int
    skipped: int
    flagged: int
    median_seconds: float | None
    last: str | None
    agreement: float | None  # share of the questions answered by several where this person is with the majority


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha for one kind of feedback; None where it is not defined, and why."""

    kind: str
    alpha: float | None
    low: float | None  # 95 % bootstrap interval
    high: float | None
    questions: int  # answered by at least two people
    people: int
    note: str


@dataclass(frozen=True)
class Disagreement:
    """A question on which people said opposite things."""

    subject: str  # the question: a `Ruling` names it
    kind: str
    place: int | None
    word: str | None
    label: str | None
    answers: tuple[tuple[str, str], ...]  # author, answer
    settled: str | None  # the manager's answer, once given


@dataclass(frozen=True)
class Team:
    """Who did what, and how far they agree."""

    people: tuple[Teammate, ...]
    agreement: tuple[Agreement, ...]
    disagreements: tuple[Disagreement, ...]
    by_day: tuple[tuple[str, str, int], ...]  # day, author, judgements
    seconds: tuple[tuple[str, float], ...]  # kind, seconds of single judgements (the latest 2,000): for a histogram


@dataclass(frozen=True)
class AsideRow:
    """A row of the data that was not read."""

    row: int
    file: str
    line: int | None
    reason: str
    detail: str


@dataclass(frozen=True)
class DataProblems:
    """What is doubtful about the data."""

    summary: str
    set_aside: tuple[tuple[str, int], ...]  # reason, rows
    first_set_aside: tuple[AsideRow, ...]
    notes: tuple[tuple[str, int], ...]  # note, examples
    repeated: int
    contradictions: int
    shared: tuple[tuple[str, str, int], ...]
    repeated_places: tuple[int, ...]
    contradicting_places: tuple[int, ...]
    labels: tuple[tuple[str, int], ...]
    unlabelled: int
    warnings: tuple[str, ...]  # single label, strong imbalance …


# -- jobs


@dataclass(frozen=True)
class NewJob:
    """Work for the worker: predict all; explain all, the first n or some places; rank words."""

    kind: Literal["predict", "explain", "words"]
    method: Name = "leave_one_out"
    options: dict[str, OptionValue] | None = None
    target: Name | None = None
    units: Literal["word", "phrase", "sentence"] = "word"
    places: tuple[Annotated[int, Field(ge=0, lt=1_000_000, strict=True)], ...] | None = None
    limit: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


@dataclass(frozen=True)
class MethodOption:
    """An option of a method, enough to draw a form field."""

    name: str
    kind: str
    default: OptionValue
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Method:
    """A way to explain, as the registry describes it."""

    name: str
    summary: str
    needs: tuple[str, ...]
    paper: str | None
    random: bool
    options: tuple[MethodOption, ...]
    usable: bool  # with the project's model
    unusable: str  # and if not, why
    warning: str = ""  # why not to trust it with this model, as the lab or an audit found; empty: nothing is known


# -- fixing


@dataclass(frozen=True)
class FixMethod:
    """A way to fix, and whether the feedback that is there gives it anything to do."""

    method: Method
    reads: tuple[str, ...]  # kinds of feedback
    answers: int  # usable ones of these kinds
    seconds: float | None  # what a run with default settings is estimated to take here; None: nothing to go by yet
    cheap: bool = False  # a baseline, to be measured beside the others


@dataclass(frozen=True)
class VoteUse:
    """A question about a word or a label as a fix would take it: what people said, taken together."""

    kind: Literal["word_vote", "relabel"]
    word: str | None
    label: str | None  # None: none of the labels fits, and the example is not to be trained on
    vote: Literal["raise", "lower"] | None
    place: int | None  # of the example; None: everywhere
    people: int  # who said so
    against: int  # who said the opposite
    ruled: bool  # a manager decided
    inherited: bool  # an earlier revision was trained on it, and it keeps being asked for
    texts: int  # training examples that it touches


@dataclass(frozen=True)
class PersonShare:
    """How much of the feedback is one person's, and how monotonous it is."""

    author: str
    answers: int
    share: float  # of everybody's answers
    by_kind: tuple[tuple[str, int, str, float], ...]  # kind, answers, the most frequent answer, its share


@dataclass(frozen=True)
class FeedbackUse:
    """What of the feedback a fix would use, and what it would leave out."""

    usable: int  # questions that are settled
    votes: tuple[VoteUse, ...]  # the first 500
    by_kind: tuple[tuple[str, int], ...]  # settled questions
    people: tuple[PersonShare, ...]
    agreement: tuple[Agreement, ...]
    stale: tuple[tuple[str, int], ...]  # why answers were left out, and how many
    undecided: int  # questions on which as many people said one thing as the other
    inherited: int


@dataclass(frozen=True)
class FixOffer:
    """All that the screen Fix needs before a run."""

    methods: tuple[FixMethod, ...]
    training: tuple[MethodOption, ...]  # options that all ways to fix share
    feedback: FeedbackUse
    train: int  # labelled examples to train on
    held_out: int  # labelled examples that verify
    expectations: tuple[str, ...]  # as they were written down last
    cannot: str  # why nothing can be fixed; empty: it can


@dataclass(frozen=True)
class NewFix:
    """A training that listens to the feedback."""

    fix: Name
    options: dict[str, OptionValue] | None = None
    training: dict[str, OptionValue] | None = None
    people: tuple[Name, ...] | None = None  # whose answers; None: everybody's
    rivals: tuple[Name, ...] = ()  # cheap fixes to be measured beside it
    strengths: tuple[Annotated[float, Field(ge=0, le=1000)], ...] = ()  # of this fix, for a curve of the trade-off
    seeds: Annotated[int, Field(ge=1, le=10, strict=True)] = 1
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0
    expectations: tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...] = ()


@dataclass(frozen=True)
class LossPoint:
    """How a training went up to a step."""

    step: int
    task: float
    extra: float | None  # the loss on explanations
    run: str  # which training of the job: the fix itself, a rival, another seed


@dataclass(frozen=True)
class LossCurve:
    """The losses of a training as it goes, thinned out to at most some hundred points."""

    job: str
    points: tuple[LossPoint, ...]
    epochs: tuple[str, ...]  # a sentence for each finished epoch


@dataclass(frozen=True)
class RevisionView:
    """A version of the model in the tree."""

    name: str  # r0, r1, …: its address
    revision: Revision
    state: Literal["current", "published", "proposed"]
    at: str
    size: int  # bytes
    headline: tuple[Measure, ...]  # accuracies over whole sets, from the report that it was proposed with
    report: str | None  # name of the revision that it was compared with first; None: never compared
    worse: int  # measures that fell beyond their interval in that report
    problem: str  # what is wrong with its files; empty: nothing


@dataclass(frozen=True)
class Revisions:
    """The tree of revisions, and where going back leads."""

    items: tuple[RevisionView, ...]  # oldest first
    current: str
    back_to: str | None  # the revision that was current before this one
    reports: tuple[tuple[str, str], ...]  # pairs of names, before and after, that have been compared


@dataclass(frozen=True)
class Publish:
    """Make a revision the one in use."""

    expects: Name  # the revision that is believed to be in use
    even_so: Annotated[bool, Field(strict=True)] = False  # although its report says that something got worse


@dataclass(frozen=True)
class NewComparison:
    """Compare two revisions."""

    before: Name
    after: Name
    expectations: tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...] = ()


@dataclass(frozen=True)
class NewExport:
    """What to put into an export."""

    revision: Name
    model: Annotated[bool, Field(strict=True)] = True
    feedback: Annotated[bool, Field(strict=True)] = True
    report: Annotated[bool, Field(strict=True)] = True
    flips: Annotated[bool, Field(strict=True)] = False  # with their ratings; they become an export of their own


@dataclass(frozen=True)
class Export:
    """Something to take away, complete and checked."""

    name: str  # its address
    revision: str  # name of the revision
    at: str
    size: int
    files: int
    parts: tuple[str, ...]  # model, feedback, report; or flips
    checked: str  # what was checked, in a sentence


# -- flipping

Position = Annotated[int, Field(ge=0, lt=1_000_000, strict=True)]
FlipId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class FlipQuery(BaseModel):
    """A page of counterfactuals: the query of `GET flips`. Every field narrows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: Annotated[int, Field(ge=0, lt=1_000_000)] | None = None  # of the example
    revision: Name | None = None  # id or name; None: the one in use
    method: Name | None = None  # the generator
    flips: bool | None = None  # whether the prediction changed as it was to
    rated: bool | None = None  # by me
    waiting: bool | None = None  # not rated by me, and by fewer people than judge each example
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class DeskQuery(Filter):
    """One example to be rewritten and its neighbours under a filter: the query of `GET examples/{place}/flips`."""

    sort: Sort = "order"
    explained: Name | None = None  # the explanation set that rationales are of; None: the newest that has this text
    rationale: Name = "top_share"  # which of its words are the rationale
    revision: Name | None = None  # whose flips; None: the one in use


@dataclass(frozen=True)
class FlipView:
    """A counterfactual with what people say about it."""

    id: str  # what a rating names
    place: int  # of its example
    original: Example
    text_hash: str  # of the original: ratings carry it
    flip: Counterfactual
    flips: bool  # the prediction changed as it was to; otherwise it is the best attempt
    margin: float  # how far the model is from the boundary after the edits
    by: str  # who asked for it
    at: str
    mine: Opinion | None  # my rating
    others: tuple[Opinion, ...]  # everybody else's, where I may see them
    ratings: int  # as far as I may see them, mine among them
    stale: str | None  # why it no longer fits: another text, an older revision; None: it fits


@dataclass(frozen=True)
class FlipPage:
    """Some counterfactuals and where to go on."""

    items: tuple[FlipView, ...]
    next: str | None
    total: int


@dataclass(frozen=True)
class FlipDot:
    """A counterfactual in the chart of all."""

    id: str
    place: int
    method: str
    before: str  # labels
    after: str
    probability: float  # of the label after the edits
    edits: int  # words changed
    share: float  # of the example's words that were changed
    similarity: float | None
    perplexity: float | None
    flips: bool
    rated: bool  # by me


@dataclass(frozen=True)
class FlipChart:
    """All counterfactuals of a revision by probability and distance; of very many, the newest."""

    revision: str
    dots: tuple[FlipDot, ...]
    total: int


@dataclass(frozen=True)
class Sentence:
    """A sentence of an example: some of its words, by number."""

    words: tuple[int, ...]
    part: Part
    rationale: tuple[int, ...]  # those of them that are in the rationale
    weight: float  # its share of the example's absolute scores; 0 where nothing is explained


@dataclass(frozen=True)
class FlipDesk:
    """All that the screen Flips shows about one example before anything is rewritten."""

    place: int
    example: Example
    text_hash: str
    prediction: Prediction | None
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    sentences: tuple[Sentence, ...]
    rationale: Rationale | None
    explained: str | None  # id of the explanation set that the rationale is of
    no_rationale: str  # why there is none; empty: there is one
    flips: tuple[FlipView, ...]  # those there are, newest first, 50 at most
    previous: int | None
    following: int | None
    hidden: bool = False  # what the model says, and with it the flips, is not told before I have judged the words


@dataclass(frozen=True)
class FlipOffer:
    """The ways to look for flips, and what can be set."""

    methods: tuple[Method, ...]  # generators
    search: tuple[MethodOption, ...]  # options that all of them share
    rationales: tuple[Method, ...]
    cannot: str  # why nothing can be looked for; empty: it can


@dataclass(frozen=True)
class NewFlips:
    """A search for flips: of all examples, the first n, or some places. Masks and first edits are for one place."""

    method: Name = "hotflip"
    options: dict[str, OptionValue] | None = None  # of the generator
    search: dict[str, OptionValue] | None = None
    target: Name | None = None  # None: any other label than the predicted one
    places: Annotated[tuple[Position, ...], Field(min_length=1, max_length=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    editable: Annotated[tuple[Position, ...], Field(max_length=20_000)] | None = None  # words that may be changed
    reads: Annotated[tuple[Position, ...], Field(max_length=20_000)] | None = None  # words that the model is shown
    edits_in: Literal["all", "rationale"] = "all"  # the same without naming words
    reads_in: Literal["all", "rationale"] = "all"
    attribution: Name = "leave_one_out"  # that a rationale is of
    rationale: Name = "top_share"
    start: Annotated[tuple[Edit, ...], Field(max_length=12)] = ()  # go on from these edits
    keep: Annotated[int, Field(ge=1, le=20, strict=True)] = 1  # of each example
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


@dataclass(frozen=True)
class RiskView:
    """What ratings of a revision's flips come to, and what that was before the fix that made it."""

    revision: str  # its id
    own: bool  # of my ratings only, for I may not see other people's
    flips: int  # rewritten texts there are of this revision, rated or not
    risk: Risk  # of its riskiest examples, a hundred are told
    places: dict[str, int]  # where these are, by their ids
    before: Risk | None  # of the revision that it was made from; None: it was not made from one
    change: RiskChange | None
    verdict: Literal["better", "worse", "same"] | None


# -- neighbours: the training examples behind what a model says

CopyId = FlipId


@dataclass(frozen=True)
class NewTrace:
    """Look for the training examples behind some examples: hand-picked places, or some that are chosen."""

    method: Name = "projected_gradients"
    options: dict[str, OptionValue] | None = None
    places: Annotated[tuple[Position, ...], Field(min_length=1, max_length=1000)] | None = None  # hand-picked
    anchors: Annotated[int, Field(ge=1, le=1000, strict=True)] = 5  # how many to choose, where none are picked
    wrong: bool = True  # only among those that are predicted wrong
    split: Name | None = None  # None: all but the training split
    heuristic: Name | None = None  # only among those that have this pattern
    heuristic_options: dict[str, OptionValue] | None = None
    of: Literal["label", "prediction"] = "label"
    top: Annotated[int, Field(ge=1, le=50, strict=True)] = 10
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


class AnchorQuery(BaseModel):
    """A page of anchors, the examples that were traced: the query of `GET anchors`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: Name | None = None  # None: the one in use
    waiting: bool | None = None  # some of their neighbours are not rated by me yet
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


@dataclass(frozen=True)
class AnchorRow:
    """An example that was traced, in a list."""

    place: int
    id: str
    snippet: str
    label: str | None  # the given one
    predicted: str | None  # None as well where the words are to be judged first
    neighbours: int  # helpful ones that can be rated
    rated: int  # of them, by me
    heuristics: tuple[str, ...]  # patterns that it has


@dataclass(frozen=True)
class AnchorPage:
    """Some anchors and where to go on."""

    items: tuple[AnchorRow, ...]
    next: str | None
    total: int
    pairs: int  # neighbours of all anchors that can be rated
    rated: int  # of them, by me


@dataclass(frozen=True)
class NeighbourView:
    """A training example beside an anchor, with what people say of the two."""

    place: int  # of the training example
    rank: int  # from 1
    score: float  # positive helped
    example: Example
    taught: str | None  # the label that the revision was taught it with, maybe a corrected one; None: none
    text_hash: str  # of the training example: a rating of the two is sent with this one
    prediction: Prediction | None
    heuristics: tuple[str, ...]  # patterns that both have
    mine: Opinion | None  # my rating of the two
    others: tuple[Opinion, ...]  # everybody else's, where I may see them
    relabelled: Opinion | None  # what I said of its label
    copies: int  # made of it so far; where I may not see others' answers, as many as mine ask for at most


@dataclass(frozen=True)
class AnchorView:
    """All that the screen Neighbours shows about one anchor."""

    place: int
    example: Example
    text_hash: str
    prediction: Prediction | None
    heuristics: tuple[str, ...]
    label: str  # the label that was traced
    recipe: Recipe
    notes: tuple[str, ...]
    helpful: tuple[NeighbourView, ...]
    harmful: tuple[NeighbourView, ...]
    stale: str | None  # why it no longer fits: another text, an older revision; None: it fits
    previous: int | None  # anchors
    following: int | None
    hidden: bool = False  # what the model says is not told before I have judged it, or a neighbour of it


@dataclass(frozen=True)
class NeighbourOffer:
    """The ways to look for training examples, to choose anchors and to make copies."""

    methods: tuple[Method, ...]  # influences
    heuristics: tuple[Method, ...]
    augmentations: tuple[Method, ...]
    doubts: tuple[Method, ...]
    copies_per_point: int  # copies that one point of similarity makes in this project
    cannot: str  # why nothing can be traced; empty: it can
    cannot_doubt: str  # why no label can be doubted; empty: it can


@dataclass(frozen=True)
class NewCopies:
    """Make copies of the training examples that people rated: of all, or of some places."""

    method: Name = "synonyms"
    options: dict[str, OptionValue] | None = None
    copies_per_point: Annotated[int, Field(ge=1, le=50, strict=True)] | None = None  # the project's, by managers
    places: Annotated[tuple[Position, ...], Field(min_length=1, max_length=1000)] | None = None  # training examples
    check: Literal["none", "model", "language_model"] = "model"  # whether the label still holds
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


class CopyQuery(BaseModel):
    """A page of copies: the query of `GET copies`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: Annotated[int, Field(ge=0, lt=1_000_000)] | None = None  # of the training example
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


@dataclass(frozen=True)
class CopyView:
    """A copy beside the training example it was made from."""

    id: str
    place: int  # of the training example
    original: Example
    copy: Copy
    edited: bool  # by hand
    by: str
    at: str
    stale: str | None  # why it is not trained on: its source changed, or is not rated any more; None: it is


@dataclass(frozen=True)
class CopyPage:
    """Some copies and where to go on."""

    items: tuple[CopyView, ...]
    next: str | None
    total: int
    sources: int  # training examples that have copies
    doubtful: int  # copies whose label may not hold, as the check says


@dataclass(frozen=True)
class CopyChange:
    """A copy rewritten by hand."""

    seen: Name  # the `at` of the copy as I saw it: somebody else may have changed it since
    text: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    pair: Annotated[str, StringConstraints(max_length=20_000)] | None = None


# -- label errors


@dataclass(frozen=True)
class NewDoubts:
    """Rank the training examples by how likely their label is wrong."""

    signs: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10)] | None = None  # None: the default ones
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


class DoubtQuery(BaseModel):
    """A page of training examples, the most doubtful first: the query of `GET doubts`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: Name | None = None  # None: the one in use
    label: Name | None = None  # only with this given label
    waiting: bool | None = None  # not judged by me yet
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


@dataclass(frozen=True)
class DoubtView:
    """A training example whose label may be wrong."""

    place: int
    rank: int  # from 1, among all that were looked at
    example: Example
    text_hash: str
    prediction: Prediction | None
    doubt: Doubt
    mine: Opinion | None  # what I said of its label
    others: tuple[Opinion, ...]  # where I may see them
    stale: str | None
    hidden: bool = False  # what the model says, and what speaks for another label, is not told before I have judged it


@dataclass(frozen=True)
class DoubtPage:
    """Some doubts and where to go on."""

    items: tuple[DoubtView, ...]
    next: str | None
    total: int
    judged: int  # by me
    recipe: Recipe | None  # None: nobody has looked yet


# -- bugs: audits, the lab, verdicts

AuditId = FlipId


@dataclass(frozen=True)
class NewAudit:
    """Look for what can be said against a revision: by all checks that can be run here, or by some."""

    revision: Name | None = None  # its name; None: the one in use
    checks: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)] | None = None
    options: dict[Name, dict[Name, OptionValue]] | None = None  # of checks, by their names
    method: Name | None = None  # the explanation method that checks use and put to the test; None: the usual one
    limit: Annotated[int, Field(ge=10, le=20_000, strict=True)] = 5000  # examples to look at
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


@dataclass(frozen=True)
class AuditRow:
    """An audit in a list."""

    id: str
    revision: str  # id
    name: str  # of the revision: r0, r1 …; empty: it is not there any more
    at: str  # when it began
    by: str
    complete: bool  # False: some checks have not run, because it still runs or was stopped
    job: str | None  # id of the job that makes it; None: it was made on the command line
    worst: Severity | None
    high: int  # findings of each severity
    medium: int
    low: int
    examples: int
    training: int


@dataclass(frozen=True)
class AuditView:
    """An audit as far as it has come; its findings come in pages of their own."""

    row: AuditRow
    checks: tuple[CheckRun, ...]  # in the order they run; those that wait are there from the start
    notes: tuple[str, ...]
    recipe: Recipe | None
    job: Job | None  # that makes it, if it is still known


class AuditQuery(BaseModel):
    """Which audits: the query of `GET audits` and of `GET audit`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: Name | None = None  # id or name; None: all of them in a list, and the one in use for a single one


class FindingQuery(BaseModel):
    """A page of findings, the severest first: the query of `GET audits/{id}/findings`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    severity: Severity | None = None
    check: Name | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


@dataclass(frozen=True)
class FindingView:
    """A finding, and where the examples are that it names."""

    id: str
    finding: Finding
    places: dict[str, int]  # by the ids of its examples and of those that were changed


@dataclass(frozen=True)
class FindingPage:
    """Some findings and where to go on."""

    items: tuple[FindingView, ...]
    next: str | None
    total: int


@dataclass(frozen=True)
class FindingPair:
    """The same thing, found by both of two audits."""

    before: FindingView
    after: FindingView


@dataclass(frozen=True)
class AuditChange:
    """What became of the findings of one audit in another: whether a fix did what it was for."""

    before: AuditRow
    after: AuditRow
    gone: tuple[FindingView, ...]  # of the first, and the same check finds them no more
    new: tuple[FindingView, ...]  # of the second, and the same check did not find them before
    stayed: tuple[FindingPair, ...]
    unknown: tuple[FindingView, ...]  # of either, and their check did not run in the other


@dataclass(frozen=True)
class AuditOffer:
    """What an audit can do here."""

    checks: tuple[Method, ...]
    methods: tuple[Method, ...]  # explanation methods to be used and put to the test
    examples: int  # that are not for training, and can be looked at
    training: int  # examples that are
    cannot: str  # why nothing can be audited; empty: it can


@dataclass(frozen=True)
class NewLab:
    """Plant bugs into copies of the model in use and its data, and see which explanation notices which."""

    bugs: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)] | None = None  # None: the usual ones
    methods: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)] | None = None  # None: the usual ones
    examples: Annotated[int, Field(ge=10, le=1000, strict=True)] = 100  # explained for each bug
    limit: Annotated[int, Field(ge=20, le=20_000, strict=True)] = 2000  # training examples
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


@dataclass(frozen=True)
class LabView:
    """Which explanation sees which bug, and where the examples are that show it."""

    id: str
    name: str  # of the revision; empty: it is not there any more
    at: str
    by: str
    lab: Lab
    places: dict[str, int]  # of the examples that the lab names, by their ids, as far as they are the project's


@dataclass(frozen=True)
class LabOffer:
    """What the lab can plant and compare here."""

    bugs: tuple[Method, ...]
    methods: tuple[Method, ...]  # explanation methods
    examples: int  # held out, that can be explained
    training: int
    cannot: str  # why nothing can be planted; empty: it can


@dataclass(frozen=True)
class VerdictReason:
    """How many people gave a reason."""

    reason: Reason
    people: int
    share: float  # of those who gave a verdict in this condition


@dataclass(frozen=True)
class VerdictCondition:
    """What people say of one revision, having seen one kind of explanation in one order."""

    revision: str  # id
    name: str  # r0, r1 …; empty: it is not there any more
    method: str | None  # None: no explanation was shown
    explanation_first: bool
    counts: tuple[int, int, int, int, int]  # from definitely not to definitely
    people: int
    median: float
    low: float  # quartiles
    high: float
    reasons: tuple[VerdictReason, ...]  # all five


@dataclass(frozen=True)
class VerdictSummary:
    """Would people deploy the model, by condition, and why."""

    own: bool  # of my verdicts only, for I may not see other people's
    conditions: tuple[VerdictCondition, ...]  # revisions in their order; without an explanation first
    people: int
    agreement: Agreement | None  # over the conditions; None: it would tell of other people's verdicts
    said: tuple[Opinion, ...]  # the verdicts that I may see, mine among them, newest first, 200 at most
