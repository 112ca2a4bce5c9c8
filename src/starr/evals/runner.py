"""Decode, grade and store: the evaluation loop.

Items go in chunks, and every run decodes a chunk before the next one comes, so that partial results compare the same
samples and slow hours of a machine hit all runs alike. Within a chunk rows are ordered by length, and join as others
leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING

from starr.evals.runs import Run, Settings, request_for
from starr.evals.stats import paired, sure
from starr.evals.store import Sample, Store
from starr.evals.tasks import Item, Task, cut_at

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.request import Request
    from starr.trace import Generation

CHUNK = 64
LEAST_SURE = 50  # no early stop before this many samples

Watch = Callable[[Sample], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which items, which runs, how many rows at once, and when to stop early."""

    items: Sequence[tuple[int, Item]]
    runs: Sequence[Run]
    rows: int = 8
    until_sure: float | None = None  # percentage points


def evaluate(model: Model, task: Task, settings: Settings, plan: Plan, store: Store, watch: Watch) -> None:
    """Decode what the store lacks; every finished sample is stored and shown at once."""
    for start in range(0, len(plan.items), CHUNK):
        chunk = plan.items[start : start + CHUNK]
        for run in plan.runs:
            missing = [(index, item) for index, item in chunk if not store.has(run.name, index)]
            for sample in decode_chunk(model, task, settings, run, missing, plan.rows):
                store.add(sample)
                watch(sample)
        if plan.until_sure is not None and known(store, plan, start + len(chunk)):
            return


def known(store: Store, plan: Plan, done: int) -> bool:
    """Whether every pair's difference is known within the plan's points."""
    if done < LEAST_SURE or plan.until_sure is None:
        return False
    places = [index for index, _ in plan.items[:done]]
    right = {run: [store.samples[run.name, i].correct for i in places] for run in plan.runs}
    return sure([paired(right[a], right[b]) for a, b in combinations(plan.runs, 2)], plan.until_sure)


def decode_chunk(
    model: Model, task: Task, settings: Settings, run: Run, items: Sequence[tuple[int, Item]], rows: int
) -> Iterator[Sample]:
    """Samples of one run in the order in which they finish."""
    requests = [(index, item, request_for(model, item, run, settings)) for index, item in items]
    requests.sort(key=lambda r: len(r[2].tokens))
    for place, generation, elapsed in decode(model, [r[2] for r in requests], rows):
        index, item, _ = requests[place]
        yield graded(task, run, index, item, generation, elapsed)


def decode(model: Model, requests: Sequence[Request], rows: int) -> Iterator[tuple[int, Generation, float]]:
    """(place, generation, engine seconds since the last one) as rows finish; at most ``rows`` are in flight.

    Requests enter only when a row is free, so that a row's own seconds hold no waiting.
    """
    from starr.engine import Engine

    engine = Engine(model, max_rows=rows)
    place_of: dict[int, int] = {}
    waiting, flying, elapsed = iter(enumerate(requests)), 0, 0.0
    while True:
        for place, request in waiting:
            place_of[engine.add(request)] = place
            flying += 1
            if flying == rows:
                break
        if not flying:
            return
        start = perf_counter()
        events = engine.step()
        elapsed += perf_counter() - start
        for event in events:
            if event.generation is not None:
                flying -= 1
                yield place_of[event.id], event.generation, elapsed
                elapsed = 0.0


def graded(task: Task, run: Run, index: int, item: Item, generation: Generation, elapsed: float) -> Sample:
    text = cut_at(generation.text, task.stops)
    grade = task.grade(item, text)
    stats = generation.stats
    return Sample(
        run=run.name, strategy=run.strategy, cache=run.cache, index=index, id=item.id,
        correct=grade.scores[task.primary], scores=dict(grade.scores), answer=grade.answer, gold=item.gold, text=text,
        finish_reason=generation.finish_reason, prompt_tokens=generation.prompt_tokens,
        forwards=stats.forwards, full_forwards=stats.full_forwards, positions=stats.positions, tokens=stats.tokens,
        canvas_tokens=stats.canvas_tokens, commits=stats.commits, revocations=stats.revocations,
        seconds=stats.seconds, elapsed=elapsed,
    )  # fmt: skip
