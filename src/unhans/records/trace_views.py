"""What the screens Neighbours and Label errors show: traced examples, training examples beside them, copies, doubts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unhans.errors import BadOption
from unhans.feedback import CHANGED, OTHER_REVISION, subject_of
from unhans.heuristics import patterns
from unhans.records.cursors import decode, encode
from unhans.records.tracing import NOT_KNOWN, Anchor, StoredCopy, StoredDoubt, StoredTrace, pairs_rated
from unhans.shapes import (
    AnchorPage,
    AnchorQuery,
    AnchorRow,
    AnchorView,
    CopyChange,
    CopyPage,
    CopyQuery,
    CopyView,
    DoubtPage,
    DoubtQuery,
    DoubtView,
    Method,
    NeighbourOffer,
    NeighbourView,
    Opinion,
)
from unhans.types import Example, Feedback, Neighbour, NeighbourRating, Prediction, Relabel

if TYPE_CHECKING:
    from unhans.records import Records

NOT_RATED = "Nobody says any more that its training example is similar to an anchor."
RELABELLED = "Its training example was given another label since."
HELD_OUT = "Its training example is not for training."
NOT_NOW = "It is not trained on at present."  # for those who may not see what others said
NOT_TRAINED = "No labelled example is for training, so there is nothing that the model could have learnt from."
_SNIPPET = 160  # characters of an anchor in a list


@dataclass(frozen=True)
class _Seen:
    """Training examples with what is known of them, by id."""

    found: Mapping[str, tuple[int, Example]]
    said: Mapping[int, Prediction]  # by place
    ratings: Mapping[str, Sequence[Opinion]]
    relabels: Mapping[str, Sequence[Opinion]]
    copies: Mapping[int, int]  # by place
    taught: Mapping[str, str | None]  # labels that were corrected


def _cannot(known: Sequence[Method], trains: bool) -> str:
    """Why none of these can be used; empty: one can."""
    if not known:
        return NOT_KNOWN
    if not any(method.usable for method in known):
        return known[0].unusable
    return "" if trains else NOT_TRAINED


class TraceViews:
    """Traces, copies and doubts of a project for somebody: who may not see other people's answers sees their own."""

    def __init__(self, records: Records, author: str, sees_others: bool, words_first: bool) -> None:
        self._records, self._author, self._words_first = records, author, words_first
        self._author_only = None if sees_others else author  # whose answers are shown

    def offer(self) -> NeighbourOffer:
        """The ways to trace, to choose anchors, to make copies and to doubt labels."""
        known = self._records.known_traces()
        trains = bool(self._records.trains_on())
        return NeighbourOffer(
            methods=known.methods,
            heuristics=known.heuristics,
            augmentations=known.augmentations,
            doubts=known.doubts,
            copies_per_point=self._records.copies_per_point,
            cannot=_cannot(known.methods, trains),
            cannot_doubt=_cannot(known.doubts, trains),
        )

    # -- anchors

    def anchors(self, wanted: AnchorQuery) -> AnchorPage:
        """The examples that were traced, in the order of the data."""
        records, revision = self._records, self._records.revision_id(wanted.revision)
        anchors = records.trace_table.anchors(revision, self._author)
        rated = pairs_rated(anchors, records.trace_table.rated_by(self._author))
        fitting = [
            one for one in anchors if wanted.waiting is None or wanted.waiting == (rated[one.place] < len(one.helpful))
        ]
        after = -1 if wanted.cursor is None else decode(wanted.cursor)[1]
        rest = [one for one in fitting if one.place > after]
        shown = rest[: wanted.limit]
        return AnchorPage(
            items=self._rows(shown, rated, revision),
            next=encode(0, shown[-1].place) if len(rest) > len(shown) else None,
            total=len(fitting),
            pairs=sum(len(one.helpful) for one in anchors),
            rated=sum(rated.values()),
        )

    def _rows(self, shown: Sequence[Anchor], rated: Mapping[int, int], revision: str) -> tuple[AnchorRow, ...]:
        places = [one.place for one in shown]
        examples = self._records.table.some(places)
        said = self._told(dict(zip(places, examples, strict=True)), revision)
        return tuple(
            AnchorRow(
                place=one.place,
                id=one.id,
                snippet=" · ".join(example.parts)[:_SNIPPET],
                label=example.label,
                predicted=said[one.place].label if one.place in said else None,
                neighbours=len(one.helpful),
                rated=rated[one.place],
                heuristics=patterns(example),
            )
            for one, example in zip(shown, examples, strict=True)
        )

    def _told(self, examples: Mapping[int, Example], revision: str) -> dict[int, Prediction]:
        """What a revision says of examples, by place; nothing of those whose words are to be judged first."""
        said = self._records.table.said(list(examples), revision)
        if not self._words_first:
            return said
        judged = self._records.table.judged(self._author, [example.id for example in examples.values()])
        return {place: one for place, one in said.items() if examples[place].id in judged}

    def anchor(self, place: int, revision: str | None = None) -> AnchorView:
        """One example that was traced, with the training examples that helped and those that harmed."""
        records, chosen = self._records, self._records.revision_id(revision)
        example = records.table.at(place)
        stored = records.trace_table.one(place, chosen, self._author)
        found = stored.influence
        known = patterns(example)
        seen = self._seen(example.id, [one.train for one in (*found.helpful, *found.harmful)], chosen)
        before, after = records.trace_table.beside(place, chosen)
        own = records.table.prediction(place, chosen)
        rated = any(one.feedback.author == self._author for told in seen.ratings.values() for one in told)
        hidden = self._words_first and not rated and not records.table.judged(self._author, [example.id])
        return AnchorView(
            place=place,
            example=example,
            text_hash=example.text_hash,
            prediction=None if hidden else own,
            heuristics=known,
            label="" if hidden and found.label != example.label else found.label,
            recipe=found.recipe,
            notes=found.notes,
            helpful=_neighbours(found.helpful, seen, known, self._author),
            harmful=_neighbours(found.harmful, seen, known, self._author),
            stale=self._stale(stored, example),
            previous=before,
            following=after,
            hidden=hidden,
        )

    def _stale(self, stored: StoredTrace | StoredDoubt, example: Example) -> str | None:
        if stored.text_hash != example.text_hash:
            return CHANGED
        about = stored.influence if isinstance(stored, StoredTrace) else stored.doubt
        return OTHER_REVISION if about.revision != self._records.current.id else None

    def _seen(self, anchor: str, trains: Sequence[str], revision: str) -> _Seen:
        records = self._records
        found = records.table.find(trains)
        places = [place for place, _ in found.values()]
        ratings = self._opinions([subject_of(NeighbourRating(anchor, train, 1)) for train in found], found)
        relabels = self._opinions([subject_of(Relabel(train, "")) for train in found], found)
        counts = records.copy_table.counts(places)
        if self._author_only is not None:  # their number tells what others said
            asked = self._asked()
            counts &= Counter({place: asked.get(place, 0) for place in counts})
        taught = records.taught_labels(revision, list(found))
        rated = {id_ for id_ in found if self._author in {one.feedback.author for one in ratings.get(id_, ())}}
        said = self._told(dict(found.values()), revision)
        said |= records.table.said([place for id_, (place, _) in found.items() if id_ in rated], revision)
        return _Seen(found, said, ratings, relabels, counts, taught)

    def _opinions(
        self, subjects: Sequence[str], found: Mapping[str, tuple[int, Example]]
    ) -> Mapping[str, list[Opinion]]:
        """What people that I may see said of training examples, by their ids."""
        told: dict[str, list[Opinion]] = {}
        for one in self._records.log.opinions(author=self._author_only, subjects=subjects):
            about = _train_of(one)
            if about in found:
                told.setdefault(about, []).append(self._records.opinion(one, found[about][1].text_hash))
        return told

    # -- copies

    def copies(self, wanted: CopyQuery) -> CopyPage:
        """Copies beside what they were made of, in the order they were made."""
        table = self._records.copy_table
        if self._author_only is not None:
            found, onward, total, (sources, doubtful) = table.page_of(wanted, self._asked())
        else:
            found, onward, total = table.page(wanted)
            sources, doubtful = table.totals()
        return CopyPage(self._copy_views(found), onward, total, sources, doubtful)

    def _asked(self) -> dict[int, int]:
        """How many copies of which training examples (their places) my own answers ask for."""
        wanted = self._records.copies_wanted([self._author])
        return {place: wanted[id_] for id_, (place, _) in self._records.table.find(list(wanted)).items()}

    def change_copy(self, id_: str, change: CopyChange, by: str) -> CopyView:
        """Rewrite a copy by hand; `Conflict` if somebody else did meanwhile."""
        records = self._records
        stored = records.copy_table.one(id_)
        source = records.table.at(stored.place)
        if (change.pair is None) != (source.pair is None):
            raise BadOption("A copy of a pair is a pair, and one of a single text a single text.")
        written = Example(id_, change.text, change.pair)
        if not any(part.strip() for part in written.parts):
            raise BadOption("A copy has words. Delete it instead.")
        if records.table.held_out(written, records.parts):
            raise BadOption("This is one of the texts that models are verified on; it must not be trained on.")
        return self._copy_views([records.copy_table.change(id_, change, by)])[0]

    def delete_copy(self, id_: str, by: str) -> None:
        """Take a copy out; it is not made again."""
        self._records.copy_table.delete(id_, by)

    def _copy_views(self, found: Sequence[StoredCopy]) -> tuple[CopyView, ...]:
        places = list(dict.fromkeys(one.place for one in found))
        sources = dict(zip(places, self._records.table.some(places), strict=True))
        problems = self._records.copy_problems(found, sources)
        if self._author_only is not None:
            open_ = (None, HELD_OUT, CHANGED)  # what depends on nobody's answers
            problems = {id_: one if one in open_ else NOT_NOW for id_, one in problems.items()}
        return tuple(
            CopyView(
                id=one.id,
                place=one.place,
                original=sources[one.place],
                copy=one.copy,
                edited=one.edited,
                by=one.by,
                at=one.at,
                stale=problems[one.id],
            )
            for one in found
        )

    # -- doubts

    def doubts(self, wanted: DoubtQuery) -> DoubtPage:
        """Training examples, those first whose label is the most doubtful."""
        records, revision = self._records, self._records.revision_id(wanted.revision)
        table = records.doubt_table
        found, onward, total = table.page(wanted, revision=revision, author=self._author)
        places = [one.place for one in found]
        examples = dict(zip(places, records.table.some(places), strict=True))
        said = self._told(examples, revision)
        known = {example.id: (place, example) for place, example in examples.items()}
        opinions = self._opinions([subject_of(Relabel(id_, "")) for id_ in known], known)
        items = tuple(self._doubt(one, examples[one.place], said.get(one.place), opinions) for one in found)
        return DoubtPage(items, onward, total, table.judged(revision, self._author), table.recipe(revision))

    def _doubt(
        self,
        stored: StoredDoubt,
        example: Example,
        prediction: Prediction | None,
        opinions: Mapping[str, Sequence[Opinion]],
    ) -> DoubtView:
        mine, others = _mine_and_others(opinions.get(example.id, ()), self._author)
        hidden = self._words_first and not self._records.table.judged(self._author, [example.id])
        return DoubtView(
            place=stored.place,
            rank=stored.rank,
            example=example,
            text_hash=example.text_hash,
            prediction=prediction,
            doubt=replace(stored.doubt, suggested="", signs=()) if hidden else stored.doubt,
            mine=mine,
            others=() if hidden else others,
            stale=self._stale(stored, example),
            hidden=hidden,
        )


