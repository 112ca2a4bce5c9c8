"""Which positions the next forward recomputes, and what the host must know about them.

Letters: B rows, C columns. *Queried* positions are recomputed by a forward; *observed* ones get a fresh proposal from
it; *buffered* ones have K/V in the row's buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from starr.decode.advance import settled_until
from starr.decode.caches.base import Cache
from starr.decode.canvas import Canvas, select
from starr.decode.settings import RowSettings

if TYPE_CHECKING:
    from starr.model.network.transformer import KVBuffer


@dataclass(frozen=True, slots=True)
class Wishes:
    """What guests want of the next forward besides the cache's and the strategy's positions; (B, C) bool or None."""

    canvas: Canvas
    buffer: KVBuffer | None = None
    query: Tensor | None = None  # positions to compute
    observed: Tensor | None = None  # positions to predict, as far as the forward computes them
    extra: Tensor | None = None  # positions that get extra queries

    def add(self, **more: Tensor) -> Wishes:
        """The wishes with these positions, by field, besides."""
        last = {name: getattr(self, name) for name in more}
        both: dict[str, Any] = {n: new if last[n] is None else last[n] | new for n, new in more.items()}
        return replace(self, **both)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The next forward: its positions on the device, their numbers on the host."""

    query: Tensor  # (B, C) bool
    observed: Tensor  # (B, C) bool
    extra: Tensor | None  # (B, C) bool: positions with an extra query
    figures: RowFigures

    def trimmed(self, columns: int) -> QueryPlan:
        """The plan for a canvas of fewer columns."""
        extra = None if self.extra is None else self.extra[:, :columns]
        return replace(self, query=self.query[:, :columns], observed=self.observed[:, :columns], extra=extra)

    @property
    def width(self) -> int:
        """Positions of the widest window."""
        return max(*self.figures.width, 1)

    @property
    def most_queried(self) -> int:
        """Positions of the largest query."""
        return max(self.figures.queried)

    @property
    def reach(self) -> int:
        return max(self.figures.reach)

    @property
    def most_observed(self) -> int:
        """Observed positions of the row that has most, at least one."""
        return max(*self.figures.observed, 1)


@dataclass(frozen=True, slots=True)
class RowFigures:
    """What the host learns about the rows in one copy per step; a list has one number for each row."""

    done: list[int]
    settled: list[int]  # columns before this one never change again
    length: list[int]
    queried: list[int]
    observed: list[int]
    width: list[int]
    opened: list[int]  # 1 where the window is new
    reach: list[int]  # no query sees this column or one after it
    earlier: list[int]  # queried positions before the open block of a block-causal model
    extra: list[int]  # positions with extra queries


def plan_query(wishes: Wishes, settings: RowSettings, done: Tensor, *, shift: bool) -> QueryPlan:
    """The next forward of all rows, with the step's one copy to the host.

    Observed are the window's masks, its held tokens where the strategy revokes, and what guests wish besides, as far as
    the forward predicts them. ``done`` (B,) bool goes along to the host.
    """
    canvas, blocks = wishes.canvas, settings.blocks
    query = queries(canvas, settings.caches, shift) if blocks is None else blocks.query(canvas)
    query = query if wishes.query is None else query | wishes.query
    observed = canvas.in_window & (canvas.masked | (~canvas.frozen & settings.revokes[:, None]))
    observed = (observed if wishes.observed is None else observed | wishes.observed) & observable(query, shift)
    nothing = torch.zeros_like(canvas.length)
    parts = {
        "done": done,
        "settled": settled_until(canvas, settings.revocable),
        "length": canvas.length,
        "queried": query.sum(1),
        "observed": observed.sum(1),
        "width": canvas.window.end - canvas.window.start,
        "opened": canvas.window.step == 0,
        "reach": canvas.length if blocks is None else blocks.reach(canvas),
        "earlier": nothing if blocks is None else blocks.earlier(canvas, query),
        "extra": nothing if wishes.extra is None else wishes.extra.sum(1),
    }
    copied: list[list[int]] = torch.stack([part.long() for part in parts.values()]).tolist()
    return QueryPlan(query, observed, wishes.extra, RowFigures(**dict(zip(parts, copied, strict=True))))


def queries(canvas: Canvas, caches: list[tuple[Cache, Tensor]], shift: bool) -> Tensor:
    """(B, C) bool for rows with different caches, each with its rows (K,) int64.

    Whatever the cache's rule, three kinds of positions are recomputed: those that the buffer does not hold, those of
    the window that were never observed, and those whose token just changed. Where logits are shifted, so is the
    position before each of the window's queries, which predicts it.
    """
    if not any(cache.buffered for cache, _ in caches):
        return canvas.valid
    query = ~canvas.buffered | (((canvas.in_window & ~canvas.last.seen) | canvas.changed) & ~canvas.frozen)
    if len(caches) == 1:
        query = query | caches[0][0].query(canvas)
    else:
        for cache, rows in caches:
            query[rows] |= cache.query(select(canvas, rows))
    if shift:
        predictors = (query & canvas.in_window).roll(-1, dims=1)
        query = query | predictors
    return query & canvas.valid


def observable(query: Tensor, shift: bool) -> Tensor:
    """(B, C) bool: the positions whose prediction a forward over ``query`` gives afresh."""
    return query.roll(1, dims=1) if shift else query
