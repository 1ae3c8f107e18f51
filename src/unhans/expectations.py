"""Expectations: conditions on a model that somebody writes down once and a machine checks every time.

    accuracy >= 0.90                      on every set
    accuracy(test, label=positive) >= 0.85
    gap(group) <= 0.03                    the largest difference in accuracy between groups
    score('muslims') <= 0.02              the word's mean share of the explanations of texts that have it
    broken <= 5                           examples that were right before
    drop(accuracy) <= 0.01                before minus after

They are read by hand: nothing of them is ever run as code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unhans.errors import BadOption
from unhans.types import Expectation, Measure

_MEASURES = ("accuracy", "macro_f1", "f1", "calibration_error")
_COUNTS = ("broken", "fixed")
_NAMES = (*_MEASURES, "gap", "score", *_COUNTS, "moved", "drop")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_LONGEST = 500
_FORM = re.compile(
    r"\s*(?P<name>\w+)\s*(?:\((?P<inside>.*)\)\s*)?(?P<sign><=|>=|<|>)\s*"
    r"(?P<bound>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*",
    re.DOTALL | re.ASCII,
)
_ARGUMENT = re.compile(
    r"\s*(?:(?P<key>\w+)\s*=\s*)?(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<bare>[^\s'\",=()][^'\",=()]*))\s*(?:,|$)",
    re.DOTALL,
)
_HOW = "An expectation is a measure, a comparison and a number, such as accuracy(test) >= 0.9 or score('word') <= 0.02."
_NEEDS_BEFORE = "needs a model to compare with, and the report is of one model alone."


@dataclass(frozen=True)
class Expected:
    """An expectation as it was understood."""

    text: str
    name: str
    sign: str
    bound: float
    of: str | None = None  # the word of score, the group or label of gap, the measure of drop
    data: str | None = None  # None: every set
    label: str | None = None
    group: str | None = None

    def holds_for(self, value: float) -> bool:
        """Whether a value is on the right side of the bound."""
        return _SIGNS[self.sign](round(value, 9), self.bound)  # 0.67 - 0.66 is not above 0.01

    def worst(self, values: Mapping[str, float]) -> tuple[str, float]:
        """The value that is farthest on the wrong side, and where it was found."""
        choose = max if self.sign.startswith("<") else min
        return choose(values.items(), key=lambda pair: pair[1])


@dataclass(frozen=True)
class Findings:
    """What expectations are held against."""

    sets: tuple[str, ...]  # those that were given; sets made from votes count only where they are named
    measures: tuple[Measure, ...]
    shares: Mapping[tuple[str, str | None], tuple[float, int]] = field(
        default_factory=dict
    )  # word, label; share, texts
    fixed: Mapping[str, int] | None = None  # by set; None: there was nothing to compare with
    broken: Mapping[str, int] | None = None
    moved: float | None = None


def check_expectations(texts: Iterable[str]) -> tuple[Expected, ...]:
    """The expectations as they are understood; one that is not is an error, before any work is done."""
    return tuple(_read(text) for text in texts)


def words_of(expected: Iterable[Expected]) -> list[tuple[str, str | None]]:
    """Words, with the label if one is named, whose share must be measured."""
    asked = [(one.of, one.label) for one in expected if one.name == "score" and one.of is not None]
    return list(dict.fromkeys(asked))


def judge(expected: Expected, found: Findings) -> Expectation:
    """Whether it holds. What cannot be measured does not hold, and says why."""
    try:
        values, unit = _values(expected, found)
    except LookupError as missing:
        return Expectation(expected.text, False, None, str(missing.args[0]))
    where, value = expected.worst(values)
    several = f", the worst of {len(values)} sets" if len(values) > 1 else ""
    on = f" on {where}" if where else ""
    told = f"{_called(expected)} is {value:.4g}{on}{several}{unit}."
    return Expectation(expected.text, expected.holds_for(value), value, told)


# What was written


def _read(text: str) -> Expected:
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise BadOption(f"The expectation {text[:80]!r} cannot be read. {_HOW}")
    name = found["name"]
    if name not in _NAMES:
        raise BadOption(
            f"The expectation {text!r} names {name!r}, which is not measured. There is: {', '.join(_NAMES)}."
        )
    plain, named = _arguments(text, found["inside"] or "")
    of = _subject(text, name, plain)
    measured = of if name == "drop" else name
    if len(plain) > 1:
        raise BadOption(f"The expectation {text!r} names more than one set. Write one expectation for each.")
    _check_named(text, name, measured, named, plain)
    data = plain[0] if plain else None
    return Expected(
        text.strip(), name, found["sign"], float(found["bound"]), of, data, named.get("label"), named.get("group")
    )


def _arguments(text: str, inside: str) -> tuple[list[str], dict[str, str]]:
    plain: list[str] = []
    named: dict[str, str] = {}
    at = 0
    while at < len(inside):
        found = _ARGUMENT.match(inside, at)
        if found is None or found.end() == at:
            raise BadOption(f"What is in the brackets of the expectation {text!r} cannot be read. {_HOW}")
        value = next(v for v in (found["single"], found["double"], found["bare"]) if v is not None)
        value = value.strip() if found["bare"] is not None else value
        if found["key"] is None and not named:
            plain.append(value)
        elif found["key"] in ("label", "group") and found["key"] not in named:
            named[found["key"]] = value
        else:
            raise BadOption(
                f"In the expectation {text!r}, label= and group= may stand once each, after everything else."
            )
        at = found.end()
    return plain, named


def _subject(text: str, name: str, plain: list[str]) -> str | None:
    """What must come first in the brackets; it is taken from the list."""
    wanted = {"gap": ("group", "label"), "drop": _MEASURES}.get(name)
    if wanted is None and name != "score":
        return None
    if not plain or not plain[0] or (wanted is not None and plain[0] not in wanted):
        one = "a word" if wanted is None else f"one of {', '.join(wanted)}"
        raise BadOption(f"In the expectation {text!r}, {name} needs {one} in its brackets.")
    return plain.pop(0)


def _check_named(text: str, name: str, measured: str | None, named: Mapping[str, str], plain: Sequence[str]) -> None:
    allowed = (
        {"label", "group"} if measured == "accuracy" else {"label"} if measured in ("macro_f1", "f1", "score") else ()
    )
    if stray := sorted(named.keys() - set(allowed)):
        raise BadOption(f"In the expectation {text!r}, {name} cannot be asked for one {stray[0]}.")
    if len(named) > 1:
        raise BadOption(f"In the expectation {text!r}, ask for a label or for a group, not for both.")
    if name in ("score", "moved") and plain:
        raise BadOption(f"In the expectation {text!r}, {name} is measured over all sets together and takes no set.")
    if measured == "f1" and "label" not in named:
        raise BadOption(
            f"In the expectation {text!r}, f1 needs a label: f1(label=positive). Over all labels it is macro_f1."
        )


# What was found


def _values(expected: Expected, found: Findings) -> tuple[dict[str, float], str]:
    """The value on each set that counts, and how to end the sentence about it; LookupError says what is missing."""
    if expected.name == "score":
        return _share(expected, found)
    if expected.name == "moved":
        if found.moved is None:
            raise LookupError(f"moved {_NEEDS_BEFORE}")
        return {"": found.moved}, ""
    if expected.name in _COUNTS:
        return _count(expected, found), ""
    return _measured(expected, found), ""


def _share(expected: Expected, found: Findings) -> tuple[dict[str, float], str]:
    key = expected.of or "", expected.label
    if key not in found.shares:
        label = "" if expected.label is None else f" for the label {expected.label!r}"
        raise LookupError(
            f"The word {expected.of!r} could not be measured{label}: no text has it where the model reads, "
            "or the model has no such label."
        )
    share, texts = found.shares[key]
    return {"": share}, f", its mean share of the explanations of {texts} text{'' if texts == 1 else 's'} with it"


def _count(expected: Expected, found: Findings) -> dict[str, float]:
    counts = found.broken if expected.name == "broken" else found.fixed
    if counts is None:
        raise LookupError(f"{expected.name} {_NEEDS_BEFORE}")
    if expected.data is None:
        return {"": float(sum(counts.values()))}
    if expected.data not in counts:
        raise LookupError(_no_set(expected.data, found.sets))
    return {expected.data: float(counts[expected.data])}


def _measured(expected: Expected, found: Findings) -> dict[str, float]:
    name, part = _place(expected)
    if expected.data is not None and expected.data not in {measure.data for measure in found.measures}:
        raise LookupError(_no_set(expected.data, found.sets))
    sets = found.sets if expected.data is None else (expected.data,)
    chosen = [m for m in found.measures if m.name == name and m.slice == part and m.data in sets]
    if not chosen:
        raise LookupError(f"{_called(expected)} was not measured: no set has enough examples for it.")
    if expected.name != "drop":
        return {m.data: m.after for m in chosen}
    if any(m.before is None for m in chosen):
        raise LookupError(f"drop {_NEEDS_BEFORE}")
    return {m.data: (m.before or 0.0) - m.after for m in chosen}


def _place(expected: Expected) -> tuple[str, str]:
    """Name and slice of the measure that is meant."""
    if expected.name == "gap":
        return "gap", f"{expected.of}s"
    name = expected.of if expected.name == "drop" else expected.name
    if expected.label is not None:  # of one label, macro-F1 is its F1
        return "f1" if name == "macro_f1" else str(name), f"label {expected.label}"
    return str(name), "" if expected.group is None else f"group {expected.group}"


def _called(expected: Expected) -> str:
    """What the value is, without the set."""
    of = [repr(expected.of) if expected.name == "score" else expected.of] if expected.of else []
    named = [f"{key}={value}" for key, value in (("label", expected.label), ("group", expected.group)) if value]
    inside = ", ".join([*of, *named])
    return f"{expected.name}({inside})" if inside else expected.name


def _no_set(data: str, sets: Sequence[str]) -> str:
    return f"There is no set {data!r}. There is: {', '.join(sets)}."
