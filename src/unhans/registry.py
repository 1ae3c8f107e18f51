"""A family of interchangeable functions, found by name and described by their own signatures.

A member is a plain function under the family's decorator. Its **positional** parameters are what it asks for,
matched by name against what the family offers; its **keyword-only** parameters are the user's options. Command
line, HTTP, forms, docs tables, contract tests and cache keys are all read off the signature, so a new member is one
new file and no other edit. Outside packages add members through the entry-point group `unhans.<family>`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import operator
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from unhans.errors import BadOption
from unhans.types import OptionValue, Recipe

F = TypeVar("F", bound=Callable[..., Any])
_KINDS: dict[Any, str] = {bool: "bool", int: "int", float: "float", str: "str"}
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Option:
    """A keyword the user may set: parsed by the command line, drawn as a form, checked before the call."""

    name: str
    kind: Literal["bool", "int", "float", "str", "choice"]
    default: OptionValue
    choices: tuple[str, ...] = ()
    help: str = ""

    def check(self, value: Any) -> OptionValue:
        """The value in the option's own type; a string is parsed, as it comes from a command line."""
        try:
            return self._convert(value)
        except (TypeError, ValueError, KeyError, OverflowError):
            wanted = f"one of {', '.join(self.choices)}" if self.choices else f"a value of type {self.kind}"
            raise BadOption(f"{self.name} must be {wanted}, not {value!r}.") from None

    def _convert(self, value: Any) -> OptionValue:
        if self.kind == "choice":
            if value not in self.choices:
                raise ValueError
            return str(value)
        if self.kind == "bool":
            return value if isinstance(value, bool) else _BOOLS[str(value).lower()]
        if isinstance(value, bool):  # bool is an int to Python, not to a user
            raise TypeError
        if self.kind == "int":
            return int(value) if isinstance(value, str) else operator.index(value)
        if self.kind == "float":
            number = float(value)
            if not math.isfinite(number):
                raise ValueError
            return number
        if not isinstance(value, str):
            raise TypeError
        return value


@dataclass(frozen=True)
class Entry:
    """One member of a family: the function, and all that the edges need to know about it."""

    family: str
    name: str
    summary: str
    asks: tuple[str, ...]
    options: tuple[Option, ...]
    facts: Mapping[str, Any] = field(hash=False)  # needs, paper, ...
    function: Callable[..., Any] = field(repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """What a classifier must be able to do for this member to work with it."""
        return frozenset(self.facts.get("needs", ()))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names it is known by."""
        return tuple(self.facts.get("aliases", ()))

    @property
    def random(self) -> bool:
        """Whether it draws; then the seed is part of its recipe."""
        return not {"rng", "rngs"}.isdisjoint(self.asks)

    def settings(self, options: Mapping[str, Any]) -> dict[str, OptionValue]:
        """Every option of the member with its checked value: the given one, or the default."""
        known = {option.name: option for option in self.options}
        if unknown := sorted(options.keys() - known.keys()):
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise BadOption(f"{self.name} has no option {', '.join(unknown)}; {has}.")
        return {name: o.check(options[name]) if name in options else o.default for name, o in known.items()}

    def recipe(self, options: Mapping[str, Any], seed: int | None = None) -> Recipe:
        """What a call with these options would run; the seed counts only if the member is random."""
        drawn = seed if self.random else None
        return Recipe(self.family, self.name, tuple(self.settings(options).items()), drawn)

    def __call__(self, offered: Mapping[str, Any], **options: Any) -> Any:
        """Call the function with the things it asks for by name, and the user's options."""
        return self.function(**{name: offered[name] for name in self.asks}, **self.settings(options))


class Registry:
    """Named members of one family. Members register at import; import happens at the first look-up."""

    def __init__(self, family: str, *, offers: tuple[str, ...], package: str | None = None) -> None:
        self.family, self.offers = family, offers
        self.broken: dict[str, str] = {}  # plug-ins that did not load, and why: one of them must not take all down
        self._package = package
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._aliases: dict[str, str] = {}

    def __call__(self, **facts: Any) -> Callable[[F], F]:
        """Decorator: add a function under its own name, with facts such as `paper=`, `needs=` or `aliases=`."""

        def add(function: F) -> F:
            entry = _describe(self.family, function, facts)
            if stray := sorted(set(entry.asks) - set(self.offers)):
                offers = ", ".join(self.offers)
                raise TypeError(f"{self.family} {entry.name!r} asks for {', '.join(stray)}; on offer: {offers}")
            names = [entry.name, *entry.aliases]
            for name in names:
                if name in self._entries or name in self._aliases:
                    raise ValueError(f"two {self.family} members are called {name!r}")
            self._entries[entry.name] = entry
            self._aliases.update(dict.fromkeys(names[1:], entry.name))
            return function

        return add

    def __getitem__(self, name: str) -> Entry:
        """The member of that name or alias; the error names near misses and lists what there is."""
        self._discover()
        name = self._aliases.get(name, name)
        if name not in self._entries:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise BadOption(f"There is no {name!r} among the {self.family}.{hint} There is: {', '.join(self.names)}.")
        return self._entries[name]

    def __iter__(self) -> Iterator[Entry]:
        self._discover()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    @property
    def names(self) -> list[str]:
        """Names of all members, sorted."""
        return [entry.name for entry in self]

    def _discover(self) -> None:
        """Import the modules beside the front door, then whatever installed plug-ins declare."""
        with self._lock:  # a second thread waits for the whole family; a plug-in that looks around does not
            if self._package is None:
                return
            package, self._package = importlib.import_module(self._package), None
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")
            for point in entry_points(group=f"unhans.{self.family}"):
                try:
                    point.load()
                except Exception as error:  # noqa: BLE001 - somebody else's import; reported by `unhans methods`
                    self.broken[point.name] = f"{type(error).__name__}: {error}"


def _describe(family: str, function: Callable[..., Any], facts: Mapping[str, Any]) -> Entry:
    """Read name, summary, requests (positional) and options (keyword-only) off a function."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    if odd := [str(p) for p in parameters if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]:
        raise TypeError(f"{function.__name__} takes {', '.join(odd)}; a member names all that it asks for")
    return Entry(
        family=family,
        name=function.__name__,
        summary=(inspect.getdoc(function) or "").partition("\n")[0],
        asks=tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD),
        options=tuple(_option(p, hints.get(p.name)) for p in parameters if p.kind is p.KEYWORD_ONLY),
        facts=dict(facts),
        function=function,
    )


def _option(parameter: inspect.Parameter, hint: Any) -> Option:
    help_text = ""
    if get_origin(hint) is Annotated:
        hint, help_text, *_ = get_args(hint)
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    kind = _KINDS.get(hint) if not choices else "choice" if all(isinstance(c, str) for c in choices) else None
    if kind is None or parameter.default is parameter.empty:
        raise TypeError(f"option {parameter.name!r} needs a default and must be bool, int, float, str or Literal")
    option = Option(parameter.name, kind, parameter.default, choices, help_text)  # type: ignore[arg-type]
    return replace(option, default=option.check(parameter.default))  # 1 for a float is 1.0: one recipe, one key
