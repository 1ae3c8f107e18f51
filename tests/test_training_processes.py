"""Several processes train one model together: gradients averaged, one of them writing checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# each process writes a file of its own: what two of them print at once may end up in one line
SCRIPT = """
import os, pathlib, sys
import tiny
from unhans.training import Schedule, accuracy, fit
from unhans.types import Example

texts = {"negative": "cold soup", "positive": "wonderful film"}
data = [Example(f"{label}{n}", text, label=label) for label, text in texts.items() for n in range(20)]
schedule = Schedule(epochs=2, learning_rate=5e-3, batch_size=8)
better = fit(tiny.transformer(), data, schedule=schedule, checkpoints=sys.argv[1])
said = pathlib.Path("said-" + os.environ["RANK"])
said.write_text(f"{better.revision} {accuracy(better, data)}")
"""


def test_two_processes_end_with_the_same_trained_model(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    settings = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    ran = subprocess.run(
        [*launch, "train.py", "checkpoints"],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, second = ((tmp_path / f"said-{rank}").read_text() for rank in range(2))
    assert first == second
    assert first.endswith(" 1.0")
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["current"]
