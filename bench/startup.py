"""How long one waits before anything happens: importing, and the command line's help, against importing the libraries.

    python bench/startup.py [--rounds 9] [--json out.json]

Every command is a process of its own, and they take turns; the CPU time of each process counts, because other work on
the machine disturbs it least. Ratios are to `import torch, transformers` with the class that a user of the bare model
needs. `nothing` is Python itself, which is in all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from _bars import Bar, finish

BARE = "the bare libraries"
COMMANDS = {
    BARE: ["-c", "import torch; from transformers import AutoModelForSequenceClassification, AutoTokenizer"],
    "nothing": ["-c", "pass"],
    "import unhans": ["-c", "import unhans"],
    "unhans --help": ["-m", "unhans", "--help"],
    "unhans predict --help": ["-m", "unhans", "predict", "--help"],
    "loading and explaining imported": ["-c", "from unhans import load, attribute"],
    "the server imported": ["-c", "import unhans.serving"],
}
LIMITS = {
    "import unhans": 0.05,
    "unhans --help": 0.1,
    "unhans predict --help": 0.1,
    "loading and explaining imported": 1.5,
    "the server imported": 0.5,
}


def cpu_seconds(arguments: list[str]) -> float:
    """CPU time of a Python process with these arguments, from beginning to end."""
    # modules are compiled once and kept, as they are for a user; to compile them each time would be another measurement
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environ)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Measure in turns, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for arguments in COMMANDS.values():
        cpu_seconds(arguments)  # so that every file has been read and compiled once
    rounds = [{name: cpu_seconds(arguments) for name, arguments in COMMANDS.items()} for _ in range(options.rounds)]
    seconds = {name: median(one[name] for one in rounds) for name in COMMANDS}
    for name, value in seconds.items():
        print(f"{name:34} {value:6.2f} CPU seconds")
    bars = [
        Bar("start-up", f"{name}, against {BARE}", "<=", limit, tuple(one[name] / one[BARE] for one in rounds))
        for name, limit in LIMITS.items()
    ]
    finish(bars, options.json, settings={"rounds": options.rounds}, seconds=seconds)


if __name__ == "__main__":
    main()
