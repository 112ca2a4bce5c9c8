"""Which window comes next, when it closes, and when a row is done."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, Window
from starr.decode.stops.base import Verdict


def first_true(flags: Tensor) -> Tensor:
    """(B,) int64: the first True column of (B, C), or C where there is none."""
    found = flags.any(dim=1)
    return torch.where(found, flags.int().argmax(dim=1), flags.shape[1])


def advance(canvas: Canvas, eos_ids: Tensor) -> tuple[Canvas, Tensor]:
    """Close and open windows after a step; returns the canvas and which rows (B,) bool are done.

    A window closes when no mask is left in it, unless a guest keeps it open (``kept_open``, for one step). The next
    window starts where the last one ended; blocks without masks are skipped. A row is done when it has no mask and no
    open window, when a held end-of-text has only held tokens before it, or when only masks are left that the result
    leaves out; rows that are kept open wait for the window to close with it, and so do ``late`` ones while steps change
    something: a stop rule may hide the masks that are left. No row waits longer than its limit. A row before its last
    allowed step gets the whole rest as its window, so that this step can commit all of it.
    """
    closed = ~(canvas.masked & canvas.in_window).any(dim=1)
    waits = (canvas.rules.late & canvas.changed.any(dim=1)) | canvas.window.kept_open
    waits, closed = waits & (canvas.total < canvas.limit), closed & ~canvas.window.kept_open
    first_mask = first_true(canvas.masked)
    finished = closed & (first_mask == canvas.columns)
    enough = (canvas.rules.ends & ended(canvas, first_mask, eos_ids)) | (first_mask >= canvas.goal)
    done = finished | (enough & (closed | ~waits))
    begin, end = next_window(canvas, first_mask)
    opens = closed & ~done
    last = canvas.total >= canvas.limit - 1
    window = Window(
        start=torch.where(opens, begin, canvas.window.start),
        end=torch.where(last, canvas.length, torch.where(opens, end, canvas.window.end)),
        step=torch.where(opens, 0, canvas.window.step),
        kept_open=torch.zeros_like(canvas.window.kept_open),
    )
    seen = canvas.last.seen & ~opens[:, None]
    return replace(canvas, window=window, last=replace(canvas.last, seen=seen)), done


def next_window(canvas: Canvas, first_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end (B,) of the window after the present one: whole blocks without masks are skipped.

    Windows end at multiples of the block from the row's origin. Only the first may begin between two of them.
    Windows that look back begin at the canvas's start.
    """
    rules, last = canvas.rules, canvas.window.end
    anchor = last - ((last - rules.origin) % rules.block).masked_fill(rules.lookahead, 0)
    skipped = (first_mask - anchor).div(rules.block, rounding_mode="floor").clamp(min=0)
    begin = anchor + skipped * rules.block
    end = torch.where(rules.lookahead, canvas.length, (begin + rules.block).minimum(canvas.length))
    return torch.where(rules.lookback, rules.start, begin.maximum(last)), end


def ended(canvas: Canvas, first_mask: Tensor, eos_ids: Tensor) -> Tensor:
    """(B,) bool: a held end-of-text stands before the first mask."""
    eos = torch.isin(canvas.tokens, eos_ids) & ~canvas.masked & ~canvas.frozen
    return first_true(eos) < first_mask.clamp(max=canvas.columns - 1)


def move_end(canvas: Canvas, end: Tensor | None) -> Canvas:
    """Let a decision set the window's end (B,), as a number of positions after its start; negative keeps it."""
    if end is None:
        return canvas
    asked = (canvas.window.start + end.clamp(min=1)).minimum(canvas.length)
    return replace(canvas, window=replace(canvas.window, end=torch.where(end < 0, canvas.window.end, asked)))


def stop_after(canvas: Canvas, verdict: Verdict | None) -> Canvas:
    """Rows that end now may take one more step if they still have masks; it commits all of them."""
    if verdict is None:
        return canvas
    ends = canvas.limit.minimum(canvas.total + canvas.masked.any(dim=1))
    return replace(canvas, limit=torch.where(verdict.end, ends, canvas.limit))


def settled_until(canvas: Canvas, revokes: Tensor) -> Tensor:
    """(B,) int64: columns before this can never change again (``revokes`` (B,) bool: held tokens are revocable)."""
    first_mask = first_true(canvas.masked).minimum(canvas.length)
    return torch.where(revokes, canvas.window.start.minimum(first_mask), first_mask)
