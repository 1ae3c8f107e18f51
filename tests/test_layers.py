"""Imports climb one ladder; this test is the ladder."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import unhans

LAYERS = (
    {"errors"},
    {"types"},
    {"registry", "text", "demo_data", "present", "processes", "wordnet", "ranks"},
    {"store", "data", "tokens", "feedback", "artefacts", "archives", "reporting", "expectations", "heuristics"},
    {"jobs", "accounts", "exchange", "risk", "rationales"},
    {"shapes", "supervising"},
    {"records"},
    {"workspace"},
    {"server"},
    {"serving"},
    {"scoring", "figures"},
    {"packing", "propagation", "listening", "averaging", "adapters", "crew"},
    {"checkpoint"},
    {"model"},
    {"black_boxes", "scratch", "embeddings"},
    {"training", "engines"},
    {"select_then_predict", "sweeps"},
    {"loading"},
    {"language_model"},
    {"attributions", "influences", "augmentations"},
    {"bugs"},
    {"task", "metrics", "fixes", "doubts", "detectors", "vision"},
    {"counterfactuals"},
    {"verify"},
    {"audit"},
    {"catalogue", "comparison", "export", "simulate", "mending", "hildif", "bulk"},
    {"lab"},
    {"project"},
    {"demo", "work"},
    {"worker"},
    {"cli"},
)
LIGHT = (
    "store",
    "feedback",
    "risk",
    "rationales",
    "reporting",
    "exchange",
    "artefacts",
    "jobs",
    "accounts",
    "records",
    "workspace",
    "serving",
)
LATE = {  # imported by one function when it is called: the rest of the module is of use without them
    ("rationales", "attributions"),
    ("rationales", "model"),
}
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
ROOT = Path(unhans.__file__).parent


def imported_modules(source: str) -> set[str]:
    """Names of our modules that a source imports, wherever in the file; type-only imports do not count."""
    tree = ast.parse(source)
    type_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in type_only:
            continue
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("unhans.")}
    return found


def test_no_module_imports_upwards():
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if own.startswith("__"):
            continue
        for other in imported_modules(path.read_text(encoding="utf-8")):
            below = HEIGHT[other] < HEIGHT[own] or (own, other) in LATE
            assert other == own or below, f"{path.relative_to(ROOT)} imports {other}"


def test_every_module_has_a_place_on_the_ladder():
    modules = {path.name.removesuffix(".py") for path in ROOT.iterdir() if not path.name.startswith(("_", "."))}
    modules -= {"py.typed", "static"}
    assert modules == set(HEIGHT)


def test_the_ladder_notices_an_import_upwards():
    assert imported_modules("from unhans.cli import main\nimport unhans.text") == {"cli", "text"}
    assert imported_modules("if TYPE_CHECKING:\n    from unhans.cli import main") == set()


def test_the_web_process_never_loads_the_libraries_of_models():
    """They take 400 MB and five seconds, and a process without them cannot run a model by mistake."""
    code = f"import sys, {', '.join(f'unhans.{name}' for name in LIGHT)}; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "unhans.server.judging" in loaded
    assert not {"torch", "transformers", "tokenizers", "unhans.project", "unhans.model"} & set(loaded)
