"""Table 1 over several models and tasks, as the paper has it: two formats side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starr.evals.run.bench import Bench, Measured
from starr.research.reproduce import paper
from starr.research.reproduce.figures import BOTH, colours, error_bars, log_axis, share_axis
from starr.research.reproduce.result import Result
from starr.research.reproduce.tables import INTERVALS, against, paper_table1, table1_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = "osv^D"  # one for each of Table 1's methods
Cells = Mapping[tuple[str, str], Sequence[Measured]]


def table1_over(benches: Sequence[Bench]) -> Result:
    """Table 1's methods on every bench, each compared with its own first row."""
    cells = {(b.settings.model, b.task.name): b.measure(table1_runs(b)) for b in benches}
    rows, kinds = [], []
    for bench, ((model, task), found) in zip(benches, cells.items(), strict=True):
        rows += [{"model": model, "task": task, **row} for row in against(bench, found[0], found)]
        kinds += [kind_row(model, task, kind, found) for kind in found[0].figures["kinds"]]
    return Result(
        "table1",
        "Table 1: remasking strategies, over models and tasks",
        rows,
        lambda figure: draw(figure, cells),
        f"Both against forwards; each model and task has its own first row, with which the others are compared. "
        f"{INTERVALS}",
        paper_table1(),
        [f"Doubts about the paper's numbers: {paper.DOUBTS['table1']}"],
        size=(2.9 * len(tasks_of(cells)) + 2.5, 2.8 * len(models_of(cells)) + 1.6),
        more=[("Both (%) by kind of item", kinds)] if kinds else [],
    )


def kind_row(model: str, task: str, kind: str, found: Sequence[Measured]) -> dict[str, Any]:
    """One kind's line: both of each run."""
    shares = {m.run.name: round(100 * m.figures["kinds"][kind]["both"], 1) for m in found if kind in m.figures["kinds"]}
    return {"model": model, "task": task, "kind": kind, "n": found[0].figures["kinds"][kind]["n"], **shares}


def models_of(cells: Cells) -> list[str]:
    """Every model once, in order."""
    return list(dict.fromkeys(model for model, _ in cells))


def tasks_of(cells: Cells) -> list[str]:
    """Every task once, in order."""
    return list(dict.fromkeys(task for _, task in cells))


def draw(figure: Figure, cells: Cells) -> None:
    """One panel for each model and task; a method has one colour and one mark everywhere."""
    models, tasks = models_of(cells), tasks_of(cells)
    grid = figure.subplots(len(models), len(tasks), squeeze=False)
    for axes_row, model in zip(grid, models, strict=True):
        for axes, task in zip(axes_row, tasks, strict=True):
            found = cells.get((model, task), ())
            for one, mark, colour in zip(found, MARKS, colours(len(found)), strict=False):
                shares, bars = error_bars([one])
                axes.errorbar([one.figures["forwards"]], shares, yerr=bars, fmt=mark, color=colour, capsize=2,
                              clip_on=False, label=one.run.strategy)  # fmt: skip
            axes.set_title(f"{task}, {model}", fontsize=9)
            log_axis(axes)
            share_axis(axes, found)
            axes.set_xlabel("forwards (log scale)", fontsize=8)
        axes_row[0].set_ylabel(BOTH, fontsize=8)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
