"""Find out why a text classifier is wrong, tell it so, and prove that it listened."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unhans.attributions import attribute
    from unhans.bugs import plant
    from unhans.comparison import compare
    from unhans.counterfactuals import find_flips
    from unhans.data import read, write
    from unhans.errors import UnhansError
    from unhans.figures import save
    from unhans.fixes import mend
    from unhans.influences import prepare, trace
    from unhans.language_model import LanguageModel
    from unhans.loading import load
    from unhans.metrics import measure
    from unhans.project import Project
    from unhans.rationales import select
    from unhans.risk import assess
    from unhans.task import rank_words, suspects
    from unhans.training import Schedule, fit
    from unhans.types import Example, from_json, to_json

# names are fetched when first used, so that `import unhans` and `unhans --help` do not wait for torch
_HOMES = {
    "Example": "types",
    "LanguageModel": "language_model",
    "Project": "project",
    "Schedule": "training",
    "UnhansError": "errors",
    "assess": "risk",
    "attribute": "attributions",
    "compare": "comparison",
    "find_flips": "counterfactuals",
    "fit": "training",
    "from_json": "types",
    "load": "loading",
    "measure": "metrics",
    "mend": "fixes",
    "plant": "bugs",
    "prepare": "influences",
    "rank_words": "task",
    "read": "data",
    "save": "figures",
    "select": "rationales",
    "suspects": "task",
    "to_json": "types",
    "trace": "influences",
    "write": "data",
}
__all__ = [
    "Example",
    "LanguageModel",
    "Project",
    "Schedule",
    "UnhansError",
    "assess",
    "attribute",
    "compare",
    "find_flips",
    "fit",
    "from_json",
    "load",
    "measure",
    "mend",
    "plant",
    "prepare",
    "rank_words",
    "read",
    "save",
    "select",
    "suspects",
    "to_json",
    "trace",
    "write",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unhans' has no attribute {name!r}")
    import_module("unhans.reporting")  # registers how nouns are drawn, and so does what it imports
    return getattr(import_module(f"unhans.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
