"""Audits and what the lab found, in tables: by revision, the newest first, an audit as far as it has come."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from unhans.errors import NotFound
from unhans.records.revising import now
from unhans.shapes import Method
from unhans.store import Store
from unhans.store.schema import audits, labs
from unhans.types import Audit, Finding, Lab, from_json, to_json

NOT_KNOWN = (
    "What an audit can look at is not known here yet. Have the examples predicted once with this version of unhans."
)
NO_AUDIT = "There is no such audit; only the newest ones are kept."
_KEPT = 200  # audits of a project, and as many labs: with the older ones nobody compares any more
_LISTED = tuple(c for c in audits.c if c.name != "audit")
_MEASURED = re.compile(r"\d+(?:[.,]\d+)*(?= %)|^\d+(?:[.,]\d+)*")  # shares, and how many texts: no labels, no lengths
_SEVERAL = ("group_gaps", "direction")  # checks that say several things of the same word
_SANITY = "explanation_sanity"  # the check that puts the audit's explanation method to the test


@dataclass(frozen=True)
class KnownAudits:
    """The checks and the bugs that there are, as a process that had them loaded described them."""

    checks: tuple[Method, ...] = ()
    bugs: tuple[Method, ...] = ()


@dataclass(frozen=True)
class AuditFacts:
    """All but the findings: what a list needs."""

    number: int
    id: str
    revision: str
    asked: str
    complete: bool
    high: int
    medium: int
    low: int
    examples: int
    training: int
    job: str | None
    by: str
    at: str


@dataclass(frozen=True)
class StoredAudit:
    """An audit as far as it has come."""

    facts: AuditFacts
    audit: Audit


@dataclass(frozen=True)
class StoredLab:
    """What the lab found out about the explanations of a revision."""

    id: str
    by: str
    at: str
    lab: Lab


def asked_key(*told: Any) -> str:
    """A fingerprint of all that an audit depends on; equal in every process."""
    return blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8).hexdigest()


class AuditTable:
    """Audits of all revisions. A row is written again whenever a check is done, so that it is seen while it runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- writing

    def begin(self, audit: Audit, *, asked: str, by: str, job: str | None = None) -> str:
        """Store a new audit, of which nothing need be done yet: its id. The oldest ones are forgotten."""
        id_ = secrets.token_hex(8)
        values = {"id": id_, "revision": audit.revision, "asked": asked, "job": job, "by": by, "at": now()}

        def act(connection: Connection) -> None:
            self._store.lock(connection, "audits")
            connection.execute(audits.insert().values(**values, **_told(audit)))
            _forget(connection, audits)

        self._store.write(act)
        return id_

    def keep(self, id_: str, audit: Audit, *, job: str | None = None) -> None:
        """Store how far an audit has come; with the job that works on it now, if there is another."""
        values = _told(audit) | ({} if job is None else {"job": job})

        def act(connection: Connection) -> None:
            self._store.lock(connection, "audits")
            connection.execute(audits.update().where(audits.c.id == id_).values(**values))

        self._store.write(act)

    # -- reading

    def unfinished(self, asked: str) -> StoredAudit | None:
        """The newest audit that asked for the same and was stopped before it was complete, if none was since."""
        query = sa.select(audits).where(audits.c.asked == asked).order_by(audits.c.number.desc()).limit(1)
        found = self._first(query)
        return None if found is None or found.facts.complete else found

    def one(self, id_: str) -> StoredAudit:
        """The audit of this id."""
        found = self._first(sa.select(audits).where(audits.c.id == id_))
        if found is None:
            raise NotFound(NO_AUDIT)
        return found

    def latest(self, revision: str) -> StoredAudit | None:
        """The newest audit of a revision, complete or not; None: there is none."""
        query = sa.select(audits).where(audits.c.revision == revision).order_by(audits.c.number.desc()).limit(1)
        return self._first(query)

    def listed(self, revision: str | None = None) -> list[AuditFacts]:
        """Those of a revision, or of all, newest first."""
        query = sa.select(*_LISTED).order_by(audits.c.number.desc())
        if revision is not None:
            query = query.where(audits.c.revision == revision)
        with self._store.read() as connection:
            return [_facts(row) for row in connection.execute(query)]

    def warnings(self, revision: str) -> dict[str, str]:
        """Explanation methods that any audit of a revision says not to trust, and why."""
        return _warned(self._store, audits, revision)

    def _first(self, query: sa.Select[Any]) -> StoredAudit | None:
        with self._store.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else StoredAudit(_facts(row), from_json(Audit, row.audit))


