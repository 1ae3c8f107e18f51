"""Write the docs that are read off the program: methods, commands, schema, and the tables in the README.

python docs/generate.py            write them
python docs/generate.py --check    fail if one of them is not current
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click

from unhans.catalogue import FAMILIES, QUESTIONS, markdown
from unhans.cli import main as commands
from unhans.server import bare_app
from unhans.types import json_schema
from unhans.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by docs/generate.py (`make docs`); do not edit. -->"
FIGURES = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)
SPEED = re.compile(r"(<!-- attribution-figures -->\n).*?(<!-- /attribution-figures -->)", re.DOTALL)
SERVER = re.compile(r"(<!-- server-figures -->\n).*?(<!-- /server-figures -->)", re.DOTALL)
INFLUENCE = re.compile(r"(<!-- influence-figures -->\n).*?(<!-- /influence-figures -->)", re.DOTALL)
BARS = re.compile(r"(<!-- bars -->\n).*?(<!-- /bars -->)", re.DOTALL)
GROWTH = re.compile(r"(<!-- growth -->\n).*?(<!-- /growth -->)", re.DOTALL)
MARKED = re.compile(r"(<!-- methods -->\n).*?(<!-- /methods -->)", re.DOTALL)


def methods() -> str:
    """The catalogue of all families."""
    sections = [f"## {name}\n\n{QUESTIONS[name]}\n\n{markdown(family)}" for name, family in FAMILIES.items()]
    return "\n\n".join([NOTE, "# Methods", *sections]) + "\n"


def cli() -> str:
    """The help of every command."""
    parts = [NOTE, "# Command line", f"```\n{_help(commands, 'unhans')}\n```"]
    for name, command in _all_commands(commands, "unhans"):
        parts.append(f"## {name}\n\n```\n{_help(command, name)}\n```")
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """JSON Schema of the nouns."""
    return json.dumps(json_schema(), indent=1, sort_keys=True) + "\n"


def openapi() -> str:
    """The server's interface; `npm run types` makes the browser's types of it."""
    with tempfile.TemporaryDirectory() as folder, Workspace.open(Path(folder)) as workspace:
        return json.dumps(bare_app(workspace).openapi(), indent=1) + "\n"


def readme(current: str) -> str:
    """The README with its tables of methods made anew."""
    tables = "\n\n".join(
        f"**{name}** – {QUESTIONS[name]}\n\n{_table_only(markdown(f))}" for name, f in FAMILIES.items()
    )
    return MARKED.sub(lambda match: f"{match[1]}\n{tables}\n\n{match[2]}", current)


def scoring(current: str) -> str:
    """The page on scoring with the committed figures of `bench/scoring.py --json bench/results/scoring.json`."""
    figures = ROOT / "bench/results/scoring.json"
    if not figures.exists():
        return current
    told = json.loads(figures.read_text(encoding="utf-8"))
    head = "| shape | tokens | variants of | share of the limit | pipeline(batch_size=32) | pipeline() |"
    rows = [
        f"| {r['shape']} | {r['tokens']} | {r['kind']} ({r['different']} different of {r['variants']}) | "
        f"{r['of the limit']:.2f} | {r['against batched']:.1f}x | {r['against default']:.1f}x |"
        for r in told["results"]
    ]
    bars = _listed(told["bars"])
    text = "\n".join([f"Measured with {told['machine']}.", "", head, "|---|---|---|---|---|---|", *rows, "", *bars])
    return FIGURES.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", current)


def speed(current: str) -> str:
    """The page on speed: all bars of `make bench`, and the figures of `bench/attributions.py` in full."""
    current = _all_bars(current)
    figures = ROOT / "bench/results/attributions.json"
    if not figures.exists():
        return current
    told = json.loads(figures.read_text(encoding="utf-8"))
    lines = [f"Measured with {told['machine']}; shape {told['shape']}.", "", *_listed(told["bars"]), ""]
    lines += ["| tokens | leave-one-out, of the limit | LIME, of the limit |", "|---|---|---|"]
    for n, shares in told["of the limit"].items():
        both = (f"{median(shares[method]['limit']):.2f}" for method in ("leave_one_out", "lime"))
        lines.append(f"| {n} | {' | '.join(both)} |")
    if "fidelity" in told:
        curves = told["fidelity"]["curves"]
        lines += [
            "",
            f"Mean Spearman to 20,000 samples on {told['fidelity']['sentences']} sentences, by texts asked:",
            "",
        ]
        grid = list(next(iter(curves.values())))
        lines += [f"| samples | {' | '.join(curves)} |", "|---" * (len(curves) + 1) + "|"]
        lines += [
            f"| {n} | " + " | ".join(f"{curve[n][1]:.2f} ({curve[n][0]:,.0f})" for curve in curves.values()) + " |"
            for n in grid
        ]
    text = "\n".join(lines)
    return SPEED.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", current)


def _all_bars(current: str) -> str:
    """The table of all bars, from `bench/results/bars.json`."""
    figures = ROOT / "bench/results/bars.json"
    if not figures.exists():
        return current
    told = json.loads(figures.read_text(encoding="utf-8"))
    started = told["started"]
    lines = [
        f"All of one run, begun {started}, but for what is marked as earlier."
        if started
        else "Not of one run: these are the results that were there, some of them of earlier forms of the benchmarks.",
        "",
        "| target | what | bar | measured: median (spread) | | benchmark |",
        "|---" * 6 + "|",
    ]
    for bar in told["bars"]:
        verdict = {True: "holds", False: f"**fails** by {bar['beyond'] or 0:.1%}", None: ""}[bar["holds"]]
        earlier = bool(bar["values"]) and started is not None and (bar["at"] is None or bar["at"] < started)
        which = f"{bar['benchmark']}{', earlier' if earlier else ''}"
        wanted = bar["wanted"].replace(">=", "≥").replace("<=", "≤")
        lines.append(f"| {bar['target']} | {bar['name']} | {wanted} | {bar['told']} | {verdict} | {which} |")
    lines += ["", "What the targets are:", "", *(f"- {name}: {what}" for name, what in told["targets"].items())]
    lines += ["", "The commands:", ""]
    for one in told["benchmarks"]:
        state = f" took {one['seconds']:,} s" if one["state"] == "ran" else f" – {one['state']}: {one['reason']}"
        lines.append(f"- {one['name']}: `{one['command']}`{state}")
    return BARS.sub(lambda match: f"{match[1]}\n{chr(10).join(lines)}\n\n{match[2]}", current)


def growth(current: str) -> str:
    """How cost grows, from `bench/growth.py --json bench/results/growth.json`."""
    figures = ROOT / "bench/results/growth.json"
    if not figures.exists():
        return current
    told = json.loads(figures.read_text(encoding="utf-8"))
    peaks = told["examples"]["peaks"]
    lines = [f"Measured with {told['machine']}. Times are in those of the smallest size.", ""]
    lines += [*_grown("words of a text", told["words"]), "", *_grown("examples", told["examples"]["seconds"])]
    lines += [f"| *most memory so far* | {' | '.join(f'{peaks[size]:,.0f} MB' for size in sorted(peaks, key=int))} |"]
    lines += ["", *_grown("labels", told["labels"])]
    return GROWTH.sub(lambda match: f"{match[1]}\n{chr(10).join(lines)}\n\n{match[2]}", current)


def _grown(what: str, curves: dict[str, dict[str, list[float]]]) -> list[str]:
    """A table of curves: sizes across, and in each cell how many times as long as the smallest size took."""
    sizes = sorted({int(size) for curve in curves.values() for size in curve})
    lines = [f"| {what} | {' | '.join(f'{size:,}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    for name, curve in curves.items():
        least = median(curve[str(min(map(int, curve)))])
        cells = (f"{median(curve[str(size)]) / least:,.3g}" if str(size) in curve else "–" for size in sizes)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def bulk(current: str) -> str:
    """The page on very many texts with the figures of `bench/ray_scaling.py --json bench/results/ray_scaling.json`."""
    figures = ROOT / "bench/results/ray_scaling.json"
    if not figures.exists():
        return current
    told = json.loads(figures.read_text(encoding="utf-8"))
    lines = [f"Measured with {told['machine']}: {told['method']} on {told['examples']:,} texts.", ""]
    lines += ["| who | speed against one worker of Ray | by rounds |", "|---|---|---|"]
    for name, speed in told["speed against one worker"].items():
        who = "this process, one thread" if name == "here" else f"{name} worker{'s' if name != '1' else ''} of Ray"
        lines.append(f"| {who} | {speed:.2f} | {', '.join(f'{ratio:.2f}' for ratio in told['each turn'][name])} |")
    cost, own = told["c: seconds of a worker for a text"], told["d: seconds of the writing process for a text"]
    share, busy = (
        told["e: share of the workers' speed that is there"],
        told["workers that reading and writing keep busy"],
    )
    guess = told["estimate"]
    lines += [
        "",
        f"Here c = {cost:.2g} s, d = {own:.2g} s (so {busy:,.0f} workers keep one reading and writing process busy), "
        f"e = {share:.2f}, and a row takes {told['bytes of a row']:,.0f} bytes. "
        f"For N = {guess['texts']:.0e} texts and W = {guess['workers']:,} such workers that comes to "
        f"**{guess['hours']:,.0f} hours** (work {guess['hours of work']:,.0f}, reading and writing "
        f"{guess['hours of reading and writing']:,.1f}) and {guess['terabytes']:.2g} TB. It is a reckoning: no cluster "
        "was there to try it on.",
    ]
    return FIGURES.sub(lambda match: f"{match[1]}\n{chr(10).join(lines)}\n\n{match[2]}", current)


def _listed(bars: list[dict[str, Any]]) -> list[str]:
    """Bars one below the other."""
    return [f"- {bar['says']}" for bar in bars]


def reliability(current: str) -> str:
    """The page on reliability with the figures of `bench/server.py --json bench/results/server.json`."""
    figures = ROOT / "bench/results/server.json"
    if not figures.exists():
        text = "Not measured yet: run `python bench/server.py --json bench/results/server.json`, then `make docs`."
        return SERVER.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", current)
    told = json.loads(figures.read_text(encoding="utf-8"))
    load = (
        f"Parts with people took {told['seconds']:,.0f} s each, with {told['think']:g} s of thought before an answer."
    )
    lines = [
        f"Measured with {told['machine']}. {load}",
        "",
        "| | database | what | measured | bar | |",
        "|---" * 6 + "|",
    ]
    lines += [
        f"| {r['bar']} | {r['database']} | {r['what']} | {r['value']:,g} {r['unit']} | ≤ {r['most']:,g} {r['unit']} | "
        f"{'holds' if r['holds'] else '**fails**'} |"
        for r in told["results"]
    ]
    return SERVER.sub(lambda match: f"{match[1]}\n{chr(10).join(lines)}\n\n{match[2]}", current)


def influences(current: str) -> str:
    """The page on influences with the figures of `bench/influence.py --json bench/results/influence.json`."""
    figures = ROOT / "bench/results/influence.json"
    if not figures.exists():
        text = "Not measured yet."
    else:
        told = json.loads(figures.read_text(encoding="utf-8"))
        facts, judged = told["settings"], {bar["name"] for bar in told["bars"]}
        text = "\n".join(
            [
                f"Measured with {told['machine']}, on {facts['sentences']:,} sentences ({facts['tokens']:,} tokens), "
                f"with {facts['anchors']} anchors; Spearman over {facts['compared']:,} of the sentences.",
                "",
                *_listed(told["bars"]),
                *(f"- {name}: {value:.4g}" for name, value in told["figures"].items() if name not in judged),
            ]
        )
    return INFLUENCE.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", current)


def _table_only(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))


def _all_commands(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        yield f"{before} {name}", command
        if isinstance(command, click.Group):
            yield from _all_commands(command, f"{before} {name}")


def _help(command: click.Command, name: str) -> str:
    settings = {**commands.context_settings, "terminal_width": 100, "max_content_width": 100}
    with click.Context(command, info_name=name, **settings) as context:
        return command.get_help(context)


def pages() -> dict[Path, str]:
    """Every generated file with what it should say."""
    front, core, methods_speed = ROOT / "README.md", ROOT / "docs/scoring.md", ROOT / "docs/speed.md"
    reliable, traced, many = ROOT / "RELIABILITY.md", ROOT / "docs/influences.md", ROOT / "docs/bulk.md"
    return {
        ROOT / "docs/methods.md": methods(),
        ROOT / "docs/cli.md": cli(),
        ROOT / "docs/schema.json": schema(),
        ROOT / "docs/openapi.json": openapi(),
        front: readme(front.read_text(encoding="utf-8")),
        core: scoring(core.read_text(encoding="utf-8")),
        methods_speed: growth(speed(methods_speed.read_text(encoding="utf-8"))),
        many: bulk(many.read_text(encoding="utf-8")),
        reliable: reliability(reliable.read_text(encoding="utf-8")),
        traced: influences(traced.read_text(encoding="utf-8")),
    }


def stale() -> list[Path]:
    """The files that do not say what they should."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> None:
    """Write, or check."""
    old = stale()
    if "--check" in sys.argv:
        if old:
            sys.exit(f"Not current: {', '.join(str(path.relative_to(ROOT)) for path in old)}. Run `make docs`.")
        return
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
