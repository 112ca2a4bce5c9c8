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
    waiting: list[LiveRow]


def keep(batch: Batch) -> KeptBatch:
    """What ``bring_back`` needs."""
    rows, waiting = map(copied, batch.rows), map(copied, batch.waiting)
    return KeptBatch(dict(vars(batch)), list(rows), list(waiting))


def copied(row: LiveRow) -> LiveRow:
    """A row that a step of another copy does not change."""
    return replace(row, history=list(row.history), prefill=replace(row.prefill), seal=replace(row.seal))


def bring_back(batch: Batch, kept: KeptBatch) -> None:
    """Make the batch what it was."""
    vars(batch).clear()
    vars(batch).update(kept.attributes)
    batch.rows = list(map(copied, kept.rows))
    batch.waiting = deque(map(copied, kept.waiting))


def drop_failing_rows(engine: Engine, kept: KeptBatch) -> dict[int, Exception]:
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
