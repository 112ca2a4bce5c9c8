"""Pictures of a trace for papers: one token's confidence and threshold, the map, the curves.

The file's name says whether PNG or SVG is written.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from starr.decode.trace import check_trace
from starr.errors import InputError, WorkError
from starr.viewer.frames import (
    COMMIT,
    MASKED,
    REVISE,
    REVOKE,
    Floats,
    Trace,
    build_curves,
    build_frames,
    count_positions,
    read_floats,
    read_piece,
)
from starr.viewer.words import ABOVE, BELOW, LOOK, ZERO, make_visible

MARKS = {COMMIT: ("o", "commit"), REVOKE: ("x", "revoke"), REVISE: ("D", "revise")}
CONFIDENCE, THRESHOLD, REVOKED = LOOK["held"].light, LOOK["revised"].light, LOOK["revoked"].light


def plot_token(trace: dict[str, Any], out: Path, *, position: int | None = None) -> None:
    """Plot one position's confidence, threshold and actions over steps; by default the busiest position."""
    check_trace(trace, "trace")
    action = read_grid(trace, "action")
    chosen = int(np.nansum(action > 0, axis=0).argmax()) if position is None else position
    if not 0 <= chosen < action.shape[1]:
        raise InputError(f"position is {chosen}, not from 0 to {action.shape[1] - 1}.", param="position")
    confidence, threshold = read_grid(trace, "confidence")[:, chosen], read_grid(trace, "threshold")[:, chosen]
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel="probability")
    step = np.arange(1, len(confidence) + 1)
    axes.plot(step, confidence, color=CONFIDENCE, label="confidence")
    if np.isfinite(threshold).any():
        axes.plot(step, threshold, color=THRESHOLD, linestyle="--", label="threshold")
    for kind, (shape, word) in MARKS.items():
        at = action[:, chosen] == kind
        if at.any():
            axes.scatter(step[at], confidence[at], marker=shape, color="black", zorder=3, label=word)
    last = int(build_frames(trace)[-1, chosen])
    written = "" if last == MASKED else f" “{make_visible(read_piece(trace, last)).strip()}”"
    set_title(axes, f"{trace.get('strategy', '')}, position {chosen}{written}")
    axes.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    save(figure, out)


def plot_map(trace: dict[str, Any], out: Path) -> None:
    """Plot positions by steps: colour is confidence minus threshold, or minus a half where there is no threshold."""
    check_trace(trace, "trace")
    threshold, action = read_grid(trace, "threshold"), read_grid(trace, "action")
    compared = bool(np.isfinite(threshold).any())
    value = read_grid(trace, "confidence") - (threshold if compared else 0.5)
    steps, length = value.shape
    figure = Figure(figsize=(min(12.0, 3 + length / 20), min(9.0, 2.4 + steps / 16)), layout="constrained")
    axes = figure.add_subplot(xlabel="position", ylabel="step")
    colours = LinearSegmentedColormap.from_list("margin", [BELOW[0], ZERO[0], ABOVE[0]])
    box = (-0.5, length - 0.5, steps + 0.5, 0.5)
    image = axes.imshow(value, cmap=colours, vmin=-0.5, vmax=0.5, aspect="auto", interpolation="nearest", extent=box)
    size = max(2.0, min(40.0, 3000 / max(steps, length)))
    for kind, (shape, word) in MARKS.items():
        step, at = np.nonzero(action == kind)
        axes.scatter(at, step + 1, s=size, marker=shape, color="black", linewidths=0.7, label=word)
    for edge in sorted({step["window"][0] for step in trace["steps"]} - {0}):
        axes.axvline(edge - 0.5, color="black", linewidth=0.6)
    figure.colorbar(image, label="confidence minus threshold" if compared else "confidence minus ½", extend="both")
    set_title(axes, trace.get("strategy", ""))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save(figure, out)


def plot_curves(trace: dict[str, Any], out: Path) -> None:
    """Plot masks left, commits and revocations, confidence with thresholds, and positions queried, over steps."""
    check_trace(trace, "trace")
    lines = build_curves(trace, build_frames(trace))
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    (masks, acts), (sure, cost) = figure.subplots(2, 2)
    step = np.arange(1, len(lines.commits) + 1)
    masks.plot(np.arange(len(lines.masks)), lines.masks, color=CONFIDENCE)
    set_title(masks, "masks left")
    acts.bar(step, lines.commits, color=CONFIDENCE, label="commits")
    acts.bar(step, -np.array(lines.revocations), color=REVOKED, hatch="//", label="revocations")
    set_title(acts, "commits and revocations per step")
    acts.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    sure.plot(step, read_floats(lines.mean), color=CONFIDENCE, label="mean of the masks")
    sure.plot(step, read_floats(lines.least), color="black", linestyle="--", label="least")
    low, high = read_floats(lines.low), read_floats(lines.high)
    sure.fill_between(step, low, high, color=THRESHOLD, alpha=0.3, label="thresholds")
    set_title(sure, "confidence")
    sure.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    cost.bar(step, lines.queried, color="0.5")
    set_title(cost, "positions queried per step")
    for axes in (masks, acts, sure, cost):
        axes.set_xlabel("step")
    save(figure, out)


def read_grid(trace: Trace, column: str) -> Floats:
    """Read the values (steps, length) of a column; NaN outside the windows and where there is none."""
    values = np.full((len(trace["steps"]), count_positions(trace)), np.nan)
    for index, step in enumerate(trace["steps"]):
        if step.get(column):
            values[index, slice(*step["window"])] = read_floats(step[column])
    return values


def set_title(axes: Axes, text: str) -> None:
    """Set a title as plain text: no mark-up in a model's words is interpreted."""
    axes.set_title(text, fontsize=10, parse_math=False)


def save(figure: Figure, out: Path) -> None:
    """Write PNG or SVG; the same trace gives the same bytes."""
    kind = Path(out).suffix.lower()
    if kind not in (".png", ".svg"):
        raise InputError(f"A plot is written as .png or .svg, not {str(out)!r}.", param="out")
    stamp = {"Date": None} if kind == ".svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "starr", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        try:
            figure.savefig(out, dpi=160, metadata=stamp)
        except OSError as error:
            raise WorkError(f"Cannot write {out}: {error.strerror or error}.") from None
