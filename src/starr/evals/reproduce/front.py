"""The front: every strategy over its main option, what it keeps right and well formed against the forwards it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from starr.errors import InputError
from starr.evals.reproduce.bench import Bench, Measured, against
from starr.evals.reproduce.figures import BOTH, error_bars
from starr.evals.reproduce.result import Result
from starr.evals.reproduce.tables import INTERVALS
from starr.evals.stats import aup, pbx

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TAU = (0.95, 0.9, 0.8, 0.6)
SHARES = (1, 2, 4, 8)  # tokens per step of strategies with a fixed number of steps
Sweeps = Mapping[str, Sequence[Measured]]

# family → strategy → its main option and values; ``steps`` are the canvas divided by the values
FAMILIES: dict[str, dict[str, tuple[str, tuple[Any, ...]]]] = {
    "a fixed number per step": {
        "confidence": ("steps", SHARES),
        "entropy": ("steps", SHARES),
        "margin": ("steps", SHARES),
        "pc": ("steps", SHARES),
        "random": ("steps", SHARES),
        "origin": ("steps", SHARES),
        "dus": ("base", (2, 3, 4, 8)),
        "freedave": ("drafts", (2, 4, 8, 16)),
    },
    "as many as are sure": {
        "threshold": ("tau", TAU),
        "factor": ("factor", (0.25, 0.5, 1.0, 2.0)),
        "eb": ("gamma", (0.01, 0.03, 0.1, 1.0)),
        "klass": ("tau", (0.9, 0.75, 0.6, 0.3)),
        "credit": ("tau", TAU),
        "tacg": ("tau", TAU),
        "calibrated": ("floor", TAU),
        "learn2pd": ("tau", (0.98, 0.96, 0.9, 0.8)),
    },
    "sure, and near others": {
        "hierarchy": ("tau", TAU),
        "localleap": ("relaxed", (0.85, 0.75, 0.65, 0.5)),
        "peaks": ("high", TAU),
        "r2": ("tau", TAU),
        "slowfast": ("tau_fast", TAU),
        "adablock": ("tau", TAU),
        "daedal": ("tau", TAU),
    },
    "that take back": {
        "starr": ("scale", (1.0, 2.0, 3.0, 4.0)),
        "wino": ("tau_draft", (0.8, 0.7, 0.6, 0.4)),
        "edit": ("tau", TAU),
        "saber": ("least", (1, 2, 3, 4)),
        "remdm": ("steps", SHARES),
        "remdm_llada": ("loops", (4, 8, 16, 32)),
    },
}
MAIN_OPTION = {name: option for family in FAMILIES.values() for name, option in family.items()}


def front_runs(names: Sequence[str], canvas: int) -> dict[str, list[str]]:
    """Text forms of each strategy over its main option."""
    forms = {}
    for name in names:
        option, values = MAIN_OPTION[name]
        chosen = [max(1, canvas // value) for value in values] if option == "steps" else values
        forms[name] = [f"{name}:{option}={value}" for value in chosen]
    return forms


def front(bench: Bench, names: Sequence[str] = tuple(MAIN_OPTION)) -> Result:
    """Every strategy over its main option: both against forwards, the area below (AUP) and PBx."""
    usable, left_out = split_usable(bench, names)
    forms = front_runs(usable, bench.settings.max_tokens)
    sweeps = {name: bench.measure([bench.run(form) for form in forms[name]]) for name in usable}
    best = max(100 * m.figures["both"] for found in sweeps.values() for m in found)
    areas = {name: aup(points(found), best) for name, found in sweeps.items()}
    ranked = sorted(sweeps, key=lambda name: -areas[name])
    base = sweeps.get("confidence", next(iter(sweeps.values())))[0]
    rows = [{"strategy": name, "AUP": round(areas[name], 1), **reached(sweeps[name]), **row}
            for name in ranked for row in against(bench, base, sweeps[name])]  # fmt: skip
    return Result(
        "front", f"Right and well formed against cost ({bench.task.name}, n = {base.figures['n']})", rows,
        lambda figure: draw(figure, sweeps),
        f"Each line is one strategy over its main option; grey: threshold; black rings: no other point has more in "
        f"fewer forwards. {INTERVALS} AUP is d3LLM's area under both (%) over tokens per forward, best {best:.1f} %; "
        "PBx is ParallelBench's largest number of tokens per forward with at least x % both, on lines between points.",
        notes=[f"The strategies are ordered by AUP. Speed-ups and differences are against {base.run.name}.", *left_out],
        size=(12.0, 9.0), data={"aup": {name: areas[name] for name in ranked}, "pareto": pareto(sweeps)},
    )  # fmt: skip


def split_usable(bench: Bench, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Strategies that this model can use, and a note for each of the others."""
    from starr.decode.strategies import strategy

    usable, notes = [], []
    for name in names:
        try:
            strategy(name).bind(bench.model)
            usable.append(name)
        except InputError as error:
            notes.append(f"{name} is left out: {error}")
    return usable, notes


