"""The paper's observations in real traces: temporal and spatial patterns, confidence zones, and one token's story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starr.evals.run.bench import Bench
from starr.research.dynamics import SPATIAL, TEMPORAL, ZONES, Analysis, Cuts, Token, analyse
from starr.research.reproduce.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEANING = {
    "stable": "confidence stays within a band",
    "surge": "confidence rises steeply, once",
    "fluctuation": "confidence turns at least twice",
    "other": "none of the three (slow drift, one dip)",
    "consistent": "near the weighted mean of its neighbours",
    "anchor": "outlier above its neighbours",
    "laggard": "outlier below its neighbours",
    "regular": "low variance, low deviance",
    "stall": "low variance, high deviance",
    "erratic": "high variance, low deviance",
    "both": "high in both, a case the paper leaves out",
}
COLOURS = {"regular": "#8891a3", "stall": "#1c5fb8", "erratic": "#c2491d", "both": "#8a4fb0"}


def patterns(bench: Bench, strategy: str = "starr") -> Result:
    """The paper's temporal and spatial patterns in traces of the bench."""
    return patterns_result(analyse(trace_dicts(bench, strategy)), origin(bench, strategy))


def zones(bench: Bench, strategy: str = "starr") -> Result:
    """The paper's zones in traces of the bench."""
    return zones_result(analyse(trace_dicts(bench, strategy)), origin(bench, strategy))


def trace_dicts(bench: Bench, strategy: str) -> list[dict[str, Any]]:
    """Traces of all items of the bench, as they are stored."""
    return [trace.to_dict() for trace in bench.traces(bench.run(strategy), len(bench.items))]


def origin(bench: Bench, strategy: str) -> str:
    """Where the traces come from, in words."""
    return f"{bench.task.name}, {len(bench.items)} traces of {strategy}"


def share(part: int, whole: int) -> float:
    """A share in percent."""
    return round(100 * part / max(whole, 1), 1)


def patterns_result(found: Analysis, source: str) -> Result:
    """Shares of each pattern over token-steps and over tokens, with an example trajectory of each."""
    rows = []
    for kind, names, counts in (("temporal", TEMPORAL, found.temporal), ("spatial", SPATIAL, found.spatial)):
        total = counts.total()
        for name in names:
            rows.append({
                "kind": kind, "pattern": name, "meaning": MEANING[name], "token-steps": counts[name],
                "share of token-steps %": share(counts[name], total), "tokens showing it": found.showing[name],
                "share of tokens %": share(found.showing[name], len(found.tokens)),
                "mean time (0 first step, 1 last)": round(found.when[name], 2) if name in found.when else None,
            })  # fmt: skip
    cuts = Cuts()
    return Result(
        "patterns", f"Temporal and spatial patterns ({source})", rows, lambda figure: draw_patterns(figure, found),
        f"Over {cuts.span} fresh confidences: stable within {cuts.steady}; fluctuation two turns of {cuts.swing}; "
        f"surge a rise of {cuts.surge}. Outlier: over {cuts.outlier} from the neighbours' weighted mean. "
        f"n = {len(found.tokens)} tokens.", size=(11.0, 5.0),
    )  # fmt: skip


def draw_patterns(figure: Figure, found: Analysis) -> None:
    """One example of each temporal pattern, and the share of every pattern."""
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for name in TEMPORAL[:3]:
        token = example(found.tokens, name)
        if token is not None:
            left.plot(token.steps, token.confidence, marker=".", label=f"{name}: {token.piece.strip()!r}")
    left.set_xlabel("step")
    left.set_ylabel("confidence")
    left.set_ylim(0, 1.02)
    left.legend(fontsize=8, title="example of")
    bars(right, {**found.temporal, **found.spatial}, found)


def bars(axes: Axes, counts: dict[str, int], found: Analysis) -> None:
    """The share of every pattern as bars."""
    names = [*TEMPORAL, *SPATIAL]
    totals = {name: (found.temporal if name in TEMPORAL else found.spatial).total() for name in names}
    axes.barh(names, [share(counts.get(name, 0), totals[name]) for name in names],
              color=["#1c5fb8"] * len(TEMPORAL) + ["#23865a"] * len(SPATIAL))  # fmt: skip
    axes.invert_yaxis()
    axes.set_xlabel("share of token-steps (%)")


def example(tokens: Sequence[Token], name: str) -> Token | None:
    """A token that shows the pattern often, and next to it only stable stretches if there is such a one."""
    pure = [token for token in tokens if name in token.patterns and {*token.patterns} <= {name, "stable"}]
    showing = pure or [token for token in tokens if name in token.patterns]
    return max(showing, key=lambda t: (t.patterns.count(name), len(t.steps)), default=None)


def zones_result(found: Analysis, source: str) -> Result:
    """Every token by its mean temporal variance and mean spatial deviance."""
    rows = [
        {"zone": name, "meaning": MEANING[name], "tokens": found.zones[name],
         "share %": share(found.zones[name], len(found.tokens))}
        for name in ZONES
    ]  # fmt: skip
    variance, deviance = found.limits

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name in ZONES:
            chosen = [t for t, zone in zip(found.tokens, found.zone_of, strict=True) if zone == name]
            places = [t.variance for t in chosen], [t.whole_deviance for t in chosen]
            axes.scatter(*places, s=10, alpha=0.6, color=COLOURS[name], label=f"{name} ({len(chosen)})")
        axes.axvline(variance, linestyle=":", color="black")
        axes.axhline(deviance, linestyle=":", color="black")
        axes.set_xlabel("temporal variance of a token (mean of |Eq. 2| over its steps)")
        axes.set_ylabel("spatial deviance of a token (mean of |Eq. 3| over its steps)")
        axes.legend(fontsize=8)

    return Result(
        "zones", f"Token confidence zones ({source})", rows, draw,
        f"Each point is a token of the text, n = {len(found.tokens)}. Dotted: the {Cuts().high:.0%} "
        f"quantile of each axis ({variance:.3f}, {deviance:.3f}); the paper draws no lines.",
        notes=["The paper says that stall and erratic tokens are over 30 % of a sequence; with quantile cuts the "
               "shares depend on how the two measures correlate, not on the cut alone."],
        data={"limits": {"variance": variance, "deviance": deviance}},
    )  # fmt: skip
