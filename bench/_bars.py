"""How every benchmark states what it measured: bars with their limits, one file format, one comparison between runs.

A `Bar` is a figure with all the values it was measured with, and the limit it is held against if there is one. Scripts
hand their bars to `finish`, which prints them and writes the JSON file that the table of all bars, the docs and
`make bench-check` read. Nothing here needs torch until the machine is described.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal

TARGETS = {
    "1": "LIME-1000 and leave-one-out, 16 to 256 tokens: ≥ 0.95 of the limit, ≥ 0.80 of that with a narrow last layer",
    "2": "LIME-1000, about 27 words: ≥ 5.5x lime with pipeline() and ≥ 1.8x lime batched by hand (MiniLM's shape, two "
    "threads); ≥ 2.7x and ≥ 1.9x (BERT-base's, one thread)",
    "3": "LIME-1000, up to 12 words: ≥ 2.5x padded batches of 64",
    "4": "padded cells ≤ 2 %; no more forward passes than different masks",
    "5": "leave-one-out: ≥ 3.5x captum's default (MiniLM's shape), ≥ 2x (BERT-base's), ≥ 1.1x captum's best",
    "6": "exact fp32: logits within 1e-5 of Hugging Face's",
    "7": "integrated gradients: Spearman ≥ 0.99 to 100 steps in ≤ 20, ≥ 2.2x captum's 50, a step ≤ 2.3 forward passes",
    "8": "int8 off by default, never for leave-one-out; for LIME only with Spearman ≥ 0.95 and a gain of ≥ 1.3x",
    "9": "LIME's stability is reported; 500 paired samples are worth 1,000 plain ones",
    "10": "influence index of 5,000 sentences: built in ≤ 2.2 forward passes, a query ≤ 60 ms, Spearman ≥ 0.95 to "
    "gradient products, ≤ 50 MB",
    "11": "an influence query ≥ 1,000x LiSSA with its score pass; the index is built in less than one such query",
    "12": "score pass ≤ 2.6 forward passes at Spearman ≥ 0.999",
    "13": "HotFlip (5 flips, beam 10): ≥ 4x TextAttack, ≥ 4.5x naive, ≥ 0.85 of the ideal, the same best score",
    "14": "a training step through explanations: input × gradient ≤ 2.2x a plain step, integrated gradients with k "
    "steps ≤ 1.3 + 2k; no crash under the default attention",
    "15": "no bf16 and no int8 path is chosen by itself on a processor without AVX-512 or AMX",
    "core": "the scoring core: at the limit of the bare model, and faster than Hugging Face's pipelines",
    "peers": "every method at least as fast as its peer at equal settings, or as faithful with half the calls",
    "audit": "a whole audit of 5,000 examples within ten minutes on two cores",
    "start-up": "importing, and the command line's help, cost next to nothing beside importing torch and transformers",
    "memory": "explaining needs little more memory than the bare model on the same texts",
    "growth": "cost grows as it must with words, examples and labels",
    "ray": "one worker of Ray is nearly as fast as this process, and two are nearly twice as fast as one",
}
"""What bars are for: the numbered targets of the design, and what issue by issue was added to them."""

Way = Literal[">=", "<="]


@dataclass(frozen=True)
class Bar:
    """A figure, all the values it was measured with, and what it has to be."""

    target: str  # a key of TARGETS
    name: str
    way: Way  # which direction is good, with or without a limit
    limit: float | None = None
    values: tuple[float, ...] = ()  # of rounds that took turns, or of different texts
    worst: bool = False  # the worst value counts, not the median: values are of different texts
    unit: str = ""
    tolerance: float | None = 0.25  # share by which a later run may be worse; None: not compared between machines
    reason: str = ""  # why there is no value

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise ValueError(f"There is no target {self.target!r}.")
        if not self.values and not self.reason:
            raise ValueError(f"{self.name} has neither values nor a reason why not.")

    @property
    def measured(self) -> float | None:
        """The one number that counts."""
        if not self.values:
            return None
        if self.worst:
            return min(self.values) if self.way == ">=" else max(self.values)
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The least and the greatest value, where there are several."""
        return (min(self.values), max(self.values)) if len(self.values) > 1 else None

    @property
    def holds(self) -> bool | None:
        """Whether the figure is within its limit; None without one, or without a figure."""
        if self.measured is None or self.limit is None:
            return None
        return self.measured >= self.limit if self.way == ">=" else self.measured <= self.limit

    @property
    def beyond(self) -> float | None:
        """How far a bar that fails is from its limit, as a share of it (0 if it holds)."""
        if self.measured is None or not self.limit:
            return None
        gap = self.limit - self.measured if self.way == ">=" else self.measured - self.limit
        return max(0.0, gap / abs(self.limit))

    @property
    def told(self) -> str:
        """What was measured, with its spread."""
        if self.measured is None:
            return f"not measured: {self.reason}"
        unit = f" {self.unit}" if self.unit else ""
        between = f" ({_written(self.spread[0])} to {_written(self.spread[1])})" if self.spread else ""
        return f"{_written(self.measured)}{unit}{between}"

    @property
    def wanted(self) -> str:
        """The limit as it is written, or nothing."""
        unit = f" {self.unit}" if self.unit else ""
        return "" if self.limit is None else f"{self.way} {self.limit:g}{unit}"

    @property
    def says(self) -> str:
        """One line: holds or fails, what, the limit, and what was measured."""
        name = f"{self.name} {self.wanted}".rstrip()
        if self.holds is None:
            return f"{name}: {self.told}"
        short = f", {self.beyond:.1%} beyond the limit" if not self.holds and self.beyond is not None else ""
        return f"{'holds' if self.holds else 'FAILS'}: {name}: {self.told}{short}"

    def to_json(self) -> dict[str, Any]:
        """All fields, and what follows from them for those who only read."""
        found = {"measured": self.measured, "holds": self.holds, "beyond": self.beyond}
        return asdict(self) | found | {"told": self.told, "wanted": self.wanted, "says": self.says}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Bar:
        """As `to_json` wrote it."""
        own = {field.name: told[field.name] for field in fields(cls) if field.name in told}
        return cls(**own | {"values": tuple(own["values"])})