def reached(found: Sequence[Measured]) -> dict[str, float | None]:
    """PB90, PB80 and PB60: the largest tokens per forward with so many percent both."""
    known = {f"PB{x}": pbx(points(found), x) for x in (90, 80, 60)}
    return {name: None if speed is None else round(speed, 2) for name, speed in known.items()}


def points(found: Sequence[Measured]) -> list[tuple[float, float]]:
    """Tokens per forward and percent both of each run."""
    return [(m.figures["tokens_per_forward"], 100 * m.figures["both"]) for m in found]


def pareto(sweeps: Sweeps) -> list[str]:
    """Names of the runs that no other run beats: fewer forwards and as many both, or more both in as few."""
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
    """One panel per family over the grey curve of ``threshold``; no colour stands for two strategies."""
    import matplotlib as mpl

    colours = iter([*mpl.colormaps["tab10"].colors, *mpl.colormaps["Dark2"].colors, *mpl.colormaps["Set1"].colors])  # type: ignore[attr-defined]
    best = set(pareto(sweeps))
    every = [m for found in sweeps.values() for m in found]
    low, high = min(map(share, every)), max(map(share, every))
    families = {family: [name for name in members if name in sweeps] for family, members in FAMILIES.items()}
    shown = {family: members for family, members in families.items() if members}
    grid = figure.subplots(-(-len(shown) // 2), 2, sharex=True, sharey=True, squeeze=False).flat
    for axes, (family, members) in zip(grid, shown.items(), strict=False):
        if "threshold" in sweeps and "threshold" not in members:
            line(axes, sweeps["threshold"], best, color="0.7", marker=".", label="threshold")
        for mark, name in zip("osv^Dp*", members, strict=False):
            line(axes, sweeps[name], best, color=next(colours), marker=mark, label=name)
        axes.set_title(family, fontsize=10)
        axes.set_xscale("log")
        axes.set_ylim(low - 0.06 * (high - low) - 2, high + 0.06 * (high - low) + 2)
        axes.set_xlabel("forwards per sample (mean, log scale)")
        axes.set_ylabel(BOTH, fontsize=8)
        axes.legend(fontsize=7, loc="lower right")


def line(axes: Axes, found: Sequence[Measured], best: set[str], **style: Any) -> None:
    """A strategy's points with intervals, by forwards; those of the Pareto front are ringed and named."""
    order = np.argsort([m.figures["forwards"] for m in found])
    shares, bars = error_bars(found)
    x = [found[i].figures["forwards"] for i in order]
    y, e = [shares[i] for i in order], [[side[i] for i in order] for side in bars]
    axes.errorbar(x, y, yerr=e, linewidth=1, elinewidth=0.5, markersize=5, clip_on=False, **style)
    for i in order:
        name = found[i].run.name
        if name in best:
            at = (found[i].figures["forwards"], shares[i])
            axes.plot(*at, "o", markersize=10, markerfacecolor="none", color="black", clip_on=False)
            axes.annotate(name, at, xytext=(6, -10), textcoords="offset points", fontsize=6)
