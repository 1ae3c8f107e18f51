"""All benchmarks one after the other, each in a process of its own; then one table of all bars.

    python bench/harness.py run [--data DATA] [--model MODEL] [--encoder ENCODER] [--texts FILE] [--only scoring,memory]
    python bench/harness.py check [the same]     # run quicker, compare with the committed results
    python bench/harness.py table                # the table anew from the results that are there

`run` writes bench/results/NAME.json for each benchmark and bench/results/bars.json for all; `docs/generate.py` makes
tables of them. What cannot be run is in the table with the reason, with the figures of an earlier run if there are any.
A bar that fails is a figure and no error; the exit code is 1 when a benchmark breaks.

`check` writes nothing. It fails (exit code 1) for a figure that is worse than the committed one beyond its tolerance,
twice in a row, and for a figure that is gone.

- DATA: a folder with the set `sst`; ENCODER: a folder or id without a classification head. MODEL, the folder of a
  trained classifier with SST's two labels, and TEXTS, a file of sentences, one a line, are made of them by
  bench/sst_model.py where they are not given
- opponents that do not go into one environment with the product come from `make bench-opponents`
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _bars import TARGETS, Bar, Change, bars_of, compare, now, table, write

BENCH = Path(__file__).resolve().parent
RESULTS = BENCH / "results"
OPPONENTS = BENCH.parent / ".venv-bench"  # made by `make bench-opponents`
BESIDE = OPPONENTS / "beside"  # opponents that run in the product's process but would break it by what they bring
TRAINED = OPPONENTS / "sst"  # a classifier and sentences, made where an encoder and data are given


@dataclass(frozen=True)
class Benchmark:
    """A script with its settings; in them, a name in capitals is a folder that the caller gives."""

    name: str
    script: str
    targets: tuple[str, ...]
    settings: str = ""
    quick: str = ""  # instead, for a check
    needs: tuple[str, ...] = ()  # folders it cannot do without
    uses: Mapping[str, str] | None = None  # options that are added where a folder is given
    modules: tuple[str, ...] = ()  # opponents that must be there
    on_demand: str = ""  # why it is run only when asked for by name

    @property
    def asks_for_model(self) -> bool:
        """Whether it is run on a trained classifier, or on its sentences, where there are any."""
        return bool({"MODEL", "TEXTS"} & {*self.needs, *(self.uses or {})})

    def command(self, given: Mapping[str, str], quick: bool) -> list[str]:
        """Its arguments, with the names in place of folders."""
        words = (self.quick if quick and self.quick else self.settings).split()
        added = [option for name, option in (self.uses or {}).items() if name in given]
        return [f"bench/{self.script}.py", *words, *" ".join(added).split()]

    def obstacle(self, given: Mapping[str, str]) -> str:
        """Why it cannot be run; empty if it can."""
        if not (BENCH / f"{self.script}.py").exists():
            return f"there is no bench/{self.script}.py"
        if missing := [name for name in self.needs if name not in given]:
            return f"needs {' and '.join(missing)}, which was not given"
        if gone := [name for name in self.modules if find_spec(name) is None and not (BESIDE / name).exists()]:
            return f"{', '.join(gone)} is not installed (make bench-opponents)"
        return ""


ON_SST = {"DATA": "--data DATA", "MODEL": "--model MODEL"}
BENCHMARKS = (
    # with two threads wall time is measured, which other work disturbs: these come first, while the machine is watched
    Benchmark(
        "attributions",
        "attributions",
        ("1", "2", "3", "5", "7", "9", "peers"),
        "--threads 2 --rounds 3 --sentences 8",
        "--threads 2 --rounds 3 --lengths 16,64 --sentences 5 --repeats 1",
        uses={"MODEL": "--model MODEL", "TEXTS": "--texts TEXTS"},
        modules=("lime", "captum"),
    ),
    Benchmark(
        "counterfactuals-2-threads",  # where one question at a time keeps a thread idle; the design measured both ways
        "counterfactuals",
        ("13",),
        "--threads 2 --rounds 2",
        "--threads 2 --rounds 2 --lengths 16",
        uses={"TEXTATTACK": "--textattack TEXTATTACK"},
    ),
    Benchmark(
        "audit",
        "audit",
        ("audit",),
        "ENCODER DATA/sst --label label2 --threads 2",
        "ENCODER DATA/sst --label label2 --threads 2 --examples 2000",
        needs=("ENCODER", "DATA"),
    ),
    Benchmark(
        "scoring",
        "scoring",
        ("core", "4", "6", "8", "15"),
        "--threads 1 --rounds 2 --lengths 16,64,256",
        "--threads 1 --rounds 3 --shape minilm --lengths 16,64 --most 4000 --samples 300",
    ),
    Benchmark(
        "engines",
        "engines",
        ("8",),
        "--threads 1 --rounds 2 --sentences 8",
        "--threads 1 --rounds 1 --sentences 5 --samples 300",
        uses={"MODEL": "--model MODEL", "TEXTS": "--texts TEXTS"},
        modules=("onnx", "onnxruntime"),
    ),
    Benchmark(
        "attributions-bert-base",
        "attributions",
        ("1", "2", "5", "7"),
        "--shape bert-base --threads 1 --rounds 2 --lengths 16,64 --samples 100",
        "--shape bert-base --threads 1 --rounds 1 --lengths 16 --samples 100",
        modules=("lime", "captum"),
    ),
    Benchmark("peers", "peers", ("peers",), "--threads 1 --rounds 3", "--threads 1 --rounds 3", modules=("captum",)),
    Benchmark(
        "counterfactuals",
        "counterfactuals",
        ("13",),
        "--threads 1 --rounds 2",
        "--threads 1 --rounds 2 --lengths 16",
        uses={"TEXTATTACK": "--textattack TEXTATTACK"},
    ),
    Benchmark(
        "influence",
        "influence",
        ("10", "11", "12"),
        "--threads 1",
        "--threads 1 --sentences 1000 --compared 200 --anchors 10 --steps 5",
        uses=ON_SST,
    ),
    Benchmark(
        "ekfac",
        "ekfac",
        ("peers",),
        "--threads 1 --rounds 2 --sentences 100",
        "--threads 1 --rounds 1 --sentences 100",
        uses=ON_SST,
        modules=("kronfluence",),
    ),
    Benchmark("fixes", "fixes", ("14",), "--threads 1 --rounds 3", "--threads 1 --rounds 2 --steps 4"),
    Benchmark("startup", "startup", ("start-up",), "--rounds 5", "--rounds 5"),
    Benchmark("memory", "memory", ("memory",), "--threads 1 --rounds 1", "--threads 1 --rounds 1"),
    Benchmark(
        "growth",
        "growth",
        ("growth",),
        "--threads 1 --rounds 1",
        "--threads 1 --rounds 1 --words 16,64,256 --examples 100,1000 --predicted 100,1000 --labels 2,500",
    ),
    Benchmark(
        "ray_scaling",
        "ray_scaling",
        ("ray",),
        "--examples 200",
        uses={"MODEL": "--model MODEL", "TEXTS": "--texts TEXTS"},
        modules=("ray",),
    ),
    Benchmark("server", "server", (), on_demand="its bars are those of RELIABILITY.md; it takes about an hour"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one benchmark."""

    benchmark: Benchmark
    state: str  # ran, failed, not run
    reason: str = ""
    seconds: float = 0.0


