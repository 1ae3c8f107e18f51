"""Bulk explanations by one worker of Ray and by several, side by side, and what that comes to for 10⁸ texts.

    python bench/ray_scaling.py [--model MODEL] [--texts FILE] [--method loo] [--workers 1,2] [--examples 400]
                                [--part 20] [--rounds 3] [--cluster 1000] [--total 1e8] [--json FILE]

Without a model it is one of MiniLM's shape with random weights; TEXTS is a file of sentences, one a line. The numbers
of workers take turns within one Ray, and so does this process with one thread; each has done a part before it is timed,
so that importing libraries does not count; sending the model and opening it does, once for each worker. The files
must be the same to the last byte. One worker is always among the numbers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from _bars import Bar, finish

from unhans import Example, load
from unhans.bulk import Filled, Task, explaining, fill
from unhans.crew import Crew, Here, crew
from unhans.data import iter_examples, write
from unhans.demo_data.reviews import reviews
from unhans.model import Classifier
from unhans.scoring import How
from unhans.scratch import fresh_classifier


def main() -> None:
    """Measure, print, and write."""
    asked = _arguments()
    torch.set_num_threads(1)
    examples = _examples(asked.texts, asked.examples)
    task = explaining(load(asked.model) if asked.model else _model(examples), method=asked.method)
    sizes = sorted({1, *(int(size) for size in asked.workers.split(","))})
    seconds: dict[str, list[float]] = {name: [] for name in ("here", *map(str, sizes))}
    with tempfile.TemporaryDirectory() as folder, crew("ray", workers=max(sizes)):
        for turn in range(asked.rounds):
            first = Path(folder) / f"here-{turn}"
            seconds["here"].append(_timed(first, task, examples, Here(), part=asked.part))
            for size in sizes:
                place = Path(folder) / f"{size}-{turn}"
                with crew("ray", workers=size) as hands:
                    seconds[str(size)].append(_timed(place, task, examples, hands, part=asked.part, size=size))
                assert _contents(place) == _contents(first), "the rows are not the same"
        told = _told(asked, seconds, _own_share(Path(folder), task, examples, asked.part), _row_size(first, examples))
    print(json.dumps(told, indent=1, ensure_ascii=False))
    finish(_bars(told["each turn"], sizes), asked.json, wall=True, **told)


def _bars(ratios: Mapping[str, Sequence[float]], sizes: Sequence[int]) -> list[Bar]:
    """Speeds against one worker, as bars."""
    against_here = tuple(1 / ratio for ratio in ratios["here"])
    bars = [Bar("ray", "one worker against this process with one thread", ">=", 0.8, against_here)]
    return bars + [
        Bar("ray", f"{size} workers against one", ">=", 0.85 * size, tuple(ratios[str(size)]))
        for size in sizes
        if size > 1
    ]


def _timed(place: Path, task: Task, examples: Sequence[Example], hands: Crew, *, part: int, size: int = 1) -> float:
    """Seconds for all of it, by those who have done the same before and so have all libraries loaded."""
    meeting = place.with_name(f"{place.name}-meeting")
    meeting.mkdir()
    assert len(list(hands.spread(_Meeting(meeting, size, task, examples[:part]), range(size)))) == size
    begun = time.perf_counter()
    fill(place, task, examples, part=part, on=hands)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class _Meeting:
    """Everyone does a little, and waits for the others, so that nobody does it twice."""

    folder: Path
    size: int
    task: Task
    examples: Sequence[Example]

    def __call__(self, how: How) -> Callable[[int], None]:
        def act(number: int) -> None:
            list(self.task.work.find(self.examples, how))
            (self.folder / str(number)).touch()
            while len(list(self.folder.iterdir())) < self.size:
                time.sleep(0.05)

        return act


def _own_share(folder: Path, task: Task, examples: Sequence[Example], part: int) -> float:
    """Seconds for a text of the process that reads and writes: reading a file, looking its parts over, writing them."""
    data, made = write(examples, folder / "data.jsonl"), folder / "here-0"
    begun = time.perf_counter()
    done: Filled = fill(made, task, iter_examples(data), part=part)
    for file in done.files:
        (folder / "copy").write_bytes(file.read_bytes())
    assert done.computed == 0
    return (time.perf_counter() - begun) / len(examples)


def _row_size(folder: Path, examples: Sequence[Example]) -> float:
    return sum(path.stat().st_size for path in folder.glob("*.parquet")) / len(examples)


def _told(asked: Any, seconds: dict[str, list[float]], own: float, row: float) -> dict[str, Any]:
    """The ratios, and the estimate that docs/bulk.md explains."""
    one = seconds["1"]
    ratios = {name: [round(a / b, 3) for a, b in zip(one, turns, strict=True)] for name, turns in seconds.items()}
    most = max((name for name in seconds if name != "here"), key=int)
    share = statistics.median(ratios[most]) / int(most)
    cost = statistics.median(one) / asked.examples
    work, reading = asked.total * cost / (asked.cluster * share), asked.total * own
    return {
        "method": asked.method,
        "examples": asked.examples,
        "seconds": seconds,
        "speed against one worker": {name: statistics.median(turns) for name, turns in ratios.items()},
        "each turn": ratios,
        "c: seconds of a worker for a text": cost,
        "d: seconds of the writing process for a text": own,
        "e: share of the workers' speed that is there": share,
        "workers that reading and writing keep busy": cost / own,
        "bytes of a row": row,
        "estimate": {
            "texts": asked.total,
            "workers": asked.cluster,
            "hours of work": work / 3600,
            "hours of reading and writing": reading / 3600,
            "hours": max(work, reading) / 3600,
            "terabytes": asked.total * row / 1e12,
        },
    }


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _examples(texts: str | None, n: int) -> list[Example]:
    if texts:
        lines = [line.strip() for line in Path(texts).read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        lines = [example.text for example in reviews(n, seed=0)]
    return [Example(f"{number}", text) for number, text in enumerate(islice(cycle(lines), n))]


def _model(examples: Sequence[Example]) -> Classifier:
    return fresh_classifier([example.text for example in examples], ("negative", "positive"), width=384, layers=6)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--texts")
    parser.add_argument("--method", default="leave_one_out")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--examples", type=int, default=400)
    parser.add_argument("--part", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cluster", type=int, default=1000)
    parser.add_argument("--total", type=float, default=1e8)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
