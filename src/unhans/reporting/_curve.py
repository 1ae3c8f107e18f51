"""The trade-off over the strengths of a fix, as a small drawing."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from unhans.present import safe_html
from unhans.reporting._words import MADE, accuracies, mean
from unhans.types import Measure, Recipe, Report

_WIDTH, _HEIGHT = 560, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 14, 40  # margins
_DASHES = ("", "7 4", "2 4")  # lines can be told apart without colour, and so can their marks
_STEP, _TICKS = 5, 5  # points between ticks, or a multiple of it if that makes more ticks than this

Line = tuple[str, Sequence[float]]
"""A name, and an accuracy for each strength."""


def curve(report: Report) -> str:
    """Accuracy over the strength of the fix; nothing unless some rivals are the same fix at another strength."""
    own = _strength(report.recipe)
    if report.recipe is None or own is None:
        return ""
    points: dict[float, Sequence[Measure]] = {own: accuracies(report)}
    for rival in report.rivals:
        if rival.recipe.name == report.recipe.name and (strength := _strength(rival.recipe)) is not None:
            points.setdefault(strength, rival.measures)
    strengths = sorted(points)
    if len(strengths) < 2:
        return ""
    lines = [
        (name, [mean(m.after for m in points[at] if m.data in sets) or 0.0 for at in strengths])
        for name, sets in _lines([measure.data for measure in points[own]])
    ]
    return _figure(strengths, lines, strengths.index(own))


def _strength(recipe: Recipe | None) -> float | None:
    value = dict(recipe.options).get("strength") if recipe else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _lines(sets: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The first set by itself, then the others together, then those made from votes."""
    first, *others = sets
    found = [
        (first, [first]),
        ("other sets, mean", [name for name in others if MADE not in name]),
        ("sets made from votes, mean", [name for name in others if MADE in name]),
    ]
    return [(name, data) for name, data in found if data]


def _figure(strengths: Sequence[float], lines: Sequence[Line], chosen: int) -> str:
    ticks = _ticks([100 * value for _, line in lines for value in line])

    def x(number: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (number + 0.5) / len(strengths)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (100 * value - ticks[0]) / (ticks[-1] - ticks[0]))

    drawn = [_tick(y(tick / 100), str(tick)) for tick in ticks]
    drawn.append(
        f'<line class="chosen" x1="{x(chosen):.1f}" x2="{x(chosen):.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
    )
    drawn += [_label(x(n), _HEIGHT - _BOTTOM + 18, f"{s:g}", n == chosen) for n, s in enumerate(strengths)]
    drawn.append(_label((_WIDTH + _LEFT) / 2, _HEIGHT - 4, "strength (bold: the fix reported)"))
    for number, (_, line) in enumerate(lines):
        drawn.append(_track(number, [(x(n), y(value)) for n, value in enumerate(line)]))
    told = " ".join(
        f"{name}: {', '.join(f'{100 * v:.1f} at {s:g}' for s, v in zip(strengths, line, strict=True))}."
        for name, line in lines
    )
    key = "".join(
        f'<li><svg width="34" height="14" aria-hidden="true">{_track(number, [(0, 7), (17, 7), (34, 7)], marked=(1,))}'
        f"</svg> <bdi>{safe_html(name)}</bdi></li>"
        for number, (name, _) in enumerate(lines)
    )
    return (
        f'<figure><figcaption>Accuracy over the strength of the fix</figcaption><svg class="curve" role="img" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="{safe_html(told)}">{"".join(drawn)}</svg>'
        f'<ul class="key">{key}</ul></figure>'
    )


def _ticks(points: Sequence[float]) -> list[int]:
    """Round numbers from below the lowest to above the highest."""
    low = _STEP * floor(min(points) / _STEP)
    steps = max(1, ceil((max(points) - low) / _STEP))
    step = _STEP * ceil(steps / _TICKS)
    return [low + step * number for number in range(ceil(steps * _STEP / step) + 1)]


def _tick(y: float, text: str) -> str:
    return (
        f'<line class="tick" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )


def _label(x: float, y: float, text: str, bold: bool = False) -> str:
    weight = ' style="font-weight:bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{weight}>{safe_html(text)}</text>'


def _track(number: int, at: Sequence[tuple[float, float]], marked: Sequence[int] | None = None) -> str:
    """A line with a mark at every point, or at those that are to have one."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    marks = "".join(_mark(number, *at[n]) for n in (range(len(at)) if marked is None else marked))
    return f'<g class="line{number}"><polyline points="{points}" stroke-dasharray="{_DASHES[number]}"/>{marks}</g>'


def _mark(number: int, x: float, y: float) -> str:
    """A circle, a square or a diamond."""
    if number == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if number == 2 else ""
    return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"{turn}/>'
