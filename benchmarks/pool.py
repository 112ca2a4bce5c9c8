"""Several processes that decode for one store, one core each, on one machine.

The process that owns the stores hands out parts of a work, a run with a few items each, and writes down what comes
back. So stores have one writer, and an interrupted work loses at most the parts that are being decoded.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import starr
from starr.evals.run.progress import Crew, progress
from starr.evals.run.runner import Workload, decode_chunk
from starr.evals.run.runs import Run, settings_for
from starr.evals.run.store import Sample, Store
from starr.evals.tasks import Task, load_task
from starr.research import limit as _limit  # noqa: F401  # a worker knows the oracle's run, too

PART = 3  # batches in a part: rows that finish early are replaced within it


@dataclass(frozen=True)
class Source:
    """The model and the task of a work, by name."""

    model: str
    dtype: str
    task: str


@cache
def loaded(model: str, dtype: str) -> Any:
    """A process loads a model once."""
    return starr.load(model, dtype=dtype)


@cache
def tasked(name: str) -> Task:
    """A process loads a task once."""
    return load_task(name)


def settle(cores: Any) -> None:
    """Begin a worker: on a core of its own, with one thread, deaf to Ctrl-C, which its owner answers."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    core = cores.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)


def decode_part(source: Source, run: Run, places: Sequence[int], rows: int) -> list[Sample]:
    """The samples of one run at some places of a task."""
    model, task = loaded(source.model, source.dtype), tasked(source.task)
    items = [(place, task.items[place]) for place in places]
    return list(decode_chunk(model, task, settings_for(model, task), run, items, rows))


@dataclass(frozen=True)
class Pool:
    """Workers for any source."""

    executor: ProcessPoolExecutor
    workers: int

    def decoder(self, source: Source) -> PoolDecoder:
        """What a bench of this source decodes with."""
        return PoolDecoder(self, source)


@contextmanager
def pool(workers: int) -> Iterator[Pool]:
    """Workers on the cores of this process, by turns; an error or Ctrl-C ends them in the middle of their parts."""
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    context = multiprocessing.get_context("spawn")
    cores = context.SimpleQueue()
    for number in range(workers):
        cores.put(own[number % len(own)])
    executor = ProcessPoolExecutor(workers, context, initializer=settle, initargs=(cores,))
    try:
        yield Pool(executor, workers)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class PoolDecoder:
    """Brings a work's missing samples into a store (``starr.evals.run.evaluate.Decoder``)."""

    pool: Pool
    source: Source

    def decode(self, work: Workload, store: Store) -> None:
        """Hand out parts, a few more than there are workers, and keep what comes back."""
        parts = iter(missing_parts(work, store))
        crew = Crew(self.pool.workers)
        with progress(work, store, "the same command continues", crew=crew) as watch:
            flying = {self.submit(part, work.rows) for part in islice(parts, 2 * self.pool.workers)}
            while flying:
                done, flying = wait(flying, return_when=FIRST_COMPLETED)
                flying |= {self.submit(part, work.rows) for part in islice(parts, len(done))}
                for sample in (sample for future in done for sample in future.result()):
                    store.add(sample)
                    watch(sample)

    def submit(self, part: tuple[Run, list[int]], rows: int) -> Future[list[Sample]]:
        return self.pool.executor.submit(decode_part, self.source, *part, rows)


def missing_parts(work: Workload, store: Store) -> Iterator[tuple[Run, list[int]]]:
    """What a store lacks: some items of every run before the next items, so that what is there compares."""
    size = PART * work.rows
    for start in range(0, len(work.items), size):
        for run in work.runs:
            places = [place for place, _ in work.items[start : start + size] if not store.has(run.name, place)]
            if places:
                yield run, places
