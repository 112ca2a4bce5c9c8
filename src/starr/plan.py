"""Which window comes next, when it closes, when a row is done, and what the next forward recomputes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from starr.canvas import Canvas, select
from starr.query import Cache
from starr.stop import Verdict


def first_true(flags: Tensor) -> Tensor:
    """(B,) int64: the first True column of (B, C), or C where there is none."""
    found = flags.any(dim=1)
    return torch.where(found, flags.int().argmax(dim=1), flags.shape[1])


def advance(canvas: Canvas, acted: Tensor, eos_ids: Tensor) -> tuple[Canvas, Tensor]:
    """Close and open windows after a step; returns the canvas and which rows (B,) bool are done.

    A window closes when no mask is left in it and the strategy's extra steps are used up, not allowed any more, or
    changed nothing (``acted`` (B,) bool: the step changed something). The next window starts where the last one ended,
    skipping blocks without masks. A row is done when it has no mask and no open window, or when a held end-of-text has
    only held tokens before it. A row before its last allowed step gets the whole rest as its window, so that this step
    can commit all of it.
    """
    has_mask = (canvas.masked & canvas.in_window).any(dim=1)
    spent = (canvas.extra_used >= canvas.extra) | ((canvas.extra_used > 0) & ~acted)
    spent |= canvas.total >= canvas.limit
    closed = ~has_mask & (spent | (canvas.step == 0))
    extra_used = torch.where(has_mask | closed, 0, canvas.extra_used + 1)
    first_mask = first_true(canvas.masked)
    finished = closed & (first_mask == canvas.columns)
    done = finished | (canvas.ends & ended(canvas, first_mask, eos_ids))
    begin, end = next_window(canvas, first_mask)
    opens = closed & ~done
    last = canvas.total >= canvas.limit - 1
    canvas = replace(
        canvas,
        window_start=torch.where(opens, begin, canvas.window_start),
        window_end=torch.where(last, canvas.length, torch.where(opens, end, canvas.window_end)),
        step=torch.where(opens, 0, canvas.step),
        extra_used=extra_used,
        seen=canvas.seen & ~opens[:, None],
    )
    return canvas, done


def next_window(canvas: Canvas, first_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end (B,) of the window after the present one: whole blocks without masks are skipped."""
    skipped = (first_mask - canvas.window_end).div(canvas.block, rounding_mode="floor").clamp(min=0)
    begin = canvas.window_end + skipped * canvas.block
    end = torch.where(canvas.lookahead, canvas.length, (begin + canvas.block).minimum(canvas.length))
    return begin, end


def ended(canvas: Canvas, first_mask: Tensor, eos_ids: Tensor) -> Tensor:
    """(B,) bool: a held end-of-text stands before the first mask."""
    eos = torch.isin(canvas.tokens, eos_ids) & ~canvas.masked & ~canvas.frozen
    return first_true(eos) < first_mask.clamp(max=canvas.columns - 1)


def move_end(canvas: Canvas, end: Tensor | None) -> Canvas:
    """Let a decision set the window's end (B,), as a number of positions after its start; negative keeps it."""
    if end is None:
        return canvas
    asked = (canvas.window_start + end.clamp(min=1)).minimum(canvas.length)
    return replace(canvas, window_end=torch.where(end < 0, canvas.window_end, asked))


def stop_after(canvas: Canvas, verdict: Verdict | None) -> Canvas:
    """Rows that end now may take one more step, which commits all the masks that they still have."""
    if verdict is None:
        return canvas
    return replace(canvas, limit=torch.where(verdict.end, canvas.total + 1, canvas.limit))


def settled_until(canvas: Canvas, revokes: Tensor) -> Tensor:
    """(B,) int64: columns before this can never change again (``revokes`` (B,) bool: held tokens are revocable)."""
    first_mask = first_true(canvas.masked).minimum(canvas.length)
    return torch.where(revokes, canvas.window_start.minimum(first_mask), first_mask)


def plan_query(canvas: Canvas, caches: list[tuple[Cache, Tensor]], shift: bool) -> Tensor:
    """(B, C) bool for rows with different caches: each comes with its rows (K,) int64.

    Whatever the rule, a position that the buffer does not hold, one of the window never observed and one whose token
    just changed are recomputed; where logits are shifted, so is the position before each of the window's queries, which
    predicts it.
    """
    if not any(cache.buffered for cache, _ in caches):
        return canvas.valid
    query = ~canvas.queried | (((canvas.in_window & ~canvas.seen) | canvas.changed) & ~canvas.frozen)
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
