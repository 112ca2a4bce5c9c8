"""A picture of a fitted rule: what it said against what stood, and what each budget costs in forwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from starr.decode.strategies.calibrated.rule import FittedRule


def save_diagram(rule: FittedRule, path: Path) -> None:
    """Write the picture; the file's ending chooses its format."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    draw(figure, rule.scores)
    figure.savefig(path, dpi=150)


def draw(figure: Figure, scores: dict[str, Any]) -> None:
    """Left: share that stood against P, one dot per bin, as large as its count. Right: sound texts against forwards."""
    said, cost = figure.subplots(1, 2)
    bins, total = scores["reliability"]["bins"], scores["held_out"]
    said.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    sizes = [12 + 400 * row["n"] / total for row in bins]
    said.scatter([row["said"] for row in bins], [row["stood"] for row in bins], s=sizes, color="C0", alpha=0.7)
    said.set(xlabel="P said", ylabel="share that stood", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    said.set_title(f"calibration error {scores['reliability']['error']:.3f}, {total} positions", fontsize=9)
    baseline, *budgets = scores["budgets"]
    cost.plot([row["forwards"] for row in budgets], [100 * row["sound"] for row in budgets], "o-", color="C0")
    for row in budgets:
        cost.annotate(
            row["run"], (row["forwards"], 100 * row["sound"]), (4, -10), textcoords="offset points", fontsize=8
        )
    cost.plot([baseline["forwards"]], [100 * baseline["sound"]], "s", color="0.4", label=baseline["run"])
    cost.set(xlabel="forwards", ylabel="sound texts %")
    cost.set_title("budgets", fontsize=9)
    cost.legend(fontsize=8)
    cost.margins(x=0.12, y=0.12)
