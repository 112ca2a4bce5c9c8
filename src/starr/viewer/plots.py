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
from starr.viewer.frames import COMMIT, MASKED, REVISE, REVOKE, Floats, Ints, Trace, extent, frames, piece
from starr.viewer.frames import curves as series
from starr.viewer.words import ABOVE, BELOW, LOOK, ZERO, visible

MARKS = {COMMIT: ("o", "commit"), REVOKE: ("x", "revoke"), REVISE: ("D", "revise")}
CONFIDENCE, THRESHOLD, REVOKED = LOOK["held"].light, LOOK["revised"].light, LOOK["revoked"].light


def token(trace: dict[str, Any], out: Path, *, position: int | None = None) -> None:
    """One position's confidence and threshold over steps, with what happened to it; by default the busiest position."""
    check_trace(trace, "trace")
    action = grid(trace, "action")
    chosen = int(np.nansum(action > 0, axis=0).argmax()) if position is None else position
    if not 0 <= chosen < action.shape[1]:
        raise InputError(f"position is {chosen}, not from 0 to {action.shape[1] - 1}.", param="position")
    confidence, threshold = grid(trace, "confidence")[:, chosen], grid(trace, "threshold")[:, chosen]
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
    last = int(frames(trace)[-1, chosen])
    written = "" if last == MASKED else f" “{visible(piece(trace, last)).strip()}”"
    title(axes, f"{trace.get('strategy', '')}, position {chosen}{written}")
    axes.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    save(figure, out)


def map(trace: dict[str, Any], out: Path) -> None:
    """Position by step: colour is confidence minus threshold (confidence minus a half where there is no threshold)."""
    check_trace(trace, "trace")
    threshold, action = grid(trace, "threshold"), grid(trace, "action")
    compared = bool(np.isfinite(threshold).any())
    value = grid(trace, "confidence") - (threshold if compared else 0.5)
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
    title(axes, trace.get("strategy", ""))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save(figure, out)


def curves(trace: dict[str, Any], out: Path) -> None:
    """Masks left, commits and revocations, confidence with the threshold band, and positions queried, over steps."""
    check_trace(trace, "trace")
    lines = series(trace, frames(trace))
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    (masks, acts), (sure, cost) = figure.subplots(2, 2)
    step = np.arange(1, len(lines.commits) + 1)
    masks.plot(np.arange(len(lines.masks)), lines.masks, color=CONFIDENCE)
    title(masks, "masks left")
    acts.bar(step, lines.commits, color=CONFIDENCE, label="commits")
    acts.bar(step, -np.array(lines.revocations), color=REVOKED, hatch="//", label="revocations")
    title(acts, "commits and revocations per step")
    acts.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    sure.plot(step, floats(lines.mean), color=CONFIDENCE, label="mean of the masks")
    sure.plot(step, floats(lines.least), color="black", linestyle="--", label="least")
    sure.fill_between(step, floats(lines.low), floats(lines.high), color=THRESHOLD, alpha=0.3, label="thresholds")
    title(sure, "confidence")
    sure.legend(framealpha=0.85, edgecolor="none", fontsize=8)
    cost.bar(step, lines.queried, color="0.5")
    title(cost, "positions queried per step")
    for axes in (masks, acts, sure, cost):
        axes.set_xlabel("step")
    save(figure, out)


def grid(trace: Trace, column: str) -> Floats:
    """(steps, length) values of a column; NaN outside the windows and where there is none."""
    values = np.full((len(trace["steps"]), extent(trace)), np.nan)
    for index, step in enumerate(trace["steps"]):
        if step.get(column):
            values[index, slice(*step["window"])] = floats(step[column])
    return values


def floats(values: list[Any] | Ints) -> Floats:
    """Numbers, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def title(axes: Axes, text: str) -> None:
    """A title that is only text: no mark-up in a model's words is interpreted."""
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
