"""Families: members are read off their signatures, checked at import, and found by name."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from unhans.errors import BadOption
from unhans.registry import Entry, Option, Registry

Size = Literal["small", "large"]


def family() -> Registry:
    return Registry("dishes", offers=("water", "salt", "rng"))


def entry_of(function: Any, **facts: Any) -> Entry:
    dishes = family()
    dishes(**facts)(function)
    return dishes[function.__name__]


def soup(
    water: float,
    rng: Any,
    *,
    hot: bool = True,
    minutes: int = 10,
    share: Annotated[float, "of the pot"] = 1,
    spice: str = "none",
    size: Annotated[Size, "of the bowl"] = "small",
) -> Any:
    """Water that has seen vegetables.

    More about it, which is not the summary.
    """
    return water, rng, hot, minutes, share, spice, size


def bread(salt: float, *, minutes: int = 40) -> Any:
    """Flour and patience."""
    return salt, minutes


# -- what is read off a signature


def test_positional_parameters_are_what_a_member_asks_for_and_keywords_are_its_options() -> None:
    entry = entry_of(soup, paper="arXiv:0000.00000", needs={"fire"})

    assert entry.asks == ("water", "rng")
    assert entry.options == (
        Option("hot", "bool", True),
        Option("minutes", "int", 10),
        Option("share", "float", 1.0, help="of the pot"),
        Option("spice", "str", "none"),
        Option("size", "choice", "small", ("small", "large"), "of the bowl"),
    )
    assert entry.summary == "Water that has seen vegetables."
    assert entry.needs == {"fire"}
    assert entry.facts["paper"] == "arXiv:0000.00000"


def test_a_call_hands_over_only_what_was_asked_for() -> None:
    offered = {"water": 2.0, "salt": 1.0, "rng": "dice"}

    assert entry_of(soup)(offered, minutes="5") == (2.0, "dice", True, 5, 1.0, "none", "small")
    assert entry_of(bread)(offered) == (1.0, 40)


def test_registering_leaves_the_function_as_it_was() -> None:
    assert family()()(bread) is bread


def no_default(*, n: int) -> None: ...
def no_default_choice(*, n: Size) -> None: ...
def no_hint(*, n=3) -> None: ...  # type: ignore[no-untyped-def]
def odd_hint(*, n: list[int] = []) -> None: ...  # noqa: B006
def optional(*, n: int | None = None) -> None: ...
def numbers_to_choose(*, n: Literal[1, 2] = 1) -> None: ...


@pytest.mark.parametrize("function", [no_default, no_default_choice, no_hint, odd_hint, optional, numbers_to_choose])
def test_an_option_without_a_default_or_of_another_type_is_refused_at_import(function: Any) -> None:
    with pytest.raises(TypeError, match="'n' needs a default and must be bool, int, float, str or Literal"):
        family()()(function)


def wrong_default(*, n: int = "three") -> None: ...  # type: ignore[assignment]
def not_among_them(*, n: Size = "medium") -> None: ...  # type: ignore[assignment]


@pytest.mark.parametrize("function", [wrong_default, not_among_them])
def test_a_default_that_the_option_itself_would_refuse_is_refused_at_import(function: Any) -> None:
    with pytest.raises(BadOption, match="n must be"):
        family()()(function)


def stray(water: float, fire: float, air: float) -> None: ...


def test_asking_for_what_the_family_does_not_offer_is_refused_at_import() -> None:
    with pytest.raises(TypeError, match="dishes 'stray' asks for air, fire; on offer: water, salt, rng"):
        family()()(stray)


def rest(water: float, *others: float) -> None: ...
def anything(water: float, **options: Any) -> None: ...
def unnamed(water: float, /) -> None: ...


@pytest.mark.parametrize("function", [rest, anything, unnamed])
def test_parameters_that_cannot_be_matched_by_name_are_refused_at_import(function: Any) -> None:
    with pytest.raises(TypeError, match="names all that it asks for"):
        family()()(function)


# -- options from users


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("hot", "no", False),
        ("hot", "TRUE", True),
        ("hot", False, False),
        ("minutes", "7", 7),
        ("minutes", 7, 7),
        ("share", "0.25", 0.25),
        ("share", 2, 2.0),
        ("share", "1e-3", 0.001),
        ("spice", "pepper", "pepper"),
        ("spice", "", ""),
        ("size", "large", "large"),
    ],
)
def test_a_value_arrives_in_the_options_own_type(name: str, given: Any, wanted: Any) -> None:
    value = entry_of(soup).settings({name: given})[name]

    assert value == wanted
    assert type(value) is type(wanted)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("hot", "maybe"),
        ("hot", None),
        ("hot", 3),
        ("minutes", "7.5"),
        ("minutes", 7.5),
        ("minutes", 7.0),
        ("minutes", True),
        ("minutes", None),
        ("minutes", ""),
        ("share", "half"),
        ("share", True),
        ("share", None),
        ("share", "nan"),
        ("share", float("inf")),
        ("share", 10**400),
        ("spice", 3),
        ("spice", None),
        ("size", "medium"),
        ("size", ["small"]),
        ("size", None),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_a_sentence(name: str, given: Any) -> None:
    with pytest.raises(BadOption) as caught:
        entry_of(soup).settings({name: given})

    wanted = {"hot": "bool", "minutes": "int", "share": "float", "spice": "str", "size": "one of small, large"}[name]
    assert str(caught.value).startswith(f"{name} must be ")
    assert wanted in str(caught.value)
    assert repr(given) in str(caught.value)


def test_an_unknown_option_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(BadOption, match="bread has no option heat, oven; it has minutes"):
        entry_of(bread).settings({"oven": 1, "heat": 2, "minutes": 3})


def test_an_option_is_refused_by_a_member_that_has_none() -> None:
    def water_as_it_is(water: float) -> None: ...

    with pytest.raises(BadOption, match="water_as_it_is has no option minutes; it has none"):
        entry_of(water_as_it_is).settings({"minutes": 3})


def test_a_refused_call_never_reaches_the_function() -> None:
    called = []

    def careful(*, n: int = 1) -> None:
        called.append(n)

    with pytest.raises(BadOption):
        entry_of(careful)({}, n="many")
    assert called == []


# -- recipes


def test_a_recipe_states_every_option_and_the_family() -> None:
    recipe = entry_of(bread).recipe({})

    assert (recipe.family, recipe.name, recipe.options) == ("dishes", "bread", (("minutes", 40),))


def test_the_seed_is_part_of_the_recipe_only_if_the_member_is_random() -> None:
    assert entry_of(soup).recipe({}, seed=7).seed == 7
    assert entry_of(bread).recipe({}, seed=7).seed is None


def test_a_default_and_the_same_value_given_make_one_recipe() -> None:
    entry = entry_of(soup)

    for given in ({}, {"share": 1}, {"share": "1"}, {"share": 1.0, "minutes": "10"}):
        assert entry.recipe(given, seed=1).key == entry.recipe({}, seed=1).key
    assert entry.recipe({"share": 0.5}, seed=1).key != entry.recipe({}, seed=1).key


# -- look-up


def test_a_member_is_found_by_name_and_alias_and_recorded_under_its_name() -> None:
    dishes = family()
    dishes(aliases=("brötchen",))(bread)

    assert dishes["brötchen"] is dishes["bread"]
    assert dishes["brötchen"].recipe({}).name == "bread"
    assert dishes.names == ["bread"]


def test_a_wrong_name_is_answered_with_the_nearest_and_with_all() -> None:
    dishes = family()
    dishes()(soup)
    dishes()(bread)

    with pytest.raises(BadOption) as near:
        dishes["sopu"]
    with pytest.raises(BadOption) as far:
        dishes["xyz"]

    assert str(near.value) == "There is no 'sopu' among the dishes. Did you mean 'soup'? There is: bread, soup."
    assert str(far.value) == "There is no 'xyz' among the dishes. There is: bread, soup."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"aliases": ("loaf",)}, {"aliases": ("loaf",)}),
        ({"aliases": ("soup",)}, {}),
        ({}, {"aliases": ("bread",)}),
    ],
)
def test_two_members_cannot_share_a_name_or_an_alias(first: dict[str, str], second: dict[str, str]) -> None:
    dishes = family()
    dishes(**first)(bread)
    other = bread if not first and not second else soup

    with pytest.raises(ValueError, match="two dishes members are called"):
        dishes(**second)(other)
    assert dishes.names == ["bread"]


def test_members_come_in_alphabetical_order() -> None:
    dishes = family()
    dishes()(soup)
    dishes()(bread)

    assert [entry.name for entry in dishes] == dishes.names == ["bread", "soup"]


# -- packages, our own and others'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_modules_of_a_package_are_imported_at_the_first_look_up_and_every_thread_sees_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "slow_kitchen"
    write(
        package / "__init__.py",
        "from unhans.registry import Registry\n"
        "dish = Registry('dishes', offers=(), package='slow_kitchen')\nloaded = []\n",
    )
    for name in ("apple", "pear"):
        write(
            package / f"{name}.py",
            "import time\nfrom slow_kitchen import dish, loaded\ntime.sleep(0.1)\n"
            f"loaded.append('{name}')\n@dish()\ndef {name}() -> None:\n    'Fruit.'\n",
        )
    monkeypatch.syspath_prepend(tmp_path)
    import slow_kitchen  # type: ignore[import-not-found]

    assert slow_kitchen.loaded == []
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(slow_kitchen.dish.names)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [["apple", "pear"]] * 4
    assert slow_kitchen.loaded == ["apple", "pear"]


PLUGIN = """
from typing import Annotated
import numpy as np
from unhans.attributions import attribution

