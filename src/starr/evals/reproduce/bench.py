"""What all reproductions share: a model, a task, and one store of samples, so that no run is decoded twice."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.evals.progress import estimate, progress
from starr.evals.results import compare, summarise
from starr.evals.runner import Plan, decode, evaluate
from starr.evals.runs import Run, Settings, choose, make_runs, request_for
from starr.evals.store import Sample, Store
from starr.evals.tasks import Item, Task

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.trace import Trace


@dataclass(frozen=True, slots=True)
class Measured:
    """One run over the bench's items."""

    run: Run
    samples: Sequence[Sample]
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """``limit`` items of a task, decoded with a model; samples are kept in ``store`` between results."""

    model: Model
    task: Task
    settings: Settings
    store: Store
    limit: int | None = None
    rows: int = 8
    block_length: int = 32
    quiet: bool = False
    traced: dict[tuple[Run, int], list[Trace]] = field(default_factory=dict)

    @property
    def items(self) -> list[tuple[int, Item]]:
        return choose(self.task, self.limit)

    def run(self, strategy: str, cache: str = "none", block_length: int | None = None, ice: str | None = None) -> Run:
        return make_runs([strategy], [cache], block_length, ice)[0]

    def measure(self, runs: Sequence[Run]) -> list[Measured]:
        """Decode what is missing of the bench's items; figures of each run, in order."""
        return self.measure_at(runs, range(len(self.items)))

    def measure_at(self, runs: Sequence[Run], wanted: Sequence[int]) -> list[Measured]:
        """The same for some of the items, by their places."""
        chosen = self.items
        plan = Plan([chosen[place] for place in wanted], runs, self.rows)
        left = sum(not self.store.has(run.name, i) for run in runs for i, _ in plan.items)
        if left:
            if not self.quiet:
                print(estimate(self.model, self.settings, plan, self.store), file=sys.stderr, flush=True)
            with progress(self.store, left, quiet=self.quiet) as watch:
                evaluate(self.model, self.task, self.settings, plan, self.store, watch)
        places = {index for index, _ in plan.items}
        found = [[s for s in self.store.of(run.name) if s.index in places] for run in runs]
        return [Measured(run, samples, summarise(samples)) for run, samples in zip(runs, found, strict=True)]

    def traces(self, run: Run, count: int) -> list[Trace]:
        """Full traces of the first ``count`` items, in order; decoded once for all results."""
        if (run, count) not in self.traced:
            self.traced[run, count] = self.decode_traces(run, count)
        return self.traced[run, count]

    def decode_traces(self, run: Run, count: int) -> list[Trace]:
        requests = [request_for(self.model, item, run, self.settings, trace=True) for _, item in self.items[:count]]
        found = {place: generation.trace for place, generation, _ in decode(self.model, requests, self.rows)}
        return [trace for place in range(len(requests)) if (trace := found[place]) is not None]


def against(base: Measured, measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Table rows: accuracy, forwards, positions and speed of each run, and its paired difference to the base.

    Speed-up three ways, because they differ: in forwards, in positions recomputed, and in seconds of this machine.
    """
    return [row(base, found) for found in measured]


def row(base: Measured, found: Measured) -> dict[str, Any]:
    ours, theirs = found.figures, base.figures
    low, high = ours["accuracy_interval"]
    pair = None if found is base else compare(found.samples, base.samples)
    return {
        "run": found.run.name,
        "n": ours["n"],
        "accuracy %": round(100 * ours["accuracy"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "difference": None if pair is None else difference(pair),
        "McNemar p": None if pair is None else round(pair["mcnemar_p"], 3),
        "forwards": round(ours["forwards"], 1),
        "positions": round(ours["positions"]),
        "tokens/forward": round(ours["tokens_per_forward"], 2),
        "tokens/s": round(ours["time"]["tokens_per_second"], 1),
        "speed-up (forwards)": round(theirs["forwards"] / ours["forwards"], 2),
        "speed-up (positions)": round(theirs["positions"] / ours["positions"], 2),
        "speed-up (seconds)": round(theirs["time"]["seconds"] / max(ours["time"]["seconds"], 1e-9), 2),
    }


def difference(pair: dict[str, Any]) -> str:
    low, high = pair["interval"]
    return f"{100 * pair['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
