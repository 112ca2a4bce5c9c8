"""The front: every strategy over its main option, share right and well formed against the forwards it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from starr.decode.strategies import strategies, strategy
from starr.decode.strategies.sweep import FAMILIES, Sweep
from starr.errors import InputError
from starr.evals.run.bench import Bench, Measured
from starr.evals.run.runs import Run
from starr.evals.stats import aup, pbx
from starr.research.reproduce.figures import BOTH, colours, error_bars, log_axis, share_axis
from starr.research.reproduce.result import Result
from starr.research.reproduce.tables import INTERVALS, against

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Sweeps = Mapping[str, Sequence[Measured]]
SIDES = ((-8, 6), (8, 6), (-8, -11), (8, -11), (0, 10), (0, -15))  # of a ring, for its number
AUP_NOTE = (
    "AUP counts the most careful setting of a strategy in full, however wrong it is: one that is fast and wrong at "
    "every setting may stand above one that is right. Read it beside PBx."
)


def sweeps_by_name() -> dict[str, Sweep]:
    """How each strategy is swept, ordered by family, then by name."""
    known = {entry.name: sweep for entry in strategies() if (sweep := entry.kind.sweep) is not None}
    families = [*FAMILIES, *(sweep.family for sweep in known.values())]
    return dict(sorted(known.items(), key=lambda pair: families.index(pair[1].family)))


def every_run(bench: Bench, usable: Sequence[str]) -> dict[str, list[Run]]:
    """The runs of each strategy."""
    known, canvas = sweeps_by_name(), bench.settings.max_tokens
    return {name: [bench.run(form) for form in known[name].forms(name, canvas)] for name in usable}


def wanted_runs(bench: Bench) -> list[Run]:
    """The runs of every strategy that the model can use."""
    runs = every_run(bench, split_usable(bench, tuple(sweeps_by_name()))[0])
    return [run for some in runs.values() for run in some]


def front(bench: Bench, names: Sequence[str] | None = None) -> Result:
    """Every strategy over its main option: *both* against forwards, the area under it (AUP) and PBx."""
    usable, left_out = split_usable(bench, tuple(sweeps_by_name()) if names is None else names)
    runs = every_run(bench, usable)
    found = {m.run: m for m in bench.measure([run for some in runs.values() for run in some])}
    sweeps = {name: [found[run] for run in runs[name]] for name in usable}
    best = max(100 * m.figures["both"] for found in sweeps.values() for m in found)
    areas = {name: aup(points(found), best) for name, found in sweeps.items()}
    ranked = sorted(sweeps, key=lambda name: -areas[name])
    base = sweeps.get("confidence", next(iter(sweeps.values())))[0]
    rows = [{"strategy": name, "AUP": round(areas[name], 1), **measure_pbx(sweeps[name]), **row}
            for name in ranked for row in against(bench, base, sweeps[name])]  # fmt: skip
    return Result(
        "front", f"Right and well formed against cost ({bench.task.name}, n = {base.figures['n']})", rows,
        lambda figure: draw(figure, sweeps),
        f"Each line is one strategy over its main option; grey: threshold; every family has axes of its own; ringed "
        f"and named: the Pareto front, where no other point has more both in as few forwards. {INTERVALS} AUP is "
        f"d3LLM's area under both (%) over tokens per forward, best {best:.1f} %; PBx is ParallelBench's largest "
        "number of tokens per forward with at least x % both, on lines between points.",
        notes=[
            f"The strategies are ordered by AUP. Speed-ups and differences are against {base.run.name}.",
            AUP_NOTE, *few_items(sweeps), *left_out,
        ],
        size=(13.0, 15.0), data={"aup": {name: areas[name] for name in ranked}, "pareto": pareto(sweeps)},
    )  # fmt: skip


def few_items(sweeps: Sweeps) -> list[str]:
    """A note on the points that have fewer items than others, if there are any."""
    counts = {m.run.name: int(m.figures["n"]) for found in sweeps.values() for m in found}
    few = [f"{name} ({count})" for name, count in counts.items() if count < max(counts.values())]
    return [f"Slow points have fewer items, the first ones, and are less sure: {', '.join(few)}."] if few else []


def split_usable(bench: Bench, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Strategies that this model can use, and a note for each of the others."""
    usable, notes = [], []
    for name in names:
        try:
            strategy(name).bind(bench.model)
            usable.append(name)
        except InputError as error:
            notes.append(f"{name} is left out: {error}")
    return usable, notes


def measure_pbx(found: Sequence[Measured]) -> dict[str, float | None]:
    """PB90, PB80 and PB60: the most tokens per forward with *both* at 90, 80 and 60 percent."""
    known = {f"PB{x}": pbx(points(found), x) for x in (90, 80, 60)}
    return {name: None if speed is None else round(speed, 2) for name, speed in known.items()}


