"""Ablation and sensitivity of STaRR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from starr.evals.run.bench import Bench
from starr.evals.run.runs import Run
from starr.research.reproduce import paper
from starr.research.reproduce.figures import BOTH, line_with_band
from starr.research.reproduce.result import Result
from starr.research.reproduce.tables import against

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS = range(1, 11)
WINDOW_OPTIONS = {"W_t": "temporal_window", "W_n": "spatial_window"}
PARTS = {
    "temporal": "starr:spatial=false",
    "spatial": "starr:temporal=false",
    "both (STaRR)": "starr",
}


def ablation_runs(bench: Bench) -> list[Run]:
    """One token per step, and every part of STaRR."""
    return [bench.run("confidence"), *(bench.run(text) for text in PARTS.values())]


def ablation(bench: Bench) -> Result:
    """The temporal part, the spatial part, and both; as a radar like the paper's."""
    measured = bench.measure(ablation_runs(bench))
    rows = against(bench, measured[0], measured)
    length = bench.settings.max_tokens
    axes = {
        "both": [m.figures["both"] for m in measured[1:]],
        "tokens/s": [m.figures["time"]["tokens_per_second"] for m in measured[1:]],
        "forwards saved": [1 - m.figures["forwards"] / length for m in measured[1:]],
    }
    return Result(
        "ablation",
        f"Temporal and spatial thresholds ({bench.task.name}, n = {measured[0].figures['n']})",
        rows,
        lambda figure: radar(figure, axes, list(PARTS)),
        f"Each axis is scaled to its largest value; forwards saved are those of {length} that were not needed. "
        "Responsiveness is on in all three.",
        size=(7.0, 6.5),
    )


def radar(figure: Figure, axes: dict[str, list[float]], names: Sequence[str]) -> None:
    """Every run over several figures, each figure relative to its best."""
    plot = figure.add_subplot(projection="polar")
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    tops = [max(values) or 1.0 for values in axes.values()]
    for number, name in enumerate(names):
        shares = [values[number] / top for values, top in zip(axes.values(), tops, strict=True)]
        plot.plot([*angles, angles[0]], [*shares, shares[0]], marker="o", label=name)
        plot.fill([*angles, angles[0]], [*shares, shares[0]], alpha=0.1)
    labels = [f"{name}\n(1 = {top:.3g})" for name, top in zip(axes, tops, strict=True)]
    plot.set_xticks(angles, labels)
    plot.tick_params(axis="x", pad=18)
    plot.set_ylim(0, 1.05)
    plot.legend(loc="upper right", bbox_to_anchor=(1.25, 1.1), fontsize=8)


def window_runs(bench: Bench, option: str) -> list[Run]:
    """STaRR over the sizes of one of its windows."""
    return [bench.run(f"starr:{option}={size}") for size in WINDOWS]


def sensitivity_runs(bench: Bench) -> list[Run]:
    """STaRR over the sizes of both windows."""
    return [run for option in WINDOW_OPTIONS.values() for run in window_runs(bench, option)]


def sensitivity(bench: Bench) -> Result:
    """W_t from 1 to 10 with W_n at its default, and W_n from 1 to 10 with W_t at its default."""
    sweeps = {symbol: bench.measure(window_runs(bench, option)) for symbol, option in WINDOW_OPTIONS.items()}
    rows = [{"window": f"{symbol} = {w}", **row} for symbol, found in sweeps.items()
            for w, row in zip(WINDOWS, against(bench, found[2], found), strict=True)]  # fmt: skip

    def draw(figure: Figure) -> None:
        for place, (symbol, found) in enumerate(sweeps.items(), 1):
            axes = figure.add_subplot(1, 2, place)
            line_with_band(axes, list(WINDOWS), found, "both")
            axes.set_xlabel(f"{symbol} ({WINDOW_OPTIONS[symbol]}, {'steps' if place == 1 else 'positions'})")
            axes.set_ylabel(BOTH)
            other = axes.twinx()
            other.plot(list(WINDOWS), [m.figures["forwards"] for m in found], "--", color="#c2491d", marker="s")
            other.set_ylabel("forwards per sample (mean, dashed)")
            other.grid(False)

    n = sweeps["W_t"][0].figures["n"]
    return Result(
        "sensitivity", f"Window sizes ({bench.task.name}, n = {n})", rows, draw,
        "Both (solid, band: 95 % interval) and forwards (dashed) over the temporal and the spatial window.",
        notes=[f"The paper: {paper.DOUBTS['sensitivity']}"], size=(11.0, 4.8),
    )  # fmt: skip
