"""What a project holds, opened without loading a model: examples, predictions, explanations, feedback, revisions.

The server lives on this; `Project` adds the verbs that need a model. A folder has `project.json` (what it is),
`models/` (revisions, each whole or absent, one of them current), and the database (`unhans.sqlite`, or a schema of a
PostgreSQL server that must then be given whenever the project is opened).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Self

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import Connection

from unhans.artefacts import Artefacts
from unhans.errors import BadOption, Conflict, NotFound, ProjectProblem
from unhans.feedback import (
    agreement_by_kind,
    contributions,
    copies_wanted,
    disagreements,
    person_agreement,
    settle,
    settle_neighbours,
    stale_reason,
    subject_of,
)
from unhans.records.audit_views import AuditViews
from unhans.records.auditing import AuditTable, KnownAudits, LabTable
from unhans.records.examples import ExampleTable
from unhans.records.explained import ExplanationTable, WordOrder, without_label, word_row
from unhans.records.flip_views import FlipViews
from unhans.records.flipping import FlipTable, KnownFlips, by_flip
from unhans.records.judging import FeedbackLog, check_answer
from unhans.records.parts import Parts, count_parts, divide, texts_with, training_groups
from unhans.records.revising import (
    USABLE,
    CurveTable,
    KnownFixes,
    ReportTable,
    SortedOut,
    ancestors,
    by_question,
    exported,
    must_be_compared,
    sort_out,
    tree,
    vote_use,
)
from unhans.records.trace_views import TraceViews, copy_problem
from unhans.records.tracing import CopyTable, DoubtTable, KnownTraces, StoredCopy, TraceTable
from unhans.risk import assess
from unhans.shapes import (
    Agreement,
    Disagreement,
    ExampleView,
    ExplanationSet,
    Export,
    FeedbackUse,
    Filter,
    FixOffer,
    LossCurve,
    Method,
    Opinion,
    PersonShare,
    ProjectFacts,
    ProjectSettings,
    Revisions,
    Sort,
    Team,
    Teammate,
    WordPage,
    WordView,
)
from unhans.store import Store
from unhans.store.schema import settings
from unhans.text import Words, visible_form
from unhans.types import (
    Answer,
    Audit,
    Copy,
    Counterfactual,
    Doubt,
    Example,
    Feedback,
    FlipRating,
    Influence,
    Lab,
    NeighbourRating,
    Relabel,
    Report,
    Review,
    Revision,
    Risk,
    Verdict,
    WordVote,
    from_json,
)

FACTS = "project.json"
FORMAT = 2
_MUCH_UNKNOWN = 0.3
_SECONDS_SHOWN = 2000
_SCORES_SHOWN = 300
_VOTES_SHOWN = 500
_RISKS = 100  # that are remembered: each takes some tenths of a second
_TEACHES = ("word_vote", "word_vote_everywhere", "relabel")  # kinds of questions that a fix reads


class Records:
    """A project's folder and database."""

    def __init__(self, folder: Path, facts: dict[str, Any], store: Store) -> None:
        self.folder, self.facts, self.store = folder, facts, store
        self.models, self.exports = Artefacts(folder / "models"), Artefacts(folder / "exports")
        self.table = ExampleTable(store)
        self.explained = ExplanationTable(store)
        self.log = FeedbackLog(store, self.table)
        self.reports, self.curves, self.flip_table = ReportTable(store), CurveTable(store), FlipTable(store)
        self.trace_table, self.copy_table, self.doubt_table = TraceTable(store), CopyTable(store), DoubtTable(store)
        self.audit_table, self.lab_table = AuditTable(store), LabTable(store)
        self._risks: dict[tuple[str, float, str | None], tuple[tuple[int, int], Risk]] = {}  # with what it is of
        self._current: tuple[tuple[int, int], Revision] | None = None  # with the pointer that said so

    @classmethod
    def open(cls, folder: str | Path, *, database: str | None = None) -> Self:
        """The project in a folder, or a sentence why there is none. `database` is the server it was made with."""
        path = Path(folder).expanduser()
        facts = read_facts(path)
        schema = facts["schema"]
        check_database(path, schema, database)
        store = Store.open(path, database=database, schema=schema or "unhans")
        project = cls(path, facts, store)
        try:
            project.revisions  # noqa: B018 - a project without a readable model is told of now
        except BaseException:
            store.close()
            raise
        return project

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.facts["name"])

    @property
    def revisions(self) -> list[Revision]:
        """All versions of the model, oldest first."""
        found = [_revision(version.facts, version.name) for version in self.models.versions]
        if not found:
            raise ProjectProblem(f"{self.folder} has no whole model in models/. Bring it back from a backup.")
        return found

    @property
    def current(self) -> Revision:
        """The revision in use."""
        pointer = self.folder / "models" / "current"
        if self._current and self._current[0] == _moment(pointer):
            return self._current[1]
        seen = _moment(pointer) if pointer.exists() else (0, 0)  # before it is read: what comes later is noticed
        version = self.models.current
        if version is None:
            raise ProjectProblem(f"{self.folder} has no model in use. Bring models/ back from a backup.")
        self._current = seen, _revision(version.facts, version.name)
        return self._current[1]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The model's labels; every revision has the same."""
        return self.current.labels

    @property
    def current_name(self) -> str:
        """Name of the revision in use: r0, r1, …"""
        return self.models.pointed or ""

    def named(self, name: str) -> Revision:
        """The revision of this name, published or proposed; `NotFound` if there is none that is whole."""
        version = self.models.get(name)
        return _revision(version.facts, version.name)

    def revision_id(self, given: str | None = None) -> str:
        """The id of a revision, published or proposed, by its id or name; without one, of the revision in use."""
        if given is None or given == self.current.id:
            return self.current.id
        found = next((revision.id for name, revision in self._listed() if given in (name, revision.id)), None)
        if found is None:
            raise NotFound("There is no such revision of the model.")
        return found

    # -- settings

    def setting(self, name: str) -> Any:
        """What is kept under a name; None if nothing is."""
        with self.store.read() as connection:
            found = connection.execute(sa.select(settings.c.value).where(settings.c.name == name)).scalar()
        return None if found is None else json.loads(found)

    def keep_setting(self, name: str, value: Any) -> None:
        """Keep a value under a name, in place of an earlier one."""

        def act(connection: Connection) -> None:
            self.store.lock(connection, "settings")
            connection.execute(settings.delete().where(settings.c.name == name))
            connection.execute(settings.insert().values(name=name, value=json.dumps(value)))

        self.store.write(act)

    @property
    def settings(self) -> ProjectSettings:
        """What was decided about the judging."""
        found = self.setting("judging")
        return ProjectSettings(**found) if found else ProjectSettings()

    def change_settings(self, new: ProjectSettings) -> None:
        """Decide otherwise about the judging."""
        self.keep_setting("judging", asdict(new))

    def methods(self) -> list[Method]:
        """The explanation methods, as a process that had them loaded described them, and what speaks against each."""
        found: list[Method] = TypeAdapter(list[Method]).validate_python(self.setting("methods") or [])
        warnings = self.method_warnings()
        return [replace(method, warning=warnings.get(method.name, "")) for method in found]

    # -- what screens need

    def told(self, address: str, author: str) -> ProjectFacts:
        """What the project is and how far it has come, for somebody."""
        current = self.current
        predicted, accuracy = self.table.accuracy(current.id)
        return ProjectFacts(
            name=address,
            title=self.name,
            labels=current.labels,
            revisions=tuple(self.revisions),
            current=current.id,
            examples=self.table.count(),
            predicted=predicted,
            splits=self.table.splits(),
            accuracy=accuracy,
            explained=self.explained.sets(current.id),
            settings=self.settings,
            progress=self.log.progress(author),
            notes=self.facts["notes"],
        )

    def example_view(
        self,
        place: int,
        *,
        author: str,
        sees_others: bool,
        words_first: bool = False,
        explained: str | None = None,
        wanted: Filter | None = None,
        sort: Sort = "order",
    ) -> ExampleView:
        """All that the screen of one example shows to somebody.

        With `words_first`, neither what the model says nor what others said before the person has judged the words.
        """
        current = self.current
        example, prediction = self.table.at(place), self.table.prediction(place, current.id)
        hidden = words_first and not self.table.judged(author, [example.id])
        chosen = self.explained.set(explained) if explained else None
        words = Words(example)
        attribution = self.explained.one(chosen.id, example.text_hash) if chosen else None
        about = self.log.opinions(example=example.id)
        others = [one for one in about if sees_others and not hidden and one.author != author]
        everywhere = self.log.opinions(author=author, words=words.strings)
        before, after = self.table.neighbours(place, wanted or Filter(), revision=current.id, author=author, sort=sort)
        warnings = list(example.notes)
        if len(words) == 1:
            warnings.append("Only one word: there is nothing to compare it with.")
        unknown = self.table.unknown_share(place, current.id)
        if unknown is not None and unknown > _MUCH_UNKNOWN:
            warnings.append(f"{unknown:.0%} of this text is unknown to the model.")
        return ExampleView(
            place=place,
            example=example,
            text_hash=example.text_hash,
            prediction=None if hidden else prediction,
            attribution=without_label(attribution) if hidden and attribution else attribution,
            scale=chosen.scale if chosen else None,
            state=self.log.state(author, example.id),
            mine=tuple(self.opinion(one, example.text_hash) for one in about if one.author == author),
            everywhere=tuple(self.opinion(one) for one in everywhere),
            others=tuple(self.opinion(one, example.text_hash) for one in others),
            warnings=tuple(warnings),
            previous=before,
            following=after,
            hidden=hidden,
        )

    def check(self, says: Answer, revision: str) -> str | None:
        """Refuse an answer about what is not there; the hash of the text that it is about, if it is about one."""
        if isinstance(says, FlipRating):
            stored = self.flip_table.some([says.counterfactual]).get(says.counterfactual)
            check_answer(says, None, self.labels, flip=stored is not None)
            assert stored is not None
            if stored.flip.before.revision != revision:
                raise BadOption("This text was rewritten for another revision of the model. Reload it.")
            return stored.text_hash
        if isinstance(says, NeighbourRating):
            known = self.table.find([says.anchor, says.train])
            there = len(known) == 2 and self.trace_table.are_neighbours(known[says.anchor][0], says.train)
            check_answer(says, None, self.labels, neighbours=there)
            return known[says.train][1].text_hash
        if isinstance(says, Verdict):
            if says.model not in self.revision_names():
                raise NotFound("There is no such revision of the model. Reload the page.")
            if says.model != revision:
                raise BadOption("This verdict is about another revision than the one that was looked at. Reload it.")
            if says.method is not None and says.method not in {method.name for method in self.methods()}:
                raise BadOption("There is no such explanation method.")
        named = says.example if isinstance(says, WordVote | Relabel | Review) else None
        found = self.table.find([named]).get(named) if named is not None else None
        check_answer(says, found[1] if found else None, self.labels)
        return found[1].text_hash if found else None

    def opinion(self, entry: Feedback, text_hash: str | None = None) -> Opinion:
        """An entry with whether it still fits."""
        return Opinion(entry, stale_reason(entry, text_hash=text_hash, revision=self.current.id))

    def ranked_set(self, explained: str | None, label: str) -> ExplanationSet | None:
        """The set asked for, or the newest one that has words ranked for a label."""
        if explained:
            return self.explained.set(explained)
        return next((one for one in self.explained.sets(self.current.id) if label in one.ranked), None)

    def word_page(
        self,
        label: str,
        *,
        author: str,
        sees_others: bool,
        explained: str | None = None,
        order: WordOrder = "damage",
        search: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> WordPage:
        """Ranked words for a label, with somebody's votes on them."""
        self._check_label(label)
        chosen = self.ranked_set(explained, label)
        if chosen is None:
            return WordPage(label, None, (), None, 0)
        rows, onward, total = self.explained.words(
            chosen.id, label, order=order, search=search, cursor=cursor, limit=limit
        )
        votes = self.log.votes_on([row.word for row in rows], label, author, sees_others=sees_others)
        return WordPage(label, chosen, tuple(word_row(row, *votes[row.word]) for row in rows), onward, total)

    def word_view(
        self, word: str, label: str, *, author: str, sees_others: bool, explained: str | None = None
    ) -> WordView:
        """What a vote on a word would touch, and how people have voted."""
        self._check_label(label)
        if not visible_form(word):
            raise BadOption("A word must be given.")
        texts, correct, counted = self.table.with_word(word, self.current.id)
        mine, raised, lowered = self.log.votes_on([word], label, author, sees_others=sees_others)[word]
        chosen = self.ranked_set(explained, label)
        row = self.explained.word(chosen.id, label, word) if chosen else None
        scores = self.explained.scores_of(chosen.id, word, label, _SCORES_SHOWN) if chosen else ()
        own = [one for one in self.log.opinions(author=author, words=[word]) if _label_of(one) == label]
        return WordView(
            word=word,
            label=label,
            row=word_row(row, mine, raised, lowered) if row else None,
            texts=texts,
            correct=correct,
            counted=counted,
            scores=tuple(score for _, score in scores),
            opinion=self.opinion(own[-1]) if own else None,
            raised_here=raised,
            lowered_here=lowered,
        )

    def team(self) -> Team:
        """Who did what, and how far they agree."""
        entries, standing = list(self.log.entries()), self.log.opinions()
        people = sorted({entry.author for entry in entries})
        shares = {one.author: one.share for one in person_agreement(standing)}
        seconds = [(e.says.kind, e.seconds) for e in entries if e.seconds is not None and e.retracts is None]
        days = Counter((e.at[:10], e.author) for e in standing if isinstance(e.says, Review) and e.says.state == "done")
        return Team(
            people=tuple(_teammate(name, entries, standing, shares.get(name)) for name in people),
            agreement=tuple(Agreement(**asdict(one)) for one in agreement_by_kind(standing, words=self._word_count)),
            disagreements=tuple(self._disagreements(standing)),
            by_day=tuple((day, author, n) for (day, author), n in sorted(days.items())),
            seconds=tuple(seconds[-_SECONDS_SHOWN:]),
        )

    # -- flipping

    def flip_views(self, author: str, *, sees_others: bool, words_first: bool = False) -> FlipViews:
        """Counterfactuals as somebody may see them."""
        return FlipViews(self, author, sees_others, words_first)

    def flips(self, revision: str | None = None) -> list[Counterfactual]:
        """The counterfactuals of a revision, by its id or name, or of the one in use, in the order they were found."""
        return [stored.flip for stored in self.flip_table.all(self.revision_id(revision))]

    def risk(self, revision: str | None = None, *, width: float = 0.5, author: str | None = None) -> Risk:
        """What people's ratings of a revision's flips come to; with `author`, that person's ratings.

        `width` is that of the interval that is wished for: the risk says how many more ratings it takes.
        """
        chosen, state = self.revision_id(revision), self.log.state_of("flip_rating")
        known = self._risks.get((chosen, width, author))
        if known and known[0] == state:
            return known[1]
        ratings = self.log.opinions(author=author, kinds=("flip_rating",))
        rated = self.flip_table.some(by_flip(ratings))
        flips = {id_: one.flip for id_, one in rated.items() if one.flip.before.revision == chosen}
        about = self.table.find([flip.example for flip in flips.values()])
        groups = {id_: example.group for id_, (_, example) in about.items()}
        made = assess((one for one in ratings if _flip_of(one.says) in flips), flips, groups=groups, width=width)
        if len(self._risks) >= _RISKS:
            self._risks.clear()
        found = replace(made, revision=chosen)
        self._risks[chosen, width, author] = state, found
        return found

    def parent_of(self, revision: str) -> str | None:
        """The id of the revision that a revision was made from, if it was and if that is still there."""
        known = {one.id: one for _, one in self._listed()}
        parent = known[revision].parent if revision in known else None
        return parent if parent in known else None

    def known_flips(self) -> KnownFlips:
        """The ways to look for flips, as a process that had them loaded described them."""
        found = self.setting("flips")
        return KnownFlips() if found is None else TypeAdapter(KnownFlips).validate_python(found)

    # -- tracing

    def trace_views(self, author: str, *, sees_others: bool, words_first: bool = False) -> TraceViews:
        """Traces, copies and doubts as somebody may see them."""
        return TraceViews(self, author, sees_others, words_first)

    def known_traces(self) -> KnownTraces:
        """The ways to trace, to make copies and to doubt, as a process that had them loaded described them."""
        found = self.setting("traces")
        return KnownTraces() if found is None else TypeAdapter(KnownTraces).validate_python(found)

    def influences(self, revision: str | None = None) -> list[Influence]:
        """What was traced of a revision, by its id or name, or of the one in use, in the order of the examples."""
        return self.trace_table.all(self.revision_id(revision))

    def doubted(self, revision: str | None = None) -> list[Doubt]:
        """The training examples of a revision's ranking, those first whose label is the most doubtful."""
        return [one.doubt for one in self.doubt_table.all(self.revision_id(revision))]

    def copies(self, people: Sequence[str] | None = None) -> list[Copy]:
        """The copies that a fix may train on, in the order they were made; with `people`, by their ratings alone."""
        stored = [one for one in self.copy_table.all() if not one.deleted]
        places = list(dict.fromkeys(one.place for one in stored))
        sources = dict(zip(places, self.table.some(places), strict=True))
        problems = self.copy_problems(stored, sources, people)
        return [one.copy for one in stored if problems[one.id] is None]

    def copy_problems(
        self, stored: Sequence[StoredCopy], sources: Mapping[int, Example], people: Sequence[str] | None = None
    ) -> dict[str, str | None]:
        """Why each copy is not trained on, by id; None if it is. `sources` by place."""
        wanted, labels = self.copies_wanted(people), self.corrected(people)
        trains = {place: self.parts.trains(example) for place, example in sources.items()}
        order = self.copy_table.order(sources)
        return {
            one.id: copy_problem(
                one,
                sources[one.place],
                trains=trains[one.place],
                wanted=wanted.get(sources[one.place].id, 0),
                number=order[one.id],
                labels=labels,
            )
            for one in stored
        }

    def copies_wanted(self, people: Sequence[str] | None = None, per_point: float | None = None) -> dict[str, int]:
        """How many copies of which training examples people's ratings ask for, by id.

        Without `per_point`, so many for each point of similarity as were last asked for.
        """
        each = per_point or self.copies_per_point
        return copies_wanted(settle_neighbours(self._sorted_out(people, ("neighbour_rating", "ruling")).usable), each)

    @property
    def copies_per_point(self) -> int:
        """How many copies one point of similarity makes: as many as a manager last asked for."""
        return int(self.setting("copies_per_point") or self.known_traces().copies_per_point)

    def taught_labels(self, revision: str, examples: Sequence[str] | None = None) -> dict[str, str | None]:
        """The corrected labels that a revision (its id) was taught, of all or of some examples, by their ids.

        None: it was taught to do without the example. What was taken back since was taught even so.
        """
        taught = {id_ for _, one in self._listed() if one.id == revision for id_ in one.feedback}
        if not taught:
            return {}
        subjects = None if examples is None else [subject_of(Relabel(id_, "")) for id_ in examples]
        said = [one.says for one in self.log.entries(kind="relabel", subjects=subjects) if one.id in taught]
        return {says.example: says.label for says in said if isinstance(says, Relabel)}

    def corrected(self, people: Sequence[str] | None = None) -> dict[str, str | None]:
        """What people say the right label of an example is, by id; None if they say that no label fits."""
        settled, _ = settle(self._sorted_out(people, ("relabel", "ruling")).usable)
        return {one.says.example: one.says.label for one in settled if isinstance(one.says, Relabel)}

    def trains_on(self) -> int:
        """How many examples are for training."""
        return count_parts(self.store, self.parts)[0]

    def groups_to_train(self) -> list[str]:
        """The groups of the examples that are for training."""
        return training_groups(self.store, self.parts)

    # -- auditing

    def audit_views(self, author: str, *, sees_others: bool) -> AuditViews:
        """Audits, the lab and verdicts as somebody may see them."""
        return AuditViews(self, author, sees_others)

    def known_audits(self) -> KnownAudits:
        """The checks and bugs that there are, as a process that had them loaded described them."""
        found = self.setting("audits")
        return KnownAudits() if found is None else TypeAdapter(KnownAudits).validate_python(found)

    def audits(self, revision: str | None = None) -> list[Audit]:
        """The audits of a revision, by its id or name, or of all, newest first; those that were stopped among them."""
        chosen = None if revision is None else self.revision_id(revision)
        return [self.audit_table.one(facts.id).audit for facts in self.audit_table.listed(chosen)]

    def latest_audit(self, revision: str | None = None) -> Audit | None:
        """The newest audit of a revision, or of the one in use, complete or not; None: there is none."""
        found = self.audit_table.latest(self.revision_id(revision))
        return None if found is None else found.audit

    def latest_lab(self, revision: str | None = None) -> Lab | None:
        """What the lab last found out about a revision, or about the one in use; None: nothing."""
        found = self.lab_table.latest(self.revision_id(revision))
        return None if found is None else found.lab

    def method_warnings(self, revision: str | None = None) -> dict[str, str]:
        """Explanation methods not to be trusted with a revision, and why, as the lab and its audits found."""
        chosen = self.revision_id(revision)
        return self.audit_table.warnings(chosen) | self.lab_table.warnings(chosen)

    # -- fixing

    @cached_property
    def parts(self) -> Parts:
        """Which examples train, and which verify."""
        return divide(self.store)

    def usable_feedback(self, people: Sequence[str] | None = None) -> list[Feedback]:
        """What a fix may learn from: opinions that stand and fit, and those that the model in use was trained on.

        The latter are about an older revision, but must keep being asked for: the next training would unlearn them.
        With `people`, only theirs; rulings count whoever gave them.
        """
        return list(self._sorted_out(people).usable)

    def feedback_use(self, people: Sequence[str] | None = None) -> FeedbackUse:
        """What of the feedback a fix would use, and what it would leave out."""
        found = self._sorted_out(people)
        settled, undecided = settle(found.usable)
        kinds: Counter[str] = Counter(one.says.kind for one in settled)
        rated = by_flip(found.usable)  # each is a question of its own
        kinds += Counter(flip_rating=len(rated))
        pairs = by_question(one for one in found.usable if isinstance(one.says, NeighbourRating))
        kinds += Counter(neighbour_rating=len(pairs))
        each = [*rated.values(), *pairs.values()]
        questions = [*(one.ids for one in settled), *([one.id for one in own] for own in each)]
        shown = settled[:_VOTES_SHOWN]
        known = self.table.find([one.says.example for one in shown if one.says.example is not None])
        everywhere = [one.says for one in shown if isinstance(one.says, WordVote) and one.says.example is None]
        texts = texts_with(self.store, self.parts, {visible_form(vote.word) for vote in everywhere})
        votes = []
        for one in shown:
            place, example = known.get(one.says.example or "", (None, None))
            trains = example is not None and self.parts.trains(example)
            votes.append(vote_use(one, inherited=found.inherited, place=place, trains=trains, texts=texts))
        return FeedbackUse(
            usable=kinds.total(),
            votes=tuple(votes),
            by_kind=tuple(kinds.most_common()),
            people=tuple(PersonShare(**asdict(one)) for one in contributions(found.usable)),
            agreement=self._agreement(found.usable, people),
            stale=found.stale,
            undecided=undecided,
            inherited=sum(not found.inherited.isdisjoint(ids) for ids in questions),
        )

    def fix_offer(self, people: Sequence[str] | None = None) -> FixOffer:
        """All that somebody needs to know before a fix."""
        known, use = self.known_fixes(), self.feedback_use(people)
        train, held_out = count_parts(self.store, self.parts)
        return FixOffer(
            methods=known.offered(dict(use.by_kind), train=train, seconds_each=self.setting("pace")),
            training=known.training,
            feedback=use,
            train=train,
            held_out=held_out,
            expectations=tuple(self.setting("expectations") or ()),
            cannot=_cannot_fix(known, train),
        )

    def known_fixes(self) -> KnownFixes:
        """The ways to fix, as a process that had them loaded described them."""
        found = self.setting("fixes")
        return KnownFixes() if found is None else TypeAdapter(KnownFixes).validate_python(found)

    def revision_tree(self) -> Revisions:
        """All revisions, published and proposed, and where going back leads."""
        listed = [(version, _revision(version.facts, version.name)) for version in self.models.listed()]
        return tree(self.models, listed, self.reports)

    def report(self, before: str, after: str) -> Report:
        """What changed from one revision to another, by their names; `NotFound` if they have not been compared."""
        return must_be_compared(before, after, self.reports.one(before, after))

    def keep_report(self, before: str, after: str, report: Report) -> None:
        """Store what changed from one revision to another, in place of an earlier report on them."""
        self.reports.keep(before, after, report)

    def keep_curve(self, curve: LossCurve) -> None:
        """Store the losses of a job as far as it has come."""
        self.curves.keep(curve)

    def curve(self, job: str) -> LossCurve:
        """The losses of a job as far as it has come."""
        return self.curves.one(job)

    def export_list(self) -> list[Export]:
        """What can be taken away, newest first."""
        return exported(self.exports, {revision.id: name for name, revision in self._listed()})

    def publish(self, name: str, *, expects: str | None = None, even_so: bool = False) -> Revisions:
        """Make a revision the one in use: a human decision.

        `expects` is the revision that is believed to be in use; if somebody was faster, nothing happens but `Conflict`.
        So it is where the report says that something got worse, or where there is none, unless it is meant even so.
        """
        version = self.models.get(name)
        if not even_so:
            self._check_better(name, expects or self.current_name, proposed=version.number is None)
        self.models.publish(name, expects=expects)
        self._current = None
        return self.revision_tree()

    def roll_back(self, *, expects: str | None = None) -> Revisions:
        """Make the revision the one in use that was so before, in one step."""
        self.models.roll_back(expects=expects)
        self._current = None
        return self.revision_tree()

    def _check_better(self, name: str, before: str, *, proposed: bool) -> None:
        first = self.reports.first().get(name, (None, None))[1]
        report = self.reports.one(before, name) or (first if proposed else None)
        if report is None and proposed:
            raise Conflict(
                f"{name} has not been compared with {before} yet, so nobody knows what it made worse. Nothing was "
                "changed; compare them first, or publish it even so."
            )
        if report is not None and report.worse:
            worst = report.worse[0]
            where = f"{worst.name} on {worst.data}" + (f" ({worst.slice})" if worst.slice else "")
            more = f", and {len(report.worse) - 1} more" if len(report.worse) > 1 else ""
            raise Conflict(
                f"{name} made something worse: {where} went from {worst.before:.3g} to {worst.after:.3g}{more}. "
                "Nothing was changed; read the report, and publish it even so if that is worth it."
            )

    def revision_names(self) -> dict[str, str]:
        """What revisions are called, published and proposed, by their ids, oldest first."""
        return {revision.id: name for name, revision in self._listed()}

    def _listed(self) -> list[tuple[str, Revision]]:
        """All revisions with their names, published and proposed."""
        return [(version.name, _revision(version.facts, version.name)) for version in self.models.listed()]

    def _sorted_out(self, people: Sequence[str] | None, kinds: Sequence[str] = USABLE) -> SortedOut:
        standing = self.log.opinions(kinds=kinds)
        about = [one.says.example for one in standing if isinstance(one.says, WordVote | Relabel) and one.says.example]
        about += [one.says.train for one in standing if isinstance(one.says, NeighbourRating)]
        hashes = {id_: example.text_hash for id_, (_, example) in self.table.find(about).items()}
        hashes |= {id_: one.text_hash for id_, one in self.flip_table.some(by_flip(standing)).items()}
        every = [revision for _, revision in self._listed()]
        used = {id_ for one in ancestors(self.current, every) for id_ in one.feedback}
        return sort_out(standing, hashes=hashes, revision=self.current.id, inherited=used, people=people)

    def _agreement(self, usable: Sequence[Feedback], people: Sequence[str] | None) -> tuple[Agreement, ...]:
        """How far people agree on what a fix would use."""
        reviews = [one for one in self.log.opinions(kinds=("review",)) if people is None or one.author in people]
        finished = Counter(one.says.example for one in reviews if isinstance(one.says, Review))
        shared = self.table.find([id_ for id_, n in finished.items() if n > 1])
        counts = {id_: len(Words(example)) for id_, (_, example) in shared.items()}
        found = agreement_by_kind([*usable, *reviews], words=lambda id_: counts.get(id_, 0))
        return tuple(Agreement(**asdict(one)) for one in found if one.kind in _TEACHES)

    def _disagreements(self, standing: Sequence[Feedback]) -> list[Disagreement]:
        found = disagreements(standing)
        about = [_named(one.says) for one in found if not isinstance(one.says, FlipRating)]
        places = {id_: place for id_, (place, _) in self.table.find(about).items()}
        rated = {_flip_of(one.says) or "" for one in found}
        places |= {id_: one.place for id_, one in self.flip_table.some(rated).items()}
        return [
            Disagreement(
                subject=one.subject,
                kind=one.kind,
                place=places.get(_named(one.says)),
                word=one.says.word if isinstance(one.says, WordVote) else None,
                label=one.says.label if isinstance(one.says, WordVote) else None,
                answers=one.answers,
                settled=one.settled,
            )
            for one in found
        ]

    def _word_count(self, example: str) -> int:
        """How many words an example has: those that nobody marked count as agreement."""
        found = self.table.find([example]).get(example)
        return len(Words(found[1])) if found else 0

    def _check_label(self, label: str) -> None:
        if label not in self.labels:
            raise NotFound("The model has no such label.")


def check_database(folder: Path, schema: str | None, database: str | None) -> None:
    """Refuse to look for records where they are not."""
    if schema is not None and database is None:
        raise ProjectProblem(
            f"{folder} keeps its records on a PostgreSQL server. Give its address with --database or UNHANS_DATABASE."
        )
    if schema is None and database is not None:
        raise ProjectProblem(
            f"{folder} keeps its records in itself, not on a server. Leave --database and UNHANS_DATABASE out."
        )


def read_facts(folder: Path) -> dict[str, Any]:
    """What `project.json` says, or a sentence why it cannot be used."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProjectProblem(f"{folder} is not a project: it has no {FACTS}. Make one with `unhans init`.") from None
    except (OSError, ValueError) as error:
        raise ProjectProblem(f"The {FACTS} of {folder} cannot be read ({type(error).__name__}).") from error
    if isinstance(facts, dict) and facts.get("format") == 1:
        raise ProjectProblem(
            f"{folder} was made by unhans 0.1, which kept no database. Nothing was changed; make it anew: "
            "`unhans init NEW --model FOLDER/models/r0 --data FOLDER/data/examples.parquet`."
        )
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ProjectProblem(f"{folder} was made by another version of unhans. Nothing was changed; update unhans.")
    whole = (
        isinstance(facts.get("name"), str)
        and isinstance(facts.get("notes"), dict)
        and {"model", "schema"} <= set(facts)
    )
    if not whole or not isinstance(facts["schema"], str | None):
        raise ProjectProblem(f"The {FACTS} of {folder} is damaged: what it says cannot be read.")
    return facts


def _revision(facts: dict[str, Any], folder: str) -> Revision:
    try:
        return from_json(Revision, json.dumps(facts["revision"]))
    except (KeyError, ValueError) as error:
        raise ProjectProblem(f"The manifest of models/{folder} is damaged. Bring it back from a backup.") from error


def _moment(pointer: Path) -> tuple[int, int]:
    """Changes whenever the pointer is replaced; a clock alone is too coarse for that."""
    found = pointer.stat()
    return found.st_mtime_ns, found.st_ino


def _cannot_fix(known: KnownFixes, train: int) -> str:
    """Why nothing can be fixed; empty if it can."""
    if not known.methods:
        return "The ways to fix are not known here yet. Have the examples predicted once with this version of unhans."
    if not any(fix.method.usable for fix in known.methods):
        return known.methods[0].method.unusable
    if not train:
        return (
            "No labelled example is for training. Add labelled examples, in a split called train if there are splits."
        )
    return ""


def _flip_of(says: Answer) -> str | None:
    return says.counterfactual if isinstance(says, FlipRating) else None


def _named(says: Answer) -> str:
    """The id of what an answer is about: an example, a flip, or the anchor of two neighbours."""
    if isinstance(says, NeighbourRating):
        return says.anchor
    return _flip_of(says) or getattr(says, "example", None) or ""


def _label_of(entry: Feedback) -> str | None:
    return entry.says.label if isinstance(entry.says, WordVote) else None


def _teammate(name: str, entries: Sequence[Feedback], standing: Sequence[Feedback], share: float | None) -> Teammate:
    mine = [one for one in standing if one.author == name]
    states: dict[str, int] = defaultdict(int)
    for one in mine:
        if isinstance(one.says, Review):
            states[one.says.state] += 1
    took = [
        one.seconds
        for one in mine
        if isinstance(one.says, Review) and one.says.state == "done" and one.seconds is not None
    ]
    return Teammate(
        name=name,
        judged=states["done"],
        votes=sum(isinstance(one.says, WordVote) for one in mine),
        skipped=states["skipped"],
        flagged=states["flagged"],
        median_seconds=median(took) if took else None,
        last=max((one.at for one in entries if one.author == name), default=None),
        agreement=share,
    )
