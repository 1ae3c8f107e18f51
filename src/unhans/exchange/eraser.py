"""ERASER: a line for each annotator of an example; raised words are evidence, `operations` has all votes.

Words are the tokens, those of the pair counted on behind those of the text. Files of others are read too: their
evidence is looked for in the text, for their tokens are not ours.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from unhans.exchange.shared import (
    Find,
    Judged,
    Refused,
    Vote,
    covered,
    listed,
    objects,
    optional,
    position_of,
    short,
    state_of,
    string,
    votes_of,
)
from unhans.text import Words
from unhans.types import Example


def records(example: Example, words: Words, judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """A line for each person."""
    for one in judged:
        label = one.label or example.label or next((label for _, label, vote in one.votes if vote == "raise"), "")
        raised = [position for position, for_, vote in one.votes if vote == "raise" and for_ == label]
        yield {
            "annotation_id": f"{example.id}@{one.author}",  # unique, as ERASER wants it
            "query": "",
            "query_type": None,
            "classification": label,
            "docids": [example.id],
            "evidences": [[_evidence(example, words, run)] for run in _runs(raised, words)],
            "example": example.id,
            "annotator": one.author,
            "operations": [
                {"position": position, "word": words.strings[position], "label": for_, "operation": vote}
                for position, for_, vote in one.votes
            ],
            "relabel": one.label,
            "drop": one.drop,
            "state": one.state,
            "note": one.note,
        }


def _evidence(example: Example, words: Words, run: Sequence[int]) -> dict[str, Any]:
    line = int(words.spans[run[0]].part == "pair")  # the lines of a document are the parts of the example
    return {
        "docid": example.id,
        "start_token": run[0],
        "end_token": run[-1] + 1,
        "start_sentence": line,
        "end_sentence": line + 1,
        "text": " ".join(map(_token, words.strings[run[0] : run[-1] + 1])),
    }


def _runs(positions: Iterable[int], words: Words) -> list[list[int]]:
    """Neighbouring words of one part together."""
    runs: list[list[int]] = []
    for position in sorted(positions):
        if runs and runs[-1][-1] == position - 1 and words.spans[position].part == words.spans[position - 1].part:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def write_documents(examples: Iterable[Example], file: BinaryIO) -> int:
    """ERASER's `docs.jsonl`: the words of each example with blanks between, the pair on a line of its own."""
    number = 0
    for example in examples:
        number += 1
        words = Words(example)
        lines: list[list[str]] = [[] for _ in example.parts]
        for span, word in zip(words.spans, words.strings, strict=True):
            lines[span.part == "pair"].append(_token(word))
        document = {"docid": example.id, "document": "\n".join(map(" ".join, lines))}
        file.write(json.dumps(document, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
    return number


def _token(word: str) -> str:
    return re.sub(r"\s", "_", word)  # a blank with an accent on it is a word, too


def judged(cells: Mapping[str, Any], find: Find) -> Iterator[Judged]:
    """What the annotator of a line said."""
    groups = listed(cells, "evidences")
    flat = [one for group in groups for one in (group if isinstance(group, list) else [group])]
    evidences = objects(flat, "evidences")
    named = [cells.get("example"), *listed(cells, "docids"), *(one.get("docid") for one in evidences)]
    ids = [*filter(None, (optional(id_) for id_ in named)), string(cells, "annotation_id")]
    example = next((found for id_ in dict.fromkeys(ids) if (found := find(id_, "", None))), None)
    if example is None:
        raise Refused(f"there is no example {short(ids[0])}.")
    words = Words(example)
    if "operations" in cells:
        votes = _operations(objects(listed(cells, "operations"), "operations"), words)
    else:
        label, places = string(cells, "classification"), _Places(example, words)
        votes = votes_of((places.of_evidence(one), label, "raise") for one in evidences)
    yield Judged(
        example,
        words,
        optional(cells.get("annotator")),
        votes,
        None if cells.get("relabel") is None else string(cells, "relabel"),
        cells.get("drop") is True,
        state_of(cells.get("state")),
        optional(cells.get("note")),
    )


def _operations(operations: Sequence[Mapping[str, Any]], words: Words) -> tuple[Vote, ...]:
    votes: list[Vote] = []
    for one in operations:
        position, vote = position_of(one, "position"), one.get("operation")
        if words.strings[position : position + 1] != (string(one, "word"),):
            raise Refused(f"word {position:,} of the text is not {short(one.get('word'))}.")
        if vote not in ("raise", "lower"):
            raise Refused("an operation is neither raise nor lower.")
        votes.append((position, string(one, "label"), vote))
    return tuple(votes)


class _Places:
    """Finds evidence, cut into tokens by who knows whom, in the text of an example."""

    def __init__(self, example: Example, words: Words) -> None:
        self._words = words
        self._raw = "\n".join(example.parts)
        self._pair_at = len(example.text) + 1
        self._tokens = [match.span() for match in re.finditer(r"\S+", self._raw)]
        self._squeezed = {keep: _squeezed(self._raw, keep) for keep in (_is_visible, str.isalnum)}

    def of_evidence(self, evidence: Mapping[str, Any]) -> list[int]:
        """Positions of the words that the evidence covers."""
        text, start = optional(evidence.get("text")), evidence.get("start_token")
        near = start if type(start) is int else 0
        span = self._found(text, near) if text.strip() else self._counted(near, evidence.get("end_token"))
        if span is None:
            raise Refused(f"the text has no {short(text)}." if text else "the evidence lies outside the text.")
        start, end = span
        in_text = covered(self._words, "text", start, end)
        return [*in_text, *covered(self._words, "pair", start - self._pair_at, end - self._pair_at)]

    def _found(self, text: str, near: int) -> tuple[int, int] | None:
        """Where the text is, white space and case aside, else by its letters and digits alone; nearest to a token."""
        about = self._tokens[max(0, min(near, len(self._tokens) - 1))][0] if self._tokens else 0
        for keep, (squeezed, at) in self._squeezed.items():
            wanted, _ = _squeezed(text, keep)
            middle = bisect_left(at, about)
            ahead, back = squeezed.find(wanted, middle), squeezed.rfind(wanted, 0, middle + len(wanted) - 1)
            found = [at_ for at_ in (ahead, back) if at_ >= 0]
            if wanted and found:
                best = min(found, key=lambda place: abs(place - middle))
                return at[best], at[best + len(wanted) - 1] + 1
        return None

    def _counted(self, start: int, end: Any) -> tuple[int, int] | None:
        if type(end) is not int or not 0 <= start < end <= len(self._tokens):
            return None
        return self._tokens[start][0], self._tokens[end - 1][1]


def _is_visible(sign: str) -> bool:
    return not sign.isspace()


def _squeezed(text: str, keep: Callable[[str], bool]) -> tuple[str, list[int]]:
    """The characters to keep, case-folded, and where each was."""
    kept = [(folded, at) for at, sign in enumerate(text) if keep(sign) for folded in sign.casefold()]
    return "".join(folded for folded, _ in kept), [at for _, at in kept]