def run(benchmark: Benchmark, given: Mapping[str, str], file: Path, quick: bool = False) -> Outcome:
    """One benchmark in a process of its own, which prints as it goes and writes the file."""
    if reason := benchmark.obstacle(given):
        return Outcome(benchmark, "not run", reason)
    words = benchmark.command(given, quick)
    command = [sys.executable, *(_filled(word, given) for word in words), "--json", str(file)]
    print(f"\n== {benchmark.name}: python {' '.join(words)}", flush=True)
    paths = [str(BESIDE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = os.environ | ({"PYTHONPATH": os.pathsep.join(paths)} if BESIDE.exists() else {})
    started = time.monotonic()
    done = subprocess.run(command, cwd=BENCH.parent, env=environ, check=False)
    seconds = time.monotonic() - started
    if done.returncode:
        return Outcome(benchmark, "failed", f"it ended with exit code {done.returncode}", seconds)
    return Outcome(benchmark, "ran", "", seconds)


def _filled(word: str, given: Mapping[str, str]) -> str:
    """The word with a folder in place of its name."""
    name, _, rest = word.partition("/")
    return str(Path(given[name], rest)) if name in given else word


# -- the table


def collected(outcomes: Sequence[Outcome], given: Mapping[str, str], started: str | None) -> dict[str, Any]:
    """Every bar of every benchmark, and for each target that has none the reason."""
    rows: list[dict[str, Any]] = []
    told = []
    for outcome in outcomes:
        one, file = outcome.benchmark, RESULTS / f"{outcome.benchmark.name}.json"
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        at = known.get("at")
        found = [bar | {"benchmark": one.name, "at": at} for bar in known.get("bars", [])]
        reason = "the result that is there has no such figure" if found else outcome.reason or "no result is there"
        lacking = [target for target in one.targets if target not in {bar["target"] for bar in found}]
        rows += found + [_nothing(one, target, reason) for target in lacking]
        facts = {"name": one.name, "state": outcome.state, "reason": outcome.reason, "at": at}
        command = f"python {' '.join(one.command(given, quick=False))}"
        told.append(facts | {"seconds": round(outcome.seconds), "command": command, "machine": known.get("machine")})
    order = list(TARGETS)
    rows.sort(key=lambda row: order.index(row["target"]))
    return {"started": started, "targets": TARGETS, "benchmarks": told, "bars": rows}


def _nothing(one: Benchmark, target: str, reason: str) -> dict[str, Any]:
    bar = Bar(target, f"all that {one.name} measures", ">=", reason=reason)
    return bar.to_json() | {"benchmark": one.name, "at": None}


def printed(told: Mapping[str, Any]) -> str:
    """The table as lines to read."""
    lines = [f"{row['target']:>8}  {row['says']}" for row in told["bars"]]
    for one in told["benchmarks"]:
        if one["state"] != "ran":
            lines.append(f"{one['name']}: {one['state']}, {one['reason']}")
    held = [row["holds"] for row in told["bars"]]
    counts = f"{held.count(True)} bars hold, {held.count(False)} fail, {held.count(None)} without a verdict"
    return "\n".join([*lines, counts])


# -- what the command line asks for


def wanted(options: argparse.Namespace) -> list[Benchmark]:
    """The benchmarks that were asked for; unknown names are refused."""
    names = {one.name: one for one in BENCHMARKS}
    if strange := set(options.only or ()) - set(names):
        raise SystemExit(f"There is no benchmark {', '.join(sorted(strange))}. There is: {', '.join(names)}.")
    return [names[name] for name in options.only] if options.only else [one for one in BENCHMARKS if not one.on_demand]


def folders(options: argparse.Namespace) -> dict[str, str]:
    """What was given, by the names in the settings."""
    names = ("data", "model", "encoder", "texts", "textattack")
    found = {name.upper(): str(getattr(options, name)) for name in names if getattr(options, name)}
    own = OPPONENTS / "bin" / "python"
    return {"TEXTATTACK": str(own)} | found if own.exists() else found


def with_model(given: Mapping[str, str], chosen: Sequence[Benchmark]) -> tuple[dict[str, str], str]:
    """With a classifier and sentences, where an encoder and data are given and a benchmark asks for them; or why not.

    They are trained now, or those of an earlier run with the same encoder and data.
    """
    wanted_ones = any(one.asks_for_model for one in chosen) and {"ENCODER", "DATA"} <= given.keys()
    if not wanted_ones or {"MODEL", "TEXTS"} <= given.keys():
        return dict(given), ""
    source = "\n".join(str(Path(given[name]).resolve()) for name in ("ENCODER", "DATA"))
    folder = TRAINED / hashlib.sha256(source.encode()).hexdigest()[:12]
    command = [sys.executable, str(BENCH / "sst_model.py"), given["ENCODER"], given["DATA"], str(folder)]
    if code := subprocess.run(command, check=False).returncode:
        return dict(given), f"the classifier it needs could not be trained (bench/sst_model.py ended with {code})"
    return {"MODEL": str(folder / "model"), "TEXTS": str(folder / "texts.txt")} | dict(given), ""


def run_all(options: argparse.Namespace) -> int:
    """`run`: measure, write, print."""
    started, chosen = now(), wanted(options)
    given, trouble = with_model(folders(options), chosen)
    left_out = "not asked for this time"
    outcomes = {
        one.name: Outcome(one, "not run", "it was not reached" if one in chosen else one.on_demand or left_out)
        for one in BENCHMARKS
    }
    told = dict[str, Any]()
    for one in (one for one in BENCHMARKS if one in chosen):
        hindered = trouble and one.asks_for_model  # with random weights it would be another measurement
        outcomes[one.name] = (
            Outcome(one, "not run", trouble) if hindered else run(one, given, RESULTS / f"{one.name}.json")
        )
        told = collected(list(outcomes.values()), given, started)  # each time: a run that is stopped has a table too
        write(RESULTS / "bars.json", told)
    print(f"\n{printed(told)}")
    return int(any(outcome.state == "failed" for outcome in outcomes.values()))


def tabulate(options: argparse.Namespace) -> int:
    """`table`: from the results that are there, whenever they were measured."""
    given = folders(options)
    outcomes = [
        Outcome(one, "not run", one.on_demand or one.obstacle(given) or "the table was made without a run")
        for one in BENCHMARKS
    ]
    told = collected(outcomes, given, None)
    write(RESULTS / "bars.json", told)
    print(printed(told))
    return 0


def checked(benchmark: Benchmark, given: Mapping[str, str], scratch: Path) -> Iterator[list[Change]]:
    """The changes of one benchmark, run once, and once more if something seems worse: a machine has its moods."""
    for attempt in range(2):
        file = scratch / f"{benchmark.name}-{attempt}.json"
        outcome = run(benchmark, given, file, quick=True)
        if outcome.state == "failed":
            yield [Change(benchmark.name, None, None, None, "MISSING", outcome.reason)]
            return
        changes = compare(bars_of(RESULTS / f"{benchmark.name}.json"), bars_of(file))
        yield changes
        if not any(change.verdict == "WORSE" for change in changes):
            return


def settled(attempts: Sequence[Sequence[Change]]) -> list[Change]:
    """Each figure as in the attempt that was kindest to it: only what is worse in both is worse."""
    return [min(same, key=lambda change: change.fails) for same in zip(*attempts, strict=True)]


def check(options: argparse.Namespace) -> int:
    """`check`: quicker runs against the committed results."""
    chosen, changes = wanted(options), list[Change]()
    given, trouble = with_model(folders(options), chosen)
    with tempfile.TemporaryDirectory() as folder:
        for one in chosen:
            reason = (one.asks_for_model and trouble) or one.obstacle(given)
            if not (RESULTS / f"{one.name}.json").exists():
                reason = "no result of it is committed"
            if reason:
                changes.append(Change(one.name, None, None, None, "not compared", reason))
                continue
            attempts = list(checked(one, given, Path(folder)))
            changes += settled(attempts) if len({len(some) for some in attempts}) == 1 else attempts[-1]
    print(f"\n{table(changes)}")
    worse = [change for change in changes if change.fails]
    print(f"\n{len(worse)} of {len(changes)} figures are worse or gone." if worse else "\nNothing is worse.")
    return int(bool(worse))


def main() -> int:
    """Parse, and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=("run", "check", "table"))
    parser.add_argument("--data", help="folder with the set sst")
    parser.add_argument("--model", help="folder of a trained classifier with SST's labels")
    parser.add_argument("--encoder", help="folder or id without a classification head")
    parser.add_argument("--texts", help="file of sentences, one a line")
    parser.add_argument("--textattack", metavar="PYTHON", help="of an environment that has TextAttack")
    parser.add_argument("--only", type=lambda text: [name for name in text.split(",") if name], help="names, by comma")
    options = parser.parse_args()
    return {"run": run_all, "check": check, "table": tabulate}[options.act](options)


if __name__ == "__main__":
    sys.exit(main())
