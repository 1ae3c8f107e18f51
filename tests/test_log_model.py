"""The log of feedback against a dictionary: whatever people do in whatever order, both come to the same."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from databases import KINDS, new_store
from unhans.errors import NotFound
from unhans.records.examples import ExampleTable
from unhans.records.judging import RESERVED_SECONDS, Differs, FeedbackLog
from unhans.shapes import Filter
from unhans.types import Example, Feedback, Relabel, Review, WordVote

PEOPLE = ("ann", "bob", "eve")
EXAMPLES = tuple(Example(f"e{n}", "good and bad") for n in range(3))
people = st.sampled_from(PEOPLE)
examples = st.sampled_from([example.id for example in EXAMPLES])
reviews = st.builds(Review, examples, st.sampled_from(["done", "skipped", "flagged"]))
votes = st.builds(
    lambda example, vote: WordVote("good", "positive", vote, example, None if example is None else 0),
    st.none() | examples,
    st.sampled_from(["raise", "lower"]),
)
relabels = st.builds(Relabel, examples, st.sampled_from(["positive", "negative"]))
answers = reviews | votes | relabels


class Model:
    """The same in a few lists and dictionaries: per person and question a pile, of which the top one holds."""

    def __init__(self) -> None:
        self.log: list[Feedback] = []
        self.keys: dict[tuple[str, str], Feedback] = {}
        self.piles: dict[tuple[str, str], list[Feedback]] = {}
        self.held: dict[str, tuple[int, float]] = {}  # by whom, place and until when

    def add(self, entry: Feedback, key: str) -> None:
        self.log.append(entry)
        self.keys[entry.author, key] = entry
        pile = self.piles.setdefault((entry.author, question(entry)), [])
        if entry.retracts is None:
            pile.append(entry)
        else:
            pile[:] = [one for one in pile if one.id != entry.retracts]

    def holding(self) -> dict[tuple[str, str], Feedback]:
        return {about: pile[-1] for about, pile in self.piles.items() if pile}

    def latest(self, author: str, example: str | None) -> Feedback | None:
        mine = [one for (name, _), one in self.holding().items() if name == author]
        mine = [one for one in mine if example is None or one.says.example == example]
        return max(mine, key=self.log.index, default=None)


def question(entry: Feedback) -> str:
    said = entry.says
    return json.dumps([said.kind, said.example, getattr(said, "word", None)])


def as_vote(entry: Feedback) -> tuple:
    return entry.id, entry.author, entry.says


class Judging(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = new_store(self.kind, Path(self.folder.name))
        self.now = 1_000_000.0
        table = ExampleTable(self.store)
        table.fill(EXAMPLES, len(EXAMPLES))
        self.log, self.model, self.sent = FeedbackLog(self.store, table, lambda: self.now), Model(), 0

    def teardown(self) -> None:
        self.store.drop()
        self.store.close()
        self.folder.cleanup()

    def entry(self, author: str, says) -> Feedback:
        self.sent += 1
        return Feedback(f"f{self.sent}", says, author, datetime.now(UTC).isoformat(), "r0")

    @rule(author=people, says=answers)
    def answer(self, author, says):
        self.save(author, says)

    @rule(example=examples, state=st.sampled_from(["done", "flagged"]))
    def all_agree(self, example, state):
        for author in PEOPLE:
            self.save(author, Review(example, state))

    def save(self, author, says):
        entry = self.entry(author, says)
        stored = self.log.add(entry, key=entry.id)
        assert (stored.entry, stored.standing, stored.known) == (entry, entry, False)
        self.model.add(entry, entry.id)

    @rule(author=people, says=answers, right=st.booleans())
    def change(self, author, says, right):
        """An answer by somebody who believes that something holds, rightly or not."""
        entry = self.entry(author, says)
        holds = self.model.holding().get((author, question(entry)))
        expects = (holds.id if holds else "") if right else "something else"
        if right:
            assert self.log.add(entry, key=entry.id, expects=expects).entry == entry
            self.model.add(entry, entry.id)
        else:
            with pytest.raises(Differs) as refused:
                self.log.add(entry, key=entry.id, expects=expects)
            assert refused.value.current == holds

    @rule(data=st.data())
    def send_again(self, data):
        """The reply was lost: the same key, whatever else has happened since."""
        sent = sorted(about for about in self.model.keys if not about[1].startswith("clear-"))
        if sent:
            author, key = data.draw(st.sampled_from(sent))
            before = self.model.keys[author, key]
            if before.retracts is None:
                stored = self.log.add(self.entry(author, before.says), key=key, expects="something else")
            else:
                stored = self.log.retract(author, key=key)
            assert (stored.entry, stored.known) == (before, True)
            assert stored.standing == self.model.holding().get((author, question(before)))

    @rule(author=people, example=st.none() | examples)
    def undo(self, author, example):
        self.sent += 1
        target = self.model.latest(author, example)
        stored = self.log.retract(author, key=f"u{self.sent}", example=example)
        assert (stored.entry and stored.entry.retracts) == (target and target.id)
        if stored.entry:
            self.model.add(stored.entry, f"u{self.sent}")
            assert stored.standing == self.model.holding().get((author, question(stored.entry)))

    @rule(author=people, data=st.data(), clear=st.booleans())
    def undo_one(self, author, data, clear):
        """Of anybody's entries, or of none: only what holds and is one's own can be taken back."""
        self.sent += 1
        wanted = data.draw(st.sampled_from([entry.id for entry in self.model.log] or ["nothing"]))
        mine = [one.id for (name, _), one in self.model.holding().items() if name == author]
        if wanted not in mine:
            with pytest.raises(NotFound):
                self.log.retract(author, key=f"u{self.sent}", retracts=wanted, clear=clear)
        else:
            stored = self.log.retract(author, key=f"u{self.sent}", retracts=wanted, clear=clear)
            assert stored.entry.retracts == wanted
            pile = self.model.piles[author, question(stored.entry)]
            more = list(reversed(pile[:-1])) if clear else []
            self.model.add(stored.entry, f"u{self.sent}")
            written = list(self.log.entries())[len(self.model.log) :]
            assert [one.retracts for one in written] == [one.id for one in more]
            for one in written:
                self.model.add(one, f"clear-{one.id}")
            assert stored.standing == self.model.holding().get((author, question(stored.entry)))

    @rule(author=people, says=st.lists(answers, max_size=3), twice=st.booleans())
    def import_(self, author, says, twice):
        new = [self.entry(author, one) for one in says]
        old = self.model.log[-2:]
        pairs = [(one, f"import-{one.id}") for one in [*old, *new]]
        assert self.log.add_many(pairs) == (len(new), len(old))
        if twice:
            assert self.log.add_many(pairs) == (0, len(pairs))
        for one in new:
            self.model.add(one, f"import-{one.id}")

    @rule(author=people, overlap=st.integers(1, 2), after=st.none() | st.integers(0, 2))
    def reserve(self, author, overlap, after):
        self.look_for_work(author, overlap, after)

    @rule(leaves=people, comes=people)
    def somebody_leaves(self, leaves, comes):
        self.look_for_work(leaves, 1, None)
        self.look_for_work(comes, 1, None)
        self.now += RESERVED_SECONDS
        self.look_for_work(comes, 1, None)

    def look_for_work(self, author, overlap, after):
        held = {who: what for who, what in self.model.held.items() if who != author and what[1] > self.now}
        holding = self.model.holding().values()
        reviewed = [(one.author, one.says) for one in holding if isinstance(one.says, Review)]
        finished = {example.id: 0 for example in EXAMPLES}
        for _, says in reviewed:
            finished[says.example] += says.state == "done"
        mine = {says.example for who, says in reviewed if who == author}
        start = 0 if after is None else after + 1
        order = [*range(start, len(EXAMPLES)), *range(start)]
        free = [
            place
            for place in order
            if EXAMPLES[place].id not in mine
            and finished[EXAMPLES[place].id] + sum(what[0] == place for what in held.values()) < overlap
        ]
        given = self.log.next_place(author, Filter(), revision="r0", overlap=overlap, after=after)
        assert given.place == (free[0] if free else None)
        assert bool(given.message) == (not free)
        self.model.held = held | ({author: (free[0], self.now + RESERVED_SECONDS)} if free else {})

    @rule(seconds=st.sampled_from([1.0, RESERVED_SECONDS / 2, RESERVED_SECONDS]))
    def expire(self, seconds):
        self.now += seconds

    @invariant()
    def both_come_to_the_same(self):
        if not hasattr(self, "log"):
            return
        assert list(self.log.entries()) == self.model.log
        holding = self.model.holding()
        assert sorted(map(as_vote, self.log.opinions()), key=str) == sorted(map(as_vote, holding.values()), key=str)
        reviewed = [one for one in holding.values() if isinstance(one.says, Review)]
        for person in PEOPLE:
            told = self.log.progress(person)
            mine = [one.says.state for one in reviewed if one.author == person]
            assert (told.mine, told.skipped) == (mine.count("done"), mine.count("skipped"))
            assert told.anyone == len({one.says.example for one in reviewed if one.says.state == "done"})
            assert told.flagged == len({one.says.example for one in reviewed if one.says.state == "flagged"})
            for example in EXAMPLES:
                about = [one.says for (who, _), one in holding.items() if who == person]
                about = [says for says in about if says.example == example.id]
                states = [says.state for says in about if isinstance(says, Review)]
                voted = any(isinstance(says, WordVote) for says in about)
                assert self.log.state(person, example.id) == (states[0] if states else "draft" if voted else "pending")


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_comes_to_what_a_dictionary_comes_to(kind):
    machine = type(kind, (Judging,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=30))
