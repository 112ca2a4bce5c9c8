"""Chosen columns of each row, as packed indices.

Letters: B rows, C columns, O chosen columns (padded), W window positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from starr.decode.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Places:
    """Chosen columns of each row, packed to the left and padded with the spare column."""

    index: Tensor  # (B, O) int64
    count: Tensor  # (B,) int64

    @property
    def real(self) -> Tensor:
        """(B, O) bool: not padding."""
        return torch.arange(self.index.shape[1], device=self.index.device) < self.count[:, None]


def places(chosen: Tensor, most: int) -> Places:
    """The True columns of (B, C), at most ``most`` per row, in order."""
    columns = chosen.shape[1]
    rank = torch.where(chosen, chosen.cumsum(dim=1) - 1, most)
    source = torch.arange(columns, device=chosen.device).expand_as(chosen)
    packed = torch.full((chosen.shape[0], most + 1), columns - 1, device=chosen.device)
    return Places(packed.scatter_(1, rank, source)[:, :most], chosen.sum(dim=1))


def window_index(canvas: Canvas, width: int) -> Tensor:
    """(B, W) int64: columns of each row's window, the spare column beyond its width."""
    offset = torch.arange(width, device=canvas.tokens.device)[None]
    own = canvas.window_end - canvas.window_start
    return torch.where(offset < own[:, None], canvas.window_start[:, None] + offset, canvas.columns - 1)
