"""The docs say what is true: generated pages are current, examples run, everything public is documented."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unhans
from unhans.catalogue import FAMILIES
from unhans.cli import main
from unhans.types import NOUNS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "RELIABILITY.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_current():
    assert generator().stale() == []


def test_a_stale_page_is_noticed(tmp_path, monkeypatch):
    module = generator()
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("<!-- methods -->\nold\n<!-- /methods -->\n")
    for name in ("docs/scoring.md", "docs/speed.md", "docs/influences.md", "docs/bulk.md", "RELIABILITY.md"):
        (tmp_path / name).write_text("no figures here")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert {path.name for path in module.stale()} == {
        "methods.md",
        "cli.md",
        "schema.json",
        "openapi.json",
        "README.md",
    }


def test_every_member_command_and_noun_is_documented():
    docs = "\n".join(path.read_text(encoding="utf-8") for path in [*PAGES, ROOT / "docs" / "schema.json"])
    for family in FAMILIES.values():
        assert all(f"`{entry.name}`" in docs and entry.summary in docs for entry in family)
    assert all(f"unhans {name}" in docs for name in main.commands)
    assert all(f'"{noun.__name__}"' in docs for noun in NOUNS)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name} links to {link}"


def test_public_names_exist_and_are_all_there_is():
    assert all(getattr(unhans, name) is not None for name in unhans.__all__)
    assert dir(unhans) == sorted(unhans.__all__)
    with pytest.raises(AttributeError, match="no attribute"):
        unhans.nonsense  # noqa: B018


def test_examples_in_the_docs_run(tmp_path):
    (tmp_path / "reviews.csv").write_text("text,label\nA fine film.,positive\nDull.,negative\n")
    demo = [sys.executable, "-m", "unhans", "demo", "--examples", "200", "--epochs", "1", "--fix-epochs", "1"]
    demo += ["--no-serve"]
    subprocess.run(demo, cwd=tmp_path, check=True, capture_output=True)
    blocks = [block for page in PAGES for block in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) >= 5
    script = tmp_path / "all.py"
    # the one new method is a file of its own in life; here it is one more block
    script.write_text(
        "\n\n".join(blocks) + "\n\nassert unhans.attribute(clf, data[:1], method='word_length')[0].scores\n"
    )
    ran = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