def _written(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def machine(wall: bool = False) -> str:
    """What figures are measured on, in one sentence; every benchmark records this one.

    One thread is timed by its process's CPU time, unless other processes do the work and it is `wall` time.
    """
    import torch
    import transformers

    threads = torch.get_num_threads()
    timed = "process CPU time" if threads == 1 and not wall else "wall time"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    where = f"{os.cpu_count()} cores of {_processor()}, {memory:.0f} GB, {platform.system()}"
    return f"{threads} torch threads, {timed}, {where}, load {os.getloadavg()[0]:.1f}, {versions}"


def _processor() -> str:
    """The processor's name, or at least its kind."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def peak_memory() -> float:
    """The most memory this process ever had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def finish(bars: Sequence[Bar], file: Path | None, *, wall: bool = False, **more: Any) -> None:
    """Print the bars, and write them with all else that was found if a file is wanted."""
    print("\n".join([machine(wall), *(bar.says for bar in bars)]), flush=True)
    if file is not None:
        found = {"at": now(), "machine": machine(wall), "bars": [bar.to_json() for bar in bars]}
        write(file, found | more)


def write(file: Path, found: Mapping[str, Any]) -> None:
    """A result as JSON, in a folder that need not be there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def now() -> str:
    """The time to the second, for results."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def bars_of(file: Path) -> list[Bar]:
    """The bars of a result."""
    return [Bar.from_json(told) for told in json.loads(file.read_text(encoding="utf-8")).get("bars", [])]


# -- from one run to another


@dataclass(frozen=True)
class Change:
    """One figure then and now."""

    name: str
    was: float | None
    now: float | None
    allowed: float | None  # the value that is just good enough
    verdict: Literal["as good", "WORSE", "MISSING", "not compared"]
    why: str = ""

    @property
    def fails(self) -> bool:
        """Whether this change is one to be told of with an exit code."""
        return self.verdict in ("WORSE", "MISSING")


def compare(committed: Sequence[Bar], fresh: Sequence[Bar]) -> list[Change]:
    """Every committed figure against the same one of another run; only what got worse beyond its tolerance fails."""
    found = {(bar.target, bar.name): bar for bar in fresh}
    return [_change(bar, found.get((bar.target, bar.name))) for bar in committed]


def _change(was: Bar, new: Bar | None) -> Change:
    old = was.measured
    if old is None:
        return Change(was.name, None, new.measured if new else None, None, "not compared", was.reason)
    if new is None:
        return Change(was.name, old, None, None, "MISSING", "this run did not measure it")
    if new.measured is None:
        return Change(was.name, old, None, None, "not compared", new.reason)
    if was.tolerance is None:
        return Change(was.name, old, new.measured, None, "not compared", "depends on the machine")
    # a figure far below an upper limit, or nothing at all, may move by a share of that limit
    size = max(abs(old), was.limit or 0.0) if was.way == "<=" else abs(old)
    allowed = old + was.tolerance * size * (1 if was.way == "<=" else -1)
    good = new.measured <= allowed if was.way == "<=" else new.measured >= allowed
    return Change(was.name, old, new.measured, allowed, "as good" if good else "WORSE")


def table(changes: Sequence[Change]) -> str:
    """Changes as lines to read."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    lines = [f"{'':12} {'committed':>10} {'now':>10} {'allowed':>10}  figure"]
    for one in changes:
        figures = f"{number(one.was):>10} {number(one.now):>10} {number(one.allowed):>10}"
        lines.append(f"{one.verdict:12} {figures}  {one.name}{f' ({one.why})' if one.why else ''}")
    return "\n".join(lines)