@attribution(needs={"predict"})
def first_word(words, *, worth: Annotated[float, "of the first word"] = 1.0):
    "All credit to the first word."
    return [np.array([worth] * (len(one) > 0) + [0.0] * (len(one) - 1)) for one in words]
"""

PROGRAM = """
import json, tiny
from unhans.attributions import attribute, attribution
from unhans.types import Example
found = attribute(tiny.bag_of_words({}), [Example("e", "one two three")], method="first_word", worth="2")
print(json.dumps({
    "names": attribution.names,
    "broken": attribution.broken,
    "summary": attribution["first_word"].summary,
    "scores": found[0].scores,
    "recipe": str(found[0].recipe),
}))
"""


def test_an_installed_package_adds_members_and_a_broken_one_is_reported_without_taking_the_family_down(
    tmp_path: Path,
) -> None:
    write(tmp_path / "goodplug.py", PLUGIN)
    write(tmp_path / "badplug.py", "raise RuntimeError('wrong version of everything')\n")
    write(tmp_path / "doubleplug.py", PLUGIN.replace("first_word", "leave_one_out"))
    points = "[unhans.attributions]\nbad = badplug\ngood = goodplug\ndouble = doubleplug\nlost = nowhere_to_be_found\n"
    write(tmp_path / "plugs-1.0.dist-info" / "entry_points.txt", points)
    write(tmp_path / "plugs-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: plugs\nVersion: 1.0\n")

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert {"first_word", "leave_one_out"} <= set(told["names"])
    assert told["scores"] == [2.0, 0.0, 0.0]
    assert told["recipe"] == "first_word(worth=2.0)"
    assert told["summary"] == "All credit to the first word."
    assert told["broken"] == {
        "bad": "RuntimeError: wrong version of everything",
        "double": "ValueError: two attributions members are called 'leave_one_out'",
        "lost": "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
    }
