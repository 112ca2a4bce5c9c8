"""A canvas that grows: masks inserted behind a position move everything to its right (DAEDAL, arXiv:2508.00819)."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor

from starr.canvas import Canvas


def insert(canvas: Canvas, at: Tensor, count: Tensor, *, most: int, longest: int, mask_id: int) -> Canvas:
    """Insert ``count`` (B,) masks behind column ``at`` (B,), at most ``most``, never beyond ``longest`` positions.

    The window's end moves along only where it was the canvas's end. Every inserted mask, and the step that inserted it,
    raises the row's limit of steps by one.
    """
    count = count.clamp(min=0, max=most).minimum(longest - canvas.length)
    column = torch.arange(canvas.columns + most, device=at.device)[None]
    behind = column > at[:, None]
    new = behind & (column <= (at + count)[:, None])
    source = torch.where(behind & ~new, column - count[:, None], column)
    source = torch.where(new, canvas.columns - 1, source).clamp(max=canvas.columns - 1)
    moved = {
        f.name: getattr(canvas, f.name).gather(1, source) for f in fields(canvas) if getattr(canvas, f.name).dim() == 2
    }
    at_end = canvas.window_end == canvas.length
    return replace(
        canvas,
        **moved
        | {
            "tokens": moved["tokens"].masked_fill(new, mask_id),
            "masked": moved["masked"] | new,
            "frozen": moved["frozen"] & ~new,
        },
        length=canvas.length + count,
        window_end=torch.where(at_end, canvas.window_end + count, canvas.window_end),
        limit=canvas.limit + count + (count > 0),
    )
