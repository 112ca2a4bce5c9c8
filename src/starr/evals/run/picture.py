"""A small scatter plot as SVG text, for self-contained pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from starr.evals.stats import Interval

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 760, 420, 64, 48, 24, 20
COLOURS = ("#1c5fb8", "#c2491d", "#23865a", "#8a4fb0", "#b08a00", "#c03a76", "#3f8f9f", "#6a6f7a")
LETTER, LINE, LONGEST = 7.3, 16, 42  # size of a label's letters and lines, and the most letters it shows
DOWN = (-7, 5, 17, -23, 33, -39, 49, -55, 65, -71, 81, -87, 97, 113, 129, 145, 161)  # where names may stand
MOST_PARTS = 6  # of an axis between its ticks
Point = tuple[str, float, float, Interval]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def scatter(points: Sequence[Point], x_label: str, y_label: str) -> str:
    """Points (name, x, y, interval of y), y in [0, 1], with axes, error bars and names that never cover each other."""
    if not points:
        return ""
    top_x, low_y = ceiling_of(max(x for _, x, _, _ in points)), floor_of(min(low for _, _, _, (low, _) in points))
    spots = [(across(x, top_x), up(y, low_y)) for _, x, y, _ in points]
    parts = [axes(top_x, low_y, x_label, y_label)]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in spots]
    bars = [
        (x - 2, up(high, low_y), x + 2, up(low, low_y)) for (*_, (low, high)), (x, _) in zip(points, spots, strict=True)
    ]
    for number, ((name, _, _, (low, high)), (x, y)) in enumerate(zip(points, spots, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{up(low, low_y):.1f}' y2='{up(high, low_y):.1f}' "
            f"style='stroke:{colour}' stroke-width='2'/><circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{colour}'/>"
            + label(name, (x, y), colour, taken, bars)
        )
    body = "".join(parts)
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(y_label)} against {escape(x_label)}' "
        f"font-size='13' font-family='system-ui,sans-serif'>{body}</svg>"
    )


def label(name: str, spot: tuple[float, float], colour: str, taken: list[Box], bars: Sequence[Box]) -> str:
    """A point's name at the nearest free place, off the bars where it can, with a line to it where that is far."""
    x, y = spot
    shown = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    wide = LETTER * len(shown) + 4
    places = [(left, y + down) for down in DOWN for left in (x + 9, x - 9 - wide)]
    boxes = [(left, at - LINE + 3, left + wide, at + 4) for left, at in places]
    free = [box for box in boxes if inside(box) and not any(overlap(box, other) for other in taken)]
    box = next((box for box in free if not any(overlap(box, bar) for bar in bars)), (free or boxes)[0])
    taken.append(box)
    left, bottom = box[0], box[3] - 4
    near = left if left > x else left + wide
    far = abs(bottom - y) > LINE
    lead = f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{near:.1f}' y2='{bottom - 4:.1f}' style='stroke:{colour}'/>"
    title = f"<title>{escape(name)}</title>" if shown != name else ""
    return f"{lead if far else ''}<text class='name' x='{left + 2:.1f}' y='{bottom:.1f}'>{escape(shown)}{title}</text>"


def inside(box: Box) -> bool:
    """Whether a box lies within the axes."""
    return box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT - BOTTOM


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share a point."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def floor_of(low: float) -> float:
    """Where the axis of shares begins: a multiple of 0.2 below the lowest interval, so that what differs is seen."""
    return max(0.0, math.floor(min(low, 0.8) * 5) / 5)


def ceiling_of(most: float) -> float:
    """Where the axis of x ends: at a tick, with a tenth of room behind the last point."""
    room = max(most, 1.0) * 1.1
    step = round_step(room)
    return math.ceil(room / step) * step


def round_step(span: float) -> float:
    """The least of 1, 2 or 5 times a power of ten that divides a span into at most ``MOST_PARTS``."""
    power = math.pow(10, math.floor(math.log10(span / MOST_PARTS)))
    return next(times * power for times in (1, 2, 5, 10) if span / (times * power) < MOST_PARTS + 1e-6)


def ticks(low: float, high: float) -> list[str]:
    """Round numbers from ``low`` on, all with the decimals that they need."""
    step = round_step(high - low)
    decimals = max(0, -math.floor(math.log10(step) + 1e-6))
    return [f"{low + step * n:.{decimals}f}" for n in range(math.floor((high - low) / step + 1e-6) + 1)]


def across(x: float, top: float) -> float:
    """The x of a value in the picture."""
    return LEFT + (WIDTH - LEFT - RIGHT) * x / top


def up(y: float, low: float) -> float:
    """The y of a share in the picture."""
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (y - low) / (1 - low)


def axes(top_x: float, low_y: float, x_label: str, y_label: str) -> str:
    """Both axes with their numbers and labels."""
    left, bottom = LEFT, HEIGHT - BOTTOM
    lines = [f"<line x1='{left}' x2='{left}' y1='{TOP}' y2='{bottom}' stroke='#8891a3'/>",
             f"<line x1='{left}' x2='{WIDTH - RIGHT}' y1='{bottom}' y2='{bottom}' stroke='#8891a3'/>"]  # fmt: skip
    for share in ticks(low_y, 1):
        y = up(float(share), low_y) + 4
        lines.append(f"<text class='share' x='{left - 8}' y='{y:.1f}' text-anchor='end'>{share}</text>")
    for value in ticks(0, top_x):
        x = across(float(value), top_x)
        lines.append(f"<text class='value' x='{x:.1f}' y='{bottom + 18}' text-anchor='middle'>{value}</text>")
    middle = (TOP + bottom) / 2
    lines.append(f"<text x='{(left + WIDTH) / 2}' y='{HEIGHT - 8}' text-anchor='middle'>{escape(x_label)}</text>")
    turned = f"transform='rotate(-90 16 {middle})'"
    lines.append(f"<text x='16' y='{middle}' text-anchor='middle' {turned}>{escape(y_label)}</text>")
    return "".join(lines)
