"""Decode, grade and store: the evaluation loop.

Items go in chunks, and every run decodes a chunk before the next chunk begins. So partial results compare the same
samples, and a slow hour of the machine slows all runs alike. Within a chunk rows are ordered by length; a row joins
when another leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING

from starr.evals.run.runs import EvalSettings, Run, requests_for
from starr.evals.run.store import Sample, Store
from starr.evals.stats import paired, sure
from starr.evals.tasks import Item, Task

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.decode.trace import Generation
    from starr.model.load import Model

CHUNK = 64
Sampler = Callable[["Model", Task, EvalSettings, Sequence[tuple[int, Item]], int], Iterator[Sample]]
SAMPLERS: dict[str, Sampler] = {}  # how runs are decoded that no strategy's text form names, by their name
LEAST_SURE = 50  # no early stop before this many samples

Watch = Callable[[Sample], None]


@dataclass(frozen=True, slots=True)
class Workload:
    """Which items, which runs, how many rows at once, and when to stop early."""

    items: Sequence[tuple[int, Item]]
    runs: Sequence[Run]
    rows: int = 8
    until_sure: float | None = None  # percentage points


def evaluate(model: Model, task: Task, settings: EvalSettings, work: Workload, store: Store, watch: Watch) -> None:
    """Decode what the store lacks; every finished sample is stored and shown at once."""
    for start, end in chunks(work):
        chunk = work.items[start:end]
        for run in work.runs:
            missing = [(index, item) for index, item in chunk if not store.has(run.name, index)]
            for sample in decode_chunk(model, task, settings, run, missing, work.rows):
                store.add(sample)
                watch(sample)
        if known(store, work, end):
            return


def chunks(work: Workload) -> list[tuple[int, int]]:
    """Where chunks of items start and end; after each, the run ends if enough is known.

    The first chunk is one batch, so that the time of every run is known soon.
    """
    starts = [0, *range(min(work.rows, CHUNK), len(work.items), CHUNK)]
    return list(zip(starts, [*starts[1:], len(work.items)], strict=True))


def known(store: Store, work: Workload, done: int) -> bool:
    """Whether every pair's difference is known within the work's points."""
    if done < LEAST_SURE or work.until_sure is None:
        return False
    places = [index for index, _ in work.items[:done]]
    right = {run: [store.samples[run.name, i].both for i in places] for run in work.runs}
    return sure([paired(right[a], right[b]) for a, b in combinations(work.runs, 2)], work.until_sure)


def decode_chunk(
    model: Model, task: Task, settings: EvalSettings, run: Run, items: Sequence[tuple[int, Item]], rows: int
) -> Iterator[Sample]:
    """Samples of one run in the order in which they finish."""
    if run.strategy in SAMPLERS:
        yield from SAMPLERS[run.strategy](model, task, settings, items, rows)
        return
    requests = requests_for(model, [item for _, item in items], run, settings)
    order = sorted(range(len(items)), key=lambda place: len(requests[place].tokens))
    for place, generation, elapsed in decode(model, [requests[at] for at in order], rows):
        index, item = items[order[place]]
        yield graded(task, run, index, item, generation, elapsed)


def decode(model: Model, requests: Sequence[Request], rows: int) -> Iterator[tuple[int, Generation, float]]:
    """(place, generation, engine seconds since the last one) as rows finish; at most ``rows`` are in flight.

    Requests enter only when a row is free, so that a row's own seconds hold no waiting.
    """
    from starr.decode.engine import Engine

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
    """The sample of a finished row: its text, its grades and its cost."""
    text = generation.text
    grade = task.grade(item, text)
    right = grade.scores[task.primary]
    formed = None if task.formed is None else task.formed(item, text)
    stats = generation.stats
    return Sample(
        run=run.name, strategy=run.strategy, cache=run.cache, index=index, id=item.id,
        kind=item.kind, right=right, formed=formed, both=right and formed is not False, scores=dict(grade.scores),
        answer=grade.answer, gold=item.gold, text=text,
        finish_reason=generation.finish_reason, prompt_tokens=generation.prompt_tokens,
        forwards=stats.forwards, full_forwards=stats.full_forwards, positions=stats.positions, tokens=stats.tokens,
        canvas_tokens=stats.canvas_tokens, commits=stats.commits, revocations=stats.revocations,
        seconds=stats.seconds, elapsed=elapsed,
    )  # fmt: skip
