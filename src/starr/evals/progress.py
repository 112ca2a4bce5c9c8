"""What a person sees while an evaluation runs: an estimate first, then accuracy and tokens per forward so far."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starr.evals.runner import Plan, Watch
from starr.evals.runs import Settings, request_for
from starr.evals.store import Sample, Store

if TYPE_CHECKING:
    from starr.model.load import Model

LINES = 10  # of a run without a terminal


def estimate(model: Model, settings: Settings, plan: Plan, store: Store) -> str:
    """One line: an upper bound on the time, from timed forwards of a full batch."""
    missing = {run: sum(not store.has(run.name, i) for i, _ in plan.items) for run in plan.runs}
    total = sum(missing.values())
    if total == 0:
        return "Nothing left to decode."
    seconds = forward_seconds(model, settings, plan)
    forwards = sum(math.ceil(n / plan.rows) for n in missing.values()) * settings.max_tokens
    return (
        f"{total} samples to decode ({len(plan.runs)} runs), {1000 * seconds:.0f} ms a forward of {plan.rows} rows: "
        f"at most {spell(forwards * seconds)} at one token per forward, less the more a strategy commits at once."
    )


def forward_seconds(model: Model, settings: Settings, plan: Plan) -> float:
    """Median time of a step of a full batch of the plan's own prompts."""
    from starr.engine import Engine

    engine = Engine(model, max_rows=plan.rows)
    for k in range(plan.rows):
        _, item = plan.items[k % len(plan.items)]
        engine.add(request_for(model, item, plan.runs[0], settings))
    times = []
    for _ in range(4):
        start = time.perf_counter()
        engine.step()
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[1]


def spell(seconds: float) -> str:
    """A duration in words a person needs."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def so_far(store: Store, run: str) -> str:
    samples = store.of(run)
    forwards = max(sum(s.forwards for s in samples), 1)
    share = 100 * sum(s.correct for s in samples) / max(len(samples), 1)
    return f"{run}: {share:.1f} % right, {sum(s.tokens for s in samples) / forwards:.2f} tokens/forward"


@contextmanager
def progress(store: Store, total: int, *, quiet: bool = False) -> Iterator[Watch]:
    """A bar on a terminal, a few lines elsewhere, nothing when quiet; yields what to call after each sample."""
    if quiet:
        yield lambda sample: None
    elif sys.stderr.isatty():
        with bar(store, total) as watch:
            yield watch
    else:
        yield lines(store, total)


@contextmanager
def bar(store: Store, total: int) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("decoding", total=total)

        def watch(sample: Sample) -> None:
            shown.update(task, advance=1, description=so_far(store, sample.run))

        yield watch


def lines(store: Store, total: int) -> Watch:
    """A line after every tenth of the work."""
    start, done = time.perf_counter(), 0

    def watch(sample: Sample) -> None:
        nonlocal done
        done += 1
        if done * LINES // total > (done - 1) * LINES // total:
            left = (time.perf_counter() - start) * (total - done) / done
            print(f"{done}/{total}, {spell(left)} left; {so_far(store, sample.run)}", file=sys.stderr, flush=True)

    return watch
