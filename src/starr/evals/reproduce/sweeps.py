"""Ablation, sensitivity, and the accuracy-forwards front of every strategy over its main option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from starr.evals.reproduce import paper
from starr.evals.reproduce.bench import Bench, Measured, against
from starr.evals.reproduce.figures import error_bars, line_with_band, top_of
from starr.evals.reproduce.result import Result
from starr.evals.reproduce.tables import INTERVALS
from starr.evals.stats import aup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS = range(1, 11)
PARTS = {
    "temporal": "starr:spatial=false",
    "spatial": "starr:temporal=false",
    "both (STaRR)": "starr",
}
MAIN_OPTION: dict[str, tuple[str, tuple[Any, ...]]] = {
    "adablock": ("tau", (0.95, 0.8, 0.6)),
    "confidence": ("steps", (None, 64, 32, 16)),
    "credit": ("tau", (0.95, 0.8, 0.6)),
    "daedal": ("tau", (0.95, 0.8, 0.6)),
    "dus": ("base", (2, 3, 4)),
    "eb": ("gamma", (0.01, 0.1, 1.0)),
    "edit": ("tau", (0.95, 0.8, 0.6)),
    "entropy": ("steps", (64, 32, 16)),
    "factor": ("factor", (0.5, 1.0, 2.0)),
    "hierarchy": ("tau", (0.95, 0.8, 0.6)),
    "klass": ("tau", (0.9, 0.6, 0.3)),
    "localleap": ("relaxed", (0.85, 0.75, 0.5)),
    "margin": ("steps", (64, 32, 16)),
    "pc": ("steps", (64, 32, 16)),
    "peaks": ("high", (0.95, 0.8, 0.6)),
    "r2": ("tau", (0.95, 0.8, 0.6)),
    "random": ("steps", (64, 32, 16)),
    "remdm": ("steps", (64, 32, 16)),
    "saber": ("least", (1, 2, 4)),
    "slowfast": ("tau_fast", (0.95, 0.8, 0.6)),
    "starr": ("scale", (1.0, 2.0, 3.0, 4.0)),
    "tacg": ("tau", (0.95, 0.8, 0.6)),
    "threshold": ("tau", (0.95, 0.9, 0.8, 0.6)),
    "wino": ("tau_draft", (0.8, 0.6, 0.4)),
}


def ablation(bench: Bench) -> Result:
    """The temporal part, the spatial part, and both; as a radar like the paper's."""
    runs = [bench.run("confidence"), *(bench.run(text) for text in PARTS.values())]
    measured = bench.measure(runs)
    rows = against(measured[0], measured)
    length = bench.settings.max_tokens
    axes = {
        "accuracy": [m.figures["accuracy"] for m in measured[1:]],
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
    plot = figure.add_subplot(projection="polar")
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    tops = [max(values) or 1.0 for values in axes.values()]
    for number, name in enumerate(names):
        shares = [values[number] / top for values, top in zip(axes.values(), tops, strict=True)]
        plot.plot([*angles, angles[0]], [*shares, shares[0]], marker="o", label=name)
        plot.fill([*angles, angles[0]], [*shares, shares[0]], alpha=0.1)
    labels = [f"{name}\n(1 = {top:.3g})" for name, top in zip(axes, tops, strict=True)]
    plot.set_xticks(angles, labels)
    plot.set_ylim(0, 1.05)
    plot.legend(loc="upper right", bbox_to_anchor=(1.25, 1.1), fontsize=8)


def sensitivity(bench: Bench) -> Result:
    """W_t from 1 to 10 with W_n at its default, and W_n from 1 to 10 with W_t at its default."""
    options = {"W_t": "temporal_window", "W_n": "spatial_window"}
    sweeps = {s: bench.measure([bench.run(f"starr:{o}={w}") for w in WINDOWS]) for s, o in options.items()}
    rows = [{"window": f"{symbol} = {w}", **row} for symbol, found in sweeps.items()
            for w, row in zip(WINDOWS, against(found[2], found), strict=True)]  # fmt: skip

    def draw(figure: Figure) -> None:
        for place, (symbol, found) in enumerate(sweeps.items(), 1):
            axes = figure.add_subplot(1, 2, place)
            line_with_band(axes, list(WINDOWS), found, "accuracy")
            axes.set_xlabel(f"{symbol} ({options[symbol]}, {'steps' if place == 1 else 'positions'})")
            axes.set_ylabel("accuracy (%, 95 % interval)")
            other = axes.twinx()
            other.plot(list(WINDOWS), [m.figures["forwards"] for m in found], "--", color="#c2491d", marker="s")
            other.set_ylabel("forwards per sample (mean, dashed)")
            other.grid(False)

    n = sweeps["W_t"][0].figures["n"]
    return Result(
        "sensitivity", f"Window sizes ({bench.task.name}, n = {n})", rows, draw,
        "Accuracy (solid, band: 95 % interval) and forwards (dashed) over the temporal and the spatial window.",
        notes=[f"The paper: {paper.DOUBTS['sensitivity']}"], size=(11.0, 4.8),
    )  # fmt: skip


def front_runs(names: Sequence[str]) -> dict[str, list[str]]:
    """Text forms of each strategy over its main option; a value of None is the default."""
    forms = {}
    for name in names:
        option, values = MAIN_OPTION[name]
        forms[name] = [name if value is None else f"{name}:{option}={value}" for value in values]
    return forms


def front(bench: Bench, names: Sequence[str] = tuple(MAIN_OPTION)) -> Result:
    """Every strategy over its main option: accuracy against forwards and against positions, and the area (AUP)."""
    sweeps = {name: bench.measure([bench.run(f) for f in forms]) for name, forms in front_runs(names).items()}
    best = max(100 * m.figures["accuracy"] for found in sweeps.values() for m in found)
    areas = {name: aup(points(found), best) for name, found in sweeps.items()}
    ranked = sorted(sweeps, key=lambda name: -areas[name])
    base = sweeps.get("confidence", next(iter(sweeps.values())))[0]
    rows = [{"strategy": name, "AUP": round(areas[name], 1), **row}
            for name in ranked for row in against(base, sweeps[name])]  # fmt: skip
    n = base.figures["n"]
    return Result(
        "front", f"Accuracy against cost, every strategy ({bench.task.name}, n = {n})", rows,
        lambda figure: draw_front(figure, sweeps, ranked),
        f"Each line is one strategy over its main option. {INTERVALS} "
        f"AUP is d3LLM's area under accuracy (%) over tokens per forward, best accuracy {best:.1f} %.",
        notes=["The strategies are ordered by AUP. Speed-ups and differences are against "
               f"{base.run.name}."],
        size=(12.0, 6.0), data={"aup": {name: areas[name] for name in ranked}},
    )  # fmt: skip


def points(found: Sequence[Measured]) -> list[tuple[float, float]]:
    return [(m.figures["tokens_per_forward"], 100 * m.figures["accuracy"]) for m in found]


def draw_front(figure: Figure, sweeps: dict[str, list[Measured]], ranked: Sequence[str]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    marks = "osv^D<>pP*Xhd"
    for number, name in enumerate(ranked):
        found = sweeps[name]
        shares, bars = error_bars(found)
        for axes, measure in ((left, "forwards"), (right, "positions")):
            order = np.argsort([m.figures[measure] for m in found])
            x = [found[i].figures[measure] for i in order]
            y, e = [shares[i] for i in order], [[side[i] for i in order] for side in bars]
            style = {"marker": marks[number % len(marks)], "color": f"C{number % 10}", "markersize": 5}
            axes.errorbar(x, y, yerr=e, label=name, linewidth=1, elinewidth=0.5, alpha=0.85, **style)
    left.set_ylabel("accuracy (%, 95 % interval)")
    left.set_xlabel("forwards per sample (mean, log scale)")
    right.set_xlabel("positions recomputed per sample (mean, log scale)")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_ylim(0, top_of([m for found in sweeps.values() for m in found]))
    right.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
