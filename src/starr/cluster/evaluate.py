"""An evaluation over many workers: same work, same store, same results as in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.cluster.fleet import Fleet, Unit, actors
from starr.cluster.start import Size, connected
from starr.cluster.worker import EvalWorker, Failure, ModelSource
from starr.errors import WorkError, counted
from starr.evals.run.evaluate import RESUME
from starr.evals.run.progress import Crew, progress
from starr.evals.run.runner import Workload, chunks, known
from starr.evals.run.store import Store
from starr.evals.tasks import Item

if TYPE_CHECKING:
    from starr.evals.run.runs import EvalSettings
    from starr.evals.tasks import Task
    from starr.model.spec import Habits

CHUNK_ROWS = 2  # batches in a chunk: rows that finish early are replaced within it


@dataclass(frozen=True, slots=True)
class Remote:
    """Decodes on the workers of a fleet."""

    fleet: Fleet
    rows: int
    again: str = RESUME
    quiet: bool = False
    failed: list[str] = field(default_factory=list)  # items that cannot be decoded

    def settings(self) -> EvalSettings:
        """As the first worker's model has them: the driver loads no model."""
        found: EvalSettings = self.fleet.call("settings")
        return found

    def habits(self) -> Habits:
        """How the model's authors decode it."""
        found: Habits = self.fleet.call("habits")
        return found

    def decode(self, work: Workload, store: Store) -> None:
        """Bring what is missing into the store; raise at the end if some items could not be decoded."""
        parts = chunks(work) if work.until_sure is not None else [(0, len(work.items))]
        crew = Crew(len(self.fleet.members), self.fleet.states)
        with progress(work, store, self.again, quiet=self.quiet, crew=crew) as watch:
            for start, end in parts:
                units = self.units(work.items[start:end], work, store)
                for (run, place), result in self.fleet.work(units, CHUNK_ROWS * self.rows):
                    if isinstance(result, Failure):
                        self.fail(f"{dict(work.items)[place].id} ({run.name}): {result.message}")  # type: ignore[attr-defined]
                    elif not store.has(result.run, result.index):
                        store.add(result)
                        watch(result)
                if not self.failed and known(store, work, end):
                    break
        if self.failed:
            first = "; ".join(self.failed[:3])
            raise WorkError(f"{counted(len(self.failed), 'sample')} failed: {first}", hint="--resume tries again.")

    def units(self, items: Sequence[tuple[int, Item]], work: Workload, store: Store) -> list[Unit]:
        """What the store lacks: the longest prompts first, a chunk of them for every run in turn."""
        order = sorted(items, key=lambda pair: len(pair[1].chat) + len(pair[1].prompt), reverse=True)
        size = CHUNK_ROWS * self.rows
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        wanted = [(run, place) for part in parts for run in work.runs for place, _ in part]
        return [(run, place) for run, place in wanted if not store.has(run.name, place)]

    def fail(self, line: str) -> None:
        self.failed.append(line)
        say(f"failed: {line}")


@contextmanager
def remote(
    size: Size, loading: ModelSource, task: Task, rows: int, shared: dict[str, Any], *, quiet: bool = False
) -> Iterator[Remote]:
    """Workers with the model and the task, gone at the end; ``shared`` are the keywords of ``settings_for``."""
    with connected(size) as (ray, known_size):
        start = actors(ray, known_size, EvalWorker, loading, (task, rows, shared))
        fleet = Fleet(ray, known_size, start, say)
        try:
            yield Remote(fleet, rows, quiet=quiet)
        finally:
            fleet.end()


def say(line: str) -> None:
    """A line for people."""
    print(line, file=sys.stderr, flush=True)