def copy_problem(
    stored: StoredCopy, source: Example, *, trains: bool, labels: Mapping[str, str | None], wanted: int, number: int
) -> str | None:
    """Why a copy is not trained on; None if it is.

    `labels`: what people say the right label of an example is. `wanted`: how many copies their ratings ask for, of
    which this is that `number`, from 0.
    """
    if not trains:
        return HELD_OUT
    if source.text_hash != stored.text_hash:
        return CHANGED
    if labels.get(source.id, source.label) != stored.copy.label:
        return RELABELLED
    if not wanted:
        return NOT_RATED
    return None if number < wanted else f"The ratings now ask for {wanted} copies of its training example, not more."


def _neighbours(
    listed: Sequence[Neighbour], seen: _Seen, heuristics: Sequence[str], author: str
) -> tuple[NeighbourView, ...]:
    """Those that are still in the data, each with what people say of it."""
    return tuple(
        _neighbour(one, rank, seen, heuristics, author)
        for rank, one in enumerate(listed, start=1)
        if one.train in seen.found
    )


def _neighbour(one: Neighbour, rank: int, seen: _Seen, heuristics: Sequence[str], author: str) -> NeighbourView:
    place, example = seen.found[one.train]
    mine, others = _mine_and_others(seen.ratings.get(one.train, ()), author)
    relabelled, _ = _mine_and_others(seen.relabels.get(one.train, ()), author)
    own = set(patterns(example))
    return NeighbourView(
        place=place,
        rank=rank,
        score=one.score,
        example=example,
        taught=seen.taught.get(one.train, example.label),
        text_hash=example.text_hash,
        prediction=seen.said.get(place),
        heuristics=tuple(name for name in heuristics if name in own),
        mine=mine,
        others=others,
        relabelled=relabelled,
        copies=seen.copies.get(place, 0),
    )


def _mine_and_others(told: Sequence[Opinion], author: str) -> tuple[Opinion | None, tuple[Opinion, ...]]:
    mine = next((one for one in told if one.feedback.author == author), None)
    return mine, tuple(one for one in told if one.feedback.author != author)


def _train_of(entry: Feedback) -> str:
    says = entry.says
    if isinstance(says, NeighbourRating):
        return says.train
    return says.example if isinstance(says, Relabel) else ""
