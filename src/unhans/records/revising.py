"""What becomes of feedback: what of it a fix may use, versions of the model, reports on them, losses as they fall."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import Connection

from unhans.artefacts import Artefacts, Version
from unhans.errors import NotFound
from unhans.feedback import OTHER_REVISION, Settled, stale_reason, subject_of
from unhans.shapes import (
    Export,
    FixMethod,
    LossCurve,
    LossPoint,
    Method,
    MethodOption,
    Revisions,
    RevisionView,
    VoteUse,
)
from unhans.store import Store
from unhans.store.schema import curves, reports
from unhans.text import visible_form
from unhans.types import (
    Answer,
    Feedback,
    FlipRating,
    Measure,
    NeighbourRating,
    Relabel,
    Report,
    Review,
    Revision,
    Ruling,
    WordVote,
    from_json,
    to_json,
)

USABLE = ("word_vote", "relabel", "flip_rating", "neighbour_rating", "ruling")  # kinds that fixes read
MOST_POINTS = 300  # of a curve: more cannot be seen
_CURVES = 50  # trainings whose losses are kept
_NUMBER = re.compile(r"\d+")
_curve = TypeAdapter(LossCurve)


# -- feedback


@dataclass(frozen=True)
class SortedOut:
    """Answers that a fix may use, and why the others are left out."""

    usable: tuple[Feedback, ...]  # votes, labels, ratings of flips and neighbours, and the rulings on them
    inherited: frozenset[str]  # ids of those that an earlier revision was trained on
    stale: tuple[tuple[str, int], ...]  # why answers were left out, and how many


def sort_out(
    opinions: Iterable[Feedback],
    *,
    hashes: Mapping[str, str],
    revision: str,
    inherited: Collection[str],
    people: Collection[str] | None,
) -> SortedOut:
    """What of people's opinions still fits; `hashes` are those of the texts as they are now, by example or flip.

    An answer about another revision does not fit, unless the one in use was trained on it: it must keep being asked
    for, or the next training unlearns it. What people say of a rewritten text stays true of it whatever the model, so
    ratings of flips teach any revision. Rulings decide only where there are votes, so they need not fit.
    """
    usable: list[Feedback] = []
    left_out: Counter[str] = Counter()
    used = frozenset(inherited)
    for one in opinions:
        if isinstance(one.says, Ruling):
            usable.append(one)
        elif not isinstance(one.says, Review) and (people is None or one.author in people):
            rates, about = isinstance(one.says, FlipRating), _about(one.says)
            reason = stale_reason(one, text_hash=hashes.get(about), revision=revision)
            if reason is None or (reason == OTHER_REVISION and (rates or one.id in used)):
                usable.append(one)
            else:
                left_out[reason] += 1
    kept = frozenset(one.id for one in usable) & used
    return SortedOut(tuple(usable), kept, tuple(left_out.most_common()))


def _about(says: Answer) -> str:
    """The id of the text that must still be what it was."""
    match says:
        case FlipRating(counterfactual=id_) | NeighbourRating(train=id_):
            return id_
        case WordVote() | Relabel() | Review():
            return says.example or ""
    return ""


def by_question(given: Iterable[Feedback]) -> dict[str, list[Feedback]]:
    """Entries by the question that they answer."""
    found: dict[str, list[Feedback]] = {}
    for one in given:
        found.setdefault(subject_of(one.says), []).append(one)
    return found


def vote_use(
    settled: Settled, *, inherited: Collection[str], place: int | None, trains: bool, texts: Mapping[str, int]
) -> VoteUse:
    """A settled question as a person sees it. `texts`: how many training examples have a word."""
    says = settled.says
    vote = says if isinstance(says, WordVote) else None
    everywhere = says.example is None
    return VoteUse(
        kind=says.kind,
        word=vote.word if vote else None,
        label=says.label,
        vote=vote.vote if vote else None,
        place=place,
        people=settled.people,
        against=settled.against,
        ruled=settled.ruled,
        inherited=not set(inherited).isdisjoint(settled.ids),
        texts=texts.get(visible_form(vote.word), 0) if vote and everywhere else int(trains),
    )


@dataclass(frozen=True)
class KnownFix:
    """A way to fix, as a process that had it loaded described it."""

    method: Method
    reads: tuple[str, ...]
    cost: float  # of a step, in plain training steps
    cheap: bool = False  # a baseline


@dataclass(frozen=True)
class KnownFixes:
    """All ways to fix, and the options that they share."""

    methods: tuple[KnownFix, ...] = ()
    training: tuple[MethodOption, ...] = ()

    def offered(self, answers: Mapping[str, int], *, train: int, seconds_each: float | None) -> tuple[FixMethod, ...]:
        """Each with what it would have to do, and about how long that takes. `answers`: how many of each kind."""
        epochs = next((option.default for option in self.training if option.name == "epochs"), 1)
        passes = train * int(epochs or 0) * 3  # a step forward and two back
        return tuple(
            FixMethod(
                method=fix.method,
                reads=fix.reads,
                answers=sum(answers.get(kind, 0) for kind in fix.reads),
                seconds=None if seconds_each is None else passes * fix.cost * seconds_each,
                cheap=fix.cheap,
            )
            for fix in self.methods
        )


# -- revisions


def ancestors(revision: Revision, known: Iterable[Revision]) -> list[Revision]:
    """A revision and those it was made from, newest first."""
    by_id = {one.id: one for one in known}
    found = [revision]
    while (parent := by_id.get(found[-1].parent or "")) is not None and parent not in found:
        found.append(parent)
    return found


def tree(models: Artefacts, all_of_them: Sequence[tuple[Version, Revision]], table: ReportTable) -> Revisions:
    """The versions of a model, oldest first, with what is known of each."""
    current, first = models.pointed, table.first()
    views = []
    for version, revision in sorted(all_of_them, key=lambda pair: (pair[0].at, *_numbers(pair[0].name))):
        before, report = first.get(version.name, (None, None))
        state = "current" if version.name == current else "published" if version.number is not None else "proposed"
        views.append(
            RevisionView(
                name=version.name,
                revision=revision,
                state=state,  # type: ignore[arg-type]
                at=revision.at or version.at,
                size=version.size,
                headline=headline(report) if report else (),
                report=before,
                worse=len(report.worse) if report else 0,
                problem=models.problem(version.name) or "",
            )
        )
    return Revisions(tuple(views), current or "", models.back_to, table.pairs())


def exported(exports: Artefacts, names: Mapping[str, str]) -> list[Export]:
    """The exports that are whole, newest first. `names`: what revisions are called, by their ids."""
    whole = [version for version in exports.listed() if exports.problem(version.name) is None]
    newest = sorted(whole, key=lambda version: (version.at, *_numbers(version.name)), reverse=True)
    return [
        Export(
            name=version.name,
            revision=names.get(str(version.facts.get("revision")), ""),
            at=version.at,
            size=version.size,
            files=version.files,
            parts=tuple(version.facts.get("parts", ())),
            checked=str(version.facts.get("checked", "")),
        )
        for version in newest
    ]


def headline(report: Report) -> tuple[Measure, ...]:
    """The accuracies over whole sets."""
    return tuple(measure for measure in report.measures if measure.name == "accuracy" and not measure.slice)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(found) for found in _NUMBER.findall(name))


class ReportTable:
    """Reports by the names of the versions that they compare."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, before: str, after: str, report: Report) -> None:
        """Store a report in place of an earlier one on the same two."""
        values = {"before": before, "after": after, "at": report.at or now(), "report": to_json(report)}

        def act(connection: Connection) -> None:
            self._store.lock(connection, "reports")
            connection.execute(reports.delete().where(reports.c.before == before, reports.c.after == after))
            connection.execute(reports.insert().values(**values))

        self._store.write(act)

    def one(self, before: str, after: str) -> Report | None:
        """The report on two versions, if they have been compared."""
        query = sa.select(reports.c.report).where(reports.c.before == before, reports.c.after == after)
        with self._store.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else from_json(Report, found)

    def first(self) -> dict[str, tuple[str, Report]]:
        """For each version, with which one it was compared first, and that report."""
        query = sa.select(reports.c.after, reports.c.before, reports.c.at).order_by(reports.c.at.desc())
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        found = {row.after: row.before for row in rows}
        told = ((after, before, self.one(before, after)) for after, before in found.items())
        return {after: (before, report) for after, before, report in told if report is not None}

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names, before and after, that have been compared, oldest first."""
        query = sa.select(reports.c.before, reports.c.after).order_by(reports.c.at, reports.c.after, reports.c.before)
        with self._store.read() as connection:
            return tuple((row.before, row.after) for row in connection.execute(query))


class CurveTable:
    """Losses of trainings, by job."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, curve: LossCurve) -> None:
        """Store a curve in place of what was there of it; the oldest ones of other jobs are forgotten."""
        thin = LossCurve(curve.job, thinned(curve.points), curve.epochs)
        values = {"job": curve.job, "at": now(), "curve": _curve.dump_json(thin).decode()}

        def act(connection: Connection) -> None:
            self._store.lock(connection, "curves")
            connection.execute(curves.delete().where(curves.c.job == curve.job))
            connection.execute(curves.insert().values(**values))
            newest = sa.select(curves.c.job).order_by(curves.c.at.desc()).limit(_CURVES)
            connection.execute(curves.delete().where(curves.c.job.not_in(newest.scalar_subquery())))

        self._store.write(act)

    def one(self, job: str) -> LossCurve:
        """What is known of a job's losses; nothing, as long as there is nothing."""
        with self._store.read() as connection:
            found = connection.execute(sa.select(curves.c.curve).where(curves.c.job == job)).scalar()
        return LossCurve(job, (), ()) if found is None else _curve.validate_json(found)


def thinned(points: Sequence[LossPoint], most: int = MOST_POINTS) -> tuple[LossPoint, ...]:
    """At most so many of the points, evenly, the last one among them."""
    if len(points) <= most:
        return tuple(points)
    step = (len(points) - 1) / (most - 1)
    return tuple(points[round(n * step)] for n in range(most))


def must_be_compared(before: str, after: str, report: Report | None) -> Report:
    """The report, or a sentence that there is none."""
    if report is None:
        raise NotFound(f"{before[:100]} and {after[:100]} have not been compared yet. Compare them first.")
    return report


def now() -> str:
    """The moment, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
