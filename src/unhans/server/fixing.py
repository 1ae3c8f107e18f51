"""Routes about fixing: what feedback would teach, versions of the model and what they changed, exports.

Reports show who voted for what. Where judging is blind, they are for managers only.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from unhans.artefacts import Version
from unhans.errors import BadOption, NotAllowed, NotFound
from unhans.expectations import check_expectations
from unhans.jobs import Job
from unhans.registry import Option
from unhans.reporting import report_page
from unhans.server.identity import Here, Manager, Member, Seat
from unhans.server.projects import attachment
from unhans.server.running import JobId, enqueue
from unhans.shapes import (
    Export,
    FixMethod,
    FixOffer,
    LossCurve,
    MethodOption,
    Name,
    NewComparison,
    NewExport,
    NewFix,
    Publish,
    Revisions,
)
from unhans.types import Report

router = APIRouter(prefix="/api/projects/{project}", tags=["fixing"])
VersionName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
_PIECE = 1 << 20
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # all that a zip can say; the manifest says when


@router.get("/fixes")
def offer(seat: Manager, people: Annotated[list[Name] | None, Query(max_length=100)] = None) -> FixOffer:
    """What a fix would use, by whom, and what it would take; with `people`, of their answers only."""
    return seat.records.fix_offer(people)


@router.post("/fixes")
def fix(given: NewFix, seat: Manager, here: Here) -> Job:
    """Train a new version of the model that listens to the feedback; it is proposed, not published."""
    found = seat.records.fix_offer(None if given.people is None else list(given.people))
    if found.cannot:
        raise BadOption(found.cannot)
    known = {one.method.name: one for one in found.methods}
    chosen = _known_fix(given.fix, known)
    for rival in given.rivals:
        _known_fix(rival, known)
    check_options(given.options, chosen.method.options, given.fix)
    check_options(given.training, found.training, "training")
    if given.strengths and "strength" not in {option.name for option in chosen.method.options}:
        raise BadOption(f"{given.fix} has no strength that could be varied.")
    if not chosen.answers:
        raise BadOption(f"There is no usable feedback that {given.fix} could learn from. Give some answers first.")
    check_expectations(given.expectations)
    return enqueue("fix", given, seat, here)


@router.get("/fixes/{job}/curve")
def curve(job: JobId, seat: Manager, here: Here) -> LossCurve:
    """The losses of a training as far as it has come."""
    if here.workspace.jobs.get(job).project != seat.project:
        raise NotFound("There is no such job.")
    return seat.records.curve(job)


@router.get("/revisions")
def revisions(seat: Member) -> Revisions:
    """All versions of the model, published and proposed."""
    _check_sees_reports(seat)
    return seat.records.revision_tree()


@router.post("/revisions/{name}/publish")
def publish(name: VersionName, given: Publish, seat: Manager) -> Revisions:
    """Make a version the one in use."""
    return seat.records.publish(name, expects=given.expects, even_so=given.even_so)


@router.post("/rollback")
def roll_back(given: Publish, seat: Manager) -> Revisions:
    """Make the version the one in use that was so before."""
    return seat.records.roll_back(expects=given.expects)


@router.post("/comparisons")
def compare(given: NewComparison, seat: Manager, here: Here) -> Job:
    """Measure what changed from one version to another."""
    for name in (given.before, given.after):
        seat.records.named(name)
    if given.before == given.after:
        raise BadOption("Give two different versions to compare.")
    check_expectations(given.expectations)
    return enqueue("compare", given, seat, here)


@router.get("/reports/{before}/{after}")
def report(before: VersionName, after: VersionName, seat: Member) -> Report:
    """What changed from one version to another."""
    _check_sees_reports(seat)
    return seat.records.report(before, after)


@router.get("/reports/{before}/{after}/page.html", response_class=StreamingResponse)
def page(before: VersionName, after: VersionName, seat: Member) -> StreamingResponse:
    """The same as a page that opens without a network."""
    _check_sees_reports(seat)
    made = report_page(seat.records.report(before, after), title=f"{seat.records.name}: {before} to {after}")
    return attachment(iter([made]), f"report-{before}-{after}.html", "text/html; charset=utf-8")


@router.post("/exports")
def export(given: NewExport, seat: Manager, here: Here) -> Job:
    """Put a version of the model, the feedback, the report and flips into folders to take away."""
    chosen = seat.records.named(given.revision)
    if not (given.model or given.feedback or given.report or given.flips):
        raise BadOption("Choose at least one thing to export.")
    if given.flips and not seat.records.flip_table.count(chosen.id):
        raise BadOption(f"There are no flips of {given.revision} to export. Look for some first.")
    return enqueue("export", given, seat, here)


@router.get("/exports")
def exports(seat: Manager) -> list[Export]:
    """What can be taken away, newest first."""
    return seat.records.export_list()


@router.get("/exports/{name}.zip", response_class=StreamingResponse)
def download(name: VersionName, seat: Manager) -> StreamingResponse:
    """An export as one file."""
    return attachment(_zipped(seat.records.exports.get(name)), f"{name}.zip", "application/zip")


def _check_sees_reports(seat: Seat) -> None:
    if not seat.sees_others:
        raise NotAllowed("Judging is blind here: reports show how others voted, so they are for managers to see.")


def _known_fix(name: str, known: Mapping[str, FixMethod]) -> FixMethod:
    if name not in known:
        raise BadOption(f"There is no fix {name[:50]!r}. There is: {', '.join(known)}.")
    if not known[name].method.usable:
        raise BadOption(known[name].method.unusable)
    return known[name]


def check_options(given: Mapping[str, Any] | None, known: tuple[MethodOption, ...], of: str) -> None:
    """Refuse options that do not exist or whose values do not fit."""
    options = {o.name: Option(o.name, o.kind, o.default, o.choices) for o in known}  # type: ignore[arg-type]
    for name, value in (given or {}).items():
        if name not in options:
            raise BadOption(f"{of} has no option {name[:50]!r}.")
        options[name].check(value)


def _zipped(version: Version) -> Iterator[bytes]:
    """The files of a version as a zip, made while it is sent: neither memory nor disk must hold it."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in version.folder.rglob("*") if path.is_file()):
            yield from _added(archive, sink, path, f"{version.name}/{path.relative_to(version.folder).as_posix()}")
    yield sink.taken()


def _added(archive: zipfile.ZipFile, sink: _Sink, path: File, name: str) -> Iterator[bytes]:
    with path.open("rb") as source, archive.open(zipfile.ZipInfo(name, _LONG_AGO), "w", force_zip64=True) as target:
        while some := source.read(_PIECE):
            target.write(some)
            yield sink.taken()


class _Sink(io.RawIOBase):
    """What a zip is written to: it can be emptied, and cannot be gone back in."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, some: Any) -> int:
        self._held += some
        return len(some)

    def taken(self) -> bytes:
        """What was written since the last time."""
        taken, self._held = bytes(self._held), bytearray()
        return taken
