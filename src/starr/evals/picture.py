"""A small scatter plot as SVG text, for pages that must stand alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from starr.evals.stats import Interval

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 760, 420, 64, 48, 24, 20
COLOURS = ("#1c5fb8", "#c2491d", "#23865a", "#8a4fb0", "#b08a00", "#c03a76", "#3f8f9f", "#6a6f7a")
Point = tuple[str, float, float, Interval]


def scatter(points: Sequence[Point], x_label: str, y_label: str) -> str:
    """Points (name, x, y, interval of y), y in [0, 1], with axes, error bars and names."""
    if not points:
        return ""
    top_x = nice(max(x for _, x, _, _ in points) * 1.1)
    parts = [axes(top_x, x_label, y_label)]
    for number, (name, x, y, (low, high)) in enumerate(points):
        colour, at_x, at_y = COLOURS[number % len(COLOURS)], across(x, top_x), up(y)
        anchor, shift = ("end", -9) if x > top_x / 2 else ("start", 9)
        parts.append(
            f"<line x1='{at_x:.1f}' x2='{at_x:.1f}' y1='{up(low):.1f}' y2='{up(high):.1f}' style='stroke:{colour}' "
            f"stroke-width='2'/><circle cx='{at_x:.1f}' cy='{at_y:.1f}' r='5' fill='{colour}'/>"
            f"<text x='{at_x + shift:.1f}' y='{at_y - 7:.1f}' text-anchor='{anchor}'>{escape(name)}</text>"
        )
    body = "".join(parts)
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(y_label)} against {escape(x_label)}' "
        f"font-size='13' font-family='system-ui,sans-serif'>{body}</svg>"
    )


def across(x: float, top: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * x / top


def up(y: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y


def nice(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten, or a multiple of its tenth: a round end for an axis."""
    step = math.pow(10, math.floor(math.log10(max(value, 1e-9))))
    return math.ceil(value / step * 2) / 2 * step


def axes(top_x: float, x_label: str, y_label: str) -> str:
    left, bottom = LEFT, HEIGHT - BOTTOM
    lines = [f"<line x1='{left}' x2='{left}' y1='{TOP}' y2='{bottom}' stroke='#8891a3'/>",
             f"<line x1='{left}' x2='{WIDTH - RIGHT}' y1='{bottom}' y2='{bottom}' stroke='#8891a3'/>"]  # fmt: skip
    for tenth in range(0, 11, 2):
        share, x = tenth / 10, across(top_x * tenth / 10, top_x)
        lines.append(f"<text x='{left - 8}' y='{up(share) + 4:.1f}' text-anchor='end'>{share:.1f}</text>")
        lines.append(f"<text x='{x:.1f}' y='{bottom + 18}' text-anchor='middle'>{top_x * tenth / 10:g}</text>")
    middle = (TOP + bottom) / 2
    lines.append(f"<text x='{(left + WIDTH) / 2}' y='{HEIGHT - 8}' text-anchor='middle'>{escape(x_label)}</text>")
    turned = f"transform='rotate(-90 16 {middle})'"
    lines.append(f"<text x='16' y='{middle}' text-anchor='middle' {turned}>{escape(y_label)}</text>")
    return "".join(lines)
