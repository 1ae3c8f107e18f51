"""A million rows of a hundred characters take at most 300 MB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = """
import resource, sys
import psutil
from unhans.data import iter_examples, read
read([{"text": "a", "label": "b"}])  # whatever the libraries need once
before = psutil.Process().memory_info().rss
if sys.argv[2] == "read":
    corpus = read(sys.argv[1])
    n = len(corpus)
else:
    n = sum(1 for _ in iter_examples(sys.argv[1]))
print(n, psutil.Process().memory_info().rss - before)
"""
MB = 1_000_000


def put_rows(path: Path, n: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            f'{{"id": "row-{k:07}", "text": "{k:07} {"naïve " * 15}ok", "label": {k % 2}}}\n' for k in range(n)
        )
    return path


def growth(path: Path, act: str) -> tuple[int, int]:
    """Rows read, and bytes by which a fresh process grew."""
    run = subprocess.run([sys.executable, "-c", MEASURE, str(path), act], capture_output=True, text=True, check=True)
    n, grown = run.stdout.split()
    return int(n), int(grown)


def test_two_hundred_thousand_rows_take_their_share_of_memory(tmp_path: Path) -> None:
    n, grown = growth(put_rows(tmp_path / "a.jsonl", 200_000), "read")
    assert n == 200_000
    assert grown < 90 * MB  # a fifth of 300 MB, and 30 MB that do not depend on the number of rows


def test_streaming_holds_no_examples(tmp_path: Path) -> None:
    n, grown = growth(put_rows(tmp_path / "a.jsonl", 200_000), "stream")
    assert n == 200_000
    assert grown < 25 * MB


@pytest.mark.slow
def test_a_million_rows_take_at_most_three_hundred_megabytes(tmp_path: Path) -> None:
    n, grown = growth(put_rows(tmp_path / "a.jsonl", 1_000_000), "read")
    assert n == 1_000_000
    assert grown < 300 * MB


@pytest.mark.slow
def test_a_file_without_a_newline_takes_no_more_than_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("text,label\nok,1\n")
        for _ in range(200):
            file.write("x" * MB)
    n, grown = growth(path, "read")
    assert n == 1
    assert grown < 150 * MB
