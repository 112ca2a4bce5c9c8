"""Evaluations and prompts over many workers, with the same results as in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.cluster.fleet import Fleet, Unit, say, start_fleet
from starr.cluster.start import Size
from starr.cluster.worker import EvalWorker, Failure, ModelSource, PromptWorker
from starr.errors import WorkError, counted
from starr.evals.run.evaluate import RESUME
from starr.evals.run.progress import Crew, progress
from starr.evals.run.runner import Workload, chunks, known
from starr.evals.run.store import Store
from starr.evals.tasks import Item
from starr.options import Options

if TYPE_CHECKING:
    from starr.evals.run.runs import EvalSettings
    from starr.evals.tasks import Task
    from starr.model.spec import Habits

CHUNK_ROWS = 2  # batches in a chunk: rows that finish early are replaced within it
WINDOW = 512  # prompts that are sorted by length together


@dataclass(frozen=True, slots=True)
class Remote:
    """Decodes on the workers of a fleet."""

    fleet: Fleet
    rows: int
    again: str = RESUME
    quiet: bool = False
    failed: list[str] = field(default_factory=list)  # items that cannot be decoded

    def settings(self) -> EvalSettings:
        """Ask the first worker for the settings: the driver loads no model."""
        settings: EvalSettings = self.fleet.call("settings")
        return settings

    def habits(self) -> Habits:
        """Ask the first worker how the model's authors decode it."""
        habits: Habits = self.fleet.call("habits")
        return habits

    def decode(self, work: Workload, store: Store) -> None:
        """Decode what the store lacks; raise at the end if some items could not be decoded."""
        parts = chunks(work) if work.until_sure is not None else [(0, len(work.items))]
        crew = Crew(len(self.fleet.members), self.fleet.describe)
        with progress(work, store, self.again, quiet=self.quiet, crew=crew) as watch:
            for start, end in parts:
                units = self.units(work.items[start:end], work, store)
                for (run, index), result in self.fleet.work(units, CHUNK_ROWS * self.rows):
                    if isinstance(result, Failure):
                        self.fail(f"{dict(work.items)[index].id} ({run.name}): {result.message}")  # type: ignore[attr-defined]
                    elif not store.has(result.run, result.index):
                        store.add(result)
                        watch(result)
                if not self.failed and known(store, work, end):
                    break
        if self.failed:
            first = "; ".join(self.failed[:3])
            raise WorkError(f"{counted(len(self.failed), 'sample')} failed: {first}", hint="--resume tries again.")

    def units(self, items: Sequence[tuple[int, Item]], work: Workload, store: Store) -> list[Unit]:
        """List what the store lacks: the longest prompts first, a chunk of them for every run in turn."""
        order = sorted(items, key=lambda pair: len(pair[1].chat) + len(pair[1].prompt), reverse=True)
        size = CHUNK_ROWS * self.rows
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        every = [(run, index) for part in parts for run in work.runs for index, _ in part]
        return [(run, index) for run, index in every if not store.has(run.name, index)]

    def fail(self, line: str) -> None:
        """Note an item that cannot be decoded."""
        self.failed.append(line)
        say(f"failed: {line}")


@contextmanager
def start_remote(
    size: Size, loading: ModelSource, task: Task, rows: int, shared: dict[str, Any], *, quiet: bool = False
) -> Iterator[Remote]:
    """Start workers with the model and the task; ``shared`` are the keywords of ``settings_for``."""
    with start_fleet(size, EvalWorker, loading, (task, rows, shared)) as fleet:
        yield Remote(fleet, rows, quiet=quiet)


def generate_on(size: Size, loading: ModelSource, prompts: Sequence[Any], rows: int, options: Options) -> Iterator[Any]:
    """Yield the result of every prompt as a dictionary, or a Failure, in the order of the prompts.

    Of every WINDOW prompts the longest go first, so a result may wait for those before it; it is kept meanwhile.
    """
    order = sorted(range(len(prompts)), key=lambda index: (index // WINDOW, -len(str(prompts[index]))))
    waiting: dict[int, Any] = {}
    following = 0
    with start_fleet(size, PromptWorker, loading, (list(prompts), rows, options)) as fleet:
        for (_, index), result in fleet.work([(None, index) for index in order], CHUNK_ROWS * rows):
            waiting[index] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1
