"""One evaluation from start to ``results.json`` and ``report.html``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from starr.evals.run.progress import progress
from starr.evals.run.report import write_report
from starr.evals.run.results import results_of, write_results
from starr.evals.run.runner import Workload, evaluate
from starr.evals.run.runs import EvalSettings, Run
from starr.evals.run.store import Store, merge
from starr.evals.tasks import Task

if TYPE_CHECKING:
    from starr.model.load import Model


RESUME = "the same command with --resume continues"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What to decode, and how it is shown."""

    task: Task
    settings: EvalSettings
    work: Workload
    out: Path
    resume: bool = False
    quiet: bool = False


class Decoder(Protocol):
    """Whatever brings a work's missing samples into a store."""

    def decode(self, work: Workload, store: Store) -> None: ...


@dataclass(frozen=True, slots=True)
class Local:
    """Decodes in this process, with a bar; ``again`` says how to go on after Ctrl-C."""

    model: Model
    task: Task
    settings: EvalSettings
    again: str = RESUME
    quiet: bool = False

    def decode(self, work: Workload, store: Store) -> None:
        with progress(work, store, self.again, quiet=self.quiet) as watch:
            evaluate(self.model, self.task, self.settings, work, store, watch)


def left(work: Workload, store: Store) -> int:
    """How many samples of the work the store lacks."""
    return sum(not store.has(run.name, index) for run in work.runs for index, _ in work.items)


def run_evaluation(model: Model, job: Evaluation) -> dict[str, Any]:
    """Decode what is missing in the job's folder; write results and report, also when interrupted."""
    return carry_out(job, Local(model, job.task, job.settings, quiet=job.quiet))


def carry_out(job: Evaluation, decoder: Decoder) -> dict[str, Any]:
    """The same with any decoder: this process, or many."""
    store = open_store(job.out, job.settings, job.work.runs, resume=job.resume)
    try:
        decoder.decode(job.work, store)
    finally:
        try:
            results = finish(store, job.settings.to_dict(), [run.name for run in job.work.runs])
        finally:
            store.close()
    return results


def open_store(folder: Path, settings: EvalSettings, runs: Sequence[Run], *, resume: bool) -> Store:
    """A folder for these settings; a folder made with others is refused."""
    store = Store(folder)
    before = store.before()
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
    store.close()
    settings = store.settings() or {}
    runs = list(dict.fromkeys([*settings.pop("runs", []), *(name for name, _ in sorted(store.samples))]))
    return finish(store, settings, runs)
