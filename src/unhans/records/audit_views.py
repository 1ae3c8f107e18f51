"""What the screen Bugs shows: audits and their findings, what the lab found, and people's verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from unhans.feedback import agreement_by_kind, verdicts_by_condition
from unhans.records.auditing import NOT_KNOWN, AuditFacts, StoredAudit, same_thing
from unhans.records.cursors import decode, encode
from unhans.records.parts import count_parts
from unhans.shapes import (
    Agreement,
    AuditChange,
    AuditOffer,
    AuditRow,
    AuditView,
    FindingPage,
    FindingPair,
    FindingQuery,
    FindingView,
    LabOffer,
    LabView,
    Method,
    VerdictCondition,
    VerdictReason,
    VerdictSummary,
)
from unhans.types import Audit, Finding, Severity

if TYPE_CHECKING:
    from unhans.records import Records

NOTHING_TO_LOOK_AT = "All examples are for training, so there is nothing to audit with. Add a split called test."
NOTHING_TO_SEE = "No labelled example is held out, so nobody could see a planted bug. Add a split called test."
NOTHING_TO_PLANT = "No labelled example is for training, so no bug can be planted and learnt."
_COMPARED = 200  # findings of one kind that a comparison of two audits tells
_SAID = 200  # verdicts that a summary tells


class AuditViews:
    """Audits, the lab and verdicts for somebody: who may not see other people's answers sees their own verdicts."""

    def __init__(self, records: Records, author: str, sees_others: bool) -> None:
        self._records, self._author = records, author
        self._author_only = None if sees_others else author  # whose verdicts are shown

    # -- what can be done

    def offer(self) -> AuditOffer:
        """The checks, and whether they can be run here."""
        known, (train, _) = self._records.known_audits(), self._parts()
        others = self._records.table.count() - train
        cannot = _cannot(known.checks) or ("" if others else NOTHING_TO_LOOK_AT)
        return AuditOffer(known.checks, tuple(self._records.methods()), others, train, cannot)

    def lab_offer(self) -> LabOffer:
        """The bugs that can be planted, and the explanation methods that can look for them."""
        known, (train, held_out) = self._records.known_audits(), self._parts()
        cannot = _cannot(known.bugs) or ("" if held_out else NOTHING_TO_SEE) or ("" if train else NOTHING_TO_PLANT)
        return LabOffer(known.bugs, tuple(self._records.methods()), held_out, train, cannot)

    def _parts(self) -> tuple[int, int]:
        return count_parts(self._records.store, self._records.parts)

    # -- audits

    def audits(self, revision: str | None = None) -> list[AuditRow]:
        """Those of a revision, or of all, newest first."""
        chosen = None if revision is None else self._records.revision_id(revision)
        return self._rows(self._records.audit_table.listed(chosen))

    def latest(self, revision: str | None = None) -> AuditView | None:
        """The newest one of a revision, or of the one in use."""
        found = self._records.audit_table.latest(self._records.revision_id(revision))
        return None if found is None else self._view(found)

    def audit(self, id_: str) -> AuditView:
        """One of them as far as it has come."""
        return self._view(self._records.audit_table.one(id_))

    def findings(self, id_: str, wanted: FindingQuery) -> FindingPage:
        """Those of an audit that fit, the severest first."""
        audit = self._records.audit_table.one(id_).audit
        fitting = [
            (number, one)
            for number, one in enumerate(audit.findings)
            if wanted.severity in (None, one.severity) and wanted.check in (None, one.check.name)
        ]
        after = -1 if wanted.cursor is None else decode(wanted.cursor)[1]
        rest = [(number, one) for number, one in fitting if number > after]
        shown = rest[: wanted.limit]
        return FindingPage(
            items=self._finding_views([one for _, one in shown]),
            next=encode(0, shown[-1][0]) if len(rest) > len(shown) else None,
            total=len(fitting),
        )

    def changes(self, before: str, after: str) -> AuditChange:
        """What became of the findings of one audit in another."""
        first, second = self._records.audit_table.one(before), self._records.audit_table.one(after)
        rows = self._rows([first.facts, second.facts])
        earlier = {same_thing(one): one for one in reversed(first.audit.findings)}  # of two, the severest
        later = {same_thing(one): one for one in reversed(second.audit.findings)}
        both = [key for key in _in_order(first.audit, earlier) if key in later]
        gone, not_looked = _split([one for key, one in earlier.items() if key not in later], second.audit)
        new, not_known = _split([one for key, one in later.items() if key not in earlier], first.audit)
        return AuditChange(
            before=rows[0],
            after=rows[1],
            gone=self._finding_views(gone),
            new=self._finding_views(new),
            stayed=tuple(
                FindingPair(*pair)
                for pair in zip(
                    self._finding_views([earlier[key] for key in both]),
                    self._finding_views([later[key] for key in both]),
                    strict=True,
                )
            ),
            unknown=self._finding_views([*not_looked, *not_known]),
        )

    def _rows(self, found: Sequence[AuditFacts]) -> list[AuditRow]:
        names = self._records.revision_names()
        return [
            AuditRow(
                id=one.id,
                revision=one.revision,
                name=names.get(one.revision, ""),
                at=one.at,
                by=one.by,
                complete=one.complete,
                job=one.job,
                worst=_worst(one),
                high=one.high,
                medium=one.medium,
                low=one.low,
                examples=one.examples,
                training=one.training,
            )
            for one in found
        ]

    def _view(self, found: StoredAudit) -> AuditView:
        (row,), audit = self._rows([found.facts]), found.audit
        return AuditView(row=row, checks=audit.checks, notes=audit.notes, recipe=audit.recipe, job=None)

    def _finding_views(self, found: Sequence[Finding]) -> tuple[FindingView, ...]:
        shown = found[:_COMPARED]
        named = [id_ for one in shown for id_ in named_by(one)]
        places = self._records.table.places(named)
        return tuple(
            FindingView(one.id, one, {id_: places[id_] for id_ in named_by(one) if id_ in places}) for one in shown
        )

    # -- the lab

    def lab(self, revision: str | None = None) -> LabView | None:
        """What the lab last found out about a revision, or about the one in use."""
        chosen = self._records.revision_id(revision)
        found = self._records.lab_table.latest(chosen)
        if found is None:
            return None
        places = self._records.table.places([id_ for _, ids in found.lab.examples for id_ in ids])
        name = self._records.revision_names().get(chosen, "")
        return LabView(found.id, name, found.at, found.by, found.lab, places)

    # -- verdicts

    def verdicts(self, revision: str | None = None) -> VerdictSummary:
        """What people say of a revision, or of all, by what they were shown."""
        records, chosen = self._records, None if revision is None else self._records.revision_id(revision)
        told = records.log.opinions(author=self._author_only, kinds=("verdict",))
        about = [one for one in told if chosen is None or one.revision == chosen]
        names, order = records.revision_names(), list(records.revision_names())
        found = sorted(
            verdicts_by_condition(about),
            key=lambda one: (order.index(one.model) if one.model in order else len(order), one.model),
        )
        agreement = next(one for one in agreement_by_kind(about) if one.kind == "verdict_deploy")
        return VerdictSummary(
            own=self._author_only is not None,
            conditions=tuple(
                VerdictCondition(
                    revision=one.model,
                    name=names.get(one.model, ""),
                    method=one.method,
                    explanation_first=one.explanation_first,
                    counts=one.counts,
                    people=one.people,
                    median=one.median,
                    low=one.low,
                    high=one.high,
                    reasons=tuple(VerdictReason(reason, n, n / one.people) for reason, n in one.reasons),
                )
                for one in found
            ),
            people=len({one.author for one in about}),
            agreement=Agreement(**asdict(agreement)) if self._author_only is None else None,
            said=tuple(records.opinion(one) for one in reversed(about[-_SAID:])),
        )


def _cannot(known: Sequence[Method]) -> str:
    """Why none of these can be used; empty: one can."""
    if not known:
        return NOT_KNOWN
    return "" if any(method.usable for method in known) else known[0].unusable


def _worst(facts: AuditFacts) -> Severity | None:
    if facts.high:
        return "high"
    return "medium" if facts.medium else "low" if facts.low else None


def named_by(finding: Finding) -> list[str]:
    """Ids of all examples that a finding names."""
    return list(dict.fromkeys((*finding.examples, *(one.example for one in finding.variants))))


def _in_order(audit: Audit, known: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Keys in the order in which an audit tells of them."""
    there = set(known)
    return [key for key in dict.fromkeys(map(same_thing, audit.findings)) if key in there]


def _split(findings: Sequence[Finding], other: Audit) -> tuple[list[Finding], list[Finding]]:
    """Findings whose check ran in another audit too, and the rest; the severest first."""
    ran = {one.check.name for one in other.checks if one.state == "done"}
    ordered = sorted(findings, key=lambda one: ("high", "medium", "low").index(one.severity))
    return [one for one in ordered if one.check.name in ran], [one for one in ordered if one.check.name not in ran]
