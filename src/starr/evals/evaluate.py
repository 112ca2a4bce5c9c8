"""One evaluation from start to ``results.json`` and ``report.html``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starr.evals.progress import estimate, progress
from starr.evals.report import write_report
from starr.evals.results import results_of, write_results
from starr.evals.runner import Plan, evaluate
from starr.evals.runs import Run, Settings
from starr.evals.store import Store, merge
from starr.evals.tasks import Task

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Job:
    """What to decode, and how it is shown."""

    task: Task
    settings: Settings
    plan: Plan
    out: Path
    resume: bool = False
    quiet: bool = False


def run_job(model: Model, job: Job) -> dict[str, Any]:
    """Decode what is missing in the job's folder; write results and report, also when interrupted."""
    store = open_store(job.out, job.settings, job.plan.runs, resume=job.resume)
    names = [run.name for run in job.plan.runs]
    if not job.quiet:
        print(estimate(model, job.settings, job.plan, store), file=sys.stderr, flush=True)
    left = sum(not store.has(name, index) for name in names for index, _ in job.plan.items)
    try:
        with progress(store, left, quiet=job.quiet) as watch:
            evaluate(model, job.task, job.settings, job.plan, store, watch)
    finally:
        results = finish(store, job.settings.to_dict(), names)
    return results


def open_store(folder: Path, settings: Settings, runs: Sequence[Run], *, resume: bool) -> Store:
    """A folder for these settings; a folder made with others is refused."""
    store = Store(folder)
    before = store.settings()
    if resume and before is not None:
        settings.check_same(before, str(folder))
    earlier = before["runs"] if resume and before is not None else []
    names = list(dict.fromkeys([*earlier, *(run.name for run in runs)]))
    store.open(settings.to_dict() | {"runs": names}, resume=resume)
    return store


def finish(store: Store, settings: dict[str, Any], runs: Sequence[str]) -> dict[str, Any]:
    """Write what the samples so far say."""
    results = results_of(store, settings, runs)
    write_results(store, results)
    write_report(store, results)
    return results


def merge_runs(folders: list[Path], out: Path) -> dict[str, Any]:
    """Join run folders, and write the results of all their samples."""
    store = merge(folders, out)
    settings = store.settings() or {}
    runs = list(dict.fromkeys([*settings.pop("runs", []), *(name for name, _ in sorted(store.samples))]))
    return finish(store, settings, runs)
