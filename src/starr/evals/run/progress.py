"""What a person sees while an evaluation runs: how much there is, how long it takes, and the figures so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from starr.errors import counted
from starr.evals.run.runner import Watch, Workload
from starr.evals.run.store import Sample, Store

LINES = 10  # of a run without a terminal
LEAST = 0.2  # seconds between two looks at all samples, for the bar


def announce(work: Workload, store: Store) -> str:
    """One line before the first forward: how much there is to do."""
    missing = [len(missing_of(work, store, run.name)) for run in work.runs]
    if not sum(missing):
        return "Nothing left to decode."
    work_left = f"{counted(sum(missing), 'sample')} to decode in {counted(len(missing), 'run')}"
    return f"{work_left}; the first batch of each shows how long it takes."


def missing_of(work: Workload, store: Store, run: str) -> list[int]:
    """Places of the items that a run has not decoded yet."""
    return [index for index, _ in work.items if not store.has(run, index)]


@dataclass(frozen=True, slots=True)
class Crew:
    """Who decodes: how many workers, and what they are doing, in words."""

    workers: int = 1
    states: Callable[[], str] = lambda: ""


ALONE = Crew()


def seconds_left(work: Workload, store: Store, workers: int = 1) -> float | None:
    """What is missing of each run at the pace of its samples; None while a run has none to go by."""
    total = 0.0
    for run in work.runs:
        left, done = len(missing_of(work, store, run.name)), store.of(run.name)
        if left and not done:
            return None
        total += left * sum(sample.elapsed for sample in done) / max(1, len(done))
    return total / workers


def spell(seconds: float) -> str:
    """A duration as a person would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def so_far(store: Store, run: str, states: str = "") -> str:
    """A run's shares, right and (where form is graded, too) both, and its tokens per forward so far."""
    samples = store.of(run)
    forwards = max(sum(s.forwards for s in samples), 1)
    shown = ("right", "both") if any(s.formed is not None for s in samples) else ("right",)
    count = max(len(samples), 1)
    grades = [f"{100 * sum(getattr(s, name) for s in samples) / count:.1f} % {name}" for name in shown]
    pace = f"{sum(s.tokens for s in samples) / forwards:.2f} tokens/forward"
    return " · ".join([f"{run}: {', '.join([*grades, pace])}", *([states] if states else [])])


@contextmanager
def progress(work: Workload, store: Store, again: str, *, quiet: bool = False, crew: Crew = ALONE) -> Iterator[Watch]:
    """A progress bar on a terminal, a few lines elsewhere, nothing when quiet; yields what to call after each sample.

    Ctrl-C is answered with what is kept and how to go on (``again``).
    """
    if quiet:
        yield lambda sample: None
        return
    print(announce(work, store), file=sys.stderr, flush=True)
    try:
        if sys.stderr.isatty():
            with bar(work, store, crew) as watch:
                yield watch
        else:
            yield lines(work, store, crew)
    except KeyboardInterrupt:
        kept = f"{counted(len(store.samples), 'sample')} kept in {store.folder}; {again}"
        said = kept if store.samples else "no sample was finished; the same command begins again"
        print(f"\nInterrupted: {said}.", file=sys.stderr, flush=True)
        raise


@contextmanager
def bar(work: Workload, store: Store, crew: Crew) -> Iterator[Watch]:
    """A progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    total = sum(len(missing_of(work, store, run.name)) for run in work.runs)
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("decoding", total=total)
        last = 0.0

        def watch(sample: Sample) -> None:
            nonlocal last
            shown.advance(task)
            if perf_counter() - last < LEAST:
                return
            left = seconds_left(work, store, crew.workers)
            ahead = "" if left is None else f"about {spell(left)} left; "
            shown.update(task, description=ahead + so_far(store, sample.run, crew.states()))
            last = perf_counter()

        yield watch


def lines(work: Workload, store: Store, crew: Crew) -> Watch:
    """A line when every run has an estimate, and one after every tenth of the work."""
    total, done, told = sum(len(missing_of(work, store, run.name)) for run in work.runs), 0, False

    def watch(sample: Sample) -> None:
        nonlocal done, told
        done += 1
        tenth = done * LINES // total > (done - 1) * LINES // total
        left = seconds_left(work, store, crew.workers) if tenth or not told else None
        if left is None or (told and not tenth):
            return
        told = True
        about = so_far(store, sample.run, crew.states())
        print(f"{done}/{total}, about {spell(left)} left; {about}", file=sys.stderr, flush=True)

    return watch
