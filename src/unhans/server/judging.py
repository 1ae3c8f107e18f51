"""Routes about judging: examples, words, answers, the team."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, BinaryIO, TypeGuard, cast

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from unhans.errors import BadOption, NotAllowed, NotFound, UnhansError
from unhans.exchange import (
    FORMATS,
    Refusal,
    by_example,
    read_feedback,
    read_rationales,
    write_feedback,
    write_rationales,
)
from unhans.records.examples import MAX_EXAMPLES
from unhans.records.judging import Stored, new_id
from unhans.server.identity import Manager, Member, Seat
from unhans.server.projects import attachment
from unhans.shapes import (
    ExamplePage,
    ExampleView,
    ExchangeFormat,
    Filter,
    History,
    Imported,
    ListQuery,
    Looked,
    Name,
    NewFeedback,
    NextPlace,
    NextRequest,
    Retraction,
    Saved,
    Sort,
    Team,
    ViewQuery,
    WordPage,
    WordQuery,
    WordView,
)
from unhans.types import Feedback, Relabel, Review, Ruling, Verdict, WordVote

router = APIRouter(prefix="/api/projects/{project}", tags=["judging"])
Place = Annotated[int, Path(ge=0, lt=MAX_EXAMPLES)]
_REFUSED_SHOWN = 100
_TELLS_PREDICTIONS = ("predicted", "correct", "min_confidence", "max_confidence")


@router.get("/examples")
def examples(query: Annotated[ListQuery, Query()], seat: Member) -> ExamplePage:
    """A page of examples that fit a filter."""
    return seat.records.table.page(
        narrowed(query, seat),
        revision=seat.records.current.id,
        author=seat.user.name,
        sort=_order(query.sort, seat),
        cursor=query.cursor,
        limit=query.limit,
        words_first=seat.words_first,
    )


@router.get("/examples/{place}")
def example(place: Place, query: Annotated[ViewQuery, Query()], seat: Member) -> ExampleView:
    """One example with everything known about it."""
    return seat.records.example_view(
        place,
        author=seat.user.name,
        sees_others=seat.sees_others,
        words_first=seat.words_first,
        explained=query.explained,
        wanted=narrowed(query, seat),
        sort=_order(query.sort, seat),
    )


@router.post("/next")
def next_example(given: NextRequest, seat: Member) -> NextPlace:
    """Reserve the next example that needs me."""
    return seat.records.log.next_place(
        seat.user.name,
        narrowed(given.filter, seat),
        revision=seat.records.current.id,
        overlap=seat.records.settings.overlap,
        after=given.after,
    )


@router.post("/feedback")
def answer(given: NewFeedback, seat: Member) -> Saved:
    """Store an answer; sending it again under the same key stores nothing twice."""
    records, says = seat.records, given.says
    if isinstance(says, Ruling) and not seat.manages:
        raise NotAllowed("Only managers of this project settle disagreements.")
    about = records.check(says, given.revision)
    if isinstance(says, Verdict):
        _check_condition(says, seat)
    elif given.revision != records.current.id and given.revision not in {one.id for one in records.revisions}:
        raise NotFound("There is no such revision of the model. Reload the page.")
    entry = Feedback(
        id=new_id(),
        says=says,
        author=seat.user.name,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        revision=given.revision,
        text_hash=given.text_hash if about else None,
        seconds=given.seconds,
    )
    return _saved(seat, records.log.add(entry, key=given.key, expects=given.expects))


@router.post("/undo")
def undo(given: Retraction, seat: Member) -> Saved:
    """Take back an answer of mine: a named one, or my latest."""
    return _saved(
        seat,
        seat.records.log.retract(
            seat.user.name, key=given.key, retracts=given.retracts, example=given.example, clear=given.clear
        ),
    )


@router.get("/feedback")
def history(
    seat: Member,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    author: Annotated[str | None, Query(max_length=100)] = None,
) -> History:
    """The log, newest first: my own entries; for managers also other people's (`*` for everybody's)."""
    if author is not None and author != seat.user.name and not seat.manages:
        raise NotAllowed("Only managers of this project see other people's answers.")
    chosen = seat.user.name if author is None else None if author == "*" else author
    return seat.records.log.history(author=chosen, cursor=cursor)


@router.get("/feedback/export", response_class=StreamingResponse)
def export(format: ExchangeFormat, seat: Manager) -> StreamingResponse:
    """All feedback as a file: the whole log, or what it comes to in the words of another tool."""
    records, file = seat.records, tempfile.TemporaryFile()  # noqa: SIM115 - closed when the last piece is sent
    if FORMATS[format].is_log:
        write_feedback(records.log.entries(), file, format)
    else:
        opinions = records.log.opinions()
        about = records.table.find([one.says.example for one in opinions if _names_example(one) and one.says.example])
        write_rationales(by_example(opinions, [example for _, example in about.values()]), file, format)
    file.seek(0)

    def pieces() -> Iterator[bytes]:
        with file:
            while some := file.read(1 << 16):
                yield some

    made = FORMATS[format]
    return attachment(pieces(), f"feedback{made.suffix}", made.media_type)


@router.post("/feedback/import")
async def import_(request: Request, format: ExchangeFormat, seat: Manager) -> Imported:
    """Add feedback from a file; what is there already is not doubled, what cannot be used is listed."""
    with tempfile.TemporaryFile() as file:
        async for some in request.stream():
            await run_in_threadpool(file.write, some)
        file.seek(0)
        return await run_in_threadpool(_import, cast(BinaryIO, file), format, seat)


@router.get("/words")
def words(query: Annotated[WordQuery, Query()], seat: Member) -> WordPage:
    """Words that speak for a label, ranked."""
    return seat.records.word_page(
        query.label,
        author=seat.user.name,
        sees_others=seat.sees_others,
        explained=query.explained,
        order=query.order,
        search=query.search,
        cursor=query.cursor,
        limit=query.limit,
    )


@router.get("/word")
def word(
    seat: Member,
    word: Annotated[Looked, Query()],
    label: Annotated[Name, Query()],
    explained: Annotated[Name | None, Query()] = None,
) -> WordView:
    """What a vote on a word would touch."""
    return seat.records.word_view(word, label, author=seat.user.name, sees_others=seat.sees_others, explained=explained)


@router.get("/team")
def team(seat: Manager) -> Team:
    """Who did what, and how far they agree."""
    return seat.records.team()


def narrowed(query: Filter, seat: Seat) -> Filter:
    """The filter in a longer query, as far as this person may narrow.

    Where the words come first, a list of right predictions would tell them: such conditions are left out.
    """
    if query.disagreement is not None and not seat.sees_others:
        raise NotAllowed("Judging is blind here: where others disagree is for managers to see.")
    told = _TELLS_PREDICTIONS if seat.words_first else ()
    return Filter(**{name: getattr(query, name) for name in Filter.model_fields if name not in told})


def _order(asked: Sort, seat: Seat) -> Sort:
    """The order that was asked for, as far as it tells no prediction to who is to judge the words first."""
    return "order" if seat.words_first else asked


def _check_condition(says: Verdict, seat: Seat) -> None:
    """Refuse a verdict that claims to come from another condition; managers, who see all, say it themselves."""
    if not seat.manages and says.explanation_first != seat.words_first:
        order = "before" if seat.words_first else "together with"
        raise BadOption(f"The words are judged {order} the prediction here, and the verdict says otherwise. Reload.")


def _saved(seat: Seat, stored: Stored) -> Saved:
    entry, log = stored.entry, seat.records.log
    about = entry.says.example if entry and isinstance(entry.says, WordVote | Relabel | Review) else None
    standing = stored.standing
    return Saved(
        feedback=entry,
        opinion=seat.records.opinion(standing, standing.text_hash) if standing else None,
        state=log.state(seat.user.name, about) if about is not None else None,
        progress=log.progress(seat.user.name),
    )


def _import(file: BinaryIO, format: ExchangeFormat, seat: Seat) -> Imported:
    records, refused = seat.records, list[str]()
    if FORMATS[format].is_log:
        found = read_feedback(file, format)
    else:
        found = read_rationales(
            file,
            format,
            find=records.table.lookup,
            revision=records.current.id,
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            labels=records.labels,
        )

    def usable() -> Iterator[tuple[Feedback, str]]:
        for one in found:
            if isinstance(one, Refusal):
                refused.append(str(one))
                continue
            try:
                records.check(one.says, one.revision)
            except UnhansError as error:
                refused.append(f"{one.id}: {error}")
            else:
                yield one, f"import-{one.id}"[:64]

    stored, known = records.log.add_many(usable())
    return Imported(stored, known, tuple(refused[:_REFUSED_SHOWN]))


def _names_example(entry: Feedback) -> TypeGuard[Any]:
    return isinstance(entry.says, WordVote | Relabel | Review)
