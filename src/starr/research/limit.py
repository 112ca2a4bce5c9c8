"""The limit: about the fewest forwards in which any rule that only commits could write a text with this model.

A conservative run writes the text. An oracle that knows it then decodes the same prompt, and commits at every step each
proposal that equals the text's token. No rule that only commits proposals can do better on the way that the oracle
takes; another order might, rarely. Where no proposal agrees, the text's token is written at the most confident mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from starr.decode.strategies.oracle import Oracle
from starr.evals.run.runner import CHUNK, SAMPLERS, decode, graded
from starr.evals.run.runs import EvalSettings, Run, requests_for
from starr.evals.run.store import Sample
from starr.evals.tasks import Item, Task

if TYPE_CHECKING:
    from starr.evals.run.bench import Bench
    from starr.model.load import Model

CONSERVATIVE = "threshold:tau=0.95"
LIMIT = "limit"  # the name of the oracle's run, which no strategy has


def oracle_samples(bench: Bench) -> list[Sample]:
    """The oracle's samples of a bench, decoded once; in this process unless the store has them."""
    (found,) = replace(bench, decoder=None).measure([Run(LIMIT)])
    return list(found.samples)


def limit_samples(
    model: Model, task: Task, settings: EvalSettings, items: Sequence[tuple[int, Item]], rows: int
) -> Iterator[Sample]:
    """The oracle's samples, under the run's name ``limit``; each costs its conservative run and the oracle's."""
    for start in range(0, len(items), CHUNK):
        yield from chunk_samples(model, task, settings, items[start : start + CHUNK], rows)


def chunk_samples(
    model: Model, task: Task, settings: EvalSettings, items: Sequence[tuple[int, Item]], rows: int
) -> Iterator[Sample]:
    """The oracle's samples of a few items: decoded carefully first, then again towards the same tokens."""
    run, end = Run(CONSERVATIVE), model.spec.eos_ids[0]
    requests = requests_for(model, [item for _, item in items], run, settings)
    targets: dict[int, tuple[int, ...]] = {}
    for place, generation, _ in decode(model, [request.change(stop=()) for request in requests], rows):
        fill = requests[place].length - len(generation.tokens)
        targets[place] = (*generation.tokens, *[end] * fill)
    known = [request.change(strategy=Oracle(targets[place])) for place, request in enumerate(requests)]
    for place, generation, elapsed in decode(model, known, rows):
        index, item = items[place]
        yield graded(task, Run(LIMIT), index, item, generation, elapsed)


SAMPLERS[LIMIT] = limit_samples
