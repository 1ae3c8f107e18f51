"""What the screen Flips shows: an example to be rewritten, rewritten texts and their ratings, all in a chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from unhans.errors import BadOption, NotAllowed, NotFound
from unhans.feedback import CHANGED, OTHER_REVISION, stale_reason, subject_of
from unhans.rationales import rationale as rationales
from unhans.rationales import rationale_of
from unhans.records.flipping import NOT_KNOWN, StoredFlip, by_flip, dataset_line
from unhans.risk import compare
from unhans.shapes import (
    DeskQuery,
    Filter,
    FlipChart,
    FlipDesk,
    FlipOffer,
    FlipPage,
    FlipQuery,
    FlipView,
    Opinion,
    RiskView,
    Sentence,
)
from unhans.text import Words
from unhans.types import Attribution, Example, Feedback, FlipRating, Prediction, Rationale

if TYPE_CHECKING:
    from unhans.records import Records

NOT_EXPLAINED = "This text has not been explained yet, so nobody knows its rationale. Have it explained."
WORDS_FIRST = "The words come first here. Judge those of this example, then what the model says of it is shown."
_SHOWN = 50  # flips of one example
_RISKIEST = 100  # examples that a risk tells
_SETS = 20  # explanation sets that are looked through for one that has a text


class FlipViews:
    """Counterfactuals of a project for somebody: who may not see other people's ratings sees their own."""

    def __init__(self, records: Records, author: str, sees_others: bool, words_first: bool) -> None:
        self._records, self._author, self._sees_others = records, author, sees_others
        self._words_first = words_first  # flips tell predictions: only those of examples that were judged are shown
        self._author_only = None if sees_others else author  # whose ratings are shown

    def offer(self) -> FlipOffer:
        """The ways to look for flips."""
        known = self._records.known_flips()
        cannot = "" if known.methods else NOT_KNOWN
        if known.methods and not any(method.usable for method in known.methods):
            cannot = known.methods[0].unusable
        return FlipOffer(known.methods, known.search, known.rationales, cannot)

    def page(self, wanted: FlipQuery) -> FlipPage:
        """Those that fit, with their ratings."""
        records = self._records
        found, onward, total = records.flip_table.page(
            wanted,
            revision=records.revision_id(wanted.revision),
            author=self._author,
            overlap=records.settings.overlap,
            words_first=self._words_first,
        )
        return FlipPage(self._views(found), onward, total)

    def one(self, id_: str) -> FlipView:
        """One of them."""
        found = self._records.flip_table.one(id_)
        self.check_judged([found.place])
        return self._views([found])[0]

    def check_judged(self, places: Sequence[int]) -> None:
        """Refuse what would tell the prediction of examples whose words are to be judged first."""
        if any(self._hidden(example) for example in self._records.table.some(places)):
            raise NotAllowed(WORDS_FIRST)

    def _hidden(self, example: Example) -> bool:
        return self._words_first and not self._records.table.judged(self._author, [example.id])

    def chart(self, revision: str | None) -> FlipChart:
        """All of a revision by probability and distance."""
        chosen = self._records.revision_id(revision)
        dots, total = self._records.flip_table.chart(chosen, self._author, words_first=self._words_first)
        return FlipChart(chosen, dots, total)

    def desk(self, place: int, query: DeskQuery, wanted: Filter) -> FlipDesk:
        """An example cut into sentences, with its rationale and the flips there are."""
        records, revision = self._records, self._records.revision_id(query.revision)
        rationales[query.rationale]  # refused also where nothing is explained
        example, prediction = records.table.at(place), records.table.prediction(place, revision)
        words, hidden = Words(example), self._hidden(example)
        said = None if hidden else prediction  # explanations for what the model says would tell it
        explained, attribution = self._explained(example, said, revision, query.explained)
        rationale = rationale_of(attribution, text=example, method=query.rationale) if attribution else None
        reason = "" if rationale else NOT_EXPLAINED
        before, after = records.table.neighbours(
            place,
            wanted,
            revision=records.current.id,
            author=self._author,
            sort="order" if self._words_first else query.sort,
        )
        return FlipDesk(
            place=place,
            example=example,
            text_hash=example.text_hash,
            prediction=said,
            words=tuple(words.strings),
            spans=tuple(words.spans),
            sentences=_sentences(example, rationale, attribution),
            rationale=replace(rationale, label="") if hidden and rationale else rationale,
            explained=explained,
            no_rationale=reason,
            flips=() if hidden else self._views(records.flip_table.newest(place, revision, _SHOWN)),
            previous=before,
            following=after,
            hidden=hidden,
        )

    def risk(self, revision: str | None, width: float) -> RiskView:
        """What ratings of a revision's flips come to, against those of the revision that it was made from."""
        records, chosen = self._records, self._records.revision_id(revision)
        after = records.risk(chosen, width=width, author=self._author_only)
        parent = records.parent_of(chosen)
        before = None if parent is None else records.risk(parent, width=width, author=self._author_only)
        change = None if before is None else compare(before, after)
        shown = replace(after, local=after.local[:_RISKIEST])
        found = records.table.find([one.example for one in shown.local])
        return RiskView(
            revision=chosen,
            own=not self._sees_others,
            flips=records.flip_table.count(chosen),
            risk=shown,
            places={id_: place for id_, (place, _) in found.items()},
            before=None if before is None else replace(before, local=()),
            change=change,
            verdict=None if change is None else change.verdict,
        )

    def dataset(self, revision: str | None) -> Iterator[str]:
        """All of a revision, or of all where none is named, with all ratings, as lines of JSON."""
        records = self._records
        chosen = None if revision is None else records.revision_id(revision)
        rated = by_flip(records.log.opinions(kinds=("flip_rating",)))
        for stored in records.flip_table.all(chosen):
            yield dataset_line(stored, records.table.at(stored.place), rated.get(stored.flip.id, ()))

    def _explained(
        self, example: Example, prediction: Prediction | None, revision: str, asked: str | None
    ) -> tuple[str | None, Attribution | None]:
        """The explanation set asked for, or the newest that has this text, word by word and for its prediction."""
        table = self._records.explained
        if asked is not None:
            chosen = table.set(asked)
            if chosen.revision != revision:
                raise NotFound("There are no such explanations of this revision.")
            if chosen.units != "word":
                raise BadOption("These explanations are of sentences or phrases. Choose some that are of words.")
            return chosen.id, table.one(chosen.id, example.text_hash)
        label = prediction.label if prediction else None
        fitting = [one for one in table.sets(revision) if one.units == "word" and one.target in (None, label)]
        for one in fitting[:_SETS]:
            if found := table.one(one.id, example.text_hash):
                return one.id, found
        return None, None

    def _views(self, found: Sequence[StoredFlip]) -> tuple[FlipView, ...]:
        records = self._records
        originals = records.table.some(list(dict.fromkeys(one.place for one in found))) if found else []
        at = dict(zip(dict.fromkeys(one.place for one in found), originals, strict=True))
        subjects = [subject_of(FlipRating(one.flip.id, None, None, None)) for one in found]
        rated = by_flip(records.log.opinions(author=self._author_only, subjects=subjects))
        return tuple(self._view(one, at[one.place], rated.get(one.flip.id, [])) for one in found)

    def _view(self, stored: StoredFlip, original: Example, ratings: Sequence[Feedback]) -> FlipView:
        flip = stored.flip
        told = [
            Opinion(one, stale_reason(one, text_hash=original.text_hash, revision=flip.before.revision))
            for one in ratings
        ]
        changed = CHANGED if original.text_hash != stored.text_hash else None
        return FlipView(
            id=flip.id,
            place=stored.place,
            original=original,
            text_hash=original.text_hash,
            flip=flip,
            flips=flip.flips,
            margin=flip.margin,
            by=stored.by,
            at=stored.at,
            mine=next((one for one in told if one.feedback.author == self._author), None),
            others=tuple(one for one in told if one.feedback.author != self._author),
            ratings=len(told),
            stale=changed or (OTHER_REVISION if flip.before.revision != self._records.current.id else None),
        )


def _sentences(example: Example, rationale: Rationale | None, attribution: Attribution | None) -> tuple[Sentence, ...]:
    """The sentences in their order, each with its part of the rationale and of the scores."""
    whole = Words(example, units="sentence")
    chosen = set(rationale.chosen) if rationale else set()
    scores = dict(enumerate(abs(score) for score in attribution.scores)) if attribution else {}
    total = sum(scores.values()) or 1.0
    return tuple(
        Sentence(
            words=group,
            part=span.part,
            rationale=tuple(n for n in group if n in chosen),
            weight=sum(scores.get(n, 0.0) for n in group) / total,
        )
        for group, span in zip(whole.groups, whole.spans, strict=True)
    )