def points(found: Sequence[Measured]) -> list[tuple[float, float]]:
    """Tokens per forward and percent both of each run."""
    return [(m.figures["tokens_per_forward"], 100 * m.figures["both"]) for m in found]


def pareto(sweeps: Sweeps) -> list[str]:
    """Names of the runs that no other run beats: in forwards with as high a *both*, or in *both* with as few."""
    runs = sorted((m for found in sweeps.values() for m in found), key=lambda m: (m.figures["forwards"], -share(m)))
    kept, best = [], -1.0
    for run in runs:
        if share(run) > best:
            kept.append(run.run.name)
            best = share(run)
    return kept


def share(measured: Measured) -> float:
    """Both, in percent."""
    return 100 * float(measured.figures["both"])


def draw(figure: Figure, sweeps: Sweeps) -> None:
    """A row of panels per family over the grey curve of ``threshold``: both against forwards and against positions."""
    shown: dict[str, list[str]] = {}
    for name, sweep in sweeps_by_name().items():
        if name in sweeps:
            shown.setdefault(sweep.family, []).append(name)
    widest = max(map(len, shown.values()))
    grid = figure.subplots(len(shown), 2, squeeze=False)
    for number, (row, (family, members)) in enumerate(zip(grid, shown.items(), strict=True)):
        for axes, cost in zip(row, ("forwards", "positions"), strict=True):
            if "threshold" in sweeps and "threshold" not in members:
                line(axes, sweeps["threshold"], cost, color="0.65", marker=".", label="threshold")
            hues = colours(widest, number / len(shown))
            for mark, colour, name in zip("osv^DpX*", hues, members, strict=False):
                line(axes, sweeps[name], cost, color=colour, marker=mark, label=name)
            axes.set_title(f"{family}: {cost}", fontsize=10)
            log_axis(axes)
            share_axis(axes, [m for name in {*members, "threshold"} & sweeps.keys() for m in sweeps[name]])
            axes.set_xlabel(f"{cost} per sample (mean, log scale)", fontsize=8)
        row[0].set_ylabel(BOTH, fontsize=8)
        row[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ring(row[0], [m for name in members for m in sweeps[name]], pareto(sweeps))


def line(axes: Axes, found: Sequence[Measured], cost: str, **style: Any) -> None:
    """A strategy's points over their cost, with intervals both ways."""
    order = np.argsort([m.figures[cost] for m in found])
    some = [found[i] for i in order]
    shares, bars = error_bars(some)
    at = [m.figures[cost] for m in some]
    ends = [m.figures[f"{cost}_interval"] for m in some]
    sides = [[max(0.0, x - low) for x, (low, _) in zip(at, ends, strict=True)],
             [max(0.0, high - x) for x, (_, high) in zip(at, ends, strict=True)]]  # fmt: skip
    axes.errorbar(at, shares, yerr=bars, xerr=sides, linewidth=1, elinewidth=0.5, markersize=5, clip_on=False, **style)


def offsets(points: Sequence[tuple[float, ...]]) -> list[tuple[int, int]]:
    """Where the number of each point stands, in typographic points from it: the first side that hides no other number.

    It is the first side of all where every one is taken.
    """
    taken: list[tuple[float, float]] = []
    chosen = []
    for x, y in points:
        spots = {side: (x + side[0], y + side[1]) for side in SIDES}
        free = (s for s, (a, b) in spots.items() if all(abs(a - c) > 6 or abs(b - d) > 8 for c, d in taken))
        chosen.append(next(free, SIDES[0]))
        taken.append(spots[chosen[-1]])
    return chosen


def ring(axes: Axes, found: Sequence[Measured], best: Sequence[str]) -> None:
    """Numbered rings around the points of the Pareto front, and their names in the corner that curves leave free."""
    kept = sorted((m for m in found if m.run.name in best), key=lambda m: float(m.figures["forwards"]))
    points = [(float(m.figures["forwards"]), share(m)) for m in kept]
    beside = offsets([tuple(axes.transData.transform(at) * 72 / axes.figure.dpi) for at in points])
    for number, (at, offset) in enumerate(zip(points, beside, strict=True), 1):
        axes.plot(*at, "o", markersize=10, markerfacecolor="none", color="black", clip_on=False)
        axes.annotate(str(number), at, xytext=offset, textcoords="offset points", fontsize=7, ha="center", zorder=5)
    names = "\n".join(f"{number} {m.run.name}" for number, m in enumerate(kept, 1))
    axes.text(
        0.98, 0.03, names, transform=axes.transAxes, ha="right", va="bottom", fontsize=7,
        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.8", "alpha": 0.8} if kept else None,
    )  # fmt: skip
