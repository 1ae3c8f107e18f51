"""Beam search over drafts: all examples of a group take a step together, so that the model is asked in full batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unhans.counterfactuals._constraints import Constraints
from unhans.counterfactuals._drafts import Draft, Goal, combined, draft
from unhans.model import Classifier
from unhans.text import Variant, Words
from unhans.types import Alternative, Edit, Example

Line = NDArray[np.float64]
Change = tuple[Edit, ...]
Propose = Callable[[Sequence[Draft]], list[list[Change]]]
LONGEST = 12  # edits: with more, too many subsets would have to be tried to find a smallest one
_SPARE = 2  # flips trimmed beyond those wanted: one that came later may need fewer edits


@dataclass(frozen=True)
class Node:
    """A set of edits, what the model says about it, and the step that led there."""

    edits: tuple[Edit, ...]
    line: Line
    gain: float
    flips: bool
    parent: Node | None = None
    new: tuple[Edit, ...] = ()

    @property
    def path(self) -> tuple[Node, ...]:
        """The steps that led here, the first one first."""
        return (*self.parent.path, self) if self.parent is not None else ()


@dataclass
class Hunt:
    """The search for flips of one example."""

    example: Example
    words: Words
    open: tuple[int, ...]
    goal: Goal
    root: Node
    beam: list[tuple[Draft, Node]] = field(default_factory=list)
    seen: set[frozenset[Edit]] = field(default_factory=set)
    found: list[Node] = field(default_factory=list)
    best: Node | None = None
    over: bool = False

    def take(self, nodes: Iterable[Node], most: int) -> None:
        """Note what a step has found: flips, and the best attempt of no more than so many edits."""
        for node in nodes:
            if node.flips:
                self.found.append(node)
            elif len(node.edits) <= most and (self.best is None or node.gain > self.best.gain):
                self.best = node


@dataclass(frozen=True)
class Search:
    """What all searches of one call share."""

    classifier: Classifier
    propose: Propose
    rules: Constraints
    how: dict[str, Any]
    keep: int

    @property
    def most(self) -> int:
        """Edits of a flip at most."""
        return int(self.rules.settings["max_edits"])

    def ask(self, variants: Sequence[Variant]) -> Line:
        """Log-probabilities of variants, in one go."""
        return self.classifier.log_probs(variants, **self.how)

    def nodes(
        self, hunts: Sequence[Hunt], wanted: Sequence[Sequence[tuple[Node, tuple[Edit, ...]]]]
    ) -> list[list[Node]]:
        """What the model says of each set of edits: (the node before, the new edits), for each example."""
        sets = [[combined(before.edits, new) for before, new in some] for some in wanted]
        lines = self.ask([h.words.edited(e) for h, some in zip(hunts, sets, strict=True) for e in some])
        found: list[list[Node]] = []
        at = 0
        for hunt, some, edits in zip(hunts, wanted, sets, strict=True):
            own = lines[at : at + len(some)]
            at += len(some)
            gains, met = (hunt.goal.gain(own), hunt.goal.met(own)) if len(own) else ((), ())
            made = zip(edits, own, gains, met, some, strict=True)
            found.append([Node(e, line, float(g), bool(m), before, new) for e, line, g, m, (before, new) in made])
        return found

    def begin(self, hunts: Sequence[Hunt], starts: Sequence[Sequence[Edit]]) -> None:
        """Lay the first draft of each example: the original, or the steps that somebody has chosen already."""
        longest = max(map(len, starts), default=0)
        last: dict[int, Node] = {id(h): h.root for h in hunts}
        for n in range(longest):
            some = [(h, start[n]) for h, start in zip(hunts, starts, strict=True) if n < len(start) and not h.over]
            made = self.nodes([h for h, _ in some], [[(last[id(h)], (edit,))] for h, edit in some])
            for (hunt, _), (node,) in zip(some, made, strict=True):
                hunt.take([node], self.most)
                last[id(hunt)] = node
        for hunt in hunts:
            hunt.over = hunt.over or last[id(hunt)].flips
            hunt.beam = [] if hunt.over else self._drafts(hunt, [last[id(hunt)]])

    def step(self, hunts: Sequence[Hunt]) -> None:
        """Let every example that still searches change one more word."""
        for hunt in hunts:
            hunt.over = hunt.over or not hunt.beam
        active = [hunt for hunt in hunts if not hunt.over]
        flat = [(hunt, *pair) for hunt in active for pair in hunt.beam]
        proposals = self._allowed([on for _, on, _ in flat], self.propose([on for _, on, _ in flat]))
        wanted: dict[int, list[tuple[Node, Change]]] = {id(hunt): [] for hunt in active}
        for (hunt, on, node), some in zip(flat, proposals, strict=True):
            for new in some:
                key = frozenset(combined(on.edits, new))
                if key not in hunt.seen and len(key) <= LONGEST:
                    hunt.seen.add(key)
                    wanted[id(hunt)].append((node, new))
        for hunt, made in zip(active, self.nodes(active, list(wanted.values())), strict=True):
            hunt.take(made, self.most)
            within = [node for node in hunt.found if len(node.edits) <= self.most]
            hunt.over = not made or len(within) >= self.keep
            made.sort(key=lambda node: -node.gain)
            alive = [node for node in made if not node.flips][: int(self.rules.settings["beam"])]
            hunt.beam = [] if hunt.over else self._drafts(hunt, alive)

    def minimal(self, hunts: Sequence[Hunt]) -> list[list[tuple[Node, Node]]]:
        """For each example, flips (where the search ended, what of it is needed): no part of what is needed flips.

        Every subset is tried, the smallest first; of those of one size the one that convinces the model most is taken.
        """
        chosen = [sorted(h.found, key=lambda node: (len(node.edits), -node.gain))[: self.keep + _SPARE] for h in hunts]
        sizes = [[_subsets(node.edits, self.most) for node in some] for some in chosen]
        wanted = [[(h.root, part) for some in own for part in some] for h, own in zip(hunts, sizes, strict=True)]
        results: list[list[tuple[Node, Node]]] = []
        for some, parts, made in zip(chosen, sizes, self.nodes(hunts, wanted), strict=True):
            found: dict[frozenset[Edit], tuple[Node, Node]] = {}
            at = 0
            for node, own in zip(some, parts, strict=True):
                flips = [one for one in made[at : at + len(own)] if one.flips]
                at += len(own)
                least = min(flips, key=lambda one: (len(one.edits), -one.gain), default=None)
                if least is not None:
                    found.setdefault(frozenset(least.edits), (node, least))
            order = sorted(found.values(), key=lambda pair: (len(pair[1].edits), -pair[1].gain))
            results.append(order[: self.keep])
        return results

    def alternatives(self, asked: Sequence[tuple[Hunt, Node]]) -> list[tuple[Alternative, ...]]:
        """For each step, other words for its place, by what they do to the label that is sought."""
        wanted = int(self.rules.settings["alternatives"])
        results: list[tuple[Alternative, ...]] = [()] * len(asked)
        drafts: dict[int, Draft] = {}
        for n, (hunt, node) in enumerate(asked):
            assert node.parent is not None  # a step has something before it
            if wanted and len(node.new) == 1:
                made = draft(hunt.words, node.parent.edits, hunt.open, hunt.goal, hunt.example.id)
                if made is not None and node.new[0].position in made.open:
                    drafts[n] = made.only(node.new[0].position)
        proposals = self._allowed(list(drafts.values()), self.propose(list(drafts.values())) if drafts else [])
        hunts = [asked[n][0] for n in drafts]
        others = [
            [(asked[n][1].parent, new) for new in some if new != asked[n][1].new]
            for n, some in zip(drafts, proposals, strict=True)
        ]
        for n, hunt, made_nodes in zip(drafts, hunts, self.nodes(hunts, others), strict=True):  # type: ignore[arg-type]
            made_nodes.sort(key=lambda node: -node.gain)
            results[n] = tuple(Alternative(one.new[0], sought(hunt.goal, one.line)) for one in made_nodes[:wanted])
        return results

    def _allowed(self, drafts: Sequence[Draft], proposals: Sequence[Sequence[Change]]) -> list[list[Change]]:
        """The proposals that keep to the rules."""
        kept = [
            [new for new in dict.fromkeys(some) if new and all(self.rules.allows(on, edit) for edit in new)]
            for on, some in zip(drafts, proposals, strict=True)
        ]
        flat = [(on, new) for on, some in zip(drafts, kept, strict=True) for new in some]
        fluent = iter(self.rules.fluent(flat, self.how.get("cancelled")))
        return [[new for new in some if next(fluent)] for some in kept]

    def _drafts(self, hunt: Hunt, nodes: Sequence[Node]) -> list[tuple[Draft, Node]]:
        """Drafts to go on from, as long as they may be changed further."""
        found: list[tuple[Draft, Node]] = []
        for node in nodes:
            if len(node.edits) >= self.most:
                continue
            changed = {edit.position for edit in node.edits} if self.rules.settings["once"] else set()
            made = draft(hunt.words, node.edits, [n for n in hunt.open if n not in changed], hunt.goal, hunt.example.id)
            if made is not None and made.open:
                found.append((made, node))
        return found


def sought(goal: Goal, line: Line) -> float:
    """The probability of the label that is sought; of any other, where any will do."""
    own = float(np.exp(line[goal.original if goal.target is None else goal.target]))
    return 1 - own if goal.target is None else own


def _subsets(edits: tuple[Edit, ...], most: int) -> list[tuple[Edit, ...]]:
    sizes = range(min(len(edits), most) + 1)
    return [part for size in sizes for part in combinations(edits, size)]
