"""Drawing that several results share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from starr.evals.run.bench import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOTH = "right and well formed (%, 95 % interval)"


def error_bars(measured: Sequence[Measured]) -> tuple[list[float], list[list[float]]]:
    """*Both* in percent, and the distances to the ends of its interval."""
    shares = [100 * m.figures["both"] for m in measured]
    ends = [[100 * end for end in m.figures["both_interval"]] for m in measured]
    below = [max(0.0, share - low) for share, (low, _) in zip(shares, ends, strict=True)]
    above = [max(0.0, high - share) for share, (_, high) in zip(shares, ends, strict=True)]
    return shares, [below, above]


def colours(count: int, shift: float = 0.0) -> list[tuple[float, float, float]]:
    """``count`` colours around the colour wheel, light and dark in turn; another ``shift`` in [0, 1) gives others."""
    from matplotlib.colors import hsv_to_rgb

    return [tuple(hsv_to_rgb(((i + shift) / count, 0.9, 0.8 - 0.3 * (i % 2)))) for i in range(count)]


def log_axis(axes: Axes) -> None:
    """A logarithmic axis of costs with plain numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def share_axis(axes: Axes, measured: Sequence[Measured]) -> None:
    """An axis of percents that holds every interval with some room, and nothing above 100 but markers."""
    ends = [100 * end for m in measured for end in m.figures["both_interval"]] or [0.0, 100.0]
    low, high = min(ends), max(ends)
    room = max(2.0, 0.06 * (high - low))
    axes.set_ylim(max(0.0, low - room) - (room if low < room else 0.0), high + room)


def accuracy_and_speed(figure: Figure, measured: Sequence[Measured], rows: Sequence[dict[str, Any]]) -> None:
    """Left: accuracy with intervals. Right: the three speed-ups."""
    left, right = figure.subplots(1, 2)
    names = [wrap(m.run.name) for m in measured]
    shares, bars = error_bars(measured)
    left.barh(names, shares, xerr=bars, color="#1c5fb8", capsize=3)
    left.set_xlabel(BOTH)
    left.set_xlim(0, top_of(measured))
    places = np.arange(len(rows))
    for shift, way in enumerate(("forwards", "positions", "seconds")):
        values = [row[f"speed-up ({way})"] for row in rows]
        right.barh(places + 0.27 * (shift - 1), values, height=0.25, label=way)
    right.set_yticks(places, [] if len(rows) else None)
    right.set_xlabel("speed-up against the first row (×)")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.invert_yaxis()


def top_of(measured: Sequence[Measured]) -> float:
    """A round end of the accuracy axis, in percent, above every interval."""
    highest: float = max(100 * m.figures["both_interval"][1] for m in measured)
    return min(100.0, 10.0 * math.ceil(highest / 10 + 0.2))


def wrap(text: str, width: int = 26) -> str:
    """A run's name on several short lines."""
    lines = [""]
    for part in text.replace(",", ", ").split(" "):
        if len(lines[-1]) + len(part) > width and lines[-1]:
            lines.append("")
        lines[-1] += f"{part} "
    return "\n".join(line.strip() for line in lines)


def line_with_band(axes: Axes, x: Sequence[float], measured: Sequence[Measured], label: str) -> None:
    """Accuracy over an option's values, with its interval as a band."""
    shares, (below, above) = error_bars(measured)
    axes.plot(x, shares, marker="o", label=label)
    low = [s - b for s, b in zip(shares, below, strict=True)]
    high = [s + a for s, a in zip(shares, above, strict=True)]
    axes.fill_between(x, low, high, alpha=0.15)
