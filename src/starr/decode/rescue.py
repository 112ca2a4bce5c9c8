"""After a failed step: which rows fail alone, from their state before it, so that their neighbours can go on.

A step makes new values and puts them into the batch; what was there before is kept by keeping the batch's attributes.
Only the K/V buffer is written in place, and a repeated step writes the same positions again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starr.decode.rows import LiveRow

if TYPE_CHECKING:
    from starr.decode.batch import Batch
    from starr.decode.engine import Engine


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """A batch as it was before a step."""

    attributes: dict[str, Any]
    rows: list[LiveRow]
    steps: list[int]  # kept steps of each row
    waiting: list[LiveRow]


def keep(batch: Batch) -> KeptBatch:
    """What ``bring_back`` needs."""
    rows = [replace(row) for row in batch.rows]
    return KeptBatch(dict(vars(batch)), rows, [len(row.history) for row in rows], list(batch.waiting))


def bring_back(batch: Batch, kept: KeptBatch) -> None:
    """Make the batch what it was."""
    vars(batch).clear()
    vars(batch).update(kept.attributes)
    rows = zip(kept.rows, kept.steps, strict=True)
    batch.rows = [replace(row, history=row.history[:steps]) for row, steps in rows]
    batch.waiting = deque(kept.waiting)


def expel(engine: Engine, kept: KeptBatch) -> dict[int, Exception]:
    """Run every row alone from ``kept``; those that fail leave the batch, with their errors by id."""
    batch = engine.batch
    ids = [row.id for row in (*kept.rows, *kept.waiting[: batch.max_rows - len(kept.rows)])]
    failed: dict[int, Exception] = {}
    for id in ids:
        bring_back(batch, kept)
        try:
            for other in (row.id for row in (*kept.rows, *kept.waiting)):
                if other != id:
                    engine.cancel(other)
            engine.step()
        except Exception as error:
            failed[id] = error
    bring_back(batch, kept)
    for id in failed:
        engine.cancel(id)
    return failed
