"""One function per result: name → function of a Bench.

The paper's tables and figures, and ``front``, ``limit``, ``calibrated`` and ``parallel``, which it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from starr.errors import InputError, did_you_mean
from starr.evals.run.bench import Bench
from starr.evals.run.results import ANSWER_ONLY, machine, place_of
from starr.evals.run.runs import Run
from starr.research.reproduce.calibrated import calibrated, calibrated_runs
from starr.research.reproduce.case_study import case_study
from starr.research.reproduce.front import front, wanted_runs
from starr.research.reproduce.limit import limit, limit_runs
from starr.research.reproduce.parallel import parallel, parallel_runs
from starr.research.reproduce.patterns import patterns, zones
from starr.research.reproduce.result import Context, Result, write_index, write_result
from starr.research.reproduce.sweeps import ablation, ablation_runs, sensitivity, sensitivity_runs
from starr.research.reproduce.tables import (
    table1,
    table1_runs,
    table2,
    table2_runs,
    table3,
    table3_runs,
    table5,
    table5_runs,
)

# Each result: how it is made, and what it decodes; None: traces, which are not kept.
PAGES: dict[str, tuple[Callable[[Bench], Result], Callable[[Bench], list[Run]] | None]] = {
    "table1": (table1, table1_runs),
    "table2": (table2, table2_runs),
    "table3": (table3, table3_runs),
    "table5": (table5, table5_runs),
    "ablation": (ablation, ablation_runs),
    "sensitivity": (sensitivity, sensitivity_runs),
    "case-study": (case_study, None),
    "patterns": (patterns, None),
    "zones": (zones, None),
    "front": (front, wanted_runs),
    "limit": (limit, limit_runs),
    "calibrated": (calibrated, calibrated_runs),
    "parallel": (parallel, parallel_runs),
}
RESULTS = {name: make for name, (make, _) in PAGES.items()}
RUNS = {name: runs for name, (_, runs) in PAGES.items() if runs is not None}


def check_name(name: str) -> list[str]:
    """The results a name stands for; ``all`` is every one."""
    if name == "all":
        return list(RESULTS)
    if name not in RESULTS:
        raise InputError(f"Unknown result {name!r}.", hint=did_you_mean(name, [*RESULTS, "all"]), param="result")
    return [name]


def reproduce(name: str, bench: Bench, command: str, folder: Path) -> tuple[Result, list[Path]]:
    """Make one result and write its three files; a note says where only the answer is graded."""
    result = RESULTS[name](bench)
    if bench.task.formed is None:
        result = replace(result, notes=[*result.notes, f"{ANSWER_ONLY}."])
    paths = write_result(result, context(command, bench.checkpoint, bench.task.name), folder)
    write_index(folder)
    return result, paths


def context(command: str, model: str, task: str) -> Context:
    """Command, model, machine and date, as printed under a result."""
    found = machine()
    where = f"{place_of(found)}, torch {found['versions']['torch']}"
    return Context(command, model, task, where, datetime.now(UTC).date().isoformat())
