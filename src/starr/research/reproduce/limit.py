"""How far strategies are from the limit: the forwards of an oracle that knows the text (``starr.research.limit``)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from starr.evals.run.bench import Bench
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.evals.stats import bootstrap
from starr.research.limit import CONSERVATIVE, oracle_samples
from starr.research.reproduce.figures import log_axis
from starr.research.reproduce.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = ("confidence", CONSERVATIVE, "threshold:tau=0.9", "factor", "starr")


def limit_runs(bench: Bench) -> list[Run]:
    """What is compared with the limit."""
    return [bench.run(text) for text in RUNS]


def limit(bench: Bench) -> Result:
    """Forwards of the oracle and of five strategies as multiples of it, over all items and per kind."""
    measured = bench.measure(limit_runs(bench))
    oracle = oracle_samples(bench)
    kinds = ["all", *dict.fromkeys(sample.kind for sample in oracle if sample.kind)]
    rows = [line(kind, oracle, {m.run.name: m.samples for m in measured}) for kind in kinds]
    return Result(
        "limit",
        f"The limit ({bench.task.name}, n = {len(oracle)})",
        rows,
        lambda figure: draw(figure, rows, [m.run.name for m in measured]),
        f"Forwards as multiples of the limit: of an oracle that commits every proposal equal to the final token of "
        f"{CONSERVATIVE} with the same model. Interval: bootstrap over items.",
        notes=["A rule that only commits proposals cannot write that text in fewer forwards on the oracle's way."],
        size=(9.0, 1.5 + 0.6 * len(rows)),
    )


def line(kind: str, oracle: Sequence[Sample], runs: dict[str, Sequence[Sample]]) -> dict[str, Any]:
    """One kind's line: the limit, and each run's forwards as a multiple of it."""

    def of_kind(samples: Sequence[Sample]) -> list[int]:
        return [sample.forwards for sample in samples if kind in ("all", sample.kind)]

    own = of_kind(oracle)
    low, high = bootstrap(own)
    multiples = {name: round(mean(of_kind(samples)) / mean(own), 2) for name, samples in runs.items()}
    return {"kind": kind, "n": len(own), "limit (forwards)": round(mean(own), 2),
            "95 % interval": f"{low:.2f} to {high:.2f}", **multiples}  # fmt: skip


def draw(figure: Figure, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Every run's multiple of the limit, one line for each kind."""
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    for number, name in enumerate(names):
        beside = places + 0.14 * (number - (len(names) - 1) / 2)  # equal values stay visible
        axes.plot([row[name] for row in rows], beside, "osv^D"[number], color=f"C{number}", label=name, clip_on=False)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(places, [f"{row['kind']} (limit {row['limit (forwards)']})" for row in rows])
    log_axis(axes)
    axes.set_xlabel("forwards / limit (log scale)")
    axes.invert_yaxis()
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