class LabTable:
    """What the lab found out, by revision."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, lab: Lab, *, by: str) -> str:
        """Store what came of a run: its id. The oldest ones are forgotten."""
        id_ = secrets.token_hex(8)
        told = {"warnings": json.dumps(_joined(lab.warnings)), "lab": to_json(lab)}
        values = {"id": id_, "revision": lab.revision, "by": by, "at": now(), **told}

        def act(connection: Connection) -> None:
            self._store.lock(connection, "labs")
            connection.execute(labs.insert().values(**values))
            _forget(connection, labs)

        self._store.write(act)
        return id_

    def latest(self, revision: str) -> StoredLab | None:
        """The newest run on a revision; None: there was none."""
        query = sa.select(labs).where(labs.c.revision == revision).order_by(labs.c.number.desc()).limit(1)
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else StoredLab(row.id, row.by, row.at, from_json(Lab, row.lab))

    def warnings(self, revision: str) -> dict[str, str]:
        """Explanation methods that any run on a revision says not to trust, and why."""
        return _warned(self._store, labs, revision)


# -- what findings are about


def same_thing(finding: Finding) -> tuple[str, ...]:
    """Equal for findings of two audits that are about the same thing, whatever was measured.

    A finding about words is about these; any other is about what its title says, but for shares and how many texts
    there are. Other numbers may be labels, groups or lengths. Where a check says several things of a word, both count.
    """
    told = (_MEASURED.sub("#", finding.title),) if not finding.words or finding.check.name in _SEVERAL else ()
    return finding.check.name, *finding.words, *told


def method_warnings(audit: Audit) -> dict[str, str]:
    """The explanation method that an audit explains with, if it says not to trust it, and why."""
    method = dict(audit.recipe.options).get("method") if audit.recipe is not None else None
    if not isinstance(method, str):
        return {}
    return _joined([(method, f"{one.title}.") for one in audit.findings if one.check.name == _SANITY])


def _joined(told: Sequence[tuple[str, str]]) -> dict[str, str]:
    """By method, what is said of it, in one text."""
    found: dict[str, str] = {}
    for method, why in told:
        found[method] = f"{found[method]} {why}" if method in found else why
    return found


def _warned(store: Store, table: sa.Table, revision: str) -> dict[str, str]:
    """By method, what all rows of a revision say against it; of what is said twice, the newer.

    The weights of a revision never change, so a later row that did not look into a method, or that has just begun,
    takes nothing back.
    """
    query = sa.select(table.c.warnings).where(table.c.revision == revision).order_by(table.c.number)
    told: dict[str, str] = {}
    with store.read() as connection:
        for row in connection.execute(query).scalars():
            told |= json.loads(row)
    return _joined([_of_method(shown, why) for shown, why in told.items()])


def _of_method(shown: str, why: str) -> tuple[str, str]:
    """The name of a method that may be shown with options; these are told with the warning."""
    name, bracket, options = shown.partition(" (")
    return name, f"{why} ({options}" if bracket else why


# -- rows


def _told(audit: Audit) -> dict[str, Any]:
    counts: Mapping[str, int] = Counter(finding.severity for finding in audit.findings)
    return {
        "complete": audit.complete,
        "high": counts["high"],
        "medium": counts["medium"],
        "low": counts["low"],
        "examples": audit.examples,
        "training": audit.training,
        "warnings": json.dumps(method_warnings(audit)),
        "audit": to_json(audit),
    }


def _facts(row: Any) -> AuditFacts:
    return AuditFacts(
        number=row.number,
        id=row.id,
        revision=row.revision,
        asked=row.asked,
        complete=row.complete,
        high=row.high,
        medium=row.medium,
        low=row.low,
        examples=row.examples,
        training=row.training,
        job=row.job,
        by=row.by,
        at=row.at,
    )


def _forget(connection: Connection, table: sa.Table) -> None:
    newest = sa.select(table.c.number).order_by(table.c.number.desc()).limit(_KEPT)
    connection.execute(table.delete().where(table.c.number.not_in(newest.scalar_subquery())))
